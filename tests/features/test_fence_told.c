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
    {"mkdir .vscode", "moved aside /mnt/ws/.vscode"},
    {"echo evil >.envrc; exit 3", "moved aside /mnt/ws/.envrc"},
    {"touch fine; mkdir -p a/b; echo x >a/b/c", NULL},
    {"echo 'touch: cannot touch fine: Permission denied'", NULL},
    {"echo 'Read-only file system'; exit 1", NULL},
    {"ls /there-is-nothing", NULL},
    {"chmod 0 fine; mkdir locked; chmod 0 locked; echo 'cannot open /mnt/ws/fine: Permission "
     "denied'",
     NULL},
    {"grep -rn 'permission denied' /etc/hostname", NULL},
    {"bwrap --ro-bind / / true", "refused rights to bwrap", "bwrap"},
    {"echo 'the manual of mount: see mount(8)'; echo bwrap: fine", NULL},
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

/* -- How many --------------------------------------------------------------------------------- */

/* What happens every day: each is refused one thing, in whatever words its program has for that. */
static const struct happened {
    const char *text, *target;
    const char *needs;
} happened_rows[] = {
    {"touch $OUT/a", "/mnt/out/a", NULL},
    {"touch \"$OUT/with a blank\"", "/mnt/out/with a blank", NULL},
    {"cd $OUT; echo x > ./near", "/mnt/out/near", NULL}, /* nobody can say where that was */
    {"echo x | tee -a $OUT/log", "/mnt/out/log", NULL},
    {"sort -o $OUT/sorted /etc/hostname", "/mnt/out/sorted", NULL},
    {"cp -r /etc/hostname .git $OUT/", "/mnt/out/", NULL},
    {"tar xf t.tar -C $OUT", "a", "tar"}, /* a name without its directory */
    {"tar cf $OUT/t.tar mine", "/mnt/out/t.tar", "tar"},
    {"gzip $OUT/mine", "/mnt/out/mine.gz", "gzip"},
    {"mktemp -p $OUT", "/mnt/out/tmp.", NULL},
    {"chgrp $(id -g) $OUT/mine", "/mnt/out/mine", NULL},
    {"split /etc/hostname $OUT/part", "/mnt/out/partaa", NULL},
    {"awk 'BEGIN { print \"x\" > \"/mnt/out/awk\" }'", "/mnt/out/awk", "awk"},
    {"find $OUT -name mine -delete", "/mnt/out/mine", NULL},
    {"sh -c 'exec 3>$OUT/dash'", "/mnt/out/dash", NULL},
    {"make -f /dev/null -C $OUT; printf 'all:\\n\\t@touch $(OUT)/made\\n' > M; make -f M 2>&1",
     "/mnt/out/made", "make"},
    {"echo 'int main(void) { return 0; }' > m.c; gcc -o $OUT/m m.c", "/mnt/out/m", "gcc"},
    {"patch -o $OUT/patched mine < /dev/null; echo x > $OUT/patched", "/mnt/out/patched", NULL},
    {"git clone -q . $OUT/clone", "/mnt/out/clone", "git"},
    {"python3 -c 'import os; os.rename(\"/mnt/out/mine\", \"x\")'", "/mnt/out/mine", "python3"},
    {"python3 -c 'import pathlib; pathlib.Path(\"/mnt/out/d/e\").mkdir(parents=True)'",
     "/mnt/out/d", "python3"},
    {"python3 -c 'import shutil; shutil.copy(\"mine\", \"/mnt/out/copied\")' 2>&1 | tail -1",
     "/mnt/out/copied", "python3"},
    {"node -e 'require(\"fs\").mkdirSync(\"/mnt/out/n\")' 2>&1", "/mnt/out/n", "node"},
    {"perl -i -pe s/a/b/ $OUT/mine", "/mnt/out/mine", "perl"},
    {"bash -c 'bash -c \"rm $OUT/mine\"'", "/mnt/out/mine", NULL},
    {"echo x > .git/config", "/mnt/ws/.git/config", NULL},
    {"mv .git/hooks .git/h", "/mnt/ws/.git/hooks", NULL},
    {"git config user.name x", "/mnt/ws/.git/config", "git"},
    {"echo x > .envrc", "/mnt/ws/.envrc", NULL},
    {"$OUT/tool", "/mnt/out/tool", NULL},
    {"exec $OUT/tool", "/mnt/out/tool", NULL},
    {"env $OUT/tool", "/mnt/out/tool", NULL},
    {"curl -sS -m 5 http://192.0.2.1/", "192.0.2.1:80", "curl"},
    {"curl -s -m 5 https://192.0.2.2/ || true", "192.0.2.2:443", "curl"},
    {"exec 3<>/dev/tcp/192.0.2.3/22", "192.0.2.3:22", NULL},
    {"(exec 3<>/dev/tcp/192.0.2.4/8080) 2>/dev/null; true", "192.0.2.4:8080", NULL},
    {"./escape unix $OUT/stream", "/mnt/out/stream", NULL},
    {"./escape unix-at $OUT stream > /dev/null", "stream", NULL},
    {"python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"before\")'", "before",
     "python3"},
    {"node -e 'require(\"net\").connect(443, \"192.0.2.5\")'", "192.0.2.5:443", "node"},
    {"unshare -Urm true", "rights to unshare", NULL},
    {"bwrap --ro-bind / / true", "rights to bwrap", "bwrap"},
    /* Nothing is refused. */
    {"echo x > $OUT.not-there/x; ls /root/.x; cat /etc/not-there", NULL, NULL},
    {"grep -r 'Permission denied' /etc/hostname; echo /etc/passwd: Permission denied > said", NULL,
     NULL},
    {"cat $OUT/mine; echo mine >> mine; rm -f made; git status 2>/dev/null", NULL, NULL},
};

