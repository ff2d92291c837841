/* Rows of AutoTVM's features: growth and the choice among the three kinds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/tune/rank/rank_internal.h"

/* autotvm's relation curves: for a buffer in the innermost loops, how its count, its reuse and the
 * iterations around it grow from loop to loop, each against another, read off at fixed points. They
 * do not depend on how many loops there are. */

typedef struct {
    double *count, *reuse, *topdown; /* (n) ascending log2, each begins with 0 */
    size_t n;
} curves;

static bool same_buffer(const cd_tune_access *a, const cd_tune_access *b) {
    return a->n_raw == b->n_raw && !memcmp(a->name, b->name, a->n_raw);
}

static int32_t deepest(const cd_tune_touches *t) {
    int32_t level = 0;
    for (uint32_t k = 0; k < t->n_loop; k++)
        if (t->loop[k].level > level) level = t->loop[k].level;
    return level;
}

/* Of each buffer (A, A.local and A.shared are one) the last access in loops of the deepest
 * level. */
static void mark_innermost(const cd_tune_touches *t, bool *chosen) {
    const uint32_t level = (uint32_t)deepest(t);
    for (uint32_t k = t->n_access; k-- > 0;) {
        const cd_tune_access *c = &t->access[k];
        chosen[k] = level && c->depth == level;
        for (uint32_t j = k + 1; j < t->n_access && chosen[k]; j++)
            if (chosen[j] && same_buffer(c, &t->access[j])) chosen[k] = false;
    }
}

static void fill(const cd_tune_touches *t, const cd_tune_access *c, curves *w) {
    w->count[0] = w->reuse[0] = w->topdown[0] = 0;
    w->n = c->depth + 1;
    for (uint32_t d = 0; d < c->depth; d++) {
        w->count[d + 1] = log2(c->touch[d].count);
        w->reuse[d + 1] = log2(c->touch[d].reuse);
        w->topdown[d + 1] = log2(t->loop[c->loop[d]].topdown);
    }
    cd_sort_doubles(w->count, w->n);
    cd_sort_doubles(w->reuse, w->n);
    cd_sort_doubles(w->topdown, w->n);
}

static void tune_row_put(cd_tune_row *r, double v);

/* At 0, 1, .. of x: y at the last of its points that are not beyond, and how far that is behind. */
static void sample(const double *x, const double *y, size_t n, cd_tune_row *out) {
    for (int i = 0; i < CD_TUNE_CURVE_POINTS; i++) {
        size_t j = n - 1;
        while (j && i <= x[j] - 1e-6) j--;
        tune_row_put(out, y[j]);
        tune_row_put(out, i - x[j]);
    }
}

static void buffer(const cd_tune_touches *t, const cd_tune_access *c, curves *w, cd_tune_row *out) {
    fill(t, c, w);
    sample(w->count, w->reuse, w->n, out);
    sample(w->reuse, w->count, w->n, out);
    sample(w->count, w->topdown, w->n, out);
    sample(w->topdown, w->count, w->n, out);
}

static cdmpp_status tune_feat_curve(cd_tune_touches *t, cd_tune_row *out, cdmpp_err *err) {
    bool *chosen = cd_arena_zalloc(&t->a, t->n_access + 1, sizeof *chosen);
    const size_t n = (size_t)deepest(t) + 1;
    curves w = {cd_arena_zalloc(&t->a, n, sizeof(double)),
                cd_arena_zalloc(&t->a, n, sizeof(double)),
                cd_arena_zalloc(&t->a, n, sizeof(double)), 0};
    if (!chosen || !w.count || !w.reuse || !w.topdown)
        return CD_FAIL(err, ENOMEM, "curves of %u accesses", t->n_access);
    mark_innermost(t, chosen);
    for (uint32_t k = 0; k < t->n_access; k++)
        if (chosen[t->by_name[k]]) buffer(t, &t->access[t->by_name[k]], &w, out);
    return CDMPP_OK;
}

/* autotvm's features of loops: every loop in the order of the nest, every access in it in the order
 * of names. */

