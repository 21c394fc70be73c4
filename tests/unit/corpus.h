/*
 * The corpus: recordings of real failures of real tools, and how an answer to one is judged.
 *
 * A case is a directory of tests/corpus: `command` is what was run, `out` and `err` are what it
 * printed (one of them may be missing), `exit` is its exit code, `cause` is a part of the line to
 * be found, and `failure` says which lines belong to the failure (`out 120-131`): those that the
 * same command does not print when nothing is broken, digits aside. All of it was written down
 * before any answer was looked at.
 *
 * The halves are made by the names alone. Rules are made on one of them; the other is for judging
 * them, and is not looked at meanwhile. Cases without `failure` are older than the halves, and
 * belong to the first.
 */
#ifndef TESTS_CORPUS_H
#define TESTS_CORPUS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nacre/record.h>
#include <nacre/watch.h>

#include "base/buf.h"
#include "base/defs.h"
#include "view/summary.h"

#define CORPUS __attribute__((unused)) static

struct corpus_file {
    char *data; /* with a zero behind it */
    size_t size;
};

struct corpus_case {
    const char *name;
    struct corpus_file streams[2], cause, failure, exit;
    nacre_record record;
};

enum corpus_half { CORPUS_MADE_ON, CORPUS_JUDGED_ON };

CORPUS struct corpus_file corpus_load(const char *dir, const char *name, const char *file)
{
    char path[4096];
    struct corpus_file f = {NULL, 0};
    snprintf(path, sizeof path, "%s/%s/%s", dir, name, file);
    FILE *stream = fopen(path, "re");
    if (!stream)
        return f;
    size_t room = 0;
    ssize_t n = getdelim(&f.data, &room, EOF, stream);
    f.size = n > 0 ? (size_t)n : 0;
    fclose(stream);
    return f;
}

CORPUS uint64_t corpus_lines(const struct corpus_file *f)
{
    uint64_t lines = f->size > 0 && f->data[f->size - 1] != '\n';
    for (size_t i = 0; i < f->size; i++)
        lines += f->data[i] == '\n';
    return lines;
}

CORPUS void corpus_open(struct corpus_case *c, const char *dir, const char *name)
{
    *c = (struct corpus_case){.name = name, .record = NACRE_RECORD_INIT};
    c->streams[NACRE_STDOUT] = corpus_load(dir, name, "out");
    c->streams[NACRE_STDERR] = corpus_load(dir, name, "err");
    c->cause = corpus_load(dir, name, "cause");
    c->failure = corpus_load(dir, name, "failure");
    c->exit = corpus_load(dir, name, "exit");
    if (c->cause.data)
        c->cause.data[strcspn(c->cause.data, "\n")] = '\0';
    c->record.outcome = NACRE_EXITED;
    c->record.tree = NACRE_TREE_EMPTY;
    c->record.exit_code = c->exit.data ? atoi(c->exit.data) : 1;
    for (int s = 0; s < 2; s++) {
        c->record.bytes[s] = c->streams[s].size;
        c->record.lines[s] = corpus_lines(&c->streams[s]);
    }
}

CORPUS void corpus_close(struct corpus_case *c)
{
    free(c->streams[0].data);
    free(c->streams[1].data);
    free(c->cause.data);
    free(c->failure.data);
    free(c->exit.data);
}

CORPUS enum corpus_half corpus_half_of(const struct corpus_case *c)
{
    uint32_t hash = 2166136261u;
    for (const char *s = c->name; *s; s++)
        hash = (hash ^ (uint8_t)*s) * 16777619u;
    return c->failure.data && (hash >> 16 & 1) ? CORPUS_JUDGED_ON : CORPUS_MADE_ON;
}

/* -- Answers ----------------------------------------------------------------------------------- */

/* A log in which all of stdout comes before stderr. */
CORPUS int64_t corpus_read(void *self, uint64_t *cursor, unsigned streams, void *buf, size_t size,
                           nacre_piece *ret_piece)
{
    const struct corpus_case *c = self;
    uint64_t begin = 0;
    for (int s = 0; s < 2; begin += c->streams[s++].size) {
        uint64_t end = begin + c->streams[s].size;
        if (!(streams & 1u << s) || *cursor >= end)
            continue;
        *cursor = MAX(*cursor, begin);
        size_t n = MIN(size, (size_t)(end - *cursor));
        memcpy(buf, c->streams[s].data + (*cursor - begin), n);
        *ret_piece = (nacre_piece){.stream = (nacre_stream)s, .offset = *cursor, .size = n};
        *cursor += n;
        return (int64_t)n;
    }
    return 0;
}

/* The summary, within the default budget; the caller frees it. NULL if it could not be made. */
CORPUS char *corpus_summary(struct corpus_case *c)
{
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    struct buf text cleanup_buf = BUF_UP_TO(NACRE_VIEW_BUDGET);
    return summary_write(&text, &c->record, &options, corpus_read, c) == 0 ? buf_take(&text) : NULL;
}

struct corpus_verdict {
    bool shown;            /* the cause */
    bool lifted;           /* and lifted out */
    unsigned lifted_lines; /* all of them, */
    unsigned stray;        /* and those that do not belong to the failure */
};

CORPUS bool corpus_belongs(const struct corpus_case *c, const char *stream, unsigned long line)
{
    char name[8];
    unsigned long from, to;
    for (const char *at = c->failure.data; at && *at; at = strchr(at, '\n') + 1) {
        if (sscanf(at, "%7s %lu-%lu", name, &from, &to) == 3 && strcmp(name, stream) == 0 &&
            line >= from && line <= to)
            return true;
        if (!strchr(at, '\n'))
            break;
    }
    return false;
}

CORPUS struct corpus_verdict corpus_judge(const struct corpus_case *c, const char *text)
{
    struct corpus_verdict v = {.shown = strstr(text, c->cause.data) != NULL};
    const char *stream = NULL;
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        char name[8];
        int n = 0;
        if (sscanf(line, "--- std%3s (likely causes: %n", name, &n) == 1 && n > 0)
            stream = strcmp(name, "out") == 0 ? "out" : "err";
        else if (strncmp(line, "--- std", 7) == 0)
            stream = NULL;
        char *behind;
        unsigned long number = strtoul(line, &behind, 10);
        if (!stream || behind == line || *behind != ':')
            continue;
        v.lifted_lines++;
        v.stray += c->failure.data && !corpus_belongs(c, stream, number);
        v.lifted |=
            memmem(line, (size_t)(end - line), c->cause.data, strlen(c->cause.data)) != NULL;
    }
    return v;
}

/* -- All of them ------------------------------------------------------------------------------- */

CORPUS int corpus_is_case(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Calls for each case, in the order of names. Returns how many there are. */
CORPUS int corpus_each(const char *dir, void (*fn)(struct corpus_case *c, void *self), void *self)
{
    struct dirent **entries;
    int count = scandir(dir, &entries, corpus_is_case, alphasort);
    for (int i = 0; i < count; i++) {
        struct corpus_case c;
        corpus_open(&c, dir, entries[i]->d_name);
        fn(&c, self);
        corpus_close(&c);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return count;
}

#endif
