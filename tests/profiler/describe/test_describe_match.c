/* Which device stands for a machine: by its name first, by the numbers else, and never one whose
 * programs cannot run. */
#include "check.h"
#include "profiler/describe/describe.h"
#include "tmp.h"

#include <stdlib.h>
#include <sys/stat.h>

static cdmpp_err err;
static const char *const DEVICES =
    "- {name: big, aliases: [zen5], kind: cpu, clock_mhz: 4000, cores: 8, simd_bits: 512, l2_kb: "
    "1024}\n"
    "- {name: zen5-cdmpp, kind: cpu, clock_mhz: 4000, cores: 8, simd_bits: 512, l2_kb: 1024}\n"
    "- {name: near, kind: cpu, clock_mhz: 3000, cores: 1, simd_bits: 256, l2_kb: 1024}\n"
    "- {name: wide, kind: cpu, clock_mhz: 3000, cores: 1, simd_bits: 512, l2_kb: 1024}\n"
    "- {name: far, kind: cpu, clock_mhz: 1000, cores: 1, simd_bits: 256, l2_kb: 64}\n"
    "- {name: card, kind: gpu, clock_mhz: 1500, cores: 40}\n";

/* A machine in a folder: its /proc/cpuinfo with these numbers. */
static cdmpp_status match(const char *vendor, int family, int model, const char *flags,
                          const char *const *name, size_t n, cd_describe_match *out) {
    tmp_dir t = tmp_make();
    cd_diag diag = {0};
    cd_device_table *devices = NULL;
    char text[512];
    char proc[4200];
    snprintf(proc, sizeof proc, "%s/proc", t.path);
    assert_int_equal(mkdir(proc, 0700), 0);
    snprintf(text, sizeof text,
             "processor\t: 0\nvendor_id\t: %s\ncpu family\t: %d\nmodel\t\t: %d\nmodel name\t: A "
             "Processor\ncpu MHz\t\t: 3000\nflags\t\t: %s\n",
             vendor, family, model, flags);
    tmp_put(&t, "proc/cpuinfo", text, strlen(text));
    setenv("HWLOC_SYNTHETIC", "l2:1(size=1048576) core:1 pu:1", 1);
    assert_ok(cd_device_table_read("d.yaml", DEVICES, strlen(DEVICES), &diag, &devices, &err));
    const cdmpp_status st = cd_describe_match_host(t.path, devices, name, n, out, &err);
    unsetenv("HWLOC_SYNTHETIC");
    cd_device_table_free(devices);
    cd_diag_free(&diag);
    tmp_remove(&t);
    return st;
}

/* The description of the microarchitecture says more than the system does, also where the model
 * does not know it. */
TEST(described_but_not_of_the_model) {
    static const char *const name[] = {"near"};
    cd_describe_match zen5, other;
    assert_ok(match("AuthenticAMD", 26, 2, "avx avx2 fma avx512f", name, 1, &zen5));
    assert_ok(match("AuthenticAMD", 99, 2, "avx avx2 fma avx512f", name, 1, &other));
    assert_false(zen5.exact || other.exact);
    assert_true(memcmp(zen5.here, other.here, sizeof zen5.here) != 0);
}

TEST(known_by_name) {
    static const char *const name[] = {"near", "big", "card"};
    cd_describe_match m;
    assert_ok(match("AuthenticAMD", 26, 2, "avx avx2 fma avx512f", name, 3, &m));
    assert_int_equal(m.index, 1);
    assert_true(m.exact);
    assert_string_equal(m.microarch, "zen5");
    assert_string_equal(m.cpu, "A Processor");
}

/* A core with programs of our own code comes before the same core with another compiler's, where
 * the model knows it. */
