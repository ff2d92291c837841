/* SHA-256 of FIPS 180-4. Long inputs (data sets, models) go through the processor's SHA instructions where it has
 * them; asking the processor costs a microsecond on a virtual machine, so short inputs do not ask. */
#include "base/core/sha256.h"

#include <string.h>

#include "base/core/sha256_x86.h"

enum { WORTH_ASKING = 4096 }; /* bytes from which the processor is asked what it can do */

static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotr(uint32_t x, int r) { return x >> r | x << (32 - r); }

static void expand(uint32_t w[64], const uint8_t *p) {
    for (int i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int i = 16; i < 64; i++) {
        const uint32_t a = w[i - 15], b = w[i - 2];
        const uint32_t s0 = rotr(a, 7) ^ rotr(a, 18) ^ a >> 3, s1 = rotr(b, 17) ^ rotr(b, 19) ^ b >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
}

/* 64 rounds on v = a, b, c, d, e, f, g, h, which move one place each round. */
static void block(uint32_t h[8], const uint8_t *p) {
    uint32_t w[64], v[8];
    expand(w, p);
    memcpy(v, h, sizeof v);
    for (int i = 0; i < 64; i++) {
        const uint32_t s1 = rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25);
        const uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
        const uint32_t s0 = rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22);
        const uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++) h[i] += v[i];
}

void cd_sha256_init(cd_sha256 *s) {
    static const uint32_t h0[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memset(s, 0, sizeof *s);
    memcpy(s->h, h0, sizeof h0);
}

/* First completes the block that an earlier call left unfinished, then takes whole blocks from the caller's
 * memory. */
void cd_sha256_add(cd_sha256 *s, const void *data, size_t n) {
    const uint8_t *p = data;
    size_t have = s->n % 64;
    if (n == 0) return;
    s->n += n;
    if (have) {
        const size_t m = n < 64 - have ? n : 64 - have;
        memcpy(s->buf + have, p, m);
        p += m, n -= m, have += m;
        if (have < 64) return;
        block(s->h, s->buf);
    }
    if (n >= WORTH_ASKING && cd_sha256_x86_has()) {
        cd_sha256_x86_blocks(s->h, p, n / 64, k);
        p += n / 64 * 64, n %= 64;
    }
    for (; n >= 64; p += 64, n -= 64) block(s->h, p);
    memcpy(s->buf, p, n);
}

void cd_sha256_hex(const cd_sha256 *s, char out[65]) {
    static const char digit[] = "0123456789abcdef";
    uint8_t pad[72] = {0x80}, len[8];
    cd_sha256 t = *s;
    for (int i = 0; i < 8; i++) len[i] = (uint8_t)(s->n * 8 >> (56 - 8 * i));
    cd_sha256_add(&t, pad, 1 + (119 - s->n % 64) % 64);
    cd_sha256_add(&t, len, 8);
    for (int i = 0; i < 64; i++) out[i] = digit[t.h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    out[64] = 0;
}
