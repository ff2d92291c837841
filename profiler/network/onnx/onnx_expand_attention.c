/* Attention and what belongs to it: heads taken apart, products around a softmax, positions by
 * rotation.
 *
 *   q [B,N,S,D] ─ scaled ─┐
 *   k [B,K,T,D] ─ turned ─┴─ MatMul ── softcap ── + masks ── Softmax ─┐
 *   v [B,K,T,E] ──────────────────────────────────────────────────────┴─ MatMul ──> [B,N,S,E]
 *
 * Keys and values of fewer heads (K < N) are repeated, as ONNX's function does. */
#include <math.h>
#include <string.h>

#include "profiler/network/onnx/onnx_expand_internal.h"

#define MS "com.microsoft"

typedef struct heads {
    uint32_t q, k, v;
    int64_t n, kv;            /* heads */
    double scale, softcap;    /* scale 0: 1 / sqrt(D) */
    bool causal, both_scaled; /* both_scaled: ONNX scales q and k by the root */
    int64_t left, right;      /* window; -1: none */
    uint32_t mask[3];         /* added, or bool; CD_GRAPH_NONE: none */
    uint32_t seen[4];         /* the product, behind the softcap, with masks, behind Softmax */
} heads;

/* [B,S,n*D] as [B,n,S,D]. */
static uint32_t to_heads(cd_expand *x, uint32_t t, int64_t n) {
    static const int64_t perm[] = {0, 2, 1, 3};
    const cd_graph_shape s = cd_onnx_expand_shape(x, t);
    if (!cd_onnx_expand_rank(x, t, 3, 3)) return t;
    if (n < 1 || s.dim[2] % n) cd_onnx_expand_wrong(x, "heads do not fit the hidden size");
    if (x->st) return t;
    const int64_t dim[] = {s.dim[0], s.dim[1], n, s.dim[2] / n};
    return cd_onnx_expand_transpose(x, cd_onnx_expand_reshape(x, t, 4, dim), 4, perm);
}

/* [B,n,S,D] as [B,S,n*D]. */
static uint32_t from_heads(cd_expand *x, uint32_t t) {
    static const int64_t perm[] = {0, 2, 1, 3};
    const cd_graph_shape s = cd_onnx_expand_shape(x, t);
    const int64_t dim[] = {s.dim[0], s.dim[2], s.dim[1] * s.dim[3]};
    return cd_onnx_expand_reshape(x, cd_onnx_expand_transpose(x, t, 4, perm), 3, dim);
}

static uint32_t repeated(cd_expand *x, uint32_t t, int64_t n, int64_t kv) {
    const cd_graph_shape s = cd_onnx_expand_shape(x, t);
    if (n == kv || x->st || x->why) return t;
    const int64_t apart[] = {s.dim[0], kv, 1, s.dim[2], s.dim[3]};
    const int64_t full[] = {s.dim[0], kv, n / kv, s.dim[2], s.dim[3]};
    const int64_t all[] = {s.dim[0], n, s.dim[2], s.dim[3]};
    return cd_onnx_expand_reshape(x,
                                  cd_onnx_expand_binary(x, "Expand",
                                                        cd_onnx_expand_reshape(x, t, 5, apart),
                                                        cd_onnx_expand_ints(x, full, 5)),
                                  4, all);
}

/* What queries may not look at is far below 0. The content is there where it is short enough to be
 * kept. */
