/* Walks the trees of a booster. One walk mostly waits for memory, so eight go at a time: eight
 * trees for one row, or eight rows in one tree. Leaves lead to themselves, so all walks of a tree
 * take as many steps as it is deep and need no condition. */
#include <math.h>
#include <string.h>

#include "learner/trees/tree_inference_internal.h"

/* The same trees in a form that is walked fast. What it answers is equal, bit by bit, to the walk
 * of tree_inference.c, which stays as the slow truth.
 *
 *   node   8 bytes: {cut, slot, kid}; kids stand side by side, so x[slot] < cut goes to kid, else
 *          to kid + 1
 *   slot   a column and the side that a missing value takes: NaN is -infinity where it goes left,
 *          infinity where it goes right, so a step has no condition
 *   leaf   cut is its value, slot 0 is -infinity, kid is the leaf itself: walks of a tree take as
 *          many steps as it is deep
 *   lines  the first three levels of a tree share a line of the cache, then each two levels do: one
 *          row reads few lines of each of some hundred trees
 *
 * TREES trees are walked at a time: one walk waits for memory while the others go on. Several rows
 * in one tree at a time were slower. Leaves are added in float in the order of the trees, as
 * ever. */

enum { TREES = 12, LINE = 8, LINE_BYTES = 64, MOST_SLOT = 256, MOST_NODE = UINT16_MAX };

typedef struct {
    float cut;
    uint16_t slot, kid; /* kid: from the first node of the tree */
} walk_node;

struct cd_tree_walk {
    size_t n_slot, n_node;
    uint32_t *slot;  /* (n_slot) column, CD_TREE_INFERENCE_MISSING_RIGHT; the first is of leaves */
    uint32_t *root;  /* (n_tree) */
    void *block;     /* what `node` is in */
    walk_node *node; /* (n_node) each tree begins a line */
};

void cd_tree_walk_free(cd_tree_walk *w) {
    if (!w) return;
    cd_mem_free(w->slot);
    cd_mem_free(w->root);
    cd_mem_free(w->block);
    cd_mem_free(w);
}

/* ---- making it ---- */
static bool is_leaf(const cd_tree_inference *f, uint32_t i) { return f->node[i].kid[0] == i; }

/* Number of a slot; new ones are added behind. of (2 x width): slot + 1. */
static bool slots(const cd_tree_inference *f, cd_tree_walk *w, uint16_t *of) {
    w->n_slot = 1;
    for (size_t i = 0; i < f->n_node; i++) {
        const cd_tree_inference_node *n = &f->node[i];
        if (is_leaf(f, (uint32_t)i)) continue;
        const size_t at =
            2 * (size_t)(n->column & ~CD_TREE_INFERENCE_MISSING_RIGHT) + (n->column >> 31);
        if (!isfinite(n->cut)) return false;
        if (of[at]) continue;
        if (w->n_slot == MOST_SLOT) return false;
        w->slot[w->n_slot] = n->column;
        of[at] = (uint16_t)w->n_slot++;
    }
    return true;
}

typedef struct {
    const cd_tree_inference *f;
    const uint16_t *of;
    walk_node *to; /* of this tree; NULL: places are only counted */
    size_t next;   /* free place */
} layout;

/* The node at its place, whose kids begin at `kid`. */
static void put(const layout *l, uint32_t from, size_t at, size_t kid) {
    const cd_tree_inference_node *n = &l->f->node[from];
    if (!l->to) return;
    if (is_leaf(l->f, from)) l->to[at] = (walk_node){n->cut, 0, (uint16_t)at};
    else
        l->to[at] = (walk_node){
            n->cut,
            l->of[2 * (size_t)(n->column & ~CD_TREE_INFERENCE_MISSING_RIGHT) + (n->column >> 31)],
            (uint16_t)kid};
}

/* Places of a pair, and of the kids of both. */
static size_t line_of(const cd_tree_inference *f, const uint32_t kid[2]) {
    return 2 + (is_leaf(f, kid[0]) ? 0 : (size_t)2) + (is_leaf(f, kid[1]) ? 0 : (size_t)2);
}

/* The two kids at `at` and their kids behind them; then what is below these, each pair with its
 * kids in a line. */
