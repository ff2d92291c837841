/* Contexts: devices known and unknown, threads, forks, refused allocations. */
#include "fault.h"
#include "made_api_all.h"

#include "base/core/core.h"
#include "learner/trees/trees.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static made_out out, other;

static cdmpp_status try_context(int model, const cdmpp_options *o, cdmpp_err *err) {
    cdmpp_context *c = NULL;
    const cdmpp_status st = cdmpp_context_new(api.model[model], api.tasks, o, &c, err);
    cdmpp_context_free(c);
    return st;
}

static void options_are_checked(void **state) {
    (void)state;
    cdmpp_err err = {0};
    assert_ok(try_context(MADE_TREES, NULL, &err));
    assert_status(try_context(MADE_TREES, &(cdmpp_options){.nthreads = 1}, &err), CDMPP_EUSAGE);
    assert_status(try_context(MADE_TREES,
                              &(cdmpp_options){.size = sizeof(cdmpp_options), .nthreads = -1},
                              &err),
                  CDMPP_EUSAGE);
    assert_status(try_context(MADE_TREES,
                              &(cdmpp_options){.size = sizeof(cdmpp_options), .profile = "fast"},
                              &err),
                  CDMPP_EMODEL);
    assert_non_null(strstr(err.msg, "expected full (trained without model.tuner), found 'fast'"));
    assert_ok(try_context(
        MADE_TREES, &(cdmpp_options){.size = sizeof(cdmpp_options), .profile = "full"}, &err));
    assert_status(try_context(MADE_TREES,
                              &(cdmpp_options){.size = sizeof(cdmpp_options),
                                               .nearest_device = 1,
                                               .devices_file = "nosuch"},
                              &err),
                  CDMPP_EIO);
}

static void models_tell_what_they_are(void **state) {
    (void)state;
    const cdmpp_model *m = api.model[MADE_TREES];
    cdmpp_model *read = NULL;
    cdmpp_err err = {0};
    assert_int_equal(cdmpp_abi_version(), CDMPP_ABI);
    assert_int_equal(cdmpp_model_n_device(m), 2);
    assert_string_equal(cdmpp_model_device(m, 0), "e5-2673");
    assert_null(cdmpp_model_device(m, 2));
    assert_int_equal(cdmpp_model_n_profile(m), 1);
    assert_string_equal(cdmpp_model_profile(m, 0), "full");
    assert_null(cdmpp_model_profile(m, 1));
    assert_int_equal(cdmpp_model_n_col(m), CD_N_COL);
    assert_true(cdmpp_model_info(m)[0] == '{');
    assert_status(cdmpp_model_load(MADE_TASKS, &read, &err), CDMPP_EPARSE);
    char *p;
    size_t n;
    assert_ok(cd_file_read(made_path(&api, MADE_TREES), 0, &p, &n, &err));
    assert_status(cdmpp_model_read(p, n - 1, &read, &err), CDMPP_EPARSE);
    assert_ok(cdmpp_model_read(p, n, &read, &err));
    cd_mem_free(p);
    assert_string_equal(cdmpp_model_info(read), cdmpp_model_info(m));
    cdmpp_model_free(read);
}

/* Without a path it is the model that commands take: here the one of the variable. */
static void without_a_path(void **state) {
    cdmpp_model *m = NULL;
    cdmpp_err err = {0};
    (void)state;
    assert_int_equal(setenv("CDMPP_DEFAULT_MODEL", made_path(&api, MADE_TREES), 1), 0);
    assert_ok(cdmpp_model_load(NULL, &m, &err));
    assert_string_equal(cdmpp_model_info(m), cdmpp_model_info(api.model[MADE_TREES]));
    cdmpp_model_free(m);
    assert_int_equal(setenv("CDMPP_DEFAULT_MODEL", "", 1), 0);
    assert_status(cdmpp_model_load(NULL, &m, &err), CDMPP_EUSAGE);
    assert_non_null(strstr(err.msg, "there is no cost model"));
    cdmpp_operators *o = NULL;
    assert_status(cdmpp_operators_open(NULL, NULL, &o, &err), CDMPP_EUSAGE);
    assert_non_null(strstr(err.msg, "no model of operators of language models"));
    assert_null(o);
    assert_int_equal(unsetenv("CDMPP_DEFAULT_MODEL"), 0);
}

