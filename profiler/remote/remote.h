/* remote -- measures programs on other machines, by workers that may fail in any way. The door of
 * profiler/remote; for cdmpp-profile --host and --worker.
 *
 *   jobs 0 1 2 ...   ──lease──>  worker "pi@board-1"  (ssh -p 22 pi@board-1 cdmpp-profile --worker)
 *   answers 0 1 2 .. <─────────  worker "pi@board-2"  one JSON line for each message, both ways
 *
 *   worker -> pool  {"hello":"cdmpp-worker","protocol":1,"version":"0.1.0","device":"..."}
 *                   once, first; and after them, where it knows (cd_remote_about):
 *                   ,"model":"cortex-a72","isa":"aarch64","cpus":4
 *   pool -> worker  {"setup":{..}}                                       once, next; of the caller
 *   pool -> worker  {"lease":7,"record":"{\"i\": ..}"}                   the record's line as text
 *   worker -> pool  {"lease":7,"alive":true}                             while at work
 *   worker -> pool  {"lease":7,"error_no":0,"costs":[s, ..],"total_s":s,"timestamp":t}
 *                   measured; and after them, where it knows:
 *                   ,"message":"..","stats":{"n":12,"min_s":s, ..}       all of CD_REMOTE_STATS
 *   worker -> pool  {"lease":7,"refused":"EUNSUPPORTED","message":".."}  cannot be measured
 *   end of input ends the worker.
 *
 *   (1) a worker has one job at a time, under a number of its own, the lease; any other lease that
 *       it names is a failure;
 *   (2) a worker fails when it ends, has not said hello after start_s, says nothing for silence_s,
 *       has no answer after lease_s, or sends anything that is not a message of the above with
 *       times above 0. It is killed, its job goes to another worker if there is one that has not
 *       had it, and it is begun again after a while; after max_failures it is dropped (20 answers
 *       make one failure good);
 *   (3) a job that failed max_attempts times, or that is left when no worker is, is answered with
 *       EBACKEND and the last reason; one that was refused, by the last worker that it could go to,
 *       with what that said;
 *   (4) answers come in the order of the jobs, whoever gave them in whatever order;
 *   (5) memory is bounded: CD_REMOTE_LINE bytes a line, CD_REMOTE_LINES lines a lease;
 *   (6) before hello up to 64 lines are ignored: some shells greet.
 * One thread; it waits in poll(). Workers never outlive a call. */
#ifndef CD_REMOTE_H
#define CD_REMOTE_H
#include <signal.h>

#include "profiler/records/records.h"

#define CD_REMOTE_PROTOCOL 1
#define CD_REMOTE_LINE     ((size_t)1 << 20)
#define CD_REMOTE_LINES    10000
#define CD_REMOTE_COSTS    256

/* Statistics of a measurement, as cd_measure_result has them; numbers all of them. */
#define CD_REMOTE_STATS(X)                                                                         \
    X(n)                                                                                           \
    X(kept)                                                                                        \
    X(number)                                                                                      \
    X(disturbed)                                                                                   \
    X(attempts)                                                                                    \
    X(flags)                                                                                       \
    X(min_s)                                                                                       \
    X(median_s)                                                                                    \
    X(mean_s)                                                                                      \
    X(std_s)                                                                                       \
    X(cv)                                                                                          \
    X(ci)                                                                                          \
    X(quiet_before)                                                                                \
    X(quiet_after)                                                                                 \
    X(build_s)                                                                                     \
    X(run_s)                                                                                       \
    X(max_error)                                                                                   \
    X(cycles)                                                                                      \
    X(instructions)                                                                                \
    X(cache_misses)
typedef struct cd_remote_stats {
#define CD_X(name) double name;
    CD_REMOTE_STATS(CD_X)
#undef CD_X
} cd_remote_stats;

/* What a worker found out. */
typedef struct cd_remote_times {
    int64_t error_no; /* as in records */
    uint32_t n_cost;
    double cost_s[CD_REMOTE_COSTS];
    double total_s;
    int64_t timestamp;
    char message[200]; /* of an error; "": none came */
    bool has_stats;    /* what is read is finite, counts are whole and not negative */
    cd_remote_stats stats;
} cd_remote_times;

/* What a worker says of itself. "" and 0: it does not say. */
typedef struct cd_remote_about {
    char device[128]; /* what its system calls the processor */
    char model[96];   /* its name in records: -model= of a target */
    char isa[16];     /* of CD_ISAS, the most that it has; never "native" */
    int cpus;         /* processors that programs may use */
    /* the type of cores that it measures on, of CD_CORE_TYPES; "": any */
    char core[16];
} cd_remote_about;

