/* The ensemble as one graph. Kinds of weight 0 are left out: they would cost time and change
 * nothing. */
#include <math.h>
#include <stdio.h>

#include "features/rows/rows.h"
#include "learner/export/export_internal.h"

/* learner/inputs/tree_input.c as a graph. Doubles throughout, rounded to float where that file
 * does: a column that differs in its last digit could take the other side of a tree's cut. */

enum { TOP = 3 }; /* rows in a program vector */

/* ---- small pieces ---- */
/* One node each; the name of its value. */
static const char *export_cast(cd_export *x, const char *v, cd_onnx_type to) {
    cd_onnx_writer_attr_int(&x->f, "to", to);
    return CD_ONNX_WRITER_NODE(&x->f, "Cast", v);
}

static const char *export_concat(cd_export *x, const char *const *v, size_t n, int64_t axis) {
    cd_onnx_writer_attr_int(&x->f, "axis", axis);
    return cd_onnx_writer_node(&x->f, "Concat", v, n);
}

static const char *export_reshape(cd_export *x, const char *v, const int64_t *dim, size_t n) {
    return CD_ONNX_WRITER_NODE(&x->f, "Reshape", v, cd_onnx_writer_ints(&x->f, dim, n));
}

/* keeps the axis */
static const char *export_sum(cd_export *x, const char *v, int64_t axis) {
    const char *axes = cd_onnx_writer_ints(&x->f, &axis, 1);
    cd_onnx_writer_attr_int(&x->f, "keepdims", 1);
    return CD_ONNX_WRITER_NODE(&x->f, "ReduceSum", v, axes);
}

/* ReduceMax, ReduceMean, ReduceLogSumExp: likewise */
static const char *export_over(cd_export *x, const char *op, const char *v, int64_t axis) {
    cd_onnx_writer_attr_ints(&x->f, "axes", &axis, 1);
    cd_onnx_writer_attr_int(&x->f, "keepdims", 1);
    return CD_ONNX_WRITER_NODE(&x->f, op, v);
}

static const char *export_columns(cd_export *x, const char *v, const int64_t *c, size_t n) {
    const char *at = cd_onnx_writer_ints(&x->f, c, n);
    cd_onnx_writer_attr_int(&x->f, "axis", 1);
    return CD_ONNX_WRITER_NODE(&x->f, "Gather", v, at);
}

static const char *column(cd_export *x, const char *v, int64_t c) {
    return export_columns(x, v, &c, 1);
}
static const char *two(cd_export *x, const char *op, const char *a, const char *b) {
    return CD_ONNX_WRITER_NODE(&x->f, op, a, b);
}
static const char *with_input(cd_export *x, const char *op, const char *a, double b) {
    return two(x, op, a, cd_onnx_writer_double(&x->f, b));
}
static const char *log2_of(cd_export *x, const char *v) {
    return with_input(x, "Div", CD_ONNX_WRITER_NODE(&x->f, "Log", v), M_LN2);
}
static const char *exp2_of(cd_export *x, const char *v) {
    return two(x, "Pow", cd_onnx_writer_double(&x->f, 2), v);
}
static const char *value(cd_export *x, const char *v) {
    return with_input(x, "Sub", exp2_of(x, with_input(x, "Min", v, 100)), 1);
}
static const char *export_log2p1(cd_export *x, const char *v) {
    return log2_of(x, with_input(x, "Add", with_input(x, "Max", v, 0), 1));
}

/* ---- rows ---- */
static const char *total(cd_export *x, int64_t from, int64_t step, size_t n) {
    int64_t c[16];
    for (size_t i = 0; i < n; i++) c[i] = from + (int64_t)i * step;
    return export_log2p1(x, export_sum(x, value(x, export_columns(x, x->wide, c, n)), 1));
}

static const char *three(cd_export *x, int64_t from) {
    const int64_t c[] = {from, from + 1, from + 2};
    return export_sum(x, export_columns(x, x->wide, c, 3), 1);
}

/* Inputs and what all need.
 *
 * What several members read is made here once. "rows" has as many rows as the program, so the index
 * is a Range over its shape. */
