/*
 * A session of a client and an agent that others made, recorded line by line, again through nacre
 * acp-proxy: every byte arrives on the other side as it was written, except for what the proxy
 * answers itself; one after the other, and all at once with large messages between.
 */
#include "proxy_rig.h"

enum { LINES_MAX = 256, LARGE = 1 << 20 };

struct line {
    bool agent; /* the agent said it */
    const char *text;
    size_t size; /* with its newline */
    bool asks;   /* the agent for a terminal */
    bool told;   /* the client's answer to that */
};

struct recording {
    struct line lines[LINES_MAX];
    int count;
    json_t *asked; /* ids of the agent's requests for terminals */
};

static bool is_in(const json_t *list, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), value))
            return true;
    return false;
}

static bool is_answer_to(const char *text, size_t size, const json_t *asked)
{
    json_t *message = json_loadb(text, size, 0, NULL);
    bool answer = message && !json_object_get(message, "method") &&
                  is_in(asked, json_object_get(message, "id"));
    json_decref(message);
    return answer;
}

static void add_line(struct recording *r, const char *text, size_t size)
{
    CHECK(r->count < LINES_MAX);
    struct line *line = &r->lines[r->count++];
    *line = (struct line){.agent = text[0] == 'a', .text = text + 1, .size = size - 1};
    json_t *message = json_loadb(line->text, line->size, 0, NULL);
    CHECK(message && (text[0] == 'a' || text[0] == 'c'));
    const char *method = json_string_value(json_object_get(message, "method"));
    line->asks = line->agent && method && strncmp(method, "terminal/", 9) == 0;
    if (line->asks)
        json_array_append(r->asked, json_object_get(message, "id"));
    json_decref(message);
    line->told = !line->agent && is_answer_to(line->text, line->size, r->asked);
}

static struct recording load(void)
{
    static struct recording r;
    size_t size;
    const char *nacre = program("../../nacre");
    char *text = slurp(
        format("%.*s/tests/features/acp_session.jsonl", (int)(strrchr(nacre, '/') - nacre), nacre),
        &size);
    CHECK(text);
    r = (struct recording){.asked = json_array()};
    for (char *at = text, *end; (end = memchr(at, '\n', size - (size_t)(at - text))); at = end + 1)
        add_line(&r, at, (size_t)(end + 1 - at));
    CHECK(r.count > 60 && json_array_size(r.asked) > 12);
    return r;
}

static void expect_line(int fd, const struct line *line)
{
    char *got = hear(fd, line->size);
    if (memcmp(got, line->text, line->size) != 0)
        FAIL("wanted %.*s, got %s", (int)line->size, line->text, got);
    free(got);
}

/* -- One after the other ----------------------------------------------------------------------- */

TEST(a_client_with_terminals)
{
    struct recording recorded = load();
    struct rig r = start_rig(NULL);

    for (int i = 0; i < recorded.count; i++) {
        const struct line *line = &recorded.lines[i];
        say(line->agent ? r.to_agent_out : r.to_proxy, line->text, line->size);
        expect_line(line->agent ? r.from_proxy : r.from_agent_in, line);
    }
    end_rig(&r);
}

/* What the agent asks for is answered here: with the same id, and unseen by the client. */
static void replay_hosted(const struct rig *r, const struct recording *recorded, int from)
{
    for (int i = from; i < recorded->count; i++) {
        const struct line *line = &recorded->lines[i];
        if (line->told)
            continue;
        say(line->agent ? r->to_agent_out : r->to_proxy, line->text, line->size);
        if (!line->asks) {
            expect_line(line->agent ? r->from_proxy : r->from_agent_in, line);
            continue;
        }
        json_t *answer = hear_message(r->from_agent_in);
        CHECK(is_in(recorded->asked, json_object_get(answer, "id")));
        CHECK(json_object_get(answer, "result") || json_object_get(answer, "error"));
        json_decref(answer);
    }
    expect_silence(r->from_proxy);
}

TEST(always_hosted)
{
    struct recording recorded = load();
    struct rig r = start_rig("--always");

    replay_hosted(&r, &recorded, 0);
    end_rig(&r);
}

TEST(a_client_without_terminals)
{
    struct recording recorded = load();
    struct rig r = start_rig(NULL);
    json_t *greeting = json_loadb(recorded.lines[0].text, recorded.lines[0].size, 0, NULL);
    json_t *capabilities =
        json_object_get(json_object_get(greeting, "params"), "clientCapabilities");

    CHECK_OK(json_object_del(capabilities, "terminal"));
    char *text = json_dumps(greeting, 0);
    say_text(r.to_proxy, format("%s\n", text));
    json_t *got = hear_message(r.from_agent_in);
    json_object_set_new(capabilities, "terminal", json_true());
    CHECK(json_equal(got, greeting));
    json_decref(got);
    json_decref(greeting);
    free(text);
    replay_hosted(&r, &recorded, 1);
    end_rig(&r);
}

/* -- All at once ------------------------------------------------------------------------------- */

