/* made_scorer.h -- what tests of scorers have in common: the records of made_model.h as a data set,
 * the task, known devices. */
#ifndef MADE_SCORER_H
#define MADE_SCORER_H
#include "check.h"
#include "made_model.h"
#include "predictor/score/score.h"

typedef struct {
    tmp_dir dir;
    char h5[256];
    cd_task_registry *tasks;
    cd_device_table *devices;
} made_scorer;

static inline cdmpp_status made_scorer_up(made_scorer *s, const char *target, cdmpp_err *err) {
    cd_diag diag = {0};
    s->dir = tmp_make();
    cdmpp_status st = made_registry(&s->tasks, err);
    if (!st) st = cd_device_table_load("configs/devices.yaml", &diag, &s->devices, err);
    if (!st)
        st = made_extract(&s->dir, cd_task_registry_at(s->tasks, 0)->workload_key, &target, 1,
                          s->h5, err);
    cd_diag_free(&diag);
    return st;
}

static inline void made_scorer_down(made_scorer *s) {
    cd_device_table_free(s->devices);
    cd_task_registry_free(s->tasks);
    tmp_remove(&s->dir);
}

/* What a setup returns: nonzero, and the reason is printed, where it failed. */
static inline int made_scorer_told(cdmpp_status st, const cdmpp_err *err) {
    char text[512];
    if (st) print_error("%s\n", cdmpp_err_format(err, text, sizeof text));
    return st != CDMPP_OK;
}

/* A data set of n programs with facts, and their analytic times by the numbers of the model's first
 * device: analytic (n * CD_N_ANALYTIC). */
static inline cd_dataset *made_scorer_facts(const char *h5, cd_facts_set set, const cd_model *m,
                                            size_t n, float *analytic) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL;
    assert_ok(cd_dataset_load_within(&h5, 1, &(cd_dataset_options){.facts = true}, &d, &err));
    assert_int_equal(d->n, n);
    for (size_t i = 0; i < n; i++)
        assert_ok(cd_facts_input_times(set, d->facts + i * CD_N_FACTS,
                                       cd_model_device_numbers(m, 0), analytic + i * CD_N_ANALYTIC,
                                       &err));
    return d;
}
#endif
