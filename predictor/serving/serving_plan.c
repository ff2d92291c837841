/* One configuration: types and limits chosen, memory checked, one scheduler simulated for all
 * alike, sums and intervals. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/serving/serving.h"
#include "predictor/serving/serving_internal.h"

/* What one GPU holds of a model: does it divide, does it fit. */

static cdmpp_status divides(double what, double by, const char *field, const char *key,
                            cdmpp_err *err) {
    if (by >= 1 && !(fmod(what, by) > 0)) return CDMPP_OK;
    return cd_err_key(
        err, CD_FAIL(err, ERANGE, "expected a divisor of %s %g, found %g", field, what, by), key);
}

/* A group of GPUs with collectives over all of them. */
static cdmpp_status nodes(const cd_serving_layout *l, double group, const char *key,
                          cdmpp_err *err) {
    if (!(l->node > 0) || group <= l->node || (!(fmod(group, l->node) > 0) && l->node_bytes_s > 0))
        return CDMPP_OK;
    if (fmod(group, l->node) > 0)
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE,
                                  "expected a multiple of the %g GPUs of a node, found %s = %g",
                                  l->node, key, group),
                          key);
    return cd_err_key(
        err,
        CD_FAIL(
            err, ERANGE,
            "%g GPUs are more than the %g of a node: expected the rate between nodes, --node-gbs",
            group, l->node),
        key);
}

cdmpp_status cd_serving_layout_check(const cd_serving_model *m, cd_serving_layout *l,
                                     cdmpp_err *err) {
    if (l->pp > m->layers)
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE, "expected at most num_hidden_layers %g, found %g",
                                  m->layers, l->pp),
                          "pp");
    CD_TRY(divides(m->heads, l->tp, "num_attention_heads", "tp", err));
    if (m->state.layers > 0)
        CD_TRY(divides(m->state.heads, l->tp, "the heads of states", "tp", err));
    if (!m->latent && fmod(l->tp, m->kv_heads) > 0)
        CD_TRY(divides(m->kv_heads, l->tp, "num_key_value_heads (or a multiple of it)", "tp", err));
    if (m->ffn > 0) CD_TRY(divides(m->ffn, l->tp, "intermediate_size", "tp", err));
    CD_TRY(nodes(l, l->tp, "tp", err));
    CD_TRY(nodes(l, l->tp * l->dp, "tp x dp", err));
    if (l->node > 0 && l->tp * l->dp * l->pp > l->node && !(l->node_bytes_s > 0))
        return cd_err_key(
            err,
            CD_FAIL(err, ERANGE,
                    "expected the rate between nodes of %g GPUs, found tp x dp x pp = %g", l->node,
                    l->tp * l->dp * l->pp),
            "tp x dp x pp");
    if (!(m->experts > 0)) {
        if (l->moe_ep > 1)
            return cd_err_key(err,
                              CD_FAIL(err, ERANGE,
                                      "expected 1, as the model has no experts; found %g",
                                      l->moe_ep),
                              "ep");
        l->moe_ep = 1, l->moe_tp = l->tp * l->dp;
        return CDMPP_OK;
    }
    CD_TRY(divides(m->experts, l->moe_ep, "the number of experts", "ep", err));
    CD_TRY(divides(l->tp * l->dp, l->moe_ep, "tp x dp =", "ep", err));
    l->moe_tp = l->tp * l->dp / l->moe_ep;
    return divides(m->expert_ffn, l->moe_tp, "the experts' width", "tp x dp / ep", err);
}

/* ---- memory ---- */
static double weight_bytes(const cd_serving_model *m, const cd_serving_layout *l) {
    const cd_serving_weights w = cd_serving_weights_of(m, l->tp);
    /* of several stages the first has one, the last the other */
    const double table = 2 * m->vocab * m->hidden / l->tp * (m->tied || l->pp > 1 ? 1 : 2);
    const double attention =
        m->attention_layers * (w.attention + w.index) * cd_serving_weight_each(m, l->project);
    const double states = m->state.layers * w.state * cd_serving_weight_each(m, l->recurrent),
                 dense = m->dense_layers * w.dense * cd_serving_weight_each(m, l->linear);
    const double shared = (w.shared + w.latent) * cd_serving_weight_each(m, l->shared),
                 experts =
                     w.experts / (l->moe_tp * l->moe_ep) * cd_serving_weight_each(m, l->expert);
    const double layers =
        attention + states + dense + m->sparse_layers * (shared + 2 * w.router + experts);
    return layers / l->pp + table;
}

