/* The door of profiler/records: other rooms include this header and no other of the room.
 *
 * Measure records, TVM auto_scheduler's lines of "this schedule of this task took so long on this
 * target". The room reads them from logs, turns each into a program, measures it (profiler/measure)
 * and writes new records with the times found here; it also makes records of random schedules, and
 * measures variants, pairs and groups of programs. */
#ifndef CD_PROFILER_RECORDS_DOOR_H
#define CD_PROFILER_RECORDS_DOOR_H
#include <signal.h>

#include "profiler/host/host.h"
#include "profiler/records/record_corun.h"
#include "profiler/records/record_together.h"
#include "profiler/records/schedule_sweep.h"

/* random_schedules -- records of random schedules: what to measure when nothing has been.
 *
 *   tasks ──sketches──> up to `trials` different programs a task ──> one record line each
 *
 * The schedules are Ansor's (features/sketch/sketch.h). The records have no measurement
 * yet: their cost is 1e10 and their error number 8, as TVM marks what has not
 * run, so that nobody trains on them by mistake.
 *   (1) task by task in the order of the registry, tasks without a DAG left out;
 *   (2) programs of a task are different; where the space is too small or too many
 *       draws fail there are fewer than `trials`;
 *   (3) the same seed gives the same lines on any machine.
 * One thread. */

typedef struct cd_random_schedules_options {
    uint32_t trials; /* programs of a task; 0: 10 */
    uint64_t seed;
    const char *target;   /* NULL or "": that of the task */
    cd_hardware hardware; /* used where the task has none, or target is given */
} cd_random_schedules_options;

typedef struct cd_random_schedules cd_random_schedules;

/* `tasks` and its records' texts are borrowed until free. Errors: ENOMEM. */
cdmpp_status cd_random_schedules_new(CD_KEEP const cd_task_registry *tasks,
                                     const cd_random_schedules_options *o,
                                     CD_GIVE cd_random_schedules **out, cdmpp_err *err);
void cd_random_schedules_free(CD_TAKE cd_random_schedules *d); /* NULL is fine */
/* Append the next record and its newline to `line`; nothing is appended at the
 * end. A task that has no schedules is an error with its key, once: go on with the
 * next call. Errors: EUNSUPPORTED, EINVALID (hardware), ENOMEM. */
cdmpp_status cd_random_schedules_next(cd_random_schedules *d, cd_buf *line, cdmpp_err *err);
/* All of them to `line`, *n of them, until *stop. A task without schedules is reported to `l` and
 * costs only itself. Errors: ENOMEM, EINTERRUPTED. */
cdmpp_status cd_random_schedules_all(cd_random_schedules *d, const cd_record_listener *l,
                                     const volatile sig_atomic_t *stop, cd_buf *line, size_t *n,
                                     cdmpp_err *err);

/* record_output -- where measured programs are written: the log of records, a file of statistics,
 * and what the caller adds.
 *
 *   program + result ─┬─> one line of the record log
 *                     ├─> one JSON line of statistics
 *                     └─> more(), a schedule database for one
 *
 * One thread may claim while another one puts, as with the record log. */

/* One measured program. */
typedef struct cd_record_measured {
    const cd_record_program *job;
    const cd_record *record; /* with its costs, as written */
    const cd_task *task;
    const cd_measure_result *result;
    /* another machine that measured it, and what that says it is; NULL: this machine */
    const char *host, *device;
    long line; /* of the record log */
} cd_record_measured;

typedef struct cd_record_output_options {
    const char *path;  /* the record log */
    bool retry;        /* as for cd_record_log_open */
    const char *stats; /* file of statistics, appended to; NULL: none */
    /* Called after the record was written; NULL: nothing more. An error ends the run. */
    cdmpp_status (*more)(void *ctx, const cd_record_measured *m, cdmpp_err *err);
    void *ctx;
} cd_record_output_options;

typedef struct cd_record_output cd_record_output;

/* `o` and its texts are borrowed until close. Errors: those of cd_record_log_open. */
cdmpp_status cd_record_output_open(CD_KEEP const cd_record_output_options *o,
                                   CD_GIVE cd_record_output **out, cdmpp_err *err);
/* Open the file of statistics, where there is one, and write its first line. Errors: EIO. */
cdmpp_status cd_record_output_begin(cd_record_output *o, const cd_buf *head, cdmpp_err *err);
/* As cd_record_log_claim. */
cdmpp_status cd_record_output_claim(cd_record_output *o, cd_record_id id, unsigned limit,
                                    bool *mine, cdmpp_err *err);
/* Write one program to all three; m->line is set here. Errors: EIO, ENOMEM, those of more(). */
cdmpp_status cd_record_output_put(cd_record_output *o, cd_record_measured *m, cdmpp_err *err);
/* All is on disk after OK. Errors: EIO. NULL is fine. */
cdmpp_status cd_record_output_close(CD_TAKE cd_record_output *o, cdmpp_err *err);

