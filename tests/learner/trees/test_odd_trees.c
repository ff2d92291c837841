/* Boosters with one odd byte: read, or refused with a reason, and nothing is lost. */
#include "learner/trees/trees.h"
#include "odd.h"

enum { WIDTH = 6 };

static cdmpp_status booster(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    static const float x[WIDTH] = {0.5F, -1, 2, 0, 3, -4};
    cd_tree_inference *f = NULL;
    float y;
    (void)ctx;
    CD_TRY(cd_tree_inference_read(text, n, WIDTH, &f, err));
    cd_tree_inference_score(f, x, 1, WIDTH, &y);
    cd_tree_inference_free(f);
    return CDMPP_OK;
}

static void odd_bytes(const char *path) {
    static const char byte[] = {0,   1,   2,   8,   127, -128, -1,  '[', ']', '{', '}',
                                '$', '#', 'S', 'U', 'i', 'l',  'L', 'd', 'D', 'T', 'Z'};
    cdmpp_err err = {0};
    char *text;
    size_t n;
    assert_ok(cd_file_read(path, 0, &text, &n, &err));
    odd_texts o = {.text = text, .n = n, .read = booster};
    odd_one(&o, 0, 0, "", 0);
    assert_true(o.taken);
    FAULT_SWEEP(f, 0) f.st = booster(NULL, text, n, &f.err);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < sizeof byte; k++) odd_one(&o, i, 1, &byte[k], 1);
        odd_one(&o, i, n - i, "", 0);
    }
    assert_true(o.taken > 1 && o.refused > n);
    cd_mem_free(text);
}

/* One place of a booster is another: where is the mistake, and which? */
typedef struct edit {
    const char *find;
    size_t n_find;
    const char *with;
    size_t n_with;
    const char *key, *msg;
} edit;
#define EDIT(find, with, key, msg)                                                                 \
    { find, sizeof(find) - 1, with, sizeof(with) - 1, key, msg }
