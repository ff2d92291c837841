/* Structs that a caller owns are empty behind their free: it may come twice, and they may be filled
 * again. */
#include "emptied.h"
#include "features/expr/expr.h"
#include "features/nest/nest.h"
#include "features/rows/rows_internal.h"
#include "features/schedule/schedule.h"
#include "features/sketch/sketch.h"

TEST(structs_are_empty) {
    EMPTIED(cd_sketch_choices, cd_sketch_choices_free);
    EMPTIED(cd_loopmask, cd_loopmask_free);
    EMPTIED(cd_schedule, cd_schedule_free);
    EMPTIED(cd_expr_pool, cd_expr_pool_free);
    EMPTIED(cd_subst, cd_subst_free);
    EMPTIED(cd_unique_names, cd_unique_names_free);
    cd_ast t = {.open = 3};
    cd_ast_free(&t);
    assert_true(t.open == -1 && !t.n && !t.node); /* no loop is open */
}

TESTS(NULL, NULL, structs_are_empty)
