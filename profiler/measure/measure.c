/* Compiles C programs here, in batches, and has each measured by the supervisor's worker. Compilers
 * are kept by target string, because targets may ask for different instructions; a target that
 * cannot be compiled for fails its own programs only. */
#include "profiler/measure/measure.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profiler/host/host.h"
#include "profiler/measure/measure_internal.h"

/* Compiles GPU programs ahead of their measurement. A compiler of GPU programs serves one call of a
 * process at a time (NVRTC), so that each compiler here is a process; none of them has a context of
 * the device, whose memory would be theirs. */

enum { TICK_MS = 100, MOST = 1 << 16, PROCESSES = 64 };

struct cd_prebuild {
    pid_t pid;
    int fd;
};

/* What a batch's compilers share: who takes which job, and what each took. */
typedef struct {
    atomic_uint next;
    double seconds[]; /* (n) */
} board;

typedef struct {
    void *bytes;
    size_t n;
} frame;

static size_t board_bytes(unsigned n) { return sizeof(board) + (n + 1) * sizeof(double); }

/* ---- one compiler ---- */
/* A compiler that hangs is ended by its alarm; what it has not done is left to the worker. */
static void compile(const frame *f, unsigned n, board *b) {
    cd_measure_worker w = {0};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    for (unsigned at; (at = atomic_fetch_add(&b->next, 1)) < n;) {
        cd_arena arena = {0};
        cd_job j;
        cdmpp_err err = {0};
        if (cd_worker_protocol_get(&arena, f[at].bytes, f[at].n, &j, &err)) break;
        (void)alarm(j.limit_s > 0 ? (unsigned)j.limit_s + 1 : 0);
        b->seconds[at] = cd_worker_prebuild(&w, &j);
        cd_buf_free(&j.code.text);
        cd_buf_free(&j.reference.text);
        cd_arena_free(&arena);
    }
    _exit(0);
}

static void compile_all(const frame *f, unsigned n, unsigned jobs, board *b) {
    pid_t pid[PROCESSES];
    unsigned begun = 0;
    if (jobs > PROCESSES) jobs = PROCESSES;
    for (; begun < jobs && begun < n; begun++) {
        pid[begun] = fork();
        if (pid[begun] == 0) compile(f, n, b);
        if (pid[begun] < 0) break;
    }
    for (unsigned k = 0; k < begun; k++)
        while (waitpid(pid[k], NULL, 0) < 0 && errno == EINTR) {
        }
}

/* ---- the process ---- */
/* The opener's next batch: its two numbers, then its jobs. False: the opener is gone, or memory is
 * short. */
static bool get_batch(int up, frame **f, unsigned head[2]) {
    const bool good = cd_worker_protocol_receive_into(up, head, 2 * sizeof *head);
    *f = good && head[0] <= MOST ? cd_mem_zalloc(head[0] + 1, sizeof **f) : NULL;
    if (!*f) return false;
    for (unsigned k = 0; k < head[0]; k++)
        if (!cd_worker_protocol_receive(up, &(*f)[k].bytes, &(*f)[k].n)) return false;
    return true;
}

static void prebuild_main(int up) {
    (void)setpgid(0, 0);
    /* while it waits for its compilers it does not look at the socket */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int k = 1; k < NSIG; k++) (void)signal(k, SIG_DFL);
    for (bool go = true; go;) {
        unsigned head[2] = {0};
        frame *f = NULL;
        go = get_batch(up, &f, head);
        board *b = go ? mmap(NULL, board_bytes(head[0]), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0)
                      : MAP_FAILED;
        go = b != MAP_FAILED;
        if (!go) break;
        compile_all(f, head[0], head[1], b);
        go = cd_worker_protocol_send(up, b->seconds, head[0] * sizeof(double));
        munmap(b, board_bytes(head[0]));
        for (unsigned k = 0; k < head[0]; k++) cd_mem_free(f[k].bytes);
        cd_mem_free(f);
    }
    _exit(0);
}

/* ---- opener ---- */
/* Errors: EIO (no process), ENOMEM. */
static cdmpp_status prebuild_open(cd_prebuild **out, cdmpp_err *err) {
    cd_prebuild *k = cd_mem_zalloc(1, sizeof *k);
    if (!k) return CD_FAIL(err, ENOMEM, "compilers of GPU programs");
    const cdmpp_status st = cd_supervisor_fork(prebuild_main, &k->pid, &k->fd, err);
    if (st) cd_mem_free(k);
    else *out = k;
    return st;
}