static uint32_t window_mask(cd_expand *x, const heads *h, int64_t rows, int64_t columns,
                            cd_dtype t) {
    const cd_graph_shape s = {2, {rows, columns}};
    const bool kept = rows > 0 && columns > 0 && rows <= CD_GRAPH_MAX_VALUE / columns;
    const double far = cd_expr_dtype_bits(t) == 16 && cd_expr_dtype_kind(t) == CD_T_FLOAT
                           ? -65504
                           : -3.4028234663852886e38;
    double *v = CD_NEWN(x->r->a, double, kept ? (size_t)(rows * columns) : 1);
    uint32_t out = CD_GRAPH_NONE;
    if (!v && !x->st) x->st = CD_FAIL(x->err, ENOMEM, "a mask");
    for (int64_t i = 0; kept && !x->st && i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const int64_t ahead = j - (i + columns - rows);
            const bool out_of_sight = (h->causal && ahead > 0) ||
                                      (h->left >= 0 && -ahead > h->left) ||
                                      (h->right >= 0 && ahead > h->right);
            v[i * columns + j] = out_of_sight ? far : 0;
        }
    if (!x->st)
        x->st = kept ? cd_graph_constant(x->r->g, "mask", t, &s, NULL, v, &out, x->err)
                     : cd_graph_weight(x->r->g, "mask", t, &s, &out, x->err);
    return out;
}

/* A mask of bools becomes one that is added. */
static uint32_t added(cd_expand *x, uint32_t mask, cd_dtype t) {
    const double far = cd_expr_dtype_bits(t) == 16 && cd_expr_dtype_kind(t) == CD_T_FLOAT
                           ? -65504
                           : -3.4028234663852886e38;
    if (cd_onnx_expand_type(x, mask) != CD_BOOL) return cd_onnx_expand_cast(x, mask, t);
    const uint32_t in[] = {mask, cd_onnx_expand_real(x, t, 0), cd_onnx_expand_real(x, t, far)};
    return cd_onnx_expand_add(x, "Where", in, 3, NULL, 0);
}

/* A window of queries that are at the end of the keys that stand here. */
static uint32_t masked(cd_expand *x, heads *h, uint32_t scores) {
    const cd_graph_shape s = cd_onnx_expand_shape(x, scores);
    const cd_dtype t = cd_onnx_expand_type(x, scores);
    if (x->st || x->why) return scores;
    if (h->causal || h->left >= 0 || h->right >= 0)
        scores = cd_onnx_expand_binary(x, "Add", scores, window_mask(x, h, s.dim[2], s.dim[3], t));
    for (size_t i = 0; i < sizeof h->mask / sizeof *h->mask; i++)
        if (h->mask[i] != CD_GRAPH_NONE)
            scores = cd_onnx_expand_binary(x, "Add", scores, added(x, h->mask[i], t));
    return scores;
}

/* Results are given heads apart: [B,N,S,E]. */
static uint32_t attend(cd_expand *x, heads *h) {
    static const int64_t turned[] = {0, 1, 3, 2};
    const cd_graph_shape q = cd_onnx_expand_shape(x, h->q), k = cd_onnx_expand_shape(x, h->k),
                         v = cd_onnx_expand_shape(x, h->v);
    if (x->st || x->why) return CD_GRAPH_NONE;
    if (q.rank != 4 || k.rank != 4 || v.rank != 4 || q.dim[1] != h->n || k.dim[1] != h->kv ||
        h->kv < 1 || h->n % h->kv || k.dim[3] != q.dim[3])
        cd_onnx_expand_wrong(x, "queries, keys and values do not fit");
    if (x->st) return CD_GRAPH_NONE;
    const double scale = h->scale > 0   ? h->scale
                         : q.dim[3] > 0 ? 1 / sqrt((double)q.dim[3])
                                        : 1,
                 by = h->both_scaled ? sqrt(scale) : scale;
    const uint32_t keys = cd_onnx_expand_transpose(x, repeated(x, h->k, h->n, h->kv), 4, turned);
    uint32_t s = cd_onnx_expand_binary(x, "MatMul", cd_onnx_expand_times(x, h->q, by),
                                       h->both_scaled ? cd_onnx_expand_times(x, keys, by) : keys);
    h->seen[0] = s;
    if (h->softcap > 0)
        s = cd_onnx_expand_times(
            x, cd_onnx_expand_unary(x, "Tanh", cd_onnx_expand_times(x, s, 1 / h->softcap)),
            h->softcap);
    h->seen[1] = s;
    s = h->seen[2] = masked(x, h, s);
    s = h->seen[3] = cd_onnx_expand_softmax(x, s);
    return cd_onnx_expand_binary(x, "MatMul", s, repeated(x, h->v, h->n, h->kv));
}

