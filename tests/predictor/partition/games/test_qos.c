/* Queries with deadlines: laws of queues, what admission promises, the draws, files. */
#include <math.h>

#include "base/io/io.h"
#include "check.h"
#include "fault.h"
#include "predictor/partition/games/qos.h"
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
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "queries"));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

static cdmpp_status read_text(const char *text, const char *device, double deadline_s,
                              cd_qos_file *f) {
    assert_ok(cd_file_write(path, text, strlen(text), &err));
    *f = (cd_qos_file){0};
    return cd_qos_read(path, device, deadline_s, f, &err);
}

static cd_qos_kind kind(const char *name, double s, double low, double high, double deadline) {
    return (cd_qos_kind){.name = name,
                         .seconds = s,
                         .low_s = low,
                         .high_s = high,
                         .deadline_s = deadline,
                         .weight = 1};
}

static const cd_qos_options usual = {
    .places = 1, .load = 0.8, .queries = 5000, .runs = 100, .seed = 3, .level = 0.9, .risk = 1e-5};

/* M/D/1: rho s / (2 (1 - rho)); M/G/1: lambda E[S^2] / (2 (1 - rho)), of Pollaczek and
 * Khinchine. */
TEST(closed_forms) {
    cd_qos_kind one = kind("a", 2, 2, 2, 1e9);
    cd_qos_kind two[] = {kind("a", 1, 1, 1, 1e9), kind("b", 5, 5, 5, 1e9)};
    cd_qos_result r;
    assert_ok(cd_qos_run(&one, 1, &usual, CD_QOS_FIFO, &r, &err));
    assert_int_equal(r.arrived, 500000);
    assert_int_equal(r.admitted, 500000);
    assert_int_equal(r.late, 0);
    assert_close(r.mean_wait_s, 0.8 * 2 / (2 * 0.2), 0.04, 0);
    assert_close(r.busy, 0.8, 0.02, 0);
    assert_close(r.goodput, 0.4, 0.02, 0);
    two[0].weight = 3;
    const double mean = (3 * 1 + 5) / 4.0, square = (3 * 1 + 25) / 4.0, rate = 0.8 / mean;
    assert_ok(cd_qos_run(two, 2, &usual, CD_QOS_FIFO, &r, &err));
    assert_close(r.mean_wait_s, rate * square / (2 * 0.2), 0.06, 0);
    assert_true(r.p50_s <= r.p95_s && r.p95_s <= r.p99_s);
}

/* Of an M/M/c-like queue more places at equal load wait less; beside each other at a factor of 1.5
 * the queue is overloaded. */
TEST(beside) {
    cd_qos_kind a = kind("a", 1, 1, 1, 1e9);
    cd_qos_options o = usual;
    cd_qos_result r, slow;
    o.places = 2;
    assert_ok(cd_qos_run(&a, 1, &o, CD_QOS_FIFO, &r, &err));
    assert_true(r.mean_wait_s < 0.8 / 0.4);
    o.contention = (cd_contention){.beside = 1.5};
    o.load = 0.6;
    assert_ok(cd_qos_run(&a, 1, &o, CD_QOS_FIFO, &slow, &err));
    assert_true(slow.p99_s > 1.5 && slow.busy > 0.7); /* 0.6 alone, nearly 0.9 beside */
}

