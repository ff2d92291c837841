/* Expressions as text that people can write, both directions.
 *
 *   A[b, i + 2*ki, k]*max(B[k], 0.0)      names are axes; name[...] reads a tensor
 *   (i*8 + j) // 4 % 3                    // and % round down, as in Python
 *   select(i < 3 && j >= 1, 1.0, 0.5:float16)
 *   float32(i), exp(x), isnan:bool(x)     casts, calls, calls of another type
 *
 * Literals are int32 and float32 unless they say ":type"; an unmarked literal
 * takes the type of what it meets. docs/reference/tasks.md has the whole grammar. What
 * is printed reads back as the same expression. */
#ifndef CD_TETEXT_H
#define CD_TETEXT_H
#include "base/text/text.h"
#include "features/expr/expr.h"

typedef struct cd_te_scope {
    /* NULL when there is no such axis. */
    const cd_expr *(*var)(const void *ctx, cd_str name);
    /* False when there is no such tensor. */
    bool (*tensor)(const void *ctx, cd_str name, uint32_t *number, cd_dtype *type);
    const void *ctx;
} cd_te_scope;

/* Parse one expression. `want`: type that an unmarked literal takes when it
 * is the whole text. Errors: EPARSE (with the column), ESCHEMA (unknown name,
 * types that do not match), EUNSUPPORTED (too deep), ENOMEM. */
cdmpp_status cd_te_parse(cd_expr_pool *p, cd_arena *scratch, cd_str text, cd_dtype want, const cd_te_scope *scope,
                         const cd_expr **out, cdmpp_err *err);

/* The text of e; names->name gives identifiers. Errors: EUNSUPPORTED (a call
 * whose name is no identifier). */
struct cd_buf;
cdmpp_status cd_te_unparse(struct cd_buf *out, const cd_expr *e, const cd_names *names, cdmpp_err *err);

/* Usable as a name in an expression? */
bool cd_te_is_identifier(const char *s, size_t n);
/* Functions of the notation that are no calls: CD_MIN for "min" ...; CD_EXPR_OP_COUNT for others. */
cd_expr_op cd_te_function(const char *s, size_t n);
#endif
