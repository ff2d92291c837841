/* Ranges of index expressions against all their values, and what conditions leave of the
 * variables. */
#include <stdio.h>
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "features/te/te.h"
#include "features/te_shard/te_shard_internal.h"

/* ---- expressions of i, j, k ---- */
enum { AXES = 3 };
static const char *const axis_name[AXES] = {"i", "j", "k"};
static cd_te_dag *dag;
static const cd_expr *axis[AXES];
static cdmpp_err err;

static int up(void **state) {
    (void)state;
    if (cd_te_dag_new(&dag, &err)) return 1;
    for (uint32_t a = 0; a < AXES; a++) axis[a] = cd_expr_new_var(&dag->pool, CD_I32, a);
    return 0;
}

static int down(void **state) {
    (void)state;
    cd_te_dag_free(dag);
    return 0;
}

static const cd_expr *axis_of(const void *ctx, cd_str name) {
    (void)ctx;
    for (uint32_t a = 0; a < AXES; a++)
        if (cd_str_is(name, axis_name[a])) return axis[a];
    return NULL;
}

static bool no_tensor(const void *ctx, cd_str name, uint32_t *number, cd_dtype *type) {
    (void)ctx, (void)name, (void)number, (void)type;
    return false;
}

static const cd_expr *expr(const char *text) {
    static const cd_te_scope scope = {axis_of, no_tensor, NULL};
    const cd_expr *e = NULL;
    assert_ok(cd_te_parse(&dag->pool, &dag->arena, (cd_str){text, strlen(text)}, CD_I32, &scope, &e,
                          &err));
    return e;
}

