/* Training on data that are kept on disk: the same answers as in memory, in less of it. */
#include "learner/train/train_internal.h"
#include "check.h"
#include "made_set.h"
#include "predict_rows.h"
#include "tmp.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include "dataset/file/file.h"
#include "learner/train/training_set.h"

enum { LARGE = 40000, LARGE_ROWS = 4, MB = 1 << 20 };

static tmp_dir dir;
static char h5[256], large[256];

/* Many programs of four rows each: 105 MB of rows. */
static void write_large(const char *path) {
    cdmpp_err err = {0};
    cd_writer *w;
    cd_buf place = {0};
    static float row[LARGE_ROWS * CD_N_COL];
    char zero[65], task[32];
    memset(zero, '1', 64);
    zero[64] = '\0';
    assert_ok(cd_writer_open(&w, path, zero, true, NULL, &place, &err));
    for (int i = 0; i < LARGE; i++) {
        const double s = make_rows(i, row, LARGE_ROWS);
        snprintf(task, sizeof task, "[\"t\", %d]", i / 400);
        cd_item it = {.n_row = LARGE_ROWS,
                      .row = row,
                      .latency_s = s,
                      .latency_mean_s = s,
                      .latency_min_s = s,
                      .flop = -1,
                      .repeats = 3,
                      .source_line = (uint64_t)i + 1};
        it.text[CD_LAYOUT_DICT_TASK] = (cd_str){task, strlen(task)};
        it.text[CD_LAYOUT_DICT_DEVICE] = (cd_str){"slow", 4};
        it.text[CD_LAYOUT_DICT_SOURCE] = (cd_str){"f.json", 6};
        it.text[CD_LAYOUT_DICT_TARGET] = (cd_str){"llvm", 4};
        assert_ok(cd_writer_add(w, &it, &err));
    }
    assert_ok(cd_writer_finish(w, &(cd_finish){.command_line = "", .source_digest = zero}, &err));
    cd_writer_free(w);
    cd_buf_free(&place);
}

static int setup(void **s) {
    (void)s;
    dir = tmp_make();
    snprintf(h5, sizeof h5, "%s", tmp_path(&dir, "d.h5"));
    snprintf(large, sizeof large, "%s", tmp_path(&dir, "large.h5"));
    made_set_write(h5);
    write_large(large);
    return 0;
}

static int teardown(void **s) {
    (void)s;
    tmp_remove(&dir);
    return 0;
}

static void configure(cd_config *c, const char *file, const char *const *set) {
    cdmpp_err err = {0};
    char line[400];
    assert_ok(cd_config_init(c, &err));
    snprintf(line, sizeof line, "data.files=%s", file);
    assert_ok(cd_config_set(c, line, &err));
    for (; *set; set++) assert_ok(cd_config_set(c, *set, &err));
}

static void learn(cd_learner_result *l, const char *file, const char *memory, const char *members) {
    const char *const set[] = {memory,
                               members,
                               "train.rounds=60",
                               "train.eta=0.2",
                               "fit.epochs=2",
                               "net.device=false",
                               "net.width=16",
                               "net.embed=16",
                               "net.decoder_width=16",
                               NULL};
    cdmpp_err err = {0};
    cd_config c;
    configure(&c, file, set);
    assert_ok(cd_learner_run(&c, NULL, &(cd_learner_options){0}, l, &err));
    cd_config_free(&c);
}

/* ---- the same ---- */
static void networks_are_the_same_to_the_bit(void **s) {
    cd_learner_result a, b;
    (void)s;
    learn(&a, h5, "train.memory=0", "model.members=[mlp]");
    learn(&b, h5, "train.memory=1", "model.members=[mlp]");
    assert_null(strstr(a.notes.p ? a.notes.p : "", "train.memory"));
    assert_non_null(strstr(b.notes.p, "in train.memory = 1 MB: data of "));
    const cd_scalers *x = &a.model->member[0].scalers, *y = &b.model->member[0].scalers;
    assert_int_equal(x->prog.n, y->prog.n);
    assert_memory_equal(x->prog.shift, y->prog.shift, x->prog.n * sizeof *x->prog.shift);
    assert_memory_equal(x->prog.scale, y->prog.scale, x->prog.n * sizeof *x->prog.scale);
    for (int p = 0; p < CD_SPLIT_N_PART; p++)
        assert_memory_equal(&a.metrics[p], &b.metrics[p], sizeof a.metrics[p]);
    cd_learner_result_free(&a);
    cd_learner_result_free(&b);
}

/* Trees see bins in place of values; all programs have room, but for half of those for
 * validation. */
static void trees_err_as_much(void **s) {
    cd_learner_result a, b;
    (void)s;
    learn(&a, h5, "train.memory=0", "model.members=[rows, program, sums]");
    learn(&b, h5, "train.memory=8", "model.members=[rows, program, sums]");
    assert_non_null(strstr(b.notes.p, "trees of a draw of 100.0 %"));
    for (int p = 0; p < CD_SPLIT_N_PART; p++)
        assert_close(a.metrics[p].mape, b.metrics[p].mape, 0.1, 0.005);
    cd_learner_result_free(&a);
    cd_learner_result_free(&b);
}

