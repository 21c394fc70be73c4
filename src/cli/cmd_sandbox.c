/* nacre sandbox explain: what commands run in here, place by place, and whether it holds. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <nacre/nacre.h>

#include "base/err.h"
#include "cli/cmd_run.h"
#include "cli/sandbox_trial.h"
#include "cli/verbs.h"
#include "config/settings.h"
#include "console/command_args.h"
#include "console/fence_args.h"
#include "console/out.h"
#include "console/print_json.h"
#include "console/shells.h"
#include "session/sandbox.h"

struct sandbox_options {
    struct fence_args fence;
    bool json;
};

/* All there is to say. */
struct explanation {
    const nacre_settings *settings;
    enum fence_mode mode;
    struct fence_plan plan;
    struct fence fence;
    nacre_error trial; /* code 0: it was entered, and held */
};

/* clang-format off */
static const struct {
    enum fence_kind kind;
    const char *name, *meaning;
} kinds[] = {
    {FENCE_WRITE,   "writable",  "may be changed, with all that is below"},
    {FENCE_PRIVATE, "private",   "the session's own"},
    {FENCE_MEMORY,  "empty",     "in memory, the session's own"},
    {FENCE_DEVICES, "devices",   "a few, that every program may use"},
    {FENCE_PROTECT, "protected", "may not be changed, though what is around it may"},
    {FENCE_PIN,     "pinned",    "cannot be moved, since something protected is below"},
    {FENCE_WATCH,   "watched",   "protected names that do not exist"},
    {FENCE_HIDE,    "hidden",    "not there, or empty"},
    {FENCE_SHOW,    "shown",     "read-only, though it lies in what is hidden or private"},
    {FENCE_SOCKET,  "sockets",   "may be talked to"},
};
/* clang-format on */

static void explanation_done(struct explanation *e)
{
    fence_plan_done(&e->plan);
}

/* -- For people ------------------------------------------------------------------------------- */

static int print_places(const struct explanation *e, size_t which, const struct paint *paint)
{
    const struct fence_place *places = fence_places(&e->fence);
    bool titled = false;
    for (uint32_t i = 0; i < e->fence.head->count; i++) {
        struct buf path cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
        if (places[i].kind != kinds[which].kind)
            continue;
        if (!titled)
            printf("\n%s%s%s: %s\n", paint->bold, kinds[which].name, paint->off,
                   kinds[which].meaning);
        titled = true;
        if (brief_line(&path, fence_string(&e->fence, places[i].path), COLUMNS_UNLIMITED) < 0)
            return failure("out of memory");
        printf("  %s\n", path.data);
    }
    return STATUS_OK;
}

static const char *network_meaning(const struct explanation *e)
{
    switch ((enum fence_network)e->fence.head->network) {
    case FENCE_NETWORK_ON:
        return "on: the host's";
    case FENCE_NETWORK_GATE:
        return "these hosts, by the gate, and loopback among the session's shells";
    default:
        return "off, but for loopback among the session's shells";
    }
}

static int print_explanation(const struct explanation *e)
{
    struct paint paint = paint_for(stdout);
    int status = STATUS_OK;
    printf("sandbox: %s%s%s (%s)\n", paint.bold, fence_mode_name(e->mode), paint.off,
           nacre_settings_origin(e->settings, NACRE_SETTING_SANDBOX));
    if (e->mode == FENCE_OFF) {
        puts("commands run with the rights of who starts them");
        return STATUS_OK;
    }
    printf("network: %s (%s)\n", network_meaning(e),
           nacre_settings_origin(e->settings, NACRE_SETTING_SANDBOX_NETWORK));
    const char *const *hosts = nacre_settings_list(e->settings, NACRE_SETTING_SANDBOX_NETWORK);
    for (; e->plan.hosts && *hosts; hosts++)
        printf("  %s\n", *hosts);
    for (size_t i = 0; status == STATUS_OK && i < ARRAY_SIZE(kinds); i++)
        status = print_places(e, i, &paint);
    puts("\neverything else is as it is outside, and read-only\n\nheld, as tried by a command:");
    trial_print(&e->trial, e->fence.head->network, &paint);
    return status;
}

/* -- For programs ----------------------------------------------------------------------------- */

