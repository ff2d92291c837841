/* The door of predictor/serving: from a language model's config.json and GPUs to TTFT, TPOT,
 * throughput and memory.
 *
 *   config.json ──> model ┐
 *   tp pp ep dp, types ───┴> operators of a step ──> seconds ──> scheduler simulated ──> TTFT, TPOT
 *                       └──> weights, cache, activations ──> does it fit, how many sequences
 *
 * Seconds of operators are measured, interpolated or predicted (learner/operators).
 *
 * One step of an engine computes `prompt` new tokens and one token of each of g sequences:
 *
 *   everything but attention once for all m = prompt + g tokens
 *   + attention of the prompts + attention of g sequences against their caches + the host's part
 *
 *   (1) sizes are of one GPU; m counts the tokens of one copy of the attention part (dp), experts
 *       see those of all copies;
 *   (2) nothing is answered by a silent default: a field that is missing, a number that does not
 *       divide, a type that the GPU has not, is an error that names it. Where Hugging Face has a
 *       default for a field, that one is taken and told (note);
 *   (3) what is unavoidable and not computed (seconds of the host in each step, limits of a
 *       scheduler) is in configs/serving.yaml, by stack, with its source.
 * docs/reference/serving.md. One owner, one thread; a sweep shares its configurations between
 * threads, each with a twin of the session. */
#ifndef CD_SERVING_H
#define CD_SERVING_H
#include <signal.h>

#include "base/io/io.h"
#include "learner/llm_op/llm_op.h"
#include "predictor/serving_config/serving_config.h"

/* ---- constants by stack: serving_stack.c ---- */
#define CD_SERVING_FILE    "serving.yaml"
#define CD_SERVING_PROMPTS "whole|chunked|apart"
typedef enum {
    CD_SERVING_WHOLE,   /* a step takes whole prompts beside the sequences that decode */
    CD_SERVING_CHUNKED, /* and also a part of a prompt */
    CD_SERVING_APART    /* prompts have steps of their own, before anything decodes */
} cd_serving_prompts;
#define CD_SERVING_CACHES "reserved|grown"
#define CD_SERVING_SHARES "all|left|static"
typedef enum {
    CD_SERVING_OF_ALL,   /* the share holds all of the engine */
    CD_SERVING_OF_LEFT,  /* the cache takes the share of what the others leave */
    CD_SERVING_OF_STATIC /* the share holds weights and the cache; the others must fit beside it */
} cd_serving_share;

typedef struct cd_serving_stack {
    /* of the library; whose tables stand for it, where it has none: both without a version */
    const char *name, *tables;
    const char *since; /* the first version that the entry is of, "0.14"; empty: any */
    /* the host prepares a step while the GPU computes: the longer of both counts */
    bool overlap;
    /* cd_serving_prompts; 0: cache is reserved for the whole sequence, 1: it grows, and the newest
     * sequence is put back when it is full */
    int prompts, cache;
    int64_t tokens, sequences; /* of a step at most */
    /* steps that are put together before a request that has just come may be in one */
    int64_t ahead;
    double memory_share;       /* of the card that the engine may fill */
    int share_of;              /* cd_serving_share */
    double reserve_gb;         /* context, graphs, buffers of collectives */
    double step_s, sequence_s; /* the host's part of a step; for each sequence of it */
    /* a step with prompts of no more tokens is a graph, too, but for its attention */
    int64_t graph_tokens;
    /* in which the host hands out a layer of a step with prompts that is no graph: the GPU waits
     * where it is faster */
    double layer_s;
    /* times that such a step takes over its operators alone: clocks fall under a lasting load */
    double lift;
    /* cd_llm_op_machine_power of the GPU that lift is of; 0: lift is the same everywhere */
    double lift_power;
    double request_s; /* once a request: before its prompt may run */
    double between_s; /* of a small kernel that is in no table, beside its bytes */
    /* where products are in fp8, attention and its cache are, too */
    bool fp8_attention;
    /* experts in MXFP4 take inputs in fp8 on GPUs with units for fp4 */
    bool mxfp4_inputs_fp8;
    /* what constants were fitted on: model_type, layers and width, GPU, type of products, "qwen3 64
     * 5120 h100 bfloat16"; words left out at the end: any */
    const char *fitted;
    /* standard deviation of ln(measured / predicted) of these runs */
    double spread_tpot, spread_ttft;
    /* the same of runs that a group was left out for; of other models. 0: not known */
    double spread_tpot_other, spread_ttft_other;
    const char *source;
} cd_serving_stack;

