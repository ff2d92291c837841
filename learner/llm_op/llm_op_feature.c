/* Features of operators of language models: sizes, parts of the analytic estimate, and how they
 * fill tiles and rounds. */
#include "learner/llm_op/llm_op_feature.h"

#include <math.h>
#include <string.h>

#include "learner/llm_op/llm_op_machine.h"

/* What a GPU is to operators of language models: what its description gives, and what follows from
 * it. */

/* an L2 cache reads about so many times faster than memory, or faster (micro-benchmarks: 1.6 times
 * on A100, 2.2 to 2.6 on Hopper, 3.5 and more with GDDR6); counts where the first rule gives
 * less */
#define OVER_MEMORY 2.0
/* operations in bf16 of a small multiprocessor's matrix units in a clock: laws of power count in
 * these */
#define CORE_CLOCK 1024.0

/* Width of a multiprocessor's matrix units, in CORE_CLOCKs (of a small one). GPUs without any count
 * as half of a small one. */
static double wide_of(const cd_device *d) {
    return fmax(0.5, fmax(d->bf16_tflops, d->tensor_tflops) * 1e12 /
                         (d->cores * d->clock_mhz * 1e6 * CORE_CLOCK));
}

#define ASYNC_KB   200.0
#define ASYNC_WIDE 3.0

bool cd_llm_op_machine_async(const cd_device *d) {
    return d->shared_kb > 0 ? d->shared_kb > ASYNC_KB : wide_of(d) > ASYNC_WIDE;
}

/* Multiply-adds of a multiprocessor's vector units in a clock; as described, or from the peak. */
static double lanes_of(const cd_device *d) {
    return d->lanes > 0 ? d->lanes : d->fp32_gflops * 1e3 / (2 * d->cores * d->clock_mhz);
}

/* What the board's power would allow of the sheet's peak under full load, above 1 where it allows
 * more. An operation takes energy by process, and less where a multiprocessor's matrix units are
 * larger; voltage rises with the clock. Four constants, from the largest products of A100, H100 and
 * L40S that models are trained on. 0: the power is not known. */
static double power_of(const cd_device *d, double peak) {
    const double ghz = d->clock_mhz / 1e3, bf16 = d->bf16_tflops * 1e12;
    if (!(d->tdp_w > 0) || !(d->process_nm > 0) || !(bf16 > 0)) return 0;
    /* of an operation in bf16 at the full clock */
    const double pj = 0.51 * pow(d->process_nm / 5, 1.86) * pow(wide_of(d), -0.26) * pow(ghz, 1.2);
    /* power goes with clock^2.2 */
    return pow(0.8 * d->tdp_w / (pj * 1e-12 * bf16 * pow(peak / bf16, 0.8)), 1 / 2.2);
}

/* A power that is not known limits nothing. */
static double power_share(const cd_device *d, double peak) {
    const double power = power_of(d, peak);
    return power > 0 ? fmin(0.95, power) : 1;
}

/* ---- what is not described ---- */
/* "a, b, c" of those that are unknown, but for `key`. */
static void put_unknown(cd_buf *b, const char *const *name, const double *x, size_t n,
                        const char *key) {
    for (size_t i = 0; i < n; i++)
        if (x[i] < 0 && strcmp(name[i], key) != 0)
            cd_buf_putf(b, "%s%s", b->n ? ", " : "", name[i]);
}

static bool is(const char *a, const char *b) { return b && !strcmp(a, b); }

/* Whoever describes a GPU shall see in one run what is not there: what each operator needs, and
 * what some need. */
