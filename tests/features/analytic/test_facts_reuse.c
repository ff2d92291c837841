/* Lines that caches fetch and give back, against caches that execute the program: drawn schedules
 * of small tasks. CD_SHOW prints what was compared, for the reference page. */
#include <stdlib.h>

#include "check.h"
#include "lru_sim.h"
#include "made_facts.h"

enum { DRAWS = 40, CAPS = 8 };

typedef struct {
    double *ratio;
    size_t n, cap;
} list;

typedef struct {
    /* ratios model to simulation; again: of fetches where a line is fetched more than once */
    list fetch, back, again;
    size_t exact, programs, inexact;
} census;

static int up_by(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void note(list *c, double ratio) {
    if (c->n == c->cap) {
        c->cap = c->cap ? 2 * c->cap : 1024;
        c->ratio = realloc(c->ratio, c->cap * sizeof *c->ratio);
        assert_non_null(c->ratio);
    }
    c->ratio[c->n++] = ratio;
}

static double at_share(list *l, double share) {
    qsort(l->ratio, l->n, sizeof *l->ratio, up_by);
    return l->n ? l->ratio[(size_t)(share * (double)(l->n - 1))] : 1;
}

/* One program before caches of 16 to 2048 lines. */
static void compare(void *ctx, const cd_nest *nest) {
    static lru_sim sim;
    census *c = ctx;
    float out[CD_N_FACTS] = {0};
    cd_an w = {.nest = nest, .ast = nest->ast, .out = out};
    double cap[CAPS], fetch[CAPS], back[CAPS];
    cdmpp_err err = {0};
    memset(&sim, 0, sizeof sim);
    sim.n_cap = CAPS;
    for (int k = 0; k < CAPS; k++) cap[k] = 64.0 * (double)(sim.cap[k] = 16L << k);
    assert_ok(cd_facts_read_nest(&w, &err));
    assert_ok(cd_facts_tree_make(&w, &err));
    cd_facts_reuse_traffic(&w, CD_AN_LINE, cap, CAPS, fetch, back);
    assert_false(w.oom);
    if (!lru_run(&sim, nest, 2000000)) fail_msg("%s", sim.in.why ? sim.in.why : "too many lines");
    const double lines = (double)sim.n;
    c->programs++;
    c->inexact += w.inexact > 0;
    c->exact += fabs(fetch[CAPS - 1] - lines) < 1e-6 * lines;
    for (int k = 0; k < CAPS; k++) {
        note(&c->fetch, fetch[k] / (double)sim.fetched[k]);
        note(&c->back, back[k] / (double)sim.written[k]);
        if ((double)sim.fetched[k] > 1.05 * lines)
            note(&c->again, fetch[k] / (double)sim.fetched[k]);
    }
    cd_arena_free(&w.arena);
}

static void print_list(const char *what, list *l) {
    printf("  %s %zu: p10 %.3f median %.3f p90 %.3f\n", what, l->n, at_share(l, 0.1),
           at_share(l, 0.5), at_share(l, 0.9));
}

static void print_census(const char *name, size_t k, census *c) {
    if (!getenv("CD_SHOW")) return;
    printf("%s %zu: %zu programs, %zu with inexact addresses, %zu footprints equal\n", name, k,
           c->programs, c->inexact, c->exact);
    print_list("fetched", &c->fetch);
    print_list("fetched again", &c->again);
    print_list("given back", &c->back);
}

static void merge(census *to, census *c) {
    for (size_t i = 0; i < c->fetch.n; i++) note(&to->fetch, c->fetch.ratio[i]);
    for (size_t i = 0; i < c->back.n; i++) note(&to->back, c->back.ratio[i]);
    for (size_t i = 0; i < c->again.n; i++) note(&to->again, c->again.ratio[i]);
    to->programs += c->programs;
    to->exact += c->exact;
    to->inexact += c->inexact;
    free(c->fetch.ratio);
    free(c->back.ratio);
    free(c->again.ratio);
}

/* Footprints are equal; traffic is close where a line is fetched more than once, too. The bars are
 * what the model reached when it was written, with a little room. */
static void test_traffic(void **state) {
    census all = {0}, none = {0};
    for (size_t k = 0; k < MADE_F_TASKS; k++) {
        census c = {0};
        made_facts_each(*state, k, DRAWS, compare, &c);
        print_census("task", k, &c);
        assert_int_equal(c.exact, c.programs);
        assert_close(at_share(&c.fetch, 0.5), 1, 0.02, 0);
        merge(&all, &c);
    }
    print_census("tasks", MADE_F_TASKS, &all);
    assert_true(all.programs > 250);
    assert_close(at_share(&all.fetch, 0.5), 1, 0.01, 0);
    assert_true(at_share(&all.fetch, 0.1) > 0.97 && at_share(&all.fetch, 0.9) < 1.12);
    assert_close(at_share(&all.again, 0.5), 1, 0.05, 0);
    assert_true(at_share(&all.again, 0.1) > 0.88 && at_share(&all.again, 0.9) < 1.35);
    assert_close(at_share(&all.back, 0.5), 1, 0.01, 0);
    assert_true(at_share(&all.back, 0.1) > 0.95 && at_share(&all.back, 0.9) < 1.3);
    merge(&none, &all);
    free(none.fetch.ratio);
    free(none.back.ratio);
    free(none.again.ratio);
}

TESTS(made_facts_up, made_facts_down, test_traffic)
