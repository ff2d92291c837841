#include "learner/export/onnx_writer.h"

#include <stdio.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "raw tensors are little-endian");

/* ---- protobuf ---- */
static void varint(cd_buf *b, uint64_t v) {
    char p[10];
    size_t n = 0;
    for (; v > 127; v >>= 7) p[n++] = (char)(v | 128);
    p[n++] = (char)v;
    cd_buf_put(b, p, n);
}

static void number(cd_buf *b, unsigned field, int64_t v) {
    varint(b, field << 3);
    varint(b, (uint64_t)v);
}

static void bytes(cd_buf *b, unsigned field, const void *p, size_t n) {
    varint(b, field << 3 | 2);
    varint(b, n);
    cd_buf_put(b, n ? p : "", n);
}

static void text(cd_buf *b, unsigned field, const char *s) { bytes(b, field, s, strlen(s)); }

/* A message inside another; it is freed. */
static void message(cd_buf *b, unsigned field, cd_buf *m) {
    b->oom = b->oom || m->oom;
    bytes(b, field, m->p, m->n);
    cd_buf_free(m);
}

/* ---- values ---- */
static const char *fresh(cd_onnx_writer *f) {
    char name[32];
    const int n = snprintf(name, sizeof name, "v%zu", f->n++);
    const char *s = cd_str_dup(&f->arena, (cd_str){name, (size_t)n});
    f->oom = f->oom || !s;
    return s ? s : "";
}

static void put_value(cd_buf *to, unsigned field, const char *name, cd_onnx_type type, const int64_t *dim, size_t n_dim) {
    cd_buf info = {0}, of = {0}, tensor = {0}, shape = {0};
    for (size_t i = 0; i < n_dim; i++) {
        cd_buf d = {0};
        if (dim[i] < 0) text(&d, 2, "n_row");
        else number(&d, 1, dim[i]);
        message(&shape, 1, &d);
    }
    number(&tensor, 1, type);
    message(&tensor, 2, &shape);
    message(&of, 1, &tensor);
    text(&info, 1, name);
    message(&info, 2, &of);
    message(to, field, &info);
}

const char *cd_onnx_writer_input(cd_onnx_writer *f, const char *name, cd_onnx_type type, const int64_t *dim, size_t n_dim) {
    put_value(&f->input, 11, name, type, dim, n_dim);
    return name;
}

void cd_onnx_writer_output(cd_onnx_writer *f, const char *name, const char *value, cd_onnx_type type, const int64_t *dim, size_t n_dim) {
    cd_buf node = {0};
    text(&node, 1, value);
    text(&node, 2, name);
    text(&node, 4, "Identity");
    message(&f->node, 1, &node);
    put_value(&f->output, 12, name, type, dim, n_dim);
}

const char *cd_onnx_writer_constant(cd_onnx_writer *f, const char *name, cd_onnx_type type, const int64_t *dim, size_t n_dim, const void *value) {
    cd_buf t = {0};
    if (!name) name = fresh(f);
    size_t n = type == CD_ONNX_F32 ? 4 : 8;
    for (size_t i = 0; i < n_dim; i++) {
        number(&t, 1, dim[i]);
        n *= (size_t)dim[i];
    }
    number(&t, 2, type);
    text(&t, 8, name);
    bytes(&t, 9, value, n);
    message(&f->constant, 5, &t);
    return name;
}

const char *cd_onnx_writer_float(cd_onnx_writer *f, float v) { return cd_onnx_writer_constant(f, NULL, CD_ONNX_F32, NULL, 0, &v); }
const char *cd_onnx_writer_double(cd_onnx_writer *f, double v) { return cd_onnx_writer_constant(f, NULL, CD_ONNX_F64, NULL, 0, &v); }
const char *cd_onnx_writer_ints(cd_onnx_writer *f, const int64_t *v, size_t n) { return cd_onnx_writer_constant(f, NULL, CD_ONNX_I64, &(int64_t){(int64_t)n}, 1, v); }

/* ---- nodes ---- */
enum { AS_FLOAT = 1, AS_INT, AS_TEXT, AS_FLOATS = 6, AS_INTS, AS_TEXTS };

