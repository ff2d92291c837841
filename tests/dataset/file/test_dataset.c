/* dataset: what the writer wrote is read back; parts join; damage is an error. */
#include "dataset/file/file.h"

#include <hdf5.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "check.h"
#include "dataset/extract/extract.h"
#include "fault.h"
#include "features/rows/rows.h"
#include "made_items.h"
#include "scratch.h"

/* HDF5 1.10 itself leaks when it meets a damaged file. */
const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void) { return "leak:libhdf5"; }

/* As a loaded data set has it: rows and the buffers of leaves in order. */
static const cd_item *ordered_item(made_item *m, unsigned i) {
    const cd_item *it = make_item(m, i);
    uint32_t from[16];
    int32_t to[16];
    cd_rows_order(m->row, it->n_row, from);
    for (unsigned k = 0; k < it->n_row; k++) to[from[k]] = (int32_t)k;
    for (unsigned k = 0; k < it->n_leaf; k++) m->leaf_row[k] = to[m->leaf_row[k]];
    for (unsigned k = 0; k < it->n_own; k++) cd_rows_order_blocks(m->own + 164 * k);
    return it;
}

static void check_item(const cd_dataset *d, size_t p, unsigned i) {
    static made_item m;
    const cd_item *it = ordered_item(&m, i);
    assert_int_equal(d->row_ptr[p + 1] - d->row_ptr[p], it->n_row);
    assert_memory_equal(d->row + d->row_ptr[p] * 164, it->row, it->n_row * 164 * sizeof(float));
    assert_memory_equal(&d->latency_s[p], &it->latency_s, sizeof(double));
    assert_memory_equal(&d->latency_mean_s[p], &it->latency_mean_s, sizeof(double));
    assert_memory_equal(&d->latency_std_s[p], &it->latency_std_s, sizeof(double));
    assert_memory_equal(&d->latency_min_s[p], &it->latency_min_s, sizeof(double));
    assert_memory_equal(&d->flop[p], &it->flop, sizeof(double));
    assert_int_equal(d->repeats[p], it->repeats);
    assert_int_equal(d->error[p], it->error);
    assert_int_equal(d->is_gpu[p], it->is_gpu);
    assert_int_equal(d->source_line[p], it->source_line);
    assert_string_equal(d->task_name[d->task[p]], m.task);
    assert_string_equal(d->source_name[d->source_file[p]], m.source);
    assert_string_equal(d->device_name[d->device[p]], i % 2 ? "v100" : "zen5");
    assert_string_equal(d->kind_name[d->kind[p]], i % 3 ? "dtype float32" : "dtype float16; intrinsic exp");
}

/* Program p of a data set with ASTs is item i. */
static void check_ast(const cd_dataset *d, size_t p, unsigned i) {
    static made_item m;
    const cd_item *it = ordered_item(&m, i);
    const int64_t l0 = d->leaf_ptr[p], t0 = d->tree_ptr[p];
    size_t own = 0;
    assert_int_equal(d->leaf_ptr[p + 1] - l0, it->n_leaf);
    assert_int_equal(d->tree_ptr[p + 1] - t0, it->n_tree);
    assert_memory_equal(d->tree + t0, it->tree, it->n_tree * sizeof *it->tree);
    assert_memory_equal(d->leaf_pos + l0, it->leaf_pos, it->n_leaf * sizeof *it->leaf_pos);
    assert_memory_equal(d->leaf_node + l0, it->leaf_node, it->n_leaf * sizeof *it->leaf_node);
    for (unsigned k = 0; k < it->n_leaf; k++) {
        const int64_t a = d->path_ptr[l0 + k], n = it->path_ptr[k + 1] - it->path_ptr[k];
        const float *x = it->leaf_own[k] ? it->own + 164 * own++ : it->row + 164 * it->leaf_row[k];
        const int64_t at = d->leaf_row[l0 + k];
        assert_memory_equal(at < 0 ? d->own + 164 * ~at : d->row + 164 * at, x, 164 * sizeof(float));
        assert_int_equal(it->leaf_own[k] ? 0 : d->row_ptr[p] + it->leaf_row[k], it->leaf_own[k] ? 0 : at);
        assert_int_equal(d->path_ptr[l0 + k + 1] - a, n);
        assert_memory_equal(d->path_extent + a, it->path_extent + it->path_ptr[k], (size_t)n * sizeof(int64_t));
        assert_memory_equal(d->path_kind + a, it->path_kind + it->path_ptr[k], (size_t)n);
    }
}

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
    assert_true(f >= 0 && H5Ldelete(f, "/key/kind", H5P_DEFAULT) >= 0 && H5Ldelete(f, "/dict/kind", H5P_DEFAULT) >= 0);
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
    for (size_t i = 0; i < 90; i++) assert_string_equal(all->kind_name[all->kind[i]], d->kind_name[d->kind[i]]);
    cd_dataset_free(all);
    cd_dataset_free(d);
}

