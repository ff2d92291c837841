/* Which programs a step sees: every one once an epoch, in another order each time. */
#include "check.h"

#include <stdlib.h>

#include "learner/fit/fit_internal.h"
#include "made_fit.h"

static void every_program_once(void **s) {
    (void)s;
    static uint32_t order[TRAIN], tmp[TRAIN], p[2][64], g[2][64], last[TRAIN];
    static size_t sort[3 * TRAIN];
    static double z[N], ls[N], pz[2][64], pl[2][64];
    static float w[2][64];
    const cd_fit_run run = {0};
    for (int ranks = 0; ranks < 2; ranks++) {
        cdmpp_err err = {0};
        cd_fit_spec spec = made_spec(CD_NET_MLP);
        spec.batch = 50; /* 240 programs: 5 batches of 48 */
        spec.slice = 7;
        cd_fitting f = {.spec = &spec,
                        .data = &parts,
                        .run = &run,
                        .n_rank = 1,
                        .n_slice = 1,
                        .per_epoch = 5,
                        .order = order,
                        .tmp = tmp,
                        .sort = sort,
                        .z = z,
                        .log_s = ls,
                        .whole = {0, p[0], pz[0], pl[0], w[0], g[0]},
                        .own = {0, p[1], pz[1], pl[1], w[1], g[1]}};
        assert_ok(cd_net_loss_parse(ranks ? "1rank" : "1mse", NULL, 0, &f.loss, &err));
        size_t same_group = 0, moved = 0;
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            int seen[N] = {0};
            size_t at = 0;
            for (int b = 0; b < 5; b++, f.step++) {
                cd_fit_draw(&f);
                cd_fit_cut(&f, 0);
                assert_int_equal(f.own.n, 48);
                for (size_t i = 0; i < f.own.n; i++, at++) {
                    seen[f.own.program[i]]++;
                    moved += f.own.program[i] != last[at];
                    last[at] = f.own.program[i];
                    if (i) same_group += f.own.group[i] == f.own.group[i - 1];
                }
            }
            for (int i = 0; i < TRAIN; i++) assert_int_equal(seen[index_of[i]], 1);
        }
        assert_true(moved > 3 * TRAIN * 9 / 10);            /* other neighbours every time */
        if (ranks) assert_true(same_group > 3 * TRAIN / 2); /* slices of 7 of 18 groups */
        else assert_true(same_group < 3 * TRAIN / 6);
    }
}

static void shuffles_evenly(void **s) {
    (void)s;
    int count[6][6] = {{0}};
    for (uint64_t key = 0; key < 6000; key++) {
        uint32_t v[6] = {0, 1, 2, 3, 4, 5};
        cd_fit_shuffle(v, 6, key);
        for (int i = 0; i < 6; i++) count[i][v[i]]++;
    }
    for (int i = 0; i < 6; i++) /* 5 standard deviations */
        for (int k = 0; k < 6; k++) assert_true(abs(count[i][k] - 1000) < 150);
}

TESTS(made_fit, NULL, every_program_once, shuffles_evenly)
