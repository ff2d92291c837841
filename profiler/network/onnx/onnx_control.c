/* What is known only at run time. If becomes the branch that runs, Loop its body as often as it
 * runs, one after the other: constants or an option say which and how often. Of an operator whose
 * result's size depends on the data an option says the size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/network/onnx/onnx_internal.h"

static const char *name_of(const CdOnnx__NodeProto *n) {
    const char *name = cd_onnx_text(n->name);
    return *name || !n->n_output ? name : cd_onnx_text(n->output[0]);
}

/* What stands behind "NAME=" in an option; NULL: none names the node. */
static const char *option(cd_onnx_reader *r, const CdOnnx__NodeProto *n) {
    const char *name = name_of(n), *found = NULL;
    const size_t len = strlen(name);
    for (uint32_t i = 0; len && i < r->o->n_dim; i++) {
        if (strncmp(r->o->dim[i], name, len) || r->o->dim[i][len] != '=') continue;
        found = r->o->dim[i] + len + 1;
        r->used[i] = true;
    }
    return found;
}

/* The reason with the option that would say it. */
static cdmpp_status ask_for(cd_onnx_reader *r, const CdOnnx__NodeProto *n, const char *what,
                            const char *value, const char **why, cdmpp_err *err) {
    char text[400];
    (void)snprintf(text, sizeof text, "%s (--dim '%.100s=%s' says it)", what, name_of(n), value);
    *why = cd_graph_keep(r->g, text);
    return *why ? CDMPP_OK : CD_FAIL(err, ENOMEM, "unsupported nodes");
}

/* A constant of one element; NULL: none. */
static const int64_t *known(const cd_onnx_reader *r, const uint32_t *t) {
    const cd_graph_tensor *c = t && *t < r->g->n_tensor ? &r->g->tensor[*t] : NULL;
    return c && c->value && cd_graph_shape_elements(&c->shape) == 1 ? c->value : NULL;
}

static cd_onnx_scope inside(const cd_onnx_scope *s) {
    return (cd_onnx_scope){.up = s,
                           .call = s->call,
                           .caller = s->caller,
                           .absent = s->absent,
                           .n_absent = s->n_absent,
                           .depth = s->depth + 1};
}

static cdmpp_status read_nodes(cd_onnx_reader *r, cd_onnx_scope *in, const CdOnnx__GraphProto *g,
                               cdmpp_err *err) {
    if (in->depth > CD_ONNX_MAX_NESTED)
        return CD_FAIL(err, ERANGE, "branches nested deeper than %d", CD_ONNX_MAX_NESTED);
    CD_TRY(cd_onnx_index_shapes(r, in, g, err));
    CD_TRY(cd_onnx_inputs(r, in, g, err));
    return cd_onnx_nodes(r, in, g->node, g->n_node, err);
}

/* ---- If ---- */
static cdmpp_status branch(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                           const CdOnnx__GraphProto *g, cdmpp_err *err) {
    cd_onnx_scope in = inside(s);
    const uint32_t first = r->g->n_tensor;
    const char **result = CD_NEWN(r->a, const char *, g->n_output + 1);
    if (!result) return CD_FAIL(err, ENOMEM, "a branch");
    for (size_t i = 0; i < g->n_output; i++) result[i] = cd_onnx_text(g->output[i]->name);
    CD_TRY(read_nodes(r, &in, g, err));
    return cd_onnx_give_back(r, s, &in, n, first, result, g->n_output, err);
}

cdmpp_status cd_onnx_if(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                        const char **why, cdmpp_err *err) {
    const uint32_t *t = n->n_input == 1 ? cd_onnx_look_up(s, cd_onnx_text(n->input[0])) : NULL;
    if (!t) return CD_FAIL(err, ESCHEMA, "If: expected one operand");
    const char *asked = option(r, n);
    const int64_t *c = known(r, t);
    *why = NULL;
    if (asked && strcmp(asked, "then") != 0 && strcmp(asked, "else") != 0)
        return CD_FAIL(err, EUSAGE, "\"%s=%s\": expected then or else", name_of(n), asked);
    if (asked && c && (*c != 0) != !strcmp(asked, "then"))
        return CD_FAIL(err, EUSAGE,
                       "\"%s=%s\": its condition is a constant and takes the other branch",
                       name_of(n), asked);
    if (!asked && !c)
        return ask_for(r, n, "which branch runs depends on the data", "then|else", why, err);
    const bool then = c ? *c != 0 : !strcmp(asked, "then");
    const CdOnnx__AttributeProto *a = cd_onnx_attr(s, n, then ? "then_branch" : "else_branch");
    if (!a || !a->g) return CD_FAIL(err, ESCHEMA, "If: expected then_branch and else_branch");
    return branch(r, s, n, a->g, err);
}