static void export_begin(cd_export *x) {
    cd_onnx_writer *f = &x->f;
    const int64_t shape[] = {-1, CD_N_COL}, one = 1, zero = 0;
    x->rows = cd_onnx_writer_input(f, "rows", CD_ONNX_F32, shape, 2);
    x->device = cd_onnx_writer_input(f, "device", CD_ONNX_I64, &one, 1);
    x->flop = cd_onnx_writer_input(f, "flop", CD_ONNX_F64, &one, 1);
    x->wide = export_cast(x, x->rows, CD_ONNX_F64);
    const char *n =
        CD_ONNX_WRITER_NODE(f, "Gather", CD_ONNX_WRITER_NODE(f, "Shape", x->rows),
                            cd_onnx_writer_constant(f, NULL, CD_ONNX_I64, NULL, 0, &zero));
    x->index = CD_ONNX_WRITER_NODE(f, "Range", cd_onnx_writer_double(f, 0),
                                   export_cast(x, n, CD_ONNX_F64), cd_onnx_writer_double(f, 1));
    x->outer = column(x, x->wide, CD_COL_OUTER_PROD);
    x->grid = three(x, CD_COL_BLOCK_X);
    x->threads = three(x, CD_COL_THREAD_X);
    x->total[0] = total(x, CD_COL_FLOAT_MAD, 1, 16);
    for (int k = 0; k < 4; k++)
        x->total[1 + k] = total(x, CD_COL_B0_BYTES + k, CD_COL_BUFFER_STRIDE, 5);
}

/* double (n_row, 1) */
static const char *export_log_trips(cd_export *x) { return with_input(x, "Mul", x->outer, M_LN2); }

static const char *export_derived(cd_export *x) {
    if (x->derived) return x->derived;
    const char *const *t = x->total, *P = x->outer, *per_block = two(x, "Sub", P, x->grid);
    const char *const v[] = {t[0],
                             t[1],
                             t[2],
                             t[3],
                             t[4],
                             two(x, "Sub", t[0], t[1]),
                             two(x, "Sub", t[0], t[2]),
                             two(x, "Sub", t[1], t[2]),
                             two(x, "Sub", t[3], t[4]),
                             two(x, "Sub", t[0], P),
                             two(x, "Sub", per_block, x->threads),
                             per_block,
                             two(x, "Sub", P, column(x, x->wide, CD_COL_PARALLEL_PROD)),
                             two(x, "Sub", P, column(x, x->wide, CD_COL_UNROLL_PROD)),
                             two(x, "Sub", P, column(x, x->wide, CD_COL_VEC_PROD))};
    return x->derived = export_cast(x, export_concat(x, v, sizeof v / sizeof *v, 1), CD_ONNX_F32);
}

/* ---- program ---- */
/* (TOP, n_row): 1 where a row is the k-th in the order of input.c. Two rows compare by the first of
 * their keys that differs; the last key, the place, makes the order one of all rows. */
static const char *choice(cd_export *x) {
    cd_onnx_writer *f = &x->f;
    const double place[TOP] = {0, 1, 2};
    const int64_t as_column[] = {-1, 1}, as_row[] = {1, -1}, a = 1, b = 0, dim[] = {TOP, 1};
    const char *const keys[] = {
        x->total[0], x->outer, x->wide,
        CD_ONNX_WRITER_NODE(f, "Neg", export_reshape(x, x->index, as_column, 2))};
    const char *key = export_concat(x, keys, 4, 1);
    const char *sign = CD_ONNX_WRITER_NODE(
        f, "Sign",
        two(x, "Sub", CD_ONNX_WRITER_NODE(f, "Unsqueeze", key, cd_onnx_writer_ints(f, &a, 1)),
            CD_ONNX_WRITER_NODE(f, "Unsqueeze", key, cd_onnx_writer_ints(f, &b, 1))));
    const char *differ = CD_ONNX_WRITER_NODE(f, "Abs", sign);
    cd_onnx_writer_attr_int(f, "axis", 2);
    const char *first = CD_ONNX_WRITER_NODE(f, "ArgMax", differ);
    cd_onnx_writer_attr_int(f, "axis", 2);
    const char *before =
        with_input(x, "Max", CD_ONNX_WRITER_NODE(f, "GatherElements", sign, first), 0);
    const char *rank = export_reshape(x, export_sum(x, before, 0), as_row, 2);
    return export_cast(
        x, two(x, "Equal", rank, cd_onnx_writer_constant(f, NULL, CD_ONNX_F64, dim, 2, place)),
        CD_ONNX_F32);
}

