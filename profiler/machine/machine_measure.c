/* Finds the devices of this machine, and has the small programs that measuring them needs. */
#include "profiler/machine/machine_measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/host/host.h"
#include "profiler/machine/machine_measure_internal.h"
#include "profiler/measure/measure.h"

enum { MAX_CORE = 1023, MAX_NUMBER = 99 };

void cd_machine_measure_pin(void) { (void)setenv("POCL_AFFINITY", "1", 0); }

/* ---- small programs ---- */
cdmpp_status cd_machine_program_init(cd_machine_program *p, cd_dialect dialect, const char *entry,
                                     const char *text, uint32_t n_buffer, int64_t floats,
                                     cdmpp_err *err) {
    static const char *const name[] = {"c", "a", "b"};
    memset(p, 0, sizeof *p);
    for (uint32_t k = 0; k < n_buffer; k++) {
        p->buffer[k] = (cd_codegen_buffer){.name = name[k],
                                           .dtype = CD_F32,
                                           .elements = floats,
                                           .bytes = 4 * floats,
                                           .is_arg = true,
                                           .written = k == 0};
        p->order[k] = k;
    }
    p->launch = (cd_codegen_launch){.entry = entry,
                                    .grid = {1, 1, 1},
                                    .block = {1, 1, 1},
                                    .n_buffer = n_buffer,
                                    .buffer = p->order};
    p->code.dialect = dialect;
    p->code.n_buffer = p->code.n_arg = n_buffer;
    p->code.n_launch = 1;
    p->code.buffer = p->buffer;
    p->code.launch = &p->launch;
    cd_buf_puts(&p->code.text, text);
    p->build = (cd_build){.code = &p->code};
    return p->code.text.oom ? CD_FAIL(err, ENOMEM, "program") : CDMPP_OK;
}

void cd_machine_program_free(cd_machine_program *p) { cd_buf_free(&p->code.text); }

/* Without a cache: these programs take no time to compile, and a stale one would be hard to
 * notice. */
cdmpp_status cd_machine_program_build(cd_machine_program *p, size_t n, cd_backend **out,
                                      cdmpp_err *err) {
    cd_build b[4];
    const cd_compiler_options o = {.cache = ""};
    *out = NULL;
    if (n > 4) return CD_FAIL(err, ERANGE, "%zu programs", n);
    CD_TRY(cd_backend_cpu_open(&o, out, err));
    for (size_t i = 0; i < n; i++) b[i] = p[i].build;
    CD_TRY(cd_backend_cpu.build(*out, b, n, 1, err));
    for (size_t i = 0; i < n; i++) {
        p[i].build = b[i];
        if (b[i].status && err) *err = b[i].err;
        CD_TRY(b[i].status);
    }
    return CDMPP_OK;
}

/* The device as profiler/runtime/multi has it. */
static cd_multi_device machine_executor_device(const cd_machine_device *d) {
    const cd_multi_device_kind kind = !strcmp(d->kind, "native")   ? CD_MULTI_NATIVE
                                      : !strcmp(d->kind, "opencl") ? CD_MULTI_OPENCL
                                                                   : CD_MULTI_CPU;
    return (cd_multi_device){.name = d->name,
                             .kind = kind,
                             .opencl = d->opencl,
                             .core = kind == CD_MULTI_CPU ? d->core : -1,
                             .memory = d->memory};
}

/* ---- which core ---- */
/* A program that writes its processor's number. Errors: ENOMEM. */
static cdmpp_status machine_program_init_cpu_id(cd_machine_program *p, cdmpp_err *err) {
    return cd_machine_program_init(
        p, CD_DIALECT_C, "machine_program_init_cpu_id",
        "extern int sched_getcpu(void);\nvoid machine_program_init_cpu_id(void *const *arg) { "
        "*(float *)arg[0] = (float)sched_getcpu(); }\n",
        1, 16, err);
}