TEST(parts) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL, *whole = NULL;
    const char *path[] = {scratch("p1.h5"), scratch("p2.h5"), scratch("p3.h5")}, *all = scratch("p.h5");
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
    assert_ok(cd_dataset_load_within(&path, 1, &(cd_dataset_options){.ast = true, .as_written = true, .folder = ""}, &d, &err));
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
    assert_ok(cd_dataset_load_within(&path, 1, &(cd_dataset_options){.ast = true, .memory = (uint64_t)1 << 30, .folder = ""}, &d, &err));
    assert_null(d->spool);
    cd_dataset_free(d);
    assert_ok(cd_dataset_load_within(&path, 1, &(cd_dataset_options){.ast = true, .memory = 1, .folder = ""}, &d, &err));
    assert_non_null(d->spool);
    for (unsigned i = 0; i < 2300; i++) {
        check_item(d, i, i);
        check_ast(d, i, i);
    }
    cd_dataset_free(d);
    assert_status(cd_dataset_load_within(&path, 1, &(cd_dataset_options){.memory = 1, .folder = "/no/folder"}, &d, &err), CDMPP_EIO);
}

static void check_steps(const cd_dataset *d, size_t p, unsigned i) {
    static made_item m;
    make_steps(&m, i);
    assert_int_equal(d->step_ptr[p + 1] - d->step_ptr[p], m.it.n_step);
    assert_memory_equal(d->step + d->step_ptr[p], m.it.step, m.it.n_step * sizeof *m.it.step);
}

static cdmpp_status load_steps(const char *const *path, size_t n, uint64_t memory, cd_dataset **d, cdmpp_err *err) {
    return cd_dataset_load_within(path, n, &(cd_dataset_options){.steps = true, .memory = memory, .folder = ""}, d, err);
}

/* Steps of parts follow each other, in memory, on disk and merged; an empty part has none and hinders nobody. */
TEST(steps) {
    cdmpp_err err = {0};
    cd_extract_stats stats;
    const char *path[] = {scratch("s1.h5"), scratch("s2.h5"), scratch("s3.h5")}, *joined = scratch("s.h5");
    assert_ok(make_spoilt(path[0], 0, 200, make_steps, &err));
    assert_ok(make_spoilt(path[1], 200, 3000, make_steps, &err));
    assert_ok(make_file(path[2], 0, 0, &err));
    const char *merged[] = {path[2], path[0], path[1]};
    assert_ok(cd_merge(joined, merged, 3, "test", &stats, &err));
    for (int way = 0; way < 3; way++) {
        cd_dataset *d = NULL;
        assert_ok(way < 2 ? load_steps(path, 2, way ? 1 : 0, &d, &err) : load_steps(&joined, 1, 0, &d, &err));
        assert_true((d->spool != NULL) == (way == 1));
        for (unsigned i = 0; i < 3000; i++) check_steps(d, i, i);
        cd_dataset_free(d);
    }
}

