/* Bombs: thousands of processes that want the processor. These run alone, since whoever runs beside
 * them waits for it too. */
#include "harness/harness.h"

#include <unistd.h>

static nacre_id start_limited(nacre_session *s, const char *text, int64_t timeout_ms)
{
    nacre_command command = NACRE_COMMAND_INIT;
    command.text = text;
    command.timeout_ms = timeout_ms;
    return start_command(s, &command);
}

/* Thousands that replace each other, lead sessions, ignore SIGTERM and have no environment: ended
 * in time, and nobody is left. */
static void defuse(int count)
{
    need_tree();
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_limited(s, format("exec %s %d 60 %s", program("bomb"), count, m), 2000);
    int64_t began = now_ms();
    wait_outcome(s, &id, 30000);
    CHECK(AWAIT(tree_empty(s, &id), 30000));
    CHECK_RANGE(0, now_ms() - began, soon(2000 + 2000 + 10000));
    check_ended(s, &id, NACRE_TIMED_OUT, NACRE_REASON_DEADLINE);
    CHECK_EQ_INT(0, count_marked(m));
    close_session(s);
}

TEST_LIMIT(small_bomb, 60)
{
    defuse(200);
}

/* As an ordinary user without a cgroup nobody gives a keeper a processor among thousands: see
 * docs/containment.md. */
TEST_LIMIT(large_bomb, 120)
{
    defuse(geteuid() == 0 || tier_in_force() == NACRE_TIER_CGROUP ? 5000 : 1000);
}
