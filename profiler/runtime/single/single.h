/* The door of profiler/runtime/single: other rooms include this header and no other of the room.
 * The room runs a network of compiled programs on one device: it selects a program for each task
 * (program_select.h), runs all of them in one block of memory (executor.h), measures the network
 * operator by operator (op_profile.h), and writes curves of time over size (op_curve.h). Its
 * callers are the commands of profiler, and partition. */
#ifndef CD_PROFILER_RUNTIME_SINGLE_DOOR_H
#define CD_PROFILER_RUNTIME_SINGLE_DOOR_H
#include "features/device/device.h"
#include "profiler/network/workload/workload.h"
#include "profiler/records/records.h"

/* A network of compiled C programs, run on this processor.
 *
 *   tensor 0 (input) ─┐
 *   tensor 1 (weight) ┴ step 0: program ── tensor 2 ── step 1: program ── tensor 3 (result)
 *
 * One block of memory holds all tensors and the programs' scratch (executor_memory.h);
 * weights that a program wants packed (cd_codegen_pack) have a copy in its order.
 *   (1) steps run one after the other, in their order; of several workers each takes what is ready
 *       (executor_pool.h), and the results are the same, bit by bit. Tensors of steps that may run
 *       together share no byte (executor_deps.h). With a plan (cd_executor_plan) programs run in
 *       pieces, on the units that it says, with the same results;
 *   (2) inputs and weights begin as cd_tensor_fill says, until written;
 *   (3) the programs run in the caller's process: measure them apart first
 *       (measure.h), or call this from a child.
 * One thread at a time; OpenMP inside, see backend_cpu.h. */

typedef enum cd_executor_net_role {
    CD_TENSOR_INNER,
    CD_TENSOR_INPUT,
    CD_TENSOR_WEIGHT,
    CD_TENSOR_RESULT
} cd_executor_net_role;

typedef struct cd_executor_net_tensor {
    int64_t bytes;
    cd_dtype dtype;
    cd_executor_net_role role;
    uint32_t rank;
    const int64_t *shape; /* (rank) of weights */
} cd_executor_net_tensor;

typedef struct cd_executor_net_shape {
    uint32_t rank;
    const int64_t *shape; /* (rank) */
} cd_executor_net_shape;

typedef struct cd_executor_net_step {
    const char *name;
    const cd_build *build;  /* its object is loaded at open */
    const uint32_t *tensor; /* (build->code->n_arg) what its parameters are */
    /* (build->code->n_arg) how the program sees them: a view has another shape than its tensor.
     * NULL: as they are. Asked for where a weight is packed */
    const cd_executor_net_shape *shape;
} cd_executor_net_step;

typedef struct cd_executor_net {
    uint32_t n_tensor, n_step;
    const cd_executor_net_tensor *tensor; /* (n_tensor) */
    const cd_executor_net_step *step;     /* (n_step) */
} cd_executor_net;

typedef struct cd_executor cd_executor;

/* Which unit, a thread on a processor of its own, runs which piece of which step: fixed before the
 * pass.
 *
 *   unit 0   step 0 part 0 [0,4)   step 1 whole   step 3 part 0 [0,2) ...
 *   unit 1   step 0 part 0 [4,8)   step 2 whole ...
 *
 *   (1) a unit runs its calls in their order. A call waits for the parts before it of its step, and
 *       if there are none for all steps that its step needs; only where another unit has a piece of
 *       them;
 *   (2) who waits polls for 0.2 ms, then sleeps, and sleeps at once where somebody else had its
 *       processor meanwhile (cd_counter). */
#define CD_EXECUTOR_WHOLE UINT32_MAX
typedef struct cd_executor_call {
    /* part of the step's program (codegen/code.h, 5), or CD_EXECUTOR_WHOLE: all of it, and then
     * begin is 0, end 1 */
    uint32_t step, part;
    uint32_t begin, end; /* iterations */
} cd_executor_call;
typedef struct cd_executor_plan {
    uint32_t n_unit;       /* >= 1 */
    const uint32_t *first; /* (n_unit + 1) unit u has call[first[u] .. first[u+1]) */
    const cd_executor_call *call;
} cd_executor_plan;

typedef struct cd_executor_options {
    /* of OpenMP, of each program; 0: as many as processors are allowed, by workers */
    int threads;
    uint32_t workers; /* steps at a time; 0: 1 */
    /* (n_step) of each step, about: of those ready the one with the longest chain behind it goes
     * first; NULL: the first in the list */
    const double *seconds;
    /* seconds of the calling thread's processor time, for a machine that others use too; one
     * worker, one thread */
    bool cpu_time;
    /* NULL: none. Its units are the workers, with one thread each; `seconds` is not read then. Not
     * kept */
    const cd_executor_plan *plan;
} cd_executor_options;
/* Everything that is allocated is allocated here. Errors: EINVALID (a tensor smaller than a
 * program's parameter, or read before it is made; a plan that leaves out or repeats an iteration,
 * or in which units wait for each other), EBACKEND (an object that cannot be loaded), EIO (no
 * thread), ERANGE, ENOMEM. */
