/*
 * Arbitrary output, read now and then while it comes: every view is valid UTF-8 within its budget,
 * says that there is nothing new only when it shows nothing, and the position ends where the log
 * does.
 */
#include "memory_log.h"

#include "view/read.h"

static void read_once(struct memory_log *log, const nacre_view_options *options, uint64_t unread,
                      nacre_position *position)
{
    struct buf text cleanup_buf = BUF_UP_TO(NACRE_VIEW_BUDGET_MAX);
    bool is_new = false;
    MUST(view_read(&text, &log->record, position, options, unread, read_span, log, &is_new) == 0);
    MUST(text.len <= summary_budget(options));
    check_text(text.data, text.len);
    const char *body = strchr(text.data, '\n') + 1;
    MUST(strncmp(text.data, "[shell ", 7) == 0);
    MUST(is_new == (strcmp(body, "(no new output)\n") != 0));
    MUST(position->offset == log->record.bytes[0] + log->record.bytes[1]);
    for (int s = 0; s < 2; s++) {
        MUST(position->open_offset[s] <= position->offset);
        MUST(position->lines[s] <= log->record.lines[s]);
        MUST(position->bytes[s] <= log->record.bytes[s]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct memory_log log = {.record = NACRE_RECORD_INIT};
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    nacre_position position = NACRE_POSITION_INIT;
    options.bytes = NACRE_VIEW_BUDGET_MIN + take16(&in) % 4096;
    options.streams = 1 + take8(&in) % 3;
    uint64_t unread = 256 + take16(&in);
    uint64_t reads = take64(&in);
    make_log(&log, &in);
    for (size_t spans = 0; spans <= log.count; spans++) {
        if (spans < log.count && !(reads >> (spans % 64) & 1))
            continue;
        count_spans(&log, spans);
        read_once(&log, &options, unread, &position);
        read_once(&log, &options, unread, &position);
    }
    return 0;
}
