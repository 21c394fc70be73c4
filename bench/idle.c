/* What a shell that does nothing costs besides itself: the memory of its keeper. */
#include "bench.h"

#define SHELLS 50

static int parent_of(int pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    return (int)field_kb(path, "PPid:");
}

int main(void)
{
    nacre_session *session = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_error err;
    nacre_id ids[SHELLS];
    double sizes[SHELLS];
    command.text = "echo ready; exec sleep 1000";
    for (int i = 0; i < SHELLS; i++)
        if (nacre_start(session, &command, &ids[i], NULL, &err) < 0)
            die("start", &err);
    for (int i = 0; i < SHELLS; i++) {
        char byte[8], path[64];
        uint64_t cursor = 0;
        while (nacre_read(session, &ids[i], &cursor, NACRE_OUT, byte, sizeof byte, NULL, &err) == 0)
            usleep(1000);
        if (nacre_get(session, &ids[i], &record, &err) < 0)
            die("get", &err);
        snprintf(path, sizeof path, "/proc/%d/smaps_rollup", parent_of(record.pid));
        sizes[i] = (double)field_kb(path, "Pss:");
    }
    nacre_record_done(&record);
    double largest = percentile(sizes, SHELLS, 100);
    char measured[64];
    snprintf(measured, sizeof measured, "%d shells, median %.0f KiB", SHELLS,
             percentile(sizes, SHELLS, 50));
    row("memory of an idle keeper (Pss, largest)", measured, largest, " KiB", 128, 0);
    return nacre_close(session, NULL) != 0;
}
