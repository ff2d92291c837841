/* What a thread executes of one statement, and what its accesses cost the block.
 *
 *   for rc in 0..16            stays a loop
 *     unrolled ff in 0..4      16 accumulators in registers; 4 loads of X and 4 of W, which stay in
 *                              registers meanwhile
 *       unrolled xx in 0..4
 *         C.local[ff, xx] += X.shared[rc, xx] * W.shared[ff, rc] */
#include <math.h>
#include <stdlib.h>

#include "features/analytic/analytic_internal.h"

#define WIDEST    16   /* bytes of a vector load */
#define MOST_LIVE 64.0 /* operands that a compiler keeps at once */
/* iterations that a compiler puts side by side, so that their loads do not wait for each other */
#define AHEAD 4.0
/* Instructions. */
#define DIVIDE 8.0
#define EXP    8.0
#define TANH   20.0
#define CALL   40.0
#define DIVMOD 4.0

typedef struct {
    cd_an_gpu *g;
    const cd_ast_node *n;
    int32_t k;
    uint32_t raw0, raw1;
    double chance;           /* that conditions hold */
    double serial, vthreads; /* iterations of loops; copies for virtual threads */
    double runs;             /* executions of a thread */
    double copies;           /* of them in the unrolled body */
    int32_t home;            /* of what is stored */
    double instructions;     /* of a thread */
    double live;             /* values that the body loads and keeps */
} statement;

static double *fact(const statement *s, int k) { return &s->g->fact[k]; }
static double all_threads(const statement *s) { return s->g->blocks * s->g->threads; }

/* ---- loops around ---- */

/* Does the access move with the loop? */
static bool facts_gpu_moves(const cd_an_gpu *g, const cd_an_raw *r, const cd_an_gpu_loop *l) {
    if (l->var < 0) return false;
    if (!r->inexact && !r->gather && !r->copy) {
        for (uint32_t i = 0; i < r->n; i++)
            if (r->t[i].var == l->var) return true;
        return false;
    }
    const uint32_t rank = g->w->tensor[r->tensor].rank;
    for (uint32_t d = 0; d < rank; d++)
        if (cd_expr_uses(r->x[d], l->e)) return true;
    return false;
}

/* Elements along the loop. */
static double distinct(const cd_an_raw *r, const cd_an_gpu_loop *l) {
    double n = 1;
    if (r->inexact || r->gather) return (double)l->extent;
    for (uint32_t i = 0; i < r->n; i++)
        if (r->t[i].var == l->var) n *= (double)r->t[i].n;
    return fmin(n, (double)l->extent);
}

static bool uses(const statement *s, const cd_expr *var) {
    for (uint32_t i = 0; i < s->n->n; i++)
        if (cd_expr_uses(s->n->x[i], var)) return true;
    return cd_expr_uses(s->n->e, var);
}

static bool is_copied(const cd_an_gpu_loop *l) {
    return l->copied || l->loop == CD_LOOP_VECTORIZED;
}

/* A statement that no virtual thread changes is done once for all of them. */
static void look_around(statement *s) {
    const cd_an_gpu *g = s->g;
    s->serial = s->vthreads = s->copies = 1;
    for (uint32_t i = 0; i < g->n_path; i++) {
        const cd_an_gpu_loop *l = &g->path[i];
        if (l->axis && !cd_an_gpu_is_vthread(l->axis)) continue;
        const double extent = (double)l->extent;
        if (l->axis) {
            if (!uses(s, l->e)) continue;
            s->vthreads *= extent;
            s->copies *= extent;
        } else {
            s->serial *= extent;
            if (is_copied(l)) s->copies *= extent;
        }
    }
    s->runs = s->serial * s->vthreads * s->chance;
}

/* Chance that all conditions hold: those of the same loops bound the same thing, the least of them
 * counts; others are independent. */
static double chance(const cd_an_gpu *g) {
    double all = 1, one[CD_GPU_DEEP];
    for (uint32_t i = 0; i < g->n_cond; i++) {
        bool alone = true;
        one[i] = cd_facts_affine_chance(g->w, g->cond[i]);
        for (uint32_t k = 0; k < i && alone; k++)
            for (uint32_t l = 0; l < g->n_path && alone; l++)
                if (g->path[l].var >= 0 && cd_expr_uses(g->cond[i], g->path[l].e) &&
                    cd_expr_uses(g->cond[k], g->path[l].e)) {
                    alone = false;
                    if (one[i] < one[k]) all *= one[i] / one[k];
                    one[i] = fmin(one[i], one[k]);
                }
        if (alone) all *= one[i];
    }
    return all;
}

