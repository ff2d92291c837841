/* trace_nested -- kernels of one stream run one after another, so the sum of their times is at most
 * the time in which the stream was busy.
 *
 *   conv2d      ##########  one launch: what lies inside is a part of it, as the operators of
 *                           PyTorch's autograd profiler are
 *   convolution  ########
 *   sgemm       #####       launches that overlap: each has a grid or a correlation of its own, so
 *                           all count; branches of a CUDA graph do this
 *   relu           ####
 *
 * Checked for every form of file, so that no time is counted twice without a word. */
#include <math.h>
#include <stdlib.h>

#include "profiler/trace/trace_internal.h"

typedef struct lane {
    cd_trace *t;
    /* (n) kernels with a start, by device, stream, start, the longer one first */
    uint32_t *of;
    /* (n_open) of the lane, those around the next one, outermost first */
    uint32_t *open;
    size_t n, n_open;
    double sum_ns, busy_ns; /* of what counts in the lane */
    size_t parts, overlaps;
    double over_ns; /* of all lanes: sums beyond busy times */
} lane;

static int64_t end_of(const cd_trace_event *e) { return e->start_ns + llround(e->time_s * 1e9); }

static int by_lane(const void *a, const void *b, void *events) {
    const cd_trace_event *e = events, *x = &e[*(const uint32_t *)a], *y = &e[*(const uint32_t *)b];
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    if (x->unit != y->unit) return x->unit < y->unit ? -1 : 1;
    if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
    if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
    if (x->time_s != y->time_s) return x->time_s > y->time_s ? -1 : 1;
    return (x > y) - (x < y);
}

static bool same_lane(const cd_trace_event *x, const cd_trace_event *y) {
    return x->device == y->device && x->unit == y->unit && x->thread == y->thread;
}

/* Times are microseconds in a double: since 1970 their last bit is a quarter of one. */
static int64_t blur(const cd_trace_event *e) {
    return 2 + (e->start_ns > ((int64_t)1 << 52) ? 1000 : 0);
}

static bool is_launch(const cd_trace *t, const cd_trace_event *e) {
    const char *shape = cd_trace_text(t, e->shape);
    return e->link >= 0 || (!e->dtype && *shape && strcmp(shape, "[[],[]]") != 0);
}

/* Of two equal spans the first is around the second. */
static void take(lane *l, uint32_t i, int64_t *to) {
    cd_trace_event *const all = l->t->event, *e = &all[i];
    const int64_t end = end_of(e);
    while (l->n_open && end_of(&all[l->open[l->n_open - 1]]) <= e->start_ns + blur(e)) l->n_open--;
    const cd_trace_event *around = l->n_open ? &all[l->open[l->n_open - 1]] : NULL;
    if (around && end <= end_of(around) + blur(e) && !is_launch(l->t, e)) {
        e->time_s = -1; /* a part */
        l->parts++;
        return;
    }
    if (around) l->overlaps++;
    l->open[l->n_open++] = i;
    l->sum_ns += (double)(end - e->start_ns);
    if (end > *to) l->busy_ns += (double)(end - (e->start_ns > *to ? e->start_ns : *to)), *to = end;
}

static void sweep(lane *l) {
    const cd_trace_event *const all = l->t->event;
    int64_t to = INT64_MIN;
    for (size_t k = 0; k < l->n; k++) {
        const bool fresh = !k || !same_lane(&all[l->of[k - 1]], &all[l->of[k]]);
        if (fresh)
            l->over_ns += l->sum_ns - l->busy_ns, l->sum_ns = l->busy_ns = 0, l->n_open = 0,
                                                  to = INT64_MIN;
        take(l, l->of[k], &to);
    }
    l->over_ns += l->sum_ns - l->busy_ns;
}

static void drop_parts(cd_trace *t) {
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->event[i].time_s >= 0) t->event[n++] = t->event[i];
    t->n = n;
}

static void say(lane *l) {
    cd_trace *t = l->t;
    if (l->parts)
        cd_buf_putf(&t->said,
                    "%zu events lie inside others of their stream and have no launch of their own: "
                    "they are parts of those and not counted\n",
                    l->parts);
    if (!l->overlaps || l->over_ns < 1) return;
    cd_buf_putf(&t->said,
                "%zu launches run while another one of their stream does: sums of kernels exceed "
                "the busy time by ",
                l->overlaps);
    cd_units_put_seconds(&t->said, l->over_ns * 1e-9);
    cd_buf_puts(&t->said,
                "; a stream runs one kernel after another, but for branches of a CUDA graph\n");
}

cdmpp_status cd_trace_whole_events(cd_trace *t, cdmpp_err *err) {
    lane l = {.t = t,
              .of = cd_mem_zalloc(t->n + 1, sizeof *l.of),
              .open = cd_mem_zalloc(t->n + 1, sizeof *l.open)};
    const bool good = l.of && l.open && t->n < CD_TRACE_NONE;
    for (size_t i = 0; i < t->n && good; i++)
        if (t->event[i].kind == CD_TRACE_KERNEL && t->event[i].start_ns != CD_TRACE_UNTIMED)
            l.of[l.n++] = (uint32_t)i;
    if (good && l.n) {
        qsort_r(l.of, l.n, sizeof *l.of, by_lane, t->event);
        sweep(&l);
        drop_parts(t);
        say(&l);
    }
    cd_mem_free(l.of);
    cd_mem_free(l.open);
    return good ? CDMPP_OK : CD_FAIL(err, ENOMEM, "events of a trace");
}
