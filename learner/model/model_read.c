/* Header key "model" of a model file, versions 1 to 3.
 *
 * The checksum agreed before anything here runs, but a file may have been made
 * by hand: every number is checked, every size compared with what is left. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "features/rows/rows.h"
#include "learner/model/model_internal.h"

/* A calibration as JSON and the boosters' bytes, there and back bit for bit.
 *
 *   {"level","point","weight":[..],"shift","tilt","q":[low, mid, high],
 *    "sigma":{"base":[..],"bytes":[..],"slope","scale","shrink","raw":[min, max]},
 *    "range":{"low":[..],"high":[..],"limit"},
 *    "fit":{"n","n_group","n_independent","mape_median","mape_point","decile_ratio",
 *           "decile_ratio_log","flagged"}} */

enum { MAX_WIDTH = 1 << 16 };

/* ---- writing ---- */
static void put_floats(cd_buf *b, const char *key, const float *v, size_t n) {
    cd_buf_putf(b, "\"%s\":[", key);
    for (size_t i = 0; i < n; i++) cd_buf_putf(b, "%s%.9g", i ? "," : "", (double)v[i]);
    cd_buf_puts(b, "]");
}

static void put_sigma(cd_buf *b, const cd_calibration *c, const size_t *bytes) {
    const double raw[2] = {c->raw_min, c->raw_max};
    cd_buf_puts(b, ",\"sigma\":{");
    cd_json_put_reals(b, "base", c->base, c->n_sigma, 17);
    cd_buf_puts(b, ",\"bytes\":[");
    for (size_t f = 0; f < c->n_sigma; f++) cd_buf_putf(b, "%s%zu", f ? "," : "", bytes[f]);
    cd_buf_putf(b, "],\"slope\":%.17g,\"scale\":%.17g,\"shrink\":%.17g,", c->slope, c->scale,
                c->shrink);
    cd_json_put_reals(b, "raw", raw, 2, 17);
    cd_buf_puts(b, "}");
}

static void put_fit(cd_buf *b, const cd_calibration_info *i) {
    cd_buf_putf(b,
                ",\"fit\":{\"n\":%zu,\"n_group\":%zu,\"n_independent\":%.17g,\"mape_median\":%.17g,"
                "\"mape_point\":%.17g,",
                i->n, i->n_group, i->n_independent, i->mape_median, i->mape_point);
    cd_buf_putf(b, "\"decile_ratio\":%.17g,\"decile_ratio_log\":%.17g,\"flagged\":%.17g}}",
                i->decile_ratio, i->decile_ratio_log, i->flagged);
}

/* The boosters' bytes go first, because JSON holds their lengths. */
cdmpp_status cd_calibration_write(const cd_calibration *c, cd_buf *json, cd_buf *blob,
                                  cdmpp_err *err) {
    const double q[3] = {c->q_low, c->q_mid, c->q_high};
    const cd_str point = cd_enum_names_at(CD_CALIBRATION_POINTS, (int)c->point);
    size_t bytes[CD_CALIBRATION_MAX_SIGMA];
    for (size_t f = 0; f < c->n_sigma; f++) {
        const size_t before = blob->n;
        CD_TRY(cd_xgb_save(c->sigma[f], blob, err));
        bytes[f] = blob->n - before;
    }
    cd_buf_putf(json, "{\"level\":%.17g,\"point\":\"%.*s\",", c->level, (int)point.n, point.p);
    cd_json_put_reals(json, "weight", c->weight, c->n_kind, 17);
    cd_buf_putf(json, ",\"shift\":%.17g,\"tilt\":%.17g,", c->shift, c->tilt);
    cd_json_put_reals(json, "q", q, 3, 17);
    put_sigma(json, c, bytes);
    cd_buf_puts(json, ",\"range\":{");
    put_floats(json, "low", c->range, c->width);
    cd_buf_puts(json, ",");
    put_floats(json, "high", c->range + c->width, c->width);
    cd_buf_putf(json, ",\"limit\":%.17g}", c->outside_limit);
    put_fit(json, &c->info);
    return json->oom || blob->oom ? CD_FAIL(err, ENOMEM, "calibration") : CDMPP_OK;
}