/* Layers with a window keep no more than the window: of a sequence of `length` that part of each
 * token. States are of a sequence: each of its tokens has a part. */
static double token_bytes(const cd_serving_model *m, const cd_serving_layout *l, double length) {
    const double part = m->window_layers > 0 ? fmin(1, m->window / length) : 1,
                 layers = m->attention_layers - (1 - part) * m->window_layers;
    const double one =
                     m->latent ? m->kv_rank + m->rope : 2 * ceil(m->kv_heads / l->tp) * m->head_dim,
                 index = m->index_topk > 0 ? m->index_dim + 4 : 0;
    const double states =
                     m->state.layers * cd_serving_state_bytes(&m->state) / l->tp / l->pp / length,
                 keys = one * cd_llm_op_type_weight_bytes(l->kv) + index;
    return (layers > 0 ? fmax(layers / l->pp, 1) * keys : 0) + states;
}

/* Between layers one row in and out; inside one the widest results; the next token's scores. */
static double activation_bytes(const cd_serving_model *m, const cd_serving_layout *l,
                               double tokens) {
    const double state = m->state.in / l->tp,
                 heads = m->latent ? m->heads * (m->nope + m->rope + m->v_dim)
                                   : (m->gates * m->heads + 2 * m->kv_heads) * m->head_dim;
    const double wide = m->experts > 0 ? 3 * m->topk * m->expert_ffn / l->moe_tp +
                                             m->topk * cd_serving_experts_in(m)
                                       : 3 * m->ffn / l->tp;
    return 2 * tokens * (4 * m->hidden + fmax(fmax(heads / l->tp, wide), state));
}

/* Descriptions and data sheets count memory in GiB. */
#define GIB 1073741824.0

/* reserve_gb is of a card with so many GiB: graphs and workspaces are fewer on a smaller one, as
 * libraries choose smaller batches there. */
#define RESERVE_OF 80.0

/* What is left for the cache. */
static double cache_bytes(const cd_serving_memory *m, const cd_serving_stack *s, double all) {
    const double others = m->weights + m->activations + m->reserve;
    switch ((cd_serving_share)s->share_of) {
    case CD_SERVING_OF_LEFT: return s->memory_share * (all - others);
    case CD_SERVING_OF_STATIC: return fmin(s->memory_share * all - m->weights, all - others);
    case CD_SERVING_OF_ALL: break;
    }
    return s->memory_share * all - others;
}

cdmpp_status cd_serving_memory_of(const cd_serving_model *m, const cd_serving_layout *l,
                                  const cd_serving_stack *s, const cd_device *d, double step_tokens,
                                  double length, double longest, cd_serving_memory *out,
                                  cdmpp_err *err) {
    if (!(d->mem_gb > 0))
        return cd_llm_op_machine_lacks(d, "mem_gb", CD_DEVICE_UNKNOWN, "memory",
                                       l->base == CD_LLM_OP_T_F16 ? "tensor_tflops" : "bf16_tflops",
                                       err);
    *out = (cd_serving_memory){weight_bytes(m, l),
                               token_bytes(m, l, length),
                               activation_bytes(m, l, step_tokens),
                               s->reserve_gb * 1e9 * fmin(1, d->mem_gb / RESERVE_OF),
                               0,
                               0};
    const double room = cache_bytes(out, s, d->mem_gb * GIB);
    out->limit = out->weights + out->activations + out->reserve + room;
    out->tokens = floor(fmax(room, 0) / out->token);
    if (floor(out->tokens / l->pp) >= longest) return CDMPP_OK;
    /* of the batches on their way through the stages each has its part of the cache */
    const double least = out->token * longest * l->pp;
    return cd_err_key(
        err,
        CD_FAIL(err, ERANGE,
                "weights %.2f GB + activations %.2f GB + reserve %.2f GB + cache of one sequence%s "
                "%.3f GB are %.2f GB; a GPU %s lends %.2f GB (%g of %s %g GiB)",
                out->weights * 1e-9, out->activations * 1e-9, out->reserve * 1e-9,
                l->pp > 1 ? " of each batch" : "", least * 1e-9,
                (out->weights + out->activations + out->reserve + least) * 1e-9, d->name,
                out->limit * 1e-9, s->memory_share,
                s->share_of == CD_SERVING_OF_LEFT ? "what is left of" : "all", d->mem_gb),
        "memory");
}

