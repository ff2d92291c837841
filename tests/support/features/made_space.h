/* made_space.h -- small tasks with their schedule spaces, schedules as texts. */
#ifndef MADE_SPACE_H
#define MADE_SPACE_H
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "prog.h"
#include "features/sketch/sketch.h"

#define MADE_MATMUL(m, n, k, tail)                                                                 \
    "\"ops\": [{\"name\": \"A\", \"shape\": [" #m ", " #k "], \"dtype\": \"float32\"},"            \
    "{\"name\": \"B\", \"shape\": [" #k ", " #n "], \"dtype\": \"float32\"},"                      \
    "{\"name\": \"C\", \"axis\": [[\"i\", 0, " #m "], [\"j\", 0, " #n                              \
    "]], \"reduce_axis\": [[\"k\", 0, " #k "]],"                                                   \
    "\"reduce\": \"sum\", \"body\": \"A[i, k]*B[k, j]\"}" tail "]"
#define MADE_RELU(m, n)                                                                            \
    ", {\"name\": \"D\", \"axis\": [[\"i\", 0, " #m "], [\"j\", 0, " #n                            \
    "]], \"body\": \"max(C[i, j], 0.0)\"}"

enum {
    MADE_MM,
    MADE_MM_RELU,
    MADE_LONG_SUM,
    MADE_SCALAR,
    MADE_POOL,
    MADE_ADD,
    MADE_MM_OTHER,
    MADE_MANY_SUMS,
    MADE_SPACES
};

#define MADE_SUM(k, before)                                                                        \
    ", {\"name\": \"s" #k "\", \"axis\": [[\"i\", 0, 4]], \"reduce_axis\": [[\"k\", 0, 4096]],"    \
    "\"reduce\": \"sum\", \"body\": \"A[i, k]" before "\"}"

static const char *const made_spaces[MADE_SPACES] = {
    MADE_MATMUL(96, 128, 64, ""),
    MADE_MATMUL(96, 128, 64, MADE_RELU(96, 128)),
    /* A long sum of few: rfactor, or threads of a block together. */
    "\"ops\": [{\"name\": \"A\", \"shape\": [4, 4096], \"dtype\": \"float32\"},"
    "{\"name\": \"S\", \"axis\": [[\"i\", 0, 4]], \"reduce_axis\": [[\"k\", 0, 4096]], \"reduce\": "
    "\"sum\", \"body\": \"A[i, k]\"}]",
    /* No axes at all. */
    "\"ops\": [{\"name\": \"A\", \"shape\": [64], \"dtype\": \"float32\"},"
    "{\"name\": \"S\", \"axis\": [], \"reduce_axis\": [[\"k\", 0, 64]], \"reduce\": \"max\", "
    "\"body\": \"A[k]\"}]",
    /* Pooling: padding that is no worth inlining, a reduction that is not tiled, a consumer; loops
     * of extent 1. */
    "\"ops\": [{\"name\": \"X\", \"shape\": [1, 14, 32], \"dtype\": \"float32\"},"
    "{\"name\": \"P\", \"axis\": [[\"n\", 0, 1], [\"h\", 0, 16], [\"c\", 0, 32]],"
    "\"body\": \"if_then_else(h >= 1 && h < 15, X[n, h - 1, c], 0.0)\"},"
    "{\"name\": \"S\", \"axis\": [[\"n\", 0, 1], [\"h\", 0, 8], [\"c\", 0, 32]], \"reduce_axis\": "
    "[[\"r\", 0, 2]],"
    "\"reduce\": \"sum\", \"body\": \"P[n, h*2 + r, c]\"},"
    "{\"name\": \"D\", \"axis\": [[\"n\", 0, 1], [\"h\", 0, 8], [\"c\", 0, 32]], \"body\": \"S[n, "
    "h, c]/2.0\"}]",
    /* Element by element. */
    "\"ops\": [{\"name\": \"X\", \"shape\": [6, 10], \"dtype\": \"float32\"},"
    "{\"name\": \"Y\", \"axis\": [[\"i\", 0, 6], [\"j\", 0, 10]], \"body\": \"X[i, j] + 1.0\"}]",
    /* The second in another shape. */
    MADE_MATMUL(80, 256, 240, MADE_RELU(80, 256)),
    /* More sketches than anyone wants. */
    "\"ops\": [{\"name\": \"A\", \"shape\": [4, 4096], \"dtype\": \"float32\"}" MADE_SUM(0, "")
        MADE_SUM(1, "*s0[i]") MADE_SUM(2, "*s1[i]") MADE_SUM(3, "*s2[i]") MADE_SUM(4, "*s3[i]")
            MADE_SUM(5, "*s4[i]") MADE_SUM(6, "*s5[i]") MADE_SUM(7, "*s6[i]") MADE_SUM(8, "*s7[i]")
                MADE_SUM(9, "*s8[i]") MADE_SUM(10, "*s9[i]") MADE_SUM(11, "*s10[i]") "]",
};

