/* What templates take from a description; nothing of it is guessed. */
#include <string.h>

#include "check.h"
#include "predictor/tune/template/template.h"

static cd_device cpu(void) {
    return (cd_device){
        .name = "c", .kind = CD_DEVICE_CPU, .simd_bits = 256, .l1_kb = 32, .l2_kb = 512};
}

static void test_described(void **state) {
    (void)state;
    cd_template_machine m;
    cdmpp_err err = {0};
    cd_device d = cpu();
    assert_ok(cd_template_machine_of(&d, 4, &m, &err));
    assert_true(m.vector_bytes == 32 && m.registers == 16 && m.l1_bytes == 32768 &&
                m.l2_bytes == 524288 && m.threads == 4);
    d.simd_bits = 512;
    assert_ok(cd_template_machine_of(&d, 1, &m, &err));
    assert_true(m.vector_bytes == 64 && m.registers == 32);
}

static void test_unknown_is_an_error(void **state) {
    (void)state;
    static const char *const key[] = {"simd_bits", "l1_kb", "l2_kb"};
    for (int k = 0; k < 3; k++) {
        cd_template_machine m;
        cdmpp_err err = {0};
        cd_device d = cpu();
        *(k == 0 ? &d.simd_bits : k == 1 ? &d.l1_kb : &d.l2_kb) = CD_DEVICE_UNKNOWN;
        assert_int_equal(cd_template_machine_of(&d, 1, &m, &err), CDMPP_EMODEL);
        assert_non_null(strstr(err.msg, key[k]));
    }
    cd_template_machine m;
    cdmpp_err err = {0};
    cd_device d = cpu();
    d.kind = CD_DEVICE_GPU;
    assert_int_equal(cd_template_machine_of(&d, 1, &m, &err), CDMPP_EMODEL);
}

static void test_instructions(void **state) {
    (void)state;
    static const struct {
        const char *isa;
        int64_t bytes, registers;
    } of[] = {{"avx512", 64, 32}, {"avx2", 32, 16}, {"sse2", 16, 16}, {"aarch64", 16, 32}};
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        cd_template_machine m;
        cdmpp_err err = {0};
        const cdmpp_status st = cd_template_machine_here(of[k].isa, "llvm", 2, &m, &err);
        assert_true(!st || st == CDMPP_EMODEL); /* a system that hides its caches: said so */
        if (!st)
            assert_true(m.vector_bytes == of[k].bytes && m.registers == of[k].registers &&
                        m.threads == 2 && m.l1_bytes > 0 && m.l2_bytes >= m.l1_bytes);
    }
    cd_template_machine m;
    cdmpp_err err = {0};
    assert_int_equal(cd_template_machine_here("avx9", "llvm", 1, &m, &err), CDMPP_EUSAGE);
}

TESTS(NULL, NULL, test_described, test_unknown_is_an_error, test_instructions)
