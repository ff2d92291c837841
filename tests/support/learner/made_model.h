/* made_model.h -- records of one task with made-up latencies, and models that learned them. */
#ifndef MADE_MODEL_H
#define MADE_MODEL_H
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/io/io.h"
#include "dataset/extract/extract.h"
#include "learner/train/train.h"
#include "tmp.h"

#define MADE_TASKS    "tests/fuzz/seeds/taskfile/matmul.tasks.json"
#define MADE_HARDWARE "[8, 64, 64, 0, 0, 0, 0, 0]"
enum { MADE_N = 7 * 7 * 5 };

static inline double made_latency(int i) { return 1e-3 * exp2(i % 7) / (1 + i / 7 % 7); }

/* Split the three loops of C by powers of two. */
static inline void made_steps(cd_buf *b, int i) {
    cd_buf_putf(b,
                "[[\"SP\", 2, 0, 512, [%d], 1], [\"SP\", 2, 2, 512, [%d], 1], [\"SP\", 2, 4, 512, "
                "[%d], 1]]",
                1 << i % 7, 1 << i / 7 % 7, 1 << i / 49);
}

static inline void made_record(cd_buf *b, const char *key, int i, const char *target, double cost,
                               int error) {
    cd_buf_puts(b, "{\"i\": [[");
    cd_buf_put_json_str(b, key, strlen(key));
    cd_buf_putf(b, ", \"%s\", " MADE_HARDWARE ", \"\", 0, []], [[], ", target);
    made_steps(b, i);
    cd_buf_putf(b, "]], \"r\": [[%.9g, %.9g, %.9g], %d, 1, 1600000000], \"v\": \"v0.6\"}\n", cost,
                cost, error ? cost : 1.01 * cost, error);
}

/* The registry that has their task; the caller's to free, also where it is not whole. */
static inline cdmpp_status made_registry(cd_task_registry **out, cdmpp_err *err) {
    CD_TRY(cd_task_registry_new(out, err));
    return cd_task_registry_load(*out, MADE_TASKS, err);
}

/* The first 245 records of a target, as a data set. */
static inline cdmpp_status made_extract(tmp_dir *dir, const char *key, const char *const *target,
                                        int n_target, char h5[256], cdmpp_err *err) {
    cd_buf b = {0};
    cd_extract_stats s;
    snprintf(h5, 256, "%s", tmp_path(dir, "made.h5"));
    for (int t = 0; t < n_target; t++)
        for (int i = 0; i < MADE_N; i++)
            made_record(&b, key, i, target[t], made_latency(i) * (1 + t), 0);
    const char *in[] = {tmp_put(dir, "made.json", b.p, b.n)}, *task[] = {MADE_TASKS};
    const cd_extract x = {.out = h5,
                          .input = in,
                          .n_input = 1,
                          .task_file = task,
                          .n_task_file = 1,
                          .jobs = 1,
                          .steps = true};
    cd_buf_free(&b);
    return cd_extract_logs(&x, &s, err);
}

/* Train with the settings "key=value" and write the model to `path`. */
static inline cdmpp_status made_learn(const char *h5, const char *const *set, int n,
                                      const char *path, cdmpp_err *err) {
    char files[300];
    cd_config c;
    cd_learner_result l = {0};
    cdmpp_status st = cd_config_init(&c, err);
    snprintf(files, sizeof files, "data.files=\"%s\"", h5);
    if (!st) st = cd_config_set(&c, files, err);
    if (!st) st = cd_config_set(&c, "split.kind=record", err);
    for (int i = 0; !st && i < n; i++) st = cd_config_set(&c, set[i], err);
    if (!st) st = cd_learner_run(&c, NULL, &(cd_learner_options){0}, &l, err);
    if (!st) st = cd_file_write(path, l.file.p, l.file.n, err);
    cd_learner_result_free(&l);
    cd_config_free(&c);
    return st;
}

/* The same, the model read again. */
static inline cdmpp_status made_learn_model(tmp_dir *dir, const char *name, const char *h5,
                                            const char *const *set, int n, cd_model **out,
                                            cdmpp_err *err) {
    char path[256];
    snprintf(path, sizeof path, "%s", tmp_path(dir, name));
    CD_TRY(made_learn(h5, set, n, path, err));
    return cd_model_load(path, out, err);
}

/* The file of a model that learned the records of these targets. */
static inline cdmpp_status made_learn_targets(tmp_dir *dir, const char *const *target, int n_target,
                                              const char *set, const char *path, cdmpp_err *err) {
    char h5[256];
    cd_task_registry *tasks = NULL;
    cdmpp_status st = made_registry(&tasks, err);
    if (!st)
        st = made_extract(dir, cd_task_registry_at(tasks, 0)->workload_key, target, n_target, h5,
                          err);
    if (!st) st = made_learn(h5, &set, 1, path, err);
    cd_task_registry_free(tasks);
    return st;
}
#endif
