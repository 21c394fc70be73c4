/* A file of the home that says where its server listens, for who wants to open the page. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <nacre/error.h>

#define WHERE_SIZE 200

/* Without it the page has to be opened by hand: nothing fails. */
void whereabouts_write(const char *home, const char *where);
/* Unless another server has taken it over. */
void whereabouts_remove(const char *home, const char *where);

/* NACRE_ENOTFOUND with a sentence if no server says that it runs. */
int whereabouts_read(const char *home, char ret_where[WHERE_SIZE], nacre_error *err);
