/* Trains a model of library operators: for each family two sets of trees on ln(measured / roofline
 * estimate). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learner/train/train_internal.h"

enum { CHECK_NONE, CHECK_LARGE, CHECK_DEVICE }; /* operators.check */

/* ---- rows that are trained on ---- */
static int by_work(const void *a, const void *b) {
    const cd_op_place *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    /* most work first */
    if (x->work < y->work || x->work > y->work) return x->work > y->work ? -1 : 1;
    return cd_op_place_by_number(a, b);
}

/* All rows, group by group, in the order of their numbers, or with the most work first. Free with
 * cd_mem_free. Errors: ENOMEM. */
static cdmpp_status library_op_places(const cd_config *c, const cd_library_op_data *d,
                                      bool most_work_first, cd_op_place **out, cdmpp_err *err) {
    cd_op_place *p = cd_mem_zalloc(d->n + 1, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "%zu rows", d->n);
    for (size_t i = 0; i < d->n; i++) {
        const uint64_t group =
            (uint64_t)d->device[i] * CD_N_LIBRARY_OP_KIND + (uint64_t)d->r[i].kind;
        const uint64_t number =
            cd_rng_at((uint64_t)c->operators_seed, cd_library_op_record_key(&d->r[i], 0));
        p[i] = (cd_op_place){group, number, cd_library_op_record_work(&d->r[i]), i};
    }
    qsort(p, d->n, sizeof *p, most_work_first ? by_work : cd_op_place_by_number);
    *out = p;
    return CDMPP_OK;
}

/* held[row] = 1 for the tenth of each group that stands first. */
static void library_op_first_tenth(const cd_op_place *p, size_t n, uint8_t *held) {
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && p[end].group == p[i].group; end++) {
        }
        for (size_t k = i; k < end; k++) held[p[k].row] = k - i < (end - i) / 10;
    }
}

/* ---- trees of one family ---- */
typedef struct {
    const cd_config *c;
    const cd_library_op_data *d;
    const uint8_t *use; /* (d->n) */
    unsigned sets;      /* CD_LIBRARY_OP_SET_* */
    cd_library_op_model *m;
    cd_progress_event_fn *tick;
    void *ctx;
    uint64_t n_member;
} training;

typedef struct {
    cd_arena arena;
    size_t n, width;
    float *x, *score, *grad, *hess; /* (n, width), (n) ... */
    double *target;                 /* (n) log(latency / base time) */
} matrix;

static bool in_part(const training *t, size_t i, cd_library_op_family f) {
    return t->use[i] && cd_library_op_family_of(t->d->r[i].kind) == f;
}

/* The target is the logarithm of a factor over the estimate, so sizes of operators hardly matter to
 * it. */
static cdmpp_status matrix_fill(const training *t, cd_library_op_family f, bool seen, matrix *m,
                                cdmpp_err *err) {
    uint8_t column[CD_LIBRARY_OP_N_FEATURE];
    m->width = cd_library_op_feature_columns(f, seen, column);
    for (size_t i = 0; i < t->d->n; i++) m->n += in_part(t, i, f);
    if (!m->n) return CDMPP_OK;
    m->x = CD_NEWN(&m->arena, float, m->n * m->width);
    m->score = CD_NEWN(&m->arena, float, m->n);
    m->grad = CD_NEWN(&m->arena, float, m->n);
    m->hess = CD_NEWN(&m->arena, float, m->n);
    m->target = CD_NEWN(&m->arena, double, m->n);
    if (m->arena.oom) return CD_FAIL(err, ENOMEM, "matrix of %zu rows", m->n);
    for (size_t i = 0, k = 0; i < t->d->n; i++) {
        cd_library_op_base b;
        if (!in_part(t, i, f)) continue;
        CD_TRY(cd_library_op_feature(&t->d->r[i], t->d->known[t->d->device[i]], seen,
                                     m->x + k * m->width, &b, err));
        m->target[k++] = log(t->d->r[i].latency_s / b.base_s);
    }
    return CDMPP_OK;
}

