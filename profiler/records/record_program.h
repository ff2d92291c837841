/* record_program -- lines of records become programs to measure.
 *
 *   line -> record -> task -> nest -> code (and the code of the same task without steps: the
 *                                     reference)
 *
 *   (1) a job's texts live in its own arena: a batch of jobs outlives the lines that it came from;
 *   (2) names of programs follow from what they are: equal records give equal texts, in any run;
 *   (3) a line that is no record, or of an unknown task, gives no job but an error; a record whose
 *       program cannot be made is a job with error number 1.
 * A maker belongs to one thread at a time. */
#ifndef CD_RECORD_PROGRAM_H
#define CD_RECORD_PROGRAM_H
#include "profiler/measure/measure.h"
#include "profiler/records/record_reader.h"
#include "profiler/records/record_log.h"

typedef struct cd_record_program {
    cd_arena arena;
    const char *path; /* where it came from */
    long number;
    cd_record record; /* as it will be written, but for what is measured */
    cd_record_id id;
    const char *target; /* the record's, NUL-terminated */
    double flop;        /* of the task; -1: unknown */
    cd_codegen_code code, reference;
    const cd_measure_arg *arg; /* (code.n_arg) */
    cdmpp_err why;             /* code OK: code is there */
} cd_record_program;

typedef struct cd_record_maker {
    CD_KEEP const cd_task_registry *tasks;
    /* not NULL: every line is of this one, which need not be in `tasks` */
    CD_KEEP const cd_task *task;
    cd_program *program; /* of cd_program_new */
    const char *target;  /* in place of the record's; NULL: as it is */
    /* name of the device here for targets without -model=; NULL: they stay without */
    const char *(*device)(void *ctx, cd_str target);
    void *ctx; /* its */
    /* with which programs of processors are measured, and how many there are: records say so; 0: as
     * they were, unknown */
    int threads, cpus;
    /* cd_dialect; -1: by the target's back end, C where there is none */
    int dialect;
    /* instruction set of C code, profiler/host/host.h; NULL: by the target */
    const char *isa;
    bool reference;
    cd_task_registry *owned; /* cd_record_program_maker_open's */
} cd_record_maker;

/* A maker's program, and its tasks from the files: m->program, m->tasks. The other members are the
 * caller's. Close it after an error too. Errors: those of cd_task_registry_load, ENOMEM. */
cdmpp_status cd_record_program_maker_open(cd_record_maker *m, const char *const *task_file,
                                          size_t n, struct cd_log *log, cdmpp_err *err);
void cd_record_program_maker_close(cd_record_maker *m); /* zeroed is fine */

/* One line. Free the job after an error too. Errors: those of cd_record_read, ENOTASK, ENOMEM; with
 * path and line. */
cdmpp_status cd_record_program_make(cd_record_maker *m, const cd_recline *line,
                                    cd_record_program *out, cdmpp_err *err);
/* The code of a job that cd_record_program_make made; apart, since the identity alone needs none.
 * Errors: ENOMEM; others are in job->why. */
cdmpp_status cd_record_program_code(cd_record_maker *m, cd_record_program *job, cdmpp_err *err);
void cd_record_program_free(cd_record_program *job); /* zeroed is fine */
/* Threads of a program: `asked` where it is above 0, else the record's number of cores, at most
 * `cpus`. */
int cd_record_program_threads(const cd_record_program *j, int asked, int cpus);
/* What a record says that its program takes: the mean of its costs; CD_MEASURE_FAILED_S where it
 * failed. */
double cd_record_program_cost_s(const cd_record *r);
#define CD_RECORD_PROGRAM_COSTS 10
/* The record of a measured job: costs, error number, total, timestamp. Costs are at most
 * CD_RECORD_PROGRAM_COSTS means of successive repeats, made in the job's arena. Errors: ENOMEM. */
cdmpp_status cd_record_program_record(cd_record_program *job, const cd_measure_result *m,
                                      cd_record *out, cdmpp_err *err);
#endif
