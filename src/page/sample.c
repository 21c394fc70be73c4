/* What shells use, over time: each second while somebody looks, else now and then, so that there is
 * a past to be shown to who comes. */
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "page/page.h"
#include "session/session.h"

#define EVERY_MS  1000
#define RARELY_MS 15000
#define SLICE_MS  20 /* so long at a time; then others are served */

static struct sample *next_sample(struct shown *s)
{
    if (s->sample_count < SAMPLES_MAX) {
        if (GROW(s->samples, s->sample_count, s->sample_room) < 0)
            return NULL;
        s->sample_count++;
    }
    struct sample *one = &s->samples[s->sample_at];
    s->sample_at = (s->sample_at + 1) % SAMPLES_MAX;
    return one;
}

/* Shares are of the time since the sample before, so the first one has none. */
static void note_usage(struct shown *s, const nacre_usage *usage, int64_t now_ns)
{
    int64_t ms = (now_ns - s->sampled_ns) / NS_PER_MS;
    bool first = s->sampled_ns == 0 || ms <= 0;
    int64_t cpu = first ? 0 : MAX(usage->cpu_ms - s->cpu_ms, INT64_C(0)) * 1000 / ms;
    uint64_t rate = first ? 0 : (s->end - MIN(s->end, s->sampled_end)) * 1000 / (uint64_t)ms;
    s->sampled_ns = now_ns;
    s->sampled_end = s->end;
    s->cpu_ms = usage->cpu_ms;
    struct sample *one = next_sample(s);
    if (one)
        *one = (struct sample){
            .at_s = (uint32_t)(clock_real_ns() / NS_PER_S),
            .memory_kb = (uint32_t)MIN(usage->memory_bytes / 1024, (uint64_t)UINT32_MAX),
            .rate = (uint32_t)MIN(rate, (uint64_t)UINT32_MAX),
            .cpu = (uint16_t)MIN(cpu, (int64_t)UINT16_MAX),
            .processes = (uint16_t)MIN(usage->processes, (int)UINT16_MAX),
        };
}

static void sample_shell(struct live_page *p, struct shown *s, int64_t now_ns)
{
    nacre_usage usage = NACRE_USAGE_INIT;
    if (nacre_get_usage(p->session, &s->id, &usage, NULL) < 0)
        return;
    note_usage(s, &usage, now_ns);
    if (memcmp(s->ports, usage.ports, sizeof usage.ports) != 0) {
        memcpy(s->ports, usage.ports, sizeof usage.ports);
        s->stale = true;
        p->look_ns = MIN(p->look_ns, now_ns);
    }
}

int sample_write(const struct shown *s, size_t most, struct buf *out)
{
    size_t count = MIN(s->sample_count, most);
    int r = buf_str(out, "[");
    for (size_t i = 0; r == 0 && i < count; i++) {
        size_t back = count - i;
        const struct sample *one = &s->samples[(s->sample_at + SAMPLES_MAX - back) % SAMPLES_MAX];
        r = buf_printf(out, "%s[%u,%u,%u,%u,%u]", i > 0 ? "," : "", one->at_s, one->cpu,
                       one->memory_kb, one->rate, one->processes);
    }
    return r < 0 ? r : buf_str(out, "]");
}

/* The newest sample of each, for those who look on. */
static void tell_usage(struct live_page *p)
{
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    int r = buf_str(&text, "{");
    for (size_t i = 0; r == 0 && i < p->shell_count; i++) {
        const struct shown *s = p->shells[i];
        if (!s->alive || s->sample_count == 0)
            continue;
        r = buf_printf(&text, "%s\"%s\":", text.len > 1 ? "," : "", nacre_id_format(&s->id).s);
        if (r == 0)
            r = sample_write(s, 1, &text);
    }
    if (r == 0 && buf_str(&text, "}") == 0)
        news_set(p, &p->usage, buf_take(&text));
}

/* As many as fit a slice of time, from where the last one ended. */
void sample_step(struct live_page *p, int64_t now_ns)
{
    int64_t until = now_ns + SLICE_MS * NS_PER_MS;
    if (now_ns < p->sample_ns)
        return;
    for (; p->sampled < p->shell_count && clock_mono_ns() < until; p->sampled++)
        if (p->shells[p->sampled]->alive)
            sample_shell(p, p->shells[p->sampled], clock_mono_ns());
    if (p->sampled < p->shell_count)
        return;
    p->sampled = 0;
    p->sample_ns = now_ns + (p->viewer_count > 0 ? EVERY_MS : RARELY_MS) * NS_PER_MS;
    tell_usage(p);
}
