/* gputrace.h -- which elements of global memory some blocks of a kernel write, and
 * which of other kernels' results they read: the nest, run without values.
 *
 *   kernel (nodes begin .. end-1), block (bx, by, bz)  ->  list of (tensor, element)
 *
 * Threads are loops. Only statements that touch global memory are visited. Operators are written
 * once more here, as the truth about code must not be computed by what made the code. */
#ifndef GPUTRACE_H
#define GPUTRACE_H
#include <stdlib.h>

#include "features/program/program.h"
#include "profiler/codegen/code/code.h"

typedef struct {
    uint32_t tensor;
    int64_t element;
} gt_place;

typedef struct {
    const cd_nest *nest;
    const cd_codegen_plan *plan;
    int64_t block[3];
    int64_t *var; /* (n_var) */
    bool *wanted; /* (ast->n) node has something to see below it */
    gt_place *write, *read;
    size_t n_write, cap_write, n_read, cap_read, most;
    bool full; /* more than `most` of a kind */
} gputrace;

static inline int64_t gt_int(gputrace *t, const cd_expr *e) {
    if (e->op == CD_INT) return e->u.i;
    if (e->op == CD_VAR) return t->var[e->u.i];
    if (e->op == CD_NOT) return !gt_int(t, e->a[0]);
    if (e->op == CD_CAST) return gt_int(t, e->a[0]);
    if (e->op == CD_CALL && e->n == 1) return gt_int(t, e->a[0]); /* likely */
    if (e->op == CD_SELECT || e->n == 3) return gt_int(t, gt_int(t, e->a[0]) ? e->a[1] : e->a[2]);
    const int64_t a = gt_int(t, e->a[0]);
    if (e->op == CD_AND && !a) return 0;
    if (e->op == CD_OR && a) return 1;
    const int64_t b = gt_int(t, e->a[1]);
    switch ((cd_expr_op)e->op) {
    case CD_ADD: return a + b;
    case CD_SUB: return a - b;
    case CD_MUL: return a * b;
    case CD_DIV: return b ? a / b : 0;
    case CD_MOD: return b ? a % b : 0;
    case CD_FDIV: return b ? cd_expr_floordiv(a, b) : 0;
    case CD_FMOD: return b ? cd_expr_floormod(a, b) : 0;
    case CD_MIN: return a < b ? a : b;
    case CD_MAX: return a > b ? a : b;
    case CD_EQ: return a == b;
    case CD_NE: return a != b;
    case CD_LT: return a < b;
    case CD_LE: return a <= b;
    case CD_GT: return a > b;
    case CD_GE: return a >= b;
    default: return b; /* AND, OR */
    }
}

static inline bool gt_global(const gputrace *t, uint32_t tensor) {
    return t->plan->slot[tensor].is_arg || t->plan->slot[tensor].rank == 0;
}

static inline void gt_put(gputrace *t, gt_place **list, size_t *n, size_t *cap, uint32_t tensor,
                          const cd_expr *const *x, uint32_t rank) {
    const cd_codegen_slot *s = &t->plan->slot[tensor];
    int64_t at = 0;
    for (uint32_t d = 0; d < rank; d++)
        at += (gt_int(t, x[d]) - (s->min ? gt_int(t, s->min[d]) : 0)) * s->stride[d];
    if (*n && (*list)[*n - 1].tensor == tensor && (*list)[*n - 1].element == at) return;
    if (*n >= t->most) {
        t->full = true;
        return;
    }
    if (*n == *cap) {
        *cap = *cap ? 2 * *cap : 1024;
        *list = realloc(*list, *cap * sizeof **list);
    }
    (*list)[(*n)++] = (gt_place){tensor, at};
}

