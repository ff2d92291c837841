/* Pieces of steps on units by a plan: every piece after what it needs, the same values as in one
 * piece, and plans that cannot be run. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fault.h"
#include "made_code.h"
#include "base/core/core.h"
#include "profiler/backend/backend.h"
#include "profiler/runtime/single/single_internal.h"

enum {
    N = 64,
    ROWS = 8,
    STEPS = 60,
    TENSORS = STEPS + 2,
    RESULTS = 6,
    UNITS = 4,
    CALLS = STEPS * 8
};

/* ---- networks ---- */

/* Programs of up to two parts of ROWS iterations, 8 elements each; the fourth buffer is scratch. */
typedef struct {
    made_code made;
    cd_codegen_part part[2];
} program;

/* Part 1 reads in another order what part 0 left in the scratch. */
#define ACROSS                                                                                     \
    "if (part == 0) for (int i = 8 * begin; i < 8 * end; i++) s[i] = 0.5f * a[i] - 0.25f * b[i]; " \
    "else for (int i = 8 * begin; i < 8 * end; i++) c[i] = s[n - 1 - i] + b[i];"
/* Each row goes through the scratch of the unit: units with the same one would mix their rows. A
 * call gives way once: on a loaded machine that lasts as long as all that wait. */
#define OWN                                                                                        \
    "for (int r = begin; r < end; r++) { float *x = s + n * unit; for (int i = 0; i < 8; i++) { "  \
    "x[i] = a[8 * r + i]; if (i == 4 && r == begin) sched_yield(); } for (int i = 0; i < 8; i++) " \
    "c[8 * r + i] = x[i] - 0.5f * b[n - 1 - 8 * r - i]; }"

static void make_program(program *p, const char *name, const char *body, uint32_t n_part,
                         bool per_thread) {
    made_code_set(&p->made, name, N, MADE_ADD);
    cd_codegen_code *c = &p->made.code;
    p->made.buffer[3] = (cd_codegen_buffer){
        .name = "s", .dtype = CD_F32, .elements = N, .bytes = 4 * N, .per_thread = per_thread};
    p->made.order[3] = 3;
    c->n_buffer = p->made.launch.n_buffer = 4;
    if (!n_part) return;
    c->parallel = true;
    c->n_part = n_part, c->part = p->part;
    for (uint32_t k = 0; k < n_part; k++) p->part[k] = (cd_codegen_part){ROWS, N};
    cd_buf_clear(&c->text);
    cd_buf_putf(
        &c->text,
        "extern int sched_yield(void);\nvoid %s_part(void *const *arg, int part, int unit, int "
        "begin, int end) {\n"
        "const float *a = arg[0], *b = arg[1]; float *c = arg[2], *s = arg[3]; const int n = %d; "
        "(void)part, (void)unit;\n%s\n}\n"
        "void %s(void *const *arg) { for (int p = 0; p < %u; p++) %s_part(arg, p, 0, 0, %d); }\n",
        name, N, body, name, n_part, name, ROWS);
}

typedef struct {
    cd_executor_net net;
    cd_executor_net_tensor tensor[TENSORS];
    cd_executor_net_step step[STEPS];
    uint32_t arg[STEPS][3];
} random_net;

static uint32_t pick(uint64_t seed, uint32_t k, uint32_t most) {
    return (uint32_t)(cd_rng_at(seed, k) % most);
}

