/* MD5 by OpenSSL: the hash of TVM's workload keys. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/core/core.h"

#include <openssl/md5.h>

void cd_md5_hex(const void *p, size_t n, char out[33]) {
    static const char digit[] = "0123456789abcdef";
    unsigned char sum[MD5_DIGEST_LENGTH];
    MD5(p, n, sum);
    for (size_t i = 0; i < 32; i++) out[i] = digit[sum[i / 2] >> (i % 2 ? 0 : 4) & 15];
    out[32] = 0;
}
