/* A link that was planted is found again; a book is read as it was written; what is not there is an
 * error. */
#include <string.h>

#include "base/io/io.h"
#include "check.h"
#include "fault.h"
#include "profiler/machine/link_pairs.h"
#include "base/core/core.h"
#include "tmp.h"

static cdmpp_err err;

static int64_t next_size(int64_t b) { return b + (b >> 2) + 1; }

/* Two slopes, cache and memory, and a latency. */
static double planted(double bytes) {
    return 2e-6 + 5e-11 * fmin(bytes, 1e6) + 2e-10 * fmax(bytes - 1e6, 0);
}

static size_t sample(double *b, double *s, uint64_t seed) {
    size_t n = 0;
    for (double x = 64; x < 3e8; x *= 1.4142135623730951, n++) {
        b[n] = floor(x);
        s[n] = planted(b[n]) * exp(0.1 * (cd_rng_unit(seed, n) - 0.5));
    }
    return n;
}

static void test_found_again(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        double b[64], s[64];
        cd_link_table l;
        cd_link_table_init(&l);
        const size_t n = sample(b, s, seed);
        assert_ok(cd_link_table_fit(&l, "cpu0", "ocl0", "write", b, s, n, &err));
        const cd_link *k = cd_link_table_find(&l, "cpu0", "ocl0");
        assert_non_null(k);
        for (double x = 64; x < 1e9; x *= 3)
            assert_close(cd_link_cost(k, (int64_t)x), planted(x), 0.12, 0);
        assert_close(cd_link_bandwidth(k), 5e9, 0.1, 0);
        assert_close(cd_link_latency(k), 2e-6, 0.1, 0);
        cd_link_table_free(&l);
    }
}

/* The copies that EOP's group measured (spec 1.7): milliseconds of 602,112 bytes times 1 ..
 * 1024. */
