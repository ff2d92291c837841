/* The worked examples of our notes on TVM (spec 5.10, 6.9): loop nests as text,
 * feature columns by name. Their numbers were printed by TVM v0.9 itself. */
#include "check.h"

#include "features/rows/rows.h"
#include "prog_matmul.h"

/* Longer texts first: what stands in a nest for what. */
typedef struct {
    const char *name, *is;
} shorthand;

static void abbreviate(cd_buf *b, const shorthand *ab) {
    for (; ab->name; ab++) {
        const size_t m = strlen(ab->name), n = strlen(ab->is);
        for (char *p = b->p; (p = strstr(p, ab->is)); p += m) {
            memcpy(p, ab->name, m);
            memmove(p + m, p + n, strlen(p + n) + 1);
        }
    }
}

/* A schedule and the nest that TVM makes of it. */
typedef struct {
    size_t task;
    const char *hw, *steps;
    shorthand ab[9];
    const char *nest;
} example;

static cd_rows build(fixture *f, const example *e) {
    char key[8];
    cd_record r;
    cd_rows rows;
    cd_buf out = {0};
    cdmpp_err err = {0};
    snprintf(key, sizeof key, "%zu", e->task);
    assert_ok(prog_record(&f->a, key, e->hw, e->steps, &r, &err));
    assert_ok(cd_program_build(f->p, cd_task_registry_at(f->tasks, e->task), &r, &rows, &err));
    assert_ok(cd_program_print(f->p, &out, &err));
    abbreviate(&out, e->ab);
    assert_string_equal(out.p, e->nest);
    cd_buf_free(&out);
    return rows;
}

static const example tutorial = {
    0,
    PROG_CPU,
    "[[\"SP\", 2, 0, 1024, [2, 1, 4], 1], [\"SP\", 2, 4, 1024, [1, 1, 8], 1], [\"SP\", 2, 8, 1024, "
    "[4], 1],"
    "[\"RE\", 2, [0, 4, 1, 5, 8, 2, 6, 9, 3, 7]], [\"FSP\", 4, 0, 0, 2], [\"FSP\", 4, 3, 1, 2],"
    "[\"RE\", 4, [0, 3, 1, 4, 2, 5]], [\"CA\", 2, 4, 3], [\"FU\", 4, [0, 1]], [\"AN\", 4, 0, 3],"
    "[\"PR\", 2, 0, \"auto_unroll_max_step$8\"], [\"AN\", 2, 9, 2], [\"AN\", 4, 4, 2]]",
    {{"K", "((k.outer*4) + k.inner)"},
     {"f", "i.outer.outer.j.outer.outer.fused"},
     {"I", "((floordiv(f, 128)*8) + (i.outer.inner*4))"},
     {"J", "(floormod(f, 128)*8)"}},
    "realize out[0 : +1024, 0 : +1024]\n"
    "  parallel (f, 0, 16384)\n"
    "    for (i.outer.inner, 0, 2)\n"
    "      realize matmul[I : +4, J : +8]\n"
    "        attr pragma_auto_unroll_max_step = 8\n"
    "          attr pragma_unroll_explicit = 1\n"
    "            for (i.inner.init, 0, 4)\n"
    "              vectorized (j.inner.init, 0, 8)\n"
    "                matmul[(I + i.inner.init), (J + j.inner.init)] = 0f\n"
    "            for (k.outer, 0, 256)\n"
    "              for (k.inner, 0, 4)\n"
    "                for (i.inner, 0, 4)\n"
    "                  vectorized (j.inner, 0, 8)\n"
    "                    matmul[(I + i.inner), (J + j.inner)]"
    " = (matmul[(I + i.inner), (J + j.inner)] + (A[(I + i.inner), K]*B[K, (J + j.inner)]))\n"
    "        for (i.inner_1, 0, 4)\n"
    "          vectorized (j.inner_1, 0, 8)\n"
    "            out[(I + i.inner_1), (J + j.inner_1)]"
    " = (matmul[(I + i.inner_1), (J + j.inner_1)] + C[(I + i.inner_1), (J + j.inner_1)])\n"};

