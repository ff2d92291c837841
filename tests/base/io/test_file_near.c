/* The name of a file that is misspelt. */
#include <string.h>

#include "base/io/io.h"
#include "check.h"
#include "tmp.h"

static const char *near_to(tmp_dir *d, const char *name) {
    static char out[CD_FILE_NEAR_MAX];
    cd_file_near(tmp_path(d, name), out, sizeof out);
    const char *slash = strrchr(out, '/');
    return slash ? slash + 1 : out;
}

/* Of names that are as near the first one, in whatever order the folder has them. */
TEST(the_nearest_of_its_folder) {
    tmp_dir d = tmp_make();
    static const char *const name[] = {"t4.yaml", "quickstart.yaml", "k80.yaml", "a2.yaml",
                                       "a1.yaml", "t7.json",         ".t6.yaml"};
    for (size_t k = 0; k < sizeof name / sizeof *name; k++) (void)tmp_put(&d, name[k], "", 0);
    assert_string_equal(near_to(&d, "t5.yaml"), "t4.yaml");
    assert_string_equal(near_to(&d, "qiuckstart.yaml"), "quickstart.yaml");
    assert_string_equal(near_to(&d, "a3.yaml"), "a1.yaml");
    assert_string_equal(near_to(&d, "t5.json"), "t7.json");
    assert_string_equal(near_to(&d, "t5.xml"), "");
    assert_string_equal(near_to(&d, "granite-rapids.yaml"), "");
    tmp_remove(&d);
}

TEST(no_folder_no_room) {
    char out[8] = "?";
    tmp_dir d = tmp_make();
    cd_file_near("/nowhere/at/all.yaml", out, sizeof out);
    assert_string_equal(out, "");
    (void)tmp_put(&d, "t4.yaml", "", 0);
    /* a folder's name is longer than `out` */
    cd_file_near(tmp_path(&d, "t5.yaml"), out, sizeof out);
    assert_string_equal(out, "");
    tmp_remove(&d);
}

TESTS(NULL, NULL, the_nearest_of_its_folder, no_folder_no_room)
