/* Plans of splits against every plan, with exchanges counted element by element. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "made_snet_kinds.h"
#include "predictor/partition/shard/shard_plan_internal.h"

/* ---- the slow truth: where each element lies, and whether a piece lies in a row there ---- */
enum { CELLS = 24, SIDE_MAX = 64 };
typedef struct {
    uint32_t device;
    cd_box box; /* in the shape (6, 4) */
    int64_t pack;
} side;
typedef struct {
    double seconds;
    int64_t between, within;
    uint32_t waits;
} bill;

static bool has(const cd_box *b, int cell) {
    const int h = cell / MS_C, c = cell % MS_C;
    return h >= b->lo[0] && h < b->lo[0] + b->n[0] && c >= b->lo[1] && c < b->lo[1] + b->n[1];
}

static bool in_row(const cd_box *b, int (*at)(const cd_box *, int), const cd_box *in) {
    int low = CELLS, high = -1, n = 0;
    for (int k = 0; k < CELLS; k++) {
        if (!has(b, k)) continue;
        const int a = at(in, k);
        low = a < low ? a : low, high = a > high ? a : high, n++;
    }
    return high - low + 1 == n;
}

static int flat_at(const cd_box *in, int cell) {
    (void)in;
    return cell;
}

static int own_at(const cd_box *in, int cell) {
    return (int)((cell / MS_C - in->lo[0]) * in->n[1] + cell % MS_C - in->lo[1]);
}

static bool is_row(const cd_box *b) { return in_row(b, flat_at, NULL); }

static double link_s(const ms_net *m, uint32_t from, uint32_t to, int64_t bytes) {
    const cd_link *l = cd_link_table_find(&m->machine.links, m->machine.device[from].name,
                                          m->machine.device[to].name);
    if (from == to) return 0;
    return l ? cd_link_cost(l, bytes) : (double)INFINITY;
}

/* Cells that both have: they are a box again. */
static cd_box both(const cd_box *a, const cd_box *b, int *n) {
    int low[2] = {99, 99}, high[2] = {-1, -1};
    *n = 0;
    for (int k = 0; k < CELLS; k++) {
        if (!has(a, k) || !has(b, k)) continue;
        const int v[2] = {k / MS_C, k % MS_C};
        for (int d = 0; d < 2; d++)
            low[d] = v[d] < low[d] ? v[d] : low[d], high[d] = v[d] > high[d] ? v[d] : high[d];
        ++*n;
    }
    return (cd_box){2, {low[0], low[1]}, {high[0] - low[0] + 1, high[1] - low[1] + 1}};
}

static bool same(const cd_box *a, const cd_box *b) {
    return a->lo[0] == b->lo[0] && a->lo[1] == b->lo[1] && a->n[0] == b->n[0] && a->n[1] == b->n[1];
}

/* All cells are in a buffer, one behind the other. */
static bool in_place(const cd_box *b, const cd_box *of) {
    for (int k = 0; k < CELLS; k++)
        if (has(b, k) && !has(of, k)) return false;
    return (is_row(b) && is_row(of)) || in_row(b, own_at, of);
}

typedef struct {
    double pack[8], in[8], work[8];
    bool wait[8];
} phases;

static void count(const ms_net *m, const side *made, uint32_t n_made, const side *read,
                  uint32_t n_read, bool still, bill *out, phases *p) {
#define MEM(d) m->machine.device[d].memory
    for (uint32_t j = 0; j < n_read; j++) {
        const side *q = &read[j];
        bool found = false;
        for (uint32_t i = 0; i < n_made && !found; i++)
            if (MEM(made[i].device) == MEM(q->device) && in_place(&q->box, &made[i].box))
                found = true, p->wait[q->device] |= made[i].device != q->device && !still;
        for (uint32_t i = 0; i < j && !found; i++)
            if (MEM(read[i].device) == MEM(q->device) && in_place(&q->box, &read[i].box))
                found = true,
                p->wait[q->device] |= read[i].device != q->device &&
                                      !(still && MEM(0) == MEM(q->device) && is_row(&q->box));
        for (uint32_t i = 0; i < n_made && !found; i++) {
            int n;
            const side *o = &made[i];
            const cd_box x = both(&q->box, &o->box, &n);
            if (!n) continue;
            const double copy = n * 4 / 5e9;
            if (MEM(o->device) == MEM(q->device)) {
                p->wait[q->device] |= o->device != q->device && !still;
                if (!is_row(&q->box) || !is_row(&o->box))
                    p->work[q->device] += copy, out->within += n * 4;
                continue;
            }
            if (!(is_row(&o->box) ? is_row(&x) : in_row(&x, own_at, &o->box)))
                p->pack[o->device] += copy, out->within += n * 4;
            p->in[q->device] += link_s(m, o->device, q->device, n * 4), out->between += n * 4;
            if (!(is_row(&q->box) ? is_row(&x) : in_row(&x, own_at, &q->box)))
                p->work[q->device] += copy, out->within += n * 4;
        }
        if (q->pack) p->work[q->device] += (double)q->pack * 4 / 5e9, out->within += q->pack * 4;
    }
}