static const example non_divisible = {
    1,
    PROG_CPU,
    "[[\"SP\",2,0,100,[16],1],[\"SP\",2,2,70,[8],1],[\"SP\",2,4,60,[7],1],[\"RE\",2,[0,2,4,1,3,5]],"
    "[\"FSP\",4,0,0,1],"
    "[\"FSP\",4,2,1,1],[\"RE\",4,[0,2,1,3]],[\"CA\",2,4,1],[\"AN\",4,0,3],[\"PR\",2,0,\"auto_"
    "unroll_max_step$16\"]]",
    {{"I", "((i.outer*16) + i.inner)"},
     {"J", "((j.outer*8) + j.inner)"},
     {"K", "((k.outer*7) + k.inner)"}},
    "realize out[0 : +100, 0 : +70]\n"
    "  parallel (i.outer, 0, 7)\n"
    "    for (j.outer, 0, 9)\n"
    "      realize matmul[(i.outer*16) : +16, (j.outer*8) : +8]\n"
    "        attr pragma_auto_unroll_max_step = 16\n"
    "          attr pragma_unroll_explicit = 1\n"
    "            for (i.inner.init, 0, 16)\n"
    "              for (j.inner.init, 0, 8)\n"
    "                matmul[((i.outer*16) + i.inner.init), ((j.outer*8) + j.inner.init)] = 0f\n"
    "            for (k.outer, 0, 9)\n"
    "              for (i.inner, 0, 16)\n"
    "                for (j.inner, 0, 8)\n"
    "                  for (k.inner, 0, 7)\n"
    "                    if likely((K < 60))\n"
    "                      if likely((I < 100))\n"
    "                        if likely((J < 70))\n"
    "                          matmul[I, J] = (matmul[I, J] + (A[I, K]*B[K, J]))\n"
    "        for (i.inner_1, 0, 16)\n"
    "          for (j.inner_1, 0, 8)\n"
    "            if likely((((i.outer*16) + i.inner_1) < 100))\n"
    "              if likely((((j.outer*8) + j.inner_1) < 70))\n"
    "                out[((i.outer*16) + i.inner_1), ((j.outer*8) + j.inner_1)] = "
    "(matmul[((i.outer*16) + i.inner_1), ((j.outer*8) + j.inner_1)] + C[((i.outer*16) + "
    "i.inner_1), ((j.outer*8) + j.inner_1)])\n"};

static const example cache_write = {
    1,
    PROG_CPU,
    "[[\"CHW\",2,\"local\"],[\"SP\",3,0,100,[25],1],[\"CA\",2,3,0],[\"AN\",3,0,3]]",
    {{"I", "((i.outer*25) + i.c)"}},
    "realize matmul[0 : +100, 0 : +70]\n"
    "  parallel (i.outer, 0, 4)\n"
    "    realize matmul.local[(i.outer*25) : +25, 0 : +70]\n"
    "      for (i.c, 0, 25)\n"
    "        for (j.c, 0, 70)\n"
    "          matmul.local[I, j.c] = 0f\n"
    "          for (k, 0, 60)\n"
    "            matmul.local[I, j.c] = (matmul.local[I, j.c] + (A[I, k]*B[k, j.c]))\n"
    "      for (i.inner, 0, 25)\n"
    "        for (j, 0, 70)\n"
    "          matmul[((i.outer*25) + i.inner), j] = matmul.local[((i.outer*25) + i.inner), j]\n"
    "  realize out[0 : +100, 0 : +70]\n"
    "    for (i, 0, 100)\n"
    "      for (j_1, 0, 70)\n"
    "        out[i, j_1] = (matmul[i, j_1] + C[i, j_1])\n"};

static const example rfactor = {
    1,
    PROG_CPU,
    "[[\"SP\",2,2,60,[4],1],[\"RF\",2,3,2],[\"AN\",2,2,2]]",
    {{"K", "((k.outer*4) + k.inner)"}},
    "realize matmul.rf[0 : +100, 0 : +70, 0 : +4]\n"
    "  for (i, 0, 100)\n"
    "    for (j, 0, 70)\n"
    "      vectorized (k.inner, 0, 4)\n"
    "        matmul.rf[i, j, k.inner] = 0f\n"
    "        for (k.outer, 0, 15)\n"
    "          matmul.rf[i, j, k.inner] = (matmul.rf[i, j, k.inner] + (A[i, K]*B[K, j]))\n"
    "  realize matmul[0 : +100, 0 : +70]\n"
    "    for (ax0, 0, 100)\n"
    "      for (ax1, 0, 70)\n"
    "        matmul[ax0, ax1] = 0f\n"
    "        for (k.inner.v, 0, 4)\n"
    "          matmul[ax0, ax1] = (matmul[ax0, ax1] + matmul.rf[ax0, ax1, k.inner.v])\n"
    "    realize out[0 : +100, 0 : +70]\n"
    "      for (i_1, 0, 100)\n"
    "        for (j_1, 0, 70)\n"
    "          out[i_1, j_1] = (matmul[i_1, j_1] + C[i_1, j_1])\n"};

