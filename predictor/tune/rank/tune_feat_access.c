/* Walks a loop nest for AutoTVM's features: the loops in order, and for each access of a buffer
 * what every loop around it touches and reuses. */
#include "predictor/tune/rank/rank_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    cd_tune_touches *t;
    const cd_nest *nest;
    const cd_ast_node **region; /* (n_tensor) the realize node seen last */
    /* (n_tensor) first tensor of the same name; accesses of that name */
    uint32_t *name, *count;
    uint32_t *stack; /* loops that are open */
    int32_t *end;    /* node after each of them */
    uint32_t depth;
    double topdown;
    cd_tune_feat_index index;
    bool oom;
} walker;

void cd_tune_touches_free(cd_tune_touches *t) {
    cd_arena_free(&t->a);
    cd_mem_free(t->loop);
    cd_mem_free(t->access);
    *t = (cd_tune_touches){0};
}

/* ---- loops ---- */

static cd_tune_loop_kind kind_of(const cd_ast_node *n) {
    static const uint8_t thread[CD_AST_TAG_COUNT] = {
        [CD_AST_TAG_VTHREAD] = CD_TUNE_VTHREAD, [CD_AST_TAG_BX] = CD_TUNE_BLOCK_X,
        [CD_AST_TAG_BY] = CD_TUNE_BLOCK_Y,      [CD_AST_TAG_BZ] = CD_TUNE_BLOCK_Z,
        [CD_AST_TAG_TX] = CD_TUNE_THREAD_X,     [CD_AST_TAG_TY] = CD_TUNE_THREAD_Y,
        [CD_AST_TAG_TZ] = CD_TUNE_THREAD_Z};
    if (n->kind == CD_AST_THREAD) return (cd_tune_loop_kind)thread[n->tag];
    switch ((cd_loop_kind)n->loop) {
    case CD_LOOP_PARALLEL: return CD_TUNE_PARALLEL;
    case CD_LOOP_VECTORIZED: return CD_TUNE_VECTORIZED;
    case CD_LOOP_UNROLLED: return CD_TUNE_UNROLLED;
    default: return CD_TUNE_SERIAL;
    }
}

static bool met_before(const cd_tune_touches *t, uint32_t var) {
    for (uint32_t k = 0; k < t->n_loop; k++)
        if (t->loop[k].var == var) return true;
    return false;
}

/* A virtual thread that occurs twice is one loop: its second occurrence has no own row. */
static void enter(walker *w, const cd_ast_node *n) {
    cd_tune_touches *t = w->t;
    const uint32_t var = (uint32_t)n->var->u.i;
    const cd_tune_loop_kind kind = kind_of(n);
    if (kind == CD_TUNE_VTHREAD && met_before(t, var)) return;
    if (CD_GROW(t->loop, t->n_loop, t->cap_loop)) {
        w->oom = true;
        return;
    }
    w->topdown *= (double)n->extent;
    w->stack[w->depth] = t->n_loop;
    w->end[w->depth++] = n->end;
    t->loop[t->n_loop++] = (cd_tune_loop){.kind = kind,
                                          .level = (int32_t)w->depth,
                                          .var = var,
                                          .length = (double)n->extent,
                                          .topdown = w->topdown,
                                          .bottomup = -1};
}

static void leave(walker *w, int32_t node) {
    while (w->depth && w->end[w->depth - 1] <= node) {
        const double length = w->t->loop[w->stack[--w->depth]].length;
        if (length != 0) w->topdown /= length;
    }
}

/* ---- accesses ---- */

/* 2: blocks, 1: what runs side by side in them, 0: the rest. */
static int side_by_side(cd_tune_loop_kind k) {
    return k <= CD_TUNE_BLOCK_Z ? 2 : k <= CD_TUNE_THREAD_Z || k == CD_TUNE_PARALLEL ? 1 : 0;
}

