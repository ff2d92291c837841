/* Answers of a model of operators of language models: measured, interpolated, predicted; of the
 * stack and kernel that the record names.
 *
 *   begin     features of the record
 *   own       where its device has measured rows: what the trees of set seen expect
 *   beside    neighbours
 *   choose    what they say -> which trees answer
 *   scores    of the answer, of the interval
 *   tell      scores -> the answer
 *
 * One record goes through all here; of many (llm_op_ask.c) each step is made of all before the
 * next, so that trees score many rows in one call. The bits are the same. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "learner/llm_op/llm_op_internal.h"

/* A record on its way. */
typedef struct cd_llm_op_asking {
    const cd_llm_op_record *r;
    const cd_device *d;
    long device; /* in the table; CD_LLM_OP_NONE */
    cd_llm_op_family f;
    cd_llm_op_codes c;
    unsigned has; /* CD_LLM_OP_HAS_* of its device; 0: it was not trained on */
    float x[CD_LLM_OP_N_FEATURE];
    cd_llm_op_estimate e;
    /* own: ln of what the trees of set seen expect, NaN: nobody needs it; said: by neighbours */
    double own, said;
    cd_llm_op_beside beside;
    cd_llm_op_sides near;
    /* where its row and its curves are in the table: cd_llm_op_table_hash, cd_llm_op_table_curve */
    uint64_t hash, curve[CD_LLM_OP_MAX_SIZE + 1];
    cd_llm_op_set s;
    /* of set s; NULL: it is answered, or cannot be, or the twin is asked */
    const cd_llm_op_part *p;
    const cd_device *twin; /* who is asked; NULL: nobody */
    float score, spread;
} cd_llm_op_asking;

/* Rows of a family whose expectation somebody will ask: computed together, which is faster than one
 * by one. Starts from {0}. */
enum { CD_LLM_OP_AWAITED = 256, CD_LLM_OP_AWAITED_SEEN = 1024 };
typedef struct cd_llm_op_awaited {
    uint32_t row[CD_LLM_OP_AWAITED];
    /* row + 1, by its last bits: most that come again are told */
    uint32_t seen[CD_LLM_OP_AWAITED_SEEN];
    size_t n;
} cd_llm_op_awaited;

/* ln of it for a record; without such trees of the estimate. Errors: those of cd_xgb_predict.
 *
 * What the trees of set seen expect of operators: of a question, and of measured rows, of which it
 * is kept. */
static cdmpp_status llm_op_expect_of(const cd_llm_op_asker *a, cd_llm_op_family f, const float *x,
                                     const cd_llm_op_estimate *e, double *out, cdmpp_err *err) {
    const cd_llm_op_part *p = &a->m->part[f][CD_LLM_OP_SET_SEEN];
    float y;
    *out = log(e->base_s) + p->bias;
    if (!p->gbt) return CDMPP_OK;
    CD_TRY(cd_xgb_predict(p->gbt, x, 1, cd_llm_op_feature_width(CD_LLM_OP_SET_SEEN), &y, err));
    *out += (double)y;
    return CDMPP_OK;
}

/* ---- measured rows ---- */
static bool load(const cd_llm_op_asker *a, size_t row, float *y) {
    __atomic_load(&a->expect[row], y, __ATOMIC_RELAXED);
    return fabsf(*y) > 0 || isnan(*y);
}

static void store(const cd_llm_op_asker *a, size_t row, float y) {
    __atomic_store(&a->expect[row], &y, __ATOMIC_RELAXED);
}

static cdmpp_status features(const cd_llm_op_asker *a, size_t row, cd_llm_op_known *known,
                             float x[CD_LLM_OP_N_FEATURE], cd_llm_op_estimate *e) {
    const cd_llm_op_record *r = &a->t->r[row];
    const cd_llm_op_codes c = cd_llm_op_asker_codes(a, r);
    CD_TRY(cd_llm_op_feature(r, a->t->known[a->t->device[row]], &c, known, x, e, NULL));
    cd_llm_op_model_types(a->m->range, r, x);
    return CDMPP_OK;
}

/* The same of a measured row, computed when first asked; NaN: it cannot be. ctx: the asker.
 *
 * Each value is computed from the row alone, so threads that compute it twice write the same. */
