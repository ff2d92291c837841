/* device_law_fit: a device that takes twice as long is found out when it is left out, and a machine
 * is not left out of itself. */
#include "check.h"
#include "fault.h"
#include "learner/train/device_law_fit.h"
#include "learner/train/train_internal.h"
#include "made_set_file.h"

#define NUMBERS                                                                                    \
    "kind: cpu, clock_mhz: 3000, cores: 8, cores_used: 1, bandwidth_gb_s: 60, l1_kb: 32, l2_kb: "  \
    "1024, l3_kb: 32768, process_nm: 5"
static const char two_machines[] =
    "- {name: fast, " NUMBERS ", lanes: 32, simd_bits: 512}\n"
    "- {name: slow, kind: cpu, clock_mhz: 1500, cores: 8, cores_used: 1, lanes: 32, simd_bits: "
    "512, bandwidth_gb_s: 30}\n";
static const char one_machine[] =
    "- {name: fast, " NUMBERS ", lanes: 32, simd_bits: 512}\n- {name: slow, " NUMBERS
    ", lanes: 16, simd_bits: 256}\n";
static const char other_devices[] = "- {name: third, " NUMBERS ", lanes: 32, simd_bits: 512}\n";

#define CACHES ", l1_kb: 32, l2_kb: 1024, l3_kb: 32768}\n"
static const char two_described[] =
    "- {name: fast, kind: cpu, clock_mhz: 3000, cores: 8, cores_used: 1, lanes: 32, simd_bits: "
    "512, bandwidth_gb_s: 60" CACHES
    "- {name: slow, kind: cpu, clock_mhz: 1500, cores: 8, cores_used: 1, lanes: 32, simd_bits: "
    "512, bandwidth_gb_s: 30" CACHES;

static void configure(cd_config *c, const char *devices) {
    cdmpp_err err = {0};
    char file[300], table[300];
    const char *set[] = {file,
                         table,
                         "model.members=[program]",
                         "model.folds=2",
                         "split.kind=task",
                         "train.rounds=30"};
    snprintf(file, sizeof file, "data.files=%s", h5);
    snprintf(table, sizeof table, "device.file=%s",
             tmp_put(&dir, "devices.yaml", devices, strlen(devices)));
    assert_ok(cd_config_init(c, &err));
    for (size_t k = 0; k < sizeof set / sizeof *set; k++) assert_ok(cd_config_set(c, set[k], &err));
}

static cd_device_law learned(const char *devices, bool written) {
    cdmpp_err err = {0};
    cd_config c;
    cd_learner_result l;
    configure(&c, devices);
    assert_ok(cd_learner_run(&c, NULL, &(cd_learner_options){0}, &l, &err));
    const cd_device_law law = l.model->law[CD_DEVICE_LAW_CPU];
    cd_model *m;
    assert_ok(cd_model_from_bytes(l.file.p, l.file.n, &m, &err));
    assert_true(cd_device_law_any(m->law) == written);
    if (written) assert_close(m->law[CD_DEVICE_LAW_CPU].shift, law.shift, 1e-8, 0);
    assert_int_equal(l.model->law[CD_DEVICE_LAW_GPU].n, 0);
    cd_model_free(m);
    cd_learner_result_free(&l);
    cd_config_free(&c);
    return law;
}

#define GPU                                                                                        \
    "kind: gpu, clock_mhz: 1500, cores: 80, lanes: 64, core_threads: 2048, bandwidth_gb_s: 900, "  \
    "l1_kb: 128, l2_kb: 6144, shared_kb: 96, fp32_gflops: 15000, process_nm: 12"
static const char two_widths[] =
    "- {name: fast, " GPU ", warp: 32}\n- {name: slow, " GPU ", warp: 64}\n";

