#include "cli/serve_place.h"

#include <limits.h>
#include <stdio.h>

#include <nacre/nacre.h>

#include "base/err.h"
#include "console/out.h"
#include "console/shells.h"
#include "sys/fd.h"

#define TOKEN_FILE "http-token"

int serve_home(const nacre_settings *settings, char *ret, size_t room)
{
    const char *home;
    nacre_error err = NACRE_ERROR_INIT;
    nacre_session *session cleanup_session = NULL;
    int status = open_session_with(settings, &session);
    if (status != STATUS_OK)
        return status;
    if (nacre_session_home(session, &home, NULL, &err) < 0)
        return library_failure(&err);
    int r = fd_make_dirs(home);
    if (r < 0)
        return failure("cannot make %s: %s", home, err_text(-r));
    int n = snprintf(ret, room, "%s", home);
    return n > 0 && (size_t)n < room ? STATUS_OK : failure("the path of the home is too long");
}

int serve_token_path(const char *file, const nacre_settings *settings, char *ret, size_t room)
{
    char home[PATH_MAX];
    int status = file ? STATUS_OK : serve_home(settings, home, sizeof home);
    if (status != STATUS_OK)
        return status;
    int n = file ? snprintf(ret, room, "%s", file) : snprintf(ret, room, "%s/" TOKEN_FILE, home);
    return n > 0 && (size_t)n < room ? STATUS_OK : usage_error("the path is too long");
}
