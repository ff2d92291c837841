/* Lays the trees of a batch out by levels, so that an LSTM over children runs as one matrix product
 * for the t-th children of all nodes of a level, not node by node. */
#include "learner/inputs/program_tree.h"

#include <string.h>

#include "learner/inputs/facts_input.h"
#include "learner/inputs/program_view_dataset.h"
#include "learner/tensor/tensor.h"

/* A data set as the program_view that estimators read: the arrays are the data set's own. */

cd_program_view cd_program_view_dataset(const cd_dataset *d, const uint32_t *device) {
    return (cd_program_view){.n = d->n,
                             .row = d->row,
                             .row_ptr = d->row_ptr,
                             .leaf_ptr = d->leaf_row ? d->leaf_ptr : NULL,
                             .leaf_row = d->leaf_row,
                             .own = d->own,
                             .leaf_pos = d->leaf_pos,
                             .leaf_node = d->leaf_node,
                             .path_ptr = d->path_ptr,
                             .path_extent = d->path_extent,
                             .path_kind = d->path_kind,
                             .tree_ptr = d->tree_ptr,
                             .tree = d->tree,
                             .step_ptr = d->step_ptr,
                             .step = d->step,
                             .device = device,
                             .flop = d->flop,
                             .spool = d->spool};
}

cd_program_view cd_program_view_facts(const cd_dataset *d, const uint32_t *device,
                                      const float *analytic, int set) {
    cd_program_view v = cd_program_view_dataset(d, device);
    if (d->facts && analytic) v.facts = d->facts, v.analytic = analytic, v.facts_set = set;
    return v;
}

cd_program_view cd_program_view_range(const cd_program_view *v, size_t first, size_t n) {
    cd_program_view r = *v;
    r.n = n;
    r.row_ptr += first;
    if (r.leaf_ptr) r.leaf_ptr += first;
    if (r.tree_ptr) r.tree_ptr += first;
    if (r.step_ptr) r.step_ptr += first;
    if (r.facts) r.facts += first * CD_N_FACTS;
    if (r.analytic) r.analytic += first * CD_N_ANALYTIC;
    if (r.device) r.device += first;
    if (r.flop) r.flop += first;
    return r;
}

#define NONE UINT32_MAX

static void plan_steps(cd_steps *p, cd_slab *s, size_t rows, size_t groups) {
    p->first = cd_slab_take(s, groups + 1, sizeof *p->first);
    p->at = cd_slab_take(s, rows, sizeof *p->at);
    p->width = cd_slab_take(s, rows, sizeof *p->width);
    p->row = cd_slab_take(s, rows, sizeof *p->row);
}

/* The order of the pieces is the layout: planning and carving make the same calls. */
void cd_program_tree_plan(cd_program_tree *t, cd_slab *s, size_t n, size_t n_tok, size_t n_node) {
    uint32_t **of_node[] = {&t->own,    &t->parent,   &t->depth,   &t->kids, &t->leaves, &t->place,
                            &t->number, &t->level_of, &t->tile_of, &t->rank, &t->order,  &t->swap};
    uint32_t **of_tok[] = {&t->of, &t->leaf_place, &t->own_place};
    t->max_n = n;
    t->max_tok = n_tok;
    t->max_node = n_node;
    t->tile_level = cd_slab_take(s, n + 1, sizeof *t->tile_level);
    t->tile_own = cd_slab_take(s, n + 1, sizeof *t->tile_own);
    t->level = cd_slab_take(s, n_node + 1, sizeof *t->level);
    plan_steps(&t->child, s, n_tok + n_node, n_node);
    plan_steps(&t->leaf, s, n_tok, n);
    t->root = cd_slab_take(s, n, sizeof *t->root);
    for (size_t k = 0; k < sizeof of_node / sizeof *of_node; k++)
        *of_node[k] = cd_slab_take(s, n_node, sizeof **of_node[k]);
    for (size_t k = 0; k < sizeof of_tok / sizeof *of_tok; k++)
        *of_tok[k] = cd_slab_take(s, n_tok, sizeof **of_tok[k]);
    t->bucket = cd_slab_take(s, n_tok + n_node + 2, sizeof *t->bucket);
}

void cd_program_tree_clear(cd_program_tree *t) {
    t->n = t->n_tok = t->n_node = t->n_tile = t->n_level = 0;
}

/* ---- one program ---- */
/* Walks the list once, counting open nodes. A tree is refused that ends early, goes on after its
 * root is closed, or has a leaf elsewhere than leaf_pos says. */
