/* What the files of profiler/measure share among themselves. */
#ifndef CD_PROFILER_MEASURE_INTERNAL_H
#define CD_PROFILER_MEASURE_INTERNAL_H
#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "profiler/measure/measure.h"

/* result_check -- are the results of a program those of the reference?
 *
 *   reference (C, on this machine): parameters of cd_tensor_fill -> run -> results kept
 *   program (any device): the same parameters, results overwritten before -> run -> compared
 *
 *   error of a float = |a - b| / (|b| + a tenth of the buffer's largest |b|);
 *   integers are equal or not.
 * What is written before it is read may hold anything: it begins as 0xFF in all bytes. One
 * thread. */

typedef struct cd_result_check cd_result_check;

/* When the reference in the file was done, by cd_clock_wall; 0: it runs, or the file has none. */
double cd_result_check_done(int kept);

/* worker_protocol -- jobs of supervisor and worker as bytes.
 *
 *   | u32 bytes | job: numbers and texts in cd_job's order |   this process -> supervisor -> worker
 *   | u32 bytes | cd_measure_result as it is |                 and back
 *
 * Both ends are the same program on the same machine, one the other's fork: numbers go as they
 * are in memory. A C program travels as the path of its object, others as text. No state. */

typedef struct cd_job {
    const char *backend, *device, *target;
    int threads;
    bool fresh; /* the worker ends after this job */
    bool pin;
    double limit_s, check_s; /* for the program; before it for the reference, 0: there is none */
    uint64_t memory_bytes;
    double best_s; /* noise_probe.h */
    cd_timing_policy timing;
    size_t others_bytes;             /* as cd_measure_item */
    cd_codegen_code code, reference; /* reference without launches: none */
    const cd_measure_arg *arg;       /* (n_shape) code's parameters; NULL: not needed */
    uint32_t n_shape;
    const char *object, *reference_object; /* "": build it */
    /* where GPU binaries are kept, as object_cache.h has it; NULL: the user's */
    const char *cache;
    uint64_t cache_bytes;
} cd_job;

#define CD_ANSWER_NO_DEVICE (-1) /* an error_no: no program is to blame */
typedef struct cd_worker_result {
    double best_s;
    cd_measure_result measured;
} cd_worker_result;

/* Append the job's bytes. Errors: ENOMEM. */
cdmpp_status cd_worker_protocol_put(cd_buf *b, const cd_job *job, cdmpp_err *err);
/* Everything of *out lives in the bytes or the arena. Errors: EPARSE (cut short), ENOMEM. */
cdmpp_status cd_worker_protocol_get(cd_arena *a, const void *bytes, size_t n, cd_job *out,
                                    cdmpp_err *err);

/* A frame of n bytes; false: the other end is gone. */
bool cd_worker_protocol_send(int fd, const void *bytes, size_t n);
/* The next frame, freed by the caller (cd_mem_free); false: the other end is gone, or no memory. */
bool cd_worker_protocol_receive(int fd, CD_GIVE void **bytes, size_t *n);
/* The next frame, of exactly n bytes, into p; false: the other end is gone, or sends something
 * else. Needs no memory. */
bool cd_worker_protocol_receive_into(int fd, void *p, size_t n);

/* supervisor -- a process that starts workers, gives them jobs, and outlives their crashes.
 *
 *   opener ──job──> supervisor ──job──> worker (fork)      answer, or its end:
 *                                                          killed by a signal, exit, over its limit
 *
 *   (1) forked early, while the opener has one thread and no OpenMP: every worker starts from that;
 *   (2) it leads a process group of its own: ^C reaches the opener only;
 *   (3) it ends when the opener's end of the socket is closed, by close() or by death, and kills
 *       its worker;
 *   (4) a worker dies with it, and is what the system kills first when memory is short. */

typedef struct cd_supervisor cd_supervisor;

/* A new process that runs body(its end of a socket), which does not return; *fd is this end.
 * Errors: EIO. */
