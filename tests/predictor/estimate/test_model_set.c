/* Models of a command by device: which answers, what stands in for an unknown one, ratios of
 * rooflines by hand. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/io.h"
#include "check.h"
#include "gpu_says.h"
#include "learner/inputs/inputs.h"
#include "made_here.h"
#include "predictor/estimate/estimate.h"
#include "tmp.h"
#include "user_folder.h"

/* knows zen5-avx2 and zen5-avx512, and describes neither */
#define TREES     "tests/golden/model_v1.cdmpp"
#define DESCRIBED "tests/golden/model_v3.cdmpp"     /* the same two, with descriptions */
#define LIBRARY   "tests/golden/operators_v1.cdmpp" /* t4, v100, a100 */

static const char descriptions[] =
    "- {name: like-avx2, kind: cpu, clock_mhz: 4100, cores: 1, lanes: 16, simd_bits: 256, "
    "bandwidth_gb_s: 200, fp32_gflops: 131.2, warp: 1}\n"
    "- {name: like-avx512, kind: cpu, clock_mhz: 4100, cores: 1, lanes: 32, simd_bits: 512, "
    "bandwidth_gb_s: 200, fp32_gflops: 262.4, warp: 1}\n"
    "- {name: board, kind: gpu, clock_mhz: 1000, cores: 50, lanes: 64, bandwidth_gb_s: 400, "
    "fp32_gflops: 6400, warp: 32}\n";

static cdmpp_err err;
static tmp_dir dir;
static char described[256];
static cd_model_set m;

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

static cdmpp_status open_set(const char **path, size_t n, const char *devices) {
    m = (cd_model_set){0};
    return cd_model_set_open(
        &(cd_model_set_options){.model = &(cd_texts){n, path}, .devices = devices}, &m, &err);
}

TEST(a_file_is_a_model_by_its_first_bytes) {
    assert_true(cd_model_set_is_model(TREES) && cd_model_set_is_model(LIBRARY));
    assert_false(cd_model_set_is_model(described));
    assert_false(cd_model_set_is_model(tmp_put(&dir, "short", "CDMPP", 5)));
    assert_false(cd_model_set_is_model(tmp_path(&dir, "none")));
}

/* Of tasks and of operators apart; the first one that knows the device; each is loaded once. */
TEST(the_first_that_knows_a_device_answers) {
    const char *path[] = {LIBRARY, TREES, DESCRIBED};
    const cd_model *model, *again;
    const cd_library_op_model *ops;
    cd_buf list = {0};
    assert_ok(open_set(path, 3, described));
    cd_model_set_list(&m, &list);
    assert_string_equal(list.p, "t4, v100, a100, zen5-avx2, zen5-avx512");
    cd_buf_free(&list);
    assert_ok(cd_model_set_tasks(&m, "zen5-avx512", false, &model, &err));
    assert_ok(cd_model_set_tasks(&m, "zen5-avx2", false, &again, &err));
    assert_true(model && model == again && !m.v[2].tasks);
    assert_string_equal(cd_model_set_also(&m, "zen5-avx512"), DESCRIBED);
    assert_null(cd_model_set_also(&m, "t4"));
    /* only operators of it are known */
    assert_ok(cd_model_set_tasks(&m, "t4", false, &model, &err));
    assert_null(model);
    assert_ok(cd_model_set_tasks(&m, "t4", true, &model, &err));
    assert_ptr_equal(model, again);
    assert_ok(cd_model_set_ops(&m, "a100", &ops, &err));
    assert_non_null(ops);
    assert_ok(cd_model_set_ops(&m, "board", &ops, &err)); /* described: operators go by that */
    assert_non_null(ops);
    assert_ok(cd_model_set_ops(&m, "nobody", &ops, &err));
    assert_null(ops);
    assert_non_null(cd_model_set_device(&m, "BOARD"));
    assert_null(cd_model_set_device(&m, "nobody"));
    cd_model_set_free(&m);
}

/* One is enough; mixed lists give their models; folders come behind, by name, what is no model is
 * passed over. */
