/* Addresses as sums of digits: the same as the program computes at every access that it makes; and
 * distinct lines of made accesses against counting them. */
#include <stdlib.h>

#include "check.h"
#include "lru_sim.h"
#include "made_facts.h"

typedef struct {
    cd_an w;
    lru_sim *sim;
    long checked, wrong;
} walk;

static int64_t address_of(const walk *k, const cd_an_raw *r) {
    int64_t at = r->c;
    for (uint32_t i = 0; i < r->n; i++) {
        const cd_an_slice *s = &r->t[i];
        const double v = k->sim->in.var[k->w.var[s->var].e->u.i];
        at += s->k * ((int64_t)v / s->lo % s->n);
    }
    return at;
}

static bool falls(const cd_an_raw *r, int32_t var) {
    for (uint32_t i = 0; i < r->n; i++)
        if (r->t[i].var == var && r->t[i].k < 0) return true;
    return false;
}

/* The same by the nodes of the tree, whose strides are above 0: a digit that falls is counted from
 * its end. */
static int64_t placed_at(const walk *k, const cd_an_raw *r, const cd_an_access *a) {
    int64_t at = a->c;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->t[i].node == CD_AN_HERE) continue; /* a row of neighbours: this is the first */
        const cd_an_var *v = &k->w.var[k->w.node[a->t[i].node].var];
        const uint32_t digit = v->n_digit - 1 - (uint32_t)(a->t[i].node - v->node);
        const int64_t value =
            (int64_t)k->sim->in.var[v->e->u.i] / (digit ? v->cut[digit - 1] : 1) % a->t[i].n;
        at += a->t[i].stride *
              (falls(r, k->w.node[a->t[i].node].var) ? a->t[i].n - 1 - value : value);
    }
    return at;
}

/* Every access of a running program is one of its store's, at the address that the sum says. */
static void one_access(void *ctx, int32_t node, uint32_t tensor, int64_t bytes) {
    walk *k = ctx;
    bool found = false;
    for (uint32_t i = 0; i < k->w.n_raw && !found; i++) {
        const cd_an_raw *r = &k->w.raw[i];
        found = r->store == node && k->w.tensor[r->tensor].nest == tensor && !r->copy &&
                address_of(k, r) == bytes && placed_at(k, r, &k->w.acc[i]) == bytes;
    }
    k->checked++;
    k->wrong += !found;
}

static void follow(void *ctx, const cd_nest *nest) {
    static lru_sim sim;
    walk *k = ctx;
    cdmpp_err err = {0};
    k->w = (cd_an){.nest = nest, .ast = nest->ast};
    k->sim = &sim;
    memset(&sim, 0, sizeof sim);
    sim.address = one_access;
    sim.ctx = k;
    assert_ok(cd_facts_read_nest(&k->w, &err));
    assert_ok(cd_facts_tree_make(&k->w, &err));
    assert_true(lru_run(&sim, nest, 2000000));
    cd_arena_free(&k->w.arena);
}

static void test_addresses(void **state) {
    walk k = {0};
    for (size_t t = 0; t < MADE_F_TASKS; t++)
        if (t != MADE_F_RESHAPE) made_facts_each(*state, t, 12, follow, &k);
    assert_true(k.checked > 100000);
    assert_int_equal(k.wrong, 0);
}

/* ---- lines ---- */

static uint64_t next(uint64_t *s, uint64_t below) {
    *s = *s * 6364136223846793005U + 1442695040888963407U;
    return (*s >> 33) % below;
}

static void put(const cd_an_access *a, uint32_t i, int32_t node, int64_t at, unsigned char *line) {
    if (i == a->n) {
        line[at / 64] = 1;
        line[(at + a->elem - 1) / 64] = 1;
        return;
    }
    for (int64_t x = 0; x < (a->t[i].node >= node ? a->t[i].n : 1); x++)
        put(a, i + 1, node, at + x * a->t[i].stride, line);
}

static double count(const cd_an_access *a, int32_t node, int64_t at) {
    static unsigned char line[1 << 16];
    double n = 0;
    memset(line, 0, sizeof line);
    put(a, 0, node, at, line);
    for (size_t i = 0; i < sizeof line; i++) n += line[i];
    return n;
}

/* The mean over the iterations of the outer terms, which are those of node 0. */
static double mean(const cd_an_access *a, uint32_t i, int64_t at, double *n) {
    if (i == a->n) {
        (*n)++;
        return count(a, 1, at);
    }
    double s = 0;
    for (int64_t x = 0; x < (a->t[i].node ? 1 : a->t[i].n); x++)
        s += mean(a, i + 1, at + x * a->t[i].stride, n);
    return s;
}

/* Rows of a tensor whose rows are whole lines, every step and width: equal. Any strides: near, in
 * the mean. */
TEST(lines_are_counted) {
    uint64_t s = 5;
    double ratio = 0;
    int exact = 0, all = 0, far = 0;
    for (int k = 0; k < 2000; k++) {
        cd_an_term t[4];
        cd_an_access a = {.elem = 4, .t = t};
        const bool rows = k % 2;
        int64_t stride = 4;
        for (; a.n < 1 + next(&s, 4); a.n++) {
            t[a.n] = (cd_an_term){
                .stride = stride, .n = 1 + (int64_t)next(&s, 7), .node = (int32_t)next(&s, 2)};
            if (rows)
                stride =
                    a.n ? stride * (int64_t)(1 + next(&s, 3)) * 8 : 64 * (int64_t)(1 + next(&s, 3));
            else stride += 4 * (int64_t)next(&s, 60);
        }
        if (rows)
            for (uint32_t i = 0; i < a.n; i++) t[i].node = 1;
        for (uint32_t i = 0; i < a.n; i++) t[i].reach = t[i].stride * (t[i].n - 1);
        double n = 0, width;
        const double got = cd_facts_lines_count(&a, 1, 64, &width), truth = mean(&a, 0, 0, &n) / n;
        if (rows && fabs(got - truth) > 1e-9) fail_msg("program %d: %g lines, %g", k, got, truth);
        exact += fabs(got - truth) < 1e-9;
        ratio += got / truth;
        far += fabs(got / truth - 1) > 0.25;
        all++;
    }
    if (getenv("CD_SHOW"))
        printf("%d of %d exact, %d more than a quarter off, mean ratio %.3f\n", exact, all, far,
               ratio / all);
    assert_close(ratio / all, 1, 0.03, 0);
    assert_true(exact > all * 8 / 10);
    assert_true(far < all / 28);
}

TESTS(made_facts_up, made_facts_down, test_addresses, lines_are_counted)
