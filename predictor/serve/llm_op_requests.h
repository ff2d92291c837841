/* llm_op_requests -- questions about operators of language models as lines of JSON, an answer each,
 * in their order: cdmpp-predict --stream --operators.
 *
 * {"id":1,"op":"gemm","device":"h100","stack":"vllm-0.24.0","dtype":"bfloat16",
 *  "m":1024,"n":4096,"k":4096}
 *   -> {"id":1,"operator":"gemm","device":"h100","how":"measured","latency_s":6.1e-5,
 *       "low_s":..,"high_s":..,"level":0.9,"new":null,"measured_rows":0,
 *       "estimate_s":..,"bound_s":..}
 * {"id":2,"operators":[{..},{..}]}  -> {"id":2,"operators":[{..},{"error":{..}}]}
 *   each item as above, without id
 * {"cmd":"hello"}, {"cmd":"stats"}  about this side
 * anything else -> {"line":4,"error":{"code":"ESCHEMA","key":"dtyp","message":".."}}
 *
 * (1) A bad line costs only itself. (2) Answers are written as soon as no further line is there:
 *     who waits for each answer gets it at once.
 * (3) Memory is that of the longest line. docs/reference/stream.md. One thread. */
#ifndef CD_LLM_OP_REQUESTS_H
#define CD_LLM_OP_REQUESTS_H
#include <signal.h>

#include "learner/llm_op/llm_op.h"

enum { CD_LLM_OP_REQUESTS_MOST = 65536 }; /* operators of one request */

typedef struct cd_llm_op_requests_options {
    int in, out;      /* descriptors */
    size_t max_bytes; /* of a line; 0: CD_REQUEST_LINE_MAX */
    /* set: what was read whole is answered, then EINTERRUPTED; NULL: never */
    const volatile sig_atomic_t *stop;
} cd_llm_op_requests_options;

typedef struct cd_llm_op_requests_stats {
    /* lines; operators with an answer; lines and operators without one */
    size_t asked, answered, bad;
} cd_llm_op_requests_stats;

/* Until the end of input. *stats is right after an error, too. Errors: EIO, ENOMEM,
 * EINTERRUPTED. */
cdmpp_status cd_llm_op_requests(const cd_llm_op_oracle *oracle, const cd_llm_op_requests_options *o,
                                cd_llm_op_requests_stats *stats, cdmpp_err *err);
#endif
