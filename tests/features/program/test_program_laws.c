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
    } tab[] = {{2, 0, 100, {true, true, false}},
               {2, 1, 70, {true, true, false}},
               {2, 2, 60, {false, true, false}},
               {4, 0, 100, {false, false, true}},
               {4, 1, 70, {false, false, true}}};
    static const int same[] = {CD_COL_FLOAT_ADDSUB,    CD_COL_FLOAT_MUL,  CD_COL_ALLOC_SIZE,
                               CD_COL_ALLOC_PROD,      CD_COL_OUTER_PROD, CD_COL_B0_BYTES,
                               CD_COL_B0_UNIQUE_BYTES, CD_COL_B1_BYTES,   CD_COL_B2_BYTES};
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
            for (uint32_t l = 0; l < 3; l++)
                n[l] = turns(&r, l), loops[l] = r.path_ptr[l + 1] - r.path_ptr[l];
            snprintf(steps, sizeof steps, "[[\"SP\", %d, %d, 0, [%d], %d]]", tab[k].stage,
                     tab[k].axis, len, d % 2);
            r = plain(f, steps);
            for (uint32_t l = 0; l < 3; l++) {
                assert_int_equal(turns(&r, l), n[l]);
                assert_int_equal(r.path_ptr[l + 1] - r.path_ptr[l], loops[l] + tab[k].leaf[l]);
            }
            for (size_t c = 0; c < 2 * sizeof same / sizeof *same; c++)
                assert_memory_equal(&r.row[c % 2 * CD_N_COL + (size_t)same[c / 2]],
                                    &before[c % 2][same[c / 2]], sizeof(float));
        }
}

/* All that is known of two programs: their rows and the loops around each leaf. */
static void same_program(fixture *f, const char *a, const char *b) {
    static float row[64 * CD_N_COL];
    static int64_t extent[256];
    cd_rows r = plain(f, a);
    const uint32_t n_row = r.n_row;
    const int32_t n_loop = r.path_ptr[r.n_leaf];
    assert_true(n_row <= 64 && n_loop <= 256);
    memcpy(row, r.row, n_row * CD_N_COL * sizeof *row);
    for (int32_t i = 0; i < n_loop; i++) extent[i] = r.path_extent[i];
    r = plain(f, b);
    bool same = r.n_row == n_row && r.path_ptr[r.n_leaf] == n_loop &&
                !memcmp(row, r.row, n_row * CD_N_COL * sizeof *row);
    for (int32_t i = 0; same && i < n_loop; i++) same = extent[i] == r.path_extent[i];
    if (!same) fail_msg("%s is not %s", a, b);
}

/* A split that follows others is a split by their lengths: of one, the first n - 1 and the product
 * of the rest; of many, the product at a level. */
static void following_is_splitting(void **state) {
#define FIRST "[[\"SP\", 2, 0, 100, [5, 2, 5], 1],"
#define TWO   "[[\"SP\", 2, 0, 100, [2, 5], 1],[\"SP\", 2, 3, 70, [7, 2], 1],"
    static const char *const tab[][2] = {
        {FIRST "[\"FSP\", 4, 0, 0, 1]]", FIRST "[\"SP\", 4, 0, 100, [50], 1]]"},
        {FIRST "[\"FSP\", 4, 0, 0, 2]]", FIRST "[\"SP\", 4, 0, 100, [5, 10], 1]]"},
        {FIRST "[\"FSP\", 4, 0, 0, 3]]", FIRST "[\"SP\", 4, 0, 100, [5, 2, 5], 1]]"},
        {FIRST "[\"FSP\", 4, 0, 0, 4]]", FIRST "[\"SP\", 4, 0, 100, [5, 2, 5, 1], 1]]"},
        {FIRST "[\"FSP\", 4, 1, 0, 2]]", FIRST "[\"SP\", 4, 1, 70, [5, 10], 1]]"},
        {TWO "[\"FFSP\", 4, 0, [0], 0, 1]]", TWO "[\"SP\", 4, 0, 100, [2], 1]]"},
        {TWO "[\"FFSP\", 4, 0, [0], 1, 1]]", TWO "[\"SP\", 4, 0, 100, [5], 1]]"},
        {TWO "[\"FFSP\", 4, 0, [0], 1, 0]]", TWO "[\"SP\", 4, 0, 100, [5], 0]]"},
        {TWO "[\"FFSP\", 4, 1, [0, 1], 0, 1]]", TWO "[\"SP\", 4, 1, 70, [14], 1]]"},
        {TWO "[\"FFSP\", 4, 1, [1, 0], 1, 0]]", TWO "[\"SP\", 4, 1, 70, [10], 0]]"},
    };
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++)
        same_program(*state, tab[k][0], tab[k][1]);
}

