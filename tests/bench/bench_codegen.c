/* bench_codegen -- do programs of measure records compile, compute the right values, and take
 * the time that the records say?
 *
 *   bench_codegen TASKS FOLDER check|time PER_TASK [SKIP [FILES]] >table
 *
 * For every log in FOLDER, PER_TASK records spread over it. check: compared with the task's
 * unscheduled nest (only the last axis of reductions moved inwards), on the real shape. time: least
 * of several runs with one thread against the median of the record's repeats; cache written over
 * before each run where the record's time is above 3 ms, as TVM's measuring does. CFLAGS:
 * $CD_CFLAGS; $CD_KEEP keeps the sources. A line per program:
 *   log line status max_error seconds recorded flop peak
 * seconds are of the thread's own clock; peak is the GFLOP/s of multiply-adds reached meanwhile. */
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/core/core.h"
#include "base/io/io.h"
#include "features/program/program.h"
#include "profiler/codegen/codegen.h"
#include "profiler/codegen/code/code.h"

#define MOST     64
#define THREADS  2 /* at most: OMP_NUM_THREADS is set to it for check, 1 for time */
#define DIE(...) (fprintf(stderr, __VA_ARGS__), exit(1))

static const char *folder,
    *cflags =
        "-O2 -fvect-cost-model=dynamic -march=native -fno-math-errno -fno-trapping-math -fopenmp";
static cd_task_registry *tasks;
static cd_program *program;
static char dir[64];

typedef struct {
    size_t line;
    double recorded;
    bool ok;
    cd_codegen_code code;
    double seconds, error, peak;
    const char *status;
} item;

static double median(const double *v, uint32_t n) {
    double t[64];
    if (n > 64) n = 64;
    memcpy(t, v, n * sizeof *t);
    cd_sort_doubles(t, n);
    return n % 2 ? t[n / 2] : (t[n / 2 - 1] + t[n / 2]) / 2;
}

/* ---- one task's memory ---- */

static const cd_task *task;
/* Parameter k: its operator and the output of it. */
static const cd_te_op *op_of(uint32_t k) {
    return &task->dag->op[task->dag->tensor_op[task->dag->arg[k]]];
}
static cd_dtype type_of(uint32_t k) {
    return op_of(k)->dtype[task->dag->arg[k] - op_of(k)->first_tensor];
}
static float *arg[MOST], *want[MOST];
static int64_t arg_elements[MOST];

static void *memory(int64_t bytes) {
    void *p = NULL;
    if (posix_memalign(&p, 64, (size_t)(bytes > 0 ? bytes : 64))) DIE("no memory\n");
    return p;
}

static void fill(float *p, int64_t n, cd_dtype t, unsigned seed) {
    uint64_t s = seed * 0x9E3779B97F4A7C15ull + 1;
    for (int64_t k = 0; k < n; k++) {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        const float x = (float)((s >> 40) & 0xffff) / 65536.0f;
        if (t == CD_F32) p[k] = 2 * x - 1;
        else if (cd_expr_dtype_bytes(t) == 4) ((int *)p)[k] = (int)(8 * x);
        else if (cd_expr_dtype_bytes(t) == 8) ((int64_t *)p)[k] = (int64_t)(8 * x);
        else ((unsigned char *)p)[k] = (unsigned char)(2 * x);
    }
}

/* Arguments and scratch of a code; packs the weights. */
static void **bind(const cd_codegen_code *c, bool reference) {
    void **a = calloc(c->n_buffer + 1, sizeof *a);
    for (uint32_t k = 0; k < c->n_buffer; k++) {
        const int64_t bytes = c->buffer[k].bytes * (c->buffer[k].per_thread ? THREADS : 1);
        const cd_te_op *t = k < c->n_arg ? op_of(k) : NULL;
        if (t && t->is_placeholder && !c->buffer[k].n_digit) a[k] = arg[k];
        else if (t && reference) a[k] = want[k];
        else a[k] = memory(bytes);
        if (t && c->buffer[k].n_digit) {
            memset(a[k], 0, (size_t)c->buffer[k].bytes);
            cd_codegen_pack(&c->buffer[k], t->rank, t->shape, arg[k], a[k]);
        } else if (!t || !t->is_placeholder) {
            memset(a[k], 0x7f, (size_t)bytes);
        }
    }
    return a;
}

