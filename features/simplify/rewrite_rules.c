/* Compiles the table of rewriting rules: text -> tree -> code -> lookup by operators. The rules
 * stay readable in rewrite_rules.def, and a simplification tries only those whose operators fit. It
 * runs once a process, in about a millisecond. */
#include "features/simplify/simplify_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- parsing: a rule's text becomes a tree in a small array ---- */

enum {
    N_VAR = CD_EXPR_OP_COUNT,
    N_CONST,
    N_GE,
    N_EQ0,
    N_PURE,
    N_NEG,
    NODES = 96,
    MAX_RULES = 900,
    LIST_CAP = 1 << 17
};

typedef struct {
    uint8_t kind; /* a cd_expr_op, or one of the above */
    uint8_t name; /* N_VAR: which name; N_CONST: which literal name */
    int8_t v;     /* CD_INT */
    uint8_t n, a[3];
} node;

typedef struct {
    const char *p, *end;
    bool swap; /* read min for max and the reverse */
    uint8_t n;
    node node[NODES];
} parser;

static const char *const names[] = {"x", "y", "z", "b1", "b2", "s1", "s2", "c1", "c2", "c3"};
enum { FIRST_CONST = 7, N_NAMES = 10 };

static void need(bool ok) {
    if (!ok) abort(); /* the table in this source tree is malformed */
}

static uint8_t node_new(parser *p, uint8_t kind, uint8_t n, uint8_t a, uint8_t b, uint8_t c) {
    need(p->n < NODES);
    p->node[p->n] = (node){.kind = kind, .n = n, .a = {a, b, c}};
    return p->n++;
}

static bool take(parser *p, const char *s) {
    while (p->p < p->end && *p->p == ' ') p->p++;
    const size_t n = strlen(s);
    if ((size_t)(p->end - p->p) < n || memcmp(p->p, s, n) != 0) return false;
    p->p += n;
    return true;
}

static uint8_t parse_level(parser *p, size_t k);

static const struct {
    const char *name;
    uint8_t kind, swapped, n;
} funcs[] = {{"min(", CD_MIN, CD_MAX, 2},
             {"max(", CD_MAX, CD_MIN, 2},
             {"tdiv(", CD_DIV, CD_DIV, 2},
             {"tmod(", CD_MOD, CD_MOD, 2},
             {"select(", CD_SELECT, CD_SELECT, 3},
             {"ge(", N_GE, N_GE, 2},
             {"eq0(", N_EQ0, N_EQ0, 1},
             {"pure(", N_PURE, N_PURE, 1}};

static uint8_t parse_call(parser *p, size_t f) {
    uint8_t a[3] = {0};
    for (uint8_t i = 0; i < funcs[f].n; i++) {
        if (i) need(take(p, ","));
        a[i] = parse_level(p, 0);
    }
    need(take(p, ")"));
    return node_new(p, p->swap ? funcs[f].swapped : funcs[f].kind, funcs[f].n, a[0], a[1], a[2]);
}

/* A name, a literal 0, 1 or 2, a function, a sign or parentheses. Longer names come first in the
 * table, so b1 is not read as b. */
static uint8_t parse_primary(parser *p) {
    if (take(p, "!")) return node_new(p, CD_NOT, 1, parse_primary(p), 0, 0);
    if (take(p, "-")) return node_new(p, N_NEG, 1, parse_primary(p), 0, 0);
    if (take(p, "(")) {
        const uint8_t r = parse_level(p, 0);
        need(take(p, ")"));
        return r;
    }
    for (size_t f = 0; f < sizeof funcs / sizeof *funcs; f++)
        if (take(p, funcs[f].name)) return parse_call(p, f);
    for (uint8_t i = 0; i < N_NAMES; i++) {
        if (!take(p, names[i])) continue;
        const uint8_t r = node_new(p, i < FIRST_CONST ? N_VAR : N_CONST, 0, 0, 0, 0);
        p->node[r].name = i;
        return r;
    }
    for (int8_t v = 0; v < 3; v++) {
        if (!take(p, v == 0 ? "0" : v == 1 ? "1" : "2")) continue;
        const uint8_t r = node_new(p, CD_INT, 0, 0, 0, 0);
        p->node[r].v = v;
        return r;
    }
    need(false);
    return 0;
}

/* Left-associative operators of one precedence level, longer spellings first. */
typedef struct {
    const char *text;
    uint8_t op;
} infix;
static const infix level_mul[] = {{"*", CD_MUL}, {"//", CD_FDIV}, {"%", CD_FMOD}, {0}};
static const infix level_add[] = {{"+", CD_ADD}, {"-", CD_SUB}, {0}};
static const infix level_cmp[] = {
    {"==", CD_EQ}, {"!=", CD_NE}, {"<=", CD_LE}, {">=", CD_GE}, {"<", CD_LT}, {">", CD_GT}, {0}};
