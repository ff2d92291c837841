/* What a schedule may not change, whatever TVM prints. */
#include "check.h"

#include "features/rows/rows.h"
#include "prog_matmul.h"

static cd_rows plain(fixture *f, const char *steps) {
    cd_record r;
    cd_rows rows;
    cdmpp_err err = {0};
    assert_ok(prog_record(&f->a, "1", PROG_CPU, steps, &r, &err));
    assert_ok(cd_program_build(f->p, cd_task_registry_at(f->tasks, 1), &r, &rows, &err));
    assert_int_equal(rows.n_leaf, 3); /* clear, add up, out */
    return rows;
}

static int64_t turns(const cd_rows *r, uint32_t leaf) {
    int64_t n = 1;
    for (int32_t i = r->path_ptr[leaf]; i < r->path_ptr[leaf + 1]; i++) n *= r->path_extent[i];
    return n;
}

/* What a split by a divisor leaves alone: iterations, operations, allocations. One
 * loop more around the stores that have the axis. */
static void splitting_keeps_the_work(void **state) {
    static const struct {
        int stage, axis, extent;
        bool leaf[3];
    } tab[] = {{2, 0, 100, {true, true, false}}, {2, 1, 70, {true, true, false}}, {2, 2, 60, {false, true, false}},
               {4, 0, 100, {false, false, true}}, {4, 1, 70, {false, false, true}}};
    static const int same[] = {CD_COL_FLOAT_ADDSUB, CD_COL_FLOAT_MUL, CD_COL_ALLOC_SIZE, CD_COL_ALLOC_PROD, CD_COL_OUTER_PROD,
                               CD_COL_B0_BYTES, CD_COL_B0_UNIQUE_BYTES, CD_COL_B1_BYTES, CD_COL_B2_BYTES};
    fixture *f = *state;
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++)
        for (int d = 2; d < 2 * tab[k].extent; d++) {
            const int len = d / 2; /* as a factor, then as a number of parts */
            char steps[64];
            float before[2][CD_N_COL];
            int64_t n[3];
            int32_t loops[3];
            if (len < 2 || tab[k].extent % len) continue;
            cd_rows r = plain(f, "[]");
            memcpy(before, r.row, sizeof before);
            for (uint32_t l = 0; l < 3; l++) n[l] = turns(&r, l), loops[l] = r.path_ptr[l + 1] - r.path_ptr[l];
            snprintf(steps, sizeof steps, "[[\"SP\", %d, %d, 0, [%d], %d]]", tab[k].stage, tab[k].axis, len, d % 2);
            r = plain(f, steps);
            for (uint32_t l = 0; l < 3; l++) {
                assert_int_equal(turns(&r, l), n[l]);
                assert_int_equal(r.path_ptr[l + 1] - r.path_ptr[l], loops[l] + tab[k].leaf[l]);
            }
            for (size_t c = 0; c < 2 * sizeof same / sizeof *same; c++)
                assert_memory_equal(&r.row[c % 2 * CD_N_COL + (size_t)same[c / 2]], &before[c % 2][same[c / 2]], sizeof(float));
        }
}

TESTS(up, down, splitting_keeps_the_work)