static void pair(layout *l, const uint32_t kid[2], size_t at) {
    size_t below[2];
    for (int k = 0; k < 2; k++) {
        below[k] = l->next;
        if (!is_leaf(l->f, kid[k])) l->next += 2;
        put(l, kid[k], at + (size_t)k, below[k]);
    }
    for (int k = 0; k < 2; k++) {
        if (is_leaf(l->f, kid[k])) continue;
        const uint32_t *grand = l->f->node[kid[k]].kid;
        for (size_t g = 0; g < 2; g++) {
            const bool leaf = is_leaf(l->f, grand[g]);
            const size_t need = leaf ? 0 : line_of(l->f, l->f->node[grand[g]].kid);
            if (need > LINE - l->next % LINE) l->next += LINE - l->next % LINE;
            const size_t head = l->next;
            l->next += leaf ? 0 : 2;
            put(l, grand[g], below[k] + g, head);
            if (!leaf) pair(l, l->f->node[grand[g]].kid, head);
        }
    }
}

/* Root, a free place, its kids, theirs: a line. */
static size_t lay(layout *l, uint32_t root) {
    l->next = 2;
    put(l, root, 0, 2);
    if (!is_leaf(l->f, root)) {
        l->next = 4;
        pair(l, l->f->node[root].kid, 2);
    }
    return (l->next + LINE - 1) / LINE * LINE;
}

