/* Timelines of plans: each is replayed as predicted, and becomes a case of a page or a trace. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/partition/report/report_internal.h"
#include "predictor/partition/report/web/drawing.js.h"
#include "predictor/partition/report/web/page.html.h"
#include "predictor/partition/report/web/tables.js.h"
#include "predictor/replay/replay.h"

/* Operators of a plan: the ten of which splitting could save most, because a network has hundreds;
 * or all of them with the reasons for their devices. */

enum { KEY = 10 };

/* Where an operator runs: "H cpu0 0..27, ocl0 27..56". */
static void partition_report_shares(const cd_partition *p, const cd_shard_plan_op *op, cd_buf *b) {
    if (op->dim && op->dim[0]) cd_buf_putf(b, "%s ", op->dim);
    for (uint32_t k = 0; k < op->n_part; k++) {
        const cd_shard_plan_part *r = &op->part[k];
        cd_buf_putf(b, "%s%s", k ? ", " : "", p->plan->device[r->device]);
        if (op->n_part > 1) cd_buf_putf(b, " %lld..%lld", (long long)r->lo, (long long)r->hi);
    }
    if (op->join != UINT32_MAX && op->n_part > 1 && op->reduce)
        cd_buf_putf(b, ", join %s", p->plan->device[op->join]);
}

/* ---- which ---- */
typedef struct {
    uint32_t op;
    double saved;
} ranked;

static int most(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->saved != y->saved) return x->saved > y->saved ? -1 : 1;
    return (x->op > y->op) - (x->op < y->op);
}

/* Seconds that splitting an operator could save, by its ceiling, or has saved. */
static double attainable(const cd_shard_plan *plan, const cd_shard_plan_op *op) {
    uint32_t d;
    const double best = cd_partition_best_s(plan, op, &d), got = best - op->seconds;
    const double could = isfinite(best) && op->ceiling > 1 ? best - best / op->ceiling : 0;
    return op->n_part > 1 && got > could ? got : could;
}

/* Beside the plan's operators stand no times of another plan. */
static bool has_measured(const cd_partition *p) {
    return p->run.done && p->run.now.step && !cd_partition_ran_another(p);
}

/* ---- one ---- */
static void put_operator(const cd_partition *p, uint32_t k, cd_buf *b) {
    const cd_shard_plan_op *o = &p->plan->op[k];
    uint32_t d;
    cd_buf_putf(b, "%4u  ", k);
    cd_units_put_seconds_wide(b, cd_partition_best_s(p->plan, o, &d));
    cd_buf_puts(b, "  ");
    cd_units_put_seconds_wide(b, o->seconds);
    cd_buf_puts(b, "  ");
    cd_units_put_seconds_wide(b, o->exchange_s);
    if (has_measured(p)) {
        cd_buf_puts(b, "  ");
        cd_units_put_seconds_wide(b, p->run.now.step[k].seconds);
    }
    cd_buf_putf(b, "  %-20.20s %-28.28s  ", o->type ? o->type : "", o->name ? o->name : "");
    partition_report_shares(p, o, b);
    cd_buf_puts(b, "\n");
}

/* Seconds on each device alone, those of the shards, and the reason in words. */
static void put_why(const cd_partition *p, uint32_t k, cd_buf *b) {
    const cd_shard_plan_op *o = &p->plan->op[k];
    cd_buf_puts(b, "        alone:");
    for (uint32_t d = 0; d < p->plan->n_device; d++) {
        cd_buf_putf(b, "%s %s ", d ? "," : "", p->plan->device[d]);
        cd_units_put_seconds_wide(b, o->alone_s[d]);
    }
    if (o->n_part > 1)
        for (uint32_t i = 0; i < o->n_part; i++) {
            cd_buf_putf(b, "%s %s ", i ? "," : "; parts:", p->plan->device[o->part[i].device]);
            cd_units_put_seconds_wide(b, o->part[i].seconds);
        }
    if (o->why && o->why[0]) cd_buf_putf(b, "\n        %s", o->why);
    cd_buf_puts(b, "\n");
}

