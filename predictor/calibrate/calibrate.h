/* The door of predictor/calibrate: other rooms include this header and no other of the room.
 *
 * A new machine: a few programs are chosen by their features alone, measured here, and correct a
 * model for this machine.
 *
 *   tasks ── random schedules, and of each task the best by the model
 *         ── facts, analytic seconds ──> candidates in an order (pool.c)
 *                                            │  one after the other (measure.c),
 *                                            v  until the time is over
 *                                      log of records  <── a run that was killed goes on from it
 *                                            │
 *     ┌──────────────────────────────────────┘
 *     ├── five parts of whole tasks, each left out of all else ──> figures before, after
 *     └── trees of a correction, then the width of intervals (calibrate_fit.c)
 *           ──> model file with key "here" (learner/model/here.h)
 *
 *   (1) the log is all there is of a run's state. What it has is not measured again;
 *   (2) of the order every prefix is a choice of its own: programs that lower the distance of all
 *       candidates to the nearest chosen one the most, for the seconds that they cost; random ones
 *       and best ones by turns, because networks are made of the latter, and a model flatters what
 *       it takes for the best. The time of a program is not looked at before it is chosen;
 *   (3) the figures of a program are of a correction that the other parts made: its task has no say
 *       in the trees, in how far they are believed, how wide the intervals are, or what counts as
 *       seen. What is written is made in the same way of all tasks, its width by programs that the
 *       trees had not seen;
 *   (4) each CD_CALIBRATE_TWICE-th measurement repeats an earlier program: the median |ln| of the
 *   ratio of its two times is the noise.
 *   (5) the last quarter of the time is of some networks, run with such schedules: what they take
 *       over their operators alone is the machine's law (predictor/estimate/network_cost.h). It is
 *       not in the log: each run measures it anew. Without time for four networks there is none.
 *   (6) by the target it is this machine's processor or a GPU of it. A GPU's driver is asked in a
 *       process of its own, because what is measured is measured in processes that fork later. A
 *       model of processors never stands for a GPU.
 *   (7) a board is measured by workers there (calibrate_machine.c). Everything else is computed
 *       here.
 * One thread. */
#ifndef CD_CALIBRATE_H
#define CD_CALIBRATE_H
#include "features/analytic/analytic.h"
#include "predictor/estimate/estimate.h"
#include "predictor/partition/run/run.h"
#include "predictor/score/score.h"
#include "profiler/records/records.h"
#include "profiler/remote/remote.h"

#define CD_CALIBRATE_LEVEL   0.9    /* share of new programs whose time the interval is to hold */
#define CD_CALIBRATE_SECONDS 3600.0 /* limit of a run at most */
/* above it a machine is too noisy: half of the errors of a good model would be of the
 * measurements */
#define CD_CALIBRATE_NOISE 0.1
enum {
    CD_CALIBRATE_TWICE = 6,
    CD_CALIBRATE_PAIRS = 3, /* fewer repeated programs do not tell the noise */
    CD_CALIBRATE_PARTS = 5, /* of whole tasks: each is left out once */
    CD_CALIBRATE_LEAST = 8, /* programs of a correction beside those of any part */
    /* programs that fail before one runs: then it is not the programs' fault */
    CD_CALIBRATE_VAIN = 8,
    CD_CALIBRATE_BATCH = 32, /* programs that are measured together at most */
    CD_CALIBRATE_MOST = 1500 /* candidates */
};

/* ---- candidates (calibrate_pool.c) ---- */
typedef struct cd_calibrate_candidate {
    const char *line; /* record without a time (len), NUL-terminated */
    size_t len;
    double analytic_s;
    /* the model chose it for its task, as it does for a network (cd_schedule_db_predict) */
    bool best;
} cd_calibrate_candidate;

typedef struct cd_calibrate_pool {
    cd_arena arena;
    size_t n, n_order;
    cd_calibrate_candidate *v; /* (n) */
    uint32_t *order;           /* (n_order) which one after the other */
    cd_schedule_db *best;      /* schedules that the model chose */
    size_t left_out;           /* draws without facts, or too slow to be run again and again */
} cd_calibrate_pool;

typedef struct cd_calibrate_pool_options {
    CD_KEEP const cd_task_registry *tasks;
    const char *target, *isa; /* of the programs; isa NULL: by the target */
    cd_hardware hardware;
    CD_KEEP const cd_device *device; /* for the analytic time, with the vectors of the code */
    CD_KEEP const cd_model *model;   /* chooses the best; NULL: nobody does */
    const char *stands;              /* its device */
    CD_KEEP const cd_device_numbers *numbers; /* as in cd_calibrate_fit_options */
    uint32_t trials;                          /* draws of a task; 0: 10 */
    int jobs;                                 /* threads that look for the best; 0: one */
    uint64_t seed;
    double (*now)(void *ctx); /* NULL: all are drawn */
    void *ctx;
    double until_s;                     /* no draw begins later */
    const cd_record_listener *listener; /* tasks without schedules */
    const volatile sig_atomic_t *stop;  /* NULL: never */
} cd_calibrate_pool_options;