static const example gpu = {
    2,
    PROG_GPU,
    "[[\"SP\",2,0,512,[2,4,8,2],1],[\"SP\",2,5,512,[4,8,8,1],1],[\"SP\",2,10,512,[2,1],1],"
    "[\"RE\",2,[0,5,1,6,2,7,10,11,3,8,12,4,9]],[\"FSP\",4,0,0,3],[\"FSP\",4,4,1,3],[\"RE\",4,[0,4,"
    "1,5,2,6,3,7]],[\"CA\",2,4,5],"
    "[\"CHR\",1,\"shared\",[2]],[\"CA\",2,3,6],[\"CHR\",0,\"shared\",[3]],[\"CA\",1,4,6],[\"FU\",6,"
    "[0,1]],[\"AN\",6,0,5],"
    "[\"FU\",6,[1,2]],[\"AN\",6,1,4],[\"FU\",6,[2,3]],[\"AN\",6,2,6],[\"FU\",3,[0,1]],[\"SP\",3,0,"
    "16,[1],1],[\"AN\",3,1,2],"
    "[\"FFSP\",3,0,[1,0],1,1],[\"AN\",3,1,6],[\"FU\",1,[0,1]],[\"SP\",1,0,32,[1],1],[\"AN\",1,1,2],"
    "[\"FFSP\",1,0,[1,0],1,1],"
    "[\"AN\",1,1,6],[\"PR\",4,0,\"auto_unroll_max_step$1024\"]]",
    {{"bx", "blockIdx.x"},
     {"vt", "vthread"},
     {"tx", "threadIdx.x"},
     {"ax", "ax0.ax1.fused.outer.outer"},
     {"I", "(((floordiv(bx, 2)*128) + (floordiv(vt, 4)*64)) + (floordiv(tx, 8)*16))"},
     {"J", "(((floormod(bx, 2)*256) + (floormod(vt, 4)*64)) + (floormod(tx, 8)*8))"},
     {"ko", "k.outer.outer"},
     {"ki", "k.outer.inner"}},
    "realize out[0 : +512, 0 : +512]\n"
    "  thread_extent bx = 8\n"
    "    virtual_thread vt = 8\n"
    "      thread_extent tx = 32\n"
    "        realize matmul[I : +16, J : +8]\n"
    "          attr pragma_auto_unroll_max_step = 1024\n"
    "            attr pragma_unroll_explicit = 1\n"
    "              for (i.outer.inner.init, 0, 8)\n"
    "                for (j.outer.inner.init, 0, 8)\n"
    "                  for (i.inner.init, 0, 2)\n"
    "                    matmul[((I + (i.outer.inner.init*2)) + i.inner.init), (J + "
    "j.outer.inner.init)] = 0f\n"
    "              for (ko, 0, 256)\n"
    "                realize A.shared[(floordiv(bx, 2)*128) : +128, (ko*2) : +2]\n"
    "                  for (ax, 0, 8)\n"
    "                    thread_extent tx_1 = 32\n"
    "                      A.shared[(((floordiv(bx, 2)*128) + (ax*16)) + floordiv(tx_1, 2)), "
    "((ko*2) + floormod(tx_1, 2))]"
    " = A[(((floordiv(bx, 2)*128) + (ax*16)) + floordiv(tx_1, 2)), ((ko*2) + floormod(tx_1, 2))]\n"
    "                  realize B.shared[(ko*2) : +2, (floormod(bx, 2)*256) : +256]\n"
    "                    for (ax_1, 0, 16)\n"
    "                      thread_extent tx_2 = 32\n"
    "                        B.shared[((ko*2) + floordiv(ax_1, 8)), ((floormod(bx, 2)*256) + "
    "floormod(((ax_1*32) + tx_2), 256))]"
    " = B[((ko*2) + floordiv(ax_1, 8)), ((floormod(bx, 2)*256) + floormod(((ax_1*32) + tx_2), "
    "256))]\n"
    "                    for (ki, 0, 2)\n"
    "                      for (i.outer.inner, 0, 8)\n"
    "                        for (j.outer.inner, 0, 8)\n"
    "                          for (i.inner, 0, 2)\n"
    "                            matmul[((I + (i.outer.inner*2)) + i.inner), (J + j.outer.inner)]"
    " = (matmul[((I + (i.outer.inner*2)) + i.inner), (J + j.outer.inner)] + (A.shared[((I + "
    "(i.outer.inner*2)) + i.inner), ((ko*2) + ki)]*B.shared[((ko*2) + ki), (J + j.outer.inner)]))\n"
    "          for (i.inner_1, 0, 16)\n"
    "            for (j.inner, 0, 8)\n"
    "              out[(I + i.inner_1), (J + j.inner)]"
    " = (matmul[(I + i.inner_1), (J + j.inner)] + C[(I + i.inner_1), (J + j.inner)])\n"};

