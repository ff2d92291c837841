/* describe: made-up machines by hwloc's synthetic topologies and folders instead of /proc; GPUs by
 * made-up facts; what is printed is read back, and what is known of real devices comes out as in
 * configs/devices.yaml. */
#include "profiler/describe/describe.h"
#include "check.h"
#include "tmp.h"

#include "profiler/host/host.h"

#include <stdlib.h>
#include <sys/stat.h>

static cdmpp_err err;

/* ---- reading back ---- */
typedef struct back {
    cd_buf text;
    cd_diag diag;
    cd_device_table *l;
    const cd_device *d;
} back;

static back read_back(const cd_describe_entry *d) {
    back b = {0};
    cd_describe_entry_put_yaml(&b.text, d);
    if (cd_device_table_read("d.yaml", b.text.p, b.text.n, &b.diag, &b.l, &err))
        fail_msg("%s\n%s", b.diag.text.p, b.text.p);
    b.d = cd_device_table_at(b.l, 0);
    const cd_device *found;
    if (d->alias[0]) assert_ok(cd_device_table_find(b.l, d->alias, &found, &err));
    return b;
}

static void done(back *b) {
    cd_device_table_free(b->l);
    cd_diag_free(&b->diag);
    cd_buf_free(&b->text);
}

/* ---- processors ---- */
static const char *const made[] = {
    "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) CPU E5-2673 v4 @ 2.30GHz\nbogomips\t: "
    "4589.37\nflags\t\t: fpu sse sse2 avx fma avx2 constant_tsc\n\n",
    "processor\t: 0\nmodel name\t: AMD EPYC 9654 96-Core Processor\nbogomips\t: "
    "4800.00\nflags\t\t: fpu sse avx avx2 avx512f avx512_bf16 constant_tsc\n",
    "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd evtstrm aes asimdhp cpuid "
    "asimdrdm\nCPU implementer\t: 0x41\n",
};

/* A folder with this /proc/cpuinfo. */
static void make_root(tmp_dir *d, const char *cpuinfo) {
    *d = tmp_make();
    mkdir(tmp_path(d, "proc"), 0755);
    tmp_put(d, "proc/cpuinfo", cpuinfo, strlen(cpuinfo));
}

static cdmpp_status describe(const char *topology, const char *cpuinfo, cd_describe_entry *out) {
    tmp_dir d;
    make_root(&d, cpuinfo);
    setenv("HWLOC_SYNTHETIC", topology, 1);
    const cdmpp_status st = cd_describe_cpu(d.path, false, out, &err);
    unsetenv("HWLOC_SYNTHETIC");
    tmp_remove(&d);
    return st;
}

