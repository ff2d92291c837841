/* Reads tables of measured library operators (CSV, as NeuSight's). A bad line is one error with file and line;
 * reading goes on behind it. */
#include "features/operators/operators.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/io/io.h"

enum { MAX_COLUMN = 128 };
#define MAX_DIM 4294967296.0
#define MAX_LATENCY_MS 1e9

/* ---- the table of operators ---- */
static const struct {
    const char *name;
    cd_library_op_class class;
    double inputs;
} kinds[CD_N_LIBRARY_OP_KIND] = {
#define X(ID, name, class, inputs) {name, CD_LIBRARY_OP_CLASS_##class, inputs},
#include "features/operators/op_kinds.def"
};
static const char *const class_name[CD_N_LIBRARY_OP_CLASS] = {"bmm", "linear", "elementwise", "softmax", "layernorm", "conv"};
static const char *const dtype_name[CD_N_LIBRARY_OP_DTYPE] = {"float32", "float16", "bfloat16"};

const char *cd_library_op_kind_name(cd_library_op_kind k) { return kinds[k].name; }
const char *cd_library_op_class_name(cd_library_op_class c) { return class_name[c]; }
const char *cd_library_op_dtype_name(cd_library_op_dtype t) { return dtype_name[t]; }
cd_library_op_class cd_library_op_kind_class(cd_library_op_kind k) { return kinds[k].class; }
double cd_library_op_kind_inputs(cd_library_op_kind k) { return kinds[k].inputs; }
double cd_library_op_dtype_bytes(cd_library_op_dtype t) { return t == CD_LIBRARY_OP_DTYPE_F32 ? 4 : 2; }

/* ---- columns ---- */
typedef enum { OP, LATENCY, DEVICE, DTYPE, B, M, N, K, H, CIN, COUT, KSIZE, SIZE, STRIDE, PAD, LAUNCH,
               GRID_X, GRID_Y, GRID_Z, BLOCK_X, BLOCK_Y, BLOCK_Z, N_COLUMN } column;
static const struct {
    column is;
    const char *name;
} names[] = {{OP, "OPName"}, {OP, "op"}, {LATENCY, "Latency"}, {LATENCY, "latency_ms"}, {DEVICE, "Device"}, {DTYPE, "dtype"},
             {B, "B"}, {M, "M"}, {N, "N"}, {K, "K"}, {H, "H"}, {CIN, "Input_Channel"}, {COUT, "Output_Channel"},
             {KSIZE, "Kernel_Size"}, {KSIZE, "Kernel_Szie"}, {SIZE, "Input_Size"}, {STRIDE, "Stride"}, {PAD, "Padding"}, {LAUNCH, "launch_ms"},
             {GRID_X, "Grid x"}, {GRID_Y, "Grid y"}, {GRID_Z, "Grid z"}, {BLOCK_X, "Block x"}, {BLOCK_Y, "Block y"}, {BLOCK_Z, "Block z"}};

static const char *column_name(column c) {
    size_t i = 0;
    while (names[i].is != c) i++;
    return names[i].name;
}

struct cd_library_op_reader {
    cd_file_lines *lines;
    char *path;
    column of[MAX_COLUMN]; /* of the fields of a line; N_COLUMN: not needed */
    size_t n_field;
    const char *value[N_COLUMN]; /* of this line; NULL or "": not there */
};

/* ---- lines ---- */

static char *trim(char *s) {
    while (isspace((unsigned char)*s)) s++;
    size_t n = strlen(s);
    while (n && isspace((unsigned char)s[n - 1])) s[--n] = 0;
    return s;
}

/* The fields of a line without blanks around them, each ended by a NUL. */
static cdmpp_status fields(char *line, size_t len, char *out[MAX_COLUMN], size_t *n, cdmpp_err *err) {
    cd_str f[MAX_COLUMN];
    CD_TRY(cd_csv_fields_split(line, len, f, MAX_COLUMN, n, err));
    for (size_t i = 0; i < *n; i++) {
        char *from = line + (f[i].p - line);
        from[f[i].n] = 0;
        out[i] = trim(from);
    }
    return CDMPP_OK;
}

static cdmpp_status read_header(cd_library_op_reader *r, char *line, size_t len, cdmpp_err *err) {
    char *f[MAX_COLUMN];
    bool has_op = false;
    const size_t mark = strncmp(line, "\xef\xbb\xbf", 3) ? 0 : 3; /* of the byte order */
    CD_TRY(fields(line + mark, len - mark, f, &r->n_field, err));
    for (size_t k = 0; k < r->n_field; k++) {
        r->of[k] = N_COLUMN;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (!strcasecmp(f[k], names[i].name)) r->of[k] = names[i].is;
        has_op |= r->of[k] == OP;
    }
    return has_op ? CDMPP_OK : CD_FAIL(err, ESCHEMA, "expected a column OPName in the first line");
}

