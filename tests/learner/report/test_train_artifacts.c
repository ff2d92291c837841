/* What a training leaves for its report must outlive the training. */
#include "learner/report/report.h"
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "base/core/core.h"
#include "tmp.h"

enum { N = 6 };
typedef struct {
    cd_dataset d;
    cd_split split;
    cd_config c;
    double *y;
    uint32_t *task, *device, *file;
    uint64_t *line;
    char *name[5];
} data;

static char *text_copy(const char *s) {
    char *p = malloc(strlen(s) + 1);
    return strcpy(p, s);
}

/* On the heap, so that a sanitizer sees who borrows. */
static void make(data *m) {
    cdmpp_err err = {0};
    memset(m, 0, sizeof *m);
    m->y = malloc(N * sizeof *m->y);
    m->task = malloc(N * sizeof *m->task);
    m->device = malloc(N * sizeof *m->device);
    m->file = malloc(N * sizeof *m->file);
    m->line = malloc(N * sizeof *m->line);
    for (uint32_t i = 0; i < N; i++)
        m->y[i] = 1e-6 * (i + 1), m->task[i] = i % 2, m->device[i] = 0, m->file[i] = i % 2,
        m->line[i] = 40 + i;
    m->name[0] = text_copy("[\"a\", 1]"), m->name[1] = text_copy("[\"b\", 2]"),
    m->name[2] = text_copy("cpu"), m->name[3] = text_copy("a.json"),
    m->name[4] = text_copy("b,c.json");
    m->d = (cd_dataset){.n = N,
                        .latency_s = m->y,
                        .task = m->task,
                        .device = m->device,
                        .n_task = 2,
                        .n_device = 1,
                        .task_name = m->name,
                        .device_name = m->name + 2,
                        .source_file = m->file,
                        .source_line = m->line,
                        .n_source = 2,
                        .source_name = m->name + 3};
    strcpy(m->d.content_digest, "c0ffee");
    strcpy(m->split.digest, "d1ce");
    assert_ok(cd_config_init(&m->c, &err));
    assert_ok(cd_config_set(&m->c, "train.loss=absolute", &err));
}

static void gone(data *m) {
    free(m->y), free(m->task), free(m->device), free(m->file), free(m->line);
    for (int i = 0; i < 5; i++) free(m->name[i]);
    cd_config_free(&m->c);
}

TEST(outlives_the_data) {
    cdmpp_err err = {0};
    data m;
    cd_train_artifacts *k = NULL;
    cd_report r;
    const uint32_t program[] = {5, 0, 3};
    double *p = malloc(3 * sizeof *p);
    p[0] = 1, p[1] = 2, p[2] = 3;
    make(&m);
    assert_ok(cd_train_artifacts_new(&k, &err));
    const cd_filter_count f = {.in = 9, .kept = N, .drop = {3}};
    assert_ok(cd_train_artifacts_data(k, &m.c, &m.d, &m.split, &f, &err));
    assert_ok(cd_train_artifacts_part(k, CD_SPLIT_PART_TEST, &m.d, program, 3,
                                      &(cd_train_artifacts_score){.predicted_s = p, .rel_std = p},
                                      &(cd_metric){.mape = 0.5}, &err));
    gone(&m);
    free(p);
    assert_ok(cd_train_artifacts_report(k, &r, &err));
    const cd_report_part *t = &r.part[CD_SPLIT_PART_TEST];
    assert_int_equal(t->n, 3);
    assert_close(t->measured_s[0], 6e-6, 1e-15, 0);
    assert_close(t->predicted_s[2], 3, 1e-15, 0);
    assert_true(t->rel_std && !t->low_s && !t->high_s && !t->out_of_range);
    assert_int_equal(t->task[2], 1);
    assert_close(t->metrics.mape, 0.5, 1e-15, 0);
    assert_string_equal(r.task_name[1], "[\"b\", 2]");
    assert_string_equal(r.device_name[0], "cpu");
    assert_string_equal(r.loss_name, "absolute");
    assert_string_equal(r.split_digest, "d1ce");
    assert_int_equal(r.filter.drop[0], 3);
    assert_non_null(strstr(r.config, "loss: absolute"));
    cd_train_artifacts_free(k);
}