static double end(const ms_net *m, phases *p, bill *out) {
    double pack = 0, in = 0, work = 0;
    for (uint32_t d = 0; d < m->machine.n; d++) {
        if (p->wait[d]) p->work[d] += m->machine.device[d].sync_s, out->waits++;
        pack = fmax(pack, p->pack[d]), in = fmax(in, p->in[d]), work = fmax(work, p->work[d]);
    }
    return pack + in + work;
}

/* Boxes of parts, made anew. A flat definition (24) that is split has pieces that are none of (6,
 * 4) unless they are whole rows. */
static side in_tensor(const cd_te_dag *dag, uint32_t arg, const cd_box *b, uint32_t device) {
    const cd_te_op *o = &dag->op[dag->tensor_op[dag->arg[arg]]];
    side s = {device, *b, 0};
    if (o->rank == 2) return s;
    const int64_t lo = b->lo[0], n = b->n[0];
    s.box = (cd_box){2, {0, 0}, {MS_H, MS_C}};
    if (lo % MS_C == 0 && n % MS_C == 0) s.box = (cd_box){2, {lo / MS_C, 0}, {n / MS_C, MS_C}};
    else if (lo / MS_C == (lo + n - 1) / MS_C) s.box = (cd_box){2, {lo / MS_C, lo % MS_C}, {1, n}};
    return s;
}

static uint32_t pieces(const ms_net *m, uint32_t op, const cd_shard_plan_op *o, uint32_t tensor,
                       bool made, side *out) {
    const cd_te_dag *dag = m->op[op].dag;
    const cd_box all = {2, {0, 0}, {MS_H, MS_C}};
    uint32_t n = 0, n_way, last = m->op[op].n_arg - 1;
    cd_arena a = {0};
    cd_te_shard_axis *way, w = {0};
    if (made && o->join != UINT32_MAX) return out[0] = (side){o->join, all, 0}, 1;
    if (!o->dim[0]) return out[0] = (side){o->part[0].device, all, 0}, 1;
    assert_ok(cd_te_shard_axes(dag, &a, &way, &n_way, &err));
    for (uint32_t i = 0; i < n_way; i++)
        if (way[i].reduce == o->reduce && way[i].op == o->way_op && way[i].axis == o->axis)
            w = way[i];
    assert_string_equal(w.name, o->dim);
    for (uint32_t i = 0; i < o->n_part + (o->join != UINT32_MAX); i++) {
        cd_te_shard *p;
        if (i < o->n_part)
            assert_ok(cd_te_shard_make(dag, &w, o->part[i].lo, o->part[i].hi, &p, &err));
        else assert_ok(cd_te_shard_join(dag, &w, o->n_part, &p, &err));
        const uint32_t device = i < o->n_part ? o->part[i].device : o->join;
        for (uint32_t k = 0; k < p->n_arg; k++) {
            if (made ? k + 1 < p->n_arg
                     : k + 1 == p->n_arg || p->of[k] & CD_TE_SHARD_PARTIAL ||
                           m->op[op].arg[p->of[k]] != tensor)
                continue;
            side s = in_tensor(dag, made ? last : p->of[k], &p->box[k], device);
            bool twice = false;
            for (uint32_t j = 0; j < n; j++)
                twice = twice || (out[j].device == s.device && same(&out[j].box, &s.box));
            if (!twice) out[n++] = s;
        }
        cd_te_shard_free(p);
    }
    cd_arena_free(&a);
    return n;
}

