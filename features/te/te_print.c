/* A definition as TVM prints it, one line per operator. The MD5 of a short form is the first part
 * of TVM's workload keys, so the text must be TVM's byte by byte (docs/internals/ansor.md,
 * Tasks). */
#include <string.h>

#include "features/te/te.h"

#define LINE_MAX_CHARS 256U

typedef struct {
    const cd_te_dag *dag;
    const cd_te_op *op;
    cd_buf text; /* names that have to be put together */
} printer;

static const char *composed(printer *p, const char *head, uint32_t k) {
    cd_buf_clear(&p->text);
    cd_buf_putf(&p->text, "%s%u", head, k);
    return p->text.p ? p->text.p : "?";
}

static const char *load_name(printer *p, uint32_t tensor) {
    const cd_te_op *op = &p->dag->op[p->dag->tensor_op[tensor]];
    if (op->n_out == 1) return op->name;
    cd_buf_clear(&p->text);
    cd_buf_putf(&p->text, "%s.v%u", op->name, tensor - op->first_tensor);
    return p->text.p ? p->text.p : "?";
}

/* TVM calls the variables of a combiner x0, x1 ... and y0, y1 ... */
static const char *name_of(const void *ctx, cd_expr_op kind, uint32_t number) {
    printer *p;
    memcpy(&p, ctx, sizeof p);
    if (kind == CD_LOAD) return load_name(p, number);
    const cd_te_op *op = p->op;
    for (uint32_t i = 0; i < op->n_axis; i++)
        if ((uint32_t)op->axis[i].var->u.i == number) return op->axis[i].name;
    for (uint32_t i = 0; i < op->n_raxis; i++)
        if ((uint32_t)op->raxis[i].var->u.i == number) return op->raxis[i].name;
    for (uint32_t k = 0; op->red && k < op->red->n; k++) {
        if ((uint32_t)op->red->lhs[k]->u.i == number) return composed(p, "x", k);
        if ((uint32_t)op->red->rhs[k]->u.i == number) return composed(p, "y", k);
    }
    return "?";
}

static void put_list(cd_buf *out, const cd_expr *const *e, uint32_t n, const cd_names *names) {
    for (uint32_t i = 0; i < n; i++) {
        if (i) cd_buf_puts(out, ",");
        cd_expr_repr(out, e[i], names);
    }
}

/* Sums, maxima and minima have a sign of their own; an argmax is a select over both components. */
static void put_reduction(cd_buf *out, const cd_te_op *op, uint32_t k, const cd_names *names) {
    const cd_expr *r = op->red->result[k];
    const char *sign = r->op == CD_ADD   ? " += "
                       : r->op == CD_MAX ? " max= "
                       : r->op == CD_MIN ? " min= "
                                         : NULL;
    if (sign) {
        cd_buf_puts(out, sign);
        cd_expr_repr(out, op->body[0], names);
    } else if (r->op == CD_SELECT) {
        cd_buf_puts(out, " ");
        cd_expr_repr(out, r, names);
        cd_buf_puts(out, "= (");
        put_list(out, op->body, op->n_out < 2 ? op->n_out : 2, names);
        cd_buf_puts(out, ")");
    } else {
        cd_buf_puts(out, "reduce");
        cd_expr_repr(out, r, names);
    }
}

static void put_placeholder(cd_buf *out, const cd_te_op *op, bool simple) {
    cd_buf_puts(out, " = PLACEHOLDER ");
    if (simple) return;
    cd_buf_puts(out, "[");
    for (uint32_t i = 0; i < op->rank; i++)
        cd_buf_putf(out, "%s%lld", i ? ", " : "", (long long)op->shape[i]);
    cd_buf_puts(out, "]");
}

/* `simple` is the form of the hash: no shapes, and of a call at the top only its name. */
static void put_op(cd_buf *out, const cd_te_op *op, uint32_t k, const cd_names *names,
                   bool simple) {
    cd_buf_puts(out, op->name);
    if (op->is_placeholder) {
        put_placeholder(out, op, simple);
        return;
    }
    cd_buf_puts(out, "(");
    for (uint32_t i = 0; i < op->n_axis; i++)
        cd_buf_putf(out, "%s%s", i ? ", " : "", op->axis[i].name);
    cd_buf_puts(out, ")");
    if (op->n_out > 1) cd_buf_putf(out, ".v%u", k);
    if (op->red) {
        put_reduction(out, op, k, names);
    } else if (simple && op->body[k]->op == CD_CALL) {
        cd_buf_putf(out, " = Op(tir.%s)", op->body[k]->u.name);
    } else {
        cd_buf_puts(out, " = ");
        cd_expr_repr(out, op->body[k], names);
    }
}

