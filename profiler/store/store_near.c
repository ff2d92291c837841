/* store_near -- workloads of the same operator with the nearest shapes.
 *
 *   shape [[1,64,56,56],[64,64,3,3]] -> form "[[,,,],[,,,]]", sizes 1 64 56 56 64 64 3 3
 *   distance = |log2 a - log2 b|, over shapes of equal form */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/store/store_internal.h"

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
        cd_store_hit_read(w->q, &n.hit);
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