/* Seconds that a candidate costs: compiling, loading and running it some times; a power of two. */
double cd_calibrate_price(double analytic_s);
/* Free *out after an error too. Errors: ESCHEMA (the device says too little), ENODATA (no
 * candidate), EINTERRUPTED, ENOMEM. */
cdmpp_status cd_calibrate_pool_build(const cd_calibrate_pool_options *o, cd_calibrate_pool *out,
                                     cdmpp_err *err);
void cd_calibrate_pool_free(cd_calibrate_pool *p); /* zeroed is fine */

/* ---- what the fit takes (calibrate_measure.c) ---- */
/* By a fit of a few candidates with made times, on this machine and beside what else runs on it. */
typedef struct cd_calibrate_costs {
    double begin_s, line_s; /* once; for each program that is read */
    double trees_s;         /* for trees of `programs` programs */
    size_t programs;
} cd_calibrate_costs;
typedef struct cd_calibrate_costs_options {
    CD_KEEP const cd_model *model;
    CD_KEEP const cd_task_registry *tasks;
    const char *device; /* as in cd_calibrate_fit_options */
    CD_KEEP const cd_device_numbers *numbers;
    CD_KEEP const cd_calibrate_pool *pool;
    size_t programs; /* of the trial */
    double (*now)(void *ctx);
    void *ctx;
} cd_calibrate_costs_options;
/* Errors: those of a scorer, ENOMEM. */
cdmpp_status cd_calibrate_costs_of(const cd_calibrate_costs_options *o, cd_calibrate_costs *out,
                                   cdmpp_err *err);
/* Seconds of a fit of n programs. */
double cd_calibrate_costs_s(const cd_calibrate_costs *c, size_t n);

/* ---- measuring (calibrate_measure.c) ---- */
typedef struct cd_calibrate_clock {
    void *ctx;
    double (*now)(void *ctx); /* seconds */
    /* Times n programs that have code. After an error those that out has times or an error number
     * of were measured, from the first on. */
    cdmpp_status (*measure)(void *ctx, cd_record_program *job, size_t n, cd_measure_result *out,
                            cdmpp_err *err);
    /* Runs a network; `o` is without a measurer. NULL: networks cannot be run. */
    cdmpp_status (*network)(void *ctx, const cd_network_loaded *l, const cd_network_run_options *o,
                            cd_network_run **out, cdmpp_err *err);
    /* A GPU by the back end of the target and its name there, "": the first. NULL: that of this
     * machine, by its driver. */
    cdmpp_status (*gpu)(void *ctx, const char *backend, const char *name, cd_describe_entry *out,
                        cdmpp_err *err);
    /* What is measured from now on ends at this time: programs that are not ready then have neither
     * times nor an error number. NULL: each ends by itself. */
    void (*until)(void *ctx, double until_s);
    /* `now` is of processors: work may take more seconds of the machine's own clock */
    bool cpu_time;
    /* programs that are given to `measure` together, CD_CALIBRATE_BATCH at most; 0: four */
    size_t batch;
} cd_calibrate_clock;
/* This machine: programs are compiled and run by `measure`. */
typedef struct cd_calibrate_here {
    cd_measure *measure;
    /* the clock is the processor time of this process and of those that it began; it cannot say
     * when a program is late */
    bool cpu_time;
    double until_s; /* set by the clock */
} cd_calibrate_here;
cd_calibrate_clock cd_calibrate_clock_here(CD_KEEP cd_calibrate_here *h);
/* A board: `b` is borrowed. A lost connection ends the run; what was measured is in the log. */
typedef struct cd_calibrate_board {
    cd_remote_measure *measure;
    const cd_task_registry *tasks; /* of the programs */
} cd_calibrate_board;
cd_calibrate_clock cd_calibrate_clock_board(CD_KEEP cd_calibrate_board *b);