/* log2 of one more, mirrored below zero. */
static double log2p(double x) { return x < 0 ? -log2(1 - x) : log2(1 + x); }

static void loop(const cd_tune_loop *l, cd_tune_row *out) {
    tune_row_put(out, log2p(l->length));
    tune_row_put(out, l->level);
    tune_row_put(out, log2p(l->topdown));
    tune_row_put(out, log2p(l->bottomup));
    for (int k = 0; k < CD_TUNE_LOOP_KINDS; k++) tune_row_put(out, k == (int)l->kind);
    tune_row_put(out, log2p(l->n_add));
    tune_row_put(out, log2p(l->n_mul));
    tune_row_put(out, log2p(l->n_div));
}

static void touch(const cd_tune_feat_access *t, cd_tune_row *out) {
    tune_row_put(out, log2p(t->stride));
    tune_row_put(out, log2p(-1)); /* autotvm's `mod`, which it never sets */
    tune_row_put(out, log2p(t->count));
    tune_row_put(out, log2p(t->reuse));
    tune_row_put(out, log2p(t->thread_count));
    tune_row_put(out, log2p(t->thread_reuse));
}

static void tune_feat_itervar(const cd_tune_touches *t, cd_tune_row *out) {
    for (uint32_t k = 0; k < t->n_loop; k++) {
        loop(&t->loop[k], out);
        for (const cd_tune_feat_access *to = t->loop[k].touch; to; to = to->next) touch(to, out);
    }
}

/* The numbers in the steps of a candidate, each in a column of its own: the sketches of a task have
 * other steps, and the same step in two of them is the same knob. */

static bool same(const cd_tune_knob *a, const cd_tune_knob *b) {
    return a->kind == b->kind && a->stage == b->stage && a->times == b->times &&
           a->place == b->place;
}

/* Candidates come with the same knobs in the same order: the next one is tried first. */
static cdmpp_status column_of(cd_tune_feat *f, const cd_tune_knob *k, size_t *at, cdmpp_err *err) {
    for (size_t c = 0; c < f->n_knob; c++) {
        const size_t i = *at + c < f->n_knob ? *at + c : *at + c - f->n_knob;
        if (!same(&f->knob[i], k)) continue;
        *at = i;
        return CDMPP_OK;
    }
    if (CD_GROW(f->knob, f->n_knob, f->cap_knob)) return CD_FAIL(err, ENOMEM, "knobs");
    f->knob[f->n_knob] = *k;
    *at = f->n_knob++;
    return CDMPP_OK;
}

static double unroll_of(cd_str s) {
    size_t k = s.n;
    double v = 0, times = 1;
    for (; k && s.p[k - 1] >= '0' && s.p[k - 1] <= '9'; k--, times *= 10)
        v += times * (s.p[k - 1] - '0');
    return v;
}

/* CD_TUNE_FEAT_UNROLLS numbers. */
static void tune_feat_unrolls(const cd_tune_cand *c, cd_tune_row *out) {
    int n = 0;
    for (uint32_t k = 0; k < c->n_step && n < CD_TUNE_FEAT_UNROLLS; k++) {
        if (c->step[k].kind != CD_RECORD_STEP_PR) continue;
        tune_row_put(out, unroll_of(c->step[k].s));
        n++;
    }
    for (; n < CD_TUNE_FEAT_UNROLLS; n++) tune_row_put(out, 0);
}

enum { MOST = 32 }; /* numbers of a step; the rest of a longer list is left out */

/* What of a step a tuner may choose. */
static uint32_t numbers_of(const cd_record_step *s, double *v) {
    uint32_t n = 0;
    switch (s->kind) {
    case CD_RECORD_STEP_SP:
        for (; n < s->n_list && n < MOST; n++) v[n] = s->list[n];
        break;
    case CD_RECORD_STEP_FU: v[n++] = s->n_list; break;
    case CD_RECORD_STEP_AN: v[n++] = s->i[1]; break;
    case CD_RECORD_STEP_PR: v[n++] = unroll_of(s->s); break;
    case CD_RECORD_STEP_CA:
        v[n++] = s->i[0];
        v[n++] = s->i[1];
        break;
    case CD_RECORD_STEP_CI:
    case CD_RECORD_STEP_CR: v[n++] = 1; break;
    case CD_RECORD_STEP_FSP:
    case CD_RECORD_STEP_FFSP: v[n++] = s->i[0]; break;
    case CD_RECORD_STEP_RF:
        v[n++] = s->i[0];
        v[n++] = s->i[1];
        break;
    default: break;
    }
    return n;
}

