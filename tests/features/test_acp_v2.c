/* Shells shown to an ACP client of version 2, which has no requests for terminals. */
#include "harness/harness.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <jansson.h>

/* The update inside a message, which is freed. */
static json_t *update_of(char *message, const nacre_id *id, const char *kind)
{
    json_t *value = json_loads(message, 0, NULL);
    CHECK(value);
    CHECK_TEXT(json_string_value(json_object_get(value, "method")), "session/update");
    const json_t *params = json_object_get(value, "params");
    CHECK_TEXT(json_string_value(json_object_get(params, "sessionId")), "a \"b\"");
    json_t *update = json_incref(json_object_get(params, "update"));
    CHECK_TEXT(json_string_value(json_object_get(update, "sessionUpdate")), kind);
    CHECK_TEXT(json_string_value(json_object_get(update, "terminalId")), nacre_id_format(id).s);
    json_decref(value);
    free(message);
    return update;
}

TEST(shows_a_shell)
{
    nacre_session *s = open_session();
    CHECK_OK(mkfifo("fifo", 0600));
    nacre_id id = start_text(s, "printf 'foobar'; read x < fifo; exit 3");
    char *message;
    uint64_t cursor = 0;

    CHECK_OK(nacre_acp_v2_update(s, &id, "a \"b\"", &message, ERR));
    json_t *update = update_of(message, &id, "terminal_update");
    CHECK_STR(json_string_value(json_object_get(update, "command")), "printf 'foobar'");
    CHECK(json_is_object(json_object_get(json_object_get(update, "capabilities"), "cancel")));
    CHECK(!json_object_get(update, "exitStatus"));
    json_decref(update);

    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "foobar"), 5000));
    CHECK_EQ_INT(4, nacre_acp_v2_chunk(s, &id, "a \"b\"", &cursor, 4, &message, ERR));
    update = update_of(message, &id, "terminal_output_chunk");
    CHECK_TEXT(json_string_value(json_object_get(update, "data")), "Zm9vYg==");
    json_decref(update);
    cursor = 3;
    CHECK_EQ_INT(3, nacre_acp_v2_chunk(s, &id, "a \"b\"", &cursor, 0, &message, ERR));
    update = update_of(message, &id, "terminal_output_chunk");
    CHECK_TEXT(json_string_value(json_object_get(update, "data")), "YmFy");
    json_decref(update);
    CHECK_EQ_INT(6, cursor);
    CHECK_EQ_INT(0, nacre_acp_v2_chunk(s, &id, "a \"b\"", &cursor, 0, &message, ERR));
    CHECK(!message);

    spit("fifo", "\n", 1);
    wait_outcome(s, &id, 5000);
    CHECK_OK(nacre_acp_v2_update(s, &id, "a \"b\"", &message, ERR));
    update = update_of(message, &id, "terminal_update");
    const json_t *status = json_object_get(update, "exitStatus");
    CHECK_EQ_INT(3, json_integer_value(json_object_get(status, "exitCode")));
    CHECK(json_is_null(json_object_get(status, "signal")));
    CHECK(json_is_null(json_object_get(update, "capabilities")));
    json_decref(update);
    close_session(s);
}

/* What chunks of at most max bytes say from an offset on, each decoded alone and put together. */
static const char *replayed(nacre_session *s, const nacre_id *id, uint64_t from, size_t max)
{
    static char all[64];
    size_t size = 0;
    char *message;
    while (nacre_acp_v2_chunk(s, id, "a \"b\"", &from, max, &message, ERR) > 0) {
        json_t *update = update_of(message, id, "terminal_output_chunk");
        const char *data = json_string_value(json_object_get(update, "data"));
        spit("chunk", data, strlen(data));
        CHECK_EQ_INT(0, system("base64 -d < chunk > decoded")); /* NOLINT */
        size_t n;
        char *bytes = slurp("decoded", &n);
        CHECK(n > 0 && n <= max && size + n < sizeof all);
        memcpy(all + size, bytes, n);
        size += n;
        free(bytes);
        json_decref(update);
    }
    all[size] = '\0';
    return all;
}

TEST(replays_from_any_offset)
{
    static const char text[] = "a\xff\U0001F40Cz\n";
    nacre_session *s = open_session();
    nacre_id id = start_text(s, "printf 'a\\377\\360\\237\\220\\214z\\n'");

    wait_outcome(s, &id, 5000);
    for (size_t from = 0; from < sizeof text; from++)
        for (size_t max = 1; max <= 9; max += 2)
            CHECK_TEXT(replayed(s, &id, from, max), text + from);
    close_session(s);
}

TEST(begins_anew_after_a_gap)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    uint64_t cursor = 0;
    char *message;
    int anew = 0;

    command.text = "yes | head -c 2000000";
    command.quota = 256 * 1024;
    struct run run = run_command(s, &command);
    while (nacre_acp_v2_chunk(s, &run.record.id, "a \"b\"", &cursor, 0, &message, ERR) > 0) {
        anew += strstr(message, "\"terminal_update\",") != NULL;
        free(message);
    }
    CHECK_EQ_INT(1, anew);
    CHECK_EQ_INT(2000000, cursor);
    run_done(&run);
    close_session(s);
}