static void make_net(random_net *r, uint64_t seed, uint32_t window, const cd_build *build,
                     uint32_t n_build) {
    memset(r, 0, sizeof *r);
    for (uint32_t t = 0; t < TENSORS; t++)
        r->tensor[t] = (cd_executor_net_tensor){.bytes = 4 * N,
                                                .dtype = CD_F32,
                                                .role = t < 2                    ? CD_TENSOR_INPUT
                                                        : t >= TENSORS - RESULTS ? CD_TENSOR_RESULT
                                                                                 : CD_TENSOR_INNER};
    for (uint32_t k = 0; k < STEPS; k++) {
        for (uint32_t i = 0; i < 2; i++)
            r->arg[k][i] = k + 1 - pick(seed, 3 * k + i, k + 2 < window ? k + 2 : window);
        r->arg[k][2] = k + 2;
        r->step[k] =
            (cd_executor_net_step){"step", &build[pick(seed, 3 * k + 2, n_build)], r->arg[k], NULL};
    }
    r->net = (cd_executor_net){TENSORS, STEPS, r->tensor, r->step};
}

/* ---- plans ---- */

typedef struct {
    cd_executor_plan plan;
    uint32_t first[UNITS + 1];
    cd_executor_call call[CALLS];
} drawn;

typedef struct {
    uint32_t n[UNITS];
    cd_executor_call call[UNITS][CALLS];
} lists;

static void to_plan(drawn *d, const lists *l, uint32_t units) {
    uint32_t n = 0;
    for (uint32_t u = 0; u < units; u++) {
        d->first[u] = n;
        memcpy(d->call + n, l->call[u], l->n[u] * sizeof *d->call);
        n += l->n[u];
    }
    d->first[units] = n;
    d->plan = (cd_executor_plan){units, d->first, d->call};
}

/* Steps whole or in pieces, on any units: lists in the order of the steps never wait for each other
 * in a circle. */
static void draw(drawn *d, const cd_executor_net *n, uint64_t seed, uint32_t units) {
    static lists l;
    uint32_t at = 0;
    memset(&l, 0, sizeof l);
    for (uint32_t k = 0; k < n->n_step; k++) {
        const cd_codegen_code *c = n->step[k].build->code;
        if (!c->n_part || !pick(seed, at++, 3)) {
            const uint32_t u = pick(seed, at++, units);
            l.call[u][l.n[u]++] = (cd_executor_call){k, CD_EXECUTOR_WHOLE, 0, 1};
            continue;
        }
        for (uint32_t p = 0; p < c->n_part; p++)
            for (uint32_t begin = 0, end; begin < ROWS; begin = end) {
                const uint32_t u = pick(seed, at++, units);
                end = begin + 1 + pick(seed, at++, ROWS - begin);
                l.call[u][l.n[u]++] = (cd_executor_call){k, p, begin, end};
            }
    }
    to_plan(d, &l, units);
}

/* ---- values ---- */

static program made[3];
static cd_build build[3];
static cd_compiler *compiler;

static int up(void **state) {
    (void)state;
    cdmpp_err err = {0};
    make_program(&made[0], "whole", NULL, 0, false);
    make_program(&made[1], "across", ACROSS, 2, false);
    make_program(&made[2], "own", OWN, 1, true);
    for (int k = 0; k < 3; k++) build[k] = (cd_build){.code = &made[k].made.code};
    if (cd_compiler_open(&(cd_compiler_options){.cache = ""}, &compiler, &err)) return 1;
    return cd_compiler_build(compiler, build, 3, 1, &err) != CDMPP_OK;
}

static int down(void **state) {
    (void)state;
    cd_compiler_close(compiler);
    for (int k = 0; k < 3; k++) made_code_free(&made[k].made);
    return 0;
}

static void read_results(cd_executor *r, float to[RESULTS][N]) {
    cdmpp_err err = {0};
    for (uint32_t k = 0; k < RESULTS; k++)
        assert_ok(cd_executor_read(r, TENSORS - RESULTS + k, to[k], &err));
}

