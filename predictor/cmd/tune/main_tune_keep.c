/* What cdmpp-tune keeps beside its log: the best records, the trials as OpBench writes them. */
#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/cmd/tune/main_tune.h"

cdmpp_status cd_main_tune_keep_best(cd_main_tune_live *l, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = CDMPP_OK;
    if (!l->o->best) return CDMPP_OK;
    for (uint32_t i = 0; !st && i < l->what->n; i++) {
        cd_tune_side *k = cd_tune_result_kept(&l->result[i]);
        cd_record r;
        if (!k) continue;
        st = cd_tune_result_record(k, &r, err);
        if (!st) st = cd_record_write(&b, &r, err);
    }
    if (!st && b.oom) st = CD_FAIL(err, ENOMEM, "records");
    if (!st) st = cd_file_write(l->o->best, b.p ? b.p : "", b.n, err);
    cd_buf_free(&b);
    return st;
}

static void put_csv(cd_buf *b, const char *s) {
    cd_buf_puts(b, "\"");
    for (; *s; s++) cd_buf_putf(b, *s == '"' ? "\"\"" : "%c", *s);
    cd_buf_puts(b, "\"");
}

static void real(cd_buf *b, double v) {
    if (v < CD_TUNE_FAILED_S) cd_buf_put_json_real(b, v);
}

/* OpBench's op_costs: seconds of a trial, seconds with building, the best so far of both, the share of the best of all. */
static void curve(cd_buf *b, const char *key, const cd_tune_task_state *s) {
    double best = HUGE_VAL, best_all = HUGE_VAL;
    for (size_t k = 0; k < s->n_point; k++) {
        const cd_tune_point *p = &s->point[k];
        const double all = p->seconds < CD_TUNE_FAILED_S ? p->cost_s : HUGE_VAL;
        if (p->seconds < best) best = p->seconds;
        if (all < best_all) best_all = all;
        put_csv(b, key);
        cd_buf_putf(b, ",%zu,", k + 1);
        real(b, p->seconds);
        cd_buf_puts(b, ",");
        cd_buf_put_json_real(b, p->cost_s);
        cd_buf_puts(b, ",");
        real(b, best);
        cd_buf_puts(b, ",");
        real(b, best_all);
        cd_buf_puts(b, ",");
        if (best < CD_TUNE_FAILED_S) cd_buf_put_json_real(b, s->best_s / best);
        cd_buf_puts(b, "\n");
    }
}

cdmpp_status cd_main_tune_keep_curves(const cd_main_tune_live *l, const char *path, cdmpp_err *err) {
    cd_buf b = {0};
    cd_buf_puts(&b, "task_name,trial,costs,all_cost,best_cost,best_all_cost,cmp\n");
    for (uint32_t i = 0; i < l->what->n; i++) curve(&b, l->what->unit[i].of.task->workload_key, cd_tune_run_state(l->run, i));
    cdmpp_status st = CDMPP_OK;
    if (b.oom) st = CD_FAIL(err, ENOMEM, "trials");
    if (!st) st = cd_file_write(path, b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}
