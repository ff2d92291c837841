/* Our text form of tasks -> registry. Operators may stand in any order that defines before use;
 * they are put into TVM's stage order at the end, because steps of records refer to stage
 * numbers. */
#include "features/task/task_internal.h"

#include <string.h>

/* ---- what an op reads ---- */

typedef struct {
    const cd_te_dag *dag;
    uint32_t *stamp; /* (pool.n) op + 1 of the last walk */
    uint32_t *seen;  /* (n_tensor) likewise */
    uint32_t *in, n_in, cap_in, op;
    cd_arena *a;
    bool oom;
} reads;

/* Each tensor once per operator, in the order of first use: what stage order needs. */
static void add_read(reads *r, uint32_t tensor) {
    if (r->seen[tensor] == r->op + 1) return;
    r->seen[tensor] = r->op + 1;
    if (CD_GROW_IN(r->a, r->in, r->n_in, r->cap_in)) r->oom = true;
    else r->in[r->n_in++] = r->dag->tensor_op[tensor];
}

/* Depth is bounded by the parser. */
static void walk(reads *r, const cd_expr *e) {
    if (!(e->flags & CD_EXPR_HAS_LOAD) || r->stamp[e->id] == r->op + 1) return;
    r->stamp[e->id] = r->op + 1;
    for (uint32_t i = 0; i < e->n; i++) walk(r, e->a[i]);
    if (e->op == CD_LOAD) add_read(r, (uint32_t)e->u.i);
}

static void walk_op(reads *r, const cd_te_op *op) {
    for (uint32_t k = 0; op->body && k < op->n_out; k++) walk(r, op->body[k]);
    for (uint32_t k = 0; op->init && k < op->n_out; k++) walk(r, op->init[k]);
    if (op->cond) walk(r, op->cond);
}

/* ---- stage order ---- */

static const cd_expr *renumber(void *ctx, const cd_expr *e) {
    const uint32_t *number = *(uint32_t **)ctx;
    cd_te_dag *d = ((cd_te_dag **)ctx)[1];
    return e->op == CD_LOAD ? cd_expr_new_load(&d->pool, e->type, number[e->u.i], e->a, e->n) : e;
}

static cdmpp_status renumber_list(cd_task_file *f, uint32_t *number, const cd_expr *const **list,
                                  uint32_t n) {
    void *ctx[] = {number, f->dag};
    if (!*list) return CDMPP_OK;
    const cd_expr **out = CD_NEWN(&f->dag->arena, const cd_expr *, n);
    if (!out) return CD_FAIL(f->err, ENOMEM, "operators");
    for (uint32_t k = 0; k < n; k++)
        out[k] = cd_expr_map(&f->dag->pool, f->a, (*list)[k], renumber, ctx);
    *list = out;
    return CDMPP_OK;
}

static cdmpp_status renumber_op(cd_task_file *f, uint32_t *number, cd_te_op *op) {
    const cd_expr *const *cond = &op->cond;
    CD_TRY(renumber_list(f, number, &op->body, op->n_out));
    CD_TRY(renumber_list(f, number, &op->init, op->n_out));
    if (op->cond) {
        CD_TRY(renumber_list(f, number, &cond, 1));
        op->cond = cond[0];
    }
    return CDMPP_OK;
}

/* Put the ops into stage order and number tensors anew. */
static cdmpp_status reorder(cd_task_file *f, const uint32_t *order) {
    cd_te_dag *d = f->dag;
    cd_te_op *op = CD_NEWN(&d->arena, cd_te_op, d->n_op);
    uint32_t *number = CD_NEWN(f->a, uint32_t, d->n_tensor), next = 0;
    bool moved = false;
    if (!op || !number) return CD_FAIL(f->err, ENOMEM, "operators");
    for (uint32_t i = 0; i < d->n_op; i++) {
        moved = moved || order[i] != i;
        op[i] = d->op[order[i]];
        for (uint32_t k = 0; k < op[i].n_out; k++) number[op[i].first_tensor + k] = next + k;
        op[i].first_tensor = next;
        next += op[i].n_out;
    }
    if (!moved) return CDMPP_OK;
    d->op = op;
    for (uint32_t k = 0; k < d->n_arg; k++) d->arg[k] = number[d->arg[k]];
    for (uint32_t i = 0; i < d->n_op; i++) CD_TRY(renumber_op(f, number, &op[i]));
    return CDMPP_OK;
}

