/* Laws of schedule spaces. That the rules are TVM's is tests/reference/sketch_records.c's
 * business. */
#include "fault.h"
#include "made_space.h"

typedef struct {
    cd_task_registry *tasks, *fuzz;
    cd_program *p;
} fixture;

static int up(void **state) {
    static fixture f;
    cdmpp_err err = {0};
    f = (fixture){0};
    assert_ok(prog_tasks(made_spaces, MADE_SPACES, &f.tasks, &err));
    assert_ok(cd_task_registry_new(&f.fuzz, &err));
    assert_ok(cd_task_registry_load(f.fuzz, "tests/fuzz/program.tasks.json", &err));
    assert_ok(cd_program_new(&f.p, &err));
    *state = &f;
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    cd_program_free(f->p);
    cd_task_registry_free(f->tasks);
    cd_task_registry_free(f->fuzz);
    return 0;
}

/* As TVM: tiling of the cache stage at two levels of the copy and tiling without; the same with a
 * consumer; two rfactors. */
static void test_sketches(void **state) {
    const fixture *f = *state;
    static const size_t want[2][4] = {{3, 3, 3, 3}, {1, 1, 2, 2}};
    for (int gpu = 0; gpu < 2; gpu++)
        for (size_t k = 0; k < 4; k++) {
            cd_sketch_space *sp = made_space(f->tasks, k, gpu);
            assert_int_equal(cd_sketch_space_count(sp), want[gpu][k]);
            assert_false(cd_sketch_space_is_naive(sp));
            cd_sketch_space_free(sp);
        }
}

/* Lengths of a filled split divide their extent; the innermost is short. */
static void check_steps(const cd_sketch_sample *d) {
    for (uint32_t k = 0; k < d->n_step; k++) {
        const cd_record_step *t = &d->step[k];
        if (t->kind != CD_RECORD_STEP_SP) continue;
        int64_t product = 1;
        for (uint32_t j = 0; j < t->n_list; j++) product *= t->list[j];
        assert_true(product >= 1 && t->list[t->n_list - 1] <= 64);
        if (t->n_list > 1) assert_true(t->i[1] % product == 0);
    }
}

/* A drawn schedule can be lowered, and is the same whatever was drawn before. */
static size_t draw_all(const fixture *f, const cd_task_registry *t, size_t task, bool gpu,
                       uint64_t n) {
    cd_sketch_space *sp = made_space(t, task, gpu);
    cd_sketch_sampler *a = made_sampler(sp, 7), *b = made_sampler(sp, 7);
    cdmpp_err err = {0};
    cd_buf one = {0}, two = {0};
    size_t good = 0;
    for (uint64_t i = 0; i < n; i++) {
        cd_sketch_sample d, again;
        const cdmpp_status st = cd_sketch_sampler_draw(a, i, &d, &err);
        if (st) {
            assert_int_equal(st, CDMPP_EREJECTED);
            assert_int_equal(d.n_step, 0);
            continue;
        }
        check_steps(&d);
        made_text(&d, &one);
        if (i % 4 == 3) {
            assert_ok(cd_sketch_sampler_draw(b, i, &again, &err));
            made_text(&again, &two);
            assert_string_equal(one.p, two.p);
        }
        const cd_record r = made_record(&d);
        const cdmpp_status low = cd_program_lower(f->p, cd_task_registry_at(t, task), &r, &err);
        if (low && low != CDMPP_EREJECTED && low != CDMPP_EUNSUPPORTED)
            fail_msg("task %zu, draw %zu: %s %s", task, (size_t)i, err.key, err.msg);
        good += !low;
    }
    cd_buf_free(&one);
    cd_buf_free(&two);
    cd_sketch_sampler_free(a);
    cd_sketch_sampler_free(b);
    cd_sketch_space_free(sp);
    return good;
}

static void test_draws(void **state) {
    const fixture *f = *state;
    for (int gpu = 0; gpu < 2; gpu++) {
        for (size_t k = 0; k < MADE_SPACES; k++) assert_true(draw_all(f, f->tasks, k, gpu, 60) > 2);
        for (size_t k = 0; k < cd_task_registry_count(f->fuzz); k++) {
            const cd_task *t = cd_task_registry_at(f->fuzz, k);
            /* whose bounds take long */
            if (t->dag) draw_all(f, f->fuzz, k, gpu, strcmp(t->workload_key, "chain") != 0 ? 8 : 1);
        }
    }
}

