/* cdmpp_operators: answers, errors of single questions, errors of the whole, structs of other
 * sizes. */
#include <math.h>
#include <string.h>

#include "cdmpp.h"
#include "check.h"
#include "fault.h"
#include "made_llm_model.h"

typedef struct {
    tmp_dir dir;
    char model[256], measured[256];
} fixture;

static int up(void **state) {
    static fixture f;
    f = (fixture){.dir = tmp_make()};
    made_llm_model(&f.dir);
    snprintf(f.model, sizeof f.model, "%s/llm.cdmpp", f.dir.path);
    snprintf(f.measured, sizeof f.measured, "%s/gemm.csv", f.dir.path);
    *state = &f;
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    tmp_remove(&f->dir);
    return 0;
}

static cdmpp_status open_it(const fixture *f, double level, cdmpp_operators **out, cdmpp_err *err) {
    const char *tables[] = {f->measured};
    const cdmpp_operators_options o = {.size = sizeof o,
                                       .device = "h100",
                                       .devices_file = "configs/devices.yaml",
                                       .measured = tables,
                                       .n_measured = 1,
                                       .level = level};
    return cdmpp_operators_open(f->model, &o, out, err);
}

static const cdmpp_operator_value row[] = {{"op", "gemm", 0},
                                           {"stack", "vllm-1", 0},
                                           {"m", NULL, 8},
                                           {"n", NULL, 256},
                                           {"k", NULL, 512}},
                                  between[] = {{"op", "gemm", 0},
                                               {"stack", "vllm-1", 0},
                                               {"m", NULL, 16},
                                               {"n", NULL, 256},
                                               {"k", NULL, 512}},
                                  other[] = {{"op", "gemm", 0},    {"device", "l40s", 0},
                                             {"dtype", "fp8", 0},  {"stack", "sglang-2", 0},
                                             {"m", NULL, 1 << 20}, {"n", NULL, 256},
                                             {"k", NULL, 512}},
                                  bad[] = {{"op", "gemm", 0}, {"m", NULL, -1}},
                                  half[] = {{"op", "gemm", 0},
                                            {"dtype", "float16", 0},
                                            {"m", NULL, 32},
                                            {"n", NULL, 256},
                                            {"k", NULL, 512}};
static const cdmpp_operator asked[] = {{row, 5}, {between, 5}, {other, 7}, {bad, 2}};

TEST(answers) {
    fixture *f = *state;
    cdmpp_operators *o = NULL;
    cdmpp_err err = {0}, why[4];
    double s[4], low[4], high[4], estimate[4], bound[4];
    cdmpp_operator_how how[4];
    uint32_t news[4];
    cdmpp_status st[4];
    assert_ok(open_it(f, 0.8, &o, &err));
    assert_int_equal(cdmpp_operators_rows(o), 2);
    assert_int_equal(cdmpp_operators_skipped(o), 1);
    const cdmpp_operator_result r = {sizeof r, s, low, high, estimate, bound, how, news, st, why};
    assert_ok(cdmpp_operators_ask(o, asked, 4, &r, &err));
    assert_true(st[0] == CDMPP_OK && how[0] == CDMPP_OPERATOR_MEASURED && news[0] == 0 &&
                isnan(low[0]));
    assert_close(s[0], 1e-5, 1e-12, 0);
    assert_true(st[1] == CDMPP_OK && how[1] == CDMPP_OPERATOR_INTERPOLATED && s[1] > 5e-6 &&
                s[1] < 4e-5);
    assert_true(st[2] == CDMPP_OK && how[2] == CDMPP_OPERATOR_PREDICTED &&
                estimate[2] >= bound[2] && bound[2] > 0);
    assert_int_equal(news[2], CDMPP_OPERATOR_NEW_DEVICE | CDMPP_OPERATOR_NEW_STACK |
                                  CDMPP_OPERATOR_NEW_DTYPE | CDMPP_OPERATOR_NEW_SIZE);
    assert_true(st[3] == CDMPP_ERANGE && isinf(s[3]) && isnan(low[3]) && isnan(bound[3]) &&
                news[3] == 0);
    assert_string_equal(why[3].key, "m");
    uint32_t alike;
    const cdmpp_operator in16 = {half, 5};
    assert_ok(cdmpp_operators_ask(
        o, &in16, 1, &(cdmpp_operator_result){.size = sizeof r, .news = &alike}, NULL));
    assert_int_equal(alike, CDMPP_OPERATOR_NEW_DTYPE | CDMPP_OPERATOR_ALIKE |
                                (alike & CDMPP_OPERATOR_NEW_STACK));
    double alone;
    const cdmpp_operator_result one = {.size = sizeof one, .seconds = &alone};
    assert_ok(cdmpp_operators_ask(o, &asked[1], 1, &one, NULL));
    assert_true(!memcmp(&alone, &s[1], sizeof alone)); /* the same bits */
    assert_ok(cdmpp_operators_ask(o, NULL, 0, &one, NULL));
    const cdmpp_operator_result shorter = {.size = sizeof shorter - 1};
    assert_status(cdmpp_operators_ask(o, asked, 1, &shorter, &err), CDMPP_EUSAGE);
    cdmpp_operators_free(o);
    cdmpp_operators_free(NULL);
}

TEST(levels) {
    fixture *f = *state;
    double low[3], high[3], level[] = {0.5, 0, 0.95}; /* 0: 0.9 */
    cdmpp_err err = {0};
    for (size_t i = 0; i < 3; i++) {
        cdmpp_operators *o = NULL;
        const cdmpp_operator_result r = {.size = sizeof r, .low = &low[i], .high = &high[i]};
        assert_ok(open_it(f, level[i], &o, &err));
        assert_ok(cdmpp_operators_ask(o, &asked[1], 1, &r, &err));
        cdmpp_operators_free(o);
    }
    assert_true(low[2] < low[1] && low[1] < low[0] && low[0] < high[0] && high[0] < high[1] &&
                high[1] < high[2]);
}

TEST(not_opened) {
    fixture *f = *state;
    cdmpp_operators *o = NULL;
    cdmpp_err err = {0};
    const cdmpp_operators_options level = {.size = sizeof level, .level = 2};
    const cdmpp_operators_options device = {
        .size = sizeof device, .device = "h9000", .devices_file = "configs/devices.yaml"};
    const cdmpp_operators_options size = {.size = 3};
    assert_status(cdmpp_operators_open(f->model, &level, &o, &err), CDMPP_EUSAGE);
    assert_status(cdmpp_operators_open(f->model, &size, &o, &err), CDMPP_EUSAGE);
    assert_status(cdmpp_operators_open(f->model, &device, &o, &err), CDMPP_ESCHEMA);
    assert_status(cdmpp_operators_open("tests/golden/model_v1.cdmpp", NULL, &o, &err),
                  CDMPP_EMODEL);
    assert_status(cdmpp_operators_open("no-such-file", NULL, &o, &err), CDMPP_EIO);
    assert_null(o);
}

TEST(refused) {
    fixture *f = *state;
    FAULT_SWEEP(v, 10) {
        cdmpp_operators *o = NULL;
        double s[4];
        const cdmpp_operator_result r = {.size = sizeof r, .seconds = s};
        v.st = open_it(f, 0, &o, &v.err);
        if (!v.st) v.st = cdmpp_operators_ask(o, asked, 4, &r, &v.err);
        cdmpp_operators_free(o);
    }
}

TESTS(up, down, answers, levels, not_opened, refused)