static void put_attr(cd_onnx_writer *f, const char *name, int type, cd_buf *value) {
    cd_buf a = {0};
    text(&a, 1, name);
    cd_buf_put(&a, value->p ? value->p : "", value->n);
    a.oom = a.oom || value->oom;
    cd_buf_free(value);
    number(&a, 20, type);
    message(&f->attr, 5, &a);
}

static void real(cd_buf *b, unsigned field, float v) {
    varint(b, field << 3 | 5);
    cd_buf_put(b, (const char *)&v, sizeof v);
}

void cd_onnx_writer_attr_int(cd_onnx_writer *f, const char *name, int64_t v) {
    cd_buf b = {0};
    number(&b, 3, v);
    put_attr(f, name, AS_INT, &b);
}

void cd_onnx_writer_attr_float(cd_onnx_writer *f, const char *name, float v) {
    cd_buf b = {0};
    real(&b, 2, v);
    put_attr(f, name, AS_FLOAT, &b);
}

void cd_onnx_writer_attr_text(cd_onnx_writer *f, const char *name, const char *v) {
    cd_buf b = {0};
    text(&b, 4, v);
    put_attr(f, name, AS_TEXT, &b);
}

void cd_onnx_writer_attr_ints(cd_onnx_writer *f, const char *name, const int64_t *v, size_t n) {
    cd_buf b = {0};
    for (size_t i = 0; i < n; i++) number(&b, 8, v[i]);
    put_attr(f, name, AS_INTS, &b);
}

void cd_onnx_writer_attr_floats(cd_onnx_writer *f, const char *name, const float *v, size_t n) {
    cd_buf b = {0};
    for (size_t i = 0; i < n; i++) real(&b, 7, v[i]);
    put_attr(f, name, AS_FLOATS, &b);
}

void cd_onnx_writer_attr_texts(cd_onnx_writer *f, const char *name, const char *const *v, size_t n) {
    cd_buf b = {0};
    for (size_t i = 0; i < n; i++) text(&b, 9, v[i]);
    put_attr(f, name, AS_TEXTS, &b);
}

const char *cd_onnx_writer_node(cd_onnx_writer *f, const char *op, const char *const *in, size_t n) {
    cd_buf node = {0};
    const char *name = fresh(f);
    for (size_t i = 0; i < n; i++) text(&node, 1, in[i]);
    text(&node, 2, name);
    text(&node, 4, op);
    cd_buf_put(&node, f->attr.p ? f->attr.p : "", f->attr.n);
    node.oom = node.oom || f->attr.oom;
    cd_buf_clear(&f->attr);
    if (f->ml) text(&node, 7, f->ml);
    message(&f->node, 1, &node);
    return name;
}

/* ---- the file ---- */
void cd_onnx_writer_meta(cd_onnx_writer *f, const char *key, const char *value) {
    cd_buf b = {0};
    text(&b, 1, key);
    text(&b, 2, value);
    message(&f->meta, 14, &b);
}

static void put_opset(cd_buf *out, const char *domain, int version) {
    cd_buf b = {0};
    text(&b, 1, domain);
    number(&b, 2, version);
    message(out, 8, &b);
}

static void append(cd_buf *to, const cd_buf *from) {
    cd_buf_put(to, from->p ? from->p : "", from->n);
    to->oom = to->oom || from->oom;
}

cdmpp_status cd_onnx_writer_end(cd_onnx_writer *f, const char *name, cd_buf *out, cdmpp_err *err) {
    cd_buf graph = {0};
    append(&graph, &f->node);
    text(&graph, 2, name);
    append(&graph, &f->constant);
    append(&graph, &f->input);
    append(&graph, &f->output);
    number(out, 1, CD_ONNX_IR);
    text(out, 2, "cdmpp");
    text(out, 3, CDMPP_VERSION);
    message(out, 7, &graph);
    put_opset(out, "", CD_ONNX_OPSET);
    put_opset(out, "ai.onnx.ml", CD_ONNX_ML_OPSET);
    append(out, &f->meta);
    return f->oom || out->oom ? CD_FAIL(err, ENOMEM, "ONNX file") : CDMPP_OK;
}

void cd_onnx_writer_free(cd_onnx_writer *f) {
    cd_buf *all[] = {&f->node, &f->constant, &f->input, &f->output, &f->meta, &f->attr};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) cd_buf_free(all[i]);
    cd_arena_free(&f->arena);
}