/* Exchanges of a whole plan: into each operator from each other, from outside, and home. */
static double exchanges(const ms_net *m, const cd_shard_plan_op *op, bill *out) {
    double sum = 0;
    side made[SIDE_MAX], read[SIDE_MAX];
    for (uint32_t k = 0; k < m->net.n_op; k++) {
        for (uint32_t from = 0; from <= k; from++) { /* k: from outside */
            phases p = {0};
            for (uint32_t t = 0; t < m->net.n_tensor; t++) {
                bool reads = false;
                for (uint32_t a = 0; a + 1 < m->op[k].n_arg; a++)
                    reads = reads || m->op[k].arg[a] == t;
                if (!reads || m->tensor[t].constant ||
                    m->tensor[t].from != (from == k ? CD_SHARD_NET_OUTSIDE : from))
                    continue;
                const uint32_t n = from == k ? 1 : pieces(m, from, &op[from], t, true, made);
                if (from == k) made[0] = (side){0, {2, {0, 0}, {MS_H, MS_C}}, 0};
                count(m, made, n, read, pieces(m, k, &op[k], t, false, read), from == k, out, &p);
            }
            sum += end(m, &p, out);
        }
        phases p = {0};
        const side home = {0, {2, {0, 0}, {MS_H, MS_C}}, 0};
        if (m->tensor[m->op[k].arg[m->op[k].n_arg - 1]].result)
            count(m, made, pieces(m, k, &op[k], 0, true, made), &home, 1, false, out, &p);
        sum += end(m, &p, out);
    }
    return sum;
}

/* ---- laws of a plan ---- */
/* Of n parts on devices of one memory (share s, in all sum), on processors of their own or on
 * one. */
static double slow(const cd_contention *c, double s, double sum, uint32_t n, bool turns) {
    if (!(c->peak_bytes_per_s > 0)) return 1;
    return (sum > 1 ? 1 - s + s * sum : 1) * (n < 2   ? 1
                                              : turns ? 1 + (c->turn - 1) * (n - 1)
                                                      : c->beside);
}

/* Partial sums of all elements come to the device that joins. */
static double join_seconds(ms_net *m, uint32_t k, const cd_shard_plan_op *o,
                           const cd_te_shard_axis *w) {
    cd_te_shard *p;
    cd_shard_plan_estimate a;
    double in = 0;
    bool wait = false;
    assert_ok(cd_te_shard_join(m->op[k].dag, w, o->n_part, &p, &err));
    assert_ok(ms_time(m, k, o->join, p, &a, &err));
    cd_te_shard_free(p);
    for (uint32_t i = 0; i < o->n_part; i++) {
        const uint32_t from = o->part[i].device;
        if (m->machine.device[from].memory != m->machine.device[o->join].memory)
            in += link_s(m, from, o->join, CELLS * 4);
        else if (from != o->join) wait = true;
    }
    return in + (wait ? m->machine.device[o->join].sync_s : 0) + 1e-6 + a.seconds;
}

/* Seconds of an operator's parts by the invented times. */
static double op_seconds(ms_net *m, uint32_t k, const cd_shard_plan_op *o) {
    double most = 0, sum[8] = {0};
    uint32_t beside[8] = {0};
    cd_shard_plan_estimate a[8];
    cd_arena own = {0};
    cd_te_shard_axis *way = NULL, *w = NULL;
    uint32_t n_way = 0;
    assert_ok(cd_te_shard_axes(m->op[k].dag, &own, &way, &n_way, &err));
    for (uint32_t i = 0; i < n_way; i++)
        if (way[i].reduce == o->reduce && way[i].op == o->way_op && way[i].axis == o->axis &&
            o->dim[0])
            w = &way[i];
    for (uint32_t i = 0; i < o->n_part; i++) {
        cd_te_shard *p = NULL;
        if (w) assert_ok(cd_te_shard_make(m->op[k].dag, w, o->part[i].lo, o->part[i].hi, &p, &err));
        assert_ok(ms_time(m, k, o->part[i].device, p, &a[i], &err));
        cd_te_shard_free(p);
        sum[m->machine.device[o->part[i].device].memory] += a[i].memory_share;
        beside[m->machine.device[o->part[i].device].memory]++;
    }
    for (uint32_t i = 0; i < o->n_part; i++) {
        const cd_machine_device *d = &m->machine.device[o->part[i].device];
        most =
            fmax(most, 1e-6 + a[i].seconds * slow(&m->machine.contention, a[i].memory_share,
                                                  sum[d->memory], beside[d->memory], d->core >= 0));
    }
    if (o->join != UINT32_MAX) most += join_seconds(m, k, o, w);
    cd_arena_free(&own);
    return most;
}

