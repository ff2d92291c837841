/* trace_devices -- the time lines: how long each device and stream was busy, and the gaps.
 *
 *   stream 7   ####  ####
 *   stream 8      ####      ##
 *   device     #######___##_##     busy: the union, not the sum */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/trace/trace_combine.h"

typedef struct span {
    int64_t from, to;
} span;

static int by_from(const void *a, const void *b) {
    const span *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

/* Union of (n) spans, which are sorted and joined in place; *left: how many are left.
 * Nanoseconds. */
static double unite(span *s, size_t n, size_t *left) {
    double busy = 0;
    *left = 0;
    qsort(s, n, sizeof *s, by_from);
    for (size_t i = 0; i < n; i++) {
        span *last = *left ? &s[*left - 1] : NULL;
        if (last && s[i].from <= last->to) last->to = s[i].to > last->to ? s[i].to : last->to;
        else s[(*left)++] = s[i];
    }
    for (size_t i = 0; i < *left; i++) busy += (double)(s[i].to - s[i].from);
    return busy;
}

typedef enum which { KERNELS, COPIES, ALL } which;

typedef struct lines {
    cd_trace_runs *r;
    span *s;     /* as many as a repeat has launches */
    double *gap; /* (n_gap) of all repeats, of one device */
    size_t n_gap, cap_gap;
} lines;

/* Spans of a device in a repeat; stream NULL: of all its streams. */
static size_t spans(const lines *l, const cd_trace_run *w, const cd_trace_event *device,
                    const int64_t *stream, which k) {
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        const cd_trace_event *e = cd_trace_launch(w, i);
        if (e->device != device->device || e->unit != device->unit ||
            (stream && e->thread != *stream))
            continue;
        if (k != ALL && (e->kind == CD_TRACE_KERNEL) != (k == KERNELS)) continue;
        l->s[n++] = (span){e->start_ns, e->start_ns + llround(e->time_s * 1e9)};
    }
    return n;
}

/* Add what the device did in one repeat. */
static cdmpp_status add_run(lines *l, const cd_trace_run *w, const cd_trace_event *device,
                            cd_trace_device *d, cdmpp_err *err) {
    const double part = 1e-9 / (double)l->r->n_kept;
    size_t left;
    const size_t kernels = spans(l, w, device, NULL, KERNELS);
    d->n += (double)kernels / (double)l->r->n_kept;
    for (size_t i = 0; i < kernels; i++) d->kernel_s += (double)(l->s[i].to - l->s[i].from) * part;
    d->busy_s += unite(l->s, kernels, &left) * part;
    const size_t copies = spans(l, w, device, NULL, COPIES);
    d->copy_s += unite(l->s, copies, &left) * part;
    const size_t all = spans(l, w, device, NULL, ALL);
    const double busy = unite(l->s, all, &left),
                 long_ = left ? (double)(l->s[left - 1].to - l->s[0].from) : 0;
    d->span_s += long_ * part;
    d->idle_s += (long_ - busy) * part;
    for (size_t i = 1; i < left; i++) {
        if (CD_GROW(l->gap, l->n_gap, l->cap_gap)) return CD_FAIL(err, ENOMEM, "gaps");
        l->gap[l->n_gap++] = 1e-9 * (double)(l->s[i].from - l->s[i - 1].to);
    }
    return CDMPP_OK;
}

/* The launch of repeat w that stands where launch i of the first one stands: devices and streams
 * may have other numbers there. */
static const cd_trace_event *same(const cd_trace_run *w, size_t i) { return cd_trace_launch(w, i); }