/* The first line is read at once: without a column of operators the file is refused. */
cdmpp_status cd_library_op_reader_open(const char *path, cd_library_op_reader **out, cdmpp_err *err) {
    char *line = NULL;
    size_t len;
    cd_library_op_reader *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "reader");
    r->path = cd_mem_text(path);
    cdmpp_status st = r->path ? CDMPP_OK : CD_FAIL(err, ENOMEM, "path");
    if (!st) st = cd_file_lines_open(path, 0, &r->lines, err);
    if (!st) st = cd_file_lines_next(r->lines, &line, &len, err);
    if (!st && !line) st = CD_FAIL(err, ESCHEMA, "expected names of columns, found an empty file");
    if (!st) st = read_header(r, line, len, err);
    if (st) {
        st = cd_err_at(err, st, path, 1);
        cd_library_op_reader_close(r);
    } else {
        *out = r;
    }
    return st;
}

void cd_library_op_reader_close(cd_library_op_reader *r) {
    if (!r) return;
    cd_file_lines_close(r->lines);
    cd_mem_free(r->path);
    cd_mem_free(r);
}

long cd_library_op_reader_line(const cd_library_op_reader *r) { return cd_file_lines_number(r->lines); }

/* ---- one row ---- */
static cdmpp_status split_line(cd_library_op_reader *r, char *line, size_t len, cdmpp_err *err) {
    char *f[MAX_COLUMN];
    size_t n;
    memset(r->value, 0, sizeof r->value);
    CD_TRY(fields(line, len, f, &n, err));
    for (size_t i = 0; i < n && i < r->n_field; i++)
        if (r->of[i] != N_COLUMN) r->value[r->of[i]] = f[i];
    return n == r->n_field ? CDMPP_OK : CD_FAIL(err, EPARSE, "expected %zu fields, found %zu", r->n_field, n);
}

static bool given(const cd_library_op_reader *r, column c) { return r->value[c] && r->value[c][0]; }

/* A whole number in low..2^32. */
static cdmpp_status dim(const cd_library_op_reader *r, column c, double low, double *out, cdmpp_err *err) {
    char *end = NULL;
    const double x = given(r, c) ? strtod(r->value[c], &end) : 0;
    if (!end || *end) return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected a number, found '%.40s'", given(r, c) ? r->value[c] : ""), column_name(c));
    if (!(x >= low && x <= MAX_DIM) || x != floor(x))
        return cd_err_key(err, CD_FAIL(err, ERANGE, "expected a whole number in %g..2^32, found %.40s", low, r->value[c]), column_name(c));
    *out = x;
    return CDMPP_OK;
}

/* A convolution is described as the matrix product that it amounts to, (batch * output pixels, cin * k * k) x (..,
 * cout). */
static cdmpp_status conv_dims(const cd_library_op_reader *r, cd_library_op_record *o, cdmpp_err *err) {
    double batch, cout;
    CD_TRY(dim(r, B, 1, &batch, err));
    CD_TRY(dim(r, CIN, 1, &o->cin, err));
    CD_TRY(dim(r, COUT, 1, &cout, err));
    CD_TRY(dim(r, KSIZE, 1, &o->ksize, err));
    CD_TRY(dim(r, SIZE, 1, &o->size, err));
    CD_TRY(dim(r, STRIDE, 1, &o->stride, err));
    CD_TRY(dim(r, PAD, 0, &o->pad, err));
    const double side = floor((o->size + 2 * o->pad - o->ksize) / o->stride) + 1;
    if (side < 1) return CD_FAIL(err, ERANGE, "kernel %g does not fit an input of %g with padding %g", o->ksize, o->size, o->pad);
    o->m = batch * side * side;
    o->n = cout;
    o->k = o->cin * o->ksize * o->ksize;
    return CDMPP_OK;
}

static cdmpp_status dims(const cd_library_op_reader *r, cd_library_op_record *o, cdmpp_err *err) {
    const cd_library_op_class c = cd_library_op_kind_class(o->kind);
    o->b = o->k = 1;
    if (c == CD_LIBRARY_OP_CLASS_CONV) return conv_dims(r, o, err);
    if (c != CD_LIBRARY_OP_CLASS_BMM && c != CD_LIBRARY_OP_CLASS_LINEAR) {
        CD_TRY(dim(r, B, 1, &o->m, err));
        return dim(r, H, 1, &o->n, err);
    }
    if (given(r, B)) CD_TRY(dim(r, B, 1, &o->b, err));
    CD_TRY(dim(r, M, 1, &o->m, err));
    CD_TRY(dim(r, N, 1, &o->k, err));
    return dim(r, K, 1, &o->n, err);
}

/* Milliseconds as seconds; not given: *out stays. */
static cdmpp_status seconds(const cd_library_op_reader *r, column c, bool zero, double *out, cdmpp_err *err) {
    char *end;
    if (!given(r, c)) return CDMPP_OK;
    const double ms = strtod(r->value[c], &end);
    if (*end || !(ms >= 0 && ms <= MAX_LATENCY_MS) || (!zero && ms <= 0))
        return cd_err_key(err, CD_FAIL(err, ERANGE, "expected milliseconds %s, found '%.40s'", zero ? "of 0 or more" : "above 0", r->value[c]), column_name(c));
    *out = ms * 1e-3;
    return CDMPP_OK;
}

