/* What the files of profiler/runtime/single share among themselves. */
#ifndef CD_PROFILER_RUNTIME_SINGLE_INTERNAL_H
#define CD_PROFILER_RUNTIME_SINGLE_INTERNAL_H
#include "profiler/runtime/single/single.h"

/* Which steps of a network may run at the same time, and which of its tensors therefore live at
 * once.
 *
 *   step 0 ─> 1 ─┬─> 2 ─┐            1 may not run beside any, 2 and 3 may beside each other
 *                └─> 3 ─┴─> 4
 *
 *   (1) of two steps that use one tensor, one of them writing it, the first in the list comes
 *       first;
 *   (2) b before a: there is a chain from b to a; two steps without a chain either way may run
 *       together;
 *   (3) two tensors may share bytes only where all users of one come before the step that makes the
 *       other.
 * Read-only once made; any thread. */

#define CD_EXECUTOR_DEPS_MAX 32768 /* steps: chains are kept as bits, n^2 / 8 bytes */

typedef struct cd_executor_deps {
    uint32_t n, words;
    uint32_t *n_after;      /* (n) steps that it waits for */
    uint32_t *first, *next; /* (n + 1), next[first[k] .. first[k+1]): those that wait for k */
    uint64_t *before;       /* (n, words) bit b of row a: b comes before a */
} cd_executor_deps;

/* All in the arena. Errors: ERANGE (too many steps), ENOMEM. */
cdmpp_status cd_executor_deps_make(const cd_executor_net *n, cd_arena *a, cd_executor_deps *out,
                                   cdmpp_err *err);
/* Is there a chain from b to a? */
static inline bool cd_executor_deps_before(const cd_executor_deps *d, uint32_t b, uint32_t a) {
    return d->before[(size_t)a * d->words + b / 64] >> b % 64 & 1;
}
/* chain (n): seconds of the longest chain that begins with each step; seconds (n): of each step. */
void cd_executor_deps_chains(const cd_executor_deps *d, const double *seconds, double *chain);

/* Where the tensors of a network lie while it runs.
 *
 *   step    0   1   2   3            offset
 *   a      ███████                   0        a tensor lives from the step that makes it
 *   b          ███████               64K      to the last one that reads it; two that live
 *   c              ███████           0        at the same time never share a byte
 *
 * Greedy by size (Pisarchyk & Lee 2020): the largest first, each at the lowest
 * place that is free while it lives. Inputs, weights and results live always.
 * No state, any thread. */

#define CD_EXECUTOR_MEMORY_ALIGN 64

typedef struct cd_executor_memory_tensor {
    int64_t bytes;        /* in */
    uint32_t first, last; /* in: steps in which it lives, first <= last */
    int64_t offset;       /* out: a multiple of CD_EXECUTOR_MEMORY_ALIGN */
} cd_executor_memory_tensor;

/* *total: bytes of all together; *least: the most that live at once, which no plan
 * can go below (NULL: not wanted). Errors: ERANGE (a size below 0, a sum beyond
 * int64, first > last), ENOMEM. */
cdmpp_status cd_executor_memory_plan(cd_executor_memory_tensor *t, uint32_t n, int64_t *total,
                                     int64_t *least, cdmpp_err *err);

/* The same where steps have no one order: meet() tells which two tensors may live at the same time.
 * It is symmetric, and true at least for those whose lives, by number, overlap. *least stays that
 * of the order. */
typedef bool cd_executor_memory_meet(const void *ctx, uint32_t a, uint32_t b);
cdmpp_status cd_executor_memory_apart(cd_executor_memory_tensor *t, uint32_t n,
                                      cd_executor_memory_meet *meet, const void *ctx,
                                      int64_t *total, int64_t *least, cdmpp_err *err);

/* A network of kernels on one OpenCL device: what executor.h is for this processor.
 *
 *   tensors ──> slots (a device buffer each)       step 0, 1, ...: kernels in one queue, in order
 *
 *   (1) programs are compiled at open, each once; equal programs of several steps share their
 *       object;
 *   (2) inner tensors and scratch take turns in slots: the smallest that is free and large enough,
 *       else the largest grows; inputs, weights and results have slots of their own;
 *   (3) inputs and weights begin as cd_tensor_fill says, until written;
 *   (4) a pass is handed out at once and waited for at its end: total_s is the host's clock, steps'
 *       times the device's.
 * One thread. */

