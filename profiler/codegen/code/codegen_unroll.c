/* Counts, from the inside out, how long the text of a loop would be if it were unrolled, once by
 * TVM's rules and once by an estimate of LLVM's. */
#include "profiler/codegen/code/code.h"

#define MAX_DEPTH 8 /* TVM's auto_max_depth */
/* LLVM at -O3 writes out a loop of known length whose copies come to at most 300
 * instructions; so many a store is, with its loads, product and sum. */
#define MOST_COST   300
#define SCALAR_COST 6
#define VECTOR_COST 8
/* An element that stays the same from turn to turn is in a register: neither loaded nor stored. */
#define KEPT_COST 2

typedef struct {
    const cd_ast *t;
    const bool *vec;
    bool *copy;
    int64_t lanes;
} unroller;

typedef struct {
    int64_t step;
    int depth, normal;
} count;

static bool known(const cd_ast_node *n) { return n->extent_e->op == CD_INT && n->extent >= 0; }

/* Children of k, dead ones replaced by theirs, are what visit() walks over. */
static count visit(unroller *u, int32_t from, int32_t to, int64_t max_step);

/* An unrolled loop multiplies the count of its body; one that stays stops all loops around it. */
static count visit_loop(unroller *u, int32_t k, int64_t max_step) {
    const cd_ast_node *n = &u->t->node[k];
    count c = visit(u, k + 1, n->end, max_step);
    if (n->loop == CD_LOOP_VECTORIZED) return c;
    const bool serial =
        n->loop == CD_LOOP_SERIAL && known(n) && c.normal == 0 && c.depth <= MAX_DEPTH;
    const bool go =
        (serial && n->extent * c.step <= max_step) || (n->loop == CD_LOOP_UNROLLED && known(n));
    if (!go) {
        c.normal++;
        return c;
    }
    u->copy[k] = true;
    c.step *= n->extent;
    c.depth++;
    return c;
}

/* Sequences add their parts; ATTR nodes set the limit for what is below them. */
static count visit(unroller *u, int32_t from, int32_t to, int64_t max_step) {
    count all = {0};
    for (int32_t k = from; k < to;) {
        const cd_ast_node *n = &u->t->node[k];
        if (n->dead) {
            k++;
            continue;
        }
        count c = {0};
        if (n->kind == CD_AST_FOR) c = visit_loop(u, k, max_step);
        else if (n->kind == CD_AST_STORE) c.step = 1;
        else if (n->end > k + 1)
            c = visit(u, k + 1, n->end,
                      n->kind == CD_AST_ATTR && n->attr == CD_ATTR_UNROLL_STEP ? n->extent
                                                                               : max_step);
        all.step += c.step;
        if (c.depth > all.depth) all.depth = c.depth;
        if (c.normal > all.normal) all.normal = c.normal;
        k = n->end;
    }
    return all;
}

/* Instructions below, copies counted; -1: a loop stays. */
static int64_t cost(unroller *u, int32_t from, int32_t to, int64_t chunks);

static int64_t pieces(const unroller *u, int32_t k) {
    return (u->t->node[k].extent + u->lanes - 1) / u->lanes;
}

static bool depends(const cd_ast_node *store, const cd_expr *var) {
    for (uint32_t d = 0; d < store->n; d++)
        if (cd_expr_uses(store->x[d], var)) return true;
    return false;
}

/* Copies of the store below loop k, which stays at its place from turn to turn; 0: it moves, or a
 * loop further in counts it. */
static int64_t still(const unroller *u, int32_t k, const cd_ast_node *store) {
    int64_t n = !depends(store, u->t->node[k].var);
    for (int32_t p = store->parent; p != k && n; p = u->t->node[p].parent) {
        const cd_ast_node *l = &u->t->node[p];
        if (l->kind != CD_AST_FOR || l->dead) continue;
        n *= u->vec[p] ? pieces(u, p) : depends(store, l->var) ? l->extent : 0;
    }
    return n;
}

static int64_t kept(const unroller *u, int32_t k) {
    int64_t n = 0;
    for (int32_t i = k + 1; i < u->t->node[k].end; i++)
        if (!u->t->node[i].dead && u->t->node[i].kind == CD_AST_STORE)
            n += still(u, k, &u->t->node[i]);
    return n;
}

/* Stores have a fixed price, of vectors one for each chunk; elements that stay in registers make
 * the loop cheaper. */
static int64_t cost_of(unroller *u, int32_t k, int64_t chunks) {
    const cd_ast_node *n = &u->t->node[k];
    if (n->kind == CD_AST_STORE) return chunks ? VECTOR_COST * chunks : SCALAR_COST;
    const bool vector = n->kind == CD_AST_FOR && u->vec[k];
    int64_t c = cost(u, k + 1, n->end, vector ? pieces(u, k) : chunks);
    if (n->kind != CD_AST_FOR || vector) return c;
    if (u->copy[k]) return c < 0 ? c : c * n->extent;
    if (c < 0 || !known(n) || n->loop != CD_LOOP_SERIAL) return -1;
    c -= KEPT_COST * kept(u, k);
    if (c * n->extent > MOST_COST) return -1;
    u->copy[k] = true;
    return c * n->extent;
}

static int64_t cost(unroller *u, int32_t from, int32_t to, int64_t chunks) {
    int64_t all = 0;
    for (int32_t k = from; k < to;) {
        if (u->t->node[k].dead) {
            k++;
            continue;
        }
        const int64_t c = cost_of(u, k, chunks);
        all = c < 0 || all < 0 ? -1 : all + c;
        k = u->t->node[k].end;
    }
    return all;
}

void cd_codegen_unroll_tvm(const cd_ast *ast, bool *copy) {
    unroller u = {.t = ast, .copy = copy};
    visit(&u, 0, ast->n, 0);
}

void cd_codegen_unroll_llvm(const cd_ast *ast, const bool *vec, uint32_t lanes, bool *copy) {
    unroller u = {ast, vec, copy, lanes};
    cost(&u, 0, ast->n, 0);
}
