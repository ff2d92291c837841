/* Signatures: what programs of a kind share, and what tells kinds apart. */
#include "features/task/task.h"

#include <string.h>

#include "check.h"
#include "prog.h"

#define PRODUCT(m, k, n, type, cast)                                                                                   \
    "\"ops\": [{\"name\": \"A\", \"shape\": [" #m ", " #k "], \"dtype\": \"" type "\"},"                               \
    "{\"name\": \"B\", \"shape\": [" #k ", " #n "], \"dtype\": \"" type "\"},"                                         \
    "{\"name\": \"P\", \"axis\": [[\"i\", 0, " #m "], [\"j\", 0, " #n "]], \"reduce_axis\": [[\"k\", 0, " #k "]],"     \
    "\"reduce\": \"sum\", \"body\": \"" cast "\"}], \"args\": [\"A\", \"B\", \"P\"]"
#define ONE(body)                                                                                                      \
    "\"ops\": [{\"name\": \"A\", \"shape\": [64, 64], \"dtype\": \"float32\"},"                                        \
    "{\"name\": \"E\", \"axis\": [[\"i\", 0, 64], [\"j\", 0, 64]], \"body\": \"" body "\"}], \"args\": [\"A\", \"E\"]"
#define WINDOW(body)                                                                                                   \
    "\"ops\": [{\"name\": \"A\", \"shape\": [64, 64], \"dtype\": \"float32\"},"                                        \
    "{\"name\": \"W\", \"axis\": [[\"i\", 0, 16], [\"j\", 0, 16]], \"reduce_axis\": [[\"r\", 0, 3]],"                  \
    "\"reduce\": \"max\", \"body\": \"" body "\"}], \"args\": [\"A\", \"W\"]"

static const char *const task[] = {
    PRODUCT(128, 64, 32, "float32", "A[i, k]*B[k, j]"), PRODUCT(1, 1000, 7, "float32", "A[i, k]*B[k, j]"),
    PRODUCT(128, 64, 32, "float16", "A[i, k]*B[k, j]"), PRODUCT(128, 64, 32, "int8", "A[i, k]*B[k, j]"),
    ONE("tir.exp(A[i, j])"), ONE("A[j, i]"), ONE("A[i // 2, j]"), ONE("A[i, j]*A[i, j]"),
    WINDOW("A[i + r, j]"), WINDOW("A[i*2 + r, j]"), WINDOW("A[i + r*2, j]"), WINDOW("A[i, j + r]"),
};
enum { SUM, SUM_SMALL, HALF, BYTE, EXP, TURNED, DIVIDED, PLAIN, SLIDE, STRIDE, DILATE, ACROSS };

typedef struct {
    cd_task_registry *tasks;
    cd_arena a;
} fixture;

static int up(void **state) {
    static fixture f;
    cdmpp_err err = {0};
    f = (fixture){0};
    *state = &f;
    assert_ok(prog_tasks(task, sizeof task / sizeof *task, &f.tasks, &err));
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    cd_task_registry_free(f->tasks);
    cd_arena_free(&f->a);
    return 0;
}

static const char *text_for(fixture *f, int k, const char *target, const cd_hardware *h) {
    cdmpp_err err = {0};
    cd_signature s;
    const char *text = "";
    const cd_task *t = cd_task_registry_at(f->tasks, (size_t)k);
    assert_non_null(t->dag);
    assert_ok(cd_signature_of(&f->a, t->dag, (cd_str){target, strlen(target)}, h, &s, &err));
    assert_ok(cd_signature_text(&f->a, &s, &text, &err));
    return text;
}

static const char *text_of(fixture *f, int k) { return text_for(f, k, "", NULL); }

static void a_kind_has_no_extents(void **state) {
    fixture *f = *state;
    assert_string_equal(text_of(f, SUM), "dtype float32; operator sum 2+1 * ir,ri; typed float32<float32 sum 2+1 * ir,ri");
    assert_string_equal(text_of(f, SUM), text_of(f, SUM_SMALL));
}

static void types_show(void **state) {
    fixture *f = *state;
    assert_string_equal(text_of(f, HALF), "dtype float16; operator sum 2+1 * ir,ri; typed float16<float16 sum 2+1 * ir,ri");
    assert_non_null(strstr(text_of(f, BYTE), "dtype int8; operator sum 2+1 * ir,ri; typed int8<int8"));
}

static void accesses_and_calls_show(void **state) {
    fixture *f = *state;
    assert_string_equal(text_of(f, PLAIN), "dtype float32; operator no reduction");
    assert_string_equal(text_of(f, EXP), "dtype float32; intrinsic exp; operator no reduction");
    assert_string_equal(text_of(f, TURNED), "dtype float32; operator access permuted; operator no reduction");
    assert_string_equal(text_of(f, DIVIDED), "dtype float32; operator access divided; operator no reduction");
    assert_non_null(strstr(text_of(f, SLIDE), "operator max 2+1 . +i"));
    assert_non_null(strstr(text_of(f, STRIDE), "operator max 2+1 . 2i"));
    assert_non_null(strstr(text_of(f, DILATE), "operator max 2+1 . ~i"));
    assert_non_null(strstr(text_of(f, ACROSS), "operator max 2+1 . i+"));
}

static void targets_show(void **state) {
    fixture *f = *state;
    const cd_hardware h = {.num_cores = 24};
    assert_non_null(strstr(text_for(f, PLAIN, "llvm -mcpu=core-avx2 -mattr=+avx2,+fma", &h),
                           "feature +avx2; feature +fma; operator no reduction; threads 24; vector 32"));
    assert_string_equal(text_for(f, PLAIN, "cuda -arch=sm_70", &h), text_of(f, PLAIN));
    assert_string_equal(text_for(f, PLAIN, "llvm", NULL), text_of(f, PLAIN));
}

static void marks_come_back(void **state) {
    fixture *f = *state;
    const char *p = text_of(f, EXP);
    cd_str mark;
    size_t n = 0;
    for (; cd_signature_next(&p, &mark); n++)
        if (n == 1) assert_true(cd_str_is(mark, "intrinsic exp"));
    assert_int_equal(n, 3);
}

TESTS(up, down, a_kind_has_no_extents, types_show, accesses_and_calls_show, targets_show, marks_come_back)
