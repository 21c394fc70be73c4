/*
 * The tables of docs/architecture.md say what the structures are: every field of the files and the
 * messages, with its offset and size, and no other. The lists here leave no byte out, so a field
 * that is added to a structure is missed here first.
 */
#include "unit.h"

#include "base/defs.h"
#include "run/log.h"
#include "run/marks.h"
#include "run/wire.h"

struct field {
    const char *name;
    size_t offset;
    size_t size;
};

#define FIELD(type, member)                                                            \
    {                                                                                  \
#member, offsetof(struct type, member), sizeof(((struct type *)NULL)->member), \
    }

#define F(member) FIELD(spec_head, member)
static const struct field spec_fields[] = {
    F(magic),        F(format),       F(size),        F(id),       F(session),   F(timeout_ms),
    F(grace_ms),     F(quota),        F(kind),        F(lifetime), F(input),     F(umask),
    F(nice),         F(successor),    F(preload),     F(pipeline), F(owner_pid), F(background),
    F(fleeting),     F(paced),        F(owner_start), F(limits),   F(bounds),    F(program),
    F(text),         F(text_size),    F(cwd),         F(run_path), F(name),      F(description),
    F(session_name), F(session_cwd),  F(argv),        F(argc),     F(env),       F(envc),
    F(groups),       F(strict),       F(sandbox),     F(person),   F(columns),   F(rows),
    F(granted),      F(granted_size), F(gated),       F(pad),      F(sum),
};
#undef F

#define F(member) FIELD(run_state, member)
static const struct field state_fields[] = {
    F(magic),
    F(format),
    F(size),
    F(generation),
    F(id),
    F(session),
    F(phase),
    F(outcome),
    F(tree),
    F(tier),
    F(reason),
    F(settled),
    F(exit_code),
    F(signal),
    F(core_dumped),
    F(kept),
    F(background),
    F(fleeting),
    F(boot),
    F(pid_ns),
    F(keeper_pid),
    F(main_pid),
    F(keeper_start),
    F(main_start),
    F(started_ns),
    F(started_mono_ns),
    F(exited_ns),
    F(elapsed_ns),
    F(empty_ns),
    F(cpu_us),
    F(max_rss_kb),
    F(log),
    F(signalled),
    F(force_killed),
    F(survivors),
    F(survivor_pids),
    F(pipestatus_count),
    F(pipestatus),
    F(cgroup),
    F(leader_pid),
    F(marks),
    F(columns),
    F(rows),
    F(viewers),
    F(typists),
    F(waited_ms),
    F(pad),
    F(limits),
    F(sum),
};
#undef F

#define F(member) FIELD(state_limits, member)
static const struct field limits_fields[] = {
    F(held),  F(ended), F(killed),       F(refused),       F(seen),
    F(value), F(peak),  F(throttled_ms), F(largest_bytes), F(largest),
};
#undef F

#define F(member) FIELD(log_index, member)
static const struct field index_fields[] = {
    F(end),        F(head),          F(head_spans),       F(ring_size),     F(ring_base),
    F(tail_start), F(span_cap),      F(span_first),       F(span_next),     F(bytes),
    F(newlines),   F(dropped_bytes), F(dropped_newlines), F(dropped_errno), F(unfinished),
    F(pad),
};
#undef F

#define F(member) FIELD(span, member)
static const struct field span_fields[] = {
    F(offset), F(when), F(out_bytes), F(out_newlines), F(err_newlines),
};
#undef F

#define F(member) FIELD(denial, member)
static const struct field denial_fields[] = {F(kind), F(pid), F(program), F(target), F(why)};
#undef F

#define F(member) FIELD(run_mark, member)
static const struct field mark_fields[] = {
    F(offset), F(when_us), F(columns), F(rows), F(kind), F(sum),
};
#undef F

/* The structures that have a table of their own. */
static const struct layout {
    const char *name;
    size_t size;
    const struct field *fields;
    size_t count;
} layouts[] = {
    {"spec_head", sizeof(struct spec_head), spec_fields, ARRAY_SIZE(spec_fields)},
    {"run_state", sizeof(struct run_state), state_fields, ARRAY_SIZE(state_fields)},
    {"state_limits", sizeof(struct state_limits), limits_fields, ARRAY_SIZE(limits_fields)},
    {"log_index", sizeof(struct log_index), index_fields, ARRAY_SIZE(index_fields)},
    {"span", sizeof(struct span), span_fields, ARRAY_SIZE(span_fields)},
    {"denial", sizeof(struct denial), denial_fields, ARRAY_SIZE(denial_fields)},
    {"run_mark", sizeof(struct run_mark), mark_fields, ARRAY_SIZE(mark_fields)},
};

