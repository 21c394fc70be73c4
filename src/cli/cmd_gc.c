/* nacre gc: removes what is too old or too much, and says what that was. */
#include <stddef.h>

#include <nacre/nacre.h>

#include "base/clock.h"
#include "cli/verbs.h"
#include "console/out.h"
#include "console/print_json.h"
#include "console/shells.h"

struct gc_options {
    bool dry_run;
    bool verbose;
    bool json;
};

struct collection {
    const struct gc_options *options;
    json_t *array; /* NULL unless JSON is wanted */
};

static void note_removed(const nacre_id *id, uint64_t bytes, int64_t ended_ms, void *userdata)
{
    struct collection *c = userdata;
    char size[BYTES_TEXT], age[AGE_TEXT];
    if (c->array)
        json_array_append_new(c->array,
                              json_pack("{s:s, s:I, s:I}", "id", nacre_id_format(id).s, "bytes",
                                        (json_int_t)bytes, "ended_ms", (json_int_t)ended_ms));
    else if (c->options->verbose)
        printf("%s  %5s  ended %s ago\n", nacre_id_format(id).s, brief_bytes(bytes, size),
               brief_age(clock_real_ns() / NS_PER_MS - ended_ms, age));
}

static int print_result(const struct gc_options *o, const nacre_gc_result *result)
{
    char removed[BYTES_TEXT], kept[BYTES_TEXT];
    printf("%s %lld shell%s (%s); %lld %s (%s)\n", o->dry_run ? "would remove" : "removed",
           (long long)result->removed, result->removed == 1 ? "" : "s",
           brief_bytes(result->removed_bytes, removed), (long long)result->kept,
           result->kept == 1 ? "stays" : "stay", brief_bytes(result->kept_bytes, kept));
    return STATUS_OK;
}

static int print_object(const struct gc_options *o, const struct collection *c,
                        const nacre_gc_result *result)
{
    return print_json(json_pack("{s:b, s:O, s:I, s:I, s:I}", "dry_run", o->dry_run, "removed",
                                c->array, "removed_bytes", (json_int_t)result->removed_bytes,
                                "kept", (json_int_t)result->kept, "kept_bytes",
                                (json_int_t)result->kept_bytes));
}

static int collect_garbage(const void *options, UNUSED char **words, UNUSED size_t count)
{
    const struct gc_options *o = options;
    nacre_error error = NACRE_ERROR_INIT;
    nacre_gc_options how = NACRE_GC_OPTIONS_INIT;
    nacre_gc_result result = NACRE_GC_RESULT_INIT;
    nacre_session *session cleanup_session = NULL;
    int status = open_session(&session);
    if (status != STATUS_OK)
        return status;
    struct collection c = {.options = o, .array = o->json ? json_array() : NULL};
    how.dry_run = o->dry_run;
    if (nacre_gc(session, &how, note_removed, &c, &result, &error) < 0)
        status = library_failure(&error);
    else
        status = o->json ? print_object(o, &c, &result) : print_result(o, &result);
    json_decref(c.array);
    return status;
}

const struct verb verb_gc = {
    .name = "gc",
    .words = "",
    .summary = "remove ended shells that are too old or too much",
    .details =
        "Shells that ended longer ago than the setting home_days (14) are removed with their\n"
        "output, then the oldest ones until all that is on disk is within home_quota (2 GiB). "
        "What\n"
        "runs or lingers stays. Sessions do this by themselves when they end, about once an hour "
        "or\n"
        "when many shells have come; this does it now.\n"
        "\n"
        "examples:\n"
        "  nacre gc --dry-run --verbose\n"
        "  NACRE_HOME_DAYS=1 nacre gc\n",
    .options = {{"dry-run", NULL, "only say what would go", OPTION_FLAG, false,
                 offsetof(struct gc_options, dry_run)},
                {"verbose", NULL, "a line for each shell that goes", OPTION_FLAG, false,
                 offsetof(struct gc_options, verbose)},
                {"json", NULL, "an object with each shell that goes, and the sums", OPTION_FLAG,
                 false, offsetof(struct gc_options, json)}},
    .options_size = sizeof(struct gc_options),
    .run = collect_garbage,
};
