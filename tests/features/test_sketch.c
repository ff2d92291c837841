/* Laws of schedule spaces. That the rules are TVM's is tests/reference/sketch_records.c's business. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "prog.h"
#include "base/buf.h"
#include "base/mem.h"
#include "features/sketch.h"

#define MATMUL(tail)                                                                                           \
    "\"ops\": [{\"name\": \"A\", \"shape\": [96, 64], \"dtype\": \"float32\"},"                                \
    "{\"name\": \"B\", \"shape\": [64, 128], \"dtype\": \"float32\"},"                                         \
    "{\"name\": \"C\", \"axis\": [[\"i\", 0, 96], [\"j\", 0, 128]], \"reduce_axis\": [[\"k\", 0, 64]],"        \
    "\"reduce\": \"sum\", \"body\": \"A[i, k]*B[k, j]\"}" tail "]"
static const char *const made[] = {
    MATMUL(""),
    MATMUL(", {\"name\": \"D\", \"axis\": [[\"i\", 0, 96], [\"j\", 0, 128]], \"body\": \"max(C[i, j], 0.0)\"}"),
    /* A long sum of few: rfactor, or threads of a block together. */
    "\"ops\": [{\"name\": \"A\", \"shape\": [4, 4096], \"dtype\": \"float32\"},"
    "{\"name\": \"S\", \"axis\": [[\"i\", 0, 4]], \"reduce_axis\": [[\"k\", 0, 4096]], \"reduce\": \"sum\", \"body\": \"A[i, k]\"}]",
    /* No axes at all. */
    "\"ops\": [{\"name\": \"A\", \"shape\": [64], \"dtype\": \"float32\"},"
    "{\"name\": \"S\", \"axis\": [], \"reduce_axis\": [[\"k\", 0, 64]], \"reduce\": \"max\", \"body\": \"A[k]\"}]",
};

static const cd_hardware cpu = {.num_cores = 4, .vector_unit_bytes = 64, .cache_line_bytes = 64};

typedef struct {
    cd_tasks *tasks, *fuzz;
    cd_program *p;
} fixture;

static int up(void **state) {
    static fixture f;
    cdmpp_err err = {0};
    f = (fixture){0};
    assert_ok(prog_tasks(made, sizeof made / sizeof *made, &f.tasks, &err));
    assert_ok(cd_tasks_new(&f.fuzz, &err));
    assert_ok(cd_tasks_load(f.fuzz, "tests/fuzz/program.tasks.json", &err));
    assert_ok(cd_program_new(&f.p, &err));
    *state = &f;
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    cd_program_free(f->p);
    cd_tasks_free(f->tasks);
    cd_tasks_free(f->fuzz);
    return 0;
}

static cd_sketches *space(const cd_tasks *t, size_t k, bool gpu) {
    const cd_hardware hw = gpu ? cd_hardware_default(true, 0, 0) : cpu;
    cdmpp_err err = {0};
    cd_sketches *sp;
    assert_ok(cd_sketches_new(cd_tasks_at(t, k), &hw, gpu, &sp, &err));
    return sp;
}

/* As TVM: tiling of the cache stage at two levels of the copy and tiling without; the same with a consumer; two rfactors. */
static void test_sketches(void **state) {
    const fixture *f = *state;
    static const size_t want[2][4] = {{3, 3, 3, 3}, {1, 1, 2, 2}};
    for (int gpu = 0; gpu < 2; gpu++)
        for (size_t k = 0; k < 4; k++) {
            cd_sketches *sp = space(f->tasks, k, gpu);
            assert_int_equal(cd_sketches_count(sp), want[gpu][k]);
            cd_sketches_free(sp);
        }
}

/* Lengths of a filled split divide their extent; the innermost is short. */
static void check_steps(const cd_record *r) {
    for (uint32_t k = 0; k < r->n_step; k++) {
        const cd_step *t = &r->step[k];
        if (t->kind != CD_STEP_SP) continue;
        int64_t product = 1;
        for (uint32_t j = 0; j < t->n_list; j++) product *= t->list[j];
        assert_true(product >= 1 && t->list[t->n_list - 1] <= 64);
        if (t->n_list > 1) assert_true(t->i[1] % product == 0);
    }
}

static void text_of(const cd_draft *d, cd_buf *out) {
    cd_record r = {.n_step = d->n_step, .step = d->step};
    r.workload_key = (cd_str){"x", 1};
    r.target = (cd_str){"llvm", 4};
    r.version = (cd_str){"v0.6", 4};
    r.n_cost = 1;
    r.cost_s = (const double[]){1};
    r.has_inputs = r.has_hardware = r.has_host = r.has_layout = true;
    cdmpp_err err = {0};
    cd_buf_clear(out);
    assert_ok(cd_record_write(out, &r, &err));
}