/* Loads that are really made: not those of a branch that is not taken. */
static inline void gt_loads(gputrace *t, const cd_expr *e) {
    if (!(e->flags & CD_EXPR_HAS_LOAD)) return;
    if (e->op == CD_SELECT || (e->op == CD_CALL && !strcmp(e->u.name, "if_then_else"))) {
        if (!(e->a[0]->flags & CD_EXPR_HAS_LOAD)) {
            gt_loads(t, gt_int(t, e->a[0]) ? e->a[1] : e->a[2]);
            return;
        }
    }
    if (e->op == CD_LOAD && gt_global(t, (uint32_t)e->u.i) && t->nest->tensor[e->u.i].written)
        gt_put(t, &t->read, &t->n_read, &t->cap_read, (uint32_t)e->u.i, e->a, e->n);
    for (uint32_t k = 0; k < e->n; k++) gt_loads(t, e->a[k]);
}

static inline bool gt_sees(void *ctx, const cd_expr *e) {
    void **c = ctx;
    const gputrace *t = c[0];
    if (e->op == CD_LOAD && gt_global(t, (uint32_t)e->u.i) && t->nest->tensor[e->u.i].written)
        *(bool *)c[1] = true;
    return true;
}

static inline void gt_want(gputrace *t) {
    const cd_ast *a = t->nest->ast;
    for (int32_t k = a->n - 1; k >= 0; k--) {
        const cd_ast_node *n = &a->node[k];
        bool w = false;
        void *ctx[2] = {t, &w};
        if (n->kind == CD_AST_STORE && !n->dead) {
            w = gt_global(t, n->tensor);
            cd_expr_visit(n->e, gt_sees, ctx);
        }
        t->wanted[k] |= w;
        if (t->wanted[k] && n->parent >= 0) t->wanted[n->parent] = true;
    }
}

static inline void gt_range(gputrace *t, int32_t from, int32_t to);

static inline int64_t gt_first(const gputrace *t, const cd_ast_node *n, int64_t *last) {
    if (n->kind == CD_AST_THREAD && cd_ast_tag_rank((cd_ast_tag)n->tag) == 0) {
        const int d = n->tag == CD_AST_TAG_BX ? 0 : n->tag == CD_AST_TAG_BY ? 1 : 2;
        *last = t->block[d] + 1;
        return t->block[d];
    }
    *last = n->extent;
    return 0;
}

static inline void gt_node(gputrace *t, int32_t k) {
    const cd_ast_node *n = &t->nest->ast->node[k];
    int64_t last = 0;
    if (!t->wanted[k] || t->full) return;
    switch ((cd_ast_kind)n->kind) {
    case CD_AST_FOR:
    case CD_AST_THREAD:
        for (int64_t x = gt_first(t, n, &last); x < last; x++) {
            t->var[n->var->u.i] = x;
            gt_range(t, k + 1, n->end);
        }
        break;
    case CD_AST_IF:
        if (gt_int(t, n->e)) gt_range(t, k + 1, n->end);
        break;
    case CD_AST_STORE:
        gt_loads(t, n->e);
        if (gt_global(t, n->tensor))
            gt_put(t, &t->write, &t->n_write, &t->cap_write, n->tensor, n->x, n->n);
        break;
    default: gt_range(t, k + 1, n->end);
    }
}

static inline void gt_range(gputrace *t, int32_t from, int32_t to) {
    for (int32_t k = from; k < to;) {
        if (t->nest->ast->node[k].dead) {
            k++;
            continue;
        }
        gt_node(t, k);
        k = t->nest->ast->node[k].end;
    }
}

static inline int gt_by_place(const void *a, const void *b) {
    const gt_place *x = a, *y = b;
    if (x->tensor != y->tensor) return x->tensor < y->tensor ? -1 : 1;
    return (x->element > y->element) - (x->element < y->element);
}

static inline size_t gt_unique(gt_place *p, size_t n) {
    size_t m = 0;
    if (n) qsort(p, n, sizeof *p, gt_by_place);
    for (size_t k = 0; k < n; k++)
        if (!m || gt_by_place(&p[m - 1], &p[k])) p[m++] = p[k];
    return m;
}
#endif
