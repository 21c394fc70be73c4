/*
 * Which variables of the environment are secrets. Their names decide: a name says KEY, SECRET,
 * TOKEN, PASS, CRED, AUTH or the like, in any case and anywhere in a word, unless the word is a
 * harmless one (KEYMAP, AUTHOR, COMPASS). Of values one form counts: a URL with a password in it.
 * In doubt it is a secret: a command that misses a variable says so, one that leaks it does not.
 */
#pragma once

/* What the settings say about it: names, in which a * stands for any characters. The lists end
 * with NULL; NULL is an empty list. */
struct secret_rules {
    const char *const *allow; /* env_allow: not secret, whatever it is called */
    const char *const *deny;  /* env_deny: secret, whatever else is said */
};

enum secret {
    SECRET_NOT = 0,
    SECRET_BY_NAME,
    SECRET_BY_VALUE, /* a URL with a password */
    SECRET_DENIED,   /* by env_deny */
};

/* The one place that decides. A name, or a name, '=' and its value. rules may be NULL.
 * Thread-safe. */
enum secret secrets_is_secret(const char *name, const struct secret_rules *rules);
