/* Texts beside a model: field metadata_props of ModelProto, pairs of a key and a value.
 *
 *   file ─ top-level fields, one by one ─> all but the pairs of our key, byte by byte ─ our pair
 *                                          behind them ─> file
 *
 * Nothing inside a field is read but these pairs, so that weights and what later versions of ONNX
 * add stay as they are. */
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "profiler/network/onnx/onnx_internal.h"

/* Copies a model's bytes without what is large or of no use (contents of big tensors, training
 * information, documentation), before protobuf-c unpacks it. The walk knows of each message only
 * the fields in the table; all others are copied as they are. */

/* Messages that hold large contents or can hold themselves. */
enum {
    MODEL = 1,
    GRAPH,
    NODE,
    ATTR,
    TENSOR,
    SPARSE,
    FUNCTION,
    VALUE_STRIP,
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
    {GRAPH, DROP, 10},        {GRAPH, VALUE_STRIP, 11}, {GRAPH, VALUE_STRIP, 12},
    {GRAPH, VALUE_STRIP, 13}, {GRAPH, SPARSE, 15},      {NODE, ATTR, 5},
    {NODE, DROP, 6},          {FUNCTION, NODE, 7},      {FUNCTION, ATTR, 11},
    {FUNCTION, DROP, 8},      {ATTR, TENSOR, 5},        {ATTR, GRAPH, 6},
    {ATTR, TENSOR, 10},       {ATTR, GRAPH, 11},        {ATTR, DROP, 13},
    {ATTR, TYPE, 14},         {ATTR, TYPE, 15},         {ATTR, SPARSE, 22},
    {ATTR, SPARSE, 23},       {SPARSE, TENSOR, 1},      {SPARSE, TENSOR, 2},
    {TENSOR, DROP_LARGE, 4},  {TENSOR, DROP_LARGE, 5},  {TENSOR, DROP_LARGE, 6},
    {TENSOR, DROP_LARGE, 7},  {TENSOR, DROP_LARGE, 9},  {TENSOR, DROP_LARGE, 10},
    {TENSOR, DROP_LARGE, 11}, {TENSOR, DROP, 12},       {VALUE_STRIP, TYPE, 2},
    {VALUE_STRIP, DROP, 3},   {TYPE, TYPE_SEQUENCE, 4}, {TYPE, TYPE_MAP, 5},
    {TYPE, TYPE_OPTIONAL, 9}, {TYPE_SEQUENCE, TYPE, 1}, {TYPE_MAP, TYPE, 2},
    {TYPE_OPTIONAL, TYPE, 1},
};

static int fate(int message, uint64_t field) {
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].in == message && fields[i].field == field) return fields[i].to;
    return 0;
}

