/* A store's best records as schedules. */
#include "predictor/estimate/estimate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/store/store.h"

enum { PATH = 1024 };

typedef struct {
    cd_schedule_db *to;
    const char *path;
    const char *const *key; /* (n) sorted */
    size_t n;
    cd_arena arena;
} from_store;

static bool wanted(const from_store *f, const char *key) {
    return bsearch(&key, f->key, f->n, sizeof key, cd_sort_by_text) != NULL;
}

static cdmpp_status on_hit(void *ctx, const cd_store_hit *hit, cdmpp_err *err) {
    from_store *s = ctx;
    cd_buf b = {0};
    cd_record r;
    char origin[PATH];
    cd_arena_reset(&s->arena);
    if (!hit->row.has_steps) return CDMPP_OK;
    cdmpp_status st = cd_store_put_record(&b, &s->arena, hit, err);
    if (!st) {
        st = cd_record_read(&s->arena, b.p, strcspn(b.p, "\n"), &r, err);
        char *key = st ? NULL : cd_str_dup(&s->arena, r.workload_key);
        if (key && wanted(s, key) && !cd_schedule_db_find(s->to, key)) { /* they come best first */
            snprintf(origin, sizeof origin, "%s#%lld", s->path, (long long)hit->id);
            st = cd_schedule_db_add(s->to, &r, origin, hit->row.latency.median_s, err);
        }
    }
    cd_buf_free(&b);
    return st;
}

cdmpp_status cd_schedule_db_store_read(cd_schedule_db *to, const char *path, const char *device,
                                       const char *const *key, size_t n, cdmpp_err *err) {
    cd_store *s = NULL;
    from_store f = {.to = to, .path = path, .key = key, .n = n};
    const cd_store_filter only = {.device = device, .best_first = true};
    cdmpp_status st = cd_store_open(path, false, &s, err);
    if (!st) st = cd_store_query(s, &only, on_hit, &f, err);
    cd_store_close(s);
    cd_arena_free(&f.arena);
    return cd_err_at(err, st, path, 0);
}
