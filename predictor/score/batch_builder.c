/* Collects the feature rows and loop nests of several programs into the arrays that a model reads.
 * Buffers grow and are kept for the next batch. */
#include "predictor/score/batch_builder_internal.h"

#include <math.h>
#include <string.h>

/* A list that grows: n items in use. */
typedef struct {
    void *p;
    size_t n, cap;
} list;

struct cd_batch_builder {
    bool leaves, order;
    size_t n, n_stepped, n_facts;    /* programs; those with steps, with facts */
    list row, row_ptr, device, flop; /* float rows; int64; uint32; double */
    /* float rows; pointers; int64; int32; int32 */
    list leaf, leaf_x, leaf_ptr, leaf_pos, leaf_node;
    list path_ptr, path_extent, path_kind; /* int64; int64; uint8 */
    list tree_ptr, tree;                   /* int64; int32 */
    list step_ptr, step;                   /* int64; int32 */
    list facts, analytic;                  /* float rows */
    int facts_set;                         /* of all programs alike */
};

cdmpp_status cd_batch_builder_new(bool leaves, bool order, cd_batch_builder **out, cdmpp_err *err) {
    cd_batch_builder *g = cd_mem_zalloc(1, sizeof *g);
    if (!g) return CD_FAIL(err, ENOMEM, "programs to score");
    g->leaves = leaves;
    g->order = order;
    *out = g;
    return CDMPP_OK;
}

void cd_batch_builder_free(cd_batch_builder *g) {
    if (!g) return;
    list *all[] = {&g->row,         &g->row_ptr,   &g->device,   &g->flop,      &g->leaf,
                   &g->leaf_x,      &g->leaf_ptr,  &g->leaf_pos, &g->leaf_node, &g->path_ptr,
                   &g->path_extent, &g->path_kind, &g->tree_ptr, &g->tree,      &g->step_ptr,
                   &g->step,        &g->facts,     &g->analytic};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) cd_mem_free(all[i]->p);
    cd_mem_free(g);
}

void cd_batch_builder_clear(cd_batch_builder *g) { g->n = g->n_stepped = g->n_facts = 0; }

/* Room for `more` items of `size` behind the n in use. */
static bool room(list *l, size_t n, size_t more, size_t size) {
    if (n + more <= l->cap) return true;
    const size_t cap = 2 * (n + more) + 64;
    void *p = cd_mem_realloc(l->p, n * size, cap * size);
    if (!p) return false;
    l->p = p;
    l->cap = cap;
    return true;
}

static int64_t last(const list *l, size_t n) { return n ? ((const int64_t *)l->p)[n] : 0; }

/* Offset array: entry 0 is 0, entry i+1 the end of item i. */
static bool put_end(list *l, size_t i, int64_t end) {
    if (!room(l, i + 1, 1, sizeof(int64_t))) return false;
    int64_t *p = l->p;
    if (!i) p[0] = 0;
    p[i + 1] = end;
    return true;
}

static bool put(list *l, size_t at, const void *src, size_t n, size_t size) {
    if (!room(l, at, n, size)) return false;
    if (n) memcpy((char *)l->p + at * size, src, n * size);
    return true;
}

static bool add_leaves(cd_batch_builder *g, const cd_rows *r) {
    const size_t l0 = (size_t)last(&g->leaf_ptr, g->n), t0 = (size_t)last(&g->tree_ptr, g->n),
                 p0 = (size_t)last(&g->path_ptr, l0);
    const size_t n_path = r->n_leaf ? (size_t)r->path_ptr[r->n_leaf] : 0;
    if (!put(&g->leaf, l0, r->leaf, r->n_leaf, CD_N_COL * sizeof(float)) ||
        !put(&g->leaf_pos, l0, r->leaf_pos, r->n_leaf, 4) ||
        !put(&g->leaf_node, l0, r->leaf_node, r->n_leaf, 4) ||
        !put(&g->tree, t0, r->tree, r->n_tree, 4) ||
        !put(&g->path_extent, p0, r->path_extent, n_path, 8) ||
        !put(&g->path_kind, p0, r->path_kind, n_path, 1))
        return false;
    for (size_t k = 0; g->order && k < r->n_leaf; k++)
        cd_rows_order_blocks((float *)g->leaf.p + (l0 + k) * CD_N_COL);
    for (size_t k = 0; k < r->n_leaf; k++)
        if (!put_end(&g->path_ptr, l0 + k, (int64_t)p0 + r->path_ptr[k + 1])) return false;
    return put_end(&g->leaf_ptr, g->n, (int64_t)(l0 + r->n_leaf)) &&
           put_end(&g->tree_ptr, g->n, (int64_t)(t0 + r->n_tree)) &&
           room(&g->leaf_x, l0, r->n_leaf, sizeof(const float *)) &&
           room(&g->path_ptr, 0, 1, sizeof(int64_t));
}

