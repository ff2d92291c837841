/* A search as lines while it runs and as a table at the end. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/hpo/hpo.h"

void cd_hpo_event_json(cd_buf *out, const cd_hpo_event *e) {
    static const char *const state[] = {"running", "done", "failed"};
    cd_buf_putf(out,
                "{\"trial\":%zu,\"rung\":%u,\"budget\":%.15g,\"state\":\"%s\",\"valid_error\":",
                e->trial, e->rung, e->budget, state[e->state]);
    if (e->state == CD_HPO_DONE) cd_buf_putf(out, "%.17g", e->error);
    else cd_buf_puts(out, "null");
    if (e->state == CD_HPO_FAILED) {
        cd_buf_puts(out, ",\"reason\":");
        cd_buf_put_json_str(out, e->reason, strlen(e->reason));
    }
    if (e->state != CD_HPO_RUNNING)
        cd_buf_putf(out, ",\"known\":%s,\"seconds\":%.3f", e->known ? "true" : "false", e->seconds);
    cd_buf_putf(out, ",\"params\":%s}\n", e->params);
}

void cd_hpo_event_text(cd_buf *out, const cd_hpo_event *e) {
    cd_buf_putf(out, "trial %zu, budget %g: ", e->trial, e->budget);
    if (e->state == CD_HPO_FAILED) cd_buf_putf(out, "failed: %s", e->reason);
    else cd_buf_putf(out, "error %.5g", e->error);
    if (e->known) cd_buf_puts(out, ", from the journal");
    else cd_buf_putf(out, ", %.1f s", e->seconds);
}

/* A trial by the last of its results. */
typedef struct {
    size_t trial;
    unsigned rung;
    double error;
} line;

/* Higher rungs first, then smaller errors. */
static int by_rank(const void *a, const void *b) {
    const line *x = a, *y = b;
    if (x->rung != y->rung) return x->rung > y->rung ? -1 : 1;
    if (x->error < y->error) return -1;
    if (x->error > y->error) return 1;
    return x->trial < y->trial ? -1 : x->trial > y->trial;
}

static size_t collect(const cd_hpo_result *f, line *l) {
    size_t n = 0;
    for (size_t t = 0; t < f->n_trial; t++)
        for (unsigned r = f->n_rung; r-- > 0;) {
            const double e = f->error[t * f->n_rung + r];
            if (isnan(e)) continue;
            l[n++] = (line){t, r, e};
            break;
        }
    return n;
}

/* Trials of higher rungs first: their errors are of larger budgets and compare with nothing
 * below. */
void cd_hpo_result_table(cd_buf *out, const cd_hpo_result *f, const cd_hpo_space *s, size_t max) {
    line *l = cd_mem_zalloc(f->n_trial + 1, sizeof *l);
    if (!l) {
        out->oom = true;
        return;
    }
    const size_t n = collect(f, l);
    qsort(l, n, sizeof *l, by_rank);
    cd_buf_putf(out, "%6s %10s %12s  parameters\n", "trial", "budget", "valid error");
    for (size_t i = 0; i < n && i < max; i++) {
        cd_buf_putf(out, "%6zu %10.6g ", l[i].trial, cd_hpo_space_budget(s, l[i].rung));
        if (isfinite(l[i].error))
            cd_buf_putf(out, "%12.5g  %s\n", l[i].error, f->trial[l[i].trial].params);
        else
            cd_buf_putf(out, "%12s  %s\n%6s %s\n", "failed", f->trial[l[i].trial].params, "",
                        f->reason[l[i].trial]);
    }
    if (n > max) cd_buf_putf(out, "%zu more are in the journal\n", n - max);
    cd_mem_free(l);
}

void cd_hpo_space_print(cd_buf *out, const cd_hpo_space *s) {
    size_t n;
    const cd_conf_key *key = cd_hpo_space_keys(&n);
    const cd_conf t = {key, n, (void *)(uintptr_t)&s->tune, NULL, NULL}; /* only read */
    cd_conf_print(out, &t);
}

const char *cd_hpo_metric_name(cd_hpo_metric e) {
    static const char *const name[] = {"MAPE", "median error", "RMSE of log(latency)",
                                       "1 - Spearman"};
    return name[e];
}