static double llm_op_expect_row(const void *ctx, size_t row) {
    const cd_llm_op_asker *a = ctx;
    float x[CD_LLM_OP_N_FEATURE], y;
    cd_llm_op_estimate e;
    double v;
    if (load(a, row, &y)) return (double)y;
    cdmpp_status st = features(a, row, NULL, x, &e);
    if (!st)
        st = llm_op_expect_of(a, cd_llm_op_family_of((cd_llm_op_kind)a->t->r[row].kind), x, &e, &v,
                              NULL);
    y = st ? NAN : (float)v;
    store(a, row, y);
    return (double)y;
}

/* All that were added are computed.
 *
 * Those that cannot be scored stay as they are: they are computed one by one. */
static void llm_op_expect_flush(const cd_llm_op_asker *a, cd_llm_op_family f,
                                cd_llm_op_known *known, float *x, cd_llm_op_awaited *w) {
    const cd_llm_op_part *p = &a->m->part[f][CD_LLM_OP_SET_SEEN];
    const size_t width = cd_llm_op_feature_width(CD_LLM_OP_SET_SEEN);
    float y[CD_LLM_OP_AWAITED];
    double base[CD_LLM_OP_AWAITED];
    size_t n = 0;
    for (size_t i = 0; i < w->n && p->gbt; i++) {
        cd_llm_op_estimate e;
        if (features(a, w->row[i], known, x + n * width, &e)) continue;
        base[n] = log(e.base_s) + p->bias;
        w->row[n++] = w->row[i];
    }
    if (n && !cd_xgb_predict(p->gbt, x, n, width, y, NULL))
        for (size_t i = 0; i < n; i++) store(a, w->row[i], (float)(base[i] + (double)y[i]));
    w->n = 0;
}

/* A row that is not known yet is added; of many, those before it are computed. x (CD_LLM_OP_AWAITED
 * x CD_LLM_OP_N_FEATURE): scratch. */
static void llm_op_expect_await(const cd_llm_op_asker *a, cd_llm_op_family f, size_t row,
                                cd_llm_op_known *known, float *x, cd_llm_op_awaited *w) {
    float y;
    uint32_t *seen = &w->seen[row % CD_LLM_OP_AWAITED_SEEN];
    if (*seen == row + 1 || load(a, row, &y)) return;
    if (w->n == CD_LLM_OP_AWAITED) llm_op_expect_flush(a, f, known, x, w);
    *seen = (uint32_t)row + 1;
    w->row[w->n++] = (uint32_t)row;
}

typedef cd_llm_op_asking asking;

/* A library or a version that is named and that no row of the family has. A known library without a
 * version names none that is new. */
static bool is_new_stack(const cd_llm_op_asker *a, const asking *q) {
    const char *stack = q->r->stack < a->names->n ? a->names->text[q->r->stack] : "";
    return stack[0] && !cd_llm_op_model_has_stack(a->m, q->f, q->c.stack) &&
           (isnan(q->c.maker) || strchr(stack, '-'));
}

/* What is new about a GPU whose twin answers: all of it, or the type. */
static unsigned news_of_twin(unsigned has) {
    return has ? CD_LLM_OP_NEW_TYPE : CD_LLM_OP_NEW_DEVICE;
}

static unsigned news_of(const cd_llm_op_asker *a, const asking *q) {
    const cd_llm_op_record *r = q->r;
    const cd_llm_op_range *g = &a->m->range[r->kind];
    unsigned u = 0;
    if (!q->has)
        u |= CD_LLM_OP_NEW_DEVICE |
             (cd_llm_op_model_vendor(a->m, q->d) ? 0u : (unsigned)CD_LLM_OP_NEW_VENDOR);
    if (!cd_llm_op_model_has_stack(a->m, q->f, q->c.stack) && a->m->stacks.n)
        u |= CD_LLM_OP_NEW_STACK;
    /* most questions name no kernel: who asks leaves it to the library */
    if (!cd_llm_op_model_has_kernel(a->m, q->f, q->c.kernel) && r->kernel)
        u |= CD_LLM_OP_NEW_KERNEL;
    if (!g->any) u |= CD_LLM_OP_NEW_KIND;
    else if (!cd_llm_op_range_has(g, r->type, r->kv)) u |= CD_LLM_OP_NEW_TYPE;
    /* of a GPU that has rows its own count */
    if (q->has && !(q->has & CD_LLM_OP_HAS_TYPE)) u |= CD_LLM_OP_NEW_TYPE;
    for (size_t i = 0; i < cd_llm_op_n_size((cd_llm_op_kind)r->kind); i++)
        if (!g->any || r->size[i] < g->low[i] || r->size[i] > g->high[i]) u |= CD_LLM_OP_NEW_SIZE;
    return u;
}

