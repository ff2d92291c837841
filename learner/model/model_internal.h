/* model_internal -- the parts of a model file, as model_read.c and its siblings read them. */
#ifndef CD_MODEL_INTERNAL_H
#define CD_MODEL_INTERNAL_H
#include "learner/model/model.h"

/* ---- model_facts.c: what a model that reads facts has in its header ---- */
/* `,"numbers":{...}`, the known numbers of a device; `"facts":{...},`, their columns. */
void cd_model_facts_put_device(cd_buf *b, const cd_device_numbers *d);
void cd_model_facts_put(cd_facts_set set, cd_buf *b);
/* Key "facts" of key model, where it is there: of which columns. Errors: ESCHEMA, EMODEL (others
 * than this version's). */
cdmpp_status cd_model_facts_check(cd_model *m, const cd_json *model, cdmpp_err *err);
/* Does this program make the feature columns and facts that the header key "model" names? Errors:
 * EMODEL (it does not), ESCHEMA, ENOMEM. */
cdmpp_status cd_model_features_check(const cd_json *model, cdmpp_err *err);
/* Key "numbers" of a device into m->numbers[i], whose name is known. Errors: ESCHEMA, ERANGE. */
cdmpp_status cd_model_facts_read_device(cd_model *m, size_t i, const cd_json *device,
                                        cdmpp_err *err);

/* Is that an answer? `i`: the program, for the message. Errors: ENUMERIC (not finite, not above
 * 0). */
cdmpp_status cd_model_check_answer(const cd_model_prediction *p, size_t i, cdmpp_err *err);

/* attribution_internal -- the shares of one member, where they are not plain terms of a sum. */

typedef struct cd_attribution_of {
    const cd_model *m;
    const cd_member *e;
    const cd_program_view *v; /* one program */
    cd_member_scratch *s;
    bool leaf; /* players are leaves, else rows */
    size_t n;  /* players */
} cd_attribution_of;

/* Of player counts in general: value (2^n) by set of players -> phi (n). */
void cd_attribution_exact(const double *value, size_t n, double *phi);

/* calibration_internal -- inside of a calibration: what fit, apply and file share.
 *
 *   what a tree of sigma sees of a program (cd_calibration_seen numbers):
 *   | x, width | spread | m | outside: sum | outside: columns | answer[k] - m, n_kind |
 *
 * (1) calibration.c  weights, shift and tilt: searches over ln s alone
 *     calibration.c   what the trees see, their training, sigma of a program
 *     calibration_pick.c   the range of training
 *     calibration_pick.c  quantiles of r / sigma, in which tasks count the same
 *     calibration_pick.c    the programs of a fit, in an order that is their own
 *     model_read.c    JSON
 * (2) Sums run over programs in the order of calibration_pick.c: the same bits whatever order
 *     the caller had them in. */

enum {
    CD_CALIBRATION_MAX_SIGMA = 8, /* boosters of sigma; more folds than that share them */
    CD_CALIBRATION_BLOCK = 128    /* programs that apply handles at once */
};

struct cd_calibration {
    size_t n_kind, width;
    double level;
    double weight[CD_CALIBRATION_MAX_KIND];
    cd_calibration_point point;
    double shift, tilt;          /* point = m + shift - tilt sigma^2 */
    double q_low, q_mid, q_high; /* of (ln y - m) / sigma */
    /* sigma = scale * shrink * clip(raw, raw_min, raw_max) */
    size_t n_sigma; /* 0: raw = 1 + slope * spread */
    cd_xgb *sigma[CD_CALIBRATION_MAX_SIGMA];
    double base[CD_CALIBRATION_MAX_SIGMA]; /* ln raw = mean over boosters of (base + score) */
    double slope, scale, shrink, raw_min, raw_max;
    float *range;         /* (2, width) */
    double outside_limit; /* flagged above this sum */
    cd_calibration_info info;
};

/* The programs of a fit, copied. */
typedef struct cd_calibration_set {
    cd_arena arena;
    size_t n, n_kind, width, n_group;
    double *kind;    /* (n_kind, n) */
    double *y;       /* (n) ln s */
    size_t *at;      /* (n) number of the program in the caller's arrays */
    uint32_t *group; /* (n) 0..n_group-1 */
    uint32_t *fold;  /* (n) 0..n_fold-1, of sigma */
    uint32_t n_fold;
    bool own_fold; /* folds are of our making: one estimator answered for all */
    double *m, *r; /* (n) answer, ln y - m */
    double *spread, *outside, *raw, *work; /* (n); work: scratch of the searches */
} cd_calibration_set;

