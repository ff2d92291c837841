/* The numbers behind every plot and table of the page. */
#include <math.h>

#include "learner/report/report_internal.h"

static void text(cd_buf *out, const char *name, const char *s) {
    cd_buf_putf(out, "\"%s\":", name);
    cd_buf_put_json_str(out, s ? s : "", s ? strlen(s) : 0);
}

static void number(cd_buf *out, double v) {
    if (isfinite(v)) cd_buf_put_real6(out, v);
    else cd_buf_puts(out, "null");
}

static void named(cd_buf *out, const char *name, double v) {
    cd_buf_putf(out, ",\"%s\":", name);
    number(out, v);
}

static void list(cd_buf *out, const char *name, const double *v, size_t n) {
    cd_buf_putf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < n; i++) {
        if (i) cd_buf_puts(out, ",");
        number(out, v[i]);
    }
    cd_buf_puts(out, "]");
}

static void dist(cd_buf *out, const cd_report_dist *d) {
    cd_buf_putf(out, "\"n\":%zu", d->n);
    named(out, "mape", d->mape);
    named(out, "mae_log", d->mae_log);
    named(out, "median_ape", d->ape[2]);
    named(out, "within_20", d->within_20);
    list(out, "ape", d->ape, CD_REPORT_FIG_N_Q);
    list(out, "ratio", d->ratio, CD_REPORT_FIG_N_Q);
}

typedef enum { NAMED, DECADE, DECILE, RANGE } group_kind;

/* The key of a group depends on what it is a group of. */
static void groups(cd_buf *out, const char *name, const cd_report_fig_groups *g, group_kind kind) {
    cd_buf_putf(out, ",\n\"%s\":[", name);
    for (size_t i = 0; i < g->n; i++) {
        const cd_report_fig_group *v = &g->v[i];
        cd_buf_puts(out, i ? ",\n {" : "\n {");
        switch (kind) {
        case NAMED: text(out, "name", v->name); break;
        case DECADE: cd_buf_putf(out, "\"from_s\":%g", cd_report_fig_decade_s(v->key)); break;
        case DECILE:
            cd_buf_putf(out, "\"group\":%u", (unsigned)v->key);
            named(out, "predicted_std", v->sigma);
            named(out, "observed_rms", v->observed);
            break;
        case RANGE: cd_buf_putf(out, "\"out_of_range\":%s", v->key ? "true" : "false"); break;
        }
        cd_buf_puts(out, ",");
        dist(out, &v->d);
        cd_buf_puts(out, "}");
    }
    cd_buf_puts(out, "]");
}

/* null where the model gives no uncertainty. */
static void calibration(cd_buf *out, const cd_report_fig_part *f) {
    double level[CD_REPORT_FIG_N_LEVEL];
    if (!f->has_sigma) {
        cd_buf_puts(out, ",\n\"calibration\":null");
        return;
    }
    for (int i = 0; i < CD_REPORT_FIG_N_LEVEL; i++) level[i] = cd_report_fig_level(i);
    cd_buf_puts(out, ",\n\"calibration\":{\"interval_level\":");
    number(out, CD_REPORT_LEVEL);
    named(out, "interval_coverage", f->interval_cover);
    named(out, "interval_width_median", f->interval_width);
    named(out, "spearman_of_error", f->sigma_rank);
    named(out, "least_certain_mape", f->tenth.least_certain);
    named(out, "rest_mape", f->tenth.rest);
    named(out, "least_certain_log", f->tenth.least_certain_log);
    named(out, "rest_log", f->tenth.rest_log);
    list(out, "nominal", level, CD_REPORT_FIG_N_LEVEL);
    list(out, "observed", f->cover, CD_REPORT_FIG_N_LEVEL);
    groups(out, "by_uncertainty", &f->unsure, DECILE);
    cd_buf_puts(out, "}");
}

/* Only cells with programs: [column, row, count]. */
static void grid(cd_buf *out, const cd_report_figures *t, const cd_report_fig_part *f) {
    const char *sep = "";
    cd_buf_putf(out, ",\n\"grid\":{\"cells\":%d,\"log10_s\":[", CD_REPORT_FIG_GRID);
    number(out, t->log_min);
    cd_buf_puts(out, ",");
    number(out, t->log_max);
    cd_buf_puts(out, "],\"measured_predicted_count\":[");
    for (int y = 0; y < CD_REPORT_FIG_GRID; y++)
        for (int x = 0; x < CD_REPORT_FIG_GRID; x++) {
            const uint32_t c = f->grid[y * CD_REPORT_FIG_GRID + x];
            if (!c) continue;
            cd_buf_putf(out, "%s[%d,%d,%u]", sep, x, y, (unsigned)c);
            sep = ",";
        }
    cd_buf_puts(out, "]}");
}