TEST(a_xeon) {
    cd_describe_entry d;
    assert_ok(
        describe("package:2 l3:1(size=52428800) l2:20(size=262144) l1d:1(size=32768) core:1 pu:2",
                 made[0], &d));
    back b = read_back(&d);
    assert_string_equal(b.d->name, "intel-xeon-e5-2673-v4");
    assert_int_equal(b.d->kind, CD_DEVICE_CPU);
    const double want[][2] = {{b.d->clock_mhz, 2300},
                              {b.d->cores, 20},
                              {b.d->simd_bits, 256},
                              {b.d->l1_kb, 32},
                              {b.d->l2_kb, 256},
                              {b.d->l3_kb, 51200},
                              {b.d->shared_kb, 0},
                              {b.d->warp, 1},
                              {b.d->fp16_tflops, 0},
                              {b.d->lanes, CD_DEVICE_UNKNOWN},
                              {b.d->cores_used, CD_DEVICE_UNKNOWN},
                              {b.d->fp32_gflops, CD_DEVICE_UNKNOWN},
                              {b.d->fp32_matrix_gflops, 0},
                              {b.d->tensor_tflops, 0}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        assert_close(want[i][0], want[i][1], 1e-9, 0);
    assert_non_null(strstr(b.text.p, "# One of 2 sockets."));
    assert_non_null(strstr(b.text.p, "aliases: [\"Intel(R) Xeon(R) CPU E5-2673 v4 @ 2.30GHz\"]"));
    assert_non_null(strstr(b.text.p, "# lanes: not known: --measure finds out"));
    done(&b);
}

TEST(an_epyc_of_parts) {
    cd_describe_entry d;
    assert_ok(
        describe("package:1 l3:12(size=33554432) l2:8(size=1048576) l1d:1(size=32768) core:1 pu:2",
                 made[1], &d));
    back b = read_back(&d);
    assert_string_equal(b.d->name, "amd-epyc-9654");
    assert_close(b.d->l3_kb, 12 * 32768, 1e-9, 0);
    assert_close(b.d->cores, 96, 1e-9, 0);
    assert_close(b.d->simd_bits, 512, 1e-9, 0);
    assert_close(b.d->clock_mhz, 2400, 1e-9, 0);
    assert_non_null(strstr(b.text.p, "clock_mhz: 2400 # of the time-stamp counter"));
    assert_non_null(strstr(b.text.p, "l3_kb: 393216 # in 12 parts"));
    done(&b);
}

/* Cores in pairs share an L2; nothing tells the clock nor a name. */
TEST(an_arm_board) {
    cd_describe_entry d;
    assert_ok(describe("package:1 l2:2(size=2097152) l1d:2(size=65536) core:1 pu:1", made[2], &d));
    back b = read_back(&d);
    assert_string_equal(b.d->name, "unknown-cpu");
    assert_close(b.d->l2_kb, 1024, 1e-9, 0);
    assert_close(b.d->l3_kb, 0, 0, 0);
    assert_close(b.d->simd_bits, 128, 1e-9, 0);
    assert_true(b.d->clock_mhz < 0 && b.d->fp16_tflops < 0);
    assert_close(b.d->tensor_tflops, 0, 0, 0);
    assert_non_null(strstr(b.text.p, "l2_kb: 1024 # of 2048 KB that 2 cores share"));
    done(&b);
}

/* The kernel's numbers, in kHz: the base clock comes before the name's. The highest counts only
 * where no counter tells more. */
TEST(clocks_of_the_kernel) {
    static const struct {
        const char *file, *text;
        size_t cpu; /* of `made` */
        double mhz;
    } tab[] = {{"base_frequency", "2100000\n", 0, 2100},
               {"base_frequency", "\n", 0, 2300},
               {"cpuinfo_max_freq", "1500000\n", 2, 1500},
               {"cpuinfo_max_freq", "soon\n", 2, -1},
               {"cpuinfo_max_freq", "3700000\n", 1, 2400}};
    static const char *const folder[] = {"sys",
                                         "sys/devices",
                                         "sys/devices/system",
                                         "sys/devices/system/cpu",
                                         "sys/devices/system/cpu/cpu0",
                                         "sys/devices/system/cpu/cpu0/cpufreq"};
    for (size_t i = 0; i < sizeof tab / sizeof *tab; i++) {
        tmp_dir t;
        cd_describe_entry d;
        char name[80];
        make_root(&t, made[tab[i].cpu]);
        for (size_t k = 0; k < sizeof folder / sizeof *folder; k++)
            assert_int_equal(mkdir(tmp_path(&t, folder[k]), 0755), 0);
        snprintf(name, sizeof name, "%s/%s", folder[5], tab[i].file);
        tmp_put(&t, name, tab[i].text, strlen(tab[i].text));
        setenv("HWLOC_SYNTHETIC", "package:1 l2:2(size=2097152) l1d:2(size=65536) core:1 pu:1", 1);
        assert_ok(cd_describe_cpu(t.path, false, &d, &err));
        unsetenv("HWLOC_SYNTHETIC");
        tmp_remove(&t);
        back b = read_back(&d);
        assert_close(b.d->clock_mhz, tab[i].mhz, 0, 0);
        assert_true((strstr(b.text.p, "# highest") != NULL) == (tab[i].mhz == 1500));
        done(&b);
    }
}

/* What the flags tell of the units. -1: not known. */
TEST(units_by_flags) {
    static const struct {
        const char *key, *flags;
        double simd, matrix, fp16, tensor, warp;
        const char *note; /* of simd_bits */
    } tab[] = {
        {"flags", "fpu sse", 128, 0, 0, 0, 1, "simd_bits: 128 # SSE\n"},
        {"flags", "fpu sse avx", 256, 0, 0, 0, 1, "simd_bits: 256 # AVX\n"},
        {"flags", "fpu sse avx avx2", 256, 0, 0, 0, 1, "simd_bits: 256 # AVX2\n"},
        /* whole words only */
        {"flags", "fpu sse avx2 avx512f_not", 128, 0, 0, 0, 1, "simd_bits: 128 # SSE\n"},
        {"flags", "sse avx avx512f avx512_fp16", 512, 0, -1, 0, 1, "simd_bits: 512 # AVX-512\n"},
        {"flags", "sse avx avx512f amx_bf16", 512, 0, 0, -1, 1, "simd_bits: 512 # AVX-512\n"},
        {"flags", "sse avx avx512f amx_fp16", 512, 0, 0, -1, 1, "simd_bits: 512 # AVX-512\n"},
        {"flags", "fpu", -1, -1, -1, -1, -1, ""},
        {"Features", "fp asimd", 128, 0, 0, 0, 1, "simd_bits: 128 # NEON\n"},
        {"Features", "fp asimd sve", -1, 0, 0, 0, 1, "# simd_bits: not known: SVE\n"},
        {"Features", "fp asimd asimdhp sme", 128, -1, -1, -1, 1, "simd_bits: 128 # NEON\n"},
        {"Features", "fp", -1, -1, -1, -1, -1, ""},
    };
    for (size_t i = 0; i < sizeof tab / sizeof *tab; i++) {
        char cpuinfo[200];
        cd_describe_entry d;
        snprintf(cpuinfo, sizeof cpuinfo, "processor\t: 0\n%s\t: %s\nbogomips\t: 100\n", tab[i].key,
                 tab[i].flags);
        assert_ok(
            describe("package:1 l2:1(size=262144) l1d:1(size=32768) core:1 pu:1", cpuinfo, &d));
        back b = read_back(&d);
        const double want[][2] = {
            {b.d->simd_bits, tab[i].simd},   {b.d->fp32_matrix_gflops, tab[i].matrix},
            {b.d->fp16_tflops, tab[i].fp16}, {b.d->tensor_tflops, tab[i].tensor},
            {b.d->warp, tab[i].warp},        {b.d->shared_kb, tab[i].warp < 0 ? -1 : 0}};
        for (size_t k = 0; k < sizeof want / sizeof *want; k++)
            if (want[k][1] < 0 ? want[k][0] >= 0 : want[k][0] != want[k][1])
                fail_msg("%s: number %zu is %g, not %g", tab[i].flags, k, want[k][0], want[k][1]);
        if (!strstr(b.text.p, tab[i].note)) fail_msg("%s:\n%s", tab[i].flags, b.text.p);
        done(&b);
    }
}

/* Whole numbers stand with all their digits, others with six. Outside of its key's range a number
 * stays unknown. */
TEST(numbers_as_text) {
    static const struct {
        int key;
        double value;
        const char *note, *text; /* NULL: nothing of it */
    } tab[] = {
        {CD_DESCRIBE_KEY_fp32_gflops, 123456789, NULL, "\n  fp32_gflops: 123456789\n"},
        {CD_DESCRIBE_KEY_fp32_gflops, 15321.25, "so", "\n  fp32_gflops: 15321.2 # so\n"},
        {CD_DESCRIBE_KEY_fp32_gflops, 1e9, "", "\n  fp32_gflops: 1000000000\n"},
        {CD_DESCRIBE_KEY_fp32_gflops, 1.1e9, NULL, NULL},
        {CD_DESCRIBE_KEY_fp32_gflops, 1234567.5, NULL, "\n  fp32_gflops: 1.23457e+06\n"},
        {CD_DESCRIBE_KEY_fp32_gflops, 0, NULL, NULL},
        {CD_DESCRIBE_KEY_l3_kb, 0, NULL, "\n  l3_kb: 0\n"},
        {CD_DESCRIBE_KEY_l3_kb, -1, NULL, NULL},
        {CD_DESCRIBE_KEY_l3_kb, (double)NAN, "x", NULL},
        {CD_DESCRIBE_KEY_mem_gb, 0.125, NULL, "\n  mem_gb: 0.125\n"},
        {CD_DESCRIBE_KEY_warp, 1024, NULL, "\n  warp: 1024\n"},
        {CD_DESCRIBE_KEY_warp, 1025, NULL, NULL},
        {CD_DESCRIBE_KEY_cores, 1, NULL, "\n  cores: 1\n"},
        {CD_DESCRIBE_KEY_cores, 1e6, NULL, "\n  cores: 1000000\n"},
    };
    for (size_t i = 0; i < sizeof tab / sizeof *tab; i++) {
        cd_describe_entry d;
        cd_buf b = {0};
        cd_describe_entry_init(&d, CD_DEVICE_CPU);
        cd_describe_entry_set(&d, tab[i].key, tab[i].value, tab[i].note);
        cd_describe_entry_put_yaml(&b, &d);
        cd_buf_putf(&b, "\n");
        if (!strstr(b.p, tab[i].text ? tab[i].text : "  kind: cpu\n\n"))
            fail_msg("%g: %s", tab[i].value, b.p);
        cd_buf_free(&b);
    }
}

/* A comment a line above the entry; quotes in names; a reason where a number is missing. */
TEST(a_whole_entry) {
    cd_describe_entry d;
    cd_buf b = {0};
    cd_describe_entry_init(&d, CD_DEVICE_GPU);
    cd_describe_entry_set(&d, CD_DESCRIBE_KEY_cores, 80, "told");
    snprintf(d.name, sizeof d.name, "a\"b\\c\td");
    snprintf(d.alias, sizeof d.alias, "A B");
    snprintf(d.head, sizeof d.head, "One.\nTwo.\n");
    snprintf(d.note[CD_DESCRIBE_KEY_lanes], sizeof d.note[0], "ask");
    cd_describe_entry_put_yaml(&b, &d);
    assert_string_equal(b.p, "# One.\n# Two.\n- name: \"a\\\"b\\\\c\\u0009d\"\n  aliases: [\"A "
                             "B\"]\n  kind: gpu\n  cores: 80 # told\n  # lanes: not known: ask\n");
    cd_buf_free(&b);
}

TEST(an_exported_topology) {
    static const char xml[] =
        "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology "
        "version=\"2.0\"><object type=\"Machine\" os_index=\"0\" "
        "cpuset=\"0x3\" complete_cpuset=\"0x3\" allowed_cpuset=\"0x3\" nodeset=\"0x1\" "
        "complete_nodeset=\"0x1\" allowed_nodeset=\"0x1\" gp_index=\"1\">"
        "<object type=\"Package\" os_index=\"0\" cpuset=\"0x3\" complete_cpuset=\"0x3\" "
        "nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"2\">"
        "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x3\" complete_cpuset=\"0x3\" "
        "nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"3\" local_memory=\"4294967296\"/>"
        "<object type=\"L1Cache\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" "
        "complete_nodeset=\"0x1\" gp_index=\"4\" cache_size=\"49152\" depth=\"1\" "
        "cache_linesize=\"64\" cache_associativity=\"12\" cache_type=\"1\">"
        "<object type=\"Core\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" "
        "nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"5\">"
        "<object type=\"PU\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" "
        "complete_nodeset=\"0x1\" gp_index=\"6\"/></object></object>"
        "<object type=\"L1Cache\" cpuset=\"0x2\" complete_cpuset=\"0x2\" nodeset=\"0x1\" "
        "complete_nodeset=\"0x1\" gp_index=\"7\" cache_size=\"49152\" depth=\"1\" "
        "cache_linesize=\"64\" cache_associativity=\"12\" cache_type=\"1\">"
        "<object type=\"Core\" os_index=\"1\" cpuset=\"0x2\" complete_cpuset=\"0x2\" "
        "nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"8\">"
        "<object type=\"PU\" os_index=\"1\" cpuset=\"0x2\" complete_cpuset=\"0x2\" nodeset=\"0x1\" "
        "complete_nodeset=\"0x1\" gp_index=\"9\"/></object></object>"
        "</object></object></topology>";
    tmp_dir t = tmp_make();
    cd_describe_entry d;
    setenv("HWLOC_XMLFILE", tmp_put(&t, "t.xml", xml, sizeof xml - 1), 1);
    assert_ok(cd_describe_cpu(t.path, false, &d, &err));
    assert_status(cd_describe_cpu(t.path, true, &d, &err), CDMPP_EBACKEND); /* another machine */
    unsetenv("HWLOC_XMLFILE");
    assert_ok(cd_describe_cpu(t.path, false, &d, &err));
    setenv("HWLOC_XMLFILE", "/nonexistent.xml", 1);
    /* hwloc may fall back to the machine */
    assert_true(cd_describe_cpu("", true, &d, &err) == CDMPP_EBACKEND || d.device.cores > 0);
    unsetenv("HWLOC_XMLFILE");
    tmp_remove(&t);
}

TEST(this_machine) {
    cd_buf b = {0};
    cd_diag diag = {0};
    cd_device_table *l = NULL;
    assert_ok(cd_describe("cpu", CD_DESCRIBE_SAID, NULL, &b, &err));
    if (cd_device_table_read("d.yaml", b.p, b.n, &diag, &l, &err))
        fail_msg("%s\n%s", diag.text.p, b.p);
    float v[CD_N_DEVICE_COL];
    cd_device_vector(cd_device_table_at(l, 0), v);
    for (size_t k = 0; k < CD_N_DEVICE_COL; k++) assert_true(isfinite(v[k]));
    cd_device_table_free(l);
    cd_diag_free(&diag);
    cd_buf_free(&b);
}

/* Of cores of one type: those that this thread may use, by a name of their own. */
TEST(cores_of_a_type) {
    cd_describe_entry all, some;
    cd_affinity before;
    char want[80];
    assert_ok(cd_describe_cpu("", false, &all, &err));
    cd_affinity_get(&before);
    (void)cd_affinity_one(1, 0);
    assert_ok(cd_describe_cores("", false, "little", &some, &err));
    cd_affinity_set(&before, 0);
    snprintf(want, sizeof want, "%.50s-little", all.name);
    assert_string_equal(some.name, want);
    assert_true(some.device.cores == 1 && some.device.cores_used < 0);
    /* of a machine of one kind of cores */
    assert_true(some.device.l1_kb == all.device.l1_kb || all.device.l1_kb < 0);
    assert_string_equal(some.alias, "");
}

/* ---- measured ---- */
TEST(a_core) {
    double per_clock, mhz;
    cd_describe_core_speed(0, &per_clock, &mhz, NULL);
    assert_true(per_clock < 0); /* no vectors, no loop */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) skip();
    cd_describe_core_speed(256, &per_clock, &mhz, NULL);
    assert_in_range((uint64_t)mhz, 300, 9000);
    /* one or two units of 8; a busy machine may cost much of it */
    assert_true(per_clock > 4 && per_clock < 40);
#endif
}

