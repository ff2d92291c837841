/* Registry -> our text form. Names that the notation cannot hold, or that are taken twice, are
 * replaced by made-up ones; the original name stays as "name", the other becomes "ref". */
#include <string.h>

#include "features/task/task_internal.h"

typedef struct {
    cd_buf *out;
    cd_arena *a; /* one task's names */
    const cd_te_dag *dag;
    const char **tensor; /* (n_tensor) names in expressions */
    const char **var;    /* (pool.n_var) likewise, NULL: not of this op */
    cd_buf text;         /* one expression, before it is escaped */
    cdmpp_err *err;
} writer;

static cdmpp_status no_memory(writer *w) { return CD_FAIL(w->err, ENOMEM, "task file"); }

static void put_str(writer *w, const char *s) { cd_buf_put_json_str(w->out, s, strlen(s)); }

static void put_member(writer *w, const char *key, const char *value) {
    cd_buf_putf(w->out, ", \"%s\": ", key);
    put_str(w, value);
}

/* ---- names ---- */

static const char *name_of(const void *ctx, cd_expr_op kind, uint32_t number) {
    const writer *w = ctx;
    if (kind == CD_LOAD) return w->tensor[number];
    return w->var[number] ? w->var[number] : "?";
}

/* `name` if it is an identifier that nobody took, else made up from `head` and a number. */
static const char *pick(writer *w, const char *name, bool taken, const char *head,
                        uint32_t number) {
    if (!taken && cd_te_is_identifier(name, strlen(name))) return name;
    char buf[32];
    cd_buf b = {0};
    cd_buf_putf(&b, "%s_%u", head, number);
    const size_t n = b.n < sizeof buf ? b.n : sizeof buf - 1;
    const char *z = b.p ? cd_str_dup(w->a, (cd_str){b.p, n}) : NULL;
    cd_buf_free(&b);
    return z;
}

/* Is the name that of another op, or could it be one of the made-up ones? */
static bool op_name_taken(const cd_te_dag *d, uint32_t i) {
    const char *name = d->op[i].name;
    if (!strncmp(name, "t_", 2)) return true;
    for (uint32_t k = 0; k < d->n_op; k++)
        if (k != i && !strcmp(d->op[k].name, name)) return true;
    return strstr(name, ".v") != NULL;
}

/* Outputs of one operator are ref.v0, ref.v1 ... */
static cdmpp_status name_tensors(writer *w) {
    const cd_te_dag *d = w->dag;
    w->tensor = CD_NEWN(w->a, const char *, d->n_tensor);
    w->var = CD_NEWN(w->a, const char *, d->pool.n_var + 1);
    if (!w->tensor || !w->var) return no_memory(w);
    for (uint32_t i = 0; i < d->n_op; i++) {
        const cd_te_op *op = &d->op[i];
        const char *ref = pick(w, op->name, op_name_taken(d, i), "t", i);
        if (!ref) return no_memory(w);
        w->tensor[op->first_tensor] = ref;
        for (uint32_t k = 0; op->n_out > 1 && k < op->n_out; k++) {
            cd_buf b = {0};
            cd_buf_putf(&b, "%s.v%u", ref, k);
            w->tensor[op->first_tensor + k] = b.p ? cd_str_dup(w->a, (cd_str){b.p, b.n}) : NULL;
            cd_buf_free(&b);
            if (!w->tensor[op->first_tensor + k]) return no_memory(w);
        }
    }
    return CDMPP_OK;
}

static cdmpp_status name_axes(writer *w, const cd_te_iter *it, uint32_t n, const cd_te_iter *others,
                              uint32_t n_other, const char *head) {
    for (uint32_t i = 0; i < n; i++) {
        bool taken = !strncmp(it[i].name, "r_", 2) || !strncmp(it[i].name, "s_", 2);
        for (uint32_t k = 0; k < n; k++)
            taken = taken || (k != i && !strcmp(it[i].name, it[k].name));
        for (uint32_t k = 0; k < n_other; k++) taken = taken || !strcmp(it[i].name, others[k].name);
        if (!(w->var[it[i].var->u.i] = pick(w, it[i].name, taken, head, i))) return no_memory(w);
    }
    return CDMPP_OK;
}

