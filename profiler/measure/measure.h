/* measure -- compiles programs and times them in processes of their own. The door of
 * profiler/measure.
 *
 * For everything that needs the time of a program: records, tuning, networks. It takes generated
 * code (profiler/codegen) and gives a result for each program, with an error number where it
 * failed.
 *
 *   this process            supervisor (forked at open)     worker (forked by the supervisor)
 *   build: cc, cc, ...      waits, kills what is late       loads, runs, times one program
 *   run(item) ──job──────>  ──job────────────────────────>  may crash, hang, eat all memory
 *             <─measured──  <─measured, or how it ended───
 *
 *   (1) whatever a program does, run() returns with a cd_measure_result: the next one gets a fresh
 *       worker;
 *   (2) error numbers are TVM's: 0 none, 1 no program (the caller's), 2 host compiler, 3 device
 *       compiler, 4 error while running, 5 wrong result, 6 compiling took too long, 7 running did;
 *   (3) the supervisor ends with the process that opened it, however that ends, and kills its
 *       worker;
 *   (4) what is no fault of a program (a compiler that always fails, a cache on a file system that
 *       runs nothing, a broken driver) ends the run: where a program does not compile or run, the
 *       smallest one there is tried in the same way (machine_check.c);
 *   (5) open() before the first use of OpenMP (libgomp) and before other threads are begun;
 *   (6) of several that are open at once the one opened last is closed first.
 * build() may be called by one thread while another one is in run(). */
#ifndef CD_MEASURE_H
#define CD_MEASURE_H
#include <signal.h>

#include "profiler/backend/backend.h"

/* timing -- runs a program until its time is known.
 *
 *   warm-up │ repeat 1 │ repeat 2 │ ... │      a repeat: `number` runs in a row, their mean
 *           └─ until the interval is narrow, or the budget is spent
 *
 * Policy alone, on two functions: one runs the program, one reads the clock. Tests replace both.
 *
 *   (1) `number` is so large that a repeat takes min_repeat_s, far above the clock's resolution;
 *       in a cold or cool measurement it is 1 and the caches are flushed before every repeat;
 *   (2) samples further from the median than 3 deviations (1.4826 times the median distance, at
 *       least 0.5 % of the median) are outliers: counted, in `sample`, but in no figure;
 *   (3) done when the half-width of the 95 % interval of the mean of what is kept is below `ci`
 *       of it, after at least min_repeat repeats; or at max_repeat; or when the next repeat
 *       would end behind budget_s. Two repeats are made in any case, but one where that alone
 *       is longer than the budget.
 * No state, any thread. */

#define CD_TIMING_MAX 256

typedef struct cd_timing_policy {
    double budget_s;                 /* of all repeats and the warm-up; 0: 0.1 */
    double warmup_s;                 /* at least, and two runs; 0: 0.005 */
    double min_repeat_s;             /* 0: 0.001; at least 1000 ticks of the clock */
    double ci;                       /* relative half-width; 0: 0.01 */
    unsigned min_repeat, max_repeat; /* 0: 5, 100; at most CD_TIMING_MAX */
    bool cold;
    /* as cold, but only of the core's own caches: data stay in the shared one (cache_flush.h) */
    bool cool;
} cd_timing_policy;

typedef struct cd_timing_subject {
    void *ctx;
    double (*now)(void *ctx); /* seconds */
    /* Run `times` times in a row; *seconds: of all together. */
    cdmpp_status (*run)(void *ctx, unsigned times, double *seconds, cdmpp_err *err);
    cdmpp_status (*flush)(void *ctx, cdmpp_err *err); /* NULL where nothing is measured cold */
    /* Was the last repeat disturbed, by another process for one? NULL: nobody knows. */
    bool (*disturbed)(void *ctx);
} cd_timing_subject;

