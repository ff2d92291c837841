/* What measured neighbours say of an operator: interpolation along each size, and how curves beside
 * bend. */
#include <math.h>

#include "learner/llm_op/llm_op_feature.h"

enum { MOST_ALIKE = 12 };

typedef struct {
    const cd_llm_op_near *q;
    const cd_llm_op_table *t;
    const cd_llm_op_record *r;
    uint32_t device;
    double own;
    const cd_llm_op_beside *near;
    /* ln of a neighbour's time; how much slower it is than expected, ln */
    double ln[CD_LLM_OP_MAX_SIZE][2], beyond[CD_LLM_OP_MAX_SIZE][2];
    /* NaN: not both sides */
    double line[CD_LLM_OP_MAX_SIZE], shape[CD_LLM_OP_MAX_SIZE], gap[CD_LLM_OP_MAX_SIZE][2];
} asking;

static double ln_time(const asking *a, long row) { return log(a->t->r[row].latency_s); }

/* Where the record stands between its neighbours, 0 to 1. A cache or a window may be 0: one is
 * added. */
static double place(const asking *a, size_t i) {
    return a->gap[i][0] / (a->gap[i][0] + a->gap[i][1]);
}

void cd_llm_op_feature_beside(const cd_llm_op_near *q, const cd_llm_op_record *r, uint32_t device,
                              cd_llm_op_beside *out) {
    for (size_t i = 0, n = cd_llm_op_n_size((cd_llm_op_kind)r->kind); i < n; i++) {
        out->row[i][0] = out->row[i][1] = CD_LLM_OP_NONE;
        if (!(q->hide_sizes >> i & 1))
            cd_llm_op_table_near(q->t, r, device, i, q->curve[i], NULL, out->row[i]);
    }
}

static void look(asking *a, size_t i) {
    const long *v = a->near->row[i];
    a->line[i] = a->shape[i] = NAN;
    for (size_t k = 0; k < 2; k++) {
        a->gap[i][k] = NAN;
        if (v[k] < 0) continue;
        a->gap[i][k] = fabs(log2((a->t->r[v[k]].size[i] + 1) / (a->r->size[i] + 1)));
        a->ln[i][k] = ln_time(a, v[k]);
        a->beyond[i][k] = a->ln[i][k] - a->q->expect(a->q->ctx, (size_t)v[k]);
    }
    if (v[0] < 0 || v[1] < 0) return;
    const double at = place(a, i);
    a->line[i] = a->ln[i][0] + at * (a->ln[i][1] - a->ln[i][0]);
    a->shape[i] = a->own + (1 - at) * a->beyond[i][0] + at * a->beyond[i][1];
}

/* Row `p`, which has the record's own place on the axis, and where rows of its curve at the two
 * neighbours' places would be. */
typedef struct {
    long p;
    uint64_t hash[2];
} curve;

/* The row's record at a neighbour's place. */
static cd_llm_op_record end_of(const asking *a, long p, size_t axis, size_t k) {
    cd_llm_op_record r = a->t->r[p];
    r.size[axis] = a->t->r[a->near->row[axis][k]].size[axis];
    return r;
}

/* All curves are asked for before the first is waited for: their rows lie far apart in memory. */
static void fetch(const asking *a, size_t axis, curve *v, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 2; k++) {
            const cd_llm_op_record r = end_of(a, v[i].p, axis, k);
            v[i].hash[k] = cd_llm_op_table_hash(a->t, &r, a->device);
        }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 2; k++) cd_llm_op_table_fetch(a->t, v[i].hash[k]);
}

/* The row against the line between the ends of its curve. NaN: they are not there. */
static double bend(const asking *a, const curve *v, size_t axis, double end[2]) {
    for (size_t k = 0; k < 2; k++) {
        const cd_llm_op_record r = end_of(a, v->p, axis, k);
        const long at = cd_llm_op_table_at(a->t, &r, a->device, v->hash[k]);
        if (at < 0) return NAN;
        end[k] = ln_time(a, at);
    }
    const double at = place(a, axis);
    return ln_time(a, v->p) - end[0] - at * (end[1] - end[0]);
}

