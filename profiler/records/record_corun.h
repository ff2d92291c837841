/* record_corun -- programs of records in pairs: how much slower does each make the other?
 *
 *   logs ─ fastest record of each of the first workloads ─> programs ─> every pair, on different
 *     processors and on the same
 *
 * n programs give n (n + 1) rows; a program also stands in a pair with itself (corun.h has the
 * method). Then groups of three or four of the programs, drawn by a seed, on as many places as
 * there are processors for. One thread. */
#ifndef CD_RECORD_CORUN_H
#define CD_RECORD_CORUN_H
#include "profiler/records/record_best.h"
#include "profiler/records/record_program.h"

#define CD_RECORD_CORUN_MAX 64 /* workloads of a table */

typedef struct cd_record_corun_options {
    const char *const *task_file; /* (n_task_file) definitions of tasks */
    size_t n_task_file;
    cd_record_best_options best; /* which records; best.max at most CD_RECORD_CORUN_MAX */
    cd_measure_options measure;  /* how programs are compiled */
    cd_corun_policy policy;      /* for each pair; its sharing is set here */
    const char *target;          /* in place of the record's; NULL: as it is */
    struct cd_log *log;          /* of warnings about task files; NULL: none */
    /* programs of a group, 0: no groups, else 2 to CD_CORUN_GROUP; how many groups */
    unsigned group, n_group;
    /* they are drawn by; a program may stand in a group more than once */
    uint64_t seed;
    bool no_pairs;         /* only groups */
} cd_record_corun_options; /* best.listener hears of pairs that failed, too */

typedef struct cd_record_corun_row {
    size_t first, second; /* programs */
    cd_corun_sharing sharing;
    cd_corun_pair out;
} cd_record_corun_row;

typedef struct cd_record_corun_group {
    uint32_t program[CD_CORUN_GROUP];
    cd_corun_group out;
} cd_record_corun_group;

typedef struct cd_record_corun {
    cd_arena arena;
    cd_record_best best[CD_RECORD_CORUN_MAX]; /* (n) */
    cd_record_program job[CD_RECORD_CORUN_MAX];
    cd_measure_item item[CD_RECORD_CORUN_MAX];
    size_t n, n_row;
    size_t bad;               /* pairs that failed */
    int threads;              /* of each program */
    cd_record_corun_row *row; /* (n_row) */
    /* of a group: sets of `threads` processors, at most one for each program */
    unsigned places;
    size_t n_group;
    cd_record_corun_group *group; /* (n_group) */
} cd_record_corun;

/* Compile the programs and measure all pairs. A pair of which a program cannot be run has an error
 * number and says whose it is. Call it before other threads are begun: it forks. Errors: ENODATA
 * (no record), EIO, EUSAGE (too few processors), EINTERRUPTED, ENOMEM. */
cdmpp_status cd_record_corun_run(const cd_record_corun_options *o, CD_GIVE cd_record_corun **out,
                                 cdmpp_err *err);
void cd_record_corun_free(CD_TAKE cd_record_corun *c); /* NULL is fine */

/* Print it: one CSV line (RFC 4180) a pair; a JSON object; a table for people. Out of memory:
 * b->oom. */
void cd_record_corun_csv(cd_buf *b, const cd_record_corun *c);
void cd_record_corun_json(cd_buf *b, const cd_record_corun *c);
void cd_record_corun_text(cd_buf *b, const cd_record_corun *c);
#endif
