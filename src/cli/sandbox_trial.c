#include "cli/sandbox_trial.h"

#include <ftw.h>
#include <stdlib.h>

#include "base/err.h"
#include "console/shells.h"

#define TRIAL_MS 10000

/* -- A home for it ---------------------------------------------------------------------------- */

static int remove_from_trial(const char *path, UNUSED const struct stat *st, UNUSED int type,
                             UNUSED struct FTW *at)
{
    return remove(path);
}

int trial_in_home(trial_fn *fn, void *userdata, nacre_error *reterr)
{
    char home[4096];
    const char *base = getenv("TMPDIR");
    snprintf(home, sizeof home, "%s/nacre-trial-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(home))
        return err_sys(reterr, NACRE_EIO, errno, "mkdtemp", "cannot make the directory %s", home);
    int r = fn(home, userdata, reterr);
    nftw(home, remove_from_trial, 16, FTW_DEPTH | FTW_PHYS);
    return r;
}

/* -- The sandbox ------------------------------------------------------------------------------ */

static int run_true(const char *home, void *userdata, nacre_error *reterr)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    options.single = 1;
    options.home = home;
    options.settings = userdata;
    nacre_session *session cleanup_session = NULL;
    int r = nacre_open(&options, &session, reterr);
    if (r < 0)
        return r;
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    command.text = "true";
    r = nacre_run(session, &command, TRIAL_MS, &record, reterr);
    if (r < 0 || (record.outcome == NACRE_EXITED && record.exit_code == 0))
        return r;
    char text[64];
    return err_set(reterr, NACRE_EBACKEND, "in the sandbox the command \"true\" ended as %s",
                   nacre_status(&record, text, sizeof text));
}

int trial_of_sandbox(const nacre_settings *settings, nacre_error *reterr)
{
    return trial_in_home(run_true, (void *)settings, reterr);
}

/* -- What it holds ---------------------------------------------------------------------------- */

/* As in docs/sandbox.md. */
static const struct property {
    const char *name, *meaning, *holder;
    enum fence_network most; /* with more than that it is not asked for, */
    bool by_gate;            /* and with less */
} properties[] = {
    {"P1 files", "what is outside of the writable places stays as it is",
     "read-only mounts, Landlock", FENCE_NETWORK_ON, false},
    {"P2 hidden", "hidden places cannot be read", "mounts over them", FENCE_NETWORK_ON, false},
    {"P3 protected", "protected places stay as they are, and where they are",
     "read-only mounts, with those above them", FENCE_NETWORK_ON, false},
    {"P4 network", "no network but loopback", "a network namespace", FENCE_NETWORK_GATE, false},
    {"P5 hosts", "no hosts but those that are named", "a network namespace, the gate",
     FENCE_NETWORK_GATE, true},
    {"P6 sockets", "no Unix socket of the host is talked to",
     "a filter whose calls the keeper makes, Landlock", FENCE_NETWORK_ON, false},
    {"P7 processes", "processes of the host are neither signalled, changed nor read",
     "Landlock, the filter", FENCE_NETWORK_ON, false},
    {"P8 privilege", "nothing gives more rights",
     "no_new_privs, no capabilities that matter, Landlock", FENCE_NETWORK_ON, false},
};

static bool is_asked_for(const struct property *p, enum fence_network network)
{
    return network <= p->most && (!p->by_gate || network == FENCE_NETWORK_GATE);
}

static void print_property(const struct property *p, bool asked, bool held,
                           const struct paint *paint)
{
    const char *colour = !asked ? paint->dim : held ? paint->good : paint->bad;
    printf("  %s%-4s%s %-16s %s\n", colour,
           !asked ? "-"
           : held ? "yes"
                  : "no",
           paint->off, p->name, p->meaning);
    if (!asked || held)
        printf("  %*s %s%s%s\n", 21, "", paint->dim, asked ? p->holder : "not asked for",
               paint->off);
}

void trial_print(const nacre_error *error, enum fence_network network, const struct paint *paint)
{
    for (size_t i = 0; i < ARRAY_SIZE(properties); i++)
        print_property(&properties[i], is_asked_for(&properties[i], network), error->code == 0,
                       paint);
    if (error->code != 0)
        printf("  %s\n", error->msg);
}

json_t *trial_json(const nacre_error *error, enum fence_network network)
{
    json_t *rows = json_array();
    for (const struct property *p = properties; p < properties + ARRAY_SIZE(properties); p++)
        json_array_append_new(rows, json_pack("{s:s, s:b, s:b, s:s, s:s}", "property", p->name,
                                              "asked", is_asked_for(p, network), "held",
                                              is_asked_for(p, network) && error->code == 0,
                                              "meaning", p->meaning, "by", p->holder));
    return rows;
}