static int64_t floor_of(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/* The slow truth. */
static int64_t value(const cd_expr *e, const int64_t *at) {
    if (e->op == CD_INT) return e->u.i;
    if (e->op == CD_VAR) return at[e->u.i];
    const int64_t x = value(e->a[0], at);
    if (e->op == CD_NOT) return !x;
    if (e->op == CD_SELECT) return value(e->a[x ? 1 : 2], at);
    const int64_t y = value(e->a[1], at);
    switch ((cd_expr_op)e->op) {
    case CD_ADD: return x + y;
    case CD_SUB: return x - y;
    case CD_MUL: return x * y;
    case CD_FDIV: return floor_of(x, y);
    case CD_FMOD: return x - y * floor_of(x, y);
    case CD_DIV: return x / y;
    case CD_MOD: return x % y;
    case CD_MIN: return x < y ? x : y;
    case CD_MAX: return x > y ? x : y;
    case CD_AND: return x && y;
    case CD_OR: return x || y;
    case CD_EQ: return x == y;
    case CD_NE: return x != y;
    case CD_LT: return x < y;
    case CD_LE: return x <= y;
    case CD_GT: return x > y;
    case CD_GE: return x >= y;
    default: fail_msg("no value of operation %d", e->op); return 0;
    }
}

typedef struct {
    int64_t at[AXES][2]; /* first and last value of each axis */
} ranges;

typedef struct {
    cd_te_shard_var v[AXES];
    cd_te_shard_env env;
} box;

static box box_of(const ranges *span) {
    box b;
    for (uint32_t a = 0; a < AXES; a++)
        b.v[a] = (cd_te_shard_var){.number = a, .s = {span->at[a][0], span->at[a][1]}};
    b.env = (cd_te_shard_env){AXES, NULL};
    return b;
}

/* Least and most of e where cond (NULL: everywhere) is `truth`; false: nowhere. */
static bool all_values(const cd_expr *e, const cd_expr *cond, bool truth, const ranges *span,
                       cd_te_shard_span *out) {
    int64_t at[AXES];
    bool any = false;
    for (at[0] = span->at[0][0]; at[0] <= span->at[0][1]; at[0]++)
        for (at[1] = span->at[1][0]; at[1] <= span->at[1][1]; at[1]++)
            for (at[2] = span->at[2][0]; at[2] <= span->at[2][1]; at[2]++) {
                if (cond && (value(cond, at) != 0) != truth) continue;
                const int64_t x = value(e, at);
                if (!any || x < out->lo) out->lo = x;
                if (!any || x > out->hi) out->hi = x;
                any = true;
            }
    return any;
}

/* ---- ranges ---- */

/* The smallest range of each, by trying all values. */
TEST(exact_ranges) {
    static const char *const tab[] = {
        "7",
        "i",
        "i + j",
        "i - j",
        "3*i - 2*j + 5",
        "i*8 + j*2 + k",
        "i + j - i",
        "2*(i - j) + 2*j",
        "i*-3",
        "min(i, j)",
        "max(i, j)",
        "max(min(i, 9), 4)",
        "i % 8",
        "(i + 16) % 8",
        "(i*8 + j) % 8",
        "(i*8 + j + 3) % 8",
        "(i*8 + j) // 8",
        "(i*16 + j*4 + 1) // 4",
        "(i*4 + 1) % 2",
        "i // 2",
        "(i + 8) // 8 - i // 8",
        "i // 8*8 + i % 8 - i + i",
        "truncdiv(i, 2)",
        "truncmod(i, 8)",
        "(i - 20) // 4",
        "(i - 20) % 4 + 0*j",
        "i*0 + 3",
        "(i*2 + 1)*(0 + 4)",
    };
    static const ranges span = {{{2, 5}, {0, 7}, {-3, 1}}};
    for (size_t t = 0; t < sizeof tab / sizeof *tab; t++) {
        box b = box_of(&span);
        b.env.v = b.v;
        const cd_expr *e = expr(tab[t]);
        cd_te_shard_span want = {0, 0};
        assert_true(all_values(e, NULL, true, &span, &want));
        const cd_te_shard_span got = cd_te_shard_range(&b.env, e);
        if (got.lo != want.lo || got.hi != want.hi)
            fail_msg("%s: %lld..%lld, not %lld..%lld", tab[t], (long long)got.lo, (long long)got.hi,
                     (long long)want.lo, (long long)want.hi);
    }
}

static uint64_t below(uint64_t *draw, uint64_t n) { return cd_rng_at(11, (*draw)++) % n; }

/* A drawn expression of what this room reads, in the notation of tasks. */
static void put_drawn(cd_buf *b, uint64_t *draw, int depth) {
    static const char *const infix[] = {" + ", " - ", " + ", " - "};
    static const char *const divide[] = {" // ", " % "};
    static const char *const call[] = {"min", "max"};
    const uint64_t what = depth ? below(draw, 9) : 8;
    if (what < 4) {
        cd_buf_puts(b, "(");
        put_drawn(b, draw, depth - 1);
        cd_buf_puts(b, infix[what]);
        put_drawn(b, draw, depth - 1);
        cd_buf_puts(b, ")");
    } else if (what == 4) {
        cd_buf_puts(b, "(");
        put_drawn(b, draw, depth - 1);
        cd_buf_putf(b, ")*(%d)", (int)below(draw, 11) - 5);
    } else if (what < 7) {
        cd_buf_puts(b, "(");
        put_drawn(b, draw, depth - 1);
        cd_buf_putf(b, ")%s%d", divide[what - 5], 1 + (int)below(draw, 9));
    } else if (what == 7) {
        cd_buf_putf(b, "%s(", call[below(draw, 2)]);
        put_drawn(b, draw, depth - 1);
        cd_buf_puts(b, ", ");
        put_drawn(b, draw, depth - 1);
        cd_buf_puts(b, ")");
    } else if (below(draw, 4)) {
        cd_buf_puts(b, axis_name[below(draw, AXES)]);
    } else {
        cd_buf_putf(b, "%d", (int)below(draw, 20));
    }
}

static void draw_spans(uint64_t *draw, ranges *span) {
    for (int a = 0; a < AXES; a++) {
        span->at[a][0] = (int64_t)below(draw, 12) - 5;
        span->at[a][1] = span->at[a][0] + (int64_t)below(draw, 9);
    }
}

/* Every value lies in the range, whatever the expression. */
TEST(drawn_ranges) {
    uint64_t draw = 0;
    for (int k = 0; k < 3000; k++) {
        ranges span;
        cd_buf b = {0};
        cd_te_shard_span want = {0, 0};
        put_drawn(&b, &draw, 4);
        draw_spans(&draw, &span);
        box x = box_of(&span);
        x.env.v = x.v;
        const cd_expr *e = expr(b.p);
        assert_true(all_values(e, NULL, true, &span, &want));
        const cd_te_shard_span got = cd_te_shard_range(&x.env, e);
        if (got.lo > want.lo || got.hi < want.hi)
            fail_msg("%s: %lld..%lld, not %lld..%lld", b.p, (long long)got.lo, (long long)got.hi,
                     (long long)want.lo, (long long)want.hi);
        cd_buf_free(&b);
    }
}

/* ---- conditions ---- */

static void assumed(const char *text, bool truth, const ranges *span, bool exact) {
    box b = box_of(span);
    b.env.v = b.v;
    const cd_expr *c = expr(text);
    const bool may = cd_te_shard_assume(&b.env, c, truth);
    for (int a = 0; a < AXES; a++) {
        cd_te_shard_span want = {0, 0};
        const bool ever = all_values(axis[a], c, truth, span, &want),
                   inside = !ever || (b.v[a].s.lo <= want.lo && b.v[a].s.hi >= want.hi);
        if ((ever && !may) || (exact && ever != may) || (may && !inside) ||
            (exact && may && (b.v[a].s.lo != want.lo || b.v[a].s.hi != want.hi)))
            fail_msg("%s%s: %s is in %lld..%lld, not %lld..%lld", truth ? "" : "not ", text,
                     axis_name[a], (long long)b.v[a].s.lo, (long long)b.v[a].s.hi,
                     (long long)want.lo, (long long)want.hi);
    }
}

/* A comparison of one variable, or of sums with factors of one, leaves just what it allows. */
TEST(exact_conditions) {
    static const char *const tab[] = {"i >= 3",
                                      "i > 3",
                                      "i <= 3",
                                      "i < 3",
                                      "3 < i",
                                      "3 >= i",
                                      "i == 4",
                                      "i >= 9",
                                      "i < 2",
                                      "i <= 5",
                                      "i*2 >= 7",
                                      "i*2 > 6",
                                      "i*3 < 10",
                                      "i*-2 >= -7",
                                      "7 - i < 4",
                                      "i + 2 >= 5",
                                      "i >= 3 && i < 5",
                                      "i >= 3 && j < 2",
                                      "i + j >= 12",
                                      "i + j <= 2",
                                      "i - j > 4",
                                      "j - i == 5",
                                      "i % 4 == 1",
                                      "j % 3 == 2",
                                      "j % 5 == 4",
                                      "(j + 2) % 4 == 1",
                                      "(j + 1) % 5 == 2",
                                      "(i - 1) % 3 == 0",
                                      "(j + 1) % 5 == 1",
                                      "i == 9",
                                      "true",
                                      "false",
                                      "true && i < 4",
                                      "false && i < 4",
                                      "i < 4 && false"};
    static const char *const refused[] = {
        "i < 3", "!(i >= 3)", "!!(i <= 3)",     "i < 3 || i >= 5", "j >= 6 || i == 2 && false",
        "true",  "false",     "false || i > 3", "i != 4",          "!(i == 4)"};
    static const ranges span = {{{2, 5}, {0, 7}, {0, 0}}};
    for (size_t t = 0; t < sizeof tab / sizeof *tab; t++) assumed(tab[t], true, &span, true);
    for (size_t t = 0; t < sizeof refused / sizeof *refused; t++)
        assumed(refused[t], false, &span, strstr(refused[t], "&&") == NULL);
}

/* Nothing that a condition allows is lost, and a condition that holds somewhere is possible. */
TEST(drawn_conditions) {
    static const char *const sign[] = {" < ", " <= ", " > ", " >= ", " == ", " != "};
    static const char *const both[] = {" && ", " || "};
    uint64_t draw = 1000000;
    for (int k = 0; k < 2000; k++) {
        ranges span;
        cd_buf b = {0};
        const int n = 1 + (int)below(&draw, 2);
        for (int i = 0; i < n; i++) {
            if (i) cd_buf_puts(&b, both[below(&draw, 2)]);
            cd_buf_puts(&b, below(&draw, 4) ? "(" : "!(");
            put_drawn(&b, &draw, 2);
            cd_buf_puts(&b, sign[below(&draw, 6)]);
            if (below(&draw, 3)) cd_buf_putf(&b, "%d)", (int)below(&draw, 12) - 3);
            else put_drawn(&b, &draw, 1), cd_buf_puts(&b, ")");
        }
        draw_spans(&draw, &span);
        assumed(b.p, true, &span, false);
        assumed(b.p, false, &span, false);
        cd_buf_free(&b);
    }
}

TESTS(up, down, exact_ranges, drawn_ranges, exact_conditions, drawn_conditions)
