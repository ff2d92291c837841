/* What others leave of processors, and what the plan makes of it. Shares are given; only the last
 * test looks at this machine. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "predictor/partition/plan/partition_internal.h"

enum { SHARED, FAR, ALONE, NATIVE, FREE, N };
static cdmpp_err err;
static cd_partition p;
static char *said;
static size_t n_said;

/* Two devices on processor 3, an OpenCL device, one on 1, one on none. */
static void begin(cd_partition_options *o, cd_log *log) {
    static const struct {
        const char *name, *kind;
        int core;
    } like[N] = {{"cpu0", "cpu", 3},
                 {"ocl0", "opencl", 2},
                 {"cpu1", "cpu", 3},
                 {"own0", "native", 1},
                 {"cpu2", "cpu", -1}};
    FILE *f = open_memstream(&said, &n_said);
    assert_non_null(f);
    cd_log_init(log, "x", f);
    o->log = log;
    p = (cd_partition){.o = o};
    cd_machine_init(&p.machine);
    for (int d = 0; d < N; d++)
        assert_ok(
            cd_machine_add(&p.machine,
                           &(cd_machine_device){.name = like[d].name,
                                                .kind = like[d].kind,
                                                .opencl = d == FAR || d == NATIVE ? "pocl:0" : NULL,
                                                .core = like[d].core,
                                                .scale = d + 1,
                                                .times = 1},
                           &err));
}

static void end(cd_log *log) {
    (void)fclose(log->out);
    cd_log_done(log);
    cd_machine_free(&p.machine);
    free(said);
}

TEST(a_processor_is_looked_at_once) {
    cd_partition_options o = {.run = true};
    cd_log log;
    int core[CD_MACHINE_DEVICES];
    begin(&o, &log);
    assert_int_equal(cd_partition_cores(&p, core), 2);
    assert_true(core[0] == 3 && core[1] == 1);
    end(&log);
}

/* Our own threads may run anywhere as soon as one device has no processor of its own: then those of
 * the others tell nothing alone. */
TEST(all_processors_count_where_one_is_not_known) {
    static const struct {
        uint32_t n;
        unsigned want;
    } of[] = {{SHARED + 1, 1}, {FAR + 1, 0}, {N, 0}};
    cd_partition_options o = {.run = true};
    cd_log log;
    int core[CD_MACHINE_DEVICES];
    begin(&o, &log);
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        p.machine.n = of[k].n;
        assert_int_equal(cd_partition_counted(&p, core), of[k].want);
    }
    p.machine.n = N;
    p.machine.device[FAR].kind = p.machine.device[NATIVE].kind;
    p.machine.device[FREE].core = 7;
    assert_int_equal(cd_partition_counted(&p, core), 4);
    end(&log);
}

static void left(double a, double b, double c, double d, double e) {
    const double v[N] = {a, b, c, d, e};
    memcpy(p.left, v, sizeof v);
    cd_partition_count_left(&p);
    (void)fflush(p.o->log->out);
}

/* Both devices of a processor are slower; a little that others use is nothing; 0 is no
 * measurement. */
TEST(programs_take_longer_by_what_is_left) {
    cd_partition_options o = {.run = true};
    cd_log log;
    begin(&o, &log);
    left(0.5, 1, 0.5, 0.95, 0);
    const double want[N] = {2, 2, 6, 4, 5};
    for (int d = 0; d < N; d++) assert_close(p.machine.device[d].scale, want[d], 1e-12, 0);
    /* for the plan's file */
    for (int d = 0; d < N; d++) assert_true(p.source[d].left == p.left[d]);
    assert_non_null(strstr(
        said,
        "others use the processor of cpu0: 50 % of it is left, and the plan counts with that\n"));
    assert_non_null(strstr(said, "processor of cpu1: 50 %"));
    assert_true(!strstr(said, "ocl0") && !strstr(said, "own0") && !strstr(said, "cpu2"));
    end(&log);
}

TEST(a_given_plan_is_as_it_is) {
    for (int how = 0; how < 2; how++) {
        cd_partition_options o = {
            .run = true, .plan = how ? "plan.json" : NULL, .ignore_load = !how};
        cd_log log;
        begin(&o, &log);
        left(1, 1, 1, 0.25, 1);
        assert_true(p.machine.device[NATIVE].scale == NATIVE + 1);
        assert_non_null(strstr(said, "others use the processor of own0: 25 % of it is left\n"));
        end(&log);
    }
}

/* Devices on no processor of this machine have all of it; those that share one have the same. */
TEST(a_look) {
    cd_partition_options o = {0};
    cd_log log;
    begin(&o, &log);
    cd_partition_look(&p); /* nothing runs: no look */
    for (int d = 0; d < N; d++) assert_true(p.left[d] == 0);
    o.run = true;
    p.machine.device[SHARED].core = p.machine.device[ALONE].core = 0;
    p.machine.device[NATIVE].core = 1 << 20; /* nobody has it */
    cd_partition_look(&p);
    assert_true(p.left[SHARED] == p.left[ALONE] && p.left[SHARED] > 0 && p.left[SHARED] <= 1);
    assert_true(p.left[FAR] == 1 && p.left[NATIVE] == 1 && p.left[FREE] == 1);
    assert_close(p.machine.device[ALONE].scale, 3 * p.machine.device[SHARED].scale, 1e-12, 0);
    end(&log);
}

TESTS(NULL, NULL, a_processor_is_looked_at_once, all_processors_count_where_one_is_not_known,
      programs_take_longer_by_what_is_left, a_given_plan_is_as_it_is, a_look)
