/* A part of every unit test: its first argument chooses the cases whose name it is a part of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* What runs before main() is given what main() is given. */
__attribute__((constructor)) static void choose_cases(int argc, char **argv)
{
    static char pattern[256];

    if (argc < 2)
        return;
    snprintf(pattern, sizeof pattern, "*%s*", argv[1]);
    cmocka_set_test_filter(pattern);
}
