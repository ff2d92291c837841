/* The facts of a GPU program: kernel by kernel, statement by statement, then ratios. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "features/analytic/analytic_internal.h"

/* What blocks that follow each other touch of a tensor: those of a wave run at the same time, and
 * the L2 cache gives them what one of them has loaded.
 *
 *   input[bx // 56 * 4 + .., rc, ..]     16 blocks: bx // 56 is one value, bx % 56 has 16
 *
 * An address that is a sum of digits has its distinct sectors in closed form (facts_value.c), block
 * digits cut at the number of blocks. Of another one every dimension has a width: how many values
 * its expression can take. */

/* Blocks between two values of the axis. */
static double weight(const cd_an_gpu *g, uint8_t axis) {
    double w = 1;
    if (axis == CD_AST_TAG_BX + 1) return w;
    w *= (double)g->extent[CD_AST_TAG_BX];
    if (axis == CD_AST_TAG_BZ + 1) w *= (double)g->extent[CD_AST_TAG_BY];
    return w;
}

/* A loop, no axis, outside of the node. */
static bool stands(const cd_an_gpu *g, int32_t var, int32_t home) {
    for (uint32_t l = 0; l < g->n_path; l++)
        if (g->path[l].var == var) return !g->path[l].axis && g->path[l].ast < home;
    return false;
}

/* ---- digits ---- */

static void put(cd_an_access *a, int64_t stride, int64_t n, bool moves, int32_t dim) {
    if (n <= 1 || !stride || a->n == CD_AN_TERMS) return;
    if (stride < 0) {
        a->c += cd_an_mul(stride, n - 1);
        stride = -stride;
    }
    uint32_t k = a->n++;
    for (; k > 0 && a->t[k - 1].stride > stride; k--) a->t[k] = a->t[k - 1];
    a->t[k] = (cd_an_term){.stride = stride,
                           .n = n,
                           .reach = cd_an_mul(stride, n - 1),
                           .node = moves,
                           .dim = (uint8_t)dim};
}

static void put_slice(const cd_an_gpu *g, cd_an_access *a, const cd_an_slice *s, double n,
                      int32_t home) {
    const uint8_t axis = g->w->var[s->var].axis;
    if (!cd_an_gpu_is_block(axis)) {
        put(a, s->k, s->n, !stands(g, s->var, home), s->dim);
        return;
    }
    const double part = ceil(n / ((double)s->lo * weight(g, axis)));
    const int64_t within = part < (double)s->n ? (int64_t)fmax(part, 1) : s->n;
    put(a, s->k, within, true, s->dim);
    put(a, cd_an_mul(s->k, within), (s->n + within - 1) / within, false, s->dim);
}

/* ---- widths ---- */

static double width_of_var(const cd_an_gpu *g, const cd_expr *e, double n, int32_t home) {
    const int32_t v = g->w->var_of[e->u.i];
    if (v < 0) return 1;
    const cd_an_var *x = &g->w->var[v];
    if (!cd_an_gpu_is_block(x->axis)) return stands(g, v, home) ? 1 : (double)x->extent;
    return fmin((double)x->extent, fmax(1, n / weight(g, x->axis)));
}

/* Values that the expression takes within n blocks, those between its least and its greatest. */
static double width(const cd_an_gpu *g, const cd_expr *e, double n, int32_t home) {
    if (!(e->flags & CD_EXPR_HAS_VAR)) return 1;
    const double a = e->op == CD_VAR || !e->n ? 1 : width(g, e->a[0], n, home);
    const cd_expr *d = e->n == 2 ? e->a[1] : NULL;
    const double k = d && d->op == CD_INT ? fabs((double)d->u.i) : 0;
    switch ((cd_expr_op)e->op) {
    case CD_VAR: return width_of_var(g, e, n, home);
    case CD_ADD:
    case CD_SUB: return a + width(g, d, n, home) - 1;
    case CD_MUL: return k > 0 ? (a - 1) * k + 1 : a * width(g, d, n, home);
    case CD_DIV:
    case CD_FDIV: return k > 0 ? (a - 1) / k + 1 : a;
    case CD_MOD:
    case CD_FMOD: return k > 0 ? fmin(a, k) : a;
    case CD_MIN:
    case CD_MAX: return fmax(a, width(g, d, n, home));
    case CD_SELECT: return fmax(width(g, e->a[1], n, home), width(g, e->a[2], n, home));
    case CD_CAST: return a;
    default: return (double)CD_AN_MOST; /* anywhere: the extent bounds it */
    }
}

