/* Instructions and cycles of statements: known schedules of a matrix product counted by hand, at
 * vectors of 64 bytes. */
#include "check.h"
#include "made_facts.h"

typedef struct {
    const char *steps; /* C[16, 32] += A[16, 512] * B[512, 32], stage 2, axes i j k */
    const char *what;
    struct {
        int fact;
        double value;
    } is[14];
} known;

#define PRODUCTS (16.0 * 32 * 512)
#define END                                                                                        \
    { CD_N_FACTS, 0 }

static const known row[] = {
    /* i, j outside, k, 16 j as a vector: C stays in one register, every sum waits for the one
     * before */
    {"[[\"SP\", 2, 1, 32, [16], 1], [\"RE\", 2, [0, 1, 3, 2]], [\"AN\", 2, 3, 2]]",
     "vector of j",
     {{CD_FACT_VECTOR_OPS, PRODUCTS / 16},
      {CD_FACT_PART_OPS, 0},
      {CD_FACT_SCALAR_OPS, 0},
      {CD_FACT_AUTO_OPS, 0},
      {CD_FACT_LOADS_SAME, PRODUCTS / 16},
      {CD_FACT_LOADS_UNIT, PRODUCTS / 16 + 32},
      {CD_FACT_STORES_UNIT, 2 * 32},
      {CD_FACT_INIT_STORES, 32},
      {CD_FACT_SPILLS, 0},
      {CD_FACT_CHAIN_CYCLES, 4 * PRODUCTS / 16},
      {CD_FACT_MAIN_ACCUMULATORS, 1},
      {CD_FACT_MAIN_TURNS, 512},
      {CD_FACT_MAIN_VECTOR, 16},
      END}},
    /* the same with 8 i written out inside of k: 8 sums at a time, which do not wait */
    {"[[\"SP\", 2, 1, 32, [16], 1], [\"SP\", 2, 0, 16, [8], 1], [\"RE\", 2, [0, 2, 4, 1, 3]], "
     "[\"AN\", 2, 3, 1], [\"AN\", 2, 4, 2]]",
     "8 accumulators",
     {{CD_FACT_VECTOR_OPS, PRODUCTS / 16},
      {CD_FACT_LOADS_SAME, PRODUCTS / 16},
      {CD_FACT_LOADS_UNIT, PRODUCTS / 16 / 8 + 32},
      {CD_FACT_STORES_UNIT, 2 * 32},
      {CD_FACT_MAIN_ACCUMULATORS, 8},
      {CD_FACT_MAIN_BODY, 8},
      {CD_FACT_SPILLS, 0},
      {CD_FACT_CHAIN_CYCLES, 0},
      {CD_FACT_PORT_CYCLES, PRODUCTS / 16 / 2},
      END}},
    /* 8 of 16 lanes */
    {"[[\"SP\", 2, 1, 32, [8], 1], [\"RE\", 2, [0, 1, 3, 2]], [\"AN\", 2, 3, 2]]",
     "half vectors",
     {{CD_FACT_VECTOR_OPS, 0},
      {CD_FACT_PART_OPS, PRODUCTS / 8},
      {CD_FACT_MAIN_VECTOR, 8},
      {CD_FACT_MAIN_ACCUMULATORS, 1},
      END}},
    /* 16 i as a vector: A and C step by rows */
    {"[[\"RE\", 2, [1, 2, 0]], [\"AN\", 2, 2, 2]]",
     "strided lanes",
     {{CD_FACT_VECTOR_OPS, PRODUCTS / 16},
      {CD_FACT_LOADS_STRIDED, PRODUCTS + 32 * 16},
      {CD_FACT_LOADS_SAME, PRODUCTS / 16},
      {CD_FACT_STORES_STRIDED, 2 * 32 * 16},
      END}},
    /* no schedule: a compiler may find the vector of j around k */
    {"[]",
     "plain",
     {{CD_FACT_VECTOR_OPS, PRODUCTS / 16},
      {CD_FACT_AUTO_OPS, PRODUCTS / 16},
      {CD_FACT_OUTER_OPS, PRODUCTS / 16},
      {CD_FACT_SCALAR_OPS, 0},
      {CD_FACT_LOADS_UNIT, PRODUCTS / 16 + 32},
      {CD_FACT_MAIN_ACCUMULATORS, 2},
      END}},
    /* i innermost, whose elements are rows apart */
    {"[[\"RE\", 2, [1, 2, 0]]]",
     "scalar",
     {{CD_FACT_SCALAR_OPS, PRODUCTS},
      {CD_FACT_VECTOR_OPS, 0},
      {CD_FACT_MAIN_VECTOR, 1},
      {CD_FACT_LOADS_STRIDED, 0},
      END}},
    /* 32 sums in 30 registers: two are loaded and stored in every turn */
    {"[[\"SP\", 2, 1, 32, [32], 1], [\"SP\", 2, 0, 16, [16], 1], [\"RE\", 2, [0, 2, 4, 1, 3]], "
     "[\"AN\", 2, 3, 1], [\"AN\", 2, 4, 2]]",
     "too many accumulators",
     {{CD_FACT_MAIN_ACCUMULATORS, 32},
      {CD_FACT_VECTOR_OPS, PRODUCTS / 16},
      {CD_FACT_SPILLS, 512 * 2 * 2},
      END}},
    {"[[\"AN\", 2, 0, 3]]",
     "parallel i",
     {{CD_FACT_REGIONS, 1},
      {CD_FACT_CHUNKS_LEAST, 16},
      {CD_FACT_SERIAL_SHARE, 0},
      {CD_FACT_SHARE_8, 2.0 / 16},
      {CD_FACT_SHARE_32, 1.0 / 16},
      {CD_FACT_REGION_1_CHUNKS, 16},
      {CD_FACT_REGION_1_SHARE, 1},
      {CD_FACT_REGION_2_CHUNKS, 0},
      {CD_FACT_LINES_SHARED, 1024},
      END}},
};

static const char *const product[] = {MADE_MATMUL(16, 32, 512, "")};

TEST(by_hand) {
    cd_task_registry *tasks;
    cd_program *p;
    cd_arena a = {0};
    cdmpp_err err = {0};
    cd_facts *f;
    assert_ok(prog_tasks(product, 1, &tasks, &err));
    assert_ok(cd_program_new(&p, &err));
    assert_ok(cd_facts_new(&f, &err));
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        cd_record rec;
        cd_nest nest;
        float x[CD_N_FACTS];
        assert_ok(prog_record(&a, "0", PROG_CPU, row[k].steps, &rec, &err));
        assert_ok(cd_program_lower(p, cd_task_registry_at(tasks, 0), &rec, &err));
        assert_ok(cd_program_nest(p, &nest, &err));
        nest.vector_bytes = 64;
        assert_ok(cd_facts_cpu(f, &nest, x, &err));
        for (size_t i = 0; row[k].is[i].fact < CD_N_FACTS; i++) {
            const double got = (double)x[row[k].is[i].fact];
            if (fabs(got - row[k].is[i].value) > 1e-5 * row[k].is[i].value + 1e-9)
                print_error("%s: %s is %g, not %g\n", row[k].what,
                            cd_facts_cols(CD_FACTS_OF_CPU)[row[k].is[i].fact].name, got,
                            row[k].is[i].value),
                    _fail(__FILE__, __LINE__);
        }
    }
    cd_facts_free(f);
    cd_program_free(p);
    cd_task_registry_free(tasks);
    cd_arena_free(&a);
}

TESTS(NULL, NULL, by_hand)
