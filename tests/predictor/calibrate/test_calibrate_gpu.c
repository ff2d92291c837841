/* A calibration of a made GPU: what it is called and who stands for it, what is drawn, measured and
 * written; what a model of processors, a wrong name and a compiler that is not there lead to. */
#include "predictor/calibrate/calibrate.h"
#include "check.h"
#include "fault.h"

#include <string.h>
#include <unistd.h>

#include "base/io/io.h"
#include "made_model.h"
#include "predictor/estimate/estimate.h"

enum { N_TASK = 12, DRAWS = 6 };
#define TARGET "cuda -model=v100"

static tmp_dir dir;
static char gpu_path[256], cpu_path[256], log_path[256], out_path[256];
static cd_task_registry *tasks;
static cd_log quiet;

static cdmpp_status made_tasks(cdmpp_err *err) {
    cd_buf b = {0};
    cd_buf_puts(&b, "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [");
    for (int i = 1; i <= N_TASK; i++) {
        const int m = 32 * i, n = 16 * (1 + i * 5 % 7);
        cd_buf_putf(&b,
                    "%s{\"workload_key\": \"[\\\"made\\\", %d]\", \"ops\": [{\"name\": \"A\", "
                    "\"shape\": [%d, 64], \"dtype\": \"float32\"},",
                    i > 1 ? "," : "", i, m);
        cd_buf_putf(&b, "{\"name\": \"B\", \"shape\": [64, %d], \"dtype\": \"float32\"},", n);
        cd_buf_putf(
            &b,
            "{\"name\": \"C\", \"axis\": [[\"i\", 0, %d], [\"j\", 0, %d]], \"reduce_axis\": "
            "[[\"k\", 0, 64]], \"reduce\": \"sum\", \"body\": \"A[i, k]*B[k, j]\"}]}",
            m, n);
    }
    cd_buf_puts(&b, "]}");
    tmp_put(&dir, "made.tasks.json", b.p, b.n);
    cdmpp_status st = cd_task_registry_new(&tasks, err);
    if (!st) st = cd_task_registry_load_text(tasks, "made.tasks.json", b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}

static double made_s(uint64_t id) { return 1e-5 * (1 + (double)(id % 100)); }

/* Drawn programs of all tasks with made times, as a log. */
static cdmpp_status made_log(cd_buf *log, cdmpp_err *err) {
    const cd_random_schedules_options o = {DRAWS, 1, TARGET, cd_target_hardware(true, 0, 64)};
    cd_random_schedules *r;
    cd_buf line = {0};
    cd_arena a = {0};
    CD_TRY(cd_random_schedules_new(tasks, &o, &r, err));
    cdmpp_status st = CDMPP_OK;
    for (bool more = true; !st && more;) {
        cd_record record;
        cd_record_id id;
        cd_buf_clear(&line);
        st = cd_random_schedules_next(r, &line, err);
        more = !st && line.n;
        if (!more) break;
        st = cd_record_read(&a, line.p, line.n - 1, &record, err);
        if (!st) st = cd_record_id_of(&record, &id, err);
        const double s = st ? 1 : made_s(id.a);
        record.cost_s = &s;
        record.error_no = 0;
        if (!st) st = cd_record_write(log, &record, err);
    }
    cd_random_schedules_free(r);
    cd_arena_free(&a);
    cd_buf_free(&line);
    return st;
}

static cdmpp_status learn_gpu(cdmpp_err *err) {
    static const char *const set[] = {"train.facts=prior", "model.members=[program]",
                                      "train.rounds=10"};
    char h5[256], task_file[256];
    cd_buf log = {0};
    cd_extract_stats s;
    snprintf(h5, sizeof h5, "%s", tmp_path(&dir, "gpu.h5"));
    snprintf(task_file, sizeof task_file, "%s", tmp_path(&dir, "made.tasks.json"));
    cdmpp_status st = made_log(&log, err);
    const char *in[] = {tmp_put(&dir, "gpu.json", log.p ? log.p : "", log.n)};
    const char *task[] = {task_file};
    const cd_extract x = {
        .out = h5, .input = in, .n_input = 1, .task_file = task, .n_task_file = 1, .jobs = 1};
    if (!st) st = cd_extract_logs(&x, &s, err);
    if (!st) st = made_learn(h5, set, 3, gpu_path, err);
    cd_buf_free(&log);
    return st;
}

static int setup(void **state) {
    (void)state;
    static const char *const cpu[] = {"llvm -model=zen4"};
    cdmpp_err err = {0};
    char text[512];
    dir = tmp_make();
    snprintf(gpu_path, sizeof gpu_path, "%s", tmp_path(&dir, "gpu.cdmpp"));
    snprintf(cpu_path, sizeof cpu_path, "%s", tmp_path(&dir, "cpu.cdmpp"));
    snprintf(log_path, sizeof log_path, "%s", tmp_path(&dir, "here-gpu.records.json"));
    snprintf(out_path, sizeof out_path, "%s", tmp_path(&dir, "here-gpu.cdmpp"));
    cd_log_init(&quiet, "", stderr);
    quiet.level = CD_LOG_ERROR;
    cdmpp_status st = made_tasks(&err);
    if (!st) st = learn_gpu(&err);
    if (!st) st = made_learn_targets(&dir, cpu, 1, "train.rounds=5", cpu_path, &err);
    if (st) print_error("%s\n", cdmpp_err_format(&err, text, sizeof text));
    return st != CDMPP_OK;
}

static int teardown(void **state) {
    (void)state;
    cd_task_registry_free(tasks);
    tmp_remove(&dir);
    return 0;
}

/* ---- a GPU whose time goes by only when it measures ---- */
typedef struct made_gpu {
    double now;
    const char *name;           /* as the driver says */
    char asked[64];             /* back end and number */
    bool broken;                /* no program runs */
    bool processor, by_default; /* OpenCL's device is a processor; nobody named the model */
    bool dumb;                  /* the driver says nothing but the name */
    /* programs; of them failed ones, at the end of which all run. 0: none */
    size_t measured, refused;
} made_gpu;

static double made_now(void *ctx) { return ((made_gpu *)ctx)->now; }

static cdmpp_status made_ask(void *ctx, const char *backend, const char *name,
                             cd_describe_entry *out, cdmpp_err *err) {
    made_gpu *g = ctx;
    snprintf(g->asked, sizeof g->asked, "%s:%s", backend, name);
    if (!g->name) return CD_FAIL(err, EBACKEND, "no device");
    cd_cuda_facts f = {.cc_major = 9,
                       .units = 132,
                       .warp = 32,
                       .clock_khz = 1980000,
                       .memory_khz = 2619000,
                       .bus_bits = 5120,
                       .l2_bytes = 52428800,
                       .shared_bytes = 233472,
                       .unit_threads = 2048};
    if (g->dumb) f = (cd_cuda_facts){0};
    snprintf(f.name, sizeof f.name, "%s", g->name);
    cd_describe_cuda_facts(&f, out);
    if (g->processor) {
        cd_opencl_facts p = {.units = 2, .clock_mhz = 3000};
        snprintf(p.name, sizeof p.name, "%s", g->name);
        cd_describe_opencl_facts(&p, out);
    }
    return CDMPP_OK;
}

static cdmpp_status made_measure(void *ctx, cd_record_program *job, size_t n,
                                 cd_measure_result *out, cdmpp_err *err) {
    made_gpu *g = ctx;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        const double s = made_s(job[i].id.a);
        assert_int_equal(job[i].why.code, CDMPP_OK);
        assert_int_equal(job[i].code.dialect, CD_DIALECT_CUDA);
        out[i] = (cd_measure_result){
            .time = {.n = 2, .n_kept = 2, .number = 1, .sample_s = {s, s}, .kept = {true, true}}};
        if (g->broken || g->measured < g->refused) {
            cdmpp_err why = {0};
            (void)CD_FAIL(&why, EBACKEND, "CUDA compiler: no program");
            cd_measure_result_fail(&out[i], 3, &why);
        }
        g->measured++;
        g->now += 0.5;
    }
    return CDMPP_OK;
}

