/* MD5 (RFC 1321) in one go: the hash that workload keys of TVM's tuners carry.
 *
 * For names only; nothing here is kept safe by it. */
#ifndef CD_MD5_H
#define CD_MD5_H
#include <stddef.h>

/* 32 lower-case hex digits + NUL. */
void cd_md5_hex(const void *p, size_t n, char out[33]);
#endif
