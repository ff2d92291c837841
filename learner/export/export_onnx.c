/* The ensemble as one graph. Kinds of weight 0 are left out: they would cost time and change
 * nothing. */
#include "learner/export/export_internal.h"

static const char *with(cd_export *x, const char *op, const char *a, double b) {
    return CD_ONNX_WRITER_NODE(&x->f, op, a, cd_onnx_writer_double(&x->f, b));
}

/* Mean over the members of a kind. */
static cdmpp_status kind(cd_export *x, size_t k, const char **log_s, cdmpp_err *err) {
    size_t n = 0;
    *log_s = NULL;
    for (size_t j = 0; j < cd_model_n_member(x->m); j++) {
        const cd_member *e = cd_model_member(x->m, j);
        const char *one = NULL;
        if (e->kind != cd_model_kind(x->m, k)) continue;
        CD_TRY(e->net ? cd_export_net(x, e, j, &one, err) : cd_export_trees(x, e, &one, err));
        *log_s = *log_s ? CD_ONNX_WRITER_NODE(&x->f, "Add", *log_s, one) : one;
        n++;
    }
    if (!n)
        return CD_FAIL(err, EMODEL, "kind %s has no members",
                       cd_member_name(cd_model_kind(x->m, k)));
    *log_s = with(x, "Div", *log_s, (double)n);
    return CDMPP_OK;
}

static void describe(cd_export *x, const cd_buf *kinds) {
    const cd_model *m = x->m;
    cd_buf b = {0};
    for (size_t i = 0; i < cd_model_n_device(m); i++) {
        cd_buf_puts(&b, i ? "," : "[");
        cd_buf_put_json_str(&b, cd_model_device(m, i), strlen(cd_model_device(m, i)));
    }
    cd_buf_puts(&b, "]");
    cd_onnx_writer_meta(&x->f, "cdmpp.devices", b.p ? b.p : "");
    cd_onnx_writer_meta(&x->f, "cdmpp.kinds", kinds->p ? kinds->p : "");
    cd_onnx_writer_meta(&x->f, "cdmpp.log_s",
                        "weighted mean of kind_log_s, ln seconds, before shift, tilt, quantiles "
                        "and range of the calibration");
    x->f.oom = x->f.oom || b.oom || kinds->oom;
    cd_buf_free(&b);
}

/* "kind_log_s" has the kinds in the order of metadata "cdmpp.kinds". */
static cdmpp_status ensemble(cd_export *x, cd_buf *kinds, cdmpp_err *err) {
    const cd_model *m = x->m;
    const char *sum = NULL, *each[CD_N_MEMBER_KIND];
    const int64_t one[] = {1};
    size_t n = 0;
    for (size_t k = 0; k < cd_model_n_kind(m); k++) {
        const double weight = cd_model_weight(m, k);
        if (!(weight > 0)) continue;
        CD_TRY(kind(x, k, &each[n], err));
        const char *part = with(x, "Mul", each[n], weight);
        sum = sum ? CD_ONNX_WRITER_NODE(&x->f, "Add", sum, part) : part;
        cd_buf_putf(kinds, "%s{\"kind\":\"%s\",\"weight\":%.17g}", n++ ? "," : "[",
                    cd_member_name(cd_model_kind(m, k)), weight);
    }
    cd_buf_puts(kinds, "]");
    if (!sum) return CD_FAIL(err, EMODEL, "no kind has a weight");
    cd_onnx_writer_output(&x->f, "log_s", cd_export_reshape(x, sum, one, 1), CD_ONNX_F64, one, 1);
    const int64_t dim[] = {(int64_t)n};
    cd_onnx_writer_output(&x->f, "kind_log_s",
                          cd_export_reshape(x, cd_export_concat(x, each, n, 0), dim, 1),
                          CD_ONNX_F64, dim, 1);
    return CDMPP_OK;
}

cdmpp_status cd_export_onnx(const cd_model *m, cd_buf *out, cdmpp_err *err) {
    cd_buf kinds = {0};
    cd_export x = {.m = m};
    cd_export_begin(&x);
    cdmpp_status st = ensemble(&x, &kinds, err);
    if (!st) {
        describe(&x, &kinds);
        st = cd_onnx_writer_end(&x.f, "cdmpp", out, err);
    }
    cd_buf_free(&kinds);
    cd_onnx_writer_free(&x.f);
    return st;
}
