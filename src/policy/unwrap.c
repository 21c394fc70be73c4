/*
 * Programs that start others. Of some it is known how their command line says what; that is listed
 * as a command of its own. Of others it is known that they do, and that is a doubt.
 */
#include "policy/reader.h"

#include "base/defs.h"

/* A program that does little else than start what is behind its options. */
struct wrapper {
    const char *name;
    const char *flags;  /* letters of options without a value */
    const char *valued; /* letters of options with one */
    const char *longs;  /* long options, "," behind each; with "=" they have a value */
    size_t skipped;     /* words before the command */
    bool assigns;       /* NAME=VALUE before the command */
    bool matters;       /* it does something itself: a rule for the command is not enough */
    bool builtin;       /* what it starts is found by the shell */
};

static const struct wrapper wrappers[] = {
    {"env", "i0v", "uC", "unset=,chdir=,ignore-environment,null,debug,", .assigns = true},
    {"nice", "0123456789", "n", "adjustment=,"},
    {"ionice", "t", "cn", "class=,classdata=,ignore,"},
    {"nohup", "", "", ""},
    {"setsid", "cfw", "", "ctty,fork,wait,"},
    {"timeout", "v", "ks", "kill-after=,signal=,preserve-status,foreground,verbose,", .skipped = 1},
    {"stdbuf", "", "ioe", "input=,output=,error=,"},
    {"time", "pvqa", "fo", "portability,verbose,quiet,append,format=,output=,"},
    {"command", "p", "", "", .builtin = true},
    {"builtin", "", "", "", .builtin = true},
    {"exec", "cl", "a", "", .builtin = true},
    {"chrt", "bfiormv", "", "batch,fifo,idle,other,rr,", .skipped = 1},
    {"taskset", "a", "", "all-tasks,", .skipped = 1},
    {"sudo", "nEHkbSAPB", "ugprtCDhT", "non-interactive,user=,group=,preserve-env,set-home,stdin,",
     .assigns = true, .matters = true},
    {"doas", "n", "uC", "", .matters = true},
    {"busybox", "", "", "", .matters = true},
    {"toybox", "", "", "", .matters = true},
    {"xargs", "0rtx", "nPLdasI",
     "null,no-run-if-empty,max-args=,max-procs=,max-lines=,delimiter=,"
     "arg-file=,max-chars=,verbose,exit,"},
};

