/* step_requests -- steps of a language model as lines of JSON, an answer each, in their order:
 * cdmpp-replay --llm --stream.
 *
 *   {"id":1,"prefill":[[512,0],[256,1024]],"decode":[1030,2040]}
 *     prefill: new tokens of a prompt and those computed before;
 *     decode: tokens in the cache of each sequence that decodes
 *     -> {"id":1,"total_s":0.0121,"host_s":0.001,"sigma":0.1,
 *         "operators":[{"name":"qkv","kind":"gemm",..,"runs":32,"total_s":..},..]}
 *   {"decode":[512],"others":7}     with dp: tokens of the other copies, which the experts compute
 *                                   at the same time
 *   {"cmd":"hello"}                 about this side
 *   anything else -> {"line":4,"error":{..}}
 *
 * Prompts with the same new and computed tokens are one call of attention, others are calls of
 * their own; sequences that decode have the mean of their lengths. As line_server.h.
 * docs/reference/serving.md. One thread. */
#ifndef CD_STEP_REQUESTS_H
#define CD_STEP_REQUESTS_H
#include "predictor/serving/serving.h"

enum { CD_STEP_REQUESTS_MOST = 65536 }; /* prompts of a step, sequences that decode */

typedef struct cd_step_requests {
    const cd_serving_model *m;
    cd_serving_engine *e;
    const cd_serving_layout *l;
    const char *gpu, *stack, *kernels; /* kernels: NULL, "": none is named */
    cd_serving_about about;            /* of the GPU */
    double shared;                     /* of cd_serving_session */
    int in, out;                       /* descriptors */
    size_t max_bytes;                  /* of a line; 0: CD_REQUEST_LINE_MAX */
    /* set: what was read whole is answered, then EINTERRUPTED; NULL: never */
    const volatile sig_atomic_t *stop;
} cd_step_requests;

/* Until the end of input. *asked, *bad: lines, those with an error; right after an error, too.
 * Errors: EIO, ENOMEM, EINTERRUPTED. */
cdmpp_status cd_step_requests_run(const cd_step_requests *o, size_t *asked, size_t *bad,
                                  cdmpp_err *err);
#endif
