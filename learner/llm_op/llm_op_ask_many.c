/* Many answers at once: each step is made of all records of a block before the next, so that trees
 * score many rows in one call and memory is waited for together. */
#include <math.h>
#include <string.h>

#include "learner/llm_op/llm_op_ask_internal.h"

typedef cd_llm_op_asking asking;

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
                cd_llm_op_expect_await(a, q->f, (size_t)q->beside.row[i][k], b->known, b->x, w);
}

/* Neighbours, and what the trees expect of those that nobody asked for before. */
static void beside_all(const cd_llm_op_asker *a, batch *b, size_t n) {
    unsigned families = 0;
    for (size_t i = 0; i < n; i++) {
        if (b->q[i].device < 0) continue;
        cd_llm_op_ask_beside(a, &b->q[i]);
        families |= 1U << b->q[i].f;
    }
    for (size_t f = 0; families >> f; f++) {
        cd_llm_op_awaited w = {.n = 0};
        for (size_t i = 0; i < n; i++)
            if (b->q[i].device >= 0 && b->q[i].f == f) await(a, b, &b->q[i], &w);
        cd_llm_op_expect_flush(a, (cd_llm_op_family)f, b->known, b->x, &w);
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
            if (b->q[i].p == p && !cd_llm_op_ask_is_own(&b->q[i]))
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
        b->q[i].device = b->bare ? CD_LLM_OP_NONE : cd_llm_op_ask_device(a, d[i]);
        b->may[i] = cd_llm_op_ask_curves(a, &r[i], b->q[i].device, &b->q[i]);
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
            row < 0 ? cd_llm_op_ask_begin(a, &r[i], d[i], device, b->known, &b->q[i], &why)
                    : cd_llm_op_ask_measured(a, &r[i], d[i], (size_t)row, level, &out[i], &why);
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
            rows |= cd_llm_op_ask_device(a, b->q[i].twin) >= 0, r[m] = *b->q[i].r,
                                                                d[m] = b->q[i].twin, of[m++] = i;
    if (!m) return CDMPP_OK;
    CD_TRY(ask_all(a, r, d, m, level, false, v, why, err));
    if (rows) CD_TRY(ask_all(a, r, d, m, level, true, without, more, err));
    for (size_t k = 0; k < m; k++) {
        const cdmpp_err *bad = !why[k].code && rows && more[k].code ? &more[k] : &why[k];
        if (!bad->code && cd_llm_op_ask_device(a, d[k]) >= 0)
            cd_llm_op_ask_widen(&without[k], &v[k]);
        if (!bad->code) cd_llm_op_ask_tell_twin(a, &b->q[of[k]], &v[k], &out[of[k]]);
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
        if (going[i]) CD_TRY(of_one(cd_llm_op_ask_choose(a, &b->q[i], &why), &why, whys, i, err));
    CD_TRY(scores_of(a, b, n, err));
    for (size_t i = 0; i < n; i++)
        if (b->q[i].p) cd_llm_op_ask_tell(a, &b->q[i], level, &out[i]);
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
