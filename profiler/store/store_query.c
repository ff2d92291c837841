/* store_query -- measurements and workloads that fit a filter. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* The row that q is at; texts live until its next step.
 *
 * Columns in the order of CD_STORE_HIT_COLUMNS. */
static void store_hit_read(sqlite3_stmt *q, cd_store_hit *h) {
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
        store_hit_read(q, &h);
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

/* store_near -- workloads of the same operator with the nearest shapes.
 *
 *   shape [[1,64,56,56],[64,64,3,3]] -> form "[[,,,],[,,,]]", sizes 1 64 56 56 64 64 3 3
 *   distance = |log2 a - log2 b|, over shapes of equal form */

enum { MAX_SIZE = 256, DEFAULT_NEAR = 5 };

/* Sizes of a shape text into x and a hash of its form. */
static cdmpp_status sizes_of(cd_str shape, double x[MAX_SIZE], size_t *n, uint64_t *form,
                             cdmpp_err *err) {
    cd_store_digest d;
    cd_store_digest_init(&d);
    *n = 0;
    for (size_t i = 0; i < shape.n;) {
        const char c = shape.p[i];
        if ((c >= '0' && c <= '9') || c == '-') {
            double v = 0;
            for (i += c == '-'; i < shape.n && shape.p[i] >= '0' && shape.p[i] <= '9'; i++)
                v = 10 * v + (shape.p[i] - '0');
            if (*n == MAX_SIZE)
                return CD_FAIL(err, ESCHEMA, "a shape of more than %d sizes", MAX_SIZE);
            x[(*n)++] = log2(v < 1 || c == '-' ? 1 : v);
            cd_store_digest_word(&d, '0');
        } else {
            if (c != ' ') cd_store_digest_word(&d, (unsigned char)c);
            i++;
        }
    }
    *form = d.h[0] ^ d.h[1];
    return CDMPP_OK;
}

typedef struct candidate {
    double distance;
    int64_t workload;
} candidate;

static int by_distance(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
    return (x->workload > y->workload) - (x->workload < y->workload);
}

/* Operator and shape of a workload in the store, or of a record's key. */
static cdmpp_status asked(cd_store *s, cd_arena *a, const cd_store_filter *f, cd_str *op,
                          cd_str *shape, cdmpp_err *err) {
    sqlite3_stmt *q = NULL;
    cd_store_row row = {0};
    if (sqlite3_prepare_v2(s->db,
                           "SELECT o.name, w.shape FROM workload w JOIN operator o ON "
                           "o.id=w.operator WHERE w.key=?1",
                           -1, &q, NULL) != SQLITE_OK)
        return cd_store_fail(s, "query", err);
    sqlite3_bind_text(q, 1, f->workload, -1, SQLITE_STATIC);
    const bool there = sqlite3_step(q) == SQLITE_ROW;
    if (there) {
        row.operator_name = cd_store_text(q, 0);
        row.shape = cd_store_text(q, 1);
        row.operator_name.p = cd_str_dup(a, row.operator_name);
        row.shape.p = cd_str_dup(a, row.shape);
    }
    sqlite3_finalize(q);
    if (!there)
        CD_TRY(cd_store_describe_key(a, (cd_str){f->workload, strlen(f->workload)}, &row, err));
    *op =
        f->operator_name ? (cd_str){f->operator_name, strlen(f->operator_name)} : row.operator_name;
    *shape = row.shape;
    return op->p && shape->p ? CDMPP_OK : CD_FAIL(err, ENOMEM, "workload");
}

/* All workloads of the operator with the form of `shape`, nearest first. Of an operator
 * "dag:<hash>" also those that were since described by their tasks: their keys begin with the
 * hash. */
static cdmpp_status candidates(cd_store *s, cd_str op, cd_str shape, const cd_store_filter *f,
                               candidate **out, size_t *n, cdmpp_err *err) {
    double want[MAX_SIZE], x[MAX_SIZE];
    size_t n_want, n_x, cap = 0;
    uint64_t form, of;
    int rc;
    sqlite3_stmt *q = NULL;
    CD_TRY(sizes_of(shape, want, &n_want, &form, err));
    if (sqlite3_prepare_v2(s->db,
                           "SELECT w.id, w.shape FROM workload w JOIN operator o ON "
                           "o.id=w.operator WHERE (o.name=?1 OR "
                           "(substr(?1,1,4)='dag:' AND substr(w.key,3,length(?1)-4)=substr(?1,5)))"
                           " AND (?2 IS NULL OR w.dtype=?2) AND (?3 IS NULL OR w.layout=?3)",
                           -1, &q, NULL) != SQLITE_OK)
        return cd_store_fail(s, "query", err);
    cd_store_bind(q, 1, op);
    if (f->dtype) sqlite3_bind_text(q, 2, f->dtype, -1, SQLITE_STATIC);
    if (f->layout) sqlite3_bind_text(q, 3, f->layout, -1, SQLITE_STATIC);
    cdmpp_status st = CDMPP_OK;
    while (!st && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        if (sizes_of(cd_store_text(q, 1), x, &n_x, &of, NULL) || of != form || n_x != n_want)
            continue;
        double sum = 0;
        for (size_t i = 0; i < n_x; i++) sum += (x[i] - want[i]) * (x[i] - want[i]);
        if (CD_GROW(*out, *n, cap)) st = CD_FAIL(err, ENOMEM, "workloads");
        else (*out)[(*n)++] = (candidate){sqrt(sum), sqlite3_column_int64(q, 0)};
    }
    sqlite3_finalize(q);
    if (!st && *n) qsort(*out, *n, sizeof **out, by_distance);
    return st;
}

typedef struct search {
    cd_store *s;
    const cd_store_filter *f;
    sqlite3_stmt *q;
    cd_store_near_visit *visit;
    void *ctx;
} search;

static const char best_sql[] = "SELECT " CD_STORE_HIT_COLUMNS CD_STORE_HIT_FROM
                               " WHERE m.workload=?1 AND m.error_no=0 AND (?2 IS NULL OR "
                               "d.name=?2) AND (?3 IS NULL OR t.text=?3 OR t.kind=?3)"
                               " ORDER BY m.median_s, m.id LIMIT ?4";

/* The best of one workload; *found when there is any. */
static cdmpp_status best_of(search *w, const candidate *c, uint32_t rank, bool *found,
                            cdmpp_err *err) {
    cdmpp_status st = CDMPP_OK;
    int rc = SQLITE_ROW;
    sqlite3_reset(w->q);
    sqlite3_bind_int64(w->q, 1, c->workload);
    *found = false;
    while (!st && (rc = sqlite3_step(w->q)) == SQLITE_ROW) {
        cd_store_near n = {.distance = c->distance, .rank = rank};
        store_hit_read(w->q, &n.hit);
        *found = true;
        st = w->visit(w->ctx, &n, err);
    }
    return !st && rc != SQLITE_DONE ? cd_store_fail(w->s, "query", err) : st;
}

/* Workloads without a measurement that fits are skipped and take no rank. */
static cdmpp_status best_of_all(search *w, const candidate *c, size_t n, uint32_t each,
                                cdmpp_err *err) {
    uint32_t rank = 0;
    if (sqlite3_prepare_v2(w->s->db, best_sql, -1, &w->q, NULL) != SQLITE_OK)
        return cd_store_fail(w->s, "query", err);
    if (w->f->device) sqlite3_bind_text(w->q, 2, w->f->device, -1, SQLITE_STATIC);
    if (w->f->target) sqlite3_bind_text(w->q, 3, w->f->target, -1, SQLITE_STATIC);
    sqlite3_bind_int64(w->q, 4, each ? each : 1);
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; i < n && !st && rank < (w->f->limit ? w->f->limit : DEFAULT_NEAR); i++) {
        bool found;
        st = best_of(w, &c[i], rank, &found, err);
        rank += found;
    }
    sqlite3_finalize(w->q);
    return st;
}

