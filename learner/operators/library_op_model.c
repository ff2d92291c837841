/* Predictions of library operators: for each family two sets of trees, one for devices that were
 * trained on and one for others. */
#include <math.h>
#include <string.h>

#include "learner/operators/library_op_feature.h"
#include "learner/operators/library_op_scale.h"
#include "learner/operators/operators.h"

/* Features of an operator on a device: ratios of work to what the device can do, and of sizes to
 * the tiles that libraries use. The model learns the time as a factor over a roofline estimate
 * (base). */

#define ENERGY_PJ    15.0 /* of an fp32 operation at 12 nm, board and memory included */
#define ENERGY_NM    12.0
#define ENERGY_SLOPE 0.91            /* energy grows with the process to this power */
#define REACHED      0.85            /* of the peak, by kernels that no limit holds back */
#define ISSUED       (512.0 / 563.0) /* multiply-adds among the instructions of a product */
#define LIMIT_ACTS_S 1e-4
#define LAUNCH_S     2e-5
#define LONG_ROW     1024 /* PyTorch keeps shorter rows in the registers of one warp */

typedef enum { SHAPE, GENERATION, DEVICE } group;
enum {
    ELEMENTWISE = 1 << CD_LIBRARY_OP_FAMILY_ELEMENTWISE,
    CONV = 1 << CD_LIBRARY_OP_FAMILY_CONV,
    PRODUCT = CONV | 1 << CD_LIBRARY_OP_FAMILY_GEMM,
    STREAM = ELEMENTWISE | 1 << CD_LIBRARY_OP_FAMILY_SOFTMAX | 1 << CD_LIBRARY_OP_FAMILY_LAYERNORM,
    ALL = PRODUCT | STREAM
};
static const struct {
    const char *name;
    int families;
    group of;
} cols[CD_LIBRARY_OP_N_FEATURE] = {
#define X(name, families, group, meaning) {#name, families, group},
#include "learner/operators/library_op_feature_cols.def"
};

const char *cd_library_op_feature_name(size_t i) { return cols[i].name; }

cd_library_op_family cd_library_op_family_of(cd_library_op_kind k) {
    switch (cd_library_op_kind_class(k)) {
    case CD_LIBRARY_OP_CLASS_BMM:
    case CD_LIBRARY_OP_CLASS_LINEAR: return CD_LIBRARY_OP_FAMILY_GEMM;
    case CD_LIBRARY_OP_CLASS_SOFTMAX: return CD_LIBRARY_OP_FAMILY_SOFTMAX;
    case CD_LIBRARY_OP_CLASS_LAYERNORM: return CD_LIBRARY_OP_FAMILY_LAYERNORM;
    case CD_LIBRARY_OP_CLASS_CONV: return CD_LIBRARY_OP_FAMILY_CONV;
    case CD_LIBRARY_OP_CLASS_ELEMENTWISE:
    case CD_N_LIBRARY_OP_CLASS: break;
    }
    return CD_LIBRARY_OP_FAMILY_ELEMENTWISE;
}

const char *cd_library_op_family_name(cd_library_op_family f) {
    static const char *const name[CD_LIBRARY_OP_N_FAMILY] = {"gemm", "elementwise", "softmax",
                                                             "layernorm", "conv"};
    return name[f];
}

static bool is_product(cd_library_op_family f) { return (PRODUCT >> f & 1) != 0; }

size_t cd_library_op_feature_columns(cd_library_op_family f, bool seen,
                                     uint8_t column[CD_LIBRARY_OP_N_FEATURE]) {
    size_t n = 0;
    for (size_t i = 0; i < CD_LIBRARY_OP_N_FEATURE; i++) {
        const group g = cols[i].of;
        if ((cols[i].families >> f & 1) &&
            (seen || g == SHAPE || (g == GENERATION && is_product(f))))
            column[n++] = (uint8_t)i;
    }
    return n;
}