typedef struct cd_executor_opencl cd_executor_opencl;
/* device: opencl_device.h. Errors: EBACKEND (no device; a program that does not compile, with its
 * step), EREJECTED (too much for the device), EINVALID (as cd_executor_open), ENOMEM. */
cdmpp_status cd_executor_opencl_open(CD_KEEP const cd_executor_net *n, const char *device,
                                     CD_GIVE cd_executor_opencl **out, cdmpp_err *err);
void cd_executor_opencl_close(CD_TAKE cd_executor_opencl *r); /* NULL is fine */
/* ran (n_step) or NULL: from the start of the first kernel, worker 0. Errors: EBACKEND. */
cdmpp_status cd_executor_opencl_pass(cd_executor_opencl *r, cd_executor_ran *ran, double *total_s,
                                     cdmpp_err *err);
/* As in executor.h. */
cdmpp_status cd_executor_opencl_write(cd_executor_opencl *r, uint32_t tensor, const void *from,
                                      cdmpp_err *err);
cdmpp_status cd_executor_opencl_read(cd_executor_opencl *r, uint32_t tensor, void *to,
                                     cdmpp_err *err);
int64_t cd_executor_opencl_bytes(const cd_executor_opencl *r); /* of all slots */
/* as cd_executor_bytes_of, in the device's memory */
cd_executor_step_bytes cd_executor_opencl_bytes_of(const cd_executor_opencl *r, uint32_t step);

/* Steps of a network on several threads, each as soon as what it waits for is done.
 *
 *   ready steps: a heap ─> worker 0 (the caller), worker 1, ...  of those ready the one with the
 *                                                                largest rank
 *
 *   (1) a step runs once, after all that it waits for, on one worker; values do not depend on
 *       which;
 *   (2) worker w stays on one processor, where there are as many: of n workers the last n that the
 *       caller may use;
 *   (3) between passes workers wait without using a processor.
 * One pass at a time. */

typedef struct cd_executor_pool cd_executor_pool;
typedef struct cd_executor_pool_options {
    uint32_t workers;             /* >= 1; at most CD_EXECUTOR_POOL_MAX */
    const cd_executor_deps *deps; /* borrowed */
    const double *rank;           /* (n) borrowed; NULL: the lower the number the higher the rank */
    void (*begin)(void *ctx);     /* on each new thread, once; NULL: nothing */
    void (*step)(void *ctx, uint32_t k, uint32_t worker);
    void *ctx;
} cd_executor_pool_options;
#define CD_EXECUTOR_POOL_MAX 256

/* Errors: ERANGE (workers), EIO (no thread), ENOMEM. */
cdmpp_status cd_executor_pool_new(const cd_executor_pool_options *a, CD_GIVE cd_executor_pool **out,
                                  cdmpp_err *err);
void cd_executor_pool_free(CD_TAKE cd_executor_pool *p); /* NULL is fine; ends the threads */
/* Every step once. The caller is worker 0, on its processor while it is in here. */
void cd_executor_pool_pass(cd_executor_pool *p);

/* Pieces of steps on threads by a plan (cd_executor_plan).
 *
 *   node: a part of a step, or the whole step     ended[node]: its pieces that have ended, over all
 *                                                 passes
 *   a call waits until ended[node] is what this pass makes it, for each node in its list
 *
 * One pass at a time. */

typedef struct cd_executor_pieces {          /* a plan that can be run, all in an arena */
    uint32_t n_unit, n_call, n_node, n_wait; /* n_wait: calls that wait */
    const uint32_t *first;                   /* (n_unit + 1) */
    const cd_executor_call *call;
    uint32_t *node;    /* (n_call) of which it is a piece */
    uint32_t *n_piece; /* (n_node) */
    /* (n_call + 1); nodes with pieces on other units, each once a unit */
    uint32_t *wait_first, *wait;
} cd_executor_pieces;
/* What each call waits for. Errors: EINVALID (see cd_executor_open), ERANGE (units), ENOMEM. */
cdmpp_status cd_executor_pieces_make(const cd_executor_net *n, const cd_executor_plan *p,
                                     const cd_executor_deps *d, cd_arena *a,
                                     cd_executor_pieces *out, cdmpp_err *err);

