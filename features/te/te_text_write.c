/* Writes an expression in the notation of task files, with as few parentheses as the grammar needs.
 * What is written reads back as the same expression, types included. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "features/te/te.h"

typedef struct {
    cd_buf *out;
    const cd_names *names;
    cdmpp_err *err;
} writer;

static cdmpp_status put(writer *w, const cd_expr *e, unsigned min_level);

static unsigned level_of(const cd_expr *e) {
    switch ((cd_expr_op)e->op) {
    case CD_OR: return 1;
    case CD_AND: return 2;
    case CD_EQ:
    case CD_NE:
    case CD_LT:
    case CD_LE:
    case CD_GT:
    case CD_GE: return 3;
    case CD_ADD:
    case CD_SUB: return 4;
    case CD_MUL:
    case CD_FDIV:
    case CD_FMOD: return 5;
    case CD_DIV: return cd_expr_dtype_is_float(e->type) ? 5 : 6;
    default: return 6;
    }
}

static const char *sign_of(const cd_expr *e) {
    switch ((cd_expr_op)e->op) {
    case CD_FDIV: return " // ";
    case CD_FMOD: return " % ";
    case CD_MUL: return "*";
    case CD_DIV: return "/";
    case CD_ADD: return " + ";
    case CD_SUB: return " - ";
    case CD_AND: return " && ";
    case CD_OR: return " || ";
    case CD_EQ: return " == ";
    case CD_NE: return " != ";
    case CD_LT: return " < ";
    case CD_LE: return " <= ";
    case CD_GT: return " > ";
    default: return " >= ";
    }
}

static void put_type(writer *w, cd_dtype t) {
    char buf[16];
    cd_buf_puts(w->out, cd_expr_dtype_format(t, buf, sizeof buf));
}

static void put_int(writer *w, const cd_expr *e) {
    if (e->type == CD_BOOL) {
        cd_buf_puts(w->out, e->u.i ? "true" : "false");
        return;
    }
    cd_buf_putf(w->out, "%lld", (long long)e->u.i);
    if (e->type == CD_I32) return;
    cd_buf_puts(w->out, ":");
    put_type(w, e->type);
}

/* The shortest digits that read back as the same double. */
static void put_float(writer *w, const cd_expr *e) {
    char buf[64];
    const double f = e->u.f;
    if (isnan(f) || isinf(f)) {
        snprintf(buf, sizeof buf, "%s", isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
    } else {
        for (int digits = 1; digits <= 17; digits++) {
            snprintf(buf, sizeof buf, "%.*g", digits, f);
            if (strtod(buf, NULL) == f) break;
        }
        if (!strpbrk(buf, ".e")) strcat(buf, ".0");
    }
    cd_buf_puts(w->out, buf);
    if (e->type == CD_F32) return;
    cd_buf_puts(w->out, ":");
    put_type(w, e->type);
}

static void put_text(writer *w, const char *s) {
    cd_buf_puts(w->out, "'");
    for (; *s; s++) {
        if (*s == '\'' || *s == '\\') cd_buf_puts(w->out, "\\");
        cd_buf_put(w->out, s, 1);
    }
    cd_buf_puts(w->out, "'");
}

static cdmpp_status put_args(writer *w, const cd_expr *e, const char *open, const char *close) {
    cd_buf_puts(w->out, open);
    for (uint32_t i = 0; i < e->n; i++) {
        if (i) cd_buf_puts(w->out, ", ");
        CD_TRY(put(w, e->a[i], 1));
    }
    cd_buf_puts(w->out, close);
    return CDMPP_OK;
}

static cdmpp_status put_call(writer *w, const cd_expr *e) {
    const char *name = e->u.name;
    const size_t n = strlen(name);
    cd_dtype t;
    if (!cd_te_is_identifier(name, n))
        return CD_FAIL(w->err, EUNSUPPORTED, "a call of \"%s\"", name);
    const uint32_t like = !strcmp(name, "if_then_else") ? 1 : 0;
    const bool clash =
        cd_te_function(name, n) != CD_EXPR_OP_COUNT || cd_expr_dtype_parse(name, n, &t);
    cd_buf_puts(w->out, name);
    if (clash || e->n <= like || e->a[like]->type != e->type) {
        cd_buf_puts(w->out, ":");
        put_type(w, e->type);
    }
    return put_args(w, e, "(", ")");
}

static cdmpp_status put_infix(writer *w, const cd_expr *e, unsigned min_level) {
    const unsigned level = level_of(e), left = level == 3 ? 4 : level;
    if (level < min_level) cd_buf_puts(w->out, "(");
    CD_TRY(put(w, e->a[0], left));
    cd_buf_puts(w->out, sign_of(e));
    CD_TRY(put(w, e->a[1], level + 1));
    if (level < min_level) cd_buf_puts(w->out, ")");
    return CDMPP_OK;
}

static cdmpp_status put(writer *w, const cd_expr *e, unsigned min_level) {
    if (level_of(e) < 6) return put_infix(w, e, min_level);
    switch ((cd_expr_op)e->op) {
    case CD_INT: put_int(w, e); return CDMPP_OK;
    case CD_FLOAT: put_float(w, e); return CDMPP_OK;
    case CD_STR: put_text(w, e->u.name); return CDMPP_OK;
    case CD_VAR:
        cd_buf_puts(w->out, w->names->name(w->names->ctx, CD_VAR, (uint32_t)e->u.i));
        return CDMPP_OK;
    case CD_NOT: cd_buf_puts(w->out, "!"); return put(w, e->a[0], 6);
    case CD_CAST: put_type(w, e->type); return put_args(w, e, "(", ")");
    case CD_CALL: return put_call(w, e);
    case CD_LOAD:
        cd_buf_puts(w->out, w->names->name(w->names->ctx, CD_LOAD, (uint32_t)e->u.i));
        return put_args(w, e, "[", "]");
    case CD_DIV: cd_buf_puts(w->out, "truncdiv"); return put_args(w, e, "(", ")");
    case CD_MOD: cd_buf_puts(w->out, "truncmod"); return put_args(w, e, "(", ")");
    /* min max select */
    default:
        cd_buf_puts(w->out, cd_expr_op_name((cd_expr_op)e->op));
        return put_args(w, e, "(", ")");
    }
}

cdmpp_status cd_te_unparse(cd_buf *out, const cd_expr *e, const cd_names *names, cdmpp_err *err) {
    writer w = {out, names, err};
    return put(&w, e, 1);
}
