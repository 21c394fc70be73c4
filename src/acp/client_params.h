/*
 * The parameters of terminal/...: read strictly. null is as good as nothing where something is
 * optional; anything else of a wrong type is a fault that names the field.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "rpc/message.h"

/* What every method but terminal/create takes. Borrowed from the parameters. */
struct acp_target {
    const char *session;
    const char *terminal;
};

/* 0, or -EINVAL with a fault. */
int acp_target_read(const json_t *params, struct acp_target *ret, struct rpc_fault *ret_fault);

/* What terminal/create takes. Strings are borrowed from the parameters. */
struct acp_create {
    const char *session;
    const char *command;
    const char **argv; /* the command and its arguments, NULL-terminated */
    char **env;        /* "NAME=value", NULL-terminated; NULL = none */
    const char *cwd;   /* absolute, or NULL */
    bool has_limit;
    uint64_t limit;
};

/* 0, -EINVAL with a fault, or -ENOMEM. Release with acp_create_done() in any case. */
int acp_create_read(const json_t *params, struct acp_create *ret, struct rpc_fault *ret_fault);
void acp_create_done(struct acp_create *c);

/*
 * Whether the command is a text for a shell: agents disagree about what they may send. It is
 * one if it has no arguments, has something in it that only a shell understands, and is not the
 * name of a file.
 */
bool acp_create_is_shell_text(const struct acp_create *c);
