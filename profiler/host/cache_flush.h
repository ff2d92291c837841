/* cache_flush -- replaces what a processor's caches hold.
 *
 *   CD_WIPE_CORE   of the caches that a core has alone: data stay in the shared one, as those of an operator that
 *                  ran a while ago do in a network
 *   CD_WIPE_ALL    of the last one too, as far as its size is known
 *
 * A zeroed cd_cache_flush is ready. One thread at a time; it flushes the caches of the core that it runs on. */
#ifndef CD_CACHE_FLUSH_H
#define CD_CACHE_FLUSH_H

#include "base/core/core.h"

typedef enum cd_cache_flush_what { CD_WIPE_CORE, CD_WIPE_ALL } cd_cache_flush_what;
typedef struct cd_cache_flush {
    unsigned char *p;           /* (n) NULL: not used yet */
    size_t n;
    unsigned sum;               /* keeps what is read */
} cd_cache_flush;

/* Flush them. The first call allocates. Errors: ENOMEM. */
cdmpp_status cd_cache_flush_caches(cd_cache_flush *w, cd_cache_flush_what what, cdmpp_err *err);
void cd_cache_flush_free(cd_cache_flush *w); /* zeroed is fine */
#endif
