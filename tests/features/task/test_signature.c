/* Signatures: what programs of a kind share, and what tells kinds apart. */
#include "features/task/task.h"

#include <string.h>

#include "check.h"
#include "prog.h"

#define PRODUCT(m, k, n, type, cast)                                                               \
    "\"ops\": [{\"name\": \"A\", \"shape\": [" #m ", " #k "], \"dtype\": \"" type "\"},"           \
    "{\"name\": \"B\", \"shape\": [" #k ", " #n "], \"dtype\": \"" type "\"},"                     \
    "{\"name\": \"P\", \"axis\": [[\"i\", 0, " #m "], [\"j\", 0, " #n                              \
    "]], \"reduce_axis\": [[\"k\", 0, " #k "]],"                                                   \
    "\"reduce\": \"sum\", \"body\": \"" cast "\"}], \"args\": [\"A\", \"B\", \"P\"]"
#define ONE(body)                                                                                  \
    "\"ops\": [{\"name\": \"A\", \"shape\": [64, 64], \"dtype\": \"float32\"},"                    \
    "{\"name\": \"E\", \"axis\": [[\"i\", 0, 64], [\"j\", 0, 64]], \"body\": \"" body              \
    "\"}], \"args\": [\"A\", \"E\"]"
#define WINDOW(body)                                                                               \
    "\"ops\": [{\"name\": \"A\", \"shape\": [64, 64], \"dtype\": \"float32\"},"                    \
    "{\"name\": \"W\", \"axis\": [[\"i\", 0, 16], [\"j\", 0, 16]], \"reduce_axis\": [[\"r\", 0, "  \
    "3]],"                                                                                         \
    "\"reduce\": \"max\", \"body\": \"" body "\"}], \"args\": [\"A\", \"W\"]"

static const char *const task[] = {
    PRODUCT(128, 64, 32, "float32", "A[i, k]*B[k, j]"),
    PRODUCT(1, 1000, 7, "float32", "A[i, k]*B[k, j]"),
    PRODUCT(128, 64, 32, "float16", "A[i, k]*B[k, j]"),
    PRODUCT(128, 64, 32, "int8", "A[i, k]*B[k, j]"),
    ONE("tir.exp(A[i, j])"),
    ONE("A[j, i]"),
    ONE("A[i // 2, j]"),
    ONE("A[i, j]*A[i, j]"),
    WINDOW("A[i + r, j]"),
    WINDOW("A[i*2 + r, j]"),
    WINDOW("A[i + r*2, j]"),
    WINDOW("A[i, j + r]"),
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
    assert_string_equal(
        text_of(f, SUM),
        "dtype float32; operator sum 2+1 * ir,ri; typed float32<float32 sum 2+1 * ir,ri");
    assert_string_equal(text_of(f, SUM), text_of(f, SUM_SMALL));
}

static void types_show(void **state) {
    fixture *f = *state;
    assert_string_equal(
        text_of(f, HALF),
        "dtype float16; operator sum 2+1 * ir,ri; typed float16<float16 sum 2+1 * ir,ri");
    assert_non_null(
        strstr(text_of(f, BYTE), "dtype int8; operator sum 2+1 * ir,ri; typed int8<int8"));
}

static void accesses_and_calls_show(void **state) {
    fixture *f = *state;
    assert_string_equal(text_of(f, PLAIN), "dtype float32; operator no reduction");
    assert_string_equal(text_of(f, EXP), "dtype float32; intrinsic exp; operator no reduction");
    assert_string_equal(text_of(f, TURNED),
                        "dtype float32; operator access permuted; operator no reduction");
    assert_string_equal(text_of(f, DIVIDED),
                        "dtype float32; operator access divided; operator no reduction");
    assert_non_null(strstr(text_of(f, SLIDE), "operator max 2+1 . +i"));
    assert_non_null(strstr(text_of(f, STRIDE), "operator max 2+1 . 2i"));
    assert_non_null(strstr(text_of(f, DILATE), "operator max 2+1 . ~i"));
    assert_non_null(strstr(text_of(f, ACROSS), "operator max 2+1 . i+"));
}

static void is(const char *ops, const char *want) {
    fixture f = {0};
    cdmpp_err err = {0};
    assert_ok(prog_tasks(&ops, 1, &f.tasks, &err));
    assert_string_equal(text_of(&f, 0), want);
    cd_task_registry_free(f.tasks);
    cd_arena_free(&f.a);
}