/* ---- the pool ---- */
typedef struct cd_remote_host {
    const char *name;        /* for messages */
    const char *const *argv; /* what to run; NULL ends */
} cd_remote_host;

/* a worker says hello when it begins: a login over ssh takes a second or two */
#define CD_REMOTE_START_S 10
typedef struct cd_remote_policy {
    double lease_s;   /* 0: 120 */
    double start_s;   /* until hello; 0: CD_REMOTE_START_S */
    double silence_s; /* 0: 30 */
    /* before the first new start, doubled with each failure up to 64 times; 0: 0.5 */
    double retry_s;
    unsigned max_failures; /* 0: 4 */
    unsigned max_attempts; /* 0: 3 */
    /* workers that do not measure on this type of cores are no use; NULL: any will do */
    const char *core;
} cd_remote_policy;

typedef struct cd_remote_answer {
    cdmpp_status status; /* of the job; OK: times are known, perhaps with error_no */
    const cdmpp_err *err;
    const char *host, *device; /* who gave it, and the device that it reported; "" for none */
    unsigned attempts;
    const cd_remote_times *times; /* NULL unless OK */
    /* max_attempts workers failed while they had it, and there are workers still: it is the
     * program's fault */
    bool broke;
} cd_remote_answer;

/* Callbacks of a run. `answer` is called for each job, in order (4); `event` (may be NULL) for
 * workers that failed, were begun again or dropped. An error of `answer` ends the run. */
typedef struct cd_remote_watch {
    cdmpp_status (*answer)(void *ctx, size_t job, const cd_remote_answer *a, cdmpp_err *err);
    void (*event)(void *ctx, const char *host, const char *what);
    void *ctx;
    const volatile sig_atomic_t *stop; /* NULL: never */
} cd_remote_watch;

/* Have n records (their lines, borrowed) measured. `setup`: a JSON object that every worker gets
 * first, "" for none. Errors: EINTERRUPTED, EUSAGE (no host), EIO (no process to be had), ENOMEM,
 * those of answer. A failed job is no error. */
cdmpp_status cd_remote_run(const cd_remote_host *host, size_t n_host, const cd_remote_policy *p,
                           const cd_str *record, size_t n, const char *setup,
                           const cd_remote_watch *w, cdmpp_err *err);

/* The command line that reaches `host` ("user@board") by ssh and runs cdmpp-profile --worker there
 * with the n words `arg`, into the arena; `transport` not NULL: by sh -c transport, with host and
 * port as $1 and $2, the words behind. Errors: EUSAGE (no name of a host; a word that a shell might
 * take for more than a word), ENOMEM. */
cdmpp_status cd_remote_reach(cd_arena *a, const char *host, int port, const char *transport,
                             const char *const *arg, size_t n, cd_remote_host *out, cdmpp_err *err);

/* ---- the worker ---- */
typedef struct cd_remote_service {
    /* Get ready, once before the first job; `setup` lives until then. An error is a refusal of
     * every job. NULL: nothing to do. */
    cdmpp_status (*setup)(void *ctx, const cd_json *setup, cdmpp_err *err);
    /* Measure the record on this line. An error is a refusal. */
    cdmpp_status (*measure)(void *ctx, cd_str line, cd_remote_times *out, cdmpp_err *err);
    void *ctx;
    const cd_remote_about *about; /* what hello says; NULL: nothing */
    double alive_s;               /* between signs of life; 0: 5 */
} cd_remote_service;

/* Serve jobs of file `in` until it ends; answers go to file `out`. Errors: EIO, ENOMEM, EBACKEND
 * (no thread). */
cdmpp_status cd_remote_serve(int in, int out, const cd_remote_service *s, cdmpp_err *err);

/* remote_records -- the programs of records, measured by workers on other machines, and the worker
 * that measures them.
 *
 *   logs ──> records that the output lacks ──> cd_remote_run: one JSON line each ──> workers
 *        ──> the same outputs as a local run
 *
 * The program's code is not sent: a worker lowers and compiles the record itself, for its own
 * processor. */

