/* Steps of networks on several workers: their order, who lives at once, and the same values as on
 * one. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "made_code.h"
#include "base/core/mem.h"
#include "base/core/core.h"
#include "profiler/backend/backend.h"
#include "profiler/runtime/single/single_internal.h"

enum { N = 64, STEPS = 90, TENSORS = STEPS + 2, RESULTS = 6 };

/* A network of programs with two operands: step k makes tensor k + 2. */
typedef struct {
    cd_executor_net net;
    cd_executor_net_tensor tensor[TENSORS];
    cd_executor_net_step step[STEPS];
    uint32_t arg[STEPS][3];
} random_net;

static uint32_t pick(uint64_t seed, uint32_t k, uint32_t most) {
    return (uint32_t)(cd_rng_at(seed, k) % most);
}

/* Operands among the `window` tensors before: how wide the network is. */
static void make_net(random_net *r, uint64_t seed, uint32_t window, const cd_build *build,
                     uint32_t n_build) {
    memset(r, 0, sizeof *r);
    for (uint32_t t = 0; t < TENSORS; t++)
        r->tensor[t] = (cd_executor_net_tensor){.bytes = 4 * N,
                                                .dtype = CD_F32,
                                                .role = t < 2                    ? CD_TENSOR_INPUT
                                                        : t >= TENSORS - RESULTS ? CD_TENSOR_RESULT
                                                                                 : CD_TENSOR_INNER};
    for (uint32_t k = 0; k < STEPS; k++) {
        for (uint32_t i = 0; i < 2; i++) {
            const uint32_t most = k + 2 < window ? k + 2 : window;
            r->arg[k][i] = k + 1 - pick(seed, 3 * k + i, most);
        }
        r->arg[k][2] = k + 2;
        r->step[k] =
            (cd_executor_net_step){"step", &build[pick(seed, 3 * k + 2, n_build)], r->arg[k], NULL};
    }
    r->net = (cd_executor_net){TENSORS, STEPS, r->tensor, r->step};
}

/* The same, found the slow way: chains of steps that share a tensor. */
static void chains(const random_net *r, bool before[STEPS][STEPS]) {
    memset(before, 0, sizeof(bool) * STEPS * STEPS);
    for (uint32_t a = 0; a < STEPS; a++)
        for (uint32_t b = 0; b < a; b++)
            before[b][a] = r->arg[a][0] == b + 2 || r->arg[a][1] == b + 2;
    for (uint32_t m = 0; m < STEPS; m++)
        for (uint32_t a = 0; a < STEPS; a++)
            for (uint32_t b = 0; b < STEPS; b++)
                before[a][b] = before[a][b] || (before[a][m] && before[m][b]);
}

TEST(test_deps) {
    static bool before[STEPS][STEPS];
    static random_net r;
    made_code c;
    made_code_set(&c, "deps", N, MADE_ADD);
    const cd_build build = {.code = &c.code};
    for (uint64_t seed = 0; seed < 20; seed++) {
        cd_arena a = {0};
        cd_executor_deps d;
        cdmpp_err err = {0};
        double seconds[STEPS], chain[STEPS];
        make_net(&r, seed, 2 + (uint32_t)seed * 4, &build, 1);
        assert_ok(cd_executor_deps_make(&r.net, &a, &d, &err));
        chains(&r, before);
        for (uint32_t k = 0; k < STEPS; k++) {
            uint32_t n = 0;
            for (uint32_t b = 0; b < STEPS; b++)
                assert_int_equal(cd_executor_deps_before(&d, b, k), before[b][k]);
            for (uint32_t e = d.first[k]; e < d.first[k + 1]; e++)
                assert_true(before[k][d.next[e]]);
            for (uint32_t b = 0; b < k; b++) n += r.arg[k][0] == b + 2 || r.arg[k][1] == b + 2;
            assert_int_equal(d.n_after[k], n);
            seconds[k] = 1 + (double)pick(seed, k, 100);
        }
        cd_executor_deps_chains(&d, seconds, chain);
        for (uint32_t k = 0; k < STEPS; k++) {
            double longest = 0;
            for (uint32_t b = 0; b < STEPS; b++)
                if (before[k][b] && chain[b] > longest) longest = chain[b];
            assert_true(chain[k] == seconds[k] + longest);
        }
        cd_arena_free(&a);
    }
    made_code_free(&c);
}

