/* tune_key_set -- a set of programs, with a number for each.
 *
 *   key ──> slot, next slot, ...   {key, value}; open addressing, at most half full
 *
 * Keys are digests already, so their low bits say where to look. One thread. */
#ifndef CD_TUNE_KEY_SET_H
#define CD_TUNE_KEY_SET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/core.h"

typedef struct cd_tune_key_set {
    struct cd_tune_slot *slot;  /* (cap) */
    size_t n, cap;              /* cap: 0 or a power of two */
} cd_tune_key_set;                 /* zero: empty */

void cd_tune_key_set_free(cd_tune_key_set *k); /* zeroed is fine; it is empty then */
void cd_tune_key_set_clear(cd_tune_key_set *k); /* keeps the room */
/* *value of a key; false: it is not there. value may be NULL. */
bool cd_tune_key_set_find(const cd_tune_key_set *k, uint64_t key, double *value);
/* Enter, or change the value of, a key. Errors: ENOMEM; nothing has changed then. */
cdmpp_status cd_tune_key_set_put(cd_tune_key_set *k, uint64_t key, double value, cdmpp_err *err);
#endif
