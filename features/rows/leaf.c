/* One walk over a nest: every store becomes a leaf, its numbers are merged into the row of its
 * buffer, and realize nodes add the allocation. Sums and products are float and in TVM's order, so
 * the last bit agrees (docs/internals/ansor.md, Feature rows). */
#include <math.h>
#include <string.h>

#include "features/rows/rows_internal.h"

/* Puts the numbers of a store into the 164 columns: scaling, the five buffers with most cache
 * lines, and the curve of arithmetic intensity. */

/* First columns of the groups of a row. */
enum {
    COL_ANN = 16,
    COL_GPU = 49,
    COL_BUF = 57,
    COL_CURVE = 147,
    COL_ALLOC = 157,
    COL_OUTER = 161
};

/* sign(x) * log2(|x| + 1) in float32 */
static float feature_slog(float x) {
    if (x == 0.0F) return 0.0F;
    return x > 0.0F ? log2f(x + 1.0F) : -log2f(-x + 1.0F);
}

static void put_block(float *o, const cd_access *a) {
    const bool reused = a->reuse_count > 0.5F;
    const float f[] = {a->bytes, a->unique_bytes, a->lines, a->unique_lines};
    o[a->type] = 1.0F;
    o[7 + a->reuse] = 1.0F;
    for (int k = 0; k < 4; k++) {
        o[3 + k] = feature_slog(f[k]);
        o[13 + k] = feature_slog(reused ? f[k] / a->reuse_count : f[k] * 2.0F);
    }
    o[10] = feature_slog(a->reuse_iter);
    o[11] = feature_slog(a->reuse_bytes);
    o[12] = feature_slog(a->reuse_count);
    o[17] = feature_slog(a->stride);
}

/* Five blocks of the store's buffers; `out` is zeroed.
 *
 * The buffers by (lines, bytes) descending; ties in TVM's map order, which is
 * last appearance first, with the stored buffer at the end. */
static void feature_row_blocks(const cd_store_ctx *c, float *out) {
    uint32_t taken[CD_MAX_BUFFERS];
    const uint32_t n = c->n_acc;
    for (uint32_t b = 0; b < CD_MAX_BUFFERS && b < n; b++) {
        uint32_t best = n;
        for (uint32_t k = n; k-- > 0;) {
            const cd_access *x = &c->acc[k], *y = best < n ? &c->acc[best] : NULL;
            bool used = false;
            for (uint32_t j = 0; j < b; j++) used = used || taken[j] == k;
            if (used) continue;
            if (!y || x->lines > y->lines || (x->lines == y->lines && x->bytes > y->bytes))
                best = k;
        }
        taken[b] = best;
        put_block(out + b * CD_BLOCK, &c->acc[best]);
    }
}

/* Arithmetic intensity over operations: ratios of logarithms, interpolated. */
void cd_feature_row_curve(const cd_store_ctx *c, double ops, float *out) {
    if (ops <= 0.0 || !c->n_loop) return;
    const float *o = c->ops_log, *m = c->mem_log;
    uint32_t pt = 0;
    for (int i = 0; i < CD_N_CURVE; i++) {
        const float target = o[c->n_loop - 1] * (float)(i + 1) / (float)CD_N_CURVE;
        while (pt + 1 < c->n_loop && (double)o[pt] < (double)target - 1e-4) pt++;
        if (pt == 0) {
            out[i] = o[0] / m[0] + 0.0F; /* a region of unknown size makes this -0 */
            continue;
        }
        const float base = o[pt - 1] / m[pt - 1];
        const float slope = (o[pt] / m[pt] - base) / (o[pt] - o[pt - 1]);
        out[i] = base + slope * (target - o[pt - 1]) + 0.0F;
    }
}

static void put_annotation(float *o, const cd_annotation *a) {
    o[0] = feature_slog(a->num);
    o[1] = feature_slog(a->prod);
    o[2] = feature_slog(a->len);
    o[3 + (a->any ? 7 : 0)] = 1.0F; /* position type: none or mixed */
}

/* The 164 columns. alloc: size, prod, outer_prod, inner_prod.
 *
 * Columns 0 and 7 (multiply-add) stay 0: TVM never counts any. */