static void tasks_that_are_not_used_are_told(void **state) {
    static const char again[] =
        "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [\n {\"workload_key\": "
        "\"[\\\"matmul\\\", 512]\", \"ops\": [{\"name\": \"A\", \"shape\": [8], "
        "\"dtype\": \"float32\"}, {\"name\": \"B\", \"axis\": [[\"i\", 0, 8]], \"body\": "
        "\"A[i]\"}]}]}";
    static const char matmul[] = "tests/fuzz/seeds/taskfile/matmul.tasks.json";
    (void)state;
    cdmpp_tasks *t = NULL;
    cdmpp_err err = {0};
    char text[400];
    assert_ok(cdmpp_tasks_new(&t, &err));
    /* the same again is not told */
    for (int k = 0; k < 2; k++) assert_ok(cdmpp_tasks_load(t, matmul, &err));
    assert_null(cdmpp_tasks_warning(t, 0));
    assert_ok(cdmpp_tasks_add(t, "mine", again, sizeof again - 1, &err));
    assert_string_equal(cdmpp_err_format(cdmpp_tasks_warning(t, 0), text, sizeof text),
                        "mine:2: an earlier definition differs and goes first: workload key "
                        "[\"matmul\", 512] [ESCHEMA]");
    assert_null(cdmpp_tasks_warning(t, 1));
    cdmpp_tasks_free(t);
}

static void tasks_are_found(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cdmpp_task *t = NULL;
    assert_status(
        cdmpp_task_new(api.tasks, &(cdmpp_task_info){.size = sizeof(cdmpp_task_info)}, &t, &err),
        CDMPP_EUSAGE);
    assert_status(
        cdmpp_task_new(api.tasks,
                       &(cdmpp_task_info){.size = sizeof(cdmpp_task_info), .workload_key = "no"},
                       &t, &err),
        CDMPP_ENOTASK);
    assert_true(cdmpp_task_flop(api.task) > 0);
    assert_ok(cdmpp_task_new(
        NULL, &(cdmpp_task_info){.size = sizeof(cdmpp_task_info), .workload_key = "no"}, &t, &err));
    assert_true(cdmpp_task_flop(t) == -1);
    cdmpp_batch b = made_batch_of(&api, &all, CDMPP_STEPS, 0, 1);
    b.task = t; /* no definition: an error of the candidate */
    cdmpp_context *c = made_context(
        &api, MADE_TREES, &(cdmpp_options){.size = sizeof(cdmpp_options), .device = "e5-2673"});
    const cdmpp_result r = made_result(&out);
    assert_ok(cdmpp_score(c, &b, &r, &err));
    assert_int_equal(out.status[0], CDMPP_ENOTASK);
    cdmpp_context_free(c);
    cdmpp_task_free(t);
}

/* ---- devices ---- */
static cdmpp_status one_record(const cdmpp_options *o, const char *target) {
    cdmpp_err err = {0};
    cd_buf text = {0};
    cdmpp_context *c = made_context(&api, MADE_TREES, o);
    made_record(&text, cdmpp_tasks_key(api.tasks, 0), 9, target, 1, 0);
    const cdmpp_text t = {text.p, text.n};
    const cdmpp_batch b = {.size = sizeof b, .form = CDMPP_RECORDS, .n = 1, .text = &t};
    const cdmpp_result r = made_result(&out);
    assert_ok(cdmpp_score(c, &b, &r, &err));
    cdmpp_context_free(c);
    cd_buf_free(&text);
    return out.status[0];
}

