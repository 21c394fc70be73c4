/*
 * The renderer against a real terminal. tmux shows pseudo-random output in which text, cursor
 * movement, erasing and sequences without effect are mixed, and every line of its history must be
 * what the renderer gives for the same bytes.
 *
 * The screen has just the rows and columns that the renderer knows, and every case begins with a
 * screen full of text, so that the cursor is stopped at the same borders. Left out is what tmux
 * does in its own way: controls it does not show, half erased wide characters.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "screen/render.h"
#include "text/utf8.h"

#define SEED  20240117u
#define CASES 2000
#define STEPS 40
#define END   "that is all"

static uint32_t seed = SEED;

static unsigned pick(unsigned count)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 10) % count;
}

#define PICK(list) ((list)[pick(sizeof(list) / sizeof((list)[0]))])

static const char *const words[] = {"a",     "bc",           "hello",   "  ",
                                    "42%",   "\t",           "e\u0301", "na\u00efve",
                                    "[===>", "\u2588\u2588", "x\ty",    "Progress: "};
/* Not in the first column: when the second half of one there is drawn over, tmux leaves it. */
static const char *const wide_words[] = {"a\u4f60\u597d", "b\U0001f600", "-\u4f60", ">\uff21", "z"};
static const char *const silent[] = {
    "\x1b[31m",        "\x1b[0;1;38;5;12m", "\x1b[m",       "\x1b(B",        "\x1b]0;title\a",
    "\x1b]2;t\x1b\\",  "\x1bPq#0;2\x1b\\",  "\x1b_g\x1b\\", "\x1b^pm\x1b\\", "\x1bX s\x1b\\",
    "\x1bkname\x1b\\", "\x1b[?25l",         "\x1b[?25h",    "\x1b=",         "\x1b[?2004h",
};
static const char moves[] = "CDG", vertical[] = "ABEF";

static void add(struct buf *out, const char *text)
{
    CHECK(buf_str(out, text) == 0);
}

static void add_move(struct buf *out, char command, unsigned max)
{
    unsigned n = pick(max + 1);
    if (n == 0)
        CHECK(buf_printf(out, "\x1b[%c", command) == 0);
    else
        CHECK(buf_printf(out, "\x1b[%u%c", n, command) == 0);
}

/* A screen full of lines, each of which is somewhere else. */
static void add_screen(struct buf *out, int number)
{
    for (int i = 0; i < RENDER_ROWS; i++)
        CHECK(buf_printf(out, "case %d row %d of the text before\n", number, i) == 0);
}

enum flavour { ERASING, WIDE, FAR, FLAVOURS };

static void add_step(struct buf *out, enum flavour flavour)
{
    static const char *const erase[] = {"\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[0K", "\x1b[J"};
    switch (pick(12)) {
    case 0:
        add(out, "\n");
        break;
    case 1:
        add(out, "\r");
        break;
    case 2:
        add(out, "\b");
        break;
    case 3:
        add_move(out, moves[pick(3)], 20);
        break;
    case 4:
        add_move(out, vertical[pick(4)], flavour == FAR ? 99 : 3);
        break;
    case 5:
        add(out, PICK(silent));
        break;
    case 6:
        if (flavour == ERASING)
            add(out, PICK(erase));
        else if (flavour == FAR)
            add(out, "\x1b[999C\x1b[9D[ OK ]\r");
        break;
    default:
        add(out, flavour == WIDE && pick(2) ? PICK(wide_words) : PICK(words));
    }
}

/* No line becomes as long as the screen is wide: it would be wrapped. */
static void add_case(struct buf *out, int number)
{
    enum flavour flavour = pick(FLAVOURS);
    add_screen(out, number);
    for (int i = 0; i < STEPS; i++) {
        add_step(out, flavour);
        if (i % 8 == 7)
            add(out, "\r");
    }
    add(out, "\x1b[99B\n");
}

/* -- The terminal ----------------------------------------------------------------------------- */

static const char *tmux(const char *command)
{
    return format("tmux -u -S %s/tmux -f %s/tmux.conf %s", test_base(), test_base(), command);
}