static const char LANGUAGE_DOUBT[] = "it runs text in a language that is not read here";

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool in_list(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

static bool not_plain(struct script_reader *r, size_t index)
{
    return command_doubt(r, index, "what it starts cannot be told from its options");
}

/* -- Options ---------------------------------------------------------------------------------- */

/* How many words a long option takes; 0 = it is not known. */
static size_t long_option(const struct wrapper *w, const char *option)
{
    const char *equals = strchr(option, '=');
    size_t size = equals ? (size_t)(equals - option) : strlen(option);
    for (const char *at = w->longs; *at; at = strchr(at, ',') + 1) {
        if (strncmp(at, option, size) != 0 || memchr(option, ',', size))
            continue;
        if (at[size] == '=')
            return equals ? 1 : 2;
        if (at[size] == ',')
            return 1;
    }
    return 0;
}

/* The same of letters behind one dash. */
static size_t short_options(const struct wrapper *w, const char *letters)
{
    for (; *letters; letters++) {
        if (strchr(w->flags, *letters))
            continue;
        if (strchr(w->valued, *letters))
            return letters[1] ? 1 : 2;
        return 0;
    }
    return 1;
}

/* Where the options end; 0 = that is not known. */
static size_t behind_options(const struct wrapper *w, const struct script_command *c, size_t at)
{
    while (at < c->argc) {
        const struct shell_word *word = &c->argv[at];
        if (word->kind != WORD_LITERAL)
            return 0;
        if (word_is(word, "--"))
            return at + 1;
        if (word->text[0] != '-')
            return at;
        if (word->size == 1)
            return 0;
        size_t taken = word->text[1] == '-' ? long_option(w, word->text + 2)
                                            : short_options(w, word->text + 1);
        if (taken == 0)
            return 0;
        at += taken;
    }
    return at;
}

/* NAME=VALUE: 1, or 0 if the word is something else, or -1 if what it sets matters, or cannot be
 * told. For env every word with a = in it is one. */
static int assigns(const struct shell_word *w)
{
    bool sets;
    size_t size = word_name(w, &sets);
    if (!sets)
        return w->kind != WORD_LITERAL || strchr(w->text, '=') ? -1 : 0;
    struct shell_word value = *w;
    value.text = w->text + size + 1;
    value.size = w->size - size - 1;
    return w->text[size] != '=' || variable_is_delicate(w->text, size, &value) ? -1 : 1;
}

/* -- Programs that start what is behind their options ----------------------------------------- */

static bool list_from(struct script_reader *r, size_t index, size_t first, size_t count)
{
    struct shell_word *words = &r->script->commands[index].argv[first];
    bool started = r->started;
    r->started = true;
    bool ok = list_command(r, words, count, r->script->commands[index].writes);
    r->started = started;
    return ok;
}

/* The command of xargs gets words that nobody knows yet, at its end or in place of a mark. */
static bool list_of_xargs(struct script_reader *r, size_t index, size_t first)
{
    const struct script_command c = r->script->commands[index];
    struct shell_word *words = arena_take(&r->script->arena, (c.argc + 1) * sizeof *words);
    const char *mark = NULL;
    size_t count = c.argc - first;
    if (!words)
        return reader_give_up(r, "out of memory");
    for (size_t i = 1; i < first; i++)
        if (c.argv[i].text[0] == '-' && c.argv[i].text[1] == 'I')
            mark = c.argv[i].text[2] ? c.argv[i].text + 2
                   : i + 1 < first   ? c.argv[i + 1].text
                                     : NULL;
    memcpy(words, c.argv + first, count * sizeof *words);
    for (size_t i = 0; mark && i < count; i++)
        if (words[i].kind == WORD_LITERAL && strstr(words[i].text, mark))
            words[i].kind = WORD_ONE;
    if (!mark)
        words[count++] = (struct shell_word){.text = "...", .size = 3, .kind = WORD_ANY};
    bool started = r->started;
    r->started = true;
    bool ok = list_command(r, words, count, false);
    r->started = started;
    return ok;
}

static bool unwrap(struct script_reader *r, size_t index, const struct wrapper *w)
{
    const struct script_command c = r->script->commands[index];
    size_t at = 1;
    if (w->builtin && strcmp(w->name, "command") == 0 && c.argc > 1 &&
        (word_is(&c.argv[1], "-v") || word_is(&c.argv[1], "-V")))
        return true;
    at = behind_options(w, &c, at);
    if (at == 0)
        return not_plain(r, index);
    for (int set = 1; w->assigns && at < c.argc && (set = assigns(&c.argv[at])); at++)
        if (set < 0)
            return command_doubt(r, index, "it sets a variable that changes what commands do");
    for (size_t i = 0; i < w->skipped && at < c.argc; i++, at++)
        if (c.argv[at].kind == WORD_ANY)
            return not_plain(r, index);
    if (at >= c.argc)
        return true;
    r->script->commands[index].starts_others = !w->matters;
    return strcmp(w->name, "xargs") == 0 ? list_of_xargs(r, index, at)
                                         : list_from(r, index, at, c.argc - at);
}

/* -- find ------------------------------------------------------------------------------------- */

static bool ends_action(const struct shell_word *w)
{
    return word_is(w, ";") || (word_is(w, "+") && word_is(w - 1, "{}"));
}

static size_t length_of_action(const struct script_command *c, size_t first)
{
    size_t at = first;
    while (at < c->argc && !ends_action(&c->argv[at]))
        at++;
    return at - first;
}

static bool list_action(struct script_reader *r, size_t index, size_t first, size_t count)
{
    const struct script_command c = r->script->commands[index];
    struct shell_word *words = arena_take(&r->script->arena, count * sizeof *words);
    if (!words)
        return reader_give_up(r, "out of memory");
    memcpy(words, c.argv + first, count * sizeof *words);
    for (size_t i = 0; i < count; i++)
        if (words[i].kind == WORD_LITERAL && strstr(words[i].text, "{}"))
            words[i].kind = first + count < c.argc && word_is(&c.argv[first + count], "+")
                                ? WORD_ANY
                                : WORD_ONE;
    bool started = r->started;
    r->started = true;
    bool ok = list_command(r, words, count, false);
    r->started = started;
    return ok;
}

static bool read_find(struct script_reader *r, size_t index)
{
    static const char *const actions[] = {"-exec", "-execdir", "-ok", "-okdir"};
    static const char *const valued[] = {"-name",  "-iname", "-path",  "-ipath",    "-type",
                                         "-newer", "-size",  "-regex", "-maxdepth", "-mindepth"};
    for (size_t i = 1; i < r->script->commands[index].argc; i++) {
        const struct script_command c = r->script->commands[index];
        const struct shell_word *w = &c.argv[i], *before = &c.argv[i - 1];
        bool value = w->kind == WORD_ONE && before->kind == WORD_LITERAL &&
                     in_list(before->text, valued, ARRAY_SIZE(valued));
        if (w->kind != WORD_LITERAL && !value)
            return not_plain(r, index);
        if (value || !in_list(w->text, actions, ARRAY_SIZE(actions)))
            continue;
        size_t count = length_of_action(&c, i + 1);
        if (count == 0 || i + 1 + count >= c.argc)
            return not_plain(r, index);
        if (!list_action(r, index, i + 1, count))
            return false;
        i += count + 1;
    }
    return true;
}

/* -- Shells and interpreters ------------------------------------------------------------------ */

static bool read_shell(struct script_reader *r, size_t index)
{
    static const struct wrapper shell = {"", "euxlhnvp", "oO", "login,norc,noprofile,"};
    const struct script_command c = r->script->commands[index];
    enum dialect dialect =
        strcmp(program_name(c.argv[0].text), "bash") == 0 ? r->dialect : DIALECT_SH;
    for (size_t i = 1; i < c.argc; i++) {
        const struct shell_word *w = &c.argv[i];
        if (w->kind != WORD_LITERAL)
            return command_doubt(r, index, "which text it runs is known only when it runs");
        if (w->text[0] != '-' && w->text[0] != '+')
            return true; /* a script: a program as others are */
        size_t letters = strlen(w->text);
        bool text = w->text[0] == '-' && w->text[1] != '-' && w->text[letters - 1] == 'c';
        if (text && strspn(w->text + 1, "euxlc") == letters - 1) {
            if (i + 1 >= c.argc || c.argv[i + 1].kind != WORD_LITERAL)
                return command_doubt(r, index, "which text it runs is known only when it runs");
            r->script->commands[index].starts_others = true;
            return read_inner(r, c.argv[i + 1].text, c.argv[i + 1].size, dialect, true);
        }
        size_t taken = w->text[0] != '-'   ? 0
                       : w->text[1] == '-' ? long_option(&shell, w->text + 2)
                                           : short_options(&shell, w->text + 1);
        bool usual = taken == 1 || (taken == 2 && i + 1 < c.argc && word_is(w, "-o") &&
                                    word_is(&c.argv[i + 1], "pipefail"));
        if (taken == 0 || !usual)
            return not_plain(r, index);
        i += taken - 1;
    }
    return command_doubt(r, index, "it runs what comes in by its standard input");
}

/* Programs that take the text of a program. */
struct interpreter {
    const char *name;
    const char *code; /* letters of options that bring some */
};

static const struct interpreter interpreters[] = {
    {"python", "c"},    {"pypy", "c"},   {"perl", "eE"},   {"ruby", "e"},   {"node", "eprc"},
    {"nodejs", "eprc"}, {"php", "rBRF"}, {"lua", "el"},    {"deno", "e"},   {"bun", "e"},
    {"osascript", "e"}, {"tclsh", "c"},  {"Rscript", "e"}, {"guile", "ce"}, {"sqlite3", "c"},
    {"julia", "eE"},    {"groovy", "e"},
};

/* python3.11 is python. */
static const struct interpreter *find_interpreter(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(interpreters); i++) {
        size_t size = strlen(interpreters[i].name);
        if (strncmp(name, interpreters[i].name, size) == 0 &&
            strspn(name + size, "0123456789.-") == strlen(name + size))
            return &interpreters[i];
    }
    return NULL;
}