/* ---- the device ---- */
static cdmpp_status check_device(const cd_device *d, cdmpp_err *err) {
    const struct {
        const char *key;
        double value;
    } need[] = {{"cores", d->cores},
                {"bandwidth_gb_s", d->bandwidth_gb_s},
                {"fp32_gflops", d->fp32_gflops},
                {"l1_kb", d->l1_kb}};
    if (d->kind == CD_DEVICE_CPU)
        return CD_FAIL(err, EMODEL,
                       "operator models are of GPUs and other accelerators, %s is a %s", d->name,
                       cd_device_kind_name(d->kind));
    for (size_t i = 0; i < sizeof need / sizeof *need; i++)
        if (!(need[i].value > 0))
            return cd_err_key(
                err, CD_FAIL(err, EMODEL, "device %s: the description lacks this number", d->name),
                need[i].key);
    return CDMPP_OK;
}

/* Operations a second that the type and the units allow. */
static double peak_of(const cd_device *d, cd_library_op_dtype t, bool product) {
    const double fp32 = product ? fmax(d->fp32_gflops, d->fp32_matrix_gflops) : d->fp32_gflops;
    const double half = fmax(d->fp16_tflops, product ? d->tensor_tflops : 0) * 1e3;
    if (t == CD_LIBRARY_OP_DTYPE_BF16 && d->bf16_tflops >= 0)
        return 1e9 * fmax(product ? d->bf16_tflops * 1e3 : 0, d->fp32_gflops);
    return 1e9 * (t == CD_LIBRARY_OP_DTYPE_F32 ? fp32 : fmax(half, d->fp32_gflops));
}

/* Share of the fp32 peak that the power limit allows for long. */
static double limit_of(const cd_device *d) {
    if (!(d->tdp_w > 0) || !(d->process_nm > 0)) return 1;
    const double energy_pj = ENERGY_PJ * pow(d->process_nm / ENERGY_NM, ENERGY_SLOPE);
    return fmin(1, d->tdp_w * 1e3 / (REACHED * d->fp32_gflops * energy_pj));
}

/* Share of the fp32 peak that the schedulers can issue multiply-adds for: four to a core, one
 * instruction a clock each since Volta (12 nm), two before. AMD's issue other kinds beside. */
static double issue_of(const cd_device *d) {
    const bool one_each = d->warp == 32 && d->process_nm > 0 && d->process_nm <= 12;
    return one_each && d->lanes >= 128 && !(d->fp32_matrix_gflops > 0) ? ISSUED : 1;
}

/* ---- base times ---- */

/* Elements that a convolution reads besides its weights. */
static double conv_input(const cd_library_op_record *r) {
    const double side = floor((r->size + 2 * r->pad - r->ksize) / r->stride) + 1;
    return r->m / (side * side) * r->cin * r->size * r->size;
}

double cd_library_op_bytes(const cd_library_op_record *r) {
    const double size = cd_library_op_dtype_bytes(r->dtype),
                 input = r->kind == CD_LIBRARY_OP_CONV ? conv_input(r) : r->b * r->m * r->k;
    if (!is_product(cd_library_op_family_of(r->kind)))
        return size * r->m * r->n * (cd_library_op_kind_inputs(r->kind) + 1);
    return size * (input + r->b * r->k * r->n + r->b * r->m * r->n);
}

static void product_base(const cd_library_op_record *r, const cd_device *d, cd_library_op_base *b) {
    const bool fp32 = r->dtype == CD_LIBRARY_OP_DTYPE_F32;
    const double peak = peak_of(d, r->dtype, true), issue = fp32 ? issue_of(d) : 1,
                 p = fp32 ? fmin(issue, limit_of(d)) : 1;
    b->flops = 2 * r->b * r->m * r->n * r->k;
    b->bytes = cd_library_op_bytes(r);
    b->compute_s = b->flops / peak;
    b->memory_s = b->bytes / (d->bandwidth_gb_s * 1e9);
    const double g = issue - (issue - p) * b->compute_s / (b->compute_s + LIMIT_ACTS_S);
    b->base_s = hypot(b->compute_s / g, b->memory_s);
    /* fast algorithms do fewer operations */
    b->floor_s = r->kind == CD_LIBRARY_OP_CONV ? 0 : b->compute_s;
}

