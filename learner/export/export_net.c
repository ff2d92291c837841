/* A network as Gemm, LayerNormalization, MatMul, Softmax and pointwise nodes; as
 * learner/nn/encoder.c, net_tsf.c, net_tail.c and mlp.c run it when predicting. */
#include <math.h>
#include <stdio.h>

#include "learner/export/export_internal.h"

typedef struct {
    cd_export *x;
    cd_net_layout net;
    const cd_member *e;
    size_t number; /* of the member */
} net;

static cd_onnx_writer *file(const net *n) { return &n->x->f; }
static const char *two(const net *n, const char *op, const char *a, const char *b) {
    return CD_ONNX_WRITER_NODE(file(n), op, a, b);
}
static const char *with(const net *n, const char *op, const char *a, float b) {
    return two(n, op, a, cd_onnx_writer_float(file(n), b));
}

/* Parameter `id` under its name in PyTorch behind "member.N.". */
static const char *param(const net *n, size_t id) {
    const cd_param *p = &n->net.params->param[id];
    const int64_t dim[] = {(int64_t)p->dim[0], (int64_t)p->dim[1]};
    char name[120];
    const int len = snprintf(name, sizeof name, "member.%zu.%s", n->number, p->name);
    const char *kept = cd_str_dup(&file(n)->arena, (cd_str){name, (size_t)len});
    return cd_onnx_writer_constant(file(n), kept, CD_ONNX_F32, dim, p->n_dim,
                                   cd_params_value(n->net.params, id));
}

static const char *vector(const net *n, const float *v, size_t k) {
    return cd_onnx_writer_constant(file(n), NULL, CD_ONNX_F32, &(int64_t){(int64_t)k}, 1, v);
}

static const char *linear(const net *n, const char *v, size_t w, size_t b) {
    const char *weight = param(n, w), *bias = param(n, b);
    cd_onnx_writer_attr_int(file(n), "transB", 1);
    return CD_ONNX_WRITER_NODE(file(n), "Gemm", v, weight, bias);
}

static const char *layer_norm(const net *n, const char *v, size_t gain, size_t shift) {
    const char *g = param(n, gain), *s = param(n, shift);
    cd_onnx_writer_attr_int(file(n), "axis", -1);
    cd_onnx_writer_attr_float(file(n), "epsilon", CD_OPS_EPS);
    return CD_ONNX_WRITER_NODE(file(n), "LayerNormalization", v, g, s);
}

/* GELU in its tanh form: x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)). */
static const char *activate(const net *n, const char *v, cd_net_act act) {
    if (act == CD_ACT_RELU) return CD_ONNX_WRITER_NODE(file(n), "Relu", v);
    if (act == CD_ACT_ELU) return CD_ONNX_WRITER_NODE(file(n), "Elu", v);
    const char *cube = two(n, "Mul", two(n, "Mul", v, v), v),
               *sum = two(n, "Add", v, with(n, "Mul", cube, 0.044715f));
    return two(
        n, "Mul", v,
        CD_ONNX_WRITER_NODE(file(n), "Sigmoid", with(n, "Mul", sum, (float)(2 * sqrt(2 / M_PI)))));
}

/* x -> ((x - shift) * scale), cut. */
static const char *scaled(const net *n, const cd_scaler *s, const char *v) {
    v = two(n, "Mul", two(n, "Sub", v, vector(n, s->shift, s->n)), vector(n, s->scale, s->n));
    return with(n, "Max", with(n, "Min", v, CD_SCALER_CLIP), -CD_SCALER_CLIP);
}

/* ---- stacks ---- */
static const char *batch_norm(const net *n, const cd_mlp_layer *l, const char *v) {
    const char *sd =
        CD_ONNX_WRITER_NODE(file(n), "Sqrt", with(n, "Add", param(n, l->var), CD_OPS_EPS));
    v = two(n, "Div", two(n, "Sub", v, param(n, l->mean)), sd);
    return two(n, "Add", two(n, "Mul", v, param(n, l->gain)), param(n, l->shift));
}

static const char *stack(const net *n, const cd_mlp *m, const char *v) {
    for (size_t k = 0; k < m->n; k++) {
        const cd_mlp_layer *l = &m->layer[k];
        v = linear(n, v, l->w, l->b);
        if (m->norm == CD_NORM_LAYER) v = layer_norm(n, v, l->gain, l->shift);
        if (m->norm == CD_NORM_BATCH) v = batch_norm(n, l, v);
        if (l->act) v = activate(n, v, m->act);
    }
    return v;
}

/* ---- encoder ---- */
static const char *heads(const net *n, const char *qkv, int64_t which) {
    const char *at = cd_onnx_writer_constant(file(n), NULL, CD_ONNX_I64, NULL, 0, &which);
    cd_onnx_writer_attr_int(file(n), "axis", 0);
    return CD_ONNX_WRITER_NODE(file(n), "Gather", qkv, at);
}

