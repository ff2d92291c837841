/* cdmpp-predict --info: what a model file is, in ten lines, from its header
 * (docs/reference/model.md). What a header of an older version does not say has no line. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "predictor/cmd/predict/main_predict.h"

/* The value at "split.train.programs"; NULL: there is none. */
static const cd_json *at(const cd_json *o, const char *path) {
    char key[64];
    while (o && *path) {
        const size_t n = strcspn(path, ".");
        (void)snprintf(key, sizeof key, "%.*s", (int)n, path);
        o = cd_json_get(o, key);
        path += n + (path[n] == '.');
    }
    return o;
}

static double number(const cd_json *root, const char *path) {
    double v = (double)NAN;
    const cd_json *j = at(root, path);
    return j && !cd_json_real(j, &v, NULL) ? v : (double)NAN;
}

static cd_str text(const cd_json *root, const char *path) {
    cd_str s = {"", 0};
    const cd_json *j = at(root, path);
    return j && !cd_json_str(j, &s, NULL) ? s : (cd_str){"", 0};
}

/* 38826 as "38,826". */
static void put_count(cd_buf *b, double v) {
    char digits[32];
    const int n = snprintf(digits, sizeof digits, "%.0f", v);
    for (int k = 0; k < n; k++) cd_buf_putf(b, "%s%c", k && (n - k) % 3 == 0 ? "," : "", digits[k]);
}

static void put_label(cd_buf *b, const char *name) { cd_buf_putf(b, "%-16s", name); }

/* "38,826 programs of 2,451 tasks" */
static void put_some(cd_buf *b, const cd_json *root, const char *part) {
    char path[64];
    (void)snprintf(path, sizeof path, "split.%s.programs", part);
    put_count(b, number(root, path));
    (void)snprintf(path, sizeof path, "split.%s.tasks", part);
    cd_buf_puts(b, " programs of ");
    put_count(b, number(root, path));
    cd_buf_puts(b, " tasks");
}

/* ---- the lines ---- */
static void put_kind(const cd_json *root, const char *path, cd_buf *b) {
    const cd_str kind = text(root, "model.kind");
    const cd_json *d = at(root, "model.devices"),
                  *first = d && d->kind == CD_JSON_ARR ? d->u.child : NULL;
    const cd_json *gpu = cd_json_get(first, "is_gpu");
    cd_buf_putf(b, "%s: cost model of ", path);
    if (cd_str_is(kind, "llm-operators")) cd_buf_puts(b, "operators of language models on GPUs\n");
    else if (cd_str_is(kind, "operators")) cd_buf_puts(b, "operators of libraries\n");
    else
        cd_buf_putf(b, "tensor programs%s\n", !gpu ? "" : gpu->u.i ? " on GPUs" : " on processors");
}

static void put_devices(const cd_json *root, cd_buf *b) {
    const cd_json *d = at(root, "model.devices");
    put_label(b, "devices");
    for (const cd_json *v = d && d->kind == CD_JSON_ARR ? d->u.child : NULL; v; v = v->next) {
        const cd_str name = v->kind == CD_JSON_STR ? v->u.s : text(v, "name");
        cd_buf_putf(b, "%s%.*s", v == d->u.child ? "" : ", ", (int)name.n, name.p);
    }
    cd_buf_puts(b, "\n");
    const cd_str here = text(root, "here.name"), by = text(root, "here.device");
    if (!here.n) return;
    put_label(b, "corrected for");
    cd_buf_putf(b, "%.*s, this machine when it was calibrated, by times of %.*s\n", (int)here.n,
                here.p, (int)by.n, by.p);
    const double noise = number(root, "here.measured_noise");
    if (!(noise > 0)) return;
    put_label(b, "measured noise");
    cd_buf_putf(b, "%.0f %%, part of every interval\n", 100 * expm1(noise));
}

static void put_data(const cd_json *root, cd_buf *b) {
    const double rows = number(root, "data.trained");
    put_label(b, "trained on");
    if (!isnan(number(root, "split.train.programs"))) put_some(b, root, "train");
    else if (!isnan(rows)) put_count(b, rows), cd_buf_puts(b, " rows of tables");
    else cd_buf_puts(b, "not said");
    if (number(root, "split.validation.programs") > 0)
        cd_buf_puts(b, ", calibrated on "), put_count(b, number(root, "split.validation.programs"));
    cd_buf_puts(b, "\n");
}

