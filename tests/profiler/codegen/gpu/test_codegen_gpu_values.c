/* Random GPU programs of small tasks compute what the task says: as CUDA C on emulated
 * threads (every barrier matters, see cudaemu.h), and as OpenCL C on PoCL where it is. */
#include <dlfcn.h>
#include <unistd.h>

#include "check.h"
#include "cudaemu.h"
#include "gpuprog.h"
#include "noopencl.h"
#include "profiler/backend/backend.h"
#include "profiler/codegen/codegen.h"
#include "tmp.h"

enum { MAX_PROGRAM = 256 };

/* ---- CUDA, emulated ---- */

typedef struct {
    cd_buf text;
    cd_codegen_code code[MAX_PROGRAM];
    unsigned n, at, made[MAX_PROGRAM]; /* number of each program */
    void *library;
    emu e;
    unsigned ran;
} emulated;

static cdmpp_status generate(void *ctx, const gp_program *p, cdmpp_err *err) {
    emulated *m = ctx;
    char name[32];
    snprintf(name, sizeof name, "p%u", m->n);
    if (m->n == MAX_PROGRAM) return CDMPP_OK;
    const cdmpp_status st = cd_codegen(p->nest, CD_DIALECT_CUDA, name, &m->code[m->n], err);
    if (st) return st == CDMPP_EREJECTED || st == CDMPP_EUNSUPPORTED ? CDMPP_OK : st;
    for (uint32_t k = 0; k < m->code[m->n].n_launch; k++) {
        const int64_t *b = m->code[m->n].launch[k].block;
        if (b[0] * b[1] * b[2] > EMU_THREADS) return cd_codegen_code_free(&m->code[m->n]), CDMPP_OK;
    }
    m->made[m->n] = p->number;
    cd_buf_put(&m->text, m->code[m->n].text.p, m->code[m->n].text.n);
    emu_stubs(&m->text, &m->code[m->n]);
    m->n++;
    return CDMPP_OK;
}

static cdmpp_status run_one(emulated *m, const gp_program *p, const cd_codegen_code *c,
                            bool backwards, cdmpp_err *err) {
    void **memory = gp_content(p, c);
    cdmpp_status st = CDMPP_OK;
    m->e.memory = memory;
    for (uint32_t k = 0; k < c->n_launch && !st; k++) {
        char name[160];
        snprintf(name, sizeof name, "%s_call", c->launch[k].entry);
        *(void **)(void *)&m->e.call = dlsym(m->library, name);
        if (!m->e.call) st = CD_FAIL(err, EBACKEND, "no %s", name);
        else if (!emu_launch(&m->e, &c->launch[k], backwards))
            st = CD_FAIL(err, ENUMERIC, "task %s, program %u: not all threads meet at a barrier",
                         p->task->workload_key, p->number);
    }
    if (!st) st = gp_compare(p, memory, err);
    if (st && getenv("CDMPP_SHOW")) {
        cd_buf b = {0};
        cd_ast_print(p->nest->ast, &b, &p->nest->names);
        print_message("%s\n%s\n", b.p, c->text.p);
        cd_buf_free(&b);
    }
    gp_free(memory, c);
    return st;
}

static cdmpp_status run_emulated(void *ctx, const gp_program *p, cdmpp_err *err) {
    emulated *m = ctx;
    if (m->at == m->n || m->made[m->at] != p->number) return CDMPP_OK;
    const cd_codegen_code *c = &m->code[m->at++];
    const cdmpp_status st = run_one(m, p, c, false, err);
    m->ran++;
    return st ? st : run_one(m, p, c, true, err);
}

static bool build_emulated(emulated *m, tmp_dir *d) {
    char command[600], source[256], library[256];
    snprintf(source, sizeof source, "%s", tmp_path(d, "k.cc"));
    snprintf(library, sizeof library, "%s", tmp_path(d, "k.so"));
    FILE *f = fopen(source, "w");
    fputs(emu_prelude, f);
    fputs(cd_codegen_prelude(CD_DIALECT_CUDA), f);
    fputs(m->text.p, f);
    fclose(f);
    snprintf(command, sizeof command, "g++ -w -O0 -ffp-contract=off -shared -fPIC -o %s %s",
             library, source);
    if (system(command)) return false;
    m->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!m->library) return false;
    *(void (**)(void))dlsym(m->library, "emu_sync") = emu_meet;
    m->e.thread_id = dlsym(m->library, "emu_thread");
    m->e.block_id = dlsym(m->library, "emu_block");
    return true;
}