static heads no_heads(void) {
    return (heads){.left = -1, .right = -1, .mask = {CD_GRAPH_NONE, CD_GRAPH_NONE, CD_GRAPH_NONE}};
}

/* What came before, operand k [B,K,P,D], in front along the third dimension; result `out` gets all
 * of it. */
static uint32_t with_past(cd_expand *x, uint32_t t, uint32_t k, uint32_t out) {
    if (cd_onnx_expand_has(x, k)) t = cd_onnx_expand_concat(x, x->in[k], t, 2);
    cd_onnx_expand_out(x, out, t);
    return t;
}

/* ---- ONNX's operator ---- */

/* Positions behind nonpad_kv_seqlen [B] are not there. */
static uint32_t padding_mask(cd_expand *x, uint32_t k, const cd_graph_shape *keys, cd_dtype t) {
    const int64_t total = keys->dim[2], four[] = {keys->dim[0], 1, 1, 1};
    int64_t *v =
        CD_NEWN(x->r->a, int64_t, total > 0 && total <= CD_GRAPH_MAX_VALUE ? (size_t)total : 1);
    if (!v && !x->st) x->st = CD_FAIL(x->err, ENOMEM, "positions");
    if (total > CD_GRAPH_MAX_VALUE) x->why = "more keys than are counted";
    for (int64_t i = 0; v && !x->why && i < total; i++) v[i] = i;
    if (x->st || x->why) return CD_GRAPH_NONE;
    return added(x,
                 cd_onnx_expand_binary(x, "Less", cd_onnx_expand_ints(x, v, (uint32_t)total),
                                       cd_onnx_expand_reshape(x, x->in[k], 4, four)),
                 t);
}

static void attention(cd_expand *x) {
    heads h = no_heads();
    const uint32_t q = cd_onnx_expand_in(x, 0), k = cd_onnx_expand_in(x, 1),
                   v = cd_onnx_expand_in(x, 2);
    const bool three = cd_onnx_expand_shape(x, q).rank == 3;
    if (!cd_onnx_expand_rank(x, q, 3, 4)) return;
    h.n = three ? cd_onnx_expand_int(x, "q_num_heads", 0) : cd_onnx_expand_shape(x, q).dim[1];
    h.kv = three ? cd_onnx_expand_int(x, "kv_num_heads", 0) : cd_onnx_expand_shape(x, k).dim[1];
    h.q = three ? to_heads(x, q, h.n) : q;
    h.k = with_past(x, three ? to_heads(x, k, h.kv) : k, 4, 1);
    h.v = with_past(x, three ? to_heads(x, v, h.kv) : v, 5, 2);
    h.scale = cd_onnx_expand_float(x, "scale", 0),
    h.softcap = cd_onnx_expand_float(x, "softcap", 0), h.both_scaled = true;
    h.causal = cd_onnx_expand_int(x, "is_causal", 0) != 0,
    h.left = cd_onnx_expand_int(x, "left_window_size", -1),
    h.right = cd_onnx_expand_int(x, "right_window_size", -1);
    const cd_graph_shape keys = cd_onnx_expand_shape(x, h.k);
    if (cd_onnx_expand_has(x, 3)) h.mask[0] = x->in[3];
    if (cd_onnx_expand_has(x, 6) && keys.rank == 4)
        h.mask[1] = padding_mask(x, 6, &keys, cd_onnx_expand_type(x, q));
    const uint32_t y = attend(x, &h);
    const int64_t mode = cd_onnx_expand_int(x, "qk_matmul_output_mode", 0);
    if (x->st || x->why) return;
    cd_onnx_expand_out(x, 0, three ? from_heads(x, y) : y);
    if (mode < 0 || mode > 3) cd_onnx_expand_wrong(x, "expected 0 to 3 as qk_matmul_output_mode");
    else cd_onnx_expand_out(x, 3, h.seen[mode]);
}