#define WHOLE(type)       sizeof(struct type), sizeof(struct type)
#define UP_TO(type, last) offsetof(struct type, last), sizeof(struct type)

/* The messages, and what follows the head of each. */
static const struct message {
    const char *name;
    int type;
    size_t least; /* bytes of the shortest one */
    size_t size;
    struct field fields[10];
} messages[] = {
    {"HELLO",
     WIRE_HELLO,
     WHOLE(wire_hello),
     {FIELD(wire_hello, session), FIELD(wire_hello, tier), FIELD(wire_hello, fds),
      FIELD(wire_hello, host_pid), FIELD(wire_hello, home), FIELD(wire_hello, cgroup_parent)}},
    {"READY",
     WIRE_READY,
     WHOLE(wire_ready),
     {FIELD(wire_ready, error), FIELD(wire_ready, pid), FIELD(wire_ready, start),
      FIELD(wire_ready, id), FIELD(wire_ready, child_of_host), FIELD(wire_ready, tier),
      FIELD(wire_ready, copies), FIELD(wire_ready, version), FIELD(wire_ready, step),
      FIELD(wire_ready, pad)}},
    {"GO",
     WIRE_GO,
     UP_TO(wire_go, spec),
     {FIELD(wire_go, has_input), FIELD(wire_go, size), FIELD(wire_go, spec)}},
    {"HURRY", WIRE_HURRY, WHOLE(wire_head), {{0}}},
    {"WATCH", WIRE_WATCH, WHOLE(wire_head), {{0}}},
    {"EVENT", WIRE_EVENT, WHOLE(wire_event), {FIELD(wire_event, state)}},
    {"KILL",
     WIRE_KILL,
     WHOLE(wire_kill),
     {FIELD(wire_kill, signal), FIELD(wire_kill, reason), FIELD(wire_kill, grace_ms)}},
    {"ACK", WIRE_ACK, WHOLE(wire_ack), {FIELD(wire_ack, wait_ms)}},
    {"KILLED", WIRE_KILLED, WHOLE(wire_killed), {FIELD(wire_killed, state)}},
    {"INPUT",
     WIRE_INPUT,
     UP_TO(wire_input, data),
     {FIELD(wire_input, size), FIELD(wire_input, eof), FIELD(wire_input, data)}},
    {"INPUT_DONE",
     WIRE_INPUT_DONE,
     WHOLE(wire_input_done),
     {FIELD(wire_input_done, error), FIELD(wire_input_done, taken)}},
    {"SEEN", WIRE_SEEN, WHOLE(wire_seen), {FIELD(wire_seen, offset)}},
    {"CHANGE",
     WIRE_CHANGE,
     WHOLE(wire_change),
     {FIELD(wire_change, background), FIELD(wire_change, kept)}},
    {"SIGNAL",
     WIRE_SIGNAL,
     WHOLE(wire_signal),
     {FIELD(wire_signal, signal), FIELD(wire_signal, pad)}},
    {"SURE", WIRE_SURE, WHOLE(wire_sure), {FIELD(wire_sure, host)}},
    {"DENIED", WIRE_DENIED, WHOLE(wire_denied), {FIELD(wire_denied, denial)}},
    {"FENCE", WIRE_FENCE, WHOLE(wire_fence), {FIELD(wire_fence, fds), FIELD(wire_fence, pad)}},
    {"FENCED",
     WIRE_FENCED,
     WHOLE(wire_fenced),
     {FIELD(wire_fenced, error), FIELD(wire_fenced, step), FIELD(wire_fenced, place),
      FIELD(wire_fenced, fds), FIELD(wire_fenced, landlock), FIELD(wire_fenced, port)}},
    {"RESIZE",
     WIRE_RESIZE,
     WHOLE(wire_resize),
     {FIELD(wire_resize, columns), FIELD(wire_resize, rows)}},
    {"ATTACH",
     WIRE_ATTACH,
     WHOLE(wire_attach),
     {FIELD(wire_attach, types), FIELD(wire_attach, columns), FIELD(wire_attach, rows),
      FIELD(wire_attach, pad)}},
    {"LOOK", WIRE_LOOK, WHOLE(wire_look), {FIELD(wire_look, wanted), FIELD(wire_look, held_ms)}},
    {"LOOKED",
     WIRE_LOOKED,
     WHOLE(wire_looked),
     {FIELD(wire_looked, reads), FIELD(wire_looked, pid), FIELD(wire_looked, start),
      FIELD(wire_looked, since_ms), FIELD(wire_looked, terminal), FIELD(wire_looked, echo),
      FIELD(wire_looked, lines), FIELD(wire_looked, name)}},
    {"MADE",
     WIRE_MADE,
     WHOLE(wire_made),
     {FIELD(wire_made, pid), FIELD(wire_made, pad), FIELD(wire_made, start)}},
    {"ASKED",
     WIRE_ASKED,
     UP_TO(wire_asked, text),
     {FIELD(wire_asked, id), FIELD(wire_asked, argc), FIELD(wire_asked, size),
      FIELD(wire_asked, text)}},
    {"ANSWER",
     WIRE_ANSWER,
     WHOLE(wire_answer),
     {FIELD(wire_answer, answer), FIELD(wire_answer, pad)}},
    {"GATE_HELLO",
     WIRE_GATE_HELLO,
     UP_TO(wire_gate_hello, rules),
     {FIELD(wire_gate_hello, fds), FIELD(wire_gate_hello, host_pid),
      FIELD(wire_gate_hello, patience_ms), FIELD(wire_gate_hello, size),
      FIELD(wire_gate_hello, rules)}},
    {"GATE_READY",
     WIRE_GATE_READY,
     WHOLE(wire_gate_ready),
     {FIELD(wire_gate_ready, error), FIELD(wire_gate_ready, pid),
      FIELD(wire_gate_ready, child_of_host), FIELD(wire_gate_ready, version)}},
};

