/* exprtext.h -- expressions as s-expressions for tests, and their slow truth.
 *
 *   (+ (* v0 8) (load.i 0 v1))   v<number>: int32 variable; .f .i .b: float32, int32, bool
 *   (select c a b) (call.f exp a) (cast.f a) 1.5f true
 *
 * ex_value runs an expression; loads and calls give values that depend on
 * nothing but their operands, so equal expressions have equal values. */
#ifndef EXPRTEXT_H
#define EXPRTEXT_H
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arith.h"
#include "base/core/core.h"
#include "features/expr/expr.h"

static inline cd_dtype ex_type(char c) {
    return c == 'f' ? CD_F32 : c == 'b' ? CD_BOOL : c == 'l' ? CD_I64 : CD_I32;
}

static inline const cd_expr *ex_read(cd_expr_pool *p, const char **s);

static inline size_t ex_word(const char **s, char *out, size_t cap) {
    size_t n = 0;
    while (**s && !strchr(" ();\n", **s) && n + 1 < cap) out[n++] = *(*s)++;
    out[n] = 0;
    return n;
}

static inline const cd_expr *ex_atom(cd_expr_pool *p, const char **s) {
    char w[64];
    const size_t n = ex_word(s, w, sizeof w);
    if (n == 0) return NULL;
    if (!strcmp(w, "true") || !strcmp(w, "false")) return cd_expr_new_int(p, CD_BOOL, w[0] == 't');
    if (w[0] == 'v') return cd_expr_new_var(p, CD_I32, (uint32_t)atoi(w + 1));
    if (w[0] == 'w') return cd_expr_new_var(p, CD_I64, (uint32_t)atoi(w + 1));
    if (w[n - 1] == 'f') return cd_expr_new_float(p, CD_F32, strtod(w, NULL));
    return cd_expr_new_int(p, w[n - 1] == 'l' ? CD_I64 : CD_I32, strtoll(w, NULL, 10));
}

static inline const cd_expr *ex_node(cd_expr_pool *p, const char *op, const char *name,
                                     const cd_expr *const *a, uint32_t n) {
    static const char *const plain[CD_EXPR_OP_COUNT] = {
        [CD_ADD] = "+",   [CD_SUB] = "-",   [CD_MUL] = "*",   [CD_DIV] = "/",   [CD_MOD] = "%",
        [CD_FDIV] = "//", [CD_FMOD] = "%%", [CD_MIN] = "min", [CD_MAX] = "max", [CD_EQ] = "==",
        [CD_NE] = "!=",   [CD_LT] = "<",    [CD_LE] = "<=",   [CD_GT] = ">",    [CD_GE] = ">=",
        [CD_AND] = "&&",  [CD_OR] = "||"};
    for (int k = CD_ADD; k <= CD_OR; k++)
        if (n == 2 && !strcmp(op, plain[k])) return cd_expr_new_bin(p, (cd_expr_op)k, a[0], a[1]);
    if (!strcmp(op, "!")) return cd_expr_new_not(p, a[0]);
    if (!strcmp(op, "select")) return cd_expr_new_select(p, a[0], a[1], a[2]);
    const char *dot = strchr(op, '.');
    if (!dot) return NULL;
    if (!strncmp(op, "cast", 4)) return cd_expr_new_cast(p, ex_type(dot[1]), a[0]);
    if (!strncmp(op, "load", 4))
        return cd_expr_new_load(p, ex_type(dot[1]), (uint32_t)atoi(name), a, n);
    return cd_expr_new_call(p, ex_type(dot[1]), name, a, n);
}

/* Reads one expression at *s and moves behind it; NULL when it is malformed. */
static inline const cd_expr *ex_read(cd_expr_pool *p, const char **s) {
    while (**s == ' ') (*s)++;
    if (**s != '(') return ex_atom(p, s);
    char op[32], name[32] = "";
    const cd_expr *a[16];
    uint32_t n = 0;
    (*s)++;
    ex_word(s, op, sizeof op);
    if (!strncmp(op, "load.", 5) || !strncmp(op, "call.", 5)) {
        while (**s == ' ') (*s)++;
        ex_word(s, name, sizeof name);
    }
    for (;;) {
        while (**s == ' ') (*s)++;
        if (**s == ')') break;
        if (n == 16 || !(a[n++] = ex_read(p, s))) return NULL;
    }
    (*s)++;
    return ex_node(p, op, name, a, n);
}

static inline const cd_expr *ex_parse(cd_expr_pool *p, const char *s) { return ex_read(p, &s); }

static inline const char *ex_name(const void *ctx, cd_expr_op kind, uint32_t number) {
    static char t[8][16];
    static int k;
    (void)ctx;
    k = (k + 1) % 8;
    snprintf(t[k], sizeof t[k], kind == CD_VAR ? "v%u" : "T%u", number);
    return t[k];
}

static inline void ex_print(cd_buf *out, const cd_expr *e) {
    cd_expr_print(out, e, &(cd_names){ex_name, NULL});
}

/* ---- slow truth ---- */

typedef struct {
    const int64_t *var; /* by number */
    bool bad;           /* division by zero or a value beyond 2^31 met */
} ex_env;

static inline double ex_value(ex_env *v, const cd_expr *e);

static inline double ex_opaque(ex_env *v, const cd_expr *e) {
    double h = e->op == CD_LOAD ? 3 + (double)e->u.i : 7 + (double)strlen(e->u.name);
    for (uint32_t i = 0; i < e->n; i++) h = fmod(h * 31 + ex_value(v, e->a[i]) * 7 + 11, 1009);
    return cd_expr_dtype_is_float(e->type) ? h / 8
           : e->type == CD_BOOL            ? fmod(floor(h), 2) != 0
                                           : floor(h);
}

static inline double ex_binary(ex_env *v, const cd_expr *e, double a, double b) {
    double r = 0;
    v->bad = v->bad || (b == 0 && ar_divides(e));
    return (b == 0 && ar_divides(e)) || !ar_binary(e, a, b, &r) ? 0 : r;
}

static inline double ex_value(ex_env *v, const cd_expr *e) {
    double r;
    switch ((cd_expr_op)e->op) {
    case CD_INT: return (double)e->u.i;
    case CD_FLOAT: return e->u.f;
    case CD_VAR: return (double)v->var[e->u.i];
    case CD_AND: return ex_value(v, e->a[0]) != 0 && ex_value(v, e->a[1]) != 0;
    case CD_OR: return ex_value(v, e->a[0]) != 0 || ex_value(v, e->a[1]) != 0;
    case CD_NOT: return ex_value(v, e->a[0]) == 0;
    case CD_SELECT: return ex_value(v, e->a[0]) != 0 ? ex_value(v, e->a[1]) : ex_value(v, e->a[2]);
    case CD_CAST: r = ex_value(v, e->a[0]); return cd_expr_dtype_is_float(e->type) ? r : trunc(r);
    case CD_CALL:
        if (!strcmp(e->u.name, "likely")) return ex_value(v, e->a[0]);
        if (!strcmp(e->u.name, "if_then_else"))
            return ex_value(v, e->a[0]) != 0 ? ex_value(v, e->a[1]) : ex_value(v, e->a[2]);
        return ex_opaque(v, e);
    case CD_LOAD: return ex_opaque(v, e);
    default: {
        const double a = ex_value(v, e->a[0]), b = ex_value(v, e->a[1]);
        r = ex_binary(v, e, a, b);
    }
    }
    if (fabs(r) > 1e9) v->bad = true;
    return r;
}
#endif
