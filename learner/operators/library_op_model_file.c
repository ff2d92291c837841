/* The model file of library operators: the same container as other models, with "kind":"operators"
 * in the header and the boosters as weights. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "learner/operators/operators.h"

/* Intervals in a model's header, and the operators and types that it was trained on. */

/* Entries with shifts of devices have words of their own: programs before would read them as
 * narrower ones. */
#define HELD CD_LIBRARY_OP_HELD_NAMES "|large-shift|device-shift"
enum { SHIFTS = 2 };

/* ---- writing ---- */
static void put_devices(cd_buf *b, const cd_library_op_spread *s) {
    cd_buf_puts(b, ",");
    cd_json_put_reals(b, "between", s->between, s->n_knot, 9);
    cd_buf_putf(b, ",\"freedom\":%.9g", s->freedom);
    if (s->held != CD_LIBRARY_OP_HELD_DEVICE) return;
    cd_buf_putf(b, ",\"far\":%.9g,", s->far);
    cd_json_put_reals(b, "other", s->other, 2, 9);
    cd_buf_putf(b, ",\"other_freedom\":%.9g", s->other_freedom);
}

static void put_one(cd_buf *b, const cd_library_op_model *m, const cd_library_op_spread *s) {
    const cd_str held = cd_enum_names_at(HELD, (int)s->held + (s->freedom > 0 ? SHIFTS : 0));
    cd_buf_putf(b, "{\"held\":\"%.*s\",\"classes\":[", (int)held.n, held.p);
    for (size_t c = 0, n = 0; c < CD_N_LIBRARY_OP_CLASS; c++)
        if (s->classes >> c & 1)
            cd_buf_putf(b, "%s\"%s\"", n++ ? "," : "",
                        cd_library_op_class_name((cd_library_op_class)c));
    cd_buf_puts(b, "],\"device\":");
    if (s->device < m->n_device)
        cd_buf_put_json_str(b, m->device[s->device].is.name, strlen(m->device[s->device].is.name));
    else cd_buf_puts(b, "null");
    cd_buf_putf(b, ",\"rows\":%" PRIu64 ",\"devices\":%" PRIu64 ",", s->n_row, s->n_device);
    cd_json_put_reals(b, "at", s->at, s->n_knot, 9);
    cd_buf_puts(b, ",");
    cd_json_put_reals(b, "scale", s->scale, s->n_knot, 9);
    cd_buf_puts(b, ",");
    cd_json_put_reals(b, "times", s->times, CD_LIBRARY_OP_LEVELS, 9);
    cd_buf_putf(b, ",\"shared\":%.9g", s->shared);
    if (s->freedom > 0) put_devices(b, s);
    cd_buf_puts(b, "}");
}

/* Append the members "kinds", "dtypes" and "intervals", each with a comma behind it. */
static void library_op_spread_put(cd_buf *b, const cd_library_op_model *m) {
    cd_buf_puts(b, "\"kinds\":[");
    for (size_t k = 0, n = 0; k < CD_N_LIBRARY_OP_KIND; k++)
        if (m->kind[k])
            cd_buf_putf(b, "%s\"%s\"", n++ ? "," : "",
                        cd_library_op_kind_name((cd_library_op_kind)k));
    cd_buf_puts(b, "],\"dtypes\":[");
    for (size_t k = 0, n = 0; k < CD_N_LIBRARY_OP_DTYPE; k++)
        if (m->dtype[k])
            cd_buf_putf(b, "%s\"%s\"", n++ ? "," : "",
                        cd_library_op_dtype_name((cd_library_op_dtype)k));
    cd_buf_puts(b, "],\"intervals\":[");
    for (size_t i = 0; i < m->n_spread; i++) {
        if (i) cd_buf_puts(b, ",");
        put_one(b, m, &m->spread[i]);
    }
    cd_buf_puts(b, "],");
}

