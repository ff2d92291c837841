/* codegen_plan -- where the tensors of a nest are stored, and what their elements are called.
 *
 *   REALIZE conv [0:1, i*4:4, 0:64] ──> slot{ min (0, i*4, 0), extent (1, 4, 64), stride (256, 64, 1) }
 *
 *   address of T[x]  =  sum over d of (x[d] - min[d]) * stride[d]
 *
 *   (1) slot[t] belongs to tensor t of the nest; `used` where a store or load names it;
 *   (2) parameters are whole and row-major (or packed: codegen_pack.h), min 0;
 *   (3) every other used slot has the region of its REALIZE or ALLOC node, row-major;
 *   (4) var[v] numbers variables 0, 1, ... in the order in which nodes bind them, and
 *       so does slot.order for tensors: equal nests get equal names.
 * Everything is in the arena given. Read-only after planning. */
#ifndef CD_CODEGEN_PLAN_H
#define CD_CODEGEN_PLAN_H
#include "profiler/codegen/code/codegen_code.h"
#include "profiler/codegen/code/codegen_range.h"

/* Kinds of loops around a REALIZE node. */
enum { CD_UNDER_PARALLEL = 1, CD_UNDER_BLOCK = 2, CD_UNDER_THREAD = 4 };

typedef struct cd_codegen_slot {
    bool used, loaded, stored, is_arg;
    int32_t arg;                /* position among the parameters, -1 */
    int32_t node;               /* its REALIZE or ALLOC, -1 */
    uint32_t order;             /* of first appearance; its number in names */
    unsigned under;             /* CD_UNDER_* */
    int rank;                   /* of memory: 0 global, 1 shared, 2 warp, 3 local, by scope or place as TVM has it */
    cd_dtype dtype;
    uint32_t n_dim;
    const cd_expr *const *min;  /* (n_dim) NULL: all 0 */
    const int64_t *extent, *stride; /* (n_dim) */
    int64_t elements;
} cd_codegen_slot;

typedef struct cd_codegen_plan {
    const cd_nest *nest;
    uint32_t n_slot;
    cd_codegen_slot *slot;              /* (n_slot) by tensor */
    uint32_t *var;              /* (nest->n_var) */
    cd_codegen_ranges ranges;           /* of all loops */
    bool has_thread, has_parallel;
} cd_codegen_plan;

/* Places all tensors of the nest. Errors: EUNSUPPORTED (a region of unknown size, more than 2^40 elements), ENOMEM. */
cdmpp_status cd_codegen_plan_make(cd_arena *a, const cd_nest *nest, cd_codegen_plan *out, cdmpp_err *err);

/* A name with all but letters, digits and _ replaced by _, cut to n-1 characters. */
void cd_codegen_clean_name(const char *name, char *out, size_t n);
#endif