static unsigned trials(unsigned usual) {
    const char *more = getenv("CDMPP_TRIALS"); /* a longer search, by hand */
    return more ? (unsigned)atoi(more) : usual;
}
static uint64_t seed(void) {
    return getenv("CDMPP_SEED") ? (uint64_t)atoi(getenv("CDMPP_SEED")) : 5;
}

typedef cdmpp_status each_fn(unsigned trials, uint64_t seed, gp_fn *fn, void *ctx, cdmpp_err *err);

/* Twice the same programs: their texts, then their runs. */
static unsigned emulate(each_fn *each, unsigned n) {
    emulated *m = calloc(1, sizeof *m);
    cdmpp_err err = {0};
    tmp_dir d = tmp_make();
    if (system("g++ --version >/dev/null 2>&1")) skip();
    m->e.stack = malloc((size_t)EMU_THREADS * EMU_STACK);
    assert_ok(each(n, seed(), generate, m, &err));
    assert_true(build_emulated(m, &d));
    assert_ok(each(n, seed(), run_emulated, m, &err));
    assert_int_equal(m->ran, m->n);
    const unsigned ran = m->ran;
    for (unsigned k = 0; k < m->n; k++) cd_codegen_code_free(&m->code[k]);
    dlclose(m->library);
    cd_buf_free(&m->text);
    free(m->e.stack);
    free(m);
    tmp_remove(&d);
    return ran;
}

TEST(test_emulated) { assert_true(emulate(gp_each, trials(1)) >= GP_TASKS); }

/* Steps of any kind: most programs have no threads, or none where they must be. */
TEST(test_odd) {
    const unsigned n = trials(1) * 4, ran = emulate(gp_each_odd, n);
    print_message("%u of %u programs have code\n", ran, n * GP_TASKS);
    assert_true(ran > n);
}

/* ---- OpenCL ---- */

static cdmpp_status opencl_program(cd_backend *b, const gp_program *p, const cd_codegen_code *c,
                                   cdmpp_err *err) {
    const cd_backend_kind *kind = &cd_backend_opencl;
    cd_build build = {.code = c};
    cd_loaded *l = NULL;
    double s = -1;
    void **memory = gp_content(p, c);
    cdmpp_status st = kind->build(b, &build, 1, 1, err);
    if (!st && build.status) *err = build.err, st = build.status;
    if (!st) st = kind->load(b, &build, (const void *const *)memory, &l, err);
    if (!st) st = kind->run(l, 3, &s, err); /* more than once: results must not pile up */
    if (!st && !(s > 0)) st = CD_FAIL(err, ENUMERIC, "a run of %g s", s);
    for (uint32_t k = 0; k < c->n_arg && !st; k++)
        st = kind->read(l, k, memory[k], (size_t)c->buffer[k].bytes, err);
    if (!st) st = gp_compare(p, memory, err);
    kind->unload(l);
    cd_mem_free(build.object);
    gp_free(memory, c);
    return st;
}

/* Compiling takes long: three of the tasks, unless CDMPP_OPENCL asks for all. */
static cdmpp_status run_opencl(void *ctx, const gp_program *p, cdmpp_err *err) {
    cd_codegen_code c;
    const bool some = !strcmp(p->task->workload_key, "1") || !strcmp(p->task->workload_key, "4") ||
                      !strcmp(p->task->workload_key, "10");
    if (!some && !getenv("CDMPP_OPENCL")) return CDMPP_OK;
    cdmpp_status st = cd_codegen(p->nest, CD_DIALECT_OPENCL, "p", &c, err);
    if (!st) st = opencl_program(ctx, p, &c, err);
    cd_codegen_code_free(&c);
    return st;
}

TEST(test_opencl) {
    cd_backend *b = NULL;
    cdmpp_err err = {0};
    SKIP_WITHOUT_OPENCL();
    assert_ok(cd_backend_opencl.open("", "", &b, &err));
    assert_ok(gp_each(getenv("CDMPP_OPENCL") ? trials(1) : 1, seed(), run_opencl, b, &err));
    assert_ok(cd_backend_opencl.flush(b, &err));
    cd_backend_opencl.close(b);
}

TESTS(NULL, NULL, test_emulated, test_odd, test_opencl)