static double times_at(const cd_llm_op_part *p, double level) {
    size_t k = 0;
    if (level <= cd_llm_op_level[0]) return p->times[0] * level / cd_llm_op_level[0];
    while (k + 2 < CD_LLM_OP_LEVELS && level > cd_llm_op_level[k + 1]) k++;
    const double at = (level - cd_llm_op_level[k]) / (cd_llm_op_level[k + 1] - cd_llm_op_level[k]);
    return p->times[k] + at * (p->times[k + 1] - p->times[k]);
}

/* Halves of the intervals of what is new about a question that no measured row is near; returns how
 * many. NaN: no experiment can tell. A library that is new has kernels of its own, which its
 * experiments did not know either. */
static size_t novel(const cd_llm_op_asker *a, const asking *q, unsigned news, double level,
                    double half[CD_LLM_OP_N_NOVEL + 1]) {
    const bool stack = is_new_stack(a, q);
    const bool is[CD_LLM_OP_N_NOVEL] = {stack, news & CD_LLM_OP_NEW_KERNEL && !stack,
                                        news & CD_LLM_OP_NEW_TYPE, news & CD_LLM_OP_NEW_KIND};
    size_t n = 0;
    for (size_t k = 0; k < CD_LLM_OP_N_NOVEL; k++)
        if (is[k]) half[n++] = cd_novelty_half(&a->m->novel[q->f][k], level);
    if (news & CD_LLM_OP_NEW_VENDOR) half[n++] = (double)NAN;
    return n;
}

/* The interval round out->latency_s, from the score of the spread. That of a GPU that is new is one
 * of the news. */
static void interval(const cd_llm_op_asker *a, const asking *q, double level,
                     cd_llm_op_answer *out) {
    const cd_llm_op_part *p = &a->m->part[q->f][q->s];
    const double alone =
        p->spread ? times_at(p, level) * exp(p->spread_bias + (double)q->spread) : (double)NAN;
    double half[CD_LLM_OP_N_NOVEL + 2];
    const size_t n = q->s == CD_LLM_OP_SET_NEAR ? 0 : novel(a, q, out->news, level, half);
    half[n] = alone;
    const double all = n ? cd_novelty_join(alone, half, q->has ? n : n + 1) : alone;
    out->low_s = out->latency_s * exp(-all);
    out->high_s = out->latency_s * exp(all);
}

static const cd_llm_op_part *part_of(const cd_llm_op_asker *a, cd_llm_op_family f,
                                     cd_llm_op_set *s) {
    const cd_llm_op_part *p = a->m->part[f];
    if (*s == CD_LLM_OP_SET_NEAR && p[*s].gbt) return &p[*s];
    if (*s == CD_LLM_OP_SET_NEAR) *s = CD_LLM_OP_SET_SEEN;
    if (*s == CD_LLM_OP_SET_SEEN && p[*s].gbt) return &p[*s];
    *s = CD_LLM_OP_SET_UNSEEN;
    return p[*s].gbt ? &p[*s] : NULL;
}

static cd_llm_op_answer empty(const cd_llm_op_record *r, const cd_llm_op_estimate *e) {
    return (cd_llm_op_answer){.stack = r->stack,
                              .kernel = r->kernel,
                              .how = CD_LLM_OP_PREDICTED,
                              .base_s = e->base_s,
                              .roof_s = e->roof_s,
                              .line_s = NAN,
                              .low_s = NAN,
                              .high_s = NAN};
}

static cdmpp_status no_trees(const cd_llm_op_record *r, cdmpp_err *err) {
    return CD_FAIL(err, EMODEL, "the model was trained on no operator like %s",
                   cd_llm_op_kind_name((cd_llm_op_kind)r->kind));
}

/* Two neighbours stand within two octaves of each other, one on each side. */
static bool between(const float *x) {
    bool found = false;
    for (size_t i = 0; i < CD_LLM_OP_MAX_SIZE; i++)
        found |= x[CD_LLM_OP_X_gap_below0 + i] + x[CD_LLM_OP_X_gap_above0 + i] <= 2;
    return found;
}

static void correct(const cd_llm_op_few *few, const cd_llm_op_record *r, const cd_llm_op_codes *c,
                    const cd_llm_op_estimate *e, cd_llm_op_answer *out) {
    const cd_llm_op_few_row row = cd_llm_op_few_row_of(r, c->maker, e);
    const double factor = exp(cd_llm_op_few_ask(few, &row));
    out->latency_s *= factor;
    out->low_s *= factor;
    out->high_s *= factor;
    out->few = (uint32_t)cd_llm_op_few_count(few);
}