typedef struct cd_serving_stacks {
    cd_arena arena;
    cd_serving_stack *v;
    size_t n;
} cd_serving_stacks;

/* Errors: EPARSE ESCHEMA ERANGE (all of them in diag), ENOMEM; of load EIO. path NULL:
 * $CDMPP_SERVING, configs/ here, the installed file. */
cdmpp_status cd_serving_stacks_read(const char *path, const char *text, size_t n, cd_diag *diag,
                                    cd_serving_stacks *out, cdmpp_err *err);
cdmpp_status cd_serving_stacks_load(const char *path, cd_diag *diag, cd_serving_stacks *out,
                                    cdmpp_err *err);
void cd_serving_stacks_free(cd_serving_stacks *s);
/* Of "vllm-0.12.0" the entry with the last `since` that is no later; of "vllm" the last one.
 * Errors: ESCHEMA: a version that is no number; no such stack, names those that there are. */
cdmpp_status cd_serving_stack_find(const cd_serving_stacks *s, const char *stack,
                                   CD_KEEP const cd_serving_stack **out, cdmpp_err *err);
/* As tables have it: "vllm-v0.20.0" is "vllm-0.20.0". Errors: ENOMEM. */
cdmpp_status cd_serving_stack_name(cd_arena *a, const char *stack, CD_KEEP const char **out,
                                   cdmpp_err *err);

/* ---- how a model is laid out: serving_plan.c ---- */
typedef struct cd_serving_layout {
    double tp, pp, dp, moe_tp, moe_ep; /* moe_tp * moe_ep = tp * dp */
    /* a step with prompts of no more tokens is handed out as a graph */
    double graph;
    /* GPUs that the GPUs' own links join; between such nodes bytes a second of a GPU. node 0: all
     * are joined */
    double node, node_bytes_s;
    /* types of dense feed-forward products, of experts, of the prompts' attention, of the cache */
    cd_llm_op_type linear, expert, attention, kv;
    /* of the products around attention, of the shared expert, of the products around states */
    cd_llm_op_type project, shared, recurrent;
    /* of everything else: the vocabulary, the router, attention that decodes, what GPUs send each
     * other */
    cd_llm_op_type base;
} cd_serving_layout;

/* Fills moe_tp. Errors: ERANGE, key tp, pp, ep: what it does not divide. */
cdmpp_status cd_serving_layout_check(const cd_serving_model *m, cd_serving_layout *l,
                                     cdmpp_err *err);

typedef struct cd_serving_memory {
    /* bytes of one GPU; token: of the cache for one token of one sequence, with its part of the
     * sequence's states; limit: of all, with the cache */
    double weights, token, activations, reserve, limit;
    double tokens; /* that the cache has room for */
} cd_serving_memory;
/* step_tokens: that one step computes at most; length: of a sequence, the mean. Errors: EMODEL: the
 * GPU's memory is not described; ERANGE: weights and the rest leave no room for a sequence of
 * `longest` in each of the pp batches (the message has the numbers). */
cdmpp_status cd_serving_memory_of(const cd_serving_model *m, const cd_serving_layout *l,
                                  const cd_serving_stack *s, const cd_device *d, double step_tokens,
                                  double length, double longest, cd_serving_memory *out,
                                  cdmpp_err *err);

/* ---- operators of a step: serving_ops.c ---- */
/* What an operator depends on beside types and tp: tokens of the step, sequences that get a token,
 * also dp, ep and the tokens of all copies, also dp (those of tokens among them), also pp. */
enum {
    CD_SERVING_OF_TOKENS,
    CD_SERVING_OF_ROWS,
    CD_SERVING_OF_COPIES,
    CD_SERVING_OF_SHARED,
    CD_SERVING_OF_STAGES
};
typedef struct cd_serving_op {
    const char *name;
    cd_llm_op_record r;
    double count; /* runs in a step */
    /* above 0: what no table measures. A small kernel: its time is bytes over bandwidth and
     * stack.between_s */
    double bytes;
    bool link;        /* of these: bytes go to another GPU */
    double rate;      /* of link: bytes a second; 0: of the GPU's own link */
    double latency_s; /* of link, beside its bytes; 0: that of a hand-over */
    /* the part inside a node of a collective over several nodes: kernels that write to a peer's
     * memory do not reach the other nodes */
    bool nodes;
    int of; /* CD_SERVING_OF_* */
    /* operators of 1 run at the same time as those of 2: the longer sum counts; 0: alone */
    int beside;
} cd_serving_op;
enum { CD_SERVING_MAX_OP = 48 };
typedef struct cd_serving_ops {
    size_t n;
    cd_serving_op v[CD_SERVING_MAX_OP];
} cd_serving_ops;

