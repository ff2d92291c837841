/* Puts the rows of a loaded data set into the one order that models read (features/rows:
 * cd_rows_order). The file keeps the order of the extractor, which can be compared with TVM's. */
#include "dataset/file/dataset_internal.h"

#include "features/rows/rows.h"

static size_t most_rows(const cd_dataset *d, size_t first, size_t n) {
    int64_t most = 1;
    for (size_t p = first; p < first + n; p++)
        if (d->row_ptr[p + 1] - d->row_ptr[p] > most) most = d->row_ptr[p + 1] - d->row_ptr[p];
    return (size_t)most;
}

/* Leaves that show a row go where it went. */
static void move_leaves(cd_dataset *d, size_t p, const uint32_t *from, uint32_t *to) {
    const int64_t row = d->row_ptr[p];
    const size_t n = (size_t)(d->row_ptr[p + 1] - d->row_ptr[p]);
    for (size_t k = 0; k < n; k++) to[from[k]] = (uint32_t)k;
    for (int64_t l = d->leaf_ptr[p]; l < d->leaf_ptr[p + 1]; l++)
        if (d->leaf_row[l] >= 0) d->leaf_row[l] = row + to[d->leaf_row[l] - row];
}

cdmpp_status cd_dataset_order(const cd_dataset_file *f, cd_dataset *d, const cd_sizes *at,
                              cdmpp_err *err) {
    const size_t first = (size_t)at->program, n = (size_t)f->n.program,
                 most = most_rows(d, first, n);
    uint32_t *from = cd_mem_alloc(2 * most * sizeof *from);
    if (!from) return CD_FAIL(err, ENOMEM, "order of %zu rows", most);
    for (size_t p = first; p < first + n; p++) {
        if (p % CD_DATASET_REST == 0) cd_spool_rest(d->spool);
        cd_rows_order(d->row + (size_t)d->row_ptr[p] * d->n_col,
                      (size_t)(d->row_ptr[p + 1] - d->row_ptr[p]), from);
        if (d->leaf_row) move_leaves(d, p, from, from + most);
    }
    for (uint64_t k = 0; d->own && k < f->n.own; k++) {
        if (k % CD_DATASET_REST == 0) cd_spool_rest(d->spool);
        cd_rows_order_blocks(d->own + (at->own + k) * d->n_col);
    }
    cd_mem_free(from);
    return CDMPP_OK;
}