typedef struct cd_remote_records_options {
    const char *const *host; /* (n_host) "user@board" */
    size_t n_host;
    int port;              /* of ssh; 0: its default */
    const char *transport; /* as for cd_remote_reach */
    /* how workers measure: what is not 0 of its budget, limits, memory, isa, flags, device, cold,
     * cool, pin */
    cd_measure_options measure;
    int lease_s;             /* 0: the policy's default */
    const char *const *path; /* (n_path) the logs, to read them again for later rounds */
    size_t n_path;
    size_t limit;     /* records of a round; 0: all */
    int rounds;       /* 0: 1 */
    int threads;      /* of a program; 0: the record's */
    const char *core; /* cores that measure there, of CD_CORE_TYPES; NULL: any */
    /* lines that cannot be used, jobs that no worker answered; notes: programs and workers that
     * failed */
    const cd_record_listener *listener;
} cd_remote_records_options;

typedef struct cd_remote_records_tally {
    /* lost: without an answer; known: the output has them already */
    size_t read, measured, failed, lost, known;
} cd_remote_records_tally;

/* Measure what `file` gives; maker->reference: workers check results. Errors: those of
 * cd_remote_run and cd_remote_reach, EIO, ENOMEM. */
cdmpp_status cd_remote_records_run(const cd_remote_records_options *o, cd_record_maker *maker,
                                   cd_record_reader *file, cd_record_output *out,
                                   cd_remote_records_tally *t, cdmpp_err *err);

/* The counts as a line for people, or as a JSON object with "bad", all items that failed. */
void cd_remote_records_put(cd_buf *b, const cd_remote_records_tally *t, size_t bad, bool json);

/* remote_measure -- programs of a search measured on boards: what cd_measure is on this machine.
 *
 *   open   the first board is asked what it is ──> about
 *   run    records ──> cd_remote_run ──> a result for each, in their order
 *
 *   (1) boards of one search are of one kind: one that calls its processor otherwise than the first
 *       is an error;
 *   (2) a program at which max_attempts workers broke has failed, with error number 4;
 *   (3) any other program without an answer ends the run: what was measured before it has been
 *       delivered.
 * A worker is begun in each run and ends with it. */
typedef struct cd_remote_measure cd_remote_measure;
typedef struct cd_remote_measure_options {
    const char *const *host; /* (n_host) "user@board" */
    size_t n_host;
    int port;                   /* of ssh; 0: its default */
    const char *transport;      /* as for cd_remote_reach */
    cd_measure_options measure; /* how workers measure, as for cd_remote_records_options */
    cd_remote_policy policy;
    int threads;                        /* of a program; 0: the record's */
    const char *core;                   /* cores that measure there, of CD_CORE_TYPES; NULL: any */
    const cd_record_listener *listener; /* notes: workers that failed; NULL: nobody */
} cd_remote_measure_options;

/* What is measured in one run. */
typedef struct cd_remote_measure_jobs {
    const cd_task_registry *tasks;
    const cd_record_program *const *job; /* (n) without code: the worker makes it */
    size_t n;
    bool check; /* compare the results of each with the reference */
    bool one;   /* on the first board alone, one after the other */
    /* in order; an error ends the run */
    cdmpp_status (*each)(void *ctx, size_t i, const cd_measure_result *m, cdmpp_err *err);
    void *ctx;
} cd_remote_measure_jobs;

/* The texts of `o` are borrowed until close. Errors: those of cd_remote_reach and cd_remote_ask. */
cdmpp_status cd_remote_measure_open(const cd_remote_measure_options *o,
                                    CD_GIVE cd_remote_measure **out, cdmpp_err *err);
void cd_remote_measure_close(CD_TAKE cd_remote_measure *m); /* NULL is fine */
CD_KEEP const cd_remote_about *cd_remote_measure_about(const cd_remote_measure *m);
/* The name of the first board. */
CD_KEEP const char *cd_remote_measure_name(const cd_remote_measure *m);
/* Errors: EBACKEND (3), EUSAGE (1), a refusal's own, EINTERRUPTED, EIO, ENOMEM, those of each. */
cdmpp_status cd_remote_measure_run(cd_remote_measure *m, const cd_remote_measure_jobs *j,
                                   cdmpp_err *err);

typedef struct cd_remote_worker_options {
    cd_measure_options measure;
    int dialect; /* as for cd_record_maker */
    int threads; /* of a program; 0: the record's, at most all processors */
    /* the type of cores that this thread was put on, for the worker's name; NULL: any */
    const char *core;
} cd_remote_worker_options;

/* Be a worker: serve jobs of standard input until it ends, answers go to standard output. Call it
 * before other threads are begun. Errors: those of cd_measure_open and cd_remote_serve. */
cdmpp_status cd_remote_worker_run(const cd_remote_worker_options *o, cdmpp_err *err);
#endif