static void test_published(void **state) {
    (void)state;
    static const double images[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
    static const double ms[] = {0.019, 0.082,  0.218,  0.447,  1.386,  3.757,
                                7.672, 15.700, 31.655, 62.228, 126.593};
    double b[11], s[11];
    cd_link_table l;
    cd_link_table_init(&l);
    for (int i = 0; i < 11; i++) b[i] = images[i] * 602112, s[i] = ms[i] * 1e-3;
    assert_ok(cd_link_table_fit(&l, "a", "b", "copy", b, s, 11, &err));
    for (int i = 0; i < 11; i++)
        assert_close(cd_link_cost(cd_link_table_find(&l, "a", "b"), (int64_t)b[i]), s[i], 0.1, 0);
    cd_link_table_free(&l);
}

static void test_monotone_and_zero(void **state) {
    (void)state;
    /* measurements that make no sense still give a cost that never falls */
    for (uint64_t seed = 0; seed < 40; seed++) {
        double b[30], s[30], last = 0, cost;
        cd_link_table l;
        cd_link_table_init(&l);
        for (size_t i = 0; i < 30; i++)
            b[i] = 1 + floor(1e6 * cd_rng_unit(seed, i)),
            s[i] = 1e-6 + 1e-3 * cd_rng_unit(seed + 999, i);
        assert_ok(cd_link_table_fit(&l, "a", "b", "copy", b, s, 30, &err));
        const cd_link *k = cd_link_table_find(&l, "a", "b");
        assert_true(cd_link_cost(k, 0) == 0);
        for (int64_t x = 1; x < 100000000; x = next_size(x)) {
            cost = cd_link_cost(k, x);
            assert_true(cost >= last && isfinite(cost));
            last = cost;
        }
        assert_true(last > 0);
        cd_link_table_free(&l);
    }
}

static void test_missing(void **state) {
    (void)state;
    const cd_link_piece p = {0, 1e-6, 1e-10};
    cd_link_table l;
    cd_link_table_init(&l);
    assert_null(cd_link_table_find(&l, "cpu0", "ocl0"));
    assert_ok(cd_link_table_add(&l, &(cd_link){"cpu0", "ocl0", "write", 1, 1, &p, 0}, &err));
    assert_null(cd_link_table_find(&l, "ocl0", "cpu0"));
    /* within its memory */
    assert_ok(cd_link_table_add(
        &l, &(cd_link){"ocl0", "ocl0", "copy", 1, 0, &(cd_link_piece){0, 1e-6, 1e-10}, 0}, &err));
    assert_true(cd_link_cost(cd_link_table_find(&l, "ocl0", "ocl0"), 1 << 30) > 0.1);
    assert_true(cd_link_cost(cd_link_table_find(&l, "cpu0", "ocl0"), -1) == 0);
    cd_link_table_free(&l);
}

static void test_bad_pieces(void **state) {
    (void)state;
    static const cd_link_piece bad[][2] = {{{1, 1e-6, 1e-9}},
                                           {{0, -1, 1e-9}},
                                           {{0, 1e-6, -1e-9}},
                                           {{0, 1e-6, (double)NAN}},
                                           {{0, 1e-6, 1e-9}, {1000, 1e-6, 1e-9}},
                                           {{0, 1e-6, 1e-9}, {0, 1e-6, 1e-9}}};
    static const uint32_t n[] = {1, 1, 1, 1, 2, 2};
    cd_link_table l;
    cd_link_table_init(&l);
    for (int i = 0; i < 6; i++)
        assert_status(cd_link_table_add(&l, &(cd_link){"a", "b", "copy", n[i], 0, bad[i], 0}, &err),
                      CDMPP_EINVALID);
    assert_status(cd_link_table_add(&l, &(cd_link){"a", "a", "copy", 1, 0, bad[1], 0}, &err),
                  CDMPP_EINVALID);
    assert_status(cd_link_table_add(&l, &(cd_link){"a", "b", "copy", 0, 0, bad[1], 0}, &err),
                  CDMPP_EINVALID);
    assert_status(
        cd_link_table_fit(&l, "a", "b", "copy", (double[]){1, 2}, (double[]){1, 2}, 2, &err),
        CDMPP_EINVALID);
    assert_status(
        cd_link_table_fit(&l, "a", "b", "copy", (double[]){1, 2, 0}, (double[]){1, 2, 3}, 3, &err),
        CDMPP_EINVALID);
    assert_status(cd_link_table_fit(&l, "a", "b", "copy", (double[]){1, 2, 3},
                                    (double[]){1, (double)NAN, 3}, 3, &err),
                  CDMPP_EINVALID);
    assert_status(
        cd_link_table_fit(&l, "a", "b", "copy", (double[]){1, 1, 1}, (double[]){1, 2, 3}, 3, &err),
        CDMPP_EINVALID);
    assert_int_equal(l.n, 0);
    cd_link_table_free(&l);
}

static void test_written_and_read(void **state) {
    (void)state;
    double b[64], s[64];
    tmp_dir dir = tmp_make();
    const char *path = tmp_path(&dir, "links.json");
    cd_link_table l, r;
    cd_link_table_init(&l);
    cd_link_table_init(&r);
    const size_t n = sample(b, s, 1);
    assert_ok(cd_link_table_fit(&l, "cpu 0", "\"ocl\\0\"", "write", b, s, n, &err));
    assert_ok(cd_link_table_fit(&l, "\"ocl\\0\"", "cpu 0", "read", b, b, n, &err));
    assert_ok(cd_link_table_write(&l, path, &err));
    assert_ok(cd_link_table_read(&r, path, &err));
    assert_int_equal(r.n, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(l.link[i].from, r.link[i].from);
        assert_string_equal(l.link[i].how, r.link[i].how);
        assert_int_equal(l.link[i].n_piece, r.link[i].n_piece);
        assert_memory_equal(l.link[i].piece, r.link[i].piece,
                            l.link[i].n_piece * sizeof *l.link[i].piece);
        assert_true(l.link[i].noise == r.link[i].noise && l.link[i].n == r.link[i].n);
    }
    assert_ok(cd_link_table_read(&r, path, &err)); /* again: replaced, not doubled */
    assert_int_equal(r.n, 2);
    assert_status(cd_link_table_read(&r, "/nonexistent/x", &err), CDMPP_EIO);
    cd_link_table_free(&l);
    cd_link_table_free(&r);
    tmp_remove(&dir);
}

static void test_bad_text(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"cdmpp_links\": 2, \"links\": []}",
        "{\"cdmpp_links\": 1, \"links\": 3}",
        "{\"cdmpp_links\": 1, \"links\": [{}]}",
        "{\"cdmpp_links\": 1, \"links\": [{\"from\": \"a\", \"to\": \"b\", \"how\": \"x\", \"n\": "
        "1, \"noise\": 0, \"pieces\": []}]}",
        "{\"cdmpp_links\": 1, \"links\": [{\"from\": \"a\", \"to\": \"b\", \"how\": \"x\", \"n\": "
        "1, \"noise\": 0, \"pieces\": [[0, 1]]}]}",
        "{\"cdmpp_links\": 1, \"links\": [{\"from\": \"a\", \"to\": \"b\", \"how\": \"x\", \"n\": "
        "1, \"noise\": 0, \"pieces\": [[0, 1e999, 1]]}]}",
        "{\"cdmpp_links\": 1, \"links\": [{\"from\": \"a\\u0000\", \"to\": \"b\", \"how\": \"x\", "
        "\"n\": 1, \"noise\": 0, \"pieces\": [[0, 1, 1]]}]}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cd_link_table l;
        cd_link_table_init(&l);
        assert_int_not_equal(cd_link_table_parse(&l, bad[i], strlen(bad[i]), &err), CDMPP_OK);
        assert_int_equal(l.n, 0);
        cd_link_table_free(&l);
    }
}

