/* bench_boost DATA.h5 DIR [KEY=VALUE ...] -- trees of one member on the train part of a split.
 *
 *   DIR/train.x, valid.x   the matrices, little-endian float32, row-major
 *   DIR/train.y, valid.y   ln of the latency of each matrix row's program, float32
 *   DIR/model.ubj          the trees, XGBoost's own form
 *   stdout                 "cdmpp rows=.. valid_rows=.. width=.. bias=.. rounds=.. cpu_s=.."
 *                          and the figures of the member itself, without calibration,
 *                          on the validation part
 *
 * DIR "-": no files. cpu_s is from the end of the first round to the end of the last: what
 * boosting costs without loading and quantising. scripts/bench_xgb.py trains XGBoost's Python
 * package on the same files. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/core.h"
#include "base/io/io.h"
#include "learner/train/train_internal.h"
#include "learner/report/report.h"
#include "learner/config/config.h"
#include "learner/train/training_set.h"

typedef struct {
    cd_config c;
    cd_training_set t;
    cd_member m;
    cd_boost_set part[2]; /* train, validation */
    double first, last;   /* CPU seconds at the end of the first and last round */
} rig;

static bool on_round(void *ctx, const cd_progress_event *t) {
    rig *r = ctx;
    r->last = cd_clock_process();
    if (t->step == 1) r->first = r->last;
    return true;
}

static cdmpp_status list(const cd_training_set *t, cd_split_part p, cd_boost_set *out,
                         cdmpp_err *err) {
    const size_t n = t->split->n_program[p];
    double *log_s = cd_mem_zalloc(n + 1, sizeof *log_s);
    uint32_t *group = cd_mem_zalloc(n + 1, sizeof *group);
    *out = (cd_boost_set){n, t->program[p], log_s, group};
    if (!log_s || !group) return CD_FAIL(err, ENOMEM, "%zu programs", n);
    for (size_t i = 0; i < n; i++) {
        log_s[i] = t->log_s[t->program[p][i]];
        group[i] = t->group[t->program[p][i]];
    }
    return CDMPP_OK;
}

/* ---- the files ---- */
static cdmpp_status put(const char *dir, const char *part, const char *what, const cd_buf *b,
                        cdmpp_err *err) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s", dir, part, what);
    if (b->oom) return CD_FAIL(err, ENOMEM, "%s", path);
    return cd_file_write(path, b->p, b->n, err);
}

/* Matrix and labels of a part, appended; a big-endian machine would write its own order. */
static cdmpp_status matrix(const rig *r, const cd_boost_set *s, cd_buf *x, cd_buf *y,
                           cdmpp_err *err) {
    const cd_program_view *v = &r->t.view;
    const cd_tree_input_form form = cd_member_form(r->m.kind);
    const size_t n_col = r->t.d->n_col, width = cd_tree_input_width(form);
    for (size_t i = 0; i < s->n; i++) {
        const size_t p = s->program[i], n_row = (size_t)(v->row_ptr[p + 1] - v->row_ptr[p]),
                     h = cd_tree_input_height(form, n_row);
        const float label = (float)s->log_s[i];
        float *one = cd_mem_zalloc(h, width * sizeof *one);
        if (!one) return CD_FAIL(err, ENOMEM, "matrix rows");
        cd_tree_input_fill(form, v->row + (size_t)v->row_ptr[p] * n_col, n_row, v->device[p], one);
        cd_buf_put(x, (const char *)one, h * width * sizeof *one);
        for (size_t k = 0; k < h; k++) cd_buf_put(y, (const char *)&label, sizeof label);
        cd_mem_free(one);
    }
    return CDMPP_OK;
}

static cdmpp_status files(const rig *r, const char *dir, size_t rows[2], cdmpp_err *err) {
    static const char *const name[2] = {"train", "valid"};
    cdmpp_status st = CDMPP_OK;
    for (int k = 0; k < 2 && !st; k++) {
        cd_buf x = {0}, y = {0};
        st = matrix(r, &r->part[k], &x, &y, err);
        if (!st && strcmp(dir, "-") != 0) st = put(dir, name[k], "x", &x, err);
        if (!st && strcmp(dir, "-") != 0) st = put(dir, name[k], "y", &y, err);
        rows[k] = y.n / sizeof(float);
        cd_buf_free(&x);
        cd_buf_free(&y);
    }
    return st;
}

static cdmpp_status trees(const rig *r, const char *dir, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = strcmp(dir, "-") == 0 ? CDMPP_OK : cd_xgb_save(r->m.gbt, &b, err);
    if (!st && b.n) st = put(dir, "model", "ubj", &b, err);
    cd_buf_free(&b);
    return st;
}

