/* The fast forms of trees (small nodes; bytes, many rows at once) against the plain walk: the same
 * bits on random trees, with values that equal cuts, missing and infinite ones; what does not fit
 * into a form has none. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "fault.h"
#include "learner/trees/tree_inference_internal.h"

enum { WIDTH = 140, ROWS = 600, MOST = 4000, TREES = 40 };
static cd_tree_inference_node node[TREES * MOST];
static uint32_t root[TREES], depth[TREES];
static float x[ROWS * WIDTH];
static uint64_t drawn;

static double unit(void) { return cd_rng_unit(5, drawn++); }

/* Levels and values that a tree may have. */
typedef struct {
    int levels, cuts, columns;
    double leaf; /* chance that a node above the last level is one */
} shape;

static float value(const shape *s) { return (float)(floor(unit() * s->cuts) / 4 - 10); }

static void grow(cd_tree_inference *f, const shape *s, uint32_t at, uint32_t level,
                 uint32_t *deepest) {
    if (level > *deepest) *deepest = level;
    if ((int)level == s->levels || (level && unit() < s->leaf)) {
        node[at] = (cd_tree_inference_node){(float)(unit() - 0.5), 0, {at, at}};
        return;
    }
    const uint32_t kid = (uint32_t)f->n_node;
    f->n_node += 2;
    node[at] = (cd_tree_inference_node){value(s),
                                        (uint32_t)(unit() * s->columns) |
                                            (unit() < 0.5 ? CD_TREE_INFERENCE_MISSING_RIGHT : 0),
                                        {kid, kid + 1}};
    grow(f, s, kid, level + 1, deepest);
    grow(f, s, kid + 1, level + 1, deepest);
}

static cd_tree_inference forest(const shape *s, size_t n_tree) {
    cd_tree_inference f = {
        .base = 0.25F, .n_tree = n_tree, .root = root, .depth = depth, .node = node};
    for (size_t t = 0; t < n_tree; t++) {
        root[t] = (uint32_t)f.n_node++, depth[t] = 0;
        grow(&f, s, root[t], 0, &depth[t]);
        assert_true(f.n_node < TREES * MOST);
    }
    for (size_t i = 0; i < ROWS * WIDTH; i++) {
        const double u = unit();
        x[i] = i >= WIDTH && i % WIDTH % 5 == 0 ? x[i - WIDTH] /* a column of one value */
               : u < 0.1                        ? NAN
               : u < 0.12                       ? INFINITY
               : u < 0.14                       ? -INFINITY
               : u < 0.5                        ? (float)(20 * unit() - 10)
                                                : value(s);
    }
    return f;
}

static void equal(const float *a, const float *b, size_t n) {
    assert_memory_equal(a, b, n * sizeof *a);
}

/* Each form by itself, and what callers get. */
static void compare(cd_tree_inference *f, bool bytes) {
    static const size_t rows[] = {1,  3,  4,  7,   8,   9,   15,  16,  17,
                                  63, 64, 65, 128, 129, 255, 256, 257, ROWS};
    float want[ROWS], got[ROWS];
    cdmpp_err err = {0};
    assert_ok(cd_tree_walk_new(f, WIDTH, &f->fast, &err));
    assert_ok(cd_tree_bytes_new(f, WIDTH, &f->bytes, &err));
    assert_non_null(f->fast);
    assert_int_equal(f->bytes != NULL, bytes && cd_tree_bytes_here());
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (size_t n_tree = f->n_tree; n_tree; n_tree /= 3) {
            const size_t n = rows[k];
            cd_tree_inference_score_plain(f, x, n, WIDTH, n_tree, want);
            cd_tree_walk_score(f, x, n, WIDTH, n_tree, got);
            equal(got, want, n);
            for (size_t i = 0; f->bytes && i < n; i += CD_TREE_BYTES_ROWS)
                cd_tree_bytes_score(f, x + i * WIDTH,
                                    n - i < CD_TREE_BYTES_ROWS ? n - i : CD_TREE_BYTES_ROWS, WIDTH,
                                    n_tree, got + i);
            equal(got, want, n);
            cd_tree_inference_score_some(f, x, n, WIDTH, n_tree, got);
            equal(got, want, n);
        }
    cd_tree_walk_free(f->fast);
    cd_tree_bytes_free(f->bytes);
    f->fast = NULL, f->bytes = NULL;
}

