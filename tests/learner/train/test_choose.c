/* What to measure on a new device: planted kinds of programs, the part that is chosen from, the
 * records behind the choice. */
#include "learner/train/train.h"

#include "check.h"
#include "made_set_file.h"

static cdmpp_err err;
static char log_file[256];

/* The logs of made_set.h: line i+1 is program i. */
static void write_log_of(const char *path, int n, int shift) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < n; i++)
        fprintf(f,
                "{\"i\": [[\"[\\\"t\\\", %d]\", \"llvm\"], [[], [[\"AN\", 0, %d, 1]]]], \"r\": "
                "[[%g], 0, 1, 1], \"v\": \"v0.6\"}\n",
                i / N_LINE + shift, i % N_LINE, 1e-3);
    assert_int_equal(fclose(f), 0);
}

static void write_log(const char *path, int n) { write_log_of(path, n, 0); }

static int up(void **s) {
    const int st = made_set_up(s);
    snprintf(log_file, sizeof log_file, "%s", tmp_path(&dir, "f.json"));
    return st;
}

typedef struct {
    cd_config c;
    cd_dataset *d;
    cd_choice ch;
} fixture;

static cdmpp_status start(fixture *f, const cd_choice_options *how) {
    const cd_member_plan rows = {0};
    static const char text[] = "data: {files: [d.h5]}\nsplit: {kind: task}\n";
    *f = (fixture){0};
    err = (cdmpp_err){0};
    assert_ok(cd_config_init(&f->c, &err));
    assert_ok(cd_config_load(&f->c, tmp_put(&dir, "c.yaml", text, strlen(text)), &err));
    assert_ok(cd_learner_load(&f->c, &rows, &f->d, &err));
    return cd_choose(&f->c, f->d, how, &f->ch, &err);
}

static void stop(fixture *f) {
    cd_choose_free(&f->ch);
    cd_dataset_free(f->d);
    cd_config_free(&f->c);
}

/* Programs of a task differ in one column a little, so that as many programs as tasks are one of
 * each. */
TEST(one_of_each_kind) {
    fixture f;
    size_t tasks = 0;
    uint8_t seen[N_TASK] = {0};
    const cd_choice_options how = {.k = 12};
    assert_ok(start(&f, &how));
    assert_int_equal(f.ch.n, 12);
    for (size_t k = 0; k < f.ch.n; k++) tasks += !seen[f.d->task[f.ch.index[k]]]++;
    assert_int_equal(tasks, 12);
    stop(&f);
}

TEST(from_the_training_part_alone) {
    fixture f;
    uint8_t keep[N];
    cd_filter_count count;
    cd_split *split;
    const cd_choice_options how = {.k = 400};
    assert_ok(start(&f, &how));
    assert_ok(cd_select_programs(&f.c, f.d, NULL, keep, &count, &split, &err));
    assert_int_equal(f.ch.n_candidate, split->n_program[CD_SPLIT_PART_TRAIN]);
    for (size_t k = 0; k < f.ch.n; k++)
        assert_int_equal(split->part[f.ch.index[k]], CD_SPLIT_PART_TRAIN);
    cd_split_free(split);
    stop(&f);
}

/* Of the two devices the slow one's programs are dearer by their labels alone. */
TEST(a_budget_holds) {
    fixture f;
    double sum = 0;
    const cd_choice_options how = {.k = 400, .budget_s = 3};
    assert_ok(start(&f, &how));
    for (size_t k = 0; k < f.ch.n; k++) sum += cd_choose_seconds(f.d->latency_s[f.ch.index[k]]);
    assert_true(f.ch.n > 20 && f.ch.n < 30);
    assert_true(sum <= 3 && fabs(sum - f.ch.seconds) < 1e-9);
    stop(&f);
}

TEST(tasks_by_their_keys) {
    fixture f;
    cd_buf b = {0};
    const cd_choice_options how = {.k = 3, .tasks = true};
    assert_ok(start(&f, &how));
    assert_int_equal(f.ch.n, 3);
    assert_ok(cd_choose_put(&f.c, f.d, &f.ch, &b, &err));
    for (size_t k = 0; k < 3; k++) {
        const char *key = f.d->task_name[f.ch.index[k]];
        const char *at = strstr(b.p, key);
        assert_true(at && at[strlen(key)] == '\n');
    }
    cd_buf_free(&b);
    stop(&f);
}

/* The lines in the order of choice; a log that lacks lines, has other ones or is gone is an
 * error. */
TEST(records_of_the_log) {
    fixture f;
    cd_buf b = {0};
    const cd_choice_options how = {.k = 5};
    write_log(log_file, N);
    assert_ok(start(&f, &how));
    assert_ok(cd_choose_put(&f.c, f.d, &f.ch, &b, &err));
    const char *at = b.p;
    for (size_t k = 0; k < 5; k++) {
        char want[120];
        const uint32_t i = f.ch.index[k];
        snprintf(want, sizeof want,
                 "{\"i\": [[\"[\\\"t\\\", %u]\", \"llvm\"], [[], [[\"AN\", 0, %u, 1]]]]",
                 i / N_LINE, i % N_LINE);
        assert_int_equal(strncmp(at, want, strlen(want)), 0);
        at = strchr(at, '\n') + 1;
    }
    assert_int_equal(*at, '\0');
    cd_buf_clear(&b);
    write_log(log_file, 3);
    assert_status(cd_choose_put(&f.c, f.d, &f.ch, &b, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.path, log_file);
    err = (cdmpp_err){0};
    write_log_of(log_file, N, 1); /* the same lines, of other tasks */
    assert_status(cd_choose_put(&f.c, f.d, &f.ch, &b, &err), CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "the log has changed"));
    err = (cdmpp_err){0};
    assert_int_equal(unlink(log_file), 0);
    assert_status(cd_choose_put(&f.c, f.d, &f.ch, &b, &err), CDMPP_ENODATA);
    cd_buf_free(&b);
    stop(&f);
}

TESTS(up, made_set_down, one_of_each_kind, from_the_training_part_alone, a_budget_holds,
      tasks_by_their_keys, records_of_the_log)
