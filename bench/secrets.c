/*
 * What keeping secrets from a command costs each start: the names of 100 variables, as a desktop
 * and a CI runner have them, judged one after another.
 */
#include "bench.h"

#include "config/secrets.h"

#define ROUNDS    2000
#define VARIABLES 100

static const char *const usual[] = {
    "SHELL=/bin/bash",
    "SESSION_MANAGER=local/unix:@/tmp/.ICE-unix/1",
    "COLORTERM=truecolor",
    "XDG_CONFIG_DIRS=/etc/xdg/xdg-gnome:/etc/xdg",
    "SSH_AGENT_LAUNCHER=gnome-keyring",
    "XDG_MENU_PREFIX=gnome-",
    "GNOME_DESKTOP_SESSION_ID=this-is-deprecated",
    "GITHUB_ACTION_REPOSITORY=",
    "SSH_AUTH_SOCK=/run/user/1000/keyring/ssh",
    "GITHUB_TOKEN=x",
    "XMODIFIERS=@im=ibus",
    "DESKTOP_SESSION=gnome",
    "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus",
    "GIT_AUTHOR_NAME=somebody",
    "GNOME_TERMINAL_SCREEN=/org/gnome/Terminal/screen/1",
    "OPENAI_API_KEY=x",
    "PATH=/usr/local/bin:/usr/bin:/bin",
    "LS_COLORS=rs=0:di=01;34",
    "VIRTUAL_ENV=/v",
    "RUNNER_TEMP=/tmp",
    "PYTHONUNBUFFERED=1",
    "NODE_OPTIONS=--max-old-space-size=4096",
    "CLAUDE_CODE_ENTRYPOINT=cli",
    "XDG_CURRENT_DESKTOP=GNOME",
    "LESSOPEN=| /usr/bin/lesspipe %s",
};

static double judge_all(void)
{
    volatile unsigned found = 0;
    double start = now_us();
    for (size_t i = 0; i < VARIABLES; i++)
        found += secrets_is_secret(usual[i % (sizeof usual / sizeof usual[0])], NULL) != SECRET_NOT;
    double took = now_us() - start;
    if (found != 2 * VARIABLES / (sizeof usual / sizeof usual[0]))
        die("other variables than the two were taken for secrets", NULL);
    return took;
}

int main(void)
{
    static double times[ROUNDS];
    char measured[64];
    for (size_t i = 0; i < ROUNDS; i++)
        times[i] = judge_all();
    double median = percentile(times, ROUNDS, 50);
    snprintf(measured, sizeof measured, "%d variables, p50", VARIABLES);
    row("which variables are secrets, per start", measured, median, " us", 10, 0);
    return 0;
}