double cd_facts_gpu_sectors(const cd_an_gpu *g, const cd_an_raw *r, double n, int32_t home) {
    const cd_an_tensor *t = &g->w->tensor[r->tensor];
    cd_an_term term[CD_AN_TERMS];
    cd_an_access a = {.elem = t->elem, .c = r->c, .t = term};
    double bytes;
    if (r->inexact || r->gather) {
        a.c = 0;
        for (uint32_t d = 0; d < t->rank; d++)
            put(&a, t->stride[d],
                (int64_t)ceil(fmin(width(g, r->x[d], n, home), (double)t->extent[d])), true,
                (int32_t)d);
    } else {
        for (uint32_t i = 0; i < r->n; i++) put_slice(g, &a, &r->t[i], n, home);
        cd_facts_tree_find_out(t, &a);
    }
    const double all = ceil(t->bytes / CD_GPU_SECTOR),
                 some = cd_facts_lines_count(&a, 1, (int64_t)CD_GPU_SECTOR, &bytes);
    return fmin(some, all);
}

/* Which loops of a GPU program are written out: TVM's rule for auto_unroll_max_step, where a
 * statement has a copy for each virtual thread, then short loops whose inner ones are, as compilers
 * do. */

#define MAX_DEPTH 8 /* TVM's auto_max_depth */

typedef struct {
    /* statements written out; by the compiler too, INFINITY: a loop stays */
    double step, copies;
    int depth, normal;
} count;

static count range_unroll(cd_an_gpu *g, int32_t from, int32_t to, double step, double vthreads);

static count loop(cd_an_gpu *g, int32_t k, double step, double vthreads) {
    const cd_ast_node *n = &g->w->ast->node[k];
    count c = range_unroll(g, k + 1, n->end, step, vthreads);
    const double extent = (double)n->extent;
    if (n->loop == CD_LOOP_VECTORIZED) return c;
    const bool serial = n->loop == CD_LOOP_SERIAL && c.normal == 0 && c.depth <= MAX_DEPTH;
    if ((serial && extent * c.step <= step) || n->loop == CD_LOOP_UNROLLED) {
        c.step *= extent;
        c.depth++;
        g->copied[k] = true;
    } else {
        c.normal++;
        g->copied[k] = extent * c.copies <= CD_GPU_COPIES;
    }
    c.copies = g->copied[k] ? c.copies * extent : (double)INFINITY;
    return c;
}

static count range_unroll(cd_an_gpu *g, int32_t from, int32_t to, double step, double vthreads) {
    count all = {0};
    for (int32_t k = from; k < to;) {
        const cd_ast_node *n = &g->w->ast->node[k];
        if (n->dead) {
            k++;
            continue;
        }
        count c = {0};
        if (n->kind == CD_AST_STORE) c = (count){.step = vthreads, .copies = 1};
        else if (n->kind == CD_AST_FOR) c = loop(g, k, step, vthreads);
        else if (n->kind == CD_AST_THREAD)
            c = range_unroll(g, k + 1, n->end, step,
                             n->tag == CD_AST_TAG_VTHREAD ? vthreads * (double)n->extent
                                                          : vthreads);
        else
            c = range_unroll(
                g, k + 1, n->end,
                n->kind == CD_AST_ATTR && n->attr == CD_ATTR_UNROLL_STEP ? (double)n->extent : step,
                vthreads);
        all.step += c.step;
        all.copies += c.copies;
        if (c.depth > all.depth) all.depth = c.depth;
        if (c.normal > all.normal) all.normal = c.normal;
        k = n->end;
    }
    return all;
}

/* Which loops are written out: copied. */
static void facts_gpu_unroll(cd_an_gpu *g) { (void)range_unroll(g, 0, g->w->ast->n, 0, 1); }

#define ADDRESS_REGISTERS 16.0
#define TURN              2.0 /* instructions of an iteration */
#define FOLD              4.0 /* instructions of a step in which threads add up */
#define WARP              32.0

typedef enum { OF_SUM, OF_MAIN } whose;

static const uint8_t of[CD_N_GPU_FACTS] = {
#define X(ID, name, of, unit, meaning) OF_##of,
#include "features/analytic/facts_gpu_cols.def"
};