/* Part `beg` of 2 * CD_LIBRARY_OP_N_FAMILY. */
static cdmpp_status train_part(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const training *t = ctx;
    const cd_library_op_family f = (cd_library_op_family)(beg / 2);
    const bool seen = beg % 2 != 0;
    cd_library_op_model_part *p = &t->m->part[f][seen];
    char name[32];
    matrix m = {0};
    (void)end, (void)w;
    if (!(t->sets & (seen ? CD_LIBRARY_OP_SET_SEEN : CD_LIBRARY_OP_SET_UNSEEN))) return CDMPP_OK;
    snprintf(name, sizeof name, "%s%s", cd_library_op_family_name(f), seen ? "" : " unseen");
    cdmpp_status st = matrix_fill(t, f, seen, &m, err);
    const cd_op_forest j = {t->c,
                            name,
                            m.x,
                            m.target,
                            m.n,
                            m.width,
                            (uint64_t)t->c->operators_rounds,
                            t->n_member,
                            (int)t->c->operators_max_depth,
                            t->c->operators_min_child_weight,
                            t->c->operators_colsample,
                            m.score,
                            m.grad,
                            m.hess,
                            t->tick,
                            t->ctx};
    if (!st && m.n) st = cd_op_forest_grow(&j, &p->bias, &p->gbt, err);
    cd_arena_free(&m.arena);
    return st;
}

/* ---- a model of the rows in use ---- */
static cdmpp_status describe(training *t, cdmpp_err *err) {
    cd_library_op_model *m = t->m;
    bool family[CD_LIBRARY_OP_N_FAMILY] = {false};
    m->device = CD_NEWN(&m->arena, cd_library_op_model_device, t->d->n_known + 1);
    if (!m->device) return CD_FAIL(err, ENOMEM, "%zu devices", t->d->n_known);
    for (size_t v = 0; v < t->d->n_known; v++) {
        cd_library_op_model_device *d = &m->device[m->n_device];
        bool any = false;
        *d = (cd_library_op_model_device){.is = *t->d->known[v]};
        for (size_t i = 0; i < t->d->n; i++)
            if (t->use[i] && t->d->device[i] == v) {
                const cd_library_op_record *r = &t->d->r[i];
                double size[CD_LIBRARY_OP_N_SIZE],
                    *largest = m->largest[cd_library_op_kind_class(r->kind)];
                m->kind[r->kind] = m->dtype[r->dtype] = true;
                d->class[cd_library_op_kind_class(r->kind)] =
                    family[cd_library_op_family_of(r->kind)] = any = true;
                cd_library_op_record_sizes(r, size);
                for (size_t k = 0; k < CD_LIBRARY_OP_N_SIZE; k++)
                    largest[k] = fmax(largest[k], size[k]);
            }
        m->n_device += any;
    }
    for (size_t f = 0; f < CD_LIBRARY_OP_N_FAMILY; f++)
        t->n_member += family[f] ? (t->sets == CD_LIBRARY_OP_SET_BOTH ? 2 : 1) : 0;
    return t->n_member ? CDMPP_OK : CD_FAIL(err, ERANGE, "expected rows to train on, found none");
}

/* A model of the rows in `use` with these sets of trees. Errors: those of cd_library_op_train. */
static cdmpp_status library_op_fit(const cd_library_op_fitting *a, const uint8_t *use,
                                   unsigned sets, cd_library_op_model **out, cdmpp_err *err) {
    training t = {.c = a->c,
                  .d = a->d,
                  .use = use,
                  .sets = sets,
                  .tick = a->tick,
                  .ctx = a->ctx,
                  .m = cd_mem_zalloc(1, sizeof *t.m)};
    if (!t.m) return CD_FAIL(err, ENOMEM, "model");
    cdmpp_status st = describe(&t, err);
    if (!st) st = cd_threads_run(a->pool, 2 * CD_LIBRARY_OP_N_FAMILY, 1, train_part, &t, err);
    if (st) cd_library_op_model_free(t.m);
    else *out = t.m;
    return st;
}

