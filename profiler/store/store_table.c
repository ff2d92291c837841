/* store_table -- CSV tables of library operators (features/operators/library_op_record.h) and
 * tables of curves.
 *
 *   set  host    operator   device_id  varied            shape
 *                                                        points_n:ms
 *   a    dell01  nn.conv2d  0          ((4, 4), (0, 0))  ((-1, 3, 91, 81), (32, 3, 3, 3))  1:0.0030
 *     2:0.0031 ...
 *
 * Of a curve every point is a measurement: n takes the place of -1 in the shape. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "features/operators/operators.h"
#include "profiler/store/store_internal.h"

/* ---- library operators ---- */
static void put_op_shape(cd_buf *b, const cd_library_op_record *o) {
    const cd_library_op_class c = cd_library_op_kind_class(o->kind);
    if (c == CD_LIBRARY_OP_CLASS_CONV) {
        const double side = floor((o->size + 2 * o->pad - o->ksize) / o->stride) + 1;
        cd_buf_putf(b, "[%.0f,%.0f,%.0f,%.0f],[%.0f,%.0f,%.0f,%.0f],[%.0f,%.0f]",
                    o->m / (side * side), o->cin, o->size, o->size, o->n, o->cin, o->ksize,
                    o->ksize, o->stride, o->pad);
    } else if (c == CD_LIBRARY_OP_CLASS_BMM || c == CD_LIBRARY_OP_CLASS_LINEAR) {
        cd_buf_putf(b, "[%.0f,%.0f,%.0f],[%.0f,%.0f]", o->b, o->m, o->k, o->k, o->n);
    } else {
        cd_buf_putf(b, "[%.0f,%.0f]", o->m, o->n);
    }
}

/* Operations where the operator is a product, else not known. */
static double op_flop(const cd_library_op_record *o) {
    const cd_library_op_class c = cd_library_op_kind_class(o->kind);
    return c == CD_LIBRARY_OP_CLASS_CONV || c == CD_LIBRARY_OP_CLASS_BMM ||
                   c == CD_LIBRARY_OP_CLASS_LINEAR
               ? 2 * o->b * o->m * o->n * o->k
               : -1;
}

/* The shape goes into the row and, with kind and type, into the workload key; both are slices of
 * one buffer. */
static cdmpp_status take_op(cd_store_reading *r, const cd_library_op_record *o, const char *device,
                            long line, cd_buf *b, cdmpp_err *err) {
    double t = o->latency_s;
    const char *name = cd_library_op_kind_name(o->kind),
               *dtype = cd_library_op_dtype_name(o->dtype);
    cd_buf_clear(b);
    cd_buf_puts(b, "[");
    put_op_shape(b, o);
    cd_buf_puts(b, "]");
    const size_t n = b->n;
    cd_buf_putf(b, "[\"%s\",", name);
    put_op_shape(b, o);
    cd_buf_putf(b, ",\"%s\"]", dtype);
    if (b->oom) return CD_FAIL(err, ENOMEM, "workload key");
    if (!(t > 0))
        return cd_err_at(err, CD_FAIL(err, ESCHEMA, "expected a latency, found none"), r->path,
                         line);
    cd_store_row row = {.device = r->device.n ? r->device : (cd_str){device, strlen(device)},
                        .target = {"library", 7},
                        .target_tail = {"[]", 2},
                        .workload_key = {b->p + n, b->n - n},
                        .operator_name = {name, strlen(name)},
                        .shape = {b->p, n},
                        .dtype = {dtype, strlen(dtype)},
                        .flop = op_flop(o),
                        .known = true,
                        .env = r->how->env,
                        .line = line};
    cd_store_latency_of(&t, 1, &row.latency);
    return cd_store_take(r, &row, err);
}

