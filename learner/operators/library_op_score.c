/* Figures of a check: errors of each class and device, as a table and as JSON. */
#include "learner/operators/operators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void cd_library_op_score_free(cd_library_op_score *s) {
    cd_mem_free(s->row);
    *s = (cd_library_op_score){0};
}

cdmpp_status cd_library_op_score_add(cd_library_op_score *s, const cd_library_op_score_row *row,
                                     cdmpp_err *err) {
    if (CD_GROW(s->row, s->n, s->cap)) return CD_FAIL(err, ENOMEM, "%zu predictions", s->n);
    s->row[s->n++] = *row;
    return CDMPP_OK;
}

static double middle(const double *sorted, size_t n) {
    return n ? cd_sort_median(sorted, n) : (double)NAN;
}

void cd_library_op_score_errors(double *e, size_t n, cd_library_op_score_sum *out) {
    double sum = 0, log_sum = 0, close = 0;
    cd_sort_doubles(e, n); /* before adding: the sum then depends on no order */
    out->n = n;
    out->bias = middle(e, n);
    for (size_t i = 0; i < n; i++) {
        log_sum += fabs(log1p(e[i]));
        e[i] = fabs(e[i]);
        sum += e[i];
        close += e[i] <= 0.2;
    }
    cd_sort_doubles(e, n);
    out->mape = sum / (double)n;
    out->mae_log = log_sum / (double)n;
    out->median = middle(e, n);
    out->p90 = n ? e[n * 9 / 10] : (double)NAN;
    out->within20 = close / (double)n;
}

cdmpp_status cd_library_op_score_sum_of(const cd_library_op_score *s,
                                        cd_library_op_score_want *want, const void *ctx,
                                        cd_library_op_score_sum *out, cdmpp_err *err) {
    double *e = cd_mem_zalloc(s->n + 1, sizeof *e);
    double inside = 0, told = 0;
    size_t n = 0;
    if (!e) return CD_FAIL(err, ENOMEM, "%zu errors", s->n);
    for (size_t i = 0; i < s->n; i++) {
        if (want && !want(&s->row[i], ctx)) continue;
        e[n++] = s->row[i].error;
        if (isnan(s->row[i].inside)) continue;
        inside += s->row[i].inside;
        told++;
    }
    cd_library_op_score_errors(e, n, out);
    out->inside = inside / told; /* 0 / 0: no row has an interval */
    cd_mem_free(e);
    return CDMPP_OK;
}

/* ---- the table ---- */
typedef struct {
    cd_library_op_class class; /* CD_N_LIBRARY_OP_CLASS: any */
    const char *device;        /* NULL: any */
    int seen, beyond;          /* -1: either */
} group;

static bool belongs(const cd_library_op_score_row *r, const void *ctx) {
    const group *g = ctx;
    return (g->class == CD_N_LIBRARY_OP_CLASS || r->class == g->class) &&
           (!g->device || !strcmp(r->device, g->device)) && (g->seen < 0 || g->seen == r->seen) &&
           (g->beyond < 0 || g->beyond == r->beyond);
}

static cdmpp_status line(const cd_library_op_score *s, const group *g, const char *device,
                         const char *sizes, cd_buf *out, cdmpp_err *err) {
    cd_library_op_score_sum v;
    CD_TRY(cd_library_op_score_sum_of(s, belongs, g, &v, err));
    if (!v.n) return CDMPP_OK;
    const char *class =
        g->class == CD_N_LIBRARY_OP_CLASS ? "**all**" : cd_library_op_class_name(g->class);
    cd_buf_putf(out, "| %s | %s | %s | %zu | %.1f | %.3f | %.1f | %+.1f | %.1f | ", class, device,
                sizes, v.n, 100 * v.mape, v.mae_log, 100 * v.median, 100 * v.bias,
                100 * v.within20);
    if (isnan(v.inside)) cd_buf_puts(out, "- |\n");
    else cd_buf_putf(out, "%.1f |\n", 100 * v.inside);
    return CDMPP_OK;
}

