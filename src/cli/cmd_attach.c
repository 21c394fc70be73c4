/* nacre attach: a person sits down beside a shell. */
#include <stddef.h>
#include <string.h>

#include <nacre/nacre.h>

#include "base/defs.h"
#include "cli/verbs.h"
#include "console/out.h"
#include "console/raw_terminal.h"
#include "console/shells.h"
#include "console/signals.h"
#include "console/viewer.h"

struct attach_options {
    bool input;
    bool resize;
    const char *detach_key;
};

/* What somebody who only saw the screen would not know. */
static int say_how_it_ended(nacre_session *session, const nacre_id *id,
                            const struct viewer_end *end)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    char status[64];
    if (nacre_get(session, id, &record, &error) < 0)
        return library_failure(&error);
    say("%s shell %s: %s", end->detached || end->signal ? "left" : "the end of",
        nacre_id_short(id).s, nacre_status(&record, status, sizeof status));
    return end->detached || end->signal ? STATUS_OK : record_status(&record);
}

static int attach(const void *options, char **words, UNUSED size_t count)
{
    const struct attach_options *o = options;
    struct viewer_options viewer = {.input = o->input, .resize = o->resize};
    struct viewer_end end = {0};
    nacre_session *session cleanup_session = NULL;
    nacre_id id;
    if (!detach_key_parse(&viewer.leave, o->detach_key ? o->detach_key : DETACH_KEY))
        return usage_error("attach: --detach-key takes keys such as \"C-] d\", or \"none\"; got "
                           "\"%s\"",
                           o->detach_key);
    if (!raw_terminal_is_possible())
        return failure("attach: it needs a terminal that can move its cursor; "
                       "\"nacre output --follow\" and \"nacre input\" do not");
    int status = open_shells(words, 1, &session, &id);
    if (status == STATUS_OK)
        status = viewer_run(session, &id, &viewer, &end);
    if (status == STATUS_OK)
        status = say_how_it_ended(session, &id, &end);
    if (end.signal)
        signals_die_by(end.signal);
    return status;
}

const struct verb verb_attach = {
    .name = "attach",
    .words = "ID",
    .summary = "see a shell as it goes on, and type to it",
    .details =
        "Its screen is drawn as it is now, and as it changes. Without --input it is only looked\n"
        "at: nothing that is typed reaches it, and Ctrl-C leaves. With --input every key goes to\n"
        "its program, and nowhere else: not into a log, and not to a model. Ctrl-] d leaves, and\n"
        "the shell goes on; Ctrl-] twice sends one. Of a screen that is larger than this one the\n"
        "part with the cursor is shown. Any number of people may be attached at once.\n"
        "\n"
        "Of a shell with pipes the output is shown, and with --input lines are typed: Ctrl-D ends\n"
        "its input, Ctrl-C sends SIGINT.\n"
        "\n"
        "The exit status is 0 for who leaves, and else that of the shell, as of \"nacre run\".\n"
        "\n"
        "examples:\n"
        "  nacre attach 1a2b3c4d\n"
        "  nacre attach --input --resize 1a2b3c4d\n",
    .options = {{"input", NULL, "what is typed goes to its command", OPTION_FLAG, false,
                 offsetof(struct attach_options, input), 'i'},
                {"resize", NULL, "its terminal takes the size of this one, until you leave",
                 OPTION_FLAG, false, offsetof(struct attach_options, resize)},
                {"detach-key", "KEYS", "what leaves: \"C-] d\" unless said otherwise; \"none\"",
                 OPTION_TEXT, false, offsetof(struct attach_options, detach_key)}},
    .options_size = sizeof(struct attach_options),
    .min_words = 1,
    .max_words = 1,
    .offered = OFFERED_ALIVE,
    .run = attach,
};
