/* made_api.h -- small models behind the public handles, and one set of programs in every form of a
 * batch. */
#ifndef MADE_API_H
#define MADE_API_H
#include "check.h"

#include "features/rows/rows.h"
#include "features/program/program.h"
#include "made_model.h"

#define MADE_TARGET "llvm -model=zen5-avx512"
enum { MADE_TREES, MADE_MLP, MADE_TSF, MADE_N_MODEL };

typedef struct made_api {
    tmp_dir dir;
    cdmpp_tasks *tasks;
    /* trees know zen5-avx512 and e5-2673, networks the first alone */
    cdmpp_model *model[MADE_N_MODEL];
    cdmpp_task *task; /* for MADE_TARGET */
} made_api;

/* n programs in every form; text is NUL-terminated one by one. */
typedef struct made_programs {
    size_t n;
    cd_buf buf[2 * MADE_N];
    cdmpp_text record[MADE_N], steps[MADE_N];
    float *rows; /* (row_ptr[n], 164) */
    double *wide;
    int64_t row_ptr[MADE_N + 1];
    cd_buf packed;
} made_programs;

static inline const char *made_path(made_api *a, int k) {
    static const char *const name[] = {"trees.cdmpp", "mlp.cdmpp", "tsf.cdmpp"};
    return tmp_path(&a->dir, name[k]);
}

static inline cdmpp_status made_models(made_api *a, const char *key, cdmpp_err *err) {
    static const char *const target[] = {MADE_TARGET, "llvm -model=e5-2673"};
    static const char *const trees[] = {"train.rounds=60", "model.folds=2"};
    static const char *const mlp[] = {"model.members=[mlp]", "fit.epochs=2", "model.folds=2",
                                      "net.device=false"};
    static const char *const tsf[] = {"model.members=[transformer]",
                                      "net.tokens=leaves",
                                      "fit.epochs=1",
                                      "net.head=flatten",
                                      "net.slots=1",
                                      "net.device=false"};
    char h5[256];
    CD_TRY(made_extract(&a->dir, key, target, 2, h5, err));
    CD_TRY(made_learn(h5, trees, 2, made_path(a, MADE_TREES), err));
    CD_TRY(made_extract(&a->dir, key, target, 1, h5, err));
    CD_TRY(made_learn(h5, mlp, 4, made_path(a, MADE_MLP), err));
    CD_TRY(made_learn(h5, tsf, 6, made_path(a, MADE_TSF), err));
    for (int k = 0; k < MADE_N_MODEL; k++)
        CD_TRY(cdmpp_model_load(made_path(a, k), &a->model[k], err));
    return CDMPP_OK;
}

static inline int made_setup(made_api *a) {
    static const int64_t hardware[8] = {8, 64, 64, 0, 0, 0, 0, 0};
    cdmpp_err err = {0};
    char text[512];
    *a = (made_api){.dir = tmp_make()};
    cdmpp_status st = cdmpp_tasks_new(&a->tasks, &err);
    if (!st) st = cdmpp_tasks_load(a->tasks, MADE_TASKS, &err);
    const char *key = st ? NULL : cdmpp_tasks_key(a->tasks, 0);
    const cdmpp_task_info info = {
        .size = sizeof info, .workload_key = key, .target = MADE_TARGET, .hardware = hardware};
    if (!st) st = cdmpp_task_new(a->tasks, &info, &a->task, &err);
    if (!st) st = made_models(a, key, &err);
    if (st) print_error("%s\n", cdmpp_err_format(&err, text, sizeof text));
    return st != CDMPP_OK;
}

static inline void made_teardown(made_api *a) {
    for (int k = 0; k < MADE_N_MODEL; k++) cdmpp_model_free(a->model[k]);
    cdmpp_task_free(a->task);
    cdmpp_tasks_free(a->tasks);
    tmp_remove(&a->dir);
}

static inline void made_put_i32(cd_buf *b, size_t v) {
    const int32_t i = (int32_t)v;
    cd_buf_put(b, (const char *)&i, sizeof i);
}

static inline void made_pack(made_programs *p) {
    made_put_i32(&p->packed, p->n);
    for (size_t i = 0; i < p->n; i++)
        made_put_i32(&p->packed, 1 + CD_N_COL * (size_t)(p->row_ptr[i + 1] - p->row_ptr[i]));
    made_put_i32(&p->packed, p->n); /* throughputs, task ids */
    made_put_i32(&p->packed, p->n);
    for (size_t i = 0; i < p->n; i++) {
        const float k = (float)(p->row_ptr[i + 1] - p->row_ptr[i]);
        cd_buf_put(&p->packed, (const char *)&k, sizeof k);
        cd_buf_put(&p->packed, (const char *)(p->rows + p->row_ptr[i] * CD_N_COL),
                   (size_t)k * CD_N_COL * sizeof k);
    }
    for (size_t i = 0; i < 2 * p->n; i++) made_put_i32(&p->packed, 0);
}

