/* Several ways to run one network, in turns. */
#include <math.h>
#include <time.h>

#include "profiler/host/host.h"
#include "profiler/runtime/single/single_internal.h"

enum { LEAST_TURNS = 9, MOST_TURNS = 2000, LEAST_PASSES = 3, MOST_PASSES = 200 };
/* libgomp's threads poll for a few milliseconds after a parallel loop */
static const double BUDGET_S = 2, TURN_S = 0.02, PAUSE_S = 0.02;

typedef struct {
    cd_op_profile_net m;
    const cd_executor_way *way;
    uint32_t n;
    cd_executor **run; /* (n) */
    double *turn;      /* (n, MOST_TURNS) */
    cd_executor_way_time *out;
} runs;

static cdmpp_status check(const cd_workload *w, const cd_program_select *p, cdmpp_err *err) {
    for (uint32_t g = 0; g < w->n_group; g++) {
        const cd_workload_group *x = &w->group[g];
        const char *why = x->task == CD_GRAPH_NONE ? "nobody defines it" : p->task[x->task].err.msg;
        if (!x->weights && (x->task == CD_GRAPH_NONE || p->task[x->task].status))
            return CD_FAIL(err, EBACKEND, "group %u of the network has no program: %s", g, why);
    }
    return CDMPP_OK;
}

/* Every way has memory of its own with the same content. */
static cdmpp_status open_all(runs *r, cdmpp_err *err) {
    for (uint32_t k = 0; k < r->n; k++) {
        const cd_executor_options o = {.threads = r->way[k].threads, .plan = r->way[k].plan};
        CD_TRY(cd_executor_open(&r->m.net, &o, &r->run[k], err));
        const cd_op_profile_runner c = cd_op_profile_runner_cpu(r->run[k]);
        CD_TRY(cd_op_profile_write_weights(&r->m.net, &c, err));
        CD_TRY(cd_op_profile_write_scalars(&r->m, &c, err));
    }
    return CDMPP_OK;
}

static void count(const runs *r, uint32_t k) {
    cd_executor_way_time *t = &r->out[k];
    if (r->way[k].plan) cd_executor_plan_counts(r->run[k], &t->calls, &t->waits);
    for (uint32_t s = 0; !r->way[k].plan && s < r->m.net.n_step; s++) {
        const cd_codegen_code *c = r->m.net.step[s].build->code;
        t->calls++;
        if (r->way[k].threads > 1 && c->parallel) t->waits += c->n_part ? c->n_part : 1;
    }
}

/* All results of a pass behind one another. */
static cdmpp_status results(const runs *r, uint32_t k, unsigned char *to, cdmpp_err *err) {
    double total;
    cd_executor_pass(r->run[k], NULL, &total);
    for (uint32_t t = 0; t < r->m.net.n_tensor; t++) {
        if (r->m.tensor[t].role != CD_TENSOR_RESULT) continue;
        CD_TRY(cd_executor_read(r->run[k], t, to, err));
        to += r->m.tensor[t].bytes;
    }
    return CDMPP_OK;
}

static cdmpp_status compare_values(const runs *r, cdmpp_err *err) {
    size_t bytes = 1;
    for (uint32_t t = 0; t < r->m.net.n_tensor; t++)
        if (r->m.tensor[t].role == CD_TENSOR_RESULT) bytes += (size_t)r->m.tensor[t].bytes;
    unsigned char *want = cd_mem_alloc(bytes), *got = cd_mem_alloc(bytes);
    cdmpp_status st = want && got ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu bytes of results", bytes);
    if (!st) st = results(r, 0, want, err);
    for (uint32_t k = 1; k < r->n && !st; k++) {
        st = results(r, k, got, err);
        for (size_t t = 0, at = 0; t < r->m.net.n_tensor && !st; t++) {
            if (r->m.tensor[t].role != CD_TENSOR_RESULT) continue;
            if (memcmp(want + at, got + at, (size_t)r->m.tensor[t].bytes)) r->out[k].differ++;
            at += (size_t)r->m.tensor[t].bytes;
        }
    }
    cd_mem_free(want);
    cd_mem_free(got);
    return st;
}

