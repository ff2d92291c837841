/* Operators that are computed element by element: those that are one expression are in the table
 * `plain`, the others are put together from several nodes, as TVM's ONNX frontend does it. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "profiler/network/fusion/fuse_import_internal.h"

static const struct {
    const char *op;
    cd_fuse_op id;
} plain[] = {
    {"Relu", CD_FUSE_OP_RELU},   {"Sigmoid", CD_FUSE_OP_SIGMOID},   {"Tanh", CD_FUSE_OP_TANH},
    {"Exp", CD_FUSE_OP_EXP},     {"Log", CD_FUSE_OP_LOG},           {"Sqrt", CD_FUSE_OP_SQRT},
    {"Erf", CD_FUSE_OP_ERF},     {"Neg", CD_FUSE_OP_NEG},           {"Floor", CD_FUSE_OP_FLOOR},
    {"Ceil", CD_FUSE_OP_CEIL},   {"Round", CD_FUSE_OP_ROUND},       {"Sign", CD_FUSE_OP_SIGN},
    {"Sin", CD_FUSE_OP_SIN},     {"Cos", CD_FUSE_OP_COS},           {"Tan", CD_FUSE_OP_TAN},
    {"Asin", CD_FUSE_OP_ASIN},   {"Acos", CD_FUSE_OP_ACOS},         {"Atan", CD_FUSE_OP_ATAN},
    {"Sinh", CD_FUSE_OP_SINH},   {"Cosh", CD_FUSE_OP_COSH},         {"Not", CD_FUSE_OP_NOT},
    {"IsNaN", CD_FUSE_OP_ISNAN}, {"Sub", CD_FUSE_OP_SUB},           {"Max", CD_FUSE_OP_MAX},
    {"Min", CD_FUSE_OP_MIN},     {"Sum", CD_FUSE_OP_ADD},           {"PRelu", CD_FUSE_OP_PRELU},
    {"Equal", CD_FUSE_OP_EQ},    {"Less", CD_FUSE_OP_LT},           {"LessOrEqual", CD_FUSE_OP_LE},
    {"Greater", CD_FUSE_OP_GT},  {"GreaterOrEqual", CD_FUSE_OP_GE}, {"And", CD_FUSE_OP_AND},
    {"Or", CD_FUSE_OP_OR},
};

/* Operators from ADD on have two operands; ONNX allows more for some. */
bool cd_fuse_import_elementwise(cd_fuse_importer *m) {
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (strcmp(plain[i].op, m->n->op)) continue;
        uint32_t x = cd_fuse_import_input(m, 0);
        if (plain[i].id < CD_FUSE_OP_ADD) x = cd_fuse_unary(m->f, plain[i].id, x, 0, 0);
        for (uint32_t k = 1; plain[i].id >= CD_FUSE_OP_ADD && k < m->n->n_in; k++)
            x = cd_fuse_binary(m->f, plain[i].id, x, cd_fuse_import_input(m, k));
        cd_fuse_import_output(m, 0, x);
        return true;
    }
    return false;
}

static uint32_t scalar(cd_fuse_importer *m, uint32_t like, double v) {
    return cd_fuse_const(m->f, m->f->node[like].dtype, v);
}
static uint32_t binary_s(cd_fuse_importer *m, cd_fuse_op op, uint32_t x, double v) {
    return cd_fuse_binary(m->f, op, x, scalar(m, x, v));
}

static void add(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0), y = cd_fuse_import_input(m, 1);
    cd_fuse_import_output(m, 0,
                          m->f->node[x].is_const ? cd_fuse_import_shift(m, y, x)
                                                 : cd_fuse_import_shift(m, x, y));
}

static void mul(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0), y = cd_fuse_import_input(m, 1);
    cd_fuse_import_output(m, 0,
                          m->f->node[x].is_const && !m->f->node[y].is_const
                              ? cd_fuse_import_scale(m, y, x)
                              : cd_fuse_import_scale(m, x, y));
}

static void divide(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    cd_fuse_import_output(
        m, 0,
        cd_fuse_binary(
            m->f, cd_expr_dtype_is_float(m->f->node[x].dtype) ? CD_FUSE_OP_DIV : CD_FUSE_OP_IDIV, x,
            cd_fuse_import_input(m, 1)));
}

