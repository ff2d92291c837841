/* check_items.h -- a data set that was read against the items that were written (made_items.h). */
#ifndef CHECK_ITEMS_H
#define CHECK_ITEMS_H
#include "check.h"
#include "dataset/file/file.h"
#include "features/rows/rows.h"
#include "made_items.h"

/* As a loaded data set has it: rows and the buffers of leaves in order. */
static inline const cd_item *ordered_item(made_item *m, unsigned i) {
    const cd_item *it = make_item(m, i);
    uint32_t from[16];
    int32_t to[16];
    cd_rows_order(m->row, it->n_row, from);
    for (unsigned k = 0; k < it->n_row; k++) to[from[k]] = (int32_t)k;
    for (unsigned k = 0; k < it->n_leaf; k++) m->leaf_row[k] = to[m->leaf_row[k]];
    for (unsigned k = 0; k < it->n_own; k++) cd_rows_order_blocks(m->own + 164 * k);
    return it;
}

static inline void check_item(const cd_dataset *d, size_t p, unsigned i) {
    static made_item m;
    const cd_item *it = ordered_item(&m, i);
    assert_int_equal(d->row_ptr[p + 1] - d->row_ptr[p], it->n_row);
    assert_memory_equal(d->row + d->row_ptr[p] * 164, it->row, it->n_row * 164 * sizeof(float));
    assert_memory_equal(&d->latency_s[p], &it->latency_s, sizeof(double));
    assert_memory_equal(&d->latency_mean_s[p], &it->latency_mean_s, sizeof(double));
    assert_memory_equal(&d->latency_std_s[p], &it->latency_std_s, sizeof(double));
    assert_memory_equal(&d->latency_min_s[p], &it->latency_min_s, sizeof(double));
    assert_memory_equal(&d->flop[p], &it->flop, sizeof(double));
    assert_int_equal(d->repeats[p], it->repeats);
    assert_int_equal(d->error[p], it->error);
    assert_int_equal(d->is_gpu[p], it->is_gpu);
    assert_int_equal(d->source_line[p], it->source_line);
    assert_string_equal(d->task_name[d->task[p]], m.task);
    assert_string_equal(d->source_name[d->source_file[p]], m.source);
    assert_string_equal(d->device_name[d->device[p]], i % 2 ? "v100" : "zen5");
    assert_string_equal(d->kind_name[d->kind[p]],
                        i % 3 ? "dtype float32" : "dtype float16; intrinsic exp");
}

/* Program p of a data set with ASTs is item i. */
static inline void check_ast(const cd_dataset *d, size_t p, unsigned i) {
    static made_item m;
    const cd_item *it = ordered_item(&m, i);
    const int64_t l0 = d->leaf_ptr[p], t0 = d->tree_ptr[p];
    size_t own = 0;
    assert_int_equal(d->leaf_ptr[p + 1] - l0, it->n_leaf);
    assert_int_equal(d->tree_ptr[p + 1] - t0, it->n_tree);
    assert_memory_equal(d->tree + t0, it->tree, it->n_tree * sizeof *it->tree);
    assert_memory_equal(d->leaf_pos + l0, it->leaf_pos, it->n_leaf * sizeof *it->leaf_pos);
    assert_memory_equal(d->leaf_node + l0, it->leaf_node, it->n_leaf * sizeof *it->leaf_node);
    for (unsigned k = 0; k < it->n_leaf; k++) {
        const int64_t a = d->path_ptr[l0 + k], n = it->path_ptr[k + 1] - it->path_ptr[k];
        const float *x = it->leaf_own[k] ? it->own + 164 * own++ : it->row + 164 * it->leaf_row[k];
        const int64_t at = d->leaf_row[l0 + k];
        assert_memory_equal(at < 0 ? d->own + 164 * ~at : d->row + 164 * at, x,
                            164 * sizeof(float));
        assert_int_equal(it->leaf_own[k] ? 0 : d->row_ptr[p] + it->leaf_row[k],
                         it->leaf_own[k] ? 0 : at);
        assert_int_equal(d->path_ptr[l0 + k + 1] - a, n);
        assert_memory_equal(d->path_extent + a, it->path_extent + it->path_ptr[k],
                            (size_t)n * sizeof(int64_t));
        assert_memory_equal(d->path_kind + a, it->path_kind + it->path_ptr[k], (size_t)n);
    }
}

static inline cdmpp_status load_steps(const char *const *path, size_t n, uint64_t memory,
                                      cd_dataset **d, cdmpp_err *err) {
    return cd_dataset_load_within(
        path, n, &(cd_dataset_options){.steps = true, .memory = memory, .folder = ""}, d, err);
}

/* Item i with facts, but every fifth, and GPU programs as an earlier version left them. */
static inline void make_facts(made_item *m, unsigned i) {
    static float fact[CD_N_FACTS];
    m->it.facts_state = m->it.is_gpu ? (i % 3 ? CD_FACTS_THERE_GPU : CD_FACTS_GPU)
                        : i % 5      ? CD_FACTS_THERE
                                     : CD_FACTS_UNSUPPORTED;
    m->it.facts = cd_facts_are_there(m->it.facts_state) ? fact : NULL;
    for (unsigned c = 0; c < CD_N_FACTS; c++) fact[c] = (float)(i + c) / 3;
}

static inline cdmpp_status load_facts(const char *const *path, size_t n, uint64_t memory,
                                      cd_dataset **d, cdmpp_err *err) {
    return cd_dataset_load_within(
        path, n, &(cd_dataset_options){.facts = true, .memory = memory, .folder = ""}, d, err);
}
#endif