/* ---- one step after the other ---- */
/* Its curves, where its device has measured rows. False: it is none of them. */
static bool llm_op_ask_curves(const cd_llm_op_asker *a, const cd_llm_op_record *r, long device,
                              asking *q) {
    if (device >= 0) cd_llm_op_table_curves(a->t, r, (uint32_t)device, q->curve);
    return device >= 0 && q->curve[CD_LLM_OP_MAX_SIZE] != CD_LLM_OP_NO_CURVE;
}

/* Features. All but curves and what the next steps find is set. Errors: those of
 * cd_llm_op_estimate_by. */
static cdmpp_status llm_op_ask_begin(const cd_llm_op_asker *a, const cd_llm_op_record *r,
                                     const cd_device *d, long device, cd_llm_op_known *known,
                                     asking *q, cdmpp_err *err) {
    q->r = r, q->d = d, q->device = device, q->f = cd_llm_op_family_of((cd_llm_op_kind)r->kind),
    q->c = cd_llm_op_asker_codes(a, r);
    q->own = NAN, q->near = CD_LLM_OP_NO_SIDE, q->s = CD_LLM_OP_SET_UNSEEN, q->p = NULL,
    q->twin = NULL;
    q->has = cd_llm_op_model_has(a->m, q->f, d, (cd_llm_op_type)r->type);
    CD_TRY(cd_llm_op_feature(r, d, &q->c, known, q->x, &q->e, err));
    cd_llm_op_model_types(a->m->range, r, q->x);
    return CDMPP_OK;
}

/* The measured rows beside it, where its device has some; memory is asked for them. */
static void llm_op_ask_beside(const cd_llm_op_asker *a, asking *q) {
    const cd_llm_op_near near = {.t = a->t, .curve = q->curve};
    if (q->device < 0) return;
    cd_llm_op_feature_beside(&near, q->r, (uint32_t)q->device, &q->beside);
    for (size_t i = 0, n = cd_llm_op_n_size((cd_llm_op_kind)q->r->kind); i < n; i++)
        for (size_t k = 0; k < 2; k++) {
            const long row = q->beside.row[i][k];
            if (row < 0) continue;
            __builtin_prefetch(&a->t->r[row].size[i]);
            __builtin_prefetch(&a->t->r[row].latency_s);
            __builtin_prefetch(&a->expect[row]);
        }
}

/* What neighbours say, and so whose answer it is. Errors: EMODEL: no trees. */
static cdmpp_status llm_op_ask_choose(const cd_llm_op_asker *a, asking *q, cdmpp_err *err) {
    const cd_llm_op_near near = {
        .t = a->t, .expect = llm_op_expect_row, .ctx = a, .curve = q->curve};
    q->near = CD_LLM_OP_NO_SIDE;
    if (q->device >= 0) {
        const cd_llm_op_few *few = a->few[(size_t)q->device * CD_LLM_OP_N_FAMILY + q->f];
        q->near = cd_llm_op_feature_near(&near, q->r, (uint32_t)q->device, &q->beside, q->own, q->x,
                                         &q->said);
        /* a row from afar says less than all together */
        if (few && cd_llm_op_few_count(few) < CD_LLM_OP_FEW_MOST && !between(q->x))
            q->near = CD_LLM_OP_NO_SIDE;
    }
    q->s = q->near ? CD_LLM_OP_SET_NEAR : q->has ? CD_LLM_OP_SET_SEEN : CD_LLM_OP_SET_UNSEEN;
    const bool lacks_type =
        q->s == CD_LLM_OP_SET_SEEN && !(q->has & CD_LLM_OP_HAS_TYPE) && isnan(q->own);
    if ((q->s == CD_LLM_OP_SET_UNSEEN || lacks_type) &&
        (q->twin = cd_llm_op_twin_for(a->m, q->r, q->d)))
        return CDMPP_OK;
    q->p = part_of(a, q->f, &q->s);
    return q->p ? CDMPP_OK : no_trees(q->r, err);
}

/* The trees of set seen have said it before. */
static bool llm_op_ask_is_own(const asking *q) {
    return q->s == CD_LLM_OP_SET_SEEN && !isnan(q->own);
}

static void by_few(const cd_llm_op_asker *a, const asking *q, cd_llm_op_answer *out) {
    const cd_llm_op_few *few = q->device < 0 || q->s != CD_LLM_OP_SET_UNSEEN
                                   ? NULL
                                   : a->few[(size_t)q->device * CD_LLM_OP_N_FAMILY + q->f];
    if (few) correct(few, q->r, &q->c, &q->e, out);
}

