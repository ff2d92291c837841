/* Reductions, arg reductions and softmax, in the stages that TOPI uses. */
#include <float.h>
#include <stdio.h>

#include "profiler/network/compute/compute_internal.h"

/* ---- softmax over dimension `axis` ---- */

typedef struct soft {
    cd_graph_shape reduced;
    uint32_t axis;
} soft;

static soft soft_of(const cd_fuse_node *n) {
    soft s = {.axis = (uint32_t)n->a.axis};
    for (uint32_t d = 0; d < n->shape.rank; d++)
        if (d != s.axis) s.reduced.dim[s.reduced.rank++] = n->shape.dim[d];
    return s;
}

/* Element of x for the reduced position, k along the axis. */
static void along(const cd_fuse_node *n, const soft *s, char (*ix)[CD_COMPUTE_INDEX_SIZE]) {
    for (uint32_t d = 0, r = 0; d < n->shape.rank; d++) {
        if (d == s->axis) cd_compute_index_format(ix[d], "k");
        else cd_compute_index_format(ix[d], "i%u", r++);
    }
}

/* Reduced element for the full position. */
static void across(const cd_fuse_node *n, const soft *s, char (*ix)[CD_COMPUTE_INDEX_SIZE]) {
    for (uint32_t d = 0, r = 0; d < n->shape.rank; d++)
        if (d != s->axis) cd_compute_index_format(ix[r++], "i%u", d);
}

/* The reduction of x, or of exp(x - less). */
static uint32_t over(cd_te_compute *c, const cd_fuse_node *n, const soft *s, uint32_t x,
                     uint32_t less, bool exps, const char *name, const char *how) {
    char full[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE],
        own[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE];
    cd_compute_begin_axes(c, "i", &s->reduced);
    cd_compute_add_reduce_axis(c, "k", n->shape.dim[s->axis]);
    along(n, s, full);
    for (uint32_t d = 0; d < s->reduced.rank; d++) cd_compute_index_format(own[d], "i%u", d);
    if (exps) cd_compute_put(c, "exp(");
    cd_compute_load(c, x, full);
    if (exps) {
        cd_compute_put(c, " - ");
        cd_compute_load(c, less, own);
        cd_compute_put(c, ")");
    }
    return cd_compute_end(
        c, name, n->op == CD_FUSE_OP_SOFTMAX ? "softmax_output" : "log_softmax_output", how);
}

/* Four stages: maximum, exponential, sum, quotient. The maximum keeps the exponential finite. */
static uint32_t softmax(cd_te_compute *c, const cd_fuse_node *n, const soft *s, uint32_t x) {
    char red[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE];
    const uint32_t most = over(c, n, s, x, 0, false, "T_softmax_maxelem", "\"max\"");
    across(n, s, red);
    cd_compute_begin_axes(c, "i", &n->shape);
    cd_compute_put(c, "exp(");
    cd_compute_load_at(c, x, "i", &n->shape);
    cd_compute_put(c, " - ");
    cd_compute_load(c, most, red);
    cd_compute_put(c, ")");
    const uint32_t e = cd_compute_end(c, "T_softmax_exp", "softmax_output", NULL);
    const uint32_t sum = over(c, n, s, e, 0, false, "T_softmax_expsum", "\"sum\"");
    cd_compute_begin_axes(c, "i", &n->shape);
    cd_compute_load_at(c, e, "i", &n->shape);
    cd_compute_put(c, "/");
    cd_compute_load(c, sum, red);
    return cd_compute_end(c, "T_softmax_norm", "softmax_output", NULL);
}

/* Three stages: maximum, sum of exponentials, x - maximum - log(sum). */
static uint32_t log_softmax(cd_te_compute *c, const cd_fuse_node *n, const soft *s, uint32_t x) {
    char red[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE];
    const uint32_t most = over(c, n, s, x, 0, false, "compute", "\"max\"");
    const uint32_t sum = over(c, n, s, x, most, true, "compute", "\"sum\"");
    across(n, s, red);
    cd_compute_begin_axes(c, "i", &n->shape);
    cd_compute_load_at(c, x, "i", &n->shape);
    cd_compute_put(c, " - ");
    cd_compute_load(c, most, red);
    cd_compute_put(c, " - log(");
    cd_compute_load(c, sum, red);
    cd_compute_put(c, ")");
    return cd_compute_end(c, "compute", "log_softmax_output", NULL);
}

