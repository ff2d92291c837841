/* Answers of a model of operators of language models: measured, interpolated, predicted. */
#include "learner/llm_op/llm_op_model.h"
#include "learner/llm_op/llm_op_few.h"

#include <math.h>
#include <string.h>

const double cd_llm_op_level[CD_LLM_OP_LEVELS] = {0.5, 0.8, 0.9, 0.95, 0.99};

struct cd_llm_op_asker {
    const cd_llm_op_model *m;
    const cd_llm_op_table *t;
    const cd_dict *names;
    size_t n_name;           /* names when the asker was made: later ones are looked up */
    cd_llm_op_codes *stack;  /* (n names) maker and stack are used */
    float *kernel;           /* (n names) */
    float *expect;           /* (t->n) ln of what set seen expects, computed when first asked; 0: not yet */
    cd_llm_op_few **few;     /* (t->n_known, CD_LLM_OP_N_FAMILY) of devices that were not trained on; NULL: none */
};

void cd_llm_op_model_free(cd_llm_op_model *m) {
    if (!m) return;
    for (size_t f = 0; f < CD_LLM_OP_N_FAMILY; f++)
        for (size_t s = 0; s < CD_LLM_OP_N_SET; s++) {
            cd_xgb_free(m->part[f][s].gbt);
            cd_xgb_free(m->part[f][s].spread);
        }
    cd_dict_free(&m->stacks);
    cd_dict_free(&m->kernels);
    cd_arena_free(&m->arena);
    cd_mem_free(m);
}

/* The library of "vllm-0.24.0" is "vllm": the number of the first stack of that library. */
static float maker_of(const cd_llm_op_model *m, const char *stack) {
    const size_t n = strcspn(stack, "-");
    for (size_t i = 0; i < m->stacks.n && n; i++)
        if (strcspn(m->stacks.text[i], "-") == n && !strncmp(m->stacks.text[i], stack, n)) return (float)i;
    return NAN;
}

cd_llm_op_codes cd_llm_op_model_codes(const cd_llm_op_model *m, const char *stack, const char *kernel) {
    cd_llm_op_codes c = {maker_of(m, stack), NAN, NAN};
    uint32_t k;
    if (cd_dict_find(&m->stacks, (cd_str){stack, strlen(stack)}, &k)) c.stack = (float)k;
    if (cd_dict_find(&m->kernels, (cd_str){kernel, strlen(kernel)}, &k)) c.kernel = (float)k;
    return c;
}

bool cd_llm_op_model_seen(const cd_llm_op_model *m, cd_llm_op_family f, const cd_device *d) {
    for (size_t i = 0; i < m->n_device; i++)
        if (!strcmp(m->device[i].name, d->name)) return m->device[i].family[f];
    return false;
}

/* ---- asking ---- */
void cd_llm_op_asker_free(cd_llm_op_asker *a) {
    if (!a) return;
    cd_mem_free(a->stack);
    cd_mem_free(a->kernel);
    for (size_t i = 0; a->few && i < a->t->n_known * CD_LLM_OP_N_FAMILY; i++) cd_llm_op_few_free(a->few[i]);
    cd_mem_free(a->few);
    cd_mem_free(a->expect);
    cd_mem_free(a);
}

static cd_llm_op_codes codes_of(const cd_llm_op_asker *a, const cd_llm_op_record *r) {
    if (r->stack >= a->n_name || r->kernel >= a->n_name)
        return cd_llm_op_model_codes(a->m, r->stack < a->names->n ? a->names->text[r->stack] : "", r->kernel < a->names->n ? a->names->text[r->kernel] : "");
    return (cd_llm_op_codes){a->stack[r->stack].maker, a->stack[r->stack].stack, a->kernel[r->kernel]};
}

/* ---- a few measured rows of a device that was not trained on ---- */
/* A row of it, and by how much the answer misses it. False: the device cannot have run it. */
static bool few_row(const cd_llm_op_asker *a, const cd_llm_op_part *p, size_t i, cd_llm_op_few_row *row, double *residual) {
    const cd_llm_op_record *r = &a->t->r[i];
    const cd_llm_op_codes c = codes_of(a, r);
    float x[CD_LLM_OP_N_FEATURE], y;
    cd_llm_op_estimate e;
    if (cd_llm_op_feature(r, a->t->known[a->t->device[i]], &c, x, &e, NULL)) return false;
    if (cd_xgb_predict(p->gbt, x, 1, cd_llm_op_feature_width(CD_LLM_OP_SET_UNSEEN), &y, NULL)) return false;
    *row = cd_llm_op_few_row_of(r, c.maker, &e);
    *residual = log(r->latency_s / e.base_s) - p->bias - (double)y;
    return true;
}

