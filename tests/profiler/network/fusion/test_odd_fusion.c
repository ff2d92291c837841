/* Odd rules of fusion. */
#include "odd.h"
#include "profiler/network/fusion/fusion_rules.h"
#include "tmp.h"

static cdmpp_status rules(const char *path, cdmpp_err *err) {
    cd_fusion_rules r = {0};
    const cdmpp_status st = cd_fusion_rules_read(path, &r, err);
    cd_fusion_rules_free(&r);
    return st;
}

TEST(files) {
    tmp_dir dir = tmp_make();
    odd_file f = {tmp_path(&dir, "r.json"), rules};
    odd_all_of_seeds("tests/fuzz/seeds/rules", 1000, odd_read_file, &f);
    tmp_remove(&dir);
}

TESTS(NULL, NULL, files)
