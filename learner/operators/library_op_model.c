/* Predictions of library operators: for each family two sets of trees, one for devices that were
 * trained on and one for others. */
#include <math.h>
#include <string.h>

#include "learner/operators/operators.h"

enum { CHUNK = 2048 };

void cd_library_op_model_free(cd_library_op_model *m) {
    if (!m) return;
    for (size_t f = 0; f < CD_LIBRARY_OP_N_FAMILY; f++)
        for (size_t s = 0; s < 2; s++) cd_xgb_free(m->part[f][s].gbt);
    cd_arena_free(&m->arena);
    cd_mem_free(m);
}

const char *cd_library_op_model_header(const cd_library_op_model *m) { return m->header; }

static const cd_library_op_model_device *known(const cd_library_op_model *m, const cd_device *d) {
    for (size_t i = 0; i < m->n_device; i++)
        if (!strcmp(m->device[i].is.name, d->name)) return &m->device[i];
    return NULL;
}

bool cd_library_op_model_seen(const cd_library_op_model *m, cd_library_op_kind k,
                              const cd_device *d) {
    const cd_library_op_model_device *v = known(m, d);
    return v && v->class[cd_library_op_kind_class(k)];
}

double cd_library_op_record_work(const cd_library_op_record *r) {
    const cd_library_op_family f = cd_library_op_family_of(r->kind);
    return f == CD_LIBRARY_OP_FAMILY_GEMM || f == CD_LIBRARY_OP_FAMILY_CONV
               ? 2 * r->b * r->m * r->n * r->k
               : r->m * r->n;
}

void cd_library_op_record_sizes(const cd_library_op_record *r, double out[CD_LIBRARY_OP_N_SIZE]) {
    const cd_library_op_family f = cd_library_op_family_of(r->kind);
    const bool product = f == CD_LIBRARY_OP_FAMILY_GEMM || f == CD_LIBRARY_OP_FAMILY_CONV;
    const bool rows =
        product || cd_library_op_kind_class(r->kind) != CD_LIBRARY_OP_CLASS_ELEMENTWISE;
    const double size[CD_LIBRARY_OP_N_SIZE] = {
        cd_library_op_record_work(r), product ? r->b : 0,    rows ? r->m : 0, rows ? r->n : 0,
        product ? r->k : 0,           product ? r->ksize : 0};
    memcpy(out, size, sizeof size);
}

double cd_library_op_record_reach(const cd_library_op_record *r,
                                  const double limit[CD_LIBRARY_OP_N_SIZE]) {
    double size[CD_LIBRARY_OP_N_SIZE], most = 0;
    cd_library_op_record_sizes(r, size);
    for (size_t i = 0; i < CD_LIBRARY_OP_N_SIZE; i++)
        if (limit[i] > 0 && size[i] > limit[i]) most = fmax(most, log2(size[i] / limit[i]));
    return most;
}

bool cd_library_op_model_beyond(const cd_library_op_model *m, const cd_library_op_record *r) {
    const double *limit = m->largest[cd_library_op_kind_class(r->kind)];
    double size[CD_LIBRARY_OP_N_SIZE];
    bool any = false;
    cd_library_op_record_sizes(r, size);
    for (size_t i = 0; i < CD_LIBRARY_OP_N_SIZE; i++) any |= size[i] > limit[i];
    return any;
}

/* ---- intervals ---- */
bool cd_library_op_same_stack(const cd_device *a, const cd_device *b) {
    return a->warp > 0 && fabs(a->warp - b->warp) < 0.5;
}

cd_library_op_apart cd_library_op_model_apart(const cd_library_op_model *m,
                                              const cd_library_op_record *r, const cd_device *d) {
    const cd_library_op_class class = cd_library_op_kind_class(r->kind);
    cd_library_op_apart a = {.reach = cd_library_op_record_reach(r, m->largest[class]),
                             .distance = -1};
    if (cd_library_op_model_seen(m, r->kind, d)) return a;
    float want[CD_N_DEVICE_COL], has[CD_N_DEVICE_COL];
    double nearest = INFINITY;
    bool any = false, same = false;
    for (size_t i = 0; i < m->n_device; i++) any |= m->device[i].class[class];
    cd_device_vector(d, want);
    for (size_t i = 0; i < m->n_device; i++) {
        if (any && !m->device[i].class[class]) continue;
        cd_device_vector(&m->device[i].is, has);
        nearest = fmin(nearest, cd_device_distance(want, has));
        same |= cd_library_op_same_stack(d, &m->device[i].is);
    }
    a.other = !same;
    if (any && isfinite(nearest)) a.distance = nearest; /* else the class is what is new */
    return a;
}

