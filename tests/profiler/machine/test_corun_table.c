/* The table of pairs: read from a file, cleaned of noise, and what it says about groups of three
 * and four. */
#include "base/io/io.h"
#include "check.h"
#include "fault.h"
#include "profiler/machine/corun_table.h"
#include "tmp.h"

#define HEAD                                                                                       \
    "first,second,sharing,first_solo_s,second_solo_s,first_slowdown,second_slowdown,first_bytes,"  \
    "second_bytes,error_no\n"

static cdmpp_err err;
static tmp_dir dir;
static char path[256];

static int set_up(void **state) {
    (void)state;
    dir = tmp_make();
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "pairs.csv"));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

static cdmpp_status read_text(const char *text, cd_corun_table *t) {
    assert_ok(cd_file_write(path, text, strlen(text), &err));
    return cd_corun_table_read(path, t, &err);
}

/* Without traffic the law is a mean; what pairs differ from it by is kept, because nothing tells
 * noise. */
TEST(groups_by_hand) {
    cd_corun_table t = {0};
    const uint32_t op[] = {0, 1, 2, 0};
    double slow[4];
    assert_ok(read_text(
        HEAD
        "a,b,shared,1,2,2,3,0,0,0\na,c,shared,1,4,2.5,2,0,0,0\nb,c,shared,2,4,2,2,0,0,0\na,b,"
        "disjoint,1,2,1.1,1.2,0,0,0\na,c,disjoint,3,4,1.3,1,0,0,0\nb,c,disjoint,2,4,1,1.5,0,0,0\n"
        "c,b,shared,9,9,9,9,9,9,4\n",
        &t));
    assert_int_equal(t.n, 3);
    assert_true(t.real[0] == 1 && t.real[1] == 1);
    assert_close(t.seconds[0], 1, 0, 0); /* the median of 1, 1, 1, 3 */
    assert_int_equal(cd_corun_table_find(&t, (cd_str){"c", 1}), 2);
    assert_int_equal(cd_corun_table_find(&t, (cd_str){"cc", 2}), UINT32_MAX);
    /* each on a place of its own: what is too much adds up */
    assert_ok(cd_corun_table_group(&t, op, 3, 3, slow, &err));
    assert_close(slow[0], 1 + 0.1 + 0.3, 1e-12, 0);
    assert_close(slow[1], 1 + 0.2 + 0, 1e-12, 0);
    assert_close(slow[2], 1 + 0 + 0.5, 1e-12, 0);
    assert_ok(cd_corun_table_group(&t, op, 3, 1, slow, &err)); /* all in turns */
    assert_close(slow[0], 1 + 1 + 1.5, 1e-12, 0);
    assert_close(slow[1], 1 + 2 + 1, 1e-12, 0);
    /* a and c take turns, b beside either */
    assert_ok(cd_corun_table_group(&t, op, 3, 2, slow, &err));
    assert_close(slow[0], 2.5 * 1.1, 1e-12, 0);
    assert_close(slow[1], 1 + (0.2 + 0) / 2, 1e-12, 0);
    assert_close(slow[2], 2 * 1.5, 1e-12, 0);
    assert_error(cd_corun_table_group(&t, op, 4, 1, slow, &err),
                 "no pair of a and a, shared [ENODATA]");
    assert_status(cd_corun_table_group(&t, op, 3, 0, slow, &err), CDMPP_ERANGE);
    assert_status(cd_corun_table_group(&t, op, 3, 4, slow, &err), CDMPP_ERANGE);
    cd_corun_table_free(&t);
}

/* Two take 0.6 of the memory each and hardly slow each other; what three do no pair has shown, but
 * the law knows the peak from pairs that did. */
TEST(memory_of_three) {
    const cd_contention made = {.peak_bytes_per_s = 1e8 * pow(1.05, 60), .beside = 1, .turn = 2};
    cd_corun_table t = {0};
    cd_buf b = {0};
    double slow[3];
    const uint32_t op[] = {0, 0, 0};
    const double share[] = {0.45, 0.9};
    cd_buf_puts(&b, HEAD);
    for (int i = 0; i < 2; i++)
        for (int k = i; k < 2; k++) {
            const double sum = share[i] + share[k], by = made.peak_bytes_per_s;
            cd_buf_putf(&b, "o%d,o%d,disjoint,1,1,%.12g,%.12g,%.12g,%.12g,0\n", i, k,
                        cd_contention_slow(&made, share[i], sum, 1, false),
                        cd_contention_slow(&made, share[k], sum, 1, false), by * share[i],
                        by * share[k]);
        }
    cd_buf_putf(&b, "%c", 0);
    assert_ok(read_text(b.p, &t));
    assert_ok(cd_corun_table_group(&t, op, 2, 2, slow, &err));
    assert_close(slow[0], 1, 1e-6, 0);
    assert_ok(cd_corun_table_group(&t, op, 3, 3, slow, &err));
    for (int k = 0; k < 3; k++) assert_close(slow[k], 1 - 0.45 + 0.45 * 1.35, 1e-3, 0);
    cd_buf_free(&b);
    cd_corun_table_free(&t);
}

