/* Scripts that are valid for bash, made up from numbers: commands c0 to c9, which succeed, and n0
 * to n3, which fail, in every place of the language where a command can stand, and many where none
 * does. */
#pragma once

#include "unit.h"

struct maker {
    struct unit_random random;
    char text[65536];
    size_t size;
    int depth, functions;
};

UNIT void put(struct maker *m, const char *text)
{
    size_t size = strlen(text);
    if (m->size + size + 1 < sizeof m->text) {
        memcpy(m->text + m->size, text, size + 1);
        m->size += size;
    }
}

UNIT uint64_t choose(struct maker *m, uint64_t count)
{
    return unit_below(&m->random, count);
}

UNIT void put_one(struct maker *m, const char *const *list, size_t count)
{
    put(m, list[choose(m, count)]);
}

#define PUT_ONE(m, ...)                                    \
    do {                                                   \
        static const char *const list_[] = {__VA_ARGS__};  \
        put_one(m, list_, sizeof list_ / sizeof list_[0]); \
    } while (0)

static void make_list(struct maker *m);
static void make_inline(struct maker *m);

/* A text with a name in the places of its %. */
UNIT void put_with(struct maker *m, const char *text, const char *name)
{
    char one[] = "?";
    for (; *text; text++) {
        one[0] = *text;
        put(m, *text == '%' ? name : one);
    }
}

UNIT void make_name(struct maker *m)
{
    static const char *const forms[] = {"c%",        "c%",   "c%",       "c%",       "c%",
                                        "\"c%\"",    "'c%'", "c\"%\"",   "\\c%",     "$'c%'",
                                        "$'\\x63%'", "''c%", "c'%'\"\"", "$'\\143'%"};
    char digit[] = "?";
    digit[0] = (char)('0' + choose(m, 10));
    put_with(m, forms[choose(m, sizeof forms / sizeof forms[0])], digit);
}

UNIT void make_word(struct maker *m)
{
    switch (choose(m, 16)) {
    case 0:
        put(m, "\"a ");
        make_inline(m);
        put(m, "$(c3 x)\"");
        break;
    case 1:
        put(m, "$(");
        make_inline(m);
        put(m, ")");
        break;
    case 2:
        PUT_ONE(m, "`c4`", "`c4 x; c5`", "\"`c6 'a'`\"", "a`c7`b");
        break;
    case 3:
        PUT_ONE(m, "${u:-$(c5 d)}", "\"${u:-$(c1)}\"", "${u-x}", "${u:+$(c8)}", "\"${u#$(c2)}\"",
                "${u:-'a'}$(c2)", "\"${u:-\"a b\"}\"");
        break;
    case 4:
        PUT_ONE(m, "$((1+2))", "$(( (1 + 2) * 3 ))", "$((1<2?3:4))", "\"$((7))\"", "$((0x1f))");
        break;
    case 5:
        PUT_ONE(m, "{a,b}", "{1..3}", "x{$(c9),y}", "a\\ b", "a#b", "*", "[ab]", "~", "?");
        break;
    case 6:
        PUT_ONE(m, "<(c1 p)", "<(c2; c3)", ">(c4)");
        break;
    case 7:
        PUT_ONE(m, "'a;c2'", "'$(c9)'", "\"\\$(c9)\"", "\\;", "\\$", "'#c1'", "\"a'b\"", "'a\"b'",
                "\\`c1\\`", "\"\\\"\\`c1\\`\"");
        break;
    case 8:
        PUT_ONE(m, "$'a\\n;c1'", "$'\\''c1", "$'\\\\'", "''", "\"\"", "$'\\x27;c1;'");
        break;
    case 9:
        PUT_ONE(m, "$#", "$?", "\"$#\"", "$$x", "$", "a$", "\"$\"", "$u", "\"$@\"", "${#u}");
        break;
    default:
        PUT_ONE(m, "w1", "w2", "-x", "--long=1", "a=b", "if", "done", "}", "{", "!", "fi", "[[");
    }
}

UNIT void make_blank(struct maker *m)
{
    PUT_ONE(m, " ", " ", " ", "  ", "\t", " \\\n", " \\\n  ");
}

