/* nacre show: the summary of any run, again. */
#include <string.h>

#include <nacre/nacre.h>

#include "base/defs.h"
#include "cli/cast.h"
#include "cli/verbs.h"
#include "console/out.h"
#include "console/print_json.h"
#include "console/shells.h"

struct show_options {
    bool json;
    uint64_t tokens; /* 0 = the usual budget */
    bool compact;
    bool cast;
};

static json_t *json_terminal(const nacre_record *record)
{
    return record->columns > 0
               ? json_pack("{s:i, s:i}", "columns", record->columns, "rows", record->rows)
               : json_null();
}

static int print_both(const nacre_record *record, const char *text)
{
    json_t *value = json_record(record);
    json_object_set_new(value, "terminal", json_terminal(record));
    json_object_set_new(
        value, "attached",
        json_pack("{s:i, s:i}", "people", record->viewers, "typing", record->typists));
    json_object_set_new(value, "summary", json_text(text, strlen(text)));
    json_object_set_new(value, "summary_tokens",
                        json_integer((json_int_t)nacre_tokens(strlen(text))));
    return print_json(value);
}

static int show_summary(const void *options, char **words, UNUSED size_t count)
{
    const struct show_options *o = options;
    nacre_view_options view = NACRE_VIEW_OPTIONS_INIT;
    nacre_error error = NACRE_ERROR_INIT;
    nacre_session *session cleanup_session = NULL;
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    cleanup_free char *text = NULL;
    nacre_id id;

    view.tokens = o->tokens;
    view.compact = o->compact ? 1 : -1;
    view.audience = NACRE_FOR_PEOPLE;
    if (o->tokens > 0 && o->tokens < NACRE_VIEW_BUDGET_MIN / NACRE_TOKEN_BYTES)
        return usage_error("show: --tokens takes %d or more",
                           NACRE_VIEW_BUDGET_MIN / NACRE_TOKEN_BYTES);
    if (o->cast && (o->json || o->compact || o->tokens > 0))
        return usage_error("show: --cast is a form of its own, without --json, --tokens and "
                           "--compact");
    int status = open_shells(words, 1, &session, &id);
    if (status != STATUS_OK)
        return status;
    if (o->cast)
        return cast_print(session, &id);
    if (nacre_summary(session, &id, &view, &text, &record, &error) < 0)
        return library_failure(&error);
    if (o->json)
        return print_both(&record, text);
    fputs(text, stdout);
    return STATUS_OK;
}

const struct verb verb_show = {
    .name = "show",
    .aliases = "inspect",
    .words = "ID",
    .summary = "print the summary of a shell, as a model would see it",
    .details =
        "How it ended, what it left running, and its output: all of it if it fits, else its last\n"
        "lines, lines that look like the cause of a failure with their numbers, and its first\n"
        "lines. Colours are gone, progress bars show their last state, equal lines are folded. A\n"
        "line of output that begins like one of nacre's own has a backslash in front.\n"
        "\n"
        "examples:\n"
        "  nacre show 1a2b3c4d\n"
        "  nacre show 1a2b3c4d --tokens 500\n"
        "  nacre show 1a2b3c4d --cast >session.cast\n",
    .options = {{"json", NULL, "its record as JSON, with the summary in it", OPTION_FLAG, false,
                 offsetof(struct show_options, json)},
                {"tokens", "N", "at most N tokens, estimated as 4 bytes each (2560)", OPTION_COUNT,
                 true, offsetof(struct show_options, tokens)},
                {"compact", NULL, "only the last 50 lines of stderr and 20 of stdout", OPTION_FLAG,
                 false, offsetof(struct show_options, compact)},
                {"cast", NULL, "all of its output with its times, as asciicast v3 for players",
                 OPTION_FLAG, false, offsetof(struct show_options, cast)}},
    .options_size = sizeof(struct show_options),
    .min_words = 1,
    .max_words = 1,
    .offered = OFFERED_SHELLS,
    .run = show_summary,
};
