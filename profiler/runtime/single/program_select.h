/* A program for each task of a network: the best of those that are known from logs or tried here.
 *
 *   logs  ──> best record of a task ─┐
 *   none: `trials` random schedules ─┴> compiled, measured ──> the fastest of each task
 *
 *   (1) schedules of logs are compiled and measured here like all others: a time
 *       from elsewhere only chooses among records;
 *   (2) a program that fails only counts as failed; a task of which all programs
 *       fail has the last one's error;
 *   (3) the same seed tries the same programs;
 *   (4) a parameter that a schedule wants packed, and that in the network is no weight (a product of two activations), stays
 *       row-major: the record's layout option is 0 then.
 * One thread. */
#ifndef CD_PROGRAM_SELECT_H
#define CD_PROGRAM_SELECT_H
#include "profiler/records/records.h"
#include "profiler/network/workload/workload.h"

typedef struct cd_program_select_options {
    const char *const *log;     /* (n_log) files or folders of records */
    size_t n_log;
    const char *const *line;    /* (n_line) records, one for a task: they win over logs */
    size_t n_line;
    bool reference;             /* also build each task without a schedule, and compare what programs compute with it */
    uint32_t trials;            /* of a task without a record; 0: 4 */
    uint64_t seed;
    const char *target;
    cd_hardware hardware;
    int threads;                /* of a program; 0: the measurer's */
    CD_KEEP cd_measure *measure;
    const volatile sig_atomic_t *stop;
} cd_program_select_options;

typedef struct cd_program_select_task {
    cd_record_program job;              /* the chosen one; only where status is OK */
    cd_measure_item item;       /* with its object and times */
    uint32_t tried, failed;
    bool from_log;
    bool unpacked;              /* (4) */
    cdmpp_status status;
    cdmpp_err err;
} cd_program_select_task;

typedef struct cd_program_select {
    uint32_t n;                 /* as the workload's tasks */
    cd_program_select_task *task;      /* (n) */
    size_t bad_lines;           /* of logs */
} cd_program_select;

/* Errors: EIO (a log that cannot be read), EINTERRUPTED, those of cd_measure_build, ENOMEM. */
cdmpp_status cd_program_select_run(const cd_workload *w, const cd_program_select_options *o, CD_GIVE cd_program_select **out, cdmpp_err *err);
void cd_program_select_free(CD_TAKE cd_program_select *p); /* NULL is fine */
#endif