TEST(models_come_from_lists_and_folders) {
    const char *mixed[] = {"resnet-18", described, DESCRIBED}, *one[] = {TREES};
    char *bytes, folder[600];
    size_t n;
    assert_ok(cd_file_read(LIBRARY, 0, &bytes, &n, &err));
    tmp_put(&dir, "b.cdmpp", bytes, n);
    tmp_put(&dir, "a.model", bytes, n); /* of another name */
    tmp_put(&dir, "c.cdmpp", "no model", 8);
    cd_mem_free(bytes);
    snprintf(folder, sizeof folder, ":%s:", dir.path);
    setenv("CDMPP_MODELS", folder, 1);
    m = (cd_model_set){0};
    assert_ok(cd_model_set_open(&(cd_model_set_options){.model = &(cd_texts){1, one},
                                                        .mixed = &(cd_texts){3, mixed},
                                                        .use_default = true},
                                &m, &err));
    unsetenv("CDMPP_MODELS");
    assert_int_equal(m.n, 3);
    assert_string_equal(m.v[0].path, TREES);
    assert_string_equal(m.v[1].path, DESCRIBED);
    assert_string_equal(m.v[2].path, tmp_path(&dir, "b.cdmpp"));
    assert_true(!m.v[0].operators && !m.v[1].operators && m.v[2].operators && !m.default_path);
    const char *host = "x";
    assert_ok(cd_model_set_host(&m, NULL, &host, &err)); /* who named models names the device too */
    assert_null(host);
    cd_model_set_free(&m);
}

/* Devices of models first, each once, then those that are only described, the file's before ours;
 * what is near a name that nobody knows. */
TEST(devices_that_can_be_asked_about) {
    static const struct {
        const char *asked, *near;
    } t[] = {
        {"like-avx", "; did you mean like-avx2 or like-avx512?"},
        {"zen5-avx51", "; did you mean zen5-avx512?"},
        {"zen",
         "; did you mean zen5-avx2, zen5-avx512, zen5-cdmpp, zen4, zen3-cdmpp or zen2-server?"},
        {"board", ""},
        {"something else", ""}};
    const char *path[] = {LIBRARY, DESCRIBED};
    cd_buf b = {0};
    assert_ok(open_set(path, 2, described));
    cd_model_set_put_devices(&m, false, &b);
    static const char first[] = "device                   kind model\n"
                                "t4                       gpu  " LIBRARY "\n"
                                "v100                     gpu  " LIBRARY "\n"
                                "a100                     gpu  " LIBRARY "\n"
                                "zen5-avx2                cpu  " DESCRIBED "\n"
                                "zen5-avx512              cpu  " DESCRIBED "\n"
                                "like-avx2                cpu  -\n"
                                "like-avx512              cpu  -\n"
                                "board                    gpu  -\n";
    assert_int_equal(strncmp(b.p, first, sizeof first - 1), 0);
    assert_non_null(strstr(b.p, "\nh200                     gpu  -\n"));
    cd_buf_clear(&b);
    cd_model_set_put_devices(&m, true, &b);
    assert_non_null(strstr(b.p, "[{\"name\":\"t4\",\"kind\":\"gpu\",\"model\":\"" LIBRARY
                                "\"},{\"name\":\"v100\""));
    assert_non_null(strstr(b.p, ",{\"name\":\"board\",\"kind\":\"gpu\",\"model\":null},"));
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        cd_buf_clear(&b);
        cd_model_set_near(&m, t[k].asked, &b);
        assert_string_equal(b.n ? b.p : "", t[k].near);
    }
    const cd_model *model;
    assert_ok(cd_model_set_tasks(&m, "zen5-avx2", false, &model, &err));
    assert_string_equal(cd_model_set_path(&m, model), DESCRIBED);
    assert_null(cd_model_set_path(&m, NULL));
    cd_buf_free(&b);
    cd_model_set_free(&m);
}

TEST(files_that_are_damaged_are_named) {
    const char *none[] = {tmp_path(&dir, "none.cdmpp")};
    assert_status(open_set(none, 1, NULL), CDMPP_EIO);
    assert_string_equal(err.path, none[0]);
    cd_model_set_free(&m);
    char head[64] = "CDMPPMDL";
    const char *brief[] = {tmp_put(&dir, "brief.cdmpp", head, 20)};
    assert_status(open_set(brief, 1, NULL), CDMPP_EPARSE);
    cd_model_set_free(&m);
    head[16] = 100; /* so many bytes of header */
    const char *cut[] = {tmp_put(&dir, "cut.cdmpp", head, 64)};
    assert_status(open_set(cut, 1, NULL), CDMPP_EPARSE);
    assert_string_equal(err.msg, "cut short");
    assert_string_equal(err.path, cut[0]);
    cd_model_set_free(&m);
    head[22] = 1;
    const char *huge[] = {tmp_put(&dir, "huge.cdmpp", head, 64)};
    assert_status(open_set(huge, 1, NULL), CDMPP_EPARSE);
    assert_non_null(strstr(err.msg, "a header of 281474976710756 bytes"));
    cd_model_set_free(&m);
    const char *good[] = {TREES};
    assert_status(open_set(good, 1, "/nowhere/devices.yaml"), CDMPP_EIO);
    assert_string_equal(err.msg, "--devices: cannot find '/nowhere/devices.yaml', a file that "
                                 "describes devices; a device is named by --device");
    cd_model_set_free(&m);
}

