#include "cli/out.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/err.h"
#include "base/number.h"
#include "cli/cli.h"
#include "view/utf8.h"

#define ELLIPSIS "\xe2\x80\xa6"

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

const char *age_text(int64_t ms, char buf[AGE_TEXT])
{
    static const struct {
        int64_t seconds;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    int64_t seconds = MAX(ms, 0) / 1000;
    size_t i = 0;
    while (i + 1 < ARRAY_SIZE(units) && seconds < units[i].seconds)
        i++;
    snprintf(buf, AGE_TEXT, "%lld%c", (long long)(seconds / units[i].seconds), units[i].unit);
    return buf;
}

const char *bytes_text(uint64_t bytes, char buf[BYTES_TEXT])
{
    static const char units[] = "KMGTPE";
    if (bytes < 1024) {
        snprintf(buf, BYTES_TEXT, "%llu", (unsigned long long)bytes);
        return buf;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    for (; value >= 1023.95 && units[unit + 1]; unit++)
        value /= 1024;
    snprintf(buf, BYTES_TEXT, value < 9.95 ? "%.1f%c" : "%.0f%c", value, units[unit]);
    return buf;
}

/* Columns of a character on a terminal; what the locale does not know counts as one. */
static size_t point_columns(uint32_t point)
{
    if (point >= ' ' && point < 0x7f)
        return 1;
    int width = wcwidth((wchar_t)point);
    return width >= 0 ? (size_t)width : 1;
}

size_t text_columns(const char *text)
{
    size_t size = strlen(text), columns = 0, n;
    for (uint32_t point; size > 0 && (n = utf8_next(text, size, &point)) > 0; text += n, size -= n)
        columns += point_columns(point);
    return columns;
}

static bool is_control(uint32_t point)
{
    return point < 0x20 || (point >= 0x7f && point < 0xa0);
}

int append_line(struct buf *b, const char *text, size_t columns)
{
    size_t size = strlen(text), used = 0, cut = b->len;
    while (size > 0) {
        uint32_t point;
        size_t n = utf8_next(text, size, &point);
        bool invalid = n == 0 || point == UTF8_INVALID;
        n = n > 0 ? n : size;
        bool control = !invalid && is_control(point);
        size_t width = invalid || control ? 1 : point_columns(point);
        if (width > columns - used) {
            b->len = cut;
            return buf_str(b, ELLIPSIS);
        }
        int r = invalid   ? buf_str(b, UTF8_REPLACEMENT)
                : control ? buf_str(b, " ")
                          : buf_append(b, text, n);
        if (r < 0)
            return r;
        used += width;
        if (used < columns)
            cut = b->len;
        text += n;
        size -= n;
    }
    return 0;
}