/* Where times are exact, what is admitted is in time, whatever the load and the company. */
TEST(never_late) {
    static const char table[] =
        HEAD "a,b,disjoint,1,2,1.2,1.3,1,1,0\na,a,disjoint,1,1,1.1,1.1,1,1,0\nb,b,disjoint,2,2,1.4,"
             "1.4,1,1,0\na,c,disjoint,1,.2,1,1.5,1,1,0\nb,c,disjoint,2,.2,1,2,1,1,0\n"
             "c,c,disjoint,.2,.2,1,1,1,1,0\n";
    static cd_corun_table pairs;
    cd_qos_file f = {0};
    const cd_qos_kind k[] = {kind("a", 1, 1, 1, 3), kind("b", 2, 2, 2, 5),
                             kind("c", 0.2, 0.2, 0.2, 0.9)};
    cd_qos_kind q[3];
    memcpy(q, k, sizeof q);
    for (int i = 0; i < 3; i++) q[i].bytes = 0.5 * q[i].seconds;
    assert_ok(cd_file_write(path, table, sizeof table - 1, &err));
    assert_ok(cd_corun_table_read(path, &pairs, &err));
    f.n = 3, f.kind = q;
    assert_ok(cd_qos_pairs(&f, &pairs, &err));
    for (int how = 0; how < 3; how++)
        for (uint32_t places = 1; places <= 4; places++)
            for (double load = 0.5; load < 3; load *= 2) {
                cd_qos_options o = {.places = places,
                                    .load = load,
                                    .queries = 2000,
                                    .runs = 3,
                                    .seed = 1,
                                    .level = 0.9,
                                    .risk = 1e-5};
                cd_qos_result r, all;
                if (how == 1) o.contention = (cd_contention){.peak_bytes_per_s = 1, .beside = 1.2};
                if (how == 2) o.pairs = &pairs;
                for (int p = CD_QOS_UPPER; p <= CD_QOS_BOUND; p++) {
                    assert_ok(cd_qos_run(q, 3, &o, (cd_qos_policy)p, &r, &err));
                    assert_int_equal(r.late, 0);
                    assert_int_equal(r.late_runs, 0);
                    assert_true(r.admitted > 0 && r.admitted <= r.arrived);
                }
                assert_ok(cd_qos_run(q, 3, &o, CD_QOS_FIFO, &all, &err));
                if (load == 2) assert_true(all.late > all.arrived / 2 && r.goodput > all.goodput);
            }
    cd_corun_table_free(&pairs);
}

/* A thousand runs at 90 % load: nothing that "bound" admits is late; "upper" admits more, and some
 * of it is. */
TEST(promise) {
    const cd_qos_kind k[] = {kind("a", 0.010, 0.009, 0.0115, 0.05),
                             kind("b", 0.02, 0.018, 0.024, 0.12)};
    for (int draw = 0; draw < 2; draw++) {
        const cd_qos_options o = {.places = 2,
                                  .load = 0.9,
                                  .queries = 500,
                                  .runs = 1000,
                                  .level = 0.9,
                                  .risk = 1e-5,
                                  .draw = (cd_qos_draw)draw};
        cd_qos_result edf, upper, bound;
        assert_ok(cd_qos_run(k, 2, &o, CD_QOS_EDF, &edf, &err));
        assert_ok(cd_qos_run(k, 2, &o, CD_QOS_UPPER, &upper, &err));
        assert_ok(cd_qos_run(k, 2, &o, CD_QOS_BOUND, &bound, &err));
        assert_int_equal(bound.late, 0);
        assert_true(bound.admitted < upper.admitted && upper.admitted < edf.admitted &&
                    edf.admitted == 500000);
        assert_true(edf.late > 1000 * upper.late / 10);
        assert_true(bound.goodput > edf.goodput);
    }
}

/* Quantiles are those of the interval, the mean that of the draws; a draw for each run is the same
 * for all its queries. */
TEST(draws) {
    const cd_qos_kind k = kind("a", 2, 1.5, 4, 1e9), exact = kind("b", 2, 2, 2, 1e9);
    cd_qos_options o = {
        .places = 1, .load = 1e-4, .queries = 2000, .runs = 50, .level = 0.9, .risk = 1e-5};
    cd_qos_result r;
    double sum = 0;
    assert_close(cd_qos_quantile(&k, 0.9, 0.05), 1.5, 1e-12, 0);
    assert_close(cd_qos_quantile(&k, 0.9, 0.5), 2, 1e-12, 0);
    assert_close(cd_qos_quantile(&k, 0.9, 0.95), 4, 1e-12, 0);
    assert_close(cd_qos_quantile(&exact, 0.9, 0.99), 2, 0, 0);
    for (int i = 0; i < 100000; i++) sum += cd_qos_quantile(&k, 0.9, (i + 0.5) / 100000);
    assert_close(cd_qos_mean(&k, 0.9), sum / 100000, 1e-3, 0);
    /* next to no load: latencies are times */
    assert_ok(cd_qos_run(&k, 1, &o, CD_QOS_FIFO, &r, &err));
    assert_close(r.p50_s, 2, 0.02, 0);
    assert_close(r.p95_s, 4, 0.03, 0);
    o.runs = 1, o.draw = CD_QOS_DRAW_RUN;
    assert_ok(cd_qos_run(&k, 1, &o, CD_QOS_FIFO, &r, &err));
    assert_close(r.p99_s, r.p50_s, 1e-6, 0);
}