static void unbind(const cd_codegen_code *c, void **a) {
    for (uint32_t k = 0; k < c->n_buffer; k++)
        if (k >= c->n_arg || (a[k] != arg[k] && a[k] != want[k])) free(a[k]);
    free(a);
}

static double compare(const cd_codegen_code *c, void *const *a) {
    double worst = 0;
    for (uint32_t k = 0; k < c->n_arg; k++) {
        if (op_of(k)->is_placeholder) continue;
        const float *x = a[k], *y = want[k];
        double sum = 0;
        for (int64_t i = 0; i < arg_elements[k]; i++)
            if (fabsf(y[i]) < INFINITY) sum += (double)y[i] * (double)y[i];
        const double rms = sqrt(sum / (double)arg_elements[k]) + 1e-12;
        for (int64_t i = 0; i < arg_elements[k]; i++) {
            if (x[i] == y[i] || (isnan(x[i]) && isnan(y[i]))) continue;
            const double e = fabs((double)x[i] - (double)y[i]) / (fabs((double)y[i]) + rms);
            if (!(e <= worst)) worst = e == e ? e : (double)INFINITY;
        }
    }
    return worst;
}

/* ---- code ---- */

static cdmpp_status generate(const cd_record *r, const char *name, bool whole, cd_codegen_code *out,
                             cdmpp_err *err) {
    cd_nest n;
    cdmpp_status st = cd_program_lower_code(program, task, r, err);
    if (!st) st = cd_program_nest(program, &n, err);
    if (whole) n.pack = false;
    return st ? st : cd_codegen(&n, CD_DIALECT_C, name, out, err);
}

static bool compile(const char *stem, const char *flags, char *so, size_t n) {
    char cmd[1024];
    snprintf(so, n, "%s/%s.so", dir, stem);
    snprintf(cmd, sizeof cmd, "gcc %s -w -shared -fPIC -o %s %s/%s.c -lm", flags, so, dir, stem);
    return system(cmd) == 0;
}

static void write_source(const char *stem, const cd_codegen_code *const *code, size_t n) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s.c", dir, stem);
    FILE *f = fopen(path, "w");
    if (!f) DIE("cannot write %s\n", path);
    fputs(cd_codegen_prelude(CD_DIALECT_C), f);
    for (size_t k = 0; k < n; k++) fwrite(code[k]->text.p, 1, code[k]->text.n, f);
    fclose(f);
}

typedef void (*entry)(void *const *);

static char *flush_block;
static void flush(void) {
    const size_t n = (size_t)96 << 20;
    if (!flush_block) flush_block = memory((int64_t)n);
    for (size_t k = 0; k < n; k += 64) flush_block[k]++;
}

/* Multiply-adds of the machine at this moment, GFLOP/s: busy neighbours make it lower too. */
#define FMA(n) "vfmadd231ps %%zmm31, %%zmm31, %%zmm" #n "\n"
__attribute__((target("avx512f"))) static double peak(void) {
    __asm__ volatile("vpxord %%zmm31, %%zmm31, %%zmm31" ::: "xmm31");
    const double t = cd_clock_thread();
    for (int k = 0; k < 8000; k++)
        __asm__ volatile(FMA(0) FMA(1) FMA(2) FMA(3) FMA(4) FMA(5) FMA(6) FMA(7) FMA(8) FMA(9)
                             FMA(10) FMA(11)::
                                 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
                                   "xmm8", "xmm9", "xmm10", "xmm11");
    return 8000 * 12 * 32 / (cd_clock_thread() - t) / 1e9;
}
static double peak_seen;

static double seconds(entry f, void *const *a, double about) {
    double best = 1e30;
    peak_seen = 0;
    f(a);
    const bool cold = about > 3e-3;
    const int inner = cold ? 1 : about < 1e-4 ? (int)(2e-4 / about) + 1 : 1;
    const double until = cd_clock_thread() + (cold ? 1 : 0.15);
    for (int k = 0; k < (cold ? 5 : 400) && (k < 3 || cd_clock_thread() < until); k++) {
        if (cold) flush();
        const double t = cd_clock_thread();
        for (int i = 0; i < inner; i++) f(a);
        const double d = (cd_clock_thread() - t) / inner;
        if (d < best) best = d;
        const double p = k % 4 == 0 && __builtin_cpu_supports("avx512f") ? peak() : 0;
        if (p > peak_seen) peak_seen = p;
    }
    return best;
}

/* ---- a log ---- */

