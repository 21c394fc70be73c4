/* How each agent is told to use the server, and to leave its own shell alone: one text each. */
#include <string.h>

#include "base/defs.h"
#include "mcp/mcp.h"

#define SERVERS                           \
    "  {\n"                               \
    "    \"mcpServers\": {\n"             \
    "      \"nacre\": {\n"                \
    "        \"command\": \"@NACRE@\",\n" \
    "        \"args\": [\"mcp\"]\n"       \
    "      }\n"                           \
    "    }\n"                             \
    "  }\n"

static const struct {
    const char *name;
    const char *text;
} clients[] = {
    {"claude", "Add it to Claude Code, for all projects:\n"
               "\n"
               "  claude mcp add --scope user nacre -- @NACRE@ mcp\n"
               "\n"
               "Switch its own shell off, and let it use this one without asking, in "
               "~/.claude/settings.json:\n"
               "\n"
               "  {\"permissions\": {\"deny\": [\"Bash\"], \"allow\": [\"mcp__nacre\"]}}\n"},
    {"codex", "Add it to Codex:\n"
              "\n"
              "  codex mcp add nacre -- @NACRE@ mcp\n"
              "\n"
              "or in ~/.codex/config.toml; the last two lines switch its own shell off:\n"
              "\n"
              "  [mcp_servers.nacre]\n"
              "  command = \"@NACRE@\"\n"
              "  args = [\"mcp\"]\n"
              "  tool_timeout_sec = 300\n"
              "\n"
              "  [features]\n"
              "  shell_tool = false\n"
              "\n"
              "It asks before each call, and \"codex exec\", which cannot ask, refuses them all. "
              "To let it use the\n"
              "tools without asking, add below tool_timeout_sec:\n"
              "\n"
              "  default_tools_approval_mode = \"approve\"\n"},
    {"copilot",
     "Add it to Copilot CLI:\n"
     "\n"
     "  copilot mcp add nacre -- @NACRE@ mcp\n"
     "\n"
     "or in ~/.copilot/mcp-config.json:\n"
     "\n"
     "  {\n"
     "    \"mcpServers\": {\n"
     "      \"nacre\": {\n"
     "        \"type\": \"local\",\n"
     "        \"command\": \"@NACRE@\",\n"
     "        \"args\": [\"mcp\"],\n"
     "        \"tools\": [\"*\"]\n"
     "      }\n"
     "    }\n"
     "  }\n"
     "\n"
     "Start it without its own shell, and let it use this one without asking:\n"
     "\n"
     "  copilot --excluded-tools bash,read_bash,stop_bash,list_bash --allow-tool nacre\n"},
    {"cursor",
     "Add it to Cursor, in ~/.cursor/mcp.json, or .cursor/mcp.json of a project:\n"
     "\n" SERVERS "\n"
     "Its own terminal cannot be switched off there. Say in its rules that it shall run commands\n"
     "with the tool bash of nacre.\n"},
    {"gemini",
     "Add it to Gemini CLI:\n"
     "\n"
     "  gemini mcp add --scope user nacre @NACRE@ mcp\n"
     "\n"
     "or in ~/.gemini/settings.json:\n"
     "\n" SERVERS "\n"
     "It starts no server in a folder that you did not trust. Switch its own shell off, in\n"
     "~/.gemini/policies/nacre.toml:\n"
     "\n"
     "  [[rule]]\n"
     "  toolName = \"run_shell_command\"\n"
     "  decision = \"deny\"\n"
     "  priority = 900\n"},
    {"opencode",
     "Add it to opencode, in opencode.json or ~/.config/opencode/opencode.json; the last entry\n"
     "switches its own shell off:\n"
     "\n"
     "  {\n"
     "    \"mcp\": {\n"
     "      \"nacre\": {\n"
     "        \"type\": \"local\",\n"
     "        \"command\": [\"@NACRE@\", \"mcp\"],\n"
     "        \"enabled\": true\n"
     "      }\n"
     "    },\n"
     "    \"permission\": {\"bash\": \"deny\"}\n"
     "  }\n"},
    {"qwen", "Add it to Qwen Code, in ~/.qwen/settings.json. Without alwaysLoadTools the model "
             "would have to\n"
             "search for the tools first; the last entry switches its own shell off:\n"
             "\n"
             "  {\n"
             "    \"mcpServers\": {\n"
             "      \"nacre\": {\n"
             "        \"command\": \"@NACRE@\",\n"
             "        \"args\": [\"mcp\"],\n"
             "        \"alwaysLoadTools\": true\n"
             "      }\n"
             "    },\n"
             "    \"permissions\": {\"deny\": [\"run_shell_command\"]}\n"
             "  }\n"},
    {"vscode",
     "Add it to VS Code:\n"
     "\n"
     "  code --add-mcp '{\"name\":\"nacre\",\"command\":\"@NACRE@\",\"args\":[\"mcp\"]}'\n"
     "\n"
     "or in .vscode/mcp.json of a project:\n"
     "\n"
     "  {\n"
     "    \"servers\": {\n"
     "      \"nacre\": {\n"
     "        \"type\": \"stdio\",\n"
     "        \"command\": \"@NACRE@\",\n"
     "        \"args\": [\"mcp\"]\n"
     "      }\n"
     "    }\n"
     "  }\n"
     "\n"
     "Switch its own terminal off in the tool picker of the chat (runInTerminal).\n"},
    {"zed",
     "Add it to Zed, in settings.json; the last entry switches its own terminal off in the "
     "profile\n"
     "\"write\":\n"
     "\n"
     "  {\n"
     "    \"context_servers\": {\n"
     "      \"nacre\": {\n"
     "        \"source\": \"custom\",\n"
     "        \"command\": \"@NACRE@\",\n"
     "        \"args\": [\"mcp\"],\n"
     "        \"env\": {}\n"
     "      }\n"
     "    },\n"
     "    \"agent\": {\n"
     "      \"profiles\": {\"write\": {\"name\": \"Write\", \"tools\": {\"terminal\": false}}}\n"
     "    }\n"
     "  }\n"},
};

const char *mcp_client_config(const char *client)
{
    for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
        if (strcmp(clients[i].name, client) == 0)
            return clients[i].text;
    return NULL;
}

const char *mcp_client_names(void)
{
    return "claude, codex, copilot, cursor, gemini, opencode, qwen, vscode, zed";
}
