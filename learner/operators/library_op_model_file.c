/* The model file of library operators: the same container as other models, with "kind":"operators"
 * in the header and the boosters as weights. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "learner/operators/library_op_model_internal.h"

enum { MAX_DEVICE = 4096 };

static const struct {
    const char *name;
    size_t offset;
} numbers[] = {
#define X(key, low, high, unit, meaning) {#key, offsetof(cd_device, key)},
#include "features/device/device_keys.def"
};
enum { N_NUMBER = sizeof numbers / sizeof *numbers };

/* Keys that files of earlier versions lack. */
static bool is_later(size_t offset) {
    static const size_t later[] = {
        offsetof(cd_device, core_threads),     offsetof(cd_device, core_registers),
        offsetof(cd_device, thread_registers), offsetof(cd_device, core_blocks),
        offsetof(cd_device, bf16_tflops),      offsetof(cd_device, fp64_gflops),
        offsetof(cd_device, fp8_tflops),       offsetof(cd_device, int8_tops),
        offsetof(cd_device, fp4_tflops),       offsetof(cd_device, link_gb_s)};
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (offset == later[i]) return true;
    return false;
}

void cd_library_op_feature_digest(char out[65]) {
    cd_sha256 h;
    const char version[] = {'0' + CD_LIBRARY_OP_FEATURE_VERSION, '\n'};
    cd_sha256_init(&h);
    cd_sha256_add(&h, version, sizeof version);
    for (size_t i = 0; i < CD_LIBRARY_OP_N_FEATURE; i++) {
        cd_sha256_add(&h, cd_library_op_feature_name(i), strlen(cd_library_op_feature_name(i)));
        cd_sha256_add(&h, "\n", 1);
    }
    cd_sha256_hex(&h, out);
}

/* ---- writing ---- */
static void put_device(cd_buf *b, const cd_library_op_model_device *d) {
    cd_buf_puts(b, "{\"name\":");
    cd_buf_put_json_str(b, d->is.name, strlen(d->is.name));
    cd_buf_puts(b, ",\"classes\":[");
    for (size_t c = 0, n = 0; c < CD_N_LIBRARY_OP_CLASS; c++)
        if (d->class[c])
            cd_buf_putf(b, "%s\"%s\"", n++ ? "," : "",
                        cd_library_op_class_name((cd_library_op_class)c));
    cd_buf_putf(b, "],\"kind\":\"%s\"", cd_device_kind_name(d->is.kind));
    for (size_t i = 0; i < N_NUMBER; i++)
        cd_buf_putf(b, ",\"%s\":%.17g", numbers[i].name,
                    *(const double *)((const char *)&d->is + numbers[i].offset));
    cd_buf_puts(b, "}");
}

/* Members in the order of family and part; reading relies on it. */
static void put_sizes(cd_buf *b, const cd_library_op_model *m) {
    cd_buf_puts(b, "\"sizes\":[");
    for (size_t i = 0; i < CD_N_LIBRARY_OP_CLASS; i++)
        for (size_t k = 1; k < CD_LIBRARY_OP_N_SIZE; k++)
            cd_buf_putf(b, "%s%.17g%s",
                        k > 1 ? ","
                        : i   ? ",["
                              : "[",
                        m->largest[i][k], k + 1 < CD_LIBRARY_OP_N_SIZE ? "" : "]");
    cd_buf_puts(b, "],");
}

