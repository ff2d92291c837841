/* Facts of programs: the table, laws that hold whatever the schedule, what is refused, memory. */
#include <math.h>
#include <stdlib.h>

#include "facts_checks.h"

TEST(columns) {
    const cd_fact_col *c = cd_facts_cols(CD_FACTS_OF_CPU);
    char digest[65], other[65];
    for (int set = 0; set < CD_N_FACTS_SET; set++) {
        const cd_fact_col *x = cd_facts_cols((cd_facts_set)set);
        for (size_t i = 0; i < cd_facts_count((cd_facts_set)set); i++) {
            assert_true(x[i].name[0] && x[i].unit[0] && x[i].meaning[0]);
            for (size_t j = 0; j < i; j++) assert_string_not_equal(x[i].name, x[j].name);
        }
    }
    assert_int_equal(cd_facts_count(CD_FACTS_OF_CPU), CD_N_FACTS);
    assert_int_equal(cd_facts_count(CD_FACTS_OF_GPU), CD_N_GPU_FACTS);
    assert_string_equal(cd_facts_set_name(CD_FACTS_OF_GPU), "gpu");
    assert_string_equal(c[CD_FACT_FETCHED_0].name, "fetched_4k");
    assert_string_equal(c[CD_FACT_FETCHED_0 + CD_N_FACT_CAPACITY - 1].name, "fetched_128m");
    assert_string_equal(c[CD_FACT_WRITTEN_0].name, "written_4k");
    cd_facts_cols_digest(CD_FACTS_OF_CPU, digest);
    cd_facts_cols_digest(CD_FACTS_OF_GPU, other);
    assert_int_equal(strlen(digest), 64);
    assert_string_not_equal(digest, other);
}

/* The page has the table as it is. */
TEST(manual) {
    static char text[1 << 16];
    cd_buf b = {0};
    FILE *f = fopen("docs/reference/facts.md", "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    for (int set = 0; set < CD_N_FACTS_SET; set++) {
        cd_buf_clear(&b);
        cd_facts_cols_print((cd_facts_set)set, &b);
        assert_false(b.oom);
        assert_non_null(strstr(text, b.p));
    }
    cd_buf_free(&b);
}

typedef struct {
    cd_facts *f;
    double flop, calls;
    bool fixed; /* every schedule does the same operations */
    float first[CD_N_FACTS];
    size_t n;
} laws;

static void check_memory(const float *x) {
    for (int c = 0; c < CD_N_FACT_CAPACITY; c++) {
        const double more = 1.00001;
        assert_true(fact_at(x, CD_FACT_FETCHED_0 + c) * more >= fact_at(x, CD_FACT_LINES));
        if (c)
            assert_true(fact_at(x, CD_FACT_FETCHED_0 + c) <=
                        fact_at(x, CD_FACT_FETCHED_0 + c - 1) * more);
        if (c)
            assert_true(fact_at(x, CD_FACT_WRITTEN_0 + c) <=
                        fact_at(x, CD_FACT_WRITTEN_0 + c - 1) * more);
    }
    assert_close(fact_at(x, CD_FACT_FETCHED_0 + CD_N_FACT_CAPACITY - 1), fact_at(x, CD_FACT_LINES),
                 1e-6, 0);
    assert_close(fact_at(x, CD_FACT_LINES_INPUT) + fact_at(x, CD_FACT_LINES_OUTPUT) +
                     fact_at(x, CD_FACT_LINES_SCRATCH),
                 fact_at(x, CD_FACT_LINES), 1e-6, 0);
    assert_true(fact_at(x, CD_FACT_PAGES_64) >= 1 &&
                fact_at(x, CD_FACT_PAGES_2048) <= fact_at(x, CD_FACT_PAGES_64) * 1.00001);
}

static void check_threads(const float *x) {
    const int on[] = {CD_FACT_SHARE_2,  CD_FACT_SHARE_4,  CD_FACT_SHARE_8,
                      CD_FACT_SHARE_16, CD_FACT_SHARE_32, CD_FACT_SHARE_64};
    double before = 1;
    for (int k = 0; k < 6; k++) {
        assert_true(fact_at(x, on[k]) <= before * 1.00001 &&
                    fact_at(x, on[k]) >= 0.99999 / (2 << k));
        assert_true(fact_at(x, on[k]) >= fact_at(x, CD_FACT_SERIAL_SHARE) * 0.99999);
        before = fact_at(x, on[k]);
    }
}

/* The loops that are told apart give the same time on any number of threads, where they are all of
 * the program. */