/* A file without steps is as it was before there were any: nothing is added, and only who wants them minds. */
TEST(files_without_steps) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL, *with = NULL;
    cd_extract_stats stats;
    const char *path[] = {scratch("w1.h5"), scratch("w2.h5")}, *joined = scratch("w.h5");
    assert_ok(make_spoilt(path[0], 0, 40, make_steps, &err));
    assert_ok(make_file(path[1], 0, 40, &err));
    assert_status(load_steps(path, 2, 0, &d, &err), CDMPP_ENODATA);
    assert_string_equal(err.path, path[1]);
    assert_non_null(strstr(err.msg, "cdmpp-extract --steps"));
    assert_status(cd_merge(joined, path, 2, "test", &stats, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.path, path[1]);
    assert_ok(cd_dataset_load(&path[0], 1, &with, &err));
    assert_ok(cd_dataset_load(&path[1], 1, &d, &err));
    assert_null(with->step_ptr);
    assert_string_equal(with->content_digest, d->content_digest);
    cd_dataset_free(d);
    cd_dataset_free(with);
    cd_h5 h;
    assert_ok(cd_h5_open(&h, path[1], &err));
    assert_false(cd_h5_has(&h, "/steps/ptr"));
    assert_ok(cd_h5_close(&h, &err));
}

static void bad_steps(made_item *m, unsigned i) {
    static const int32_t bad[] = {9, 2, 0};
    make_steps(m, i);
    if (i == 7) m->it.step = bad, m->it.n_step = 3;
}

TEST(false_steps) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL;
    const char *path = scratch("bad.h5");
    assert_ok(make_spoilt(path, 0, 20, bad_steps, &err));
    assert_status(load_steps(&path, 1, 0, &d, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.key, "/steps/code");
}

/* Item i with facts, but every fifth, and GPU programs as an earlier version left them. */
static void make_facts(made_item *m, unsigned i) {
    static float fact[CD_N_FACTS];
    m->it.facts_state = m->it.is_gpu ? (i % 3 ? CD_FACTS_THERE_GPU : CD_FACTS_GPU) : i % 5 ? CD_FACTS_THERE : CD_FACTS_UNSUPPORTED;
    m->it.facts = cd_facts_are_there(m->it.facts_state) ? fact : NULL;
    for (unsigned c = 0; c < CD_N_FACTS; c++) fact[c] = (float)(i + c) / 3;
}

static cdmpp_status load_facts(const char *const *path, size_t n, uint64_t memory, cd_dataset **d, cdmpp_err *err) {
    return cd_dataset_load_within(path, n, &(cd_dataset_options){.facts = true, .memory = memory, .folder = ""}, d, err);
}

static void check_facts(const cd_dataset *d, size_t p, unsigned i) {
    static made_item m;
    make_item(&m, i);
    make_facts(&m, i);
    assert_int_equal(d->facts_state[p], m.it.facts_state);
    if (m.it.facts) assert_memory_equal(d->facts + p * CD_N_FACTS, m.it.facts, CD_N_FACTS * sizeof *d->facts);
    else for (size_t c = 0; c < CD_N_FACTS; c++) assert_true(isnan(d->facts[p * CD_N_FACTS + c]));
}

/* Facts of parts follow each other, in memory, on disk and merged; who does not ask for them does not get them. */
TEST(facts) {
    cdmpp_err err = {0};
    cd_extract_stats stats;
    cd_dataset *d = NULL;
    const char *path[] = {scratch("f1.h5"), scratch("f2.h5")}, *joined = scratch("f.h5"), *plain = scratch("f3.h5");
    assert_ok(make_spoilt(path[0], 0, 200, make_facts, &err));
    assert_ok(make_spoilt(path[1], 200, 3000, make_facts, &err));
    assert_ok(cd_merge(joined, path, 2, "test", &stats, &err));
    for (int way = 0; way < 3; way++) {
        assert_ok(way < 2 ? load_facts(path, 2, way ? 1 : 0, &d, &err) : load_facts(&joined, 1, 0, &d, &err));
        assert_true((d->spool != NULL) == (way == 1));
        for (unsigned i = 0; i < 3000; i++) check_facts(d, i, i);
        cd_dataset_free(d);
    }
    assert_ok(make_file(plain, 0, 200, &err));
    assert_ok(load_facts(&plain, 1, 0, &d, &err)); /* written without: each program says so */
    for (unsigned i = 0; i < 200; i++) assert_int_equal(d->facts_state[i], CD_FACTS_ABSENT);
    cd_dataset *with = NULL;
    assert_ok(cd_dataset_load(path, 1, &with, &err));
    assert_null(with->facts);
    assert_string_equal(with->content_digest, d->content_digest); /* the same data */
    cd_dataset_free(d);
    cd_dataset_free(with);
    assert_string_equal(cd_layout_facts_text(CD_FACTS_GPU), "a GPU program of an earlier version");
    assert_string_equal(cd_layout_facts_text(77), "of an unknown state");
}

