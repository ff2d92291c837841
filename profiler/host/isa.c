/* Instruction sets of programs. A target's -mcpu has LLVM's names, of which a C compiler knows only
 * some, so a table maps each to a name that every GCC since 11 knows. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "features/task/task.h"
#include "profiler/host/host.h"

/* What the system says of its processors, or what a test puts in its place. Everything that asks
 * which processor this is reads it here, so that one hook simulates another one for all. */

enum { LINE = 8192, MOST = 1 << 16 };
static const char flags[] = "flags";

static const char *simulated(void) {
    const char *path = getenv("CDMPP_TEST_CPU");
    return path && path[0] ? path : NULL;
}

static void leave_trace(void) {
    const char *path = getenv("CDMPP_TEST_CPU_TRACE");
    const int fd = path && path[0] ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) (void)close(fd);
}

/* Is another processor simulated? Leaves the trace too. */
static bool cpuinfo_is_simulated(void) {
    leave_trace();
    return simulated() != NULL;
}

static bool is_flags(const char *line) { return !strncmp(line, flags, sizeof flags - 1); }

bool cd_cpuinfo_has(const char *lines, const char *word) {
    static const char *const list[] = {flags, "Features"};
    const size_t n = strlen(word);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const char *line = strstr(lines, list[i]);
        const char *end = line ? line + strcspn(line, "\n") : NULL;
        for (const char *at = line; at && (at = strstr(at, word)) && at < end; at += n)
            if (at[-1] == ' ' && (at[n] == ' ' || at[n] == '\n' || !at[n])) return true;
    }
    return false;
}

/* The flags of the first processor here; "": the system does not say. */
static void flags_here(char line[LINE]) {
    FILE *f = fopen("/proc/cpuinfo", "r");
    line[0] = 0;
    while (f && fgets(line, LINE, f) && !is_flags(line)) line[0] = 0;
    if (f) (void)fclose(f);
}

/* The words of a line of flags that are among those of `here` too. */
static void put_common(FILE *to, char *line, const char *here) {
    char *rest = NULL;
    const size_t head = strcspn(line, ":");
    if (line[head] != ':') return;
    (void)fprintf(to, "%.*s:", (int)head, line);
    for (char *w = strtok_r(line + head + 1, " \t\n", &rest); w; w = strtok_r(NULL, " \t\n", &rest))
        if (cd_cpuinfo_has(here, w)) (void)fprintf(to, " %s", w);
    (void)fputc('\n', to);
}

static FILE *simulate(const char *path) {
    char line[LINE], here[LINE];
    FILE *from = fopen(path, "r"), *to = from ? fmemopen(NULL, MOST, "w+") : NULL;
    flags_here(here);
    while (to && fgets(line, sizeof line, from)) {
        if (is_flags(line)) put_common(to, line, here);
        else (void)fputs(line, to);
    }
    if (from) (void)fclose(from);
    if (to) rewind(to);
    return to;
}

FILE *cd_cpuinfo_open(const char *root) {
    char path[512];
    if (!root[0]) leave_trace();
    if (!root[0] && simulated()) return simulate(simulated());
    return snprintf(path, sizeof path, "%s/proc/cpuinfo", root) < (int)sizeof path
               ? fopen(path, "r")
               : NULL;
}

enum { LINES = 1 << 16 };

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

#if defined(__x86_64__)
/* What runs here, whatever is simulated. */
static cd_isa isa_present(void) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        return CD_ISA_AVX512;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? CD_ISA_AVX2
                                                                           : CD_ISA_SSE2;
}

/* Flags that are not here are not among the lines (cd_cpuinfo_open). */
static cd_isa isa_simulated(void) {
    char lines[LINES];
    FILE *f = cd_cpuinfo_open("");
    lines[f ? fread(lines, 1, sizeof lines - 1, f) : 0] = 0;
    if (f) (void)fclose(f);
    if (cd_cpuinfo_has(lines, "avx512f") && cd_cpuinfo_has(lines, "avx512vl") &&
        cd_cpuinfo_has(lines, "avx512bw") && cd_cpuinfo_has(lines, "avx512dq"))
        return CD_ISA_AVX512;
    return cd_cpuinfo_has(lines, "avx2") && cd_cpuinfo_has(lines, "fma") ? CD_ISA_AVX2
                                                                         : CD_ISA_SSE2;
}
#endif

