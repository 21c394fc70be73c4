#include "session/permissions.h"

#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "base/err.h"
#include "config/setting_table.h"
#include "fence/fence_plan.h"
#include "fence/judge.h"
#include "run/hosts.h"
#include "session/sandbox.h"
#include "session/session.h"
#include "view/record_words.h"

/* What the sandbox of the session is, while it is looked at. */
struct permission_search {
    struct fence_wish wish;
    struct fence_plan plan;
    struct fence fence;
};

/* -- One of each kind: 1 = it is asked for, 0 = it is had already
 * ----------------------------------- */

typedef int look_fn(const struct permission_search *f, const char *text, char ret[PATH_MAX],
                    nacre_error *err);

static int look_for_path(const struct permission_search *f, const char *what, const char *text,
                         char ret[PATH_MAX], nacre_error *err)
{
    int r = *text ? fence_resolve(&f->wish, text, ret) : -EINVAL;
    return r == 0
               ? 0
               : err_sys(err, NACRE_EINVAL, -r, "sandbox",
                         "permissions: %s names %.120s, which cannot be used; name what is there, "
                         "such as the directory in which it is to be",
                         what, text);
}

static int look_for_write(const struct permission_search *f, const char *text, char ret[PATH_MAX],
                          nacre_error *err)
{
    int r = look_for_path(f, "write", text, ret, err);
    if (r < 0)
        return r;
    enum judgement judgement = fence_judge(&f->fence, ret);
    if (judgement != JUDGED_HIDDEN && judgement != JUDGED_PROTECTED)
        return judgement != JUDGED_OPEN;
    return err_sys(err, NACRE_EINVAL, EPERM, "sandbox",
                   "permissions: %.120s is %s by the configuration, and no call gets it", ret,
                   judgement == JUDGED_HIDDEN ? "hidden" : "protected");
}

static int look_for_host(const struct permission_search *f, const char *text, char ret[PATH_MAX],
                         nacre_error *err)
{
    const char *rule;
    size_t size;
    const char *fault = strchr(text, '\n') || !*text ? "it is no host" : NULL;
    fault = fault ? fault : hosts_find_fault(text, &rule, &size);
    if (fault || strlen(text) >= HOST_TEXT_SIZE)
        return err_sys(err, NACRE_EINVAL, EINVAL, "sandbox", "permissions: hosts: \"%.100s\" %s",
                       text, fault ? fault : "is too long");
    snprintf(ret, PATH_MAX, "%s", text);
    for (const char *const *had = f->wish.network; had && *had; had++)
        if (strcmp(*had, "on") == 0 || strcmp(*had, text) == 0)
            return 0;
    return 1;
}

static int look_for_socket(const struct permission_search *f, const char *text, char ret[PATH_MAX],
                           nacre_error *err)
{
    int r = look_for_path(f, "sockets", text, ret, err);
    const struct fence_place *places = fence_places(&f->fence);
    struct stat st;
    if (r < 0)
        return r;
    if (stat(ret, &st) < 0 || !S_ISSOCK(st.st_mode))
        return err_sys(err, NACRE_EINVAL, ENOTSOCK, "sandbox",
                       "permissions: sockets names %.120s, which is no socket", ret);
    for (uint32_t i = 0; i < f->fence.head->count; i++)
        if (places[i].kind == FENCE_SOCKET &&
            strcmp(fence_string(&f->fence, places[i].path), ret) == 0)
            return 0;
    return 1;
}

static int look_for_all(const struct permission_search *f, look_fn *look, const char *const *list,
                        const char *const **ret_list, nacre_error *err)
{
    char found[PATH_MAX];
    size_t count = 0;
    const char **kept = calloc(fence_more_count(list) + 1, sizeof *kept);
    *ret_list = kept;
    if (!kept)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    for (; list && *list; list++) {
        int r = look(f, *list, found, err);
        if (r < 0)
            return r;
        if (r > 0 && !(kept[count++] = strdup(found)))
            return err_set(err, NACRE_ENOMEM, "out of memory");
    }
    return 0;
}