/* A line of 1 MiB: as a message of its own, a text with many escapes, and no JSON at all. */
static const struct line *large_line(int kind)
{
    static struct line lines[3];
    struct line *line = &lines[kind % 3];
    if (line->text)
        return line;
    static const char *const heads[] = {
        "{\"jsonrpc\":\"2.0\",\"method\":\"_large\",\"params\":{\"x\":\"",
        "{\"jsonrpc\":\"2.0\",\"method\":\"_\\u0074erminal/x\",\"params\":[\"", ""};
    static const char *const ends[] = {"\"}}\n", "\"]}\n", "\n"};
    static const char *const fills[] = {"x", "\\n\\\"", "\xff terminal/create "};
    const char *head = heads[kind % 3], *end = ends[kind % 3], *fill = fills[kind % 3];
    char *text = malloc(LARGE + 64);
    size_t size = strlen(head), step = strlen(fill);
    memcpy(text, head, size);
    for (; size < LARGE; size += step)
        memcpy(text + size, fill, step);
    memcpy(text + size, end, strlen(end));
    *line = (struct line){.text = text, .size = size + strlen(end)};
    return line;
}

struct stream {
    char *data;
    size_t size, cap;
};

static void add(struct stream *s, const struct line *line)
{
    if (s->cap - s->size < line->size) {
        s->cap = s->cap * 2 + line->size;
        s->data = realloc(s->data, s->cap);
    }
    memcpy(s->data + s->size, line->text, line->size);
    s->size += line->size;
}

/* Everything one side says, several times over, with large lines between. */
static struct stream stream_of(const struct recording *r, bool agent, bool with_terminals,
                               int times)
{
    struct stream s = {0};
    for (int i = 0; i < times * r->count; i++) {
        const struct line *line = &r->lines[i % r->count];
        if (line->agent != agent || (!with_terminals && (line->asks || line->told)))
            continue;
        add(&s, line);
        if (!line->asks && !line->told && i % 3 == 0)
            add(&s, large_line(i / 3));
    }
    return s;
}

static pid_t write_in_pieces(int fd, const struct stream *s, unsigned seed)
{
    pid_t writer = fork();
    CHECK(writer >= 0);
    if (writer > 0)
        return writer;
    for (size_t done = 0; done < s->size;) {
        seed = seed * 1103515245 + 12345;
        size_t n = 1 + (seed >> 8) % 200000;
        n = n < s->size - done ? n : s->size - done;
        say(fd, s->data + done, n);
        done += n;
    }
    _exit(0);
}

/* Reads lines and leaves out those that answer a request for a terminal. */
struct sieve {
    const json_t *asked;
    struct stream got, line;
    int answers;
};

static void take(struct sieve *s, const char *data, size_t size)
{
    while (size > 0) {
        const char *end = memchr(data, '\n', size);
        size_t n = end ? (size_t)(end + 1 - data) : size;
        add(&s->line, &(struct line){.text = data, .size = n});
        data += n;
        size -= n;
        if (!end)
            continue;
        bool answer =
            s->asked && s->line.size < 4096 && is_answer_to(s->line.data, s->line.size, s->asked);
        s->answers += answer;
        if (!answer)
            add(&s->got, &(struct line){.text = s->line.data, .size = s->line.size});
        s->line.size = 0;
    }
}

static void read_some(int fd, struct sieve *s)
{
    static char buf[1 << 16];
    ssize_t n = read(fd, buf, sizeof buf);
    CHECK(n > 0);
    take(s, buf, (size_t)n);
}

static void free_sieve(struct sieve *s)
{
    free(s->got.data);
    free(s->line.data);
}

static void check_same(const struct stream *got, const struct stream *want)
{
    CHECK_EQ_INT(want->size, got->size);
    CHECK(memcmp(got->data, want->data, want->size) == 0);
}

static void replay_at_once(const char *option, bool hosted, int times)
{
    struct recording recorded = load();
    struct rig r = start_rig(option);
    struct stream agent_says = stream_of(&recorded, true, true, times);
    struct stream client_says = stream_of(&recorded, false, !hosted, times);
    struct stream client_hears = hosted ? stream_of(&recorded, true, false, times) : agent_says;
    struct sieve at_client = {0}, at_agent = {.asked = hosted ? recorded.asked : NULL};
    int asked = hosted ? times * (int)json_array_size(recorded.asked) : 0;

    /* The first line decides who has the terminals. */
    say(r.to_proxy, recorded.lines[0].text, recorded.lines[0].size);
    expect_line(r.from_agent_in, &recorded.lines[0]);
    pid_t agent = write_in_pieces(r.to_agent_out, &agent_says, 1);
    pid_t client = write_in_pieces(r.to_proxy, &client_says, 2);
    while (at_client.got.size < client_hears.size || at_agent.got.size < client_says.size ||
           at_agent.answers < asked) {
        struct pollfd polls[] = {{.fd = r.from_proxy, .events = POLLIN},
                                 {.fd = r.from_agent_in, .events = POLLIN}};
        CHECK(poll(polls, 2, (int)soon(10000)) > 0);
        if (polls[0].revents)
            read_some(r.from_proxy, &at_client);
        if (polls[1].revents)
            read_some(r.from_agent_in, &at_agent);
    }
    check_same(&at_client.got, &client_hears);
    check_same(&at_agent.got, &client_says);
    CHECK_EQ_INT(asked, at_agent.answers);
    CHECK_EQ_INT(agent, waitpid(agent, NULL, 0));
    CHECK_EQ_INT(client, waitpid(client, NULL, 0));
    end_rig(&r);
    if (hosted)
        free(client_hears.data);
    free(agent_says.data);
    free(client_says.data);
    free_sieve(&at_client);
    free_sieve(&at_agent);
}

TEST_LIMIT(all_at_once, 60)
{
    replay_at_once(NULL, false, 3);
}

TEST_LIMIT(all_at_once_hosted, 60)
{
    replay_at_once("--always", true, 3);
}
