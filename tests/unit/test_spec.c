/* A spec is believed only if everything in it holds, whatever happened to its bytes. */
#include "runs.h"

#include <sys/mman.h>

#include "base/defs.h"

/* The same bytes where nothing readable follows them: the sanitizer sees every step too far. */
static int check_exactly(const char *data, size_t size)
{
    char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    int r = spec_check(copy, size);
    free(copy);
    return r;
}

static size_t end_of_strings(const char *data, uint32_t offset, uint32_t count)
{
    const char *p = data + offset;
    for (uint32_t i = 0; i < count; i++)
        p += strlen(p) + 1;
    return (size_t)(p - data);
}

/* What spec_check() promises to whoever reads on. */
static void assert_inside(const char *data, size_t size)
{
    const struct spec_head *head = (const void *)data;
    const uint32_t strings[] = {head->program,      head->text,       head->cwd,
                                head->run_path,     head->name,       head->description,
                                head->session_name, head->session_cwd};
    for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
        assert_true(end_of_strings(data, strings[i], 1) <= size);
    assert_true(end_of_strings(data, head->argv, head->argc) <= size);
    assert_true(end_of_strings(data, head->env, head->envc) <= size);
    assert_int_equal(strlen(data + head->text), head->text_size);
}

static int file_with(const char *data, size_t size)
{
    int fd = memfd_create("spec", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, data, size), 0);
    return fd;
}

static void a_good_one(void **state)
{
    (void)state;
    size_t size;
    cleanup_free char *data = runs_spec(&size);
    assert_int_equal(check_exactly(data, size), 0);
    assert_inside(data, size);
    cleanup_close int fd = file_with(data, size);
    struct spec spec;
    assert_int_equal(spec_map(fd, &spec), 0);
    assert_int_equal(spec.size, size);
    assert_memory_equal(spec.head, data, size);
    assert_string_equal(spec_string(&spec, spec.head->text), "echo hello | cat");
    assert_string_equal(spec_string(&spec, spec.head->name), "a name");
    spec_unmap(&spec);
    assert_null(spec.head);
    spec_unmap(&spec);
}

static void every_truncation(void **state)
{
    (void)state;
    size_t size;
    cleanup_free char *data = runs_spec(&size);
    for (size_t length = 0; length < size; length++) {
        assert_int_equal(check_exactly(data, length), -EBADMSG);
        cleanup_close int fd = file_with(data, length);
        struct spec spec;
        assert_int_equal(spec_map(fd, &spec), -EBADMSG);
    }
    /* One byte too many is no better. */
    cleanup_free char *longer = calloc(1, size + 1);
    memcpy(longer, data, size);
    assert_int_equal(check_exactly(longer, size + 1), -EBADMSG);
}

static void every_flipped_byte(void **state)
{
    (void)state;
    static const unsigned char flips[] = {0x01, 0x20, 0x80, 0xff};
    size_t size;
    cleanup_free char *data = runs_spec(&size);
    for (size_t at = 0; at < size; at++) {
        for (size_t i = 0; i < ARRAY_SIZE(flips); i++) {
            data[at] = (char)(data[at] ^ flips[i]);
            int r = check_exactly(data, size);
            if (at < sizeof(struct spec_head))
                assert_int_not_equal(r, 0);
            else if (r == 0)
                assert_inside(data, size);
            data[at] = (char)(data[at] ^ flips[i]);
        }
    }
    assert_int_equal(check_exactly(data, size), 0);
}

/* A NUL where there was none moves every string behind it. */
static void every_string_cut_short(void **state)
{
    (void)state;
    size_t size;
    cleanup_free char *data = runs_spec(&size);
    for (size_t at = sizeof(struct spec_head); at < size; at++) {
        char before = data[at];
        data[at] = '\0';
        if (check_exactly(data, size) == 0)
            assert_inside(data, size);
        data[at] = 'x';
        if (check_exactly(data, size) == 0)
            assert_inside(data, size);
        data[at] = before;
    }
}

struct field {
    const char *name;
    size_t offset;
};

#define FIELD(name)                             \
    {                                           \
#name, offsetof(struct spec_head, name) \
    }

/* A checksum that fits proves nothing: somebody may have computed it. */
static void offsets_outside(void **state)
{
    (void)state;
    static const struct field fields[] = {
        FIELD(program),     FIELD(text),         FIELD(cwd),         FIELD(run_path), FIELD(name),
        FIELD(description), FIELD(session_name), FIELD(session_cwd), FIELD(argv),     FIELD(env)};
    size_t size;
    cleanup_free char *data = runs_spec(&size);
    const uint32_t wrong[] = {(uint32_t)size, (uint32_t)size + 1, UINT32_MAX, UINT32_MAX - 7,
                              0x80000000u};
    struct spec_head *head = (void *)data;
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        struct spec_head before = *head;
        for (size_t j = 0; j < ARRAY_SIZE(wrong); j++) {
            memcpy(data + fields[i].offset, &wrong[j], sizeof wrong[j]);
            spec_head_seal(head);
            if (check_exactly(data, size) != -EBADMSG)
                fail_msg("%s = %u is accepted", fields[i].name, wrong[j]);
        }
        *head = before;
    }
}