/* ---- storage ---- */

/* Where TVM puts a tensor of no named memory: by the thread axes around it. */
static cd_an_gpu_place place_of(const cd_an *w, const cd_an_tensor *t) {
    const cd_nest_tensor *x = &w->nest->tensor[t->nest];
    bool thread = false, block = false;
    if (t->arg || t->home < 0) return CD_GPU_GLOBAL;
    if (w->ast->node[t->home].kind == CD_AST_ALLOC || !strncmp(x->scope, "local", 5) ||
        !strncmp(x->scope, "warp", 4))
        return CD_GPU_LOCAL;
    if (!strncmp(x->scope, "shared", 6)) return CD_GPU_SHARED;
    if (*x->scope) return CD_GPU_GLOBAL;
    for (int32_t p = w->ast->node[t->home].parent; p >= 0; p = w->ast->node[p].parent) {
        if (w->ast->node[p].kind != CD_AST_THREAD) continue;
        thread |= cd_ast_tag_rank((cd_ast_tag)w->ast->node[p].tag) != 0;
        block |= cd_ast_tag_rank((cd_ast_tag)w->ast->node[p].tag) == 0;
    }
    return thread ? CD_GPU_LOCAL : block ? CD_GPU_SHARED : CD_GPU_GLOBAL;
}

/* A tensor whose place moves with a virtual thread is there for each. */
static double copies(const cd_an_gpu *g, const cd_an_tensor *t) {
    double n = 1;
    for (int32_t p = g->w->ast->node[t->home].parent; p >= 0; p = g->w->ast->node[p].parent) {
        const cd_ast_node *x = &g->w->ast->node[p];
        bool uses = false;
        if (x->kind != CD_AST_THREAD || x->tag != CD_AST_TAG_VTHREAD || x->dead) continue;
        for (uint32_t d = 0; d < t->rank && !uses; d++) uses = cd_expr_uses(t->x[2 * d], x->var);
        if (uses) n *= (double)x->extent;
    }
    return n;
}

static void put_storage(cd_an_gpu *g, int32_t begin, int32_t end) {
    double accumulators = 0;
    for (uint32_t t = 0; t < g->w->n_tensor; t++) {
        const cd_an_tensor *x = &g->w->tensor[t];
        if (x->home < begin || x->home >= end) continue;
        if (g->place[t] == CD_GPU_SHARED)
            g->fact[CD_GPU_FACT_SHARED_BYTES] += x->bytes * copies(g, x);
        if (g->place[t] == CD_GPU_LOCAL) accumulators += ceil(x->bytes / 4) * copies(g, x);
    }
    g->fact[CD_GPU_FACT_ACCUMULATORS] = accumulators;
    g->fact[CD_GPU_FACT_REGISTERS] += accumulators + ADDRESS_REGISTERS;
}

/* ---- nodes ---- */

static cdmpp_status range(cd_an_gpu *g, int32_t from, int32_t to, cdmpp_err *err);

static double turns(const cd_an_gpu *g) {
    double n = 1;
    for (uint32_t i = 0; i < g->n_path; i++)
        if (!g->path[i].axis) n *= (double)g->path[i].extent;
    return n;
}

static cdmpp_status inside(cd_an_gpu *g, int32_t k, cdmpp_err *err) {
    const cd_ast_node *n = &g->w->ast->node[k];
    const uint32_t vector_cond = g->vector_cond;
    if (g->n_path == CD_GPU_DEEP)
        return CD_FAIL(err, EUNSUPPORTED, "facts: more than %d loops around each other",
                       CD_GPU_DEEP);
    cd_an_gpu_loop *l = &g->path[g->n_path++];
    *l = (cd_an_gpu_loop){.ast = k,
                          .var = g->w->var_of[n->var->u.i],
                          .e = n->var,
                          .loop = n->loop,
                          .copied = g->copied[k],
                          .extent = n->extent,
                          .axis = (uint8_t)(n->kind == CD_AST_THREAD ? n->tag + 1 : 0)};
    if (n->extent == 1) l->var = -1;
    if (n->loop == CD_LOOP_VECTORIZED && !l->axis) g->vector_cond = g->n_cond;
    CD_TRY(range(g, k + 1, n->end, err));
    if (!l->axis && !l->copied && n->loop != CD_LOOP_VECTORIZED) {
        const double all = turns(g);
        g->fact[CD_GPU_FACT_LOOP_TURNS] += all * g->blocks * g->threads;
        g->fact[CD_GPU_FACT_THREAD_INSTRUCTIONS] += TURN * all;
    }
    g->n_path--;
    g->vector_cond = vector_cond;
    return CDMPP_OK;
}