static cdmpp_status lay_all(const cd_tree_inference *f, cd_tree_walk *w, const uint16_t *of,
                            bool *fits, cdmpp_err *err) {
    for (size_t t = 0; t < f->n_tree; t++) {
        layout l = {f, of, NULL, 0};
        const size_t n = lay(&l, f->root[t]);
        if (n > MOST_NODE || w->n_node + n > UINT32_MAX) return CDMPP_OK;
        w->root[t] = (uint32_t)w->n_node;
        w->n_node += n;
    }
    if (!(w->block = cd_mem_zalloc(w->n_node + LINE, sizeof *w->node)))
        return CD_FAIL(err, ENOMEM, "%zu nodes", w->n_node);
    w->node = (walk_node *)(((uintptr_t)w->block + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES);
    for (size_t t = 0; t < f->n_tree; t++) {
        layout l = {f, of, w->node + w->root[t], 0};
        (void)lay(&l, f->root[t]);
    }
    *fits = true;
    return CDMPP_OK;
}

cdmpp_status cd_tree_walk_new(const cd_tree_inference *f, size_t width, cd_tree_walk **out,
                              cdmpp_err *err) {
    cd_tree_walk *w = cd_mem_zalloc(1, sizeof *w);
    uint16_t *of = cd_mem_zalloc(2 * width + 1, sizeof *of);
    bool fits = false;
    cdmpp_status st = CDMPP_OK;
    *out = NULL;
    if (w)
        w->slot = cd_mem_zalloc(MOST_SLOT, sizeof *w->slot),
        w->root = cd_mem_zalloc(f->n_tree + 1, sizeof *w->root);
    if (!w || !of || !w->slot || !w->root) st = CD_FAIL(err, ENOMEM, "trees");
    else if (slots(f, w, of)) st = lay_all(f, w, of, &fits, err);
    cd_mem_free(of);
    if (fits) *out = w;
    else cd_tree_walk_free(w);
    return st;
}

/* ---- one row ---- */
/* NaN takes its side. */
static inline float sided(uint32_t slot, const float *x) {
    const float v = x[slot & ~CD_TREE_INFERENCE_MISSING_RIGHT];
    return v == v ? v : slot & CD_TREE_INFERENCE_MISSING_RIGHT ? INFINITY : -INFINITY;
}

static inline uint32_t step(const walk_node *n, float v) {
    return n->kid + (uint32_t) !(v < n->cut);
}

static float one(const cd_tree_inference *f, size_t n_tree, const float *x) {
    const cd_tree_walk *w = f->fast;
    float v[MOST_SLOT], sum = f->base;
    v[0] = -INFINITY;
    for (size_t s = 1; s < w->n_slot; s++) v[s] = sided(w->slot[s], x);
    for (size_t t = 0; t < n_tree; t += TREES) {
        const walk_node *tree[TREES];
        uint32_t at[TREES] = {0}, depth = 0;
        const size_t n = n_tree - t < TREES ? n_tree - t : TREES;
        for (size_t k = 0; k < TREES; k++) {
            tree[k] = w->node + w->root[t + (k < n ? k : 0)];
            if (k < n && f->depth[t + k] > depth) depth = f->depth[t + k];
        }
        for (uint32_t d = 0; d < depth; d++)
            for (size_t k = 0; k < TREES; k++)
                at[k] = step(&tree[k][at[k]], v[tree[k][at[k]].slot]);
        for (size_t k = 0; k < n; k++) sum += tree[k][at[k]].cut;
    }
    return sum;
}

void cd_tree_walk_score(const cd_tree_inference *f, const float *x, size_t n, size_t width,
                        size_t n_tree, float *out) {
    for (size_t i = 0; i < n; i++) out[i] = one(f, n_tree, x + i * width);
}

/* Walks at a time: one waits for memory while the others go on. */
enum { WIDE = 8, BLOCK = 64, FEW = 16 }; /* FEW: of fewer rows each is walked by itself sooner */

void cd_tree_inference_free(cd_tree_inference *f) {
    if (!f) return;
    cd_tree_walk_free(f->fast);
    cd_tree_bytes_free(f->bytes);
    cd_mem_free(f->root);
    cd_mem_free(f->node);
    cd_mem_free(f);
}

size_t cd_tree_inference_count(const cd_tree_inference *f) { return f->n_tree; }

/* `depth` steps of WIDE walks; a leaf steps on the spot. */
static void walk(const cd_tree_inference_node *node, const uint32_t root[WIDE],
                 const float *const x[WIDE], uint32_t depth, float leaf[WIDE]) {
    uint32_t at[WIDE];
    for (int k = 0; k < WIDE; k++) at[k] = root[k];
    for (uint32_t d = 0; d < depth; d++)
        for (int k = 0; k < WIDE; k++) {
            const cd_tree_inference_node *n = &node[at[k]];
            const float v = x[k][n->column & ~CD_TREE_INFERENCE_MISSING_RIGHT];
            const unsigned missing = v != v ? n->column >> 31 : 1;
            at[k] = n->kid[v < n->cut ? 0 : missing];
        }
    for (int k = 0; k < WIDE; k++) leaf[k] = node[at[k]].cut;
}

/* One row through WIDE trees at once. */
static float score_one(const cd_tree_inference *f, size_t n_tree, const float *x) {
    float sum = f->base, leaf[WIDE];
    const float *const same[WIDE] = {x, x, x, x, x, x, x, x};
    for (size_t t = 0; t < n_tree; t += WIDE) {
        uint32_t root[WIDE], depth = 0;
        const size_t n = n_tree - t < WIDE ? n_tree - t : WIDE;
        for (size_t k = 0; k < WIDE; k++) {
            root[k] = f->root[t + (k < n ? k : 0)];
            if (k < n && f->depth[t + k] > depth) depth = f->depth[t + k];
        }
        walk(f->node, root, same, depth, leaf);
        for (size_t k = 0; k < n; k++) sum += leaf[k];
    }
    return sum;
}

/* WIDE rows at once through one tree after the other. */
static void score_block(const cd_tree_inference *f, size_t n_tree, const float *x, size_t n,
                        size_t width, float *out) {
    for (size_t i = 0; i < n; i++) out[i] = f->base;
    for (size_t t = 0; t < n_tree; t++)
        for (size_t i = 0; i < n; i += WIDE) {
            uint32_t root[WIDE];
            const float *row[WIDE];
            float leaf[WIDE];
            for (size_t k = 0; k < WIDE; k++) {
                root[k] = f->root[t];
                row[k] = x + (i + k < n ? i + k : i) * width;
            }
            walk(f->node, root, row, f->depth[t], leaf);
            for (size_t k = 0; k < WIDE && i + k < n; k++) out[i + k] += leaf[k];
        }
}

void cd_tree_inference_score_plain(const cd_tree_inference *f, const float *x, size_t n,
                                   size_t width, size_t n_tree, float *out) {
    if (n < WIDE / 2) {
        for (size_t i = 0; i < n; i++) out[i] = score_one(f, n_tree, x + i * width);
        return;
    }
    for (size_t i = 0; i < n; i += BLOCK)
        score_block(f, n_tree, x + i * width, n - i < BLOCK ? n - i : BLOCK, width, out + i);
}

void cd_tree_inference_score_some(const cd_tree_inference *f, const float *x, size_t n,
                                  size_t width, size_t most, float *out) {
    const size_t n_tree = most < f->n_tree ? most : f->n_tree;
    size_t done = 0;
    for (size_t m = CD_TREE_BYTES_ROWS; f->bytes && n - done >= FEW; done += m) {
        if (n - done < m) m = n - done;
        cd_tree_bytes_score(f, x + done * width, m, width, n_tree, out + done);
    }
    if (done == n) return;
    if (f->fast) cd_tree_walk_score(f, x + done * width, n - done, width, n_tree, out + done);
    else cd_tree_inference_score_plain(f, x + done * width, n - done, width, n_tree, out + done);
}

void cd_tree_inference_score(const cd_tree_inference *f, const float *x, size_t n, size_t width,
                             float *out) {
    cd_tree_inference_score_some(f, x, n, width, f->n_tree, out);
}

cd_tree_inference_view cd_tree_inference_view_of(const cd_tree_inference *f) {
    return (cd_tree_inference_view){f->base, f->n_tree, f->n_node, f->root, f->node};
}
