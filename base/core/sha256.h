/* SHA-256 (FIPS 180-4): names data, column tables and model files.
 *
 * The state is plain data: it may be copied, saved and continued. */
#ifndef CD_SHA256_H
#define CD_SHA256_H
#include <openssl/sha.h>
#include <stddef.h>

typedef SHA256_CTX cd_sha256;

/* Start an empty sum; add n bytes (p may be NULL when n is 0). */
void cd_sha256_init(cd_sha256 *s);
void cd_sha256_add(cd_sha256 *s, const void *p, size_t n);
/* 64 lower-case hex digits + NUL. `s` itself stays open for more. */
void cd_sha256_hex(const cd_sha256 *s, char out[65]);
#endif