static bool read_interpreter(struct script_reader *r, size_t index, const struct interpreter *known)
{
    const struct script_command *c = &r->script->commands[index];
    for (size_t i = 1; i < c->argc; i++) {
        const struct shell_word *w = &c->argv[i];
        if (w->kind != WORD_LITERAL)
            return not_plain(r, index);
        if (w->text[0] != '-' || word_is(w, "-m") || word_is(w, "--version") || word_is(w, "-V") ||
            word_is(w, "--help"))
            return true;
        if (w->size < 2 || w->text[1] == '-' || strpbrk(w->text + 1, known->code))
            return command_doubt(r, index, LANGUAGE_DOUBT);
    }
    return command_doubt(r, index, "it runs what comes in by its standard input");
}

/* s/a/b/g, without what sed could run or write. */
static bool is_plain_replacement(const struct shell_word *w)
{
    char mark = w->size > 3 && w->text[0] == 's' ? w->text[1] : '\0';
    const char *middle = mark && strchr("/|#,:@", mark) ? strchr(w->text + 2, mark) : NULL;
    const char *last = middle ? strchr(middle + 1, mark) : NULL;
    return last && !strpbrk(w->text, "\n\\;{}") &&
           strspn(last + 1, "gpiI0123456789") == strlen(last + 1);
}