/* NULL is fine; kills and reaps.
 *
 * Killed: it may wait for a compiler. Its compilers die with it. */
static void prebuild_close(cd_prebuild *k) {
    if (!k) return;
    close(k->fd);
    kill(k->pid, SIGKILL);
    while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    cd_mem_free(k);
}

static cdmpp_status send_batch(const cd_prebuild *k, const cd_job *job, size_t n, int jobs,
                               cdmpp_err *err) {
    const unsigned head[2] = {(unsigned)n, (unsigned)jobs};
    bool sent = cd_worker_protocol_send(k->fd, head, sizeof head);
    for (size_t i = 0; i < n && sent; i++) {
        cd_buf b = {0};
        const cdmpp_status st = cd_worker_protocol_put(&b, &job[i], err);
        sent = !st && cd_worker_protocol_send(k->fd, b.p, b.n);
        cd_buf_free(&b);
        CD_TRY(st);
    }
    return sent ? CDMPP_OK : CD_FAIL(err, EIO, "the compilers' process is gone");
}

/* Compile n programs with at most `jobs` processes. (n) seconds: of compiling each; 0: not
 * compiled. Errors: EINTERRUPTED (*stop), EIO (the process is gone), ENOMEM. */
static cdmpp_status prebuild_run(cd_prebuild *k, const cd_job *job, size_t n, int jobs,
                                 double *seconds, const volatile sig_atomic_t *stop,
                                 cdmpp_err *err) {
    if (n > MOST) n = MOST;
    CD_TRY(send_batch(k, job, n, jobs, err));
    for (;;) {
        struct pollfd f = {k->fd, POLLIN, 0};
        if (stop && *stop) return CD_FAIL(err, EINTERRUPTED, "while programs were compiled");
        if (poll(&f, 1, TICK_MS) <= 0) continue;
        if (cd_worker_protocol_receive_into(k->fd, seconds, n * sizeof *seconds)) return CDMPP_OK;
        return CD_FAIL(err, EIO, "the compilers' process is gone");
    }
}

static pid_t prebuild_pid(const cd_prebuild *k) { return k->pid; }

/* a reference may take CHECK_LIMITS times the limit: it has no schedule */
enum { MAX_COMPILER = 16, CHECK_LIMITS = 5 };

/* One for each target string that came along: they ask for different instructions. */
typedef struct {
    char *target;
    cd_compiler *c; /* NULL: programs of that target cannot be compiled, see why */
    cdmpp_err why;
} tool;

struct cd_measure {
    cd_measure_options o;
    cd_supervisor *supervisor;
    cd_prebuild *prebuild;
    tool tool[MAX_COMPILER];
    size_t n_tool;
    double best_s;   /* noise_probe.h: the fastest loop that any worker saw */
    unsigned in_row; /* programs that failed, one after the other */
    int cpus;
    double until_s; /* of cd_clock_wall */
};

cdmpp_status cd_measure_open(const cd_measure_options *o, cd_measure **out, cdmpp_err *err) {
    if (o->backend && !cd_backend_find(o->backend))
        return CD_FAIL(err, EUSAGE, "expected a back end of %s, found '%.40s'", cd_backend_names(),
                       o->backend);
    cd_measure *m = cd_mem_zalloc(1, sizeof *m);
    if (!m) return CD_FAIL(err, ENOMEM, "measuring");
    m->o = *o;
    m->until_s = (double)INFINITY;
    m->cpus = cd_backend_cpu_threads("");
    if (m->o.jobs < 1) m->o.jobs = m->cpus;
    if (m->o.run_limit_s <= 0) m->o.run_limit_s = 10;
    cdmpp_status st = cd_supervisor_open(&m->supervisor, err);
    if (!st) st = prebuild_open(&m->prebuild, err);
    if (st) cd_measure_close(m);
    else *out = m;
    return st;
}

void cd_measure_close(cd_measure *m) {
    if (!m) return;
    /* the last one first: it has an end of the supervisor's socket */
    prebuild_close(m->prebuild);
    cd_supervisor_close(m->supervisor);
    for (size_t i = 0; i < m->n_tool; i++) {
        cd_compiler_close(m->tool[i].c);
        cd_mem_free(m->tool[i].target);
    }
    cd_mem_free(m);
}