/* ---- expressions ---- */

static cdmpp_status put_expr(writer *w, const cd_expr *e) {
    const cd_names names = {.name = name_of, .ctx = w};
    cd_buf_clear(&w->text);
    CD_TRY(cd_te_unparse(&w->text, e, &names, w->err));
    cd_buf_put_json_str(w->out, w->text.p ? w->text.p : "", w->text.n);
    return CDMPP_OK;
}

static cdmpp_status put_exprs(writer *w, const char *key, const cd_expr *const *e, uint32_t n) {
    cd_buf_putf(w->out, "\"%s\": [", key);
    for (uint32_t i = 0; i < n; i++) {
        if (i) cd_buf_puts(w->out, ", ");
        CD_TRY(put_expr(w, e[i]));
    }
    cd_buf_puts(w->out, "]");
    return CDMPP_OK;
}

/* A bound: plain number when it has the axis' type, else an expression in which
 * a literal says its type. */
static cdmpp_status put_bound(writer *w, const cd_expr *e, cd_dtype type) {
    if (!cd_expr_is_int(e)) return put_expr(w, e);
    if (e->type == type) cd_buf_putf(w->out, "%lld", (long long)e->u.i);
    else if (e->type == CD_I32) cd_buf_putf(w->out, "\"%lld:int32\"", (long long)e->u.i);
    else return put_expr(w, e);
    return CDMPP_OK;
}

/* The short form [name, min, extent] is for int32 axes whose own name can be used. */
static cdmpp_status put_axis(writer *w, const cd_te_iter *it) {
    const cd_dtype type = it->var->type;
    const char *ref = w->var[it->var->u.i];
    const bool brief = type == CD_I32 && !strcmp(ref, it->name);
    char buf[16];
    cd_buf_puts(w->out, brief ? "[" : "{\"name\": ");
    put_str(w, it->name);
    if (!brief) {
        put_member(w, "ref", ref);
        put_member(w, "dtype", cd_expr_dtype_format(type, buf, sizeof buf));
    }
    cd_buf_puts(w->out, brief ? ", " : ", \"min\": ");
    CD_TRY(put_bound(w, it->min, type));
    cd_buf_puts(w->out, brief ? ", " : ", \"extent\": ");
    CD_TRY(put_bound(w, it->extent, type));
    cd_buf_puts(w->out, brief ? "]" : "}");
    return CDMPP_OK;
}

static cdmpp_status put_axes(writer *w, const char *key, const cd_te_iter *it, uint32_t n) {
    cd_buf_putf(w->out, ", \"%s\": [", key);
    for (uint32_t i = 0; i < n; i++) {
        if (i) cd_buf_puts(w->out, ", ");
        CD_TRY(put_axis(w, &it[i]));
    }
    cd_buf_puts(w->out, "]");
    return CDMPP_OK;
}

/* ---- reducers ---- */

/* "sum", "max", "min" when the reducer is exactly what that name stands for. */
static const char *reducer_name(const cd_te_op *op) {
    const cd_te_reducer *r = op->red;
    const cd_expr *e = r->result[0], *id = r->identity[0];
    if (r->n != 1 || (e->op != CD_ADD && e->op != CD_MAX && e->op != CD_MIN)) return NULL;
    if (e->a[0] != r->lhs[0] || e->a[1] != r->rhs[0]) return NULL;
    cd_expr_pool p;
    if (cd_expr_pool_init(&p, NULL, NULL)) return NULL;
    const cd_expr *want = cd_te_identity(&p, (cd_expr_op)e->op, op->dtype[0]);
    const bool same =
        want->op == id->op && want->type == id->type && memcmp(&want->u, &id->u, sizeof id->u) == 0;
    cd_expr_pool_free(&p);
    return !same ? NULL : e->op == CD_ADD ? "sum" : e->op == CD_MAX ? "max" : "min";
}