/* (1, 19) double: totals, ratios, work per unit. */
static const char *summary(cd_export *x) {
    static const int64_t others[] = {1, 2, 3, 4};
    const char *ops = x->total[0], *per_block = two(x, "Sub", ops, x->grid);
    const char *const units[] = {per_block, two(x, "Sub", per_block, x->threads),
                                 two(x, "Sub", ops, column(x, x->wide, CD_COL_PARALLEL_PROD)),
                                 two(x, "Sub", ops, column(x, x->wide, CD_COL_VEC_PROD))};
    const char *unit = export_concat(x, units, 4, 1);
    const char *t = export_log2p1(x, export_sum(x, value(x, export_concat(x, x->total, 5, 1)), 0));
    const char *sum =
        export_sum(x, exp2_of(x, with_input(x, "Max", with_input(x, "Min", unit, 60), -60)), 0);
    const char *const all[] = {t,
                               two(x, "Sub", column(x, t, 0), export_columns(x, t, others, 4)),
                               two(x, "Sub", column(x, t, 1), column(x, t, 2)),
                               two(x, "Sub", column(x, t, 3), column(x, t, 4)),
                               with_input(x, "Max", export_over(x, "ReduceMax", unit, 0), -1e3),
                               log2_of(x, with_input(x, "Max", sum, 1e-18))};
    return export_concat(x, all, 6, 1);
}

static const char *n_row(cd_export *x) {
    const int64_t dim[] = {1, 1};
    const char *last = export_over(x, "ReduceMax", x->index, 0);
    return export_cast(x, export_reshape(x, with_input(x, "Add", last, 1), dim, 2), CD_ONNX_F32);
}

static const char *export_program(cd_export *x) {
    const int64_t flat[] = {1, TOP * CD_N_COL};
    if (x->program) return x->program;
    const char *const v[] = {export_reshape(x, two(x, "MatMul", choice(x), x->rows), flat, 2),
                             export_cast(x, summary(x), CD_ONNX_F32), n_row(x)};
    return x->program = export_concat(x, v, 3, 1);
}

/* ---- matrices of trees ---- */
static const char *device_column(cd_export *x, bool each_row) {
    const int64_t dim[] = {1, 1};
    const char *d = export_reshape(x, export_cast(x, x->device, CD_ONNX_F32), dim, 2);
    if (!each_row) return d;
    return two(x, "Add", two(x, "Mul", column(x, x->rows, 0), cd_onnx_writer_float(&x->f, 0)), d);
}

static const char *export_matrix(cd_export *x, cd_tree_input_form form) {
    if (x->matrix[form]) return x->matrix[form];
    const char *v[3] = {x->rows, NULL, device_column(x, form == CD_TREE_INPUT_ROWS)};
    if (form == CD_TREE_INPUT_ROWS) v[1] = export_derived(x);
    else if (form == CD_TREE_INPUT_SUMS) {
        v[0] = export_cast(x, export_sum(x, x->wide, 0), CD_ONNX_F32);
        v[1] = export_over(x, "ReduceMax", x->rows, 0);
    } else {
        const char *const p[] = {export_program(x), v[2]};
        return x->matrix[form] = export_concat(x, p, 2, 1);
    }
    return x->matrix[form] = export_concat(x, v, 3, 1);
}

/* A network as Gemm, LayerNormalization, MatMul, Softmax and pointwise nodes; as
 * learner/nn/encoder.c, net.c and mlp.c run it when predicting. */

typedef struct {
    cd_export *x;
    cd_net_layout net;
    const cd_member *e;
    size_t number; /* of the member */
} net;