/* ---- checking ---- */
static cdmpp_status score(const cd_library_op_model *m, const cd_library_op_data *d,
                          const uint8_t *held, cd_library_op_score *s, cdmpp_err *err) {
    for (size_t i = 0; i < d->n; i++) {
        const cd_device *v = d->known[d->device[i]];
        const cd_library_op_record *r = &d->r[i];
        double y;
        if (!held[i] ||
            !m->part[cd_library_op_family_of(r->kind)][cd_library_op_model_seen(m, r->kind, v)].gbt)
            continue;
        CD_TRY(cd_library_op_model_predict(m, r, &v, 1, &y, err));
        const cd_library_op_score_row row = {cd_library_op_kind_class(r->kind),
                                             v->name,
                                             cd_library_op_model_seen(m, r->kind, v),
                                             cd_library_op_model_beyond(m, r),
                                             y / r->latency_s - 1,
                                             (double)NAN};
        CD_TRY(cd_library_op_score_add(s, &row, err));
    }
    return CDMPP_OK;
}

/* Train on the rows in `use` that are not held, predict those that are. */
static cdmpp_status check_once(const cd_library_op_fitting *a, const uint8_t *use,
                               const uint8_t *held, cd_library_op_score *s, cdmpp_err *err) {
    const size_t n = a->d->n;
    uint8_t *part = cd_mem_zalloc(2 * n + 1, 1);
    cd_library_op_model *m = NULL;
    if (!part) return CD_FAIL(err, ENOMEM, "%zu rows", n);
    for (size_t i = 0; i < n; i++) {
        part[i] = use[i] && !held[i];
        part[n + i] = use[i] && held[i];
    }
    cdmpp_status st = library_op_fit(a, part, CD_LIBRARY_OP_SET_BOTH, &m, err);
    if (!st) st = score(m, a->d, part + n, s, err);
    cd_library_op_model_free(m);
    cd_mem_free(part);
    return st;
}

/* Each check trains a model of its own; the final one sees all rows. */
static cdmpp_status check(const cd_library_op_fitting *a, const uint8_t *use,
                          cd_library_op_score *s, cdmpp_err *err) {
    const cd_library_op_data *d = a->d;
    const int64_t what = a->c->operators_check;
    uint8_t *held = cd_mem_zalloc(d->n + 1, 1);
    cd_op_place *p = NULL;
    cdmpp_status st = CDMPP_OK;
    if (!held) st = CD_FAIL(err, ENOMEM, "%zu rows", d->n);
    if (!st && what == CHECK_LARGE) {
        st = library_op_places(a->c, d, true, &p, err);
        if (!st) library_op_first_tenth(p, d->n, held);
        if (!st) st = check_once(a, use, held, s, err);
    }
    for (size_t v = 0; !st && what == CHECK_DEVICE && d->n_known > 1 && v < d->n_known; v++) {
        for (size_t i = 0; i < d->n; i++) held[i] = d->device[i] == v;
        st = check_once(a, use, held, s, err);
    }
    cd_mem_free(held);
    cd_mem_free(p);
    return st;
}

/* ---- the door ---- */
static cdmpp_status
library_op_calibrate(const cd_library_op_fitting *a, const uint8_t *use, cd_library_op_model *m,
                     cd_library_op_coverage out[CD_LIBRARY_OP_N_HELD][CD_N_LIBRARY_OP_CLASS + 1],
                     cdmpp_err *err);

