/* Laws of memory plans, on random networks and on shapes with a known best. */
#include <string.h>

#include "check.h"
#include "base/core/mem.h"
#include "base/core/core.h"
#include "profiler/runtime/single/single_internal.h"

enum { MAX = 200 };

static void check_plan(const cd_executor_memory_tensor *t, uint32_t n, int64_t total,
                       int64_t least) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += (t[i].bytes + 63) / 64 * 64;
        assert_true(t[i].offset >= 0 && t[i].offset % CD_EXECUTOR_MEMORY_ALIGN == 0 &&
                    t[i].offset + t[i].bytes <= total);
        for (uint32_t j = 0; j < i; j++) {
            const bool together = t[i].first <= t[j].last && t[j].first <= t[i].last;
            const bool apart =
                t[i].offset + t[i].bytes <= t[j].offset || t[j].offset + t[j].bytes <= t[i].offset;
            assert_true(!together || apart || !t[i].bytes || !t[j].bytes);
        }
    }
    assert_true(least <= total && total <= sum);
}

TEST(test_random) {
    for (uint64_t seed = 0; seed < 60; seed++) {
        cd_executor_memory_tensor t[MAX], again[MAX];
        const uint32_t n = 1 + (uint32_t)(cd_rng_at(seed, 0) % MAX);
        for (uint32_t k = 0; k < n; k++) {
            t[k] =
                (cd_executor_memory_tensor){.bytes = (int64_t)(cd_rng_at(seed, 3 * k + 1) % 5000),
                                            .first = (uint32_t)(cd_rng_at(seed, 3 * k + 2) % 50)};
            t[k].last = t[k].first + (uint32_t)(cd_rng_at(seed, 3 * k + 3) % 9);
        }
        memcpy(again, t, sizeof t);
        int64_t total, least, total2;
        cdmpp_err err = {0};
        assert_ok(cd_executor_memory_plan(t, n, &total, &least, &err));
        check_plan(t, n, total, least);
        assert_true((double)total < 1.5 * (double)least + 5000);
        assert_ok(cd_executor_memory_plan(again, n, &total2, NULL, &err));
        assert_true(total == total2 && !memcmp(t, again, n * sizeof *t));
    }
}

/* A chain needs its two largest neighbours; what lives always lies beside. */
TEST(test_chain) {
    cd_executor_memory_tensor t[6] = {{.bytes = 640, .first = 0, .last = UINT32_MAX}};
    for (uint32_t k = 1; k < 6; k++)
        t[k] = (cd_executor_memory_tensor){.bytes = 6400, .first = k - 1, .last = k};
    int64_t total, least;
    cdmpp_err err = {0};
    assert_ok(cd_executor_memory_plan(t, 6, &total, &least, &err));
    check_plan(t, 6, total, least);
    assert_int_equal(least, 2 * 6400 + 640);
    assert_int_equal(total, least);
}

TEST(test_bad) {
    int64_t total;
    cdmpp_err err = {0};
    cd_executor_memory_tensor t[2] = {{.bytes = -1}, {.bytes = INT64_MAX - 70}};
    assert_int_equal(cd_executor_memory_plan(t, 1, &total, NULL, &err), CDMPP_ERANGE);
    t[0].bytes = 100;
    assert_int_equal(cd_executor_memory_plan(t, 2, &total, NULL, &err), CDMPP_ERANGE);
    t[0] = (cd_executor_memory_tensor){.bytes = 1, .first = 2, .last = 1};
    assert_int_equal(cd_executor_memory_plan(t, 1, &total, NULL, &err), CDMPP_ERANGE);
    assert_ok(cd_executor_memory_plan(NULL, 0, &total, NULL, &err));
    assert_int_equal(total, 0);
}

TESTS(NULL, NULL, test_random, test_chain, test_bad)