static void modulo(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    const bool c = cd_graph_node_int(m->n, "fmod", 0) != 0;
    const cd_fuse_op op = cd_expr_dtype_is_float(m->f->node[x].dtype) ? CD_FUSE_OP_FMOD
                          : c                                         ? CD_FUSE_OP_IMOD
                                                                      : CD_FUSE_OP_MOD;
    cd_fuse_import_output(m, 0, cd_fuse_binary(m->f, op, x, cd_fuse_import_input(m, 1)));
}

/* x^2 and x^0.5 as the operators that mean the same. */
static void power(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    double e;
    if (cd_fuse_import_number(m, 1, &e) &&
        cd_fuse_import_tensor(m, 1)->shape.rank <= cd_fuse_import_shape(m, x)->rank && e == 2)
        cd_fuse_import_output(m, 0, cd_fuse_binary(m->f, CD_FUSE_OP_MUL, x, x));
    else if (cd_fuse_import_number(m, 1, &e) && e == 0.5)
        cd_fuse_import_output(m, 0, cd_fuse_unary(m->f, CD_FUSE_OP_SQRT, x, 0, 0));
    else if (!cd_expr_dtype_is_float(m->f->node[x].dtype))
        m->why = "powers of integers have no compute definition";
    else
        cd_fuse_import_output(
            m, 0,
            cd_fuse_binary(m->f, CD_FUSE_OP_POW, x,
                           cd_fuse_cast(m->f, cd_fuse_import_input(m, 1), m->f->node[x].dtype)));
}

static void absolute(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    cd_fuse_import_output(
        m, 0,
        cd_fuse_unary(
            m->f, cd_expr_dtype_is_float(m->f->node[x].dtype) ? CD_FUSE_OP_ABS : CD_FUSE_OP_IABS, x,
            0, 0));
}

static void reciprocal(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    cd_fuse_import_output(m, 0, cd_fuse_binary(m->f, CD_FUSE_OP_DIV, scalar(m, x, 1), x));
}

static void mean(cd_fuse_importer *m) {
    uint32_t x = cd_fuse_import_input(m, 0);
    for (uint32_t k = 1; k < m->n->n_in; k++)
        x = cd_fuse_binary(m->f, CD_FUSE_OP_ADD, x, cd_fuse_import_input(m, k));
    cd_fuse_import_output(m, 0, binary_s(m, CD_FUSE_OP_DIV, x, m->n->n_in));
}

/* The largest number of a type of reals: the bound of Clip that is left out. */
static double most_of(cd_dtype t) {
    if (cd_expr_dtype_kind(t) == CD_T_BFLOAT) return 3.3895313892515355e38;
    return cd_expr_dtype_bits(t) == 16   ? 65504.0
           : cd_expr_dtype_bits(t) == 64 ? DBL_MAX
                                         : (double)FLT_MAX;
}

/* Of integers a bound that is left out bounds nothing: without any, short ones are clipped to all
 * that their type has, which a program can write. */
static void clip_integers(cd_fuse_importer *m) {
    static const char *const name[] = {"min", "max"};
    uint32_t y = cd_fuse_import_input(m, 0);
    const cd_dtype t = m->f->node[y].dtype;
    const bool none = !cd_fuse_import_has(m, 1) && !cd_fuse_import_has(m, 2) &&
                      !cd_graph_node_attr(m->n, "min") && !cd_graph_node_attr(m->n, "max");
    const double half = ldexp(1, (int)cd_expr_dtype_bits(t) - 1);
    if (none && cd_expr_dtype_bits(t) < 32) {
        const bool is_unsigned = cd_expr_dtype_kind(t) == CD_T_UINT;
        cd_fuse_import_output(m, 0,
                              cd_fuse_unary(m->f, CD_FUSE_OP_CLIP, y, is_unsigned ? 0 : -half,
                                            is_unsigned ? 2 * half - 1 : half - 1));
        return;
    }
    for (uint32_t k = 0; k < 2; k++) {
        const cd_fuse_op op = k ? CD_FUSE_OP_MIN : CD_FUSE_OP_MAX;
        double v = cd_graph_node_float(m->n, name[k], 0);
        if (cd_fuse_import_number(m, k + 1, &v) || cd_graph_node_attr(m->n, name[k]))
            y = binary_s(m, op, y, v);
        else if (cd_fuse_import_has(m, k + 1))
            y = cd_fuse_binary(m->f, op, y, cd_fuse_import_input(m, k + 1));
    }
    cd_fuse_import_output(m, 0, y);
}

