/* The whole way of a record: steps applied to the task's schedule, bounds, loop nest,
 * simplification, limits of a GPU, rows. One function a stage of it, all of them in other rooms;
 * docs/internals/record-to-seconds.md follows a record through them. */
#include "features/program/program.h"

#include <string.h>

#include "features/schedule/schedule.h"

/* Would TVM's GPU verification accept the program? (docs/internals/ansor.md, GPU checks) */

struct cd_program {
    cd_schedule sched;
    cd_ast ast;
    cd_leaf_ws *leaf;
    bool pack; /* of the last lowering: program_nest.h */
    uint32_t vector_bytes;
    int64_t most_shared; /* bytes of a block, while a GPU's program is built; 0: not checked */
};

/* TVM's GPU verification without its passes: threads, memory and vectors are counted on the nest as
 * it is. TVM flattens, vectorizes and allocates first; the outcome was the same for all of 395
 * random programs. */

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

/* Per kernel (outermost thread scope): threads per block, shared and local
 * memory, vector width against the task's limits. Errors: EREJECTED. */
static cdmpp_status gpu_limits_check(const cd_ast *t, const cd_tensors *tensors,
                                     const cd_hardware *hw, cdmpp_err *err) {
    checker c = {.t = t, .tensors = tensors, .hw = hw, .err = err};
    for (int32_t k = 0; k < t->n; k++) {
        if (t->node[k].dead || t->node[k].kind != CD_AST_THREAD) continue;
        CD_TRY(kernel(&c, k, t->node[k].end));
        k = t->node[k].end - 1;
    }
    CD_TRY(check_vectors(&c));
    return check_vthreads(&c);
}

cdmpp_status cd_program_new(cd_program **out, cdmpp_err *err) {
    cd_program *p = cd_mem_zalloc(1, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "program");
    p->ast.open = -1;
    cdmpp_status st = cd_schedule_init(&p->sched, err);
    if (!st) st = cd_leaf_ws_new(&p->leaf, err);
    if (st) {
        cd_program_free(p);
        return st;
    }
    *out = p;
    return CDMPP_OK;
}

void cd_program_free(cd_program *p) {
    if (!p) return;
    cd_schedule_free(&p->sched);
    cd_ast_free(&p->ast);
    cd_leaf_ws_free(p->leaf);
    cd_mem_free(p);
}

static cd_tensor_info tensor_info(const void *ctx, uint32_t tensor) {
    const cd_schedule *s = ctx;
    const cd_schedule_op *op = &s->op[s->tensor_op.p[tensor]];
    return (cd_tensor_info){op->rank, op->shape,
                            cd_expr_dtype_bytes(op->dtype[tensor - op->first_tensor])};
}

/* The record's own hardware numbers come first, then the task file's. */
static cdmpp_status hardware(const cd_task *task, const cd_record *r, cd_hardware *out,
                             cdmpp_err *err) {
    if (r->has_hardware) *out = r->hardware;
    else if (task->has_hardware) *out = task->hardware;
    else *out = (cd_hardware){.num_cores = 1, .vector_unit_bytes = 64, .cache_line_bytes = 64};
    if (out->cache_line_bytes < 1)
        return CD_FAIL(err, EINVALID, "cache line of %lld bytes", (long long)out->cache_line_bytes);
    return CDMPP_OK;
}

/* What went wrong after a refused expression is only its consequence. */
static cdmpp_status verdict(const cd_program *p, cdmpp_status st, cdmpp_err *err) {
    if (!p->sched.pool.big) return st;
    return CD_FAIL(err, EUNSUPPORTED, "an expression of more than %d nodes or %d levels",
                   CD_EXPR_MAX_SIZE, CD_EXPR_MAX_DEPTH);
}

/* The refusal of gpu_limits_check that is most frequent, found from the bounds alone: it saves
 * half of the work on such a program. Only regions whose extents are all known count, so the sum is
 * never more than what the check finds. */
static cdmpp_status check_shared(cd_schedule *s, int64_t most, cdmpp_err *err) {
    int64_t *bytes = cd_arena_zalloc(&s->arena, (size_t)s->n_stage + 1, sizeof *bytes);
    if (!bytes) return CD_FAIL(err, ENOMEM, "shared memory of stages");
    for (uint32_t k = 0; k < s->order.n; k++) {
        const cd_schedule_stage *st = cd_schedule_stage_at(s, k), *root = st;
        if (st->attach != CD_SCHEDULE_AT_SCOPE || !st->scope[0] ||
            cd_schedule_scope_rank(st->scope) != 1)
            continue;
        const cd_schedule_op *op = cd_schedule_stage_op(s, st);
        int64_t n = (int64_t)cd_expr_dtype_bytes(op->dtype[0]);
        for (uint32_t d = 0; d < op->n_axis; d++) {
            const cd_expr *e = s->iv[op->axis[d]].r_ext;
            if (!e || e->op != CD_INT || __builtin_mul_overflow(n, e->u.i, &n)) n = 0;
        }
        for (int32_t guard = 0; root->attach == CD_SCHEDULE_AT_SCOPE && guard <= s->n_stage;
             guard++)
            root = &s->stage[root->at_stage];
        if (!root->leaf.n || s->iv[root->leaf.p[0]].thread < 0) continue; /* no kernel as a whole */
        int64_t *sum = &bytes[root - s->stage];
        if (__builtin_add_overflow(*sum, n, sum)) *sum = INT64_MAX;
        if (*sum > most)
            return CD_FAIL(err, EREJECTED, "%lld bytes of shared memory, at most %lld",
                           (long long)*sum, (long long)most);
    }
    return CDMPP_OK;
}

