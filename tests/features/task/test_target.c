/* Which targets are GPUs, and what of a typed one is doubted. */
#include "features/task/task.h"

#include <string.h>

#include "base/cli/cli.h"
#include "check.h"

static bool gpu(const char *s) { return cd_target_is_gpu((cd_str){s, strlen(s)}); }
TEST(kinds) {
    assert_true(gpu("cuda") && gpu("rocm -x") && gpu("opencl -device=mali") && gpu("nvptx"));
    assert_false(gpu("llvm -keys=cpu -model=gpu") || gpu("llvm -keys=arm,gpu"));
    assert_false(gpu("cudax") || gpu(""));
}

static size_t warnings(const char *target) {
    cd_log log;
    cdmpp_err err = {0};
    cd_log_init(&log, "", NULL);
    log.keep = true;
    assert_int_equal(cd_target_check(target, &log, &err), CDMPP_OK);
    const size_t n = log.n_kept;
    cd_log_done(&log);
    return n;
}

TEST(typed_wrong) {
    cdmpp_err err = {0};
    static const char *const kind[] = {"lvm", "", "-mcpu=znver4", "cuda-model=v100", "llvm-12"};
    for (size_t k = 0; k < sizeof kind / sizeof *kind; k++)
        assert_int_equal(cd_target_check(kind[k], NULL, &err), CDMPP_EUSAGE);
    (void)cd_target_check("lvm -mcpu=znver4", NULL, &err);
    assert_non_null(strstr(err.msg, "did you mean 'llvm'"));
    assert_int_equal(warnings("llvm"), 0);
    assert_int_equal(warnings("llvm -keys=cpu  -libs=mkl -mcpu=znver5 -model=zen5 "
                              "-mattr=+avx2,-fma -num-cores=2 -march=x -fast-math -jit=orcjit"),
                     0);
    assert_int_equal(
        warnings("cuda -keys=cuda,gpu -arch=sm_70 -max_num_threads=1024 -thread_warp_size=32"), 0);
    assert_int_equal(warnings("llvm cpu -num-cores=2 "), 0); /* a word that is no option */
    assert_int_equal(warnings("llvm -num-core=2"), 1);
    assert_int_equal(warnings("llvm --num-cores=2 -mcu=znver4 -modle=x"), 3);
}

TEST(of_devices) {
    cd_str d;
    assert_string_equal(cd_target_of_device("zen5=llvm -mcpu=znver5", &d), "llvm -mcpu=znver5");
    assert_true(cd_str_is(d, "zen5"));
    assert_string_equal(cd_target_of_device("llvm -mcpu=znver5", &d), "llvm -mcpu=znver5");
    assert_string_equal(cd_target_of_device("-keys=cpu", &d), "-keys=cpu");
    assert_int_equal(d.n, 0);
}

/* -model is a name that somebody gave: it says nothing of the code. */
TEST(vectors_are_of_what_code_is_for) {
    static const struct {
        const char *target;
        uint32_t bytes;
    } t[] = {{"llvm", 32},
             {"llvm -mcpu=core-avx2 -model=zen5-avx512", 32},
             {"llvm -keys=cpu -mcpu=skylake-avx512 -model=zen5-avx2", 64},
             {"llvm -mcpu=graniterapids", 64},
             {"llvm -mattr=+avx2,+avx512f", 64},
             {"llvm -mcpu=skylake-avx512 -mattr=-avx512f", 32},
             {"llvm -mcpu=znver4 -mattr=+fma,-avx512f", 32},
             {"llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72", 16},
             {"llvm -keys=cpu -mtriple=x86_64-conda-linux-gnu", 16},
             {"llvm -mtriple=x86_64-linux-gnu -mcpu=core-avx2", 32},
             {"llvm -mcpu=x86-64", 16},
             {"llvm -mcpu=nehalem -num-cores=1", 16},
             {"llvm -mcpu=x86-64-v3", 32},
             {"llvm -mcpu=x86-64-v4", 64},
             {"llvm -mcpu=x86-64 -mattr=+avx2", 32},
             {"", 32}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++)
        assert_int_equal(cd_target_vector_bytes((cd_str){t[k].target, strlen(t[k].target)}),
                         t[k].bytes);
}

TESTS(NULL, NULL, kinds, typed_wrong, of_devices, vectors_are_of_what_code_is_for)
