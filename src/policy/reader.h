/* What the parts of the reader share. Each returns false when the text cannot be followed any
 * further: then there is a doubt about all of it, and nobody reads on. */
#pragma once

#include <string.h>

#include "policy/script.h"
#include "policy/variable_names.h"

#define READ_DEPTH    48
#define READ_COMMANDS 4096
#define READ_NAMES    128
#define READ_HEREDOCS 8

/* A variable that the text sets, or that it calculates with. */
struct variable {
    const char *name;
    size_t size;
    bool set;
    bool set_otherwise; /* to what need not be a number */
    bool calculated;
};

struct heredoc {
    const struct shell_word *delimiter;
    bool strip; /* tabs at the beginning of lines */
};

struct script_reader {
    struct script *script;
    const char *at, *end; /* what is read now */
    const char *begin;    /* of it */
    enum dialect dialect;
    bool nested;  /* in text that comes from a word: lines mean nothing to anybody */
    bool started; /* what is read now is started by a command that was listed */
    int depth;
    bool no_memory;
    char *piece; /* the word being read */
    size_t piece_size, piece_room;
    struct heredoc heredocs[READ_HEREDOCS]; /* whose texts come after this line */
    size_t heredoc_count;
    bool in_prefix;             /* what is assigned now holds for one command */
    bool sets_separators;       /* and IFS is */
    struct variable *variables; /* READ_NAMES of them */
    size_t variable_count;
};

/* Says why the text cannot be followed; false. */
bool reader_give_up(struct script_reader *r, const char *why);
/* Says what is not certain about the text, which is read on. */
void reader_doubt(struct script_reader *r, const char *why);

static inline bool reader_sees(const struct script_reader *r, char c)
{
    return r->at < r->end && *r->at == c;
}

static inline bool reader_sees_text(const struct script_reader *r, const char *text, size_t size)
{
    return (size_t)(r->end - r->at) >= size && memcmp(r->at, text, size) == 0;
}

static inline bool is_shell_blank(char c)
{
    return c == ' ' || c == '\t';
}

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static inline bool is_variable_byte(char c)
{
    return is_name_start(c) || is_digit(c);
}

/* Ends a word where it is not quoted. */
static inline bool is_meta(char c)
{
    return is_shell_blank(c) || c == '\n' || c == ';' || c == '&' || c == '|' || c == '(' ||
           c == ')' || c == '<' || c == '>';
}

static inline size_t variable_name_length(const char *at, const char *end)
{
    const char *p = at;
    if (p < end && is_name_start(*p))
        while (p < end && is_variable_byte(*p))
            p++;
    return (size_t)(p - at);
}

/* grammar.c: a list of commands up to the end of the text, or to a closing parenthesis, which is
 * not taken. */
bool read_list_to_end(struct script_reader *r);
bool read_list_to_parenthesis(struct script_reader *r);
/* Another text, such as the argument of eval. */
bool read_inner(struct script_reader *r, const char *text, size_t size, enum dialect dialect,
                bool started);

/* word.c: what is before a metacharacter. */
bool read_word(struct script_reader *r, struct shell_word *ret_word);
/* One more byte of the word that is being read. */
bool reader_add(struct script_reader *r, struct shell_word *w, char c);
/* A word behind =~. */
bool read_regex(struct script_reader *r, struct shell_word *ret_word);
/* Blanks, continued lines and comments. */
void skip_blanks(struct script_reader *r);
/* The texts of here-documents, behind the newline. */
bool read_heredocs(struct script_reader *r);
/* NAME=..., NAME[...]=..., NAME=(...): 1 if there was one, 0 if not, -1 if it cannot be followed.
 */
int read_assignment(struct script_reader *r);

/* expansion.c: at a $: what it becomes. */
bool read_dollar(struct script_reader *r, bool quoted, struct shell_word *word);
bool read_backquotes(struct script_reader *r);
bool read_process(struct script_reader *r);
/* A calculation up to size bytes, without what encloses it. */
bool read_arithmetic(struct script_reader *r, const char *at, size_t size);
/* What "((" at r->at encloses, with all of it taken. */
bool read_parenthesized_arithmetic(struct script_reader *r);

/* variables.c: what the text sets, and calculates with. */
void variable_set(struct script_reader *r, const char *name, size_t size,
                  const struct shell_word *value);
void variable_calculated(struct script_reader *r, const char *name, size_t size);
/* The judgement over all of them, at the end. */
void variables_judge(struct script_reader *r);

/* The size of the name that a word is, or that it sets; 0 = it is neither. */
size_t word_name(const struct shell_word *w, bool *ret_sets);

/* meaning.c: lists a command, and what it does beyond being run. */
bool list_command(struct script_reader *r, struct shell_word *argv, size_t argc, bool writes);
/* Says what is not certain about the command at an index of the list. */
bool command_doubt(struct script_reader *r, size_t index, const char *why);

/* unwrap.c: the command that the one at an index does nothing but start. */
bool read_wrapped(struct script_reader *r, size_t index);
