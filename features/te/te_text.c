/* Reads an expression in the notation of task files: a precedence parser with levels || 1, && 2,
 *   comparisons 3, + -
 * 4, * / // % 5. Types are checked while reading, so an error names its column. */
#include "features/te/te.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const cd_expr *e;
    uint32_t depth;
    bool bare; /* literal without a type: takes the other operand's */
} value;

typedef struct {
    cd_expr_pool *pool;
    cd_arena *scratch;
    const char *beg, *p, *end;
    const cd_te_scope *scope;
    cdmpp_err *err;
    uint32_t level;
} parser;

#define BAD(ps, name, ...) place((ps), CD_FAIL((ps)->err, name, __VA_ARGS__))

static cdmpp_status place(parser *ps, cdmpp_status st) {
    char at[32];
    snprintf(at, sizeof at, "column %ld", (long)(ps->p - ps->beg) + 1);
    return cd_err_key(ps->err, st, at);
}

static cdmpp_status expected(parser *ps, const char *what) {
    if (ps->p == ps->end) return BAD(ps, EPARSE, "expected %s, found the end", what);
    return BAD(ps, EPARSE, "expected %s, found '%c'", what,
               *ps->p >= ' ' && *ps->p < 127 ? *ps->p : '?');
}

static bool is_alpha(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c) { return is_alpha(c) || is_digit(c) || c == '.'; }

static bool is(cd_str s, const char *z) { return cd_str_is(s, z); }

bool cd_te_is_identifier(const char *s, size_t n) {
    static const char *const reserved[] = {"true", "false", "inf", "nan"};
    const cd_str w = {s, n};
    if (n == 0 || !is_alpha(s[0])) return false;
    for (size_t i = 0; i < n; i++)
        if (!is_word(s[i])) return false;
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (is(w, reserved[i])) return false;
    return true;
}

cd_expr_op cd_te_function(const char *s, size_t n) {
    static const struct {
        const char *name;
        cd_expr_op op;
    } tab[] = {{"min", CD_MIN},      {"max", CD_MAX},      {"select", CD_SELECT},
               {"truncdiv", CD_DIV}, {"truncmod", CD_MOD}, {"floordiv", CD_FDIV},
               {"floormod", CD_FMOD}};
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++)
        if (is((cd_str){s, n}, tab[k].name)) return tab[k].op;
    return CD_EXPR_OP_COUNT;
}

static void skip_space(parser *ps) {
    while (ps->p < ps->end && (*ps->p == ' ' || *ps->p == '\n' || *ps->p == '\t')) ps->p++;
}

static bool eat(parser *ps, const char *sign) {
    const size_t n = strlen(sign);
    skip_space(ps);
    if ((size_t)(ps->end - ps->p) < n || memcmp(ps->p, sign, n) != 0) return false;
    ps->p += n;
    return true;
}

static cd_str word(parser *ps) {
    const char *b = ps->p;
    while (ps->p < ps->end && is_word(*ps->p)) ps->p++;
    return (cd_str){b, (size_t)(ps->p - b)};
}

/* Optional ":type" right behind a literal or a function name. */
static cdmpp_status type_mark(parser *ps, cd_dtype *type, bool *marked) {
    *marked = ps->p < ps->end && *ps->p == ':';
    if (!*marked) return CDMPP_OK;
    ps->p++;
    const cd_str t = word(ps);
    return cd_expr_dtype_parse(t.p, t.n, type)
               ? CDMPP_OK
               : BAD(ps, ESCHEMA, "\"%.*s\" is no type", cd_str_shown(t, 30), t.p);
}

static cdmpp_status parse(parser *ps, unsigned min_level, value *out);

/* ---- types ---- */

/* Give a literal without type the type of its partner. */
static void adopt(parser *ps, value *v, cd_dtype t) {
    if (!v->bare || v->e->type == t) return;
    const bool real = cd_expr_dtype_is_float(t), whole = v->e->op == CD_INT;
    if (cd_expr_dtype_kind(t) == CD_T_HANDLE || t == CD_BOOL || (!whole && !real)) return;
    v->e = real ? cd_expr_new_float(ps->pool, t, whole ? (double)v->e->u.i : v->e->u.f)
                : cd_expr_new_int(ps->pool, t, v->e->u.i);
}

static cdmpp_status match(parser *ps, value *a, value *b) {
    adopt(ps, a, b->e->type);
    adopt(ps, b, a->e->type);
    char x[16], y[16];
    if (a->e->type == b->e->type) return CDMPP_OK;
    return BAD(ps, ESCHEMA, "operands of types %s and %s",
               cd_expr_dtype_format(a->e->type, x, sizeof x),
               cd_expr_dtype_format(b->e->type, y, sizeof y));
}