static const char *turned(const net *n, const char *v, int64_t a, int64_t b, int64_t c) {
    cd_onnx_writer_attr_ints(file(n), "perm", (const int64_t[]){a, b, c}, 3);
    return CD_ONNX_WRITER_NODE(file(n), "Transpose", v);
}

/* The heads become a dimension of their own, so that one MatMul does them all. */
static const char *attention(const net *n, const cd_encoder_layer *l, const char *v) {
    const cd_encoder *e = n->net.enc;
    const int64_t h = (int64_t)e->heads;
    const int64_t hw = (int64_t)(e->d / e->heads);
    const int64_t apart[] = {-1, 3, h, hw};
    const int64_t whole[] = {-1, (int64_t)e->d};
    const char *qkv = cd_export_reshape(n->x, linear(n, v, l->qkv_w, l->qkv_b), apart, 4);
    cd_onnx_writer_attr_ints(file(n), "perm", (const int64_t[]){1, 2, 0, 3}, 4);
    qkv = CD_ONNX_WRITER_NODE(file(n), "Transpose", qkv); /* (3, heads, n_row, hw) */
    const char *q = with(n, "Mul", heads(n, qkv, 0), 1 / sqrtf((float)hw));
    const char *score = two(n, "MatMul", q, turned(n, heads(n, qkv, 1), 0, 2, 1));
    cd_onnx_writer_attr_int(file(n), "axis", -1);
    const char *weight = CD_ONNX_WRITER_NODE(file(n), "Softmax", score);
    const char *mixed = turned(n, two(n, "MatMul", weight, heads(n, qkv, 2)), 1, 0, 2);
    return linear(n, cd_export_reshape(n->x, mixed, whole, 2), l->o_w, l->o_b);
}

static const char *feed_forward(const net *n, const cd_encoder_layer *l, const char *v) {
    return linear(n, activate(n, linear(n, v, l->w1, l->b1), n->net.enc->act), l->w2, l->b2);
}

static const char *layer(const net *n, const cd_encoder_layer *l, const char *v) {
    if (n->net.enc->pre_norm) {
        v = two(n, "Add", attention(n, l, layer_norm(n, v, l->g1, l->s1)), v);
        return two(n, "Add", feed_forward(n, l, layer_norm(n, v, l->g2, l->s2)), v);
    }
    v = layer_norm(n, two(n, "Add", attention(n, l, v), v), l->g1, l->s1);
    return layer_norm(n, two(n, "Add", feed_forward(n, l, v), v), l->g2, l->s2);
}

/* (n_row, d) */
static const char *encoder(const net *n) {
    const cd_encoder *e = n->net.enc;
    const char *v = n->x->rows;
    if (n->net.spec->derived)
        v = cd_export_concat(n->x, (const char *const[]){v, cd_export_derived(n->x)}, 2, 1);
    v = scaled(n, &n->e->scalers.tok, v);
    if (e->project) v = linear(n, v, e->proj_w, e->proj_b);
    if (e->table) {
        const int64_t dim[] = {CD_ENCODER_POSITIONS, (int64_t)e->d};
        const char *table = cd_onnx_writer_constant(file(n), NULL, CD_ONNX_F32, dim, 2, e->table);
        v = two(n, "Add", v,
                two(n, "Gather", table, cd_export_cast(n->x, n->x->index, CD_ONNX_I64)));
    }
    for (size_t k = 0; k < e->n; k++) v = layer(n, &e->layer[k], v);
    return e->pre_norm ? layer_norm(n, v, e->last_g, e->last_s) : v;
}

/* ---- program and device ---- */
static const char *program(const net *n) {
    const int64_t dim[] = {1, 1};
    const char *flop = cd_export_reshape(n->x, n->x->flop, dim, 2);
    const char *known =
        CD_ONNX_WRITER_NODE(file(n), "Greater", flop, cd_onnx_writer_double(file(n), 0));
    const char *const v[] = {cd_export_program(n->x),
                             cd_export_cast(n->x, cd_export_log2p1(n->x, flop), CD_ONNX_F32),
                             cd_export_cast(n->x, known, CD_ONNX_F32)};
    return scaled(n, &n->e->scalers.prog, cd_export_concat(n->x, v, 3, 1));
}

static const char *device(const net *n) {
    size_t width;
    const float *vectors = cd_model_device_vector(n->x->m, 0, &width);
    const int64_t dim[] = {(int64_t)cd_model_n_device(n->x->m), (int64_t)width};
    const char *table = cd_onnx_writer_constant(file(n), NULL, CD_ONNX_F32, dim, 2, vectors);
    return scaled(n, &n->e->scalers.dev, two(n, "Gather", table, n->x->device));
}

