/* Compilers that work, fail, crash, hang, are not there, and have no disk left. */
#include "check.h"
#include "made_code.h"
#include "tmp.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "features/task/task.h"
#include "profiler/backend/backend.h"
#include "profiler/host/host.h"

enum { MANY = 20 };
typedef struct {
    made_code made[MANY];
    cd_build b[MANY];
    size_t n;
} batch;

static void add(batch *t, const char *name, const char *body) {
    made_code_set(&t->made[t->n], name, 16, body);
    t->b[t->n] = (cd_build){.code = &t->made[t->n].code};
    t->n++;
}

static void done(batch *t) {
    for (size_t i = 0; i < t->n; i++) made_code_free(&t->made[i]);
    t->n = 0;
}

static cd_compiler *open_ok(const char *command, const char *cache) {
    cd_compiler *c = NULL;
    cdmpp_err err = {0};
    assert_ok(cd_compiler_open(
        &(cd_compiler_options){.command = command, .cache = cache, .isa = "native", .limit_s = 20},
        &c, &err));
    return c;
}

static void call(const cd_build *b, float *out) {
    float x[16], y[16];
    for (int i = 0; i < 16; i++) x[i] = (float)i, y[i] = 2 * (float)i, out[i] = -1;
    void *arg[] = {x, y, out};
    void *so = dlopen(b->object, RTLD_NOW | RTLD_LOCAL);
    if (!so) print_error("%s\n", dlerror());
    assert_non_null(so);
    union {
        void *object;
        void (*entry)(void *const *);
    } u = {dlsym(so, b->code->launch[0].entry)};
    assert_non_null(u.object);
    u.entry(arg);
    dlclose(so);
}

/* Twenty programs, three of them bad: each bad one alone fails, and says why. */
TEST(test_culprits) {
    static batch t;
    tmp_dir d = tmp_make();
    char name[32], body[64];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "p%d", i);
        snprintf(body, sizeof body,
                 i == 3               ? "nonsense here;"
                 : i == 11 || i == 12 ? "int x = ;"
                                      : "for (int i = 0; i < n; i++) c[i] = a[i] + %d * b[i];",
                 i);
        add(&t, name, body);
    }
    cdmpp_err err = {0};
    cd_compiler *c = open_ok("gcc", d.path);
    assert_ok(cd_compiler_build(c, t.b, t.n, 2, &err));
    for (int i = 0; i < MANY; i++) {
        const bool bad = i == 3 || i == 11 || i == 12;
        assert_int_equal(t.b[i].status, bad ? CDMPP_EBACKEND : CDMPP_OK);
        assert_int_equal(t.b[i].error_no, bad ? 2 : 0);
        if (bad) {
            assert_non_null(strstr(t.b[i].err.msg, "error:"));
            continue;
        }
        float out[16];
        call(&t.b[i], out);
        for (int k = 0; k < 16; k++) assert_close((double)out[k], (double)(k + i * 2 * k), 1e-6, 0);
    }
    /* The same again: nothing that worked is compiled a second time. */
    assert_ok(cd_compiler_build(c, t.b, t.n, 2, &err));
    for (int i = 0; i < MANY; i++) assert_int_equal(t.b[i].cached, t.b[i].status == CDMPP_OK);
    cd_compiler_close(c);
    c = open_ok("gcc", d.path); /* nor by another run */
    assert_ok(cd_compiler_build(c, t.b, 3, 2, &err));
    assert_true(t.b[0].cached && t.b[2].cached);
    float out[16];
    call(&t.b[2], out);
    assert_close((double)out[5], 25, 1e-6, 0);
    cd_compiler_close(c);
    done(&t);
    tmp_remove(&d);
}

