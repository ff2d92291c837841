/* gpuprog.h -- small tasks with random GPU schedules: programs to generate code from,
 * inputs for them, and what they must compute. */
#ifndef GPUPROG_H
#define GPUPROG_H
#include <stdlib.h>

#include "base/core/core.h"
#include "lazyref.h"
#include "prog.h"
#include "profiler/codegen/gpu/gpu.h"
#include "profiler/records/records.h"
#include "randsched.h"

#define GP_IN(name, shape)                                                                         \
    "{\"name\": \"" name "\", \"shape\": [" shape "], \"dtype\": \"float32\"}"
static const char *const gp_task[] = {
    /* element-wise, a length that is prime */
    "\"ops\": [" GP_IN("A", "7, 37") ", {\"name\": \"B\", \"axis\": [[\"i\", 0, 7], [\"j\", 0, "
                                     "37]], \"body\": \"max(A[i, j], 0.0)\"}]",
    /* matmul, bias, relu */
    "\"ops\": [" GP_IN("A", "24, 36") "," GP_IN("B", "36, 40") "," GP_IN(
        "D", "40") ", {\"name\": \"C\", \"axis\": [[\"i\", 0, 24], [\"j\", 0, 40]],"
                   "\"reduce_axis\": [[\"k\", 0, 36]], \"reduce\": \"sum\", \"body\": \"A[i, "
                   "k]*B[k, j]\"},"
                   "{\"name\": \"E\", \"axis\": [[\"i\", 0, 24], [\"j\", 0, 40]], \"body\": "
                   "\"max(C[i, j] + D[j], 0.0)\"}]",
    /* convolution with a rim and a stride */
    "\"ops\": [" GP_IN("X", "2, 5, 9, 9") "," GP_IN(
        "W", "6, 5, 3, 3") ", {\"name\": \"P\", \"axis\": [[\"n\", 0, 2], [\"c\", 0, 5], [\"y\", "
                           "0, 11], [\"x\", 0, 11]],"
                           "\"body\": \"if_then_else(y >= 1 && y < 10 && x >= 1 && x < 10, X[n, c, "
                           "y - 1, x - 1], 0.0)\"},"
                           "{\"name\": \"Y\", \"axis\": [[\"n\", 0, 2], [\"f\", 0, 6], [\"y\", 0, "
                           "5], [\"x\", 0, 5]], \"reduce_axis\": [[\"c\", 0, 5], [\"ky\", 0, 3], "
                           "[\"kx\", 0, 3]],"
                           "\"reduce\": \"sum\", \"body\": \"P[n, c, y*2 + ky, x*2 + kx]*W[f, c, "
                           "ky, kx]\"}]",
    /* depthwise, then a residual sum */
    "\"ops\": [" GP_IN("X", "1, 8, 10, 10") "," GP_IN("W", "8, 3, 3") "," GP_IN(
        "R", "1, 8, 8, 8") ", {\"name\": \"Y\", \"axis\": [[\"n\", 0, 1], [\"c\", 0, 8], [\"y\", "
                           "0, 8], [\"x\", 0, 8]],"
                           "\"reduce_axis\": [[\"ky\", 0, 3], [\"kx\", 0, 3]], \"reduce\": "
                           "\"sum\", \"body\": \"X[n, c, y + ky, x + kx]*W[c, ky, kx]\"},"
                           "{\"name\": \"Z\", \"axis\": [[\"n\", 0, 1], [\"c\", 0, 8], [\"y\", 0, "
                           "8], [\"x\", 0, 8]], \"body\": \"Y[n, c, y, x] + R[n, c, y, x]\"}]",
    /* a long reduction of few elements: threads reduce together */
    "\"ops\": [" GP_IN("A",
                       "3, 211") ", {\"name\": \"B\", \"axis\": [[\"i\", 0, 3]], \"reduce_axis\": "
                                 "[[\"k\", 0, 211]], \"reduce\": \"sum\", \"body\": \"A[i, k]\"}]",
    /* softmax */
    "\"ops\": [" GP_IN("A",
                       "6, 50") ", {\"name\": \"M\", \"axis\": [[\"i\", 0, 6]], \"reduce_axis\": "
                                "[[\"k\", 0, 50]], \"reduce\": \"max\", \"body\": \"A[i, k]\"},"
                                "{\"name\": \"E\", \"axis\": [[\"i\", 0, 6], [\"j\", 0, 50]], "
                                "\"body\": \"exp(A[i, j] - M[i])\"},"
                                "{\"name\": \"S\", \"axis\": [[\"i\", 0, 6]], \"reduce_axis\": "
                                "[[\"k\", 0, 50]], \"reduce\": \"sum\", \"body\": \"E[i, k]\"},"
                                "{\"name\": \"O\", \"axis\": [[\"i\", 0, 6], [\"j\", 0, 50]], "
                                "\"body\": \"E[i, j]/S[i]\"}]",
    /* batches of products, one side transposed */
    "\"ops\": [" GP_IN("A", "3, 16, 20") "," GP_IN(
        "B", "3, 12, 20") ", {\"name\": \"C\", \"axis\": [[\"b\", 0, 3], [\"i\", 0, 16], [\"j\", "
                          "0, 12]],"
                          "\"reduce_axis\": [[\"k\", 0, 20]], \"reduce\": \"sum\", \"body\": "
                          "\"A[b, i, k]*B[b, j, k]\"}]",
    /* two kernels: a mean over windows, then a scale */
    "\"ops\": [" GP_IN(
        "X",
        "2, 6, 12, 12") ", {\"name\": \"S\", \"axis\": [[\"n\", 0, 2], [\"c\", 0, 6], [\"y\", 0, "
                        "6], [\"x\", 0, 6]], \"reduce_axis\": [[\"ky\", 0, 2], [\"kx\", 0, 2]],"
                        "\"reduce\": \"sum\", \"body\": \"X[n, c, y*2 + ky, x*2 + kx]\"}, "
                        "{\"name\": \"Y\", \"axis\": [[\"n\", 0, 2], [\"c\", 0, 6], [\"y\", 0, 6], "
                        "[\"x\", 0, 6]], \"body\": \"S[n, c, y, x]*0.25\"}]",
    /* the largest's place, and it: two results of one reduction. The place first, as TVM has it:
     * what is stored first is new already when the second is computed. */
    "\"ops\": [" GP_IN(
        "A",
        "4, 70") ", {\"name\": \"M\", \"axis\": [[\"i\", 0, 4]], \"reduce_axis\": [[\"k\", 0, 70]],"
                 "\"reduce\": {\"lhs\": [\"b\", \"a\"], \"rhs\": [\"d\", \"c\"], \"result\": "
                 "[\"select(a > c, b, select(a == c, min(b, d), d))\", \"max(a, c)\"],"
                 "\"identity\": [\"1000.0\", \"-10.0\"]}, \"body\": [\"float32(k)\", \"A[i, "
                 "k]\"]}]",
    /* places that only a quotient of a fused index tells: channels first to channels last */
    "\"ops\": [" GP_IN("X", "3, 6, 64") ", {\"name\": \"Y\", \"axis\": [[\"y\", 0, 6], [\"x\", 0, "
                                        "64], [\"c\", 0, 3]], \"body\": \"X[c, y, x]\"}]",
    /* two tensors become one; a seam that no power of two divides, and an operator after it */
    "\"ops\": [" GP_IN("A", "5, 67") "," GP_IN(
        "B",
        "5, 61") ", {\"name\": \"C\", \"axis\": [[\"i\", 0, 5], [\"j\", 0, 128]],"
                 "\"body\": \"if_then_else(67 <= j, B[i, j - 67], A[i, j])\"}, {\"name\": \"D\", "
                 "\"axis\": [[\"i\", 0, 5], [\"j\", 0, 128]], \"body\": \"max(C[i, j], 0.0)\"}]",
    /* a reshape, and the same backwards */
    "\"ops\": [" GP_IN("X", "6, 10, 14") ", {\"name\": \"F\", \"axis\": [[\"n\", 0, 840]], "
                                         "\"body\": \"X[n // 140, n % 140 // 14, n % 14]\"},"
                                         "{\"name\": \"Y\", \"axis\": [[\"i\", 0, 35], [\"j\", 0, "
                                         "24]], \"body\": \"F[i*24 + j] - F[839 - i*24 - j]\"}]",
};
enum { GP_TASKS = sizeof gp_task / sizeof *gp_task };

