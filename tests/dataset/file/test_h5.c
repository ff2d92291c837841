/* h5: an array of another type is refused, and the message names its file and its path. */
#include "check.h"
#include "dataset/file/file.h"
#include "scratch.h"

/* An array has no lines, so the place is the file alone. */
TEST(another_type) {
    static const float data[3] = {1, 2, 3};
    cdmpp_err err = {0};
    const char *path = scratch("type.h5");
    char want[400], **text = NULL;
    double got[3];
    uint64_t n;
    size_t n_text;
    cd_h5 h;
    assert_ok(cd_h5_create(&h, path, &err));
    assert_ok(cd_h5_write(&h, "/a/b", (cd_h5_shape){CD_H5_F32, 3, 0}, data, &err));
    assert_ok(cd_h5_close(&h, &err));
    snprintf(want, sizeof want,
             "%s: /a/b: the array has another element type than this version writes [ESCHEMA]",
             path);
    assert_ok(cd_h5_open(&h, path, &err));
    assert_error(cd_h5_size(&h, "/a/b", CD_H5_F64, 0, &n, &err), want);
    err = (cdmpp_err){0};
    assert_error(cd_h5_read(&h, "/a/b", (cd_h5_shape){CD_H5_F64, 3, 0}, 0, got, &err), want);
    err = (cdmpp_err){0};
    assert_error(cd_h5_read_text(&h, "/a/b", &n_text, &text, &err), want);
    assert_ok(cd_h5_close(&h, &err));
}

TESTS(NULL, NULL, another_type)
