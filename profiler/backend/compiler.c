/* Compiles C programs with the host's compiler: looks each one up in the cache, cuts the others
 * into units, runs several compilers at a time, and halves units that fail. Texts of several
 * programs go through one compiler run because its start and the prelude cost as much as a small
 * program. */
#include "profiler/backend/backend.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/host/host.h"

/* PARTS: units of a process, at least, where there is text enough */
enum { MAX_ARG = 64, MAX_COMMAND = 8, MAX_MORE = 16, PARTS = 4 };
#define UNIT_TEXT  ((size_t)256 << 10) /* a unit's programs have no more text than this together */
#define LEAST_TEXT ((size_t)32 << 10)  /* less is not worth a run of the compiler of its own */
#define ASKING_S   20.0

struct cd_compiler {
    cd_arena arena; /* arguments, paths of objects */
    cd_object_cache *cache;
    cd_isa_choice isa;
    const char *command[MAX_COMMAND + 1]; /* "ccache", "gcc" */
    size_t n_command;
    const char *const *own; /* flags that only this kind of compiler knows, NULL at the end */
    const char *more[MAX_MORE + 1];
    size_t n_more;
    cd_buf text;   /* version and flags */
    cd_sha256 key; /* all that is equal for every program */
    double limit_s, until_s;
    unsigned n_unit; /* so far: names of files */
    const volatile sig_atomic_t *stop;
};

/* -O2: what is to be written out the generator writes out itself; gcc's -O3 takes twice as long and
 * gives programs that are no faster (median of 120 small ones 0.98 of -O3's time with vectors by
 * the same rules, of 110 of any size 1.00). What TVM's LLVM does too: fused multiply-add, no errno,
 * and nothing that changes the order of sums. */
static const char *const flags[] = {"-std=gnu11",
                                    "-O2",
                                    "-fPIC",
                                    "-w",
                                    "-pipe",
                                    "-ffp-contract=fast",
                                    "-fno-math-errno",
                                    "-fno-trapping-math",
                                    "-fno-semantic-interposition",
                                    "-fopenmp"};

/* gcc's -O2 alone makes vectors only where they cost nothing; clang's needs no word. The rest is
 * for the compiler's time, most of which programs with thousands of written-out statements take:
 * how far back it looks for what a load may find (1000 statements are its default), and passes that
 * gain these programs nothing. 0.63 of the time; the programs take a median of 0.995 of what they
 * took (120 of tasks under 30 MFLOP, 3 rounds: geometric mean 0.94, 90th percentile 1.02, worst
 * 1.25). */
static const char *const gcc_own[] = {
    "-fvect-cost-model=dynamic",          "--param",   "sccvn-max-alias-queries-per-access=64",
    "-fno-predictive-commoning",          "-fno-gcse", "-fno-tree-loop-distribution",
    "-fno-tree-loop-distribute-patterns", NULL};
static const char *const no_own[] = {NULL};

/* ---- opening ---- */
static const char *keep(cd_compiler *c, const char *s, size_t n) {
    char *p = cd_arena_alloc(&c->arena, n + 1, 1);
    if (!p) return NULL;
    memcpy(p, s, n);
    p[n] = 0;
    return p;
}

/* Words of "ccache gcc" to v, NULL at the end. */
static cdmpp_status split(cd_compiler *c, const char *what, const char *text, const char **v,
                          size_t max, size_t *count, cdmpp_err *err) {
    size_t k = 0;
    for (const char *p = text + strspn(text, " \t"); *p; p += strspn(p, " \t")) {
        const size_t n = strcspn(p, " \t");
        if (k == max)
            return CD_FAIL(err, EUSAGE, "%s: expected at most %zu words, found '%.80s'", what, max,
                           text);
        v[k] = keep(c, p, n);
        if (!v[k++]) return CD_FAIL(err, ENOMEM, "compiler");
        p += n;
    }
    v[k] = NULL;
    *count = k;
    return CDMPP_OK;
}

static cdmpp_status split_command(cd_compiler *c, const char *text, cdmpp_err *err) {
    CD_TRY(split(c, "compiler", text, c->command, MAX_COMMAND, &c->n_command, err));
    return c->n_command ? CDMPP_OK
                        : CD_FAIL(err, EUSAGE, "compiler: expected its name, found nothing");
}