static const cd_hardware gp_gpu = {.num_cores = -1,
                                   .vector_unit_bytes = 16,
                                   .cache_line_bytes = 64,
                                   .max_shared_memory_per_block = 49152,
                                   .max_local_memory_per_block = INT32_MAX,
                                   .max_threads_per_block = 1024,
                                   .max_vthread_extent = 8,
                                   .warp_size = 32};

typedef struct {
    const cd_task *task;
    const cd_record *rec;
    const cd_nest *nest;
    unsigned number; /* counted over all programs */
} gp_program;

/* Exact in float, whatever the order of a sum. */
static inline double gp_number(const void *ctx, uint32_t tensor, int64_t element) {
    (void)ctx;
    return (double)(cd_rng_at(tensor, (uint64_t)element) % 7) - 3;
}

typedef cdmpp_status gp_fn(void *ctx, const gp_program *p, cdmpp_err *err);

/* Threads for stages that have none: the first loop of those that stand alone becomes blocks, the
 * next threads. */
static inline cdmpp_status gp_bind(randsched *r, cdmpp_err *err) {
    cdmpp_status st = rs_replay(r, true, err);
    for (uint32_t s = 0; !st && s < r->s.order.n; s++)
        for (int32_t it = 0; it < 2 && r->n < RS_MAX; it++) {
            const cd_schedule_stage *stage = &r->s.stage[r->s.order.p[s]];
            if (stage->attach != CD_SCHEDULE_AT_ROOT || stage->axes.n <= (uint32_t)it) continue;
            r->step[r->n++] = (cd_record_step){
                .kind = CD_RECORD_STEP_AN, .stage = (int32_t)s, .i = {it, it ? 6 : 5}};
            if (rs_replay(r, true, NULL)) r->n--;
            if ((st = rs_replay(r, true, err))) break;
        }
    return st;
}

