/* calibration_internal -- inside of a calibration: what fit, apply and file share.
 *
 *   what a tree of sigma sees of a program (cd_calibration_seen numbers):
 *   | x, width | spread | m | outside: sum | outside: columns | answer[k] - m, n_kind |
 *
 * (1) calibration_weight.c  weights, shift and tilt: searches over ln s alone
 *     calibration_sigma.c   what the trees see, their training, sigma of a program
 *     calibration_range.c   the range of training
 *     calibration_spread.c  quantiles of r / sigma, in which tasks count the same
 *     calibration_pick.c    the programs of a fit, in an order that is their own
 *     calibration_file.c    JSON
 * (2) Sums run over programs in the order of calibration_pick.c: the same bits whatever order
 *     the caller had them in. */
#ifndef CD_CALIBRATION_INTERNAL_H
#define CD_CALIBRATION_INTERNAL_H
#include "base/core/core.h"
#include "learner/model/calibration.h"
#include "learner/trees/trees.h"

enum {
    CD_CALIBRATION_MAX_SIGMA = 8,      /* boosters of sigma; more folds than that share them */
    CD_CALIBRATION_BLOCK = 128          /* programs that apply handles at once */
};

struct cd_calibration {
    size_t n_kind, width;
    double level;
    double weight[CD_CALIBRATION_MAX_KIND];
    cd_calibration_point point;
    double shift, tilt;              /* point = m + shift - tilt sigma^2 */
    double q_low, q_mid, q_high;     /* of (ln y - m) / sigma */
    /* sigma = scale * shrink * clip(raw, raw_min, raw_max) */
    size_t n_sigma;                  /* 0: raw = 1 + slope * spread */
    cd_xgb *sigma[CD_CALIBRATION_MAX_SIGMA];
    double base[CD_CALIBRATION_MAX_SIGMA]; /* ln raw = mean over boosters of (base + score) */
    double slope, scale, shrink, raw_min, raw_max;
    float *range;                    /* (2, width) */
    double outside_limit;            /* flagged above this sum */
    cd_calibration_info info;
};

/* The programs of a fit, copied. */
typedef struct cd_calibration_set {
    cd_arena arena;
    size_t n, n_kind, width, n_group;
    double *kind;      /* (n_kind, n) */
    double *y;         /* (n) ln s */
    size_t *at;        /* (n) number of the program in the caller's arrays */
    uint32_t *group;   /* (n) 0..n_group-1 */
    uint32_t *fold;    /* (n) 0..n_fold-1, of sigma */
    uint32_t n_fold;
    bool own_fold;     /* folds are of our making: one estimator answered for all */
    double *m, *r;     /* (n) answer, ln y - m */
    double *spread, *outside, *raw, *work; /* (n); work: scratch of the searches */
} cd_calibration_set;

/* Errors: ESCHEMA, ENUMERIC, ENOMEM; the set can be freed after any of them. */
cdmpp_status cd_calibration_pick(const cd_calibration_input *in, uint64_t seed, cd_calibration_set *s, cdmpp_err *err);
void cd_calibration_set_free(cd_calibration_set *s);

/* Searches the weights of the kinds over s. */
void cd_calibration_fit_weight(const cd_calibration_set *s, cd_tree_loss l, double weight[CD_CALIBRATION_MAX_KIND]);
/* Needs m, raw (already sigma), q_low and q_high. */
void cd_calibration_fit_point(cd_calibration *c, const cd_calibration_set *s);
/* Point answer from m and sigma, inside the interval. */
double cd_calibration_point_of(const cd_calibration *c, double m, double sigma);
/* *m, *spread of a program whose answers are kind[k * stride]. */
void cd_calibration_mix(const double *weight, size_t n_kind, const double *kind, size_t stride, double *m, double *spread);

/* Sum over columns of how far x lies outside, in widths of the range and at most 1 each; *n: how many do. */
double cd_calibration_outside_of(const float *range, const float *x, size_t width, size_t *n);

/* Columns that the trees of sigma read. */
size_t cd_calibration_seen(size_t width, size_t n_kind);
/* Row of the trees' matrix; returns the sum outside. */
double cd_calibration_see(const float *range, const float *x, size_t width, const double *kind, size_t stride, size_t n_kind, double m,
                    double spread, float *row);
/* Boosters and raw sigma (n) of the set, those of a fold from trees without it. */
cdmpp_status cd_calibration_fit_sigma(cd_calibration *c, const cd_calibration_input *in, const cd_calibration_options *opt, cd_calibration_set *s, cdmpp_err *err);
/* Raw sigma of n <= CD_CALIBRATION_BLOCK programs by the mean of all boosters; score (n) is scratch. */
cdmpp_status cd_calibration_raw(const cd_calibration *c, const float *seen, const double *spread, size_t n, float *score, double *raw,
                          cdmpp_err *err);

/* q_low, q_mid, q_high of z (n) where each task counts the same; *e: independent errors. Errors: ENOMEM. */
cdmpp_status cd_calibration_quantiles(const cd_calibration_set *s, const double *z, double level, double q[3], double *e, cdmpp_err *err);
/* Plain quantile; sorts v. */
double cd_calibration_quantile(double *v, size_t n, double p);
#endif
