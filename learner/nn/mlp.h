/* mlp -- a stack of linear layers: linear, norm, activation, dropout, each in turn.
 *
 *   x (n, in) -> [linear -> norm -> act -> drop] -> ... -> y (n, out)
 *
 * What forward leaves in the run is what backward reads: per layer the output y,
 * with a norm the normalised values and 1/sd, with GELU its argument.
 * Parameters are named prefix.0.weight, prefix.0.bias, prefix.0.norm.weight ... */
#ifndef CD_MLP_H
#define CD_MLP_H
#include "learner/nn/net.h"
#include "learner/tensor/tensor.h"

enum { CD_MLP_MAX = 12 };

typedef struct cd_mlp_layer {
    size_t in, out;
    size_t w, b, gain, shift, mean, var; /* numbers of parameters */
    bool act;
} cd_mlp_layer;

typedef struct cd_mlp {
    size_t n; /* layers; 0: absent */
    cd_mlp_layer layer[CD_MLP_MAX];
    cd_net_norm norm;
    cd_net_act act;
    double dropout;
    uint64_t id; /* first dropout layer */
} cd_mlp;

/* Memory of a run. */
typedef struct cd_mlp_run {
    float *y[CD_MLP_MAX];    /* (n, out) */
    float *hat[CD_MLP_MAX];  /* (n, out): normalised; predicting: none */
    float *arg[CD_MLP_MAX];  /* (n, out): argument of GELU */
    float *rstd[CD_MLP_MAX]; /* (n) or (out) */
    float *d[2];             /* (n, widest) gradients, in turn */
    float *part;             /* (tiles, 3 * widest) sums of bias, gain, shift */
    float *dz[CD_MLP_MAX];   /* (n, out): in parts, gradients before the norm */
    const float *x;          /* input of the last forward, borrowed */
    size_t n, in;            /* its rows and columns */
    uint64_t key;
    bool train;
} cd_mlp_run;

/* Appends a layer and its parameters. */
void cd_mlp_add(cd_mlp *m, cd_params *p, const char *prefix, size_t in, size_t out, bool act);
/* Columns of the last layer. */
size_t cd_mlp_out(const cd_mlp *m);
/* Memory for n rows: plans or carves. */
void cd_mlp_plan(const cd_mlp *m, cd_slab *s, size_t n, bool train, cd_mlp_run *r);
/* x (n, in), in <= the first layer's: only that many columns of its weights count.
 * Returns the last y; r->train decides on statistics and dropout, r->key on the mask. */
float *cd_mlp_forward(const cd_mlp *m, const cd_params *p, cd_mlp_run *r, cd_threads *pool, const float *x, size_t n,
                      size_t in);
/* dy (n, out) is overwritten; dx (n, in) NULL: not wanted. */
void cd_mlp_backward(const cd_mlp *m, cd_params *p, cd_mlp_run *r, cd_threads *pool, float *dy, float *dx);

/* ---- in parts: rows of one run, by several threads and one after another ----
 * Forward with a part and no pool; backward of the parts; then the weights. Not for batch norm. */
void cd_mlp_plan_parts(const cd_mlp *m, cd_slab *s, size_t n, cd_mlp_run *r); /* dz, besides cd_mlp_plan */
/* Rows row .. row+n of the run, with the input x (n, in) of their own. */
cd_mlp_run cd_mlp_part(const cd_mlp *m, const cd_mlp_run *r, const float *x, size_t row, size_t n);
/* Floats of `sums` below: bias, gain and shift of every layer. */
size_t cd_mlp_n_sums(const cd_mlp *m);
/* dy is in part->dz of the last layer; sums (n_sums) +=; dx (n, in). */
void cd_mlp_part_backward(const cd_mlp *m, const cd_params *p, cd_mlp_run *part, float *sums, float *dx);
/* Of n rows with the input x (n, in); sums (n_part, n_sums) are added up in order. */
void cd_mlp_part_weights(const cd_mlp *m, cd_params *p, const cd_mlp_run *r, cd_threads *pool, const float *x, size_t n,
                         const float *sums, size_t n_part);
#endif
