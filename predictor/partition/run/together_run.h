/* together_run -- threads for each of several programs of records: measured alone, shared out, and
 * the answer run.
 *
 *   records ── cd_record_together_measure ──> table ── cd_cotune_search ──> threads of each
 *           ── cd_corun_ways_run ──> seconds of a pass
 *
 *   ways   one after the other, each with its best number of threads
 *          together, as the search says
 *          together, with equal shares
 *
 * The search counts with times alone (and contention, where a machine says it); the run tells what
 * others' caches and memory cost in truth. What measures best is kept. One thread, before others
 * are begun: it forks. */
#ifndef CD_TOGETHER_RUN_H
#define CD_TOGETHER_RUN_H
#include "predictor/partition/games/games.h"
#include "profiler/records/records.h"

typedef enum cd_together_how {
    CD_TOGETHER_ONE_BY_ONE,
    CD_TOGETHER_TUNED,
    CD_TOGETHER_EQUAL,
    CD_TOGETHER_WAYS
} cd_together_how;

typedef struct cd_together_options {
    cd_record_together_options measure;
    /* file that says what running at the same time costs; NULL: nobody slows the others */
    const char *machine;
    bool run;               /* run the answer, too */
    cd_corun_policy policy; /* of the run; its sharing and threads are not looked at */
} cd_together_options;

typedef struct cd_together_way {
    /* fewer threads than programs: only one by one; equal shares only where they are others than
     * the tuned ones */
    bool there;
    double predicted_s;
    double pass_s, low_s, high_s, best_s; /* ran: as of cd_corun_ways */
} cd_together_way;

typedef struct cd_together {
    cd_record_together *programs;
    /* operators in the order of programs; their names are workload keys */
    cd_cotune_table table;
    cd_cotune tuned;
    cd_together_way way[CD_TOGETHER_WAYS];
    bool ran;
    cd_together_how kept; /* ran: the fastest */
    /* ran: 0..1, what others used of the processors meanwhile; NaN: the system does not say */
    double others;
} cd_together;

/* Free *out after an error too. Errors: those of cd_record_together_measure, cd_machine_contention
 * and cd_corun_ways_run; ENODATA (a program that does not run with one thread, or fails beside
 * others: with its workload key). */
cdmpp_status cd_together_make(const cd_together_options *o, cd_together *out, cdmpp_err *err);
void cd_together_free(cd_together *t); /* zeroed is fine */
/* "one after the other" ... */
const char *cd_together_name(cd_together_how how);
/* The measured table as cd_cotune_read reads it: operator,threads,seconds,bytes. Out of memory:
 * b->oom. */
void cd_together_csv(const cd_together *t, cd_buf *b);
#endif