/* Asked several times: a device whose threads move between processors has none of its own. */
static cdmpp_status device_core(const cd_machine_device *d, const cd_machine_program *where,
                                int *core, cdmpp_err *err) {
    enum { ASKED = 5 };
    const cd_multi_device device = machine_executor_device(d);
    const cd_multi_buffer buffer = {
        .name = "c", .memory = d->memory, .of = CD_MULTI_OWN, .bytes = 64};
    const uint32_t zero = 0;
    const cd_multi_action action = {.name = "where", .build = &where->build, .buffer = &zero};
    const cd_multi_net n = {1, 1, 1, &device, &buffer, &action};
    cd_multi_executor *r;
    float at[16], first = -1;
    double total;
    *core = -1;
    CD_TRY(cd_multi_executor_open(&n, &r, err));
    cdmpp_status st = CDMPP_OK;
    bool same = true;
    for (int k = 0; k < ASKED && !st; k++) {
        st = cd_multi_executor_pass(r, NULL, &total, NULL, err);
        if (!st) st = cd_multi_executor_read(r, 0, at, err);
        if (!st && !k) first = at[0];
        if (!st) same &= at[0] == first;
    }
    cd_multi_executor_close(r);
    if (!st && same && first >= 0 && first <= MAX_CORE) *core = (int)first;
    return st;
}

/* ---- finding ---- */
typedef struct {
    const cd_machine_measure_options *o;
    cd_machine *m;
    cd_machine_program where;
    cd_backend *objects; /* of `where`; NULL: not compiled yet */
    cd_affinity allowed;
    uint32_t memory;          /* the last one given */
    bool taken[MAX_CORE + 1]; /* cores of devices */
} finder;

/* "ocl12" of the word "ocl" is 12; -1: not of this word. */
static int number_of(const char *name, const char *word) {
    const size_t n = strlen(word);
    char *end;
    if (strncmp(name, word, n) != 0 || name[n] < '0' || name[n] > '9') return -1;
    const long v = strtol(name + n, &end, 10);
    return *end || v > MAX_CORE ? -1 : (int)v;
}

static bool may_use(const finder *f, int core) {
    const unsigned bits = 8 * sizeof f->allowed.mask[0];
    return (size_t)core < sizeof f->allowed.mask * 8 &&
           f->allowed.mask[(unsigned)core / bits] >> (unsigned)core % bits & 1;
}

static cdmpp_status find_cpu(finder *f, const char *name, int core, cdmpp_err *err) {
    if (!may_use(f, core))
        return CD_FAIL(err, EBACKEND, "device %s: no processor %d that may be used here", name,
                       core);
    f->taken[core] = true;
    return cd_machine_add(
        f->m,
        &(cd_machine_device){.name = name, .kind = "cpu", .as = f->o->as, .core = core, .scale = 1},
        err);
}

static cdmpp_status compile_where(finder *f, cdmpp_err *err) {
    if (f->objects) return CDMPP_OK;
    CD_TRY(machine_program_init_cpu_id(&f->where, err));
    return cd_machine_program_build(&f->where, 1, &f->objects, err);
}

/* One unit of a processor, on a core that no device has; where none says so, the last. */
static cdmpp_status find_part(finder *f, cd_machine_device *d, int number, uint32_t units,
                              char *part, size_t n, cdmpp_err *err) {
    CD_TRY(compile_where(f, err));
    for (uint32_t k = units; k-- > 0;) {
        snprintf(part, n, "%d/%u.%u", number, units, k);
        CD_TRY(cd_err_key(err, device_core(d, &f->where, &d->core, err), d->name));
        if (d->core < 0) break; /* not pinned: no part says anything */
        if (!f->taken[d->core]) return CDMPP_OK;
    }
    snprintf(part, n, "%d/%u.%u", number, units, units - 1);
    d->core = -1;
    return CDMPP_OK;
}

/* A GPU is taken whole, with a memory of its own; of a processor only one unit, so that the other
 * devices keep theirs. */
static cdmpp_status find_opencl(finder *f, const char *name, int number, cdmpp_err *err) {
    char part[40];
    cd_opencl cl;
    snprintf(part, sizeof part, "%d", number);
    CD_TRY(cd_err_key(err, cd_opencl_open(&cl, part, err), name));
    const bool cpu = cl.kind & CD_CL_DEVICE_CPU, native = cpu && cl.execution & CD_CL_NATIVE_KERNEL;
    const uint32_t units = cl.units;
    cd_opencl_close(&cl);
    cd_machine_device d = {
        .name = name, .kind = native ? "native" : "opencl", .opencl = part, .core = -1, .scale = 1};
    if (native) d.as = f->o->as;
    if (cpu && units > 1 && !native)
        snprintf(part, sizeof part, "%d/%u.%u", number, units, units - 1);
    else if (native && units > 1) CD_TRY(find_part(f, &d, number, units, part, sizeof part, err));
    if (d.core >= 0) f->taken[d.core] = true;
    if (!cpu || f->o->own_memory) d.memory = ++f->memory;
    return cd_machine_add(f->m, &d, err);
}