static void test_seeds_differ(void **state) {
    const fixture *f = *state;
    cd_sketch_space *sp = made_space(f->tasks, MADE_MM_RELU, false);
    cd_buf text[2] = {{0}, {0}};
    cdmpp_err err = {0};
    size_t same = 0, n = 0;
    for (uint64_t i = 0; i < 20; i++) {
        bool ok = true;
        for (uint64_t seed = 0; seed < 2; seed++) {
            cd_sketch_sampler *w = made_sampler(sp, seed);
            cd_sketch_sample d;
            ok = ok && !cd_sketch_sampler_draw(w, i, &d, &err);
            if (ok) made_text(&d, &text[seed]);
            cd_sketch_sampler_free(w);
        }
        n += ok;
        same += ok && !strcmp(text[0].p, text[1].p);
    }
    assert_true(n > 10 && same < n / 4);
    cd_buf_free(&text[0]);
    cd_buf_free(&text[1]);
    cd_sketch_space_free(sp);
}

/* Draws are what they always were: a data set that was drawn can be drawn again. */
static void test_first_draw_stays(void **state) {
    const fixture *f = *state;
    static const char *const want[2] = {
        "[[\"SP\", 2, 0, 96, [3, 4, 4], 1], [\"SP\", 2, 4, 128, [4, 1, 32], 1], [\"SP\", 2, 8, 64, "
        "[2], 1], "
        "[\"RE\", 2, [0, 4, 1, 5, 8, 2, 6, 9, 3, 7]], [\"FSP\", 3, 0, 0, 1], [\"FSP\", 3, 2, 1, "
        "1], "
        "[\"RE\", 3, [0, 2, 1, 3]], [\"CA\", 2, 3, 1], [\"FU\", 3, [0, 1]], [\"AN\", 3, 0, 3], "
        "[\"PR\", 2, 0, \"auto_unroll_max_step$16\"]]",
        "[[\"SP\", 2, 0, 96, [1, 3, 4, 8], 1], [\"SP\", 2, 5, 128, [4, 16, 2, 1], 1], "
        "[\"SP\", 2, 10, 64, [16, 1], 1], [\"RE\", 2, [0, 5, 1, 6, 2, 7, 10, 11, 3, 8, 12, 4, 9]], "
        "[\"FSP\", 3, 0, 0, 3], [\"FSP\", 3, 4, 1, 3], [\"RE\", 3, [0, 4, 1, 5, 2, 6, 3, 7]], "
        "[\"CA\", 2, 3, 5], "
        "[\"CHR\", 1, \"shared\", [2]], [\"CA\", 2, 3, 6], [\"CHR\", 0, \"shared\", [3]], [\"CA\", "
        "1, 4, 6], "
        "[\"FU\", 5, [0, 1]], [\"AN\", 5, 0, 5], [\"FU\", 5, [1, 2]], [\"AN\", 5, 1, 4], [\"FU\", "
        "5, [2, 3]], "
        "[\"AN\", 5, 2, 6], [\"FU\", 3, [0, 1]], [\"SP\", 3, 0, 32, [1], 1], [\"AN\", 3, 1, 2], "
        "[\"FFSP\", 3, 0, [1, 0], 1, 1], [\"AN\", 3, 1, 6], [\"FU\", 1, [0, 1]], [\"SP\", 1, 0, "
        "512, [1], 1], "
        "[\"AN\", 1, 1, 2], [\"FFSP\", 1, 0, [1, 0], 1, 1], [\"AN\", 1, 1, 6], "
        "[\"PR\", 4, 0, \"auto_unroll_max_step$512\"]]"};
    for (int gpu = 0; gpu < 2; gpu++) {
        cd_sketch_space *sp = made_space(f->tasks, MADE_MM_RELU, gpu);
        cd_sketch_sampler *w = made_sampler(sp, 7);
        cdmpp_err err = {0};
        cd_buf text = {0};
        cd_sketch_sample d;
        uint64_t i = 0;
        while (cd_sketch_sampler_draw(w, i, &d, &err)) i++;
        made_text(&d, &text);
        assert_string_equal(text.p, want[gpu]);
        cd_buf_free(&text);
        cd_sketch_sampler_free(w);
        cd_sketch_space_free(sp);
    }
}

/* The same for 30 draws, their children and the first 30 of all, of many tasks, as a digest; and
 * the sketches, where they are counted quickly. */