struct cd_serving_known {
    const char *gpu, *stack, *kernels;
    const cd_device *d;
    const cd_serving_stack *k;
    cd_serving_cost *c;
};

struct cd_serving_made {
    cd_serving_layout l;
    const cd_serving_cost *c;
    cd_serving_engine *e;
};

cd_serving_config cd_serving_config_defaults(void) {
    const cd_serving_worker one = {.tp = 1, .pp = 1, .dp = 1, .ep = 1, .count = 1};
    cd_serving_worker none = one;
    none.count = 0;
    return (cd_serving_config){.kernels = "",
                               .worker = one,
                               .decode = none,
                               .isl = 1024,
                               .osl = 128,
                               .concurrency = 1,
                               .linear = -1,
                               .expert = -1,
                               .kv = -1,
                               .prompts = -1};
}

double cd_serving_longest(const cd_serving_config *c) {
    return c->given ? c->given->longest
                    : round(c->isl * (1 + c->spread)) + round(c->osl * (1 + c->spread));
}

double cd_serving_in_flight(const cd_serving_config *c) {
    return c->requests > 0 && c->concurrency > 0 ? fmin(c->requests, ceil(c->concurrency))
                                                 : ceil(c->concurrency);
}

bool cd_serving_too_short(const cd_serving_config *c) {
    return !c->given && c->spread > 0 && fmin(c->isl, c->osl) * (1 - c->spread) < 0.5;
}

void cd_serving_session_end(cd_serving_session *s) {
    for (size_t i = 0; i < s->n_made; i++) cd_serving_engine_free(s->made[i].e);
    for (size_t i = 0; i < s->n_known; i++) cd_serving_cost_free(s->known[i].c);
    cd_mem_free(s->known);
    cd_mem_free(s->made);
    s->known = NULL, s->made = NULL;
    s->n_known = s->cap_known = s->n_made = s->cap_made = 0;
}

void cd_serving_session_counts(const cd_serving_session *s, size_t *asked, size_t *fresh) {
    *asked = s->asked, *fresh = s->fresh;
    for (size_t i = 0; i < s->n_known; i++) {
        size_t a, b;
        cd_serving_cost_counts(s->known[i].c, &a, &b);
        *asked += a, *fresh += b;
    }
}

/* "vllm" is answered by any version of it. */
void cd_serving_session_stand_ins(const cd_serving_session *s, cd_serving_stand_in *say,
                                  void *ctx) {
    for (size_t i = 0; i < s->n_known; i++) {
        const char *asked = s->known[i].stack, *taken = cd_serving_cost_stack(s->known[i].c);
        const size_t n = strlen(asked);
        if (taken[0] && strcmp(asked, taken) != 0 &&
            !(!strchr(asked, '-') && !strncmp(asked, taken, n) && taken[n] == '-'))
            say(ctx, s->known[i].gpu, asked, taken);
    }
}

cd_serving_about cd_serving_session_about(const cd_serving_session *s, const char *gpu) {
    cd_serving_about out = {0};
    const cd_device *d, *twin;
    if (cd_device_table_find(s->devices, gpu, &d, NULL)) return out;
    out.news = cd_llm_op_model_about(s->ops, d, &twin);
    out.twin = twin ? twin->name : NULL;
    out.rows = cd_serving_tables_have(s->tables, d);
    return out;
}

enum { NODE = 8 };
/* of all requests, in the mean: a queue that does not grow is far shorter where there are many */
#define QUEUE 0.1

double cd_serving_overload(const cd_serving_config *c, const cd_serving_answer *a) {
    const double answered = a->r.tokens_s / c->osl, all = answered * a->r.total_s;
    return c->rate > 0 && all > 20 && a->r.waiting > QUEUE * all && answered < c->rate ? answered
                                                                                       : 0;
}

bool cd_serving_crowded(const cd_serving_answer *a) { return a->r.crowded > 0.1; }

static double wide_of(const cd_serving_worker *w) { return w->tp * w->pp * w->dp; }

double cd_serving_wide(const cd_serving_config *c) {
    const double most = fmax(wide_of(&c->worker), c->decode.count > 0 ? wide_of(&c->decode) : 0);
    return c->node > 0 || !(most > NODE) ? 0 : most;
}

