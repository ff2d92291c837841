/* A simulated processor takes instruction sets away and never adds one; every reader sees the same
 * one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "profiler/host/host.h"
#include "tmp.h"

static tmp_dir dir;
static cdmpp_err err;
static char lines[1 << 16];
static const char avx512[] = "avx512f avx512vl avx512bw avx512dq", avx2[] = "avx2 fma",
                  sse[] = "sse sse2 sse4_2";

static int up(void **state) {
    (void)state;
    dir = tmp_make();
    return 0;
}
static int down(void **state) {
    (void)state;
    assert_int_equal(unsetenv("CDMPP_TEST_CPU") | unsetenv("CDMPP_TEST_CPU_TRACE"), 0);
    tmp_remove(&dir);
    return 0;
}

static const char *read_all(const char *root) {
    FILE *f = cd_cpuinfo_open(root);
    lines[f ? fread(lines, 1, sizeof lines - 1, f) : 0] = 0;
    if (f) (void)fclose(f);
    return lines;
}

static void simulate(const char *flags) {
    char text[512];
    const int n = snprintf(text, sizeof text,
                           "processor\t: 0\nvendor_id\t: Made\ncpu family\t: 99\nmodel\t\t: "
                           "7\nmodel name\t: Made 9000\nflags\t\t: %s\n\n",
                           flags);
    assert_int_equal(setenv("CDMPP_TEST_CPU", tmp_put(&dir, "cpuinfo", text, (size_t)n), 1), 0);
}

TEST(words_of_flags) {
    static const char text[] = "vendor_id : x\nflags\t\t: fpu sse avx512f\nbugs : avx2\n";
    assert_true(cd_cpuinfo_has(text, "fpu") && cd_cpuinfo_has(text, "avx512f"));
    assert_false(cd_cpuinfo_has(text, "avx2") || cd_cpuinfo_has(text, "avx512") ||
                 cd_cpuinfo_has(text, "ss") || cd_cpuinfo_has("", "sse"));
    assert_true(cd_cpuinfo_has("Features\t: fp asimd", "asimd"));
}

/* More than is here is not here: the enum's order is from more to fewer. */
TEST(no_more_than_there_is) {
#if defined(__x86_64__)
    assert_int_equal(unsetenv("CDMPP_TEST_CPU"), 0);
    const cd_isa here = cd_isa_here();
    char all[128], some[128];
    snprintf(all, sizeof all, "%s %s %s no_such_flag", sse, avx2, avx512);
    snprintf(some, sizeof some, "%s %s", sse, avx2);
    const struct {
        const char *flags;
        cd_isa isa;
    } t[] = {{all, CD_ISA_AVX512}, {some, CD_ISA_AVX2}, {sse, CD_ISA_SSE2}, {"", CD_ISA_SSE2}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        simulate(t[k].flags);
        const cd_isa want = t[k].isa > here ? t[k].isa : here;
        assert_int_equal(cd_isa_here(), want);
        assert_int_equal(cd_isa_vector_bytes(NULL, "llvm"), want == CD_ISA_AVX512 ? 64
                                                            : want == CD_ISA_AVX2 ? 32
                                                                                  : 16);
        assert_false(cd_cpuinfo_has(read_all(""), "no_such_flag"));
        cd_isa_choice c;
        assert_ok(cd_isa_choose(NULL, "llvm", &c, &err));
        assert_string_equal(c.march, want == CD_ISA_AVX512 ? "-march=x86-64-v4"
                                     : want == CD_ISA_AVX2 ? "-march=x86-64-v3"
                                                           : "-march=x86-64");
        assert_int_equal(cd_isa_choose(NULL, "llvm -mcpu=skylake-avx512", &c, &err),
                         want == CD_ISA_AVX512 ? CDMPP_OK : CDMPP_EBACKEND);
    }
    assert_int_equal(unsetenv("CDMPP_TEST_CPU"), 0);
    assert_int_equal(cd_isa_here(), here);
#endif
}

TEST(one_text_for_all) {
    char name[32];
    cd_host_info h;
    simulate(sse);
    cd_host_info_read("", &h);
    assert_string_equal(h.cpu, "Made 9000");
    assert_true(cd_host_info_field("", "cpu family", name, sizeof name) && !strcmp(name, "99"));
    assert_int_equal(strstr(read_all(""), "Made 9000") != NULL, 1);
    assert_null(strstr(read_all("/nosuch"), "Made 9000")); /* a folder of a test is not simulated */
}

TEST(who_asks_leaves_a_trace) {
    char path[256];
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "asked"));
    assert_int_equal(unsetenv("CDMPP_TEST_CPU") | setenv("CDMPP_TEST_CPU_TRACE", path, 1), 0);
    (void)read_all("/nosuch");
    assert_int_not_equal(access(path, F_OK), 0);
    (void)cd_isa_here();
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(unlink(path), 0);
    (void)read_all("");
    assert_int_equal(access(path, F_OK), 0);
}

/* Programs are for what is here, whoever stands in. */
TEST(targets_that_no_user_wrote) {
#if defined(__x86_64__)
    cd_arena a = {0};
    assert_int_equal(unsetenv("CDMPP_TEST_CPU_TRACE"), 0);
    char some[64];
    snprintf(some, sizeof some, "%s %s", sse, avx2);
    simulate(some);
    if (cd_isa_here() != CD_ISA_AVX2) skip();
    static const struct {
        const char *isa, *target, *of, *runs;
    } t[] = {{NULL, "llvm -num-cores=2", "llvm -num-cores=2 -mcpu=core-avx2", "llvm -num-cores=2"},
             {"sse2", "llvm", "llvm -mcpu=x86-64", "llvm"},
             /* asked for by name: the measurer refuses it */
             {"avx512", "llvm", "llvm -mcpu=skylake-avx512", "llvm"},
             {NULL, "llvm -mcpu=skylake-avx512 -model=x", "llvm -mcpu=skylake-avx512 -model=x",
              "llvm -mcpu=core-avx2 -model=x"},
             {NULL, "llvm -keys=cpu -mattr=+avx512f -num-cores=1",
              "llvm -keys=cpu -mattr=+avx512f -num-cores=1",
              "llvm -keys=cpu -mcpu=core-avx2 -num-cores=1"},
             {NULL, "llvm -mcpu=nehalem", "llvm -mcpu=nehalem", "llvm -mcpu=nehalem"},
             {NULL, "cuda -model=v100", "cuda -model=v100", "cuda -model=v100"},
             {NULL, "llvm -mtriple=aarch64-linux-gnu", "llvm -mtriple=aarch64-linux-gnu",
              "llvm -mtriple=aarch64-linux-gnu"}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        assert_string_equal(cd_isa_target_of(&a, t[k].isa, t[k].target), t[k].of);
        assert_string_equal(cd_isa_target_runs(&a, t[k].target), t[k].runs);
    }
    cd_arena_free(&a);
#endif
}

TESTS(up, down, words_of_flags, no_more_than_there_is, one_text_for_all, who_asks_leaves_a_trace,
      targets_that_no_user_wrote)