/* In-place updates: readers of the old content come before who overwrites it. */
TEST(test_overwritten) {
    made_code c;
    made_code_set(&c, "over", N, MADE_ADD);
    const cd_build build = {.code = &c.code};
    const uint32_t a0[] = {0, 0, 1}, a1[] = {1, 0, 2}, a2[] = {0, 0, 1}, a3[] = {1, 2, 3};
    const cd_executor_net_step step[] = {{"makes 1", &build, a0, NULL},
                                         {"reads 1", &build, a1, NULL},
                                         {"makes 1 anew", &build, a2, NULL},
                                         {"reads it", &build, a3, NULL}};
    const cd_executor_net_tensor t = {.bytes = 4 * N, .dtype = CD_F32, .role = CD_TENSOR_INNER};
    const cd_executor_net_tensor tensor[] = {
        {.bytes = 4 * N, .dtype = CD_F32, .role = CD_TENSOR_INPUT}, t, t, t};
    cd_arena a = {0};
    cd_executor_deps d;
    cdmpp_err err = {0};
    assert_ok(cd_executor_deps_make(&(cd_executor_net){4, 4, tensor, step}, &a, &d, &err));
    assert_true(cd_executor_deps_before(&d, 1, 2) && cd_executor_deps_before(&d, 0, 2) &&
                cd_executor_deps_before(&d, 2, 3) && !cd_executor_deps_before(&d, 2, 1));
    cd_arena_free(&a);
    made_code_free(&c);
}

/* ---- the pool ---- */

typedef struct {
    pthread_mutex_t lock;
    uint32_t order[STEPS], n, at[STEPS], workers;
} seen;

static void see(void *ctx, uint32_t k, uint32_t worker) {
    seen *s = ctx;
    sched_yield();
    pthread_mutex_lock(&s->lock);
    s->at[k] = s->n;
    s->order[s->n++] = k;
    s->workers |= 1u << worker;
    pthread_mutex_unlock(&s->lock);
}

TEST(test_order) {
    static bool before[STEPS][STEPS];
    static random_net r;
    made_code c;
    made_code_set(&c, "pool", N, MADE_ADD);
    const cd_build build = {.code = &c.code};
    for (uint32_t workers = 1; workers <= 4; workers++) {
        cd_arena a = {0};
        cd_executor_deps d;
        cdmpp_err err = {0};
        seen s = {.n = 0};
        cd_executor_pool *p;
        pthread_mutex_init(&s.lock, NULL);
        make_net(&r, workers, 30, &build, 1);
        chains(&r, before);
        assert_ok(cd_executor_deps_make(&r.net, &a, &d, &err));
        assert_ok(cd_executor_pool_new(
            &(cd_executor_pool_options){.workers = workers, .deps = &d, .step = see, .ctx = &s}, &p,
            &err));
        for (int pass = 0; pass < 30; pass++) {
            s.n = 0;
            cd_executor_pool_pass(p);
            assert_int_equal(s.n, STEPS);
            for (uint32_t b = 0; b < STEPS; b++)
                for (uint32_t k = 0; k < STEPS; k++)
                    assert_true(!before[b][k] || s.at[b] < s.at[k]);
            for (uint32_t k = 0; workers == 1 && k < STEPS; k++) assert_int_equal(s.order[k], k);
        }
        assert_true(s.workers < 1u << workers);
        cd_executor_pool_free(p);
        cd_arena_free(&a);
        pthread_mutex_destroy(&s.lock);
    }
    cd_executor_pool *p;
    cdmpp_err err = {0};
    assert_int_equal(cd_executor_pool_new(&(cd_executor_pool_options){.workers = 0}, &p, &err),
                     CDMPP_ERANGE);
    assert_int_equal(
        cd_executor_pool_new(&(cd_executor_pool_options){.workers = CD_EXECUTOR_POOL_MAX + 1}, &p,
                             &err),
        CDMPP_ERANGE);
    made_code_free(&c);
}

/* One worker takes the ready step of the largest rank. */
TEST(test_rank) {
    enum { WIDE = 5 };
    uint32_t none[WIDE + 1] = {0}, first[WIDE + 1] = {0};
    const double rank[WIDE] = {1, 5, 3, 5, 4};
    const uint32_t want[WIDE] = {1, 3, 4, 2, 0};
    const cd_executor_deps d = {.n = WIDE, .n_after = none, .first = first, .next = none};
    seen s = {.n = 0};
    cd_executor_pool *p;
    cdmpp_err err = {0};
    pthread_mutex_init(&s.lock, NULL);
    assert_ok(cd_executor_pool_new(
        &(cd_executor_pool_options){.workers = 1, .deps = &d, .rank = rank, .step = see, .ctx = &s},
        &p, &err));
    cd_executor_pool_pass(p);
    assert_memory_equal(s.order, want, sizeof want);
    cd_executor_pool_free(p);
    pthread_mutex_destroy(&s.lock);
}

/* ---- plans for several workers ---- */