TEST(our_own_code_comes_first) {
    static const char *const name[] = {"big", "zen5-cdmpp", "near"};
    static const char *const without[] = {"near", "big"};
    cd_describe_match m;
    assert_ok(match("AuthenticAMD", 26, 2, "avx avx2 fma avx512f", name, 3, &m));
    assert_true(m.index == 1 && m.exact);
    assert_string_equal(m.microarch, "zen5");
    assert_ok(match("AuthenticAMD", 26, 2, "avx avx2 fma avx512f", without, 2, &m));
    assert_true(m.index == 1 && m.exact);
    /* equal numbers */
    assert_ok(match("AuthenticAMD", 99, 2, "avx avx2 fma avx512f",
                    (const char *const[]){"big", "zen5-cdmpp"}, 2, &m));
    assert_true(m.index == 1 && !m.exact);
    assert_ok(match("AuthenticAMD", 99, 2, "avx avx2 fma avx512f",
                    (const char *const[]){"zen5-cdmpp", "big"}, 2, &m));
    assert_true(m.index == 0);
    assert_true(cd_describe_is_own("zen5-cdmpp") && !cd_describe_is_own("-cdmpp") &&
                !cd_describe_is_own("zen5-cdmpp2"));
    char text[CD_DESCRIBE_OWN];
    assert_string_equal(cd_describe_own("", text), "");
}

TEST(nearest_by_numbers) {
    static const char *const name[] = {"far", "wide", "near", "card", "unheard-of"};
    cd_describe_match m;
    assert_ok(match("AuthenticAMD", 99, 2, "avx avx2 fma", name, 5, &m));
    /* `wide` is as near, but its programs cannot run here */
    assert_string_equal(name[m.index], "near");
    assert_false(m.exact);
    assert_string_equal(m.microarch, "");
}

TEST(none_fits) {
    static const char *const name[] = {"card", "unheard-of"};
    cd_describe_match m;
    assert_status(match("GenuineIntel", 6, 173, "avx", name, 2, &m), CDMPP_EMODEL);
}

/* A GPU by what its driver calls it, by its numbers else; never a processor, which an OpenCL device
 * may be. */
TEST(a_gpu_by_name_and_by_numbers) {
    static const char text[] =
        "- {name: card, aliases: [super-card], kind: gpu, clock_mhz: 1500, cores: 40}\n- {name: "
        "small, kind: gpu, clock_mhz: 800, cores: 4}\n- {name: big, kind: cpu, cores: 8}\n";
    static const char *const name[] = {"big", "small", "card"};
    static const struct {
        const char *says;
        cd_device_kind kind;
        int units;
        size_t index;
        bool exact;
    } t[] = {{"Super Card", CD_DEVICE_GPU, 4, 2, true},
             {"Another", CD_DEVICE_GPU, 5, 1, false},
             {"Another", CD_DEVICE_GPU, 38, 2, false},
             {"Super Card", CD_DEVICE_CPU, 40, 0, false}};
    cd_diag diag = {0};
    cd_device_table *devices = NULL;
    cd_describe_match m;
    assert_ok(cd_device_table_read("d.yaml", text, sizeof text - 1, &diag, &devices, &err));
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        cd_describe_entry e;
        cd_opencl_facts f = {
            .gpu = t[k].kind == CD_DEVICE_GPU, .units = (uint32_t)t[k].units, .clock_mhz = 1000};
        snprintf(f.name, sizeof f.name, "%s", t[k].says);
        cd_describe_opencl_facts(&f, &e);
        const cdmpp_status st = cd_describe_match_gpu(&e, "opencl", devices, name, 3, &m, &err);
        assert_status(st, f.gpu ? CDMPP_OK : CDMPP_EMODEL);
        if (st) continue;
        assert_int_equal(m.index, t[k].index);
        assert_int_equal(m.exact, t[k].exact);
        assert_true(m.cpu[0] != 0);
        assert_string_equal(m.microarch, "opencl");
        assert_status(cd_describe_match_gpu(&e, "opencl", devices, name, 1, &m, &err),
                      CDMPP_EMODEL);
    }
    cd_device_table_free(devices);
    cd_diag_free(&diag);
}

TEST(published_numbers) {
    assert_string_equal(cd_describe_microarch("AuthenticAMD", 25, 1), "zen3");
    assert_string_equal(cd_describe_microarch("AuthenticAMD", 25, 17), "zen4");
    assert_string_equal(cd_describe_microarch("GenuineIntel", 6, 173), "granite-rapids");
    assert_null(cd_describe_microarch("GenuineIntel", 26, 2));
}

TESTS(NULL, NULL, known_by_name, our_own_code_comes_first, described_but_not_of_the_model,
      nearest_by_numbers, none_fits, a_gpu_by_name_and_by_numbers, published_numbers)
