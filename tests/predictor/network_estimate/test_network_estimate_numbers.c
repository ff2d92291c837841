/* A device that no model knows and somebody describes: another one answers for it, and its own
 * clock and caches count in analytic times, for a network as for a plan. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "made_model.h"
#include "predictor/network_estimate/network_estimate_internal.h"

/* `same` has the numbers of zen4, `slow` three quarters of its clock and bandwidth, `half` says
 * nothing of its caches. */
static const char descriptions[] =
    "- {name: zen4, kind: cpu, clock_mhz: 4000, cores: 8, cores_used: 1, lanes: 512, simd_bits: "
    "512, bandwidth_gb_s: 40, l1_kb: 32, l2_kb: 1024, l3_kb: 32768}\n"
    "- {name: same, kind: cpu, clock_mhz: 4000, cores: 8, cores_used: 1, lanes: 512, simd_bits: "
    "512, bandwidth_gb_s: 40, l1_kb: 32, l2_kb: 1024, l3_kb: 32768}\n"
    "- {name: slow, kind: cpu, clock_mhz: 3000, cores: 8, cores_used: 1, lanes: 512, simd_bits: "
    "512, bandwidth_gb_s: 30, l1_kb: 32, l2_kb: 1024, l3_kb: 32768}\n"
    "- {name: half, kind: cpu, clock_mhz: 3000, cores: 8, cores_used: 1, lanes: 512, simd_bits: "
    "512, bandwidth_gb_s: 30}\n";

static tmp_dir dir;
static char described[256], model_path[256], cache[256];
static cd_log quiet;

static int set_up(void **state) {
    (void)state;
    static const char *const target[] = {"llvm -model=zen4"};
    cdmpp_err err = {0};
    cd_task_registry *t = NULL;
    char h5[256], file[320];
    dir = tmp_make();
    unsetenv("CDMPP_MODELS");
    cd_log_init(&quiet, "", stderr);
    quiet.level = CD_LOG_ERROR;
    snprintf(described, sizeof described, "%s",
             tmp_put(&dir, "devices.yaml", descriptions, sizeof descriptions - 1));
    snprintf(model_path, sizeof model_path, "%s", tmp_path(&dir, "m.cdmpp"));
    snprintf(cache, sizeof cache, "%s", tmp_path(&dir, "books"));
    snprintf(file, sizeof file, "device.file=%s", described);
    const char *const set[] = {"train.facts=prior", "model.members=[program]", "train.rounds=20",
                               file};
    cdmpp_status st = cd_task_registry_new(&t, &err);
    if (!st) st = cd_task_registry_load(t, MADE_TASKS, &err);
    if (!st) st = made_extract(&dir, cd_task_registry_at(t, 0)->workload_key, target, 1, h5, &err);
    if (!st) st = made_learn(h5, set, 4, model_path, &err);
    cd_task_registry_free(t);
    if (st) print_error("%s: %s\n", err.key, err.msg);
    return st != CDMPP_OK;
}

static int tear_down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

/* Seconds of the operator "matmul"; *own: its own numbers count. */
static double seconds_of(const char *device, bool *own) {
    static const char *network[] = {"matmul"};
    const char *model[] = {model_path};
    cdmpp_err err = {0};
    cd_network_estimate e = {0};
    cd_network_estimate_options o = cd_network_estimate_defaults();
    o.cost_model = (cd_texts){1, model}, o.network = (cd_texts){1, network}, o.devices = described,
    o.device = device;
    o.cache = cache, o.trials = 4, o.input_size = 512, o.jobs = 1, o.alone = true, o.log = &quiet;
    assert_ok(cd_network_estimate_open(&o, &e, &err));
    assert_ok(cd_network_estimate_run(&e, &err));
    assert_ok(e.item->st);
    *own = e.device[0].numbers != NULL;
    const double s = e.item->replay.makespan_s;
    cd_network_estimate_free(&e);
    return s;
}

/* Asked in this order, the last finds the schedules of all others in the cache. */
TEST(its_own_numbers_count_where_they_suffice) {
    bool own;
    const double known = seconds_of("zen4", &own);
    assert_true(known > 0 && !own);
    const double same = seconds_of("same", &own);
    assert_true(own);
    assert_close(same, known, 1e-9, 0);
    const double slow = seconds_of("slow", &own);
    assert_true(own);
    assert_true(slow > 1.2 * known);
    const double half = seconds_of("half", &own);
    assert_true(!own);
    assert_close(half, known, 1e-9, 0);
    assert_close(seconds_of("slow", &own), slow, 1e-12, 0);
}

TESTS(set_up, tear_down, its_own_numbers_count_where_they_suffice)
