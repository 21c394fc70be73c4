#include <nacre/nacre.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    nacre_error err = NACRE_ERROR_INIT;
    nacre_session *session = NULL;
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_snapshot text = {0};
    char status[64];

    command.text = "echo hello; sleep 0.1; echo oops >&2; sleep 300 & exit 3";
    command.timeout_ms = 5000;
    if (nacre_open(NULL, &session, &err) < 0 ||
        nacre_run(session, &command, -1, &record, &err) < 0 ||
        nacre_output(session, &record.id, NACRE_BOTH, 0, &text, &err) < 0)
        return fprintf(stderr, "%s\n", err.msg), 1;
    printf("%s after %lld ms, left running: %s\n%.*s", nacre_status(&record, status, sizeof status),
           (long long)record.elapsed_ms, record.leftover[0].command, (int)text.size, text.data);
    free(text.data);
    nacre_record_done(&record);
    return nacre_close(session, NULL); /* ends the sleep, and waits for the proof */
}