/* Of more rows than serve, as many that stand evenly in the table. */
static cdmpp_status few_of(cd_llm_op_asker *a, size_t device, cd_llm_op_family f, cdmpp_err *err) {
    const cd_llm_op_part *p = &a->m->part[f][CD_LLM_OP_SET_UNSEEN];
    const cd_llm_op_table *t = a->t;
    cd_llm_op_few_row row[CD_LLM_OP_FEW_MOST];
    double residual[CD_LLM_OP_FEW_MOST];
    size_t all = 0, n = 0, at = 0;
    if (!p->gbt || cd_llm_op_model_seen(a->m, f, t->known[device])) return CDMPP_OK;
    for (size_t i = 0; i < t->n; i++) all += t->device[i] == device && cd_llm_op_family_of((cd_llm_op_kind)t->r[i].kind) == f;
    const size_t want = all < CD_LLM_OP_FEW_MOST ? all : CD_LLM_OP_FEW_MOST;
    for (size_t i = 0; i < t->n && n < want; i++) {
        if (t->device[i] != device || cd_llm_op_family_of((cd_llm_op_kind)t->r[i].kind) != f) continue;
        if (at * want / all != (at + 1) * want / all) n += few_row(a, p, i, &row[n], &residual[n]);
        at++;
    }
    return n ? cd_llm_op_few_new(row, residual, n, &a->few[device * CD_LLM_OP_N_FAMILY + f], err) : CDMPP_OK;
}

static void correct(const cd_llm_op_few *few, const cd_llm_op_record *r, const cd_llm_op_codes *c, const cd_llm_op_estimate *e, cd_llm_op_answer *out) {
    const cd_llm_op_few_row row = cd_llm_op_few_row_of(r, c->maker, e);
    const double factor = exp(cd_llm_op_few_ask(few, &row));
    out->latency_s *= factor;
    out->low_s *= factor;
    out->high_s *= factor;
    out->few = (uint32_t)cd_llm_op_few_count(few);
}

cdmpp_status cd_llm_op_asker_new(const cd_llm_op_model *m, const cd_llm_op_table *t, const cd_dict *names, cd_llm_op_asker **out, cdmpp_err *err) {
    cd_llm_op_asker *a = cd_mem_zalloc(1, sizeof *a);
    if (!a) return CD_FAIL(err, ENOMEM, "asker");
    *a = (cd_llm_op_asker){m, t, names, names->n, cd_mem_zalloc(names->n + 1, sizeof *a->stack), cd_mem_zalloc(names->n + 1, sizeof *a->kernel),
                           t ? cd_mem_zalloc(t->n + 1, sizeof *a->expect) : NULL,
                           t ? cd_mem_zalloc(t->n_known * CD_LLM_OP_N_FAMILY + 1, sizeof *a->few) : NULL};
    if (!a->stack || !a->kernel || (t && (!a->expect || !a->few))) {
        cd_llm_op_asker_free(a);
        return CD_FAIL(err, ENOMEM, "%zu names", names->n);
    }
    for (size_t i = 0; i < names->n; i++) {
        a->stack[i] = cd_llm_op_model_codes(m, names->text[i], names->text[i]);
        a->kernel[i] = a->stack[i].kernel;
    }
    for (size_t i = 0; t && i < t->n_known * CD_LLM_OP_N_FAMILY; i++) {
        const cdmpp_status st = few_of(a, i / CD_LLM_OP_N_FAMILY, (cd_llm_op_family)(i % CD_LLM_OP_N_FAMILY), err);
        if (!st) continue;
        cd_llm_op_asker_free(a);
        return st;
    }
    *out = a;
    return CDMPP_OK;
}

