/* A data set as the program_view that estimators read: the arrays are the data set's own. */
#include "learner/inputs/program_view_dataset.h"

#include "learner/inputs/facts_input.h"

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
