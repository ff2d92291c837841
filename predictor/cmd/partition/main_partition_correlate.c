/* Verb "correlate" of cdmpp-partition: which settings a time hangs on, and where each of them turns. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/cmd/partition/main_partition_tools.h"
#include "profiler/curves/curves.h"

typedef struct {
    const char *target, *axes, *strong;
    double strong_v;
    bool json;
    /* found */
    size_t y, *col, k;          /* columns; k of them are settings */
} ask;

#define AT(member) offsetof(ask, member)
static const cd_option table[] = {
    {"target", 0, "COLUMN", CD_OPTION_TEXT, AT(target), NULL, 0, "The time, or whatever hangs on the others"},
    {"axes", 0, "COLUMN,...", CD_OPTION_TEXT, AT(axes), NULL, 0, "The settings (default: all other columns)"},
    {"strong", 0, "R", CD_OPTION_TEXT, AT(strong), NULL, 0, "A setting is strong from |Spearman| or distance correlation R on (default: 0.3)"},
};
static const char *const group[] = {"What"};
static const char *const use[] = {"--target COLUMN [--axes COLUMN,...] [--strong R] SAMPLES.csv", NULL};
static const char *const example[] = {"From how many threads on do more not pay?", "cdmpp-partition correlate --target seconds samples.csv", NULL};

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    ask *o = to;
    if (!o->target) return CD_FAIL(err, EUSAGE, "--target is missing");
    if (said->operand.n != 1) return CD_FAIL(err, EUSAGE, "expected one table, found %zu", said->operand.n);
    return cd_partition_number("strong", o->strong, 1e-6, 1, &o->strong_v, err);
}

const cd_command cd_partition_correlate_command = {
    "cdmpp-partition correlate", "which settings a time hangs on", use,
    "A row of the table is one measurement, a column a setting or the time. Told are Spearman's, the distance (it sees what is not monotone), the partial (of ranks, "
    "given all other settings) and Pearson's correlation, strongest first; of strong settings the turning point: where the law through the medians turns, or, where the time "
    "falls, from which value on more does not pay (within 5 % of its last).",
    table, sizeof table / sizeof *table, group, "*.csv", example, NULL, NULL, NULL, check};

/* ---- the columns ---- */
static cdmpp_status add_axis(ask *o, const cd_partition_table *t, const char *name, size_t n, cdmpp_err *err) {
    char one[128];
    if (n >= sizeof one) return CD_FAIL(err, EUSAGE, "--axes: too long a name");
    memcpy(one, name, n);
    one[n] = 0;
    if (o->k == t->n_col) return CD_FAIL(err, EUSAGE, "--axes: more settings than columns");
    CD_TRY(cd_partition_table_need(t, one, &o->col[o->k], err));
    if (o->col[o->k] == o->y) return CD_FAIL(err, EUSAGE, "--axes: '%s' is the target", one);
    for (size_t i = 0; i < o->k; i++)
        if (o->col[i] == o->col[o->k]) return CD_FAIL(err, EUSAGE, "--axes: '%s' is there twice", one);
    o->k++;
    return CDMPP_OK;
}

static cdmpp_status columns(ask *o, cd_partition_table *t, cdmpp_err *err) {
    CD_TRY(cd_partition_table_need(t, o->target, &o->y, err));
    o->col = CD_NEWN(&t->arena, size_t, t->n_col + 1);
    if (!o->col) return CD_FAIL(err, ENOMEM, "%zu columns", t->n_col);
    for (const char *at = o->axes; at;) {
        const size_t n = strcspn(at, ",");
        CD_TRY(add_axis(o, t, at, n, err));
        at = at[n] ? at + n + 1 : NULL;
    }
    for (size_t i = 0; !o->axes && i < t->n_col; i++)
        if (i != o->y) o->col[o->k++] = i;
    return o->k ? CDMPP_OK : cd_err_at(err, CD_FAIL(err, ESCHEMA, "no setting beside '%.60s'", o->target), t->path, 0);
}

static cdmpp_status numbers(const ask *o, const cd_partition_table *t, double *x, double *y, cdmpp_err *err) {
    for (size_t r = 0; r < t->n_row; r++) {
        CD_TRY(cd_partition_table_number(t, r, o->y, &y[r], err));
        for (size_t c = 0; c < o->k; c++) CD_TRY(cd_partition_table_number(t, r, o->col[c], &x[r * o->k + c], err));
    }
    return CDMPP_OK;
}

/* ---- telling ---- */
static double strength(const cd_correlation_axis *a) { return fmax(fabs(a->spearman), a->distance); }

