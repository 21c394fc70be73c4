/* Which machine, boot and pid namespace this is, and whether its kernel is new enough. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The oldest kernel nacre is made for; everything newer is found out by doing. */
#define HOST_KERNEL_MAJOR 5
#define HOST_KERNEL_MINOR 4

struct host {
    uint8_t boot[16]; /* differs after every boot, and between machines */
    uint64_t pid_ns;  /* inode of our pid namespace */
};

/* Returns 0 or -errno. */
int host_identify(struct host *ret_host);

/* 0, or -ENOSYS if the kernel is older; release gets its version in any case. */
int host_check_kernel(char *ret_release, size_t size);

/* Random bytes for ids; 0 or -errno. */
int host_random(void *buf, size_t size);

/* How many tasks of the machine run or want to at this moment, this one among them; or -errno. */
int host_count_runnable(void);

/* The pid that was handed out last in the pid namespace of /proc, or -errno. */
pid_t host_last_pid(void);

/* How the scheduler weighs our session against others, as a nice value. The file is ours to write
 * only while we are dumpable, which we are for that moment. 0 or -errno. */
int host_set_session_nice(const char *nice);

/* How many processors this process may run on, or -errno. */
int host_count_processors(void);
