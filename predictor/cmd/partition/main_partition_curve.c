/* Verb "curve" of cdmpp-partition: the law that a time follows over a size. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/cmd/partition/main_partition_tools.h"
#include "profiler/curves/curves.h"

#define AT(member) offsetof(cd_partition_curve_options, member)
enum { WHAT, STORE, TOLD };
static const char *const group[] = {"What", "Curves of a store", "What is told"};
static const cd_option table[] = {
    {"operator", 0, "NAME", CD_OPTION_TEXT, AT(op), NULL, WHAT, "Only of this operator"},
    {"limit", 'n', "N", CD_OPTION_INT, AT(limit), "1..2000000000", WHAT, "At most N curves"},
    {"store", 0, "FILE", CD_OPTION_FILE, AT(store), "*.db", STORE, "Curves of measurements in this store, of --operator over --dim"},
    {"device", 0, "NAME", CD_OPTION_TEXT, AT(device), NULL, STORE, "Only measured on this device (default: each device its own curves)"},
    {"dim", 0, "A.D", CD_OPTION_TEXT, AT(dim), NULL, STORE, "Size: dimension D of operand A, both from 0 (default: 0.0)"},
    {"at", 0, "N,N,...", CD_OPTION_TEXT, AT(at), NULL, TOLD, "Also the seconds at these sizes"},
    {"level", 0, "P", CD_OPTION_TEXT, AT(level), NULL, TOLD, "Probability of the interval of --at (default: 0.9)"},
    {"tolerance", 0, "R", CD_OPTION_TEXT, AT(tolerance), NULL, TOLD, "What is off by less is no reason to refuse a law (default: 0.05)"},
    {"svg", 0, "FILE", CD_OPTION_FILE, AT(svg), "*.svg", TOLD, "Draw the first eight there"},
};
static const char *const use[] = {"[--at N,N] [--operator NAME] [--svg FILE] [OPTION...] TABLE...", "--store DB --operator NAME [--device NAME] [--dim A.D] [OPTION...]", NULL};
static const char *const example[] = {"Where does each operator turn, and what does it take at 48?", "cdmpp-partition curve --at 48 curves.tsv",
                                      "One curve of one's own", "printf 'size,seconds\\n1,2e-6\\n64,2.1e-6\\n128,4e-6\\n256,8e-6\\n' | cdmpp-partition curve -", NULL};
static const char *const see[] = {"cdmpp-profile(1)", NULL};

/* ---- options ---- */
static cdmpp_status sizes(cd_partition_curve_options *o, cdmpp_err *err) {
    char *end;
    for (const char *at = o->at; at; at = *end ? end + 1 : NULL) {
        const double v = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !(v > 0 && v <= 1e15)) return CD_FAIL(err, EUSAGE, "--at: expected sizes above 0 with commas between, found '%.60s'", at);
        if (o->n_at == CD_PARTITION_AT) return CD_FAIL(err, EUSAGE, "--at: at most %d sizes", CD_PARTITION_AT);
        o->at_v[o->n_at++] = v;
    }
    return CDMPP_OK;
}

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    cd_partition_curve_options *o = to;
    CD_TRY(cd_partition_number("level", o->level, 0.01, 0.999, &o->level_v, err));
    CD_TRY(cd_partition_number("tolerance", o->tolerance, 1e-6, 1, &o->tolerance_v, err));
    CD_TRY(sizes(o, err));
    if (o->store && !o->op) return CD_FAIL(err, EUSAGE, "--store: --operator is missing");
    if (!o->store && (o->device || o->dim)) return CD_FAIL(err, EUSAGE, "--device and --dim go with --store");
    if (!o->store && !said->operand.n) return CD_FAIL(err, EUSAGE, "no table to read");
    return CDMPP_OK;
}

const cd_command cd_partition_curve_command = {
    "cdmpp-partition curve", "which law a time follows over a size, and where it turns", use,
    "Fits a law to each curve: constant, affine, hinge, slopes, stairs, table, or irregular where none fits; the class by EOP's three patterns: flat (launch bound), "
    "linear (throughput bound), piecewise (changes inside); the turning point with its standard error.\n\n"
    "Tables: what cdmpp-profile curves writes, or CSV with the columns size and seconds; with a column curve, several.",
    table, sizeof table / sizeof *table, group, "*.tsv|*.csv|*.xz", example, NULL, see, NULL, check};

/* ---- tables with tabs ---- */
static cdmpp_status read_tsv(cd_partition_curves *c, const cd_partition_curve_options *o, const char *path, cdmpp_err *err) {
    cd_curves *r;
    cd_curve v;
    cd_buf name = {0};
    cdmpp_status st = CDMPP_OK;
    CD_TRY(cd_curves_open(path, &r, err));
    for (bool more = true; more && !st && !cd_partition_curves_full(c);) {
        cdmpp_err why = {0};
        const cdmpp_status got = cd_curves_next(r, &v, &more, &why);
        if (got && more) cd_partition_curves_skip(c, &why);
        if (got && !more) st = got, *err = why;
        if (got || !more || (o->op && strcmp(o->op, v.op) != 0)) continue;
        cd_buf_clear(&name);
        cd_buf_putf(&name, "%s%s%s, %s", v.op, v.shape[0] ? " " : "", v.shape, v.host);
        if (v.device_id >= 0) cd_buf_putf(&name, ":%ld", v.device_id);
        st = cd_partition_curves_add(c, &(cd_partition_points){name.p, v.op, v.n, v.x, v.t}, err);
    }
    cd_curves_close(r);
    cd_buf_free(&name);
    return st;
}

