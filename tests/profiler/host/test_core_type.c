/* Processors by their type, of made-up machines; and this one, which has some type or says what it
 * has. */
#include "check.h"
#include "fault.h"
#include "tmp.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "profiler/host/host.h"

static cdmpp_err err;

static void put(tmp_dir *d, const char *path, const char *text) {
    char p[256], *s;
    snprintf(p, sizeof p, "%s", path);
    for (s = p; (s = strchr(s + 1, '/')) != NULL; *s = '/') {
        *s = 0;
        mkdir(tmp_path(d, p), 0700);
    }
    tmp_put(d, p, text, strlen(text));
}

static void put_cpu(tmp_dir *d, int k, const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/%s", k, name);
    put(d, path, text);
}

/* Bit k: processor k. */
static cd_affinity of_bits(unsigned bits) {
    cpu_set_t s;
    cd_affinity a;
    CPU_ZERO(&s);
    for (size_t k = 0; k < 32; k++)
        if (bits >> k & 1) CPU_SET(k, &s);
    memcpy(&a, &s, sizeof s);
    return a;
}

static unsigned bits_of(const cd_affinity *a) {
    cpu_set_t s;
    unsigned bits = 0;
    memcpy(&s, a, sizeof s);
    for (size_t k = 0; k < 32; k++) bits |= (unsigned)(CPU_ISSET(k, &s) != 0) << k;
    return bits;
}

static cdmpp_status find(const tmp_dir *d, unsigned allowed, cd_core_type t, cd_core_set *out) {
    const cd_affinity a = of_bits(allowed);
    return cd_core_type_find(d->path, &a, t, out, &err);
}

static void expect(const tmp_dir *d, unsigned allowed, cd_core_type t, unsigned cpu,
                   unsigned sibling) {
    cd_core_set s;
    assert_ok(find(d, allowed, t, &s));
    assert_int_equal(bits_of(&s.cpu), cpu);
    assert_int_equal(bits_of(&s.sibling), sibling);
    assert_int_equal(s.n, __builtin_popcount(cpu));
}

static void refuse(const tmp_dir *d, unsigned allowed, cd_core_type t, const char *say) {
    cd_core_set s;
    assert_status(find(d, allowed, t, &s), CDMPP_EBACKEND);
    if (!strstr(err.msg, say)) fail_msg("%s", err.msg);
}

/* Four slow cores, three middle ones, a fast one: neither is the middle. */
TEST(by_capacity) {
    static const char *const capacity[] = {"250", "250\n", "250", "255",
                                           "800", "800",   "800", "1024"};
    tmp_dir d = tmp_make();
    for (int k = 0; k < 8; k++) put_cpu(&d, k, "cpu_capacity", capacity[k]);
    /* the second best word is not asked */
    for (int k = 0; k < 8; k++) put_cpu(&d, k, "cpufreq/cpuinfo_max_freq", "1000");
    expect(&d, 0xff, CD_CORE_BIG, 0x80, 0);
    expect(&d, 0xff, CD_CORE_LITTLE, 0x0f, 0);
    expect(&d, 0x7a, CD_CORE_BIG, 0x70, 0); /* of those that may be used */
    refuse(&d, 0x0f, CD_CORE_LITTLE,
           "no little core: the 4 processors that may be used are alike (capacity 250 to 255)");
    refuse(&d, 0xff, CD_CORE_SMT_BUSY, "none of the 8 processors");
    tmp_remove(&d);
}

TEST(by_frequency) {
    tmp_dir d = tmp_make();
    put_cpu(&d, 0, "cpufreq/cpuinfo_max_freq", "5700000");
    /* a favoured core is none of another type */
    put_cpu(&d, 1, "cpufreq/cpuinfo_max_freq", "5500000");
    refuse(&d, 3, CD_CORE_BIG,
           "no big core: the 2 processors that may be used are alike (highest frequency in kHz "
           "5.5e+06 to 5.7e+06)");
    put_cpu(&d, 2, "cpufreq/cpuinfo_max_freq", "4000000");
    expect(&d, 7, CD_CORE_BIG, 3, 0);
    expect(&d, 7, CD_CORE_LITTLE, 4, 0);
    /* of the fourth nothing is known */
    refuse(&d, 15, CD_CORE_BIG,
           "tells neither kinds, capacities nor frequencies of its 4 processors");
    tmp_remove(&d);
}

