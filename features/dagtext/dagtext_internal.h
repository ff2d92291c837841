/* What the files of features/dagtext share. */
#ifndef CD_DAGTEXT_INTERNAL_H
#define CD_DAGTEXT_INTERNAL_H
#include "features/dagtext/dagtext.h"

#define CD_DAGTEXT_MAX_OP 256

/* One line. A load in `body` names an operator; operators may have equal names. */
typedef struct cd_dagtext_line {
    cd_str name, body; /* body.n == 0: a placeholder */
    uint32_t n_axis, n_raxis, rank;
    const cd_str *axis, *raxis; /* raxis: the other names of the body, in the order of first use */
    const int64_t *shape;       /* (rank) of a placeholder */
    cd_expr_op reduce;          /* CD_ADD, CD_MAX, CD_MIN; 0: none */
} cd_dagtext_line;

/* A load whose name several earlier operators have. */
typedef struct cd_dagtext_site {
    uint32_t line, chosen; /* the operator that is read, as a line */
} cd_dagtext_site;

typedef struct cd_dagtext {
    cd_arena *a;
    cdmpp_err *err;
    uint32_t n_line, n_site, cap_site;
    cd_dagtext_line *line;   /* (n_line) */
    cd_dagtext_site *site;   /* (n_site) in the order of the text */
    uint32_t n_dim, n_shape; /* of the key */
    const int64_t *dim;      /* (n_dim) all dimensions of the key, one after another */
    const uint32_t *rank;    /* (n_shape) ranks of its shapes; n_shape 0: a flat key */
    unsigned allowed, rests;
} cd_dagtext;

/* The next token of a body: a word, a number with its type, or one sign. False: the end. */
typedef enum {
    CD_TOKEN_END,
    CD_TOKEN_LOAD,
    CD_TOKEN_CALL,
    CD_TOKEN_AXIS,
    CD_TOKEN_NUMBER,
    CD_TOKEN_SIGN
} cd_dagtext_token;

/* Is the type of every tensor fixed by a literal or a cast? Errors: ENOTASK (open), ENOMEM. */
cdmpp_status cd_dagtext_types(cd_dagtext *t, const cd_te_dag *dag);

/* Adaptive pools: the extents of a sum's reduction are expressions, which its average prints as
 * what it divides by. Errors: EUNSUPPORTED (such a reduction without an average), ENOMEM. */
cdmpp_status cd_dagtext_adapt(cd_dagtext *t, cd_te_dag *dag);

/* The extent of an axis: lo <= extent <= hi. */
typedef struct cd_dagtext_extent {
    int64_t lo, hi;
} cd_dagtext_extent;
#define CD_DAGTEXT_FAR ((int64_t)1 << 40)

/* What a condition says of an axis: lo <= axis <= hi. */
typedef struct cd_dagtext_guard {
    const cd_expr *var;
    int64_t lo, hi;
    const struct cd_dagtext_guard *next;
} cd_dagtext_guard;

#define CD_DAGTEXT_MAX_VAR 8
/* One index of one load. */
typedef struct cd_dagtext_index {
    uint32_t op, tensor, dim;
    /* pair: e is floordiv(x, c) and another index of the load floormod(x, c), at dimension
     * pair_dim */
    const cd_expr *e, *pair;
    uint32_t pair_dim, n_var;
    const cd_expr *var[CD_DAGTEXT_MAX_VAR]; /* (n_var) axes in e */
    const cd_dagtext_guard *guard;
    /* the smallest distance of two elements that the axes reach, one moving */
    int64_t step;
    bool vague;   /* not understood: says nothing */
    bool part;    /* of an operator that takes a part */
    bool reduces; /* has a reduction axis */
} cd_dagtext_index;

/* All indices of a definition. Errors: ENOMEM. */
typedef struct cd_dagtext_indices {
    uint32_t n, cap;
    cd_dagtext_index *v;
} cd_dagtext_indices;
cdmpp_status cd_dagtext_find(cd_arena *a, const cd_te_dag *dag, cd_dagtext_indices *out,
                             cdmpp_err *err);

/* The values of an index. */
typedef struct cd_dagtext_range {
    int64_t lo, hi;
    int64_t gap; /* no two neighbours are further apart */
    bool empty;  /* no element: the condition never holds */
    bool loose;  /* lo and hi may not be reached */
} cd_dagtext_range;

/* Finds the extents and writes them into the definition. Errors: ENOTASK (open), ESCHEMA (no
 * solution), ENOMEM. */
cdmpp_status cd_dagtext_solve(cd_dagtext *t, cd_te_dag *dag);
#endif
