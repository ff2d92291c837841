/* slab -- one aligned block that is planned first and then carved up.
 *
 *   plan:   take, take, take ... with no memory; `used` is what it needs
 *   use:    the same calls in the same order give the same places
 *
 * (1) every piece starts at a multiple of 64 bytes; (2) nothing is given back but
 * the whole; (3) pieces are not zeroed by take, the block is zeroed once.
 * One slab, one thread at a time. */
#ifndef CD_SLAB_H
#define CD_SLAB_H
#include "base/core/core.h"

typedef struct cd_slab {
    void *raw;  /* what the heap gave */
    char *base; /* NULL while planning */
    size_t used, cap;
} cd_slab;

/* n items of `size` bytes; NULL while planning, never NULL afterwards. */
CD_KEEP void *cd_slab_take(cd_slab *s, size_t n, size_t size);
CD_KEEP static inline float *cd_slab_floats(cd_slab *s, size_t n) { return cd_slab_take(s, n, sizeof(float)); }
/* Memory for what was planned; starts over at the first piece. Errors: ENOMEM. */
cdmpp_status cd_slab_alloc(cd_slab *s, cdmpp_err *err);
void cd_slab_free(cd_slab *s);
#endif