static cdmpp_status lower(cd_program *p, const cd_task *task, const cd_record *r, cdmpp_err *err) {
    cd_schedule *s = &p->sched;
    if (!task->dag)
        return CD_FAIL(err, ENOTASK, "the task's definition could not be read: %s",
                       task->why ? task->why->msg : "it is not known why");
    cd_ast_clear(&p->ast);
    cd_schedule_start(s, task->dag);
    if (s->oom) return CD_FAIL(err, ENOMEM, "program");
    CD_TRY(cd_schedule_apply(s, r, err));
    CD_TRY(cd_schedule_normalize(s, err));
    CD_TRY(cd_schedule_infer_bound(s, err));
    if (p->most_shared) CD_TRY(check_shared(s, p->most_shared, err));
    CD_TRY(cd_schedule_lower(s, &p->ast, err));
    return cd_ast_simplify(&p->ast, s->simp, &s->pool, err);
}

cdmpp_status cd_program_lower(cd_program *p, const cd_task *task, const cd_record *r,
                              cdmpp_err *err) {
    p->sched.real_const = false;
    p->pack = r->layout_rewrite == 2;
    p->vector_bytes = cd_target_vector_bytes(r->target);
    return verdict(p, lower(p, task, r, err), err);
}

cdmpp_status cd_program_lower_loops(cd_program *p, const cd_task *task, const cd_record *r,
                                    cdmpp_err *err) {
    p->sched.every_loop = true;
    const cdmpp_status st = cd_program_lower(p, task, r, err);
    p->sched.every_loop = false;
    return st;
}

cdmpp_status cd_program_lower_code(cd_program *p, const cd_task *task, const cd_record *r,
                                   cdmpp_err *err) {
    p->sched.real_const = true;
    const cdmpp_status st = verdict(p, lower(p, task, r, err), err);
    p->sched.real_const = false;
    p->pack = r->layout_rewrite == 2;
    p->vector_bytes = cd_target_vector_bytes(r->target);
    return st;
}

/* Products of extents may leave float's range; no model can use such rows. */
static cdmpp_status finite(const float *row, size_t n, cdmpp_err *err) {
    const uint32_t top = 0x7f800000U; /* exponent of infinities and NaN */
    uint32_t bits, bad = 0;
    for (size_t i = 0; i < n; i++) {
        memcpy(&bits, &row[i], sizeof bits);
        bad |= (bits & top) == top;
    }
    return bad ? CD_FAIL(err, ENUMERIC, "a feature that is not finite") : CDMPP_OK;
}

static cdmpp_status extract(cd_program *p, const cd_tensors *tensors, int64_t cache_line,
                            cd_rows *out, cdmpp_err *err) {
    cd_schedule *s = &p->sched;
    CD_TRY(cd_leaf_extract(p->leaf, &s->arena, &p->ast, &s->pool, s->simp, tensors, cache_line, out,
                           err));
    CD_TRY(finite(out->row, (size_t)out->n_row * CD_N_COL, err));
    return finite(out->leaf, (size_t)out->n_leaf * CD_N_COL, err);
}

cdmpp_status cd_program_build(cd_program *p, const cd_task *task, const cd_record *r, cd_rows *out,
                              cdmpp_err *err) {
    cd_hardware hw;
    CD_TRY(hardware(task, r, &hw, err));
    const bool known = r->has_hardware || task->has_hardware,
               gpu = known && cd_target_is_gpu(r->target);
    p->most_shared = gpu && hw.max_shared_memory_per_block > 0 ? hw.max_shared_memory_per_block : 0;
    const cdmpp_status st = cd_program_lower(p, task, r, err);
    p->most_shared = 0;
    CD_TRY(st);
    const cd_tensors tensors = {tensor_info, &p->sched, p->sched.tensor_op.n};
    if (gpu) CD_TRY(gpu_limits_check(&p->ast, &tensors, &hw, err));
    return verdict(p, extract(p, &tensors, hw.cache_line_bytes, out, err), err);
}

/* Of the last build: how many of its SP steps note another extent than that of the axis they split:
 * a schedule found for another shape, or not of this task. */
static uint32_t program_foreign_extents(const cd_program *p) { return p->sched.n_foreign; }

cdmpp_status cd_program_print(const cd_program *p, cd_buf *out, cdmpp_err *err) {
    const cd_names raw = {cd_schedule_name, &p->sched};
    cd_unique_names table;
    CD_TRY(cd_unique_names_init(&table, &p->ast, &raw, p->sched.pool.n_var, p->sched.tensor_op.n,
                                err));
    const cd_names names = {cd_unique_names_get, &table};
    cd_ast_print(&p->ast, out, &names);
    cd_unique_names_free(&table);
    return out->oom ? CD_FAIL(err, ENOMEM, "print") : CDMPP_OK;
}

