/* A writer that is stopped and goes on: the list of skipped lines is that of a run without a
 * stop. */
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "check.h"
#include "dataset/extract/extract_internal.h"
#include "made_items.h"
#include "tmp.h"

static cdmpp_err err;

static cd_writer *open_it(const char *path, bool restart, const char *place) {
    cd_writer *w;
    cd_buf b = {0};
    assert_ok(cd_writer_open(&w, path, made_print, restart, NULL, &b, &err));
    assert_int_equal(b.n, strlen(place));
    if (b.n) assert_memory_equal(b.p, place, b.n);
    cd_buf_free(&b);
    return w;
}

static void skip_line(cd_writer *w, const char *line) {
    assert_ok(cd_writer_skip(w, line, strlen(line), &err));
}

static void add(cd_writer *w, unsigned k) {
    static made_item m;
    make_item(&m, k);
    assert_ok(cd_writer_add(w, &m.it, &err));
}

static void finish(cd_writer *w) {
    assert_ok(cd_writer_finish(w, &made_finish, &err));
    cd_writer_free(w);
}

static void skipped_is(const char *path, const char *want) {
    char name[300], *text;
    size_t n;
    snprintf(name, sizeof name, "%s.skipped.tsv", path);
    assert_ok(cd_file_read(name, 0, &text, &n, &err));
    assert_int_equal(n, strlen(want));
    assert_memory_equal(text, want, n);
    cd_mem_free(text);
}

/* What came after the checkpoint is told again by the second run: once in the end. */
static void goes_on_from_the_checkpoint(void **state) {
    (void)state;
    tmp_dir dir = tmp_make();
    char path[256], whole[256], *a, *b;
    size_t n_a, n_b;
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "a.h5"));
    snprintf(whole, sizeof whole, "%s", tmp_path(&dir, "b.h5"));
    cd_writer *w = open_it(path, false, "");
    add(w, 0);
    skip_line(w, "a.json\t1\tno task\n");
    assert_ok(cd_writer_checkpoint(w, "here", 4, &err));
    add(w, 7);
    skip_line(w, "a.json\t2\tthis line is lost with what came after the checkpoint\n");
    cd_writer_free(w);
    w = open_it(path, false, "here");
    skip_line(w, "a.json\t3\tbad\n");
    add(w, 1);
    assert_ok(cd_writer_checkpoint(w, "there", 5, &err));
    cd_writer_free(w);
    w = open_it(path, false, "there"); /* nothing since */
    skip_line(w, "b.json\t1\tworse\n");
    finish(w);
    skipped_is(path, "a.json\t1\tno task\na.json\t3\tbad\nb.json\t1\tworse\n");
    w = open_it(whole, false, "");
    for (unsigned k = 0; k < 2; k++) add(w, k);
    finish(w);
    assert_ok(cd_file_read(path, 0, &a, &n_a, &err));
    assert_ok(cd_file_read(whole, 0, &b, &n_b, &err));
    assert_int_equal(n_a, n_b);
    assert_memory_equal(a, b, n_a);
    cd_mem_free(a);
    cd_mem_free(b);
    tmp_remove(&dir);
}

/* A list that is shorter than at the checkpoint, another fingerprint, or --restart: from the
 * beginning. */
static void begins_anew(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        tmp_dir dir = tmp_make();
        char path[256], list[300];
        snprintf(path, sizeof path, "%s", tmp_path(&dir, "a.h5"));
        snprintf(list, sizeof list, "%s.partial/skipped.tsv", path);
        cd_writer *w = open_it(path, false, "");
        skip_line(w, "a.json\t1\tno task\n");
        add(w, 3);
        assert_ok(cd_writer_checkpoint(w, "here", 4, &err));
        cd_writer_free(w);
        if (k == 0) assert_int_equal(truncate(list, 3), 0);
        if (k == 1) {
            char other[sizeof made_print];
            cd_buf place = {0};
            memcpy(other, made_print, sizeof other);
            other[5] = 'f';
            assert_ok(cd_writer_open(&w, path, other, false, NULL, &place, &err));
            assert_int_equal(place.n, 0);
            cd_buf_free(&place);
        } else w = open_it(path, k == 2, "");
        skip_line(w, "a.json\t9\tother\n");
        finish(w);
        skipped_is(path, "a.json\t9\tother\n");
        tmp_remove(&dir);
    }
}

/* Longer than what is copied at a time. */
static void long_list(void **state) {
    (void)state;
    tmp_dir dir = tmp_make();
    char path[256], line[80];
    cd_buf all = {0};
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "a.h5"));
    cd_writer *w = open_it(path, false, "");
    for (int k = 0; k < 1500; k++) {
        snprintf(line, sizeof line, "a.json\t%d\tline %d of many\n", k, 7 * k);
        skip_line(w, line);
        cd_buf_puts(&all, line);
    }
    assert_true(all.n > 2 * 16384);
    finish(w);
    skipped_is(path, all.p);
    cd_buf_free(&all);
    tmp_remove(&dir);
}

/* None skipped: a list of an earlier run does not stay. */
static void list_goes_when_nothing_is_skipped(void **state) {
    (void)state;
    tmp_dir dir = tmp_make();
    char path[256], list[300];
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "a.h5"));
    snprintf(list, sizeof list, "%s.skipped.tsv", path);
    for (int k = 0; k < 2; k++) {
        cd_writer *w = open_it(path, false, "");
        if (!k) skip_line(w, "a.json\t1\tno task\n");
        finish(w);
        assert_int_equal(access(list, F_OK), k ? -1 : 0);
    }
    tmp_remove(&dir);
}

TESTS(NULL, NULL, goes_on_from_the_checkpoint, begins_anew, long_list,
      list_goes_when_nothing_is_skipped)