/* ---- rows of the tutorial's record ---- */

typedef struct {
    int col;
    double value;
} known;

static void assert_columns(const float *row, const known *k, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!(fabs((double)row[k[i].col] - k[i].value) <= 1e-6 * fabs(k[i].value)))
            print_error("%s\n", cd_cols()[k[i].col].name);
        assert_close((double)row[k[i].col], k[i].value, 1e-6, 0);
    }
}

#define B(block, what) (CD_COL_B0_##what + (block)*CD_COL_BUFFER_STRIDE)

/* Loops f 16384 (parallel), io 2, ko 256, ki 4, ii 4, ji 8 (vectorized): P = 2^30. */
static const known matmul_row[] = {
    {CD_COL_FLOAT_ADDSUB, 30},
    {CD_COL_FLOAT_MUL, 30},
    {CD_COL_INT_ADDSUB, 33},
    {CD_COL_INT_MUL, 33},
    {CD_COL_INT_DIVMOD, 32},
    {CD_COL_FLOAT_DIVMOD, 0},
    {CD_COL_FLOAT_MAD, 0},
    {CD_COL_BOOL_OP, 0},
    {CD_COL_VEC_NUM, 1},
    {CD_COL_VEC_PROD, 3.169925},
    {CD_COL_VEC_LEN, 3.169925},
    {CD_COL_VEC_MIXED, 1},
    {CD_COL_VEC_NONE, 0},
    {CD_COL_UNROLL_NUM, 0},
    {CD_COL_UNROLL_NONE, 1},
    {CD_COL_PARALLEL_NUM, 1},
    {CD_COL_PARALLEL_PROD, 14.0000877},
    {CD_COL_PARALLEL_LEN, 14.0000877},
    {CD_COL_IS_GPU, 0},
    {CD_COL_BLOCK_X, 1},
    {CD_COL_THREAD_X, 1},
    {CD_COL_VTHREAD, 1},
    /* A */
    {B(0, READ), 1},
    {B(0, BYTES), 32},
    {B(0, UNIQUE_BYTES), 22},
    {B(0, LINES), 27},
    {B(0, UNIQUE_LINES), 16.0000229},
    {B(0, REUSE_LOOP), 1},
    {B(0, REUSE_DIS_ITER), 1},
    {B(0, REUSE_DIS_BYTES), 3.70044},
    {B(0, REUSE_CT), 3.169925},
    {B(0, STRIDE), 0},
    /* B */
    {B(1, READ), 1},
    {B(1, LINES), 26},
    {B(1, REUSE_LOOP), 1},
    {B(1, REUSE_DIS_ITER), 3.169925},
    {B(1, REUSE_DIS_BYTES), 6.1085243},
    {B(1, REUSE_CT), 2.3219281},
    {B(1, STRIDE), 1},
    /* matmul */
    {B(2, READWRITE), 1},
    {B(2, LINES), 26},
    {B(2, REUSE_LOOP), 1},
    {B(2, REUSE_DIS_ITER), 5.044394},
    {B(2, REUSE_DIS_BYTES), 7.4676056},
    {B(2, REUSE_CT), 2.3219281},
    {B(2, STRIDE), 1},
    {B(3, READ), 0},
    {B(3, BYTES), 0},
    {B(4, REUSE_NONE), 0},
    {CD_COL_CURVE_0, 0.65708822},
    {CD_COL_CURVE_1, 0.820047319},
    {CD_COL_CURVE_2, 0.971889198},
    {CD_COL_CURVE_3, 0.997102976},
    {CD_COL_CURVE_4, 1.02231681},
    {CD_COL_CURVE_5, 1.09095752},
    {CD_COL_CURVE_6, 1.14681733},
    {CD_COL_CURVE_7, 1.20267713},
    {CD_COL_CURVE_8, 1.25853705},
    {CD_COL_CURVE_9, 1.31439686},
    {CD_COL_ALLOC_SIZE, 7.01122713},
    {CD_COL_ALLOC_PROD, 20.0000019},
    {CD_COL_ALLOC_OUTER_PROD, 15.0000439},
    {CD_COL_ALLOC_INNER_PROD, 15.0000439},
    {CD_COL_OUTER_PROD, 30},
    {CD_COL_NUM_LOOPS, 2.80735493},
    {CD_COL_AUTO_UNROLL, 3.169925},
};