cdmpp_status cd_llm_op_machine_lacks(const cd_device *d, const char *key, double x,
                                     const char *none, const char *peak, cdmpp_err *err) {
    const char *const all[] = {"cores", "clock_mhz", "bandwidth_gb_s", "l2_kb", "lanes"},
                      *const some[] = {"link_gb_s",  "mem_gb",    "bf16_tflops", "tensor_tflops",
                                       "fp8_tflops", "int8_tops", "fp4_tflops"};
    const double of_all[] = {d->cores, d->clock_mhz, d->bandwidth_gb_s, d->l2_kb,
                             d->fp32_gflops > 0 ? 0 : d->lanes},
                 of_some[] = {d->link_gb_s,  d->mem_gb,    d->bf16_tflops, d->tensor_tflops,
                              d->fp8_tflops, d->int8_tops, d->fp4_tflops};
    const size_t n_some = sizeof some / sizeof *some;
    cd_buf every = {0}, few = {0};
    if (!(x < 0)) return cd_err_key(err, CD_FAIL(err, EMODEL, "%s has no %s", d->name, none), key);
    if (d->kind == CD_DEVICE_GPU) put_unknown(&every, all, of_all, sizeof all / sizeof *all, key);
    for (size_t i = 0; i < n_some && d->kind == CD_DEVICE_GPU; i++)
        put_unknown(is(some[i], peak) ? &every : &few, some + i, of_some + i, 1, key);
    const bool oom = every.oom || few.oom;
    (void)CD_FAIL(err, EMODEL, "the description of %.24s has no such number%s%s%s%s%s", d->name,
                  every.n ? "; nor has it " : "", every.n ? every.p : "",
                  few.n ? "; some operators need " : "", few.n ? few.p : "", few.n ? ", too" : "");
    cd_buf_free(&every);
    cd_buf_free(&few);
    if (oom) return CD_FAIL(err, ENOMEM, "message");
    return cd_err_key(err, CDMPP_EMODEL, key);
}

double cd_llm_op_machine_power(const cd_device *d) { return power_of(d, d->bf16_tflops * 1e12); }

cdmpp_status cd_llm_op_machine_of(const cd_device *d, cd_llm_op_type t, cd_llm_op_machine *m,
                                  cdmpp_err *err) {
    const struct {
        const char *key;
        double ops;
    } unit[] = {[CD_LLM_OP_UNIT_F32] = {"fp32_gflops", d->fp32_gflops * 1e9},
                [CD_LLM_OP_UNIT_BF16] = {"bf16_tflops", d->bf16_tflops * 1e12},
                [CD_LLM_OP_UNIT_FP8] = {"fp8_tflops", d->fp8_tflops * 1e12},
                [CD_LLM_OP_UNIT_INT8] = {"int8_tops", d->int8_tops * 1e12},
                [CD_LLM_OP_UNIT_FP4] = {"fp4_tflops", d->fp4_tflops * 1e12}};
    const cd_llm_op_unit u = cd_llm_op_type_unit(t);
    if (d->kind == CD_DEVICE_CPU)
        return cd_err_key(
            err,
            CD_FAIL(err, EMODEL, "%s is a CPU; operators of language models are of GPUs", d->name),
            "device");
    const bool half = t == CD_LLM_OP_T_F16;
    const char *const peak = half ? "tensor_tflops" : unit[u].key;
    const struct {
        const char *key;
        double x;
    } need[] = {{"cores", d->cores},
                {"clock_mhz", d->clock_mhz},
                {"bandwidth_gb_s", d->bandwidth_gb_s},
                {"l2_kb", d->l2_kb},
                {"lanes", lanes_of(d)},
                {peak, half ? d->tensor_tflops : unit[u].ops}};
    for (size_t i = 0; i < sizeof need / sizeof *need; i++)
        if (!(need[i].x > 0))
            return cd_llm_op_machine_lacks(d, need[i].key, need[i].x, "units for this type", peak,
                                           err);
    const double sheet = half ? d->tensor_tflops * 1e12 : unit[u].ops;
    *m = (cd_llm_op_machine){d,
                             d->cores,
                             d->clock_mhz * 1e6,
                             sheet,
                             sheet * power_share(d, sheet),
                             d->bandwidth_gb_s * 1e9,
                             d->l2_kb * 1024,
                             0,
                             lanes_of(d),
                             wide_of(d)};
    /* Matrix units that are sold slower than their chip allows do not slow down what feeds them: a
     * cache gives a small multiprocessor's bytes, and more than memory does. */
    m->l2_rate = fmax(m->sms * m->clock * CD_LLM_OP_L2_BYTES_CLOCK * fmax(1, m->wide) / 2,
                      OVER_MEMORY * m->bandwidth);
    return CDMPP_OK;
}

enum { UNSEEN, SEEN, NEAR }; /* sets in the list of columns */

const char *cd_llm_op_feature_name(size_t i) {
    static const char *const name[CD_LLM_OP_N_FEATURE] = {
#define X(name, set, meaning) #name,
#include "learner/llm_op/llm_op_feature_cols.def"
    };
    return name[i];
}

