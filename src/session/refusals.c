#include "session/refusals.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fence/judge.h"
#include "home/denials.h"
#include "local/local.h"
#include "session/session.h"

#define LOOKED_AT ((size_t)64 * 1024) /* the last bytes of each stream */
#define TOKENS    64                  /* of one line */

/* What errno is called, in the C locale and by the runtimes that have words of their own. */
static const char *const complaints[] = {
    "ead-only file system",   "EROFS", "ermission denied", "EACCES",
    "peration not permitted", "EPERM", "resource busy",    "EBUSY",
};

/* Who complains that it may not mount or be somebody else, in words that name no file. */
static const struct {
    const char *sign, *program, *why;
    bool of_root;   /* others may not anyway */
    bool is_enough; /* without one of the words above */
} rights_signs[] = {
    {"No usable sandbox!", "chromium",
     "its own sandbox does not work inside of this one; --no-sandbox switches it off", false, true},
    {"\"no new privileges\" flag is set", "sudo", "nothing gains rights inside", false, true},
    {"bwrap: ", "bwrap", "nothing is mounted inside, so no other sandbox works", false, false},
    {"unshare: ", "unshare", "what a namespace would allow is not allowed inside", false, false},
    {"mount: ", "mount", "nothing is mounted inside", true, false},
    {"chroot: cannot change root", "chroot", "nobody changes the root inside", true, false},
};

struct refusal_search {
    const struct fence *fence;
    const char *workspace; /* NULL = nothing may be changed */
    nacre_record *record;
};

/* -- One path --------------------------------------------------------------------------------- */

/* As the command meant it, without links as far as it exists: the last part may not. */
static bool make_real(const struct refusal_search *f, const char *text, char ret_path[PATH_MAX])
{
    char path[PATH_MAX], real[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s%s%s", text[0] == '/' ? "" : f->record->cwd,
                     text[0] == '/' ? "" : "/", text);
    if (n < 0 || (size_t)n >= sizeof path)
        return false;
    if (realpath(path, ret_path))
        return true;
    char *slash = strrchr(path, '/');
    if (!slash || !slash[1])
        return false;
    *slash = '\0';
    if (!realpath(slash == path ? "/" : path, real))
        return false;
    n = snprintf(ret_path, PATH_MAX, "%s/%s", strcmp(real, "/") == 0 ? "" : real, slash + 1);
    return n > 0 && n < PATH_MAX;
}

/* Without the sandbox: the file itself, or the directory that it would be made in. */
static bool user_could(const char *path, int how)
{
    char above[PATH_MAX];
    if (faccessat(AT_FDCWD, path, how, AT_EACCESS) == 0)
        return true;
    if (errno != ENOENT)
        return false;
    snprintf(above, sizeof above, "%s", path);
    char *slash = strrchr(above, '/');
    slash[slash == above] = '\0';
    return faccessat(AT_FDCWD, above, how, AT_EACCESS) == 0;
}

static void tell(struct refusal_search *f, nacre_denial_kind kind, const char *path,
                 const char *why)
{
    nacre_denial d = {.kind = kind};
    snprintf(d.target, sizeof d.target, "%.*s", (int)sizeof d.target - 1, path);
    snprintf(d.why, sizeof d.why, "%s", why);
    (void)denials_add(f->record, &d);
}

/* Whether the sandbox has to do with it; then it was told. mounted: the message says that a file
 * system is read-only, which is a proof. */
static bool judge_path(struct refusal_search *f, const char *text, bool mounted)
{
    char path[PATH_MAX], why[128];
    if (!make_real(f, text, path))
        return false;
    enum judgement judgement = fence_judge(f->fence, path);
    if (judgement == JUDGED_OPEN)
        return false;
    if (judgement == JUDGED_HIDDEN && user_could(path, R_OK)) {
        tell(f, NACRE_DENIAL_READ, path, "it is hidden");
        return true;
    }
    bool could = user_could(path, W_OK);
    /* What is no file of a user's is not to be allowed either. */
    bool is_system = strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/sys/", 5) == 0;
    if ((!could && !mounted) || is_system || strcmp(text, "-") == 0)
        return false;
    if (!could)
        snprintf(why, sizeof why, "this user may not write there without the sandbox either");
    else if (judgement == JUDGED_PROTECTED && f->workspace)
        snprintf(why, sizeof why, "it is protected");
    else
        snprintf(why, sizeof why,
                 f->workspace ? "it is outside the workspace %.90s" : "this sandbox is read-only",
                 f->workspace);
    tell(f, NACRE_DENIAL_WRITE, path, why);
    return true;
}

/* -- One line --------------------------------------------------------------------------------- */

