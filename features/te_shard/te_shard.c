/* Shards of a definition, and the join of partial sums. Each is planned backward, from the piece of
 * the result to the boxes that it needs, and then built forward, operator by operator. */
#include "features/te_shard/te_shard_internal.h"

static cdmpp_status find_result(const cd_te_dag *whole, uint32_t *result, cdmpp_err *err) {
    *result = cd_te_shard_result(whole);
    if (*result == UINT32_MAX)
        return CD_FAIL(err, EUNSUPPORTED, "a definition of several results has no parts");
    return CDMPP_OK;
}

static cdmpp_status check_range(int64_t extent, int64_t lo, int64_t hi, cdmpp_err *err) {
    if (lo >= 0 && lo < hi && hi <= extent) return CDMPP_OK;
    return CD_FAIL(err, ERANGE, "expected a part of 0 .. %lld, found %lld .. %lld",
                   (long long)extent, (long long)lo, (long long)hi);
}

/* A piece of the result. */
static cdmpp_status plan_axis(cd_te_shard_plan *p, const cd_te_shard_axis *way, int64_t lo,
                              int64_t hi) {
    uint32_t result;
    cd_te_shard_footprint *all = CD_NEW(p->a, cd_te_shard_footprint);
    if (!all) return CD_FAIL(p->err, ENOMEM, "parts of an operator");
    CD_TRY(find_result(p->whole, &result, p->err));
    const cd_te_op *op = &p->whole->op[result];
    if (way->op != result || way->axis >= op->rank || op->rank > CD_BOX_RANK)
        return CD_FAIL(p->err, EUNSUPPORTED, "no axis %u of \"%s\"", way->axis, op->name);
    CD_TRY(check_range(op->shape[way->axis], lo, hi, p->err));
    CD_TRY(cd_te_shard_footprint_whole(p->whole, p->a, result, UINT32_MAX, all, p->err));
    cd_box box = cd_box_whole(op->rank, op->shape);
    box.lo[way->axis] = lo;
    box.n[way->axis] = hi - lo;
    p->need = (cd_te_shard_footprint){.dag = p->whole,
                                      .a = p->a,
                                      .whole = all,
                                      .given = UINT32_MAX,
                                      .cut_op = UINT32_MAX,
                                      .cut_raxis = UINT32_MAX,
                                      .err = p->err};
    return cd_te_shard_footprint_grow(&p->need, result, &box);
}

static cdmpp_status check_sum(const cd_te_shard_plan *p, const cd_te_shard_axis *way,
                              uint32_t *result) {
    CD_TRY(find_result(p->whole, result, p->err));
    if (!way->reduce || !cd_te_shard_is_sum(p->whole, *result, way->op, way->axis))
        return CD_FAIL(p->err, EINVALID, "not a sum that can be cut");
    return CDMPP_OK;
}

/* A piece of the sum: all that is read and made up to it. */
static cdmpp_status plan_sum(cd_te_shard_plan *p, const cd_te_shard_axis *way, int64_t lo,
                             int64_t hi) {
    uint32_t result;
    cd_te_shard_footprint *all = CD_NEW(p->a, cd_te_shard_footprint);
    if (!all) return CD_FAIL(p->err, ENOMEM, "parts of an operator");
    CD_TRY(check_sum(p, way, &result));
    const cd_te_op *op = &p->whole->op[way->op];
    CD_TRY(check_range(op->raxis[way->axis].extent->u.i, lo, hi, p->err));
    CD_TRY(cd_te_shard_footprint_whole(p->whole, p->a, way->op, UINT32_MAX, all, p->err));
    p->need = (cd_te_shard_footprint){.dag = p->whole,
                                      .a = p->a,
                                      .whole = all,
                                      .given = UINT32_MAX,
                                      .cut_op = way->op,
                                      .cut_raxis = way->axis,
                                      .lo = lo,
                                      .hi = hi,
                                      .err = p->err};
    const cd_box box = cd_box_whole(op->rank, op->shape);
    return cd_te_shard_footprint_grow(&p->need, way->op, &box);
}

static cdmpp_status plan_join(cd_te_shard_plan *p, const cd_te_shard_axis *way) {
    uint32_t result;
    CD_TRY(check_sum(p, way, &result));
    return cd_te_shard_footprint_whole(p->whole, p->a, result, way->op, &p->need, p->err);
}

cdmpp_status cd_te_shard_make(const cd_te_dag *whole, const cd_te_shard_axis *way, int64_t lo,
                              int64_t hi, cd_te_shard **out, cdmpp_err *err) {
    cd_arena a = {0};
    cd_te_shard_plan p = {.whole = whole, .a = &a, .err = err};
    cdmpp_status st = way->reduce ? plan_sum(&p, way, lo, hi) : plan_axis(&p, way, lo, hi);
    if (!st) st = cd_te_shard_build(&p, out);
    cd_arena_free(&a);
    return cd_err_key(err, st, way->name ? way->name : "part");
}

cdmpp_status cd_te_shard_join(const cd_te_dag *whole, const cd_te_shard_axis *way, uint32_t n,
                              cd_te_shard **out, cdmpp_err *err) {
    cd_arena a = {0};
    cd_te_shard_plan p = {.whole = whole, .n_partial = n, .a = &a, .err = err};
    if (n < 2) return CD_FAIL(err, EINVALID, "%u partial sums are nothing to join", n);
    cdmpp_status st = plan_join(&p, way);
    if (!st) st = cd_te_shard_build(&p, out);
    cd_arena_free(&a);
    return cd_err_key(err, st, way->name ? way->name : "join");
}