/* Trees out of a file that somebody made by hand say anything: an answer is a number all the same,
 * and an interval without ends is none. */
static void keep_finite(cd_llm_op_answer *out) {
    out->latency_s = fmin(fmax(out->latency_s, DBL_MIN), DBL_MAX);
    if (!(out->low_s > 0 && out->low_s <= out->high_s && isfinite(out->high_s)))
        out->low_s = out->high_s = (double)NAN;
}

static void llm_op_ask_tell(const cd_llm_op_asker *a, const asking *q, double level,
                            cd_llm_op_answer *out) {
    *out = empty(q->r, &q->e);
    out->news = news_of(a, q);
    if (q->s == CD_LLM_OP_SET_NEAR && q->near == CD_LLM_OP_TWO_SIDES)
        out->how = CD_LLM_OP_INTERPOLATED;
    if (q->near == CD_LLM_OP_TWO_SIDES) out->line_s = exp(q->said);
    if (q->s == CD_LLM_OP_SET_NEAR)
        out->news &=
            ~(unsigned)(CD_LLM_OP_NEW_DEVICE | CD_LLM_OP_NEW_VENDOR |
                        (cd_llm_op_range_has(&a->m->range[q->r->kind], q->r->type, q->r->kv)
                             ? CD_LLM_OP_NEW_TYPE
                             : 0));
    if (out->news & CD_LLM_OP_NEW_TYPE) out->alike = cd_llm_op_model_alike(a->m, q->f, q->r, q->d);
    out->latency_s =
        exp(llm_op_ask_is_own(q) ? q->own
                                 : (q->s == CD_LLM_OP_SET_NEAR ? q->said : log(q->e.base_s)) +
                                       q->p->bias + (double)q->score);
    if (level > 0) interval(a, q, level, out);
    by_few(a, q, out);
    keep_finite(out);
}

static void llm_op_ask_tell_twin(const cd_llm_op_asker *a, const asking *q,
                                 const cd_llm_op_answer *of, cd_llm_op_answer *out) {
    cd_llm_op_twin_tell(of, q->twin, &q->e, out);
    out->news |= news_of_twin(q->has);
    by_few(a, q, out);
}

/* q: its curves are there where its device has measured rows. */
static cdmpp_status predicted(const cd_llm_op_asker *a, const cd_llm_op_record *r,
                              const cd_device *d, long device, double level, asking *q,
                              cd_llm_op_answer *out, cdmpp_err *err) {
    CD_TRY(llm_op_ask_begin(a, r, d, device, NULL, q, err));
    if (device >= 0) CD_TRY(llm_op_expect_of(a, q->f, q->x, &q->e, &q->own, err));
    llm_op_ask_beside(a, q);
    CD_TRY(llm_op_ask_choose(a, q, err));
    if (q->twin) {
        CD_TRY(cd_llm_op_twin_ask(a, r, &q->e, q->twin, level, out, err));
        out->news |= news_of_twin(q->has);
        by_few(a, q, out);
        return CDMPP_OK;
    }
    if (!llm_op_ask_is_own(q))
        CD_TRY(cd_xgb_predict(q->p->gbt, q->x, 1, cd_llm_op_feature_width(q->s), &q->score, err));
    if (q->p->spread && level > 0)
        CD_TRY(
            cd_xgb_predict(q->p->spread, q->x, 1, cd_llm_op_feature_width(q->s), &q->spread, err));
    llm_op_ask_tell(a, q, level, out);
    return CDMPP_OK;
}

/* The answer that a row of the table is. */
static cdmpp_status llm_op_ask_measured(const cd_llm_op_asker *a, const cd_llm_op_record *r,
                                        const cd_device *d, size_t row, double level,
                                        cd_llm_op_answer *out, cdmpp_err *err) {
    const double half = level > 0 ? cd_llm_op_table_half(a->t, row, level) : (double)NAN;
    cd_llm_op_estimate e;
    const cd_llm_op_codes c = cd_llm_op_asker_codes(a, r);
    CD_TRY(cd_llm_op_estimate_of(r, d, &e, err));
    cd_llm_op_estimate_raise(&e, c.alone, c.host_s);
    *out = empty(r, &e);
    out->how = CD_LLM_OP_MEASURED;
    out->latency_s = a->t->r[row].latency_s;
    out->low_s = out->latency_s * exp(-half);
    out->high_s = out->latency_s * exp(half);
    return CDMPP_OK;
}