size_t cd_llm_op_feature_width(cd_llm_op_set s) {
    static const size_t width[CD_LLM_OP_N_SET] = {
#define X(name, set, meaning) +(set <= UNSEEN)
#include "learner/llm_op/llm_op_feature_cols.def"
        ,
#define X(name, set, meaning) +(set <= SEEN)
#include "learner/llm_op/llm_op_feature_cols.def"
        , CD_LLM_OP_N_FEATURE};
    return width[s];
}

static float lg(double x) { return x > 0 ? (float)log2(x) : NAN; }
static float fill(double n, double tile) { return (float)(n / (cd_llm_op_ceil(n / tile) * tile)); }

static float even(double n) {
    double p = 1;
    const uint64_t whole = n < 4503599627370496.0 ? (uint64_t)n : 0;
    if (whole && (double)whole >= n)
        return lg((double)((whole & -whole) < 256 ? whole & -whole : 256));
    while (p < 256 && fmod(n, 2 * p) < 0.5) p *= 2;
    return lg(p);
}

static void rounds(double tiles, double cores, float *all, float *full) {
    *all = lg(tiles / cores);
    *full = (float)(tiles / cores / cd_llm_op_ceil(tiles / cores));
}

static void product_columns(const cd_llm_op_record *r, const cd_device *d,
                            const cd_llm_op_estimate *e, float *x) {
    const bool moe = r->kind == CD_LLM_OP_MOE;
    const double m = e->each, n = moe ? 2 * r->size[2] / r->size[5] : r->size[1],
                 k = moe ? r->size[1] : r->size[2], g = e->groups;
    x[CD_LLM_OP_X_fill16] = fill(m, 16);
    x[CD_LLM_OP_X_fill64] = fill(m, 64);
    x[CD_LLM_OP_X_fill128] = fill(m, 128);
    x[CD_LLM_OP_X_fill_n128] = fill(n, 128);
    x[CD_LLM_OP_X_even_n] = even(n);
    x[CD_LLM_OP_X_even_k] = even(k);
    rounds(g * cd_llm_op_ceil(m / 128) * cd_llm_op_ceil(n / 128), d->cores, x + CD_LLM_OP_X_wave128,
           x + CD_LLM_OP_X_full128);
    rounds(g * cd_llm_op_ceil(m / 256) * cd_llm_op_ceil(n / 128), d->cores, x + CD_LLM_OP_X_wave256,
           x + CD_LLM_OP_X_full256);
    x[CD_LLM_OP_X_share] = lg(m / 128);
}

static void attention_columns(const cd_llm_op_record *r, const cd_device *d,
                              const cd_llm_op_estimate *e, float *x) {
    const double kv = cd_llm_op_get(r, CD_LLM_OP_P_KV_HEADS),
                 heads = cd_llm_op_get(r, CD_LLM_OP_P_HEADS);
    const cd_llm_op_family f = cd_llm_op_family_of((cd_llm_op_kind)r->kind);
    const bool decode = f == CD_LLM_OP_FAMILY_DECODE || f == CD_LLM_OP_FAMILY_LATENT_DECODE;
    /* it falls with key heads, which prefill's answers rise with */
    x[decode ? CD_LLM_OP_X_share : CD_LLM_OP_X_share_prefill] = lg(heads / (kv > 0 ? kv : 1));
    x[CD_LLM_OP_X_fill64] = fill(r->size[0] + 1, 64);
    x[CD_LLM_OP_X_fill128] = fill(r->size[0], 128);
    rounds(cd_llm_op_ceil(e->each / 128) * e->groups, d->cores, x + CD_LLM_OP_X_wave128,
           x + CD_LLM_OP_X_full128);
    rounds(cd_llm_op_ceil(e->each / 256) * e->groups, d->cores, x + CD_LLM_OP_X_wave256,
           x + CD_LLM_OP_X_full256);
}

/* A kernel of attention is another program where matrix units have instructions of their own,
 * whatever its name is. With products, experts and decode told apart likewise a GPU of three that
 * was left out was answered no better, or worse. */
static float async_of(cd_llm_op_family f, const cd_device *d) {
    const bool attention = f == CD_LLM_OP_FAMILY_PREFILL || f == CD_LLM_OP_FAMILY_LATENT_PREFILL ||
                           f == CD_LLM_OP_FAMILY_LATENT_DECODE;
    return attention ? cd_llm_op_machine_async(d) : NAN;
}

