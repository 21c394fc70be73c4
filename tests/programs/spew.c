/*
 * spew SEED TOTAL CHUNK OUT_FILE ERR_FILE
 *
 * Writes TOTAL random bytes in pieces of random sizes up to CHUNK to stdout and stderr, which
 * piece to which by chance, and the same bytes to the two files, as tee would. The same seed
 * gives the same bytes. Exits right after the last write.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t state;

static uint64_t next_random(void)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t x = state;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static void write_all(int fd, const unsigned char *data, size_t size)
{
    while (size > 0) {
        ssize_t done = write(fd, data, size);
        if (done < 0)
            _exit(1);
        data += done;
        size -= (size_t)done;
    }
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    size_t total = strtoul(argv[2], NULL, 10), chunk = strtoul(argv[3], NULL, 10);
    unsigned char *data = malloc(chunk + 8);
    int files[2];

    state = strtoul(argv[1], NULL, 10);
    for (int i = 0; i < 2; i++) {
        files[i] = open(argv[4 + i], O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (files[i] < 0 || !data)
            return 1;
    }
    while (total > 0) {
        size_t size = 1 + next_random() % chunk;
        int which = (int)(next_random() & 1);
        size = size < total ? size : total;
        for (size_t i = 0; i < size; i += 8) {
            uint64_t word = next_random();
            memcpy(data + i, &word, 8);
        }
        write_all(files[which], data, size);
        write_all(1 + which, data, size);
        total -= size;
    }
    return 0;
}
