/* Templates as programs: each can be lowered, is one of Ansor's space, has the lengths of its
 * block. */
#include "made_template.h"
#include "fault.h"
#include "features/program/program.h"
#include "predictor/tune/space/space.h"

static const cd_hardware hw = {1, 64, 64, 0, 0, 0, 0, 0};

static cd_tune_task task_of(void **state, size_t k) {
    return (cd_tune_task){
        .task = cd_task_registry_at(*state, k), .target = "llvm", .hardware = hw, .flop = -1};
}

/* Every length of the block stands in the steps. */
static void check_lengths(const cd_template_nest *n, const cd_template_block *b,
                          const cd_tune_cand *c) {
    uint32_t axis = 0;
    for (uint32_t k = 0; k < c->n_step; k++) {
        const cd_record_step *t = &c->step[k];
        if (t->kind != CD_RECORD_STEP_SP || t->stage != (int32_t)n->op) continue;
        assert_int_equal(t->n_list, axis < n->n_space ? 3 : 1);
        assert_int_equal(t->list[0], axis < n->n_space ? b->s1[axis] : b->r1[axis]);
        if (axis < n->n_space) assert_true(t->list[1] == b->s2[axis] && t->list[2] == b->s3[axis]);
        axis++;
    }
    assert_int_equal(axis, n->n_axis);
}

static void test_programs(void **state) {
    for (size_t k = 0; k < T_FITS; k++) {
        const cd_tune_task t = task_of(state, k);
        cd_tune_space *s, *ansor;
        const cd_tune_cand *all;
        const cd_template_nest *n;
        cd_program *p;
        size_t n_all;
        cdmpp_err err = {0};
        bool naive, exact;
        assert_ok(cd_program_new(&p, &err));
        assert_ok(cd_tune_space_template(&t, &made_machine, 0, &s, &err));
        assert_ok(cd_tune_space_sketch(&t, 0, &ansor, &naive, &err));
        assert_ok(s->kind->list(s, &all, &n_all, &err));
        const cd_template_block *b = cd_tune_space_template_blocks(s, &n);
        assert_true(n_all >= 10 && n_all <= CD_TUNE_TEMPLATES);
        for (size_t i = 0; i < n_all; i++) {
            cd_tune_cand c;
            const cd_record r = {.target = {"llvm", 4},
                                 .has_hardware = true,
                                 .hardware = hw,
                                 .step = all[i].step,
                                 .n_step = all[i].n_step};
            assert_int_equal(all[i].row, i);
            assert_int_equal(all[i].key, cd_record_steps_key(r.step, r.n_step));
            for (size_t j = 0; j < i; j++) assert_int_not_equal(all[i].key, all[j].key);
            check_lengths(n, &b[i], &all[i]);
            assert_ok(cd_program_lower(p, t.task, &r, &err));
            assert_ok(ansor->kind->follow(ansor, &r, &c, &exact, &err));
            assert_true(exact);
            assert_ok(s->kind->follow(s, &r, &c, &exact, &err));
            assert_true(exact && c.row == i);
        }
        cd_tune_space_free(ansor);
        cd_tune_space_free(s);
        cd_program_free(p);
    }
}

/* Draws and changes are of the list; the order is the same again, whatever the seed. */
static void test_of_the_list(void **state) {
    const cd_tune_task t = task_of(state, T_CONV);
    cd_tune_space *s, *other;
    const cd_tune_cand *all, *again;
    size_t n, m;
    cd_tune_cand c, d;
    cdmpp_err err = {0};
    assert_ok(cd_tune_space_template(&t, &made_machine, 1, &s, &err));
    assert_ok(cd_tune_space_template(&t, &made_machine, 2, &other, &err));
    assert_ok(s->kind->list(s, &all, &n, &err));
    assert_ok(other->kind->list(other, &again, &m, &err));
    assert_int_equal(n, m);
    for (size_t i = 0; i < n; i++) assert_int_equal(all[i].key, again[i].key);
    for (uint64_t i = 0; i < 50; i++) {
        assert_ok(s->kind->draw(s, i, &c, &err));
        assert_int_equal(all[c.row].key, c.key);
        assert_ok(s->kind->change(s, &c, i, &d, &err));
        assert_true(d.row != c.row && all[d.row].key == d.key);
        assert_ok(s->kind->cross(s, &c, &d, i, &c, &err));
        assert_int_equal(all[c.row].key, c.key);
    }
    cd_tune_space_free(other);
    cd_tune_space_free(s);
}

static void test_no_template(void **state) {
    for (size_t k = T_FITS; k < T_TASKS; k++) {
        const cd_tune_task t = task_of(state, k);
        cd_tune_space *s;
        cdmpp_err err = {0};
        assert_int_equal(cd_tune_space_template(&t, &made_machine, 0, &s, &err),
                         CDMPP_EUNSUPPORTED);
    }
}

static void test_memory(void **state) {
    const cd_tune_task t = task_of(state, T_PRIME);
    FAULT_SWEEP(f, 10) {
        cd_tune_space *s = NULL;
        f.step = 7; /* of many */
        f.st = cd_tune_space_template(&t, &made_machine, 0, &s, &f.err);
        cd_tune_space_free(s);
    }
}

TESTS(up, down, test_programs, test_of_the_list, test_no_template, test_memory)