/* Programs of the made set as those of GPUs. */
static void learn_gpus(const char *devices, cd_config *c, cd_learner_result *l) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL;
    const char *path = h5;
    configure(c, devices);
    assert_ok(cd_dataset_load_within(&path, 1, &(cd_dataset_options){.facts = false}, &d, &err));
    for (size_t i = 0; i < d->n; i++) d->is_gpu[i] = 1;
    assert_ok(cd_learner_run(c, d, &(cd_learner_options){0}, l, &err));
    cd_dataset_free(d);
}

/* Another width has a law of its own, and none of a new machine of the same width follows from
 * it. */
TEST(a_width_left_out_has_its_own_law) {
    cdmpp_err err = {0};
    cd_config c;
    cd_learner_result l;
    cd_device_table *t = NULL;
    cd_diag diag = {0};
    float has[CD_N_DEVICE_COL], want[CD_N_DEVICE_COL];
    learn_gpus(two_widths, &c, &l);
    const cd_device_law *law = l.model->law;
    assert_int_equal(law[CD_DEVICE_LAW_GPU].n, 0);
    assert_int_equal(law[CD_DEVICE_LAW_WIDTH].n, 2);
    assert_close(law[CD_DEVICE_LAW_WIDTH].shift, log(2), 0.1, 0);
    assert_ok(cd_device_table_open(&l.model->arena, c.device_file, c.path, &diag, NULL, &t, &err));
    assert_ok(cd_device_table_vector(t, "fast", has, &err));
    assert_ok(cd_device_table_vector(t, "slow", want, &err));
    assert_close(
        cd_model_device_doubt(l.model, 0, want, has, false).shift,
        cd_device_law_at(&law[CD_DEVICE_LAW_WIDTH], cd_device_distance(want, has), 0).shift, 1e-12,
        0);
    assert_close(cd_model_device_doubt(l.model, 0, has, has, false).shift,
                 cd_device_law_at(&law[CD_DEVICE_LAW_GPU], 0, 0).shift, 1e-12, 0);
    cd_device_table_free(t);
    cd_diag_free(&diag);
    cd_learner_result_free(&l);
    cd_config_free(&c);
}

/* Memory, clock and power of a chip change; its multiprocessors do not. */
TEST(a_chip_is_one_machine) {
    static const char chips[] =
        "- {name: a, " GPU ", warp: 32}\n"
        "- {name: b, kind: gpu, clock_mhz: 1380, cores: 80, lanes: 64, core_threads: 2048, "
        "bandwidth_gb_s: 1100, l1_kb: 128, l2_kb: 8192, shared_kb: 96, process_nm: 12, warp: 32}\n"
        "- {name: c, kind: gpu, clock_mhz: 1500, cores: 40, lanes: 64, core_threads: 2048, "
        "bandwidth_gb_s: 900, l1_kb: 128, l2_kb: 6144, shared_kb: 96, process_nm: 12, warp: 32}\n";
    cdmpp_err err = {0};
    cd_arena a = {0};
    cd_device_table *t = NULL;
    cd_diag diag = {0};
    float v[3][CD_N_DEVICE_COL];
    assert_ok(cd_device_table_open(&a, tmp_put(&dir, "chips.yaml", chips, strlen(chips)), NULL,
                                   &diag, NULL, &t, &err));
    for (size_t k = 0; k < 3; k++)
        assert_ok(cd_device_table_vector(t, (const char[]){(char)('a' + k), 0}, v[k], &err));
    assert_true(cd_device_law_one_machine(v[0], v[1]) && !cd_device_law_one_machine(v[0], v[2]));
    cd_device_table_free(t);
    cd_diag_free(&diag);
    cd_arena_free(&a);
}

/* Each is taken for the other: one shift up and one down. */
TEST(twice_as_slow_is_a_shift) {
    const cd_device_law l = learned(two_machines, true);
    assert_int_equal(l.n, 2);
    assert_close(l.shift, log(2), 0.1, 0);
    /* that small trees know forty tasks badly is in it, and not that a device is slow */
    assert_true(l.own < 1.2);
    assert_true(l.distance > 0);
}

