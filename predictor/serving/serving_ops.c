/* The operators of a step, with their sizes on one GPU. */
#include <assert.h>
#include <math.h>

#include "predictor/serving/serving.h"

static cd_serving_op *put(cd_serving_ops *o, const char *name, double count, cd_llm_op_record r) {
    /* which operators there are is written below, not in a file */
    assert(o->n < CD_SERVING_MAX_OP);
    cd_serving_op *v = &o->v[o->n++];
    *v = (cd_serving_op){.name = name, .r = r, .count = count};
    return v;
}

static cd_serving_op *product(cd_serving_ops *o, const char *name, double count, cd_llm_op_type t,
                              double m, double n, double k) {
    return put(
        o, name, count,
        (cd_llm_op_record){
            .kind = CD_LLM_OP_GEMM, .type = (uint8_t)t, .kv = (uint8_t)t, .size = {m, n, k, 1}});
}

static void small(const cd_serving_layout *l, cd_serving_ops *o, const char *name, double count,
                  double m, double bytes_each) {
    put(o, name, count,
        (cd_llm_op_record){.kind = CD_LLM_OP_ELEMENTWISE,
                           .type = (uint8_t)l->base,
                           .kv = (uint8_t)l->base,
                           .size = {m, bytes_each / 2}})
        ->bytes = m * bytes_each;
}

/* NCCL's model of its own latencies (its file tuning.cc, protocol LL): a step over NVLink, times
 * 1.8 in a group of several nodes, and a step over the network in a tree or a ring. What a group of
 * nodes takes longer than one node of it: all-reduces as trees up and down, the others as a
 * ring. */
#define HOP_S        0.6e-6
#define HOP_OF_NODES 1.8
#define TREE_S       5e-6
#define RING_S       2.7e-6
static double nodes_latency_s(cd_llm_op_kind k, double inside, double nodes) {
    if (k == CD_LLM_OP_ALL_REDUCE)
        return 2 * ((HOP_OF_NODES - 1) * (inside - 1) * HOP_S + ceil(log2(nodes)) * TREE_S);
    return (inside * nodes - nodes) * HOP_OF_NODES * HOP_S - (inside - 1) * HOP_S +
           (nodes - 1) * RING_S;
}

/* Over several nodes: inside each, and then between them, each GPU with its part of the bytes. */
static void collective(const cd_serving_layout *l, cd_serving_ops *o, const char *name,
                       double count, cd_llm_op_kind k, double elements, double gpus) {
    const double inside = l->node > 0 ? fmin(gpus, l->node) : gpus, nodes = gpus / inside,
                 bytes = 2 * elements;
    if (inside > 1)
        put(o, name, count,
            (cd_llm_op_record){.kind = (uint8_t)k,
                               .type = (uint8_t)l->base,
                               .kv = (uint8_t)l->base,
                               .size = {bytes, inside}})
            ->nodes = nodes > 1;
    if (!(nodes > 1)) return;
    cd_serving_op *v = put(o, "between_nodes", count,
                           (cd_llm_op_record){.kind = (uint8_t)k,
                                              .type = (uint8_t)l->base,
                                              .kv = (uint8_t)l->base,
                                              .size = {bytes, gpus}});
    v->bytes = (k == CD_LLM_OP_ALL_REDUCE ? 2 : 1) * (nodes - 1) / nodes * bytes / inside;
    v->link = true, v->rate = l->node_bytes_s, v->latency_s = nodes_latency_s(k, inside, nodes);
}

/* ---- parts of a layer ---- */
/* The index of sparse attention is whole on each GPU. */
static void index_products(const cd_serving_model *m, const cd_serving_layout *l, double t,
                           cd_serving_ops *o) {
    product(o, "index_q", m->attention_layers, l->project, t, m->index_heads * m->index_dim,
            m->q_rank > 0 ? m->q_rank : m->hidden);
    product(o, "index_k", m->attention_layers, l->base, t, m->index_dim + m->index_heads,
            m->hidden);
}

