/* data_path: files of the checkout are found from this test's program, wherever it is run. */
#include "base/io/io.h"
#include "check.h"
#include "tmp.h"

TEST(of_the_checkout) {
    cd_arena a = {0};
    /* build/release/tests/base/io/units: three names up is build/release/tests */
    assert_null(cd_data_path_find(&a, "configs/nosuch.yaml"));
    const char *p = cd_data_path_find(&a, "base/io/units");
    assert_non_null(p);
    assert_int_equal(p[0], '/');
    assert_null(strstr(p, ".."));
    cd_arena_free(&a);
}

TEST(own_files_come_first) {
    cd_arena a = {0};
    tmp_dir t = tmp_make();
    const char *own = tmp_put(&t, "units", "", 0);
    assert_ptr_equal(cd_data_path_or(&a, "base/io", own), own);
    assert_ptr_equal(cd_data_path_or(&a, "base/io", "/nosuch/x"), "/nosuch/x");
    assert_string_equal(cd_data_path_or(&a, "base/io", "nosuch"), "nosuch");
    assert_string_equal(cd_data_path_or(&a, "base/io", "deep/units"), "deep/units");
    assert_string_equal(cd_data_path_or(&a, "base/io", ""), "");
    const char *bare = cd_data_path_or(&a, "base/io", "units"),
               *named = cd_data_path_or(&a, "base/io", "base/io/units");
    assert_string_equal(bare, named);
    assert_int_equal(access(bare, R_OK), 0);
    cd_arena_free(&a);
    tmp_remove(&t);
}

TESTS(NULL, NULL, of_the_checkout, own_files_come_first)
