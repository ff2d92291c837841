/* device_law_fit: a device that takes twice as long is found out when it is left out, and a machine is not left out of itself. */
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

/* Each is taken for the other: one shift up and one down. */
TEST(twice_as_slow_is_a_shift) {
    const cd_device_law l = learned(two_machines, true);
    assert_int_equal(l.n, 2);
    assert_close(l.shift, log(2), 0.1, 0);
    assert_true(
        l.own <
        1.2); /* that small trees know forty tasks badly is in it, and not that a device is slow */
    assert_true(l.distance > 0);
}

TEST(instruction_sets_of_a_machine_are_no_devices) {
    assert_int_equal(learned(one_machine, false).n, 0);
}

/* Networks read no facts where net.facts does not say so, whatever train.facts says, and the small trees of the law have none then. */
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

/* Half of the clock and twice as slow: the description says all of it, so the analytic time of the machine itself leaves no shift. */
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
        d->latency_s[i] = d->device_name[d->device[i]][0] == 's'
                              ? 2e-3
                              : 1e-3; /* of all programs, as are their facts */
        for (size_t k = 0; k < CD_N_FACTS; k++) d->facts[i * CD_N_FACTS + k] = 1000;
    }
    assert_ok(cd_learner_run(&c, d, &(cd_learner_options){0}, &l, &err));
    assert_int_equal(l.model->law[CD_DEVICE_LAW_CPU].n, 2);
    assert_true(l.model->law[CD_DEVICE_LAW_CPU].shift <
                0.05); /* log 2 with the numbers of the stand-in */
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

TESTS(made_set_up, made_set_down, twice_as_slow_is_a_shift,
      instruction_sets_of_a_machine_are_no_devices, networks_alone_have_a_law_without_facts,
      a_description_that_says_all_leaves_no_shift, nothing_is_learned_of_what_nobody_describes,
      tasks_count_the_same, the_farthest_tenth_is_outside, memory_ends)