/* The number of the device in the table. */
static long llm_op_ask_device(const cd_llm_op_asker *a, const cd_device *d) {
    return a->t ? cd_llm_op_table_device(a->t, d) : CD_LLM_OP_NONE;
}

cdmpp_status cd_llm_op_ask_as_is(const cd_llm_op_asker *a, const cd_llm_op_record *r,
                                 const cd_device *d, double level, cd_llm_op_answer *out,
                                 cdmpp_err *err) {
    asking q;
    const long device = llm_op_ask_device(a, d);
    const long row = llm_op_ask_curves(a, r, device, &q)
                         ? cd_llm_op_table_find(a->t, r, (uint32_t)device)
                         : CD_LLM_OP_NONE;
    return row < 0 ? predicted(a, r, d, device, level, &q, out, err)
                   : llm_op_ask_measured(a, r, d, (size_t)row, level, out, err);
}

/* Rows of the twin do not tell how far another board is: the interval is that of an answer without
 * them. */
static void llm_op_ask_widen(const cd_llm_op_answer *without, cd_llm_op_answer *v) {
    v->low_s = v->latency_s * without->low_s / without->latency_s;
    v->high_s = v->latency_s * without->high_s / without->latency_s;
}

cdmpp_status cd_llm_op_twin_ask(const cd_llm_op_asker *a, const cd_llm_op_record *r,
                                const cd_llm_op_estimate *e, const cd_device *twin, double level,
                                cd_llm_op_answer *out, cdmpp_err *err) {
    cd_llm_op_answer v, without;
    asking q;
    CD_TRY(cd_llm_op_ask_as_is(a, r, twin, level, &v, err));
    if (llm_op_ask_device(a, twin) >= 0) {
        CD_TRY(predicted(a, r, twin, CD_LLM_OP_NONE, level, &q, &without, err));
        llm_op_ask_widen(&without, &v);
    }
    cd_llm_op_twin_tell(&v, twin, e, out);
    return CDMPP_OK;
}

/* Many answers at once: each step is made of all records of a block before the next, so that trees
 * score many rows in one call and memory is waited for together. */

enum { BLOCK = CD_LLM_OP_AWAITED, FEW = 64 };

typedef struct {
    asking q[BLOCK];
    float x[BLOCK * CD_LLM_OP_N_FEATURE], y[BLOCK];
    float *to[BLOCK];
    size_t n;
    bool may[BLOCK];        /* the table may have this very record */
    bool bare;              /* measured rows do not count */
    cd_llm_op_known *known; /* NULL: there are few records */
} batch;

/* Rows of one set of trees: collected, and scored in one call. */
static void collect(batch *b, const asking *q, size_t width, float *to) {
    memcpy(b->x + b->n * width, q->x, width * sizeof *q->x);
    b->to[b->n++] = to;
}

static cdmpp_status score(batch *b, const cd_xgb *trees, size_t width, cdmpp_err *err) {
    if (b->n) CD_TRY(cd_xgb_predict(trees, b->x, b->n, width, b->y, err));
    for (size_t k = 0; k < b->n; k++) *b->to[k] = b->y[k];
    b->n = 0;
    return CDMPP_OK;
}

/* What the trees of set seen expect of the records whose devices have measured rows. */
static cdmpp_status own_of(const cd_llm_op_asker *a, batch *b, size_t n, cdmpp_err *err) {
    const size_t width = cd_llm_op_feature_width(CD_LLM_OP_SET_SEEN);
    unsigned families = 0;
    for (size_t i = 0; i < n; i++)
        if (b->q[i].device >= 0) families |= 1U << b->q[i].f;
    for (size_t f = 0; families >> f; f++) {
        const cd_llm_op_part *p = &a->m->part[f][CD_LLM_OP_SET_SEEN];
        for (size_t i = 0; i < n; i++)
            if (b->q[i].device >= 0 && b->q[i].f == f && p->gbt)
                collect(b, &b->q[i], width, &b->q[i].score);
        CD_TRY(score(b, p->gbt, width, err));
        for (size_t i = 0; i < n; i++)
            if (b->q[i].device >= 0 && b->q[i].f == f)
                b->q[i].own = p->gbt ? log(b->q[i].e.base_s) + p->bias + (double)b->q[i].score
                                     : log(b->q[i].e.base_s) + p->bias;
    }
    return CDMPP_OK;
}

