/* Arbitrary bytes as a spec: refused, or safe to read from end to end. */
#include "fuzz.h"

#include "base/sum.h"
#include "home/report.h"
#include "run/spec.h"

static void read_strings(const struct spec *spec, uint32_t offset, uint32_t count)
{
    const char *start = (const char *)spec->head;
    const char *p = spec_string(spec, offset);
    for (uint32_t i = 0; i < count; i++)
        p += strlen(p) + 1;
    MUST((size_t)(p - start) <= spec->size);
}

static void read_all(const struct spec *spec)
{
    const struct spec_head *head = spec->head;
    nacre_record record = NACRE_RECORD_INIT;
    struct run_state state = {.tree = NACRE_TREE_EMPTY};
    read_strings(spec, head->program, 1);
    read_strings(spec, head->cwd, 1);
    read_strings(spec, head->run_path, 1);
    read_strings(spec, head->argv, head->argc);
    if (head->envc > 0)
        read_strings(spec, head->env, head->envc);
    MUST(strlen(spec_string(spec, head->text)) == head->text_size);
    MUST(report_fill(&state, spec, &record, NULL) == 0);
    MUST(strlen(record.command) <= spec->size);
    nacre_record_done(&record);
}

static int check(void *bytes, size_t size)
{
    int r = spec_check(bytes, size);
    MUST(r <= 0);
    if (r == 0)
        read_all(&(struct spec){.head = bytes, .size = size});
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = malloc(size ? size : 1);
    if (size > 0)
        memcpy(bytes, data, size);
    check(bytes, size);
    /* The same with a head that claims to be right. */
    if (size > sizeof(struct spec_head)) {
        struct spec_head fresh, *head = (void *)bytes;
        spec_head_init(&fresh);
        memcpy(head->magic, fresh.magic, sizeof fresh.magic);
        head->format = fresh.format;
        head->size = (uint32_t)size;
        bytes[size - 1] = '\0';
        spec_head_seal(head);
        check(bytes, size);
    }
    free(bytes);
    return 0;
}
