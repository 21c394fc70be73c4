/* What this machine can do, found out by doing it; for people who want to know why. */
#pragma once

#include <stddef.h>

struct probe_result {
    const char *name;
    int ok;
    int err; /* errno, if not ok */
    const char *meaning;
    char detail[160];
};

/* Runs every probe; returns how many results were stored. Everything it makes it removes. */
size_t probe_all(struct probe_result *ret, size_t max);