/* The best of the rounds is not slower than all of them together, whatever else the machine
 * does. */
TEST(the_memory) {
    enum { MB = 4, ROUNDS = 5 };
    double one = 0;
    const double begin = cd_clock_wall();
    assert_ok(cd_describe_triad((size_t)MB << 20, 2, &one, NULL, &err));
    const double all_s = cd_clock_wall() - begin, least = 1e-9 * ROUNDS * 3 * (MB << 20) / all_s;
    assert_true(one >= least && one < 10000);
}

/* ---- GPUs: V100 as its driver tells ---- */
TEST(a_v100) {
    const cd_cuda_facts f = {.name = "Tesla V100-SXM2-32GB",
                             .cc_major = 7,
                             .cc_minor = 0,
                             .units = 80,
                             .warp = 32,
                             .clock_khz = 1530000,
                             .memory_khz = 877000,
                             .bus_bits = 4096,
                             .l2_bytes = 6291456,
                             .shared_bytes = 98304,
                             .unit_threads = 2048,
                             .memory_bytes = (uint64_t)32 << 30};
    cd_describe_entry d;
    cd_diag diag = {0};
    cd_device_table *known = NULL;
    const cd_device *v;
    cd_describe_cuda_facts(&f, &d);
    back b = read_back(&d);
    assert_string_equal(b.d->name, "tesla-v100-sxm2-32gb");
    assert_ok(cd_device_table_load("configs/devices.yaml", &diag, &known, &err));
    assert_ok(cd_device_table_find(known, f.name, &v, &err));
    const double same[][2] = {{b.d->clock_mhz, v->clock_mhz},
                              {b.d->cores, v->cores},
                              {b.d->lanes, v->lanes},
                              {b.d->core_threads, v->core_threads},
                              {b.d->mem_gb, v->mem_gb},
                              {b.d->l1_kb, v->l1_kb},
                              {b.d->l2_kb, v->l2_kb},
                              {b.d->shared_kb, v->shared_kb},
                              {b.d->warp, v->warp}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        assert_close(same[i][0], same[i][1], 1e-9, 0);
    assert_close(b.d->bandwidth_gb_s, v->bandwidth_gb_s, 0.005, 0);
    assert_close(b.d->fp32_gflops, v->fp32_gflops, 0.001, 0);
    cd_device_table_free(known);
    cd_diag_free(&diag);
    done(&b);
}

/* As the data sheets of devices.yaml have it: T4, A100, A10, H100, RTX 4090's successor; nothing of
 * a generation that is not known. */
TEST(l1_by_compute_capability) {
    static const int t[][3] = {{6, 0, 24},  {6, 1, 48},  {7, 5, 64},   {8, 0, 192},
                               {8, 6, 128}, {9, 0, 256}, {12, 0, 128}, {99, 0, -1}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        const cd_cuda_facts f = {.cc_major = t[k][0], .cc_minor = t[k][1]};
        cd_describe_entry d;
        cd_describe_cuda_facts(&f, &d);
        assert_true(t[k][2] < 0 ? d.device.l1_kb < 0 : d.device.l1_kb == t[k][2]);
    }
}

TEST(nothing_told) {
    cd_describe_entry d;
    const cd_cuda_facts none = {.cc_major = 99};
    cd_describe_cuda_facts(&none, &d);
    back b = read_back(&d);
    assert_string_equal(b.d->name, "unknown-gpu");
    assert_true(b.d->clock_mhz < 0 && b.d->cores < 0 && b.d->lanes < 0 && b.d->bandwidth_gb_s < 0 &&
                b.d->fp32_gflops < 0);
    done(&b);
    const cd_opencl_facts cl = {.name = "evil: [\"name\"] # \\ \n x"};
    cd_describe_opencl_facts(&cl, &d);
    b = read_back(&d);
    assert_true(b.d->clock_mhz < 0 && b.d->warp == 1);
    done(&b);
}

TEST(an_opencl_gpu) {
    const cd_opencl_facts f = {.name = "gfx906",
                               .gpu = true,
                               .local_is_own = true,
                               .units = 60,
                               .clock_mhz = 1725,
                               .warp = 64,
                               .memory_bytes = (uint64_t)16 << 30,
                               .local_bytes = 65536};
    cd_describe_entry d;
    cd_describe_opencl_facts(&f, &d);
    back b = read_back(&d);
    assert_close(b.d->cores, 60, 0, 0);
    assert_close(b.d->warp, 64, 0, 0);
    assert_close(b.d->shared_kb, 64, 0, 0);
    assert_true(b.d->l2_kb < 0 && b.d->lanes < 0);
    done(&b);
}

TEST(devices_by_name) {
    cd_buf b = {0};
    assert_status(cd_describe("fpga", CD_DESCRIBE_SAID, NULL, &b, &err), CDMPP_ERANGE);
    assert_status(cd_describe("cuda:x", CD_DESCRIBE_SAID, NULL, &b, &err), CDMPP_ERANGE);
    assert_status(cd_describe("cuda:999", CD_DESCRIBE_SAID, NULL, &b, &err), CDMPP_EBACKEND);
    assert_status(cd_describe("opencl:nosuchplatform:0", CD_DESCRIBE_SAID, NULL, &b, &err),
                  CDMPP_EBACKEND);
    assert_status(cd_describe("opencl:x", CD_DESCRIBE_SAID, NULL, &b, &err), CDMPP_ERANGE);
    /* where there is one */
    const cdmpp_status st = cd_describe("opencl", CD_DESCRIBE_SAID, NULL, &b, &err);
    assert_true(st == CDMPP_OK || st == CDMPP_EBACKEND);
    cd_buf_free(&b);
}

/* A file with the description has the device of the records that are measured here without one. */
TEST(test_name_of_records) {
    cd_describe_name n;
    cd_buf b = {0};
    char want[128];
    assert_ok(cd_describe_name_cpu("", NULL, &n, &err));
    assert_ok(cd_describe("cpu", CD_DESCRIBE_SAID, NULL, &b, &err));
    snprintf(want, sizeof want, "- name: \"%.63s\"\n", n.name);
    assert_non_null(strstr(b.p, want));
    cd_buf_free(&b);
}

/* What code with shorter vectors can: lanes are measured with them, or unknown; what is as short as
 * that stays. */
TEST(test_narrow) {
    cd_describe_entry e;
    cd_describe_entry_init(&e, CD_DEVICE_CPU);
    cd_describe_entry_set(&e, CD_DESCRIBE_KEY_simd_bits, 512, NULL);
    cd_describe_narrow(&e, 32); /* nothing was measured: nothing is */
    assert_true(e.device.simd_bits == 256 && e.device.lanes < 0 && e.device.fp32_gflops < 0);
    cd_describe_entry_set(&e, CD_DESCRIBE_KEY_lanes, 64, NULL);
    cd_describe_entry_set(&e, CD_DESCRIBE_KEY_l1_kb, 48, NULL);
    cd_describe_narrow(&e, 64);
    cd_describe_narrow(&e, 32);
    assert_true(e.device.simd_bits == 256 && e.device.lanes == 64);
    cd_describe_narrow(&e, 16);
    assert_true(e.device.simd_bits == 128 && e.device.l1_kb == 48);
    assert_true(e.device.lanes < 64); /* no processor does so many with such vectors */
}

TESTS(NULL, NULL, a_xeon, an_epyc_of_parts, an_arm_board, clocks_of_the_kernel, units_by_flags,
      numbers_as_text, a_whole_entry, an_exported_topology, this_machine, cores_of_a_type, a_core,
      the_memory, a_v100, l1_by_compute_capability, nothing_told, an_opencl_gpu, devices_by_name,
      test_name_of_records, test_narrow)