/* The most similar of its kind; where models know none of its kind, one of another. */
TEST(who_stands_in) {
    const char *path[] = {TREES, LIBRARY, DESCRIBED};
    const struct {
        const char *device, *stands;
        bool other;
    } t[] = {{"like-avx2", "zen5-avx2", false},
             {"like-avx512", "zen5-avx512", false},
             {"board", NULL, true},
             {"nobody", NULL, true}};
    assert_ok(open_set(path, 3, described));
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        const cd_model *model;
        const char *stands;
        bool other;
        assert_ok(cd_model_set_stand_in(&m, t[k].device, &model, &stands, &other, &err));
        assert_int_equal(other, t[k].other);
        if (!t[k].stands) assert_true(k == 2 ? model && stands : !model && !stands);
        else assert_string_equal(stands, t[k].stands);
    }
    cd_model_set_free(&m);
}

/* A model's device is named first and not hidden by a described name that is nearer. */
TEST(near_names) {
    const struct {
        const char *asked, *near;
    } t[] = {{"zen5-avx", "; did you mean zen5-avx2, zen5-avx512 or zen-avx-5120?"},
             {"like-avx51", "; did you mean like-avx512?"},
             {"zen-avx512", "; did you mean zen5-avx512 or zen-avx-5120?"},
             {"nothing-of-it", NULL},
             {"board", NULL}};
    const char *path[] = {TREES};
    char text[1000];
    const int n =
        snprintf(text, sizeof text, "%s- {name: zen-avx-5120, kind: cpu}\n", descriptions);
    assert_ok(open_set(path, 1, tmp_put(&dir, "more.yaml", text, (size_t)n)));
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        cd_buf b = {0};
        cd_model_set_near(&m, t[k].asked, &b);
        if (t[k].near) assert_string_equal(b.p, t[k].near);
        else assert_null(b.p);
        cd_buf_free(&b);
    }
    cd_model_set_free(&m);
}

static void vector(double gflops, double gb_s, float *v) {
    char text[200];
    cd_model_set one = {0};
    int n = snprintf(text, sizeof text, "- {name: one, kind: gpu, clock_mhz: 1000, cores: 10");
    if (gflops > 0) n += snprintf(text + n, sizeof text - (size_t)n, ", fp32_gflops: %.0f", gflops);
    if (gb_s > 0) n += snprintf(text + n, sizeof text - (size_t)n, ", bandwidth_gb_s: %.0f", gb_s);
    n += snprintf(text + n, sizeof text - (size_t)n, "}\n");
    const char *path = tmp_put(&dir, "one.yaml", text, (size_t)n);
    assert_ok(cd_model_set_open(&(cd_model_set_options){.model = &(cd_texts){0}, .devices = path},
                                &one, &err));
    cd_device_vector(cd_model_set_device(&one, "one"), v);
    cd_model_set_free(&one);
}

/* 1000 GFLOP/s and 100 GB/s against 2000 and 400. */
TEST(ratios_of_rooflines) {
    float a[CD_N_DEVICE_COL], b[CD_N_DEVICE_COL], no_memory[CD_N_DEVICE_COL],
        nothing[CD_N_DEVICE_COL];
    vector(1000, 100, a);
    vector(2000, 400, b);
    vector(1000, 0, no_memory);
    vector(0, 0, nothing);
    const struct {
        double flop, bytes, ratio;
    } t[] = {{1e9, 0, 2},
             {0, 1e9, 4},
             {-1, 1e9, 4},
             {1e9, -1, 2},
             {1e9, 1e6, 2},
             {1e6, 1e9, 4},
             {1e9, 3e8, 3e-3 / 0.75e-3},
             {1e9, 1.5e8, 1.5e-3 / 0.5e-3},
             {0, 0, 0}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        assert_close(cd_model_set_rooflines(a, b, t[k].flop, t[k].bytes), t[k].ratio, 1e-5, 0);
        if (t[k].ratio > 0)
            assert_close(cd_model_set_rooflines(b, a, t[k].flop, t[k].bytes), 1 / t[k].ratio, 1e-5,
                         0);
    }
    /* only arithmetic is known of both */
    assert_close(cd_model_set_rooflines(no_memory, b, 1e6, 1e9), 2, 1e-5, 0);
    assert_true(cd_model_set_rooflines(no_memory, b, 0, 1e9) == 0 &&
                cd_model_set_rooflines(nothing, b, 1, 1) == 0);
    assert_close(cd_device_law_peaks(a, b), log(4), 1e-5, 0);
    assert_close(cd_device_law_peaks(b, a), log(4), 1e-5, 0);
    assert_close(cd_device_law_peaks(no_memory, b), log(2), 1e-5, 0);
    assert_true(cd_device_law_peaks(nothing, b) == 0 && cd_device_law_peaks(a, a) == 0);
}