static cdmpp_status shout(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    (void)w, (void)err;
    for (size_t i = beg; i < end; i++) {
        char name[32];
        snprintf(name, sizeof name, "member %zu", 11 - i);
        for (uint64_t k = 1; k <= 200; k++)
            cd_train_artifacts_loss(ctx, &(cd_progress_event){.member = name,
                                                              .unit = "epoch",
                                                              .step = k,
                                                              .train = 1.0 / (double)k,
                                                              .valid = (double)i});
    }
    return CDMPP_OK;
}

TEST(curves_in_order) {
    cdmpp_err err = {0};
    cd_train_artifacts *k = NULL;
    cd_threads *t = NULL;
    cd_report r;
    assert_ok(cd_train_artifacts_new(&k, &err));
    assert_ok(cd_threads_new(3, &t, &err));
    assert_ok(cd_threads_run(t, 12, 1, shout, k, &err));
    cd_threads_free(t);
    assert_ok(cd_train_artifacts_report(k, &r, &err));
    assert_int_equal(r.n_curve, 12);
    assert_string_equal(r.step_name, "epoch");
    for (size_t i = 0; i < 12; i++) {
        char name[32];
        snprintf(name, sizeof name, "member %zu", i);
        assert_string_equal(r.curve[i].name, name);
        assert_int_equal(r.curve[i].n, 200);
        assert_close(r.curve[i].step[199], 200, 0, 0);
        assert_close(r.curve[i].train[99], 0.01, 1e-15, 0);
        assert_close(r.curve[i].valid[0], 11.0 - (double)i, 0, 0);
    }
    cd_train_artifacts_free(k);
}

/* dir/a.b.html gives three files; a name of another kind gets its endings added. */
TEST(three_files) {
    cdmpp_err err = {0};
    data m;
    cd_train_artifacts *k = NULL;
    tmp_dir dir = tmp_make();
    char *text;
    size_t n;
    const uint32_t program[] = {0, 1, 2};
    const double p[] = {1e-6, 2e-6, 4e-6};
    make(&m);
    assert_ok(cd_train_artifacts_new(&k, &err));
    assert_ok(cd_train_artifacts_data(k, &m.c, &m.d, &m.split,
                                      &(cd_filter_count){.in = N, .kept = N}, &err));
    assert_ok(cd_train_artifacts_part(k, CD_SPLIT_PART_TEST, &m.d, program, 3,
                                      &(cd_train_artifacts_score){.predicted_s = p, .order_s = p},
                                      &(cd_metric){.n = 3}, &err));
    static const char *const name[] = {"a.b.html", "c"};
    static const char *const file[][3] = {{"a.b.html", "a.b.json", "a.b.csv"},
                                          {"c", "c.json", "c.csv"}};
    for (int i = 0; i < 2; i++) {
        assert_ok(cd_train_artifacts_write(k, tmp_path(&dir, name[i]), "cdmpp-train x.yaml", &err));
        for (int f = 0; f < 3; f++) {
            assert_ok(cd_file_read(tmp_path(&dir, file[i][f]), 0, &text, &n, &err));
            if (f == 0)
                assert_non_null(strstr(text, i ? "<h1>Training report: c</h1>"
                                               : "<h1>Training report: a.b</h1>"));
            if (f == 1) assert_non_null(strstr(text, "\"command\":\"cdmpp-train x.yaml\""));
            if (f == 2)
                assert_non_null(strstr(
                    text, "test,\"[\"\"b\"\", 2]\",cpu,2e-06,2e-06,,,,,0,\"b,c.json\",41,2e-06\n"));
            cd_mem_free(text);
            unlink(tmp_path(&dir, file[i][f]));
        }
    }
    assert_int_equal(rmdir(dir.path), 0); /* empty: no temporary stayed */
    assert_status(cd_train_artifacts_write(k, tmp_path(&dir, "a.html"), "", &err), CDMPP_EIO);
    cd_train_artifacts_free(k);
    gone(&m);
}

TEST(nobody_wants_it) {
    cdmpp_err err = {0};
    data m;
    make(&m);
    assert_ok(cd_train_artifacts_data(NULL, &m.c, &m.d, &m.split, &(cd_filter_count){0}, &err));
    assert_ok(cd_train_artifacts_part(NULL, CD_SPLIT_PART_TEST, &m.d, NULL, 0,
                                      &(cd_train_artifacts_score){0}, &(cd_metric){0}, &err));
    cd_train_artifacts_loss(NULL, &(cd_progress_event){.member = "rows"});
    cd_train_artifacts_free(NULL);
    gone(&m);
}

TESTS(NULL, NULL, outlives_the_data, curves_in_order, three_files, nobody_wants_it)
