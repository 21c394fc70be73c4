#include "view/fence_words.h"

#include <stdbool.h>
#include <string.h>

#include "base/defs.h"
#include "text/brief.h"
#include "view/record_words.h"

/* clang-format off */
static const struct {
    const char *name, *words;
} denial_kinds[] = {
    [NACRE_DENIAL_EXEC]      = {"exec",      "Rules: refused to run "},
    [NACRE_DENIAL_NETWORK]   = {"network",   "Sandbox: refused to connect to "},
    [NACRE_DENIAL_SOCKET]    = {"socket",    "Sandbox: refused to talk to the socket "},
    [NACRE_DENIAL_PROTECTED] = {"protected", "Sandbox: moved aside "},
    [NACRE_DENIAL_WRITE]     = {"write",     "Sandbox: refused to write "},
    [NACRE_DENIAL_READ]      = {"read",      "Sandbox: refused to read "},
    [NACRE_DENIAL_RIGHTS]    = {"rights",    "Sandbox: refused rights to "},
};
/* clang-format on */

static int write_denial(struct buf *out, const nacre_denial *d)
{
    if ((unsigned)d->kind >= ARRAY_SIZE(denial_kinds))
        return 0;
    int r = buf_str(out, denial_kinds[d->kind].words);
    if (r == 0)
        r = brief_inline(out, d->target, strnlen(d->target, sizeof d->target));
    if (r == 0 && d->program[0]) {
        r = buf_str(out, " (");
        if (r == 0)
            r = brief_inline(out, d->program, strnlen(d->program, sizeof d->program));
        if (r == 0)
            r = d->pid > 0 ? buf_printf(out, ", pid %d)", (int)d->pid) : buf_str(out, ")");
    }
    if (r == 0)
        r = buf_printf(out, ": %s\n", d->why);
    return r;
}

/* -- What would allow it ----------------------------------------------------------------------- */

static bool could_be_allowed(const nacre_denial *d, nacre_denial_kind kind)
{
    return d->kind == kind && !strstr(d->why, "without the sandbox either") &&
           !strstr(d->why, "is protected");
}

/* "sandbox_write": ["/etc/app.conf"] */
static int write_entry(struct buf *out, const nacre_record *record, nacre_denial_kind kind,
                       const char *setting, bool *first)
{
    size_t before = out->len;
    int count = 0;
    int r = buf_printf(out, "%s\"%s\": [", *first ? "" : ", ", setting);
    for (int i = 0; r == 0 && i < record->denial_count; i++) {
        const nacre_denial *d = &record->denials[i];
        bool nameless = strstr(d->why, "names are not looked up") != NULL;
        if (!could_be_allowed(d, kind) || (nameless && count > 0))
            continue;
        r = buf_str(out, count++ ? ", \"" : "\"");
        if (r == 0)
            r = nameless ? buf_str(out, "HOST")
                         : brief_inline(out, d->target, strnlen(d->target, sizeof d->target));
        if (r == 0)
            r = buf_str(out, "\"");
    }
    if (r == 0 && count > 0)
        r = buf_str(out, "]");
    *first = *first && count == 0;
    if (count == 0) {
        out->len = before;
        out->data[before] = '\0';
    }
    return r;
}

static int write_remedy(struct buf *out, const nacre_record *record)
{
    static const char lead[] = "Sandbox: its user can allow this in the configuration: ";
    static const struct {
        nacre_denial_kind kind;
        const char *setting;
    } entries[] = {{NACRE_DENIAL_WRITE, "sandbox_write"},
                   {NACRE_DENIAL_NETWORK, "sandbox_network"},
                   {NACRE_DENIAL_SOCKET, "sandbox_sockets"}};
    bool first = true;
    size_t before = out->len;
    int r = buf_str(out, lead);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(entries); i++)
        r = write_entry(out, record, entries[i].kind, entries[i].setting, &first);
    if (r < 0 || !first)
        return r < 0 ? r : buf_str(out, "\n");
    out->len = before;
    out->data[before] = '\0';
    return 0;
}

/* -- The whole -------------------------------------------------------------------------------- */

#define MORE_DENIED "Refused: %d things more\n"

int fence_words(struct buf *out, const nacre_record *record, size_t most)
{
    size_t begin = out->len;
    int r = 0;
    for (int i = 0; r == 0 && i < record->denial_count; i++) {
        size_t before = out->len;
        r = write_denial(out, &record->denials[i]);
        if (r == 0 && out->len - begin + sizeof MORE_DENIED + 8 > most) {
            out->len = before;
            out->data[before] = '\0';
            return most < sizeof MORE_DENIED + 8
                       ? 0
                       : buf_printf(out, MORE_DENIED, record->denial_count - i);
        }
    }
    size_t before = out->len;
    if (r == 0 && record->denial_count > 0)
        r = write_remedy(out, record);
    if (r == 0 && out->len - begin > most) {
        out->len = before;
        out->data[before] = '\0';
    }
    return r;
}

static json_t *json_denial(const nacre_denial *d)
{
    return json_pack("{s:s, s:o, s:o, s:i, s:s}", "kind", denial_kinds[d->kind].name, "target",
                     json_text(d->target, strlen(d->target)), "program",
                     json_text(d->program, strlen(d->program)), "pid", (int)d->pid, "why", d->why);
}

static json_t *json_denials(const nacre_record *record, bool of_rules)
{
    json_t *denials = json_array();
    for (int i = 0; i < record->denial_count; i++) {
        const nacre_denial *d = &record->denials[i];
        if ((unsigned)d->kind < ARRAY_SIZE(denial_kinds) &&
            (d->kind == NACRE_DENIAL_EXEC) == of_rules)
            json_array_append_new(denials, json_denial(d));
    }
    return denials;
}

json_t *json_sandbox(const nacre_record *record)
{
    if (!record->sandbox || !record->sandbox[0])
        return json_null();
    return json_pack("{s:s, s:o}", "mode", record->sandbox, "denials", json_denials(record, false));
}

json_t *json_refused(const nacre_record *record)
{
    return json_denials(record, true);
}
