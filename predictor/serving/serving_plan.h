/* serving_plan -- one configuration of GPUs and load to TTFT, TPOT, throughput and memory; many of
 * them in a sweep.
 *
 *   aggregated      x workers, each computes prompts and decodes
 *   disaggregated   x workers for prompts, y workers that decode; a request goes through both
 *
 * A worker has tp x pp x dp GPUs. Each of its dp copies, and each of its pp batches on their way
 * through the stages, is a scheduler of its own. Included by serving.h. One owner, one thread. */
#ifndef CD_SERVING_PLAN_H
#define CD_SERVING_PLAN_H

typedef struct cd_serving_worker {
    double tp, pp, dp, ep, count; /* count 0: there is none */
    double batch;                 /* sequences of one copy in a step at most; 0: the stack's */
} cd_serving_worker;

typedef struct cd_serving_config {
    const char *gpu, *stack, *kernels; /* kernels: as cd_serving_kernels_read has them */
    /* decode.count above 0: disaggregated, and `worker` computes prompts */
    cd_serving_worker worker, decode;
    double isl, osl, spread, concurrency, rate, requests;
    /* in their place; NULL: none. isl and osl are their means, `requests` at most as many where
     * they come by themselves */
    const cd_serving_requests *given;
    /* cd_llm_op_type; -1: the checkpoint's, and that of the stack */
    int linear, expert, kv;
    int prompts;         /* cd_serving_prompts; -1: the stack's */
    double tokens;       /* of a step; 0: the stack's */
    double memory_share; /* 0: the stack's */
    double graph_tokens; /* 0: the stack's */
    /* GPUs of a node, 0: all GPUs are joined by their own links; GB/s of a GPU between nodes */
    double node, node_gb_s;
    double ttft_s, tpot_s; /* measured; 0: not */
    const char *id;
} cd_serving_config;
cd_serving_config cd_serving_config_defaults(void);
/* Requests in flight at most: a load test of fewer requests than its concurrency never has more of
 * them. 0: they come by themselves. */
double cd_serving_in_flight(const cd_serving_config *c);
/* Shorter lengths than 1 token, which `spread` allows, are taken for 1. */
bool cd_serving_too_short(const cd_serving_config *c);
/* Tokens of its longest sequence. */
double cd_serving_longest(const cd_serving_config *c);

typedef struct cd_serving_answer {
    cd_serving_layout layout;
    cd_serving_memory memory; /* of a worker; of those that decode where there are */
    cd_serving_limits limit;
    cd_serving_result r; /* of all: tokens_s, running, waiting are sums */
    /* NaN: nobody knows the interval */
    double gpus, ttft_low_s, ttft_high_s, tpot_low_s, tpot_high_s;
    double per_gpu, per_user; /* tokens a second */
    double level;
} cd_serving_answer;

/* The GPU has no units for bfloat16, which the checkpoint is in: float16 is taken in its place. */
bool cd_serving_half(const cd_serving_model *m, const cd_serving_config *c, const cd_device *d);

/* What a session asks with. */
typedef struct cd_serving_session {
    const cd_serving_model *m;
    const cd_llm_op_model *ops;
    const cd_device_table *devices;
    cd_serving_tables *tables;
    const cd_serving_stacks *stacks;
    /* of intervals; part of the variance that operators have in common */
    double level, shared;
    /* simulations end when it is set; NULL: nothing stops them */
    const volatile sig_atomic_t *stop;
    struct cd_serving_known *known; /* costs by GPU and stack */
    /* engines by layout: what one configuration asked, others need not ask again */
    struct cd_serving_made *made;
    size_t n_known, cap_known, n_made, cap_made;
    size_t asked, fresh; /* by twins that have ended */
} cd_serving_session;
void cd_serving_session_end(cd_serving_session *s);
/* The GPUs and stacks of all configurations, which twins then need not look up: tables get names by
 * that. Errors: ESCHEMA (no such GPU, no such stack), ENOMEM. */
cdmpp_status cd_serving_session_know(cd_serving_session *s, const cd_serving_config *c, size_t n,
                                     cdmpp_err *err);
/* The same for another thread, which asks of these GPUs and stacks alone; s outlives it. end: also
 * after an error, adds what it counted to s. Errors: ENOMEM. */
cdmpp_status cd_serving_session_twin(const cd_serving_session *s, cd_serving_session *out,
                                     cdmpp_err *err);