static unsigned unlike(const cd_library_op_model *m, const cd_library_op_record *r,
                       const cd_device *d) {
    unsigned u = 0;
    if (!cd_library_op_model_seen(m, r->kind, d)) u |= CD_LIBRARY_OP_UNLIKE_DEVICE;
    if (!m->dtype[r->dtype]) u |= CD_LIBRARY_OP_UNLIKE_DTYPE;
    if (!m->kind[r->kind]) u |= CD_LIBRARY_OP_UNLIKE_OPERATOR;
    if (cd_library_op_model_beyond(m, r)) u |= CD_LIBRARY_OP_UNLIKE_BEYOND;
    return u;
}

/* Devices of one maker tell nothing of another's. */
static bool one_maker(const cd_library_op_model *m) {
    for (size_t i = 1; i < m->n_device; i++)
        if (!cd_library_op_same_stack(&m->device[0].is, &m->device[i].is)) return false;
    return true;
}

/* The widest of those that apply, so that what is less known never looks surer. A row is larger or
 * of a new device: without an entry for that nothing is known. Nor is it of a type or an operator
 * that no row has, which no training held out, and of another maker's device where none was. */
static const cd_library_op_spread *spread_of(const cd_library_op_model *m,
                                             const cd_library_op_record *r, const cd_device *d,
                                             unsigned u, double latency_s,
                                             const cd_library_op_apart *apart, double level) {
    const cd_library_op_model_device *own = known(m, d);
    const uint32_t device = own ? (uint32_t)(own - m->device) : CD_LIBRARY_OP_ANY_DEVICE;
    const cd_library_op_class class = cd_library_op_kind_class(r->kind);
    const cd_library_op_spread *best = NULL;
    const bool ask[CD_LIBRARY_OP_N_ENTRY] = {true, (u & CD_LIBRARY_OP_UNLIKE_BEYOND) != 0,
                                             (u & CD_LIBRARY_OP_UNLIKE_DEVICE) != 0};
    double widest = 0;
    if (u & (CD_LIBRARY_OP_UNLIKE_DTYPE | CD_LIBRARY_OP_UNLIKE_OPERATOR) ||
        (apart->other && one_maker(m)))
        return NULL;
    for (int h = 0; h < CD_LIBRARY_OP_N_ENTRY; h++) {
        if (!ask[h]) continue;
        const cd_library_op_spread *s =
            cd_library_op_spread_find(m->spread, m->n_spread, (cd_library_op_held)h, class, device);
        if (!s && h != CD_LIBRARY_OP_HELD_ROW) return NULL;
        const double half = s ? cd_library_op_spread_half(s, latency_s, apart, level) : 0;
        if (half > widest) best = s;
        widest = fmax(widest, half);
    }
    return best;
}

cd_library_op_range cd_library_op_model_range(const cd_library_op_model *m,
                                              const cd_library_op_record *r, const cd_device *d,
                                              double latency_s, double level) {
    static const double z = 1.6448536269514722; /* of the level 0.9 */
    const cd_library_op_apart apart = cd_library_op_model_apart(m, r, d);
    cd_library_op_range out = {.low_s = NAN,
                               .high_s = NAN,
                               .unlike = unlike(m, r, d) |
                                         (apart.other ? CD_LIBRARY_OP_UNLIKE_STACK : 0)};
    const cd_library_op_spread *s = spread_of(m, r, d, out.unlike, latency_s, &apart, level);
    if (!s) return out;
    const double half = cd_library_op_spread_half(s, latency_s, &apart, level);
    out.low_s = fmax(latency_s * exp(-half), fmin(cd_library_op_least_s(r, d), latency_s));
    out.high_s = latency_s * exp(half);
    out.spread = cd_library_op_spread_half(s, latency_s, &apart, 0.9) / z;
    out.shared = cd_library_op_spread_shared(s, latency_s, &apart);
    return out;
}