static cdmpp_status run(made_gpu *g, const char *model, const char *target, const char *device,
                        cd_buf *text, cdmpp_err *err) {
    const cd_calibrate_clock clock = {
        .ctx = g, .now = made_now, .measure = made_measure, .gpu = made_ask};
    const cd_calibrate_options o = {.model = model,
                                    .by_default = g->by_default,
                                    .out = out_path,
                                    .records = log_path,
                                    .device = device,
                                    .tasks = tasks,
                                    .target = target,
                                    .gpu = "1",
                                    .seed = 1,
                                    .most = 40,
                                    .limit_s = 100,
                                    .force = true,
                                    .json = true,
                                    .clock = &clock,
                                    .log = &quiet};
    return cd_calibrate_run(&o, text, err);
}

static size_t lines_of_log(void) {
    cdmpp_err err = {0};
    char *text;
    size_t n, lines = 0;
    if (access(log_path, F_OK) != 0) return 0;
    assert_ok(cd_file_read(log_path, 0, &text, &n, &err));
    for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
    cd_mem_free(text);
    return lines;
}

static void begin(void) {
    (void)unlink(log_path);
    (void)unlink(out_path);
}

/* ---- tests ---- */
/* devices.yaml has it: the name, and the numbers that analytic times are computed with, are those
 * of the description. */
