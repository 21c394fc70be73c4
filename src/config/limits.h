/*
 * The limits of a command: each is a setting of its own, limit_ and its name, and a field of
 * struct nacre_limits. What a call asks for may only narrow what the settings say.
 */
#pragma once

#include <nacre/command.h>
#include <nacre/settings.h>

#include "config/setting_table.h"

/* The setting of a limit. */
const struct setting *limit_setting(nacre_limit limit);

/* One of the limits; 0 = there is none. */
uint64_t limits_get(const nacre_limits *limits, nacre_limit limit);

/* The first of them that is set; NACRE_LIMIT_NONE if there is none. */
nacre_limit limits_first(const nacre_limits *limits);

/* NACRE_ESTART: a limit that has to be held cannot be; why is a part of a sentence. */
int limits_refused(nacre_limit limit, const char *why, nacre_error *err);

/* Which limit has that name; NACRE_LIMIT_NONE if none has. */
nacre_limit limit_find(const char *name);

/* Sets one limit from its text, as the setting takes it, but not to none. where begins the
 * sentence, such as "limits.". NACRE_EINVAL. */
int limits_parse(const char *where, const char *name, const char *text, nacre_limits *limits,
                 nacre_error *err);

/* What is in force where a call asks for that much. NACRE_EINVAL for what is wider than the
 * settings. */
int limits_narrow(const nacre_settings *settings, const nacre_limits *asked,
                  nacre_limits *ret_limits, nacre_error *err);
