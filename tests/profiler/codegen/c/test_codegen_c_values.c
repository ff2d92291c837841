/* Any legal schedule computes what the task says, also where fused axes, conditions and index
 * arithmetic meet a vector, and where a loop is too long to be written out: schedules of the sketch
 * rules, and random steps. CDMPP_ROUNDS asks for more. */
#include "check.h"
#include "cprog.h"
#include "features/sketch/sketch.h"
#include "randsched.h"

#define IN(name, shape) "{\"name\": \"" name "\", \"shape\": [" shape "], \"dtype\": \"float32\"}"
#define OP2(name, n, m, body)                                                                      \
    "{\"name\": \"" name "\", \"axis\": [[\"i\", 0, " #n "], [\"j\", 0, " #m                       \
    "]], \"body\": \"" body "\"}"
#define OP3(name, l, n, m, body)                                                                   \
    "{\"name\": \"" name "\", \"axis\": [[\"h\", 0, " #l "], [\"i\", 0, " #n "], [\"j\", 0, " #m   \
    "]], \"body\": \"" body "\"}"
#define SUM " \"reduce\": \"sum\", \"body\": "

enum { LAYOUT, CONCAT };
static const char *const text[] = {
    /* channels first to channels last */
    [LAYOUT] = "\"ops\": [" IN("x", "3, 6, 64") "," OP3("y", 6, 64, 3, "x[j, h, i]") "]",
    [CONCAT] = "\"ops\": [" IN("a", "4, 128") "," IN("b", "4, 128") "," OP2(
        "y", 4, 256, "if_then_else(128 <= j, b[i, j - 128], a[i, j])") "]",
    /* the same with parts whose seams are in the middle of registers, then an operator after
     * them */
    "\"ops\": [" IN("a", "5, 37") "," IN("b", "5, 30") "," IN("c", "5, 61") "," OP2(
        "y", 5, 128,
        "if_then_else(67 <= j, c[i, j - 67], if_then_else(37 <= j, b[i, j - "
        "37], a[i, j]))") "," OP2("z", 5, 128, "max(y[i, j], 0.0)") "]",
    /* a rim on both sides; a maximum over windows of it */
    "\"ops\": [" IN("x", "9, 7, 40") "," OP3(
        "p", 11, 9, 40,
        "if_then_else(h >= 1 && h < 10 && i >= 1 && i < 8, x[h - 1, i - 1, j], "
        "-99.0)") ", {\"name\": \"y\", \"axis\": [[\"h\", 0, 5], [\"i\", 0, "
                  "4], [\"j\", 0, 40]], \"reduce_axis\": [[\"u\", 0, 3], "
                  "[\"v\", 0, 3]],"
                  "\"reduce\": \"max\", \"body\": \"p[h*2 + u, i*2 + v, j]\"}]",
    /* a rim in the innermost axis */
    "\"ops\": [" IN("x", "6, 70") "," OP2(
        "p", 8, 77, "if_then_else(i >= 1 && i < 7 && j >= 3 && j < 73, x[i - 1, j - 3], 0.0)") "]",
    /* convolution, bias, relu; channels last */
    "\"ops\": [" IN("x", "8, 8, 5") "," IN("w", "3, 3, 5, 48") "," IN("b", "48") "," OP3(
        "p", 9, 9, 5,
        "if_then_else(h < 8 && i < 8, x[h, i, j], 0.0)") ", {\"name\": \"y\", \"axis\": [[\"h\", "
                                                         "0, 4], [\"i\", 0, 4], [\"j\", 0, 48]], "
                                                         "\"reduce_axis\": [[\"u\", 0, 3], [\"v\", "
                                                         "0, 3], [\"c\", 0, 5]]," SUM
                                                         "\"p[h*2 + u, i*2 + v, c]*w[u, v, c, "
                                                         "j]\"}," OP3(
                                                             "z", 4, 4, 48,
                                                             "max(y[h, i, j] + b[j], 0.0)") "]",
    /* matrix product with packed weights, sizes that few lengths divide */
    "\"ops\": [" IN("A", "10, 21") ", {\"name\": \"B\", \"shape\": [21, 66], \"dtype\": "
                                   "\"float32\", \"layout_free\": true},"
                                   "{\"name\": \"mm\", \"axis\": [[\"i\", 0, 10], [\"j\", 0, 66]], "
                                   "\"reduce_axis\": [[\"k\", 0, 21]]," SUM
                                   "\"A[i, k]*B[k, j]\"}," OP2("out", 10, 66,
                                                               "max(mm[i, j] + A[i, 0], 0)") "]",
    /* one side transposed */
    "\"ops\": [" IN("A", "2, 12, 35") "," IN(
        "B", "2, 44, 35") ", {\"name\": \"y\", \"axis\": [[\"h\", 0, 2], [\"i\", 0, 12], [\"j\", "
                          "0, 44]],"
                          "\"reduce_axis\": [[\"k\", 0, 35]]," SUM "\"A[h, i, k]*B[h, j, k]\"}]",
    /* softmax */
    "\"ops\": [" IN(
        "x", "6, 90") ", {\"name\": \"m\", \"axis\": [[\"i\", 0, 6]], \"reduce_axis\": "
                      "[[\"k\", 0, 90]], \"reduce\": \"max\", \"body\": \"x[i, "
                      "k]\"}," OP2("e", 6, 90,
                                   "exp(x[i, j] - m[i])") ", {\"name\": \"s\", \"axis\": "
                                                          "[[\"i\", 0, 6]], \"reduce_axis\": "
                                                          "[[\"k\", 0, 90]]," SUM
                                                          "\"e[i, k]\"}," OP2("y", 6, 90,
                                                                              "e[i, j]/s[i]") "]",
    /* every third element from the end, then every second row */
    "\"ops\": [" IN("x", "7, 150") "," OP2("y", 7, 50, "x[6 - i, 149 - j*3]") "," OP2(
        "z", 4, 50, "y[i*2, 49 - j] + y[i, j]") "]",
    /* blocks of channels, there and back */
    "\"ops\": [" IN("x", "24, 5, 7") ", {\"name\": \"b\", \"axis\": [[\"o\", 0, 3], [\"h\", 0, 5], "
                                     "[\"w\", 0, 7], [\"c\", 0, 8]], \"body\": \"x[o*8 + c, h, "
                                     "w]*2\"}," OP3("y", 24, 5, 7,
                                                    "b[h // 8, i, j, h % 8] + 1") "]",
    /* a reshape: quotients and remainders of one long index */
    "\"ops\": [" IN("x", "6, 10, 14") ", {\"name\": \"f\", \"axis\": [[\"n\", 0, 840]], \"body\": "
                                      "\"x[n // 140, n % 140 // 14, n % 14]\"}," OP2(
                                          "y", 35, 24, "f[i*24 + j] - f[839 - i*24 - j]") "]",
    /* chosen by the index: a chessboard, the nearest pixel, values of the index */
    "\"ops\": [" IN("x", "9, 66") "," OP2(
        "s", 9, 66,
        "select((i + j) % 2 == 0, x[i, j], 0 - x[i, 65 - j])") "," OP2("y", 9, 132,
                                                                       "s[i*2 // 3, j // 2] + "
                                                                       "float32(j % 5) + "
                                                                       "float32(max(j - 60, "
                                                                       "i))") "]",
    /* rows that a tensor names */
    "\"ops\": [" IN("x", "8, 40") "," IN("n", "3, 4") "," OP2(
        "y", 12, 40, "x[min(max(int32(n[i // 4, i % 4]), 0), 7), j]") "," OP2("z", 12, 80,
                                                                              "y[i, j // 2]*2") "]",
    /* the mean of all; the largest's place, and it */
    "\"ops\": [" IN("x", "6, 50") ", {\"name\": \"m\", \"axis\": [[\"i\", 0, 1]], \"reduce_axis\": "
                                  "[[\"a\", 0, 6], [\"b\", 0, 50]]," SUM
                                  "\"x[a, b]\"}," OP2("y", 6, 50, "x[i, j] - m[0]/256") "]",
    "\"ops\": [" IN(
        "x", "50, 70") ", {\"name\": \"m\", \"axis\": [[\"i\", 0, 50]], \"reduce_axis\": [[\"k\", "
                       "0, 70]], \"reduce\": {\"lhs\": [\"b\", \"a\"],"
                       "\"rhs\": [\"d\", \"c\"], \"result\": [\"select(a > c, b, select(a == c, "
                       "min(b, d), d))\", \"max(a, c)\"], \"identity\": [\"1000.0\", \"-10.0\"]},"
                       "\"body\": [\"float32(k)\", \"x[i, k]\"]}]",
};
enum { N_TASK = sizeof text / sizeof *text };

