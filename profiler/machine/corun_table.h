/* corun_table -- how operators slow each other down, from measured pairs; and what that says about
 * groups of them.
 *
 *   pairs of cdmpp-profile corun ─> slow[beside][i][j], slow[shared][i][j] ─> group {a, b, c} on 2
 *     places: a and c take turns, b beside
 *
 * Operator k of a group is on place k mod places, a set of processors. What it takes over its time
 * alone is T B M:
 *   (1) T = 1 + sum over the others j of its place (shared[k][j] - 1): each of them gets its turns,
 *       and leaves other data in the caches;
 *   (2) M = 1 - s + s S, the law of the memory (contention.h), S its share and those of the other
 *       places; operators of a place run in turns, so a place has the mean share of its operators.
 *       This is what pairs do not show where two do not fill the memory and three do;
 *   (3) B = 1 + sum over the other places of the mean of (beside[k][j] / M of the pair - 1): what
 *       the law leaves of each pair.
 * Pairs are noisy. A program beside itself is measured twice, so these pairs tell the noise; what
 * each pair differs from the fitted law is taken for real only by the part of its variance that is
 * no noise (`real`), else the law stands. Nothing is fitted to groups. Seconds, bytes. Any
 * thread. */
#ifndef CD_CORUN_TABLE_H
#define CD_CORUN_TABLE_H
#include "profiler/machine/contention.h"
#include "profiler/records/records.h"

typedef struct cd_corun_table {
    cd_arena arena;
    uint32_t n;
    const char **name;       /* (n) workload keys */
    double *seconds, *bytes; /* (n) alone: the median over its pairs; of its parameters */
    double *slow[2];         /* (n, n) beside, shared: row by column; 0: not measured */
    cd_contention fit;
    double real[2]; /* 0: all that differs from the law is noise, 1: nothing is */
} cd_corun_table;

/* Out of the file of `cdmpp-profile corun --out`; into a zeroed one. Errors: those of
 * cd_contention_read and cd_contention_fit. Free `t` after an error too. */
cdmpp_status cd_corun_table_read(const char *path, cd_corun_table *t, cdmpp_err *err);
/* Out of pairs that were just measured; pairs that failed are left out. Errors: ENODATA, ERANGE,
 * ENOMEM. Free `t` after an error too. */
cdmpp_status cd_corun_table_of(const cd_record_corun *c, cd_corun_table *t, cdmpp_err *err);
void cd_corun_table_free(cd_corun_table *t);
/* Number of an operator; UINT32_MAX: it is not there. */
uint32_t cd_corun_table_find(const cd_corun_table *t, cd_str name);
/* Factor of each of n operators (slow (n)) that run at the same time on `places` places. Errors:
 * ENODATA (a pair of them was not measured). */
cdmpp_status cd_corun_table_group(const cd_corun_table *t, const uint32_t *op, uint32_t n,
                                  uint32_t places, double *slow, cdmpp_err *err);

/* ---- groups that were measured, beside what the table says (corun_table_print.c) ---- */
typedef struct cd_corun_check {
    uint32_t n; /* times compared: all operators of all groups without an error */
    /* |predicted / measured - 1| of seconds in the group; predicted from the time alone in the
     *pairs */
    double mean, worst;
    double law_mean;  /* the same of the fitted law without the pairs */
    double slow_mean; /* the same of the factors alone */
} cd_corun_check;

/* predicted (n_group, CD_CORUN_GROUP): factors by the table of each program of each group. Errors:
 * ENODATA (an operator or a pair is not in the table). */
cdmpp_status cd_corun_table_check(const cd_corun_table *t, const cd_record_corun *c,
                                  double *predicted, cd_corun_check *out, cdmpp_err *err);
/* One CSV line an operator of a group; a JSON object; a table for people. predicted as above. Out
 * of memory: b->oom. */
void cd_corun_table_csv(cd_buf *b, const cd_record_corun *c, const cd_corun_table *t,
                        const double *predicted);
void cd_corun_table_json(cd_buf *b, const cd_record_corun *c, const cd_corun_table *t,
                         const double *predicted, const cd_corun_check *k);
void cd_corun_table_text(cd_buf *b, const cd_record_corun *c, const cd_corun_table *t,
                         const double *predicted, const cd_corun_check *k);
#endif
