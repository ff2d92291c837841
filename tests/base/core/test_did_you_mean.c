/* spell: distances are those of the textbook, symmetric, and obey the triangle. */
#include "base/core/core.h"
#include "check.h"

#include <string.h>

TEST(examples) {
    assert_int_equal(cd_did_you_mean_distance("", ""), 0);
    assert_int_equal(cd_did_you_mean_distance("", "abc"), 3);
    assert_int_equal(cd_did_you_mean_distance("kitten", "sitting"), 3);
    assert_int_equal(cd_did_you_mean_distance("flaw", "lawn"), 2);
}

TEST(laws) {
    static const char *const w[] = {"",    "a",      "ab",      "ba",     "abc",
                                    "cab", "device", "devices", "edvice", "vice"};
    enum { N = sizeof w / sizeof *w };
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++) {
            const size_t d = cd_did_you_mean_distance(w[i], w[j]);
            assert_int_equal(d, cd_did_you_mean_distance(w[j], w[i]));
            assert_int_equal(d == 0, i == j);
            for (size_t k = 0; k < N; k++)
                assert_true(d <= cd_did_you_mean_distance(w[i], w[k]) +
                                     cd_did_you_mean_distance(w[k], w[j]));
        }
}

TEST(too_long) {
    char a[200];
    memset(a, 'x', sizeof a - 1);
    a[sizeof a - 1] = 0;
    assert_int_equal(cd_did_you_mean_distance(a, "x"), CD_DID_YOU_MEAN_MAX);
    assert_int_equal(cd_did_you_mean_distance("x", a), CD_DID_YOU_MEAN_MAX);
    a[CD_DID_YOU_MEAN_MAX - 1] = 0;
    assert_int_equal(cd_did_you_mean_distance(a, "x"), CD_DID_YOU_MEAN_MAX - 2);
}

TEST(nearest) {
    static const char *const w[] = {"v100",        "k80",       "p100",     "zen5-avx2",
                                    "zen5-avx512", "resnet_18", "resnet_50"};
    enum { N = sizeof w / sizeof *w };
    char lng[80] = "";
    assert_string_equal(cd_did_you_mean_nearest("v10", w, N), "v100");
    assert_string_equal(cd_did_you_mean_nearest("resnet18", w, N), "resnet_18");
    assert_string_equal(cd_did_you_mean_nearest("zen5-avx51", w, N), "zen5-avx512");
    assert_null(cd_did_you_mean_nearest("bert_base", w, N));
    assert_null(cd_did_you_mean_nearest("v100", w, 0));
    const char *ln = "ln"; /* all of it would change */
    assert_null(cd_did_you_mean_nearest("fly", &ln, 1));
    assert_int_equal(cd_did_you_mean_several("fly", &ln, 1, (const char *[1]){0}, 1), 0);
    assert_string_equal(cd_did_you_mean_nearest("lm", &ln, 1), "ln");
    memset(lng, 'x', 79);
    assert_null(cd_did_you_mean_nearest(lng, w, N));
}

TEST(several) {
    static const char *const w[] = {"squeezenet-1.0", "squeezenet-1.1", "bert-tiny",
                                    "bert-base",      "yolov3-tiny",    "vit",
                                    "resnet-50",      "wide-resnet-50"};
    enum { N = sizeof w / sizeof *w };
    static const struct {
        const char *asked, *first;
        size_t n;
    } t[] = {{"bert", "bert-tiny", 2},
             {"BERT", "bert-tiny", 2},
             {"yolov3", "yolov3-tiny", 1},
             {"YOLO_v3", "yolov3-tiny", 1},
             {"squeezenet_v1.1", "squeezenet-1.1", 1},
             {"squeezenet", "squeezenet-1.0", 2},
             {"vit-b-16", "vit", 1},
             {"resnet50v2", "resnet-50", 1},
             {"bret", "bert-tiny", 2},
             {"sqeezenet", "squeezenet-1.0", 1},
             {"resnt", "resnet-50", 1},
             {"yollo", "yolov3-tiny", 1},
             {"ber", "bert-tiny", 2},
             {"bre", NULL, 0},
             {"nothing", NULL, 0},
             {"llama", NULL, 0},
             {"", NULL, 0},
             {"b", NULL, 0}};
    const char *out[4];
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        assert_int_equal(cd_did_you_mean_several(t[i].asked, w, N, out, 4), t[i].n);
        if (t[i].n) assert_string_equal(out[0], t[i].first);
    }
    assert_int_equal(cd_did_you_mean_several("bert", w, N, out, 1), 1);
    assert_int_equal(cd_did_you_mean_several("bert", w, N, out, 0), 0);
}

TESTS(NULL, NULL, nearest, several, examples, laws, too_long)
