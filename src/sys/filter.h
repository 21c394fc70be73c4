/*
 * The filter of system calls of commands: of one in a fence, what neither mounts nor Landlock hold;
 * and of one under rules, what is executed. In a fence it is written for the native interface, and
 * calls of others (32 bit, x32) do not exist behind it. Functions return >= 0 or -errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILTER_PASS_WORDS 2

/* What it is for: at least one of the two. */
struct filter_wish {
    bool fence;
    bool execs;                       /* whatever is executed, it waits */
    uint64_t pass[FILTER_PASS_WORDS]; /* but with these as its fourth and fifth argument, which only
                                         who enters it knows */
};

/*
 * For this thread and all it starts. Inside, who executes a program waits for who holds the
 * descriptor that is returned, and so does that program before it has done anything; in a fence
 * each connect() does, and who wants to change priority, processors or limits of another process. A
 * fence needs no_new_privs; for the rest it is set where it has to be: from then on nothing gets
 * more rights by being executed.
 */
int filter_enter(const struct filter_wish *wish);

/* The program that such a filter is, into room for FILTER_SIZE_MAX instructions (struct
 * sock_filter): how many. */
#define FILTER_SIZE_MAX 160
struct sock_filter;
int filter_program(const struct filter_wish *wish, struct sock_filter *ret_program);

/* Whether filter_enter() would do: there can be one descriptor for a process, and it may have been
 * given to somebody else, in whose hands this process is. */
int filter_try(void);

/* Where the system can do that, who waits and who answers take turns on one processor. */
void filter_take_turns(int fd);

enum filter_call {
    FILTERED_OTHER,
    FILTERED_EXECVE,
    FILTERED_EXECVEAT,
    FILTERED_BEGUN, /* a program that was executed begins */
};

/* Which of the calls that wait that is, and how many bytes a pointer has there. */
enum filter_call filter_which(uint32_t arch, int number, size_t *ret_pointer);

/* execve() that does not wait. Returns -errno, if at all. */
int filter_pass_execve(const struct filter_wish *wish, const char *path, char *const *argv,
                       char *const *env);