/* How many steps of this kind the stage had before. */
static int32_t times_before(const cd_tune_cand *c, uint32_t k) {
    int32_t n = 0;
    for (uint32_t j = 0; j < k; j++)
        n += c->step[j].kind == c->step[k].kind && c->step[j].stage == c->step[k].stage;
    return n;
}

static cdmpp_status put_at(cd_tune_row *out, size_t begin, size_t column, double v,
                           cdmpp_err *err) {
    while (out->n <= begin + column && !out->oom) tune_row_put(out, 0);
    if (out->oom) return CD_FAIL(err, ENOMEM, "knobs");
    out->v[begin + column] = (float)v;
    return CDMPP_OK;
}

static cdmpp_status tune_feat_knob(cd_tune_feat *f, const cd_tune_cand *c, cd_tune_row *out,
                                   cdmpp_err *err) {
    const size_t begin = out->n;
    size_t column = 0;
    for (uint32_t k = 0; k < c->n_step; k++) {
        const cd_record_step *s = &c->step[k];
        double v[MOST];
        const uint32_t n = numbers_of(s, v);
        cd_tune_knob id = {(int32_t)s->kind, s->stage, n ? times_before(c, k) : 0, 0};
        for (uint32_t j = 0; j < n; j++) {
            id.place = (int32_t)j;
            CD_TRY(column_of(f, &id, &column, err));
            CD_TRY(put_at(out, begin, column, v[j], err));
            column = column + 1 < f->n_knob ? column + 1 : 0;
        }
    }
    /* the naive program has no knobs */
    return begin < out->n ? CDMPP_OK : put_at(out, begin, 0, 0, err);
}

/* Strides of an index: which loop variables it has, and by how many elements one step of each moves
 * it. */

static void add_term(cd_tune_feat_index *w, const cd_expr *e, double times) {
    for (uint32_t k = 0; k < w->n_term; k++)
        if (w->term[k].e == e) {
            w->term[k].times += times;
            return;
        }
    if (w->n_term == CD_TUNE_INDEX_TERMS) return;
    w->term[w->n_term].e = e;
    w->term[w->n_term++].times = times;
}

static void add_sum(cd_tune_feat_index *w, const cd_expr *e, double times) {
    if (e->op == CD_ADD || e->op == CD_SUB) {
        add_sum(w, e->a[0], times);
        add_sum(w, e->a[1], e->op == CD_ADD ? times : -times);
    } else if (e->op == CD_MUL && cd_expr_is_int(e->a[1])) {
        add_sum(w, e->a[0], times * (double)e->a[1]->u.i);
    } else if (e->op == CD_CAST) {
        add_sum(w, e->a[0], times);
    } else if (e->flags & CD_EXPR_HAS_VAR) {
        add_term(w, e, times);
    }
}

static void add_var(cd_tune_feat_index *w, uint32_t var, double stride) {
    for (uint32_t k = 0; k < w->n_var; k++)
        if (w->var[k].var == var) return;
    if (w->n_var == CD_TUNE_INDEX_TERMS) return;
    w->var[w->n_var].var = var;
    w->var[w->n_var++].stride = stride;
}

/* Variables inside something that is no sum: the literal next to them, else 1. */
static void add_inner(cd_tune_feat_index *w, const cd_expr *e) {
    if (!(e->flags & CD_EXPR_HAS_VAR)) return;
    if (e->op == CD_VAR) add_var(w, (uint32_t)e->u.i, 1);
    else if (e->op == CD_MUL && e->a[0]->op == CD_VAR && cd_expr_is_int(e->a[1]))
        add_var(w, (uint32_t)e->a[0]->u.i, (double)e->a[1]->u.i);
    else
        for (uint32_t k = 0; k < e->n; k++) add_inner(w, e->a[k]);
}

