/* Features of an operator on a device: ratios of work to what the device can do, and of sizes to
 * the tiles that libraries use. The model learns the time as a factor over a roofline estimate
 * (base). */
#include "learner/operators/library_op_feature.h"

#include <math.h>

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