/* ---- CSV ---- */
typedef struct {
    double x, t;
} point;

static int by_size(const void *a, const void *b) {
    const point *p = a, *q = b;
    return p->x != q->x ? (p->x > q->x) - (p->x < q->x) : (p->t > q->t) - (p->t < q->t);
}

size_t cd_partition_curve_sort(double *x, double *t, size_t n) {
    size_t kept = 0;
    point *p = cd_mem_zalloc(n + 1, sizeof *p);
    if (!p) return 0;
    for (size_t i = 0; i < n; i++) p[i] = (point){x[i], t[i]};
    qsort(p, n, sizeof *p, by_size);
    for (size_t i = 0; i < n; i++)
        if (!kept || p[i].x > x[kept - 1]) x[kept] = p[i].x, t[kept++] = p[i].t;
    cd_mem_free(p);
    return kept;
}

/* The curve of row `first`: its rows are marked. */
static cdmpp_status one_of_table(cd_partition_curves *c, const cd_partition_table *t, const size_t *col, size_t first, bool *done, double *x, cdmpp_err *err) {
    const char *name = col[2] == SIZE_MAX ? "" : t->cell[first][col[2]];
    size_t n = 0;
    for (size_t i = first; i < t->n_row; i++) {
        if (done[i] || (col[2] != SIZE_MAX && strcmp(t->cell[i][col[2]], name) != 0)) continue;
        done[i] = true;
        CD_TRY(cd_partition_table_number(t, i, col[0], &x[n], err));
        CD_TRY(cd_partition_table_number(t, i, col[1], &x[t->n_row + n], err));
        if (!(x[n] > 0) || !(x[t->n_row + n] > 0))
            return cd_err_at(err, CD_FAIL(err, ERANGE, "expected a size and seconds above 0, found %g, %g", x[n], x[t->n_row + n]), t->path, t->line[i]);
        n++;
    }
    const size_t kept = cd_partition_curve_sort(x, x + t->n_row, n);
    if (!kept) return CD_FAIL(err, ENOMEM, "%zu points", n);
    return cd_partition_curves_add(c, &(cd_partition_points){name[0] ? name : t->path, name, kept, x, x + t->n_row}, err);
}

static cdmpp_status curves_of_table(cd_partition_curves *c, const cd_partition_curve_options *o, const cd_partition_table *t, cdmpp_err *err) {
    size_t col[3];
    CD_TRY(cd_partition_table_need(t, "size", &col[0], err));
    CD_TRY(cd_partition_table_need(t, "seconds", &col[1], err));
    col[2] = cd_partition_table_find(t, "curve");
    bool *done = cd_mem_zalloc(t->n_row, sizeof *done);
    double *x = done ? cd_mem_zalloc(2 * t->n_row, sizeof *x) : NULL;
    cdmpp_status st = x ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu points", t->n_row);
    for (size_t i = 0; !st && i < t->n_row && !cd_partition_curves_full(c); i++) {
        if (done[i] || (o->op && (col[2] == SIZE_MAX || strcmp(o->op, t->cell[i][col[2]]) != 0))) continue;
        st = one_of_table(c, t, col, i, done, x, err);
    }
    cd_mem_free(x);
    cd_mem_free(done);
    return st;
}

static cdmpp_status read_csv(cd_partition_curves *c, const cd_partition_curve_options *o, const char *path, cdmpp_err *err) {
    cd_partition_table t;
    cdmpp_status st = cd_partition_table_read(&t, path, err);
    if (!st) st = curves_of_table(c, o, &t, err);
    cd_partition_table_free(&t);
    return st;
}

/* Names of columns with tabs between? Standard input can be read but once: it is CSV. */
static cdmpp_status has_tabs(const char *path, bool *yes, cdmpp_err *err) {
    cd_file_lines *l;
    char *line = NULL;
    size_t len;
    *yes = false;
    if (!strcmp(path, "-")) return CDMPP_OK;
    CD_TRY(cd_file_lines_open(path, 0, &l, err));
    const cdmpp_status st = cd_file_lines_next(l, &line, &len, err);
    if (!st && line) *yes = memchr(line, '\t', len) != NULL;
    cd_file_lines_close(l);
    return st;
}

static cdmpp_status read_all(cd_partition_curves *c, const cd_partition_curve_options *o, cdmpp_err *err) {
    if (o->store) CD_TRY(cd_partition_curve_store(c, o, err));
    for (size_t i = 0; i < o->operand.n; i++) {
        bool tabs;
        CD_TRY(has_tabs(o->operand.v[i], &tabs, err));
        CD_TRY(tabs ? read_tsv(c, o, o->operand.v[i], err) : read_csv(c, o, o->operand.v[i], err));
    }
    return CDMPP_OK;
}

int cd_partition_curve(int argc, char **argv) {
    cd_partition_curve_options o = {.level_v = 0.9};
    cd_partition_curves *c = NULL;
    cdmpp_err err = {0};
    cd_command_run f;
    int code;
    size_t bad = 0;
    if (!cd_command_begin(&f, &cd_partition_curve_command, argc, argv, &o, &code)) return code;
    o.json = f.said.json;
    o.log = &f.log;
    o.operand = f.said.operand;
    cdmpp_status st = cd_partition_curves_new(&o, &c, &err);
    if (!st) st = read_all(c, &o, &err);
    if (!st) st = cd_partition_curves_print(c, &bad, &err);
    cd_partition_curves_free(c);
    return cd_partition_finish(&f, st, &err, bad > 0);
}
