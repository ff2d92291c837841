/* The plan: made by cd_shard_plan_make, or read from a file and compared with the network and the
 * devices. */
#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/partition/plan/partition_internal.h"

bool cd_partition_is_alone(const cd_partition *p, const cd_shard_plan_baseline *b) {
    return cd_machine_find(&p->machine, b->name) != UINT32_MAX;
}

double cd_partition_alone_s(const cd_partition *p, bool measured) {
    double best = NAN;
    for (uint32_t k = 0; k < p->plan->n_base; k++) {
        const cd_shard_plan_baseline *b = &p->plan->base[k];
        const double v = measured ? b->measured_s : b->predicted_s;
        if (cd_partition_is_alone(p, b) && isfinite(v) && !(v >= best)) best = v;
    }
    return best;
}

double cd_partition_best_s(const cd_shard_plan *plan, const cd_shard_plan_op *op,
                           uint32_t *device) {
    double best = INFINITY;
    *device = 0;
    for (uint32_t d = 0; d < plan->n_device; d++)
        if (op->alone_s[d] < best) best = op->alone_s[d], *device = d;
    return best;
}

/* ---- a plan of a file ---- */
static cdmpp_status same_devices(const cd_partition *p, const cd_shard_plan *plan, cdmpp_err *err) {
    const cd_machine *m = &p->machine;
    cd_buf want = {0}, have = {0};
    bool same = plan->n_device == m->n;
    for (uint32_t k = 0; k < m->n && same; k++) same = !strcmp(plan->device[k], m->device[k].name);
    if (same) return CDMPP_OK;
    for (uint32_t k = 0; k < plan->n_device; k++)
        cd_buf_putf(&want, "%s%s", k ? "," : "", plan->device[k]);
    for (uint32_t k = 0; k < m->n; k++) cd_buf_putf(&have, "%s%s", k ? "," : "", m->device[k].name);
    const char *of = want.p ? want.p : "";
    const cdmpp_status st = CD_FAIL(
        err, ESCHEMA, "a plan for the devices %.200s, and there are %.200s: add --devices %.200s%s",
        of, have.p ? have.p : "", of,
        p->o->machine ? "" : " or the --machine FILE that the plan was made with");
    cd_buf_free(&want);
    cd_buf_free(&have);
    return st;
}

static cdmpp_status given(cd_partition *p, cdmpp_err *err) {
    cdmpp_status st = same_devices(p, p->plan, err);
    if (!st) st = cd_shard_plan_fits(p->plan, &p->net, err);
    if (!st) cd_partition_say_again(p);
    return cd_err_at(err, st, p->o->plan, 0);
}

