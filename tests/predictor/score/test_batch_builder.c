/* Programs of any sizes put together: the view gives each back, and nothing of those before a
 * clear. */
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "fault.h"
#include "predictor/score/batch_builder_internal.h"

enum { MANY = 30, ROWS = 5, LEAVES = 4, PATH = 6, TREE = 12 };

typedef struct {
    cd_rows r;
    float row[ROWS * CD_N_COL], leaf[LEAVES * CD_N_COL];
    int32_t node[LEAVES], pos[LEAVES], path_ptr[LEAVES + 1], tree[TREE];
    int64_t extent[LEAVES * PATH];
    uint8_t kind[LEAVES * PATH];
} made;
static made program[MANY];
static uint64_t drawn;
static cdmpp_err err;

static uint32_t below(uint32_t n) { return (uint32_t)(cd_rng_unit(11, drawn++) * n); }

static void make(made *m) {
    m->r = (cd_rows){.n_row = 1 + below(ROWS),
                     .row = m->row,
                     .n_leaf = below(LEAVES + 1),
                     .leaf = m->leaf,
                     .leaf_node = m->node,
                     .leaf_pos = m->pos,
                     .n_tree = below(TREE + 1),
                     .tree = m->tree,
                     .path_ptr = m->path_ptr,
                     .path_extent = m->extent,
                     .path_kind = m->kind};
    for (uint32_t k = 0; k < m->r.n_row * CD_N_COL; k++) m->row[k] = (float)below(1000);
    for (uint32_t k = 0; k < m->r.n_leaf * CD_N_COL; k++) m->leaf[k] = (float)below(1000);
    for (uint32_t k = 0; k < m->r.n_tree; k++) m->tree[k] = (int32_t)below(9) - 1;
    for (uint32_t l = 0; l < m->r.n_leaf; l++) {
        m->node[l] = (int32_t)below(90), m->pos[l] = (int32_t)below(90);
        m->path_ptr[l + 1] = m->path_ptr[l] + (int32_t)below(PATH + 1);
        for (int32_t p = m->path_ptr[l]; p < m->path_ptr[l + 1]; p++)
            m->extent[p] = below(500), m->kind[p] = (uint8_t)below(5);
    }
}

static int up(void **state) {
    (void)state;
    for (int i = 0; i < MANY; i++) make(&program[i]);
    return 0;
}

static void same(const void *a, const void *b, size_t n) {
    if (n) assert_memory_equal(a, b, n);
}

static void is_program(const cd_program_view *v, size_t i, const made *m) {
    const cd_rows *r = &m->r;
    const int64_t l0 = v->leaf_ptr[i], t0 = v->tree_ptr[i], p0 = v->path_ptr[l0];
    assert_int_equal(v->row_ptr[i + 1] - v->row_ptr[i], r->n_row);
    same(v->row + v->row_ptr[i] * CD_N_COL, r->row, r->n_row * CD_N_COL * sizeof(float));
    assert_int_equal(v->leaf_ptr[i + 1] - l0, r->n_leaf);
    for (uint32_t l = 0; l < r->n_leaf; l++) {
        same(v->leaf_x[l0 + l], r->leaf + l * CD_N_COL, CD_N_COL * sizeof(float));
        assert_int_equal(v->path_ptr[l0 + l + 1] - p0, r->path_ptr[l + 1]);
    }
    same(v->leaf_node + l0, r->leaf_node, r->n_leaf * sizeof(int32_t));
    same(v->leaf_pos + l0, r->leaf_pos, r->n_leaf * sizeof(int32_t));
    const size_t n_path = r->n_leaf ? (size_t)r->path_ptr[r->n_leaf] : 0;
    same(v->path_extent + p0, r->path_extent, n_path * sizeof(int64_t));
    same(v->path_kind + p0, r->path_kind, n_path);
    assert_int_equal(v->tree_ptr[i + 1] - t0, r->n_tree);
    same(v->tree + t0, r->tree, r->n_tree * sizeof(int32_t));
}

TEST(the_view_gives_programs_back) {
    cd_batch_builder *g;
    assert_ok(cd_batch_builder_new(true, false, &g, &err));
    /* first many, then few: nothing of the first stays */
    for (uint32_t round = 0; round < 3; round++) {
        const uint32_t first = 7 * round, n = round ? 5 : MANY;
        size_t rows = 0;
        cd_batch_builder_clear(g);
        assert_int_equal(cd_batch_builder_rows(g), 0);
        for (uint32_t i = 0; i < n; i++) {
            assert_ok(
                cd_batch_builder_add(g, &program[first % MANY + i].r, i % 3, 1e6 * i - 1, &err));
            rows += program[first % MANY + i].r.n_row;
        }
        const cd_program_view v = cd_batch_builder_view(g);
        assert_int_equal(v.n, n);
        assert_int_equal(cd_batch_builder_rows(g), rows);
        for (uint32_t i = 0; i < n; i++) {
            is_program(&v, i, &program[first % MANY + i]);
            assert_true(v.device[i] == i % 3 && v.flop[i] == 1e6 * i - 1);
        }
    }
    cd_batch_builder_free(g);
}

