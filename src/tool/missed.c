#include "tool/missed.h"

#include <string.h>
#include <unistd.h>

#include "base/ascii.h"
#include "base/defs.h"
#include "base/text.h"
#include "config/settings.h"
#include "session/session.h"

#define NAMES_MAX 200 /* bytes of the names in one note */
#define QUOTE_MAX 100

/* -- Variables -------------------------------------------------------------------------------- */

static bool is_in_name(char c)
{
    return ascii_is_alnum(c) || c == '_';
}

/* Whether a command speaks of a variable, which it mostly does with a $ before it. */
static bool speaks_of(const char *command, const char *name, size_t size)
{
    for (const char *at = command; (at = strstr(at, name)); at += size)
        if ((at == command || !is_in_name(at[-1])) && !is_in_name(at[size]))
            return true;
    return false;
}

static bool is_set(const char *const *env, const char *name, size_t size)
{
    for (; env && *env; env++)
        if (strncmp(*env, name, size) == 0 && (*env)[size] == '=')
            return true;
    return false;
}

/* The names of what was withheld: of those the command speaks of, or of all. */
static void list_withheld(struct buf *out, nacre_session *s, const nacre_record *record,
                          const char *const *env, bool all)
{
    struct secret_rules rules = settings_secret_rules(s->settings);
    char name[NAMES_MAX];
    for (char **entry = environ; entry && *entry; entry++) {
        size_t size = strcspn(*entry, "=");
        enum secret why = size < sizeof name ? secrets_is_secret(*entry, &rules) : SECRET_NOT;
        if (why == SECRET_NOT || is_set(env, *entry, size))
            continue;
        memcpy(name, *entry, size);
        name[size] = '\0';
        if ((all || speaks_of(record->command, name, size)) && out->len + size + 2 < NAMES_MAX)
            buf_printf(out, "%s%s", out->len > 0 ? ", " : "", name);
    }
}

static bool is_unhappy(const nacre_record *record)
{
    return record->outcome == NACRE_EXITED ? record->exit_code != 0
                                           : record->outcome == NACRE_SIGNALED;
}

void missed_variables(struct answer *a, const nacre_record *record, const char *const *env)
{
    struct buf names cleanup_buf = BUF_UP_TO(NAMES_MAX);
    nacre_session *s = a->session;
    if (record->tier == NACRE_TIER_CLIENT)
        return;
    list_withheld(&names, s, record, env, false);
    if (names.len == 0 && is_unhappy(record) && !atomic_exchange(&s->told_withheld, true))
        list_withheld(&names, s, record, env, true);
    if (names.len > 0)
        answer_note(a,
                    "withheld from commands as secrets: %s; the user lets one pass by its name in "
                    "\"env_allow\" of the configuration",
                    names.data);
}

/* -- Terminals -------------------------------------------------------------------------------- */

static const char *const wants[] = {
    "not a terminal",
    "not to a terminal",
    "not from a terminal",
    "not a tty",
    "no tty",
    "tty get",
    "requires a tty",
    "a terminal is req",
    "error opening terminal",
    "must be a terminal",
    "/dev/tty",
    "inappropriate ioctl for device",
};

static bool asks_for_terminal(const char *line, size_t size)
{
    for (size_t i = 0; i < ARRAY_SIZE(wants); i++) {
        size_t n = strlen(wants[i]);
        for (size_t at = 0; at + n <= size; at++)
            if (ascii_is_same(line + at, wants[i], n))
                return true;
    }
    return false;
}

void missed_terminal(struct answer *a, const nacre_record *record)
{
    const char *line = a->text.data ? a->text.data : "";
    if (record->outcome == NACRE_EXITED && record->exit_code == 0)
        return;
    while (*line) {
        size_t size = strcspn(line, "\n");
        if (asks_for_terminal(line, MIN(size, (size_t)(4 * QUOTE_MAX)))) {
            answer_note(a, "\"%.*s\": it wants a terminal, and has none",
                        (int)text_whole(line, MIN(size, (size_t)QUOTE_MAX)), line);
            return;
        }
        line += size + (line[size] == '\n');
    }
}