/* ---- reading ---- */
/* Limits refuse what a fit cannot have given: the file may come from anywhere. */
static cdmpp_status read_numbers(cd_calibration *c, const cd_json *v, cdmpp_err *err) {
    double q[3], sum = 0;
    size_t n = 0;
    int point;
    CD_TRY(cd_json_need_real(v, "level", 0.5, 0.99, &c->level, err));
    CD_TRY(cd_json_need_word(v, "point", CD_CALIBRATION_POINTS, &point, err));
    c->point = (cd_calibration_point)point;
    CD_TRY(cd_json_need_reals(v, "weight", 1, CD_CALIBRATION_MAX_KIND, -1, 1, CD_JSON_ANY,
                              c->weight, &c->n_kind, err));
    for (size_t k = 0; k < c->n_kind; k++) sum += c->weight[k] >= 0 ? c->weight[k] : (double)NAN;
    if (!(fabs(sum - 1) < 1e-9))
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE, "expected weights that add up to 1, found %g", sum),
                          "weight");
    CD_TRY(cd_json_need_real(v, "shift", -10, 10, &c->shift, err));
    CD_TRY(cd_json_need_real(v, "tilt", 0, 10, &c->tilt, err));
    CD_TRY(cd_json_need_reals(v, "q", 3, 3, -1e4, 1e4, CD_JSON_ANY, q, &n, err));
    if (!(q[0] <= q[1] && q[1] <= q[2]))
        return cd_err_key(err, CD_FAIL(err, ERANGE, "expected rising numbers"), "q");
    c->q_low = q[0];
    c->q_mid = q[1];
    c->q_high = q[2];
    return CDMPP_OK;
}

/* raw and scale are such that sigma is a finite number above 0. */
static cdmpp_status read_form(cd_calibration *c, const cd_json *v, cdmpp_err *err) {
    double raw[2];
    size_t n = 0;
    CD_TRY(cd_json_need_reals(v, "base", 0, CD_CALIBRATION_MAX_SIGMA, -100, 100, CD_JSON_ANY,
                              c->base, &n, err));
    CD_TRY(cd_json_need_real(v, "slope", 0, 1e6, &c->slope, err));
    CD_TRY(cd_json_need_real(v, "scale", 1e-12, 1e12, &c->scale, err));
    CD_TRY(cd_json_need_real(v, "shrink", 0.1, 1, &c->shrink, err));
    CD_TRY(cd_json_need_reals(v, "raw", 2, 2, -1e30, 1e30, CD_JSON_ANY, raw, &n, err));
    if (!(raw[0] > 1e-30 && raw[0] <= raw[1]))
        return cd_err_key(err, CD_FAIL(err, ERANGE, "expected two rising numbers above 0"), "raw");
    c->raw_min = raw[0];
    c->raw_max = raw[1];
    return CDMPP_OK;
}

/* The lengths say where each booster ends; together they must be all bytes there are. */
static cdmpp_status read_trees(cd_calibration *c, const cd_json *v, const char *p, size_t n,
                               cdmpp_err *err) {
    const cd_json *base, *bytes, *x;
    CD_TRY(cd_json_need(v, "base", &base, err));
    CD_TRY(cd_json_need(v, "bytes", &bytes, err));
    CD_TRY(cd_err_key(err, cd_json_arr(bytes, 0, &x, err), "bytes"));
    if (bytes->n != base->n)
        return cd_err_key(
            err, CD_FAIL(err, ESCHEMA, "expected %u counts, found %u", base->n, bytes->n), "bytes");
    for (; x; x = x->next, c->n_sigma++) {
        int64_t k;
        CD_TRY(cd_err_key(err, cd_json_int(x, 1, INT64_MAX, &k, err), "bytes"));
        if ((uint64_t)k > n)
            return cd_err_key(
                err,
                CD_FAIL(err, ESCHEMA, "expected at most %zu bytes, found %lld", n, (long long)k),
                "bytes");
        CD_TRY(cd_xgb_load(p, (size_t)k, cd_calibration_seen(c->width, c->n_kind),
                           &c->sigma[c->n_sigma], err));
        p += k;
        n -= (size_t)k;
    }
    return n ? CD_FAIL(err, ESCHEMA, "%zu bytes behind the last booster", n) : CDMPP_OK;
}