static void projections(const cd_serving_model *m, const cd_serving_layout *l, double t,
                        cd_serving_ops *o) {
    const double layers = m->attention_layers, heads = m->heads / l->tp,
                 q = heads * (m->nope + m->rope), kv = m->kv_rank + m->rope;
    if (!(layers > 0)) return;
    if (!m->latent) {
        product(o, "qkv", layers, l->project, t,
                m->gates * heads * m->head_dim + 2 * m->head_dim * ceil(m->kv_heads / l->tp),
                m->hidden);
        small(l, o, m->qk_norm ? "qk_norm_rope" : "rope", layers, t,
              4 * m->head_dim * (heads + 2 * ceil(m->kv_heads / l->tp)));
        if (m->gates > 1) small(l, o, "attention_gate", layers, t, 6 * heads * m->head_dim);
        product(o, "attention_out", layers, l->project, t, m->hidden, heads * m->head_dim);
        return;
    }
    product(o, "attention_down", layers, l->project, t, m->q_rank > 0 ? m->q_rank + kv : kv,
            m->hidden);
    product(o, "q_up", layers, l->project, t, q, m->q_rank > 0 ? m->q_rank : m->hidden);
    small(l, o, "latent_norm_rope", layers, t, 4 * (m->q_rank + kv + heads * m->rope));
    if (m->index_topk > 0) index_products(m, l, t, o);
    product(o, "attention_out", layers, l->project, t, m->hidden, heads * m->v_dim);
}

/* Products into a state and out of it, and the short convolution; the state itself is with
 * attention. */
static void states(const cd_serving_model *m, const cd_serving_layout *l, double t,
                   cd_serving_ops *o) {
    const cd_serving_state *s = &m->state;
    product(o, "state_in", s->layers, l->recurrent, t, s->in / l->tp, m->hidden);
    if (s->narrow > 0)
        product(o, "state_gates", s->layers, l->base, t, s->narrow / l->tp, m->hidden);
    if (s->channels > 0) small(l, o, "state_convolution", s->layers, t, 4 * s->channels / l->tp);
    small(l, o, "state_norm", s->layers, t, 6 * s->out / l->tp);
    product(o, "state_out", s->layers, l->recurrent, t, m->hidden, s->out / l->tp);
    collective(l, o, "all_reduce_states", s->layers, CD_LLM_OP_ALL_REDUCE, t * m->hidden, l->tp);
}

static void dense(const cd_serving_model *m, const cd_serving_layout *l, double t, double layers,
                  cd_serving_ops *o) {
    const bool gate = m->products > 2;
    product(o, gate ? "gate_up" : "up", layers, l->linear, t, (m->products - 1) * m->ffn / l->tp,
            m->hidden);
    small(l, o, "activation", layers, t, (gate ? 6 : 4) * m->ffn / l->tp);
    product(o, "down", layers, l->linear, t, m->hidden, m->ffn / l->tp);
    collective(l, o, "all_reduce_ffn", layers, CD_LLM_OP_ALL_REDUCE, t * m->hidden, l->tp);
}

/* Tables have experts with a gate, three products: without one they are as those of a smaller
 * width. */
static double width_with_gate(const cd_serving_model *m) {
    return m->products > 2 ? m->expert_ffn : ceil(m->expert_ffn * m->products / 3);
}

static void shared_expert(const cd_serving_model *m, const cd_serving_layout *l, double t,
                          double layers, cd_serving_ops *o) {
    const bool gate = m->products > 2;
    product(o, gate ? "shared_gate_up" : "shared_up", layers, l->shared, t,
            (m->products - 1) * m->shared_ffn / l->tp, m->hidden)
        ->beside = 2;
    small(l, o, "shared_activation", layers, t, (gate ? 6 : 4) * m->shared_ffn / l->tp);
    o->v[o->n - 1].beside = 2;
    product(o, "shared_down", layers, l->shared, t, m->hidden, m->shared_ffn / l->tp)->beside = 2;
}

