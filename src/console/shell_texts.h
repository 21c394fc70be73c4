/* One shell in the words of a list. */
#pragma once

#include <stdbool.h>

#include <nacre/nacre.h>

#include "console/out.h"
#include "text/brief.h"

struct shell_texts {
    char status[64], age[AGE_TEXT], time[AGE_TEXT], cpu[AGE_TEXT];
    char memory[BYTES_TEXT], unread[BYTES_TEXT];
    char ports[NACRE_USAGE_PORTS_MAX * 6 + 1], session[64];
};

void shell_tell(nacre_session *session, const nacre_listed *listed, struct shell_texts *ret);

/* "[web] (the development server) npm start" */
int shell_label(const nacre_record *record, struct buf *out);

/* Whether it runs or lingers. */
bool shell_is_alive(const nacre_record *record);

/* What it uses, or used; false if that cannot be told. */
bool shell_usage(nacre_session *session, const nacre_record *record, nacre_usage *ret_usage);

const char *shell_colour(const struct paint *paint, const nacre_record *record);
