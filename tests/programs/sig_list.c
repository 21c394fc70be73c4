/*
 * sig-list
 *
 * Prints the signals that are blocked and those that are ignored, as it found them:
 * "blocked: 13 ignored: 2 15".
 */
#define _GNU_SOURCE 1
#include <signal.h>
#include <stdio.h>

int main(void)
{
    struct sigaction action;
    sigset_t mask;

    sigprocmask(SIG_BLOCK, NULL, &mask);
    printf("blocked:");
    for (int s = 1; s <= SIGRTMAX; s++) {
        if (sigismember(&mask, s) == 1)
            printf(" %d", s);
    }
    printf(" ignored:");
    for (int s = 1; s <= SIGRTMAX; s++) {
        if (sigaction(s, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            printf(" %d", s);
    }
    printf("\n");
    return 0;
}