void cd_serving_session_twin_end(cd_serving_session *s, cd_serving_session *twin);

/* Rows of the two steps of a table may be NULL: a step with one prompt, a step in which as many
 * sequences decode as the simulation had on the average. Errors: EUNSUPPORTED (the checkpoint's
 * types are not known, and the configuration names none), ERANGE (kv_dtype is of no cache;
 * experts_dtype of a model without experts; node_gbs without node_gpus), ESCHEMA (no such GPU, no
 * such stack), those of layout, memory, operators and simulation (EINTERRUPTED: *stop). */
cdmpp_status cd_serving_answer_of(cd_serving_session *s, const cd_serving_config *c,
                                  cd_serving_answer *out, cd_serving_rows *prompt,
                                  cd_serving_rows *decode, cdmpp_err *err);
/* The engine of one of its workers, as long as the session; *out is its layout. Load and decode are
 * not looked at. Errors: those of cd_serving_answer_of. */
cdmpp_status cd_serving_engine_of(cd_serving_session *s, const cd_serving_config *c,
                                  CD_KEEP cd_serving_engine **e, cd_serving_layout *out,
                                  cdmpp_err *err);
/* Many configurations, from a CSV table: columns are called as the options of cdmpp-replay --llm
 * (id, gpu, stack, kernels, tp, pp, dp, ep, isl, osl, concurrency, rate, requests, spread, dtype,
 * experts-dtype, kv-dtype, prompts, max-tokens, max-sequences, engines (or workers),
 * decode-workers, decode-tp ... decode-ep, decode-max-sequences), with _ or -, and ttft_s, tpot_s
 * where they were measured. What a row leaves empty is that of `usual`. Texts live in the table. */
typedef struct cd_serving_runs {
    cd_csv_table t;
    cd_serving_config *v; /* (n) */
    long *line;           /* (n) of the file */
    size_t n, n_bad;      /* rows that can be used, that cannot */
} cd_serving_runs;
/* bad: told of each row that cannot be used, which is left out; NULL: the first such row is an
 * error. Errors: those of cd_csv_table_read; ESCHEMA: an unknown column or word; EPARSE, ERANGE: a
 * number; ENODATA: no row can be used. Free after an error, too. */
cdmpp_status cd_serving_runs_read(const char *path, const cd_serving_config *usual,
                                  cd_op_bad_line *bad, void *ctx, cd_serving_runs *out,
                                  cdmpp_err *err);
void cd_serving_runs_free(cd_serving_runs *r);
/* A type of docs/reference/llm-operators.md by its name; -1: there is none. */
int cd_serving_type(const char *name);
/* Can a cache of keys and values be of the type? */
#define CD_SERVING_KV_TYPES "a type of a cache (float32, bfloat16, float16, fp8, int8, nvfp4)"
bool cd_serving_kv_type(int type);

/* What answers about a GPU rest on. A GPU that is not described has nothing new: it is refused. */
typedef struct cd_serving_about {
    unsigned news; /* of cd_llm_op_model_about */
    /* the GPU of the same chip that is asked in its place; NULL: none is. Lives with the model */
    const char *twin;
    bool rows; /* tables have rows of the GPU itself */
} cd_serving_about;
cd_serving_about cd_serving_session_about(const cd_serving_session *s, const char *gpu);

/* Told of each GPU and stack without measured rows of this library and version, for which those of
 * `taken` stand. */
typedef void cd_serving_stand_in(void *ctx, const char *gpu, const char *asked, const char *taken);
void cd_serving_session_stand_ins(const cd_serving_session *s, cd_serving_stand_in *say, void *ctx);
/* Requests a second that are answered where they come faster and the queue grows as long as they
 * come; 0: they do not. */
double cd_serving_overload(const cd_serving_config *c, const cd_serving_answer *a);
/* Prompts that have to be whole wait for room in a step for more than a tenth of the time: it is
 * about as long as a prompt, and each sequence that decodes takes a token of it. */
bool cd_serving_crowded(const cd_serving_answer *a);
/* GPUs of the larger of its engines that are joined as those of one node, though no node's GPUs are
 * said: machines have eight, as a rule. 0: not more than these. */
double cd_serving_wide(const cd_serving_config *c);

/* Questions to the operators' models, and those that were new. */
void cd_serving_session_counts(const cd_serving_session *s, size_t *asked, size_t *fresh);
#endif
