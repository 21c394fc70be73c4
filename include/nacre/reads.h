/*
 * Who reads the input of a shell: whether a program sleeps until somebody types. It is seen by what
 * its processes sleep in and by the modes of its terminal, not by what was printed, and it says no
 * more than that: another thread of the same program may be busy, and a program that reads with a
 * time limit goes on by itself. What is seen is of the past when it is read.
 */
#ifndef NACRE_READS_H
#define NACRE_READS_H

#include <stddef.h>
#include <stdint.h>

#include <nacre/error.h>
#include <nacre/id.h>
#include <nacre/version.h>

NACRE_BEGIN_DECLS

struct nacre_session;

/* New ones are added at the end. */
typedef enum nacre_reads {
    NACRE_READS_NO = 0,  /* nobody was seen to */
    NACRE_READS_UNKNOWN, /* somebody sleeps there who may not be looked at (setuid) */
    NACRE_READS_LISTENS, /* somebody waits for input, and for other things */
    NACRE_READS_LINE,    /* somebody reads a line; of a pipe, whatever comes */
    NACRE_READS_KEYS,    /* somebody reads keys */
    NACRE_READS_PASSWORD /* somebody reads a line, and the terminal does not show it */
} nacre_reads;

/* For sets of them. */
#define NACRE_READS_BIT(reads) (1u << (reads))
#define NACRE_READS_TYPED                                                    \
    (NACRE_READS_BIT(NACRE_READS_LINE) | NACRE_READS_BIT(NACRE_READS_KEYS) | \
     NACRE_READS_BIT(NACRE_READS_PASSWORD))

typedef struct nacre_reading {
    size_t size; /* sizeof(nacre_reading), set by NACRE_READING_INIT */
    nacre_reads reads;
    int32_t pid;      /* of who does; 0 = not known */
    int terminal;     /* from a terminal, or from the pipe of its stdin */
    int echo;         /* the terminal shows what is typed */
    int64_t since_ms; /* it was so at each look, for that long */
    char name[16];    /* of the process, whatever bytes; "" = not known */
} nacre_reading;

#define NACRE_READING_INIT                                 \
    {                                                      \
        sizeof(nacre_reading), NACRE_READS_NO, 0, 0, 1, 0, \
        {                                                  \
            0                                              \
        }                                                  \
    }

/*
 * Who reads now. That takes two looks, 0.1 s apart, if anybody does. NACRE_ECLOSED if the shell
 * has ended or has no stdin that can be typed to; NACRE_EUNSUPPORTED if nobody here can tell.
 */
NACRE_API int nacre_get_reading(struct nacre_session *session, const nacre_id *id,
                                nacre_reading *ret_reading, nacre_error *reterr);

/*
 * Waits until it is one of a set, and was for held_ms, with nothing printed meanwhile; up to
 * timeout_ms (< 0 = no limit): NACRE_ETIMEOUT when that is over. NACRE_ECLOSED as above, also if it
 * ends meanwhile.
 */
NACRE_API int nacre_wait_reading(struct nacre_session *session, const nacre_id *id, unsigned set,
                                 int64_t held_ms, int64_t timeout_ms, nacre_reading *ret_reading,
                                 nacre_error *reterr);

/* The same in words: "python3 (pid 31) reads a line from the terminal". "" for NACRE_READS_NO.
 * Returns buf. */
NACRE_API const char *nacre_reading_text(const nacre_reading *reading, char *buf, size_t size);

NACRE_END_DECLS

#endif