/* The rows are drawn by a hash of each row, so the order of the tables does not matter. */
cdmpp_status cd_library_op_train(const cd_config *c, const cd_library_op_data *d, cd_threads *pool,
                                 cd_progress_event_fn *tick, void *ctx,
                                 cd_library_op_train_result *out, cdmpp_err *err) {
    const size_t most = c->operators_max_rows ? (size_t)c->operators_max_rows : SIZE_MAX;
    uint8_t *use = cd_mem_zalloc(d->n + 1, 1);
    const cd_library_op_fitting a = {c, d, pool, tick, ctx};
    cd_op_place *p = NULL;
    cd_buf source = {0};
    cdmpp_status st = CDMPP_OK;
    if (!use) st = CD_FAIL(err, ENOMEM, "%zu rows", d->n);
    if (!st) st = library_op_places(c, d, false, &p, err);
    if (!st) cd_op_draw(p, d->n, most, use);
    for (size_t i = 0; !st && i < d->n; i++) out->n_row += use[i];
    if (!st && c->operators_check != CHECK_NONE) st = check(&a, use, &out->check, err);
    if (!st) st = library_op_fit(&a, use, CD_LIBRARY_OP_SET_BOTH, &out->model, err);
    if (!st) st = library_op_calibrate(&a, use, out->model, out->coverage, err);
    if (!st) {
        cd_op_provenance(&source, c, d->n, out->n_row);
        if (source.oom) st = CD_FAIL(err, ENOMEM, "model header");
        else st = cd_library_op_model_encode(out->model, source.p, &out->file, err);
    }
    cd_buf_free(&source);
    cd_mem_free(use);
    cd_mem_free(p);
    return st;
}

void cd_library_op_train_result_free(cd_library_op_train_result *l) {
    cd_library_op_model_free(l->model);
    cd_buf_free(&l->file);
    cd_library_op_score_free(&l->check);
    memset(l, 0, sizeof *l);
}

/* Intervals of an operator model: trainings without rows of like sizes, without the largest rows,
 * without a device and without a maker's devices tell how far measured times are from predictions
 * of what a training did not see. Nothing of the model itself is chosen by them. */

enum { FOLDS = 4, OCTAVES = 3 };
static const double LEVEL = 0.9; /* of the coverage that is reported */

/* ---- folds ---- */
/* Rows of like sizes stand in one fold, whatever their operator, type and device. `octaves`: how
 * many factors of two a block of sizes is wide. */
static uint8_t fold_of(const cd_config *c, const cd_library_op_record *r, int octaves) {
    const double size[] = {r->b, r->m, r->n, r->k, r->cin, r->ksize, r->size};
    uint64_t h = (uint64_t)cd_library_op_family_of(r->kind);
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        h = cd_rng_at(h, (uint64_t)(octaves ? lround(log2(size[i] + 1) / octaves)
                                            : lround(1e3 * log2(size[i] + 1))));
    return (uint8_t)(cd_rng_at((uint64_t)c->operators_seed, h) % FOLDS);
}

/* Blocks are wide, for a table of new sizes stands apart from those of the training; narrower where
 * a family's rows do not fill all folds. */
static void fill_folds(const cd_library_op_fitting *a, const uint8_t *use, uint8_t *fold) {
    const cd_library_op_data *d = a->d;
    for (int f = 0; f < CD_LIBRARY_OP_N_FAMILY; f++) {
        unsigned filled = 0;
        for (int octaves = OCTAVES; octaves >= 0 && filled + 1 != 1u << FOLDS; octaves--) {
            filled = 0;
            for (size_t i = 0; i < d->n; i++) {
                if (cd_library_op_family_of(d->r[i].kind) != (cd_library_op_family)f) continue;
                fold[i] = fold_of(a->c, &d->r[i], octaves);
                filled |= use[i] ? 1u << fold[i] : 0;
            }
        }
    }
}

/* ---- one training ---- */
typedef struct {
    const cd_library_op_fitting *a;
    const uint8_t *use; /* (d->n) rows that may be trained on */
    /* (d->n_known) number of the device's stack: devices of one lockstep width */
    uint32_t *stack;
    /* (d->n) large: the tenth with the most work; wide: beyond a part of the sizes */
    uint8_t *train, *ask, *fold, *large, *wide;
    cd_library_op_residual *r; /* (n) */
    size_t n, room;
} calibrating;

