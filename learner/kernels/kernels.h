/* The door of learner/kernels: other rooms include this header and no other of the room.
 *
 * Predictors of kernels, by samples that are taken where they are needed (nn-Meter, Zhang et al.,
 * MobiSys 2021). A kernel is a group of operators that runs as one program; its time follows from
 * its sizes.
 *
 *   networks ── groups ── sizes drawn around theirs ──> measured ──> samples ──> trees of each type
 *                  ^                                                       │      of kernel
 *                  └────────── more around the samples with a large error ─┘
 *
 *   a network's time = sum of its groups' predicted times
 *
 *   (1) a type is the operators of a kernel: "Conv+BatchNormalization+Relu"; each type has a
 *       booster of its own;
 *   (2) one draw in five of those around the networks' own sizes is held out: it is in no training
 *       and does not say where to sample. Sampling ends when `within` of the held out times (20 at
 *       least) are predicted to +-`target`, or the budget is spent;
 *   (3) where to sample is said by five-fold cross-validation of the others, draws near to each
 *       other in one fold: where the error times the seconds that kernels of the type take in the
 *       networks is the largest. Before the first training each type has some draws. Of a type with
 *       too few draws to tell, more are drawn around the networks' own sizes; none of these is held
 *       out;
 *   (4) samples are lines of a file that only grows. A run that was killed goes on with the same
 *       command.
 * One thread. Seconds. */
#ifndef CD_KERNELS_H
#define CD_KERNELS_H
#include "profiler/runtime/single/single.h"

enum { CD_KERNEL_WIDTH = 13 };

/* ---- sizes (kernel.c) ---- */
typedef struct cd_kernel {
    const char *type;
    double x[CD_KERNEL_WIDTH]; /* columns of kernel.c; sizes as they are, not as logarithms */
    /* of the program that the back end chooses (cd_program_select_estimate); 0: unknown. Not part
     * of what a kernel is */
    double analytic_s;
} cd_kernel;
/* The kernel of a group that has a task, without an analytic time; its type in the arena. Errors:
 * ENOMEM. */
cdmpp_status cd_kernel_of(const cd_workload *w, uint32_t group, cd_arena *a, cd_kernel *out,
                          cdmpp_err *err);

/* ---- samples (kernel_samples.c): JSON lines {"type", "x": [..], "analytic_s", "seconds", "draw",
 * "root", "round", "held"}; analytic_s may be absent ---- */
typedef struct cd_kernel_sample {
    cd_kernel kernel;
    double seconds;
    uint64_t draw; /* kernels of one draw were measured together */
    uint64_t root; /* the draw whose sizes it is near to; draw: the networks' own */
    /* 0: around the networks' own sizes; 1, 2, ...: around large errors */
    uint32_t round;
    bool held;
} cd_kernel_sample;

typedef struct cd_kernel_samples {
    cd_arena arena;
    size_t n, cap;
    cd_kernel_sample *v; /* (n) */
    int fd;              /* where added samples go; -1: nowhere */
} cd_kernel_samples;

/* Hears of each line that cannot be used, with path and line. */
typedef void cd_kernel_bad_line(void *ctx, const cdmpp_err *why);
/* Reads the file; `grow`: it is made where it is not there, half a line at its end is cut off, and
 * added samples are appended. Lines that cannot be used are told to `bad` and left out. Errors:
 * EIO, ENOMEM. Free after an error, too. */
cdmpp_status cd_kernel_samples_open(const char *path, bool grow, cd_kernel_bad_line *bad, void *ctx,
                                    cd_kernel_samples *s, cdmpp_err *err);
void cd_kernel_samples_free(cd_kernel_samples *s);
/* The line is in the file when it returns. Texts are copied. Errors: EIO, ENUMERIC (a time that is
 * not above 0), ENOMEM. */
cdmpp_status cd_kernel_samples_add(cd_kernel_samples *s, const cd_kernel_sample *v, cdmpp_err *err);

