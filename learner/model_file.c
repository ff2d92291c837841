/* model_file -- the model file of model.h: writing and reading. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "features/cols.h"
#include "learner/model_int.h"

enum { FIXED = 32, SUM = 64, MAX_DEVICE = 4096 };
static const char magic[] = "CDMPPMDL";

static const char *form_name(cd_form f) { return f == CD_FORM_ROWS ? "rows" : "program"; }

/* ---- writing ---- */
static void put_le(cd_buf *b, uint64_t v, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char c = (char)(v >> (8 * i));
        cd_buf_put(b, &c, 1);
    }
}

static void put_header(cd_buf *b, const cd_model *m, const size_t *bytes, const char *provenance) {
    char digest[65];
    cd_cols_digest(digest);
    cd_buf_putf(b, "{\"schema\":\"cdmpp.model\",\"schema_version\":%d,\"model\":{\"kind\":\"xgboost\",\"input_version\":%d,",
                CD_MODEL_VERSION, CD_INPUT_VERSION);
    cd_buf_putf(b, "\"feature_digest\":\"%s\",\"log_range\":[%.17g,%.17g],\"devices\":[", digest, m->log_min, m->log_max);
    for (size_t i = 0; i < m->n_device; i++) {
        cd_buf_puts(b, i ? ",{\"name\":" : "{\"name\":");
        cd_buf_put_json_str(b, m->device[i], strlen(m->device[i]));
        cd_buf_putf(b, ",\"is_gpu\":%s}", m->device_is_gpu[i] ? "true" : "false");
    }
    cd_buf_puts(b, "],\"parts\":[");
    for (size_t k = 0; k < m->n_part; k++) {
        const cd_model_part *p = &m->part[k];
        cd_buf_putf(b, "%s{\"form\":\"%s\",\"weight\":%.17g,\"slope\":%.17g,\"bias\":%.17g,\"rounds\":%d,\"bytes\":%zu}", k ? "," : "",
                    form_name(p->form), p->weight, p->slope, p->bias, cd_gbt_rounds(p->gbt), bytes[k]);
    }
    cd_buf_putf(b, "]}%s%s}", provenance[0] ? "," : "", provenance);
}

cdmpp_status cd_model_encode(const cd_model *m, const char *provenance, cd_buf *out, cdmpp_err *err) {
    cd_buf trees = {0}, header = {0};
    size_t bytes[CD_MODEL_MAX_PART];
    cd_sha256 sum;
    char hex[SUM + 1];
    cdmpp_status st = CDMPP_OK;
    for (size_t k = 0, before = 0; !st && k < m->n_part; k++, before = trees.n) {
        st = cd_gbt_save(m->part[k].gbt, &trees, err);
        bytes[k] = trees.n - before;
    }
    if (!st) put_header(&header, m, bytes, provenance);
    const size_t start = out->n;
    cd_buf_put(out, magic, 8);
    put_le(out, CD_MODEL_VERSION, 4);
    put_le(out, 0, 4);
    put_le(out, header.n, 8);
    put_le(out, trees.n, 8);
    cd_buf_put(out, header.p ? header.p : "", header.n);
    cd_buf_put(out, trees.p ? trees.p : "", trees.n);
    if (!st && (out->oom || header.oom)) st = CD_FAIL(err, ENOMEM, "model file of %zu bytes", trees.n);
    cd_buf_free(&trees);
    cd_buf_free(&header);
    if (st) return st;
    cd_sha256_init(&sum);
    cd_sha256_add(&sum, out->p + start, out->n - start);
    cd_sha256_hex(&sum, hex);
    cd_buf_put(out, hex, SUM);
    return out->oom ? CD_FAIL(err, ENOMEM, "model file") : CDMPP_OK;
}

/* ---- reading ---- */
typedef struct {
    const char *header, *trees;
    size_t n_header, n_trees;
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
    if (version != CD_MODEL_VERSION)
        return CD_FAIL(err, EUNSUPPORTED, "expected model file version %d, found %" PRIu64, CD_MODEL_VERSION, version);
    if (n < FIXED + SUM || zero || h > n - FIXED - SUM || b != n - FIXED - SUM - h)
        return CD_FAIL(err, EPARSE, "expected %" PRIu64 " + %" PRIu64 " + %d bytes, found %zu: cut short or damaged", h, b,
                       FIXED + SUM, n);
    cd_sha256_init(&sum);
    cd_sha256_add(&sum, p, n - SUM);
    cd_sha256_hex(&sum, hex);
    if (memcmp(hex, p + n - SUM, SUM) != 0)
        return CD_FAIL(err, EPARSE, "checksum: expected %.12s..., found %.12s...: the file is damaged", p + n - SUM, hex);
    *f = (frame){p + FIXED, p + FIXED + h, (size_t)h, (size_t)b};
    return CDMPP_OK;
}

static cdmpp_status need(const cd_json *obj, const char *key, const cd_json **out, cdmpp_err *err) {
    *out = cd_json_get(obj, key);
    if (*out) return CDMPP_OK;
    return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected this key"), key);
}

static cdmpp_status real(const cd_json *obj, const char *key, double limit, double *out, cdmpp_err *err) {
    const cd_json *v;
    CD_TRY(need(obj, key, &v, err));
    CD_TRY(cd_err_key(err, cd_json_real(v, out, err), key));
    if (fabs(*out) <= limit) return CDMPP_OK;
    return cd_err_key(err, CD_FAIL(err, ERANGE, "expected a number in -%g..%g, found %g", limit, limit, *out), key);
}

