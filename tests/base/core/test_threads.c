/* A parallel loop: every item once, the same cut for any number of threads, and the first error in
 * order. */
#include "check.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/core.h"

enum { N = 1003, CHUNK = 10 };

typedef struct run {
    atomic_int seen[N];                /* how often each item came */
    atomic_int inside[1024];           /* by worker */
    size_t chunk_beg[N], chunk_end[N]; /* by first item; written once each */
    double sum[N];                     /* by first item */
    size_t fail[2];                    /* items whose chunk fails; N: none */
} run;

static cdmpp_status visit(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    run *r = ctx;
    assert_true(w >= 0 && w < 1024);
    assert_int_equal(atomic_fetch_add(&r->inside[w], 1), 0); /* a worker runs one chunk at a time */
    r->chunk_beg[beg] = beg;
    r->chunk_end[beg] = end;
    double s = 0;
    for (size_t i = beg; i < end; i++) {
        atomic_fetch_add(&r->seen[i], 1);
        s += 1.0 / (double)(i + 1);
    }
    r->sum[beg] = s;
    atomic_fetch_sub(&r->inside[w], 1);
    for (int k = 0; k < 2; k++)
        if (r->fail[k] >= beg && r->fail[k] < end) {
            if (k == 0) usleep(2000); /* the earlier failure is reported later */
            return CD_FAIL(err, ERANGE, "item %zu", r->fail[k]);
        }
    return CDMPP_OK;
}

static run *new_run(size_t fail0, size_t fail1) {
    run *r = calloc(1, sizeof *r);
    r->fail[0] = fail0;
    r->fail[1] = fail1;
    return r;
}

TEST(every_item_once_same_chunks) {
    double want = 0;
    for (int n = 0; n <= 8; n++) {
        cdmpp_err err = {0};
        cd_threads *t = NULL;
        run *r = new_run(N, N);
        if (n) assert_ok(cd_threads_new(n, &t, &err)); /* n = 0: no pool at all */
        assert_int_equal(cd_threads_count(t), n ? n : 1);
        assert_ok(cd_threads_run(t, N, CHUNK, visit, r, &err));
        double sum = 0;
        for (size_t i = 0; i < N; i++) {
            assert_int_equal(r->seen[i], 1);
            if (i % CHUNK == 0) assert_int_equal(r->chunk_end[i], i + CHUNK < N ? i + CHUNK : N);
            else assert_int_equal(r->chunk_end[i], 0);
        }
        for (size_t i = 0; i < N; i++) sum += r->sum[i];
        if (n) assert_true(sum == want); /* the same bits */
        want = sum;
        cd_threads_free(t);
        free(r);
    }
}

TEST(first_failure_in_chunk_order) {
    for (int n = 1; n <= 4; n++) {
        cdmpp_err err = {0};
        cd_threads *t = NULL;
        assert_ok(cd_threads_new(n, &t, &err));
        for (int again = 0; again < 5; again++) {
            run *r = new_run(301, 312);
            assert_status(cd_threads_run(t, N, CHUNK, visit, r, &err), CDMPP_ERANGE);
            assert_string_equal(err.msg, "item 301");
            for (size_t i = 0; i < 310; i++) assert_int_equal(r->seen[i], 1);
            if (n == 1) assert_int_equal(r->seen[310], 0); /* it stopped there */
            free(r);
        }
        run *r = new_run(N, N); /* and the pool is still good */
        assert_ok(cd_threads_run(t, N, CHUNK, visit, r, &err));
        assert_int_equal(cd_threads_run(t, 5, CHUNK, visit, r, NULL), CDMPP_OK);
        cd_threads_free(t);
        free(r);
    }
}

TEST(edges) {
    cdmpp_err err = {0};
    cd_threads *t = NULL;
    assert_ok(cd_threads_new(0, &t, &err));
    assert_true(cd_threads_count(t) >= 1);
    run *r = new_run(N, N);
    assert_ok(cd_threads_run(t, 0, CHUNK, visit, r, &err));
    assert_int_equal(r->seen[0], 0);
    assert_ok(cd_threads_run(t, 3, 0, visit, r, &err));
    assert_int_equal(r->chunk_end[2], 3);
    assert_ok(cd_threads_run(t, 10, SIZE_MAX, visit, r, &err));
    assert_int_equal(r->chunk_end[0], 10);
    cd_threads_free(t);
    cd_threads_free(NULL);
    free(r);
}

static cdmpp_status count(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    (void)w, (void)err;
    atomic_fetch_add((atomic_long *)ctx, (long)(end - beg));
    return CDMPP_OK;
}

TEST(many_short_runs) {
    cdmpp_err err = {0};
    cd_threads *t = NULL;
    atomic_long n = 0;
    assert_ok(cd_threads_new(3, &t, &err));
    for (int k = 0; k < 2000; k++) assert_ok(cd_threads_run(t, 7, 2, count, &n, &err));
    assert_int_equal(n, 14000);
    cd_threads_free(t);
}

TESTS(NULL, NULL, every_item_once_same_chunks, first_failure_in_chunk_order, edges, many_short_runs)
