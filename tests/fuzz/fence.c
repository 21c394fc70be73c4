/* Arbitrary bytes as what a fence is made of: refused, or safe to read from end to end. */
#include "fuzz.h"

#include "run/fence.h"

static void check(const char *bytes, size_t size)
{
    struct fence fence;
    if (fence_check(bytes, size, &fence) < 0)
        return;
    for (uint32_t i = 0; i < fence.head->count; i++) {
        const struct fence_place *place = &fence_places(&fence)[i];
        MUST(fence_string(&fence, place->path)[0] == '/');
        MUST(place->path + strlen(fence_string(&fence, place->path)) < size);
        MUST(place->source == 0 || strlen(fence_string(&fence, place->source)) < size);
    }
    MUST(fence.head->canary == 0 || strlen(fence_string(&fence, fence.head->canary)) < size);
    MUST(strlen(fence_string(&fence, fence.head->words)) < size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = malloc(size ? size : 1);
    if (size > 0)
        memcpy(bytes, data, size);
    check(bytes, size);
    /* The same with a head that claims to be right. */
    if (size > sizeof(struct fence_head)) {
        struct fence_head *head = (void *)bytes;
        memcpy(head->magic, "NACREFEN", sizeof head->magic);
        head->format = RUN_FORMAT;
        head->size = (uint32_t)size;
        bytes[size - 1] = '\0';
        head->sum = fence_sum(bytes, size);
        check(bytes, size);
    }
    free(bytes);
    return 0;
}