/* ---- the model (kernel_model.c) ---- */
typedef struct cd_kernel_model cd_kernel_model;
/* Trains on samples that are not held out and whose root is not in fold `skip` of CD_KERNEL_FOLDS
 * (skip < 0: all). Errors: EBACKEND, ENOMEM. */
enum { CD_KERNEL_FOLDS = 5, CD_KERNEL_LEAST = 5 };
cdmpp_status cd_kernel_model_train(const cd_kernel_samples *s, int skip,
                                   CD_GIVE cd_kernel_model **out, cdmpp_err *err);
void cd_kernel_model_free(CD_TAKE cd_kernel_model *m); /* NULL is fine */
/* Has the type CD_KERNEL_LEAST samples? */
bool cd_kernel_model_knows(const cd_kernel_model *m, const char *type);
/* Of a type that it does not know, a kernel with an analytic time is predicted from all types
 * together; without one NaN. Errors: EBACKEND, ENOMEM. */
cdmpp_status cd_kernel_model_predict(const cd_kernel_model *m, const cd_kernel *k, double *seconds,
                                     cdmpp_err *err);
static inline int cd_kernel_fold(uint64_t root) {
    return (int)(cd_rng_at(0x6b65726e, root) % CD_KERNEL_FOLDS);
}

/* Predicted against measured times. */
typedef struct cd_kernel_score {
    size_t n, within, unknown; /* unknown: no answer; they count in n, not in within */
    /* mean |predicted / measured - 1| of those with an answer; NaN: none */
    double error;
} cd_kernel_score;
/* Of the held out samples. */
cdmpp_status cd_kernel_model_score(const cd_kernel_model *m, const cd_kernel_samples *s,
                                   double target, cd_kernel_score *out, cdmpp_err *err);
/* analytic (w->n_task): analytic times of the tasks, NaN for none; NULL: none is known. out
 * (w->n_group): NaN where a group has no answer. *sum: of the groups of the network that run, NaN
 * with one unknown. Errors: as predict. */
cdmpp_status cd_kernel_model_network(const cd_kernel_model *m, const cd_workload *w,
                                     const double *analytic, double *out, double *sum,
                                     cdmpp_err *err);

/* ---- what is drawn (kernel.c) ---- */
typedef struct cd_kernel_prior cd_kernel_prior;
/* Groups of the graphs, equal ones once; both are borrowed. Errors: those of cd_workload_build. */
cdmpp_status cd_kernel_prior_new(const cd_graph *const *g, size_t n,
                                 CD_KEEP const cd_workload_options *o,
                                 CD_GIVE cd_kernel_prior **out, cdmpp_err *err);
void cd_kernel_prior_free(CD_TAKE cd_kernel_prior *p);
/* A network of the operators of one group, with other sizes. draw == root: any group, each of its
 * sizes multiplied by a factor in 1 / CD_KERNEL_SPREAD .. CD_KERNEL_SPREAD. Else the group and
 * sizes of the draw `root`, multiplied by factors in 1 / CD_KERNEL_NEAR .. CD_KERNEL_NEAR. Sizes
 * that are multiples of 8 stay so. The same numbers give the same. *w NULL: these sizes do not fit
 * the operators: draw another one. Errors: ENOMEM. */
#define CD_KERNEL_SPREAD 2.0
#define CD_KERNEL_NEAR   1.25
cdmpp_status cd_kernel_prior_draw(const cd_kernel_prior *p, uint64_t seed, uint64_t root,
                                  uint64_t draw, CD_GIVE cd_graph **g, CD_GIVE cd_workload **w,
                                  cdmpp_err *err);
/* The type that the draw `root` is of. */
size_t cd_kernel_prior_count(const cd_kernel_prior *p);
/* Kernel i < count of the networks. */
CD_KEEP const cd_kernel *cd_kernel_prior_at(const cd_kernel_prior *p, size_t i);