/* An index is a letter: of what it is a sum, and with what factors. */
static void indices_have_letters(void **state) {
    (void)state;
    is(WINDOW("A[5, r]"),
       "dtype float32; operator max 2+1 . cr; typed float32<float32 max 2+1 . cr");
    is(WINDOW("A[r*2, i*2]"),
       "dtype float32; operator max 2+1 . ts; typed float32<float32 max 2+1 . ts");
    is(WINDOW("A[2*r, 1*i]"),
       "dtype float32; operator max 2+1 . ti; typed float32<float32 max 2+1 . ti");
    is(WINDOW("A[i + j, r]"),
       "dtype float32; operator max 2+1 . fr; typed float32<float32 max 2+1 . fr");
    is(WINDOW("A[r + r*2, i]"),
       "dtype float32; operator max 2+1 . fi; typed float32<float32 max 2+1 . fi");
    is(WINDOW("A[40 - i, r]"),
       "dtype float32; operator max 2+1 . sr; typed float32<float32 max 2+1 . sr");
    is(WINDOW("A[i + 3, 40 - r]"),
       "dtype float32; operator max 2+1 . it; typed float32<float32 max 2+1 . it");
    is(WINDOW("A[i - r + 5, j]"),
       "dtype float32; operator max 2+1 . ~i; typed float32<float32 max 2+1 . ~i");
    is(WINDOW("A[i*2 + r*2, j]"),
       "dtype float32; operator max 2+1 . 2i; typed float32<float32 max 2+1 . 2i");
    is(WINDOW("A[(i + r)*2, j]"),
       "dtype float32; operator max 2+1 . 2i; typed float32<float32 max 2+1 . 2i");
    is(WINDOW("A[i // 1, r // 2]"),
       "dtype float32; operator max 2+1 . id; typed float32<float32 max 2+1 . id");
    is(WINDOW("A[i % 4, truncdiv(r, 2)]"),
       "dtype float32; operator max 2+1 . dd; typed float32<float32 max 2+1 . dd");
    is(WINDOW("A[truncmod(i, 4), min(r, 2)]"),
       "dtype float32; operator max 2+1 . dm; typed float32<float32 max 2+1 . dm");
    /* not linear decides over divided */
    is(WINDOW("A[i*j, min(i, r) + i // 2]"),
       "dtype float32; operator max 2+1 . mm; typed float32<float32 max 2+1 . mm");
    /* and what is read over both */
    is(WINDOW("A[i // 2 + int32(A[i, j]), r]"),
       "dtype float32; operator max 2+1 . gr; typed float32<float32 max 2+1 . gr");
    is(WINDOW("A[int32(int64(i)), r]"),
       "dtype float32; operator max 2+1 . ir; typed float32<float32 max 2+1 . ir");
}

#define TWO(body)                                                                                  \
    "\"ops\": [{\"name\": \"A\", \"shape\": [64], \"dtype\": \"float32\"}, {\"name\": \"B\", "     \
    "\"shape\": [64], \"dtype\": \"int8\"},"                                                       \
    "{\"name\": \"W\", \"axis\": [[\"i\", 0, 8]], \"reduce_axis\": [[\"r\", 0, 3]], " body         \
    "}], \"args\": [\"A\", \"B\", \"W\"]"

/* Of a sum: how it combines, the arithmetic of its terms, its reads in the order of their forms,
 * their types. */
static void reductions_show(void **state) {
    (void)state;
    is(TWO("\"reduce\": \"min\", \"body\": \"A[r]*A[i] - A[i + r]\""),
       "dtype float32; dtype int8; operator min 1+1 -* +,i,r; typed float32<float32 min 1+1 -* "
       "+,i,r");
    is(TWO("\"reduce\": {\"lhs\": [\"x\"], \"rhs\": [\"y\"], \"result\": [\"x*y\"], \"identity\": "
           "[\"1.0\"]}, \"body\": \"float32(B[r]) + A[i]*2\""),
       "dtype float32; dtype int8; intrinsic cast int8>float32; operator product 1+1 +* i,r; typed "
       "float32<int8+float32 product 1+1 +* i,r");
    is(TWO("\"reduce\": {\"lhs\": [\"x\"], \"rhs\": [\"y\"], \"result\": [\"x + y*y\"], "
           "\"identity\": [\"0.0\"]}, \"body\": \"A[r]\""),
       "dtype float32; dtype int8; operator fold1 1+1 . r; typed float32<float32 fold1 1+1 . r");
}

static void elements_show(void **state) {
    (void)state;
    is(ONE("select(i < 3, A[i, j], A[j, i])"),
       "dtype float32; operator access joined; operator access permuted; operator no reduction");
    is(ONE("select(i < 3, A[i, j], 0.0)"), "dtype float32; operator no reduction");
    is(ONE("if_then_else(i < 3, A[i, j], A[i, j + 1])"),
       "dtype float32; intrinsic if_then_else; operator access joined; operator no reduction");
    is(ONE("if_then_else(i < 3, A[i, j], 1.0)"),
       "dtype float32; intrinsic if_then_else; operator no reduction");
    is(ONE("call_pure_extern:float32('erf', A[i, j])"),
       "dtype float32; intrinsic call_pure_extern erf; operator no reduction");
    is(ONE("A[i*2 % 3, i + j]"),
       "dtype float32; operator access divided; operator access fused; operator no reduction");
    is(ONE("A[i*2, j]"), "dtype float32; operator access strided; operator no reduction");
    is(ONE("A[min(i, 3), j]"), "dtype float32; operator access other; operator no reduction");
    is(ONE("A[int32(A[i, j]), j]"),
       "dtype float32; operator access gathered; operator no reduction");
    is(ONE("A[i, i]"), "dtype float32; operator no reduction");
}

static void targets_show(void **state) {
    fixture *f = *state;
    const cd_hardware h = {.num_cores = 24};
    assert_non_null(
        strstr(text_for(f, PLAIN, "llvm -mcpu=core-avx2 -mattr=+avx2,+fma", &h),
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

TESTS(up, down, a_kind_has_no_extents, types_show, accesses_and_calls_show, indices_have_letters,
      reductions_show, elements_show, targets_show, marks_come_back)
