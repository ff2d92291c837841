/* bench_codegen_gpu -- how many GPU programs of a data set become running OpenCL code that is
 * right.
 *
 *   bench_codegen_gpu TASKS DEVICE N[:FROM] FOLDER...
 *
 * DEVICE: opencl_device.h, one that shares the host's memory ("pocl:0"). FOLDER: one device's logs.
 * Strata: the operators of a task (their names) times the folder; N programs are drawn from each,
 * at random over its lines. Programs that TVM refused (an error number, or the limits of the GPU)
 * are a table of their own. Every program runs in a process of its own, for 120 s of its own time
 * at most; how it is checked: gpublocks.h. Records that fail are appended to the file that
 * GPUCODE_FAILED names. Prints one line a program on standard error; after each round over the
 * strata, tables on standard output. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "base/core/core.h"
#include "features/program/program.h"
#include "gpublocks.h"
#include "profiler/codegen/gpu/gpu.h"

enum { MAX_STRATA = 1024, MAX_DRAW = 64, LIMIT_S = 120, MAX_REASON = 256 };

typedef struct {
    char name[160];
    uint64_t seen;
    unsigned n;
    char *line[MAX_DRAW];
} stratum;

typedef struct {
    cd_task_registry *tasks;
    const char *device;
    unsigned per;
    int numbers;
    FILE *failed; /* NULL: nobody wants them */
    stratum s[MAX_STRATA];
    unsigned n;
    struct {
        char text[120];
        unsigned n;
    } reason[MAX_REASON];
    unsigned n_reason;
    struct {
        unsigned n, compiled, right, unchecked;
    } sum[2]; /* those that TVM measured; those that it refused */
} rig;

/* What a child tells. */
typedef struct {
    bool refused, compiled, right, unchecked;
    char why[400];
    double run_s, build_s, worst, flop;
    long compared, blocks;
} verdict;

/* ---- drawing ---- */

static stratum *stratum_of(rig *r, const char *folder, const cd_task *t) {
    char name[160];
    size_t at = (size_t)snprintf(name, sizeof name, "%.20s", folder);
    for (uint32_t k = 0; k < t->dag->n_op; k++)
        if (!t->dag->op[k].is_placeholder && at < sizeof name)
            at += (size_t)snprintf(name + at, sizeof name - at, " %.24s", t->dag->op[k].name);
    for (unsigned k = 0; k < r->n; k++)
        if (!strcmp(r->s[k].name, name)) return &r->s[k];
    if (r->n == MAX_STRATA) return NULL;
    memcpy(r->s[r->n].name, name, sizeof name);
    return &r->s[r->n++];
}

/* A sample of fixed size of a stream: line i replaces a drawn one with probability n/i. */
static void draw(rig *r, stratum *s, const char *line) {
    const uint64_t i = s->seen++;
    if (s->n < r->per) {
        s->line[s->n++] = strdup(line);
        return;
    }
    const uint64_t k = cd_rng_at((uint64_t)(s - r->s) + 99, i) % (i + 1);
    if (k >= r->per) return;
    free(s->line[k]);
    s->line[k] = strdup(line);
}

static void read_log(rig *r, const char *folder, const char *path) {
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0;
    stratum *s = NULL;
    for (ssize_t n; f && (n = getline(&line, &cap, f)) > 0;) {
        cd_arena a = {0};
        cd_record rec;
        if (!s && !cd_record_read(&a, line, (size_t)n, &rec, NULL)) {
            const cd_task *t = cd_task_registry_find(r->tasks, rec.workload_key);
            if (t && t->dag) s = stratum_of(r, folder, t);
        }
        cd_arena_free(&a);
        if (s) draw(r, s, line);
    }
    free(line);
    if (f) fclose(f);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void read_folder(rig *r, const char *folder) {
    DIR *d = opendir(folder);
    char *name[4096], path[4096];
    size_t n = 0;
    const char *base = strrchr(folder, '/');
    for (const struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.' && n < sizeof name / sizeof *name) name[n++] = strdup(e->d_name);
    if (d) closedir(d);
    qsort(name, n, sizeof *name, by_name);
    for (size_t k = 0; k < n; k++) {
        snprintf(path, sizeof path, "%s/%s", folder, name[k]);
        read_log(r, base ? base + 1 : folder, path);
        free(name[k]);
    }
}

/* ---- one program ---- */

static void check(const rig *r, cd_program *p, const cd_task *task, const cd_record *rec,
                  verdict *v) {
    cd_nest nest;
    cd_rows rows;
    cd_codegen_code code = {0};
    cdmpp_err err = {0};
    gpublocks b = {
        .dag = task->dag, .numbers = r->numbers, .seed = 3, .nest = &nest, .code = &code};
    v->refused =
        rec->error_no != 0 || cd_program_build(p, task, rec, &rows, NULL) == CDMPP_EREJECTED;
    cdmpp_status st = cd_program_lower_code(p, task, rec, &err);
    if (!st) st = cd_program_nest(p, &nest, &err);
    if (!st) st = cd_codegen_gpu(&nest, CD_DIALECT_OPENCL, "p", &code, &err);
    if (!st) st = cd_backend_opencl.open(r->device, "", &b.device, &err);
    if (st) {
        snprintf(v->why, sizeof v->why, "code: %s", err.msg);
        return;
    }
    gb_check(&b);
    memcpy(v->why, b.why, sizeof v->why);
    v->unchecked = !strncmp(b.why, "not ", 4);
    v->compiled = strncmp(b.why, "compiler", 8) != 0;
    v->right = !b.why[0] && b.compared > 0;
    v->run_s = b.run_s, v->build_s = b.build_s, v->worst = b.worst, v->compared = b.compared,
    v->blocks = b.blocks;
    cd_codegen_code_free(&code);
    cd_backend_opencl.close(b.device);
}

/* Of the process's own time, whoever else uses the machine. */
static void limit(void) {
    const struct itimerval t = {.it_value = {.tv_sec = LIMIT_S}};
    setitimer(ITIMER_PROF, &t, NULL);
    alarm(10 * LIMIT_S);
}

static void child(const rig *r, const char *line, int out) {
    verdict v = {0};
    cd_arena a = {0};
    cd_record rec;
    cd_program *p = NULL;
    limit();
    if (!cd_record_read(&a, line, strlen(line), &rec, NULL) && !cd_program_new(&p, NULL))
        check(r, p, cd_task_registry_find(r->tasks, rec.workload_key), &rec, &v);
    if (write(out, &v, sizeof v) != (ssize_t)sizeof v) _exit(1);
    _exit(0);
}

static verdict run(const rig *r, const char *line) {
    int fd[2], status = 0;
    verdict v = {0};
    if (pipe(fd)) abort();
    const pid_t pid = fork();
    if (!pid) child(r, line, fd[1]);
    close(fd[1]);
    if (read(fd[0], &v, sizeof v) != (ssize_t)sizeof v) v = (verdict){.compiled = true};
    close(fd[0]);
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status))
        snprintf(v.why, sizeof v.why,
                 WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM ? "time-out"
                                                                            : "crash (signal %d)",
                 WTERMSIG(status));
    return v;
}