static entry symbol(void *so, const char *name) {
    union {
        void *p;
        entry f;
    } u = {dlsym(so, name)};
    return u.f;
}

/* The last axis of every reduction innermost: what it reads is in a row then, mostly. */
static void plain_order(cd_record_step *step, int32_t list[][64], cd_record *r) {
    const cd_te_dag *d = task->dag;
    for (uint32_t i = 0; i < d->n_op && r->n_step < MOST; i++) {
        const cd_te_op *o = &d->op[i];
        bool fixed = o->red && o->n_axis > 0 && o->n_axis + o->n_raxis < 64;
        for (uint32_t k = 0; k < o->n_raxis; k++)
            fixed = fixed && cd_expr_is_int(o->raxis[k].extent);
        if (!fixed) continue;
        int32_t *at = list[r->n_step];
        for (uint32_t k = 0; k < o->n_axis + o->n_raxis; k++)
            at[k] = (int32_t)(k + 1 < o->n_axis                ? k
                              : k + 1 < o->n_axis + o->n_raxis ? k + 1
                                                               : o->n_axis - 1);
        step[r->n_step++] = (cd_record_step){.kind = CD_RECORD_STEP_RE,
                                             .stage = (int32_t)i,
                                             .list = at,
                                             .n_list = o->n_axis + o->n_raxis};
    }
    r->step = step;
}

static bool reference(void) {
    static cd_record_step step[MOST];
    static int32_t list[MOST][64];
    cd_record r = {.n_cost = 0};
    plain_order(step, list, &r);
    cdmpp_err err = {0};
    cd_codegen_code code;
    char so[128];
    for (uint32_t k = 0; k < MOST; k++) arg[k] = want[k] = NULL;
    if (generate(&r, "ref", true, &code, &err))
        return fprintf(stderr, "reference: %s\n", err.msg), false;
    for (uint32_t k = 0; k < code.n_arg; k++) {
        const cd_te_op *t = op_of(k);
        arg_elements[k] = code.buffer[k].elements;
        float **p = t->is_placeholder ? &arg[k] : &want[k];
        *p = memory(code.buffer[k].bytes);
        if (t->is_placeholder) fill(*p, arg_elements[k], type_of(k), k + 1);
    }
    write_source("ref", (const cd_codegen_code *[]){&code}, 1);
    if (!compile("ref", "-O2 -march=native -ffp-contract=off", so, sizeof so)) return false;
    void *lib = dlopen(so, RTLD_NOW | RTLD_LOCAL);
    void **a = bind(&code, true);
    symbol(lib, "ref")(a);
    unbind(&code, a);
    dlclose(lib);
    cd_codegen_code_free(&code);
    return true;
}

/* The nest's shapes only, for timing. */
static void shapes(const cd_codegen_code *c) {
    for (uint32_t k = 0; k < c->n_arg; k++) {
        const cd_te_op *t = op_of(k);
        int64_t n = 1;
        for (uint32_t d = 0; d < t->rank; d++) n *= t->shape[d];
        arg_elements[k] = n;
        if (!t->is_placeholder || arg[k]) continue;
        arg[k] = memory(n * (int64_t)cd_expr_dtype_bytes(type_of(k)));
        fill(arg[k], n, type_of(k), k + 1);
    }
}

static void build(item *it, size_t n) {
    const cd_codegen_code *list[MOST];
    char so[128];
    size_t m = 0;
    for (size_t k = 0; k < n; k++)
        if (it[k].ok) list[m++] = &it[k].code;
    write_source("all", list, m);
    if (!m || compile("all", cflags, so, sizeof so)) return;
    for (size_t k = 0; k < n; k++)
        if (it[k].ok) it[k].ok = false, it[k].status = "compile";
}

static void run(item *it, size_t n, bool check) {
    char so[128], name[16];
    snprintf(so, sizeof so, "%s/all.so", dir);
    void *lib = dlopen(so, RTLD_NOW | RTLD_LOCAL);
    for (size_t k = 0; k < n && lib; k++) {
        if (!it[k].ok) continue;
        snprintf(name, sizeof name, "f%zu", k);
        shapes(&it[k].code);
        void **a = bind(&it[k].code, false);
        if (check) {
            symbol(lib, name)(a);
            it[k].error = compare(&it[k].code, a);
            it[k].status = it[k].error < 1e-3 ? "right" : "WRONG";
        } else {
            it[k].seconds = seconds(symbol(lib, name), a, it[k].recorded);
            it[k].peak = peak_seen;
            it[k].status = "timed";
        }
        unbind(&it[k].code, a);
    }
    if (lib) dlclose(lib);
}

