#include "policy/shell_words.h"

#include <string.h>

bool word_is(const struct shell_word *w, const char *text)
{
    return w->kind == WORD_LITERAL && strcmp(w->text, text) == 0;
}

const char *program_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
