/* split_latency: the test part is CDMPP's, by its own words; validation comes from train. */
#include <stdlib.h>

#include "check.h"
#include "dataset/split/split.h"
#include "made_split.h"

static cd_split *split(made_split *f, double valid) {
    cdmpp_err err = {0};
    cd_split *s = NULL;
    const cd_split_spec p = {.kind = CD_SPLIT_INTERLEAVED, .valid = valid, .test = 0.5};
    assert_ok(cd_split_make(&f->d, f->keep, &p, &s, &err));
    return s;
}

/* The program with the r-th smallest latency, counted by brute force (no ties). */
static size_t nth(const made_split *f, size_t r) {
    for (size_t i = 0; i < MADE_N; i++) {
        size_t below = 0;
        for (size_t k = 0; k < MADE_N; k++) below += f->keep[k] && f->y[k] < f->y[i];
        if (f->keep[i] && below == r) return i;
    }
    return MADE_N;
}

TEST(definition) {
    static made_split f;
    made_split_build(&f, 0);
    size_t n = 0, nth_train = 0;
    f.keep[20] = f.keep[30] = 0;
    for (int i = 0; i < MADE_N; i++) n += f.keep[i];
    assert_int_equal(n % 5, 3);   /* some are left over */
    cd_split *s = split(&f, 0.2); /* every 4th of the train programs */
    for (size_t r = 0; r < n; r++) {
        const uint8_t p = s->part[nth(&f, r)];
        if (r >= n - 3) assert_int_equal(p, CD_SPLIT_PART_NONE);
        else if (r % 5 == 4) assert_int_equal(p, CD_SPLIT_PART_TEST);
        else assert_int_equal(p, ++nth_train % 4 ? CD_SPLIT_PART_TRAIN : CD_SPLIT_PART_VALID);
    }
    assert_int_equal(s->n_unused, 3);
    assert_int_equal(s->n_program[CD_SPLIT_PART_TEST], n / 5);
    cd_split *t = split(&f, 0.1), *u = split(&f, 0.9);
    /* whatever validation is */
    assert_string_equal(s->hash[CD_SPLIT_PART_TEST], t->hash[CD_SPLIT_PART_TEST]);
    assert_string_equal(s->hash[CD_SPLIT_PART_TEST], u->hash[CD_SPLIT_PART_TEST]);
    assert_int_equal(t->n_program[CD_SPLIT_PART_VALID], n / 5 * 4 / 8);
    /* never more than every second */
    assert_int_equal(u->n_program[CD_SPLIT_PART_VALID], n / 5 * 4 / 2);
    cd_split_free(s);
    cd_split_free(t);
    cd_split_free(u);
}

TEST(ties_by_key) {
    static made_split f, g;
    made_split_build(&f, 0);
    made_split_build(&g, 1);
    for (int i = 0; i < MADE_N; i++) f.y[i] = g.y[MADE_N - 1 - i] = 1e-3 * (double)(f.task[i] / 10);
    cd_split *s = split(&f, 0.15), *t = split(&g, 0.15);
    for (int i = 0; i < MADE_N; i++) assert_int_equal(s->part[i], t->part[MADE_N - 1 - i]);
    assert_string_equal(s->digest, t->digest);
    s->digest[12] = 0;
    assert_string_equal(s->digest, "a019e4fb0293"); /* as in every version */
    cd_split_free(s);
    cd_split_free(t);
}

TEST(refusals) {
    static made_split f;
    cdmpp_err err = {0};
    cd_split *s = NULL;
    const char *name[] = {"v100"};
    const cd_split_spec p = {
        .kind = CD_SPLIT_INTERLEAVED, .valid = 0.1, .test = 0.2, .test_name = {1, name}};
    made_split_build(&f, 0);
    assert_status(cd_split_make(&f.d, f.keep, &p, &s, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.key, "split.test_names");
    const cd_split_spec q = {.kind = CD_SPLIT_INTERLEAVED, .valid = 0.1};
    memset(f.keep, 0, sizeof f.keep);
    f.keep[0] = f.keep[1] = f.keep[2] = f.keep[3] = 1;
    err = (cdmpp_err){0};
    assert_status(cd_split_make(&f.d, f.keep, &q, &s, &err), CDMPP_ERANGE); /* not one group */
}

TESTS(NULL, NULL, definition, ties_by_key, refusals)
