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

/* All entries into f->out. Errors: ENOMEM. */
cdmpp_status cd_library_op_entries_fit(cd_library_op_entries *f, cdmpp_err *err);
/* Scales of the wanted residuals, before other classes count; the points are f->p, less what the
 * rows of a device have in common. far: as in the entry; below 0: the mean of these residuals.
 * Returns how many; 0: too few. */
size_t cd_library_op_entries_raw(cd_library_op_entries *f, const cd_library_op_want *w, double far,
                                 cd_library_op_spread *s);
/* Fill f->prior, f->other. */
void cd_library_op_entries_pool(cd_library_op_entries *f);

/* Knots of points that come in any order; with `common` the means of devices leave p[].r and go to
 * s->between. */
void cd_library_op_knots_fit(cd_library_op_point *p, size_t n, bool common,
                             cd_library_op_spread *s);
/* What is farther away is never better known. */
void cd_library_op_knots_rise(cd_library_op_spread *s);
/* Weighted quantiles of |p[].r| / scale. */
void cd_library_op_knots_times(cd_library_op_point *p, size_t n, cd_library_op_spread *s);
/* By what between^2 grows at a distance. */
double cd_library_op_grow(double distance, double far);
#endif