/* A file of an earlier version, made by removing what it did not have, and one with facts of other columns. */
static void spoil_facts(const char *path, const char *digest) {
    const hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(f >= 0);
    if (!digest) assert_true(H5Ldelete(f, "/facts", H5P_DEFAULT) >= 0);
    else {
        const hid_t d = H5Dopen2(f, "/facts/value", H5P_DEFAULT), a = H5Aopen(d, digest, H5P_DEFAULT), t = H5Aget_type(a);
        char other[65] = "0123456789012345678901234567890123456789012345678901234567890123";
        assert_true(H5Awrite(a, t, other) >= 0);
        H5Tclose(t), H5Aclose(a), H5Dclose(d);
    }
    H5Fclose(f);
}

/* Facts of a version with fewer columns: the digest says what to do, before the width says that something is wrong. */
static void narrow_facts(const char *path) {
    const hsize_t dims[2] = {40, CD_N_FACTS - 8};
    spoil_facts(path, "digest");
    const hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), old = H5Dopen2(f, "/facts/value", H5P_DEFAULT), space = H5Screate_simple(2, dims, NULL);
    const hid_t new = H5Dcreate2(f, "/facts/narrow", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t a = H5Aopen(old, "digest", H5P_DEFAULT), t = H5Aget_type(a), s = H5Aget_space(a), b = H5Acreate2(new, "digest", t, s, H5P_DEFAULT, H5P_DEFAULT);
    char digest[65];
    assert_true(H5Aread(a, t, digest) >= 0 && H5Awrite(b, t, digest) >= 0);
    H5Aclose(b), H5Sclose(s), H5Tclose(t), H5Aclose(a), H5Dclose(new), H5Sclose(space), H5Dclose(old);
    assert_true(H5Ldelete(f, "/facts/value", H5P_DEFAULT) >= 0 && H5Lmove(f, "/facts/narrow", f, "/facts/value", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Fclose(f);
}

TEST(files_without_facts) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL;
    cd_extract_stats stats;
    const char *path[] = {scratch("o1.h5"), scratch("o2.h5")}, *other = scratch("o3.h5"), *gpu = scratch("o4.h5"), *joined = scratch("o.h5");
    assert_ok(make_spoilt(path[0], 0, 40, make_facts, &err));
    assert_ok(make_spoilt(path[1], 40, 90, make_facts, &err));
    assert_ok(make_spoilt(other, 0, 40, make_facts, &err));
    assert_ok(make_spoilt(gpu, 0, 40, make_facts, &err));
    spoil_facts(path[0], NULL);
    spoil_facts(other, "digest");
    spoil_facts(gpu, "gpu_digest");
    assert_ok(cd_dataset_load(path, 2, &d, &err));
    cd_dataset_free(d);
    assert_status(load_facts(path, 2, 0, &d, &err), CDMPP_ENODATA);
    assert_string_equal(err.path, path[0]);
    assert_ok(cd_dataset_load(&other, 1, &d, &err));
    cd_dataset_free(d);
    assert_status(load_facts(&other, 1, 0, &d, &err), CDMPP_ESCHEMA);
    assert_status(cd_merge(joined, &other, 1, "test", &stats, &err), CDMPP_ESCHEMA);
    assert_status(load_facts(&gpu, 1, 0, &d, &err), CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "of GPU programs"));
    assert_status(cd_merge(joined, &gpu, 1, "test", &stats, &err), CDMPP_ESCHEMA);
    narrow_facts(other);
    assert_status(load_facts(&other, 1, 0, &d, &err), CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "extract the logs again"));
    assert_status(cd_merge(joined, &other, 1, "test", &stats, &err), CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "extract the logs again"));
    assert_ok(cd_merge(joined, path, 2, "test", &stats, &err));
    assert_ok(load_facts(&joined, 1, 0, &d, &err));
    for (unsigned i = 0; i < 40; i++) assert_int_equal(d->facts_state[i], CD_FACTS_ABSENT);
    for (unsigned i = 40; i < 90; i++) check_facts(d, i, i);
    cd_dataset_free(d);
}

