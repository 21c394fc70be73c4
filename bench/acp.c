/*
 * What terminals of ACP cost: `true` from terminal/create to the answer of wait_for_exit, by
 * messages, against the same program run through the library; and one terminal/output with 4 MiB
 * kept, against copying that much.
 */
#include "bench.h"

#include <poll.h>

#define ROUNDS 300
#define WARM   20
#define KEPT   ((size_t)4 << 20)
#define POLLS  40

static struct {
    char *text;
    size_t size, cap;
    int count;
} last;

static void keep(const char *message, size_t size, void *userdata)
{
    (void)userdata;
    if (size + 1 > last.cap) {
        last.cap = size + 1;
        last.text = realloc(last.text, last.cap);
    }
    memcpy(last.text, message, size);
    last.text[size] = '\0';
    last.size = size;
    last.count++;
}

/* Sends a request and waits for the next answer. */
static void ask(nacre_acp_host *host, const char *text)
{
    nacre_error err;
    int before = last.count;
    if (nacre_acp_host_feed(host, text, strlen(text), &err) < 0)
        die("feed", &err);
    while (last.count == before) {
        struct pollfd poller = {.fd = nacre_acp_host_fd(host), .events = POLLIN};
        poll(&poller, 1, -1);
        if (nacre_acp_host_dispatch(host, &err) < 0)
            die("dispatch", &err);
    }
    if (strstr(last.text, "\"error\""))
        die(last.text, NULL);
}

static void create(nacre_acp_host *host, const char *line, char ret_id[NACRE_ID_DIGITS + 1])
{
    char text[256];
    snprintf(text, sizeof text,
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"terminal/create\",\"params\":{"
             "\"sessionId\":\"s\",\"command\":\"/bin/sh\",\"args\":[\"-c\",\"%s\"],"
             "\"outputByteLimit\":%zu}}",
             line, KEPT);
    ask(host, text);
    const char *id = strstr(last.text, "terminalId\":\"");
    snprintf(ret_id, NACRE_ID_DIGITS + 1, "%s", id + strlen("terminalId\":\""));
}

static void call(nacre_acp_host *host, const char *method, const char *id)
{
    char text[256];
    snprintf(text, sizeof text,
             "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"terminal/%s\",\"params\":{"
             "\"sessionId\":\"s\",\"terminalId\":\"%s\"}}",
             method, id);
    ask(host, text);
}

static double terminal_once(nacre_acp_host *host)
{
    char id[NACRE_ID_DIGITS + 1];
    double start = now_us();
    create(host, "true", id);
    call(host, "wait_for_exit", id);
    double took = now_us() - start;
    call(host, "release", id);
    return took;
}

static double run_once(nacre_session *session)
{
    static const char *const argv[] = {"/bin/sh", "-c", "true", NULL};
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_error err;
    command.argv = argv;
    double start = now_us();
    if (nacre_run(session, &command, -1, &record, &err) < 0)
        die("run", &err);
    double took = now_us() - start;
    nacre_record_done(&record);
    return took;
}

static void measure_start(nacre_session *session, nacre_acp_host *host)
{
    static double terminals[ROUNDS], runs[ROUNDS];
    char words[64];
    for (int i = -WARM; i < ROUNDS; i++) {
        double run = run_once(session), terminal = terminal_once(host);
        if (i >= 0) {
            runs[i] = run;
            terminals[i] = terminal;
        }
    }
    double ours = percentile(terminals, ROUNDS, 50), theirs = percentile(runs, ROUNDS, 50);
    snprintf(words, sizeof words, "%.0f us, library %.0f us", ours, theirs);
    row("acp: true, create to wait_for_exit", words, ours / theirs, "x", 1.2, 0);
}

static void measure_output(nacre_acp_host *host)
{
    static double polls[POLLS], copies[POLLS];
    char id[NACRE_ID_DIGITS + 1], words[64];
    char *copy = malloc(2 * KEPT);
    /* Whose memory is touched first is not the host's affair. */
    last.cap = 2 * KEPT;
    last.text = realloc(last.text, last.cap);
    memset(last.text, 0, last.cap);
    memset(copy, 0, 2 * KEPT);
    create(host, "yes some words of a line | head -c 5000000", id);
    call(host, "wait_for_exit", id);
    double start = now_us();
    call(host, "output", id);
    double first = now_us() - start;
    for (int i = 0; i < POLLS; i++) {
        start = now_us();
        call(host, "output", id);
        polls[i] = now_us() - start;
        start = now_us();
        memcpy(copy, last.text, last.size);
        __asm__ volatile("" : : "r"(copy) : "memory");
        copies[i] = now_us() - start;
    }
    call(host, "release", id);
    free(copy);
    double ours = percentile(polls, POLLS, 50), theirs = percentile(copies, POLLS, 50);
    snprintf(words, sizeof words, "%.0f us (first %.0f), a copy %.0f us", ours, first, theirs);
    row("acp: terminal/output of 4 MiB", words, ours / 1000, " ms", 10, 0);
}

int main(void)
{
    nacre_error err;
    nacre_session *session = open_session();
    nacre_acp_host_options options = NACRE_ACP_HOST_OPTIONS_INIT;
    nacre_acp_host *host;
    options.send = keep;
    if (nacre_acp_host_open(session, &options, &host, &err) < 0)
        die("open", &err);
    measure_start(session, host);
    measure_output(host);
    nacre_acp_host_close(host);
    free(last.text);
    return nacre_close(session, &err) == 0 ? 0 : 1;
}
