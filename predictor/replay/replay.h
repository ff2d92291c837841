/* replay -- a network on devices, simulated: what runs where, when, and how long it all takes.
 *
 *   op a ──> op b ──> op d          device 0  worker 0  | a |  b  |    | d |
 *     └────> op c ──────^                     worker 1      |  c     |
 *          (device 1)               link 0>1            |a|
 *
 *   (1) an operator runs once all that it comes after has ended and, where that was on another
 *       device, has been copied; of one result to one device there is one copy;
 *   (2) which of the ready operators a device takes is its policy's; it never waits while one is
 *       ready and a worker is free (CD_REPLAY_STREAM: the next in its order);
 *   (3) operators that run at the same time on a device share its memory: with shares s of their
 *       time spent on it and a sum S > 1 of those, each takes 1 - s + s S times as long;
 *   (4) longest chain <= makespan <= sum of all durations; twice the durations, twice the makespan,
 *       to the bit.
 * O((V + E) log V). Seconds, bytes. No state: any thread, with its own result. */
#ifndef CD_REPLAY_H
#define CD_REPLAY_H
#include <stdint.h>

#include "base/core/core.h"

typedef struct cd_replay_op {
    const char *name;
    uint32_t device;
    /* operators that are mispredicted together, a task; UINT32_MAX: on its own */
    uint32_t like;
    double seconds; /* >= 0, of all its runs */
    double runs;    /* one behind the other, each handed out by the host; 0: one */
    double spread;  /* standard deviation of ln(true / seconds); 0: known */
    /* part of its variance that all operators have in common, where that is more than the
     * caller's */
    double shared;
    double memory_share;     /* 0..1: of its time that the device's memory is busy */
    int64_t bytes;           /* of its result */
    uint32_t first, n_after; /* after[first .. first + n_after): what it comes after */
} cd_replay_op;

typedef enum cd_replay_policy {
    CD_REPLAY_CRITICAL, /* the one with the longest chain behind it */
    CD_REPLAY_ORDER,    /* the ready one of the lowest number */
    CD_REPLAY_STREAM    /* strictly by number: a queue of a GPU */
} cd_replay_policy;
#define CD_REPLAY_POLICIES "critical|order|stream"

typedef struct cd_replay_device {
    const char *name;
    uint32_t workers; /* operators at a time, >= 1 */
    cd_replay_policy policy;
    double gap_s; /* added to every operator */
    /* of the host, which hands out the device's operators by number, one after the other */
    double issue_s;
    int64_t memory; /* bytes; 0: no limit known */
} cd_replay_device;

typedef struct cd_replay_link {
    uint32_t from, to; /* devices; copies of one link one after the other */
    double latency_s, bytes_per_s;
} cd_replay_link;

typedef struct cd_replay_net {
    uint32_t n_op, n_after, n_device, n_link;
    const cd_replay_op *op;         /* (n_op) */
    const uint32_t *after;          /* (n_after) */
    const cd_replay_device *device; /* (n_device) */
    const cd_replay_link *link;     /* (n_link) */
} cd_replay_net;

typedef struct cd_replay_copy {
    uint32_t op, link; /* whose result */
    double ready_s, start_s, end_s;
} cd_replay_copy;

typedef struct cd_replay_ran {
    double ready_s, start_s, end_s;
    uint32_t worker;
    uint32_t since; /* what it waited for last: an operator; UINT32_MAX: nothing */
} cd_replay_ran;

typedef struct cd_replay {
    cd_arena arena;
    double makespan_s;
    double chain_s;    /* longest chain: with no wait for workers, links or memory */
    double sum_s;      /* of all durations and copies */
    cd_replay_ran *op; /* (n_op) */
    uint32_t n_copy;
    cd_replay_copy *copy; /* (n_copy) in the order of their start */
    double *busy_s;       /* (n_device) summed over workers */
    int64_t *peak;        /* (n_device) bytes of results alive at once */
    uint32_t n_path;
    /* (n_path) operators that decided the makespan, the first one first */
    uint32_t *path;
} cd_replay;