/* Two fast cores of two threads each, four slow ones. */
TEST(hybrids_and_siblings) {
    tmp_dir d = tmp_make();
    put(&d, "sys/devices/cpu_core/cpus", "0-3\n");
    put(&d, "sys/devices/cpu_atom/cpus", "4,5-7\n");
    for (int k = 0; k < 8; k++)
        put_cpu(&d, k, "topology/thread_siblings_list", k < 2 ? "0-1\n" : k < 4 ? "2,3\n" : "9\n");
    expect(&d, 0xff, CD_CORE_BIG, 0x0f, 0);
    expect(&d, 0xff, CD_CORE_LITTLE, 0xf0, 0);
    expect(&d, 0xff, CD_CORE_SMT_IDLE, 0x05, 0x0a);
    expect(&d, 0xff, CD_CORE_SMT_BUSY, 0x05, 0x0a);
    expect(&d, 0xee, CD_CORE_SMT_BUSY, 0x04, 0x08); /* the sibling of 1 may not be used */
    refuse(&d, 0xf0, CD_CORE_SMT_IDLE, "no core for smt-idle");
    refuse(&d, 0xf0, CD_CORE_BIG, "alike (kind 1 to 1)");
    tmp_remove(&d);
}

TEST(nothing_is_told) {
    tmp_dir d = tmp_make();
    refuse(&d, 3, CD_CORE_BIG,
           "no big core: this system tells neither kinds, capacities nor frequencies of its 2 "
           "processors");
    refuse(&d, 3, CD_CORE_SMT_IDLE, "has a sibling among them");
    tmp_remove(&d);
    assert_string_equal(cd_core_type_name(CD_CORE_SMT_BUSY), "smt-busy");
}

/* Whatever there is: afterwards this thread may use what it could before. */
TEST(here) {
    cd_affinity before, after;
    cd_affinity_get(&before);
    for (int t = CD_CORE_BIG; t <= CD_CORE_SMT_BUSY; t++) {
        cd_core_hold h;
        const cdmpp_status st = cd_core_type_begin("", (cd_core_type)t, &h, &err);
        assert_true(!st || st == CDMPP_EBACKEND);
        if (!st) assert_true(cd_affinity_count() > 0);
        cd_core_type_end(&h);
        cd_affinity_get(&after);
        assert_memory_equal(&before, &after, sizeof before);
    }
}

/* All processors of this machine are made siblings of each other: one is left, the others compute
 * until the end. */
TEST(busy_siblings) {
    tmp_dir d = tmp_make();
    cd_core_hold h;
    const int n = cd_affinity_count();
    cpu_set_t may;
    assert_int_equal(sched_getaffinity(0, sizeof may, &may), 0);
    for (int k = 0; k < CPU_SETSIZE; k++)
        if (CPU_ISSET((size_t)k, &may)) put_cpu(&d, k, "topology/thread_siblings_list", "0-1023\n");
    if (n < 2) {
        assert_status(cd_core_type_begin(d.path, CD_CORE_SMT_BUSY, &h, &err), CDMPP_EBACKEND);
    } else {
        assert_ok(cd_core_type_begin(d.path, CD_CORE_SMT_BUSY, &h, &err));
        assert_int_equal(cd_affinity_count(), 1);
        assert_int_equal(h.n, n - 1);
        for (size_t i = 0; i < h.n; i++) assert_int_equal(kill(h.pid[i], 0), 0);
        const pid_t first = h.pid[0];
        cd_core_type_end(&h);
        assert_int_equal(kill(first, 0), -1);
        assert_int_equal(cd_affinity_count(), n);
        assert_ok(cd_core_type_begin(d.path, CD_CORE_SMT_IDLE, &h, &err));
        assert_true(h.n == 0 && cd_affinity_count() == 1);
    }
    cd_core_type_end(&h);
    tmp_remove(&d);
}

TEST(no_memory) {
    tmp_dir d = tmp_make();
    put(&d, "sys/devices/cpu_core/cpus", "0\n");
    put(&d, "sys/devices/cpu_atom/cpus", "1\n");
    FAULT_SWEEP(f, 0) {
        const cd_affinity a = of_bits(3);
        cd_core_set s;
        f.st = cd_core_type_find(d.path, &a, CD_CORE_BIG, &s, &f.err);
    }
    tmp_remove(&d);
}

TESTS(NULL, NULL, by_capacity, by_frequency, hybrids_and_siblings, nothing_is_told, here,
      busy_siblings, no_memory)
