/* Columns of a table of measurements as settings and a target, and their correlations in the order
 * of their strength. */
#include "profiler/curves/curves.h"

#include <math.h>
#include <string.h>

#include "base/io/io.h"

typedef struct {
    size_t y, *col, k; /* column of the target; (k) columns of the settings */
} columns;

/* A column that was named, of n letters. */
static cdmpp_status add_axis(columns *o, const cd_csv_table *t, const char *name, size_t n,
                             cdmpp_err *err) {
    char one[128];
    if (n >= sizeof one) return CD_FAIL(err, EUSAGE, "--axes: too long a name");
    memcpy(one, name, n);
    one[n] = 0;
    if (o->k == t->n_col) return CD_FAIL(err, EUSAGE, "--axes: more settings than columns");
    CD_TRY(cd_csv_table_need(t, one, &o->col[o->k], err));
    if (o->col[o->k] == o->y) return CD_FAIL(err, EUSAGE, "--axes: '%s' is the target", one);
    for (size_t i = 0; i < o->k; i++)
        if (o->col[i] == o->col[o->k])
            return CD_FAIL(err, EUSAGE, "--axes: '%s' is there twice", one);
    o->k++;
    return CDMPP_OK;
}

/* The target, then the settings: those that were named, else all other columns. */
static cdmpp_status find_columns(columns *o, cd_csv_table *t, const char *target, const char *axes,
                                 cdmpp_err *err) {
    CD_TRY(cd_csv_table_need(t, target, &o->y, err));
    o->col = CD_NEWN(&t->arena, size_t, t->n_col + 1);
    if (!o->col) return CD_FAIL(err, ENOMEM, "%zu columns", t->n_col);
    for (const char *at = axes; at;) {
        const size_t n = strcspn(at, ",");
        CD_TRY(add_axis(o, t, at, n, err));
        at = at[n] ? at + n + 1 : NULL;
    }
    for (size_t i = 0; !axes && i < t->n_col; i++)
        if (i != o->y) o->col[o->k++] = i;
    return o->k ? CDMPP_OK
                : cd_err_at(err, CD_FAIL(err, ESCHEMA, "no setting beside '%.60s'", target),
                            t->path, 0);
}

static cdmpp_status numbers(const columns *o, const cd_csv_table *t, double *x, double *y,
                            cdmpp_err *err) {
    for (size_t r = 0; r < t->n_row; r++) {
        CD_TRY(cd_csv_table_number(t, r, o->y, &y[r], err));
        for (size_t c = 0; c < o->k; c++)
            CD_TRY(cd_csv_table_number(t, r, o->col[c], &x[r * o->k + c], err));
    }
    return CDMPP_OK;
}

static double strength(const cd_correlation_axis *a) {
    return fmax(fabs(a->spearman), a->distance);
}

/* Strongest first; the sort is stable, so equal ones stay as in the table. */
static void order(const cd_correlation_axis *a, size_t k, size_t *at) {
    for (size_t i = 0; i < k; i++) {
        size_t j = i;
        for (; j && strength(&a[at[j - 1]]) < strength(&a[i]); j--) at[j] = at[j - 1];
        at[j] = i;
    }
}

static cdmpp_status of_table(cd_correlation_table *out, cd_csv_table *t, const char *axes,
                             double strong, cdmpp_err *err) {
    columns o = {0};
    CD_TRY(find_columns(&o, t, out->target, axes, err));
    double *x = CD_NEWN(&t->arena, double, t->n_row *o.k),
           *y = CD_NEWN(&t->arena, double, t->n_row);
    cd_correlation_axis *a = CD_NEWN(&t->arena, cd_correlation_axis, o.k);
    size_t *at = CD_NEWN(&t->arena, size_t, o.k);
    out->axis = CD_NEWN(&out->arena, cd_correlation_axis, o.k);
    out->name = CD_NEWN(&out->arena, const char *, o.k);
    if (!x || !y || !a || !at || !out->axis || !out->name)
        return CD_FAIL(err, ENOMEM, "%zu rows", t->n_row);
    CD_TRY(numbers(&o, t, x, y, err));
    CD_TRY(cd_err_at(err, cd_correlation_axes(x, y, t->n_row, o.k, strong, a, err), t->path, 0));
    order(a, o.k, at);
    out->n_row = t->n_row;
    for (size_t i = 0; i < o.k; i++) {
        const char *name = t->name[o.col[at[i]]];
        out->axis[i] = a[at[i]];
        if (!(out->name[i] = cd_str_dup(&out->arena, (cd_str){name, strlen(name)})))
            return CD_FAIL(err, ENOMEM, "names");
        out->k++;
    }
    return CDMPP_OK;
}

cdmpp_status cd_correlation_table_read(const char *path, const char *target, const char *axes,
                                       double strong, cd_correlation_table *out, cdmpp_err *err) {
    cd_csv_table t;
    *out = (cd_correlation_table){.target = target};
    cdmpp_status st = cd_csv_table_read(&t, path, err);
    if (!st) st = of_table(out, &t, axes, strong, err);
    cd_csv_table_free(&t);
    return st;
}

void cd_correlation_table_free(cd_correlation_table *t) {
    cd_arena_free(&t->arena);
    *t = (cd_correlation_table){0};
}
