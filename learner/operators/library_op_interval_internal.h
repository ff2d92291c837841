/* What the files that fit intervals share: residuals as weighted points, and what the rows of a
 * device have in common. */
#ifndef CD_LIBRARY_OP_INTERVAL_INTERNAL_H
#define CD_LIBRARY_OP_INTERVAL_INTERNAL_H
#include "learner/operators/operators.h"

enum { CD_LIBRARY_OP_MIN_ROWS = 30 };
/* How many devices the other classes count for in what devices differ by. */
#define CD_LIBRARY_OP_PRIOR_DEVICES 2.0

/* A residual with the weight that makes each class of each device count the same. */
typedef struct cd_library_op_point {
    double at, r, weight, distance; /* at: what the scale depends on */
    uint32_t group, device;
} cd_library_op_point;

/* Residuals of which an entry, or a part of one, is made. */
typedef struct cd_library_op_want {
    cd_library_op_held held;
    uint32_t classes, device, stack; /* CD_LIBRARY_OP_ANY_DEVICE: any */
} cd_library_op_want;

typedef struct cd_library_op_entries {
    const cd_library_op_residual *r;
    size_t n;
    const cd_library_op_residual *without; /* NULL, or one whose part is left out */
    cd_library_op_point *p;                /* (n) scratch */
    /* median over classes of between^2; 0: one class tells nothing of another */
    double prior[CD_LIBRARY_OP_N_ENTRY];
    double other[2], other_freedom;
    cd_library_op_spread *out; /* (n_out), owned */
    size_t n_out, room;
} cd_library_op_entries;

#endif
