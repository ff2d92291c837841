/* The outer form of model and checkpoint files: magic, version, two lengths, header, weights,
 * SHA-256. The sum is checked before anything is read, so the readers of header and weights meet
 * damaged bytes only if somebody made them on purpose. */
#include "base/io/io.h"

#include <inttypes.h>
#include <string.h>

enum { FIXED = 32, SUM = 64 };
static const struct {
    const char *magic, *name;
    uint32_t version, last; /* version that is written by default; newest version that is read */
} table[] = {
    [CD_CONTAINER_MODEL] = {"CDMPPMDL", "model", CD_CONTAINER_MODEL_VERSION,
                            CD_CONTAINER_MODEL_ORDER},
    [CD_CONTAINER_CHECKPOINT] = {"CDMPPCKP", "checkpoint", CD_CONTAINER_CHECKPOINT_VERSION,
                                 CD_CONTAINER_CHECKPOINT_VERSION},
};

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

/* The sum covers all bytes before it, also the lengths. */
cdmpp_status cd_container_put_as(cd_container_kind kind, uint32_t version, cd_buf *out,
                                 const cd_buf *header, const cd_buf *weights, cdmpp_err *err) {
    const size_t start = out->n;
    char hex[SUM + 1];
    cd_buf_put(out, table[kind].magic, 8);
    put_le(out, version, 4);
    put_le(out, 0, 4);
    put_le(out, header->n, 8);
    put_le(out, weights->n, 8);
    cd_buf_put(out, header->p ? header->p : "", header->n);
    cd_buf_put(out, weights->p ? weights->p : "", weights->n);
    if (out->oom || header->oom || weights->oom)
        return CD_FAIL(err, ENOMEM, "%s file of %zu bytes", table[kind].name, weights->n);
    sum_of(out->p + start, out->n - start, hex);
    cd_buf_put(out, hex, SUM);
    return out->oom ? CD_FAIL(err, ENOMEM, "%s file", table[kind].name) : CDMPP_OK;
}

cdmpp_status cd_container_put(cd_container_kind kind, cd_buf *out, const cd_buf *header,
                              const cd_buf *weights, cdmpp_err *err) {
    return cd_container_put_as(kind, table[kind].version, out, header, weights, err);
}

/* The lengths come from outside: they are compared with the size of the file in an order in which
 * no subtraction wraps. */
cdmpp_status cd_container_get(cd_container_kind kind, const void *data, size_t n, cd_container *out,
                              cdmpp_err *err) {
    const char *p = data, *name = table[kind].name;
    char hex[SUM + 1];
    if (n < FIXED || memcmp(p, table[kind].magic, 8) != 0)
        return CD_FAIL(err, EPARSE, "not a cdmpp %s file", name);
    const uint64_t version = get_le(p + 8, 4), zero = get_le(p + 12, 4), h = get_le(p + 16, 8),
                   b = get_le(p + 24, 8);
    if (!version || version > table[kind].last)
        return CD_FAIL(err, EUNSUPPORTED, "expected a %s file of version 1 to %u, found %" PRIu64,
                       name, table[kind].last, version);
    if (n < FIXED + SUM || zero || h > n - FIXED - SUM || b != n - FIXED - SUM - h)
        return CD_FAIL(err, EPARSE,
                       "expected %" PRIu64 " + %" PRIu64
                       " + %d bytes, found %zu: cut short or damaged",
                       h, b, FIXED + SUM, n);
    sum_of(p, n - SUM, hex);
    if (memcmp(hex, p + n - SUM, SUM) != 0)
        return CD_FAIL(err, EPARSE,
                       "checksum: expected %.12s..., found %.12s...: the file is damaged",
                       p + n - SUM, hex);
    *out = (cd_container){(uint32_t)version, {p + FIXED, (size_t)h}, {p + FIXED + h, (size_t)b}};
    return CDMPP_OK;
}

cdmpp_status cd_container_header(const cd_container *f, cd_arena *a, const char **text,
                                 const cd_json **root, cdmpp_err *err) {
    *text = cd_str_dup(a, f->header);
    if (!*text) return CD_FAIL(err, ENOMEM, "header of %zu bytes", f->header.n);
    if (strlen(*text) != f->header.n) return CD_FAIL(err, EPARSE, "header: NUL byte");
    return cd_err_key(err, cd_json_parse(a, *text, f->header.n, root, err), "header");
}