static void check_regions(const float *x) {
    const int on[] = {CD_FACT_SHARE_2,  CD_FACT_SHARE_4,  CD_FACT_SHARE_8,
                      CD_FACT_SHARE_16, CD_FACT_SHARE_32, CD_FACT_SHARE_64};
    double sum[6], all = fact_at(x, CD_FACT_SERIAL_SHARE), last = 1;
    for (int k = 0; k < 6; k++) sum[k] = all;
    for (int r = 0; r < CD_N_FACT_REGION; r++) {
        const double chunks = fact_at(x, CD_FACT_REGION_1_CHUNKS + 2 * r),
                     part = fact_at(x, CD_FACT_REGION_1_SHARE + 2 * r);
        assert_true((chunks >= 1) == (part > 0) && part <= last * 1.00001);
        last = part;
        all += part;
        for (int k = 0; k < 6 && chunks > 0; k++) sum[k] += part * ceil(chunks / (2 << k)) / chunks;
    }
    assert_true(all <= 1.00001);
    for (int k = 0; k < 6 && all > 0.99999; k++) assert_close(sum[k], fact_at(x, on[k]), 1e-4, 0);
}

static void one(void *ctx, const cd_nest *nest) {
    laws *l = ctx;
    float x[CD_N_FACTS];
    facts_twice(l->f, CD_FACTS_OF_CPU, nest, x);
    check_memory(x);
    check_threads(x);
    check_regions(x);
    if (l->fixed) assert_close(fact_at(x, CD_FACT_FLOP), l->flop, 1e-6, 0);
    if (l->fixed) assert_close(fact_at(x, CD_FACT_CALLS_DIVIDE), l->calls, 1e-6, 0);
    assert_true(fact_at(x, CD_FACT_CORE_CYCLES) * 1.00001 >= fact_at(x, CD_FACT_PORT_CYCLES));
    assert_true(fact_at(x, CD_FACT_VECTOR_OPS) + fact_at(x, CD_FACT_PART_OPS) +
                    fact_at(x, CD_FACT_SCALAR_OPS) >
                0);
    assert_close(fact_at(x, CD_FACT_MAIN_SHARE), 0.5, 0, 0.5);
    if (!l->n++) memcpy(l->first, x, sizeof x);
}

/* Operations do not depend on the schedule, traffic falls with the capacity, threads only help, the
 * same program gives the same bits. */
static void test_laws(void **state) {
    static const struct {
        size_t task;
        double flop, calls;
    } row[] = {
        {MADE_F_MATMUL, 2 * 16 * 32 * 24, 0},   {MADE_F_MATMUL_RELU, 2 * 20 * 24 * 12 + 20 * 24, 0},
        {MADE_F_CONV, 2 * 64 * 16 * 72, 0},     {MADE_F_DEPTHWISE, 2 * 25 * 16 * 9 + 25 * 16, 0},
        {MADE_F_TRANSPOSE, 48 * 32, 0},         {MADE_F_RESHAPE, 24 * 16, 0},
        {MADE_F_BATCH, 2 * 4 * 16 * 16 * 16, 0}};
    cdmpp_err err = {0};
    laws l = {0};
    assert_ok(cd_facts_new(&l.f, &err));
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        l.flop = row[k].flop;
        l.calls = row[k].calls;
        l.fixed = true;
        assert_true(made_facts_each(*state, row[k].task, 30, one, &l) > 20);
    }
    l.fixed = false; /* rfactor adds sums of parts */
    made_facts_each(*state, MADE_F_NORM, 30, one, &l);
    cd_facts_free(l.f);
}

/* Extents that are no constants, and GPU programs. */
static void test_refused(void **state) {
    cd_arena a = {0};
    cdmpp_err err = {0};
    cd_facts *f;
    cd_nest nest;
    float x[CD_N_FACTS];
    assert_ok(cd_facts_new(&f, &err));
    facts_lower(*state, MADE_F_MATMUL, PROG_CPU, "[]", &a, &nest);
    cd_ast t = facts_copy(&a, nest.ast);
    nest.ast = &t;
    assert_ok(cd_facts_cpu(f, &nest, x, &err));
    int32_t loop = 0;
    while (t.node[loop].kind != CD_AST_FOR) loop++;
    const cd_ast_node kept = t.node[loop];
    t.node[loop].extent_e = kept.var;
    assert_status(cd_facts_cpu(f, &nest, x, &err), CDMPP_EUNSUPPORTED);
    assert_string_equal(err.msg, "facts: a loop whose extent is no constant");
    t.node[loop] = kept;
    t.node[loop].kind = CD_AST_THREAD;
    assert_status(cd_facts_cpu(f, &nest, x, &err), CDMPP_EUNSUPPORTED);
    assert_non_null(strstr(err.msg, "thread axes"));
    t.node[loop] = kept;
    t.node[loop].extent = INT64_MAX / 2;
    assert_status(cd_facts_cpu(f, &nest, x, &err), CDMPP_EUNSUPPORTED);
    t.node[loop].extent = (int64_t)1 << 40; /* counts leave int64, not float */
    assert_ok(cd_facts_cpu(f, &nest, x, &err));
    facts_in_range(x);
    cd_facts_free(f);
    cd_facts_free(NULL);
    cd_arena_free(&a);
}

