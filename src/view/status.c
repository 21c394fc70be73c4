/* The words for what a record says, and the end of a record's life. */
#include <nacre/record.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/defs.h"

#define SIGNAL_MAX 64

/* Our own table: the C library's names need a newer one than the oldest we support. */
static const char *const signal_names[] = {
    [SIGHUP] = "HUP",   [SIGINT] = "INT",       [SIGQUIT] = "QUIT", [SIGILL] = "ILL",
    [SIGTRAP] = "TRAP", [SIGABRT] = "ABRT",     [SIGBUS] = "BUS",   [SIGFPE] = "FPE",
    [SIGKILL] = "KILL", [SIGUSR1] = "USR1",     [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
    [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM",     [SIGTERM] = "TERM", [SIGSTKFLT] = "STKFLT",
    [SIGCHLD] = "CHLD", [SIGCONT] = "CONT",     [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP",
    [SIGTTIN] = "TTIN", [SIGTTOU] = "TTOU",     [SIGURG] = "URG",   [SIGXCPU] = "XCPU",
    [SIGXFSZ] = "XFSZ", [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH",
    [SIGIO] = "IO",     [SIGPWR] = "PWR",       [SIGSYS] = "SYS",
};

static const char *known_name(int number)
{
    return number > 0 && (size_t)number < ARRAY_SIZE(signal_names) ? signal_names[number] : NULL;
}

const char *nacre_signal_name(int signal, char *buf, size_t size)
{
    const char *name = known_name(signal);
    if (name)
        snprintf(buf, size, "SIG%s", name);
    else
        snprintf(buf, size, "SIG%d", signal);
    return buf;
}

/* Digits only, in the range of signals. */
static int signal_digits(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 2 || text[digits] != '\0')
        return -1;
    int number = atoi(text);
    return number >= 1 && number <= SIGNAL_MAX ? number : -1;
}

int nacre_signal_number(const char *name)
{
    if (!name)
        return -1;
    if (strncasecmp(name, "SIG", 3) == 0)
        name += 3;
    for (int i = 1; (size_t)i < ARRAY_SIZE(signal_names); i++)
        if (signal_names[i] && strcasecmp(name, signal_names[i]) == 0)
            return i;
    return signal_digits(name);
}

const char *nacre_tier_name(nacre_tier tier)
{
    switch (tier) {
    case NACRE_TIER_CGROUP:
        return "cgroup";
    case NACRE_TIER_SUBREAPER:
        return "subreaper";
    case NACRE_TIER_GROUP:
        return "group";
    case NACRE_TIER_CLIENT:
        return "client";
    }
    return "unknown";
}

static void outcome_text(const nacre_record *record, char *buf, size_t size)
{
    char name[16];
    switch (record->outcome) {
    case NACRE_RUNNING:
        snprintf(buf, size, "running");
        return;
    case NACRE_EXITED:
        snprintf(buf, size, "exited(%d)", record->exit_code);
        return;
    case NACRE_SIGNALED:
        snprintf(buf, size, "signaled(%s)", nacre_signal_name(record->signal, name, sizeof name));
        return;
    case NACRE_KILLED:
        snprintf(buf, size, "killed");
        return;
    case NACRE_TIMED_OUT:
        snprintf(buf, size, "timed_out");
        return;
    case NACRE_CANCELLED:
        snprintf(buf, size, "cancelled");
        return;
    case NACRE_LOST:
        snprintf(buf, size, "lost");
        return;
    }
    snprintf(buf, size, "unknown(%d)", (int)record->outcome);
}

const char *nacre_status(const nacre_record *record, char *buf, size_t size)
{
    char text[40];
    outcome_text(record, text, sizeof text);
    int lingering = record->outcome != NACRE_RUNNING && record->tree == NACRE_TREE_ALIVE;
    snprintf(buf, size, "%s%s", text, lingering ? ", lingering" : "");
    return buf;
}

void nacre_record_done(nacre_record *record)
{
    if (!record)
        return;
    free(record->command);
    free(record->cwd);
    free(record->name);
    free(record->description);
    *record = (nacre_record){.size = record->size};
}
