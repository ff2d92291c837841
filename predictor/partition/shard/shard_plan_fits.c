/* Checks that a plan from a file belongs to a network, and lists the axes over which a network can
 * be split at all. */
#include <string.h>

#include "predictor/partition/shard/shard_plan.h"

static const char *text(const char *s) { return s ? s : ""; }

/* ---- a plan of a file ---- */

/* A split must be over an axis that the operator has, with the same name and number, and the parts
 * must cover all of it. The replay and the printed text rely on this. */
static cdmpp_status way_fits(const cd_shard_plan_op *p, const cd_shard_net_op *o, cd_arena *a,
                             cdmpp_err *err) {
    cd_te_shard_axis *w;
    uint32_t n, at = 0;
    if (!p->dim || !p->dim[0]) return CDMPP_OK;
    if (!o->dag) return CD_FAIL(err, ESCHEMA, "split over %.20s, and nothing defines it", p->dim);
    CD_TRY(cd_te_shard_axes(o->dag, a, &w, &n, err));
    while (at < n && (w[at].reduce != p->reduce || w[at].op != p->way_op || w[at].axis != p->axis ||
                      strcmp(w[at].name, p->dim) != 0))
        at++;
    if (at == n)
        return CD_FAIL(err, ESCHEMA,
                       "cannot be split over %.20s, %s %u of operator %u of its definition", p->dim,
                       p->reduce ? "sum" : "axis", p->axis, p->way_op);
    const int64_t end = p->part[p->n_part - 1].hi;
    return end == w[at].extent ? CDMPP_OK
                               : CD_FAIL(err, ESCHEMA, "parts of %.20s end at %lld of %lld", p->dim,
                                         (long long)end, (long long)w[at].extent);
}

static cdmpp_status op_fits(const cd_shard_plan_op *p, const cd_shard_net_op *o, uint32_t k,
                            cd_arena *a, cdmpp_err *err) {
    if (strcmp(text(p->key), text(o->key)) != 0 || strcmp(text(p->name), text(o->name)) != 0)
        return CD_FAIL(err, ESCHEMA,
                       "a plan of another network, batch or size: operator %u is %.60s %.120s "
                       "there, %.60s %.120s here",
                       k, text(p->name), text(p->key), text(o->name), text(o->key));
    return cd_err_key(err, cd_err_key(err, way_fits(p, o, a, err), text(o->name)), "operators");
}

cdmpp_status cd_shard_plan_fits(const cd_shard_plan *p, const cd_shard_net *net, cdmpp_err *err) {
    cd_arena a = {0};
    cdmpp_status st = CDMPP_OK;
    if (p->n_op != net->n_op)
        return CD_FAIL(err, ESCHEMA, "a plan of another network: %.60s has %u operators, %.60s %u",
                       text(p->network), p->n_op, text(net->name), net->n_op);
    for (uint32_t k = 0; k < net->n_op && !st; k++) {
        cd_arena_reset(&a);
        st = op_fits(&p->op[k], &net->op[k], k, &a, err);
    }
    cd_arena_free(&a);
    for (uint32_t k = 0; k < p->n_copy && !st; k++)
        if (p->copy[k].tensor >= net->n_tensor)
            st = CD_FAIL(err, ESCHEMA, "copy %u of the plan is of tensor %u, and there are %u", k,
                         p->copy[k].tensor, net->n_tensor);
    return st;
}

/* ---- names ---- */

static bool has(const char *const *name, uint32_t n, const char *s) {
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(name[i], s)) return true;
    return false;
}

/* Axes with the same name count once. Only the list of pointers grows; an outgrown list stays in
 * the arena. */
cdmpp_status cd_shard_net_dims(const cd_shard_net *net, cd_arena *a, const char *const **out,
                               uint32_t *n, cdmpp_err *err) {
    const char **name = NULL;
    uint32_t cap = 0;
    *n = 0;
    for (uint32_t k = 0; k < net->n_op; k++) {
        cd_te_shard_axis *w;
        uint32_t n_way = 0;
        if (net->op[k].dag)
            CD_TRY(cd_err_key(err, cd_te_shard_axes(net->op[k].dag, a, &w, &n_way, err),
                              net->op[k].name));
        for (uint32_t i = 0; i < n_way; i++) {
            if (has(name, *n, w[i].name)) continue;
            if (CD_GROW_IN(a, name, *n, cap)) return CD_FAIL(err, ENOMEM, "%u dimensions", *n);
            name[(*n)++] = w[i].name;
        }
    }
    *out = name;
    return CDMPP_OK;
}
