/* The file of a project: a session is as narrow as its user or the project wants it, whichever is
 * narrower; and nothing in it makes a session wider. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/harness.h"

#define FILE_NAME ".nacre.json"

static void write_project(const char *text)
{
    unlink(FILE_NAME);
    spit(FILE_NAME, text, strlen(text));
}

static const char *text_in_force(nacre_session *s, const char *name)
{
    nacre_setting which;
    CHECK_OK(nacre_settings_find(name, &which, ERR));
    return format("%s", nacre_settings_text(nacre_session_settings(s), which));
}

/* A user's setting, the project's, and what is in force then. */
static const struct row {
    const char *name, *user, *project, *in_force;
} rows[] = {
    {"sandbox", "off", "\"read-only\"", "read-only"},
    {"sandbox", "off", "\"workspace-write\"", "workspace-write"},
    {"sandbox", "workspace-write", "\"read-only\"", "read-only"},
    {"sandbox", "workspace-write", "\"off\"", "workspace-write"},
    {"sandbox", "read-only", "\"workspace-write\"", "read-only"},
    {"sandbox", "read-only", "\"off\"", "read-only"},
    {"sandbox_hide", "secret", "[\"other\"]", "secret,other"},
    {"sandbox_hide", "", "\"other\"", "other"},
    {"sandbox_protect", "a", "[]", "a"},
    {"sandbox_protect", "a", "[\"b\", \"c\"]", "a,b,c"},
    {"sandbox_network", "off", "\"on\"", "off"},
    {"sandbox_network", "off", "[\"example.org\"]", "off"},
    {"sandbox_network", "on", "\"off\"", "off"},
    {"sandbox_network", "on", "[\"example.org\"]", "example.org"},
    {"sandbox_network", "a.example.org,b.example.org", "[\"b.example.org\", \"c.example.org\"]",
     "b.example.org"},
    {"sandbox_network", "a.example.org", "[\"c.example.org\"]", "off"},
    {"sandbox_network", "a.example.org", "\"on\"", "a.example.org"},
    {"sandbox_network", "a.example.org", "[]", "a.example.org"},
    {"limit_memory", "0", "\"1GiB\"", "1GiB"},
    {"limit_memory", "512MiB", "\"1GiB\"", "512MiB"},
    {"limit_memory", "2GiB", "\"1GiB\"", "1GiB"},
    {"limit_memory", "2GiB", "0", "2GiB"},
    {"limit_cpu", "1.5", "1", "1"},
    {"limits_strict", "on", "false", "on"},
    {"limits_strict", "off", "true", "on"},
};

TEST_LIMIT(whatever_is_narrower_counts, 60)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        const char *settings[] = {format("%s=%s", row->name, row->user), NULL};
        write_project(format("{\"%s\": %s}", row->name, row->project));
        nacre_session *s = open_tool(settings);
        const char *got = text_in_force(s, row->name);
        if (strcmp(got, row->in_force) != 0)
            FAIL("%s: %s and %s make %s, not %s", row->name, row->user, row->project, got,
                 row->in_force);
        close_session(s);
    }
}

static void cannot_open(const char *words)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_session *s = NULL;
    CHECK(nacre_open(&options, &s, ERR) < 0);
    CHECK_STR(harness_error.msg, words);
    CHECK_STR(harness_error.msg, FILE_NAME);
}

TEST(what_a_project_may_not_say)
{
    static const char *const names[] = {"sandbox_write",  "sandbox_sockets", "sandbox_wide",
                                        "sandbox_caches", "sandbox_tmp",     "home",
                                        "keeper",         "env_allow",       "shell"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        write_project(format("{\n\"%s\": \"on\"}", names[i]));
        cannot_open(format(":2: a project may only narrow the sandbox and limits: %s", names[i]));
    }
    write_project("{\"sandbox\": \"none\"}");
    cannot_open("sandbox takes one of off, read-only, workspace-write");
    write_project("{\"sandbox\"");
    cannot_open(FILE_NAME);
    unlink(FILE_NAME);
    CHECK_EQ_INT(0, mkfifo(FILE_NAME, 0600));
    cannot_open("is not a file");
    unlink(FILE_NAME);
    CHECK_EQ_INT(0, symlink("/etc/hostname", FILE_NAME));
    cannot_open("cannot read");
    unlink(FILE_NAME);
}

TEST_LIMIT(a_command_is_held_to_it, 30)
{
    write_project("{\"sandbox\": \"read-only\", \"limit_files\": 32}");
    nacre_session *s = open_session();
    struct run run = run_text(s, "touch here; ulimit -n; echo '{}' > " FILE_NAME);
    CHECK_TEXT(run.record.sandbox, "read-only, network off");
    CHECK_TEXT(run.out, "32\n");
    CHECK(access("here", F_OK) < 0);
    run_done(&run);
    close_session(s);
    unlink(FILE_NAME);
    s = open_session();
    run = run_text(s, "touch here");
    CHECK_TEXT(run.record.sandbox, "");
    run_done(&run);
    close_session(s);
}
