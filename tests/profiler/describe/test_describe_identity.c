/* Identities of machines: two that share a name are told apart, in words; one of a file is what was
 * written. */
#include "profiler/describe/describe.h"
#include "check.h"
#include "fault.h"
#include "tmp.h"

#include <string.h>
#include <sys/stat.h>

static cd_describe_identity epyc(void) {
    return (cd_describe_identity){.says = "AMD EPYC",
                                  .maker = "AuthenticAMD",
                                  .microarch = "zen3",
                                  .family = 25,
                                  .model = 1,
                                  .isa = "AVX2",
                                  .number = {8, 256, 32, 512, 32768, -1}};
}

static void differs(const cd_describe_identity *file, const cd_describe_identity *here,
                    const char *want) {
    char out[CD_DESCRIBE_DIFFERS];
    assert_true(cd_describe_identity_differs(file, here, out) == (want[0] != 0));
    assert_string_equal(out, want);
}

TEST(two_that_share_a_name) {
    cd_describe_identity a = epyc(), b = epyc();
    differs(&a, &b, "");
    strcpy(b.microarch, "zen5");
    b.family = 26, b.model = 2;
    differs(&a, &b, "microarchitecture zen3 (here zen5)");
    strcpy(b.isa, "AVX-512");
    b.number[CD_IDENTITY_VECTOR_BITS] = 512, b.number[CD_IDENTITY_CORES] = 16;
    differs(&a, &b,
            "microarchitecture zen3 (here zen5), instruction set AVX2 (here AVX-512), cores 8 "
            "(here 16), bits of a vector 256 (here 512)");
    b = epyc();
    b.model = 33; /* of the same name, with other caches */
    differs(&a, &b,
            "microarchitecture zen3, AuthenticAMD family 25 model 1 (here zen3, AuthenticAMD "
            "family 25 model 33)");
    a.microarch[0] = b.microarch[0] = 0; /* not listed: the maker's numbers tell */
    differs(
        &a, &b,
        "microarchitecture AuthenticAMD family 25 model 1 (here AuthenticAMD family 25 model 33)");
    b = epyc();
    strcpy(b.says, "AMD EPYC 7763");
    a = epyc();
    differs(&a, &b, "name AMD EPYC (here AMD EPYC 7763)");
}

/* Each number alone; and what one side does not know. */
TEST(numbers) {
    static const struct {
        int k;
        double file, here;
        const char *want;
    } t[] = {{CD_IDENTITY_CORES, -1, 8, "cores unknown (here 8)"},
             {CD_IDENTITY_CORES, 8, -1, "cores 8 (here unknown)"},
             {CD_IDENTITY_CORES, -1, -1, ""},
             {CD_IDENTITY_VECTOR_BITS, 128, 256, "bits of a vector 128 (here 256)"},
             {CD_IDENTITY_VECTOR_BITS, -1, 256, "bits of a vector unknown (here 256)"},
             {CD_IDENTITY_L1_KB, 48, 32, "KB of L1 48 (here 32)"},
             {CD_IDENTITY_L1_KB, -1, 32, ""},
             {CD_IDENTITY_L2_KB, 1024, 512, "KB of L2 1024 (here 512)"},
             {CD_IDENTITY_L3_KB, 65536, 32768, "KB of L3 65536 (here 32768)"},
             {CD_IDENTITY_L3_KB, 65536, -1, ""},
             {CD_IDENTITY_MEMORY_GB, 40, 80, "GB of memory 40 (here 80)"},
             {CD_IDENTITY_MEMORY_GB, 79.2, 80, ""},
             {CD_IDENTITY_MEMORY_GB, 75.9, 80, "GB of memory 75.9 (here 80)"}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        cd_describe_identity a = epyc(), b = epyc();
        a.number[t[i].k] = t[i].file;
        b.number[t[i].k] = t[i].here;
        differs(&a, &b, t[i].want);
    }
    const cd_describe_identity named = cd_describe_identity_named("AMD EPYC"), here = epyc();
    differs(&named, &here,
            "microarchitecture unknown (here zen3), instruction set unknown (here AVX2), cores "
            "unknown (here 8), bits of a vector unknown (here 256)");
}

