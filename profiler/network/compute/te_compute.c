/* Writes the stages of a definition, and holds the table from a fusion operator to the function
 * that writes it. A stage is text: axes and body are collected apart and put together as a JSON
 * object when the stage ends. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "profiler/network/compute/compute_internal.h"

cdmpp_status cd_te_compute_new(const cd_fuse_graph *f, cd_te_compute **out, cdmpp_err *err) {
    cd_te_compute *c = cd_mem_zalloc(1, sizeof *c);
    *out = NULL;
    if (c) c->stage_of = cd_mem_zalloc(f->n + 1, sizeof *c->stage_of);
    if (!c || !c->stage_of) {
        cd_mem_free(c);
        return CD_FAIL(err, ENOMEM, "out of memory for definitions");
    }
    c->f = f;
    *out = c;
    return CDMPP_OK;
}

void cd_te_compute_free(cd_te_compute *c) {
    if (!c) return;
    cd_arena_free(&c->arena);
    cd_buf_free(&c->ops);
    cd_buf_free(&c->axis);
    cd_buf_free(&c->raxis);
    cd_buf_free(&c->body);
    cd_mem_free(c->stage);
    cd_mem_free(c->reads);
    cd_mem_free(c->stage_of);
    cd_mem_free(c->touched);
    cd_mem_free(c);
}

uint32_t cd_compute_fail(cd_te_compute *c, const char *why) {
    if (!c->st) c->st = CD_FAIL(c->err, EUNSUPPORTED, "%s", why);
    return 0;
}

static uint32_t no_memory(cd_te_compute *c) {
    if (!c->st) c->st = CD_FAIL(c->err, ENOMEM, "out of memory for a definition");
    return 0;
}

/* ---- text ---- */

void cd_compute_index_format(char out[CD_COMPUTE_INDEX_SIZE], const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(out, CD_COMPUTE_INDEX_SIZE, fmt, ap);
    va_end(ap);
}

void cd_compute_index_add(char out[CD_COMPUTE_INDEX_SIZE], const char *x, int64_t k) {
    char copy[CD_COMPUTE_INDEX_SIZE];
    cd_compute_index_format(copy, "%s", x);
    if (k == 0) cd_compute_index_format(out, "%s", copy);
    else
        cd_compute_index_format(out, "%.150s %c %lld", copy, k < 0 ? '-' : '+',
                                (long long)(k < 0 ? -k : k));
}

void cd_compute_index_mul(char out[CD_COMPUTE_INDEX_SIZE], const char *x, int64_t k) {
    char copy[CD_COMPUTE_INDEX_SIZE];
    cd_compute_index_format(copy, "%s", x);
    const bool sum = strchr(copy, ' ') != NULL;
    if (k == 1) cd_compute_index_format(out, "%s", copy);
    else cd_compute_index_format(out, sum ? "(%.150s)*%lld" : "%.150s*%lld", copy, (long long)k);
}

void cd_compute_put(cd_te_compute *c, const char *fmt, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n >= (int)sizeof text) cd_compute_fail(c, "an expression that is too long");
    cd_buf_puts(&c->body, text);
}

/* float32 is the default type of a literal in the text form, so that it needs no suffix; the value
 * is rounded to it first. */