static void feature_row_put(float *o, const cd_store_set *s, const float *alloc) {
    memset(o, 0, CD_N_COL * sizeof *o);
    for (int k = 0; k < 6; k++) {
        o[1 + k] = feature_slog(s->count[k]);
        o[8 + k] = feature_slog(s->count[6 + k]);
    }
    o[14] = feature_slog(s->count[CD_CNT_BOOL]);
    o[15] = feature_slog(s->count[CD_CNT_SELECT]);
    for (int k = 0; k < CD_N_ANN; k++) put_annotation(o + COL_ANN + 11 * k, &s->ann[k]);
    memcpy(o + COL_GPU, s->gpu, sizeof s->gpu);
    memcpy(o + COL_BUF, s->block, sizeof s->block);
    memcpy(o + COL_CURVE, s->curve, sizeof s->curve);
    for (int k = 0; k < 4; k++) o[COL_ALLOC + k] = feature_slog(alloc[k]);
    o[COL_OUTER] = feature_slog(s->outer_prod);
    o[COL_OUTER + 1] = feature_slog(s->n_loop);
    o[COL_OUTER + 2] = feature_slog(s->unroll);
}

/* Masks of loops, memoised by expression. An index that does not depend on a loop is found by one
 * bit, which saves most of the work of access.c. */

static bool room(cd_loopmask *m, cd_loopmask_slot **p, uint32_t *cap, uint32_t need) {
    if (need < *cap) return true;
    uint32_t n = *cap ? *cap : 256;
    while (n <= need) n *= 2;
    cd_loopmask_slot *q = cd_mem_realloc(*p, *cap * sizeof **p, n * sizeof **p);
    if (!q) {
        m->oom = true;
        return false;
    }
    memset(q + *cap, 0, (n - *cap) * sizeof *q);
    *p = q;
    *cap = n;
    return true;
}

static void forget(cd_loopmask_slot *p, uint32_t cap, uint32_t *epoch) {
    if (++*epoch) return;
    if (p) memset(p, 0, cap * sizeof *p);
    *epoch = 1;
}

void cd_loopmask_begin(cd_loopmask *m) {
    m->oom = false;
    forget(m->var, m->cap_var, &m->epoch);
    forget(m->memo, m->cap_memo, &m->memo_epoch);
}

void cd_loopmask_free(cd_loopmask *m) {
    cd_mem_free(m->memo);
    cd_mem_free(m->var);
    *m = (cd_loopmask){0};
}

void cd_loopmask_set(cd_loopmask *m, const cd_expr *var, uint32_t depth) {
    const uint32_t k = (uint32_t)var->u.i;
    const uint64_t bit = cd_loopmask_bit(depth);
    if (!room(m, &m->var, &m->cap_var, k)) return;
    if (m->var[k].stamp == m->epoch && m->var[k].mask != bit)
        forget(m->memo, m->cap_memo, &m->memo_epoch);
    m->var[k] = (cd_loopmask_slot){bit, m->epoch};
}

uint64_t cd_loopmask_get(cd_loopmask *m, const cd_expr *e) {
    if (e->op == CD_VAR) {
        const uint32_t k = (uint32_t)e->u.i;
        return k < m->cap_var && m->var[k].stamp == m->epoch ? m->var[k].mask : 0;
    }
    if (!(e->flags & CD_EXPR_HAS_VAR)) return 0;
    if (!room(m, &m->memo, &m->cap_memo, e->id)) return ~(uint64_t)0;
    if (m->memo[e->id].stamp == m->memo_epoch) return m->memo[e->id].mask;
    uint64_t mask = 0;
    for (uint32_t i = 0; i < e->n; i++) mask |= cd_loopmask_get(m, e->a[i]);
    m->memo[e->id] = (cd_loopmask_slot){mask, m->memo_epoch};
    return mask;
}

/* What is known of one buffer: numbers of its last store, counts of all. */
typedef struct {
    cd_store_set last;
    uint32_t tensor;
    float alloc[4]; /* size, prod, outer_prod, inner_prod */
} buffer_set;

typedef struct {
    uint32_t tensor;
    int32_t node;
    cd_store_set set;
    uint32_t path_from, path_n;
} leaf_set;

struct cd_leaf_ws {
    cd_touch_list *touch; /* by identity; kept between programs */
    int32_t n_identity, cap_identity;
    cd_loopmask masks;
};

