/* Operators that are computed element by element. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "profiler/network/fusion/fuse_import.h"


static const struct {
    const char *op;
    cd_fop id;
} plain[] = {
    {"Relu", CD_F_RELU}, {"Sigmoid", CD_F_SIGMOID}, {"Tanh", CD_F_TANH}, {"Exp", CD_F_EXP}, {"Log", CD_F_LOG},
    {"Sqrt", CD_F_SQRT}, {"Erf", CD_F_ERF}, {"Neg", CD_F_NEG}, {"Floor", CD_F_FLOOR}, {"Ceil", CD_F_CEIL},
    {"Round", CD_F_ROUND}, {"Sign", CD_F_SIGN}, {"Sin", CD_F_SIN}, {"Cos", CD_F_COS}, {"Tan", CD_F_TAN},
    {"Asin", CD_F_ASIN}, {"Acos", CD_F_ACOS}, {"Atan", CD_F_ATAN}, {"Sinh", CD_F_SINH}, {"Cosh", CD_F_COSH},
    {"Not", CD_F_NOT}, {"IsNaN", CD_F_ISNAN}, {"Sub", CD_F_SUB}, {"Max", CD_F_MAX}, {"Min", CD_F_MIN}, {"Sum", CD_F_ADD},
    {"PRelu", CD_F_PRELU}, {"Equal", CD_F_EQ}, {"Less", CD_F_LT}, {"LessOrEqual", CD_F_LE},
    {"Greater", CD_F_GT}, {"GreaterOrEqual", CD_F_GE}, {"And", CD_F_AND}, {"Or", CD_F_OR},
};

/* Of any number of operands: from the left. */
bool cd_fim_plain(cd_fim *m) {
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (strcmp(plain[i].op, m->n->op)) continue;
        uint32_t x = cd_fim_in(m, 0);
        if (plain[i].id < CD_F_ADD) x = cd_fuse_unary(m->f, plain[i].id, x, 0, 0);
        for (uint32_t k = 1; plain[i].id >= CD_F_ADD && k < m->n->n_in; k++) x = cd_fuse_binary(m->f, plain[i].id, x, cd_fim_in(m, k));
        cd_fim_out(m, 0, x);
        return true;
    }
    return false;
}

static uint32_t scalar(cd_fim *m, uint32_t like, double v) { return cd_fuse_const(m->f, m->f->node[like].dtype, v); }
static uint32_t binary_s(cd_fim *m, cd_fop op, uint32_t x, double v) { return cd_fuse_binary(m->f, op, x, scalar(m, x, v)); }

static void add(cd_fim *m) {
    const uint32_t x = cd_fim_in(m, 0), y = cd_fim_in(m, 1);
    cd_fim_out(m, 0, m->f->node[x].is_const ? cd_fim_shift(m, y, x) : cd_fim_shift(m, x, y));
}

static void mul(cd_fim *m) {
    const uint32_t x = cd_fim_in(m, 0), y = cd_fim_in(m, 1);
    cd_fim_out(m, 0, m->f->node[x].is_const && !m->f->node[y].is_const ? cd_fim_scale(m, y, x) : cd_fim_scale(m, x, y));
}

static void divide(cd_fim *m) {
    const uint32_t x = cd_fim_in(m, 0);
    cd_fim_out(m, 0, cd_fuse_binary(m->f, cd_dtype_is_float(m->f->node[x].dtype) ? CD_F_DIV : CD_F_IDIV, x, cd_fim_in(m, 1)));
}

static void modulo(cd_fim *m) {
    const uint32_t x = cd_fim_in(m, 0);
    const bool c = cd_gnode_int(m->n, "fmod", 0) != 0;
    const cd_fop op = cd_dtype_is_float(m->f->node[x].dtype) ? CD_F_FMOD : c ? CD_F_IMOD : CD_F_MOD;
    cd_fim_out(m, 0, cd_fuse_binary(m->f, op, x, cd_fim_in(m, 1)));
}

