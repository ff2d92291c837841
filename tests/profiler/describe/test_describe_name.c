/* What this machine's devices are called in measure records: by a description that fits, else by
 * themselves. */
#include "base/cli/cli.h"
#include "check.h"
#include "fault.h"
#include "gpu_says.h"
#include "noopencl.h"
#include "profiler/describe/describe.h"
#include "tmp.h"

#include <stdlib.h>
#include <sys/stat.h>

static cdmpp_err err;
static const char *const DEVICES =
    "- {name: zen5-avx512, aliases: [zen5], kind: cpu, clock_mhz: 4000, cores: 8, simd_bits: 512, "
    "l2_kb: 1024}\n"
    "- {name: other-zen4, aliases: [zen4], kind: cpu, simd_bits: 512}\n- {name: zen4-cdmpp, kind: "
    "cpu, simd_bits: 512}\n"
    "- {name: chip, aliases: [Fast Chip 3000], kind: cpu, clock_mhz: 3000, cores: 1, simd_bits: "
    "256, l2_kb: 1024}\n"
    "- {name: card, aliases: [amd-epyc-zen3], kind: gpu, clock_mhz: 1500, cores: 40}\n";

static cd_describe_name name_of(int family, int model, const char *says, const char *flags) {
    tmp_dir t = tmp_make();
    cd_diag diag = {0};
    cd_device_table *devices = NULL;
    cd_describe_name out;
    char text[512], proc[4200];
    snprintf(proc, sizeof proc, "%s/proc", t.path);
    assert_int_equal(mkdir(proc, 0700), 0);
    snprintf(text, sizeof text,
             "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: %d\nmodel\t\t: %d\nmodel "
             "name\t: %s\nflags\t\t: %s\n",
             family, model, says, flags);
    tmp_put(&t, "proc/cpuinfo", text, strlen(text));
    setenv("HWLOC_SYNTHETIC", "l2:1(size=1048576) core:1 pu:1", 1);
    assert_ok(cd_device_table_read("d.yaml", DEVICES, strlen(DEVICES), &diag, &devices, &err));
    assert_ok(cd_describe_name_cpu(t.path, devices, &out, &err));
    unsetenv("HWLOC_SYNTHETIC");
    cd_device_table_free(devices);
    cd_diag_free(&diag);
    tmp_remove(&t);
    return out;
}

static void names(void **s) {
    static const struct {
        int family, model;
        const char *says, *flags, *name;
        bool described;
    } t[] = {{26, 2, "AMD EPYC", "avx avx2 fma avx512f", "zen5-avx512", true},
             /* without AVX-512 it is not that device */
             {26, 2, "AMD EPYC", "avx avx2 fma", "amd-epyc-zen5", false},
             /* records of this machine are of our own code */
             {25, 17, "AMD EPYC", "avx avx2 fma avx512f", "zen4-cdmpp", true},
             /* the description of that name is a GPU's */
             {25, 1, "AMD EPYC", "avx avx2 fma", "amd-epyc-zen3", false},
             {25, 1, "AMD EPYC 7763 64-Core Processor", "avx avx2 fma", "amd-epyc-7763", false},
             {99, 1, "Fast(R) Chip 3000 CPU @ 2.10GHz", "avx avx2 fma", "chip", true},
             {99, 1, "Some Thing", "avx", "some-thing", false}};
    (void)s;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const cd_describe_name d = name_of(t[i].family, t[i].model, t[i].says, t[i].flags);
        assert_string_equal(d.name, t[i].name);
        assert_int_equal(d.described, t[i].described);
        assert_string_equal(d.says, t[i].says);
    }
}

/* This machine, asked twice; targets that nothing here is named for. */
TEST(the_namer) {
    cd_describe_namer n = {0};
    const char *name = cd_describe_namer_ask(&n, (cd_str){"llvm -mcpu=znver3", 17});
    assert_non_null(name);
    assert_null(strchr(name, ' '));
    assert_ptr_equal(cd_describe_namer_ask(&n, (cd_str){"c", 1}), name);
    assert_null(cd_describe_namer_ask(&n, (cd_str){"hexagon", 7}));
}

/* A core of one type is another device. */
TEST(cores_of_a_type) {
    cd_describe_namer n = {0}, little = {.core = "little"};
    char want[128];
    snprintf(want, sizeof want, "%s-little", cd_describe_namer_ask(&n, (cd_str){"llvm", 4}));
    assert_string_equal(cd_describe_namer_ask(&little, (cd_str){"llvm", 4}), want);
    assert_false(little.of[0].described);
}

/* What it says of a device that nobody describes is for targets of that device. */
TEST(an_opencl_device_that_nobody_describes) {
    SKIP_WITHOUT_OPENCL();
    char *said;
    size_t n;
    FILE *out = open_memstream(&said, &n);
    cd_log lg;
    cd_log_init(&lg, "x", out);
    cd_describe_namer a = {.log = &lg};
    assert_non_null(cd_describe_namer_ask(&a, (cd_str){"opencl", 6}));
    (void)fflush(out);
    if (a.of[2].described) assert_non_null(strstr(said, "recognised as this machine"));
    else assert_non_null(strstr(said, "--target 'opencl -model=NAME' names another"));
    cd_log_done(&lg);
    (void)fclose(out);
    free(said);
}

/* Another process asks: what it hears is the same, also that there is no such device, and that the
 * memory is not there. */
TEST(asked_apart) {
    cd_describe_entry e;
    cdmpp_err why = {0};
    assert_status(cd_describe_gpu_apart("cuda", "x", &e, &err), CDMPP_ERANGE);
    assert_status(cd_describe_gpu("cuda", "x", &e, &why), CDMPP_ERANGE);
    assert_string_equal(err.msg, why.msg);
    assert_status(cd_describe_gpu_apart("opencl", "no:such:name", &e, &err), CDMPP_ERANGE);
    const cd_describe_identity nobody = cd_describe_identity_named("Nobody's GPU 9000");
    char how[CD_DESCRIBE_DIFFERS];
    assert_false(cd_describe_gpu_is_here("opencl", NULL, &nobody, how));
    assert_false(cd_describe_gpu_is_here("cuda", NULL, &nobody, how));
    for (int k = 0; fault_possible() && k < 1; k++) {
        fault_at(k);
        assert_status(cd_describe_gpu_apart("cuda", "x", &e, &err), CDMPP_ENOMEM);
        fault_off();
    }
}

TEST(an_opencl_device_apart) {
    cd_describe_entry e, same;
    cd_describe_name d;
    SKIP_WITHOUT_GPU(&d);
    assert_ok(cd_describe_gpu_apart("opencl", "", &e, &err));
    cd_describe_identity i;
    char how[CD_DESCRIBE_DIFFERS];
    cd_describe_identity_gpu(&e, &i);
    assert_string_equal(i.says, d.says);
    assert_true(cd_describe_gpu_is_here("opencl", NULL, &i, how) &&
                cd_describe_gpu_is_here("opencl", "", &i, how) &&
                !cd_describe_gpu_is_here("opencl", "200", &i, how));
    assert_ok(cd_describe_gpu("opencl", "", &same, &err));
    assert_string_equal(e.name, same.name);
    assert_ptr_equal(e.device.name, e.name);
    assert_true(e.device.cores == same.device.cores && e.device.kind == same.device.kind);
}

TESTS(NULL, NULL, asked_apart, an_opencl_device_apart, names, the_namer, cores_of_a_type,
      an_opencl_device_that_nobody_describes)