static cdmpp_status branch(cd_an_gpu *g, int32_t k, cdmpp_err *err) {
    const cd_ast_node *n = &g->w->ast->node[k];
    if (g->n_cond == CD_GPU_DEEP)
        return CD_FAIL(err, EUNSUPPORTED, "facts: more than %d conditions around each other",
                       CD_GPU_DEEP);
    g->cond[g->n_cond++] = n->e;
    CD_TRY(range(g, k + 1, n->end, err));
    g->n_cond--;
    return CDMPP_OK;
}

/* Threads of the reduced axes fold their parts, half of them in each step. */
static void fold(cd_an_gpu *g, const cd_ast_node *n) {
    double length = 1, times = turns(g);
    for (uint32_t i = 0; i < n->n; i++) {
        const int32_t v = n->x[i]->op == CD_VAR ? g->w->var_of[n->x[i]->u.i] : -1;
        if (v >= 0 && g->w->var[v].axis) length *= (double)g->w->var[v].extent;
    }
    const double steps = ceil(log2(fmax(length, 1)));
    g->fact[CD_GPU_FACT_FOLDS] += steps * times * g->blocks * g->threads;
    g->fact[CD_GPU_FACT_THREAD_INSTRUCTIONS] += FOLD * steps * times;
    g->fact[CD_GPU_FACT_SYNCS] += length > 1 ? times * (fmax(0, ceil(log2(length / WARP))) + 2) : 0;
}

static cdmpp_status range(cd_an_gpu *g, int32_t from, int32_t to, cdmpp_err *err) {
    for (int32_t k = from; k < to;) {
        const cd_ast_node *n = &g->w->ast->node[k];
        if (n->dead) {
            k++;
            continue;
        }
        if (n->kind == CD_AST_FOR || n->kind == CD_AST_THREAD) CD_TRY(inside(g, k, err));
        else if (n->kind == CD_AST_IF) CD_TRY(branch(g, k, err));
        else if (n->kind == CD_AST_EVAL) fold(g, n);
        else if (n->kind != CD_AST_STORE) CD_TRY(range(g, k + 1, n->end, err));
        else {
            const uint32_t raw = g->raw;
            while (g->raw < g->w->n_raw && g->w->raw[g->raw].store == k) g->raw++;
            g->statement(g, k, raw, g->raw);
        }
        k = n->end;
    }
    return CDMPP_OK;
}

/* ---- kernels ---- */

static void find_axes(cd_an_gpu *g, int32_t begin, int32_t end) {
    for (int t = 0; t < CD_AST_TAG_COUNT; t++) g->extent[t] = 1;
    for (int32_t k = begin; k < end; k++) {
        const cd_ast_node *n = &g->w->ast->node[k];
        if (n->kind != CD_AST_THREAD || n->dead) continue;
        if (n->extent > g->extent[n->tag]) g->extent[n->tag] = n->extent;
    }
    g->blocks = (double)g->extent[CD_AST_TAG_BX] * (double)g->extent[CD_AST_TAG_BY] *
                (double)g->extent[CD_AST_TAG_BZ];
    g->threads = (double)g->extent[CD_AST_TAG_TX] * (double)g->extent[CD_AST_TAG_TY] *
                 (double)g->extent[CD_AST_TAG_TZ];
    g->groups = ceil(g->threads / CD_GPU_LANES);
}

static void put_distinct(cd_an_gpu *g) {
    for (uint32_t t = 0; t < g->w->n_tensor; t++) {
        const cd_an_tensor *x = &g->w->tensor[t];
        const double all = ceil(x->bytes / CD_GPU_SECTOR), loaded = fmin(g->loaded[t], all),
                     stored = fmin(g->stored[t], all);
        g->fact[CD_GPU_FACT_SECTORS_LOADED] += loaded;
        g->fact[CD_GPU_FACT_SECTORS_STORED] += stored;
        if (!x->arg) g->fact[CD_GPU_FACT_SECTORS_SCRATCH] += loaded + stored;
    }
}

