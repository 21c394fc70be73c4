#include "gate/socks.h"

#include <string.h>

#include "base/defs.h"
#include "gate/http_head.h"

#define VERSION       5
#define LOGIN_VERSION 1
#define CMD_CONNECT   1

enum address_type {
    TYPE_FOUR = 1,
    TYPE_NAME = 3,
    TYPE_SIX = 4,
};

ssize_t socks_greeting(const uint8_t *data, size_t size, enum socks_method *ret)
{
    *ret = SOCKS_NO_METHOD;
    if (size >= 1 && data[0] != VERSION)
        return -EPROTO;
    if (size < 2 || size < 2 + (size_t)data[1])
        return 0;
    const uint8_t *methods = data + 2;
    if (memchr(methods, SOCKS_LOGIN, data[1]))
        *ret = SOCKS_LOGIN;
    else if (memchr(methods, SOCKS_OPEN, data[1]))
        *ret = SOCKS_OPEN;
    return 2 + (ssize_t)data[1];
}

ssize_t socks_login(const uint8_t *data, size_t size, bool *ret_has_asker, nacre_id *ret_asker)
{
    *ret_has_asker = false;
    if (size >= 1 && data[0] != LOGIN_VERSION)
        return -EPROTO;
    if (size < 2 || size < 3 + (size_t)data[1])
        return 0;
    size_t name = data[1], word = data[2 + name];
    if (size < 3 + name + word)
        return 0;
    *ret_has_asker = http_asker((const char *)data + 2, name, ret_asker);
    return (ssize_t)(3 + name + word);
}

/* The bytes of an address as text: what follows knows one way to read a host. */
static bool read_address(enum address_type type, const uint8_t *at, size_t size,
                         struct net_host *ret)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    uint8_t address[HOST_BYTES];
    if (type == TYPE_NAME)
        return memchr(at, ':', size) == NULL && memchr(at, '[', size) == NULL &&
               net_host_parse((const char *)at, size, ret);
    memcpy(address, mapped, sizeof mapped);
    memcpy(address + sizeof address - size, at, size);
    net_host_of_address(address, ret);
    return true;
}

ssize_t socks_request(const uint8_t *data, size_t size, struct socks_request *ret)
{
    *ret = (struct socks_request){.reply = SOCKS_GRANTED};
    if ((size >= 1 && data[0] != VERSION) || (size >= 3 && data[2] != 0))
        return -EPROTO;
    if (size < 5)
        return 0;
    enum address_type type = data[3];
    bool named = type == TYPE_NAME;
    if (!named && type != TYPE_FOUR && type != TYPE_SIX) {
        ret->reply = SOCKS_NO_ADDRESS;
        return (ssize_t)size;
    }
    size_t at = named ? 5 : 4, length = named ? data[4] : type == TYPE_FOUR ? 4 : 16;
    if (size < at + length + 2)
        return 0;
    ret->port = (uint16_t)(data[at + length] << 8 | data[at + length + 1]);
    if (data[1] != CMD_CONNECT)
        ret->reply = SOCKS_NO_COMMAND;
    else if (!read_address(type, data + at, length, &ret->host) || ret->port == 0)
        ret->reply = SOCKS_FAILED;
    return (ssize_t)(at + length + 2);
}
