/* trace_csv -- tables of nvprof, nsys stats, ncu and cutlass_profiler in one file, among other
 * text.
 *
 *   ==4711== Profiling result:
 *   "Start","Duration","Grid X", .. "Name"      a header begins a table: which one, its columns say
 *   ms,us,,,,                                   nvprof and ncu --page raw: the line of units
 *   142.41,2.208,80, .. "sgemm(int)"            rows, until a blank line or another header
 *
 * What stands before a header or behind a blank line is text of the tool. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "profiler/trace/trace_csv.h"

/* ---- fields ---- */
static const char *const column_names[CD_N_TRACE_COLUMN] = {
#define CD_X(id, names) [CD_TRACE_COL_##id] = names,
    CD_TRACE_COLUMNS(CD_X)
#undef CD_X
};

cd_str cd_trace_csv_field(const cd_trace_csv *c, cd_trace_column k) {
    const int i = c->of[k];
    cd_str f = i >= 0 && (size_t)i < c->n ? c->field[i] : (cd_str){"", 0};
    while (f.n && isspace((unsigned char)f.p[0])) f.p++, f.n--;
    while (f.n && isspace((unsigned char)f.p[f.n - 1])) f.n--;
    return f;
}

cdmpp_status cd_trace_csv_number(const cd_trace_csv *c, cd_trace_column k, double lo, double *out,
                                 cdmpp_err *err) {
    const cd_str f = cd_trace_csv_field(c, k), name = cd_enum_names_at(column_names[k], 0);
    char text[64], *end;
    size_t n = 0;
    for (size_t i = 0; i < f.n && n + 1 < sizeof text; i++)
        if (f.p[i] != ',') text[n++] = f.p[i];
    text[n] = 0;
    *out = strtod(text, &end);
    if (!n || *end || !isfinite(*out))
        return CD_FAIL(err, EPARSE, "%.*s: expected a number, found '%.40s'", (int)name.n, name.p,
                       text);
    return *out >= lo ? CDMPP_OK
                      : CD_FAIL(err, ERANGE, "%.*s: expected at least %g, found '%.40s'",
                                (int)name.n, name.p, lo, text);
}

