/* Prepares the calibration of a model from out-of-fold answers: program vectors, folds, groups. */
#include "learner/train/train_internal.h"

static void program_vector(const cd_training_set *t, size_t p, float *x) {
    const cd_program_view *v = &t->view;
    cd_tree_input_fill(CD_TREE_INPUT_PROGRAM, v->row + v->row_ptr[p] * (int64_t)t->d->n_col,
                       (size_t)(v->row_ptr[p + 1] - v->row_ptr[p]), v->device[p], x);
}

/* Range of all programs that an estimator was trained on; those of the fit are not all of them with
 * one fold, or where a source of a transfer is always trained on. range: (3, width), the last a
 * program's. */
static const float *train_range(const cd_training_set *t, int without, size_t width, float *range) {
    bool first = true;
    for (size_t i = 0; i < t->d->n; i++) {
        if (i % 16 == 0) cd_spool_rest(t->view.spool);
        if (t->fold[i] == CD_FOLD_NEVER || t->fold[i] == without) continue;
        program_vector(t, i, range + 2 * width);
        cd_calibration_range_add(range, range + 2 * width, 1, width, first);
        first = false;
    }
    return first ? NULL : range;
}

typedef struct {
    cd_arena arena;
    size_t n;
    uint32_t *program;
    double *kind_log_s; /* (n_kind, n) */
    float *x, *range;
    double *log_y;
    uint32_t *fold, *group;
} arrays;

/* apart from the draws of the split, which have the same seed */
static const uint64_t draw_stream = 0x63616c69;

/* A fit takes no more than CD_CALIBRATION_MAX_PROGRAM programs and draws them by their vectors (2
 * kB each). Of data on disk vectors of all programs would not fit into memory, so programs are
 * drawn by name before. */
static cdmpp_status choose(const cd_training_set *t, const uint32_t *program, size_t n,
                           size_t n_kind, const double *kind_log_s, arrays *a, cdmpp_err *err) {
    const bool all = !cd_spool_on_disk(t->view.spool) || n <= CD_CALIBRATION_MAX_PROGRAM;
    const double share = all ? 1 : (double)CD_CALIBRATION_MAX_PROGRAM / (double)n;
    a->program = CD_NEWN(&a->arena, uint32_t, n);
    a->kind_log_s = CD_NEWN(&a->arena, double, n_kind *n);
    size_t *at = CD_NEWN(&a->arena, size_t, n);
    if (a->arena.oom) return CD_FAIL(err, ENOMEM, "%zu programs to calibrate", n);
    for (size_t i = 0; i < n; i++)
        if (all || cd_rng_unit((uint64_t)t->c->split_seed ^ draw_stream,
                               cd_stable_id_program(t->d, program[i])) < share)
            at[a->n++] = i;
    for (size_t i = 0; i < a->n; i++) {
        a->program[i] = program[at[i]];
        for (size_t k = 0; k < n_kind; k++) a->kind_log_s[k * a->n + i] = kind_log_s[k * n + at[i]];
    }
    return CDMPP_OK;
}

static cdmpp_status arrays_new(const cd_training_set *t, size_t width, arrays *a, cdmpp_err *err) {
    const size_t n = a->n;
    a->x = CD_NEWN(&a->arena, float, n *width);
    a->range = CD_NEWN(&a->arena, float, 3 * width);
    a->log_y = CD_NEWN(&a->arena, double, n);
    a->fold = CD_NEWN(&a->arena, uint32_t, n);
    a->group = CD_NEWN(&a->arena, uint32_t, n);
    if (a->arena.oom) return CD_FAIL(err, ENOMEM, "%zu programs to calibrate", n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t p = a->program[i];
        if (i % 16 == 0) cd_spool_rest(t->view.spool);
        program_vector(t, p, a->x + i * width);
        a->log_y[i] = t->log_s[p];
        a->fold[i] = t->fold[p];
        a->group[i] = t->d->task[p];
    }
    return CDMPP_OK;
}

/* The objective of the weights follows the point: MAPE for a MAPE point, else Huber. */
cdmpp_status cd_calibrate_model(const cd_training_set *t, const uint32_t *program, size_t n,
                                int without, bool plain, const double *kind_log_s, cd_threads *pool,
                                cd_model *m, cdmpp_err *err) {
    const size_t width = cd_tree_input_width(CD_TREE_INPUT_PROGRAM);
    arrays a = {0};
    if (n < 2)
        return cd_err_key(err,
                          CD_FAIL(err, ESCHEMA,
                                  "%zu of %zu programs are for validation, expected at least 2: "
                                  "leave each out once (--set model.folds=2), or more programs",
                                  n, t->d->n),
                          "split.valid");
    cdmpp_status st = choose(t, program, n, m->n_kind, kind_log_s, &a, err);
    if (!st) st = arrays_new(t, width, &a, err);
    cd_calibration_options opt = cd_calibration_options_default();
    opt.level = t->c->predict_level;
    opt.point = (cd_calibration_point)t->c->predict_point;
    opt.objective = opt.point == CD_CALIBRATION_MAPE ? CD_TREE_LOSS_MAPE : CD_TREE_LOSS_HUBER;
    opt.seed = (uint64_t)t->c->split_seed;
    opt.plain = plain;
    /* each worker has a matrix of its own, 160 MB; the answer is the same */
    opt.pool = cd_spool_on_disk(t->view.spool) ? NULL : pool;
    if (!st) {
        const cd_calibration_input in = {.n = a.n,
                                         .n_kind = m->n_kind,
                                         .width = width,
                                         .n_fold = plain ? 1 : (size_t)t->n_fold,
                                         .kind_log_s = a.kind_log_s,
                                         .log_y = a.log_y,
                                         .x = a.x,
                                         .fold = plain ? NULL : a.fold,
                                         .group = a.group,
                                         .range = train_range(t, without, width, a.range)};
        st = cd_calibration_fit(&in, &opt, &m->calib, err);
    }
    cd_arena_free(&a.arena);
    return st;
}