/* One pair of a program with itself differs by as much as pairs differ at all: then all is noise,
 * and the mean of the logarithms stands. */
TEST(noise) {
    cd_corun_table t = {0};
    const double mean = exp((log(2.0) + log(4.0)) / 2);
    double slow[2];
    assert_ok(read_text(
        HEAD "a,a,shared,1,1,2,4,0,0,0\nb,b,shared,1,1,2,4,0,0,0\na,b,shared,1,1,2,4,0,0,0\n", &t));
    assert_close(t.real[1], 0, 0, 1e-12);
    assert_ok(cd_corun_table_group(&t, (const uint32_t[]){0, 1}, 2, 1, slow, &err));
    assert_close(slow[0], mean, 1e-9, 0);
    cd_corun_table_free(&t);
    /* both sides equal: no noise */
    assert_ok(read_text(
        HEAD "a,a,shared,1,1,2,2,0,0,0\nb,b,shared,1,1,3,3,0,0,0\na,b,shared,1,1,2,3,0,0,0\n", &t));
    assert_close(t.real[1], 1, 0, 0);
    cd_corun_table_free(&t);
    assert_status(read_text("sharing,first_solo_s,second_solo_s,first_slowdown,second_slowdown,"
                            "first_bytes,second_bytes,error_no\nshared,1,1,2,2,0,0,0\n",
                            &t),
                  CDMPP_ESCHEMA);
    cd_corun_table_free(&t);
}

/* Groups beside the table, and the errors between them. */
TEST(check_and_print) {
    static cd_record_corun c;
    static cd_record_corun_group group[] = {
        {.program = {0, 1, 0},
         .out = {.n = 3,
                 .solo_s = {1, 2, 1},
                 .corun_s = {4, 2, 2},
                 .slowdown = {4, 1, 2},
                 .spread = 0.5}},
        {.program = {1, 1, 1}, .out = {.n = 3, .error_no = 7, .at = 1}}};
    cd_corun_table t = {0};
    cd_corun_check k;
    cd_buf b = {0};
    double predicted[2 * CD_CORUN_GROUP] = {0};
    c = (cd_record_corun){.n = 2, .threads = 1, .places = 2, .n_group = 2, .group = group};
    c.best[0].key = (cd_str){"a", 1};
    c.best[1].key = (cd_str){"[\"b\"]", 5};
    assert_ok(read_text(HEAD "a,\"[\"\"b\"\"]\",disjoint,1,2,1,1,0,0,0\na,a,disjoint,1,1,1,1,0,0,"
                             "0\na,a,shared,1,1,2,2,0,0,0\n",
                        &t));
    assert_ok(cd_corun_table_check(&t, &c, predicted, &k, &err));
    assert_int_equal(k.n, 3);
    assert_close(k.mean, (0.5 + 0 + 0) / 3, 1e-12, 0);
    assert_close(k.worst, 0.5, 1e-12, 0);
    assert_close(k.law_mean, (0.5 + 0 + 0) / 3, 1e-12, 0);
    assert_close(k.slow_mean, (0.5 + 0 + 0) / 3, 1e-12, 0);
    cd_corun_table_csv(&b, &c, &t, predicted);
    assert_string_equal(
        b.p,
        "group,place,operator,solo_s,corun_s,slowdown,predicted_s,predicted_slowdown,spread,error_"
        "no\n"
        "0,0,\"a\",1,4,4,2,2,0.5,0\n0,1,\"[\"\"b\"\"]\",2,2,1,2,1,0.5,0\n0,0,\"a\",1,2,2,2,2,0.5,"
        "0\n"
        "1,0,\"[\"\"b\"\"]\",,,,,,,7\n1,1,\"[\"\"b\"\"]\",,,,,,,7\n1,0,\"[\"\"b\"\"]\",,,,,,,7\n");
    cd_buf_clear(&b);
    cd_corun_table_json(&b, &c, &t, predicted, &k);
    assert_non_null(strstr(b.p, "\"places\":2,\"times\":3,\"error\":0.166667,\"worst\":0.5,"));
    assert_non_null(strstr(b.p, "{\"workload_key\":\"a\",\"place\":0,\"solo_s\":1,\"corun_s\":4,"
                                "\"slowdown\":4,\"predicted_s\":2,\"predicted_slowdown\":2}"));
    cd_buf_clear(&b);
    cd_corun_table_text(&b, &c, &t, predicted, &k);
    assert_non_null(strstr(b.p, "off by 16.7 % in the mean of 3 times, 50.0 % at worst"));
    assert_non_null(strstr(b.p, "    1     1       1  error 7\n"));
    c.best[1].key = (cd_str){"z", 1};
    assert_error(cd_corun_table_check(&t, &c, predicted, &k, &err), "no pair of z [ENODATA]");
    c.n_group = 0;
    assert_error(cd_corun_table_check(&t, &c, predicted, &k, &err),
                 "no group without an error [ENODATA]");
    cd_buf_free(&b);
    cd_corun_table_free(&t);
}

