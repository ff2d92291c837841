/* The tasks that a model has seen, from its header and its data set. */
#include "check.h"
#include "learner/config/config.h"

#include <stdlib.h>

#include "base/text/text.h"
#include "made_set.h"
#include "tmp.h"

/* A header as a training writes it, of a split that was made here. */
static cd_split *split_of(const char *path, const char *kind, long seed, cd_buf *config,
                          cdmpp_err *why) {
    cd_config c;
    char set[2][80];
    cd_dataset *d = NULL;
    cd_split *s = NULL;
    cd_filter_count count;
    static uint8_t keep[N];
    snprintf(set[0], sizeof set[0], "split.kind=%s", kind);
    snprintf(set[1], sizeof set[1], "split.seed=%ld", seed);
    assert_int_equal(cd_config_init(&c, why), CDMPP_OK);
    for (int k = 0; k < 2; k++) assert_int_equal(cd_config_set(&c, set[k], why), CDMPP_OK);
    assert_int_equal(cd_dataset_load(&path, 1, &d, why), CDMPP_OK);
    assert_int_equal(cd_select_programs(&c, d, NULL, keep, &count, &s, why), CDMPP_OK);
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

/* A data set, the configuration that splits it, and the header of a model that was trained so. */
typedef struct {
    tmp_dir dir;
    const char *path;
    cd_buf config, header;
    cd_split *split;
} fixture;

static cdmpp_err err;

static void start(fixture *f, const char *kind, int seed) {
    *f = (fixture){.dir = tmp_make()};
    f->path = tmp_path(&f->dir, "set.h5");
    made_set_write(f->path);
    f->split = split_of(f->path, kind, seed, &f->config, &err);
    put_header(&f->header, &f->config, f->split->digest);
}

static void stop(fixture *f) {
    cd_split_free(f->split);
    cd_buf_free(&f->config);
    cd_buf_free(&f->header);
    tmp_remove(&f->dir);
}

static bool seen(const cd_heldout *h, int task) {
    char name[32];
    snprintf(name, sizeof name, "[\"t\", %d]", task);
    return cd_heldout_seen(h, name);
}

TEST(test_the_test_tasks_are_not_seen) {
    fixture f;
    cd_heldout *h = NULL;
    start(&f, "task", 7);
    assert_ok(cd_heldout_new(f.header.p, NULL, 0, &h, &err));
    assert_string_equal(cd_heldout_split(h), "task, seed 7");
    for (int i = 0; i < N; i += N_LINE) /* the set has its programs in this order */
        assert_int_equal(seen(h, i / N_LINE), f.split->part[i] != CD_SPLIT_PART_TEST);
    assert_false(cd_heldout_seen(h, "[\"of nobody\"]"));
    cd_heldout_free(h);
    assert_ok(cd_heldout_new(f.header.p, &f.path, 1, &h, &err)); /* the same file, named */
    cd_heldout_free(h);
    stop(&f);
}

TEST(test_a_split_of_programs_has_seen_all) {
    fixture f;
    cd_heldout *h = NULL;
    start(&f, "record", 1);
    assert_ok(cd_heldout_new(f.header.p, NULL, 0, &h, &err));
    for (int i = 0; i < N_TASK; i++) assert_true(seen(h, i));
    cd_heldout_free(h);
    stop(&f);
}

TEST(test_what_cannot_be_known_is_refused) {
    fixture f;
    cd_heldout *h = NULL;
    cd_buf other = {0};
    start(&f, "task", 1);
    const char *gone = tmp_path(&f.dir, "gone.h5");
    put_header(&other, &f.config, "0000000000000000");
    assert_int_equal(cd_heldout_new(other.p, NULL, 0, &h, &err), CDMPP_EMODEL);
    err = (cdmpp_err){0};
    assert_int_equal(cd_heldout_new(f.header.p, &gone, 1, &h, &err), CDMPP_ENODATA);
    assert_string_equal(err.key, "data.files");
    assert_int_equal(cd_heldout_new("{}", &f.path, 1, &h, &err), CDMPP_ESCHEMA);
    cd_buf_free(&other);
    stop(&f);
}

TESTS(NULL, NULL, test_the_test_tasks_are_not_seen, test_a_split_of_programs_has_seen_all,
      test_what_cannot_be_known_is_refused)
