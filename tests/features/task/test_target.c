/* Which targets are GPUs. */
#include "features/task/task.h"

#include <string.h>

#include "check.h"

static bool gpu(const char *s) { return cd_target_is_gpu((cd_str){s, strlen(s)}); }
TEST(kinds) {
    assert_true(gpu("cuda") && gpu("rocm -x") && gpu("opencl -device=mali") && gpu("nvptx"));
    assert_false(gpu("llvm -keys=cpu -model=gpu") || gpu("llvm -keys=arm,gpu"));
    assert_false(gpu("cudax") || gpu(""));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(kinds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
