/* Giving up what a user has beyond files and processes of its own. Returns 0 or -errno. */
#pragma once

/*
 * No program gets more rights than this process has, and this process keeps of its capabilities
 * only what changing files of a user and becoming one needs: who is not root has none at all.
 */
int privilege_give_up(void);
