/* The strict reader and the rules: nasty lines with their verdicts, in both directions. */
#include "unit.h"

#include "policy/ruling.h"

/* What is asked of each line below. */
static const char rules_text[] =
    "[{\"deny\": [\"rm\", \"-rf\"]},"
    " {\"deny\": [\"git\", \"push\", [\"-f\", \"--force\"]], \"because\": \"use "
    "--force-with-lease\"},"
    " {\"ask\": [\"npm\", \"publish\"]},"
    " {\"deny\": [\"sudo\"]},"
    " {\"ask\": [[\"curl\", \"wget\"]]},"
    " {\"allow\": [\"git\", [\"status\", \"log\", \"diff\", \"commit\"], \"**\"]},"
    " {\"allow\": [\"git\", \"branch\"]},"
    " {\"allow\": [\"ls\", \"**\"]}, {\"allow\": [\"cat\", \"**\"]}, {\"allow\": [\"grep\", "
    "\"**\"]},"
    " {\"allow\": [\"find\", \"**\"]}, {\"allow\": [\"make\", \"test\"]}, {\"allow\": [\"env\", "
    "\"**\"]},"
    " {\"allow\": [\"bash\", \"**\"]}, {\"allow\": [\"python3\", \"**\"]}, {\"allow\": [\"sed\", "
    "\"**\"]},"
    " {\"allow\": [\"xargs\", \"**\"]}, {\"allow\": [\"awk\", \"**\"]}, {\"allow\": [\"head\", "
    "\"*\"]}]";

#define ALLOW   NACRE_ALLOW
#define ASK     NACRE_ASK /* also what no rule is about: policy_default is ask */
#define DENY    NACRE_DENY
#define UNKNOWN 3 /* asked because it is in doubt */

