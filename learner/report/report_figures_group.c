/* Errors by task, network, decade, device, and in or out of range. */
#include <math.h>
#include <string.h>

#include "learner/report/report_internal.h"

double cd_report_fig_decade_s(uint32_t k) { return k ? pow(10, (double)k - 9) : 0; }

static uint32_t decade(double s) {
    uint32_t k = 0;
    while (k + 1 < CD_REPORT_FIG_N_DECADE && s >= cd_report_fig_decade_s(k + 1)) k++;
    return k;
}

/* Programs in the order of a key, and where each key begins. */
typedef struct {
    size_t *idx;   /* (n) */
    size_t *start; /* (n_key+1) */
} sorted;

/* A counting sort, stable. */
static cdmpp_status sort_by(cd_arena *a, const uint32_t *key, size_t n, size_t n_key, sorted *s,
                            cdmpp_err *err) {
    *s = (sorted){CD_NEWN(a, size_t, n), CD_NEWN(a, size_t, n_key + 2)};
    if (!s->idx || !s->start) return CD_FAIL(err, ENOMEM, "groups of %zu programs", n);
    size_t *at = s->start + 1; /* becomes the ends, which are the next one's starts */
    for (size_t i = 0; i < n; i++) at[key[i] + 1]++;
    for (size_t k = 0; k < n_key; k++) at[k + 1] += at[k];
    for (size_t i = 0; i < n; i++) s->idx[at[key[i]]++] = i;
    return CDMPP_OK;
}

typedef struct {
    cd_report_figures *f;
    const cd_report *r;
    const cd_report_part *p;
    cd_arena arena; /* scratch */
    double *tmp;
} grouping;

static cdmpp_status list_new(grouping *g, cd_report_fig_groups *out, size_t n, cdmpp_err *err) {
    out->v = CD_NEWN(&g->f->arena, cd_report_fig_group, n + 1);
    return out->v ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu groups", n);
}

/* One group a key that occurs; `name` (n_key) or NULL. */
static cdmpp_status group_by(grouping *g, const uint32_t *key, size_t n_key, char *const *name,
                             cd_report_fig_groups *out, cdmpp_err *err) {
    sorted s;
    CD_TRY(list_new(g, out, n_key, err));
    CD_TRY(sort_by(&g->arena, key, g->p->n, n_key, &s, err));
    for (uint32_t k = 0; k < n_key; k++) {
        const size_t n = s.start[k + 1] - s.start[k];
        if (!n) continue;
        out->v[out->n++] =
            (cd_report_fig_group){.name = name ? name[k] : NULL,
                                  .key = k,
                                  .d = cd_report_fig_dist(g->p, s.idx + s.start[k], n, g->tmp)};
    }
    return CDMPP_OK;
}

/* The programs of all tasks of network k; a task listed twice counts once. */
static size_t collect(const grouping *g, const sorted *by_task, uint32_t k, uint32_t *seen,
                      uint8_t *in_any, size_t *idx) {
    size_t n = 0;
    for (size_t i = 0; i < g->r->n_net_task; i++) {
        const uint32_t t = g->r->net_task[i];
        if (g->r->net_network[i] != k || seen[t] == k + 1) continue;
        seen[t] = k + 1;
        in_any[t] = 1;
        const size_t m = by_task->start[t + 1] - by_task->start[t];
        if (m) memcpy(idx + n, by_task->idx + by_task->start[t], m * sizeof *idx);
        n += m;
    }
    return n;
}

/* A task counts in every network that it occurs in. */
static cdmpp_status by_network(grouping *g, cd_report_fig_part *to, cdmpp_err *err) {
    const cd_report *r = g->r;
    sorted s;
    CD_TRY(list_new(g, &to->network, r->n_network, err));
    CD_TRY(sort_by(&g->arena, g->p->task, g->p->n, r->n_task, &s, err));
    size_t *idx = CD_NEWN(&g->arena, size_t, g->p->n);
    uint32_t *seen = CD_NEWN(&g->arena, uint32_t, r->n_task);
    uint8_t *in_any = CD_NEWN(&g->arena, uint8_t, r->n_task);
    if (g->arena.oom) return CD_FAIL(err, ENOMEM, "networks of %zu programs", g->p->n);
    for (uint32_t k = 0; k < r->n_network; k++) {
        const size_t n = collect(g, &s, k, seen, in_any, idx);
        if (n)
            to->network.v[to->network.n++] =
                (cd_report_fig_group){.name = r->network_name[k],
                                      .key = k,
                                      .d = cd_report_fig_dist(g->p, idx, n, g->tmp)};
    }
    for (size_t i = 0; i < g->p->n; i++) to->n_no_network += !in_any[g->p->task[i]];
    return CDMPP_OK;
}

static cdmpp_status all(grouping *g, cd_report_fig_part *to, cdmpp_err *err) {
    const cd_report *r = g->r;
    const cd_report_part *p = g->p;
    uint32_t *key = CD_NEWN(&g->arena, uint32_t, p->n);
    g->tmp = CD_NEWN(&g->arena, double, p->n);
    if (g->arena.oom) return CD_FAIL(err, ENOMEM, "%zu programs", p->n);
    CD_TRY(group_by(g, p->task, r->n_task, r->task_name, &to->task, err));
    CD_TRY(group_by(g, p->device, r->n_device, r->device_name, &to->device, err));
    for (size_t i = 0; i < p->n; i++) key[i] = decade(p->measured_s[i]);
    CD_TRY(group_by(g, key, CD_REPORT_FIG_N_DECADE, NULL, &to->decade, err));
    for (size_t i = 0; p->out_of_range && i < p->n; i++) key[i] = p->out_of_range[i] ? 1 : 0;
    if (p->out_of_range) CD_TRY(group_by(g, key, 2, NULL, &to->range, err));
    return by_network(g, to, err);
}

cdmpp_status cd_report_fig_group_part(cd_report_figures *f, const cd_report *r, cd_split_part part,
                                      cdmpp_err *err) {
    grouping g = {.f = f, .r = r, .p = &r->part[part]};
    const cdmpp_status st = all(&g, &f->part[part], err);
    cd_arena_free(&g.arena);
    return st;
}