static cdmpp_status count_cuda(int *n, cdmpp_err *err) {
    cd_cuda_api api;
    *n = 0;
    CD_TRY(cd_cuda_api_open(&api, err)); /* the driver stays: its own threads run in it */
    if (api.init(0) || api.device_count(n)) return CD_FAIL(err, EBACKEND, "no CUDA device");
    return CDMPP_OK;
}

static cdmpp_status find_cuda(finder *f, const char *name, int number, cdmpp_err *err) {
    int n;
    CD_TRY(cd_err_key(err, count_cuda(&n, err), name));
    if (number >= n)
        return cd_err_key(err, CD_FAIL(err, EBACKEND, "no CUDA device %d: there are %d", number, n),
                          name);
    return cd_machine_add(
        f->m,
        &(cd_machine_device){
            .name = name, .kind = "cuda", .core = -1, .scale = 1, .memory = ++f->memory},
        err);
}

static cdmpp_status find_one(finder *f, const char *name, cdmpp_err *err) {
    const int cpu = number_of(name, "cpu"), ocl = number_of(name, "ocl"),
              cuda = number_of(name, "cuda");
    if (cpu >= 0) return find_cpu(f, name, cpu, err);
    if (ocl >= 0) return find_opencl(f, name, ocl, err);
    if (cuda >= 0) return find_cuda(f, name, cuda, err);
    return CD_FAIL(err, ESCHEMA, "device '%.60s': expected cpuN, oclN or cudaN", name);
}

/* Processors first: a part of an OpenCL device goes where they are not. Their order in the list is
 * kept. */
static cdmpp_status take_cores(finder *f, const char *list, cdmpp_err *err) {
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        const int core = number_of(name, "cpu");
        if (core >= 0) f->taken[core] = true;
        if (!name[0]) return CD_FAIL(err, ESCHEMA, "a device without a name in '%.60s'", list);
    }
    return CDMPP_OK;
}

static cdmpp_status find_listed(finder *f, const char *list, cdmpp_err *err) {
    CD_TRY(take_cores(f, list, err));
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        CD_TRY(find_one(f, name, err));
    }
    return CDMPP_OK;
}

/* The first processor that may be used, and all OpenCL and CUDA devices, as many as a machine can
 * have. */
static cdmpp_status find_all(finder *f, cdmpp_err *err) {
    char name[24];
    int core = 0, n = 0;
    while (core < MAX_CORE && !may_use(f, core)) core++;
    snprintf(name, sizeof name, "cpu%d", core);
    CD_TRY(find_cpu(f, name, core, err));
    for (int k = 0; k <= MAX_NUMBER && f->m->n < CD_MACHINE_DEVICES; k++) {
        cd_opencl cl;
        char number[16];
        snprintf(number, sizeof number, "%d", k);
        if (cd_opencl_open(&cl, number, NULL)) break;
        cd_opencl_close(&cl);
        snprintf(name, sizeof name, "ocl%d", k);
        CD_TRY(find_opencl(f, name, k, err));
    }
    if (count_cuda(&n, NULL)) n = 0;
    for (int k = 0; k < n && f->m->n < CD_MACHINE_DEVICES; k++) {
        snprintf(name, sizeof name, "cuda%d", k);
        CD_TRY(find_cuda(f, name, k, err));
    }
    return CDMPP_OK;
}

cdmpp_status cd_machine_measure_find(cd_machine *m, const cd_machine_measure_options *a,
                                     cdmpp_err *err) {
    finder *f = cd_mem_zalloc(1, sizeof *f);
    if (!f) return CD_FAIL(err, ENOMEM, "devices");
    f->o = a;
    f->m = m;
    cd_machine_measure_pin();
    cd_affinity_get(&f->allowed);
    const cdmpp_status st = a->list ? find_listed(f, a->list, err) : find_all(f, err);
    if (f->objects) cd_backend_cpu.close(f->objects);
    cd_machine_program_free(&f->where);
    cd_mem_free(f);
    return st;
}

/* Measures what starting a program and waiting for another device take, by chains of programs that
 * do nothing: the difference between a long and a short chain is free of what a pass costs once. */

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
        c->device[k] = machine_executor_device(&t->m->device[d[k]]);
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