static void put_list(const cd_partition *p, const ranked *r, uint32_t n, bool explain, cd_buf *b) {
    cd_buf_puts(b, "  op      alone    planned   exchange");
    cd_buf_putf(b, "%s  %-20s %-28s  where\n", has_measured(p) ? "   measured" : "", "type",
                "operator");
    for (uint32_t k = 0; k < n; k++) {
        put_operator(p, r[k].op, b);
        if (explain) put_why(p, r[k].op, b);
    }
}

/* Operators: those that matter, or all with reasons.
 *
 * With reasons, or after a run, all operators in the order of the network; else the first few by
 * what splitting could save. */
static void partition_report_ops(const cd_partition *p, bool explain, cd_buf *b) {
    const uint32_t n = p->plan->n_op;
    const bool all = explain || p->run.done;
    ranked *r = cd_mem_alloc(((size_t)n + 1) * sizeof *r);
    uint32_t shown = n;
    if (!r) {
        b->oom = true;
        return;
    }
    for (uint32_t k = 0; k < n; k++) r[k] = (ranked){k, attainable(p->plan, &p->plan->op[k])};
    if (!all) {
        qsort(r, n, sizeof *r, most);
        for (shown = 0; shown < n && shown < KEY && r[shown].saved > 0;) shown++;
    }
    if (shown)
        cd_buf_puts(b, all ? "\noperators\n" : "\nkey operators, by what splitting could save\n");
    if (shown) put_list(p, r, shown, explain, b);
    cd_mem_free(r);
}

/* The report for people: what the plan gains beside the devices alone and the most that all devices
 * could give, then the details that were asked for. */

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
    partition_report_ops(p, explain, b);
    if (p->o->stages >= 0) cd_partition_report_stages(p, explain, b);
    if (!p->o->rules) return;
    cd_buf_puts(b, "\nwhole operators under the rules\n");
    if (p->rules.placed) {
        cd_buf_puts(b, "\n");
        cd_offload_plan_text(&p->rules.plan, b);
    }
}

typedef struct { /* a plan, replayed */
    const cd_shard_plan *plan;
    cd_arena arena;
    cd_replay_net net;
    cd_replay replay;
} timeline;

static cdmpp_status replay(const cd_partition *p, const cd_shard_plan *plan, timeline *d,
                           cdmpp_err *err) {
    d->plan = plan;
    CD_TRY(cd_shard_plan_replay(plan, &p->net, &p->machine, &d->arena, &d->net, err));
    return cd_replay_run(&d->net, &d->replay, err);
}

static void timeline_free(timeline *d) {
    cd_replay_free(&d->replay);
    cd_arena_free(&d->arena);
}

/* ---- trace ---- */
cdmpp_status cd_partition_report_trace(const cd_partition *p, const char *path, cdmpp_err *err) {
    timeline d = {0};
    cd_buf b = {0};
    cdmpp_status st = replay(p, p->plan, &d, err);
    if (!st) st = cd_replay_trace(&b, &d.net, &d.replay, err);
    if (!st && b.oom) st = CD_FAIL(err, ENOMEM, "a trace");
    if (!st) st = cd_file_write(path, b.p, b.n, err);
    cd_buf_free(&b);
    timeline_free(&d);
    return st;
}

/* ---- page: slices of a plan ---- */
/* The operator that a slice belongs to: the one with the longest name that the slice begins with,
 * because shards are called "conv1 H 0..28". UINT32_MAX: none, a copy. */
static uint32_t op_of(const cd_shard_plan *plan, const char *slice) {
    size_t best = 0;
    uint32_t of = UINT32_MAX;
    for (uint32_t k = 0; k < plan->n_op; k++) {
        const char *name = plan->op[k].name;
        const size_t n = name ? strlen(name) : 0;
        if (n < best || strncmp(slice, name, n) ||
            (slice[n] && slice[n] != ' ' && slice[n] != '.' && slice[n] != ':' && slice[n] != '['))
            continue;
        best = n;
        of = k;
    }
    return of;
}

