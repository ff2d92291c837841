/* Our text form of tasks -> registry. Operators may stand in any order that defines before use;
 * they are put into TVM's stage order at the end, because steps of records refer to stage
 * numbers. */
#include <stdio.h>
#include <string.h>

#include "features/task/task_internal.h"

/* One operator of the text form -> one of the definition. Names are resolved while expressions are
 * read: an operator sees the tensors above it and its own axes, a combiner only its own
 * variables. */

#define NO_TYPE CD_DTYPE(CD_T_HANDLE, 64) /* a literal keeps its own */

/* ---- names ---- */

static cd_task_file_tensor *find(const cd_task_file *f, cd_str name) {
    uint32_t i = cd_task_hash(name) & (f->n_slot - 1);
    while (f->slot[i].name.p && !cd_str_eq(f->slot[i].name, name)) i = (i + 1) & (f->n_slot - 1);
    return &f->slot[i];
}

/* Tensor by name; false when unknown. */
static bool task_file_find_tensor(const void *ctx, cd_str name, uint32_t *number, cd_dtype *type) {
    const cd_task_file *f = ctx;
    const cd_task_file_tensor *t = f->n_slot ? find(f, name) : NULL;
    if (!t || !t->name.p) return false;
    *number = t->number;
    *type = t->type;
    return true;
}

static cdmpp_status grow_names(cd_task_file *f) {
    const uint32_t old = f->n_slot;
    const cd_task_file_tensor *slot = f->slot;
    if (old && f->dag->n_tensor * 2 < old) return CDMPP_OK;
    f->n_slot = old ? old * 2 : 64;
    f->slot = CD_NEWN(f->a, cd_task_file_tensor, f->n_slot);
    if (!f->slot) return CD_FAIL(f->err, ENOMEM, "tensors");
    for (uint32_t i = 0; i < old; i++)
        if (slot[i].name.p) *find(f, slot[i].name) = slot[i];
    return CDMPP_OK;
}

/* Enter the op's outputs as "ref" or "ref.v0", "ref.v1" ... */
static cdmpp_status name_outputs(cd_task_file *f, const cd_te_op *op, cd_str ref) {
    if (!cd_te_is_identifier(ref.p, ref.n))
        return CD_FAIL(f->err, ESCHEMA,
                       "\"%.*s\" cannot be used in expressions: give the op a \"ref\"",
                       cd_str_shown(ref, 60), ref.p);
    for (uint32_t k = 0; k < op->n_out; k++) {
        cd_str name = ref;
        if (op->n_out > 1) {
            char *z = CD_NEWN(f->a, char, ref.n + 16);
            if (!z) return CD_FAIL(f->err, ENOMEM, "tensors");
            name = (cd_str){z, (size_t)snprintf(z, ref.n + 16, "%.*s.v%u", (int)ref.n, ref.p, k)};
        }
        CD_TRY(grow_names(f));
        cd_task_file_tensor *t = find(f, name);
        if (t->name.p)
            return CD_FAIL(f->err, ESCHEMA, "a second tensor \"%.*s\": give one of them a \"ref\"",
                           cd_str_shown(name, 60), name.p);
        *t = (cd_task_file_tensor){name, f->dag->n_tensor++, op->dtype[k]};
    }
    return CDMPP_OK;
}

static const cd_expr *find_iter(const cd_te_iter *it, const cd_str *ref, uint32_t n, cd_str name) {
    for (uint32_t i = 0; ref && i < n; i++)
        if (it[i].var && cd_str_eq(ref[i], name)) return it[i].var;
    return NULL;
}

static const cd_expr *find_axis(const void *ctx, cd_str name) {
    const cd_task_file *f = ctx;
    const cd_expr *v = find_iter(f->op->axis, f->axis_ref, f->op->n_axis, name);
    return v ? v : find_iter(f->op->raxis, f->raxis_ref, f->op->n_raxis, name);
}

static const cd_expr *find_combined(const void *ctx, cd_str name) {
    const cd_task_file *f = ctx;
    for (uint32_t k = 0; k < f->n_lhs; k++) {
        if (cd_str_eq(f->lhs[k], name)) return f->red->lhs[k];
        if (cd_str_eq(f->rhs[k], name)) return f->red->rhs[k];
    }
    return NULL;
}

/* ---- members ---- */

