/*
 * Arbitrary bytes as a message to a host of terminals, and as parameters of its methods. Commands
 * are refused by the backend, so that nothing runs. What is answered must be JSON.
 */
#include "fuzz.h"

#include <jansson.h>
#include <nacre/nacre.h>

#include "acp/client_params.h"
#include "acp/client_tail.h"

static nacre_session *session;
static nacre_acp_host *host;
static int answers;

static void check_answer(const char *message, size_t size, void *userdata)
{
    (void)userdata;
    json_t *answer = json_loadb(message, size, JSON_ALLOW_NUL, NULL);
    MUST(answer && json_object_get(answer, "error") && !memchr(message, '\n', size));
    json_decref(answer);
    answers++;
}

static void clean_up(void)
{
    nacre_acp_host_close(host);
    nacre_close(session, NULL);
}

static void open_host(void)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_acp_host_options host_options = NACRE_ACP_HOST_OPTIONS_INIT;
    options.backend = nacre_backend_noop();
    MUST(nacre_open(&options, &session, NULL) == 0);
    host_options.send = check_answer;
    MUST(nacre_acp_host_open(session, &host_options, &host, NULL) == 0);
    atexit(clean_up);
}

static void try_params(const char *data, size_t size)
{
    struct acp_create create;
    struct acp_target target;
    struct rpc_fault fault = {0};
    json_t *params = rpc_decode(data, size, &fault);
    if (!params)
        return;
    int r = acp_create_read(params, &create, &fault);
    MUST(r == 0 ? create.session && create.argv[0] == create.command && *create.command
                : fault.code == RPC_INVALID_PARAMS && fault.text[0]);
    if (r == 0)
        acp_create_is_shell_text(&create);
    acp_create_done(&create);
    MUST(acp_target_read(params, &target, &fault) == 0 || fault.code == RPC_INVALID_PARAMS);
    json_decref(params);
}

static void keep_text(const char *message, size_t size, void *userdata)
{
    MUST(buf_append(userdata, message, size) == 0);
}

/* The first byte is the limit, the second the size of the pieces. */
static void try_tail(const char *data, size_t size)
{
    struct acp_tail tail;
    if (size < 2)
        return;
    struct buf text cleanup_buf = BUF_UP_TO((size_t)1 << 20);
    struct buf quote cleanup_buf = BUF_UP_TO(1);
    size_t limit = (unsigned char)data[0], piece = (unsigned char)data[1] + 1u;
    acp_tail_init(&tail, limit);
    for (size_t i = 2; i < size; i += piece)
        acp_tail_add(&tail, (nacre_stream)(i & 1), data + i, MIN(piece, size - i));
    acp_tail_finish(&tail);
    MUST(buf_str(&quote, "\"") == 0 && acp_tail_send(&tail, &quote, &quote, keep_text, &text) == 0);
    json_t *value = json_loadb(text.data, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    MUST(value && json_string_length(value) == tail.size && tail.size <= limit);
    json_decref(value);
    acp_tail_done(&tail);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    if (!host)
        open_host();
    answers = 0;
    int r = nacre_acp_host_feed(host, text, size, NULL);
    MUST(r == answers && (r == 0 || r == 1));
    MUST(nacre_acp_host_count(host) == 0);
    try_params(text, size);
    try_tail(text, size);
    return 0;
}