static void stream_base(const cd_library_op_record *r, const cd_device *d, cd_library_op_family f,
                        cd_library_op_base *b) {
    const double n = r->m * r->n, peak = peak_of(d, CD_LIBRARY_OP_DTYPE_F32, false);
    const double tensors = cd_library_op_kind_inputs(r->kind) + 1;
    double passes = tensors;
    if (f == CD_LIBRARY_OP_FAMILY_LAYERNORM) passes = 3;
    /* maximum, sum, result: each reads the row again */
    if (f == CD_LIBRARY_OP_FAMILY_SOFTMAX) passes = r->n > LONG_ROW ? 4 : 2;
    b->flops = n;
    b->bytes = cd_library_op_bytes(r);
    b->compute_s = n / peak;
    b->memory_s = b->bytes / (d->bandwidth_gb_s * 1e9);
    b->base_s = b->memory_s + passes * 4 * n / peak + LAUNCH_S;
    b->floor_s = 0;
}

double cd_library_op_least_s(const cd_library_op_record *r, const cd_device *d) {
    static const cd_te_least_type type[CD_N_LIBRARY_OP_DTYPE] = {CD_TE_LEAST_F32, CD_TE_LEAST_F16,
                                                                 CD_TE_LEAST_BF16};
    const double peak = cd_device_peak(d, type[r->dtype]);
    if (r->kind == CD_LIBRARY_OP_CONV || !is_product(cd_library_op_family_of(r->kind)) ||
        !(peak > 0))
        return 0;
    return 2 * r->b * r->m * r->n * r->k / peak;
}

/* ---- ratios ---- */
static float lg(double x) { return (float)log2(x); }
static double blocks(double n, double tile) { return ceil(n / tile); }
static float fill(double n, double tile) { return (float)(n / (blocks(n, tile) * tile)); }

static void tile(const cd_library_op_record *r, const cd_device *d, double a, double b,
                 float x[2]) {
    const double rounds = r->b * blocks(r->m, a) * blocks(r->n, b) / d->cores;
    x[0] = lg(rounds);
    x[1] = (float)(rounds / ceil(rounds));
}

/* Tile sizes are those of common GPU kernels: how many waves of blocks they need, and how well they
 * fill the matrix. */
static void product_ratios(const cd_library_op_record *r, const cd_device *d, float *x) {
    static const double size[6][2] = {{128, 128}, {128, 64}, {64, 64},
                                      {32, 32},   {128, 32}, {32, 128}};
    static const double side[3] = {32, 64, 128};
    for (size_t i = 0; i < 6; i++)
        tile(r, d, size[i][0], size[i][1], x + CD_LIBRARY_OP_FEATURE_waves_128x128 + 2 * i);
    for (size_t i = 0; i < 3; i++) {
        x[CD_LIBRARY_OP_FEATURE_fill_m32 + 2 * i] = fill(r->m, side[i]);
        x[CD_LIBRARY_OP_FEATURE_fill_n32 + 2 * i] = fill(r->n, side[i]);
    }
    x[CD_LIBRARY_OP_FEATURE_k] = lg(r->k);
    x[CD_LIBRARY_OP_FEATURE_m] = lg(r->m);
    x[CD_LIBRARY_OP_FEATURE_n] = lg(r->n);
    x[CD_LIBRARY_OP_FEATURE_b] = lg(r->b);
    x[CD_LIBRARY_OP_FEATURE_batched] = r->kind == CD_LIBRARY_OP_BMM;
    if (r->kind != CD_LIBRARY_OP_CONV) return;
    x[CD_LIBRARY_OP_FEATURE_kernel] = (float)r->ksize;
    x[CD_LIBRARY_OP_FEATURE_stride] = (float)r->stride;
    x[CD_LIBRARY_OP_FEATURE_channels] = lg(r->cin);
}

