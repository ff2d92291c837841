/* Helpers of generated C that work on bytes, built for each instruction set that this processor
 * has, against plain arithmetic. */
#include <stdio.h>
#include <stdlib.h>

#include "profiler/codegen/code/code.h"
#include "tests/support/base/check.h"
#include "tests/support/base/scratch.h"

/* Each width of vectors: dot4 of words of any bytes, among them the ends of the ranges; bytes
 * widened and narrowed; halves rounded to even. */
static const char program[] =
    "static int word(unsigned i) { static const unsigned end[4] = {0xffffffffu, 0x7f7f7f7fu, "
    "0x80808080u, 0}; unsigned x = i * 2654435761u; x ^= x >> 15; x *= 2246822519u; return (int)(i "
    "% 7 ? x : end[i / 7 % 4]); }\n"
    "static int want(int x, int y) { int s = 0; for (int k = 0; k < 4; k++) s += (int)((unsigned)x "
    ">> 8 * k & 255) * (signed char)((unsigned)y >> 8 * k & 255); return s; }\n"
    "#define CHECK(N, R) \\\n"
    "static int check##N(unsigned i) { cd_i32x##N a = {0}, x = {0}, y = {0}, d; cd_f32x##N f = "
    "{0}; cd_u8x##N u = {0}; cd_i8x##N s = {0}; int bad = 0; \\\n"
    "    for (int k = 0; k < N; k++) a[k] = word(i + 900 + k) / 4, x[k] = word(i + k), y[k] = "
    "word(3 * i + k + 17), u[k] = x[k], s[k] = y[k], f[k] = (x[k] % 600) / 2.0f; \\\n"
    "    d = cd_dot4_i32x##N(a, x, y); f = cd_round_f32x##N(f); \\\n"
    "    for (int k = 0; k < N; k++) { bad += d[k] != a[k] + want(x[k], y[k]); bad += "
    "cd_dot4(x[k], y[k]) != want(x[k], y[k]); \\\n"
    "        bad += cd_wide_u8x##N(u)[k] != (int)((unsigned)x[k] & 255) || cd_wide_i8x##N(s)[k] != "
    "(signed char)(y[k] & 255); bad += cd_narrow_u8x##N(cd_wide_u8x##N(u))[k] != u[k]; \\\n"
    "        const int h = x[k] % 600; bad += f[k] != (h % 2 == 0 ? h / 2 : (h - 1) / 2 % 2 == 0 ? "
    "(h - 1) / 2 : (h + 1) / 2); } \\\n"
    "    return bad; }\n"
    "CHECK(2,) CHECK(4,) CHECK(8,) CHECK(16,)\n"
    "int main(void) { int bad = 0; for (unsigned i = 0; i < 3000; i++) bad += check2(i) + "
    "check4(i) + check8(i) + check16(i); return bad != 0; }\n";

TEST(test_bytes) {
    static const char *const set[] = {"", "-mavx2", "-mavx512f -mavx512bw",
                                      "-mavx512f -mavx512bw -mavx512vl -mavx512vnni"};
    bool here[4] = {true, false, false, false};
#ifdef __x86_64__
    here[1] = __builtin_cpu_supports("avx2");
    here[2] = __builtin_cpu_supports("avx512bw");
    here[3] = here[2] && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
#endif
    FILE *f = fopen(scratch("bytes.c"), "w");
    assert_non_null(f);
    fputs(cd_codegen_prelude(CD_DIALECT_C), f);
    fputs(program, f);
    assert_int_equal(fclose(f), 0);
    for (size_t k = 0; k < sizeof set / sizeof *set; k++) {
        char cmd[800];
        if (!here[k]) continue;
        snprintf(cmd, sizeof cmd, "gcc -O2 -w -Wno-psabi %s -o %s %s -lm", set[k], scratch("bytes"),
                 scratch("bytes.c"));
        assert_int_equal(system(cmd), 0);
        if (system(scratch("bytes")) != 0) fail_msg("with \"%s\"", set[k]);
    }
}

TESTS(NULL, NULL, test_bytes)