/* Sets *missing, without an error, where there is no such program. */
static cdmpp_status ask_version(cd_compiler *c, bool *missing, cdmpp_err *err) {
    const char *argv[MAX_COMMAND + 2];
    char say[96];
    memcpy(argv, c->command, c->n_command * sizeof *argv);
    argv[c->n_command] = "--version";
    argv[c->n_command + 1] = NULL;
    cd_subprocess j = {.argv = argv, .limit_s = ASKING_S};
    cdmpp_status st = cd_subprocess_run(&j, 1, 1, c->stop, err);
    *missing = !st && j.end == CD_SPAWN_NOT_BEGUN;
    if (!st && (j.end != CD_SPAWN_EXITED || j.code != 0)) {
        st = CD_FAIL(err, EBACKEND, "the compiler '%.60s' does not answer: %s", c->command[0],
                     cd_subprocess_say(&j, say, sizeof say));
    } else if (!st) {
        cd_buf_clear(&c->text);
        cd_buf_put(&c->text, j.text.p ? j.text.p : "", j.text.p ? strcspn(j.text.p, "\n") : 0);
    }
    cd_buf_free(&j.text);
    return st;
}

/* Only compiled: the C library of another processor need not be here. */
static bool is_foreign(const cd_compiler *c) { return cd_isa_is_arm(c->isa.isa) && !c->isa.runs; }

static cdmpp_status find_compiler(cd_compiler *c, const char *asked, cdmpp_err *err) {
    static const char *const cross[][3] = {
        {"aarch64-linux-gnu-gcc", "clang --target=aarch64-linux-gnu", NULL},
        {"arm-linux-gnueabihf-gcc", "clang --target=arm-linux-gnueabihf", NULL}};
    const char *env = getenv("CC");
    const char *const one[] = {asked ? asked : env && env[0] ? env : "cc", NULL};
    const bool foreign = is_foreign(c) && !asked;
    cdmpp_status st = CDMPP_OK;
    bool missing = true;
    for (const char *const *p = foreign ? cross[c->isa.isa == CD_ISA_ARMV7] : one; *p && missing;
         p++) {
        CD_TRY(split_command(c, *p, err));
        st = ask_version(c, &missing, err);
        if (st == CDMPP_EINTERRUPTED || st == CDMPP_ENOMEM) return st;
    }
    return st;
}

/* "native" means another processor on another machine that shares the cache: the key must
 * differ. */
static void add_processor(cd_sha256 *h) {
    char line[8192];
    FILE *f = cd_cpuinfo_open("");
    while (f && fgets(line, sizeof line, f) && line[0] != '\n')
        if (!strncmp(line, "flags", 5) || !strncmp(line, "Features", 8) ||
            !strncmp(line, "model name", 10))
            cd_sha256_add(h, line, strlen(line));
    if (f) fclose(f);
}

static void set_key(cd_compiler *c) {
    const char *prelude = cd_codegen_prelude(CD_DIALECT_C);
    cd_sha256_init(&c->key);
    for (size_t i = 0; i < c->n_command; i++)
        cd_sha256_add(&c->key, c->command[i], strlen(c->command[i]) + 1);
    cd_sha256_add(&c->key, c->text.p, c->text.n + 1);
    if (c->isa.isa == CD_ISA_NATIVE) add_processor(&c->key);
    cd_sha256_add(&c->key, prelude, strlen(prelude) + 1);
}

static cdmpp_status set_up(cd_compiler *c, const cd_compiler_options *o, cdmpp_err *err) {
    CD_TRY(cd_isa_choose(o->isa, o->target, &c->isa, err));
    CD_TRY(find_compiler(c, o->command, err));
    if (c->text.oom) return CD_FAIL(err, ENOMEM, "compiler");
    c->own = strstr(c->text.p, "clang") ? no_own : gcc_own;
    cd_buf_puts(&c->text, ":");
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        cd_buf_putf(&c->text, " %s", flags[i]);
    for (const char *const *p = c->own; *p; p++) cd_buf_putf(&c->text, " %s", *p);
    cd_buf_putf(&c->text, " %s", c->isa.march);
    if (o->flags) CD_TRY(split(c, "flags", o->flags, c->more, MAX_MORE, &c->n_more, err));
    for (size_t i = 0; i < c->n_more; i++) cd_buf_putf(&c->text, " %s", c->more[i]);
    if (c->text.oom) return CD_FAIL(err, ENOMEM, "compiler");
    set_key(c);
    return cd_object_cache_open(o->cache, o->cache_bytes, &c->cache, err);
}

