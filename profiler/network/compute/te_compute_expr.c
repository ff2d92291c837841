/* Operators that are one expression of their operands at the same position. They need no function:
 * the list CD_FUSE_OPS_EXPR (fusion.h) holds stage name, axis prefix and expression, in which $0,
 * $1, $2 are operands, $p, $q and $s parameters, $t the result's type. */

#include "profiler/network/compute/compute_internal.h"

typedef struct row {
    const char *stage, *axes, *text;
    cd_fuse_pattern pattern;
} row;

static const row rows[] = {
#define CD_X(id, name, pattern, operands, stage, axes, text)                                       \
    {stage, axes, text, CD_FUSE_PATTERN_##pattern},
    CD_FUSE_OPS_EXPR(CD_X)
#undef CD_X
};

/* One $x of the expression. */
static void put_part(cd_te_compute *c, const cd_fuse_node *n, const row *r, char what,
                     const uint32_t *in) {
    char type[16];
    const cd_dtype own = n->op == CD_FUSE_OP_DEQUANTIZE ? n->dtype : c->f->node[n->in[0]].dtype;
    switch (what) {
    case 'p': cd_compute_put_literal(c, n->a.p, own); break;
    case 'q': cd_compute_put_literal(c, n->a.q, own); break;
    case 's': cd_compute_put_literal(c, n->a.s, own); break;
    case 't': cd_compute_put(c, "%s", cd_expr_dtype_format(n->dtype, type, sizeof type)); break;
    default: cd_compute_load_at(c, in[what - '0'], r->axes, &n->shape); break;
    }
}

uint32_t cd_te_compute_expr(cd_te_compute *c, const cd_fuse_node *n) {
    const row *r = &rows[n->op - CD_FUSE_OP_RELU];
    uint32_t in[3] = {0};
    for (uint32_t k = 0; k < n->n_in && k < 3; k++) in[k] = cd_compute_operand(c, n, k);
    cd_compute_begin_axes(c, r->axes, &n->shape);
    for (const char *p = r->text; *p; p++) {
        if (*p == '$') put_part(c, n, r, *++p, in);
        else cd_compute_put(c, "%c", *p);
    }
    return cd_compute_end(c, r->stage,
                          r->pattern == CD_FUSE_PATTERN_ELEM ? "elemwise" : "broadcast", NULL);
}
