/* What programs do, in a few words; data for hosts, by which nothing is decided. */
#include "policy/ruling.h"

#include <string.h>

#include "base/defs.h"

#define R NACRE_CLASS_READS
#define W NACRE_CLASS_WRITES
#define N NACRE_CLASS_NETWORK
#define D NACRE_CLASS_DESTRUCTIVE
#define P NACRE_CLASS_PRIVILEGE

/* A program, or a program with a word behind it; the longer entry is the one that counts. */
static const struct {
    const char *program, *word;
    unsigned classes;
} known[] = {
    {"cat", NULL, R},
    {"head", NULL, R},
    {"tail", NULL, R},
    {"less", NULL, R},
    {"more", NULL, R},
    {"ls", NULL, R},
    {"grep", NULL, R},
    {"egrep", NULL, R},
    {"fgrep", NULL, R},
    {"rg", NULL, R},
    {"find", NULL, R},
    {"find", "-delete", R | W | D},
    {"find", "-fprint", R | W},
    {"fd", NULL, R},
    {"wc", NULL, R},
    {"sort", NULL, R},
    {"sort", "-o", R | W},
    {"uniq", NULL, R},
    {"cut", NULL, R},
    {"tr", NULL, R},
    {"diff", NULL, R},
    {"cmp", NULL, R},
    {"file", NULL, R},
    {"stat", NULL, R},
    {"du", NULL, R},
    {"df", NULL, R},
    {"tree", NULL, R},
    {"pwd", NULL, R},
    {"which", NULL, R},
    {"whereis", NULL, R},
    {"realpath", NULL, R},
    {"readlink", NULL, R},
    {"basename", NULL, R},
    {"dirname", NULL, R},
    {"date", NULL, R},
    {"uname", NULL, R},
    {"id", NULL, R},
    {"whoami", NULL, R},
    {"ps", NULL, R},
    {"env", NULL, R},
    {"printenv", NULL, R},
    {"jq", NULL, R},
    {"awk", NULL, R},
    {"sed", NULL, R},
    {"sed", "-i", R | W},
    {"nl", NULL, R},
    {"od", NULL, R},
    {"xxd", NULL, R},
    {"md5sum", NULL, R},
    {"sha256sum", NULL, R},
    {"seq", NULL, R},
    {"sleep", NULL, R},
    {"tee", NULL, W},
    {"cp", NULL, R | W},
    {"mv", NULL, W | D},
    {"ln", NULL, W},
    {"mkdir", NULL, W},
    {"touch", NULL, W},
    {"chmod", NULL, W},
    {"chown", NULL, W | P},
    {"install", NULL, W},
    {"patch", NULL, W},
    {"tar", NULL, R | W},
    {"zip", NULL, R | W},
    {"unzip", NULL, R | W},
    {"gzip", NULL, W},
    {"gunzip", NULL, W},
    {"make", NULL, R | W},
    {"ninja", NULL, R | W},
    {"gcc", NULL, R | W},
    {"cc", NULL, R | W},
    {"clang", NULL, R | W},
    {"rm", NULL, W | D},
    {"rmdir", NULL, W | D},
    {"unlink", NULL, W | D},
    {"shred", NULL, W | D},
    {"truncate", NULL, W | D},
    {"dd", NULL, R | W | D},
    {"mkfs", NULL, W | D | P},
    {"mkfs.ext4", NULL, W | D | P},
    {"wipefs", NULL, W | D | P},
    {"kill", NULL, D},
    {"pkill", NULL, D},
    {"killall", NULL, D},
    {"reboot", NULL, D | P},
    {"shutdown", NULL, D | P},
    {"sudo", NULL, P},
    {"su", NULL, P},
    {"doas", NULL, P},
    {"pkexec", NULL, P},
    {"mount", NULL, P},
    {"umount", NULL, P},
    {"useradd", NULL, W | P},
    {"systemctl", NULL, P},
    {"crontab", NULL, W | P},
    {"curl", NULL, R | N},
    {"wget", NULL, W | N},
    {"ssh", NULL, N},
    {"scp", NULL, R | W | N},
    {"sftp", NULL, R | W | N},
    {"rsync", NULL, R | W | N},
    {"rsync", "--delete", R | W | N | D},
    {"nc", NULL, N},
    {"ping", NULL, N},
    {"dig", NULL, N},
    {"host", NULL, N},
    {"telnet", NULL, N},
    {"git", "status", R},
    {"git", "log", R},
    {"git", "diff", R},
    {"git", "show", R},
    {"git", "blame", R},
    {"git", "rev-parse", R},
    {"git", "ls-files", R},
    {"git", "grep", R},
    {"git", "add", R | W},
    {"git", "commit", R | W},
    {"git", "checkout", R | W | D},
    {"git", "switch", R | W},
    {"git", "restore", R | W | D},
    {"git", "merge", R | W},
    {"git", "rebase", R | W | D},
    {"git", "stash", R | W},
    {"git", "reset", R | W | D},
    {"git", "clean", W | D},
    {"git", "rm", W | D},
    {"git", "push", R | N},
    {"git", "pull", R | W | N},
    {"git", "fetch", W | N},
    {"git", "clone", W | N},
    {"npm", NULL, R | W | N},
    {"pnpm", NULL, R | W | N},
    {"yarn", NULL, R | W | N},
    {"npx", NULL, R | W | N},
    {"pip", NULL, R | W | N},
    {"pip3", NULL, R | W | N},
    {"cargo", NULL, R | W | N},
    {"go", NULL, R | W | N},
    {"apt", NULL, W | N | P},
    {"apt-get", NULL, W | N | P},
    {"docker", NULL, R | W | N | P},
    {"podman", NULL, R | W | N},
    {"kubectl", NULL, R | W | N},
    {"gh", NULL, R | W | N},
};

#undef R
#undef W
#undef N
#undef D
#undef P

/* Commands of the shell that change nothing but the shell. */
static const char *const of_shell[] = {
    "cd",     "echo",    "printf", "test",    "[",       "true",     "false",
    ":",      "pwd",     "exit",   "return",  "break",   "continue", "shift",
    "set",    "export",  "local",  "declare", "typeset", "readonly", "read",
    "wait",   "getopts", "umask",  "type",    "times",   "unset",    "trap",
    "shopt",  "jobs",    "pushd",  "popd",    "dirs",    "mapfile",  "readarray",
    "ulimit", "bg",      "fg",     "disown",  "command", "hash",
};

static bool command_has_word(const struct script_command *c, const char *text)
{
    for (size_t i = 1; i < c->argc; i++)
        if (word_is(&c->argv[i], text))
            return true;
    return false;
}

static bool is_shell_word(const struct shell_word *w)
{
    for (size_t i = 0; i < ARRAY_SIZE(of_shell); i++)
        if (word_is(w, of_shell[i]))
            return true;
    return false;
}

bool is_of_shell(const struct script_command *command)
{
    return !command->writes && is_shell_word(&command->argv[0]);
}

unsigned classes_of(const struct script_command *command)
{
    const struct shell_word *program = &command->argv[0];
    unsigned classes = 0;
    bool found = false;
    if (program->kind == WORD_LITERAL) {
        const char *name = program_name(program->text);
        for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
            if (strcmp(known[i].program, name) != 0 ||
                (known[i].word && !command_has_word(command, known[i].word)))
                continue;
            classes = known[i].word || !found ? known[i].classes : classes;
            found = true;
        }
        found = found || is_shell_word(program) || command->starts_others;
    }
    classes |= command->writes ? NACRE_CLASS_WRITES : 0;
    return found && !command->doubt ? classes : classes | NACRE_CLASS_UNKNOWN;
}
