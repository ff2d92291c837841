/* What a calibration measures on: this machine's processor, or a GPU of it. Its name, its
 * description, and which device of the model stands for it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cli/cli.h"
#include "predictor/calibrate/calibrate_internal.h"
#include "predictor/estimate/estimate.h"

/* Measuring the caches and the memory of a processor takes some seconds: below `describe_s`, or
 * where it is known to be busy, the description of the device that stands for it has to do. */
static const double describe_s = 60;

/* Are there numbers enough for the analytic time of a program? */
static bool calibrate_machine_says_enough(cd_facts_set set, const cd_device *d) {
    const float none[CD_N_FACTS] = {0};
    cd_analytic_time t;
    return !cd_analytic_seconds_of(set, none, d, &t, NULL);
}

/* The description of its name, else the measured one. A machine that the model knows has the
 * numbers of the training. */
void cd_calibrate_machine_own(const cd_model *m, const cd_device_table *devices,
                              const cd_device *measured, cd_calibrate_machine *io) {
    const cd_device *d = measured;
    if (cd_model_find_device(m, io->name.name, strlen(io->name.name)) >= 0) return;
    if (!d && cd_device_table_find(devices, io->name.name, &d, NULL)) return;
    io->own = cd_model_set_numbers(m, d);
}

/* Is -model= of a target a name for the device that calls itself `name` (says: in its own words)? n
 * == 0: nothing is said. Errors: EUSAGE, it is another described device's.
 *
 * A name that is another described device's would spoil every data set that the records go into. */
static cdmpp_status calibrate_machine_is(cd_str said, const cd_device_table *devices,
                                         const char *name, const char *says, cdmpp_err *err) {
    char text[CD_CALIBRATE_NAME];
    const cd_device *d, *here = NULL;
    if (!said.n || said.n >= sizeof text || cd_str_is(said, name)) return CDMPP_OK;
    (void)snprintf(text, sizeof text, "%.*s", (int)said.n, said.p);
    if (cd_device_table_find(devices, name, &here, NULL)) here = NULL;
    if (cd_device_table_find(devices, text, &d, NULL) || d == here) return CDMPP_OK;
    return CD_FAIL(err, EUSAGE,
                   "--target says -model=%s, but this device is %s (%s): leave -model= out, or "
                   "name the device by a word of your own",
                   text, name, says);
}

/* ---- a processor ---- */
/* *measured: in: caches and memory are to be measured; out: they were. The description goes into
 * the model: what others disturbed is left out of it. */
static cdmpp_status describe(const cd_calibrate_options *o, bool *measured,
                             cd_describe_entry *out) {
    cdmpp_err why = {0};
    cdmpp_status st = cd_describe_cpu("", *measured, out, NULL);
    if (st || !*measured ||
        !cd_noise_check(&out->noise, o->force, "caches and memory", "--force", &why))
        return st;
    cd_log_put(o->log, CD_LOG_WARNING, "%s; they are not described as measured", why.msg);
    *measured = false;
    return cd_describe_cpu("", false, out, NULL);
}

/* Measured numbers of this machine; where they do not suffice, those of the device that stands for
 * it. They only say what a candidate will cost. */
static cdmpp_status find_cpu(const cd_calibrate_options *o, const cd_model *m,
                             const cd_device_table *devices, cd_calibrate_machine *io,
                             cdmpp_err *err) {
    const cd_device *d;
    bool measured = o->limit_s >= describe_s && !o->device &&
                    !(o->quiet && o->quiet->noise > CD_CALIBRATE_NOISE);
    if (!io->stands) CD_TRY(cd_default_model_host(o->model, m, NULL, &io->stands, err));
    CD_TRY(cd_describe_name_cpu("", devices, &io->name, err));
    CD_TRY(cd_describe_identity_cpu("", &io->identity, err));
    CD_TRY(calibrate_machine_is(cd_target_option(o->target, "-model"), devices, io->name.name,
                                io->name.says, err));
    const cdmpp_status st = describe(o, &measured, &io->entry);
    if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "this machine");
    io->code = io->entry;
    cd_describe_narrow(&io->code, cd_isa_vector_bytes(o->isa, o->target));
    io->numbers = &io->code.device;
    cd_calibrate_machine_own(m, devices, measured && !st ? &io->entry.device : NULL, io);
    if (!st && calibrate_machine_says_enough(CD_FACTS_OF_CPU, io->numbers)) return CDMPP_OK;
    CD_TRY(cd_device_table_find(devices, io->stands, &d, err));
    if (measured)
        cd_log_put(o->log, CD_LOG_WARNING,
                   "this machine does not say enough of its caches and memory: costs of programs "
                   "are estimated with %s",
                   io->stands);
    io->numbers = d;
    return CDMPP_OK;
}

