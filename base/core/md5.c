/* MD5 of RFC 1321, written out: the hash of TVM's workload keys. It is called once a task, so it is short and not
 * fast. */
#include <stdint.h>
#include <string.h>

#include "base/core/md5.h"

/* K[i] = floor(2^32 * |sin(i + 1)|), RFC 1321 3.4. */
static const uint32_t K[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};
static const unsigned char TURN[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

static uint32_t mix(unsigned round, uint32_t b, uint32_t c, uint32_t d) {
    switch (round) {
    case 0: return (b & c) | (~b & d);
    case 1: return (d & b) | (~d & c);
    case 2: return b ^ c ^ d;
    default: return c ^ (b | ~d);
    }
}

static uint32_t word(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The four rounds as one loop: round r takes word (first[r] + step[r] * i) mod 16 and turns by TURN[r]. */
static void block(uint32_t h[4], const unsigned char *p) {
    static const unsigned char step[4] = {1, 5, 3, 7}, first[4] = {0, 1, 5, 0};
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3];
    for (unsigned i = 0; i < 64; i++) {
        const unsigned round = i / 16, at = (first[round] + step[round] * i) % 16, turn = TURN[round][i % 4];
        const uint32_t f = a + mix(round, b, c, d) + K[i] + word(p + (size_t)4 * at);
        a = d;
        d = c;
        c = b;
        b += f << turn | f >> (32 - turn);
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
}

/* Full blocks in place; the rest, the bit 1 and the length in bits go into one or two blocks of our own. */
void cd_md5_hex(const void *p, size_t n, char out[33]) {
    const unsigned char *at = p;
    unsigned char end[128] = {0};
    uint32_t h[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    const size_t rest = n % 64, tail = rest < 56 ? 64 : 128;
    const uint64_t bits = (uint64_t)n * 8;
    for (size_t i = 0; i + 64 <= n; i += 64) block(h, at + i);
    if (rest) memcpy(end, at + (n - rest), rest);
    end[rest] = 0x80;
    for (unsigned i = 0; i < 8; i++) end[tail - 8 + i] = (unsigned char)(bits >> (8 * i));
    for (size_t i = 0; i < tail; i += 64) block(h, end + i);
    for (unsigned i = 0; i < 16; i++) {
        const unsigned v = h[i / 4] >> (8 * (i % 4)) & 255U;
        out[2 * i] = "0123456789abcdef"[v >> 4];
        out[2 * i + 1] = "0123456789abcdef"[v & 15U];
    }
    out[32] = '\0';
}
