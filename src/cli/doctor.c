/* nacre doctor: what this machine allows, found out by doing it, and what follows from that. */
#include <ftw.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <nacre/nacre.h>

#include "base/err.h"
#include "cli/cli.h"
#include "cli/doctor_env.h"
#include "cli/json.h"
#include "cli/out.h"
#include "cli/shells.h"
#include "sys/probe.h"

#define PROBES_MAX 32

struct doctor_options {
    bool env;
    bool json;
};

struct findings {
    struct utsname kernel;
    char home[4096], home_note[256];
    nacre_error home_error; /* code 0: the home is fine */
    struct probe_result probes[PROBES_MAX];
    size_t probe_count;
    nacre_tier tier;
    nacre_error trial_error; /* code 0: the trial run went well */
};

static const char *tier_meaning(nacre_tier tier)
{
    switch (tier) {
    case NACRE_TIER_CGROUP:
        return "all that a command starts is held by a cgroup of its own; nothing escapes";
    case NACRE_TIER_SUBREAPER:
        return "all that a command starts stays below its keeper; after a crash of the keeper, "
               "what wiped its environment is out of reach";
    case NACRE_TIER_GROUP:
        return "only the process group of a command is held; what leaves the group escapes";
    case NACRE_TIER_CLIENT:
        break; /* of single shells, never of a machine */
    }
    return "unknown";
}

static void find_home(struct findings *f)
{
    nacre_session *session cleanup_session = NULL;
    const char *path = NULL, *note = NULL;
    if (nacre_open(NULL, &session, &f->home_error) < 0 ||
        nacre_session_home(session, &path, &note, &f->home_error) < 0)
        return;
    snprintf(f->home, sizeof f->home, "%s", path);
    snprintf(f->home_note, sizeof f->home_note, "%s", note ? note : "");
}

/* Runs `true` for real in a home of its own. */
static int try_in(const char *home, nacre_tier *ret_tier, nacre_error *reterr)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    options.single = 1;
    options.home = home;
    nacre_session *session cleanup_session = NULL;
    int r = nacre_open(&options, &session, reterr);
    if (r < 0)
        return r;

    nacre_command command = NACRE_COMMAND_INIT;
    command.text = "true";
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    r = nacre_run(session, &command, 10000, &record, reterr);
    if (r < 0)
        return r;
    *ret_tier = record.tier;
    if (record.outcome == NACRE_EXITED && record.exit_code == 0)
        return 0;
    char text[64];
    return err_set(reterr, NACRE_EBACKEND, "the command \"true\" ended as %s",
                   nacre_status(&record, text, sizeof text));
}

static int remove_entry(const char *path, UNUSED const struct stat *st, UNUSED int type,
                        UNUSED struct FTW *at)
{
    return remove(path);
}

static void try_command(struct findings *f)
{
    char home[4096];
    const char *base = getenv("TMPDIR");
    snprintf(home, sizeof home, "%s/nacre-doctor-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(home)) {
        err_sys(&f->trial_error, NACRE_EIO, errno, "mkdtemp", "cannot make the directory %s", home);
        return;
    }
    try_in(home, &f->tier, &f->trial_error);
    nftw(home, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void print_probe(const struct probe_result *probe, const struct paint *paint)
{
    printf("  %s%-4s%s %-16s %s", probe->ok ? paint->good : paint->bad, probe->ok ? "yes" : "no",
           paint->off, probe->name, probe->meaning);
    if (!probe->ok && probe->err > 0)
        printf(" (%s)", err_text(probe->err));
    putchar('\n');
    if (probe->detail[0])
        printf("  %*s %s%s%s\n", 21, "", paint->dim, probe->detail, paint->off);
}

static void print_findings(const struct findings *f)
{
    struct paint paint = paint_for(stdout);
    printf("nacre %s on %s %s (%s)\n", nacre_version(), f->kernel.sysname, f->kernel.release,
           f->kernel.machine);
    if (f->home_error.code == 0)
        printf("home: %s%s%s\n", f->home, f->home_note[0] ? "\n  " : "", f->home_note);
    else
        printf("home: %s%s%s\n", paint.bad, f->home_error.msg, paint.off);
    puts("\nprobes:");
    for (size_t i = 0; i < f->probe_count; i++)
        print_probe(&f->probes[i], &paint);
    if (f->trial_error.code == 0)
        printf("\ncontainment: %s%s%s\n  %s\n", paint.bold, nacre_tier_name(f->tier), paint.off,
               tier_meaning(f->tier));
    else
        printf("\ncontainment: %snone, no command can be run%s\n  %s\n", paint.bad, paint.off,
               f->trial_error.msg);
}

static json_t *error_json(const nacre_error *error)
{
    return error->code == 0 ? json_null() : json_text(error->msg, strlen(error->msg));
}

static json_t *findings_json(const struct findings *f)
{
    json_t *probes = json_array();
    for (size_t i = 0; i < f->probe_count; i++) {
        const struct probe_result *probe = &f->probes[i];
        json_array_append_new(probes, json_pack("{s:s, s:b, s:s?, s:s, s:o}", "name", probe->name,
                                                "ok", probe->ok, "error",
                                                probe->err > 0 ? err_text(probe->err) : NULL,
                                                "meaning", probe->meaning, "detail",
                                                json_text(probe->detail, strlen(probe->detail))));
    }
    bool works = f->trial_error.code == 0;
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:s?, s:o}", "version", nacre_version(),
                     "kernel", f->kernel.release, "home", json_text(f->home, strlen(f->home)),
                     "home_note", json_text(f->home_note, strlen(f->home_note)), "home_error",
                     error_json(&f->home_error), "probes", probes, "containment",
                     works ? nacre_tier_name(f->tier) : NULL, "trial_error",
                     error_json(&f->trial_error));
}

static int doctor(const void *options, UNUSED char **words, UNUSED size_t count)
{
    const struct doctor_options *o = options;
    if (o->env)
        return doctor_env(o->json);
    static struct findings f;
    uname(&f.kernel);
    find_home(&f);
    f.probe_count = MIN(probe_all(f.probes, PROBES_MAX), (size_t)PROBES_MAX);
    try_command(&f);

    int status = STATUS_OK;
    if (o->json)
        status = print_json(findings_json(&f));
    else
        print_findings(&f);
    bool well = f.home_error.code == 0 && f.trial_error.code == 0;
    return status == STATUS_OK && !well ? STATUS_FAILED : status;
}

static const struct option options[] = {
    {"env", NULL, "say which variables commands do not inherit", OPTION_FLAG, false,
     offsetof(struct doctor_options, env)},
    {"json", NULL, "the same for programs", OPTION_FLAG, false,
     offsetof(struct doctor_options, json)},
    {0},
};

const struct verb verb_doctor = {
    .name = "doctor",
    .words = "",
    .summary = "say what this machine allows, and how commands are contained",
    .details =
        "Each probe does the thing itself and says what it means. The containment is that of a\n"
        "command really run, in a temporary home.\n"
        "\n"
        "With --env instead: the variables of this environment that are kept from commands "
        "because\n"
        "their names say secret, and the line of the configuration file that would let each pass.\n"
        "Values are never shown.\n"
        "\n"
        "exit status: 0 if commands can be run, 1 if they or the home have a problem.\n",
    .options = options,
    .options_size = sizeof(struct doctor_options),
    .run = doctor,
};
