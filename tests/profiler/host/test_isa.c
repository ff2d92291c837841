/* Which instructions a program may use: by name, by the target, and what of it this processor
 * runs. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "profiler/host/host.h"

static cdmpp_err err;

/* A name says it all; whoever has more has less too. */
TEST(by_name) {
    static const struct {
        const char *name, *march;
        cd_isa isa;
    } tab[] = {{"native", "-march=native", CD_ISA_NATIVE},
               {"avx512", "-march=x86-64-v4", CD_ISA_AVX512},
               {"avx2", "-march=x86-64-v3", CD_ISA_AVX2},
               {"sse2", "-march=x86-64", CD_ISA_SSE2},
               {"aarch64", "", CD_ISA_AARCH64},
               {"armv7", "-march=armv7-a+simd", CD_ISA_ARMV7}};
    static const char *const wrong[] = {"avx", "AVX2", "avx2|sse2", "native ", "neon"};
    const cd_isa here = cd_isa_here();
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        cd_isa_choice c;
        /* the target does not count */
        assert_ok(cd_isa_choose(tab[k].name, "llvm -mcpu=nobody", &c, &err));
        assert_string_equal(c.march, tab[k].march);
        assert_int_equal(c.isa, tab[k].isa);
        const bool x86 = here == CD_ISA_AVX512 || here == CD_ISA_AVX2 || here == CD_ISA_SSE2;
        assert_int_equal(c.runs,
                         k == 0 || tab[k].isa == here || (x86 && k < 4 && tab[k].isa > here));
    }
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        cd_isa_choice c;
        assert_status(cd_isa_choose(wrong[k], "llvm", &c, &err), CDMPP_EUSAGE);
        assert_non_null(strstr(err.msg, CD_ISAS));
        assert_non_null(strstr(err.msg, wrong[k]));
    }
}

/* LLVM's names of processors in GCC's words. */
TEST(by_target) {
#if defined(__x86_64__)
    static const struct {
        const char *mcpu, *march;
        cd_isa needs;
    } tab[] = {{"core-avx2", "haswell", CD_ISA_AVX2},
               {"skylake", "skylake", CD_ISA_AVX2},
               {"alderlake", "haswell", CD_ISA_AVX2},
               {"znver3", "znver3", CD_ISA_AVX2},
               {"skylake-avx512", "skylake-avx512", CD_ISA_AVX512},
               {"skx", "skylake-avx512", CD_ISA_AVX512},
               {"znver5", "skylake-avx512", CD_ISA_AVX512},
               {"sapphirerapids", "skylake-avx512", CD_ISA_AVX512},
               {"x86-64-v4", "x86-64-v4", CD_ISA_AVX512},
               {"x86-64-v3", "x86-64-v3", CD_ISA_AVX2},
               {"x86-64-v2", "x86-64-v2", CD_ISA_SSE2},
               {"nehalem", "nehalem", CD_ISA_SSE2},
               {"corei7", "nehalem", CD_ISA_SSE2},
               {"x86-64", "x86-64", CD_ISA_SSE2},
               {"generic", "x86-64", CD_ISA_SSE2}};
    static const char *const unknown[] = {"core-avx", "core-avx22", "znver", "quantum9", "Skylake"};
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++)
        for (int empty = 0; empty < 2; empty++) {
            cd_isa_choice c;
            char target[80], march[60];
            err = (cdmpp_err){0};
            snprintf(target, sizeof target, "llvm -keys=cpu -mcpu=%s -model=x", tab[k].mcpu);
            snprintf(march, sizeof march, "-march=%s", tab[k].march);
            const cdmpp_status st = cd_isa_choose(empty ? "" : NULL, target, &c, &err);
            if (tab[k].needs < cd_isa_here()) { /* more than there is here */
                assert_int_equal(st, CDMPP_EBACKEND);
                assert_non_null(strstr(err.msg, "lacks"));
                continue;
            }
            assert_int_equal(st, CDMPP_OK);
            assert_string_equal(c.march, march);
            assert_true(c.isa == tab[k].needs && c.runs);
        }
    for (size_t k = 0; k < sizeof unknown / sizeof *unknown; k++) {
        cd_isa_choice c;
        char target[80];
        snprintf(target, sizeof target, "llvm -mcpu=%s", unknown[k]);
        assert_status(cd_isa_choose(NULL, target, &c, &err), CDMPP_EBACKEND);
        assert_non_null(strstr(err.msg, unknown[k]));
    }
    cd_isa_choice c;
    assert_status(cd_isa_choose(NULL, "llvm -mtriple=aarch64-linux-gnu -mcpu=skylake", &c, &err),
                  CDMPP_EBACKEND);
    assert_non_null(strstr(err.msg, "aarch64-linux-gnu does not run here"));
    static const char *const other[] = {"sparc64-linux-gnu", "armv7l-linux-gnueabihf",
                                        "arm64-apple-darwin", "riscv64-unknown-linux",
                                        "powerpc64le-linux-gnu"};
    for (size_t k = 0; k < sizeof other / sizeof *other; k++) {
        char target[80];
        snprintf(target, sizeof target, "llvm -mtriple=%s", other[k]);
        assert_status(cd_isa_choose(NULL, target, &c, &err), CDMPP_EBACKEND);
    }
    assert_ok(cd_isa_choose(NULL, "llvm -mtriple=x86_64-linux-gnu", &c, &err));
    /* not that processor's name */
    assert_ok(cd_isa_choose(NULL, "llvm -mtriple=aarch6", &c, &err));
    assert_string_equal(c.march, "-march=native");
#endif
    static const char *const silent[] = {"llvm", "", "llvm -model=skylake", "c -keys=cpu"};
    for (size_t k = 0; k < sizeof silent / sizeof *silent; k++) {
        cd_isa_choice n;
        assert_ok(cd_isa_choose(NULL, silent[k], &n, &err));
        assert_true(n.isa == CD_ISA_NATIVE && n.runs && !strcmp(n.march, "-march=native"));
    }
}

TESTS(NULL, NULL, by_name, by_target)
