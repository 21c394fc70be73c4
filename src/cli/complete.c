#include "cli/complete.h"

#include <stdio.h>
#include <string.h>

#include <nacre/nacre.h>

#include "cli/verbs.h"
#include "config/settings.h"
#include "console/out.h"
#include "console/shells.h"
#include "mcp/clients.h"

#define ABOUT_COLUMNS 60

/* What was typed so far, as the parser of arguments (console/verb.c) will understand it. */
struct typed {
    char **words;
    size_t count;
    const struct verb *verb;
    const char *current;          /* the word at the cursor */
    const char *lead;             /* what of it stays in front of each candidate: "--stream=" */
    size_t lead_length;           /* of that; current begins behind it */
    const struct option *pending; /* the option whose value the word at the cursor is */
    size_t positional;            /* words before it that are no options */
    size_t command_at;            /* the index of the first word of a command; 0 = not yet */
    bool only_words;
};

/* -- Candidates ------------------------------------------------------------------------------- */

static bool goes_on_from(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* One line, if the candidate goes on what was typed. about may be NULL, and is a stranger's. */
static void offer_word(const struct typed *t, const char *candidate, const char *about)
{
    struct buf line cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    if (!goes_on_from(candidate, t->current))
        return;
    if (about && brief_line(&line, about, ABOUT_COLUMNS) < 0)
        return;
    printf("%.*s%s\t%s\n", (int)t->lead_length, t->lead, candidate, line.data ? line.data : "");
}

/* Each of "out|err", or of "claude, codex". */
static void offer_each(const struct typed *t, const char *words, const char *separators)
{
    char word[64];
    while (words && *words) {
        size_t length = strcspn(words, separators);
        snprintf(word, sizeof word, "%.*s", (int)length, words);
        offer_word(t, word, NULL);
        words += length + strspn(words + length, separators);
    }
}

struct shell_offers {
    const struct typed *typed;
    enum offering which;
};

static bool was_typed(const struct typed *t, const char *id)
{
    for (size_t i = 1; i + 1 < t->count; i++)
        if (strlen(t->words[i]) >= NACRE_ID_PREFIX_MIN && goes_on_from(id, t->words[i]))
            return true;
    return false;
}

static int offer_shell(const nacre_listed *listed, void *userdata)
{
    const struct shell_offers *offers = userdata;
    const nacre_record *record = listed->record;
    bool over = record->outcome != NACRE_RUNNING && record->tree == NACRE_TREE_EMPTY;
    nacre_id_text id = nacre_id_short(&record->id);
    struct buf about cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    char status[64];
    if ((offers->which == OFFERED_ENDED && !over) ||
        was_typed(offers->typed, nacre_id_format(&record->id).s))
        return 0;
    if (buf_printf(&about, "%s %s%s%s%s", nacre_status(record, status, sizeof status),
                   *record->name ? "[" : "", record->name, *record->name ? "] " : "",
                   record->command) == 0)
        offer_word(offers->typed, id.s, about.data);
    return 0;
}

static int offer_session(const nacre_session_info *info, void *userdata)
{
    char about[32];
    snprintf(about, sizeof about, "%d running, %d in all", info->running, info->shells);
    offer_word(userdata, *info->name ? info->name : nacre_id_short(&info->id).s, about);
    return 0;
}

static int offer_setting(const nacre_setting_info *info, void *userdata)
{
    offer_word(userdata, info->name, info->help);
    return 0;
}

static void offer_settings(const struct typed *t)
{
    nacre_settings *settings cleanup_settings = NULL;
    if (nacre_settings_load(NULL, &settings, NULL) == 0)
        nacre_settings_each(settings, offer_setting, (void *)t);
}

static void offer_from_home(const struct typed *t, enum offering which)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_list_options list = NACRE_LIST_OPTIONS_INIT;
    struct shell_offers offers = {t, which};
    nacre_session *session cleanup_session = NULL;
    options.single = options.person = 1;
    list.which = NACRE_LIST_HOME;
    list.only_alive = which == OFFERED_ALIVE;
    if (nacre_open(&options, &session, NULL) < 0)
        return;
    if (which == OFFERED_SESSIONS)
        nacre_list_sessions(session, offer_session, (void *)t, NULL);
    else
        nacre_list(session, &list, offer_shell, &offers, NULL);
}

static void offer_signals(const struct typed *t)
{
    static const char names[] = "TERM INT HUP QUIT KILL USR1 USR2 STOP CONT";
    offer_each(t, names, " ");
}

static void offer_verbs(const struct typed *t)
{
    for (const struct verb *const *v = verb_table; *v; v++)
        offer_word(t, (*v)->name, (*v)->summary);
    for (const struct verb *const *v = verb_table; *v && *t->current; v++)
        offer_each(t, (*v)->aliases, " ");
}

