/* cotune -- how many threads each of several operators has, when they run at the same time on the
 * same processors.
 *
 *     threads   1    2    3        1 + 3:  a 8.0 | b 4.0   -> 8.0 ms
 *     a         8.0  4.2  3.0      2 + 2:  a 4.2 | b 5.5   -> 5.5 ms
 *     b         9.0  5.5  4.0      one after the other, 4 each: 6.1 ms
 *
 *   (1) each has at least one thread, all together at most `threads`; the callback gives the time
 *       of each for given counts; the slowest decides;
 *   (2) every way of sharing is tried up to 1e5 of them, else hill climbing by one thread from
 *       equal shares (Liu et al., IPDPS 2019);
 *   (3) refused (accepted false) unless it is faster than all one after the other with the best
 *       number of threads each.
 * Any thread. Seconds. */
#ifndef CD_COTUNE_H
#define CD_COTUNE_H
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"
#include "base/text/text.h"
#include "profiler/machine/machine.h"

/* threads (n_op): 0 does not run */
typedef double cd_cotune_time(uint32_t op, const uint32_t *threads, uint32_t n_op, void *ctx);
typedef struct cd_cotune {
    cd_arena arena;
    uint32_t *threads;                        /* (n_op) */
    double together_s, sequential_s, equal_s; /* equal_s: equal shares; NaN where threads < n_op */
    bool accepted;                            /* run together; else one after the other */
    bool exact;
    uint64_t n_tried;
} cd_cotune;
/* Errors: ERANGE (a time that is none: its operator; n_op or threads 0), ENOMEM. Free `out` after
 * an error too. */
cdmpp_status cd_cotune_search(uint32_t n_op, uint32_t threads, cd_cotune_time *time, void *ctx,
                              cd_cotune *out, cdmpp_err *err);
void cd_cotune_free(cd_cotune *c);

/* ---- times from a table (cotune_read.c) ----
 *   operator,threads,seconds,bytes  seconds alone with so many threads; bytes (optional): what it
 *                                   moves, for contention
 *   a,1,8e-3,4e6
 *   a,2,4.2e-3,4e6
 *   b,1,9e-3,1e6
 * A file with columns factor, value, median_s, error_no is a sweep of one operator (cdmpp-profile
 * sweep --factor threads --out): the file's name is the operator's. With a number of threads that
 * was not measured an operator takes the least time of those below: it can leave threads idle. */
enum { CD_COTUNE_OPS = 64, CD_COTUNE_THREADS = 4096 };
typedef struct cd_cotune_table {
    cd_arena arena;
    uint32_t n_op, threads; /* threads: of all operators together */
    const char *name[CD_COTUNE_OPS];
    double *seconds[CD_COTUNE_OPS]; /* (threads + 1); of 0 threads: infinity */
    double bytes[CD_COTUNE_OPS];
    cd_contention contention; /* zeroed: operators do not slow each other */
} cd_cotune_table;

/* n files into a zeroed one. threads 0: the most in the tables. machine (NULL: none): file that
 * says what running at the same time costs; the table needs the column bytes then. Errors, with
 * path and line: those of cd_csv_table_read; ERANGE, ESCHEMA (an operator without a time for one
 * thread), ENODATA (a machine without contention), those of cd_machine_read. Free `t` after an
 * error too. */
cdmpp_status cd_cotune_read(const char *const *path, size_t n, uint32_t threads,
                            const char *machine, cd_cotune_table *t, cdmpp_err *err);
/* Seconds of one operator while the others have their threads: a cd_cotune_time; ctx is the
 * table. */
double cd_cotune_table_time(uint32_t op, const uint32_t *threads, uint32_t n_op, void *table);

/* ---- for people and programs (cotune.c) ---- */
void cd_cotune_print(const cd_cotune_table *t, const cd_cotune *c, cd_buf *out);
/* an object */
void cd_cotune_print_json(const cd_cotune_table *t, const cd_cotune *c, cd_buf *out);
/* what is in it */
void cd_cotune_put_members(const cd_cotune_table *t, const cd_cotune *c, cd_json_writer *w);
#endif