static const cd_hardware made_cpu = {
    .num_cores = 4, .vector_unit_bytes = 64, .cache_line_bytes = 64};

static inline cdmpp_status made_space_new(const cd_task_registry *t, size_t k, bool gpu,
                                          cd_sketch_space **out, cdmpp_err *err) {
    const cd_hardware hw = gpu ? cd_target_hardware(true, 0, 0) : made_cpu;
    return cd_sketch_space_new(cd_task_registry_at(t, k), &hw, gpu, out, err);
}

static inline cd_sketch_space *made_space(const cd_task_registry *t, size_t k, bool gpu) {
    cdmpp_err err = {0};
    cd_sketch_space *sp = NULL;
    assert_ok(made_space_new(t, k, gpu, &sp, &err));
    return sp;
}

static inline cd_sketch_sampler *made_sampler(const cd_sketch_space *sp, uint64_t seed) {
    cdmpp_err err = {0};
    cd_sketch_sampler *w = NULL;
    assert_ok(cd_sketch_sampler_new(sp, seed, &w, &err));
    return w;
}

static inline int made_spaces_up(void **state) {
    static cd_task_registry *t;
    cdmpp_err err = {0};
    assert_ok(prog_tasks(made_spaces, MADE_SPACES, &t, &err));
    *state = t;
    return 0;
}

static inline int made_spaces_down(void **state) {
    cd_task_registry_free(*state);
    return 0;
}

static inline cd_record made_record(const cd_sketch_sample *d) {
    return (cd_record){.n_step = d->n_step, .step = d->step};
}

static inline void made_text(const cd_sketch_sample *d, cd_buf *out) {
    const cd_record r = made_record(d);
    cdmpp_err err = {0};
    cd_buf_clear(out);
    assert_ok(cd_record_write_steps(out, &r, &err));
}

/* The choices of a draft, kept. */
static inline void made_keep(const cd_sketch_sample *d, cd_sketch_choices *out) {
    if (out->cap < d->n_choice) {
        cd_sketch_choices_free(out);
        out->p = cd_mem_alloc(d->n_choice * sizeof *out->p);
        out->cap = d->n_choice;
    }
    assert_non_null(out->p);
    memcpy(out->p, d->choice, d->n_choice * sizeof *out->p);
    out->n = d->n_choice;
}

/* A space with two samplers, of which the second must say what the first one says. */
typedef struct {
    cd_sketch_space *sp;
    cd_sketch_sampler *w, *other;
    cd_arena a;
    cd_buf one, two;
} room;

static inline room open_room(const cd_task_registry *t, size_t task, bool gpu) {
    cd_sketch_space *sp = made_space(t, task, gpu);
    return (room){.sp = sp, .w = made_sampler(sp, 7), .other = made_sampler(sp, 8)};
}

static inline void close_room(room *r) {
    cd_arena_free(&r->a);
    cd_buf_free(&r->one);
    cd_buf_free(&r->two);
    cd_sketch_sampler_free(r->w);
    cd_sketch_sampler_free(r->other);
    cd_sketch_space_free(r->sp);
}
#endif