void cd_compute_put_literal(cd_te_compute *c, double v, cd_dtype t) {
    char name[16], text[40];
    if (t == CD_F32) v = (double)(float)v;
    if (isnan(v)) cd_compute_put(c, "nan");
    else if (isinf(v)) cd_compute_put(c, "%sinf", v < 0 ? "-" : "");
    else if (cd_expr_dtype_is_float(t)) {
        snprintf(text, sizeof text, "%.17g", v);
        cd_compute_put(c, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
    } else cd_compute_put(c, "%lld", (long long)v);
    if (t != CD_F32) cd_compute_put(c, ":%s", cd_expr_dtype_format(t, name, sizeof name));
}

/* ---- a stage ---- */

void cd_compute_begin(cd_te_compute *c) {
    cd_buf_clear(&c->axis);
    cd_buf_clear(&c->raxis);
    cd_buf_clear(&c->body);
    c->shape.rank = 0;
    c->open_first = c->n_read;
}

static void compute_add_axis(cd_te_compute *c, const char *name, int64_t extent) {
    cd_buf_putf(&c->axis, "%s[\"%s\", 0, %lld]", c->axis.n ? ", " : "", name, (long long)extent);
    if (c->shape.rank == CD_GRAPH_MAX_RANK) cd_compute_fail(c, "too many dimensions");
    else c->shape.dim[c->shape.rank++] = extent;
}

void cd_compute_add_axes(cd_te_compute *c, const char *prefix, const cd_graph_shape *s) {
    char name[CD_COMPUTE_INDEX_SIZE];
    for (uint32_t d = 0; d < s->rank; d++) {
        cd_compute_index_format(name, "%s%u", prefix, d);
        compute_add_axis(c, name, s->dim[d]);
    }
}

void cd_compute_begin_axes(cd_te_compute *c, const char *prefix, const cd_graph_shape *s) {
    cd_compute_begin(c);
    cd_compute_add_axes(c, prefix, s);
}

void cd_compute_add_reduce_axis(cd_te_compute *c, const char *name, int64_t extent) {
    cd_buf_putf(&c->raxis, "%s[\"%s\", 0, %lld]", c->raxis.n ? ", " : "", name, (long long)extent);
}

void cd_compute_add_reduce_axis_text(cd_te_compute *c, const char *name, const char *extent) {
    cd_buf_putf(&c->raxis, "%s[\"%s\", 0, \"%s\"]", c->raxis.n ? ", " : "", name, extent);
}

void cd_compute_mark_read(cd_te_compute *c, uint32_t stage) {
    for (uint32_t k = c->open_first; k < c->n_read; k++)
        if (c->reads[k] == stage) return;
    if (CD_GROW(c->reads, c->n_read, c->cap_read)) no_memory(c);
    else c->reads[c->n_read++] = stage;
}

static void load(cd_te_compute *c, uint32_t stage, const char *result,
                 char (*ix)[CD_COMPUTE_INDEX_SIZE]) {
    if (c->st) return;
    cd_compute_mark_read(c, stage);
    cd_compute_put(c, "t%u%s[", stage, result);
    for (uint32_t d = 0; d < c->stage[stage].rank; d++)
        cd_compute_put(c, "%s%s", d ? ", " : "", ix[d]);
    cd_compute_put(c, "]");
}

void cd_compute_load(cd_te_compute *c, uint32_t stage, char (*ix)[CD_COMPUTE_INDEX_SIZE]) {
    load(c, stage, "", ix);
}

void cd_compute_load_first(cd_te_compute *c, uint32_t stage, char (*ix)[CD_COMPUTE_INDEX_SIZE]) {
    load(c, stage, ".v0", ix);
}

static void load_at(cd_te_compute *c, uint32_t stage, const char *result, const char *prefix,
                    const cd_graph_shape *out) {
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE];
    if (c->st) return;
    const cd_te_compute_stage *s = &c->stage[stage];
    for (uint32_t d = 0; d < s->rank; d++) {
        const uint32_t o = d + out->rank - s->rank;
        if (s->dim[d] == out->dim[o]) cd_compute_index_format(ix[d], "%s%u", prefix, o);
        else cd_compute_index_format(ix[d], "0");
    }
    load(c, stage, result, ix);
}

void cd_compute_load_at(cd_te_compute *c, uint32_t stage, const char *prefix,
                        const cd_graph_shape *out) {
    load_at(c, stage, "", prefix, out);
}
void cd_compute_load_first_at(cd_te_compute *c, uint32_t stage, const char *prefix,
                              const cd_graph_shape *out) {
    load_at(c, stage, ".v0", prefix, out);
}

static uint32_t add_stage(cd_te_compute *c, const char *name, const cd_graph_shape *s,
                          uint32_t node) {
    if (c->st) return 0;
    if (CD_GROW(c->stage, c->n, c->cap)) return no_memory(c);
    cd_te_compute_stage *t = &c->stage[c->n];
    const char *copy = cd_str_dup(&c->arena, (cd_str){name, strlen(name)});
    if (!copy) return no_memory(c);
    *t = (cd_te_compute_stage){.node = node,
                               .rank = s->rank,
                               .name = copy,
                               .first_in = c->open_first,
                               .n_in = c->n_read - c->open_first};
    memcpy(t->dim, s->dim, sizeof t->dim);
    return c->n++;
}

uint32_t cd_compute_end(cd_te_compute *c, const char *name, const char *tag, const char *reduce) {
    if (c->st) return 0;
    cd_buf_putf(&c->ops, "%s{\"name\": \"%s\", \"ref\": \"t%u\", \"axis\": [%s]", c->n ? ",\n" : "",
                name, c->n, c->axis.n ? c->axis.p : "");
    if (reduce)
        cd_buf_putf(&c->ops, ", \"reduce_axis\": [%s], \"reduce\": %s",
                    c->raxis.p ? c->raxis.p : "", reduce);
    if (c->body.n && c->body.p[0] == '[') { /* several results */
        cd_buf_putf(&c->ops, ", \"body\": %s", c->body.p);
    } else {
        cd_buf_puts(&c->ops, ", \"body\": ");
        cd_buf_put_json_str(&c->ops, c->body.p ? c->body.p : "", c->body.n);
    }
    if (tag) cd_buf_putf(&c->ops, ", \"tag\": \"%s\"", tag);
    cd_buf_puts(&c->ops, "}");
    return add_stage(c, name, &c->shape, CD_GRAPH_NONE);
}

