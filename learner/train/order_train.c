/* Members for the order of a task's programs: trained like those for the seconds, under another
 * configuration, and weighed against them out of fold. */
#include "learner/train/train_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A folder of their own, for kinds and folds may be the same; what was trained before goes on from
 * members for the order. */
cdmpp_status cd_order_train(const cd_training_set *t, const cd_ensemble_run *run, cd_model *m,
                            cdmpp_err *err) {
    const cd_config c = cd_config_of_order(t->c);
    cd_training_set set = *t;
    cd_ensemble_run with = *run;
    char *folder = NULL;
    set.c = &c;
    with.before = "order ";
    with.start = run->start ? run->start->order : NULL;
    if (!cd_model_new_order(m)) return CD_FAIL(err, ENOMEM, "order");
    if (run->folder) {
        const size_t n = strlen(run->folder) + sizeof "/order";
        if (!(folder = cd_mem_zalloc(n, 1))) return CD_FAIL(err, ENOMEM, "name of a folder");
        snprintf(folder, n, "%s/order", run->folder);
        with.folder = folder;
    }
    const cdmpp_status st = cd_ensemble_members(&set, &with, m->order, err);
    cd_mem_free(folder);
    return st;
}

typedef struct {
    const cd_training_set *t;
    cd_model *m;
    const double *order_log_s;
    cd_model_prediction *median, *mixed;
    double *measured, *point, *order;
    uint32_t *group;
    cd_arena arena;
} weighing;

static cdmpp_status begin(weighing *w, const cd_training_set *t, cd_threads *pool,
                          const double *kind_log_s, cdmpp_err *err) {
    const size_t n = t->n_oof;
    w->median = CD_NEWN(&w->arena, cd_model_prediction, n);
    w->mixed = CD_NEWN(&w->arena, cd_model_prediction, n);
    w->measured = CD_NEWN(&w->arena, double, n);
    w->point = CD_NEWN(&w->arena, double, n);
    w->order = CD_NEWN(&w->arena, double, n);
    w->group = CD_NEWN(&w->arena, uint32_t, n);
    if (w->arena.oom) return CD_FAIL(err, ENOMEM, "order of %zu programs", n);
    CD_TRY(cd_evaluate_answers(t, w->m, pool, t->oof, n, kind_log_s, w->median, err));
    for (size_t i = 0; i < n; i++) {
        w->measured[i] = exp(t->log_s[t->oof[i]]);
        w->point[i] = w->median[i].median_s;
        w->group[i] = t->group[t->oof[i]];
    }
    return CDMPP_OK;
}

/* Spearman inside tasks of the model's present share; NaN: no task has an order. */
static cdmpp_status judge(weighing *w, double *spearman, cdmpp_err *err) {
    const size_t n = w->t->n_oof;
    cd_metric figure;
    if (n) memcpy(w->mixed, w->median, n * sizeof *w->mixed);
    cd_model_mix_order(w->m, w->order_log_s, n, w->mixed);
    for (size_t i = 0; i < n; i++) w->order[i] = w->mixed[i].order_s;
    CD_TRY(
        cd_metric_compute_ranked(w->measured, w->point, w->order, w->group, NULL, n, &figure, err));
    *spearman = figure.spearman;
    return CDMPP_OK;
}

/* In tenths; of equal ones the largest. */
static cdmpp_status search(weighing *w, cdmpp_err *err) {
    enum { PARTS = 10 };
    double best = -INFINITY, share = 1;
    for (int k = PARTS; k >= 0; k--) {
        double found;
        w->m->order_share = (double)k / PARTS;
        CD_TRY(judge(w, &found, err));
        if (!(found > best)) continue;
        best = found;
        share = w->m->order_share;
    }
    w->m->order_share = share;
    return CDMPP_OK;
}

cdmpp_status cd_order_weigh(const cd_training_set *t, cd_threads *pool, const double *kind_log_s,
                            cd_model *m, double **order_log_s, cdmpp_err *err) {
    weighing w = {.t = t, .m = m};
    *order_log_s = cd_mem_zalloc(m->order->n_kind * t->n_oof + 1, sizeof **order_log_s);
    if (!*order_log_s) return CD_FAIL(err, ENOMEM, "order of %zu programs", t->n_oof);
    w.order_log_s = *order_log_s;
    cdmpp_status st = cd_evaluate_oof(t, m->order, pool, t->oof, t->n_oof, *order_log_s, err);
    if (!st) st = begin(&w, t, pool, kind_log_s, err);
    if (!st) st = search(&w, err);
    cd_arena_free(&w.arena);
    return st;
}
