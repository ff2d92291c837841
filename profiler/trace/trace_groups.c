/* trace_groups -- launches by name. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/trace/trace_combine.h"

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