/* A column of the slices: one value each. */
typedef void item_put(const timeline *d, uint32_t k, cd_buf *b);
static void item_name(const timeline *d, uint32_t k, cd_buf *b) {
    cd_timeline_page_text(b, d->net.op[k].name);
}
static void item_start(const timeline *d, uint32_t k, cd_buf *b) {
    cd_timeline_page_ns(b, d->replay.op[k].start_s);
}
static void item_end(const timeline *d, uint32_t k, cd_buf *b) {
    cd_timeline_page_ns(b, d->replay.op[k].end_s);
}
static void item_lane(const timeline *d, uint32_t k, cd_buf *b) {
    cd_buf_put_int(b, d->net.op[k].device);
}
static void item_worker(const timeline *d, uint32_t k, cd_buf *b) {
    cd_buf_put_int(b, d->replay.op[k].worker);
}
static void item_of(const timeline *d, uint32_t k, cd_buf *b) {
    const uint32_t of = op_of(d->plan, d->net.op[k].name ? d->net.op[k].name : "");
    cd_buf_put_int(b, of == UINT32_MAX ? -1 : (int64_t)of);
}
static void item_critical(const timeline *d, uint32_t k, cd_buf *b) {
    bool on = false;
    for (uint32_t i = 0; i < d->replay.n_path; i++) on |= d->replay.path[i] == k;
    cd_buf_put_int(b, on);
}
static void item_after(const timeline *d, uint32_t k, cd_buf *b) {
    const cd_replay_op *o = &d->net.op[k];
    cd_buf_puts(b, "[");
    for (uint32_t i = 0; i < o->n_after; i++)
        cd_buf_putf(b, "%s%u", i ? "," : "", d->net.after[o->first + i]);
    cd_buf_puts(b, "]");
}

/* Columns rather than objects: a page has thousands of slices, and names of members would be most
 * of its bytes. */
static void put_slices(const timeline *d, cd_buf *b) {
    static const struct {
        const char *key;
        item_put *put;
    } list[] = {{"name", item_name},         {"start", item_start},   {"end", item_end},
                {"lane", item_lane},         {"worker", item_worker}, {"of", item_of},
                {"critical", item_critical}, {"after", item_after}};
    cd_timeline_page_queues(b, &d->net, &d->replay);
    cd_buf_puts(b, ",\"ops\":{");
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        cd_buf_putf(b, "%s\"%s\":[", i ? "," : "", list[i].key);
        for (uint32_t k = 0; k < d->net.n_op; k++) {
            if (k) cd_buf_puts(b, ",");
            list[i].put(d, k, b);
        }
        cd_buf_puts(b, "]");
    }
    cd_buf_puts(b, "}");
}

/* A plan that is impossible (infinite) has no timeline. */
static cdmpp_status put_case(const cd_partition *p, const char *name, const cd_shard_plan *plan,
                             double predicted, double measured, cd_buf *b, cdmpp_err *err) {
    timeline d = {0};
    cdmpp_status st = plan && isfinite(predicted) ? replay(p, plan, &d, err) : CDMPP_OK;
    cd_buf_puts(b, "{\"name\":");
    cd_timeline_page_text(b, name);
    cd_timeline_page_real(b, "predicted", predicted);
    cd_timeline_page_real(b, "measured", measured);
    if (!st && d.net.n_op) put_slices(&d, b);
    cd_buf_puts(b, "}");
    timeline_free(&d);
    return st;
}

static cdmpp_status put_cases(const cd_partition *p, cd_buf *b, cdmpp_err *err) {
    const cd_shard_plan *n = p->plan;
    cd_buf_puts(b, "{\"cases\":[");
    CD_TRY(put_case(p, "the plan", n, n->predicted_s, n->measured_s, b, err));
    for (uint32_t k = 0; k < n->n_base; k++) {
        cd_buf_puts(b, ",\n");
        CD_TRY(put_case(p, n->base[k].name, p->base ? p->base[k] : NULL, n->base[k].predicted_s,
                        n->base[k].measured_s, b, err));
    }
    cd_buf_puts(b, "]");
    return CDMPP_OK;
}