static void digest_space(const cd_task_registry *t, size_t task, bool gpu, bool sketches,
                         char out[17]) {
    cd_sketch_space *sp = made_space(t, task, gpu);
    cd_sketch_sampler *w = made_sampler(sp, 7);
    cdmpp_err err = {0};
    cd_buf all = {0}, one = {0};
    cd_sketch_sample d;
    cd_sketch_choices at = {0}, kept = {0};
    char hex[33];
    if (sketches) assert_ok(cd_sketch_space_dump(sp, &all, &err));
    for (uint64_t i = 0; i < 30; i++) {
        for (int child = 0; child < 3; child++) {
            cdmpp_status st = child == 0   ? cd_sketch_sampler_draw(w, i, &d, &err)
                              : child == 1 ? cd_sketch_sampler_next(w, &at, &d, &err)
                              : kept.n ? cd_sketch_sampler_mutate(w, kept.p, kept.n, i, &d, &err)
                                       : CDMPP_EREJECTED;
            cd_buf_putf(&all, "%d %s\n", child, cdmpp_status_name(st));
            if (st) continue;
            if (!child) made_keep(&d, &kept);
            made_text(&d, &one);
            cd_buf_puts(&all, one.p);
        }
    }
    cd_md5_hex(all.p, all.n, hex);
    snprintf(out, 17, "%.16s", hex);
    cd_buf_free(&all);
    cd_buf_free(&one);
    cd_sketch_choices_free(&at);
    cd_sketch_choices_free(&kept);
    cd_sketch_sampler_free(w);
    cd_sketch_space_free(sp);
}

static void test_draws_stay(void **state) {
    /* on a CPU, on a GPU: made_spaces, then those of tests/fuzz/program.tasks.json */
    static const char *const want[][2] = {
        {"eeb9f641ad465844", "7e1de48b15a80526"}, {"c3397871f6bb185d", "817e7df151a0a27a"},
        {"f2b25a9b6ee63879", "be979f03915e7a4a"}, {"54f09f88aae7d4fd", "1dda923d11a101d0"},
        {"cc3b7f43334e2ae4", "3275dc22415b38ea"}, {"5b402ace9c4a41c0", "a12502e902c0fc92"},
        {"d40e3e85eb373a67", "d475f12953ca29a3"}, {"a8ad6696d4ea4d29", "4581da57d95b5818"},
        {"d02d94cdf1b45a2a", "0278d434ea0fed66"}, {"179ac29c27077347", "6f79f7c1d947981c"},
        {"0ee8e835b1e95c4d", "9d4173c7f53d6bd3"}, {"cc94930c42ebf4ef", "6980a3503dec8cc2"},
        {"47fbeb9e23228ebc", "4732e7fbefa16ed7"}, {"0a81cf0745c0b35d", "b04c293983cf85e3"},
        {"99b8cf4aeab50a9a", "887914a5adb45058"}, {"9bad120c909f0e4a", "155cc708fb45fe15"},
        {"942069c52bfa11cc", "678971b5b670bbb0"}, {"dc86374e8ee1ba40", "1d9227b42eeeb4c8"},
        {"86328bb9297200f5", "62b29e94912756df"}, {"137268abf3e90490", "c7bc45c5f5ebdefd"},
        {"37abd7cd7248b262", "3f1125480849792a"},
    };
    const fixture *f = *state;
    size_t n = 0, wrong = 0;
    cd_buf now = {0};
    for (size_t k = 0; k < MADE_SPACES + cd_task_registry_count(f->fuzz); k++) {
        const cd_task_registry *t = k < MADE_SPACES ? f->tasks : f->fuzz;
        const size_t task = k < MADE_SPACES ? k : k - MADE_SPACES;
        char is[2][17];
        if (!strcmp(cd_task_registry_at(t, task)->workload_key, "chain")) continue; /* takes long */
        for (int gpu = 0; gpu < 2; gpu++) digest_space(t, task, gpu, t == f->tasks, is[gpu]);
        cd_buf_putf(&now, "        {\"%s\", \"%s\"},\n", is[0], is[1]);
        assert_true(n < sizeof want / sizeof *want);
        wrong += strcmp(is[0], want[n][0]) || strcmp(is[1], want[n][1]);
        n++;
    }
    if (wrong) fprintf(stderr, "the draws of %zu tasks are others now:\n%s", wrong, now.p);
    assert_int_equal(wrong, 0);
    cd_buf_free(&now);
}