/* ---- Loop: operands limit, condition, carried ...; its body takes number, condition, carried ...
 * and gives condition, carried ..., scanned ... ---- */
typedef struct {
    const CdOnnx__NodeProto *n;
    const CdOnnx__GraphProto *body;
    int64_t times;
    size_t n_carried, n_scan;
    uint32_t *carried; /* (n_carried) tensors that the next run reads */
    uint32_t *scanned; /* (times, n_scan) */
} loop;

static bool is_true(cd_onnx_reader *r, const CdOnnx__TensorProto *t) {
    const int64_t *v = NULL;
    const double *f;
    return t && cd_onnx_content(r, t, 1, &v, &f, NULL) == CDMPP_OK && v && *v;
}

/* Does the body go on as long as the limit lets it? Its condition is the one that it got, or a
 * constant. */
static bool always_goes_on(cd_onnx_reader *r, const cd_onnx_scope *s,
                           const CdOnnx__GraphProto *body) {
    const char *out = cd_onnx_text(body->output[0]->name), *in = cd_onnx_text(body->input[1]->name);
    if (!strcmp(out, in)) return true;
    for (size_t i = 0; i < body->n_initializer; i++)
        if (!strcmp(cd_onnx_text(body->initializer[i]->name), out))
            return is_true(r, body->initializer[i]);
    for (size_t i = 0; i < body->n_node; i++) {
        const CdOnnx__NodeProto *n = body->node[i];
        if (n->n_output != 1 || strcmp(cd_onnx_text(n->output[0]), out) != 0) continue;
        if (!strcmp(cd_onnx_text(n->op_type), "Identity"))
            return n->n_input == 1 && !strcmp(cd_onnx_text(n->input[0]), in);
        const CdOnnx__AttributeProto *a =
            !strcmp(cd_onnx_text(n->op_type), "Constant") ? cd_onnx_attr(s, n, "value") : NULL;
        return a && is_true(r, a->t);
    }
    return false;
}

static const int64_t *operand(const cd_onnx_reader *r, const cd_onnx_scope *s,
                              const CdOnnx__NodeProto *n, size_t i) {
    return i < n->n_input && *cd_onnx_text(n->input[i]) ? known(r, cd_onnx_look_up(s, n->input[i]))
                                                        : NULL;
}

static bool given(const CdOnnx__NodeProto *n, size_t i) {
    return i < n->n_input && *cd_onnx_text(n->input[i]);
}

/* *times below 0: not known. */
static cdmpp_status count(cd_onnx_reader *r, const cd_onnx_scope *s, loop *l, cdmpp_err *err) {
    const char *asked = option(r, l->n);
    const int64_t *most = operand(r, s, l->n, 0), *begin = operand(r, s, l->n, 1);
    char *end;
    l->times = -1;
    if (asked) {
        l->times = strtoll(asked, &end, 10);
        if (end == asked || *end || l->times < 0)
            return CD_FAIL(err, EUSAGE, "\"%s=%s\": expected how often its body runs",
                           name_of(l->n), asked);
        if (most && l->times > *most)
            return CD_FAIL(err, EUSAGE, "\"%s=%s\": its limit is %lld", name_of(l->n), asked,
                           (long long)*most);
    } else if (begin && !*begin) {
        l->times = 0;
    } else if (most && (begin || !given(l->n, 1)) && always_goes_on(r, s, l->body)) {
        l->times = *most < 0 ? 0 : *most;
    }
    if (l->times > CD_ONNX_MAX_RUNS)
        return CD_FAIL(err, ERANGE, "a body that runs %lld times: expected at most %d",
                       (long long)l->times, CD_ONNX_MAX_RUNS);
    return CDMPP_OK;
}

static cdmpp_status scalar(cd_onnx_reader *r, cd_onnx_scope *in, const char *name, cd_dtype t,
                           int64_t v, cdmpp_err *err) {
    const cd_graph_shape none = {.rank = 0};
    uint32_t c;
    CD_TRY(cd_graph_constant(r->g, name, t, &none, &v, NULL, &c, err));
    return cd_onnx_define(r, in, name, c, err);
}