/* ---- heads ---- */
static const char *pooled(const net *n, const char *v) {
    const char *const all[] = {cd_export_over(n->x, "ReduceMean", v, 0),
                               cd_export_over(n->x, "ReduceMax", v, 0), cd_export_sum(n->x, v, 0)};
    return cd_export_concat(n->x, all, 3, 1);
}

/* Rows to slots, further ones to the last, side by side. */
static const char *flattened(const net *n, const char *v) {
    const int64_t slots = n->net.spec->slots;
    const int64_t dim[] = {slots, 1};
    const int64_t as_row[] = {1, -1};
    const int64_t flat[] = {1, slots * (int64_t)n->net.enc->d};
    double *slot = CD_NEWN(&n->x->f.arena, double, (size_t)slots);
    if (!slot) {
        n->x->f.oom = true;
        return v;
    }
    for (int64_t k = 0; k < slots; k++) slot[k] = (double)k;
    const char *of =
        two(n, "Min", n->x->index, cd_onnx_writer_double(file(n), (double)(slots - 1)));
    const char *one = two(n, "Equal", cd_export_reshape(n->x, of, as_row, 2),
                          cd_onnx_writer_constant(file(n), NULL, CD_ONNX_F64, dim, 2, slot));
    return cd_export_reshape(n->x, two(n, "MatMul", cd_export_cast(n->x, one, CD_ONNX_F32), v),
                             flat, 2);
}

/* Behind the head: side branches, decoder, the first output. */
static const char *tail(const net *n, const char *v) {
    const cd_net_tail *t = n->net.tail;
    v = stack(n, &t->head, v);
    if (t->dev.n) v = two(n, "Add", v, stack(n, &t->dev, device(n)));
    if (t->prog.n) v = two(n, "Add", v, stack(n, &t->prog, program(n)));
    v = linear(n, stack(n, &t->decoder, v), t->out_w, t->out_b);
    return cd_export_columns(n->x, v, &(int64_t){0}, 1);
}

/* T z, double (1, 1): ln of the sum over rows of e^(T score). */
static const char *summed(const net *n, const char *score) {
    const cd_net_config *s = n->net.spec;
    if (s->trips) {
        const char *trips = scaled(n, &n->e->scalers.trips,
                                   cd_export_cast(n->x, cd_export_log_trips(n->x), CD_ONNX_F32));
        score = two(n, "Add", score, with(n, "Mul", trips, (float)(1 / s->temperature)));
    }
    const char *t = cd_onnx_writer_double(file(n), s->temperature),
               *wide = cd_export_cast(n->x, score, CD_ONNX_F64);
    return two(n, "Div", cd_export_over(n->x, "ReduceLogSumExp", two(n, "Mul", wide, t), 0), t);
}

/* The graph gives ln seconds for the logarithmic label only; the other transforms have no ONNX
 * operators. */
cdmpp_status cd_export_net(cd_export *x, const cd_member *e, size_t number, const char **log_s,
                           cdmpp_err *err) {
    const net n = {x, cd_net_layout_of(e->net), e, number};
    const cd_net_config *s = n.net.spec;
    const char *z;
    if (cd_member_needs_leaves(e->kind, s->tokens))
        return CD_FAIL(err, EUNSUPPORTED,
                       "member %zu, a %s, reads loop nests; a graph of feature rows cannot hold it",
                       number, cd_member_name(e->kind));
    if (cd_member_needs_steps(e->kind))
        return CD_FAIL(
            err, EUNSUPPORTED,
            "member %zu, a %s, reads steps of schedules; a graph of feature rows cannot hold it",
            number, cd_member_name(e->kind));
    if (s->facts)
        return CD_FAIL(err, EUNSUPPORTED,
                       "member %zu, a %s, reads facts of loop nests (net.facts); a graph of "
                       "feature rows cannot hold it",
                       number, cd_member_name(e->kind));
    if (e->label->kind != CD_TRANSFORM_LOG)
        return CD_FAIL(err, EUNSUPPORTED, "member %zu: a label (fit.label) but log", number);
    if (s->kind == CD_NET_MLP) z = cd_export_cast(x, tail(&n, program(&n)), CD_ONNX_F64);
    else if (s->head == CD_HEAD_SUM) z = summed(&n, tail(&n, encoder(&n)));
    else
        z = cd_export_cast(x,
                           tail(&n, s->head == CD_HEAD_POOL ? pooled(&n, encoder(&n))
                                                            : flattened(&n, encoder(&n))),
                           CD_ONNX_F64);
    z = two(&n, "Mul", z, cd_onnx_writer_double(&x->f, e->label->std));
    *log_s = two(&n, "Add", z, cd_onnx_writer_double(&x->f, e->label->mean + e->label->centre));
    return CDMPP_OK;
}