static void offer_values(const struct typed *t, enum offering which, const char *called)
{
    switch (which) {
    case OFFERED_FILES:
        puts(":files");
        return;
    case OFFERED_FOLDERS:
        puts(":folders");
        return;
    case OFFERED_PROGRAMS:
        printf(":program %zu\n", t->command_at);
        return;
    case OFFERED_SHELLS:
    case OFFERED_ALIVE:
    case OFFERED_ENDED:
    case OFFERED_SESSIONS:
        offer_from_home(t, which);
        return;
    case OFFERED_SETTINGS:
        offer_settings(t);
        return;
    case OFFERED_CLIENTS:
        offer_each(t, mcp_client_names(), ", ");
        return;
    case OFFERED_SIGNALS:
        offer_signals(t);
        return;
    case OFFERED_VERBS:
        offer_verbs(t);
        return;
    case OFFERED_NOTHING:
        if (strchr(called, '|'))
            offer_each(t, called, "|");
        return;
    }
}

/* -- Where the cursor is ---------------------------------------------------------------------- */

static const struct option *named_option(const struct verb *verb, const char *name, size_t length)
{
    for (const struct option *o = verb->options; o->name; o++)
        if (strlen(o->name) == length && memcmp(o->name, name, length) == 0)
            return o;
    return NULL;
}

/* The option of the verb whose value the next word is, if this word is one that has none yet. */
static const struct option *wants_value(const struct verb *verb, const char *word)
{
    const struct option *found = NULL;
    if (goes_on_from(word, "--"))
        found = named_option(verb, word + 2, strlen(word + 2));
    for (const struct option *o = verb->options; !found && word[1] != '-' && o->name; o++)
        if (o->letter && o->letter == word[strlen(word) - 1])
            found = o;
    return found && found->kind != OPTION_FLAG ? found : NULL;
}

/* A word before the cursor. Some shells hand over "--name=value" in three words. */
static void pass_word(struct typed *t, size_t at)
{
    const char *word = t->words[at];
    if (strcmp(word, "=") == 0)
        return;
    if (t->pending) {
        t->pending = NULL;
    } else if (!t->only_words && strcmp(word, "--") == 0) {
        t->only_words = true;
    } else if (t->only_words || word[0] != '-' || word[1] == '\0') {
        t->positional++;
        if (t->verb->is_command && t->command_at == 0)
            t->command_at = at;
        t->only_words |= t->verb->is_command;
    } else {
        t->pending = wants_value(t->verb, word);
    }
}

/* "--stream=o" in one word: the value is what is completed, and the rest stays. */
static void split_current(struct typed *t)
{
    const char *equals = strchr(t->current, '=');
    if (t->pending || t->only_words || !goes_on_from(t->current, "--") || !equals)
        return;
    t->pending = named_option(t->verb, t->current + 2, (size_t)(equals - t->current) - 2);
    t->lead = t->current;
    t->lead_length = (size_t)(equals + 1 - t->current);
    t->current = equals + 1;
}

static bool is_given(const struct typed *t, const struct option *o)
{
    for (size_t i = 1; i + 1 < t->count; i++)
        if (goes_on_from(t->words[i], "--") &&
            named_option(t->verb, t->words[i] + 2, strcspn(t->words[i] + 2, "=")) == o)
            return o->kind != OPTION_LIST;
    return false;
}

static void offer_options(const struct typed *t)
{
    char name[64];
    for (const struct option *o = t->verb->options; o->name; o++) {
        snprintf(name, sizeof name, "--%s", o->name);
        if (!is_given(t, o))
            offer_word(t, name, o->help);
    }
    offer_word(t, "--help", "what the verb does");
}

static void offer_words(struct typed *t)
{
    const struct verb *verb = t->verb;
    if (t->positional > 0 && verb->max_words != SIZE_MAX)
        return;
    if (verb->is_command && t->command_at == 0)
        t->command_at = t->count - 1;
    offer_values(t, verb->offered, verb->words);
}

static void complete_verb(struct typed *t)
{
    for (size_t i = 1; i + 1 < t->count; i++)
        pass_word(t, i);
    if (strcmp(t->current, "=") == 0 && t->pending)
        t->current = "";
    split_current(t);
    if (t->pending)
        offer_values(t, t->pending->offered, t->pending->value);
    else if (t->current[0] == '-' && !t->only_words)
        offer_options(t);
    else
        offer_words(t);
}

int complete(char **words, size_t count)
{
    struct typed t = {
        .words = words, .count = count, .current = count ? words[count - 1] : "", .lead = ""};
    bool of_help = count > 1 && strcmp(words[0], "help") == 0;
    t.verb = count > 1 ? verb_find(words[0]) : NULL;
    if (t.verb)
        complete_verb(&t);
    else if (count <= 2 && (count < 2 || of_help))
        offer_verbs(&t);
    if (count < 2)
        offer_word(&t, "help", "explain a verb");
    return STATUS_OK;
}
