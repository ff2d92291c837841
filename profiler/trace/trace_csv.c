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

/* Field of a column; empty where there is none. */
static cd_str trace_csv_field(const cd_trace_csv *c, cd_trace_column k) {
    const int i = c->of[k];
    cd_str f = i >= 0 && (size_t)i < c->n ? c->field[i] : (cd_str){"", 0};
    while (f.n && isspace((unsigned char)f.p[0])) f.p++, f.n--;
    while (f.n && isspace((unsigned char)f.p[f.n - 1])) f.n--;
    return f;
}

/* A field as a number, thousands with or without commas. Errors, with the column's name: EPARSE,
 * ERANGE (below lo). */
static cdmpp_status trace_csv_number(const cd_trace_csv *c, cd_trace_column k, double lo,
                                     double *out, cdmpp_err *err) {
    const cd_str f = trace_csv_field(c, k), name = cd_enum_names_at(column_names[k], 0);
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

/* How many of a unit "us", "usecond" .. are a second; 0: no unit of time. */
static double trace_csv_per_second(const char *unit) {
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
        const cd_str f = trace_csv_field(c, (cd_trace_column)k);
        snprintf(c->unit[k], CD_TRACE_WORD, "%.*s", (int)(f.n < CD_TRACE_WORD ? f.n : 0), f.p);
    }
    if (trace_csv_per_second(c->unit[need[c->table]]) > 0) return CDMPP_OK;
    c->table = CD_TRACE_TABLE_NONE;
    return CD_FAIL(err, ESCHEMA,
                   "expected a line of units with one of time behind the names of the columns: the "
                   "table is left out");
}

static cdmpp_status trace_csv_row(cd_trace_csv *c, cdmpp_err *err);

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
    return c->units_next ? units(c, err) : trace_csv_row(c, err);
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

/* trace_csv_row -- one row of each table that a CSV file may hold. */

#define FIELD(k)           trace_csv_field(c, CD_TRACE_COL_##k)
#define NUMBER(k, lo, out) CD_TRY(trace_csv_number(c, CD_TRACE_COL_##k, (lo), (out), err))

static bool begins(cd_str s, const char *with) {
    return s.n >= strlen(with) && !memcmp(s.p, with, strlen(with));
}

static double per_second(const cd_trace_csv *c, cd_trace_column k) {
    return trace_csv_per_second(c->unit[k]);
}

/* A field of digits; -1: it is none. Fields do not end with a NUL. */
static int64_t digits(cd_str s) {
    int64_t v = 0;
    for (size_t i = 0; i < s.n && s.n < 18; i++) {
        if (!isdigit((unsigned char)s.p[i])) return -1;
        v = 10 * v + (s.p[i] - '0');
    }
    return s.n && s.n < 18 ? v : -1;
}

/* "[CUDA memcpy HtoD]" is a copy, "[CUDA memset]" a fill. */
static cd_trace_kind kind_of(cd_str name) {
    if (begins(name, "[CUDA memcpy")) return CD_TRACE_COPY;
    return begins(name, "[CUDA memset") || begins(name, "[CUDA Unified Memory Memset")
               ? CD_TRACE_SET
               : CD_TRACE_KERNEL;
}

/* The number in brackets at the end of a text, taken off with the blank before it; -1: there is
 * none. nvprof's "sgemm(int) [421]" and "Tesla T4 (0)". */
static int64_t take_number(cd_str *s, char open, char close) {
    size_t i = s->n;
    if (i < 4 || s->p[i - 1] != close) return -1;
    for (i--; i && isdigit((unsigned char)s->p[i - 1]);) i--;
    if (i < 2 || i + 1 == s->n || s->n - i > 18 || s->p[i - 1] != open || s->p[i - 2] != ' ')
        return -1;
    const int64_t v = digits((cd_str){s->p + i, s->n - 1 - i});
    s->n = i - 2;
    return v;
}

/* Number of a stream; texts and empty fields are stream 0. */
static int64_t stream_of(const cd_trace_csv *c) {
    const int64_t v = digits(FIELD(STREAM));
    return v < 0 ? 0 : v;
}