static void test_values(void **state) {
    (void)state;
    static random_net net;
    static drawn d;
    static float want[RESULTS][N], got[RESULTS][N];
    cdmpp_err err = {0};
    for (uint64_t seed = 0; seed < 4; seed++) {
        cd_executor *r;
        double total;
        make_net(&net, seed, seed < 2 ? 30 : 6, build, 3);
        assert_ok(cd_executor_open(&net.net, &(cd_executor_options){.threads = 1}, &r, &err));
        cd_executor_pass(r, NULL, &total);
        read_results(r, want);
        cd_executor_close(r);
        for (uint32_t units = 1; units <= UNITS; units++) {
            cd_executor_ran ran[STEPS];
            uint32_t calls, waits;
            draw(&d, &net.net, seed * 10 + units, units);
            assert_ok(
                cd_executor_open(&net.net, &(cd_executor_options){.plan = &d.plan}, &r, &err));
            cd_executor_plan_counts(r, &calls, &waits);
            assert_true(calls == d.first[units] && waits < calls && (waits > 0) == (units > 1));
            for (int pass = 0; pass < 25; pass++) {
                cd_executor_pass(r, ran, &total);
                read_results(r, got);
                assert_memory_equal(want, got, sizeof want);
                for (uint32_t k = 0; k < STEPS; k++) {
                    assert_true(ran[k].start_s >= 0 && ran[k].start_s <= ran[k].end_s &&
                                ran[k].end_s <= total && ran[k].worker < units);
                    for (uint32_t i = 0; i < 2; i++)
                        if (net.arg[k][i] >= 2)
                            assert_true(ran[net.arg[k][i] - 2].end_s <= ran[k].start_s);
                }
            }
            cd_executor_close(r);
        }
    }
}

/* What lives while each step runs, against the sum over all tensors: one is made before the step or
 * by it, and read by it or later. */
static void test_step_bytes(void **state) {
    (void)state;
    static random_net net;
    cdmpp_err err = {0};
    for (uint64_t seed = 0; seed < 3; seed++) {
        cd_executor *r;
        int64_t most = 0;
        make_net(&net, seed, 6, build, 3);
        assert_ok(cd_executor_open(&net.net, &(cd_executor_options){.threads = 2}, &r, &err));
        for (uint32_t k = 0; k < STEPS; k++) {
            const cd_executor_step_bytes b = cd_executor_bytes_of(r, k);
            /* the third program has some for each thread */
            const int64_t scratch = 4 * N * (net.step[k].build == &build[2] ? 2 : 1);
            uint32_t live = 0;
            for (uint32_t by = 0; by <= k && by + 2 < TENSORS - RESULTS; by++) {
                uint32_t last = by;
                for (uint32_t user = by + 1; user < STEPS; user++)
                    if (net.arg[user][0] == by + 2 || net.arg[user][1] == by + 2) last = user;
                live += last >= k;
            }
            assert_int_equal(b.scratch, scratch);
            assert_int_equal(b.live, scratch + (int64_t)live * 4 * N);
            most = b.live > most ? b.live : most;
        }
        assert_int_equal(most, cd_executor_bytes(r).inner_least);
        cd_executor_close(r);
    }
}

/* ---- order ---- */

/* What pieces write without any lock: a race for ThreadSanitizer where a wait is missing, a wrong
 * sum where it comes too early. */
typedef struct {
    const random_net *net;
    const cd_executor_pieces *p;
    uint32_t rows[STEPS][2];    /* iterations of each part that have run in this pass */
    uint32_t seen[STEPS][ROWS]; /* pass in which each iteration ran */
    uint32_t pass;
    bool wrong[UNITS]; /* each unit's own */
} race;

static uint32_t count(const race *r, uint32_t step) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < ROWS; k++) n += r->seen[step][k] == r->pass;
    return n;
}

static void look(void *ctx, uint32_t call, uint32_t unit) {
    race *r = ctx;
    const cd_executor_call *c = &r->p->call[call];
    const uint32_t last = r->net->step[c->step].build->code->n_part;
    for (uint32_t i = 0; i < 2 && (c->part == CD_EXECUTOR_WHOLE || !c->part); i++) {
        const uint32_t from = r->net->arg[c->step][i];
        if (from >= 2 && count(r, from - 2) != ROWS) r->wrong[unit] = true;
    }
    sched_yield();
    const bool whole = c->part == CD_EXECUTOR_WHOLE;
    for (uint32_t k = whole ? 0 : c->begin;
         k < (whole ? ROWS : c->end) && (whole || c->part + 1 == last); k++) {
        if (r->seen[c->step][k] == r->pass) r->wrong[unit] = true; /* twice */
        r->seen[c->step][k] = r->pass;
    }
}

