/* The pieces of a plan: the shards of each operator that is split, the join of its partial sums, or
 * the whole operator. Each has a definition and the boxes of its arguments. */

#include "predictor/partition/run/plan_run_internal.h"

static cdmpp_status find_way(const cd_shard_net_op *o, const cd_shard_plan_op *p, cd_arena *a,
                             cd_te_shard_axis *out, cdmpp_err *err) {
    cd_te_shard_axis *w;
    uint32_t n;
    CD_TRY(cd_te_shard_axes(o->dag, a, &w, &n, err));
    for (uint32_t k = 0; k < n; k++)
        if (w[k].reduce == p->reduce && w[k].op == p->way_op && w[k].axis == p->axis)
            return *out = w[k], CDMPP_OK;
    return CD_FAIL(err, EINVALID, "operator %.80s cannot be split over %.20s", o->name, p->dim);
}

/* Shares of all of the extent, in order, none empty. */
static cdmpp_status check_shares(const cd_shard_net_op *o, const cd_shard_plan_op *p,
                                 const cd_te_shard_axis *w, cdmpp_err *err) {
    int64_t at = 0;
    for (uint32_t k = 0; k < p->n_part; at = p->part[k++].hi)
        if (p->part[k].lo != at || p->part[k].hi <= at)
            return CD_FAIL(err, EINVALID, "operator %.80s: part %u is %lld to %lld, from %lld on",
                           o->name, k, (long long)p->part[k].lo, (long long)p->part[k].hi,
                           (long long)at);
    if (at != w->extent)
        return CD_FAIL(err, EINVALID, "operator %.80s: parts end at %lld of %lld", o->name,
                       (long long)at, (long long)w->extent);
    return CDMPP_OK;
}

/* An operator that is not split keeps its own definition; its boxes are whole tensors. */
static cdmpp_status whole(cd_plan_exec *m, const cd_shard_net_op *o, cd_plan_exec_piece *p,
                          cdmpp_err *err) {
    uint32_t *of = CD_NEWN(&m->arena, uint32_t, o->n_arg);
    cd_box *box = CD_NEWN(&m->arena, cd_box, o->n_arg);
    if (!of || !box) return CD_FAIL(err, ENOMEM, "operator");
    for (uint32_t k = 0; k < o->n_arg; k++) {
        const cd_te_op *x = &o->dag->op[o->dag->tensor_op[o->dag->arg[k]]];
        if (x->rank > CD_BOX_RANK)
            return CD_FAIL(err, EUNSUPPORTED, "operator %.80s: argument %u has %u dimensions",
                           o->name, k, x->rank);
        of[k] = k;
        box[k] = cd_box_whole(x->rank, x->shape);
    }
    p->dag = o->dag;
    p->key = o->key;
    p->n_arg = o->n_arg;
    p->of = of;
    p->box = box;
    return CDMPP_OK;
}

static void take(cd_plan_exec_piece *p, cd_te_shard *t) {
    p->own = t;
    p->dag = t->dag;
    p->key = t->workload_key;
    p->n_arg = t->n_arg;
    p->of = t->of;
    p->box = t->box;
}

/* n_piece grows before anything can fail, so that cd_plan_exec_free also frees the shards made so
 * far. */
static cdmpp_status make_op(cd_plan_exec *m, const cd_shard_net_op *o, uint32_t k, cdmpp_err *err) {
    const cd_shard_plan_op *p = &m->plan->op[k];
    const uint32_t n = cd_plan_exec_n_piece(p);
    cd_plan_exec_piece *piece = &m->piece[m->first[k]];
    cd_te_shard_axis w;
    for (uint32_t i = 0; i < n; i++)
        piece[i] = (cd_plan_exec_piece){
            .op = k, .part = i, .device = i < p->n_part ? p->part[i].device : p->join};
    m->n_piece += n;
    if (p->n_part == 1) return whole(m, o, piece, err);
    CD_TRY(find_way(o, p, &m->arena, &w, err));
    CD_TRY(check_shares(o, p, &w, err));
    for (uint32_t i = 0; i < n; i++) {
        cd_te_shard *t = NULL;
        if (i < p->n_part)
            CD_TRY(cd_err_key(
                err, cd_te_shard_make(o->dag, &w, p->part[i].lo, p->part[i].hi, &t, err), o->name));
        else CD_TRY(cd_err_key(err, cd_te_shard_join(o->dag, &w, p->n_part, &t, err), o->name));
        take(&piece[i], t);
    }
    return CDMPP_OK;
}

cdmpp_status cd_plan_exec_pieces(cd_plan_exec *m, const cd_plan_run_options *a, cdmpp_err *err) {
    const uint32_t n = m->plan->n_op;
    uint32_t all = 0;
    m->first = CD_NEWN(&m->arena, uint32_t, n + 1);
    for (uint32_t k = 0; m->first && k < n; k++) {
        all += cd_plan_exec_n_piece(&m->plan->op[k]);
        m->first[k + 1] = all;
    }
    m->piece = CD_NEWN(&m->arena, cd_plan_exec_piece, all + 1);
    if (!m->first || !m->piece) return CD_FAIL(err, ENOMEM, "%u operators", n);
    for (uint32_t k = 0; k < n; k++) CD_TRY(make_op(m, &a->net->op[k], k, err));
    return CDMPP_OK;
}
