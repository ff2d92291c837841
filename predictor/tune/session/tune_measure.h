/* tune_measure -- candidates compiled and measured on this machine or on boards, each a line of the
 * log as soon as it is.
 *
 *   candidate ─> record ─> job, code (recjob.h) ─> compile ─┬─ run ─> line of the log ─> seconds
 *                                                           └─ the next CHUNK is compiled
 *                                                           meanwhile, where that is faster
 *
 *   (1) the seconds are those that a reader of the log finds: the mean of the record's costs;
 *   (2) a line that is written is a trial that is done: nothing is measured twice, nothing is lost
 *       but the program that runs while the process is killed;
 *   (3) compilers stay off the processors of the programs that run meanwhile;
 *   (4) of boards (profiler/remote) this machine makes no code: records go there, a whole batch at
 *       a time, and the instructions are those of the board. A batch that is cut off keeps what was
 *       answered.
 * One thread; it has a second one while it measures. */
#ifndef CD_TUNE_MEASURE_H
#define CD_TUNE_MEASURE_H
#include "predictor/tune/session/tune_run.h"
#include "profiler/describe/describe.h"
#include "profiler/records/records.h"
#include "profiler/remote/remote.h"

typedef struct cd_tune_measure cd_tune_measure;
typedef struct cd_tune_measure_setup {
    /* opened before anything that has threads (measure.h); NULL with boards */
    CD_KEEP cd_measure *measure;
    CD_KEEP cd_remote_measure *board; /* boards that measure; NULL: this machine */
    CD_KEEP const cd_task_registry *tasks;
    CD_KEEP cd_record_log *log; /* NULL: nothing is written down */
    const char *isa;            /* as in cd_measure_options */
    /* names the device in targets that name none; NULL: they stay without. A board names itself */
    cd_describe_namer *namer;
    /* of a program; 0: num_cores of its hardware, at most all processors */
    int threads;
    int jobs;       /* compilers at a time; 0: one per processor */
    bool pin;       /* programs are kept on the last processors (cd_measure_options) */
    bool check;     /* compare the results of every program */
    bool alternate; /* never compile while something is measured */
    /* after each; NULL: nobody */
    void (*each)(void *ctx, const cd_record_program *job, const cd_measure_result *m);
    void *ctx;
    const volatile sig_atomic_t *stop;
} cd_tune_measure_setup;

/* Errors: ENOMEM. */
cdmpp_status cd_tune_measure_new(const cd_tune_measure_setup *s, CD_GIVE cd_tune_measure **out,
                                 cdmpp_err *err);
void cd_tune_measure_free(CD_TAKE cd_tune_measure *m); /* NULL is fine */
cd_tune_measure_kind cd_tune_measure_of(cd_tune_measure *m);

/* One candidate of a task as a job with its code, `reference` too where asked for. Free the job,
 * after an error as well. A program that cannot be made is in job->why. Errors: ENOMEM, those of
 * cd_record_write. */
cdmpp_status cd_tune_measure_job(cd_tune_measure *m, const cd_tune_task *t, const cd_tune_cand *c,
                                 bool reference, cd_record_program *out, cdmpp_err *err);
/* One program that is measured, in turns with others. */
typedef struct cd_tune_turn {
    const cd_record_program *job;
    cd_measure_item *item; /* of cd_tune_measure_item */
} cd_tune_turn;
/* The record of a candidate without costs: never measured, as TVM says it. */
void cd_tune_record(const cd_tune_task *t, const cd_tune_cand *c, cd_record *out);
#endif