static int by_group(const void *a, const void *b) {
    const cd_library_op_score_row *x = a, *y = b;
    if (x->class != y->class) return (int)x->class - (int)y->class;
    if (x->seen != y->seen) return (int)y->seen - (int)x->seen;
    return strcmp(x->device, y->device);
}

static cdmpp_status totals(const cd_library_op_score *s, cd_library_op_class c, cd_buf *out,
                           cdmpp_err *err) {
    for (int seen = 1; seen >= 0; seen--) {
        const char *name = seen ? "**trained on**" : "**unseen**";
        CD_TRY(line(s, &(group){c, NULL, seen, 0}, name, "not larger", out, err));
        CD_TRY(line(s, &(group){c, NULL, seen, 1}, name, "larger", out, err));
        CD_TRY(line(s, &(group){c, NULL, seen, -1}, name, "all", out, err));
    }
    return CDMPP_OK;
}

/* One line a device, then the totals of the class; at the end those of all classes. */
cdmpp_status cd_library_op_score_text(cd_library_op_score *s, cd_buf *out, cdmpp_err *err) {
    if (s->n) qsort(s->row, s->n, sizeof *s->row, by_group);
    cd_buf_puts(out, "| class | device | sizes | n | MAPE % | MAE(log) | median % | bias % | "
                     "within 20 % | in interval % |\n"
                     "| --- | --- | --- | --: | --: | --: | --: | --: | --: | --: |\n");
    for (size_t i = 0; i < s->n; i++) {
        const cd_library_op_score_row *r = &s->row[i];
        const bool first = !i || by_group(r, r - 1), last = i + 1 == s->n || r[1].class != r->class;
        cd_buf name = {0};
        cd_buf_putf(&name, "%s%s", r->device, r->seen ? "" : " (unseen)");
        if (name.oom) return CD_FAIL(err, ENOMEM, "table");
        cdmpp_status st =
            first ? line(s, &(group){r->class, r->device, r->seen, -1}, name.p, "all", out, err)
                  : CDMPP_OK;
        if (!st && last) st = totals(s, r->class, out, err);
        cd_buf_free(&name);
        if (st) return st;
    }
    for (int seen = 1; seen >= 0; seen--)
        CD_TRY(line(s, &(group){CD_N_LIBRARY_OP_CLASS, NULL, seen, -1},
                    seen ? "**trained on**" : "**unseen**", "all", out, err));
    return out->oom ? CD_FAIL(err, ENOMEM, "table") : CDMPP_OK;
}

/* As the table, without the totals. */
cdmpp_status cd_library_op_score_json(cd_library_op_score *s, cd_buf *out, cdmpp_err *err) {
    if (s->n) qsort(s->row, s->n, sizeof *s->row, by_group);
    cd_buf_puts(out, "[");
    for (size_t i = 0; i < s->n; i++) {
        const cd_library_op_score_row *r = &s->row[i];
        cd_library_op_score_sum v;
        if (i && !by_group(r, r - 1)) continue;
        CD_TRY(cd_library_op_score_sum_of(s, belongs, &(group){r->class, r->device, r->seen, -1},
                                          &v, err));
        cd_buf_putf(out, "%s{\"class\":\"%s\",\"device\":", i ? "," : "",
                    cd_library_op_class_name(r->class));
        cd_buf_put_json_str(out, r->device, strlen(r->device));
        cd_buf_putf(out,
                    ",\"seen\":%s,\"n\":%zu,\"mape\":%.6g,\"mae_log\":%.6g,\"median\":%.6g,"
                    "\"bias\":%.6g,\"within20\":%.6g,\"inside\":",
                    r->seen ? "true" : "false", v.n, v.mape, v.mae_log, v.median, v.bias,
                    v.within20);
        if (isnan(v.inside)) cd_buf_puts(out, "null}");
        else cd_buf_putf(out, "%.6g}", v.inside);
    }
    cd_buf_puts(out, "]");
    return out->oom ? CD_FAIL(err, ENOMEM, "figures") : CDMPP_OK;
}
