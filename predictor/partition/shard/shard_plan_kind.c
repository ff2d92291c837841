/* Groups equal operators into kinds. A network repeats its blocks, and questions to the cost model
 * take most of the time, so each kind is asked for once. */
#include <math.h>
#include <string.h>

#include "base/core/core.h"
#include "predictor/partition/shard/shard_plan_internal.h"

bool cd_shard_planner_allows(const cd_shard_planner_kind *k, uint32_t device) {
    return k->allowed >> device & 1;
}

cdmpp_status cd_shard_planner_query(const cd_shard_planner *s, uint32_t op, uint32_t device,
                                    const cd_te_shard *part, const char *what,
                                    cd_shard_plan_estimate *out, cdmpp_err *err) {
    const char *name = s->net->op[op].name;
    *out = (cd_shard_plan_estimate){(double)NAN, 0};
    CD_TRY(cd_err_key(err, s->ask->time(s->ask->ctx, op, device, part, out, err), name));
    if (!(out->seconds >= 0))
        return CD_FAIL(err, ERANGE, "operator %s, %s on %s: %g seconds", name, what,
                       s->m->device[device].name, out->seconds);
    if (!(out->memory_share >= 0 && out->memory_share <= 1))
        return CD_FAIL(err, ERANGE, "operator %s, %s on %s: memory share %g, expected 0 to 1", name,
                       what, s->m->device[device].name, out->memory_share);
    return CDMPP_OK;
}

/* Only devices of the same memory slow each other: by the bandwidth that they use together, and by
 * taking turns where they share a core. The launch is not slowed. */
void cd_shard_planner_concurrent(const cd_shard_planner *s, uint32_t n, const uint32_t *device,
                                 const cd_shard_plan_estimate *a, double *seconds) {
    for (uint32_t i = 0; i < n; i++) {
        const cd_machine_device *d = &s->m->device[device[i]];
        double sum = 0;
        uint32_t others = 0;
        bool shared = false;
        for (uint32_t j = 0; j < n; j++) {
            const cd_machine_device *e = &s->m->device[device[j]];
            if (e->memory != d->memory) continue;
            sum += a[j].memory_share;
            others += j != i;
            shared = shared || (j != i && d->core >= 0 && d->core == e->core);
        }
        seconds[i] =
            d->launch_s + a[i].seconds * cd_contention_slow(&s->contention, a[i].memory_share, sum,
                                                            others, shared);
    }
}

/* ---- which operators are alike ---- */
static uint32_t allowed_of(const cd_shard_planner *s, uint32_t op) {
    const cd_shard_net_op *o = &s->net->op[op];
    const uint32_t all = (1U << s->n_device) - 1;
    if (o->pin != UINT32_MAX) return (o->allowed ? o->allowed : all) & 1U << o->pin;
    return (o->allowed ? o->allowed : all) & all;
}

static bool alike(const cd_shard_planner *s, const cd_shard_planner_kind *k, uint32_t op,
                  uint32_t allowed) {
    const cd_shard_net_op *a = &s->net->op[k->op], *b = &s->net->op[op];
    if (k->allowed != allowed || !a->dag || !b->dag ||
        (a->pin == UINT32_MAX) != (b->pin == UINT32_MAX))
        return false;
    return a->key && b->key ? !strcmp(a->key, b->key) : a->dag == b->dag;
}

static uint64_t hash_of(const cd_shard_net_op *o) {
    cd_hash h = cd_hash_start();
    if (o->key) cd_hash_add(&h, o->key, strlen(o->key));
    else cd_hash_add(&h, &o->dag, sizeof(void *));
    return h.a;
}

static cdmpp_status sort_kinds(cd_shard_planner *s, cdmpp_err *err) {
    uint32_t size = 16;
    while (size < 2 * s->net->n_op) size *= 2;
    uint32_t *slot = CD_NEWN(&s->arena, uint32_t, size); /* kind + 1 */
    if (!slot) return CD_FAIL(err, ENOMEM, "%u operators", s->net->n_op);
    for (uint32_t op = 0; op < s->net->n_op; op++) {
        const uint32_t allowed = allowed_of(s, op);
        uint32_t at = (uint32_t)hash_of(&s->net->op[op]) & (size - 1);
        while (slot[at] && !alike(s, &s->kind[slot[at] - 1], op, allowed))
            at = (at + 1) & (size - 1);
        if (!slot[at]) {
            s->kind[s->n_kind] = (cd_shard_planner_kind){.op = op,
                                                         .allowed = allowed,
                                                         .free = s->net->op[op].dag &&
                                                                 s->net->op[op].pin == UINT32_MAX};
            slot[at] = ++s->n_kind;
        }
        s->node[op].kind = slot[at] - 1;
    }
    return CDMPP_OK;
}

