/* A hash of 128 bits: two words are folded by a 64 x 64 bit multiplication, twice with different
 * constants. Tables that compare programs by hash alone need so many bits; a cryptographic hash
 * would be ten times slower. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <string.h>

#include "base/core/core.h"

#include <openssl/md5.h>

/* MD5 by OpenSSL: the hash of TVM's workload keys. */
void cd_md5_hex(const void *p, size_t n, char out[33]) {
    static const char digit[] = "0123456789abcdef";
    unsigned char sum[MD5_DIGEST_LENGTH];
    MD5(p, n, sum);
    for (size_t i = 0; i < 32; i++) out[i] = digit[sum[i / 2] >> (i % 2 ? 0 : 4) & 15];
    out[32] = 0;
}

/* SHA-256 by OpenSSL, which uses the processor's instructions. Its older calls are taken because
 * their state is plain data; the newer ones hide it, and a checkpoint of an extraction stores
 * it. */

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

/* Odd, about half of the bits set: fractions of e and pi. */
#define K0 UINT64_C(0xB7E151628AED2A6B)
#define K1 UINT64_C(0xBF7158809CF4F3C7)
#define K2 UINT64_C(0x243F6A8885A308D3)
#define K3 UINT64_C(0x13198A2E03707345)

static uint64_t fold(uint64_t x, uint64_t y) {
    __extension__ typedef unsigned __int128 wide;
    const wide m = (wide)x * y;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* A factor that is 0 would forget the other; the sums bring the words back in. */
static inline void step(cd_hash *h, uint64_t x, uint64_t y) {
    h->a = fold(h->a ^ x ^ K0, y + K1) + y;
    h->b = fold(h->b ^ y ^ K2, x + K3) + x;
}

cd_hash cd_hash_start(void) { return (cd_hash){K1, K3}; }

void cd_hash_add(cd_hash *h, const void *p, size_t n) {
    const unsigned char *at = p;
    size_t left = n;
    uint64_t w[2];
    for (; left >= sizeof w; at += sizeof w, left -= sizeof w) {
        memcpy(w, at, sizeof w);
        step(h, w[0], w[1]);
    }
    w[0] = w[1] = 0;
    if (left) memcpy(w, at, left);
    step(h, w[0], w[1]);
    step(h, n, ~(uint64_t)n);
}
