/* The shells of a session in memory: places, lives, cursors, and what leaves the list. */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "session/registry.h"

#define PLACES  8
#define THREADS 64

static nacre_id id_of(uint32_t number)
{
    nacre_id id = {0};
    memcpy(&id, &number, sizeof number);
    return id;
}

static struct shell shell_of(uint32_t number, enum shell_life life, bool background)
{
    return (struct shell){.id = id_of(number), .life = life, .background = background};
}

static void add(struct registry *r, uint32_t number, enum shell_life life, bool background)
{
    struct shell shell = shell_of(number, life, background);
    assert_int_equal(registry_add(r, &shell, false), 0);
}

static bool all(const struct shell *shell, const void *argument)
{
    (void)shell;
    (void)argument;
    return true;
}

static size_t count(struct registry *r)
{
    return registry_select(r, all, NULL, NULL, 0);
}

static struct shell get(struct registry *r, uint32_t number)
{
    struct shell shell = {0};
    nacre_id id = id_of(number);
    assert_true(registry_get(r, &id, &shell));
    return shell;
}

static bool has(struct registry *r, uint32_t number)
{
    struct shell shell;
    nacre_id id = id_of(number);
    return registry_get(r, &id, &shell);
}

static bool note(struct registry *r, uint32_t number, enum shell_life life, uint64_t end)
{
    nacre_id id = id_of(number);
    return registry_note(r, &id, life, end, 1);
}

static bool mark(struct registry *r, uint32_t number, uint64_t offset, bool saw_end)
{
    nacre_id id = id_of(number);
    return registry_mark_read(r, &id, offset, saw_end);
}

/* -- Places ------------------------------------------------------------------------------------ */

static void only_what_runs_in_the_background_has_a_place(void **state)
{
    struct registry *r = registry_new();
    (void)state;
    add(r, 1, SHELL_RUNNING, true);
    add(r, 2, SHELL_LINGERING, true);
    add(r, 3, SHELL_OVER, true);
    add(r, 4, SHELL_RUNNING, false);
    assert_int_equal(registry_reserve(r, 1), -EAGAIN);
    assert_int_equal(registry_reserve(r, 2), 0);
    assert_int_equal(registry_reserve(r, 2), -EAGAIN);
    registry_unreserve(r);
    assert_int_equal(registry_reserve(r, 2), 0);
    registry_free(r);
}

static void a_reservation_becomes_the_place_of_its_shell(void **state)
{
    struct registry *r = registry_new();
    struct shell shell = shell_of(1, SHELL_RUNNING, true);
    (void)state;
    assert_int_equal(registry_reserve(r, 1), 0);
    assert_int_equal(registry_add(r, &shell, true), 0);
    assert_int_equal(registry_reserve(r, 1), -EAGAIN);
    assert_true(note(r, 1, SHELL_LINGERING, 0));
    assert_int_equal(registry_reserve(r, 1), 0);
    registry_free(r);
}

/* Never refused, also where all places are taken; and counted from then on. */
static void what_goes_to_the_background_takes_a_place(void **state)
{
    struct registry *r = registry_new();
    nacre_id one = id_of(1), two = id_of(2), three = id_of(3);
    (void)state;
    add(r, 1, SHELL_RUNNING, true);
    add(r, 2, SHELL_RUNNING, false);
    assert_int_equal(registry_reserve(r, 2), 0);
    registry_unreserve(r);
    assert_true(registry_set_background(r, &two));
    assert_false(registry_set_background(r, &two));
    assert_false(registry_set_background(r, &one));
    assert_false(registry_set_background(r, &three));
    assert_int_equal(registry_reserve(r, 2), -EAGAIN);
    assert_int_equal(registry_reserve(r, 1), -EAGAIN);
    registry_free(r);
}

struct race {
    struct registry *registry;
    pthread_barrier_t barrier;
    atomic_uint next;
    atomic_int got;
};

static void *take_a_place(void *arg)
{
    struct race *race = arg;
    pthread_barrier_wait(&race->barrier);
    if (registry_reserve(race->registry, PLACES) < 0)
        return NULL;
    struct shell shell = shell_of(atomic_fetch_add(&race->next, 1), SHELL_RUNNING, true);
    registry_add(race->registry, &shell, true);
    atomic_fetch_add(&race->got, 1);
    return NULL;
}