cd_isa cd_isa_here(void) {
#if defined(__x86_64__)
    const cd_isa here = isa_present(), simulated = cpuinfo_is_simulated() ? isa_simulated() : here;
    return here > simulated ? here : simulated; /* the one with fewer: the enum's order */
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

/* Is the triple of a processor that this one is not? Of a name that nobody knows, nothing is
 * said. */
static bool is_foreign(cd_str triple) {
    enum { X86, ARM, OTHER };
    static const struct {
        const char *begins;
        int family;
    } t[] = {{"x86_64", X86},  {"i386", X86},     {"i486", X86},      {"i586", X86},
             {"i686", X86},    {"aarch64", ARM},  {"arm64", ARM},     {"arm", OTHER},
             {"thumb", OTHER}, {"riscv", OTHER},  {"powerpc", OTHER}, {"ppc", OTHER},
             {"sparc", OTHER}, {"mips", OTHER},   {"s390", OTHER},    {"loongarch", OTHER},
             {"wasm", OTHER},  {"hexagon", OTHER}};
    const int here = cd_isa_here() == CD_ISA_AARCH64                                   ? ARM
                     : cd_isa_here() == CD_ISA_NATIVE || cd_isa_here() == CD_ISA_ARMV7 ? OTHER
                                                                                       : X86;
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        const size_t n = strlen(t[k].begins);
        if (triple.n >= n && !memcmp(triple.p, t[k].begins, n))
            return here != OTHER && t[k].family != here;
    }
    return false;
}

/* By the enum. A simulated processor is none that the compiler could ask. */
static const char *march_of(cd_isa isa) {
    static const char *const march[] = {
        "-march=native",      "-march=x86-64-v4", "-march=x86-64-v3", "-march=x86-64", "",
        "-march=armv7-a+simd"};
    return march[isa == CD_ISA_NATIVE && cpuinfo_is_simulated() ? cd_isa_here() : isa];
}

/* No -mcpu: native. A program for a processor that has more than this one is refused, because it
 * would crash when it is measured. */
static cdmpp_status by_target(const char *target, cd_isa_choice *out, cdmpp_err *err) {
    const cd_str cpu = cd_target_option(target, "-mcpu"),
                 triple = cd_target_option(target, "-mtriple");
    *out = (cd_isa_choice){.isa = CD_ISA_NATIVE, .runs = true};
    snprintf(out->march, sizeof out->march, "%s", march_of(CD_ISA_NATIVE));
    if (is_foreign(triple))
        return CD_FAIL(err, EBACKEND, "a program for %.*s does not run here",
                       cd_str_shown(triple, 60), triple.p);
    if (!cpu.n || cd_isa_is_arm(cd_isa_here())) return CDMPP_OK;
    for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++) {
        if (strlen(cpus[i].llvm) != cpu.n || memcmp(cpus[i].llvm, cpu.p, cpu.n) != 0) continue;
        if (!can_run(cpus[i].isa))
            return CD_FAIL(err, EBACKEND, "-mcpu=%s needs instructions that this processor lacks",
                           cpus[i].llvm);
        out->isa = cpus[i].isa;
        snprintf(out->march, sizeof out->march, "-march=%s", cpus[i].march);
        return CDMPP_OK;
    }
    return CD_FAIL(err, EBACKEND, "-mcpu=%.*s is not a processor that is known here",
                   cd_str_shown(cpu, 60), cpu.p);
}