static cdmpp_status deeper(parser *ps, value *out, uint32_t depth) {
    out->depth = depth + 1;
    out->bare = false;
    return depth < CD_TE_MAX_DEPTH
               ? CDMPP_OK
               : BAD(ps, EUNSUPPORTED, "nested deeper than %d", CD_TE_MAX_DEPTH);
}

static uint32_t max2(uint32_t a, uint32_t b) { return a > b ? a : b; }

static cdmpp_status binary(parser *ps, cd_expr_op op, value *a, value *b, value *out) {
    CD_TRY(match(ps, a, b));
    if ((op == CD_AND || op == CD_OR) && a->e->type != CD_BOOL)
        return BAD(ps, ESCHEMA, "operands of %s that are no conditions", cd_expr_op_name(op));
    out->e = cd_expr_new_bin(ps->pool, op, a->e, b->e);
    return deeper(ps, out, max2(a->depth, b->depth));
}

/* ---- literals ---- */

/* An integer literal may have a float type ("1:float16"); a fraction must not have an integer
 * type. */
static cdmpp_status put_literal(parser *ps, bool whole, bool neg, uint64_t i, double f,
                                value *out) {
    cd_dtype type = whole ? CD_I32 : CD_F32;
    bool marked;
    CD_TRY(type_mark(ps, &type, &marked));
    if (whole && !cd_expr_dtype_is_float(type)) {
        const uint64_t max = type == CD_I32 ? INT32_MAX : INT64_MAX;
        if (i > max + neg)
            return BAD(ps, ERANGE, "an integer that does not fit its type (write 5:int64)");
        out->e = cd_expr_new_int(ps->pool, type, neg ? (int64_t)(0 - i) : (int64_t)i);
    } else {
        if (!cd_expr_dtype_is_float(type))
            return BAD(ps, ESCHEMA, "a fraction with a type of integers");
        out->e = cd_expr_new_float(ps->pool, type,
                                   whole ? (neg ? -(double)i : (double)i)
                                   : neg ? -f
                                         : f);
    }
    out->bare = !marked;
    out->depth = 1;
    return CDMPP_OK;
}

/* The letters of a number are collected first; integers are read exactly, everything else by
 * strtod. */
static cdmpp_status literal(parser *ps, bool neg, value *out) {
    char buf[64];
    const char *b = ps->p;
    uint64_t i = 0;
    bool whole = true, fits = true;
    for (; ps->p < ps->end && (is_digit(*ps->p) || *ps->p == '.' || *ps->p == 'e' ||
                               ((*ps->p == '-' || *ps->p == '+') && ps->p[-1] == 'e'));
         ps->p++) {
        if (!is_digit(*ps->p)) whole = false;
        else if (i > (UINT64_MAX - 9) / 10) fits = false;
        else i = i * 10 + (uint64_t)(*ps->p - '0');
    }
    const size_t n = (size_t)(ps->p - b);
    if (n >= sizeof buf || (whole && !fits))
        return BAD(ps, ERANGE, "a number of %zu characters", n);
    memcpy(buf, b, n);
    buf[n] = '\0';
    char *end = buf;
    const double f = strtod(buf, &end);
    if (*end || n == 0) return BAD(ps, EPARSE, "\"%s\" is no number", buf);
    return put_literal(ps, whole, neg, i, f, out);
}

/* Between single quotes; a backslash takes the next letter as it is. */
static cdmpp_status text_literal(parser *ps, value *out) {
    char *buf = cd_arena_alloc(ps->scratch, (size_t)(ps->end - ps->p) + 1, 1), *o = buf;
    if (!buf) return CD_FAIL(ps->err, ENOMEM, "string");
    while (ps->p < ps->end && *ps->p != '\'') {
        if (*ps->p == '\\' && ps->p + 1 < ps->end) ps->p++;
        if (*ps->p == '\0') return BAD(ps, ESCHEMA, "a NUL in a string");
        *o++ = *ps->p++;
    }
    if (!eat(ps, "'")) return expected(ps, "'");
    *o = '\0';
    out->e = cd_expr_new_str(ps->pool, buf);
    out->depth = 1;
    out->bare = false;
    return CDMPP_OK;
}

/* ---- names ---- */

typedef struct {
    value *v;
    const cd_expr **e;
    uint32_t n, depth;
} args;

