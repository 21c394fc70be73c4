/* The files of web/ inside of the program; the table is made by scripts/embed-web.sh. */
#pragma once

#include <stddef.h>

struct web_file {
    const char *path; /* below /app/; that of the page itself is "" */
    const char *type;
    const char *tag; /* another one for each content; with its quotes */
    const char *data, *end;
    const char *packed, *packed_end; /* the same in gzip; NULL = it could not be made */
};

/* Ends with one without a path. */
extern const struct web_file web_files[];
