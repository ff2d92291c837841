/* Plans that must fit into memories: against every plan, with bytes counted cell by cell; larger
 * ones, and what is refused. */
#include "check.h"
#include "made_snet_kinds.h"
#include "predictor/partition/shard/shard_plan_internal.h"

/* ---- the slow truth ---- */
enum { MEMORIES = 3, OPTIONS = 64, CELLS = 64, TENSOR_BYTES = 4 * MS_H * MS_C };

typedef struct {
    double own[MEMORIES];   /* weights and partial sums */
    uint64_t has[MEMORIES]; /* tensors */
} hold;

static void paint(const cd_box *b, const cd_te_op *of, bool *cell) {
    int64_t n = 1;
    for (uint32_t d = 0; d < of->rank; d++) n *= of->shape[d];
    assert_true(n <= CELLS);
    for (int64_t k = 0; k < n; k++) {
        bool in = true;
        int64_t rest = k;
        for (uint32_t d = of->rank; d-- > 0; rest /= of->shape[d])
            in = in && rest % of->shape[d] >= b->lo[d] && rest % of->shape[d] < b->lo[d] + b->n[d];
        cell[k] = cell[k] || in;
    }
}

typedef struct {
    const ms_net *m;
    const cd_te_dag *dag;
    uint32_t op, memory_of[CD_MACHINE_DEVICES];
    bool weight[MEMORIES][3][CELLS];
    hold *out;
} eye;

static void see(eye *e, uint32_t arg, const cd_box *b, uint32_t device) {
    const uint32_t mem = e->m->machine.device[device].memory, t = e->m->op[e->op].arg[arg];
    const cd_te_op *of = &e->dag->op[e->dag->tensor_op[e->dag->arg[arg]]];
    const cd_box all = cd_box_whole(of->rank, of->shape);
    if (!e->m->tensor[t].constant) e->out->has[mem] |= (uint64_t)1 << t;
    else paint(b ? b : &all, of, e->weight[mem][arg]);
}

/* What one operator's option holds, by its parts made anew. */
static hold held(const ms_net *m, const cd_shard_planner *s, uint32_t op, uint32_t option) {
    const cd_shard_planner_kind *k = &s->kind[s->node[op].kind];
    const cd_shard_planner_option *o = &k->option[option];
    hold h = {{0}, {0}};
    static eye e;
    e = (eye){.m = m, .dag = m->op[op].dag, .op = op, .out = &h};
    if (o->way == CD_SHARD_PLANNER_NONE)
        for (uint32_t i = 0; i < m->op[op].n_arg; i++) see(&e, i, NULL, o->part[0].device);
    for (uint32_t i = 0; o->way != CD_SHARD_PLANNER_NONE && i < o->n_part + (o->join != UINT32_MAX);
         i++) {
        cd_te_shard *p;
        const bool join = i == o->n_part;
        if (join) assert_ok(cd_te_shard_join(e.dag, &k->way[o->way], o->n_part, &p, &err));
        else
            assert_ok(
                cd_te_shard_make(e.dag, &k->way[o->way], o->part[i].lo, o->part[i].hi, &p, &err));
        const uint32_t device = join ? o->join : o->part[i].device,
                       mem = m->machine.device[device].memory;
        for (uint32_t a = 0; a < p->n_arg; a++) {
            if (!(p->of[a] & CD_TE_SHARD_PARTIAL)) see(&e, p->of[a], &p->box[a], device);
            else if (!join ||
                     m->machine.device[o->part[p->of[a] - CD_TE_SHARD_PARTIAL].device].memory !=
                         mem)
                h.own[mem] += 4 * (double)cd_box_elements(&p->box[a]);
        }
        cd_te_shard_free(p);
    }
    for (int mem = 0; mem < MEMORIES; mem++)
        for (int a = 0; a < 3; a++)
            for (int c = 0; c < CELLS; c++) h.own[mem] += e.weight[mem][a][c] ? 4 : 0;
    return h;
}