static const infix level_and[] = {{"&&", CD_AND}, {0}};
static const infix level_or[] = {{"||", CD_OR}, {0}};
static const infix *const levels[] = {level_or, level_and, level_cmp, level_add, level_mul};

static uint8_t parse_level(parser *p, size_t k) {
    if (k == sizeof levels / sizeof *levels) return parse_primary(p);
    uint8_t a = parse_level(p, k + 1);
    for (size_t i = 0; levels[k][i].text;) {
        if (!take(p, levels[k][i].text)) {
            i++;
            continue;
        }
        a = node_new(p, levels[k][i].op, 2, a, parse_level(p, k + 1), 0);
        i = 0;
    }
    return a;
}

static uint8_t parse(parser *p, const char *s, const char *end, bool swap) {
    *p = (parser){.p = s, .end = end, .swap = swap};
    const uint8_t r = parse_level(p, 0);
    need(p->p == p->end);
    return r;
}

/* ---- code ---- */

typedef struct {
    cd_rule rule[MAX_RULES];
    uint8_t op[MAX_RULES], domain[MAX_RULES], class0[MAX_RULES], class1[MAX_RULES];
    cd_rule_ins code[16384];
    uint32_t n_rule, n_code;
    uint8_t reg[N_NAMES]; /* where each name of the present rule is; 255: not yet */
    uint8_t n_reg;
} compiler;
enum { ANY_CLASS = 255, ANY_DOMAIN = CD_DOM_COUNT, NO_OPERAND = CD_RULE_CLASSES - 1 };

static void emit(compiler *c, cd_rule_op k, uint8_t a, uint8_t b, int8_t v) {
    need(c->n_code < sizeof c->code / sizeof *c->code);
    c->code[c->n_code++] = (cd_rule_ins){(uint8_t)k, a, b, v};
}

static void match_leaf(compiler *c, const node *x, uint8_t reg, bool class_known) {
    if (x->kind == CD_INT) {
        emit(c, CD_I_LIT, reg, 0, x->v);
        return;
    }
    uint8_t *at = &c->reg[x->name];
    if (x->kind == N_CONST && !class_known) emit(c, CD_I_INT, reg, 0, 0);
    if (*at == 255) *at = reg;
    else emit(c, x->kind == N_CONST ? CD_I_SAMEC : CD_I_SAME, reg, *at, 0);
}

/* Operands of `x` are in registers from `base` on: leaves first, they fail soonest. */
static void match_operands(compiler *c, const parser *p, const node *x, uint8_t base, bool root) {
    for (uint8_t i = 0; i < x->n; i++)
        if (p->node[x->a[i]].n == 0)
            match_leaf(c, &p->node[x->a[i]], (uint8_t)(base + i), root && i < 2);
    for (uint8_t i = 0; i < x->n; i++) {
        const node *y = &p->node[x->a[i]];
        if (y->n == 0) continue;
        const uint8_t sub = c->n_reg;
        need(sub + y->n <= CD_RULE_REGS);
        c->n_reg = (uint8_t)(sub + y->n);
        emit(c, root && i < 2 ? CD_I_LOAD : CD_I_OP, (uint8_t)(base + i), y->kind, (int8_t)sub);
        match_operands(c, p, y, sub, false);
    }
}

/* A register whose expression has the type of node `i`; 255 when it holds literals only. */
static uint8_t typed_like(const compiler *c, const parser *p, uint8_t i) {
    const node *x = &p->node[i];
    if (x->kind == N_VAR || x->kind == N_CONST) return c->reg[x->name];
    for (uint8_t k = x->kind == CD_SELECT ? 1 : 0; k < x->n; k++) {
        const uint8_t r = typed_like(c, p, x->a[k]);
        if (r != 255) return r;
    }
    return 255;
}

/* `like` is a register whose type a literal takes; it comes from the other operand, as TVM's
 * operators match types. */
static void build(compiler *c, const parser *p, uint8_t i, uint8_t like) {
    const node *x = &p->node[i];
    if (x->kind == N_VAR || x->kind == N_CONST) {
        need(c->reg[x->name] != 255);
        emit(c, CD_I_REG, c->reg[x->name], 0, 0);
    } else if (x->kind == CD_INT) {
        emit(c, CD_I_CONST, like, 0, x->v);
    } else {
        need(x->kind < CD_EXPR_OP_COUNT);
        for (uint8_t k = 0; k < x->n; k++) {
            uint8_t other = like;
            if (x->n == 2 && x->kind != CD_AND && x->kind != CD_OR)
                other = typed_like(c, p, x->a[!k]);
            build(c, p, x->a[k], other);
        }
        emit(c,
             x->kind == CD_NOT      ? CD_I_NOT
             : x->kind == CD_SELECT ? CD_I_SELECT
                                    : CD_I_BIN,
             x->kind, 0, 0);
    }
}

