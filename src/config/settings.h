/* What the library itself needs of settings beyond the public functions. */
#pragma once

#include <nacre/settings.h>
#include <stddef.h>

#include "config/secrets.h"

/* The defaults alone. NULL if out of memory. */
nacre_settings *settings_new(void);

/* Takes in the text of a configuration file; path is for origins and sentences. */
int settings_take_json(nacre_settings *settings, const char *text, size_t size, const char *path,
                       nacre_error *err);

/* env_allow and env_deny, borrowed. */
struct secret_rules settings_secret_rules(const nacre_settings *settings);

/* A text, or NULL if it is empty. */
const char *settings_text_or_null(const nacre_settings *settings, nacre_setting setting);

static inline void settings_free_ptr(nacre_settings **settings)
{
    nacre_settings_free(*settings);
}

#define cleanup_settings __attribute__((cleanup(settings_free_ptr)))
