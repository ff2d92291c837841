/* Device descriptions -> vectors. Each column is the logarithm of a ratio to a reference value, so
 * that devices of a kind lie near each other; the expressions are in device_cols.def, and this file
 * has the functions that they use. */
#include "features/device/device.h"

#include <math.h>

#define TURBO 2.0

/* ---- what the expressions of device_cols.def use; below 0: unknown ---- */
static bool known(double x) { return x >= 0; }

static double ratio(double a, double b) { return known(a) && b > 0 ? a / b : CD_DEVICE_UNKNOWN; }
static double above_one(double x) { return known(x) ? 1 + x : CD_DEVICE_UNKNOWN; }
static double gflops(double tflops) { return known(tflops) ? tflops * 1000 : CD_DEVICE_UNKNOWN; }
static double used(const cd_device *d) { return known(d->cores_used) ? d->cores_used : d->cores; }

static double flops(const cd_device *d) {
    if (!known(d->cores_used) || !known(d->fp32_gflops)) return d->fp32_gflops;
    return ratio(d->fp32_gflops * d->cores_used, d->cores);
}

static double vector(const cd_device *d) {
    return d->kind == CD_DEVICE_CPU ? ratio(d->simd_bits, 32) : d->warp;
}

static double l2_of_core(const cd_device *d) {
    return d->kind == CD_DEVICE_CPU ? d->l2_kb : ratio(d->l2_kb, d->cores);
}

static double last_cache(const cd_device *d) {
    if (!known(d->l3_kb) || d->l3_kb > 0 || d->kind != CD_DEVICE_CPU)
        return d->l3_kb > 0 ? d->l3_kb : d->l2_kb;
    return known(d->l2_kb) && known(used(d)) ? d->l2_kb * used(d) : CD_DEVICE_UNKNOWN;
}

double cd_device_cores(const cd_device *d) { return used(d); }
double cd_device_gflops(const cd_device *d) { return flops(d); }

/* A type without units of its own is computed in fp32. */
double cd_device_peak(const cd_device *d, cd_te_least_type t) {
    const double fp32 = fmax(d->fp32_gflops, d->fp32_matrix_gflops),
                 half = fmax(gflops(d->fp16_tflops), gflops(d->tensor_tflops));
    const bool half_known = known(d->fp16_tflops) && known(d->tensor_tflops);
    const double all[CD_TE_N_LEAST] = {
        [CD_TE_LEAST_F16] = half_known && known(fp32) ? fmax(half, fp32) : CD_DEVICE_UNKNOWN,
        [CD_TE_LEAST_BF16] = known(d->bf16_tflops) && known(fp32)
                                 ? fmax(gflops(d->bf16_tflops), fp32)
                                 : CD_DEVICE_UNKNOWN,
        [CD_TE_LEAST_F32] = fp32,
        [CD_TE_LEAST_F64] = d->fp64_gflops > 0 ? d->fp64_gflops : CD_DEVICE_UNKNOWN};
    const double part = known(d->cores_used) ? ratio(d->cores_used, d->cores) : 1,
                 turbo = d->kind == CD_DEVICE_CPU ? TURBO : 1;
    return known(all[t]) && known(part) ? 1e9 * all[t] * part * turbo : CD_DEVICE_UNKNOWN;
}

double cd_device_least_s(const cd_device *d, const cd_te_least *w) {
    double s = 0;
    if (!d) return 0;
    for (int t = 0; t < CD_TE_N_LEAST; t++) {
        const double peak = cd_device_peak(d, (cd_te_least_type)t);
        if (peak > 0) s = fmax(s, w->flop[t] / peak);
    }
    const double cache = last_cache(d) * 1024;
    return d->bandwidth_gb_s > 0 && cache >= 0 && w->bytes > cache
               ? fmax(s, (w->bytes - cache) / (1e9 * d->bandwidth_gb_s))
               : s;
}

const char *cd_device_kind_name(cd_device_kind k) {
    static const char *const name[] = {"cpu", "gpu", "npu"};
    return name[k];
}

/* ---- the vector ---- */
void cd_device_vector(const cd_device *d, float v[CD_N_DEVICE_COL]) {
    const struct {
        double value, reference;
    } col[CD_N_DEVICE_RATIO] = {
#define X(name, value, reference, unit, meaning) {value, reference},
#include "features/device/device_cols.def"
    };
    v[0] = d->kind == CD_DEVICE_GPU;
    v[1] = d->kind == CD_DEVICE_NPU;
    for (size_t i = 0; i < CD_N_DEVICE_RATIO; i++) {
        const bool is = col[i].value > 0;
        v[CD_N_DEVICE_KIND + i] = is ? (float)log10(col[i].value / col[i].reference) : 0;
        v[CD_N_DEVICE_KIND + CD_N_DEVICE_RATIO + i] = !is;
    }
}

cdmpp_status cd_device_table_vector(const cd_device_table *l, const char *name,
                                    float v[CD_N_DEVICE_COL], cdmpp_err *err) {
    const cd_device *d;
    CD_TRY(cd_device_table_find(l, name, &d, err));
    cd_device_vector(d, v);
    return CDMPP_OK;
}