static cdmpp_status put(calibrating *k, const cd_library_op_residual *r, cdmpp_err *err) {
    if (k->n == k->room) {
        const size_t room = k->room ? 2 * k->room : 4096;
        cd_library_op_residual *v = cd_mem_realloc(k->r, k->room * sizeof *v, room * sizeof *v);
        if (!v) return CD_FAIL(err, ENOMEM, "%zu residuals", room);
        k->r = v;
        k->room = room;
    }
    k->r[k->n++] = *r;
    return CDMPP_OK;
}

static bool is_new(cd_library_op_held h) {
    return h == CD_LIBRARY_OP_HELD_DEVICE || h == CD_LIBRARY_OP_HELD_STACK;
}

/* Rows that the trained trees answer: a device of which no row is trained on is asked as a new one,
 * and only then. */
static size_t answered(const calibrating *k, const cd_library_op_model *m, cd_library_op_held held,
                       size_t *row) {
    const cd_library_op_data *d = k->a->d;
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++) {
        const cd_library_op_kind kind = d->r[i].kind;
        const bool seen = k->ask[i] && cd_library_op_model_seen(m, kind, d->known[d->device[i]]);
        if (k->ask[i] && seen != is_new(held) && m->part[cd_library_op_family_of(kind)][seen].gbt)
            row[n++] = i;
    }
    return n;
}

typedef struct {
    size_t *row;
    cd_library_op_record *r;
    const cd_device **device;
    double *s;
} asked;

/* What a device's larger rows have in common is one draw, so they are held out together. */
static uint32_t large_part(const calibrating *k, size_t i) {
    return k->a->d->n_known > 1 ? k->a->d->device[i] : k->fold[i];
}

static cdmpp_status residuals(calibrating *k, const cd_library_op_model *m, cd_library_op_held held,
                              uint32_t part, asked *q, cdmpp_err *err) {
    const cd_library_op_data *d = k->a->d;
    const size_t n = answered(k, m, held, q->row);
    for (size_t j = 0; j < n; j++) {
        q->r[j] = d->r[q->row[j]];
        q->device[j] = d->known[d->device[q->row[j]]];
    }
    CD_TRY(cd_library_op_model_predict(m, q->r, q->device, n, q->s, err));
    for (size_t j = 0; j < n; j++) {
        const size_t i = q->row[j];
        const cd_library_op_apart apart = cd_library_op_model_apart(m, &q->r[j], q->device[j]);
        const cd_library_op_residual one = {
            .held = held,
            .class = cd_library_op_kind_class(d->r[i].kind),
            .device = d->device[i],
            .part = held == CD_LIBRARY_OP_HELD_LARGE ? large_part(k, i) : part,
            .stack = k->stack[d->device[i]],
            .predicted_s = q->s[j],
            .reach = apart.reach,
            .distance = fmax(apart.distance, 0),
            .log_ratio = log(d->r[i].latency_s / q->s[j])};
        CD_TRY(put(k, &one, err));
    }
    return CDMPP_OK;
}

static cdmpp_status ask_all(calibrating *k, const cd_library_op_model *m, cd_library_op_held held,
                            uint32_t part, cdmpp_err *err) {
    const size_t n = k->a->d->n + 1;
    asked q = {cd_mem_zalloc(n, sizeof *q.row), cd_mem_zalloc(n, sizeof *q.r),
               cd_mem_zalloc(n, sizeof *q.device), cd_mem_zalloc(n, sizeof *q.s)};
    cdmpp_status st = CDMPP_OK;
    if (!q.row || !q.r || !q.device || !q.s) st = CD_FAIL(err, ENOMEM, "%zu rows", n);
    if (!st) st = residuals(k, m, held, part, &q, err);
    cd_mem_free(q.row);
    cd_mem_free(q.r);
    cd_mem_free(q.device);
    cd_mem_free(q.s);
    return st;
}

/* Rows and sizes held out ask the trees that see devices, devices held out the others: only those
 * are trained. */