TEST(tables) {
    static const struct {
        const char *text, *says;
    } t[] = {
        {"query,seconds\na,1\n",
         ":2: query a: no deadline: a column deadline_s above 0, or --deadline [ESCHEMA]"},
        {"query,seconds,deadline_s\na,1,2\na,2,3\n", ":3: two queries are called 'a' [ESCHEMA]"},
        {"query,seconds,low_s,high_s,deadline_s\na,1,1.1,2,3\n",
         ":2: 1 s is not between low_s 1.1 and high_s 2 [ERANGE]"},
        {"query,seconds,low_s,deadline_s\na,1,1,3\n",
         ": no column 'high_s'; there are query, seconds, low_s, deadline_s [ESCHEMA]"},
        {"query,seconds,deadline_s,weight\na,1,3,0\n",
         ":2: expected a weight above 0 and bytes of at least 0, found 0, 0 [ERANGE]"},
        {"query,seconds,deadline_s\na,0,3\n", ":2: expected seconds above 0, found 0 [ERANGE]"},
        {"query,seconds,deadline_s\na,x,3\n",
         ":2: seconds: expected a number, found 'x' [EPARSE]"}};
    cd_qos_file f;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char want[400];
        snprintf(want, sizeof want, "%s%s", path, t[i].says);
        assert_error(read_text(t[i].text, NULL, 0, &f), want);
        cd_qos_free(&f);
    }
    assert_ok(read_text(
        "query,seconds,low_s,high_s,deadline_s,bytes,weight\na,1,.5,2,,7,3\nb,2,2,2,9,0,1\n", NULL,
        4, &f));
    assert_int_equal(f.n, 2);
    assert_true(!f.exact && f.kind[0].low_s == 0.5 && f.kind[0].high_s == 2 &&
                f.kind[0].deadline_s == 4 && f.kind[1].deadline_s == 9 && f.kind[0].bytes == 7 &&
                f.kind[0].weight == 3);
    cd_qos_free(&f);
    assert_ok(read_text("query,seconds\na,1\n", NULL, 4, &f));
    assert_true(f.exact && f.kind[0].low_s == 1 && f.kind[0].high_s == 1);
    cd_qos_free(&f);
}

#define ESTIMATE(net, dev, s)                                                                      \
    "{\"network\":\"" net "\",\"device\":\"" dev "\",\"batch\":8,\"latency_s\":" s                 \
    ",\"low_s\":0.5,\"high_s\":2.5,\"level\":0.8}"
#define FAILED                                                                                     \
    "{\"network\":\"z\",\"device\":\"v100\",\"error\":{\"code\":\"ENODATA\",\"key\":null,"         \
    "\"message\":\"none\"}}"
