/* The door of predictor/dynamic: other rooms include this header and no other of the room.
 *
 * A network whose size is known when it is called, as TVM's virtual machine runs one: programs of
 * several sizes wait, and a call takes the nearest size that holds it.
 *
 *   open     points 1 4 16 64 ── each a network: programs from logs or samples, compiled,
 *            weights written
 *   call 9   ── choose: 16 ── inputs into the corner of larger ones, zeros behind
 *            ── a pass ── the corner of the results
 *   measure  asked sizes: the call, in turns with programs of just that size
 *
 *   (1) every dimension of an input or result is a + b x size; else, and where (2) fails, only
 *       sizes that are points are served;
 *   (2) padding is tried when the network is opened: the data of each point go through the programs
 *       of the next one, and the results must be the same up to CD_DYNAMIC_SAME of the largest
 *       value. A mean over padded rows is found in this way;
 *   (3) every point has memory of its own, weights too; a call allocates nothing and compiles
 *       nothing;
 *   (4) weights are those of the file, as far as it has them; else numbers by name
 *       (network_values.h);
 *   (5) programs run in this process, one after the other.
 * One thread. Seconds, bytes. */
#ifndef CD_PREDICTOR_DYNAMIC_DOOR_H
#define CD_PREDICTOR_DYNAMIC_DOOR_H
#include "predictor/partition/run/run.h"
#include "profiler/network/source/source.h"

#define CD_DYNAMIC_SAME 1e-4
enum { CD_DYNAMIC_TRIALS = 4, CD_DYNAMIC_MOST_ASKED = 64 };

typedef struct cd_dynamic_options {
    cd_network_source network;     /* with the text of the range */
    const cd_network_sizes *sizes; /* the points: over is not NULL */
    const char *layout;            /* CD_WORKLOAD_LAYOUTS; NULL: auto */
    const char *target;            /* NULL: "llvm" */
    const char *const *log;        /* (n_log) files or folders of records */
    size_t n_log;
    /* sampled schedules of a task without a record; 0: CD_DYNAMIC_TRIALS */
    uint32_t trials;
    uint64_t seed;
    int jobs;        /* compilers at a time */
    double budget_s; /* of the times of one asked size; 0: 1 */
    const volatile sig_atomic_t *stop;
} cd_dynamic_options;

typedef struct cd_dynamic cd_dynamic;
/* The options live as long as it. Errors: EUNSUPPORTED (operators without a program; a network
 * without data or results), those of cd_network_source_read and cd_network_live_open, EINTERRUPTED,
 * ENOMEM. */
cdmpp_status cd_dynamic_open(CD_KEEP const cd_dynamic_options *o, CD_GIVE cd_dynamic **out,
                             cdmpp_err *err);
void cd_dynamic_close(CD_TAKE cd_dynamic *d); /* NULL is fine */
size_t cd_dynamic_points(const cd_dynamic *d);
int64_t cd_dynamic_bytes(const cd_dynamic *d); /* of all points */
/* Why sizes between points are not served; NULL: they are. */
const char *cd_dynamic_only_points(const cd_dynamic *d);

/* The point that serves a size. Errors: ERANGE (outside of the points), EUNSUPPORTED (1, 2). */
cdmpp_status cd_dynamic_choose(const cd_dynamic *d, int64_t size, size_t *point, cdmpp_err *err);
/* Inputs and results in the graph's order: how many, and one at a size: a tensor's shape,
 * row-major; no elements where it is not known, of a size that cd_dynamic_choose refuses. */
uint32_t cd_dynamic_inputs(const cd_dynamic *d);
uint32_t cd_dynamic_results(const cd_dynamic *d);
void cd_dynamic_input_shape(const cd_dynamic *d, uint32_t k, int64_t size, cd_graph_shape *shape,
                            cd_dtype *dtype);
void cd_dynamic_result_shape(const cd_dynamic *d, uint32_t k, int64_t size, cd_graph_shape *shape,
                             cd_dtype *dtype);

typedef struct cd_dynamic_times {
    double choose_s, copy_s, pass_s;
} cd_dynamic_times;
/* input (inputs), result (results): whole contents at this size. t NULL: not asked. Errors: those
 * of cd_dynamic_choose. */
cdmpp_status cd_dynamic_call(cd_dynamic *d, int64_t size, const void *const *input,
                             void *const *result, cd_dynamic_times *t, cdmpp_err *err);

/* One asked size. */
typedef struct cd_dynamic_row {
    int64_t size, point;    /* point 0: none serves it, with the reason in err */
    cd_dynamic_times time;  /* medians */
    double call_s;          /* of the whole call */
    double exact_s;         /* of a call of programs of just this size */
    double loss, low, high; /* median over turns of call over exact, less 1; its quartiles */
    double difference;      /* of the results, of the largest value */
    cdmpp_status st;
    cdmpp_err err;
} cd_dynamic_row;
typedef struct cd_dynamic_result {
    size_t n;
    cd_dynamic_row row[CD_DYNAMIC_MOST_ASKED];
    double left; /* what others leave of the processor */
} cd_dynamic_result;
/* Networks of the asked sizes are made, and both are timed in turns. Errors: EUSAGE (too many
 * sizes), those of cd_dynamic_open. */
cdmpp_status cd_dynamic_measure(cd_dynamic *d, const int64_t *size, size_t n, cd_dynamic_result *r,
                                cdmpp_err *err);

/* A row for each asked size; the same as members of a JSON object. Out of memory: b->oom. */
void cd_dynamic_text(cd_buf *b, const cd_dynamic *d, const cd_dynamic_result *r);
void cd_dynamic_json(cd_buf *b, const cd_dynamic *d, const cd_dynamic_result *r);
#endif