/* Options are looked for behind the files, too. */
static bool read_sed(struct script_reader *r, size_t index)
{
    static const char *const options[] = {"-n", "-E", "-r", "-i", "-s", "-u", "-z"};
    const struct script_command *c = &r->script->commands[index];
    bool found = false;
    for (size_t i = 1; i < c->argc; i++) {
        const struct shell_word *w = &c->argv[i];
        if (w->kind != WORD_LITERAL)
            return not_plain(r, index);
        if (w->text[0] == '-' && in_list(w->text, options, ARRAY_SIZE(options)))
            continue;
        bool plain =
            found || strspn(w->text, "0123456789,$pdq!= ") == w->size || is_plain_replacement(w);
        if (!plain || (w->text[0] == '-' && w->size > 1))
            return command_doubt(r, index, LANGUAGE_DOUBT);
        found = true;
    }
    return true;
}

static bool read_awk(struct script_reader *r, size_t index)
{
    const struct script_command *c = &r->script->commands[index];
    for (size_t i = 1; i < c->argc; i++) {
        const struct shell_word *w = &c->argv[i];
        if (w->kind != WORD_LITERAL)
            return not_plain(r, index);
        if (w->text[0] == '-' && w->text[1] == 'F') {
            i += w->size == 2 ? 1 : 0;
            continue;
        }
        bool plain = w->text[0] != '-' && !strpbrk(w->text, "|>@") && !strstr(w->text, "system") &&
                     !strstr(w->text, "getline");
        return plain || command_doubt(r, index, LANGUAGE_DOUBT);
    }
    return true;
}

/* -- What is known to start something ---------------------------------------------------------- */

static const char *const starters[] = {
    "parallel",     "watch",
    "su",           "runuser",
    "pkexec",       "script",
    "strace",       "ltrace",
    "gdb",          "unshare",
    "nsenter",      "chroot",
    "systemd-run",  "at",
    "batch",        "crontab",
    "entr",         "sg",
    "expect",       "m4",
    "ed",           "ex",
    "vi",           "vim",
    "nvim",         "emacs",
    "screen",       "tmux",
    "rlwrap",       "unbuffer",
    "proot",        "fakeroot",
    "flock",        "setpriv",
    "zsh",          "ksh",
    "fish",         "csh",
    "tcsh",         "mksh",
    "ash",          "socat",
    "capsh",        "setarch",
    "linux32",      "linux64",
    "i386",         "numactl",
    "prlimit",      "setuidgid",
    "chpst",        "softlimit",
    "trickle",      "dbus-run-session",
    "xvfb-run",     "start-stop-daemon",
    "run-parts",    "daemonize",
    "rbash",        "yash",
    "ncat",         "nc.traditional",
    "gcore",        "perf",
    "valgrind",     "catchsegv",
    "ssh-agent",    "sem",
    "task-spooler", "tsp",
};

