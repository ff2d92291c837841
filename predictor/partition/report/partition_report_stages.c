/* Stages of operators side by side: the sum over blocks, then those stages in which something does
 * run side by side. */
#include <math.h>
#include <string.h>

#include "predictor/partition/report/report_internal.h"

/* CD_PARTITION_STAGES */
static const char *const HOW[] = {"parallel", "sequential", "merge", "both", "split"};

static bool asked(const cd_partition *p) {
    return p->o->stages == CD_PARTITION_STAGES_MERGE || p->o->stages == CD_PARTITION_STAGES_BOTH;
}

static bool has_merged(const cd_partition_staging *x, const cd_partition_stage *k,
                       const cd_stage_step *s) {
    for (uint32_t j = 0; j < s->first[s->n_group]; j++)
        if (x->is_merged && x->is_merged[k->op[s->op[j]]]) return true;
    return false;
}

/* "conv1 > conv2 | conv3": groups, and operators in a group one behind the other; "conv1 / 2": one
 *   in two pieces. */
static void put_stage(const cd_partition_staging *x, const cd_partition_stage *k,
                      const cd_stage_step *s, cd_buf *b) {
    for (uint32_t g = 0; g < s->n_group; g++) {
        cd_buf_puts(b, g ? " | " : "");
        for (uint32_t j = s->first[g]; j < s->first[g + 1]; j++)
            cd_buf_putf(b, "%s%.80s", j > s->first[g] ? " > " : "",
                        x->net->op[k->op[s->op[j]]].name);
    }
    if (s->split) cd_buf_putf(b, " / %u", s->split);
}

static void put_run(const cd_partition *p, cd_buf *b) {
    const cd_partition_stage_sum *r = &p->plain.staged;
    cd_buf_puts(b, "  run here: stages ");
    cd_units_put_seconds_wide(b, r->seconds);
    cd_buf_puts(b, ", one operator after the other ");
    cd_units_put_seconds_wide(b, r->alone_s);
    cd_buf_putf(b, " (%.3fx); %u of %u blocks, one by one; values: ", r->alone_s / r->seconds, r->n,
                p->plain.n_stage);
    if (r->differ) cd_buf_putf(b, "%u operators differ\n", r->differ);
    else cd_buf_puts(b, "equal\n");
}

/* Stages with a single group of operators as they are say nothing new: they are left out unless all
 * is explained. */
static void put_stages(const cd_partition_staging *x, bool explain, cd_buf *b) {
    for (uint32_t k = 0; k < x->n_stage; k++)
        for (uint32_t i = 0; i < x->stage[k].plan.n_stage; i++) {
            const cd_stage_step *s = &x->stage[k].plan.stage[i];
            if (s->n_group < 2 && !s->split && !has_merged(x, &x->stage[k], s) && !explain)
                continue;
            cd_buf_putf(b, "  block %u stage %u  ", k, i);
            cd_units_put_seconds_wide(b, s->seconds);
            cd_buf_puts(b, "  ");
            put_stage(x, &x->stage[k], s, b);
            cd_buf_puts(b, "\n");
        }
}

/* ---- merged convolutions ---- */

static void put_merge(const cd_partition_merge *m, cd_buf *b) {
    cd_buf_putf(b, "  block %u merged  ", m->block);
    cd_units_put_seconds_wide(b, m->merged_s);
    cd_buf_puts(b, " for ");
    cd_units_put_seconds_wide(b, m->parts_s);
    cd_buf_putf(b, ", %.2fx the operations  %.200s\n", m->work, m->name);
}

/* Blocks in which something is merged, once each. */
static void put_blocks_run(const cd_partition *p, cd_buf *b) {
    for (uint32_t k = 0; k < p->merged.in.n_stage; k++) {
        const double with = p->merged.in.stage[k].measured_s,
                     without = p->plain.stage[k].measured_s;
        uint32_t n = 0;
        for (uint32_t i = 0; i < p->merged.n_set; i++) n += p->merged.set[i].block == k;
        if (!n || !isfinite(with)) continue;
        cd_buf_putf(b, "  block %u run here: merged ", k);
        cd_units_put_seconds_wide(b, with);
        cd_buf_puts(b, ", stages without ");
        cd_units_put_seconds_wide(b, without);
        cd_buf_putf(b, " (%.3fx)\n", without / with);
    }
}

