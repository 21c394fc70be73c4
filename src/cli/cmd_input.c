/* nacre input: writes to a shell that was started with its input kept open. */
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <nacre/nacre.h>

#include "base/err.h"
#include "cli/verbs.h"
#include "console/out.h"
#include "console/shells.h"
#include "console/size_args.h"

struct input_options {
    bool eof;
    const char *resize;
};

static int send_input(nacre_session *session, const nacre_id *id, const char *data, size_t size,
                      bool eof)
{
    nacre_error error = NACRE_ERROR_INIT;
    int64_t n = nacre_input(session, id, data, size, eof, -1, &error);
    if (n < 0)
        return library_failure(&error);
    if ((uint64_t)n < size)
        return failure("input: the command took %lld of %zu bytes and then no more", (long long)n,
                       size);
    return STATUS_OK;
}

static int send_stdin(nacre_session *session, const nacre_id *id, bool eof)
{
    char data[65536];
    ssize_t n;
    while ((n = RETRY(read(STDIN_FILENO, data, sizeof data))) > 0) {
        int status = send_input(session, id, data, (size_t)n, false);
        if (status != STATUS_OK)
            return status;
    }
    if (n < 0)
        return failure("input: cannot read stdin: %s", err_text(errno));
    return eof ? send_input(session, id, "", 0, true) : STATUS_OK;
}

static int input(const void *options, char **words, size_t count)
{
    const struct input_options *o = options;
    int columns, rows;
    if (count == 1 && !o->eof && !o->resize)
        return usage_error("input: give a TEXT, - for stdin, --eof, or --resize");
    int status = parse_size("input", o->resize, &columns, &rows);
    if (status != STATUS_OK)
        return status;
    nacre_session *session cleanup_session = NULL;
    nacre_id id;
    status = open_shells(words, 1, &session, &id);
    if (status != STATUS_OK)
        return status;
    nacre_error error = NACRE_ERROR_INIT;
    if (o->resize && nacre_resize(session, &id, columns, rows, &error) < 0)
        return library_failure(&error);
    if (count == 1 && !o->eof)
        return STATUS_OK;
    const char *text = count > 1 ? words[1] : "";
    if (strcmp(text, "-") == 0)
        return send_stdin(session, &id, o->eof);
    return send_input(session, &id, text, strlen(text), o->eof);
}

const struct verb verb_input = {
    .name = "input",
    .words = "ID TEXT|-",
    .summary = "write to a shell that was started with --keep-stdin or --tty",
    .details =
        "TEXT goes to the command's stdin as it is; no newline is added. - passes our stdin on.\n"
        "TEXT may be left out with --eof, and needs -- before it if it begins with a dash.\n"
        "\n"
        "examples:\n"
        "  nacre input 1a2b3c4d $'yes\\n'\n"
        "  nacre input 1a2b3c4d - --eof <answers.txt\n",
    .options = {{"eof", NULL, "close its input afterwards", OPTION_FLAG, false,
                 offsetof(struct input_options, eof)},
                {"resize", "CxR", "first give its terminal another size", OPTION_TEXT, false,
                 offsetof(struct input_options, resize)}},
    .options_size = sizeof(struct input_options),
    .min_words = 1,
    .max_words = 2,
    .offered = OFFERED_ALIVE,
    .run = input,
};
