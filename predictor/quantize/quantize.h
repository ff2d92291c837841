/* The door of predictor/quantize: other rooms include this header and no other of the room.
 *
 * A network in 8 bits against the same network in float: what the values lose and what the time
 * gains, on this machine.
 *
 *   network ─ float, tensors observed ─ passes over N inputs ─> ranges ─> in 8 bits, "calibrated"
 *           ─ as its file quantises it ─────────────────────────────────> in 8 bits, "file"
 *           ─ float ────────────────────────────────────────────────────> in float
 *
 * The programs of all three get the same other inputs, and their results are compared; their
 * passes are run in turns, and the times are compared.
 *
 *   (1) ranges are the least and greatest value of each tensor over the calibration inputs: nothing
 *       of them is cut off;
 *   (2) the inputs that are compared are none of the calibration's. Real ones are normal numbers,
 *       whole ones 0 or 1;
 *   (3) weights are those of the file, as far as it has them; else numbers by name
 *       (network_values.h);
 *   (4) sums of products get the first program of templates (predictor/tune/template), in float as
 *       in 8 bits; the rest sampled ones. One thread.
 * How numbers are rounded: profiler/network/fusion/fuse_quantize.h. One thread. Seconds. */
#ifndef CD_PREDICTOR_QUANTIZE_DOOR_H
#define CD_PREDICTOR_QUANTIZE_DOOR_H
#include "predictor/partition/run/run.h"
#include "profiler/network/source/source.h"

enum { CD_QUANTIZE_CALIBRATE = 16, CD_QUANTIZE_INPUTS = 100, CD_QUANTIZE_TRIALS = 4 };
#define CD_QUANTIZE_TYPES "int8"

typedef struct cd_quantize_options {
    cd_network_source network;
    const char *layout;         /* CD_WORKLOAD_LAYOUTS; NULL: auto */
    const char *target;         /* NULL: "llvm" */
    uint32_t calibrate, inputs; /* 0: the numbers above */
    uint32_t trials;            /* schedules of a task that has no template; 0: the number above */
    uint64_t seed;
    int jobs;           /* compilers at a time */
    bool run;           /* times, too */
    bool cpu_time;      /* processor time in place of the clock's */
    double budget_s;    /* of times; 0: 4 */
    struct cd_log *log; /* what was guessed as the network was read; NULL: not said */
    const volatile sig_atomic_t *stop;
} cd_quantize_options;

/* One way to make the network's numbers 8 bits long. */
typedef struct cd_quantize_form {
    const char *name;               /* "calibrated", "file" */
    uint32_t n_layer, n_int8;       /* convolutions and products; of them in 8 bits */
    double flop, flop_int8;         /* of these */
    const cd_quantize_layer *layer; /* (n_layer) of the graph below */
    uint32_t agree;                 /* of the rows: where the maximum is */
    /* the same after float's mean over the inputs is taken from each element: what an input
     * changes */
    uint32_t agree_centred;
    /* root of the sum of squared differences over that of squared values */
    double error_rms;
    double error_most; /* the largest difference over the largest value */
    double pass_s;     /* median; NaN: not run */
    double ratio;      /* median over turns of float's time over its own; NaN */
    double low, high;  /* quartiles of these */
} cd_quantize_form;

typedef struct cd_quantize_result {
    cd_arena arena;
    cd_graph *graph;
    uint32_t inputs, calibrate, observed, n_form, turns;
    /* last dimensions of the first result, of all inputs; different places of their maximum in
     * float */
    uint32_t rows, classes;
    uint32_t classes_centred;
    double float_s;           /* NaN: not run */
    double left;              /* what others leave of the processor; NaN: not asked */
    cd_quantize_form form[2]; /* (n_form) */
} cd_quantize_result;

/* Errors: EUNSUPPORTED (operators without a program; a first result that is not float32; no layer
 * that can be in 8 bits, with the reason of each kind), those of cd_network_source_read and
 * cd_network_live_open, ENUMERIC (a value that is no number), EINTERRUPTED, ENOMEM. */
cdmpp_status cd_quantize_compare(const cd_quantize_options *o, CD_GIVE cd_quantize_result **out,
                                 cdmpp_err *err);
void cd_quantize_result_free(CD_TAKE cd_quantize_result *r); /* NULL is fine */

/* A row for each form, then what stays in float and why; the same as members of a JSON object. Out
 * of memory: b->oom. */
void cd_quantize_text(cd_buf *b, const cd_quantize_result *r);
void cd_quantize_json(cd_buf *b, const cd_quantize_result *r);
#endif