typedef struct {
    cd_leaf_ws *ws;
    cd_arena *arena;
    const cd_ast *t;
    const cd_tensors *tensors;
    cdmpp_err *err;
    cd_store_ctx st;
    cd_loop *loop; /* stack */
    uint32_t n_loop, cap_loop;
    float prod;
    int64_t length[CD_AST_TAG_COUNT];
    /* identities of closed thread scopes, last one on top: ansor.md, Identity of thread loops */
    int32_t *free_id;
    uint32_t n_free;
    bool gpu;
    int16_t unroll;
    buffer_set *buf; /* in order of first appearance */
    uint32_t n_buf;
    int32_t *buf_of; /* tensor -> buffer set, -1 */
    leaf_set *leaf;
    uint32_t n_leaf;
    int64_t *path_extent;
    uint8_t *path_kind;
    uint32_t n_path, cap_path;
} walker;

cdmpp_status cd_leaf_ws_new(cd_leaf_ws **out, cdmpp_err *err) {
    *out = cd_mem_zalloc(1, sizeof **out);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "feature workspace");
}

void cd_leaf_ws_free(cd_leaf_ws *w) {
    if (!w) return;
    for (int32_t k = 0; k < w->cap_identity; k++) cd_touch_free(&w->touch[k]);
    cd_mem_free(w->touch);
    cd_loopmask_free(&w->masks);
    cd_mem_free(w);
}

/* ---- loops ---- */

/* A table of touched regions per loop. Tables are kept between programs, so a new loop only resets
 * a count. */
static int32_t new_identity(walker *w) {
    cd_leaf_ws *ws = w->ws;
    if (ws->n_identity == ws->cap_identity) {
        const int32_t cap = ws->cap_identity ? 2 * ws->cap_identity : 32;
        cd_touch_list *p = cd_mem_realloc(ws->touch, (size_t)ws->cap_identity * sizeof *p,
                                          (size_t)cap * sizeof *p);
        if (!p) {
            w->st.oom = true;
            return 0;
        }
        memset(p + ws->cap_identity, 0, (size_t)(cap - ws->cap_identity) * sizeof *p);
        ws->touch = w->st.touch = p;
        ws->cap_identity = cap;
    }
    cd_touch_clear(&ws->touch[ws->n_identity]);
    return ws->n_identity++;
}

static cdmpp_status check_loop(const walker *w, const cd_ast_node *n) {
    if (w->n_loop == CD_MAX_LOOP)
        return CD_FAIL(w->err, EUNSUPPORTED, "more than %d loops around a store", CD_MAX_LOOP);
    if (n->extent < 0)
        return CD_FAIL(w->err, EINVALID, "a loop of %lld iterations", (long long)n->extent);
    return CDMPP_OK;
}

static void push_loop(walker *w, const cd_ast_node *n, int32_t identity) {
    cd_loopmask_set(w->st.masks, n->var, w->n_loop);
    w->loop[w->n_loop++] = (cd_loop){n->var, n->extent_e, n->extent, identity, n->loop};
    w->prod *= (float)n->extent;
}

static void pop_loop(walker *w) { w->prod /= (float)w->loop[--w->n_loop].extent; }

/* ---- a store ---- */

static cd_annotation annotate(const walker *w, cd_loop_kind kind) {
    cd_annotation a = {.prod = 1.0F};
    for (uint32_t i = 0; i < w->n_loop; i++) {
        if (w->loop[i].kind != kind) continue;
        a.any = true;
        a.num += 1.0F;
        a.prod *= (float)w->loop[i].extent;
        a.len = (float)w->loop[i].extent;
    }
    if (!a.any) a.prod = 0.0F;
    return a;
}