/* The figures of a part, whole and by group; docs/reference/report.md lists the keys. */
static void part(cd_buf *out, const cd_report *r, const cd_report_figures *t, cd_split_part p) {
    const cd_report_fig_part *f = &t->part[p];
    double x[CD_REPORT_FIG_N_CDF];
    for (int i = 0; i < CD_REPORT_FIG_N_CDF; i++) x[i] = cd_report_fig_cdf_x(i);
    cd_buf_putf(out, "%s\"%s\":{\"tasks\":%zu,\"metrics\":", p ? ",\n\n" : "\n",
                cd_split_part_name(p), f->task.n);
    cd_metric_json(out, &r->part[p].metrics);
    named(out, "mape_low", f->mape_low);
    named(out, "mape_high", f->mape_high);
    cd_buf_puts(out, ",\n\"all\":{");
    dist(out, &f->all);
    cd_buf_puts(out, "},\n\"cdf\":{\"error_at_most\":[");
    for (int i = 0; i < CD_REPORT_FIG_N_CDF; i++) {
        if (i) cd_buf_puts(out, ",");
        number(out, x[i]);
    }
    cd_buf_puts(out, "]");
    list(out, "share", f->cdf, CD_REPORT_FIG_N_CDF);
    cd_buf_puts(out, "}");
    groups(out, "by_task", &f->task, NAMED);
    groups(out, "by_network", &f->network, NAMED);
    cd_buf_putf(out, ",\"in_no_network\":%zu", f->n_no_network);
    groups(out, "by_decade", &f->decade, DECADE);
    groups(out, "by_device", &f->device, NAMED);
    groups(out, "by_range", &f->range, RANGE);
    calibration(out, f);
    grid(out, t, f);
    cd_buf_puts(out, "}");
}

/* As drawn, but not thinned. */
static void curves(cd_buf *out, const cd_report *r) {
    cd_buf_puts(out, "},\n\"curves\":{");
    text(out, "step", r->step_name);
    cd_buf_puts(out, ",");
    text(out, "loss", r->loss_name);
    cd_buf_puts(out, ",\"members\":[");
    for (size_t k = 0; k < r->n_curve; k++) {
        const cd_report_curve *c = &r->curve[k];
        cd_buf_puts(out, k ? ",\n{" : "\n{");
        text(out, "name", c->name);
        list(out, "step", c->step, c->n);
        list(out, "train", c->train, c->n);
        list(out, "validation", c->valid, c->n);
        cd_buf_puts(out, "}");
    }
    cd_buf_puts(out, "]}");
}

/* Where the report comes from: enough to train the model again. */
static void about(cd_buf *out, const cd_report *r) {
    cd_buf_puts(out, "{\"schema\":\"cdmpp.trainreport/1\",");
    text(out, "title", r->title);
    cd_buf_puts(out, ",");
    text(out, "version", r->version);
    cd_buf_puts(out, ",");
    text(out, "command", r->command);
    cd_buf_puts(out, ",");
    text(out, "config", r->config);
    cd_buf_putf(out, ",\n\"data\":{\"programs\":%zu,\"kept\":%zu,\"dropped\":{", r->filter.in,
                r->filter.kept);
    for (int k = 0; k < CD_FILTER_N_DROP; k++) {
        if (k) cd_buf_puts(out, ",");
        cd_buf_putf(out, "\"%s\":%zu", cd_filter_drop_text((cd_filter_drop)k), r->filter.drop[k]);
    }
    cd_buf_puts(out, "},");
    text(out, "content_digest", r->content_digest);
    cd_buf_putf(out, "},\n\"split\":{\"kind\":\"%s\",\"seed\":%llu,", cd_split_name(r->kind),
                (unsigned long long)r->seed);
    text(out, "digest", r->split_digest);
    cd_buf_putf(out, ",\"target_tasks\":%zu", r->n_target_task);
    cd_buf_puts(out, "},\n\"quantiles\":[");
    for (int i = 0; i < CD_REPORT_FIG_N_Q; i++) {
        if (i) cd_buf_puts(out, ",");
        number(out, cd_report_fig_quantile_at(i));
    }
    cd_buf_puts(out, "],\n\"parts\":{");
}

cdmpp_status cd_report_write_json(cd_buf *out, const cd_report *r, cdmpp_err *err) {
    cd_report_figures f;
    cdmpp_status st = cd_report_figures_compute(&f, r, err);
    if (!st) {
        about(out, r);
        for (int p = 0; p < CD_SPLIT_N_PART; p++) part(out, r, &f, (cd_split_part)p);
        curves(out, r);
        cd_buf_puts(out, "}\n");
        if (out->oom) st = CD_FAIL(err, ENOMEM, "report");
    }
    cd_report_figures_free(&f);
    return st;
}