/* ---- launches ---- */
static cdmpp_status put_launch(cd_trace_csv *c, cd_trace_event *e, cdmpp_err *err) {
    cd_buf *b = &c->r->text;
    cd_buf_clear(b);
    cd_buf_puts(b, "[[");
    for (int i = 0; i < 6; i++) {
        double v;
        const cd_trace_column k = (cd_trace_column)(CD_TRACE_COL_GRID_X + i);
        if (!trace_csv_field(c, k).n) return CDMPP_OK;
        CD_TRY(trace_csv_number(c, k, 0, &v, err));
        cd_buf_putf(b, "%s%.0f", i == 3 ? "],[" : i ? "," : "", v);
    }
    cd_buf_puts(b, "]]");
    if (b->oom) return CD_FAIL(err, ENOMEM, "launch");
    return cd_trace_number(c->r, (cd_str){b->p, b->n}, &e->shape, err);
}

/* Bytes of a copy, by the unit of its column. */
static cdmpp_status put_bytes(const cd_trace_csv *c, cd_trace_event *e, cdmpp_err *err) {
    static const char *const unit[] = {"B", "KB", "MB", "GB"};
    if (!FIELD(BYTES).n || e->kind == CD_TRACE_KERNEL) return CDMPP_OK;
    NUMBER(BYTES, 0, &e->bytes);
    for (int i = 0; i < 4; i++)
        if (!strcmp(c->unit[CD_TRACE_COL_BYTES], unit[i]))
            return e->bytes *= pow(c->binary ? 1024 : 1000, i), CDMPP_OK;
    e->bytes = NAN;
    return CDMPP_OK;
}

static cdmpp_status put_device(cd_trace_csv *c, cd_trace_event *e, cdmpp_err *err) {
    cd_str device = FIELD(DEVICE);
    char text[32];
    const bool number = device.n < 9 && digits(device) >= 0;
    const int64_t unit = number ? digits(device) : take_number(&device, '(', ')');
    e->unit = unit > 0 && unit < INT32_MAX ? (int32_t)unit : 0;
    if (number) device = (cd_str){text, (size_t)snprintf(text, sizeof text, "cuda:%d", e->unit)};
    return cd_trace_device_number(c->r, device, &e->device, err);
}

static cdmpp_status launch(cd_trace_csv *c, cdmpp_err *err) {
    cd_str name = FIELD(NAME);
    cd_trace_event e = cd_trace_event_init(kind_of(name), c->line);
    double start, time, link;
    if (c->r->how->skip >> e.kind & 1) return CDMPP_OK;
    c->r->t->lines++;
    if (!name.n) return CD_FAIL(err, ESCHEMA, "expected a name");
    if (e.kind == CD_TRACE_KERNEL) e.link = take_number(&name, '[', ']');
    NUMBER(START, 0, &start);
    NUMBER(DURATION, 0, &time);
    if (FIELD(LINK).n) {
        NUMBER(LINK, 0, &link);
        e.link = (int64_t)fmin(link, 9e15);
    }
    if (!(per_second(c, CD_TRACE_COL_START) > 0) || !(per_second(c, CD_TRACE_COL_DURATION) > 0))
        return CD_FAIL(err, ESCHEMA,
                       "expected units of time for start and duration, found '%s' and '%s'",
                       c->unit[CD_TRACE_COL_START], c->unit[CD_TRACE_COL_DURATION]);
    start *= 1e9 / per_second(c, CD_TRACE_COL_START);
    e.time_s = time / per_second(c, CD_TRACE_COL_DURATION);
    if (!(start < 9e18) || e.time_s > 1e9)
        return CD_FAIL(err, ERANGE, "expected a time below 1e9 s");
    if (!(e.time_s > 0)) return c->r->t->empty++, CDMPP_OK;
    e.start_ns = (int64_t)llround(start);
    e.thread = stream_of(c);
    CD_TRY(put_bytes(c, &e, err));
    CD_TRY(put_device(c, &e, err));
    CD_TRY(cd_trace_number(c->r, name, &e.name, err));
    if (e.kind == CD_TRACE_KERNEL) CD_TRY(put_launch(c, &e, err));
    return cd_trace_add(c->r, &e, err);
}

