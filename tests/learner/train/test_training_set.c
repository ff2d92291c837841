/* Folds: what a member does not see is seen by the others; whole networks stay together. */
#include <string.h>

#include "check.h"
#include "fault.h"
#include "learner/train/training_set.h"
#include "made_set_file.h"

static void configure(cd_config *c, const char *by, const char *folds) {
    cdmpp_err err = {0};
    char file[300];
    snprintf(file, sizeof file, "data.files=%s", h5);
    const char *const set[] = {file, "split.kind=task", by, folds};
    assert_ok(cd_config_init(c, &err));
    for (size_t k = 0; k < 4; k++) assert_ok(cd_config_set(c, set[k], &err));
}

static bool in_a_fold(const cd_training_set *t, size_t i) { return t->fold[i] < t->n_fold; }

/* Programs of a task are in one fold; folds are even to a task; the test part is in none. */
TEST(folds_of_tasks) {
    for (int n = 2; n <= 5; n++) {
        cdmpp_err err = {0};
        cd_config c;
        cd_training_set t;
        char folds[32];
        size_t of[8] = {0}, oof = 0;
        int fold[N_TASK];
        snprintf(folds, sizeof folds, "model.folds=%d", n);
        configure(&c, "model.fold_by=task", folds);
        assert_ok(cd_training_set_make(&t, &c, NULL, NULL, &err));
        assert_int_equal(t.n_fold, n);
        for (int k = 0; k < N_TASK; k++) fold[k] = -1;
        for (size_t i = 0; i < t.d->n; i++) {
            const bool test = t.split->part[i] == CD_SPLIT_PART_TEST;
            assert_int_equal(t.fold[i] == CD_FOLD_NEVER, test);
            if (test) continue;
            assert_true(in_a_fold(&t, i));
            int *have = &fold[t.d->task[i]];
            if (*have < 0) of[t.fold[i]]++;
            assert_true(*have < 0 || *have == t.fold[i]);
            *have = t.fold[i];
            oof++;
        }
        for (int f = 0; f < n; f++) assert_true(of[f] + 1 >= of[0] && of[f] <= of[0]);
        assert_int_equal(t.n_oof, oof);
        for (size_t k = 1; k < t.n_oof; k++) assert_true(t.fold[t.oof[k - 1]] <= t.fold[t.oof[k]]);
        cd_training_set_free(&t);
        cd_config_free(&c);
    }
}

/* Programs without facts are no programs to learn a ratio from: the error says why, how many, and
 * what can be done. */
