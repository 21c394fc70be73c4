#include "acp/client_exit.h"

int acp_append_exit_status(struct buf *b, const nacre_record *record)
{
    char name[32];
    int r = record->exit_code >= 0 && record->signal == 0
                ? buf_printf(b, "{\"exitCode\":%d,", record->exit_code)
                : buf_str(b, "{\"exitCode\":null,");
    if (r < 0)
        return r;
    return record->signal > 0 ? buf_printf(b, "\"signal\":\"%s\"}",
                                           nacre_signal_name(record->signal, name, sizeof name))
                              : buf_str(b, "\"signal\":null}");
}
