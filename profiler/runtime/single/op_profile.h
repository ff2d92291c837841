/* A network measured group by group: alone, in place, and as a whole.
 *
 *   workload + chosen programs (program_select.h) ──> net (executor.h) ── in a child ──> passes
 *
 *   group   operators        alone     in place   share   of the whole
 *   0       Conv+Relu        1.20 ms   1.31 ms    12 %    key
 *
 *   alone     the program by itself, its data warm (measure.h)
 *   in place  between its neighbours in passes of the whole network: median
 *   warm      alone on the network's own memory, run after run: what it used last is in the core's caches
 *   cool      the same, but the core's own caches are emptied before each run: its data are in the shared one
 *   share     of the sum of all groups in place
 *   key       shares of at least `key_share`, or the largest ones that together
 *             cover `cover` of the time
 *
 *   (1) groups without a program (unsupported, or nothing compiled) are left out of
 *       passes; what they would make holds the content of cd_tensor_fill;
 *   (2) the pass is warm: passes run one behind the other, what one left in the caches the next one finds;
 *   (3) programs in OpenCL C run on their device, all buffers there, in one queue: places are by its events, the pass
 *       by the host's clock from the first call to the end of the queue; no workers, and nothing alone;
 *   (4) passes run in a process of their own: a crash is an error, not the end.
 * Times in seconds, sizes in bytes. One thread. */
#ifndef CD_OP_PROFILE_H
#define CD_OP_PROFILE_H
#include "profiler/runtime/single/program_select.h"
#include "profiler/runtime/single/executor.h"

typedef struct cd_op_profile_options {
    int threads;                /* 0: all processors */
    double budget_s;            /* of passes; 0: 2 */
    unsigned passes;            /* exactly so many, to compare with another clock; 0: until the interval is narrow */
    double limit_s;             /* when the child is killed; 0: 120 */
    const char *device;         /* of programs in OpenCL C: opencl_device.h; NULL: the first */
    uint32_t workers;           /* groups at a time; 0: 1 */
    bool by_chain;              /* workers take the group with the longest chain behind it, by times alone; else the first */
    bool pin;                   /* on the last workers x threads processors */
    bool alone;                 /* warm_s, cool_s and cold_s too */
    bool cpu_time;              /* as in executor.h */
    bool check;                 /* results against the reference's (program_select.h: reference): max_error */
    double key_share, cover;    /* fractions; 0: 0.01 and none */
} cd_op_profile_options;

typedef struct cd_op_profile_group {
    bool ran, key;
    double alone_s, place_s, share;
    double warm_s, cool_s;      /* NaN: not measured */
    double start_s, end_s;      /* in the pass of the median time */
    uint32_t worker;
    double flop;
    int64_t read, written;      /* bytes of arguments; weights among what is read */
} cd_op_profile_group;

typedef struct cd_op_profile {
    uint32_t n;                 /* as the workload's groups */
    cd_op_profile_group *group;     /* (n) */
    uint32_t n_ran;
    cd_timing pass;             /* of the whole network, no clock between steps */
    double cold_s;              /* a pass after all caches were emptied: median; NaN: not measured */
    double clocked_s;           /* a pass with the clock between steps: median */
    double max_error;           /* of the results, by each result's largest value; NaN: not compared */
    double wall_s;              /* of the timed passes together, by the child's clock */
    unsigned passes;
    cd_executor_bytes_used memory;
    int64_t rss_peak;           /* of the child, bytes */
} cd_op_profile;

/* Errors: EBACKEND (no group has a program, or the child died), EINTERRUPTED, EIO, those of cd_executor_open; with check also EUSAGE (no
 * reference), ENUMERIC (a result that is no number). */
cdmpp_status cd_op_profile_run(const cd_workload *w, const cd_program_select *p, const cd_op_profile_options *o, CD_GIVE cd_op_profile **out, cdmpp_err *err);
void cd_op_profile_free(CD_TAKE cd_op_profile *n); /* NULL is fine */

/* "Conv+Relu": the graph's operators of a group, runs of equal ones once. */
void cd_op_profile_operators(cd_buf *b, const cd_workload *w, const cd_workload_group *g, char between);
/* Reports; `key_only` leaves the others out. Errors: ENOMEM. */
cdmpp_status cd_op_profile_text(cd_buf *b, const cd_workload *w, const cd_program_select *p, const cd_op_profile *n, bool key_only, cdmpp_err *err);
cdmpp_status cd_op_profile_json(cd_buf *b, const cd_workload *w, const cd_program_select *p, const cd_op_profile *n, cdmpp_err *err);
/* One row a group; `eop`: in the layout of EOP's files, by operator type ("op_name,op_time,op_proportion", time in ns, percent). */
cdmpp_status cd_op_profile_csv(cd_buf *b, const cd_workload *w, const cd_program_select *p, const cd_op_profile *n, bool eop, cdmpp_err *err);
#endif