/* ---- tables ---- */

static void count_reason(rig *r, const verdict *v) {
    char kind[120];
    size_t n = 0;
    /* numbers and names apart, reasons are few */
    for (const char *p = v->why; *p && n + 1 < sizeof kind; p++)
        if (*p != '\n') kind[n++] = *p >= '0' && *p <= '9' ? '#' : *p;
    kind[n] = 0;
    char *is = strstr(kind, " is ");
    if (is) *is = 0;
    for (unsigned k = 0; k < r->n_reason; k++)
        if (!strcmp(r->reason[k].text, kind)) {
            r->reason[k].n++;
            return;
        }
    if (r->n_reason == MAX_REASON) return;
    memcpy(r->reason[r->n_reason].text, kind, sizeof kind);
    r->reason[r->n_reason++].n = 1;
}

static void tables(const rig *r) {
    static const char *const name[] = {"measured", "refused"};
    for (int k = 0; k < 2; k++)
        printf("%s by TVM: n=%u compiled %.1f %% right %.1f %% (not checked %u)\n", name[k],
               r->sum[k].n, r->sum[k].n ? 100.0 * r->sum[k].compiled / r->sum[k].n : 0,
               r->sum[k].n ? 100.0 * r->sum[k].right / r->sum[k].n : 0, r->sum[k].unchecked);
    for (unsigned k = 0; k < r->n_reason; k++)
        printf("%6u  %s\n", r->reason[k].n, r->reason[k].text);
}

static void one(rig *r, const stratum *s, unsigned k) {
    const verdict v = run(r, s->line[k]);
    const int g = v.refused;
    r->sum[g].n++;
    r->sum[g].compiled += v.compiled;
    r->sum[g].right += v.right;
    r->sum[g].unchecked += v.unchecked;
    if (!v.right) count_reason(r, &v);
    if (!v.right && r->failed) fputs(s->line[k], r->failed), fflush(r->failed);
    fprintf(stderr,
            "%s%s #%u: %s  build %.2f s, %ld blocks in %.4f s, %ld compared, off by %.1e %s\n",
            s->name, g ? " (refused)" : "", k, v.right ? "right" : "WRONG", v.build_s, v.blocks,
            v.run_s, v.compared, v.worst, v.why);
}

int main(int argc, char **argv) {
    static rig r;
    cdmpp_err err = {0};
    char text[600];
    if (argc < 5)
        return fprintf(stderr, "usage: bench_codegen_gpu TASKS DEVICE N[:FROM] FOLDER...\n"), 2;
    r.device = argv[2];
    r.per = (unsigned)atoi(argv[3]);
    if (r.per > MAX_DRAW) r.per = MAX_DRAW;
    const char *from = strchr(argv[3], ':'); /* the rounds before are another run's */
    r.numbers = gb_numbers_file();
    if (getenv("GPUCODE_FAILED")) r.failed = fopen(getenv("GPUCODE_FAILED"), "a");
    if (cd_task_registry_new(&r.tasks, &err) || cd_task_registry_load(r.tasks, argv[1], &err))
        return fprintf(stderr, "%s\n", cdmpp_err_format(&err, text, sizeof text)), 1;
    for (int k = 4; k < argc; k++) read_folder(&r, argv[k]);
    /* one of every stratum, then the next: a run that is cut short is a sample too */
    for (unsigned k = from ? (unsigned)atoi(from + 1) : 0; k < r.per; k++) {
        for (unsigned i = 0; i < r.n; i++)
            if (k < r.s[i].n) one(&r, &r.s[i], k);
        tables(&r);
        fflush(stdout);
    }
    return 0;
}
