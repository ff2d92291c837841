/* Places the tensors of a nest: one walk over the nodes numbers variables and tensors in the order
 * of their appearance, marks what is loaded and stored, and lays out the regions of REALIZE and
 * ALLOC nodes. */
#include "profiler/codegen/code/code.h"

#include <string.h>

#define MOST_ELEMENTS ((int64_t)1 << 40)

typedef struct {
    cd_arena *a;
    cd_codegen_plan *p;
    uint32_t n_order;
    bool oom;
} planner;

void cd_codegen_clean_name(const char *name, char *out, size_t n) {
    size_t k = 0;
    for (; *name && k + 1 < n; name++) {
        const char c = *name;
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        out[k] = letter || (c >= '0' && c <= '9' && k) ? c : '_';
        k++;
    }
    if (n) out[k] = 0;
}

/* Which parallel, block and thread loops are around node k. */
static unsigned under(const cd_ast *t, int32_t k) {
    unsigned u = 0;
    for (int32_t p = t->node[k].parent; p >= 0; p = t->node[p].parent) {
        const cd_ast_node *n = &t->node[p];
        if (n->kind == CD_AST_THREAD)
            u |= cd_ast_tag_rank((cd_ast_tag)n->tag) ? CD_UNDER_THREAD : CD_UNDER_BLOCK;
        if (n->kind == CD_AST_FOR && n->loop == CD_LOOP_PARALLEL && !n->dead)
            u |= CD_UNDER_PARALLEL;
    }
    return u;
}

/* Memory by scope name, else by the loops around, as TVM's StorageRank. */
static int rank_of(const char *scope, unsigned u) {
    if (!strncmp(scope, "shared", 6)) return 1;
    if (!strncmp(scope, "warp", 4)) return 2;
    if (!strncmp(scope, "local", 5)) return 3;
    if (*scope) return 0;
    return u & CD_UNDER_THREAD ? 3 : u & CD_UNDER_BLOCK ? 1 : 0;
}

/* stride and elements from extent. */
static cdmpp_status lay_out(planner *pl, cd_codegen_slot *s, int64_t *extent, cdmpp_err *err) {
    int64_t *stride = CD_NEWN(pl->a, int64_t, s->n_dim + 1), n = 1;
    if (!stride) return CD_FAIL(err, ENOMEM, "storage plan");
    for (uint32_t d = s->n_dim; d-- > 0;) {
        stride[d] = n;
        if (extent[d] < 0 || (extent[d] && n > MOST_ELEMENTS / extent[d]))
            return CD_FAIL(err, EUNSUPPORTED, "a tensor of more than 2^40 elements");
        n *= extent[d];
    }
    s->extent = extent;
    s->stride = stride;
    s->elements = n;
    return CDMPP_OK;
}

static cdmpp_status whole(planner *pl, cd_codegen_slot *s, const cd_nest_tensor *t,
                          cdmpp_err *err) {
    int64_t *extent = CD_NEWN(pl->a, int64_t, t->rank + 1);
    if (!extent) return CD_FAIL(err, ENOMEM, "storage plan");
    s->n_dim = t->rank;
    if (t->rank) memcpy(extent, t->shape, t->rank * sizeof *extent);
    return lay_out(pl, s, extent, err);
}

/* Lengths are literals in all that TVM makes; a symbolic one is replaced by the most it can be. */
static cdmpp_status realized(planner *pl, cd_codegen_slot *s, const cd_ast_node *n,
                             cdmpp_err *err) {
    s->n_dim = n->n / 2;
    int64_t *extent = CD_NEWN(pl->a, int64_t, s->n_dim + 1);
    const cd_expr **min = CD_NEWN(pl->a, const cd_expr *, s->n_dim + 1);
    if (!extent || !min) return CD_FAIL(err, ENOMEM, "storage plan");
    for (uint32_t d = 0; d < s->n_dim; d++) {
        min[d] = n->x[2 * d];
        extent[d] = cd_codegen_range_of(&pl->p->ranges, n->x[2 * d + 1]).hi;
        if (extent[d] == CD_INF) return CD_FAIL(err, EUNSUPPORTED, "a region of unknown size");
    }
    s->min = min;
    return lay_out(pl, s, extent, err);
}