typedef struct cd_executor_units cd_executor_units;
typedef struct cd_executor_units_options {
    const cd_executor_pieces *pieces; /* borrowed */
    void (*begin)(void *ctx);         /* on each new thread, once; NULL: nothing */
    void (*call)(void *ctx, uint32_t call, uint32_t unit);
    void *ctx;
} cd_executor_units_options;
/* Unit u is on processor u of the last n_unit that the caller may use, where there are as many.
 * Errors: EIO (no thread), ENOMEM. */
cdmpp_status cd_executor_units_new(const cd_executor_units_options *a,
                                   CD_GIVE cd_executor_units **out, cdmpp_err *err);
void cd_executor_units_free(CD_TAKE cd_executor_units *u); /* NULL is fine; ends the threads */
/* Every call once. The caller is unit 0, on its processor while it is in here. */
void cd_executor_units_pass(cd_executor_units *u);

/* Private to the room: what the parts of op_profile share.
 *
 *   cd_op_profile_net     workload + programs ──> net of those groups that have one
 *   cd_op_profile_child   in the child: passes, in place, alone, values ──> cd_op_profile_report */

typedef struct cd_op_profile_net {
    cd_arena arena;
    cd_executor_net net;
    cd_executor_net_tensor *tensor;
    cd_executor_net_step *step;
    const cd_build **plain; /* (n_step) the reference's; NULL: none */
    uint32_t *group, *task; /* (n_step) */
    double *seconds;        /* (n_step) alone, as it was chosen by */
    double *scalar;         /* (n_tensor) NaN: none */
    /* (n_tensor) whole content that the graph knows, as indices of a Gather: they decide which
     * memory is read; NULL: none */
    const void **known;
} cd_op_profile_net;

/* All groups that have a program become steps; the rest of the tensors become inputs. Errors:
 * EBACKEND (no group has a program), ENOMEM. */
cdmpp_status cd_op_profile_net_make(cd_op_profile_net *m, const cd_workload *w,
                                    const cd_program_select *p, cdmpp_err *err);

/* Of a step, as the child measured it. */
typedef struct cd_op_profile_step {
    double place_s, warm_s, cool_s, start_s, end_s;
    uint32_t worker;
    cd_executor_step_bytes bytes;
} cd_op_profile_step;

typedef struct cd_op_profile_report {
    cdmpp_status status;
    cdmpp_err err;
    cd_timing pass;
    double wall_s, cold_s, clocked_s, max_error;
    unsigned passes;
    cd_executor_bytes_used memory;
    int64_t rss_peak;
} cd_op_profile_report;

/* Everything into *t and step (n_step). */
void cd_op_profile_measure(const cd_op_profile_net *m, const cd_op_profile_options *o,
                           cd_op_profile_report *t, cd_op_profile_step *step);
/* Who runs a network: this processor or a device. */
typedef struct cd_op_profile_runner {
    void *run;
    cdmpp_status (*write)(void *run, uint32_t tensor, const void *from, cdmpp_err *err);
    cdmpp_status (*read)(void *run, uint32_t tensor, void *to, cdmpp_err *err);
    /* ran: NULL or (n_step) */
    cdmpp_status (*pass)(void *run, cd_executor_ran *ran, double *total_s, cdmpp_err *err);
    cd_executor_step_bytes (*bytes_of)(const void *run, uint32_t step);
} cd_op_profile_runner;
/* This processor as a runner, and an OpenCL device. */
cd_op_profile_runner cd_op_profile_runner_cpu(cd_executor *r);
/* Writes matrices of weights, with values scaled as trained ones are. Errors: those of the runner,
 * ENOMEM. */
cdmpp_status cd_op_profile_write_weights(const cd_executor_net *n, const cd_op_profile_runner *r,
                                         cdmpp_err *err);
/* Writes the scalars whose values the network knows (cd_workload_buffer: value), and its known
 * contents. Errors: those of the runner. */
cdmpp_status cd_op_profile_write_scalars(const cd_op_profile_net *m, const cd_op_profile_runner *r,
                                         cdmpp_err *err);
/* ---- analytic times of random schedules (program_select.c) ---- */
typedef struct cd_program_pool cd_program_pool;
#endif
