/* Files of models of operators, and of members and networks that are trained later, made by hand
 * with a right checksum: refused with a reason, or numbers come out. */
#include "forge.h"

#include <math.h>

#include "base/io/io.h"
#include "learner/train/train_internal.h"
#include "made_llm_model.h"

static cd_device_table *devices;
static cd_diag diag;
static const cd_device *gpu[2];
static tmp_dir dir;

static int up(void **state) {
    static const char *const name[] = {"h100", "l40s"};
    cdmpp_err err = {0};
    (void)state;
    assert_ok(cd_device_table_load("configs/devices.yaml", &diag, &devices, &err));
    for (size_t i = 0; i < 2; i++) assert_ok(cd_device_table_find(devices, name[i], &gpu[i], &err));
    dir = tmp_make();
    return 0;
}

static int down(void **state) {
    (void)state;
    cd_device_table_free(devices);
    cd_diag_free(&diag);
    tmp_remove(&dir);
    return 0;
}

static bool refused(cdmpp_status st, const cdmpp_err *err) {
    if (st && (st == CDMPP_ENOMEM || st == CDMPP_EBACKEND || !err->msg[0]))
        fail_msg("refused with %s", err->msg);
    return st != CDMPP_OK;
}

static void check_time(double s, double low, double high) {
    if (!(s > 0 && isfinite(s)) || (isfinite(low) && !(low > 0 && low <= high && isfinite(high))))
        fail_msg("answer %g s, %g to %g", s, low, high);
}

/* ---- operators of language models ---- */
static bool use_llm(const char *p, size_t n) {
    cdmpp_err err = {0};
    cd_llm_op_model *m;
    cd_llm_op_asker *a;
    cd_dict names = {0};
    uint32_t k;
    if (refused(cd_llm_op_model_from_bytes(p, n, &m, &err), &err)) return false;
    assert_ok(cd_dict_add(&names, (cd_str){"", 0}, &k, &err));
    assert_ok(cd_dict_add(&names, (cd_str){"vllm-1", 6}, &k, &err));
    assert_ok(cd_llm_op_asker_new(m, NULL, &names, &a, &err));
    for (int i = 0; i < 6; i++) {
        cd_llm_op_answer v;
        cd_llm_op_record r = made_llm_gemm(i < 3 ? 8 : 4096, 256, 512, i % 2 ? 1 : 0);
        if (i == 5) r.type = r.kv = CD_LLM_OP_T_FP8;
        if (!refused(cd_llm_op_ask(a, &r, gpu[i / 2 % 2], 0.9, &v, &err), &err))
            check_time(v.latency_s, v.low_s, v.high_s);
    }
    cd_llm_op_asker_free(a);
    cd_llm_op_model_free(m);
    cd_dict_free(&names);
    return true;
}

TEST(operators_of_language_models) {
    cdmpp_err err = {0};
    char *p;
    size_t n;
    made_llm_model(&dir);
    assert_ok(cd_file_read(tmp_path(&dir, "llm.cdmpp"), 0, &p, &n, &err));
    forge_all(FORGE_CONTAINER, p, n, 150, use_llm);
    cd_mem_free(p);
}

/* ---- library operators ---- */
static bool use_library(const char *p, size_t n) {
    cdmpp_err err = {0};
    cd_library_op_model *m;
    if (refused(cd_library_op_model_from_bytes(p, n, &m, &err), &err)) return false;
    for (int k = 0; k < CD_N_LIBRARY_OP_KIND; k++) {
        const cd_library_op_record r = {
            .kind = (cd_library_op_kind)k, .b = 4, .m = 64, .n = 128, .k = 32};
        double s;
        if (refused(cd_library_op_model_predict(m, &r, &gpu[k % 2], 1, &s, &err), &err)) continue;
        const cd_library_op_range g = cd_library_op_model_range(m, &r, gpu[k % 2], s, 0.9);
        check_time(s, g.low_s, g.high_s);
    }
    cd_library_op_model_free(m);
    return true;
}

TEST(library_operators) {
    cdmpp_err err = {0};
    char *p;
    size_t n;
    assert_ok(cd_file_read("tests/golden/operators_v1.cdmpp", 0, &p, &n, &err));
    forge_all(FORGE_CONTAINER, p, n, 150, use_library);
    cd_mem_free(p);
}

TESTS(up, down, operators_of_language_models, library_operators)