static uint32_t placeholder(cd_te_compute *c, uint32_t node) {
    const cd_fuse_node *n = &c->f->node[node];
    char type[16];
    cd_buf_putf(&c->ops, "%s{\"name\": \"placeholder\", \"ref\": \"t%u\", \"shape\": [",
                c->n ? ",\n" : "", c->n);
    for (uint32_t d = 0; d < n->shape.rank; d++)
        cd_buf_putf(&c->ops, "%s%lld", d ? ", " : "", (long long)n->shape.dim[d]);
    cd_buf_putf(&c->ops, "], \"dtype\": \"%s\"}",
                cd_expr_dtype_format(n->dtype, type, sizeof type));
    c->open_first = c->n_read;
    return add_stage(c, "placeholder", &n->shape, node);
}

/* Mark a placeholder as layout_free: a schedule may pack it. Nothing happens for other stages.
 *
 * The placeholder is in the text already: the member is inserted behind its ref. A ref occurs
 * once. */
static void compute_mark_layout_free(cd_te_compute *c, uint32_t stage) {
    char ref[40];
    if (c->st || c->stage[stage].node == CD_GRAPH_NONE) return;
    snprintf(ref, sizeof ref, "\"ref\": \"t%u\", ", stage);
    const char *at = strstr(c->ops.p, ref);
    if (!at) return;
    const size_t head = (size_t)(at - c->ops.p) + strlen(ref);
    cd_buf copy = {0};
    cd_buf_put(&copy, c->ops.p, head);
    cd_buf_puts(&copy, "\"layout_free\": true, ");
    cd_buf_puts(&copy, c->ops.p + head);
    cd_buf_free(&c->ops);
    c->ops = copy;
}

static uint32_t constant(cd_te_compute *c, const cd_fuse_node *n) {
    cd_compute_begin(c);
    cd_compute_put_literal(c, n->value, n->dtype);
    return cd_compute_end(c, "compile_engine_const", "broadcast", NULL);
}

/* ---- operators: a new kind of operator is a row here, or a line of CD_FUSE_OPS_EXPR (fusion.h) if
 * it is one expression ---- */

static bool member(const cd_te_compute *c, uint32_t node) {
    return !c->single && c->f->group[node] == c->group;
}

static uint32_t te_compute_conv(cd_te_compute *c, const cd_fuse_node *n);

static uint32_t te_compute_conv_transpose(cd_te_compute *c, const cd_fuse_node *n);

static uint32_t te_compute_dense(cd_te_compute *c, const cd_fuse_node *n);

static uint32_t te_compute_bmm(cd_te_compute *c, const cd_fuse_node *n);

static uint32_t te_compute_expr(cd_te_compute *c, const cd_fuse_node *n);

static uint32_t write(cd_te_compute *c, const cd_fuse_node *n) {
    typedef uint32_t (*writer)(cd_te_compute * c, const cd_fuse_node *n);
    static const writer table[CD_FUSE_OP_RELU] = {
        [CD_FUSE_OP_CONV] = te_compute_conv,
        [CD_FUSE_OP_CONVT] = te_compute_conv_transpose,
        [CD_FUSE_OP_DENSE] = te_compute_dense,
        [CD_FUSE_OP_BMM] = te_compute_bmm,
        [CD_FUSE_OP_POOL] = cd_te_compute_pool,
        [CD_FUSE_OP_POOLGRAD] = cd_te_compute_pool_grad,
        [CD_FUSE_OP_ADAPTIVE] = cd_te_compute_adaptive,
        [CD_FUSE_OP_LRN] = cd_te_compute_lrn,
        [CD_FUSE_OP_SOFTMAX] = cd_te_compute_softmax,
        [CD_FUSE_OP_LOGSOFTMAX] = cd_te_compute_softmax,
        [CD_FUSE_OP_REDUCE] = cd_te_compute_reduce,
        [CD_FUSE_OP_ARG] = cd_te_compute_arg,
        [CD_FUSE_OP_CONCAT] = cd_te_compute_concat,
        [CD_FUSE_OP_RESHAPE] = cd_te_compute_reshape,
        [CD_FUSE_OP_TRANSPOSE] = cd_te_compute_transpose,
        [CD_FUSE_OP_SLICE] = cd_te_compute_slice,
        [CD_FUSE_OP_PAD] = cd_te_compute_padding,
        [CD_FUSE_OP_EXPAND] = cd_te_compute_expand,
        [CD_FUSE_OP_TILE] = cd_te_compute_tile,
        [CD_FUSE_OP_TAKE] = cd_te_compute_take,
        [CD_FUSE_OP_GATHER] = cd_te_compute_gather,
        [CD_FUSE_OP_RESIZE] = cd_te_compute_resize,
        [CD_FUSE_OP_PACK4] = cd_te_compute_pack4,
    };
    if (cd_fuse_op_is_expr(n->op)) return te_compute_expr(c, n);
    return table[n->op] ? table[n->op](c, n)
                        : cd_compute_fail(c, "no compute definition for this operator");
}