static cdmpp_status run_once(cd_onnx_reader *r, cd_onnx_scope *s, loop *l, int64_t k,
                             cdmpp_err *err) {
    cd_onnx_scope in = inside(s);
    CD_TRY(scalar(r, &in, cd_onnx_text(l->body->input[0]->name), CD_I64, k, err));
    CD_TRY(scalar(r, &in, cd_onnx_text(l->body->input[1]->name), CD_BOOL, 1, err));
    for (size_t i = 0; i < l->n_carried; i++)
        CD_TRY(
            cd_onnx_define(r, &in, cd_onnx_text(l->body->input[2 + i]->name), l->carried[i], err));
    CD_TRY(read_nodes(r, &in, l->body, err));
    for (size_t i = 1; i < l->body->n_output; i++) {
        const char *name = cd_onnx_text(l->body->output[i]->name);
        const uint32_t *t = cd_onnx_look_up(&in, name);
        if (!t) return CD_FAIL(err, ESCHEMA, "result \"%s\" is not defined anywhere", name);
        if (i <= l->n_carried) l->carried[i - 1] = *t;
        else l->scanned[(size_t)k * l->n_scan + i - 1 - l->n_carried] = *t;
    }
    return CDMPP_OK;
}

/* What the runs gave, one behind the other along a new first axis. */
static cdmpp_status stack(cd_onnx_reader *r, const loop *l, size_t which, uint32_t *out,
                          cdmpp_err *err) {
    const cd_graph_attr axis = {.name = "axis", .kind = CD_GRAPH_ATTR_INT, .i = 0};
    uint32_t *part = CD_NEWN(r->a, uint32_t, (size_t)l->times + 1);
    if (!part) return CD_FAIL(err, ENOMEM, "results of a loop");
    for (int64_t k = 0; k < l->times; k++) {
        const uint32_t t = l->scanned[(size_t)k * l->n_scan + which];
        *out = CD_ONNX_UNKNOWN;
        if (t >= r->g->n_tensor) return CDMPP_OK;
        const cd_graph_shape of = r->g->tensor[t].shape;
        int64_t dim[CD_GRAPH_MAX_RANK + 1] = {1};
        uint32_t to[2] = {t};
        if (of.rank == CD_GRAPH_MAX_RANK)
            return CD_FAIL(err, ERANGE, "results of a loop: expected at most %d dimensions",
                           CD_GRAPH_MAX_RANK - 1);
        memcpy(dim + 1, of.dim, of.rank * sizeof *dim);
        CD_TRY(cd_graph_constant(r->g, "shape", CD_I64,
                                 &(cd_graph_shape){.rank = 1, .dim = {of.rank + 1}}, dim, NULL,
                                 &to[1], err));
        CD_TRY(cd_graph_add(r->g, name_of(l->n), "Reshape", to, 2, NULL, 0, &part[k], 1, err));
    }
    return cd_graph_add(r->g, name_of(l->n), "Concat", part, (uint32_t)l->times, &axis, 1, out, 1,
                        err);
}

static cdmpp_status define_results(cd_onnx_reader *r, cd_onnx_scope *s, const loop *l,
                                   uint32_t first, cdmpp_err *err) {
    for (size_t i = 0; i < l->n->n_output; i++) {
        const char *name = cd_onnx_text(l->n->output[i]);
        uint32_t t;
        if (!*name) continue;
        if (i < l->n_carried) t = l->carried[i];
        else CD_TRY(stack(r, l, i - l->n_carried, &t, err));
        CD_TRY(cd_onnx_define(r, s, name, t, err));
        if (t >= first && t < r->g->n_tensor) CD_TRY(cd_graph_rename(r->g, t, name, err));
    }
    return CDMPP_OK;
}

static cdmpp_status prepare(cd_onnx_reader *r, const cd_onnx_scope *s, loop *l, cdmpp_err *err) {
    const CdOnnx__AttributeProto *a = cd_onnx_attr(s, l->n, "body");
    l->n_carried = l->n->n_input > 2 ? l->n->n_input - 2 : 0;
    if (!a || !a->g || a->g->n_input != 2 + l->n_carried || a->g->n_output < 1 + l->n_carried)
        return CD_FAIL(err, ESCHEMA, "Loop: expected a body that takes and gives what is carried");
    l->body = a->g;
    l->n_scan = a->g->n_output - 1 - l->n_carried;
    if (l->n->n_output > l->n_carried + l->n_scan)
        return CD_FAIL(err, ESCHEMA, "expected at most %zu results, found %zu",
                       l->n_carried + l->n_scan, l->n->n_output);
    CD_TRY(count(r, s, l, err));
    if (l->times < 0) return CDMPP_OK;
    l->carried = CD_NEWN(r->a, uint32_t, l->n_carried + 1);
    l->scanned = CD_NEWN(r->a, uint32_t, (size_t)l->times * l->n_scan + 1);
    if (!l->carried || !l->scanned) return CD_FAIL(err, ENOMEM, "a loop");
    for (size_t i = 0; i < l->n_carried; i++) {
        const uint32_t *t = cd_onnx_look_up(s, cd_onnx_text(l->n->input[2 + i]));
        if (!t)
            return CD_FAIL(err, ESCHEMA, "operand \"%s\" is not defined anywhere",
                           cd_onnx_text(l->n->input[2 + i]));
        l->carried[i] = *t;
    }
    return CDMPP_OK;
}