TEST(a_described_gpu) {
    cdmpp_err err = {0};
    cd_buf text = {0};
    made_gpu g = {.name = "NVIDIA H100 80GB HBM3"};
    cd_model *m;
    begin();
    assert_ok(run(&g, gpu_path, "cuda", NULL, &text, &err));
    assert_string_equal(g.asked, "cuda:1");
    assert_true(g.measured >= 40);
    assert_non_null(strstr(text.p, "\"name\":\"h100\""));
    assert_ok(cd_model_load(out_path, &m, &err));
    const cd_here *h = cd_model_here(m);
    assert_string_equal(h->name, "h100");
    assert_string_equal(cd_model_device(m, h->stands), "v100");
    assert_true(cd_model_device_is_gpu(m, h->device));
    assert_non_null(h->numbers);
    assert_true(h->numbers->cores == 132 && h->numbers->bandwidth_gb_s == 3352);
    assert_non_null(strstr(cd_model_header(m), "\"backend\":\"cuda\""));
    cd_model_free(m);
    cd_buf_free(&text);
}

/* Records have the name, and the same call measures nothing again. */
TEST(it_goes_on) {
    cdmpp_err err = {0};
    cd_buf text = {0};
    char *log;
    size_t n;
    made_gpu g = {.name = "NVIDIA H100 80GB HBM3"}, again = g;
    begin();
    assert_ok(run(&g, gpu_path, "cuda", NULL, &text, &err));
    assert_int_equal(lines_of_log(), g.measured);
    assert_ok(cd_file_read(log_path, 0, &log, &n, &err));
    assert_non_null(strstr(log, "\"cuda -model=h100\""));
    cd_mem_free(log);
    assert_ok(run(&again, gpu_path, "cuda", NULL, &text, &err));
    assert_int_equal(again.measured, 0);
    cd_buf_free(&text);
}

/* Nobody describes it: the driver's numbers do, where they are all that is needed. */
TEST(a_gpu_that_nobody_describes) {
    cdmpp_err err = {0};
    cd_buf text = {0};
    cd_model *m;
    for (int k = 0; k < 2; k++) {
        made_gpu g = {.name = "NVIDIA Q77", .dumb = k == 1};
        begin();
        assert_ok(run(&g, gpu_path, "cuda", NULL, &text, &err));
        assert_ok(cd_model_load(out_path, &m, &err));
        const cd_here *h = cd_model_here(m);
        assert_string_equal(h->name, "nvidia-q77");
        assert_string_equal(cd_model_device(m, h->stands), "v100");
        assert_true(k || (h->numbers->cores == 132 && h->numbers->l1_kb == 256));
        assert_true(!k || h->numbers->cores == 80); /* those of the device that stands for it */
        cd_model_free(m);
    }
    cd_buf_free(&text);
}

/* Times of two GPUs, or of two back ends of one, would correct the model for neither. */
TEST(a_log_of_another_device) {
    static const char *const name[] = {"NVIDIA H100 80GB HBM3", "NVIDIA Q77",
                                       "NVIDIA H100 80GB HBM3"};
    static const char *const target[] = {"cuda", "cuda", "opencl"};
    cd_buf text = {0};
    size_t lines = 0;
    begin();
    for (int k = 0; k < 3; k++) {
        cdmpp_err err = {0};
        made_gpu g = {.name = name[k]};
        assert_status(run(&g, gpu_path, target[k], NULL, &text, &err), k ? CDMPP_EUSAGE : CDMPP_OK);
        if (!k) lines = lines_of_log();
        else assert_non_null(strstr(err.msg, "programs of another device (cuda -model=h100)"));
        assert_true(k == 0 || g.measured == 0);
        assert_int_equal(lines_of_log(), lines);
    }
    cd_buf_free(&text);
}

static void refused(const char *name, const char *model, const char *target, const char *device,
                    cdmpp_status st, const char *why) {
    cdmpp_err err = {0};
    cd_buf text = {0};
    made_gpu g = {.name = name};
    begin();
    assert_status(run(&g, model, target, device, &text, &err), st);
    if (!strstr(err.msg, why)) fail_msg("expected '%s', found '%s'", why, err.msg);
    assert_int_equal(g.measured, 0);
    assert_int_not_equal(access(out_path, F_OK), 0);
    cd_buf_free(&text);
}