static const struct {
    const char *line;
    int verdict;
} lines[] = {
    /* What is harmless stays so. */
    {"git status", ALLOW},
    {"git -C sub status", ALLOW},
    {"git --no-pager log --oneline -5 | head -5", ALLOW},
    {"cd src && git diff HEAD~1 -- a.c", ALLOW},
    {"/usr/bin/git status", ALLOW},
    {"git commit -m \"$(cat <<'EOF'\nfix: it's $(rm -rf /)\nEOF\n)\"", ALLOW},
    {"git commit -m 'rm -rf /'", ALLOW},
    {"echo 'git push --force'", ALLOW},
    {"echo \"sudo\"", ALLOW},
    {"# sudo rm -rf /\ngit status", ALLOW},
    {"git log --grep='$(rm -rf x)'", ALLOW},
    {"ls *.c {a,b} ~/x", ALLOW},
    {"for i in 1 2 3; do ls $i; done", ALLOW},
    {"for f in *.c; do cat \"$f\"; done", ALLOW},
    {"if [ -f x ]; then cat x; fi", ALLOW},
    {"while read -r l; do echo \"$l\"; done < x", ALLOW},
    {"[[ $x =~ ^a(b|c)$ ]] && git status", ALLOW},
    {"case $x in a|b) git status;; *) ls;; esac", ALLOW},
    {"git status 2>&1 | cat >/dev/null", ALLOW},
    {"timeout 5 git status", ALLOW},
    {"env FOO=1 git status", ALLOW},
    {"nice -n 5 timeout -k 1 10 git log", ALLOW},
    {"bash -c 'git status && ls'", ALLOW},
    {"bash -lc 'git status'", ALLOW},
    {"find . -name '*.c' -exec grep -l foo {} +", ALLOW},
    {"find . -type f | xargs grep -n foo", ALLOW},
    {"ls | xargs -I{} cat {}", ALLOW},
    {"eval 'git status'", ALLOW},
    {"LC_ALL=C ls; TZ=UTC git log", ALLOW},
    {"PAGER=cat git log", ALLOW},
    {"IFS= read -r x < y; echo \"$x\"", ALLOW},
    {"i=0; i=$((i + 1)); echo $i", ALLOW},
    {"for ((i = 0; i < 3; i++)); do ls; done", ALLOW},
    {"sed -n 1,5p x", ALLOW},
    {"sed -i s/a/b/g x", ALLOW},
    {"awk '{print $1}' x", ALLOW},
    {"f() { git status; }; f2() { ls; }", ALLOW},
    {"git status\\\n  --short", ALLOW},
    {"git status \\\n  --short", ALLOW},
    {"! git diff --quiet", ALLOW},
    {"time git status", ALLOW},
    {"cat <<EOF\nrm -rf $HOME\nEOF", ALLOW},
    {"cat <<'EOF'\n$(rm -rf x)\nEOF", ALLOW},
    {"git branch", ALLOW},
    {"set -euo pipefail; git status", ALLOW},
    {"make test", ALLOW},
    {"test \"$a\" = \"$b\" && ls", ALLOW},
    {"$'ls' -l", ALLOW},
    {"\\git status", ALLOW},
    {"git 'status'", ALLOW},
    {"\"\"", ASK},

    /* What a rule is about, wherever it stands and however it is written. */
    {"git push --force", DENY},
    {"git push -f origin main", DENY},
    {"git push origin main -uf", DENY},
    {"git push --forc", DENY},
    {"git -C x push --force", DENY},
    {"git --no-pager push -f", DENY},
    {"git status; git push --force", DENY},
    {"git status && git push --force", DENY},
    {"git status || git push -f", DENY},
    {"git status & git push -f", DENY},
    {"git status\ngit push -f", DENY},
    {"git status | git push -f", DENY},
    {"(git push -f)", DENY},
    {"{ git push -f; }", DENY},
    {"echo $(git push -f)", DENY},
    {"echo `git push -f`", DENY},
    {"echo \"$(git push -f)\"", DENY},
    {"cat <(git push -f)", DENY},
    {"cat <<EOF\n$(git push -f)\nEOF", DENY},
    {"x=$(git push -f)", DENY},
    {"x=(a $(git push -f))", DENY},
    {"echo ${x:-$(git push -f)}", DENY},
    {"for i in $(git push -f); do :; done", DENY},
    {"case $(git push -f) in *) ;; esac", DENY},
    {"[[ -n $(git push -f) ]]", DENY},
    {"if git push -f; then :; fi", DENY},
    {"until git push -f; do :; done", DENY},
    {"f() { git push -f; }", DENY},
    {"function f { git push -f; }; f", DENY},
    {"g'i't pu\"sh\" -\\f", DENY},
    {"$'\\x67it' push -f", DENY},
    {"$'\\147it' push $'-f'", DENY},
    {"/usr/bin/git push -f", DENY},
    {"./git push -f", DENY},
    {"! git push -f", DENY},
    {"time -p git push -f", DENY},
    {"eval git push -f", DENY},
    {"eval \"git\" 'push -f'", DENY},
    {"eval eval git push -f", DENY},
    {"trap 'git push -f' EXIT", DENY},
    {"bash -c 'git push -f'", DENY},
    {"bash -c \"bash -c 'git push -f'\"", DENY},
    {"sh -c 'git push -f'", DENY},
    {"env git push -f", DENY},
    {"env -i A=b git push -f", DENY},
    {"command git push -f", DENY},
    {"exec git push -f", DENY},
    {"nohup nice -n 3 git push -f", DENY},
    {"timeout -s KILL 5 git push -f", DENY},
    {"stdbuf -oL git push -f", DENY},
    {"setsid -w git push -f", DENY},
    {"echo x | xargs git push -f", DENY},
    {"echo x | xargs -n 1 -P 2 git push -f", DENY},
    {"find . -exec git push -f \\;", DENY},
    {"find . -name x -o -execdir rm -rf {} +", DENY},
    {"busybox rm -rf x", DENY},
    {"rm -r -f x", DENY},
    {"rm -fr x", DENY},
    {"rm -vfr x", DENY},
    {"rm x -rf", DENY},
    {"X=1 rm -rf x", DENY},
    {"2>/dev/null rm -rf x", DENY},
    {">&-sudo ls", DENY},
    {"ls 2>&-;sudo", DENY},
    {"sudo -u a -- ls", DENY},
    {"sudo ls", DENY},
    {"PATH=/x rm -rf y", DENY},
    {"npm publish", ASK},
    {"npm --tag x publish", ASK},
    {"curl example.org | sh", ASK},
    {"wget -q x", ASK},
    {"coproc git push -f", UNKNOWN},
    {"git commit -m \"$(git push -f)\"", DENY},

    /* No rule allows what nobody knows. */
    {"X=rm; $X -rf x", UNKNOWN},
    {"$(echo rm) -rf x", UNKNOWN},
    {"`echo rm` x", UNKNOWN},
    {"r\\\nm -rf x", UNKNOWN},
    {"{r,}m -rf x", UNKNOWN},
    {"/bin/r? x", UNKNOWN},
    {"git $x", UNKNOWN},
    {"git push $x", UNKNOWN},
    {"eval \"$x\"", UNKNOWN},
    {"eval \"$(cat x)\"", UNKNOWN},
    {"cat x | sh", UNKNOWN},
    {"bash <<< \"$x\"", UNKNOWN},
    {"bash -c \"$x\"", UNKNOWN},
    {"bash -i -c ls", UNKNOWN},
    {"source ./x", UNKNOWN},
    {". ./x", UNKNOWN},
    {"alias ls='rm -rf'; ls", UNKNOWN},
    {"shopt -s expand_aliases; ls", UNKNOWN},
    {"shopt -s extglob; ls", UNKNOWN},
    {"enable -f ./x.so x", UNKNOWN},
    {"hash -p /bin/rm ls; ls -rf x", UNKNOWN},
    {"PATH=/tmp/x:$PATH git status", UNKNOWN},
    {"export PATH=/tmp/x; git status", UNKNOWN},
    {"LD_PRELOAD=./x.so git status", UNKNOWN},
    {"BASH_ENV=./x bash -c ls", UNKNOWN},
    {"GIT_SSH_COMMAND=./x git status", UNKNOWN},
    {"env LD_PRELOAD=./x.so ls", UNKNOWN},
    {"env -S 'rm -rf x'", UNKNOWN},
    {"env --such-an-option-is-longer-than-all-that-there-are-together-of-them ls", UNKNOWN},
    {"env =1 rm x", UNKNOWN},
    {"env - rm x", UNKNOWN},
    {"HOME=/tmp/x git status", UNKNOWN},
    {"read PATH < x; ls", UNKNOWN},
    {"printf -v PATH x; ls", UNKNOWN},
    {"for PATH in x; do ls; done", UNKNOWN},
    {": ${PATH:=x}; ls", UNKNOWN},
    {"declare -n r=PATH; r=x; ls", UNKNOWN},
    {"BASH_CMDS[ls]=/bin/rm; ls", UNKNOWN},
    {"x='a[$(rm y)]'; echo $((x))", UNKNOWN},
    {"x='a[$(rm y)]'; ((x)); ls", UNKNOWN},
    {"x='a[$(rm y)]'; [[ $x -eq 1 ]]; ls", UNKNOWN},
    {"[[ -v 'a[$(rm y)]' ]]", UNKNOWN},
    {"test -v 'a[$(rm y)]'", UNKNOWN},
    {"[ $x = y ]", UNKNOWN},
    {"printf -v 'a[$(rm y)]' x", UNKNOWN},
    {"unset 'a[$(rm y)]'", UNKNOWN},
    {"read 'a[$(rm y)]'", UNKNOWN},
    {"let 'a[$(rm y)]=1'", UNKNOWN},
    {"declare -i x; x='a[$(rm y)]'", UNKNOWN},
    {"x='$(rm y)'; echo ${x@P}", UNKNOWN},
    {"x='a[$(rm y)]'; echo ${!x}", UNKNOWN},
    {"echo ${a[$x]}", UNKNOWN},
    {"compgen -W '$(rm y)'", UNKNOWN},
    {"mapfile -C rm x < y", UNKNOWN},
    {"A='$(rm y)'; ls >&$A", UNKNOWN},
    {"ls >&'<(rm y)'", UNKNOWN},
    {"set -k; ls", UNKNOWN},
    {"set -o posix; ls", UNKNOWN},
    {"python3 -c 'import os'", UNKNOWN},
    {"echo x | python3", UNKNOWN},
    {"perl -e x", UNKNOWN},
    {"node -e x", UNKNOWN},
    {"awk 'BEGIN { system(\"rm x\") }'", UNKNOWN},
    {"awk 'BEGIN { \"rm x\" | getline }'", UNKNOWN},
    {"sed '1e rm x' y", UNKNOWN},
    {"sed -n 's/a/b/w x' y", UNKNOWN},
    {"sed p -e '1e rm x'", UNKNOWN},
    {"git -c alias.x='!rm y' x", UNKNOWN},
    {"git -c core.pager=./x log", UNKNOWN},
    {"git submodule foreach 'rm x'", UNKNOWN},
    {"find \"$d\" -name x", UNKNOWN},
    {"find . -exec sh -c 'rm {}' \\;", UNKNOWN},
    {"ls | xargs -I{} sh -c 'cat {}'", UNKNOWN},
    {"ls\r", UNKNOWN},
    {"ls\v-l", UNKNOWN},
    {"ls \x7f", UNKNOWN},
    {"ls \xff", UNKNOWN},
    {"ls 'x", UNKNOWN},
    {"cat <<EOF\nx", UNKNOWN},
    {"ls )", UNKNOWN},
    {"ls $\"x\"", UNKNOWN},
    {"ls $[1+1]", UNKNOWN},
    {"echo $((1 + `rm x`))", UNKNOWN},
    {"echo $((echo a); echo b)", UNKNOWN},
    {"a[$(cat y)]=1", UNKNOWN},
    {"a[]=1", UNKNOWN},
    {"ls {x}>y", UNKNOWN},
    {"ls ${x:-'}'}", UNKNOWN},
    {"$x", UNKNOWN},
    {"\"$@\"", UNKNOWN},
    {"f() { \"$@\"; }; f rm -rf x", UNKNOWN},
    {"parallel rm ::: x", UNKNOWN},
    {"ssh -o ProxyCommand='rm x' h", UNKNOWN},
    {"tar -cf x --checkpoint-action=exec=rm y", UNKNOWN},
    {"vim -c '!rm x'", UNKNOWN},

    /* And rules that allow are closed. */
    {"git branch -D x", ASK},
    {"git rebase", ASK},
    {"make", ASK},
    {"make test install", ASK},
    {"./git status", ASK},
    {"head -5 x", ASK},
    {"ls > x", ALLOW},
    {"echo x > y", ASK},
    {"gitstatus", ASK},
};

