/* Compares a program's results with a reference's. What is written is filled with 0xFF before both
 * runs (NaN as a float), so that an element that a program leaves out is found. */
#include "profiler/measure/measure_internal.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

struct cd_result_check {
    cd_arena arena;       /* of packed parameters */
    uint32_t n;           /* parameters */
    void **result;        /* (n) of the reference; NULL: not written */
    size_t *bytes;        /* (n) */
    void *spoilt;         /* (n_spoilt) 0xFF, as long as the largest result */
    const void **content; /* (n_content) */
    uint32_t n_content;
    size_t n_spoilt;
};

/* ---- numbers ---- */
static double half(uint16_t h) {
    const int e = h >> 10 & 31, f = h & 1023;
    const double v = e == 31 ? (f ? (double)NAN : (double)INFINITY)
                     : e     ? ldexp(1 + f / 1024.0, e - 15)
                             : ldexp(f, -24);
    return h >> 15 ? -v : v;
}

/* 16 bits: half, or bfloat16, which is the upper half of a float. */
static double value_at(cd_dtype t, const void *p, size_t i) {
    uint16_t h;
    uint32_t u;
    float f;
    double d;
    switch (cd_expr_dtype_bits(t)) {
    case 16:
        memcpy(&h, (const char *)p + 2 * i, sizeof h);
        if (cd_expr_dtype_kind(t) == CD_T_FLOAT) return half(h);
        u = (uint32_t)h << 16;
        memcpy(&f, &u, sizeof f);
        return (double)f;
    case 32: memcpy(&f, (const char *)p + 4 * i, sizeof f); return (double)f;
    case 64: memcpy(&d, (const char *)p + 8 * i, sizeof d); return d;
    default: return NAN;
    }
}

static double largest_of(cd_dtype t, const void *p, size_t n) {
    double m = 0;
    for (size_t i = 0; i < n; i++) {
        const double v = fabs(value_at(t, p, i));
        if (isfinite(v) && v > m) m = v;
    }
    return m;
}

/* Equal infinities and two NaNs are equal. */
static double error_of(double a, double b, double floor) {
    if (a == b || (isnan(a) && isnan(b))) return 0;
    if (!isfinite(a) || !isfinite(b)) return INFINITY;
    return fabs(a - b) / (fabs(b) + floor);
}

/* Errors are relative, but values near 0 are compared with a tenth of the largest: their own size
 * says nothing about rounding. */
static double largest_error(cd_dtype t, const void *a, const void *b, size_t n, size_t *at) {
    double worst = 0;
    *at = 0;
    if (!cd_expr_dtype_is_float(t)) {
        const size_t size = cd_expr_dtype_bytes(t);
        for (size_t i = 0; i < n; i++)
            if (memcmp((const char *)a + i * size, (const char *)b + i * size, size) != 0)
                return *at = i, INFINITY;
        return 0;
    }
    const double floor = 0.1 * largest_of(t, b, n);
    for (size_t i = 0; i < n; i++) {
        const double e = error_of(value_at(t, a, i), value_at(t, b, i), floor);
        if (e > worst) worst = e, *at = i;
    }
    return worst;
}

/* The largest error that another order of summing may cause. */
static double tolerance_of(cd_dtype t) {
    if (!cd_expr_dtype_is_float(t)) return 0;
    return cd_expr_dtype_bits(t) == 64           ? 1e-9
           : cd_expr_dtype_bits(t) == 32         ? 1e-4
           : cd_expr_dtype_kind(t) == CD_T_FLOAT ? 1e-2
                                                 : 5e-2;
}

/* ---- the reference ---- */
void cd_result_check_free(cd_result_check *c) {
    if (!c) return;
    for (uint32_t k = 0; c->result && k < c->n; k++) cd_mem_free(c->result[k]);
    cd_mem_free(c->result);
    cd_mem_free(c->bytes);
    cd_mem_free(c->spoilt);
    cd_mem_free((void *)c->content);
    cd_arena_free(&c->arena);
    cd_mem_free(c);
}

/* The content of buffers that are written: 0xFF. One block serves all of them, as long as the
 * largest. */
static cdmpp_status spoil(cd_result_check *c, const cd_codegen_code *code, cdmpp_err *err) {
    size_t most = 0;
    for (uint32_t k = 0; k < code->n_buffer; k++)
        if (code->buffer[k].is_arg && code->buffer[k].written &&
            (size_t)code->buffer[k].bytes > most)
            most = (size_t)code->buffer[k].bytes;
    if (most > c->n_spoilt) {
        cd_mem_free(c->spoilt);
        c->n_spoilt = 0;
        c->spoilt = cd_mem_alloc(most);
        if (!c->spoilt) return CD_FAIL(err, ENOMEM, "%zu bytes to check results", most);
        memset(c->spoilt, 0xFF, most);
        c->n_spoilt = most;
    }
    cd_mem_free((void *)c->content);
    c->content = cd_mem_zalloc(code->n_buffer + 1, sizeof *c->content);
    if (!c->content) return CD_FAIL(err, ENOMEM, "results");
    for (uint32_t k = 0; k < code->n_buffer; k++)
        if (code->buffer[k].is_arg && code->buffer[k].written) c->content[k] = c->spoilt;
    return CDMPP_OK;
}

