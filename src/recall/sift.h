/* The matching lines of one stream of one shell, one after another. */
#pragma once

#include <nacre/recall.h>

#include "recall/pattern.h"

#define SIFT_LINE    ((size_t)256 * 1024) /* a longer line is searched in windows, ... */
#define SIFT_OVERLAP ((size_t)64 * 1024)  /* ... that overlap by this, ... */
#define SIFT_EXCERPT ((size_t)16 * 1024)  /* ... and shown in part */

struct sift_options {
    const nacre_id *id;
    nacre_stream stream;
    uint64_t from, to; /* lines */
    int64_t since_ms;
    uint64_t end; /* offset of the log */
};

struct sift;

/* pattern is borrowed; NULL = every line. */
int sift_new(nacre_session *session, const struct sift_options *options, struct pattern *pattern,
             struct sift **ret, nacre_error *err);
void sift_free(struct sift *sift);

/*
 * The next line; its text is borrowed until the next call. Everything of it is filled in but
 * the record. Returns 1, 0 at the end, or as pattern_find() and nacre_reader_read() do.
 */
int sift_next(struct sift *sift, nacre_recall_line *ret, nacre_error *err);

/* Bytes looked at so far. */
uint64_t sift_bytes(const struct sift *sift);
