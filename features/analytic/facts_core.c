/* What a core executes: instructions of every statement after vectors and unrolling, and the cycles
 * that they take when all data are in L1, as a table of ports has them.
 *
 *   for k in 0..512          stays a loop, does not move C: C is in registers meanwhile
 *     unrolled i in 0..4       4 x 2 accumulators, 4 loads of one A for all lanes, 2 loads of B, 8
 *                              multiply-adds a turn
 *       vector j in 0..32
 *         C[i, j] += A[i, k] * B[k, j]
 *
 *   cycles of a turn = max(8 / 2 ports, 6 / 2 loads, 14 / 6 started, one sum waits for its own: 4)
 *
 * The numbers of the core are round ones of servers since 2017: two vector units and two loads of
 * full width, one store, six instructions started a cycle, sums of four cycles. */
#include <math.h>
#include <string.h>

#include "features/analytic/analytic_internal.h"

#define PORTS             2.0
#define LOAD_PORTS        2.0
#define ISSUE             6.0
#define SUM_CYCLES        4.0
#define MEMORY_SUM_CYCLES 10.0  /* a sum that goes through a store and a load */
#define AHEAD             256.0 /* instructions that a core looks ahead */
#define MOST_LOOPS        96
/* Cycles for an element. */
#define DIVIDE_VECTOR         0.5
#define DIVIDE_SCALAR         4.0
#define EXP_CYCLES            15.0
#define CALL_CYCLES           40.0
#define DIVISION_INSTRUCTIONS 4.0
#define TURN_INSTRUCTIONS     2.0
#define REGISTERS_SPARE       2.0
/* elements from lane to lane up to which vectors are loaded and shuffled */
#define GROUP 4

typedef struct {
    cd_an *w;
    const cd_an_node *n;
    int32_t k;
    int32_t stay[MOST_LOOPS]; /* loops around that stay loops, innermost first */
    uint32_t n_stay;
    int32_t vector;        /* variable, -1 */
    int64_t lanes, extent; /* of a register, of the vector loop */
    double chance;         /* that conditions around hold */
    double copies;         /* turns of the loops that are written out */
    double turns;          /* executions of the unrolled body */
    cd_an_value value;
    /* sums over the accesses, of the whole program */
    double unit, same, strided, store_unit, store_strided, spills;
    /* vectors that stay in registers over turns of the innermost loop */
    double live, live_read, accumulators;
} statement;

typedef struct {
    double serial, total;
    double region[64], chunks[64];
    int32_t var[64];
    uint32_t n;
    double main_flop;
} work;

/* ---- loops around ---- */

static void look_around(statement *s) {
    const cd_an *w = s->w;
    double all = 1;
    s->vector = -1;
    s->copies = 1;
    for (int32_t p = s->n->parent; p > 0; p = w->node[p].parent) {
        const cd_an_node *l = &w->node[p];
        all *= l->extent;
        if (w->var[l->var].vector && (s->vector < 0 || s->vector == l->var)) s->vector = l->var;
        else if (l->copied) s->copies *= l->extent;
        else if (s->n_stay < MOST_LOOPS) s->stay[s->n_stay++] = p;
    }
    s->extent = s->vector < 0 ? 1 : w->var[s->vector].extent;
    s->chance = all > 0 ? s->n->runs / all : 0;
    s->turns = s->n->runs / s->copies / (double)(s->extent > 0 ? s->extent : 1);
}

/* Instructions for the lanes of one vector: kind of the access along the vector loop. */
typedef struct {
    double unit, same, strided;
} lanes;

static lanes lanes_of(const statement *s, const cd_an_access *a) {
    if (s->vector < 0) return (lanes){.same = 1};
    const cd_an_var *v = &s->w->var[s->vector];
    int64_t run = 1, step = a->elem; /* neighbours from the innermost digit on */
    double others = 1;
    const int32_t inner = cd_an_innermost(s->w, s->vector);
    const bool same = !cd_an_stride(a, inner);
    for (int32_t p = inner; p >= v->node; p--) {
        const int64_t stride = cd_an_stride(a, p), n = llround(ceil(s->w->node[p].extent));
        if (others <= 1 && (same ? !stride : stride == step)) {
            run *= n;
            step *= n;
        } else {
            others *= (double)n;
        }
    }
    if (same) return (lanes){.same = others};
    if (run > 1) return (lanes){.unit = others * (double)cd_an_pieces(run, s->lanes)};
    const int64_t step_in = cd_an_stride(a, inner);
    if (v->n_digit == 1 && step_in <= GROUP * a->elem)
        return (lanes){.unit = 2.0 * (double)step_in / a->elem *
                               (double)cd_an_pieces(s->extent, s->lanes)};
    return (lanes){.strided = (double)s->extent};
}

