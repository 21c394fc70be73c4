/* The signals that ask a server to end, as a descriptor. */
#pragma once

/* From now on SIGTERM, SIGINT and SIGHUP are blocked, SIGPIPE is ignored, and the descriptor that
 * is returned is readable when one of them has come; or -errno. For programs, not for a library. */
int end_signals_catch(void);