static void await(const cd_llm_op_asker *a, batch *b, const asking *q, cd_llm_op_awaited *w) {
    for (size_t i = 0, n = cd_llm_op_n_size((cd_llm_op_kind)q->r->kind); i < n; i++)
        for (size_t k = 0; k < 2; k++)
            if (q->beside.row[i][k] >= 0)
                llm_op_expect_await(a, q->f, (size_t)q->beside.row[i][k], b->known, b->x, w);
}

/* Neighbours, and what the trees expect of those that nobody asked for before. */
static void beside_all(const cd_llm_op_asker *a, batch *b, size_t n) {
    unsigned families = 0;
    for (size_t i = 0; i < n; i++) {
        if (b->q[i].device < 0) continue;
        llm_op_ask_beside(a, &b->q[i]);
        families |= 1U << b->q[i].f;
    }
    for (size_t f = 0; families >> f; f++) {
        cd_llm_op_awaited w = {.n = 0};
        for (size_t i = 0; i < n; i++)
            if (b->q[i].device >= 0 && b->q[i].f == f) await(a, b, &b->q[i], &w);
        llm_op_expect_flush(a, (cd_llm_op_family)f, b->known, b->x, &w);
    }
}

static cdmpp_status scores_of(const cd_llm_op_asker *a, batch *b, size_t n, cdmpp_err *err) {
    uint32_t parts = 0;
    for (size_t i = 0; i < n; i++)
        if (b->q[i].p) parts |= 1U << (b->q[i].f * CD_LLM_OP_N_SET + b->q[i].s);
    for (size_t k = 0; parts >> k; k++) {
        if (!(parts >> k & 1)) continue;
        const cd_llm_op_set s = (cd_llm_op_set)(k % CD_LLM_OP_N_SET);
        const cd_llm_op_part *p = &a->m->part[k / CD_LLM_OP_N_SET][s];
        const size_t width = cd_llm_op_feature_width(s);
        for (size_t i = 0; i < n; i++)
            if (b->q[i].p == p && !llm_op_ask_is_own(&b->q[i]))
                collect(b, &b->q[i], width, &b->q[i].score);
        CD_TRY(score(b, p->gbt, width, err));
        for (size_t i = 0; i < n; i++)
            if (b->q[i].p == p && p->spread) collect(b, &b->q[i], width, &b->q[i].spread);
        CD_TRY(score(b, p->spread, width, err));
    }
    return CDMPP_OK;
}

/* Only memory and trees that cannot be walked end all; else it is the record's own error. */
static cdmpp_status of_one(cdmpp_status st, const cdmpp_err *why, cdmpp_err *whys, size_t i,
                           cdmpp_err *err) {
    if (!st) return CDMPP_OK;
    if (whys && st != CDMPP_ENOMEM && st != CDMPP_EBACKEND) return whys[i] = *why, CDMPP_OK;
    if (err) *err = *why;
    return st;
}

/* Rows of a table lie far apart in memory: those of all records are asked for before the first is
 * waited for. */
static void fetch_rows(const cd_llm_op_asker *a, const cd_llm_op_record *r,
                       const cd_device *const *d, size_t n, batch *b) {
    for (size_t i = 0; i < n; i++) {
        b->q[i].device = b->bare ? CD_LLM_OP_NONE : llm_op_ask_device(a, d[i]);
        b->may[i] = llm_op_ask_curves(a, &r[i], b->q[i].device, &b->q[i]);
        if (b->may[i]) b->q[i].hash = cd_llm_op_table_hash(a->t, &r[i], (uint32_t)b->q[i].device);
    }
    for (size_t i = 0; i < n; i++)
        if (b->may[i]) cd_llm_op_table_fetch(a->t, b->q[i].hash);
}

/* A record that is measured, or cannot be answered, leaves no trees. */
static cdmpp_status begin_all(const cd_llm_op_asker *a, const cd_llm_op_record *r,
                              const cd_device *const *d, size_t n, double level, batch *b,
                              cd_llm_op_answer *out, cdmpp_err *whys, bool *going, cdmpp_err *err) {
    fetch_rows(a, r, d, n, b);
    cdmpp_err why; /* whoever fails sets all of it */
    for (size_t i = 0; i < n; i++) {
        const long device = b->q[i].device,
                   row = b->may[i] ? cd_llm_op_table_at(a->t, &r[i], (uint32_t)device, b->q[i].hash)
                                   : CD_LLM_OP_NONE;
        b->q[i].p = NULL;
        if (whys) whys[i].code = CDMPP_OK;
        const cdmpp_status st =
            row < 0 ? llm_op_ask_begin(a, &r[i], d[i], device, b->known, &b->q[i], &why)
                    : llm_op_ask_measured(a, &r[i], d[i], (size_t)row, level, &out[i], &why);
        going[i] = row < 0 && !st;
        if (!going[i]) b->q[i].device = CD_LLM_OP_NONE;
        CD_TRY(of_one(st, &why, whys, i, err));
    }
    return CDMPP_OK;
}

