/* online_adapt_internal -- inside of an adaptation, for the file. */
#ifndef CD_ONLINE_ADAPT_INTERNAL_H
#define CD_ONLINE_ADAPT_INTERNAL_H
#include "learner/model/online_adapt.h"

typedef struct cd_online_adapt_task {
    char *key;
    uint64_t hash;        /* of key */
    bool changed;         /* since the last fit */
    size_t n, next;       /* items; where the next goes: the oldest, once the list is full */
    cd_online_adapt_item *item;  /* (cap) */
    size_t cap;
    /* of the last fit, over the first n_fit items as they were then */
    size_t n_fit;
    cd_online_adapt_item *seen;  /* (n_fit) */
    double *factor;       /* (n_fit, n_fit) lower: of covariance + noise / weight */
    double *alpha, *beta; /* (n_fit) its inverse times e/sigma, times 1/sigma */
    double scale;         /* of the variance that is left */
    double mean, var;     /* robust mean of e, its variance around the device's shift */
} cd_online_adapt_task;

typedef struct cd_online_adapt_device {
    char *name;
    bool unknown;
    double shift;
    size_t n_task, cap;
    cd_online_adapt_task *task; /* (n_task) */
} cd_online_adapt_device;

struct cd_online_adapt {
    size_t n_device, cap;
    cd_online_adapt_device *device; /* (n_device) */
};

/* ---- adapt_fit.c ---- */
/* Errors: ENOMEM; the task then keeps its last fit. */
cdmpp_status cd_online_adapt_fit_task(cd_online_adapt_task *t, cdmpp_err *err);
void cd_online_adapt_fit_shift(cd_online_adapt_device *d);
/* Correction in units of ln s and share of the variance that is left, of a program. */
void cd_online_adapt_posterior(const cd_online_adapt_task *t, double shift, const cd_online_adapt_item *program, double *mean, double *left);
#endif
