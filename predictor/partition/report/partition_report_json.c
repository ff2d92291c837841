/* JSON of cdmpp-partition. */
#include <math.h>
#include <string.h>

#include "predictor/partition/report/report_internal.h"

static void put_bases(const cd_partition *p, cd_buf *b) {
    const cd_shard_plan *n = p->plan;
    const double best = cd_partition_alone_s(p, false), best_here = cd_partition_alone_s(p, true);
    cd_buf_puts(b, ",\"baselines\":[");
    for (uint32_t k = 0; k < n->n_base; k++) {
        const cd_shard_plan_baseline *x = &n->base[k];
        cd_buf_puts(b, k ? ",{" : "{");
        cd_partition_put_text(b, "name", x->name);
        cd_partition_put(b, "predicted_s", x->predicted_s);
        cd_partition_put(b, "measured_s", x->measured_s);
        cd_partition_put(b, "predicted_gain", best / x->predicted_s);
        cd_partition_put(b, "measured_gain", best_here / x->measured_s);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]");
}

static void put_devices(const cd_partition *p, cd_buf *b) {
    cd_buf_puts(b, ",\"devices\":[");
    for (uint32_t k = 0; k < p->machine.n; k++) {
        const cd_machine_device *d = &p->machine.device[k];
        cd_buf_puts(b, k ? ",{" : "{");
        cd_partition_put_text(b, "name", d->name);
        cd_partition_put_text(b, "kind", d->kind);
        cd_partition_put_text(b, "as", d->as);
        cd_partition_put(b, "times", d->times);
        cd_partition_put(b, "launch_s", d->launch_s);
        cd_partition_put(b, "sync_s", d->sync_s);
        cd_partition_put(b, "wake_s", d->wake_s);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]");
}

static void put_placed(const cd_partition *p, cd_buf *b) {
    const cd_place_plan *n = &p->placed;
    cd_buf_puts(b, ",\"placement\":{");
    cd_partition_put_text(b, "method", n->method);
    cd_partition_put(b, "sum_s", n->cost.sum_s);
    cd_partition_put(b, "makespan_s", n->cost.makespan_s);
    cd_partition_put(b, "bound_s", n->bound_s);
    cd_buf_putf(b, ",\"exact\":%s,\"where\":[", n->exact ? "true" : "false");
    for (uint32_t k = 0; k < p->net.n_op; k++) cd_buf_putf(b, "%s%u", k ? "," : "", n->where[k]);
    cd_buf_puts(b, "]}");
}

static void put_run(const cd_partition *p, cd_buf *b) {
    const cd_plan_run_result *r = &p->run.now;
    cd_buf_puts(b, ",\"run\":{");
    cd_partition_put(b, "median_s", r->median_s);
    cd_partition_put(b, "low_s", r->low_s);
    cd_partition_put(b, "high_s", r->high_s);
    cd_partition_put(b, "passes", r->passes);
    cd_partition_put(b, "max_error", p->run.max_error);
    cd_partition_put(b, "bytes_between", (double)r->between);
    cd_partition_put(b, "bytes_within", (double)r->within);
    cd_partition_put(b, "failures", r->failures);
    cd_partition_put(b, "replans", r->replans);
    cd_partition_put(b, "left_out", p->run.left);
    cd_buf_puts(b, ",\"operators\":[");
    for (uint32_t k = 0; r->step && k < p->plan->n_op; k++) {
        cd_buf_puts(b, k ? ",{" : "{");
        cd_partition_put_text(b, "name", p->plan->op[k].name);
        cd_partition_put(b, "predicted_s", p->plan->op[k].seconds + p->plan->op[k].exchange_s);
        cd_partition_put(b, "measured_s", r->step[k].seconds);
        cd_partition_put(b, "start_s", r->step[k].start_s);
        cd_partition_put(b, "end_s", r->step[k].end_s);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]}");
}

/* Within texts of JSON there is no end of a line. */
static void put_on_one_line(const cd_buf *plan, cd_buf *b) {
    for (size_t k = 0; k < plan->n;) {
        const char *end = memchr(plan->p + k, '\n', plan->n - k);
        const size_t n = end ? (size_t)(end - plan->p) - k : plan->n - k;
        cd_buf_put(b, plan->p + k, n);
        for (k += n; k < plan->n && (plan->p[k] == '\n' || plan->p[k] == ' ');) k++;
    }
}

void cd_partition_json(const cd_partition *p, cd_buf *out) {
    const cd_shard_plan *n = p->plan;
    cd_buf one = {0}, *b = &one, plan = {0};
    cd_shard_plan_write(n, &plan);
    cd_buf_puts(b, "{");
    cd_partition_put_text(b, "network", n->network);
    cd_partition_put(b, "batch", (double)n->batch);
    put_devices(p, b);
    cd_partition_put(b, "predicted_s", n->predicted_s);
    cd_partition_put(b, "measured_s", n->measured_s);
    cd_partition_put(b, "predicted_gain", n->predicted_gain);
    cd_partition_put(b, "measured_gain", n->measured_gain);
    cd_partition_put(b, "ceiling", n->ceiling);
    cd_partition_put(b, "rho", n->rho);
    cd_partition_put(b, "bound_s", n->bound_s);
    cd_buf_putf(b, ",\"exact\":%s,\"split\":%s", n->exact ? "true" : "false", n->split ? "true" : "false");
    cd_partition_put_text(b, "verdict", n->verdict);
    put_bases(p, b);
    if (p->has_placed) put_placed(p, b);
    if (p->o->stages) cd_partition_json_stages(p, b);
    if (p->run.done) put_run(p, b);
    if (p->o->rules) {
        cd_buf_puts(b, ",\"offload\":");
        cd_partition_rules_json(&p->rules, b);
    }
    cd_buf_puts(b, ",\"plan\":");
    put_on_one_line(&plan, b);
    cd_buf_puts(b, "}");
    one.oom |= plan.oom;
    cd_buf_free(&plan);
    cd_command_json(out, "cdmpp.partition", "cdmpp-partition", &one);
}