static void sum_up(const ms_net *m, hold (*h)[OPTIONS], const uint32_t *at, double *bytes) {
    for (uint32_t mem = 0; mem < MEMORIES; mem++) {
        uint64_t has = 0;
        bytes[mem] = 0;
        /* device 0 has memory 0: what comes in and goes out */
        for (uint32_t t = 0; mem == 0 && t < m->net.n_tensor; t++)
            if ((m->tensor[t].from == CD_SHARD_NET_OUTSIDE && !m->tensor[t].constant) ||
                m->tensor[t].result)
                has |= (uint64_t)1 << t;
        for (uint32_t k = 0; k < m->net.n_op; k++)
            bytes[mem] += h[k][at[k]].own[mem], has |= h[k][at[k]].has[mem];
        bytes[mem] += TENSOR_BYTES * (double)__builtin_popcountll(has);
    }
}

static void set_limits(ms_net *m, const double *bytes) {
    for (uint32_t d = 0; d < m->machine.n; d++)
        m->machine.device[d].mem_gb = bytes[m->machine.device[d].memory] * 1e-9;
}

/* The cheapest choice whose bytes are within limits (0: none); infinity: there is none. */
static double least_of_all(const ms_net *m, const cd_shard_planner *s, const double *limit,
                           double *bytes_of_best) {
    static hold h[4][OPTIONS];
    uint32_t at[4] = {0}, choice[4], k;
    const uint32_t n = m->net.n_op;
    double least = (double)INFINITY, bytes[MEMORIES];
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t x = 0; x < s->node[i].n_some; x++)
            h[i][x] = held(m, s, i, s->node[i].some[x]);
    do {
        bool fits = true;
        sum_up(m, h, at, bytes);
        for (uint32_t mem = 0; mem < MEMORIES; mem++)
            fits = fits && !(limit[mem] > 0 && bytes[mem] > limit[mem] * (1 + 1e-12));
        for (uint32_t i = 0; i < n; i++) choice[i] = s->node[i].some[at[i]];
        const double cost = fits ? cd_shard_planner_cost(s, choice, NULL) : (double)INFINITY;
        if (cost < least) least = cost, memcpy(bytes_of_best, bytes, sizeof bytes);
        for (k = 0; k < n && ++at[k] == s->node[k].n_some; k++) at[k] = 0;
    } while (k < n);
    return least;
}

/* ---- laws ---- */

static void equals_every_plan(void **state) {
    (void)state;
    static ms_net m;
    const uint32_t memory[][3] = {{0, 1, 2}, {0, 1, 1}, {0, 0, 1}};
    unsigned tight = 0, none = 0, split = 0;
    for (uint64_t seed = 0; seed < 90; seed++) {
        const double free_[MEMORIES] = {0};
        double best_bytes[MEMORIES] = {0}, limit[MEMORIES] = {0}, other[MEMORIES];
        cd_shard_plan *p = NULL;
        cd_shard_planner s;
        ms_begin(&m, seed);
        assert_ok(ms_machine(&m, 2 + seed % 2, memory[seed % 3], 1e-7 * ms_unit(&m),
                             1e-9 * ms_unit(&m), &err));
        ms_draw(&m, &kinds, 1 + (uint32_t)seed % 3);
        ms_speeds(&m);
        cd_shard_plan_options a = ms_ask(&m);
        a.granules = m.machine.n > 2 ? 2 : 4;
        assert_ok(cd_shard_planner_begin(&s, &a, &err));
        assert_ok(cd_shard_planner_kinds(&s, &err));
        assert_ok(cd_shard_planner_nodes(&s, &err));
        assert_ok(cd_shard_planner_edges(&s, &err)); /* cd_shard_planner_cost goes along them */
        const double unbound = least_of_all(&m, &s, free_, best_bytes);
        for (uint32_t mem = 0; mem < MEMORIES; mem++)
            limit[mem] = best_bytes[mem] > 0 && ms_unit(&m) < 0.7
                             ? floor(best_bytes[mem] * (0.3 + 0.9 * ms_unit(&m)))
                             : 0;
        const double want = least_of_all(&m, &s, limit, other);
        cd_arena_free(&s.arena);
        set_limits(&m, limit);
        const cdmpp_status st = cd_shard_plan_make(&a, &p, NULL, &err);
        if (isinf(want)) {
            assert_int_equal(st, CDMPP_EINVALID);
            assert_non_null(strstr(err.msg, "no plan fits:"));
            none++;
        } else {
            assert_ok(st);
            assert_true(p->exact && p->bound_s <= p->predicted_s &&
                        (strstr(p->verdict, "does not fit into") != NULL) ==
                            (want > unbound * (1 + 1e-9)));
            assert_close(p->predicted_s, want, 1e-9, 0);
            tight += want > unbound * (1 + 1e-9), split += p->split;
        }
        cd_shard_plan_free(p);
        ms_free(&m);
    }
    print_message("90 networks: %u whose best plan did not fit, %u without any, %u with splits\n",
                  tight, none, split);
    assert_true(tight > 10 && none > 5 && split > 10);
}

