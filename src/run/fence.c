#include "run/fence.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/defs.h"

static const char fence_magic[8] = "NACREFEN";

static uint64_t sum_on(uint64_t sum, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ bytes[i]) * UINT64_C(1099511628211);
    return sum;
}

/* FNV-1a, of all but itself: this is about sameness, not about malice. */
uint64_t fence_sum(const void *data, size_t size)
{
    uint64_t sum = UINT64_C(14695981039346656037);
    sum = sum_on(sum, data, offsetof(struct fence_head, sum));
    return sum_on(sum, (const struct fence_head *)data + 1, size - sizeof(struct fence_head));
}

static bool is_string(const struct fence_head *head, uint32_t offset)
{
    size_t strings = sizeof *head + head->count * sizeof(struct fence_place);
    return offset >= strings && offset < head->size;
}

static bool is_place(const struct fence_head *head, const struct fence_place *place)
{
    return place->kind < FENCE_KIND_COUNT && is_string(head, place->path) &&
           ((const char *)head)[place->path] == '/' &&
           (place->source == 0 || is_string(head, place->source)) &&
           (place->kind == FENCE_PRIVATE) == (place->source != 0);
}

int fence_check(const void *data, size_t size, struct fence *ret_fence)
{
    const struct fence_head *head = data;
    if (size < sizeof *head || memcmp(head->magic, fence_magic, sizeof fence_magic) != 0 ||
        head->format != RUN_FORMAT || head->size != size || head->count > FENCE_PLACES_MAX ||
        head->network > FENCE_NETWORK_ON)
        return -EBADMSG;
    if (sizeof *head + head->count * sizeof(struct fence_place) >= size ||
        ((const char *)data)[size - 1] != '\0' ||
        (head->canary && !is_string(head, head->canary)) || !is_string(head, head->words) ||
        head->sum != fence_sum(data, size))
        return -EBADMSG;
    *ret_fence = (struct fence){head, size};
    for (uint32_t i = 0; i < head->count; i++)
        if (!is_place(head, &fence_places(ret_fence)[i]))
            return -EBADMSG;
    return 0;
}

int fence_map(int fd, struct fence *ret_fence)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_size < (off_t)sizeof(struct fence_head) || st.st_size > (off_t)FENCE_SIZE_MAX)
        return -EBADMSG;
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return -errno;
    int r = fence_check(data, (size_t)st.st_size, ret_fence);
    if (r < 0)
        munmap(data, (size_t)st.st_size);
    return r;
}

/* clang-format off */
static const struct step {
    enum fence_property property;
    const char *words;
} fence_steps[FENCE_STEP_COUNT] = {
    [FENCE_STEP_NONE]       = {FENCE_P_NONE,      "do nothing"},
    [FENCE_STEP_RECORD]     = {FENCE_P_NONE,      "read what the fence is made of"},
    [FENCE_STEP_USER_NS]    = {FENCE_P_FILES,     "make a user namespace"},
    [FENCE_STEP_MAPS]       = {FENCE_P_FILES,     "map the user into a namespace"},
    [FENCE_STEP_MOUNT_NS]   = {FENCE_P_FILES,     "make a mount namespace"},
    [FENCE_STEP_NETWORK_NS] = {FENCE_P_NETWORK,   "make a network namespace"},
    [FENCE_STEP_LOOPBACK]   = {FENCE_P_NETWORK,   "bring the loopback device of a network namespace up"},
    [FENCE_STEP_OPEN]       = {FENCE_P_FILES,     "open a place"},
    [FENCE_STEP_READ_ONLY]  = {FENCE_P_FILES,     "make the file systems read-only"},
    [FENCE_STEP_PLACE]      = {FENCE_P_FILES,     "put a place into the fence"},
    [FENCE_STEP_LANDLOCK]   = {FENCE_P_PROCESSES, "use Landlock"},
    [FENCE_STEP_GATE]       = {FENCE_P_NETWORK,   "listen for the gate"},
    [FENCE_STEP_JOIN]       = {FENCE_P_FILES,     "enter the namespaces"},
    [FENCE_STEP_PRIVILEGES] = {FENCE_P_PRIVILEGE, "give privileges up"},
    [FENCE_STEP_FILTER]     = {FENCE_P_SOCKETS,   "filter system calls"},
    [FENCE_STEP_CANARY]     = {FENCE_P_FILES,     "find the fence closed"},
};
/* clang-format on */

enum fence_property fence_step_property(enum fence_step step)
{
    return (unsigned)step < FENCE_STEP_COUNT ? fence_steps[step].property : FENCE_P_NONE;
}

const char *fence_step_words(enum fence_step step)
{
    return (unsigned)step < FENCE_STEP_COUNT ? fence_steps[step].words : "make the fence";
}