static void put_header(cd_buf *b, const cd_library_op_model *m,
                       const size_t bytes[CD_LIBRARY_OP_N_FAMILY][2], const char *provenance) {
    char digest[65];
    cd_library_op_feature_digest(digest);
    cd_buf_putf(b,
                "{\"schema\":\"cdmpp.model\",\"schema_version\":%d,\"model\":{\"kind\":"
                "\"operators\",\"feature_version\":%d,"
                "\"feature_digest\":\"%s\",\"devices\":[",
                CD_CONTAINER_MODEL_VERSION, CD_LIBRARY_OP_FEATURE_VERSION, digest);
    for (size_t i = 0; i < m->n_device; i++) {
        if (i) cd_buf_puts(b, ",");
        put_device(b, &m->device[i]);
    }
    cd_buf_puts(b, "],\"largest\":[");
    for (size_t i = 0; i < CD_N_LIBRARY_OP_CLASS; i++)
        cd_buf_putf(b, "%s%.17g", i ? "," : "", m->largest[i][0]);
    cd_buf_puts(b, "],");
    if (isfinite(m->largest[0][1])) put_sizes(b, m); /* a file without them was read */
    cd_library_op_spread_put(b, m);
    cd_buf_puts(b, "\"parts\":[");
    for (size_t f = 0, n = 0; f < CD_LIBRARY_OP_N_FAMILY; f++)
        for (size_t s = 0; s < 2; s++)
            if (m->part[f][s].gbt)
                cd_buf_putf(
                    b,
                    "%s{\"family\":\"%s\",\"seen\":%s,\"bias\":%.17g,\"rounds\":%d,\"bytes\":%zu}",
                    n++ ? "," : "", cd_library_op_family_name((cd_library_op_family)f),
                    s ? "true" : "false", m->part[f][s].bias, cd_xgb_rounds(m->part[f][s].gbt),
                    bytes[f][s]);
    cd_buf_putf(b, "]}%s}", provenance);
}

/* Trees first, for the header holds their sizes. */
cdmpp_status cd_library_op_model_encode(const cd_library_op_model *m, const char *provenance,
                                        cd_buf *out, cdmpp_err *err) {
    cd_buf trees = {0}, header = {0};
    size_t bytes[CD_LIBRARY_OP_N_FAMILY][2] = {{0}};
    cdmpp_status st = CDMPP_OK;
    for (size_t f = 0; f < CD_LIBRARY_OP_N_FAMILY; f++)
        for (size_t s = 0; s < 2; s++) {
            const size_t before = trees.n;
            if (!st && m->part[f][s].gbt) st = cd_xgb_save(m->part[f][s].gbt, &trees, err);
            bytes[f][s] = trees.n - before;
        }
    if (!st) put_header(&header, m, (const size_t(*)[2])bytes, provenance);
    if (!st) st = cd_container_put(CD_CONTAINER_MODEL, out, &header, &trees, err);
    cd_buf_free(&trees);
    cd_buf_free(&header);
    return st;
}

/* ---- reading ---- */
static cdmpp_status family(cd_str s, size_t *out, cdmpp_err *err) {
    for (*out = 0; *out < CD_LIBRARY_OP_N_FAMILY; ++*out)
        if (cd_str_is(s, cd_library_op_family_name((cd_library_op_family)*out))) return CDMPP_OK;
    return CD_FAIL(err, ESCHEMA, "unknown family '%.*s'", cd_str_shown(s, 40), s.p);
}

static cdmpp_status class_of(cd_str s, size_t *out, cdmpp_err *err) {
    for (*out = 0; *out < CD_N_LIBRARY_OP_CLASS; ++*out)
        if (cd_str_is(s, cd_library_op_class_name((cd_library_op_class)*out))) return CDMPP_OK;
    return CD_FAIL(err, ESCHEMA, "unknown class '%.*s'", cd_str_shown(s, 40), s.p);
}

/* The classes name what the device was trained on; a class that is unknown is an error, for an
 * answer would depend on it. */
