/* How far answers are off for operators of language models that have a library, a kernel, a type or
 * a kind that no training row of their family has: one value of each after another is held out of a
 * training, and its rows are asked as somebody would ask them who never saw it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/train/train_internal.h"

/* What rows tell of the kernels that they ran: the least time of a call, where times do not fall
 * with the work; whether query heads are served one at a time. */

enum { MIN_ROWS_CALLS = 20, STEPS = 20, KERNEL_BITS = 24 /* of the key */ };
#define WIDEST 0.6  /* the largest floor tried is this quantile of the times */
#define GAIN   0.75 /* of the error without a floor: with more there is none */
/* of ln floors of kernels of one library and type: 0.5, 0.7 and 1 were compared on train rows of
 * A100, H100 and L40S; the variance of the floors themselves is near 0.5 */
#define VARIANCE 0.6
/* rows of that many times the floor tell what the GPU takes for its estimate */
#define OVER 1.3

/* A row of a group. The key tells kind, type, library and kernel; then the device. */
typedef struct {
    uint64_t key;
    uint32_t device;
    double time, base, alone; /* ln; alone: of alone_s, -inf where there is none */
} row;

static int by_key(const void *a, const void *b) {
    const row *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    return x->time < y->time ? -1 : x->time > y->time;
}

/* Median of how much longer than its estimate a row takes, of the rows from `from` on. */
static double factor_of(const row *r, size_t from, size_t n, double *some) {
    if (from >= n) return NAN;
    for (size_t i = from; i < n; i++) some[i - from] = r[i].time - r[i].base;
    cd_sort_doubles(some, n - from);
    return some[(n - from) / 2];
}

static double error_of(const row *r, size_t n, double floor, double factor) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += fmin(1, fabs(r[i].time - fmax(floor, r[i].base + factor)));
    return sum / (double)n;
}

/* ln of the floor that explains the times of one kernel on one device, sorted; NaN: none does. */
static double floor_of(const row *r, size_t n, double *some) {
    const double without = error_of(r, n, -INFINITY, factor_of(r, 0, n, some));
    double best = NAN, least = GAIN * without;
    for (size_t k = 0; k <= STEPS && n >= MIN_ROWS_CALLS; k++) {
        const size_t at = (size_t)((double)(n - 1) * WIDEST * (double)k / STEPS);
        size_t from = at;
        while (from < n && r[from].time < r[at].time + log(OVER)) from++;
        const double factor = n - from >= MIN_ROWS_CALLS / 4 ? factor_of(r, from, n, some) : 0,
                     error = error_of(r, n, r[at].time, factor);
        if (!(error < least)) continue;
        least = error;
        best = r[at].time;
    }
    return best;
}

static uint64_t key_of(const cd_llm_op_record *r, const cd_llm_op_codes *c) {
    return (uint64_t)r->kind << 56 | (uint64_t)r->type << 48 | (uint64_t)c->maker << KERNEL_BITS |
           (uint64_t)c->kernel;
}

/* The smallest floor of the devices that have the kernel; 0: one has none. r: rows of one kernel,
 * device after device. */
static double host_of(const row *r, size_t n, double *some) {
    double least = INFINITY;
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i; j < n && r[j].device == r[i].device;) j++;
        if (j - i < MIN_ROWS_CALLS) continue;
        const double floor = floor_of(r + i, j - i, some);
        if (isnan(floor)) return 0;
        least = fmin(least, floor);
    }
    return isfinite(least) ? exp(least) : 0;
}

/* Do the times of rows that a kernel for single query heads may have run say that one did? */
static bool is_alone(const row *r, size_t n) {
    double with = 0, without = 0;
    size_t rows = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(r[i].alone)) continue;
        with += fmin(1, fabs(r[i].time - fmax(r[i].base, r[i].alone)));
        without += fmin(1, fabs(r[i].time - r[i].base));
        rows++;
    }
    return rows >= MIN_ROWS_CALLS && with < GAIN * without;
}

