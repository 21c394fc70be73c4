#include "tool/match.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "recall/pattern.h"

#define TIME_MS 1000 /* for one text */

struct match {
    const char *field;
    bool spans;
    struct watchdog dog;
    struct pattern *pattern;
};

/* What is wrong with a pattern is said of the field that it came in. */
static int blame(const char *field, int code, const nacre_error *error, nacre_error *err)
{
    return err_set(err, code, "%s: %.200s", field, error->msg);
}

/* A newline, or \n or \R. What else may match one (\s, a negated class) is meant for lines. */
static bool has_newline(const char *pattern)
{
    for (const char *at = pattern; *at; at++) {
        if (*at == '\n')
            return true;
        if (*at != '\\')
            continue;
        at++;
        if (*at == 'n' || *at == 'R')
            return true;
        if (!*at)
            break;
    }
    return false;
}

int match_new(const char *field, const char *pattern, bool may_span, struct match **ret,
              nacre_error *err)
{
    nacre_error error = NACRE_ERROR_INIT;
    struct match *m = calloc(1, sizeof *m);
    if (!m)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    m->field = field;
    m->dog.deadline_ns = INT64_MAX;
    m->spans = may_span && has_newline(pattern);
    int r = m->spans ? pattern_new_spanning(pattern, &m->dog, &m->pattern, &error)
                     : pattern_new(pattern, false, false, &m->dog, &m->pattern, &error);
    if (r < 0) {
        match_free(m);
        return blame(field, r, &error, err);
    }
    *ret = m;
    return 0;
}

bool match_spans(const struct match *m)
{
    return m->spans;
}

void match_free(struct match *m)
{
    if (!m)
        return;
    pattern_free(m->pattern);
    free(m);
}

int match_find(struct match *m, const char *text, size_t size, nacre_error *err)
{
    nacre_error error = NACRE_ERROR_INIT;
    struct text lines = {.data = text, .size = size};
    struct hit hit;
    if (size == 0)
        return 0;
    m->dog.deadline_ns = clock_deadline(TIME_MS);
    m->dog.verdict = 0;
    m->dog.timed_out = 0;
    pattern_begin(m->pattern, &lines);
    int r = pattern_find(m->pattern, &lines, 0, &hit, &error);
    if (r >= 0)
        return r;
    if (m->dog.timed_out)
        err_set(&error, NACRE_ELIMIT, "the pattern takes too long; make it simpler");
    return blame(m->field, NACRE_ELIMIT, &error, err);
}