void cd_measure_result_fail(cd_measure_result *out, int error_no, const cdmpp_err *why) {
    memset(out, 0, sizeof *out);
    out->status = why->code;
    out->error_no = error_no;
    out->err = *why;
    out->cycles = out->instructions = out->cache_misses = -1;
    out->at = (int64_t)time(NULL);
}

const char *cd_measure_isa(const cd_measure *m) { return m ? m->o.isa : NULL; }

/* ---- building ---- */
static const cd_backend_kind *kind_of(const cd_measure *m, const cd_measure_item *item) {
    const char *t = item->target ? item->target : "";
    return m->o.backend ? cd_backend_find(m->o.backend)
                        : cd_backend_for_target((cd_str){t, strlen(t)});
}

static cdmpp_status get_tool(cd_measure *m, const char *target, tool **out, cdmpp_err *err) {
    for (size_t i = 0; i < m->n_tool; i++)
        if (!strcmp(m->tool[i].target, target)) return *out = &m->tool[i], CDMPP_OK;
    /* the oldest one's objects may still be asked for: none goes */
    if (m->n_tool == MAX_COMPILER) {
        return CD_FAIL(err, EUNSUPPORTED, "more than %d different targets in one run",
                       MAX_COMPILER);
    }
    tool *t = &m->tool[m->n_tool];
    *t = (tool){.target = cd_mem_text(target)};
    if (!t->target) return CD_FAIL(err, ENOMEM, "target");
    m->n_tool++;
    const cd_compiler_options o = {.command = m->o.compiler,
                                   .flags = m->o.flags,
                                   .isa = m->o.isa,
                                   .target = t->target,
                                   .cache = m->o.cache,
                                   .cache_bytes = m->o.cache_bytes,
                                   .limit_s = m->o.build_limit_s,
                                   .stop = m->o.stop};
    *out = t;
    /* only programs of this target suffer */
    if (cd_isa_choose(m->o.isa, t->target, &(cd_isa_choice){0}, &t->why)) return CDMPP_OK;
    return cd_compiler_open(&o, &t->c, err);
}

/* Programs of one target among the items that are C and not built: their places in `at`. */
static size_t gather(const cd_measure *m, cd_measure_item *item, size_t n, const char *target,
                     bool reference, cd_build *b, size_t *at) {
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        const cd_codegen_code *code = reference ? item[i].reference : item[i].code;
        const cd_backend_kind *kind = kind_of(m, &item[i]);
        if (item[i].out.error_no || !code || code->dialect != CD_DIALECT_C || !kind) continue;
        /* The reference of a GPU's program is for this machine, whatever its target is. */
        const char *t = kind->dialect == CD_DIALECT_C ? (item[i].target ? item[i].target : "") : "";
        if (strcmp(t, target) != 0) continue;
        b[k] = (cd_build){.code = code};
        at[k++] = i;
    }
    return k;
}

static void take(cd_measure_item *item, const cd_build *b, bool reference, double share_s) {
    *(reference ? &item->reference_build : &item->build) = *b;
    if (!reference) item->out.build_s = share_s;
    if (b->status) {
        cd_measure_result_fail(&item->out, b->error_no ? b->error_no : 2, &b->err);
        item->out.build_s = share_s;
    }
}

/* One that the compiler made just now says that it works. What took too long says nothing. */
static cdmpp_status check_builds(cd_measure *m, const char *target, const cd_build *b, size_t n,
                                 cdmpp_err *err) {
    const cd_build *bad = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!b[i].status && !b[i].cached) return CDMPP_OK;
        if (b[i].status && b[i].error_no != 6) bad = &b[i];
    }
    const cd_machine_check_options o = {
        .measure = &m->o, .kind = &cd_backend_cpu, .target = target};
    return bad ? cd_machine_check(&o, &bad->err, err) : CDMPP_OK;
}

/* Build what is C and of this target; `reference`: the references of the items. The time is shared
 * out evenly. */
