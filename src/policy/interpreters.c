#include "policy/interpreters.h"

#include <string.h>

#include "base/defs.h"

/* With a version behind it, too: python3.11. */
static const char *const known_runners[] = {
    "bash",    "sh",        "dash",        "zsh",     "ksh",          "mksh",    "fish",
    "csh",     "tcsh",      "pwsh",        "python",  "pypy",         "ipython", "perl",
    "ruby",    "irb",       "node",        "nodejs",  "deno",         "bun",     "tsx",
    "ts-node", "lua",       "luajit",      "php",     "tclsh",        "wish",    "expect",
    "awk",     "gawk",      "mawk",        "nawk",    "sed",          "guile",   "racket",
    "julia",   "Rscript",   "R",           "groovy",  "scala",        "kotlin",  "java",
    "jshell",  "ghci",      "runghc",      "ocaml",   "erl",          "escript", "elixir",
    "iex",     "octave",    "gdb",         "lldb",    "vi",           "vim",     "nvim",
    "ex",      "ed",        "emacs",       "m4",      "bc",           "dc",      "sqlite",
    "psql",    "mysql",     "osascript",   "make",    "gmake",        "ninja",   "just",
    "task",    "ssh",       "docker",      "podman",  "kubectl",      "screen",  "tmux",
    "script",  "watch",     "parallel",    "entr",    "npx",          "uv",      "uvx",
    "pipx",    "poetry",    "su",          "runuser", "chroot",       "nsenter", "unshare",
    "bwrap",   "flock",     "systemd-run", "nacre",   "strace",       "ltrace",  "find",
    "xargs",   "nix-shell", "direnv",      "dotenv",  "cargo-script", "source",  "eval",
    "exec",    "command",   "builtin",
};

/* "3.11" behind "python", but not "3to" behind it. */
static bool is_version(const char *text)
{
    return text[strspn(text, "0123456789.-")] == '\0';
}

bool runs_anything(const struct script_command *command)
{
    const char *name = program_name(command->argv[0].text);
    if (command->starts_others || command->is_started)
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(known_runners); i++) {
        size_t size = strlen(known_runners[i]);
        if (strncmp(name, known_runners[i], size) == 0 && is_version(name + size))
            return true;
    }
    return false;
}