typedef struct cd_timing {
    unsigned n, n_kept, number;                /* samples; those in the figures; runs of a repeat */
    double min_s, median_s, mean_s, std_s, cv; /* of what is kept; cv = std / mean */
    double ci;                                 /* relative half-width reached; 1: unknown */
    unsigned disturbed;             /* repeats that were, left out where enough others are there */
    double sample_s[CD_TIMING_MAX]; /* (n) in the order of time */
    bool kept[CD_TIMING_MAX];       /* (n) */
} cd_timing;

/* Defaults in place of zeros; tick_s: of the clock (cd_timing_clock_check). */
cd_timing_policy cd_timing_defaults(cd_timing_policy p, double tick_s);
/* Errors: those of run and flush; ENUMERIC (a time that is not a number above 0). */
cdmpp_status cd_timing_run(const cd_timing_policy *p, const cd_timing_subject *s, cd_timing *out,
                           cdmpp_err *err);
/* The figures of out->sample_s[0 .. n): (2). `left_out` (n) or NULL: samples that may not be
 * kept. */
void cd_timing_figures(cd_timing *out, const bool *left_out);

/* The resolution of a clock and what a reading costs, by reading it. */
typedef struct cd_timing_clock_quality {
    double tick_s, cost_s;
    bool monotonic; /* never went back */
} cd_timing_clock_quality;
/* Ask the clock some thousand times: takes about a millisecond. */
cd_timing_clock_quality cd_timing_clock_check(double (*now)(void *ctx), void *ctx);
/* cd_clock_wall() as cd_timing_subject.now; ctx is ignored. */
double cd_timing_clock_now(void *ctx);

/* corun -- two compiled C programs at the same time: how much does each slow the other down?
 *
 *   round:  first alone | second alone | both     three windows of the same length, `rounds` times
 *
 *   disjoint   first on the last n processors, second on the n before: they share caches and memory
 *   shared     both on the last n: they share these too
 *
 *   (1) each program lives in a process of its own for all windows: loaded once, its data warm;
 *   (2) a time is the length of a window over the runs that began in it, and a program goes on
 *       running until the other one's window is over too: neither is measured for a moment in which
 *       the other one does not run. Of programs of one thread the length is the time that their
 *       processor spent on them, without what it did for anybody else; of more threads it is the
 *       wall clock's;
 *   (3) figures are medians over the rounds; slowdown = corun / solo, each of its own program;
 *   (4) a program that crashes (4), takes longer than limit_s (7) or writes outside of its buffers
 *       (4) is an error number of the pair, as in measure.h; both processes are ended;
 *   (5) the processes end with the one that began them.
 * Needs 2 n processors for disjoint ones. Call it before any use of OpenMP here: it forks. One
 * thread. */

typedef enum cd_corun_sharing { CD_CORUN_DISJOINT, CD_CORUN_SHARED } cd_corun_sharing;
#define CD_CORUN_SHARINGS "disjoint|shared"

typedef struct cd_corun_policy {
    cd_corun_sharing sharing;
    int threads;                       /* of each program; 0: 1 */
    double window_s;                   /* 0: 0.1 */
    unsigned rounds;                   /* 0: 3; at most CD_CORUN_ROUNDS */
    double limit_s;                    /* for loading, and for a window beyond its length; 0: 10 */
    const volatile sig_atomic_t *stop; /* NULL: never */
} cd_corun_policy;
#define CD_CORUN_ROUNDS 32

typedef struct cd_corun_pair {
    double solo_s[2], corun_s[2], slowdown[2]; /* seconds of a run */
    double spread; /* largest relative difference between rounds of a time alone */
    int error_no;  /* 0: the figures are there */
    int at;        /* whose error it is: 0, 1 */
    cdmpp_err err;
} cd_corun_pair;

/* Programs first and second, built (object: a path). Errors: EUSAGE (too few processors),
 * EINTERRUPTED, EIO (no process), ENOMEM. What a program does wrong is in *out. */
