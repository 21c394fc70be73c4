/* What rules cost each start: reading and judging lines as agents write them. */
#include "bench.h"

#include <string.h>

#include "policy/ruling.h"

#define ROUNDS 2000

static const char *const usual[] = {
    "git status",
    "cd /home/ada/app && npm run build 2>&1 | tail -20",
    "grep -rn \"TODO\" src --include='*.c' | head -50",
    "for f in src/*.c; do echo \"== $f\"; wc -l < \"$f\"; done",
    "git add -A && git commit -m \"$(cat <<'EOF'\nfix: the parser\n\nIt's shorter now.\nEOF\n)\"",
    "find . -name '*.py' -not -path './venv/*' -exec grep -l 'import os' {} +",
    "if [ -f package.json ]; then jq -r '.scripts | keys[]' package.json; else echo none; fi",
    "timeout 60 env CI=1 make -j4 test > build.log 2>&1; echo \"exit $?\"; tail -5 build.log",
};

static const char rules_text[] =
    "[{\"deny\": [\"rm\", \"-rf\"]}, {\"deny\": [\"git\", \"push\", [\"-f\", \"--force\"]]},"
    " {\"ask\": [\"npm\", \"publish\"]}, {\"ask\": [[\"curl\", \"wget\"]]}, {\"deny\": [\"sudo\"]},"
    " {\"allow\": [\"git\", [\"status\", \"log\", \"diff\", \"add\", \"commit\"], \"**\"]},"
    " {\"allow\": [[\"ls\", \"cat\", \"grep\", \"head\", \"tail\", \"wc\"], \"**\"]}]";

int main(void)
{
    enum { LINES = sizeof usual / sizeof usual[0] };
    static double times[ROUNDS * LINES];
    struct rules rules cleanup_rules = {0};
    nacre_error error;
    char measured[64];
    if (rules_parse(rules_text, "", &rules, &error) < 0)
        die("the rules are not understood", NULL);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        const char *line = usual[i % LINES];
        struct script script cleanup_script = {0};
        size_t which;
        double start = now_us();
        if (script_read(line, strlen(line), DIALECT_BASH, &script) < 0 || script.doubt)
            die("a usual line is in doubt", NULL);
        rule_on_script(&rules, &script, &which);
        times[i] = now_us() - start;
    }
    snprintf(measured, sizeof measured, "%d usual lines, %zu rules, p50", (int)LINES, rules.count);
    row("a line is read and judged", measured, percentile(times, ROUNDS * LINES, 50), " us", 30, 0);
    return 0;
}