static size_t split_lines(const char *p, size_t len, const char **line, size_t *size, size_t most) {
    size_t n = 0;
    for (size_t k = 0; k < len && n < most;) {
        const char *e = memchr(p + k, '\n', len - k);
        const size_t m = e ? (size_t)(e - (p + k)) : len - k;
        if (m && !cd_record_is_comment(p + k, m)) {
            line[n] = p + k;
            size[n++] = m;
        }
        k += m + 1;
    }
    return n;
}

static void one_log(const char *file, size_t per, bool check) {
    static const char *line[10000];
    static size_t size[10000];
    item it[MOST] = {0};
    char path[1024];
    cd_arena a = {0};
    cdmpp_err err = {0};
    char *text = NULL;
    size_t len = 0;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (cd_file_read(path, SIZE_MAX / 4, &text, &len, &err)) DIE("%s: %s\n", path, err.msg);
    const size_t n = split_lines(text, len, line, size, 10000), m = n < per ? n : per;
    task = NULL;
    for (size_t k = 0; k < m; k++) {
        cd_record r;
        char name[16];
        it[k].line = m == 1 ? n / 2 : k * (n - 1) / (m - 1);
        err = (cdmpp_err){0};
        if (cd_record_read(&a, line[it[k].line], size[it[k].line], &r, &err))
            DIE("%s: %s\n", path, err.msg);
        if (!task && !(task = cd_task_registry_find(tasks, r.workload_key)))
            DIE("%s: no task\n", path);
        if (k == 0 && check && !reference()) {
            printf("%s 0 reference 0 0 0 0\n", file);
            return;
        }
        it[k].recorded = median(r.cost_s, r.n_cost);
        snprintf(name, sizeof name, "f%zu", k);
        it[k].ok = !generate(&r, name, false, &it[k].code, &err);
        it[k].status = it[k].ok ? "built" : "REFUSED";
        if (!it[k].ok) fprintf(stderr, "%s:%zu: %s\n", file, it[k].line, err.msg);
    }
    build(it, m);
    run(it, m, check);
    for (size_t k = 0; k < m; k++) {
        printf("%s %zu %s %.3g %.4g %.4g %.4g %.4g\n", file, it[k].line, it[k].status, it[k].error,
               it[k].seconds, it[k].recorded, cd_task_flop(task), it[k].peak);
        if (it[k].code.text.p) cd_codegen_code_free(&it[k].code);
    }
    fflush(stdout);
    for (uint32_t k = 0; k < MOST; k++) free(arg[k]), free(want[k]), arg[k] = want[k] = NULL;
    cd_arena_free(&a);
    cd_mem_free(text);
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

int main(int argc, char **argv) {
    cdmpp_err err = {0};
    struct dirent **list;
    if (argc < 5) DIE("usage: bench_codegen TASKS FOLDER check|time PER_TASK [SKIP [FILES]]\n");
    setenv("OMP_NUM_THREADS", argv[3][0] == 'c' ? "2" : "1", 1);
    dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL); /* its threads outlive the programs */
    folder = argv[2];
    if (getenv("CD_CFLAGS")) cflags = getenv("CD_CFLAGS");
    snprintf(dir, sizeof dir, "%s",
             getenv("CD_KEEP") ? getenv("CD_KEEP") : "/tmp/bench_codegen.XXXXXX");
    if (!getenv("CD_KEEP") && !mkdtemp(dir)) DIE("no temporary folder\n");
    if (cd_task_registry_new(&tasks, &err) || cd_task_registry_load(tasks, argv[1], &err) ||
        cd_program_new(&program, &err))
        DIE("%s\n", err.msg);
    const size_t per = (size_t)atoi(argv[4]), skip = argc > 5 ? (size_t)atoi(argv[5]) : 0;
    const int n = scandir(folder, &list, NULL, by_name);
    const size_t most = argc > 6 ? (size_t)atoi(argv[6]) : SIZE_MAX;
    size_t done = 0;
    for (int k = 0; k < n; k++) {
        if (list[k]->d_name[0] == '.') continue;
        if (done >= skip && done - skip < most)
            one_log(list[k]->d_name, per < MOST ? per : MOST, argv[3][0] == 'c');
        done++;
    }
    return 0;
}