cdmpp_status cd_compiler_open(const cd_compiler_options *o, cd_compiler **out, cdmpp_err *err) {
    cd_compiler *c = cd_mem_zalloc(1, sizeof *c);
    if (!c) return CD_FAIL(err, ENOMEM, "compiler");
    c->limit_s = o->limit_s > 0 ? o->limit_s : 30;
    c->until_s = (double)INFINITY;
    c->stop = o->stop;
    const cdmpp_status st = set_up(c, o, err);
    if (st) cd_compiler_close(c);
    else *out = c;
    return st;
}

void cd_compiler_close(cd_compiler *c) {
    if (!c) return;
    cd_object_cache_close(c->cache);
    cd_buf_free(&c->text);
    cd_arena_free(&c->arena);
    cd_mem_free(c);
}

bool cd_compiler_runs(const cd_compiler *c) { return c->isa.runs; }
const char *cd_compiler_text(const cd_compiler *c) { return c->text.p; }

/* ---- one batch ---- */
typedef struct {
    cd_build *p;
    char key[CD_OBJCACHE_KEY];
} program;

/* Programs [beg, end) of the batch's list, one run of the compiler. */
typedef struct {
    size_t beg, end;
    cd_buf text;
    char file[CD_OBJCACHE_PATH];
    const char *argv[MAX_ARG];
} unit;

typedef struct {
    cd_compiler *c;
    program *list; /* (n) to be compiled, each text once */
    size_t n;
    unit *unit; /* (n_unit) of this round */
    size_t n_unit;
    int jobs;
} batch;

static void key_of(const cd_compiler *c, const cd_codegen_code *code, char key[CD_OBJCACHE_KEY]) {
    cd_sha256 h = c->key;
    cd_sha256_add(&h, code->text.p, code->text.n);
    cd_sha256_hex(&h, key);
}

static cdmpp_status give(cd_compiler *c, cd_build *p, const char *path, bool cached,
                         cdmpp_err *err) {
    union { /* the caller does not write to it */
        const char *text;
        void *object;
    } u = {keep(c, path, strlen(path))};
    if (!u.text) return CD_FAIL(err, ENOMEM, "path of an object");
    p->object = u.object;
    p->object_bytes = strlen(path) + 1;
    p->cached = cached;
    p->status = CDMPP_OK;
    p->error_no = 0;
    return CDMPP_OK;
}

/* Programs that are not in the cache, into b->list; a text that stands there already is not listed
 * again. */
static cdmpp_status list_missing(batch *b, cd_build *p, program *all, size_t n, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) {
        char path[CD_OBJCACHE_PATH];
        bool twice = false;
        all[i].p = &p[i];
        key_of(b->c, p[i].code, all[i].key);
        if (cd_object_cache_find(b->c->cache, all[i].key, path)) {
            CD_TRY(give(b->c, &p[i], path, true, err));
            continue;
        }
        for (size_t k = 0; k < b->n && !twice; k++) twice = !strcmp(b->list[k].key, all[i].key);
        if (!twice) b->list[b->n++] = all[i];
    }
    return CDMPP_OK;
}

static size_t size_of(const program *p) { return p->p->code->text.n; }

static int large_first(const void *a, const void *b) {
    const program *x = a, *y = b;
    return size_of(x) != size_of(y) ? (size_of(x) < size_of(y) ? 1 : -1) : strcmp(x->key, y->key);
}

/* At most CD_COMPILER_UNIT programs and UNIT_TEXT bytes, long texts first and alone: compile time
 * grows faster than the text, and others would wait for a long last unit. */
static void cut(batch *b) {
    const size_t jobs = b->jobs < 1 ? 1 : (size_t)b->jobs;
    size_t per = (b->n + jobs - 1) / jobs, text = 0, total = 0;
    if (per > CD_COMPILER_UNIT) per = CD_COMPILER_UNIT;
    for (size_t i = 0; i < b->n; i++) total += size_of(&b->list[i]);
    size_t share = total / (PARTS * jobs);
    if (share < LEAST_TEXT) share = LEAST_TEXT;
    if (share > UNIT_TEXT) share = UNIT_TEXT;
    qsort(b->list, b->n, sizeof *b->list, large_first);
    b->n_unit = 0;
    for (size_t i = 0; i < b->n; i++) {
        unit *u = b->n_unit ? &b->unit[b->n_unit - 1] : NULL;
        const size_t size = size_of(&b->list[i]);
        if (!u || u->end - u->beg >= per || text + size > share) {
            u = &b->unit[b->n_unit++];
            *u = (unit){.beg = i, .end = i};
            text = 0;
        }
        u->end++;
        text += size;
    }
}