/* fn for `trials` schedules of every task made of any steps, on threads too, that lower. What code
 * is generated from them is right or refused. */
static inline cdmpp_status gp_each_odd(unsigned trials, uint64_t seed, gp_fn *fn, void *ctx,
                                       cdmpp_err *err) {
    cd_task_registry *tasks = NULL;
    cd_program *p = NULL;
    randsched *r = calloc(1, sizeof *r);
    unsigned number = 0;
    cdmpp_status st = prog_tasks(gp_task, GP_TASKS, &tasks, err);
    if (!st) st = cd_program_new(&p, err);
    if (!st) st = cd_schedule_init(&r->s, err);
    r->rng = seed;
    r->threads = true;
    for (unsigned k = 0; !st && k < GP_TASKS * trials; k++) {
        cd_nest nest;
        gp_program g = {
            .nest = &nest, .number = number++, .task = cd_task_registry_at(tasks, k % GP_TASKS)};
        if (rs_make(r, g.task->dag, 2 + rs_below(r, 12), NULL) || gp_bind(r, NULL)) continue;
        const cd_record rec = rs_record(r);
        g.rec = &rec;
        if (cd_program_lower_code(p, g.task, &rec, NULL)) continue;
        if (!(st = cd_program_nest(p, &nest, err))) st = fn(ctx, &g, err);
    }
    cd_program_free(p);
    cd_schedule_free(&r->s);
    cd_ast_free(&r->t);
    cd_arena_free(&r->a);
    free(r);
    cd_task_registry_free(tasks);
    return st;
}