static cdmpp_status member_str(cd_task_file *f, const cd_json *op, const char *key, const char *def,
                               cd_str *out) {
    const cd_json *v = cd_json_get(op, key);
    *out = (cd_str){def, def ? strlen(def) : 0};
    if (!v && def) return CDMPP_OK;
    cdmpp_status st = cd_json_str(v, out, f->err);
    if (!st && out->n && memchr(out->p, 0, out->n))
        st = CD_FAIL(f->err, ESCHEMA, "a NUL in a name");
    return cd_err_key(f->err, st, key);
}

static cdmpp_status dup_str(cd_task_file *f, cd_str s, const char **out) {
    *out = cd_str_dup(&f->dag->arena, s);
    return *out ? CDMPP_OK : CD_FAIL(f->err, ENOMEM, "name");
}

static cdmpp_status member_bool(cd_task_file *f, const cd_json *op, const char *key, bool *out) {
    const cd_json *v = cd_json_get(op, key);
    *out = v && v->kind == CD_JSON_BOOL && v->u.i;
    if (!v || v->kind == CD_JSON_BOOL) return CDMPP_OK;
    return cd_err_key(
        f->err,
        CD_FAIL(f->err, ESCHEMA, "expected true or false, found %s", cd_json_kind_name(v->kind)),
        key);
}

static cdmpp_status expression(cd_task_file *f, const cd_json *v, cd_dtype want, bool in_combiner,
                               const cd_expr **out) {
    cd_str text;
    const cd_te_scope scope = {in_combiner ? find_combined : find_axis, task_file_find_tensor, f};
    CD_TRY(cd_json_str(v, &text, f->err));
    return cd_te_parse(&f->dag->pool, f->a, text, want, &scope, out, f->err);
}

/* A text or an array of n texts (n 0: any number, returned in *n). */
static cdmpp_status expressions(cd_task_file *f, const cd_json *obj, const char *key,
                                const cd_dtype *want, bool in_combiner, uint32_t *n,
                                const cd_expr *const **out) {
    const cd_json *v = cd_json_get(obj, key), *it = v;
    cdmpp_status st = CDMPP_OK;
    uint32_t count = 1;
    if (!v || v->kind != CD_JSON_STR) {
        st = cd_json_arr(v, 1, &it, f->err);
        if (!st) count = v->n;
    }
    if (!st && (count > CD_TE_MAX_OUT || (*n && count != *n)))
        st = CD_FAIL(f->err, ESCHEMA, "expected %u expressions, found %u", *n ? *n : CD_TE_MAX_OUT,
                     count);
    if (st) return cd_err_key(f->err, st, key);
    const cd_expr **list = CD_NEWN(&f->dag->arena, const cd_expr *, count);
    if (!list) return CD_FAIL(f->err, ENOMEM, "expressions");
    for (uint32_t k = 0; k < count; k++, it = it->next) {
        st = expression(f, it, want ? want[k] : NO_TYPE, in_combiner, &list[k]);
        if (st) return cd_err_key(f->err, cd_err_index(f->err, st, k), key);
    }
    *n = count;
    *out = list;
    return CDMPP_OK;
}

/* ---- axes ---- */

static cdmpp_status bound(cd_task_file *f, const cd_json *v, cd_dtype type, const cd_expr **out) {
    int64_t i;
    if (v && v->kind == CD_JSON_STR) {
        CD_TRY(expression(f, v, type, false, out));
        return (*out)->flags & CD_EXPR_HAS_LOAD
                   ? CD_FAIL(f->err, EUNSUPPORTED, "the range of an axis reads a tensor")
                   : CDMPP_OK;
    }
    CD_TRY(cd_json_int(v, INT64_MIN, INT64_MAX, &i, f->err));
    *out = cd_expr_new_int(&f->dag->pool, type, i);
    if ((*out)->u.i != i)
        return CD_FAIL(f->err, ERANGE, "%lld does not fit the axis' type", (long long)i);
    return CDMPP_OK;
}