/* The number at w->at, which moves behind it. Errors: EPARSE. */
static cdmpp_status onnx_wire_varint(cd_onnx_wire *w, uint64_t *v, cdmpp_err *err) {
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

static void onnx_wire_put_varint(cd_buf *b, uint64_t v) {
    char c[10];
    size_t n = 0;
    for (; v > 127; v >>= 7) c[n++] = (char)(v | 128);
    c[n++] = (char)v;
    cd_buf_put(b, c, n);
}

/* *n: bytes of the content of a field of this wire type at w->at, which moves behind the length if
 * there is one. Errors: EPARSE. */
static cdmpp_status onnx_wire_extent(cd_onnx_wire *w, unsigned type, size_t *n, cdmpp_err *err) {
    uint64_t v;
    cd_onnx_wire ahead = *w;
    switch (type) {
    case 0:
        CD_TRY(onnx_wire_varint(&ahead, &v, err));
        v = ahead.at - w->at;
        break;
    case 1: v = 8; break;
    case 2: CD_TRY(onnx_wire_varint(w, &v, err)); break;
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

static cdmpp_status walk_strip(cd_onnx_wire *w, int message, int depth, cd_buf *out,
                               cdmpp_err *err);

/* A message in a message: its length comes first, so it is made beside. */
static cdmpp_status inner(const cd_onnx_wire *w, size_t n, int message, int depth, cd_buf *out,
                          cdmpp_err *err) {
    cd_onnx_wire in = {w->p, w->at, w->at + n, w->all};
    cd_buf b = {0};
    cdmpp_status st = walk_strip(&in, message, depth + 1, &b, err);
    if (!st) {
        onnx_wire_put_varint(out, b.n);
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
    CD_TRY(onnx_wire_varint(w, &tag, err));
    const unsigned type = (unsigned)(tag & 7);
    const int to = fate(message, tag >> 3);
    CD_TRY(onnx_wire_extent(w, type, &n, err));
    if (to == DROP || (to == DROP_LARGE && n > LARGE && !w->all)) {
        w->at += n;
        return CDMPP_OK;
    }
    if (out->n + n > CD_ONNX_MAX_STRIPPED && !(to > 0 && type == 2))
        return CD_FAIL(err, ERANGE, "more than %zu MiB beside the weights",
                       CD_ONNX_MAX_STRIPPED >> 20);
    onnx_wire_put_varint(out, tag);
    if (to > 0 && type == 2) CD_TRY(inner(w, n, to, depth, out, err));
    else {
        if (type == 2) onnx_wire_put_varint(out, n);
        cd_buf_put(out, (const char *)w->p + w->at, n);
    }
    w->at += n;
    return CDMPP_OK;
}

static cdmpp_status walk_strip(cd_onnx_wire *w, int message, int depth, cd_buf *out,
                               cdmpp_err *err) {
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
    return walk_strip(&w, MODEL, 0, out, err);
}

/* numbers of onnx.proto; wire type of what has a length */
enum { PROPS = 14, KEY = 1, VALUE = 2, BYTES = 2 };

typedef struct {
    const unsigned char *key, *value;
    size_t n_key, n_value;
} pair;

static cdmpp_status read_pair(const unsigned char *p, size_t n, pair *out, cdmpp_err *err) {
    cd_onnx_wire w = {p, 0, n, false};
    *out = (pair){0};
    while (w.at < w.end) {
        uint64_t tag;
        size_t len;
        CD_TRY(onnx_wire_varint(&w, &tag, err));
        CD_TRY(onnx_wire_extent(&w, (unsigned)(tag & 7), &len, err));
        if (tag == (KEY << 3 | BYTES)) out->key = w.p + w.at, out->n_key = len;
        if (tag == (VALUE << 3 | BYTES)) out->value = w.p + w.at, out->n_value = len;
        w.at += len;
    }
    return CDMPP_OK;
}

/* Calls for each top-level field: its bytes with the tag, and the pair if it is one of this key.
 * Nothing is changed by fields of no length: a file that is no model has a wrong tag or length
 * somewhere. */
static cdmpp_status walk(const char *data, size_t n, const char *key, cd_buf *others, pair *found,
                         cdmpp_err *err) {
    cd_onnx_wire w = {(const unsigned char *)data, 0, n, false};
    while (w.at < w.end) {
        const size_t begin = w.at;
        uint64_t tag;
        size_t len;
        pair p = {0};
        CD_TRY(onnx_wire_varint(&w, &tag, err));
        if (!(tag >> 3)) return CD_FAIL(err, EPARSE, "field 0 at byte %zu: no ONNX model", begin);
        CD_TRY(onnx_wire_extent(&w, (unsigned)(tag & 7), &len, err));
        if (tag == (PROPS << 3 | BYTES)) CD_TRY(read_pair(w.p + w.at, len, &p, err));
        w.at += len;
        const bool ours = p.key && p.n_key == strlen(key) && !memcmp(p.key, key, p.n_key);
        if (ours) *found = p;
        else if (others) cd_buf_put(others, data + begin, w.at - begin);
    }
    return CDMPP_OK;
}

enum { LONGEST = 0x7fffffff }; /* bytes of a message of protocol buffers */

cdmpp_status cd_onnx_metadata(const char *path, const char *key, char **text, size_t *n,
                              cdmpp_err *err) {
    char *data = NULL;
    size_t size = 0;
    pair p = {0};
    *text = NULL;
    *n = 0;
    cdmpp_status st = cd_file_read(path, LONGEST, &data, &size, err);
    if (!st) st = cd_err_at(err, walk(data, size, key, NULL, &p, err), path, 0);
    if (!st && p.key) {
        *n = p.n_value;
        if (!(*text = cd_mem_alloc(p.n_value + 1)))
            st = CD_FAIL(err, ENOMEM, "%zu bytes of metadata", p.n_value);
        if (*text && p.n_value) memcpy(*text, p.value, p.n_value);
        if (*text) (*text)[p.n_value] = 0;
    }
    cd_mem_free(data);
    return st;
}

static void put_text(cd_buf *b, unsigned field, const char *text, size_t n) {
    onnx_wire_put_varint(b, field << 3 | BYTES);
    onnx_wire_put_varint(b, n);
    cd_buf_put(b, text, n);
}

cdmpp_status cd_onnx_metadata_write(const char *path, const char *to, const char *key,
                                    const char *text, size_t n, cdmpp_err *err) {
    char *data = NULL;
    size_t size = 0;
    cd_buf out = {0}, own = {0};
    pair before = {0};
    cdmpp_status st = cd_file_read(path, LONGEST, &data, &size, err);
    if (!st) st = cd_err_at(err, walk(data, size, key, &out, &before, err), path, 0);
    if (!st) {
        put_text(&own, KEY, key, strlen(key));
        put_text(&own, VALUE, text, n);
        if (own.oom) out.oom = true;
        else put_text(&out, PROPS, own.p, own.n);
        if (out.oom) st = CD_FAIL(err, ENOMEM, "%zu bytes of %s", size, path);
        else st = cd_file_write(to, out.p, out.n, err);
    }
    cd_buf_free(&own);
    cd_buf_free(&out);
    cd_mem_free(data);
    return st;
}

/* ir_version, the first field that every writer puts there, or any other field of a model; JSON
 * begins with a bracket or a blank. */
bool cd_onnx_is_model(const char *path) {
    char *data = NULL;
    size_t n = 0;
    pair p = {0};
    if (cd_file_read(path, LONGEST, &data, &n, NULL)) return false;
    const bool is = n && !strchr("{[ \t\r\n", data[0]) && !walk(data, n, "", NULL, &p, NULL);
    cd_mem_free(data);
    return is;
}
