/* split_target: who learns from which programs of the held-out device. */
#include <stdlib.h>

#include "check.h"
#include "split_refused.h"
#include "fault.h"
#include "dataset/split/split.h"
#include "made_split.h"

enum { TARGET = 2 }; /* zen5-avx512: tasks 0 .. 23 */
static const char *const target_name[] = {"zen5-avx512"};

static cd_split_spec spec(const cd_split_target *t) {
    return (cd_split_spec){.kind = CD_SPLIT_DEVICE,
                           .seed = 4,
                           .valid = 0.15,
                           .test = 0.25,
                           .target = t,
                           .test_name = {1, (const char **)(uintptr_t)target_name}};
}

static cd_split *split(made_split *f, size_t k, cd_select_kind select) {
    cdmpp_err err = {0};
    cd_split *s = NULL;
    const cd_split_target t = {.n_task = k, .select = select};
    const cd_split_spec p = spec(&t);
    assert_ok(cd_split_make(&f->d, f->keep, &p, &s, &err));
    return s;
}

/* What a task's programs on the target are: a part, or CD_SPLIT_N_PART + 1 for unlabelled. */
static int place(const made_split *f, const cd_split *s, uint32_t t, bool on_target) {
    int place = -1;
    for (size_t i = 0; i < MADE_N; i++) {
        if (f->task[i] != t || !f->keep[i] || (f->dev[i] == TARGET) != on_target) continue;
        const int p = s->unlabelled[i] ? CD_SPLIT_N_PART + 1 : s->part[i];
        assert_true(place < 0 || place == p);
        assert_int_equal(s->target[i], on_target);
        place = p;
    }
    return place;
}

static void check_rules(const made_split *f, const cd_split *s, size_t k) {
    size_t n[CD_SPLIT_N_PART + 2] = {0};
    assert_int_equal(s->n_chosen, k);
    for (uint32_t t = 0; t < MADE_TASKS; t++) {
        const int here = place(f, s, t, true), there = place(f, s, t, false);
        if (t >= 24) assert_int_equal(here, -1);
        else n[here]++;
        assert_in_range(there, CD_SPLIT_PART_TRAIN, CD_SPLIT_PART_VALID);
        if (here == CD_SPLIT_PART_VALID) assert_int_equal(there, CD_SPLIT_PART_VALID);
        if (here == CD_SPLIT_PART_TEST || here == CD_SPLIT_PART_TRAIN)
            assert_int_equal(there, CD_SPLIT_PART_TRAIN);
    }
    assert_int_equal(n[CD_SPLIT_PART_TEST], 6);
    assert_int_equal(n[CD_SPLIT_PART_VALID], k ? 4 : 0);
    assert_int_equal(n[CD_SPLIT_PART_TRAIN], k);
    assert_int_equal(n[CD_SPLIT_N_PART + 1], 24 - 6 - (k ? 4u : 0u) - k);
    assert_int_equal(s->n_candidate, 14);
    assert_int_equal(s->n_target[CD_SPLIT_PART_TRAIN], k * MADE_PER);
    assert_int_equal(s->n_unlabelled, n[CD_SPLIT_N_PART + 1] * MADE_PER);
    assert_int_equal(s->n_unused, 0);
    for (size_t c = 0; c < k; c++)
        assert_int_equal(place(f, s, s->chosen[c], true), CD_SPLIT_PART_TRAIN);
    for (size_t i = 0; i < MADE_N; i++)
        if (!f->keep[i])
            assert_true(!s->target[i] && !s->unlabelled[i] && s->part[i] == CD_SPLIT_PART_NONE);
}

TEST(rules) {
    static made_split f;
    made_split_build(&f, 0);
    char test[65] = "", random7[65] = "";
    for (int kind = 0; kind < 3; kind++)
        for (size_t k = 0; k <= 14; k += 7) {
            cd_split *s = split(&f, k, (cd_select_kind)kind);
            check_rules(&f, s, k);
            /* whatever K and the choice */
            if (test[0]) assert_string_equal(test, s->hash[CD_SPLIT_PART_TEST]);
            strcpy(test, s->hash[CD_SPLIT_PART_TEST]);
            if (k == 7 && kind == CD_SELECT_RANDOM) strcpy(random7, s->digest);
            /* as in every version */
            if (k == 7 && kind == CD_SELECT_RANDOM)
                s->digest[12] = 0, assert_string_equal(s->digest, "04a7a88d499d");
            if (k == 7 && kind == CD_SELECT_CENTER) assert_string_not_equal(random7, s->digest);
            cd_split_free(s);
        }
}