/* Who is what among the tensors of the last program. */
static void tensors_of_a_nest(void **state) {
    static const char *const one[] = {
        "\"args\": [\"A\", \"W\", \"P.v0\", \"P.v1\"], \"ops\": [{\"name\": \"A\", \"shape\": [8, "
        "4], \"dtype\": \"float32\"},"
        "{\"name\": \"W\", \"shape\": [8, 4], \"dtype\": \"float16\", \"layout_free\": true}, "
        "{\"name\": \"M\", \"axis\": [[\"i\", 0, 8], [\"k\", 0, 4]], \"body\": \"A[i, "
        "k]*float32(W[i, k])\"},"
        "{\"name\": \"P\", \"axis\": [[\"i\", 0, 8]], \"reduce_axis\": [[\"k\", 0, 4]], "
        "\"reduce\": {\"lhs\": [\"p\", \"q\"], \"rhs\": [\"r\", \"s\"],"
        "\"result\": [\"p + r\", \"max(q, s)\"], \"identity\": [\"0\", \"-1.0\"]}, \"body\": "
        "[\"k\", \"M[i, k]\"]}]"};
    static const struct {
        const char *name, *scope;
        uint32_t rank, output;
        int arg;
        bool written, layout_free, reduced;
        cd_dtype dtype;
    } want[] = {{"A", "", 2, 0, 0, false, false, false, CD_F32},
                {"W", "", 2, 0, 1, false, true, false, CD_DTYPE(CD_T_FLOAT, 16)},
                {"M", "", 2, 0, -1, true, false, false, CD_F32},
                {"P.v0", "", 1, 0, 2, true, false, true, CD_I32},
                {"P.v1", "", 1, 1, 3, true, false, true, CD_F32}};
    fixture *f = *state;
    cd_task_registry *tasks;
    cd_record r;
    cd_nest nest;
    cdmpp_err err = {0};
    assert_ok(prog_tasks(one, 1, &tasks, &err));
    assert_ok(prog_record(&f->a, "0", PROG_CPU, "[]", &r, &err));
    assert_ok(cd_program_lower_code(f->p, cd_task_registry_at(tasks, 0), &r, &err));
    assert_ok(cd_program_nest(f->p, &nest, &err));
    assert_int_equal(nest.n_tensor, 5);
    assert_int_equal(nest.n_arg, 4);
    assert_int_equal(nest.vector_bytes, 32);
    for (uint32_t k = 0; k < 5; k++) {
        const cd_nest_tensor *t = &nest.tensor[k];
        if (strcmp(t->name, want[k].name)) fail_msg("tensor %u is %s", k, t->name);
        assert_string_equal(t->scope, want[k].scope);
        assert_true(t->rank == want[k].rank && t->shape[0] == 8 &&
                    (t->rank == 1 || t->shape[1] == 4) && t->dtype == want[k].dtype &&
                    t->output == want[k].output);
        assert_true(t->arg == want[k].arg && t->written == want[k].written &&
                    t->layout_free == want[k].layout_free &&
                    (t->reducer != NULL) == want[k].reduced);
        if (t->arg >= 0) assert_int_equal(nest.arg[t->arg], k);
    }
    cd_task_registry_free(tasks);
}

TESTS(up, down, splitting_keeps_the_work, following_is_splitting, tensors_of_a_nest)