static cdmpp_status put_vars(writer *w, const char *key, const cd_expr *const *var, uint32_t n) {
    cd_buf_putf(w->out, "\"%s\": [", key);
    for (uint32_t k = 0; k < n; k++) {
        const char *name = pick(w, "", true, key, k);
        if (!name) return no_memory(w);
        w->var[var[k]->u.i] = name;
        cd_buf_putf(w->out, "%s\"%s\"", k ? ", " : "", name);
    }
    cd_buf_puts(w->out, "], ");
    return CDMPP_OK;
}

/* By name where the name means exactly this reducer, else written out. */
static cdmpp_status put_reducer(writer *w, const cd_te_op *op) {
    const cd_te_reducer *r = op->red;
    const char *name = reducer_name(op);
    if (name) {
        put_member(w, "reduce", name);
        return CDMPP_OK;
    }
    cd_buf_puts(w->out, ", \"reduce\": {");
    CD_TRY(put_vars(w, "lhs", r->lhs, r->n));
    CD_TRY(put_vars(w, "rhs", r->rhs, r->n));
    CD_TRY(put_exprs(w, "result", r->result, r->n));
    cd_buf_puts(w->out, ", ");
    CD_TRY(put_exprs(w, "identity", r->identity, r->n));
    cd_buf_puts(w->out, "}");
    return CDMPP_OK;
}

/* ---- operators and tasks ---- */

static void put_placeholder(writer *w, const cd_te_op *op) {
    char buf[16];
    cd_buf_puts(w->out, ", \"shape\": [");
    for (uint32_t k = 0; k < op->rank; k++)
        cd_buf_putf(w->out, "%s%lld", k ? ", " : "", (long long)op->shape[k]);
    cd_buf_puts(w->out, "]");
    put_member(w, "dtype", cd_expr_dtype_format(op->dtype[0], buf, sizeof buf));
}

/* Axes of both kinds are named before anything refers to them. */
static cdmpp_status put_compute(writer *w, const cd_te_op *op) {
    CD_TRY(name_axes(w, op->axis, op->n_axis, op->raxis, op->n_raxis, "s"));
    CD_TRY(name_axes(w, op->raxis, op->n_raxis, op->axis, op->n_axis, "r"));
    CD_TRY(put_axes(w, "axis", op->axis, op->n_axis));
    if (op->n_raxis) CD_TRY(put_axes(w, "reduce_axis", op->raxis, op->n_raxis));
    if (op->red) CD_TRY(put_reducer(w, op));
    cd_buf_puts(w->out, ", ");
    CD_TRY(put_exprs(w, "body", op->body, op->n_out));
    if (op->cond) {
        cd_buf_puts(w->out, ", \"where\": ");
        CD_TRY(put_expr(w, op->cond));
    }
    if (op->init) {
        cd_buf_puts(w->out, ", ");
        CD_TRY(put_exprs(w, "init", op->init, op->n_out));
    }
    return CDMPP_OK;
}

/* Members that have their default value are left out. */
static cdmpp_status put_op(writer *w, uint32_t i) {
    const cd_te_op *op = &w->dag->op[i];
    cd_buf_puts(w->out, i ? ",\n      {\"name\": " : "\n      {\"name\": ");
    put_str(w, op->name);
    const char *ref = w->tensor[op->first_tensor];
    if (op->n_out > 1) ref = pick(w, op->name, op_name_taken(w->dag, i), "t", i);
    if (!ref) return no_memory(w);
    if (strcmp(ref, op->name) != 0) put_member(w, "ref", ref);
    if (op->tag[0]) put_member(w, "tag", op->tag);
    if (op->is_placeholder) put_placeholder(w, op);
    else CD_TRY(put_compute(w, op));
    if (op->const_matrix) cd_buf_puts(w->out, ", \"const_matrix\": true");
    if (op->simplify_const) cd_buf_puts(w->out, ", \"simplify_const\": true");
    if (op->layout_free) cd_buf_puts(w->out, ", \"layout_free\": true");
    if (op->flop_attr >= 0) cd_buf_putf(w->out, ", \"flop\": %.17g", op->flop_attr);
    cd_buf_puts(w->out, "}");
    return CDMPP_OK;
}