uint32_t cd_te_compute_softmax(cd_te_compute *c, const cd_fuse_node *n) {
    const soft s = soft_of(n);
    const uint32_t x = cd_compute_operand(c, n, 0);
    return n->op == CD_FUSE_OP_SOFTMAX ? softmax(c, n, &s, x) : log_softmax(c, n, &s, x);
}

/* ---- reductions: TOPI names them after what they read ---- */

static bool gone(const cd_fuse_node *n, uint32_t d) {
    for (uint32_t i = 0; i < n->a.n; i++)
        if (n->a.v[i] == d) return true;
    return false;
}

/* Axes and reduce axes of the open stage; indices of the operand. */
static void positions(cd_te_compute *c, const cd_fuse_node *n, const cd_graph_shape *in,
                      char (*ix)[CD_COMPUTE_INDEX_SIZE]) {
    cd_compute_add_axes(c, "ax", &n->shape);
    for (uint32_t d = 0, o = 0; d < in->rank; d++) {
        const bool out = gone(n, d);
        cd_compute_index_format(ix[d], out ? "k%u" : "ax%u", out ? d : o);
        if (out) cd_compute_add_reduce_axis(c, ix[d], in->dim[d]);
        if (!out || n->a.keepdims) o++;
    }
}

/* TOPI names the stage after the one that it reads: NAME_red. A mean is a sum and a division. */
uint32_t cd_te_compute_reduce(cd_te_compute *c, const cd_fuse_node *n) {
    static const char *const how[] = {
        "\"sum\"", "\"sum\"", "\"max\"", "\"min\"",
        "{\"lhs\": [\"x\"], \"rhs\": [\"y\"], \"result\": [\"x*y\"], \"identity\": [\"1\"]}"};
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE], name[CD_COMPUTE_INDEX_SIZE];
    const uint32_t x = cd_compute_operand(c, n, 0);
    const cd_graph_shape *in = &c->f->node[n->in[0]].shape;
    if (c->st) return 0;
    cd_compute_index_format(name, "%s_red", c->stage[x].name);
    cd_compute_begin(c);
    positions(c, n, in, ix);
    cd_compute_load(c, x, ix);
    const uint32_t y = cd_compute_end(c, name, "comm_reduce", how[n->a.mode]);
    if (n->a.mode != CD_FUSE_REDUCE_MEAN) return y;
    cd_compute_begin_axes(c, "ax", &n->shape);
    cd_compute_load_at(c, y, "ax", &n->shape);
    cd_compute_put(c, "/");
    int64_t count = 1;
    for (uint32_t i = 0; i < n->a.n; i++) count *= in->dim[n->a.v[i]];
    cd_compute_put_literal(c, (double)count, n->dtype);
    return cd_compute_end(c, "T_divide", "elemwise", NULL);
}

/* The pair (position, value), then the position. Of equal values the first. */
uint32_t cd_te_compute_arg(cd_te_compute *c, const cd_fuse_node *n) {
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE], how[512], type[16];
    const uint32_t x = cd_compute_operand(c, n, 0);
    const cd_fuse_node *from = &c->f->node[n->in[0]];
    cd_fuse_node over_axis = *n;
    over_axis.a.n = 1;
    over_axis.a.v[0] = n->a.axis;
    if (!cd_expr_dtype_is_float(from->dtype))
        return cd_compute_fail(c, "the place of the largest integer has no compute definition");
    const char *sign = n->a.is_max ? ">" : "<",
               *t = cd_expr_dtype_format(from->dtype, type, sizeof type);
    snprintf(how, sizeof how,
             "{\"lhs\": [\"x0\", \"x1\"], \"rhs\": [\"y0\", \"y1\"], \"result\": [\"select(x1 %s "
             "y1 || x1 == y1 && x0 < y0, x0, y0)\", "
             "\"select(x1 %s y1, x1, y1)\"], \"identity\": [\"-1:int32\", \"%s%.9e:%s\"]}",
             sign, sign, n->a.is_max ? "-" : "", (double)FLT_MAX, t);
    cd_compute_begin(c);
    positions(c, &over_axis, &from->shape, ix);
    cd_compute_put(c, "[\"k%u\", \"", (unsigned)n->a.axis);
    cd_compute_load(c, x, ix);
    cd_compute_put(c, "\"]");
    const uint32_t pair =
        cd_compute_end(c, n->a.is_max ? "argmax" : "argmin", "comm_reduce_idx", how);
    cd_compute_begin_axes(c, "ax", &n->shape);
    cd_compute_load_first_at(c, pair, "ax", &n->shape);
    return cd_compute_end(c, "T_cast", "elemwise", NULL);
}
