/* dataset: steps of schedules are read back, from parts and merged; a file may have none. */
#include "dataset/file/file.h"

#include "check.h"
#include "check_items.h"
#include "dataset/extract/extract.h"
#include "made_items.h"
#include "scratch.h"

static void check_steps(const cd_dataset *d, size_t p, unsigned i) {
    static made_item m;
    make_steps(&m, i);
    assert_int_equal(d->step_ptr[p + 1] - d->step_ptr[p], m.it.n_step);
    assert_memory_equal(d->step + d->step_ptr[p], m.it.step, m.it.n_step * sizeof *m.it.step);
}

/* Steps of parts follow each other, in memory, on disk and merged; an empty part has none and
 * hinders nobody. */
TEST(steps) {
    cdmpp_err err = {0};
    cd_extract_stats stats;
    const char *path[] = {scratch("s1.h5"), scratch("s2.h5"), scratch("s3.h5")};
    const char *joined = scratch("s.h5");
    assert_ok(make_spoilt(path[0], 0, 200, make_steps, &err));
    assert_ok(make_spoilt(path[1], 200, 3000, make_steps, &err));
    assert_ok(make_file(path[2], 0, 0, &err));
    const char *merged[] = {path[2], path[0], path[1]};
    assert_ok(cd_merge(joined, merged, 3, "test", &stats, &err));
    for (int way = 0; way < 3; way++) {
        cd_dataset *d = NULL;
        assert_ok(way < 2 ? load_steps(path, 2, way ? 1 : 0, &d, &err)
                          : load_steps(&joined, 1, 0, &d, &err));
        assert_true((d->spool != NULL) == (way == 1));
        for (unsigned i = 0; i < 3000; i++) check_steps(d, i, i);
        cd_dataset_free(d);
    }
}

/* A file without steps is as it was before there were any: nothing is added, and only who wants
 * them minds. */
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

TESTS(NULL, NULL, steps, files_without_steps, false_steps)
