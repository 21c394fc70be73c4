#include "cli/out.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/number.h"
#include "cli/cli.h"

static void vsay(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

static void vsay(const char *fmt, va_list ap)
{
    fflush(stdout);
    flockfile(stderr);
    fputs("nacre: ", stderr);
    vfprintf(stderr, fmt, ap);
    putc('\n', stderr);
    funlockfile(stderr);
}

void say(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsay(fmt, ap);
    va_end(ap);
}

int usage_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsay(fmt, ap);
    va_end(ap);
    return STATUS_USAGE;
}

int failure(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsay(fmt, ap);
    va_end(ap);
    return STATUS_FAILED;
}

int library_failure(const nacre_error *error)
{
    const char *text = error->msg[0] ? error->msg : nacre_code_name(error->code);
    return failure("%s", text);
}

int finish_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return STATUS_OK;
    return failure("cannot write to stdout: %s", err_text(errno));
}

struct paint paint_for(FILE *file)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    bool wanted =
        isatty(fileno(file)) && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
    if (!wanted)
        return (struct paint){"", "", "", "", ""};
    return (struct paint){"\x1b[32m", "\x1b[31m", "\x1b[2m", "\x1b[1m", "\x1b[0m"};
}

size_t output_columns(void)
{
    struct winsize size;
    if (!isatty(STDOUT_FILENO))
        return COLUMNS_UNLIMITED;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    uint64_t columns;
    const char *text = getenv("COLUMNS");
    return text && number_parse(text, &columns) && columns > 0 ? columns : 80;
}

size_t output_rows(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}
