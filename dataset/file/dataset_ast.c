/* The compact ASTs of a data set: read, check, say which row a leaf shows. */
#include "dataset/file/dataset_internal.h"

cdmpp_status cd_dataset_ast_count(cd_dataset_file *f, cdmpp_err *err) {
    CD_TRY(cd_dataset_count(f, CD_LAYOUT_ARRAY_LEAF_ROWS, &f->n.own, err));
    CD_TRY(cd_dataset_count(f, CD_LAYOUT_ARRAY_TREE, &f->n.tree, err));
    return cd_dataset_count(f, CD_LAYOUT_ARRAY_PATH_EXTENT, &f->n.path, err);
}

/* X(member, elements): what is held in memory. */
#define AST_MAP(X)                                                                                 \
    X(leaf_row, d->n_leaf)                                                                         \
    X(leaf_pos, d->n_leaf)                                                                         \
    X(leaf_node, d->n_leaf)                                                                        \
    X(own, d->n_own * d->n_col)                                                                    \
    X(path_ptr, d->n_leaf + 1)                                                                     \
    X(path_extent, d->n_path)                                                                      \
    X(path_kind, d->n_path)                                                                        \
    X(tree_ptr, d->n + 1)                                                                          \
    X(tree, d->n_tree)

cdmpp_status cd_dataset_ast_alloc(cd_dataset *d, cdmpp_err *err) {
    bool ok = true;
#define CD_X(member, n) ok = ok && (d->member = cd_dataset_alloc(d, n, sizeof *d->member)) != NULL;
    AST_MAP(CD_X)
#undef CD_X
    if (!ok && d->spool) CD_TRY(cd_spool_failed(d->spool, err));
    return ok ? CDMPP_OK
              : CD_FAIL(err, ENOMEM, "ASTs of %zu programs, %zu leaves", d->n, d->n_leaf);
}

void cd_dataset_ast_free(cd_dataset *d) {
#define CD_X(member, n) cd_mem_free(d->member);
    AST_MAP(CD_X)
#undef CD_X
}

/* Nodes are numbered in pre-order from 0 and each is closed once, the root last. */
static bool tree_is_sound(const int32_t *tree, int64_t n) {
    int32_t next = 0;
    int64_t open = 0;
    for (int64_t k = 0; k < n; k++) {
        if (tree[k] == -1) open--;
        else if (tree[k] == next++) open++;
        else return false;
        if (open < 0 || (open == 0 && k + 1 < n)) return false;
    }
    return open == 0;
}

static cdmpp_status check_trees(const cd_dataset_file *f, const cd_dataset *d, const cd_sizes *at,
                                cdmpp_err *err) {
    for (uint64_t p = at->program; p < at->program + f->n.program; p++) {
        const int32_t *tree = d->tree + d->tree_ptr[p];
        const int64_t n = d->tree_ptr[p + 1] - d->tree_ptr[p];
        if (p % CD_DATASET_REST == 0) cd_spool_rest(d->spool);
        if (!tree_is_sound(tree, n))
            return cd_dataset_fail(f, "/ast/tree", "expected nodes in pre-order, each closed by -1",
                                   err);
        for (int64_t l = d->leaf_ptr[p]; l < d->leaf_ptr[p + 1]; l++)
            if (d->leaf_pos[l] < 0 || d->leaf_pos[l] >= n || d->leaf_node[l] < 0 ||
                tree[d->leaf_pos[l]] != d->leaf_node[l])
                return cd_dataset_fail(f, "/ast/leaf_pos",
                                       "expected the place of the leaf's node in its tree", err);
    }
    return CDMPP_OK;
}

static cdmpp_status read_paths(const cd_dataset_file *f, cd_dataset *d, const cd_sizes *at,
                               cdmpp_err *err) {
    CD_TRY(cd_dataset_read_ptr(f, CD_LAYOUT_ARRAY_PATH_PTR, f->n.leaf, f->n.path, at->path,
                               d->path_ptr + at->leaf, err));
    CD_TRY(
        cd_dataset_read(f, CD_LAYOUT_ARRAY_PATH_EXTENT, f->n.path, d->path_extent + at->path, err));
    CD_TRY(cd_dataset_read(f, CD_LAYOUT_ARRAY_PATH_KIND, f->n.path, d->path_kind + at->path, err));
    for (uint64_t k = at->path; k < at->path + f->n.path; k++)
        if (d->path_kind[k] > 4)
            return cd_dataset_fail(f, "/ast/path_kind", "not a kind of loop", err);
    return CDMPP_OK;
}