static cdmpp_status ask_all(const cd_llm_op_asker *a, const cd_llm_op_record *r,
                            const cd_device *const *d, size_t n, double level, bool bare,
                            cd_llm_op_answer *out, cdmpp_err *whys, cdmpp_err *err);

/* Records whose twin is asked, all together. A twin was trained on, so it has none itself. */
static cdmpp_status ask_twins(const cd_llm_op_asker *a, const batch *b, const bool *going, size_t n,
                              double level, cd_llm_op_answer *out, cdmpp_err *whys,
                              cdmpp_err *err) {
    cd_llm_op_record r[BLOCK];
    const cd_device *d[BLOCK];
    cd_llm_op_answer v[BLOCK], without[BLOCK];
    cdmpp_err why[BLOCK], more[BLOCK];
    size_t of[BLOCK], m = 0;
    bool rows = false;
    for (size_t i = 0; i < n; i++)
        if (going[i] && b->q[i].twin)
            rows |= llm_op_ask_device(a, b->q[i].twin) >= 0, r[m] = *b->q[i].r, d[m] = b->q[i].twin,
                                                             of[m++] = i;
    if (!m) return CDMPP_OK;
    CD_TRY(ask_all(a, r, d, m, level, false, v, why, err));
    if (rows) CD_TRY(ask_all(a, r, d, m, level, true, without, more, err));
    for (size_t k = 0; k < m; k++) {
        const cdmpp_err *bad = !why[k].code && rows && more[k].code ? &more[k] : &why[k];
        if (!bad->code && llm_op_ask_device(a, d[k]) >= 0) llm_op_ask_widen(&without[k], &v[k]);
        if (!bad->code) llm_op_ask_tell_twin(a, &b->q[of[k]], &v[k], &out[of[k]]);
        CD_TRY(of_one(bad->code, bad, whys, of[k], err));
    }
    return CDMPP_OK;
}

static cdmpp_status ask_block(const cd_llm_op_asker *a, const cd_llm_op_record *r,
                              const cd_device *const *d, size_t n, double level, batch *b,
                              cd_llm_op_answer *out, cdmpp_err *whys, cdmpp_err *err) {
    bool going[BLOCK];
    b->n = 0;
    CD_TRY(begin_all(a, r, d, n, level, b, out, whys, going, err));
    for (size_t i = 0; i < n; i++)
        if (b->q[i].device >= 0) cd_llm_op_table_curves_fetch(a->t, b->q[i].r, b->q[i].curve);
    CD_TRY(own_of(a, b, n, err));
    beside_all(a, b, n);
    cdmpp_err why = {0};
    for (size_t i = 0; i < n; i++)
        if (going[i]) CD_TRY(of_one(llm_op_ask_choose(a, &b->q[i], &why), &why, whys, i, err));
    CD_TRY(scores_of(a, b, n, err));
    for (size_t i = 0; i < n; i++)
        if (b->q[i].p) llm_op_ask_tell(a, &b->q[i], level, &out[i]);
    return ask_twins(a, b, going, n, level, out, whys, err);
}

static cdmpp_status ask_all(const cd_llm_op_asker *a, const cd_llm_op_record *r,
                            const cd_device *const *d, size_t n, double level, bool bare,
                            cd_llm_op_answer *out, cdmpp_err *whys, cdmpp_err *err) {
    batch b;
    cd_llm_op_known known;
    b.bare = bare;
    b.known = n < FEW ? NULL : &known;
    if (b.known) known = (cd_llm_op_known){0};
    for (size_t i = 0; i < n; i += BLOCK)
        CD_TRY(ask_block(a, r + i, d + i, n - i < BLOCK ? n - i : BLOCK, level, &b, out + i,
                         whys ? whys + i : NULL, err));
    return CDMPP_OK;
}

cdmpp_status cd_llm_op_ask_many_as_is(const cd_llm_op_asker *a, const cd_llm_op_record *r,
                                      const cd_device *const *d, size_t n, double level,
                                      cd_llm_op_answer *out, cdmpp_err *whys, cdmpp_err *err) {
    return ask_all(a, r, d, n, level, false, out, whys, err);
}