UNIT void make_redirection(struct maker *m)
{
    PUT_ONE(m, " >o", " 2>&1", " </dev/null", " >&2", " 2>o", " <<<w1", " &>o", " >>o",
            " <<<\"$(c5)\"", " < <(c6 r)", " >|o", " 3>o", " 2>&-");
}

/* A command without a newline in it. */
UNIT void make_simple(struct maker *m)
{
    if (choose(m, 8) == 0)
        PUT_ONE(m, "A=1 ", "A=$(c2) B=2 ", "A=\"x y\" ", "A+=b ", "A= ", "2>o ");
    switch (choose(m, 24)) {
    case 0:
        PUT_ONE(m, "eval c1 a", "eval 'c1 a; c2'", "eval \"c3\" \"b\"", "eval 'c1 $(c2)'",
                "eval -- c4", "command c1 x", "builtin eval 'c6 z'", "command -p eval c5",
                "command -v c1");
        break;
    case 1:
        PUT_ONE(m, "trap 'c9 t' EXIT", "trap - EXIT", "set -- a b", "set -u", "export X=1",
                "declare y=$(c1)", "local z=1", "read -r l </dev/null", "unset q", "test -n x",
                "[ -z \"\" ]", "[ a = b ]", "printf '%s' x", "echo $(c2)", "shift 0", "cd .");
        break;
    case 2:
        PUT_ONE(m, "A=1", "A=$(c3 q)", "B=(a $(c4) 'x')", "B[1]=$(true)", "A=`c5`", "C=<(c6)");
        break;
    default:
        make_name(m);
        for (uint64_t i = choose(m, 4); i > 0; i--) {
            make_blank(m);
            make_word(m);
        }
    }
    for (uint64_t i = choose(m, 6) == 0 ? 1 + choose(m, 2) : 0; i > 0; i--)
        make_redirection(m);
}

static void make_inline(struct maker *m)
{
    m->depth++;
    make_simple(m);
    for (uint64_t i = m->depth < 4 ? choose(m, 3) : 0; i > 0; i--) {
        PUT_ONE(m, "; ", " && ", " || ", " | ", " |& ", ";", "&&", "|", " & ");
        make_simple(m);
    }
    m->depth--;
    PUT_ONE(m, "", " ", "");
}

UNIT void make_heredoc(struct maker *m)
{
    PUT_ONE(m, "c1 <<E\n$(c2 h)\n`c3`\nE\n", "c1 <<'E'\n$(c2 h)\nE\n",
            "c4 <<E && c5\na 'b\n${u:-$(c6)}\nE\n", "c1 <<-E\n\tx\n\tE\n",
            "c1 <<E <<F\na\nE\n$(c7)\nF\n", "c1 \"$(c2 <<E\nx $(c3)\nE\n)\"\n",
            "c1 <<\\E\n`c9`\nE\n", "c8 <<E | c9\n\\$(c1) \"$(c2)\"\nE\n",
            "c1 <<\"E F\"\n$(c2)\nE F\n", "{ c1 <<E\n$((1+1))\nE\n}\n",
            "c1 <<E; c2 'a\nb'\n$(c3)\nE\n");
}

UNIT void make_condition(struct maker *m)
{
    PUT_ONE(m, "[[ a == $(c1) ]]", "[[ -n x && ( a < b || ! -z y ) ]]", "[[ abc =~ ^(a|b)c$ ]]",
            "[[ 1 -lt 2 ]]", "((1 < 2))", "(( 3 ))", "[[ x = \"$(c2)\" ]]", "[[ a =~ $(c3) ]]",
            "[[ a != *b* ]]", "[[ -e <(c4) ]]", "((0))", "[[ x\n&& y ]]");
}

/* Each has a name of its own: none calls itself. */
UNIT void make_function(struct maker *m)
{
    static const char *const begins[] = {"%() { ", "function % { ", "% () {\n", "function % () { "};
    static const char *const ends[] = {"\n}; % a", "\n}\n%", "\n} 2>o", "\n} && % | c1"};
    char name[] = "f?";
    if (m->functions == 26) {
        put(m, "c1");
        return;
    }
    name[1] = (char)('a' + m->functions++);
    put_with(m, begins[choose(m, 4)], name);
    make_list(m);
    put_with(m, ends[choose(m, 4)], name);
}