/* ---- a GPU ---- */
/* A model of processors says nothing of a GPU's programs, whatever stands for it: their features
 * are others. */
cdmpp_status cd_calibrate_needs_gpus(const cd_calibrate_options *o, const cd_model *m,
                                     const char *stands, cdmpp_err *err) {
    const int at = stands ? cd_model_find_device(m, stands, strlen(stands)) : -1;
    bool any = false;
    for (size_t i = 0; i < cd_model_n_device(m); i++) any |= cd_model_device_is_gpu(m, i) != 0;
    if (!any || (cd_model_needs_facts(m) && cd_model_facts_set(m) != CD_FACTS_OF_GPU))
        return CD_FAIL(err, EMODEL,
                       "%s knows no GPU: --cost-model names a model of GPU programs, which "
                       "cdmpp-train makes of measure records of a GPU",
                       o->model);
    if (at >= 0 && !cd_model_device_is_gpu(m, (size_t)at))
        return cd_err_key(err,
                          CD_FAIL(err, EMODEL,
                                  "%s of the model is a processor: only a GPU can stand for a GPU",
                                  stands),
                          "device");
    return CDMPP_OK;
}

/* What the model itself says of its device, else the file of descriptions. */
static bool vector_of(const cd_model *m, size_t i, const cd_device_table *devices,
                      float out[CD_N_DEVICE_COL]) {
    size_t width;
    const float *v = cd_model_device_vector(m, i, &width);
    bool any = false;
    for (size_t c = 0; width == CD_N_DEVICE_COL && c < width; c++) any |= v[c] != 0;
    if (any) memcpy(out, v, width * sizeof *v);
    return any || !cd_device_table_vector(devices, cd_model_device(m, i), out, NULL);
}

/* The GPU of the model that is most like this one: by its description, or by what its driver
 * says. */
static cdmpp_status nearest_gpu(const cd_model *m, const cd_device_table *devices,
                                const cd_device *d, const char **out, cdmpp_err *err) {
    float want[CD_N_DEVICE_COL], has[CD_N_DEVICE_COL];
    double least = (double)INFINITY;
    size_t gpus = 0, last = 0;
    cd_device_vector(d, want);
    *out = NULL;
    for (size_t i = 0; i < cd_model_n_device(m); i++) {
        if (!cd_model_device_is_gpu(m, i)) continue;
        gpus++, last = i;
        if (!vector_of(m, i, devices, has)) continue;
        const double far = cd_device_unlike(want, has);
        if (far < least) least = far, *out = cd_model_device(m, i);
    }
    if (!*out && gpus == 1) *out = cd_model_device(m, last);
    return *out ? CDMPP_OK
                : CD_FAIL(err, EMODEL,
                          "nobody describes a GPU of the model: --device says which of them stands "
                          "for this one");
}

/* Who writes -model= names the device of the records. */
static cdmpp_status take_model(const char *target, const cd_device_table *devices,
                               cd_describe_name *name, cdmpp_err *err) {
    const cd_str is = cd_target_option(target, "-model");
    if (!is.n) return CDMPP_OK;
    if (is.n >= sizeof name->name)
        return CD_FAIL(err, EUSAGE, "--target: a name of %zu letters", is.n);
    CD_TRY(calibrate_machine_is(is, devices, name->name, name->says, err));
    (void)snprintf(name->name, sizeof name->name, "%.*s", (int)is.n, is.p);
    return CDMPP_OK;
}

