#include "cli/help.h"

#include <string.h>

#include "base/defs.h"
#include "cli/verbs.h"

#define HELP_COLUMNS 79
#define LEFT_MAX     22 /* columns of an option; the help of a longer one begins on the next line */

static const char intro[] =
    "nacre runs commands, contains everything they start, and keeps every byte they\n"
    "print.\n"
    "\n"
    "usage: nacre VERB [OPTION]... [ARGUMENT]...\n"
    "\n"
    "verbs:\n";

static const char outro[] =
    "\n"
    "An ID is the 32 digits that start printed, or any unique beginning of four or\n"
    "more. A time is in seconds, or has a unit: 500ms, 90s, 2m, 1h. Shells live in\n"
    "$NACRE_HOME, else $XDG_STATE_HOME/nacre, else ~/.local/state/nacre.\n"
    "\n"
    "exit status: 0, 1 if nacre could not do it, 2 if the arguments make no sense;\n"
    "wait and run have more, see \"nacre help VERB\".\n";

void help_all(FILE *file)
{
    fputs(intro, file);
    for (const struct verb *const *v = verb_table; *v; v++)
        fprintf(file, "  %-13s %s\n", (*v)->name, (*v)->summary);
    fprintf(file, "  %-13s %s\n", "help", "explain a verb: nacre help VERB");
    fputs(outro, file);
}

/* Prints a part of the usage, on the next line if this one is full. */
static void print_usage_part(const char *part, size_t *column, size_t indent)
{
    if (*column + 1 + strlen(part) > HELP_COLUMNS) {
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

/* Prints the words up to end from a column on, on as many lines as they need. */
static void print_wrapped(const char *text, const char *end, size_t from)
{
    size_t column = from;
    for (text += strspn(text, " \n"); text < end; text += strspn(text, " \n")) {
        size_t length = strcspn(text, " \n");
        if (column > from && column + 1 + length > HELP_COLUMNS) {
            printf("\n%*s", (int)from, "");
            column = from;
        } else if (column > from) {
            column += (size_t)printf(" ");
        }
        column += (size_t)printf("%.*s", (int)length, text);
        text += length;
    }
    putchar('\n');
}

static const char *line_after(const char *text)
{
    text += strcspn(text, "\n");
    return text + (*text == '\n');
}

/* Lines that follow one another are a paragraph; those that begin with a blank stay as they are. */
static void print_details(const char *text)
{
    while (*text) {
        const char *end = line_after(text);
        bool flows = *text != ' ' && *text != '\n';
        while (flows && *end && *end != ' ' && *end != '\n')
            end = line_after(end);
        if (flows)
            print_wrapped(text, end, 0);
        else
            printf("%.*s", (int)(end - text), text);
        text = end;
    }
}

/* "-n, --tail N" */
static int left_of(const struct option *o, char *ret_text, size_t size)
{
    char letter[8] = "";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    return snprintf(ret_text, size, "%s--%s%s%s", letter, o->name, o->value ? " " : "",
                    o->value ? o->value : "");
}

static void print_options(const struct verb *verb)
{
    char left[64];
    int width = 0;
    for (const struct option *o = verb->options; o->name; o++) {
        int length = left_of(o, left, sizeof left);
        width = length <= LEFT_MAX ? MAX(width, length) : width;
    }
    for (const struct option *o = verb->options; o->name; o++) {
        bool fits = left_of(o, left, sizeof left) <= width;
        if (fits)
            printf("  %-*s  ", width, left);
        else
            printf("  %s\n%*s", left, width + 4, "");
        print_wrapped(o->help, o->help + strlen(o->help), (size_t)width + 4);
    }
}

void help_verb(const struct verb *verb)
{
    printf("nacre %s: %s\n\n", verb->name, verb->summary);
    print_usage(verb);
    if (verb->aliases)
        printf("other words for it: %s\n", verb->aliases);
    if (verb->options[0].name) {
        puts("\noptions:");
        print_options(verb);
    }
    putchar('\n');
    print_details(verb->details);
}
