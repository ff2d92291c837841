/* What warps and blocks touch, against all threads of drawn programs one after the other. CD_SHOW
 * prints what was compared, for the reference page. */
#include <stdlib.h>

#include "check.h"
#include "gpu_truth.h"
#include "made_facts.h"

enum { DRAWS = 30 };

typedef struct {
    double *x;
    size_t n, cap;
} list;

typedef struct {
    list sectors, waves, active, blocks[TRUTH_GROUPS]; /* ratios to the truth */
    size_t accesses, even, exact_even, sums, exact_sums, programs;
} census;

static int up(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void note(list *l, double x) {
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 1024;
        l->x = realloc(l->x, l->cap * sizeof *l->x);
        assert_non_null(l->x);
    }
    l->x[l->n++] = x;
}

static double at(list *l, double share) {
    qsort(l->x, l->n, sizeof *l->x, up);
    return l->n ? l->x[(size_t)(share * (double)(l->n - 1))] : 1;
}

static void show(const char *what, list *l) {
    if (getenv("CD_SHOW"))
        printf("%s: %zu, p10 %.3f median %.3f p90 %.3f\n", what, l->n, at(l, 0.1), at(l, 0.5),
               at(l, 0.9));
}

static void done(list *l) { free(l->x); }

/* All points look alike: no conditions, a sum of digits, and what is outside of the warp moves
 * whole sectors and turns of the banks. */
static bool is_even(const cd_an_gpu *g, const cd_an_raw *r) {
    if (g->n_cond || r->cond || r->inexact || r->gather) return false;
    for (uint32_t i = 0; i < r->n; i++)
        if (!cd_an_gpu_is_thread(g->w->var[r->t[i].var].axis) && r->t[i].k % 128) return false;
    return true;
}

/* The same, but steps of whole sectors are enough, as groups of blocks begin at one. */
static bool is_sum(const cd_an_gpu *g, const cd_an_raw *r) {
    for (uint32_t i = 0; i < r->n; i++)
        if (cd_an_gpu_is_block(g->w->var[r->t[i].var].axis) && r->t[i].k % 32) return false;
    return !g->n_cond && !r->cond && !r->inexact && !r->gather;
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(1, fabs(b)); }

/* With a vector loop the probe joins neighbours; the truth looks at elements. */
static void compare_warps(census *c, const gpu_truth *t, cd_an_gpu *g, const cd_an_raw *r) {
    cd_an_gpu_touch x;
    cd_facts_gpu_probe(g, r, &x);
    const bool shared = g->place[r->tensor] == CD_GPU_SHARED;
    const double a = shared ? x.waves_32 : x.sectors_32,
                 b = (shared ? t->waves_32 : t->sectors_32) / t->instructions;
    const double wide = shared ? x.waves_64 : x.sectors_64,
                 wider = (shared ? t->waves_64 : t->sectors_64) / t->instructions;
    if (x.neighbours) return;
    c->accesses++;
    if (is_even(g, r)) {
        c->even++;
        c->exact_even += near(a, b) && near(wide, wider) && near(x.active, t->active / t->exist);
    }
    if (b > 0) note(shared ? &c->waves : &c->sectors, a / b);
    if (t->active > 0) note(&c->active, x.active / (t->active / t->exist));
}

/* Accesses that load nothing twice say little: of the others every group has to be right by itself,
 * to a hundredth, as a row that begins within a sector counts by its mean. */
static void compare_blocks(census *c, const gpu_truth *t, const cd_an_gpu *g, const cd_an_raw *r) {
    bool all = true, again = false;
    for (int w = 0; w < TRUTH_GROUPS; w++) {
        const double n = w < 3 ? fmin((double)(1 << (2 * w)), g->blocks) : g->blocks,
                     most = t->sectors_32 * n / g->blocks;
        const double some = cd_facts_gpu_sectors(g, r, n, -1), times = g->blocks / n;
        if (!(t->distinct[w] > 0)) continue;
        note(&c->blocks[w], fmin(some, most) * times / t->distinct[w]);
        if (fmod(g->blocks, n) != 0) continue;
        again |= t->distinct[w] < 0.9 * t->sectors_32;
        all = all && fabs(some * times / t->distinct[w] - 1) < 0.01;
    }
    if (!is_sum(g, r) || !again) return;
    c->sums++;
    c->exact_sums += all;
    if (!all && getenv("CD_SHOW")) {
        for (int w = 0; w < TRUTH_GROUPS; w++) {
            const double n = w < 3 ? fmin((double)(1 << (2 * w)), g->blocks) : g->blocks;
            printf("%g of %g blocks: %g, truth %g\n", n, g->blocks,
                   cd_facts_gpu_sectors(g, r, n, -1) * g->blocks / n, t->distinct[w]);
        }
    }
}

static void statement(cd_an_gpu *g, int32_t k, uint32_t raw0, uint32_t raw1) {
    static gpu_truth t;
    census *c = g->ctx;
    for (uint32_t i = raw0; i < raw1; i++) {
        const cd_an_raw *r = &g->w->raw[i];
        if (r->copy || g->place[r->tensor] == CD_GPU_LOCAL) continue;
        if (!gpu_truth_run(&t, g, r, &g->w->ast->node[k], 600000)) continue;
        compare_warps(c, &t, g, r);
        if (g->place[r->tensor] == CD_GPU_GLOBAL) compare_blocks(c, &t, g, r);
    }
}

static void one(void *ctx, const cd_nest *nest) {
    census *c = ctx;
    cd_an w = {.nest = nest, .ast = nest->ast, .gpu = true};
    cd_an_gpu g = {.w = &w, .statement = statement, .ctx = c};
    double all[CD_N_GPU_FACTS] = {0};
    cdmpp_err err = {0};
    assert_ok(cd_facts_read_nest(&w, &err));
    assert_ok(cd_facts_gpu_walk(&g, all, &err));
    cd_arena_free(&w.arena);
    c->programs++;
}

/* The bars are what the model reached when it was written, with a little room. */
static void test_all_threads(void **state) {
    static const char *const groups[] = {"sectors of 1 block", "of 4 blocks", "of 16", "of all"};
    census c = {0};
    for (size_t k = 0; k < MADE_F_TASKS; k++) made_facts_draws(*state, k, true, DRAWS, one, &c);
    show("sectors of warps", &c.sectors);
    show("waves of warps", &c.waves);
    show("active lanes", &c.active);
    for (int w = 0; w < TRUTH_GROUPS; w++) show(groups[w], &c.blocks[w]);
    if (getenv("CD_SHOW"))
        printf("%zu programs, %zu accesses, %zu of %zu even exact, %zu of %zu sums exact\n",
               c.programs, c.accesses, c.exact_even, c.even, c.exact_sums, c.sums);
    assert_true(c.programs > 150 && c.even > 100 && c.sums > 30);
    assert_int_equal(c.exact_even, c.even);
    assert_close(at(&c.sectors, 0.5), 1, 0.01, 0);
    assert_close(at(&c.waves, 0.5), 1, 0.01, 0);
    assert_close(at(&c.active, 0.5), 1, 0.01, 0);
    assert_int_equal(c.exact_sums, c.sums);
    for (int w = 0; w < TRUTH_GROUPS; w++)
        assert_true(at(&c.blocks[w], 0.08) > 0.95 && at(&c.blocks[w], 0.92) < 1.05);
    done(&c.sectors);
    done(&c.waves);
    done(&c.active);
    for (int w = 0; w < TRUTH_GROUPS; w++) done(&c.blocks[w]);
}

TESTS(made_facts_up, made_facts_down, test_all_threads)