cdmpp_status cd_executor_open(CD_KEEP const cd_executor_net *n, const cd_executor_options *o,
                              CD_GIVE cd_executor **out, cdmpp_err *err);
void cd_executor_close(CD_TAKE cd_executor *r); /* NULL is fine */

typedef struct cd_executor_ran {
    double start_s, end_s; /* from the beginning of the pass */
    uint32_t worker;
} cd_executor_ran;
/* One pass. ran (n_step) or NULL: when each step ran; of a step in pieces from the first to the
 * last, worker: who ended it. */
void cd_executor_pass(cd_executor *r, cd_executor_ran *ran, double *total_s);
/* One step alone, `times` times in a row, on whatever its tensors hold. *seconds: of all of them
 * together. */
void cd_executor_step(cd_executor *r, uint32_t step, unsigned times, double *seconds);
/* Writes or reads the whole content of an input, weight or result; weights are packed again where
 * programs want that. Errors: ERANGE (another tensor). */
cdmpp_status cd_executor_write(cd_executor *r, uint32_t tensor, const void *from, cdmpp_err *err);
cdmpp_status cd_executor_read(const cd_executor *r, uint32_t tensor, void *to, cdmpp_err *err);

typedef struct cd_executor_bytes_used {
    int64_t all;         /* bytes of the block */
    int64_t weights;     /* of them: weights and their packed copies */
    int64_t inner_least; /* the most of inner tensors and scratch that live at once */
} cd_executor_bytes_used;
/* What the network needs, known since open. */
cd_executor_bytes_used cd_executor_bytes(const cd_executor *r);

typedef struct cd_executor_step_bytes {
    /* inner tensors that are made before the step or by it and read by it or later, and its
     * scratch */
    int64_t live;
    int64_t scratch; /* of them: what the program alone uses, and is free after it */
} cd_executor_step_bytes;
/* What lives while a step runs, where steps run one after the other in their order. The most of
 * `live` is inner_least. */
cd_executor_step_bytes cd_executor_bytes_of(const cd_executor *r, uint32_t step);

/* Of an executor with a plan: calls of a pass, and those of them that wait for another unit. 0
 * without a plan. */
void cd_executor_plan_counts(const cd_executor *r, uint32_t *calls, uint32_t *waits);

/* A program for each task of a network: the best of those that are known from logs or tried here.
 *
 *   logs  ──> best record of a task ─┐
 *   none: `trials` random schedules ─┴> compiled, measured ──> the fastest of each task
 *         (or of `pool` random ones those with the least analytic time)
 *
 *   (1) schedules of logs are compiled and measured here like all others: a time
 *       from elsewhere only chooses among records;
 *   (2) a program that fails only counts as failed; a task of which all programs
 *       fail has the last one's error;
 *   (3) the same seed tries the same programs;
 *   (4) a parameter that a schedule wants packed, and that in the network is no weight (a product
 *       of two activations), stays row-major: the record's layout option is 0 then.
 * One thread. */

typedef struct cd_program_select_options {
    const char *const *log; /* (n_log) files or folders of records */
    size_t n_log;
    const char *const *line; /* (n_line) records, one for a task: they win over logs */
    size_t n_line;
    /* also build each task without a schedule, and compare what programs compute with it */
    bool reference;
    uint32_t trials; /* of a task without a record; 0: 4 */
    /* above `trials`: of so many random schedules the `trials` with the least analytic time are
     * tried */
    uint32_t pool;
    /* for the analytic time, with the vectors of the code; NULL: no pool */
    CD_KEEP const cd_device *device;
    uint64_t seed;
    const char *target;
    cd_hardware hardware;
    int threads; /* of a program; 0: the measurer's */
    CD_KEEP cd_measure *measure;
    /* names this machine in records of targets without -model=; NULL: they stay without */
    CD_KEEP struct cd_describe_namer *namer;
    /* of cd_clock_wall: no program is built or run later, and few are built together; 0:
     * whenever */
    double until_s;
    const volatile sig_atomic_t *stop;
} cd_program_select_options;

typedef struct cd_program_select_task {
    cd_record_program job; /* the chosen one; only where status is OK */
    cd_measure_item item;  /* with its object and times */
    uint32_t tried, failed;
    double analytic_s; /* the least of the pool; NaN: none */
    bool from_log;
    bool unpacked; /* (4) */
    cdmpp_status status;
    cdmpp_err err;
} cd_program_select_task;

