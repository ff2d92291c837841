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
        CD_TRY(cd_onnx_wire_varint(&w, &tag, err));
        CD_TRY(cd_onnx_wire_extent(&w, (unsigned)(tag & 7), &len, err));
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
        CD_TRY(cd_onnx_wire_varint(&w, &tag, err));
        if (!(tag >> 3)) return CD_FAIL(err, EPARSE, "field 0 at byte %zu: no ONNX model", begin);
        CD_TRY(cd_onnx_wire_extent(&w, (unsigned)(tag & 7), &len, err));
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
    cd_onnx_wire_put_varint(b, field << 3 | BYTES);
    cd_onnx_wire_put_varint(b, n);
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