static cdmpp_status check_digest(const cd_json *model, cdmpp_err *err) {
    const cd_json *v;
    int64_t version;
    cd_str have;
    char want[65];
    CD_TRY(need(model, "input_version", &v, err));
    CD_TRY(cd_json_int(v, 0, INT32_MAX, &version, err));
    if (version != CD_INPUT_VERSION)
        return CD_FAIL(err, EMODEL, "expected a model of input version %d, found %" PRId64 ": train it again", CD_INPUT_VERSION, version);
    CD_TRY(need(model, "feature_digest", &v, err));
    CD_TRY(cd_json_str(v, &have, err));
    cd_cols_digest(want);
    if (!cd_str_is(have, want))
        return CD_FAIL(err, EMODEL, "feature columns: this program makes %.16s..., the model was trained on %.*s...", want,
                       (int)(have.n < 16 ? have.n : 16), have.p);
    return CDMPP_OK;
}

static cdmpp_status read_devices(cd_model *m, const cd_json *model, cdmpp_err *err) {
    const cd_json *v, *d;
    CD_TRY(need(model, "devices", &v, err));
    CD_TRY(cd_json_arr(v, 1, &d, err));
    if (v->n > MAX_DEVICE) return CD_FAIL(err, ERANGE, "expected at most %d devices, found %u", MAX_DEVICE, v->n);
    m->device = CD_NEWN(&m->arena, const char *, v->n);
    m->device_is_gpu = CD_NEWN(&m->arena, uint8_t, v->n);
    if (!m->device || !m->device_is_gpu) return CD_FAIL(err, ENOMEM, "devices");
    for (; d; d = d->next) {
        const cd_json *name, *gpu;
        cd_str s;
        CD_TRY(need(d, "name", &name, err));
        CD_TRY(need(d, "is_gpu", &gpu, err));
        CD_TRY(cd_json_str(name, &s, err));
        if (gpu->kind != CD_JSON_BOOL) return CD_FAIL(err, ESCHEMA, "is_gpu: expected true or false");
        m->device_is_gpu[m->n_device] = gpu->u.i != 0;
        m->device[m->n_device] = cd_str_dup(&m->arena, s);
        if (!m->device[m->n_device++]) return CD_FAIL(err, ENOMEM, "devices");
    }
    return CDMPP_OK;
}

static cdmpp_status read_part(cd_model_part *p, const cd_json *v, frame *f, cdmpp_err *err) {
    const cd_json *form, *bytes;
    int64_t n;
    CD_TRY(need(v, "form", &form, err));
    CD_TRY(need(v, "bytes", &bytes, err));
    if (form->kind != CD_JSON_STR || !(cd_str_is(form->u.s, "rows") || cd_str_is(form->u.s, "program")))
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected \"rows\" or \"program\""), "form");
    p->form = cd_str_is(form->u.s, "rows") ? CD_FORM_ROWS : CD_FORM_PROGRAM;
    CD_TRY(real(v, "weight", 1, &p->weight, err));
    CD_TRY(real(v, "slope", 10, &p->slope, err));
    CD_TRY(real(v, "bias", 1e4, &p->bias, err));
    CD_TRY(cd_err_key(err, cd_json_int(bytes, 1, INT64_MAX, &n, err), "bytes"));
    if ((uint64_t)n > f->n_trees) return CD_FAIL(err, ESCHEMA, "expected at most %zu bytes of trees, found %" PRId64, f->n_trees, n);
    CD_TRY(cd_gbt_load(f->trees, (size_t)n, cd_input_width(p->form), &p->gbt, err));
    f->trees += n;
    f->n_trees -= (size_t)n;
    return CDMPP_OK;
}

static cdmpp_status read_parts(cd_model *m, const cd_json *model, frame *f, cdmpp_err *err) {
    const cd_json *v, *p;
    CD_TRY(need(model, "parts", &v, err));
    CD_TRY(cd_json_arr(v, 1, &p, err));
    if (v->n > CD_MODEL_MAX_PART) return CD_FAIL(err, ERANGE, "expected at most %d parts, found %u", CD_MODEL_MAX_PART, v->n);
    for (size_t i = 0; p; p = p->next, i++) {
        const cdmpp_status st = read_part(&m->part[i], p, f, err);
        if (st) return cd_err_key(err, cd_err_index(err, st, i), "parts");
        m->n_part++;
    }
    if (f->n_trees) return CD_FAIL(err, ESCHEMA, "%zu bytes behind the last part", f->n_trees);
    return CDMPP_OK;
}

static cdmpp_status read_model(cd_model *m, const cd_json *root, frame *f, cdmpp_err *err) {
    const cd_json *model, *range, *lo;
    CD_TRY(need(root, "model", &model, err));
    CD_TRY(check_digest(model, err));
    CD_TRY(need(model, "log_range", &range, err));
    CD_TRY(cd_json_arr(range, 2, &lo, err));
    CD_TRY(cd_json_real(lo, &m->log_min, err));
    CD_TRY(cd_json_real(lo->next, &m->log_max, err));
    /* exp() of anything inside must be a finite number above 0 */
    if (!(m->log_min >= -700 && m->log_min <= m->log_max && m->log_max <= 700)) return CD_FAIL(err, ERANGE, "log_range");
    CD_TRY(read_devices(m, model, err));
    return read_parts(m, model, f, err);
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
    if (!st) st = cd_err_key(err, read_model(m, root, &f, err), "model");
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
