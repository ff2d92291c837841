/* record_together -- programs of records with several numbers of threads: what each takes alone,
 * and what they take at the same time.
 *
 *   logs ── fastest record of each of the first workloads ──> programs
 *     alone                seconds[program][threads] <───────────┤
 *     cd_corun_ways_run    ways to run them all <────────────────┘
 *
 * A program is built anew for each number of threads: its loops are cut up otherwise. One
 * thread. */
#ifndef CD_RECORD_TOGETHER_H
#define CD_RECORD_TOGETHER_H
#include "profiler/records/record_best.h"
#include "profiler/records/record_program.h"

enum { CD_RECORD_TOGETHER_COUNTS = 16 };

typedef struct cd_record_together_options {
    const char *const *task_file; /* (n_task_file) definitions of tasks */
    size_t n_task_file;
    cd_record_best_options best; /* which records; best.max at most CD_CORUN_GROUP */
    cd_measure_options measure;  /* how; its `threads` and `pin` are set here */
    int threads;                 /* of all together; 0: as many as processors */
    const char *target;          /* in place of the record's; NULL: as it is */
    struct cd_log *log;          /* of warnings about task files; NULL: none */
} cd_record_together_options;    /* best.listener hears of programs that failed, too */

typedef struct cd_record_together {
    cd_arena arena;
    cd_measure *measure; /* open: it owns the compiled programs */
    cd_record_maker maker;
    cd_record_best best[CD_CORUN_GROUP]; /* (n) */
    size_t n;
    /* numbers of threads that were measured, ascending, from 1 to `threads` */
    int threads, n_count, count[CD_RECORD_TOGETHER_COUNTS];
    cd_record_program job[CD_CORUN_GROUP][CD_RECORD_TOGETHER_COUNTS];
    /* out.error_no 0: out.time.median_s is there */
    cd_measure_item item[CD_CORUN_GROUP][CD_RECORD_TOGETHER_COUNTS];
    size_t bad; /* programs that failed */
} cd_record_together;

/* Compile the programs and measure each alone, with 1, 2, 3, 4, 6, 8, 12 ... threads. Call it
 * before other threads are begun: it forks. Free *out, after an error too. Errors: ENODATA (no
 * record), EUSAGE (more threads than processors), those of cd_measure_build and cd_measure_run,
 * ENOMEM. */
cdmpp_status cd_record_together_measure(const cd_record_together_options *o,
                                        CD_GIVE cd_record_together **out, cdmpp_err *err);
/* The fastest form of program `at` with at most so many threads, as an index into item[at] and
 * count; -1: there is none. */
int cd_record_together_find(const cd_record_together *t, size_t at, int threads);
/* A way with at most threads[k] for program k. False: one of them has no program. */
bool cd_record_together_way(const cd_record_together *t, const uint32_t *threads, bool at_once,
                            cd_corun_way *out);
void cd_record_together_free(CD_TAKE cd_record_together *t); /* NULL is fine */
#endif