/* READ: for people. WHOLE: the same, not cut. KEY: what TVM's keys depend on. ALL: also shapes,
 * types and ranges. */
typedef enum { READ, WHOLE, KEY, ALL } form;

static void put_ranges(cd_buf *out, const cd_te_op *op, const cd_names *names) {
    char t[16];
    for (uint32_t i = 0; i < op->rank; i++) cd_buf_putf(out, " %lld", (long long)op->shape[i]);
    for (uint32_t k = 0; k < op->n_out; k++)
        cd_buf_putf(out, " %s", cd_expr_dtype_format(op->dtype[k], t, sizeof t));
    for (uint32_t i = 0; i < op->n_raxis; i++) {
        const cd_expr *const range[] = {op->raxis[i].min, op->raxis[i].extent};
        cd_buf_puts(out, " : ");
        put_list(out, range, 2, names);
    }
    if (op->cond) cd_buf_puts(out, " where ");
    put_list(out, &op->cond, op->cond ? 1 : 0, names);
    put_list(out, op->init, op->init ? op->n_out : 0, names);
    cd_buf_puts(out, "\n");
}

/* Long lines are cut in the middle when the text is for people; a hash takes all of it. */
static void put_dag(cd_buf *out, const cd_te_dag *dag, form w) {
    printer p = {.dag = dag};
    printer *const self = &p;
    const cd_names names = {name_of, &self};
    cd_buf line = {0};
    for (uint32_t i = 0; i < dag->n_op; i++) {
        p.op = &dag->op[i];
        for (uint32_t k = 0; k < p.op->n_out; k++) {
            cd_buf_clear(&line);
            put_op(&line, p.op, k, &names, w == KEY);
            const size_t half = LINE_MAX_CHARS / 2;
            const bool cut = w == READ && line.n > LINE_MAX_CHARS;
            cd_buf_put(out, line.p, cut ? half : line.n);
            if (cut) cd_buf_puts(out, " ..(OMITTED).. ");
            if (cut) cd_buf_put(out, line.p + line.n - half, half);
            cd_buf_puts(out, "\n");
        }
        if (w == ALL) put_ranges(out, p.op, &names);
    }
    out->oom = out->oom || line.oom || p.text.oom;
    cd_buf_free(&line);
    cd_buf_free(&p.text);
}

void cd_te_dag_print(cd_buf *out, const cd_te_dag *dag) { put_dag(out, dag, READ); }
void cd_te_dag_print_whole(cd_buf *out, const cd_te_dag *dag) { put_dag(out, dag, WHOLE); }

static cdmpp_status hash_of(const cd_te_dag *dag, form w, char out[33], cdmpp_err *err) {
    cd_buf text = {0};
    put_dag(&text, dag, w);
    const bool oom = text.oom;
    if (!oom) cd_md5_hex(text.p ? text.p : "", text.n, out);
    cd_buf_free(&text);
    if (oom) return CD_FAIL(err, ENOMEM, "out of memory while naming a task");
    return CDMPP_OK;
}

cdmpp_status cd_te_dag_hash(const cd_te_dag *dag, char out[33], cdmpp_err *err) {
    return hash_of(dag, KEY, out, err);
}
cdmpp_status cd_te_dag_hash_all(const cd_te_dag *dag, char out[33], cdmpp_err *err) {
    return hash_of(dag, ALL, out, err);
}

void cd_te_workload_key(cd_buf *out, const cd_te_dag *dag, const char hash[33]) {
    cd_buf_putf(out, "[\"%s\"", hash);
    for (uint32_t i = 0; i < dag->n_arg; i++) {
        const cd_te_op *op = &dag->op[dag->tensor_op[dag->arg[i]]];
        cd_buf_puts(out, ", [");
        for (uint32_t d = 0; d < op->rank; d++)
            cd_buf_putf(out, "%s%lld", d ? ", " : "", (long long)op->shape[d]);
        cd_buf_puts(out, "]");
    }
    cd_buf_puts(out, "]");
}
