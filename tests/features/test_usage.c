/* What the processes of a shell use: memory, CPU time and ports of the whole tree, while it lives.
 */
#include "harness.h"

#include <stdlib.h>

static nacre_usage usage_of(nacre_session *session, const nacre_id *id)
{
    nacre_usage usage = NACRE_USAGE_INIT;
    CHECK_OK(nacre_get_usage(session, id, &usage, ERR));
    return usage;
}

/* What a shell printed has that word in it. */
static bool has_printed(nacre_session *session, const nacre_id *id, const char *word)
{
    nacre_snapshot text = {0};
    CHECK_OK(nacre_output(session, id, NACRE_BOTH, 0, &text, ERR));
    bool found = memmem(text.data, text.size, word, strlen(word)) != NULL;
    free(text.data);
    return found;
}

#define COUNTING "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"

/* One that the command waited for, or one that lost its parent, and has ended. */
static void computing(nacre_session *session, const char *text)
{
    nacre_id id = start_text(session, text);
    CHECK(AWAIT(has_printed(session, &id, "counted"), 10000));
    CHECK(AWAIT(usage_of(session, &id).processes == 1, 1000));
    CHECK_RANGE(20, usage_of(session, &id).cpu_ms, 60000);
    CHECK(AWAIT(usage_of(session, &id).memory_bytes > 100 * 1024, 1000));
    CHECK_OK(nacre_kill(session, &id, NULL, NULL, ERR));
}

static void computing_both_ways(nacre_session *session)
{
    computing(session, "(" COUNTING ") & wait; echo counted; exec sleep 300");
    computing(session, "(( " COUNTING "; echo counted) &); exec sleep 300");
}

TEST(what_ended_in_the_tree_counts)
{
    nacre_session *session = open_session();
    computing_both_ways(session);
    close_session(session);
}

TEST(what_ended_in_the_tree_counts_without_a_cgroup)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    options.tier = NACRE_TIER_SUBREAPER;
    options.person = 1;
    nacre_session *session = open_options(&options);
    computing_both_ways(session);
    close_session(session);
}

#define SERVER                                                           \
    "python3 -c 'import socket,time\n"                                   \
    "m = bytearray(b\"x\") * (%d << 20)\n"                               \
    "s = [socket.create_server((\"127.0.0.1\", 0)) for i in range(2)]\n" \
    "print(*[x.getsockname()[1] for x in s], \"up\", flush=True)\ntime.sleep(300)\n'"

TEST(all_processes_are_summed)
{
    if (!have_program("python3"))
        SKIP("python3 is missing");
    nacre_session *session = open_session();
    nacre_id id = start_text(session, format("setsid " SERVER " & " SERVER " & exit 3", 30, 20));
    nacre_record record = NACRE_RECORD_INIT;
    nacre_usage usage = NACRE_USAGE_INIT;
    CHECK(AWAIT((usage = usage_of(session, &id)).ports[3] != 0, 10000));
    CHECK_EQ_INT(2, usage.processes);
    CHECK_RANGE(50 << 20, usage.memory_bytes, 300 << 20);
    CHECK_EQ_INT(0, usage.ports[4]);
    for (int i = 0; i < 3; i++)
        CHECK(usage.ports[i] < usage.ports[i + 1]);
    for (int i = 0; i < 4; i++)
        CHECK(AWAIT(has_printed(session, &id, format("%d", usage.ports[i])), 1000));

    CHECK_OK(nacre_kill(session, &id, NULL, NULL, ERR));
    CHECK_OK(nacre_get(session, &id, &record, ERR));
    usage = usage_of(session, &id);
    CHECK_EQ_INT(0, usage.processes);
    CHECK_EQ_INT(0, usage.memory_bytes);
    CHECK_EQ_INT(0, usage.ports[0]);
    CHECK_EQ_INT(record.cpu_ms, usage.cpu_ms);
    nacre_record_done(&record);
    close_session(session);
}

TEST(who_may_not_look)
{
    nacre_usage usage = NACRE_USAGE_INIT;
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_session *session = open_session(), *other = open_options(&options);
    nacre_id id = start_text(session, "exec sleep 300"), unknown = id;
    CHECK_CODE(NACRE_EFORBIDDEN, nacre_get_usage(other, &id, &usage, ERR));
    unknown.bytes[0] ^= 0xff;
    CHECK_CODE(NACRE_ENOTFOUND, nacre_get_usage(session, &unknown, &usage, ERR));
    usage.size--;
    CHECK_CODE(NACRE_EINVAL, nacre_get_usage(session, &id, &usage, ERR));
    close_session(other);
    /* Whoever starts commands elsewhere sees the home like any other. */
    options.backend = nacre_backend_noop();
    options.person = 1;
    other = open_options(&options);
    usage = (nacre_usage)NACRE_USAGE_INIT;
    CHECK_OK(nacre_get_usage(other, &id, &usage, ERR));
    close_session(other);
    close_session(session);
}
