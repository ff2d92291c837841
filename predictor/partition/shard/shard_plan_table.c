/* The tables that the solver (shard_select.h) works on: the options of each operator, limited to a
 * small number, and the exchange times between the options of neighbours. */
#include <math.h>
#include <stdlib.h>

#include "predictor/partition/shard/shard_plan_internal.h"

/* ---- key operators ---- */
typedef struct saving {
    double seconds;
    uint32_t op;
} saving;

static int larger(const void *a, const void *b) {
    const saving *x = a, *y = b;
    if (x->seconds != y->seconds) return x->seconds > y->seconds ? -1 : 1;
    return (x->op > y->op) - (x->op < y->op);
}

static double need(const cd_shard_planner *s, const cd_shard_planner_kind *k) {
    return fmax(s->margin * k->best, s->least_s);
}

/* The attainable saving of an operator is its best time alone less the time if all devices worked
 * together. Key operators are those with the largest savings until `cover` of the sum is reached;
 * an operator that no device can run alone is always one. */
static cdmpp_status find_keys(cd_shard_planner *s, cdmpp_err *err) {
    saving *v = CD_NEWN(&s->arena, saving, (size_t)s->net->n_op + 1);
    double all = 0, sum = 0;
    if (!v) return CD_FAIL(err, ENOMEM, "%u operators", s->net->n_op);
    for (uint32_t op = 0; op < s->net->n_op; op++) {
        const cd_shard_planner_kind *k = &s->kind[s->node[op].kind];
        v[op] = (saving){isfinite(k->best) ? k->best - k->together : 0, op};
        s->node[op].worth = k->n_way && (isinf(k->best) || v[op].seconds >= need(s, k));
        s->node[op].key = isinf(k->best);
        all += v[op].seconds;
    }
    qsort(v, s->net->n_op, sizeof *v, larger);
    for (uint32_t i = 0;
         i < s->net->n_op && v[i].seconds > 0 && (sum < s->cover * all || s->cover >= 1); i++) {
        s->node[v[i].op].key = true;
        sum += v[i].seconds;
    }
    for (uint32_t op = 0; op < s->net->n_op; op++) {
        cd_shard_planner_kind *k = &s->kind[s->node[op].kind];
        k->key = k->key || s->node[op].key;
        k->look = k->look || (s->node[op].key && s->node[op].worth);
    }
    return CDMPP_OK;
}

/* ---- which options an operator has ---- */
typedef struct ranked {
    double seconds;
    uint32_t option;
    bool aligned; /* of all options on its axis the nearest to the network's ratio */
} ranked;

static int faster(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->aligned != y->aligned) return x->aligned ? -1 : 1;
    if (x->seconds != y->seconds) return x->seconds < y->seconds ? -1 : 1;
    return (x->option > y->option) - (x->option < y->option);
}

static double off(const cd_shard_planner *s, const cd_shard_planner_option *o) {
    double most = 0;
    for (uint32_t d = 0; d < s->n_device; d++) most = fmax(most, fabs(o->share[d] - s->ratio[d]));
    return most;
}

static void mark(const cd_shard_planner *s, const cd_shard_planner_kind *k, ranked *v, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const cd_shard_planner_option *a = &k->option[v[i].option];
        v[i].aligned = true;
        for (uint32_t j = 0; j < n && v[i].aligned; j++) {
            const cd_shard_planner_option *b = &k->option[v[j].option];
            v[i].aligned = b->way != a->way || off(s, a) <= off(s, b);
        }
    }
}

/* Options for the solver: all that do not split, and splits that save enough. If those are too
 * many: per axis the split nearest to the network's ratio (aligned, so that neighbours split alike
 * and exchange little), then the fastest ones up to 1.5 times the fastest. */
static uint32_t choose_some(const cd_shard_planner *s, uint32_t op, uint32_t *some, ranked *v) {
    const cd_shard_planner_node *x = &s->node[op];
    const cd_shard_planner_kind *k = &s->kind[x->kind];
    uint32_t n = 0, splits = 0;
    double least = (double)INFINITY;
    for (uint32_t i = 0; i < x->n_all; i++) {
        const cd_shard_planner_option *o = &k->option[x->all[i]];
        if (o->way == CD_SHARD_PLANNER_NONE) some[n++] = x->all[i];
        else if (x->worth && (isinf(k->best) || o->seconds + need(s, k) <= k->best))
            v[splits++] = (ranked){o->seconds, x->all[i], false}, least = fmin(least, o->seconds);
    }
    if (n + splits > CD_SHARD_PLANNER_OPTIONS) {
        mark(s, k, v, splits);
        qsort(v, splits, sizeof *v, faster);
        uint32_t keep = 0;
        for (uint32_t i = 0; i < splits; i++)
            if (n + keep < CD_SHARD_PLANNER_OPTIONS &&
                (v[i].aligned || v[i].seconds <= 1.5 * least))
                v[keep++] = v[i];
        splits = keep;
    }
    for (uint32_t i = 0; i < splits; i++) some[n++] = v[i].option;
    qsort(some, n, sizeof *some, cd_sort_by_u32);
    return n;
}

