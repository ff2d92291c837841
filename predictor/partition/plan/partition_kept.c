/* What a run says of the plan: which candidate measured best and is kept, whether others disturbed
 * the measurement, and both in the verdict. */
#include <math.h>
#include <string.h>

#include "base/text/text.h"
#include "predictor/partition/plan/partition_internal.h"

bool cd_partition_disturbed(const cd_partition *p) {
    return p->run.done && p->run.others > CD_HOST_LOAD_LIMIT;
}

bool cd_partition_ran_another(const cd_partition *p) {
    return p->run.done && p->run.now.replans > 0;
}

/* What is nearer than medians are known to is no difference. */
uint32_t cd_partition_best_measured(const cd_partition *p) {
    uint32_t best = UINT32_MAX;
    double least = (1 - CD_PLAN_RUN_KNOWN) * p->plan->measured_s;
    for (uint32_t k = 0; k < p->n_base; k++)
        if (p->base[k] && p->plan->base[k].measured_s < least)
            least = p->plan->base[k].measured_s, best = k;
    return best;
}

/* One more row behind the plan's baselines. Names are copied: each plan has its own memory. */
static cdmpp_status rows(const cd_shard_plan *was, cd_shard_plan *out, cdmpp_err *err) {
    cd_shard_plan_baseline *b =
        CD_NEWN(&out->arena, cd_shard_plan_baseline, (size_t)was->n_base + 1);
    if (!b) return CD_FAIL(err, ENOMEM, "baselines");
    for (uint32_t k = 0; k <= was->n_base; k++) {
        if (k < was->n_base) b[k] = was->base[k];
        else b[k] = (cd_shard_plan_baseline){"as predicted", was->predicted_s, was->measured_s};
        b[k].name = cd_str_dup(&out->arena, (cd_str){b[k].name, strlen(b[k].name)});
        if (!b[k].name) return CD_FAIL(err, ENOMEM, "baselines");
    }
    out->base = b;
    out->n_base = was->n_base + 1;
    return CDMPP_OK;
}

cdmpp_status cd_partition_keep(cd_partition *p, uint32_t k, cdmpp_err *err) {
    cd_shard_plan *was = p->plan, *best = p->base[k];
    cd_shard_plan **base =
        cd_mem_realloc(p->base, p->n_base * sizeof *base, ((size_t)p->n_base + 1) * sizeof *base);
    if (!base) return CD_FAIL(err, ENOMEM, "baselines");
    p->base = base;
    CD_TRY(rows(was, best, err));
    base[k] = NULL; /* the plan itself, from here on */
    base[p->n_base++] = was;
    p->plan = best;
    p->run.kept = best->base[k].name;
    best->measured_s = best->base[k].measured_s;
    best->measured_gain = cd_partition_alone_s(p, true) / best->measured_s;
    return CDMPP_OK;
}

static void put_kept(const cd_partition *p, const cd_shard_plan *was, cd_buf *b) {
    cd_buf_putf(b, "kept %s, which measured best: ", p->run.kept);
    cd_units_put_seconds(b, p->plan->measured_s);
    cd_buf_puts(b, " against ");
    cd_units_put_seconds(b, was->measured_s);
    cd_buf_putf(b, " of the plan as predicted (%s)", was->verdict);
}

cdmpp_status cd_partition_verdict(cd_partition *p, cdmpp_err *err) {
    cd_buf b = {0};
    p->plan->others = p->run.others;
    if (p->run.kept) put_kept(p, p->base[p->n_base - 1], &b);
    else cd_buf_puts(&b, p->plan->verdict ? p->plan->verdict : "");
    if (cd_partition_disturbed(p))
        cd_buf_putf(
            &b, "; the measurement was disturbed: others used %.0f %% of the processors meanwhile",
            100 * p->run.others);
    p->plan->verdict = b.oom ? NULL : cd_str_dup(&p->plan->arena, (cd_str){b.p ? b.p : "", b.n});
    cd_buf_free(&b);
    return p->plan->verdict ? CDMPP_OK : CD_FAIL(err, ENOMEM, "a verdict");
}