static void put_merged(const cd_partition *p, bool explain, cd_buf *b) {
    const cd_partition_merged *m = &p->merged;
    const cd_partition_stage_sum *r = &m->in.staged;
    if (!m->has) {
        cd_buf_putf(b,
                    "\nnothing is merged: %u sets of convolutions read one tensor, %u ways were "
                    "planned, and none is predicted to be faster\n",
                    m->n_found, m->n_tried);
        return;
    }
    cd_buf_putf(b, "\nwith %u merged: ", m->n_set);
    cd_units_put_seconds_wide(b, m->in.stages_s);
    cd_buf_putf(b, " (%.3fx of the stages without); of %u sets, %u ways were planned\n",
                p->plain.stages_s / m->in.stages_s, m->n_found, m->n_tried);
    if (r->done) {
        cd_buf_puts(b, "  run here: merged ");
        cd_units_put_seconds_wide(b, r->seconds);
        cd_buf_puts(b, ", stages without ");
        cd_units_put_seconds_wide(b, p->plain.staged.seconds);
        cd_buf_putf(b, " (%.3fx); values: ", p->plain.staged.seconds / r->seconds);
        if (isfinite(m->max_error)) cd_buf_putf(b, "%.1e of the largest off\n", m->max_error);
        else cd_buf_puts(b, isnan(m->max_error) ? "not compared\n" : "some are no numbers\n");
        put_blocks_run(p, b);
    }
    for (uint32_t k = 0; k < m->n_set; k++) put_merge(&m->set[k], b);
    put_stages(&m->in, explain, b);
}

void cd_partition_report_stages(const cd_partition *p, bool explain, cd_buf *b) {
    cd_buf_puts(b, "\nstages on ");
    cd_buf_putf(b, "%u units like %s: ", p->machine.n, p->machine.device[0].name);
    cd_units_put_seconds_wide(b, p->plain.stages_s);
    cd_buf_puts(b, ", one operator after the other ");
    cd_units_put_seconds_wide(b, p->plain.alone_s);
    cd_buf_putf(b, " (%.3fx); searched in %.3f s%s\n", p->plain.alone_s / p->plain.stages_s,
                p->stage_search_s,
                p->machine.contention.peak_bytes_per_s > 0
                    ? ""
                    : "; nobody disturbs the other: no contention was measured");
    if (p->plain.staged.done) put_run(p, b);
    put_stages(&p->plain, explain, b);
    if (asked(p)) put_merged(p, explain, b);
}

/* ---- JSON ---- */

/* Operators have their numbers in their network, not those in the block. */
static void json_step(const cd_partition_staging *x, uint32_t block, const cd_stage_step *s,
                      cd_json_writer *w) {
    cd_json_write_open(w, '{');
    cd_json_write_member_int(w, "block", block);
    cd_json_write_member_str(w, "kind",
                             s->split                             ? "split"
                             : has_merged(x, &x->stage[block], s) ? "merge"
                                                                  : "concurrent");
    if (s->split) cd_json_write_member_int(w, "pieces", s->split);
    cd_json_write_member_real(w, "seconds", s->seconds);
    cd_json_write_key(w, "groups"), cd_json_write_open(w, '[');
    for (uint32_t g = 0; g < s->n_group; g++) {
        cd_json_write_open(w, '[');
        for (uint32_t j = s->first[g]; j < s->first[g + 1]; j++)
            cd_json_write_int(w, x->stage[block].op[s->op[j]]);
        cd_json_write_close(w, ']');
    }
    cd_json_write_close(w, ']');
    cd_json_write_close(w, '}');
}

