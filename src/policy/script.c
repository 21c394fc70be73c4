/* One reading of a text, and of texts within it. */
#include "policy/script.h"

#include <errno.h>
#include <stdlib.h>

#include "base/defs.h"
#include "policy/reader.h"

/* UTF-8, and of what is no character only tabs and newlines: everything else is taken for something
 * by one reader and for something else by another. */
static const char *find_strange(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < 0x20 && c != '\t' && c != '\n') || c == 0x7f)
            return "it has a control character in it";
        if (c < 0x80)
            continue;
        size_t more = c >= 0xf0 && c < 0xf5 ? 3 : c >= 0xe0 ? 2 : 1;
        if (c < 0xc2 || c >= 0xf5 || i + more >= size)
            return "it is not UTF-8";
        for (size_t k = 1; k <= more; k++)
            if (((unsigned char)text[i + k] & 0xc0) != 0x80)
                return "it is not UTF-8";
        i += more;
    }
    return NULL;
}

static void read_text(struct script_reader *r)
{
    size_t size = (size_t)(r->end - r->at);
    const char *strange =
        size > SCRIPT_MAX ? "it is too long to be read" : find_strange(r->at, size);
    if (strange) {
        reader_give_up(r, strange);
        return;
    }
    bool whole = read_list_to_end(r);
    if (!whole || r->heredoc_count > 0)
        reader_give_up(r, whole ? "a here-document is not ended" : "it cannot be followed");
}

bool read_inner(struct script_reader *r, const char *text, size_t size, enum dialect dialect,
                bool started)
{
    struct script_reader outer = *r;
    if (r->depth >= READ_DEPTH)
        return reader_give_up(r, "it is nested too deeply");
    r->at = r->begin = text;
    r->end = text + size;
    r->dialect = dialect;
    r->nested = true;
    r->started = r->started || started;
    r->heredoc_count = 0;
    r->depth++;
    read_text(r);
    outer.piece = r->piece;
    outer.piece_room = r->piece_room;
    outer.variable_count = r->variable_count;
    outer.no_memory = r->no_memory;
    *r = outer;
    return !r->no_memory;
}

static bool prepare(struct script_reader *r)
{
    r->variables = arena_take(&r->script->arena, READ_NAMES * sizeof *r->variables);
    r->no_memory = !r->variables;
    return !r->no_memory;
}

static int finish(struct script_reader *r)
{
    variables_judge(r);
    free(r->piece);
    return r->no_memory ? -ENOMEM : 0;
}

int script_read(const char *text, size_t size, enum dialect dialect, struct script *ret_script)
{
    *ret_script = (struct script){0};
    struct script_reader r = {
        .script = ret_script, .at = text, .begin = text, .end = text + size, .dialect = dialect};
    if (prepare(&r))
        read_text(&r);
    return finish(&r);
}

int script_read_words(const char *const *argv, struct script *ret_script)
{
    *ret_script = (struct script){0};
    struct script_reader r = {.script = ret_script, .at = "", .nested = true};
    r.begin = r.end = r.at;
    size_t count = 0;
    if (!prepare(&r))
        return -ENOMEM;
    while (argv[count])
        count++;
    struct shell_word *words = arena_take(&ret_script->arena, (count + 1) * sizeof *words);
    r.no_memory = !words;
    for (size_t i = 0; words && i < count; i++) {
        size_t size = strlen(argv[i]);
        words[i] = (struct shell_word){.text = arena_copy(&ret_script->arena, argv[i], size),
                                       .size = size};
        r.no_memory = r.no_memory || !words[i].text;
    }
    if (!r.no_memory && count > 0)
        list_command(&r, words, count, false);
    return finish(&r);
}

void script_done(struct script *script)
{
    free(script->commands);
    arena_done(&script->arena);
    *script = (struct script){0};
}

const char *script_first_doubt(const struct script *script)
{
    for (size_t i = 0; !script->doubt && i < script->count; i++)
        if (script->commands[i].doubt)
            return script->commands[i].doubt;
    return script->doubt;
}