/* ---- turns ---- */

/* The median pass of a turn. */
static double turn(cd_executor *r, double *best_s) {
    const struct timespec pause = {0, (long)(PAUSE_S * 1e9)};
    double v[MOST_PASSES], first;
    uint32_t n = 0;
    (void)nanosleep(&pause, NULL);
    cd_executor_pass(r, NULL, &first);
    const double until = cd_clock_wall() + TURN_S;
    while (n < LEAST_PASSES || (n < MOST_PASSES && cd_clock_wall() < until))
        cd_executor_pass(r, NULL, &v[n++]);
    cd_sort_doubles(v, n);
    if (v[0] < *best_s) *best_s = v[0];
    return cd_sort_median(v, n);
}

static cdmpp_status turns(runs *r, double budget_s, const volatile sig_atomic_t *stop,
                          cdmpp_err *err) {
    const double until = cd_clock_wall() + budget_s;
    uint32_t n = 0;
    for (uint32_t k = 0; k < r->n; k++) r->out[k].best_s = (double)INFINITY;
    for (; n < MOST_TURNS && (n < LEAST_TURNS || cd_clock_wall() < until); n++)
        for (uint32_t k = 0; k < r->n; k++) {
            if (stop && *stop) return CD_FAIL(err, EINTERRUPTED, "while a network was measured");
            r->turn[(size_t)k * MOST_TURNS + n] = turn(r->run[k], &r->out[k].best_s);
        }
    for (uint32_t k = 0; k < r->n; k++) {
        double *v = &r->turn[(size_t)k * MOST_TURNS];
        cd_sort_doubles(v, n);
        r->out[k].median_s = cd_sort_median(v, n);
        r->out[k].low_s = cd_sort_quantile(v, n, 0.25),
        r->out[k].high_s = cd_sort_quantile(v, n, 0.75);
        r->out[k].turns = n;
    }
    return CDMPP_OK;
}

/* Threads of OpenMP use what their first caller may use: the processors of the widest way. */
static int widest(const runs *r) {
    int most = 1;
    for (uint32_t k = 0; k < r->n; k++) {
        const int n = r->way[k].plan ? (int)r->way[k].plan->n_unit : r->way[k].threads;
        if (n > most) most = n;
    }
    return most;
}

static cdmpp_status measure(runs *r, double budget_s, const volatile sig_atomic_t *stop,
                            cdmpp_err *err) {
    r->run = cd_mem_zalloc(r->n + 1, sizeof(cd_executor *));
    r->turn = cd_mem_zalloc((size_t)r->n * MOST_TURNS + 1, sizeof *r->turn);
    if (!r->run || !r->turn) return CD_FAIL(err, ENOMEM, "%u ways", r->n);
    CD_TRY(open_all(r, err));
    for (uint32_t k = 0; k < r->n; k++) count(r, k);
    CD_TRY(compare_values(r, err));
    return turns(r, budget_s > 0 ? budget_s : BUDGET_S, stop, err);
}

cdmpp_status cd_executor_compare(const cd_workload *w, const cd_program_select *p,
                                 const cd_executor_way *way, uint32_t n, double budget_s,
                                 const volatile sig_atomic_t *stop, cd_executor_way_time *out,
                                 cdmpp_err *err) {
    runs r = {.way = way, .n = n, .out = out};
    cd_affinity all;
    memset(out, 0, n * sizeof *out);
    CD_TRY(check(w, p, err));
    cd_affinity_get(&all);
    (void)cd_affinity_last(widest(&r));
    cdmpp_status st = cd_op_profile_net_make(&r.m, w, p, err);
    if (!st) st = measure(&r, budget_s, stop, err);
    for (uint32_t k = 0; r.run && k < n; k++) cd_executor_close(r.run[k]);
    cd_affinity_set(&all, 0);
    cd_mem_free(r.run);
    cd_mem_free(r.turn);
    cd_arena_free(&r.m.arena);
    return st;
}
