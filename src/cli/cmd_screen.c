/* nacre screen: what is on the screen of a shell's terminal. */
#include <string.h>

#include <nacre/nacre.h>

#include "base/defs.h"
#include "cli/verbs.h"
#include "console/out.h"
#include "console/print_json.h"
#include "console/shells.h"

struct screen_options {
    bool json;
};

static int print_screen_json(const nacre_screen *screen)
{
    json_t *marked = json_array();
    for (int i = 0; i < NACRE_SCREEN_MARKED && screen->marked[i]; i++)
        json_array_append_new(marked, json_integer(screen->marked[i]));
    return print_json(json_pack("{s:o s:i s:i s:b s:{s:i s:i s:b} s:b s:o s:b}", "text",
                                json_text(screen->text, strlen(screen->text)), "columns",
                                screen->columns, "rows", screen->rows, "terminal", screen->terminal,
                                "cursor", "row", screen->row, "column", screen->column, "shown",
                                screen->shown, "alternate", screen->alternate, "highlighted",
                                marked, "partial", screen->partial));
}

static int show_screen(const void *options, char **words, UNUSED size_t count)
{
    const struct screen_options *o = options;
    nacre_error error = NACRE_ERROR_INIT;
    nacre_session *session cleanup_session = NULL;
    nacre_screen screen = NACRE_SCREEN_INIT;
    nacre_id id;
    int status = open_shells(words, 1, &session, &id);
    if (status != STATUS_OK)
        return status;
    if (nacre_get_screen(session, &id, &screen, &error) < 0)
        return library_failure(&error);
    if (o->json)
        status = print_screen_json(&screen);
    else
        fputs(screen.text, stdout);
    if (!o->json && screen.partial)
        say("output before this was dropped; rows not drawn since then may be missing");
    nacre_screen_done(&screen);
    return status;
}

const struct verb verb_screen = {
    .name = "screen",
    .words = "ID",
    .summary = "print what is on the screen of a shell's terminal",
    .details = "The rows as text, without what scrolled off: that is in \"nacre output\". Of a "
               "shell that\n"
               "has pipes it is what a terminal of 120x40 would show.\n"
               "\n"
               "examples:\n"
               "  nacre screen 1a2b3c4d\n"
               "  watch -n 1 nacre screen 1a2b3c4d\n",
    .options = {{"json", NULL, "with size, cursor and highlighted rows, as JSON", OPTION_FLAG,
                 false, offsetof(struct screen_options, json)}},
    .options_size = sizeof(struct screen_options),
    .min_words = 1,
    .max_words = 1,
    .offered = OFFERED_SHELLS,
    .run = show_screen,
};
