/* SHA-256 by the SHA instructions of x86. The functions are compiled for these instructions by an attribute, not by a
 * compiler flag, so the library still runs on processors without them. */
#include "base/core/sha256_x86.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>

bool cd_sha256_x86_has(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_1) || !(c & bit_SSSE3)) return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 29 & 1; /* leaf 7, EBX bit 29: SHA */
}

#define SHA __attribute__((target("sha,sse4.1,ssse3")))

static inline SHA __m128i load(const void *p) { return _mm_loadu_si128(p); }

/* Rounds 4i .. 4i+3; words 16 + 4i .. are made on the way. */
static inline SHA void four(int i, const uint32_t k[64], __m128i m[4], __m128i *abef, __m128i *cdgh) {
    const __m128i wk = _mm_add_epi32(m[i % 4], load(k + 4 * i));
    *cdgh = _mm_sha256rnds2_epu32(*cdgh, *abef, wk);
    *abef = _mm_sha256rnds2_epu32(*abef, *cdgh, _mm_shuffle_epi32(wk, 0x0E));
    if (i >= 12) return;
    const __m128i last = m[(i + 3) % 4], seventh = _mm_alignr_epi8(last, m[(i + 2) % 4], 4);
    const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(m[i % 4], m[(i + 1) % 4]), seventh);
    m[i % 4] = _mm_sha256msg2_epu32(sum, last);
}

/* The instructions want the state as two vectors, ABEF and CDGH; it is converted before the first and after the last
 * block. */
SHA void cd_sha256_x86_blocks(uint32_t h[8], const uint8_t *p, size_t n, const uint32_t k[64]) {
    const __m128i big_endian = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    const __m128i badc = _mm_shuffle_epi32(load(h), 0xB1), hgfe = _mm_shuffle_epi32(load(h + 4), 0x1B);
    __m128i abef = _mm_alignr_epi8(badc, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, badc, 0xF0);
    for (; n; n--, p += 64) {
        const __m128i a = abef, c = cdgh;
        __m128i m[4];
        for (int i = 0; i < 4; i++) m[i] = _mm_shuffle_epi8(load(p + 16 * i), big_endian);
        for (int i = 0; i < 16; i++) four(i, k, m, &abef, &cdgh);
        abef = _mm_add_epi32(abef, a);
        cdgh = _mm_add_epi32(cdgh, c);
    }
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
    _mm_storeu_si128((void *)h, _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128((void *)(h + 4), _mm_alignr_epi8(dchg, feba, 8));
}
#else
bool cd_sha256_x86_has(void) { return false; }
void cd_sha256_x86_blocks(uint32_t h[8], const uint8_t *p, size_t n, const uint32_t k[64]) { (void)h, (void)p, (void)n, (void)k; }
#endif