cdmpp_status cd_supervisor_fork(void (*body)(int fd), pid_t *pid, int *fd, cdmpp_err *err);

/* Errors: EIO (no process), ENOMEM. */
cdmpp_status cd_supervisor_open(CD_GIVE cd_supervisor **out, cdmpp_err *err);
pid_t cd_supervisor_pid(const cd_supervisor *k);
void cd_supervisor_close(CD_TAKE cd_supervisor *k); /* NULL is fine; kills and reaps */
/* One job and its answer. Errors: EINTERRUPTED (*stop), EIO (the supervisor is gone), ENOMEM; after
 * an error only close() is left. */
cdmpp_status cd_supervisor_do(cd_supervisor *k, const cd_job *job, cd_worker_result *out,
                              const volatile sig_atomic_t *stop, cdmpp_err *err);

/* machine_check -- is it the program that fails, or the machine?
 *
 *   a program fails ──> the smallest one is compiled (loaded, run) as it was
 *                         ├──> fails: no program is to blame, EBACKEND
 *                         └──> runs: the program's own failure
 *
 * A fault of the machine must not be written down as a failure of programs, which are then never
 * measured again. */
typedef struct cd_machine_check_options {
    const cd_measure_options *measure;
    const cd_backend_kind *kind;
    const char *target;
    double limit_s; /* of running it */
    /* NULL: it is only compiled (another thread may be running programs) */
    cd_supervisor *supervisor;
} cd_machine_check_options;
/* After a program that failed for this reason. Errors: EBACKEND (the machine's fault, with both
 * reasons), EINTERRUPTED, EIO, ENOMEM. */
cdmpp_status cd_machine_check(const cd_machine_check_options *o, const cdmpp_err *failed,
                              cdmpp_err *err);

/* prebuild -- a process that compiles the GPU programs of a batch, several at a time, into the
 * cache of binaries.
 *
 *   opener ──jobs──> prebuild ──fork──> compilers, each takes the next job
 *                                     └── object ──> cache of binaries <── worker: finds it there
 *
 *   (1) forked early, as the supervisor is; it ends with the opener;
 *   (2) it only saves time: what it does not compile (an error, a hang, no cache) the worker
 *       compiles, and reports. */

typedef struct cd_prebuild cd_prebuild;

/* corun -- what processes that run programs at the same time have in common (corun.c).
 *
 * Each says by *ready that its programs are loaded (1), or cannot be (-1, and why). */

/* In the new process: no signal handlers of the parent's; it dies with its parent, at once where
 * that is gone already. */
void cd_corun_child(pid_t parent);
/* True: process *pid has ended (then it is 0), or *ready is -1: *out says why. */
bool cd_corun_gone(pid_t *pid, const atomic_int *ready, const cdmpp_err *said, cdmpp_err *out);
/* Kill and reap n processes; 0 is none. */
void cd_corun_end(pid_t *pid, int n);
/* Defaults in place of zeros. */
cd_corun_policy cd_corun_defaults(cd_corun_policy q);

/* worker -- loads, checks and times one program, in a process of its own (supervisor.h).
 *
 *   job -> back end -> [reference: run, its results kept -> program: run, results compared]
 *       -> noise probe -> timing -> noise probe -> answer
 *                                   not quiet: again, the quietest is kept */

/* A back end stays open between jobs that name the same one. */
typedef struct cd_measure_worker {
    const cd_backend_kind *kind;
    cd_backend *backend;
    char name[256]; /* backend, device, target */
    /* file in memory that all workers share: results of the last reference; NULL: none */
    const int *kept;
} cd_measure_worker;

/* Do the job. Never fails: what goes wrong is in *out. */
void cd_worker_do(cd_measure_worker *w, const cd_job *job, cd_worker_result *out);
/* Compile the job's program into the cache; the seconds of it, 0: not compiled. */
double cd_worker_prebuild(cd_measure_worker *w, const cd_job *job);
#endif
