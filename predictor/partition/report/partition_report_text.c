/* The report for people: what the plan gains beside the devices alone and the most that all devices
 * could give, then the details that were asked for. */
#include <math.h>
#include <string.h>

#include "predictor/partition/report/report_internal.h"

/* The ceiling bounds what is predicted; a measured gain has none (ceiling NaN). */
static void put_gain(cd_buf *b, double gain, double ceiling) {
    if (!isfinite(gain)) cd_buf_puts(b, isnan(ceiling) ? "      -" : "              -");
    else cd_buf_putf(b, "%6.3fx", gain);
    if (isfinite(gain) && !isnan(ceiling)) cd_buf_putf(b, " of %.3fx", ceiling);
}

static void put_seconds(cd_buf *b, double s) {
    cd_buf_puts(b, "  ");
    cd_units_put_seconds_wide(b, s);
}

/* ---- plans ---- */
static bool is_shown(const cd_partition *p, const cd_shard_plan_baseline *b) {
    return p->o->compare || p->o->plan || cd_partition_is_alone(p, b) ||
           (p->run.kept && b == &p->plan->base[p->plan->n_base - 1]);
}

static bool any_measured(const cd_partition *p) {
    bool any = p->plan->measured_s > 0;
    for (uint32_t k = 0; k < p->plan->n_base; k++) any |= p->plan->base[k].measured_s > 0;
    return any;
}

/* Gains are over the best device alone, predicted over predicted and measured over measured. */
static void put_row(const cd_partition *p, const char *name, double predicted, double measured,
                    cd_buf *b) {
    const double best = cd_partition_alone_s(p, false), best_here = cd_partition_alone_s(p, true);
    cd_buf_putf(b, "%-14.14s", name);
    put_seconds(b, predicted);
    cd_buf_puts(b, "  ");
    put_gain(b, isfinite(predicted) ? best / predicted : (double)NAN, p->plan->ceiling);
    if (any_measured(p)) {
        put_seconds(b, measured);
        cd_buf_puts(b, "  ");
        put_gain(b, best_here / measured, (double)NAN);
        if (isfinite(measured) && isfinite(predicted))
            cd_buf_putf(b, "  %+6.1f %%", 100 * (predicted / measured - 1));
    }
    cd_buf_puts(b, "\n");
}

static void put_plans(const cd_partition *p, cd_buf *b) {
    const cd_shard_plan *n = p->plan;
    cd_buf_putf(b, "%-14s  predicted   gain of at most", "plan");
    if (any_measured(p)) cd_buf_puts(b, "   measured     gain     error");
    cd_buf_puts(b, "\n");
    for (uint32_t k = 0; k < n->n_base; k++)
        if (is_shown(p, &n->base[k]))
            put_row(p, n->base[k].name, n->base[k].predicted_s, n->base[k].measured_s, b);
    put_row(p, "the plan", n->predicted_s, n->measured_s, b);
}

/* Of the plan's predicted time, as cdmpp-replay gives it. */
static void put_interval(const cd_shard_plan *n, cd_buf *b) {
    if (n->no_interval || isnan(n->low_s)) {
        cd_buf_putf(b, "no interval: %s\n", n->no_interval ? n->no_interval : "nobody made one");
        return;
    }
    cd_buf_putf(b, "%.0f %% interval of the plan's predicted time: ", 100 * CD_REPLAY_LEVEL);
    cd_units_put_seconds(b, n->low_s);
    cd_buf_puts(b, " to ");
    cd_units_put_seconds(b, n->high_s);
    cd_buf_puts(b, "\n");
}

/* ---- around them ---- */
static void put_head(const cd_partition *p, cd_buf *b) {
    const cd_shard_plan *n = p->plan;
    cd_buf_putf(b, "%s, batch %lld, on ", n->network ? n->network : "", (long long)n->batch);
    for (uint32_t k = 0; k < n->n_device; k++) {
        const cd_machine_device *d = &p->machine.device[k];
        cd_buf_putf(b, "%s%s", k ? " + " : "", d->name);
        /* it only stands for this machine */
        if (d->as && strcmp(d->as, d->name) != 0)
            cd_buf_putf(b, " (%s%s)", p->source[k].guessed ? "as " : "", d->as);
        if (d->times > 1) cd_buf_putf(b, " %u times as slow", d->times);
    }
    cd_buf_putf(b, "; %u operators", n->n_op);
    if (isfinite(n->rho)) cd_buf_putf(b, "; rho %.3g", n->rho);
    cd_buf_puts(b, "\n");
}

