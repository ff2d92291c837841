/* trace_groups -- launches by name. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/trace/trace_combine.h"
#include "profiler/trace/trace_internal.h"

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

/* One launch of one repeat; a row of a summary counts for its launches. */
typedef struct sample {
    uint32_t group, run;
    double time_s, n, bytes;
    const cd_trace_sum *sum; /* NULL: one launch */
} sample;

static int by_group(const void *a, const void *b) {
    const sample *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    return (x->time_s > y->time_s) - (x->time_s < y->time_s);
}

static double least(double a, double b) { return a <= b ? a : b; } /* NaN where either is */
static double most(double a, double b) { return a >= b ? a : b; }

static void extremes(cd_trace_group *g, const sample *s, size_t n) {
    g->min_s = g->max_s = g->median_s = NAN;
    for (size_t i = 0; i < n; i++) {
        const double lo = s[i].sum ? s[i].sum->min_s : s[i].time_s,
                     hi = s[i].sum ? s[i].sum->max_s : s[i].time_s;
        g->min_s = i && !isnan(lo) ? least(g->min_s, lo) : isnan(lo) ? (double)NAN : lo;
        g->max_s = i && !isnan(hi) ? most(g->max_s, hi) : isnan(hi) ? (double)NAN : hi;
    }
    if (n == 1 && s->sum) g->median_s = s->sum->median_s;
    else if (!s->sum)
        g->median_s = n % 2 ? s[n / 2].time_s : (s[n / 2 - 1].time_s + s[n / 2].time_s) / 2;
}

/* Figures of (n) samples of one group, sorted by time. */
static void sum_up(const cd_trace_runs *r, cd_trace_group *g, const sample *s, size_t n,
                   double *total) {
    const double kept = (double)r->n_kept;
    double launches = 0, var = 0;
    g->bytes = 0;
    memset(total, 0, r->n_kept * sizeof *total);
    for (size_t i = 0; i < n; i++) {
        total[s[i].run] += s[i].time_s * s[i].n;
        launches += s[i].n;
        g->bytes += s[i].bytes / kept;
    }
    g->total_s = 0;
    for (size_t k = 0; k < r->n_kept; k++) g->total_s += total[k] / kept;
    for (size_t k = 0; k < r->n_kept; k++) var += (total[k] - g->total_s) * (total[k] - g->total_s);
    g->spread = r->n_kept > 1 ? sqrt(var / (kept - 1)) / g->total_s : (double)NAN;
    g->n = launches / kept;
    g->mean_s = g->total_s / g->n;
    extremes(g, s, n);
}

static int by_total(const void *a, const void *b) {
    const cd_trace_group *x = a, *y = b;
    if ((x->kind == CD_TRACE_KERNEL) != (y->kind == CD_TRACE_KERNEL))
        return x->kind == CD_TRACE_KERNEL ? -1 : 1;
    if (x->total_s != y->total_s) return x->total_s > y->total_s ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Shares: kernels of all kernels, copies and fills of those. */
static void share(cd_trace_group *g, size_t n, double kernels) {
    double copies = 0;
    for (size_t i = 0; i < n; i++)
        copies += g[i].kind > CD_TRACE_KERNEL && g[i].kind < CD_TRACE_OP ? g[i].total_s : 0;
    for (size_t i = 0; i < n; i++)
        g[i].share = g[i].total_s /
                     (g[i].kind == CD_TRACE_COPY || g[i].kind == CD_TRACE_SET ? copies : kernels);
}

static double kernels_of(const cd_trace_group *g, size_t n) {
    double s = 0;
    for (size_t i = 0; i < n; i++) s += g[i].kind == CD_TRACE_KERNEL ? g[i].total_s : 0;
    return s;
}

/* Kernels of one name are one group; of one name and inputs where the file tells them. */
static cdmpp_status number(cd_dict *d, const char *name, const char *inputs, uint32_t *id,
                           cdmpp_err *err) {
    cd_buf key = {0};
    cd_buf_putf(&key, "%s\n%s", name, inputs);
    cdmpp_status st = key.oom ? CD_FAIL(err, ENOMEM, "kernels") : CDMPP_OK;
    if (!st) st = cd_dict_add(d, (cd_str){key.p, key.n}, id, err);
    cd_buf_free(&key);
    return st;
}

/* Names of groups, with the shape that all their launches have; "" where they differ. */
static cdmpp_status gather(cd_trace_runs *r, cd_dict *name, sample *s, size_t *n, cdmpp_err *err) {
    uint32_t k = 0;
    for (size_t i = 0; i < r->n_run; i++) {
        const cd_trace_run *w = &r->run[i];
        if (w->why) continue;
        for (size_t j = 0; j < w->n; j++) {
            const cd_trace_event *e = cd_trace_launch(w, j);
            const char *t = cd_trace_launch_name(w, j), *shape = cd_trace_text(w->trace, e->shape);
            uint32_t id;
            CD_TRY(number(name, t, e->dtype ? shape : "", &id, err));
            cd_trace_group *g = &r->kernel[id];
            if (id == r->n_kernel)
                *g = (cd_trace_group){.kind = e->kind,
                                      .name = t,
                                      .shape = shape,
                                      .inputs = e->dtype != 0,
                                      .question = CD_TRACE_NONE},
                r->n_kernel++;
            else if (strcmp(g->shape, shape)) g->shape = "";
            const cd_trace_sum *sum = e->sum == CD_TRACE_NONE ? NULL : &w->trace->sum[e->sum];
            s[(*n)++] = (sample){id, k, e->time_s, sum ? sum->n : 1, e->bytes, sum};
        }
        k++;
    }
    return CDMPP_OK;
}

cdmpp_status cd_trace_runs_groups(cd_trace_runs *r, cdmpp_err *err) {
    const size_t all = r->n_kept * r->run[r->first].n;
    cd_dict name = {0};
    sample *s = cd_mem_zalloc(all, sizeof *s);
    double *total = cd_mem_zalloc(r->n_kept, sizeof *total);
    size_t n = 0;
    r->kernel = CD_NEWN(&r->arena, cd_trace_group, r->run[r->first].n + 1);
    cdmpp_status st = s && total && r->kernel ? CDMPP_OK : CD_FAIL(err, ENOMEM, "kernels");
    if (!st) st = gather(r, &name, s, &n, err);
    if (!st) qsort(s, n, sizeof *s, by_group);
    for (size_t i = 0, j; i < n && !st; i = j) {
        for (j = i; j < n && s[j].group == s[i].group;) j++;
        sum_up(r, &r->kernel[s[i].group], s + i, j - i, total);
    }
    if (!st) {
        const double kernels = kernels_of(r->kernel, r->n_kernel);
        share(r->kernel, r->n_kernel, kernels);
        share(r->op, r->n_op, kernels);
        qsort(r->kernel, r->n_kernel, sizeof *r->kernel, by_total);
    }
    cd_dict_free(&name);
    cd_mem_free(s);
    cd_mem_free(total);
    return st;
}
