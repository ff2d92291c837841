/* Measures what starting a program and waiting for another device take, by chains of programs that
 * do nothing: the difference between a long and a short chain is free of what a pass costs once. */
#include <math.h>
#include <string.h>

#include "profiler/machine/machine_measure_internal.h"
#include "profiler/measure/measure.h"

enum { SHORT = 64, LONG = 192, PASSES = 15, CUDA_RUNS = 2000 };

typedef struct {
    cd_machine *m;
    cd_machine_program c, cl; /* C for CPU and NATIVE, OpenCL C */
    cd_backend *objects;
    bool apart; /* programs of a chain do not wait for each other */
} timer;

static const char C_TEXT[] =
    "void cd_machine_kernel_empty(void *const *arg) { *(volatile float *)arg[0] = 1; }\n";
static const char CL_TEXT[] =
    "__kernel void cd_machine_kernel_empty(__global float *c) { c[0] = 1; }\n";
static const char CUDA_TEXT[] =
    "extern \"C\" __global__ void cd_machine_kernel_empty(float *c) { c[0] = 1; }\n";

/* A chain on devices in turns: d[0], d[1], d[0], ... (or d[0] alone). */
typedef struct {
    cd_multi_device device[2];
    cd_multi_buffer buffer[2];
    cd_multi_action action[LONG];
    uint32_t after[LONG], slot[2];
    cd_multi_net n;
    cd_multi_action_time ran[LONG];
} chain;

/* Program i waits for program i - 1, unless the chain is `apart`. */
static void chain_make(const timer *t, const uint32_t *d, uint32_t n_device, uint32_t length,
                       chain *c) {
    static const char *const name[] = {"first", "second"};
    memset(c, 0, sizeof *c);
    for (uint32_t k = 0; k < n_device; k++) {
        c->device[k] = cd_machine_executor_device(&t->m->device[d[k]]);
        c->buffer[k] = (cd_multi_buffer){
            .name = name[k], .memory = c->device[k].memory, .of = CD_MULTI_OWN, .bytes = 64};
        c->slot[k] = k;
    }
    for (uint32_t i = 0; i < length; i++) {
        const uint32_t k = i % n_device;
        c->after[i] = i ? i - 1 : 0;
        c->action[i] = (cd_multi_action){
            .name = name[k],
            .device = k,
            .build = c->device[k].kind == CD_MULTI_OPENCL ? &t->cl.build : &t->c.build,
            .buffer = &c->slot[k],
            .n_after = i > 0 && !t->apart,
            .after = &c->after[i]};
    }
    c->n = (cd_multi_net){n_device, n_device, length, c->device, c->buffer, c->action};
}

double cd_machine_measure_each_s(uint32_t few, double few_s, uint32_t many, double many_s) {
    return fmax(1e-9, (many_s - few_s) / (many - few));
}

void cd_machine_measure_waits_s(double both_s, const double launch_s[2], const double gap_s[2],
                                double wait_s[2]) {
    const double more = fmax(0, 2 * both_s - launch_s[0] - launch_s[1]), gaps = gap_s[0] + gap_s[1];
    wait_s[1] = gaps > 0 ? more * gap_s[1] / gaps : more / 2;
    wait_s[0] = more - wait_s[1];
}

static double quartile(double *v, size_t n) {
    cd_sort_doubles(v, n);
    return v[n / 4];
}

/* Seconds of a pass, the lower quartile: disturbances only ever add time. gap (2) or NULL: before
 * programs of each device, of the last pass. */
static cdmpp_status chain_time(const timer *t, const uint32_t *d, uint32_t n_device,
                               uint32_t length, double *seconds, double *gap, cdmpp_err *err) {
    double total[PASSES], one[2][LONG];
    size_t n[2] = {0};
    cd_multi_executor *r = NULL;
    chain *c = cd_mem_zalloc(1, sizeof *c);
    if (!c) return CD_FAIL(err, ENOMEM, "chain");
    chain_make(t, d, n_device, length, c);
    cdmpp_status st = cd_multi_executor_open(&c->n, &r, err);
    /* the first two warm up */
    for (int k = -2; k < PASSES && !st; k++)
        st = cd_multi_executor_pass(r, NULL, &total[k < 0 ? 0 : k], NULL, err);
    if (!st && gap) {
        double ignored;
        st = cd_multi_executor_pass(r, c->ran, &ignored, NULL, err);
        for (uint32_t i = 1; i < length && !st; i++)
            one[i % n_device][n[i % n_device]++] = fmax(0, c->ran[i].start_s - c->ran[i - 1].end_s);
        for (uint32_t k = 0; k < n_device && !st; k++) gap[k] = quartile(one[k], n[k]);
    }
    if (!st) *seconds = quartile(total, PASSES);
    /* a short chain is over before a tick */
    if (!st && length == LONG) cd_noise_repeats(&t->m->noise, "launch_s", total, PASSES);
    cd_multi_executor_close(r);
    cd_mem_free(c);
    return st;
}

/* Seconds of one more program, without what a pass costs once. */
static cdmpp_status each(const timer *t, const uint32_t *d, uint32_t n_device, double *seconds,
                         double *gap, cdmpp_err *err) {
    double few, many;
    CD_TRY(chain_time(t, d, n_device, SHORT, &few, NULL, err));
    CD_TRY(chain_time(t, d, n_device, LONG, &many, gap, err));
    *seconds = cd_machine_measure_each_s(SHORT, few, LONG, many);
    return CDMPP_OK;
}