/* Weights in the order of the loops: j outermost reads a column of B after the other, which are
 * lines then. */
static void test_packed(void **state) {
    static const char *const task[] = {"\"ops\": [" MADE_IN(
        "A", 16, 64) ", {\"name\": \"B\", \"shape\": [64, 512], \"dtype\": \"float32\", "
                     "\"layout_free\": true}, {\"name\": \"C\","
                     "\"axis\": [[\"i\", 0, 16], [\"j\", 0, 512]], \"reduce_axis\": [[\"k\", 0, "
                     "64]], \"reduce\": \"sum\", \"body\": \"A[i, k]*B[k, j]\"}]"};
    made_facts_room r = {0};
    cd_arena a = {0};
    cdmpp_err err = {0};
    cd_facts *f;
    cd_nest nest;
    float row[CD_N_FACTS], packed[CD_N_FACTS];
    (void)state;
    assert_ok(prog_tasks(task, 1, &r.tasks, &err));
    assert_ok(cd_program_new(&r.program, &err));
    assert_ok(cd_facts_new(&f, &err));
    facts_lower(&r, 0, PROG_CPU, "[[\"RE\", 2, [1, 0, 2]]]", &a, &nest);
    nest.pack = false;
    assert_ok(cd_facts_cpu(f, &nest, row, &err));
    nest.pack = true;
    assert_ok(cd_facts_cpu(f, &nest, packed, &err));
    assert_close(fact_at(row, CD_FACT_LINES), fact_at(packed, CD_FACT_LINES), 1e-6, 0);
    const double apart = 512.0 * (64 + 16) + 64, lines = fact_at(row, CD_FACT_FETCHED_0),
                 few = fact_at(packed, CD_FACT_FETCHED_0);
    assert_true(lines > 0.8 * apart && few < lines / 3);
    cd_facts_free(f);
    cd_program_free(r.program);
    cd_task_registry_free(r.tasks);
    cd_arena_free(&a);
}

/* Columns of 64 rows: where a row is 4,096 bytes all 64 lines meet in one set of 8, and every
 * second turn of j, which comes back to them, finds none. Rows of 4,160 bytes lie in sets of their
 * own. */
static void test_conflicts(void **state) {
#define COLUMNS(row)                                                                               \
    "\"ops\": [" MADE_IN("A", 4, 64) "," MADE_IN(                                                  \
        "B", 64, row) ", {\"name\": \"C\", \"axis\": [[\"i\", 0, 4], [\"j\", 0, 128]],"            \
                      "\"reduce_axis\": [[\"k\", 0, 64]], \"reduce\": \"sum\", \"body\": \"A[i, "  \
                      "k]*B[k, j*8]\"}]"
    static const char *const task[] = {COLUMNS(1024), COLUMNS(1040)};
    made_facts_room r = {0};
    cd_arena a = {0};
    cdmpp_err err = {0};
    cd_facts *f;
    (void)state;
    assert_ok(prog_tasks(task, 2, &r.tasks, &err));
    assert_ok(cd_program_new(&r.program, &err));
    assert_ok(cd_facts_new(&f, &err));
    for (size_t k = 0; k < 2; k++) {
        cd_nest nest;
        float x[CD_N_FACTS];
        facts_lower(&r, k, PROG_CPU, "[]", &a, &nest);
        assert_ok(cd_facts_cpu(f, &nest, x, &err));
        assert_close(fact_at(x, CD_FACT_CONFLICT_LINES), k ? 0 : 4 * 128 * 64 / 2, 0, 0);
    }
    cd_facts_free(f);
    cd_program_free(r.program);
    cd_task_registry_free(r.tasks);
    cd_arena_free(&a);
}

/* The known matrix product: what stands in docs/reference/facts.md. 16 x 32 x 24 without a
 * schedule: for i, j, k. */