/* Which row each leaf of program p shows; own rows are given out in order. */
static cdmpp_status point_leaves(const cd_dataset_file *f, cd_dataset *d, uint64_t p,
                                 const int32_t *leaf_row, const uint8_t *leaf_own, int64_t own,
                                 int64_t own_end, cdmpp_err *err) {
    const int64_t *row = d->row_ptr + p, *leaf = d->leaf_ptr + p;
    for (int64_t l = leaf[0], k = 0; l < leaf[1]; l++, k++) {
        if (leaf_row[k] < 0 || leaf_row[k] >= row[1] - row[0])
            return cd_dataset_fail(f, "/ast/leaf_row",
                                   "a leaf names a row that its program does not have", err);
        if (leaf_own[k] && own >= own_end)
            return cd_dataset_fail(f, "/ast/own_ptr", "fewer own rows than leaves that say so",
                                   err);
        d->leaf_row[l] = leaf_own[k] ? ~own++ : row[0] + leaf_row[k];
    }
    return own == own_end
               ? CDMPP_OK
               : cd_dataset_fail(f, "/ast/own_ptr", "more own rows than leaves that say so", err);
}

/* Leaves whose columns equal the row of their buffer are not stored twice; here they are put
 * together again. */
static cdmpp_status read_leaves(const cd_dataset_file *f, cd_dataset *d, const cd_sizes *at,
                                cdmpp_err *err) {
    int32_t *leaf_row = cd_mem_zalloc((size_t)f->n.leaf + 1, sizeof *leaf_row);
    uint8_t *leaf_own = cd_mem_zalloc((size_t)f->n.leaf + 1, 1);
    int64_t *own_ptr = cd_mem_zalloc((size_t)f->n.program + 1, sizeof *own_ptr);
    cdmpp_status st =
        leaf_row && leaf_own && own_ptr ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu leaves", d->n_leaf);
    if (!st) st = cd_dataset_read(f, CD_LAYOUT_ARRAY_LEAF_ROW, f->n.leaf, leaf_row, err);
    if (!st) st = cd_dataset_read(f, CD_LAYOUT_ARRAY_LEAF_OWN, f->n.leaf, leaf_own, err);
    if (!st)
        st = cd_dataset_read_ptr(f, CD_LAYOUT_ARRAY_OWN_PTR, f->n.program, f->n.own, at->own,
                                 own_ptr, err);
    for (uint64_t p = 0; p < f->n.program && !st; p++) {
        const uint64_t k = (uint64_t)d->leaf_ptr[at->program + p] - at->leaf;
        if (p % CD_DATASET_REST == 0) cd_spool_rest(d->spool);
        st = point_leaves(f, d, at->program + p, leaf_row + k, leaf_own + k, own_ptr[p],
                          own_ptr[p + 1], err);
    }
    cd_mem_free(leaf_row);
    cd_mem_free(leaf_own);
    cd_mem_free(own_ptr);
    return st;
}

cdmpp_status cd_dataset_ast_read(const cd_dataset_file *f, cd_dataset *d, const cd_sizes *at,
                                 cdmpp_err *err) {
    CD_TRY(
        cd_dataset_read(f, CD_LAYOUT_ARRAY_LEAF_ROWS, f->n.own, d->own + at->own * d->n_col, err));
    CD_TRY(cd_dataset_read(f, CD_LAYOUT_ARRAY_LEAF_POS, f->n.leaf, d->leaf_pos + at->leaf, err));
    CD_TRY(cd_dataset_read(f, CD_LAYOUT_ARRAY_LEAF_NODE, f->n.leaf, d->leaf_node + at->leaf, err));
    CD_TRY(cd_dataset_read_ptr(f, CD_LAYOUT_ARRAY_TREE_PTR, f->n.program, f->n.tree, at->tree,
                               d->tree_ptr + at->program, err));
    CD_TRY(cd_dataset_read(f, CD_LAYOUT_ARRAY_TREE, f->n.tree, d->tree + at->tree, err));
    CD_TRY(check_trees(f, d, at, err));
    CD_TRY(read_paths(f, d, at, err));
    return read_leaves(f, d, at, err);
}
