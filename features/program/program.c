/* The whole way of a record: steps applied to the task's schedule, bounds, loop nest,
 * simplification, limits of a GPU, rows. One function a stage of it, all of them in other rooms;
 * docs/internals/record-to-seconds.md follows a record through them. */
#include "features/program/program.h"

#include <string.h>

#include "features/program/program_internal.h"

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

/* The refusal of cd_gpu_limits_check that is most frequent, found from the bounds alone: it saves
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
    if (gpu) CD_TRY(cd_gpu_limits_check(&p->ast, &tensors, &hw, err));
    return verdict(p, extract(p, &tensors, hw.cache_line_bytes, out, err), err);
}

uint32_t cd_program_foreign_extents(const cd_program *p) { return p->sched.n_foreign; }

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