static cdmpp_status once(calibrating *k, cd_library_op_held held, uint32_t part, cdmpp_err *err) {
    const size_t n = k->a->d->n;
    cd_library_op_model *m = NULL;
    size_t train = 0, ask = 0;
    for (size_t i = 0; i < n; i++) {
        train += k->train[i];
        ask += k->ask[i];
    }
    if (!train || !ask) return CDMPP_OK;
    const unsigned sets = is_new(held) ? CD_LIBRARY_OP_SET_UNSEEN : CD_LIBRARY_OP_SET_SEEN;
    cdmpp_status st = library_op_fit(k->a, k->train, sets, &m, err);
    if (!st) st = ask_all(k, m, held, part, err);
    cd_library_op_model_free(m);
    return st;
}

static cdmpp_status without_rows(calibrating *k, cdmpp_err *err) {
    const cd_library_op_data *d = k->a->d;
    for (uint8_t f = 0; f < FOLDS; f++) {
        for (size_t i = 0; i < d->n; i++) {
            k->train[i] = k->use[i] && k->fold[i] != f;
            k->ask[i] = k->use[i] && k->fold[i] == f;
        }
        CD_TRY(once(k, CD_LIBRARY_OP_HELD_ROW, f, err));
    }
    return CDMPP_OK;
}

/* Once the tenth with the most work, as what is a little beyond; once all that is beyond a part of
 * the sizes, as what is far beyond. */
static cdmpp_status without_large(calibrating *k, cdmpp_err *err) {
    const uint8_t *const held[] = {k->large, k->wide};
    for (size_t h = 0; h < 2; h++) {
        for (size_t i = 0; i < k->a->d->n; i++) {
            k->train[i] = k->use[i] && !held[h][i];
            k->ask[i] = k->use[i] && held[h][i];
        }
        CD_TRY(once(k, CD_LIBRARY_OP_HELD_LARGE, 0, err));
    }
    return CDMPP_OK;
}

/* Rows beyond an eighth of the most work of their class, or beyond half of its range of another
 * size. */
static void find_wide(const cd_library_op_data *d, const uint8_t *use, uint8_t *wide) {
    double size[CD_LIBRARY_OP_N_SIZE], low[CD_N_LIBRARY_OP_CLASS][CD_LIBRARY_OP_N_SIZE],
        high[CD_N_LIBRARY_OP_CLASS][CD_LIBRARY_OP_N_SIZE] = {{0}};
    for (size_t i = 0; i < d->n; i++) {
        const cd_library_op_class c = cd_library_op_kind_class(d->r[i].kind);
        cd_library_op_record_sizes(&d->r[i], size);
        for (size_t k = 0; use[i] && k < CD_LIBRARY_OP_N_SIZE; k++) {
            low[c][k] = high[c][k] > 0 ? fmin(low[c][k], size[k]) : size[k];
            high[c][k] = fmax(high[c][k], size[k]);
        }
    }
    for (size_t i = 0; i < d->n; i++) {
        const cd_library_op_class c = cd_library_op_kind_class(d->r[i].kind);
        cd_library_op_record_sizes(&d->r[i], size);
        for (size_t k = 0; k < CD_LIBRARY_OP_N_SIZE; k++) {
            const double cut = high[c][k] / (k ? 2 : 8);
            /* a size that hardly varies divides nothing */
            wide[i] |= use[i] && size[k] > cut && low[c][k] <= cut;
        }
    }
}

/* The largest rows of the other devices are left out, too: a new device is asked for sizes that
 * nobody measured. */
static cdmpp_status without_devices(calibrating *k, const uint8_t *some, cdmpp_err *err) {
    const cd_library_op_data *d = k->a->d;
    for (size_t v = 0; v < d->n_known && d->n_known > 2; v++) {
        for (size_t i = 0; i < d->n; i++) {
            k->train[i] = some[i] && d->device[i] != v && !k->large[i];
            k->ask[i] = some[i] && d->device[i] == v;
        }
        CD_TRY(once(k, CD_LIBRARY_OP_HELD_DEVICE, (uint32_t)v, err));
    }
    return CDMPP_OK;
}

