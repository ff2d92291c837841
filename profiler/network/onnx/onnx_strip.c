/* Copies a model's bytes without what is large or of no use (contents of big tensors, training
 * information, documentation), before protobuf-c unpacks it. The walk knows of each message only
 * the fields in the table; all others are copied as they are. */
#include "profiler/network/onnx/onnx_internal.h"

/* Messages that hold large contents or can hold themselves. */
enum {
    MODEL = 1,
    GRAPH,
    NODE,
    ATTR,
    TENSOR,
    SPARSE,
    FUNCTION,
    VALUE,
    TYPE,
    TYPE_SEQUENCE,
    TYPE_MAP,
    TYPE_OPTIONAL
};
enum { DROP = -1, DROP_LARGE = -2 };
/* A varint takes up to 10 bytes: longer contents have more elements than are ever kept. */
#define LARGE ((size_t)10 * CD_GRAPH_MAX_VALUE)

/* Field of a message (numbers of onnx.proto) -> the message that it holds, or DROP; a field that is
 * not here is copied. A length-prefixed field that is longer than LARGE is dropped with
 * DROP_LARGE. */
static const struct {
    int8_t in, to;
    uint8_t field;
} fields[] = {
    {MODEL, GRAPH, 7},        {MODEL, FUNCTION, 25},    {MODEL, DROP, 6},
    {MODEL, DROP, 20},        {GRAPH, NODE, 1},         {GRAPH, TENSOR, 5},
    {GRAPH, DROP, 10},        {GRAPH, VALUE, 11},       {GRAPH, VALUE, 12},
    {GRAPH, VALUE, 13},       {GRAPH, SPARSE, 15},      {NODE, ATTR, 5},
    {NODE, DROP, 6},          {FUNCTION, NODE, 7},      {FUNCTION, ATTR, 11},
    {FUNCTION, DROP, 8},      {ATTR, TENSOR, 5},        {ATTR, GRAPH, 6},
    {ATTR, TENSOR, 10},       {ATTR, GRAPH, 11},        {ATTR, DROP, 13},
    {ATTR, TYPE, 14},         {ATTR, TYPE, 15},         {ATTR, SPARSE, 22},
    {ATTR, SPARSE, 23},       {SPARSE, TENSOR, 1},      {SPARSE, TENSOR, 2},
    {TENSOR, DROP_LARGE, 4},  {TENSOR, DROP_LARGE, 5},  {TENSOR, DROP_LARGE, 6},
    {TENSOR, DROP_LARGE, 7},  {TENSOR, DROP_LARGE, 9},  {TENSOR, DROP_LARGE, 10},
    {TENSOR, DROP_LARGE, 11}, {TENSOR, DROP, 12},       {VALUE, TYPE, 2},
    {VALUE, DROP, 3},         {TYPE, TYPE_SEQUENCE, 4}, {TYPE, TYPE_MAP, 5},
    {TYPE, TYPE_OPTIONAL, 9}, {TYPE_SEQUENCE, TYPE, 1}, {TYPE_MAP, TYPE, 2},
    {TYPE_OPTIONAL, TYPE, 1},
};

static int fate(int message, uint64_t field) {
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].in == message && fields[i].field == field) return fields[i].to;
    return 0;
}

cdmpp_status cd_onnx_wire_varint(cd_onnx_wire *w, uint64_t *v, cdmpp_err *err) {
    *v = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (w->at == w->end)
            return CD_FAIL(err, EPARSE, "the model ends in the middle of a number at byte %zu",
                           w->at);
        const unsigned char b = w->p[w->at++];
        if (shift < 64) *v |= (uint64_t)(b & 127) << shift;
        if (b < 128) return CDMPP_OK;
    }
    return CD_FAIL(err, EPARSE, "a number of more than 10 bytes at byte %zu: no ONNX model", w->at);
}

void cd_onnx_wire_put_varint(cd_buf *b, uint64_t v) {
    char c[10];
    size_t n = 0;
    for (; v > 127; v >>= 7) c[n++] = (char)(v | 128);
    c[n++] = (char)v;
    cd_buf_put(b, c, n);
}