cdmpp_status cd_corun_run(const cd_build *first, const cd_build *second, const cd_corun_policy *p,
                          cd_corun_pair *out, cdmpp_err *err);

/* ---- several: program k is on the (k mod places)-th set of n processors, counted from the last;
 * those of a set take turns ---- */
#define CD_CORUN_GROUP 4 /* programs at most */
typedef struct cd_corun_group {
    unsigned n;
    /* (n) as of a pair */
    double solo_s[CD_CORUN_GROUP], corun_s[CD_CORUN_GROUP], slowdown[CD_CORUN_GROUP];
    double spread;
    int error_no, at;
    cdmpp_err err;
} cd_corun_group;

/* n programs, each alone and all together, in each round; places 1 to n; the policy's sharing is
 * not looked at. Errors: as above. */
cdmpp_status cd_corun_group_run(const cd_build *const *build, unsigned n, unsigned places,
                                const cd_corun_policy *p, cd_corun_group *out, cdmpp_err *err);

/* ---- ways to run several programs once each, measured in turns ----
 *
 *   at once:     program 0 on the last t0 processors │ program 1 on the t1 before │ ...
 *                a pass: until the last has ended
 *   one by one:  program 0, then program 1 ...       on the last max(t) processors
 *
 *   (1) each way has processes of its own, one for each program at once, one for all that run one
 *       by one; all are loaded and warm before the first pass;
 *   (2) a turn is a pause, in which threads that wait for work fall asleep, a pass that is not
 *       counted, and passes for window_s; each round has a turn of each way;
 *   (3) a pass is wall time: from the first begin to the last end. Figures are of the turns'
 *       medians; best_s is the fastest pass of all;
 *   (4) programs that fail are an error number, as above. */
#define CD_CORUN_WAYS 3 /* at most */
typedef struct cd_corun_way {
    unsigned n; /* programs */
    bool at_once;
    const cd_build *build[CD_CORUN_GROUP];
    int threads[CD_CORUN_GROUP]; /* of each, for which it was built */
} cd_corun_way;
typedef struct cd_corun_ways {
    /* (n_way) median, quartiles and least */
    double pass_s[CD_CORUN_WAYS], low_s[CD_CORUN_WAYS], high_s[CD_CORUN_WAYS],
        best_s[CD_CORUN_WAYS];
    int error_no, way, at; /* 0: the figures are there; else whose error it is */
    cdmpp_err err;
} cd_corun_ways;

/* The policy's sharing and threads are not looked at. Errors: EUSAGE (none or too many programs or
 * ways, too few processors), EINTERRUPTED, EIO, ENOMEM. */
cdmpp_status cd_corun_ways_run(const cd_corun_way *way, unsigned n_way, const cd_corun_policy *p,
                               cd_corun_ways *out, cdmpp_err *err);

/* Bytes of a program's parameters: what it must at least read and write. */
int64_t cd_corun_bytes(const cd_codegen_code *code);

#define CD_MEASURE_FAILED_S 1e10 /* the cost of what failed, in records */

typedef struct cd_measure_options {
    const char *backend; /* of cd_backend_names(); NULL: by the target of each item */
    const char *device;  /* as the back end says; NULL: "" */
    const char *isa;     /* of C: profiler/host/host.h; NULL: by the target */
    const char *compiler, *flags, *cache; /* as in profiler/backend/backend.h */
    uint64_t cache_bytes;
    int jobs; /* compilers at a time; 0: one per processor */
    /* of a C program; 0: -num-cores of the target, else all processors */
    int threads;
    bool pin;                          /* keep the worker on the last `threads` processors */
    double build_limit_s, run_limit_s; /* 0: 30, 10 */
    uint64_t memory_bytes;             /* of a worker; 0: no limit */
    cd_timing_policy timing;
    const volatile sig_atomic_t *stop; /* NULL: nobody stops it */
} cd_measure_options;