/* What was put from `first` on depends on that. */
static void depend(cd_serving_ops *o, size_t first, int of) {
    for (size_t i = first; i < o->n; i++) o->v[i].of = of;
}

/* In decode the shared expert runs beside the routed ones. */
static void sparse(const cd_serving_model *m, const cd_serving_layout *l, double t, double all,
                   double layers, bool decode, cd_serving_ops *o) {
    const double group = l->tp * l->dp, in = cd_serving_experts_in(m);
    product(o, "router", layers, l->base, t, m->experts, m->hidden);
    small(l, o, "top_k", layers, t, 4 * m->experts);
    if (m->latent_in > 0)
        product(o, "latent_in", layers, l->shared, t, in, m->hidden),
            product(o, "latent_out", layers, l->shared, t, m->hidden, in);
    const size_t start = o->n;
    if (l->dp > 1) collective(l, o, "dispatch", layers, CD_LLM_OP_ALL_GATHER, all * in, group);
    const size_t first = o->n;
    put(o, "experts", layers,
        (cd_llm_op_record){
            .kind = CD_LLM_OP_MOE,
            .type = (uint8_t)l->expert,
            .kv = (uint8_t)l->expert,
            .skew = m->skew,
            .size = {all, in, width_with_gate(m), m->topk, m->experts, l->moe_tp, l->moe_ep}})
        ->beside = 1;
    depend(o, start, CD_SERVING_OF_COPIES);
    const size_t shared = o->n;
    if (m->shared_ffn > 0) shared_expert(m, l, t, layers, o);
    depend(o, shared, CD_SERVING_OF_SHARED);
    const size_t last = o->n;
    for (size_t i = first; i < o->n && !(decode && m->shared_ffn > 0); i++) o->v[i].beside = 0;
    if (l->dp > 1) collective(l, o, "combine", layers, CD_LLM_OP_REDUCE_SCATTER, all * in, group);
    else collective(l, o, "all_reduce_experts", layers, CD_LLM_OP_ALL_REDUCE, t * m->hidden, l->tp);
    depend(o, last, l->dp > 1 ? CD_SERVING_OF_COPIES : CD_SERVING_OF_SHARED);
}

void cd_serving_ops_experts(const cd_serving_model *m, const cd_serving_layout *l, double t,
                            double all, bool decode, cd_serving_ops *o) {
    o->n = 0;
    if (m->sparse_layers > 0) sparse(m, l, t, all, m->sparse_layers, decode, o);
}

/* From stage to stage: inside a node over the GPUs' own links, from the last stage of a node over
 * the network. */
static void hand_overs(const cd_serving_model *m, const cd_serving_layout *l, double t,
                       cd_serving_ops *o) {
    const double stages = l->node > 0 ? fmax(1, floor(l->node / (l->tp * l->dp))) : l->pp;
    const double between = ceil(l->pp / stages) - 1;
    const double count[] = {l->pp - 1 - between, between};
    for (size_t i = 0; i < 2; i++) {
        if (!(count[i] > 0)) continue;
        small(l, o, i ? "hand_over_nodes" : "hand_over", count[i], t, 2 * m->hidden);
        o->v[o->n - 1].link = true, o->v[o->n - 1].rate = i ? l->node_bytes_s : 0;
    }
}