/* ---- page: operators of the plan ---- */
static void put_op(const cd_partition *p, uint32_t k, cd_buf *b) {
    const cd_shard_plan_op *o = &p->plan->op[k];
    cd_buf where = {0};
    partition_report_shares(p, o, &where);
    cd_buf_puts(b, "{\"name\":");
    cd_timeline_page_text(b, o->name);
    cd_buf_puts(b, ",\"type\":");
    cd_timeline_page_text(b, o->type);
    cd_buf_puts(b, ",\"where\":");
    cd_timeline_page_text(b, where.p);
    cd_buf_puts(b, ",\"why\":");
    cd_timeline_page_text(b, o->why);
    cd_buf_putf(b, ",\"parts\":%u", o->n_part);
    cd_timeline_page_real(b, "seconds", o->seconds);
    cd_timeline_page_real(b, "exchange", o->exchange_s);
    cd_timeline_page_real(b, "ceiling", o->ceiling);
    if (p->run.done && p->run.now.step && !cd_partition_ran_another(p))
        cd_timeline_page_real(b, "measured", p->run.now.step[k].seconds);
    cd_buf_puts(b, ",\"alone\":[");
    for (uint32_t d = 0; d < p->plan->n_device; d++) {
        cd_buf_puts(b, d ? "," : "");
        cd_buf_put_json_real(b, o->alone_s[d]);
    }
    cd_buf_puts(b, "]}");
    b->oom |= where.oom;
    cd_buf_free(&where);
}

/* The page's data: cases with their slices, the plan's operators, and the numbers of the
 * headline. */
static cdmpp_status put_data(const cd_partition *p, cd_buf *b, cdmpp_err *err) {
    const cd_shard_plan *n = p->plan;
    CD_TRY(put_cases(p, b, err));
    cd_buf_puts(b, ",\"network\":");
    cd_timeline_page_text(b, n->network);
    cd_buf_putf(b, ",\"batch\":%lld,\"split\":%s,\"verdict\":", (long long)n->batch,
                n->split ? "true" : "false");
    cd_timeline_page_text(b, n->verdict);
    cd_timeline_page_real(b, "alone", cd_partition_alone_s(p, false));
    cd_timeline_page_real(b, "alone_here", cd_partition_alone_s(p, true));
    cd_timeline_page_real(b, "ceiling", n->ceiling);
    cd_timeline_page_real(b, "rho", n->rho);
    cd_timeline_page_real(b, "error", p->run.done ? p->run.max_error : (double)NAN);
    cd_buf_puts(b, ",\"devices\":[");
    for (uint32_t d = 0; d < n->n_device; d++) {
        cd_buf_puts(b, d ? "," : "");
        cd_timeline_page_text(b, n->device[d]);
    }
    cd_buf_puts(b, "],\"operators\":[");
    for (uint32_t k = 0; k < n->n_op; k++) {
        cd_buf_puts(b, k ? ",\n" : "");
        put_op(p, k, b);
    }
    cd_buf_puts(b, "],\"foot\":");
    cd_buf foot = {0};
    cd_buf_putf(&foot, "cdmpp-partition %s%s", cdmpp_version(),
                p->o->machine ? "" : "; the machine was not measured");
    cd_timeline_page_text(b, foot.p);
    cd_buf_free(&foot);
    cd_buf_puts(b, "}");
    return CDMPP_OK;
}

cdmpp_status cd_partition_report_html(const cd_partition *p, const char *path, cdmpp_err *err) {
    static const char *const body[] = {page_html, NULL};
    static const char *const script[] = {tables_js, NULL};
    static const char *const drawing[] = {drawing_js, NULL};
    cd_buf data = {0};
    const cd_timeline_page_parts parts = {.title = "cdmpp-partition",
                                          .body = body,
                                          .script = script,
                                          .drawing = drawing,
                                          .data = &data};
    cdmpp_status st = put_data(p, &data, err);
    if (!st) st = cd_timeline_page_write(path, &parts, err);
    cd_buf_free(&data);
    return st;
}