static void fill_set(const walker *w, const cd_opcount *cnt, double ops, cd_store_set *s) {
    static const cd_loop_kind ann[CD_N_ANN] = {CD_LOOP_VECTORIZED, CD_LOOP_UNROLLED,
                                               CD_LOOP_PARALLEL};
    static const cd_ast_tag tag[] = {CD_AST_TAG_BX, CD_AST_TAG_BY, CD_AST_TAG_BZ,     CD_AST_TAG_TX,
                                     CD_AST_TAG_TY, CD_AST_TAG_TZ, CD_AST_TAG_VTHREAD};
    for (int k = 0; k < CD_CNT_COUNT; k++) s->count[k] = w->prod * (float)cnt->n[k];
    for (int k = 0; k < CD_N_ANN; k++) s->ann[k] = annotate(w, ann[k]);
    s->gpu[0] = w->gpu ? 1.0F : 0.0F;
    for (int k = 0; k < 7; k++) s->gpu[k + 1] = feature_slog((float)w->length[tag[k]]);
    feature_row_blocks(&w->st, s->block);
    for (uint32_t i = 0; i < w->n_loop; i++) ops *= (double)w->loop[w->n_loop - 1 - i].extent;
    cd_feature_row_curve(&w->st, ops, s->curve);
    s->outer_prod = w->prod;
    s->n_loop = (float)w->n_loop;
    s->unroll = (float)w->unroll;
}

static buffer_set *buffer(walker *w, uint32_t tensor) {
    if (w->buf_of[tensor] < 0) {
        w->buf_of[tensor] = (int32_t)w->n_buf;
        w->buf[w->n_buf++].tensor = tensor;
    }
    return &w->buf[w->buf_of[tensor]];
}

/* Counts add up over the stores of a buffer; everything else is the last
 * store's, but a product of annotated loops stays when there are none now. */
static void merge(buffer_set *b, const cd_store_set *s) {
    const cd_store_set old = b->last;
    b->last = *s;
    for (int k = 0; k < CD_CNT_COUNT; k++) b->last.count[k] = old.count[k] + s->count[k];
    for (int k = 0; k < CD_N_ANN; k++)
        if (!s->ann[k].any) b->last.ann[k].prod = old.ann[k].prod;
}

/* The loops around the store, appended to one flat list for all leaves. */
static void save_path(walker *w, leaf_set *l) {
    l->path_from = w->n_path;
    l->path_n = w->n_loop;
    if (w->n_path + w->n_loop > w->cap_path) {
        const uint32_t cap = 2 * (w->n_path + w->n_loop);
        int64_t *e = cd_arena_alloc(w->arena, cap, sizeof *e);
        uint8_t *k = cd_arena_alloc(w->arena, cap, sizeof *k);
        if (!e || !k) {
            w->st.oom = true;
            return;
        }
        if (w->n_path) {
            memcpy(e, w->path_extent, w->n_path * sizeof *e);
            memcpy(k, w->path_kind, w->n_path * sizeof *k);
        }
        w->path_extent = e;
        w->path_kind = k;
        w->cap_path = cap;
    }
    for (uint32_t i = 0; i < w->n_loop; i++, w->n_path++) {
        w->path_extent[w->n_path] = w->loop[i].extent;
        w->path_kind[w->n_path] = w->loop[i].kind;
    }
}

/* Buffers, their regions loop by loop, then the numbers that follow from them. */
static cdmpp_status store(walker *w, int32_t node) {
    const cd_ast_node *n = &w->t->node[node];
    cd_opcount cnt = {0};
    if (!cd_opcount_add(&cnt, n->e))
        return CD_FAIL(w->err, EUNSUPPORTED, "a value of more than %u nodes", CD_OPCOUNT_MAX);
    double ops = 0.0;
    for (int k = CD_CNT_F_ADDSUB; k <= CD_CNT_F_OTHER; k++) ops += cnt.n[k];
    w->st.loop = w->loop;
    w->st.n_loop = w->n_loop;
    w->st.prod = w->prod;
    cd_access_collect(&w->st, n->tensor, n->x, n->e);
    if (!w->st.oom) cd_access_regions(&w->st, ops);
    if (w->st.oom) return CD_FAIL(w->err, ENOMEM, "features");
    cd_access_measure(&w->st);
    leaf_set *l = &w->leaf[w->n_leaf++];
    l->tensor = n->tensor;
    l->node = node;
    fill_set(w, &cnt, ops, &l->set);
    save_path(w, l);
    merge(buffer(w, n->tensor), &l->set);
    return CDMPP_OK;
}

/* ---- the walk ---- */