static cdmpp_status read_side(const cd_json *v, const char *key, size_t width, float *out,
                              cdmpp_err *err) {
    const cd_json *x, *item;
    double d;
    CD_TRY(cd_json_need(v, key, &x, err));
    CD_TRY(cd_err_key(err, cd_json_arr(x, 1, &item, err), key));
    if (x->n != width)
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected %zu numbers, found %u", width, x->n),
                          key);
    for (; item; item = item->next) {
        CD_TRY(cd_err_key(err, cd_json_real(item, &d, err), key));
        if (!(fabs(d) <= 3e38))
            return cd_err_key(err, CD_FAIL(err, ERANGE, "expected a finite number, found %g", d),
                              key);
        *out++ = (float)d;
    }
    return CDMPP_OK;
}

/* The width of the calibration is the length of its range. */
static cdmpp_status read_range(cd_calibration *c, const cd_json *v, cdmpp_err *err) {
    const cd_json *low;
    CD_TRY(cd_json_need(v, "low", &low, err));
    if (low->kind != CD_JSON_ARR || !low->n || low->n > MAX_WIDTH)
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected 1 to %d numbers", MAX_WIDTH), "low");
    c->width = low->n;
    c->range = cd_mem_zalloc(2 * c->width, sizeof *c->range);
    if (!c->range) return CD_FAIL(err, ENOMEM, "%zu columns", c->width);
    CD_TRY(read_side(v, "low", c->width, c->range, err));
    CD_TRY(read_side(v, "high", c->width, c->range + c->width, err));
    for (size_t k = 0; k < c->width; k++)
        if (c->range[k] > c->range[c->width + k])
            return CD_FAIL(err, ERANGE, "column %zu: the range is empty", k);
    return cd_json_need_real(v, "limit", 0, 1e9, &c->outside_limit, err);
}

/* Figures that are only shown, but must be finite to be printed as JSON. */
static cdmpp_status read_fit(cd_calibration_info *i, const cd_json *v, cdmpp_err *err) {
    uint64_t n, n_group;
    CD_TRY(cd_json_need_count(v, "n", &n, err));
    CD_TRY(cd_json_need_count(v, "n_group", &n_group, err));
    i->n = (size_t)n;
    i->n_group = (size_t)n_group;
    CD_TRY(cd_json_need_real(v, "n_independent", 0, 1e300, &i->n_independent, err));
    CD_TRY(cd_json_need_real(v, "mape_median", 0, 1e300, &i->mape_median, err));
    CD_TRY(cd_json_need_real(v, "mape_point", 0, 1e300, &i->mape_point, err));
    CD_TRY(cd_json_need_real(v, "decile_ratio", 0, 1e300, &i->decile_ratio, err));
    CD_TRY(cd_json_need_real(v, "decile_ratio_log", 0, 1e300, &i->decile_ratio_log, err));
    return cd_json_need_real(v, "flagged", 0, 1 + 1e-9, &i->flagged, err);
}

