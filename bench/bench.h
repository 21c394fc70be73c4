/* What the benchmarks share: time, medians, and rows that say what was measured against what. */
#ifndef NACRE_BENCH_H
#define NACRE_BENCH_H

#include <dirent.h>
#include <nacre/nacre.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static inline double now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static inline int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Sorts; p in percent. */
static inline double percentile(double *values, size_t count, unsigned p)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return values[(count - 1) * p / 100];
}

_Noreturn static inline void die(const char *what, const nacre_error *err)
{
    fprintf(stderr, "bench: %s: %s\n", what, err ? err->msg : "failed");
    exit(1);
}

static inline nacre_session *open_session(void)
{
    nacre_session *session;
    nacre_error err;
    if (nacre_open(NULL, &session, &err) < 0)
        die("open", &err);
    return session;
}

/* One row: what, ours and theirs in words, the ratio or value, and whether the goal is met. */
static inline void row(const char *what, const char *measured, double value, const char *unit,
                       double goal, int at_least)
{
    int met = at_least ? value >= goal : value <= goal;
    printf("%-44s %-36s %8.2f%s  goal %s %.2f%s  %s\n", what, measured, value, unit,
           at_least ? ">=" : "<=", goal, unit, met ? "met" : "MISSED");
    fflush(stdout);
}

static inline size_t count_entries(const char *path)
{
    size_t count = 0;
    DIR *dir = opendir(path);
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

static inline long field_kb(const char *path, const char *name)
{
    char line[256];
    long value = -1;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtol(line + strlen(name), NULL, 10);
    if (file)
        fclose(file);
    return value;
}

#endif