/* The tables of another library may stand for it: "vllm" for sglang. */
static const char *table_stack(const cd_serving_stack *k, const char *asked) {
    return k->tables[0] ? k->tables : asked;
}

static cdmpp_status known_of(cd_serving_session *s, const cd_serving_config *c,
                             const struct cd_serving_known **out, cdmpp_err *err) {
    struct cd_serving_known k = {.gpu = c->gpu, .stack = c->stack, .kernels = c->kernels};
    for (size_t i = 0; i < s->n_known; i++)
        if (!strcmp(s->known[i].gpu, c->gpu) && !strcmp(s->known[i].stack, c->stack) &&
            !strcmp(s->known[i].kernels, c->kernels))
            return *out = &s->known[i], CDMPP_OK;
    CD_TRY(cd_err_key(err, cd_device_table_find(s->devices, c->gpu, &k.d, err), "gpu"));
    CD_TRY(cd_serving_stack_find(s->stacks, c->stack, &k.k, err));
    if (CD_GROW(s->known, s->n_known, s->cap_known)) return CD_FAIL(err, ENOMEM, "costs");
    CD_TRY(cd_serving_cost_new(s->ops, s->tables, k.d, table_stack(k.k, c->stack), c->kernels,
                               k.k->between_s, &k.c, err));
    s->known[s->n_known] = k;
    *out = &s->known[s->n_known++];
    return CDMPP_OK;
}

/* Configurations of one GPU follow each other in a sweep, and have one text. */
cdmpp_status cd_serving_session_know(cd_serving_session *s, const cd_serving_config *c, size_t n,
                                     cdmpp_err *err) {
    const struct cd_serving_known *k;
    for (size_t i = 0; i < n; i++)
        if (!i || c[i].gpu != c[i - 1].gpu || c[i].stack != c[i - 1].stack ||
            c[i].kernels != c[i - 1].kernels)
            CD_TRY(known_of(s, &c[i], &k, err));
    return CDMPP_OK;
}

cdmpp_status cd_serving_session_twin(const cd_serving_session *s, cd_serving_session *out,
                                     cdmpp_err *err) {
    *out = *s;
    out->made = NULL, out->n_made = out->cap_made = out->n_known = out->asked = out->fresh = 0;
    out->cap_known = s->n_known;
    if (!(out->known = cd_mem_zalloc(s->n_known + 1, sizeof *s->known)))
        return CD_FAIL(err, ENOMEM, "costs");
    for (size_t i = 0; i < s->n_known; i++) {
        out->known[i] = s->known[i];
        CD_TRY(cd_serving_cost_twin(s->known[i].c, &out->known[i].c, err));
        out->n_known++;
    }
    return CDMPP_OK;
}

void cd_serving_session_twin_end(cd_serving_session *s, cd_serving_session *twin) {
    size_t asked, fresh;
    cd_serving_session_counts(twin, &asked, &fresh);
    s->asked += asked, s->fresh += fresh;
    cd_serving_session_end(twin);
}

/* ---- one worker ---- */
typedef struct {
    struct cd_serving_known k;
    cd_serving_layout layout;
    cd_serving_memory memory;
    cd_serving_limits limit;
    double schedulers; /* of a worker; of a model with experts all its copies share one */
} worker;

/* The type of what is not quantised: --dtype where it is one of 16 bits, else the checkpoint's. */
static cd_llm_op_type base_of(const cd_serving_model *m, const cd_serving_config *c) {
    return c->linear == CD_LLM_OP_T_BF16 || c->linear == CD_LLM_OP_T_F16 ? (cd_llm_op_type)c->linear
                                                                         : m->base;
}

bool cd_serving_half(const cd_serving_model *m, const cd_serving_config *c, const cd_device *d) {
    return c->linear != CD_LLM_OP_T_BF16 && base_of(m, c) == CD_LLM_OP_T_BF16 &&
           d->kind == CD_DEVICE_GPU && !(d->bf16_tflops > 0) && !(d->bf16_tflops < 0) &&
           d->tensor_tflops > 0;
}