/* Executions of an access's unrolled set: outside of all loops that do not move it. *stays: outside
 * of the innermost one. */
static double times_of(const statement *s, const cd_an_access *a, bool *stays) {
    uint32_t i = 0;
    while (i < s->n_stay && !cd_an_stride(a, s->stay[i])) i++;
    *stays = i > 0;
    if (i == s->n_stay) return 1;
    const cd_an_node *l = &s->w->node[s->stay[i]];
    /* the loop is turned for a vector at a time */
    const bool within = s->vector >= 0 && s->w->var[s->vector].node < s->stay[i];
    return l->runs * l->extent * s->chance / (within ? (double)s->extent : 1);
}

static double block_of(const statement *s, const cd_an_access *a) {
    double n = 1;
    for (int32_t p = s->n->parent; p > 0; p = s->w->node[p].parent)
        if (s->w->node[p].copied && s->w->node[p].var != s->vector && cd_an_stride(a, p))
            n *= s->w->node[p].extent;
    return n;
}

/* One element of a buffer that is new in every turn of the innermost loop. */
static bool in_register(const statement *s, const cd_an_access *a) {
    const int32_t loop = s->vector >= 0 ? cd_an_innermost(s->w, s->vector)
                         : s->n_stay    ? s->stay[0]
                                        : 0;
    return loop && !cd_an_stride(a, loop) && cd_an_private(s->w, a, loop) &&
           s->w->tensor[a->tensor].bytes <= 16 * a->elem;
}

static void access(statement *s, const cd_an_access *a) {
    bool stays;
    if (in_register(s, a)) {
        if (a->write) s->accumulators = block_of(s, a) * (double)cd_an_pieces(s->extent, s->lanes);
        return;
    }
    const double times = times_of(s, a, &stays), n = block_of(s, a);
    const lanes l = lanes_of(s, a);
    const double vectors =
        n * (l.unit + l.same + (l.strided > 0 ? (double)cd_an_pieces(s->extent, s->lanes) : 0));
    if (a->write) {
        s->store_unit += times * n * (l.unit + l.same);
        s->store_strided += times * n * l.strided;
        s->accumulators = vectors;
        if (stays) s->live += vectors;
        return;
    }
    const double done = times * n * (double)a->chance;
    s->unit += done * l.unit;
    s->same += done * l.same;
    s->strided += done * l.strided;
    if (!stays || a->copy) return;
    s->live += vectors;
    s->live_read += vectors;
}

static void registers(statement *s) {
    const double have = (s->w->nest->vector_bytes >= 64 ? 32 : 16) - REGISTERS_SPARE;
    const double over = s->live - have;
    if (over > 0)
        s->spills = s->turns * (fmin(over, s->live_read) + 2 * fmax(0, over - s->live_read));
}

/* ---- cycles ---- */

/* Sums wait for themselves: on the innermost loop if it does not move the result, else through
 * memory on the next one. */
static double chain(const statement *s) {
    const cd_an_access *store = &s->w->acc[s->n->acc0];
    const bool sums = s->n->acc1 > s->n->acc0 + 1 && s->w->acc[s->n->acc0 + 1].copy;
    double row = s->copies; /* sums into one element within the body */
    bool reduced = false;
    for (uint32_t i = s->n->acc0 + 1; i < s->n->acc1; i++) reduced |= s->w->acc[i].copy;
    if (!sums && !reduced) return 0;
    row /= block_of(s, store);
    if (!s->n_stay) return SUM_CYCLES * row * s->chance;
    if (!cd_an_stride(store, s->stay[0])) return SUM_CYCLES * row * s->turns;
    if (row > 1) return SUM_CYCLES * row * s->turns / fmax(1, AHEAD / (4 * s->copies));
    if (s->n_stay > 1 && !cd_an_stride(store, s->stay[1]))
        return MEMORY_SUM_CYCLES * s->turns / fmax(1, s->w->node[s->stay[0]].extent);
    return 0;
}

