/* mended.h -- any bytes as a model file whose lengths and checksum are right, so that the readers
 * behind the frame are reached, those of the weights too.
 *
 *   CDMPPMDL version 0 H B header weights ...  ->  the same with H as far as there are bytes, B the
 *                                                 rest, and a checksum
 *   other bytes                                ->  the header of a file of each version, without
 *                                                 weights */
#ifndef MENDED_H
#define MENDED_H
#include <string.h>

#include "base/io/io.h"

typedef void mended_use(const void *p, size_t n);

static inline void mended_as(uint32_t version, const uint8_t *header, size_t n_header,
                             const uint8_t *weights, size_t n_weights, mended_use *use) {
    cd_buf b = {0}, h = {0}, w = {0};
    cd_buf_put(&h, (const char *)header, n_header);
    cd_buf_put(&w, (const char *)weights, n_weights);
    if (!cd_container_put_as(CD_CONTAINER_MODEL, version, &b, &h, &w, NULL)) use(b.p, b.n);
    cd_buf_free(&b);
    cd_buf_free(&h);
    cd_buf_free(&w);
}

static inline void mended(const uint8_t *data, size_t size, mended_use *use) {
    use(data, size);
    if (size >= 32 && !memcmp(data, "CDMPPMDL", 8)) {
        uint64_t h = 0;
        for (int i = 7; i >= 0; i--) h = h << 8 | data[16 + i];
        const size_t n = h < size - 32 ? (size_t)h : size - 32;
        mended_as(data[8] % 8u, data + 32, n, data + 32 + n, size - 32 - n, use);
    } else {
        for (uint32_t version = 1; version <= CD_CONTAINER_MODEL_ORDER; version++)
            mended_as(version, data, size, data, 0, use);
    }
}
#endif