cdmpp_status cd_program_tree_check(const int32_t *list, size_t n, const int32_t *leaf_pos,
                                   size_t n_leaf, cdmpp_err *err) {
    size_t open = 0, leaf = 0, i = 0;
    for (; i < n && (open || !i); i++) {
        if (list[i] < 0) {
            if (!open) break;
            open--;
        } else if (leaf < n_leaf && leaf_pos[leaf] == (int64_t)i) {
            if (!open || i + 1 >= n || list[i + 1] >= 0) break;
            leaf++;
            i++; /* its -1 */
        } else open++;
    }
    if (open || i < n || leaf < n_leaf || !n)
        return CD_FAIL(
            err, EMODEL,
            "element %zu of %zu of a tree, %zu of %zu leaves behind it, does not belong there", i,
            n, leaf, n_leaf);
    return CDMPP_OK;
}

static uint32_t open_node(cd_program_tree *t, uint32_t under) {
    const size_t k = t->n_node++;
    t->parent[k] = under;
    t->depth[k] = under == NONE ? 0 : t->depth[under] + 1;
    t->place[k] = under == NONE ? 0 : t->kids[under]++;
    t->kids[k] = t->leaves[k] = 0;
    return (uint32_t)k;
}

static void put_leaf(cd_program_tree *t, uint32_t under) {
    const size_t k = t->n_tok++;
    t->of[k] = under;
    t->leaf_place[k] = t->kids[under]++;
    t->own_place[k] = t->leaves[under]++;
}

/* Nodes are entered in pre-order; the position of a leaf in the list tells it from an inner
 * node. */
cdmpp_status cd_program_tree_add(cd_program_tree *t, const int32_t *list, size_t n,
                                 const int32_t *leaf_pos, size_t n_leaf, cdmpp_err *err) {
    uint32_t open = NONE;
    if (t->n == t->max_n || n_leaf > t->max_tok - t->n_tok ||
        n / 2 - n_leaf > t->max_node - t->n_node)
        return CD_FAIL(err, ERANGE, "more than %zu programs, %zu leaves or %zu nodes in a batch",
                       t->max_n, t->max_tok, t->max_node);
    t->root[t->n++] = (uint32_t)t->n_node; /* renumbered when all are there */
    for (size_t i = 0, leaf = 0; i < n; i++) {
        if (list[i] < 0) {
            open = t->parent[open];
        } else if (leaf < n_leaf && leaf_pos[leaf] == (int64_t)i) {
            put_leaf(t, open);
            leaf++;
            i++; /* its -1 */
        } else open = open_node(t, open);
    }
    return CDMPP_OK;
}

/* ---- levels ---- */
/* to = from, sorted by key, the largest first, stable. */
static void sort_down(const uint32_t *from, size_t n, const uint32_t *key, uint32_t *bucket,
                      uint32_t *to) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) top = key[from[i]] > top ? key[from[i]] : top;
    memset(bucket, 0, ((size_t)top + 2) * sizeof *bucket);
    for (size_t i = 0; i < n; i++) bucket[top - key[from[i]] + 1]++;
    for (size_t b = 1; b <= top; b++) bucket[b] += bucket[b - 1];
    for (size_t i = 0; i < n; i++) to[bucket[top - key[from[i]]]++] = from[i];
}

/* Nodes beg .. end, of one tile, keep this range. Sorted twice and stably: first by the number of
 * children, then by depth, so that depth counts first. */
static void number_nodes(cd_program_tree *t, size_t tile, size_t beg, size_t end) {
    for (size_t k = beg; k < end; k++) t->order[k] = (uint32_t)k;
    sort_down(t->order + beg, end - beg, t->kids, t->bucket, t->swap + beg);
    sort_down(t->swap + beg, end - beg, t->depth, t->bucket, t->order + beg);
    for (size_t k = beg; k < end; k++) {
        const uint32_t node = t->order[k];
        if (k == beg || t->depth[node] != t->depth[t->order[k - 1]])
            t->level[t->n_level++] = (uint32_t)k;
        t->number[node] = (uint32_t)k;
        t->level_of[node] = (uint32_t)t->n_level - 1;
        t->tile_of[node] = (uint32_t)tile;
    }
}

