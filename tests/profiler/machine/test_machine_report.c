/* A machine printed: every number is another one, so each stands in its own place; and links fitted
 * to pairs of a file. */
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "check.h"
#include "profiler/machine/machine_report.h"
#include "tmp.h"

static cdmpp_err err;

static void make(cd_machine *m) {
    static const cd_link_piece two[] = {{0, 1e-6, 1e-9}, {1024, 1e-6 + 1024e-9, 0}};
    cd_machine_init(m);
    assert_ok(cd_machine_add(m,
                             &(cd_machine_device){.name = "cpu0",
                                                  .kind = "cpu",
                                                  .core = 3,
                                                  .scale = 1.25,
                                                  .launch_s = 11e-6,
                                                  .sync_s = 12e-6,
                                                  .wake_s = 13e-6,
                                                  .as = "zen",
                                                  .target = "llvm"},
                             &err));
    assert_ok(cd_machine_add(m,
                             &(cd_machine_device){.name = "ocl0",
                                                  .kind = "opencl",
                                                  .opencl = "pocl:0",
                                                  .core = -1,
                                                  .scale = 1,
                                                  .times = 30,
                                                  .memory = 2,
                                                  .launch_s = 14e-6,
                                                  .sync_s = 15e-6,
                                                  .wake_s = 16e-6},
                             &err));
    assert_ok(cd_machine_add(
        m,
        &(cd_machine_device){
            .name = "ocl1", .kind = "native", .opencl = "pocl:1", .core = 5, .scale = 1},
        &err));
    assert_ok(cd_machine_add(
        m, &(cd_machine_device){.name = "t4", .kind = "model", .core = -1, .scale = 1}, &err));
    assert_ok(cd_link_table_add(&m->links, &(cd_link){"cpu0", "ocl0", "write", 2, 21, two, 0.0625},
                                &err));
    m->contention = (cd_contention){
        .peak_bytes_per_s = 8e9, .beside = 1.5, .turn = 2.5, .n_pair = 22, .error = 0.125};
}

/* "@": a time in nine characters, "~" one as it is. */
static void has(const char *text, const char *form, const double *s) {
    cd_buf want = {0};
    for (; *form; form++) {
        if (*form == '@') cd_units_put_seconds_wide(&want, *s++);
        else if (*form == '~') cd_units_put_seconds(&want, *s++);
        else cd_buf_put(&want, form, 1);
    }
    if (!strstr(text, want.p)) fail_msg("no\n%sin\n%s", want.p, text);
    cd_buf_free(&want);
}

static void test_table(void **state) {
    cd_machine m;
    cd_buf b = {0};
    (void)state;
    make(&m);
    cd_machine_report_text(&m, NULL, &b);
    has(b.p,
        "\ncpu0     cpu     core 3                 host    @  @  @  zen                   1.25\n",
        (const double[]){11e-6, 12e-6, 13e-6});
    has(b.p,
        "\nocl0     opencl  pocl:0                 own 2   @  @  @  -                        1  "
        "each run 30 times\n",
        (const double[]){14e-6, 15e-6, 16e-6});
    has(b.p, "\nocl1     native  pocl:1, core 5         host    @", (const double[]){0});
    has(b.p, "\nt4       model   -                      host    @", (const double[]){0});
    /* 1 us and a nanosecond a byte up to 1 KiB, then nothing more */
    has(b.p,
        "\ncpu0 > ocl0        write  @  @  @  @     21    6.2 %\n    from 0 B on: ~, then 1 GB/s\n "
        "   from 1 KiB on: ~, whatever the size\n",
        (const double[]){2.024e-6, 2.024e-6, 2.024e-6, 2.024e-6, 1e-6, 2.024e-6});
    has(b.p,
        "\nBeside each other: memory gives 8 GB/s in all, 1.5 times as long on cores of their own, "
        "2.5 times on the same (22 pairs, error 12.5 %)\n",
        NULL);
    assert_null(strstr(b.p, "off the pairs"));
    cd_buf_clear(&b);
    m.contention.peak_bytes_per_s = 0;
    cd_machine_report_text(&m, &(cd_link_error){.mean = 0.25, .worst = 0.5, .worst_bytes = 4096},
                           &b);
    has(b.p, "\nBeside each other: 1.5 times as long", NULL);
    has(b.p,
        "\nThe pieces are off the pairs by 25.0 % in the mean, by 50.0 % at worst, at 4 KiB.\n",
        NULL);
    cd_buf_clear(&b);
    m.n = 0, m.contention.beside = 0; /* a file of links */
    cd_machine_report_text(&m, NULL, &b);
    assert_true(!strncmp(b.p, "link ", 5) && !strstr(b.p, "Beside"));
    cd_buf_free(&b);
    cd_machine_free(&m);
}