static cd_onnx_writer *file(const net *n) { return &n->x->f; }
static const char *two_net(const net *n, const char *op, const char *a, const char *b) {
    return CD_ONNX_WRITER_NODE(file(n), op, a, b);
}
static const char *with_net(const net *n, const char *op, const char *a, float b) {
    return two_net(n, op, a, cd_onnx_writer_float(file(n), b));
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
    const char *cube = two_net(n, "Mul", two_net(n, "Mul", v, v), v),
               *sum = two_net(n, "Add", v, with_net(n, "Mul", cube, 0.044715f));
    return two_net(n, "Mul", v,
                   CD_ONNX_WRITER_NODE(file(n), "Sigmoid",
                                       with_net(n, "Mul", sum, (float)(2 * sqrt(2 / M_PI)))));
}

/* x -> ((x - shift) * scale), cut. */
static const char *scaled(const net *n, const cd_scaler *s, const char *v) {
    v = two_net(n, "Mul", two_net(n, "Sub", v, vector(n, s->shift, s->n)),
                vector(n, s->scale, s->n));
    return with_net(n, "Max", with_net(n, "Min", v, CD_SCALER_CLIP), -CD_SCALER_CLIP);
}

/* ---- stacks ---- */
static const char *batch_norm(const net *n, const cd_mlp_layer *l, const char *v) {
    const char *sd =
        CD_ONNX_WRITER_NODE(file(n), "Sqrt", with_net(n, "Add", param(n, l->var), CD_OPS_EPS));
    v = two_net(n, "Div", two_net(n, "Sub", v, param(n, l->mean)), sd);
    return two_net(n, "Add", two_net(n, "Mul", v, param(n, l->gain)), param(n, l->shift));
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
    const char *qkv = export_reshape(n->x, linear(n, v, l->qkv_w, l->qkv_b), apart, 4);
    cd_onnx_writer_attr_ints(file(n), "perm", (const int64_t[]){1, 2, 0, 3}, 4);
    qkv = CD_ONNX_WRITER_NODE(file(n), "Transpose", qkv); /* (3, heads, n_row, hw) */
    const char *q = with_net(n, "Mul", heads(n, qkv, 0), 1 / sqrtf((float)hw));
    const char *score = two_net(n, "MatMul", q, turned(n, heads(n, qkv, 1), 0, 2, 1));
    cd_onnx_writer_attr_int(file(n), "axis", -1);
    const char *weight = CD_ONNX_WRITER_NODE(file(n), "Softmax", score);
    const char *mixed = turned(n, two_net(n, "MatMul", weight, heads(n, qkv, 2)), 1, 0, 2);
    return linear(n, export_reshape(n->x, mixed, whole, 2), l->o_w, l->o_b);
}

static const char *feed_forward(const net *n, const cd_encoder_layer *l, const char *v) {
    return linear(n, activate(n, linear(n, v, l->w1, l->b1), n->net.enc->act), l->w2, l->b2);
}

static const char *layer(const net *n, const cd_encoder_layer *l, const char *v) {
    if (n->net.enc->pre_norm) {
        v = two_net(n, "Add", attention(n, l, layer_norm(n, v, l->g1, l->s1)), v);
        return two_net(n, "Add", feed_forward(n, l, layer_norm(n, v, l->g2, l->s2)), v);
    }
    v = layer_norm(n, two_net(n, "Add", attention(n, l, v), v), l->g1, l->s1);
    return layer_norm(n, two_net(n, "Add", feed_forward(n, l, v), v), l->g2, l->s2);
}

/* (n_row, d) */
static const char *encoder(const net *n) {
    const cd_encoder *e = n->net.enc;
    const char *v = n->x->rows;
    if (n->net.spec->derived)
        v = export_concat(n->x, (const char *const[]){v, export_derived(n->x)}, 2, 1);
    v = scaled(n, &n->e->scalers.tok, v);
    if (e->project) v = linear(n, v, e->proj_w, e->proj_b);
    if (e->table) {
        const int64_t dim[] = {CD_ENCODER_POSITIONS, (int64_t)e->d};
        const char *table = cd_onnx_writer_constant(file(n), NULL, CD_ONNX_F32, dim, 2, e->table);
        v = two_net(n, "Add", v,
                    two_net(n, "Gather", table, export_cast(n->x, n->x->index, CD_ONNX_I64)));
    }
    for (size_t k = 0; k < e->n; k++) v = layer(n, &e->layer[k], v);
    return e->pre_norm ? layer_norm(n, v, e->last_g, e->last_s) : v;
}

