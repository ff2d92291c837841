/* rewrite_rules.def, compiled once per process into flat code.
 *
 *   "x*y+x -> x*(y+1)"   match: r0 = a, r1 = b of the node
 *                               LOAD r0 -> r2 r3; SAME r2 r1
 *                        build: REG r2, REG r3, LIT 1 like r3, BIN +, BIN *
 *
 * Rules are looked up by (operator, domain, operators of the first two
 * operands): `first` points at a 0-terminated run of rule numbers in `list`,
 * in the order of the file. Read-only after cd_rewrite_rules_get. */
#ifndef CD_RULEBOOK_H
#define CD_RULEBOOK_H
#include "features/expr/expr.h"

enum { CD_DOM_INDEX, CD_DOM_FLOAT, CD_DOM_OTHER, CD_DOM_COUNT };
enum {
    CD_RULE_REGS = 24,   /* registers of one match         */
    CD_RULE_STACK = 16,  /* stack of one build             */
    CD_RULE_RECURSIVE = 1, CD_RULE_RESIDUE = 2 /* flags    */
};

typedef enum {
    /* match: stop at the first that fails */
    CD_I_OP,    /* r[a] has operator b; its operands go to r[v]...            */
    CD_I_LOAD,  /* the same, operator already known from the lookup           */
    CD_I_INT,   /* r[a] is an integer literal                                 */
    CD_I_LIT,   /* r[a] is the integer literal v                              */
    CD_I_SAME,  /* r[a] == r[b]                                               */
    CD_I_SAMEC, /* literals r[a] and r[b] have equal values                   */
    /* build: an expression stack */
    CD_I_REG,   /* push r[a]                                                  */
    CD_I_CONST, /* push literal v of the type of r[a] (a == 255: of the node) */
    CD_I_BIN,   /* pop two, push folded a                                     */
    CD_I_NOT, CD_I_SELECT,
    /* condition: integer stack; proofs take their expression from the other */
    CD_I_VAL,   /* push value of literal r[a] */
    CD_I_NUM,   /* push v */
    CD_I_CALC,  /* pop two, push x op y (a: arithmetic or comparison); fails on x % 0 */
    CD_I_TRUE,  /* pop, fail if 0 */
    CD_I_GE,    /* pop k, pop expression e: fail unless e >= k is provable */
    CD_I_EQ0,   /* pop expression, fail unless provably 0 */
    CD_I_PURE   /* pop expression, fail unless it only reads */
} cd_rule_op;

typedef struct cd_rule_ins {
    uint8_t k, a, b;
    int8_t v;
} cd_rule_ins;

typedef struct cd_rule {
    uint16_t match, cond, build, end; /* [match, cond) [cond, build) [build, end) in code */
    uint8_t flags;
} cd_rule;

typedef struct cd_rewrite_rules {
    cd_rule *rule; /* rule 0 is unused */
    cd_rule_ins *code;
    uint16_t *list;
    uint32_t *first; /* [op][domain][class of operand 0][class of operand 1] */
    uint32_t n_rule, n_code, n_list;
} cd_rewrite_rules;

/* NULL: out of memory. A malformed table is a bug and aborts. */
const cd_rewrite_rules *cd_rewrite_rules_get(void);

#define CD_RULE_CLASSES (CD_EXPR_OP_COUNT + 1) /* operators + "no such operand" */
static inline const uint16_t *cd_rewrite_rules_find(const cd_rewrite_rules *b, const cd_expr *e, unsigned domain) {
    const unsigned k0 = e->a[0]->op, k1 = e->n > 1 ? e->a[1]->op : CD_RULE_CLASSES - 1;
    return b->list + b->first[((e->op * CD_DOM_COUNT + domain) * CD_RULE_CLASSES + k0) * CD_RULE_CLASSES + k1];
}
#endif
