/* The door of profiler/detect: other rooms include this header and no other of the room.
 *
 * Which operators does a back end run as one? Nothing but its times is asked (nn-Meter, Zhang et
 * al., MobiSys 2021).
 *
 *   operators ─ test networks ─> back end: seconds of each ─> fused, apart or undecided ─> rules
 *     (fusion_rules.h)
 *
 *   pair     first | second             x ─ Conv ─ Relu
 *   chain    before, first | second     x ─ Conv ─ BatchNormalization ─ Relu
 *   branch   first | readers            x ─ Conv ─┬─ Relu ─ Add
 *                                                 └──────────┘
 *
 *   (1) each test has three networks: what stands left of the cut, what stands right of it, and
 *       both. They are fused where T(left) + T(right) - T(both) > alpha min(T(left), T(right));
 *   (2) a repeat measures all three, one behind the other. A sign test over the repeats decides: no
 *       form of the noise is assumed. The repeats go on, to four times as many, until the
 *       confidence is reached; else the answer is "undecided";
 *   (3) chains are tested where `before` and `first` were found to be fused, branches where all
 *       pairs of the test network were;
 *   (4) a network that the back end cannot run leaves its test undecided, with the reason.
 * One thread. Seconds. */
#ifndef CD_DETECT_H
#define CD_DETECT_H
#include "profiler/runtime/single/single.h"

/* Operators that can be tested, with blanks between, and the usual ones. */
#define CD_DETECT_USUAL                                                                            \
    "Conv,DepthwiseConv,BatchNormalization,Relu,Clip,Sigmoid,Add,Mul,Concat,MaxPool,AveragePool"
#define CD_DETECT_USUAL_CHAINS "Conv+BatchNormalization+Relu,DepthwiseConv+BatchNormalization+Relu"
const char *cd_detect_operator_names(void);

enum { CD_DETECT_OPERATORS = 32, CD_DETECT_CHAINS = 64, CD_DETECT_CHAIN = 4 };

typedef struct cd_detect_network {
    uint32_t id;      /* 0, 1, ... */
    const char *name; /* "Conv+Relu 1x4x256x256" */
    cd_graph *graph;
} cd_detect_network;

typedef struct cd_detect_backend {
    void *ctx;
    /* The time of a run. Calls of another `repeat` are independent measurements. EINTERRUPTED and
     * ENOMEM end the detection. */
    cdmpp_status (*time)(void *ctx, const cd_detect_network *n, unsigned repeat, double *seconds,
                         cdmpp_err *err);
    /* How many programs does the back end make of the network? NULL: it does not tell. To compare
     * with, never used to decide. */
    cdmpp_status (*programs)(void *ctx, const cd_detect_network *n, uint32_t *out, cdmpp_err *err);
} cd_detect_backend;

struct cd_detect_test;
typedef struct cd_detect_options {
    const char *operators; /* names with commas between; NULL: CD_DETECT_USUAL */
    /* "Conv+Relu+Add,..."; NULL: those of CD_DETECT_USUAL_CHAINS whose operators are tested; "":
     * none */
    const char *chains;
    double alpha;     /* 0: 0.5 */
    double level;     /* confidence of an answer; 0: 0.99 */
    unsigned repeats; /* 0: 7 */
    /* of the image that operators read; 0: 4, 256. Matrices have as many elements, in rows of 16 */
    int64_t channels, size;
    const volatile sig_atomic_t *stop; /* NULL: never */
    /* after each test; NULL: nobody listens */
    void (*told)(void *ctx, const struct cd_detect_test *t);
    void *ctx;
} cd_detect_options;

typedef struct cd_detect_test {
    /* as a rule: before NULL: a pair; second CD_FUSION_RULES_MANY: a branch */
    const char *before, *first, *second;
    cd_fusion_answer answer;
    /* of the side on which more repeats lie, 0.5 .. 1; 0: nothing was measured */
    double confidence;
    /* (T(left) + T(right) - T(both)) / min: median, and the smallest and largest */
    double saving;
    double saving_low, saving_high;
    double left_s, right_s, both_s; /* medians */
    unsigned repeats;
    cd_fusion_answer known; /* what the back end says itself; UNKNOWN: it does not */
    cdmpp_err why;          /* code not OK: could not be measured */
} cd_detect_test;

typedef struct cd_detect {
    cd_arena arena;
    double alpha, level;
    uint32_t n, cap;
    cd_detect_test *test; /* (n) */
    uint32_t n_network, cap_network;
    cd_detect_network *network; /* (n_network) */
    uint32_t apart;             /* pairs without a shape that both operators take: not tested */
} cd_detect;

/* Errors: EUSAGE (an operator or chain that is not known; all are listed), EINTERRUPTED, ENOMEM. */
cdmpp_status cd_detect_run(const cd_detect_backend *b, const cd_detect_options *o,
                           CD_GIVE cd_detect **out, cdmpp_err *err);
void cd_detect_free(CD_TAKE cd_detect *d); /* NULL is fine */
/* Confidence of a sign test with k of n on one side, 0.5 .. 1: 1 - P(at least max(k, n - k) of n
 * heads). */
double cd_detect_confidence(unsigned k, unsigned n);

/* A rules file with the figures of each rule; a table. Errors: ENOMEM. */
cdmpp_status cd_detect_json(cd_buf *out, const cd_detect *d, const char *backend, cdmpp_err *err);
cdmpp_status cd_detect_text(cd_buf *out, const cd_detect *d, cdmpp_err *err);

/* ---- our executor: programs of random schedules, the best of `trials` for each task, those with
 * the least analytic time of `pool`; another repeat draws others ---- */
typedef struct cd_detect_executor cd_detect_executor;
typedef struct cd_detect_executor_options {
    CD_KEEP cd_measure *measure;
    const char *target; /* llvm ... or opencl ... */
    const char *device; /* of OpenCL; NULL: the first */
    cd_hardware hardware;
    int threads;                        /* of a program */
    uint32_t trials;                    /* 0: 8 */
    uint32_t pool;                      /* with `described`, as of cd_program_select_options */
    CD_KEEP const cd_device *described; /* this processor; NULL: no pool */
    uint64_t seed;
    double budget_s; /* of the passes of a network; 0: 0.1 */
    /* it fuses what these say, and what they do not know stays apart; NULL: TVM's rules */
    const cd_fusion_rules *planted;
    const volatile sig_atomic_t *stop;
} cd_detect_executor_options;
/* A back end on *o, which is borrowed. Errors: ENOMEM. */
cdmpp_status cd_detect_executor_open(const cd_detect_executor_options *o,
                                     CD_GIVE cd_detect_executor **x, cd_detect_backend *out,
                                     cdmpp_err *err);
void cd_detect_executor_close(CD_TAKE cd_detect_executor *x); /* NULL is fine */

/* ---- any other runtime: a shell command with an ONNX file as $1 prints the seconds of a run as
 * its last line. Files are made in $TMPDIR and removed. ---- */
typedef struct cd_detect_command {
    const char *command;
    double limit_s; /* of a call */
    const volatile sig_atomic_t *stop;
} cd_detect_command;
cd_detect_backend cd_detect_command_backend(CD_KEEP cd_detect_command *c);
#endif
