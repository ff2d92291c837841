/* Reads tables of measured library operators (CSV, as NeuSight's). A bad line is one error with
 * file and line; reading goes on behind it. */
#include "features/operators/operators.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "features/operators/operators_internal.h"

enum { DIM_BITS = 32 };
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
static const char *const class_name[CD_N_LIBRARY_OP_CLASS] = {"bmm",     "linear",    "elementwise",
                                                              "softmax", "layernorm", "conv"};
static const char *const dtype_name[CD_N_LIBRARY_OP_DTYPE] = {"float32", "float16", "bfloat16"};

const char *cd_library_op_kind_name(cd_library_op_kind k) { return kinds[k].name; }
const char *cd_library_op_class_name(cd_library_op_class c) { return class_name[c]; }
const char *cd_library_op_dtype_name(cd_library_op_dtype t) { return dtype_name[t]; }
cd_library_op_class cd_library_op_kind_class(cd_library_op_kind k) { return kinds[k].class; }
double cd_library_op_kind_inputs(cd_library_op_kind k) { return kinds[k].inputs; }
double cd_library_op_dtype_bytes(cd_library_op_dtype t) {
    return t == CD_LIBRARY_OP_DTYPE_F32 ? 4 : 2;
}

/* ---- columns ---- */
typedef enum {
    OP,
    LATENCY,
    DEVICE,
    DTYPE,
    B,
    M,
    N,
    K,
    H,
    CIN,
    COUT,
    KSIZE,
    SIZE,
    STRIDE,
    PAD,
    LAUNCH,
    GRID_X,
    GRID_Y,
    GRID_Z,
    BLOCK_X,
    BLOCK_Y,
    BLOCK_Z,
    N_COLUMN
} column;
static const cd_op_column column_names[] = {{OP, "OPName"},
                                            {OP, "op"},
                                            {LATENCY, "Latency"},
                                            {LATENCY, "latency_ms"},
                                            {DEVICE, "Device"},
                                            {DTYPE, "dtype"},
                                            {B, "B"},
                                            {M, "M"},
                                            {N, "N"},
                                            {K, "K"},
                                            {H, "H"},
                                            {CIN, "Input_Channel"},
                                            {COUT, "Output_Channel"},
                                            {KSIZE, "Kernel_Size"},
                                            {KSIZE, "Kernel_Szie"},
                                            {SIZE, "Input_Size"},
                                            {STRIDE, "Stride"},
                                            {PAD, "Padding"},
                                            {LAUNCH, "launch_ms"},
                                            {GRID_X, "Grid x"},
                                            {GRID_Y, "Grid y"},
                                            {GRID_Z, "Grid z"},
                                            {BLOCK_X, "Block x"},
                                            {BLOCK_Y, "Block y"},
                                            {BLOCK_Z, "Block z"}};

static const cd_op_columns columns = {column_names, sizeof column_names / sizeof *column_names,
                                      N_COLUMN};

/* The first line is read at once: without a column of operators the file is refused. */
cdmpp_status cd_library_op_reader_open(const char *path, cd_op_reader **out, cdmpp_err *err) {
    CD_TRY(cd_op_reader_new(path, &columns, NULL, out, err));
    if ((*out)->in.has[OP]) return CDMPP_OK;
    cd_op_reader_close(*out);
    *out = NULL;
    return cd_err_at(err, CD_FAIL(err, ESCHEMA, "expected a column OPName in the first line"), path,
                     1);
}

/* ---- one row ---- */
static bool given(const cd_op_row *r, column c) { return cd_op_row_given(r, (int)c); }
static cdmpp_status dim(const cd_op_row *r, column c, double low, double *out, cdmpp_err *err) {
    return cd_op_row_whole(r, (int)c, low, DIM_BITS, out, err);
}

/* A convolution is described as the matrix product that it amounts to, (batch * output pixels, cin
 * * k * k) x (.., cout). */
static cdmpp_status conv_dims(const cd_op_row *r, cd_library_op_record *o, cdmpp_err *err) {
    double batch, cout;
    CD_TRY(dim(r, B, 1, &batch, err));
    CD_TRY(dim(r, CIN, 1, &o->cin, err));
    CD_TRY(dim(r, COUT, 1, &cout, err));
    CD_TRY(dim(r, KSIZE, 1, &o->ksize, err));
    CD_TRY(dim(r, SIZE, 1, &o->size, err));
    CD_TRY(dim(r, STRIDE, 1, &o->stride, err));
    CD_TRY(dim(r, PAD, 0, &o->pad, err));
    const double side = floor((o->size + 2 * o->pad - o->ksize) / o->stride) + 1;
    if (side < 1)
        return CD_FAIL(err, ERANGE, "kernel %g does not fit an input of %g with padding %g",
                       o->ksize, o->size, o->pad);
    o->m = batch * side * side;
    o->n = cout;
    o->k = o->cin * o->ksize * o->ksize;
    return CDMPP_OK;
}

