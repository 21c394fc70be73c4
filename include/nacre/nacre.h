/* nacre: the shell engine of coding agents. Include this one; start reading at session.h. */
#ifndef NACRE_H
#define NACRE_H

#include <nacre/acp.h>
#include <nacre/ask.h>
#include <nacre/attach.h>
#include <nacre/backend.h>
#include <nacre/command.h>
#include <nacre/completion.h>
#include <nacre/error.h>
#include <nacre/id.h>
#include <nacre/policy.h>
#include <nacre/ports.h>
#include <nacre/reader.h>
#include <nacre/reads.h>
#include <nacre/recall.h>
#include <nacre/record.h>
#include <nacre/registry.h>
#include <nacre/session.h>
#include <nacre/settings.h>
#include <nacre/tool.h>
#include <nacre/version.h>
#include <nacre/view.h>
#include <nacre/watch.h>

#endif