/* ---- summaries ---- */

/* Seconds of a column that may be missing. */
static double optional(const cd_trace_csv *c, cd_trace_column k) {
    double v;
    return trace_csv_field(c, k).n && !trace_csv_number(c, k, 0, &v, NULL) && per_second(c, k) > 0
               ? v / per_second(c, k)
               : (double)NAN;
}

static cdmpp_status summary(cd_trace_csv *c, cdmpp_err *err) {
    const cd_str type = FIELD(TYPE), name = FIELD(NAME);
    cd_trace *t = c->r->t;
    cd_trace_event e = cd_trace_event_init(kind_of(name), c->line);
    cd_trace_sum s = {.min_s = optional(c, CD_TRACE_COL_MIN),
                      .median_s = optional(c, CD_TRACE_COL_MED),
                      .max_s = optional(c, CD_TRACE_COL_MAX)};
    double total;
    /* calls of the host */
    if ((type.n && !cd_str_is(type, "GPU activities")) || c->r->how->skip >> e.kind & 1)
        return CDMPP_OK;
    t->lines++;
    if (!name.n) return CD_FAIL(err, ESCHEMA, "expected a name");
    NUMBER(TOTAL, 0, &total);
    NUMBER(CALLS, 1, &s.n);
    e.time_s = total / per_second(c, CD_TRACE_COL_TOTAL) / s.n;
    if (!(per_second(c, CD_TRACE_COL_TOTAL) > 0))
        return CD_FAIL(err, ESCHEMA, "time: expected a unit, found '%s'",
                       c->unit[CD_TRACE_COL_TOTAL]);
    if (!(e.time_s > 0)) return t->empty++, CDMPP_OK;
    if (CD_GROW(t->sum, t->n_sum, t->cap_sum)) return CD_FAIL(err, ENOMEM, "rows of a summary");
    e.sum = (uint32_t)t->n_sum;
    t->sum[t->n_sum++] = s;
    CD_TRY(put_device(c, &e, err));
    CD_TRY(cd_trace_number(c->r, name, &e.name, err));
    return cd_trace_add(c->r, &e, err);
}

/* ---- ncu ---- */

/* "(32, 32, 1)" as [32,32,1]; false: it is something else. */
static bool put_dims(cd_buf *b, cd_str f) {
    char text[64];
    unsigned d[3];
    snprintf(text, sizeof text, "%.*s", (int)(f.n < sizeof text ? f.n : 0), f.p);
    if (sscanf(text, "(%9u, %9u, %9u)", &d[0], &d[1], &d[2]) != 3) return false;
    cd_buf_putf(b, "[%u,%u,%u]", d[0], d[1], d[2]);
    return true;
}

/* Grid and block, where both are known. */
static cdmpp_status ncu_launch(cd_trace_csv *c, cd_trace_event *e, cdmpp_err *err) {
    cd_buf *b = &c->r->text;
    cd_buf_clear(b);
    cd_buf_puts(b, "[");
    if (!put_dims(b, FIELD(GRID))) return CDMPP_OK;
    cd_buf_puts(b, ",");
    if (!put_dims(b, FIELD(BLOCK))) return CDMPP_OK;
    cd_buf_puts(b, "]");
    if (b->oom) return CD_FAIL(err, ENOMEM, "launch");
    return cd_trace_number(c->r, (cd_str){b->p, b->n}, &e->shape, err);
}

