/*
 * Real logs of real tools, each with the line that a person would look for: it must be in the
 * summary, within the default budget. Prints what each case saves.
 *
 * A case is a directory of tests/corpus: `command` is what was run, `out` and `err` are what it
 * printed (one of them may be missing), `cause` is a part of the line to be found.
 */
#include <dirent.h>

#include "fake_log.h"

#include "view/summary.h"

struct corpus_file {
    char *data;
    size_t size;
};

static struct corpus_file load(const char *name, const char *file)
{
    char path[PATH_MAX];
    struct corpus_file f = {NULL, 0};
    snprintf(path, sizeof path, "%s/%s/%s", CORPUS_DIR, name, file);
    FILE *stream = fopen(path, "re");
    if (!stream)
        return f;
    size_t room = 0;
    ssize_t n = getdelim(&f.data, &room, EOF, stream);
    f.size = n > 0 ? (size_t)n : 0;
    fclose(stream);
    return f;
}

static char *summary_of(struct fake_log *log)
{
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    struct buf text cleanup_buf;
    buf_init(&text, NACRE_VIEW_BUDGET);
    assert_int_equal(summary_write(&text, &log->record, &options, log_read, log), 0);
    return buf_take(&text);
}

/* The worst case for a summary: all of one stream, then all of the other. */
static bool check_case(const char *name)
{
    struct corpus_file out = load(name, "out"), err = load(name, "err"),
                       cause = load(name, "cause");
    assert_true(cause.size > 1);
    assert_true(out.size + err.size > 0);
    cause.data[strcspn(cause.data, "\n")] = '\0';

    struct fake_log log;
    log_init(&log);
    if (out.size > 0)
        log_add(&log, NACRE_STDOUT, out.data, out.size);
    if (err.size > 0)
        log_add(&log, NACRE_STDERR, err.data, err.size);
    char *text = summary_of(&log);
    size_t in = out.size + err.size, shown = strlen(text);
    const char *found = strstr(text, cause.data), *line = found;
    while (line && line > text && line[-1] != '\n')
        line--;
    bool lifted = found && line[strspn(line, "0123456789")] == ':' && *line != ':';
    printf("%-20s %8zu bytes in, %6zu shown, %5.1f%% saved, cause %s%s\n", name, in, shown,
           100.0 - 100.0 * (double)shown / (double)in,
           lifted  ? "lifted out"
           : found ? "among the first or last lines"
                   : "MISSING: ",
           found ? "" : cause.data);
    assert_true(shown <= NACRE_VIEW_BUDGET);
    assert_true(is_utf8(text));
    bool is_there = found != NULL;
    free(text);
    free(out.data);
    free(err.data);
    free(cause.data);
    return is_there;
}

static int is_case(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void the_cause_is_shown(void **state)
{
    (void)state;
    struct dirent **entries;
    int count = scandir(CORPUS_DIR, &entries, is_case, alphasort), missing = 0;
    assert_true(count >= 20);
    for (int i = 0; i < count; i++) {
        missing += !check_case(entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    assert_int_equal(missing, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cause_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