static cdmpp_status read_all(cd_calibration *c, const cd_json *v, const void *blob, size_t n,
                             cdmpp_err *err) {
    const cd_json *sigma, *range, *how;
    CD_TRY(read_numbers(c, v, err));
    CD_TRY(cd_json_need(v, "range", &range, err));
    CD_TRY(cd_err_key(err, read_range(c, range, err), "range"));
    CD_TRY(cd_json_need(v, "fit", &how, err));
    CD_TRY(cd_err_key(err, read_fit(&c->info, how, err), "fit"));
    CD_TRY(cd_json_need(v, "sigma", &sigma, err));
    CD_TRY(cd_err_key(err, read_form(c, sigma, err), "sigma"));
    return cd_err_key(err, read_trees(c, sigma, blob, n, err), "sigma");
}

cdmpp_status cd_calibration_read(const cd_json *v, const void *blob, size_t n, cd_calibration **out,
                                 cdmpp_err *err) {
    cd_calibration *c = cd_mem_zalloc(1, sizeof *c);
    cdmpp_status st = c ? CDMPP_OK : CD_FAIL(err, ENOMEM, "calibration");
    if (!st) st = read_all(c, v, blob, n, err);
    if (st) cd_calibration_free(c);
    else *out = c;
    return st;
}

enum { MAX_DEVICE = 4096, MAX_VECTOR = 1024, MAX_MEMBER = CD_N_MEMBER_KIND * CD_MEMBER_MAX_FOLD };

/* A model of other columns would read numbers of another meaning, so it is refused with both
 * digests. */
static cdmpp_status check_digest(cd_model *m, const cd_json *model, cdmpp_err *err) {
    const cd_json *v;
    int64_t version;
    cd_str have;
    char want[65];
    const cd_json *kind = cd_json_get(model, "kind");
    if (kind && kind->kind == CD_JSON_STR && cd_str_is(kind->u.s, "operators"))
        return CD_FAIL(err, EMODEL,
                       "a model of library operators: cdmpp-predict --operators and cdmpp-replay "
                       "--graph read it; programs need a model "
                       "that cdmpp-train makes from measure records");
    if (kind && kind->kind == CD_JSON_STR && cd_str_is(kind->u.s, "llm-operators"))
        return CD_FAIL(err, EMODEL,
                       "a model of operators of language models: cdmpp-predict --operators and "
                       "cdmpp-replay --llm read it; programs need a model "
                       "that cdmpp-train makes from measure records");
    CD_TRY(cd_json_need(model, "input_version", &v, err));
    CD_TRY(cd_json_int(v, 0, INT32_MAX, &version, err));
    m->rows_as_given = version == 1;
    if (version != CD_TREE_INPUT_VERSION && version != 1)
        return CD_FAIL(err, EMODEL,
                       "expected a model of input version %d, found %" PRId64 ": train it again",
                       CD_TREE_INPUT_VERSION, version);
    CD_TRY(cd_json_need_str(model, "feature_digest", &have, err));
    cd_cols_digest(want);
    if (!cd_str_is(have, want))
        return CD_FAIL(
            err, EMODEL,
            "feature columns: this program makes %.16s..., the model was trained on %.*s...: make "
            "the data set and the model again (cdmpp-extract, cdmpp-train; one of cdmpp-tune "
            "calibrate: calibrate again)",
            want, cd_str_shown(have, 16), have.p);
    return CDMPP_OK;
}

cdmpp_status cd_model_features_check(const cd_json *model, cdmpp_err *err) {
    cd_model *m = cd_mem_zalloc(1, sizeof *m);
    if (!m) return CD_FAIL(err, ENOMEM, "a model");
    cdmpp_status st = check_digest(m, model, err);
    if (!st) st = cd_err_key(err, cd_model_facts_check(m, model, err), "facts");
    cd_mem_free(m);
    return st;
}

static cdmpp_status read_vector(const cd_json *d, size_t width, float *out, cdmpp_err *err) {
    const cd_json *v, *x;
    double f = 0;
    CD_TRY(cd_json_need(d, "vector", &v, err));
    CD_TRY(cd_json_arr(v, width, &x, err));
    if (v->n != width)
        return CD_FAIL(err, ESCHEMA, "device vector: expected %zu numbers, found %u", width, v->n);
    for (size_t c = 0; x; x = x->next, c++) {
        CD_TRY(cd_json_real(x, &f, err));
        if (!(fabs(f) <= 1e6)) return CD_FAIL(err, ERANGE, "device vector: %g", f);
        out[c] = (float)f;
    }
    return CDMPP_OK;
}