/* A copy of 0 bytes is a wait for another device of the same memory. */
static void put_copies(const cd_partition *p, cd_buf *b) {
    int64_t bytes[2] = {0};
    uint32_t copies = 0;
    double seconds = 0;
    for (uint32_t k = 0; k < p->plan->n_copy; k++) {
        const cd_shard_plan_copy *c = &p->plan->copy[k];
        bytes[p->machine.device[c->from].memory == p->machine.device[c->to].memory] += c->bytes;
        seconds += c->seconds;
        copies += c->bytes > 0;
    }
    if (!p->plan->n_copy) return;
    cd_buf_putf(b, "exchange: %u waits, %u copies, ", p->plan->n_copy - copies, copies);
    cd_units_put_bytes(b, (double)bytes[0]);
    cd_buf_puts(b, " between memories and ");
    cd_units_put_bytes(b, (double)bytes[1]);
    cd_buf_puts(b, " within one, ");
    cd_units_put_seconds_wide(b, seconds);
    cd_buf_puts(b, " in all\n");
}

static void put_placed(const cd_partition *p, cd_buf *b) {
    const cd_place_plan *n = &p->placed;
    cd_buf_puts(b, "whole operators placed: sum ");
    cd_units_put_seconds_wide(b, n->cost.sum_s);
    cd_buf_puts(b, ", makespan ");
    cd_units_put_seconds_wide(b, n->cost.makespan_s);
    cd_buf_putf(b, ", %u copies; %s%s\n", n->cost.n_copy, n->method ? n->method : "",
                n->exact ? ", none is better" : "");
    for (uint32_t d = 0; d < p->machine.n; d++) {
        uint32_t here = 0;
        for (uint32_t k = 0; k < p->net.n_op; k++) here += n->where[k] == d;
        cd_buf_putf(b, "%s%u on %s", d ? ", " : "  ", here, p->machine.device[d].name);
    }
    cd_buf_puts(b, "\n");
}

/* max_error is the largest difference over the largest value of a result; NaN: values were not
 * compared. */
static void put_run(const cd_partition *p, cd_buf *b) {
    const cd_plan_run_result *r = &p->run.now;
    cd_buf_puts(b, "run here");
    for (size_t k = 0; k < p->o->inject.n; k++)
        cd_buf_putf(b, "%s%.40s", k ? ", " : " with --inject ", p->o->inject.v[k]);
    cd_buf_putf(b, "%s: %u passes, ",
                cd_partition_ran_another(p) ? ", by another plan than this" : "", r->passes);
    cd_units_put_seconds_wide(b, r->median_s);
    cd_buf_puts(b, " (");
    cd_units_put_seconds_wide(b, r->low_s);
    cd_buf_puts(b, " to ");
    cd_units_put_seconds_wide(b, r->high_s);
    cd_buf_puts(b, "); values: ");
    if (isnan(p->run.max_error)) cd_buf_puts(b, "not compared");
    else if (p->run.max_error == 0) cd_buf_puts(b, "equal");
    else cd_buf_putf(b, "%.1e of the largest off", p->run.max_error);
    if (r->failures || r->replans)
        cd_buf_putf(b, "; %u failures, planned again %u times", r->failures, r->replans);
    if (p->run.others >= 0)
        cd_buf_putf(b, "; others used %.0f %% of the processors", 100 * p->run.others);
    cd_buf_puts(b, "\n");
}

/* The answer comes first, details later: the first screen has the gain and the verdict. */
void cd_partition_report_text(const cd_partition *p, bool explain, cd_buf *b) {
    put_head(p, b);
    put_plans(p, b);
    put_interval(p->plan, b);
    cd_buf_putf(b, "%s\n", p->plan->verdict ? p->plan->verdict : "");
    put_copies(p, b);
    if (p->has_placed) put_placed(p, b);
    if (p->run.done) put_run(p, b);
    cd_partition_report_ops(p, explain, b);
    if (p->o->stages >= 0) cd_partition_report_stages(p, explain, b);
    if (!p->o->rules) return;
    cd_buf_puts(b, "\nwhole operators under the rules\n");
    if (p->rules.placed) {
        cd_buf_puts(b, "\n");
        cd_offload_plan_text(&p->rules.plan, b);
    }
}
