/* merge: offsets of every block move by what is there already; offsets that fall are refused. */
#include <hdf5.h>
#include <stdlib.h>

#include "check.h"
#include "dataset/extract/extract.h"
#include "dataset/file/file.h"
#include "made_items.h"
#include "scratch.h"

static cdmpp_err err;

/* More offsets than merge copies at a time: a block is 4 MiB. */
enum { LEAVES = 600000, PATHS = 3 };

/* One program of one row with `n` leaves; the first three have a loop each, the last one has
 * three. */
static void write_wide(const char *path, uint32_t n) {
    static made_item m;
    static int32_t node[LEAVES], pos[LEAVES], row[LEAVES], ptr[LEAVES + 1], tree[2] = {0, -1};
    static uint8_t own[LEAVES];
    cd_writer *w = NULL;
    cd_buf place = {0};
    make_item(&m, 4);
    for (uint32_t k = 0; k < n; k++) ptr[k + 1] = k < PATHS ? (int32_t)k + 1 : PATHS;
    ptr[n] = 2 * PATHS;
    m.it.n_leaf = n, m.it.n_own = 0, m.it.n_tree = 2, m.it.tree = tree;
    m.it.leaf_node = node, m.it.leaf_pos = pos, m.it.leaf_row = row, m.it.leaf_own = own,
    m.it.path_ptr = ptr;
    assert_ok(cd_writer_open(&w, path, made_print, true, NULL, &place, &err));
    assert_ok(cd_writer_add(w, &m.it, &err));
    assert_ok(cd_writer_finish(w, &made_finish, &err));
    cd_writer_free(w);
    cd_buf_free(&place);
}

static int64_t *read_offsets(const char *path, uint64_t *n) {
    cd_h5 h;
    assert_ok(cd_h5_open(&h, path, &err));
    assert_ok(cd_h5_size(&h, "/ast/path_ptr", CD_H5_I64, 0, n, &err));
    int64_t *v = malloc(*n * sizeof *v);
    assert_non_null(v);
    assert_ok(cd_h5_read(&h, "/ast/path_ptr", (cd_h5_shape){CD_H5_I64, *n, 0}, 0, v, &err));
    assert_ok(cd_h5_close(&h, &err));
    return v;
}

TEST(offsets_of_every_block_move) {
    cd_extract_stats stats;
    const char *path[] = {scratch("small.h5"), scratch("wide.h5")}, *joined = scratch("joined.h5");
    uint64_t n[2], n_all;
    assert_ok(make_file(path[0], 0, 20, &err));
    write_wide(path[1], LEAVES);
    assert_ok(cd_merge(joined, path, 2, "test", &stats, &err));
    int64_t *a = read_offsets(path[0], &n[0]), *b = read_offsets(path[1], &n[1]),
            *all = read_offsets(joined, &n_all);
    const int64_t base = a[n[0] - 1];
    assert_true(base > 0 && n[1] == LEAVES + 1);
    assert_int_equal(n_all, n[0] + n[1] - 1);
    assert_memory_equal(all, a, n[0] * sizeof *a);
    for (uint64_t k = 0; k < n[1]; k++) assert_int_equal(all[n[0] - 1 + k], base + b[k]);
    free(a);
    free(b);
    free(all);
}

/* The first offset counts too, though the output has its 0 already. */
TEST(first_offset_below_zero) {
    cd_extract_stats stats;
    int64_t v[21];
    const char *path = scratch("bad.h5"), *out = scratch("none.h5");
    char want[400];
    assert_ok(make_file(path, 0, 20, &err));
    const hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT),
                d = H5Dopen2(f, "/features/row_ptr", H5P_DEFAULT);
    assert_true(H5Dread(d, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) >= 0);
    v[0] = -1;
    assert_true(H5Dwrite(d, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) >= 0);
    H5Dclose(d);
    H5Fclose(f);
    snprintf(want, sizeof want, "%s: /features/row_ptr: offsets do not rise [ESCHEMA]", path);
    assert_error(cd_merge(out, &path, 1, "test", &stats, &err), want);
    assert_int_not_equal(access(out, F_OK), 0);
}

/* Earlier versions wrote sets without a program. One beside others adds nothing; alone they make no
 * set. */
TEST(parts_without_a_program) {
    cd_extract_stats stats;
    const char *out = scratch("of_none.h5");
    const char *in[] = {scratch("empty.h5"), scratch("full.h5")};
    const char *twice[] = {in[0], in[0]};
    uint64_t n[2];
    assert_ok(make_file(in[0], 0, 0, &err));
    assert_ok(make_file(in[1], 0, 20, &err));
    assert_error(cd_merge(out, twice, 2, "test", &stats, &err),
                 "none of 2 parts has a program; no data set was written [ENODATA]");
    assert_int_not_equal(access(out, F_OK), 0);
    assert_ok(cd_merge(out, in, 2, "test", &stats, &err));
    int64_t *got = read_offsets(out, &n[0]), *want = read_offsets(in[1], &n[1]);
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(got, want, n[1] * sizeof *want);
    free(got);
    free(want);
}

TESTS(NULL, NULL, offsets_of_every_block_move, first_offset_below_zero, parts_without_a_program)
