/* Arbitrary bytes as a state file: refused, or one of the two slots as it stands. */
#include "fuzz.h"

#include "base/sum.h"
#include "home/report.h"
#include "run/state.h"

static void check(int fd, const uint8_t *data, size_t size)
{
    struct run_state state;
    nacre_record record = NACRE_RECORD_INIT;
    char words[64];
    int r = state_read(fd, &state);
    MUST(r <= 0);
    if (r < 0)
        return;
    bool first = size >= sizeof state && memcmp(data, &state, sizeof state) == 0;
    bool second = size >= STATE_SLOT_SIZE + sizeof state &&
                  memcmp(data + STATE_SLOT_SIZE, &state, sizeof state) == 0;
    MUST(first || second);
    state_is_final(&state);
    /* What is alive now is not the input's business. */
    state.tree = NACRE_TREE_EMPTY;
    if (report_fill(&state, NULL, &record, NULL) == 0)
        MUST(strlen(nacre_status(&record, words, sizeof words)) < sizeof words);
    nacre_record_done(&record);
}

/* Makes a slot claim to be right. */
static void seal(uint8_t *slot)
{
    static const nacre_id none;
    struct run_state fresh, state;
    state_init(&fresh, &none, &none);
    memcpy(&state, slot, sizeof state);
    memcpy(state.magic, fresh.magic, sizeof fresh.magic);
    state.format = fresh.format;
    state.size = fresh.size;
    state.sum = sum64(&state, offsetof(struct run_state, sum));
    memcpy(slot, &state, sizeof state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static uint8_t file[2 * STATE_SLOT_SIZE];
    if (fd < 0)
        fd = memfd_create("state", MFD_CLOEXEC);
    set_content(fd, data, size);
    check(fd, data, size);
    size = size < sizeof file ? size : sizeof file;
    if (size < sizeof(struct run_state))
        return 0;
    memcpy(file, data, size);
    seal(file);
    if (size >= STATE_SLOT_SIZE + sizeof(struct run_state))
        seal(file + STATE_SLOT_SIZE);
    set_content(fd, file, size);
    check(fd, file, size);
    return 0;
}