/* Node where a tile begins; roots still have the numbers they came with. */
static size_t tile_beg(const cd_program_tree *t, size_t tile) {
    const size_t p = cd_ops_tile_at(t->n, t->n_tile, tile);
    return p < t->n ? t->root[p] : t->n_node;
}

static void cut(cd_program_tree *t) {
    t->n_tile = t->n ? cd_ops_tiles(t->n, CD_TREE_TILE) : 0;
    for (size_t k = 0; k < t->n_tile; k++) {
        t->tile_level[k] = (uint32_t)t->n_level;
        number_nodes(t, k, tile_beg(t, k), tile_beg(t, k + 1));
    }
    t->tile_level[t->n_tile] = (uint32_t)t->n_level;
    t->level[t->n_level] = (uint32_t)t->n_node;
}

/* ---- steps ---- */
/* Appends the steps of n sequences, the longest first; empty ones have none. */
static void add_steps(cd_steps *s, const uint32_t *length, const uint32_t *sequence, size_t n) {
    for (uint32_t t = 0; n && t < length[sequence[0]]; t++) {
        while (length[sequence[n - 1]] <= t) n--;
        s->width[s->n++] = (uint32_t)n;
    }
}

/* Rows of the first steps of all groups come before all others (invariant 5): they start from a
 * zero state and need no product with it. */
static void place_steps(cd_steps *s, size_t groups) {
    s->n_row = 0;
    for (size_t late = 0; late < 2; late++) {
        for (size_t g = 0; g < groups; g++)
            for (size_t k = s->first[g]; k < s->first[g + 1]; k++) {
                if ((k > s->first[g]) != (late == 1)) continue;
                s->at[k] = (uint32_t)s->n_row;
                s->n_row += s->width[k];
            }
        if (!late) s->n_first = s->n_row;
    }
}

/* Row `row` is the place-th child of the node. */
static void put_child(cd_program_tree *t, uint32_t node, uint32_t place, size_t row) {
    const uint32_t level = t->level_of[node];
    t->child.row[t->child.at[t->child.first[level] + place] + t->number[node] - t->level[level]] =
        (uint32_t)row;
}

/* Steps first, then each leaf and node into the row of the step that shows it. */
static void child_steps(cd_program_tree *t) {
    t->child.n = 0;
    for (size_t l = 0; l < t->n_level; l++) {
        t->child.first[l] = (uint32_t)t->child.n;
        add_steps(&t->child, t->kids, t->order + t->level[l], t->level[l + 1] - t->level[l]);
    }
    t->child.first[t->n_level] = (uint32_t)t->child.n;
    place_steps(&t->child, t->n_level);
    for (size_t k = 0; k < t->n_node; k++)
        if (t->parent[k] != NONE) put_child(t, t->parent[k], t->place[k], t->n_tok + t->number[k]);
    for (size_t k = 0; k < t->n_tok; k++) put_child(t, t->of[k], t->leaf_place[k], k);
}

/* As child_steps, for leaves alone and by tile: `own` lists the nodes that have leaves, in the
 * order of the first step. */
static void leaf_steps(cd_program_tree *t) {
    size_t n_own = 0;
    t->leaf.n = 0;
    for (size_t k = 0; k < t->n_tile; k++) {
        const size_t beg = tile_beg(t, k), n = tile_beg(t, k + 1) - beg, step = t->leaf.n;
        sort_down(t->order + beg, n, t->leaves, t->bucket, t->swap);
        t->leaf.first[k] = (uint32_t)step;
        t->tile_own[k] = (uint32_t)n_own;
        add_steps(&t->leaf, t->leaves, t->swap, n);
        for (uint32_t r = 0; step < t->leaf.n && r < t->leaf.width[step]; r++) {
            t->own[n_own++] = t->number[t->swap[r]];
            t->rank[t->swap[r]] = r;
        }
    }
    t->leaf.first[t->n_tile] = (uint32_t)t->leaf.n;
    t->tile_own[t->n_tile] = (uint32_t)n_own;
    place_steps(&t->leaf, t->n_tile);
    for (size_t k = 0; k < t->n_tok; k++) {
        const uint32_t node = t->of[k], step = t->leaf.first[t->tile_of[node]] + t->own_place[k];
        t->leaf.row[t->leaf.at[step] + t->rank[node]] = (uint32_t)k;
    }
}

void cd_program_tree_close(cd_program_tree *t) {
    cut(t);
    child_steps(t);
    leaf_steps(t);
    for (size_t p = 0; p < t->n; p++) t->root[p] = t->number[t->root[p]];
}