static cdmpp_status ncu_kernel(cd_trace_csv *c, cd_trace_column time, double per, cdmpp_err *err) {
    cd_trace_event e = cd_trace_event_init(CD_TRACE_KERNEL, c->line);
    const cd_str name = FIELD(NAME);
    double v;
    c->r->t->lines++;
    if (!name.n) return CD_FAIL(err, ESCHEMA, "expected a name");
    if (!(per > 0)) return CD_FAIL(err, ESCHEMA, "expected a unit of time");
    CD_TRY(trace_csv_number(c, time, 0, &v, err));
    if (!(v > 0)) return c->r->t->empty++, CDMPP_OK;
    e.time_s = v / per;
    e.thread = stream_of(c);
    CD_TRY(put_device(c, &e, err));
    CD_TRY(cd_trace_number(c->r, name, &e.name, err));
    CD_TRY(ncu_launch(c, &e, err));
    return cd_trace_add(c->r, &e, err);
}

/* A kernel has a row for each metric. Its time is the first of those that are one. */
static cdmpp_status metric(cd_trace_csv *c, cdmpp_err *err) {
    const cd_str id = FIELD(ID), name = FIELD(METRIC), unit = FIELD(UNIT);
    char text[CD_TRACE_WORD];
    if (!cd_str_is(id, c->id)) {
        snprintf(c->id, sizeof c->id, "%.*s", (int)(id.n < sizeof c->id ? id.n : 0), id.p);
        c->timed = false;
    }
    if (c->timed || (!cd_str_is(name, "gpu__time_duration.sum") && !cd_str_is(name, "Duration")))
        return CDMPP_OK;
    c->timed = true;
    snprintf(text, sizeof text, "%.*s", (int)(unit.n < sizeof text ? unit.n : 0), unit.p);
    return ncu_kernel(c, CD_TRACE_COL_VALUE, trace_csv_per_second(text), err);
}

/* ---- CUTLASS ---- */
static double dim(const cd_trace_csv *c, cd_trace_column k) {
    double v;
    return trace_csv_field(c, k).n && !trace_csv_number(c, k, 0, &v, NULL) ? v : (double)NAN;
}

static const char *word(cd_arena *a, cd_str s) {
    const char *t = cd_str_dup(a, s);
    return t ? t : "";
}

static cd_trace_cutlass cutlass_of(const cd_trace_csv *c) {
    cd_arena *a = &c->r->arena;
    return (cd_trace_cutlass){.kind = word(a, FIELD(OP_KIND)),
                              .conv_kind = word(a, FIELD(CONV_KIND)),
                              .op_class = word(a, FIELD(OP_CLASS)),
                              .a = word(a, FIELD(A)),
                              .b = word(a, FIELD(B)),
                              .m = dim(c, CD_TRACE_COL_M),
                              .n = dim(c, CD_TRACE_COL_N),
                              .k = dim(c, CD_TRACE_COL_K),
                              .batch = dim(c, CD_TRACE_COL_BATCH),
                              .h = dim(c, CD_TRACE_COL_H),
                              .w = dim(c, CD_TRACE_COL_W),
                              .c = dim(c, CD_TRACE_COL_C),
                              .r = dim(c, CD_TRACE_COL_R),
                              .s = dim(c, CD_TRACE_COL_S),
                              .pad_h = dim(c, CD_TRACE_COL_PAD_H),
                              .pad_w = dim(c, CD_TRACE_COL_PAD_W),
                              .stride_h = dim(c, CD_TRACE_COL_STRIDE_H),
                              .stride_w = dim(c, CD_TRACE_COL_STRIDE_W),
                              .dilation_h = dim(c, CD_TRACE_COL_DILATION_H),
                              .dilation_w = dim(c, CD_TRACE_COL_DILATION_W),
                              .groups = dim(c, CD_TRACE_COL_GROUPS)};
}

