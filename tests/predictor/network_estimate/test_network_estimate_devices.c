/* Which device a case is of, where nobody says it; its target, hardware and queue; networks that
 * share programs. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"
#include "predictor/network_estimate/network_estimate_internal.h"
#include "tmp.h"

#define MODEL "tests/golden/model_v3.cdmpp" /* zen5-avx2, zen5-avx512 */

static const char descriptions[] =
    "- {name: board, kind: gpu, clock_mhz: 1000, cores: 50, mem_gb: 2, warp: 32}\n"
    "- {name: other-board, kind: gpu, clock_mhz: 1000, cores: 60, warp: 64, fp32_gflops: 6000, "
    "bandwidth_gb_s: 300}\n"
    "- {name: zen5-avx512, aliases: [fast], kind: cpu, clock_mhz: 4100, cores: 16, cores_used: 4, "
    "simd_bits: 512, warp: 1}\n"
    "- {name: box, kind: cpu, clock_mhz: 4100, cores: 8, simd_bits: 256, mem_gb: 0.5, warp: 1}\n";

static cdmpp_err err;
static tmp_dir dir;
static char described[256];
static const char *model[] = {MODEL};
static cd_network_estimate e;

static int set_up(void **state) {
    (void)state;
    unsetenv("CDMPP_MODELS");
    dir = tmp_make();
    snprintf(described, sizeof described, "%s",
             tmp_put(&dir, "devices.yaml", descriptions, sizeof descriptions - 1));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

static cd_network_estimate_options options(void) {
    cd_network_estimate_options o = cd_network_estimate_defaults();
    o.cost_model = (cd_texts){1, model}, o.devices = described, o.cache = "";
    return o;
}

static cdmpp_status open_it(const cd_network_estimate_options *o) {
    e = (cd_network_estimate){0};
    return cd_network_estimate_open(o, &e, &err);
}

/* A network of one operator; device and the node's device as JSON, or nothing. */
static const char *graph(const char *name, const char *device, const char *of_node) {
    char text[600];
    const int n =
        snprintf(text, sizeof text,
                 "{\"schema\": \"cdmpp.netgraph\", \"version\": 1, \"networks\": [{\"name\": "
                 "\"n\", \"batch\": 1, %s \"nodes\": "
                 "[{\"name\": \"z\", \"kind\": \"free\", \"after\": []}, {\"name\": \"a\", \"op\": "
                 "\"op\", \"kind\": \"given\", \"given_s\": 1, %s \"after\": []}]}]}",
                 device, of_node);
    return tmp_put(&dir, name, text, (size_t)n);
}

/* Pure: a stream for a GPU, the order of the list for a processor; the options decide. */
TEST(queues) {
    cd_network_estimate_options o = options();
    cd_model_set m = {0};
    assert_ok(cd_model_set_open(
        &(cd_model_set_options){.model = &o.cost_model, .devices = described}, &m, &err));
    cd_replay_device gpu = cd_network_estimate_queue(&o, &m, "board"),
                     cpu = cd_network_estimate_queue(&o, &m, "zen5-avx2");
    assert_true(gpu.policy == CD_REPLAY_STREAM && gpu.workers == 1 && gpu.issue_s == 3e-6 &&
                gpu.gap_s == 0 && gpu.memory == (int64_t)2 << 30);
    assert_true(cpu.policy == CD_REPLAY_ORDER && cpu.workers == 1 && cpu.issue_s == 0 &&
                cpu.gap_s == 0 && cpu.memory == 0);
    assert_string_equal(gpu.name, "board");
    assert_int_equal(cd_network_estimate_queue(&o, &m, "box").memory, (int64_t)1 << 29);
    assert_int_equal(cd_network_estimate_queue(&o, &m, "nobody").policy, CD_REPLAY_ORDER);
    o.workers = 3, o.gap_s = 0.25, o.issue_s = 0.5;
    gpu = cd_network_estimate_queue(&o, &m, "board");
    assert_true(gpu.policy == CD_REPLAY_CRITICAL && gpu.workers == 3 && gpu.issue_s == 0.5 &&
                gpu.gap_s == 0.25);
    o.policy = CD_REPLAY_ORDER;
    assert_int_equal(cd_network_estimate_queue(&o, &m, "board").policy, CD_REPLAY_ORDER);
    cd_model_set_free(&m);
}

static void device_is(cd_network_estimate_options o, const char *const *file, size_t n,
                      const char *name, bool unnamed) {
    const char *path[2] = {file[0], file[n - 1]};
    o.graph = (cd_texts){n, path}, o.replay_given = true;
    assert_ok(open_it(&o));
    assert_int_equal(e.n_device, 1);
    assert_string_equal(e.device[0].name, name);
    assert_int_equal(e.device[0].unnamed, unnamed);
    cd_network_estimate_free(&e);
}

TEST(graphs_name_the_device) {
    const cd_network_estimate_options o = options();
    char of[4][256];
    snprintf(of[0], sizeof of[0], "%s", graph("of-box.json", "\"device\": \"box\",", ""));
    snprintf(of[1], sizeof of[1], "%s", graph("of-board.json", "\"device\": \"board\",", ""));
    snprintf(of[2], sizeof of[2], "%s", graph("of-node.json", "", "\"device\": \"zen5-avx512\","));
    snprintf(of[3], sizeof of[3], "%s", graph("of-nobody.json", "", "\"device\": \"nobody\","));
    device_is(o, (const char *const[]){of[0]}, 1, "box", false);
    device_is(o, (const char *const[]){of[0], of[3]}, 2, "box", false);
    device_is(o, (const char *const[]){of[0], of[1]}, 2, "device", true); /* they do not agree */
    /* a model knows the node's */
    device_is(o, (const char *const[]){of[2]}, 1, "zen5-avx512", false);
    device_is(o, (const char *const[]){of[2], of[0]}, 2, "device", true);
    device_is(o, (const char *const[]){of[3]}, 1, "device", true);
}

/* Logs lie in a folder of their device: most decide, and the user is told. */
TEST(logs_name_the_device) {
    cd_network_estimate_options o = options();
    char *said = NULL, logs[256];
    size_t n = 0;
    cd_log log;
    FILE *f = open_memstream(&said, &n);
    cd_log_init(&log, "x", f);
    o.log = &log;
    snprintf(logs, sizeof logs, "%s", tmp_path(&dir, "logs"));
    static const char *const folder[] = {"logs", "logs/zen5-avx2", "logs/zen5-avx512", "logs/avx2"};
    for (int k = 0; k < 4; k++) assert_int_equal(mkdir(tmp_path(&dir, folder[k]), 0777), 0);
    tmp_put(&dir, "logs/zen5-avx2/a.json", "", 0), tmp_put(&dir, "logs/zen5-avx512/a.json", "", 0),
        tmp_put(&dir, "logs/zen5-avx512/b.json", "", 0);
    tmp_put(&dir, "logs/avx2/a.json", "", 0), tmp_put(&dir, "logs/avx2/b.json", "", 0),
        tmp_put(&dir, "logs/avx2/c.json", "", 0);
    const char *record[] = {logs}, *path[] = {graph("plain.json", "", "")};
    o.records = (cd_texts){1, record}, o.graph = (cd_texts){1, path}, o.replay_given = true;
    assert_ok(open_it(&o));
    assert_string_equal(e.device[0].name, "zen5-avx512");
    (void)fflush(f);
    assert_non_null(strstr(said, "device zen5-avx512: 2 of 3 logs are of it"));
    cd_network_estimate_free(&e);
    (void)fclose(f);
    cd_log_done(&log);
    free(said);
}

/* Without times in the file somebody has to name it. */
TEST(nobody_names_the_device) {
    cd_network_estimate_options o = options();
    const char *network[] = {"gcn"};
    o.network = (cd_texts){1, network};
    assert_status(open_it(&o), CDMPP_EUSAGE);
    assert_string_equal(err.msg, "--device is missing; the models know zen5-avx2, zen5-avx512");
    cd_network_estimate_free(&e);
    o.device = ",";
    assert_status(open_it(&o), CDMPP_EUSAGE);
    cd_network_estimate_free(&e);
    o.device = "zen5-avx2,,zen5-avx512";
    assert_status(open_it(&o), CDMPP_EUSAGE);
    assert_string_equal(err.key, "--device");
    assert_string_equal(err.msg, "'zen5-avx2,,zen5-avx512': a part of the list is empty");
    cd_network_estimate_free(&e);
    o.device = "zen5-avx";
    assert_status(open_it(&o), CDMPP_EMODEL);
    assert_non_null(
        strstr(err.msg, "no model knows device 'zen5-avx', and nobody describes it (--devices)"));
    assert_non_null(strstr(err.msg, "zen5-avx2"));
    assert_non_null(strstr(err.msg, "known are zen5-avx2, zen5-avx512"));
    cd_network_estimate_free(&e);
    o.device = "bare"; /* described, without peaks */
    o.devices = tmp_put(&dir, "bare.yaml", "- {name: bare, kind: gpu}\n", 26);
    assert_status(open_it(&o), CDMPP_EMODEL);
    assert_non_null(strstr(err.msg,
                           "device bare: no model knows one of its kind, and its description lacks "
                           "the peak by which times of another kind would be scaled"));
    cd_network_estimate_free(&e);
}

/* "here" is what no name is, beside devices that are named, also beside the one that stands for
 * this machine. */
TEST(this_machine_beside_others) {
    const char *network[] = {"gcn"};
    cd_network_estimate_options o = cd_network_estimate_defaults();
    o.network = (cd_texts){1, network}, o.cache = "";
    setenv("CDMPP_DEFAULT_MODEL", "models/cpu.cdmpp", 1);
    assert_ok(open_it(&o));
    const bool guessed = e.device[0].guessed;
    char *stands = strdup(e.device[0].name), *list = NULL;
    cd_network_estimate_free(&e);
    assert_true(asprintf(&list, "here,graviton2,%s,here", stands) > 0);
    o.device = list;
    assert_ok(open_it(&o));
    assert_int_equal(e.n_device, guessed ? 3 : 2);
    assert_string_equal(e.device[0].name, stands);
    assert_string_equal(e.device[0].label, guessed ? "here" : stands);
    assert_true(e.device[0].guessed == guessed && !e.device[1].guessed);
    assert_true(cd_network_estimate_cores(&e, &e.device[0]) == 1 &&
                cd_network_estimate_cores(&e, &e.device[1]) == 16);
    if (guessed) assert_true(!e.device[2].guessed && !strcmp(e.device[2].label, stands));
    cd_network_estimate_free(&e);
    unsetenv("CDMPP_DEFAULT_MODEL");
    free(stands);
    free(list);
}

/* The first name is right: its model is not loaded before the second one is looked at. */
TEST(names_come_before_models) {
    const char *network[] = {"gcn"};
    cd_network_estimate_options o = options();
    o.network = (cd_texts){1, network}, o.device = "zen5-avx2,zen5-avx3";
    assert_status(open_it(&o), CDMPP_EMODEL);
    assert_non_null(strstr(err.msg, "no model knows device 'zen5-avx3', and nobody describes it "
                                    "(--devices); did you mean zen5-avx2"));
    assert_true(e.models.n == 1 && !e.models.v[0].tasks);
    cd_network_estimate_free(&e);
}

/* Two devices and two batches are four cases, of four loads: the devices have other vectors, cores,
 * targets. An alias is no second device. */
TEST(cases_and_sources) {
    cd_network_estimate_options o = options();
    const char *network[] = {"gcn"};
    const char *target[] = {"zen5-avx2=llvm -mcpu=core-avx2 -x=1", "llvm -keys=cpu -x=2",
                            "llvm -mcpu=all"};
    o.network = (cd_texts){1, network}, o.device = "zen5-avx512,zen5-avx2,fast", o.batch = "1,2";
    assert_ok(open_it(&o));
    assert_true(e.n_device == 2 && e.n_item == 4 && !e.graphs);
    assert_string_equal(e.device[0].target,
                        "llvm -keys=cpu -mcpu=skylake-avx512 -model=zen5-avx512");
    assert_string_equal(e.device[1].target, "llvm -keys=cpu -mcpu=core-avx2 -model=zen5-avx2");
    assert_true(e.device[0].hardware.num_cores == 4 && e.device[1].hardware.num_cores == 1 &&
                e.device[0].hardware.vector_unit_bytes == 64 && !e.device[0].gpu);
    assert_int_equal(e.n_source, 4);
    for (int k = 0; k < 4; k++) {
        const cd_network_estimate_case *c = &e.item[k];
        assert_true(c->device == &e.device[k / 2] && c->source->asked == k % 2 + 1 &&
                    c->source->batch == k % 2 + 1);
        assert_string_equal(c->source->name, "gcn"); /* one network, loaded again */
        assert_true(c->source->weight_bytes > 0 && c->source->input_bytes > 0);
    }
    cd_network_graph **g; /* saved: each has a name of its own */
    size_t n;
    assert_ok(cd_network_estimate_save_graph(&e, tmp_path(&dir, "saved.json"), &err));
    assert_ok(cd_network_graph_read(tmp_path(&dir, "saved.json"), &g, &n, &err));
    static const char *const name[] = {"gcn", "gcn, batch 2", "gcn, batch 1", "gcn, batch 2#2"};
    assert_int_equal(n, 4);
    for (size_t k = 0; k < n; k++) assert_string_equal(g[k]->name, name[k]);
    cd_network_graph_free_all(g, n);
    cd_network_estimate_free(&e);
    /* no model knows it: the most similar one stands for it */
    o.target = (cd_texts){3, target}, o.batch = "1", o.device = "zen5-avx2,box";
    assert_ok(open_it(&o));
    assert_string_equal(e.device[0].target, "llvm -mcpu=core-avx2 -x=1");
    assert_string_equal(e.device[1].target, "llvm -mcpu=all");
    assert_true(e.device[1].stands && !e.device[0].stands && !e.device[1].scaled &&
                e.device[1].hardware.num_cores == 8);
    assert_int_equal(e.n_source, 2); /* other cores: other programs */
    cd_network_estimate_free(&e);
    /* of another kind: the programs of the one that stands for it, at scaled times */
    o.target.n = 0, o.device = "other-board";
    assert_ok(open_it(&o));
    assert_true(e.device[0].scaled && e.device[0].stands && e.device[0].about->warp == 64);
    cd_network_estimate_free(&e);
}

/* Devices that agree in kind and hardware share a load. */
TEST(a_shared_source) {
    cd_network_estimate_options o = options();
    const char *network[] = {"gcn", "gcn"}, *target[] = {"llvm -x", "zen5-avx2=llvm -y"};
    o.network = (cd_texts){2, network}, o.device = "zen5-avx2,box",
    o.target = (cd_texts){2, target};
    static const char alike[] =
        "- {name: box, kind: cpu, clock_mhz: 4100, cores: 1, simd_bits: 256, lanes: 16, warp: 1}\n";
    o.devices = tmp_put(&dir, "alike.yaml", alike, sizeof alike - 1);
    assert_ok(open_it(&o));
    assert_true(e.n_item == 4 && e.n_source == 2);
    assert_true(e.item[0].source == e.item[1].source && e.item[2].source == e.item[3].source);
    assert_string_equal(e.item[0].source->name, "gcn");
    assert_string_equal(e.item[2].source->name, "gcn"); /* the same one once more */
    cd_network_estimate_free(&e);
}

TESTS(set_up, tear_down, queues, graphs_name_the_device, logs_name_the_device,
      nobody_names_the_device, this_machine_beside_others, names_come_before_models,
      cases_and_sources, a_shared_source)
