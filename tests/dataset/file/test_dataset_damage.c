/* dataset: damage, lies, a full disk and no memory are errors. */
#include "dataset/file/file.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "check.h"
#include "check_items.h"
#include "dataset/extract/extract.h"
#include "fault.h"
#include "made_items.h"
#include "scratch.h"

/* HDF5 1.10 itself leaks when it meets a damaged file. */
const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void) {
    return "leak:libhdf5";
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
    static const char *const key[] = {"/ast/leaf_row", "/ast/leaf_row", "/ast/own_ptr",
                                      "/ast/own_ptr",  "/ast/leaf_pos", "/ast/leaf_pos",
                                      "/ast/leaf_pos", "/ast/leaf_pos", "/ast/tree",
                                      "/ast/tree",     "/ast/tree",     "/ast/path_kind"};
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
        if (st == CDMPP_OK)
            st = cd_h5_write(&h, "/a/b", (cd_h5_shape){CD_H5_F64, 100000, 0}, data, &err);
        const bool told =
            st == CDMPP_EIO && strstr(err.msg, "File too large") && strcmp(err.key, "/a/b") == 0;
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
        if (!f.st)
            f.st = cd_dataset_load_within(
                &path, 1, &(cd_dataset_options){.ast = true, .memory = 1, .folder = ""}, &d,
                &f.err);
        cd_dataset_free(d);
    }
}

TESTS(NULL, NULL, false_asts, not_ours, damage, out_of_memory, full_disk)
