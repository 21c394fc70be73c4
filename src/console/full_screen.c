#include "console/full_screen.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/defs.h"
#include "console/out.h"
#include "console/redraw.h"
#include "console/signals.h"
#include "sys/fd.h"

/* Another screen, no cursor, and no line breaks of the terminal's own; and back. */
#define ENTER "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J"
#define LEAVE "\x1b[?7h\x1b[?25h\x1b[?1049l"

bool full_screen_is_possible(void)
{
    return isatty(STDIN_FILENO) && redraw_is_possible();
}

int full_screen_open(struct full_screen *s)
{
    *s = (struct full_screen){.signal_fd = signals_catch()};
    if (s->signal_fd < 0)
        return s->signal_fd;
    if (tcgetattr(STDIN_FILENO, &s->saved) < 0)
        return -errno;
    struct termios raw = s->saved;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    s->taken = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
    return fd_write_all(STDOUT_FILENO, ENTER, sizeof ENTER - 1);
}

static void forget_rows(struct full_screen *s)
{
    for (size_t i = 0; s->lines && i < s->rows; i++)
        buf_done(&s->lines[i]);
    free(s->lines);
    s->lines = NULL;
}

void full_screen_close(struct full_screen *s)
{
    if (s->taken) {
        fd_write_all(STDOUT_FILENO, LEAVE, sizeof LEAVE - 1);
        tcsetattr(STDIN_FILENO, TCSANOW, &s->saved);
    }
    forget_rows(s);
    close_fd(&s->signal_fd);
}

bool full_screen_measure(struct full_screen *s)
{
    size_t rows = output_rows(), columns = output_columns();
    if (s->lines && rows == s->rows && columns == s->columns)
        return false;
    forget_rows(s);
    s->rows = rows;
    s->columns = columns;
    return true;
}

/* -- Drawing ---------------------------------------------------------------------------------- */

static int draw_row(struct full_screen *s, size_t row, const char *text, size_t size,
                    struct buf *out)
{
    struct buf *shown = &s->lines[row];
    if (shown->len == size && (size == 0 || memcmp(shown->data, text, size) == 0))
        return 0;
    buf_done(shown);
    int r = buf_append(shown, text, size);
    if (r == 0)
        r = buf_printf(out, "\x1b[%zu;1H", row + 1);
    if (r == 0)
        r = buf_append(out, text, size);
    return r < 0 ? r : buf_str(out, "\x1b[0m\x1b[K");
}

static int begin_lines(struct full_screen *s, struct buf *out)
{
    if (s->lines)
        return 0;
    s->lines = calloc(s->rows, sizeof *s->lines);
    for (size_t i = 0; s->lines && i < s->rows; i++)
        s->lines[i] = BUF_UP_TO(SIZE_MAX / 2);
    return s->lines ? buf_str(out, "\x1b[H\x1b[2J") : -ENOMEM;
}

int full_screen_draw(struct full_screen *s, const struct buf *picture)
{
    struct buf out cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    const char *at = picture->data ? picture->data : "";
    int r = begin_lines(s, &out);
    for (size_t row = 0; r == 0 && row < s->rows; row++) {
        size_t size = strcspn(at, "\n");
        r = draw_row(s, row, at, size, &out);
        at += size + (at[size] == '\n');
    }
    return r < 0 || out.len == 0 ? r : fd_write_all(STDOUT_FILENO, out.data, out.len);
}

/* -- Keys ------------------------------------------------------------------------------------- */

static int key_named(const char *bytes, size_t size)
{
    static const struct {
        const char *bytes;
        int key;
    } keys[] = {
        {"\x1b[A", KEY_UP},    {"\x1b[B", KEY_DOWN},     {"\x1bOA", KEY_UP},
        {"\x1bOB", KEY_DOWN},  {"\x1b[5~", KEY_PAGE_UP}, {"\x1b[6~", KEY_PAGE_DOWN},
        {"\x1b[H", KEY_HOME},  {"\x1b[F", KEY_LAST},     {"\x1b[1~", KEY_HOME},
        {"\x1b[4~", KEY_LAST},
    };
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (size == strlen(keys[i].bytes) && memcmp(bytes, keys[i].bytes, size) == 0)
            return keys[i].key;
    return size == 1 && bytes[0] == '\x1b' ? KEY_ESCAPE : KEY_NONE;
}

/* One byte; or the sequence of a key, which comes at once. */
static int read_one_key(void)
{
    char bytes[8];
    ssize_t n = RETRY(read(STDIN_FILENO, bytes, 1));
    if (n <= 0)
        return KEY_END;
    if (bytes[0] != '\x1b')
        return (unsigned char)bytes[0];
    struct pollfd more = {.fd = STDIN_FILENO, .events = POLLIN};
    size_t size = 1;
    while (size < sizeof bytes && poll(&more, 1, 0) > 0 &&
           RETRY(read(STDIN_FILENO, bytes + size, 1)) == 1) {
        size++;
        if (size > 2 && bytes[size - 1] >= '@')
            break;
    }
    return key_named(bytes, size);
}

int full_screen_key(struct full_screen *s, int ms)
{
    struct pollfd fds[] = {
        {.fd = s->signal_fd, .events = POLLIN},
        {.fd = STDIN_FILENO, .events = POLLIN},
    };
    if (poll(fds, ARRAY_SIZE(fds), ms) <= 0)
        return KEY_NONE;
    if (fds[0].revents && (s->signal = signals_take(s->signal_fd)) != 0)
        return KEY_END;
    return fds[1].revents ? read_one_key() : KEY_NONE;
}