static bool meet_random(const void *ctx, uint32_t a, uint32_t b) {
    return cd_rng_at(*(const uint64_t *)ctx, a < b ? a * 1000 + b : b * 1000 + a) % 3 == 0;
}

TEST(test_plan) {
    enum { T = 120 };
    for (uint64_t seed = 0; seed < 20; seed++) {
        cd_executor_memory_tensor t[T];
        int64_t total, sum = 0;
        cdmpp_err err = {0};
        for (uint32_t k = 0; k < T; k++)
            t[k] = (cd_executor_memory_tensor){.bytes = 1 + (int64_t)pick(seed, k, 5000)};
        assert_ok(cd_executor_memory_apart(t, T, meet_random, &seed, &total, NULL, &err));
        for (uint32_t a = 0; a < T; a++) {
            sum += t[a].bytes;
            assert_true(t[a].offset + t[a].bytes <= total);
            for (uint32_t b = 0; b < a; b++)
                assert_true(!meet_random(&seed, a, b) || t[a].offset + t[a].bytes <= t[b].offset ||
                            t[b].offset + t[b].bytes <= t[a].offset);
        }
        assert_true(total < sum);
    }
}

/* ---- values ---- */

/* Slow ones give way in the middle of their work, so that others run between: once, for on a loaded
 * machine each time lasts as long as all that wait. */
#define GIVE_WAY(what)                                                                             \
    "extern int sched_yield(void); for (int r = 0; r < 6; r++) { for (int i = 0; i < n; i++) { "   \
    "c[i] = " what "; if (r == 3 && i == n / 2) sched_yield(); } }"
static const char *const body[] = {
    "for (int i = 0; i < n; i++) c[i] = 0.5f * a[i] + 0.25f * b[n - 1 - i];",
    GIVE_WAY("a[i] - 0.75f * b[i]"), GIVE_WAY("0.5f * a[n - 1 - i] + b[i] * b[i]")};

static void read_results(cd_executor *r, float to[RESULTS][N]) {
    cdmpp_err err = {0};
    for (uint32_t k = 0; k < RESULTS; k++)
        assert_ok(cd_executor_read(r, TENSORS - RESULTS + k, to[k], &err));
}

TEST(test_values) {
    static random_net net;
    static float want[RESULTS][N], got[RESULTS][N];
    made_code c[3];
    cd_build build[3] = {{0}};
    cd_compiler *compiler;
    cdmpp_err err = {0};
    for (int k = 0; k < 3; k++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", k);
        made_code_set(&c[k], name, N, body[k]);
        build[k].code = &c[k].code;
    }
    assert_ok(cd_compiler_open(&(cd_compiler_options){.cache = ""}, &compiler, &err));
    assert_ok(cd_compiler_build(compiler, build, 3, 1, &err));
    for (uint64_t seed = 0; seed < 4; seed++) {
        double total, seconds[STEPS];
        int64_t bytes[2];
        make_net(&net, seed, seed < 2 ? 40 : 8, build, 3);
        for (uint32_t k = 0; k < STEPS; k++) seconds[k] = 1 + pick(seed, k, 9);
        for (uint32_t workers = 1; workers <= 4; workers++) {
            const cd_executor_options o = {
                .threads = 1, .workers = workers, .seconds = workers % 2 ? NULL : seconds};
            cd_executor_ran ran[STEPS];
            cd_executor *r;
            assert_ok(cd_executor_open(&net.net, &o, &r, &err));
            for (int pass = 0; pass < 25; pass++) {
                cd_executor_pass(r, ran, &total);
                read_results(r, workers == 1 ? want : got);
                if (workers > 1) assert_memory_equal(want, got, sizeof want);
            }
            for (uint32_t k = 0; k < STEPS; k++) {
                assert_true(ran[k].start_s >= 0 && ran[k].start_s <= ran[k].end_s &&
                            ran[k].end_s <= total && ran[k].worker < workers);
                for (uint32_t i = 0; i < 2; i++)
                    if (net.arg[k][i] >= 2)
                        assert_true(ran[net.arg[k][i] - 2].end_s <= ran[k].start_s);
            }
            if (workers < 3) bytes[workers - 1] = cd_executor_bytes(r).all;
            cd_executor_close(r);
        }
        assert_true(bytes[1] >= bytes[0]);
        if (seed < 2) assert_true(bytes[1] > bytes[0]); /* a wide network: more lives at once */
    }
    cd_compiler_close(compiler);
    for (int k = 0; k < 3; k++) made_code_free(&c[k]);
}

TESTS(NULL, NULL, test_deps, test_overwritten, test_order, test_rank, test_plan, test_values)
