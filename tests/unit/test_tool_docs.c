/* docs/tools.md says what the table says: every tool, every argument, and every other name. */
#include "unit.h"

#include "config/settings.h"
#include "tool/tool.h"

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

static size_t count(const char *text, const char *end, const char *word)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, word)) && at < end; at++)
        n++;
    return n;
}

static void must_have(const char *text, const char *end, const char *row)
{
    const char *at = strstr(text, row);
    if (!at || at >= end)
        fail_msg("docs/tools.md lacks: %s", row);
}

/* The part about one tool has a row for each of its arguments, as the schema has it, and no more.
 */
static void check_tool(const struct tool *tool, const nacre_settings *settings)
{
    char heading[64], row[1024];
    size_t rows = 0;
    snprintf(heading, sizeof heading, "\n### `%s`\n", tool->name);
    const char *begin = strstr(docs, heading);
    if (!begin)
        fail_msg("docs/tools.md lacks: %s", tool->name);
    const char *end = strstr(begin + 1, "\n##");
    assert_non_null(end);
    for (const struct arg *arg = tool->args; arg->name; arg++, rows++) {
        struct buf help cleanup_buf = BUF_UP_TO(1000);
        assert_int_equal(args_fill(&help, arg->help, settings), 0);
        snprintf(row, sizeof row, "\n| `%s` | %s%s | %s |\n", arg->name, args_type_name(arg->type),
                 arg->required ? ", required" : "", help.data);
        must_have(begin, end, row);
    }
    assert_int_equal(count(begin, end, "\n| `"), rows);
}

static void tools_and_arguments(void **state)
{
    (void)state;
    nacre_settings *settings = settings_new();
    size_t i = 0;
    for (; tool_at(i); i++)
        check_tool(tool_at(i), settings);
    assert_int_equal(count(docs, docs + strlen(docs), "\n### `"), i);
    nacre_settings_free(settings);
}

static void other_names(void **state)
{
    (void)state;
    for (size_t i = 0; tool_at(i); i++)
        for (const struct arg *arg = tool_at(i)->args; arg->name; arg++) {
            char words[128], quoted[64], *rest = NULL;
            snprintf(words, sizeof words, "%s", arg->aliases ? arg->aliases : "");
            for (char *word = strtok_r(words, " ", &rest); word;
                 word = strtok_r(NULL, " ", &rest)) {
                snprintf(quoted, sizeof quoted, "`%s`", word);
                must_have(docs, docs + strlen(docs), quoted);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tools_and_arguments),
        cmocka_unit_test(other_names),
    };
    return cmocka_run_group_tests(tests, read_docs, free_docs);
}