static void remember(cd_te_compute *c, uint32_t node, uint32_t stage) {
    if (c->st) return;
    if (CD_GROW(c->touched, c->n_touched, c->cap_touched)) {
        no_memory(c);
        return;
    }
    c->touched[c->n_touched++] = node;
    c->stage_of[node] = stage + 1;
}

/* A node outside the group is an argument, and so is a reshape of one: TVM passes the buffer in the
 * new shape and has no stage for it. */
static bool is_argument(const cd_te_compute *c, uint32_t node) {
    const cd_fuse_node *n = &c->f->node[node];
    if (!member(c, node)) return true;
    return cd_fuse_is_view(n) && is_argument(c, n->in[0]);
}

/* The stage of a node, written at its first use: the depth-first order of TVM's stages follows from
 * that. */
static uint32_t stage_for(cd_te_compute *c, uint32_t node) {
    if (c->st) return 0;
    if (c->stage_of[node]) return c->stage_of[node] - 1;
    const cd_fuse_node *n = &c->f->node[node];
    const uint32_t stage = n->op == CD_FUSE_OP_CONST ? constant(c, n)
                           : is_argument(c, node)    ? placeholder(c, node)
                                                     : write(c, n);
    remember(c, node, stage);
    return stage;
}

uint32_t cd_compute_operand(cd_te_compute *c, const cd_fuse_node *n, uint32_t k) {
    return stage_for(c, n->in[k]);
}

/* Depth first along the stages that each stage reads, in the order of their first use. */
static void walk_args(cd_te_compute *c, uint32_t stage, bool *seen) {
    if (seen[stage]) return;
    seen[stage] = true;
    const cd_te_compute_stage *s = &c->stage[stage];
    if (s->node != CD_GRAPH_NONE) c->arg[c->n_arg++] = stage;
    for (uint32_t k = 0; k < s->n_in; k++) walk_args(c, c->reads[s->first_in + k], seen);
}

static void find_args(cd_te_compute *c) {
    bool *seen = CD_NEWN(&c->arena, bool, c->n + 1);
    c->arg = CD_NEWN(&c->arena, uint32_t, c->n + 1);
    if (!seen || !c->arg) {
        no_memory(c);
        return;
    }
    walk_args(c, c->n - 1, seen);
    c->arg[c->n_arg++] = c->n - 1;
}

/* Only entries of stage_of that the last group used are cleared: there may be many groups and many
 * nodes. */
static void start(cd_te_compute *c, uint32_t root, cdmpp_err *err) {
    for (uint32_t i = 0; i < c->n_touched; i++) c->stage_of[c->touched[i]] = 0;
    cd_arena_reset(&c->arena);
    cd_buf_clear(&c->ops);
    c->n = c->n_read = c->n_touched = c->n_arg = c->open_first = 0;
    c->group = root;
    c->single = root == CD_GRAPH_NONE;
    c->st = CDMPP_OK;
    c->err = err;
}

cdmpp_status cd_te_compute_group(cd_te_compute *c, uint32_t root, uint32_t last, cdmpp_err *err) {
    start(c, root, err);
    remember(c, last, write(c, &c->f->node[last]));
    if (!c->st) find_args(c);
    if (!c->st && (c->ops.oom || c->axis.oom || c->raxis.oom || c->body.oom)) no_memory(c);
    return c->st;
}

/* Operators that are one expression of their operands at the same position. They need no function:
 * the list CD_FUSE_OPS_EXPR (fusion.h) holds stage name, axis prefix and expression, in which $0,
 * $1, $2 are operands, $p, $q and $s parameters, $t the result's type. */

typedef struct row {
    const char *stage, *axes, *text;
    cd_fuse_pattern pattern;
} row;