static void check_plan(ms_net *m, const cd_shard_plan *p) {
    bill b = {0}, told = {0};
    double sum = 0;
    for (uint32_t k = 0; k < p->n_op; k++) {
        assert_close(p->op[k].seconds, op_seconds(m, k, &p->op[k]), 1e-9, 0);
        sum += p->op[k].seconds;
        assert_true(p->op[k].why[0] && p->op[k].ceiling >= 1 - 1e-12);
    }
    sum += exchanges(m, p->op, &b);
    assert_close(p->predicted_s, sum, 1e-9, 0);
    for (uint32_t i = 0; i < p->n_copy; i++) {
        const cd_shard_plan_copy *c = &p->copy[i];
        if (c->from == c->to) told.within += c->bytes;
        else if (c->bytes) told.between += c->bytes;
        else told.waits++;
    }
    assert_int_equal(told.between, b.between);
    assert_int_equal(told.within, b.within);
    assert_int_equal(told.waits, b.waits);
}

/* ---- every plan ---- */
static void op_of(const cd_shard_planner *s, uint32_t k, uint32_t option, cd_shard_plan_op *out) {
    const cd_shard_planner_kind *kind = &s->kind[s->node[k].kind];
    const cd_shard_planner_option *o = &kind->option[option];
    *out = (cd_shard_plan_op){.dim = "",
                              .n_part = o->n_part,
                              .part = o->part,
                              .join = o->join,
                              .join_s = o->join_s,
                              .seconds = o->seconds};
    if (o->way == CD_SHARD_PLANNER_NONE) return;
    const cd_te_shard_axis *w = &kind->way[o->way];
    out->dim = w->name, out->reduce = w->reduce, out->way_op = w->op, out->axis = w->axis;
}

/* Pairs are counted once, by element; then every choice is added up. */
static double least_of_all(ms_net *m, cd_shard_planner *s) {
    static double single[4][64], pair[4][4][64][64];
    cd_shard_plan_op op[MS_OPS];
    uint32_t choice[4] = {0}, k;
    const uint32_t n = m->net.n_op;
    double least = (double)INFINITY;
    bill b;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t x = 0; x < s->node[i].n_some; x++) {
            op_of(s, i, s->node[i].some[x], &op[0]);
            ms_net one = *m;
            one.net.n_op = 1, one.net.op = one.op, one.op[0] = m->op[i],
            one.net.tensor = one.tensor;
            /* its own result is of operator 0, others' are not there */
            for (uint32_t t = 0; t < one.net.n_tensor; t++)
                one.tensor[t].from = one.tensor[t].from == i ? 0
                                     : one.tensor[t].from == CD_SHARD_NET_OUTSIDE
                                         ? CD_SHARD_NET_OUTSIDE
                                         : 9;
            single[i][x] = op[0].seconds + exchanges(&one, op, &b);
            for (uint32_t j = 0; j < i; j++)
                for (uint32_t y = 0; y < s->node[j].n_some; y++) {
                    phases p = {0};
                    side made[SIDE_MAX], read[SIDE_MAX];
                    op_of(s, j, s->node[j].some[y], &op[1]);
                    const uint32_t t = m->op[j].arg[m->op[j].n_arg - 1];
                    bool reads = false;
                    for (uint32_t a = 0; a + 1 < m->op[i].n_arg; a++)
                        reads = reads || m->op[i].arg[a] == t;
                    if (reads)
                        count(m, made, pieces(m, j, &op[1], t, true, made), read,
                              pieces(m, i, &op[0], t, false, read), false, &b, &p);
                    pair[j][i][y][x] = end(m, &p, &b);
                }
        }
    do {
        double sum = 0;
        for (uint32_t i = 0; i < n; i++) {
            sum += single[i][choice[i]];
            for (uint32_t j = 0; j < i; j++) sum += pair[j][i][choice[j]][choice[i]];
        }
        least = fmin(least, sum);
        for (k = 0; k < n && ++choice[k] == s->node[k].n_some; k++) choice[k] = 0;
    } while (k < n);
    return least;
}

