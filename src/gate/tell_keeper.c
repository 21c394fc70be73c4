#include "gate/tell_keeper.h"

#include <stdio.h>
#include <sys/socket.h>

#include "base/defs.h"
#include "run/wire.h"
#include "sys/sock.h"

void denied_tell(const nacre_id *run, const char *target, const char *why)
{
    struct wire_denied word = {
        .head = {.type = WIRE_DENIED, .format = RUN_FORMAT},
        .denial.kind = DENIAL_NETWORK,
    };
    cleanup_close int sock = sock_connect_abstract(nacre_id_format(run).s);
    if (sock < 0 || !sock_peer_is_us(sock))
        return;
    snprintf(word.denial.target, sizeof word.denial.target, "%s", target);
    snprintf(word.denial.why, sizeof word.denial.why, "%s", why);
    (void)sock_send(sock, &word, sizeof word, NULL, 0, MSG_DONTWAIT);
}