typedef struct cd_calibrate_measure_options {
    CD_KEEP const cd_calibrate_pool *pool;
    CD_KEEP cd_record_maker *maker;
    CD_KEEP cd_record_log *log;
    const cd_calibrate_clock *clock;
    /* of the clock: no program begins that would end later. As the slowest before it; as the mean
     * of them, where the clock ends those that are late */
    double until_s;
    /* likewise later than end_s less what `after` says of the programs in the log */
    double end_s;
    const cd_calibrate_costs *after; /* what is done with them afterwards; NULL: nothing */
    /* programs without which nothing can be learned: where there is no time for them it ends at
     * once; 0: any number will do */
    size_t least;
    /* programs in the log, the repeated ones once; 0: all of the order */
    size_t most;
    void (*told)(void *ctx, size_t programs); /* after each batch; NULL: nobody listens */
    void *ctx;
    const volatile sig_atomic_t *stop; /* NULL: never */
} cd_calibrate_measure_options;

typedef struct cd_calibrate_measured {
    /* of the order so far; measured by this run; of these repeated ones, and failed ones */
    size_t programs, fresh, repeats, failed;
    size_t known;  /* different programs in the log, of whatever order */
    bool late;     /* the time was over before the programs were */
    bool hopeless; /* it ended because there is no time for `least` */
    /* of the clock: a fresh program in the mean; 0: none was measured */
    double each_s;
    cdmpp_err why; /* of the last failed one; failed 0: empty */
} cd_calibrate_measured;

/* Errors: EINTERRUPTED (what was measured is in the log), EBACKEND (the first CD_CALIBRATE_VAIN
 * programs fail; they are not in the log), EIO, ENOMEM, those of the clock. */
cdmpp_status cd_calibrate_measure(const cd_calibrate_measure_options *o, cd_calibrate_measured *out,
                                  cdmpp_err *err);

/* ---- networks (calibrate_networks.c) ---- */
typedef struct cd_calibrate_networks_options {
    const char *const *network; /* (n_network) of the zoo, or ONNX files */
    size_t n_network;
    CD_KEEP const cd_model *model; /* chooses schedules, as in cd_calibrate_pool_options */
    const char *stands;
    CD_KEEP const cd_device_numbers *numbers;
    CD_KEEP const cd_schedule_db *best; /* schedules that it has chosen already; NULL: none */
    /* what a replay on the machine knows of its caches; NULL: nothing */
    CD_KEEP const cd_device *about;
    const char *target;
    cd_hardware hardware;
    const char *gpu; /* as in cd_calibrate_options */
    int threads;
    int jobs; /* threads that look for schedules; 0: one */
    uint64_t seed;
    const cd_calibrate_clock *clock; /* with a `network` */
    /* none begins that would, as the slowest before it, end later; one that is not ready then is
     * given up */
    double until_s;
    /* seconds of the machine's own clock in one of `clock`; 0: they are the same */
    double wall;
    /* of the clock: what a program took so far, compiled and measured; 0: not known */
    double program_s;
    struct cd_log *log;
    const volatile sig_atomic_t *stop;
} cd_calibrate_networks_options;
/* The law of the machine, without devices and source; out->networks 0: fewer than
 * CD_NETWORK_COST_FEWEST could be measured, or nothing fits them. Errors: EINTERRUPTED, ENOMEM. */
cdmpp_status cd_calibrate_networks(const cd_calibrate_networks_options *o, cd_network_cost_fit *out,
                                   cdmpp_err *err);

/* ---- the correction (calibrate_fit.c) ---- */
typedef struct cd_calibrate_figures {
    size_t n, ranged; /* programs; with an interval */
    /* of the answer |p/y - 1| and its median, of the median |ln(p/y)|, share in the interval; NaN:
     *there are none */
    double mape, median, mean_log, inside;
} cd_calibrate_figures;

typedef struct cd_calibrate_result {
    size_t programs, tasks; /* that could be used */
    size_t failed;          /* lines that could not be used */
    size_t pairs;           /* programs with two times */
    double noise;           /* of them; NaN: fewer than CD_CALIBRATE_PAIRS */
    /* the larger one of it and of what was known before: it goes into the intervals */
    double measured_noise;
    /* of the intervals; of the trees; of the fastest programs (learner/model/here.h) */
    double widen, most, share, picks;
    /* of the device that stands for the machine; of a correction by the other parts */
    cd_calibrate_figures before, after;
    /* what they have and the model's device had not seen (cd_here.marks) */
    cd_buf marks;
    cd_here_trees trees; /* of all programs */
} cd_calibrate_result;

typedef struct cd_calibrate_fit_options {
    CD_KEEP const cd_model *model;
    CD_KEEP const cd_task_registry *tasks;
    const char *device; /* of the model: it stands for the machine */
    const char *name;   /* of the machine; NULL: one that the model does not know */
    /* of the machine, for analytic times; NULL: those of `device` */
    CD_KEEP const cd_device_numbers *numbers;
    const char *const *log; /* (n_log) files and folders */
    size_t n_log;
    double noise; /* of the machine, ln, by another measurement; 0: none */
    /* they do not grow: parts are dealt of their own tasks, not of all that are defined */
    bool given;
    const cd_record_listener *listener; /* lines that cannot be used */
} cd_calibrate_fit_options;