TEST(what_cannot_be_calibrated_costs_no_time) {
    static const char h100[] = "NVIDIA H100 80GB HBM3";
    refused(h100, cpu_path, "cuda", NULL, CDMPP_EMODEL, "knows no GPU");
    refused(h100, cpu_path, "cuda", "zen4", CDMPP_EMODEL, "knows no GPU");
    refused(NULL, gpu_path, "cuda", NULL, CDMPP_EBACKEND, "no device");
    refused(h100, gpu_path, "cuda", "k80", CDMPP_EMODEL, "has no device 'k80'");
    refused(h100, gpu_path, "cuda -model=v100", NULL, CDMPP_EUSAGE, "this device is h100");
    refused(h100, gpu_path, "llvm", NULL, CDMPP_EMODEL, "no described CPU");
}

/* A processor that OpenCL has is measured where somebody names the model, and the default model of
 * GPUs is not corrected for it. */
TEST(a_processor_is_no_gpu) {
    cdmpp_err err = {0};
    cd_buf text = {0};
    made_gpu g = {.name = "pthread-made", .processor = true, .by_default = true};
    begin();
    assert_status(run(&g, gpu_path, "cuda", NULL, &text, &err), CDMPP_EMODEL);
    assert_non_null(strstr(err.msg, "pthread-made is a processor and no GPU"));
    assert_int_equal(g.measured, 0);
    g.by_default = false;
    assert_ok(run(&g, gpu_path, "cuda", NULL, &text, &err));
    assert_true(g.measured > 0);
    cd_buf_free(&text);
    made_gpu gpu = {.name = "NVIDIA H100 80GB HBM3", .by_default = true};
    begin();
    assert_ok(run(&gpu, gpu_path, "cuda", NULL, &text, &err));
    cd_buf_free(&text);
}

/* A word of one's own, and an alias of the described name, are names as good as another. */
TEST(a_name_of_the_target) {
    static const char *const target[] = {"cuda -model=mine", "cuda -model=h100-sxm5"};
    static const char *const is[] = {"mine", "h100-sxm5"};
    for (int k = 0; k < 2; k++) {
        cdmpp_err err = {0};
        cd_buf text = {0};
        cd_model *m;
        made_gpu g = {.name = "NVIDIA H100 80GB HBM3"};
        begin();
        assert_ok(run(&g, gpu_path, target[k], NULL, &text, &err));
        assert_ok(cd_model_load(out_path, &m, &err));
        assert_string_equal(cd_model_here(m)->name, is[k]);
        assert_true(cd_model_here(m)->numbers->bandwidth_gb_s == 3352);
        cd_model_free(m);
        cd_buf_free(&text);
    }
}

/* Where nothing runs the device is broken, not the programs: the run ends soon, and the log does
 * not say that they fail. */
TEST(nothing_runs) {
    cdmpp_err err = {0};
    cd_buf text = {0};
    made_gpu g = {.name = "NVIDIA H100 80GB HBM3", .broken = true};
    begin();
    assert_status(run(&g, gpu_path, "cuda", NULL, &text, &err), CDMPP_EBACKEND);
    assert_non_null(
        strstr(err.msg, "none of the first 8 programs runs: CUDA compiler: no program"));
    assert_int_equal(g.measured, CD_CALIBRATE_VAIN);
    assert_int_equal(lines_of_log(), 0);
    /* the second batch has one that runs */
    g = (made_gpu){.name = "NVIDIA H100 80GB HBM3", .refused = 5};
    assert_ok(run(&g, gpu_path, "cuda", NULL, &text, &err));
    assert_int_equal(lines_of_log(), g.measured - 4);
    cd_buf_free(&text);
}

TEST(every_allocation_may_fail) {
    FAULT_SWEEP(f, 3) {
        cd_buf text = {0};
        made_gpu g = {.name = "NVIDIA H100 80GB HBM3"};
        begin();
        f.step = f.k < 120 ? 1 : 157;
        f.st = run(&g, gpu_path, "cuda", NULL, &text, &f.err);
        if (f.st) assert_int_not_equal(access(out_path, F_OK), 0);
        cd_buf_free(&text);
    }
    assert_int_equal(access(out_path, F_OK), 0);
}

TESTS(setup, teardown, a_described_gpu, it_goes_on, a_gpu_that_nobody_describes,
      a_log_of_another_device, what_cannot_be_calibrated_costs_no_time, a_processor_is_no_gpu,
      a_name_of_the_target, nothing_runs, every_allocation_may_fail)