static unsigned news_of(const cd_llm_op_asker *a, const cd_llm_op_record *r, const cd_llm_op_codes *c, bool seen) {
    const cd_llm_op_range *g = &a->m->range[r->kind];
    unsigned u = 0;
    if (!seen) u |= CD_LLM_OP_NEW_DEVICE;
    if (isnan(c->stack) && a->m->stacks.n) u |= CD_LLM_OP_NEW_STACK;
    if (isnan(c->kernel) && r->kernel) u |= CD_LLM_OP_NEW_KERNEL; /* most questions name no kernel: who asks leaves it to the library */
    if (!g->type[r->type]) u |= CD_LLM_OP_NEW_TYPE;
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

/* The interval round out->latency_s, from the score of the spread. */
static void interval(const cd_llm_op_part *p, double score, double level, cd_llm_op_answer *out) {
    const double half = times_at(p, level) * exp(p->spread_bias + score);
    out->low_s = out->latency_s * exp(-half);
    out->high_s = out->latency_s * exp(half);
}

/* ln: of the time. */
static cdmpp_status apply(const cd_llm_op_part *p, cd_llm_op_set s, const float *x, double ln, double level, cd_llm_op_answer *out, cdmpp_err *err) {
    float y;
    out->latency_s = exp(ln);
    if (!p->spread) return CDMPP_OK;
    CD_TRY(cd_xgb_predict(p->spread, x, 1, cd_llm_op_feature_width(s), &y, err));
    interval(p, (double)y, level, out);
    return CDMPP_OK;
}

static cdmpp_status ln_of(const cd_llm_op_part *p, cd_llm_op_set s, const float *x, double base, double *ln, cdmpp_err *err) {
    float y;
    CD_TRY(cd_xgb_predict(p->gbt, x, 1, cd_llm_op_feature_width(s), &y, err));
    *ln = base + p->bias + (double)y;
    return CDMPP_OK;
}

static const cd_llm_op_part *part_of(const cd_llm_op_asker *a, cd_llm_op_family f, cd_llm_op_set *s) {
    const cd_llm_op_part *p = a->m->part[f];
    if (*s == CD_LLM_OP_SET_NEAR && p[*s].gbt) return &p[*s];
    if (*s == CD_LLM_OP_SET_NEAR) *s = CD_LLM_OP_SET_SEEN;
    if (*s == CD_LLM_OP_SET_SEEN && p[*s].gbt) return &p[*s];
    *s = CD_LLM_OP_SET_UNSEEN;
    return p[*s].gbt ? &p[*s] : NULL;
}

/* ln of what the trees of set seen expect; without such trees the estimate. */
static cdmpp_status expect_of(const cd_llm_op_asker *a, cd_llm_op_family f, const float *x, const cd_llm_op_estimate *e, double *out, cdmpp_err *err) {
    const cd_llm_op_part *p = &a->m->part[f][CD_LLM_OP_SET_SEEN];
    *out = log(e->base_s) + p->bias;
    return p->gbt ? ln_of(p, CD_LLM_OP_SET_SEEN, x, log(e->base_s), out, err) : CDMPP_OK;
}

/* Each value is computed from the row alone, so threads that compute it twice write the same. */
static double expect_row(const void *ctx, size_t row) {
    const cd_llm_op_asker *a = ctx;
    float x[CD_LLM_OP_N_FEATURE], y;
    cd_llm_op_estimate e;
    double v;
    __atomic_load(&a->expect[row], &y, __ATOMIC_RELAXED);
    if (fabsf(y) > 0 || isnan(y)) return (double)y;
    const cd_llm_op_record *r = &a->t->r[row];
    const cd_llm_op_codes c = codes_of(a, r);
    cdmpp_status st = cd_llm_op_feature(r, a->t->known[a->t->device[row]], &c, x, &e, NULL);
    if (!st) st = expect_of(a, cd_llm_op_family_of((cd_llm_op_kind)r->kind), x, &e, &v, NULL);
    y = st ? NAN : (float)v;
    __atomic_store(&a->expect[row], &y, __ATOMIC_RELAXED);
    return (double)y;
}

static cd_llm_op_answer empty(const cd_llm_op_estimate *e) {
    return (cd_llm_op_answer){.how = CD_LLM_OP_PREDICTED, .base_s = e->base_s, .roof_s = e->roof_s, .line_s = NAN, .low_s = NAN, .high_s = NAN};
}

static cdmpp_status no_trees(const cd_llm_op_record *r, cdmpp_err *err) {
    return CD_FAIL(err, EMODEL, "the model was trained on no operator like %s", cd_llm_op_kind_name((cd_llm_op_kind)r->kind));
}

/* Two neighbours stand within two octaves of each other, one on each side. */
static bool between(const float *x) {
    bool found = false;
    for (size_t i = 0; i < CD_LLM_OP_MAX_SIZE; i++) found |= x[CD_LLM_OP_X_gap_below0 + i] + x[CD_LLM_OP_X_gap_above0 + i] <= 2;
    return found;
}

/* What neighbours say. *own: ln of what the trees of set seen expect; NaN: nobody needed it. */
static cdmpp_status neighbours(const cd_llm_op_asker *a, const cd_llm_op_record *r, long device, const cd_llm_op_estimate *e, float *x, double *own, double *said,
                               cd_llm_op_sides *out, cdmpp_err *err) {
    const cd_llm_op_family f = cd_llm_op_family_of((cd_llm_op_kind)r->kind);
    const cd_llm_op_near q = {.t = a->t, .expect = expect_row, .ctx = a};
    *out = CD_LLM_OP_NO_SIDE;
    *own = NAN;
    if (device < 0) return CDMPP_OK;
    const cd_llm_op_few *few = a->few[(size_t)device * CD_LLM_OP_N_FAMILY + f];
    CD_TRY(expect_of(a, f, x, e, own, err));
    *out = cd_llm_op_feature_near(&q, r, (uint32_t)device, *own, x, said);
    if (few && cd_llm_op_few_count(few) < CD_LLM_OP_FEW_MOST && !between(x)) *out = CD_LLM_OP_NO_SIDE; /* a row from afar says less than all together */
    return CDMPP_OK;
}

static cdmpp_status predicted(const cd_llm_op_asker *a, const cd_llm_op_record *r, const cd_device *d, long device, double level, cd_llm_op_answer *out, cdmpp_err *err) {
    const cd_llm_op_family f = cd_llm_op_family_of((cd_llm_op_kind)r->kind);
    const cd_llm_op_codes c = codes_of(a, r);
    const bool seen = cd_llm_op_model_seen(a->m, f, d);
    float x[CD_LLM_OP_N_FEATURE];
    cd_llm_op_estimate e;
    cd_llm_op_sides near;
    double own, said = 0, ln;
    CD_TRY(cd_llm_op_feature(r, d, &c, x, &e, err));
    CD_TRY(neighbours(a, r, device, &e, x, &own, &said, &near, err));
    cd_llm_op_set s = near ? CD_LLM_OP_SET_NEAR : seen ? CD_LLM_OP_SET_SEEN : CD_LLM_OP_SET_UNSEEN;
    const cd_llm_op_part *p = part_of(a, f, &s);
    if (!p) return no_trees(r, err);
    *out = empty(&e);
    out->news = news_of(a, r, &c, seen);
    if (s == CD_LLM_OP_SET_NEAR && near == CD_LLM_OP_TWO_SIDES) out->how = CD_LLM_OP_INTERPOLATED;
    if (near == CD_LLM_OP_TWO_SIDES) out->line_s = exp(said);
    if (s == CD_LLM_OP_SET_NEAR) out->news &= ~(unsigned)CD_LLM_OP_NEW_DEVICE;
    if (s == CD_LLM_OP_SET_SEEN && !isnan(own)) ln = own;
    else CD_TRY(ln_of(p, s, x, s == CD_LLM_OP_SET_NEAR ? said : log(e.base_s), &ln, err));
    CD_TRY(apply(p, s, x, ln, level, out, err));
    const cd_llm_op_few *few = device < 0 || s != CD_LLM_OP_SET_UNSEEN ? NULL : a->few[(size_t)device * CD_LLM_OP_N_FAMILY + f];
    if (few) correct(few, r, &c, &e, out);
    return CDMPP_OK;
}

cdmpp_status cd_llm_op_ask(const cd_llm_op_asker *a, const cd_llm_op_record *r, const cd_device *d, double level, cd_llm_op_answer *out, cdmpp_err *err) {
    const long device = a->t ? cd_llm_op_table_device(a->t, d) : CD_LLM_OP_NONE, row = device < 0 ? device : cd_llm_op_table_find(a->t, r, (uint32_t)device);
    cd_llm_op_estimate e;
    if (row < 0) return predicted(a, r, d, device, level, out, err);
    CD_TRY(cd_llm_op_estimate_of(r, d, &e, err));
    *out = empty(&e);
    out->how = CD_LLM_OP_MEASURED;
    out->latency_s = a->t->r[row].latency_s;
    out->low_s = out->latency_s * exp(-cd_llm_op_table_half(a->t, (size_t)row, level));
    out->high_s = out->latency_s * exp(cd_llm_op_table_half(a->t, (size_t)row, level));
    return CDMPP_OK;
}

/* ---- many at once ---- */
enum { BLOCK = 64 };

/* Rows of one block that one set of trees answers. */
typedef struct {
    const cd_llm_op_part *p;
    size_t n, row[BLOCK];
    double base[BLOCK];
    float x[BLOCK * CD_LLM_OP_N_FEATURE], y[BLOCK], spread[BLOCK];
} batch;

/* The row joins the batch of its trees, if it is answered by trees alone and that batch is of them; else it is answered by itself. */
static cdmpp_status join(const cd_llm_op_asker *a, const cd_llm_op_record *r, const cd_device *d, size_t i, batch *b, cd_llm_op_set of, bool *joined, cd_llm_op_answer *out,
                         cdmpp_err *err) {
    const cd_llm_op_family f = cd_llm_op_family_of((cd_llm_op_kind)r->kind);
    const bool seen = cd_llm_op_model_seen(a->m, f, d);
    const cd_llm_op_codes c = codes_of(a, r);
    cd_llm_op_set s = seen ? CD_LLM_OP_SET_SEEN : CD_LLM_OP_SET_UNSEEN;
    const cd_llm_op_part *p = part_of(a, f, &s);
    cd_llm_op_estimate e;
    float x[CD_LLM_OP_N_FEATURE];
    *joined = p == b->p && s == of;
    if (!*joined) return p ? CDMPP_OK : no_trees(r, err);
    CD_TRY(cd_llm_op_feature(r, d, &c, x, &e, err));
    *out = empty(&e);
    out->news = news_of(a, r, &c, seen);
    memcpy(b->x + b->n * cd_llm_op_feature_width(s), x, cd_llm_op_feature_width(s) * sizeof *x);
    b->base[b->n] = log(e.base_s);
    b->row[b->n++] = i;
    return CDMPP_OK;
}

static cdmpp_status finish(batch *b, cd_llm_op_set s, double level, cd_llm_op_answer *out, cdmpp_err *err) {
    const size_t width = cd_llm_op_feature_width(s);
    CD_TRY(cd_xgb_predict(b->p->gbt, b->x, b->n, width, b->y, err));
    if (b->p->spread) CD_TRY(cd_xgb_predict(b->p->spread, b->x, b->n, width, b->spread, err));
    for (size_t k = 0; k < b->n; k++) {
        cd_llm_op_answer *v = &out[b->row[k]];
        v->latency_s = exp(b->base[k] + b->p->bias + (double)b->y[k]);
        if (b->p->spread) interval(b->p, (double)b->spread[k], level, v);
    }
    return CDMPP_OK;
}

/* One pass over the block for each set of trees that some row needs. */
static cdmpp_status ask_block(const cd_llm_op_asker *a, const cd_llm_op_record *r, const cd_device *const *d, size_t n, double level, batch *b, cd_llm_op_answer *out,
                              cdmpp_err *err) {
    bool done[BLOCK] = {false};
    for (size_t i = 0; i < n; i++) {
        if (done[i]) continue;
        if (a->t && cd_llm_op_table_device(a->t, d[i]) >= 0) {
            CD_TRY(cd_llm_op_ask(a, &r[i], d[i], level, &out[i], err));
            continue;
        }
        const cd_llm_op_family f = cd_llm_op_family_of((cd_llm_op_kind)r[i].kind);
        cd_llm_op_set s = cd_llm_op_model_seen(a->m, f, d[i]) ? CD_LLM_OP_SET_SEEN : CD_LLM_OP_SET_UNSEEN;
        b->p = part_of(a, f, &s);
        b->n = 0;
        if (!b->p) return no_trees(&r[i], err);
        for (size_t k = i; k < n; k++)
            if (!done[k] && cd_llm_op_family_of((cd_llm_op_kind)r[k].kind) == f && !(a->t && cd_llm_op_table_device(a->t, d[k]) >= 0))
                CD_TRY(join(a, &r[k], d[k], k, b, s, &done[k], &out[k], err));
        CD_TRY(finish(b, s, level, out, err));
    }
    return CDMPP_OK;
}

cdmpp_status cd_llm_op_ask_many(const cd_llm_op_asker *a, const cd_llm_op_record *r, const cd_device *const *d, size_t n, double level, cd_llm_op_answer *out,
                                cdmpp_err *err) {
    batch b;
    for (size_t i = 0; i < n; i += BLOCK) CD_TRY(ask_block(a, r + i, d + i, n - i < BLOCK ? n - i : BLOCK, level, &b, out + i, err));
    return CDMPP_OK;
}

void cd_llm_op_news_text(unsigned news, char out[40]) {
    size_t n = 0;
    out[0] = 0;
    for (int k = 0; 1u << k <= CD_LLM_OP_NEW_SIZE; k++) {
        const cd_str w = cd_enum_names_at(CD_LLM_OP_NEWS, k);
        if (!(news >> k & 1)) continue;
        if (n) out[n++] = '+';
        memcpy(out + n, w.p, w.n);
        out[n += w.n] = 0;
    }
}
