/*
 * Attaching: a person sits down beside a shell. What they see comes by a watch, like what anybody
 * sees; what they type goes to the command by the same watch, and nowhere else: it is in no log,
 * and in no answer to a model. That a person came, typed and left is noted with the shell. It ends
 * with the watch, whatever becomes of the process that has it.
 */
#ifndef NACRE_ATTACH_H
#define NACRE_ATTACH_H

#include <stddef.h>
#include <stdint.h>

#include <nacre/error.h>
#include <nacre/session.h>
#include <nacre/version.h>
#include <nacre/watch.h>

NACRE_BEGIN_DECLS

typedef struct nacre_attach_options {
    size_t size;
    int input;   /* 1 = what nacre_type() is given goes to the command */
    int columns; /* > 0: the terminal has this size for as long as the person is there, brought */
    int rows;    /* within the bounds of nacre_command. The last of several who ask for one has it;
                    when all are gone it has its own again */
} nacre_attach_options;

#define NACRE_ATTACH_OPTIONS_INIT             \
    {                                         \
        sizeof(nacre_attach_options), 0, 0, 0 \
    }

/*
 * From now on the watch is that of a person. Waits for the keeper's word, for 5 s at most. Whoever
 * may not feed the shell cannot type or change its size: NACRE_EFORBIDDEN, as it is from inside of
 * the shell. NACRE_ECLOSED if it has ended, or is to be typed to and takes no input;
 * NACRE_EUNSUPPORTED if a size is wanted and it has no terminal, or no keeper. options may be NULL.
 */
NACRE_API int nacre_attach(nacre_session *session, nacre_watch *watch,
                           const nacre_attach_options *options, nacre_error *reterr);

/*
 * Types, without waiting: how many of the bytes went on their way. 0 = the command has not taken
 * those before: try again after the watch said something. Who reads its terminal never is told them
 * from here. NACRE_ECLOSED when it takes no more.
 */
NACRE_API int64_t nacre_type(nacre_watch *watch, const void *data, size_t size,
                             nacre_error *reterr);

/* The person's window has another size: 1, or 0 = not now, as above. */
NACRE_API int nacre_fit(nacre_watch *watch, int columns, int rows, nacre_error *reterr);

NACRE_END_DECLS

#endif