/* ---- rotation ---- */

/* Pairs of a [B,S,N,D] are turned by angles [.,S,1,D/2]: halves, or neighbours. What is behind
 * `dim` stays. */
static uint32_t rotated(cd_expand *x, uint32_t a, uint32_t cos, uint32_t sin, int64_t dim,
                        bool neighbours) {
    const cd_graph_shape s = cd_onnx_expand_shape(x, a);
    const uint32_t turned = dim < s.dim[3] ? cd_onnx_expand_slice(x, a, 3, 0, dim, 1) : a;
    const uint32_t even = neighbours ? cd_onnx_expand_slice(x, turned, 3, 0, dim, 2)
                                     : cd_onnx_expand_slice(x, turned, 3, 0, dim / 2, 1);
    const uint32_t odd = neighbours ? cd_onnx_expand_slice(x, turned, 3, 1, dim, 2)
                                    : cd_onnx_expand_slice(x, turned, 3, dim / 2, dim, 1);
    uint32_t re = cd_onnx_expand_binary(x, "Sub", cd_onnx_expand_binary(x, "Mul", cos, even),
                                        cd_onnx_expand_binary(x, "Mul", sin, odd));
    uint32_t im = cd_onnx_expand_binary(x, "Add", cd_onnx_expand_binary(x, "Mul", sin, even),
                                        cd_onnx_expand_binary(x, "Mul", cos, odd));
    const int64_t apart[] = {s.dim[0], s.dim[1], s.dim[2], dim / 2, 1};
    const int64_t all[] = {s.dim[0], s.dim[1], s.dim[2], dim};
    if (neighbours)
        re = cd_onnx_expand_reshape(x, re, 5, apart), im = cd_onnx_expand_reshape(x, im, 5, apart);
    uint32_t y = cd_onnx_expand_concat(x, re, im, neighbours ? 4 : 3);
    if (neighbours) y = cd_onnx_expand_reshape(x, y, 4, all);
    return dim < s.dim[3]
               ? cd_onnx_expand_concat(x, y, cd_onnx_expand_slice(x, a, 3, dim, s.dim[3], 1), 3)
               : y;
}

/* Angles as [.,S,1,D/2]: rows of a table by positions, or what is given for each position
 * already. */
static uint32_t angles(cd_expand *x, uint32_t table, uint32_t positions, int64_t steps) {
    const cd_graph_shape p = cd_onnx_expand_shape(x, positions);
    uint32_t a = table;
    /* rows from one position on */
    if (positions != CD_GRAPH_NONE && cd_graph_shape_elements(&p) == 1 && steps != 1)
        a = cd_onnx_expand_slice(x, table, 0, 0, steps, 1);
    else if (positions != CD_GRAPH_NONE) a = cd_onnx_expand_gather(x, table, positions, 0);
    const cd_graph_shape s = cd_onnx_expand_shape(x, a);
    if (!cd_onnx_expand_rank(x, a, 2, 3)) return a;
    const int64_t dim[] = {s.rank == 3 ? s.dim[0] : 1, s.rank == 3 ? s.dim[1] : s.dim[0], 1,
                           s.dim[s.rank - 1]};
    return cd_onnx_expand_reshape(x, a, 4, dim);
}

