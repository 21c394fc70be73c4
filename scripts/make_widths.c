/*
 * Run when nacre is built: writes the header with the widths of all characters, two bits each, in
 * blocks of which equal ones are there once.
 */
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#define POINTS 0x110000
#define BLOCK  256
#define BYTES  (BLOCK / 4)
#define MOST   256 /* different blocks: their number is a byte */

static unsigned char blocks[MOST][BYTES], block_of[POINTS / BLOCK];
static int count;

static void measure_block(int block, unsigned char to[BYTES])
{
    memset(to, 0, BYTES);
    for (int i = 0; i < BLOCK; i++) {
        int width = utf8proc_charwidth((utf8proc_int32_t)(block * BLOCK + i));
        to[i / 4] |= (unsigned char)((width & 3) << i % 4 * 2);
    }
}

static int find_block(const unsigned char bytes[BYTES])
{
    int i = 0;
    while (i < count && memcmp(blocks[i], bytes, BYTES) != 0)
        i++;
    if (i == count && count < MOST)
        memcpy(blocks[count++], bytes, BYTES);
    return i;
}

static void print_bytes(const unsigned char *bytes, int size)
{
    for (int i = 0; i < size; i++)
        printf("%d,%s", bytes[i], i % 24 == 23 ? "\n" : "");
}

int main(void)
{
    unsigned char bytes[BYTES];
    for (int i = 0; i < POINTS / BLOCK; i++) {
        measure_block(i, bytes);
        int found = find_block(bytes);
        if (found == MOST)
            return 1;
        block_of[i] = (unsigned char)found;
    }
    printf("#define WIDTH_POINTS %d\n#define WIDTH_BLOCK %d\n", POINTS, BLOCK);
    printf("static const unsigned char width_index[] = {\n");
    print_bytes(block_of, POINTS / BLOCK);
    printf("};\nstatic const unsigned char width_blocks[][%d] = {\n", BYTES);
    for (int i = 0; i < count; i++) {
        printf("{");
        print_bytes(blocks[i], BYTES);
        printf("},\n");
    }
    printf("};\n");
    return ferror(stdout) || fflush(stdout) != 0;
}
