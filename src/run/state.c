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

static int read_slot(int fd, int slot, struct run_state *ret_state)
{
    ssize_t n = fd_pread_all(fd, ret_state, sizeof *ret_state, (off_t)slot * STATE_SLOT_SIZE);
    if (n < 0)
        return (int)n;
    return (size_t)n < sizeof *ret_state ? -EBADMSG : check(ret_state);
}

/* The keeper may be met while it writes a slot. What the other one holds was the newest when that
 * began only if it is still there afterwards: the keeper may have gone on between two reads. */
int state_read(int fd, struct run_state *ret_state)
{
    int r = -EBADMSG;
    bool found = false;
    for (int attempt = 0; attempt < 8; attempt++) {
        int valid = 0;
        bool again = false;
        for (int slot = 0; slot < 2; slot++) {
            struct run_state state;
            int e = read_slot(fd, slot, &state);
            if (e < 0 && e != -EBADMSG && e != -EPROTO)
                return e;
            if (e == -EPROTO)
                r = e;
            if (e < 0)
                continue;
            valid++;
            again = again || (found && state.generation == ret_state->generation);
            if (!found || state.generation > ret_state->generation)
                *ret_state = state;
            found = true;
        }
        if (valid == 2 || again)
            return 0;
    }
    return found ? 0 : r;
}

bool state_is_final(const struct run_state *state)
{
    return state->phase == PHASE_RUN && state->outcome != NACRE_RUNNING &&
           state->tree == NACRE_TREE_EMPTY;
}
