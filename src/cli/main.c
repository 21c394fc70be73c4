/* nacre: finds the verb and hands it its arguments; everything it says about itself is here. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <nacre/nacre.h>

#include "base/defs.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/out.h"

#define USAGE_COLUMNS 96

static const struct verb *const verbs[] = {
    &verb_run,           &verb_start,     &verb_list,   &verb_output,
    &verb_show,          &verb_wait,      &verb_input,  &verb_kill,
    &verb_adopt,         &verb_recall,    &verb_rm,     &verb_gc,
    &verb_sessions,      &verb_config,    &verb_doctor, &verb_mcp,
    &verb_acp_terminals, &verb_acp_proxy,
};

static const char intro[] =
    "nacre runs commands, contains everything they start, and keeps every byte they print.\n"
    "\n"
    "usage: nacre VERB [OPTION]... [ARGUMENT]...\n"
    "\n"
    "verbs:\n";

static const char outro[] =
    "\n"
    "An ID is the 32 digits that start printed, or any unique beginning of four or more.\n"
    "Shells live in $NACRE_HOME, else $XDG_STATE_HOME/nacre, else ~/.local/state/nacre.\n"
    "\n"
    "exit status: 0, 1 if nacre could not do it, 2 if the arguments make no sense; wait and run\n"
    "have more, see \"nacre help VERB\".\n";

static int print_help(void)
{
    fputs(intro, stdout);
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
        printf("  %-13s %s\n", verbs[i]->name, verbs[i]->summary);
    printf("  %-13s %s\n", "help", "explain a verb: nacre help VERB");
    fputs(outro, stdout);
    return STATUS_OK;
}

/* Prints a part of the usage, on the next line if this one is full. */
static void print_usage_part(const char *part, size_t *column, size_t indent)
{
    if (*column + 1 + strlen(part) > USAGE_COLUMNS) {
        printf("\n%*s", (int)indent, "");
        *column = indent;
    }
    *column += (size_t)printf(" %s", part);
}

static void print_usage(const struct verb *verb)
{
    size_t indent = (size_t)printf("usage: nacre %s", verb->name), column = indent;
    if (!verb->is_command && *verb->words)
        print_usage_part(verb->words, &column, indent);
    for (const struct option *o = verb->options; o->name; o++) {
        char part[48];
        snprintf(part, sizeof part, "[--%s%s%s]%s", o->name, o->value ? " " : "",
                 o->value ? o->value : "", o->kind == OPTION_LIST ? "..." : "");
        print_usage_part(part, &column, indent);
    }
    if (verb->is_command) {
        print_usage_part("--", &column, indent);
        print_usage_part(verb->words, &column, indent);
    }
    putchar('\n');
}

static int print_verb_help(const struct verb *verb)
{
    printf("nacre %s: %s\n\n", verb->name, verb->summary);
    print_usage(verb);
    if (verb->options->name)
        puts("\noptions:");
    for (const struct option *o = verb->options; o->name; o++) {
        char left[48], letter[8] = "";
        if (o->letter)
            snprintf(letter, sizeof letter, "-%c, ", o->letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        printf("  %-17s %s\n", left, o->help);
    }
    printf("\n%s", verb->details);
    return STATUS_OK;
}

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    return NULL;
}

static int unknown_verb(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
        if (text_is_near(name, verbs[i]->name))
            return usage_error("unknown verb \"%s\"; did you mean \"%s\"?", name, verbs[i]->name);
    return usage_error("unknown verb \"%s\"; see \"nacre --help\"", name);
}

static int help(int argc, char **argv)
{
    if (argc == 0)
        return print_help();
    const struct verb *verb = find_verb(argv[0]);
    return verb ? print_verb_help(verb) : unknown_verb(argv[0]);
}

static int run_verb(const struct verb *verb, int argc, char **argv)
{
    struct args args;
    int status = cli_args_parse(verb, argc, argv, &args);
    if (status == STATUS_OK)
        status =
            args.help ? print_verb_help(verb) : verb->run(args.options, args.words, args.count);
    cli_args_done(verb, &args);
    return status;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2)
        return usage_error("what shall it do? See \"nacre --help\"");
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
        return help(argc - 2, argv + 2);
    if (strcmp(word, "--version") == 0) {
        printf("nacre %s\n", nacre_version());
        return STATUS_OK;
    }
    if (word[0] == '-')
        return usage_error("unknown option \"%s\"; see \"nacre --help\"", word);
    const struct verb *verb = find_verb(word);
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

int main(int argc, char **argv)
{
    if (reserve_standard_fds() < 0)
        return STATUS_FAILED;
    setlocale(LC_CTYPE, "C.UTF-8"); /* for the width of characters */
    int status = dispatch(argc, argv);
    return status == STATUS_OK ? finish_output() : status;
}