/* ---- accesses ---- */

/* How often a thread executes an access, conditions apart: an unrolled body loads an element once,
 * and loops that do not move it keep it in a register, up to where it or what is stored is made
 * anew. *live: elements that a step of the sums needs at once. */
static double executions(const statement *s, const cd_an_raw *r, double *live) {
    const cd_an_gpu *g = s->g;
    const int32_t home =
        g->w->tensor[r->tensor].home > s->home ? g->w->tensor[r->tensor].home : s->home;
    double times = 1, body = 1;
    bool stays = false;
    *live = 1;
    for (uint32_t i = g->n_path; i-- > 0;) {
        const cd_an_gpu_loop *l = &g->path[i];
        if (l->var < 0 || (l->axis && !cd_an_gpu_is_vthread(l->axis))) continue;
        const bool moves = facts_gpu_moves(g, r, l), anew = l->ast < home;
        if (is_copied(l) || l->axis) {
            if (moves) body *= distinct(r, l);
            if (moves && facts_gpu_moves(g, &g->w->raw[s->raw0], l)) *live *= distinct(r, l);
            if (!moves && anew && !l->axis) times *= (double)l->extent;
            continue;
        }
        stays |= moves || anew;
        if (stays) times *= (double)l->extent;
    }
    return times * body;
}

static void put_global(const statement *s, bool load, double runs, double instructions,
                       const cd_an_gpu_touch *t) {
    const cd_an_gpu *g = s->g;
    const double groups = instructions * g->groups * g->blocks, all = all_threads(s) * t->active;
    *fact(s, load ? CD_GPU_FACT_GLOBAL_LOADS : CD_GPU_FACT_GLOBAL_STORES) += runs * all;
    *fact(s, load ? CD_GPU_FACT_LOAD_INSTRUCTIONS : CD_GPU_FACT_STORE_INSTRUCTIONS) +=
        instructions * all;
    *fact(s, load ? CD_GPU_FACT_LOAD_SECTORS_32 : CD_GPU_FACT_STORE_SECTORS_32) +=
        groups * t->sectors_32;
    *fact(s, load ? CD_GPU_FACT_LOAD_SECTORS_64 : CD_GPU_FACT_STORE_SECTORS_64) +=
        groups * t->sectors_64;
    *fact(s, CD_GPU_FACT_ACTIVE) += t->active * instructions * all_threads(s);
    s->g->lanes += instructions * all_threads(s);
    if (load) *fact(s, CD_GPU_FACT_LOADS_AT_ONCE) += instructions * t->active;
}

/* Turns of the loops around what is stored. */
static double steps(const statement *s) {
    double n = 1;
    for (uint32_t i = 0; i < s->g->n_path; i++)
        if (!s->g->path[i].axis && s->g->path[i].ast < s->home) n *= (double)s->g->path[i].extent;
    return n;
}

/* No more than every access of the blocks is a sector of its own, and no more than smaller groups
 * load: what is approximated may say so. */
static void put_sectors(const statement *s, const cd_an_raw *r, bool load, double instructions,
                        const cd_an_gpu_touch *t) {
    cd_an_gpu *g = s->g;
    const double most = instructions * g->groups * t->sectors_32, turns = steps(s);
    double *all = load ? &g->loaded[r->tensor] : &g->stored[r->tensor], group = (double)INFINITY,
           step = (double)INFINITY;
    for (int i = 0; load && i < CD_N_GPU_FACT_GROUP; i++) {
        const double n = (double)(1 << (2 * i)), some = fmin(n, g->blocks),
                     groups = g->blocks / some;
        const bool all_before = i && n >= 4 * g->blocks; /* the last one had all blocks */
        if (!all_before)
            group = fmin(group, fmin(cd_facts_gpu_sectors(g, r, some, -1), some * most) * groups);
        *fact(s, CD_GPU_FACT_GROUP_1 + i) += group;
        if (i % 2) continue;
        if (turns <= 1) step = group;
        else
            step = fmin(step, fmax(group, fmin(turns * cd_facts_gpu_sectors(g, r, some, s->home),
                                               some * most) *
                                              groups));
        *fact(s, CD_GPU_FACT_STEP_1 + i / 2) += step;
    }
    *all += fmin(fmin(group, cd_facts_gpu_sectors(g, r, g->blocks, -1)), g->blocks * most);
}