static void add(cprog *c, size_t task, const char *steps) {
    cd_arena a = {0};
    cd_record r;
    cdmpp_err err = {0};
    assert_ok(prog_record(&a, "0", PROG_CPU, steps, &r, &err));
    assert_true(cp_add(c, task, &r));
    cd_arena_free(&a);
}

/* A vector over a fused index, longer than what is written out, whose lanes are at places that only
 * a quotient tells. */
TEST(test_fused_vector) {
    cprog c;
    cp_open(&c, text, N_TASK);
    for (int width = 0; width < 3; width++) {
        add(&c, LAYOUT, "[[\"FU\", 1, [1, 2]], [\"AN\", 1, 1, 2]]");
        add(&c, LAYOUT, "[[\"FU\", 1, [0, 1, 2]], [\"AN\", 1, 0, 2]]");
        add(&c, LAYOUT,
            "[[\"FU\", 1, [0]], [\"AN\", 1, 0, 3], [\"FU\", 1, [1, 2]], [\"AN\", 1, 1, 2]]");
    }
    assert_int_equal(cp_run_all(&c), 0);
    cp_close(&c);
}

/* A condition that differs between lanes of one register, and between registers. */
TEST(test_condition_in_a_vector) {
    cprog c;
    cp_open(&c, text, N_TASK);
    for (int width = 0; width < 3; width++) {
        add(&c, CONCAT, "[[\"AN\", 2, 1, 2]]");
        add(&c, CONCAT, "[[\"FU\", 2, [0, 1]], [\"AN\", 2, 0, 2]]");
        add(&c, CONCAT, "[[\"SP\", 2, 1, 256, [13], 1], [\"AN\", 2, 2, 2]]");
        add(&c, CONCAT + 1, "[[\"AN\", 3, 1, 2], [\"AN\", 4, 1, 2]]");
    }
    assert_int_equal(cp_run_all(&c), 0);
    cp_close(&c);
}

