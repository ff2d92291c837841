/* Pairs that slow each other down: read from a table, and the model found again in pairs that it
 * made. */
#include "base/io/io.h"
#include "check.h"
#include "profiler/machine/contention.h"
#include "tmp.h"

#define HEAD                                                                                       \
    "first_solo_s,second_solo_s,first_slowdown,second_slowdown,first_bytes,second_bytes,sharing,"  \
    "error_no\n"

static cdmpp_err err;
static tmp_dir dir;
static char path[256];

static int set_up(void **state) {
    (void)state;
    dir = tmp_make();
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "corun.csv"));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

static cdmpp_status read_text(const char *text, cd_arena *a, cd_corun_row **row, size_t *n) {
    assert_ok(cd_file_write(path, text, strlen(text), &err));
    return cd_contention_read(path, a, row, n, &err);
}

/* Columns in any order; a row with an error number is left out, wherever it stands. */
TEST(table) {
    cd_arena a = {0};
    cd_corun_row *row;
    size_t n;
    assert_ok(read_text("error_no,sharing,second_bytes,first_bytes,second_slowdown,first_slowdown,"
                        "second_solo_s,first_solo_s,name\n"
                        "4,,,,,,,,x\n0,shared,6,5,4,3,2,1,y\n1,disjoint,6,5,4,3,2,1,z\n0,disjoint,"
                        "60,50,40,30,20,10,z\n-1,shared,6,5,4,3,2,1,z\n",
                        &a, &row, &n));
    assert_int_equal(n, 2);
    for (size_t i = 0; i < 2; i++) {
        const double by = i ? 10 : 1;
        for (int k = 0; k < 2; k++) {
            assert_true(row[i].solo_s[k] == by * (1 + k) && row[i].slowdown[k] == by * (3 + k) &&
                        row[i].bytes[k] == by * (5 + k));
        }
        assert_int_equal(row[i].shared, i == 0);
    }
    cd_arena_free(&a);
}

TEST(bad_tables) {
    static const struct {
        const char *text, *says;
    } t[] = {{HEAD "1,2,3,4,5,6,shared,1\n", ": no pair without an error [ENODATA]"},
             {HEAD, ": no row behind the names [ENODATA]"},
             {HEAD "1,2,3,4,5,6,disjoint,0\n1,2,3,4,5,6,both,0\n",
              ":3: sharing: expected disjoint or shared [EPARSE]"},
             {HEAD "1,2,3,4,5,6,both,1\n1,2,3,4,5,6,shared,0\n", NULL}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        cd_arena a = {0};
        cd_corun_row *row;
        size_t n;
        char want[400];
        const cdmpp_status st = read_text(t[i].text, &a, &row, &n);
        snprintf(want, sizeof want, "%s%s", path, t[i].says ? t[i].says : "");
        if (t[i].says) assert_error(st, want);
        else assert_ok(st);
        cd_arena_free(&a);
    }
    /* each column is needed, each cell is a number but for "sharing" */
    for (int c = 0; c < 8; c++) {
        static const char *const good[] = {"1", "2", "3", "4", "5", "6", "shared", "0"};
        char head[] = HEAD "1,2,3,4,5,6,shared,0\n", text[400];
        cd_arena a = {0};
        cd_corun_row *row;
        size_t n, at = sizeof HEAD - 1;
        memcpy(text, HEAD, at);
        for (int k = 0; k < 8; k++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", k ? "," : "",
                                   k == c ? "what" : good[k]);
        assert_status(read_text(text, &a, &row, &n), CDMPP_EPARSE);
        assert_int_equal(err.line, 2);
        char *p = head;
        for (int k = 0; k < c; k++) p = strchr(p, ',') + 1;
        *p = 'X';
        assert_status(read_text(head, &a, &row, &n), CDMPP_ESCHEMA);
        cd_arena_free(&a);
    }
    cd_corun_row *row;
    size_t n = 7;
    assert_status(cd_contention_read(tmp_path(&dir, "none"), &(cd_arena){0}, &row, &n, &err),
                  CDMPP_EIO);
    assert_true(n == 0 && !row);
}

