/* Columns of a leaf and of a program before scaling: the features of the row, then what loops and
 * the tree around the leaf tell. */
#include <math.h>
#include <string.h>

#include "features/rows/rows.h"
#include "learner/inputs/batch_internal.h"
#include "learner/inputs/facts_input.h"
#include "learner/inputs/tree_input.h"

enum { PER_LOOP = 1 + CD_BATCH_KINDS };

size_t cd_batch_token_width(const cd_batch_spec *s) {
    if (s->steps) return cd_batch_step_width(s);
    return !s->tokens ? 0
                      : CD_N_COL + (s->context ? (size_t)CD_BATCH_CONTEXT : 0) +
                            (s->derived ? (size_t)CD_N_DERIVED : 0);
}

/* The program vector loses its last column, the number of the device, and gains
 * log2 of the task's operations and whether they are known. */
static size_t summary_width(const cd_batch_spec *s) {
    return s->program ? cd_tree_input_width(CD_TREE_INPUT_PROGRAM) + 1 : 0;
}

size_t cd_batch_program_width(const cd_batch_spec *s) {
    return summary_width(s) + (s->facts ? (size_t)CD_N_FACTS_COL : 0);
}

size_t cd_batch_leaves(const cd_batch_spec *s, const cd_program_view *v, size_t program) {
    if (s->steps) return s->steps;
    if (s->rows) return (size_t)(v->row_ptr[program + 1] - v->row_ptr[program]);
    return v->leaf_ptr ? (size_t)(v->leaf_ptr[program + 1] - v->leaf_ptr[program]) : 0;
}

static cdmpp_status check_tree(const cd_batch_spec *s, const cd_program_view *v, size_t program,
                               cdmpp_err *err) {
    if (!v->tree_ptr)
        return CD_FAIL(err, EMODEL, "program %zu has no tree, which this network reads", program);
    const size_t beg = (size_t)v->tree_ptr[program], n = (size_t)v->tree_ptr[program + 1] - beg;
    return cd_program_tree_check(v->tree + beg, n, v->leaf_pos + v->leaf_ptr[program],
                                 cd_batch_leaves(s, v, program), err);
}

/* Checked here, once for each program, so that filling and running a network need not. */
cdmpp_status cd_batch_check(const cd_batch_spec *s, const cd_program_view *v, size_t program,
                            cdmpp_err *err) {
    if (s->steps && !v->step_ptr)
        return CD_FAIL(err, EMODEL, "program %zu has no steps, which this network reads", program);
    if (s->tokens && !cd_batch_leaves(s, v, program))
        return CD_FAIL(err, EMODEL, "program %zu has no %s, which this network reads", program,
                       s->rows ? "rows" : "leaves");
    if (s->tree) CD_TRY(check_tree(s, v, program, err));
    if (s->facts && !cd_facts_input_has(v, program))
        return CD_FAIL(err, EMODEL,
                       "program %zu has no facts of its loop nest, which this network reads",
                       program);
    if (s->w_dev && v->device[program] >= s->n_device)
        return CD_FAIL(err, EMODEL, "program %zu ran on device %u of %zu", program,
                       (unsigned)v->device[program], s->n_device);
    return CDMPP_OK;
}

/* ---- context ---- */
static float log2_extent(int64_t e) { return e > 1 ? (float)log2((double)e) : 0; }

static void put_loop(int64_t extent, uint8_t kind, float *x) {
    x[0] = log2_extent(extent);
    if (kind < CD_BATCH_KINDS) x[1 + kind] = 1;
}

/* Depth of leaf `at` of a tree list, and in *shared that of the deepest node above
 * it that was open all the time since the list's place `from` (< 0: none). */
static float depth_at(const int32_t *tree, size_t at, ptrdiff_t from, float *shared) {
    int depth = 0, low = 0;
    for (size_t i = 0; i < at; i++) {
        if ((ptrdiff_t)i == from) low = depth;
        depth += tree[i] < 0 ? -1 : 1;
        if ((ptrdiff_t)i > from && depth < low) low = depth;
    }
    *shared = from < 0 ? 0 : (float)low;
    return (float)depth;
}