/* Numbers that the tables explain in words. */
static const struct word {
    const char *field;
    int number;
    const char *text;
} words[] = {
    {"kind", SPEC_ARGV, "a program"},
    {"kind", SPEC_BASH, "text for bash"},
    {"kind", SPEC_SH, "text for another"},
    {"lifetime", NACRE_LIFE_SESSION, "session"},
    {"lifetime", NACRE_LIFE_KEEP, "keep"},
    {"input", NACRE_STDIN_NULL, "`/dev/null`"},
    {"input", NACRE_STDIN_BYTES, "bytes"},
    {"input", NACRE_STDIN_FD, "a descriptor"},
    {"input", NACRE_STDIN_PIPE, "a pipe"},
    {"phase", PHASE_WARM, "warm"},
    {"phase", PHASE_RUN, "run"},
    {"outcome", NACRE_RUNNING, "running"},
    {"outcome", NACRE_EXITED, "exited"},
    {"outcome", NACRE_SIGNALED, "signaled"},
    {"outcome", NACRE_KILLED, "killed"},
    {"outcome", NACRE_TIMED_OUT, "timed out"},
    {"outcome", NACRE_CANCELLED, "cancelled"},
    {"outcome", NACRE_LOST, "lost"},
    {"tree", NACRE_TREE_ALIVE, "alive"},
    {"tree", NACRE_TREE_EMPTY, "empty"},
    {"tier", NACRE_TIER_CGROUP, "cgroup"},
    {"tier", NACRE_TIER_SUBREAPER, "subreaper"},
    {"tier", NACRE_TIER_GROUP, "group"},
    {"tier", NACRE_TIER_CLIENT, "client"},
    {"reason", NACRE_REASON_NONE, "none"},
    {"reason", NACRE_REASON_KILL, "kill"},
    {"reason", NACRE_REASON_DEADLINE, "deadline"},
    {"reason", NACRE_REASON_CANCEL, "cancel"},
    {"reason", NACRE_REASON_OWNER, "owner"},
    {"reason", NACRE_REASON_LIMIT, "limit"},
    {"ended", NACRE_LIMIT_MEMORY, "memory"},
    {"ended", NACRE_LIMIT_PROCESSES, "processes"},
    {"ended", NACRE_LIMIT_CPU, "cpu"},
    {"ended", NACRE_LIMIT_CPU_TIME, "cpu_time"},
    {"ended", NACRE_LIMIT_FILES, "files"},
    {"ended", NACRE_LIMIT_FILE_SIZE, "file_size"},
    {"ended", NACRE_LIMIT_DISK, "disk"},
    {"held", NACRE_HELD_NOT, "not"},
    {"held", NACRE_HELD_CGROUP2, "cgroup v2"},
    {"held", NACRE_HELD_CGROUP1, "cgroup v1"},
    {"held", NACRE_HELD_RLIMIT, "rlimit"},
    {"held", NACRE_HELD_KEEPER, "keeper"},
    {"held", NACRE_HELD_NICE, "nice"},
    {"fds", WIRE_FD_TEXT, "the preload"},
    {"fds", WIRE_FD_OWNER, "the owner's pidfd"},
    {"fds", WIRE_FD_FENCE, "= a FENCE"},
    {"fds", FENCE_FD_RECORD, "the record"},
    {"fds", FENCE_FD_PRIVATE, "the session's private directory"},
    {"fds", FENCE_FD_USER, "the user namespace"},
    {"fds", FENCE_FD_MOUNT, "the mount namespace"},
    {"fds", FENCE_FD_NETWORK, "that of the network"},
    {"fds", FENCE_FD_IPC, "ipc"},
    {"fds", FENCE_FD_RULES, "the rules of Landlock"},
    {"fds", FENCE_FD_GATE, "the socket that listens for the gate"},
    {"kind", DENIAL_NETWORK, "network"},
    {"kind", DENIAL_SOCKET, "socket"},
    {"kind", DENIAL_PROTECTED, "protected"},
};