/* ["i", 0, 512] or {"name", "ref", "dtype", "min", "extent"}. */
static cdmpp_status axis(cd_task_file *f, const cd_json *v, cd_te_iter *it, cd_str *ref) {
    cd_str name, type_name;
    cd_dtype type = CD_I32;
    const cd_json *min, *extent;
    if (v->kind == CD_JSON_OBJ) {
        CD_TRY(member_str(f, v, "name", NULL, &name));
        CD_TRY(dup_str(f, name, &it->name));
        CD_TRY(member_str(f, v, "ref", it->name, ref));
        CD_TRY(member_str(f, v, "dtype", "int32", &type_name));
        if (!cd_expr_dtype_parse(type_name.p, type_name.n, &type) ||
            cd_expr_dtype_kind(type) > CD_T_UINT)
            return cd_err_key(f->err, CD_FAIL(f->err, ESCHEMA, "expected a type of integers"),
                              "dtype");
        min = cd_json_get(v, "min");
        extent = cd_json_get(v, "extent");
    } else {
        CD_TRY(cd_json_arr(v, 3, &min, f->err));
        if (v->n != 3)
            return CD_FAIL(f->err, ESCHEMA, "expected [name, min, extent], found %u items", v->n);
        CD_TRY(cd_json_str(min, &name, f->err));
        if (name.n && memchr(name.p, 0, name.n)) return CD_FAIL(f->err, ESCHEMA, "a NUL in a name");
        CD_TRY(dup_str(f, name, &it->name));
        *ref = (cd_str){it->name, name.n};
        min = min->next;
        extent = min->next;
    }
    if (!cd_te_is_identifier(ref->p, ref->n))
        return CD_FAIL(f->err, ESCHEMA, "\"%.*s\" cannot be used in expressions: give a \"ref\"",
                       cd_str_shown(*ref, 60), ref->p);
    if (find_axis(f, *ref))
        return CD_FAIL(f->err, ESCHEMA, "a second axis \"%.*s\": give one of them a \"ref\"",
                       cd_str_shown(*ref, 60), ref->p);
    CD_TRY(cd_err_key(f->err, bound(f, min, type, &it->min), "min"));
    CD_TRY(cd_err_key(f->err, bound(f, extent, type, &it->extent), "extent"));
    it->var = cd_expr_new_var(&f->dag->pool, type, cd_expr_pool_var_number(&f->dag->pool));
    return CDMPP_OK;
}

/* Each axis is visible to the bounds of those after it. */
static cdmpp_status axes(cd_task_file *f, const cd_json *op, const char *key,
                         const cd_te_iter **out, uint32_t *n, const cd_str **refs) {
    const cd_json *v = cd_json_get(op, key), *it;
    if (!v) return CDMPP_OK;
    cdmpp_status st = cd_json_arr(v, 0, &it, f->err);
    if (!st && v->n > CD_TE_MAX_AXIS)
        st = CD_FAIL(f->err, EUNSUPPORTED, "more than %d axes", CD_TE_MAX_AXIS);
    if (st) return cd_err_key(f->err, st, key);
    cd_te_iter *list = CD_NEWN(&f->dag->arena, cd_te_iter, v->n);
    cd_str *ref = CD_NEWN(f->a, cd_str, v->n);
    if (!list || !ref) return CD_FAIL(f->err, ENOMEM, "axes");
    *out = list;
    *refs = ref;
    *n = v->n;
    for (uint32_t i = 0; i < v->n; i++, it = it->next) {
        st = axis(f, it, &list[i], &ref[i]);
        if (st) return cd_err_key(f->err, cd_err_index(f->err, st, i), key);
    }
    return CDMPP_OK;
}

/* ---- reducers ---- */

/* One fresh variable per output, of the output's type. */
static cdmpp_status reducer_vars(cd_task_file *f, const cd_json *obj, const char *key,
                                 const cd_te_op *op, const cd_expr *const **out,
                                 const cd_str **names) {
    const cd_json *it;
    const cd_json *v = cd_json_get(obj, key);
    CD_TRY(cd_err_key(f->err, cd_json_arr(v, op->n_out, &it, f->err), key));
    if (v->n != op->n_out)
        return cd_err_key(
            f->err, CD_FAIL(f->err, ESCHEMA, "expected %u names, found %u", op->n_out, v->n), key);
    const cd_expr **var = CD_NEWN(&f->dag->arena, const cd_expr *, op->n_out);
    cd_str *name = CD_NEWN(f->a, cd_str, op->n_out);
    if (!var || !name) return CD_FAIL(f->err, ENOMEM, "reducer");
    for (uint32_t k = 0; k < op->n_out; k++, it = it->next) {
        CD_TRY(cd_err_key(f->err, cd_json_str(it, &name[k], f->err), key));
        var[k] =
            cd_expr_new_var(&f->dag->pool, op->dtype[k], cd_expr_pool_var_number(&f->dag->pool));
    }
    *out = var;
    *names = name;
    return CDMPP_OK;
}