cdmpp_status cd_store_read_table(cd_store_reading *r, cdmpp_err *err) {
    cd_op_reader *in = NULL;
    cd_buf b = {0};
    uint64_t n = 1; /* the header */
    CD_TRY(cd_library_op_reader_open(r->path, &in, err));
    for (cdmpp_status st = CDMPP_OK;;) {
        cd_library_op_record o;
        const char *device = "";
        cdmpp_err e = {0};
        bool more = false;
        st = cd_library_op_reader_next(in, &o, &device, &more, &e);
        if (st || more) n = (uint64_t)cd_op_reader_line(in);
        if (!st && more && n > r->first) {
            r->tally->lines++;
            st = cd_err_at(&e, take_op(r, &o, device, (long)n, &b, &e), r->path, (long)n);
        }
        if (st) st = cd_store_bad(r, st, &e, err);
        if (!st && (n > r->first || !more)) st = cd_store_mark(r, n, !more, err);
        if (!more || st) {
            cd_op_reader_close(in);
            cd_buf_free(&b);
            return st;
        }
    }
}

/* ---- curves ---- */
enum { SET, HOST, OPERATOR, DEVICE_ID, VARIED, SHAPE, POINTS, N_FIELD };
static const char *const field_name[N_FIELD] = {"set",    "host",  "operator", "device_id",
                                                "varied", "shape", "points"};

typedef struct curves {
    cd_store_reading *r;
    int of[N_FIELD]; /* column of each field */
    cd_buf shape, key, device, extra;
} curves;

/* Fields of a line, cut in place; how many. */
static int split(char *line, char *out[], int max) {
    int n = 0;
    for (char *p = line; p && n < max; n++) {
        out[n] = p;
        p = strchr(p, '\t');
        if (p) *p++ = 0;
    }
    return n;
}

static cdmpp_status read_header(curves *c, char *line, cdmpp_err *err) {
    char *f[32];
    const int n = split(line, f, 32);
    for (int k = 0; k < N_FIELD; k++) {
        c->of[k] = -1;
        for (int i = 0; i < n; i++)
            if (!strncmp(f[i], field_name[k], strlen(field_name[k]))) c->of[k] = i;
        if (c->of[k] < 0)
            return CD_FAIL(err, ESCHEMA, "expected a column '%s' in the first line", field_name[k]);
    }
    return CDMPP_OK;
}

/* "((-1, 3), (71,))" as "[[n,3],[71]]". */
static void put_shape(cd_buf *b, const char *s, long n) {
    for (; *s; s++) {
        if (*s == '(') cd_buf_puts(b, "[");
        else if (*s == ')') cd_buf_puts(b, "]");
        else if (*s == ',') cd_buf_puts(b, s[1 + strspn(s + 1, " ")] == ')' ? "" : ",");
        else if (!strncmp(s, "-1", 2)) cd_buf_put_int(b, n), s++;
        else if (*s != ' ') cd_buf_put(b, s, 1);
    }
}

/* One measurement: the point's size stands in the shape in place of -1. */
static cdmpp_status take_point(curves *c, char *const f[], long n, double ms, long line,
                               cdmpp_err *err) {
    const char *op = f[c->of[OPERATOR]];
    double t = ms / 1e3;
    cd_store_env env = c->r->how->env ? *c->r->how->env : (cd_store_env){0};
    cd_buf_clear(&c->shape);
    cd_buf_clear(&c->key);
    put_shape(&c->shape, f[c->of[SHAPE]], n);
    cd_buf_puts(&c->key, "[");
    cd_buf_put_json_str(&c->key, op, strlen(op));
    cd_buf_puts(&c->key, ",");
    if (c->shape.n > 2) cd_buf_put(&c->key, c->shape.p + 1, c->shape.n - 2);
    cd_buf_puts(&c->key, "]");
    if (c->shape.oom || c->key.oom) return CD_FAIL(err, ENOMEM, "workload key");
    env.extra = (cd_str){c->extra.p, c->extra.n};
    cd_store_row row = {.device =
                            c->r->device.n ? c->r->device : (cd_str){c->device.p, c->device.n},
                        .target = {"tvm", 3},
                        .target_tail = {"[]", 2},
                        .workload_key = {c->key.p, c->key.n},
                        .operator_name = {op, strlen(op)},
                        .shape = {c->shape.p, c->shape.n},
                        .dtype = {"float32", 7},
                        .flop = -1,
                        .known = true,
                        .env = &env,
                        .line = line};
    cd_store_latency_of(&t, 1, &row.latency);
    return cd_store_take(c->r, &row, err);
}

