/* qos -- queries with deadlines on a machine: which are admitted, which are late? A simulation of
 * the queue.
 *
 *   arrivals (Poisson) ──admitted?──> queue ──earliest deadline first──> places
 *                            └─ no: rejected at once
 *
 * A place runs one query at a time, slower while other places run beside it.
 *
 *   (1) A query's time alone is drawn from its interval: ln(time / seconds) is normal on each side
 *       of the predicted median, so that low_s and high_s are quantiles (1 - level) / 2 and (1 +
 *       level) / 2. By query, or one draw for a kind and a run: a model that is wrong stays wrong.
 *   (2) While it runs beside others it is slower: by pairs that were measured
 *       (profiler/machine/corun_table.h), else by the law of memory and bytes (contention.h).
 *   (3) Policies: FIFO admits all, in order of arrival. EDF admits all. UPPER and BOUND admit a
 *       query where it and all that were admitted before it would meet their deadlines if each took
 *       its upper time beside the worst company. The upper time is high_s for UPPER; for BOUND the
 *       quantile 1 - risk / queries, so that the probability that any admitted query of a run is
 *       late is at most `risk` (Boole's inequality). A decision is final: nothing that runs is
 *       stopped, and what was admitted is not dropped.
 * (3) holds because the queue has no precedence: with fixed order and shorter times no query starts
 *     later. So an admitted query is late only after one that took longer than its
 * upper time. Seconds, bytes. Any thread. The same seed gives the same runs, and all policies see
 * the same queries. */
#ifndef CD_QOS_H
#define CD_QOS_H
#include <signal.h>

#include "profiler/machine/machine.h"

#define CD_QOS_POLICIES "fifo|edf|upper|bound"
typedef enum cd_qos_policy {
    CD_QOS_FIFO,
    CD_QOS_EDF,
    CD_QOS_UPPER,
    CD_QOS_BOUND,
    CD_QOS_N_POLICY
} cd_qos_policy;
#define CD_QOS_DRAWS "query|run"
typedef enum cd_qos_draw { CD_QOS_DRAW_QUERY, CD_QOS_DRAW_RUN } cd_qos_draw;
enum { CD_QOS_KINDS = 256, CD_QOS_PLACES = 64 };

typedef struct cd_qos_kind {
    const char *name;
    double seconds;       /* predicted, alone: the median */
    double low_s, high_s; /* interval; equal: exact */
    double deadline_s;    /* after its arrival */
    double bytes;         /* that it moves; 0: unknown */
    double weight;        /* its part of the arrivals */
    uint32_t op;          /* in the pairs */
} cd_qos_kind;

typedef struct cd_qos_file {
    cd_arena arena;
    uint32_t n;
    cd_qos_kind *kind; /* (n) */
    double level;      /* of the intervals; 0: the file does not say */
    bool exact;        /* the file has no intervals */
    bool bytes;        /* it has bytes */
} cd_qos_file;

typedef struct cd_qos_arrival {
    double at_s; /* from the beginning of a run; they do not fall */
    uint32_t kind;
} cd_qos_arrival;

typedef struct cd_qos_options {
    uint32_t places;               /* queries at a time: 1 to CD_QOS_PLACES */
    double load;                   /* arrivals per second times mean time alone, over places */
    uint32_t queries, runs;        /* arrivals of a run */
    const cd_qos_arrival *arrival; /* (queries) the same in each run; NULL: drawn, by load */
    uint64_t seed;
    double level; /* of low_s and high_s */
    double risk;  /* of BOUND, for a run */
    cd_qos_draw draw;
    cd_contention contention;          /* zeroed: nobody slows anybody */
    const cd_corun_table *pairs;       /* NULL: by contention */
    const volatile sig_atomic_t *stop; /* NULL: never */
} cd_qos_options;

typedef struct cd_qos_result { /* of a policy, over all runs */
    uint64_t arrived, admitted, late;
    uint32_t late_runs;         /* runs with a late query */
    double goodput;             /* queries in time per second, until the last one is done */
    double mean_wait_s;         /* of admitted ones until they begin */
    double p50_s, p95_s, p99_s; /* from arrival to end, of admitted ones */
    double busy;                /* part of the places' time */
} cd_qos_result;

/* CSV: query, seconds, low_s, high_s (both or none), deadline_s, bytes, weight; the last four
 * optional. JSON: what cdmpp-replay --json printed, of `device` (NULL: the only one). deadline_s:
 * of all that say none; 0: each must. Into a zeroed one. Errors, with path and line: those of
 * cd_csv_table_read and cd_json_parse; ERANGE, ESCHEMA, ENODATA (an estimate without an interval).
 * Free `f` after an error too. */
cdmpp_status cd_qos_read(const char *path, const char *device, double deadline_s, cd_qos_file *f,
                         cdmpp_err *err);
void cd_qos_free(cd_qos_file *f);
/* Arrivals out of CSV: at_s, query (the name of a kind); into f's arena. Errors, with path and
 * line: those of cd_csv_table_read; ERANGE (a time that falls), ESCHEMA (no such query), ENODATA
 * (no row), ENOMEM. */
cdmpp_status cd_qos_read_arrivals(const char *path, cd_qos_file *f,
                                  CD_KEEP const cd_qos_arrival **out, uint32_t *n, cdmpp_err *err);
/* Each kind's operator in the pairs, by its name. Errors: ENODATA (it is not there). */
cdmpp_status cd_qos_pairs(cd_qos_file *f, const cd_corun_table *t, cdmpp_err *err);

/* Mean time alone of a kind: of the distribution in (1). */
double cd_qos_mean(const cd_qos_kind *k, double level);
/* Its quantile p. */
double cd_qos_quantile(const cd_qos_kind *k, double level, double p);
/* Simulate all runs under one policy. Errors: ERANGE (an option), ENODATA (a pair is missing),
 * EINTERRUPTED, ENOMEM. */
cdmpp_status cd_qos_run(const cd_qos_kind *kind, uint32_t n, const cd_qos_options *o,
                        cd_qos_policy policy, cd_qos_result *out, cdmpp_err *err);

/* ---- for people and programs (qos.c): result (CD_QOS_N_POLICY) ---- */
void cd_qos_print(const cd_qos_file *f, const cd_qos_options *o, const cd_qos_result *result,
                  cd_buf *out);
/* an object */
void cd_qos_print_json(const cd_qos_file *f, const cd_qos_options *o, const cd_qos_result *result,
                       cd_buf *out);
#endif
