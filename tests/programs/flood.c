/*
 * flood [-l] [-c CHUNK] OUT_BYTES [ERR_BYTES]
 *
 * Writes that many bytes of pattern.h to stdout and to stderr, in alternating pieces of CHUNK
 * (65536), as fast as it can, and exits right after the last write. With -l there are lines.
 */
#define _GNU_SOURCE 1
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "pattern.h"

int main(int argc, char **argv)
{
    uint64_t left[2] = {0, 0}, position[2] = {0, 0};
    size_t chunk = 65536;
    int opt, lines = 0;

    while ((opt = getopt(argc, argv, "lc:")) != -1) {
        if (opt == 'l')
            lines = 1;
        else if (opt == 'c')
            chunk = strtoul(optarg, NULL, 10);
        else
            return 2;
    }
    for (int i = 0; i < 2 && optind + i < argc; i++)
        left[i] = strtoull(argv[optind + i], NULL, 10);
    unsigned char *data = malloc(chunk);
    if (!data)
        return 1;
    for (int stream = 0; left[0] + left[1] > 0; stream = !stream) {
        size_t size = left[stream] < chunk ? (size_t)left[stream] : chunk;
        for (size_t i = 0; i < size; i++)
            data[i] = pattern_byte(position[stream] + i, stream, lines);
        for (size_t done = 0; done < size;) {
            ssize_t n = write(1 + stream, data + done, size - done);
            if (n < 0)
                return 1;
            done += (size_t)n;
        }
        left[stream] -= size;
        position[stream] += size;
    }
    return 0;
}