/* ---- random schedules ---- */

/* Loops of a random stage become one, and that a vector; what the schedule refuses is dropped. */
static void vectorize(randsched *r) {
    for (int k = 0; k < 3 && r->n + 2 <= RS_MAX; k++) {
        if (rs_replay(r, false, NULL)) return;
        const int32_t stage = (int32_t)rs_below(r, r->s.order.n);
        const uint32_t axes = r->s.stage[r->s.order.p[stage]].axes.n, it = rs_below(r, axes);
        cd_record_step fuse = {.kind = CD_RECORD_STEP_FU, .stage = stage, .i = {(int32_t)it}};
        if (!axes) continue;
        rs_run(r, &fuse, it, 1 + rs_below(r, axes - it));
        r->step[r->n++] = fuse;
        if (rs_replay(r, true, NULL)) r->n--;
        r->step[r->n++] =
            (cd_record_step){.kind = CD_RECORD_STEP_AN, .stage = stage, .i = {(int32_t)it, 2}};
        if (rs_replay(r, true, NULL)) r->n--;
    }
}

static int rounds(void) { return getenv("CDMPP_ROUNDS") ? atoi(getenv("CDMPP_ROUNDS")) : 3; }

TEST(test_random_steps) {
    cprog c;
    randsched r = {.t.open = -1};
    cdmpp_err err = {0};
    cp_open(&c, text, N_TASK);
    assert_ok(cd_schedule_init(&r.s, &err));
    for (size_t k = 0; k < N_TASK; k++)
        for (int i = 0; i < rounds(); i++) {
            r.rng = (uint64_t)i * 7919 + k;
            assert_ok(rs_make(&r, cd_task_registry_at(c.tasks, k)->dag, rs_below(&r, 8), &err));
            vectorize(&r);
            cd_record one = rs_record(&r);
            one.layout_rewrite = 2;
            cp_add(&c, k, &one);
        }
    print_message("%zu programs\n", c.n);
    assert_true(c.n > N_TASK);
    assert_int_equal(cp_run_all(&c), 0);
    cp_close(&c);
    cd_schedule_free(&r.s);
    cd_ast_free(&r.t);
    cd_arena_free(&r.a);
}

TEST(test_drawn) {
    static const cd_hardware cpu = {
        .num_cores = 2, .vector_unit_bytes = 64, .cache_line_bytes = 64};
    cprog c;
    cdmpp_err err = {0};
    cp_open(&c, text, N_TASK);
    for (size_t k = 0; k < N_TASK; k++) {
        cd_sketch_space *space;
        cd_sketch_sampler *sampler;
        assert_ok(cd_sketch_space_new(cd_task_registry_at(c.tasks, k), &cpu, false, &space, &err));
        assert_ok(cd_sketch_sampler_new(space, 7, &sampler, &err));
        for (int i = 0; i < rounds(); i++) {
            cd_sketch_sample s;
            if (cd_sketch_sampler_draw(sampler, (uint64_t)i, &s, &err)) continue;
            const randsched none = {0};
            cd_record r = rs_record(&none);
            r.step = s.step;
            r.n_step = s.n_step;
            r.layout_rewrite = 2;
            cp_add(&c, k, &r);
        }
        cd_sketch_sampler_free(sampler);
        cd_sketch_space_free(space);
    }
    print_message("%zu programs\n", c.n);
    assert_true(c.n > N_TASK);
    assert_int_equal(cp_run_all(&c), 0);
    cp_close(&c);
}

TESTS(NULL, NULL, test_fused_vector, test_condition_in_a_vector, test_random_steps, test_drawn)
