/* library_op_interval -- how far measured times are from predictions of what a training did not see.
 *
 *   residuals r = ln(measured / predicted) of rows held out -> for each kind of holding out, for classes and devices:
 *     scale(predicted seconds)   root of the mean of r^2 around a time, between knots; each class and device counts the same
 *     times[level]               quantile of |r| / scale, devices held out: times sqrt(1 + 1/devices)
 *   interval = predicted * exp(-/+ scale * times)
 *
 * sqrt(1 + 1/devices): few devices tell the spread of all devices badly. How it was chosen: docs/internals/learner-choices.md.
 *
 * (1) a wider level never gives a narrower interval; the width is above 0;
 * (2) devices held out need three devices, else there is no interval for a device that was not seen;
 * (3) entries stand from narrow to wide: one class of one device, one class, matrix products, all. */
#ifndef CD_LIBRARY_OP_INTERVAL_H
#define CD_LIBRARY_OP_INTERVAL_H
#include "base/core/core.h"
#include "features/operators/operators.h"

enum { CD_LIBRARY_OP_KNOTS = 6, CD_LIBRARY_OP_LEVELS = 5, CD_LIBRARY_OP_MAX_SPREADS = 65536 };
#define CD_LIBRARY_OP_ANY_DEVICE UINT32_MAX

/* What was held out of the training that gave a residual. */
typedef enum {
    CD_LIBRARY_OP_HELD_ROW,    /* rows of like sizes */
    CD_LIBRARY_OP_HELD_LARGE,  /* the rows with the most work */
    CD_LIBRARY_OP_HELD_DEVICE, /* the device */
    CD_LIBRARY_OP_N_HELD
} cd_library_op_held;
#define CD_LIBRARY_OP_HELD_NAMES "row|large|device"

typedef struct cd_library_op_residual {
    cd_library_op_held held;
    cd_library_op_class class;
    uint32_t device;           /* number of the device */
    uint32_t part;             /* rows that were held out together: a fold, a device */
    double predicted_s, log_ratio;
} cd_library_op_residual;

typedef struct cd_library_op_spread {
    cd_library_op_held held;
    uint32_t classes;          /* bit of each class that it is of */
    uint32_t device;           /* as in the residuals, or CD_LIBRARY_OP_ANY_DEVICE */
    uint64_t n_row, n_device;
    size_t n_knot;
    double at[CD_LIBRARY_OP_KNOTS], scale[CD_LIBRARY_OP_KNOTS]; /* ln of predicted seconds, ascending; > 0 */
    double times[CD_LIBRARY_OP_LEVELS];                         /* at cd_library_op_level; > 0, never falling */
    double shared;             /* part of the variance that the rows of a device have in common, 0..1 */
} cd_library_op_spread;

/* Levels of `times`, ascending. */
extern const double cd_library_op_level[CD_LIBRARY_OP_LEVELS];

/* All entries that the residuals suffice for, in the arena; *n 0: none. Errors: ENOMEM. */
cdmpp_status cd_library_op_spread_fit(const cd_library_op_residual *r, size_t n, cd_arena *a, cd_library_op_spread **out, size_t *n_out,
                                      cdmpp_err *err);
/* The narrowest entry for a class and a device (CD_LIBRARY_OP_ANY_DEVICE: not one of them); NULL: none. */
const cd_library_op_spread *cd_library_op_spread_find(const cd_library_op_spread *v, size_t n, cd_library_op_held held, cd_library_op_class c,
                                                      uint32_t device);
/* Half the width of the interval as a logarithm, > 0. level: 0..1, both open. */
double cd_library_op_spread_half(const cd_library_op_spread *s, double predicted_s, double level);

/* Residuals inside the interval of the level, of entries that were fitted without the residual's part. */
typedef struct cd_library_op_coverage {
    uint64_t n, inside, parts;
} cd_library_op_coverage;
/* Of one kind of holding out; class CD_N_LIBRARY_OP_CLASS: of all. Errors: ENOMEM. */
cdmpp_status cd_library_op_spread_check(const cd_library_op_residual *r, size_t n, cd_library_op_held held, double level,
                                        cd_library_op_coverage out[CD_N_LIBRARY_OP_CLASS + 1], cdmpp_err *err);
#endif