static cdmpp_status read_device(cd_library_op_model *m, const cd_json *v,
                                cd_library_op_model_device *d, cdmpp_err *err) {
    cd_str name;
    int kind;
    const cd_json *classes, *c = NULL;
    CD_TRY(cd_json_need_str(v, "name", &name, err));
    CD_TRY(cd_json_need_word(v, "kind", CD_DEVICE_KINDS, &kind, err));
    if (kind == CD_DEVICE_CPU)
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected \"gpu\" or \"npu\""), "kind");
    d->is.kind = (cd_device_kind)kind;
    d->is.name = cd_str_dup(&m->arena, name);
    if (!d->is.name) return CD_FAIL(err, ENOMEM, "device name");
    CD_TRY(cd_json_need(v, "classes", &classes, err));
    CD_TRY(cd_err_key(err, cd_json_arr(classes, 0, &c, err), "classes"));
    for (; c; c = c->next) {
        cd_str s;
        size_t k;
        CD_TRY(cd_err_key(err, cd_json_str(c, &s, err), "classes"));
        CD_TRY(cd_err_key(err, class_of(s, &k, err), "classes"));
        d->class[k] = true;
    }
    for (size_t i = 0; i < N_NUMBER; i++) {
        double *to = (double *)((char *)&d->is + numbers[i].offset);
        *to = CD_DEVICE_UNKNOWN;
        if (is_later(numbers[i].offset) && !cd_json_get(v, numbers[i].name)) continue;
        CD_TRY(cd_json_need_real(v, numbers[i].name, CD_DEVICE_UNKNOWN, 1e12, to, err));
    }
    return CDMPP_OK;
}

static cdmpp_status read_devices(cd_library_op_model *m, const cd_json *model, cdmpp_err *err) {
    const cd_json *list, *v;
    CD_TRY(cd_json_need(model, "devices", &list, err));
    CD_TRY(cd_json_arr(list, 1, &v, err));
    if (list->n > MAX_DEVICE)
        return CD_FAIL(err, ERANGE, "expected at most %d devices, found %u", MAX_DEVICE, list->n);
    m->device = CD_NEWN(&m->arena, cd_library_op_model_device, list->n);
    if (!m->device) return CD_FAIL(err, ENOMEM, "%u devices", list->n);
    for (; v; v = v->next, m->n_device++) {
        const cdmpp_status st = read_device(m, v, &m->device[m->n_device], err);
        if (st) return cd_err_key(err, cd_err_index(err, st, m->n_device), "devices");
    }
    return CDMPP_OK;
}

/* The trees' width must be that of the features, or they would read beyond them. */
static cdmpp_status read_part(cd_library_op_model *m, const cd_json *v, cd_str *weights,
                              cdmpp_err *err) {
    cd_str name;
    const cd_json *seen, *size;
    uint8_t column[CD_LIBRARY_OP_N_FEATURE];
    int64_t bytes;
    size_t f;
    CD_TRY(cd_json_need_str(v, "family", &name, err));
    CD_TRY(cd_err_key(err, family(name, &f, err), "family"));
    CD_TRY(cd_json_need(v, "seen", &seen, err));
    if (seen->kind != CD_JSON_BOOL)
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected true or false"), "seen");
    cd_library_op_model_part *p = &m->part[f][seen->u.i != 0];
    if (p->gbt) return CD_FAIL(err, ESCHEMA, "a second part of this family");
    CD_TRY(cd_json_need_real(v, "bias", -100, 100, &p->bias, err));
    CD_TRY(cd_json_need(v, "bytes", &size, err));
    CD_TRY(cd_err_key(err, cd_json_int(size, 1, (int64_t)weights->n, &bytes, err), "bytes"));
    const size_t width =
        cd_library_op_feature_columns((cd_library_op_family)f, seen->u.i != 0, column);
    CD_TRY(cd_xgb_load(weights->p, (size_t)bytes, width, &p->gbt, err));
    weights->p += bytes;
    weights->n -= (size_t)bytes;
    return CDMPP_OK;
}

static cdmpp_status read_parts(cd_library_op_model *m, const cd_json *model, cd_str weights,
                               cdmpp_err *err) {
    const cd_json *list, *v;
    CD_TRY(cd_json_need(model, "parts", &list, err));
    CD_TRY(cd_json_arr(list, 1, &v, err));
    for (size_t i = 0; v; v = v->next, i++) {
        const cdmpp_status st = read_part(m, v, &weights, err);
        if (st) return cd_err_key(err, cd_err_index(err, st, i), "parts");
    }
    return weights.n ? CD_FAIL(err, ESCHEMA, "%zu bytes behind the last part", weights.n)
                     : CDMPP_OK;
}