static char *docs;

static int read_docs(void **state)
{
    (void)state;
    FILE *file = fopen(DOCS_FILE, "r");
    assert_non_null(file);
    docs = calloc(1, 1 << 20);
    assert_true(fread(docs, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return 0;
}

static int free_docs(void **state)
{
    (void)state;
    free(docs);
    return 0;
}

/* What follows text, which the document has once. */
static const char *after(const char *text)
{
    const char *at = strstr(docs, text);
    if (!at)
        fail_msg("docs/architecture.md lacks: %s", text);
    if (strstr(at + 1, text))
        fail_msg("docs/architecture.md has twice: %s", text);
    return at + strlen(text);
}

/* The line at `at` must begin with start; returns the next one. */
static const char *take_row(const char *at, const char *start)
{
    if (strncmp(at, start, strlen(start)) != 0)
        fail_msg("docs/architecture.md has \"%.*s\" where \"%s\" belongs", (int)strcspn(at, "\n"),
                 at, start);
    return strchr(at, '\n') + 1;
}

static void end_of_table(const char *at)
{
    if (*at == '|')
        fail_msg("docs/architecture.md has a row too many: %.*s", (int)strcspn(at, "\n"), at);
}

/* No byte of a structure is in no field. Returns where the fields end. */
static size_t check_whole(const struct field *fields, size_t count, size_t begin)
{
    size_t at = begin;
    for (size_t i = 0; i < count; at += fields[i++].size)
        if (fields[i].offset != at)
            fail_msg("a field or padding is missing before %s", fields[i].name);
    return at;
}

static void fields_of_files(void **state)
{
    (void)state;
    char text[256];
    for (const struct layout *l = layouts; l < layouts + ARRAY_SIZE(layouts); l++) {
        assert_int_equal(check_whole(l->fields, l->count, 0), l->size);
        snprintf(text, sizeof text,
                 "\n`struct %s`, %zu bytes:\n\n| offset | size | field | meaning |\n"
                 "|---:|---:|---|---|\n",
                 l->name, l->size);
        const char *at = after(text);
        for (const struct field *f = l->fields; f < l->fields + l->count; f++) {
            snprintf(text, sizeof text, "| %zu | %zu | `%s` | ", f->offset, f->size, f->name);
            at = take_row(at, text);
        }
        end_of_table(at);
    }
}

static void sizes_of_messages(void **state)
{
    (void)state;
    char text[256], bytes[64];
    const char *at = after("| type | name | from | bytes | what | descriptors |\n"
                           "|---:|---|---|---:|---|---|\n");
    for (const struct message *m = messages; m < messages + ARRAY_SIZE(messages); m++) {
        bool by_keeper = m->type == WIRE_READY || m->type == WIRE_EVENT || m->type == WIRE_ACK ||
                         m->type == WIRE_KILLED || m->type == WIRE_INPUT_DONE ||
                         m->type == WIRE_ASKED || m->type == WIRE_LOOKED || m->type == WIRE_MADE;
        bool by_gate = m->type == WIRE_DENIED || m->type == WIRE_GATE_READY;
        snprintf(bytes, sizeof bytes, "%zu to %zu", m->least, m->size);
        if (m->least == m->size)
            *strchr(bytes, ' ') = '\0';
        snprintf(text, sizeof text, "| %d | %s | %s | %s | ", m->type, m->name,
                 by_keeper                ? "keeper"
                 : by_gate                ? "gate"
                 : m->type == WIRE_FENCED ? "fence"
                                          : "library",
                 bytes);
        at = take_row(at, text);
    }
    end_of_table(at);
}

static void fields_of_messages(void **state)
{
    (void)state;
    char text[256];
    const char *at = after("| message | offset | size | field | meaning |\n"
                           "|---|---:|---:|---|---|\n");
    for (const struct message *m = messages; m < messages + ARRAY_SIZE(messages); m++) {
        size_t count = 0;
        while (count < ARRAY_SIZE(m->fields) && m->fields[count].name)
            count++;
        assert_int_equal(check_whole(m->fields, count, sizeof(struct wire_head)), m->size);
        for (const struct field *f = m->fields; f < m->fields + count; f++) {
            snprintf(text, sizeof text, "| %s | %zu | %zu | `%s` | ", m->name, f->offset, f->size,
                     f->name);
            at = take_row(at, text);
        }
    }
    end_of_table(at);
}

/* One row of a field, among those of the same name, explains the number. */
static bool is_explained(const struct word *word)
{
    char field[64], text[128];
    snprintf(field, sizeof field, " | `%s` | ", word->field);
    snprintf(text, sizeof text, "%d %s", word->number, word->text);
    for (const char *at = docs; (at = strstr(at, field)); at++) {
        const char *found = strstr(at, text);
        if (found && found < strchr(at, '\n') && found[-1] == ' ')
            return true;
    }
    return false;
}

static void numbers(void **state)
{
    (void)state;
    char text[256];
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (!is_explained(&words[i]))
            fail_msg("docs/architecture.md lacks: `%s` %d %s", words[i].field, words[i].number,
                     words[i].text);
    snprintf(text, sizeof text, "The format is %d;", RUN_FORMAT);
    after(text);
    snprintf(text, sizeof text, "| 8 | 4 | `format` | %d |\n| 12 | 4 | `size` | of the whole",
             RUN_FORMAT);
    after(text);
    snprintf(text, sizeof text, "| 8 | 4 | `format` | %d |\n| 12 | 4 | `size` | %zu |", RUN_FORMAT,
             sizeof(struct run_state));
    after(text);
    snprintf(text, sizeof text, " | `sum` | over bytes 0 to %zu |\n",
             offsetof(struct spec_head, sum) - 1);
    after(text);
    snprintf(text, sizeof text, " | `sum` | over bytes 0 to %zu |\n",
             offsetof(struct run_state, sum) - 1);
    after(text);
    snprintf(text, sizeof text, "Two slots of %d bytes.", STATE_SLOT_SIZE);
    after(text);
}

static void other_structures(void **state)
{
    (void)state;
    static const struct field host[] = {FIELD(spec_host, umask), FIELD(spec_host, nice),
                                        FIELD(spec_host, limits)};
    static const struct field started[] = {FIELD(wire_started, stage), FIELD(wire_started, error)};
    static const struct field head[] = {FIELD(wire_head, type), FIELD(wire_head, format)};
    assert_int_equal(check_whole(host, ARRAY_SIZE(host), 0), sizeof(struct spec_host));
    assert_int_equal(check_whole(started, ARRAY_SIZE(started), 0), sizeof(struct wire_started));
    assert_int_equal(check_whole(head, ARRAY_SIZE(head), 0), sizeof(struct wire_head));
    char text[256];
    snprintf(text, sizeof text, "`umask` (%zu), `nice` (%zu, signed), `limits` (%zu): as in",
             host[0].size, host[1].size, host[2].size);
    after(text);
    after("`stage` and `error` (`struct wire_started`, 4 bytes\neach)");
    after("`struct wire_head` is `type` and `format`, 4 bytes each");
    snprintf(text, sizeof text,
             "failed start: %d spec, %d chdir, %d stdin, %d exec, %d prepare, %d limits",
             STAGE_SPEC, STAGE_CHDIR, STAGE_STDIN, STAGE_EXEC, STAGE_PREPARE, STAGE_LIMITS);
    after(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_files),    cmocka_unit_test(sizes_of_messages),
        cmocka_unit_test(fields_of_messages), cmocka_unit_test(numbers),
        cmocka_unit_test(other_structures),
    };
    return cmocka_run_group_tests(tests, read_docs, free_docs);
}
