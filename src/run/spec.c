#include "run/spec.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "base/sum.h"
#include "run/state.h"
#include "sys/fd.h"

static const uint8_t spec_magic[8] = "nacspec";

/* OPTERR is 1 at the start of bash and is 1 again when the text runs, so that no trace is left. */
#define BASH_EVAL "eval \"$OPTERR${_[OPTERR=1]:+}\""

static const char *const stand_ins[2][2] = {
    {"OPTERR=$NACRE_COMMAND; unset -v NACRE_COMMAND; " BASH_EVAL,
     "IFS= read -rd \"\" OPTERR <&3; exec 3<&-; " BASH_EVAL},
    {"eval \"unset NACRE_COMMAND;$NACRE_COMMAND\"", "eval \"exec 3<&-;$(cat <&3)\""},
};

#define STAND_IN_MIN 20 /* of a beginning, to be known by */

const char *spec_stand_in(uint32_t kind, bool is_long)
{
    return stand_ins[kind == SPEC_BASH ? 0 : 1][is_long];
}

bool spec_is_stand_in(const char *text)
{
    size_t n = strlen(text);
    for (int i = 0; n >= STAND_IN_MIN && i < 4; i++)
        if (strncmp(stand_ins[i / 2][i % 2], text, n) == 0)
            return true;
    return false;
}

void spec_head_init(struct spec_head *head)
{
    memset(head, 0, sizeof *head);
    memcpy(head->magic, spec_magic, sizeof spec_magic);
    head->format = RUN_FORMAT;
}

void spec_head_seal(struct spec_head *head)
{
    head->sum = sum64(head, offsetof(struct spec_head, sum));
}

static int check_head(const struct spec_head *head)
{
    if (memcmp(head->magic, spec_magic, sizeof spec_magic) != 0)
        return -EBADMSG;
    if (head->format > RUN_FORMAT)
        return -EPROTO;
    return head->sum == sum64(head, offsetof(struct spec_head, sum)) ? 0 : -EBADMSG;
}

/* Whether count consecutive strings begin at offset; the last byte of the file is a NUL. */
static int strings_fit(const char *data, size_t size, uint32_t offset, uint32_t count)
{
    size_t at = offset;
    for (uint32_t i = 0; i < count; i++) {
        if (at >= size)
            return -EBADMSG;
        at += strlen(data + at) + 1;
    }
    return 0;
}

int spec_check(const void *data, size_t size)
{
    const struct spec_head *head = data;
    const char *bytes = data;
    if (size < sizeof *head + 1)
        return -EBADMSG;
    int r = check_head(head);
    if (r < 0)
        return r;
    if (head->size != size || bytes[size - 1] != '\0')
        return -EBADMSG;
    const uint32_t strings[] = {head->program,      head->text,       head->cwd,
                                head->run_path,     head->name,       head->description,
                                head->session_name, head->session_cwd};
    for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
        if (strings[i] < sizeof *head || strings[i] >= size)
            return -EBADMSG;
    if (head->sandbox && (head->sandbox < sizeof *head || head->sandbox >= size))
        return -EBADMSG;
    if (head->granted_size &&
        (head->granted < sizeof *head || head->granted > size ||
         head->granted_size > size - head->granted || head->granted_size < 2 ||
         bytes[head->granted + head->granted_size - 1] != '\0' ||
         bytes[head->granted + head->granted_size - 2] != '\0'))
        return -EBADMSG;
    size_t name = strlen(SPEC_TEXT_NAME);
    if (head->text_size != strlen(bytes + head->text) || head->text < sizeof *head + name ||
        memcmp(bytes + head->text - name, SPEC_TEXT_NAME, name) != 0)
        return -EBADMSG;
    if (head->argc == 0)
        return -EBADMSG;
    r = strings_fit(bytes, size, head->argv, head->argc);
    if (r == 0)
        r = strings_fit(bytes, size, head->groups, SPEC_GROUPS);
    return r < 0 ? r : strings_fit(bytes, size, head->env, head->envc);
}

void spec_note_host(struct spec_head *head, const struct spec_host *host)
{
    head->umask = host->umask;
    head->nice = host->nice;
    memcpy(head->limits, host->limits, sizeof head->limits);
    spec_head_seal(head);
}

int spec_map(int fd, struct spec *ret_spec)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    size_t size = (size_t)st.st_size;
    if (size < sizeof(struct spec_head) || size > UINT32_MAX)
        return -EBADMSG;
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return -errno;
    int r = spec_check(map, size);
    if (r < 0) {
        munmap(map, size);
        return r;
    }
    *ret_spec = (struct spec){.head = map, .size = size};
    return 0;
}

void spec_unmap(struct spec *spec)
{
    if (spec->head)
        munmap((void *)spec->head, spec->size);
    *spec = (struct spec){0};
}
