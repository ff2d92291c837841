/* model_file -- the model file of model.h: writing, and its frame. */
#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "features/cols.h"
#include "learner/model_int.h"

enum { FIXED = 32, SUM = 64 };
static const char magic[] = "CDMPPMDL";

/* ---- writing ---- */
static void put_le(cd_buf *b, uint64_t v, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char c = (char)(v >> (8 * i));
        cd_buf_put(b, &c, 1);
    }
}

static void put_devices(cd_buf *b, const cd_model *m) {
    cd_buf_puts(b, "\"devices\":[");
    for (size_t i = 0; i < m->n_device; i++) {
        cd_buf_puts(b, i ? ",{\"name\":" : "{\"name\":");
        cd_buf_put_json_str(b, m->device[i], strlen(m->device[i]));
        cd_buf_putf(b, ",\"is_gpu\":%s,\"vector\":[", m->device_is_gpu[i] ? "true" : "false");
        for (size_t c = 0; c < m->w_device; c++)
            cd_buf_putf(b, "%s%.9g", c ? "," : "", (double)m->device_vector[i * m->w_device + c]);
        cd_buf_puts(b, "]}");
    }
    cd_buf_puts(b, "],");
}

/* Header key "model"; the weights of members and uncertainty go to `blob`. */
static cdmpp_status put_model(cd_buf *b, const cd_model *m, cd_buf *blob, cdmpp_err *err) {
    char digest[65];
    cd_cols_digest(digest);
    cd_buf_putf(b, "{\"input_version\":%d,\"feature_digest\":\"%s\",\"log_range\":[%.17g,%.17g],", CD_INPUT_VERSION, digest,
                m->log_min, m->log_max);
    put_devices(b, m);
    cd_buf_puts(b, "\"kinds\":[");
    for (size_t k = 0; k < m->n_kind; k++) cd_buf_putf(b, "%s\"%s\"", k ? "," : "", cd_member_name(m->kind[k]));
    cd_buf_puts(b, "],\"members\":[");
    for (size_t k = 0; k < m->n_member; k++) {
        if (k) cd_buf_puts(b, ",");
        CD_TRY(cd_member_save(&m->member[k], b, blob, err));
    }
    cd_buf_puts(b, "],\"calib\":");
    CD_TRY(cd_calib_write(m->calib, b, blob, err));
    cd_buf_puts(b, "}");
    return CDMPP_OK;
}

static void put_file(cd_buf *out, const cd_buf *header, const cd_buf *blob) {
    const size_t start = out->n;
    cd_sha256 sum;
    char hex[SUM + 1];
    cd_buf_put(out, magic, 8);
    put_le(out, CD_MODEL_VERSION, 4);
    put_le(out, 0, 4);
    put_le(out, header->n, 8);
    put_le(out, blob->n, 8);
    cd_buf_put(out, header->p ? header->p : "", header->n);
    cd_buf_put(out, blob->p ? blob->p : "", blob->n);
    if (out->oom) return;
    cd_sha256_init(&sum);
    cd_sha256_add(&sum, out->p + start, out->n - start);
    cd_sha256_hex(&sum, hex);
    cd_buf_put(out, hex, SUM);
}

cdmpp_status cd_model_encode(const cd_model *m, const char *provenance, cd_buf *out, cdmpp_err *err) {
    cd_buf blob = {0}, header = {0};
    cd_buf_putf(&header, "{\"schema\":\"cdmpp.model\",\"schema_version\":%d,\"model\":", CD_MODEL_VERSION);
    cdmpp_status st = put_model(&header, m, &blob, err);
    cd_buf_putf(&header, "%s%s}", provenance[0] ? "," : "", provenance);
    if (!st && !header.oom && !blob.oom) put_file(out, &header, &blob);
    if (!st && (header.oom || blob.oom || out->oom)) st = CD_FAIL(err, ENOMEM, "model file of %zu bytes", blob.n);
    cd_buf_free(&blob);
    cd_buf_free(&header);
    return st;
}

/* ---- reading ---- */
typedef struct {
    const char *header, *blob;
    size_t n_header, n_blob;
    uint64_t version;
} frame;

static uint64_t get_le(const char *p, size_t n) {
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) v |= (uint64_t)(unsigned char)p[i] << (8 * i);
    return v;
}

/* Invariants (1)-(5), (8), (9). */
static cdmpp_status read_frame(const char *p, size_t n, frame *f, cdmpp_err *err) {
    char hex[SUM + 1];
    cd_sha256 sum;
    if (n < FIXED || memcmp(p, magic, 8) != 0) return CD_FAIL(err, EPARSE, "not a cdmpp model file");
    const uint64_t version = get_le(p + 8, 4), zero = get_le(p + 12, 4), h = get_le(p + 16, 8), b = get_le(p + 24, 8);
    if (version < 1 || version > CD_MODEL_VERSION)
        return CD_FAIL(err, EUNSUPPORTED, "expected a model file of version 1 to %d, found %" PRIu64, CD_MODEL_VERSION, version);
    if (n < FIXED + SUM || zero || h > n - FIXED - SUM || b != n - FIXED - SUM - h)
        return CD_FAIL(err, EPARSE, "expected %" PRIu64 " + %" PRIu64 " + %d bytes, found %zu: cut short or damaged", h, b,
                       FIXED + SUM, n);
    cd_sha256_init(&sum);
    cd_sha256_add(&sum, p, n - SUM);
    cd_sha256_hex(&sum, hex);
    if (memcmp(hex, p + n - SUM, SUM) != 0)
        return CD_FAIL(err, EPARSE, "checksum: expected %.12s..., found %.12s...: the file is damaged", p + n - SUM, hex);
    *f = (frame){p + FIXED, p + FIXED + h, (size_t)h, (size_t)b, version};
    return CDMPP_OK;
}

static cdmpp_status read_model(cd_model *m, const cd_json *root, const frame *f, cdmpp_err *err) {
    const cd_json *model;
    CD_TRY(cd_json_need(root, "model", &model, err));
    return cd_err_key(err, (f->version == 1 ? cd_model_read_v1 : cd_model_read_v2)(m, model, f->blob, f->n_blob, err), "model");
}

cdmpp_status cd_model_from_bytes(const void *p, size_t n, cd_model **out, cdmpp_err *err) {
    frame f;
    const cd_json *root;
    CD_TRY(read_frame(p, n, &f, err));
    cd_model *m = cd_calloc(1, sizeof *m);
    if (!m) return CD_FAIL(err, ENOMEM, "model");
    m->header = cd_str_dup(&m->arena, (cd_str){f.header, f.n_header});
    cdmpp_status st = m->header ? CDMPP_OK : CD_FAIL(err, ENOMEM, "model header");
    if (!st && strlen(m->header) != f.n_header) st = CD_FAIL(err, EPARSE, "header: NUL byte");
    if (!st) st = cd_err_key(err, cd_json_parse(&m->arena, m->header, f.n_header, &root, err), "header");
    if (!st) st = read_model(m, root, &f, err);
    if (st) cd_model_free(m);
    else *out = m;
    return st;
}

cdmpp_status cd_model_load(const char *path, cd_model **out, cdmpp_err *err) {
    char *data;
    size_t n;
    CD_TRY(cd_file_read(path, 0, &data, &n, err));
    const cdmpp_status st = cd_model_from_bytes(data, n, out, err);
    cd_free(data);
    return cd_err_at(err, st, path, 0);
}