TEST(programs_without_facts) {
    cdmpp_err err = {0};
    cd_config c;
    cd_training_set t;
    configure(&c, "train.facts=prior", "device.file=configs/devices.yaml");
    /* "fast" is in no list of devices */
    assert_status(cd_training_set_make(&t, &c, NULL, NULL, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.key, "device.file");
    cd_training_set_free(&t);
    assert_ok(cd_config_set(&c, "filter.facts=true", &err));
    assert_status(cd_training_set_make(&t, &c, NULL, NULL, &err), CDMPP_ERANGE);
    assert_non_null(strstr(err.msg, "1200 of 1200 were dropped: no facts of its loop nest"));
    cd_training_set_free(&t);
    cd_config_free(&c);
}

static const char described[] =
    "- name: fast\n  kind: cpu\n  clock_mhz: 3000\n  cores: 8\n  cores_used: 1\n  lanes: 32\n  "
    "simd_bits: 512\n  bandwidth_gb_s: 100\n"
    "  l1_kb: 32\n  l2_kb: 1024\n  l3_kb: 16384\n- name: slow\n  kind: cpu\n  clock_mhz: 1000\n  "
    "cores: 8\n  cores_used: 1\n"
    "  lanes: 32\n  simd_bits: 512\n  bandwidth_gb_s: 50\n  l1_kb: 32\n  l2_kb: 1024\n  l3_kb: "
    "16384\n";

/* The same of described devices: some programs have none. */
TEST(some_without_facts) {
    cdmpp_err err = {0};
    cd_config c;
    cd_training_set t;
    cd_dataset *d = NULL;
    const char *path = h5;
    char devices[400];
    snprintf(devices, sizeof devices, "device.file=%s",
             tmp_put(&dir, "two.yaml", described, sizeof described - 1));
    configure(&c, "train.facts=columns", devices);
    assert_ok(cd_dataset_load_within(&path, 1, &(cd_dataset_options){.facts = true}, &d, &err));
    for (size_t i = 0; i < d->n; i++) {
        d->facts_state[i] = i < 3 ? CD_FACTS_UNSUPPORTED : CD_FACTS_THERE;
        for (size_t k = 0; k < CD_N_FACTS; k++) d->facts[i * CD_N_FACTS + k] = 1000;
    }
    assert_status(cd_training_set_make(&t, &c, d, NULL, &err), CDMPP_ENODATA);
    assert_string_equal(err.key, "train.facts");
    assert_non_null(strstr(err.msg, "3 of 1200 programs"));
    assert_non_null(strstr(err.msg, "line 1 of f.json: extents"));
    cd_training_set_free(&t);
    assert_ok(cd_config_set(&c, "filter.facts=true", &err));
    assert_ok(cd_training_set_make(&t, &c, d, NULL, &err));
    assert_int_equal(t.filter.drop[CD_FILTER_DROP_NO_FACTS], 3);
    for (size_t i = 0; i < d->n; i++) assert_true(cd_facts_input_has(&t.view, i) == (i >= 3));
    /* the faster device computes faster */
    assert_true(t.analytic[4 * CD_N_ANALYTIC + 3] < t.analytic[5 * CD_N_ANALYTIC + 3]);
    assert_int_equal(t.facts_set, CD_FACTS_OF_CPU);
    assert_int_equal(t.view.facts_without, 0);
    cd_training_set_free(&t);
    assert_ok(cd_config_set(&c, "train.facts_without=[times,work]", &err));
    assert_ok(cd_training_set_make(&t, &c, d, NULL, &err));
    assert_int_equal(t.view.facts_without, 1U << CD_FACTS_TIMES | 1U << CD_FACTS_WORK);
    cd_training_set_free(&t);
    assert_ok(cd_config_set(&c, "train.facts_without=[times,prior]", &err));
    assert_status(cd_training_set_make(&t, &c, d, NULL, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.key, "train.facts_without[1]");
    cd_training_set_free(&t);
    assert_ok(cd_config_set(&c, "train.facts_without=[]", &err));
    d->facts_state[7] = CD_FACTS_THERE_GPU; /* other columns */
    assert_status(cd_training_set_make(&t, &c, d, NULL, &err), CDMPP_ENODATA);
    assert_non_null(strstr(err.msg, "programs of CPUs and of GPUs"));
    cd_training_set_free(&t);
    d->facts_state[7] = CD_FACTS_THERE;
    FAULT_SWEEP(f, 5) {
        f.st = cd_training_set_make(&t, &c, d, NULL, &f.err);
        cd_training_set_free(&t);
    }
    cd_dataset *without = NULL;
    assert_ok(cd_dataset_load(&path, 1, &without, &err));
    assert_status(cd_training_set_make(&t, &c, without, NULL, &err), CDMPP_EMODEL);
    cd_training_set_free(&t);
    cd_dataset_free(without);
    cd_dataset_free(d);
    cd_config_free(&c);
}

static cd_dataset *with_facts(void) {
    cdmpp_err err = {0};
    const char *path = h5;
    cd_dataset *d;
    assert_ok(cd_dataset_load_within(&path, 1, &(cd_dataset_options){.facts = true}, &d, &err));
    memset(d->facts_state, CD_FACTS_THERE, d->n);
    for (size_t i = 0; i < d->n * CD_N_FACTS; i++) d->facts[i] = 1000;
    return d;
}

/* What auto becomes: the use, and the reason where it is none. */
static void becomes(const cd_config *c, const cd_dataset *d, cd_facts_use use, const char *why) {
    cdmpp_err err = {0};
    cd_training_set t;
    assert_ok(cd_training_set_make(&t, c, d, NULL, &err));
    assert_int_equal(t.c->train_facts, use);
    assert_true((t.numbers != NULL) == (use == CD_FACTS_USE_PRIOR) &&
                (t.analytic != NULL) == (use == CD_FACTS_USE_PRIOR));
    assert_true(cd_facts_input_has(&t.view, 5) == (use == CD_FACTS_USE_PRIOR));
    if (!why) assert_null(t.no_facts.p);
    else {
        assert_non_null(t.no_facts.p);
        assert_non_null(strstr(t.no_facts.p, "train.facts: auto takes none"));
        assert_non_null(strstr(t.no_facts.p, why));
    }
    cd_training_set_free(&t);
}

static void devices_of(cd_config *c, const char *name, const char *text) {
    cdmpp_err err = {0};
    char set[400];
    snprintf(set, sizeof set, "device.file=%s", tmp_put(&dir, name, text, strlen(text)));
    assert_ok(cd_config_set(c, set, &err));
}

/* Prior where it can be; else none, with the first thing that prior would refuse. */
TEST(auto_takes_facts_where_it_can) {
    static const char half[] = "- {name: fast, kind: cpu, clock_mhz: 3000, l1_kb: 32, l3_kb: "
                               "16384, bandwidth_gb_s: 9}\n- {name: slow, kind: cpu}\n";
    cdmpp_err err = {0};
    cd_config c;
    cd_training_set t;
    cd_dataset *d = with_facts();
    configure(&c, "train.facts=auto", "model.folds=1");
    devices_of(&c, "two.yaml", described);
    becomes(&c, d, CD_FACTS_USE_PRIOR, NULL);
    devices_of(&c, "one.yaml", "- {name: slow, kind: cpu}\n");
    becomes(&c, d, CD_FACTS_USE_NONE, "device fast is not described in ");
    devices_of(&c, "other.yaml", "- {name: third, kind: cpu}\n");
    becomes(&c, d, CD_FACTS_USE_NONE, "devices fast, slow are not described in ");
    becomes(&c, d, CD_FACTS_USE_NONE, "cdmpp-profile --describe-device --measure");
    devices_of(&c, "half.yaml", half);
    becomes(&c, d, CD_FACTS_USE_NONE, "does not say l2_kb");
    devices_of(&c, "gpus.yaml", "- {name: fast, kind: gpu}\n- {name: slow, kind: gpu}\n");
    becomes(&c, d, CD_FACTS_USE_NONE, "say nothing about a gpu");
    devices_of(&c, "two.yaml", described);
    d->facts_state[3] = CD_FACTS_THERE_GPU;
    becomes(&c, d, CD_FACTS_USE_NONE, "programs of CPUs and of GPUs");
    d->facts_state[3] = d->facts_state[9] = CD_FACTS_UNSUPPORTED;
    becomes(&c, d, CD_FACTS_USE_NONE, "2 of 1200 programs have no facts");
    becomes(&c, d, CD_FACTS_USE_NONE, "filter.facts: true");
    assert_ok(cd_config_set(&c, "filter.facts=true", &err));
    becomes(&c, d, CD_FACTS_USE_PRIOR, NULL);
    assert_ok(cd_config_set(&c, "train.objective=rank", &err));
    becomes(&c, d, CD_FACTS_USE_NONE, "train.objective: log_latency");
    /* nothing reads facts: that is no news */
    assert_ok(cd_config_set(&c, "model.members=[sums]", &err));
    becomes(&c, d, CD_FACTS_USE_NONE, NULL);
    cd_dataset_free(d);
    cd_config_free(&c);
    configure(&c, "train.facts=auto", "model.folds=1");
    /* somebody asked for it */
    assert_ok(cd_config_set(&c, "device.file=/no/such/file.yaml", &err));
    assert_status(cd_training_set_make(&t, &c, NULL, NULL, &err), CDMPP_EIO);
    cd_training_set_free(&t);
    cd_config_free(&c);
}

/* Files of an earlier version, and data that were loaded without: none, unless the filter asks for
 * facts. */
TEST(auto_of_data_without_facts) {
    const char *path = h5;
    cdmpp_err err = {0};
    cd_config c;
    cd_training_set t;
    cd_dataset *d;
    configure(&c, "train.facts=auto", "model.folds=1");
    assert_ok(cd_dataset_load(&path, 1, &d, &err));
    becomes(&c, d, CD_FACTS_USE_NONE, "a file of the data set has no facts");
    assert_ok(cd_config_set(&c, "filter.facts=true", &err));
    assert_status(cd_training_set_make(&t, &c, d, NULL, &err), CDMPP_EMODEL);
    cd_training_set_free(&t);
    cd_dataset_free(d);
    cd_config_free(&c);
}

TEST(memory_ends_while_auto_is_decided) {
    cd_config c;
    cd_dataset *d = with_facts();
    configure(&c, "train.facts=auto", "model.folds=1");
    for (int k = 0; k < 2; k++) {
        devices_of(&c, "some.yaml", k ? described : "- {name: third, kind: cpu}\n");
        FAULT_SWEEP(f, 5) {
            cd_training_set t;
            f.st = cd_training_set_make(&t, &c, d, NULL, &f.err);
            if (!f.st)
                assert_int_equal(t.c->train_facts, k ? CD_FACTS_USE_PRIOR : CD_FACTS_USE_NONE);
            cd_training_set_free(&t);
        }
    }
    cd_dataset_free(d);
    cd_config_free(&c);
}

/* Networks a to f of four tasks each, g in two shapes, and one task that a and every other have in
 * common. */
TEST(folds_of_networks) {
    enum { NETS = 8, EACH = 4, IN = NETS * EACH + NETS };
    static char *name[NETS] = {
        "a", "b", "c", "d", "e", "f", "(g,[(1,3,224,224)])", "(g,[(4,3,224,224)])"};
    static uint32_t net[IN], task[IN];
    static int64_t weight[IN];
    cdmpp_err err = {0};
    cd_dataset *d;
    cd_config c;
    cd_training_set t;
    size_t n = 0;
    configure(&c, "model.fold_by=network", "model.folds=2");
    cd_member_plan plan;
    assert_ok(cd_member_plan_of(&c, &plan, &err));
    assert_ok(cd_training_set_load(&c, &plan, NULL, &d, &err));
    cd_config_free(&c);
    for (uint32_t k = 0; k < NETS; k++)
        for (uint32_t j = 0; j <= EACH; j++, n++) {
            net[n] = k;
            task[n] = j < EACH ? k * EACH + j : NETS * EACH; /* the last is everybody's */
            weight[n] = 1;
        }
    cd_dataset with = *d; /* the file has no networks */
    with.network_name = name;
    with.n_network = NETS;
    with.n_net_task = n;
    with.net_network = net;
    with.net_task = task;
    with.net_weight = weight;
    for (int f = 2; f <= 3; f++) {
        char folds[32];
        int of[NETS];
        bool has[8] = {false};
        snprintf(folds, sizeof folds, "model.folds=%d", f);
        configure(&c, "model.fold_by=network", folds);
        assert_ok(cd_training_set_make(&t, &c, &with, NULL, &err));
        for (int k = 0; k < NETS; k++) of[k] = -1;
        for (size_t i = 0; i < t.d->n; i++) {
            const uint32_t at = t.d->task[i], k = at / EACH;
            if (t.fold[i] == CD_FOLD_NEVER) continue;
            /* in several folds: in none */
            if (at == NETS * EACH) assert_int_equal(t.fold[i], CD_FOLD_ALWAYS);
            if (at >= NETS * EACH) continue;
            assert_true(in_a_fold(&t, i));
            assert_true(of[k] < 0 || of[k] == t.fold[i]);
            of[k] = t.fold[i];
            has[t.fold[i]] = true;
        }
        assert_int_equal(of[6], of[7]); /* two shapes of one network */
        for (int k = 0; k < f; k++) assert_true(has[k]);
        cd_training_set_free(&t);
        cd_config_free(&c);
    }
    for (uint32_t k = 0; k < IN; k++) { /* every task is of one network: no second fold */
        net[k] = 0;
        task[k] = k;
    }
    configure(&c, "model.fold_by=network", "model.folds=2");
    assert_status(cd_training_set_make(&t, &c, &with, NULL, &err), CDMPP_ERANGE);
    assert_string_equal(err.msg, "2 folds of 1 networks: one has no task of its own");
    cd_training_set_free(&t);
    cd_config_free(&c);
    cd_dataset_free(d);
}

/* A device of which no program is chosen is none of the model's. */
TEST(devices_of_chosen_programs) {
    for (size_t want = 0; want < 2; want++) {
        cdmpp_err err = {0};
        cd_config c;
        cd_training_set t;
        char only[64];
        configure(&c, "model.fold_by=task", "model.folds=2");
        assert_ok(cd_training_set_make(&t, &c, NULL, NULL, &err));
        assert_int_equal(t.n_device, 2);
        snprintf(only, sizeof only, "data.devices=%s", t.device_name[want]);
        cd_training_set_free(&t);
        assert_ok(cd_config_set(&c, only, &err));
        assert_ok(cd_training_set_make(&t, &c, NULL, NULL, &err));
        assert_int_equal(t.n_device, 1);
        assert_string_equal(t.device_name[0], strchr(only, '=') + 1);
        cd_training_set_free(&t);
        cd_config_free(&c);
    }
}

TESTS(made_set_up, made_set_down, folds_of_tasks, programs_without_facts, some_without_facts,
      auto_takes_facts_where_it_can, auto_of_data_without_facts, memory_ends_while_auto_is_decided,
      folds_of_networks, devices_of_chosen_programs)