/* Rows of tasks lie in six clusters: t % 6. */
TEST(kmeans_spreads) {
    static made_split f;
    int seen[6] = {0}, there[6] = {0};
    size_t n = 0;
    made_split_build(&f, 0);
    cd_split *s = split(&f, 14, CD_SELECT_KMEANS); /* all candidates */
    for (size_t c = 0; c < 14; c++) n += !there[s->chosen[c] % 6]++;
    cd_split_free(s);
    assert_true(n > 3);
    s = split(&f, n, CD_SELECT_KMEANS);
    for (size_t c = 0; c < n; c++) seen[s->chosen[c] % 6]++;
    for (int k = 0; k < 6; k++) assert_int_equal(seen[k], there[k] > 0);
    cd_split_free(s);
}

TEST(order_is_nothing) {
    static made_split f, g;
    made_split_build(&f, 0);
    made_split_build(&g, 1);
    for (int kind = 0; kind < 3; kind++) {
        cd_split *s = split(&f, 5, (cd_select_kind)kind), *r = split(&g, 5, (cd_select_kind)kind);
        assert_string_equal(s->digest, r->digest);
        assert_memory_equal(s->chosen, r->chosen, 5 * sizeof *s->chosen);
        for (int i = 0; i < MADE_N; i++) {
            assert_int_equal(s->part[i], r->part[MADE_N - 1 - i]);
            assert_int_equal(s->unlabelled[i], r->unlabelled[MADE_N - 1 - i]);
        }
        cd_split_free(s);
        cd_split_free(r);
    }
}

/* Vectors of the caller's: choosing by rows and by twice the rows is the same. */
TEST(own_vectors) {
    static made_split f;
    static float x[MADE_N * 2];
    cdmpp_err err = {0};
    cd_split *s = NULL;
    made_split_build(&f, 0);
    for (int i = 0; i < MADE_N; i++) x[2 * i] = f.task[i] < 12 ? 1.0f : 2.0f, x[2 * i + 1] = 0;
    const cd_split_target t = {.n_task = 2, .select = CD_SELECT_KMEANS, .x = x, .dim = 2};
    const cd_split_spec p = spec(&t);
    assert_ok(cd_split_make(&f.d, f.keep, &p, &s, &err));
    assert_true((s->chosen[0] < 12) != (s->chosen[1] < 12));
    cd_split_free(s);
}

TEST(sources_by_name) {
    static made_split f;
    cdmpp_err err = {0};
    cd_split *s = NULL;
    const char *train[] = {"zen5-avx2"};
    const cd_split_target t = {.n_task = 3, .select = CD_SELECT_RANDOM};
    cd_split_spec p = spec(&t);
    made_split_build(&f, 0);
    p.train_name = (cd_texts){1, train};
    assert_ok(cd_split_make(&f.d, f.keep, &p, &s, &err));
    for (size_t i = 0; i < MADE_N; i++)
        if (f.dev[i] == 0) assert_int_equal(s->part[i], CD_SPLIT_PART_NONE);
    assert_int_equal(s->n_unused, MADE_TASKS * MADE_PER);
    cd_split_free(s);
}

TEST(refusals) {
    static made_split f;
    const char *two[] = {"v100", "zen5-avx512"}, *v100[] = {"v100"}, *typo[] = {"zen5-avx51"};
    const cd_split_target t = {.n_task = 3}, much = {.n_task = 15};
    cd_split_spec p = spec(&t);
    made_split_build(&f, 0);
    split_refused(&f.d, f.keep, spec(&much), CDMPP_ERANGE, "split.target_tasks",
                  "expected at most 14");
    p.test_name = (cd_texts){2, two};
    split_refused(&f.d, f.keep, p, CDMPP_ESCHEMA, "split.test_names",
                  "one device, the target, found 2");
    p = spec(&t);
    p.valid_name = (cd_texts){1, v100};
    split_refused(&f.d, f.keep, p, CDMPP_ESCHEMA, "split.valid_names", "tasks are drawn");
    p = spec(&t);
    p.kind = CD_SPLIT_TASK;
    p.test_name.n = 0;
    split_refused(&f.d, f.keep, p, CDMPP_ESCHEMA, "split.target_tasks", "found task");
    p = spec(&t);
    p.test_name = (cd_texts){1, typo};
    split_refused(&f.d, f.keep, p, CDMPP_ESCHEMA, "split.test_names[0]",
                  "did you mean 'zen5-avx512'?");
    for (int i = 0; i < MADE_N; i++) f.keep[i] &= f.dev[i] != TARGET || f.task[i] < 2;
    split_refused(&f.d, f.keep, spec(&t), CDMPP_ERANGE, "",
                  "at least 3 tasks on device 'zen5-avx512'");
}

static void out_of_memory(void **st) {
    (void)st;
    static made_split f;
    made_split_build(&f, 0);
    const cd_split_target t = {.n_task = 3};
    const cd_split_spec p = spec(&t);
    FAULT_SWEEP(w, 1) {
        cd_split *s = NULL;
        w.st = cd_split_make(&f.d, f.keep, &p, &s, &w.err);
        cd_split_free(s);
    }
}

TESTS(NULL, NULL, rules, kmeans_spreads, order_is_nothing, own_vectors, sources_by_name,
      out_of_memory, refusals)
