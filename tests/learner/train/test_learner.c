/* Train on programs whose latency is known by construction, end to end. */
#include "learner/train/train.h"
#include "check.h"
#include "made_set.h"
#include "predict_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/io.h"
#include "base/core/core.h"
#include "dataset/extract/extract.h"
#include "features/rows/rows.h"
#include "learner/model/model.h"

static char dir[] = "/tmp/cdmpp-learner-XXXXXX", h5[64], yaml[64];

static int setup(void **s) {
    (void)s;
    if (!mkdtemp(dir)) return 1;
    snprintf(h5, sizeof h5, "%s/d.h5", dir);
    snprintf(yaml, sizeof yaml, "%s/c.yaml", dir);
    made_set_write(h5);
    FILE *f = fopen(yaml, "w");
    fprintf(f, "data: {files: [d.h5]}\nsplit: {kind: task}\ntrain: {rounds: 150, eta: 0.2}\n");
    return fclose(f);
}

static int teardown(void **s) {
    (void)s;
    char m[80];
    snprintf(m, sizeof m, "%s/m.cdmpp", dir);
    unlink(h5);
    unlink(yaml);
    unlink(m);
    return rmdir(dir);
}

static void learn(cd_learner_result *l, int jobs, const char *set) {
    cdmpp_err err = {0};
    cd_config c;
    cd_threads *pool = NULL;
    assert_ok(cd_config_init(&c, &err));
    assert_ok(cd_config_load(&c, yaml, &err));
    if (set) assert_ok(cd_config_set(&c, set, &err));
    assert_ok(cd_config_check(&c, yaml, &err));
    assert_ok(cd_threads_new(jobs, &pool, &err));
    assert_ok(cd_learner_run(&c, NULL, &(cd_learner_options){.pool = pool}, l, &err));
    cd_threads_free(pool);
    cd_config_free(&c);
}

static void learns_new_tasks(void **s) {
    (void)s;
    static const char *const form[] = {"model.members=[rows]", "model.members=[program]",
                                       "model.members=[rows, program]"};
    static const double mape[] = {0.12, 0.40, 0.20}; /* a tree cannot add rows up; rows can */
    for (int k = 0; k < 3; k++) {
        cd_learner_result l;
        learn(&l, 1, form[k]);
        const cd_metric *m = &l.metrics[CD_SPLIT_PART_TEST];
        assert_int_equal(m->n, N / 5);
        if (m->mape > mape[k]) fail_msg("%s: MAPE %g", form[k], m->mape);
        assert_true(m->spearman > 0.8);
        assert_int_equal(l.n_program[0] + l.n_program[1] + l.n_program[2], N);
        cd_learner_result_free(&l);
    }
}

static void losses_learn(void **s) {
    (void)s;
    static const char *const loss[] = {"train.loss=squared", "train.loss=absolute",
                                       "train.loss=mape"};
    for (int k = 0; k < 3; k++) {
        cd_learner_result l;
        learn(&l, 1, loss[k]);
        if (l.metrics[CD_SPLIT_PART_TEST].mape > 0.25)
            fail_msg("%s: MAPE %g", loss[k], l.metrics[CD_SPLIT_PART_TEST].mape);
        cd_learner_result_free(&l);
    }
}

static void same_bytes_for_any_threads(void **s) {
    (void)s;
    cd_learner_result a, b, c;
    learn(&a, 1, NULL);
    learn(&b, 2, NULL);
    learn(&c, 4, NULL);
    assert_int_equal(a.file.n, b.file.n);
    assert_memory_equal(a.file.p, b.file.p, a.file.n);
    assert_int_equal(a.file.n, c.file.n);
    assert_memory_equal(a.file.p, c.file.p, a.file.n);
    cd_learner_result_free(&a);
    cd_learner_result_free(&b);
    cd_learner_result_free(&c);
}

