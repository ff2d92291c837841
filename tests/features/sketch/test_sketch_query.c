/* Questions about a state of four operators, answered by hand: a, which b and c read; b, which c
 * reads; c, which d reads. */
#include "check.h"
#include "features/sketch/sketch_internal.h"

enum { A, B, C, D, N };
static const int64_t shape[] = {4, 8}, turned[] = {8, 4};
static cd_sketch_iter loop[N][3];
static cd_sketch_op op[N];
enum { AB, AC, BC, CD, EDGES };
/* equal here: by reader and by what is read they have one order */
static cd_sketch_edge in[EDGES], out[EDGES];
static const uint32_t first_in[] = {0, 0, 1, 3, 4}, first_out[] = {0, 2, 3, 4, 4};
static cd_sketch_program prog = {
    .n = N, .op = op, .in = in, .out = out, .first_in = first_in, .first_out = first_out};
static cd_sketch_stage stage[N];
static uint32_t met[N], value[N], list[N];
static cd_sketch_marks marks = {met, value, list, N, 0};
static cd_sketch_state s = {.stage = stage, .n_stage = N, .prog = &prog, .marks = &marks};

static void set_common(uint32_t edge, uint32_t n) { in[edge].common = out[edge].common = n; }
static void set_same(uint32_t edge, bool same) { in[edge].same = out[edge].same = same; }

static int fresh(void **state) {
    (void)state;
    const cd_sketch_edge edge[] = {
        {A, B, 2, false}, {A, C, 2, false}, {B, C, 1, true}, {C, D, 1, true}};
    memcpy(in, edge, sizeof edge), memcpy(out, edge, sizeof edge);
    for (int k = 0; k < N; k++) {
        op[k] = (cd_sketch_op){.rank = 2, .n_axis = 2, .shape = shape};
        for (int i = 0; i < 3; i++)
            loop[k][i] = (cd_sketch_iter){.ext = shape[i % 2], .kind = CD_SKETCH_SPATIAL};
        stage[k] = (cd_sketch_stage){.it = loop[k], .n = 2, .child = -1, .next = -1};
    }
    s.n_step = 0;
    return 0;
}

static void readers_are(uint32_t of, uint32_t n, uint32_t first, uint32_t second) {
    const uint32_t *by;
    assert_int_equal(cd_sketch_consumers(&s, of, &by), n);
    if (n) assert_int_equal(by[0], first);
    if (n > 1) assert_int_equal(by[1], second);
}

/* What is inlined is passed through. */
TEST(who_reads) {
    fresh(NULL);
    readers_are(A, 2, B, C), readers_are(B, 1, C, 0), readers_are(C, 1, D, 0),
        readers_are(D, 0, 0, 0);
    assert_true(!cd_sketch_has_producers(&s, A) && cd_sketch_has_producers(&s, B) &&
                cd_sketch_has_producers(&s, D));
    stage[B].at = CD_SKETCH_INLINED;
    readers_are(A, 1, C, 0);
    stage[C].at = CD_SKETCH_INLINED;
    readers_are(A, 1, D, 0), readers_are(B, 1, D, 0);
    assert_true(cd_sketch_has_producers(&s, D)); /* a, through both */
    stage[A].at = CD_SKETCH_INLINED;
    assert_false(cd_sketch_has_producers(&s, D));
}

/* The only reader, if every operator on the way is read by it alone, element by element. */
TEST(a_matched_reader) {
    fresh(NULL);
    assert_int_equal(cd_sketch_matched_consumer(&s, C), D);
    assert_int_equal(cd_sketch_matched_consumer(&s, B), C);
    assert_int_equal(cd_sketch_matched_consumer(&s, A), -1);
    assert_int_equal(cd_sketch_matched_consumer(&s, D), -1);
    stage[C].at = CD_SKETCH_INLINED;
    assert_int_equal(cd_sketch_matched_consumer(&s, B), D);
    set_same(CD, false);
    assert_int_equal(cd_sketch_matched_consumer(&s, B), -1);
    fresh(NULL), op[D].shape = turned;
    assert_int_equal(cd_sketch_matched_consumer(&s, C), -1);
    fresh(NULL), op[D].rank = 1;
    assert_int_equal(cd_sketch_matched_consumer(&s, C), -1);
    fresh(NULL), op[D].shared = true;
    assert_int_equal(cd_sketch_matched_consumer(&s, C), -1);
    fresh(NULL), op[C].placeholder = true;
    assert_int_equal(cd_sketch_matched_consumer(&s, C), -1);
    fresh(NULL), loop[C][1].kind = CD_SKETCH_REDUCE;
    assert_int_equal(cd_sketch_matched_consumer(&s, C), D);
    loop[D][0].kind = CD_SKETCH_REDUCE;
    assert_int_equal(cd_sketch_matched_consumer(&s, C), -1);
}

