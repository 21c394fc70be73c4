/* nacre mcp --check: what an agent would find, tried. */
#pragma once

/* Starts the program as an agent does, has it run `true`, and says how that went. The status to
 * exit with. */
int mcp_check(const char *program);