static void stream_ratios(const cd_library_op_record *r, const cd_device *d, float *x) {
    x[CD_LIBRARY_OP_FEATURE_n] = lg(r->n);
    x[CD_LIBRARY_OP_FEATURE_op] = (float)r->kind;
    x[CD_LIBRARY_OP_FEATURE_inputs] = (float)cd_library_op_kind_inputs(r->kind);
    x[CD_LIBRARY_OP_FEATURE_aligned] = fmod(r->n, 4) < 0.5;
    x[CD_LIBRARY_OP_FEATURE_long_row] = r->n > LONG_ROW;
    x[CD_LIBRARY_OP_FEATURE_row_cache] =
        lg(r->n * cd_library_op_dtype_bytes(r->dtype) / (d->l1_kb * 128));
}

static void device_ratios(const cd_device *d, double peak, float *x) {
    x[CD_LIBRARY_OP_FEATURE_process] = d->process_nm > 0 ? (float)d->process_nm : NAN;
    x[CD_LIBRARY_OP_FEATURE_balance] = lg(peak / (d->bandwidth_gb_s * 1e9));
    x[CD_LIBRARY_OP_FEATURE_cores] = lg(d->cores);
    x[CD_LIBRARY_OP_FEATURE_lanes] = d->lanes > 0 ? (float)d->lanes : NAN;
    x[CD_LIBRARY_OP_FEATURE_power] = d->tdp_w > 0 ? (float)(d->tdp_w / d->fp32_gflops) : NAN;
    x[CD_LIBRARY_OP_FEATURE_throttle] = (float)limit_of(d);
    x[CD_LIBRARY_OP_FEATURE_clock] = d->clock_mhz > 0 ? (float)d->clock_mhz : NAN;
}

/* All features are computed, then those that the family has are picked. */
cdmpp_status cd_library_op_feature(const cd_library_op_record *r, const cd_device *d, bool seen,
                                   float x[CD_LIBRARY_OP_N_FEATURE], cd_library_op_base *base,
                                   cdmpp_err *err) {
    const cd_library_op_family f = cd_library_op_family_of(r->kind);
    float all[CD_LIBRARY_OP_N_FEATURE];
    uint8_t column[CD_LIBRARY_OP_N_FEATURE];
    CD_TRY(check_device(d, err));
    for (size_t i = 0; i < CD_LIBRARY_OP_N_FEATURE; i++) all[i] = NAN;
    device_ratios(d, peak_of(d, r->dtype, is_product(f)), all);
    if (is_product(f)) {
        product_base(r, d, base);
        product_ratios(r, d, all);
    } else {
        stream_base(r, d, f, base);
        stream_ratios(r, d, all);
    }
    all[CD_LIBRARY_OP_FEATURE_intensity] = lg(base->compute_s / base->memory_s);
    all[CD_LIBRARY_OP_FEATURE_base] = lg(base->base_s * 1e6);
    for (size_t i = 0, n = cd_library_op_feature_columns(f, seen, column); i < n; i++)
        x[i] = all[column[i]];
    return CDMPP_OK;
}

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