double cd_trace_csv_per_second(const char *unit) {
    static const struct {
        const char *names;
        double n;
    } known[] = {{"s|sec|second", 1},
                 {"ms|msec|msecond", 1e3},
                 {"us|usec|usecond", 1e6},
                 {"ns|nsec|nsecond", 1e9}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (cd_enum_names_find(known[i].names, (cd_str){unit, strlen(unit)}) >= 0)
            return known[i].n;
    return 0;
}

/* ---- headers ---- */

/* "Start (ns)" as "start" and "ns", in small letters. */
static void name_and_unit(cd_str f, char name[CD_TRACE_WORD], char unit[CD_TRACE_WORD]) {
    size_t n = 0, u = 0;
    bool in = false;
    for (size_t i = 0; i < f.n; i++) {
        const char c = f.p[i];
        if (c == '(' || c == ')') in = c == '(';
        else if (in && u + 1 < CD_TRACE_WORD) unit[u++] = c;
        else if (!in && n + 1 < CD_TRACE_WORD) name[n++] = (char)tolower((unsigned char)c);
    }
    while (n && name[n - 1] == ' ') n--;
    name[n] = unit[u] = 0;
}

static void find_columns(cd_trace_csv *c) {
    char name[CD_TRACE_WORD], unit[CD_TRACE_WORD];
    for (int k = 0; k < CD_N_TRACE_COLUMN; k++) c->of[k] = -1, c->unit[k][0] = 0;
    for (size_t i = 0; i < c->n; i++) {
        name_and_unit(c->field[i], name, unit);
        for (int k = 0; k < CD_N_TRACE_COLUMN && strcmp(unit, "%"); k++) {
            if (c->of[k] >= 0 ||
                cd_enum_names_find(column_names[k], (cd_str){name, strlen(name)}) < 0)
                continue;
            c->of[k] = (int)i;
            memcpy(c->unit[k], unit, sizeof unit);
        }
    }
}

/* The table that a line of these columns begins; *known false: it is no header at all. */
static cd_trace_table table_of(const cd_trace_csv *c, bool *known) {
#define HAS(k) (c->of[CD_TRACE_COL_##k] >= 0)
    *known = true;
    if (HAS(DISPOSITION) && HAS(OP_KIND) && HAS(RUNTIME)) return CD_TRACE_TABLE_CUTLASS;
    if (HAS(NAME) && HAS(METRIC) && HAS(VALUE) && HAS(UNIT)) return CD_TRACE_TABLE_METRICS;
    if (HAS(NAME) && HAS(GPU_TIME)) return CD_TRACE_TABLE_KERNELS;
    if (HAS(START) && HAS(DURATION) && HAS(NAME) && HAS(DEVICE)) return CD_TRACE_TABLE_LAUNCHES;
    if (HAS(TOTAL) && HAS(CALLS) && HAS(NAME) && HAS(AVG)) return CD_TRACE_TABLE_SUMMARY;
    *known = (HAS(START) && HAS(DURATION)) || (HAS(TOTAL) && HAS(AVG)) || (HAS(ID) && HAS(NAME)) ||
             (HAS(AVG) && HAS(MIN) && HAS(MAX));
    return CD_TRACE_TABLE_NONE;
#undef HAS
}

static const char *form_of(const cd_trace_csv *c) {
    const bool nsys = c->unit[c->table == CD_TRACE_TABLE_SUMMARY ? CD_TRACE_COL_TOTAL
                                                                 : CD_TRACE_COL_DURATION][0] != 0;
    switch (c->table) {
    case CD_TRACE_TABLE_LAUNCHES: return nsys ? "nsys stats" : "nvprof";
    case CD_TRACE_TABLE_SUMMARY: return nsys ? "nsys stats summary" : "nvprof summary";
    case CD_TRACE_TABLE_CUTLASS: return "cutlass";
    default: return "ncu";
    }
}

/* Is it a header? Then its table begins. No header begins with a number, and nearly all rows do. */
static bool header(cd_trace_csv *c) {
    int old[CD_N_TRACE_COLUMN];
    char unit[CD_N_TRACE_COLUMN][CD_TRACE_WORD];
    bool known;
    if (c->n < 3 || !c->field[0].n || !isalpha((unsigned char)c->field[0].p[0])) return false;
    memcpy(old, c->of, sizeof old);
    memcpy(unit, c->unit, sizeof unit);
    find_columns(c);
    const cd_trace_table t = table_of(c, &known);
    if (!known) {
        memcpy(c->of, old, sizeof old);
        memcpy(c->unit, unit, sizeof unit);
        return false;
    }
    c->table = t;
    c->id[0] = 0;
    c->timed = true;
    if (t == CD_TRACE_TABLE_NONE) return true;
    c->any = true;
    c->r->t->form = form_of(c);
    c->units_next = t == CD_TRACE_TABLE_KERNELS || !strncmp(c->r->t->form, "nvprof", 6);
    c->binary = !strncmp(c->r->t->form, "nvprof", 6);
    return true;
}

static cdmpp_status units(cd_trace_csv *c, cdmpp_err *err) {
    static const cd_trace_column need[] = {[CD_TRACE_TABLE_LAUNCHES] = CD_TRACE_COL_DURATION,
                                           [CD_TRACE_TABLE_SUMMARY] = CD_TRACE_COL_TOTAL,
                                           [CD_TRACE_TABLE_KERNELS] = CD_TRACE_COL_GPU_TIME};
    c->units_next = false;
    for (int k = 0; k < CD_N_TRACE_COLUMN; k++) {
        const cd_str f = cd_trace_csv_field(c, (cd_trace_column)k);
        snprintf(c->unit[k], CD_TRACE_WORD, "%.*s", (int)(f.n < CD_TRACE_WORD ? f.n : 0), f.p);
    }
    if (cd_trace_csv_per_second(c->unit[need[c->table]]) > 0) return CDMPP_OK;
    c->table = CD_TRACE_TABLE_NONE;
    return CD_FAIL(err, ESCHEMA,
                   "expected a line of units with one of time behind the names of the columns: the "
                   "table is left out");
}

/* ---- lines ---- */
static cdmpp_status one_line(cd_trace_csv *c, char *line, size_t len, cdmpp_err *err) {
    if (!strncmp(line, "==", 2)) return CDMPP_OK;
    if (!line[strspn(line, " \t\r")]) {
        c->table = CD_TRACE_TABLE_NONE;
        return CDMPP_OK;
    }
    const cdmpp_status st =
        cd_csv_fields_split(line, len, c->field, CD_TRACE_MOST_FIELDS, &c->n, err);
    if (st && c->table == CD_TRACE_TABLE_NONE) return CDMPP_OK; /* text of the tool */
    if (st) return c->r->t->lines++, st;
    if (header(c)) return CDMPP_OK;
    if (c->table == CD_TRACE_TABLE_NONE) return CDMPP_OK;
    return c->units_next ? units(c, err) : cd_trace_csv_row(c, err);
}

static cdmpp_status read_lines(cd_trace_csv *c, cd_file_lines *l, cdmpp_err *err) {
    for (;;) {
        char *line;
        size_t len;
        cdmpp_err e = {0};
        cdmpp_status st = cd_file_lines_next(l, &line, &len, &e);
        const bool broken = st && st != CDMPP_ERANGE;
        if (!st && !line) break;
        c->line = cd_file_lines_number(l);
        if (!st) st = cd_err_at(&e, one_line(c, line, len, &e), c->r->path, c->line);
        if (st) CD_TRY(cd_trace_bad(c->r, st, &e, err));
        if (broken) break;
        CD_TRY(cd_trace_stopped(c->r, err));
    }
    c->r->t->last_line = c->line;
    if (c->any) return CDMPP_OK;
    return cd_err_at(err,
                     CD_FAIL(err, ESCHEMA,
                             "found no table of nvprof --csv, nsys stats --format csv "
                             "(cuda_gpu_trace, cuda_gpu_kern_sum), ncu --csv (with the "
                             "metric gpu__time_duration.sum) or cutlass_profiler"),
                     c->r->path, 0);
}

cdmpp_status cd_trace_read_csv(cd_trace_reader *r, cdmpp_err *err) {
    cd_file_lines *l = NULL;
    cd_trace_csv *c = cd_mem_zalloc(1, sizeof *c);
    if (!c) return CD_FAIL(err, ENOMEM, "tables of a trace");
    c->r = r;
    for (int k = 0; k < CD_N_TRACE_COLUMN; k++) c->of[k] = -1;
    cdmpp_status st = cd_file_lines_open(r->path, 1 << 20, &l, err);
    if (!st) st = read_lines(c, l, err);
    cd_file_lines_close(l);
    cd_mem_free(c);
    return st;
}
