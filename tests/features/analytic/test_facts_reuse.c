/* Lines that caches fetch and give back, against caches that execute the program: drawn schedules of small tasks. */
#include <stdlib.h>

#include "check.h"
#include "lru_sim.h"
#include "made_space.h"
#include "features/analytic/analytic_internal.h"

#define IN(name, ...) "{\"name\": \"" name "\", \"shape\": [" #__VA_ARGS__ "], \"dtype\": \"float32\"}"
#define AXES(...) "\"axis\": [" __VA_ARGS__ "]"

static const char *const task[] = {
    MADE_MATMUL(16, 32, 24, ""),
    MADE_MATMUL(20, 24, 12, MADE_RELU(20, 24)),
    /* convolution with padding, stride 1 and 2 */
    "\"ops\": [" IN("X", 1, 8, 8, 8) "," IN("W", 3, 3, 8, 16) ", {\"name\": \"P\", \"axis\": [[\"n\", 0, 1], [\"h\", 0, 10], [\"w\", 0, 10], [\"c\", 0, 8]],"
    "\"body\": \"if_then_else(h >= 1 && h < 9 && w >= 1 && w < 9, X[n, h - 1, w - 1, c], 0.0)\"}, {\"name\": \"C\", "
    "\"axis\": [[\"n\", 0, 1], [\"h\", 0, 8], [\"w\", 0, 8], [\"f\", 0, 16]], \"reduce_axis\": [[\"y\", 0, 3], [\"x\", 0, 3], [\"c\", 0, 8]],"
    "\"reduce\": \"sum\", \"body\": \"P[n, h + y, w + x, c]*W[y, x, c, f]\"}]",
    "\"ops\": [" IN("X", 1, 12, 12, 16) "," IN("W", 3, 3, 16) ", {\"name\": \"D\", \"axis\": [[\"n\", 0, 1], [\"h\", 0, 5], [\"w\", 0, 5], [\"c\", 0, 16]],"
    "\"reduce_axis\": [[\"y\", 0, 3], [\"x\", 0, 3]], \"reduce\": \"sum\", \"body\": \"X[n, h*2 + y, w*2 + x, c]*W[y, x, c]\"},"
    "{\"name\": \"R\", \"axis\": [[\"n\", 0, 1], [\"h\", 0, 5], [\"w\", 0, 5], [\"c\", 0, 16]], \"body\": \"max(D[n, h, w, c], 0.0)\"}]",
    /* sums over rows, then divided by them */
    "\"ops\": [" IN("A", 24, 48) ", {\"name\": \"S\", \"axis\": [[\"i\", 0, 24]], \"reduce_axis\": [[\"k\", 0, 48]], \"reduce\": \"sum\", \"body\": \"A[i, k]\"},"
    "{\"name\": \"B\", \"axis\": [[\"i\", 0, 24], [\"j\", 0, 48]], \"body\": \"A[i, j]/S[i]\"}]",
    /* a transposition, a reshape */
    "\"ops\": [" IN("A", 32, 48) ", {\"name\": \"T\", \"axis\": [[\"i\", 0, 48], [\"j\", 0, 32]], \"body\": \"A[j, i] + 1.0\"}]",
    "\"ops\": [" IN("A", 32, 12) ", {\"name\": \"F\", \"axis\": [[\"i\", 0, 24], [\"j\", 0, 16]], \"body\": \"A[(i*16 + j) // 12, (i*16 + j) % 12] + 1.0\"}]",
    /* products of batches */
    "\"ops\": [" IN("A", 4, 16, 16) "," IN("B", 4, 16, 16) ", {\"name\": \"C\", \"axis\": [[\"b\", 0, 4], [\"i\", 0, 16], [\"j\", 0, 16]],"
    "\"reduce_axis\": [[\"k\", 0, 16]], \"reduce\": \"sum\", \"body\": \"A[b, i, k]*B[b, j, k]\"}]",
};
enum { N_TASK = sizeof task / sizeof *task, DRAWS = 40, CAPS = 8 };

typedef struct {
    double *ratio;
    size_t n, cap;
} list;

typedef struct {
    list fetch, back, hard;     /* ratios model to simulation; hard: of fetches where a line is fetched more than once */
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
    }
    c->ratio[c->n++] = ratio;
}

