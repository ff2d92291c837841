/* Library operators in a queue of a GPU: without what a table's single call waits for. */
#include <math.h>

#include "predictor/estimate/node_cost_internal.h"

#define START_S 2e-6 /* from one kernel of a queue to the next: about 2 us on NVIDIA's and AMD's GPUs since 2016 */

/* Tables time one call on an idle device: host, driver and start of the kernel stand before it, 25 to 60 us. In a network they
 * overlap with the operator before. What they take on a device is the model's answer for an operator on one element. */
static cdmpp_status wait_of(const cd_library_op_model *m, cd_library_op_kind kind, const cd_device *d, cd_node_cost_wait *w, cdmpp_err *err) {
    const cd_library_op_record nothing = {.kind = kind, .dtype = CD_LIBRARY_OP_DTYPE_F32, .b = 1, .m = 1, .n = 1, .k = 1};
    if (w->known[kind]) return CDMPP_OK;
    if (cd_library_op_kind_class(kind) != CD_LIBRARY_OP_CLASS_BMM && cd_library_op_kind_class(kind) != CD_LIBRARY_OP_CLASS_LINEAR && cd_library_op_kind_class(kind) != CD_LIBRARY_OP_CLASS_CONV)
        CD_TRY(cd_library_op_model_predict(m, &nothing, &d, 1, &w->seconds[kind], err));
    w->known[kind] = true;
    return CDMPP_OK;
}

cdmpp_status cd_node_cost_library_s(const cd_library_op_model *m, const cd_library_op_record *r, const cd_device *d, cd_node_cost_wait *w, double *seconds,
                                  cdmpp_err *err) {
    CD_TRY(cd_library_op_model_predict(m, r, &d, 1, seconds, err));
    CD_TRY(wait_of(m, r->kind, d, w, err));
    *seconds = fmax(*seconds - w->seconds[r->kind], 0) + START_S;
    return CDMPP_OK;
}
