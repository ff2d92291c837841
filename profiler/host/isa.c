/* Instruction sets of programs. A target's -mcpu has LLVM's names, of which a C compiler knows only some, so a table maps each to a name that
 * every GCC since 11 knows. */
#include "profiler/host/host.h"

#include <stdio.h>
#include <string.h>

#include "features/task/task.h"

/* What LLVM calls a processor -> what every GCC since 11 calls it, and what it must have. */
static const struct {
    const char *llvm, *march;
    cd_isa isa;
} cpus[] = {
    {"core-avx2", "haswell", CD_ISA_AVX2},
    {"haswell", "haswell", CD_ISA_AVX2},
    {"broadwell", "broadwell", CD_ISA_AVX2},
    {"skylake", "skylake", CD_ISA_AVX2},
    {"znver1", "znver1", CD_ISA_AVX2},
    {"znver2", "znver2", CD_ISA_AVX2},
    {"znver3", "znver3", CD_ISA_AVX2},
    {"alderlake", "haswell", CD_ISA_AVX2},
    {"skylake-avx512", "skylake-avx512", CD_ISA_AVX512},
    {"skx", "skylake-avx512", CD_ISA_AVX512},
    {"cascadelake", "skylake-avx512", CD_ISA_AVX512},
    {"cooperlake", "skylake-avx512", CD_ISA_AVX512},
    {"icelake-server", "skylake-avx512", CD_ISA_AVX512},
    {"icelake-client", "skylake-avx512", CD_ISA_AVX512},
    {"sapphirerapids", "skylake-avx512", CD_ISA_AVX512},
    {"znver4", "skylake-avx512", CD_ISA_AVX512},
    {"znver5", "skylake-avx512", CD_ISA_AVX512},
    {"x86-64-v4", "x86-64-v4", CD_ISA_AVX512},
    {"x86-64-v3", "x86-64-v3", CD_ISA_AVX2},
    {"x86-64-v2", "x86-64-v2", CD_ISA_SSE2},
    {"nehalem", "nehalem", CD_ISA_SSE2},
    {"corei7", "nehalem", CD_ISA_SSE2},
    {"x86-64", "x86-64", CD_ISA_SSE2},
    {"generic", "x86-64", CD_ISA_SSE2},
};

cd_isa cd_isa_here(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq"))
        return CD_ISA_AVX512;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? CD_ISA_AVX2 : CD_ISA_SSE2;
#elif defined(__aarch64__)
    return CD_ISA_AARCH64;
#elif defined(__arm__) && defined(__ARM_NEON)
    return CD_ISA_ARMV7;
#else
    return CD_ISA_NATIVE;
#endif
}

/* The enum's order: who has AVX-512 has AVX2, who has AVX2 has SSE2. */
static bool can_run(cd_isa isa) {
    const cd_isa here = cd_isa_here();
    if (isa == CD_ISA_NATIVE) return true;
    if (cd_isa_is_arm(isa) || cd_isa_is_arm(here)) return isa == here;
    return here != CD_ISA_NATIVE && isa >= here;
}

/* Is the triple of a processor that this one is not? Of a name that nobody knows, nothing is said. */
static bool is_foreign(cd_str triple) {
    enum { X86, ARM, OTHER };
    static const struct {
        const char *begins;
        int family;
    } t[] = {{"x86_64", X86}, {"i386", X86}, {"i486", X86}, {"i586", X86}, {"i686", X86}, {"aarch64", ARM}, {"arm64", ARM}, {"arm", OTHER}, {"thumb", OTHER}, {"riscv", OTHER},
             {"powerpc", OTHER}, {"ppc", OTHER}, {"sparc", OTHER}, {"mips", OTHER}, {"s390", OTHER}, {"loongarch", OTHER}, {"wasm", OTHER}, {"hexagon", OTHER}};
    const int here = cd_isa_here() == CD_ISA_AARCH64 ? ARM : cd_isa_here() == CD_ISA_NATIVE || cd_isa_here() == CD_ISA_ARMV7 ? OTHER : X86;
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        const size_t n = strlen(t[k].begins);
        if (triple.n >= n && !memcmp(triple.p, t[k].begins, n)) return here != OTHER && t[k].family != here;
    }
    return false;
}

/* No -mcpu: native. A program for a processor that has more than this one is refused, because it would crash when it is measured. */
static cdmpp_status by_target(const char *target, cd_isa_choice *out, cdmpp_err *err) {
    const cd_str cpu = cd_target_option(target, "-mcpu"), triple = cd_target_option(target, "-mtriple");
    *out = (cd_isa_choice){.isa = CD_ISA_NATIVE, .march = "-march=native", .runs = true};
    if (is_foreign(triple))
        return CD_FAIL(err, EBACKEND, "a program for %.*s does not run here", (int)(triple.n < 60 ? triple.n : 60), triple.p);
    if (!cpu.n || cd_isa_is_arm(cd_isa_here())) return CDMPP_OK;
    for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++) {
        if (strlen(cpus[i].llvm) != cpu.n || memcmp(cpus[i].llvm, cpu.p, cpu.n) != 0) continue;
        if (!can_run(cpus[i].isa))
            return CD_FAIL(err, EBACKEND, "-mcpu=%s needs instructions that this processor lacks", cpus[i].llvm);
        out->isa = cpus[i].isa;
        snprintf(out->march, sizeof out->march, "-march=%s", cpus[i].march);
        return CDMPP_OK;
    }
    return CD_FAIL(err, EBACKEND, "-mcpu=%.*s is not a processor that is known here", (int)(cpu.n < 60 ? cpu.n : 60), cpu.p);
}

cdmpp_status cd_isa_choose(const char *isa, const char *target, cd_isa_choice *out, cdmpp_err *err) {
    static const char *const march[] = {"-march=native", "-march=x86-64-v4", "-march=x86-64-v3", "-march=x86-64", "", "-march=armv7-a+simd"};
    if (!isa || !isa[0]) return by_target(target, out, err);
    const int k = cd_enum_names_find(CD_ISAS, (cd_str){isa, strlen(isa)});
    if (k < 0) return CD_FAIL(err, EUSAGE, "expected an instruction set of " CD_ISAS ", found '%.40s'", isa);
    *out = (cd_isa_choice){.isa = (cd_isa)k, .runs = can_run((cd_isa)k)};
    snprintf(out->march, sizeof out->march, "%s", march[k]);
    return CDMPP_OK;
}

uint32_t cd_isa_vector_bytes(const char *isa, const char *target) {
    const uint32_t by_name = target ? cd_target_vector_bytes((cd_str){target, strlen(target)}) : 32;
    cd_isa_choice c;
    if (!(isa && isa[0]) && target && cd_target_option(target, "-mcpu").n) return by_name;
    if (cd_isa_choose(isa, target ? target : "", &c, NULL)) return by_name;
    const cd_isa used = c.isa == CD_ISA_NATIVE ? cd_isa_here() : c.isa;
    return used == CD_ISA_AVX512 ? 64 : used == CD_ISA_AVX2 ? 32 : 16;
}
