/* view_of: a range of a view shows the same programs; rows alone have no leaves. */
#include "learner/inputs/program_view_dataset.h"

#include "check.h"
#include "made_items.h"
#include "scratch.h"

static void same_program(const cd_program_view *a, size_t i, const cd_program_view *b, size_t k) {
    assert_int_equal(a->row_ptr[i], b->row_ptr[k]);
    assert_int_equal(a->row_ptr[i + 1], b->row_ptr[k + 1]);
    assert_int_equal(a->leaf_ptr[i], b->leaf_ptr[k]);
    assert_int_equal(a->leaf_ptr[i + 1], b->leaf_ptr[k + 1]);
    assert_int_equal(a->tree_ptr[i], b->tree_ptr[k]);
    assert_int_equal(a->device[i], b->device[k]);
    assert_true(a->flop[i] == b->flop[k]);
}

static void views(void **state) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL;
    uint32_t device[40];
    const char *path = scratch("v.h5");
    (void)state;
    for (uint32_t i = 0; i < 40; i++) device[i] = 100 + i;
    assert_ok(make_file(path, 0, 40, &err));
    assert_ok(cd_dataset_load_ast(&path, 1, &d, &err));
    const cd_program_view v = cd_program_view_dataset(d, device),
                          r = cd_program_view_range(&v, 10, 20),
                          rr = cd_program_view_range(&r, 5, 3);
    assert_int_equal(v.n, 40);
    assert_int_equal(r.n, 20);
    for (size_t i = 0; i < 20; i++) same_program(&r, i, &v, i + 10);
    for (size_t i = 0; i < 3; i++) same_program(&rr, i, &v, i + 15);
    for (int64_t l = v.leaf_ptr[0]; l < v.leaf_ptr[40]; l++)
        assert_ptr_equal(cd_program_view_leaf(&v, (size_t)l),
                         d->leaf_row[l] < 0 ? d->own + ~d->leaf_row[l] * CD_N_COL
                                            : d->row + d->leaf_row[l] * CD_N_COL);
    cd_dataset_free(d);
    assert_ok(cd_dataset_load(&path, 1, &d, &err));
    const cd_program_view w = cd_program_view_dataset(d, device),
                          s = cd_program_view_range(&w, 10, 20);
    assert_null(w.leaf_ptr);
    assert_null(s.leaf_ptr);
    assert_null(s.tree_ptr);
    assert_int_equal(s.row_ptr[0], w.row_ptr[10]);
    cd_dataset_free(d);
}

TESTS(NULL, NULL, views)
