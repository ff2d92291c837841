/* One rank of a machine reads the data set; where it keeps it is told to the others by sums with
 * zeros, which are exact. */
#include "learner/distributed/distributed.h"

/* Process and file of each rank: both are below 2^24. Waiting is for agree(), which sleeps; the
 * sums are of what is there. */
static cdmpp_status meet(void *ctx, cdmpp_status st, cd_spool_place *place, cdmpp_err *err) {
    const cd_process_group *g = ctx;
    CD_TRY(g->agree(g->ctx, st, err));
    float *v = cd_mem_zalloc(2 * g->n_rank, sizeof *v);
    st = v ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu ranks", g->n_rank);
    if (v) v[2 * g->rank] = (float)place->process, v[2 * g->rank + 1] = (float)place->file;
    if (v) st = g->allreduce(g->ctx, v, 1, 2 * g->n_rank, err);
    if (!st) *place = (cd_spool_place){(int)v[2 * g->first], (int)v[2 * g->first + 1]};
    cd_mem_free(v);
    return st;
}

cd_dataset_share cd_distributed_data_share(const cd_process_group *ranks) {
    return (cd_dataset_share){ranks->rank == ranks->first, meet, (void *)(uintptr_t)ranks};
}