static void of_many_threads_as_many_get_a_place_as_there_are(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct race race = {.registry = registry_new()};
        pthread_t threads[THREADS];
        pthread_barrier_init(&race.barrier, NULL, THREADS);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, take_a_place, &race), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&race.barrier);
        assert_int_equal(race.got, PLACES);
        assert_int_equal(count(race.registry), PLACES);
        assert_int_equal(registry_reserve(race.registry, PLACES), -EAGAIN);
        assert_int_equal(registry_reserve(race.registry, PLACES + 1), 0);
        registry_free(race.registry);
    }
}

/* -- Lives ------------------------------------------------------------------------------------- */

static void a_life_only_gets_less(void **state)
{
    struct registry *r = registry_new();
    (void)state;
    add(r, 1, SHELL_RUNNING, true);
    assert_false(note(r, 1, SHELL_RUNNING, 10));
    assert_true(note(r, 1, SHELL_LINGERING, 20));
    assert_false(note(r, 1, SHELL_RUNNING, 15));
    assert_int_equal(get(r, 1).life, SHELL_LINGERING);
    assert_int_equal(get(r, 1).end, 20);
    assert_false(note(r, 1, SHELL_OVER, 30));
    assert_false(note(r, 1, SHELL_LINGERING, 30));
    assert_false(note(r, 1, SHELL_RUNNING, 0));
    assert_int_equal(get(r, 1).life, SHELL_OVER);
    assert_int_equal(get(r, 1).end, 30);
    registry_free(r);
}

static void an_end_is_noted_once(void **state)
{
    struct registry *r = registry_new();
    (void)state;
    add(r, 1, SHELL_RUNNING, true);
    assert_true(note(r, 1, SHELL_OVER, 0));
    assert_false(note(r, 1, SHELL_OVER, 0));
    assert_false(note(r, 2, SHELL_OVER, 0));
    registry_free(r);
}

static void a_foreground_shell_that_is_over_leaves(void **state)
{
    struct registry *r = registry_new();
    (void)state;
    add(r, 1, SHELL_RUNNING, false);
    add(r, 2, SHELL_RUNNING, true);
    assert_true(note(r, 1, SHELL_LINGERING, 0));
    assert_true(has(r, 1));
    assert_false(note(r, 1, SHELL_OVER, 0));
    assert_false(has(r, 1));
    assert_true(note(r, 2, SHELL_OVER, 0));
    assert_true(has(r, 2));
    registry_free(r);
}

static void it_says_when_it_was_looked_at(void **state)
{
    struct registry *r = registry_new();
    nacre_id id = id_of(1);
    (void)state;
    add(r, 1, SHELL_RUNNING, true);
    registry_note(r, &id, SHELL_RUNNING, 0, 4711);
    assert_int_equal(get(r, 1).looked_ms, 4711);
    registry_free(r);
}

/* What is awaited is in the background, or was inherited; it is settled once. */
static void an_outcome_is_settled_once(void **state)
{
    struct registry *r = registry_new();
    nacre_id own = id_of(1), inherited = id_of(2), unknown = id_of(3);
    struct shell shell = {.id = inherited, .foreign = true, .awaited = true};
    (void)state;
    add(r, 1, SHELL_RUNNING, false);
    assert_false(registry_stop_awaiting(r, &own));
    assert_true(registry_set_background(r, &own));
    assert_int_equal(registry_add(r, &shell, false), 0);
    assert_true(note(r, 2, SHELL_OVER, 0));
    assert_true(get(r, 1).awaited && get(r, 2).awaited);
    assert_true(registry_stop_awaiting(r, &own));
    assert_false(registry_stop_awaiting(r, &own));
    assert_true(registry_stop_awaiting(r, &inherited));
    assert_false(registry_stop_awaiting(r, &inherited));
    assert_false(registry_stop_awaiting(r, &unknown));
    registry_free(r);
}

/* -- Cursors ----------------------------------------------------------------------------------- */