/* Devices may be described by other numbers some day; a model keeps those of its own. */
static size_t vector_width(const cd_json *device) {
    const cd_json *v = cd_json_get(device, "vector");
    return v && v->kind == CD_JSON_ARR && v->n <= MAX_VECTOR ? v->n : 0;
}

static cdmpp_status read_device(cd_model *m, const cd_json *d, bool vector, cdmpp_err *err) {
    const cd_json *gpu;
    cd_str s;
    CD_TRY(cd_json_need_str(d, "name", &s, err));
    CD_TRY(cd_json_need(d, "is_gpu", &gpu, err));
    if (gpu->kind != CD_JSON_BOOL) return CD_FAIL(err, ESCHEMA, "is_gpu: expected true or false");
    if (vector)
        CD_TRY(read_vector(d, m->w_device, m->device_vector + m->n_device * m->w_device, err));
    m->device_is_gpu[m->n_device] = gpu->u.i != 0;
    m->device[m->n_device] = cd_str_dup(&m->arena, s);
    if (!m->device[m->n_device++]) return CD_FAIL(err, ENOMEM, "devices");
    return m->numbers ? cd_model_facts_read_device(m, m->n_device - 1, d, err) : CDMPP_OK;
}

static cdmpp_status read_devices(cd_model *m, const cd_json *model, bool vector, cdmpp_err *err) {
    const cd_json *v, *d;
    CD_TRY(cd_json_need(model, "devices", &v, err));
    CD_TRY(cd_json_arr(v, 1, &d, err));
    if (v->n > MAX_DEVICE)
        return CD_FAIL(err, ERANGE, "expected at most %d devices, found %u", MAX_DEVICE, v->n);
    m->device = CD_NEWN(&m->arena, const char *, v->n);
    m->device_is_gpu = CD_NEWN(&m->arena, uint8_t, v->n);
    m->w_device = vector ? vector_width(d) : 0;
    m->device_vector = CD_NEWN(&m->arena, float, v->n * m->w_device + 1);
    if (!m->device || !m->device_is_gpu || !m->device_vector)
        return CD_FAIL(err, ENOMEM, "devices");
    if (cd_json_get(model, "facts")) {
        m->numbers = CD_NEWN(&m->arena, cd_device_numbers, v->n);
        if (!m->numbers) return CD_FAIL(err, ENOMEM, "devices");
    }
    memset(m->device_vector, 0, (v->n * m->w_device + 1) * sizeof *m->device_vector);
    for (; d; d = d->next) CD_TRY(read_device(m, d, vector, err));
    return CDMPP_OK;
}

/* What all versions have. */
static cdmpp_status read_common(cd_model *m, const cd_json *model, bool vector, cdmpp_err *err) {
    const cd_json *range, *lo;
    CD_TRY(check_digest(m, model, err));
    CD_TRY(cd_json_need(model, "log_range", &range, err));
    CD_TRY(cd_json_arr(range, 2, &lo, err));
    CD_TRY(cd_json_real(lo, &m->log_min, err));
    CD_TRY(cd_json_real(lo->next, &m->log_max, err));
    /* exp() of anything inside must be a finite number above 0 */
    CD_TRY(cd_err_key(err, cd_model_facts_check(m, model, err), "facts"));
    if (!(m->log_min >= -700 && m->log_min <= m->log_max && m->log_max <= 700))
        return CD_FAIL(err, ERANGE, "log_range");
    return read_devices(m, model, vector, err);
}