static void put_tree(const cd_batch_spec *s, const cd_program_view *v, size_t program, size_t leaf,
                     float *x) {
    const size_t first = (size_t)v->leaf_ptr[program];
    const int32_t *tree = v->tree + v->tree_ptr[program];
    const ptrdiff_t from = leaf > first ? v->leaf_pos[leaf - 1] : -1;
    x[0] = (float)log2(1 + (double)v->leaf_pos[leaf]);
    x[1] = (float)(leaf - first);
    x[2] = (float)cd_batch_leaves(s, v, program);
    x[3] = depth_at(tree, (size_t)v->leaf_pos[leaf], from, &x[4]);
}

/* The blocks of CD_BATCH_CONTEXT in the order of batch.h: loops from the inside, loops from the
 * outside, products by kind, the tree. */
static void put_context(const cd_batch_spec *s, const cd_program_view *v, size_t program,
                        size_t leaf, float *x) {
    const size_t beg = (size_t)v->path_ptr[leaf], n = (size_t)v->path_ptr[leaf + 1] - beg;
    const int64_t *extent = v->path_extent + beg;
    const uint8_t *kind = v->path_kind + beg;
    memset(x, 0, (size_t)CD_BATCH_CONTEXT * sizeof *x);
    for (size_t i = 0; i < CD_BATCH_INNER && i < n; i++)
        put_loop(extent[n - 1 - i], kind[n - 1 - i], x + i * PER_LOOP);
    x += CD_BATCH_INNER * PER_LOOP;
    for (size_t i = 0; i < CD_BATCH_OUTER && i < n; i++)
        put_loop(extent[i], kind[i], x + i * PER_LOOP);
    x += CD_BATCH_OUTER * PER_LOOP;
    for (size_t i = 0; i < n; i++)
        if (kind[i] < CD_BATCH_KINDS) x[kind[i]] += log2_extent(extent[i]);
    put_tree(s, v, program, leaf, x + CD_BATCH_KINDS);
}

/* ---- rows ---- */
void cd_batch_raw_tokens(const cd_batch_spec *s, const cd_program_view *v, size_t program,
                         float *x) {
    const size_t w = cd_batch_token_width(s);
    if (s->steps) {
        cd_batch_step_fill(s, v, program, x);
        return;
    }
    const int64_t *ptr = s->rows ? v->row_ptr : v->leaf_ptr;
    for (size_t l = (size_t)ptr[program]; l < (size_t)ptr[program + 1]; l++, x += w) {
        const float *from = s->rows ? v->row + l * CD_N_COL : cd_program_view_leaf(v, l);
        memcpy(x, from, CD_N_COL * sizeof *x);
        if (s->context) put_context(s, v, program, l, x + CD_N_COL);
        if (s->derived) cd_tree_input_derived(from, x + w - CD_N_DERIVED);
    }
}

/* The device column of the PROGRAM form (its last) is overwritten: a network knows the device by
 * its vector instead. */
static void put_summary(const cd_program_view *v, size_t program, float *x) {
    const size_t beg = (size_t)v->row_ptr[program], n = (size_t)v->row_ptr[program + 1] - beg;
    const size_t w = cd_tree_input_width(CD_TREE_INPUT_PROGRAM);
    const double flop = v->flop ? v->flop[program] : -1;
    cd_tree_input_fill(CD_TREE_INPUT_PROGRAM, v->row + beg * CD_N_COL, n, 0, x);
    x[w - 1] = flop > 0 ? (float)log2(flop + 1) : 0;
    x[w] = flop > 0;
}

void cd_batch_raw_program(const cd_batch_spec *s, const cd_program_view *v, size_t program,
                          float *x) {
    if (s->program) put_summary(v, program, x);
    if (s->facts) cd_facts_input_fill(v, program, x + summary_width(s));
}
