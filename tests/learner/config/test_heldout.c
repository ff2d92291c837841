/* The tasks that a model has seen, from its header and its data set. */
#include "check.h"
#include "learner/config/heldout.h"

#include <stdlib.h>

#include "base/text/json.h"
#include "learner/config/select_programs.h"
#include "made_set.h"
#include "tmp.h"

/* A header as a training writes it, of a split that was made here. */
static cd_split *split_of(const char *path, const char *kind, long seed, cd_buf *config, cdmpp_err *err) {
    cd_config c;
    char set[2][80];
    cd_dataset *d = NULL;
    cd_split *s = NULL;
    cd_filter_count count;
    static uint8_t keep[N];
    snprintf(set[0], sizeof set[0], "split.kind=%s", kind);
    snprintf(set[1], sizeof set[1], "split.seed=%ld", seed);
    assert_int_equal(cd_config_init(&c, err), CDMPP_OK);
    for (int k = 0; k < 2; k++) assert_int_equal(cd_config_set(&c, set[k], err), CDMPP_OK);
    assert_int_equal(cd_dataset_load(&path, 1, &d, err), CDMPP_OK);
    assert_int_equal(cd_select_programs(&c, d, NULL, keep, &count, &s, err), CDMPP_OK);
    c.data_files = (cd_texts){1, &path};
    c.output_model = ""; /* as --out leaves it */
    cd_config_print(config, &c);
    cd_config_free(&c);
    cd_dataset_free(d);
    return s;
}

static void put_header(cd_buf *out, const cd_buf *config, const char *digest) {
    cd_buf_clear(out);
    cd_buf_puts(out, "{\"config\":");
    cd_buf_put_json_str(out, config->p, config->n);
    cd_buf_putf(out, ",\"split\":{\"digest\":\"%s\"}}", digest);
}

static void test_the_test_tasks_are_not_seen(void **state) {
    (void)state;
    tmp_dir dir = tmp_make();
    cdmpp_err err = {0};
    const char *path = tmp_path(&dir, "set.h5");
    cd_buf config = {0}, header = {0};
    cd_heldout *h = NULL;
    made_set_write(path);
    cd_split *s = split_of(path, "task", 7, &config, &err);
    put_header(&header, &config, s->digest);
    assert_ok(cd_heldout_new(header.p, NULL, 0, &h, &err));
    assert_string_equal(cd_heldout_split(h), "task, seed 7");
    for (int i = 0; i < N; i += N_LINE) { /* the set has its programs in this order */
        char task[32];
        snprintf(task, sizeof task, "[\"t\", %d]", i / N_LINE);
        assert_int_equal(cd_heldout_seen(h, task), s->part[i] != CD_SPLIT_PART_TEST);
    }
    assert_false(cd_heldout_seen(h, "[\"of nobody\"]"));
    cd_heldout_free(h);
    /* the same file at another place */
    cd_buf moved = {0};
    put_header(&moved, &config, s->digest);
    assert_ok(cd_heldout_new(moved.p, &path, 1, &h, &err));
    cd_heldout_free(h);
    cd_buf_free(&moved);
    cd_split_free(s);
    cd_buf_free(&config);
    cd_buf_free(&header);
    tmp_remove(&dir);
}

static void test_a_split_of_programs_has_seen_all(void **state) {
    (void)state;
    tmp_dir dir = tmp_make();
    cdmpp_err err = {0};
    const char *path = tmp_path(&dir, "set.h5");
    cd_buf config = {0}, header = {0};
    cd_heldout *h = NULL;
    made_set_write(path);
    cd_split *s = split_of(path, "record", 1, &config, &err);
    put_header(&header, &config, s->digest);
    assert_ok(cd_heldout_new(header.p, NULL, 0, &h, &err));
    for (int i = 0; i < N_TASK; i++) {
        char task[32];
        snprintf(task, sizeof task, "[\"t\", %d]", i);
        assert_true(cd_heldout_seen(h, task));
    }
    cd_heldout_free(h);
    cd_split_free(s);
    cd_buf_free(&config);
    cd_buf_free(&header);
    tmp_remove(&dir);
}

static void test_what_cannot_be_known_is_refused(void **state) {
    (void)state;
    tmp_dir dir = tmp_make();
    cdmpp_err err = {0};
    const char *path = tmp_path(&dir, "set.h5"), *gone = tmp_path(&dir, "gone.h5");
    cd_buf config = {0}, header = {0};
    cd_heldout *h = NULL;
    made_set_write(path);
    cd_split *s = split_of(path, "task", 1, &config, &err);
    put_header(&header, &config, "0000000000000000");
    assert_int_equal(cd_heldout_new(header.p, NULL, 0, &h, &err), CDMPP_EMODEL);
    err = (cdmpp_err){0};
    put_header(&header, &config, s->digest);
    assert_int_equal(cd_heldout_new(header.p, &gone, 1, &h, &err), CDMPP_ENODATA);
    assert_string_equal(err.key, "data.files");
    assert_int_equal(cd_heldout_new("{}", &path, 1, &h, &err), CDMPP_ESCHEMA);
    cd_split_free(s);
    cd_buf_free(&config);
    cd_buf_free(&header);
    tmp_remove(&dir);
}

TESTS(NULL, NULL, test_the_test_tasks_are_not_seen, test_a_split_of_programs_has_seen_all, test_what_cannot_be_known_is_refused)