/* NVRTC is a library of its own: without it every program would fail, one after the other. Nothing
 * is started, and both libraries stay, as in a back end. */
static cdmpp_status check_compiler(const char *backend, cdmpp_err *err) {
    cd_cuda_api a = {0};
    if (strcmp(backend, "cuda") != 0) return CDMPP_OK;
    CD_TRY(cd_cuda_api_open(&a, err));
    return cd_cuda_api_open_compiler(&a, err);
}

static cdmpp_status ask_driver(const cd_calibrate_options *o, const char *backend,
                               cd_describe_entry *out, cdmpp_err *err) {
    const char *gpu = o->gpu ? o->gpu : "";
    if (o->clock->gpu) return o->clock->gpu(o->clock->ctx, backend, gpu, out, err);
    CD_TRY(cd_describe_gpu_apart(backend, gpu, out, err));
    return check_compiler(backend, err);
}

/* A described GPU has the numbers of its description: they are of the kind that the model's devices
 * have. Another one has those of its driver, and where these do not suffice, those of the device
 * that stands for it. */
static cdmpp_status find_gpu(const cd_calibrate_options *o, const cd_model *m,
                             const cd_device_table *devices, cd_calibrate_machine *io,
                             cdmpp_err *err) {
    const cd_backend_kind *k = cd_backend_for_target((cd_str){o->target, strlen(o->target)});
    const cd_device *d = &io->entry.device;
    CD_TRY(cd_calibrate_needs_gpus(o, m, io->stands, err));
    CD_TRY(ask_driver(o, k ? k->name : "", &io->entry, err));
    io->code = io->entry;
    cd_describe_name_entry(&io->entry, devices, &io->name);
    cd_describe_identity_gpu(&io->entry, &io->identity);
    if (o->by_default && !cd_describe_is_gpu(&io->entry))
        return CD_FAIL(err, EMODEL,
                       "%.95s is a processor and no GPU: the default model of GPUs does not answer "
                       "for it; --cost-model FILE names the model that is corrected",
                       io->name.says);
    if (io->name.described) (void)cd_device_table_find(devices, io->name.name, &d, NULL);
    CD_TRY(take_model(o->target, devices, &io->name, err));
    const int known = cd_model_find_device(m, io->name.name, strlen(io->name.name));
    if (!io->stands && known >= 0 && cd_model_device_is_gpu(m, (size_t)known))
        io->stands = cd_model_device(m, (size_t)known);
    if (!io->stands) CD_TRY(nearest_gpu(m, devices, d, &io->stands, err));
    io->numbers = d;
    cd_calibrate_machine_own(m, devices,
                             calibrate_machine_says_enough(CD_FACTS_OF_GPU, d) ? d : NULL, io);
    if (calibrate_machine_says_enough(CD_FACTS_OF_GPU, d)) return CDMPP_OK;
    CD_TRY(cd_device_table_find(devices, io->stands, &io->numbers, err));
    cd_log_put(o->log, CD_LOG_WARNING,
               "%s does not say enough of its arithmetic and memory: costs of programs are "
               "estimated with %s",
               io->name.name, io->stands);
    return CDMPP_OK;
}

static cdmpp_status calibrate_board_find(const cd_calibrate_options *o, const cd_model *m,
                                         const cd_device_table *devices, cd_calibrate_machine *io,
                                         cdmpp_err *err);

cdmpp_status cd_calibrate_machine_find(const cd_calibrate_options *o, const cd_model *m,
                                       const cd_device_table *devices, cd_calibrate_machine *io,
                                       cdmpp_err *err) {
    if (o->board) return calibrate_board_find(o, m, devices, io, err);
    return (cd_calibrate_facts_set(o->target) == CD_FACTS_OF_GPU ? find_gpu : find_cpu)(
        o, m, devices, io, err);
}

/* A calibration of a board: workers there compile and run the candidates (profiler/remote). What
 * the board says of itself names the device; its numbers are those of the file of descriptions,
 * else of the device that stands for it. Networks are not run there. */

/* ---- measuring ---- */
/* a worker is begun for each batch, which costs a second or two */
enum { TOGETHER = CD_CALIBRATE_BATCH };

