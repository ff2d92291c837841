/* made_facts.h -- small tasks whose drawn programs tests execute access by access. */
#ifndef MADE_FACTS_H
#define MADE_FACTS_H
#include "made_space.h"
#include "features/analytic/analytic_internal.h"

#define MADE_IN(name, ...)                                                                         \
    "{\"name\": \"" name "\", \"shape\": [" #__VA_ARGS__ "], \"dtype\": \"float32\"}"

enum {
    MADE_F_MATMUL,
    MADE_F_MATMUL_RELU,
    MADE_F_CONV,
    MADE_F_DEPTHWISE,
    MADE_F_NORM,
    MADE_F_TRANSPOSE,
    MADE_F_RESHAPE,
    MADE_F_BATCH,
    MADE_F_STENCIL,
    MADE_F_ROWS,
    MADE_F_FLAT,
    MADE_F_TASKS
};

static const char *const made_facts[MADE_F_TASKS] = {
    MADE_MATMUL(16, 32, 24, ""),
    MADE_MATMUL(20, 24, 12, MADE_RELU(20, 24)),
    /* convolution with padding, stride 1; without padding, stride 2 */
    "\"ops\": [" MADE_IN("X", 1, 8, 8, 8) "," MADE_IN(
        "W", 3, 3, 8,
        16) ", {\"name\": \"P\", \"axis\": [[\"n\", 0, 1], [\"h\", 0, 10], [\"w\", 0, 10], [\"c\", "
            "0, 8]],"
            "\"body\": \"if_then_else(h >= 1 && h < 9 && w >= 1 && w < 9, X[n, h - 1, w - 1, c], "
            "0.0)\"}, {\"name\": \"C\", "
            "\"axis\": [[\"n\", 0, 1], [\"h\", 0, 8], [\"w\", 0, 8], [\"f\", 0, 16]], "
            "\"reduce_axis\": [[\"y\", 0, 3], [\"x\", 0, 3], [\"c\", 0, 8]],"
            "\"reduce\": \"sum\", \"body\": \"P[n, h + y, w + x, c]*W[y, x, c, f]\"}]",
    "\"ops\": [" MADE_IN("X", 1, 12, 12, 16) "," MADE_IN(
        "W", 3, 3, 16) ", {\"name\": \"D\", \"axis\": [[\"n\", 0, 1], [\"h\", 0, 5], [\"w\", 0, "
                       "5], [\"c\", 0, 16]],"
                       "\"reduce_axis\": [[\"y\", 0, 3], [\"x\", 0, 3]], \"reduce\": \"sum\", "
                       "\"body\": \"X[n, h*2 + y, w*2 + x, c]*W[y, x, c]\"},"
                       "{\"name\": \"R\", \"axis\": [[\"n\", 0, 1], [\"h\", 0, 5], [\"w\", 0, 5], "
                       "[\"c\", 0, 16]], \"body\": \"max(D[n, h, w, c], 0.0)\"}]",
    /* sums over rows, then divided by them */
    "\"ops\": [" MADE_IN("A", 24,
                         48) ", {\"name\": \"S\", \"axis\": [[\"i\", 0, 24]], \"reduce_axis\": "
                             "[[\"k\", 0, 48]], \"reduce\": \"sum\", \"body\": \"A[i, k]\"},"
                             "{\"name\": \"B\", \"axis\": [[\"i\", 0, 24], [\"j\", 0, 48]], "
                             "\"body\": \"A[i, j]/S[i]\"}]",
    "\"ops\": [" MADE_IN("A", 32, 48) ", {\"name\": \"T\", \"axis\": [[\"i\", 0, 48], [\"j\", 0, "
                                      "32]], \"body\": \"A[j, i] + 1.0\"}]",
    "\"ops\": [" MADE_IN("A", 32,
                         12) ", {\"name\": \"F\", \"axis\": [[\"i\", 0, 24], [\"j\", 0, 16]], "
                             "\"body\": \"A[(i*16 + j) // 12, (i*16 + j) % 12] + 1.0\"}]",
    "\"ops\": [" MADE_IN("A", 4, 16, 16) "," MADE_IN(
        "B", 4, 16,
        16) ", {\"name\": \"C\", \"axis\": [[\"b\", 0, 4], [\"i\", 0, 16], [\"j\", 0, 16]],"
            "\"reduce_axis\": [[\"k\", 0, 16]], \"reduce\": \"sum\", \"body\": \"A[b, i, k]*B[b, "
            "j, k]\"}]",
    /* neighbours in a row; elements of rows that lie apart */
    "\"ops\": [" MADE_IN("X", 20, 48) ", {\"name\": \"Y\", \"axis\": [[\"i\", 0, 20], [\"j\", 0, "
                                      "32]], \"body\": \"X[i, j] + X[i, j + 2] + X[i, j + 1]\"}]",
    "\"ops\": [" MADE_IN("X", 40,
                         64) ", {\"name\": \"Y\", \"axis\": [[\"i\", 0, 20], [\"j\", 0, 16]],"
                             "\"body\": \"X[i, j] + X[i, j + 16] + X[i, j + 32] + X[i + 20, j]\"}]",
    /* a variable that is divided here and whole there */
    "\"ops\": [" MADE_IN("A", 12, 32) "," MADE_IN(
        "B", 384) ", {\"name\": \"F\", \"axis\": [[\"i\", 0, 384]], \"body\": \"A[i // 32, i % "
                  "32]*B[383 - i]\"}]",
};