static cd_serving_layout types_of(const cd_serving_model *m, const struct cd_serving_known *k,
                                  const cd_serving_config *c, const cd_serving_worker *w) {
    cd_serving_layout l = {.tp = w->tp,
                           .pp = w->pp,
                           .dp = w->dp,
                           .moe_ep = w->ep,
                           .graph =
                               c->graph_tokens > 0 ? c->graph_tokens : (double)k->k->graph_tokens,
                           .node = c->node,
                           .node_bytes_s = c->node_gb_s * 1e9,
                           .base = base_of(m, c)};
    const bool half = cd_serving_half(m, c, k->d);
    if (half) l.base = CD_LLM_OP_T_F16;
    const cd_llm_op_type of[] = {m->linear, m->attention, m->shared, m->recurrent};
    cd_llm_op_type *const to[] = {&l.linear, &l.project, &l.shared, &l.recurrent};
    for (size_t i = 0; i < sizeof to / sizeof *to; i++)
        *to[i] = c->linear >= 0             ? (cd_llm_op_type)c->linear
                 : half && of[i] == m->base ? l.base
                                            : of[i];
    l.expert = c->expert >= 0         ? (cd_llm_op_type)c->expert
               : m->expert != m->base ? m->expert
               : c->linear >= 0       ? l.linear
                                      : l.base;
    if (c->expert < 0 && l.expert == CD_LLM_OP_T_W4A16_MXFP4 && k->k->mxfp4_inputs_fp8 &&
        k->d->fp4_tflops > 0)
        l.expert = CD_LLM_OP_T_W4A8_MXFP4;
    const bool narrow = k->k->fp8_attention && l.linear == CD_LLM_OP_T_FP8;
    l.kv = c->kv >= 0   ? (cd_llm_op_type)c->kv
           : m->kv >= 0 ? (cd_llm_op_type)m->kv
           : narrow     ? CD_LLM_OP_T_FP8
                        : l.base;
    l.attention = narrow && l.kv == CD_LLM_OP_T_FP8 ? CD_LLM_OP_T_FP8 : l.base;
    return l;
}

/* Of a cache, not of weights alone or of blocks of them. */
bool cd_serving_kv_type(int type) {
    const cd_llm_op_type of[] = {CD_LLM_OP_T_F32, CD_LLM_OP_T_BF16, CD_LLM_OP_T_F16,
                                 CD_LLM_OP_T_FP8, CD_LLM_OP_T_INT8, CD_LLM_OP_T_NVFP4};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (type == (int)of[i]) return true;
    return false;
}

static cdmpp_status check_config(const cd_serving_model *m, const cd_serving_config *c,
                                 cdmpp_err *err) {
    CD_TRY(cd_serving_model_typed(m, c->linear, err));
    if (c->expert >= 0 && !(m->experts > 0))
        return cd_err_key(
            err, CD_FAIL(err, ERANGE, "the model has no experts, so no type of them either"),
            "experts_dtype");
    if (c->node_gb_s > 0 && !(c->node > 0))
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE,
                                  "expected also how many GPUs a node has (node_gpus): without "
                                  "nodes nothing goes between them"),
                          "node_gbs");
    if (c->kv < 0 || cd_serving_kv_type(c->kv)) return CDMPP_OK;
    return cd_err_key(err,
                      CD_FAIL(err, ERANGE, "expected " CD_SERVING_KV_TYPES ", found %s",
                              cd_llm_op_type_name((cd_llm_op_type)c->kv)),
                      "kv_dtype");
}

static cdmpp_status make_worker(cd_serving_session *s, const cd_serving_config *c,
                                const cd_serving_worker *w, worker *out, cdmpp_err *err) {
    const struct cd_serving_known *known = NULL;
    CD_TRY(check_config(s->m, c, err));
    CD_TRY(known_of(s, c, &known, err));
    out->k = *known; /* a copy: the list grows */
    cd_serving_stack k = *known->k;
    if (c->memory_share > 0) k.memory_share = c->memory_share;
    out->layout = types_of(s->m, known, c, w);
    const bool together = s->m->experts > 0;
    out->schedulers = together ? w->pp : w->dp * w->pp;
    CD_TRY(cd_serving_layout_check(s->m, &out->layout, err));
    CD_TRY(cd_serving_kernels_check(cd_serving_cost_named(known->c), s->m, &out->layout, err));
    const double tokens = c->tokens > 0 ? c->tokens : (double)k.tokens;
    CD_TRY(cd_serving_memory_of(s->m, &out->layout, &k, out->k.d, tokens, c->isl + c->osl,
                                cd_serving_longest(c), &out->memory, err));
    out->limit = (cd_serving_limits){
        .tokens = tokens,
        .sequences = w->batch > 0 ? w->batch : (double)k.sequences,
        .cache_tokens = floor(out->memory.tokens / w->pp),
        .prompts = (cd_serving_prompts)(c->prompts < 0 ? k.prompts : c->prompts),
        .reserved = k.cache == 0,
        .ahead = (double)k.ahead,
        .copies = together ? w->dp : 1};
    return CDMPP_OK;
}

