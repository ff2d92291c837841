/* params -- the numbers of a network: named tensors in two flat blocks.
 *
 *   value  [ w | b | w | b | ... ][ running statistics ]
 *   grad   [ w | b | w | b | ... ]
 *          0 .............. n_train ................ n_float
 *
 *   (1) each tensor starts at a multiple of 16 floats (64 bytes), gaps are zero in
 *       both blocks and stay zero under any step that maps (0, 0) to 0;
 *   (2) an optimiser walks 0 .. n_train, or tensors where `decay` matters: false
 *       for biases and norms, which weight decay may leave alone;
 *   (3) running statistics (batch norm) have no gradient; they are saved, copied
 *       and averaged with the rest of `value`.
 * Register everything, then lay out once. Reading values: any thread. */
#ifndef CD_PARAMS_H
#define CD_PARAMS_H
#include <stdbool.h>

#include "learner/tensor/safetensors.h"
#include "learner/tensor/slab.h"

typedef enum {
    CD_INIT_ZERO,
    CD_INIT_ONE,
    CD_INIT_UNIFORM /* -bound .. bound */
} cd_init;

typedef struct cd_param {
    char name[80];
    size_t n_dim, dim[2]; /* a matrix is (outputs, inputs), as PyTorch has it */
    size_t n, off;        /* floats, place in both blocks */
    cd_init init;
    float bound;
    bool decay, is_stat;
} cd_param;

typedef struct cd_params {
    cd_param *param;
    size_t n, cap;
    size_t n_train, n_float; /* floats with gradients, all floats; gaps included */
    float *value, *grad;     /* (n_float), (n_train); 64-byte aligned */
    cd_slab slab_value, slab_grad;
    bool oom;                /* sticky while registering */
} cd_params;

/* Register a vector (cols 0) or matrix; returns its number. Out of memory is
 * remembered until cd_params_layout. */
size_t cd_params_add(cd_params *p, const char *name, size_t rows, size_t cols, cd_init init, float bound);
/* Running statistic of `n` floats. */
size_t cd_params_add_stat(cd_params *p, const char *name, size_t n, cd_init init);
/* "prefix.weight" (out, in) and "prefix.bias" (out), both uniform within
 * 1/sqrt(in), PyTorch's rule. */
void cd_params_add_linear(cd_params *p, const char *prefix, size_t in, size_t out, size_t *w, size_t *b);

/* Memory and initial values. The values of a tensor depend on the seed and the
 * tensor's number only. Errors: ENOMEM. */
cdmpp_status cd_params_layout(cd_params *p, uint64_t seed, cdmpp_err *err);
void cd_params_free(cd_params *p);

static inline float *cd_params_value(const cd_params *p, size_t id) { return p->value + p->param[id].off; }
static inline float *cd_params_grad(const cd_params *p, size_t id) { return p->grad + p->param[id].off; }
void cd_params_zero_grad(cd_params *p); /* before a backward pass, which adds */
size_t cd_params_count(const cd_params *p); /* trained numbers, without gaps */

/* The tensors as an array for cd_safetensors_write; `t` has room for p->n. */
void cd_params_tensors(const cd_params *p, cd_tensor *t);
/* Values of every registered tensor. Errors: EMODEL, EPARSE; some values may have
 * changed then. */
cdmpp_status cd_params_read(cd_params *p, const cd_safetensors *f, cdmpp_err *err);
#endif