/* -- All of it -------------------------------------------------------------------------------- */

bool permissions_are_none(const struct permissions *p)
{
    return !p->full && fence_more_is_none(&p->more);
}

void permissions_done(struct permissions *p)
{
    fence_more_done(&p->more);
    *p = (struct permissions){0};
}

static int look_for_each(const struct permission_search *f, const nacre_permissions *asked,
                         struct permissions *ret, nacre_error *err)
{
    int r = look_for_all(f, look_for_write, asked->write, &ret->more.write, err);
    if (r == 0)
        r = look_for_all(f, look_for_host, asked->hosts, &ret->more.hosts, err);
    if (r == 0)
        r = look_for_all(f, look_for_socket, asked->sockets, &ret->more.sockets, err);
    return r;
}

int permissions_find(nacre_session *s, const nacre_command *command, struct permissions *ret,
                     nacre_error *err)
{
    const nacre_permissions *asked = &command->permissions;
    struct permission_search f = {0};
    *ret = (struct permissions){0};
    const struct fence_more lists = {asked->write, asked->hosts, asked->sockets};
    if (!asked->full && fence_more_is_none(&lists))
        return 0;
    int r = session_compose_fence(s, command->sandbox, &f.wish, &f.plan, err);
    if (r < 0 || f.wish.mode == FENCE_OFF)
        return r;
    ret->full = asked->full;
    r = fence_check(f.plan.record.data, f.plan.record.len, &f.fence);
    r = r < 0 ? err_sys(err, NACRE_EBACKEND, -r, "sandbox", "the sandbox cannot be read")
              : look_for_each(&f, asked, ret, err);
    fence_plan_done(&f.plan);
    if (r < 0)
        permissions_done(ret);
    return r;
}

nacre_permissions permissions_granted(const struct permissions *p)
{
    return (nacre_permissions){p->more.write, p->more.hosts, p->more.sockets, p->full};
}

/* -- Words ------------------------------------------------------------------------------------ */

static int describe_list(struct buf *out, const char *what, const char *const *list)
{
    int r = 0;
    for (size_t i = 0; r == 0 && list && list[i]; i++)
        r = i > 0 ? buf_printf(out, ", %s", list[i])
                  : buf_printf(out, "%s%s %s", out->len > 0 ? "; " : "", what, list[i]);
    return r;
}

int permissions_describe(const struct permissions *p, struct buf *out)
{
    int r = p->full ? buf_str(out, "to run without the sandbox") : 0;
    if (r == 0)
        r = describe_list(out, "to write", p->more.write);
    if (r == 0)
        r = describe_list(out, "to reach", p->more.hosts);
    return r == 0 ? describe_list(out, "to talk to", p->more.sockets) : r;
}

int permissions_write_setting(struct buf *out, nacre_setting setting, const char *const *list)
{
    json_auto_t *values = json_array();
    for (size_t i = 0; list && list[i]; i++)
        json_array_append_new(values, json_text(list[i], strlen(list[i])));
    if (json_array_size(values) == 0)
        return 0;
    cleanup_free char *text = json_dumps(values, 0);
    return text ? buf_printf(out, "%s\"%s\": %s", out->len > 0 ? ", " : "",
                             setting_table[setting].name, text)
                : -ENOMEM;
}

int permissions_write_line(const struct permissions *p, struct buf *out)
{
    if (p->full)
        return buf_str(out, "\"sandbox\": \"off\"");
    int r = permissions_write_setting(out, NACRE_SETTING_SANDBOX_WRITE, p->more.write);
    if (r == 0)
        r = permissions_write_setting(out, NACRE_SETTING_SANDBOX_NETWORK, p->more.hosts);
    return r == 0 ? permissions_write_setting(out, NACRE_SETTING_SANDBOX_SOCKETS, p->more.sockets)
                  : r;
}