/* Loops f, io, ii, ji: P = 2^20. */
static const known out_row[] = {
    {CD_COL_FLOAT_ADDSUB, 20.0000019},
    {CD_COL_INT_ADDSUB, 22.5849628},
    {CD_COL_INT_MUL, 22.5849628},
    {CD_COL_INT_DIVMOD, 22},
    {B(0, READ), 1},
    {B(0, REUSE_NONE), 1}, /* C */
    {B(1, READ), 1},
    {B(1, REUSE_SERIAL), 1},
    {B(1, REUSE_DIS_ITER), 5.04439402},
    {B(1, REUSE_DIS_BYTES), 15.0279493},
    {B(1, REUSE_CT), 1.58496249}, /* matmul */
    {B(2, WRITE), 1},
    {B(3, READ), 0},
    {CD_COL_ALLOC_SIZE, 22},
    {CD_COL_ALLOC_PROD, 20.0000019},
    {CD_COL_ALLOC_OUTER_PROD, 1},
    {CD_COL_ALLOC_INNER_PROD, 20.0000019},
    {CD_COL_AUTO_UNROLL, 0},
};

static void tutorial_rows(void **state) {
    const cd_rows r = build(*state, &tutorial);
    assert_int_equal(r.n_row, 2);
    assert_columns(r.row + CD_N_COL, matmul_row, sizeof matmul_row / sizeof *matmul_row);
    assert_columns(r.row, out_row, sizeof out_row / sizeof *out_row);
}

/* Root, realize out, f, io, realize matmul, two pragmas: then the stores of matmul, and that of
 * out. */
static void tutorial_tree(void **state) {
    static const int32_t tree[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  -1, -1,
                                   -1, 10, 11, 12, 13, 14, -1, -1, -1, -1, -1, -1,
                                   -1, 15, 16, 17, -1, -1, -1, -1, -1, -1, -1, -1};
    static const int32_t leaf_node[] = {9, 14, 17}, leaf_row[] = {1, 1, 0}, ptr[] = {0, 4, 10, 14};
    static const int64_t extent[] = {16384, 2, 4, 8, 16384, 2, 256, 4, 4, 8, 16384, 2, 4, 8};
    static const uint8_t kind[] = {1, 0, 0, 2, 1, 0, 0, 0, 0, 2, 1, 0, 0, 2};
    const cd_rows r = build(*state, &tutorial);
    assert_int_equal(r.n_leaf, 3);
    assert_memory_equal(r.leaf_node, leaf_node, sizeof leaf_node);
    for (uint32_t k = 0; k < r.n_leaf; k++) assert_int_equal(r.tree[r.leaf_pos[k]], r.leaf_node[k]);
    assert_memory_equal(r.leaf_row, leaf_row, sizeof leaf_row);
    assert_memory_equal(r.path_ptr, ptr, sizeof ptr);
    assert_memory_equal(r.path_extent, extent, sizeof extent);
    assert_memory_equal(r.path_kind, kind, sizeof kind);
    assert_int_equal(r.n_tree, sizeof tree / sizeof *tree);
    assert_memory_equal(r.tree, tree, sizeof tree);
    /* The update writes last: its leaf is the row, but for what init counted (nothing here). */
    assert_memory_equal(r.leaf + CD_N_COL, r.row + CD_N_COL, CD_N_COL * sizeof *r.row);
}