/* The next weights of the rest; the size is in `v`. */
static cdmpp_status take(cd_str *r, const cd_json *v, cd_str *out, cdmpp_err *err) {
    const cd_json *bytes;
    int64_t b;
    CD_TRY(cd_json_need(v, "bytes", &bytes, err));
    CD_TRY(cd_err_key(err, cd_json_int(bytes, 1, INT64_MAX, &b, err), "bytes"));
    if ((uint64_t)b > r->n)
        return CD_FAIL(err, ESCHEMA, "expected at most %zu bytes of weights, found %" PRId64, r->n,
                       b);
    *out = (cd_str){r->p, (size_t)b};
    r->p += b;
    r->n -= (size_t)b;
    return CDMPP_OK;
}

static cdmpp_status new_members(cd_model *m, const cd_json *list, size_t limit, cdmpp_err *err) {
    if (list->n > limit)
        return CD_FAIL(err, ERANGE, "expected at most %zu, found %u", limit, list->n);
    m->member = cd_mem_zalloc(list->n, sizeof *m->member);
    return m->member ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%u members", list->n);
}

/* ---- version 1: "parts" of one form each ---- */
static cdmpp_status read_part(cd_model *m, const cd_json *v, cd_str *r, cdmpp_err *err) {
    const cd_json *form;
    cd_str w;
    cd_member *e = &m->member[m->n_member++];
    CD_TRY(cd_json_need(v, "form", &form, err));
    if (form->kind != CD_JSON_STR ||
        !(cd_str_is(form->u.s, "rows") || cd_str_is(form->u.s, "program")))
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected \"rows\" or \"program\""), "form");
    e->kind = cd_member_find(form->u.s);
    e->fold = -1;
    for (size_t k = 0; k < m->n_kind; k++)
        if (m->kind[k] == e->kind) return CD_FAIL(err, ESCHEMA, "a second part of this form");
    m->kind[m->n_kind] = e->kind;
    CD_TRY(cd_json_need_real(v, "weight", -1, 1, &m->weight[m->n_kind++], err));
    CD_TRY(cd_json_need_real(v, "slope", -10, 10, &e->slope, err));
    CD_TRY(cd_json_need_real(v, "bias", -1e4, 1e4, &e->bias, err));
    CD_TRY(take(r, v, &w, err));
    return cd_xgb_load(w.p, w.n, cd_tree_input_width(cd_member_form(e->kind)), &e->gbt, err);
}

/* Header key "model" into m (empty but for its header). */
static cdmpp_status model_read_v1(cd_model *m, const cd_json *model, cd_str weights,
                                  cdmpp_err *err) {
    const cd_json *v, *p;
    CD_TRY(read_common(m, model, false, err));
    CD_TRY(cd_json_need(model, "parts", &v, err));
    CD_TRY(cd_json_arr(v, 1, &p, err));
    CD_TRY(cd_err_key(err, new_members(m, v, 2, err), "parts"));
    for (size_t i = 0; p; p = p->next, i++) {
        const cdmpp_status st = read_part(m, p, &weights, err);
        if (st) return cd_err_key(err, cd_err_index(err, st, i), "parts");
    }
    return weights.n ? CD_FAIL(err, ESCHEMA, "%zu bytes behind the last part", weights.n)
                     : CDMPP_OK;
}

/* ---- versions 2 and 3 ---- */
static cdmpp_status read_kinds(cd_model *m, const cd_json *model, cdmpp_err *err) {
    const cd_json *v, *x;
    cd_str name;
    CD_TRY(cd_json_need(model, "kinds", &v, err));
    CD_TRY(cd_json_arr(v, 1, &x, err));
    if (v->n > CD_N_MEMBER_KIND)
        return CD_FAIL(err, ERANGE, "expected at most %d, found %u", CD_N_MEMBER_KIND, v->n);
    for (; x; x = x->next) {
        CD_TRY(cd_json_str(x, &name, err));
        const cd_member_kind k = cd_member_find(name);
        if (k == CD_N_MEMBER_KIND) return CD_FAIL(err, ESCHEMA, "expected one of " CD_MEMBER_KINDS);
        for (size_t i = 0; i < m->n_kind; i++)
            if (m->kind[i] == k) return CD_FAIL(err, ESCHEMA, "%s: named twice", cd_member_name(k));
        m->kind[m->n_kind++] = k;
    }
    return CDMPP_OK;
}

