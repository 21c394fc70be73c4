/* nacre: has the table of verbs, finds the one that is meant, and hands it its arguments. */
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <nacre/nacre.h>

#include "base/defs.h"
#include "base/text.h"
#include "cli/complete.h"
#include "cli/help.h"
#include "cli/verbs.h"
#include "console/out.h"

const struct verb *const verb_table[] = {
    &verb_run,    &verb_start,    &verb_list,          &verb_top,       &verb_output,
    &verb_show,   &verb_screen,   &verb_attach,        &verb_wait,      &verb_input,
    &verb_kill,   &verb_adopt,    &verb_recall,        &verb_log,       &verb_rm,
    &verb_gc,     &verb_sessions, &verb_config,        &verb_doctor,    &verb_sandbox,
    &verb_policy, &verb_pending,  &verb_allow,         &verb_deny,      &verb_mcp,
    &verb_serve,  &verb_open,     &verb_acp_terminals, &verb_acp_proxy, &verb_completion,
    NULL,
};

/* Whether a list with blanks between its words has this one. */
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    while (list && *list) {
        size_t n = strcspn(list, " ");
        if (n == length && memcmp(list, word, n) == 0)
            return true;
        list += n + strspn(list + n, " ");
    }
    return false;
}

const struct verb *verb_find(const char *name)
{
    for (const struct verb *const *v = verb_table; *v; v++)
        if (strcmp((*v)->name, name) == 0 || has_word((*v)->aliases, name))
            return *v;
    return NULL;
}

static int unknown_verb(const char *name)
{
    for (const struct verb *const *v = verb_table; *v; v++)
        if (text_is_near(name, (*v)->name))
            return usage_error("unknown verb \"%s\"; did you mean \"%s\"?", name, (*v)->name);
    return usage_error("unknown verb \"%s\"; see \"nacre --help\"", name);
}

static int help(int argc, char **argv)
{
    if (argc == 0) {
        help_all(stdout);
        return STATUS_OK;
    }
    const struct verb *verb = verb_find(argv[0]);
    if (!verb)
        return unknown_verb(argv[0]);
    help_verb(verb);
    return STATUS_OK;
}

static int run_verb(const struct verb *verb, int argc, char **argv)
{
    struct verb_args args;
    int status = verb_args_parse(verb, argc, argv, &args);
    if (status == STATUS_OK && args.help)
        help_verb(verb);
    else if (status == STATUS_OK)
        status = verb->run(args.options, args.words, args.count);
    verb_args_done(verb, &args);
    return status;
}

static int run_command_line(int argc, char **argv)
{
    if (argc < 2) {
        help_all(stderr);
        return STATUS_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
        return help(argc - 2, argv + 2);
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("nacre %s\n", nacre_version());
        return STATUS_OK;
    }
    if (strcmp(word, COMPLETE_WORD) == 0)
        return complete(argv + 2, (size_t)argc - 2);
    if (word[0] == '-')
        return usage_error("unknown option \"%s\"; see \"nacre --help\"", word);
    const struct verb *verb = verb_find(word);
    return verb ? run_verb(verb, argc - 2, argv + 2) : unknown_verb(word);
}

/* No file of ours may become descriptor 0, 1 or 2. What was closed stays unusable: it is opened
 * for the wrong direction, so that reading or writing it fails. */
static int reserve_standard_fds(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            return -1;
    return 0;
}

/* A file that may not grow is an error as a full disk is, and no reason to die. Keepers give their
 * commands the default again. */
static void ignore_file_size_signal(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGXFSZ, &ignore, NULL);
}

int main(int argc, char **argv)
{
    if (reserve_standard_fds() < 0)
        return STATUS_FAILED;
    ignore_file_size_signal();
    setlocale(LC_CTYPE, "C.UTF-8"); /* for the width of characters */
    int status = run_command_line(argc, argv);
    return status == STATUS_OK ? finish_output() : status;
}