typedef struct {
    cd_task_registry *tasks;
    cd_program *program;
} made_facts_room;

static inline int made_facts_up(void **state) {
    static made_facts_room r;
    cdmpp_err err = {0};
    r = (made_facts_room){0};
    assert_ok(prog_tasks(made_facts, MADE_F_TASKS, &r.tasks, &err));
    assert_ok(cd_program_new(&r.program, &err));
    *state = &r;
    return 0;
}

static inline int made_facts_down(void **state) {
    made_facts_room *r = *state;
    cd_program_free(r->program);
    cd_task_registry_free(r->tasks);
    return 0;
}

/* fn(ctx, nest) for `n` draws of the task that are programs; returns how many. */
static inline size_t made_facts_draws(const made_facts_room *r, size_t task, bool gpu, uint64_t n,
                                      void (*fn)(void *ctx, const cd_nest *nest), void *ctx) {
    cdmpp_err err = {0};
    cd_sketch_space *sp = made_space(r->tasks, task, gpu);
    cd_sketch_sampler *s = made_sampler(sp, 7);
    size_t made = 0;
    for (uint64_t i = 0; i < n; i++) {
        cd_sketch_sample d;
        cd_nest nest;
        if (cd_sketch_sampler_draw(s, i, &d, &err)) continue;
        cd_record rec = made_record(&d);
        if (gpu) rec.target = (cd_str){"cuda", 4};
        if (gpu) rec.hardware = cd_target_hardware(true, 0, 0), rec.has_hardware = true;
        const cdmpp_status st =
            cd_program_lower(r->program, cd_task_registry_at(r->tasks, task), &rec, &err);
        if (gpu && (st == CDMPP_EREJECTED || st == CDMPP_EUNSUPPORTED)) continue;
        assert_ok(st);
        assert_ok(cd_program_nest(r->program, &nest, &err));
        fn(ctx, &nest);
        made++;
    }
    cd_sketch_sampler_free(s);
    cd_sketch_space_free(sp);
    return made;
}

static inline size_t made_facts_each(const made_facts_room *r, size_t task, uint64_t n,
                                     void (*fn)(void *ctx, const cd_nest *nest), void *ctx) {
    return made_facts_draws(r, task, false, n, fn, ctx);
}
#endif