/* Everything but attention for m tokens of one copy, of which `rows` need the next token; all: the
 * tokens of all copies, which the experts see. */
void cd_serving_ops_rest(const cd_serving_model *m, const cd_serving_layout *l, double tokens,
                         double rows, double all, bool decode, cd_serving_ops *out);
/* Of these the ones of layers with experts, among which are all of COPIES and SHARED. */
void cd_serving_ops_experts(const cd_serving_model *m, const cd_serving_layout *l, double tokens,
                            double all, bool decode, cd_serving_ops *out);
/* Attention of `batch` prompts of n new tokens and nothing before; of `batch` sequences with `past`
 * tokens in their caches. */
void cd_serving_ops_prompt(const cd_serving_model *m, const cd_serving_layout *l, double batch,
                           double n, cd_serving_ops *out);
void cd_serving_ops_decode(const cd_serving_model *m, const cd_serving_layout *l, double batch,
                           double past, cd_serving_ops *out);

/* ---- seconds of operators: serving_cost.c ---- */
typedef struct cd_serving_cost cd_serving_cost;

typedef struct cd_serving_time {
    /* seconds of one run; standard deviation of its logarithm, 0 where it is measured */
    double s, sigma;
    cd_llm_op_how how;
    bool known;    /* an interval is known, or it was measured */
    unsigned news; /* CD_LLM_OP_NEW_*: what the model's training did not have */
    /* 1 + the type that answered in the place of the operator's, which is new or was not measured;
     * 0: its own did */
    uint8_t alike;
    /* the GPU of the same chip that answered; lives with the model. NULL: none did */
    const char *twin;
    /* whose rows answered, or that was asked of the model; lives with the tables. NULL: none has a
     * name */
    const char *kernel;
} cd_serving_time;

/* What was measured, in order to ask it often: which libraries, kernels and sizes there are. */
typedef struct cd_serving_tables cd_serving_tables;
/* path NULL: nothing was measured. bad: told of lines and files that cannot be used, NULL: nobody.
 * Errors: those of cd_llm_op_table_add, ENOMEM. */
cdmpp_status cd_serving_tables_open(const char *path, const cd_device_table *devices,
                                    cd_op_bad_line *bad, void *ctx, CD_GIVE cd_serving_tables **out,
                                    cdmpp_err *err);
/* Lines and files that could not be used, with times that are not above 0 (nobody is told of these
 * one by one). */
size_t cd_serving_tables_bad(const cd_serving_tables *t);
/* cd_llm_op_table_say() of them. */
struct cd_log;
void cd_serving_tables_say(const cd_serving_tables *t, struct cd_log *log);
/* rows of the device */
bool cd_serving_tables_have(const cd_serving_tables *t, const cd_device *d);
void cd_serving_tables_free(CD_TAKE cd_serving_tables *t); /* NULL is fine */

/* Kernels that a server is told to take: of a kind those with the word in their names, whatever
 * their case. Without a word the library chooses. */
typedef struct cd_serving_kernels {
    cd_str word[CD_LLM_OP_N_KIND];
} cd_serving_kernels;
/* A kernel that was named: of each type its number in the tables' names. 0: operators of this type
 * are the library's own. */
typedef struct cd_serving_kernel {
    uint32_t of[CD_LLM_OP_N_TYPE];
} cd_serving_kernel;
/* "moe=marlin,attention_prefill=flashinfer"; "": none. Words live in the text. Errors: ESCHEMA. */
cdmpp_status cd_serving_kernels_read(const char *text, cd_serving_kernels *out, cdmpp_err *err);

/* All outlive it. stack: "vllm-0.24.0", or "vllm" for the version with the most rows. kernels: as
 * cd_serving_kernels_read has them. Errors: ESCHEMA, key kernels: none has the name; ENOMEM; those
 * of cd_serving_kernels_read. */
cdmpp_status cd_serving_cost_new(const cd_llm_op_model *m, cd_serving_tables *t, const cd_device *d,
                                 const char *stack, const char *kernels, double between_s,
                                 CD_GIVE cd_serving_cost **out, cdmpp_err *err);
/* The same for another thread, with a memory of its own; c outlives it. Errors: ENOMEM. */
cdmpp_status cd_serving_cost_twin(const cd_serving_cost *c, CD_GIVE cd_serving_cost **out,
                                  cdmpp_err *err);
