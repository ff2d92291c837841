/* A calibration as JSON and the boosters' bytes, there and back bit for bit.
 *
 *   {"level","point","weight":[..],"shift","tilt","q":[low, mid, high],
 *    "sigma":{"base":[..],"bytes":[..],"slope","scale","shrink","raw":[min, max]},
 *    "range":{"low":[..],"high":[..],"limit"},
 *    "fit":{"n","n_group","n_independent","mape_median","mape_point","decile_ratio",
 *           "decile_ratio_log","flagged"}} */
#include <math.h>
#include <string.h>

#include "learner/model/model_internal.h"

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