/* Arguments: as given, else all placeholders, then all tensors that no op reads. */
static cdmpp_status arguments(cd_task_file *f, const cd_json *list, const reads *r) {
    cd_te_dag *d = f->dag;
    const cd_json *it = NULL;
    if (list) CD_TRY(cd_err_key(f->err, cd_json_arr(list, 1, &it, f->err), "args"));
    d->arg = CD_NEWN(&d->arena, uint32_t, list ? list->n : d->n_tensor);
    uint8_t *is_read = CD_NEWN(f->a, uint8_t, d->n_op);
    if (!d->arg || !is_read) return CD_FAIL(f->err, ENOMEM, "arguments");
    for (uint32_t i = 0; it; it = it->next, i++) {
        cd_dtype type;
        cd_str s = {"", 0};
        cdmpp_status st = cd_json_str(it, &s, f->err);
        if (!st && !cd_task_file_find_tensor(f, s, &d->arg[d->n_arg++], &type))
            st = CD_FAIL(f->err, ESCHEMA, "no tensor \"%.*s\"", cd_str_shown(s, 60), s.p);
        if (st) return cd_err_key(f->err, cd_err_index(f->err, st, i), "args");
    }
    for (uint32_t i = 0; i < r->n_in; i++) is_read[r->in[i]] = 1;
    for (unsigned pass = 0; !list && pass < 2; pass++)
        for (uint32_t t = 0; t < d->n_tensor; t++) {
            const cd_te_op *op = &d->op[d->tensor_op[t]];
            if (pass == 0 ? op->is_placeholder : !op->is_placeholder && !is_read[d->tensor_op[t]])
                d->arg[d->n_arg++] = t;
        }
    return CDMPP_OK;
}

/* Tensors were numbered in file order while reading; after sorting they are numbered anew and loads
 * are rewritten. */
static cdmpp_status place_ops(cd_task_file *f, const cd_json *args) {
    cd_te_dag *d = f->dag;
    reads r = {.dag = d, .a = f->a};
    r.stamp = CD_NEWN(f->a, uint32_t, d->pool.n);
    r.seen = CD_NEWN(f->a, uint32_t, d->n_tensor);
    d->tensor_op = CD_NEWN(&d->arena, uint32_t, d->n_tensor);
    uint32_t *in_ptr = CD_NEWN(f->a, uint32_t, d->n_op + 1),
             *order = CD_NEWN(f->a, uint32_t, d->n_op);
    uint32_t *arg_op, n;
    if (!r.stamp || !r.seen || !d->tensor_op || !in_ptr || !order)
        return CD_FAIL(f->err, ENOMEM, "operators");
    for (uint32_t i = 0; i < d->n_op; i++)
        for (uint32_t k = 0; k < d->op[i].n_out; k++) d->tensor_op[d->op[i].first_tensor + k] = i;
    for (r.op = 0; r.op < d->n_op; r.op++) {
        in_ptr[r.op] = r.n_in;
        walk_op(&r, &d->op[r.op]);
    }
    in_ptr[d->n_op] = r.n_in;
    CD_TRY(arguments(f, args, &r));
    if (r.oom || !(arg_op = CD_NEWN(f->a, uint32_t, d->n_arg)))
        return CD_FAIL(f->err, ENOMEM, "operators");
    for (uint32_t k = 0; k < d->n_arg; k++) arg_op[k] = d->tensor_op[d->arg[k]];
    const cd_te_reads all = {d->n_op, d->n_arg, in_ptr, r.in, arg_op};
    CD_TRY(cd_te_stage_order(f->a, &all, order, &n, f->err));
    if (n != d->n_op)
        return CD_FAIL(f->err, ESCHEMA, "%u of %u ops are not needed for the arguments",
                       d->n_op - n, d->n_op);
    return reorder(f, order);
}

/* ---- tasks ---- */

static cdmpp_status read_ops(cd_task_file *f, const cd_json *task) {
    const cd_json *ops = cd_json_get(task, "ops"), *it;
    CD_TRY(cd_err_key(f->err, cd_json_arr(ops, 1, &it, f->err), "ops"));
    f->dag->op = CD_NEWN(&f->dag->arena, cd_te_op, ops->n);
    if (!f->dag->op) return CD_FAIL(f->err, ENOMEM, "operators");
    for (uint32_t i = 0; i < ops->n; i++, it = it->next) {
        const cdmpp_status st = cd_task_file_op(f, it);
        if (st) return cd_err_key(f->err, cd_err_index(f->err, st, i), "ops");
    }
    CD_TRY(place_ops(f, cd_json_get(task, "args")));
    return cd_te_dag_finish(f->dag, f->err);
}

