/* Expressions and types as text, in TVM's notation. */
#include <stdio.h>
#include <string.h>

#include "features/expr/expr.h"

/* Names of scalar types, read and printed. One table of kinds serves both directions. */

static const struct {
    const char *name;
    unsigned kind;
} kind_tab[] = {
    {"int", CD_T_INT}, {"uint", CD_T_UINT}, {"float", CD_T_FLOAT}, {"bfloat", CD_T_BFLOAT}};

/* Types that are their whole name, as TVM and PyTorch have it. Reals of 8 and 4 bits, with TVM's
 * codes of their kinds, are types of networks: no expression computes with them. */
static const struct {
    const char *name;
    cd_dtype type;
} own_tab[] = {{"bool", CD_BOOL},
               {"handle", CD_DTYPE(CD_T_HANDLE, 64)},
               {"float8_e4m3fn", CD_DTYPE(10, 8)},
               {"float8_e4m3fnuz", CD_DTYPE(11, 8)},
               {"float8_e5m2", CD_DTYPE(12, 8)},
               {"float8_e5m2fnuz", CD_DTYPE(13, 8)},
               {"float8_e8m0fnu", CD_DTYPE(14, 8)},
               {"float4_e2m1fn", CD_DTYPE(17, 4)}};

/* Those of own_tab; all others are a kind and one or two digits. */
bool cd_expr_dtype_parse(const char *s, size_t n, cd_dtype *out) {
    for (size_t k = 0; k < sizeof own_tab / sizeof *own_tab; k++)
        if (n == strlen(own_tab[k].name) && !memcmp(s, own_tab[k].name, n))
            return *out = own_tab[k].type, true;
    for (size_t k = 0; k < sizeof kind_tab / sizeof *kind_tab; k++) {
        const size_t m = strlen(kind_tab[k].name);
        if (n <= m || n > m + 2 || memcmp(s, kind_tab[k].name, m) != 0) continue;
        unsigned bits = 0;
        for (size_t i = m; i < n; i++) {
            if (s[i] < '0' || s[i] > '9') return false;
            bits = bits * 10 + (unsigned)(s[i] - '0');
        }
        if (bits == 0 || bits > 64) return false;
        return *out = CD_DTYPE(kind_tab[k].kind, bits), true;
    }
    return false;
}

const char *cd_expr_dtype_format(cd_dtype t, char *buf, size_t n) {
    for (size_t k = 0; k < sizeof kind_tab / sizeof *kind_tab; k++)
        if (kind_tab[k].kind == cd_expr_dtype_kind(t))
            snprintf(buf, n, "%s%u", kind_tab[k].name, cd_expr_dtype_bits(t));
    for (size_t k = 0; k < sizeof own_tab / sizeof *own_tab; k++)
        if (own_tab[k].type == t ||
            (own_tab[k].type == CD_DTYPE(CD_T_HANDLE, 64) && cd_expr_dtype_kind(t) == CD_T_HANDLE))
            snprintf(buf, n, "%s", own_tab[k].name);
    return buf;
}

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
