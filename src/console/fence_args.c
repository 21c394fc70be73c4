#include "console/fence_args.h"

#include "console/out.h"

static int set_one(nacre_settings **settings, const char *name, const char *value,
                   const char *origin)
{
    nacre_error error = NACRE_ERROR_INIT;
    if (!value)
        return STATUS_OK;
    if (!*settings && nacre_settings_load(NULL, settings, &error) < 0)
        return library_failure(&error);
    return nacre_settings_set(*settings, name, value, origin, &error) < 0
               ? usage_error("%s: %s", origin, error.msg)
               : STATUS_OK;
}

/* What is given more than once is one list. */
static int set_list(nacre_settings **settings, const char *name, const char *const *values,
                    const char *origin)
{
    struct buf joined cleanup_buf = BUF_UP_TO(65536);
    int r = 0;
    if (!values)
        return STATUS_OK;
    for (size_t i = 0; r == 0 && values[i]; i++)
        r = buf_printf(&joined, "%s%s", i > 0 ? "," : "", values[i]);
    return r < 0 ? usage_error("%s: that is too much", origin)
                 : set_one(settings, name, joined.data ? joined.data : "", origin);
}

int fence_args_apply(const struct fence_args *args, nacre_settings **settings)
{
    const struct {
        const char *name, *origin, *text;
        const char **list;
    } options[] = {
        {"sandbox", "--sandbox", args->mode, NULL},
        {"sandbox_write", "--write", NULL, args->write},
        {"sandbox_hide", "--hide", NULL, args->hide},
        {"sandbox_protect", "--protect", NULL, args->protect},
        {"sandbox_network", "--network", NULL, args->network},
        {"sandbox_sockets", "--socket", NULL, args->sockets},
        {"sandbox_caches", "--caches", args->caches, NULL},
        {"sandbox_tmp", "--tmp", args->tmp, NULL},
    };
    int status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < ARRAY_SIZE(options); i++)
        status = options[i].list
                     ? set_list(settings, options[i].name, (const char *const *)options[i].list,
                                options[i].origin)
                     : set_one(settings, options[i].name, options[i].text, options[i].origin);
    return status;
}