static struct rules rules;

static int read_rules(void **state)
{
    nacre_error error = NACRE_ERROR_INIT;
    (void)state;
    if (rules_parse(rules_text, "", &rules, &error) < 0) {
        fprintf(stderr, "%s\n", error.msg);
        return -1;
    }
    rules.fallback = NACRE_ASK;
    return 0;
}

static int forget_rules(void **state)
{
    (void)state;
    rules_done(&rules);
    return 0;
}

static void test_nasty_lines(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct script script cleanup_script = {0};
        size_t which;
        assert_int_equal(script_read(lines[i].line, strlen(lines[i].line), DIALECT_BASH, &script),
                         0);
        struct ruling j = rule_on_script(&rules, &script, &which);
        int verdict = j.verdict == NACRE_ASK && j.doubt ? UNKNOWN : (int)j.verdict;
        if (verdict == lines[i].verdict)
            continue;
        wrong++;
        printf("%s\n    is %d, and should be %d (%s; %s)\n", lines[i].line, verdict,
               lines[i].verdict, j.doubt ? j.doubt : "-", j.rule ? j.rule->text : "no rule");
    }
    assert_int_equal(wrong, 0);
    assert_true(sizeof lines / sizeof lines[0] >= 120);
}

/* -- Rules ------------------------------------------------------------------------------------ */