/* ---- one that is made ---- */
cdmpp_status cd_partition_save_plan(const cd_partition *p, const char *path, cdmpp_err *err) {
    cd_buf b = {0};
    cd_shard_plan_write(p->plan, &b);
    cdmpp_status st = CDMPP_OK;
    if (b.oom) st = CD_FAIL(err, ENOMEM, "a plan of %u operators", p->plan->n_op);
    else st = cd_file_write(path, b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}

cdmpp_status cd_partition_annotate(const cd_partition *p, const char *path, cdmpp_err *err) {
    cd_buf b = {0};
    if (!cd_onnx_is_model(p->o->network))
        return CD_FAIL(err, EUSAGE, "--annotate: %s is no ONNX file", p->o->network);
    cd_shard_plan_write(p->plan, &b);
    cdmpp_status st;
    if (b.oom) st = CD_FAIL(err, ENOMEM, "a plan of %u operators", p->plan->n_op);
    else st = cd_onnx_metadata_write(p->o->network, path, CD_PARTITION_PLAN_KEY, b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}

/* Whether any operator has the dimension `name`, of n letters. */
static bool known(const char *const *dim, uint32_t n_dim, const char *name, size_t n) {
    for (uint32_t k = 0; k < n_dim; k++)
        if (strlen(dim[k]) == n && !strncmp(dim[k], name, n)) return true;
    return false;
}

/* A dimension that this network does not have is a warning, because scripts use one list for many
 * networks. A list of which it has none is an error. */
static cdmpp_status dims(cd_partition *p, cdmpp_err *err) {
    const char *const *dim;
    uint32_t n, found = 0;
    cd_buf all = {0};
    CD_TRY(cd_shard_net_dims(&p->net, &p->arena, &dim, &n, err));
    for (uint32_t k = 0; k < n; k++) cd_buf_putf(&all, "%s%s", k ? " " : "", dim[k]);
    const char *there = all.p ? all.p : "none";
    for (const char *at = p->o->dims; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        found += known(dim, n, at, strcspn(at, ","));
    for (const char *at = p->o->dims; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (found && !known(dim, n, at, strcspn(at, ",")))
            cd_log_put(p->o->log, CD_LOG_WARNING,
                       "--dims: no operator of %s can be split over '%.*s'; there are %s",
                       p->net.name, (int)strcspn(at, ","), at, there);
    const cdmpp_status st =
        found ? CDMPP_OK
              : CD_FAIL(err, EUSAGE,
                        "--dims: no operator of %s can be split over '%.40s'; there are %s",
                        p->net.name, p->o->dims, there);
    cd_buf_free(&all);
    return st;
}

/* What the plan is asked for; NaN stays NaN: cd_shard_plan_make's defaults. */
static cd_shard_plan_options plan_options(cd_partition *p) {
    const cd_partition_options *o = p->o;
    return (cd_shard_plan_options){.net = &p->net,
                                   .machine = &p->machine,
                                   .time = cd_shard_cost_time,
                                   .steady = CD_SHARD_COST_STEADY,
                                   .prepare = cd_shard_cost_prepare,
                                   .why = cd_shard_cost_why,
                                   .ctx = p->cost,
                                   .granules = (uint32_t)o->granules,
                                   .margin = o->margin,
                                   .least_s = o->min_us * 1e-6,
                                   .cover = o->cover,
                                   .fixed_share = o->fixed_share,
                                   .dims = o->dims,
                                   .split = !o->no_split};
}

static bool may(const cd_shard_net_op *o, uint32_t d) {
    return (!o->allowed || o->allowed >> d & 1) && (o->pin == UINT32_MAX || o->pin == d);
}

/* Operators that a device may run and for which it has no time: its own row has none then, and
 * nobody should think that it cannot. */
static void say_unknown(const cd_partition *p) {
    for (uint32_t d = 0; d < p->machine.n; d++) {
        uint32_t n = 0, first = 0;
        for (uint32_t k = p->net.n_op; k-- > 0;)
            if (may(&p->net.op[k], d) && isinf(p->plan->op[k].alone_s[d])) n++, first = k;
        const char *why = n ? cd_shard_cost_why(p->cost, first, d, NULL) : NULL;
        if (n)
            cd_log_put(p->o->log, CD_LOG_WARNING,
                       "%u of %u operators have no time on %s, the first is %.60s (%.60s)%s%s", n,
                       p->net.n_op, p->machine.device[d].name, p->net.op[first].name,
                       p->net.op[first].type, why ? ": " : "", why ? why : "");
    }
}

cdmpp_status cd_partition_make(cd_partition *p, cdmpp_err *err) {
    const cd_partition_options *o = p->o;
    size_t failed = 0;
    CD_TRY(cd_partition_costs(p, err));
    p->how = plan_options(p);
    if (o->plan) return given(p, err);
    if (o->dims && o->dims[0]) CD_TRY(dims(p, err));
    CD_TRY(cd_shard_plan_make(&p->how, &p->plan, &p->base, err));
    CD_TRY(cd_partition_unlike(p, err));
    CD_TRY(cd_partition_interval(p, p->plan, err));
    p->n_base = p->plan->n_base;
    p->plan->source = p->source;
    for (uint32_t k = 0; k < p->n_base; k++)
        if (p->base[k]) p->base[k]->source = p->source; /* it may become the plan */
    const size_t asked = cd_shard_cost_asked(p->cost, &failed);
    say_unknown(p);
    if (p->plan->no_interval)
        cd_log_put(o->log, CD_LOG_WARNING, "the plan has no interval: %s", p->plan->no_interval);
    cd_log_put(o->log, CD_LOG_DEBUG, "%zu parts were scored, %zu of them have no time", asked,
               failed);
    return CDMPP_OK;
}