static void devices(void **state) {
    (void)state;
    cdmpp_err err = {0};
    const cdmpp_options near = {
        .size = sizeof near, .nearest_device = 1, .devices_file = "configs/devices.yaml"};
    cdmpp_options named = near;
    assert_int_equal(one_record(NULL, MADE_TARGET), CDMPP_OK);
    const double zen5 = out.seconds[0];
    assert_int_equal(one_record(NULL, "llvm -model=zen5-avx2"), CDMPP_EMODEL);
    assert_non_null(
        strstr(out.error[0].msg, "expected one of e5-2673, zen5-avx512, found 'zen5-avx2'"));
    assert_int_equal(one_record(NULL, "llvm"), CDMPP_EMODEL);
    assert_int_equal(one_record(&near, "llvm -model=zen5-avx2"), CDMPP_OK);
    assert_true(out.seconds[0] == zen5 && out.flags[0] & CDMPP_FLAG_UNKNOWN_DEVICE);
    assert_int_equal(one_record(&near, "llvm -model=e5-2673"), CDMPP_OK);
    assert_true(out.seconds[0] != zen5 && !(out.flags[0] & CDMPP_FLAG_UNKNOWN_DEVICE));
    assert_int_equal(one_record(&near, "llvm -model=nobody-knows-it"), CDMPP_ESCHEMA);
    assert_int_equal(one_record(&near, "llvm"), CDMPP_EMODEL);
    assert_int_equal(one_record(&near, "cuda -model=t4"), CDMPP_EMODEL); /* no GPU in the model */
    named.device = "platinum-8272";
    assert_int_equal(one_record(&named, MADE_TARGET), CDMPP_OK);
    assert_true(out.flags[0] & CDMPP_FLAG_UNKNOWN_DEVICE);
    cdmpp_context *c = made_context(&api, MADE_TREES, &named);
    assert_string_equal(cdmpp_context_device(c), "e5-2673");
    cdmpp_context_free(c);
    named.device = "t4";
    assert_status(try_context(MADE_TREES, &named, &err), CDMPP_EMODEL);
    named = (cdmpp_options){.size = sizeof named, .device = "zen5-avx2"};
    assert_status(try_context(MADE_TREES, &named, &err), CDMPP_EMODEL);
}

/* ---- threads ---- */
static void score_all(cdmpp_context *c, int model, made_out *o) {
    cdmpp_err err = {0};
    const cdmpp_batch b =
        made_batch_of(&api, &all, model == MADE_TSF ? CDMPP_STEPS : CDMPP_ROWS_F32, 0, all.n);
    const cdmpp_result r = made_result(o);
    assert_ok(cdmpp_score(c, &b, &r, &err));
}

static void threads_change_nothing(void **state) {
    (void)state;
    for (int m = 0; m < MADE_N_MODEL; m++)
        for (int n = 1; n <= 3; n++) {
            const cdmpp_options o = {.size = sizeof o, .device = "zen5-avx512", .nthreads = n};
            cdmpp_context *c = made_context(&api, m, &o);
            score_all(c, m, n == 1 ? &out : &other);
            score_all(c, m, n == 1 ? &out : &other);
            cdmpp_context_free(c);
            if (n > 1) assert_memory_equal(out.seconds, other.seconds, all.n * sizeof *out.seconds);
        }
}

/* One model, four threads with a context each. */
typedef struct {
    pthread_t id;
    int model;
    made_out out;
} user;

static void *use(void *arg) {
    user *u = arg;
    const cdmpp_options o = {.size = sizeof o, .device = "zen5-avx512"};
    cdmpp_context *c = made_context(&api, u->model, &o);
    for (int round = 0; round < 3; round++) score_all(c, u->model, &u->out);
    cdmpp_context_free(c);
    return NULL;
}

static void four_threads_one_model(void **state) {
    (void)state;
    enum { N = 4 };
    static user u[N];
    for (int m = 0; m < MADE_N_MODEL; m++) {
        for (int k = 0; k < N; k++) {
            u[k].model = m;
            assert_int_equal(pthread_create(&u[k].id, NULL, use, &u[k]), 0);
        }
        for (int k = 0; k < N; k++) pthread_join(u[k].id, NULL);
        for (int k = 1; k < N; k++)
            assert_memory_equal(u[0].out.seconds, u[k].out.seconds, all.n * sizeof *out.seconds);
    }
}