void cd_serving_cost_free(CD_TAKE cd_serving_cost *c); /* NULL is fine */
/* (CD_LLM_OP_N_KIND) */
CD_KEEP const cd_serving_kernel *cd_serving_cost_named(const cd_serving_cost *c);
double cd_serving_cost_power(const cd_serving_cost *c); /* cd_llm_op_machine_power of its GPU */
/* Asked twice it is answered from memory. Errors: those of cd_llm_op_ask. */
cdmpp_status cd_serving_cost_of(cd_serving_cost *c, const cd_serving_op *op, cd_serving_time *out,
                                cdmpp_err *err);
/* The seconds alone: the same, for less time where it is new. */
cdmpp_status cd_serving_cost_s(cd_serving_cost *c, const cd_serving_op *op, double *out,
                               cdmpp_err *err);
/* Questions so far, and those that were new. */
void cd_serving_cost_counts(const cd_serving_cost *c, size_t *asked, size_t *fresh);
/* The stack whose rows answer: "vllm-0.24.0"; "" where nothing was measured. */
const char *cd_serving_cost_stack(const cd_serving_cost *c);

/* ---- seconds of a step: serving_step.c ---- */
typedef struct cd_serving_engine cd_serving_engine;
typedef struct cd_serving_step {
    /* prompts that take `isl` new tokens each behind `past` computed ones */
    double prompts, isl, past;
    double part, part_past;  /* one more prompt: `part` tokens behind `part_past` */
    double decodes, context; /* sequences that get one token, mean length of their caches */
    double others;           /* tokens of other copies at the same time: experts see them, too */
} cd_serving_step;

/* All outlive it but `like`: an engine of the same model and costs and of a layout that
 * cd_serving_engine_alike. What was asked for both is asked once; NULL: there is none. */
cdmpp_status cd_serving_engine_new(const cd_serving_model *m, const cd_serving_layout *l,
                                   const cd_serving_stack *s, cd_serving_cost *c,
                                   const cd_serving_engine *like, CD_GIVE cd_serving_engine **out,
                                   cdmpp_err *err);
/* Most operators are the same: types, tp and nodes are. With the same experts, in layouts that are
 * alike: those of experts and of all copies, too. */
bool cd_serving_engine_alike(const cd_serving_layout *a, const cd_serving_layout *b);
bool cd_serving_engine_same_experts(const cd_serving_layout *a, const cd_serving_layout *b);
void cd_serving_engine_free(CD_TAKE cd_serving_engine *e); /* NULL is fine */
cdmpp_status cd_serving_step_s(cd_serving_engine *e, const cd_serving_step *s, double *out,
                               cdmpp_err *err);

/* The operators of a step with their times, for a table. */
typedef struct cd_serving_row {
    const char *name;
    cd_llm_op_record r;
    double count, total_s, sigma;
    cd_llm_op_how how;
    unsigned news; /* CD_LLM_OP_NEW_* */
    uint8_t alike; /* as in cd_serving_time */
    const char *twin, *kernel;
    /* hidden: it runs beside a longer one; link: between GPUs, which no lift lengthens */
    bool known, hidden, link;
    size_t group; /* above 0: rows of one difference follow each other */
} cd_serving_row;
typedef struct cd_serving_rows {
    cd_serving_row *v;
    size_t n, cap;
    /* total_s: of the step; host_s: what of it is of no operator: the host's part, and stack.lift;
     * sigma: of ln total_s, of what operators' intervals say */
    double total_s, host_s, sigma;
    double how_s[3]; /* seconds by kind of answer */
    /* seconds of what the model's training did not have, by what is new; of operators without an
     * interval */
    double new_s[CD_LLM_OP_N_NEWS], unknown_s;
    /* the GPU waits for the host: a faster GPU makes the step no shorter */
    bool waits;
} cd_serving_rows;
/* out: zeroed before the first call; its memory is used again. Errors: those of
 * cd_serving_step_s. */
cdmpp_status cd_serving_step_rows(cd_serving_engine *e, const cd_serving_step *s, double shared,
                                  cd_serving_rows *out, cdmpp_err *err);
void cd_serving_rows_free(cd_serving_rows *r);

/* A step of any prompts, as another program's scheduler puts it together. A prompt behind computed
 * tokens is three lists of rows: attention of all, less (count below 0) that of the computed ones,
 * and of one token; or the longer one of the new tokens alone and of one token that is decoded
 * behind the computed ones. Errors: those of cd_serving_step_s. */