/* Inputs: [[batch,m,k],[k,n]], [[n,c,h,w],[k,c,r,s]]; of other operators not known. */
static cdmpp_status cutlass_inputs(cd_trace_csv *c, const cd_trace_cutlass *x, cd_trace_event *e,
                                   cdmpp_err *err) {
    cd_buf *b = &c->r->text;
    const double gemm = isnan(x->batch) ? 1 : x->batch;
    cd_buf_clear(b);
    if (!strcmp(x->kind, "conv2d"))
        cd_buf_putf(b, "[[%.0f,%.0f,%.0f,%.0f],[%.0f,%.0f,%.0f,%.0f]]", x->n, x->c, x->h, x->w,
                    x->k, x->c, x->r, x->s);
    else if (x->m + x->n + x->k > 0)
        cd_buf_putf(b, "[[%.0f,%.0f,%.0f],[%.0f,%.0f]]", gemm, x->m, x->k, x->k, x->n);
    if (b->oom) return CD_FAIL(err, ENOMEM, "row");
    if (b->n && !strstr(b->p, "nan"))
        CD_TRY(cd_trace_number(c->r, (cd_str){b->p, b->n}, &e->shape, err));
    return cd_trace_number(c->r, (cd_str){x->a, strcspn(x->a, ":")}, &e->dtype, err);
}

/* Runtime is in milliseconds. Where operations and their rate are there, they must agree with
 * it. */
static cdmpp_status cutlass(cd_trace_csv *c, cdmpp_err *err) {
    cd_trace_event e = cd_trace_event_init(CD_TRACE_KERNEL, c->line);
    const cd_str name = trace_csv_field(c, CD_TRACE_COL_NAME), status = FIELD(STATUS),
                 verdict = FIELD(DISPOSITION);
    const double flops = dim(c, CD_TRACE_COL_FLOPS), rate = dim(c, CD_TRACE_COL_GFLOPS);
    cd_library_op_record q;
    double ms;
    c->r->t->lines++;
    if (!name.n) return CD_FAIL(err, ESCHEMA, "expected a name");
    if (status.n && !cd_str_is(status, "success"))
        return CD_FAIL(err, EUNSUPPORTED, "%.60s did not run: %.*s", word(&c->r->arena, name),
                       (int)status.n, status.p);
    if (cd_str_is(verdict, "incorrect") || cd_str_is(verdict, "failed"))
        return CD_FAIL(err, EUNSUPPORTED, "%.60s: its results are wrong", word(&c->r->arena, name));
    NUMBER(RUNTIME, 0, &ms);
    if (!(ms > 0)) return CD_FAIL(err, ERANGE, "runtime: expected a time above 0");
    if (flops > 0 && rate > 0 && fabs(flops / (rate * 1e6) / ms - 1) > 0.05)
        return CD_FAIL(err, ERANGE,
                       "expected a runtime in milliseconds that agrees with Flops and GFLOPs, "
                       "found %g and %g ms",
                       ms, flops / (rate * 1e6));
    e.time_s = ms / 1e3;
    const cd_trace_cutlass row = cutlass_of(c);
    if (c->r->arena.oom) return CD_FAIL(err, ENOMEM, "row");
    CD_TRY(cutlass_inputs(c, &row, &e, err));
    if (cd_trace_cutlass_question(&row, &q))
        CD_TRY(cd_trace_add_question(c->r, &q, &e.question, err));
    CD_TRY(cd_trace_device_number(c->r, (cd_str){"", 0}, &e.device, err));
    CD_TRY(cd_trace_number(c->r, name, &e.name, err));
    return cd_trace_add(c->r, &e, err);
}

/* A row of c->table. Errors: EPARSE, ESCHEMA, ERANGE of the row, ENOMEM. */
static cdmpp_status trace_csv_row(cd_trace_csv *c, cdmpp_err *err) {
    cd_arena_reset(&c->r->arena);
    switch (c->table) {
    case CD_TRACE_TABLE_LAUNCHES: return launch(c, err);
    case CD_TRACE_TABLE_SUMMARY: return summary(c, err);
    case CD_TRACE_TABLE_METRICS: return metric(c, err);
    case CD_TRACE_TABLE_KERNELS:
        return ncu_kernel(c, CD_TRACE_COL_GPU_TIME, per_second(c, CD_TRACE_COL_GPU_TIME), err);
    case CD_TRACE_TABLE_CUTLASS: return cutlass(c, err);
    default: return CDMPP_OK;
    }
}
