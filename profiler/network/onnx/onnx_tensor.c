/* Tensors of a file. Their content is read where shapes may need it: integers up to the graph's
 * limit, reals of a weight only if there are few (scales, bounds). All others are shapes alone. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/network/onnx/onnx_internal.h"

enum { FEW = 64 }; /* real numbers of a weight that are kept: scales, bounds, a step */

/* Dimensions of a tensor of the file. Errors: ERANGE. */
static cdmpp_status dims_of(const CdOnnx__TensorProto *t, cd_graph_shape *s, cdmpp_err *err) {
    if (t->n_dims > CD_GRAPH_MAX_RANK)
        return CD_FAIL(err, ERANGE, "\"%s\": expected at most %d dimensions, found %zu",
                       cd_onnx_text(t->name), CD_GRAPH_MAX_RANK, t->n_dims);
    *s = (cd_graph_shape){.rank = (uint32_t)t->n_dims};
    for (uint32_t d = 0; d < s->rank; d++) s->dim[d] = t->dims[d];
    return cd_err_key(err, cd_graph_shape_check(s, err), cd_onnx_text(t->name));
}

static double half(uint16_t h) {
    const int e = h >> 10 & 31, m = h & 1023;
    const double v = e == 31 ? (m ? (double)NAN : (double)INFINITY)
                     : e     ? ldexp(1024 + m, e - 25)
                             : ldexp(m, -24);
    return h >> 15 ? -v : v;
}

