#include "learner/frame.h"

#include <inttypes.h>
#include <string.h>

#include "base/sha256.h"

enum { FIXED = 32, SUM = 64 };
static const char magic[] = "CDMPPMDL";

static void put_le(cd_buf *b, uint64_t v, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char c = (char)(v >> (8 * i));
        cd_buf_put(b, &c, 1);
    }
}

static uint64_t get_le(const char *p, size_t n) {
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) v |= (uint64_t)(unsigned char)p[i] << (8 * i);
    return v;
}

static void sum_of(const char *p, size_t n, char hex[SUM + 1]) {
    cd_sha256 h;
    cd_sha256_init(&h);
    cd_sha256_add(&h, p, n);
    cd_sha256_hex(&h, hex);
}

cdmpp_status cd_frame_put(cd_buf *out, const cd_buf *header, const cd_buf *weights, cdmpp_err *err) {
    const size_t start = out->n;
    char hex[SUM + 1];
    cd_buf_put(out, magic, 8);
    put_le(out, CD_FRAME_VERSION, 4);
    put_le(out, 0, 4);
    put_le(out, header->n, 8);
    put_le(out, weights->n, 8);
    cd_buf_put(out, header->p ? header->p : "", header->n);
    cd_buf_put(out, weights->p ? weights->p : "", weights->n);
    if (out->oom || header->oom || weights->oom) return CD_FAIL(err, ENOMEM, "model file of %zu bytes", weights->n);
    sum_of(out->p + start, out->n - start, hex);
    cd_buf_put(out, hex, SUM);
    return out->oom ? CD_FAIL(err, ENOMEM, "model file") : CDMPP_OK;
}

cdmpp_status cd_frame_get(const void *data, size_t n, cd_str *header, cd_str *weights, cdmpp_err *err) {
    const char *p = data;
    char hex[SUM + 1];
    if (n < FIXED || memcmp(p, magic, 8) != 0) return CD_FAIL(err, EPARSE, "not a cdmpp model file");
    const uint64_t version = get_le(p + 8, 4), zero = get_le(p + 12, 4), h = get_le(p + 16, 8), b = get_le(p + 24, 8);
    if (!version || version > CD_FRAME_VERSION)
        return CD_FAIL(err, EUNSUPPORTED, "expected model file version 1 to %d, found %" PRIu64, CD_FRAME_VERSION, version);
    if (n < FIXED + SUM || zero || h > n - FIXED - SUM || b != n - FIXED - SUM - h)
        return CD_FAIL(err, EPARSE, "expected %" PRIu64 " + %" PRIu64 " + %d bytes, found %zu: cut short or damaged", h, b,
                       FIXED + SUM, n);
    sum_of(p, n - SUM, hex);
    if (memcmp(hex, p + n - SUM, SUM) != 0)
        return CD_FAIL(err, EPARSE, "checksum: expected %.12s..., found %.12s...: the file is damaged", p + n - SUM, hex);
    *header = (cd_str){p + FIXED, (size_t)h};
    *weights = (cd_str){p + FIXED + h, (size_t)b};
    return CDMPP_OK;
}