static void counts_beyond(void **state)
{
    (void)state;
    size_t size;
    cleanup_free char *data = runs_spec(&size);
    struct spec_head *head = (void *)data;
    struct spec_head before = *head;
    static const uint32_t counts[] = {100, 100000, UINT32_MAX};
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        head->argc = counts[i];
        spec_head_seal(head);
        assert_int_equal(check_exactly(data, size), -EBADMSG);
        *head = before;
        head->envc = counts[i];
        spec_head_seal(head);
        assert_int_equal(check_exactly(data, size), -EBADMSG);
        *head = before;
    }
    head->text_size++;
    spec_head_seal(head);
    assert_int_equal(check_exactly(data, size), -EBADMSG);
    *head = before;
    /* The text must stand behind its variable's name. */
    head->text = head->cwd;
    head->text_size = 4;
    spec_head_seal(head);
    assert_int_equal(check_exactly(data, size), -EBADMSG);
}

/* A shell is called by the first of its arguments: there has to be one. */
static void no_arguments_at_all(void **state)
{
    (void)state;
    size_t size;
    cleanup_free char *data = runs_spec(&size);
    struct spec_head *head = (void *)data;
    head->argc = 0;
    head->argv = UINT32_MAX;
    spec_head_seal(head);
    assert_int_equal(check_exactly(data, size), -EBADMSG);
}

static void formats(void **state)
{
    (void)state;
    size_t size;
    cleanup_free char *data = runs_spec(&size);
    struct spec_head *head = (void *)data;
    head->format = RUN_FORMAT + 1;
    spec_head_seal(head);
    assert_int_equal(check_exactly(data, size), -EPROTO);
    cleanup_close int fd = file_with(data, size);
    struct spec spec;
    assert_int_equal(spec_map(fd, &spec), -EPROTO);
    head->format = RUN_FORMAT - 1;
    spec_head_seal(head);
    assert_int_equal(check_exactly(data, size), 0);
    head->magic[0] = 'x';
    spec_head_seal(head);
    assert_int_equal(check_exactly(data, size), -EBADMSG);
}

/* Any head with a right checksum, over bytes of any kind. */
static void random_heads(void **state)
{
    (void)state;
    struct unit_random random = {42};
    size_t size;
    cleanup_free char *good = runs_spec(&size);
    cleanup_free char *data = malloc(size);
    int accepted = 0;
    for (int round = 0; round < 20000; round++) {
        struct spec_head *head = (void *)data;
        memcpy(data, good, size);
        uint32_t *words[] = {&head->program,  &head->text,        &head->text_size, &head->cwd,
                             &head->run_path, &head->name,        &head->argv,      &head->argc,
                             &head->env,      &head->description, &head->envc};
        for (int i = 0; i < 1 + round % 3; i++)
            *words[unit_below(&random, ARRAY_SIZE(words))] =
                (uint32_t)unit_below(&random, size + 8);
        data[sizeof *head + unit_below(&random, size - sizeof *head)] = (char)unit_next(&random);
        spec_head_seal(head);
        if (check_exactly(data, size) == 0) {
            assert_inside(data, size);
            accepted++;
        }
    }
    assert_true(accepted > 0);
}

static void odd_files(void **state)
{
    (void)state;
    struct spec spec;
    assert_int_equal(spec_map(-EBADF, &spec), -EBADF);
    cleanup_close int empty = memfd_create("empty", MFD_CLOEXEC);
    assert_int_equal(spec_map(empty, &spec), -EBADMSG);
    assert_int_equal(ftruncate(empty, (off_t)UINT32_MAX + 1), 0);
    assert_int_equal(spec_map(empty, &spec), -EBADMSG);
}

/* What shows in place of a text is known again, also where it was cut; what others write is not. */
static void stand_ins_are_known(void **state)
{
    (void)state;
    for (uint32_t kind = SPEC_BASH; kind <= SPEC_SH; kind++)
        for (int is_long = 0; is_long <= 1; is_long++) {
            char text[256];
            snprintf(text, sizeof text, "%s", spec_stand_in(kind, is_long));
            assert_true(spec_is_stand_in(text));
            text[20] = '\0';
            assert_true(spec_is_stand_in(text));
            text[19] = '#';
            assert_false(spec_is_stand_in(text));
        }
    assert_false(spec_is_stand_in(""));
    assert_false(spec_is_stand_in("eval"));
    assert_false(spec_is_stand_in("OPTERR=$NACRE_COMMAND; echo mine"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_one),          cmocka_unit_test(every_truncation),
        cmocka_unit_test(every_flipped_byte),  cmocka_unit_test(every_string_cut_short),
        cmocka_unit_test(offsets_outside),     cmocka_unit_test(counts_beyond),
        cmocka_unit_test(no_arguments_at_all), cmocka_unit_test(formats),
        cmocka_unit_test(random_heads),        cmocka_unit_test(odd_files),
        cmocka_unit_test(stand_ins_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