#define LONG "L\0\0\0\0\0\0\0"
#define NAN4 "\x7f\xc0\0\0"
static const edit edits[] = {
    EDIT("attributes{}", "attributes{" LONG "\001aF}", "learner.attributes", "unknown key 'a'"),
    EDIT("attributes{}", "attributes{" LONG "\001aZ}", "learner.attributes", "unknown key 'a'"),
    EDIT("attributes{}", "attributes[]", "learner.attributes",
         "expected an object, found a value of another kind"),
    EDIT("attributes{}",
         "attributes{" LONG
         "\001a[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
         "", "expected a value in UBJ of at most 32 levels, found other bytes"),
    EDIT("attributes{}L\0\0\0\0\0\0\0\015feature_names",
         "attributes{}L\0\0\0\0\0\0\0\012attributes", "learner.attributes",
         "the key is there twice"),
    EDIT("feature_names[#" LONG "\0", "feature_names[#" LONG "\001T", "learner.feature_names",
         "expected no names, found 1"),
    EDIT("feature_names[#" LONG "\0", "feature_names[]", "learner.feature_names",
         "expected a list of values with its length, found a list of another form"),
    EDIT("feature_names[#" LONG "\0", "feature_names{}", "learner.feature_names",
         "expected a list, found a value of another kind"),
    EDIT("feature_types[#" LONG "\0", "feature_types[#" LONG "\001T", "learner.feature_types",
         "expected no names, found 1"),
    EDIT("num_classS" LONG "\0010", "num_class{}", "learner.learner_model_param.num_class",
         "expected a text, found a value of another kind"),
    EDIT("num_classS" LONG "\0010", "num_classS" LONG "\0013",
         "learner.learner_model_param.num_class", "expected \"0\", found \"3\""),
    EDIT("base_scoreS" LONG "\003", "base_scoreS" LONG "\004x",
         "learner.learner_model_param.base_score", "expected a finite number, found \"x0E0\""),
    EDIT("base_scoreS" LONG "\0030E0", "base_scoreS" LONG "\003inf",
         "learner.learner_model_param.base_score", "expected a finite number, found \"inf\""),
    EDIT("num_parallel_treeS" LONG "\0011", "num_parallel_treeS" LONG "\0013",
         "learner.gradient_booster.model.gbtree_model_param.num_parallel_tree",
         "expected a number that divides 2 trees, found \"3\""),
    EDIT("num_parallel_treeS" LONG "\0011", "num_parallel_treeS" LONG "\001x",
         "learner.gradient_booster.model.gbtree_model_param.num_parallel_tree",
         "expected a number that divides 2 trees, found \"x\""),
    EDIT("num_parallel_treeS" LONG "\0011", "num_parallel_treeS" LONG "\0010",
         "learner.gradient_booster.model.gbtree_model_param.num_parallel_tree",
         "expected a number that divides 2 trees, found \"0\""),
    EDIT("num_parallel_treeS" LONG "\0011", "num_parallel_treeS" LONG "\0021x",
         "learner.gradient_booster.model.gbtree_model_param.num_parallel_tree",
         "expected a number that divides 2 trees, found \"1x\""),
    EDIT("num_targetS" LONG "\0011", "num_targetS" LONG "\0012",
         "learner.learner_model_param.num_target", "expected \"1\", found \"2\""),
    EDIT("boost_from_averageS" LONG "\0010", "boost_from_averageS" LONG "\0017",
         "learner.learner_model_param.boost_from_average", "expected \"0\" or \"1\", found \"7\""),
    EDIT("version[#" LONG "\003", "version[#" LONG "\004T", "version",
         "expected 3 numbers, found 4"),
    EDIT("num_treesS" LONG "\0012", "num_treesS" LONG "\0013",
         "learner.gradient_booster.model.gbtree_model_param.num_trees",
         "expected \"2\", found \"3\""),
    EDIT("size_leaf_vectorS" LONG "\0010", "size_leaf_vectorS" LONG "\0012",
         "learner.gradient_booster.model.gbtree_model_param.size_leaf_vector",
         "expected \"0\" or \"1\", found \"2\""),
    EDIT("tree_info[#" LONG "\002i\0i\0", "tree_info[#" LONG "\002TT",
         "learner.gradient_booster.model.tree_info[0]",
         "expected a whole number, found another value"),
    EDIT("tree_info[#" LONG "\002i\0i\0", "tree_info[#" LONG "\001i\0",
         "learner.gradient_booster.model.tree_info", "expected 2 numbers, found 1"),
    EDIT("trees[#" LONG "\002{", "trees[#" LONG "\003T{", "learner.gradient_booster.model.trees[0]",
         "expected an object, found a value of another kind"),
    EDIT("id\x69\0", "idT", "learner.gradient_booster.model.trees[0].id",
         "expected a number, found a value of another kind"),
    EDIT("id\x69\0", "idi\1", "learner.gradient_booster.model.trees[0].id",
         "expected 0 to 0, found 1"),
    EDIT("split_indices[$l#" LONG "\003\0\0\0\0\0\0\0\0\0\0\0\0",
         "split_indices[$l#" LONG "\003\x7f\xff\xff\xff\0\0\0\0\0\0\0\0",
         "learner.gradient_booster.model.trees[0].left_children[0]",
         "a node that was pruned has children"),
    EDIT("split_conditions[$d#" LONG "\003", "split_conditions[$d#" LONG "\004" NAN4,
         "learner.gradient_booster.model.trees[0].split_conditions", "expected 3 numbers, found 4"),
    EDIT("split_conditions[$d#", "split_conditions[$l#",
         "learner.gradient_booster.model.trees[0].split_conditions",
         "expected a list of numbers of type d, found a list of another form"),
    EDIT("left_children[$l#" LONG "\003\0\0\0\1\xff\xff\xff\xff\xff\xff\xff\xff",
         "left_children[$l#" LONG "\0", "learner.gradient_booster.model.trees[0].left_children",
         "expected a node or more, found none"),
    EDIT("num_deletedS" LONG "\0010", "num_deletedS" LONG "\0011",
         "learner.gradient_booster.model.trees[0].tree_param.num_deleted",
         "expected \"0\", found \"1\""),
};

static cdmpp_status edited(const edit *e, const char *text, size_t n, cdmpp_err *err) {
    const char *at = memmem(text, n, e->find, e->n_find);
    assert_non_null(at);
    const size_t before = (size_t)(at - text), rest = n - before - e->n_find;
    char *odd = malloc(before + e->n_with + rest + 1);
    assert_non_null(odd);
    memcpy(odd, text, before);
    memcpy(odd + before, e->with, e->n_with);
    memcpy(odd + before + e->n_with, at + e->n_find, rest);
    cdmpp_err why = {0};
    const cdmpp_status st = booster(NULL, odd, before + e->n_with + rest, err);
    /* what it refuses is refused by the reader, too */
    if (cd_tree_inference_forget(odd, before + e->n_with + rest, &why))
        assert_int_equal(st, CDMPP_EMODEL);
    free(odd);
    return st;
}

TEST(places) {
    cdmpp_err err = {0};
    char *text;
    size_t n;
    assert_ok(cd_file_read("tests/fuzz/seeds/forest/stump", 0, &text, &n, &err));
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        err = (cdmpp_err){0};
        const cdmpp_status st = edited(&edits[i], text, n, &err);
        if (st != CDMPP_EMODEL || strcmp(err.key, edits[i].key) || strcmp(err.msg, edits[i].msg))
            fail_msg("edit %zu: %d %s: %s", i, (int)st, err.key, err.msg);
    }
    cd_mem_free(text);
}

TEST(two_trees) { odd_bytes("tests/fuzz/seeds/forest/two"); }
TEST(stump) { odd_bytes("tests/fuzz/seeds/forest/stump"); }

TESTS(NULL, NULL, places, two_trees, stump)