typedef struct cd_serving_prompt {
    /* so many prompts of n new tokens each behind `past` computed ones */
    double count, n, past;
} cd_serving_prompt;
typedef struct cd_serving_batch {
    const cd_serving_prompt *prompt; /* (n) */
    size_t n;
    double decodes, context, others; /* as in cd_serving_step */
    double rows;                     /* sequences that get a token, prompts among them */
} cd_serving_batch;
cdmpp_status cd_serving_batch_rows(cd_serving_engine *e, const cd_serving_batch *b, double shared,
                                   cd_serving_rows *out, cdmpp_err *err);

/* ---- requests that a file names: serving_requests.c ---- */
typedef struct cd_serving_request {
    double at_s; /* when it comes, from the first one on */
    uint32_t isl, osl;
    long line; /* of the file */
} cd_serving_request;
typedef struct cd_serving_requests {
    cd_serving_request *v;    /* (n), by when they come */
    size_t n, n_bad;          /* rows that can be used, that cannot */
    bool arrive;              /* the file says when each comes */
    double isl, osl, longest; /* means; tokens of the longest sequence */
} cd_serving_requests;
/* A CSV table with the columns isl, osl and, where requests come by themselves, at_s (seconds).
 * Other columns are not read. bad: told of rows that cannot be used, which are left out: of eight
 * in the order of the file, and of how many more there are. Errors: those of cd_csv_table_read and
 * cd_csv_table_need; ENODATA: no row can be used; ENOMEM. Free after an error, too. */
cdmpp_status cd_serving_requests_read(const char *path, cd_op_bad_line *bad, void *ctx,
                                      cd_serving_requests *out, cdmpp_err *err);
void cd_serving_requests_free(cd_serving_requests *r);

/* ---- the scheduler: serving_simulate.c ---- */
typedef struct cd_serving_load {
    double isl, osl;
    double spread;      /* lengths are uniform within 1 -/+ spread times these */
    double concurrency; /* requests in flight all the time; 0: they arrive by themselves */
    double think_s;     /* from the end of a request to the next one */
    double rate;        /* arrivals a second (Poisson), without concurrency */
    /* lengths in turn, and with neither concurrency nor rate also when they come; NULL: isl, osl,
     * spread */
    const cd_serving_requests *given;
    /* of these every each-th one comes here: the others go to other engines; 0: all */
    size_t each;
    /* that are simulated, all counted, as a load test does, so there are never more in flight; 0: 8
     * times those in flight on the average, from 64 on; with a rate up to 16384 */
    double requests;
    uint64_t seed;
    /* a sequence is done with its first token: a worker of prompts alone */
    bool prompts_alone;
    bool tokens_alone;                 /* prompts are there already: a worker that decodes alone */
    const volatile sig_atomic_t *stop; /* above 0: the simulation ends; NULL: nothing stops it */
} cd_serving_load;

typedef struct cd_serving_limits {
    double tokens, sequences; /* of a step */
    double cache_tokens;      /* of all sequences */
    cd_serving_prompts prompts;
    bool reserved;
    /* steps that are put together before a request that has just come may be in one */
    double ahead;
    /* that make their steps together, as experts of a step see the tokens of all: each has these
     * limits; 0: one */
    double copies;
} cd_serving_limits;

typedef struct cd_serving_result {
    /* means where not told; tpot NaN: no request has a further token */
    double ttft_s, ttft_median_s, ttft_p99_s, tpot_s, tpot_p99_s, request_s;
    /* generated, of this engine; infinite: none of them took any time */
    double tokens_s;
    double total_s;          /* until all have their last token; NaN: not one simulation */
    double running, waiting; /* sequences in steps, requests in the queue: means over time */
    double busy;             /* part of the time in which a step runs */
    double put_back;         /* sequences that lost their cache */
    double requests;         /* that were simulated; of several schedulers those of all */
    double idle;             /* schedulers that got no request */
    /* with a rate: more requests would have been simulated than are, so those in flight at the end
     * are no small part */
    bool cut;
    /* part of the time in which a prompt that may not be divided waits for tokens of a step, as
     * sequences that decode have them */
    double crowded;
    size_t steps;
} cd_serving_result;

/* One engine. request_s: of each request in the front end, which takes one at a time. Errors: those
 * of step_s; ERANGE: a prompt that no step takes; EINTERRUPTED (*stop); ENOMEM. */
cdmpp_status cd_serving_simulate(cd_serving_engine *e, const cd_serving_load *load,
                                 const cd_serving_limits *limit, double request_s,
                                 cd_serving_result *out, cdmpp_err *err);

#include "predictor/serving/serving_bad.h"
#include "predictor/serving/serving_plan.h"
#include "predictor/serving/serving_print.h"
#include "predictor/serving/serving_sweep.h"
#endif
