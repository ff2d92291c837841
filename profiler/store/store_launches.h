/* store_launches -- launches of a trace, gathered by what was launched.
 *
 *   (device, operator, shape, dtype, flags) -> times, line of the first
 *
 *   (1) groups come out in the order of their first launch. One thread. */
#ifndef CD_STORE_LAUNCHES_H
#define CD_STORE_LAUNCHES_H
#include "profiler/store/store_internal.h"

typedef struct cd_store_launch_group {
    cd_str device, target, operator_name, shape, dtype;
    uint32_t flags;
    long line;
    int64_t timestamp;
    cd_store_digest of;
    double *time_s;             /* (n) */
    size_t n, cap;
} cd_store_launch_group;

typedef struct cd_store_launches {
    cd_arena arena;             /* texts */
    cd_store_launch_group *group;            /* (n) */
    size_t n, cap, n_slot;
    uint32_t *slot;             /* (n_slot) index + 1, open addressing; 0: free */
} cd_store_launches;

/* Add one launch; texts of `like` are copied when it is the first. Errors: ENOMEM. */
cdmpp_status cd_store_launches_add(cd_store_launches *g, const cd_store_launch_group *like, double time_s, cdmpp_err *err);
/* Every group as a row of the store. */
cdmpp_status cd_store_launches_save(cd_store_launches *g, cd_store_reading *r, cdmpp_err *err);
/* Zeroed is fine. */
void cd_store_launches_free(cd_store_launches *g);
#endif
