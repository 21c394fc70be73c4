/* nacre open: the page of the server that runs, in a browser. */
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <nacre/nacre.h>

#include "cli/serve_place.h"
#include "cli/verbs.h"
#include "console/out.h"
#include "serve/passes.h"
#include "serve/whereabouts.h"

struct open_options {
    bool view;
    bool print;
};

/* Programs that show a URL to whoever sits at this machine. */
static const char *const browsers[] = {"xdg-open", "wslview", "sensible-browser"};

static bool has_display(void)
{
    static const char *const displays[] = {"DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"};
    for (size_t i = 0; i < ARRAY_SIZE(displays); i++) {
        const char *value = getenv(displays[i]);
        if (value && *value)
            return true;
    }
    return false;
}

static bool open_with(const char *program, const char *url)
{
    char *const argv[] = {(char *)program, (char *)url, NULL};
    int status;
    pid_t pid;
    return posix_spawnp(&pid, program, NULL, NULL, argv, environ) == 0 &&
           waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool show_in_browser(const char *url)
{
    bool shown = false;
    for (size_t i = 0; !shown && i < ARRAY_SIZE(browsers); i++)
        shown = open_with(browsers[i], url);
    return shown;
}

static int open_in_browser(const void *options, UNUSED char **words, UNUSED size_t count)
{
    const struct open_options *o = options;
    nacre_error err = NACRE_ERROR_INIT;
    char home[4096], where[WHERE_SIZE], code[CODE_SIZE + 1], url[WHERE_SIZE + CODE_SIZE + 4];
    int status = serve_home(NULL, home, sizeof home);
    if (status != STATUS_OK)
        return status;
    if (whereabouts_read(home, where, &err) < 0)
        return library_failure(&err);
    if (*where == '/')
        return failure("open: the server listens on the socket %s, which no browser can open; "
                       "\"ssh -L 8737:%s\" or a proxy in front of it can",
                       where, where);
    if (pass_code_make(home, o->view ? RIGHT_VIEW : RIGHT_ACT, code, &err) < 0)
        return library_failure(&err);
    snprintf(url, sizeof url, "%s/#%s", where, code);
    if (o->print || !has_display() || !show_in_browser(url))
        printf("%s\n", url);
    return STATUS_OK;
}

const struct verb verb_open = {
    .name = "open",
    .words = "",
    .summary = "open the page of the server that runs",
    .details =
        "Shows every session and shell of the home in a browser, as they are, by the server\n"
        "that \"nacre serve\" started. The URL has a code that is good once, and for a\n"
        "minute; where there is no browser it is printed.\n"
        "\n"
        "examples:\n"
        "  nacre open\n"
        "  nacre open --view   # may look, and change nothing: to show it to somebody\n",
    .options = {{"view", NULL, "what is opened may look, and change nothing", OPTION_FLAG, false,
                 offsetof(struct open_options, view)},
                {"print", NULL, "print the URL, and open nothing", OPTION_FLAG, false,
                 offsetof(struct open_options, print)}},
    .options_size = sizeof(struct open_options),
    .run = open_in_browser,
};