/* max(x, 0) is Relu; known bounds are one node; bounds that are computed are two. Where the lower
 * bound is above the upper one, the upper one wins. */
static void clip(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    const double most = most_of(m->f->node[x].dtype);
    double lo = cd_graph_node_float(m->n, "min", -most),
           hi = cd_graph_node_float(m->n, "max", most);
    if (!cd_expr_dtype_is_float(m->f->node[x].dtype)) {
        clip_integers(m);
        return;
    }
    const bool known_lo = !cd_fuse_import_has(m, 1) || cd_fuse_import_number(m, 1, &lo),
               known_hi = !cd_fuse_import_has(m, 2) || cd_fuse_import_number(m, 2, &hi);
    if (known_lo && known_hi && lo > hi) lo = hi;
    if (known_lo && known_hi && lo == 0 && hi >= most) {
        cd_fuse_import_output(m, 0, cd_fuse_unary(m->f, CD_FUSE_OP_RELU, x, 0, 0));
    } else if (known_lo && known_hi) {
        cd_fuse_import_output(m, 0, cd_fuse_unary(m->f, CD_FUSE_OP_CLIP, x, lo, hi));
    } else {
        uint32_t y = x;
        if (cd_fuse_import_has(m, 1))
            y = cd_fuse_binary(m->f, CD_FUSE_OP_MAX, y, cd_fuse_import_input(m, 1));
        if (cd_fuse_import_has(m, 2))
            y = cd_fuse_binary(m->f, CD_FUSE_OP_MIN, y, cd_fuse_import_input(m, 2));
        cd_fuse_import_output(m, 0, y);
    }
}

/* clip(alpha*x + beta, 0, 1); of 1/6 and 1/2 as the networks' authors write it: clip(x + 3, 0,
 * 6)/6. */
static uint32_t hard_sigmoid(cd_fuse_importer *m, uint32_t x, double alpha, double beta) {
    if (fabs(alpha - 1.0 / 6) < 1e-6 && beta == 0.5)
        return binary_s(
            m, CD_FUSE_OP_DIV,
            cd_fuse_unary(m->f, CD_FUSE_OP_CLIP, cd_fuse_import_shift(m, x, scalar(m, x, 3)), 0, 6),
            6);
    return cd_fuse_unary(m->f, CD_FUSE_OP_CLIP,
                         binary_s(m, CD_FUSE_OP_ADD, binary_s(m, CD_FUSE_OP_MUL, x, alpha), beta),
                         0, 1);
}

static void hardsigmoid(cd_fuse_importer *m) {
    cd_fuse_import_output(m, 0,
                          hard_sigmoid(m, cd_fuse_import_input(m, 0),
                                       cd_graph_node_float(m->n, "alpha", 0.2),
                                       cd_graph_node_float(m->n, "beta", 0.5)));
}

static void hardswish(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    if (!cd_fuse_import_mark_shared(m, x)) return;
    cd_fuse_import_output(
        m, 0, cd_fuse_binary(m->f, CD_FUSE_OP_MUL, x, hard_sigmoid(m, x, 1.0 / 6, 0.5)));
}

static void leaky(cd_fuse_importer *m) {
    cd_fuse_import_output(m, 0,
                          cd_fuse_unary(m->f, CD_FUSE_OP_LEAKY, cd_fuse_import_input(m, 0),
                                        cd_graph_node_float(m->n, "alpha", 0.01), 0));
}
static void elu(cd_fuse_importer *m) {
    cd_fuse_import_output(m, 0,
                          cd_fuse_unary(m->f, CD_FUSE_OP_ELU, cd_fuse_import_input(m, 0),
                                        cd_graph_node_float(m->n, "alpha", 1), 1));
}