/* ---- results of the last reference, in a file ---- */
/* | head | results of the parameters that are written, one behind the other | ; the object's path
 *   names its content */
typedef struct {
    char object[512];
    double done; /* when it ended, by cd_clock_wall; 0: it was begun */
} head;

static bool head_of(const char *object, head *h) {
    memset(h, 0, sizeof *h);
    if (!object || !*object || strlen(object) >= sizeof h->object) return false;
    memcpy(h->object, object, strlen(object));
    return true;
}

/* All results from the file or to it; false: not all of it is there, or it is full. */
static bool move(const cd_result_check *c, int file, bool in) {
    off_t at = sizeof(head);
    for (uint32_t k = 0; k < c->n; k++)
        for (size_t from = 0; c->result[k] && from < c->bytes[k];) {
            char *p = (char *)c->result[k] + from;
            const ssize_t n = in ? pread(file, p, c->bytes[k] - from, at)
                                 : pwrite(file, p, c->bytes[k] - from, at);
            if (n <= 0) return false;
            from += (size_t)n;
            at += n;
        }
    return true;
}

static cdmpp_status make_room(cd_result_check *c, const cd_codegen_code *code, cdmpp_err *err) {
    for (uint32_t k = 0; k < c->n; k++) {
        if (!code->buffer[k].written) continue;
        c->bytes[k] = (size_t)code->buffer[k].bytes;
        c->result[k] = cd_mem_alloc(c->bytes[k] + 1);
        if (!c->result[k]) return CD_FAIL(err, ENOMEM, "%zu bytes of results", c->bytes[k]);
    }
    return CDMPP_OK;
}

/* *there: the results were in the file. Otherwise it says from now on that this reference was
 * begun. */
static cdmpp_status take(const cd_result_check *c, int file, const char *object, bool *there,
                         cdmpp_err *err) {
    head mine, h;
    *there = false;
    if (file < 0) return CDMPP_OK;
    if (!head_of(object, &mine)) {
        (void)!ftruncate(file, 0);
        return CDMPP_OK;
    }
    if (pread(file, &h, sizeof h, 0) == (ssize_t)sizeof h && !strcmp(h.object, mine.object)) {
        if (h.done <= 0)
            return CD_FAIL(
                err, EBACKEND,
                "it was begun for the program before and did not end: results cannot be compared");
        *there = move(c, file, true);
        if (*there) return CDMPP_OK;
    }
    if (ftruncate(file, 0) || pwrite(file, &mine, sizeof mine, 0) != (ssize_t)sizeof mine)
        (void)!ftruncate(file, 0);
    return CDMPP_OK;
}

double cd_result_check_done(int file) {
    head h;
    return file >= 0 && pread(file, &h, sizeof h, 0) == (ssize_t)sizeof h ? h.done : 0;
}

/* A file that cannot hold them stays without a reference: the next program runs it again. */
static void put(const cd_result_check *c, int file, const char *object) {
    head h;
    if (file < 0 || !head_of(object, &h)) return;
    h.done = cd_clock_wall();
    if (!move(c, file, false) || pwrite(file, &h, sizeof h, 0) != (ssize_t)sizeof h)
        (void)!ftruncate(file, 0);
}

/* ---- its run ---- */
static cdmpp_status run_reference(cd_result_check *c, const cd_codegen_code *code,
                                  const char *object, cd_backend *b, cdmpp_err *err) {
    union { /* load() does not write to it */
        const char *path;
        void *object;
    } u = {object};
    const cd_build build = {.code = code, .object = u.object};
    cd_loaded *l = NULL;
    double seconds;
    CD_TRY(spoil(c, code, err));
    CD_TRY(cd_backend_cpu.load(b, &build, c->content, &l, err));
    cdmpp_status st = cd_backend_cpu.run(l, 1, &seconds, err);
    for (uint32_t k = 0; k < c->n && !st; k++)
        if (c->result[k]) st = cd_backend_cpu.read(l, k, c->result[k], c->bytes[k], err);
    cd_backend_cpu.unload(l);
    return st;
}

/* The back end is closed before this returns: only the results are kept. */
static cdmpp_status run_and_put(cd_result_check *c, const cd_codegen_code *code, const char *object,
                                const char *target, int kept, cdmpp_err *err) {
    cd_backend *b = NULL;
    CD_TRY(cd_backend_cpu.open("", target, &b, err));
    const cdmpp_status st = run_reference(c, code, object, b, err);
    cd_backend_cpu.close(b);
    if (!st) put(c, kept, object);
    /* it has ended: the next program may try again */
    else if (kept >= 0) (void)!ftruncate(kept, 0);
    return st;
}