/* ---- program and device ---- */
static const char *program(const net *n) {
    const int64_t dim[] = {1, 1};
    const char *flop = export_reshape(n->x, n->x->flop, dim, 2);
    const char *known =
        CD_ONNX_WRITER_NODE(file(n), "Greater", flop, cd_onnx_writer_double(file(n), 0));
    const char *const v[] = {export_program(n->x),
                             export_cast(n->x, export_log2p1(n->x, flop), CD_ONNX_F32),
                             export_cast(n->x, known, CD_ONNX_F32)};
    return scaled(n, &n->e->scalers.prog, export_concat(n->x, v, 3, 1));
}

static const char *device(const net *n) {
    size_t width;
    const float *vectors = cd_model_device_vector(n->x->m, 0, &width);
    const int64_t dim[] = {(int64_t)cd_model_n_device(n->x->m), (int64_t)width};
    const char *table = cd_onnx_writer_constant(file(n), NULL, CD_ONNX_F32, dim, 2, vectors);
    return scaled(n, &n->e->scalers.dev, two_net(n, "Gather", table, n->x->device));
}

/* ---- heads ---- */
static const char *pooled(const net *n, const char *v) {
    const char *const all[] = {export_over(n->x, "ReduceMean", v, 0),
                               export_over(n->x, "ReduceMax", v, 0), export_sum(n->x, v, 0)};
    return export_concat(n->x, all, 3, 1);
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
        two_net(n, "Min", n->x->index, cd_onnx_writer_double(file(n), (double)(slots - 1)));
    const char *one = two_net(n, "Equal", export_reshape(n->x, of, as_row, 2),
                              cd_onnx_writer_constant(file(n), NULL, CD_ONNX_F64, dim, 2, slot));
    return export_reshape(n->x, two_net(n, "MatMul", export_cast(n->x, one, CD_ONNX_F32), v), flat,
                          2);
}

/* Behind the head: side branches, decoder, the first output. */
static const char *tail(const net *n, const char *v) {
    const cd_net_tail *t = n->net.tail;
    v = stack(n, &t->head, v);
    if (t->dev.n) v = two_net(n, "Add", v, stack(n, &t->dev, device(n)));
    if (t->prog.n) v = two_net(n, "Add", v, stack(n, &t->prog, program(n)));
    v = linear(n, stack(n, &t->decoder, v), t->out_w, t->out_b);
    return export_columns(n->x, v, &(int64_t){0}, 1);
}

/* T z, double (1, 1): ln of the sum over rows of e^(T score). */
static const char *summed(const net *n, const char *score) {
    const cd_net_config *s = n->net.spec;
    if (s->trips) {
        const char *trips =
            scaled(n, &n->e->scalers.trips, export_cast(n->x, export_log_trips(n->x), CD_ONNX_F32));
        score = two_net(n, "Add", score, with_net(n, "Mul", trips, (float)(1 / s->temperature)));
    }
    const char *t = cd_onnx_writer_double(file(n), s->temperature),
               *wide = export_cast(n->x, score, CD_ONNX_F64);
    return two_net(n, "Div", export_over(n->x, "ReduceLogSumExp", two_net(n, "Mul", wide, t), 0),
                   t);
}

/* The graph gives ln seconds for the logarithmic label only; the other transforms have no ONNX
 * operators. */