/* Arithmetic on the values of literals, for the integer stack. */
static void cond_value(compiler *c, const parser *p, uint8_t i) {
    const node *x = &p->node[i];
    if (x->kind == N_CONST) {
        emit(c, CD_I_VAL, c->reg[x->name], 0, 0);
    } else if (x->kind == CD_INT) {
        emit(c, CD_I_NUM, 0, 0, x->v);
    } else if (x->kind == N_NEG) {
        emit(c, CD_I_NUM, 0, 0, 0);
        cond_value(c, p, x->a[0]);
        emit(c, CD_I_CALC, CD_SUB, 0, 0);
    } else {
        need(x->n == 2);
        cond_value(c, p, x->a[0]);
        cond_value(c, p, x->a[1]);
        emit(c, CD_I_CALC, x->kind, 0, 0);
    }
}

/* Each part of a conjunction is a test that fails at once. */
static void cond(compiler *c, const parser *p, uint8_t i) {
    const node *x = &p->node[i];
    switch (x->kind) {
    case CD_AND:
        cond(c, p, x->a[0]);
        cond(c, p, x->a[1]);
        break;
    case N_GE:
        build(c, p, x->a[0], 255);
        cond_value(c, p, x->a[1]);
        emit(c, CD_I_GE, 0, 0, 0);
        break;
    case N_EQ0:
    case N_PURE:
        build(c, p, x->a[0], 255);
        emit(c, x->kind == N_EQ0 ? CD_I_EQ0 : CD_I_PURE, 0, 0, 0);
        break;
    default:
        cond_value(c, p, i);
        emit(c, CD_I_TRUE, 0, 0, 0);
        break;
    }
}

static uint8_t class_of(const parser *p, const node *root, uint8_t i) {
    if (i >= root->n) return NO_OPERAND;
    const node *x = &p->node[root->a[i]];
    return x->kind == N_VAR ? ANY_CLASS : x->kind == N_CONST ? CD_INT : x->kind;
}

typedef struct {
    const char *result, *result_end, *cond, *cond_end;
    bool recursive, swap;
    uint8_t domain;
} rule_text;

/* Matching fills registers: the operands of the root first, then those of nested nodes. Conditions
 * and result refer to them. */
static void add_rule(compiler *c, const char *s, const char *end, const rule_text *t) {
    need(c->n_rule < MAX_RULES);
    parser p;
    const node *root = &p.node[parse(&p, s, end, t->swap)];
    const uint32_t r = c->n_rule++;
    c->op[r] = root->kind;
    c->domain[r] = t->domain;
    c->class0[r] = class_of(&p, root, 0);
    c->class1[r] = class_of(&p, root, 1);
    memset(c->reg, 255, sizeof c->reg);
    c->n_reg = root->n;
    c->rule[r].match = (uint16_t)c->n_code;
    match_operands(c, &p, root, 0, true);
    c->rule[r].cond = (uint16_t)c->n_code;
    if (t->cond) {
        const uint8_t i = parse(&p, t->cond, t->cond_end, t->swap);
        cond(c, &p, i);
    }
    c->rule[r].build = (uint16_t)c->n_code;
    if (*t->result == '@') {
        c->rule[r].flags = CD_RULE_RESIDUE;
    } else {
        const uint8_t i = parse(&p, t->result, t->result_end, t->swap);
        build(c, &p, i, 255);
        c->rule[r].flags = t->recursive ? CD_RULE_RECURSIVE : 0;
    }
    c->rule[r].end = (uint16_t)c->n_code;
}

/* "p ; p -> r if c" */
static void add_line(compiler *c, const char *s, uint8_t domain, bool swap) {
    const char *end = s + strlen(s), *arrow = strstr(s, " -> "), *cnd = strstr(s, " if ");
    rule_text t = {.domain = domain, .swap = swap, .recursive = !arrow};
    if (!arrow) arrow = strstr(s, " => ");
    need(arrow != NULL);
    t.result = arrow + 4;
    t.result_end = cnd ? cnd : end;
    t.cond = cnd ? cnd + 4 : NULL;
    t.cond_end = end;
    for (;;) {
        const char *semi = strstr(s, " ; ");
        add_rule(c, s, semi ? semi : arrow, &t);
        if (!semi) return;
        s = semi + 3;
    }
}

