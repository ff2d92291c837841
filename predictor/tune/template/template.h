/* The door of predictor/tune/template: other rooms include this header and no other of the room.
 *
 * Templates: for a sum of products (matrix products, convolutions) the tiles that suit a processor
 * are computed from its registers and caches, not searched for.
 *
 *   task ──> nest            what is summed, which axis is in which operand  template_cost.c
 *   machine                  vector registers, L1, L2                        template_machine.c
 *   nest, machine ──> block  legal tiles: registers, L1, L2, then threads    template_block.c
 *                    cost    multiply-adds, loads, bytes between the caches  template_cost.c
 *   block ──> steps          a program of Ansor's space, as a record has it  template_machine.c
 *
 * A block is the order of Ansor's tiles, SSRSRS, with numbers in it:
 *
 *   for S0 (threads)  for S1  for R0  for S2 (L2)  for R1 (L1)  S3 (registers)
 *
 * The idea is BOLT's (Xing et al., MLSys 2022): a template knows what is good for its hardware, so
 * ten candidates do. Its templates are CUTLASS's, these are loops of our own generators. No state,
 * any thread. */
#ifndef CD_PREDICTOR_TUNE_TEMPLATE_DOOR_H
#define CD_PREDICTOR_TUNE_TEMPLATE_DOOR_H
#include "features/device/device.h"
#include "features/sketch/sketch.h"

enum { CD_TEMPLATE_AXES = 10, CD_TEMPLATE_RANK = CD_TEMPLATE_AXES };

/* ---- template_machine.c ---- */
/* What a template must know of a processor. */
typedef struct cd_template_machine {
    int64_t vector_bytes, registers; /* of a vector; how many there are */
    int64_t l1_bytes, l2_bytes;      /* of a core */
    int64_t threads;
} cd_template_machine;

/* This processor with the instructions of `isa` (CD_ISAS; NULL or "": by the target). Errors:
 * EUSAGE, EBACKEND (cd_isa_choose), EMODEL (the system does not tell the size of a cache: name a
 * device). */
cdmpp_status cd_template_machine_here(const char *isa, const char *target, int64_t threads,
                                      cd_template_machine *out, cdmpp_err *err);
/* A described one. Registers follow from the width: 32 of 512 bits, else 16. Errors: EMODEL: no
 * CPU, or simd_bits, l1_kb or l2_kb is not known; the key names it. */
cdmpp_status cd_template_machine_of(const cd_device *d, int64_t threads, cd_template_machine *out,
                                    cdmpp_err *err);

/* ---- template_cost.c ---- */
typedef struct cd_template_operand {
    uint32_t rank;
    int64_t extent[CD_TEMPLATE_RANK]; /* of the tensor */
    /* index of dimension d = sum over axes a of factor[d][a] * a, and a constant */
    int64_t factor[CD_TEMPLATE_RANK][CD_TEMPLATE_AXES];
    bool packed; /* a weight: it lies in the order in which the loops read it */
    /* made by an operator with conditions (padding), which has a loop nest of its own */
    bool guarded;
    uint32_t op; /* that makes it */
} cd_template_operand;

/* out[space axes] += in[0] * in[1]; the axes of the result first, then those of the sum. */
typedef struct cd_template_nest {
    uint32_t op; /* of the task */
    uint32_t n_space, n_axis;
    int64_t extent[CD_TEMPLATE_AXES];
    cd_template_operand in[2], out;
} cd_template_nest;

/* Does the index of any dimension depend on the axis? */
bool cd_template_touches(const cd_template_operand *o, uint32_t axis);
/* Recognised by its loops, not by names: the task's only sum is of products of two float32 elements
 * (or of dot4 of two words, which a processor computes like one) with linear indices, each axis of
 * the result is in some operand, each operand has one of its own, and the axes of the sum are in
 * both. Errors: EUNSUPPORTED, which says what is missing; ENOTASK (no DAG). */
cdmpp_status cd_template_nest_read(const cd_task *t, bool gpu, cd_template_nest *out,
                                   cdmpp_err *err);

/* ---- template_block.c ---- */
typedef enum cd_template_copy {
    CD_TEMPLATE_COPY_ROOT,
    CD_TEMPLATE_COPY_OUTER,
    CD_TEMPLATE_COPY_INNER,
    CD_TEMPLATE_COPIES
} cd_template_copy;

typedef struct cd_template_block {
    /* lengths of the axes of the result */
    int32_t s1[CD_TEMPLATE_AXES], s2[CD_TEMPLATE_AXES], s3[CD_TEMPLATE_AXES];
    int32_t r1[CD_TEMPLATE_AXES]; /* of the sum, at the places of its axes */
    uint32_t unroll;              /* auto_unroll_max_step */
    /* where a guarded operand is made: first; for each S0; for each R0 */
    uint8_t copy;
    double cost; /* cd_template_cost */
} cd_template_block;

/* Vectors that hold n elements: as the generators cut them, powers of two from the longest on. */
int64_t cd_template_vectors(const cd_template_machine *m, int64_t n);
/* Registers that the accumulators of s3 and one row of the other operand need. */
int64_t cd_template_registers(const cd_template_nest *n, const cd_template_machine *m,
                              const int32_t *s3);
/* Bytes that the operands of one L1 block (S3 x R1) and one L2 block (S2 x R1) touch. */
int64_t cd_template_l1_bytes(const cd_template_nest *n, const cd_template_machine *m,
                             const cd_template_block *b);
int64_t cd_template_l2_bytes(const cd_template_nest *n, const cd_template_machine *m,
                             const cd_template_block *b);
/* Does the block keep the limits: lengths divide the extents, S3 fits the registers, the L1 and L2
 * blocks their caches? */
bool cd_template_legal(const cd_template_nest *n, const cd_template_machine *m,
                       const cd_template_block *b);
/* All register blocks that keep the limits, cheapest first, in `a`. Errors: ENOMEM. */
cdmpp_status cd_template_register_blocks(const cd_template_nest *n, const cd_template_machine *m,
                                         cd_arena *a, cd_template_block **out, uint32_t *n_out,
                                         cdmpp_err *err);
/* The best `most` blocks, each legal, no two alike, in the order in which they should be tried;
 * fewer where there are no more. In `a`. Errors: ENOMEM. */
cdmpp_status cd_template_best(const cd_template_nest *n, const cd_template_machine *m,
                              uint32_t most, cd_arena *a, cd_template_block **out, uint32_t *n_out,
                              cdmpp_err *err);

/* Time of all threads for the whole nest, in vector multiply-adds of a thread. The parts:
 * docs/reference/tune.md, "Templates". */
double cd_template_cost(const cd_template_nest *n, const cd_template_machine *m,
                        const cd_template_block *b);
/* Of one turn of the sum for all sums of s3, if nothing but registers limits them. */
double cd_template_kernel_cost(const cd_template_nest *n, const cd_template_machine *m,
                               const int32_t *s3);

/* ---- template_machine.c: programs of blocks ---- */
/* The program of a block, in a space of the same task; it lives until the sampler's next call.
 * Errors: EREJECTED (the space has no such program), ENOMEM. */
cdmpp_status cd_template_sample(const cd_template_nest *n, const cd_template_block *b,
                                const cd_sketch_space *space, cd_sketch_sampler *w,
                                cd_sketch_sample *out, cdmpp_err *err);
#endif
