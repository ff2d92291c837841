/* Texts of a row become ids of their tables. Ids are remembered by a hash of the text: a log
 * repeats the same few thousand workloads. */
#include <string.h>

#include "profiler/store/store_internal.h"

enum { FIRST_SLOTS = 1024 };

void cd_store_forget(cd_store *s) {
    if (s->known) memset(s->known, 0, s->n_slot * sizeof *s->known);
    s->n_known = 0;
}

static cd_store_known *slot_of(cd_store_known *table, size_t n, const cd_store_digest *d) {
    size_t i = (size_t)d->h[0] & (n - 1);
    while (table[i].id && memcmp(&table[i].of, d, sizeof *d) != 0) i = (i + 1) & (n - 1);
    return &table[i];
}

/* Out of memory is no error here: the id is looked up again next time. */
static void remember(cd_store *s, const cd_store_digest *d, int64_t id) {
    if (2 * (s->n_known + 1) > s->n_slot) {
        const size_t n = s->n_slot ? 2 * s->n_slot : FIRST_SLOTS;
        cd_store_known *grown = cd_mem_zalloc(n, sizeof *grown);
        if (!grown) return;
        for (size_t i = 0; i < s->n_slot; i++)
            if (s->known[i].id) *slot_of(grown, n, &s->known[i].of) = s->known[i];
        cd_mem_free(s->known);
        s->known = grown;
        s->n_slot = n;
    }
    *slot_of(s->known, s->n_slot, d) = (cd_store_known){*d, id};
    s->n_known++;
}

static int64_t recall(const cd_store *s, const cd_store_digest *d) {
    return s->n_slot ? slot_of(s->known, s->n_slot, d)->id : 0;
}

/* The id that statement `get`, bound, gives. */
static cdmpp_status fetch(cd_store *s, sqlite3_stmt *get, int64_t *id, cdmpp_err *err) {
    const int rc = sqlite3_step(get);
    if (rc == SQLITE_ROW) *id = sqlite3_column_int64(get, 0);
    const cdmpp_status st = rc == SQLITE_ROW ? CDMPP_OK : cd_store_fail(s, "look up", err);
    sqlite3_reset(get);
    return st;
}

/* Insert by `add`, with texts bound, and ask for the id by `get`, where (n_key) of them are the
 * key. */
static cdmpp_status put(cd_store *s, cd_store_sql add, const cd_str *text, int n_text, int n_key,
                        int64_t *id, cdmpp_err *err) {
    sqlite3_stmt *q, *get;
    CD_TRY(cd_store_stmt(s, add, &q, err));
    /* the map has _ADD and its _ID side by side */
    CD_TRY(cd_store_stmt(s, (cd_store_sql)(add + 1), &get, err));
    for (int i = 0; i < n_text; i++) cd_store_bind(q, i + 1, text[i]);
    CD_TRY(cd_store_done(s, q, err));
    for (int i = 0; i < n_key; i++) cd_store_bind(get, i + 1, text[i]);
    return fetch(s, get, id, err);
}

static void key_of(cd_store_digest *d, cd_store_sql add, const cd_str *text, int n) {
    cd_store_digest_init(d);
    cd_store_digest_word(d, (uint64_t)add);
    for (int i = 0; i < n; i++) cd_store_digest_text(d, text[i]);
}

/* Its first n_key texts are what makes it one of its kind. */
static cdmpp_status id_of_texts(cd_store *s, cd_store_sql add, const cd_str *text, int n_text,
                                int n_key, int64_t *id, cdmpp_err *err) {
    cd_store_digest d;
    key_of(&d, add, text, n_key);
    if ((*id = recall(s, &d))) return CDMPP_OK;
    CD_TRY(put(s, add, text, n_text, n_key, id, err));
    remember(s, &d, *id);
    return CDMPP_OK;
}

cdmpp_status cd_store_id_text(cd_store *s, cd_store_sql add, cd_str text, int64_t *id,
                              cdmpp_err *err) {
    return id_of_texts(s, add, &text, 1, 1, id, err);
}