static cdmpp_status export_net(cd_export *x, const cd_member *e, size_t number, const char **log_s,
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
    if (s->kind == CD_NET_MLP) z = export_cast(x, tail(&n, program(&n)), CD_ONNX_F64);
    else if (s->head == CD_HEAD_SUM) z = summed(&n, tail(&n, encoder(&n)));
    else
        z = export_cast(x,
                        tail(&n, s->head == CD_HEAD_POOL ? pooled(&n, encoder(&n))
                                                         : flattened(&n, encoder(&n))),
                        CD_ONNX_F64);
    z = two_net(&n, "Mul", z, cd_onnx_writer_double(&x->f, e->label->std));
    *log_s = two_net(&n, "Add", z, cd_onnx_writer_double(&x->f, e->label->mean + e->label->centre));
    return CDMPP_OK;
}

/* A booster as TreeEnsembleRegressor of ai.onnx.ml, and its scores as ln seconds. */

/* The attributes of all nodes, one array each. */
typedef struct {
    size_t n_node, n_leaf;
    int64_t *tree, *id, *column, *yes, *no, *missing_yes, *leaf_tree, *leaf_id, *leaf_target;
    const char **mode;
    float *cut, *leaf;
    cd_arena arena;
} table;

static bool start(table *t, size_t n) {
    int64_t **each[] = {&t->tree,        &t->id,        &t->column,  &t->yes,        &t->no,
                        &t->missing_yes, &t->leaf_tree, &t->leaf_id, &t->leaf_target};
    for (size_t k = 0; k < sizeof each / sizeof *each; k++)
        if (!(*each[k] = cd_arena_alloc(&t->arena, n, sizeof **each[k]))) return false;
    t->mode = cd_arena_alloc(&t->arena, n, sizeof *t->mode);
    t->cut = cd_arena_alloc(&t->arena, n, sizeof *t->cut);
    t->leaf = cd_arena_alloc(&t->arena, n, sizeof *t->leaf);
    return t->mode && t->cut && t->leaf;
}

/* Node `from` of the forest, node `id` of tree k. */
static void put(table *t, const cd_tree_inference_node *node, size_t from, size_t root, size_t k) {
    const cd_tree_inference_node *n = &node[from];
    const size_t i = t->n_node++, id = from - root;
    const bool leaf = n->kid[0] == from;
    t->tree[i] = (int64_t)k;
    t->id[i] = (int64_t)id;
    t->column[i] = leaf ? 0 : (int64_t)(n->column & ~CD_TREE_INFERENCE_MISSING_RIGHT);
    t->yes[i] = leaf ? 0 : (int64_t)(n->kid[0] - root);
    t->no[i] = leaf ? 0 : (int64_t)(n->kid[1] - root);
    t->missing_yes[i] = !leaf && !(n->column & CD_TREE_INFERENCE_MISSING_RIGHT);
    t->mode[i] = leaf ? "LEAF" : "BRANCH_LT";
    t->cut[i] = leaf ? 0 : n->cut;
    if (!leaf) return;
    t->leaf_tree[t->n_leaf] = (int64_t)k;
    t->leaf_id[t->n_leaf] = (int64_t)id;
    t->leaf_target[t->n_leaf] = 0;
    t->leaf[t->n_leaf++] = n->cut;
}

/* The names that the operator's definition has. */
static void attributes(cd_onnx_writer *f, const table *t, float base) {
    const size_t n = t->n_node, m = t->n_leaf;
    cd_onnx_writer_attr_ints(f, "nodes_treeids", t->tree, n);
    cd_onnx_writer_attr_ints(f, "nodes_nodeids", t->id, n);
    cd_onnx_writer_attr_ints(f, "nodes_featureids", t->column, n);
    cd_onnx_writer_attr_texts(f, "nodes_modes", t->mode, n);
    cd_onnx_writer_attr_floats(f, "nodes_values", t->cut, n);
    cd_onnx_writer_attr_ints(f, "nodes_truenodeids", t->yes, n);
    cd_onnx_writer_attr_ints(f, "nodes_falsenodeids", t->no, n);
    cd_onnx_writer_attr_ints(f, "nodes_missing_value_tracks_true", t->missing_yes, n);
    cd_onnx_writer_attr_ints(f, "target_treeids", t->leaf_tree, m);
    cd_onnx_writer_attr_ints(f, "target_nodeids", t->leaf_id, m);
    cd_onnx_writer_attr_ints(f, "target_ids", t->leaf_target, m);
    cd_onnx_writer_attr_floats(f, "target_weights", t->leaf, m);
    cd_onnx_writer_attr_floats(f, "base_values", &base, 1);
    cd_onnx_writer_attr_int(f, "n_targets", 1);
    cd_onnx_writer_attr_text(f, "aggregate_function", "SUM");
    cd_onnx_writer_attr_text(f, "post_transform", "NONE");
}