/* x (n): where; region: (min, extent) of each dimension, or NULL: all of shape (n). */
static void tune_feat_index_read(cd_tune_feat_index *w, const cd_expr *const *x, uint32_t n,
                                 const cd_expr *const *region, const int64_t *shape) {
    double times = 1;
    w->n_term = w->n_var = 0;
    for (uint32_t d = n; d-- > 0;) {
        add_sum(w, x[d], times);
        if (region) add_sum(w, region[2 * d], -times);
        times *= (double)(region && cd_expr_is_int(region[2 * d + 1]) ? region[2 * d + 1]->u.i
                                                                      : shape[d]);
    }
    for (uint32_t k = 0; k < w->n_term; k++)
        if (w->term[k].e->op == CD_VAR && w->term[k].times != 0)
            add_var(w, (uint32_t)w->term[k].e->u.i, w->term[k].times);
    for (uint32_t k = 0; k < w->n_term; k++)
        if (w->term[k].e->op != CD_VAR && w->term[k].times != 0) add_inner(w, w->term[k].e);
}

/* 0: not there */
static double tune_feat_index_stride(const cd_tune_feat_index *w, uint32_t var) {
    for (uint32_t k = 0; k < w->n_var; k++)
        if (w->var[k].var == var) return w->var[k].stride;
    return 0;
}

/* Walks a loop nest for AutoTVM's features: the loops in order, and for each access of a buffer
 * what every loop around it touches and reuses. */

typedef struct {
    cd_tune_touches *t;
    const cd_nest *nest;
    const cd_ast_node **region; /* (n_tensor) the realize node seen last */
    /* (n_tensor) first tensor of the same name; accesses of that name */
    uint32_t *name, *count;
    uint32_t *stack; /* loops that are open */
    int32_t *end;    /* node after each of them */
    uint32_t depth;
    double topdown;
    cd_tune_feat_index index;
    bool oom;
} walker;

void cd_tune_touches_free(cd_tune_touches *t) {
    cd_arena_free(&t->a);
    cd_mem_free(t->loop);
    cd_mem_free(t->access);
    *t = (cd_tune_touches){0};
}

/* ---- loops ---- */

static cd_tune_loop_kind kind_of(const cd_ast_node *n) {
    static const uint8_t thread[CD_AST_TAG_COUNT] = {
        [CD_AST_TAG_VTHREAD] = CD_TUNE_VTHREAD, [CD_AST_TAG_BX] = CD_TUNE_BLOCK_X,
        [CD_AST_TAG_BY] = CD_TUNE_BLOCK_Y,      [CD_AST_TAG_BZ] = CD_TUNE_BLOCK_Z,
        [CD_AST_TAG_TX] = CD_TUNE_THREAD_X,     [CD_AST_TAG_TY] = CD_TUNE_THREAD_Y,
        [CD_AST_TAG_TZ] = CD_TUNE_THREAD_Z};
    if (n->kind == CD_AST_THREAD) return (cd_tune_loop_kind)thread[n->tag];
    switch ((cd_loop_kind)n->loop) {
    case CD_LOOP_PARALLEL: return CD_TUNE_PARALLEL;
    case CD_LOOP_VECTORIZED: return CD_TUNE_VECTORIZED;
    case CD_LOOP_UNROLLED: return CD_TUNE_UNROLLED;
    default: return CD_TUNE_SERIAL;
    }
}

static bool met_before(const cd_tune_touches *t, uint32_t var) {
    for (uint32_t k = 0; k < t->n_loop; k++)
        if (t->loop[k].var == var) return true;
    return false;
}