static const struct {
    const char *text, *sentence; /* a part of it */
} bad_rules[] = {
    {"x", "is no JSON"},
    {"{}", "takes a list"},
    {"[1]", "rule 1 of policy is no object"},
    {"[{}]", "needs one of allow, ask and deny"},
    {"[{\"allow\": [\"a\"], \"deny\": [\"b\"]}]", "needs one of"},
    {"[{\"deny\": []}]", "needs a list of words"},
    {"[{\"deny\": \"rm\"}]", "needs a list of words"},
    {"[{\"deny\": [\"\"]}]", "a word that is no text"},
    {"[{\"deny\": [1]}]", "a word that is no text"},
    {"[{\"deny\": [[]]}]", "a list without words"},
    {"[{\"deny\": [\"r*\"]}]", "a word that is no text"},
    {"[{\"deny\": [\"**\"]}]", "** in another place than the last"},
    {"[{\"allow\": [\"a\", \"**\", \"b\"]}]", "** in another place than the last"},
    {"[{\"deny\": [\"a\"]}, {\"denny\": [\"a\"]}]", "rule 2 of policy has an unknown key: denny"},
    {"[{\"deny\": [\"a\"], \"deny\": [\"b\"]}]", "is no JSON"},
    {"[{\"deny\": [\"a\"], \"because\": \"x\\ny\"}]", "one line of text for because"},
    {"[{\"deny\": [\"rm\"], \"match\": \"ls\"}]", "matches what it does not: ls"},
    {"[{\"deny\": [\"rm\"], \"not_match\": [\"ls\", \"rm x\"]}]",
     "does not match what it does: rm x"},
    {"[{\"deny\": [\"git\", \"push\"], \"not_match\": \"git $x\"}]", "does not match what it does"},
    {"[{\"allow\": [\"bash\", \"**\"], \"match\": \"bash -i\"}]", "matches what it does not"},
    {"[{\"deny\": [\"a\"], \"sandbox\": \"read-only\"}]", "a sandbox for what it does not allow"},
    {"[{\"allow\": [\"a\"], \"sandbox\": \"off\"}]", "takes read-only or workspace-write"},
};

