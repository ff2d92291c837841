/* Nets with more actions than fit in one piece of memory; and which steps of a net somebody waits
 * for. */
#include "check.h"
#include "fault.h"
#include "profiler/runtime/multi/multi_executor_internal.h"

enum { N = 6000, N_DEVICE = 3 };

static cd_multi_action action[N];

/* A byte each, all on the first device. */
static cd_multi_net made(void) {
    static const cd_multi_device device[N_DEVICE] = {
        {.name = "a", .core = -1}, {.name = "b", .core = -1}, {.name = "c", .core = -1}};
    static const cd_multi_buffer buffer[2] = {{.name = "x", .of = CD_MULTI_OWN, .bytes = N},
                                              {.name = "y", .of = CD_MULTI_OWN, .bytes = N}};
    for (uint32_t k = 0; k < N; k++)
        action[k] = (cd_multi_action){
            .name = "byte",
            .copy = {
                .from = 0, .to = 1, .from_first = k, .to_first = N - 1 - (int64_t)k, .size = 1}};
    return (cd_multi_net){N_DEVICE, 2, N, device, buffer, action};
}

static void test_many(void **state) {
    (void)state;
    static unsigned char x[N], y[N];
    const cd_multi_net dn = made();
    cdmpp_err err = {0};
    cd_multi_executor *r;
    double total;
    assert_ok(cd_multi_executor_open(&dn, &r, &err));
    for (uint32_t k = 0; k < N; k++) x[k] = (unsigned char)(k % 251);
    assert_ok(cd_multi_executor_write(r, 0, x, &err));
    assert_ok(cd_multi_executor_pass(r, NULL, &total, NULL, &err));
    assert_ok(cd_multi_executor_read(r, 1, y, &err));
    for (uint32_t k = 0; k < N; k++) assert_int_equal(y[N - 1 - k], x[k]);
    cd_multi_executor_close(r);
}

/* Copies on three devices, a line each; an arrow is what a step waits for of another device:
 *
 *   a: 0 -> 1 -> 4         b: 2 -> 3 (after 0)         c: 5 (after 1, 3), 6, 7 (after 6)
 *
 * Asked for are: the last ones (4, 3, 7), those that another device waits for (0, 1, 3), and the
 * one before a step that waits (2). */
static void test_asked(void **state) {
    (void)state;
    static const uint32_t of[] = {0, 0, 1, 1, 0, 2, 2, 2};
    static const uint32_t after3[] = {0, 2};
    static const uint32_t after5[] = {1, 3};
    static const uint32_t after7[] = {6};
    static const uint32_t after1[] = {0};
    static const bool asked[] = {true, true, true, true, true, false, false, true};
    static const uint32_t n_wait[] = {0, 0, 0, 1, 0, 2, 0, 0}, n_of[] = {3, 2, 3};
    enum { STEPS = 8 };
    cd_multi_net dn = made();
    cd_multi_executor *r;
    cdmpp_err err = {0};
    for (uint32_t k = 0; k < STEPS; k++) action[k].device = of[k];
    action[1].after = after1, action[1].n_after = 1;
    action[3].after = after3, action[3].n_after = 2;
    action[5].after = after5, action[5].n_after = 2;
    action[7].after = after7, action[7].n_after = 1;
    dn.n_action = STEPS;
    assert_ok(cd_multi_executor_open(&dn, &r, &err));
    for (uint32_t k = 0; k < STEPS; k++) {
        assert_int_equal(r->step[k].asked, asked[k]);
        assert_int_equal(r->step[k].n_wait, n_wait[k]);
        assert_ptr_equal(r->step[k].worker, &r->worker[of[k]]);
    }
    assert_true(r->step[3].wait[0] == 0 && r->step[5].wait[0] == 1 && r->step[5].wait[1] == 3);
    for (uint32_t d = 0; d < N_DEVICE; d++) {
        assert_int_equal(r->worker[d].n, n_of[d]);
        for (uint32_t i = 0; i < n_of[d]; i++)
            assert_true(of[r->worker[d].action[i]] == d &&
                        (!i || r->worker[d].action[i] > r->worker[d].action[i - 1]));
    }
    cd_multi_executor_close(r);
}

/* A copy has as few dimensions as it can: what is in a row on both sides is one run of bytes, what
 * is not keeps its strides. */
static void test_boxes(void **state) {
    (void)state;
    static const struct {
        cd_multi_copy copy;
        uint32_t rank;
        int64_t n[3], from[3], to[3], first[2];
    } tab[] = {
        {{.from_first = 3, .to_first = 5, .size = 4}, 1, {4}, {1}, {1}, {12, 20}}, /* one element */
        {{.rank = 1, .n = {6}, .from_stride = {1}, .to_stride = {1}, .size = 4},
         1,
         {24},
         {1},
         {1},
         {0, 0}},
        {{.rank = 1, .n = {6}, .from_stride = {2}, .to_stride = {1}, .size = 4},
         2,
         {6, 4},
         {8, 1},
         {4, 1},
         {0, 0}},
        /* rows behind each other */
        {{.rank = 2, .n = {3, 5}, .from_stride = {5, 1}, .to_stride = {5, 1}, .size = 2},
         1,
         {30},
         {1},
         {1},
         {0, 0}},
        {{.rank = 2, .n = {3, 5}, .from_stride = {9, 1}, .to_stride = {5, 1}, .size = 2},
         2,
         {3, 10},
         {18, 1},
         {10, 1},
         {0, 0}},
        /* a dimension of one is none */
        {{.rank = 3, .n = {2, 1, 4}, .from_stride = {4, 77, 1}, .to_stride = {4, 99, 1}, .size = 1},
         1,
         {8},
         {1},
         {1},
         {0, 0}},
        {{.rank = 3, .n = {2, 3, 4}, .from_stride = {40, 4, 1}, .to_stride = {12, 4, 1}, .size = 4},
         2,
         {2, 48},
         {160, 1},
         {48, 1},
         {0, 0}},
        /* turned */
        {{.rank = 2,
          .n = {3, 5},
          .from_stride = {1, 3},
          .to_stride = {5, 1},
          .from_first = 1,
          .size = 4},
         3,
         {3, 5, 4},
         {4, 12, 1},
         {20, 4, 1},
         {4, 0}},
    };
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        cd_multi_net dn = made();
        cd_multi_executor *r;
        cdmpp_err err = {0};
        action[0] = (cd_multi_action){.name = "box", .copy = tab[k].copy};
        action[0].copy.to = 1;
        dn.n_action = 1;
        assert_ok(cd_multi_executor_open(&dn, &r, &err));
        const cd_multi_copy_box *b = &r->step[0].box;
        assert_int_equal(b->rank, tab[k].rank);
        int64_t bytes = 1;
        for (uint32_t d = 0; d < b->rank; d++) {
            assert_true(b->n[d] == tab[k].n[d] && b->from[d] == tab[k].from[d] &&
                        b->to[d] == tab[k].to[d]);
            bytes *= b->n[d];
        }
        assert_true(b->bytes == bytes && b->from_first == tab[k].first[0] &&
                    b->to_first == tab[k].first[1]);
        cd_multi_executor_close(r);
    }
}

static void test_no_memory(void **state) {
    (void)state;
    const cd_multi_net dn = made();
    FAULT_SWEEP(f, 1) {
        cd_multi_executor *r = NULL;
        f.st = cd_multi_executor_open(&dn, &r, &f.err);
        if (!f.st) cd_multi_executor_close(r);
    }
}

TESTS(NULL, NULL, test_many, test_asked, test_boxes, test_no_memory)
