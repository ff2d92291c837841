/* A calibration of a board: workers there compile and run the candidates (profiler/remote). What
 * the board says of itself names the device; its numbers are those of the file of descriptions,
 * else of the device that stands for it. Networks are not run there. */
#include <stdio.h>
#include <string.h>

#include "predictor/calibrate/calibrate_internal.h"

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
    return described ? cd_calibrate_machine_is(said, devices, o->board->model, out->says, err)
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

cdmpp_status cd_calibrate_board_find(const cd_calibrate_options *o, const cd_model *m,
                                     const cd_device_table *devices, cd_calibrate_machine *io,
                                     cdmpp_err *err) {
    CD_TRY(name_of(o, devices, &io->name, err));
    if (!io->stands) CD_TRY(cd_calibrate_stand_in(m, devices, io->name.name, &io->stands, err));
    cd_calibrate_machine_own(m, devices, NULL, io);
    const cd_device *d = io->own;
    if (!d || !cd_calibrate_machine_says_enough(CD_FACTS_OF_CPU, d))
        CD_TRY(cd_device_table_find(devices, io->stands, &d, err));
    take_numbers(o, d, io);
    return CDMPP_OK;
}