static bool same_layout(const cd_serving_layout *a, const cd_serving_layout *b) {
    const double x[] = {a->pp, a->dp, a->moe_tp, a->moe_ep, a->graph};
    const double y[] = {b->pp, b->dp, b->moe_tp, b->moe_ep, b->graph};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        if (x[i] < y[i] || x[i] > y[i]) return false;
    return cd_serving_engine_alike(a, b);
}

static cdmpp_status engine_of(cd_serving_session *s, const worker *w, cd_serving_engine **out,
                              cdmpp_err *err) {
    const cd_serving_engine *like = NULL, *experts = NULL;
    for (size_t i = 0; i < s->n_made; i++) {
        const struct cd_serving_made *m = &s->made[i];
        if (m->c != w->k.c || !cd_serving_engine_alike(&m->l, &w->layout)) continue;
        if (same_layout(&m->l, &w->layout)) return *out = m->e, CDMPP_OK;
        like = m->e;
        if (cd_serving_engine_same_experts(&m->l, &w->layout)) experts = m->e;
    }
    if (CD_GROW(s->made, s->n_made, s->cap_made)) return CD_FAIL(err, ENOMEM, "engines");
    CD_TRY(cd_serving_engine_new(s->m, &w->layout, w->k.k, w->k.c, experts ? experts : like, out,
                                 err));
    s->made[s->n_made++] = (struct cd_serving_made){w->layout, w->k.c, *out};
    return CDMPP_OK;
}

cdmpp_status cd_serving_engine_of(cd_serving_session *s, const cd_serving_config *c,
                                  cd_serving_engine **e, cd_serving_layout *out, cdmpp_err *err) {
    worker w = {0};
    CD_TRY(make_worker(s, c, &c->worker, &w, err));
    *out = w.layout;
    return engine_of(s, &w, e, err);
}

static cdmpp_status run_worker(cd_serving_session *s, const worker *w, cd_serving_load load,
                               cd_serving_result *out, cdmpp_err *err) {
    cd_serving_engine *e = NULL;
    load.stop = s->stop;
    CD_TRY(engine_of(s, w, &e, err));
    return cd_serving_simulate(e, &load, &w->limit, w->k.k->request_s, out, err);
}

/* ---- both forms ---- */
/* Means of requests count by how many each kind of scheduler answers; a median or a percentile of
 * all lies between those of the kinds, and is put there. */
static void add_kind(cd_serving_result *sum, const cd_serving_result *r, double n, double *weight) {
    double *const to[] = {&sum->ttft_s, &sum->ttft_median_s, &sum->ttft_p99_s,
                          &sum->tpot_s, &sum->tpot_p99_s,    &sum->request_s};
    const double from[] = {r->ttft_s, r->ttft_median_s, r->ttft_p99_s,
                           r->tpot_s, r->tpot_p99_s,    r->request_s};
    const double w = isfinite(r->tokens_s) ? n * r->tokens_s : n;
    const double all = *weight + w;
    for (size_t i = 0; i < sizeof to / sizeof *to; i++)
        *to[i] = *weight > 0 ? *to[i] + (from[i] - *to[i]) * (w / all) : from[i];
    sum->tokens_s += n * r->tokens_s, sum->running += n * r->running,
        sum->waiting += n * r->waiting, sum->put_back += n * r->put_back, sum->steps += r->steps;
    sum->requests += n * r->requests, sum->cut |= r->cut;
    sum->total_s = fmax(sum->total_s, r->total_s), sum->crowded = fmax(sum->crowded, r->crowded);
    *weight = all;
}

/* Of n schedulers that share a load: the requests in flight are whole, so some may have one more
 * than the others, or none. Sums of all. */