/* ---- the loop (kernel.c) ---- */
typedef struct cd_kernel_time {
    double seconds;    /* NaN: none */
    double analytic_s; /* 0: unknown */
} cd_kernel_time;

typedef struct cd_kernel_clock {
    void *ctx;
    /* out (w->n_group): of each group of the network. EINTERRUPTED, EIO and ENOMEM end the
     * sampling; what else fails is left out. */
    cdmpp_status (*time)(void *ctx, const cd_workload *w, uint64_t draw, cd_kernel_time *out,
                         cdmpp_err *err);
    double (*now)(void *ctx); /* for the budget */
} cd_kernel_clock;

typedef struct cd_kernel_sampler_options {
    double target, within; /* 0: 0.1, 0.95 */
    size_t limit;          /* samples in the file; 0: no limit */
    double seconds;        /* of this run; 0: no limit */
    /* draws around the networks' own sizes before the first training; 0: 100 */
    size_t first;
    size_t per_round; /* samples with a large error around which a round draws; 0: 20 */
    size_t around;    /* draws around each of them; 0: 4 */
    bool plain;       /* all draws around the networks' own sizes: to compare with */
    uint64_t seed;
    const volatile sig_atomic_t *stop;
    /* after each training; NULL: nobody listens */
    void (*told)(void *ctx, uint32_t round, size_t samples, const cd_kernel_score *s);
    void *ctx;
} cd_kernel_sampler_options;

typedef enum cd_kernel_end {
    CD_KERNEL_END_TARGET,
    CD_KERNEL_END_LIMIT,
    CD_KERNEL_END_SECONDS,
    CD_KERNEL_END_NOTHING_NEW
} cd_kernel_end;
#define CD_KERNEL_ENDS "target|limit|seconds|nothing_new"
typedef struct cd_kernel_sampled {
    cd_kernel_end end;
    uint32_t rounds;
    size_t failed;         /* draws that could not be measured */
    cdmpp_err why;         /* of the last one */
    cd_kernel_score score; /* of the held out samples, at the end */
} cd_kernel_sampled;
/* Errors: EINTERRUPTED (samples so far are in the file), those of the calls above. */
cdmpp_status cd_kernel_sample_run(const cd_kernel_prior *p, const cd_kernel_clock *c,
                                  const cd_kernel_sampler_options *o, cd_kernel_samples *s,
                                  cd_kernel_sampled *out, cdmpp_err *err);

/* ---- our executor as the clock: each task gets the best of `trials` schedules, those with the
 * least analytic time of `pool` random ones. The same task always gets the same candidates. Times
 * are those in place, between neighbours ---- */
typedef struct cd_kernel_executor {
    CD_KEEP cd_measure *measure;
    const char *target;
    cd_hardware hardware;
    /* 1: the thread's own time, without that of other programs on the machine */
    int threads;
    uint32_t trials; /* 0: 8 */
    uint32_t pool;   /* with `device`, as of cd_program_select_options */
    CD_KEEP const cd_device *device;
    uint64_t seed;
    double budget_s; /* of the passes of a network; 0: 0.1 */
    const volatile sig_atomic_t *stop;
} cd_kernel_executor;
cd_kernel_clock cd_kernel_executor_clock(CD_KEEP cd_kernel_executor *x);
/* Without running: analytic (w->n_task) of each task, NaN for none. Errors: ENOMEM,
 * EINTERRUPTED. */
cdmpp_status cd_kernel_executor_estimate(const cd_kernel_executor *x, const cd_workload *w,
                                         double *analytic, cdmpp_err *err);
/* Also the time of a pass of the whole network. out (w->n_group). */
cdmpp_status cd_kernel_executor_time(const cd_kernel_executor *x, const cd_workload *w,
                                     cd_kernel_time *out, double *pass_s, cdmpp_err *err);
#endif
