/* A made-up machine, and the one that this runs on. */
#include "check.h"
#include "tmp.h"

#include <math.h>
#include <sys/stat.h>

#include "base/text/text.h"
#include "profiler/host/host.h"

static void put(tmp_dir *d, const char *path, const char *text) {
    char p[256], *s;
    snprintf(p, sizeof p, "%s", path);
    for (s = p; (s = strchr(s + 1, '/')) != NULL; *s = '/') {
        *s = 0;
        mkdir(tmp_path(d, p), 0700);
    }
    tmp_put(d, p, text, strlen(text));
}

TEST(test_made_up) {
    tmp_dir d = tmp_make();
    cd_host_info h;
    cd_host_time t;
    cd_buf w = {0}, j = {0};
    cd_arena a = {0};
    const cd_json *tree;
    cdmpp_err err = {0};
    put(&d, "proc/cpuinfo",
        "processor\t: 0\nmodel name\t: Abacus 9\nflags\t\t: fpu hypervisor sse\ncpu MHz\t\t: "
        "1234.5\n\nprocessor\t: 1\nmodel name\t: Other\n");
    put(&d, "proc/sys/kernel/osrelease", "5.0\n");
    put(&d, "proc/loadavg", "7.25 1 1 3/4 5\n");
    put(&d, "proc/stat", "cpu  10 20 30 400 50 6 7 8 9 0\ncpu0 1 2 3\n");
    put(&d, "proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    500 kB\n");
    put(&d, "sys/devices/system/cpu/online", "0-3,6\n");
    put(&d, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
    put(&d, "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3000000\n");
    put(&d, "sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
    put(&d, "sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n");
    put(&d, "sys/devices/system/cpu/cpu0/cache/index0/level", "1\n");
    put(&d, "sys/devices/system/cpu/cpu0/cache/index0/size", "48K\n");
    put(&d, "sys/devices/system/cpu/cpu0/cache/index1/type", "Unified\n");
    put(&d, "sys/devices/system/cpu/cpu0/cache/index1/level", "3\n");
    put(&d, "sys/devices/system/cpu/cpu0/cache/index1/size", "32M\n");
    put(&d, "sys/fs/cgroup/cpu.max", "150000 100000\n");
    cd_host_info_read(d.path, &h);
    assert_string_equal(h.cpu, "Abacus 9");
    assert_string_equal(h.governor, "powersave");
    assert_int_equal(h.n_cpu, 5);
    assert_int_equal(h.l1d_bytes, 48 << 10);
    assert_int_equal(h.l2_bytes, -1);
    assert_int_equal(h.l3_bytes, 32 << 20);
    assert_close(h.mhz, 1234.5, 1e-12, 0);
    assert_close(h.max_mhz, 3000, 1e-12, 0);
    assert_int_equal(h.turbo, 1);
    assert_close(h.load, 7.25, 1e-12, 0);
    assert_close(h.cgroup_cpus, 1.5, 1e-12, 0);
    assert_int_equal(h.available_bytes, 512000);
    assert_true(h.virtual_machine);
    cd_host_time_read(d.path, &t);
    assert_int_equal(t.total, 531);
    assert_int_equal(t.idle, 450);
    assert_int_equal(t.steal, 8);
    h.n_allowed = 5;
    cd_host_info_warnings(&w, &h, 2);
    static const char *const said[] = {"powersave", "turbo", "load of 7.2 on 5", "1.5 processors",
                                       "virtual machine"};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) assert_non_null(strstr(w.p, said[i]));
    cd_host_info_json(&j, &h);
    assert_ok(cd_json_parse(&a, j.p, j.n, &tree, &err));
    cd_buf_free(&w);
    cd_buf_free(&j);
    cd_arena_free(&a);
    tmp_remove(&d);
}

/* Nothing can be read: all is unknown, nothing is warned about. */
TEST(test_nothing) {
    cd_host_info h;
    cd_host_time t;
    cd_buf w = {0};
    cd_host_info_read("/nosuch", &h);
    cd_host_time_read("/nosuch", &t);
    assert_int_equal(t.steal, -1);
    assert_string_equal(h.cpu, "");
    assert_int_equal(h.turbo, -1);
    cd_host_info_warnings(&w, &h, 1);
    assert_int_equal(w.n, 0);
    cd_buf_free(&w);
}

TEST(test_here) {
    cd_host_info h;
    cd_host_time a, b;
    cd_host_info_read("", &h);
    assert_true(h.n_allowed >= 1 && h.memory_bytes > 0);
    cd_host_time_read("", &a);
    cd_host_time_read("", &b);
    assert_true(b.total >= a.total && a.total > 0);
}

/* Two packages, of which one passed the end of its counter. */
TEST(test_energy) {
    tmp_dir d = tmp_make();
    cd_host_energy m;
    cd_host_energy_begin(d.path, &m);
    assert_int_equal(m.n, 0);
    assert_true(isnan(cd_host_energy_since(d.path, &m)));
    put(&d, "sys/class/powercap/intel-rapl:0/energy_uj", "1000000\n");
    put(&d, "sys/class/powercap/intel-rapl:1/energy_uj", "9000000\n");
    put(&d, "sys/class/powercap/intel-rapl:1/max_energy_range_uj", "10000000\n");
    cd_host_energy_begin(d.path, &m);
    assert_int_equal(m.n, 2);
    put(&d, "sys/class/powercap/intel-rapl:0/energy_uj", "3500000\n");
    put(&d, "sys/class/powercap/intel-rapl:1/energy_uj", "500000\n");
    assert_close(cd_host_energy_since(d.path, &m), 4, 1e-12, 0); /* 2.5 and 1 to the end and 0.5 */
    put(&d, "sys/class/powercap/intel-rapl:1/max_energy_range_uj", "\n");
    assert_true(isnan(cd_host_energy_since(d.path, &m)));
    tmp_remove(&d);
}

/* A machine whose kernel gives no directory of caches still has caches. */
TEST(caches_of_this_machine) {
    cd_host_info h;
    cd_host_info_read("", &h);
#if defined(__x86_64__)
    assert_true(h.l1d_bytes >= 8 << 10 && h.l1d_bytes <= 1 << 20);
    assert_true(h.l2_bytes < 0 || h.l2_bytes >= h.l1d_bytes);
#endif
    tmp_dir d = tmp_make();
    cd_host_info_read(d.path, &h); /* of a copy of another machine's files nothing is asked here */
    assert_int_equal(h.l1d_bytes, -1);
    tmp_remove(&d);
}

TESTS(NULL, NULL, caches_of_this_machine, test_made_up, test_nothing, test_here, test_energy)
