/* Devices of this machine: found by name, measured in form; what is not here is an error that names
 * it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "noopencl.h"
#include "profiler/machine/machine_measure_internal.h"
#include "profiler/host/host.h"

static cdmpp_err err;

static cdmpp_status find(cd_machine *m, const char *list, bool own) {
    const cd_machine_measure_options a = {.list = list, .own_memory = own, .as = "here"};
    memset(&err, 0, sizeof err);
    cd_machine_init(m);
    return cd_machine_measure_find(m, &a, &err);
}

static void test_bad_names(void **state) {
    (void)state;
    static const struct {
        const char *list;
        cdmpp_status want;
    } bad[] = {{"", CDMPP_ESCHEMA},
               {"cpu0,", CDMPP_ESCHEMA},
               {"tpu0", CDMPP_ESCHEMA},
               {"cpu", CDMPP_ESCHEMA},
               {"cpu-1", CDMPP_ESCHEMA},
               {"cpu0x", CDMPP_ESCHEMA},
               {"cpu99999999999", CDMPP_ESCHEMA},
               {"cpu1023", CDMPP_EBACKEND},
               {"ocl9", CDMPP_EBACKEND},
               {"cuda99", CDMPP_EBACKEND},
               {"cpu0,cpu0", CDMPP_EINVALID}};
    cd_machine m;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_status(find(&m, bad[i].list, false), bad[i].want);
        cd_machine_free(&m);
    }
}

static void test_processor(void **state) {
    (void)state;
    cd_machine m;
    cd_affinity before, after;
    assert_ok(find(&m, "cpu0", false));
    assert_int_equal(m.n, 1);
    assert_true(!strcmp(m.device[0].kind, "cpu") && m.device[0].core == 0 && !m.device[0].memory &&
                !strcmp(m.device[0].as, "here"));
    assert_ok(cd_machine_measure_time(&m, &err));
    assert_true(m.device[0].launch_s > 0 && m.device[0].launch_s < 1 && m.device[0].sync_s == 0);
    cd_affinity_get(&before);
    const cd_machine_measure_options a = {.repeats = 1, .max_bytes = 4096};
    assert_ok(cd_machine_measure_links(&m, &a, &err));
    cd_affinity_get(&after);
    assert_memory_equal(&before, &after, sizeof before);
    assert_non_null(cd_link_table_find(&m.links, "cpu0", "cpu0"));
    cd_machine_free(&m);
}

static void test_opencl(void **state) {
    (void)state;
    SKIP_WITHOUT_OPENCL();
    const cd_machine_measure_options a = {.repeats = 1, .max_bytes = 4096};
    cd_machine m;
    for (int own = 0; own < 2; own++) {
        assert_ok(find(&m, "cpu0,ocl0", own));
        assert_int_equal(m.n, 2);
        const cd_machine_device *d = &m.device[1];
        assert_non_null(d->opencl);
        assert_true(d->core != 0); /* cpu0 has that one */
        assert_ok(cd_machine_measure_time(&m, &err));
        assert_true(d->launch_s > 0 && d->launch_s < 1 && d->sync_s >= 0 && d->sync_s < 1 &&
                    m.device[0].sync_s >= 0);
        assert_ok(cd_machine_measure_links(&m, &a, &err));
        assert_true((cd_link_table_find(&m.links, "cpu0", "ocl0") != NULL) == (d->memory != 0));
        assert_true((cd_link_table_find(&m.links, "ocl0", "cpu0") != NULL) == (d->memory != 0));
        cd_machine_free(&m);
    }
}

/* A device of one unit is taken whole, and no part of it. 0: so it is; 1: not; 2: there is no such
 * device here. */
static int one_unit(void) {
    cd_machine m;
    cd_opencl cl;
    (void)setenv("POCL_MAX_PTHREAD_COUNT", "1", 1);
    (void)setenv("POCL_CPU_MAX_CU_COUNT", "1", 1); /* as newer ones call it */
    if (no_opencl() || cd_opencl_open(&cl, "0", &err)) return 2;
    const bool fits =
        cl.units == 1 && cl.kind & CD_CL_DEVICE_CPU && cl.execution & CD_CL_NATIVE_KERNEL;
    cd_opencl_close(&cl);
    if (!fits) return 2;
    if (find(&m, "cpu0,ocl0", false) || m.n != 2) return 1;
    const bool whole = !strcmp(m.device[1].opencl, "0") && m.device[1].core < 0 &&
                       !strcmp(m.device[1].kind, "native");
    if (!whole)
        print_error("device 'ocl0' is '%s' on core %d\n", m.device[1].opencl, m.device[1].core);
    cd_machine_free(&m);
    return !whole;
}

