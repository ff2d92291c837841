/* A data set for several processes: one reads it, the others have the same arrays without
 * reading. */
#include "dataset/file/file.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "dataset/extract/extract.h"
#include "fault.h"
#include "made_items.h"
#include "scratch.h"

enum { N = 300 };

/* What the processes say to each other, one after another. */
typedef struct {
    cd_spool_place place;
    cdmpp_status st;
    int calls;
} talk;

/* Of the first: it tells. */
static cdmpp_status tell(void *ctx, cdmpp_status st, cd_spool_place *place, cdmpp_err *err) {
    talk *t = ctx;
    (void)err;
    t->place = *place;
    t->st = st;
    t->calls++;
    return st;
}

/* Of the others: they hear. */
static cdmpp_status hear(void *ctx, cdmpp_status st, cd_spool_place *place, cdmpp_err *err) {
    talk *t = ctx;
    t->calls++;
    if (t->st) return CD_FAIL(err, EIO, "the first failed");
    *place = t->place;
    return st;
}

static cdmpp_status load(const char *const *path, size_t n, talk *t, bool first, uint64_t memory,
                         cd_dataset **d, cdmpp_err *err) {
    const cd_dataset_share share = {first, first ? tell : hear, t};
    return cd_dataset_load_within(
        path, n,
        &(cd_dataset_options){.ast = true, .memory = memory, .folder = "", .share = &share}, d,
        err);
}

#define SAME(member, n) assert_memory_equal(a->member, b->member, (n) * sizeof *a->member)

static void same_arrays(const cd_dataset *a, const cd_dataset *b) {
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->bytes, b->bytes);
    assert_int_equal(a->n_kind, b->n_kind);
    assert_int_equal(a->n_net_task, b->n_net_task);
    assert_string_equal(a->content_digest, b->content_digest);
    SAME(row, a->n_row * a->n_col);
    SAME(row_ptr, a->n + 1);
    SAME(latency_s, a->n);
    SAME(task, a->n);
    SAME(kind, a->n);
    SAME(leaf_row, a->n_leaf);
    SAME(own, a->n_own * a->n_col);
    SAME(path_extent, a->n_path);
    SAME(tree, a->n_tree);
    SAME(net_network, a->n_net_task);
    SAME(net_task, a->n_net_task);
    SAME(net_weight, a->n_net_task);
    for (size_t k = 0; k < a->n_task; k++) assert_string_equal(a->task_name[k], b->task_name[k]);
    for (size_t k = 0; k < a->n_kind; k++) assert_string_equal(a->kind_name[k], b->kind_name[k]);
}

/* In memory and on disk, of two files; what the first alone has read is what a process by itself
 * would have. */
TEST(one_reads_for_all) {
    const char *path[] = {scratch("a.h5"), scratch("b.h5")};
    cdmpp_err err = {0};
    cd_dataset *alone = NULL;
    assert_ok(make_file(path[0], 0, N, &err));
    assert_ok(make_file(path[1], N / 2, N, &err));
    assert_ok(cd_dataset_load_ast(path, 2, &alone, &err));
    assert_null(alone->spool);
    for (uint64_t memory = 0; memory < 2; memory++) {
        cd_dataset *first = NULL, *other = NULL;
        talk t = {0};
        assert_ok(load(path, 2, &t, true, memory, &first, &err));
        assert_ok(load(path, 2, &t, false, memory, &other, &err));
        assert_int_equal(t.calls, 2);
        assert_true(cd_spool_on_disk(first->spool) == (memory != 0) &&
                    cd_spool_on_disk(other->spool) == (memory != 0));
        assert_true(other->borrowed && !first->borrowed);
        same_arrays(alone, first);
        same_arrays(alone, other);
        first->latency_s[7] = -3; /* the other has no copy */
        assert_true(other->latency_s[7] == -3);
        cd_dataset_free(first);
        same_arrays(other, other);
        cd_dataset_free(other);
    }
    cd_dataset_free(alone);
}

/* In a container of its own a process sees no other's files, and reads for itself. */
TEST(who_cannot_see_it_reads) {
    const char *path = scratch("a.h5");
    cdmpp_err err = {0};
    cd_dataset *alone = NULL, *other = NULL;
    talk t = {.place = {-1, -1}};
    assert_ok(make_file(path, 0, N, &err));
    assert_ok(cd_dataset_load_ast(&path, 1, &alone, &err));
    assert_ok(load(&path, 1, &t, false, 0, &other, &err));
    assert_false(other->borrowed);
    same_arrays(alone, other);
    cd_dataset_free(other);
    cd_dataset_free(alone);
}

/* Whatever happens, each process speaks once: else the others would wait. */
TEST(an_error_of_the_first_is_everybodys) {
    const char *path = scratch("a.h5"), *none = "nosuch.h5";
    cdmpp_err err = {0};
    cd_dataset *d = NULL;
    talk t = {0};
    assert_ok(make_file(path, 0, 20, &err));
    assert_status(load(&none, 1, &t, true, 0, &d, &err), CDMPP_EIO);
    assert_int_equal(t.calls, 1);
    assert_status(load(&path, 1, &t, false, 0, &d, &err), CDMPP_EIO);
    assert_string_equal(err.msg, "the first failed");
    assert_int_equal(t.calls, 2);
}

TEST(out_of_memory) {
    const char *path = scratch("a.h5");
    cdmpp_err err = {0};
    assert_ok(make_file(path, 0, 40, &err));
    FAULT_SWEEP(f, 10) {
        cd_dataset *first = NULL, *other = NULL;
        talk t = {0};
        f.st = load(&path, 1, &t, true, 0, &first, &f.err);
        assert_int_equal(t.calls, 1);
        if (!f.st) f.st = load(&path, 1, &t, false, 0, &other, &f.err);
        if (first) assert_int_equal(t.calls, 2);
        cd_dataset_free(other);
        cd_dataset_free(first);
    }
}

TESTS(NULL, NULL, one_reads_for_all, who_cannot_see_it_reads, an_error_of_the_first_is_everybodys,
      out_of_memory)
