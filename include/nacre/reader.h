/*
 * Readers: one stream of a shell, read forward in big blocks with line numbers. For who goes
 * through a lot of output: it is opened once, costs few system calls, and takes the other
 * stream's bytes out. Reading takes nothing away from anybody.
 *
 * A reader belongs to one thread at a time.
 */
#ifndef NACRE_READER_H
#define NACRE_READER_H

#include <stddef.h>
#include <stdint.h>

#include <nacre/error.h>
#include <nacre/record.h>
#include <nacre/version.h>

NACRE_BEGIN_DECLS

typedef struct nacre_reader nacre_reader;

/* What to read. Start from NACRE_READER_OPTIONS_INIT. */
typedef struct nacre_reader_options {
    size_t size;         /* sizeof(nacre_reader_options), set by NACRE_READER_OPTIONS_INIT */
    nacre_stream stream; /* which of the two */
    uint64_t line;       /* begin at this line of it or somewhat before; 1 = the first */
    int64_t since_ms;    /* likewise: at what came at this moment (since the epoch), or before */
    uint64_t end;        /* nothing at or after this offset of the log; UINT64_MAX = no limit */
} nacre_reader_options;

#define NACRE_READER_OPTIONS_INIT                                    \
    {                                                                \
        sizeof(nacre_reader_options), NACRE_STDOUT, 1, 0, UINT64_MAX \
    }

/* Bytes of a block that follow one another in the log and were read there together. */
typedef struct nacre_stretch {
    size_t at;       /* index in the block of the first of them */
    uint64_t offset; /* in the log */
    int64_t time_ms; /* since the epoch */
} nacre_stretch;

/* What one read gives. Start from NACRE_BLOCK_INIT and set the first four fields. */
typedef struct nacre_block {
    size_t size; /* sizeof(nacre_block), set by NACRE_BLOCK_INIT */

    void *data;               /* of the caller's: room for bytes; 64 KiB and more is best, ... */
    size_t room;              /* ... at least one */
    nacre_stretch *stretches; /* of the caller's: room for stretches, ... */
    size_t stretch_room;      /* ... at least one */

    size_t bytes;         /* how many there are; 0 = there is no more at present */
    size_t stretch_count; /* at least one if there are bytes; the first has at = 0 */
    uint64_t line;        /* the number of the line that the first byte is in, from 1 */
    uint64_t end_line;    /* and of the one that a byte behind the last would be in */
    uint64_t gap_bytes;   /* bytes of the stream that are missing right before the first */
} nacre_block;

#define NACRE_BLOCK_INIT                                     \
    {                                                        \
        sizeof(nacre_block), NULL, 0, NULL, 0, 0, 0, 0, 0, 0 \
    }

/* Reads on. Line numbers are right also behind a gap. */
NACRE_API int nacre_reader_read(nacre_reader *reader, nacre_block *block, nacre_error *reterr);

/* Ends the reader. NULL is ignored. */
NACRE_API void nacre_reader_close(nacre_reader *reader);

NACRE_END_DECLS

#endif
