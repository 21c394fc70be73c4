/* What a fence is made of: the record is believed only if all of it holds, and a repository only if
 * it points back. */
#include "unit.h"

#include "base/defs.h"
#include "fence/git.h"
#include "fence/layout.h"
#include "run/fence.h"

/* -- The record ------------------------------------------------------------------------------- */

static struct buf make_record(void)
{
    struct fence_layout l = {0};
    struct buf record;
    assert_int_equal(layout_add(&l, FENCE_WRITE, "/home/ada/app", NULL), 0);
    assert_int_equal(layout_add(&l, FENCE_HIDE, "/home/ada/.ssh", NULL), 0);
    assert_int_equal(layout_add(&l, FENCE_PRIVATE, "/tmp", "/home/ada/.nacre/fence/x/tmp"), 0);
    assert_int_equal(layout_add(&l, FENCE_PIN, "/home/ada/app/.git", NULL), 0);
    layout_sort(&l);
    assert_int_equal(layout_write(&l, FENCE_NETWORK_OFF, "/home/ada", "read-only", &record), 0);
    layout_done(&l);
    return record;
}

static int check_exactly(const char *data, size_t size)
{
    struct fence fence;
    char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    int r = fence_check(copy, size, &fence);
    free(copy);
    return r;
}

static void a_good_record(void **state)
{
    (void)state;
    struct buf record = make_record();
    struct fence fence;
    assert_int_equal(fence_check(record.data, record.len, &fence), 0);
    assert_int_equal(fence.head->count, 4);
    assert_int_equal(fence_places(&fence)[0].kind, FENCE_PIN);
    assert_string_equal(fence_string(&fence, fence.head->words), "read-only");
    buf_done(&record);
}

static void a_changed_record(void **state)
{
    (void)state;
    struct buf record = make_record();
    for (size_t bit = 0; bit < record.len * 8; bit++) {
        record.data[bit / 8] = (char)(record.data[bit / 8] ^ 1 << bit % 8);
        if (check_exactly(record.data, record.len) != -EBADMSG)
            fail_msg("bit %zu may be changed", bit);
        record.data[bit / 8] = (char)(record.data[bit / 8] ^ 1 << bit % 8);
    }
    for (size_t size = 0; size < record.len; size++)
        assert_int_equal(check_exactly(record.data, size), -EBADMSG);
    buf_done(&record);
}

/* With a sum that is right: whatever its fields say, nothing outside is read. */
static void a_forged_record(void **state)
{
    (void)state;
    struct buf record = make_record();
    uint32_t words[] = {0,
                        1,
                        39,
                        40,
                        103,
                        104,
                        (uint32_t)record.len - 1,
                        (uint32_t)record.len,
                        (uint32_t)record.len + 1,
                        0x7fffffff,
                        0xffffffff};
    for (size_t at = 12; at + 4 <= sizeof(struct fence_head) + 4 * sizeof(struct fence_place);
         at += 4)
        for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
            struct fence fence;
            char *copy = malloc(record.len);
            memcpy(copy, record.data, record.len);
            memcpy(copy + at, &words[i], 4);
            struct fence_head *head = (void *)copy;
            head->sum = fence_sum(copy, record.len);
            if (fence_check(copy, record.len, &fence) == 0)
                for (uint32_t p = 0; p < fence.head->count; p++)
                    assert_int_equal(fence_string(&fence, fence_places(&fence)[p].path)[0], '/');
            free(copy);
        }
    buf_done(&record);
}

/* -- Layout ----------------------------------------------------------------------------------- */

static void below(void **state)
{
    (void)state;
    assert_true(path_is_below("/a/b", "/a"));
    assert_true(path_is_below("/a", "/a"));
    assert_true(path_is_below("/a", "/"));
    assert_false(path_is_below("/ab", "/a"));
    assert_false(path_is_below("/a", "/a/b"));
}