typedef struct cd_program_select {
    uint32_t n;                   /* as the workload's tasks */
    cd_program_select_task *task; /* (n) */
    size_t bad_lines;             /* of logs */
} cd_program_select;

/* Errors: EIO (a log that cannot be read), EINTERRUPTED, EBACKEND (until_s), those of
 * cd_measure_build, ENOMEM. */
cdmpp_status cd_program_select_run(const cd_workload *w, const cd_program_select_options *o,
                                   CD_GIVE cd_program_select **out, cdmpp_err *err);
void cd_program_select_free(CD_TAKE cd_program_select *p); /* NULL is fine */
/* What is known without building or running anything: analytic_s (w->n_task) of each task, the
 * least of the pool, NaN for none. Logs and lines are not read. Errors: EINTERRUPTED, ENOMEM,
 * ESCHEMA (the device). */
cdmpp_status cd_program_select_estimate(const cd_workload *w, const cd_program_select_options *o,
                                        double *analytic_s, cdmpp_err *err);

/* Time of an operator against its size: one network at several sizes becomes a table of curves.
 *
 *   size 1: group 0 1 2 ...  │  size 4: group 0 1 2 ...      (the same groups, other shapes)
 *           └──────── one line for each group: shapes with -1 where they follow the size, points
 *           n:ms
 *
 *   (1) the table is TSV with the columns that store_import.c imports as "curves": set (the
 *       network), host, operator, device_id (-1: a processor), varied ((number of dimensions of
 *       each operand), (first operand and dimension that vary)), shape (of the operands), points;
 *       behind them noise, the largest deviation of the repeats of a point over their mean;
 *   (2) n is what stands in place of -1: all dimensions that vary are equal at every size, though
 *       not always equal to the size (a matrix has batch times length rows);
 *   (3) groups that are the same tasks at all sizes are one line; one whose dimensions vary in
 *       different ways, do not vary, or that has a time at fewer than two sizes is left out and
 *       counted.
 * One thread. */

typedef struct cd_op_curve_size {
    const cd_workload *workload;
    const cd_program_select *pick;
} cd_op_curve_size;

typedef struct cd_op_curve_tally {
    /* groups: lines; no dimension varies; they vary apart; too few times */
    size_t written, fixed, apart, short_of_points;
} cd_op_curve_tally;

/* The table of n sizes. Errors: EINVALID (networks of different groups), ENOMEM. */
cdmpp_status cd_op_curve_write(cd_buf *b, const char *host, const cd_op_curve_size *size, size_t n,
                               cd_op_curve_tally *tally, cdmpp_err *err);

/* A network measured group by group: alone, in place, and as a whole.
 *
 *   workload + chosen programs (program_select.h) ──> net (executor.h) ── in a child ──> passes
 *
 *   group   operators        alone     in place   share   of the whole
 *   0       Conv+Relu        1.20 ms   1.31 ms    12 %    key
 *
 *   alone     the program by itself, its data warm (measure.h)
 *   in place  between its neighbours in passes of the whole network: median
 *   warm      alone on the network's own memory, run after run: what it used last is in the core's
 *             caches
 *   cool      the same, but the core's own caches are emptied before each run: its data are in the
 *             shared one
 *   share     of the sum of all groups in place
 *   key       shares of at least `key_share`, or the largest ones that together
 *             cover `cover` of the time
 *
 *   (1) groups without a program (unsupported, or nothing compiled) are left out of
 *       passes; what they would make holds the content of cd_tensor_fill;
 *   (2) the pass is warm: passes run one behind the other, what one left in the caches the next one
 *       finds;
 *   (3) programs in OpenCL C run on their device, all buffers there, in one queue: places are by
 *       its events, the pass by the host's clock from the first call to the end of the queue; no
 *       workers, and nothing alone;
 *   (4) passes run in a process of their own: a crash is an error, not the end.
 * Times in seconds, sizes in bytes. One thread. */

typedef struct cd_op_profile_options {
    int threads;     /* 0: all processors */
    double budget_s; /* of passes; 0: 2 */
    /* exactly so many, to compare with another clock; 0: until the interval is narrow */
    unsigned passes;
    double limit_s;     /* when the child is killed; 0: 120 */
    const char *device; /* of programs in OpenCL C: opencl_device.h; NULL: the first */
    uint32_t workers;   /* groups at a time; 0: 1 */
    /* workers take the group with the longest chain behind it, by times alone; else the first */
    bool by_chain;
    bool pin; /* on the last workers x threads processors */
    /* place_s: the core's own caches are emptied before each pass: a small network finds its
     * weights like a part of a large one; CPU */
    bool cool;
    bool alone;    /* warm_s, cool_s and cold_s too */
    bool cpu_time; /* as in executor.h */
    /* results against the reference's (program_select.h: reference): max_error */
    bool check;
    double key_share, cover; /* fractions; 0: 0.01 and none */
} cd_op_profile_options;

