/* nacre pending, allow and deny: what sessions of this home ask their user, and the answer from
 * another terminal than theirs. */
#include <jansson.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <nacre/nacre.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/verbs.h"
#include "console/out.h"
#include "console/print_json.h"
#include "console/question_words.h"
#include "console/shells.h"
#include "text/brief.h"

struct pending_options {
    bool json;
};

struct allow_options {
    bool session;
    bool always;
};

struct pending_show {
    json_t *list; /* NULL = for people */
    size_t count;
};

static json_t *pending_json(const nacre_question *q)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:b}", "id", q->id,
                     "session", q->session, "asker", q->asker, "command", q->command, "commands",
                     q->commands, "cwd", q->cwd, "reason", q->reason, "description", q->description,
                     "wants", q->wants, "always", q->always, "asked_ms", (json_int_t)q->asked_ms,
                     "within", q->within);
}

static int show_pending(const nacre_question *q, void *userdata)
{
    struct pending_show *show = userdata;
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    char age[AGE_TEXT];
    if (show->list)
        return json_array_append_new(show->list, pending_json(q));
    brief_duration(clock_real_ns() / NS_PER_MS - q->asked_ms, age);
    if (question_write(&text, q) < 0)
        return failure("out of memory");
    printf("%s%.8s  %s%s%s ago%s\n%s", show->count++ > 0 ? "\n" : "", q->id, q->asker,
           *q->asker ? ", " : "", age,
           q->within ? ", asked by a command that nacre runs itself" : "", text.data);
    return 0;
}

static int print_pending(const void *options, UNUSED char **words, UNUSED size_t count)
{
    const struct pending_options *o = options;
    nacre_error error = NACRE_ERROR_INIT;
    nacre_session *session cleanup_session = NULL;
    int silent = 0, status = open_session(&session);
    struct pending_show show = {.list = status == STATUS_OK && o->json ? json_array() : NULL};
    if (status != STATUS_OK)
        return status;
    int r = nacre_pending(session, show_pending, &show, &silent, &error);
    if (r == 0 && silent > 0)
        say("%d session%s did not say what %s: stopped, or busy", silent, silent == 1 ? "" : "s",
            silent == 1 ? "it asks" : "they ask");
    if (r == 0 && show.list)
        return print_json(show.list);
    json_decref(show.list);
    if (r == 0 && show.count > 0)
        printf("\nnacre allow ID, or nacre deny ID\n");
    return r < 0 ? library_failure(&error) : r;
}

static int tell_answered(const nacre_question *q, void *userdata)
{
    const char *verb = userdata;
    struct buf line cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    if (brief_line(&line, q->command, output_columns() > 24 ? output_columns() - 12 : 24) < 0)
        return failure("out of memory");
    printf("%s: %s\n", verb, line.data ? line.data : "");
    return 0;
}

static int answer_question(const char *id, nacre_answer_kind kind, const char *told)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_session *session cleanup_session = NULL;
    int status = open_session(&session);
    if (status != STATUS_OK)
        return status;
    int r = nacre_answer_pending(session, id, kind, tell_answered, (void *)told, &error);
    return r < 0 ? library_failure(&error) : r;
}

static int allow(const void *options, char **words, UNUSED size_t count)
{
    const struct allow_options *o = options;
    if (o->session && o->always)
        return usage_error("allow: --session and --always exclude each other");
    if (o->always)
        return answer_question(words[0], NACRE_ANSWER_ALWAYS, "always allowed");
    if (o->session)
        return answer_question(words[0], NACRE_ANSWER_SESSION, "allowed for the session");
    return answer_question(words[0], NACRE_ANSWER_ONCE, "allowed");
}

static int deny(UNUSED const void *options, char **words, UNUSED size_t count)
{
    return answer_question(words[0], NACRE_ANSWER_NO, "denied");
}

const struct verb verb_pending = {
    .name = "pending",
    .words = "",
    .summary = "print what sessions ask their user",
    .details =
        "What the rules leave open, and what a command wants beyond its sandbox, waits here for\n"
        "an answer, whichever agent or program asks. Each has an id for \"nacre allow\" and\n"
        "\"nacre deny\". The first answer counts, by whichever way it comes.\n"
        "\n"
        "example:\n"
        "  nacre pending --json | jq -r '.[].command'\n",
    .options = {{"json", NULL, "a list of objects", OPTION_FLAG, false,
                 offsetof(struct pending_options, json)}},
    .options_size = sizeof(struct pending_options),
    .run = print_pending,
};

const struct verb verb_allow = {
    .name = "allow",
    .words = "ID",
    .summary = "say yes to a question of \"nacre pending\"",
    .details =
        "Once, unless an option says otherwise. If nobody waits for the answer any more, the\n"
        "next start of the very same command goes by it. A command that nacre runs cannot\n"
        "answer: that is for a terminal of yours that none of them has opened.\n"
        "\n"
        "examples:\n"
        "  nacre allow 1f3a\n"
        "  nacre allow 1f3a --session\n",
    .options = {{"session", NULL, "the same again needs no answer while its session is open",
                 OPTION_FLAG, false, offsetof(struct allow_options, session), 's'},
                {"always", NULL, "write what the question shows into the configuration",
                 OPTION_FLAG, false, offsetof(struct allow_options, always), 'a'}},
    .options_size = sizeof(struct allow_options),
    .min_words = 1,
    .max_words = 1,
    .run = allow,
};

const struct verb verb_deny = {
    .name = "deny",
    .words = "ID",
    .summary = "say no to a question of \"nacre pending\"",
    .details = "Nothing is started. See \"nacre help allow\".\n",
    .min_words = 1,
    .max_words = 1,
    .run = deny,
};