TEST(instruction_sets_of_a_machine_are_no_devices) {
    assert_int_equal(learned(one_machine, false).n, 0);
}

/* Networks read no facts where net.facts does not say so, whatever train.facts says, and the small
 * trees of the law have none then. */
TEST(networks_alone_have_a_law_without_facts) {
    static const char *const set[] = {"model.members=[mlp]", "train.facts=prior", "fit.steps=20"};
    cdmpp_err err = {0};
    cd_config c;
    cd_learner_result l;
    configure(&c, two_machines);
    for (size_t k = 0; k < sizeof set / sizeof *set; k++)
        assert_ok(cd_config_set(&c, set[k], &err));
    assert_ok(cd_learner_run(&c, NULL, &(cd_learner_options){0}, &l, &err));
    assert_int_equal(l.model->law[CD_DEVICE_LAW_CPU].n, 2);
    cd_learner_result_free(&l);
    cd_config_free(&c);
}

/* A third device: its own analytic times leave of its peaks what is beyond those of the machines
 * that were left out; without such times all of them count. */
static void peaks_that_the_law_knows(const cd_model *m, const cd_config *c) {
    static const char third[] = "- {name: near, kind: cpu, clock_mhz: 1600, cores: 8, cores_used: "
                                "1, lanes: 32, simd_bits: 512, bandwidth_gb_s: 32" CACHES
                                "- {name: far, kind: cpu, clock_mhz: 375, cores: 8, cores_used: 1, "
                                "lanes: 32, simd_bits: 512, bandwidth_gb_s: 7.5" CACHES;
    cdmpp_err err = {0};
    cd_arena a = {0};
    cd_device_table *t = NULL, *own = NULL;
    cd_diag diag = {0};
    const cd_device *d;
    float fast[CD_N_DEVICE_COL], v[2][CD_N_DEVICE_COL];
    const double z = cd_normal_quantile(0.95);
    assert_ok(cd_device_table_open(&a, c->device_file, c->path, &diag, NULL, &t, &err));
    assert_ok(cd_device_table_open(&a, tmp_put(&dir, "third.yaml", third, strlen(third)), NULL,
                                   &diag, NULL, &own, &err));
    assert_ok(cd_device_table_vector(t, "fast", fast, &err));
    assert_ok(cd_device_table_vector(own, "near", v[0], &err));
    assert_ok(cd_device_table_vector(own, "far", v[1], &err));
    assert_ok(cd_device_table_find(own, "near", &d, &err));
    assert_true(cd_model_own_times(m, d) && !cd_model_own_times(m, NULL));
    const size_t at = (size_t)cd_model_find_device(m, "fast", 4);
    assert_close(
        cd_model_device_doubt(m, at, v[0], fast, true).shift,
        cd_device_law_at(&m->law[CD_DEVICE_LAW_CPU], cd_device_distance(v[0], fast), 0).shift,
        1e-12, 0);
    /* of a peak of an eighth a quarter is beyond a half */
    assert_close(cd_model_device_doubt(m, at, v[1], fast, true).shift * z, log(4), 1e-4, 0);
    assert_close(cd_model_device_doubt(m, at, v[1], fast, false).shift * z, log(8), 1e-4, 0);
    cd_device_table_free(t);
    cd_device_table_free(own);
    cd_diag_free(&diag);
    cd_arena_free(&a);
}

/* Half of the clock and twice as slow: the description says all of it, so the analytic time of the
 * machine itself leaves no shift. */
