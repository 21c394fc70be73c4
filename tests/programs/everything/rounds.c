/* Asking a client of the modern era: a result says what is wanted, and the request comes again with
 * the answers. A state says how far it is. It is a number that nobody can guess, good once. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "everything.h"

#define STATES_MAX 64

struct given_state {
    uint64_t number[2];
    const json_t *entry;
    size_t round; /* that is answered with it */
};

/* The oldest are forgotten. */
static struct given_state states[STATES_MAX];
static size_t state_count;

static json_t *give_state(const json_t *entry, size_t round)
{
    struct given_state *s = &states[state_count++ % STATES_MAX];
    *s = (struct given_state){.entry = entry, .round = round};
    if (getrandom(s->number, sizeof s->number, 0) != sizeof s->number)
        return NULL;
    return json_sprintf("%016" PRIx64 "%016" PRIx64, s->number[0], s->number[1]);
}

/* Which round a request answers; -1 = its state is none of ours. Without a state it is the first.
 */
static int take_state(const struct mcp_request *q, const json_t *entry)
{
    const char *text = mcp_param(q, "requestState");
    if (!text)
        return 0;
    for (size_t i = 0; i < STATES_MAX; i++) {
        char number[40];
        snprintf(number, sizeof number, "%016" PRIx64 "%016" PRIx64, states[i].number[0],
                 states[i].number[1]);
        if (states[i].entry == entry && strcmp(number, text) == 0) {
            states[i].entry = NULL;
            return (int)states[i].round;
        }
    }
    return -1;
}

static const json_t *declared(const struct mcp_request *q)
{
    return json_object_get(json_object_get(q->params, "_meta"), MCP_META "clientCapabilities");
}

/* What a client must have declared to be asked so. */
static const char *capability_of(const char *method)
{
    return strcmp(method, "elicitation/create") == 0       ? "elicitation"
           : strcmp(method, "sampling/createMessage") == 0 ? "sampling"
                                                           : "roots";
}

bool rounds_may(const struct mcp_request *q, const json_t *needs)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)needs, name,
                        value) if (q->modern && !json_object_get(declared(q), name))
    {
        json_auto_t *data = json_pack("{s:O}", "requiredCapabilities", needs);
        mcp_refuse(q, MCP_NO_CAPABILITY, "the client has not declared what this tool needs", data);
        return false;
    }
    return true;
}

/* Of a round what is not answered yet and may be asked for. */
static json_t *wanted(const struct mcp_request *q, const json_t *round)
{
    const char *key;
    json_t *request, *left = json_object();
    const json_t *answers = json_object_get(q->params, "inputResponses");
    json_object_foreach((json_t *)round, key, request)
    {
        const char *method = json_string_value(json_object_get(request, "method"));
        if (!json_is_object(json_object_get(answers, key)) &&
            json_object_get(declared(q), capability_of(method)))
            json_object_set(left, key, request);
    }
    return left;
}

json_t *rounds_next(const struct mcp_request *q, const json_t *entry, bool *ret_refused)
{
    const json_t *rounds = json_object_get(entry, "rounds");
    bool sealed = json_is_true(json_object_get(entry, "sealed"));
    int round = q->modern && rounds ? take_state(q, entry) : 0;
    *ret_refused = round < 0;
    if (round < 0)
        mcp_fail(q, RPC_INVALID_PARAMS,
                 "requestState is none that was given out, or was used before");
    if (round < 0 || !q->modern)
        return NULL;
    for (size_t i = (size_t)round; i < json_array_size(rounds); i++) {
        json_auto_t *left = wanted(q, json_array_get(rounds, i));
        if (json_object_size(left) > 0)
            return json_pack("{s:s, s:O, s:o*}", "resultType", "input_required", "inputRequests",
                             left, "requestState", sealed ? give_state(entry, i) : NULL);
    }
    return NULL;
}