/* ---- figures ---- */
static void weigh(const cd_dataset *d, const cd_boost_set *s, double *weight) {
    for (size_t i = 0; i < s->n; i++) {
        weight[i] = 0;
        for (size_t k = 0; k < d->n_net_task; k++)
            if (d->net_task[k] == d->task[s->program[i]]) weight[i] += (double)d->net_weight[k];
        if (weight[i] <= 0) weight[i] = 1;
    }
}

static cdmpp_status figures(const rig *r, cdmpp_err *err) {
    const cd_boost_set *s = &r->part[1];
    cd_metric m = {0};
    cd_member_scratch *scratch = NULL;
    double *y = cd_mem_zalloc(s->n, sizeof *y), *p = cd_mem_zalloc(s->n, sizeof *p),
           *w = cd_mem_zalloc(s->n, sizeof *w);
    cdmpp_status st = y && p && w ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", s->n);
    if (!st) st = cd_member_scratch_new(&scratch, err);
    if (!st) st = cd_member_predict(&r->m, scratch, &r->t.view, s->program, s->n, NULL, 0, p, err);
    for (size_t i = 0; i < s->n && !st; i++)
        y[i] = r->t.d->latency_s[s->program[i]], p[i] = exp(p[i]);
    if (!st) weigh(r->t.d, s, w);
    if (!st) st = cd_metric_compute(y, p, s->group, w, s->n, &m, err);
    if (!st)
        printf("validation n=%zu tasks=%zu mape=%.4f median_ape=%.4f rmse_log=%.4f spearman=%.4f "
               "pairwise=%.4f top1=%.4f top5=%.4f\n",
               m.n, m.n_spearman, m.mape, m.median_ape, m.rmse_log, m.spearman, m.pairwise, m.top1,
               m.top5);
    cd_member_scratch_free(scratch);
    cd_mem_free(y);
    cd_mem_free(p);
    cd_mem_free(w);
    return st;
}

static cdmpp_status run(rig *r, const char *dir, cdmpp_err *err) {
    cd_member_plan plan;
    size_t rows[2] = {0, 0};
    const cd_boost_run how = {.name = "bench", .nthread = 1, .tick = on_round, .ctx = r};
    CD_TRY(cd_config_check(&r->c, "bench_boost", err));
    CD_TRY(cd_member_plan_of(&r->c, &plan, err));
    CD_TRY(cd_training_set_make(&r->t, &r->c, NULL, NULL, err));
    r->m.kind = plan.kind[0];
    if (cd_member_is_net(r->m.kind)) return CD_FAIL(err, ESCHEMA, "model.members: expected trees");
    CD_TRY(list(&r->t, CD_SPLIT_PART_TRAIN, &r->part[0], err));
    CD_TRY(list(&r->t, CD_SPLIT_PART_VALID, &r->part[1], err));
    CD_TRY(files(r, dir, rows, err));
    CD_TRY(cd_boost(&r->t.view, &r->part[0], &r->part[1], &r->c, &how, &r->m, err));
    CD_TRY(trees(r, dir, err));
    printf("cdmpp rows=%zu valid_rows=%zu width=%zu bias=%.9g rounds=%d cpu_s=%.3f\n", rows[0],
           rows[1], cd_tree_input_width(cd_member_form(r->m.kind)), r->m.bias,
           cd_xgb_rounds(r->m.gbt), r->last - r->first);
    return figures(r, err);
}

int main(int argc, char **argv) {
    static rig r;
    cdmpp_err err = {0};
    char text[512], files_key[512];
    if (argc < 3) return fprintf(stderr, "bench_boost: expected DATA.h5 DIR [KEY=VALUE ...]\n"), 2;
    snprintf(files_key, sizeof files_key, "data.files=%s", argv[1]);
    cdmpp_status st = cd_config_init(&r.c, &err);
    if (!st) st = cd_config_set(&r.c, files_key, &err);
    if (!st) st = cd_config_set(&r.c, "model.members=[sums]", &err);
    for (int k = 3; !st && k < argc; k++) st = cd_config_set(&r.c, argv[k], &err);
    if (!st) st = run(&r, argv[2], &err);
    if (st) fprintf(stderr, "bench_boost: %s\n", cdmpp_err_format(&err, text, sizeof text));
    for (int k = 0; k < 2; k++) {
        cd_mem_free((void *)(uintptr_t)r.part[k].log_s);
        cd_mem_free((void *)(uintptr_t)r.part[k].group);
    }
    cd_member_free(&r.m);
    cd_training_set_free(&r.t);
    cd_config_free(&r.c);
    return cdmpp_exit_code(st);
}
