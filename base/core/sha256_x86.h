/* Blocks of SHA-256 by the processor's own instructions, where it has them. Private to sha256.c.
 *
 *   state   ABEF | CDGH      words   m[0] m[1] m[2] m[3]: the last 16 of the schedule, four in each
 *
 * No state, any thread. */
#ifndef CD_SHA256_X86_H
#define CD_SHA256_X86_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Asks the processor: takes a microsecond on a virtual machine. */
bool cd_sha256_x86_has(void);
/* n blocks of 64 bytes; k: the 64 constants. Only where the processor has it. */
void cd_sha256_x86_blocks(uint32_t h[8], const uint8_t *p, size_t n, const uint32_t k[64]);
#endif
