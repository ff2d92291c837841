/* The default models of both kinds in one set: which of them answers for a device, and which is not
 * even loaded. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fault.h"
#include "learner/inputs/inputs.h"
#include "made_here.h"
#include "made_model.h"
#include "predictor/estimate/estimate.h"
#include "tmp.h"

#define OF_CPUS "tests/golden/model_v3.cdmpp" /* zen5-avx2 and zen5-avx512 */

static const char descriptions[] =
    "- {name: like-avx2, kind: cpu, clock_mhz: 4100, cores: 1, lanes: 16, simd_bits: 256, "
    "bandwidth_gb_s: 200, fp32_gflops: 131.2, warp: 1}\n"
    "- {name: card, kind: gpu, clock_mhz: 1000, cores: 50, lanes: 64, bandwidth_gb_s: 400, "
    "fp32_gflops: 6400, warp: 32}\n"
    "- {name: board, kind: gpu, clock_mhz: 1200, cores: 60, lanes: 64, bandwidth_gb_s: 500, "
    "fp32_gflops: 9200, warp: 32}\n";

static cdmpp_err err;
static tmp_dir dir;
static char described[256], of_gpus[256];
static cd_model_set m;

static int set_up(void **state) {
    static const char *const target[] = {"cuda -model=card"};
    (void)state;
    unsetenv("CDMPP_MODELS");
    dir = tmp_make();
    snprintf(described, sizeof described, "%s",
             tmp_put(&dir, "devices.yaml", descriptions, sizeof descriptions - 1));
    snprintf(of_gpus, sizeof of_gpus, "%s", tmp_path(&dir, CD_DEFAULT_MODEL_GPU));
    return made_learn_targets(&dir, target, 1, "train.rounds=5", of_gpus, &err) != CDMPP_OK;
}

static int tear_down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

/* As cd_model_set_open leaves it where both are installed. */
static cdmpp_status open_defaults(cdmpp_err *e) {
    const char *path[] = {OF_CPUS, of_gpus};
    m = (cd_model_set){0};
    CD_TRY(cd_model_set_open(
        &(cd_model_set_options){.model = &(cd_texts){2, path}, .devices = described}, &m, e));
    m.default_path = m.v[0].path;
    m.gpu_default = m.v[1].path;
    return CDMPP_OK;
}

/* The one that is of the other kind stays unread. */
static void stands(const char *device, size_t by, const char *name) {
    const cd_model *model;
    const char *who;
    bool other;
    assert_ok(open_defaults(&err));
    assert_ok(cd_model_set_stand_in(&m, device, &model, &who, &other, &err));
    assert_string_equal(who, name);
    assert_false(other);
    assert_ptr_equal(model, m.v[by].tasks);
    assert_null(m.v[!by].tasks);
    cd_model_set_free(&m);
}

TEST(each_kind_has_its_own) {
    stands("board", 1, "card");
    stands("like-avx2", 0, "zen5-avx2");
}

/* Only a model of processors is there: it answers for a GPU, by the rooflines, and that is told. */
TEST(without_that_of_gpus_a_processor_stands_for_one) {
    const cd_model *model;
    const char *who;
    bool other;
    assert_ok(open_defaults(&err));
    m.gpu_default = NULL;
    m.n = 1;
    assert_ok(cd_model_set_stand_in(&m, "board", &model, &who, &other, &err));
    assert_true(other && model == m.v[0].tasks);
    m.n = 2;
    cd_model_set_free(&m);
}

/* A model that is corrected for a GPU and the default one know the same devices: nobody is
 * surprised by that. */
TEST(it_is_no_second_model_of_a_device) {
    const char *path[] = {of_gpus, of_gpus};
    m = (cd_model_set){0};
    assert_ok(cd_model_set_open(
        &(cd_model_set_options){.model = &(cd_texts){2, path}, .devices = described}, &m, &err));
    assert_non_null(cd_model_set_also(&m, "card"));
    m.v[1].path = m.gpu_default = tmp_path(&dir, CD_DEFAULT_MODEL_GPU);
    assert_null(cd_model_set_also(&m, "card"));
    cd_model_set_free(&m);
}

/* This machine is its processor, also where a model of GPUs is beside it. */
TEST(this_machine) {
    const char *out;
    assert_ok(open_defaults(&err));
    assert_null(cd_model_set_gpu(&m, NULL));
    /* nobody describes the two of OF_CPUS here */
    const cdmpp_status st = cd_model_set_host(&m, NULL, &out, &err);
    assert_true(st == CDMPP_OK || st == CDMPP_EMODEL);
    assert_true(st || !strncmp(out, "zen5", 4));
    cd_model_set_free(&m);
}

/* A back end without a device: the user names one, and is told which for example. Without the model
 * of GPUs it is the model that is missing. */
