/* trace_runs -- repeats: files or ranges of files, and which of them did the same. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/trace/trace_combine.h"

/* trace_devices -- the time lines: how long each device and stream was busy, and the gaps.
 *
 *   stream 7   ####  ####
 *   stream 8      ####      ##
 *   device     #######___##_##     busy: the union, not the sum */

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
static cdmpp_status add_run_devices(lines *l, const cd_trace_run *w, const cd_trace_event *device,
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
        if (!r->run[i].why) CD_TRY(add_run_devices(l, &r->run[i], same(&r->run[i], first), d, err));
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

static bool trace_new_stream(const cd_trace_run *w, size_t i);

static cdmpp_status all(lines *l, const cd_trace_run *k, cdmpp_err *err) {
    cd_trace_runs *r = l->r;
    for (size_t i = 0; i < k->n; i++) {
        const cd_trace_event *e = cd_trace_launch(k, i);
        uint32_t d = 0;
        if (!trace_new_stream(k, i)) continue;
        while (d < r->n_device && (strcmp(r->device[d].name, cd_trace_text(k->trace, e->device)) ||
                                   r->device[d].unit != e->unit))
            d++;
        if (d == r->n_device) CD_TRY(add_device(l, i, err));
        add_stream(l, i, d);
    }
    wall(l);
    return CDMPP_OK;
}

/* Time lines of the devices (trace_runs.c).
 *
 * A file without times of day has no time line, and no devices here. */
static cdmpp_status trace_runs_devices(cd_trace_runs *r, cdmpp_err *err) {
    const cd_trace_run *k = &r->run[r->first];
    lines l = {.r = r};
    size_t streams = 0;
    for (size_t i = 0; i < r->n_run; i++)
        for (size_t j = 0; j < r->run[i].n && !r->run[i].why; j++)
            if (cd_trace_launch(&r->run[i], j)->start_ns == CD_TRACE_UNTIMED) return CDMPP_OK;
    for (size_t i = 0; i < k->n; i++) streams += trace_new_stream(k, i);
    l.s = cd_mem_zalloc(k->n, sizeof *l.s);
    r->device = CD_NEWN(&r->arena, cd_trace_device, streams);
    r->stream = CD_NEWN(&r->arena, cd_trace_stream, streams);
    cdmpp_status st = l.s && r->device && r->stream ? CDMPP_OK : CD_FAIL(err, ENOMEM, "time lines");
    if (!st) st = all(&l, k, err);
    cd_mem_free(l.s);
    cd_mem_free(l.gap);
    return st;
}

/* trace_steps -- which operator each launch is of, and the runs of operators.
 *
 *   stream 7:  gemm gemm | relu | gemm gemm  steps; the launches of one call of an operator that
 *                                            follow one another are one
 *              addmm       relu   addmm      operators: addmm n 2, relu n 1 */

typedef struct owner {
    const char *name, *inputs; /* "" not known */
    uint32_t event;            /* call of the operator; CD_TRACE_NONE: the launch alone */
    bool helper;               /* the map says that it is no operator of the network */
} owner;

typedef struct stepping {
    cd_trace_runs *r;
    const cd_trace_combining *o;
    const cd_trace_run *w; /* the first repeat that is kept */
    size_t network;        /* operators of the network that were given out */
} stepping;

/* The map comes first, then the network's order, then what the trace says. */
static owner owner_of(const stepping *s, size_t i) {
    const cd_trace_event *e = cd_trace_launch(s->w, i);
    const cd_trace *t = s->w->trace;
    const char *op = "", *inputs;
    owner w = {.name = "", .inputs = "", .event = CD_TRACE_NONE};
    if (e->kind == CD_TRACE_KERNEL) {
        const bool known =
            s->o->map && cd_trace_map_find(s->o->map, cd_trace_launch_name(s->w, i), &op, &inputs);
        w.helper = known && !strcmp(op, "-");
        if (known && !w.helper && !s->o->n_network) return w.name = op, w.inputs = inputs, w;
        if (w.helper || s->o->n_network) return w;
    }
    if (e->op)
        w.name = cd_trace_text(t, e->op), w.inputs = e->dtype ? cd_trace_text(t, e->shape) : "";
    else if (e->owner != CD_TRACE_NONE)
        w = (owner){cd_trace_text(t, t->event[e->owner].name),
                    cd_trace_text(t, t->event[e->owner].shape), e->owner, false};
    return w;
}

/* ---- steps ---- */
typedef struct place {
    size_t first, n; /* launches of the repeat */
    owner of;
    int64_t start_ns;
    uint32_t stream;
} place;

static int by_time(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

static size_t places(const stepping *s, place *p) {
    size_t n = 0;
    uint32_t stream = 0;
    for (size_t i = 0; i < s->w->n; i++) {
        const cd_trace_event *e = cd_trace_launch(s->w, i);
        const owner w = owner_of(s, i);
        const bool fresh = trace_new_stream(s->w, i);
        stream += fresh && i;
        const bool joins = !fresh && n && w.event != CD_TRACE_NONE &&
                           p[n - 1].of.event == w.event &&
                           cd_trace_launch(s->w, i - 1)->kind == e->kind;
        if (joins) p[n - 1].n++;
        else p[n++] = (place){i, 1, w, e->start_ns, stream};
    }
    qsort(p, n, sizeof *p, by_time);
    return n;
}

/* Time of a step in one repeat. */
static double time_of(const cd_trace_run *w, size_t first, size_t n) {
    double s = 0;
    for (size_t i = first; i < first + n; i++) {
        const cd_trace_event *e = cd_trace_launch(w, i);
        s += e->time_s * (e->sum == CD_TRACE_NONE ? 1 : w->trace->sum[e->sum].n);
    }
    return s;
}

static cdmpp_status count_network(const stepping *s, const place *p, size_t n, cdmpp_err *err) {
    size_t kernels = 0;
    for (size_t i = 0; i < n; i++)
        kernels += cd_trace_launch(s->w, p[i].first)->kind == CD_TRACE_KERNEL && !p[i].of.helper;
    if (!s->o->n_network || kernels == s->o->n_network) return CDMPP_OK;
    return CD_FAIL(err, ESCHEMA,
                   "the network has %zu operators and a repeat has %zu kernels, which cannot be "
                   "matched by their order; --map with the operator \"-\" "
                   "takes kernels out",
                   s->o->n_network, kernels);
}

/* Grid and block of the longest kernel. */
static const char *launch_of(const cd_trace_run *w, const place *p) {
    const cd_trace_event *most = NULL;
    for (size_t i = p->first; i < p->first + p->n; i++) {
        const cd_trace_event *e = cd_trace_launch(w, i);
        if (e->kind == CD_TRACE_KERNEL && (!most || e->time_s > most->time_s)) most = e;
    }
    return most ? cd_trace_text(w->trace, most->shape) : "";
}

static cd_trace_step step_of(stepping *s, const place *p, double *time) {
    const cd_trace_event *e = cd_trace_launch(s->w, p->first);
    const cd_trace *t = s->w->trace;
    const cd_trace_event *op = p->of.event != CD_TRACE_NONE ? &t->event[p->of.event] : NULL;
    cd_trace_step x = {.name = cd_trace_launch_name(s->w, p->first),
                       .op = p->of.name,
                       .stream = p->stream,
                       .kind = e->kind,
                       .n = p->n,
                       .device = cd_trace_text(t, e->device),
                       .launch = launch_of(s->w, p),
                       .question = op ? op->question : e->question,
                       .inputs = p->of.inputs};
    if (s->o->n_network && e->kind == CD_TRACE_KERNEL && !p->of.helper) {
        x.op = s->o->network[s->network].name;
        x.key = s->o->network[s->network++].key;
    }
    for (size_t i = 0, k = 0; i < s->r->n_run; i++) {
        const cd_trace_run *w = &s->r->run[i];
        if (w->why) continue;
        time[k] = time_of(w, p->first, p->n);
        x.time_s += time[k++] / (double)s->r->n_kept;
    }
    return x;
}

/* ---- operators ---- */
typedef struct pile {
    cd_trace_group g;
    double *total; /* (n_kept) */
    double *each;  /* (n) times of single runs */
    size_t n, cap;
} pile;

static void finish(const cd_trace_runs *r, pile *p) {
    const double kept = (double)r->n_kept;
    double var = 0;
    for (size_t k = 0; k < r->n_kept; k++) p->g.total_s += p->total[k] / kept;
    for (size_t k = 0; k < r->n_kept; k++)
        var += (p->total[k] - p->g.total_s) * (p->total[k] - p->g.total_s);
    p->g.spread = r->n_kept > 1 ? sqrt(var / (kept - 1)) / p->g.total_s : (double)NAN;
    cd_sort_doubles(p->each, p->n);
    p->g.n = (double)p->n / kept;
    p->g.mean_s = p->g.total_s / p->g.n;
    p->g.median_s = cd_sort_median(p->each, p->n);
    p->g.min_s = p->each[0];
    p->g.max_s = p->each[p->n - 1];
    p->g.bytes = NAN;
}

static int by_total(const void *a, const void *b) {
    const cd_trace_group *x = a, *y = b;
    if (x->total_s != y->total_s) return x->total_s > y->total_s ? -1 : 1;
    return strcmp(x->name, y->name);
}

static cdmpp_status pile_up(cd_trace_runs *r, pile *p, const cd_trace_step *x, const double *time,
                            cdmpp_err *err) {
    if (!p->total) {
        p->g = (cd_trace_group){.kind = CD_TRACE_OP,
                                .name = x->op,
                                .shape = x->inputs,
                                .inputs = true,
                                .question = x->question};
        p->total = CD_NEWN(&r->arena, double, r->n_kept);
    }
    for (size_t k = 0; k < r->n_kept && p->total; k++) {
        if (CD_GROW(p->each, p->n, p->cap)) return CD_FAIL(err, ENOMEM, "operators");
        p->total[k] += time[k];
        p->each[p->n++] = time[k];
    }
    return p->total ? CDMPP_OK : CD_FAIL(err, ENOMEM, "operators");
}

typedef struct piles {
    cd_dict key;
    pile *p;
    size_t n, cap;
} piles;

static cdmpp_status add(cd_trace_runs *r, piles *l, const cd_trace_step *x, const double *time,
                        cdmpp_err *err) {
    cd_buf key = {0};
    uint32_t k;
    cd_buf_putf(&key, "%s\n%s", x->op, x->inputs);
    cdmpp_status st = key.oom ? CD_FAIL(err, ENOMEM, "operators") : CDMPP_OK;
    if (!st) st = cd_dict_add(&l->key, (cd_str){key.p, key.n}, &k, err);
    cd_buf_free(&key);
    if (!st && k == l->n) {
        if (CD_GROW(l->p, l->n, l->cap)) st = CD_FAIL(err, ENOMEM, "operators");
        else l->p[l->n++] = (pile){0};
    }
    return st ? st : pile_up(r, &l->p[k], x, time, err);
}

static cdmpp_status finish_all(cd_trace_runs *r, piles *l, cdmpp_err *err) {
    r->op = CD_NEWN(&r->arena, cd_trace_group, l->n + 1);
    if (!r->op) return CD_FAIL(err, ENOMEM, "operators");
    for (size_t i = 0; i < l->n; i++) {
        finish(r, &l->p[i]);
        r->op[r->n_op++] = l->p[i].g;
    }
    qsort(r->op, r->n_op, sizeof *r->op, by_total);
    return CDMPP_OK;
}

static cdmpp_status make(stepping *s, const place *p, size_t n, cdmpp_err *err) {
    cd_trace_runs *r = s->r;
    piles l = {0};
    double *time = cd_mem_zalloc(r->n_kept, sizeof *time);
    cdmpp_status st = time && (r->step = CD_NEWN(&r->arena, cd_trace_step, n + 1))
                          ? CDMPP_OK
                          : CD_FAIL(err, ENOMEM, "steps");
    for (size_t i = 0; i < n && !st; i++) {
        const cd_trace_step x = r->step[r->n_step++] = step_of(s, &p[i], time);
        if (*x.op && x.kind == CD_TRACE_KERNEL) st = add(r, &l, &x, time, err);
        else if (x.kind == CD_TRACE_KERNEL) r->unmatched += (double)x.n, r->unmatched_s += x.time_s;
    }
    if (!st) st = finish_all(r, &l, err);
    for (size_t i = 0; i < l.n; i++) cd_mem_free(l.p[i].each);
    cd_mem_free(l.p);
    cd_mem_free(time);
    cd_dict_free(&l.key);
    return st;
}

/* Steps and operators; kernels and copies by name (trace_groups.c). */
static cdmpp_status trace_runs_steps(cd_trace_runs *r, const cd_trace_combining *o,
                                     cdmpp_err *err) {
    stepping s = {.r = r, .o = o, .w = &r->run[r->first]};
    place *p = cd_mem_zalloc(s.w->n, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "steps");
    const size_t n = places(&s, p);
    cdmpp_status st = count_network(&s, p, n, err);
    if (!st) st = make(&s, p, n, err);
    cd_mem_free(p);
    return st;
}

/* ---- the launches of a repeat, stream by stream ---- */
typedef struct stream {
    uint32_t device;
    int32_t unit;
    int64_t thread;
} stream;

typedef struct order {
    uint32_t rank, event;
} order;

static int by_rank(const void *a, const void *b) {
    const order *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

/* Where streams of a repeat begin: launch i and i - 1 are of different ones. */
static bool trace_new_stream(const cd_trace_run *w, size_t i) {
    const cd_trace_event *x = cd_trace_launch(w, i), *y = i ? cd_trace_launch(w, i - 1) : NULL;
    return !y || x->device != y->device || x->unit != y->unit || x->thread != y->thread;
}

enum { MOST_STREAMS = 4096 };

/* Sort by the order in which streams first launched, then by start. Numbers of streams differ from
 * run to run, their order does not. */
static cdmpp_status by_stream(cd_trace_run *w, cdmpp_err *err) {
    stream *s = cd_mem_zalloc(MOST_STREAMS, sizeof *s);
    order *o = cd_mem_zalloc(w->n + 1, sizeof *o);
    size_t n = 0;
    cdmpp_status st = s && o ? CDMPP_OK : CD_FAIL(err, ENOMEM, "streams of a trace");
    for (size_t i = 0; i < w->n && !st; i++) {
        const cd_trace_event *e = cd_trace_launch(w, i);
        size_t k = 0;
        while (k < n &&
               (s[k].device != e->device || s[k].unit != e->unit || s[k].thread != e->thread))
            k++;
        if (k == MOST_STREAMS)
            st = CD_FAIL(err, ERANGE, "expected at most %d streams", MOST_STREAMS);
        else if (k == n) s[n++] = (stream){e->device, e->unit, e->thread};
        o[i] = (order){(uint32_t)k, w->launch[i]};
    }
    if (!st) qsort(o, w->n, sizeof *o, by_rank);
    for (size_t i = 0; i < w->n && !st; i++) w->launch[i] = o[i].event;
    cd_mem_free(s);
    cd_mem_free(o);
    return st;
}

/* Equal for repeats whose streams launch the same in the same order. */
static uint64_t like_of(const cd_trace_run *w) {
    cd_hash h = cd_hash_start();
    for (size_t i = 0; i < w->n; i++) {
        const cd_trace_event *e = cd_trace_launch(w, i);
        const char *name = cd_trace_launch_name(w, i);
        const unsigned char head[2] = {(unsigned char)e->kind, trace_new_stream(w, i)};
        const double rows = e->sum == CD_TRACE_NONE ? 1 : w->trace->sum[e->sum].n;
        cd_hash_add(&h, head, sizeof head);
        cd_hash_add(&h, &rows, sizeof rows);
        cd_hash_add(&h, name, strlen(name));
    }
    return h.a;
}

/* ---- finding them ---- */
static cdmpp_status add_run(cd_trace_runs *r, size_t *cap, const cd_trace *t, const char *path,
                            const cd_trace_event *range, cdmpp_err *err) {
    const int64_t from = range ? range->start_ns : 0,
                  to = range ? from + llround(range->time_s * 1e9) : 0;
    cd_trace_run w = {
        .path = path, .trace = t, .range = range ? cd_trace_text(t, range->name) : NULL};
    size_t n = 0;
    if (CD_GROW_IN(&r->arena, r->run, r->n_run, *cap)) return CD_FAIL(err, ENOMEM, "repeats");
    for (int pass = 0; pass < 2; pass++) {
        if (pass && !(w.launch = CD_NEWN(&r->arena, uint32_t, n + 1)))
            return CD_FAIL(err, ENOMEM, "repeats");
        for (size_t i = 0; i < t->n; i++) {
            const cd_trace_event *e = &t->event[i];
            const int64_t at = e->called_ns != CD_TRACE_UNTIMED ? e->called_ns : e->start_ns;
            if (e->kind >= CD_TRACE_OP || (range && (at < from || at >= to))) continue;
            if (pass) w.launch[w.n++] = (uint32_t)i;
            else n++;
        }
    }
    if (!n && range) return CDMPP_OK; /* nothing was launched in it */
    CD_TRY(by_stream(&w, err));
    w.like = like_of(&w);
    r->run[r->n_run++] = w;
    return CDMPP_OK;
}

/* The same name twice, one inside the other: the outer one counts. */
static cdmpp_status add_ranges(cd_trace_runs *r, size_t *cap, const cd_trace *t, const char *path,
                               const char *pattern, cdmpp_err *err) {
    int64_t end = INT64_MIN;
    for (size_t i = 0; i < t->n; i++) {
        const cd_trace_event *e = &t->event[i];
        if ((e->kind != CD_TRACE_RANGE && e->kind != CD_TRACE_OP) || e->start_ns < end ||
            !cd_str_fits(pattern, cd_trace_text(t, e->name)))
            continue;
        end = e->start_ns + llround(e->time_s * 1e9);
        CD_TRY(add_run(r, cap, t, path, e, err));
    }
    return CDMPP_OK;
}

/* ---- which are kept ---- */

/* Why a repeat does not fit the first one that is kept. */
static cdmpp_status explain(cd_trace_runs *r, cd_trace_run *w, cdmpp_err *err) {
    const cd_trace_run *k = &r->run[r->first];
    cd_buf b = {0};
    size_t i = 0;
    while (i < w->n && i < k->n &&
           !strcmp(cd_trace_launch_name(w, i), cd_trace_launch_name(k, i)) &&
           trace_new_stream(w, i) == trace_new_stream(k, i))
        i++;
    if (w->n != k->n) cd_buf_putf(&b, "it has %zu launches, the others have %zu", w->n, k->n);
    else if (i == w->n) cd_buf_puts(&b, "its launches are of other kinds or other counts");
    else if (strcmp(cd_trace_launch_name(w, i), cd_trace_launch_name(k, i)))
        cd_buf_putf(&b, "launch %zu is %.60s, in the others it is %.60s", i + 1,
                    cd_trace_launch_name(w, i), cd_trace_launch_name(k, i));
    else cd_buf_putf(&b, "launch %zu is in another stream", i + 1);
    w->why = b.oom ? NULL : cd_arena_text(&r->arena, b.p);
    cd_buf_free(&b);
    return w->why ? CDMPP_OK : CD_FAIL(err, ENOMEM, "repeats");
}

typedef struct vote {
    uint64_t like;
    uint32_t run;
} vote;

static int by_like(const void *a, const void *b) {
    const vote *x = a, *y = b;
    if (x->like != y->like) return x->like < y->like ? -1 : 1;
    return (x->run > y->run) - (x->run < y->run);
}

static cdmpp_status choose(cd_trace_runs *r, cdmpp_err *err) {
    vote *v = cd_mem_zalloc(r->n_run, sizeof *v);
    if (!v) return CD_FAIL(err, ENOMEM, "repeats");
    for (size_t i = 0; i < r->n_run; i++) v[i] = (vote){r->run[i].like, (uint32_t)i};
    qsort(v, r->n_run, sizeof *v, by_like);
    for (size_t i = 0; i < r->n_run;) {
        size_t j = i;
        while (j < r->n_run && v[j].like == v[i].like) j++;
        if (j - i > r->n_kept || (j - i == r->n_kept && v[i].run < r->first))
            r->first = v[i].run, r->n_kept = j - i;
        i = j;
    }
    cd_mem_free(v);
    for (size_t i = 0; i < r->n_run; i++)
        if (r->run[i].like != r->run[r->first].like) CD_TRY(explain(r, &r->run[i], err));
    return CDMPP_OK;
}

/* The repeats of all traces, and which are kept (trace_runs.c). */
static cdmpp_status trace_runs_find(cd_trace_runs *r, const cd_trace *const *t,
                                    const char *const *path, size_t n, const char *range,
                                    cdmpp_err *err) {
    size_t cap = 0;
    for (size_t i = 0; i < n; i++)
        CD_TRY(range ? add_ranges(r, &cap, t[i], path[i], range, err)
                     : add_run(r, &cap, t[i], path[i], NULL, err));
    if (!r->n_run)
        return CD_FAIL(err, ENODATA, "no range '%.60s' in which something was launched",
                       range ? range : "");
    CD_TRY(choose(r, err));
    if (!r->run[r->first].n)
        return cd_err_at(
            err,
            CD_FAIL(err, ENODATA,
                    "the trace has no launch of a kernel, a copy or a fill with a time"),
            r->run[r->first].path, 0);
    return CDMPP_OK;
}

cdmpp_status cd_trace_combine(const cd_trace *const *t, const char *const *path, size_t n,
                              const cd_trace_combining *o, cd_trace_runs *out, cdmpp_err *err) {
    *out = (cd_trace_runs){.wall_s = NAN};
    CD_TRY(trace_runs_find(out, t, path, n, o->range, err));
    CD_TRY(trace_runs_steps(out, o, err));
    CD_TRY(cd_trace_runs_groups(out, err));
    return trace_runs_devices(out, err);
}

void cd_trace_runs_free(cd_trace_runs *r) { cd_arena_free(&r->arena); }