/* Scores of a matrix, double (height, 1). */
static cdmpp_status scores(cd_export *x, const cd_tree_inference_view *forest, const char *matrix,
                           const char **out, cdmpp_err *err) {
    table t = {0};
    const cdmpp_status st = start(&t, forest->n_node + 1)
                                ? CDMPP_OK
                                : CD_FAIL(err, ENOMEM, "table of %zu nodes", forest->n_node);
    for (size_t k = 0; !st && k < forest->n_tree; k++) {
        const size_t end = k + 1 < forest->n_tree ? forest->root[k + 1] : forest->n_node;
        for (size_t i = forest->root[k]; i < end; i++) put(&t, forest->node, i, forest->root[k], k);
    }
    if (!st) {
        attributes(&x->f, &t, forest->base);
        x->f.ml = "ai.onnx.ml";
        const char *score = CD_ONNX_WRITER_NODE(&x->f, "TreeEnsembleRegressor", matrix);
        x->f.ml = NULL;
        *out = export_cast(x, score, CD_ONNX_F64);
    }
    cd_arena_free(&t.arena);
    return st;
}

/* ---- to seconds, as in learner/model/member.c ---- */
static const char *with(cd_export *x, const char *op, const char *a, double b) {
    return CD_ONNX_WRITER_NODE(&x->f, op, a, cd_onnx_writer_double(&x->f, b));
}

static const char *log_sum(cd_export *x, const char *v) {
    return export_over(x, "ReduceLogSumExp", v, 0);
}

/* A member's ln seconds, double (1, 1). Errors: EUNSUPPORTED, ENOMEM.
 *
 * The same formulas as combine() and answer() in learner/model/member.c. */
static cdmpp_status export_trees(cd_export *x, const cd_member *e, const char **log_s,
                                 cdmpp_err *err) {
    const cd_tree_inference *trees = cd_xgb_tree_inference(e->gbt);
    const cd_tree_inference_view forest =
        trees ? cd_tree_inference_view_of(trees) : (cd_tree_inference_view){0};
    const cd_tree_input_form form = cd_member_form(e->kind);
    const char *score, *offset = NULL, *level = NULL;
    if (e->facts != CD_FACTS_USE_NONE)
        return CD_FAIL(err, EUNSUPPORTED,
                       "members %s read facts of loop nests (train.facts); a graph of feature rows "
                       "cannot hold it",
                       cd_member_name(e->kind));
    if (!forest.n_tree)
        return CD_FAIL(err, EUNSUPPORTED, "trees of another kind than numerical regression");
    CD_TRY(scores(x, &forest, export_matrix(x, form), &score, err));
    if (cd_member_has_level(e)) {
        offset = with(x, "Add", with(x, "Mul", export_log_trips(x), e->slope), e->bias);
        level = log_sum(x, offset);
    }
    if (!level) *log_s = with(x, "Add", score, e->bias);
    else if (e->objective == CD_OBJECTIVE_PACK_SUM) {
        const char *p = with(x, "Div", export_sum(x, score, 0), 2 * CD_OBJECTIVE_KNEE);
        *log_s =
            CD_ONNX_WRITER_NODE(&x->f, "Add", with(x, "Add", level, e->shift),
                                with(x, "Mul", CD_ONNX_WRITER_NODE(&x->f, "Asinh", p), -e->scale));
    } else {
        *log_s = log_sum(x, CD_ONNX_WRITER_NODE(&x->f, "Add", score,
                                                form == CD_TREE_INPUT_ROWS ? offset : level));
        if (e->objective == CD_OBJECTIVE_RANK)
            *log_s = with(x, "Add", with(x, "Mul", *log_s, e->scale), e->shift);
    }
    return CDMPP_OK;
}