static cdmpp_status allocation(walker *w, const cd_ast_node *n) {
    buffer_set *b = buffer(w, n->tensor);
    float size = 1.0F;
    for (uint32_t d = 1; d < n->n; d += 2) {
        if (!cd_expr_is_int(n->x[d]))
            return CD_FAIL(w->err, EREJECTED, "a buffer whose size depends on loop variables");
        size *= (float)n->x[d]->u.i;
    }
    b->alloc[0] = size * (float)w->tensors->info(w->tensors->ctx, n->tensor).elem_bytes;
    b->alloc[1] = size * w->prod;
    b->alloc[2] = w->prod;
    b->alloc[3] = b->last.outer_prod / w->prod;
    return CDMPP_OK;
}

static cdmpp_status run(walker *w, int32_t from, int32_t to);

static cdmpp_status thread_scope(walker *w, int32_t k) {
    const cd_ast_node *n = &w->t->node[k];
    const int64_t old = w->length[n->tag];
    w->length[n->tag] = n->tag == CD_AST_TAG_VTHREAD ? old * n->extent : n->extent;
    w->gpu = true;
    const int32_t id = w->n_free ? w->free_id[--w->n_free] : new_identity(w);
    push_loop(w, n, id);
    CD_TRY(run(w, k + 1, n->end));
    pop_loop(w);
    w->free_id[w->n_free++] = id;
    w->length[n->tag] = old;
    return CDMPP_OK;
}

static cdmpp_status for_loop(walker *w, int32_t k) {
    push_loop(w, &w->t->node[k], new_identity(w));
    CD_TRY(run(w, k + 1, w->t->node[k].end));
    pop_loop(w);
    return CDMPP_OK;
}

/* A node and all below it. An `if` has no features of its own. */
static cdmpp_status one(walker *w, int32_t k) {
    const cd_ast_node *n = &w->t->node[k];
    if (n->kind == CD_AST_FOR || n->kind == CD_AST_THREAD) CD_TRY(check_loop(w, n));
    switch ((cd_ast_kind)n->kind) {
    case CD_AST_FOR: return for_loop(w, k);
    case CD_AST_THREAD: return thread_scope(w, k);
    case CD_AST_ATTR: {
        const int16_t old = w->unroll;
        if (n->attr == CD_ATTR_UNROLL_STEP) w->unroll = (int16_t)n->extent;
        CD_TRY(run(w, k + 1, n->end));
        w->unroll = old;
        return CDMPP_OK;
    }
    case CD_AST_REALIZE:
    case CD_AST_ALLOC: CD_TRY(run(w, k + 1, n->end)); return allocation(w, n);
    case CD_AST_IF: return run(w, k + 1, n->end);
    case CD_AST_STORE: return store(w, k);
    case CD_AST_EVAL:
    case CD_AST_LET: break;
    }
    return CDMPP_OK;
}

static cdmpp_status run(walker *w, int32_t from, int32_t to) {
    for (int32_t k = from; k < to;) {
        if (w->t->node[k].dead) { /* children, unless dead too, are walked in its place */
            k++;
            continue;
        }
        CD_TRY(one(w, k));
        k = w->t->node[k].end;
    }
    return CDMPP_OK;
}

/* ---- rows ---- */

static cdmpp_status emit_rows(walker *w, cd_rows *out) {
    float *row = cd_arena_alloc(w->arena, (size_t)w->n_buf * CD_N_COL, sizeof *row);
    if (!row) return CD_FAIL(w->err, ENOMEM, "rows");
    for (uint32_t k = 0; k < w->n_buf; k++) {
        buffer_set *b = &w->buf[w->n_buf - 1 - k];
        feature_row_put(row + (size_t)k * CD_N_COL, &b->last, b->alloc);
    }
    out->n_row = w->n_buf;
    out->row = row;
    return CDMPP_OK;
}