typedef struct cd_op_profile_group {
    bool ran, key;
    double alone_s, place_s, share;
    double warm_s, cool_s; /* NaN: not measured */
    double start_s, end_s; /* in the pass of the median time */
    uint32_t worker;
    double flop;
    int64_t read, written; /* bytes of arguments; weights among what is read */
    /* while it runs: in the block of this processor, or in the device's memory */
    cd_executor_step_bytes bytes;
} cd_op_profile_group;

typedef struct cd_op_profile {
    uint32_t n;                 /* as the workload's groups */
    cd_op_profile_group *group; /* (n) */
    uint32_t n_ran;
    cd_timing pass; /* of the whole network, no clock between steps */
    /* a pass after all caches were emptied: median; NaN: not measured */
    double cold_s;
    double clocked_s; /* a pass with the clock between steps: median */
    /* of the results, by each result's largest value; NaN: not compared */
    double max_error;
    double wall_s; /* of the timed passes together, by the child's clock */
    unsigned passes;
    cd_executor_bytes_used memory;
    int64_t rss_peak; /* of the child, bytes */
} cd_op_profile;

/* Errors: EBACKEND (no group has a program, or the child died), EINTERRUPTED, EIO, those of
 * cd_executor_open; with check also EUSAGE (no reference), ENUMERIC (a result that is no
 * number). */
cdmpp_status cd_op_profile_run(const cd_workload *w, const cd_program_select *p,
                               const cd_op_profile_options *o, CD_GIVE cd_op_profile **out,
                               cdmpp_err *err);
void cd_op_profile_free(CD_TAKE cd_op_profile *n); /* NULL is fine */

/* "Conv+Relu": the graph's operators of a group, runs of equal ones once. */
void cd_op_profile_operators(cd_buf *b, const cd_workload *w, const cd_workload_group *g,
                             char between);
/* Reports; `key_only` leaves the others out. Errors: ENOMEM. */
cdmpp_status cd_op_profile_text(cd_buf *b, const cd_workload *w, const cd_program_select *p,
                                const cd_op_profile *n, bool key_only, cdmpp_err *err);
cdmpp_status cd_op_profile_json(cd_buf *b, const cd_workload *w, const cd_program_select *p,
                                const cd_op_profile *n, cdmpp_err *err);
/* One row a group; `eop`: in the layout of EOP's files, by operator type
 * ("op_name,op_time,op_proportion", time in ns, percent). */
cdmpp_status cd_op_profile_csv(cd_buf *b, const cd_workload *w, const cd_program_select *p,
                               const cd_op_profile *n, bool eop, cdmpp_err *err);

/* A network run in several ways, measured in turns: some passes of one way, then of the next, so
 * that a disturbance hits all alike.
 *
 *   (1) all groups of the workload but those that work on weights once must have a program; they
 *       are the steps, in their order;
 *   (2) a turn begins with a pause, in which threads of the way before go to sleep, and a pass that
 *       is not counted;
 *   (3) results of all ways are compared with those of the first, to the bit, on the same content.
 * Programs run in this process, on its last processors: as many as the ways need. One thread.
 * Seconds. */

typedef struct cd_executor_way {
    /* of OpenMP, of each program, one step behind the other; not read where there is a plan */
    int threads;
    const cd_executor_plan *plan; /* NULL: none */
} cd_executor_way;

typedef struct cd_executor_way_time {
    double median_s;      /* over turns, of the median pass of each */
    double low_s, high_s; /* quartiles of the turns */
    /* the fastest pass of all: nearest to what a machine without other load would show */
    double best_s;
    uint32_t turns;
    /* of a plan: cd_executor_plan_counts; else calls: programs, and waits: parallel loops, behind
     * each of which all threads wait */
    uint32_t calls, waits;
    uint32_t differ; /* results with other bits than the first way's */
} cd_executor_way_time;

/* out (n). At least 9 turns, then until budget_s (0: 2) is over. Errors: EBACKEND (a group without
 * a program: which, and why), EINTERRUPTED (*stop), those of cd_executor_open. */
cdmpp_status cd_executor_compare(const cd_workload *w, const cd_program_select *p,
                                 const cd_executor_way *way, uint32_t n, double budget_s,
                                 const volatile sig_atomic_t *stop, cd_executor_way_time *out,
                                 cdmpp_err *err);
#endif