static void a_model_says_where_it_was_trained(void **s) {
    cd_learner_result a, b;
    (void)s;
    learn(&a, h5, "train.memory=4000", "model.members=[sums]");
    learn(&b, h5, "train.memory=1", "model.members=[sums]");
    assert_null(memmem(a.file.p, a.file.n, "memory: ", 8)); /* the header is text */
    assert_non_null(memmem(b.file.p, b.file.n, "memory: 1", 9));
    assert_null(memmem(b.file.p, b.file.n, "folder: ", 8));
    cd_learner_result_free(&a);
    cd_learner_result_free(&b);
}

/* A draw that gives each tree half of the programs; it is said. */
static void too_many_rows_are_drawn(void **s) {
    const char *const set[] = {"train.memory=24", "model.members=[sums]", "train.rounds=2", NULL};
    cdmpp_err err = {0};
    cd_learner_result l;
    cd_config c;
    (void)s;
    configure(&c, large, set);
    assert_ok(cd_learner_run(&c, NULL, &(cd_learner_options){0}, &l, &err));
    assert_non_null(strstr(l.notes.p, "sums: trees of a draw of "));
    /* figures are of all */
    assert_int_equal(l.metrics[CD_SPLIT_PART_TEST].n, l.n_program[CD_SPLIT_PART_TEST]);
    cd_learner_result_free(&l);
    cd_config_free(&c);
}

/* Programs of the training part are those above some random number. A draw by the same number would
 * have none of them. */
static void the_draw_is_not_the_split(void **s) {
    const char *const set[] = {"train.memory=8", "split.kind=record", "model.members=[sums]",
                               "train.rounds=2", NULL};
    cdmpp_err err = {0};
    cd_learner_result l;
    cd_config c;
    (void)s;
    configure(&c, large, set);
    assert_int_equal(c.train_seed, c.split_seed);
    assert_ok(cd_learner_run(&c, NULL, &(cd_learner_options){0}, &l, &err));
    assert_non_null(strstr(l.notes.p, "sums: trees of a draw of "));
    cd_learner_result_free(&l);
    cd_config_free(&c);
}

/* train.together where nobody else is: the same pages, own draws of rows. */
static void together_alone_is_the_same(void **s) {
    cdmpp_err err = {0};
    cd_learner_result l[2];
    cd_buf tree[2] = {{0}};
    (void)s;
    for (int k = 0; k < 2; k++) {
        const char *const set[] = {"train.memory=24",
                                   "model.members=[sums]",
                                   "train.rounds=3",
                                   "train.subsample=1",
                                   k ? "train.together=true" : "train.together=false",
                                   NULL};
        cd_config c;
        configure(&c, large, set);
        assert_ok(cd_learner_run(&c, NULL, &(cd_learner_options){0}, &l[k], &err));
        assert_non_null(strstr(l[k].notes.p, "sums: trees of a draw of "));
        assert_ok(cd_xgb_save(l[k].model->member[0].gbt, &tree[k], &err));
        cd_config_free(&c);
    }
    assert_int_equal(tree[0].n, tree[1].n);
    assert_memory_equal(tree[0].p, tree[1].p, tree[0].n);
    for (int k = 0; k < 2; k++) {
        cd_buf_free(&tree[k]);
        cd_learner_result_free(&l[k]);
    }
}

static void the_folder_is_empty_afterwards(void **s) {
    char line[300];
    const char *const set[] = {"train.memory=1", "train.rounds=2", line, NULL};
    tmp_dir d = tmp_make();
    cdmpp_err err = {0};
    cd_learner_result l;
    cd_config c;
    (void)s;
    snprintf(line, sizeof line, "train.folder=%s", d.path);
    configure(&c, h5, set);
    assert_ok(cd_learner_run(&c, NULL, &(cd_learner_options){0}, &l, &err));
    assert_int_equal(rmdir(d.path), 0);
    cd_learner_result_free(&l);
    snprintf(line, sizeof line, "train.folder=%s/none", d.path);
    assert_ok(cd_config_set(&c, line, &err));
    assert_status(cd_learner_run(&c, NULL, &(cd_learner_options){0}, &l, &err), CDMPP_EIO);
    assert_string_equal(err.key, "train.folder");
    cd_config_free(&c);
}

/* ---- less memory ---- */
/* Trains in a process of its own; MB that it had in memory at most. */
static long peak_mb(const char *memory, const char *members) {
    struct rusage u;
    int status = 1;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        const char *const set[] = {
            memory, members, "train.rounds=2", "fit.steps=4", "net.device=false", NULL};
        cdmpp_err err = {0};
        cd_config c;
        cd_learner_result l;
        configure(&c, large, set);
        _exit(cd_learner_run(&c, NULL, &(cd_learner_options){0}, &l, &err) ? 2 : 0);
    }
    assert_int_equal(wait4(child, &status, 0, &u), child);
    assert_int_equal(status, 0);
    return u.ru_maxrss / 1024;
}

static void memory_is_bounded(void **s) {
    (void)s;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* a sanitizer keeps what is freed */
#endif
    const long disk = peak_mb("train.memory=200", "model.members=[rows, mlp]"),
               memory = peak_mb("train.memory=0", "model.members=[rows, mlp]");
    print_message("peak: %ld MB on disk, %ld MB in memory\n", disk, memory);
    if (memory < 300) fail_msg("%ld MB in memory: the set is too small to tell", memory);
    if (disk > 250) fail_msg("%ld MB, expected some 185", disk);
}

TESTS(setup, teardown, networks_are_the_same_to_the_bit, trees_err_as_much,
      a_model_says_where_it_was_trained, too_many_rows_are_drawn, the_draw_is_not_the_split,
      together_alone_is_the_same, the_folder_is_empty_afterwards, memory_is_bounded)