static void test_order(void **state) {
    (void)state;
    static random_net net;
    static drawn d;
    static race r;
    cdmpp_err err = {0};
    for (uint64_t seed = 0; seed < 8; seed++) {
        cd_arena a = {0};
        cd_executor_deps deps;
        cd_executor_pieces p;
        cd_executor_units *u;
        make_net(&net, seed, 4 + (uint32_t)seed * 4, build, 3);
        draw(&d, &net.net, seed, 2 + (uint32_t)seed % 3);
        assert_ok(cd_executor_deps_make(&net.net, &a, &deps, &err));
        assert_ok(cd_executor_pieces_make(&net.net, &d.plan, &deps, &a, &p, &err));
        r = (race){.net = &net, .p = &p};
        assert_ok(cd_executor_units_new(
            &(cd_executor_units_options){.pieces = &p, .call = look, .ctx = &r}, &u, &err));
        for (r.pass = 1; r.pass <= 40; r.pass++) {
            cd_executor_units_pass(u);
            for (uint32_t k = 0; k < STEPS; k++) assert_int_equal(count(&r, k), ROWS);
        }
        for (uint32_t k = 0; k < UNITS; k++) assert_false(r.wrong[k]);
        cd_executor_units_free(u);
        cd_arena_free(&a);
    }
}

/* A unit waits once for what it needs of others, and never for itself. */
static void test_waits(void **state) {
    (void)state;
    static random_net net;
    const cd_executor_call call[] = {{0, CD_EXECUTOR_WHOLE, 0, 1},
                                     {2, CD_EXECUTOR_WHOLE, 0, 1},
                                     {3, CD_EXECUTOR_WHOLE, 0, 1},
                                     {1, CD_EXECUTOR_WHOLE, 0, 1}};
    const uint32_t first[] = {0, 3, 4};
    cd_arena a = {0};
    cd_executor_deps deps;
    cd_executor_pieces p;
    cdmpp_err err = {0};
    make_net(&net, 0, 2, build, 1);
    net.net.n_step = 4;
    /* 1 reads 0's, 2 reads 0's and 1's, 3 reads 1's and 2's */
    const uint32_t arg[4][3] = {{0, 1, 2}, {2, 0, 3}, {2, 3, 4}, {3, 4, 5}};
    memcpy(net.arg, arg, sizeof arg);
    assert_ok(cd_executor_deps_make(&net.net, &a, &deps, &err));
    assert_ok(cd_executor_pieces_make(&net.net, &(cd_executor_plan){2, first, call}, &deps, &a, &p,
                                      &err));
    assert_int_equal(p.n_wait, 2);
    assert_int_equal(p.wait_first[1], 0);
    assert_int_equal(p.wait_first[2], 1); /* step 2 for step 1 */
    assert_int_equal(p.wait[0], 1);
    assert_int_equal(p.wait_first[3], 1); /* step 3 needs it too, and its unit has waited */
    assert_int_equal(p.wait_first[4], 2); /* step 1 for step 0 */
    assert_int_equal(p.wait[1], 0);
    cd_arena_free(&a);
}

/* ---- plans that cannot be run ---- */

static void refuse(const random_net *net, uint32_t units, const uint32_t *first,
                   const cd_executor_call *call, cdmpp_status want, const char *says) {
    cd_executor *r = NULL;
    cdmpp_err err = {0};
    assert_int_equal(
        cd_executor_open(&net->net,
                         &(cd_executor_options){.plan = &(cd_executor_plan){units, first, call}},
                         &r, &err),
        want);
    if (!strstr(err.msg, says)) fail_msg("'%s' does not say '%s'", err.msg, says);
}