static void bends_beside(const asking *a, size_t axis, size_t n, float *x) {
    double end[2];
    curve v[2 * CD_LLM_OP_MAX_SIZE];
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 2; k++)
            if (i != axis && a->near->row[i][k] >= 0) v[m++].p = a->near->row[i][k];
    fetch(a, axis, v, m);
    m = 0;
    for (size_t i = 0; i < n; i++) {
        double sum = 0, count = 0;
        for (size_t k = 0; k < 2 && i != axis; k++) {
            const double b = a->near->row[i][k] < 0 ? (double)NAN : bend(a, &v[m++], axis, end);
            if (!isnan(b)) sum += b, count++;
        }
        if (count > 0) x[CD_LLM_OP_X_bend0 + i] = (float)(sum / count);
    }
}

/* Curves of other types and stacks run alike where their slope between the two points is the
 * same. */
static void bends_alike(const asking *a, size_t axis, float *x) {
    uint32_t row[MOST_ALIKE];
    curve v[MOST_ALIKE];
    double end[2], sum = 0, count = 0, least = INFINITY;
    const double low = a->ln[axis][0], high = a->ln[axis][1];
    const size_t n = a->q->hide_alike ? 0
                                      : cd_llm_op_table_alike(a->t, a->r, a->device,
                                                              a->q->curve[CD_LLM_OP_MAX_SIZE], NULL,
                                                              MOST_ALIKE, row);
    for (size_t k = 0; k < n; k++) v[k].p = row[k];
    fetch(a, axis, v, n);
    for (size_t k = 0; k < n; k++) {
        const double b = bend(a, &v[k], axis, end);
        if (isnan(b)) continue;
        const double apart = fabs(end[0] - low) + fabs(end[1] - high);
        sum += b, count++;
        if (apart >= least) continue;
        least = apart;
        x[CD_LLM_OP_X_bend_nearest] = (float)b;
        x[CD_LLM_OP_X_apart_nearest] = (float)apart;
    }
    if (count > 0) x[CD_LLM_OP_X_bend_alike] = (float)(sum / count);
}

/* The size along which two neighbours are asked: the kind's own axis, which is the first, else that
 * with the nearest two. */
static size_t axis_of(const asking *a, size_t n) {
    size_t axis = CD_LLM_OP_MAX_SIZE;
    double least = INFINITY;
    for (size_t i = 0; i < n && axis != 0; i++) {
        const double wide = a->gap[i][0] + a->gap[i][1];
        if (isnan(a->line[i]) || wide >= least) continue;
        axis = i;
        least = wide;
    }
    return axis;
}

/* The nearest row on any curve, as far from its estimate as the record from its own. */
static bool one_side(const asking *a, size_t n, double *said) {
    double least = INFINITY;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 2; k++) {
            if (a->near->row[i][k] < 0 || a->gap[i][k] >= least || isnan(a->beyond[i][k])) continue;
            least = a->gap[i][k];
            *said = a->own + a->beyond[i][k];
        }
    return isfinite(least);
}

cd_llm_op_sides cd_llm_op_feature_near(const cd_llm_op_near *q, const cd_llm_op_record *r,
                                       uint32_t device, const cd_llm_op_beside *near, double own,
                                       float x[CD_LLM_OP_N_FEATURE], double *said) {
    asking a;
    a.q = q, a.t = q->t, a.r = r, a.device = device, a.own = own, a.near = near;
    const size_t n = cd_llm_op_n_size((cd_llm_op_kind)r->kind);
    for (size_t i = 0; i < n; i++) look(&a, i);
    const size_t axis = axis_of(&a, n);
    const bool two = axis < CD_LLM_OP_MAX_SIZE;
    if (two) *said = a.line[axis];
    else if (!one_side(&a, n, said)) return CD_LLM_OP_NO_SIDE;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < 2; k++) {
            if (near->row[i][k] < 0) continue;
            x[(k ? CD_LLM_OP_X_above0 : CD_LLM_OP_X_below0) + i] = (float)(a.ln[i][k] - *said);
            x[(k ? CD_LLM_OP_X_gap_above0 : CD_LLM_OP_X_gap_below0) + i] = (float)a.gap[i][k];
            x[(k ? CD_LLM_OP_X_shape_above0 : CD_LLM_OP_X_shape_below0) + i] =
                (float)(own + a.beyond[i][k] - *said);
        }
        x[CD_LLM_OP_X_line0 + i] = (float)(a.line[i] - *said);
        x[CD_LLM_OP_X_shape0 + i] = (float)(a.shape[i] - *said);
    }
    x[CD_LLM_OP_X_expect] = (float)(own - *said);
    if (!two) return CD_LLM_OP_ONE_SIDE;
    bends_beside(&a, axis, n, x);
    bends_alike(&a, axis, x);
    return CD_LLM_OP_TWO_SIDES;
}
