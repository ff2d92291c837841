/* store_query -- measurements and workloads that fit a filter. */
#include <math.h>

#include "profiler/store/store_internal.h"

static void read_latency(sqlite3_stmt *q, cd_store_hit *h) {
    cd_store_latency *l = &h->row.latency;
    l->min_s = sqlite3_column_double(q, 13);
    l->median_s = sqlite3_column_double(q, 14);
    l->mean_s = sqlite3_column_double(q, 15);
    l->std_s = sqlite3_column_double(q, 16);
    l->cv = sqlite3_column_double(q, 17);
    l->n = (uint32_t)sqlite3_column_int64(q, 18);
    l->flags = (uint32_t)sqlite3_column_int64(q, 19);
    h->costs = sqlite3_column_blob(q, 20);
    h->n_cost = (uint32_t)((size_t)sqlite3_column_bytes(q, 20) / sizeof(double));
}

/* Columns in the order of CD_STORE_HIT_COLUMNS. */
void cd_store_hit_read(sqlite3_stmt *q, cd_store_hit *h) {
    cd_store_row *r = &h->row;
    *h = (cd_store_hit){.id = sqlite3_column_int64(q, 0)};
    cd_str *const text[] = {&r->device,        &r->target, &r->target_tail, &r->workload_key,
                            &r->operator_name, &r->shape,  &r->dtype,       &r->layout};
    for (int i = 0; i < 8; i++) *text[i] = cd_store_text(q, 1 + i);
    r->flop = sqlite3_column_type(q, 9) == SQLITE_NULL ? -1 : sqlite3_column_double(q, 9);
    r->known = sqlite3_column_int(q, 10) != 0;
    r->has_steps = sqlite3_column_type(q, 11) != SQLITE_NULL;
    r->steps = cd_store_text(q, 11);
    r->error_no = sqlite3_column_int64(q, 12);
    read_latency(q, h);
    r->total_s = sqlite3_column_double(q, 21);
    r->timestamp = sqlite3_column_int64(q, 22);
    r->version = cd_store_text(q, 23);
    cd_str *const env[] = {&h->env.host,     &h->env.cpu,  &h->env.os,   &h->env.compiler,
                           &h->env.governor, &h->env.tool, &h->env.extra};
    for (int i = 0; i < 7; i++) *env[i] = cd_store_text(q, 24 + i);
    if (sqlite3_column_type(q, 24) != SQLITE_NULL) r->env = &h->env;
    h->source = cd_store_text(q, 31);
    r->line = (long)sqlite3_column_int64(q, 32);
}

/* " AND column=?k" for what the filter asks, ?1 .. ?6. */
static void put_where(cd_buf *b, const cd_store_filter *f) {
    const char *const asked[] = {f->device,   f->target, f->operator_name,
                                 f->workload, f->dtype,  f->layout};
    static const char *const test[] = {"d.name=?1",  "(t.text=?2 OR t.kind=?2)",
                                       "o.name=?3",  "w.key=?4",
                                       "w.dtype=?5", "w.layout=?6"};
    cd_buf_puts(b, " WHERE 1");
    for (int i = 0; i < 6; i++)
        if (asked[i]) cd_buf_putf(b, " AND %s", test[i]);
}

static void bind_filter(sqlite3_stmt *q, const cd_store_filter *f) {
    const char *const asked[] = {f->device,   f->target, f->operator_name,
                                 f->workload, f->dtype,  f->layout};
    for (int i = 0; i < 6; i++)
        if (asked[i]) sqlite3_bind_text(q, i + 1, asked[i], -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 7, f->limit ? (int64_t)f->limit : -1);
}

static cdmpp_status prepare(cd_store *s, cd_buf *sql, const cd_store_filter *f, sqlite3_stmt **q,
                            cdmpp_err *err) {
    cdmpp_status st = CDMPP_OK;
    if (sql->oom) st = CD_FAIL(err, ENOMEM, "query");
    else if (sqlite3_prepare_v2(s->db, sql->p, (int)sql->n, q, NULL) != SQLITE_OK)
        st = cd_store_fail(s, "query", err);
    cd_buf_free(sql);
    if (!st) bind_filter(*q, f);
    return st;
}

/* What is open is committed first, so that a query sees the rows just added. */
cdmpp_status cd_store_query(cd_store *s, const cd_store_filter *f, cd_store_visit *visit, void *ctx,
                            cdmpp_err *err) {
    sqlite3_stmt *q = NULL;
    cd_buf sql = {0};
    int rc = SQLITE_ROW;
    CD_TRY(cd_store_commit(s, err));
    cd_buf_puts(&sql, "SELECT " CD_STORE_HIT_COLUMNS CD_STORE_HIT_FROM);
    put_where(&sql, f);
    if (!f->errors) cd_buf_puts(&sql, " AND m.error_no=0");
    cd_buf_puts(&sql, f->best_first ? " ORDER BY m.error_no<>0, m.median_s, m.id LIMIT ?7"
                                    : " ORDER BY m.id LIMIT ?7");
    cdmpp_status st = prepare(s, &sql, f, &q, err);
    while (!st && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        cd_store_hit h;
        cd_store_hit_read(q, &h);
        st = visit(ctx, &h, err);
    }
    if (!st && rc != SQLITE_DONE) st = cd_store_fail(s, "query", err);
    sqlite3_finalize(q);
    return st;
}

static const char work_sql[] =
    "SELECT w.key, o.name, w.shape, w.dtype, w.layout, w.flop, count(*), sum(m.error_no<>0), "
    "count(DISTINCT m.device), min(m.median_s)"
    " FROM measurement m JOIN workload w ON w.id=m.workload JOIN operator o ON o.id=w.operator"
    " JOIN device d ON d.id=m.device JOIN target t ON t.id=m.target";

static void read_work(sqlite3_stmt *q, cd_store_work *w) {
    cd_str *const text[] = {&w->key, &w->operator_name, &w->shape, &w->dtype, &w->layout};
    for (int i = 0; i < 5; i++) *text[i] = cd_store_text(q, i);
    w->flop = sqlite3_column_type(q, 5) == SQLITE_NULL ? -1 : sqlite3_column_double(q, 5);
    w->n = (uint64_t)sqlite3_column_int64(q, 6);
    w->n_error = (uint64_t)sqlite3_column_int64(q, 7);
    w->n_device = (uint64_t)sqlite3_column_int64(q, 8);
    w->best_s =
        sqlite3_column_type(q, 9) == SQLITE_NULL ? (double)NAN : sqlite3_column_double(q, 9);
}

/* Only workloads with at least one measurement that fits: the join leaves others out. */
cdmpp_status cd_store_workloads(cd_store *s, const cd_store_filter *f, cd_store_work_visit *visit,
                                void *ctx, cdmpp_err *err) {
    sqlite3_stmt *q = NULL;
    cd_buf sql = {0};
    int rc = SQLITE_ROW;
    CD_TRY(cd_store_commit(s, err));
    cd_buf_puts(&sql, work_sql);
    put_where(&sql, f);
    cd_buf_puts(&sql, " GROUP BY w.id ORDER BY w.id LIMIT ?7");
    cdmpp_status st = prepare(s, &sql, f, &q, err);
    while (!st && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        cd_store_work w;
        read_work(q, &w);
        st = visit(ctx, &w, err);
    }
    if (!st && rc != SQLITE_DONE) st = cd_store_fail(s, "query", err);
    sqlite3_finalize(q);
    return st;
}