static void never_worse(const cd_shard_plan *p) {
    for (uint32_t i = 0; i < p->n_base; i++)
        assert_true(p->predicted_s <= p->base[i].predicted_s * (1 + 1e-12));
    assert_true(p->bound_s <= p->predicted_s);
}

static void equals_every_plan(void **state) {
    (void)state;
    static ms_net m;
    const uint32_t apart[] = {0, 1};
    unsigned split = 0, moved = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        cd_shard_plan *p, **base;
        cd_shard_planner s;
        ms_begin(&m, seed);
        assert_ok(ms_machine(&m, 2, seed % 2 ? apart : NULL, 1e-6 * ms_unit(&m), 1e-8 * ms_unit(&m),
                             &err));
        if (seed % 3 == 0) m.machine.contention = (cd_contention){1e9, 1.1, 1.4, 0, 0};
        /* both on one processor */
        if (seed % 12 == 0) m.machine.device[0].core = m.machine.device[1].core = 0;
        ms_draw(&m, &kinds, 1 + (uint32_t)seed % 3);
        ms_speeds(&m);
        cd_shard_plan_options a = ms_ask(&m);
        a.granules = 2 + (uint32_t)seed % 3;
        assert_ok(cd_shard_plan_make(&a, &p, &base, &err));
        assert_ok(cd_shard_planner_begin(&s, &a, &err));
        assert_ok(cd_shard_planner_kinds(&s, &err));
        assert_ok(cd_shard_planner_nodes(&s, &err));
        assert_true(p->exact);
        assert_close(p->predicted_s, least_of_all(&m, &s), 1e-9, 0);
        cd_arena_free(&s.arena);
        check_plan(&m, p), ms_check_replay(&m, p), never_worse(p);
        for (uint32_t i = 0; i < p->n_base; i++)
            if (base[i]) check_plan(&m, base[i]), ms_check_replay(&m, base[i]);
        split += p->split, moved += p->n_copy > 0;
        cd_shard_plan_free_all(base, p->n_base);
        cd_shard_plan_free(p);
        ms_free(&m);
    }
    print_message("60 networks: %u with splits, %u with copies\n", split, moved);
    assert_true(split > 20 && moved > 20);
}

/* Larger ones, up to 4 devices in up to 3 memories: the law of counted bytes, of replays and of
 * baselines. */
static void laws_of_larger(void **state) {
    (void)state;
    static ms_net m;
    const uint32_t memory[][4] = {{0, 0, 0, 0}, {0, 1, 1, 2}, {0, 0, 1, 1}};
    unsigned joins = 0;
    for (uint64_t seed = 100; seed < 130; seed++) {
        cd_shard_plan *p, **base;
        ms_begin(&m, seed);
        assert_ok(ms_machine(&m, 2 + (uint32_t)seed % 3, memory[seed % 3 == 1 ? 1 : seed % 2 * 2],
                             1e-6 * ms_unit(&m), 1e-8 * ms_unit(&m), &err));
        ms_draw(&m, &kinds, 12);
        ms_speeds(&m);
        cd_shard_plan_options a = ms_ask(&m);
        if (seed % 4 == 0) a.dims = "K,k,I"; /* sums alone */
        assert_ok(cd_shard_plan_make(&a, &p, &base, &err));
        check_plan(&m, p), ms_check_replay(&m, p), never_worse(p);
        for (uint32_t i = 0; i < p->n_base; i++) {
            if (!base[i]) continue;
            check_plan(&m, base[i]), ms_check_replay(&m, base[i]);
            for (uint32_t k = 0; k < base[i]->n_op; k++) joins += base[i]->op[k].join != UINT32_MAX;
            assert_close(base[i]->predicted_s, p->base[i].predicted_s, 1e-12, 0);
        }
        cd_shard_plan_free_all(base, p->n_base);
        cd_shard_plan_free(p);
        ms_free(&m);
    }
    print_message("30 networks: %u split sums in plans\n", joins);
    assert_true(joins > 20);
}

TESTS(ms_up, ms_down, equals_every_plan, laws_of_larger)
