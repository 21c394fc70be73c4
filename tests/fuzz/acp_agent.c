/*
 * An ACP client that answers with arbitrary bytes. Each line of the input is fed to the agent as it
 * is, and once more as what follows the id in an answer to the oldest open request. Whatever comes,
 * the agent goes on, and its shell can be read.
 */
#include "fuzz.h"

#include <ftw.h>
#include <sys/stat.h>

#include <jansson.h>
#include <nacre/nacre.h>

#include "acp/agent.h"

#define REQUESTS_MAX 64

struct client {
    nacre_acp_agent *agent;
    const char *at;
    size_t left;
    char ids[REQUESTS_MAX][32]; /* of requests that were not answered */
    int open;
    bool creates; /* the next answer is a good one to terminal/create */
};

static char home[] = "/tmp/nacre-fuzz-XXXXXX";

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void clean_up(void)
{
    nftw(home, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int hear_request(const char *message, size_t size, void *userdata)
{
    struct client *c = userdata;
    json_t *request = json_loadb(message, size, 0, NULL);
    MUST(request && !memchr(message, '\n', size));
    const char *id = json_string_value(json_object_get(request, "id"));
    MUST(id && json_object_get(request, "params"));
    if (c->open < REQUESTS_MAX)
        snprintf(c->ids[c->open++], sizeof c->ids[0], "%s", id);
    json_decref(request);
    return 0;
}

static void answer(struct client *c, const char *rest, size_t size)
{
    struct buf text cleanup_buf = BUF_UP_TO((size_t)1 << 22);
    if (c->open == 0)
        return;
    MUST(buf_printf(&text, "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",", c->ids[0]) == 0);
    MUST(buf_append(&text, rest, size) == 0 && buf_str(&text, "}") == 0);
    if (nacre_acp_agent_feed(c->agent, text.data, text.len, NULL) != 1)
        return;
    memmove(c->ids[0], c->ids[1], sizeof c->ids[0] * (size_t)(REQUESTS_MAX - 1));
    c->open--;
}

static int say_line(int timeout_ms, void *userdata)
{
    (void)timeout_ms;
    struct client *c = userdata;
    if (c->creates && c->open > 0) {
        static const char made[] = "\"result\":{\"terminalId\":\"t\"}";
        c->creates = false;
        answer(c, made, sizeof made - 1);
        return 0;
    }
    if (c->left == 0)
        return -1;
    const char *end = memchr(c->at, '\n', c->left);
    size_t size = end ? (size_t)(end - c->at) : c->left;
    nacre_acp_agent_feed(c->agent, c->at, size, NULL);
    answer(c, c->at, size);
    c->at += size + (end != NULL);
    c->left -= size + (end != NULL);
    return 0;
}

static void try_text(const char *data, size_t size)
{
    struct acp_text text = {0};
    for (size_t i = 1; i < size;) {
        size_t n = MIN(size - i, (size_t)(unsigned char)data[i] + 1);
        char *copy = malloc(n);
        bool gap;
        uint64_t before = text.end;
        memcpy(copy, data + i, n);
        size_t from = acp_text_take(&text, copy, n, data[0] & 1, &gap);
        MUST(from <= n && text.end == before + gap + (n - from) && text.known <= ACP_OVERLAP);
        free(copy);
        i += n;
    }
}

static void use(nacre_session *session, const nacre_id *id)
{
    nacre_record record = NACRE_RECORD_INIT;
    char bytes[512];
    uint64_t cursor = 0;
    nacre_wait(session, id, 1, NACRE_WAIT_ALL, 20, NULL, NULL);
    MUST(nacre_get(session, id, &record, NULL) == 0);
    nacre_record_done(&record);
    while (nacre_read(session, id, &cursor, NACRE_BOTH, bytes, sizeof bytes, NULL, NULL) > 0)
        continue;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    if (!ready) {
        ready = mkdtemp(home) != NULL;
        MUST(ready);
        atexit(clean_up);
    }
    const char *text = (const char *)data;
    struct client c = {.at = text + 1, .left = size - (size > 0), .creates = size && data[0] & 1};
    nacre_acp_agent_options agent = NACRE_ACP_AGENT_OPTIONS_INIT;
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_session *session;
    nacre_id id;
    agent.session_id = "s";
    agent.send = hear_request;
    agent.receive = say_line;
    agent.userdata = &c;
    agent.answer_ms = 50;
    MUST(nacre_acp_agent_open(&agent, &c.agent, NULL) == 0);
    options.backend = nacre_backend_acp(c.agent);
    options.home = home;
    MUST(nacre_open(&options, &session, NULL) == 0);
    command.text = "true";
    if (nacre_start(session, &command, &id, NULL, NULL) == 0)
        use(session, &id);
    nacre_close(session, NULL);
    nacre_acp_agent_close(c.agent);
    try_text(text, size);
    clean_up();
    mkdir(home, 0700);
    return 0;
}
