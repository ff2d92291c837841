/* A network of compiled C programs, run on this processor.
 *
 *   tensor 0 (input) ─┐
 *   tensor 1 (weight) ┴ step 0: program ── tensor 2 ── step 1: program ── tensor 3 (result)
 *
 * One block of memory holds all tensors and the programs' scratch (executor_memory.h);
 * weights that a program wants packed (cd_codegen_pack) have a copy in its order.
 *   (1) steps run one after the other, in their order; of several workers each takes what is ready (executor_pool.h), and
 *       the results are the same, bit by bit. Tensors of steps that may run together share no byte (executor_deps.h);
 *   (2) inputs and weights begin as cd_tensor_fill says, until written;
 *   (3) the programs run in the caller's process: measure them apart first
 *       (measure.h), or call this from a child.
 * One thread at a time; OpenMP inside, see backend_cpu.h. */
#ifndef CD_EXECUTOR_H
#define CD_EXECUTOR_H
#include "profiler/backend/backend.h"

typedef enum cd_executor_net_role { CD_TENSOR_INNER, CD_TENSOR_INPUT, CD_TENSOR_WEIGHT, CD_TENSOR_RESULT } cd_executor_net_role;

typedef struct cd_executor_net_tensor {
    int64_t bytes;
    cd_dtype dtype;
    cd_executor_net_role role;
    uint32_t rank;
    const int64_t *shape;       /* (rank) of weights */
} cd_executor_net_tensor;

typedef struct cd_executor_net_shape {
    uint32_t rank;
    const int64_t *shape;       /* (rank) */
} cd_executor_net_shape;

typedef struct cd_executor_net_step {
    const char *name;
    const cd_build *build;      /* its object is loaded at open */
    const uint32_t *tensor;     /* (build->code->n_arg) what its parameters are */
    const cd_executor_net_shape *shape;  /* (build->code->n_arg) how the program sees them: a view has another shape than its tensor. NULL: as
                                 * they are. Asked for where a weight is packed */
} cd_executor_net_step;

typedef struct cd_executor_net {
    uint32_t n_tensor, n_step;
    const cd_executor_net_tensor *tensor; /* (n_tensor) */
    const cd_executor_net_step *step;    /* (n_step) */
} cd_executor_net;

typedef struct cd_executor cd_executor;

typedef struct cd_executor_options {
    int threads;                /* of OpenMP, of each program; 0: as many as processors are allowed, by workers */
    uint32_t workers;           /* steps at a time; 0: 1 */
    const double *seconds;      /* (n_step) of each step, about: of those ready the one with the longest chain behind it goes
                                 * first; NULL: the first in the list */
    bool cpu_time;              /* seconds of the calling thread's processor time, for a machine that others use too; one worker, one thread */
} cd_executor_options;
/* Everything that is allocated is allocated here. Errors: EINVALID (a tensor smaller than a program's parameter, or read before it is
 * made), EBACKEND (an object that cannot be loaded), EIO (no thread), ERANGE, ENOMEM. */
cdmpp_status cd_executor_open(CD_KEEP const cd_executor_net *n, const cd_executor_options *o, CD_GIVE cd_executor **out, cdmpp_err *err);
void cd_executor_close(CD_TAKE cd_executor *r); /* NULL is fine */

typedef struct cd_executor_ran {
    double start_s, end_s;      /* from the beginning of the pass */
    uint32_t worker;
} cd_executor_ran;
/* One pass. ran (n_step) or NULL: when each step ran. */
void cd_executor_pass(cd_executor *r, cd_executor_ran *ran, double *total_s);
/* One step alone, `times` times in a row, on whatever its tensors hold. *seconds: of all of them together. */
void cd_executor_step(cd_executor *r, uint32_t step, unsigned times, double *seconds);
/* Writes or reads the whole content of an input, weight or result; weights are packed again where
 * programs want that. Errors: ERANGE (another tensor). */
cdmpp_status cd_executor_write(cd_executor *r, uint32_t tensor, const void *from, cdmpp_err *err);
cdmpp_status cd_executor_read(const cd_executor *r, uint32_t tensor, void *to, cdmpp_err *err);

typedef struct cd_executor_bytes_used {
    int64_t all;                /* bytes of the block */
    int64_t weights;            /* of them: weights and their packed copies */
    int64_t inner_least;        /* the most of inner tensors and scratch that live at once */
} cd_executor_bytes_used;
/* What the network needs, known since open. */
cd_executor_bytes_used cd_executor_bytes(const cd_executor *r);
#endif