static json_t *places_json(const struct explanation *e)
{
    const struct fence_place *places = fence_places(&e->fence);
    json_t *object = json_object();
    for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
        json_t *paths = json_array();
        for (uint32_t i = 0; i < e->fence.head->count; i++) {
            const char *path = fence_string(&e->fence, places[i].path);
            if (places[i].kind == kinds[k].kind)
                json_array_append_new(paths, json_text(path, strlen(path)));
        }
        json_object_set_new(object, kinds[k].name, paths);
    }
    return object;
}

static json_t *explanation_json(const struct explanation *e)
{
    bool is_on = e->mode != FENCE_OFF;
    const char *origin = nacre_settings_origin(e->settings, NACRE_SETTING_SANDBOX);
    json_t *error =
        is_on && e->trial.code != 0 ? json_text(e->trial.msg, strlen(e->trial.msg)) : json_null();
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "mode", fence_mode_name(e->mode), "origin",
                     json_text(origin, strlen(origin)), "network",
                     json_list(nacre_settings_list(e->settings, NACRE_SETTING_SANDBOX_NETWORK)),
                     "places", is_on ? places_json(e) : json_null(), "properties",
                     is_on ? trial_json(&e->trial, e->fence.head->network) : json_null(), "error",
                     error);
}

/* -- The whole -------------------------------------------------------------------------------- */

static int explain(const struct sandbox_options *o, const nacre_settings *settings)
{
    __attribute__((cleanup(explanation_done))) struct explanation e = {.settings = settings};
    nacre_session *session cleanup_session = NULL;
    nacre_error error = NACRE_ERROR_INIT;
    int status = open_session_with(settings, &session);
    if (status != STATUS_OK)
        return status;
    e.settings = nacre_session_settings(session); /* with what the project asks for */
    struct fence_wish wish;
    if (session_compose_fence(session, NULL, &wish, &e.plan, &error) < 0)
        return library_failure(&error);
    e.mode = wish.mode;
    if (e.mode != FENCE_OFF && fence_check(e.plan.record.data, e.plan.record.len, &e.fence) < 0)
        return failure("the sandbox cannot be read");
    if (e.mode != FENCE_OFF)
        trial_of_sandbox(settings, &e.trial);
    status = o->json ? print_json(explanation_json(&e)) : print_explanation(&e);
    return status == STATUS_OK && e.trial.code != 0 ? STATUS_FAILED : status;
}

static int run_words(const struct sandbox_options *o, const nacre_settings *settings, char **words,
                     size_t count)
{
    if (nacre_settings_number(settings, NACRE_SETTING_SANDBOX) == NACRE_SANDBOX_OFF)
        return usage_error("sandbox: it is off; say which one is meant, with --sandbox read-only "
                           "or --sandbox workspace-write");
    if (o->json)
        return usage_error(
            "sandbox: --json is for the sandbox alone; \"nacre run --json\" has what "
            "a command was refused");
    return run_explained(words, count, &o->fence);
}

static int sandbox(const void *options, char **words, size_t count)
{
    const struct sandbox_options *o = options;
    nacre_error error = NACRE_ERROR_INIT;
    nacre_settings *settings cleanup_settings = NULL;
    if (strcmp(words[0], "explain") != 0)
        return usage_error("sandbox: the word is \"explain\"; got \"%s\"", words[0]);
    if (nacre_settings_load(NULL, &settings, &error) < 0)
        return library_failure(&error);
    int status = fence_args_apply(&o->fence, &settings);
    if (status != STATUS_OK)
        return status;
    return count > 1 ? run_words(o, settings, words + 1, count - 1) : explain(o, settings);
}

const struct verb verb_sandbox = {
    .name = "sandbox",
    .words = "explain [-- COMMAND]",
    .summary = "explain the sandbox in force, and try that it holds",
    .details =
        "Shows the mode and where it comes from, the network, each place by its kind, and for "
        "each\n"
        "property whether it is held: a command is run inside for that, in a temporary home.\n"
        "\n"
        "With a COMMAND that one is run in the sandbox, and what it was refused is listed at its\n"
        "end.\n"
        "\n"
        "exit status: that of the COMMAND; else 0, or 1 if the sandbox cannot be had here.\n"
        "\n"
        "examples:\n"
        "  nacre sandbox explain\n"
        "  nacre sandbox explain --sandbox workspace-write -- make test\n",
    .options = {FENCE_OPTIONS(sandbox_options),
                {"json", NULL, "the same for programs", OPTION_FLAG, false,
                 offsetof(struct sandbox_options, json)}},
    .options_size = sizeof(struct sandbox_options),
    .min_words = 1,
    .max_words = SIZE_MAX,
    .run = sandbox,
};