#define CD_MEASURE_NOISY   1u /* the processor was slower than it can be, or not ours alone */
#define CD_MEASURE_WIDE    2u /* the budget was spent before the interval was narrow */
#define CD_MEASURE_CACHED  4u /* not compiled again */
#define CD_MEASURE_CHECKED 8u /* compared with the reference */

typedef struct cd_measure_result {
    cdmpp_status status; /* OK exactly where error_no is 0 */
    int error_no;
    cdmpp_err err;
    uint32_t flags;
    unsigned attempts; /* measurements made; of several the quietest is kept */
    cd_timing time;
    double build_s, run_s; /* wall time: its share of the compiler's, all of the worker's */
    double quiet_before, quiet_after;          /* noise_probe.h; 0: not asked */
    double max_error;                          /* of the check, relative to the largest value */
    double cycles, instructions, cache_misses; /* of one run; negative: not counted here */
    int64_t at;                                /* unix seconds */
} cd_measure_result;

/* Shape of a parameter as the task has it. */
typedef struct cd_measure_arg {
    uint32_t rank;
    const int64_t *shape; /* (rank) */
} cd_measure_arg;

typedef struct cd_measure_item {
    const cd_codegen_code *code; /* in */
    /* in: (code->n_arg); NULL: no parameter is packed, or nothing is checked */
    const cd_measure_arg *arg;
    /* in: C code of the same parameters whose results are right; NULL: no check */
    const cd_codegen_code *reference;
    const char *target; /* in: NULL: "" */
    int threads;        /* in: of a C program; 0: the options' */
    /* in: of a C program: so much other data are read before every run, which is timed by itself as
     * a cool one; 0: none */
    size_t others_bytes;
    cd_build build, reference_build; /* cd_measure_build's */
    cd_measure_result out;
} cd_measure_item;

typedef struct cd_measure cd_measure;

/* Fork the supervisor. The options' texts are borrowed until close. Errors: EUSAGE (backend), EIO
 * (no process), ENOMEM. */
cdmpp_status cd_measure_open(const cd_measure_options *o, CD_GIVE cd_measure **out, cdmpp_err *err);
void cd_measure_close(CD_TAKE cd_measure *m); /* NULL is fine; reaps */
/* Its options' instruction set of C; NULL: by the target. Of no measurer NULL. */
CD_KEEP const char *cd_measure_isa(const cd_measure *m);
/* Compilers at a time from now on; by the thread that builds. */
void cd_measure_jobs(cd_measure *m, int jobs);
/* What is not compiled, or has not ended, at this time of cd_clock_wall() ends as what takes too
 * long does (error numbers 6 and 7); INFINITY: no such time, as in the beginning. */
void cd_measure_until(cd_measure *m, double until_s);
/* run_limit_s of the options, from now on. */
void cd_measure_run_limit(cd_measure *m, double seconds);
/* Processor time so far: of this process, of its processes that measure, and of all their children
 * that have ended. */
double cd_measure_process_time(const cd_measure *m);
/* Compile the C programs among n items. An item that fails has its result in `out` already and must
 * not be run. Errors: EIO (full disk), EBACKEND (no compiler, or one that compiles nothing; --isa
 * of another processor), EINTERRUPTED, ENOMEM. */
cdmpp_status cd_measure_build(cd_measure *m, cd_measure_item *item, size_t n, cdmpp_err *err);
/* Time one item. Errors: EINTERRUPTED, EIO (the supervisor is gone), EBACKEND (no such device, or
 * no longer; nothing at all runs), EUSAGE (its name), ENOMEM. */
cdmpp_status cd_measure_run(cd_measure *m, cd_measure_item *item, cdmpp_err *err);
/* cd_measure_build and cd_measure_run, for one. */
cdmpp_status cd_measure_one(cd_measure *m, cd_measure_item *item, cdmpp_err *err);
/* An item that cannot even be built: error number 1. */
void cd_measure_result_fail(cd_measure_result *out, int error_no, const cdmpp_err *why);

#endif