/* ---- split axes ---- */
static bool in_list(const char *list, const char *name) {
    const size_t n = strlen(name);
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (!strncmp(p, name, n) && (p[n] == ',' || !p[n])) return true;
    return false;
}

static cdmpp_status find_ways(cd_shard_planner *s, cd_shard_planner_kind *k, cdmpp_err *err) {
    cd_te_shard_axis *way;
    uint32_t n;
    if (!s->ask->split || !k->free || !(k->allowed & (k->allowed - 1))) return CDMPP_OK;
    CD_TRY(cd_err_key(err, cd_te_shard_axes(s->net->op[k->op].dag, &s->arena, &way, &n, err),
                      s->net->op[k->op].name));
    k->way = way;
    for (uint32_t i = 0; i < n; i++)
        if (way[i].extent > 1 &&
            (!s->ask->dims || !s->ask->dims[0] || in_list(s->ask->dims, way[i].name)))
            way[k->n_way++] = way[i];
    return CDMPP_OK;
}

/* together: the time if all devices worked at their full rate without any exchange, 1 / (sum of 1 /
 * time). No split is faster unless shards are predicted below their proportion of the whole;
 * cd_shard_planner_kind.least counts those too. A device that cannot run it (infinity) adds no
 * rate. */
static cdmpp_status alone(cd_shard_planner *s, cd_shard_planner_kind *k, cdmpp_err *err) {
    double *t = CD_NEWN(&s->arena, double, s->n_device), rate = 0;
    if (!t) return CD_FAIL(err, ENOMEM, "%u devices", s->n_device);
    k->alone = t, k->best = k->together = (double)INFINITY, k->fastest = CD_SHARD_PLANNER_NONE;
    for (uint32_t d = 0; d < s->n_device; d++) {
        cd_shard_plan_estimate a;
        t[d] = (double)INFINITY;
        if (!cd_shard_planner_allows(k, d)) continue;
        CD_TRY(cd_shard_planner_query(s, k->op, d, NULL, "all of it", &a, err));
        cd_shard_planner_concurrent(s, 1, &d, &a, &t[d]);
        if (t[d] < k->best) k->best = t[d], k->fastest = d;
        rate += 1 / t[d];
    }
    k->together = k->n_way ? 1 / rate : k->best;
    return CDMPP_OK;
}

static cdmpp_status prepare_wholes(const cd_shard_planner *s, cdmpp_err *err) {
    size_t n = 0;
    if (!s->ask->prepare || !s->n_kind) return CDMPP_OK;
    cd_shard_plan_query *w = cd_mem_zalloc((size_t)s->n_kind * s->n_device, sizeof *w);
    if (!w) return CD_FAIL(err, ENOMEM, "%u kinds of operators", s->n_kind);
    for (uint32_t i = 0; i < s->n_kind; i++)
        for (uint32_t d = 0; d < s->n_device; d++)
            if (cd_shard_planner_allows(&s->kind[i], d))
                w[n++] = (cd_shard_plan_query){s->kind[i].op, d, NULL};
    const cdmpp_status st = s->ask->prepare(s->ask->ctx, w, n, err);
    cd_mem_free(w);
    return st;
}

cdmpp_status cd_shard_planner_kinds(cd_shard_planner *s, cdmpp_err *err) {
    CD_TRY(sort_kinds(s, err));
    CD_TRY(prepare_wholes(s, err));
    for (uint32_t i = 0; i < s->n_kind; i++) {
        CD_TRY(find_ways(s, &s->kind[i], err));
        CD_TRY(alone(s, &s->kind[i], err));
    }
    double rate[CD_MACHINE_DEVICES] = {0}, sum = 0;
    for (uint32_t k = 0; k < s->net->n_op; k++)
        for (uint32_t d = 0; d < s->n_device; d++) rate[d] += s->kind[s->node[k].kind].alone[d];
    for (uint32_t d = 0; d < s->n_device; d++)
        sum += rate[d] = rate[d] > 0 && isfinite(rate[d]) ? 1 / rate[d] : 0;
    for (uint32_t d = 0; d < s->n_device; d++)
        s->ratio[d] = sum > 0 ? rate[d] / sum : 1.0 / s->n_device;
    return CDMPP_OK;
}