/* A drawn schedule can be written, read and lowered, and is the same whatever was drawn before. */
static size_t draw_all(const fixture *f, const cd_tasks *t, size_t task, bool gpu) {
    cd_sketches *sp = space(t, task, gpu);
    cd_sampler *a, *b;
    cdmpp_err err = {0};
    cd_buf one = {0}, two = {0};
    size_t good = 0;
    assert_ok(cd_sampler_new(sp, 7, &a, &err));
    assert_ok(cd_sampler_new(sp, 7, &b, &err));
    for (uint64_t i = 0; i < 40; i++) {
        cd_draft d, again;
        const cdmpp_status st = cd_sampler_draw(a, i, &d, &err);
        if (st) {
            assert_int_equal(st, CDMPP_EREJECTED);
            continue;
        }
        const cd_record r = {.n_step = d.n_step, .step = d.step};
        check_steps(&r);
        text_of(&d, &one);
        assert_ok(cd_sampler_draw(b, i, &again, &err));
        text_of(&again, &two);
        assert_string_equal(one.p, two.p);
        const cdmpp_status low = cd_program_lower(f->p, cd_tasks_at(t, task), &r, &err);
        if (low && low != CDMPP_EREJECTED && low != CDMPP_EUNSUPPORTED) fail_msg("task %zu, draw %zu: %s %s", task, (size_t)i, err.key, err.msg);
        good += !low;
    }
    cd_buf_free(&one);
    cd_buf_free(&two);
    cd_sampler_free(a);
    cd_sampler_free(b);
    cd_sketches_free(sp);
    return good;
}

static void test_draws(void **state) {
    const fixture *f = *state;
    for (int gpu = 0; gpu < 2; gpu++) {
        for (size_t k = 0; k < cd_tasks_count(f->tasks); k++) assert_true(draw_all(f, f->tasks, k, gpu) > 3);
        for (size_t k = 0; k < cd_tasks_count(f->fuzz); k++)
            if (cd_tasks_at(f->fuzz, k)->dag) draw_all(f, f->fuzz, k, gpu);
    }
}

static void test_seeds_differ(void **state) {
    const fixture *f = *state;
    cd_sketches *sp = space(f->tasks, 1, false);
    cd_buf text[2] = {{0}, {0}};
    cdmpp_err err = {0};
    size_t same = 0, n = 0;
    for (uint64_t i = 0; i < 20; i++) {
        bool ok = true;
        for (uint64_t seed = 0; seed < 2; seed++) {
            cd_sampler *w;
            cd_draft d;
            assert_ok(cd_sampler_new(sp, seed, &w, &err));
            ok = ok && !cd_sampler_draw(w, i, &d, &err);
            if (ok) text_of(&d, &text[seed]);
            cd_sampler_free(w);
        }
        n += ok;
        same += ok && !strcmp(text[0].p, text[1].p);
    }
    assert_true(n > 10 && same < n / 4);
    cd_buf_free(&text[0]);
    cd_buf_free(&text[1]);
    cd_sketches_free(sp);
}

static void test_bad_hardware(void **state) {
    const fixture *f = *state;
    const cd_hardware none = {0};
    cdmpp_err err = {0};
    cd_sketches *sp;
    assert_int_equal(cd_sketches_new(cd_tasks_at(f->tasks, 0), &none, false, &sp, &err), CDMPP_EINVALID);
    assert_int_equal(cd_sketches_new(cd_tasks_at(f->tasks, 0), &none, true, &sp, &err), CDMPP_EINVALID);
    const cd_task no_dag = {.workload_key = "x"};
    assert_int_equal(cd_sketches_new(&no_dag, &cpu, false, &sp, &err), CDMPP_ENOTASK);
}

#ifdef CD_FAULT
static cdmpp_status whole(const fixture *f, size_t task, bool gpu) {
    const cd_hardware hw = gpu ? cd_hardware_default(true, 0, 0) : cpu;
    cd_sketches *sp = NULL;
    cd_sampler *w = NULL;
    cd_draft d;
    cdmpp_err err = {0};
    cdmpp_status st = cd_sketches_new(cd_tasks_at(f->tasks, task), &hw, gpu, &sp, &err);
    if (!st) st = cd_sampler_new(sp, 1, &w, &err);
    for (uint64_t i = 0; i < 5 && (!st || st == CDMPP_EREJECTED); i++) st = cd_sampler_draw(w, i, &d, &err);
    cd_sampler_free(w);
    cd_sketches_free(sp);
    return st == CDMPP_EREJECTED ? CDMPP_OK : st;
}

static void test_no_memory(void **state) {
    const fixture *f = *state;
    for (int k = 0; k < 4; k++) {
        cdmpp_status st = CDMPP_ENOMEM;
        for (long at = 0; st; at++) {
            cd_mem_fail_at(at);
            st = whole(f, (size_t)k / 2, k % 2);
            cd_mem_fail_at(-1);
            if (st) assert_int_equal(st, CDMPP_ENOMEM);
            assert_true(at < 100000);
        }
    }
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sketches), cmocka_unit_test(test_draws), cmocka_unit_test(test_seeds_differ),
        cmocka_unit_test(test_bad_hardware),
#ifdef CD_FAULT
        cmocka_unit_test(test_no_memory),
#endif
    };
    return cmocka_run_group_tests(tests, up, down);
}