/* A virtual thread that occurs twice is one loop: its second occurrence has no own row. */
static void enter(walker *w, const cd_ast_node *n) {
    cd_tune_touches *t = w->t;
    const uint32_t var = (uint32_t)n->var->u.i;
    const cd_tune_loop_kind kind = kind_of(n);
    if (kind == CD_TUNE_VTHREAD && met_before(t, var)) return;
    if (CD_GROW(t->loop, t->n_loop, t->cap_loop)) {
        w->oom = true;
        return;
    }
    w->topdown *= (double)n->extent;
    w->stack[w->depth] = t->n_loop;
    w->end[w->depth++] = n->end;
    t->loop[t->n_loop++] = (cd_tune_loop){.kind = kind,
                                          .level = (int32_t)w->depth,
                                          .var = var,
                                          .length = (double)n->extent,
                                          .topdown = w->topdown,
                                          .bottomup = -1};
}

static void leave(walker *w, int32_t node) {
    while (w->depth && w->end[w->depth - 1] <= node) {
        const double length = w->t->loop[w->stack[--w->depth]].length;
        if (length != 0) w->topdown /= length;
    }
}

/* ---- accesses ---- */

/* 2: blocks, 1: what runs side by side in them, 0: the rest. */
static int side_by_side(cd_tune_loop_kind k) {
    return k <= CD_TUNE_BLOCK_Z ? 2 : k <= CD_TUNE_THREAD_Z || k == CD_TUNE_PARALLEL ? 1 : 0;
}

/* Leaving the loops from the innermost: products of lengths, and at each border between what runs
 * side by side and what is in it, the product in it for the loops of the kind above. */
static void multiply(cd_tune_loop *all, const uint32_t *loop, cd_tune_feat_access *touch_access,
                     uint32_t depth) {
    double count = 1, reuse = 1;
    for (uint32_t k = depth; k-- > 0;) {
        cd_tune_loop *l = &all[loop[k]];
        cd_tune_feat_access *t = &touch_access[k];
        if (t->stride != 0) count *= l->length;
        else reuse *= l->length;
        t->count = count;
        t->reuse = reuse;
        if (count * reuse > l->bottomup) l->bottomup = count * reuse;
        const int side = side_by_side(l->kind);
        for (uint32_t j = k; j-- > 0 && side_by_side(all[loop[k - 1]].kind) == side + 1;)
            if (side_by_side(all[loop[j]].kind) == side + 1) {
                touch_access[j].thread_count = -count; /* until that loop is left, too */
                touch_access[j].thread_reuse = -reuse;
            }
        if (t->thread_count < 0) {
            t->thread_count = count / -t->thread_count;
            t->thread_reuse = reuse / -t->thread_reuse;
        }
    }
}

static void name_access(walker *w, cd_tune_access *c, uint32_t tensor) {
    const char *raw = w->nest->tensor[tensor].name;
    const size_t n = strlen(raw) + 12;
    char *name = cd_arena_alloc(&w->t->a, n, 1);
    if (!name) {
        w->oom = true;
        return;
    }
    snprintf(name, n, "%s_%u", raw, w->count[w->name[tensor]]++);
    c->name = name;
    c->n_raw = strcspn(raw, ".");
}

/* An access has an entry for each loop around it: how far one step of the loop moves it (stride)
 * and how much it touches. Local buffers are indexed within their region. */
static void touch_access(walker *w, uint32_t tensor, const cd_expr *const *x, uint32_t n) {
    cd_tune_touches *t = w->t;
    const cd_nest_tensor *to = &w->nest->tensor[tensor];
    const cd_ast_node *region = to->arg < 0 ? w->region[tensor] : NULL;
    cd_tune_feat_access *in = cd_arena_zalloc(&t->a, w->depth + 1, sizeof *in);
    uint32_t *loop = cd_arena_alloc(&t->a, w->depth + 1, sizeof *loop);
    if (!in || !loop || CD_GROW(t->access, t->n_access, t->cap_access)) {
        w->oom = true;
        return;
    }
    if (w->depth) memcpy(loop, w->stack, w->depth * sizeof *loop);
    tune_feat_index_read(&w->index, x, n, region && region->n == 2 * n ? region->x : NULL,
                         to->shape);
    for (uint32_t k = 0; k < w->depth; k++)
        in[k] = (cd_tune_feat_access){.access = t->n_access,
                                      .stride =
                                          tune_feat_index_stride(&w->index, t->loop[loop[k]].var)};
    multiply(t->loop, loop, in, w->depth);
    cd_tune_access *c = &t->access[t->n_access++];
    *c = (cd_tune_access){.depth = w->depth, .touch = in, .loop = loop};
    name_access(w, c, tensor);
}