static void put_launch(cd_an_gpu *g) {
    double *f = g->fact;
    const double warps = ceil(g->threads / WARP), waves = g->groups;
    f[CD_GPU_FACT_KERNELS] = 1;
    f[CD_GPU_FACT_BLOCKS] = f[CD_GPU_FACT_BLOCKS_ALL] = g->blocks;
    f[CD_GPU_FACT_THREADS] = g->threads;
    f[CD_GPU_FACT_THREADS_ALL] = g->blocks * g->threads;
    f[CD_GPU_FACT_VTHREADS] = (double)g->extent[CD_AST_TAG_VTHREAD];
    f[CD_GPU_FACT_LANES_32] = g->threads / (warps * WARP);
    f[CD_GPU_FACT_LANES_64] = g->threads / (waves * CD_GPU_LANES);
    f[CD_GPU_FACT_INSTRUCTIONS] = f[CD_GPU_FACT_THREAD_INSTRUCTIONS] * g->blocks * g->threads;
    f[CD_GPU_FACT_WARPS_32] = f[CD_GPU_FACT_THREAD_INSTRUCTIONS] * g->blocks * warps;
    f[CD_GPU_FACT_WARPS_64] = f[CD_GPU_FACT_THREAD_INSTRUCTIONS] * g->blocks * waves;
    f[CD_GPU_FACT_SYNCS_ALL] = f[CD_GPU_FACT_SYNCS] * g->blocks;
    if (f[CD_GPU_FACT_PHASES] > 0) f[CD_GPU_FACT_LOADS_AT_ONCE] /= f[CD_GPU_FACT_PHASES];
}

/* What is of the whole program adds up; of the other facts those of the kernel that executes most
 * stay. */
static void merge(cd_an_gpu *g, double *all) {
    const double much = g->fact[CD_GPU_FACT_WARPS_32] + 4 * (g->fact[CD_GPU_FACT_LOAD_SECTORS_32] +
                                                             g->fact[CD_GPU_FACT_STORE_SECTORS_32]);
    const bool is_main = much > g->main;
    g->fact[CD_GPU_FACT_MAIN_SHARE] = g->fact[CD_GPU_FACT_INSTRUCTIONS];
    if (is_main) g->main = much;
    for (int k = 0; k < CD_N_GPU_FACTS; k++)
        if (of[k] == OF_SUM) all[k] += g->fact[k];
        else if (is_main) all[k] = g->fact[k];
}

static cdmpp_status kernel(cd_an_gpu *g, int32_t k, double *all, cdmpp_err *err) {
    const int32_t end = g->w->ast->node[k].end;
    memset(g->fact, 0, sizeof g->fact);
    memset(g->loaded, 0, (g->w->n_tensor + 1) * sizeof *g->loaded);
    memset(g->stored, 0, (g->w->n_tensor + 1) * sizeof *g->stored);
    g->n_path = g->n_cond = g->vector_cond = 0;
    g->wait_at = g->sync_at = -1;
    for (int i = 0; i < CD_GPU_POINTS; i++) g->group[i] = -1;
    find_axes(g, k, end);
    CD_TRY(inside(g, k, err));
    put_storage(g, k, end);
    put_distinct(g);
    put_launch(g);
    merge(g, all);
    return CDMPP_OK;
}

static cdmpp_status kernels(cd_an_gpu *g, double *all, cdmpp_err *err) {
    for (int32_t k = 0; k < g->w->ast->n;) {
        const cd_ast_node *n = &g->w->ast->node[k];
        if (n->dead || n->kind == CD_AST_REALIZE || n->kind == CD_AST_ATTR ||
            n->kind == CD_AST_ALLOC) {
            k++;
            continue;
        }
        if (n->kind != CD_AST_THREAD)
            return CD_FAIL(err, EUNSUPPORTED,
                           "facts: a statement or loop outside of all thread axes, which a GPU "
                           "program has not");
        CD_TRY(kernel(g, k, all, err));
        k = n->end;
    }
    return all[CD_GPU_FACT_KERNELS] > 0
               ? CDMPP_OK
               : CD_FAIL(err, EUNSUPPORTED, "facts: no thread axes, which a GPU program has");
}

/* ---- all ---- */

static double over(double a, double b) { return b > 0 ? a / b : 0; }

