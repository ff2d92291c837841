/* netrun -- a network of compiled C programs, run on this processor.
 *
 *   tensor 0 (input) ─┐
 *   tensor 1 (weight) ┴ step 0: program ── tensor 2 ── step 1: program ── tensor 3 (result)
 *
 * One block of memory holds all tensors and the programs' scratch (netplan.h);
 * weights that a program wants packed (codegen.h) have a copy in its order.
 *   (1) steps run one after the other, in their order; of several workers each takes what is ready (netpool.h), and
 *       the results are the same, bit by bit. Tensors of steps that may run together share no byte (netdeps.h);
 *   (2) inputs and weights begin as cd_fill says, until written;
 *   (3) the programs run in the caller's process: measure them apart first
 *       (measure.h), or call this from a child.
 * One thread at a time; OpenMP inside, see backend_cpu.h. */
#ifndef CD_NETRUN_H
#define CD_NETRUN_H
#include "profiler/backend/backend.h"

typedef enum cd_net_role { CD_NET_INNER, CD_NET_INPUT, CD_NET_WEIGHT, CD_NET_RESULT } cd_net_role;

typedef struct cd_net_tensor {
    int64_t bytes;
    cd_dtype dtype;
    cd_net_role role;
    uint32_t rank;
    const int64_t *shape;       /* (rank) of weights */
} cd_net_tensor;

typedef struct cd_net_shape {
    uint32_t rank;
    const int64_t *shape;       /* (rank) */
} cd_net_shape;

typedef struct cd_net_step {
    const char *name;
    const cd_build *build;      /* its object is loaded at open */
    const uint32_t *tensor;     /* (build->code->n_arg) what its parameters are */
    const cd_net_shape *shape;  /* (build->code->n_arg) how the program sees them: a view has another shape than its tensor. NULL: as
                                 * they are. Asked for where a weight is packed */
} cd_net_step;

typedef struct cd_net {
    uint32_t n_tensor, n_step;
    const cd_net_tensor *tensor; /* (n_tensor) */
    const cd_net_step *step;    /* (n_step) */
} cd_net;

typedef struct cd_netrun cd_netrun;

/* Everything that is allocated is allocated here. threads: of OpenMP; 0: as many as
 * processors are allowed. Errors: EINVALID (a tensor smaller than a program's
 * parameter, or read before it is made), EBACKEND (an object that cannot be
 * loaded), ERANGE, ENOMEM. */
cdmpp_status cd_netrun_open(CD_KEEP const cd_net *n, int threads, CD_GIVE cd_netrun **out, cdmpp_err *err);
void cd_netrun_close(CD_TAKE cd_netrun *r); /* NULL is fine */
/* The same with workers. */
typedef struct cd_netrun_options {
    int threads;                /* of OpenMP, of each program; 0: as many as processors are allowed, by workers */
    uint32_t workers;           /* steps at a time; 0: 1 */
    const double *seconds;      /* (n_step) of each step, about: of those ready the one with the longest chain behind it goes
                                 * first; NULL: the first in the list */
    bool cpu_time;              /* seconds of the calling thread's processor time, for a machine that others use too; one worker, one thread */
} cd_netrun_options;
/* Errors: those of cd_netrun_open, EIO (no thread). */
cdmpp_status cd_netrun_open_with(CD_KEEP const cd_net *n, const cd_netrun_options *o, CD_GIVE cd_netrun **out, cdmpp_err *err);

typedef struct cd_netrun_ran {
    double start_s, end_s;      /* from the beginning of the pass */
    uint32_t worker;
} cd_netrun_ran;
/* One pass that tells when each step ran: ran (n_step). */
void cd_netrun_pass_at(cd_netrun *r, cd_netrun_ran *ran, double *total_s);
/* One pass. step_s (n_step) or NULL: seconds of each step; with it the clock is asked between steps. */
void cd_netrun_pass(cd_netrun *r, double *step_s, double *total_s);
/* One step alone, `times` in a row, on whatever its tensors hold. */
void cd_netrun_step(cd_netrun *r, uint32_t step, unsigned times, double *seconds);
/* The whole content of an input, weight or result; weights are packed again where
 * programs want that. Errors: ERANGE (another tensor). */
cdmpp_status cd_netrun_write(cd_netrun *r, uint32_t tensor, const void *from, cdmpp_err *err);
cdmpp_status cd_netrun_read(const cd_netrun *r, uint32_t tensor, void *to, cdmpp_err *err);

typedef struct cd_netrun_memory {
    int64_t all;                /* bytes of the block */
    int64_t weights;            /* of them: weights and their packed copies */
    int64_t inner_least;        /* the most of inner tensors and scratch that live at once */
} cd_netrun_memory;
cd_netrun_memory cd_netrun_bytes(const cd_netrun *r);
#endif
