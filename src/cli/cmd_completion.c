/* nacre completion: what a shell needs so that Tab completes verbs, options, and ids of shells. */
#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "cli/verbs.h"
#include "console/out.h"

/* Readline shows what it could insert: what is said of it stands there only when it is listed. */
static const char bash_script[] =
    "# Completion of nacre for bash. It asks nacre itself, so it knows every version's verbs.\n"
    "_nacre() {\n"
    "    local nacre=${COMP_WORDS[0]/#\\~/$HOME} current=${COMP_WORDS[COMP_CWORD]} line first\n"
    "    local -a lines\n"
    "    COMPREPLY=()\n"
    "    mapfile -t lines < <(\"$nacre\" __complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" "
    "2>/dev/null)\n"
    "    case ${lines[0]-} in\n"
    "    :files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$current\"); "
    "return ;;\n"
    "    :folders) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$current\"); "
    "return ;;\n"
    "    ':program '*)\n"
    "        first=$((${lines[0]#* } + 1))\n"
    "        if declare -F _command_offset >/dev/null; then\n"
    "            _command_offset \"$first\"\n"
    "        elif [ \"$COMP_CWORD\" -eq \"$first\" ]; then\n"
    "            mapfile -t COMPREPLY < <(compgen -c -- \"$current\")\n"
    "        else\n"
    "            compopt -o filenames\n"
    "            mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
    "        fi\n"
    "        return ;;\n"
    "    esac\n"
    "    # A list for the eye says what each is; what is inserted does not.\n"
    "    local listed=\n"
    "    [ \"${COMP_TYPE-}\" = 63 ] && [ ${#lines[@]} -gt 1 ] && listed=1\n"
    "    for line in \"${lines[@]}\"; do\n"
    "        if [ -n \"$listed\" ]; then\n"
    "            COMPREPLY+=(\"${line/$'\\t'/  }\")\n"
    "        else\n"
    "            printf -v line %q \"${line%%$'\\t'*}\"\n"
    "            [[ $current != *=* ]] || line=${line#\"${current%%=*}=\"}\n"
    "            COMPREPLY+=(\"$line\")\n"
    "        fi\n"
    "    done\n"
    "}\n"
    "complete -F _nacre nacre\n";

static const char zsh_script[] =
    "#compdef nacre\n"
    "# Completion of nacre for zsh. It asks nacre itself, so it knows every version's verbs.\n"
    "_nacre() {\n"
    "    local line at\n"
    "    local -a lines candidates\n"
    "    lines=(\"${(@f)$(\"${(Q)words[1]/#\\~/$HOME}\" __complete \"${(@Q)words[2,CURRENT-1]}\" "
    "\"${(Q)PREFIX}\" 2>/dev/null)}\")\n"
    "    case $lines[1] in\n"
    "    :files) _files; return ;;\n"
    "    :folders) _files -/; return ;;\n"
    "    ':program '*)\n"
    "        at=$((${lines[1]#* } + 2))\n"
    "        words=(\"${(@)words[at,-1]}\")\n"
    "        (( CURRENT -= at - 1 ))\n"
    "        _normal\n"
    "        return ;;\n"
    "    esac\n"
    "    for line in $lines; do\n"
    "        candidates+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\")\n"
    "    done\n"
    "    _describe -V nacre candidates\n"
    "}\n"
    "if [ \"$funcstack[1]\" = _nacre ]; then\n"
    "    _nacre \"$@\"\n"
    "else\n"
    "    compdef _nacre nacre\n"
    "fi\n";

static const char fish_script[] =
    "# Completion of nacre for fish. It asks nacre itself, so it knows every version's verbs.\n"
    "function __nacre_complete\n"
    "    set -l words (commandline -opc)\n"
    "    set -l current (commandline -ct)\n"
    "    set -l nacre $words[1]\n"
    "    set -e words[1]\n"
    "    set -l lines ($nacre __complete $words $current 2>/dev/null)\n"
    "    switch \"$lines[1]\"\n"
    "        case ':files'\n"
    "            __fish_complete_path $current\n"
    "        case ':folders'\n"
    "            __fish_complete_directories $current\n"
    "        case ':program *'\n"
    "            set -l at (math (string replace ':program ' '' -- $lines[1]) + 1)\n"
    "            set -l command (string escape -- $words[$at..-1]) (string escape -n -- $current)\n"
    "            test $at -gt (count $words); and set command $current\n"
    "            complete -C \"$command\"\n"
    "        case '*'\n"
    "            printf '%s\\n' $lines\n"
    "    end\n"
    "end\n"
    "complete -c nacre -f -k -a '(__nacre_complete)'\n";

static const struct {
    const char *shell, *script;
} scripts[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

static int print_script(UNUSED const void *options, char **words, UNUSED size_t count)
{
    for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
        if (strcmp(scripts[i].shell, words[0]) == 0) {
            fputs(scripts[i].script, stdout);
            return STATUS_OK;
        }
    }
    return usage_error("completion: the shells known are bash, zsh and fish; got \"%s\"", words[0]);
}

const struct verb verb_completion = {
    .name = "completion",
    .words = "bash|zsh|fish",
    .summary = "print what a shell needs to complete nacre's arguments",
    .details =
        "With it Tab completes verbs, options and their values, and ids: a list of them shows\n"
        "each shell's status and command. An installed nacre has put it where the shells\n"
        "look for it.\n"
        "\n"
        "examples:\n"
        "  source <(nacre completion bash)\n"
        "  nacre completion zsh >\"${fpath[1]}/_nacre\"\n"
        "  nacre completion fish >~/.config/fish/completions/nacre.fish\n",
    .min_words = 1,
    .max_words = 1,
    .run = print_script,
};
