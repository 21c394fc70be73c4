/* Holding a lock until the end of the scope. */
#pragma once

#include <pthread.h>

#include "base/defs.h"

static inline void let_go(pthread_mutex_t **lock)
{
    pthread_mutex_unlock(*lock);
}

#define HOLD(lock)                                                           \
    __attribute__((cleanup(let_go))) UNUSED pthread_mutex_t *held_ = (lock); \
    pthread_mutex_lock(held_)