static void put_ratios(double *f, double lanes) {
    const double bytes = CD_GPU_SECTOR / 4,
                 shared = f[CD_GPU_FACT_SHARED_LOADS] + f[CD_GPU_FACT_SHARED_STORES];
    f[CD_GPU_FACT_LOAD_SPREAD_32] =
        over(f[CD_GPU_FACT_LOAD_SECTORS_32], f[CD_GPU_FACT_GLOBAL_LOADS] / bytes);
    f[CD_GPU_FACT_LOAD_SPREAD_64] =
        over(f[CD_GPU_FACT_LOAD_SECTORS_64], f[CD_GPU_FACT_GLOBAL_LOADS] / bytes);
    f[CD_GPU_FACT_STORE_SPREAD_32] =
        over(f[CD_GPU_FACT_STORE_SECTORS_32], f[CD_GPU_FACT_GLOBAL_STORES] / bytes);
    f[CD_GPU_FACT_CONFLICTS_32] = over(
        f[CD_GPU_FACT_SHARED_LOAD_WAVES_32] + f[CD_GPU_FACT_SHARED_STORE_WAVES_32], shared / WARP);
    f[CD_GPU_FACT_CONFLICTS_64] =
        over(f[CD_GPU_FACT_SHARED_LOAD_WAVES_64] + f[CD_GPU_FACT_SHARED_STORE_WAVES_64],
             shared / CD_GPU_LANES);
    f[CD_GPU_FACT_ACTIVE] = over(f[CD_GPU_FACT_ACTIVE], lanes);
    f[CD_GPU_FACT_FLOP_PER_SECTOR] =
        over(f[CD_GPU_FACT_FLOP], f[CD_GPU_FACT_GROUP_1] + f[CD_GPU_FACT_SECTORS_STORED]);
    f[CD_GPU_FACT_FP_PER_SHARED] =
        over(f[CD_GPU_FACT_FP_INSTRUCTIONS], f[CD_GPU_FACT_SHARED_LOADS]);
    f[CD_GPU_FACT_FP_SHARE] = over(f[CD_GPU_FACT_FP_INSTRUCTIONS], f[CD_GPU_FACT_INSTRUCTIONS]);
    f[CD_GPU_FACT_MAIN_SHARE] =
        fmin(1, over(f[CD_GPU_FACT_MAIN_SHARE], f[CD_GPU_FACT_INSTRUCTIONS]));
}

static bool reserve(cd_an_gpu *g) {
    cd_an *w = g->w;
    g->copied = cd_arena_zalloc(&w->arena, (size_t)w->ast->n + 1, sizeof *g->copied);
    g->place = cd_arena_zalloc(&w->arena, w->n_tensor + 1, sizeof *g->place);
    g->loaded = cd_arena_zalloc(&w->arena, w->n_tensor + 1, sizeof *g->loaded);
    g->stored = cd_arena_zalloc(&w->arena, w->n_tensor + 1, sizeof *g->stored);
    g->value = cd_arena_zalloc(&w->arena, w->nest->n_var + 1, sizeof *g->value);
    return g->copied && g->place && g->loaded && g->stored && g->value;
}

cdmpp_status cd_facts_gpu_walk(cd_an_gpu *g, double *all, cdmpp_err *err) {
    if (!reserve(g)) return CD_FAIL(err, ENOMEM, "facts");
    for (uint32_t t = 0; t < g->w->n_tensor; t++)
        g->place[t] = (uint8_t)place_of(g->w, &g->w->tensor[t]);
    facts_gpu_unroll(g);
    CD_TRY(kernels(g, all, err));
    return g->w->oom ? CD_FAIL(err, ENOMEM, "facts") : CDMPP_OK;
}

cdmpp_status cd_facts_gpu_count(cd_an *w, cdmpp_err *err) {
    cd_an_gpu g = {.w = w, .statement = cd_facts_gpu_statement};
    double all[CD_N_GPU_FACTS] = {0};
    CD_TRY(cd_facts_gpu_walk(&g, all, err));
    all[CD_GPU_FACT_INEXACT] = w->inexact;
    put_ratios(all, g.lanes);
    for (int k = 0; k < CD_N_GPU_FACTS; k++) w->out[k] = (float)fmin(all[k], 1e30);
    return CDMPP_OK;
}
