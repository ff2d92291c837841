/* Header key "model" of a model file, versions 1 to 3.
 *
 * The checksum agreed before anything here runs, but a file may have been made
 * by hand: every number is checked, every size compared with what is left. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "features/rows/rows.h"
#include "learner/model/model_internal.h"

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

cdmpp_status cd_model_read_v1(cd_model *m, const cd_json *model, cd_str weights, cdmpp_err *err) {
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

cdmpp_status cd_model_read_v2(cd_model *m, const cd_json *model, cd_str weights, cdmpp_err *err) {
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
cdmpp_status cd_model_split(const cd_json *root, const char *key, cd_str *weights, cd_str *behind,
                            cdmpp_err *err) {
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

cdmpp_status cd_model_read_tuner(cd_model *m, const cd_json *root, cd_str weights, cdmpp_err *err) {
    const cd_json *v = cd_json_get(root, "tuner");
    if (!v) return CDMPP_OK;
    cd_model *t = cd_model_new_tuner(m);
    if (!t) return CD_FAIL(err, ENOMEM, "tuner");
    CD_TRY(read_estimators(t, v, weights, err));
    return cd_model_needs_leaves(t) || cd_model_needs_steps(t) || cd_model_needs_facts(t)
               ? CD_FAIL(err, ESCHEMA, "expected a network of feature rows")
               : CDMPP_OK;
}
