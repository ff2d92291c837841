/* dataset: facts of loop nests are read back, from parts and merged; a file may have none, or those
 * of another version. */
#include "dataset/file/file.h"

#include <hdf5.h>

#include "check.h"
#include "check_items.h"
#include "dataset/extract/extract.h"
#include "made_items.h"
#include "scratch.h"

static void check_facts(const cd_dataset *d, size_t p, unsigned i) {
    static made_item m;
    make_item(&m, i);
    make_facts(&m, i);
    assert_int_equal(d->facts_state[p], m.it.facts_state);
    if (m.it.facts)
        assert_memory_equal(d->facts + p * CD_N_FACTS, m.it.facts, CD_N_FACTS * sizeof *d->facts);
    else
        for (size_t c = 0; c < CD_N_FACTS; c++) assert_true(isnan(d->facts[p * CD_N_FACTS + c]));
}

/* Facts of parts follow each other, in memory, on disk and merged; who does not ask for them does
 * not get them. */
TEST(facts) {
    cdmpp_err err = {0};
    cd_extract_stats stats;
    cd_dataset *d = NULL;
    const char *path[] = {scratch("f1.h5"), scratch("f2.h5")};
    const char *joined = scratch("f.h5");
    const char *plain = scratch("f3.h5");
    assert_ok(make_spoilt(path[0], 0, 200, make_facts, &err));
    assert_ok(make_spoilt(path[1], 200, 3000, make_facts, &err));
    assert_ok(cd_merge(joined, path, 2, "test", &stats, &err));
    for (int way = 0; way < 3; way++) {
        assert_ok(way < 2 ? load_facts(path, 2, way ? 1 : 0, &d, &err)
                          : load_facts(&joined, 1, 0, &d, &err));
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

/* A file of an earlier version, made by removing what it did not have, and one with facts of other
 * columns. */
static void spoil_facts(const char *path, const char *digest) {
    const hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(f >= 0);
    if (!digest) assert_true(H5Ldelete(f, "/facts", H5P_DEFAULT) >= 0);
    else {
        const hid_t d = H5Dopen2(f, "/facts/value", H5P_DEFAULT),
                    a = H5Aopen(d, digest, H5P_DEFAULT), t = H5Aget_type(a);
        char other[65] = "0123456789012345678901234567890123456789012345678901234567890123";
        assert_true(H5Awrite(a, t, other) >= 0);
        H5Tclose(t), H5Aclose(a), H5Dclose(d);
    }
    H5Fclose(f);
}

/* Facts of a version with fewer columns: the digest says what to do, before the width says that
 * something is wrong. */
static void narrow_facts(const char *path) {
    const hsize_t dims[2] = {40, CD_N_FACTS - 8};
    spoil_facts(path, "digest");
    const hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT),
                old = H5Dopen2(f, "/facts/value", H5P_DEFAULT),
                space = H5Screate_simple(2, dims, NULL);
    const hid_t new = H5Dcreate2(f, "/facts/narrow", H5T_IEEE_F32LE, space, H5P_DEFAULT,
                                 H5P_DEFAULT, H5P_DEFAULT);
    const hid_t a = H5Aopen(old, "digest", H5P_DEFAULT), t = H5Aget_type(a), s = H5Aget_space(a),
                b = H5Acreate2(new, "digest", t, s, H5P_DEFAULT, H5P_DEFAULT);
    char digest[65];
    assert_true(H5Aread(a, t, digest) >= 0 && H5Awrite(b, t, digest) >= 0);
    H5Aclose(b), H5Sclose(s), H5Tclose(t), H5Aclose(a), H5Dclose(new), H5Sclose(space),
        H5Dclose(old);
    assert_true(H5Ldelete(f, "/facts/value", H5P_DEFAULT) >= 0 &&
                H5Lmove(f, "/facts/narrow", f, "/facts/value", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Fclose(f);
}

TEST(files_without_facts) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL;
    cd_extract_stats stats;
    const char *path[] = {scratch("o1.h5"), scratch("o2.h5")};
    const char *other = scratch("o3.h5");
    const char *gpu = scratch("o4.h5");
    const char *joined = scratch("o.h5");
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

TESTS(NULL, NULL, facts, files_without_facts, false_facts)