/* A kernel that nobody measured, of a library and type whose kernels all wait for the host, is
 * taken to wait, too. How long is a guess from the logarithms of the others: their mean, less the
 * variance of a guess, which makes the relative error least. Calls of one kind, type and library
 * stand from `first` on; `kernels` of them have rows. */
static void unknown(cd_llm_op_model *m, size_t first, size_t kernels) {
    double sum = 0, waits = 0;
    for (size_t i = first; i < m->n_call; i++)
        if (m->call[i].host_s > 0) waits++, sum += log(m->call[i].host_s);
    if (!(waits > 0) || waits < (double)kernels) return;
    cd_llm_op_call c = m->call[first];
    c.kernel = -1, c.alone = false, c.host_s = exp(sum / waits - VARIANCE * (1 + 1 / waits));
    m->call[m->n_call++] = c;
}

static void calls(cd_llm_op_model *m, const row *r, size_t n, double *some) {
    size_t first = 0, kernels = 0;
    for (size_t i = 0, j; i < n; i = j) {
        const uint64_t key = r[i].key;
        for (j = i; j < n && r[j].key == key;) j++;
        kernels += j - i >= MIN_ROWS_CALLS;
        const cd_llm_op_call c = {(uint8_t)(key >> 56),          (uint8_t)(key >> 48),
                                  (float)(key >> 24 & 0xffffff), (float)(key & 0xffffff),
                                  host_of(r + i, j - i, some),   is_alone(r + i, j - i)};
        if (c.host_s > 0 || c.alone) m->call[m->n_call++] = c;
        if (j < n && r[j].key >> KERNEL_BITS == key >> KERNEL_BITS) continue;
        unknown(m, first, kernels);
        first = m->n_call, kernels = 0;
    }
}

cdmpp_status cd_llm_op_calls(const cd_llm_op_table *t, const uint8_t *use, const double *log_base,
                             cd_llm_op_model *m, cdmpp_err *err) {
    row *r = cd_mem_zalloc(t->n + 1, sizeof *r);
    double *some = cd_mem_zalloc(t->n + 1, sizeof *some);
    size_t n = 0, kinds = 0;
    for (size_t i = 0; r && some && i < t->n; i++) {
        const cd_llm_op_codes c =
            cd_llm_op_model_codes(m, t->names.text[t->r[i].stack], t->names.text[t->r[i].kernel]);
        cd_llm_op_estimate e;
        if (!use[i] || isnan(log_base[i]) || isnan(c.maker) || isnan(c.kernel)) continue;
        if (cd_llm_op_estimate_of(&t->r[i], t->known[t->device[i]], &e, NULL)) continue;
        r[n++] = (row){key_of(&t->r[i], &c), t->device[i], log(t->r[i].latency_s), log_base[i],
                       log(e.alone_s)};
    }
    if (r && some) qsort(r, n, sizeof *r, by_key);
    for (size_t i = 0; i < n; i++) kinds += !i || r[i].key != r[i - 1].key;
    m->call = CD_NEWN(&m->arena, cd_llm_op_call, 2 * kinds + 1);
    const bool ok = r && some && m->call;
    if (ok) calls(m, r, n, some);
    cd_mem_free(r);
    cd_mem_free(some);
    return ok ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu rows", t->n);
}

enum {
    MIN_ROWS = 20,
    MOST_VALUES = 12,
    GROUPS = 6 /* of types, libraries and kernels on a GPU that share operators.calibration_rows */
};

typedef cd_llm_op_novel_rows rows;

/* Rows of a family. */
typedef struct {
    cd_arena arena;
    const rows *of;
    cd_llm_op_family f;
    size_t n, width;
    uint32_t *row;                /* (n) of the table */
    float *x, *some;              /* (n, width) as a training sees them; scratch */
    float *score, *grad, *hess;   /* (n) */
    double *target, *some_target; /* (n) */
    uint64_t *value;              /* (n) of what is held out */
    cd_novelty_residual *r;       /* (n_r) */
    size_t n_r;
} family;