static void a_cursor_only_moves_on(void **state)
{
    struct registry *r = registry_new();
    (void)state;
    add(r, 1, SHELL_RUNNING, true);
    assert_true(mark(r, 1, 100, false));
    assert_true(mark(r, 1, 50, false));
    assert_int_equal(get(r, 1).read_to, 100);
    assert_false(get(r, 1).end_seen);
    assert_true(mark(r, 1, 0, true));
    assert_true(mark(r, 1, 0, false));
    assert_true(get(r, 1).end_seen);
    assert_int_equal(get(r, 1).read_to, 100);
    assert_false(mark(r, 2, 1, true));
    registry_free(r);
}

static void cursors_of_others_are_bounded(void **state)
{
    struct registry *r = registry_new();
    (void)state;
    struct shell awaited = {.id = id_of(2), .foreign = true, .awaited = true};
    add(r, 1, SHELL_RUNNING, true);
    assert_int_equal(registry_add(r, &awaited, false), 0);
    for (uint32_t i = 0; i < 5000; i++) {
        struct shell foreign = {.id = id_of(100 + i), .foreign = true, .life = SHELL_OVER};
        assert_int_equal(registry_add(r, &foreign, false), 0);
        mark(r, 100 + i, i, false);
    }
    assert_in_range(count(r), 100, 1100);
    assert_true(has(r, 1) && has(r, 2));
    assert_false(has(r, 100));
    assert_int_equal(get(r, 5099).read_to, 4999);
    registry_free(r);
}

/* A session that reads others' shells has its own list none the less. */
static void others_take_no_place_and_are_not_evicted(void **state)
{
    struct registry *r = registry_new();
    struct shell foreign = {.id = id_of(1), .foreign = true, .life = SHELL_OVER};
    nacre_id id = foreign.id;
    (void)state;
    registry_add(r, &foreign, false);
    assert_false(registry_set_background(r, &id));
    assert_int_equal(registry_reserve(r, 1), 0);
    assert_int_equal(registry_evict(r, 0, NULL, 0), 0);
    assert_true(has(r, 1));
    registry_free(r);
}

/* -- Order and eviction ------------------------------------------------------------------------ */

static void they_stand_in_the_order_of_their_starts(void **state)
{
    struct registry *r = registry_new();
    struct shell found[4];
    nacre_id id = id_of(8);
    (void)state;
    for (uint32_t i = 9; i > 4; i--)
        add(r, i, SHELL_RUNNING, true);
    registry_remove(r, &id);
    registry_remove(r, &id);
    assert_int_equal(registry_select(r, all, NULL, found, 4), 4);
    for (uint32_t i = 0; i < 4; i++) {
        id = id_of((uint32_t[]){9, 7, 6, 5}[i]);
        assert_true(nacre_id_equal(&found[i].id, &id));
    }
    assert_int_equal(registry_select(r, all, NULL, found, 1), 4);
    registry_free(r);
}

static void to_add_it_again_changes_it(void **state)
{
    struct registry *r = registry_new();
    (void)state;
    add(r, 1, SHELL_RUNNING, false);
    add(r, 1, SHELL_RUNNING, true);
    assert_int_equal(count(r), 1);
    assert_true(get(r, 1).background);
    registry_free(r);
}

static void check_dropped(const struct shell *dropped, size_t got, const uint32_t *want, size_t n)
{
    assert_int_equal(got, n);
    for (size_t i = 0; i < n; i++) {
        nacre_id id = id_of(want[i]);
        assert_true(nacre_id_equal(&dropped[i].id, &id));
    }
}

/* 1 runs, 2 lingers; 3 to 6 are over, and of these 4 and 6 were read. */
static struct registry *mixed(void)
{
    struct registry *r = registry_new();
    add(r, 1, SHELL_RUNNING, true);
    add(r, 2, SHELL_LINGERING, true);
    for (uint32_t i = 3; i <= 6; i++) {
        add(r, i, SHELL_RUNNING, true);
        note(r, i, SHELL_OVER, 10);
    }
    mark(r, 4, 10, true);
    mark(r, 6, 10, true);
    return r;
}

static void read_ones_leave_first_and_the_oldest_of_them(void **state)
{
    struct registry *r = mixed();
    struct shell dropped[8];
    (void)state;
    assert_int_equal(registry_evict(r, 6, dropped, 8), 0);
    check_dropped(dropped, registry_evict(r, 5, dropped, 8), (uint32_t[]){4}, 1);
    assert_int_equal(dropped[0].read_to, 10);
    check_dropped(dropped, registry_evict(r, 3, dropped, 8), (uint32_t[]){6, 3}, 2);
    check_dropped(dropped, registry_evict(r, 1, dropped, 8), (uint32_t[]){5}, 1);
    assert_true(has(r, 1) && has(r, 2));
    registry_free(r);
}