TEST(share) {
    static const double t[][4] = {{50, 2, 100, 0.25}, {200, 2, 100, 1},   {201, 2, 100, 1},
                                  {0.5, 2, 0.5, 0.5}, {0, 2, 100, 0},     {50, 0, 100, 0},
                                  {50, 2, 0, 0},      {-1, 2, 100, 0},    {50, -2, 100, 0},
                                  {50, 2, -1, 0},     {0.25, 0.5, 1, 0.5}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        assert_close(cd_contention_share(t[i][0], t[i][1], t[i][2]), t[i][3], 0, 0);
}

TEST(slow) {
    const cd_contention c = {.peak_bytes_per_s = 1e9, .beside = 1.5, .turn = 3};
    const cd_contention none = {0};
    const cd_contention low = {.peak_bytes_per_s = 0.5, .beside = 0.5, .turn = 0.5};
    /* the memory has room for all */
    assert_close(cd_contention_slow(&c, 0.75, 1, 0, false), 1, 0, 0);
    assert_close(cd_contention_slow(&c, 0.75, 2, 0, false), 1.75, 0, 0); /* 1 - s + s S */
    assert_close(cd_contention_slow(&c, 0.75, 2, 0, true), 1.75, 0, 0);  /* nobody else */
    assert_close(cd_contention_slow(&c, 0.75, 2, 1, false), 1.5 * 1.75, 0, 0);
    assert_close(cd_contention_slow(&c, 0.75, 2, 4, false), 1.5 * 1.75, 0, 0);
    assert_close(cd_contention_slow(&c, 0.75, 1, 1, true), 3, 0, 0);
    /* 1 + (turn - 1) others */
    assert_close(cd_contention_slow(&c, 0.75, 1, 4, true), 9, 0, 0);
    assert_close(cd_contention_slow(&none, 1, 5, 3, true), 1, 0, 0); /* nothing is known */
    assert_close(cd_contention_slow(&none, 1, 5, 3, false), 1, 0, 0);
    assert_close(cd_contention_slow(&low, 0.5, 2, 1, false), 1.5, 0, 0); /* nobody gets faster */
    assert_close(cd_contention_slow(&low, 0.5, 2, 1, true), 1.5, 0, 0);
}

/* Pairs of a known machine; one with much traffic tells the peak. */
static void make_rows(const cd_contention *c, cd_corun_row *row, size_t n) {
    for (size_t i = 0; i < n; i++) {
        row[i] = (cd_corun_row){.solo_s = {1e-3, 2e-3},
                                .bytes = {1e6 * (double)(i % 4 + 3), 1e6 * (double)(i % 3 + 1)},
                                .shared = i % 2};
        const double a = cd_contention_share(row[i].bytes[0], 1e-3, c->peak_bytes_per_s),
                     b = cd_contention_share(row[i].bytes[1], 2e-3, c->peak_bytes_per_s);
        row[i].slowdown[0] = cd_contention_slow(c, a, a + b, 1, row[i].shared);
        row[i].slowdown[1] = cd_contention_slow(c, b, a + b, 1, row[i].shared);
    }
}

TEST(found_again) {
    const cd_contention made = {
        .peak_bytes_per_s = 1e8 * pow(1.05, 75), .beside = 1.25, .turn = 2.5};
    cd_contention c;
    cd_corun_row row[12];
    make_rows(&made, row, 12);
    assert_ok(cd_contention_fit(row, 12, &c, &err));
    assert_close(c.peak_bytes_per_s, made.peak_bytes_per_s, 1e-9, 0);
    assert_close(c.beside, 1.25, 1e-9, 0);
    assert_close(c.turn, 2.5, 1e-9, 0);
    assert_close(c.error, 0, 0, 1e-9);
    assert_int_equal(c.n_pair, 12);
    /* no traffic: no peak, means of the logarithms */
    for (int i = 0; i < 12; i++) row[i].bytes[0] = row[i].bytes[1] = 0;
    for (int i = 0; i < 12; i++) row[i].slowdown[0] = row[i].shared ? 4 : 2, row[i].slowdown[1] = 1;
    assert_ok(cd_contention_fit(row, 12, &c, &err));
    assert_true(c.peak_bytes_per_s == 0);
    assert_close(c.turn, 2, 1e-12, 0);
    assert_close(c.beside, sqrt(2), 1e-12, 0);
    assert_close(
        c.error,
        (fabs(2 / 4.0 - 1) + fabs(2 / 1.0 - 1) + fabs(sqrt(2) / 2 - 1) + fabs(sqrt(2) - 1)) / 4,
        1e-12, 0);
    /* faster together: noise */
    for (int i = 0; i < 12; i++) row[i].slowdown[0] = row[i].slowdown[1] = 0.5;
    assert_ok(cd_contention_fit(row, 12, &c, &err));
    assert_true(c.turn == 1 && c.beside == 1);
    assert_close(c.error, 1, 1e-12, 0);
    row[0].shared = false;
    row[0].slowdown[0] = row[0].slowdown[1] = 3;
    assert_ok(cd_contention_fit(row, 1, &c, &err)); /* one kind of pairs only */
    assert_close(c.beside, 3, 1e-12, 0);
    assert_true(c.turn == 1);
}

TEST(refused) {
    static const struct {
        double solo, slow, bytes;
        bool fine;
    } t[] = {{1, 1, 0, true},   {0, 1, 0, false},        {1, 0, 0, false},
             {1, -1, 0, false}, {1, INFINITY, 0, false}, {1, NAN, 0, false},
             {1, 1, -1, false}, {NAN, 1, 0, false},      {1, 1, NAN, false}};
    cd_contention c;
    assert_error(cd_contention_fit(NULL, 0, &c, &err), "no pairs to fit [ENODATA]");
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        for (int k = 0; k < 2; k++) {
            cd_corun_row row[2] = {{{1, 1}, {1, 1}, {0, 0}, false},
                                   {{1, 1}, {1, 1}, {0, 0}, false}};
            row[1].solo_s[k] = t[i].solo, row[1].slowdown[k] = t[i].slow,
            row[1].bytes[k] = t[i].bytes;
            assert_status(cd_contention_fit(row, 2, &c, &err), t[i].fine ? CDMPP_OK : CDMPP_ERANGE);
            if (!t[i].fine) assert_int_equal(strncmp(err.msg, "pair 1: ", 8), 0);
        }
}

TESTS(set_up, tear_down, table, bad_tables, share, slow, found_again, refused)
