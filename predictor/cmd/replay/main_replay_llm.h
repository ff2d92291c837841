/* cdmpp-replay --llm: its options, and the run. */
#ifndef MAIN_REPLAY_LLM_H
#define MAIN_REPLAY_LLM_H
#include "base/cli/cli.h"
#include "predictor/serving/serving.h"

typedef struct cd_replay_llm {
    const char *model, *stack, *kernels, *dtype, *experts_dtype, *kv_dtype, *serving, *runs, *load,
        *picture;
    cd_serving_lists list;
    /* numbers as text */
    const char *isl, *osl, *rate, *spread, *requests, *tokens, *graph, *sequences, *share, *node,
        *node_gbs, *ttft, *tpot, *engines;
    const char *decode_workers, *decode_tp, *decode_pp, *decode_dp, *decode_ep, *decode_sequences;
    int prompts, jobs; /* jobs 0: a thread for each CPU */
    bool sweep, stream, markdown, level_given;
    /* options that other estimates have, too */
    const char *cost_model, *devices, *measured, *prices;
    double level, shared;
} cd_replay_llm;

/* Numbers and words of the options, before anything is read. Errors: EUSAGE. */
cdmpp_status cd_replay_llm_check(const cd_replay_llm *o, cdmpp_err *err);
/* Its configuration: numbers and types of the options, and the usual ones where there is none.
 * Errors: EUSAGE. */
cdmpp_status cd_replay_llm_config(const cd_replay_llm *o, cd_serving_config *c, cdmpp_err *err);
/* Warnings of what is asked and changes nothing or is done otherwise: before anything is answered,
 * and of answers. Each is one line for all configurations. */
void cd_replay_llm_say_asked(const cd_serving_config *c, size_t n, const cd_serving_stacks *stacks,
                             cd_log *log);
void cd_replay_llm_say_done(const cd_serving_said *v, size_t n, cd_log *log);
/* Prints. Sets r->exit_code to 3 where some configurations were refused, or lines of --stream. */
cdmpp_status cd_replay_llm_run(const cd_replay_llm *o, cd_command_run *r, cdmpp_err *err);
/* What no training row has, of all configurations: the most of a step's operators, by what is new.
 * Starts from {0}. */
typedef struct cd_replay_llm_novel {
    double most[CD_LLM_OP_N_NEWS];
    size_t unknown; /* configurations without an interval for that */
} cd_replay_llm_novel;
#endif