void cd_serving_ops_rest(const cd_serving_model *m, const cd_serving_layout *l, double t,
                         double rows, double all, bool decode, cd_serving_ops *o) {
    o->n = 0;
    small(l, o, "embedding", 1, t, 4 * m->hidden);
    collective(l, o, "all_reduce_embedding", 1, CD_LLM_OP_ALL_REDUCE, t * m->hidden, l->tp);
    small(l, o, "norm", m->norms * m->layers + 1, t, 8 * m->hidden);
    projections(m, l, t, o);
    if (m->attention_layers > 0)
        collective(l, o, "all_reduce_attention", m->attention_layers, CD_LLM_OP_ALL_REDUCE,
                   t * m->hidden, l->tp);
    if (m->state.layers > 0) states(m, l, t, o);
    if (m->dense_layers > 0) dense(m, l, t, m->dense_layers, o);
    if (m->sparse_layers > 0) sparse(m, l, t, all, m->sparse_layers, decode, o);
    const size_t first = o->n;
    product(o, "vocabulary", 1, l->base, rows, ceil(m->vocab / l->tp), m->hidden);
    collective(l, o, "all_gather_scores", 1, CD_LLM_OP_ALL_GATHER, rows * m->vocab, l->tp);
    depend(o, first, CD_SERVING_OF_ROWS);
    const size_t last = o->n;
    hand_overs(m, l, t, o);
    depend(o, last, CD_SERVING_OF_STAGES);
}

/* ---- attention ---- */
static void windows(const cd_serving_model *m, const char *all, const char *some,
                    cd_llm_op_record r, size_t at, double length, cd_serving_ops *o) {
    /* a window that is longer than the sequence hides nothing */
    const double part = m->window > 0 && m->window < length ? m->window_layers : 0;
    if (m->attention_layers > part) put(o, all, m->attention_layers - part, r);
    r.size[at] = m->window;
    if (part > 0) put(o, some, part, r);
}

/* The state of each sequence goes through chunks of a prompt: within a chunk every token with every
 * one, and chunk and state with each other three times. */
#define CHUNK 64.0
static void state_prompt(const cd_serving_model *m, const cd_serving_layout *l, double batch,
                         double n, cd_serving_ops *o) {
    const cd_serving_state *s = &m->state;
    if (!(s->layers > 0)) return;
    put(o, "state_scan", s->layers,
        (cd_llm_op_record){.kind = CD_LLM_OP_GEMM,
                           .type = (uint8_t)l->base,
                           .kv = (uint8_t)l->base,
                           .size = {fmin(n, CHUNK), s->value, 3 * s->key + CHUNK,
                                    batch * ceil(n / CHUNK) * s->heads / l->tp}});
}

/* Read and written. */
static void state_decode(const cd_serving_model *m, const cd_serving_layout *l, double batch,
                         cd_serving_ops *o) {
    if (m->state.layers > 0)
        small(l, o, "state_update", m->state.layers, batch,
              2 * cd_serving_state_bytes(&m->state) / l->tp);
}

/* Rows of queries against latent caches of `past` tokens each. */
static void absorbed(const cd_serving_model *m, const cd_serving_layout *l, const char *name,
                     double rows, double past, cd_serving_ops *o) {
    const double heads = m->heads / l->tp, layers = m->attention_layers;
    put(o, "absorb_k", layers,
        (cd_llm_op_record){.kind = CD_LLM_OP_GEMM,
                           .type = (uint8_t)l->base,
                           .kv = (uint8_t)l->base,
                           .size = {rows, m->kv_rank, m->nope, heads}});
    put(o, name, layers,
        (cd_llm_op_record){.kind = CD_LLM_OP_LATENT_DECODE,
                           .type = (uint8_t)l->base,
                           .kv = (uint8_t)l->kv,
                           .size = {past, rows, heads}});
    put(o, "absorb_v", layers,
        (cd_llm_op_record){.kind = CD_LLM_OP_GEMM,
                           .type = (uint8_t)l->base,
                           .kv = (uint8_t)l->base,
                           .size = {rows, m->v_dim, m->kv_rank, heads}});
}

/* Scores of an index: each token against the mean of those before it, all heads at once; and the
 * choice. */
