/* The report as JSON. Plan and offload part have writers of their own (the plan's is also the form
 * of a file), so their text goes in as it is. */
#include <math.h>
#include <string.h>

#include "predictor/partition/report/report_internal.h"

/* Gains are over the best device alone; an impossible baseline has null for its numbers. */
static void put_bases(const cd_partition *p, cd_json_writer *w) {
    const cd_shard_plan *n = p->plan;
    const double best = cd_partition_alone_s(p, false), best_here = cd_partition_alone_s(p, true);
    cd_json_write_key(w, "baselines"), cd_json_write_open(w, '[');
    for (uint32_t k = 0; k < n->n_base; k++) {
        const cd_shard_plan_baseline *x = &n->base[k];
        cd_json_write_open(w, '{');
        cd_json_write_member_str(w, "name", x->name);
        cd_json_write_member_real(w, "predicted_s", x->predicted_s);
        cd_json_write_member_real(w, "measured_s", x->measured_s);
        cd_json_write_member_real(w, "predicted_gain", best / x->predicted_s);
        cd_json_write_member_real(w, "measured_gain", best_here / x->measured_s);
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
}

/* Who answers for a device, where that is not the device itself, and what is uncertain of its
 * times. */
static void put_source(const cd_shard_plan_source *s, cd_json_writer *w) {
    const double spread = hypot(s->stands_spread, isnan(s->costs_spread) ? 0 : s->costs_spread);
    if (s->stands) cd_json_write_member_str(w, "stand_in", s->stands);
    if (s->scaled) cd_json_write_member_str(w, "stand_in_by", "roofline");
    if (s->guessed) cd_json_write_member_bool(w, "guessed", true);
    if (spread > 0) cd_json_write_member_real(w, "spread", spread);
    if (s->unlike != 0) cd_json_write_member_real(w, "unlike_share", s->unlike);
}

static void put_devices(const cd_partition *p, cd_json_writer *w) {
    cd_json_write_key(w, "devices"), cd_json_write_open(w, '[');
    for (uint32_t k = 0; k < p->machine.n; k++) {
        const cd_machine_device *d = &p->machine.device[k];
        cd_json_write_open(w, '{');
        cd_json_write_member_str(w, "name", d->name);
        cd_json_write_member_str(w, "kind", d->kind);
        cd_json_write_member_str(w, "as", d->as);
        put_source(&p->source[k], w);
        cd_json_write_member_int(w, "times", d->times);
        cd_json_write_member_real(w, "launch_s", d->launch_s);
        cd_json_write_member_real(w, "sync_s", d->sync_s);
        cd_json_write_member_real(w, "wake_s", d->wake_s);
        if (p->o->run) cd_json_write_member_real(w, "left", p->left[k]);
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
}

static void put_placed(const cd_partition *p, cd_json_writer *w) {
    const cd_place_plan *n = &p->placed;
    cd_json_write_key(w, "placement"), cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "method", n->method);
    cd_json_write_member_real(w, "sum_s", n->cost.sum_s);
    cd_json_write_member_real(w, "makespan_s", n->cost.makespan_s);
    cd_json_write_member_real(w, "bound_s", n->bound_s);
    cd_json_write_member_bool(w, "exact", n->exact);
    cd_json_write_key(w, "where"), cd_json_write_open(w, '[');
    for (uint32_t k = 0; k < p->net.n_op; k++) cd_json_write_int(w, n->where[k]);
    cd_json_write_close(w, ']');
    cd_json_write_close(w, '}');
}

static void put_ran(const cd_partition *p, cd_json_writer *w) {
    const cd_plan_run_result *r = &p->run.now;
    cd_json_write_key(w, "operators"), cd_json_write_open(w, '[');
    for (uint32_t k = 0; r->step && !cd_partition_ran_another(p) && k < p->plan->n_op; k++) {
        cd_json_write_open(w, '{');
        cd_json_write_member_str(w, "name", p->plan->op[k].name);
        cd_json_write_member_real(w, "predicted_s",
                                  p->plan->op[k].seconds + p->plan->op[k].exchange_s);
        cd_json_write_member_real(w, "measured_s", r->step[k].seconds);
        cd_json_write_member_real(w, "start_s", r->step[k].start_s);
        cd_json_write_member_real(w, "end_s", r->step[k].end_s);
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
}

/* Of another plan (planned again) there are no operators: they would be taken for this plan's.
 * bytes_between: copied from one memory to another; bytes_within: copied inside one memory. */
static void put_run(const cd_partition *p, cd_json_writer *w) {
    const cd_plan_run_result *r = &p->run.now;
    cd_json_write_key(w, "run"), cd_json_write_open(w, '{');
    cd_json_write_member_real(w, "median_s", r->median_s);
    cd_json_write_member_real(w, "low_s", r->low_s);
    cd_json_write_member_real(w, "high_s", r->high_s);
    cd_json_write_member_real(w, "passes", r->passes);
    cd_json_write_member_real(w, "max_error", p->run.max_error);
    cd_json_write_member_real(w, "bytes_between", (double)r->between);
    cd_json_write_member_real(w, "bytes_within", (double)r->within);
    cd_json_write_member_real(w, "failures", r->failures);
    cd_json_write_member_real(w, "replans", r->replans);
    cd_json_write_member_real(w, "left_out", p->run.left_out);
    cd_json_write_member_real(w, "others", p->run.others);
    cd_json_write_member_bool(w, "disturbed", cd_partition_disturbed(p));
    cd_json_write_member_str(w, "kept", p->run.kept);
    cd_json_write_key(w, "injected"), cd_json_write_open(w, '[');
    for (size_t k = 0; k < p->o->inject.n; k++) cd_json_write_str(w, p->o->inject.v[k]);
    cd_json_write_close(w, ']');
    put_ran(p, w);
    cd_json_write_close(w, '}');
}

/* JSON of another writer: ends of lines, which are only between tokens there, and the blanks behind
 * them go. */
static void put_other(const char *key, cd_buf *json, cd_json_writer *w) {
    cd_buf line = {0};
    for (size_t k = 0; k < json->n;) {
        const char *end = memchr(json->p + k, '\n', json->n - k);
        const size_t n = end ? (size_t)(end - json->p) - k : json->n - k;
        cd_buf_put(&line, json->p + k, n);
        for (k += n; k < json->n && (json->p[k] == '\n' || json->p[k] == ' ');) k++;
    }
    cd_json_write_key(w, key), cd_json_write_raw(w, line.n ? line.p : "null", line.n ? line.n : 4);
    w->out->oom |= line.oom | json->oom;
    cd_buf_free(&line);
    cd_buf_free(json);
}

/* The numbers of the headline. */
static void put_plan(const cd_partition *p, cd_json_writer *w) {
    const cd_shard_plan *n = p->plan;
    cd_json_write_member_real(w, "predicted_s", n->predicted_s);
    cd_json_write_member_real(w, "low_s", n->low_s);
    cd_json_write_member_real(w, "high_s", n->high_s);
    if (n->no_interval) cd_json_write_member_str(w, "no_interval", n->no_interval);
    cd_json_write_member_real(w, "measured_s", n->measured_s);
    cd_json_write_member_real(w, "predicted_gain", n->predicted_gain);
    cd_json_write_member_real(w, "measured_gain", n->measured_gain);
    cd_json_write_member_real(w, "ceiling", n->ceiling);
    cd_json_write_member_real(w, "rho", n->rho);
    cd_json_write_member_real(w, "bound_s", n->bound_s);
    cd_json_write_member_bool(w, "exact", n->exact);
    cd_json_write_member_bool(w, "split", n->split);
    cd_json_write_member_str(w, "verdict", n->verdict);
}

/* The order of the members is that of earlier versions: readers may rely on it. */
void cd_partition_report_json(const cd_partition *p, cd_buf *out) {
    cd_json_writer w = {.out = out};
    cd_buf plan = {0}, offload = {0};
    cd_shard_plan_write(p->plan, &plan);
    cd_json_write_open(&w, '{');
    cd_json_write_member_str(&w, "network", p->plan->network);
    cd_json_write_member_real(&w, "batch", (double)p->plan->batch);
    put_devices(p, &w);
    put_plan(p, &w);
    put_bases(p, &w);
    if (p->has_placed) put_placed(p, &w);
    if (p->o->stages >= 0) cd_partition_report_stages_json(p, &w);
    if (p->run.done) put_run(p, &w);
    if (p->rules.placed) cd_offload_plan_json(&p->rules.plan, &offload);
    if (p->o->rules) put_other("offload", &offload, &w);
    put_other("plan", &plan, &w);
    cd_json_write_close(&w, '}');
}