/* Free *out after an error too. Errors: ENODATA (too few programs), EIO, EMODEL, ENOMEM. */
cdmpp_status cd_calibrate_fit(const cd_calibrate_fit_options *o, cd_calibrate_result *out,
                              cdmpp_err *err);
void cd_calibrate_result_free(cd_calibrate_result *r); /* zeroed is fine */
static inline bool cd_calibrate_noisy(const cd_calibrate_result *r) {
    return r->noise > CD_CALIBRATE_NOISE;
}
static inline bool cd_calibrate_better(const cd_calibrate_result *r) {
    return !(r->after.mean_log > r->before.mean_log);
}

/* ---- what is told (calibrate_print.c) ---- */
typedef struct cd_calibrate_told {
    const cd_calibrate_result *result;
    const cd_calibrate_measured *measured;
    const cd_network_cost_fit *costs; /* networks 0: there is no law of the machine */
    const char *device, *name, *cpu, *model, *log, *out; /* out NULL: nothing was written */
    bool given; /* nothing was measured: these are logs of a device */
    double seconds, limit_s;
    bool cpu_time;  /* these are of processors */
    bool as_before; /* schedules are chosen as for `device` (cd_here.stands_chooses) */
    size_t most;    /* programs that were asked for; 0: as many as the time allows */
    /* as in cd_calibrate_options, and with how many seconds it has more programs */
    const char *again;
    double again_s;
} cd_calibrate_told;
void cd_calibrate_text(cd_buf *b, const cd_calibrate_told *t);
/* The inside of a JSON object; `file`: what stays true in a model file, without paths. */
void cd_calibrate_members(cd_buf *b, const cd_calibrate_told *t, bool file);

/* ---- all of it (calibrate.c) ---- */
typedef struct cd_calibrate_options {
    const char *model, *out; /* files: the model that is corrected, and what becomes of it */
    /* nobody named `model`: it serves GPUs alone, and no processor that OpenCL has */
    bool by_default;
    const char *records; /* the log that grows */
    /* (n_given) logs of another device, in the place of measurements; n_given 0: this machine is
     * measured */
    const char *const *given;
    size_t n_given;
    /* of the model; NULL: the one that is most like this machine, or like the device of the logs */
    const char *device;
    /* file of descriptions: who is like whom, and numbers of analytic times; NULL: ours */
    const char *devices;
    CD_KEEP const cd_task_registry *tasks;
    /* (n_network) that are run for the law; n_network 0: none, it stays that of the device that
     * stands for the machine */
    const char *const *network;
    size_t n_network;
    /* of the programs; isa NULL: by the target. A target of GPUs: a GPU is measured */
    const char *target, *isa;
    const char *gpu; /* which one, as its back end counts them; NULL: the first */
    /* what it says of itself: a board is measured; NULL: this machine */
    const cd_remote_about *board;
    int threads; /* of a program; of a GPU's 0 */
    int jobs;    /* threads that look for schedules; 0: one */
    uint64_t seed;
    size_t most;    /* programs in the log; 0: no limit */
    double limit_s; /* of the run, all of it */
    bool force;     /* write in any case */
    bool json;
    CD_KEEP const cd_calibrate_clock *clock;
    double begin_s;                /* of the clock: since when the limit counts; 0: from now on */
    const cd_noise_program *quiet; /* what the check of noise found; NULL: it was not made */
    /* the command that goes on, without --seconds; NULL: not known */
    const char *again;
    struct cd_log *log;
    const volatile sig_atomic_t *stop;
} cd_calibrate_options;

/* The check of noise, before anything else: on the processors that programs of so many threads use.
 * Errors: ERANGE (the machine is too busy, and not `force`). */
cdmpp_status cd_calibrate_quiet(int threads, bool force, struct cd_log *log, cd_noise_program *out,
                                cdmpp_err *err);

/* With `given` only model, out, device, devices, tasks, force, json, clock, and log count. *text:
 * what it found, also where it refuses to write. The file appears whole or not at all. Errors:
 * ERANGE (the machine is too noisy, or held out programs are no better: not with `force`), ENODATA
 * (too few programs in the time), EUSAGE (a model that is corrected already), EINTERRUPTED (the
 * same call goes on), those of the calls above. */
cdmpp_status cd_calibrate_run(const cd_calibrate_options *o, cd_buf *text, cdmpp_err *err);
#endif