static void what_is_alive_never_leaves(void **state)
{
    struct registry *r = registry_new();
    (void)state;
    for (uint32_t i = 0; i < 40; i++)
        add(r, i, i % 2 ? SHELL_RUNNING : SHELL_LINGERING, true);
    assert_int_equal(registry_evict(r, 1, NULL, 0), 0);
    assert_int_equal(count(r), 40);
    registry_free(r);
}

/* Its outcome is not in the catalog yet, and who brings it there comes back to it. */
static void what_is_awaited_never_leaves(void **state)
{
    struct registry *r = mixed();
    struct shell awaited = {.id = id_of(7), .life = SHELL_OVER, .background = true};
    struct shell dropped[8];
    (void)state;
    awaited.awaited = true;
    assert_int_equal(registry_add(r, &awaited, false), 0);
    check_dropped(dropped, registry_evict(r, 0, dropped, 8), (uint32_t[]){4, 6, 3, 5}, 4);
    assert_true(has(r, 7));
    assert_true(registry_stop_awaiting(r, &awaited.id));
    check_dropped(dropped, registry_evict(r, 0, dropped, 8), (uint32_t[]){7}, 1);
    registry_free(r);
}

/* Half read is not read, and so is an end that nobody saw. */
static void half_read_counts_as_unread(void **state)
{
    struct registry *r = mixed();
    struct shell dropped[8];
    (void)state;
    mark(r, 3, 9, true);
    mark(r, 5, 10, false);
    check_dropped(dropped, registry_evict(r, 2, dropped, 8), (uint32_t[]){4, 6, 3, 5}, 4);
    registry_free(r);
}

static void more_are_dropped_than_can_be_told(void **state)
{
    struct registry *r = mixed();
    struct shell dropped[1];
    (void)state;
    assert_int_equal(registry_evict(r, 2, dropped, 1), 4);
    assert_int_equal(count(r), 2);
    registry_free(r);
}

static void foreground_shells_are_not_counted(void **state)
{
    struct registry *r = registry_new();
    (void)state;
    add(r, 1, SHELL_RUNNING, true);
    note(r, 1, SHELL_OVER, 0);
    for (uint32_t i = 2; i < 10; i++)
        add(r, i, SHELL_RUNNING, false);
    assert_int_equal(registry_evict(r, 1, NULL, 0), 0);
    assert_true(has(r, 1));
    registry_free(r);
}

static void nothing_is_freed_twice(void **state)
{
    struct registry *r = registry_new();
    (void)state;
    registry_free(NULL);
    registry_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_runs_in_the_background_has_a_place),
        cmocka_unit_test(a_reservation_becomes_the_place_of_its_shell),
        cmocka_unit_test(what_goes_to_the_background_takes_a_place),
        cmocka_unit_test(of_many_threads_as_many_get_a_place_as_there_are),
        cmocka_unit_test(a_life_only_gets_less),
        cmocka_unit_test(an_end_is_noted_once),
        cmocka_unit_test(a_foreground_shell_that_is_over_leaves),
        cmocka_unit_test(it_says_when_it_was_looked_at),
        cmocka_unit_test(an_outcome_is_settled_once),
        cmocka_unit_test(a_cursor_only_moves_on),
        cmocka_unit_test(cursors_of_others_are_bounded),
        cmocka_unit_test(others_take_no_place_and_are_not_evicted),
        cmocka_unit_test(they_stand_in_the_order_of_their_starts),
        cmocka_unit_test(to_add_it_again_changes_it),
        cmocka_unit_test(read_ones_leave_first_and_the_oldest_of_them),
        cmocka_unit_test(what_is_alive_never_leaves),
        cmocka_unit_test(what_is_awaited_never_leaves),
        cmocka_unit_test(half_read_counts_as_unread),
        cmocka_unit_test(more_are_dropped_than_can_be_told),
        cmocka_unit_test(foreground_shells_are_not_counted),
        cmocka_unit_test(nothing_is_freed_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
