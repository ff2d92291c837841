/* Trains a model of library operators: for each family two sets of trees on ln(measured / roofline
 * estimate). */
#include "learner/train/train_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHECK_NONE, CHECK_LARGE, CHECK_DEVICE }; /* operators.check */

/* ---- rows that are trained on ---- */
static int by_work(const void *a, const void *b) {
    const cd_op_place *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    /* most work first */
    if (x->work < y->work || x->work > y->work) return x->work > y->work ? -1 : 1;
    return cd_op_place_by_number(a, b);
}

cdmpp_status cd_library_op_places(const cd_config *c, const cd_library_op_data *d,
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

void cd_library_op_first_tenth(const cd_op_place *p, size_t n, uint8_t *held) {
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

cdmpp_status cd_library_op_fit(const cd_library_op_fitting *a, const uint8_t *use, unsigned sets,
                               cd_library_op_model **out, cdmpp_err *err) {
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
    cdmpp_status st = cd_library_op_fit(a, part, CD_LIBRARY_OP_SET_BOTH, &m, err);
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
        st = cd_library_op_places(a->c, d, true, &p, err);
        if (!st) cd_library_op_first_tenth(p, d->n, held);
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
    if (!st) st = cd_library_op_places(c, d, false, &p, err);
    if (!st) cd_op_draw(p, d->n, most, use);
    for (size_t i = 0; !st && i < d->n; i++) out->n_row += use[i];
    if (!st && c->operators_check != CHECK_NONE) st = check(&a, use, &out->check, err);
    if (!st) st = cd_library_op_fit(&a, use, CD_LIBRARY_OP_SET_BOTH, &out->model, err);
    if (!st) st = cd_library_op_calibrate(&a, use, out->model, out->coverage, err);
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