static void bad_facts(made_item *m, unsigned i) {
    static float bad[CD_N_FACTS];
    make_facts(m, i);
    if (i != 8) return;
    bad[3] = NAN;
    m->it.facts = bad;
}

TEST(false_facts) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL;
    const char *path = scratch("badf.h5");
    assert_ok(make_spoilt(path, 0, 20, bad_facts, &err));
    assert_status(load_facts(&path, 1, 0, &d, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.key, "/facts/value");
}

/* One lie in item 21 (two rows, three leaves, of which 0 has a row of its own). */
static int lie;
static void tell(made_item *m, unsigned i) {
    if (i != 21) return;
    if (lie == 0) m->leaf_row[1] = 2;
    if (lie == 1) m->leaf_row[1] = -1;
    if (lie == 2) m->leaf_own[1] = 1;
    if (lie == 3) m->leaf_own[0] = 0;
    if (lie == 4) m->leaf_pos[2] = 100;
    if (lie == 5) m->leaf_pos[2] = -1;
    if (lie == 6) m->leaf_node[2] = 1;
    if (lie == 7) m->leaf_pos[0] = 2, m->leaf_node[0] = -1;
    if (lie == 8) m->tree[3] = 3;
    if (lie == 9) m->tree[2] = 2;
    if (lie == 10) m->tree[m->it.n_tree - 1] = 4;
    if (lie == 11) m->path_kind[0] = 5;
}

/* Checksums are right, what they sum is not. */
TEST(false_asts) {
    static const char *const key[] = {"/ast/leaf_row", "/ast/leaf_row", "/ast/own_ptr",  "/ast/own_ptr", "/ast/leaf_pos", "/ast/leaf_pos",
                                      "/ast/leaf_pos", "/ast/leaf_pos", "/ast/tree",     "/ast/tree",    "/ast/tree",     "/ast/path_kind"};
    const char *path = scratch("lie.h5");
    for (lie = 0; lie < 12; lie++) {
        cdmpp_err err = {0};
        cd_dataset *d = NULL;
        assert_ok(make_spoilt(path, 0, 60, tell, &err));
        assert_status(cd_dataset_load_ast(&path, 1, &d, &err), CDMPP_ESCHEMA);
        assert_string_equal(err.key, key[lie]);
        assert_non_null(strstr(err.path, "lie.h5"));
        assert_ok(cd_dataset_load(&path, 1, &d, &err)); /* rows alone are good */
        cd_dataset_free(d);
    }
}

TEST(not_ours) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL;
    const char *path = scratch("none.h5");
    cd_h5 h;
    assert_status(cd_dataset_load(&path, 1, &d, &err), CDMPP_EIO);
    assert_non_null(strstr(err.path, "none.h5"));
    scratch_write(path, "not hdf5", 8);
    err = (cdmpp_err){0};
    assert_status(cd_dataset_load(&path, 1, &d, &err), CDMPP_ESCHEMA);
    err = (cdmpp_err){0};
    assert_ok(cd_h5_create(&h, path, &err));
    assert_ok(cd_h5_set_text(&h, "/", "schema", CD_LAYOUT_SCHEMA, &err));
    assert_ok(cd_h5_set_u32(&h, "/", "schema_version", 99, &err));
    assert_ok(cd_h5_close(&h, &err));
    assert_status(cd_dataset_load(&path, 1, &d, &err), CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "99"));
    assert_null(d);
}

