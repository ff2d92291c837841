/* What a cd_program is made of. Private to program.c and program_nest.c. */
#ifndef CD_PROGINT_H
#define CD_PROGINT_H
#include "features/program/program.h"
#include "features/schedule/schedule.h"

/* Would TVM's GPU verification accept the program? (docs/internals/ansor.md, GPU checks) */

struct cd_program {
    cd_schedule sched;
    cd_ast ast;
    cd_leaf_ws *leaf;
    bool pack; /* of the last lowering: program_nest.h */
    uint32_t vector_bytes;
    int64_t most_shared; /* bytes of a block, while a GPU's program is built; 0: not checked */
};
#endif