static bool visit(void *ctx, const cd_expr *e) {
    walker *w = ctx;
    if (e->op == CD_LOAD) touch_access(w, (uint32_t)e->u.i, e->a, e->n);
    if (!w->depth || !cd_expr_dtype_is_float(e->type)) return !w->oom;
    cd_tune_loop *l = &w->t->loop[w->stack[w->depth - 1]];
    l->n_add += e->op == CD_ADD || e->op == CD_SUB;
    l->n_mul += e->op == CD_MUL;
    l->n_div += e->op == CD_DIV || e->op == CD_MOD;
    return !w->oom;
}

/* Reads are in the conditions, values and indices of a statement; the store itself comes first, as
 * in AutoTVM. */
static void node(walker *w, const cd_ast_node *n) {
    switch ((cd_ast_kind)n->kind) {
    case CD_AST_FOR:
    case CD_AST_THREAD: enter(w, n); break;
    case CD_AST_REALIZE:
    case CD_AST_ALLOC: w->region[n->tensor] = n; break;
    case CD_AST_IF: cd_expr_visit(n->e, visit, w); break;
    case CD_AST_STORE:
        touch_access(w, n->tensor, n->x, n->n);
        cd_expr_visit(n->e, visit, w);
        for (uint32_t d = 0; d < n->n; d++) cd_expr_visit(n->x[d], visit, w);
        break;
    case CD_AST_EVAL:
        for (uint32_t d = 0; d < n->n; d++) cd_expr_visit(n->x[d], visit, w);
        break;
    case CD_AST_ATTR:
    case CD_AST_LET: break;
    }
}

/* ---- the whole ---- */

static int by_name(const void *a, const void *b) {
    return strcmp((*(const cd_tune_access *const *)a)->name,
                  (*(const cd_tune_access *const *)b)->name);
}

/* Hand out the touches to their loops in the order of names. */
static bool link_touches(cd_tune_touches *t) {
    cd_tune_access **order = cd_arena_alloc(&t->a, t->n_access + 1, sizeof *order);
    t->by_name = cd_arena_alloc(&t->a, t->n_access + 1, sizeof *t->by_name);
    if (!order || !t->by_name) return false;
    for (uint32_t k = 0; k < t->n_loop; k++) t->loop[k].last = &t->loop[k].touch;
    for (uint32_t k = 0; k < t->n_access; k++) order[k] = &t->access[k];
    qsort(order, t->n_access, sizeof *order, by_name); /* names are unique */
    for (uint32_t k = 0; k < t->n_access; k++) {
        t->by_name[k] = (uint32_t)(order[k] - t->access);
        for (uint32_t d = 0; d < order[k]->depth; d++) {
            cd_tune_loop *l = &t->loop[order[k]->loop[d]];
            *l->last = &order[k]->touch[d];
            l->last = &order[k]->touch[d].next;
        }
    }
    return true;
}

/* name[k] is the first tensor with the name of tensor k: AutoTVM counts accesses by name. */
static bool begin(walker *w) {
    const uint32_t n = w->nest->n_tensor + 1, nodes = (uint32_t)w->nest->ast->n + 1;
    cd_arena *a = &w->t->a;
    cd_arena_reset(a);
    w->t->n_loop = w->t->n_access = 0;
    w->region = cd_arena_zalloc(a, n, sizeof(const cd_ast_node *));
    w->name = cd_arena_zalloc(a, n, sizeof *w->name);
    w->count = cd_arena_zalloc(a, n, sizeof *w->count);
    w->stack = cd_arena_alloc(a, nodes, sizeof *w->stack);
    w->end = cd_arena_alloc(a, nodes, sizeof *w->end);
    if (!w->region || !w->name || !w->count || !w->stack || !w->end) return false;
    for (uint32_t k = 0; k + 1 < n; k++)
        while (strcmp(w->nest->tensor[w->name[k]].name, w->nest->tensor[k].name) != 0) w->name[k]++;
    return true;
}