/* fn for up to `trials` random programs of every task; draws that TVM refuses are left out. Stops
 * at the first failure. */
static inline cdmpp_status gp_each(unsigned trials, uint64_t seed, gp_fn *fn, void *ctx,
                                   cdmpp_err *err) {
    cd_task_registry *tasks = NULL;
    cd_random_schedules *d = NULL;
    cd_program *p = NULL;
    cd_arena a = {0};
    cd_buf line = {0};
    cd_rows rows;
    const cd_random_schedules_options o = {
        .trials = trials, .seed = seed, .target = "cuda", .hardware = gp_gpu};
    cdmpp_status st = prog_tasks(gp_task, GP_TASKS, &tasks, err);
    if (!st) st = cd_random_schedules_new(tasks, &o, &d, err);
    if (!st) st = cd_program_new(&p, err);
    for (unsigned number = 0; !st; number++) {
        cd_record rec;
        cd_nest nest;
        gp_program g = {.rec = &rec, .nest = &nest, .number = number};
        line.n = 0;
        if ((st = cd_random_schedules_next(d, &line, err)) || !line.n ||
            (st = cd_record_read(&a, line.p, line.n, &rec, err)))
            break;
        g.task = cd_task_registry_find(tasks, rec.workload_key);
        if (cd_program_build(p, g.task, &rec, &rows, NULL) == CDMPP_EREJECTED) continue;
        if ((st = cd_program_lower_code(p, g.task, &rec, err)) ||
            (st = cd_program_nest(p, &nest, err)))
            break;
        st = fn(ctx, &g, err);
    }
    cd_buf_free(&line);
    cd_arena_free(&a);
    cd_program_free(p);
    cd_random_schedules_free(d);
    cd_task_registry_free(tasks);
    return st;
}

/* ---- memory ---- */

/* Buffers of a program: inputs filled, all else not a number. */
static inline void **gp_content(const gp_program *p, const cd_codegen_code *c) {
    void **m = calloc(c->n_buffer + 1, sizeof *m);
    for (uint32_t k = 0; k < c->n_buffer; k++) {
        float *x = m[k] = aligned_alloc(64, ((size_t)c->buffer[k].bytes + 127) & ~(size_t)63);
        for (int64_t i = 0; i < c->buffer[k].elements; i++)
            x[i] = c->buffer[k].written ? (float)NAN : (float)gp_number(NULL, p->nest->arg[k], i);
    }
    return m;
}

static inline void gp_free(void **m, const cd_codegen_code *c) {
    for (uint32_t k = 0; k < c->n_buffer; k++) free(m[k]);
    free(m);
}

/* Every element of every result against the definition. */
static inline cdmpp_status gp_compare(const gp_program *p, void *const *m, cdmpp_err *err) {
    const cd_te_dag *dag = p->task->dag;
    lazyref r = {
        .dag = dag, .var = calloc(dag->pool.n_var + 1, sizeof(double)), .input = gp_number};
    cdmpp_status st = CDMPP_OK;
    for (uint32_t k = 0; k < dag->n_arg; k++) {
        const cd_te_op *o = &dag->op[dag->tensor_op[dag->arg[k]]];
        int64_t n = 1, ix[8];
        for (uint32_t d = 0; d < o->rank; d++) n *= o->shape[d];
        for (int64_t i = 0; i < n && !o->is_placeholder && !st; i++) {
            int64_t rest = i;
            for (uint32_t d = o->rank; d-- > 0; rest /= o->shape[d]) ix[d] = rest % o->shape[d];
            const double want = lr_element(&r, dag->arg[k], ix), got = (double)((float *)m[k])[i];
            if (!(fabs(got - want) <= 1e-5 * (1 + fabs(want))))
                st = CD_FAIL(err, ENUMERIC, "task %s, program %u: %s element %lld is %g, not %g",
                             p->task->workload_key, p->number, o->name, (long long)i, got, want);
        }
    }
    free(r.var);
    return st;
}
#endif
