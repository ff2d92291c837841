/* Programs and inputs of the networks that are compared. */
#include <math.h>
#include <string.h>

#include "predictor/quantize/quantize_internal.h"
#include "predictor/tune/template/template.h"

enum { BLOCKS = 8 };

typedef struct {
    const cd_network_values_options *o;
    const cd_task *task;
    cd_template_machine machine;
} choice;

static cd_str text(const char *s) { return (cd_str){s, strlen(s)}; }

/* A record that was not measured, of these steps. */
static cdmpp_status put_record(const choice *c, const cd_record_step *step, uint32_t n,
                               cd_buf *line, cdmpp_err *err) {
    static const double never = 1e10;
    const cd_record r = {.workload_key = text(c->task->workload_key),
                         .target = text(c->o->target),
                         .target_host = text(""),
                         .has_hardware = true,
                         .has_host = true,
                         .has_layout = true,
                         .has_inputs = true,
                         .hardware = c->o->hardware,
                         .layout_rewrite = cd_target_layout(false),
                         .n_cost = 1,
                         .cost_s = &never,
                         .error_no = 1,
                         .version = text("v0.6"),
                         .step = step,
                         .n_step = n};
    return cd_record_write(line, &r, err);
}

/* The best block that Ansor's rules allow; nothing where there is none. */
static cdmpp_status put_template(const choice *c, cd_buf *line, cdmpp_err *err) {
    cd_template_nest nest;
    cd_template_block *b = NULL;
    uint32_t n = 0;
    cd_arena a = {0};
    cd_sketch_space *space = NULL;
    cd_sketch_sampler *sampler = NULL;
    cd_sketch_sample s;
    if (cd_template_nest_read(c->task, false, &nest, NULL)) return CDMPP_OK;
    cdmpp_status st = cd_sketch_space_new(c->task, &c->o->hardware, false, &space, err);
    if (!st) st = cd_sketch_sampler_new(space, 0, &sampler, err);
    if (!st) st = cd_template_best(&nest, &c->machine, BLOCKS, &a, &b, &n, err);
    bool found = false;
    for (uint32_t k = 0; k < n && !st && !found; k++) {
        st = cd_template_sample(&nest, &b[k], space, sampler, &s, err);
        found = !st;
        if (st == CDMPP_EREJECTED) st = CDMPP_OK;
    }
    if (!st && found) st = put_record(c, s.step, s.n_step, line, err);
    cd_sketch_sampler_free(sampler);
    cd_sketch_space_free(space);
    cd_arena_free(&a);
    return st;
}

/* Ways of one task; a task without a line gets sampled schedules. */
static cdmpp_status put_line(const choice *c, const cd_workload_task *t, cd_arena *a,
                             const char **line, size_t *n, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = t->weight ? put_template(c, &b, err) : put_record(c, NULL, 0, &b, err);
    if (!st && b.oom) st = CD_FAIL(err, ENOMEM, "a record");
    if (!st && b.n && !(line[(*n)++] = cd_str_dup(a, (cd_str){b.p, b.n})))
        st = CD_FAIL(err, ENOMEM, "a record");
    cd_buf_free(&b);
    return st;
}

cdmpp_status cd_quantize_schedules(void *ctx, const cd_workload *w, cd_arena *a,
                                   const char *const **line, size_t *n_line, cdmpp_err *err) {
    choice c = {.o = ctx};
    const char **l = CD_NEWN(a, const char *, (size_t)w->n_task + 1);
    if (!l) return CD_FAIL(err, ENOMEM, "%u tasks", w->n_task);
    CD_TRY(cd_template_machine_here(NULL, c.o->target, 1, &c.machine, err));
    *n_line = 0;
    for (uint32_t k = 0; k < w->n_task; k++) {
        c.task = cd_task_registry_at(w->tasks, w->task[k].task);
        CD_TRY(put_line(&c, &w->task[k], a, l, n_line, err));
    }
    *line = l;
    return CDMPP_OK;
}

/* Four uniform numbers make one that is nearly normal, of deviation 1. */
static float normal(uint64_t seed, uint64_t i) {
    double sum = -2;
    for (uint64_t k = 0; k < 4; k++) sum += cd_rng_unit(seed, 4 * i + k);
    return (float)(sum * sqrt(3));
}

cdmpp_status cd_quantize_input(void *ctx, const cd_graph_tensor *t, uint32_t draw, void *to,
                               cdmpp_err *err) {
    const int64_t n = cd_graph_shape_elements(&t->shape);
    cd_hash h = cd_hash_start();
    float *v = to;
    (void)ctx;
    cd_hash_add(&h, t->name, strlen(t->name));
    cd_hash_add(&h, &draw, sizeof draw);
    for (int64_t i = 0; t->dtype == CD_F32 && i < n; i++) v[i] = normal(h.a, (uint64_t)i);
    if (t->dtype == CD_F32) return CDMPP_OK;
    return cd_tensor_fill(t->dtype, (uint32_t)h.a, 0, (size_t)n, to)
               ? CDMPP_OK
               : CD_FAIL(err, EUNSUPPORTED, "%.80s: numbers of its type are not made", t->name);
}