static cdmpp_status build_target(cd_measure *m, cd_measure_item *item, size_t n, const char *target,
                                 bool reference, cd_build *b, size_t *at, cdmpp_err *err) {
    tool *t;
    const size_t k = gather(m, item, n, target, reference, b, at);
    if (!k) return CDMPP_OK;
    CD_TRY(get_tool(m, target, &t, err));
    const double begin = cd_clock_wall();
    if (t->c && !cd_compiler_runs(t->c))
        (void)CD_FAIL(&t->why, EBACKEND, "%.100s makes programs that do not run here",
                      cd_compiler_text(t->c));
    if (t->why.code && m->o.isa && m->o.isa[0]) { /* then it is so for all programs */
        if (err) *err = t->why;
        return t->why.code;
    }
    if (t->why.code) {
        for (size_t i = 0; i < k; i++) cd_measure_result_fail(&item[at[i]].out, 2, &t->why);
        return CDMPP_OK;
    }
    cd_compiler_until(t->c, m->until_s);
    CD_TRY(cd_compiler_build(t->c, b, k, m->o.jobs, err));
    const double share_s = (cd_clock_wall() - begin) / (double)k;
    for (size_t i = 0; i < k; i++) take(&item[at[i]], &b[i], reference, share_s);
    return check_builds(m, target, b, k, err);
}

/* The worker's job. Only C programs get a fresh worker: opening a GPU's context takes too long to
 * do it for each program. */
static void fill_job(const cd_measure *m, const cd_measure_item *item, const cd_backend_kind *kind,
                     cd_job *j) {
    const bool cpu = kind->dialect == CD_DIALECT_C;
    *j = (cd_job){.backend = kind->name,
                  .device = m->o.device,
                  .target = item->target,
                  .fresh = cpu,
                  .pin = cpu && m->o.pin,
                  .memory_bytes = m->o.memory_bytes,
                  .best_s = m->best_s,
                  .timing = m->o.timing,
                  .code = *item->code,
                  .cache = m->o.cache,
                  .cache_bytes = m->o.cache_bytes};
    j->threads = item->threads > 0  ? item->threads
                 : m->o.threads > 0 ? m->o.threads
                                    : cd_backend_cpu_threads(item->target);
    j->check_s = item->reference ? CHECK_LIMITS * m->o.run_limit_s : 0;
    j->limit_s = m->o.run_limit_s + (cpu ? 0 : m->o.build_limit_s > 0 ? m->o.build_limit_s : 30);
    j->limit_s = fmin(j->limit_s, fmax(1e-3, m->until_s - cd_clock_wall()));
    j->object = cpu ? item->build.object : "";
    j->others_bytes = cpu ? item->others_bytes : 0;
    if (j->others_bytes) j->timing.cool = true;
    if (!item->reference) return;
    j->arg = item->arg;
    j->n_shape = item->arg ? item->code->n_arg : 0;
    j->reference = *item->reference;
    j->reference_object = item->reference_build.object;
}

/* GPU programs: several at a time, into the cache of binaries, where the worker finds them. */
static cdmpp_status prebuild(cd_measure *m, cd_measure_item *item, size_t n, cdmpp_err *err) {
    cd_job *job = cd_mem_zalloc(n + 1, sizeof *job);
    double *seconds = cd_mem_zalloc(n + 1, sizeof *seconds);
    size_t *at = cd_mem_zalloc(n + 1, sizeof *at), k = 0;
    cdmpp_status st = job && seconds && at ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", n);
    for (size_t i = 0; !st && i < n; i++) {
        const cd_backend_kind *kind = kind_of(m, &item[i]);
        if (!kind || kind->dialect == CD_DIALECT_C || item[i].out.error_no) continue;
        at[k] = i;
        fill_job(m, &item[i], kind, &job[k++]);
    }
    const bool keeps = !m->o.cache || m->o.cache[0];
    if (!st && k > 1 && m->o.jobs > 1 && keeps)
        st = prebuild_run(m->prebuild, job, k, m->o.jobs, seconds, m->o.stop, err);
    if (st == CDMPP_EIO) { /* its process is gone: the worker compiles */
        st = CDMPP_OK;
        if (err) *err = (cdmpp_err){0};
    }
    for (size_t i = 0; !st && i < k; i++) item[at[i]].out.build_s = seconds[i];
    cd_mem_free(job), cd_mem_free(seconds), cd_mem_free(at);
    return st;
}

