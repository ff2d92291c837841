/* store_merge -- all measurements of another store. */
#include <string.h>
#include <sys/stat.h>

#include "profiler/store/store_internal.h"

static cdmpp_status one(void *ctx, const cd_store_hit *h, cdmpp_err *err) {
    cd_store_reading *r = ctx;
    cd_store_row row = h->row;
    double *cost = cd_arena_alloc(&r->arena, h->n_cost, sizeof *cost);
    if (!cost) return CD_FAIL(err, ENOMEM, "costs");
    if (h->n_cost) memcpy(cost, h->costs, h->n_cost * sizeof *cost);
    /* one cost is kept as the mean: as a cost it is part of the digest of a record */
    if (!h->n_cost && row.has_steps) cost = &row.latency.mean_s;
    const double failed = 1e10;
    row.n_cost = h->n_cost ? h->n_cost : row.has_steps;
    row.cost_s = row.error_no && !h->n_cost ? &failed : cost;
    row.line = (long)h->id;
    r->tally->lines++;
    const cdmpp_status st = cd_store_take(r, &row, err);
    cd_arena_reset(&r->arena);
    if (st) return st;
    return cd_store_mark(r, r->tally->lines, false, err);
}

cdmpp_status cd_store_read_store(cd_store_reading *r, cdmpp_err *err) {
    struct stat a, b;
    cd_store *from = NULL;
    const cd_store_filter all = {.errors = true};
    if (!stat(r->path, &a) && !stat(r->store->path, &b) && a.st_dev == b.st_dev &&
        a.st_ino == b.st_ino)
        return cd_err_at(err, CD_FAIL(err, EUSAGE, "a store is not imported into itself"), r->path,
                         0);
    r->size = r->mtime_ns = -1; /* what is in its log file does not show in these */
    CD_TRY(cd_store_open(r->path, false, &from, err));
    cdmpp_status st = cd_store_query(from, &all, one, r, err);
    if (!st) st = cd_store_mark(r, r->tally->lines, true, err);
    cd_store_close(from);
    return st;
}