/* ---- pairs of a file ---- */

static cdmpp_status fit_text(const char *path, const char *text, cd_link_table *l,
                             cd_link_error *e) {
    assert_ok(cd_file_write(path, text, strlen(text), &err));
    cd_link_table_init(l);
    return cd_link_pairs_fit(path, "a", "b", "write", l, e, &err);
}

/* The mean of the relative errors, and the worst one with its size. */
static void test_pairs(void **state) {
    (void)state;
    tmp_dir dir = tmp_make();
    char want[400];
    const char *path = tmp_path(&dir, "pairs.csv");
    cd_link_table l;
    cd_link_error e = {-1, -1, -1};
    /* on a line: 1 + bytes/500 */
    assert_ok(
        fit_text(path, "what,seconds,bytes\nx,3,1000\nx,2,500\nx,5,2000\nx,9,4000\n", &l, &e));
    assert_string_equal(l.link[0].how, "write");
    assert_int_equal(l.link[0].n, 4);
    assert_close(cd_link_cost(cd_link_table_find(&l, "a", "b"), 3000), 7, 1e-6, 0);
    assert_close(e.mean, 0, 0, 1e-6);
    assert_close(e.worst, 0, 0, 1e-6);
    cd_link_table_free(&l);
    /* Two sizes are measured again, once far off: the fit goes through the medians. */
    assert_ok(
        fit_text(path, "bytes,seconds\n100,2\n100,2\n100,1\n200,4\n200,4\n200,8\n400,8\n", &l, &e));
    assert_close(cd_link_cost(cd_link_table_find(&l, "a", "b"), 100), 2, 1e-6, 0);
    assert_close(cd_link_cost(cd_link_table_find(&l, "a", "b"), 200), 4, 1e-6, 0);
    assert_close(e.mean, (1 + 0.5) / 7, 1e-6, 0);
    assert_close(e.worst, 1, 1e-6, 0);
    assert_close(e.worst_bytes, 100, 0, 0);
    cd_link_table_free(&l);
    static const char *const bad[][2] = {
        {"bytes,second\n1,2\n", ": no column 'seconds'; there are bytes, second [ESCHEMA]"},
        {"byte,seconds\n1,2\n", ": no column 'bytes'; there are byte, seconds [ESCHEMA]"},
        {"bytes,seconds\n1,2\n2,3\n3,x\n", ":4: seconds: expected a number, found 'x' [EPARSE]"},
        {"bytes,seconds\n1,2\nx,3\n3,4\n", ":3: bytes: expected a number, found 'x' [EPARSE]"},
        {"bytes,seconds\n1,2\n2,3\n",
         ": from a to b: expected at least 3 measured pairs, found 2 [EINVALID]"},
        {"bytes,seconds\n1,2\n0,3\n4,5\n",
         ": from a to b, pair 1: expected bytes and seconds above 0, found 0, 3 [EINVALID]"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(want, sizeof want, "%s%s", path, bad[i][1]);
        assert_error(fit_text(path, bad[i][0], &l, &e), want);
        assert_int_equal(l.n, 0);
        cd_link_table_free(&l);
    }
    tmp_remove(&dir);
}

/* Numbers at the bounds, and one beyond. */
static void test_bounds(void **state) {
    (void)state;
    static const struct {
        cd_link_piece p[2];
        uint32_t n;
        bool fine;
    } t[] = {{{{0, 1e9, 1e3}}, 1, true},
             {{{0, 1.1e9, 0}}, 1, false},
             {{{0, 0, 1.1e3}}, 1, false},
             {{{0, 0, 0}}, 1, true},
             {{{0, 1, 1e-3}, {1000, 2, 0}}, 2, true},
             {{{0, 1, 1e-3}, {1000, 2.001, 0}}, 2, false},
             {{{0, 1, 1e-3}, {1000, 1.999, 0}}, 2, false},
             {{{0, 1, 0}, {1e15, 1, 0}}, 2, true},
             {{{0, 1, 0}, {1.1e15, 1, 0}}, 2, false},
             {{{0, 0, 0}, {1, 0, 0}}, 2, true},
             {{{0, 0, 0}, {0, 0, 0}}, 2, false}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        cd_link_table l;
        cd_link_table_init(&l);
        assert_status(cd_link_table_add(&l, &(cd_link){"a", "b", NULL, t[i].n, 0, t[i].p, 0}, &err),
                      t[i].fine ? CDMPP_OK : CDMPP_EINVALID);
        if (t[i].fine) assert_string_equal(l.link[0].how, "copy");
        cd_link_table_free(&l);
    }
    const cd_link_piece p[] = {{0, 1, 0.5}, {10, 6, 0.25}, {30, 11, 0.125}};
    const cd_link k = {"a", "b", NULL, 3, 0, p, 0};
    static const struct {
        int64_t bytes;
        double seconds;
    } cost[] = {{-1, 0},    {0, 0},      {1, 1.5}, {9, 5.5}, {10, 6},
                {11, 6.25}, {29, 10.75}, {30, 11}, {38, 12}};
    for (size_t i = 0; i < sizeof cost / sizeof *cost; i++)
        assert_true(cd_link_cost(&k, cost[i].bytes) == cost[i].seconds);
    assert_true(cd_link_latency(&k) == 1 && cd_link_bandwidth(&k) == 8);
    static const char *const name[][2] = {{"", "b"}, {"a", ""}, {NULL, "b"}, {"a", NULL}};
    for (int i = 0; i < 4; i++) {
        cd_link_table l;
        cd_link_table_init(&l);
        assert_error(
            cd_link_table_add(&l, &(cd_link){name[i][0], name[i][1], "x", 1, 0, p, 0}, &err),
            "a link needs two devices [EINVALID]");
        cd_link_table_free(&l);
    }
}

static void test_memory(void **state) {
    (void)state;
    double b[64], s[64];
    const size_t n = sample(b, s, 1);
    FAULT_SWEEP(f, 1) {
        cd_link_table l;
        cd_link_table_init(&l);
        f.st = cd_link_table_fit(&l, "a", "b", "copy", b, s, n, &f.err);
        assert_int_equal(l.n, f.st == CDMPP_OK);
        cd_link_table_free(&l);
    }
}

TESTS(NULL, NULL, test_found_again, test_published, test_monotone_and_zero, test_missing,
      test_bad_pieces, test_written_and_read, test_bad_text, test_pairs, test_bounds, test_memory)
