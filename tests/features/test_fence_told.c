/*
 * What is told of a sandbox: what it refused, and nothing that it did not; and that a call can only
 * narrow it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "features/fence_world.h"
#include "harness/harness.h"

static nacre_session *open_fenced(const char *mode, const char *more)
{
    const char *settings[] = {format("sandbox=%s", mode), more, NULL};
    return open_tool(settings);
}

/* The summary of a command, as a model reads it; freed by the caller. */
static char *summary_of(nacre_session *s, const char *text)
{
    char *summary = NULL;
    struct run run = run_text(s, text);
    CHECK_OK(nacre_summary(s, &run.record.id, NULL, &summary, NULL, ERR));
    run_done(&run);
    return summary;
}

static const struct told {
    const char *text, *told; /* NULL = nothing of the sandbox */
    const char *needs;       /* a program, or NULL */
} told_rows[] = {
    {"touch $OUT/new", "refused to write /mnt/out/new"},
    {"echo x >$OUT/new", "refused to write /mnt/out/new"},
    {"mkdir $OUT/folder", "refused to write /mnt/out/folder"},
    {"rm -f $OUT/mine", "refused to write /mnt/out/mine"},
    {"mv $OUT/mine here", "refused to write /mnt/out/mine"},
    {"cp /etc/hostname $OUT/copy", "refused to write /mnt/out/copy"},
    {"ln -s a $OUT/link", "refused to write /mnt/out/link"},
    {"chmod 600 $OUT/mine", "refused to write /mnt/out/mine"},
    {"cd $OUT && touch near", NULL}, /* where that was, nobody can say afterwards */
    {"tee $OUT/tee </dev/null", "refused to write /mnt/out/tee"},
    {"dd if=/dev/null of=$OUT/dd 2>&1", "refused to write /mnt/out/dd"},
    {"truncate -s 1 $OUT/mine", "refused to write /mnt/out/mine"},
    {"install -m 600 /etc/hostname $OUT/inst", "refused to write /mnt/out/inst"},
    {"sed -i s/a/b/ $OUT/mine", "refused to write /mnt/out/sed"},
    {"python3 -c 'open(\"/mnt/out/py\", \"w\")'", "refused to write /mnt/out/py", "python3"},
    {"node -e 'require(\"fs\").writeFileSync(\"/mnt/out/js\", \"\")'",
     "refused to write /mnt/out/js", "node"},
    {"perl -e 'open(F, \">/mnt/out/pl\") or die \"cannot open /mnt/out/pl: $!\"'",
     "refused to write /mnt/out/pl", "perl"},
    {"git -C $OUT init -q", "refused to write /mnt/out", "git"},
    {"touch .git/hooks/pre-commit", "refused to write /mnt/ws/.git/hooks/pre-commit"},
    {"cat $OUT/key", "refused to read /mnt/out/key"},
    {"python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 5)'",
     "refused to connect to 192.0.2.1:80", "python3"},
    {"exec 3<>/dev/tcp/192.0.2.7/443", "refused to connect to 192.0.2.7:443"},
    {"mkdir .idea", "moved aside /mnt/ws/.idea"},
    {"echo evil >.envrc; exit 3", "moved aside /mnt/ws/.envrc"},
    {"touch fine; mkdir -p a/b; echo x >a/b/c", NULL},
    {"echo 'touch: cannot touch fine: Permission denied'", NULL},
    {"echo 'Read-only file system'; exit 1", NULL},
    {"ls /there-is-nothing", NULL},
    {"chmod 0 fine; mkdir locked; chmod 0 locked; echo 'cannot open /mnt/ws/fine: Permission "
     "denied'",
     NULL},
    {"grep -rn 'permission denied' /etc/hostname", NULL},
    {"touch /tmp/x /dev/shm/x; echo ok", NULL},
    {"(exec 3<>/dev/tcp/127.0.0.1/9) 2>/dev/null; echo refused by nobody", NULL},
};