/* Programs 0 .. n of made_record. */
static inline void made_programs_init(made_programs *p, const char *key, size_t n) {
    cdmpp_err err = {0};
    cd_task_registry *tasks;
    cd_program *program;
    cd_arena a = {0};
    *p = (made_programs){.n = n};
    p->rows = calloc(n * 8, CD_N_COL * sizeof *p->rows);
    assert_ok(cd_task_registry_new(&tasks, &err));
    assert_ok(cd_task_registry_load(tasks, MADE_TASKS, &err));
    assert_ok(cd_program_new(&program, &err));
    for (size_t i = 0; i < n; i++) {
        cd_record r;
        cd_rows rows;
        made_record(&p->buf[i], key, (int)i, MADE_TARGET, 1, 0);
        made_steps(&p->buf[n + i], (int)i);
        p->record[i] = (cdmpp_text){p->buf[i].p, p->buf[i].n};
        p->steps[i] = (cdmpp_text){p->buf[n + i].p, p->buf[n + i].n};
        assert_ok(cd_record_read(&a, p->record[i].p, p->record[i].n, &r, &err));
        assert_ok(cd_program_build(program, cd_task_registry_find(tasks, r.workload_key), &r, &rows,
                                   &err));
        assert_true(rows.n_row && rows.n_row <= 8);
        memcpy(p->rows + p->row_ptr[i] * CD_N_COL, rows.row,
               rows.n_row * CD_N_COL * sizeof *p->rows);
        p->row_ptr[i + 1] = p->row_ptr[i] + rows.n_row;
    }
    const size_t n_number = (size_t)p->row_ptr[n] * CD_N_COL;
    p->wide = calloc(n_number + 1, sizeof *p->wide);
    for (size_t k = 0; k < n_number; k++) p->wide[k] = (double)p->rows[k];
    made_pack(p);
    cd_program_free(program);
    cd_task_registry_free(tasks);
    cd_arena_free(&a);
}

static inline void made_programs_free(made_programs *p) {
    for (size_t i = 0; i < 2 * p->n; i++) cd_buf_free(&p->buf[i]);
    cd_buf_free(&p->packed);
    free(p->rows);
    free(p->wide);
}

/* Programs first .. first+n in one form. */
static inline cdmpp_batch made_batch_of(const made_api *a, const made_programs *p, cdmpp_form form,
                                        size_t first, size_t n) {
    cdmpp_batch b = {.size = sizeof b, .form = form, .n = n};
    if (form == CDMPP_RECORDS) b.text = p->record + first;
    else b.task = a->task;
    if (form == CDMPP_STEPS) b.text = p->steps + first;
    if (form == CDMPP_ROWS_F32 || form == CDMPP_ROWS_F64) {
        b.data = form == CDMPP_ROWS_F32 ? (const void *)p->rows : (const void *)p->wide;
        b.n_col = CD_N_COL;
        b.row_ptr = p->row_ptr + first;
    }
    if (form == CDMPP_PACKED) {
        b.data = p->packed.p;
        b.len = p->packed.n;
    }
    return b;
}

/* Room for every output of up to MADE_N candidates. */
typedef struct made_out {
    double score[MADE_N], seconds[MADE_N], low[MADE_N], high[MADE_N], rel_std[MADE_N];
    float score_f32[MADE_N];
    uint32_t flags[MADE_N], reason[MADE_N];
    cdmpp_status status[MADE_N];
    cdmpp_err error[MADE_N];
} made_out;

static inline cdmpp_result made_result(made_out *o) {
    /* nothing may be left as it was, nor may old bytes be equal by chance */
    memset(o, 0xA5, sizeof *o);
    return (cdmpp_result){
        sizeof(cdmpp_result), o->score, o->score_f32, o->seconds, o->low,   o->high,
        o->rel_std,           o->flags, o->status,    o->error,   o->reason};
}

static inline cdmpp_context *made_context(const made_api *a, int model, const cdmpp_options *o) {
    cdmpp_context *c = NULL;
    cdmpp_err err = {0};
    assert_ok(cdmpp_context_new(a->model[model], a->tasks, o, &c, &err));
    return c;
}
#endif