/* What another maker's devices are off by, as far as two makers tell. */
static cdmpp_status without_stacks(calibrating *k, const uint8_t *some, cdmpp_err *err) {
    const cd_library_op_data *d = k->a->d;
    uint32_t n = 0;
    for (size_t v = 0; v < d->n_known; v++) {
        size_t u = 0;
        while (u < v && !cd_library_op_same_stack(d->known[u], d->known[v])) u++;
        k->stack[v] = u < v ? k->stack[u] : n++;
    }
    for (uint32_t s = 0; s < n && n > 1; s++) {
        for (size_t i = 0; i < d->n; i++) {
            const bool of = k->stack[d->device[i]] == s;
            k->train[i] = some[i] && !of && !k->large[i];
            k->ask[i] = some[i] && of;
        }
        CD_TRY(once(k, CD_LIBRARY_OP_HELD_STACK, s, err));
    }
    return CDMPP_OK;
}

/* ---- all ---- */
static cdmpp_status run(calibrating *k, uint8_t *some, cdmpp_err *err) {
    const cd_library_op_data *d = k->a->d;
    cd_op_place *p = NULL;
    cdmpp_status st = library_op_places(k->a->c, d, true, &p, err);
    if (!st) library_op_first_tenth(p, d->n, k->large);
    cd_mem_free(p);
    if (!st) st = library_op_places(k->a->c, d, false, &p, err);
    if (st) return st;
    cd_op_draw(p, d->n, (size_t)k->a->c->operators_calibration_rows, some);
    cd_mem_free(p);
    for (size_t i = 0; i < d->n; i++) some[i] = some[i] && k->use[i];
    fill_folds(k->a, k->use, k->fold);
    find_wide(d, k->use, k->wide);
    CD_TRY(without_rows(k, err));
    CD_TRY(without_large(k, err));
    CD_TRY(without_stacks(k, some, err)); /* numbers the stacks */
    return without_devices(k, some, err);
}

/* The model numbers devices that it was trained on, the residuals those of the data. */
static void name_devices(const cd_library_op_data *d, cd_library_op_model *m) {
    for (size_t i = 0; i < m->n_spread; i++)
        for (uint32_t k = 0; m->spread[i].device != CD_LIBRARY_OP_ANY_DEVICE && k < m->n_device;
             k++)
            if (!strcmp(m->device[k].is.name, d->known[m->spread[i].device]->name)) {
                m->spread[i].device = k;
                break;
            }
}

/* Intervals of `m` from rows, sizes and devices that were held out of models of their own; `use`:
 * the rows that m is trained on. Nothing where operators.calibration_rows is 0. out: coverage of
 * the level 0.9, each part by intervals fitted without it. Errors: those of cd_library_op_train. */
static cdmpp_status
library_op_calibrate(const cd_library_op_fitting *a, const uint8_t *use, cd_library_op_model *m,
                     cd_library_op_coverage out[CD_LIBRARY_OP_N_HELD][CD_N_LIBRARY_OP_CLASS + 1],
                     cdmpp_err *err) {
    const size_t n = a->d->n;
    if (!a->c->operators_calibration_rows) return CDMPP_OK;
    uint8_t *flags = cd_mem_zalloc(6 * n + 1, 1);
    uint32_t *stack = cd_mem_zalloc(a->d->n_known + 1, sizeof *stack);
    calibrating k = {.a = a, .use = use, .stack = stack};
    cdmpp_status st = flags && stack ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu rows", n);
    if (!st) {
        uint8_t **const part[] = {&k.train, &k.ask, &k.fold, &k.large, &k.wide};
        for (size_t i = 0; i < 5; i++) *part[i] = flags + i * n;
        st = run(&k, flags + 5 * n, err);
    }
    if (!st) st = cd_library_op_spread_fit(k.r, k.n, &m->arena, &m->spread, &m->n_spread, err);
    if (!st) name_devices(a->d, m);
    for (int h = 0; !st && h < CD_LIBRARY_OP_N_HELD; h++)
        st = cd_library_op_spread_check(k.r, k.n, (cd_library_op_held)h, LEVEL, out[h], err);
    cd_mem_free(k.r);
    cd_mem_free(flags);
    cd_mem_free(stack);
    return st;
}