/* The host trains with OpenMP in this process: two threads of libgomp that fork will not copy. */
static void use_openmp(void) {
#ifndef __SANITIZE_THREAD__ /* libgomp is not built for it */
    enum { N = 4000, W = 8 };
    static const cd_xgb_param two[] = {{"nthread", "2"}, {"max_depth", "4"}};
    static float x[N * W], grad[N], hess[N];
    cdmpp_err err = {0};
    cd_xgb_data *d = NULL;
    cd_xgb *g = NULL;
    for (int i = 0; i < N * W; i++) x[i] = (float)cd_rng_unit(1, (uint64_t)i);
    for (int i = 0; i < N; i++) grad[i] = x[i * W] - 0.5F, hess[i] = 1;
    assert_ok(cd_xgb_data_new(x, N, W, 2, &d, &err));
    assert_ok(cd_xgb_new(d, NULL, two, 2, &g, &err));
    assert_ok(cd_xgb_boost(g, d, grad, hess, &err));
    cd_xgb_free(g);
    cd_xgb_data_free(d);
#endif
}

/* OpenMP's threads and those of the context are gone in the child; it must answer all the same, and
 * be able to free what it was given. */
static void a_child_goes_on(void **state) {
    (void)state;
    use_openmp();
    for (int m = 0; m < MADE_N_MODEL; m++) {
        const cdmpp_options o = {.size = sizeof o, .device = "zen5-avx512", .nthreads = 2};
        cdmpp_context *c = made_context(&api, m, &o);
        score_all(c, m, &out);
        fflush(NULL);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (!child) {
            alarm(60);
            score_all(c, m, &other);
            cdmpp_context_free(c);
            _exit(memcmp(out.seconds, other.seconds, all.n * sizeof *out.seconds) != 0);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        score_all(c, m, &other);
        assert_memory_equal(out.seconds, other.seconds, all.n * sizeof *out.seconds);
        cdmpp_context_free(c);
    }
}

/* ---- memory ---- */
static void refused_allocations(void **state) {
    (void)state;
    for (int m = 0; m < MADE_N_MODEL; m++) FAULT_SWEEP(f, 10) {
            const cdmpp_options o = {
                .size = sizeof o, .device = "platinum-8272", .nearest_device = 1, .nthreads = 2};
            /* one chunk: cd_mem counts for one thread */
            const cdmpp_batch b =
                made_batch_of(&api, &all, m == MADE_TSF ? CDMPP_RECORDS : CDMPP_ROWS_F64, 0, 9);
            const cdmpp_result r = made_result(&out);
            cdmpp_context *c = NULL;
            f.st = cdmpp_context_new(api.model[m], api.tasks, &o, &c, &f.err);
            if (!f.st) f.st = cdmpp_score(c, &b, &r, &f.err);
            cdmpp_context_free(c);
        }
}

/* After one round of each size, the heap is closed. */
static void warm_calls_need_no_heap(void **state) {
    (void)state;
    for (int m = 0; m < MADE_N_MODEL; m++) {
        const cdmpp_options o = {.size = sizeof o, .device = "zen5-avx512"};
        cdmpp_context *c = made_context(&api, m, &o);
        const cdmpp_result r = made_result(&out);
        for (int round = 0; round < 2; round++)
            for (cdmpp_form f = CDMPP_RECORDS; f <= (m == MADE_TSF ? CDMPP_STEPS : CDMPP_ROWS_F64);
                 f++)
                for (size_t i = 0; i < all.n; i += 7) {
                    cdmpp_err err = {0};
                    const cdmpp_batch b = made_batch_of(&api, &all, f, i, 1);
                    if (round) fault_all();
                    const cdmpp_status st = cdmpp_score(c, &b, &r, &err);
                    fault_off();
                    assert_int_equal(st, CDMPP_OK);
                    assert_int_equal(out.status[0], CDMPP_OK);
                }
        cdmpp_context_free(c);
    }
}

TESTS(setup, teardown, options_are_checked, models_tell_what_they_are, without_a_path,
      tasks_that_are_not_used_are_told, tasks_are_found, devices, threads_change_nothing,
      four_threads_one_model, a_child_goes_on, refused_allocations, warm_calls_need_no_heap)