static cd_describe_identity read_from(const char *text, cdmpp_status want) {
    cdmpp_err err = {0};
    cd_arena a = {0};
    const cd_json *v;
    cd_describe_identity i;
    assert_ok(cd_json_parse(&a, text, strlen(text), &v, &err));
    assert_status(cd_describe_identity_read(v, &i, &err), want);
    cd_arena_free(&a);
    return i;
}

TEST(written_and_read) {
    cd_describe_identity a = epyc(), odd = cd_describe_identity_named("a \"b\"\\\n");
    for (int k = 0; k < 2; k++) {
        cd_buf b = {0};
        cd_describe_identity_put(&b, k ? &odd : &a);
        const cd_describe_identity got = read_from(b.p, CDMPP_OK);
        differs(k ? &odd : &a, &got, "");
        assert_string_equal(got.microarch, k ? "" : "zen3");
        assert_true(got.number[CD_IDENTITY_L3_KB] == (k ? -1 : 32768) &&
                    got.number[CD_IDENTITY_MEMORY_GB] == -1);
        cd_buf_free(&b);
    }
    (void)read_from("{}", CDMPP_ESCHEMA);
    (void)read_from(
        "{\"says\":\"\",\"maker\":\"\",\"microarch\":\"\",\"isa\":1,\"family\":1,\"model\":1}",
        CDMPP_ESCHEMA);
    (void)read_from(
        "{\"says\":\"\",\"maker\":\"\",\"microarch\":\"\",\"isa\":\"\",\"family\":-2,\"model\":1}",
        CDMPP_ERANGE);
    (void)read_from("{\"says\":\"\",\"maker\":\"\",\"microarch\":\"\",\"isa\":\"\",\"family\":1,"
                    "\"model\":1,\"cores\":-4}",
                    CDMPP_ERANGE);
}

/* A machine in a folder. */
static cd_describe_identity machine(const char *cpuinfo) {
    cdmpp_err err = {0};
    cd_describe_identity i;
    tmp_dir t = tmp_make();
    assert_int_equal(mkdir(tmp_path(&t, "proc"), 0777), 0);
    tmp_put(&t, "proc/cpuinfo", cpuinfo, strlen(cpuinfo));
    assert_ok(cd_describe_identity_cpu(t.path, &i, &err));
    tmp_remove(&t);
    return i;
}

TEST(of_a_processor) {
    static const char zen3[] = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\nmodel "
                               "name\t: AMD EPYC\nflags\t\t: fpu sse sse2 avx avx2 fma\n",
                      zen5[] = "vendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\nmodel "
                               "name\t: AMD EPYC\nflags\t\t: fpu sse sse2 avx avx2 fma avx512f\n",
                      arm[] = "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU "
                              "architecture: 8\nCPU part\t: 0xd0c\n";
    const cd_describe_identity a = machine(zen3), b = machine(zen5), c = machine(arm);
    assert_string_equal(a.says, "AMD EPYC");
    assert_string_equal(a.says, b.says);
    assert_string_equal(a.microarch, "zen3");
    differs(&a, &b,
            "microarchitecture zen3 (here zen5), instruction set AVX2 (here AVX-512), bits of a "
            "vector 256 (here 512)");
    assert_string_equal(c.maker, "0x41");
    assert_true(c.family == 8 && c.model == 0xd0c && a.number[CD_IDENTITY_CORES] > 0);
    assert_string_equal(c.isa, "NEON");
}

TEST(of_a_gpu) {
    cd_describe_entry e;
    cd_cuda_facts f = {.name = "NVIDIA A100",
                       .cc_major = 8,
                       .units = 108,
                       .warp = 32,
                       .l2_bytes = 40 << 20,
                       .memory_bytes = 40ull << 30};
    cd_describe_identity a, b;
    cd_describe_cuda_facts(&f, &e);
    cd_describe_identity_gpu(&e, &a);
    f.memory_bytes = 80ull << 30;
    cd_describe_cuda_facts(&f, &e);
    cd_describe_identity_gpu(&e, &b);
    assert_string_equal(a.says, b.says);
    differs(&a, &b, "GB of memory 40 (here 80)");
}

TESTS(NULL, NULL, two_that_share_a_name, numbers, written_and_read, of_a_processor, of_a_gpu)
