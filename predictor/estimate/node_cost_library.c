/* Library operators in a queue of a GPU: without what a table's single call waits for. */
#include <math.h>

#include "predictor/estimate/estimate_internal.h"

static const double LEVEL = 0.9;
/* from one kernel of a queue to the next: about 2 us on NVIDIA's and AMD's GPUs since 2016 */
#define START_S 2e-6

/* Tables time one call on an idle device: host, driver and start of the kernel stand before it, 25
 * to 60 us. In a network they overlap with the operator before. What they take on a device is the
 * model's answer for an operator on one element. */
static cdmpp_status wait_of(const cd_library_op_model *m, cd_library_op_kind kind,
                            const cd_device *d, cd_node_cost_wait *w, cdmpp_err *err) {
    const cd_library_op_record nothing = {
        .kind = kind, .dtype = CD_LIBRARY_OP_DTYPE_F32, .b = 1, .m = 1, .n = 1, .k = 1};
    if (w->known[kind]) return CDMPP_OK;
    if (cd_library_op_kind_class(kind) != CD_LIBRARY_OP_CLASS_BMM &&
        cd_library_op_kind_class(kind) != CD_LIBRARY_OP_CLASS_LINEAR &&
        cd_library_op_kind_class(kind) != CD_LIBRARY_OP_CLASS_CONV)
        CD_TRY(cd_library_op_model_predict(m, &nothing, &d, 1, &w->seconds[kind], err));
    w->known[kind] = true;
    return CDMPP_OK;
}

/* The words of programs for why an operator is out of range. */
static uint32_t reason_of(unsigned unlike) {
    return (unlike & CD_LIBRARY_OP_UNLIKE_DEVICE ? CD_UNLIKE_DEVICE : 0u) |
           (unlike & CD_LIBRARY_OP_UNLIKE_DTYPE ? CD_UNLIKE_DTYPE : 0u) |
           (unlike & CD_LIBRARY_OP_UNLIKE_OPERATOR ? CD_UNLIKE_OPERATOR : 0u) |
           (unlike & CD_LIBRARY_OP_UNLIKE_BEYOND ? CD_UNLIKE_RANGE : 0u);
}

/* The interval keeps its factors: what is taken off is in the prediction and in the measured time
 * alike. */
cdmpp_status cd_node_cost_library(const cd_library_op_model *m, const cd_library_op_record *r,
                                  const cd_device *d, cd_node_cost_wait *w, cd_node_cost_entry *n,
                                  cdmpp_err *err) {
    double alone;
    CD_TRY(cd_library_op_model_predict(m, r, &d, 1, &alone, err));
    CD_TRY(wait_of(m, r->kind, d, w, err));
    const cd_library_op_range v = cd_library_op_model_range(m, r, d, alone, LEVEL);
    cd_node_cost_known(n, fmax(alone - w->seconds[r->kind], 0) + START_S, CD_COST_LIBRARY);
    n->low_s = n->seconds * (v.low_s / alone);
    n->high_s = n->seconds * (v.high_s / alone);
    n->spread = v.spread;
    n->shared = v.shared;
    n->flags = v.unlike ? CD_MODEL_OUT_OF_RANGE : 0;
    n->reason = reason_of(v.unlike);
    n->least_s = cd_library_op_least_s(r, d);
    cd_node_cost_at_least(n);
    return CDMPP_OK;
}
