/*
 * Ids of shells and sessions: 128 random bits, never reused, never a pid. People and models
 * see 32 lowercase hex digits, or any unique prefix of at least four.
 */
#ifndef NACRE_ID_H
#define NACRE_ID_H

#include <stdint.h>

#include <nacre/version.h>

NACRE_BEGIN_DECLS

#define NACRE_ID_DIGITS       32
#define NACRE_ID_PREFIX_MIN   4
#define NACRE_ID_SHORT_DIGITS 8

typedef struct nacre_id {
    uint8_t bytes[16];
} nacre_id;

typedef struct nacre_id_text {
    char s[NACRE_ID_DIGITS + 1];
} nacre_id_text;

/* The 32 digits of an id. */
NACRE_API nacre_id_text nacre_id_format(const nacre_id *id);

/* The first eight digits: what a model reads. */
NACRE_API nacre_id_text nacre_id_short(const nacre_id *id);

/* Reads exactly 32 lowercase hex digits. NACRE_EINVAL if text is anything else. */
NACRE_API int nacre_id_parse(const char *text, nacre_id *ret_id);

/* 1 if both are the same id, else 0. */
NACRE_API int nacre_id_equal(const nacre_id *a, const nacre_id *b);

NACRE_END_DECLS

#endif