static cdmpp_status custom_reducer(cd_task_file *f, const cd_json *v, const cd_te_op *op) {
    uint32_t n = op->n_out;
    CD_TRY(reducer_vars(f, v, "lhs", op, &f->red->lhs, &f->lhs));
    CD_TRY(reducer_vars(f, v, "rhs", op, &f->red->rhs, &f->rhs));
    f->n_lhs = n;
    cdmpp_status st = expressions(f, v, "result", op->dtype, true, &n, &f->red->result);
    if (!st) st = expressions(f, v, "identity", op->dtype, true, &n, &f->red->identity);
    f->n_lhs = 0;
    return st;
}

/* The usual reducers by name; their identity follows from the type. */
static cdmpp_status named_reducer(cd_task_file *f, cd_str name, const cd_te_op *op) {
    const cd_expr_op kind = cd_str_is(name, "sum")   ? CD_ADD
                            : cd_str_is(name, "max") ? CD_MAX
                                                     : CD_MIN;
    if (kind == CD_MIN && !cd_str_is(name, "min"))
        return CD_FAIL(f->err, ESCHEMA, "expected sum, max, min or an object");
    if (op->n_out != 1)
        return CD_FAIL(f->err, ESCHEMA, "\"%.*s\" combines one value, not %u", (int)name.n, name.p,
                       op->n_out);
    return cd_te_reducer_usual(f->dag, kind, op->dtype[0], f->red, f->err);
}

static cdmpp_status reduction(cd_task_file *f, const cd_json *obj, cd_te_op *op) {
    const cd_json *v = cd_json_get(obj, "reduce"), *where = cd_json_get(obj, "where");
    uint32_t n = op->n_out;
    if (!v) {
        const char *lone = op->n_raxis                ? "reduce_axis"
                           : where                    ? "where"
                           : cd_json_get(obj, "init") ? "init"
                                                      : NULL;
        return lone ? CD_FAIL(f->err, ESCHEMA, "\"%s\" without \"reduce\"", lone) : CDMPP_OK;
    }
    f->red = CD_NEW(&f->dag->arena, cd_te_reducer);
    if (!f->red) return CD_FAIL(f->err, ENOMEM, "reducer");
    f->red->n = n;
    op->red = f->red;
    CD_TRY(cd_err_key(
        f->err, v->kind == CD_JSON_STR ? named_reducer(f, v->u.s, op) : custom_reducer(f, v, op),
        "reduce"));
    if (cd_json_get(obj, "init"))
        CD_TRY(expressions(f, obj, "init", op->dtype, false, &n, &op->init));
    if (where) CD_TRY(cd_err_key(f->err, expression(f, where, NO_TYPE, false, &op->cond), "where"));
    return CDMPP_OK;
}

/* ---- operators ---- */

/* An operator without a body. */
static cdmpp_status placeholder(cd_task_file *f, const cd_json *obj, cd_te_op *op) {
    const cd_json *v = cd_json_get(obj, "shape"), *it;
    cd_str type;
    CD_TRY(cd_err_key(f->err, cd_json_arr(v, 0, &it, f->err), "shape"));
    int64_t *shape = CD_NEWN(&f->dag->arena, int64_t, v->n);
    cd_dtype *dtype = CD_NEW(&f->dag->arena, cd_dtype);
    if (!shape || !dtype) return CD_FAIL(f->err, ENOMEM, "shape");
    op->is_placeholder = true;
    op->rank = v->n;
    op->n_out = 1;
    op->shape = shape;
    op->dtype = dtype;
    for (uint32_t i = 0; i < v->n; i++, it = it->next)
        CD_TRY(cd_err_key(f->err,
                          cd_err_index(f->err, cd_json_int(it, 0, INT64_MAX, &shape[i], f->err), i),
                          "shape"));
    CD_TRY(member_str(f, obj, "dtype", NULL, &type));
    if (cd_expr_dtype_parse(type.p, type.n, dtype)) return CDMPP_OK;
    return cd_err_key(f->err, CD_FAIL(f->err, ESCHEMA, "expected a type like float32"), "dtype");
}