static char *tmux_says(const char *command, size_t *ret_size)
{
    const char *file = format("%s/said", test_base());
    int status =
        system(format("%s >%s 2>%s/said.err </dev/null", tmux(command), file, test_base()));
    if (status != 0)
        FAIL("tmux %s: status %d: %s", command, status,
             slurp(format("%s/said.err", test_base()), NULL));
    return slurp(file, ret_size);
}

static bool all_shown(void)
{
    char *screen = tmux_says("capture-pane -p", NULL);
    bool shown = strstr(screen, END) != NULL;
    free(screen);
    return shown;
}

static char *shown_by_tmux(const struct buf *bytes, size_t *ret_size)
{
    const char *config = "set -g status off\nset -g history-limit 1000000\nset -g escape-time 0\n";
    spit(format("%s/tmux.conf", test_base()), config, strlen(config));
    spit(format("%s/bytes", test_base()), bytes->data, bytes->len);
    free(tmux_says(format("new-session -d -x %d -y %d 'cat %s/bytes; exec sleep 1000'",
                          RENDER_COLUMNS, RENDER_ROWS, test_base()),
                   NULL));
    bool shown = AWAIT(all_shown(), 10000);
    char *text = tmux_says("capture-pane -p -S - -E -", ret_size);
    free(tmux_says("kill-server", NULL));
    CHECK(shown);
    return text;
}

/* -- The comparison --------------------------------------------------------------------------- */

/* As tmux captures it: tabs are spaces, and there are none at the end. */
static void add_as_captured(struct buf *out, const char *s, size_t size)
{
    size_t column = 0, begin = out->len;
    while (size > 0) {
        uint32_t point;
        size_t n = utf8_next(s, size, &point);
        size_t columns = point == '\t' ? 8 - column % 8 : utf8_width(point);
        for (size_t i = 0; point == '\t' && i < columns; i++)
            add(out, " ");
        if (point != '\t')
            CHECK(buf_append(out, s, n) == 0);
        column += columns;
        s += n;
        size -= n;
    }
    while (out->len > begin && out->data[out->len - 1] == ' ')
        out->data[--out->len] = '\0';
    add(out, "\n");
}

static int note_line(void *self, const struct render_line *line)
{
    add_as_captured(self, line->text, line->size);
    return 0;
}

static void render_bytes(const struct buf *bytes, struct buf *out)
{
    const struct render_options options = {.first_line = 1, .line_max = 4096};
    struct render *r cleanup_render = NULL;
    CHECK(render_new(&options, note_line, out, &r) == 0);
    CHECK(render_feed(r, bytes->data, bytes->len) == 0);
    CHECK(render_finish(r) == 0);
}

static size_t line_size(const char *s)
{
    return strcspn(s, "\n");
}

static int compare(const char *ours, const char *theirs)
{
    int lines = 0;
    for (; *ours; lines++) {
        size_t n = line_size(ours), m = line_size(theirs);
        if (n != m || memcmp(ours, theirs, n) != 0)
            FAIL("line %d of seed %u:\n  ours: \"%.*s\"\n  tmux: \"%.*s\"", lines + 1, SEED, (int)n,
                 ours, (int)m, theirs);
        ours += n + (ours[n] == '\n');
        theirs += m + (theirs[m] == '\n');
    }
    if (strspn(theirs, "\n") != strlen(theirs))
        FAIL("tmux shows more, seed %u: \"%.80s\"", SEED, theirs);
    return lines;
}

TEST_LIMIT(as_a_real_terminal, 40)
{
    struct buf bytes cleanup_buf = BUF_UP_TO(1 << 26);
    struct buf ours cleanup_buf = BUF_UP_TO(1 << 26);
    if (!have_program("tmux"))
        SKIP("tmux is not installed");
    for (int i = 0; i < CASES; i++)
        add_case(&bytes, i);
    add(&bytes, END);
    render_bytes(&bytes, &ours);
    size_t size = 0;
    char *theirs = shown_by_tmux(&bytes, &size);
    int lines = compare(ours.data, theirs);
    CHECK(lines > CASES * RENDER_ROWS / 2);
    printf("seed %u: %d cases, %zu bytes, %d lines\n", SEED, CASES, bytes.len, lines);
    free(theirs);
}