static cdmpp_status dims(const cd_op_row *r, cd_library_op_record *o, cdmpp_err *err) {
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
static cdmpp_status seconds(const cd_op_row *r, column c, bool zero, double *out, cdmpp_err *err) {
    char said[48];
    double ms;
    if (!given(r, c)) return CDMPP_OK;
    if (cd_op_row_number(r, (int)c, &ms, NULL) || !(ms >= 0 && ms <= MAX_LATENCY_MS) ||
        (!zero && ms <= 0))
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE, "expected milliseconds %s, found '%s'",
                                  zero ? "of 0 or more" : "above 0",
                                  cd_op_row_said(r, (int)c, said)),
                          c == LAUNCH ? "launch_ms" : "Latency");
    *out = ms * 1e-3;
    return CDMPP_OK;
}

/* The product of three extents from `c` on; 0 where one is not given. */
static cdmpp_status extent(const cd_op_row *r, column c, double *out, cdmpp_err *err) {
    double n = 1, x;
    for (column i = c; i < c + 3; i++) {
        if (!given(r, i)) return CDMPP_OK;
        CD_TRY(dim(r, i, 0, &x, err));
        n *= x;
    }
    *out = n;
    return CDMPP_OK;
}

static cdmpp_status measured(const cd_op_row *r, cd_library_op_record *o, cdmpp_err *err) {
    char said[48];
    CD_TRY(seconds(r, LATENCY, false, &o->latency_s, err));
    CD_TRY(seconds(r, LAUNCH, true, &o->launch_s, err));
    if (o->latency_s > 0 && o->launch_s > o->latency_s)
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE, "expected at most the latency, %g ms, found '%s'",
                                  1e3 * o->latency_s, cd_op_row_said(r, LAUNCH, said)),
                          "launch_ms");
    CD_TRY(extent(r, GRID_X, &o->blocks, err));
    return extent(r, BLOCK_X, &o->block_threads, err);
}

/* Position of the word in a table of names. An unknown one is refused with its nearest, else with
 * all names. */
static cdmpp_status word(const char *what, const char *s, const char *const *table, size_t n,
                         size_t *out, cdmpp_err *err) {
    const char *near = NULL;
    cd_buf all = {0};
    for (*out = 0; *out < n && strcasecmp(s, table[*out]) != 0;) ++*out;
    if (*out < n) return CDMPP_OK;
    if (cd_did_you_mean_several(s, table, n, &near, 1))
        return CD_FAIL(err, EUNSUPPORTED, "unknown %s '%.40s', did you mean '%s'?", what, s, near);
    for (size_t i = 0; i < n; i++) cd_buf_putf(&all, "%s%s", i ? ", " : "", table[i]);
    const cdmpp_status st =
        all.oom ? CD_FAIL(err, ENOMEM, "names")
                : CD_FAIL(err, EUNSUPPORTED, "unknown %s '%.40s'; known are %s", what, s, all.p);
    cd_buf_free(&all);
    return st;
}

static cdmpp_status row(const cd_op_row *r, cd_library_op_record *o, cdmpp_err *err) {
    const char *name[CD_N_LIBRARY_OP_KIND];
    const char *op, *dtype;
    size_t k, t = CD_LIBRARY_OP_DTYPE_F32;
    memset(o, 0, sizeof *o);
    CD_TRY(cd_op_row_text(r, OP, &op, err));
    CD_TRY(cd_op_row_text(r, DTYPE, &dtype, err));
    if (!given(r, OP))
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected the name of an operator"), "OPName");
    for (k = 0; k < CD_N_LIBRARY_OP_KIND; k++) name[k] = kinds[k].name;
    CD_TRY(cd_err_key(err, word("operator", op, name, CD_N_LIBRARY_OP_KIND, &k, err), "OPName"));
    if (given(r, DTYPE))
        CD_TRY(cd_err_key(err, word("type", dtype, dtype_name, CD_N_LIBRARY_OP_DTYPE, &t, err),
                          "dtype"));
    o->kind = (cd_library_op_kind)k;
    o->dtype = (cd_library_op_dtype)t;
    CD_TRY(dims(r, o, err));
    return measured(r, o, err);
}

cdmpp_status cd_library_op_reader_next(cd_op_reader *r, cd_library_op_record *out,
                                       const char **device, bool *more, cdmpp_err *err) {
    cdmpp_status st = cd_op_lines_next(&r->in, more, err);
    if (!*more) return st;
    if (!st) st = row(&r->in.row, out, err);
    if (!st) st = cd_op_row_text(&r->in.row, DEVICE, device, err);
    return cd_op_lines_at(&r->in, st, err);
}

/* ---- equality ---- */
enum { N_DIM = 9 };
static void dims_of(const cd_library_op_record *r, double d[N_DIM]) {
    const double all[N_DIM] = {r->b,     r->m,      r->n,   r->k,   r->cin,
                               r->ksize, r->stride, r->pad, r->size};
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