/* ---- rows ---- */
/* As many of each type, library and kernel of a GPU, so that what is rare has rows, too. */
static cdmpp_status draw(const rows *a, uint8_t *some, cdmpp_err *err) {
    const size_t n = a->t->n,
                 most = ((size_t)a->c->operators_calibration_rows + GROUPS - 1) / GROUPS;
    cd_op_place *p = cd_mem_zalloc(n + 1, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "%zu rows", n);
    for (size_t i = 0; i < n; i++) {
        const cd_llm_op_record *r = &a->t->r[i];
        const uint64_t names = (uint64_t)r->stack << 16 | r->kernel,
                       what = (uint64_t)r->kind << 16 | (uint64_t)r->type << 8 | r->kv;
        p[i] = (cd_op_place){cd_rng_at(cd_rng_at(a->t->device[i], what), names),
                             cd_op_forest_number(a->c, a->t, i), 0, i};
    }
    qsort(p, n, sizeof *p, cd_op_place_by_number);
    cd_op_draw(p, n, most, some);
    cd_mem_free(p);
    for (size_t i = 0; i < n; i++) some[i] = some[i] && a->use[i] && !isnan(a->log_base[i]);
    return CDMPP_OK;
}

/* Does another row of the family have a version of the same library? */
static bool has_library(const family *v, const char *stack, uint64_t but) {
    const size_t n = strcspn(stack, "-");
    for (size_t i = 0; i < v->n; i++) {
        const char *s = v->of->t->names.text[v->of->t->r[v->row[i]].stack];
        if (v->value[i] != but && strcspn(s, "-") == n && !strncmp(s, stack, n)) return true;
    }
    return false;
}

/* What is known of a row's names; hidden below CD_LLM_OP_N_NOVEL: where its value of that was never
 * seen. */
static cd_llm_op_codes codes_of(const family *v, const cd_llm_op_record *r, cd_llm_op_novel hidden,
                                bool library) {
    const rows *a = v->of;
    cd_llm_op_codes c =
        cd_llm_op_model_codes(a->m, a->t->names.text[r->stack], a->t->names.text[r->kernel]);
    if (hidden == CD_LLM_OP_NOVEL_STACK) c.stack = NAN;
    if (hidden == CD_LLM_OP_NOVEL_STACK && !library) c.maker = NAN;
    if (hidden == CD_LLM_OP_NOVEL_STACK || hidden == CD_LLM_OP_NOVEL_KERNEL) c.kernel = NAN;
    /* what a call waits for is known by type and kind */
    if (hidden != CD_LLM_OP_NOVEL_TYPE && hidden != CD_LLM_OP_NOVEL_KIND)
        cd_llm_op_model_call(a->m, r, &c);
    return c;
}

static cdmpp_status features(const family *v, const cd_llm_op_record *r, const cd_device *d,
                             const cd_llm_op_codes *c, float *out, double *target, cdmpp_err *err) {
    float x[CD_LLM_OP_N_FEATURE];
    cd_llm_op_estimate e;
    CD_TRY(cd_llm_op_feature(r, d, c, NULL, x, &e, err));
    memcpy(out, x, v->width * sizeof *x);
    *target = log(r->latency_s) - log(e.base_s);
    return CDMPP_OK;
}