static const row rows[] = {
#define CD_X(id, name, pattern, operands, stage, axes, text)                                       \
    {stage, axes, text, CD_FUSE_PATTERN_##pattern},
    CD_FUSE_OPS_EXPR(CD_X)
#undef CD_X
};

/* One $x of the expression. */
static void put_part(cd_te_compute *c, const cd_fuse_node *n, const row *r, char what,
                     const uint32_t *in) {
    char type[16];
    const cd_dtype own = n->op == CD_FUSE_OP_DEQUANTIZE ? n->dtype : c->f->node[n->in[0]].dtype;
    switch (what) {
    case 'p': cd_compute_put_literal(c, n->a.p, own); break;
    case 'q': cd_compute_put_literal(c, n->a.q, own); break;
    case 's': cd_compute_put_literal(c, n->a.s, own); break;
    case 't': cd_compute_put(c, "%s", cd_expr_dtype_format(n->dtype, type, sizeof type)); break;
    default: cd_compute_load_at(c, in[what - '0'], r->axes, &n->shape); break;
    }
}

static uint32_t te_compute_expr(cd_te_compute *c, const cd_fuse_node *n) {
    const row *r = &rows[n->op - CD_FUSE_OP_RELU];
    uint32_t in[3] = {0};
    for (uint32_t k = 0; k < n->n_in && k < 3; k++) in[k] = cd_compute_operand(c, n, k);
    cd_compute_begin_axes(c, r->axes, &n->shape);
    for (const char *p = r->text; *p; p++) {
        if (*p == '$') put_part(c, n, r, *++p, in);
        else cd_compute_put(c, "%c", *p);
    }
    return cd_compute_end(c, r->stage,
                          r->pattern == CD_FUSE_PATTERN_ELEM ? "elemwise" : "broadcast", NULL);
}

/* Convolutions and matrix products, in both layouts: channels behind the batch (nchw) or last
 * (nhwc). Order and names of axes differ between the layouts exactly as TOPI's functions do. */

typedef struct conv {
    const cd_fuse_node *n;
    const cd_fuse_attr *a;
    const cd_graph_shape *x, *w, *out;
    uint32_t dims;
    bool last;
} conv;

static conv conv_of(const cd_te_compute *c, const cd_fuse_node *n) {
    const cd_fuse_node *x = &c->f->node[n->in[0]], *w = &c->f->node[n->in[1]];
    return (conv){.n = n,
                  .a = &n->a,
                  .x = &x->shape,
                  .w = &w->shape,
                  .out = &n->shape,
                  .dims = n->a.n,
                  .last = n->a.last};
}

static int64_t channels(const conv *v) { return v->x->dim[v->last ? v->dims + 1 : 1]; }
static int64_t filters(const conv *v) { return v->out->dim[v->last ? v->dims + 1 : 1]; }

/* The padded operand; spatial dimensions stand behind the batch (last) or the channels. */
static uint32_t padded(cd_te_compute *c, const conv *v, uint32_t x, const char *name) {
    int64_t before[CD_GRAPH_MAX_RANK] = {0}, after[CD_GRAPH_MAX_RANK] = {0};
    for (uint32_t d = 0; d < v->dims; d++) {
        before[d + (v->last ? 1 : 2)] = v->a->before[d];
        after[d + (v->last ? 1 : 2)] = v->a->after[d];
    }
    return cd_compute_pad(c, x, name, true, before, after, v->a->dot4 ? v->a->p : 0, v->n->dtype);
}

/* x*y, or of four pairs of 8 bits each, unsigned times signed: their sum. */
static void multiply(cd_te_compute *c, bool dot4, uint32_t x, char (*ix)[CD_COMPUTE_INDEX_SIZE],
                     uint32_t y, char (*iy)[CD_COMPUTE_INDEX_SIZE]) {
    if (dot4) cd_compute_put(c, "dot4:int32(");
    cd_compute_load(c, x, ix);
    cd_compute_put(c, dot4 ? ", " : "*");
    cd_compute_load(c, y, iy);
    if (dot4) cd_compute_put(c, ")");
}

/* y*stride + r*dilation */
static void slide(char out[CD_COMPUTE_INDEX_SIZE], const char *y, int64_t stride, const char *r,
                  int64_t dilation) {
    char a[CD_COMPUTE_INDEX_SIZE], b[CD_COMPUTE_INDEX_SIZE];
    cd_compute_index_mul(a, y, stride);
    cd_compute_index_mul(b, r, dilation);
    cd_compute_index_format(out, "%.80s + %.80s", a, b);
}

/* ff // (filters of a group) * (channels of a group) + rc */
static void channel_index(const conv *v, char out[CD_COMPUTE_INDEX_SIZE]) {
    const int64_t per = filters(v) / v->a->groups, in = channels(v) / v->a->groups;
    char ff[CD_COMPUTE_INDEX_SIZE], t[CD_COMPUTE_INDEX_SIZE];
    if (v->a->groups == 1) {
        cd_compute_index_format(out, "rc");
        return;
    }
    if (per == 1) cd_compute_index_format(ff, "ff");
    else cd_compute_index_format(ff, "ff // %lld", (long long)per);
    cd_compute_index_format(t, in == 1 ? "%s" : "%s*%lld", ff, (long long)in);
    cd_compute_index_format(out, "%s + rc", t);
}

/* conv1d, 2d, 3d, with or without groups. In the layout with channels last the filter axis and the
 * channel reduction come last too. Only TOPI's conv2d_nhwc without groups lets its weight be
 * packed. */
static uint32_t plain_conv(cd_te_compute *c, const conv *v, uint32_t x, uint32_t w) {
    static const char *const ys[] = {"yy", "xx", "zz"}, *const rs[] = {"ry", "rx", "rz"};
    static const char *const orders[2][3] = {{"ncw", "nchw", "ncdhw"}, {"nwc", "nhwc", "ndhwc"}};
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE], iw[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE],
        name[CD_COMPUTE_INDEX_SIZE];
    const uint32_t n = v->dims, at = v->last ? 1 : 2, wat = v->last ? 0 : 2;
    const uint32_t pad = padded(c, v, x, "pad_temp");
    cd_compute_begin(c);
    compute_add_axis(c, "nn", v->out->dim[0]);
    if (!v->last) compute_add_axis(c, "ff", filters(v));
    for (uint32_t d = 0; d < n; d++) compute_add_axis(c, ys[d], v->out->dim[d + at]);
    if (v->last) compute_add_axis(c, "ff", filters(v));
    if (!v->last) cd_compute_add_reduce_axis(c, "rc", channels(v) / v->a->groups);
    for (uint32_t d = 0; d < n; d++) cd_compute_add_reduce_axis(c, rs[d], v->w->dim[d + wat]);
    if (v->last) cd_compute_add_reduce_axis(c, "rc", channels(v) / v->a->groups);
    cd_compute_index_format(ix[0], "nn");
    channel_index(v, ix[v->last ? n + 1 : 1]);
    for (uint32_t d = 0; d < n; d++) {
        slide(ix[d + at], ys[d], v->a->stride[d], rs[d], v->a->dilation[d]);
        cd_compute_index_format(iw[d + wat], "%s", rs[d]);
    }
    cd_compute_index_format(iw[v->last ? n + 1 : 0], "ff");
    cd_compute_index_format(iw[v->last ? n : 1], "rc");
    multiply(c, v->a->dot4, pad, ix, w, iw);
    if (v->last && n == 2 && v->a->groups == 1) compute_mark_layout_free(c, w);
    cd_compute_index_format(name, "%sconv%ud_%s", v->a->groups > 1 ? "group_" : "", n,
                            orders[v->last][n - 1]);
    return cd_compute_end(c, name, name, "\"sum\"");
}

