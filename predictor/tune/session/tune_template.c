/* Asks whether a task has a template before it looks for the processor: a task of a GPU has none,
 * whatever the caches. */
#include <string.h>

#include "predictor/tune/rank/rank.h"
#include "predictor/tune/search/search.h"
#include "predictor/tune/session/session.h"
#include "predictor/tune/session/tune_template.h"
#include "predictor/tune/session/tune_tuner.h"

/* Writes the untuned schedule of a task as steps: cheap stages inlined, outer axes parallel, the
 * innermost one vectorized, nothing tiled. */

enum { VECTOR = 16, BLOCK = 256 };
enum { VECTORIZE = 2, PARALLEL = 3, BLOCK_X = 5, THREAD_X = 6 }; /* TVM's annotations */
enum { NAIVE, PLAIN, FULL };                                     /* how much of it */

typedef struct {
    cd_arena *a;
    cd_record_step *step;
    uint32_t n, cap;
    bool oom;
} steps;

/* Appends a step. Out of memory gives a spare step, so that callers need no test; `oom` is looked
 * at once, at the end. */
static cd_record_step *push(steps *s, cd_record_step_kind kind, uint32_t stage) {
    static cd_record_step spare;
    if (CD_GROW_IN(s->a, s->step, s->n, s->cap)) {
        s->oom = true;
        return &spare;
    }
    cd_record_step *t = &s->step[s->n++];
    *t = (cd_record_step){.kind = kind, .stage = (int32_t)stage};
    return t;
}

static int32_t *list(steps *s, cd_record_step *t, uint32_t n) {
    int32_t *v = CD_NEWN(s->a, int32_t, n + 1);
    if (!v) s->oom = true;
    t->n_list = v ? n : 0;
    t->list = v;
    return v;
}

static void annotate(steps *s, uint32_t stage, int32_t it, int32_t what) {
    cd_record_step *t = push(s, CD_RECORD_STEP_AN, stage);
    t->i[0] = it;
    t->i[1] = what;
}

/* Iterator `it` into an outer one and one of `len`. */
static void split(steps *s, uint32_t stage, int32_t it, int64_t extent, int64_t len) {
    cd_record_step *t = push(s, CD_RECORD_STEP_SP, stage);
    int32_t *v = list(s, t, 1);
    t->i[0] = it;
    t->i[1] = (int32_t)extent;
    t->i[2] = 1;
    if (v) v[0] = (int32_t)len;
}

static void fuse(steps *s, uint32_t stage, uint32_t n) {
    if (n < 2) return;
    int32_t *v = list(s, push(s, CD_RECORD_STEP_FU, stage), n);
    for (uint32_t k = 0; v && k < n; k++) v[k] = (int32_t)k;
}

/* Costs about as little to do again as to load again. */
static bool cheap(const cd_expr *e) {
    if (e->op == CD_CALL || e->op == CD_SELECT || e->op == CD_DIV) return false;
    for (uint32_t k = 0; k < e->n; k++)
        if (!cheap(e->a[k])) return false;
    return true;
}

static bool inlined(const cd_te_op *op, bool gpu) {
    if (op->is_output || op->n_raxis || op->red || op->n_out > 1) return false;
    return gpu || cheap(op->body[0]);
}

static void bind(steps *s, uint32_t stage, const cd_te_op *op) {
    int64_t n = 1;
    for (uint32_t k = 0; k < op->rank; k++)
        if (__builtin_mul_overflow(n, op->shape[k], &n)) n = INT32_MAX;
    if (!op->n_axis || n > INT32_MAX) return;
    fuse(s, stage, op->n_axis);
    split(s, stage, 0, n, n < BLOCK ? n : BLOCK);
    annotate(s, stage, 0, BLOCK_X);
    annotate(s, stage, 1, THREAD_X);
}

/* The longest vector that leaves no rest. */
static int64_t vector_of(int64_t extent) {
    for (int64_t k = VECTOR; k > 1; k--)
        if (extent % k == 0) return k;
    return 1;
}

static void spread(steps *s, uint32_t stage, const cd_te_op *op, int level) {
    const uint32_t n = op->n_axis, r = op->n_raxis;
    if (!n || op->rank != n) return;
    const int64_t last = op->shape[n - 1], len = level == FULL ? vector_of(last) : 1;
    if (len > 1) {
        split(s, stage, (int32_t)n - 1, last, len);
        if (r) { /* the reductions go between: n outer ones, r, the vector */
            int32_t *v = list(s, push(s, CD_RECORD_STEP_RE, stage), n + r + 1);
            for (uint32_t k = 0; v && k <= n + r; k++)
                v[k] = (int32_t)(k < n ? k : k < n + r ? k + 1 : n);
        }
    }
    fuse(s, stage, n);
    annotate(s, stage, 0, PARALLEL);
    if (len > 1) annotate(s, stage, (int32_t)r + 1, VECTORIZE);
}