/* a: [B,S,n*D] or [B,n,S,D]; gives its own form. */
static uint32_t rotate(cd_expand *x, uint32_t a, int64_t n, const uint32_t *table,
                       uint32_t positions, bool neighbours) {
    static const int64_t perm[] = {0, 2, 1, 3};
    const cd_graph_shape s = cd_onnx_expand_shape(x, a), c = cd_onnx_expand_shape(x, table[0]);
    if (!cd_onnx_expand_rank(x, a, 3, 4) || !cd_onnx_expand_rank(x, table[0], 2, 3)) return a;
    const int64_t dim = cd_onnx_expand_int(x, "rotary_embedding_dim", 0), half = c.dim[c.rank - 1];
    const int64_t size = s.rank == 4 ? s.dim[3] : n > 0 ? s.dim[2] / n : dim > 0 ? dim : 2 * half;
    if (s.rank == 3 && (size < 1 || s.dim[2] % size))
        cd_onnx_expand_wrong(x, "heads do not fit the hidden size");
    if (x->st) return a;
    const int64_t apart[] = {s.dim[0], s.dim[1], s.rank == 3 ? s.dim[2] / size : 0, size};
    const uint32_t b = s.rank == 4 ? cd_onnx_expand_transpose(x, a, 4, perm)
                                   : cd_onnx_expand_reshape(x, a, 4, apart);
    const int64_t steps = s.rank == 4 ? s.dim[2] : s.dim[1], all = dim > 0           ? dim
                                                                   : 2 * half < size ? 2 * half
                                                                                     : size;
    const uint32_t cos = angles(x, table[0], positions, steps),
                   sin = angles(x, table[1], positions, steps),
                   y = rotated(x, b, cos, sin, all, neighbours);
    return s.rank == 4 ? cd_onnx_expand_transpose(x, y, 4, perm)
                       : cd_onnx_expand_reshape(x, y, 3, s.dim);
}

static void rotary(cd_expand *x) {
    const uint32_t table[] = {cd_onnx_expand_in(x, 1), cd_onnx_expand_in(x, 2)};
    cd_onnx_expand_out(x, 0,
                       rotate(x, cd_onnx_expand_in(x, 0), cd_onnx_expand_int(x, "num_heads", 0),
                              table, cd_onnx_expand_has(x, 3) ? x->in[3] : CD_GRAPH_NONE,
                              cd_onnx_expand_int(x, "interleaved", 0) != 0));
}

/* com.microsoft has the positions before the tables. */
static void rotary_ms(cd_expand *x) {
    const uint32_t table[] = {cd_onnx_expand_in(x, 2), cd_onnx_expand_in(x, 3)};
    if (cd_onnx_expand_int(x, "is_packed_batching", 0)) x->why = "packed batches";
    cd_onnx_expand_out(x, 0,
                       rotate(x, cd_onnx_expand_in(x, 0), cd_onnx_expand_int(x, "num_heads", 0),
                              table, cd_onnx_expand_in(x, 1),
                              cd_onnx_expand_int(x, "interleaved", 0) != 0));
}

/* ---- ONNX Runtime's ---- */

/* Operand k [from .. from+n) of one dimension, added to a; a where there is none. */
static uint32_t plus_bias(cd_expand *x, uint32_t a, uint32_t k, int64_t from) {
    const cd_graph_shape s = cd_onnx_expand_shape(x, a);
    return cd_onnx_expand_has(x, k) && s.rank
               ? cd_onnx_expand_binary(
                     x, "Add", a,
                     cd_onnx_expand_slice(x, x->in[k], 0, from, from + s.dim[s.rank - 1], 1))
               : a;
}

/* Masks of com.microsoft: [B] lengths and [B,T] ones and zeros are turned into what is added:
 * [B,1,1,T]. Others are added as they are where they fit. */