/* What is no table of pairs, with what is wrong. */
TEST(mistakes) {
    unsigned wrong = 0;
    static const struct {
        const char *text;
        cdmpp_status st;
    } bad[] = {{"first,second,sharing,first_solo_s,second_solo_s,first_slowdown,second_slowdown,"
                "first_bytes,second_bytes\na,b,shared,1,2,2,3,0,0\n",
                CDMPP_ESCHEMA},
               {"first,sharing,first_solo_s,second_solo_s,first_slowdown,second_slowdown,first_"
                "bytes,second_bytes,error_no\na,shared,1,2,2,3,0,0,0\n",
                CDMPP_ESCHEMA},
               {HEAD "a,b,shared,1,2,2,3,0,0,x\n", CDMPP_EPARSE},
               {HEAD "a,b,shared,x,2,2,3,0,0,0\n", CDMPP_EPARSE},
               {HEAD "a,b,both,1,2,2,3,0,0,0\n", CDMPP_EPARSE},
               {HEAD "a,b,shared,1,2\n", CDMPP_ESCHEMA},
               {HEAD "a,b,shared,0,2,2,3,0,0,0\n", CDMPP_ERANGE},
               {HEAD "a,b,shared,1,2,2,-3,0,0,0\n", CDMPP_ERANGE}};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        cd_corun_table t = {0};
        const cdmpp_status st = read_text(bad[k].text, &t);
        if (st != bad[k].st || !strstr(err.path, "pairs.csv"))
            print_error("%s: %d %s: %s\n", bad[k].text, (int)st, err.key, err.msg), wrong++;
        cd_corun_table_free(&t);
    }
    assert_int_equal(wrong, 0);
    /* all pairs of c failed */
    cd_corun_table t = {0};
    double slow[2];
    assert_ok(read_text(HEAD "a,a,shared,1,1,2,2,0,0,0\na,c,shared,1,4,2.5,2,0,0,7\n", &t));
    assert_int_equal(cd_corun_table_find(&t, (cd_str){"c", 1}), UINT32_MAX);
    assert_error(cd_corun_table_group(&t, (const uint32_t[]){0, 0}, 2, 2, slow, &err),
                 "no pair of a and a, disjoint [ENODATA]");
    cd_corun_table_free(&t);
}

/* The same table from what was just measured. */
TEST(measured) {
    static cd_record_corun c;
    static cd_record_corun_row row[] = {
        {.first = 0,
         .second = 1,
         .sharing = CD_CORUN_SHARED,
         .out = {.solo_s = {1, 2}, .slowdown = {2, 3}}},
        {.first = 0,
         .second = 1,
         .sharing = CD_CORUN_DISJOINT,
         .out = {.solo_s = {1, 2}, .slowdown = {1.5, 1.25}}},
        {.first = 1, .second = 1, .sharing = CD_CORUN_SHARED, .out = {.error_no = 7}}};
    cd_corun_table t = {0};
    double slow[2];
    c = (cd_record_corun){.n = 2, .n_row = 3, .row = row};
    c.best[0].key = (cd_str){"a", 1};
    c.best[1].key = (cd_str){"b", 1};
    assert_ok(cd_corun_table_of(&c, &t, &err));
    assert_true(t.n == 2 && cd_corun_table_find(&t, (cd_str){"b", 1}) == 1);
    assert_close(t.seconds[1], 2, 0, 0);
    assert_ok(cd_corun_table_group(&t, (const uint32_t[]){0, 1}, 2, 2, slow, &err));
    assert_true(slow[0] > 1.4 && slow[0] < 1.6 && slow[1] > 1.2 && slow[1] < 1.3);
    cd_corun_table_free(&t);
    FAULT_SWEEP(f, 1) {
        cd_corun_table v = {0};
        f.st = cd_corun_table_of(&c, &v, &f.err);
        cd_corun_table_free(&v);
    }
    assert_ok(read_text(HEAD "a,b,shared,1,2,2,3,0,0,0\n", &t));
    cd_corun_table_free(&t);
    FAULT_SWEEP(f, 1) {
        cd_corun_table v = {0};
        f.st = cd_corun_table_read(path, &v, &f.err);
        cd_corun_table_free(&v);
    }
}

TESTS(set_up, tear_down, groups_by_hand, memory_of_three, noise, check_and_print, mistakes,
      measured)
