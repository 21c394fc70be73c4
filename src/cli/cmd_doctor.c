/* nacre doctor: what this machine allows, found out by doing it, and what follows from that. */
#include <stddef.h>
#include <string.h>
#include <sys/utsname.h>

#include <nacre/nacre.h>

#include "base/err.h"
#include "cli/cmd_doctor_env.h"
#include "cli/sandbox_trial.h"
#include "cli/scope_trial.h"
#include "cli/verbs.h"
#include "config/settings.h"
#include "console/out.h"
#include "console/print_json.h"
#include "console/shells.h"
#include "sys/probe.h"

#define PROBES_MAX 32
#define TRIAL_SIZE ((uint64_t)1 << 30)

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
    nacre_limits_report limits;
    nacre_error trial_error;   /* code 0: the trial run went well */
    nacre_error sandbox_error; /* code 0: a command ran in a sandbox */
};

static void examine_home(struct findings *f)
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
static int try_in(const char *home, void *userdata, nacre_error *reterr)
{
    struct findings *f = userdata;
    nacre_options options = NACRE_OPTIONS_INIT;
    options.single = 1;
    options.home = home;
    nacre_session *session cleanup_session = NULL;
    int r = nacre_open(&options, &session, reterr);
    if (r < 0)
        return r;

    nacre_command command = NACRE_COMMAND_INIT;
    command.text = "true";
    command.limits = (nacre_limits){.memory = TRIAL_SIZE,
                                    .processes = 64,
                                    .cpu = 100,
                                    .cpu_time_ms = 60000,
                                    .files = 64,
                                    .file_size = TRIAL_SIZE,
                                    .disk = TRIAL_SIZE};
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    r = nacre_run(session, &command, 10000, &record, reterr);
    if (r < 0)
        return r;
    f->tier = record.tier;
    f->limits = record.limits;
    if (record.outcome == NACRE_EXITED && record.exit_code == 0)
        return 0;
    char text[64];
    return err_set(reterr, NACRE_EBACKEND, "the command \"true\" ended as %s",
                   nacre_status(&record, text, sizeof text));
}

/* The strictest there is, whatever the settings say: with a host, so that the network is closed and
 * has a gate. */
static int set_strictest(nacre_settings *settings, nacre_error *reterr)
{
    int r = nacre_settings_set(settings, "sandbox", "read-only", "nacre doctor", reterr);
    return r < 0 ? r
                 : nacre_settings_set(settings, "sandbox_network", "example.org", "nacre doctor",
                                      reterr);
}

static void try_sandbox(struct findings *f)
{
    nacre_settings *settings cleanup_settings = NULL;
    if (nacre_settings_load(NULL, &settings, &f->sandbox_error) == 0 &&
        set_strictest(settings, &f->sandbox_error) == 0)
        trial_of_sandbox(settings, &f->sandbox_error);
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

static const char *holder_meaning(nacre_holder holder)
{
    switch (holder) {
    case NACRE_HELD_CGROUP2:
        return "a controller of cgroup v2, for all processes together";
    case NACRE_HELD_CGROUP1:
        return "a controller of cgroup v1, for all processes together";
    case NACRE_HELD_RLIMIT:
        return "the kernel, for each process";
    case NACRE_HELD_KEEPER:
        return "the keeper, which looks every 100 ms at what all processes use together";
    case NACRE_HELD_NICE:
        return "nothing: it would run at a lower priority instead";
    default:
        return "nothing";
    }
}

static bool holds(nacre_holder holder)
{
    return holder != NACRE_HELD_NOT && holder != NACRE_HELD_NICE;
}

static void print_limits(const struct findings *f, const struct paint *paint)
{
    puts("\nlimits, and what would hold them:");
    for (nacre_limit i = NACRE_LIMIT_MEMORY; i < NACRE_LIMIT_COUNT; i++) {
        nacre_holder holder = f->limits.held[i];
        printf("  %s%-4s%s %-16s %s\n", holds(holder) ? paint->good : paint->bad,
               holds(holder) ? "yes" : "no", paint->off, nacre_limit_name(i),
               holder_meaning(holder));
    }
}

static json_t *limits_json(const struct findings *f)
{
    json_t *object = json_object();
    for (nacre_limit i = NACRE_LIMIT_MEMORY; i < NACRE_LIMIT_COUNT; i++)
        json_object_set_new(object, nacre_limit_name(i),
                            json_string(nacre_holder_name(f->limits.held[i])));
    return object;
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
        print_limits(f, &paint);
    if (f->trial_error.code == 0) {
        puts("\nsandbox, and what would hold it:");
        trial_print(&f->sandbox_error, FENCE_NETWORK_GATE, &paint);
    }
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
    return json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:o, s:s?, s:o, s:o, s:o, s:o}", "version", nacre_version(),
        "kernel", f->kernel.release, "home", json_text(f->home, strlen(f->home)), "home_note",
        json_text(f->home_note, strlen(f->home_note)), "home_error", error_json(&f->home_error),
        "probes", probes, "containment", works ? nacre_tier_name(f->tier) : NULL, "trial_error",
        error_json(&f->trial_error), "limits", works ? limits_json(f) : json_null(), "sandbox",
        works ? trial_json(&f->sandbox_error, FENCE_NETWORK_GATE) : json_null(), "sandbox_error",
        error_json(&f->sandbox_error));
}

static int doctor(const void *options, UNUSED char **words, UNUSED size_t count)
{
    const struct doctor_options *o = options;
    if (o->env)
        return doctor_env(o->json);
    static struct findings f;
    uname(&f.kernel);
    examine_home(&f);
    f.probe_count = probe_all(f.probes, PROBES_MAX - 1);
    trial_of_scope(&f.probes[f.probe_count++]);
    trial_in_home(try_in, &f, &f.trial_error);
    try_sandbox(&f);

    int status = STATUS_OK;
    if (o->json)
        status = print_json(findings_json(&f));
    else
        print_findings(&f);
    bool well = f.home_error.code == 0 && f.trial_error.code == 0;
    return status == STATUS_OK && !well ? STATUS_FAILED : status;
}

const struct verb verb_doctor = {
    .name = "doctor",
    .words = "",
    .summary = "say what this machine allows, and how commands are contained",
    .details =
        "Each probe does the thing itself and says what it means. The containment, what holds the\n"
        "limits, and the sandbox are those of commands really run, in a temporary home.\n"
        "\n"
        "With --env instead: the variables of this environment that are kept from commands "
        "because\n"
        "their names say secret, and the line of the configuration file that would let each pass.\n"
        "Values are never shown.\n"
        "\n"
        "exit status: 0 if commands can be run, 1 if they or the home have a problem.\n",
    .options = {{"env", NULL, "say which variables commands do not inherit", OPTION_FLAG, false,
                 offsetof(struct doctor_options, env)},
                {"json", NULL, "the same for programs", OPTION_FLAG, false,
                 offsetof(struct doctor_options, json)}},
    .options_size = sizeof(struct doctor_options),
    .run = doctor,
};
