/* Intervals in a model's header, and the operators and types that it was trained on. */
#include <inttypes.h>
#include <string.h>

#include "learner/operators/library_op_model_internal.h"

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

void cd_library_op_spread_put(cd_buf *b, const cd_library_op_model *m) {
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

static cdmpp_status read_device(const cd_library_op_model *m, const cd_json *v, uint32_t *out,
                                cdmpp_err *err) {
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

static cdmpp_status read_devices(const cd_json *v, cd_json_order order, cd_library_op_spread *s,
                                 cdmpp_err *err) {
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
    CD_TRY(read_device(m, v, &s->device, err));
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
    return shifts ? read_devices(v, order, s, err) : CDMPP_OK;
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

cdmpp_status cd_library_op_spread_read(cd_library_op_model *m, const cd_json *model,
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