TEST(a_model_of_rows_gets_no_leaves) {
    cd_batch_builder *g;
    assert_ok(cd_batch_builder_new(false, false, &g, &err));
    assert_int_equal(cd_batch_builder_view(g).n, 0);
    made odd = program[0];
    odd.r.row = odd.row, odd.r.leaf = odd.leaf, odd.r.n_leaf = 1;
    odd.leaf[3] = INFINITY; /* nobody reads it */
    assert_ok(cd_batch_builder_add(g, &odd.r, 0, -1, &err));
    const cd_program_view v = cd_batch_builder_view(g);
    assert_true(v.n == 1 && !v.leaf_ptr && !v.leaf_x && !v.path_ptr && !v.tree_ptr);
    same(v.row, odd.row, odd.r.n_row * CD_N_COL * sizeof(float));
    cd_batch_builder_free(g);
}

/* Steps are in the view when every program has them; after a clear none of the old. */
TEST(steps_of_every_program) {
    static const int32_t code[] = {9, 1, 7, 8, 3, 1, 2, 3};
    cd_batch_builder *g;
    assert_ok(cd_batch_builder_new(false, false, &g, &err));
    for (int round = 0; round < 2; round++) {
        cd_batch_builder_clear(g);
        for (uint32_t i = 0; i < 3; i++) {
            assert_ok(cd_batch_builder_add(g, &program[i].r, 0, 1, &err));
            assert_null(cd_batch_builder_view(g).step_ptr);
            assert_ok(cd_batch_builder_add_steps(g, code + 3 * (i % 2),
                                                 i == 1 ? 5
                                                 : i    ? 0
                                                        : 3,
                                                 &err));
        }
        const cd_program_view v = cd_batch_builder_view(g);
        assert_true(v.step_ptr[0] == 0 && v.step_ptr[1] == 3 && v.step_ptr[2] == 8 &&
                    v.step_ptr[3] == 8);
        same(v.step, code, sizeof code);
    }
    FAULT_SWEEP(f, 1) {
        cd_batch_builder *h = NULL;
        f.st = cd_batch_builder_new(false, false, &h, &f.err);
        if (!f.st) f.st = cd_batch_builder_add(h, &program[0].r, 0, 1, &f.err);
        if (!f.st) f.st = cd_batch_builder_add_steps(h, code, 8, &f.err);
        cd_batch_builder_free(h);
    }
    cd_batch_builder_free(g);
}

/* What is refused leaves the others as they were. */
TEST(what_is_no_number_is_refused) {
    cd_batch_builder *g;
    assert_ok(cd_batch_builder_new(true, false, &g, &err));
    assert_ok(cd_batch_builder_add(g, &program[0].r, 0, 1, &err));
    for (int in_leaf = 0; in_leaf < 2; in_leaf++) {
        made bad = program[1];
        bad.r.row = bad.row, bad.r.leaf = bad.leaf, bad.r.n_row = 2, bad.r.n_leaf = 1;
        (in_leaf ? bad.leaf : bad.row + CD_N_COL)[17] = NAN; /* the second row, the first leaf */
        assert_status(cd_batch_builder_add(g, &bad.r, 0, 1, &err), CDMPP_ENUMERIC);
        assert_non_null(strstr(err.msg, "column 17 "));
    }
    assert_ok(cd_batch_builder_add(g, &program[2].r, 0, 1, &err));
    const cd_program_view v = cd_batch_builder_view(g);
    assert_int_equal(v.n, 2);
    is_program(&v, 0, &program[0]);
    is_program(&v, 1, &program[2]);
    cd_batch_builder_free(g);
}

TEST(memory_that_is_refused) {
    FAULT_SWEEP(f, 3) {
        cd_batch_builder *g = NULL;
        f.st = cd_batch_builder_new(true, false, &g, &f.err);
        for (int i = 0; i < MANY && !f.st; i++)
            f.st = cd_batch_builder_add(g, &program[i].r, 0, 1, &f.err);
        cd_batch_builder_free(g);
    }
}

TESTS(up, NULL, the_view_gives_programs_back, steps_of_every_program,
      a_model_of_rows_gets_no_leaves, what_is_no_number_is_refused, memory_that_is_refused)
