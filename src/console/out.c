#include "console/out.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/number.h"
#include "text/legible.h"

void say(const char *fmt, ...)
{
    cleanup_free char *text = NULL;
    struct buf line cleanup_buf = BUF_UP_TO(2 * (size_t)LEGIBLE_MAX);
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        text = NULL;
    fflush(stdout);
    bool made = text && legible_write(&line, text, (size_t)n) == 0;
    fprintf(stderr, "nacre: %s\n", made ? line.data : "out of memory");
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