void cd_measure_jobs(cd_measure *m, int jobs) { m->o.jobs = jobs < 1 ? 1 : jobs; }
void cd_measure_until(cd_measure *m, double until_s) { m->until_s = until_s; }
void cd_measure_run_limit(cd_measure *m, double seconds) { m->o.run_limit_s = seconds; }
double cd_measure_process_time(const cd_measure *m) {
    return cd_process_time_own() + cd_process_time_of(cd_supervisor_pid(m->supervisor)) +
           cd_process_time_of(prebuild_pid(m->prebuild));
}

/* One run of a compiler for each target, first the programs, then their references: those of GPU
 * programs are for this machine. */
cdmpp_status cd_measure_build(cd_measure *m, cd_measure_item *item, size_t n, cdmpp_err *err) {
    cd_build *b = cd_mem_zalloc(n + 1, sizeof *b);
    size_t *at = cd_mem_zalloc(n + 1, sizeof *at);
    cdmpp_status st = b && at ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", n);
    for (size_t i = 0; !st && i < n; i++) {
        const char *t = item[i].target ? item[i].target : "";
        bool before = false;
        for (size_t k = 0; k < i && !before; k++)
            before = !strcmp(item[k].target ? item[k].target : "", t);
        if (!before) st = build_target(m, item, n, t, false, b, at, err);
        if (!st && !before) st = build_target(m, item, n, t, true, b, at, err);
    }
    /* the references of GPU programs */
    if (!st) st = build_target(m, item, n, "", true, b, at, err);
    if (!st) st = prebuild(m, item, n, err);
    cd_mem_free(b);
    cd_mem_free(at);
    return st;
}

/* ---- running ---- */
/* The first of programs that fail one after the other, the second, the fourth ...: what breaks in a
 * run is found at once, and programs that fail for themselves cost little. */
static cdmpp_status check_run(cd_measure *m, const cd_measure_item *item,
                              const cd_backend_kind *kind, cdmpp_err *err) {
    const int no = item->out.error_no;
    const bool may_be = no == 2 || no == 3 || no == 4;
    if (!no) m->in_row = 0;
    if (!may_be) return CDMPP_OK;
    m->in_row++;
    if (m->in_row & (m->in_row - 1)) return CDMPP_OK;
    const cd_machine_check_options o = {.measure = &m->o,
                                        .kind = kind,
                                        .target = item->target ? item->target : "",
                                        .limit_s = m->o.run_limit_s +
                                                   (kind->dialect == CD_DIALECT_C ? 0
                                                    : m->o.build_limit_s > 0 ? m->o.build_limit_s
                                                                             : 30),
                                        .supervisor = m->supervisor};
    return cd_machine_check(&o, &item->out.err, err);
}

cdmpp_status cd_measure_run(cd_measure *m, cd_measure_item *item, cdmpp_err *err) {
    const cd_backend_kind *kind = kind_of(m, item);
    char target[512];
    cd_job j;
    cd_worker_result a;
    if (item->out.error_no) return CDMPP_OK;
    if (!kind) {
        cdmpp_err why = {0};
        (void)CD_FAIL(&why, EBACKEND, "no back end for target '%.60s' (%s)",
                      item->target ? item->target : "", cd_backend_names());
        cd_measure_result_fail(&item->out, 4, &why);
        return CDMPP_OK;
    }
    fill_job(m, item, kind, &j);
    /* Below, the number of threads is read from the target alone. */
    snprintf(target, sizeof target, "%.400s -num-cores=%d", item->target ? item->target : "",
             j.threads);
    if (item->threads > 0 || m->o.threads > 0) j.target = target;
    const double build_s = item->out.build_s;
    CD_TRY(cd_supervisor_do(m->supervisor, &j, &a, m->o.stop, err));
    if (a.measured.error_no == CD_ANSWER_NO_DEVICE) {
        if (err) *err = a.measured.err;
        return a.measured.status;
    }
    item->out = a.measured;
    item->out.build_s += build_s;
    if (item->build.cached) item->out.flags |= CD_MEASURE_CACHED;
    /* compiled ahead, by this run */
    else if (build_s > 0 && kind->dialect != CD_DIALECT_C) item->out.flags &= ~CD_MEASURE_CACHED;
    if (a.best_s > 0) m->best_s = a.best_s;
    return check_run(m, item, kind, err);
}

cdmpp_status cd_measure_one(cd_measure *m, cd_measure_item *item, cdmpp_err *err) {
    CD_TRY(cd_measure_build(m, item, 1, err));
    return cd_measure_run(m, item, err);
}
