/* optim -- one step of gradient descent over the numbers of a network.
 *
 *   value  [ w | b | w | b | ... ]     spans: the parts that are trained, each with
 *   grad   [ w | b | w | b | ... ]     or without weight decay; what no span covers
 *   m, v   [ w | b | w | b | ... ]     (frozen tensors, gaps) is neither read nor moved
 *
 *   adam   m, v moments; weight decay is part of the gradient ("coupled", L2)
 *   adamw  weight decay shrinks the value by lr*decay before the step
 *   sgd    m = momentum*m + gradient; coupled weight decay
 *
 * (1) The formulas are PyTorch's; one float per number, scalars in double.
 * (2) The norm is over all spans, added up in double per chunk of CD_OPTIM_CHUNK
 *     floats and over the chunks in order: the same bits for any pool. A gradient
 *     longer than `clip` is scaled to it.
 * (3) A norm that is not finite moves nothing: ENUMERIC.
 * (4) The state is `step`, m and v; written and read back, training goes on with the
 *     same bits.
 * One optimiser, one thread; the pool is used inside. */
#ifndef CD_OPTIM_H
#define CD_OPTIM_H
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"

#define CD_OPTIMS "adam|adamw|sgd"
typedef enum { CD_OPTIM_ADAM, CD_OPTIM_ADAMW, CD_OPTIM_SGD } cd_optim_kind;

#define CD_OPTIM_CHUNK ((size_t)1 << 15)

typedef struct cd_optim_spec {
    cd_optim_kind kind;
    double beta1, beta2, eps; /* adam, adamw */
    double momentum;          /* sgd */
    double decay;             /* of weights */
    double clip;              /* largest norm of the gradient; 0: no limit */
} cd_optim_spec;

/* 0.9, 0.999, 1e-8; momentum 0.9; no decay, no clipping. */
cd_optim_spec cd_optim_spec_of(cd_optim_kind kind);

typedef struct cd_optim_span {
    size_t beg, end;
    bool decay;
} cd_optim_span;

typedef struct cd_optim {
    cd_arena arena; /* of the arrays */
    cd_optim_spec spec;
    uint64_t step;        /* steps taken */
    size_t n;             /* floats of a block */
    float *m, *v;         /* (n), v NULL for sgd */
    cd_optim_span *chunk; /* (n_chunk) */
    double *sum;          /* (n_chunk) squares */
    size_t n_chunk;
} cd_optim;

/* Blocks of n floats; spans rise and do not overlap. Errors: ERANGE (a number of the
 * spec, its field as key), ENOMEM. */
cdmpp_status cd_optim_init(cd_optim *o, const cd_optim_spec *spec, size_t n,
                           const cd_optim_span *span, size_t n_span, cdmpp_err *err);
void cd_optim_free(cd_optim *o);
/* value moves by one step at rate lr; norm, unless NULL, is that of the gradient
 * before clipping. Errors: ENUMERIC. */
cdmpp_status cd_optim_step(cd_optim *o, cd_threads *pool, double lr, float *value,
                           const float *grad, double *norm, cdmpp_err *err);
#endif