struct told_count {
    int happened, noticed; /* of what was refused */
    int told, right;       /* of the lines that say so */
};

/* Each line that says what was refused; the last one says what would allow it. */
static void count_told(struct told_count *count, const struct happened *row, const char *summary)
{
    int right = 0;
    for (const char *at = summary; (at = strstr(at, "Sandbox: ")); at++) {
        if (strncmp(at, "Sandbox: its user can", 21) == 0)
            continue;
        const char *line = format("%.*s", (int)strcspn(at, "\n"), at);
        bool meant = row->target && strstr(line, row->target);
        count->told++;
        right += meant;
        if (!meant)
            printf("%s: told, and not so: %s\n", row->text, line);
    }
    count->happened += row->target != NULL;
    count->noticed += right > 0;
    count->right += right;
    if (row->target && right == 0)
        printf("%s: not told\n", row->text);
}

/* Nineteen of twenty that are told are right, and nine of ten that happen are told. */
TEST_LIMIT(most_is_told_and_hardly_anything_else, 120)
{
    struct told_count count = {0};
    if (!have_program("git"))
        SKIP("needs git");
    world_make();
    CHECK_EQ_INT(
        0, system("cd $OUT && touch mine && printf '#!/bin/sh\n' > tool && chmod 755 tool "
                  "&& cd /mnt/ws && touch a && tar cf t.tar a && rm -rf .git && git init -q ."));
    nacre_session *s = open_fenced("workspace-write", "sandbox_hide=/mnt/out/tool");
    for (size_t i = 0; i < sizeof happened_rows / sizeof happened_rows[0]; i++) {
        const struct happened *row = &happened_rows[i];
        if (row->needs && !have_program(row->needs))
            continue;
        char *summary = summary_of(s, row->text);
        count_told(&count, row, summary);
        free(summary);
    }
    printf("%d happened, %d of them were told; %d told, %d of them right\n", count.happened,
           count.noticed, count.told, count.right);
    CHECK(count.happened >= 25);
    CHECK(count.right * 100 >= 95 * count.told);
    CHECK(count.noticed * 100 >= 90 * count.happened);
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