static void test_bad(void **state) {
    (void)state;
    static random_net net;
    enum { W = 2 };
    const uint32_t all[] = {0, 2};
    const uint32_t three[] = {0, 3};
    const uint32_t four[] = {0, 4};
    const uint32_t two[] = {0, 1, 2};
    const uint32_t none[] = {0};
    const cd_build *across = &build[1];
    make_net(&net, 0, 2, build, 1);
    net.net.n_step = W;
    const uint32_t arg[W][3] = {{0, 1, 2}, {2, 0, 3}};
    memcpy(net.arg, arg, sizeof arg);
    net.step[1].build = across;
    const uint32_t X
    = CD_EXECUTOR_WHOLE;
    refuse(&net, 1, all, (cd_executor_call[]){{0, X, 0, 1}, {0, X, 0, 1}}, CDMPP_EINVALID,
           "2 iterations of 1");
    refuse(&net, 1, all, (cd_executor_call[]){{0, X, 0, 1}, {1, 0, 0, 8}}, CDMPP_EINVALID,
           "0 iterations of 8");
    refuse(&net, 1, four,
           (cd_executor_call[]){{0, X, 0, 1}, {1, 0, 0, 4}, {1, 0, 0, 4}, {1, 1, 0, 8}},
           CDMPP_EINVALID, "the same iterations");
    refuse(&net, 1, three, (cd_executor_call[]){{0, X, 0, 1}, {1, X, 0, 1}, {1, 1, 0, 8}},
           CDMPP_EINVALID, "16 iterations of 8");
    refuse(&net, 1, all, (cd_executor_call[]){{0, X, 0, 1}, {2, X, 0, 1}}, CDMPP_EINVALID,
           "no step 2");
    refuse(&net, 1, all, (cd_executor_call[]){{0, 0, 0, 1}, {1, X, 0, 1}}, CDMPP_EINVALID,
           "no part 0");
    refuse(&net, 1, all, (cd_executor_call[]){{0, X, 0, 1}, {1, 0, 3, 9}}, CDMPP_EINVALID,
           "iterations 3 to 9 of 8");
    refuse(&net, 1, all, (cd_executor_call[]){{1, X, 0, 1}, {0, X, 0, 1}}, CDMPP_EINVALID,
           "waits for ever at step 1");
    refuse(&net, 1, three, (cd_executor_call[]){{0, X, 0, 1}, {1, 1, 0, 8}, {1, 0, 0, 8}},
           CDMPP_EINVALID, "waits for ever at step 1");
    refuse(&net, 0, none, NULL, CDMPP_ERANGE, "0 units");
    refuse(&net, CD_EXECUTOR_POOL_MAX + 1, none, NULL, CDMPP_ERANGE, "units");
    cd_executor *r;
    cdmpp_err err = {0};
    assert_ok(cd_executor_open(
        &net.net,
        &(cd_executor_options){
            .plan = &(cd_executor_plan){2, two, (cd_executor_call[]){{0, X, 0, 1}, {1, X, 0, 1}}}},
        &r, &err));
    cd_executor_close(r);
}

/* Without memory an executor with a plan is refused, and nothing is lost. */
static void test_no_memory(void **state) {
    (void)state;
    static random_net net;
    static drawn d;
    make_net(&net, 1, 6, build, 3);
    draw(&d, &net.net, 1, 3);
    FAULT_SWEEP(f, 10) {
        cd_executor *r = NULL;
        f.st = cd_executor_open(&net.net, &(cd_executor_options){.plan = &d.plan}, &r, &f.err);
        if (!f.st) cd_executor_close(r);
    }
}

TESTS(up, down, test_values, test_step_bytes, test_order, test_waits, test_bad, test_no_memory)