static void selu(cd_fuse_importer *m) {
    const double gamma = cd_graph_node_float(m->n, "gamma", 1.0507009873554805);
    cd_fuse_import_output(
        m, 0,
        cd_fuse_unary(m->f, CD_FUSE_OP_ELU, cd_fuse_import_input(m, 0),
                      gamma * cd_graph_node_float(m->n, "alpha", 1.6732632423543772), gamma));
}

/* log(1 + exp(x)) */
static uint32_t softplus_of(cd_fuse_importer *m, uint32_t x) {
    return cd_fuse_unary(
        m->f, CD_FUSE_OP_LOG,
        binary_s(m, CD_FUSE_OP_ADD, cd_fuse_unary(m->f, CD_FUSE_OP_EXP, x, 0, 0), 1), 0, 0);
}

static void softplus(cd_fuse_importer *m) {
    cd_fuse_import_output(m, 0, softplus_of(m, cd_fuse_import_input(m, 0)));
}

static void mish(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    cd_fuse_import_output(
        m, 0,
        cd_fuse_binary(m->f, CD_FUSE_OP_MUL, x,
                       cd_fuse_unary(m->f, CD_FUSE_OP_TANH, softplus_of(m, x), 0, 0)));
}

static void softsign(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    cd_fuse_import_output(
        m, 0,
        cd_fuse_binary(
            m->f, CD_FUSE_OP_DIV, x,
            binary_s(m, CD_FUSE_OP_ADD, cd_fuse_unary(m->f, CD_FUSE_OP_ABS, x, 0, 0), 1)));
}

/* x * 0.5 * (1 + erf(x / sqrt(2))), or with tanh(sqrt(2/pi) * (x + 0.044715 x^3)) */
static void gelu(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    const cd_graph_attr *how = cd_graph_node_attr(m->n, "approximate");
    uint32_t y;
    if (how && how->kind == CD_GRAPH_ATTR_STR && !strcmp(how->s, "tanh")) {
        const uint32_t cube =
            cd_fuse_binary(m->f, CD_FUSE_OP_MUL, cd_fuse_binary(m->f, CD_FUSE_OP_MUL, x, x), x);
        const uint32_t sum =
            cd_fuse_binary(m->f, CD_FUSE_OP_ADD, x, binary_s(m, CD_FUSE_OP_MUL, cube, 0.044715));
        y = cd_fuse_unary(m->f, CD_FUSE_OP_TANH,
                          binary_s(m, CD_FUSE_OP_MUL, sum, 0.7978845608028654), 0, 0);
    } else {
        y = cd_fuse_unary(m->f, CD_FUSE_OP_ERF, binary_s(m, CD_FUSE_OP_DIV, x, 1.4142135623730951),
                          0, 0);
    }
    cd_fuse_import_output(
        m, 0,
        binary_s(m, CD_FUSE_OP_MUL,
                 cd_fuse_binary(m->f, CD_FUSE_OP_MUL, x, binary_s(m, CD_FUSE_OP_ADD, y, 1)), 0.5));
}

static void cast(cd_fuse_importer *m) {
    cd_fuse_import_output(
        m, 0, cd_fuse_cast(m->f, cd_fuse_import_input(m, 0), m->g->tensor[m->n->out[0]].dtype));
}
static void where(cd_fuse_importer *m) {
    const uint32_t c = cd_fuse_import_input(m, 0), x = cd_fuse_import_input(m, 1),
                   y = cd_fuse_import_input(m, 2);
    cd_fuse_import_output(m, 0, cd_fuse_where(m->f, c, x, y));
}

const cd_fuse_import_rule cd_fuse_import_rules_elementwise[] = {
    {"Add", add},
    {"Mul", mul},
    {"Div", divide},
    {"Mod", modulo},
    {"Pow", power},
    {"Abs", absolute},
    {"Reciprocal", reciprocal},
    {"Mean", mean},
    {"Clip", clip},
    {"HardSigmoid", hardsigmoid},
    {"HardSwish", hardswish},
    {"LeakyRelu", leaky},
    {"Elu", elu},
    {"Selu", selu},
    {"Softplus", softplus},
    {"Mish", mish},
    {"Softsign", softsign},
    {"Gelu", gelu},
    {"Cast", cast},
    {"CastLike", cast},
    {"Where", where},
    {NULL, NULL},
};
