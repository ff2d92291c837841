/* 128 bits of any bytes, for tables that trust the hash alone.
 *
 *   start -> add, add, ... -> the state is the hash
 *
 * Each step multiplies 64 x 64 bits to 128 and folds, twice with different constants; each add
 * ends with its length, so ("ab","c") and ("a","bc") differ. Not cryptographic: two of 2^32
 * candidates fall together with a chance of about 2^-65 unless somebody constructs them.
 * The same on every machine of one byte order; nothing that is stored depends on it. No state, any thread. */
#ifndef CD_HASH_H
#define CD_HASH_H
#include <stddef.h>
#include <stdint.h>

typedef struct cd_hash {
    uint64_t a, b;
} cd_hash;

/* The state before any bytes. */
cd_hash cd_hash_start(void);
/* Adds n bytes; p may be NULL when n is 0. */
void cd_hash_add(cd_hash *h, const void *p, size_t n);
#endif