static double bfloat(uint16_t h) {
    const uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

/* Little-endian bytes of one element. */
static uint64_t bits_of(const unsigned char *p, unsigned bytes) {
    uint64_t v = 0;
    for (unsigned k = bytes; k > 0; k--) v = v << 8 | p[k - 1];
    return v;
}

static double real_of(cd_dtype t, uint64_t bits) {
    float f;
    double d;
    const uint32_t low = (uint32_t)bits;
    if (t == CD_DTYPE(CD_T_FLOAT, 16)) return half((uint16_t)bits);
    if (t == CD_DTYPE(CD_T_BFLOAT, 16)) return bfloat((uint16_t)bits);
    memcpy(&f, &low, sizeof f);
    memcpy(&d, &bits, sizeof d);
    return t == CD_F32 ? (double)f : d;
}

static int64_t int_of(cd_dtype t, uint64_t bits) {
    const unsigned n = cd_expr_dtype_bits(t);
    if (n == 1) return bits != 0;
    if (n < 64 && cd_expr_dtype_kind(t) == CD_T_INT && bits >> (n - 1)) bits |= ~(uint64_t)0 << n;
    return (int64_t)bits;
}

static void unpack(cd_dtype t, const unsigned char *p, int64_t n, int64_t *v, double *f) {
    const unsigned bytes = cd_expr_dtype_bytes(t);
    for (int64_t k = 0; k < n; k++) {
        const uint64_t bits = bits_of(p + (size_t)k * bytes, bytes);
        if (f) f[k] = real_of(t, bits);
        else v[k] = int_of(t, bits);
    }
}

/* One of the typed fields; false: it holds another number of elements. */
static bool typed(const CdOnnx__TensorProto *t, cd_dtype type, int64_t n, int64_t *v, double *f) {
    const size_t m = (size_t)n;
    if (t->n_float_data == m && f)
        for (size_t k = 0; k < m; k++) f[k] = (double)t->float_data[k];
    else if (t->n_double_data == m && f)
        for (size_t k = 0; k < m; k++) f[k] = t->double_data[k];
    else if (t->n_int64_data == m && v)
        for (size_t k = 0; k < m; k++) v[k] = t->int64_data[k];
    else if (t->n_uint64_data == m && v)
        for (size_t k = 0; k < m; k++) v[k] = (int64_t)t->uint64_data[k];
    else if (t->n_int32_data == m && v)
        for (size_t k = 0; k < m; k++)
            v[k] = int_of(type, (uint64_t)t->int32_data[k] &
                                    (~(uint64_t)0 >> (64 - cd_expr_dtype_bits(type))));
    /* half precision */
    else if (t->n_int32_data == m && f)
        for (size_t k = 0; k < m; k++) f[k] = real_of(type, (uint16_t)t->int32_data[k]);
    else return false;
    return true;
}

static size_t typed_length(const CdOnnx__TensorProto *t) {
    const size_t n[] = {t->n_float_data, t->n_double_data, t->n_int64_data, t->n_uint64_data,
                        t->n_int32_data};
    size_t most = 0;
    for (size_t k = 0; k < sizeof n / sizeof *n; k++) most = n[k] > most ? n[k] : most;
    return most;
}

static const char *external(const CdOnnx__TensorProto *t, const char *key) {
    for (size_t i = 0; i < t->n_external_data; i++)
        if (!strcmp(cd_onnx_text(t->external_data[i]->key), key))
            return cd_onnx_text(t->external_data[i]->value);
    return "";
}

/* Has the file n bytes from `at` on? */
static bool is_long_enough(int fd, long long at, size_t n) {
    struct stat s;
    return fd >= 0 && at >= 0 && !fstat(fd, &s) && S_ISREG(s.st_mode) && at <= s.st_size &&
           n <= (size_t)(s.st_size - at);
}

/* `n` bytes of the file beside the model; only its own folder is read, and memory is taken for what
 * is there, not for what is declared. NULL: not there, r->lost_why says so. */
static unsigned char *read_external(cd_onnx_reader *r, const CdOnnx__TensorProto *t, size_t n) {
    char path[4096];
    const char *file = external(t, "location");
    if (!r->folder || !*file || *file == '/' || strstr(file, "..")) return NULL;
    if (snprintf(path, sizeof path, "%s/%s", r->folder, file) >= (int)sizeof path) return NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const long long at = strtoll(external(t, "offset"), NULL, 10);
    unsigned char *p = is_long_enough(fd, at, n) ? cd_arena_alloc(r->a, n + 1, 1) : NULL;
    const ssize_t got = p ? pread(fd, p, n, (off_t)at) : -1;
    if (fd >= 0) close(fd);
    return p && got == (ssize_t)n ? p : NULL;
}

static cdmpp_status lose(cd_onnx_reader *r, const CdOnnx__TensorProto *t, cdmpp_err *err) {
    bool old;
    r->lost_why = external(t, "location");
    return cd_onnx_map_put(&r->lost, r->a, cd_onnx_text(t->name), 0, &old, err);
}

/* Bytes come from raw_data, from a typed field, or from a file beside the model; no content at all
 * is not an error, since onnx_strip may have dropped it. */
cdmpp_status cd_onnx_content(cd_onnx_reader *r, const CdOnnx__TensorProto *t, int64_t n,
                             const int64_t **v, const double **f, cdmpp_err *err) {
    cd_dtype type;
    *v = NULL;
    *f = NULL;
    if (!cd_graph_dtype(t->data_type, &type) || !cd_graph_type_is_computed(type)) return CDMPP_OK;
    const bool real = cd_expr_dtype_is_float(type),
               out = t->has_data_location &&
                     t->data_location == CD_ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    const size_t want = (size_t)n * cd_expr_dtype_bytes(type);
    const unsigned char *raw = t->has_raw_data ? t->raw_data.data : NULL;
    if (!out && !raw && !typed_length(t) && n > 0) return CDMPP_OK;
    if (out && !(raw = read_external(r, t, want))) return lose(r, t, err);
    if (raw && !out && t->raw_data.len != want)
        return CD_FAIL(err, ESCHEMA, "\"%s\": expected %zu bytes, found %zu", cd_onnx_text(t->name),
                       want, t->raw_data.len);
    if (!raw && n > 0 && typed_length(t) != (size_t)n)
        return CD_FAIL(err, ESCHEMA, "\"%s\": expected %lld elements", cd_onnx_text(t->name),
                       (long long)n);
    int64_t *p = cd_arena_zalloc(r->a, (size_t)n + 1, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "content of \"%s\"", cd_onnx_text(t->name));
    if (raw) unpack(type, raw, n, real ? NULL : p, real ? (double *)p : NULL);
    else if (n > 0 && !typed(t, type, n, real ? NULL : p, real ? (double *)p : NULL))
        return CD_FAIL(err, ESCHEMA, "\"%s\": expected %lld elements", cd_onnx_text(t->name),
                       (long long)n);
    if (real) *f = (const double *)p;
    else *v = p;
    return CDMPP_OK;
}

cdmpp_status cd_onnx_no_type(cd_onnx_reader *r, const char *name, int64_t type, cdmpp_err *err) {
    bool old;
    return cd_onnx_map_put(&r->no_type, r->a, name, (uint32_t)type, &old, err);
}

cdmpp_status cd_onnx_tensor(cd_onnx_reader *r, const CdOnnx__TensorProto *t, const char *name,
                            bool weight, uint32_t *tensor, cdmpp_err *err) {
    cd_graph_shape s;
    cd_dtype type;
    const int64_t *v = NULL;
    const double *f = NULL;
    CD_TRY(dims_of(t, &s, err));
    *tensor = CD_ONNX_UNKNOWN; /* texts, complex numbers: what reads it is missing */
    if (!cd_graph_dtype(t->data_type, &type)) return cd_onnx_no_type(r, name, t->data_type, err);
    const int64_t n = cd_graph_shape_elements(&s);
    if (r->o->contents || n <= (weight && cd_expr_dtype_is_float(type) ? FEW : CD_GRAPH_MAX_VALUE))
        CD_TRY(cd_onnx_content(r, t, n, &v, &f, err));
    if (!v && !f) return cd_graph_weight(r->g, name, type, &s, tensor, err);
    CD_TRY(cd_graph_constant(r->g, name, type, &s, v, f, tensor, err));
    if (weight && f) r->g->tensor[*tensor].is_weight = true;
    return CDMPP_OK;
}