cdmpp_status cd_store_id_target(cd_store *s, cd_str text, cd_str tail, int64_t *id,
                                cdmpp_err *err) {
    size_t n = 0;
    while (n < text.n && text.p[n] != ' ') n++;
    const cd_str all[] = {text, tail, {text.p, n}};
    return id_of_texts(s, CD_SQL_TARGET_ADD, all, 3, 2, id, err);
}

static void workload_key(cd_store_digest *d, cd_str key, bool known) {
    key_of(d, CD_SQL_WORKLOAD_ADD, &key, 1);
    cd_store_digest_word(d, known);
}

bool cd_store_has_workload(const cd_store *s, cd_str key, bool known) {
    cd_store_digest d;
    workload_key(&d, key, known);
    return recall(s, &d) != 0;
}

/* The memory's key holds whether the task is known, so that a workload first seen without its task
 * is updated later. */
cdmpp_status cd_store_id_workload(cd_store *s, const cd_store_row *r, int64_t *id, cdmpp_err *err) {
    sqlite3_stmt *q, *get;
    cd_store_digest d;
    int64_t op;
    workload_key(&d, r->workload_key, r->known);
    if ((*id = recall(s, &d))) return CDMPP_OK;
    CD_TRY(cd_store_id_text(s, CD_SQL_OPERATOR_ADD, r->operator_name, &op, err));
    CD_TRY(cd_store_stmt(s, CD_SQL_WORKLOAD_ADD, &q, err));
    CD_TRY(cd_store_stmt(s, CD_SQL_WORKLOAD_ID, &get, err));
    cd_store_bind(q, 1, r->workload_key);
    sqlite3_bind_int64(q, 2, op);
    cd_store_bind(q, 3, r->shape);
    cd_store_bind(q, 4, r->dtype);
    cd_store_bind(q, 5, r->layout);
    if (r->flop >= 0) sqlite3_bind_double(q, 6, r->flop);
    else sqlite3_bind_null(q, 6);
    sqlite3_bind_int(q, 7, r->known);
    CD_TRY(cd_store_done(s, q, err));
    cd_store_bind(get, 1, r->workload_key);
    CD_TRY(fetch(s, get, id, err));
    remember(s, &d, *id);
    return CDMPP_OK;
}

cdmpp_status cd_store_id_schedule(cd_store *s, cd_str steps, const cd_store_digest *d, int64_t *id,
                                  cdmpp_err *err) {
    sqlite3_stmt *q, *get;
    CD_TRY(cd_store_stmt(s, CD_SQL_SCHEDULE_ADD, &q, err));
    sqlite3_bind_blob(q, 1, d->h, sizeof d->h, SQLITE_STATIC);
    cd_store_bind(q, 2, steps);
    CD_TRY(cd_store_done(s, q, err));
    if (sqlite3_changes(s->db)) {
        *id = sqlite3_last_insert_rowid(s->db);
        return CDMPP_OK;
    }
    CD_TRY(cd_store_stmt(s, CD_SQL_SCHEDULE_ID, &get, err));
    sqlite3_bind_blob(get, 1, d->h, sizeof d->h, SQLITE_STATIC);
    return fetch(s, get, id, err);
}

cdmpp_status cd_store_id_env(cd_store *s, const cd_store_env *e, const cd_store_digest *d,
                             int64_t *id, cdmpp_err *err) {
    const cd_str text[] = {e->host, e->cpu, e->os, e->compiler, e->governor, e->tool, e->extra};
    sqlite3_stmt *q, *get;
    if ((*id = recall(s, d))) return CDMPP_OK;
    CD_TRY(cd_store_stmt(s, CD_SQL_ENV_ADD, &q, err));
    CD_TRY(cd_store_stmt(s, CD_SQL_ENV_ID, &get, err));
    sqlite3_bind_blob(q, 1, d->h, sizeof d->h, SQLITE_STATIC);
    for (int i = 0; i < 7; i++) cd_store_bind(q, i + 2, text[i]);
    CD_TRY(cd_store_done(s, q, err));
    sqlite3_bind_blob(get, 1, d->h, sizeof d->h, SQLITE_STATIC);
    CD_TRY(fetch(s, get, id, err));
    remember(s, d, *id);
    return CDMPP_OK;
}