/* A block that was not run has null for its measured times. */
static void json_run(const cd_partition_staging *x, cd_json_writer *w) {
    cd_json_write_key(w, "run"), cd_json_write_open(w, '{');
    cd_json_write_member_real(w, "measured_s", x->staged.seconds);
    cd_json_write_member_real(w, "alone_measured_s", x->staged.alone_s);
    cd_json_write_member_real(w, "predicted_s", x->staged.predicted_s);
    cd_json_write_member_int(w, "blocks", x->n_stage);
    cd_json_write_member_int(w, "blocks_run", x->staged.n);
    cd_json_write_member_int(w, "operators_that_differ", x->staged.differ);
    cd_json_write_key(w, "block"), cd_json_write_open(w, '[');
    for (uint32_t k = 0; k < x->n_stage; k++) {
        cd_json_write_open(w, '{');
        cd_json_write_member_int(w, "block", k);
        cd_json_write_member_real(w, "predicted_s", x->stage[k].plan.total_s);
        cd_json_write_member_real(w, "measured_s", x->stage[k].measured_s);
        cd_json_write_member_real(w, "alone_measured_s", x->stage[k].alone_measured_s);
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
    cd_json_write_close(w, '}');
}

static void json_staging(const cd_partition_staging *x, cd_json_writer *w) {
    cd_json_write_member_real(w, "seconds", x->stages_s);
    cd_json_write_member_real(w, "alone_s", x->alone_s);
    cd_json_write_key(w, "stage"), cd_json_write_open(w, '[');
    for (uint32_t k = 0; k < x->n_stage; k++)
        for (uint32_t i = 0; i < x->stage[k].plan.n_stage; i++)
            json_step(x, k, &x->stage[k].plan.stage[i], w);
    cd_json_write_close(w, ']');
    if (x->staged.done) json_run(x, w);
}

/* The network with merges has operators of its own: their names stand in the order of their
 * numbers. */
static void json_merged(const cd_partition_merged *m, cd_json_writer *w) {
    cd_json_write_key(w, "merged"), cd_json_write_open(w, '{');
    cd_json_write_member_int(w, "sets_found", m->n_found);
    cd_json_write_member_int(w, "ways_planned", m->n_tried);
    cd_json_write_key(w, "sets"), cd_json_write_open(w, '[');
    for (uint32_t k = 0; k < m->n_set; k++) {
        cd_json_write_open(w, '{');
        cd_json_write_member_str(w, "name", m->set[k].name);
        cd_json_write_member_int(w, "block", m->set[k].block);
        cd_json_write_member_real(w, "work", m->set[k].work);
        cd_json_write_member_real(w, "parts_s", m->set[k].parts_s);
        cd_json_write_member_real(w, "merged_s", m->set[k].merged_s);
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
    if (m->has) {
        cd_json_write_member_real(w, "max_error", m->in.staged.done ? m->max_error : (double)NAN);
        cd_json_write_key(w, "operators"), cd_json_write_open(w, '[');
        for (uint32_t k = 0; k < m->net.n_op; k++) cd_json_write_str(w, m->net.op[k].name);
        cd_json_write_close(w, ']');
        json_staging(&m->in, w);
    }
    cd_json_write_close(w, '}');
}

/* a member */
static void partition_report_stages_json(const cd_partition *p, cd_json_writer *w) {
    cd_json_write_key(w, "stages"), cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "strategy", HOW[p->o->stages]);
    cd_json_write_member_real(w, "search_s", p->stage_search_s);
    json_staging(&p->plain, w);
    if (asked(p)) json_merged(&p->merged, w);
    cd_json_write_close(w, '}');
}

/* The report as JSON. Plan and offload part have writers of their own (the plan's is also the form
 * of a file), so their text goes in as it is. */

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
static void put_run_json(const cd_partition *p, cd_json_writer *w) {
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
    if (p->o->stages >= 0) partition_report_stages_json(p, &w);
    if (p->run.done) put_run_json(p, &w);
    if (p->rules.placed) cd_offload_plan_json(&p->rules.plan, &offload);
    if (p->o->rules) put_other("offload", &offload, &w);
    put_other("plan", &plan, &w);
    cd_json_write_close(&w, '}');
}