cdmpp_status cd_result_check_reference(const cd_codegen_code *code, const char *object,
                                       const char *target, int kept, cd_result_check **out,
                                       cdmpp_err *err) {
    cd_result_check *c = cd_mem_zalloc(1, sizeof *c);
    bool there = false;
    if (!c) return CD_FAIL(err, ENOMEM, "check");
    c->n = code->n_arg;
    c->result = cd_mem_zalloc(c->n + 1, sizeof *c->result);
    c->bytes = cd_mem_zalloc(c->n + 1, sizeof *c->bytes);
    cdmpp_status st = c->result && c->bytes ? CDMPP_OK : CD_FAIL(err, ENOMEM, "check");
    if (!st) st = make_room(c, code, err);
    if (!st) st = take(c, kept, object, &there, err);
    if (!st && !there) st = run_and_put(c, code, object, target, kept, err);
    st = cd_err_key(err, st, "reference");
    if (st) cd_result_check_free(c);
    else *out = c;
    return st;
}

/* ---- the program ---- */
/* What cd_tensor_fill makes of parameter k, in the packed order; in c's arena. */
static cdmpp_status pack(cd_result_check *c, const cd_codegen_buffer *b, uint32_t k,
                         const cd_measure_arg *arg, cdmpp_err *err) {
    uint64_t n = 1;
    if (!arg) return CD_FAIL(err, EUSAGE, "parameter %u is packed: its shape is needed", k);
    for (uint32_t d = 0; d < arg->rank; d++) n *= (uint64_t)arg->shape[d];
    const size_t size = cd_expr_dtype_bytes(b->dtype);
    void *plain = cd_arena_alloc(&c->arena, (size_t)n + 1, size),
         *packed = cd_arena_zalloc(&c->arena, (size_t)b->bytes + 1, 1);
    if (!plain || !packed) return CD_FAIL(err, ENOMEM, "parameter %u", k);
    if (!cd_tensor_fill(b->dtype, k, 0, (size_t)n, plain))
        return CD_FAIL(err, EUNSUPPORTED, "parameter %u: a type that cannot be filled", k);
    cd_codegen_pack(b, arg->rank, arg->shape, plain, packed);
    c->content[k] = packed;
    return CDMPP_OK;
}

cdmpp_status cd_result_check_content(cd_result_check *c, const cd_codegen_code *code,
                                     const cd_measure_arg *arg, const void *const **out,
                                     cdmpp_err *err) {
    cd_arena_reset(&c->arena);
    CD_TRY(spoil(c, code, err));
    for (uint32_t k = 0; k < code->n_arg; k++)
        if (code->buffer[k].n_digit)
            CD_TRY(pack(c, &code->buffer[k], k, arg ? &arg[k] : NULL, err));
    *out = c->content;
    return CDMPP_OK;
}

/* The message names the element with the largest error. */
static cdmpp_status compare_one(const cd_result_check *c, const cd_codegen_buffer *b, uint32_t k,
                                const void *got, double *max_error, cdmpp_err *err) {
    size_t at;
    const size_t size = cd_expr_dtype_bytes(b->dtype);
    const double e = largest_error(b->dtype, got, c->result[k], c->bytes[k] / size, &at);
    if (e > *max_error) *max_error = e;
    if (e <= tolerance_of(b->dtype)) return CDMPP_OK;
    if (!cd_expr_dtype_is_float(b->dtype))
        return CD_FAIL(err, EINVALID, "wrong result: %.60s[%zu]", b->name, at);
    return CD_FAIL(err, EINVALID, "wrong result: %.60s[%zu] is %.7g, expected %.7g", b->name, at,
                   value_at(b->dtype, got, at), value_at(b->dtype, c->result[k], at));
}

/* A program must write exactly what the reference writes. */
cdmpp_status cd_result_check_compare(cd_result_check *c, const cd_backend_kind *kind,
                                     cd_loaded *program, const cd_codegen_code *code,
                                     double *max_error, cdmpp_err *err) {
    double seconds;
    *max_error = 0;
    if (code->n_arg != c->n)
        return CD_FAIL(err, EINVALID, "%u parameters, the reference has %u", code->n_arg, c->n);
    CD_TRY(kind->run(program, 1, &seconds, err));
    for (uint32_t k = 0; k < c->n; k++) {
        const cd_codegen_buffer *b = &code->buffer[k];
        if (!b->written != !c->result[k] || (b->written && (size_t)b->bytes != c->bytes[k]))
            return CD_FAIL(err, EINVALID, "parameter %u is not the reference's", k);
        if (!b->written) continue;
        void *got = cd_mem_alloc(c->bytes[k] + 1);
        if (!got) return CD_FAIL(err, ENOMEM, "%zu bytes of results", c->bytes[k]);
        cdmpp_status st = kind->read(program, k, got, c->bytes[k], err);
        if (!st) st = compare_one(c, b, k, got, max_error, err);
        cd_mem_free(got);
        CD_TRY(st);
    }
    return CDMPP_OK;
}