static cdmpp_status nobody(cd_shard_planner *s, uint32_t op, cdmpp_err *err) {
    const cd_shard_net_op *o = &s->net->op[op];
    const cd_shard_planner_kind *k = &s->kind[s->node[op].kind];
    if (!k->allowed)
        return CD_FAIL(err, EINVALID, "operator %s (%s): no device may run it", o->name, o->type);
    const char *who =
        k->n_option ? NULL : cd_shard_planner_without_time(s, k, CD_SHARD_PLANNER_NONE, &s->arena);
    if (!k->n_option)
        return CD_FAIL(err, EINVALID, "node %s (%s) has no time on %s%s%s", o->name, o->type,
                       who ? who : "any device",
                       o->pin == UINT32_MAX ? "" : ", where it is pinned: ",
                       o->pin == UINT32_MAX ? ""
                       : o->pin_why         ? o->pin_why
                                            : s->m->device[o->pin].name);
    return CD_FAIL(err, EINVALID,
                   "operator %s (%s): no device that can run it has links from and to %s", o->name,
                   o->type, s->m->device[0].name);
}

/* all: options that are possible for this operator, used by the baselines; some: those of them that
 * the solver chooses from. Options that have no link for the network's inputs or results (io
 * infinite) are in neither. */
static cdmpp_status fill_node(cd_shard_planner *s, uint32_t op, cdmpp_err *err) {
    cd_shard_planner_node *x = &s->node[op];
    const cd_shard_planner_kind *k = &s->kind[x->kind];
    uint32_t *all = CD_NEWN(&s->arena, uint32_t, (size_t)k->n_option + 1),
             *some = CD_NEWN(&s->arena, uint32_t, (size_t)k->n_option + 1);
    double *io = CD_NEWN(&s->arena, double, (size_t)k->n_option + 1);
    ranked *v = cd_mem_zalloc((size_t)k->n_option + 1, sizeof *v);
    if (!all || !some || !io || !v) {
        cd_mem_free(v);
        return CD_FAIL(err, ENOMEM, "options of %s", s->net->op[op].name);
    }
    x->all = all, x->some = some, x->io = io;
    for (uint32_t i = 0; i < k->n_option; i++) {
        const cd_shard_planner_option *o = &k->option[i];
        io[i] = (double)INFINITY;
        if (!isfinite(o->seconds) || (o->way != CD_SHARD_PLANNER_NONE && !x->key) ||
            !cd_shard_planner_fits(s, op, o))
            continue;
        io[i] = cd_shard_planner_inputs(s, op, o, NULL) + cd_shard_planner_results(s, op, o, NULL);
        if (isfinite(io[i])) all[x->n_all++] = i;
    }
    x->n_some = choose_some(s, op, some, v);
    cd_mem_free(v);
    return x->n_some ? CDMPP_OK : nobody(s, op, err);
}

cdmpp_status cd_shard_planner_nodes(cd_shard_planner *s, cdmpp_err *err) {
    CD_TRY(find_keys(s, err));
    for (uint32_t i = 0; i < s->n_kind; i++)
        CD_TRY(cd_shard_planner_make_options(s, &s->kind[i], err));
    for (uint32_t op = 0; op < s->net->n_op; op++) CD_TRY(fill_node(s, op, err));
    return CDMPP_OK;
}

/* ---- edges ---- */
static bool new_edge(const cd_shard_planner *s, uint32_t op, uint32_t arg) {
    const cd_shard_net_op *o = &s->net->op[op];
    const uint32_t from = s->net->tensor[o->arg[arg]].from;
    if (from == CD_SHARD_NET_OUTSIDE || from == op) return false;
    for (uint32_t i = 0; i < arg; i++)
        if (s->net->tensor[o->arg[i]].from == from) return false;
    return true;
}

static cdmpp_status fill_edge(cd_shard_planner *s, cd_shard_select_edge *e, cdmpp_err *err) {
    const cd_shard_planner_node *a = &s->node[e->from], *b = &s->node[e->to];
    const cd_shard_planner_kind *ka = &s->kind[a->kind], *kb = &s->kind[b->kind];
    double *t = cd_arena_alloc(&s->arena, (size_t)a->n_some * b->n_some, sizeof *t);
    if (!t) return CD_FAIL(err, ENOMEM, "exchanges of %s", s->net->op[e->to].name);
    for (uint32_t i = 0; i < a->n_some; i++)
        for (uint32_t j = 0; j < b->n_some; j++)
            t[(size_t)i * b->n_some + j] = cd_shard_planner_exchange(
                s, e->from, &ka->option[a->some[i]], e->to, &kb->option[b->some[j]], NULL);
    e->seconds = t;
    return CDMPP_OK;
}

static cdmpp_status find_edges(cd_shard_planner *s, cdmpp_err *err) {
    size_t n = 0;
    for (uint32_t op = 0; op < s->net->n_op; op++) n += s->net->op[op].n_arg;
    if (n > UINT32_MAX / 2 || !(s->edge = CD_NEWN(&s->arena, cd_shard_select_edge, n + 1)))
        return CD_FAIL(err, ENOMEM, "edges");
    for (uint32_t op = 0; op < s->net->n_op; op++)
        for (uint32_t a = 0; a < s->net->op[op].n_arg; a++)
            if (new_edge(s, op, a))
                s->edge[s->n_edge++] =
                    (cd_shard_select_edge){s->net->tensor[s->net->op[op].arg[a]].from, op, NULL};
    return CDMPP_OK;
}

cdmpp_status cd_shard_planner_edges(cd_shard_planner *s, cdmpp_err *err) {
    if (!s->edge) CD_TRY(find_edges(s, err));
    for (uint32_t i = 0; i < s->n_edge; i++) CD_TRY(fill_edge(s, &s->edge[i], err));
    return CDMPP_OK;
}