/* Octaves by which the farthest size is above its limit, >= 0; limits that are 0 do not count. */
static double library_op_record_reach(const cd_library_op_record *r,
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
    cd_library_op_apart a = {.reach = library_op_record_reach(r, m->largest[class]),
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

/* Measured operators of one GPU scaled to another, by an operator model or by closed forms. */

/* Half the interval of the closed forms as a logarithm; 0: not known. */
static const double half[CD_N_LIBRARY_OP_CLASS][CD_N_WAVE_SCALE] = {
#define X(class, waves, roofline, bandwidth)                                                       \
    [CD_LIBRARY_OP_CLASS_##class] = {waves, roofline, bandwidth},
#include "learner/operators/library_op_scale_spread.def"
};

/* Operations against bytes at the peaks of the device; NaN where its description lacks a number of
 * the roofline. */
static double balance_of(const cd_library_op_record *r, const cd_device *to) {
    float x[CD_LIBRARY_OP_N_FEATURE];
    cd_library_op_base base;
    return cd_library_op_feature(r, to, false, x, &base, NULL) ? (double)NAN
                                                               : base.compute_s / base.memory_s;
}

static void interval(const cd_library_op_record *r, cd_library_op_scaled *s) {
    const double h = half[cd_library_op_kind_class(r->kind)][s->closed.form];
    s->low_s = h > 0 ? s->latency_s * exp(-h) : (double)NAN;
    s->high_s = h > 0 ? s->latency_s * exp(h) : (double)NAN;
}

/* No answer, and no end of its interval, is below what the GPU needs at best. */
static void at_least(const cd_library_op_record *r, const cd_device *to, cd_library_op_scaled *s) {
    const double least = cd_library_op_least_s(r, to);
    if (s->latency_s < least) s->high_s *= least / s->latency_s, s->latency_s = least;
    if (s->low_s < least) s->low_s = least; /* NaN stays */
}

static cdmpp_status by_closed_form(const cd_library_op_record *r, const cd_device *from,
                                   const cd_device *to, cd_library_op_scaled *s, cdmpp_err *err) {
    const cd_wave_scale_kernel k = {r->latency_s, r->launch_s, balance_of(r, to), r->blocks,
                                    r->block_threads};
    CD_TRY(cd_wave_scale(&k, from, to, &s->closed, err));
    s->latency_s = s->closed.time_s;
    s->from_s = (double)NAN;
    /* the errors were found on tables of float32 */
    s->unlike = r->dtype == CD_LIBRARY_OP_DTYPE_F32 ? 0 : CD_LIBRARY_OP_UNLIKE_DTYPE;
    interval(r, s);
    at_least(r, to, s);
    return CDMPP_OK;
}

static void by_model(const cd_library_op_model *m, const cd_library_op_record *r,
                     const cd_device *from, const cd_device *to, double from_s, double to_s,
                     cd_library_op_scaled *s) {
    s->from_s = from_s;
    s->latency_s = to_s * (cd_library_op_model_seen(m, r->kind, from)
                               ? pow(r->latency_s / from_s, CD_LIBRARY_OP_SCALE_CARRIED)
                               : 1);
    const cd_library_op_range v =
        cd_library_op_model_range(m, r, to, s->latency_s, CD_LIBRARY_OP_SCALE_LEVEL);
    s->low_s = v.low_s;
    s->high_s = v.high_s;
    s->unlike = v.unlike;
    at_least(r, to, s);
}

/* Both GPUs are asked in one call of the model: rows 0..n-1 are of `from`. */
static cdmpp_status ask(const cd_library_op_model *m, const cd_library_op_record *r, size_t n,
                        const cd_device *from, const cd_device *to, double *s,
                        const cd_device **device, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) device[i] = from, device[n + i] = to;
    CD_TRY(cd_library_op_model_predict(m, r, device, n, s, err));
    return cd_library_op_model_predict(m, r, device + n, n, s + n, err);
}

cdmpp_status cd_library_op_scale(const cd_library_op_model *m, const cd_library_op_record *r,
                                 size_t n, const cd_device *from, const cd_device *to,
                                 cd_library_op_scaled *out, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) {
        const cdmpp_status st = by_closed_form(&r[i], from, to, &out[i], err);
        if (st) return cd_err_index(err, st, i);
    }
    if (!m || !n) return CDMPP_OK;
    double *s = cd_mem_zalloc(2 * n, sizeof *s);
    const cd_device **device = cd_mem_zalloc(2 * n, sizeof *device);
    cdmpp_status st = s && device ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu operators", n);
    if (!st) st = ask(m, r, n, from, to, s, device, err);
    for (size_t i = 0; !st && i < n; i++) by_model(m, &r[i], from, to, s[i], s[n + i], &out[i]);
    cd_mem_free(s);
    cd_mem_free(device);
    return st;
}
