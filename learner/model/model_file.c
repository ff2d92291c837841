/* The model file of model.h: writing it, and reading up to key "model", whose versions are in
 * model_read.c. */
#include <string.h>

#include "base/io/io.h"
#include "features/rows/rows.h"
#include "learner/model/model_internal.h"

/* ---- writing ---- */
static void put_devices(cd_buf *b, const cd_model *m) {
    cd_buf_puts(b, "\"devices\":[");
    for (size_t i = 0; i < m->n_device; i++) {
        cd_buf_puts(b, i ? ",{\"name\":" : "{\"name\":");
        cd_buf_put_json_str(b, m->device[i], strlen(m->device[i]));
        cd_buf_putf(b, ",\"is_gpu\":%s,\"vector\":[", m->device_is_gpu[i] ? "true" : "false");
        for (size_t c = 0; c < m->w_device; c++)
            cd_buf_putf(b, "%s%.9g", c ? "," : "", (double)m->device_vector[i * m->w_device + c]);
        cd_buf_puts(b, "]");
        if (m->numbers) cd_model_facts_put_device(b, &m->numbers[i]);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "],");
}

cdmpp_status cd_model_put_members(const cd_model *m, cd_buf *b, cd_buf *blob, cdmpp_err *err) {
    cd_buf_puts(b, "\"kinds\":[");
    for (size_t k = 0; k < m->n_kind; k++)
        cd_buf_putf(b, "%s\"%s\"", k ? "," : "", cd_member_name(m->kind[k]));
    cd_buf_puts(b, "],\"members\":[");
    for (size_t k = 0; k < m->n_member; k++) {
        if (k) cd_buf_puts(b, ",");
        CD_TRY(cd_member_save(&m->member[k], b, blob, err));
    }
    cd_buf_puts(b, "]");
    return CDMPP_OK;
}

/* Kinds, members and uncertainty; the end of an object. */
static cdmpp_status put_estimators(cd_buf *b, const cd_model *m, cd_buf *blob, cdmpp_err *err) {
    CD_TRY(cd_model_put_members(m, b, blob, err));
    cd_buf_puts(b, ",\"calib\":");
    CD_TRY(cd_calibration_write(m->calib, b, blob, err));
    cd_buf_puts(b, "}");
    return CDMPP_OK;
}

/* Header key "model"; the weights of members and uncertainty go to `blob`. */
static cdmpp_status put_model(cd_buf *b, const cd_model *m, cd_buf *blob, cdmpp_err *err) {
    char digest[65];
    cd_cols_digest(digest);
    cd_buf_putf(b, "{\"input_version\":%d,\"feature_digest\":\"%s\",\"log_range\":[%.17g,%.17g],",
                m->rows_as_given ? 1 : CD_TREE_INPUT_VERSION, digest, m->log_min, m->log_max);
    put_devices(b, m);
    if (m->numbers) cd_model_facts_put(m->facts_set, b);
    if (m->trained_on) {
        cd_buf_puts(b, "\"trained_on\":");
        cd_trained_on_write(m->trained_on, b);
        cd_buf_puts(b, ",");
    }
    if (cd_device_law_any(m->law)) {
        cd_buf_puts(b, "\"unseen\":");
        cd_device_law_write(m->law, b);
        cd_buf_puts(b, ",");
    }
    return put_estimators(b, m, blob, err);
}

/* Header key "tuner": `at` says where its weights begin. */
static cdmpp_status put_tuner(cd_buf *b, const cd_model *m, cd_buf *blob, cdmpp_err *err) {
    if (!m->tuner) return CDMPP_OK;
    cd_buf_putf(b, ",\"tuner\":{\"at\":%zu,", blob->n);
    return put_estimators(b, m->tuner, blob, err);
}

static uint32_t version_of(const cd_model *m) {
    if (m->order) return CD_CONTAINER_MODEL_ORDER;
    if (m->tuner) return CD_CONTAINER_MODEL_NEWER;
    for (size_t k = 0; k < m->n_member; k++)
        if (m->member[k].objective != CD_OBJECTIVE_LOG_LATENCY ||
            m->member[k].facts != CD_FACTS_USE_NONE)
            return CD_CONTAINER_MODEL_NEWER;
    return CD_CONTAINER_MODEL_VERSION;
}

cdmpp_status cd_model_encode(const cd_model *m, const char *provenance, cd_buf *out,
                             cdmpp_err *err) {
    cd_buf blob = {0}, header = {0};
    cd_buf_putf(&header,
                "{\"schema\":\"cdmpp.model\",\"schema_version\":%u,\"model\":", version_of(m));
    cdmpp_status st = put_model(&header, m, &blob, err);
    if (!st) st = cd_model_put_order(m, &header, &blob, err);
    if (!st) st = put_tuner(&header, m, &blob, err);
    cd_buf_putf(&header, "%s%s}", provenance[0] ? "," : "", provenance);
    if (!st) st = cd_container_put_as(CD_CONTAINER_MODEL, version_of(m), out, &header, &blob, err);
    cd_buf_free(&blob);
    cd_buf_free(&header);
    return st;
}

/* ---- reading ---- */
static cdmpp_status read_model(cd_model *m, const cd_container *f, cdmpp_err *err) {
    const cd_json *root, *model;
    CD_TRY(cd_container_header(f, &m->arena, &m->header, &root, err));
    CD_TRY(cd_json_need(root, "model", &model, err));
    if (f->version == 1)
        return cd_err_key(err, cd_model_read_v1(m, model, f->weights, err), "model");
    cd_str weights = f->weights, behind, order = {0}, last = {0};
    if (f->version >= CD_CONTAINER_MODEL_HERE)
        CD_TRY(cd_err_key(err, cd_model_split(root, "here", &weights, &last, err), "here"));
    CD_TRY(cd_err_key(err, cd_model_split(root, "tuner", &weights, &behind, err), "tuner"));
    if (f->version >= CD_CONTAINER_MODEL_ORDER)
        CD_TRY(cd_err_key(err, cd_model_split(root, "order", &weights, &order, err), "order"));
    CD_TRY(cd_err_key(err, cd_model_read_v2(m, model, weights, err), "model"));
    if (f->version >= CD_CONTAINER_MODEL_ORDER)
        CD_TRY(cd_err_key(err, cd_model_read_order(m, root, order, err), "order"));
    CD_TRY(cd_err_key(err, cd_model_read_tuner(m, root, behind, err), "tuner"));
    return f->version < CD_CONTAINER_MODEL_HERE ? CDMPP_OK : cd_here_read(m, root, last, err);
}

cdmpp_status cd_model_from_bytes(const void *p, size_t n, cd_model **out, cdmpp_err *err) {
    cd_container f;
    CD_TRY(cd_container_get(CD_CONTAINER_MODEL, p, n, &f, err));
    cd_model *m = cd_mem_zalloc(1, sizeof *m);
    if (!m) return CD_FAIL(err, ENOMEM, "model");
    memcpy(m->digest, (const char *)p + n - 64, 64); /* the frame has checked it */
    const cdmpp_status st = read_model(m, &f, err);
    if (st) cd_model_free(m);
    else *out = m;
    return st;
}

cdmpp_status cd_model_load(const char *path, cd_model **out, cdmpp_err *err) {
    char *data;
    size_t n;
    CD_TRY(cd_file_read(path, 0, &data, &n, err));
    const cdmpp_status st = cd_model_from_bytes(data, n, out, err);
    cd_mem_free(data);
    return cd_err_at(err, st, path, 0);
}
