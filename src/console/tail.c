#include "console/tail.h"

#include <stdbool.h>
#include <string.h>

#include "base/defs.h"

#define WINDOW 65536

/* What one look at a stretch of the log found. */
struct newlines {
    uint64_t newlines;
    uint64_t nth; /* the offset behind the newline that was asked for */
    bool ends_line;
    bool empty;
};

/* Counts the newlines from lo to hi, and finds one of them by its number, from 1 on. */
static int scan_newlines(nacre_session *session, const nacre_id *id, unsigned streams, uint64_t lo,
                         uint64_t hi, uint64_t number, struct newlines *ret, nacre_error *reterr)
{
    char data[WINDOW];
    nacre_piece piece = {0};
    *ret = (struct newlines){.empty = true};
    for (uint64_t cursor = lo; cursor < hi;) {
        int64_t n = nacre_read(session, id, &cursor, streams, data, sizeof data, &piece, reterr);
        if (n < 0)
            return (int)n;
        if (n == 0 || piece.offset >= hi)
            break;
        size_t size = MIN((uint64_t)n, hi - piece.offset);
        const char *at = data;
        while ((at = memchr(at, '\n', size - (size_t)(at - data)))) {
            at++;
            if (++ret->newlines == number)
                ret->nth = piece.offset + (uint64_t)(at - data);
        }
        ret->ends_line = data[size - 1] == '\n';
        ret->empty = false;
    }
    return 0;
}

int tail_start(nacre_session *session, const nacre_id *id, unsigned streams, uint64_t end,
               uint64_t lines, uint64_t *ret_offset, nacre_error *reterr)
{
    *ret_offset = lines == 0 ? end : 0;
    bool last = true;
    uint64_t window = WINDOW, hi = end;
    while (hi > 0 && lines > 0) {
        struct newlines seen;
        uint64_t lo = hi - MIN(hi, window);
        int r = scan_newlines(session, id, streams, lo, hi, 0, &seen, reterr);
        if (r < 0)
            return r;
        /* A newline at the very end ends the last line; it does not begin another one. */
        uint64_t have = seen.newlines - (last && seen.ends_line);
        if (have >= lines) {
            r = scan_newlines(session, id, streams, lo, hi, have - lines + 1, &seen, reterr);
            *ret_offset = seen.nth;
            return r;
        }
        lines -= have;
        last &= seen.empty;
        window = seen.empty ? 2 * window : WINDOW; /* to be over a gap soon */
        hi = lo;
    }
    return 0;
}