static cdmpp_status check_kind(const cd_json *model, cdmpp_err *err) {
    const cd_json *kind = cd_json_get(model, "kind");
    cd_str have;
    char want[65];
    if (!kind || kind->kind != CD_JSON_STR || !cd_str_is(kind->u.s, "operators"))
        return CD_FAIL(err, EMODEL,
                       "a model of programs: cdmpp-predict --tasks, cdmpp-replay, cdmpp-partition "
                       "and cdmpp-tune read it; library operators need "
                       "a model that cdmpp-train makes from their tables (data.kind: operators)");
    CD_TRY(cd_json_need_str(model, "feature_digest", &have, err));
    cd_library_op_feature_digest(want);
    if (cd_str_is(have, want)) return CDMPP_OK;
    return CD_FAIL(err, EMODEL,
                   "operator features: this program makes %.12s..., the model was trained on "
                   "%.*s...: train it again",
                   want, cd_str_shown(have, 12), have.p);
}

static cdmpp_status read_sizes(cd_library_op_model *m, const cd_json *list, cdmpp_err *err) {
    const cd_json *v, *size;
    CD_TRY(cd_json_arr(list, CD_N_LIBRARY_OP_CLASS, &v, err));
    for (size_t i = 0; i < CD_N_LIBRARY_OP_CLASS; i++, v = v->next) {
        CD_TRY(cd_json_arr(v, CD_LIBRARY_OP_N_SIZE - 1, &size, err));
        for (size_t k = 1; k < CD_LIBRARY_OP_N_SIZE; k++, size = size->next)
            CD_TRY(cd_json_real(size, &m->largest[i][k], err));
    }
    return CDMPP_OK;
}

static cdmpp_status read_largest(cd_library_op_model *m, const cd_json *model, cdmpp_err *err) {
    const cd_json *list, *v, *sizes = cd_json_get(model, "sizes");
    CD_TRY(cd_json_need(model, "largest", &list, err));
    CD_TRY(cd_json_arr(list, CD_N_LIBRARY_OP_CLASS, &v, err));
    for (size_t i = 0; i < CD_N_LIBRARY_OP_CLASS; i++, v = v->next) {
        CD_TRY(cd_json_real(v, &m->largest[i][0], err));
        for (size_t k = 1; k < CD_LIBRARY_OP_N_SIZE; k++) m->largest[i][k] = INFINITY;
    }
    m->sizes_known = sizes != NULL;
    return sizes ? cd_err_key(err, read_sizes(m, sizes, err), "sizes") : CDMPP_OK;
}

static cdmpp_status read_body(cd_library_op_model *m, const cd_json *model, cd_str weights,
                              cdmpp_err *err) {
    CD_TRY(check_kind(model, err));
    CD_TRY(read_devices(m, model, err));
    CD_TRY(read_largest(m, model, err));
    CD_TRY(cd_library_op_spread_read(m, model, err));
    return read_parts(m, model, weights, err);
}

static cdmpp_status read_model(cd_library_op_model *m, const cd_container *f, cdmpp_err *err) {
    const cd_json *root, *model;
    CD_TRY(cd_container_header(f, &m->arena, &m->header, &root, err));
    CD_TRY(cd_json_need(root, "model", &model, err));
    return cd_err_key(err, read_body(m, model, f->weights, err), "model");
}

cdmpp_status cd_library_op_model_from_bytes(const void *p, size_t n, cd_library_op_model **out,
                                            cdmpp_err *err) {
    cd_container f;
    CD_TRY(cd_container_get(CD_CONTAINER_MODEL, p, n, &f, err));
    cd_library_op_model *m = cd_mem_zalloc(1, sizeof *m);
    if (!m) return CD_FAIL(err, ENOMEM, "model");
    const cdmpp_status st = read_model(m, &f, err);
    if (st) cd_library_op_model_free(m);
    else *out = m;
    return st;
}

cdmpp_status cd_library_op_model_load(const char *path, cd_library_op_model **out, cdmpp_err *err) {
    char *data;
    size_t n;
    CD_TRY(cd_file_read(path, 0, &data, &n, err));
    const cdmpp_status st = cd_library_op_model_from_bytes(data, n, out, err);
    cd_mem_free(data);
    return cd_err_at(err, st, path, 0);
}
