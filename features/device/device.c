/* Device descriptions -> vectors. Each column is the logarithm of a ratio to a reference value, so
 * that devices of a kind lie near each other; the expressions are in device_cols.def, and this file
 * has the functions that they use. */
#include "features/device/device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "features/device/wave_scale.h"

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

/* Numbers of a description that no chip has are most often in another unit. Nobody refuses them, as
 * a new chip may have them; they are told. */

static const struct {
    const char *key;
    double cpu[2], gpu[2];
} usual[] = {
#define X(key, cpu_low, cpu_high, gpu_low, gpu_high)                                               \
    {#key, {cpu_low, cpu_high}, {gpu_low, gpu_high}},
#include "features/device/device_usual.def"
};

bool cd_device_usual(cd_device_kind kind, const char *key, double out[2]) {
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        if (strcmp(usual[i].key, key) != 0) continue;
        const double *c = usual[i].cpu, *g = usual[i].gpu;
        out[0] = kind == CD_DEVICE_CPU || (kind == CD_DEVICE_NPU && c[0] < g[0]) ? c[0] : g[0];
        out[1] = kind == CD_DEVICE_CPU || (kind == CD_DEVICE_NPU && c[1] > g[1]) ? c[1] : g[1];
        return true;
    }
    return false; /* of the descriptor: a rate of a program of ours, whose unit nobody mistakes */
}

/* Of a number that is 1000 times too large or too small in its unit, the factor that makes it
 * usual. */
static const char *factor(double x, const double range[2]) {
    static const struct {
        double by;
        const char *text;
    } f[] = {{1e3, "1000 times as much"},
             {1.0 / 1024, "a 1024th"},
             {1e-3, "a 1000th"},
             {1e6, "a million times as much"},
             {1e-6, "a millionth"}};
    for (size_t i = 0; i < sizeof f / sizeof *f; i++)
        if (x * f[i].by >= range[0] && x * f[i].by <= range[1]) return f[i].text;
    return NULL;
}

bool cd_device_unusual(cd_device_kind kind, const char *key, const char *unit, double x, char *buf,
                       size_t n) {
    double r[2];
    if (!cd_device_usual(kind, key, r) || x == 0 || (x >= r[0] && x <= r[1])) return false;
    const char *by = factor(x, r), *u = strcmp(unit, "count") ? unit : "";
    snprintf(buf, n, "%s: %.6g%s%s is unusual of a %s, %g to %g%s%s is usual%s%s%s", key, x,
             *u ? " " : "", u, cd_device_kind_name(kind), r[0], r[1], *u ? " " : "", u,
             by ? ": is it in another unit? " : "", by ? by : "", by ? " would be usual" : "");
    return true;
}

/* Operations for each byte of memory: 0.2 of old boards, 105 of an NVIDIA L40. */
#define LEAST_BALANCE 0.05
#define MOST_BALANCE  1000
bool cd_device_unbalanced(const cd_device *d, char *buf, size_t n) {
    if (!(d->fp32_gflops > 0) || !(d->bandwidth_gb_s > 0)) return false;
    const double flop = d->fp32_gflops / d->bandwidth_gb_s;
    if (flop >= LEAST_BALANCE && flop <= MOST_BALANCE) return false;
    snprintf(buf, n,
             "fp32_gflops, bandwidth_gb_s: %.4g GFLOP/s and %.4g GB/s are %.3g operations for a "
             "byte, %g to %g are usual: one of both is in another unit",
             d->fp32_gflops, d->bandwidth_gb_s, flop, LEAST_BALANCE, (double)MOST_BALANCE);
    return true;
}

/* Closed forms that scale the time of a kernel from one GPU to another. */

const char *cd_wave_scale_form_name(cd_wave_scale_form f) {
    static const char *const name[CD_N_WAVE_SCALE] = {"waves", "roofline", "bandwidth"};
    return name[f];
}

/* Blocks that run at the same time; 0: not known. */
static double wave_of(const cd_device *d, double block_threads) {
    if (!(d->core_threads > 0) || !(block_threads > 0)) return 0;
    return d->cores * fmax(1, floor(d->core_threads / block_threads));
}

static bool is_small(const cd_wave_scale_kernel *k, const cd_device *from, const cd_device *to) {
    return k->blocks > 0 && k->blocks < wave_of(from, k->block_threads) &&
           k->blocks < wave_of(to, k->block_threads);
}

static double weight_of(double balance) { return balance > 1 ? 0.5 / balance : 1 - 0.5 * balance; }

static cdmpp_status check_device(const cd_device *d, cdmpp_err *err) {
    if (d->kind != CD_DEVICE_GPU)
        return CD_FAIL(err, EMODEL, "times are scaled between GPUs, %s is a %s", d->name,
                       cd_device_kind_name(d->kind));
    if (d->bandwidth_gb_s > 0) return CDMPP_OK;
    return cd_err_key(err,
                      CD_FAIL(err, EMODEL, "device %s: the description lacks this number", d->name),
                      "bandwidth_gb_s");
}

static cdmpp_status check_time(const cd_wave_scale_kernel *k, cdmpp_err *err) {
    if (!(k->time_s > 0) || isinf(k->time_s))
        return CD_FAIL(err, ERANGE, "expected a time above 0, found %g s", k->time_s);
    if (!(k->launch_s >= 0 && k->launch_s <= k->time_s))
        return CD_FAIL(err, ERANGE, "expected a launch of 0..%g s, found %g s", k->time_s,
                       k->launch_s);
    return CDMPP_OK;
}

cdmpp_status cd_wave_scale(const cd_wave_scale_kernel *k, const cd_device *from,
                           const cd_device *to, cd_wave_scale_answer *out, cdmpp_err *err) {
    CD_TRY(check_device(from, err));
    CD_TRY(check_device(to, err));
    CD_TRY(check_time(k, err));
    const bool units = k->balance >= 0 && from->clock_mhz > 0 && to->clock_mhz > 0 &&
                       from->cores > 0 && to->cores > 0;
    const double clock = from->clock_mhz / to->clock_mhz;
    out->gamma = units ? weight_of(k->balance) : 1;
    double factor = pow(from->bandwidth_gb_s / to->bandwidth_gb_s, out->gamma);
    if (!units) {
        out->form = CD_WAVE_SCALE_BANDWIDTH;
    } else if (is_small(k, from, to)) {
        out->form = CD_WAVE_SCALE_WAVES;
        factor = pow(clock * ceil(k->blocks / to->cores) / ceil(k->blocks / from->cores),
                     1 - out->gamma);
    } else {
        out->form = CD_WAVE_SCALE_ROOFLINE;
        factor *= pow(clock * from->cores / to->cores, 1 - out->gamma);
    }
    out->time_s = k->launch_s + (k->time_s - k->launch_s) * factor;
    return CDMPP_OK;
}
