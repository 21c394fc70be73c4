/* Operations: the one loop that waits, and what goes around others. */
#include "unit.h"

#include <poll.h>

#include "backend/op.h"
#include "base/clock.h"
#include "base/defs.h"

/* One that says what it is told, and notes what becomes of it. */
struct fake {
    nacre_op op;
    int steps; /* until it is over */
    int last;  /* what it says then */
    int64_t round_ms;
    int stepped;
    int64_t first_ns, last_ns;
    bool *ended;
    int value;
};

static int step_fake(nacre_op *op, nacre_error *err)
{
    struct fake *f = (struct fake *)op;
    f->last_ns = clock_mono_ns();
    if (f->stepped == 0)
        f->first_ns = f->last_ns;
    op->wake_ns = clock_deadline(f->round_ms);
    if (++f->stepped < f->steps)
        return 0;
    if (f->last < 0 && err)
        *err = (nacre_error){.code = f->last, .msg = "it has failed"};
    f->value = 7;
    return f->last;
}

static void end_fake(nacre_op *op)
{
    *((struct fake *)op)->ended = true;
}

static struct fake fake_of(int steps, int last, int64_t round_ms, bool *ended)
{
    *ended = false;
    return (struct fake){.op = OP_INIT(step_fake, end_fake),
                         .steps = steps,
                         .last = last,
                         .round_ms = round_ms,
                         .ended = ended};
}

static int64_t spent_ms(const struct fake *f)
{
    return (f->last_ns - f->first_ns) / NS_PER_MS;
}

/* -- Waiting ---------------------------------------------------------------------------------- */

static void test_wait(void **state)
{
    (void)state;
    bool ended;
    nacre_error err = NACRE_ERROR_INIT;
    struct fake f = fake_of(1, 1, 1000, &ended);
    assert_int_equal(op_wait(&f.op, -1, &err), 1);
    assert_int_equal(f.stepped, 1);
    /* It is asked again when it said it wanted to be. */
    f = fake_of(4, 1, 20, &ended);
    assert_int_equal(op_wait(&f.op, -1, &err), 1);
    assert_int_equal(f.stepped, 4);
    assert_true(spent_ms(&f) >= 60);
    f = fake_of(3, NACRE_EBUSY, 1, &ended);
    assert_int_equal(op_wait(&f.op, -1, &err), NACRE_EBUSY);
    assert_int_equal(err.code, NACRE_EBUSY);
    assert_false(ended);
}

static void test_wait_has_a_limit(void **state)
{
    (void)state;
    bool ended;
    struct fake f = fake_of(1000, 1, 10, &ended);
    int64_t begin = clock_mono_ns();
    assert_int_equal(op_wait(&f.op, 100, NULL), 0);
    assert_in_range((clock_mono_ns() - begin) / NS_PER_MS, 100, 5000);
    assert_in_range(f.stepped, 2, 12);
    /* One that never wants to be asked again is not waited for beyond it, either; when the time is
     * over it is asked for the last time. */
    f = fake_of(3, 1, -1, &ended);
    assert_int_equal(op_wait(&f.op, 50, NULL), 0);
    assert_int_equal(f.op.wake_ns, INT64_MAX);
    assert_int_equal(f.stepped, 2);
    /* And what is only looked at is looked at. */
    f = fake_of(1, 1, -1, &ended);
    assert_int_equal(op_wait(&f.op, 0, NULL), 1);
    f = fake_of(2, 1, -1, &ended);
    assert_int_equal(op_wait(&f.op, 0, NULL), 0);
    assert_int_equal(f.stepped, 1);
}

/* What it polls wakes it, and with no events only the other end's end does. */
static void test_wait_polls(void **state)
{
    (void)state;
    bool ended;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    struct fake f = fake_of(2, 1, -1, &ended);
    f.op.fd = ends[0];
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(op_wait(&f.op, -1, NULL), 1);
    f = fake_of(2, 1, 100, &ended);
    f.op.fd = ends[0];
    f.op.events = 0;
    assert_int_equal(op_wait(&f.op, -1, NULL), 1);
    assert_true(spent_ms(&f) >= 100);
    f = fake_of(2, 1, -1, &ended);
    f.op.fd = ends[0];
    f.op.events = 0;
    close(ends[1]);
    assert_int_equal(op_wait(&f.op, -1, NULL), 1);
    close(ends[0]);
}

/* -- Finishing and ending --------------------------------------------------------------------- */

static void test_finish(void **state)
{
    (void)state;
    bool ended;
    int value = 0;
    nacre_error err = NACRE_ERROR_INIT;
    struct fake f = fake_of(3, 1, 1, &ended);
    f.op.result = &f.value;
    assert_int_equal(op_finish(&f.op, &value, sizeof value, &err), 0);
    assert_int_equal(value, 7);
    assert_true(ended);
    /* Nobody has to want to know. */
    f = fake_of(1, 1, 1, &ended);
    assert_int_equal(op_finish(&f.op, NULL, 0, &err), 0);
    assert_true(ended);
    /* A failure leaves what it would have come to alone. */
    f = fake_of(2, NACRE_ECLOSED, 1, &ended);
    f.op.result = &f.value;
    value = 3;
    assert_int_equal(op_finish(&f.op, &value, sizeof value, &err), NACRE_ECLOSED);
    assert_int_equal(err.code, NACRE_ECLOSED);
    assert_int_equal(value, 3);
    assert_true(ended);
}

static void test_end(void **state)
{
    (void)state;
    bool ended;
    struct fake f = fake_of(1, 1, 1, &ended);
    nacre_op *op = &f.op;
    op_end(&op);
    assert_null(op);
    assert_true(ended);
    assert_int_equal(f.stepped, 0);
    op_end(&op);
    ended = false;
    {
        cleanup_op nacre_op *scoped = &f.op;
        assert_non_null(scoped);
    }
    assert_true(ended);
}

/* -- Others inside ---------------------------------------------------------------------------- */

/* Whoever waits for the outer one waits for what the inner one does. */
static void test_inner(void **state)
{
    (void)state;
    bool ended;
    nacre_error err = NACRE_ERROR_INIT;
    nacre_op outer = OP_INIT(step_fake, NULL);
    struct fake f = fake_of(2, 1, 1000, &ended);
    f.op.fd = 42;
    f.op.events = 0;
    assert_int_equal(op_step_inner(&outer, &f.op, &err), 0);
    assert_int_equal(outer.fd, 42);
    assert_int_equal(outer.events, 0);
    assert_int_equal(outer.wake_ns, f.op.wake_ns);
    assert_true(outer.wake_ns != INT64_MAX);
    assert_int_equal(op_step_inner(&outer, &f.op, &err), 1);
    assert_false(ended);
    f = fake_of(1, NACRE_EIO, 1, &ended);
    assert_int_equal(op_step_inner(&outer, &f.op, &err), NACRE_EIO);
    assert_int_equal(err.code, NACRE_EIO);
}

static void test_done(void **state)
{
    (void)state;
    nacre_op *op = op_done();
    assert_non_null(op);
    assert_int_equal(op->size, sizeof *op);
    assert_true(op->fd < 0);
    assert_null(op->result);
    assert_int_equal(op_wait(op, 0, NULL), 1);
    assert_int_equal(op_finish(op, NULL, 0, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wait),   cmocka_unit_test(test_wait_has_a_limit),
        cmocka_unit_test(test_finish), cmocka_unit_test(test_wait_polls),
        cmocka_unit_test(test_end),    cmocka_unit_test(test_inner),
        cmocka_unit_test(test_done),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
