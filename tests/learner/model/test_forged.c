/* Model files made by hand, with a right checksum: each is refused with a reason, or it answers
 * with numbers. Nothing crashes, hangs or asks for much memory. */
#include "forge.h"

#include <math.h>

#include "base/io/io.h"
#include "features/rows/rows.h"
#include "learner/model/model.h"
#include "made_here.h"

/* Asked as cdmpp-predict does, of two devices. */
static void ask(const cd_model *m) {
    cdmpp_err err = {0};
    cd_model_scratch *sc;
    static float row[4 * CD_N_COL];
    const int64_t ptr[] = {0, 1, 4};
    const double flop[] = {1e8, -1};
    cd_model_prediction p[2];
    const size_t last = cd_model_n_device(m) - 1;
    const uint32_t dev[] = {0, (uint32_t)last};
    const cd_program_view v = {.n = 2, .row = row, .row_ptr = ptr, .device = dev, .flop = flop};
    if (cd_model_needs_leaves(m) || cd_model_needs_steps(m) || cd_model_needs_facts(m)) return;
    for (int k = 0; k < 4 * CD_N_COL; k++)
        row[k] = 0.5f * (float)((k % CD_N_COL * 7 + k / CD_N_COL * 3) % 11);
    assert_ok(cd_model_scratch_new(&sc, &err));
    const cdmpp_status st = cd_model_predict(m, sc, &v, NULL, 2, p, &err);
    for (int i = 0; !st && i < 2; i++)
        if (!(p[i].latency_s > 0 && isfinite(p[i].latency_s)) ||
            (isfinite(p[i].low_s) && !(p[i].low_s <= p[i].median_s &&
                                       p[i].median_s <= p[i].high_s && isfinite(p[i].high_s))))
            fail_msg("answer %g s, %g to %g (%g)", p[i].latency_s, p[i].low_s, p[i].high_s,
                     p[i].median_s);
    if (st) assert_true(err.msg[0] != 0);
    cd_model_scratch_free(sc);
}

static bool use(const char *p, size_t n) {
    cdmpp_err err = {0};
    cd_model *m;
    const cdmpp_status st = cd_model_from_bytes(p, n, &m, &err);
    if (st) {
        if (st == CDMPP_ENOMEM || st == CDMPP_EBACKEND || !err.msg[0])
            fail_msg("refused with %s", err.msg);
        return false;
    }
    ask(m);
    if (cd_model_tuner(m)) ask(cd_model_tuner(m));
    cd_model_free(m);
    return true;
}

static void forge_file(const char *path, size_t few) {
    cdmpp_err err = {0};
    char *p;
    size_t n;
    assert_ok(cd_file_read(path, 0, &p, &n, &err));
    forge_all(FORGE_CONTAINER, p, n, few, use);
    cd_mem_free(p);
}

TEST(trees) { forge_file("tests/golden/model_v1.cdmpp", 300); }
TEST(trees_and_networks) { forge_file("tests/golden/model_v2.cdmpp", 80); }
TEST(profile_tuner) { forge_file("tests/golden/model_v3.cdmpp", 80); }

TEST(corrected_for_a_machine) {
    cdmpp_err err = {0};
    cd_buf b = {0};
    assert_ok(made_here_bytes("tests/golden/model_v3.cdmpp", 1, "A Processor", 2, &b, &err));
    forge_all(FORGE_CONTAINER, b.p, b.n, 80, use);
    cd_buf_free(&b);
}

TESTS(NULL, NULL, corrected_for_a_machine, trees, trees_and_networks, profile_tuner)