cdmpp_status cd_onnx_loop(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                          const char **why, cdmpp_err *err) {
    loop l = {.n = n};
    const uint32_t first = r->g->n_tensor;
    *why = NULL;
    CD_TRY(prepare(r, s, &l, err));
    if (l.times < 0)
        return ask_for(r, n, "how often its body runs is not known before it runs", "N", why, err);
    if (!l.times && l.n_scan)
        *why = "its body runs 0 times: the shapes of what it collects are not known";
    if (*why) return CDMPP_OK;
    for (int64_t k = 0; k < l.times; k++) CD_TRY(run_once(r, s, &l, k, err));
    return define_results(r, s, &l, first, err);
}

/* ---- results whose size depends on the data ---- */
typedef cdmpp_status sizes(const cd_graph_tensor *x, int64_t n, int64_t axis, size_t n_out,
                           cd_graph_shape *shape, cd_dtype *type);

static cdmpp_status of_nonzero(const cd_graph_tensor *x, int64_t n, int64_t axis, size_t n_out,
                               cd_graph_shape *shape, cd_dtype *type) {
    (void)axis, (void)n_out;
    shape[0] = (cd_graph_shape){2, {x->shape.rank, n}};
    type[0] = CD_I64;
    return n > cd_graph_shape_elements(&x->shape) ? CDMPP_EUSAGE : CDMPP_OK;
}

/* A row for each box that stays: batch, class, box. */
static cdmpp_status of_nms(const cd_graph_tensor *x, int64_t n, int64_t axis, size_t n_out,
                           cd_graph_shape *shape, cd_dtype *type) {
    (void)x, (void)axis, (void)n_out;
    shape[0] = (cd_graph_shape){2, {n, 3}};
    type[0] = CD_I64;
    return CDMPP_OK;
}

/* n along the axis; without one of all elements in a row. Unique also gives numbers: of where they
 * stand, of each element's own, of how often. */
static cdmpp_status of_some(const cd_graph_tensor *x, int64_t n, int64_t axis, size_t n_out,
                            cd_graph_shape *shape, cd_dtype *type) {
    const int64_t rank = x->shape.rank, at = axis < 0 ? axis + rank : axis;
    const bool flat = axis == INT64_MIN;
    if (!flat && (at < 0 || at >= rank)) return CDMPP_ESCHEMA;
    const int64_t all = flat ? cd_graph_shape_elements(&x->shape) : x->shape.dim[at];
    if (n > all) return CDMPP_EUSAGE;
    shape[0] = flat ? (cd_graph_shape){1, {n}} : x->shape;
    if (!flat) shape[0].dim[at] = n;
    type[0] = x->dtype;
    for (size_t k = 1; k < n_out; k++)
        shape[k] = (cd_graph_shape){1, {k == 2 ? all : n}}, type[k] = CD_I64;
    return CDMPP_OK;
}

static const struct {
    const char *op;
    sizes *of;
} sized[] = {{"NonZero", of_nonzero},
             {"NonMaxSuppression", of_nms},
             {"Compress", of_some},
             {"Unique", of_some}};

cdmpp_status cd_onnx_sizes(cd_onnx_reader *r, const cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                           const uint32_t *in, cd_graph_shape *shape, cd_dtype *type,
                           const char **why, bool *known, cdmpp_err *err) {
    size_t k = 0;
    char *end;
    *known = false;
    while (k < sizeof sized / sizeof *sized && strcmp(sized[k].op, cd_onnx_text(n->op_type)) != 0)
        k++;
    if (k == sizeof sized / sizeof *sized || !n->n_input || !n->n_output || in[0] >= r->g->n_tensor)
        return CDMPP_OK;
    const char *asked = option(r, n);
    if (!asked) return ask_for(r, n, "how large its result is depends on the data", "N", why, err);
    const int64_t size = strtoll(asked, &end, 10);
    if (end == asked || *end || size < 0)
        return CD_FAIL(err, EUSAGE, "\"%s=%s\": expected a size", name_of(n), asked);
    const CdOnnx__AttributeProto *a = cd_onnx_attr(s, n, "axis");
    const cdmpp_status st =
        sized[k].of(&r->g->tensor[in[0]], size, a ? a->i : INT64_MIN, n->n_output, shape, type);
    if (st == CDMPP_EUSAGE)
        return CD_FAIL(err, EUSAGE, "\"%s=%s\": more than there are", name_of(n), asked);
    if (st) return CD_FAIL(err, ESCHEMA, "no such axis");
    *why = "no compute definition for this operator";
    *known = true;
    return CDMPP_OK;
}