static void test_example(void **state) {
    cd_arena a = {0};
    cdmpp_err err = {0};
    cd_facts *f;
    cd_nest nest;
    float x[CD_N_FACTS];
    assert_ok(cd_facts_new(&f, &err));
    facts_lower(*state, MADE_F_MATMUL, PROG_CPU, "[]", &a, &nest);
    assert_ok(cd_facts_cpu(f, &nest, x, &err));
    assert_close(fact_at(x, CD_FACT_LINES), 24 + 48 + 32, 0, 0);
    assert_close(fact_at(x, CD_FACT_LINES_OUTPUT), 32, 0, 0);
    assert_close(fact_at(x, CD_FACT_FLOP_FUSED), 2 * 16 * 32 * 24, 0, 0);
    assert_close(fact_at(x, CD_FACT_WIDTH), nest.vector_bytes, 0, 0);
    assert_close(fact_at(x, CD_FACT_STATEMENTS), 2, 0, 0);
    assert_close(fact_at(x, CD_FACT_REGIONS), 0, 0, 0);
    assert_close(fact_at(x, CD_FACT_SHARE_64), 1, 0, 0);
    assert_close(fact_at(x, CD_FACT_INEXACT), 0, 0, 0);
    cd_facts_free(f);
    cd_arena_free(&a);
}

/* ---- products of words ---- */

typedef struct {
    cd_facts *f;
    cd_facts_set set;
    float x[64][CD_N_FACTS];
    size_t n;
} kept;

static void keep(void *ctx, const cd_nest *nest) {
    kept *k = ctx;
    cdmpp_err err = {0};
    assert_true(k->n < 64);
    if (!cd_facts_of(k->f, k->set, nest, k->x[k->n], &err)) k->n++;
}

static void draw_all(const char *text, cd_facts_set set, kept *k) {
    made_facts_room r = {0};
    cdmpp_err err = {0};
    *k = (kept){.set = set};
    assert_ok(prog_tasks(&text, 1, &r.tasks, &err));
    assert_ok(cd_program_new(&r.program, &err));
    assert_ok(cd_facts_new(&k->f, &err));
    (void)made_facts_draws(&r, 0, set == CD_FACTS_OF_GPU, 30, keep, k);
    cd_facts_free(k->f);
    cd_program_free(r.program);
    cd_task_registry_free(r.tasks);
}

#define PRODUCT(type, body)                                                                        \
    "\"ops\": [{\"name\": \"A\", \"shape\": [64, 48], \"dtype\": \"" type                          \
    "\"}, {\"name\": \"B\", \"shape\": [96, 48], \"dtype\": \"" type "\", \"layout_free\": true}," \
    "{\"name\": \"C\", \"axis\": [[\"i\", 0, 64], [\"j\", 0, 96]], \"reduce_axis\": [[\"k\", 0, "  \
    "48]], \"reduce\": \"sum\", \"body\": \"" body "\"}], \"args\": [\"A\", \"B\", \"C\"]"

/* dot4 is a multiplication that fuses with its sum, and is done in vectors: every fact is that of
 * the product of float32 of the same shape. */
static void words_are(cd_facts_set set) {
    static kept words, floats;
    draw_all(PRODUCT("int32", "dot4:int32(A[i, k], B[j, k])"), set, &words);
    draw_all(PRODUCT("float32", "A[i, k]*B[j, k]"), set, &floats);
    assert_true(words.n > 0 && words.n == floats.n);
    for (size_t i = 0; i < words.n; i++)
        for (size_t c = 0; c < cd_facts_count(set); c++)
            if (!(words.x[i][c] == floats.x[i][c] ||
                  (isnan(words.x[i][c]) && isnan(floats.x[i][c]))))
                fail_msg("fact %zu: %g, of float32 %g", c, (double)words.x[i][c],
                         (double)floats.x[i][c]);
}

TEST(words) {
    words_are(CD_FACTS_OF_CPU);
    words_are(CD_FACTS_OF_GPU);
}

TEST(odd_tasks) { facts_odd_tasks(CD_FACTS_OF_CPU); }

static void test_no_heap_after_warm_up(void **state) { facts_no_heap(*state, CD_FACTS_OF_CPU); }

static void test_faults(void **state) { facts_faults(*state, CD_FACTS_OF_CPU, MADE_F_CONV, "[]"); }

TESTS(made_facts_up, made_facts_down, columns, manual, test_laws, test_refused, test_packed,
      test_conflicts, test_example, words, odd_tasks, test_no_heap_after_warm_up, test_faults)