cdmpp_status cd_isa_choose(const char *isa, const char *target, cd_isa_choice *out,
                           cdmpp_err *err) {
    if (!isa || !isa[0]) return by_target(target, out, err);
    const int k = cd_enum_names_find(CD_ISAS, (cd_str){isa, strlen(isa)});
    if (k < 0)
        return CD_FAIL(err, EUSAGE, "expected an instruction set of " CD_ISAS ", found '%.40s'",
                       isa);
    *out = (cd_isa_choice){.isa = (cd_isa)k, .runs = can_run((cd_isa)k)};
    snprintf(out->march, sizeof out->march, "%s", march_of((cd_isa)k));
    return CDMPP_OK;
}

static uint32_t bytes_of(cd_isa isa) {
    return isa == CD_ISA_AVX512 ? 64 : isa == CD_ISA_AVX2 ? 32 : 16;
}

uint32_t cd_isa_vector_bytes(const char *isa, const char *target) {
    const uint32_t by_name = target ? cd_target_vector_bytes((cd_str){target, strlen(target)}) : 32;
    const bool named = !(isa && isa[0]) && target && cd_target_option(target, "-mcpu").n;
    cd_isa_choice c;
    if (cd_isa_choose(isa, target ? target : "", &c, NULL)) return by_name;
    const uint32_t used = bytes_of(c.isa == CD_ISA_NATIVE ? cd_isa_here() : c.isa);
    return named && by_name < used ? by_name : used; /* -mattr takes some away */
}

/* ---- targets that no user wrote ---- */
/* LLVM's names of a class of processors, so that records of two of them are alike; NULL: none is
 * needed. */
static const char *mcpu_of(cd_isa isa) {
    static const char *const name[] = {NULL, "skylake-avx512", "core-avx2", "x86-64", NULL, NULL};
    return name[isa];
}

static bool begins(cd_str w, const char *with) {
    return w.n >= strlen(with) && !memcmp(w.p, with, strlen(with));
}

/* Without -mcpu= and -mattr=, and with this one where the first of them was, or at the end. */
static const char *with_mcpu(cd_arena *a, const char *target, const char *mcpu) {
    cd_buf b = {0};
    bool put = false;
    for (const char *p = target; *p;) {
        const cd_str w = {p, strcspn(p, " ")};
        const bool is = begins(w, "-mcpu=") || begins(w, "-mattr=");
        p += w.n + strspn(p + w.n, " ");
        if (is && put) continue;
        if (b.n) cd_buf_puts(&b, " ");
        if (is) cd_buf_putf(&b, "-mcpu=%s", mcpu);
        else cd_buf_put(&b, w.p, w.n);
        put = put || is;
    }
    if (!put) cd_buf_putf(&b, "%s-mcpu=%s", b.n ? " " : "", mcpu);
    const char *s = b.oom ? NULL : cd_str_dup(a, (cd_str){b.p, b.n});
    cd_buf_free(&b);
    return s;
}

static bool names_own(const char *target) {
    return cd_target_option(target, "-mcpu").n || cd_target_option(target, "-mattr").n;
}

/* A program of an x86-64 processor. */
static bool is_ours(const char *target) {
    return !cd_target_is_gpu((cd_str){target, strlen(target)}) &&
           !is_foreign(cd_target_option(target, "-mtriple"));
}

const char *cd_isa_target_of(cd_arena *a, const char *isa, const char *target) {
    cd_isa_choice c;
    if (names_own(target) || !is_ours(target) || cd_isa_choose(isa, target, &c, NULL))
        return target;
    const char *mcpu = mcpu_of(c.isa == CD_ISA_NATIVE ? cd_isa_here() : c.isa);
    return mcpu ? with_mcpu(a, target, mcpu) : target;
}

const char *cd_isa_target_runs(cd_arena *a, const char *target) {
    const char *mcpu = mcpu_of(cd_isa_here());
    const bool wider =
        names_own(target) && is_ours(target) &&
        (cd_isa_choose(NULL, target, &(cd_isa_choice){0}, NULL) ||
         cd_target_vector_bytes((cd_str){target, strlen(target)}) > bytes_of(cd_isa_here()));
    return mcpu && wider ? with_mcpu(a, target, mcpu) : target;
}