/* Leaving the loops from the innermost: products of lengths, and at each border between what runs
 * side by side and what is in it, the product in it for the loops of the kind above. */
static void multiply(cd_tune_loop *all, const uint32_t *loop, cd_tune_feat_access *touch,
                     uint32_t depth) {
    double count = 1, reuse = 1;
    for (uint32_t k = depth; k-- > 0;) {
        cd_tune_loop *l = &all[loop[k]];
        cd_tune_feat_access *t = &touch[k];
        if (t->stride != 0) count *= l->length;
        else reuse *= l->length;
        t->count = count;
        t->reuse = reuse;
        if (count * reuse > l->bottomup) l->bottomup = count * reuse;
        const int side = side_by_side(l->kind);
        for (uint32_t j = k; j-- > 0 && side_by_side(all[loop[k - 1]].kind) == side + 1;)
            if (side_by_side(all[loop[j]].kind) == side + 1) {
                touch[j].thread_count = -count; /* until that loop is left, too */
                touch[j].thread_reuse = -reuse;
            }
        if (t->thread_count < 0) {
            t->thread_count = count / -t->thread_count;
            t->thread_reuse = reuse / -t->thread_reuse;
        }
    }
}

static void name_access(walker *w, cd_tune_access *c, uint32_t tensor) {
    const char *raw = w->nest->tensor[tensor].name;
    const size_t n = strlen(raw) + 12;
    char *name = cd_arena_alloc(&w->t->a, n, 1);
    if (!name) {
        w->oom = true;
        return;
    }
    snprintf(name, n, "%s_%u", raw, w->count[w->name[tensor]]++);
    c->name = name;
    c->n_raw = strcspn(raw, ".");
}

/* An access has an entry for each loop around it: how far one step of the loop moves it (stride)
 * and how much it touches. Local buffers are indexed within their region. */
static void touch(walker *w, uint32_t tensor, const cd_expr *const *x, uint32_t n) {
    cd_tune_touches *t = w->t;
    const cd_nest_tensor *to = &w->nest->tensor[tensor];
    const cd_ast_node *region = to->arg < 0 ? w->region[tensor] : NULL;
    cd_tune_feat_access *in = cd_arena_zalloc(&t->a, w->depth + 1, sizeof *in);
    uint32_t *loop = cd_arena_alloc(&t->a, w->depth + 1, sizeof *loop);
    if (!in || !loop || CD_GROW(t->access, t->n_access, t->cap_access)) {
        w->oom = true;
        return;
    }
    if (w->depth) memcpy(loop, w->stack, w->depth * sizeof *loop);
    cd_tune_feat_index_read(&w->index, x, n, region && region->n == 2 * n ? region->x : NULL,
                            to->shape);
    for (uint32_t k = 0; k < w->depth; k++)
        in[k] = (cd_tune_feat_access){
            .access = t->n_access,
            .stride = cd_tune_feat_index_stride(&w->index, t->loop[loop[k]].var)};
    multiply(t->loop, loop, in, w->depth);
    cd_tune_access *c = &t->access[t->n_access++];
    *c = (cd_tune_access){.depth = w->depth, .touch = in, .loop = loop};
    name_access(w, c, tensor);
}

static bool visit(void *ctx, const cd_expr *e) {
    walker *w = ctx;
    if (e->op == CD_LOAD) touch(w, (uint32_t)e->u.i, e->a, e->n);
    if (!w->depth || !cd_expr_dtype_is_float(e->type)) return !w->oom;
    cd_tune_loop *l = &w->t->loop[w->stack[w->depth - 1]];
    l->n_add += e->op == CD_ADD || e->op == CD_SUB;
    l->n_mul += e->op == CD_MUL;
    l->n_div += e->op == CD_DIV || e->op == CD_MOD;
    return !w->oom;
}

/* Reads are in the conditions, values and indices of a statement; the store itself comes first, as
 * in AutoTVM. */