/* Equal texts are one program. */
TEST(test_twice) {
    static batch t;
    cdmpp_err err = {0};
    cd_compiler *c = open_ok("gcc", "");
    for (int i = 0; i < 5; i++) add(&t, "same", i == 4 ? "other wrong;" : MADE_ADD);
    add(&t, "wrong", "int;;x");
    add(&t, "wrong", "int;;x");
    assert_ok(cd_compiler_build(c, t.b, t.n, 1, &err));
    for (int i = 0; i < 4; i++)
        assert_int_equal(t.b[i].status, CDMPP_OK),
            assert_string_equal(t.b[i].object, t.b[0].object);
    for (int i = 4; i < 7; i++) assert_int_equal(t.b[i].status, CDMPP_EBACKEND);
    assert_string_equal(t.b[5].err.msg, t.b[6].err.msg);
    float out[16];
    call(&t.b[3], out);
    assert_close((double)out[7], 21, 1e-6, 0);
    cd_compiler_close(c);
    done(&t);
}

/* A compiler made of shell: `body` sees the text of the unit in $text and its file in $out. */
static const char *fake(tmp_dir *d, const char *body) {
    char text[2048];
    const int n = snprintf(text, sizeof text,
                           "#!/bin/sh\n[ \"$1\" = --version ] && { echo fake 1.0; exit 0; }\n"
                           "all=\"$*\"; out=${all##*-o }; out=${out%%%% *}; text=$(cat)\n%s\n",
                           body);
    const char *path = tmp_put(d, "fakecc", text, (size_t)n);
    assert_int_equal(chmod(path, 0755), 0);
    return path;
}

TEST(test_crashing) {
    static batch t;
    tmp_dir d = tmp_make();
    cdmpp_err err = {0};
    /* Dies of every text with "crash" in it. */
    cd_compiler *c = open_ok(fake(&d, "case $text in *crash*) kill -SEGV $$ ;; *) printf '%s' "
                                      "\"$text\" | gcc -shared -fPIC -x c - -o $out -lm ;; esac"),
                             "");
    add(&t, "one", MADE_ADD);
    add(&t, "two", "c[0] = 0; /* crash */");
    add(&t, "three", MADE_ADD);
    assert_ok(cd_compiler_build(c, t.b, t.n, 1, &err));
    assert_int_equal(t.b[0].status, CDMPP_OK);
    assert_int_equal(t.b[1].error_no, 2);
    assert_non_null(strstr(t.b[1].err.msg, "signal 11"));
    assert_int_equal(t.b[2].status, CDMPP_OK);
    cd_compiler_close(c);
    done(&t);
    tmp_remove(&d);
}

TEST(test_hanging) {
    static batch t;
    tmp_dir d = tmp_make();
    cdmpp_err err = {0};
    cd_compiler *c = NULL;
    const cd_compiler_options o = {
        .command = fake(&d, "case $text in *hang*) sleep 100 ;; *) printf '%s' \"$text\" | gcc "
                            "-shared -fPIC -x c - -o $out -lm ;; esac"),
        .cache = "",
        .limit_s = 1};
    assert_ok(cd_compiler_open(&o, &c, &err));
    add(&t, "one", MADE_ADD);
    add(&t, "two", "c[0] = 0; /* hang */");
    assert_ok(cd_compiler_build(c, t.b, t.n, 1, &err));
    assert_int_equal(t.b[0].status, CDMPP_OK);
    assert_int_equal(t.b[1].error_no, 6);
    cd_compiler_close(c);
    done(&t);
    tmp_remove(&d);
}

TEST(test_absent) {
    cd_compiler *c = NULL;
    cdmpp_err err = {0};
    assert_status(
        cd_compiler_open(&(cd_compiler_options){.command = "/nosuch/cc", .cache = ""}, &c, &err),
        CDMPP_EBACKEND);
    assert_non_null(strstr(err.msg, "/nosuch/cc"));
    assert_status(
        cd_compiler_open(&(cd_compiler_options){.command = "false", .cache = ""}, &c, &err),
        CDMPP_EBACKEND);
    assert_status(cd_compiler_open(&(cd_compiler_options){.command = "  ", .cache = ""}, &c, &err),
                  CDMPP_EUSAGE);
}