static void nested_places(void **state)
{
    (void)state;
    struct fence_layout l = {0};
    assert_int_equal(layout_add(&l, FENCE_WRITE, "/a/b", NULL), 0);
    assert_int_equal(layout_add(&l, FENCE_WRITE, "/a", NULL), 0);
    assert_int_equal(layout_add(&l, FENCE_WRITE, "/a", NULL), 0);
    assert_int_equal(layout_add(&l, FENCE_WRITE, "/ab", NULL), 0);
    assert_int_equal(layout_add(&l, FENCE_HIDE, "/a/b", NULL), 0);
    layout_drop_nested(&l, FENCE_WRITE);
    assert_int_equal(l.count, 3);
    assert_true(layout_covers(&l, FENCE_HIDE, "/a/b/c"));
    assert_false(layout_covers(&l, FENCE_HIDE, "/a"));
    layout_done(&l);
}

/* -- Repositories ------------------------------------------------------------------------------ */

static const char *at(const char *name)
{
    static char path[4][PATH_MAX + 64];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", unit_place, name);
    return path[next];
}

static void make_directory(const char *name)
{
    char command[PATH_MAX + 128];
    snprintf(command, sizeof command, "mkdir -p '%s'", at(name));
    assert_int_equal(system(command), 0);
}

/* Each %s is the place of the test. */
static void write_text(const char *name, const char *text)
{
    FILE *f = fopen(at(name), "we");
    assert_non_null(f);
    fprintf(f, strstr(text, "%s") ? "%.*s%s%s" : "%.*s", (int)strcspn(text, "%"), text, unit_place,
            strstr(text, "%s") ? strstr(text, "%s") + 2 : "");
    fclose(f);
}

static bool finds(const char *directory, const char *common)
{
    char own[4096], found[4096];
    bool r = git_find(at(directory), own, found);
    if (r && common)
        assert_string_equal(found, at(common));
    return r;
}

static void repositories(void **state)
{
    (void)state;
    make_directory("app/.git/worktrees/tree");
    make_directory("app/deep/er");
    make_directory("tree");
    assert_true(finds("app/deep/er", "app/.git"));
    write_text("tree/.git", "gitdir: %s/app/.git/worktrees/tree\n");
    assert_false(finds("tree", NULL)); /* it does not point back */
    write_text("app/.git/worktrees/tree/gitdir", "%s/tree/.git\n");
    write_text("app/.git/worktrees/tree/commondir", "../..\n");
    assert_true(finds("tree", "app/.git"));
    make_directory("app/.git/modules/sub");
    make_directory("app/sub");
    write_text("app/sub/.git", "gitdir: ../.git/modules/sub\n");
    assert_false(finds("app/sub", NULL));
    write_text("app/.git/modules/sub/config", "[core]\n\tworktree = ../../../sub\n");
    assert_true(finds("app/sub", "app/.git/modules/sub"));
}

/* All of it can be written by a command that may write to the workspace only. */
static void evil_repositories(void **state)
{
    (void)state;
    make_directory("precious/.git");
    make_directory("ws/evil");
    make_directory("ws/worktrees/evil");
    write_text("ws/.git", "gitdir: %s/precious/.git\n");
    assert_false(finds("ws", NULL));
    write_text("ws/.git", "gitdir: %s/ws/evil\n");
    write_text("ws/evil/gitdir", "%s/ws/.git\n");
    write_text("ws/evil/commondir", "../../precious\n");
    assert_false(finds("ws", NULL));
    write_text("ws/evil/commondir", "%s/precious/.git\n");
    assert_false(finds("ws", NULL));
    write_text("ws/.git", "gitdir: %s/ws/worktrees/evil\n");
    write_text("ws/worktrees/evil/gitdir", "%s/ws/.git\n");
    write_text("ws/worktrees/evil/commondir", "../../../precious\n");
    assert_false(finds("ws", NULL));
    write_text("ws/.git", "gitdir: \n");
    assert_false(finds("ws", NULL));
    unlink(at("ws/.git"));
    assert_int_equal(symlink(at("precious/.git"), at("ws/.git")), 0);
    assert_false(finds("ws", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_record),     cmocka_unit_test(a_changed_record),
        cmocka_unit_test(a_forged_record),   cmocka_unit_test(below),
        cmocka_unit_test(nested_places),     cmocka_unit_test(repositories),
        cmocka_unit_test(evil_repositories),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