/* The product of three extents from `c` on; 0 where one is not given. */
static cdmpp_status extent(const cd_library_op_reader *r, column c, double *out, cdmpp_err *err) {
    double n = 1, x;
    for (column i = c; i < c + 3; i++) {
        if (!given(r, i)) return CDMPP_OK;
        CD_TRY(dim(r, i, 0, &x, err));
        n *= x;
    }
    *out = n;
    return CDMPP_OK;
}

static cdmpp_status measured(const cd_library_op_reader *r, cd_library_op_record *o, cdmpp_err *err) {
    CD_TRY(seconds(r, LATENCY, false, &o->latency_s, err));
    CD_TRY(seconds(r, LAUNCH, true, &o->launch_s, err));
    if (o->latency_s > 0 && o->launch_s > o->latency_s)
        return cd_err_key(err, CD_FAIL(err, ERANGE, "expected at most the latency, %g ms, found '%.40s'", 1e3 * o->latency_s, r->value[LAUNCH]), "launch_ms");
    CD_TRY(extent(r, GRID_X, &o->blocks, err));
    return extent(r, BLOCK_X, &o->block_threads, err);
}

/* Position of the word in a table of names. An unknown one is refused with its nearest, else with all names. */
static cdmpp_status word(const char *what, const char *s, const char *const *table, size_t n, size_t *out, cdmpp_err *err) {
    const char *near = NULL;
    cd_buf all = {0};
    for (*out = 0; *out < n && strcasecmp(s, table[*out]) != 0;) ++*out;
    if (*out < n) return CDMPP_OK;
    if (cd_did_you_mean_several(s, table, n, &near, 1)) return CD_FAIL(err, EUNSUPPORTED, "unknown %s '%.40s', did you mean '%s'?", what, s, near);
    for (size_t i = 0; i < n; i++) cd_buf_putf(&all, "%s%s", i ? ", " : "", table[i]);
    const cdmpp_status st = all.oom ? CD_FAIL(err, ENOMEM, "names") : CD_FAIL(err, EUNSUPPORTED, "unknown %s '%.40s'; known are %s", what, s, all.p);
    cd_buf_free(&all);
    return st;
}

static cdmpp_status row(const cd_library_op_reader *r, cd_library_op_record *o, cdmpp_err *err) {
    const char *name[CD_N_LIBRARY_OP_KIND];
    size_t k, t = CD_LIBRARY_OP_DTYPE_F32;
    memset(o, 0, sizeof *o);
    if (!given(r, OP)) return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected the name of an operator"), "OPName");
    for (k = 0; k < CD_N_LIBRARY_OP_KIND; k++) name[k] = kinds[k].name;
    CD_TRY(cd_err_key(err, word("operator", r->value[OP], name, CD_N_LIBRARY_OP_KIND, &k, err), "OPName"));
    if (given(r, DTYPE)) CD_TRY(cd_err_key(err, word("type", r->value[DTYPE], dtype_name, CD_N_LIBRARY_OP_DTYPE, &t, err), "dtype"));
    o->kind = (cd_library_op_kind)k;
    o->dtype = (cd_library_op_dtype)t;
    CD_TRY(dims(r, o, err));
    return measured(r, o, err);
}

cdmpp_status cd_library_op_reader_next(cd_library_op_reader *r, cd_library_op_record *out, const char **device, bool *more, cdmpp_err *err) {
    char *line;
    size_t len;
    cdmpp_status st;
    do st = cd_file_lines_next(r->lines, &line, &len, err);
    while (!st && line && line[strspn(line, " \t\r")] == 0);
    *more = st == CDMPP_ERANGE || (!st && line); /* a line too long is a bad line like others */
    if (st || !line) return st;
    st = split_line(r, line, len, err);
    if (!st) st = row(r, out, err);
    *device = r->value[DEVICE] ? r->value[DEVICE] : "";
    return cd_err_at(err, st, r->path, cd_file_lines_number(r->lines));
}

/* ---- equality ---- */
enum { N_DIM = 9 };
static void dims_of(const cd_library_op_record *r, double d[N_DIM]) {
    const double all[N_DIM] = {r->b, r->m, r->n, r->k, r->cin, r->ksize, r->stride, r->pad, r->size};
    memcpy(d, all, sizeof all);
}

uint64_t cd_library_op_record_key(const cd_library_op_record *r, uint32_t device) {
    double d[N_DIM];
    uint64_t h = cd_rng_at((uint64_t)r->kind * CD_N_LIBRARY_OP_DTYPE + (uint64_t)r->dtype, device);
    dims_of(r, d);
    for (size_t i = 0; i < N_DIM; i++) h = cd_rng_at(h, (uint64_t)d[i]);
    return h;
}

bool cd_library_op_record_same(const cd_library_op_record *a, const cd_library_op_record *b) {
    double x[N_DIM], y[N_DIM];
    dims_of(a, x);
    dims_of(b, y);
    return a->kind == b->kind && a->dtype == b->dtype && !memcmp(x, y, sizeof x);
}