/* ---- reading ---- */
/* Marks the names of a list; name_of gives each number's name. */
static cdmpp_status read_names(const cd_json *list, const char *(*name_of)(size_t), size_t n,
                               bool *mark, cdmpp_err *err) {
    const cd_json *v;
    CD_TRY(cd_json_arr(list, 0, &v, err));
    for (; v; v = v->next) {
        cd_str s;
        size_t k = 0;
        CD_TRY(cd_json_str(v, &s, err));
        while (k < n && !cd_str_is(s, name_of(k))) k++;
        if (k == n) return CD_FAIL(err, ESCHEMA, "unknown name '%.*s'", cd_str_shown(s, 40), s.p);
        mark[k] = true;
    }
    return CDMPP_OK;
}

static const char *kind_name(size_t k) { return cd_library_op_kind_name((cd_library_op_kind)k); }
static const char *class_name(size_t k) { return cd_library_op_class_name((cd_library_op_class)k); }
static const char *dtype_name(size_t k) { return cd_library_op_dtype_name((cd_library_op_dtype)k); }

static cdmpp_status read_device_interval(const cd_library_op_model *m, const cd_json *v,
                                         uint32_t *out, cdmpp_err *err) {
    const cd_json *device;
    cd_str name;
    *out = CD_LIBRARY_OP_ANY_DEVICE;
    CD_TRY(cd_json_need(v, "device", &device, err));
    if (device->kind == CD_JSON_NULL) return CDMPP_OK;
    CD_TRY(cd_err_key(err, cd_json_str(device, &name, err), "device"));
    for (uint32_t k = 0; k < m->n_device; k++)
        if (cd_str_is(name, m->device[k].is.name)) {
            *out = k;
            return CDMPP_OK;
        }
    return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected a device of the model"), "device");
}

static cdmpp_status read_devices_interval(const cd_json *v, cd_json_order order,
                                          cd_library_op_spread *s, cdmpp_err *err) {
    size_t n;
    CD_TRY(cd_json_need_reals(v, "between", 1, CD_LIBRARY_OP_KNOTS, 1e-9, 100, order, s->between,
                              &n, err));
    if (n != s->n_knot)
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected as many numbers as \"at\" has"),
                          "between");
    CD_TRY(cd_json_need_real(v, "freedom", 1, 1e9, &s->freedom, err));
    if (s->held != CD_LIBRARY_OP_HELD_DEVICE) return CDMPP_OK;
    CD_TRY(cd_json_need_real(v, "far", 0, 1e9, &s->far, err));
    CD_TRY(cd_json_need_reals(v, "other", 2, 2, 1, 1e6, CD_JSON_ANY, s->other, &n, err));
    return cd_json_need_real(v, "other_freedom", 1, 1e9, &s->other_freedom, err);
}

static cdmpp_status read_one(const cd_library_op_model *m, const cd_json *v,
                             cd_library_op_spread *s, cdmpp_err *err) {
    bool class[CD_N_LIBRARY_OP_CLASS] = {false};
    const cd_json *list;
    size_t n;
    int held;
    CD_TRY(cd_json_need_word(v, "held", HELD, &held, err));
    const bool shifts = held > CD_LIBRARY_OP_HELD_DEVICE;
    s->held = (cd_library_op_held)(shifts ? held - SHIFTS : held);
    CD_TRY(cd_json_need(v, "classes", &list, err));
    CD_TRY(cd_err_key(err, read_names(list, class_name, CD_N_LIBRARY_OP_CLASS, class, err),
                      "classes"));
    for (size_t c = 0; c < CD_N_LIBRARY_OP_CLASS; c++) s->classes |= (uint32_t) class[c] << c;
    CD_TRY(read_device_interval(m, v, &s->device, err));
    CD_TRY(cd_json_need_count(v, "rows", &s->n_row, err));
    CD_TRY(cd_json_need_count(v, "devices", &s->n_device, err));
    CD_TRY(cd_json_need_reals(v, "at", 1, CD_LIBRARY_OP_KNOTS, -100, 100, CD_JSON_RISING, s->at,
                              &s->n_knot, err));
    /* it goes on beyond the last */
    const cd_json_order order =
        s->held == CD_LIBRARY_OP_HELD_LARGE && m->sizes_known ? CD_JSON_NOT_FALLING : CD_JSON_ANY;
    CD_TRY(cd_json_need_reals(v, "scale", 1, CD_LIBRARY_OP_KNOTS, 1e-9, 100, order, s->scale, &n,
                              err));
    if (n != s->n_knot)
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected as many numbers as \"at\" has"),
                          "scale");
    CD_TRY(cd_json_need_reals(v, "times", 1, CD_LIBRARY_OP_LEVELS, 1e-9, 1e6, CD_JSON_NOT_FALLING,
                              s->times, &n, err));
    if (n != CD_LIBRARY_OP_LEVELS)
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected %d numbers", CD_LIBRARY_OP_LEVELS),
                          "times");
    CD_TRY(cd_json_need_real(v, "shared", 0, 1, &s->shared, err));
    return shifts ? read_devices_interval(v, order, s, err) : CDMPP_OK;
}