/* One filter a channel: TOPI has a function of its own, with other axis names, and only for two
 * dimensions. */
static uint32_t depthwise(cd_te_compute *c, const conv *v, uint32_t x, uint32_t w) {
    char ix[4][CD_COMPUTE_INDEX_SIZE], iw[4][CD_COMPUTE_INDEX_SIZE];
    const uint32_t at = v->last ? 1 : 2, wat = v->last ? 0 : 2;
    const uint32_t pad = padded(c, v, x, "PaddedInput");
    cd_compute_begin(c);
    compute_add_axis(c, "b", v->out->dim[0]);
    if (!v->last) compute_add_axis(c, "c", filters(v));
    compute_add_axis(c, "i", v->out->dim[at]);
    compute_add_axis(c, "j", v->out->dim[at + 1]);
    if (v->last) compute_add_axis(c, "c", filters(v));
    cd_compute_add_reduce_axis(c, "di", v->w->dim[wat]);
    cd_compute_add_reduce_axis(c, "dj", v->w->dim[wat + 1]);
    cd_compute_index_format(ix[0], "b");
    cd_compute_index_format(ix[v->last ? 3 : 1], "c");
    slide(ix[at], "i", v->a->stride[0], "di", v->a->dilation[0]);
    slide(ix[at + 1], "j", v->a->stride[1], "dj", v->a->dilation[1]);
    cd_compute_index_format(iw[v->last ? 2 : 0], "c");
    cd_compute_index_format(iw[v->last ? 3 : 1], "0");
    cd_compute_index_format(iw[wat], "di");
    cd_compute_index_format(iw[wat + 1], "dj");
    cd_compute_load(c, pad, ix);
    cd_compute_put(c, "*");
    cd_compute_load(c, w, iw);
    return cd_compute_end(c, "DepthwiseConv2d",
                          v->last ? "depthwise_conv2d_nhwc" : "depthwise_conv2d_nchw", "\"sum\"");
}

