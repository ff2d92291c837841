/* Any bytes as a model file: as they are (the frame), and as the header of files of
 * versions 1 to 4 whose lengths and checksum are right (the header's reader). The weights
 * are left out of these, so XGBoost's reader is never reached: it sees
 * only what a matching checksum vouches for. */
#include <string.h>

#include "base/core/core.h"
#include "learner/model/model.h"

static void put_le(cd_buf *b, uint64_t v, int n) {
    for (int i = 0; i < n; i++) {
        const char c = (char)(v >> (8 * i));
        cd_buf_put(b, &c, 1);
    }
}

static void load(const void *p, size_t n) {
    cd_model *m = NULL;
    cdmpp_err err = {0};
    if (!cd_model_from_bytes(p, n, &m, &err)) cd_model_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    load(data, size);
    for (uint64_t version = 1; version <= 4; version++) {
        cd_buf b = {0};
        cd_sha256 s;
        char hex[65];
        cd_buf_puts(&b, "CDMPPMDL");
        put_le(&b, version, 4);
        put_le(&b, 0, 4);
        put_le(&b, size, 8);
        put_le(&b, 0, 8);
        cd_buf_put(&b, (const char *)data, size);
        cd_sha256_init(&s);
        cd_sha256_add(&s, b.p, b.n);
        cd_sha256_hex(&s, hex);
        cd_buf_put(&b, hex, 64);
        load(b.p, b.n);
        cd_buf_free(&b);
    }
    return 0;
}
