/* Features of operators of language models: sizes, parts of the analytic estimate, and how they
 * fill tiles and rounds. */
#include "learner/llm_op/llm_op_feature.h"

#include <math.h>

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
