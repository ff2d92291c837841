/* measure -- compiles programs and times them in processes of their own. The door of profiler/measure.
 *
 * For everything that needs the time of a program: records, tuning, networks. It takes generated code (profiler/codegen) and gives a result for
 * each program, with an error number where it failed.
 *
 *   this process            supervisor (forked at open)     worker (forked by the supervisor)
 *   build: cc, cc, ...      waits, kills what is late       loads, runs, times one program
 *   run(item) ──job──────>  ──job────────────────────────>  may crash, hang, eat all memory
 *             <─measured──  <─measured, or how it ended───
 *
 *   (1) whatever a program does, run() returns with a cd_measure_result: the next one gets a fresh worker;
 *   (2) error numbers are TVM's: 0 none, 1 no program (the caller's), 2 host compiler, 3 device
 *       compiler, 4 error while running, 5 wrong result, 6 compiling took too long, 7 running did;
 *   (3) the supervisor ends with the process that opened it, however that ends, and kills its worker;
 *   (4) open() before the first use of OpenMP (libgomp) and before other threads are begun;
 *   (5) of several that are open at once the one opened last is closed first.
 * build() may be called by one thread while another one is in run(). */
#ifndef CD_MEASURE_H
#define CD_MEASURE_H
#include <signal.h>

#include "profiler/backend/backend.h"
#include "profiler/measure/timing.h"

#define CD_MEASURE_FAILED_S 1e10 /* the cost of what failed, in records */

typedef struct cd_measure_options {
    const char *backend;        /* of cd_backend_names(); NULL: by the target of each item */
    const char *device;         /* as the back end says; NULL: "" */
    const char *isa;            /* of C: profiler/host/isa.h; NULL: by the target */
    const char *compiler, *flags, *cache; /* as in profiler/backend/compiler.h */
    uint64_t cache_bytes;
    int jobs;                   /* compilers at a time; 0: one per processor */
    int threads;                /* of a C program; 0: -num-cores of the target, else all processors */
    bool pin;                   /* keep the worker on the last `threads` processors */
    double build_limit_s, run_limit_s; /* 0: 30, 10 */
    uint64_t memory_bytes;      /* of a worker; 0: no limit */
    cd_timing_policy timing;
    const volatile sig_atomic_t *stop; /* NULL: nobody stops it */
} cd_measure_options;

#define CD_MEASURE_NOISY 1u    /* the processor was slower than it can be, or not ours alone */
#define CD_MEASURE_WIDE 2u     /* the budget was spent before the interval was narrow */
#define CD_MEASURE_CACHED 4u   /* not compiled again */
#define CD_MEASURE_CHECKED 8u  /* compared with the reference */

typedef struct cd_measure_result {
    cdmpp_status status;        /* OK exactly where error_no is 0 */
    int error_no;
    cdmpp_err err;
    uint32_t flags;
    unsigned attempts;          /* measurements made; of several the quietest is kept */
    cd_timing time;
    double build_s, run_s;      /* wall time: its share of the compiler's, all of the worker's */
    double quiet_before, quiet_after; /* noise_probe.h; 0: not asked */
    double max_error;           /* of the check, relative to the largest value */
    double cycles, instructions, cache_misses; /* of one run; negative: not counted here */
    int64_t at;                 /* unix seconds */
} cd_measure_result;

/* Shape of a parameter as the task has it. */
typedef struct cd_measure_arg {
    uint32_t rank;
    const int64_t *shape;       /* (rank) */
} cd_measure_arg;

typedef struct cd_measure_item {
    const cd_codegen_code *code;        /* in */
    const cd_measure_arg *arg;  /* in: (code->n_arg); NULL: no parameter is packed, or nothing is checked */
    const cd_codegen_code *reference;   /* in: C code of the same parameters whose results are right; NULL: no check */
    const char *target;         /* in: NULL: "" */
    int threads;                /* in: of a C program; 0: the options' */
    cd_build build, reference_build; /* cd_measure_build's */
    cd_measure_result out;
} cd_measure_item;

typedef struct cd_measure cd_measure;

/* Fork the supervisor. The options' texts are borrowed until close. Errors: EUSAGE (backend), EIO (no process), ENOMEM. */
cdmpp_status cd_measure_open(const cd_measure_options *o, CD_GIVE cd_measure **out, cdmpp_err *err);
void cd_measure_close(CD_TAKE cd_measure *m); /* NULL is fine; reaps */
/* Compilers at a time from now on; by the thread that builds. */
void cd_measure_jobs(cd_measure *m, int jobs);
/* Compile the C programs among n items. An item that fails has its result in `out` already and must not
 * be run. Errors: EIO (full disk), EBACKEND (no compiler), EINTERRUPTED, ENOMEM. */
cdmpp_status cd_measure_build(cd_measure *m, cd_measure_item *item, size_t n, cdmpp_err *err);
/* Time one item. Errors: EINTERRUPTED, EIO (the supervisor is gone), EBACKEND (no such device, or no longer), EUSAGE (its name), ENOMEM. */
cdmpp_status cd_measure_run(cd_measure *m, cd_measure_item *item, cdmpp_err *err);
/* cd_measure_build and cd_measure_run, for one. */
cdmpp_status cd_measure_one(cd_measure *m, cd_measure_item *item, cdmpp_err *err);
/* An item that cannot even be built: error number 1. */
void cd_measure_result_fail(cd_measure_result *out, int error_no, const cdmpp_err *why);

/* The other headers of the room that are open to other rooms. */
#include "profiler/measure/corun.h"
#endif
