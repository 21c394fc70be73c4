#include "ask/standing.h"

#include "base/err.h"
#include "run/inside.h"
#include "sys/sock.h"

bool standing_is_within(int sock)
{
    return inside_any(sock_peer_pid(sock));
}

int standing_check(int sock, nacre_error *err)
{
    if (!sock_peer_is_us(sock))
        return err_set(err, NACRE_EPERM, "only the user who is asked can answer");
    if (sock_peer_pid(sock) <= 0)
        return err_set(err, NACRE_EPERM,
                       "who answers from another pid namespace cannot be told from the command "
                       "itself; answer from where it was asked");
    if (standing_is_within(sock))
        return err_set(err, NACRE_EPERM,
                       "a command that nacre runs cannot answer for its user; answer from a "
                       "terminal that was not opened by one");
    return 0;
}
