/* netname: what a written name of a network means. */
#include "features/task/task.h"

#include <string.h>

#include "check.h"

TEST(parts) {
    static const struct {
        const char *name, *base;
        int batch;
    } c[] = {{"(resnet_50,[(1,3,224,224)])", "resnet_50", 1},
             {"(bert_tiny,[(4,128)])", "bert_tiny", 4},
             {"(x,[])", "x", -1},
             {"bert_large", "bert_large", -1},
             {"", "", -1},
             {"(", "(", -1},
             {"(a", "(a", -1},
             {"(resnet3d_18,[(2,3,112,112,16)])", "resnet3d_18", 2},
             {"(,[(8)])", "", 8}};
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        const cd_str b = cd_network_alias_base(c[i].name);
        assert_int_equal(b.n, strlen(c[i].base));
        assert_memory_equal(b.p, c[i].base, b.n);
        assert_int_equal(cd_network_alias_batch(c[i].name), c[i].batch);
    }
}

TEST(answers) {
    const char *r = "(resnet_50,[(1,3,224,224)])", *b = "bert_large";
    static const char *const yes[] = {"(resnet_50,[(1,3,224,224)])", "resnet_50", "resnet_50_",
                                      "resnet_50_bs1"};
    static const char *const no[] = {"resnet_5",       "resnet_500",
                                     "resnet",         "resnet_50_bs",
                                     "resnet_50_bs4",  "resnet_50_bs10",
                                     "resnet_50_bsx",  "resnet_50_bs1x",
                                     "resnet_50_bs-1", "",
                                     "(resnet_50",     "resnet_50_bs99999999999999999999"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_true(cd_network_alias_answers(r, yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_false(cd_network_alias_answers(r, no[i]));
    assert_true(cd_network_alias_answers(b, "bert_large"));
    assert_true(cd_network_alias_answers(b, "bert_large_"));
    assert_false(cd_network_alias_answers(b, "bert_large_bs1")); /* nothing says so */
}

TESTS(NULL, NULL, parts, answers)