static void put_shared(const statement *s, bool load, double instructions,
                       const cd_an_gpu_touch *t) {
    const double groups = instructions * s->g->groups * s->g->blocks;
    *fact(s, load ? CD_GPU_FACT_SHARED_LOADS : CD_GPU_FACT_SHARED_STORES) +=
        instructions * all_threads(s) * t->active;
    *fact(s, load ? CD_GPU_FACT_SHARED_LOAD_WAVES_32 : CD_GPU_FACT_SHARED_STORE_WAVES_32) +=
        groups * t->waves_32;
    *fact(s, load ? CD_GPU_FACT_SHARED_LOAD_WAVES_64 : CD_GPU_FACT_SHARED_STORE_WAVES_64) +=
        groups * t->waves_64;
}

/* Neighbours in memory along an unrolled loop, of which a load takes 4, or 2, where all other steps
 * keep them aligned. */
static double wide(const statement *s, const cd_an_raw *r) {
    const int64_t elem = s->g->w->tensor[r->tensor].elem;
    int64_t run = 1;
    for (uint32_t k = 0; k < r->n && !r->inexact && !r->gather; k++)
        for (uint32_t i = 0; i < s->g->n_path; i++)
            if (s->g->path[i].copied && s->g->path[i].var == r->t[k].var && r->t[k].k == elem)
                run = r->t[k].n;
    for (int64_t q = WIDEST / elem; q > 1; q /= 2) {
        bool aligned = run % q == 0 && r->c % (q * elem) == 0;
        for (uint32_t k = 0; k < r->n && aligned; k++)
            aligned = r->t[k].k == elem || r->t[k].k % (q * elem) == 0;
        if (aligned) return (double)q;
    }
    return 1;
}

/* Tiles that a loop indexes cannot be registers. */
static void put_local(statement *s, const cd_an_raw *r) {
    const cd_an_gpu *g = s->g;
    for (uint32_t i = 0; i < g->n_path; i++) {
        const cd_an_gpu_loop *l = &g->path[i];
        if (l->axis || is_copied(l) || l->ast < g->w->tensor[r->tensor].home ||
            !facts_gpu_moves(g, r, l))
            continue;
        *fact(s, CD_GPU_FACT_LOCAL_ACCESSES) += s->runs * (double)r->chance * all_threads(s);
        s->instructions += s->runs * (double)r->chance;
        return;
    }
}

/* The first access is the store; a copy is a load from where it goes. */
static void access(statement *s, const cd_an_raw *r) {
    cd_an_gpu *g = s->g;
    const bool load = !r->write || r->copy;
    const cd_an_raw *at = r->copy ? &g->w->raw[r->first] : r;
    const cd_an_gpu_place place = (cd_an_gpu_place)g->place[r->tensor];
    cd_an_gpu_touch t;
    double live;
    if (r->gather) *fact(s, CD_GPU_FACT_GATHERED) += s->runs * all_threads(s);
    if (place == CD_GPU_LOCAL) {
        put_local(s, at);
        return;
    }
    const double runs = executions(s, at, &live);
    cd_facts_gpu_probe(g, at, &t);
    double instructions = runs;
    const double q = load && place == CD_GPU_SHARED && !t.neighbours ? wide(s, at) : 1;
    if (q > 1) { /* words of all lanes once, with no conflicts */
        instructions /= q;
        t.waves_32 = fmax(ceil(g->threads / 32) / g->groups, q * t.words_32 / 32);
        t.waves_64 = fmax(1, q * t.words_64 / 32);
    } else if (t.neighbours) {
        const double bytes = (double)cd_facts_gpu_vector(g)->extent * g->w->tensor[r->tensor].elem;
        instructions *= ceil(bytes / WIDEST) / (double)cd_facts_gpu_vector(g)->extent;
    }
    s->instructions += instructions * t.active;
    if (load) s->live += live;
    if (place == CD_GPU_SHARED) {
        put_shared(s, load, instructions, &t);
        if (q > 1) *fact(s, CD_GPU_FACT_SHARED_WIDE) += instructions * all_threads(s) * t.active;
        return;
    }
    put_global(s, load, runs, instructions, &t);
    put_sectors(s, at, load, instructions, &t);
}

/* ---- waiting ---- */

/* Threads wait once in every turn of the loops around what is stored, for all that one such turn
 * loads. */
static void put_waits(const statement *s, bool global, bool shared) {
    cd_an_gpu *g = s->g;
    double turns = 1;
    int32_t at = -1;
    for (uint32_t i = 0; i < g->n_path; i++) {
        const cd_an_gpu_loop *l = &g->path[i];
        if (l->axis || (is_copied(l) && !shared) || (shared && l->ast > s->home)) continue;
        turns *= (double)l->extent;
        at = l->ast;
    }
    if (!shared) turns = ceil(turns / AHEAD);
    if (global && (at < 0 || at != g->wait_at)) *fact(s, CD_GPU_FACT_PHASES) += turns;
    if (global) g->wait_at = at;
    if (!shared || (at >= 0 && at == g->sync_at)) return;
    *fact(s, CD_GPU_FACT_SYNCS) += turns > 1 ? 2 * turns : 1;
    g->sync_at = at;
}

