/* What every file may use: cleanup by scope, moving ownership, and a few small helpers. base/err.h
 * and base/buf.h bring it along. Besides it the four headers that it includes need not be named. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
/* Each argument is evaluated once. */
#define MIN(a, b)            CHOOSE_(a, <, b, __COUNTER__)
#define MAX(a, b)            CHOOSE_(a, >, b, __COUNTER__)
#define CHOOSE_(a, op, b, n) CHOOSE_NAMED_(a, op, b, n)
#define CHOOSE_NAMED_(a, op, b, n)      \
    __extension__({                     \
        __auto_type a_##n = (a);        \
        __auto_type b_##n = (b);        \
        a_##n op b_##n ? a_##n : b_##n; \
    })

#define UNUSED       __attribute__((unused))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
#define NO_SANITIZE  __attribute__((no_sanitize("address", "thread", "undefined")))

/* Sanitizers keep books on stacks and threads that a shared address space would confuse. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Closes *fd if it is open, keeps errno, and leaves -EBADF, our "no descriptor", behind. */
static inline void close_fd(int *fd)
{
    if (*fd >= 0) {
        int saved = errno;
        close(*fd);
        errno = saved;
    }
    *fd = -EBADF;
}

static inline void free_ptr(void *p)
{
    free(*(void **)p);
}

#define cleanup_close  __attribute__((cleanup(close_fd)))
#define cleanup_free   __attribute__((cleanup(free_ptr)))
#define cleanup_record __attribute__((cleanup(nacre_record_done)))

static inline int take_fd(int *fd)
{
    int taken = *fd;
    *fd = -EBADF;
    return taken;
}

#define TAKE_FD(fd) take_fd(&(fd))
#define TAKE_PTR(p)                 \
    ({                              \
        __typeof__(p) taken_ = (p); \
        (p) = NULL;                 \
        taken_;                     \
    })

/* Takes an item out of a list that is linked by `next`, if it is in there. */
#define UNLINK(first, item)                \
    do {                                   \
        __typeof__(first) *at_ = &(first); \
        while (*at_ && *at_ != (item))     \
            at_ = &(*at_)->next;           \
        if (*at_)                          \
            *at_ = (*at_)->next;           \
    } while (0)

/* Repeats a call that a signal interrupted. */
#define RETRY(call)                       \
    ({                                    \
        __typeof__(call) r_;              \
        do                                \
            r_ = (call);                  \
        while (r_ < 0 && errno == EINTR); \
        r_;                               \
    })