typedef struct answers {
    cd_measure_result *out;
    const cd_record_program *job;
} answers;

/* A program that no code can be made for has failed, as it has here. */
static cdmpp_status take(void *ctx, size_t i, const cd_measure_result *m, cdmpp_err *err) {
    answers *a = ctx;
    (void)err;
    a->out[i] = *m;
    if (a->job[i].why.code) cd_measure_result_fail(&a->out[i], 1, &a->job[i].why);
    return CDMPP_OK;
}

static double now_there(void *ctx) {
    (void)ctx;
    return cd_clock_wall();
}

static cdmpp_status measure_there(void *ctx, cd_record_program *job, size_t n,
                                  cd_measure_result *out, cdmpp_err *err) {
    const cd_calibrate_board *b = ctx;
    const cd_record_program *which[CD_CALIBRATE_BATCH];
    answers a = {out, job};
    if (n > CD_CALIBRATE_BATCH) return CD_FAIL(err, EUSAGE, "%zu programs at once", n);
    for (size_t i = 0; i < n; i++) which[i] = &job[i];
    const cd_remote_measure_jobs j = {
        .tasks = b->tasks, .job = which, .n = n, .each = take, .ctx = &a};
    return cd_remote_measure_run(b->measure, &j, err);
}

cd_calibrate_clock cd_calibrate_clock_board(cd_calibrate_board *b) {
    return (cd_calibrate_clock){
        .ctx = b, .now = now_there, .measure = measure_there, .batch = TOGETHER};
}

/* ---- what it is ---- */
/* The target's -model=, else what the board's system calls its processor. Where that one is
 * described, it is not another described one. A board that nobody describes may be one of them. */
static cdmpp_status name_of(const cd_calibrate_options *o, const cd_device_table *devices,
                            cd_describe_name *out, cdmpp_err *err) {
    const cd_device *is;
    const cd_str said = cd_target_option(o->target, "-model"),
                 name = said.n ? said : (cd_str){o->board->model, strlen(o->board->model)};
    if (!name.n)
        return CD_FAIL(
            err, EUSAGE,
            "the board has no name for records: --target 'llvm -model=NAME' gives it one");
    if (name.n >= sizeof out->name)
        return CD_FAIL(err, EUSAGE, "--target: a name of %zu letters", name.n);
    (void)snprintf(out->name, sizeof out->name, "%.*s", (int)name.n, name.p);
    (void)snprintf(out->says, sizeof out->says, "board, %.90s",
                   o->board->device[0] ? o->board->device : "a device that it does not name");
    const bool described =
        o->board->model[0] && !cd_device_table_find(devices, o->board->model, &is, NULL);
    return described ? calibrate_machine_is(said, devices, o->board->model, out->says, err)
                     : CDMPP_OK;
}

/* Its numbers with the vectors that its instructions have: a program for wider ones is another
 * program, and the board may not run it. */
static void take_numbers(const cd_calibrate_options *o, const cd_device *d,
                         cd_calibrate_machine *io) {
    io->code = (cd_describe_entry){.device = *d};
    cd_describe_narrow(&io->code, cd_isa_vector_bytes(o->isa, o->target));
    io->numbers = &io->code.device;
}

/* A board, by what it says of itself and the file of descriptions. Errors: EUSAGE (it has no name),
 * EMODEL, ENOMEM. */
static cdmpp_status calibrate_board_find(const cd_calibrate_options *o, const cd_model *m,
                                         const cd_device_table *devices, cd_calibrate_machine *io,
                                         cdmpp_err *err) {
    CD_TRY(name_of(o, devices, &io->name, err));
    if (!io->stands) CD_TRY(cd_calibrate_stand_in(m, devices, io->name.name, &io->stands, err));
    cd_calibrate_machine_own(m, devices, NULL, io);
    const cd_device *d = io->own;
    if (!d || !calibrate_machine_says_enough(CD_FACTS_OF_CPU, d))
        CD_TRY(cd_device_table_find(devices, io->stands, &d, err));
    take_numbers(o, d, io);
    return CDMPP_OK;
}