/* What is near: the given shape, else that of the filter's workload. */
cdmpp_status cd_store_find_near(cd_store *s, const cd_store_filter *f, const char *shape,
                                uint32_t each, cd_store_near_visit *visit, void *ctx,
                                cdmpp_err *err) {
    cd_arena a = {0};
    candidate *c = NULL;
    size_t n = 0;
    cd_str op = {f->operator_name, f->operator_name ? strlen(f->operator_name) : 0};
    cd_str want = {shape, shape ? strlen(shape) : 0};
    search w = {s, f, NULL, visit, ctx};
    CD_TRY(cd_store_commit(s, err));
    if (!f->workload && (!op.p || !shape))
        return CD_FAIL(err, EUSAGE, "expected a workload, or an operator and a shape");
    cdmpp_status st = shape && op.p ? CDMPP_OK : asked(s, &a, f, &op, &want, err);
    if (!st) st = candidates(s, op, want, f, &c, &n, err);
    if (!st && !n)
        st = CD_FAIL(err, ENODATA, "no workload of operator '%.*s' with sizes like %.*s",
                     cd_str_shown(op, 60), op.p, cd_str_shown(want, 60), want.p);
    if (!st) st = best_of_all(&w, c, n, each, err);
    cd_mem_free(c);
    cd_arena_free(&a);
    return st;
}