/* Expressions up to `close`, whose opening sign is behind us. */
static cdmpp_status arguments(parser *ps, const char *close, args *a) {
    uint32_t cap = 0;
    *a = (args){0};
    if (eat(ps, close)) return CDMPP_OK;
    do {
        if (a->n == cap) {
            cap = cap ? cap * 2 : 8;
            value *v = CD_NEWN(ps->scratch, value, cap);
            const cd_expr **e = CD_NEWN(ps->scratch, const cd_expr *, cap);
            if (!v || !e) return CD_FAIL(ps->err, ENOMEM, "arguments");
            if (a->n) memcpy(v, a->v, a->n * sizeof *v);
            a->v = v;
            a->e = e;
        }
        CD_TRY(parse(ps, 1, &a->v[a->n]));
        a->depth = max2(a->depth, a->v[a->n++].depth);
    } while (eat(ps, ","));
    if (!eat(ps, close)) return expected(ps, close);
    for (uint32_t i = 0; i < a->n; i++) a->e[i] = a->v[i].e;
    return CDMPP_OK;
}

static cdmpp_status load(parser *ps, cd_str name, value *out) {
    uint32_t number;
    cd_dtype type;
    args a;
    if (!ps->scope->tensor(ps->scope->ctx, name, &number, &type))
        return BAD(ps, ESCHEMA, "no tensor \"%.*s\" above", cd_str_shown(name, 60), name.p);
    CD_TRY(arguments(ps, "]", &a));
    out->e = cd_expr_new_load(ps->pool, type, number, a.e, a.n);
    return deeper(ps, out, a.depth);
}

static cdmpp_status function(parser *ps, cd_expr_op op, args *a, value *out) {
    if (op != CD_SELECT && a->n != 2) return BAD(ps, EPARSE, "two arguments are needed");
    if (op != CD_SELECT) return binary(ps, op, &a->v[0], &a->v[1], out);
    if (a->n != 3) return BAD(ps, EPARSE, "select needs three arguments");
    CD_TRY(match(ps, &a->v[1], &a->v[2]));
    if (a->v[0].e->type != CD_BOOL) return BAD(ps, ESCHEMA, "select needs a condition first");
    out->e = cd_expr_new_select(ps->pool, a->v[0].e, a->v[1].e, a->v[2].e);
    return deeper(ps, out, a->depth);
}

/* name(...) or name:type(...), the sign "(" behind us. */
static cdmpp_status call(parser *ps, cd_str name, cd_dtype type, bool marked, value *out) {
    args a;
    cd_dtype cast;
    CD_TRY(arguments(ps, ")", &a));
    if (!marked && cd_te_function(name.p, name.n) != CD_EXPR_OP_COUNT)
        return function(ps, cd_te_function(name.p, name.n), &a, out);
    if (!marked && cd_expr_dtype_parse(name.p, name.n, &cast)) {
        if (a.n != 1) return BAD(ps, EPARSE, "a cast needs one argument");
        out->e = cd_expr_new_cast(ps->pool, cast, a.e[0]);
        return deeper(ps, out, a.depth);
    }
    const uint32_t like = is(name, "if_then_else") ? 1 : 0; /* whose type is that of the call */
    if (is(name, "if_then_else") && a.n == 3) {
        CD_TRY(match(ps, &a.v[1], &a.v[2]));
        a.e[1] = a.v[1].e;
        a.e[2] = a.v[2].e;
    }
    if (!marked && a.n <= like)
        return BAD(ps, EPARSE, "a call without arguments needs a type (f:float32())");
    if (!marked) type = a.e[like]->type;
    const char *z = cd_str_dup(ps->scratch, name);
    if (!z) return CD_FAIL(ps->err, ENOMEM, "call");
    out->e = cd_expr_new_call(ps->pool, type, z, a.e, a.n);
    return deeper(ps, out, a.depth);
}

/* What follows the name decides: ( a call or cast, [ a load, nothing an axis. */
static cdmpp_status named(parser *ps, bool neg, value *out) {
    const cd_str w = word(ps);
    cd_dtype type = CD_I32;
    bool marked;
    out->bare = false;
    out->depth = 1;
    if (is(w, "inf") || is(w, "nan"))
        return put_literal(ps, false, neg, 0, is(w, "inf") ? (double)INFINITY : (double)NAN, out);
    if (is(w, "true") || is(w, "false")) {
        out->e = cd_expr_new_int(ps->pool, CD_BOOL, is(w, "true"));
        return CDMPP_OK;
    }
    CD_TRY(type_mark(ps, &type, &marked));
    if (eat(ps, "(")) return call(ps, w, type, marked, out);
    if (marked) return expected(ps, "(");
    if (eat(ps, "[")) return load(ps, w, out);
    out->e = ps->scope->var(ps->scope->ctx, w);
    return out->e ? CDMPP_OK : BAD(ps, ESCHEMA, "no axis \"%.*s\"", cd_str_shown(w, 60), w.p);
}

