/* Variants: each lowers, differs from the base in one step, and none is missing that should be
 * there. */
#include <string.h>

#include "check.h"
#include "prog.h"
#include "profiler/records/schedule_variants.h"

static const char *const made[] = {
    "\"ops\": [{\"name\": \"A\", \"shape\": [32, 64], \"dtype\": \"float32\"}, {\"name\": \"B\", "
    "\"shape\": [64, 48], \"dtype\": \"float32\"},"
    "{\"name\": \"P\", \"axis\": [[\"i\", 0, 32], [\"k\", 0, 64]], \"body\": \"A[i, k] + 1.0\"},"
    "{\"name\": \"C\", \"axis\": [[\"i\", 0, 32], [\"j\", 0, 48]], \"reduce_axis\": [[\"k\", 0, "
    "64]],"
    "\"reduce\": \"sum\", \"body\": \"P[i, k]*B[k, j]\"},"
    "{\"name\": \"D\", \"axis\": [[\"i\", 0, 32], [\"j\", 0, 48]], \"body\": \"max(C[i, j], "
    "0.0)\"}]"};
/* Stages: A 0, P 1, B 2, C 3, D 4 (TVM's order). */
#define STEPS                                                                                      \
    "[[\"CI\", 1], [\"SP\", 3, 0, 32, [4, 2], 1], [\"SP\", 3, 3, 48, [16], 1], [\"RE\", 3, [0, "   \
    "3, 5, 1, 4, 2]],"                                                                             \
    "[\"AN\", 4, 1, 2], [\"AN\", 4, 0, 3], [\"CA\", 3, 4, 0], [\"PR\", 3, 0, "                     \
    "\"auto_unroll_max_step$16\"]]"

typedef struct {
    cd_task_registry *t;
    cd_program *p;
    cd_arena a;
    cd_record r;
} fixture;

static int up(void **state) {
    static fixture f;
    cdmpp_err err = {0};
    f = (fixture){0};
    assert_ok(prog_tasks(made, 1, &f.t, &err));
    assert_ok(cd_program_new(&f.p, &err));
    assert_ok(prog_record(&f.a, "0", PROG_CPU, STEPS, &f.r, &err));
    *state = &f;
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    cd_program_free(f->p);
    cd_task_registry_free(f->t);
    cd_arena_free(&f->a);
    return 0;
}

static bool same_step(const cd_record_step *a, const cd_record_step *b) {
    return a->kind == b->kind && a->stage == b->stage && !memcmp(a->i, b->i, sizeof a->i) &&
           a->n_list == b->n_list && a->s.n == b->s.n &&
           (!a->n_list || !memcmp(a->list, b->list, a->n_list * sizeof *a->list)) &&
           (!a->s.n || !memcmp(a->s.p, b->s.p, a->s.n));
}

static size_t count(const cd_variant *v, size_t n, int factor) {
    size_t k = 0;
    for (size_t i = 0; i < n; i++) k += v[i].factor == factor;
    return k;
}

static void test_one_step(void **state) {
    fixture *f = *state;
    cd_variant *v;
    size_t n;
    cdmpp_err err = {0};
    assert_ok(cd_schedule_variants(&f->a, f->p, cd_task_registry_at(f->t, 0), &f->r, ~0U, 3, &v, &n,
                                   &err));
    assert_int_equal(v[0].factor, CD_VARY_BASE);
    for (size_t i = 0; i < n; i++) {
        unsigned changed = 0;
        assert_int_equal(v[i].record.n_step, f->r.n_step);
        for (uint32_t k = 0; k < f->r.n_step; k++)
            changed += !same_step(&v[i].record.step[k], &f->r.step[k]);
        assert_int_equal(changed, i && v[i].factor < CD_VARY_THREADS ? 1 : 0);
        assert_ok(cd_program_lower(f->p, cd_task_registry_at(f->t, 0), &v[i].record, &err));
    }
    /* 32 = [4, 2] x 4: divisors of 16 but 4, of 8 but 2; 48 = [16] x 3: divisors of 48 but 16. */
    assert_int_equal(count(v, n, CD_VARY_TILE), 4 + 3 + 9);
    assert_in_range(count(v, n, CD_VARY_REORDER), 1, 5);
    assert_in_range(count(v, n, CD_VARY_COMPUTE_AT), 1, 3); /* the other loop of D, root */
    assert_int_equal(count(v, n, CD_VARY_FUSE), 1);
    assert_int_equal(count(v, n, CD_VARY_UNROLL), 4);
    assert_int_equal(count(v, n, CD_VARY_VECTORIZE), 1);
    assert_int_equal(count(v, n, CD_VARY_PARALLEL), 1);
    assert_int_equal(count(v, n, CD_VARY_THREADS), 3);
    assert_int_equal(count(v, n, CD_VARY_CACHE), 9);
    assert_true(v[n - 1].cold && !v[n - 1].others_bytes && v[n - 2].others_bytes == 128 << 20 &&
                !v[n - 2].cold && v[n - 9].others_bytes == 1 << 20);
    assert_string_equal(v[n - 2].value, "128 MB");
    assert_true(v[n - 10].threads == 3 && !v[n - 10].others_bytes);
}

static void test_mask(void **state) {
    fixture *f = *state;
    cd_variant *v;
    size_t n;
    cdmpp_err err = {0};
    assert_ok(cd_schedule_variants(&f->a, f->p, cd_task_registry_at(f->t, 0), &f->r,
                                   1U << CD_VARY_UNROLL, 1, &v, &n, &err));
    assert_int_equal(n, 5);
    assert_string_equal(v[1].value, "0");
    cd_record bad = f->r;
    cd_record_step s = {.kind = CD_RECORD_STEP_CI, .stage = 99};
    bad.step = &s;
    bad.n_step = 1;
    assert_int_equal(
        cd_schedule_variants(&f->a, f->p, cd_task_registry_at(f->t, 0), &bad, ~0U, 1, &v, &n, &err),
        CDMPP_EINVALID);
}

TESTS(up, down, test_one_step, test_mask)