static uint32_t key_mask(cd_expand *x, uint32_t k, const cd_graph_shape *keys, cd_dtype t) {
    const cd_graph_shape s = cd_onnx_expand_shape(x, x->in[k]);
    const int64_t four[] = {s.dim[0], 1, 1, s.rank == 2 ? s.dim[1] : 1};
    if (s.rank == 1 && s.dim[0] == keys->dim[0]) return padding_mask(x, k, keys, t);
    if (s.rank != 2 || s.dim[1] != keys->dim[2]) {
        x->why = "a mask of this form";
        return CD_GRAPH_NONE;
    }
    const uint32_t ones = cd_onnx_expand_cast(x, cd_onnx_expand_reshape(x, x->in[k], 4, four), t);
    return cd_onnx_expand_times(x,
                                cd_onnx_expand_binary(x, "Sub", cd_onnx_expand_real(x, t, 1), ones),
                                cd_onnx_expand_float(x, "mask_filter_value", -10000));
}

/* query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value */
static void multi_head(cd_expand *x) {
    heads h = no_heads();
    const uint32_t q = cd_onnx_expand_in(x, 0);
    h.n = h.kv = cd_onnx_expand_int(x, "num_heads", 0);
    h.causal = cd_onnx_expand_int(x, "unidirectional", 0) != 0,
    h.scale = cd_onnx_expand_float(x, "scale", 0);
    if (!cd_onnx_expand_has(x, 1) || !cd_onnx_expand_has(x, 2) ||
        cd_onnx_expand_shape(x, q).rank != 3)
        x->why = "queries, keys and values in one tensor";
    if (x->why || x->st) return;
    const uint32_t k = x->in[1], v = x->in[2];
    const int64_t hidden = cd_onnx_expand_shape(x, q).dim[2];
    h.q = to_heads(x, plus_bias(x, q, 3, 0), h.n);
    h.k = cd_onnx_expand_shape(x, k).rank == 4 ? k : to_heads(x, plus_bias(x, k, 3, hidden), h.n);
    h.v =
        cd_onnx_expand_shape(x, v).rank == 4 ? v : to_heads(x, plus_bias(x, v, 3, 2 * hidden), h.n);
    h.k = with_past(x, h.k, 6, 1), h.v = with_past(x, h.v, 7, 2);
    const cd_graph_shape keys = cd_onnx_expand_shape(x, h.k);
    if (cd_onnx_expand_has(x, 4) && keys.rank == 4)
        h.mask[0] = key_mask(x, 4, &keys, cd_onnx_expand_type(x, q));
    if (cd_onnx_expand_has(x, 5)) h.mask[1] = x->in[5];
    const uint32_t y = attend(x, &h);
    if (!x->st && !x->why) cd_onnx_expand_out(x, 0, from_heads(x, y));
}

/* Numbers of heads that can be counted with. */
static bool few_heads(cd_expand *x, const heads *h) {
    if (h->n < 1 || h->kv < 1 || h->n > INT32_MAX || h->kv > INT32_MAX)
        cd_onnx_expand_wrong(x, "heads do not fit the hidden size");
    return !x->st;
}

/* query, key, value, past_key, past_value, seqlens_k, total_sequence_length, cos_cache, sin_cache,
 * position_ids, attention_bias */
