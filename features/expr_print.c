/* Expressions and types as text, in TVM's notation. */
#include <stdio.h>

#include "base/buf.h"
#include "features/expr.h"

static void list(cd_buf *out, const cd_expr *e, const cd_names *names, const char *open, const char *close) {
    cd_buf_puts(out, open);
    for (uint32_t i = 0; i < e->n; i++) {
        if (i) cd_buf_puts(out, ", ");
        cd_expr_print(out, e->a[i], names);
    }
    cd_buf_puts(out, close);
}

static void put_float(cd_buf *out, const cd_expr *e) {
    char t[16];
    cd_buf_putf(out, "%g", e->u.f);
    if (e->type == CD_F32) cd_buf_puts(out, "f");
    else cd_buf_puts(out, cd_dtype_format(e->type, t, sizeof t));
}

void cd_expr_print(cd_buf *out, const cd_expr *e, const cd_names *names) {
    char t[16];
    switch ((cd_op)e->op) {
    case CD_INT:
        if (e->type == CD_BOOL) cd_buf_puts(out, e->u.i ? "True" : "False");
        else cd_buf_putf(out, "%lld", (long long)e->u.i);
        break;
    case CD_FLOAT: put_float(out, e); break;
    case CD_STR: cd_buf_putf(out, "\"%s\"", e->u.name); break;
    case CD_VAR: cd_buf_puts(out, names->name(names->ctx, CD_VAR, (uint32_t)e->u.i)); break;
    case CD_NOT:
        cd_buf_puts(out, "!");
        cd_expr_print(out, e->a[0], names);
        break;
    case CD_CAST:
        cd_buf_puts(out, cd_dtype_format(e->type, t, sizeof t));
        list(out, e, names, "(", ")");
        break;
    case CD_CALL:
        cd_buf_puts(out, e->u.name);
        list(out, e, names, "(", ")");
        break;
    case CD_LOAD:
        cd_buf_puts(out, names->name(names->ctx, CD_LOAD, (uint32_t)e->u.i));
        list(out, e, names, "[", "]");
        break;
    case CD_SELECT: list(out, e, names, "select(", ")"); break;
    case CD_FDIV: case CD_FMOD: case CD_MIN: case CD_MAX:
        cd_buf_puts(out, cd_op_name((cd_op)e->op));
        list(out, e, names, "(", ")");
        break;
    default:
        cd_buf_puts(out, "(");
        cd_expr_print(out, e->a[0], names);
        cd_buf_putf(out, e->op == CD_MUL || e->op == CD_DIV ? "%s" : " %s ", cd_op_name((cd_op)e->op));
        cd_expr_print(out, e->a[1], names);
        cd_buf_puts(out, ")");
        break;
    }
}