/* x^2 and x^0.5 as the operators that mean the same. */
static void power(cd_fim *m) {
    const uint32_t x = cd_fim_in(m, 0);
    double e;
    if (cd_fim_number(m, 1, &e) && cd_fim_tensor(m, 1)->shape.rank <= cd_fim_shape(m, x)->rank && e == 2)
        cd_fim_out(m, 0, cd_fuse_binary(m->f, CD_F_MUL, x, x));
    else if (cd_fim_number(m, 1, &e) && e == 0.5)
        cd_fim_out(m, 0, cd_fuse_unary(m->f, CD_F_SQRT, x, 0, 0));
    else if (!cd_dtype_is_float(m->f->node[x].dtype))
        m->why = "powers of integers have no compute definition";
    else
        cd_fim_out(m, 0, cd_fuse_binary(m->f, CD_F_POW, x, cd_fuse_cast(m->f, cd_fim_in(m, 1), m->f->node[x].dtype)));
}

static void absolute(cd_fim *m) {
    const uint32_t x = cd_fim_in(m, 0);
    cd_fim_out(m, 0, cd_fuse_unary(m->f, cd_dtype_is_float(m->f->node[x].dtype) ? CD_F_ABS : CD_F_IABS, x, 0, 0));
}

static void reciprocal(cd_fim *m) {
    const uint32_t x = cd_fim_in(m, 0);
    cd_fim_out(m, 0, cd_fuse_binary(m->f, CD_F_DIV, scalar(m, x, 1), x));
}

static void mean(cd_fim *m) {
    uint32_t x = cd_fim_in(m, 0);
    for (uint32_t k = 1; k < m->n->n_in; k++) x = cd_fuse_binary(m->f, CD_F_ADD, x, cd_fim_in(m, k));
    cd_fim_out(m, 0, binary_s(m, CD_F_DIV, x, m->n->n_in));
}

static void clip(cd_fim *m) {
    const uint32_t x = cd_fim_in(m, 0);
    double lo = cd_gnode_float(m->n, "min", -FLT_MAX), hi = cd_gnode_float(m->n, "max", FLT_MAX);
    const bool known_lo = !cd_fim_has(m, 1) || cd_fim_number(m, 1, &lo), known_hi = !cd_fim_has(m, 2) || cd_fim_number(m, 2, &hi);
    if (known_lo && known_hi && lo == 0 && hi >= (double)FLT_MAX) {
        cd_fim_out(m, 0, cd_fuse_unary(m->f, CD_F_RELU, x, 0, 0));
    } else if (known_lo && known_hi) {
        cd_fim_out(m, 0, cd_fuse_unary(m->f, CD_F_CLIP, x, lo, hi));
    } else {
        uint32_t y = x;
        if (cd_fim_has(m, 1)) y = cd_fuse_binary(m->f, CD_F_MAX, y, cd_fim_in(m, 1));
        if (cd_fim_has(m, 2)) y = cd_fuse_binary(m->f, CD_F_MIN, y, cd_fim_in(m, 2));
        cd_fim_out(m, 0, y);
    }
}

/* clip(alpha*x + beta, 0, 1); of 1/6 and 1/2 as the networks' authors write it: clip(x + 3, 0, 6)/6. */
static uint32_t hard_sigmoid(cd_fim *m, uint32_t x, double alpha, double beta) {
    if (fabs(alpha - 1.0 / 6) < 1e-6 && beta == 0.5) return binary_s(m, CD_F_DIV, cd_fuse_unary(m->f, CD_F_CLIP, cd_fim_shift(m, x, scalar(m, x, 3)), 0, 6), 6);
    return cd_fuse_unary(m->f, CD_F_CLIP, binary_s(m, CD_F_ADD, binary_s(m, CD_F_MUL, x, alpha), beta), 0, 1);
}

static void hardsigmoid(cd_fim *m) {
    cd_fim_out(m, 0, hard_sigmoid(m, cd_fim_in(m, 0), cd_gnode_float(m->n, "alpha", 0.2), cd_gnode_float(m->n, "beta", 0.5)));
}

static void hardswish(cd_fim *m) {
    const uint32_t x = cd_fim_in(m, 0);
    if (!cd_fim_share(m, x)) return;
    cd_fim_out(m, 0, cd_fuse_binary(m->f, CD_F_MUL, x, hard_sigmoid(m, x, 1.0 / 6, 0.5)));
}