static void compile(compiler *c) {
    c->n_rule = 1;
#define I(text)  add_line(c, text, CD_DOM_INDEX, false);
#define F(text)  add_line(c, text, CD_DOM_FLOAT, false);
#define A(text)  add_line(c, text, ANY_DOMAIN, false);
#define ID(text) I(text) add_line(c, text, CD_DOM_INDEX, true);
#define AD(text) A(text) add_line(c, text, ANY_DOMAIN, true);
#include "features/simplify/rewrite_rules.def"
#undef I
#undef F
#undef A
#undef ID
#undef AD
}

/* ---- lookup ---- */

/* Of rules `in`, those whose operand of classes `class` may have operator k; returns how many. */
static uint32_t narrow(const uint8_t *class, const uint16_t *in, uint32_t n, unsigned k,
                       uint16_t *out) {
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; i++)
        if (class[in[i]] == k || (class[in[i]] == ANY_CLASS && k != NO_OPERAND)) out[m++] = in[i];
    return m;
}

/* Patterns like x-x want equal operators: no run of other pairs holds them. */
static bool wants_same(const compiler *c, uint16_t r) {
    const cd_rule_ins *i = &c->code[c->rule[r].match];
    return c->rule[r].match != c->rule[r].cond && i->k == CD_I_SAME && i->a == 1 && i->b == 0;
}

static void index_pair(const compiler *c, cd_rewrite_rules *b, uint32_t cell, const uint16_t *fit,
                       uint32_t n, bool equal) {
    const uint32_t at = b->n_list;
    for (uint32_t i = 0; i < n; i++)
        if (equal || !wants_same(c, fit[i])) b->list[b->n_list++] = fit[i];
    if (b->n_list == at) return;
    b->first[cell] = at;
    b->n_list++;
    need(b->n_list + MAX_RULES < LIST_CAP);
}

/* For every pair of operand operators the rules that can match it, in the order of the file. */
static void index_op(const compiler *c, cd_rewrite_rules *b, unsigned op) {
    uint16_t mine[MAX_RULES], left[MAX_RULES], fit[MAX_RULES];
    for (unsigned d = 0; d < CD_DOM_COUNT; d++) {
        uint32_t n = 0;
        for (uint32_t r = 1; r < c->n_rule; r++)
            if (c->op[r] == op && (c->domain[r] == d || c->domain[r] == ANY_DOMAIN))
                mine[n++] = (uint16_t)r;
        for (unsigned k0 = 0; n && k0 < CD_EXPR_OP_COUNT; k0++) {
            const uint32_t n0 = narrow(c->class0, mine, n, k0, left);
            for (unsigned k1 = 0; n0 && k1 < CD_RULE_CLASSES; k1++) {
                const uint32_t cell =
                    ((op * CD_DOM_COUNT + d) * CD_RULE_CLASSES + k0) * CD_RULE_CLASSES + k1;
                index_pair(c, b, cell, fit, narrow(c->class1, left, n0, k1, fit), k0 == k1);
            }
        }
    }
}

static bool index_rules(const compiler *c, cd_rewrite_rules *b) {
    b->first = calloc((size_t)CD_EXPR_OP_COUNT * CD_DOM_COUNT * CD_RULE_CLASSES * CD_RULE_CLASSES,
                      sizeof *b->first);
    b->list = calloc(LIST_CAP, sizeof *b->list);
    if (!b->first || !b->list) return false;
    b->n_list = 1; /* list[0] = 0: the empty run */
    for (unsigned op = 0; op < CD_EXPR_OP_COUNT; op++) index_op(c, b, op);
    return true;
}

static cd_rewrite_rules book;
static bool ready;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Process-wide and never freed, hence not through base/mem, whose tests count blocks. */
static void make_book(void) {
    compiler *c = calloc(1, sizeof *c);
    if (!c) return;
    compile(c);
    book.n_rule = c->n_rule;
    book.n_code = c->n_code;
    book.rule = malloc(c->n_rule * sizeof *book.rule);
    book.code = malloc(c->n_code * sizeof *book.code);
    if (book.rule && book.code && index_rules(c, &book)) {
        memcpy(book.rule, c->rule, c->n_rule * sizeof *book.rule);
        memcpy(book.code, c->code, c->n_code * sizeof *book.code);
        ready = true;
    }
    free(c);
}

const cd_rewrite_rules *cd_rewrite_rules_get(void) {
    pthread_once(&once, make_book);
    return ready ? &book : NULL;
}