/* record_stats -- what a run has measured, beside its records: statistics as JSON lines, counts.
 *
 *   once a run:    {"schema":"cdmpp.profile_stats","host":{..},"warnings":"..","policy":{..}}
 *   each program:  {"file":..,"line":3,"record":17,"workload_key":..,"error_no":0,"n":12,
 *                   "median_s":..,...}
 *
 * "record" is the line of the record in the file of records. Times in seconds. One thread. */

typedef struct cd_record_stats {
    /* known: were in the output already */
    size_t lines, measured, failed, known, bad, noisy, wide, cached, wrong;
    size_t error_no[CD_ERROR_NO_MAX + 1], reason[CDMPP_STATUS_COUNT];
    double begin_s, build_s, run_s;
    cd_host_time begin;
} cd_record_stats;

/* Zero the counts and note the time; add one result. */
void cd_record_stats_begin(cd_record_stats *s, double now_s);
void cd_record_stats_add(cd_record_stats *s, const cd_measure_result *m);
/* The first line; `core`: the type of cores (CD_CORE_TYPES), NULL: any. */
void cd_record_stats_head(cd_buf *b, const cd_host_info *h, const char *warnings,
                          const cd_timing_policy *p, int threads, const char *core);
/* `host` measured it; NULL: this machine. */
void cd_record_stats_line(cd_buf *b, const cd_record_program *j, long record,
                          const cd_measure_result *m, const char *host);
/* {"records":..,"measured":..,...} */
void cd_record_stats_json(cd_buf *b, const cd_record_stats *s, double now_s);
/* For people, lines with their ends. */
void cd_record_stats_text(cd_buf *b, const cd_record_stats *s, double now_s);
/* "compile error" of 2; TVM's numbers. */
const char *cd_record_stats_error(int error_no);

/* record_measure -- measures the programs of a stream of records on this machine.
 *
 *   batch k:   read, generate, compile │ measure, write            on the last processors
 *   batch k+1:                         │ read, generate, compile   on the others, at the same time
 *
 *   (1) a record that the output has often enough is not measured again, so a run that was cut off
 *       goes on where it ended;
 *   (2) a program that crashes, hangs, does not compile or is wrong becomes a record with its error
 *       number (measure.h);
 *   (3) compiling and measuring overlap only where a program leaves processors to the compilers and
 *       where overlapping is faster; else they alternate, which also disturbs the measurements
 *       least. */

typedef struct cd_record_measure_options {
    cd_measure_options measure; /* how; its `threads` is not used */
    const char *const *path;    /* (n_path) the logs, to read them again for later rounds */
    size_t n_path;
    size_t limit; /* records of a round; 0: all */
    /* until each record stands so often in the output, one round after the other; 0: 1 */
    int rounds;
    int threads; /* of a program; 0: the record's, at most all processors */
    int jobs;    /* compilers at a time; 0: one per processor */
    /* the type of cores that this thread was put on, for the statistics; NULL: any */
    const char *core;
    /* lines that cannot be used, in the first round; notes: programs that failed, an unsteady
     * machine */
    const cd_record_listener *listener;
} cd_record_measure_options;

/* Measure what `file` gives (it is read to its end) with `m`, opened with o->measure by the caller,
 * because that forks and must come first. `sum` gets the counts but for sum->bad. One call a
 * process at a time: it moves this thread between processors. Errors: EINTERRUPTED
 * (*o->measure.stop), EIO, EBACKEND, ENOMEM. */
cdmpp_status cd_record_measure_run(const cd_record_measure_options *o, cd_measure *m,
                                   cd_record_maker *maker, cd_record_reader *file,
                                   cd_record_output *out, cd_record_stats *sum, cdmpp_err *err);

/* record_source -- what records lower to, without compiling or measuring anything: are they usable,
 * and their source code. */

typedef struct cd_record_source_tally {
    size_t lines, bad;                 /* read; of these, not usable */
    size_t reason[CDMPP_STATUS_COUNT]; /* of the bad ones, by status */
} cd_record_source_tally;

/* Lower every record of `file`, at most `limit` of them (0: all). `source` not NULL: also append
 * the code of each program, behind a comment that names the record's line; the prelude of a dialect
 * stands before its first program. A record that cannot be used is counted and reported to `l`. `t`
 * adds up. Errors: EIO, ENOMEM, EINTERRUPTED (*stop). */
cdmpp_status cd_record_source_collect(cd_record_maker *m, cd_record_reader *file, size_t limit,
                                      const cd_record_listener *l,
                                      const volatile sig_atomic_t *stop, cd_buf *source,
                                      cd_record_source_tally *t, cdmpp_err *err);
/* The counts as a line for people, or as a JSON object. */
void cd_record_source_put(cd_buf *b, const cd_record_source_tally *t, bool json);
#endif
