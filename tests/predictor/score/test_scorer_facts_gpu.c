/* A model of facts of GPU programs scores records to the bits that their data set gives; it refuses
 * CPU programs, and a model of these refuses GPU programs. */
#include "predictor/score/score.h"
#include "check.h"

#include <string.h>

#include "made_scorer.h"
#include "predictor/score/program_facts.h"

#define TARGET     "cuda -model=v100"
#define CPU_TARGET "llvm -model=zen4"
enum { N = 36 };

static made_scorer made; /* its data set is of CPU programs */
static char h5[256];
static cd_model *gpu, *cpu;

static const cd_task *task(void) { return cd_task_registry_at(made.tasks, 0); }

/* Tiles of C of 1 to 32 by 1 to 32 elements, a thread for each element; a second kernel. */
static void gpu_record(cd_buf *b, const char *target, int i, double cost) {
    const int rows = 1 << i % 6, cols = 1 << i / 6;
    cd_buf_puts(b, "{\"i\": [[");
    cd_buf_put_json_str(b, task()->workload_key, strlen(task()->workload_key));
    cd_buf_putf(b,
                ", \"%s\", [-1, 16, 64, 49152, 2147483647, 1024, 8, 32], \"\", 0, []], [[], "
                "[[\"SP\", 2, 0, 512, [%d], 1], [\"SP\", 2, 2, 512, [%d], 1], "
                "[\"RE\", 2, [0, 2, 1, 3, 4]], [\"FU\", 2, [0, 1]], [\"FU\", 2, [1, 2]], [\"AN\", "
                "2, 0, 5], [\"AN\", 2, 1, 6], "
                "[\"FU\", 3, [0, 1]], [\"SP\", 3, 0, 262144, [64], 1], [\"AN\", 3, 0, 5], [\"AN\", "
                "3, 1, 6]]]], \"r\": [[%.9g], 0, 1, 1600000000], "
                "\"v\": \"v0.6\"}\n",
                target, rows, cols, cost);
}

static cdmpp_status extract(cdmpp_err *err) {
    cd_buf b = {0};
    cd_extract_stats s;
    snprintf(h5, sizeof h5, "%s", tmp_path(&made.dir, "gpu.h5"));
    for (int i = 0; i < N; i++)
        gpu_record(&b, TARGET, i, 0.1 / (1 << i % 6) / (1 << i / 6) + 1e-3 * (i % 5));
    const char *in[] = {tmp_put(&made.dir, "gpu.json", b.p, b.n)}, *task_file[] = {MADE_TASKS};
    const cd_extract x = {
        .out = h5, .input = in, .n_input = 1, .task_file = task_file, .n_task_file = 1, .jobs = 1};
    cd_buf_free(&b);
    return cd_extract_logs(&x, &s, err);
}

static cdmpp_status learn(const char *from, const char *name, cd_model **m, cdmpp_err *err) {
    const char *const set[] = {"train.facts=prior", "model.members=[rows, program]",
                               "train.rounds=30"};
    return made_learn_model(&made.dir, name, from, set, 3, m, err);
}

static int setup(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cdmpp_status st = made_scorer_up(&made, CPU_TARGET, &err);
    if (!st) st = extract(&err);
    if (!st) st = learn(h5, "gpu.cdmpp", &gpu, &err);
    if (!st) st = learn(made.h5, "cpu.cdmpp", &cpu, &err);
    return made_scorer_told(st, &err);
}

static int teardown(void **state) {
    (void)state;
    cd_model_free(gpu);
    cd_model_free(cpu);
    made_scorer_down(&made);
    return 0;
}

static cd_scored score(const cd_model *m, const char *device, const char *target, bool gpu_program,
                       int i) {
    cdmpp_err err = {0};
    cd_scorer *s;
    cd_buf line = {0};
    cd_scored o;
    if (gpu_program) gpu_record(&line, target, i, 1);
    else made_record(&line, task()->workload_key, i, target, 1, 0);
    const cd_predict_line l = {line.p, line.n, "x.json", 1};
    assert_ok(cd_scorer_new(
        m, made.tasks,
        &(cd_scorer_options){.which = {.device = device, .nearest = true, .devices = made.devices}},
        &s, &err));
    cd_scorer_start(s);
    assert_ok(cd_scorer_line(s, &l, &o, &err));
    assert_ok(cd_scorer_finish(s, &err));
    cd_scorer_free(s);
    cd_buf_free(&line);
    return o;
}

TEST(same_bits) {
    static uint32_t device[N];
    static float analytic[N * CD_N_ANALYTIC];
    static cd_model_prediction pred[N];
    cdmpp_err err = {0};
    cd_model_scratch *s = NULL;
    assert_int_equal(cd_model_facts_set(gpu), CD_FACTS_OF_GPU);
    assert_int_equal(cd_model_facts_set(cpu), CD_FACTS_OF_CPU);
    cd_dataset *d = made_scorer_facts(h5, CD_FACTS_OF_GPU, gpu, N, analytic);
    for (size_t i = 0; i < N; i++) assert_int_equal(d->facts_state[i], CD_FACTS_THERE_GPU);
    const cd_program_view v = cd_program_view_facts(d, device, analytic, CD_FACTS_OF_GPU);
    assert_ok(cd_model_scratch_new(&s, &err));
    assert_ok(cd_model_predict(gpu, s, &v, NULL, N, pred, &err));
    for (int i = 0; i < N; i++) {
        const cd_scored o = score(gpu, "v100", TARGET, true, i);
        assert_int_equal(o.st, CDMPP_OK);
        assert_true(o.pred.latency_s == pred[i].latency_s);
    }
    cd_model_scratch_free(s);
    cd_dataset_free(d);
}

static void refuses(const cd_model *m, const char *device, const char *target, bool gpu_program,
                    const char *why) {
    const cd_scored o = score(m, device, target, gpu_program, 3);
    assert_int_equal(o.st, CDMPP_EMODEL);
    assert_non_null(strstr(o.err.msg, why));
}

/* By the target of the record, and where the target is right, by the program. */
TEST(refused) {
    refuses(gpu, "v100", CPU_TARGET, false, "the record is for a CPU");
    refuses(cpu, "zen4", TARGET, true, "the record is for a GPU");
    refuses(gpu, "v100", TARGET, false, "of GPU programs, this is a CPU program");
    refuses(cpu, "zen4", CPU_TARGET, true, "of CPU programs, this is a GPU program");
}

/* The file of the GPU model with the digest of other facts, and a right checksum. */
TEST(of_other_facts) {
    cdmpp_err err = {0};
    cd_model *m = NULL;
    char now[65], hex[65], *p;
    size_t n;
    cd_sha256 h;
    cd_facts_cols_digest(CD_FACTS_OF_GPU, now);
    assert_ok(cd_file_read(tmp_path(&made.dir, "gpu.cdmpp"), 0, &p, &n, &err));
    char *at = memmem(p, n, now, 64);
    assert_non_null(at);
    *at = *at == '0' ? '1' : '0';
    cd_sha256_init(&h);
    cd_sha256_add(&h, p, n - 64);
    cd_sha256_hex(&h, hex);
    memcpy(p + n - 64, hex, 64);
    assert_status(cd_model_from_bytes(p, n, &m, &err), CDMPP_EMODEL);
    assert_non_null(strstr(err.msg, "facts of loop nests: this program computes "));
    assert_null(m);
    cd_mem_free(p);
}

TESTS(setup, teardown, same_bits, refused, of_other_facts)
