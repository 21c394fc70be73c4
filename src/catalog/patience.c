#include "catalog/patience.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/defs.h"

#define NAME "nacre"

static _Thread_local int64_t until_ns;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sqlite3_vfs ours;
static const sqlite3_vfs *theirs;

static int sleep_in_time(sqlite3_vfs *vfs, int us)
{
    int64_t left_us = (until_ns - clock_mono_ns()) / 1000;
    int for_us = (int)MIN((int64_t)us, MAX(left_us, INT64_C(0)));
    return for_us > 0 ? theirs->xSleep(vfs, for_us) : 0;
}

static void make_vfs(void)
{
    const sqlite3_vfs *usual = sqlite3_vfs_find(NULL);
    if (!usual)
        return;
    ours = *usual;
    ours.pNext = NULL;
    ours.zName = NAME;
    ours.xSleep = sleep_in_time;
    theirs = usual;
    if (sqlite3_vfs_register(&ours, 0) != SQLITE_OK)
        theirs = NULL;
}

/* SQLite may stay when we are unloaded. */
__attribute__((destructor)) static void take_back(void)
{
    if (theirs)
        sqlite3_vfs_unregister(&ours);
}

const char *patience_vfs(void)
{
    pthread_once(&once, make_vfs);
    return theirs ? NAME : NULL;
}

void patience_begin(int ms)
{
    until_ns = clock_deadline(ms);
}
