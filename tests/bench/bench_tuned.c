/* bench_tuned TASKS RECORDS [SECONDS [FINAL [MxNxK...]]] -- how fast are the programs of these
 * records beside OpenBLAS, in GFLOP/s of one thread: sgemm of 512x512x512, and of sizes given, in
 * turns with the programs.
 *
 * Rounds go over all programs that are left; after each the slower half goes, until FINAL (8) are
 * left, which are measured for SECONDS (5). Prints a line per program left: line of the file,
 * GFLOP/s, of its best over those of the best of 512x512x512, the same of the median of each round,
 * status of a comparison with the program of the unscheduled task. Fixes itself on the last
 * processor that it may use. Weights are packed where the record's layout rewrite option is 2. */
#include <cblas.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "base/io/io.h"
#include "features/program/program.h"
#include "profiler/backend/backend.h"
#include "profiler/codegen/code/code.h"
#include "profiler/codegen/codegen.h"

#define DIE(...) (fprintf(stderr, __VA_ARGS__), exit(1))
enum { MOST_ROUNDS = 2000, MOST_GEMM = 4 };

typedef struct {
    size_t line;
    cd_codegen_code code;
    cd_build build;
    cd_loaded *run;
    double best, error, round[MOST_ROUNDS];
    uint32_t n_round;
} item;

typedef struct {
    int m, n, k;
    float *a, *b, *c;
    double best, round[MOST_ROUNDS];
    uint32_t n_round;
} gemm;

static const cd_backend_kind *kind;
static cd_backend *backend;
static cd_task_registry *tasks;
static cd_program *program;
static const cd_task *task;
static cdmpp_err err;
static gemm gem[MOST_GEMM] = {{.m = 512, .n = 512, .k = 512}};
static int n_gem = 1;
static char target[512]; /* of the first record */

