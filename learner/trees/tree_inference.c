/* Walks the trees of a booster. One walk mostly waits for memory, so eight go at a time: eight
 * trees for one row, or eight rows in one tree. Leaves lead to themselves, so all walks of a tree
 * take as many steps as it is deep and need no condition. */

#include "learner/trees/tree_inference_internal.h"

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