static void group_query(cd_expand *x) {
    heads h = no_heads();
    const bool apart = cd_onnx_expand_has(x, 1);
    uint32_t q = cd_onnx_expand_in(x, 0), k = apart ? x->in[1] : CD_GRAPH_NONE,
             v = apart ? cd_onnx_expand_in(x, 2) : CD_GRAPH_NONE;
    h.n = cd_onnx_expand_int(x, "num_heads", 0), h.kv = cd_onnx_expand_int(x, "kv_num_heads", 0);
    h.scale = cd_onnx_expand_float(x, "scale", 0),
    h.softcap = cd_onnx_expand_float(x, "softcap", 0), h.causal = true;
    const int64_t window = cd_onnx_expand_int(x, "local_window_size", -1);
    if (!cd_onnx_expand_rank(x, q, 3, 3)) return;
    if (!few_heads(x, &h)) return;
    if (cd_onnx_expand_int(x, "smooth_softmax", 0) || cd_onnx_expand_has(x, 11))
        x->why = "a softmax with a sink";
    const int64_t size = cd_onnx_expand_shape(x, q).dim[2] / (h.n + 2 * h.kv);
    if (!apart) { /* all in one */
        const uint32_t all = q;
        q = cd_onnx_expand_slice(x, all, 2, 0, h.n * size, 1);
        k = cd_onnx_expand_slice(x, all, 2, h.n * size, (h.n + h.kv) * size, 1);
        v = cd_onnx_expand_slice(x, all, 2, (h.n + h.kv) * size, (h.n + 2 * h.kv) * size, 1);
    }
    if (cd_onnx_expand_int(x, "do_rotary", 0)) {
        const uint32_t table[] = {cd_onnx_expand_in(x, 7), cd_onnx_expand_in(x, 8)};
        const uint32_t at = cd_onnx_expand_has(x, 9) ? x->in[9] : CD_GRAPH_NONE;
        const int64_t steps = cd_onnx_expand_shape(x, q).dim[1];
        const uint32_t some[] = {
            at == CD_GRAPH_NONE ? cd_onnx_expand_slice(x, table[0], 0, 0, steps, 1) : table[0],
            at == CD_GRAPH_NONE ? cd_onnx_expand_slice(x, table[1], 0, 0, steps, 1) : table[1]};
        const bool neighbours = cd_onnx_expand_int(x, "rotary_interleaved", 0) != 0;
        q = rotate(x, q, h.n, some, at, neighbours), k = rotate(x, k, h.kv, some, at, neighbours);
    }
    if (window >= 0) h.left = window - 1;
    h.q = to_heads(x, q, h.n), h.k = with_past(x, to_heads(x, k, h.kv), 3, 1),
    h.v = with_past(x, to_heads(x, v, h.kv), 4, 2);
    if (cd_onnx_expand_has(x, 10)) h.mask[0] = x->in[10];
    const uint32_t y = attend(x, &h);
    if (!x->st && !x->why) cd_onnx_expand_out(x, 0, from_heads(x, y));
}

/* all: [B,S,3H] of queries, keys and values; past [2,B,N,P,D] is operand k, and the present is
 * result 1. */
static void of_all(cd_expand *x, uint32_t all, uint32_t mask, uint32_t past, uint32_t bias) {
    heads h = no_heads();
    const cd_graph_shape s = cd_onnx_expand_shape(x, all);
    const CdOnnx__AttributeProto *sizes = cd_onnx_attr(x->s, x->n, "qkv_hidden_sizes");
    if (!cd_onnx_expand_rank(x, all, 3, 3)) return;
    const int64_t n = s.dim[2] / 3, q = sizes && sizes->n_ints == 3 ? sizes->ints[0] : n,
                  k = sizes && sizes->n_ints == 3 ? sizes->ints[1] : n;
    if (q < 1 || k < 1 || q > s.dim[2] || k > s.dim[2])
        cd_onnx_expand_wrong(x, "qkv_hidden_sizes do not fit the weights");
    if (x->st) return;
    h.n = h.kv = cd_onnx_expand_int(x, "num_heads", 0);
    h.causal = cd_onnx_expand_int(x, "unidirectional", 0) != 0,
    h.scale = cd_onnx_expand_float(x, "scale", 0);
    if (cd_onnx_expand_int(x, "do_rotary", 0)) x->why = "an attention that turns what it makes";
    h.q = to_heads(x, cd_onnx_expand_slice(x, all, 2, 0, q, 1), h.n);
    h.k = to_heads(x, cd_onnx_expand_slice(x, all, 2, q, q + k, 1), h.n);
    h.v = to_heads(x, cd_onnx_expand_slice(x, all, 2, q + k, s.dim[2], 1), h.n);
    if (cd_onnx_expand_has(x, past)) {
        const uint32_t zero = cd_onnx_expand_ints(x, (const int64_t[]){0}, 1),
                       one = cd_onnx_expand_ints(x, (const int64_t[]){1}, 1);
        const cd_graph_shape p = cd_onnx_expand_shape(x, x->in[past]);
        if (p.rank != 5) cd_onnx_expand_wrong(x, "expected five dimensions of the past");
        const int64_t four[] = {p.dim[1], p.dim[2], p.dim[3], p.dim[4]};
        h.k = cd_onnx_expand_concat(
            x, cd_onnx_expand_reshape(x, cd_onnx_expand_gather(x, x->in[past], zero, 0), 4, four),
            h.k, 2);
        h.v = cd_onnx_expand_concat(
            x, cd_onnx_expand_reshape(x, cd_onnx_expand_gather(x, x->in[past], one, 0), 4, four),
            h.v, 2);
    }
    const cd_graph_shape keys = cd_onnx_expand_shape(x, h.k);
    const int64_t five[] = {1, keys.dim[0], keys.dim[1], keys.dim[2], keys.dim[3]};
    if (cd_onnx_expand_wants(x, 1))
        cd_onnx_expand_out(x, 1,
                           cd_onnx_expand_concat(x, cd_onnx_expand_reshape(x, h.k, 5, five),
                                                 cd_onnx_expand_reshape(x, h.v, 5, five), 0));
    if (cd_onnx_expand_has(x, mask) && keys.rank == 4)
        h.mask[0] = key_mask(x, mask, &keys, cd_onnx_expand_type(x, all));
    if (cd_onnx_expand_has(x, bias)) h.mask[1] = x->in[bias];
    const uint32_t y = attend(x, &h);
    if (!x->st && !x->why) cd_onnx_expand_out(x, 0, from_heads(x, y));
}