/* Of the part that training has not seen: test, else what it was calibrated on. */
static const char *held_out(const cd_json *root) {
    if (number(root, "metrics.test.n") > 0) return "test";
    return number(root, "metrics.validation.n") > 0 ? "validation" : NULL;
}

static void put_error(const cd_json *root, cd_buf *b) {
    const char *part = held_out(root);
    char mape[64], median[64];
    put_label(b, "held-out error");
    if (!part) {
        cd_buf_puts(b, "not in the file (docs/results)\n");
        return;
    }
    (void)snprintf(mape, sizeof mape, "metrics.%s.mape", part);
    (void)snprintf(median, sizeof median, "metrics.%s.median_ape", part);
    cd_buf_putf(b, "MAPE %.1f %%, median %.1f %% (", 100 * number(root, mape),
                100 * number(root, median));
    put_some(b, root, part);
    const cd_str by = text(root, "split.kind");
    if (by.n) cd_buf_putf(b, ", split by %.*s", (int)by.n, by.p);
    cd_buf_puts(b, ")\n");
}

static void put_intervals(const cd_json *root, cd_buf *b) {
    char inside[64];
    const char *part = held_out(root);
    const double level = number(root, "model.calib.level");
    (void)snprintf(inside, sizeof inside, "uncertainty.%s.measured_inside", part ? part : "");
    put_label(b, "intervals");
    if (isnan(level)) cd_buf_puts(b, "not said");
    else cd_buf_putf(b, "of %g %%", 100 * level);
    if (!isnan(number(root, inside)))
        cd_buf_putf(b, "; %.1f %% of the held-out programs were inside",
                    100 * number(root, inside));
    cd_buf_puts(b, "\n");
}

/* The file alone has a date: a training gives the same bytes whenever it runs. */
static void put_file(const cd_json *root, const char *path, cd_buf *b) {
    struct stat s;
    char date[32] = "-";
    struct tm day;
    const cd_str tool = text(root, "tool.name"), version = text(root, "tool.version");
    const bool is = !stat(path, &s);
    if (is && gmtime_r(&s.st_mtime, &day)) (void)strftime(date, sizeof date, "%Y-%m-%d", &day);
    put_label(b, "date");
    cd_buf_putf(b, "%s (of the file)\n", date);
    put_label(b, "version");
    cd_buf_putf(b, "%.*s %.*s, format %.0f\n", (int)tool.n, tool.p, (int)version.n, version.p,
                number(root, "schema_version"));
    const cd_str digest = text(root, "model.feature_digest");
    const double features = number(root, at(root, "model.input_version") ? "model.input_version"
                                                                         : "model.feature_version");
    put_label(b, "features");
    if (!isnan(features)) cd_buf_putf(b, "version %.0f", features);
    if (digest.n)
        cd_buf_putf(b, "%s%.*s", isnan(features) ? "" : ", ", digest.n < 12 ? (int)digest.n : 12,
                    digest.p);
    cd_buf_puts(b, "\n");
    put_label(b, "size");
    if (is) cd_units_put_bytes(b, (double)s.st_size);
    cd_buf_puts(b, "\n");
}

cdmpp_status cd_predict_info(const char *path, const char *header, bool json, cdmpp_err *err) {
    cd_arena a = {0};
    cd_buf b = {0};
    const cd_json *root;
    if (json) {
        cd_buf_putf(&b, "%s\n", header);
        return cd_command_print(&b, err);
    }
    const cdmpp_status st = cd_json_parse(&a, header, strlen(header), &root, err);
    if (!st) {
        put_kind(root, path, &b);
        put_devices(root, &b);
        put_data(root, &b);
        put_error(root, &b);
        put_intervals(root, &b);
        put_file(root, path, &b);
        put_label(&b, "more");
        cd_buf_puts(&b, "--info --json prints the whole header (docs/reference/model.md)\n");
    }
    cd_arena_free(&a);
    if (st) cd_buf_free(&b);
    return st ? st : cd_command_print(&b, err);
}