/* Sums into one element follow each other. */
static void put_chain(const statement *s) {
    const cd_an_raw *store = &s->g->w->raw[s->raw0];
    double own = 1;
    bool sums = false;
    for (uint32_t i = s->raw0 + 1; i < s->raw1; i++) sums |= s->g->w->raw[i].copy;
    if (!sums) return;
    for (uint32_t i = 0; i < s->g->n_path; i++) {
        const cd_an_gpu_loop *l = &s->g->path[i];
        if ((!l->axis || cd_an_gpu_is_vthread(l->axis)) && facts_gpu_moves(s->g, store, l))
            own *= distinct(store, l);
    }
    *fact(s, CD_GPU_FACT_CHAIN) += s->runs / own;
}

/* ---- work ---- */

static double divmods(const statement *s) {
    const cd_an *w = s->g->w;
    double all = 0;
    for (uint32_t i = 0; i < w->n_division; i++) {
        double n = 1;
        if (w->division[i].store != s->k) continue;
        for (uint32_t l = 0; l < s->g->n_path; l++)
            if (!s->g->path[l].axis && s->g->path[l].var >= 0 &&
                cd_expr_uses(w->division[i].e, s->g->path[l].e))
                n *= (double)s->g->path[l].extent;
        all += n;
    }
    return all;
}

static void put_work(statement *s) {
    cd_an_value v;
    const double all = s->runs * all_threads(s), div = divmods(s) * s->chance;
    cd_facts_value_of(s->g->w, s->n->e, NULL, &v);
    const double fp = v.adds + v.muls - v.fused + v.others;
    const double each = fp + v.ints + v.casts + 2 * v.selects + 2 * (v.conditions + s->g->n_cond) +
                        DIVIDE * v.divides + EXP * v.exps + TANH * v.tanhs + CALL * v.calls;
    s->instructions += s->runs * each + DIVMOD * div;
    *fact(s, CD_GPU_FACT_FLOP) += all * (v.adds + v.muls + v.others);
    *fact(s, CD_GPU_FACT_FLOP_FUSED) += all * 2 * v.fused;
    *fact(s, CD_GPU_FACT_CALLS_DIVIDE) += all * v.divides;
    *fact(s, CD_GPU_FACT_CALLS_EXP) += all * v.exps;
    *fact(s, CD_GPU_FACT_CALLS_TANH) += all * v.tanhs;
    *fact(s, CD_GPU_FACT_CALLS_OTHER) += all * v.calls;
    *fact(s, CD_GPU_FACT_INT_OPS) += all * (v.ints + v.casts);
    *fact(s, CD_GPU_FACT_SELECTS) += all * v.selects;
    *fact(s, CD_GPU_FACT_BRANCHES) += all * (v.conditions + s->g->n_cond);
    *fact(s, CD_GPU_FACT_FP_INSTRUCTIONS) += all * fp;
    *fact(s, CD_GPU_FACT_DIVMODS) += div * all_threads(s);
}

void cd_facts_gpu_statement(cd_an_gpu *g, int32_t k, uint32_t raw0, uint32_t raw1) {
    statement s = {.g = g, .n = &g->w->ast->node[k], .k = k, .raw0 = raw0, .raw1 = raw1};
    bool global = false;
    if (raw0 == raw1) return;
    const uint32_t to = g->w->raw[raw0].tensor;
    s.home = g->w->tensor[to].home;
    s.chance = chance(g);
    look_around(&s);
    put_work(&s);
    for (uint32_t i = raw0; i < raw1; i++) {
        access(&s, &g->w->raw[i]);
        global |= i > raw0 && g->place[g->w->raw[i].tensor] == CD_GPU_GLOBAL;
    }
    put_waits(&s, global, g->place[to] == CD_GPU_SHARED);
    put_chain(&s);
    g->fact[CD_GPU_FACT_THREAD_INSTRUCTIONS] += s.instructions;
    g->fact[CD_GPU_FACT_CODE] += s.instructions / fmax(1, s.serial * s.vthreads / s.copies);
    g->fact[CD_GPU_FACT_REGISTERS] = fmax(g->fact[CD_GPU_FACT_REGISTERS], fmin(s.live, MOST_LIVE));
}
