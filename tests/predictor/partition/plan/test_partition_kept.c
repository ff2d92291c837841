/* What a run says of the plan: the candidate that measured best is kept, and a disturbed
 * measurement is called so. Times are given, nothing is run. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "made_snet_kinds.h"
#include "predictor/partition/plan/partition_internal.h"

static ms_net m;
static const cd_partition_options none;

/* Two devices alike; the plan splits, as do the equal and the greedy shares. */
static void begin(cd_partition *p) {
    *p = (cd_partition){.o = &none};
    ms_begin(&m, 1);
    uint32_t t = ms_tensor(&m, 2, ms_shape, CD_SHARD_NET_OUTSIDE, false);
    for (int i = 0; i < 4; i++) t = ms_op(&m, &kinds, MS_DENSE, t, t);
    m.tensor[t].result = true;
    assert_ok(ms_machine(&m, 2, NULL, 0, 0, &err));
    const cd_shard_plan_options a = ms_ask(&m);
    assert_ok(cd_shard_plan_make(&a, &p->plan, &p->base, &err));
    p->n_base = p->plan->n_base;
    p->machine = m.machine;
    p->run.done = true;
    p->plan->measured_s = 9e-3;
}

static void end(cd_partition *p) {
    cd_shard_plan_free_all(p->base, p->n_base);
    cd_shard_plan_free(p->plan);
    ms_free(&m);
}

static uint32_t number_of(const cd_partition *p, const char *name) {
    uint32_t k = 0;
    while (strcmp(p->plan->base[k].name, name) != 0) k++;
    return k;
}

static void the_best_measured_is_kept(void **state) {
    (void)state;
    cd_partition p;
    begin(&p);
    const uint32_t n = p.n_base, equal = number_of(&p, "equal"), one = number_of(&p, "d0");
    cd_shard_plan *was = p.plan, *best = p.base[equal];
    p.plan->base[one].measured_s = 8.5e-3;
    p.plan->base[equal].measured_s = 8e-3;
    p.run.others = 0.01;
    assert_int_equal(cd_partition_best_measured(&p), equal);
    assert_ok(cd_partition_keep(&p, equal, &err));
    assert_ok(cd_partition_verdict(&p, &err));
    assert_true(p.plan == best && p.base[n] == was && !p.base[equal] && p.n_base == n + 1 &&
                p.plan->n_base == n + 1);
    assert_string_equal(p.run.kept, "equal");
    assert_string_equal(p.plan->base[n].name, "as predicted");
    assert_true(p.plan->measured_s == 8e-3 && p.plan->base[n].measured_s == 9e-3 &&
                isnan(p.plan->base[number_of(&p, "greedy")].measured_s));
    assert_close(p.plan->measured_gain, 8.5 / 8, 1e-12, 0);
    assert_non_null(strstr(p.plan->verdict, "kept equal, which measured best: 8.00 ms against 9.00 "
                                            "ms of the plan as predicted (split 4 of 4 operators"));
    assert_null(strstr(p.plan->verdict, "disturbed"));
    assert_true(!cd_shard_plan_same(p.plan, p.base[one]) && cd_shard_plan_same(was, was));
    end(&p);
}

/* Within what medians are known to, or without a measurement, the prediction decides. */
static void what_is_no_difference_changes_nothing(void **state) {
    (void)state;
    cd_partition p;
    begin(&p);
    assert_int_equal(cd_partition_best_measured(&p), UINT32_MAX);
    p.plan->base[number_of(&p, "equal")].measured_s = 8.9e-3;
    assert_int_equal(cd_partition_best_measured(&p), UINT32_MAX);
    p.plan->measured_s = NAN; /* a device failed meanwhile */
    assert_int_equal(cd_partition_best_measured(&p), UINT32_MAX);
    p.run.others = 0.384;
    assert_true(cd_partition_disturbed(&p));
    assert_ok(cd_partition_verdict(&p, &err));
    assert_non_null(
        strstr(p.plan->verdict,
               "; the measurement was disturbed: others used 38 % of the processors meanwhile"));
    assert_true(p.plan->others == 0.384);
    p.run.others = NAN; /* the system does not say */
    assert_false(cd_partition_disturbed(&p));
    end(&p);
}

TESTS(ms_up, ms_down, the_best_measured_is_kept, what_is_no_difference_changes_nothing)