static cdmpp_status read_intervals(cd_library_op_model *m, const cd_json *list, cdmpp_err *err) {
    const cd_json *v;
    CD_TRY(cd_json_arr(list, 0, &v, err));
    if (list->n > CD_LIBRARY_OP_MAX_SPREADS)
        return CD_FAIL(err, ERANGE, "expected at most %d, found %u", CD_LIBRARY_OP_MAX_SPREADS,
                       list->n);
    m->spread = CD_NEWN(&m->arena, cd_library_op_spread, (size_t)list->n + 1);
    if (!m->spread) return CD_FAIL(err, ENOMEM, "%u intervals", list->n);
    for (size_t i = 0; v; v = v->next, i++) {
        cd_library_op_spread *s = &m->spread[m->n_spread];
        *s = (cd_library_op_spread){0};
        const cdmpp_status st = read_one(m, v, s, err);
        if (st) return cd_err_index(err, st, i);
        /* else its scale depends on the time */
        if (s->held != CD_LIBRARY_OP_HELD_LARGE || m->sizes_known) m->n_spread++;
    }
    return CDMPP_OK;
}

/* Older files do not say: their tables were float32, and a class that was trained may have had all
 * of its operators. */
static void assume(cd_library_op_model *m) {
    m->dtype[CD_LIBRARY_OP_DTYPE_F32] = true;
    for (size_t k = 0; k < CD_N_LIBRARY_OP_KIND; k++)
        m->kind[k] = m->largest[cd_library_op_kind_class((cd_library_op_kind)k)][0] > 0;
}

/* Fill kind, dtype and spread of a model whose devices and largest rows are read. Errors: ESCHEMA,
 * ERANGE, ENOMEM. */
static cdmpp_status library_op_spread_read(cd_library_op_model *m, const cd_json *model,
                                           cdmpp_err *err) {
    const cd_json *kinds = cd_json_get(model, "kinds"), *dtypes = cd_json_get(model, "dtypes"),
                  *list = cd_json_get(model, "intervals");
    if (!kinds || !dtypes) assume(m);
    else {
        CD_TRY(cd_err_key(err, read_names(kinds, kind_name, CD_N_LIBRARY_OP_KIND, m->kind, err),
                          "kinds"));
        CD_TRY(cd_err_key(err, read_names(dtypes, dtype_name, CD_N_LIBRARY_OP_DTYPE, m->dtype, err),
                          "dtypes"));
    }
    return list ? cd_err_key(err, read_intervals(m, list, err), "intervals") : CDMPP_OK;
}

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

/* Hex digest of version, names and order of the features. */
static void library_op_feature_digest(char out[65]) {
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
    library_op_feature_digest(digest);
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
    library_op_spread_put(b, m);
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
    library_op_feature_digest(want);
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
    CD_TRY(library_op_spread_read(m, model, err));
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
