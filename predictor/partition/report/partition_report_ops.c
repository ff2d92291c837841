/* Operators of a plan: the ten of which splitting could save most, because a network has hundreds;
 * or all of them with the reasons for their devices. */
#include <math.h>
#include <stdlib.h>

#include "predictor/partition/report/report_internal.h"

enum { KEY = 10 };

void cd_partition_report_shares(const cd_partition *p, const cd_shard_plan_op *op, cd_buf *b) {
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
static void put_op(const cd_partition *p, uint32_t k, cd_buf *b) {
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
    cd_partition_report_shares(p, o, b);
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
        put_op(p, r[k].op, b);
        if (explain) put_why(p, r[k].op, b);
    }
}

/* With reasons, or after a run, all operators in the order of the network; else the first few by
 * what splitting could save. */
void cd_partition_report_ops(const cd_partition *p, bool explain, cd_buf *b) {
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
