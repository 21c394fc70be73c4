/*
 * What a project asks for itself: .nacre.json in the directory that a session is opened in. Whoever
 * wrote the project wrote it, so it may make a session narrower than its user wants it, and never
 * wider.
 */
#pragma once

#include <nacre/settings.h>

#define PROJECT_FILE ".nacre.json"

/* 0, also if there is none. NACRE_EINVAL for what a project may not say, with file and line. */
int project_narrow(nacre_settings *settings, const char *directory, nacre_error *err);
