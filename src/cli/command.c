#include "cli/command.h"

#include <stdint.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/out.h"

char *join_words(char **words, size_t count)
{
    struct buf text cleanup_buf;
    buf_init(&text, SIZE_MAX / 2);
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (i > 0)
            r = buf_str(&text, " ");
        if (r == 0)
            r = buf_str(&text, words[i]);
    }
    char *joined = r == 0 ? buf_take(&text) : NULL;
    if (!joined)
        failure("out of memory");
    return joined;
}

int check_env(const char *verb, const char *const *env)
{
    for (; env && *env; env++) {
        const char *equals = strchr(*env, '=');
        if (!equals || equals == *env)
            return usage_error("%s: --env takes NAME=value; got \"%s\"", verb, *env);
    }
    return STATUS_OK;
}
