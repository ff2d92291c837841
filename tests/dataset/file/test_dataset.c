/* dataset: what the writer wrote is read back; parts join. */
#include "dataset/file/file.h"

#include <hdf5.h>

#include "check.h"
#include "check_items.h"
#include "dataset/extract/extract.h"
#include "features/rows/rows.h"
#include "made_items.h"
#include "scratch.h"

TEST(round_trip) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL;
    const char *path = scratch("a.h5");
    assert_ok(make_file(path, 0, 3000, &err));
    assert_int_not_equal(access(scratch("a.h5.partial"), F_OK), 0);
    assert_ok(cd_dataset_load(&path, 1, &d, &err));
    assert_int_equal(d->n, 3000);
    assert_int_equal(d->n_col, 164);
    for (unsigned i = 0; i < 3000; i++) check_item(d, i, i);
    assert_int_equal(d->n_network, 2); /* sorted, without tasks that do not occur, each pair once */
    assert_string_equal(d->network_name[0], "net a");
    assert_int_equal(d->n_net_task, 3);
    assert_int_equal(d->net_weight[1], 7);
    assert_string_equal(d->task_name[d->net_task[1]], "[\"task0\", 0]");
    cd_dataset_free(d);
}

/* Whoever loads many files must not run out of what HDF5 keeps of each. */
TEST(nothing_stays_open) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL;
    const char *path = scratch("open.h5"), *none = scratch("none.h5");
    assert_ok(make_file(path, 0, 20, &err));
    assert_ok(cd_dataset_load(&path, 1, &d, &err));
    cd_dataset_free(d);
    assert_int_not_equal(cd_dataset_load(&none, 1, &d, &err), CDMPP_OK);
    assert_int_equal(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
}

TEST(empty) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL;
    const char *path = scratch("empty.h5");
    assert_ok(make_file(path, 0, 0, &err));
    assert_ok(cd_dataset_load(&path, 1, &d, &err));
    assert_int_equal(d->n + d->n_row + d->n_task + d->n_network, 0);
    cd_dataset_free(d);
}

/* As files of earlier versions are. */
static void drop_kinds(const char *path) {
    const hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(f >= 0 && H5Ldelete(f, "/key/kind", H5P_DEFAULT) >= 0 &&
                H5Ldelete(f, "/dict/kind", H5P_DEFAULT) >= 0);
    H5Fclose(f);
}

TEST(files_without_kinds_load) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL, *all = NULL;
    cd_extract_stats stats;
    const char *path[] = {scratch("old.h5"), scratch("new.h5")}, *joined = scratch("joined.h5");
    assert_ok(make_file(path[0], 0, 40, &err));
    assert_ok(make_file(path[1], 40, 90, &err));
    drop_kinds(path[0]);
    assert_ok(cd_dataset_load(path, 2, &d, &err));
    for (size_t i = 0; i < 40; i++) assert_string_equal(d->kind_name[d->kind[i]], "");
    for (unsigned i = 40; i < 90; i++) check_item(d, i, i);
    assert_ok(cd_merge(joined, path, 2, "test", &stats, &err));
    assert_ok(cd_dataset_load(&joined, 1, &all, &err));
    for (size_t i = 0; i < 90; i++)
        assert_string_equal(all->kind_name[all->kind[i]], d->kind_name[d->kind[i]]);
    cd_dataset_free(all);
    cd_dataset_free(d);
}

TEST(parts) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL, *whole = NULL;
    const char *path[] = {scratch("p1.h5"), scratch("p2.h5"), scratch("p3.h5")};
    const char *all = scratch("p.h5");
    assert_ok(make_file(path[0], 0, 90, &err));
    assert_ok(make_file(path[1], 90, 91, &err));
    assert_ok(make_file(path[2], 91, 300, &err));
    assert_ok(make_file(all, 0, 300, &err));
    assert_ok(cd_dataset_load(path, 3, &d, &err));
    assert_ok(cd_dataset_load(&all, 1, &whole, &err));
    assert_int_equal(d->n, 300);
    for (unsigned i = 0; i < 300; i++) check_item(d, i, i);
    assert_int_equal(d->n_task, whole->n_task);
    assert_int_equal(d->n_net_task, whole->n_net_task);
    assert_memory_equal(d->row_ptr, whole->row_ptr, 301 * sizeof *d->row_ptr);
    cd_dataset_free(d);
    cd_dataset_free(whole);
}

TEST(asts) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL, *rows = NULL;
    const char *path[] = {scratch("q1.h5"), scratch("q2.h5"), scratch("q3.h5")};
    assert_ok(make_file(path[0], 0, 2000, &err));
    assert_ok(make_file(path[1], 0, 0, &err));
    assert_ok(make_file(path[2], 2000, 2300, &err));
    assert_ok(cd_dataset_load_ast(path, 3, &d, &err));
    assert_ok(cd_dataset_load(path, 3, &rows, &err));
    assert_int_equal(d->n, 2300);
    assert_true(d->n_own > 1000 && d->n_own < d->n_leaf);
    for (unsigned i = 0; i < 2300; i++) {
        check_item(d, i, i);
        check_ast(d, i, i);
    }
    assert_null(rows->leaf_row);
    assert_memory_equal(rows->leaf_ptr, d->leaf_ptr, 2301 * sizeof *d->leaf_ptr);
    assert_string_equal(rows->content_digest, d->content_digest);
    cd_dataset_free(d);
    cd_dataset_free(rows);
}

/* The file's own order, for who compares it with TVM's. */
TEST(rows_as_written) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL;
    static made_item m;
    const char *path = scratch("raw.h5");
    size_t moved = 0;
    assert_ok(make_file(path, 0, 300, &err));
    assert_ok(cd_dataset_load_within(
        &path, 1, &(cd_dataset_options){.ast = true, .as_written = true, .folder = ""}, &d, &err));
    for (unsigned i = 0; i < 300; i++) {
        const size_t bytes = make_item(&m, i)->n_row * 164 * sizeof(float);
        assert_memory_equal(d->row + d->row_ptr[i] * 164, m.row, bytes);
        ordered_item(&m, i);
        moved += memcmp(d->row + d->row_ptr[i] * 164, m.row, bytes) != 0;
    }
    assert_true(moved > 250);
    cd_dataset_free(d);
}

/* What is kept on disk is what would be in memory. */
static void asts_on_disk(void **state) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL;
    const char *path = scratch("disk.h5");
    (void)state;
    assert_ok(make_file(path, 0, 2300, &err));
    assert_ok(cd_dataset_load_within(
        &path, 1, &(cd_dataset_options){.ast = true, .memory = (uint64_t)1 << 30, .folder = ""}, &d,
        &err));
    assert_null(d->spool);
    cd_dataset_free(d);
    assert_ok(cd_dataset_load_within(
        &path, 1, &(cd_dataset_options){.ast = true, .memory = 1, .folder = ""}, &d, &err));
    assert_non_null(d->spool);
    for (unsigned i = 0; i < 2300; i++) {
        check_item(d, i, i);
        check_ast(d, i, i);
    }
    cd_dataset_free(d);
    assert_status(cd_dataset_load_within(&path, 1,
                                         &(cd_dataset_options){.memory = 1, .folder = "/no/folder"},
                                         &d, &err),
                  CDMPP_EIO);
}

TESTS(NULL, NULL, round_trip, nothing_stays_open, empty, files_without_kinds_load, parts, asts,
      rows_as_written, asts_on_disk)
