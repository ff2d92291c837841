/* made_template.h -- sums of products, and tasks that are none, for tests of templates. */
#ifndef MADE_TEMPLATE_H
#define MADE_TEMPLATE_H
#include "check.h"
#include "predictor/tune/template/template.h"
#include "prog.h"

#define T_IN(name, shape, more)                                                                    \
    "{\"name\": \"" name "\", \"shape\": " shape ", \"dtype\": \"float32\"" more "}"
#define T_WORDS(name, shape, more)                                                                 \
    "{\"name\": \"" name "\", \"shape\": " shape ", \"dtype\": \"int32\"" more "}"
#define T_OP(name, axis, more, body)                                                               \
    "{\"name\": \"" name "\", \"axis\": " axis more ", \"body\": \"" body "\"}"
#define T_SUM(axis) ", \"reduce_axis\": " axis ", \"reduce\": \"sum\""
#define T_TASK(ops) "\"ops\": [" ops "]"
#define T_DENSE(m, n, k)                                                                           \
    T_TASK(T_IN("A", "[" #m ", " #k "]", "") "," T_IN(                                             \
        "W", "[" #k ", " #n "]",                                                                   \
        ", \"layout_free\": true") "," T_OP("C", "[[\"i\", 0, " #m "], [\"j\", 0, " #n "]]",       \
                                            T_SUM("[[\"k\", 0, " #k "]]"),                         \
                                            "A[i, k]*W[k, j]") "," T_OP("D",                       \
                                                                        "[[\"i\", 0, " #m          \
                                                                        "], [\"j\", 0, " #n "]]",  \
                                                                        "", "max(C[i, j], 0.0)"))
#define T_HWC "[[\"h\", 0, 14], [\"w\", 0, 14], [\"c\", 0, 32]]"
#define T_PAD                                                                                      \
    T_IN("X", "[14, 14, 8]", "")                                                                   \
    "," T_OP("P", "[[\"h\", 0, 16], [\"w\", 0, 16], [\"r\", 0, 8]]", "",                           \
             "if_then_else(h >= 1 && h < 15 && w >= 1 && w < 15, X[h - 1, w - 1, r], 0.0)")
#define T_PAD32                                                                                    \
    T_IN("X", "[14, 14, 32]", "")                                                                  \
    "," T_OP("P", "[[\"h\", 0, 16], [\"w\", 0, 16], [\"r\", 0, 32]]", "",                          \
             "if_then_else(h >= 1 && h < 15 && w >= 1 && w < 15, X[h - 1, w - 1, r], 0.0)")
#define T_KERNEL "[[\"y\", 0, 3], [\"x\", 0, 3]"

enum {
    T_MM,
    T_GEMV,
    T_PRIME,
    T_CONV,
    T_BMM,
    T_DOT4,
    T_FITS,
    T_DEPTHWISE = T_FITS,
    T_POOL,
    T_MAX,
    T_TWO,
    T_CROOKED,
    T_ADD,
    T_INTEGER,
    T_TASKS
};

static const char *const made_templates[T_TASKS] = {
    T_DENSE(24, 40, 12),
    T_DENSE(1, 1000, 512),
    T_DENSE(37, 53, 31),
    T_TASK(T_PAD "," T_IN("W", "[3, 3, 8, 32]", ", \"layout_free\": true") "," T_OP(
        "C", T_HWC, T_SUM(T_KERNEL ", [\"r\", 0, 8]]"),
        "P[h + y, w + x, r]*W[y, x, r, c]") "," T_OP("D", T_HWC, "", "max(C[h, w, c], 0.0)")),
    T_TASK(T_IN("A", "[4, 16, 24]", "") "," T_IN("B", "[4, 32, 24]", "") "," T_OP(
        "C", "[[\"b\", 0, 4], [\"i\", 0, 16], [\"j\", 0, 32]]", T_SUM("[[\"k\", 0, 24]]"),
        "A[b, i, k]*B[b, j, k]")),
    T_TASK(T_WORDS("A", "[24, 12]", "") "," T_WORDS(
        "W", "[12, 40]",
        ", \"layout_free\": true") "," T_OP("C", "[[\"i\", 0, 24], [\"j\", 0, 40]]",
                                            T_SUM("[[\"k\", 0, 12]]"),
                                            "dot4:int32(A[i, k], W[k, j])") "," T_OP("D",
                                                                                     "[[\"i\", 0, "
                                                                                     "24], [\"j\", "
                                                                                     "0, 40]]",
                                                                                     "",
                                                                                     "float32(C[i, "
                                                                                     "j])")),
    T_TASK(T_PAD32 "," T_IN("W", "[3, 3, 32]", "") "," T_OP("C", T_HWC, T_SUM(T_KERNEL "]"),
                                                            "P[h + y, w + x, c]*W[y, x, c]")),
    T_TASK(T_PAD32 "," T_OP("C", T_HWC, T_SUM(T_KERNEL "]"), "P[h + y, w + x, c]")),
    T_TASK(T_IN("A", "[8, 8]", "") "," T_OP(
        "C", "[[\"i\", 0, 8], [\"j\", 0, 8]]",
        ", \"reduce_axis\": [[\"k\", 0, 8]], \"reduce\": \"max\"", "A[i, k]*A[k, j]")),
    T_TASK(T_IN("A", "[8, 8]", "") "," T_OP(
        "C", "[[\"i\", 0, 8], [\"j\", 0, 8]]", T_SUM("[[\"k\", 0, 8]]"),
        "A[i, k]*A[k, j]") "," T_OP("D", "[[\"i\", 0, 8]]", T_SUM("[[\"k\", 0, 8]]"),
                                    "C[i, k]*C[k, i]")),
    T_TASK(T_IN("A", "[8, 8]", "") "," T_OP("C", "[[\"i\", 0, 8], [\"j\", 0, 8]]",
                                            T_SUM("[[\"k\", 0, 8]]"), "A[i // 2, k]*A[k, j]")),
    T_TASK(T_IN("A", "[8, 8]", "") "," T_OP("C", "[[\"i\", 0, 8], [\"j\", 0, 8]]", "",
                                            "A[i, j]*A[j, i]")),
    T_TASK("{\"name\": \"A\", \"shape\": [8, 8], \"dtype\": \"int32\"}," T_OP(
        "C", "[[\"i\", 0, 8], [\"j\", 0, 8]]", T_SUM("[[\"k\", 0, 8]]"), "A[i, k]*A[k, j]")),
};

/* A processor of 8 lanes and 16 registers, small caches. */
static const cd_template_machine made_machine = {
    .vector_bytes = 32, .registers = 16, .l1_bytes = 8192, .l2_bytes = 65536, .threads = 1};

static inline cd_template_nest made_nest(const cd_task_registry *t, size_t k) {
    cd_template_nest n;
    cdmpp_err err = {0};
    assert_ok(cd_template_nest_read(cd_task_registry_at(t, k), false, &n, &err));
    return n;
}

static inline int up(void **state) {
    cdmpp_err err = {0};
    cd_task_registry *t;
    assert_ok(prog_tasks(made_templates, T_TASKS, &t, &err));
    *state = t;
    return 0;
}

static inline int down(void **state) {
    cd_task_registry_free(*state);
    return 0;
}
#endif