/* One function for each kind of operator. Writes its stages, returns the number of the last one. */
static uint32_t te_compute_conv(cd_te_compute *c, const cd_fuse_node *n) {
    const conv v = conv_of(c, n);
    const uint32_t x = cd_compute_operand(c, n, 0), w = cd_compute_operand(c, n, 1);
    const bool dw =
        v.dims == 2 && v.a->groups > 1 && channels(&v) == v.a->groups && filters(&v) == v.a->groups;
    return dw ? depthwise(c, &v, x, w) : plain_conv(c, &v, x, w);
}

/* ---- transposed ---- */

/* A stage with stride - 1 zeros between elements; x itself where no stride is above 1. */
static uint32_t dilate(cd_te_compute *c, const conv *v, uint32_t x) {
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE];
    cd_graph_shape s = *v->x;
    bool any = false;
    cd_compute_begin(c);
    for (uint32_t d = 0; d < v->dims; d++) {
        s.dim[d + 2] = s.dim[d + 2] ? (s.dim[d + 2] - 1) * v->a->stride[d] + 1 : 0;
        any = any || v->a->stride[d] != 1;
    }
    if (!any) return x;
    cd_compute_add_axes(c, "i", &s);
    cd_compute_put(c, "if_then_else(");
    any = false;
    for (uint32_t d = 0; d < s.rank; d++) {
        const int64_t stride = d < 2 ? 1 : v->a->stride[d - 2];
        cd_compute_index_format(ix[d], stride == 1 ? "i%u" : "i%u // %lld", d, (long long)stride);
        if (stride != 1)
            cd_compute_put(c, "%si%u %% %lld == 0", any ? " && " : "", d, (long long)stride);
        any = any || stride != 1;
    }
    cd_compute_put(c, ", ");
    cd_compute_load(c, x, ix);
    cd_compute_put(c, ", ");
    cd_compute_put_literal(c, 0, v->n->dtype);
    cd_compute_put(c, ")");
    return cd_compute_end(c, "data_dilate", "injective,dilate", NULL);
}

/* The weight [I,O,h,w] as [O,I,h,w], turned by 180 degrees: the transposed convolution is then a
 * plain one. */
static uint32_t turned(cd_te_compute *c, const conv *v, uint32_t w) {
    static const char *const names[3][5] = {
        {"o", "i", "w"}, {"o", "i", "h", "w"}, {"o", "i", "d", "h", "w"}};
    char iw[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE];
    cd_compute_begin(c);
    compute_add_axis(c, "o", v->w->dim[1]);
    compute_add_axis(c, "i", v->w->dim[0]);
    cd_compute_index_format(iw[0], "i");
    cd_compute_index_format(iw[1], "o");
    for (uint32_t d = 0; d < v->dims; d++) {
        compute_add_axis(c, names[v->dims - 1][d + 2], v->w->dim[d + 2]);
        cd_compute_index_format(iw[d + 2], "%lld - %s", (long long)(v->w->dim[d + 2] - 1),
                                names[v->dims - 1][d + 2]);
    }
    cd_compute_load(c, w, iw);
    return cd_compute_end(c, "kernel_transform", NULL, NULL);
}

/* The dilated operand, padded so that a plain convolution over it gives the wanted extent, output
 * padding included. */
static uint32_t spread(cd_te_compute *c, const conv *v, uint32_t x) {
    int64_t before[CD_GRAPH_MAX_RANK] = {0}, after[CD_GRAPH_MAX_RANK] = {0};
    for (uint32_t d = 0; d < v->dims; d++) {
        const int64_t reach = (v->w->dim[d + 2] - 1) * v->a->dilation[d];
        const int64_t wide = v->x->dim[d + 2] ? (v->x->dim[d + 2] - 1) * v->a->stride[d] + 1 : 0;
        before[d + 2] = reach - v->a->before[d];
        after[d + 2] = v->out->dim[d + 2] + reach - before[d + 2] - wide; /* output padding too */
    }
    return cd_compute_pad(c, dilate(c, v, x), "data_pad", true, before, after, 0, v->n->dtype);
}

/* Channel of the operand, and of the weight's [O/groups, I]: those of c's group. */
static void transposed_channels(const conv *v, char in[CD_COMPUTE_INDEX_SIZE],
                                char out[CD_COMPUTE_INDEX_SIZE]) {
    const long long per = (long long)v->w->dim[1], from = (long long)(v->x->dim[1] / v->a->groups);
    cd_compute_index_format(in, "dc");
    cd_compute_index_format(out, "c");
    if (v->a->groups == 1) return;
    if (per == 1) cd_compute_index_format(out, "0");
    else cd_compute_index_format(out, "c %% %lld", per);
    if (per == 1 && from == 1) cd_compute_index_format(in, "c + dc");
    else if (per == 1) cd_compute_index_format(in, "c*%lld + dc", from);
    else if (from == 1) cd_compute_index_format(in, "c // %lld + dc", per);
    else cd_compute_index_format(in, "c // %lld*%lld + dc", per, from);
}