static void meet(planner *pl, uint32_t tensor) {
    cd_codegen_slot *s = &pl->p->slot[tensor];
    if (!s->used) s->order = pl->n_order++;
    s->used = true;
}

static bool meet_load(void *ctx, const cd_expr *e) {
    planner *pl = ctx;
    if (e->op == CD_LOAD) {
        meet(pl, (uint32_t)e->u.i);
        pl->p->slot[e->u.i].loaded = true;
    }
    return true;
}

static void meet_all(planner *pl, const cd_ast_node *n) {
    for (uint32_t k = 0; k < n->n; k++) cd_expr_visit(n->x[k], meet_load, pl);
    if (n->e) cd_expr_visit(n->e, meet_load, pl);
}

static void bind(planner *pl, const cd_ast_node *n, uint32_t *n_var) {
    uint32_t *number = &pl->p->var[n->var->u.i];
    if (*number == UINT32_MAX) *number = (*n_var)++;
    if (n->kind == CD_AST_THREAD) pl->p->has_thread = true;
    if (n->kind == CD_AST_FOR && n->loop == CD_LOOP_PARALLEL) pl->p->has_parallel = true;
}

/* Parameters keep the layout of their whole shape, even where the nest realizes them. */
static cdmpp_status walk(planner *pl, cdmpp_err *err) {
    const cd_ast *t = pl->p->nest->ast;
    uint32_t n_var = 0;
    for (int32_t k = 0; k < t->n; k++) {
        const cd_ast_node *n = &t->node[k];
        if (n->dead) continue;
        if (n->kind == CD_AST_FOR || n->kind == CD_AST_THREAD) bind(pl, n, &n_var);
        if (n->kind == CD_AST_STORE) {
            meet(pl, n->tensor);
            pl->p->slot[n->tensor].stored = true;
        }
        if (n->kind == CD_AST_STORE || n->kind == CD_AST_IF || n->kind == CD_AST_EVAL)
            meet_all(pl, n);
        if (n->kind != CD_AST_REALIZE && n->kind != CD_AST_ALLOC) continue;
        cd_codegen_slot *s = &pl->p->slot[n->tensor];
        s->node = k;
        s->under = under(t, k);
        if (s->is_arg) continue;
        s->rank =
            n->kind == CD_AST_ALLOC ? 3 : rank_of(pl->p->nest->tensor[n->tensor].scope, s->under);
        CD_TRY(realized(pl, s, n, err));
    }
    return CDMPP_OK;
}

/* A tensor that is used but has no region is an error of the nest. */
cdmpp_status cd_codegen_plan_make(cd_arena *a, const cd_nest *nest, cd_codegen_plan *out,
                                  cdmpp_err *err) {
    planner pl = {.a = a, .p = out};
    cd_bound *var = CD_NEWN(a, cd_bound, nest->n_var + 1);
    *out = (cd_codegen_plan){.nest = nest,
                             .n_slot = nest->n_tensor,
                             .slot = CD_NEWN(a, cd_codegen_slot, nest->n_tensor + 1),
                             .var = CD_NEWN(a, uint32_t, nest->n_var + 1)};
    if (!var || !out->slot || !out->var) return CD_FAIL(err, ENOMEM, "storage plan");
    memset(out->var, 0xff, (nest->n_var + 1) * sizeof *out->var);
    cd_codegen_ranges_of_nest(nest->ast, var, nest->n_var);
    out->ranges = (cd_codegen_ranges){nest->n_var, var};
    for (uint32_t t = 0; t < nest->n_tensor; t++) {
        cd_codegen_slot *s = &out->slot[t];
        *s = (cd_codegen_slot){.node = -1,
                               .arg = nest->tensor[t].arg,
                               .is_arg = nest->tensor[t].arg >= 0,
                               .dtype = nest->tensor[t].dtype};
        if (s->is_arg) CD_TRY(whole(&pl, s, &nest->tensor[t], err));
    }
    CD_TRY(walk(&pl, err));
    for (uint32_t t = 0; t < nest->n_tensor; t++)
        if (out->slot[t].used && !out->slot[t].is_arg && out->slot[t].node < 0)
            return CD_FAIL(err, EUNSUPPORTED, "tensor \"%.60s\" is used but stored nowhere",
                           nest->tensor[t].name);
    return CDMPP_OK;
}