/* Output types are those of the bodies, so reducers are read after them. */
static cdmpp_status compute(cd_task_file *f, const cd_json *obj, cd_te_op *op) {
    f->op = op;
    f->axis_ref = f->raxis_ref = NULL;
    CD_TRY(axes(f, obj, "axis", &op->axis, &op->n_axis, &f->axis_ref));
    CD_TRY(axes(f, obj, "reduce_axis", &op->raxis, &op->n_raxis, &f->raxis_ref));
    CD_TRY(expressions(f, obj, "body", NULL, false, &op->n_out, &op->body));
    int64_t *shape = CD_NEWN(&f->dag->arena, int64_t, op->n_axis);
    cd_dtype *dtype = CD_NEWN(&f->dag->arena, cd_dtype, op->n_out);
    if (!shape || !dtype) return CD_FAIL(f->err, ENOMEM, "shape");
    op->rank = op->n_axis;
    op->shape = shape;
    op->dtype = dtype;
    for (uint32_t i = 0; i < op->n_axis; i++)
        shape[i] = cd_expr_is_int(op->axis[i].extent) ? op->axis[i].extent->u.i : 0;
    for (uint32_t k = 0; k < op->n_out; k++) {
        dtype[k] = op->body[k]->type;
        if (cd_expr_dtype_kind(dtype[k]) == CD_T_HANDLE)
            return cd_err_key(
                f->err,
                cd_err_index(f->err, CD_FAIL(f->err, ESCHEMA, "a text is no value of a tensor"), k),
                "body");
    }
    return reduction(f, obj, op);
}

static cdmpp_status check_members(cd_task_file *f, const cd_json *op) {
    static const char *const known[] = {
        "name",           "ref",         "tag",  "shape", "dtype", "axis",
        "reduce_axis",    "reduce",      "body", "where", "init",  "const_matrix",
        "simplify_const", "layout_free", "flop"};
    if (op->kind != CD_JSON_OBJ)
        return CD_FAIL(f->err, ESCHEMA, "expected an object, found %s",
                       cd_json_kind_name(op->kind));
    for (const cd_json *m = op->u.child; m; m = m->next) {
        size_t k = 0;
        while (k < sizeof known / sizeof *known && !cd_str_is(m->key, known[k])) k++;
        if (k == sizeof known / sizeof *known)
            return CD_FAIL(f->err, ESCHEMA, "unknown member \"%.*s\"", cd_str_shown(m->key, 60),
                           m->key.p);
    }
    return CDMPP_OK;
}

/* Append one op of the file to the dag.
 *
 * Its outputs get names last: an operator cannot read itself. */
static cdmpp_status task_file_op(cd_task_file *f, const cd_json *obj) {
    cd_te_op *op = &f->dag->op[f->dag->n_op];
    const cd_json *flop = cd_json_get(obj, "flop");
    cd_str s;
    *op = (cd_te_op){.first_tensor = f->dag->n_tensor, .flop_attr = -1};
    CD_TRY(check_members(f, obj));
    CD_TRY(member_str(f, obj, "name", NULL, &s));
    CD_TRY(dup_str(f, s, &op->name));
    CD_TRY(member_str(f, obj, "tag", "", &s));
    CD_TRY(dup_str(f, s, &op->tag));
    CD_TRY(member_bool(f, obj, "const_matrix", &op->const_matrix));
    CD_TRY(member_bool(f, obj, "simplify_const", &op->simplify_const));
    CD_TRY(member_bool(f, obj, "layout_free", &op->layout_free));
    if (flop) CD_TRY(cd_err_key(f->err, cd_json_real(flop, &op->flop_attr, f->err), "flop"));
    if (flop && !(op->flop_attr >= 0))
        return cd_err_key(f->err, CD_FAIL(f->err, ERANGE, "a negative count"), "flop");
    CD_TRY(cd_json_get(obj, "body") ? compute(f, obj, op) : placeholder(f, obj, op));
    f->dag->n_op++;
    CD_TRY(member_str(f, obj, "ref", op->name, &s));
    return name_outputs(f, op, s);
}

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
        if (!st && !task_file_find_tensor(f, s, &d->arg[d->n_arg++], &type))
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
        const cdmpp_status st = task_file_op(f, it);
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
