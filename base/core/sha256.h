/* FIPS 180-4 SHA-256: names data, column tables and model files.
 *
 * The state is plain data: it may be copied, saved and continued. */
#ifndef CD_SHA256_H
#define CD_SHA256_H
#include <stddef.h>
#include <stdint.h>

typedef struct cd_sha256 {
    uint32_t h[8];
    uint64_t n;      /* bytes so far                     */
    uint8_t buf[64]; /* the last n % 64 of them          */
} cd_sha256;

/* Start an empty sum; add n bytes (p may be NULL when n is 0). */
void cd_sha256_init(cd_sha256 *s);
void cd_sha256_add(cd_sha256 *s, const void *p, size_t n);
/* 64 lower-case hex digits + NUL. `s` itself stays open for more. */
void cd_sha256_hex(const cd_sha256 *s, char out[65]);
#endif