/* ---- CUDA: profiler/runtime/multi does not run there ---- */
static cdmpp_status run_cuda(const cd_backend_kind *kind, cd_backend *b, cd_machine_program *p,
                             cd_machine_device *d, cdmpp_err *err) {
    cd_loaded *l;
    double s, all[PASSES], once[PASSES];
    CD_TRY(kind->build(b, &p->build, 1, 1, err));
    if (p->build.status && err) *err = p->build.err;
    CD_TRY(p->build.status);
    CD_TRY(kind->load(b, &p->build, NULL, &l, err));
    cdmpp_status st = kind->run(l, CUDA_RUNS, &s, err);
    for (int k = 0; k < PASSES && !st; k++) {
        st = kind->run(l, CUDA_RUNS, &all[k], err);
        const double start = cd_clock_wall();
        if (!st) st = kind->run(l, 1, &s, err);
        once[k] = cd_clock_wall() - start;
    }
    kind->unload(l);
    if (st) return st;
    d->launch_s = quartile(all, PASSES) / CUDA_RUNS;
    d->sync_s = fmax(0, quartile(once, PASSES) - d->launch_s);
    return CDMPP_OK;
}

static cdmpp_status time_cuda(cd_machine_device *d, cdmpp_err *err) {
    const cd_backend_kind *kind = cd_backend_find("cuda");
    cd_backend *b;
    cd_machine_program p;
    if (!kind) return CD_FAIL(err, EBACKEND, "no back end for CUDA");
    CD_TRY(kind->open(d->name + strlen("cuda"), "cuda", &b, err));
    cdmpp_status st = cd_machine_program_init(&p, CD_DIALECT_CUDA, "cd_machine_kernel_empty",
                                              CUDA_TEXT, 1, 16, err);
    if (!st) st = run_cuda(kind, b, &p, d, err);
    cd_machine_program_free(&p);
    kind->close(b);
    return st;
}

/* ---- all ---- */
static bool is_cuda(const cd_machine_device *d) { return !strcmp(d->kind, "cuda"); }
static bool is_here(const cd_machine_device *d) {
    return !is_cuda(d) && strcmp(d->kind, "model") != 0;
}

static cdmpp_status launches(timer *t, cdmpp_err *err) {
    for (uint32_t d = 0; d < t->m->n; d++) {
        cd_machine_device *x = &t->m->device[d];
        if (is_cuda(x)) CD_TRY(cd_err_key(err, time_cuda(x, err), x->name));
        else if (is_here(x))
            CD_TRY(cd_err_key(err, each(t, &d, 1, &x->launch_s, NULL, err), x->name));
    }
    return CDMPP_OK;
}

/* The first device in turns with each other one. */
static cdmpp_status waits(timer *t, cdmpp_err *err) {
    uint32_t first = 0, n = 0;
    double sum = 0;
    while (first < t->m->n && !is_here(&t->m->device[first])) first++;
    for (uint32_t d = first + 1; d < t->m->n; d++) {
        cd_machine_device *a = &t->m->device[first], *b = &t->m->device[d];
        const uint32_t pair[2] = {first, d};
        const double launch[2] = {a->launch_s, b->launch_s};
        double both, gap[2], wait[2];
        if (!is_here(b)) continue;
        CD_TRY(cd_err_key(err, each(t, pair, 2, &both, gap, err), b->name));
        cd_machine_measure_waits_s(both, launch, gap, wait);
        b->sync_s = wait[1];
        sum += wait[0];
        n++;
    }
    if (n) t->m->device[first].sync_s = sum / n;
    return CDMPP_OK;
}

/* wake_s: the time of a pass in which another device has a part, minus that of a pass without it
 * and of its program. */
static cdmpp_status wakes(timer *t, cdmpp_err *err) {
    uint32_t first = 0;
    double alone, both;
    while (first < t->m->n && !is_here(&t->m->device[first])) first++;
    if (first == t->m->n) return CDMPP_OK;
    cd_machine_device *a = &t->m->device[first];
    CD_TRY(cd_err_key(err, chain_time(t, &first, 1, 1, &alone, NULL, err), a->name));
    a->wake_s = fmax(0, alone - a->launch_s);
    for (uint32_t d = first + 1; d < t->m->n; d++) {
        cd_machine_device *b = &t->m->device[d];
        const uint32_t pair[2] = {first, d};
        if (!is_here(b)) continue;
        t->apart = true; /* the first device works at the same time */
        const cdmpp_status st = chain_time(t, pair, 2, 2, &both, NULL, err);
        t->apart = false;
        CD_TRY(cd_err_key(err, st, b->name));
        b->wake_s = fmax(0, both - alone - b->launch_s);
    }
    return CDMPP_OK;
}

cdmpp_status cd_machine_measure_time(cd_machine *m, cdmpp_err *err) {
    timer t = {.m = m};
    cdmpp_status st =
        cd_machine_program_init(&t.c, CD_DIALECT_C, "cd_machine_kernel_empty", C_TEXT, 1, 16, err);
    if (!st)
        st = cd_machine_program_init(&t.cl, CD_DIALECT_OPENCL, "cd_machine_kernel_empty", CL_TEXT,
                                     1, 16, err);
    if (!st) st = cd_machine_program_build(&t.c, 1, &t.objects, err);
    if (!st) st = launches(&t, err);
    if (!st) st = waits(&t, err);
    if (!st) st = wakes(&t, err);
    if (t.objects) cd_backend_cpu.close(t.objects);
    cd_machine_program_free(&t.c);
    cd_machine_program_free(&t.cl);
    return st;
}