static double overhead(const statement *s) {
    double n = 0;
    for (uint32_t i = 0; i < s->w->n_division; i++) {
        const cd_an_division *d = &s->w->division[i];
        if (d->store != s->n->ast) continue;
        const cd_an_node *l = &s->w->node[cd_an_innermost(s->w, d->var)];
        if (l->copied || s->w->var[d->var].vector) continue;
        n += l->runs * l->extent;
    }
    return n;
}

typedef struct {
    double arithmetic, port, move, issue, chain, calls, all;
} cycles;

static cycles cycles_of(const statement *s, float *out) {
    const cd_an_value *v = &s->value;
    const double pieces = s->vector < 0 ? 1 : (double)cd_an_pieces(s->extent, s->lanes);
    const double bodies = s->turns * s->copies, elements = s->n->runs;
    const double simple = v->adds + v->muls - v->fused + v->others;
    cycles c = {.arithmetic = simple * pieces * bodies};
    const double more = (2.0 * v->selects + v->ints + v->casts) * pieces * bodies;
    const double divisions = overhead(s);
    const double branches = v->conditions * (s->vector < 0 ? elements : bodies * pieces);
    const double loads = s->unit + s->same + s->strided, stores = s->store_unit + s->store_strided;
    c.port = (c.arithmetic + more) / PORTS;
    c.move = fmax((loads + s->spills) / LOAD_PORTS, stores + s->spills / 2);
    /* lanes one by one take two */
    const double moves = loads + stores + s->spills + s->strided + s->store_strided;
    const double instructions =
        c.arithmetic + more + moves + branches + DIVISION_INSTRUCTIONS * divisions;
    c.issue = instructions / ISSUE;
    c.chain = chain(s);
    c.calls = elements * (v->divides * (s->vector < 0 ? DIVIDE_SCALAR : DIVIDE_VECTOR) +
                          v->exps * EXP_CYCLES + (v->tanhs + v->calls) * CALL_CYCLES);
    c.all = fmax(fmax(c.port, c.move), fmax(c.issue, c.chain)) + c.calls;
    if (c.chain < c.all - c.calls) c.chain = 0;
    out[CD_FACT_DIVMODS] += (float)divisions;
    out[CD_FACT_BRANCHES] += (float)branches;
    out[CD_FACT_INSTRUCTIONS] += (float)instructions;
    return c;
}

/* ---- facts ---- */

static void put_operations(const statement *s, const cycles *c, float *out) {
    const cd_an_value *v = &s->value;
    const double n = s->n->runs, whole = (double)(s->extent / s->lanes),
                 pieces = (double)cd_an_pieces(s->extent, s->lanes);
    out[CD_FACT_FLOP] += (float)(n * (v->adds + v->muls + v->others));
    out[CD_FACT_FLOP_FUSED] += (float)(n * 2 * v->fused);
    if (s->vector < 0) out[CD_FACT_SCALAR_OPS] += (float)c->arithmetic;
    else {
        out[CD_FACT_VECTOR_OPS] += (float)(c->arithmetic * whole / pieces);
        const bool found = s->w->node[cd_an_innermost(s->w, s->vector)].loop != CD_LOOP_VECTORIZED;
        if (found) out[CD_FACT_AUTO_OPS] += (float)c->arithmetic;
        if (found && s->n_stay && s->stay[0] > s->w->var[s->vector].node)
            out[CD_FACT_OUTER_OPS] += (float)c->arithmetic;
        out[CD_FACT_PART_OPS] += (float)(c->arithmetic * (pieces - whole) / pieces);
    }
    out[CD_FACT_LOADS_UNIT] += (float)s->unit;
    out[CD_FACT_LOADS_SAME] += (float)s->same;
    out[CD_FACT_LOADS_STRIDED] += (float)s->strided;
    out[CD_FACT_STORES_UNIT] += (float)s->store_unit;
    out[CD_FACT_STORES_STRIDED] += (float)s->store_strided;
    out[CD_FACT_SPILLS] += (float)s->spills;
    const double bodies = s->turns * s->copies * (s->vector < 0 ? 1 : pieces);
    out[CD_FACT_SELECTS] += (float)(v->selects * bodies);
    out[CD_FACT_INT_OPS] += (float)(v->ints * bodies);
    out[CD_FACT_CASTS] += (float)(v->casts * bodies);
    out[CD_FACT_CALLS_DIVIDE] += (float)(v->divides * n);
    out[CD_FACT_CALLS_EXP] += (float)(v->exps * n);
    out[CD_FACT_CALLS_TANH] += (float)(v->tanhs * n);
    out[CD_FACT_CALLS_OTHER] += (float)(v->calls * n);
    if (!v->loads) out[CD_FACT_INIT_STORES] += (float)(s->store_unit + s->store_strided);
    if (v->plain) out[CD_FACT_COPY_STORES] += (float)(s->store_unit + s->store_strided);
    for (uint32_t i = s->n->acc0; i < s->n->acc1; i++)
        if (s->w->acc[i].gather) out[CD_FACT_GATHERED] += (float)n;
}