static void test_bad_rules_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_rules / sizeof bad_rules[0]; i++) {
        struct rules bad cleanup_rules = {0};
        nacre_error error = NACRE_ERROR_INIT;
        assert_int_equal(rules_parse(bad_rules[i].text, "f:1: ", &bad, &error), NACRE_EINVAL);
        assert_int_equal(strncmp(error.msg, "f:1: ", 5), 0);
        if (!strstr(error.msg, bad_rules[i].sentence))
            fail_msg("%s: %s", bad_rules[i].text, error.msg);
    }
}

static void test_examples_hold(void **state)
{
    (void)state;
    static const char text[] =
        "[{\"deny\": [\"git\", \"push\", [\"-f\", \"--force\"]], \"match\": [\"git push --force\", "
        "\"cd x; git -C y push origin -f\"], \"not_match\": [\"git push --force-with-lease\", "
        "\"git push\", \"echo git push -f\"]}]";
    struct rules good cleanup_rules = {0};
    nacre_error error = NACRE_ERROR_INIT;
    assert_int_equal(rules_parse(text, "", &good, &error), 0);
    assert_int_equal(good.count, 1);
    assert_string_equal(good.items[0].text,
                        "{\"deny\": [\"git\", \"push\", [\"-f\", \"--force\"]]}");
}

static void test_the_narrowest_sandbox_counts(void **state)
{
    static const char text[] =
        "[{\"allow\": [\"a\"], \"sandbox\": \"workspace-write\"},"
        " {\"allow\": [\"b\"], \"sandbox\": \"read-only\"}, {\"allow\": [\"c\"]}]";
    static const struct {
        const char *line, *mode;
    } wanted[] = {
        {"a", "workspace-write"},    {"a; b", "read-only"}, {"b | a", "read-only"},    {"c", NULL},
        {"c; a", "workspace-write"}, {"d", NULL},           {"echo $(b)", "read-only"}};
    struct rules modes cleanup_rules = {0};
    nacre_error error = NACRE_ERROR_INIT;
    (void)state;
    assert_int_equal(rules_parse(text, "", &modes, &error), 0);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        struct script script cleanup_script = {0};
        size_t which;
        assert_int_equal(script_read(wanted[i].line, strlen(wanted[i].line), DIALECT_BASH, &script),
                         0);
        const char *mode = rule_on_script(&modes, &script, &which).sandbox;
        assert_true(mode ? wanted[i].mode && strcmp(mode, wanted[i].mode) == 0 : !wanted[i].mode);
    }
}