/* Several readers count as one where all are computed in one stage. */
TEST(a_single_reader) {
    fresh(NULL);
    assert_int_equal(cd_sketch_single_consumer(&s, D), -1);
    assert_int_equal(cd_sketch_single_consumer(&s, C), D);
    assert_int_equal(cd_sketch_single_consumer(&s, A), -1);
    cd_sketch_attach(&s, B, C, 0);
    assert_int_equal(cd_sketch_single_consumer(&s, A), C);
    cd_sketch_attach(&s, B, D, 0);
    assert_int_equal(cd_sketch_single_consumer(&s, A), -1);
    cd_sketch_attach(&s, C, D, 0);
    assert_int_equal(cd_sketch_single_consumer(&s, A), D);
}

/* The least of all paths, and no more than the stage has. */
TEST(outer_loops_in_common) {
    fresh(NULL);
    assert_int_equal(cd_sketch_common_outer(&s, A, A), 2);
    assert_int_equal(cd_sketch_common_outer(&s, A, B), 2);
    assert_int_equal(cd_sketch_common_outer(&s, A, C), 1); /* through b */
    assert_int_equal(cd_sketch_common_outer(&s, B, D), 1);
    assert_int_equal(cd_sketch_common_outer(&s, D, A), 0); /* no path */
    set_common(BC, 7);
    assert_int_equal(cd_sketch_common_outer(&s, A, C), 2);
    op[A].rank = 1;
    assert_int_equal(cd_sketch_common_outer(&s, A, C), 1);
}

/* Caches and factors shift the numbers of the stages behind them. */
TEST(steps_of_a_stage) {
    static const cd_record_step_kind adds[] = {CD_RECORD_STEP_CHR, CD_RECORD_STEP_CHW,
                                               CD_RECORD_STEP_RF};
    uint32_t at[4];
    fresh(NULL);
    for (size_t k = 0; k < 3; k++) {
        cd_record_step step[] = {{.kind = CD_RECORD_STEP_SP, .stage = 1},
                                 {.kind = CD_RECORD_STEP_SP, .stage = 1},
                                 {.kind = CD_RECORD_STEP_FU, .stage = 0},
                                 {.kind = adds[k], .stage = 0},
                                 {.kind = CD_RECORD_STEP_SP, .stage = 3}};
        s.step = step, s.n_step = 5;
        assert_true(cd_sketch_has_step(&s, 2, CD_RECORD_STEP_SP) &&
                    !cd_sketch_has_step(&s, 1, CD_RECORD_STEP_SP) &&
                    cd_sketch_has_step(&s, 3, CD_RECORD_STEP_SP));
        assert_true(cd_sketch_has_step(&s, 0, CD_RECORD_STEP_FU) &&
                    cd_sketch_has_step(&s, 1, CD_RECORD_STEP_FU) &&
                    !cd_sketch_has_step(&s, 2, CD_RECORD_STEP_FU));
        assert_true(cd_sketch_stage_splits(&s, 2, at, 4) == 2 && at[0] == 1 && at[1] == 0);
        assert_true(cd_sketch_stage_splits(&s, 3, at, 4) == 1 && at[0] == 4);
        assert_true(cd_sketch_stage_splits(&s, 1, at, 4) == 0 &&
                    cd_sketch_stage_splits(&s, 2, at, 1) == 1);
        step[3].kind = CD_RECORD_STEP_CI; /* adds none */
        assert_true(cd_sketch_has_step(&s, 1, CD_RECORD_STEP_SP) &&
                    !cd_sketch_has_step(&s, 2, CD_RECORD_STEP_SP) &&
                    cd_sketch_stage_splits(&s, 1, at, 4) == 2);
    }
}