/* Mean over the members of a kind. */
static cdmpp_status kind(cd_export *x, size_t k, const char **log_s, cdmpp_err *err) {
    size_t n = 0;
    *log_s = NULL;
    for (size_t j = 0; j < cd_model_n_member(x->m); j++) {
        const cd_member *e = cd_model_member(x->m, j);
        const char *one = NULL;
        if (e->kind != cd_model_kind(x->m, k)) continue;
        CD_TRY(e->net ? export_net(x, e, j, &one, err) : export_trees(x, e, &one, err));
        *log_s = *log_s ? CD_ONNX_WRITER_NODE(&x->f, "Add", *log_s, one) : one;
        n++;
    }
    if (!n)
        return CD_FAIL(err, EMODEL, "kind %s has no members",
                       cd_member_name(cd_model_kind(x->m, k)));
    *log_s = with(x, "Div", *log_s, (double)n);
    return CDMPP_OK;
}

static void describe(cd_export *x, const cd_buf *kinds) {
    const cd_model *m = x->m;
    cd_buf b = {0};
    for (size_t i = 0; i < cd_model_n_device(m); i++) {
        cd_buf_puts(&b, i ? "," : "[");
        cd_buf_put_json_str(&b, cd_model_device(m, i), strlen(cd_model_device(m, i)));
    }
    cd_buf_puts(&b, "]");
    cd_onnx_writer_meta(&x->f, "cdmpp.devices", b.p ? b.p : "");
    cd_onnx_writer_meta(&x->f, "cdmpp.kinds", kinds->p ? kinds->p : "");
    cd_onnx_writer_meta(&x->f, "cdmpp.log_s",
                        "weighted mean of kind_log_s, ln seconds, before shift, tilt, quantiles "
                        "and range of the calibration");
    x->f.oom = x->f.oom || b.oom || kinds->oom;
    cd_buf_free(&b);
}

/* "kind_log_s" has the kinds in the order of metadata "cdmpp.kinds". */
static cdmpp_status ensemble(cd_export *x, cd_buf *kinds, cdmpp_err *err) {
    const cd_model *m = x->m;
    const char *sum = NULL, *each[CD_N_MEMBER_KIND];
    const int64_t one[] = {1};
    size_t n = 0;
    for (size_t k = 0; k < cd_model_n_kind(m); k++) {
        const double weight = cd_model_weight(m, k);
        if (!(weight > 0)) continue;
        CD_TRY(kind(x, k, &each[n], err));
        const char *part = with(x, "Mul", each[n], weight);
        sum = sum ? CD_ONNX_WRITER_NODE(&x->f, "Add", sum, part) : part;
        cd_buf_putf(kinds, "%s{\"kind\":\"%s\",\"weight\":%.17g}", n++ ? "," : "[",
                    cd_member_name(cd_model_kind(m, k)), weight);
    }
    cd_buf_puts(kinds, "]");
    if (!sum) return CD_FAIL(err, EMODEL, "no kind has a weight");
    cd_onnx_writer_output(&x->f, "log_s", export_reshape(x, sum, one, 1), CD_ONNX_F64, one, 1);
    const int64_t dim[] = {(int64_t)n};
    cd_onnx_writer_output(&x->f, "kind_log_s",
                          export_reshape(x, export_concat(x, each, n, 0), dim, 1), CD_ONNX_F64, dim,
                          1);
    return CDMPP_OK;
}

cdmpp_status cd_export_onnx(const cd_model *m, cd_buf *out, cdmpp_err *err) {
    cd_buf kinds = {0};
    cd_export x = {.m = m};
    export_begin(&x);
    cdmpp_status st = ensemble(&x, &kinds, err);
    if (!st) {
        describe(&x, &kinds);
        st = cd_onnx_writer_end(&x.f, "cdmpp", out, err);
    }
    cd_buf_free(&kinds);
    cd_onnx_writer_free(&x.f);
    return st;
}