/* As a training sees them: it forgets some names, too (llm_op_train.c). */
static cdmpp_status fill(family *v, const uint8_t *some, cdmpp_err *err) {
    const rows *a = v->of;
    v->width = cd_llm_op_feature_width(CD_LLM_OP_SET_SEEN);
    for (size_t i = 0; i < a->t->n; i++)
        v->n += some[i] && cd_llm_op_family_of((cd_llm_op_kind)a->t->r[i].kind) == v->f;
    const size_t n = v->n;
    v->row = CD_NEWN(&v->arena, uint32_t, n + 1), v->value = CD_NEWN(&v->arena, uint64_t, n + 1);
    v->x = CD_NEWN(&v->arena, float, n * v->width + 1),
    v->some = CD_NEWN(&v->arena, float, n * v->width + 1);
    v->score = CD_NEWN(&v->arena, float, n + 1), v->grad = CD_NEWN(&v->arena, float, n + 1),
    v->hess = CD_NEWN(&v->arena, float, n + 1);
    v->target = CD_NEWN(&v->arena, double, n + 1),
    v->some_target = CD_NEWN(&v->arena, double, n + 1);
    v->r = CD_NEWN(&v->arena, cd_novelty_residual, n + 1);
    if (v->arena.oom) return CD_FAIL(err, ENOMEM, "experiments with %zu rows", n);
    for (size_t i = 0, k = 0; i < a->t->n; i++) {
        const cd_llm_op_record *r = &a->t->r[i];
        if (!some[i] || cd_llm_op_family_of((cd_llm_op_kind)r->kind) != v->f) continue;
        const uint64_t number = cd_op_forest_number(a->c, a->t, i);
        cd_llm_op_codes c = codes_of(v, r, CD_LLM_OP_N_NOVEL, true);
        if (cd_rng_unit(number, 4) < 0.2) c.kernel = NAN;
        if (cd_rng_unit(number, 5) < 0.1) c.stack = NAN;
        CD_TRY(features(v, r, a->t->known[a->t->device[i]], &c, v->x + k * v->width, &v->target[k],
                        err));
        v->row[k++] = (uint32_t)i;
    }
    return CDMPP_OK;
}

/* ---- one value held out ---- */
static cdmpp_status grow(family *v, uint64_t held, double *bias, cd_xgb **out, cdmpp_err *err) {
    const cd_config *c = v->of->c;
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++) {
        if (v->value[i] == held) continue;
        memcpy(v->some + n * v->width, v->x + i * v->width, v->width * sizeof *v->x);
        v->some_target[n++] = v->target[i];
    }
    const cd_op_forest j = {.c = c,
                            .name = "new",
                            .x = v->some,
                            .target = v->some_target,
                            .n = n,
                            .width = v->width,
                            .rounds = (uint64_t)(c->operators_rounds + 1) / 2,
                            .n_member = 1,
                            .depth = (int)c->operators_max_depth,
                            .child = c->operators_min_child_weight,
                            .columns = c->operators_colsample,
                            .score = v->score,
                            .grad = v->grad,
                            .hess = v->hess};
    return cd_op_forest_grow(&j, bias, out, err);
}

/* What the training without the value knows of types. */
static void forget_type(const family *v, uint64_t held, cd_llm_op_range range[CD_LLM_OP_N_KIND]) {
    memset(range, 0, CD_LLM_OP_N_KIND * sizeof *range);
    for (size_t i = 0; i < v->n; i++) {
        const cd_llm_op_record *r = &v->of->t->r[v->row[i]];
        if (v->value[i] != held) range[r->kind].type[r->type] = true;
    }
}

static cdmpp_status ask(family *v, cd_llm_op_novel what, uint64_t held, const cd_xgb *trees,
                        double bias, cdmpp_err *err) {
    cd_llm_op_range range[CD_LLM_OP_N_KIND];
    const cd_llm_op_table *t = v->of->t;
    size_t n = 0;
    bool library = false;
    forget_type(v, held, range);
    for (size_t i = 0; i < v->n; i++) {
        const cd_llm_op_record *r = &t->r[v->row[i]];
        if (v->value[i] != held) continue;
        if (what == CD_LLM_OP_NOVEL_STACK && !n)
            library = has_library(v, t->names.text[r->stack], held);
        const cd_llm_op_codes c = codes_of(v, r, what, library);
        float x[CD_LLM_OP_N_FEATURE] = {0};
        CD_TRY(features(v, r, t->known[t->device[v->row[i]]], &c, x, &v->some_target[n], err));
        cd_llm_op_model_types(range, r, x);
        memcpy(v->some + n++ * v->width, x, v->width * sizeof *x);
    }
    CD_TRY(cd_xgb_predict(trees, v->some, n, v->width, v->score, err));
    for (size_t i = 0; i < n; i++)
        v->r[v->n_r++] =
            (cd_novelty_residual){held, v->some_target[i] - bias - (double)v->score[i]};
    return CDMPP_OK;
}