static cdmpp_status read_members(cd_model *m, const cd_json *model, cd_str *r, cdmpp_err *err) {
    const cd_json *v, *x;
    cd_str w;
    CD_TRY(cd_json_need(model, "members", &v, err));
    CD_TRY(cd_json_arr(v, 1, &x, err));
    CD_TRY(new_members(m, v, MAX_MEMBER, err));
    for (size_t i = 0; x; x = x->next, i++) {
        cdmpp_status st = take(r, x, &w, err);
        if (!st) st = cd_member_load(&m->member[m->n_member++], x, w.p, w.n, err);
        if (st) return cd_err_index(err, st, i);
    }
    return CDMPP_OK;
}

/* Every kind has a member and every member a kind, with the inputs that it was trained on. */
static cdmpp_status check_members(const cd_model *m, cdmpp_err *err) {
    size_t found = 0;
    for (size_t k = 0; k < m->n_kind; k++) {
        size_t n = 0;
        for (size_t i = 0; i < m->n_member; i++) n += m->member[i].kind == m->kind[k];
        if (!n) return CD_FAIL(err, ESCHEMA, "no member is a %s", cd_member_name(m->kind[k]));
        found += n;
    }
    if (found != m->n_member)
        return CD_FAIL(err, ESCHEMA, "a member of a kind that \"kinds\" does not have");
    if (cd_model_needs_facts(m) && !m->numbers)
        return CD_FAIL(err, ESCHEMA, "a member reads facts, and key facts is missing");
    for (size_t i = 0; i < m->n_member; i++)
        if (m->member[i].net) CD_TRY(cd_member_check_net(&m->member[i], m->w_device, err));
    return CDMPP_OK;
}

static cdmpp_status read_calib(cd_model *m, const cd_json *model, cd_str weights, cdmpp_err *err) {
    const cd_json *v;
    CD_TRY(cd_json_need(model, "calib", &v, err));
    CD_TRY(cd_calibration_read(v, weights.p, weights.n, &m->calib, err));
    if (cd_calibration_n_kind(m->calib) != m->n_kind ||
        cd_calibration_width(m->calib) != cd_tree_input_width(CD_TREE_INPUT_PROGRAM))
        return CD_FAIL(err, EMODEL, "expected %zu kinds and %zu columns, found %zu and %zu",
                       m->n_kind, cd_tree_input_width(CD_TREE_INPUT_PROGRAM),
                       cd_calibration_n_kind(m->calib), cd_calibration_width(m->calib));
    return CDMPP_OK;
}

cdmpp_status cd_model_read_members(cd_model *m, const cd_json *v, cd_str *weights, cdmpp_err *err) {
    CD_TRY(cd_err_key(err, read_kinds(m, v, err), "kinds"));
    CD_TRY(cd_err_key(err, read_members(m, v, weights, err), "members"));
    return cd_err_key(err, check_members(m, err), "members");
}

/* What model and tuner have, each for itself. */
static cdmpp_status read_estimators(cd_model *m, const cd_json *model, cd_str weights,
                                    cdmpp_err *err) {
    CD_TRY(cd_model_read_members(m, model, &weights, err));
    return cd_err_key(err, read_calib(m, model, weights, err), "calib");
}

static cdmpp_status model_read_v2(cd_model *m, const cd_json *model, cd_str weights,
                                  cdmpp_err *err) {
    /* absent in models of earlier versions */
    const cd_json *kinds = cd_json_get(model, "trained_on");
    const cd_json *law = cd_json_get(model, "unseen"); /* and in those of one device */
    cd_trained_on *t = NULL;
    CD_TRY(read_common(m, model, true, err));
    if (kinds)
        CD_TRY(cd_err_key(err, cd_trained_on_read(kinds, m->n_device, &m->arena, &t, err),
                          "trained_on"));
    m->trained_on = t;
    if (law) CD_TRY(cd_err_key(err, cd_device_law_read(law, m->law, err), "unseen"));
    return read_estimators(m, model, weights, err);
}

