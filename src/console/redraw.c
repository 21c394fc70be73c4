#include "console/redraw.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "console/out.h"
#include "console/signals.h"
#include "sys/fd.h"

bool redraw_is_possible(void)
{
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

/* Done again after each wait: a shell that stopped us has set the terminal in its own way. */
static void take_keys(struct redraw *s)
{
    struct termios single = s->saved;
    single.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    single.c_cc[VMIN] = 1;
    single.c_cc[VTIME] = 0;
    if (s->keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &single);
}

int redraw_open(struct redraw *s)
{
    *s = (struct redraw){.signal_fd = signals_catch()};
    if (s->signal_fd < 0)
        return s->signal_fd;
    s->keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &s->saved) == 0;
    take_keys(s);
    return 0;
}

void redraw_close(struct redraw *s)
{
    if (s->keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &s->saved);
    close_fd(&s->signal_fd);
}

void redraw_measure(struct redraw *s, size_t *ret_columns, size_t *ret_rows)
{
    size_t columns = output_columns(), rows = output_rows();
    /* Lines were broken anew, so nobody knows where the picture begins. */
    if (s->lines > 0 && (columns != s->columns || rows != s->rows))
        s->lines = SIZE_MAX;
    s->columns = columns;
    s->rows = rows;
    *ret_columns = columns;
    *ret_rows = rows > 1 ? rows - 1 : 1;
}

static size_t count_lines(const struct buf *text)
{
    size_t count = 0;
    for (size_t i = 0; i < text->len; i++)
        count += text->data[i] == '\n';
    return count;
}

int redraw_draw(struct redraw *s, const struct buf *picture)
{
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    int r = s->lines == SIZE_MAX ? buf_str(&text, "\x1b[H\x1b[2J")
            : s->lines > 0       ? buf_printf(&text, "\r\x1b[%zuA\x1b[J", s->lines)
                                 : 0;
    if (r == 0)
        r = buf_append(&text, picture->data, picture->len);
    s->lines = count_lines(picture);
    return r < 0 ? r : fd_write_all(STDOUT_FILENO, text.data, text.len);
}

/* False when there are no more keys, or the one that ends it was among them. */
static bool read_keys(struct redraw *s)
{
    char keys[64];
    ssize_t n = RETRY(read(STDIN_FILENO, keys, sizeof keys));
    if (n <= 0)
        s->keys = false;
    return n <= 0 || (!memchr(keys, 'q', (size_t)n) && !memchr(keys, 'Q', (size_t)n));
}

bool redraw_wait(struct redraw *s, int ms)
{
    int64_t deadline = clock_deadline(ms);
    for (int left = ms; left > 0; left = clock_left_ms(deadline)) {
        struct pollfd fds[] = {
            {.fd = s->signal_fd, .events = POLLIN},
            {.fd = s->keys ? STDIN_FILENO : -1, .events = POLLIN},
        };
        if (poll(fds, ARRAY_SIZE(fds), left) <= 0)
            continue;
        if (fds[0].revents && (s->signal = signals_take(s->signal_fd)) != 0)
            return false;
        if (fds[1].revents && !read_keys(s))
            return false;
    }
    take_keys(s);
    return true;
}