/* In a process of its own: a driver looks at its environment once. */
static void test_device_of_one_unit(void **state) {
    (void)state;
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) _exit(one_unit());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2) skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Chains by a law: a pass costs 5 ms once, each program 2 us; two devices launch in 2 and 3 us and
 * wait 1 and 4 us for each other. */
static void test_costs_of_chains(void **state) {
    (void)state;
    assert_close(cd_machine_measure_each_s(64, 5e-3 + 64 * 2e-6, 192, 5e-3 + 192 * 2e-6), 2e-6,
                 1e-9, 0);
    assert_close(cd_machine_measure_each_s(64, 2, 192, 1), 1e-9, 0, 0); /* noise */
    const double launch[2] = {2e-6, 3e-6}, gap[2] = {1e-6, 4e-6}, none[2] = {0, 0};
    double wait[2];
    cd_machine_measure_waits_s(5e-6, launch, gap, wait); /* ten for two programs */
    assert_close(wait[0], 1e-6, 1e-9, 0);
    assert_close(wait[1], 4e-6, 1e-9, 0);
    cd_machine_measure_waits_s(5e-6, launch, none, wait);
    assert_close(wait[0], 2.5e-6, 1e-9, 0);
    assert_close(wait[1], 2.5e-6, 1e-9, 0);
    cd_machine_measure_waits_s(2e-6, launch, gap, wait); /* less than the launches: noise */
    assert_true(wait[0] == 0 && wait[1] == 0);
}

/* Two memories of their own: the way goes through the host, and costs both ways. Other processors
 * on the host's memory have its links. */
static void test_through_host(void **state) {
    (void)state;
    SKIP_WITHOUT_OPENCL();
    const cd_machine_measure_options a = {.repeats = 1, .max_bytes = 4096};
    cd_machine m;
    cd_machine_init(&m);
    assert_ok(cd_machine_add(
        &m, &(cd_machine_device){.name = "cpu0", .kind = "cpu", .core = -1, .scale = 1}, &err));
    assert_ok(cd_machine_add(
        &m,
        &(cd_machine_device){
            .name = "x", .kind = "opencl", .opencl = "", .core = -1, .scale = 1, .memory = 1},
        &err));
    assert_ok(cd_machine_add(
        &m,
        &(cd_machine_device){
            .name = "y", .kind = "opencl", .opencl = "", .core = -1, .scale = 1, .memory = 2},
        &err));
    assert_ok(cd_machine_add(
        &m, &(cd_machine_device){.name = "cpu1", .kind = "cpu", .core = -1, .scale = 1}, &err));
    assert_ok(cd_machine_measure_links(&m, &a, &err));
    const cd_link *out = cd_link_table_find(&m.links, "x", "cpu0"),
                  *in = cd_link_table_find(&m.links, "cpu0", "y"),
                  *both = cd_link_table_find(&m.links, "x", "y");
    assert_true(out && in && both);
    for (int64_t b = 1; b < 10000; b = b * 3 + 1)
        assert_close(cd_link_cost(both, b), cd_link_cost(out, b) + cd_link_cost(in, b), 1e-9,
                     1e-15);
    assert_close(cd_link_cost(cd_link_table_find(&m.links, "cpu1", "y"), 777),
                 cd_link_cost(in, 777), 0, 0);
    assert_non_null(cd_link_table_find(&m.links, "cpu1", "cpu1"));
    cd_machine_free(&m);
}

static void test_no_host(void **state) {
    (void)state;
    cd_machine m;
    cd_machine_init(&m);
    assert_ok(cd_machine_add(
        &m,
        &(cd_machine_device){
            .name = "x", .kind = "opencl", .opencl = "", .core = -1, .scale = 1, .memory = 1},
        &err));
    assert_status(cd_machine_measure_links(&m, &(cd_machine_measure_options){.repeats = 1}, &err),
                  CDMPP_ESCHEMA);
    cd_machine_free(&m);
}

/* First, as the next one: they fork. A few windows are enough for the form. */
static void test_contention(void **state) {
    (void)state;
    cd_contention c = {0};
    if (cd_affinity_count() < 2) {
        assert_status(cd_machine_measure_contention(0.002, &c, &err), CDMPP_EUSAGE);
        return;
    }
    const cdmpp_status st = cd_machine_measure_contention(0.002, &c, &err);
    /* others use the processors: a program is late */
    if (st == CDMPP_EBACKEND && strstr(err.msg, "still running")) skip();
    assert_ok(st);
    assert_true(c.n_pair == 12 && c.beside >= 1 && c.turn >= 1 && c.peak_bytes_per_s >= 0 &&
                isfinite(c.error));
}

TESTS(NULL, NULL, test_contention, test_device_of_one_unit, test_bad_names, test_processor,
      test_costs_of_chains, test_opencl, test_through_host, test_no_host)