TEST(loops_of_a_stage) {
    int64_t space, reduce;
    fresh(NULL);
    assert_false(cd_sketch_has_reduce(&stage[C]) || cd_sketch_is_tiled(&s, C) ||
                 cd_sketch_has_cross_thread(&s, C) || cd_sketch_has_attached(&s, C, 1));
    loop[C][1].kind = CD_SKETCH_SPECIAL;
    assert_false(cd_sketch_has_reduce(&stage[C]));
    loop[C][1].kind = CD_SKETCH_MIXED;
    assert_true(cd_sketch_has_reduce(&stage[C]));
    loop[C][2] = (cd_sketch_iter){.ext = 5, .kind = CD_SKETCH_REDUCE, .ann = CD_SKETCH_THREAD_X},
    stage[C].n = 3;
    cd_sketch_volume(&stage[C], &space, &reduce);
    assert_true(space == 4 && reduce == 5 && cd_sketch_is_tiled(&s, C) &&
                cd_sketch_has_cross_thread(&s, C) && !cd_sketch_has_cross_thread(&s, D));
    op[C].n_raxis = 1;
    assert_false(cd_sketch_is_tiled(&s, C));
    op[C].n_raxis = 2, op[C].placeholder = true;
    assert_false(cd_sketch_is_tiled(&s, C));
    cd_sketch_attach(&s, C, D, 1);
    assert_true(cd_sketch_has_cross_thread(&s, D) && cd_sketch_has_attached(&s, D, 1) &&
                !cd_sketch_has_attached(&s, D, 0) && !cd_sketch_has_attached(&s, B, 1));
    loop[C][2].ann = CD_SKETCH_VECTORIZE;
    assert_false(cd_sketch_has_cross_thread(&s, C) || cd_sketch_has_cross_thread(&s, D));
}

/* Stages attached to one are a list in ascending order, whatever the order of attaching. */
TEST(attached_stages) {
    fresh(NULL);
    cd_sketch_attach(&s, B, D, 1), cd_sketch_attach(&s, C, D, 0), cd_sketch_attach(&s, A, D, 1);
    assert_true(stage[D].child == A && stage[A].next == B && stage[B].next == C &&
                stage[C].next == -1);
    cd_sketch_detach(&s, B);
    assert_true(stage[D].child == A && stage[A].next == C && stage[B].at == CD_SKETCH_ROOT &&
                !cd_sketch_has_attached(&s, D, 2));
    cd_sketch_attach(&s, A, C, 1);
    assert_true(stage[D].child == C && stage[C].child == A && stage[A].next == -1 &&
                cd_sketch_has_attached(&s, C, 1));
    cd_sketch_detach(&s, B); /* of none */
    assert_int_equal(stage[C].child, A);
}

TEST(what_is_inlined) {
    cd_sketch_space gpu = {.gpu = true}, cpu = {.gpu = false};
    fresh(NULL);
    assert_true(cd_sketch_can_inline(&gpu, &s, B) && !cd_sketch_can_inline(&cpu, &s, B));
    op[B].strict = true;
    assert_true(cd_sketch_can_inline(&cpu, &s, B));
    op[B].output = true;
    assert_false(cd_sketch_can_inline(&gpu, &s, B) || cd_sketch_can_inline(&cpu, &s, B));
    op[B].output = false, op[B].placeholder = true;
    assert_false(cd_sketch_can_inline(&gpu, &s, B) || cd_sketch_can_inline(&cpu, &s, B));
    op[B].placeholder = false, loop[B][0].kind = CD_SKETCH_REDUCE;
    assert_false(cd_sketch_can_inline(&gpu, &s, B) || cd_sketch_can_inline(&cpu, &s, B));
}

TESTS(NULL, NULL, who_reads, a_matched_reader, a_single_reader, outer_loops_in_common,
      steps_of_a_stage, loops_of_a_stage, attached_stages, what_is_inlined)