cdmpp_status cd_onnx_wire_extent(cd_onnx_wire *w, unsigned type, size_t *n, cdmpp_err *err) {
    uint64_t v;
    cd_onnx_wire ahead = *w;
    switch (type) {
    case 0:
        CD_TRY(cd_onnx_wire_varint(&ahead, &v, err));
        v = ahead.at - w->at;
        break;
    case 1: v = 8; break;
    case 2: CD_TRY(cd_onnx_wire_varint(w, &v, err)); break;
    case 5: v = 4; break;
    default:
        return CD_FAIL(err, EPARSE, "unknown wire type %u at byte %zu: no ONNX model", type, w->at);
    }
    if (v > w->end - w->at)
        return CD_FAIL(
            err, EPARSE,
            "the model ends in the middle of a field: expected %llu bytes at byte %zu, found %zu",
            (unsigned long long)v, w->at, w->end - w->at);
    *n = (size_t)v;
    return CDMPP_OK;
}

static cdmpp_status walk(cd_onnx_wire *w, int message, int depth, cd_buf *out, cdmpp_err *err);

/* A message in a message: its length comes first, so it is made beside. */
static cdmpp_status inner(const cd_onnx_wire *w, size_t n, int message, int depth, cd_buf *out,
                          cdmpp_err *err) {
    cd_onnx_wire in = {w->p, w->at, w->at + n, w->all};
    cd_buf b = {0};
    cdmpp_status st = walk(&in, message, depth + 1, &b, err);
    if (!st) {
        cd_onnx_wire_put_varint(out, b.n);
        if (b.n) cd_buf_put(out, b.p, b.n);
        out->oom |= b.oom;
    }
    cd_buf_free(&b);
    return st;
}

/* Drops, copies or enters one field. Sizes are checked before the copy, so that the limit holds for
 * a single large field too. */
static cdmpp_status field(cd_onnx_wire *w, int message, int depth, cd_buf *out, cdmpp_err *err) {
    uint64_t tag;
    size_t n;
    CD_TRY(cd_onnx_wire_varint(w, &tag, err));
    const unsigned type = (unsigned)(tag & 7);
    const int to = fate(message, tag >> 3);
    CD_TRY(cd_onnx_wire_extent(w, type, &n, err));
    if (to == DROP || (to == DROP_LARGE && n > LARGE && !w->all)) {
        w->at += n;
        return CDMPP_OK;
    }
    if (out->n + n > CD_ONNX_MAX_STRIPPED && !(to > 0 && type == 2))
        return CD_FAIL(err, ERANGE, "more than %zu MiB beside the weights",
                       CD_ONNX_MAX_STRIPPED >> 20);
    cd_onnx_wire_put_varint(out, tag);
    if (to > 0 && type == 2) CD_TRY(inner(w, n, to, depth, out, err));
    else {
        if (type == 2) cd_onnx_wire_put_varint(out, n);
        cd_buf_put(out, (const char *)w->p + w->at, n);
    }
    w->at += n;
    return CDMPP_OK;
}

static cdmpp_status walk(cd_onnx_wire *w, int message, int depth, cd_buf *out, cdmpp_err *err) {
    if (depth > CD_ONNX_MAX_DEPTH)
        return CD_FAIL(err, ERANGE, "messages nested deeper than %d", CD_ONNX_MAX_DEPTH);
    while (w->at < w->end) {
        CD_TRY(field(w, message, depth, out, err));
        if (out->oom) return CD_FAIL(err, ENOMEM, "a model");
        if (out->n > CD_ONNX_MAX_STRIPPED)
            return CD_FAIL(err, ERANGE, "more than %zu MiB beside the weights",
                           CD_ONNX_MAX_STRIPPED >> 20);
    }
    return CDMPP_OK;
}

cdmpp_status cd_onnx_strip(const void *data, size_t n, bool all, cd_buf *out, cdmpp_err *err) {
    cd_onnx_wire w = {data, 0, n, all};
    return walk(&w, MODEL, 0, out, err);
}
