/* A fault of the machine is not a failure of a program: what no program could do ends the run, what
 * one cannot do is its own. */
#include "check.h"
#include "made_code.h"
#include "tmp.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/host/host.h"
#include "profiler/measure/measure.h"

enum { N = 3 };

static tmp_dir dir;
static made_code made[N];
static cd_measure_item item[N];
static cdmpp_err err;

static cd_measure *open_with(const char *compiler, const char *cache) {
    static cd_measure_options o;
    cd_measure *m = NULL;
    o = (cd_measure_options){
        .backend = "cpu",
        .isa = "native",
        .compiler = compiler,
        .cache = cache,
        .jobs = 1,
        .threads = 1,
        .run_limit_s = 600,
        .build_limit_s = 600,
        .timing = {.budget_s = 300, .warmup_s = 0.001, .max_repeat = 3, .min_repeat_s = 0.0005}};
    assert_ok(cd_measure_open(&o, &m, &err));
    return m;
}

/* A compiler made of shell: `body` sees the text of the unit in $text and its file in $out. */
static const char *fake(const char *body) {
    char text[1024];
    const int n = snprintf(text, sizeof text,
                           "#!/bin/sh\n[ \"$1\" = --version ] && { echo fake 1.0; exit 0; "
                           "}\nall=\"$*\"; out=${all##*-o }; out=${out%%%% *}; text=$(cat)\n%s\n",
                           body);
    const char *path = tmp_put(&dir, "fakecc", text, (size_t)n);
    assert_int_equal(chmod(path, 0755), 0);
    return path;
}

static void programs(const char *const body[N]) {
    char name[16];
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "p%d", i);
        made_code_free(&made[i]);
        made_code_set(&made[i], name, 64, body[i]);
        item[i] = (cd_measure_item){.code = &made[i].code, .target = "llvm"};
    }
}

static const char *const good[N] = {MADE_ADD, MADE_ADD, MADE_ADD};

static int up(void **state) {
    (void)state;
    dir = tmp_make();
    return 0;
}

static int down(void **state) {
    (void)state;
    for (int i = 0; i < N; i++) made_code_free(&made[i]);
    tmp_remove(&dir);
    return 0;
}

static cdmpp_status all_of_it(cd_measure *m) {
    err = (cdmpp_err){0};
    cdmpp_status st = cd_measure_build(m, item, N, &err);
    for (int i = 0; !st && i < N; i++) st = cd_measure_run(m, &item[i], &err);
    cd_measure_close(m);
    return st;
}

static const char compiles[] = "printf '%s' \"$text\" | gcc -shared -fPIC -x c - -o $out -lm";

TEST(a_compiler_that_always_fails) {
    programs(good);
    assert_status(
        all_of_it(open_with(fake("echo 'cc1: error: licence expired' >&2; exit 1"), dir.path)),
        CDMPP_EBACKEND);
    assert_non_null(strstr(err.msg, "not even the smallest"));
    assert_non_null(strstr(err.msg, "licence expired"));
}

/* Objects that cannot be loaded: another machine's, or cut short. */
TEST(objects_that_do_not_load) {
    programs(good);
    assert_status(all_of_it(open_with(fake("echo nonsense >$out"), dir.path)), CDMPP_EBACKEND);
    assert_non_null(strstr(err.msg, "cannot load the object"));
}

/* As many set-ups of shared computers have their home folders. */
TEST(a_cache_that_runs_nothing) {
    char folder[300];
    programs(good);
    snprintf(folder, sizeof folder, "%.280s/noexec", dir.path);
    assert_int_equal(mkdir(folder, 0700), 0);
    if (mount("none", folder, "tmpfs", MS_NOEXEC, NULL) != 0) skip(); /* only root may */
    const cdmpp_status st = all_of_it(open_with("gcc", folder));
    assert_int_equal(umount(folder), 0);
    assert_status(st, CDMPP_EBACKEND);
    assert_non_null(strstr(err.msg, "cannot load the object"));
}

/* A program that the compiler refuses or that crashes fails alone, first or not, alone in its batch
 * or not. */
TEST(what_is_a_programs_own) {
    static const char *const bad[][N] = {
        {"*(volatile int *)8 = 1;", "__builtin_trap();", MADE_ADD},
        {MADE_ADD, "void abort(void); abort();", "*(volatile int *)8 = 1;"},
        {"nonsense;", "nonsense_too;", "more_nonsense;"},
        {"nonsense;", MADE_ADD, "__builtin_trap();"}};
    static const int number[][N] = {{4, 4, 0}, {0, 4, 4}, {2, 2, 2}, {2, 0, 4}};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        programs(bad[k]);
        assert_ok(all_of_it(open_with("gcc", dir.path)));
        for (int i = 0; i < N; i++) assert_int_equal(item[i].out.error_no, number[k][i]);
    }
}

/* A compiler that refuses some texts alone is no fault of the machine; one that breaks in the midst
 * of a run is found with the next program. */
TEST(in_the_midst_of_a_run) {
    char body[512];
    static const char *const mixed[N] = {MADE_ADD, "c[0] = 1; /* refuse_me */", MADE_ADD};
    programs(mixed);
    snprintf(body, sizeof body,
             "case $text in *refuse_me*) echo error: refused >&2; exit 1 ;; esac; [ -e "
             "%.200s/broken ] && exit 1; %s",
             dir.path, compiles);
    cd_measure *m = open_with(fake(body), "");
    assert_ok(cd_measure_build(m, &item[0], 1, &err));
    assert_ok(cd_measure_run(m, &item[0], &err));
    assert_ok(cd_measure_build(m, &item[1], 1, &err));
    assert_int_equal(item[1].out.error_no, 2);
    (void)tmp_put(&dir, "broken", "", 0);
    assert_status(cd_measure_build(m, &item[2], 1, &err), CDMPP_EBACKEND);
    cd_measure_close(m);
}

/* Instructions that were asked for by name, of another kind of processor: so it is for all
 * programs. */
TEST(instructions_of_another_processor) {
    cd_measure *m = NULL;
    programs(good);
    const cd_isa here = cd_isa_here();
    const cd_measure_options o = {.backend = "cpu",
                                  .isa = here == CD_ISA_AARCH64 ? "avx2" : "aarch64",
                                  .compiler = "gcc",
                                  .cache = "",
                                  .jobs = 1,
                                  .threads = 1};
    assert_ok(cd_measure_open(&o, &m, &err));
    assert_status(all_of_it(m), CDMPP_EBACKEND);
    assert_non_null(strstr(err.msg, "do not run here"));
}

TESTS(up, down, a_compiler_that_always_fails, objects_that_do_not_load, a_cache_that_runs_nothing,
      what_is_a_programs_own, in_the_midst_of_a_run, instructions_of_another_processor)