/* Leaves of one buffer share its allocation columns, which TVM fills for the row only. */
static cdmpp_status emit_leaves(walker *w, const int32_t *number, const int32_t *position,
                                cd_rows *out) {
    float *leaf = cd_arena_alloc(w->arena, (size_t)w->n_leaf * CD_N_COL, sizeof *leaf);
    int32_t *num = cd_arena_alloc(w->arena, 4 * (size_t)w->n_leaf + 1, sizeof *num);
    if (!leaf || !num) return CD_FAIL(w->err, ENOMEM, "leaves");
    int32_t *row = num + w->n_leaf, *pos = row + w->n_leaf, *ptr = pos + w->n_leaf;
    ptr[0] = 0;
    for (uint32_t k = 0; k < w->n_leaf; k++) {
        const leaf_set *l = &w->leaf[k];
        const buffer_set *b = &w->buf[w->buf_of[l->tensor]];
        const float inner = b->alloc[2] > 0.0F ? l->set.outer_prod / b->alloc[2] : 0.0F;
        const float alloc[4] = {b->alloc[0], b->alloc[1], b->alloc[2], inner};
        feature_row_put(leaf + (size_t)k * CD_N_COL, &l->set, alloc);
        num[k] = number[l->node];
        pos[k] = position[l->node];
        row[k] = (int32_t)w->n_buf - 1 - w->buf_of[l->tensor];
        ptr[k + 1] = (int32_t)(l->path_from + l->path_n);
    }
    out->n_leaf = w->n_leaf;
    out->leaf = leaf;
    out->leaf_node = num;
    out->leaf_pos = pos;
    out->leaf_row = row;
    out->path_ptr = ptr;
    out->path_extent = w->path_extent;
    out->path_kind = w->path_kind;
    return CDMPP_OK;
}

/* Everything whose size the tree bounds is allocated before the walk. */
static bool allocate(walker *w) {
    const size_t n = (size_t)w->t->n;
    uint32_t n_store = 0, n_alloc = 0;
    for (size_t k = 0; k < n; k++) {
        const uint8_t kind = w->t->node[k].kind;
        n_store += kind == CD_AST_STORE;
        n_alloc += kind == CD_AST_REALIZE || kind == CD_AST_ALLOC;
    }
    w->loop = cd_arena_alloc(w->arena, n, sizeof *w->loop);
    w->free_id = cd_arena_alloc(w->arena, n, sizeof *w->free_id);
    w->leaf = CD_NEWN(w->arena, leaf_set, n_store);
    w->buf = CD_NEWN(w->arena, buffer_set, n_store + n_alloc);
    w->buf_of = cd_arena_alloc(w->arena, w->tensors->n, sizeof *w->buf_of);
    w->st.acc_of = CD_NEWN(w->arena, uint32_t, w->tensors->n);
    if (!w->loop || !w->free_id || !w->leaf || !w->buf || !w->buf_of || !w->st.acc_of) return false;
    memset(w->buf_of, 0xff, w->tensors->n * sizeof *w->buf_of);
    return true;
}

/* The tree is serialised first: it gives the numbers of the leaves. */
cdmpp_status cd_leaf_extract(cd_leaf_ws *ws, cd_arena *a, const cd_ast *t, cd_expr_pool *pool,
                             cd_simplifier *simp, const cd_tensors *tensors, int64_t cache_line,
                             cd_rows *out, cdmpp_err *err) {
    walker w = {.ws = ws, .arena = a, .t = t, .tensors = tensors, .err = err, .prod = 1.0F};
    w.st = (cd_store_ctx){.arena = a,
                          .pool = pool,
                          .ana = cd_simplify_analyzer_new_plain(simp),
                          .masks = &ws->masks,
                          .tensors = tensors,
                          .cache_line = cache_line,
                          .touch = ws->touch};
    for (int k = 0; k < CD_AST_TAG_COUNT; k++) w.length[k] = 1;
    ws->n_identity = 0;
    cd_loopmask_begin(&ws->masks);
    int32_t *number = cd_arena_alloc(a, 2 * (size_t)t->n, sizeof *number);
    const uint32_t cap = 2 * (uint32_t)t->n + 2;
    int32_t *tree = cd_arena_alloc(a, cap, sizeof *tree);
    if (!w.st.ana || !allocate(&w) || !number || !tree) return CD_FAIL(err, ENOMEM, "features");
    *out = (cd_rows){.tree = tree};
    out->n_tree = cd_ast_serialize(t, tree, cap, number, number + t->n);
    CD_TRY(run(&w, 0, t->n));
    if (w.st.oom || ws->masks.oom || pool->oom || cd_simplify_oom(simp))
        return CD_FAIL(err, ENOMEM, "features");
    CD_TRY(emit_rows(&w, out));
    return emit_leaves(&w, number, number + t->n, out);
}
