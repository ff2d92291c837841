/* Members for the order of a task's programs, beside those for the seconds in one model: what they
 * say becomes order_s, and their part of the file. */
#include <math.h>

#include "learner/model/model_internal.h"

/* Far beyond any time, so that exp() of either is a number: an order of losses of ranks may lie
 * anywhere. */
static const double far = 80;

void cd_model_mix_order(const cd_model *m, const double *kind_log_s, size_t n,
                        cd_model_prediction *out) {
    if (!m->order) return;
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t k = 0; k < m->order->n_kind; k++) sum += kind_log_s[k * n + i];
        const double own = sum / (double)m->order->n_kind;
        const double both = m->order_share * own + (1 - m->order_share) * log(out[i].median_s);
        out[i].order_s = exp(fmax(-far, fmin(both, far)));
    }
}

/* ---- file ---- */
cdmpp_status cd_model_put_order(const cd_model *m, cd_buf *json, cd_buf *blob, cdmpp_err *err) {
    if (!m->order) return CDMPP_OK;
    cd_buf_putf(json, ",\"order\":{\"at\":%zu,\"share\":%.17g,", blob->n, m->order_share);
    CD_TRY(cd_model_put_members(m->order, json, blob, err));
    cd_buf_puts(json, "}");
    return CDMPP_OK;
}

cdmpp_status cd_model_read_order(cd_model *m, const cd_json *root, cd_str weights, cdmpp_err *err) {
    const cd_json *v = cd_json_get(root, "order");
    if (!v) return CDMPP_OK;
    cd_model *o = cd_model_new_order(m);
    if (!o) return CD_FAIL(err, ENOMEM, "order");
    CD_TRY(cd_json_need_real(v, "share", 0, 1, &m->order_share, err));
    CD_TRY(cd_model_read_members(o, v, &weights, err));
    return weights.n ? CD_FAIL(err, ESCHEMA, "%zu bytes behind the last member", weights.n)
                     : CDMPP_OK;
}
