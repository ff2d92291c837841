/* Plans that run alike: devices, axes and shares decide, not names or times. */
#include "check.h"
#include "predictor/partition/shard/shard_plan.h"

enum { OPS = 3, PARTS = 2 };
typedef struct {
    cd_shard_plan plan;
    cd_shard_plan_op op[OPS];
    cd_shard_plan_part part[OPS][PARTS];
} made;

static void make(made *m) {
    *m = (made){0};
    for (uint32_t k = 0; k < OPS; k++) {
        for (uint32_t i = 0; i < PARTS; i++)
            m->part[k][i] =
                (cd_shard_plan_part){.device = i, .lo = 4 * i, .hi = 4 * i + 4, .seconds = 1};
        m->op[k] = (cd_shard_plan_op){.name = "a",
                                      .type = "t",
                                      .dim = "H",
                                      .way_op = k,
                                      .axis = 1,
                                      .n_part = PARTS,
                                      .part = m->part[k],
                                      .join = UINT32_MAX};
    }
    m->plan = (cd_shard_plan){.n_op = OPS, .op = m->op};
}

/* Each difference in each operator, the last and the first too. */
TEST(what_counts) {
    static made a, b;
    for (uint32_t k = 0; k < OPS; k++)
        for (int change = 0; change < 11; change++) {
            make(&a), make(&b);
            switch (change) {
            case 0: b.op[k].n_part = 1; break;
            case 1: b.op[k].join = 0; break;
            case 2: b.op[k].dim = "W"; break;
            case 3: b.op[k].way_op = 7; break;
            case 4: b.op[k].axis = 0; break;
            case 5: b.part[k][1].device = 2; break;
            case 6: b.part[k][0].hi = 5; break;
            case 7: b.part[k][1].lo = 5; break;
            case 8: b.part[k][1].seconds = 2; break;
            case 9: b.op[k].name = b.op[k].type = "other"; break;
            default: break;
            }
            if (cd_shard_plan_same(&a.plan, &b.plan) != (change > 7) ||
                cd_shard_plan_same(&b.plan, &a.plan) != (change > 7))
                fail_msg("operator %u, change %d", k, change);
        }
    make(&a), make(&b);
    b.plan.n_op = OPS - 1;
    assert_false(cd_shard_plan_same(&a.plan, &b.plan) || cd_shard_plan_same(&b.plan, &a.plan));
}

TESTS(NULL, NULL, what_counts)