/* Lists of sizes, or lists of lists of them? */
static bool is_shape(const cd_json *v, int depth) {
    if (v->kind != CD_JSON_ARR) return v->kind == CD_JSON_INT && depth > 0;
    for (const cd_json *c = v->u.child; c; c = c->next)
        if (!is_shape(c, depth + 1)) return false;
    return true;
}

static cdmpp_status check_shape(curves *c, const char *s, cdmpp_err *err) {
    const cd_json *v = NULL;
    cd_buf_clear(&c->shape);
    put_shape(&c->shape, s, 1);
    cd_arena_reset(&c->r->arena);
    if (c->shape.oom) return CD_FAIL(err, ENOMEM, "shape");
    if (!c->shape.n || cd_json_parse(&c->r->arena, c->shape.p, c->shape.n, &v, NULL) ||
        !is_shape(v, 0))
        return CD_FAIL(err, ESCHEMA, "expected a shape ((-1, 3), (71,)), found '%.40s'", s);
    return CDMPP_OK;
}

/* The shape is checked before the first point is added; a bad point ends the line. */
static cdmpp_status take_curve(curves *c, char *line, long number, cdmpp_err *err) {
    char *f[32];
    const int n = split(line, f, 32);
    for (int k = 0; k < N_FIELD; k++)
        if (c->of[k] >= n)
            return CD_FAIL(err, ESCHEMA, "expected a field '%s', found %d fields", field_name[k],
                           n);
    const char *id = f[c->of[DEVICE_ID]], *set = f[c->of[SET]];
    CD_TRY(check_shape(c, f[c->of[SHAPE]], err));
    cd_buf_clear(&c->device);
    cd_buf_clear(&c->extra);
    cd_buf_puts(&c->device, f[c->of[HOST]]);
    if (strcmp(id, "0")) cd_buf_putf(&c->device, ":%s", id);
    cd_buf_puts(&c->extra, "{\"set\":");
    cd_buf_put_json_str(&c->extra, set, strlen(set));
    cd_buf_puts(&c->extra, "}");
    if (c->device.oom || c->extra.oom) return CD_FAIL(err, ENOMEM, "device of a curve");
    for (char *p = f[c->of[POINTS]]; *p;) {
        char *end;
        const long at = strtol(p, &end, 10);
        const double ms = end > p && *end == ':' ? strtod(p = end + 1, &end) : -1;
        if (!(ms > 0) || end == p || (*end && *end != ' '))
            return CD_FAIL(err, ESCHEMA, "expected points n:milliseconds, found '%.30s'", p);
        CD_TRY(take_point(c, f, at, ms, number, err));
        p = end + strspn(end, " ");
    }
    return CDMPP_OK;
}

/* A file that breaks off keeps what was read before it. */
static cdmpp_status read_curves(curves *c, cd_file_lines *l, cdmpp_err *err) {
    cd_store_reading *r = c->r;
    char *line;
    size_t len;
    uint64_t n = 0;
    for (;;) {
        cdmpp_err e = {0};
        cdmpp_status st = cd_file_lines_next(l, &line, &len, &e);
        const bool broken = st && st != CDMPP_ERANGE;
        if (!st && !line) return cd_store_mark(r, n, true, err);
        n++;
        if (!st && n == 1) {
            st = cd_err_at(&e, read_header(c, line, &e), r->path, 1);
            if (st && err) *err = e;
            if (st) return st;
        } else if (!st && n > r->first && *line) {
            r->tally->lines++;
            st = cd_err_at(&e, take_curve(c, line, (long)n, &e), r->path, (long)n);
        }
        if (st) CD_TRY(cd_store_bad(r, st, &e, err));
        if (broken) return cd_store_mark(r, n, true, err);
        if (n > r->first) CD_TRY(cd_store_mark(r, n, false, err));
    }
}

cdmpp_status cd_store_read_curves(cd_store_reading *r, cdmpp_err *err) {
    curves c = {.r = r};
    cd_file_lines *l = NULL;
    CD_TRY(cd_file_lines_open(r->path, 0, &l, err));
    const cdmpp_status st = read_curves(&c, l, err);
    cd_buf *const b[] = {&c.shape, &c.key, &c.device, &c.extra};
    for (size_t i = 0; i < 4; i++) cd_buf_free(b[i]);
    cd_file_lines_close(l);
    return st;
}
