/* The schedule database: entries sorted by key, found by bisection, and the file of records that it
 * is written to. */
#include "predictor/estimate/schedule_db.h"

#include <string.h>

#include "base/io/io.h"
#include "predictor/estimate/estimate_internal.h"

cdmpp_status cd_schedule_db_new(cd_schedule_db **out, cdmpp_err *err) {
    *out = cd_mem_zalloc(1, sizeof **out);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "schedule database");
}

static void free_texts(cd_schedule_db_slot *e) {
    cd_mem_free(e->key);
    cd_mem_free(e->line);
    cd_mem_free(e->origin);
}

void cd_schedule_db_free(cd_schedule_db *b) {
    if (!b) return;
    for (size_t i = 0; i < b->n; i++) {
        free_texts(b->entry[i]);
        cd_schedule_db_free_tried(b->entry[i]);
        cd_mem_free(b->entry[i]);
    }
    cd_mem_free(b->entry);
    cd_mem_free(b);
}

size_t cd_schedule_db_count(const cd_schedule_db *b) { return b->n; }
const cd_schedule_db_entry *cd_schedule_db_at(const cd_schedule_db *b, size_t i) {
    return &b->entry[i]->s;
}

const cd_schedule_db_entry *cd_schedule_db_find(const cd_schedule_db *b, const char *key) {
    bool there;
    const size_t at = cd_schedule_db_place(b, key, strlen(key), &there);
    return there ? &b->entry[at]->s : NULL;
}

/* Keys have no NUL, so a shorter one that agrees so far is smaller. */
static int compare(const char *key, const char *p, size_t n) {
    const int c = strncmp(key, p, n);
    return c ? c : key[n] != 0;
}

size_t cd_schedule_db_place(const cd_schedule_db *b, const char *key, size_t n, bool *there) {
    size_t lo = 0, hi = b->n;
    *there = false;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const int c = compare(b->entry[mid]->key, key, n);
        if (!c) *there = true;
        if (c < 0) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

/* ---- filling ---- */
static char *copied(cd_str s) {
    char *p = cd_mem_alloc(s.n + 1);
    if (!p) return NULL;
    if (s.n) memcpy(p, s.p, s.n);
    p[s.n] = 0;
    return p;
}

/* An empty entry at a place; NULL: no memory. */
static cd_schedule_db_slot *open_at(cd_schedule_db *b, size_t at) {
    cd_schedule_db_slot *e = CD_GROW(b->entry, b->n, b->cap) ? NULL : cd_mem_zalloc(1, sizeof *e);
    if (!e) return NULL;
    memmove(b->entry + at + 1, b->entry + at, (b->n - at) * sizeof(cd_schedule_db_slot *));
    b->entry[at] = e;
    b->n++;
    return e;
}

/* All copies are made before anything changes, so that out of memory leaves the entry as it was. */
cdmpp_status cd_schedule_db_put(cd_schedule_db *b, cd_str key, cd_str line, cd_str origin,
                                bool says, double measured_s, uint32_t reading, cdmpp_err *err) {
    bool there;
    const size_t at = cd_schedule_db_place(b, key.p, key.n, &there);
    cd_schedule_db_slot x = {.key = copied(key),
                             .line = copied(line),
                             .origin = copied(origin),
                             .reading = reading,
                             .says = says};
    cd_schedule_db_slot *e = !x.key || !x.line || !x.origin ? NULL
                             : there                        ? b->entry[at]
                                                            : open_at(b, at);
    if (!e) {
        free_texts(&x);
        return CD_FAIL(err, ENOMEM, "schedule of %zu bytes", line.n);
    }
    free_texts(e);
    if (e->reading != reading) cd_schedule_db_free_tried(e);
    x.tried = e->tried, x.n_tried = e->n_tried, x.of_tried = e->of_tried, x.slower = e->slower;
    x.s = (cd_schedule_db_entry){
        .key = x.key, .line = x.line, .len = line.n, .origin = x.origin, .measured_s = measured_s};
    *e = x;
    return CDMPP_OK;
}

cdmpp_status cd_schedule_db_add(cd_schedule_db *b, const cd_record *r, const char *origin,
                                double measured_s, cdmpp_err *err) {
    cd_buf line = {0};
    cd_record with = *r;
    with.origin = (cd_str){origin, strlen(origin)};
    cdmpp_status st = cd_record_write(&line, &with, err);
    if (!st)
        st = cd_schedule_db_put(b, r->workload_key, (cd_str){line.p, line.n - 1}, with.origin,
                                with.origin.n > 0, measured_s, 0, err);
    cd_buf_free(&line);
    return st;
}

/* ---- the file ---- */
/* A log's line as it is, with its origin put behind its last member. */
static void put_line(cd_buf *out, const cd_schedule_db_slot *e) {
    size_t n = e->s.len;
    if (e->says) {
        cd_buf_put(out, e->line, n);
        cd_buf_puts(out, "\n");
        return;
    }
    while (n && e->line[n - 1] != '}') n--;
    cd_buf_put(out, e->line, n ? n - 1 : 0);
    cd_buf_puts(out, ", \"origin\": ");
    cd_buf_put_json_str(out, e->origin, strlen(e->origin));
    cd_buf_puts(out, "}\n");
}

cdmpp_status cd_schedule_db_write(const cd_schedule_db *b, const char *path, cdmpp_err *err) {
    cd_buf out = {0};
    for (size_t i = 0; i < b->n; i++) put_line(&out, b->entry[i]);
    cdmpp_status st = CDMPP_OK;
    if (out.oom) st = CD_FAIL(err, ENOMEM, "schedule database of %zu tasks", b->n);
    else st = cd_file_write(path, out.n ? out.p : "", out.n, err);
    cd_buf_free(&out);
    return st;
}
