#include "mcp/round.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "mcp/elicit.h"
#include "mcp/peer.h"
#include "sys/host.h"

#define STATE_MS    (INT64_C(15) * 60 * 1000) /* that a person may think */
#define SPENT_MAX   65536
#define NONCE_SIZE  16
#define ANSWER_NAME "decision" /* of the one thing that is asked */

/* As it is sent: hex digits of all of it. */
struct request_state {
    uint8_t nonce[NONCE_SIZE];
    int64_t until_ms; /* on the monotonic clock: it is of this process alone */
    uint8_t code[SHA256_SIZE];
};

#define STATE_BYTES (NONCE_SIZE + sizeof(int64_t) + SHA256_SIZE)

struct spent_state {
    uint8_t nonce[NONCE_SIZE];
    int64_t until_ms;
};

void mcp_seal_done(struct mcp_seal *seal)
{
    free(seal->spent);
    *seal = (struct mcp_seal){0};
}

/* -- What a state is about -------------------------------------------------------------------- */

static void take_field(struct sha256 *s, const char *text)
{
    sha256_take(s, text, strlen(text) + 1);
}

/* Whatever decides what would be started, what a person is shown, and what the rules say. */
static int sign(const struct mcp_round *round, nacre_session *session, const nacre_question *q,
                struct request_state *state)
{
    struct mcp_seal *seal = &round->request->peer->seal;
    const nacre_settings *settings = nacre_session_settings(session);
    cleanup_free char *arguments =
        json_dumps(round->arguments, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    uint8_t sum[NONCE_SIZE + sizeof(int64_t) + SHA256_SIZE];
    struct sha256 s;
    if (!arguments && round->arguments)
        return -ENOMEM;
    sha256_begin(&s);
    take_field(&s, round->tool);
    take_field(&s, arguments ? arguments : "");
    take_field(&s, q->command);
    take_field(&s, q->commands);
    take_field(&s, q->cwd);
    take_field(&s, q->reason);
    take_field(&s, q->description);
    take_field(&s, q->always);
    take_field(&s, nacre_settings_text(settings, NACRE_SETTING_POLICY));
    take_field(&s, nacre_settings_text(settings, NACRE_SETTING_POLICY_DEFAULT));
    memcpy(sum, state->nonce, NONCE_SIZE);
    memcpy(sum + NONCE_SIZE, &state->until_ms, sizeof state->until_ms);
    sha256_end(&s, sum + NONCE_SIZE + sizeof state->until_ms);
    hmac_sha256(seal->key, sum, sizeof sum, state->code);
    return 0;
}

static int64_t state_clock(void)
{
    return clock_mono_ns() / NS_PER_MS;
}

/* -- Giving one out --------------------------------------------------------------------------- */

static int need_key(struct mcp_seal *seal)
{
    int r = seal->has_key ? 0 : host_random(seal->key, sizeof seal->key);
    seal->has_key = r == 0;
    return r;
}

static void state_bytes(const struct request_state *state, uint8_t bytes[STATE_BYTES])
{
    memcpy(bytes, state->nonce, NONCE_SIZE);
    memcpy(bytes + NONCE_SIZE, &state->until_ms, sizeof state->until_ms);
    memcpy(bytes + NONCE_SIZE + sizeof state->until_ms, state->code, SHA256_SIZE);
}

static int give_state(const struct mcp_round *round, nacre_session *session,
                      const nacre_question *q, char text[2 * STATE_BYTES + 1])
{
    struct request_state state = {.until_ms = state_clock() + STATE_MS};
    uint8_t bytes[STATE_BYTES];
    int r = need_key(&round->request->peer->seal);
    if (r == 0)
        r = host_random(state.nonce, sizeof state.nonce);
    if (r == 0)
        r = sign(round, session, q, &state);
    if (r < 0)
        return r;
    state_bytes(&state, bytes);
    for (size_t i = 0; i < STATE_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* -- Taking one back -------------------------------------------------------------------------- */

static int state_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_state(const char *text, struct request_state *ret)
{
    uint8_t bytes[STATE_BYTES];
    if (strlen(text) != 2 * STATE_BYTES)
        return false;
    for (size_t i = 0; i < STATE_BYTES; i++) {
        int high = state_digit(text[2 * i]), low = state_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    memcpy(ret->nonce, bytes, NONCE_SIZE);
    memcpy(&ret->until_ms, bytes + NONCE_SIZE, sizeof ret->until_ms);
    memcpy(ret->code, bytes + NONCE_SIZE + sizeof ret->until_ms, SHA256_SIZE);
    return true;
}

static bool is_spent(const struct mcp_seal *seal, const struct request_state *state)
{
    for (size_t i = 0; i < seal->count; i++)
        if (memcmp(seal->spent[i].nonce, state->nonce, NONCE_SIZE) == 0)
            return true;
    return false;
}

/* What has lapsed needs no memory. */
static int spend(struct mcp_seal *seal, const struct request_state *state)
{
    int64_t now = state_clock();
    for (size_t i = 0; i < seal->count;)
        if (seal->spent[i].until_ms <= now)
            seal->spent[i] = seal->spent[--seal->count];
        else
            i++;
    if (seal->count >= SPENT_MAX || GROW(seal->spent, seal->count, seal->room) < 0)
        return -ENOMEM;
    struct spent_state *s = &seal->spent[seal->count++];
    memcpy(s->nonce, state->nonce, NONCE_SIZE);
    s->until_ms = state->until_ms;
    return 0;
}

/* NULL, or what is wrong with it. */
static const char *find_state_fault(const struct mcp_round *round, nacre_session *session,
                                    const nacre_question *q, const char *text)
{
    static const char none[] = "requestState is none that was given out for this call: it was "
                               "altered, or the call, its question or the rules were";
    struct mcp_seal *seal = &round->request->peer->seal;
    struct request_state said, ours;
    if (!seal->has_key || !read_state(text, &said))
        return none;
    ours = said;
    if (sign(round, session, q, &ours) < 0)
        return "out of memory";
    if (!sha256_is_same(said.code, ours.code))
        return none;
    if (said.until_ms <= state_clock())
        return "requestState has lapsed: call again without it";
    if (is_spent(seal, &said))
        return "requestState was used before: call again without it";
    return spend(seal, &said) < 0 ? "out of memory" : NULL;
}

/* -- Asking ----------------------------------------------------------------------------------- */

static bool may_be_asked(const struct mcp_request *q)
{
    const json_t *meta = json_object_get(q->params, "_meta");
    return mcp_shows_forms(
        json_object_get(json_object_get(meta, MCP_META "clientCapabilities"), "elicitation"));
}

static int require_answer(struct mcp_round *round, nacre_session *session, const nacre_question *q)
{
    char state[2 * STATE_BYTES + 1];
    json_t *form = mcp_form(q, "form");
    if (form && give_state(round, session, q, state) == 0)
        round->required = json_pack("{s:s, s:{s:{s:s, s:O}}, s:s}", "resultType", "input_required",
                                    "inputRequests", ANSWER_NAME, "method", "elicitation/create",
                                    "params", form, "requestState", state);
    json_decref(form);
    return round->required ? NACRE_ASK_AGAIN : NACRE_ASK_CANNOT;
}

int mcp_round_ask(struct mcp_round *round, nacre_session *session, const nacre_question *question)
{
    const struct mcp_request *q = round->request;
    const json_t *state = json_object_get(q->params, "requestState");
    const json_t *response =
        json_object_get(json_object_get(q->params, "inputResponses"), ANSWER_NAME);
    if (!may_be_asked(q))
        return NACRE_ASK_CANNOT;
    if (!state)
        return require_answer(round, session, question);
    round->fault = rpc_text(state) ? find_state_fault(round, session, question, rpc_text(state))
                                   : "requestState must be a string";
    if (!round->fault && !response)
        round->fault = "inputResponses must have \"" ANSWER_NAME "\"";
    if (round->fault)
        return NACRE_ASK_AGAIN;
    mcp_decide(session, question->number, response);
    return NACRE_ASK_WAITS;
}

int mcp_round_answer(struct mcp_round *round)
{
    if (round->fault) {
        mcp_fail_params(round->request, "%s", round->fault);
        return 1;
    }
    if (!round->required)
        return 0;
    mcp_reply(round->request, round->required);
    round->required = NULL;
    return 1;
}
