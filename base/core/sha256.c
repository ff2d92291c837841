/* SHA-256 by OpenSSL, which uses the processor's instructions. Its older calls are taken because
 * their state is plain data; the newer ones hide it, and a checkpoint of an extraction stores
 * it. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/core/core.h"

void cd_sha256_init(cd_sha256 *s) {
    *s = (cd_sha256){0}; /* all bytes of a stored state are defined */
    SHA256_Init(s);
}

void cd_sha256_add(cd_sha256 *s, const void *p, size_t n) {
    if (n) SHA256_Update(s, p, n);
}

void cd_sha256_hex(const cd_sha256 *s, char out[65]) {
    static const char digit[] = "0123456789abcdef";
    unsigned char sum[SHA256_DIGEST_LENGTH];
    cd_sha256 end = *s;
    SHA256_Final(sum, &end);
    for (size_t i = 0; i < 64; i++) out[i] = digit[sum[i / 2] >> (i % 2 ? 0 : 4) & 15];
    out[64] = 0;
}