/* At the level of the interval: nine of ten. A factor, because what is many times off is so on both
 * sides. */
TEST(how_many_times_off) {
    const struct {
        double factor;
        const char *text;
    } t[] = {{1.02, "1.02"}, {1.2, "1.2"}, {4.88, "4.9"}, {9.96, "10"}, {45.3, "45"}};
    char out[CD_MODEL_SET_TIMES_OFF];
    for (size_t k = 0; k < sizeof t / sizeof *t; k++)
        assert_string_equal(
            cd_model_set_times_off(log(t[k].factor) / cd_normal_quantile(0.95), out), t[k].text);
}

/* A model's own descriptions come before those of a file; a device of which nobody knows anything
 * has none. */
TEST(vectors_of_a_model) {
    const char *path[] = {TREES, DESCRIBED};
    const cd_model *bare;
    float v[CD_N_DEVICE_COL], own[CD_N_DEVICE_COL];
    assert_ok(open_set(path, 2, described));
    assert_ok(cd_model_set_tasks(&m, "zen5-avx2", false, &bare, &err));
    cd_model *full;
    assert_ok(cd_model_load(DESCRIBED, &full, &err));
    assert_true(cd_model_set_vector(&m, full, 0, own));
    assert_close(own[2], 0.411386728, 1e-6, 0);
    assert_true(cd_model_set_vector(&m, full, 1, v));
    assert_close(v[4], -0.30103001, 1e-6, 0);
    /* only our file has it, which stands behind the one that is named */
    assert_true(cd_model_set_vector(&m, bare, 0, v));
    cd_device_table *l = m.devices;
    m.devices = NULL;
    assert_false(cd_model_set_vector(&m, bare, 0, v));
    m.devices = l;
    cd_model_free(full);
    cd_model_set_free(&m);
}

TEST(usual_targets) {
    cd_arena a = {0};
    const cd_device narrow = {.simd_bits = 128};
    const cd_device avx2 = {.simd_bits = 256};
    const cd_device avx512 = {.simd_bits = 512};
    const cd_device amd = {.warp = 64};
    const cd_device nvidia = {.warp = 32};
    const struct {
        const char *name;
        const cd_device *d;
        bool gpu;
        int cores;
        const char *target;
    } t[] = {
        {"x", NULL, false, 0, "llvm -keys=cpu -model=x"},
        {NULL, &narrow, false, 1, "llvm -keys=cpu -num-cores=1"},
        {"x", &avx2, false, 8, "llvm -keys=cpu -mcpu=core-avx2 -num-cores=8 -model=x"},
        {"x", &avx512, false, 0, "llvm -keys=cpu -mcpu=skylake-avx512 -model=x"},
        {"x", &amd, true, 3,
         "rocm -keys=rocm,gpu -max_num_threads=256 -thread_warp_size=64 -model=x"},
        {"x", &nvidia, true, 3,
         "cuda -keys=cuda,gpu -max_num_threads=1024 -thread_warp_size=32 -model=x"},
        {NULL, NULL, true, 0, "cuda -keys=cuda,gpu -max_num_threads=1024 -thread_warp_size=32"}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++)
        assert_string_equal(cd_usual_target_make(&a, t[k].name, t[k].d, t[k].gpu, t[k].cores),
                            t[k].target);
    cd_arena_free(&a);
}

/* A target that was given for its cores alone keeps the vectors of the device; one that names its
 * own keeps these. */
TEST(vectors_of_given_targets) {
    cd_arena a = {0};
    const cd_device narrow = {.simd_bits = 128};
    const cd_device avx2 = {.simd_bits = 256};
    const cd_device avx512 = {.simd_bits = 512};
    const cd_device gpu = {.kind = CD_DEVICE_GPU, .simd_bits = 512};
    const struct {
        const char *given;
        const cd_device *d;
        const char *target;
    } t[] = {
        {"llvm -num-cores=7 -model=x", &avx512, "llvm -num-cores=7 -model=x -mcpu=skylake-avx512"},
        {"llvm", &avx2, "llvm -mcpu=core-avx2"},
        {"llvm -mcpu=znver4", &avx2, "llvm -mcpu=znver4"},
        {"llvm -mattr=+avx2", &avx512, "llvm -mattr=+avx2"},
        {"llvm -num-cores=7", &narrow, "llvm -num-cores=7"},
        {"llvm -num-cores=7", NULL, "llvm -num-cores=7"},
        {"llvm", &gpu, "llvm"},
        {"cuda -model=x", &avx512, "cuda -model=x"}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++)
        assert_string_equal(cd_usual_target_vectors(&a, t[k].given, t[k].d), t[k].target);
    cd_arena_free(&a);
}

