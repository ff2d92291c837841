/* TVM's GPU verification without its passes: threads, memory and vectors are counted on the nest as
 * it is. TVM flattens, vectorizes and allocates first; the outcome was the same for all of 395
 * random programs. */
#include "features/program/program_internal.h"

#include <string.h>

typedef struct {
    const cd_ast *t;
    const cd_tensors *tensors;
    const cd_hardware *hw;
    cdmpp_err *err;
    int64_t thread[CD_AST_TAG_COUNT]; /* extents seen in this kernel, 0: not yet */
    int64_t shared_bytes, local_bytes;
} checker;

static int64_t saturating_mul(int64_t a, int64_t b) {
    int64_t r;
    return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

static int64_t realize_bytes(const checker *c, const cd_ast_node *n) {
    int64_t size = c->tensors->info(c->tensors->ctx, n->tensor).elem_bytes;
    for (uint32_t d = 1; d < n->n; d += 2)
        if (cd_expr_is_int(n->x[d])) size = saturating_mul(size, n->x[d]->u.i);
    return size;
}

static cdmpp_status thread(checker *c, const cd_ast_node *n) {
    if (cd_ast_tag_rank((cd_ast_tag)n->tag) == 0) return CDMPP_OK;
    if (n->tag == CD_AST_TAG_VTHREAD) return CDMPP_OK; /* virtual threads are loops by then */
    if (c->thread[n->tag] && c->thread[n->tag] != n->extent)
        return CD_FAIL(c->err, EREJECTED, "%s has extents %lld and %lld in one kernel",
                       cd_ast_tag_name((cd_ast_tag)n->tag), (long long)c->thread[n->tag],
                       (long long)n->extent);
    c->thread[n->tag] = n->extent;
    return CDMPP_OK;
}

/* ---- vectors ---- */

/* Operators that TVM cannot vectorise: a loop variable in their arguments makes
 * the statement a scalar loop. All elementary functions can be. */
static bool scalar_call(const cd_expr *e) {
    return e->op == CD_CALL &&
           (!(e->flags & CD_EXPR_PURE) || !strcmp(e->u.name, "call_pure_extern"));
}

/* Does a vector of the loop variable reach something that only works on scalars? */
static bool needs_scalar(const cd_expr *e, const cd_expr *var) {
    if (!(e->flags & CD_EXPR_HAS_VAR)) return false;
    if (e->op == CD_CALL && !strcmp(e->u.name, "if_then_else") && cd_expr_uses(e->a[0], var))
        return true;
    if (scalar_call(e) && cd_expr_uses(e, var)) return true;
    for (uint32_t i = 0; i < e->n; i++)
        if (needs_scalar(e->a[i], var)) return true;
    return false;
}

/* Widest element among the store and the loads that become vectors. */
static unsigned vector_element(const cd_expr *e, const cd_expr *var) {
    unsigned most = e->op == CD_LOAD && cd_expr_uses(e, var) ? cd_expr_dtype_bytes(e->type) : 0;
    for (uint32_t i = 0; i < e->n; i++) {
        const unsigned b = e->a[i]->flags & CD_EXPR_HAS_LOAD ? vector_element(e->a[i], var) : 0;
        if (b > most) most = b;
    }
    return most;
}

/* A store whose operands do not change with the vectorized loop stays a scalar; so does one that
 * calls a scalar function. */
static cdmpp_status vector_store(const checker *c, const cd_ast_node *n, const cd_ast_node *loop) {
    bool used = cd_expr_uses(n->e, loop->var);
    for (uint32_t d = 0; d < n->n; d++) {
        if (needs_scalar(n->x[d], loop->var)) return CDMPP_OK;
        used |= cd_expr_uses(n->x[d], loop->var);
    }
    if (!used || needs_scalar(n->e, loop->var)) return CDMPP_OK;
    unsigned bytes = cd_expr_dtype_bytes(n->e->type);
    const unsigned load = vector_element(n->e, loop->var);
    if (load > bytes) bytes = load;
    if (saturating_mul(loop->extent, bytes) > c->hw->vector_unit_bytes)
        return CD_FAIL(c->err, EREJECTED, "a vector of %lld bytes, at most %lld",
                       (long long)loop->extent * bytes, (long long)c->hw->vector_unit_bytes);
    return CDMPP_OK;
}

/* Everything in a vectorised loop; a guard on its variable makes a scalar loop. */
static cdmpp_status vector_loop(const checker *c, int32_t loop) {
    const cd_ast_node *l = &c->t->node[loop];
    for (int32_t k = loop + 1; k < l->end; k++) {
        const cd_ast_node *n = &c->t->node[k];
        if (n->dead) continue;
        if (n->kind == CD_AST_IF && cd_expr_uses(n->e, l->var)) k = n->end - 1;
        else if (n->kind == CD_AST_STORE) CD_TRY(vector_store(c, n, l));
    }
    return CDMPP_OK;
}

static cdmpp_status check_vectors(const checker *c) {
    for (int32_t k = 0; k < c->t->n; k++) {
        const cd_ast_node *n = &c->t->node[k];
        if (n->dead || n->kind != CD_AST_FOR || n->loop != CD_LOOP_VECTORIZED) continue;
        CD_TRY(vector_loop(c, k));
        k = n->end - 1; /* TVM ignores vectorised loops inside vectorised ones */
    }
    return CDMPP_OK;
}

/* ---- virtual threads ---- */

static bool touched(const checker *c, int32_t from, int32_t end, const cd_expr *var) {
    for (int32_t k = from; k < end; k++) {
        const cd_ast_node *n = &c->t->node[k];
        if (n->dead || n->kind != CD_AST_STORE) continue;
        if (cd_expr_uses(n->e, var)) return true;
        for (uint32_t d = 0; d < n->n; d++)
            if (cd_expr_uses(n->x[d], var)) return true;
    }
    return false;
}

/* Fewer than 16 virtual threads are unrolled at the store; more become a loop,
 * and only loops are checked. */
static cdmpp_status check_vthreads(const checker *c) {
    for (int32_t k = 0; k < c->t->n; k++) {
        const cd_ast_node *n = &c->t->node[k];
        if (n->dead || n->kind != CD_AST_THREAD || n->tag != CD_AST_TAG_VTHREAD) continue;
        if (n->extent >= 16 && n->extent > c->hw->max_vthread_extent &&
            touched(c, k, n->end, n->var))
            return CD_FAIL(c->err, EREJECTED, "%lld virtual threads, at most %lld",
                           (long long)n->extent, (long long)c->hw->max_vthread_extent);
    }
    return CDMPP_OK;
}

/* ---- kernels ---- */

/* Nodes k .. end-1 are one kernel. */
static cdmpp_status kernel(checker *c, int32_t k, int32_t end) {
    *c = (checker){.t = c->t, .tensors = c->tensors, .hw = c->hw, .err = c->err};
    for (; k < end; k++) {
        const cd_ast_node *n = &c->t->node[k];
        if (n->dead) continue;
        if (n->kind == CD_AST_THREAD) CD_TRY(thread(c, n));
        if (n->kind != CD_AST_REALIZE) continue;
        int64_t *sum = n->loop == 1 ? &c->shared_bytes : n->loop == 3 ? &c->local_bytes : NULL;
        if (sum && __builtin_add_overflow(*sum, realize_bytes(c, n), sum)) *sum = INT64_MAX;
    }
    int64_t threads = 1;
    for (int t = 0; t < CD_AST_TAG_COUNT; t++)
        if (c->thread[t]) threads = saturating_mul(threads, c->thread[t]);
    if (threads > c->hw->max_threads_per_block)
        return CD_FAIL(c->err, EREJECTED, "%lld threads per block, at most %lld",
                       (long long)threads, (long long)c->hw->max_threads_per_block);
    if (c->shared_bytes > c->hw->max_shared_memory_per_block)
        return CD_FAIL(c->err, EREJECTED, "%lld bytes of shared memory, at most %lld",
                       (long long)c->shared_bytes, (long long)c->hw->max_shared_memory_per_block);
    if (c->local_bytes > c->hw->max_local_memory_per_block)
        return CD_FAIL(c->err, EREJECTED, "%lld bytes of local memory, at most %lld",
                       (long long)c->local_bytes, (long long)c->hw->max_local_memory_per_block);
    return CDMPP_OK;
}

cdmpp_status cd_gpu_limits_check(const cd_ast *t, const cd_tensors *tensors, const cd_hardware *hw,
                                 cdmpp_err *err) {
    checker c = {.t = t, .tensors = tensors, .hw = hw, .err = err};
    for (int32_t k = 0; k < t->n; k++) {
        if (t->node[k].dead || t->node[k].kind != CD_AST_THREAD) continue;
        CD_TRY(kernel(&c, k, t->node[k].end));
        k = t->node[k].end - 1;
    }
    CD_TRY(check_vectors(&c));
    return check_vthreads(&c);
}