/* ---- operators ---- */

static cdmpp_status negated(parser *ps, value *out) {
    value zero = {cd_expr_new_int(ps->pool, CD_I32, 0), 1, true}, v;
    skip_space(ps);
    if (ps->p < ps->end && is_digit(*ps->p)) return literal(ps, true, out);
    if (ps->end - ps->p >= 3 && (!memcmp(ps->p, "inf", 3) || !memcmp(ps->p, "nan", 3)) &&
        (ps->end - ps->p == 3 || !is_word(ps->p[3])))
        return named(ps, true, out);
    CD_TRY(parse(ps, 6, &v));
    return binary(ps, CD_SUB, &zero, &v, out);
}

/* Anything that binds tighter than an infix operator. */
static cdmpp_status primary(parser *ps, value *out) {
    skip_space(ps);
    if (ps->p == ps->end) return expected(ps, "an expression");
    if (is_digit(*ps->p)) return literal(ps, false, out);
    if (is_alpha(*ps->p)) return named(ps, false, out);
    if (eat(ps, "'")) return text_literal(ps, out);
    if (eat(ps, "-")) return negated(ps, out);
    if (eat(ps, "(")) {
        CD_TRY(parse(ps, 1, out));
        out->bare = false;
        return eat(ps, ")") ? CDMPP_OK : expected(ps, ")");
    }
    if (!eat(ps, "!")) return expected(ps, "an expression");
    value v;
    CD_TRY(parse(ps, 6, &v));
    if (v.e->type != CD_BOOL) return BAD(ps, ESCHEMA, "! of something that is no condition");
    out->e = cd_expr_new_not(ps->pool, v.e);
    return deeper(ps, out, v.depth);
}

/* The operator at the cursor if its level is at least min_level. Longer signs first. */
static cd_expr_op infix(parser *ps, unsigned min_level, unsigned *level) {
    static const struct {
        const char *sign;
        cd_expr_op op;
        unsigned level;
    } tab[] = {{"||", CD_OR, 1}, {"&&", CD_AND, 2}, {"==", CD_EQ, 3}, {"!=", CD_NE, 3},
               {"<=", CD_LE, 3}, {">=", CD_GE, 3},  {"<", CD_LT, 3},  {">", CD_GT, 3},
               {"+", CD_ADD, 4}, {"-", CD_SUB, 4},  {"*", CD_MUL, 5}, {"//", CD_FDIV, 5},
               {"/", CD_DIV, 5}, {"%", CD_FMOD, 5}};
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        const char *at = ps->p;
        if (!eat(ps, tab[k].sign)) continue;
        *level = tab[k].level;
        if (tab[k].level >= min_level) return tab[k].op;
        ps->p = at;
        break;
    }
    return CD_EXPR_OP_COUNT;
}

static cdmpp_status parse(parser *ps, unsigned min_level, value *out) {
    if (++ps->level > 2 * CD_TE_MAX_DEPTH)
        return BAD(ps, EUNSUPPORTED, "nested deeper than %d", CD_TE_MAX_DEPTH);
    CD_TRY(primary(ps, out));
    unsigned level;
    for (cd_expr_op op; (op = infix(ps, min_level, &level)) != CD_EXPR_OP_COUNT;) {
        value left = *out, right;
        CD_TRY(parse(ps, level + 1, &right));
        CD_TRY(binary(ps, op, &left, &right, out));
        if (op == CD_DIV && !cd_expr_dtype_is_float(out->e->type))
            return BAD(ps, ESCHEMA, "/ of integers: write // (rounds down) or truncdiv(a, b)");
    }
    ps->level--;
    return CDMPP_OK;
}

cdmpp_status cd_te_parse(cd_expr_pool *p, cd_arena *scratch, cd_str text, cd_dtype want,
                         const cd_te_scope *scope, const cd_expr **out, cdmpp_err *err) {
    parser ps = {p, scratch, text.p, text.p, text.p + text.n, scope, err, 0};
    value v;
    CD_TRY(parse(&ps, 1, &v));
    skip_space(&ps);
    if (ps.p != ps.end) return expected(&ps, "an operator");
    adopt(&ps, &v, want);
    *out = v.e;
    return p->oom ? CD_FAIL(err, ENOMEM, "expression") : CDMPP_OK;
}