/* Columns that are unknown to one of the two say nothing and are left out. */
double cd_device_distance(const float a[CD_N_DEVICE_COL], const float b[CD_N_DEVICE_COL]) {
    const int n_ratio = CD_N_DEVICE_RATIO, flag = CD_N_DEVICE_KIND + n_ratio;
    double sum = 0;
    int n = 0;
    for (int c = CD_N_DEVICE_KIND; c < flag; c++) {
        if (a[c + n_ratio] > 0 || b[c + n_ratio] > 0) continue;
        sum += ((double)a[c] - (double)b[c]) * ((double)a[c] - (double)b[c]);
        n++;
    }
    return n ? sum / n : (double)INFINITY;
}

bool cd_device_same_width(const float a[CD_N_DEVICE_COL], const float b[CD_N_DEVICE_COL]) {
    enum { WIDTH = CD_N_DEVICE_KIND + CD_DEVICE_COL_vector, UNKNOWN = WIDTH + CD_N_DEVICE_RATIO };
    return !(a[0] > 0 && b[0] > 0) || a[UNKNOWN] > 0 || b[UNKNOWN] > 0 ||
           fabsf(a[WIDTH] - b[WIDTH]) < 0.01f;
}

double cd_device_unlike(const float a[CD_N_DEVICE_COL], const float b[CD_N_DEVICE_COL]) {
    static const double another = 1e6;
    return cd_device_distance(a, b) + (cd_device_same_width(a, b) ? 0 : another);
}

const char *cd_device_col_name(size_t i) {
    static const char *const name[CD_N_DEVICE_COL] = {
        "is_gpu",
        "is_npu",
#define X(name, value, reference, unit, meaning) #name,
#include "features/device/device_cols.def"
#define X(name, value, reference, unit, meaning) #name "_unknown",
#include "features/device/device_cols.def"
    };
    return name[i];
}

/* ---- the descriptor ---- */
static const struct {
    const char *key, *unit, *meaning;
    double reference;
} probes[CD_N_DEVICE_PROBE] = {
#define X(key, high, reference, unit, meaning) {#key, unit, meaning, reference},
#include "features/device/device_probes.def"
};

const char *cd_device_probe_name(size_t i) { return probes[i].key; }

size_t cd_device_probe_count(const cd_device *d) {
    size_t n = 0;
    for (size_t i = 0; i < CD_N_DEVICE_PROBE; i++) n += d->probe[i] > 0;
    return n;
}

size_t cd_device_features_width(cd_device_features f) {
    return (size_t)(f == CD_DEVICE_DESCRIPTOR ? 0 : CD_N_DEVICE_COL) +
           (size_t)(f == CD_DEVICE_SHEET ? 0 : 2 * CD_N_DEVICE_PROBE);
}

void cd_device_features_fill(cd_device_features f, const cd_device *d, float *v) {
    if (f != CD_DEVICE_DESCRIPTOR) {
        cd_device_vector(d, v);
        v += CD_N_DEVICE_COL;
    }
    for (size_t i = 0; f != CD_DEVICE_SHEET && i < CD_N_DEVICE_PROBE; i++) {
        const bool is = d->probe[i] > 0;
        v[i] = is ? (float)log10(d->probe[i] / probes[i].reference) : 0;
        v[CD_N_DEVICE_PROBE + i] = !is;
    }
}

/* ---- the manual ---- */
void cd_device_doc(cd_buf *out) {
    cd_buf_puts(out, "| key | range | usual: CPU | GPU | unit | meaning |\n| --- | --- | --- | --- "
                     "| --- | --- |\n");
    double c[2], g[2];
#define X(key, low, high, unit, meaning)                                                           \
    (void)cd_device_usual(CD_DEVICE_CPU, #key, c), (void)cd_device_usual(CD_DEVICE_GPU, #key, g);  \
    cd_buf_putf(out, "| `%s` | %g..%g | %g..%g | %g..%g | %s | %s |\n", #key, (double)(low),       \
                (double)(high), c[0], c[1], g[0], g[1], unit, meaning);
#include "features/device/device_keys.def"
    cd_buf_puts(out, "\n| # | column | log10 of the value over | unit | meaning |\n| --: | --- | "
                     "--: | --- | --- |\n"
                     "| 0 | `is_gpu` | | 0/1 | kind gpu |\n| 1 | `is_npu` | | 0/1 | kind npu |\n");
#define X(name, value, reference, unit, meaning)                                                   \
    cd_buf_putf(out, "| %d | `%s` | %g | %s | %s |\n", CD_N_DEVICE_KIND + CD_DEVICE_COL_##name,    \
                #name, (double)(reference), unit, meaning);
#include "features/device/device_cols.def"
    for (size_t i = CD_N_DEVICE_KIND + CD_N_DEVICE_RATIO; i < CD_N_DEVICE_COL; i++)
        cd_buf_putf(out, "| %zu | `%s` | | 0/1 | something in it is not known; the ratio is 0 |\n",
                    i, cd_device_col_name(i));
    cd_buf_puts(out, "\n| key of the descriptor | unit | meaning |\n| --- | --- | --- |\n");
    for (size_t i = 0; i < CD_N_DEVICE_PROBE; i++)
        cd_buf_putf(out, "| `%s` | %s | %s |\n", probes[i].key, probes[i].unit, probes[i].meaning);
}