static void index_prompt(const cd_serving_model *m, const cd_serving_layout *l, double batch,
                         double n, cd_serving_ops *o) {
    const cd_llm_op_type t =
        cd_llm_op_type_unit(l->project) == CD_LLM_OP_UNIT_FP8 ? CD_LLM_OP_T_FP8 : l->base;
    put(o, "index_scores", m->attention_layers,
        (cd_llm_op_record){.kind = CD_LLM_OP_GEMM,
                           .type = (uint8_t)t,
                           .kv = (uint8_t)t,
                           .size = {n, ceil(n / 2), m->index_heads * m->index_dim, batch}});
    small(l, o, "index_choice", m->attention_layers, batch * n, 4 * n);
}

/* Sparse attention takes each token of a prompt as one that decodes; kernels take as long for the
 * first tokens, which have fewer to choose from. */
static void chosen_prompt(const cd_serving_model *m, const cd_serving_layout *l, double batch,
                          double n, cd_serving_ops *o) {
    index_prompt(m, l, batch, n, o);
    absorbed(m, l, "attention_prompt", batch * n, m->index_topk, o);
}

static void latent_prompt(const cd_serving_model *m, const cd_serving_layout *l, double batch,
                          double n, cd_serving_ops *o) {
    const double heads = m->heads / l->tp, wide = (m->nope + m->rope + m->v_dim) / 2;
    const bool usual = !(fabs(m->nope - 128) > 0) && !(fabs(m->v_dim - 128) > 0);
    cd_llm_op_record r = {.kind = CD_LLM_OP_LATENT_PREFILL,
                          .type = (uint8_t)l->base,
                          .kv = (uint8_t)l->kv,
                          .size = {n, 0, batch, heads}};
    if (!usual)
        r = (cd_llm_op_record){.kind = CD_LLM_OP_PREFILL,
                               .type = (uint8_t)l->base,
                               .kv = (uint8_t)l->base,
                               .size = {n, 0, batch, heads, heads, wide, 0}};
    product(o, "kv_up", m->attention_layers, l->project, batch * n, heads * (m->nope + m->v_dim),
            m->kv_rank);
    put(o, "attention_prompt", m->attention_layers, r);
}

void cd_serving_ops_prompt(const cd_serving_model *m, const cd_serving_layout *l, double batch,
                           double n, cd_serving_ops *o) {
    const double heads = m->heads / l->tp, kv = ceil(m->kv_heads / l->tp);
    const cd_llm_op_record r = {.kind = CD_LLM_OP_PREFILL,
                                .type = (uint8_t)l->attention,
                                .kv = (uint8_t)l->kv,
                                .size = {n, 0, batch, heads, kv, m->head_dim, 0}};
    o->n = 0;
    state_prompt(m, l, batch, n, o);
    if (m->index_topk > 0) chosen_prompt(m, l, batch, n, o);
    else if (m->latent) latent_prompt(m, l, batch, n, o);
    else windows(m, "attention_prompt", "attention_prompt_window", r, 6, n, o);
}

void cd_serving_ops_decode(const cd_serving_model *m, const cd_serving_layout *l, double batch,
                           double past, cd_serving_ops *o) {
    const double heads = m->heads / l->tp, kv = ceil(m->kv_heads / l->tp);
    const cd_llm_op_record r = {.kind = CD_LLM_OP_DECODE,
                                .type = (uint8_t)l->base,
                                .kv = (uint8_t)l->kv,
                                .size = {past, batch, heads, kv, m->head_dim, 0}};
    o->n = 0;
    state_decode(m, l, batch, o);
    if (!m->latent) windows(m, "attention_decode", "attention_decode_window", r, 5, past, o);
    else
        absorbed(m, l, "attention_decode", batch,
                 m->index_topk > 0 ? fmin(past, m->index_topk) : past, o);
    /* keys in 8 bits with their scales, and scores */
    if (m->index_topk > 0)
        small(l, o, "index_scores", m->attention_layers, batch, past * (m->index_dim + 8));
}