static cdmpp_status run_all(cd_serving_session *s, const cd_serving_config *c, const worker *w,
                            double n, cd_serving_load load, cd_serving_result *out,
                            cdmpp_err *err) {
    const double all = load.concurrency;
    const double few = floor(all / n);
    const double more = all - few * n;
    const double kind[][2] = {{more, few + 1}, {n - more, few}};
    double weight = 0;
    *out = (cd_serving_result){0};
    for (size_t i = 0; i < 2; i++) {
        cd_serving_result r;
        const double count = all > 0 ? kind[i][0] : i ? 0 : n;
        if (!(count > 0) || (all > 0 && !(kind[i][1] > 0))) continue;
        load.concurrency = all > 0 ? kind[i][1] : 0;
        load.rate = c->rate / n;
        load.each = (size_t)n;
        load.requests = ceil(c->requests * (all > 0 ? kind[i][1] / all : 1 / n));
        CD_TRY(run_worker(s, w, load, &r, err));
        out->busy = fmax(out->busy, r.busy);
        add_kind(out, &r, count, &weight);
    }
    if (all > 0) out->idle = fmax(0, n - all);
    return CDMPP_OK;
}

static cd_serving_load load_of(const cd_serving_config *c) {
    return (cd_serving_load){.isl = c->isl,
                             .osl = c->osl,
                             .spread = c->spread,
                             .concurrency = cd_serving_in_flight(c),
                             .given = c->given,
                             .seed = 1};
}

/* Seconds in which the cache of a prompt goes from the GPUs that computed it to those that decode,
 * each of them at its own rate. */
static cdmpp_status copy_s(const cd_serving_config *c, const worker *p, double *out,
                           cdmpp_err *err) {
    const double rate = p->layout.node > 0 && p->layout.node_bytes_s > 0 ? p->layout.node_bytes_s
                                                                         : p->k.d->link_gb_s * 1e9;
    if (!(rate > 0))
        return cd_err_key(
            err,
            CD_FAIL(
                err, EMODEL,
                "the description of %s has no such number, and caches are copied between workers",
                p->k.d->name),
            "link_gb_s");
    *out = p->memory.token * c->isl / rate;
    return CDMPP_OK;
}

enum { SPLITS = 16 };
#define SETTLED 0.01 /* of the time of a request */

/* A request of a closed loop is either with the workers of prompts or with those that decode. Each
 * kind is simulated while a request is away as long as the other kind keeps it, until both times
 * stay the same. */
static cdmpp_status split(cd_serving_session *s, const cd_serving_config *c, worker *p, worker *d,
                          cd_serving_result *out, cdmpp_err *err) {
    const double np = c->worker.count * p->schedulers, nd = c->decode.count * d->schedulers;
    double before = 0, copy = 0;
    cd_serving_result first = {0}, last = {0};
    CD_TRY(copy_s(c, p, &copy, err));
    for (int i = 0; i < SPLITS; i++) {
        cd_serving_load a = load_of(c), b = a;
        a.prompts_alone = b.tokens_alone = true;
        b.think_s = before;
        CD_TRY(run_all(s, c, d, nd, b, &last, err));
        a.think_s = copy + last.request_s;
        CD_TRY(run_all(s, c, p, np, a, &first, err));
        const double now = first.ttft_s + copy;
        if (!(c->concurrency > 0) || fabs(now - before) <= SETTLED * (now + last.request_s)) break;
        before = i ? 0.5 * (before + now) : now;
    }
    *out = last;
    out->ttft_s = first.ttft_s + copy + last.ttft_s;
    out->ttft_median_s = first.ttft_median_s + copy + last.ttft_median_s;
    out->ttft_p99_s = first.ttft_p99_s + copy + last.ttft_p99_s;
    out->request_s = first.request_s + copy + last.request_s;
    /* Little's law */
    if (c->concurrency > 0 && out->request_s > 0)
        out->tokens_s = cd_serving_in_flight(c) / out->request_s * c->osl;
    else out->tokens_s = fmin(last.tokens_s, first.tokens_s * c->osl);
    out->waiting += first.waiting, out->idle += first.idle, out->cut |= first.cut;
    out->total_s = (double)NAN;
    out->steps += first.steps;
    return CDMPP_OK;
}

static cdmpp_status together(cd_serving_session *s, const cd_serving_config *c, worker *w,
                             cd_serving_result *out, cdmpp_err *err) {
    return run_all(s, c, w, c->worker.count * w->schedulers, load_of(c), out, err);
}