TEST(a_gpu_that_is_not_here) {
    const char *out = "x";
    assert_ok(open_defaults(&err));
    assert_status(cd_model_set_gpu_host(&m, "nobody's", NULL, &out, &err), CDMPP_EUSAGE);
    assert_null(out);
    assert_non_null(strstr(err.msg, "no GPU of this machine runs programs of nobody's"));
    assert_non_null(strstr(err.msg, "--device names a GPU, card for example"));
    m.gpu_default = NULL;
    assert_status(cd_model_set_gpu_host(&m, "nobody's", NULL, &out, &err), CDMPP_EUSAGE);
    assert_non_null(strstr(err.msg, "there is no cost model for this machine's GPU"));
    m.default_path = NULL; /* named by the user */
    assert_ok(cd_model_set_gpu_host(&m, "nobody's", NULL, &out, &err));
    assert_null(out);
    cd_model_set_free(&m);
}

TEST(which_devices_it_knows_is_told_once) {
    const cd_model *model;
    cd_log log;
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    cd_log_init(&log, "test", f);
    assert_ok(open_defaults(&err));
    assert_ok(cd_model_set_tasks(&m, "card", false, &model, &err));
    cd_model_set_warn(&m, model, "card", NULL, &log);
    cd_model_set_warn(&m, model, "card", NULL, &log);
    (void)fclose(f);
    const char *told =
        strstr(text, CD_DEFAULT_MODEL_GPU ", the default one of GPUs; it knows card\n");
    assert_non_null(told);
    assert_null(strstr(told + sizeof CD_DEFAULT_MODEL_GPU + 5, "the default one"));
    free(text);
    cd_model_set_free(&m);
}

/* ---- one that is corrected for a GPU beside both ---- */
static cdmpp_status open_three(cdmpp_err *e) {
    static const char more[] = "\"backend\":\"nobody's\",\"network_cost\":\"- {devices: [mine], "
                               "call_s: 1e-6, networks: 4, spread: 0.1}\"";
    cd_buf b = {0};
    const char *path[] = {OF_CPUS, "corrected.cdmpp", of_gpus};
    cdmpp_status st = made_here_more(of_gpus, 0, "A GPU", 2, more, &b, e);
    if (!st) path[1] = tmp_put(&dir, "corrected.cdmpp", b.p, b.n);
    cd_buf_free(&b);
    m = (cd_model_set){0};
    if (!st)
        st = cd_model_set_open(
            &(cd_model_set_options){.model = &(cd_texts){3, path}, .devices = described}, &m, e);
    if (st) return st;
    m.default_path = m.v[0].path;
    m.gpu_path = m.v[1].path;
    m.gpu_default = m.v[2].path;
    return CDMPP_OK;
}

/* The driver of a GPU is started where its answer matters first, and never twice. */
TEST(no_driver_is_asked_about_a_processor) {
    const cd_model *model;
    const char *who;
    bool other;
    cd_buf list = {0};
    assert_ok(open_three(&err));
    assert_ok(cd_model_set_tasks(&m, "zen5-avx2", false, &model, &err));
    assert_ptr_equal(model, m.v[0].tasks);
    assert_ok(cd_model_set_stand_in(&m, "like-avx2", &model, &who, &other, &err));
    assert_ptr_equal(model, m.v[0].tasks);
    assert_null(cd_model_set_also(&m, "zen5-avx2"));
    assert_non_null(cd_model_set_device(&m, "like-avx2"));
    (void)cd_model_set_host(&m, NULL, &who, &err);
    assert_false(m.v[1].asked);
    /* of a back end that has no device */
    assert_ok(cd_model_set_tasks(&m, "card", false, &model, &err));
    assert_true(m.v[1].asked && m.v[1].absent);
    assert_ptr_equal(model, m.v[2].tasks);
    assert_ok(cd_model_set_tasks(&m, "mine", false, &model, &err));
    assert_null(model);
    assert_null(cd_model_set_stands(&m, "mine"));
    assert_ok(cd_model_set_stand_in(&m, "board", &model, &who, &other, &err));
    assert_ptr_equal(model, m.v[2].tasks);
    cd_model_set_list(&m, &list);
    assert_null(strstr(list.p, "mine"));
    cd_buf_free(&list);
    assert_null(m.v[1].tasks);
    cd_model_set_free(&m);
}

/* A law that calibrate measured here comes before one that the file lends, and behind one that was
 * measured and that the user names. */
