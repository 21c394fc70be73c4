#include "view/ending_words.h"

#include <stdbool.h>
#include <string.h>

#include "base/defs.h"

#define MEMBERS_SHOWN 8
#define READER_LEFT   141  /* 128 + SIGPIPE */
#define BUFFER        4096 /* what the C library holds back on a pipe */

static bool a_member_failed(const nacre_record *record)
{
    for (int i = 0; i < record->pipestatus_count; i++)
        if (record->pipestatus[i] != 0 && record->pipestatus[i] != READER_LEFT)
            return true;
    return false;
}

int pipeline_words(struct buf *out, const nacre_record *record)
{
    if (record->outcome != NACRE_EXITED || record->pipestatus_count < 2 || !a_member_failed(record))
        return 0;
    int r = 0, shown = MIN(record->pipestatus_count, MEMBERS_SHOWN);
    for (int i = 0; r == 0 && i < shown; i++)
        r = buf_printf(out, "%s%d", i == 0 ? " (pipeline: " : " | ", record->pipestatus[i]);
    return r == 0 ? buf_str(out, shown < record->pipestatus_count ? " | ...)" : ")") : r;
}

/* Whether it was ended while it might have gone on. Who kills it after it has printed something
 * knows what it does. */
static bool was_cut_short(const nacre_record *record)
{
    bool silent = record->bytes[NACRE_STDOUT] + record->bytes[NACRE_STDERR] == 0;
    return record->outcome == NACRE_TIMED_OUT || record->outcome == NACRE_CANCELLED ||
           (record->outcome == NACRE_KILLED && (silent || record->reason == NACRE_REASON_LIMIT));
}

int held_words(struct buf *out, const nacre_record *record)
{
    if (!was_cut_short(record) || record->bytes[NACRE_STDOUT] >= BUFFER / 4)
        return 0;
    return buf_str(out,
                   "Perhaps lost: what its programs held back; on a pipe many print in blocks. "
                   "\"stdbuf -oL\" before one, or its own option (grep --line-buffered, sed -u, "
                   "tcpdump -l), makes it print line by line.\n");
}