static void stay(void) {
    cpu_set_t set;
    size_t last = 0;
    sched_getaffinity(0, sizeof set, &set);
    for (size_t k = 0; k < CPU_SETSIZE; k++)
        if (CPU_ISSET(k, &set)) last = k;
    CPU_ZERO(&set);
    CPU_SET(last, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* ---- sgemm ---- */

static float *matrix(int64_t n) {
    void *p = NULL;
    if (posix_memalign(&p, 2 << 20, (size_t)n * 4)) DIE("no memory\n");
    cd_tensor_fill(CD_F32, 0, 0, (size_t)n, p);
    return p;
}

static void measure_gemm(gemm *g) {
    const double begin = cd_clock_wall();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, g->m, g->n, g->k, 1, g->a, g->k, g->b,
                g->n, 0, g->c, g->n);
    const double d = cd_clock_wall() - begin;
    if (d < g->best) g->best = d;
    if (g->n_round < MOST_ROUNDS) g->round[g->n_round++] = d;
}

static double gemm_flop(const gemm *g) { return 2.0 * g->m * g->n * g->k; }

/* ---- programs ---- */

/* Numbers of parameter k by its row-major place, packed as the code wants them. */
static void *content(const cd_codegen_code *c, uint32_t k) {
    const cd_te_op *op = &task->dag->op[task->dag->tensor_op[task->dag->arg[k]]];
    int64_t n = 1;
    for (uint32_t d = 0; d < op->rank; d++) n *= op->shape[d];
    float *plain = malloc((size_t)n * 4), *p = calloc(1, (size_t)c->buffer[k].bytes);
    cd_tensor_fill(CD_F32, k, 0, (size_t)n, plain);
    cd_codegen_pack(&c->buffer[k], op->rank, op->shape, plain, p);
    free(plain);
    return p;
}

static bool load(item *it) {
    const void *c[64] = {NULL};
    for (uint32_t k = 0; k < it->code.n_arg; k++) c[k] = content(&it->code, k);
    const cdmpp_status st = kind->load(backend, &it->build, c, &it->run, &err);
    for (uint32_t k = 0; k < it->code.n_arg; k++) free((void *)(uintptr_t)c[k]);
    return !st;
}

static void measure(item *it) {
    double s;
    if (kind->run(it->run, 1, &s, &err)) DIE("line %zu: %s\n", it->line, err.msg);
    if (s < it->best) it->best = s;
    if (it->n_round < MOST_ROUNDS) it->round[it->n_round++] = s;
}

static void generate(const cd_record *r, bool pack, item *it) {
    cd_nest n;
    char name[32];
    snprintf(name, sizeof name, "f%zu", it->line);
    if (cd_program_lower_code(program, task, r, &err) || cd_program_nest(program, &n, &err))
        DIE("line %zu: %s\n", it->line, err.msg);
    n.pack = n.pack && pack;
    if (cd_codegen(&n, CD_DIALECT_C, name, &it->code, &err))
        DIE("line %zu: %s\n", it->line, err.msg);
    it->build.code = &it->code;
    it->best = 1e30;
}

/* Greatest difference of the results from those of the unscheduled task, over their scale. */
static double compare(const item *it, const item *ref) {
    double worst = 0;
    for (uint32_t k = 0; k < it->code.n_arg; k++) {
        const size_t n = (size_t)it->code.buffer[k].elements;
        if (!it->code.buffer[k].written) continue;
        float *x = malloc(n * 4), *y = malloc(n * 4);
        double sum = 0;
        if (kind->read(it->run, k, x, n * 4, &err) || kind->read(ref->run, k, y, n * 4, &err))
            DIE("%s\n", err.msg);
        for (size_t i = 0; i < n; i++) sum += (double)y[i] * (double)y[i];
        for (size_t i = 0; i < n; i++)
            worst =
                fmax(worst, fabs((double)x[i] - (double)y[i]) / (sqrt(sum / (double)n) + 1e-12));
        free(x);
        free(y);
    }
    return worst;
}

/* ---- rounds ---- */

static void one_round(item **it, size_t n) {
    for (size_t k = 0; k < n; k++) {
        if (k % 8 == 0)
            for (int g = 0; g < n_gem; g++) measure_gemm(&gem[g]);
        measure(it[k]);
    }
}

static int by_best(const void *a, const void *b) {
    const item *x = *(item *const *)a, *y = *(item *const *)b;
    return (x->best > y->best) - (x->best < y->best);
}

static double median(double *v, uint32_t n) {
    cd_sort_doubles(v, n);
    return n ? v[n / 2] : 1e30;
}

static void print(item *it, gemm *g) {
    const double flop = cd_task_flop(task), top = gemm_flop(g) / g->best;
    printf("%6zu  %7.1f GFLOP/s best  %.3f of sgemm's  medians %.3f  error %.1e %s\n", it->line,
           flop / it->best / 1e9, flop / it->best / top,
           flop / median(it->round, it->n_round) / (gemm_flop(g) / median(g->round, g->n_round)),
           it->error, it->error < 1e-4 ? "right" : "WRONG");
}

static item **read_all(const char *path, size_t *n) {
    cd_arena a = {0};
    char *text = NULL;
    size_t len = 0, line = 0;
    item **it = NULL;
    if (cd_file_read(path, SIZE_MAX / 4, &text, &len, &err)) DIE("%s: %s\n", path, err.msg);
    for (char *p = text, *e; p < text + len && (e = memchr(p, '\n', len - (size_t)(p - text)));
         p = e + 1) {
        cd_record r;
        line++;
        if (e == p || cd_record_is_comment(p, (size_t)(e - p))) continue;
        if (cd_record_read(&a, p, (size_t)(e - p), &r, &err))
            DIE("%s:%zu: %s\n", path, line, err.msg);
        if (!it) snprintf(target, sizeof target, "%.*s -num-cores=1", (int)r.target.n, r.target.p);
        if (!task && !(task = cd_task_registry_find(tasks, r.workload_key)))
            DIE("%s: no task\n", path);
        it = realloc(it, (*n + 1) * sizeof *it);
        it[*n] = calloc(1, sizeof **it);
        it[*n]->line = line;
        generate(&r, true, it[(*n)++]);
    }
    return it;
}

/* Compiles all, loads those that can be; they come first. */
static size_t start(item **it, size_t n, item *ref) {
    cd_build *b = calloc(n + 1, sizeof *b);
    size_t m = 0;
    for (size_t k = 0; k < n; k++) b[k] = it[k]->build;
    b[n] = ref->build;
    const double begin = cd_clock_wall();
    if (kind->build(backend, b, n + 1, 2, &err)) DIE("%s\n", err.msg);
    fprintf(stderr, "%zu programs compiled in %.1f s\n", n, cd_clock_wall() - begin);
    ref->build = b[n];
    if (!load(ref)) DIE("reference: %s\n", err.msg);
    measure(ref);
    for (size_t k = 0; k < n; k++) {
        it[k]->build = b[k];
        if (b[k].status || !load(it[k]))
            fprintf(stderr, "line %zu: %s\n", it[k]->line, b[k].status ? b[k].err.msg : err.msg);
        else it[m++] = it[k];
    }
    free(b);
    return m;
}

static void prepare_gemm(void) {
    openblas_set_num_threads(1);
    for (int g = 0; g < n_gem; g++) {
        const int64_t m = gem[g].m, n = gem[g].n, k = gem[g].k;
        gem[g].a = matrix(m * k), gem[g].b = matrix(k * n), gem[g].c = matrix(m * n),
        gem[g].best = 1e30;
    }
}

static size_t contest(item **it, size_t n, size_t final, double seconds) {
    for (; n > final; n = n / 2 > final ? n / 2 : final) {
        one_round(it, n), one_round(it, n);
        qsort(it, n, sizeof *it, by_best);
    }
    for (int g = 0; g < n_gem; g++) gem[g].n_round = 0;
    for (size_t k = 0; k < n; k++) it[k]->n_round = 0;
    for (const double end = cd_clock_wall() + seconds; cd_clock_wall() < end;) one_round(it, n);
    qsort(it, n, sizeof *it, by_best);
    return n;
}

int main(int argc, char **argv) {
    size_t n = 0;
    item ref = {0};
    const cd_record none = {0};
    if (argc < 3) DIE("usage: bench_tuned TASKS RECORDS [SECONDS [FINAL [MxNxK...]]]\n");
    for (int k = 5; k < argc && n_gem < MOST_GEMM; k++)
        if (sscanf(argv[k], "%dx%dx%d", &gem[n_gem].m, &gem[n_gem].n, &gem[n_gem].k) == 3) n_gem++;
    if (cd_task_registry_new(&tasks, &err) || cd_task_registry_load(tasks, argv[1], &err) ||
        cd_program_new(&program, &err))
        DIE("%s\n", err.msg);
    item **it = read_all(argv[2], &n);
    if (!n) DIE("%s: no records\n", argv[2]);
    generate(&none, false, &ref);
    kind = cd_backend_find("cpu");
    if (kind->open("", target, &backend, &err)) DIE("%s\n", err.msg);
    n = start(it, n, &ref);
    stay();
    prepare_gemm();
    n = contest(it, n, argc > 4 ? (size_t)atoi(argv[4]) : 8, argc > 3 ? atof(argv[3]) : 5);
    for (int g = 0; g < n_gem; g++)
        printf("sgemm %dx%dx%d  %7.1f GFLOP/s best  %7.1f median\n", gem[g].m, gem[g].n, gem[g].k,
               gemm_flop(&gem[g]) / gem[g].best / 1e9,
               gemm_flop(&gem[g]) / median(gem[g].round, gem[g].n_round) / 1e9);
    for (size_t k = 0; k < n; k++) it[k]->error = compare(it[k], &ref), print(it[k], &gem[0]);
    return 0;
}
