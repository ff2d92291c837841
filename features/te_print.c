/* A DAG as TVM prints it (spec 2.5). */
#include <string.h>

#include "base/buf.h"
#include "base/md5.h"
#include "features/te.h"

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

static const char *name_of(const void *ctx, cd_op kind, uint32_t number) {
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

static void put_reduction(cd_buf *out, const cd_te_op *op, uint32_t k, const cd_names *names) {
    const cd_expr *r = op->red->result[k];
    const char *sign = r->op == CD_ADD ? " += " : r->op == CD_MAX ? " max= " : r->op == CD_MIN ? " min= " : NULL;
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
    for (uint32_t i = 0; i < op->rank; i++) cd_buf_putf(out, "%s%lld", i ? ", " : "", (long long)op->shape[i]);
    cd_buf_puts(out, "]");
}

static void put_op(cd_buf *out, const cd_te_op *op, uint32_t k, const cd_names *names, bool simple) {
    cd_buf_puts(out, op->name);
    if (op->is_placeholder) {
        put_placeholder(out, op, simple);
        return;
    }
    cd_buf_puts(out, "(");
    for (uint32_t i = 0; i < op->n_axis; i++) cd_buf_putf(out, "%s%s", i ? ", " : "", op->axis[i].name);
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

static void put_dag(cd_buf *out, const cd_te_dag *dag, bool simple) {
    printer p = {.dag = dag};
    printer *const self = &p;
    const cd_names names = {name_of, &self};
    cd_buf line = {0};
    for (uint32_t i = 0; i < dag->n_op; i++) {
        p.op = &dag->op[i];
        for (uint32_t k = 0; k < p.op->n_out; k++) {
            cd_buf_clear(&line);
            put_op(&line, p.op, k, &names, simple);
            const size_t half = LINE_MAX_CHARS / 2;
            const bool cut = !simple && line.n > LINE_MAX_CHARS;
            cd_buf_put(out, line.p, cut ? half : line.n);
            if (cut) cd_buf_puts(out, " ..(OMITTED).. ");
            if (cut) cd_buf_put(out, line.p + line.n - half, half);
            cd_buf_puts(out, "\n");
        }
    }
    out->oom = out->oom || line.oom || p.text.oom;
    cd_buf_free(&line);
    cd_buf_free(&p.text);
}

void cd_te_dag_print(cd_buf *out, const cd_te_dag *dag) { put_dag(out, dag, false); }

cdmpp_status cd_te_dag_hash(const cd_te_dag *dag, char out[33], cdmpp_err *err) {
    cd_buf text = {0};
    put_dag(&text, dag, true);
    const bool oom = text.oom;
    if (!oom) cd_md5_hex(text.p ? text.p : "", text.n, out);
    cd_buf_free(&text);
    if (oom) return CD_FAIL(err, ENOMEM, "out of memory while naming a task");
    return CDMPP_OK;
}