TEST(the_same_bits) {
    static const shape of[] = {{0, 3, 1, 0},
                               {1, 3, 1, 0},
                               {2, 5, 3, 0.2},
                               {4, 80, 60, 0.1},
                               {8, 80, 40, 0},
                               {5, 80, 40, 0},
                               {6, 80, 40, 0.05},
                               {7, 80, 40, 0},
                               {8, 255, 20, 0.05},
                               {30, 80, 12, 0.5},
                               /* cuts are counted 32 at a time */ {6, 31, 2, 0},
                               {6, 32, 2, 0},
                               {6, 33, 2, 0},
                               {7, 63, 2, 0},
                               {7, 64, 2, 0},
                               {7, 65, 2, 0},
                               {7, 255, 2, 0},
                               /* 200 columns with sides */ {7, 60, 100, 0}};
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        cd_tree_inference f = forest(&of[k], k == 4 ? 20 : TREES);
        compare(&f, of[k].levels <= 8);
    }
    const shape deep = {9, 80, 40, 0}; /* a level more than bytes have */
    cd_tree_inference f = forest(&deep, 5);
    compare(&f, false);
}

TEST(what_does_not_fit) {
    const shape s = {1, 400, 1, 0};
    cdmpp_err err = {0};
    cd_tree_walk *w;
    cd_tree_bytes *b;
    cd_tree_inference f = forest(&s, TREES);
    for (uint32_t k = 0; k < 3; k++) { /* a cut that is no number, or infinite */
        static const float cut[] = {NAN, INFINITY, -INFINITY};
        node[root[1]].cut = cut[k];
        assert_ok(cd_tree_walk_new(&f, WIDTH, &w, &err));
        assert_ok(cd_tree_bytes_new(&f, WIDTH, &b, &err));
        assert_true(!w && !b);
    }
    const shape many = {7, 400, 1, 0}; /* more than 255 cuts of a column */
    f = forest(&many, TREES);
    compare(&f, false);
    const shape slots = {7, 60, WIDTH, 0}; /* 280 columns with sides */
    f = forest(&slots, TREES);
    assert_ok(cd_tree_walk_new(&f, WIDTH, &w, &err));
    assert_ok(cd_tree_bytes_new(&f, WIDTH, &b, &err));
    assert_true(!w && !b);
    /* 512 columns with sides */
    f = (cd_tree_inference){.n_tree = 1, .root = root, .depth = depth, .node = node, .n_node = 1};
    for (uint32_t i = 0; i < 512; i++, f.n_node += 2) {
        const uint32_t at = i ? (uint32_t)f.n_node - 2 : 0, kid = (uint32_t)f.n_node;
        node[at] = (cd_tree_inference_node){1, i, {kid, kid + 1}};
        node[kid] = node[kid + 1] = (cd_tree_inference_node){1, 0, {kid, kid}};
        node[kid + 1].kid[0] = node[kid + 1].kid[1] = kid + 1;
    }
    root[0] = 0;
    assert_ok(cd_tree_walk_new(&f, 512, &w, &err));
    assert_null(w);
}

TEST(any_allocation_may_fail) {
    const shape s = {3, 20, 10, 0};
    cd_tree_inference f = forest(&s, 3);
    FAULT_SWEEP(t, 0) {
        cd_tree_walk *w = NULL;
        t.st = cd_tree_walk_new(&f, WIDTH, &w, &t.err);
        cd_tree_walk_free(w);
    }
    FAULT_SWEEP(t, 0) {
        cd_tree_bytes *b = NULL;
        t.st = cd_tree_bytes_new(&f, WIDTH, &b, &t.err);
        cd_tree_bytes_free(b);
    }
}

TESTS(NULL, NULL, the_same_bits, what_does_not_fit, any_allocation_may_fail)