static const char *complaint_in(const char *line)
{
    for (size_t i = 0; i < ARRAY_SIZE(complaints); i++) {
        const char *at = strstr(line, complaints[i]);
        if (at)
            return at;
    }
    return NULL;
}

/* What stands in quotes, whichever they are. */
static bool judge_quoted(struct refusal_search *f, const char *line, bool mounted)
{
    static const char *const quotes[][2] = {
        {"'", "'"}, {"\"", "\""}, {"`", "'"}, {"\xe2\x80\x98", "\xe2\x80\x99"}};
    char text[PATH_MAX];
    for (size_t i = 0; i < ARRAY_SIZE(quotes); i++) {
        const char *at = line;
        while ((at = strstr(at, quotes[i][0]))) {
            at += strlen(quotes[i][0]);
            const char *end = strstr(at, quotes[i][1]);
            if (!end || end == at || end - at >= PATH_MAX)
                break;
            snprintf(text, sizeof text, "%.*s", (int)(end - at), at);
            if (judge_path(f, text, mounted))
                return true;
            at = end + strlen(quotes[i][1]);
        }
    }
    return false;
}

/* "/usr/bin/ld: cannot open ...": who complains, and not about itself. */
static bool names_itself(const char *line, const char *word, size_t size)
{
    char path[PATH_MAX];
    if (word != line || size == 0 || size >= sizeof path || word[size - 1] != ':')
        return false;
    snprintf(path, sizeof path, "%.*s", (int)size - 1, word);
    return access(path, X_OK) == 0;
}

/* A word with a slash, or the one before the colon before the complaint. */
static bool judge_words(struct refusal_search *f, const char *line, const char *complaint,
                        bool mounted)
{
    char text[PATH_MAX];
    const char *at = line;
    for (int i = 0; i < TOKENS && *at; i++) {
        size_t n = strcspn(at, " \t,;()[]");
        size_t size = n;
        while (size > 0 && strchr(":.'\"", at[size - 1]))
            size--;
        bool before = at + n <= complaint && at[n] && complaint - (at + n) <= 2;
        bool is_path = memchr(at, '/', size) && !names_itself(line, at, n);
        if (size > 0 && size < sizeof text && (is_path || before)) {
            snprintf(text, sizeof text, "%.*s", (int)size, at);
            if (judge_path(f, text, mounted))
                return true;
        }
        at += n;
        at += *at ? 1 : 0;
    }
    return false;
}

/* Whether it was told. */
static bool judge_rights(struct refusal_search *f, const char *line, bool complains)
{
    for (size_t i = 0; i < ARRAY_SIZE(rights_signs); i++) {
        bool meant = strstr(line, rights_signs[i].sign) && (complains || rights_signs[i].is_enough);
        if (!meant || (rights_signs[i].of_root && geteuid() != 0))
            continue;
        tell(f, NACRE_DENIAL_RIGHTS, rights_signs[i].program, rights_signs[i].why);
        return true;
    }
    return false;
}

static void judge_complaint(struct refusal_search *f, const char *line)
{
    const char *complaint = complaint_in(line);
    if (judge_rights(f, line, complaint != NULL) || !complaint)
        return;
    bool mounted = strstr(line, "ead-only file system") || strstr(line, "EROFS");
    if (!judge_quoted(f, line, mounted))
        judge_words(f, line, complaint, mounted);
}

/* -- The output ------------------------------------------------------------------------------- */

static void judge_stream(nacre_session *s, struct refusal_search *f, nacre_stream stream,
                         char *room)
{
    nacre_snapshot snapshot = {0};
    if (f->record->bytes[stream] == 0 ||
        output_snapshot(s, &f->record->id, 1u << stream, LOOKED_AT, &snapshot, NULL) < 0)
        return;
    size_t size = MIN(snapshot.size, LOOKED_AT);
    memcpy(room, snapshot.data, size);
    room[size] = '\0';
    free(snapshot.data);
    for (size_t i = 0; i < size; i++)
        if (!room[i])
            room[i] = ' ';
    char *rest = room;
    for (char *line; (line = strsep(&rest, "\n"));)
        judge_complaint(f, line);
}

void refusals_find(nacre_session *s, nacre_record *record)
{
    struct fence fence;
    struct local *local = s->keepers.self;
    if (!record->sandbox || !record->sandbox[0] || !local ||
        !fences_of_words(&local->fences, record->sandbox, &fence))
        return;
    cleanup_free char *room = malloc(LOOKED_AT + 1);
    bool writable = fence_judge(&fence, s->cwd) == JUDGED_OPEN;
    struct refusal_search f = {
        .fence = &fence, .workspace = writable ? s->cwd : NULL, .record = record};
    for (int stream = 0; room && stream < 2; stream++)
        judge_stream(s, &f, (nacre_stream)stream, room);
}