TEST(a_lent_law_hides_no_measured_one) {
    static const char more[] =
        "\"network_cost\":\"- {devices: [mine], lift: 1.5, networks: 4, spread: 0.1}\"";
    static const char *const yaml[] = {"- {devices: [other], lent_to: [mine], lift: 3}\n",
                                       "- {devices: [mine], lift: 3}\n"};
    static const double lift[] = {1.5, 3};
    char model[256], costs[256];
    cd_buf b = {0};
    assert_ok(made_here_more(OF_CPUS, 0, "A CPU", 2, more, &b, &err));
    snprintf(model, sizeof model, "%s", tmp_put(&dir, "lent.cdmpp", b.p, b.n));
    cd_buf_free(&b);
    for (int k = 0; k < 2; k++) {
        const char *path = model;
        snprintf(costs, sizeof costs, "%s", tmp_put(&dir, "costs.yaml", yaml[k], strlen(yaml[k])));
        setenv("CDMPP_NETWORK_COSTS", costs, 1);
        m = (cd_model_set){0};
        assert_ok(cd_model_set_open(
            &(cd_model_set_options){.model = &(cd_texts){1, &path}, .devices = described}, &m,
            &err));
        const cd_network_cost_fit *fit = cd_network_cost_find(m.costs, "mine", NULL);
        assert_true(cd_network_cost_names(fit, "mine"));
        assert_close(fit->lift, lift[k], 0, 0);
        cd_model_set_free(&m);
    }
    unsetenv("CDMPP_NETWORK_COSTS");
}

/* The installed file, or that of the working folder, is about somebody's machine of this kind and
 * somebody's code: what was measured here takes its place. */
TEST(a_law_of_this_machine_comes_before_the_usual_one) {
    static const char more[] =
        "\"network_cost\":\"- {devices: [mine], lift: 1.5, networks: 4, spread: 0.1}\"",
                      yaml[] = "- {devices: [mine, other], lift: 3}\n";
    char model[256], before[1024];
    cd_buf b = {0};
    assert_ok(made_here_more(OF_CPUS, 0, "A CPU", 2, more, &b, &err));
    snprintf(model, sizeof model, "%s", tmp_put(&dir, "usual.cdmpp", b.p, b.n));
    cd_buf_free(&b);
    assert_non_null(getcwd(before, sizeof before));
    const char *path = model, *folder = tmp_path(&dir, "configs");
    assert_int_equal(mkdir(folder, 0777), 0);
    tmp_put(&dir, "configs/network-costs.yaml", yaml, strlen(yaml));
    assert_int_equal(chdir(dir.path), 0);
    m = (cd_model_set){0};
    const cdmpp_status st = cd_model_set_open(
        &(cd_model_set_options){.model = &(cd_texts){1, &path}, .devices = described}, &m, &err);
    assert_int_equal(chdir(before), 0);
    assert_ok(st);
    const cd_network_cost_fit *fit = cd_network_cost_find(m.costs, "mine", NULL);
    assert_non_null(fit);
    assert_close(fit->lift, 1.5, 0, 0);
    assert_true(fit->here);
    assert_close(cd_network_cost_find(m.costs, "other", NULL)->lift, 3, 0, 0);
    cd_model_set_free(&m);
}

static size_t count(const char *text, const char *word) {
    size_t n = 0;
    for (; (text = strstr(text, word)); text += strlen(word)) n++;
    return n;
}

/* It knows the devices of the model that it was made of, too: their times are not corrected, and
 * that is said of each. */
TEST(what_was_measured_here_is_of_no_other_gpu) {
    const cd_model *model;
    char *text = NULL;
    size_t n = 0;
    cd_log log;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    cd_log_init(&log, "test", f);
    assert_ok(open_three(&err));
    m.v[1].asked = true; /* it is here */
    assert_ok(cd_model_set_tasks(&m, "card", false, &model, &err));
    assert_ptr_equal(model, m.v[1].tasks);
    cd_model_set_warn(&m, model, "mine", NULL, &log);
    (void)fflush(f);
    assert_null(strstr(text, "another one"));
    cd_model_set_warn(&m, model, "card", NULL, &log);
    cd_model_set_warn(&m, model, "board", "mine", &log);
    cd_model_set_warn(&m, model, NULL, NULL, &log);
    (void)fclose(f);
    assert_non_null(strstr(text, "corrected.cdmpp corrects times of mine alone, this machine's "
                                 "GPU: card is another one, and its times are not corrected\n"));
    assert_non_null(strstr(text, "corrected.cdmpp was measured on mine, this machine's GPU: board "
                                 "is another one, which was not measured\n"));
    assert_int_equal(count(text, "another one"), 2);
    assert_int_equal(count(text, "cost model: "), 1);
    free(text);
    cd_model_set_free(&m);
}

TEST(without_memory) {
    const cd_model *model;
    const char *who;
    bool other;
    FAULT_SWEEP(f, 0) {
        f.st = open_defaults(&f.err);
        if (!f.st) f.st = cd_model_set_stand_in(&m, "board", &model, &who, &other, &f.err);
        if (!f.st) cd_model_set_warn(&m, model, "board", who, NULL);
        cd_model_set_free(&m);
    }
}

TESTS(set_up, tear_down, each_kind_has_its_own, without_that_of_gpus_a_processor_stands_for_one,
      it_is_no_second_model_of_a_device, this_machine, a_gpu_that_is_not_here,
      which_devices_it_knows_is_told_once, no_driver_is_asked_about_a_processor,
      a_lent_law_hides_no_measured_one, a_law_of_this_machine_comes_before_the_usual_one,
      what_was_measured_here_is_of_no_other_gpu, without_memory)