TEST(a_description_that_says_all_leaves_no_shift) {
    cdmpp_err err = {0};
    cd_config c;
    cd_learner_result l;
    cd_dataset *d = NULL;
    const char *path = h5;
    configure(&c, two_described);
    assert_ok(cd_config_set(&c, "train.facts=prior", &err));
    assert_ok(cd_dataset_load_within(&path, 1, &(cd_dataset_options){.facts = true}, &d, &err));
    for (size_t i = 0; i < d->n; i++) {
        d->facts_state[i] = CD_FACTS_THERE;
        /* of all programs, as are their facts */
        d->latency_s[i] = d->device_name[d->device[i]][0] == 's' ? 2e-3 : 1e-3;
        for (size_t k = 0; k < CD_N_FACTS; k++) d->facts[i * CD_N_FACTS + k] = 1000;
    }
    assert_ok(cd_learner_run(&c, d, &(cd_learner_options){0}, &l, &err));
    assert_int_equal(l.model->law[CD_DEVICE_LAW_CPU].n, 2);
    /* log 2 with the numbers of the stand-in */
    assert_true(l.model->law[CD_DEVICE_LAW_CPU].shift < 0.05);
    assert_close(l.model->law[CD_DEVICE_LAW_CPU].peaks, log(2), 1e-5, 0);
    peaks_that_the_law_knows(l.model, &c);
    cd_learner_result_free(&l);
    cd_config_free(&c);
    cd_dataset_free(d);
}

TEST(nothing_is_learned_of_what_nobody_describes) {
    assert_int_equal(learned(other_devices, false).n, 0);
}

/* Three programs of a task and one of another: both tasks count the same. */
TEST(tasks_count_the_same) {
    cd_device_law_error e[] = {{1, 7, 0}, {1, 7, 0}, {1, 7, 0}, {3, 2, 0}};
    double shift, spread;
    cd_device_law_parts(e, 4, &shift, &spread);
    assert_close(shift, 2, 1e-12, 0);
    assert_close(spread, 1 / cd_normal_quantile(0.95), 1e-9, 0);
    cd_device_law_parts(e, 0, &shift, &spread);
    assert_true(shift == 0 && spread == 0);
}

/* One error of ten may be as large as it likes. */
TEST(the_farthest_tenth_is_outside) {
    cd_device_law_error e[20] = {{0}};
    double shift, spread;
    for (uint32_t k = 0; k < 20; k++)
        e[k] = (cd_device_law_error){k < 18 ? (k % 2 ? 1 : -1) : k % 2 ? 50 : -50, k, 0};
    cd_device_law_parts(e, 20, &shift, &spread);
    assert_close(shift, 0, 1e-12, 0);
    assert_close(spread, 1 / cd_normal_quantile(0.95), 1e-9, 0);
}

TEST(memory_ends) {
    cdmpp_err err = {0};
    cd_config c;
    cd_learner_result l;
    cd_training_set t;
    configure(&c, two_machines);
    assert_ok(cd_learner_run(&c, NULL, &(cd_learner_options){0}, &l, &err));
    assert_ok(cd_training_set_make(&t, &c, NULL, NULL, &err));
    double *kind_log_s = calloc(l.model->n_kind * t.n_oof, sizeof *kind_log_s);
    assert_non_null(kind_log_s);
    c.train_rounds = 2;
    FAULT_SWEEP(f, 5) {
        f.step = 1 + f.k / 8;
        memset(l.model->law, 0, sizeof l.model->law);
        f.st = cd_device_law_fit(&t, NULL, kind_log_s, l.model, &f.err);
    }
    assert_int_equal(l.model->law[CD_DEVICE_LAW_CPU].n, 2);
    free(kind_log_s);
    cd_training_set_free(&t);
    cd_learner_result_free(&l);
    cd_config_free(&c);
}

TESTS(made_set_up, made_set_down, a_width_left_out_has_its_own_law, a_chip_is_one_machine,
      twice_as_slow_is_a_shift, instruction_sets_of_a_machine_are_no_devices,
      networks_alone_have_a_law_without_facts, a_description_that_says_all_leaves_no_shift,
      nothing_is_learned_of_what_nobody_describes, tasks_count_the_same,
      the_farthest_tenth_is_outside, memory_ends)
