/* Devices of a plan: which there are without a description, which device of a model each is, its
 * target, its memory, how far off its times may be. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "predictor/partition/plan/partition_internal.h"
#include "profiler/describe/describe.h"
#include "tmp.h"

#define MODEL "tests/golden/model_v3.cdmpp" /* zen5-avx2, zen5-avx512, with their descriptions */
#define OLDER "tests/golden/model_v1.cdmpp" /* the same without */

static const char descriptions[] =
    "- {name: box, kind: cpu, clock_mhz: 4100, cores: 1, lanes: 16, simd_bits: 256, mem_gb: 3, "
    "bandwidth_gb_s: 60, fp32_gflops: 131.2, warp: 1}\n"
    "- {name: board, kind: gpu, clock_mhz: 1000, cores: 50, lanes: 64, mem_gb: 16, bandwidth_gb_s: "
    "400, fp32_gflops: 6400, warp: 32}\n"
    "- {name: zen5-avx512, aliases: [fast], kind: cpu, clock_mhz: 4100, cores: 16, simd_bits: 512, "
    "warp: 1}\n";
static const char costs[] = "- {devices: [zen5-avx2], lift: 1.2, call_s: 0, networks: 5, spread: "
                            "0.3, source: \"made up\"}\n";
static const char machine[] =
    "{\"cdmpp_machine\": 1, \"devices\": [{\"name\": \"cpu0\", \"kind\": \"cpu\", \"core\": 0, "
    "\"as\": \"zen5-avx2\", \"launch_s\": 2e-7, \"sync_s\": 1e-6},"
    "{\"name\": \"card\", \"kind\": \"model\", \"memory\": 1, \"as\": \"board\", \"launch_s\": "
    "5e-6, \"sync_s\": 1e-5}], \"links\": [%s]}";
static const char links[] = "{\"from\": \"cpu0\", \"to\": \"card\", \"how\": \"write\", \"n\": 0, "
                            "\"noise\": 0, \"pieces\": [[0, 1e-5, 5e-11]]},"
                            "{\"from\": \"card\", \"to\": \"cpu0\", \"how\": \"read\", \"n\": 0, "
                            "\"noise\": 0, \"pieces\": [[0, 1e-5, 5e-11]]}";

static cdmpp_err err;
static tmp_dir dir;
static char described[256], *said;
static size_t n_said;
static cd_partition_options o;
static cd_partition p;
static cd_log lg;
static FILE *out;