static cdmpp_status add_device(lines *l, size_t first, cdmpp_err *err) {
    cd_trace_runs *r = l->r;
    const cd_trace_run *k = &r->run[r->first];
    const cd_trace_event *e = cd_trace_launch(k, first);
    cd_trace_device *d = &r->device[r->n_device++];
    *d = (cd_trace_device){.name = cd_trace_text(k->trace, e->device), .unit = e->unit};
    l->n_gap = 0;
    for (size_t i = 0; i < r->n_run; i++)
        if (!r->run[i].why) CD_TRY(add_run(l, &r->run[i], same(&r->run[i], first), d, err));
    cd_sort_doubles(l->gap, l->n_gap);
    d->gaps = (double)l->n_gap / (double)r->n_kept;
    d->gap_s = l->n_gap ? cd_sort_median(l->gap, l->n_gap) : (double)NAN;
    return CDMPP_OK;
}

static void add_stream(lines *l, size_t first, uint32_t device) {
    cd_trace_runs *r = l->r;
    cd_trace_stream *s = &r->stream[r->n_stream++];
    *s = (cd_trace_stream){.device = device,
                           .id = cd_trace_launch(&r->run[r->first], first)->thread};
    r->device[device].stream++;
    for (size_t i = 0; i < r->n_run; i++) {
        if (r->run[i].why) continue;
        const cd_trace_event *e = same(&r->run[i], first);
        size_t left;
        const size_t n = spans(l, &r->run[i], e, &e->thread, ALL);
        s->n += (double)n / (double)r->n_kept;
        s->busy_s += unite(l->s, n, &left) * 1e-9 / (double)r->n_kept;
    }
}

static void wall(lines *l) {
    cd_trace_runs *r = l->r;
    r->wall_s = 0;
    for (size_t i = 0; i < r->n_run; i++) {
        const cd_trace_run *w = &r->run[i];
        if (w->why) continue;
        size_t left;
        for (size_t j = 0; j < w->n; j++)
            l->s[j] = (span){cd_trace_launch(w, j)->start_ns,
                             cd_trace_launch(w, j)->start_ns +
                                 llround(cd_trace_launch(w, j)->time_s * 1e9)};
        (void)unite(l->s, w->n, &left);
        r->wall_s += (double)(l->s[left - 1].to - l->s[0].from) * 1e-9 / (double)r->n_kept;
    }
}

static cdmpp_status all(lines *l, const cd_trace_run *k, cdmpp_err *err) {
    cd_trace_runs *r = l->r;
    for (size_t i = 0; i < k->n; i++) {
        const cd_trace_event *e = cd_trace_launch(k, i);
        uint32_t d = 0;
        if (!cd_trace_new_stream(k, i)) continue;
        while (d < r->n_device && (strcmp(r->device[d].name, cd_trace_text(k->trace, e->device)) ||
                                   r->device[d].unit != e->unit))
            d++;
        if (d == r->n_device) CD_TRY(add_device(l, i, err));
        add_stream(l, i, d);
    }
    wall(l);
    return CDMPP_OK;
}

/* A file without times of day has no time line, and no devices here. */
cdmpp_status cd_trace_runs_devices(cd_trace_runs *r, cdmpp_err *err) {
    const cd_trace_run *k = &r->run[r->first];
    lines l = {.r = r};
    size_t streams = 0;
    for (size_t i = 0; i < r->n_run; i++)
        for (size_t j = 0; j < r->run[i].n && !r->run[i].why; j++)
            if (cd_trace_launch(&r->run[i], j)->start_ns == CD_TRACE_UNTIMED) return CDMPP_OK;
    for (size_t i = 0; i < k->n; i++) streams += cd_trace_new_stream(k, i);
    l.s = cd_mem_zalloc(k->n, sizeof *l.s);
    r->device = CD_NEWN(&r->arena, cd_trace_device, streams);
    r->stream = CD_NEWN(&r->arena, cd_trace_stream, streams);
    cdmpp_status st = l.s && r->device && r->stream ? CDMPP_OK : CD_FAIL(err, ENOMEM, "time lines");
    if (!st) st = all(&l, k, err);
    cd_mem_free(l.s);
    cd_mem_free(l.gap);
    return st;
}
