/* Arbitrary bytes as each of the three words of a SOCKS5 client. */
#include "fuzz.h"

#include "gate/socks.h"

static ssize_t read_word(uint8_t which, const uint8_t *data, size_t size)
{
    enum socks_method method;
    struct socks_request request;
    bool has_asker;
    nacre_id asker;
    if (which == 0)
        return socks_greeting(data, size, &method);
    if (which == 1)
        return socks_login(data, size, &has_asker, &asker);
    ssize_t n = socks_request(data, size, &request);
    MUST(n <= 0 || request.reply != SOCKS_GRANTED || (request.host.name[0] && request.port > 0));
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    uint8_t which = data[0] % 3;
    uint8_t *word = malloc(size);
    memcpy(word, data + 1, size - 1);
    ssize_t n = read_word(which, word, size - 1);
    MUST(n <= (ssize_t)size - 1);
    for (ssize_t i = 0; i < n; i++) {
        ssize_t cut = read_word(which, word, (size_t)i);
        MUST(cut == 0 || (which == 2 && cut == i));
    }
    free(word);
    return 0;
}