static void put_cycles(const cycles *c, float *out) {
    out[CD_FACT_CORE_CYCLES] += (float)c->all;
    out[CD_FACT_CHAIN_CYCLES] += (float)c->chain;
    out[CD_FACT_PORT_CYCLES] += (float)c->port;
    out[CD_FACT_MOVE_CYCLES] += (float)c->move;
    out[CD_FACT_ISSUE_CYCLES] += (float)c->issue;
    out[CD_FACT_CALL_CYCLES] += (float)c->calls;
}

/* The statement with most operations, or of programs without any the one that is executed most. */
static void put_main(const statement *s, const cycles *c, work *t, float *out) {
    const double flop = s->n->runs * (s->value.adds + s->value.muls + s->value.others + 1e-3);
    if (flop <= t->main_flop) return;
    const double body = c->arithmetic / fmax(s->turns, 1e-30);
    t->main_flop = flop;
    out[CD_FACT_MAIN_ACCUMULATORS] = (float)s->accumulators;
    out[CD_FACT_MAIN_LIVE] = (float)s->live;
    out[CD_FACT_MAIN_BODY] = (float)body;
    out[CD_FACT_MAIN_TURNS] = s->n_stay ? (float)s->w->node[s->stay[0]].extent : 1;
    out[CD_FACT_MAIN_VECTOR] = (float)s->extent;
    out[CD_FACT_MAIN_LOADS] =
        (float)((s->unit + s->same + s->strided + s->store_unit + s->store_strided) /
                fmax(c->arithmetic, 1));
    out[CD_FACT_MAIN_SHARE] = (float)flop;
}

/* Cycles go to the outermost parallel loop around. */
static void put_work(const statement *s, double all, work *t) {
    int32_t var = -1;
    for (int32_t p = s->n->parent; p > 0; p = s->w->node[p].parent)
        if (s->w->node[p].loop == CD_LOOP_PARALLEL) var = s->w->node[p].var;
    t->total += all;
    uint32_t i = 0;
    while (i < t->n && t->var[i] != var) i++;
    if (var < 0 || i == sizeof t->var / sizeof *t->var) {
        t->serial += all;
        return;
    }
    if (i == t->n) {
        t->var[t->n] = var;
        t->chunks[t->n] = (double)s->w->var[var].extent;
        t->region[t->n++] = 0;
    }
    t->region[i] += all;
}

static void one(cd_an *w, int32_t k, work *t) {
    statement s = {.w = w, .n = &w->node[k], .k = k};
    float *out = w->out;
    s.lanes = w->nest->vector_bytes / (w->tensor[w->acc[s.n->acc0].tensor].elem);
    if (s.lanes < 1) s.lanes = 1;
    look_around(&s);
    cd_facts_value_of(w, w->ast->node[s.n->ast].e,
                      s.n->parent > 0 ? w->var[w->node[s.n->parent].var].e : NULL, &s.value);
    for (uint32_t i = s.n->acc0; i < s.n->acc1; i++) access(&s, &w->acc[i]);
    registers(&s);
    const cycles c = cycles_of(&s, out);
    put_operations(&s, &c, out);
    put_cycles(&c, out);
    put_main(&s, &c, t, out);
    put_work(&s, c.all, t);
    out[CD_FACT_STATEMENTS]++;
    out[CD_FACT_CODE] += (float)((c.arithmetic / fmax(s.turns, 1e-30) + s.accumulators) + 4);
}