/* Errors: ENOMEM. */
static cdmpp_status tune_touches_walk(cd_tune_touches *t, const cd_nest *nest, cdmpp_err *err) {
    walker w = {.t = t, .nest = nest, .topdown = 1};
    const cd_ast *ast = nest->ast;
    w.oom = !begin(&w);
    for (int32_t k = 0; k < ast->n && !w.oom; k++) {
        leave(&w, k);
        if (!ast->node[k].dead) node(&w, &ast->node[k]);
    }
    return w.oom || !link_touches(t) ? CD_FAIL(err, ENOMEM, "touches of %d nodes", ast->n)
                                     : CDMPP_OK;
}

/* ---- rows ---- */

/* Append a number; out of memory is kept in the row. */
static void tune_row_put(cd_tune_row *r, double v) {
    if (CD_GROW(r->v, r->n, r->cap)) {
        r->oom = true;
        return;
    }
    r->v[r->n++] = (float)v;
}

void cd_tune_row_free(cd_tune_row *r) {
    cd_mem_free(r->v);
    *r = (cd_tune_row){0};
}

/* ---- from candidates to programs ---- */

void cd_tune_feat_free(cd_tune_feat *f) {
    cd_program_free(f->program);
    cd_tune_touches_free(&f->touches);
    cd_mem_free(f->knob);
    *f = (cd_tune_feat){0};
}

static cd_record record_of(const cd_tune_task *t, const cd_tune_cand *c) {
    const char *const key = t->task->workload_key;
    return (cd_record){.workload_key = {key, strlen(key)},
                       .target = {t->target, strlen(t->target)},
                       .has_hardware = true,
                       .hardware = t->hardware,
                       .n_step = c->n_step,
                       .step = c->step,
                       .version = {"v0.6", 4}};
}

static cdmpp_status store_rows(cd_tune_feat *f, const cd_tune_task *t, const cd_record *r,
                               cd_tune_row *out, cdmpp_err *err) {
    cd_rows rows;
    CD_TRY(cd_program_build(f->program, t->task, r, &rows, err));
    for (size_t k = 0; k < (size_t)rows.n_row * CD_N_COL; k++)
        tune_row_put(out, (double)rows.row[k]);
    return CDMPP_OK;
}

static cdmpp_status loop_row(cd_tune_feat *f, cd_tune_feat_kind k, const cd_tune_task *t,
                             const cd_tune_cand *c, cd_tune_row *out, cdmpp_err *err) {
    const cd_record r = record_of(t, c);
    cd_nest nest;
    if (k == CD_TUNE_STORE) return store_rows(f, t, &r, out, err);
    CD_TRY(cd_program_lower_loops(f->program, t->task, &r, err));
    CD_TRY(cd_program_nest(f->program, &nest, err));
    CD_TRY(tune_touches_walk(&f->touches, &nest, err));
    tune_feat_unrolls(c, out);
    if (k == CD_TUNE_CURVE) return tune_feat_curve(&f->touches, out, err);
    tune_feat_itervar(&f->touches, out);
    return CDMPP_OK;
}

cdmpp_status cd_tune_feat_read(cd_tune_feat *f, cd_tune_feat_kind k, const cd_tune_task *t,
                               const cd_tune_cand *c, cd_tune_row *out, cdmpp_err *err) {
    const size_t before = out->n;
    if (!f->program && k != CD_TUNE_KNOB) CD_TRY(cd_program_new(&f->program, err));
    cdmpp_status st =
        k == CD_TUNE_KNOB ? tune_feat_knob(f, c, out, err) : loop_row(f, k, t, c, out, err);
    if (out->oom) st = CD_FAIL(err, ENOMEM, "features");
    if (!st) return st;
    out->n = before;
    if (st == CDMPP_ENOMEM || st == CDMPP_ENOTASK) return st;
    if (err) err->code = CDMPP_EREJECTED;
    return CDMPP_EREJECTED;
}