/* Strongest first; equal ones as in the table. */
static void order(const cd_correlation_axis *a, size_t k, size_t *at) {
    for (size_t i = 0; i < k; i++) {
        size_t j = i;
        for (; j && strength(&a[at[j - 1]]) < strength(&a[i]); j--) at[j] = at[j - 1];
        at[j] = i;
    }
}

static void put_turning(cd_buf *b, const cd_correlation_axis *a) {
    if (!a->strong) cd_buf_puts(b, "weak");
    else if (a->falls && isfinite(a->turning)) cd_buf_putf(b, "falls, no longer from %.6g on", a->turning);
    else if (a->falls) cd_buf_puts(b, "falls");
    else if (isfinite(a->turning)) cd_buf_putf(b, "rises (%s), turns at %.4g", cd_perf_curve_form_name(a->form), a->turning);
    else cd_buf_putf(b, "rises (%s)", cd_perf_curve_form_name(a->form));
    if (a->strong && isfinite(a->turning_se) && a->turning_se > 0) cd_buf_putf(b, " +- %.2g", a->turning_se);
}

static void put_text(cd_buf *b, const ask *o, const cd_partition_table *t, const cd_correlation_axis *a, const size_t *at) {
    cd_buf_putf(b, "%s by %zu settings, %zu rows\nsetting                 Spearman  distance   partial   Pearson\n", o->target, o->k, t->n_row);
    for (size_t i = 0; i < o->k; i++) {
        const cd_correlation_axis *x = &a[at[i]];
        cd_buf_putf(b, "%-22s %9.3f %9.3f ", t->name[o->col[at[i]]], x->spearman + 0.0, x->distance + 0.0);
        if (isfinite(x->partial)) cd_buf_putf(b, "%9.3f", x->partial + 0.0);
        else cd_buf_puts(b, "        -");
        cd_buf_putf(b, " %9.3f  ", x->pearson + 0.0);
        put_turning(b, x);
        cd_buf_puts(b, "\n");
    }
}

static void put_json(cd_buf *b, const ask *o, const cd_partition_table *t, const cd_correlation_axis *a, const size_t *at) {
    cd_buf_puts(b, "{");
    cd_partition_put_text(b, "target", o->target);
    cd_buf_putf(b, ",\"rows\":%zu,\"settings\":[", t->n_row);
    for (size_t i = 0; i < o->k; i++) {
        const cd_correlation_axis *x = &a[at[i]];
        cd_buf_puts(b, i ? ",{" : "{");
        cd_partition_put_text(b, "name", t->name[o->col[at[i]]]);
        cd_partition_put(b, "spearman", x->spearman);
        cd_partition_put(b, "distance", x->distance);
        cd_partition_put(b, "partial", x->partial);
        cd_partition_put(b, "pearson", x->pearson);
        cd_buf_putf(b, ",\"strong\":%s,\"falls\":%s", x->strong ? "true" : "false", x->strong && x->falls ? "true" : "false");
        cd_partition_put_text(b, "form", x->strong && !x->falls ? cd_perf_curve_form_name(x->form) : NULL);
        cd_partition_put(b, "turns_at", x->strong ? x->turning : (double)NAN);
        cd_partition_put(b, "turns_at_se", x->strong ? x->turning_se : (double)NAN);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]}");
}

static cdmpp_status run_table(ask *o, cd_partition_table *t, cdmpp_err *err) {
    cd_buf b = {0};
    CD_TRY(columns(o, t, err));
    double *x = CD_NEWN(&t->arena, double, t->n_row * o->k), *y = CD_NEWN(&t->arena, double, t->n_row);
    cd_correlation_axis *a = CD_NEWN(&t->arena, cd_correlation_axis, o->k);
    size_t *at = CD_NEWN(&t->arena, size_t, o->k);
    if (!x || !y || !a || !at) return CD_FAIL(err, ENOMEM, "%zu rows", t->n_row);
    CD_TRY(numbers(o, t, x, y, err));
    CD_TRY(cd_err_at(err, cd_correlation_axes(x, y, t->n_row, o->k, o->strong_v, a, err), t->path, 0));
    order(a, o->k, at);
    if (o->json) put_json(&b, o, t, a, at);
    else put_text(&b, o, t, a, at);
    return cd_partition_print_result(o->json, "cdmpp.partition_correlate", &b, err);
}

int cd_partition_correlate(int argc, char **argv) {
    ask o = {0};
    cd_partition_table t;
    cdmpp_err err = {0};
    cd_command_run f;
    int code;
    if (!cd_command_begin(&f, &cd_partition_correlate_command, argc, argv, &o, &code)) return code;
    o.json = f.said.json;
    cdmpp_status st = cd_partition_table_read(&t, f.said.operand.v[0], &err);
    if (!st) st = run_table(&o, &t, &err);
    cd_partition_table_free(&t);
    return cd_partition_finish(&f, st, &err, false);
}