TEST(estimates) {
    cd_qos_file f;
    char want[400];
    assert_ok(read_text("{\"result\":{\"estimates\":[" ESTIMATE(
                            "a", "v100", "1") "," FAILED "," ESTIMATE("b", "v100", "2") "]}}",
                        NULL, 4, &f));
    assert_int_equal(f.n, 2);
    assert_string_equal(f.kind[1].name, "b/8");
    assert_true(f.level == 0.8 && f.kind[1].seconds == 2 && f.kind[1].low_s == 0.5 &&
                f.kind[1].high_s == 2.5 && f.kind[1].deadline_s == 4);
    cd_qos_free(&f);
    snprintf(want, sizeof want,
             "%s: estimates[1]: estimates of v100 and k80: --device says which [ESCHEMA]", path);
    assert_error(read_text("{\"result\":{\"estimates\":[" ESTIMATE("a", "v100", "1") "," ESTIMATE(
                               "a", "k80", "2") "]}}",
                           NULL, 4, &f),
                 want);
    cd_qos_free(&f);
    assert_ok(read_text("{\"result\":{\"estimates\":[" ESTIMATE("a", "v100", "1") "," ESTIMATE(
                            "a", "k80", "2") "]}}",
                        "k80", 4, &f));
    assert_true(f.n == 1 && f.kind[0].seconds == 2);
    cd_qos_free(&f);
    snprintf(want, sizeof want, "%s: no estimate of t4 [ENODATA]", path);
    assert_error(
        read_text("{\"result\":{\"estimates\":[" ESTIMATE("a", "v100", "1") "]}}", "t4", 4, &f),
        want);
    cd_qos_free(&f);
    snprintf(want, sizeof want, "%s: estimates[0]: a on v100 has no interval [ENODATA]", path);
    assert_error(
        read_text("{\"result\":{\"estimates\":[{\"network\":\"a\",\"device\":\"v100\",\"batch\":"
                  "null,\"latency_s\":1,\"low_s\":null,\"high_s\":null,\"level\":0.9}]}}",
                  NULL, 4, &f),
        want);
    cd_qos_free(&f);
}

TEST(refused) {
    const cd_qos_kind good = kind("a", 1, 1, 1, 2), bad = kind("a", 1, 2, 1, 2);
    const volatile sig_atomic_t stop = 1;
    cd_qos_options o = usual;
    cd_qos_result r;
    assert_status(cd_qos_run(&good, 0, &o, CD_QOS_EDF, &r, &err), CDMPP_ERANGE);
    assert_status(cd_qos_run(&bad, 1, &o, CD_QOS_EDF, &r, &err), CDMPP_ERANGE);
    o.places = 0;
    assert_status(cd_qos_run(&good, 1, &o, CD_QOS_EDF, &r, &err), CDMPP_ERANGE);
    o = usual, o.risk = 0;
    assert_status(cd_qos_run(&good, 1, &o, CD_QOS_EDF, &r, &err), CDMPP_ERANGE);
    o = usual, o.stop = &stop;
    assert_status(cd_qos_run(&good, 1, &o, CD_QOS_EDF, &r, &err), CDMPP_EINTERRUPTED);
}

/* Arrivals of a file: each in its time, any allocation may fail. */
TEST(arrivals) {
    static const char csv[] = "query,at_s\nb,0.5\na,0.5\nb,3\n";
    char file[256];
    cd_qos_file k;
    cd_qos_result r;
    snprintf(file, sizeof file, "%s", tmp_put(&dir, "arrivals.csv", csv, sizeof csv - 1));
    assert_ok(read_text("query,seconds,deadline_s\na,1,9\nb,2,9\n", NULL, 0, &k));
    FAULT_SWEEP(f, 1) {
        cd_qos_options o = usual;
        f.st = cd_qos_read_arrivals(file, &k, &o.arrival, &o.queries, &err);
        o.runs = 2;
        if (!f.st) f.st = cd_qos_run(k.kind, k.n, &o, CD_QOS_FIFO, &r, &err);
        fault_off();
    }
    assert_int_equal(r.arrived, 6);
    /* a waits for the first b, 2 s, the second b for a, until 3.5 */
    assert_close(r.mean_wait_s, 2.5 / 3, 1e-12, 0);
    assert_close(r.busy, 5 / 5.5, 1e-12, 0);
    assert_close(r.p50_s, 2.5, 1e-12, 0);
    /* of a, which waits for b: were the kinds drawn, it would be another */
    assert_close(r.p99_s, 3, 1e-12, 0);
    cd_qos_free(&k);
}

TESTS(set_up, tear_down, closed_forms, beside, never_late, promise, draws, tables, estimates,
      refused, arrivals)