/* Load a damaged copy: an error with the path, or exactly the same contents. */
static size_t try_damaged(const unsigned char *data, size_t n, const cd_dataset *good) {
    const char *path = scratch("damaged.h5");
    cd_dataset *d = NULL;
    cdmpp_err err = {0};
    scratch_write(path, data, n);
    const cdmpp_status st = cd_dataset_load_ast(&path, 1, &d, &err);
    if (st) {
        assert_true(st == CDMPP_EIO || st == CDMPP_ESCHEMA || st == CDMPP_ENOMEM);
        assert_non_null(strstr(err.path, "damaged.h5"));
        return 1;
    }
    assert_int_equal(d->n, good->n);
    assert_memory_equal(d->row, good->row, good->n_row * 164 * sizeof(float));
    assert_memory_equal(d->latency_s, good->latency_s, good->n * sizeof(double));
    assert_memory_equal(d->task, good->task, good->n * sizeof *good->task);
    for (unsigned i = 0; i < good->n; i++) check_ast(d, i, i);
    cd_dataset_free(d);
    return 0;
}

TEST(damage) {
    cdmpp_err err = {0};
    cd_dataset *good = NULL;
    const char *path = scratch("good.h5");
    size_t n = 0, seen = 0, cut = 0, tried = 0;
    assert_ok(make_file(path, 0, 20, &err));
    assert_ok(cd_dataset_load(&path, 1, &good, &err));
    unsigned char *data = scratch_read(path, &n), *copy = malloc(n);
    assert_true(data && copy);
    for (size_t len = 0; len < n; len += 1 + n / 97, tried++) cut += try_damaged(data, len, good);
    assert_int_equal(cut, tried);
    for (size_t at = tried = 0; at < n; at += 53, tried++) {
        memcpy(copy, data, n);
        copy[at] ^= (unsigned char)(1u << at % 8);
        seen += try_damaged(copy, n, good);
    }
    assert_true(seen > 0);
    print_message("%zu bytes, %zu cuts, %zu of %zu flips noticed\n", n, cut, seen, tried);
    free(data);
    free(copy);
    cd_dataset_free(good);
}

/* A file that cannot be written to its end is an error, and the process ends well. */
TEST(full_disk) {
    const char *path = scratch("full.h5");
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        static const double data[100000];
        const struct rlimit r = {100000, 100000};
        cdmpp_err err = {0};
        cd_h5 h;
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &r);
        cdmpp_status st = cd_h5_create(&h, path, &err);
        if (st == CDMPP_OK) st = cd_h5_write(&h, "/a/b", (cd_h5_shape){CD_H5_F64, 100000, 0}, data, &err);
        const bool told = st == CDMPP_EIO && strstr(err.msg, "File too large") && strcmp(err.key, "/a/b") == 0;
        (void)cd_h5_close(&h, NULL);
        exit(told ? 0 : 1); /* not _exit: HDF5's clean-up is what is tested */
    }
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Every allocation of writing and loading fails once: an error, nothing leaked. */
TEST(out_of_memory) {
    const char *path = scratch("fault.h5");
    FAULT_SWEEP(f, 1) {
        cd_dataset *d = NULL;
        f.st = make_spoilt(path, 0, 60, make_facts, &f.err);
        if (!f.st) f.st = load_facts(&path, 1, 0, &d, &f.err);
        cd_dataset_free(d);
        d = NULL;
        if (!f.st) f.st = make_spoilt(path, 0, 60, make_steps, &f.err);
        if (!f.st) f.st = load_steps(&path, 1, 0, &d, &f.err);
        cd_dataset_free(d);
        d = NULL;
        if (!f.st) f.st = cd_dataset_load_ast(&path, 1, &d, &f.err);
        cd_dataset_free(d);
        d = NULL;
        if (!f.st) f.st = cd_dataset_load_within(&path, 1, &(cd_dataset_options){.ast = true, .memory = 1, .folder = ""}, &d, &f.err);
        cd_dataset_free(d);
    }
}

TESTS(NULL, NULL, round_trip, nothing_stays_open, empty, files_without_kinds_load, parts, asts, rows_as_written, asts_on_disk, steps, files_without_steps, false_steps, facts, files_without_facts, false_facts, false_asts, not_ours, damage, out_of_memory, full_disk)