/* A model that is corrected for a GPU, in a file of a folder of its own. */
static const char *gpu_file(const char *says, const char *backend) {
    cd_buf b = {0}, more = {0};
    cd_describe_entry e;
    cd_describe_identity i = cd_describe_identity_named(says);
    if (!strcmp(backend, "opencl") && !cd_describe_gpu_apart("opencl", "", &e, NULL))
        cd_describe_identity_gpu(&e, &i);
    cd_buf_puts(&more, "\"machine\":");
    cd_describe_identity_put(&more, &i);
    cd_buf_putf(&more,
                ",\"backend\":\"%s\",\"network_cost\":\"- {devices: [mine], call_s: 1e-6, "
                "networks: 4, spread: 0.1}\"",
                backend);
    assert_ok(made_here_more(DESCRIBED, 0, says, 2, more.p, &b, &err));
    static char path[512];
    assert_ok(user_file(&dir, "opencl-a.cdmpp", path));
    assert_ok(cd_file_write(path, b.p, b.n, &err));
    cd_buf_free(&b);
    cd_buf_free(&more);
    return path;
}

/* Who names the model of another machine's GPU asks about that GPU by its name, and not about this
 * machine. */
TEST(a_gpu_of_another_machine) {
    const char *path[] = {gpu_file("Another GPU 9000", "cuda")}, *host;
    assert_ok(open_set(path, 1, described));
    assert_string_equal(m.v[0].backend, "cuda");
    assert_string_equal(m.v[0].here, "mine");
    assert_null(cd_model_set_gpu(&m, "cuda"));
    assert_ok(cd_model_set_host(&m, NULL, &host, &err));
    assert_null(host);
    cd_model_set_free(&m);
}

/* Beside the default model of processors; without one, alone. Its back end is part of what it
 * is. */
TEST(the_gpu_of_this_machine) {
    char from[512];
    cd_describe_name d;
    const cd_texts none = {0, NULL};
    const cd_model *model;
    const char *host;
    SKIP_WITHOUT_GPU(&d);
    (void)gpu_file(d.says, "opencl");
    unsetenv("CDMPP_DEFAULT_MODEL");
    assert_non_null(getcwd(from, sizeof from));
    assert_int_equal(chdir(dir.path), 0);
    m = (cd_model_set){0};
    assert_ok(
        cd_model_set_open(&(cd_model_set_options){.model = &none, .use_default = true}, &m, &err));
    assert_int_equal(m.n, m.default_path ? 2 : 1);
    assert_string_equal(strstr(m.gpu_path, "opencl-a"), "opencl-a.cdmpp");
    assert_false(m.v[m.default_path ? 1 : 0].asked);
    /* nobody knows so far whether it is of this GPU */
    assert_null(cd_network_cost_find(m.costs, "mine", NULL));
    assert_ok(cd_model_set_tasks(&m, "mine", false, &model, &err));
    assert_non_null(model);
    assert_non_null(cd_network_cost_find(m.costs, "mine", NULL));
    assert_string_equal(cd_model_set_gpu(&m, "opencl"), "mine");
    assert_string_equal(cd_model_set_gpu(&m, NULL), "mine");
    assert_null(cd_model_set_gpu(&m, "cuda"));
    if (m.default_path) {
        assert_ok(cd_model_set_host(&m, NULL, &host, &err)); /* nobody asks for a GPU */
        assert_string_not_equal(host, "mine");
    }
    cd_model_set_free(&m);
    assert_int_equal(chdir(from), 0);
}

TESTS(set_up, tear_down, a_file_is_a_model_by_its_first_bytes,
      the_first_that_knows_a_device_answers, models_come_from_lists_and_folders,
      devices_that_can_be_asked_about, files_that_are_damaged_are_named, who_stands_in, near_names,
      ratios_of_rooflines, how_many_times_off, vectors_of_a_model, usual_targets,
      vectors_of_given_targets, a_gpu_of_another_machine, the_gpu_of_this_machine)