/* All eight numbers must be there. */
static cdmpp_status read_hardware(const cd_json *v, cd_hardware *h, cdmpp_err *err) {
    static const struct {
        const char *name;
        size_t at;
    } field[] = {
#define CD_X(name) {#name, offsetof(cd_hardware, name)},
        CD_HARDWARE_MAP(CD_X)
#undef CD_X
    };
    for (size_t k = 0; k < sizeof field / sizeof *field; k++) {
        int64_t i;
        CD_TRY(cd_err_key(err,
                          cd_json_int(cd_json_get(v, field[k].name), INT64_MIN, INT64_MAX, &i, err),
                          field[k].name));
        memcpy((char *)h + field[k].at, &i, sizeof i);
    }
    return CDMPP_OK;
}

/* Optional text member, copied into the registry. */
static cdmpp_status text_member(cd_task_registry *t, const cd_json *v, const char *key,
                                const char **out, cdmpp_err *err) {
    cd_str s = {"", 0};
    v = cd_json_get(v, key);
    if (v) CD_TRY(cd_err_key(err, cd_json_str(v, &s, err), key));
    *out = cd_str_dup(&t->arena, s);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "task");
}

/* The line of a task. Its key is a part of the text, unless it has escapes: then the task's first
 * member that is one says it. 0: none is. */
static long line_of(const cd_task_registry *t, const cd_json *task) {
    const cd_json *m = task->u.child;
    long line = 1;
    while (m && !(m->key.p >= t->text && m->key.p < t->end)) m = m->next;
    for (const char *p = t->text; m && p < m->key.p; p++) line += *p == '\n';
    return m ? line : 0;
}

/* Its operators. A key that is known keeps those that it has. */
static cdmpp_status define(cd_task_registry *t, cd_arena *a, const cd_json *v, cd_task_entry *e,
                           cdmpp_err *err) {
    cd_task_file f = {.a = a, .err = err};
    if (e->pub.dag && !cd_json_get(v, "ops")) return CDMPP_OK;
    CD_TRY(cd_te_dag_new(&f.dag, err));
    cdmpp_status st = read_ops(&f, v);
    /* whatever else it looked like */
    if (f.dag->pool.oom) st = CD_FAIL(err, ENOMEM, "expressions");
    if (st) cd_te_dag_free(f.dag);
    else if (e->pub.dag) st = cd_task_again(t, e, f.dag, false, line_of(t, v), err);
    else cd_task_set_dag(t, e, f.dag);
    return st;
}

static cdmpp_status read_task(cd_task_registry *t, cd_arena *a, const cd_json *v, cdmpp_err *err) {
    cd_str key;
    cd_task_entry *e;
    const char *target, *kind;
    CD_TRY(cd_err_key(err, cd_json_str(cd_json_get(v, "workload_key"), &key, err), "workload_key"));
    CD_TRY(text_member(t, v, "target", &target, err));
    kind = cd_str_dup(&t->arena, (cd_str){target, strcspn(target, " ")});
    if (!kind) return CD_FAIL(err, ENOMEM, "task");
    CD_TRY(cd_task_registry_entry(t, key, kind, &e, err));
    if (e->pub.dag && e->pub.target[0]) return define(t, a, v, e, err); /* known */
    e->pub.target = target;
    e->pub.target_kind = kind;
    CD_TRY(text_member(t, v, "desc", &e->pub.desc, err));
    if (cd_json_get(v, "hardware")) {
        CD_TRY(cd_err_key(err, read_hardware(cd_json_get(v, "hardware"), &e->pub.hardware, err),
                          "hardware"));
        e->pub.has_hardware = true;
    }
    return define(t, a, v, e, err);
}

/* One arena for the scratch of all tasks, reset between them. */
cdmpp_status cd_task_file_load(cd_task_registry *t, const cd_json *top, cdmpp_err *err) {
    cd_str schema;
    int64_t version;
    const cd_json *it, *list = cd_json_get(top, "tasks");
    cd_arena a = {0};
    CD_TRY(cd_err_key(err, cd_json_str(cd_json_get(top, "schema"), &schema, err), "schema"));
    if (!cd_str_is(schema, CD_TASK_FILE_SCHEMA))
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected \"%s\"", CD_TASK_FILE_SCHEMA),
                          "schema");
    CD_TRY(cd_err_key(
        err, cd_json_int(cd_json_get(top, "version"), 1, CD_TASK_FILE_VERSION, &version, err),
        "version"));
    CD_TRY(cd_err_key(err, cd_json_arr(list, 0, &it, err), "tasks"));
    cdmpp_status st = CDMPP_OK;
    for (uint32_t i = 0; !st && i < list->n; i++, it = it->next) {
        cd_arena_reset(&a);
        st = cd_err_index(err, read_task(t, &a, it, err), i);
        if (st) cd_err_key(err, st, "tasks");
    }
    cd_arena_free(&a);
    return st;
}