static void fill_text(const batch *b, unit *u) {
    cd_buf_puts(&u->text, cd_codegen_prelude(CD_DIALECT_C));
    for (size_t i = u->beg; i < u->end; i++) {
        /* a line directive: messages of the compiler tell the program's own line */
        cd_buf_putf(&u->text, "\n# 1 \"%.16s\"\n", b->list[i].key);
        cd_buf_put(&u->text, b->list[i].p->code->text.p, b->list[i].p->code->text.n);
    }
}

static void fill_argv(cd_compiler *c, unit *u) {
    size_t n = 0;
    snprintf(u->file, sizeof u->file, "%s/unit%u.so", cd_object_cache_work(c->cache), c->n_unit++);
    for (size_t i = 0; i < c->n_command; i++) u->argv[n++] = c->command[i];
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) u->argv[n++] = flags[i];
    for (const char *const *p = c->own; *p; p++) u->argv[n++] = *p;
    if (c->isa.march[0]) u->argv[n++] = c->isa.march;
    for (size_t i = 0; i < c->n_more; i++) u->argv[n++] = c->more[i];
    u->argv[n++] = is_foreign(c) ? "-c" : "-shared";
    const char *const rest[] = {"-x", "c", "-", "-o", u->file, "-lm"};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) u->argv[n++] = rest[i];
    if (is_foreign(c)) n--; /* nothing is linked */
    u->argv[n] = NULL;
}

/* ---- how it went ---- */
static bool disk_full(const cd_subprocess *j) {
    static const char *const said[] = {"No space left on device", "File size limit exceeded",
                                       "Disk quota exceeded"};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (j->text.p && strstr(j->text.p, said[i])) return true;
    return j->end == CD_SPAWN_SIGNALED && j->code == SIGXFSZ;
}

/* The line that says what is wrong, not the ones that lead to it. */
static void first_error(const cd_subprocess *j, char *to, size_t n) {
    const char *p = j->text.p ? strstr(j->text.p, "error:") : NULL;
    while (p && p > j->text.p && p[-1] != '\n') p--;
    if (!p) p = j->text.p ? j->text.p : "";
    snprintf(to, n, "%.*s", (int)strcspn(p, "\n"), p);
}

static void blame(cd_build *p, const cd_subprocess *j) {
    char say[96], line[160];
    const bool late = j->end == CD_SPAWN_TIMED_OUT;
    first_error(j, line, sizeof line);
    p->error_no = late ? 6 : 2;
    p->status = CD_FAIL(&p->err, EBACKEND, "compiler: %s%s%s",
                        cd_subprocess_say(j, say, sizeof say), late ? "" : ": ", late ? "" : line);
}

static cdmpp_status enter(batch *b, const unit *u, cdmpp_err *err) {
    char path[CD_OBJCACHE_PATH];
    CD_TRY(cd_object_cache_seal(u->file, err));
    for (size_t i = u->beg; i < u->end; i++) {
        const program *q = &b->list[i];
        (void)cd_object_cache_put(b->c->cache, q->key, u->file);
        snprintf(path, sizeof path, "%s/%s.so", cd_object_cache_work(b->c->cache), q->key);
        if (link(u->file, path) != 0 && errno != EEXIST)
            return cd_err_at(err, CD_FAIL(err, EIO, "cannot link: %s", strerror(errno)), path, 0);
        CD_TRY(give(b->c, q->p, path, false, err));
    }
    unlink(u->file);
    return CDMPP_OK;
}

/* The unit's programs are done, or their halves wait in `next`. */
static cdmpp_status settle(batch *b, const unit *u, const cd_subprocess *j, unit *next,
                           size_t *n_next, cdmpp_err *err) {
    if (j->end == CD_SPAWN_EXITED && j->code == 0) return enter(b, u, err);
    if (j->end == CD_SPAWN_NOT_BEGUN)
        return CD_FAIL(err, EBACKEND, "compiler '%.60s': %s", b->c->command[0], strerror(j->code));
    unlink(u->file);
    if (disk_full(j))
        return cd_err_at(err, CD_FAIL(err, EIO, "no space left to compile"),
                         cd_object_cache_work(b->c->cache), 0);
    const size_t mid = u->beg + (u->end - u->beg) / 2;
    if (mid == u->beg) {
        blame(b->list[u->beg].p, j);
        return CDMPP_OK;
    }
    next[(*n_next)++] = (unit){.beg = u->beg, .end = mid};
    next[(*n_next)++] = (unit){.beg = mid, .end = u->end};
    return CDMPP_OK;
}

