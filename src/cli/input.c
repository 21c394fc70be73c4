/* nacre input: writes to a shell that was started with its input kept open. */
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <nacre/nacre.h>

#include "base/err.h"
#include "cli/cli.h"
#include "cli/out.h"
#include "cli/shells.h"

struct input_options {
    bool eof;
};

static int send_bytes(nacre_session *session, const nacre_id *id, const char *data, size_t size,
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
        int status = send_bytes(session, id, data, (size_t)n, false);
        if (status != STATUS_OK)
            return status;
    }
    if (n < 0)
        return failure("input: cannot read stdin: %s", err_text(errno));
    return eof ? send_bytes(session, id, "", 0, true) : STATUS_OK;
}

static int input(const void *options, char **words, size_t count)
{
    const struct input_options *o = options;
    if (count == 1 && !o->eof)
        return usage_error("input: give a TEXT, - for stdin, or --eof");
    int status = check_ids(words, 1);
    if (status != STATUS_OK)
        return status;
    nacre_session *session cleanup_session = NULL;
    if ((status = open_session(&session)) != STATUS_OK)
        return status;
    nacre_id id;
    if ((status = find_shell(session, words[0], &id)) != STATUS_OK)
        return status;
    const char *text = count > 1 ? words[1] : "";
    if (strcmp(text, "-") == 0)
        return send_stdin(session, &id, o->eof);
    return send_bytes(session, &id, text, strlen(text), o->eof);
}

static const struct option options[] = {
    {"eof", NULL, "close its input afterwards", OPTION_FLAG, false,
     offsetof(struct input_options, eof)},
    {0},
};

const struct verb verb_input = {
    .name = "input",
    .words = "ID TEXT|-",
    .summary = "write to a shell that was started with --keep-stdin",
    .details =
        "TEXT goes to the command's stdin as it is; no newline is added. - passes our stdin on.\n"
        "TEXT may be left out with --eof, and needs -- before it if it begins with a dash.\n"
        "\n"
        "examples:\n"
        "  nacre input 1a2b3c4d $'yes\\n'\n"
        "  nacre input 1a2b3c4d - --eof <answers.txt\n",
    .options = options,
    .options_size = sizeof(struct input_options),
    .min_words = 1,
    .max_words = 2,
    .run = input,
};