TEST_LIMIT(what_was_refused, 120)
{
    world_make();
    CHECK_EQ_INT(0, system("cd $OUT && touch mine key && cd /mnt/ws && rm -rf .git && mkdir -p "
                           ".git/hooks && echo >.git/config"));
    nacre_session *s = open_fenced("workspace-write", "sandbox_hide=/mnt/out/key");
    for (size_t i = 0; i < sizeof told_rows / sizeof told_rows[0]; i++) {
        const struct told *row = &told_rows[i];
        /* To root what is hidden is empty, and not refused. */
        bool by_mode = row->told && strstr(row->told, "read");
        if ((row->needs && !have_program(row->needs)) || (by_mode && geteuid() == 0))
            continue;
        char *summary = summary_of(s, row->text);
        bool told = strstr(summary, "Sandbox: ") != NULL;
        if (told != (row->told != NULL) || (row->told && !strstr(summary, row->told)))
            FAIL("%s: wanted %s; got\n%s", row->text, row->told ? row->told : "nothing", summary);
        free(summary);
    }
    close_session(s);
    world_end();
}

TEST(what_would_allow_it)
{
    world_make();
    nacre_session *s = open_fenced("workspace-write", NULL);
    char *summary = summary_of(s, "touch $OUT/a; exec 3<>/dev/tcp/192.0.2.1/80");
    CHECK_STR(summary, " | sandbox: workspace-write, network off\n");
    CHECK_STR(summary, "\"sandbox_write\": [\"/mnt/out/a\"], "
                       "\"sandbox_network\": [\"192.0.2.1:80\"]");
    free(summary);
    close_session(s);
    world_end();
}

/* What this user could not do anyway is no work of the sandbox, and nothing would allow it. */
TEST(what_nobody_refused)
{
    if (geteuid() == 0)
        SKIP("root may write everywhere");
    world_make();
    nacre_session *s = open_fenced("workspace-write", NULL);
    char *summary = summary_of(s, "touch /etc/nacre-was-here");
    CHECK_STR(summary, "this user may not write there without the sandbox either");
    CHECK(!strstr(summary, "can allow this"));
    free(summary);
    close_session(s);
    world_end();
}

/* -- One call --------------------------------------------------------------------------------- */

TEST(a_call_narrows_and_never_widens)
{
    world_make();
    nacre_session *s = open_fenced("workspace-write", NULL);
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;

    command.text = "touch narrow && echo written; true | false | true";
    command.sandbox = "read-only";
    struct run run = run_command(s, &command);
    CHECK_TEXT(run.out, "");
    CHECK_TEXT(run.record.sandbox, "read-only, network off");
    CHECK_EQ_INT(3, run.record.pipestatus_count);
    run_done(&run);
    command.sandbox = NULL;
    run = run_command(s, &command);
    CHECK_TEXT(run.out, "written\n");
    CHECK_TEXT(run.record.sandbox, "workspace-write, network off");
    run_done(&run);
    close_session(s);
    s = open_fenced("read-only", NULL);
    command.sandbox = "workspace-write";
    CHECK_CODE(NACRE_EPERM, nacre_start(s, &command, &id, NULL, ERR));
    CHECK_STR(harness_error.msg, "a call may only narrow it");
    command.sandbox = "wide";
    CHECK_CODE(NACRE_EINVAL, nacre_start(s, &command, &id, NULL, ERR));
    close_session(s);
    world_end();
}

TEST(a_workspace_that_is_too_much)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_settings *settings = NULL;
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;

    CHECK_OK(nacre_settings_load(NULL, &settings, ERR));
    CHECK_OK(nacre_settings_set(settings, "sandbox", "workspace-write", NULL, ERR));
    options.settings = settings;
    options.cwd = "/";
    nacre_session *s = open_options(&options);
    command.text = "true";
    CHECK_CODE(NACRE_EINVAL, nacre_start(s, &command, &id, NULL, ERR));
    CHECK_STR(harness_error.msg, "the whole system");
    CHECK_STR(harness_error.stage, "sandbox");
    close_session(s);
    nacre_settings_free(settings);
}
