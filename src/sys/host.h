/* Which machine, boot and pid namespace this is, and whether its kernel is new enough. */
#ifndef NACRE_SYS_HOST_H
#define NACRE_SYS_HOST_H

#include <stddef.h>
#include <stdint.h>

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

/* How many processors this process may run on, or -errno. */
int host_count_processors(void);

#endif