/* The disk is full while the compiler writes: nobody's fault, and the run ends. */
TEST(test_full) {
    static batch t;
    tmp_dir d = tmp_make();
    cdmpp_err err = {0};
    cd_compiler *c = open_ok(
        fake(&d, "echo \"as: fatal error: can't write $out: No space left on device\" >&2; exit 1"),
        "");
    add(&t, "one", MADE_ADD);
    assert_status(cd_compiler_build(c, t.b, t.n, 1, &err), CDMPP_EIO);
    assert_non_null(strstr(err.msg, "no space left"));
    cd_compiler_close(c);
    c = open_ok("gcc", ""); /* and where no file may grow */
    struct rlimit old, small = {2048, 0};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const cdmpp_status st = cd_compiler_build(c, t.b, t.n, 1, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_true(st == CDMPP_EIO || (!st && t.b[0].error_no == 2));
    cd_compiler_close(c);
    done(&t);
    tmp_remove(&d);
}

TEST(test_isa) {
    cd_isa_choice c;
    cdmpp_err err = {0};
    assert_status(cd_isa_choose("avx3", "", &c, &err), CDMPP_EUSAGE);
    assert_non_null(strstr(err.msg, CD_ISAS));
    assert_status(cd_isa_choose("", "llvm -mcpu=nonsense", &c, &err), CDMPP_EBACKEND);
    assert_null(strstr(err.msg, "--isa")); /* not every caller has that option */
    assert_ok(cd_isa_choose("", "llvm", &c, &err));
    assert_string_equal(c.march, "-march=native");
    assert_ok(cd_isa_choose("sse2", "llvm -mcpu=skylake-avx512", &c, &err));
    assert_int_equal(c.isa, CD_ISA_SSE2);
#if defined(__x86_64__)
    assert_ok(cd_isa_choose(NULL, "llvm -keys=cpu -mcpu=x86-64 -num-cores=3", &c, &err));
    assert_string_equal(c.march, "-march=x86-64");
    assert_true(c.runs);
    assert_status(cd_isa_choose(NULL, "llvm -mcpu=quantum9", &c, &err), CDMPP_EBACKEND);
    assert_status(cd_isa_choose(NULL, "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72", &c, &err),
                  CDMPP_EBACKEND);
    assert_status(
        cd_isa_choose(NULL, "llvm -mtriple=armv7a-linux-gnueabihf -mattr=+neon", &c, &err),
        CDMPP_EBACKEND);
    assert_ok(cd_isa_choose("aarch64", "llvm", &c, &err));
    assert_false(c.runs);
    assert_ok(cd_isa_choose("armv7", "llvm", &c, &err));
    assert_false(c.runs);
#endif
    const uint32_t here = cd_isa_here() == CD_ISA_AVX512 ? 64
                          : cd_isa_here() == CD_ISA_AVX2 ? 32
                                                         : 16;
    const struct {
        const char *isa, *target;
        uint32_t bytes;
    } v[] = {{"avx512", "llvm", 64},
             {"avx2", "llvm -mcpu=znver4", 32},
             {"sse2", NULL, 16},
             {"aarch64", "llvm", 16},
             {"armv7", "llvm -mcpu=znver4", 16},
             {"native", "llvm", here},
             {NULL, "llvm", here},
             {"", NULL, here},
             {NULL, "llvm -mcpu=core-avx2", 32},
             {"", "llvm -mcpu=znver5", 64},
             {NULL, "llvm -mcpu=quantum9", 32},
             {"avx3", "llvm", 32}};
    for (size_t k = 0; k < sizeof v / sizeof *v; k++)
        assert_int_equal(cd_isa_vector_bytes(v[k].isa, v[k].target), v[k].bytes);
    const cd_str n = cd_target_option("llvm -mcpu=a -num-cores=3", "-num-cores");
    assert_int_equal(n.n, 1);
    assert_int_equal(n.p[0], '3');
    assert_int_equal(cd_target_option("llvm -mcpux=a", "-mcpu").n, 0);
}

TESTS(NULL, NULL, test_culprits, test_twice, test_crashing, test_hanging, test_absent, test_full,
      test_isa)