static void put_hardware(writer *w, const cd_hardware *h) {
    const char *sep = ",\n    \"hardware\": {";
#define CD_X(field)                                                                                \
    cd_buf_putf(w->out, "%s\"" #field "\": %lld", sep, (long long)h->field);                       \
    sep = ", ";
    CD_HARDWARE_MAP(CD_X)
#undef CD_X
    cd_buf_puts(w->out, "}");
}

/* Arguments are always written: their order cannot be derived in every case. */
static cdmpp_status put_task(writer *w, const cd_task *task) {
    w->dag = task->dag;
    CD_TRY(name_tensors(w));
    cd_buf_puts(w->out, "{\"workload_key\": ");
    put_str(w, task->workload_key);
    if (task->target[0]) cd_buf_puts(w->out, ",\n    \"target\": ");
    if (task->target[0]) put_str(w, task->target);
    if (task->has_hardware) put_hardware(w, &task->hardware);
    if (task->desc[0]) put_member(w, "desc", task->desc);
    cd_buf_puts(w->out, ",\n    \"args\": [");
    for (uint32_t k = 0; k < w->dag->n_arg; k++) {
        if (k) cd_buf_puts(w->out, ", ");
        put_str(w, w->tensor[w->dag->arg[k]]);
    }
    cd_buf_puts(w->out, "],\n    \"ops\": [");
    for (uint32_t i = 0; i < w->dag->n_op; i++) CD_TRY(put_op(w, i));
    cd_buf_puts(w->out, "\n    ]}");
    return CDMPP_OK;
}

static void put_network(writer *w, const cd_task_registry *t, const cd_network *net) {
    put_str(w, net->name);
    cd_buf_puts(w->out, ": [");
    for (uint32_t i = 0; i < net->n; i++) {
        cd_buf_puts(w->out, i ? ",\n    {\"workload_key\": " : "\n    {\"workload_key\": ");
        put_str(w, cd_task_registry_at(t, net->task[i])->workload_key);
        cd_buf_putf(w->out, ", \"weight\": %lld}", (long long)net->weight[i]);
    }
    cd_buf_puts(w->out, "]");
}

/* Tasks without a definition are left out, networks keep naming them. */
static cdmpp_status put_all(writer *w, const cd_task_registry *t) {
    const char *sep = "\n  ";
    cd_buf_putf(w->out, "{\"schema\": \"%s\", \"version\": %d, \"tasks\": [", CD_TASK_FILE_SCHEMA,
                CD_TASK_FILE_VERSION);
    for (size_t i = 0; i < cd_task_registry_count(t); i++) {
        if (!cd_task_registry_at(t, i)->dag) continue;
        cd_arena_reset(w->a);
        cd_buf_puts(w->out, sep);
        sep = ",\n  ";
        const cdmpp_status st = put_task(w, cd_task_registry_at(t, i));
        if (st) return cd_err_key(w->err, st, cd_task_registry_at(t, i)->workload_key);
    }
    cd_buf_puts(w->out, "\n]");
    for (size_t i = 0; i < cd_task_registry_network_count(t); i++) {
        cd_buf_puts(w->out, i ? ",\n  " : ", \"networks\": {\n  ");
        put_network(w, t, cd_task_registry_network(t, i));
    }
    cd_buf_puts(w->out, cd_task_registry_network_count(t) ? "}}\n" : "}\n");
    return CDMPP_OK;
}

cdmpp_status cd_task_registry_write(cd_buf *out, const cd_task_registry *t, cdmpp_err *err) {
    cd_arena a = {0};
    writer w = {.out = out, .a = &a, .err = err};
    cdmpp_status st = put_all(&w, t);
    if (!st && (out->oom || w.text.oom)) st = no_memory(&w);
    cd_buf_free(&w.text);
    cd_arena_free(&a);
    return st;
}