/* -- The reader ------------------------------------------------------------------------------- */

static void test_sh_is_not_bash(void **state)
{
    static const char *const others[] = {"[[ a ]]", "a &> b", "a <<< b", "cat <(b)",
                                         "((1))",   "a+=b",   "$'a'",    "function f { a; }",
                                         "a |& b"};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct script bash cleanup_script = {0}, sh cleanup_script = {0};
        assert_int_equal(script_read(others[i], strlen(others[i]), DIALECT_BASH, &bash), 0);
        assert_int_equal(script_read(others[i], strlen(others[i]), DIALECT_SH, &sh), 0);
        assert_null(bash.doubt);
        assert_non_null(sh.doubt);
    }
}

static void test_long_and_deep_texts_are_in_doubt(void **state)
{
    (void)state;
    static char text[SCRIPT_MAX + 2];
    struct script script cleanup_script = {0};
    memset(text, '(', 100000);
    assert_int_equal(script_read(text, 100000, DIALECT_BASH, &script), 0);
    assert_non_null(script.doubt);
    script_done(&script);
    for (size_t i = 0; i < 50000; i++)
        memcpy(text + 2 * i, "$(", 2);
    assert_int_equal(script_read(text, 100000, DIALECT_BASH, &script), 0);
    assert_non_null(script.doubt);
    script_done(&script);
    memset(text, 'a', sizeof text);
    assert_int_equal(script_read(text, SCRIPT_MAX + 1, DIALECT_BASH, &script), 0);
    assert_non_null(script.doubt);
    script_done(&script);
    assert_int_equal(script_read(text, SCRIPT_MAX, DIALECT_BASH, &script), 0);
    assert_null(script.doubt);
}

static void test_doubts_name_their_line(void **state)
{
    static const char text[] = "ls\nls\nls 'x";
    struct script script cleanup_script = {0};
    (void)state;
    assert_int_equal(script_read(text, strlen(text), DIALECT_BASH, &script), 0);
    assert_int_equal(script.line, 3);
    assert_int_equal(script.count, 2);
}

static void test_classes(void **state)
{
    static const struct {
        const char *line;
        unsigned classes;
    } known[] = {
        {"cat x", NACRE_CLASS_READS},
        {"cat x > y", NACRE_CLASS_READS | NACRE_CLASS_WRITES},
        {"rm x", NACRE_CLASS_WRITES | NACRE_CLASS_DESTRUCTIVE},
        {"git push", NACRE_CLASS_READS | NACRE_CLASS_NETWORK},
        {"sudo", NACRE_CLASS_PRIVILEGE},
        {"cd x", 0},
        {"something", NACRE_CLASS_UNKNOWN},
        {"$x", NACRE_CLASS_UNKNOWN},
    };
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct script script cleanup_script = {0};
        assert_int_equal(script_read(known[i].line, strlen(known[i].line), DIALECT_BASH, &script),
                         0);
        assert_int_equal(script.count, 1);
        assert_int_equal(classes_of(&script.commands[0]), known[i].classes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nasty_lines),
        cmocka_unit_test(test_bad_rules_are_named),
        cmocka_unit_test(test_examples_hold),
        cmocka_unit_test(test_the_narrowest_sandbox_counts),
        cmocka_unit_test(test_sh_is_not_bash),
        cmocka_unit_test(test_long_and_deep_texts_are_in_doubt),
        cmocka_unit_test(test_doubts_name_their_line),
        cmocka_unit_test(test_classes),
    };
    return cmocka_run_group_tests(tests, read_rules, forget_rules);
}