static void file_predicts_the_same(void **s) {
    (void)s;
    cdmpp_err err = {0};
    cd_learner_result l;
    cd_model *m = NULL;
    cd_model_scratch *sc = NULL;
    char path[80];
    static float row[4 * CD_N_COL];
    const int64_t ptr[] = {0, 4};
    uint32_t dev[] = {0};
    double y = 0, z = 0, twice = 0;
    learn(&l, 1, NULL);
    snprintf(path, sizeof path, "%s/m.cdmpp", dir);
    assert_ok(cd_file_write(path, l.file.p, l.file.n, &err));
    assert_ok(cd_model_load(path, &m, &err));
    assert_ok(cd_model_scratch_new(&sc, &err));
    make_rows(3 * N_LINE, row, 4);
    assert_ok(predict_rows(l.model, sc, row, ptr, dev, 1, &y, &err));
    assert_ok(predict_rows(m, sc, row, ptr, dev, 1, &z, &err));
    assert_true(y == z);
    for (int c = 0; c < CD_N_COL; c++) { /* the order of rows is nothing */
        const float x = row[c];
        row[c] = row[2 * CD_N_COL + c];
        row[2 * CD_N_COL + c] = x;
    }
    assert_ok(predict_rows(m, sc, row, ptr, dev, 1, &z, &err));
    assert_close(y, z, 1e-12, 0);
    assert_int_equal(cd_model_find_device(m, "slow", 4), 1);
    assert_int_equal(cd_model_find_device(m, "slower", 6), -1);
    dev[0] = 1;
    assert_ok(predict_rows(m, sc, row, ptr, dev, 1, &twice, &err));
    assert_close(twice / z, 2, 0.1, 0);
    dev[0] = 2;
    assert_status(predict_rows(m, sc, row, ptr, dev, 1, &twice, &err), CDMPP_EMODEL);
    assert_non_null(
        strstr(cd_model_header(m), "\"split\":{\"kind\":\"task\",\"seed\":1,\"digest\":\""));
    cd_model_scratch_free(sc);
    cd_model_free(m);
    cd_learner_result_free(&l);
}

static void scramble_test_part(const cd_config *c, cd_dataset *d) {
    cdmpp_err err = {0};
    cd_filter_count count;
    cd_split *split;
    uint8_t *keep = calloc(d->n, 1);
    const cd_split_spec spec = {.kind = (cd_split_kind)c->split_kind,
                                .seed = (uint64_t)c->split_seed,
                                .valid = c->split_valid,
                                .test = c->split_test};
    assert_ok(cd_filter(d, &(cd_filter_spec){0}, keep, &count, &err));
    assert_ok(cd_split_make(d, keep, &spec, &split, &err));
    for (size_t i = 0; i < d->n; i++)
        if (split->part[i] == CD_SPLIT_PART_TEST) d->latency_s[i] = 1e-9 * (double)(i + 1);
    cd_split_free(split);
    free(keep);
}

/* A trial on data loaded before gives the training's figures, whatever
 * the latencies of the test part are. */
static void trial_equals_training(void **s) {
    (void)s;
    cdmpp_err err = {0};
    cd_learner_result l;
    cd_config c;
    cd_dataset *d = NULL;
    cd_metric valid;
    cd_buf notes = {0};
    learn(&l, 1, "train.rounds=20");
    assert_ok(cd_config_init(&c, &err));
    assert_ok(cd_config_load(&c, yaml, &err));
    assert_ok(cd_config_set(&c, "train.rounds=20", &err));
    assert_ok(cd_dataset_load(c.data_files.v, c.data_files.n, &d, &err));
    assert_ok(cd_learner_try(&c, d, NULL, NULL, NULL, &notes, &valid, &err));
    assert_memory_equal(&valid, &l.metrics[CD_SPLIT_PART_VALID], sizeof valid);
    scramble_test_part(&c, d);
    assert_ok(cd_learner_try(&c, d, NULL, NULL, NULL, &notes, &valid, &err));
    assert_memory_equal(&valid, &l.metrics[CD_SPLIT_PART_VALID], sizeof valid);
    cd_buf_free(&notes);
    cd_dataset_free(d);
    cd_config_free(&c);
    cd_learner_result_free(&l);
}

static void damage_is_found(void **s) {
    (void)s;
    cdmpp_err err = {0};
    cd_learner_result l;
    cd_model *m = NULL;
    learn(&l, 1, "train.rounds=3");
    char *p = l.file.p;
    const size_t n = l.file.n;
    assert_ok(cd_model_from_bytes(p, n, &m, &err));
    cd_model_free(m);
    for (size_t k = 0; k < n; k += n / 61 + 1) {
        assert_status(cd_model_from_bytes(p, k, &m, &err), CDMPP_EPARSE);
        p[k] ^= 16;
        assert_true(cd_model_from_bytes(p, n, &m, &err) != CDMPP_OK);
        p[k] ^= 16;
    }
    cd_learner_result_free(&l);
}

static void errors_are_told(void **s) {
    (void)s;
    cdmpp_err err = {0};
    cd_config c;
    cd_learner_result l;
    assert_ok(cd_config_init(&c, &err));
    assert_status(cd_config_check(&c, "c.yaml", &err), CDMPP_ESCHEMA);
    assert_string_equal(err.key, "data.files");
    assert_ok(cd_config_load(&c, yaml, &err));
    assert_ok(cd_config_set(&c, "data.devices=none", &err));
    assert_status(cd_learner_run(&c, NULL, &(cd_learner_options){0}, &l, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.key, "data.devices[0]");
    cd_config_free(&c);
}

TESTS(setup, teardown, learns_new_tasks, losses_learn, same_bytes_for_any_threads,
      file_predicts_the_same, trial_equals_training, damage_is_found, errors_are_told)