void cd_library_op_unlike_text(unsigned u, char out[40]) {
    static const char *const name[] = {"device", "dtype", "operator", "beyond", "stack"};
    out[0] = 0;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (u >> i & 1) {
            if (out[0]) strcat(out, "+");
            strcat(out, name[i]);
        }
}

/* Rows of one part, waiting for its trees. */
typedef struct {
    size_t width;
    float *x, *score;         /* (CHUNK, width), (CHUNK) */
    cd_library_op_base *base; /* (n) */
    size_t *at, n;            /* (CHUNK) indices of records */
} batch;

static cdmpp_status flush(const cd_library_op_model_part *p, batch *b, double *latency_s,
                          cdmpp_err *err) {
    CD_TRY(cd_xgb_predict(p->gbt, b->x, b->n, b->width, b->score, err));
    for (size_t i = 0; i < b->n; i++) {
        const cd_library_op_base *base = &b->base[b->at[i]];
        const double y = fmax(base->floor_s, base->base_s * exp(p->bias + (double)b->score[i]));
        if (!isfinite(y) || y <= 0)
            return cd_err_index(err, CD_FAIL(err, ENUMERIC, "latency of %g s", y), b->at[i]);
        latency_s[b->at[i]] = y;
    }
    b->n = 0;
    return CDMPP_OK;
}

/* All records of one part, in batches. */
static cdmpp_status run_part(const cd_library_op_model *m, size_t family, size_t seen,
                             const cd_library_op_record *r, const cd_device *const *device,
                             size_t n, batch *b, double *latency_s, cdmpp_err *err) {
    const cd_library_op_model_part *p = &m->part[family][seen];
    uint8_t column[CD_LIBRARY_OP_N_FEATURE];
    b->width = cd_library_op_feature_columns((cd_library_op_family)family, seen, column);
    for (size_t i = 0; i < n; i++) {
        if (cd_library_op_family_of(r[i].kind) != (cd_library_op_family)family ||
            cd_library_op_model_seen(m, r[i].kind, device[i]) != (seen == 1))
            continue;
        if (!p->gbt)
            return cd_err_index(err,
                                CD_FAIL(err, EMODEL,
                                        "the model was not trained on operators like %s",
                                        cd_library_op_kind_name(r[i].kind)),
                                i);
        const cd_library_op_model_device *own = seen ? known(m, device[i]) : NULL;
        const cdmpp_status st = cd_library_op_feature(&r[i], own ? &own->is : device[i], seen,
                                                      b->x + b->n * b->width, &b->base[i], err);
        if (st) return cd_err_index(err, st, i);
        /* a model may describe fewer peaks of it */
        b->base[i].floor_s = fmax(b->base[i].floor_s, cd_library_op_least_s(&r[i], device[i]));
        b->at[b->n++] = i;
        if (b->n == CHUNK) CD_TRY(flush(p, b, latency_s, err));
    }
    return b->n ? flush(p, b, latency_s, err) : CDMPP_OK;
}

/* Records are gathered by family and part, so that each booster is called on many rows. */
cdmpp_status cd_library_op_model_predict(const cd_library_op_model *m,
                                         const cd_library_op_record *r,
                                         const cd_device *const *device, size_t n,
                                         double *latency_s, cdmpp_err *err) {
    const size_t rows = n < CHUNK ? n : CHUNK;
    batch b = {.x = cd_mem_zalloc(rows + 1, CD_LIBRARY_OP_N_FEATURE * sizeof *b.x),
               .score = cd_mem_zalloc(rows, sizeof *b.score),
               .base = cd_mem_zalloc(n, sizeof *b.base),
               .at = cd_mem_zalloc(rows, sizeof *b.at)};
    cdmpp_status st = CDMPP_OK;
    if (n && (!b.x || !b.score || !b.base || !b.at)) st = CD_FAIL(err, ENOMEM, "%zu records", n);
    for (size_t f = 0; !st && f < CD_LIBRARY_OP_N_FAMILY; f++)
        for (size_t s = 0; !st && s < 2; s++)
            st = run_part(m, f, s, r, device, n, &b, latency_s, err);
    cd_mem_free(b.x);
    cd_mem_free(b.score);
    cd_mem_free(b.base);
    cd_mem_free(b.at);
    return st;
}