/* An option by which a program starts what is not its own matter. */
static const struct {
    const char *program, *option;
    bool whole; /* else what begins so, too */
} doors[] = {
    {"git", "-c", false},
    {"git", "--config-env", false},
    {"git", "--exec", false},
    {"git", "--upload-pack", false},
    {"git", "--receive-pack", false},
    {"git", "foreach", true},
    {"git", "filter-branch", true},
    {"git", "difftool", true},
    {"git", "mergetool", true},
    {"git", "run", true},
    {"git", "-x", true},
    {"git", "--open-files", false},
    {"git", "-O", false},
    {"git", "ext::", false},
    {"git", "config", true},
    {"git", "--git-dir", false},
    {"git", "--extcmd", false},
    {"git", "-i", true},
    {"git", "--template", false},
    {"git", "--tool", false},
    {"tar", "--checkpoint-a", false},
    {"tar", "--to-command", false},
    {"tar", "--use-compress", false},
    {"tar", "-I", false},
    {"tar", "--info-script", false},
    {"tar", "--new-volume", false},
    {"tar", "-F", false},
    {"tar", "--rsh", false},
    {"tar", "--rmt", false},
    {"rsync", "-e", false},
    {"rsync", "--rsh", false},
    {"rsync", "--rsync-path", false},
    {"ssh", "-o", false},
    {"ssh", "-F", false},
    {"scp", "-o", false},
    {"scp", "-S", false},
    {"scp", "-F", false},
    {"sftp", "-o", false},
    {"man", "-P", false},
    {"man", "-H", false},
    {"sort", "--compress-p", false},
    {"zip", "-TT", false},
    {"zip", "--unzip-c", false},
    {"split", "--filter", false},
    {"wget", "--use-askpass", false},
    {"wget", "-e", false},
    {"make", "--eval", false},
    {"make", "SHELL", false},
    {"cmake", "-E", true},
    {"cmake", "-P", true},
    {"npm", "exec", true},
    {"npm", "x", true},
    {"docker", "--format", false},
    {"less", "+", false},
    {"more", "+", false},
    {"gcc", "-wrapper", false},
    {"nc", "-e", false},
    {"nc", "-c", false},
    {"curl", "-K", false},
    {"psql", "-c", false},
    {"mysql", "-e", false},
    {"go", "-exec", false},
    {"go", "-toolexec", false},
    {"cargo", "--config", false},
    {"systemctl", "edit", true},
};

static bool read_doors(struct script_reader *r, size_t index, const char *name)
{
    const struct script_command *c = &r->script->commands[index];
    for (size_t i = 0; i < ARRAY_SIZE(doors); i++) {
        if (strcmp(doors[i].program, name) != 0)
            continue;
        for (size_t k = 1; k < c->argc; k++)
            if (doors[i].whole ? word_is(&c->argv[k], doors[i].option)
                               : starts_with(c->argv[k].text, doors[i].option))
                return command_doubt(r, index, "one of its options may start something else");
    }
    return true;
}

bool read_wrapped(struct script_reader *r, size_t index)
{
    static const char *const shells[] = {"bash", "sh", "dash"};
    static const char *const awks[] = {"awk", "gawk", "mawk", "nawk"};
    const char *name = program_name(r->script->commands[index].argv[0].text);
    for (size_t i = 0; i < ARRAY_SIZE(wrappers); i++)
        if (strcmp(wrappers[i].name, name) == 0)
            return unwrap(r, index, &wrappers[i]);
    if (strcmp(name, "find") == 0)
        return read_find(r, index);
    if (in_list(name, shells, ARRAY_SIZE(shells)))
        return read_shell(r, index);
    if (strcmp(name, "sed") == 0)
        return read_sed(r, index);
    if (in_list(name, awks, ARRAY_SIZE(awks)))
        return read_awk(r, index);
    const struct interpreter *interpreter = find_interpreter(name);
    if (interpreter)
        return read_interpreter(r, index, interpreter);
    if (in_list(name, starters, ARRAY_SIZE(starters)) || starts_with(name, "ld-linux") ||
        starts_with(name, "ld.so") || starts_with(name, "qemu-"))
        return command_doubt(r, index, "it may start something else");
    return read_doors(r, index, name);
}