/* Larger ones: the plan fits, no limit never costs, and what a single device cannot hold is no
 * baseline. */
static void laws_of_larger(void **state) {
    (void)state;
    static ms_net m;
    const uint32_t memory[] = {0, 1, 2};
    unsigned bound = 0;
    for (uint64_t seed = 200; seed < 212; seed++) {
        cd_shard_plan *p, *q, **base;
        ms_begin(&m, seed);
        assert_ok(ms_machine(&m, 3, memory, 1e-7, 1e-10, &err));
        ms_draw(&m, &kinds, 10);
        ms_speeds(&m);
        cd_shard_plan_options a = ms_ask(&m);
        a.granules = 2;
        assert_ok(cd_shard_plan_make(&a, &p, NULL, &err));
        /* more than enough changes nothing */
        for (uint32_t d = 1; d < 3; d++) m.machine.device[d].mem_gb = 1;
        assert_ok(cd_shard_plan_make(&a, &q, &base, &err));
        assert_true(q->predicted_s == p->predicted_s && q->exact == p->exact &&
                    isfinite(q->base[1].predicted_s));
        cd_shard_plan_free_all(base, q->n_base);
        cd_shard_plan_free(q);
        for (uint32_t d = 1; d < 3; d++) m.machine.device[d].mem_gb = 3 * TENSOR_BYTES * 1e-9;
        assert_ok(cd_shard_plan_make(&a, &q, &base, &err));
        assert_true(q->predicted_s >= p->predicted_s * (1 - 1e-12) && q->bound_s <= q->predicted_s);
        /* 10 results and more do not fit */
        assert_true(isinf(q->base[1].predicted_s) && !base[1] && isinf(q->base[2].predicted_s));
        for (uint32_t i = 0; i < q->n_base; i++)
            assert_true(q->predicted_s <= q->base[i].predicted_s * (1 + 1e-12));
        bound += q->predicted_s > p->predicted_s;
        cd_shard_plan_free_all(base, q->n_base);
        cd_shard_plan_free(q);
        cd_shard_plan_free(p);
        ms_free(&m);
    }
    assert_true(bound > 6);
}

static void refused(void **state) {
    (void)state;
    static ms_net m;
    cd_shard_plan *p = NULL;
    ms_begin(&m, 1);
    assert_ok(ms_machine(&m, 2, NULL, 0, 0, &err)); /* one memory */
    ms_draw(&m, &kinds, 3);
    m.machine.device[1].mem_gb = 1e-9;
    cd_shard_plan_options a = ms_ask(&m);
    assert_int_equal(cd_shard_plan_make(&a, &p, NULL, &err), CDMPP_EINVALID);
    assert_non_null(strstr(err.msg, "memory of d0, which has 1e-09"));
    m.machine.device[1].mem_gb = (double)NAN;
    assert_int_equal(cd_shard_plan_make(&a, &p, NULL, &err), CDMPP_ERANGE);
    m.machine.device[1].mem_gb = -1;
    assert_int_equal(cd_shard_plan_make(&a, &p, NULL, &err), CDMPP_ERANGE);
    ms_free(&m);
}

TESTS(ms_up, ms_down, equals_every_plan, laws_of_larger, refused)
