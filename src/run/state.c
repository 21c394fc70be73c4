#include "run/state.h"

#include <stddef.h>
#include <string.h>

#include "base/defs.h"
#include "base/sum.h"
#include "sys/fd.h"

static const uint8_t magic[8] = "nacstate";

void state_init(struct run_state *state, const nacre_id *id, const nacre_id *session)
{
    memset(state, 0, sizeof *state);
    memcpy(state->magic, magic, sizeof magic);
    state->format = RUN_FORMAT;
    state->size = sizeof *state;
    state->id = *id;
    state->session = *session;
    state->exit_code = -1;
    state->pipestatus_count = -1;
}

static uint64_t sum_of(const struct run_state *state)
{
    return sum64(state, offsetof(struct run_state, sum));
}

int state_write(int fd, struct run_state *state)
{
    state->generation++;
    state->sum = sum_of(state);
    off_t slot = (off_t)(state->generation % 2) * STATE_SLOT_SIZE;
    int r = fd_pwrite_all(fd, state, sizeof *state, slot);
    /* The next try must not go over the good slot. */
    if (r < 0)
        state->generation--;
    return r;
}

static int check(const struct run_state *state)
{
    if (memcmp(state->magic, magic, sizeof magic) != 0)
        return -EBADMSG;
    if (state->format > RUN_FORMAT)
        return -EPROTO;
    return state->size == sizeof *state && state->sum == sum_of(state) ? 0 : -EBADMSG;
}

int state_read(int fd, struct run_state *ret_state)
{
    /* A reader may meet the keeper in the middle of either slot, but not of both for long. */
    int r = -EBADMSG;
    for (int attempt = 0; attempt < 8; attempt++) {
        bool found = false;
        for (int slot = 0; slot < 2; slot++) {
            struct run_state state;
            ssize_t n = fd_pread_all(fd, &state, sizeof state, (off_t)slot * STATE_SLOT_SIZE);
            if (n < 0)
                return (int)n;
            int checked = (size_t)n < sizeof state ? -EBADMSG : check(&state);
            if (checked == -EPROTO)
                r = checked;
            if (checked == 0 && (!found || state.generation > ret_state->generation)) {
                *ret_state = state;
                found = true;
            }
        }
        if (found)
            return 0;
    }
    return r;
}

bool state_is_final(const struct run_state *state)
{
    return state->phase == PHASE_RUN && state->outcome != NACRE_RUNNING &&
           state->tree == NACRE_TREE_EMPTY;
}