static void write_steps(steps *s, const cd_tune_task *t, int level) {
    const cd_te_dag *dag = t->task->dag;
    /* as the rules do: what is read later first */
    for (uint32_t k = dag->n_op; k-- > 0 && level != NAIVE;) {
        const cd_te_op *op = &dag->op[k];
        if (op->is_placeholder) continue;
        if (inlined(op, t->gpu)) (void)push(s, CD_RECORD_STEP_CI, k);
        else if (t->gpu) bind(s, k, op);
        else spread(s, k, op, level);
    }
}

/* A record of steps alone, for lowering. */
static cdmpp_status lowers(cd_program *p, const cd_tune_task *t, const steps *s, cdmpp_err *err) {
    const cd_str target = {t->target, strlen(t->target)};
    const cd_record r = {.workload_key = {t->task->workload_key, strlen(t->task->workload_key)},
                         .target = target,
                         .hardware = t->hardware,
                         .has_hardware = true,
                         .n_step = s->n,
                         .step = s->step};
    cd_rows rows;
    return cd_program_build(p, t->task, &r, &rows, err);
}

/* From the fullest schedule to the simplest: the first that can be lowered is taken. A GPU program
 * needs its threads, so its simplest level is PLAIN. */
cdmpp_status cd_tune_baseline(cd_arena *a, cd_program *p, const cd_tune_task *t, cd_tune_cand *out,
                              cdmpp_err *err) {
    cdmpp_err why = {0};
    if (!t->task->dag) return CD_FAIL(err, ENOTASK, "the task has no definition");
    for (int level = t->gpu ? PLAIN : FULL; level >= (t->gpu ? PLAIN : NAIVE); level--) {
        steps s = {.a = a};
        write_steps(&s, t, level);
        if (s.oom) return CD_FAIL(err, ENOMEM, "steps");
        const cdmpp_status st = lowers(p, t, &s, &why);
        if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "steps");
        if (st) continue;
        *out =
            (cd_tune_cand){.key = cd_record_steps_key(s.step, s.n), .n_step = s.n, .step = s.step};
        return CDMPP_OK;
    }
    return CD_FAIL(err, EUNSUPPORTED, "no simple schedule makes a program: %s", why.msg);
}

/* The table of searches with their rankers, from CD_TUNER_MAP. */

static const cd_tune_tuner tuner[] = {
#define CD_X(name, brief, search, ranker, templates) {name, brief, search, ranker, templates},
    CD_TUNER_MAP(CD_X, CD_X)
#undef CD_X
};

const cd_tune_tuner *cd_tune_tuner_at(size_t i) {
    return i < sizeof tuner / sizeof *tuner ? &tuner[i] : NULL;
}

const cd_tune_tuner *cd_tune_tuner_find(const char *name) {
    const cd_tune_tuner *t = NULL;
    for (size_t i = 0; (t = cd_tune_tuner_at(i)) && strcmp(t->name, name) != 0; i++) {
    }
    return t;
}

cdmpp_status cd_tune_template_space(const cd_tune_task *t, const cd_tune_template_options *o,
                                    uint64_t seed, cd_tune_space **out, cd_template_machine *m,
                                    cdmpp_err *err) {
    cd_template_nest n;
    CD_TRY(cd_template_nest_read(t->task, t->gpu, &n, err));
    CD_TRY(o->machine ? cd_template_machine_of(o->machine, t->hardware.num_cores, m, err)
                      : cd_template_machine_here(o->isa, t->target, t->hardware.num_cores, m, err));
    return cd_tune_space_template(t, m, seed, out, err);
}

cdmpp_status cd_tune_template_machine(cd_arena *a, const char *name, cd_log *log,
                                      cd_device_table **devices, const cd_device **out,
                                      cdmpp_err *err) {
    const char *path;
    cd_diag diag = {0};
    cdmpp_status st = cd_device_table_path(a, NULL, NULL, &path, err);
    if (!st) st = cd_device_table_load(path, &diag, devices, err);
    if (st && diag.n) cd_log_lines(log, CD_LOG_ERROR, diag.text.p);
    if (!st) cd_device_table_say(*devices, log);
    cd_diag_free(&diag);
    return st ? st : cd_device_table_find(*devices, name, out, err);
}