/* More pieces than a table shows: the last one's bandwidth. */
static void test_many_pieces(void **state) {
    cd_link_piece piece[7];
    cd_machine m;
    cd_buf b = {0};
    (void)state;
    for (int few = 0; few < 2; few++) {
        cd_machine_init(&m);
        for (int i = 0; i < 7; i++)
            piece[i] = (cd_link_piece){
                1000.0 * i, i ? piece[i - 1].seconds + 1000 * piece[i - 1].s_per_byte : 1e-6,
                1e-9 / (i + 1)};
        assert_ok(cd_link_table_add(&m.links,
                                    &(cd_link){"a", "b", "copy", few ? 6 : 7, 9, piece, 0}, &err));
        cd_machine_report_text(&m, NULL, &b);
        assert_int_equal(strstr(b.p, "    7 pieces: 7 GB/s in the last\n") != NULL, !few);
        assert_int_equal(strstr(b.p, "    from 0 B on: ") != NULL, few);
        cd_buf_clear(&b);
        cd_machine_free(&m);
    }
    cd_buf_free(&b);
}

static void test_json(void **state) {
    cd_machine m;
    cd_buf b = {0};
    (void)state;
    make(&m);
    m.device[0].launch_s = 0.5, m.device[0].sync_s = 0.25, m.device[0].wake_s = 0.125, m.n = 1;
    m.links.link[0].piece = (const cd_link_piece[]){{0, 2, 0.5}, {4, 4, 0.25}};
    cd_machine_report_json(&m, &(cd_link_error){.mean = 0.25, .worst = 0.5, .worst_bytes = 4096},
                           &b);
    assert_string_equal(
        b.p,
        "{\"devices\":[{\"name\":\"cpu0\",\"kind\":\"cpu\",\"opencl\":null,\"as\":\"zen\","
        "\"target\":\"llvm\",\"core\":3,\"memory\":0,\"times\":1,\"scale\":1.25,"
        "\"launch_s\":0.5,\"sync_s\":0.25,\"wake_s\":0.125}],\"links\":[{\"from\":\"cpu0\",\"to\":"
        "\"ocl0\",\"how\":\"write\",\"latency_s\":2,\"bytes_per_s\":4,"
        "\"n\":21,\"noise\":0.0625,\"pieces\":[{\"bytes\":0,\"seconds\":2,\"s_per_byte\":0.5},{"
        "\"bytes\":4,\"seconds\":4,\"s_per_byte\":0.25}]}],"
        "\"contention\":{\"peak_bytes_per_s\":8000000000,\"beside\":1.5,\"turn\":2.5,\"pairs\":22,"
        "\"error\":0.125},\"mean_error\":0.25,\"worst_error\":0.5,\"worst_bytes\":4096}");
    cd_buf_clear(&b);
    m.n = 0, m.links.n = 0, m.contention.beside = 0;
    cd_machine_report_json(&m, NULL, &b);
    assert_string_equal(b.p, "{\"devices\":[],\"links\":[],\"contention\":null}");
    cd_buf_free(&b);
    cd_machine_free(&m);
}

/* Pairs by a law of 2 us and 1 ns a byte; then one pair that is twice as slow. */
static void test_pairs_of_a_file(void **state) {
    tmp_dir dir = tmp_make();
    cd_buf text = {0};
    (void)state;
    for (int odd = 0; odd < 2; odd++) {
        cd_link_table l;
        cd_link_error e = {0};
        cd_link_table_init(&l);
        cd_buf_clear(&text);
        cd_buf_puts(&text, "seconds,bytes\n");
        for (int k = 4; k < 24; k++)
            cd_buf_putf(&text, "%.17g,%d\n", (2e-6 + 1e-9 * (1 << k)) * (odd && k == 6 ? 2 : 1),
                        1 << k);
        assert_ok(cd_link_pairs_fit(tmp_put(&dir, "p.csv", text.p, text.n), "a", "b", "copy", &l,
                                    &e, &err));
        const cd_link *k = cd_link_table_find(&l, "a", "b");
        assert_int_equal(k->n, 20);
        assert_string_equal(k->how, "copy");
        double mean = 0, worst = 0;
        for (int i = 4; i < 24; i++) {
            const double off = fabs(
                cd_link_cost(k, 1 << i) / ((2e-6 + 1e-9 * (1 << i)) * (odd && i == 6 ? 2 : 1)) - 1);
            mean += off / 20, worst = fmax(worst, off);
        }
        assert_close(e.mean, mean, 1e-9, 1e-15);
        assert_close(e.worst, worst, 1e-9, 1e-15);
        if (odd) assert_close(e.worst_bytes, 64, 0, 0);
        else assert_true(e.worst < 0.02);
        cd_link_table_free(&l);
    }
    static const char *const bad[] = {"bytes,s\n1,2\n", "seconds\n1\n", "seconds,bytes\n1,1\n2,2\n",
                                      "seconds,bytes\nx,1\n2,2\n3,3\n"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        cd_link_table l;
        cd_link_error e;
        cd_link_table_init(&l);
        assert_true(cd_link_pairs_fit(tmp_put(&dir, "bad.csv", bad[k], strlen(bad[k])), "a", "b",
                                      "copy", &l, &e, &err) != CDMPP_OK);
        assert_non_null(strstr(err.path, "bad.csv"));
        cd_link_table_free(&l);
    }
    cd_buf_free(&text);
    tmp_remove(&dir);
}

TESTS(NULL, NULL, test_table, test_many_pieces, test_json, test_pairs_of_a_file)