/* Dilate, pad, turn the weight, then a plain convolution of stride 1: TOPI's declaration. */
static uint32_t te_compute_conv_transpose(cd_te_compute *c, const cd_fuse_node *n) {
    static const char *const names[3][3] = {{"w"}, {"h", "w"}, {"d", "h", "w"}};
    static const char *const tags[3] = {"conv1d_transpose_ncw", "conv2d_transpose_nchw",
                                        "conv3d_transpose_ncdhw"};
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE], iw[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE],
        r[CD_COMPUTE_INDEX_SIZE];
    const conv v = conv_of(c, n);
    const uint32_t x = cd_compute_operand(c, n, 0), w = cd_compute_operand(c, n, 1);
    const uint32_t pad = spread(c, &v, x), kernel = turned(c, &v, w);
    cd_compute_begin(c);
    compute_add_axis(c, "b", n->shape.dim[0]);
    compute_add_axis(c, "c", n->shape.dim[1]);
    cd_compute_add_reduce_axis(c, "dc", v.x->dim[1] / v.a->groups);
    cd_compute_index_format(ix[0], "b");
    transposed_channels(&v, ix[1], iw[0]);
    cd_compute_index_format(iw[1], "%s", ix[1]);
    for (uint32_t d = 0; d < v.dims; d++) {
        const char *at = names[v.dims - 1][d];
        compute_add_axis(c, at, n->shape.dim[d + 2]);
        cd_compute_index_format(r, "d%s", at);
        cd_compute_add_reduce_axis(c, r, v.w->dim[d + 2]);
        slide(ix[d + 2], at, 1, r, v.a->dilation[d]);
        cd_compute_index_format(iw[d + 2], "%s", r);
    }
    cd_compute_load(c, pad, ix);
    cd_compute_put(c, "*");
    cd_compute_load(c, kernel, iw);
    return cd_compute_end(c, "compute", tags[v.dims - 1], "\"sum\"");
}

/* ---- matrices ---- */

/* x*y over k: x[b,i,k] * y[b,j,k], where a batch of 1 broadcasts; without `batch` both are
 * matrices. Operands may be read transposed in place (training needs this): TOPI's matmul and
 * batch_matmul with transpose_a, transpose_b. */
static uint32_t product(cd_te_compute *c, const cd_fuse_node *n, bool batch) {
    char ix[3][CD_COMPUTE_INDEX_SIZE] = {"b", "i", "k"};
    char iy[3][CD_COMPUTE_INDEX_SIZE] = {"b", "j", "k"};
    char name[CD_COMPUTE_INDEX_SIZE];
    const uint32_t x = cd_compute_operand(c, n, 0), y = cd_compute_operand(c, n, 1);
    const bool tx = n->a.mode & CD_FUSE_TRANSPOSED_X, ty = n->a.mode & CD_FUSE_TRANSPOSED_Y;
    const cd_graph_shape *a = &c->f->node[n->in[0]].shape, *b = &c->f->node[n->in[1]].shape;
    if (tx) cd_compute_index_format(ix[1], "k"), cd_compute_index_format(ix[2], "i");
    if (ty) cd_compute_index_format(iy[1], "k"), cd_compute_index_format(iy[2], "j");
    if (batch && a->dim[0] == 1) cd_compute_index_format(ix[0], "0");
    if (batch && b->dim[0] == 1) cd_compute_index_format(iy[0], "0");
    cd_compute_index_format(name, "T_%smatmul_%c%c", batch ? "batch_" : "", tx ? 'T' : 'N',
                            ty ? 'N' : 'T');
    cd_compute_begin(c);
    if (batch) compute_add_axis(c, "b", n->shape.dim[0]);
    compute_add_axis(c, "i", n->shape.dim[batch]);
    compute_add_axis(c, "j", n->shape.dim[1 + batch]);
    cd_compute_add_reduce_axis(c, "k", a->dim[batch + !tx]);
    multiply(c, n->a.dot4, x, ix + !batch, y, iy + !batch);
    if (!n->a.mode) compute_mark_layout_free(c, y);
    return cd_compute_end(c, name,
                          batch       ? "batch_matmul"
                          : n->a.mode ? "matmul"
                                      : "dense",
                          "\"sum\"");
}

static uint32_t te_compute_dense(cd_te_compute *c, const cd_fuse_node *n) {
    return product(c, n, false);
}
static uint32_t te_compute_bmm(cd_te_compute *c, const cd_fuse_node *n) {
    return product(c, n, true);
}