static int set_up(void **state) {
    (void)state;
    unsetenv("CDMPP_MODELS");
    dir = tmp_make();
    snprintf(described, sizeof described, "%s",
             tmp_put(&dir, "devices.yaml", descriptions, sizeof descriptions - 1));
    setenv("CDMPP_NETWORK_COSTS", tmp_put(&dir, "costs.yaml", costs, sizeof costs - 1), 1);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

static void begin(const char **model, size_t n) {
    o = cd_partition_defaults();
    p = (cd_partition){.o = &o};
    out = open_memstream(&said, &n_said);
    cd_log_init(&lg, "x", out);
    o.log = &lg;
    assert_ok(cd_model_set_open(
        &(cd_model_set_options){.model = &(cd_texts){n, model}, .devices = described}, &p.models,
        &err));
}

static cdmpp_status make(void) {
    const cdmpp_status st = cd_partition_machine(&p, &err);
    (void)fflush(out);
    return st;
}

static void end(void) {
    cd_machine_free(&p.machine);
    cd_machine_free(&p.all);
    cd_model_set_free(&p.models);
    cd_arena_free(&p.arena);
    cd_log_done(&lg);
    (void)fclose(out);
    free(said);
}

static const char *one[] = {MODEL}, *as_avx2[] = {"zen5-avx2"};

TEST(usual_devices) {
    begin(one, 1);
    o.devices = "cpu3,ocl0,,ocl1", o.as = (cd_texts){1, as_avx2};
    assert_ok(make());
    assert_int_equal(p.machine.n, 3);
    const cd_machine_device *c = &p.machine.device[0], *a = &p.machine.device[1],
                            *b = &p.machine.device[2];
    assert_string_equal(c->kind, "cpu");
    assert_true(c->core == 3 && c->launch_s == 2e-7 && c->sync_s == 1e-6 && c->wake_s == 0 &&
                c->scale == 1 && c->times == 1);
    assert_string_equal(a->kind, "native");
    assert_string_equal(a->opencl, "pocl:0/2.1");
    assert_string_equal(b->opencl, "pocl:0/2.0");
    assert_true(a->core == 1 && b->core == 0 && a->launch_s == 4e-6 && a->wake_s == 20e-6 &&
                a->sync_s == 1e-6);
    assert_string_equal(c->target, "llvm -keys=cpu -mcpu=core-avx2 -num-cores=1 -model=zen5-avx2");
    assert_non_null(strstr(said, "no --machine: "));
    assert_null(strstr(said, "two models"));
    /* somebody measured networks there */
    assert_true(p.by[0].model && p.by[0].model == p.by[2].model &&
                hypot(p.source[0].stands_spread, p.source[0].costs_spread) == 0);
    end();
    static const char *const wrong[] = {"gpu0", "cpu", "cpux", "cpu0x", "cpu4096", "ocl2"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        begin(one, 1);
        o.devices = wrong[k], o.as = (cd_texts){1, as_avx2};
        assert_status(make(), CDMPP_EUSAGE);
        end();
    }
    begin(one, 1);
    o.devices = "cpu4095", o.as = (cd_texts){1, as_avx2};
    assert_ok(make());
    end();
}

TEST(which_device_of_the_model) {
    const char *own[] = {"zen5-avx512", "cpu1=zen5-avx2"};
    const char *wrong[] = {"cpu7=zen5-avx2"};
    const char *unknown[] = {"cpu1=nobody", "cpu0=zen5-avx2"};
    const char *alias[] = {"fast"};
    begin(one, 1);
    o.devices = "cpu0,cpu1", o.as = (cd_texts){2, own};
    assert_ok(make());
    assert_string_equal(p.by[0].device, "zen5-avx512");
    assert_string_equal(p.by[1].device, "zen5-avx2");
    assert_string_equal(p.machine.device[0].target,
                        "llvm -keys=cpu -mcpu=skylake-avx512 -num-cores=1 -model=zen5-avx512");
    assert_close(hypot(p.source[0].stands_spread, p.source[0].costs_spread),
                 cd_network_cost_spread(p.models.costs), 1e-12, 0);
    assert_non_null(strstr(
        said,
        "no network was measured on zen5-avx512: it is taken to cost the sum of its operators"));
    end();
    begin(one, 1);
    o.devices = "cpu0,cpu1", o.as = (cd_texts){1, wrong};
    assert_status(make(), CDMPP_EUSAGE);
    assert_non_null(strstr(err.msg, "--as: 'cpu7=zen5-avx2' is of none of the devices"));
    end();
    begin(one, 1);
    o.devices = "cpu0,cpu1", o.as = (cd_texts){2, unknown};
    assert_status(make(), CDMPP_EMODEL);
    assert_non_null(strstr(err.msg, "no model knows device 'nobody', which cpu1 is; --list-devices "
                                    "tells all, known are zen5-avx2, zen5-avx512"));
    end();
    begin(one, 1);
    o.devices = "cpu0";
    assert_status(make(), CDMPP_EMODEL); /* there are two */
    assert_non_null(strstr(err.msg, "which device of the cost model is cpu0? --as cpu0=NAME"));
    end();
    begin(one, 1);
    o.devices = "cpu0", o.as = (cd_texts){1, alias}; /* the model knows it by its described name */
    assert_ok(make());
    assert_string_equal(p.by[0].device, "zen5-avx512");
    end();
}

/* The most similar one of its kind; a processor of this machine is never a device of another
 * kind. */
TEST(who_stands_in) {
    const char *box[] = {"box"}, *board[] = {"board"};
    float want[CD_N_DEVICE_COL], has[CD_N_DEVICE_COL];
    begin(one, 1);
    o.devices = "cpu0,cpu1", o.as = (cd_texts){1, box};
    assert_ok(make());
    assert_true(p.by[0].model && !p.by[0].here && !p.by[0].there);
    cd_device_vector(cd_model_set_device(&p.models, "box"), want);
    const size_t at =
        (size_t)cd_model_find_device(p.by[0].model, p.by[0].device, strlen(p.by[0].device));
    assert_true(cd_model_set_vector(&p.models, p.by[0].model, at, has));
    const cd_device_doubt law = cd_model_device_doubt(p.by[0].model, at, want, has, false);
    for (int d = 0; d < 2; d++)
        assert_close(hypot(p.source[d].stands_spread, p.source[d].costs_spread),
                     hypot(law.shift, cd_network_cost_spread(p.models.costs)), 1e-9, 0);
    for (int d = 0; d < 2; d++) assert_close(p.source[d].stands_own, law.own, 1e-9, 0);
    assert_true(law.shift >= CD_DEVICE_LAW_LEAST_SHIFT && law.own > 0);
    const char *first = strstr(said, "box is not in the model: ");
    assert_non_null(first);
    assert_null(strstr(first + 1, "box is not in the model"));   /* once */
    assert_null(strstr(said, "no network was measured on box")); /* one sentence for both */
    assert_string_equal(p.machine.device[0].target,
                        "llvm -keys=cpu -mcpu=core-avx2 -num-cores=1 -model=box");
    end();
    begin(one, 1);
    o.devices = "cpu0", o.as = (cd_texts){1, board};
    assert_status(make(), CDMPP_EUSAGE);
    assert_non_null(strstr(err.msg, "cpu0 is a processor of this machine, so it cannot be 'board', "
                                    "which is a gpu: --as cpu0=NAME"));
    end();
}

/* The models know one device and nobody says that a processor is it: then it is looked at, and said
 * where it is not. */
TEST(the_only_device) {
    for (int exact = 0; exact < 2; exact++) {
        char text[1000];
        cd_describe_match here;
        const char *any = "zen5-avx2", *as[] = {"cpu0=zen5-avx2"};
        assert_true(!cd_describe_match_host("", NULL, &any, 1, &here, &err) || here.cpu[0]);
        if (exact && !here.microarch[0]) continue; /* of this machine nobody says what it is */
        const int n = snprintf(
            text, sizeof text,
            "- {name: zen5-avx2, aliases: [%s], kind: cpu, clock_mhz: 4100, cores: 1, lanes: 16, "
            "simd_bits: 256, bandwidth_gb_s: 60, fp32_gflops: 131.2, warp: 1}\n",
            exact ? here.microarch : "unlike-all");
        const char *path = tmp_put(&dir, "own.yaml", text, (size_t)n);
        begin(one, 1);
        cd_device_table_free(p.models.devices);
        cd_diag diag = {0};
        assert_ok(cd_device_table_load(path, &diag, &p.models.devices, &err));
        cd_diag_free(&diag);
        p.models.v[0].n_device = 1; /* zen5-avx2 */
        o.devices = "cpu0,cpu1";
        assert_ok(make());
        assert_int_equal(p.source[0].guessed && p.source[1].guessed, !exact);
        assert_string_equal(p.source[1].host, p.models.host);
        const char *first = strstr(said, "this CPU (");
        assert_int_equal(first != NULL, !exact);
        assert_true(!first || (strstr(first, ") is not in the model: zen5-avx2 stands in; ") &&
                               !strstr(first + 1, "this CPU (")));
        end();
        begin(one, 1);
        p.models.v[0].n_device = 1;
        o.devices = "cpu0", o.as = (cd_texts){1, as}; /* somebody says it */
        assert_ok(make());
        assert_true(!p.source[0].guessed && !p.source[0].host && !strstr(said, "not in the model"));
        end();
        /* this machine beside a named device */
        const char *own[] = {"cpu0=zen5-avx2", "cpu1=here"};
        begin(one, 1);
        p.models.v[0].n_device = 1;
        o.devices = "cpu0,cpu1", o.as = (cd_texts){2, own};
        assert_ok(make());
        assert_true(!p.source[0].host && p.source[1].host &&
                    !strcmp(p.machine.device[1].as, "zen5-avx2"));
        end();
    }
}

/* Without a description a device is one of this machine: none that is not here is planned with. The
 * loader of OpenCL looks for drivers in this folder. */
TEST(an_opencl_device_that_is_not_here) {
    const char *as[] = {"zen5-avx2"};
    setenv("OCL_ICD_VENDORS", "/nonexistent", 1);
    begin(one, 1);
    o.devices = "cpu0,ocl0", o.as = (cd_texts){1, as};
    assert_status(make(), CDMPP_EBACKEND);
    assert_non_null(strstr(err.msg, "ocl0 is not on this machine ("));
    end();
    begin(one, 1);
    o.as = (cd_texts){1, as};
    assert_ok(make());
    assert_non_null(strstr(said, "ocl0 is not on this machine ("));
    for (uint32_t k = 0; k < p.machine.n; k++) assert_string_equal(p.machine.device[k].kind, "cpu");
    end();
    unsetenv("OCL_ICD_VENDORS");
}

/* A device that is no processor cannot be looked at. */
TEST(the_only_device_for_a_card) {
    char text[1200];
    const int n =
        snprintf(text, sizeof text,
                 "{\"cdmpp_machine\": 1, \"devices\": [{\"name\": \"card\", \"kind\": \"model\", "
                 "\"memory\": 1, \"launch_s\": 5e-6, \"sync_s\": 1e-5}], \"links\": []}");
    begin(one, 1);
    p.models.v[0].n_device = 1;
    o.machine = tmp_put(&dir, "card.json", text, (size_t)n);
    assert_ok(make());
    assert_non_null(strstr(
        said, "nobody says which device card is: zen5-avx2 is taken for it (--as card=NAME)"));
    end();
}

/* A card of a file: another kind, its own memory, links to the processor. */
TEST(a_machine_of_a_file) {
    char text[1200];
    const char *times[] = {"card=30"};
    const char *target[] = {"llvm -mcpu=all", "card=cuda -x=1"};
    const char *two[] = {MODEL, OLDER};
    const int n = snprintf(text, sizeof text, machine, links);
    begin(two, 2);
    o.machine = tmp_put(&dir, "machine.json", text, (size_t)n), o.times = (cd_texts){1, times};
    assert_ok(make());
    assert_true(p.machine.n == 2 && p.machine.device[1].times == 30 &&
                p.machine.device[0].times <= 1);
    /* the host's memory is not the device's own */
    assert_true(p.machine.device[1].mem_gb == 16 * 1.073741824 &&
                !(p.machine.device[0].mem_gb > 0));
    assert_true(p.by[1].here && p.by[1].there && !p.by[0].here);
    assert_close(hypot(p.source[1].stands_spread, p.source[1].costs_spread),
                 hypot(log(CD_MODEL_SET_BETWEEN_KINDS) / cd_normal_quantile(0.95),
                       cd_network_cost_spread(p.models.costs)),
                 1e-9, 0);
    assert_non_null(strstr(said, "no model knows board, nor another of its kind"));
    assert_non_null(strstr(said, OLDER " knows zen5-avx2 too: a model before it answers"));
    end();
    begin(one, 1);
    o.machine = tmp_path(&dir, "machine.json"), o.target = (cd_texts){2, target},
    o.devices = "card,cpu0";
    assert_ok(make());
    assert_string_equal(p.machine.device[0].name, "card");
    assert_string_equal(p.machine.device[0].target, "cuda -x=1");
    assert_string_equal(p.machine.device[1].target, "llvm -mcpu=all");
    end();
    static const char *const wrong[] = {
        "card=0", "card=1000001", "card=", "card=2x", "cpu9=2", "3"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        const char *t[] = {wrong[k]};
        begin(one, 1);
        o.machine = tmp_path(&dir, "machine.json"), o.times = (cd_texts){1, t};
        assert_status(make(), CDMPP_EUSAGE);
        assert_non_null(strstr(err.msg, "--times: "));
        end();
    }
    const int bare = snprintf(text, sizeof text, machine, "");
    begin(one, 1);
    o.machine = tmp_put(&dir, "bare.json", text, (size_t)bare);
    assert_status(make(), CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "no link from cpu0 to card, whose memories are not one"));
    end();
}

/* Stages run on processors of this machine alone. */
TEST(stages_need_processors) {
    static const char *const kind[] = {"cpu", "native", "opencl", "model"};
    for (int k = 0; k < 4; k++)
        for (int at = 0; at < 2; at++) {
            p = (cd_partition){.machine.n = 2};
            p.machine.device[0] = p.machine.device[1] =
                (cd_machine_device){.name = "a", .kind = "cpu"};
            p.machine.device[at].kind = kind[k];
            assert_status(cd_partition_stage_run_check(&p, &err), k < 2 ? CDMPP_OK : CDMPP_EUSAGE);
        }
}

TESTS(set_up, tear_down, usual_devices, which_device_of_the_model, who_stands_in, the_only_device,
      an_opencl_device_that_is_not_here, the_only_device_for_a_card, a_machine_of_a_file,
      stages_need_processors)
