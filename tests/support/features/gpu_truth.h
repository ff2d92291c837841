/* gpu_truth.h -- the slow truth about the accesses of a GPU program: all its threads, one after the
 * other.
 *
 *   for every turn of the loops around, every block, every 64 threads of it: the address of each
 *   lane, by evaluating its expressions
 *
 *   (1) a thread axis that stands twice in a path is one axis; virtual threads that no expression
 *       of the store uses count once;
 *   (2) lanes whose conditions do not hold touch nothing;
 *   (3) sectors of 32 bytes and words of 4 bytes are counted by comparing each with all others. */
#ifndef GPU_TRUTH_H
#define GPU_TRUTH_H
#include "interp.h"
#include "features/analytic/analytic_internal.h"

enum { TRUTH_SECTORS = 1 << 16, TRUTH_GROUPS = 4 };

typedef struct {
    const cd_an_gpu *g;
    const cd_an_raw *r;
    interp in;
    /* of the loops of the path: 1 where they are threads, or do not count */
    int64_t extent[CD_GPU_DEEP];
    double instructions; /* of groups of 64 */
    double sectors_32, sectors_64, waves_32, waves_64, exist, active;
    double distinct[TRUTH_GROUPS]; /* sectors, summed over every 1, 4, 16, all blocks */
    int64_t seen[TRUTH_GROUPS][TRUTH_SECTORS];
    int64_t block;
    long budget;
} gpu_truth;

static inline int gpu_truth_distinct(const int64_t *at, const bool *on, int from, int to,
                                     int64_t granule) {
    int n = 0;
    for (int i = from; i < to; i++) {
        bool again = !on[i];
        for (int k = from; k < i && !again; k++)
            again = on[k] && at[k] / granule == at[i] / granule;
        n += !again;
    }
    return n;
}

static inline int gpu_truth_waves(const int64_t *at, const bool *on, int from, int to) {
    int most = 0;
    for (int b = 0; b < 32; b++) {
        bool mine[CD_GPU_LANES];
        for (int i = from; i < to; i++) mine[i] = on[i] && at[i] / 4 % 32 == b;
        const int n = gpu_truth_distinct(at, mine, from, to, 4);
        if (n > most) most = n;
    }
    return most;
}

static inline void gpu_truth_note(gpu_truth *t, int64_t sector) {
    for (int w = 0; w < TRUTH_GROUPS && sector < TRUTH_SECTORS; w++) {
        const int64_t group = 1 + (w < 3 ? t->block >> (2 * w) : 0);
        t->distinct[w] += t->seen[w][sector] != group;
        t->seen[w][sector] = group;
    }
}

static inline void gpu_truth_group(gpu_truth *t, int64_t first) {
    static const cd_ast_tag tag[] = {CD_AST_TAG_TX, CD_AST_TAG_TY, CD_AST_TAG_TZ};
    const cd_an *w = t->g->w;
    const cd_an_tensor *x = &w->tensor[t->r->tensor];
    int64_t at[CD_GPU_LANES];
    bool on[CD_GPU_LANES];
    for (int i = 0; i < CD_GPU_LANES; i++) {
        int64_t id = first + i, axis[CD_AST_TAG_COUNT] = {0};
        on[i] = (double)id < t->g->threads;
        t->exist += on[i];
        for (int a = 0; a < 3; id /= t->g->extent[tag[a++]])
            axis[tag[a]] = id % t->g->extent[tag[a]];
        for (uint32_t l = 0; l < t->g->n_path; l++)
            if (cd_an_gpu_is_thread(t->g->path[l].axis))
                t->in.var[t->g->path[l].e->u.i] = (double)axis[t->g->path[l].axis - 1];
        for (uint32_t c = 0; c < t->g->n_cond; c++)
            on[i] = on[i] && in_value(&t->in, t->g->cond[c]) != 0;
        if (t->r->cond) on[i] = on[i] && (in_value(&t->in, t->r->cond) != 0) != t->r->cond_else;
        at[i] = 0;
        for (uint32_t d = 0; d < x->rank && on[i]; d++)
            at[i] += ((int64_t)in_value(&t->in, t->r->x[d]) -
                      (x->x ? (int64_t)in_value(&t->in, x->x[2 * d]) : 0)) *
                     x->stride[d];
        t->active += on[i];
        if (on[i]) gpu_truth_note(t, at[i] / 32);
    }
    t->instructions++;
    t->sectors_32 += gpu_truth_distinct(at, on, 0, 32, 32) + gpu_truth_distinct(at, on, 32, 64, 32);
    t->sectors_64 += gpu_truth_distinct(at, on, 0, 64, 32);
    t->waves_32 += gpu_truth_waves(at, on, 0, 32) + gpu_truth_waves(at, on, 32, 64);
    t->waves_64 += gpu_truth_waves(at, on, 0, 64);
    t->budget -= CD_GPU_LANES;
}

static inline void gpu_truth_loops(gpu_truth *t, uint32_t l) {
    if (t->budget < 0 || t->in.why) return;
    if (l == t->g->n_path) {
        for (int64_t first = 0; (double)first < t->g->threads; first += CD_GPU_LANES)
            gpu_truth_group(t, first);
        return;
    }
    const int64_t block = t->block, weight[] = {[CD_AST_TAG_BX] = 1,
                                                [CD_AST_TAG_BY] = t->g->extent[CD_AST_TAG_BX],
                                                [CD_AST_TAG_BZ] = t->g->extent[CD_AST_TAG_BX] *
                                                                  t->g->extent[CD_AST_TAG_BY]};
    for (int64_t x = 0; x < t->extent[l]; x++) {
        t->in.var[t->g->path[l].e->u.i] = (double)x;
        if (cd_an_gpu_is_block(t->g->path[l].axis))
            t->block = block + x * weight[t->g->path[l].axis - 1];
        gpu_truth_loops(t, l + 1);
    }
    t->block = block;
}

/* Runs the access in all its threads; false: too much work. The path and the kernel are those of
 * g. */
static inline bool gpu_truth_run(gpu_truth *t, const cd_an_gpu *g, const cd_an_raw *r,
                                 const cd_ast_node *store, long budget) {
    memset(t, 0, sizeof *t);
    t->g = g;
    t->r = r;
    t->budget = budget;
    t->in = (interp){.t = g->w->ast, .n_var = g->w->nest->n_var, .budget = budget};
    t->in.var = calloc(g->w->nest->n_var + 1, sizeof *t->in.var);
    for (uint32_t l = 0; l < g->n_path; l++) {
        bool used = cd_expr_uses(store->e, g->path[l].e);
        for (uint32_t d = 0; d < store->n; d++) used |= cd_expr_uses(store->x[d], g->path[l].e);
        const bool once = cd_an_gpu_is_thread(g->path[l].axis) ||
                          (cd_an_gpu_is_vthread(g->path[l].axis) && !used);
        t->extent[l] = once ? 1 : g->path[l].extent;
    }
    gpu_truth_loops(t, 0);
    free(t->in.var);
    return t->budget >= 0 && !t->in.why;
}
#endif
