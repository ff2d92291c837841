/* The reference numbers are torch 1.13's CyclicLR, OneCycleLR, CosineAnnealingLR,
 * ExponentialLR and LambdaLR. */
#include "learner/fit/learning_rate.h"
#include "check.h"

#include <string.h>

enum { N = 20, ONE = 19 }; /* the 20th of OneCycleLR would be past its end */

static void as_torch(void **s) {
    (void)s;
    static const double want[5][N] = {
        {0.001,
         0.015142857142857132,
         0.029285714285714297,
         0.043428571428571427,
         0.057571428571428593,
         0.07171428571428573,
         0.085857142857142854,
         0.099999999999999978,
         0.075249999999999997,
         0.050499999999999962,
         0.025749999999999981,
         0.001,
         0.015142857142857132,
         0.029285714285714266,
         0.043428571428571393,
         0.05757142857142853,
         0.07171428571428573,
         0.085857142857142854,
         0.099999999999999922,
         0.075249999999999942},
        {0.00039999999999999931, 0.0013167184270002508, 0.0037167184270002519,
         0.0066832815729997476, 0.009083281572999747, 0.01, 0.009874640062350875,
         0.0095048463201347373, 0.0089091617757104998, 0.0081174565394976309, 0.007169430017913008,
         0.0061126202193628925, 0.00500002, 0.0038874197806371079, 0.0028306099820869924,
         0.0018825834605023699, 0.0010908782242895004, 0.00049519367986526283,
         0.00012539993764912555},
        {0.01,
         0.0099445975326781198,
         0.0097797543233281922,
         0.0095095293588476557,
         0.0091405764746872627,
         0.0086819805153394609,
         0.0081450336353161273,
         0.0075429572488279585,
         0.0068905764746872624,
         0.0062039550926810379,
         0.0054999999999999988,
         0.0047960449073189606,
         0.0041094235253127352,
         0.0034570427511720382,
         0.0028549663646838704,
         0.0023180194846605358,
         0.0018594235253127367,
         0.0014904706411523448,
         0.0012202456766718091,
         0.0010554024673218806},
        {0.01,
         0.0090000000000000011,
         0.0081000000000000013,
         0.0072900000000000013,
         0.0065610000000000017,
         0.005904900000000002,
         0.005314410000000002,
         0.0047829690000000024,
         0.004304672100000002,
         0.0038742048900000021,
         0.003486784401000002,
         0.0031381059609000019,
         0.0028242953648100018,
         0.0025418658283290017,
         0.0022876792454961017,
         0.0020589113209464917,
         0.0018530201888518425,
         0.0016677181699666583,
         0.0015009463529699924,
         0.0013508517176729932},
        {0.002,
         0.0040000000000000001,
         0.0060000000000000001,
         0.0080000000000000002,
         0.01,
         0.01,
         0.01,
         0.01,
         0.01,
         0.01,
         0.01,
         0.01,
         0.01,
         0.01,
         0.01,
         0.01,
         0.01,
         0.01,
         0.01,
         0.01},
    };
    cd_learning_rate r[5] = {cd_learning_rate_of(CD_LEARNING_RATE_CYCLIC, 0.01),
                             cd_learning_rate_of(CD_LEARNING_RATE_ONE_CYCLE, 0.01),
                             cd_learning_rate_of(CD_LEARNING_RATE_COSINE, 0.01),
                             cd_learning_rate_of(CD_LEARNING_RATE_EXPONENTIAL, 0.01),
                             cd_learning_rate_of(CD_LEARNING_RATE_CONSTANT, 0.01)};
    r[0].up = 7, r[0].down = 4;
    r[1].total = r[2].total = N;
    r[2].low = 0.1;
    r[4].warmup = 5;
    for (int k = 0; k < 5; k++)
        for (uint64_t t = 0; t < (k == 1 ? ONE : N); t++)
            assert_close(cd_learning_rate_at(&r[k], t), want[k][t], 1e-12, 0);
}

/* The published training: 1.67657e-6 to 1.67657e-4 in 2000 steps and back. */
static void published(void **s) {
    (void)s;
    const cd_learning_rate r = cd_learning_rate_of(CD_LEARNING_RATE_CYCLIC, 1.67657e-5);
    assert_close(cd_learning_rate_at(&r, 0), 1.67657e-6, 1e-12, 0);
    assert_close(cd_learning_rate_at(&r, 2000), 1.67657e-4, 1e-12, 0);
    assert_close(cd_learning_rate_at(&r, 4000), 1.67657e-6, 1e-12, 0);
    assert_close(cd_learning_rate_at(&r, 3000), cd_learning_rate_at(&r, 1000), 1e-12, 0);
    assert_close(cd_learning_rate_at(&r, 4001), cd_learning_rate_at(&r, 1), 1e-12, 0);
}

/* For any step, however far: finite, never above the peak, and never negative. */
static void bounded(void **s) {
    (void)s;
    for (int kind = 0; kind <= CD_LEARNING_RATE_EXPONENTIAL; kind++)
        for (uint64_t total = 1; total < 40; total += 3)
            for (uint64_t warmup = 0; warmup < 50; warmup += 24) {
                cdmpp_err err = {0};
                cd_learning_rate r = cd_learning_rate_of((cd_learning_rate_kind)kind, 0.5);
                r.total = total;
                r.warmup = warmup;
                assert_ok(cd_learning_rate_check(&r, &err));
                for (uint64_t t = 0; t < 100; t++) {
                    const double v = cd_learning_rate_at(&r, t);
                    if (!(v >= 0 && v <= (kind == CD_LEARNING_RATE_CYCLIC ? 5.0001 : 0.5000001)))
                        fail_msg("kind %d step %d: %g", kind, (int)t, v);
                }
                assert_true(isfinite(cd_learning_rate_at(&r, UINT64_MAX)));
            }
    cd_learning_rate r = cd_learning_rate_of(CD_LEARNING_RATE_COSINE, 1);
    r.total = 100;
    r.warmup = 10;
    r.low = 0.05;
    assert_close(cd_learning_rate_at(&r, 9), 1, 1e-12, 0); /* the top of the warm-up */
    assert_close(cd_learning_rate_at(&r, 55), 0.525, 1e-12, 0);
    assert_close(cd_learning_rate_at(&r, 100), 0.05, 1e-12, 0);
    assert_close(cd_learning_rate_at(&r, 1000), 0.05, 1e-12, 0);
}

static void refused(void **s) {
    (void)s;
    static const char *const key[] = {"lr", "low", "high", "gamma", "up", "down", "per", "total"};
    for (size_t k = 0; k < sizeof key / sizeof key[0]; k++) {
        cdmpp_err err = {0};
        cd_learning_rate r = cd_learning_rate_of(CD_LEARNING_RATE_COSINE, 1);
        if (k == 0) r.lr = (double)NAN;
        if (k == 1) r.low = -1;
        if (k == 2) r.high = 0;
        if (k == 3) r.gamma = 1.5;
        if (k == 4) r.up = 0;
        if (k == 5) r.down = 0;
        if (k == 6) r.per = 0;
        if (k == 7) r.total = 0;
        assert_status(cd_learning_rate_check(&r, &err), CDMPP_ERANGE);
        assert_string_equal(err.key, key[k]);
    }
}

TESTS(NULL, NULL, as_torch, published, bounded, refused)