/* Errors: ESCHEMA, ENUMERIC, ENOMEM; the set can be freed after any of them. */
cdmpp_status cd_calibration_pick(const cd_calibration_input *in, uint64_t seed,
                                 cd_calibration_set *s, cdmpp_err *err);
void cd_calibration_set_free(cd_calibration_set *s);

/* Columns that the trees of sigma read. */
size_t cd_calibration_seen(size_t width, size_t n_kind);

/* q_low, q_mid, q_high of z (n) where each task counts the same, and z's standard deviation; *e:
 * independent errors. Errors: ENOMEM. */
cdmpp_status cd_calibration_quantiles(const cd_calibration_set *s, const double *z, double level,
                                      double q[4], double *e, cdmpp_err *err);

/* member_internal -- what predicting keeps between calls, and the parts of a member that are
 * networks. */

enum { CD_MEMBER_MAX_FOLD = 64 };

typedef struct cd_member_block {
    void *p;
    size_t cap; /* items */
} cd_member_block;
/* Room for n items, at least doubling; the old content is not kept. False: no memory. */
bool cd_member_block_grow(cd_member_block *b, size_t n, size_t size);

struct cd_member_scratch {
    size_t trees;          /* of a booster, at most so many are asked; 0: all */
    cd_member_block x;     /* float: matrix of trees; outputs of a network */
    cd_member_block score; /* float */
    cd_member_block wide;  /* double: scores with offsets */
    /* networks: room for one batch, made for `net` */
    const cd_net *net;
    cd_batch batch;
    cd_net_state *state;
};

/* Does a network that was read fit its member and the devices of the model? Errors: EMODEL. */
cdmpp_status cd_member_check_net(const cd_member *m, size_t w_device, cdmpp_err *err);

/* Kinds and members of a part, from the object `v` and its weights; what is left of these. */
cdmpp_status cd_model_read_members(cd_model *m, const cd_json *v, cd_str *weights, cdmpp_err *err);
/* Key "order": written with its weights behind `blob`, nothing where there is none; read, if the
 * header has one; m is read. */
cdmpp_status cd_model_put_order(const cd_model *m, cd_buf *json, cd_buf *blob, cdmpp_err *err);
cdmpp_status cd_model_read_order(cd_model *m, const cd_json *root, cd_str weights, cdmpp_err *err);
/* The inside of "kinds" and "members". */
cdmpp_status cd_model_put_members(const cd_model *m, cd_buf *json, cd_buf *blob, cdmpp_err *err);

/* online_adapt_internal -- inside of an adaptation, for the file. */

typedef struct cd_online_adapt_task {
    char *key;
    uint64_t hash;              /* of key */
    bool changed;               /* since the last fit */
    size_t n, next;             /* items; where the next goes: the oldest, once the list is full */
    cd_online_adapt_item *item; /* (cap) */
    size_t cap;
    /* of the last fit, over the first n_fit items as they were then */
    size_t n_fit;
    cd_online_adapt_item *seen; /* (n_fit) */
    double *factor;             /* (n_fit, n_fit) lower: of covariance + noise / weight */
    double *alpha, *beta;       /* (n_fit) its inverse times e/sigma, times 1/sigma */
    double *moved;    /* (n_fit) its inverse times what the device's tasks share over sigma */
    double scale;     /* of the variance that is left */
    double mean, var; /* robust mean of e, its variance around the device's shift */
} cd_online_adapt_task;

/* What the errors of all tasks of a device share: a Gaussian process over its items. */
typedef struct cd_online_adapt_wide {
    size_t n;                   /* 0: there is none, the shift of the device is all */
    cd_online_adapt_item *seen; /* (n) */
    double *factor, *alpha;     /* (n, n) lower: of all covariance; (n) its inverse times e */
    double level;               /* variance of what all its programs share */
    double scale;               /* of the variance of programs of tasks without a measurement */
} cd_online_adapt_wide;

typedef struct cd_online_adapt_device {
    char *name;
    bool unknown;
    double shift;              /* of a device that the model knows */
    cd_online_adapt_wide wide; /* of one that it does not know */
    size_t n_task, cap;
    cd_online_adapt_task *task; /* (n_task) */
} cd_online_adapt_device;

struct cd_online_adapt {
    size_t n_device, cap;
    cd_online_adapt_device *device; /* (n_device) */
};

/* ---- online_adapt.c ---- */
#define CD_ONLINE_ADAPT_OWN 0.4 /* share of a program's variance that no other program shares */
#endif
