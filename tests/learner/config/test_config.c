/* A configuration file over its base: what counts, where the base is looked for, bases that do not
 * end. */
#include "learner/config/config.h"

#include "check.h"
#include "tmp.h"

static cdmpp_err err;

static const char *put(tmp_dir *d, const char *name, const char *text) {
    return tmp_put(d, name, text, strlen(text));
}

TEST(what_a_file_does_not_say_is_its_bases) {
    tmp_dir d = tmp_make();
    cd_config c;
    put(&d, "low.yaml",
        "split: {seed: 7, kind: network}\ntrain: {rounds: 11, eta: 0.5}\ndata: {files: "
        "[low.h5]}\n");
    put(&d, "mid.yaml", "base: low.yaml\ntrain: {rounds: 12}\nmodel: {members: [mlp]}\n");
    put(&d, "low.h5", "");
    const char *top = put(&d, "top.yaml", "base: mid.yaml\nsplit: {kind: task}\n");
    assert_ok(cd_config_init(&c, &err));
    assert_ok(cd_config_load(&c, top, &err));
    assert_int_equal(c.split_seed, 7);
    assert_int_equal(c.split_kind, CD_SPLIT_TASK);
    assert_int_equal(c.train_rounds, 12);
    assert_true(c.train_eta == 0.5);
    assert_int_equal(c.model_members.n, 1);
    assert_string_equal(c.model_members.v[0], "mlp");
    assert_true(c.split_valid == 0.15); /* nobody says: the default */
    assert_string_equal(c.data_files.v[0], tmp_path(&d, "low.h5"));
    assert_string_equal(c.path, top);
    cd_buf b = {0};
    cd_config_print(&b, &c);
    assert_null(strstr(b.p, "base"));
    cd_buf_free(&b);
    cd_config_free(&c);
    tmp_remove(&d);
}

TEST(a_base_that_is_set_is_in_the_place_of_the_files) {
    tmp_dir d = tmp_make();
    cd_config c;
    char set[300];
    const char *const sets[] = {"train.eta=0.25", set};
    put(&d, "low.yaml", "train: {rounds: 11, eta: 0.5, seed: 3}\n");
    snprintf(set, sizeof set, "base=%s", put(&d, "other.yaml", "train: {rounds: 5, eta: 0.125}\n"));
    const char *top = put(&d, "top.yaml", "base: low.yaml\ntrain: {rounds: 9}\n");
    assert_ok(cd_config_init(&c, &err));
    assert_ok(cd_config_read(&c, top, sets, 2, &err));
    assert_int_equal(c.train_rounds, 9);
    assert_true(c.train_eta == 0.25);
    assert_int_equal(c.train_seed, 1);
    cd_config_free(&c);
    tmp_remove(&d);
}

TEST(bases_that_cannot_be) {
    tmp_dir d = tmp_make();
    static const struct {
        const char *text, *message;
        cdmpp_status st;
    } row[] = {{"base: top.yaml\n",
                "top.yaml: error: base: expected at most 8 bases behind each other, found more: "
                "does one name itself?\n",
                CDMPP_ESCHEMA},
               {"base: no.yaml\n",
                "top.yaml: error: base: expected a configuration, found no file 'no.yaml'\n",
                CDMPP_EIO},
               {"base: wrong.yaml\n",
                "wrong.yaml:1:9: error: unknown key 'train.ronds', did you mean 'train.rounds'?\n",
                CDMPP_ESCHEMA}};
    put(&d, "wrong.yaml", "train: {ronds: 3}\n");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        cd_config c;
        const char *top = put(&d, "top.yaml", row[i].text);
        assert_ok(cd_config_init(&c, &err));
        assert_status(cd_config_load(&c, top, &err), row[i].st);
        assert_int_equal(c.diag.n, 1);
        assert_string_equal(c.diag.text.p + strlen(d.path) + 1, row[i].message);
        cd_config_free(&c);
        err = (cdmpp_err){0};
    }
    tmp_remove(&d);
}

TESTS(NULL, NULL, what_a_file_does_not_say_is_its_bases,
      a_base_that_is_set_is_in_the_place_of_the_files, bases_that_cannot_be)