static void node(walker *w, const cd_ast_node *n) {
    switch ((cd_ast_kind)n->kind) {
    case CD_AST_FOR:
    case CD_AST_THREAD: enter(w, n); break;
    case CD_AST_REALIZE:
    case CD_AST_ALLOC: w->region[n->tensor] = n; break;
    case CD_AST_IF: cd_expr_visit(n->e, visit, w); break;
    case CD_AST_STORE:
        touch(w, n->tensor, n->x, n->n);
        cd_expr_visit(n->e, visit, w);
        for (uint32_t d = 0; d < n->n; d++) cd_expr_visit(n->x[d], visit, w);
        break;
    case CD_AST_EVAL:
        for (uint32_t d = 0; d < n->n; d++) cd_expr_visit(n->x[d], visit, w);
        break;
    case CD_AST_ATTR:
    case CD_AST_LET: break;
    }
}

/* ---- the whole ---- */

static int by_name(const void *a, const void *b) {
    return strcmp((*(const cd_tune_access *const *)a)->name,
                  (*(const cd_tune_access *const *)b)->name);
}

/* Hand out the touches to their loops in the order of names. */
static bool link_touches(cd_tune_touches *t) {
    cd_tune_access **order = cd_arena_alloc(&t->a, t->n_access + 1, sizeof *order);
    t->by_name = cd_arena_alloc(&t->a, t->n_access + 1, sizeof *t->by_name);
    if (!order || !t->by_name) return false;
    for (uint32_t k = 0; k < t->n_loop; k++) t->loop[k].last = &t->loop[k].touch;
    for (uint32_t k = 0; k < t->n_access; k++) order[k] = &t->access[k];
    qsort(order, t->n_access, sizeof *order, by_name); /* names are unique */
    for (uint32_t k = 0; k < t->n_access; k++) {
        t->by_name[k] = (uint32_t)(order[k] - t->access);
        for (uint32_t d = 0; d < order[k]->depth; d++) {
            cd_tune_loop *l = &t->loop[order[k]->loop[d]];
            *l->last = &order[k]->touch[d];
            l->last = &order[k]->touch[d].next;
        }
    }
    return true;
}

/* name[k] is the first tensor with the name of tensor k: AutoTVM counts accesses by name. */
static bool begin(walker *w) {
    const uint32_t n = w->nest->n_tensor + 1, nodes = (uint32_t)w->nest->ast->n + 1;
    cd_arena *a = &w->t->a;
    cd_arena_reset(a);
    w->t->n_loop = w->t->n_access = 0;
    w->region = cd_arena_zalloc(a, n, sizeof(const cd_ast_node *));
    w->name = cd_arena_zalloc(a, n, sizeof *w->name);
    w->count = cd_arena_zalloc(a, n, sizeof *w->count);
    w->stack = cd_arena_alloc(a, nodes, sizeof *w->stack);
    w->end = cd_arena_alloc(a, nodes, sizeof *w->end);
    if (!w->region || !w->name || !w->count || !w->stack || !w->end) return false;
    for (uint32_t k = 0; k + 1 < n; k++)
        while (strcmp(w->nest->tensor[w->name[k]].name, w->nest->tensor[k].name) != 0) w->name[k]++;
    return true;
}

cdmpp_status cd_tune_touches_walk(cd_tune_touches *t, const cd_nest *nest, cdmpp_err *err) {
    walker w = {.t = t, .nest = nest, .topdown = 1};
    const cd_ast *ast = nest->ast;
    w.oom = !begin(&w);
    for (int32_t k = 0; k < ast->n && !w.oom; k++) {
        leave(&w, k);
        if (!ast->node[k].dead) node(&w, &ast->node[k]);
    }
    return w.oom || !link_touches(t) ? CD_FAIL(err, ENOMEM, "touches of %d nodes", ast->n)
                                     : CDMPP_OK;
}
