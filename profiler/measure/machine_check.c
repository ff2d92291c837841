/* The smallest program there is, compiled, loaded and run as the others are. Where it fails as they
 * do, no schedule is to blame: the compiler is broken, the cache lies on a file system that runs
 * nothing, the disk is full, the driver is gone. */
#include <stdio.h>
#include <string.h>

#include "profiler/measure/measure_internal.h"

enum { ELEMENTS = 16 };

/* Its text is another one each time: a cache that has it would not ask the compiler. */
static void put_text(cd_dialect dialect, cd_buf *b) {
    static const char *const head[] = {
        "void cd_machine_check(void *const *arg) {\n  float *x = (float *)arg[0];\n",
        "__kernel void cd_machine_check(__global float *x) {\n",
        "extern \"C\" __global__ void cd_machine_check(float *x) {\n"};
    cd_buf_putf(b, "/* %.9f */\n%s  x[0] = 1.0f;\n}\n", cd_clock_wall(), head[dialect]);
}

typedef struct {
    cd_codegen_code code;
    cd_codegen_buffer buffer;
    cd_codegen_launch launch;
    uint32_t first;
} smallest;

static cdmpp_status make(cd_dialect dialect, smallest *s, cdmpp_err *err) {
    *s = (smallest){
        .buffer = {.name = "x",
                   .dtype = CD_F32,
                   .elements = ELEMENTS,
                   .bytes = ELEMENTS * sizeof(float),
                   .is_arg = true,
                   .written = true},
        .launch = {
            .entry = "cd_machine_check", .grid = {1, 1, 1}, .block = {1, 1, 1}, .n_buffer = 1}};
    s->launch.buffer = &s->first;
    s->code = (cd_codegen_code){.dialect = dialect,
                                .n_buffer = 1,
                                .n_arg = 1,
                                .n_launch = 1,
                                .buffer = &s->buffer,
                                .launch = &s->launch};
    put_text(dialect, &s->code.text);
    return s->code.text.oom ? CD_FAIL(err, ENOMEM, "program") : CDMPP_OK;
}

static cdmpp_status fault(const cdmpp_err *failed, const cdmpp_err *why, cdmpp_err *err) {
    cdmpp_err e = {0};
    const bool same = !strcmp(failed->msg, why->msg);
    (void)CD_FAIL(&e, EBACKEND, "no program can be measured, not even the smallest: %.220s%s%.120s",
                  why->msg, same ? "" : "; the first that failed: ", same ? "" : failed->msg);
    if (err) *err = e;
    return CDMPP_EBACKEND;
}

static cdmpp_status build(const cd_machine_check_options *o, const smallest *s, cd_compiler **c,
                          cd_build *b, cdmpp_err *err) {
    const cd_measure_options *m = o->measure;
    const cd_compiler_options co = {.command = m->compiler,
                                    .flags = m->flags,
                                    .isa = m->isa,
                                    .target = o->target,
                                    .cache = m->cache,
                                    .cache_bytes = m->cache_bytes,
                                    .limit_s = m->build_limit_s,
                                    .stop = m->stop};
    *b = (cd_build){.code = &s->code};
    CD_TRY(cd_compiler_open(&co, c, err));
    CD_TRY(cd_compiler_build(*c, b, 1, 1, err));
    if (b->status && err) *err = b->err;
    return b->status;
}

/* In a new worker: one whose program failed has ended. */
static cdmpp_status run(const cd_machine_check_options *o, const smallest *s, const cd_build *b,
                        cdmpp_err *err) {
    const cd_measure_options *m = o->measure;
    const bool cpu = o->kind->dialect == CD_DIALECT_C;
    const cd_job j = {.backend = o->kind->name,
                      .device = m->device,
                      .target = o->target,
                      .threads = 1,
                      .fresh = true,
                      .memory_bytes = m->memory_bytes,
                      .limit_s = o->limit_s,
                      .timing = {.budget_s = 1e-3,
                                 .warmup_s = 1e-6,
                                 .min_repeat_s = 1e-6,
                                 .min_repeat = 2,
                                 .max_repeat = 2},
                      .code = s->code,
                      .object = cpu ? b->object : "",
                      .reference_object = "",
                      .cache = m->cache,
                      .cache_bytes = m->cache_bytes};
    cd_worker_result a = {0};
    CD_TRY(cd_supervisor_do(o->supervisor, &j, &a, m->stop, err));
    if (!a.measured.error_no) return CDMPP_OK;
    if (err) *err = a.measured.err;
    return a.measured.status ? a.measured.status : CDMPP_EBACKEND;
}

cdmpp_status cd_machine_check(const cd_machine_check_options *o, const cdmpp_err *failed,
                              cdmpp_err *err) {
    smallest s;
    cd_compiler *c = NULL;
    cd_build b = {0};
    cdmpp_err why = {0};
    CD_TRY(make(o->kind->dialect, &s, err));
    cdmpp_status st = o->kind->dialect == CD_DIALECT_C ? build(o, &s, &c, &b, &why) : CDMPP_OK;
    if (!st && o->supervisor) st = run(o, &s, &b, &why);
    cd_compiler_close(c);
    cd_buf_free(&s.code.text);
    if (!st) return CDMPP_OK;
    if (st == CDMPP_EBACKEND) return fault(failed, &why, err);
    if (err) *err = why; /* stopped, no memory, no space: said as it is */
    return st;
}