/* input, weights, bias, mask_index, past, attention_bias */
static void attention_ms(cd_expand *x) {
    const uint32_t all =
        cd_onnx_expand_binary(x, "MatMul", cd_onnx_expand_in(x, 0), cd_onnx_expand_in(x, 1));
    of_all(x, cd_onnx_expand_has(x, 2) ? cd_onnx_expand_binary(x, "Add", all, x->in[2]) : all, 3, 4,
           5);
}

/* input, weight, bias, their scales, mask_index, their zero points, past */
static void attention_quantized(cd_expand *x) {
    const cd_onnx_expand_product p = {cd_onnx_expand_in(x, 0),
                                      cd_onnx_expand_in(x, 1),
                                      cd_onnx_expand_in(x, 3),
                                      cd_onnx_expand_in(x, 4),
                                      cd_onnx_expand_has(x, 6) ? x->in[6] : CD_GRAPH_NONE,
                                      cd_onnx_expand_has(x, 7) ? x->in[7] : CD_GRAPH_NONE,
                                      cd_onnx_expand_in(x, 2)};
    of_all(x, cd_onnx_expand_integer_product(x, &p), 5, 8, CD_GRAPH_NONE);
}

const cd_expansion cd_onnx_expansions_attention[] = {
    {"", "Attention", attention,
     "is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode right_window_size "
     "scale softcap softmax_precision"},
    {"", "RotaryEmbedding", rotary, "interleaved num_heads rotary_embedding_dim"},
    {MS, "RotaryEmbedding", rotary_ms,
     "interleaved num_heads rotary_embedding_dim scale is_packed_batching"},
    {MS, "MultiHeadAttention", multi_head, "num_heads scale unidirectional mask_filter_value"},
    {MS, "GroupQueryAttention", group_query,
     "num_heads kv_num_heads scale softcap local_window_size do_rotary rotary_interleaved "
     "smooth_softmax"},
    {MS, "Attention", attention_ms,
     "num_heads unidirectional qkv_hidden_sizes scale mask_filter_value do_rotary "
     "past_present_share_buffer rotary_embedding_dim"},
    {MS, "QAttention", attention_quantized,
     "num_heads unidirectional scale mask_filter_value do_rotary past_present_share_buffer"},
    {NULL, NULL, NULL, NULL},
};