/* No compiler begins when the time is over: a fast one could be done before it is seen to be
 * late. */
static void leave_out(batch *b) {
    for (size_t i = 0; i < b->n_unit; i++)
        for (size_t k = b->unit[i].beg; k < b->unit[i].end; k++) {
            cd_build *p = b->list[k].p;
            p->error_no = 6;
            p->status = CD_FAIL(&p->err, EBACKEND, "not compiled: the time is over");
        }
}

/* Compile the units of this round; *n_next units are left for the next one. */
static cdmpp_status round_of(batch *b, cd_subprocess *job, unit *next, size_t *n_next,
                             cdmpp_err *err) {
    bool oom = false;
    *n_next = 0;
    for (size_t i = 0; i < b->n_unit; i++) {
        unit *u = &b->unit[i];
        fill_text(b, u);
        fill_argv(b->c, u);
        oom = oom || u->text.oom;
        /* a unit may take longer than one program, not as long as all */
        const double more = 1 + (double)(u->end - u->beg - 1) / 4;
        job[i] = (cd_subprocess){
            .argv = u->argv,
            .input = u->text.p,
            .n_input = u->text.n,
            .limit_s = fmin(more * b->c->limit_s, fmax(1e-3, b->c->until_s - cd_clock_wall()))};
    }
    cdmpp_status st = oom ? CD_FAIL(err, ENOMEM, "text of %zu programs", b->n) : CDMPP_OK;
    if (!st) st = cd_subprocess_run(job, b->n_unit, b->jobs, b->c->stop, err);
    for (size_t i = 0; i < b->n_unit; i++) {
        if (!st) st = settle(b, &b->unit[i], &job[i], next, n_next, err);
        cd_buf_free(&job[i].text);
        cd_buf_free(&b->unit[i].text);
    }
    return st;
}

/* A text that was listed for another program: the same answer. */
static cdmpp_status share(batch *b, const program *all, size_t n, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < b->n && !all[i].p->object && !all[i].p->status; k++) {
            const program *q = &b->list[k];
            if (q->p == all[i].p || strcmp(q->key, all[i].key) != 0) continue;
            if (q->p->object) CD_TRY(give(b->c, all[i].p, q->p->object, true, err));
            all[i].p->status = q->p->status;
            all[i].p->err = q->p->err;
            all[i].p->error_no = q->p->error_no;
        }
    return CDMPP_OK;
}

void cd_compiler_until(cd_compiler *c, double until_s) { c->until_s = until_s; }

/* Rounds: the units of one round that failed are the halves of the next. Both arrays of units have
 * room for all programs one by one. */
cdmpp_status cd_compiler_build(cd_compiler *c, cd_build *p, size_t n, int jobs, cdmpp_err *err) {
    program *all = cd_mem_zalloc(n + 1, 2 * sizeof *all);
    unit *units = cd_mem_zalloc(n + 1, 2 * sizeof *units), *next = units ? units + n + 1 : NULL;
    cd_subprocess *job = cd_mem_zalloc(n + 1, sizeof *job);
    batch b = {.c = c, .list = all ? all + n : NULL, .unit = units, .jobs = jobs};
    cdmpp_status st = all && units && job ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", n);
    for (size_t i = 0; i < n; i++) p[i].status = CDMPP_OK, p[i].object = NULL, p[i].error_no = 0;
    if (!st) st = list_missing(&b, p, all, n, err);
    if (!st) cut(&b);
    while (!st && b.n_unit && cd_clock_wall() < c->until_s) {
        unit *now = b.unit;
        size_t n_next;
        st = round_of(&b, job, next, &n_next, err);
        b.unit = next;
        b.n_unit = n_next;
        next = now;
    }
    if (!st) leave_out(&b);
    if (!st) st = share(&b, all, n, err);
    cd_mem_free(all);
    cd_mem_free(units);
    cd_mem_free(job);
    return st;
}