static void compare(census *c, const cd_nest *nest, const char *text) {
    static lru_sim sim;
    cd_an w = {.nest = nest, .ast = nest->ast};
    float out[CD_N_FACTS] = {0};
    double cap[CAPS], fetch[CAPS], back[CAPS];
    cdmpp_err err = {0};
    w.out = out;
    memset(&sim, 0, sizeof sim);
    sim.n_cap = CAPS;
    for (int k = 0; k < CAPS; k++) {
        sim.cap[k] = 16L << k;
        cap[k] = 64.0 * (double)sim.cap[k];
    }
    assert_ok(cd_an_read(&w, &err));
    assert_ok(cd_an_tree(&w, &err));
    cd_an_traffic(&w, CD_AN_LINE, cap, CAPS, fetch, back);
    if (!lru_run(&sim, nest, 2000000)) fail_msg("%s: %s", text, sim.in.why ? sim.in.why : "too many lines");
    c->programs++;
    c->inexact += w.inexact > 0;
    c->exact += fabs(fetch[CAPS - 1] - (double)sim.n) < 1e-6 * (double)sim.n;
    for (int k = 0; k < CAPS; k++) {
        if (getenv("SHOW")) printf("%s%ld:%ld/%.0f/%.2f w%.2f", k ? " " : "", sim.cap[k], sim.fetched[k], fetch[k], fetch[k] / (double)sim.fetched[k], back[k] / (double)sim.written[k]);
        note(&c->fetch, fetch[k] / (double)sim.fetched[k]);
        note(&c->back, back[k] / (double)sim.written[k]);
        if ((double)sim.fetched[k] > 1.05 * (double)sim.n) note(&c->hard, fetch[k] / (double)sim.fetched[k]);
    }
    if (getenv("SHOW")) printf(" inexact %g\n%s\n", w.inexact, getenv("SHOW")[0] == '2' ? text : "");
    cd_arena_free(&w.arena);
}

static void add_all(list *to, const list *from) {
    for (size_t i = 0; i < from->n; i++) note(to, from->ratio[i]);
}

static double at_share(list *l, double share) {
    qsort(l->ratio, l->n, sizeof *l->ratio, up_by);
    return l->n ? l->ratio[(size_t)(share * (double)(l->n - 1))] : 1;
}

static void print_list(const char *what, list *l) {
    printf("  %s %zu: p10 %.3f median %.3f p90 %.3f\n", what, l->n, at_share(l, 0.1), at_share(l, 0.5), at_share(l, 0.9));
}

static void print_census(const char *name, size_t k, census *c) {
    printf("%s %zu: %zu programs, %zu with inexact addresses, %zu footprints equal\n", name, k, c->programs, c->inexact, c->exact);
    print_list("fetched", &c->fetch);
    print_list("fetched again", &c->hard);
    print_list("written", &c->back);
}

static void free_census(census *c) {
    free(c->fetch.ratio);
    free(c->back.ratio);
    free(c->hard.ratio);
}

static void draw(cd_program *p, const cd_task *of, cd_sketch_sampler *s, census *c) {
    cdmpp_err err = {0};
    for (uint64_t i = 0; i < DRAWS; i++) {
        cd_sketch_sample d;
        cd_nest nest;
        cd_buf text = {0};
        if (cd_sketch_sampler_draw(s, i, &d, &err)) continue;
        const cd_record r = made_record(&d);
        assert_ok(cd_program_lower(p, of, &r, &err));
        assert_ok(cd_program_nest(p, &nest, &err));
        assert_ok(cd_program_print(p, &text, &err));
        compare(c, &nest, text.p);
        cd_buf_free(&text);
    }
}

/* Drawn programs of all tasks. */
TEST(traffic) {
    cd_task_registry *tasks;
    cd_program *p;
    cdmpp_err err = {0};
    census all = {0};
    assert_ok(prog_tasks(task, N_TASK, &tasks, &err));
    assert_ok(cd_program_new(&p, &err));
    for (size_t k = 0; k < N_TASK; k++) {
        census c = {0};
        cd_sketch_space *sp = made_space(tasks, k, false);
        cd_sketch_sampler *s = made_sampler(sp, 7);
        draw(p, cd_task_registry_at(tasks, k), s, &c);
        add_all(&all.fetch, &c.fetch);
        add_all(&all.back, &c.back);
        add_all(&all.hard, &c.hard);
        all.programs += c.programs;
        all.exact += c.exact;
        all.inexact += c.inexact;
        print_census("task", k, &c);
        free_census(&c);
        cd_sketch_sampler_free(s);
        cd_sketch_space_free(sp);
    }
    print_census("tasks", N_TASK, &all);
    free_census(&all);
    cd_program_free(p);
    cd_task_registry_free(tasks);
}

TESTS(NULL, NULL, traffic)