/* Errors: EINVALID (a cycle: names an operator of it; an edge to nowhere; no link between two
 * devices), ERANGE (a number that is none, negative, workers 0; all operators take more than 1e100
 * s or 2^63 bytes), ENOMEM. Free `out` after an error too. */
cdmpp_status cd_replay_run(const cd_replay_net *n, cd_replay *out, cdmpp_err *err);
void cd_replay_free(cd_replay *r); /* zeroed is fine */

/* Interval of the makespan: replays with durations drawn within their spreads, operators of one
 * `like` together; `shared` (0..1): part of the variance of each that all of them have in common.
 * low and high: the quantiles (1 -/+ level) / 2. The same seed gives the same interval. Errors: as
 * above, ERANGE (level, shared). */
typedef struct cd_replay_interval {
    double low_s, high_s, mean_s;
} cd_replay_interval;
/* Interval of the latency at `level` (0..1); `shared` (0..1): part of the variance that all
 * operators have in common. Errors: ERANGE, those of cd_replay_run. */
cdmpp_status cd_replay_sample(const cd_replay_net *n, double level, double shared, uint64_t seed,
                              cd_replay_interval *out, cdmpp_err *err);
#define CD_REPLAY_LEVEL  0.9 /* usual values of both */
#define CD_REPLAY_SHARED 0.3
/* The same; where no operator has a spread, the point `makespan_s`. */
cdmpp_status cd_replay_interval_of(const cd_replay_net *n, double makespan_s, double level,
                                   double shared, uint64_t seed, cd_replay_interval *out,
                                   cdmpp_err *err);
/* What all operators of a net have in common on top of it: `spread` (as cd_replay_op.spread) makes
 * the interval wider, and its low end is no less than `least_s`. An interval that is still a point
 * becomes NaN: times as they were given, and nobody says how far off they are. */
void cd_replay_interval_finish(double makespan_s, double spread, double least_s, double level,
                               cd_replay_interval *i);
/* Both ends move out by what `spread` adds to the variance of the logarithm. `middle`, *low and
 * *high: seconds; without all three above 0 nothing moves. */
void cd_replay_widen(double middle, double spread, double level, double *low, double *high);

/* replay_trace -- a replay as a trace for chrome://tracing and Perfetto (Trace Event Format, JSON).
 *
 *   process  device, or link      thread  worker      slice  operator, or copy
 *
 * Times are whole nanoseconds, each rounded by itself, so that what did not overlap does not in the
 * trace either. */

/* Errors: ENOMEM, ERANGE (longer than 2^62 ns). */
cdmpp_status cd_replay_trace(cd_buf *out, const cd_replay_net *n, const cd_replay *r,
                             cdmpp_err *err);

/* timeline_page -- parts of pages that draw replays of networks: style, script of the timeline
 * (web/), JSON within a page.
 *
 *   head, style | body | data as JSON | numbers, the page's own script, replay, lanes, the page's
 *   own script
 *
 *   (1) a page is one file that asks for nothing from outside;
 *   (2) data: {"cases": [{..., "lanes", "links", "copies", "ops": {"name", "start", "end", "lane",
 *       "worker", "type", "critical", "after"}, "types"}], ...}; times of operators are whole
 *       nanoseconds;
 *   (3) the page's own script has `now` (the case that is shown), about(k): a note on operator k as
 *       HTML, and calls prepare(c), fit().
 * No state, any thread. */

void cd_timeline_page_text(cd_buf *b, const char *s);             /* a JSON text; NULL: "" */
void cd_timeline_page_ns(cd_buf *b, double s);                    /* whole nanoseconds, or null */
void cd_timeline_page_real(cd_buf *b, const char *key, double v); /* ,"key":v */
/* ,"lanes":[..],"links":[..],"copies":[..] of a replay. */
void cd_timeline_page_queues(cd_buf *b, const cd_replay_net *n, const cd_replay *r);

typedef struct cd_timeline_page_parts {
    const char *title;
    const char *const *body, *const *script, *const *drawing; /* the page's own pieces; NULL ends */
    const cd_buf *data;
} cd_timeline_page_parts;
/* Errors: EIO, ENOMEM. */
cdmpp_status cd_timeline_page_write(const char *path, const cd_timeline_page_parts *p,
                                    cdmpp_err *err);
#endif