/* Every node that is alive is a line; the leaves are the stores. */
void cd_program_leaf_lines(const cd_program *p, int32_t *line, size_t n_leaf) {
    int32_t at = 0;
    for (int32_t k = 0; k < p->ast.n; k++) {
        if (p->ast.node[k].dead) continue;
        if (p->ast.node[k].kind == CD_AST_STORE && n_leaf) {
            *line++ = at;
            n_leaf--;
        }
        at++;
    }
}

/* Tensors of a program for code generators: names, shapes, memory scopes, which are parameters. */

static const char *scope_of(const cd_schedule *s, int32_t op) {
    for (int32_t k = 0; k < s->n_stage; k++)
        if (s->stage[k].op == op && s->stage[k].scope) return s->stage[k].scope;
    return "";
}

/* The name is in a ring of few: keep a copy. */
static const char *name_of(cd_schedule *s, uint32_t t) {
    return cd_arena_text(&s->arena, cd_schedule_name(s, CD_LOAD, t));
}

static bool fill(cd_schedule *s, uint32_t t, cd_nest_tensor *out) {
    const cd_schedule_op *op = &s->op[s->tensor_op.p[t]];
    *out = (cd_nest_tensor){.name = name_of(s, t),
                            .scope = scope_of(s, s->tensor_op.p[t]),
                            .rank = op->rank,
                            .shape = op->shape,
                            .dtype = op->dtype[t - op->first_tensor],
                            .arg = -1,
                            .written = !op->is_placeholder,
                            .reducer = op->red,
                            .output = t - op->first_tensor};
    out->layout_free = t < s->dag->n_tensor && s->dag->op[s->dag->tensor_op[t]].layout_free;
    return out->name != NULL;
}

cdmpp_status cd_program_nest(cd_program *p, cd_nest *out, cdmpp_err *err) {
    cd_schedule *s = &p->sched;
    const uint32_t n = s->tensor_op.n;
    cd_nest_tensor *t = cd_arena_alloc(&s->arena, n + 1, sizeof *t);
    if (!t) return CD_FAIL(err, ENOMEM, "nest of %u tensors", n);
    for (uint32_t k = 0; k < n; k++)
        if (!fill(s, k, &t[k])) return CD_FAIL(err, ENOMEM, "nest of %u tensors", n);
    for (uint32_t k = 0; k < s->dag->n_arg; k++) t[s->dag->arg[k]].arg = (int32_t)k;
    *out = (cd_nest){.ast = &p->ast,
                     .n_tensor = n,
                     .n_arg = s->dag->n_arg,
                     .n_var = s->pool.n_var,
                     .tensor = t,
                     .arg = s->dag->arg,
                     .names = {cd_schedule_name, s},
                     .pack = p->pack,
                     .vector_bytes = p->vector_bytes ? p->vector_bytes : 32};
    return CDMPP_OK;
}

/* Two graphs may stand behind one workload key, because the key's hash does not see how wide a
 * padding is. A record names the key only; what its steps say decides, or nothing does. */

typedef struct {
    const cd_task *first, *noted; /* that fits; whose extents are those that the steps note */
    cd_hash rows, noted_rows;
    bool differ, noted_differ;
} choice;

static cd_hash hash_of(const cd_rows *r) {
    cd_hash h = cd_hash_start();
    cd_hash_add(&h, r->row, (size_t)r->n_row * CD_N_COL * sizeof *r->row);
    cd_hash_add(&h, r->leaf, (size_t)r->n_leaf * CD_N_COL * sizeof *r->leaf);
    return h;
}

static void take(const cd_task **task, cd_hash *rows, bool *differ, const cd_task *t, cd_hash h) {
    if (*task) *differ |= h.a != rows->a || h.b != rows->b;
    else *task = t, *rows = h;
}

cdmpp_status cd_program_choose(cd_program *p, const cd_record *r, const cd_task **task,
                               cdmpp_err *err) {
    choice c = {0};
    if (!(*task)->twin) return CDMPP_OK;
    for (const cd_task *t = *task; t; t = t->twin) {
        cd_rows rows = {0};
        cdmpp_err why = {0};
        const cdmpp_status st = cd_program_build(p, t, r, &rows, &why);
        if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "%s", why.msg);
        if (st && st != CDMPP_EREJECTED) continue;
        if (st) rows = (cd_rows){0};
        const cd_hash h = hash_of(&rows);
        take(&c.first, &c.rows, &c.differ, t, h);
        if (!program_foreign_extents(p)) take(&c.noted, &c.noted_rows, &c.noted_differ, t, h);
    }
    if (c.differ && (!c.noted || c.noted_differ))
        return CD_FAIL(err, ENOTASK,
                       "several definitions of its task fit and give different rows; give one of "
                       "them for %.100s",
                       (*task)->workload_key);
    if (c.first) *task = c.differ ? c.noted : c.first;
    return CDMPP_OK;
}