/* The pragma of matmul encloses both its nests but not out's; the cache inherits it. */
static void gpu_rows(void **state) {
    static const known lengths[] = {{CD_COL_IS_GPU, 1},         {CD_COL_BLOCK_X, 3.169925},
                                    {CD_COL_VTHREAD, 3.169925}, {CD_COL_THREAD_X, 5.0443941},
                                    {CD_COL_BLOCK_Y, 1},        {CD_COL_THREAD_Z, 1},
                                    {CD_COL_VEC_NUM, 0}};
    const cd_rows r = build(*state, &gpu);
    assert_int_equal(r.n_row, 4);
    for (uint32_t k = 0; k < r.n_row; k++)
        assert_columns(r.row + k * CD_N_COL, lengths, sizeof lengths / sizeof *lengths);
    const double unroll[] = {0, 10.0014082, 10.0014082, 10.0014082};
    for (uint32_t k = 0; k < 4; k++)
        assert_close((double)r.row[k * CD_N_COL + CD_COL_AUTO_UNROLL], unroll[k], 1e-6, 0);
}

static void nests(void **state) {
    build(*state, &non_divisible);
    build(*state, &cache_write);
    build(*state, &rfactor);
}

/* A schedule that was found for another shape: its steps say 128, 64 and 64 iterations, the axes
 * have 100, 70 and 60. TVM splits the axes that are there; the extents that a record says decide
 * nothing, and factors need not divide. */
static void extents_of_another_shape(void **state) {
    example e = non_divisible;
    cd_rows r = build(*state, &e);
    const size_t n = (size_t)r.n_row * CD_N_COL * sizeof *r.row;
    float *own = test_malloc(n);
    memcpy(own, r.row, n);
    e.steps = "[[\"SP\",2,0,128,[16],1],[\"SP\",2,2,64,[8],1],[\"SP\",2,4,0,[7],1],[\"RE\",2,[0,2,"
              "4,1,3,5]],[\"FSP\",4,0,0,1],"
              "[\"FSP\",4,2,1,1],[\"RE\",4,[0,2,1,3]],[\"CA\",2,4,1],[\"AN\",4,0,3],[\"PR\",2,0,"
              "\"auto_unroll_max_step$16\"]]";
    r = build(*state, &e); /* the same nest, too */
    assert_int_equal((size_t)r.n_row * CD_N_COL * sizeof *r.row, n);
    assert_memory_equal(r.row, own, n);
    test_free(own);
}

/* A record's own limits decide. 128*2 + 2*256 floats are 3 KiB of shared memory; 32 threads. */
static void gpu_limits(void **state) {
    static const struct {
        const char *hw;
        cdmpp_status want;
    } tab[] = {{"\"cuda\", [-1, 16, 64, 3072, 2147483647, 32, 8, 32]", CDMPP_OK},
               {"\"cuda\", [-1, 16, 64, 3071, 2147483647, 32, 8, 32]", CDMPP_EREJECTED},
               {"\"cuda\", [-1, 16, 64, 3072, 2147483647, 31, 8, 32]", CDMPP_EREJECTED},
               {"\"llvm\", [-1, 16, 64, 3071, 2147483647, 31, 8, 32]", CDMPP_OK}};
    fixture *f = *state;
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        cd_record r;
        cd_rows rows;
        cdmpp_err err = {0};
        assert_ok(prog_record(&f->a, "2", tab[k].hw, gpu.steps, &r, &err));
        assert_status(cd_program_build(f->p, cd_task_registry_at(f->tasks, 2), &r, &rows, &err),
                      tab[k].want);
    }
}

/* A failed build leaves nothing behind: the next one gives the same bytes. */
static void builds_are_independent(void **state) {
    fixture *f = *state;
    cd_record bad;
    cd_rows r;
    cdmpp_err err = {0};
    r = build(f, &gpu);
    const size_t n = (size_t)r.n_row * CD_N_COL * sizeof *r.row;
    float *first = test_malloc(n);
    memcpy(first, r.row, n);
    build(f, &rfactor);
    assert_ok(prog_record(&f->a, "1", PROG_CPU, "[[\"SP\", 2, 0, 0, [4], 1], [\"CA\", 2, 4, 7]]",
                          &bad, &err));
    assert_status(cd_program_build(f->p, cd_task_registry_at(f->tasks, 1), &bad, &r, &err),
                  CDMPP_EINVALID);
    assert_string_equal(err.key, "i[1][1][1] (CA)");
    r = build(f, &gpu);
    assert_memory_equal(first, r.row, n);
    test_free(first);
}

TESTS(up, down, tutorial_rows, tutorial_tree, nests, extents_of_another_shape, gpu_rows, gpu_limits,
      builds_are_independent)