static void test_naive(void **state) {
    const fixture *f = *state;
    for (int gpu = 0; gpu < 2; gpu++) {
        cd_sketch_space *sp = made_space(f->tasks, MADE_MANY_SUMS, gpu);
        cd_sketch_sampler *w = made_sampler(sp, 1);
        cdmpp_err err = {0};
        cd_sketch_sample d;
        cd_sketch_choices at = {0};
        bool exact;
        assert_true(cd_sketch_space_is_naive(sp));
        assert_int_equal(cd_sketch_space_count(sp), 1);
        assert_ok(cd_sketch_sampler_draw(w, 3, &d, &err));
        assert_int_equal(d.n_step > 0, gpu);
        assert_int_equal(d.n_choice, 1);
        const cd_record r = {.n_step = 0};
        assert_ok(cd_program_lower(f->p, cd_task_registry_at(f->tasks, MADE_MANY_SUMS),
                                   &(cd_record){.n_step = d.n_step, .step = d.step}, &err));
        assert_ok(cd_sketch_sampler_match(w, &r, &d, &exact, &err));
        assert_int_equal(exact, !gpu);
        assert_status(cd_sketch_sampler_mutate(w, d.choice, d.n_choice, 1, &d, &err),
                      CDMPP_EREJECTED);
        assert_ok(cd_sketch_sampler_next(w, &at, &d, &err));
        assert_status(cd_sketch_sampler_next(w, &at, &d, &err), CDMPP_ENODATA);
        cd_sketch_choices_free(&at);
        cd_sketch_sampler_free(w);
        cd_sketch_space_free(sp);
    }
}

static void test_bad_hardware(void **state) {
    const fixture *f = *state;
    const cd_hardware none = {0};
    cdmpp_err err = {0};
    cd_sketch_space *sp;
    assert_int_equal(cd_sketch_space_new(cd_task_registry_at(f->tasks, 0), &none, false, &sp, &err),
                     CDMPP_EINVALID);
    assert_int_equal(cd_sketch_space_new(cd_task_registry_at(f->tasks, 0), &none, true, &sp, &err),
                     CDMPP_EINVALID);
    const cd_task no_dag = {.workload_key = "x"};
    assert_int_equal(cd_sketch_space_new(&no_dag, &made_cpu, false, &sp, &err), CDMPP_ENOTASK);
}

typedef struct {
    cd_sketch_choices at, kept;
    cd_buf json;
} loot;

/* `from` draws what `w` matches: a sample lives in its sampler until the next call. */
static cdmpp_status use(cd_sketch_sampler *from, cd_sketch_sampler *w, const cd_sketch_space *sp,
                        loot *l, cdmpp_err *err) {
    cd_sketch_sample d;
    double size;
    bool exact;
    for (uint64_t i = 0; i < 6; i++) {
        cdmpp_status st = cd_sketch_sampler_draw(from, i, &d, err);
        if (!st) {
            const cd_record r = made_record(&d);
            CD_TRY(cd_sketch_sampler_match(w, &r, &d, &exact, err));
            st = cd_sketch_sampler_mutate(w, d.choice, d.n_choice, i, &d, err);
        }
        if (!st)
            st = cd_sketch_sampler_crossover(w, d.choice, d.n_choice, d.choice, d.n_choice, i, &d,
                                             err);
        if (!st || st == CDMPP_EREJECTED) st = cd_sketch_sampler_next(w, &l->at, &d, err);
        if (st && st != CDMPP_EREJECTED) return st;
    }
    CD_TRY(cd_sketch_space_size(sp, &size, &exact, err));
    return cd_sketch_space_dump(sp, &l->json, err);
}

static cdmpp_status whole(const cd_task_registry *t, size_t task, bool gpu) {
    cd_sketch_space *sp = NULL;
    cd_sketch_sampler *from = NULL, *w = NULL;
    loot l = {.at = {0}};
    cdmpp_err err = {0};
    cdmpp_status st = made_space_new(t, task, gpu, &sp, &err);
    if (!st) st = cd_sketch_sampler_new(sp, 1, &from, &err);
    if (!st) st = cd_sketch_sampler_new(sp, 1, &w, &err);
    if (!st) st = use(from, w, sp, &l, &err);
    cd_sketch_choices_free(&l.at);
    cd_buf_free(&l.json);
    cd_sketch_sampler_free(from);
    cd_sketch_sampler_free(w);
    cd_sketch_space_free(sp);
    return st;
}

static void test_no_memory(void **state) {
    const fixture *f = *state;
    for (int k = 0; k < 4; k++)
        FAULT_SWEEP(w, 1) w.st = whole(f->tasks, k < 2 ? MADE_MM : MADE_MM_RELU, k % 2);
}

TESTS(up, down, test_sketches, test_draws, test_seeds_differ, test_first_draw_stays,
      test_draws_stay, test_naive, test_bad_hardware, test_no_memory)