/* ---- tuner and order ---- */
/* Weights before those of key "tuner" or "here", and these; all and none where there is no such
 * key. */
static cdmpp_status model_split(const cd_json *root, const char *key, cd_str *weights,
                                cd_str *behind, cdmpp_err *err) {
    const cd_json *v = cd_json_get(root, key), *at;
    int64_t k = (int64_t)weights->n;
    if (v) CD_TRY(cd_json_need(v, "at", &at, err));
    if (v) CD_TRY(cd_err_key(err, cd_json_int(at, 0, (int64_t)weights->n, &k, err), "at"));
    *behind = (cd_str){weights->p + k, weights->n - (size_t)k};
    weights->n = (size_t)k;
    return CDMPP_OK;
}

/* On the devices of m. */
static cd_model *new_part(const cd_model *m) {
    cd_model *t = cd_mem_zalloc(1, sizeof *t);
    if (!t) return NULL;
    t->log_min = m->log_min;
    t->log_max = m->log_max;
    t->n_device = m->n_device;
    t->device = m->device;
    t->device_is_gpu = m->device_is_gpu;
    t->w_device = m->w_device;
    t->device_vector = m->device_vector;
    t->trained_on = m->trained_on;
    memcpy(t->law, m->law, sizeof t->law);
    t->rows_as_given = m->rows_as_given;
    t->header = "";
    return t;
}

cd_model *cd_model_new_tuner(cd_model *m) { return m->tuner = new_part(m); }

/* Its members may read facts, as those for the seconds may. */
cd_model *cd_model_new_order(cd_model *m) {
    cd_model *t = m->order = new_part(m);
    if (t) t->numbers = m->numbers, t->facts_set = m->facts_set;
    return t;
}

/* m->tuner, if the header has one; m is read. */
static cdmpp_status model_read_tuner(cd_model *m, const cd_json *root, cd_str weights,
                                     cdmpp_err *err) {
    const cd_json *v = cd_json_get(root, "tuner");
    if (!v) return CDMPP_OK;
    cd_model *t = cd_model_new_tuner(m);
    if (!t) return CD_FAIL(err, ENOMEM, "tuner");
    CD_TRY(read_estimators(t, v, weights, err));
    return cd_model_needs_leaves(t) || cd_model_needs_steps(t) || cd_model_needs_facts(t)
               ? CD_FAIL(err, ESCHEMA, "expected a network of feature rows")
               : CDMPP_OK;
}

/* The model file of model.h: writing it, and reading up to key "model", whose versions are in
 * model_read.c. */

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
    if (f->version == 1) return cd_err_key(err, model_read_v1(m, model, f->weights, err), "model");
    cd_str weights = f->weights, behind, order = {0}, last = {0};
    if (f->version >= CD_CONTAINER_MODEL_HERE)
        CD_TRY(cd_err_key(err, model_split(root, "here", &weights, &last, err), "here"));
    CD_TRY(cd_err_key(err, model_split(root, "tuner", &weights, &behind, err), "tuner"));
    if (f->version >= CD_CONTAINER_MODEL_ORDER)
        CD_TRY(cd_err_key(err, model_split(root, "order", &weights, &order, err), "order"));
    CD_TRY(cd_err_key(err, model_read_v2(m, model, weights, err), "model"));
    if (f->version >= CD_CONTAINER_MODEL_ORDER)
        CD_TRY(cd_err_key(err, cd_model_read_order(m, root, order, err), "order"));
    CD_TRY(cd_err_key(err, model_read_tuner(m, root, behind, err), "tuner"));
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