static cdmpp_status hold_out(family *v, cd_llm_op_novel what, uint64_t held, cdmpp_err *err) {
    cd_xgb *trees = NULL;
    double bias;
    cdmpp_status st = grow(v, held, &bias, &trees, err);
    if (!st) st = ask(v, what, held, trees, bias, err);
    cd_xgb_free(trees);
    return st;
}

/* ---- all values ---- */
static uint64_t value_of(const cd_llm_op_record *r, cd_llm_op_novel what) {
    if (what == CD_LLM_OP_NOVEL_STACK) return r->stack;
    if (what == CD_LLM_OP_NOVEL_KERNEL) return r->kernel;
    return what == CD_LLM_OP_NOVEL_KIND ? r->kind : (uint64_t)r->type << 8 | r->kv;
}

/* A stack or kernel without a name is no value; a kernel that is all of its library's would be a
 * library held out. */
static bool is_value(const family *v, cd_llm_op_novel what, uint64_t value) {
    uint16_t stack = 0;
    if ((what == CD_LLM_OP_NOVEL_STACK || what == CD_LLM_OP_NOVEL_KERNEL) &&
        !v->of->t->names.text[value][0])
        return false;
    if (what != CD_LLM_OP_NOVEL_KERNEL) return true;
    for (size_t i = 0; i < v->n; i++)
        if (v->value[i] == value) stack = v->of->t->r[v->row[i]].stack;
    for (size_t i = 0; i < v->n; i++)
        if (v->value[i] != value && v->of->t->r[v->row[i]].stack == stack) return true;
    return false;
}

typedef struct {
    uint64_t value;
    size_t n;
} counted;

static int by_count(const void *a, const void *b) {
    const counted *x = a, *y = b;
    if (x->n != y->n) return x->n > y->n ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

/* The values with the most rows, each of which leaves others to train on. */
static size_t values_of(family *v, cd_llm_op_novel what, counted *c) {
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < v->n; i++) v->value[i] = value_of(&v->of->t->r[v->row[i]], what);
    for (size_t i = 0; i < v->n; i++) {
        size_t k = 0;
        while (k < n && c[k].value != v->value[i]) k++;
        if (k == n) c[n++] = (counted){v->value[i], 0};
        c[k].n++;
    }
    qsort(c, n, sizeof *c, by_count);
    for (size_t k = 0; k < n && kept < MOST_VALUES; k++)
        if (c[k].n >= MIN_ROWS && v->n - c[k].n >= MIN_ROWS && is_value(v, what, c[k].value))
            c[kept++] = c[k];
    return kept;
}

static cdmpp_status one_kind(family *v, cd_llm_op_novel what, counted *c, cd_novelty *out,
                             cdmpp_err *err) {
    const size_t n = values_of(v, what, c);
    v->n_r = 0;
    for (size_t k = 0; n >= CD_NOVELTY_LEAST && k < n; k++)
        CD_TRY(hold_out(v, what, c[k].value, err));
    return cd_novelty_fit(v->r, v->n_r, out, err);
}

cdmpp_status cd_llm_op_novelties(const rows *a, cd_llm_op_family f,
                                 cd_novelty out[CD_LLM_OP_N_NOVEL], cdmpp_err *err) {
    uint8_t *some = cd_mem_zalloc(a->t->n + 1, 1);
    family v = {.of = a, .f = f};
    cdmpp_status st = CDMPP_OK;
    if (!some) st = CD_FAIL(err, ENOMEM, "%zu rows", a->t->n);
    if (!st) st = draw(a, some, err);
    if (!st) st = fill(&v, some, err);
    counted *c = st ? NULL : CD_NEWN(&v.arena, counted, v.n + 1);
    if (!st && !c) st = CD_FAIL(err, ENOMEM, "%zu values", v.n);
    for (int k = 0; !st && v.n && k < CD_LLM_OP_N_NOVEL; k++)
        st = one_kind(&v, (cd_llm_op_novel)k, c, &out[k], err);
    cd_arena_free(&v.arena);
    cd_mem_free(some);
    return st;
}
