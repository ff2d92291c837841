/* The hash: every bit of the input counts, cuts count, and keys that differ little do not meet. */
#include "base/core/core.h"
#include "check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static cd_hash of(const void *p, size_t n) {
    cd_hash h = cd_hash_start();
    cd_hash_add(&h, p, n);
    return h;
}

/* half of it is enough here */
static bool same(cd_hash x, cd_hash y) { return x.a == y.a || x.b == y.b; }

TEST(every_bit_counts) {
    unsigned char text[100];
    for (size_t i = 0; i < sizeof text; i++) text[i] = (unsigned char)(i * 7);
    for (size_t n = 1; n <= sizeof text; n++) {
        const cd_hash whole = of(text, n);
        for (size_t bit = 0; bit < 8 * n; bit++) {
            text[bit / 8] ^= (unsigned char)(1 << bit % 8);
            assert_false(same(of(text, n), whole));
            text[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        assert_false(same(of(text, n - 1), whole));
    }
}

TEST(cuts_count) {
    static const char text[] = "abcdefghijklmnopqrstuvwxyzabcdef";
    cd_hash seen[sizeof text];
    for (size_t cut = 0; cut < sizeof text; cut++) {
        seen[cut] = of(text, cut);
        cd_hash_add(&seen[cut], text + cut, sizeof text - 1 - cut);
        for (size_t k = 0; k < cut; k++) assert_false(same(seen[k], seen[cut]));
    }
    assert_false(same(of(NULL, 0), cd_hash_start()));
    static const unsigned char zero[64] = {0};
    for (size_t n = 1; n <= sizeof zero; n++) assert_false(same(of(zero, n), of(zero, n - 1)));
}

static int by_value(const void *x, const void *y) {
    return (*(const uint64_t *)x > *(const uint64_t *)y) -
           (*(const uint64_t *)x < *(const uint64_t *)y);
}

/* 2^17 counters: 64-bit halves meet with a chance of 2^-31. */
TEST(counters_do_not_meet) {
    enum { N = 1 << 17 };
    uint64_t *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b);
    assert_true(a && b);
    for (uint64_t i = 0; i < N; i++) {
        const cd_hash h = of(&i, sizeof i);
        a[i] = h.a;
        b[i] = h.b;
    }
    qsort(a, N, sizeof *a, by_value);
    qsort(b, N, sizeof *b, by_value);
    for (size_t i = 1; i < N; i++) assert_true(a[i] != a[i - 1] && b[i] != b[i - 1]);
    free(a);
    free(b);
}

TESTS(NULL, NULL, every_bit_counts, cuts_count, counters_do_not_meet)