static void leaky(cd_fim *m) { cd_fim_out(m, 0, cd_fuse_unary(m->f, CD_F_LEAKY, cd_fim_in(m, 0), cd_gnode_float(m->n, "alpha", 0.01), 0)); }
static void elu(cd_fim *m) { cd_fim_out(m, 0, cd_fuse_unary(m->f, CD_F_ELU, cd_fim_in(m, 0), cd_gnode_float(m->n, "alpha", 1), 1)); }

static void selu(cd_fim *m) {
    const double gamma = cd_gnode_float(m->n, "gamma", 1.0507009873554805);
    cd_fim_out(m, 0, cd_fuse_unary(m->f, CD_F_ELU, cd_fim_in(m, 0), gamma * cd_gnode_float(m->n, "alpha", 1.6732632423543772), gamma));
}

/* log(1 + exp(x)) */
static uint32_t softplus_of(cd_fim *m, uint32_t x) {
    return cd_fuse_unary(m->f, CD_F_LOG, binary_s(m, CD_F_ADD, cd_fuse_unary(m->f, CD_F_EXP, x, 0, 0), 1), 0, 0);
}

static void softplus(cd_fim *m) { cd_fim_out(m, 0, softplus_of(m, cd_fim_in(m, 0))); }

static void mish(cd_fim *m) {
    const uint32_t x = cd_fim_in(m, 0);
    cd_fim_out(m, 0, cd_fuse_binary(m->f, CD_F_MUL, x, cd_fuse_unary(m->f, CD_F_TANH, softplus_of(m, x), 0, 0)));
}

static void softsign(cd_fim *m) {
    const uint32_t x = cd_fim_in(m, 0);
    cd_fim_out(m, 0, cd_fuse_binary(m->f, CD_F_DIV, x, binary_s(m, CD_F_ADD, cd_fuse_unary(m->f, CD_F_ABS, x, 0, 0), 1)));
}

/* x * 0.5 * (1 + erf(x / sqrt(2))), or with tanh(sqrt(2/pi) * (x + 0.044715 x^3)) */
static void gelu(cd_fim *m) {
    const uint32_t x = cd_fim_in(m, 0);
    const cd_gattr *how = cd_gnode_attr(m->n, "approximate");
    uint32_t y;
    if (how && how->kind == CD_GATTR_STR && !strcmp(how->s, "tanh")) {
        const uint32_t cube = cd_fuse_binary(m->f, CD_F_MUL, cd_fuse_binary(m->f, CD_F_MUL, x, x), x);
        const uint32_t sum = cd_fuse_binary(m->f, CD_F_ADD, x, binary_s(m, CD_F_MUL, cube, 0.044715));
        y = cd_fuse_unary(m->f, CD_F_TANH, binary_s(m, CD_F_MUL, sum, 0.7978845608028654), 0, 0);
    } else {
        y = cd_fuse_unary(m->f, CD_F_ERF, binary_s(m, CD_F_DIV, x, 1.4142135623730951), 0, 0);
    }
    cd_fim_out(m, 0, binary_s(m, CD_F_MUL, cd_fuse_binary(m->f, CD_F_MUL, x, binary_s(m, CD_F_ADD, y, 1)), 0.5));
}

static void cast(cd_fim *m) { cd_fim_out(m, 0, cd_fuse_cast(m->f, cd_fim_in(m, 0), m->g->tensor[m->n->out[0]].dtype)); }
static void where(cd_fim *m) {
    const uint32_t c = cd_fim_in(m, 0), x = cd_fim_in(m, 1), y = cd_fim_in(m, 2);
    cd_fim_out(m, 0, cd_fuse_where(m->f, c, x, y));
}

const cd_fim_rule cd_fim_rules_elem[] = {
    {"Add", add}, {"Mul", mul}, {"Div", divide}, {"Mod", modulo}, {"Pow", power}, {"Abs", absolute}, {"Reciprocal", reciprocal},
    {"Mean", mean}, {"Clip", clip}, {"HardSigmoid", hardsigmoid}, {"HardSwish", hardswish}, {"LeakyRelu", leaky}, {"Elu", elu},
    {"Selu", selu}, {"Softplus", softplus}, {"Mish", mish}, {"Softsign", softsign}, {"Gelu", gelu},
    {"Cast", cast}, {"CastLike", cast}, {"Where", where}, {NULL, NULL},
};
