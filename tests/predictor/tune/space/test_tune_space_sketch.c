/* The live space: candidates are programs of the task, lists are whole, walks end. */
#include "check.h"
#include "predictor/tune/space/space.h"
#include "predictor/tune/core/core.h"
#include "prog_matmul.h"

#define VECTOR                                                                                     \
    "\"ops\": [{\"name\": \"A\", \"shape\": [6, 4], \"dtype\": \"float32\"},"                      \
    "{\"name\": \"B\", \"axis\": [[\"i\", 0, 6], [\"j\", 0, 4]], \"body\": \"A[i, j]*A[i, "        \
    "j]\"}], \"args\": [\"A\", \"B\"]"
#define SMALL                                                                                      \
    "\"ops\": [{\"name\": \"A\", \"shape\": [3, 2], \"dtype\": \"float32\"}, {\"name\": \"B\", "   \
    "\"shape\": [2, 3], \"dtype\": \"float32\"},"                                                  \
    "{\"name\": \"C\", \"axis\": [[\"i\", 0, 3], [\"j\", 0, 3]], \"reduce_axis\": [[\"k\", 0, "    \
    "2]], \"reduce\": \"sum\","                                                                    \
    "\"body\": \"A[i, k]*B[k, j]\"}], \"args\": [\"A\", \"B\", \"C\"]"

static const cd_hardware cpu = {8, 64, 64, 0, 0, 0, 0, 0};
static const cd_hardware gpu = {-1, 16, 64, 49152, INT32_MAX, 1024, 8, 32};

static cd_tune_space *space_of(const cd_task_registry *tasks, size_t k, bool on_gpu) {
    cdmpp_err err = {0};
    cd_tune_space *s = NULL;
    bool naive;
    const cd_tune_task t = {.task = cd_task_registry_at(tasks, k),
                            .target = on_gpu ? "cuda" : "llvm",
                            .hardware = on_gpu ? gpu : cpu,
                            .gpu = on_gpu,
                            .flop = -1};
    assert_ok(cd_tune_space_sketch(&t, 1, &s, &naive, &err));
    return s;
}

static const cd_task_registry *others(void) {
    static cd_task_registry *t;
    static const char *const text[] = {VECTOR, SMALL};
    cdmpp_err err = {0};
    if (!t) assert_ok(prog_tasks(text, 2, &t, &err));
    return t;
}

/* Its steps make a loop nest; its key is theirs. */
static void check_program(fixture *f, const cd_tune_space *s, const cd_tune_cand *c) {
    cdmpp_err err = {0};
    const cd_record r = {.target = {s->of.target, 4},
                         .has_hardware = true,
                         .hardware = s->of.hardware,
                         .step = c->step,
                         .n_step = c->n_step};
    assert_int_equal(c->key, cd_record_steps_key(c->step, c->n_step));
    assert_ok(cd_program_lower(f->p, s->of.task, &r, &err));
}

static void test_candidates_are_programs(void **state) {
    fixture *f = *state;
    for (int on_gpu = 0; on_gpu < 2; on_gpu++) {
        cd_tune_space *s = space_of(f->tasks, 0, on_gpu);
        cd_arena mem = {0};
        cdmpp_err err = {0};
        cd_tune_cand c, a, b;
        size_t drawn = 0, changed = 0, crossed = 0;
        bool exact;
        for (uint64_t i = 0; i < 200; i++) {
            if (s->kind->draw(s, i, &c, &err)) continue;
            check_program(f, s, &c);
            assert_ok(cd_tune_cand_copy(&mem, &c, drawn++ % 2 ? &a : &b, &err));
            if (drawn < 2) continue;
            if (!s->kind->change(s, &a, i, &c, &err)) {
                check_program(f, s, &c);
                changed += c.key != a.key;
            }
            if (!s->kind->cross(s, &a, &b, i, &c, &err)) {
                check_program(f, s, &c);
                crossed++;
            }
            const cd_record r = {.step = a.step, .n_step = a.n_step};
            assert_ok(s->kind->follow(s, &r, &c, &exact, &err));
            assert_true(exact && c.key == a.key);
        }
        assert_true(drawn > 20 && 2 * changed > drawn && crossed > 0);
        cd_arena_free(&mem);
        cd_tune_space_free(s);
    }
}

/* What is not vast is listed, each program once, and draws are in the list. */
static void test_small_spaces_are_listed(void **state) {
    fixture *f = *state;
    for (size_t k = 0; k < 2; k++) {
        cd_tune_space *s = space_of(others(), k, false);
        cdmpp_err err = {0};
        cd_tune_key_set seen = {0};
        const cd_tune_cand *all, *again;
        cd_tune_cand c;
        size_t n, m;
        assert_ok(s->kind->list(s, &all, &n, &err));
        assert_true(n > 1 && n <= CD_TUNE_LIST_MAX);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(all[i].row, i);
            assert_false(cd_tune_key_set_find(&seen, all[i].key, NULL));
            assert_ok(cd_tune_key_set_put(&seen, all[i].key, 0, &err));
            if (i % 16 == 0) check_program(f, s, &all[i]);
        }
        for (uint64_t i = 0; i < 300; i++)
            if (!s->kind->draw(s, i, &c, &err))
                assert_true(cd_tune_key_set_find(&seen, c.key, NULL));
        assert_ok(s->kind->list(s, &again, &m, &err));
        assert_true(again == all && m == n);
        cd_tune_key_set_free(&seen);
        cd_tune_space_free(s);
    }
}

static void test_large_spaces_are_walked(void **state) {
    fixture *f = *state;
    cd_tune_space *s = space_of(f->tasks, 0, false);
    cdmpp_err err = {0};
    const cd_tune_cand *all;
    cd_tune_cand c;
    size_t n = 1, got = 0;
    uint64_t first[64];
    assert_ok(s->kind->list(s, &all, &n, &err));
    assert_int_equal(n, 0);
    for (int round = 0; round < 2; round++) {
        got = 0;
        for (int i = 0; i < 64; i++) {
            if (s->kind->walk(s, !i, &c, &err)) continue;
            check_program(f, s, &c);
            if (!round) first[got] = c.key;
            else assert_int_equal(first[got], c.key); /* from the start again */
            got++;
        }
    }
    assert_true(got > 32);
    cd_tune_space_free(s);
}

TESTS(up, down, test_candidates_are_programs, test_small_spaces_are_listed,
      test_large_spaces_are_walked)
