/* trace_steps -- which operator each launch is of, and the runs of operators.
 *
 *   stream 7:  gemm gemm | relu | gemm gemm  steps; the launches of one call of an operator that
 *                                            follow one another are one
 *              addmm       relu   addmm      operators: addmm n 2, relu n 1 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/trace/trace_combine.h"

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
        const bool fresh = cd_trace_new_stream(s->w, i);
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

cdmpp_status cd_trace_runs_steps(cd_trace_runs *r, const cd_trace_combining *o, cdmpp_err *err) {
    stepping s = {.r = r, .o = o, .w = &r->run[r->first]};
    place *p = cd_mem_zalloc(s.w->n, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "steps");
    const size_t n = places(&s, p);
    cdmpp_status st = count_network(&s, p, n, err);
    if (!st) st = make(&s, p, n, err);
    cd_mem_free(p);
    return st;
}