UNIT void make_compound(struct maker *m)
{
    switch (choose(m, 14)) {
    case 0:
        put(m, "{ ");
        make_list(m);
        PUT_ONE(m, "\n}", "\n }");
        break;
    case 1:
        PUT_ONE(m, "(", "( ");
        make_list(m);
        put(m, "\n)");
        break;
    case 2:
        PUT_ONE(m, "if c1; then\n", "if n1\nthen ", "if ! c2 x\nthen ");
        make_list(m);
        PUT_ONE(m, "\nelif n2; then c3\nelse ", "\nelse\n", "\nelif c4\nthen\n");
        make_list(m);
        put(m, "\nfi");
        break;
    case 3:
        PUT_ONE(m, "while c1; do\n", "until n1; do ", "while :; do\n", "while c2 | c3\ndo ");
        make_list(m);
        put(m, "\nbreak; done");
        break;
    case 4:
        PUT_ONE(m, "for i in a $(c1) 'b'; do ", "for i in 1 2\ndo ", "for i\nin x; do\n",
                "for ((i=0;i<2;i++)); do ", "for i; do ");
        make_list(m);
        put(m, "\ndone");
        break;
    case 5:
        PUT_ONE(m, "case a in b) c1;; a) ", "case $(c2) in (x|'y') c3;; *) ",
                "case a in\n(a) c4 ;& b) c5 ;;& *)\n", "case a in $(c6)) c7;; \"a\"|b) ");
        make_list(m);
        PUT_ONE(m, "\nesac", "\n;; esac", "\n;;\nesac");
        break;
    case 6:
        make_function(m);
        break;
    case 7:
        make_condition(m);
        break;
    case 8:
        PUT_ONE(m, "time c1", "time -p c2 x", "! c3", "! time c4", "time", "time { c5; }",
                "! (c6)");
        break;
    case 9:
        PUT_ONE(m, "env A=1 c1 x", "nice -n 1 c2", "timeout 5 c3 a", "bash -c 'c4 b; c5'",
                "echo q | xargs c6", "nohup c7", "sh -c 'c8 \"$1\"' x", "env -i PATH=. c1",
                "find . -maxdepth 0 -exec c9 {} \\;", "stdbuf -e0 c2", "exec c3 y");
        break;
    default:
        make_inline(m);
    }
    if (choose(m, 8) == 0)
        make_redirection(m);
}

UNIT void make_separator(struct maker *m)
{
    PUT_ONE(m, "\n", "\n", "; ", " && ", " || ", " | ", "\n\n", " # c9 x\n", " &\n", " |\n ",
            "&&\n#c1\n", ";\\\n");
}

static void make_list(struct maker *m)
{
    m->depth++;
    for (uint64_t i = 1 + choose(m, m->depth > 2 ? 1 : 3); i > 0; i--) {
        if (m->depth < 4 && choose(m, 12) == 0)
            make_heredoc(m);
        if (m->depth < 4)
            make_compound(m);
        else
            make_inline(m);
        if (i > 1)
            make_separator(m);
    }
    m->depth--;
}

/* One character more, less, or another: mostly no script any more, and then it matters that nobody
 * is certain of it. */
UNIT void spoil(struct maker *m)
{
    static const char strange[] = "'\"\\$`(){};|&<>\n#!*?[]~= \t,.";
    for (uint64_t i = 1 + choose(m, 2); i > 0 && m->size > 2; i--) {
        size_t at = choose(m, m->size);
        char c = strange[choose(m, sizeof strange - 1)];
        if (choose(m, 3) == 0) {
            memmove(m->text + at, m->text + at + 1, m->size - at);
            m->size--;
        } else if (choose(m, 2)) {
            m->text[at] = c;
        } else {
            memmove(m->text + at + 1, m->text + at, m->size - at + 1);
            m->text[at] = c;
            m->size++;
        }
    }
}

UNIT void make_script(struct maker *m, uint64_t seed, bool spoiled)
{
    m->random.state = seed;
    m->size = 0;
    m->depth = m->functions = 0;
    make_list(m);
    if (spoiled)
        spoil(m);
}