cdmpp_status cd_llm_op_feature(const cd_llm_op_record *r, const cd_device *d,
                               const cd_llm_op_codes *c, cd_llm_op_known *known,
                               float x[CD_LLM_OP_N_FEATURE], cd_llm_op_estimate *e,
                               cdmpp_err *err) {
    const cd_llm_op_family f = cd_llm_op_family_of((cd_llm_op_kind)r->kind);
    CD_TRY(cd_llm_op_estimate_by(r, d, known, e, err));
    cd_llm_op_estimate_raise(e, c->alone, c->host_s);
    for (size_t i = 0; i < CD_LLM_OP_N_FEATURE; i++) x[i] = NAN;
    for (size_t i = 0; i < cd_llm_op_n_size((cd_llm_op_kind)r->kind); i++)
        x[CD_LLM_OP_X_size0 + i] = lg(r->size[i] + 1);
    x[CD_LLM_OP_X_kind] = r->kind;
    x[CD_LLM_OP_X_skew] = (float)r->skew;
    x[CD_LLM_OP_X_type] = r->type;
    x[CD_LLM_OP_X_kv] = r->kv;
    x[CD_LLM_OP_X_maker] = c->maker;
    x[CD_LLM_OP_X_stack] = c->stack;
    x[CD_LLM_OP_X_kernel] = c->kernel;
    x[CD_LLM_OP_X_async] = async_of(f, d);
    x[CD_LLM_OP_X_flops] = lg(e->flops);
    x[CD_LLM_OP_X_bytes] = lg(e->bytes);
    x[CD_LLM_OP_X_base] = lg(e->base_s * 1e6);
    x[CD_LLM_OP_X_balance] = lg(e->compute_s / e->memory_s);
    x[CD_LLM_OP_X_compute] = lg(e->compute_s * 1e6);
    x[CD_LLM_OP_X_memory] = lg(e->memory_s * 1e6);
    x[CD_LLM_OP_X_tiles] = lg(e->tiles_s * 1e6);
    x[CD_LLM_OP_X_exps] = lg(e->exp_s * 1e6);
    x[CD_LLM_OP_X_compute_part] = x[CD_LLM_OP_X_compute] - x[CD_LLM_OP_X_base];
    x[CD_LLM_OP_X_memory_part] = x[CD_LLM_OP_X_memory] - x[CD_LLM_OP_X_base];
    x[CD_LLM_OP_X_tiles_part] = x[CD_LLM_OP_X_tiles] - x[CD_LLM_OP_X_base];
    x[CD_LLM_OP_X_exps_part] = x[CD_LLM_OP_X_exps] - x[CD_LLM_OP_X_base];
    x[CD_LLM_OP_X_waves] = lg(e->waves);
    x[CD_LLM_OP_X_last] = (float)(e->waves / cd_llm_op_ceil(e->waves));
    x[CD_LLM_OP_X_tile_m] = lg(e->tile_m);
    x[CD_LLM_OP_X_tile_n] = lg(e->tile_n);
    x[CD_LLM_OP_X_split] = lg(e->split);
    x[CD_LLM_OP_X_cached] = lg(e->cached);
    x[CD_LLM_OP_X_each] = lg(e->each);
    x[CD_LLM_OP_X_groups] = lg(e->groups);
    if (f != CD_LLM_OP_COLLECTIVE) x[CD_LLM_OP_X_group_cores] = lg(e->groups / d->cores);
    if (f == CD_LLM_OP_PRODUCT || f == CD_LLM_OP_FAMILY_MOE) product_columns(r, d, e, x);
    else if (f != CD_LLM_OP_COLLECTIVE && f != CD_LLM_OP_STREAM) attention_columns(r, d, e, x);
    x[CD_LLM_OP_X_cores] = lg(d->cores);
    x[CD_LLM_OP_X_ridge] = lg(d->bf16_tflops * 1e3 / d->bandwidth_gb_s);
    x[CD_LLM_OP_X_bandwidth] = lg(d->bandwidth_gb_s);
    x[CD_LLM_OP_X_clock] = lg(d->clock_mhz);
    return CDMPP_OK;
}
