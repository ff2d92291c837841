/* Expressions and types as text, in TVM's notation. */

#include "features/expr/expr.h"

static void print(cd_buf *out, const cd_expr *e, const cd_names *names, bool repr);

static void list(cd_buf *out, const cd_expr *e, const cd_names *names, bool repr, const char *open,
                 const char *close) {
    cd_buf_puts(out, open);
    for (uint32_t i = 0; i < e->n; i++) {
        if (i) cd_buf_puts(out, ", ");
        print(out, e->a[i], names, repr);
    }
    cd_buf_puts(out, close);
}

static void put_int(cd_buf *out, const cd_expr *e, bool repr) {
    char t[16];
    if (e->type == CD_BOOL && !repr) {
        cd_buf_puts(out, e->u.i ? "True" : "False");
        return;
    }
    if (e->type != CD_I32 && repr)
        cd_buf_putf(out, "(%s)", cd_expr_dtype_format(e->type, t, sizeof t));
    cd_buf_putf(out, "%lld", (long long)e->u.i);
}

static void put_float(cd_buf *out, const cd_expr *e) {
    char t[16];
    cd_buf_putf(out, "%g", e->u.f);
    if (e->type == CD_F32) cd_buf_puts(out, "f");
    else cd_buf_puts(out, cd_expr_dtype_format(e->type, t, sizeof t));
}

/* `repr` is the form of TVM's printed definitions, from which workload keys are hashed; the other
 * one is for people. */
static void print(cd_buf *out, const cd_expr *e, const cd_names *names, bool repr) {
    char t[16];
    switch ((cd_expr_op)e->op) {
    case CD_INT: put_int(out, e, repr); break;
    case CD_FLOAT: put_float(out, e); break;
    case CD_STR: cd_buf_putf(out, "\"%s\"", e->u.name); break;
    case CD_VAR: cd_buf_puts(out, names->name(names->ctx, CD_VAR, (uint32_t)e->u.i)); break;
    case CD_NOT:
        cd_buf_puts(out, "!");
        print(out, e->a[0], names, repr);
        break;
    case CD_CAST:
        cd_buf_puts(out, cd_expr_dtype_format(e->type, t, sizeof t));
        list(out, e, names, repr, "(", ")");
        break;
    case CD_CALL:
        if (repr) cd_buf_puts(out, "tir.");
        cd_buf_puts(out, e->u.name);
        list(out, e, names, repr, "(", ")");
        break;
    case CD_LOAD:
        cd_buf_puts(out, names->name(names->ctx, CD_LOAD, (uint32_t)e->u.i));
        list(out, e, names, repr, "[", "]");
        break;
    case CD_SELECT: list(out, e, names, repr, "select(", ")"); break;
    case CD_FDIV:
    case CD_FMOD:
    case CD_MIN:
    case CD_MAX:
        cd_buf_puts(out, cd_expr_op_name((cd_expr_op)e->op));
        list(out, e, names, repr, "(", ")");
        break;
    default:
        cd_buf_puts(out, "(");
        print(out, e->a[0], names, repr);
        cd_buf_putf(out, e->op == CD_MUL || e->op == CD_DIV ? "%s" : " %s ",
                    cd_expr_op_name((cd_expr_op)e->op));
        print(out, e->a[1], names, repr);
        cd_buf_puts(out, ")");
        break;
    }
}

void cd_expr_print(cd_buf *out, const cd_expr *e, const cd_names *names) {
    print(out, e, names, false);
}
void cd_expr_repr(cd_buf *out, const cd_expr *e, const cd_names *names) {
    print(out, e, names, true);
}