/* ---- intervals ---- */
/* Of a normal distribution: how many standard deviations hold `level`. */
static double deviations(double level) {
    double lo = 0, hi = 10;
    for (int i = 0; i < 60; i++) {
        const double mid = (lo + hi) / 2;
        if (erf(mid / sqrt(2)) < level) lo = mid;
        else hi = mid;
    }
    return lo;
}

static void interval(double s, double sigma, double spread, bool known, double level, double *low,
                     double *high) {
    const double half =
        known && spread > 0 ? deviations(level) * hypot(sigma, spread) : (double)NAN;
    *low = s * exp(-half), *high = s * exp(half);
}

/* Constants that were fitted on one model, on one GPU and of one type say less of others. Words
 * that `fitted` leaves out at its end may be any. */
static bool is_fitted(const worker *w, const cd_serving_model *m) {
    char here[2 * CD_SERVING_NAME + 128];
    const char *fitted = w->k.k->fitted;
    const size_t n = strlen(fitted);
    snprintf(here, sizeof here, "%s %.0f %.0f %s %s ", m->name, m->layers, m->hidden, w->k.d->name,
             cd_llm_op_type_name(w->layout.linear));
    return !n || (!strncmp(fitted, here, n) && here[n] == ' ');
}

static bool known_rows(const cd_serving_rows *r) {
    for (size_t i = 0; i < r->n; i++)
        if (!r->v[i].known) return false;
    return true;
}

static cdmpp_status ranges(cd_serving_session *s, const cd_serving_config *c, const worker *p,
                           const worker *d, cd_serving_answer *out, cd_serving_rows *prompt,
                           cd_serving_rows *decode, cdmpp_err *err) {
    cd_serving_engine *e = NULL;
    const double n = d->schedulers * (c->decode.count > 0 ? c->decode.count : c->worker.count);
    const double copies = fmax(1, d->limit.copies), mean = out->r.running / n,
                 running = fmax(1, copies > 1 ? ceil(mean) : round(mean)),
                 each = ceil(running / copies);
    const cd_serving_step one = {.prompts = 1, .isl = c->isl};
    const cd_serving_step many = {
        .decodes = each, .context = c->isl + c->osl / 2, .others = running - each};
    CD_TRY(engine_of(s, p, &e, err));
    CD_TRY(cd_serving_step_rows(e, &one, s->shared, prompt, err));
    CD_TRY(engine_of(s, d, &e, err));
    CD_TRY(cd_serving_step_rows(e, &many, s->shared, decode, err));
    const bool fitted = is_fitted(d, s->m);
    interval(out->r.ttft_s, prompt->sigma, fitted ? p->k.k->spread_ttft : p->k.k->spread_ttft_other,
             known_rows(prompt), s->level, &out->ttft_low_s, &out->ttft_high_s);
    interval(out->r.tpot_s, decode->sigma, fitted ? d->k.k->spread_tpot : d->k.k->spread_tpot_other,
             known_rows(decode), s->level, &out->tpot_low_s, &out->tpot_high_s);
    return CDMPP_OK;
}

static double gpus_of(const cd_serving_worker *w) { return w->count * w->tp * w->pp * w->dp; }

cdmpp_status cd_serving_answer_of(cd_serving_session *s, const cd_serving_config *c,
                                  cd_serving_answer *out, cd_serving_rows *prompt,
                                  cd_serving_rows *decode, cdmpp_err *err) {
    const bool apart = c->decode.count > 0;
    worker p = {0}, d = {0};
    CD_TRY(make_worker(s, c, &c->worker, &p, err));
    if (apart) CD_TRY(cd_err_key(err, make_worker(s, c, &c->decode, &d, err), "decode"));
    else d = p;
    *out = (cd_serving_answer){.layout = d.layout,
                               .memory = d.memory,
                               .limit = d.limit,
                               .gpus = gpus_of(&c->worker) + (apart ? gpus_of(&c->decode) : 0),
                               .level = s->level};
    CD_TRY(apart ? split(s, c, &p, &d, &out->r, err) : together(s, c, &p, &out->r, err));
    out->layout = d.layout;
    out->per_gpu = out->r.tokens_s / out->gpus;
    out->per_user = out->r.tpot_s > 0 ? 1 / out->r.tpot_s : (double)NAN;
    out->ttft_low_s = out->ttft_high_s = out->tpot_low_s = out->tpot_high_s = (double)NAN;
    return prompt && decode ? ranges(s, c, &p, &d, out, prompt, decode, err) : CDMPP_OK;
}
