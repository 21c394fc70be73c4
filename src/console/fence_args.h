/* The options that lay a sandbox over the settings; `run`, `start` and `mcp` take the same. */
#pragma once

#include <stddef.h>

#include <nacre/settings.h>

struct fence_args {
    const char *mode;
    const char **write;
    const char **hide;
    const char **protect;
    const char **network;
    const char **sockets;
    const char *caches;
    const char *tmp;
};

/* Those that were given are set in *settings, which are loaded if they were not yet. A status. */
int fence_args_apply(const struct fence_args *args, nacre_settings **settings);

#define FENCE_OPTION(type, name, value, help, kind, field)                       \
    {                                                                            \
        name, value, help, kind, false, offsetof(struct type, fence.field), '\0' \
    }

/* For a structure with a member `fence`. */
#define FENCE_OPTIONS(type)                                                                        \
    FENCE_OPTION(type, "sandbox", "MODE", "off, read-only or workspace-write", OPTION_TEXT, mode), \
        FENCE_OPTION(type, "write", "PATH", "sandboxed, it may change this, too", OPTION_LIST,     \
                     write),                                                                       \
        FENCE_OPTION(type, "hide", "PATH", "sandboxed, it does not see this", OPTION_LIST, hide),  \
        FENCE_OPTION(type, "protect", "NAME", "in the workspace, which it may not change",         \
                     OPTION_LIST, protect),                                                        \
        FENCE_OPTION(type, "network", "WORD", "sandboxed: off, on, or hosts with commas between",  \
                     OPTION_LIST, network),                                                        \
        FENCE_OPTION(type, "socket", "PATH", "a Unix socket it may talk to", OPTION_LIST,          \
                     sockets),                                                                     \
        FENCE_OPTION(type, "caches", "WORD", "of tools: private, shared or off", OPTION_TEXT,      \
                     caches),                                                                      \
        FENCE_OPTION(type, "tmp", "WORD", "its /tmp: private or host", OPTION_TEXT, tmp)