static cdmpp_status check(const float *v, size_t n, cdmpp_err *err) {
    for (size_t k = 0; k < n; k++)
        if (!isfinite(v[k]))
            return CD_FAIL(err, ENUMERIC, "feature column %d is not a finite number",
                           (int)(k % CD_N_COL));
    return CDMPP_OK;
}

cdmpp_status cd_batch_builder_add(cd_batch_builder *g, const cd_rows *r, uint32_t device,
                                  double flop, cdmpp_err *err) {
    const size_t r0 = (size_t)last(&g->row_ptr, g->n);
    CD_TRY(check(r->row, (size_t)r->n_row * CD_N_COL, err));
    if (g->leaves) CD_TRY(check(r->leaf, (size_t)r->n_leaf * CD_N_COL, err));
    if (!put(&g->row, r0, r->row, r->n_row, CD_N_COL * sizeof(float)) ||
        !put_end(&g->row_ptr, g->n, (int64_t)(r0 + r->n_row)) ||
        !put(&g->device, g->n, &device, 1, sizeof device) ||
        !put(&g->flop, g->n, &flop, 1, sizeof flop) || (g->leaves && !add_leaves(g, r)))
        return CD_FAIL(err, ENOMEM, "%u feature rows", r->n_row);
    if (g->order) cd_rows_order((float *)g->row.p + r0 * CD_N_COL, r->n_row, NULL);
    g->n++;
    return CDMPP_OK;
}

cdmpp_status cd_batch_builder_add_steps(cd_batch_builder *g, const int32_t *code, size_t n,
                                        cdmpp_err *err) {
    const size_t at = (size_t)last(&g->step_ptr, g->n_stepped);
    if (!put(&g->step, at, code, n, sizeof *code) ||
        !put_end(&g->step_ptr, g->n_stepped, (int64_t)(at + n)))
        return CD_FAIL(err, ENOMEM, "steps of %zu programs", g->n);
    g->n_stepped++;
    return CDMPP_OK;
}

cdmpp_status cd_batch_builder_add_facts(cd_batch_builder *g, int set, const float *facts,
                                        const float *analytic, cdmpp_err *err) {
    if (!put(&g->facts, g->n_facts, facts, 1, CD_N_FACTS * sizeof *facts) ||
        !put(&g->analytic, g->n_facts, analytic, 1, CD_N_ANALYTIC * sizeof *analytic))
        return CD_FAIL(err, ENOMEM, "facts of %zu programs", g->n);
    g->n_facts++;
    g->facts_set = set;
    return CDMPP_OK;
}

size_t cd_batch_builder_rows(const cd_batch_builder *g) { return (size_t)last(&g->row_ptr, g->n); }

const float *cd_batch_builder_last(const cd_batch_builder *g) {
    return g->n ? (const float *)g->row.p + last(&g->row_ptr, g->n - 1) * CD_N_COL : NULL;
}

/* Pointers to rows are set only here: the buffers may move while programs are added. */
cd_program_view cd_batch_builder_view(cd_batch_builder *g) {
    cd_program_view v = {.n = g->n,
                         .row = g->row.p,
                         .row_ptr = g->row_ptr.p,
                         .device = g->device.p,
                         .flop = g->flop.p};
    if (g->n && g->n_stepped == g->n) v.step_ptr = g->step_ptr.p, v.step = g->step.p;
    if (g->n && g->n_facts == g->n)
        v.facts = g->facts.p, v.analytic = g->analytic.p, v.facts_set = g->facts_set;
    if (!g->leaves || !g->n) return v;
    const float **x = g->leaf_x.p;
    const float *leaf = g->leaf.p;
    const int64_t n_leaf = last(&g->leaf_ptr, g->n);
    for (int64_t l = 0; l < n_leaf; l++) x[l] = leaf + l * CD_N_COL;
    v.leaf_ptr = g->leaf_ptr.p;
    v.leaf_x = x;
    v.leaf_pos = g->leaf_pos.p;
    v.leaf_node = g->leaf_node.p;
    v.path_ptr = g->path_ptr.p;
    v.path_extent = g->path_extent.p;
    v.path_kind = g->path_kind.p;
    v.tree_ptr = g->tree_ptr.p;
    v.tree = g->tree.p;
    return v;
}