/* Lanes of the vector loop around, 1: there is none. */
static double lanes_around(const cd_an *w, int32_t k) {
    for (int32_t p = w->node[k].parent; p > 0; p = w->node[p].parent)
        if (cd_an_is_vector(w, p)) return fmin(w->nest->vector_bytes / 4.0, w->node[p].extent);
    return 1;
}

/* Turns of loops: of a vector loop that is long one for every four vectors. */
static void put_loops(cd_an *w, float *out) {
    double turns = 0;
    for (int32_t k = 1; k < w->n_node; k++) {
        const cd_an_node *n = &w->node[k];
        if (n->kind != CD_AN_LOOP || !n->last_digit || n->copied) continue;
        double each = n->extent;
        const cd_an_var *v = &w->var[n->var];
        if (v->vector)
            each = floor((double)v->extent / (w->nest->vector_bytes / 4.0) / 4) /
                   ((double)v->extent / n->extent);
        const double at_once = lanes_around(w, k);
        turns += n->runs * each / at_once;
        out[CD_FACT_LOOP_ENTRIES] += (float)(w->node[v->node].runs / at_once);
    }
    out[CD_FACT_LOOP_TURNS] = (float)turns;
    const double instructions = TURN_INSTRUCTIONS * (turns + (double)out[CD_FACT_LOOP_ENTRIES]);
    out[CD_FACT_INSTRUCTIONS] += (float)instructions;
    out[CD_FACT_ISSUE_CYCLES] += (float)(instructions / ISSUE);
    out[CD_FACT_CORE_CYCLES] += (float)(instructions / ISSUE);
}

/* The parallel loops with most cycles: the time on any number of threads follows from them
 * (analytic_gpu_seconds.c). */
static void put_regions(work *t, float *out) {
    for (int k = 0; k < CD_N_FACT_REGION && t->total > 0; k++) {
        uint32_t most = 0;
        for (uint32_t r = 1; r < t->n; r++)
            if (t->region[r] > t->region[most]) most = r;
        if (!t->n || !(t->region[most] > 0)) return;
        out[CD_FACT_REGION_1_CHUNKS + 2 * k] = (float)t->chunks[most];
        out[CD_FACT_REGION_1_SHARE + 2 * k] = (float)(t->region[most] / t->total);
        t->region[most] = 0;
    }
}

static void put_threads(const cd_an *w, const work *t, float *out) {
    static const struct {
        int threads, fact;
    } on[] = {{2, CD_FACT_SHARE_2},   {4, CD_FACT_SHARE_4},   {8, CD_FACT_SHARE_8},
              {16, CD_FACT_SHARE_16}, {32, CD_FACT_SHARE_32}, {64, CD_FACT_SHARE_64}};
    for (size_t i = 0; i < sizeof on / sizeof *on; i++) {
        double s = t->serial;
        for (uint32_t r = 0; r < t->n; r++)
            s += t->region[r] * ceil(t->chunks[r] / on[i].threads) / t->chunks[r];
        out[on[i].fact] = t->total > 0 ? (float)(s / t->total) : 1;
    }
    double least = INFINITY;
    for (uint32_t r = 0; r < t->n; r++) {
        least = fmin(least, t->chunks[r]);
        out[CD_FACT_REGIONS] += (float)w->node[w->var[t->var[r]].node].runs;
    }
    out[CD_FACT_CHUNKS_LEAST] = t->n ? (float)least : 0;
    out[CD_FACT_SERIAL_SHARE] = t->total > 0 ? (float)(t->serial / t->total) : 1;
}

void cd_facts_core_count(cd_an *w) {
    work t = {0};
    w->out[CD_FACT_WIDTH] = (float)w->nest->vector_bytes;
    for (int32_t k = 1; k < w->n_node; k++)
        if (w->node[k].kind == CD_AN_STORE) one(w, k, &t);
    put_loops(w, w->out);
    put_threads(w, &t, w->out);
    put_regions(&t, w->out);
    const double flop = (double)w->out[CD_FACT_FLOP];
    w->out[CD_FACT_MAIN_SHARE] =
        flop > 0 ? fminf(1, (float)((double)w->out[CD_FACT_MAIN_SHARE] / flop)) : 1;
}
