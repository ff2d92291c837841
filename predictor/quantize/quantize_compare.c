/* Ranges of a network's tensors, the network by these ranges and as its file says, and the values
 * of both against float. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "predictor/quantize/quantize_internal.h"
#include "predictor/tune/template/template.h"
#include "profiler/host/host.h"

/* Programs and inputs of the networks that are compared. */

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

/* Times of networks that wait, in turns: a change of the machine's speed meets all of them. */

enum { LEAST_TURNS = 7, PASSES = 3, MOST_NETS = 3 };
static const double BUDGET_S = 4;

static double now_s(bool cpu) {
    struct timespec t;
    (void)clock_gettime(cpu ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The fastest of some passes in a row; the first one finds the caches of another network. */
static double turn(cd_network_live *live, bool cpu) {
    double best = (double)INFINITY, total;
    for (int k = 0; k < PASSES; k++) {
        const double from = now_s(cpu);
        cd_network_live_pass(live, &total);
        best = fmin(best, now_s(cpu) - from);
    }
    return best;
}

void cd_quantize_settle(cd_quantize_form *f, const double *float_s, double *s, uint32_t n) {
    double ratio[CD_QUANTIZE_MOST_TURNS];
    for (uint32_t i = 0; i < n; i++) ratio[i] = float_s[i] / s[i];
    cd_sort_doubles(s, n);
    cd_sort_doubles(ratio, n);
    f->pass_s = cd_sort_median(s, n);
    f->ratio = cd_sort_median(ratio, n);
    f->low = cd_sort_quantile(ratio, n, 0.25), f->high = cd_sort_quantile(ratio, n, 0.75);
}

/* Passes in turns until the budget is over: times and ratios of the forms. net (1 + n_form): float
 * first. */
static cdmpp_status quantize_time(const cd_quantize_options *o, cd_quantize_net *net,
                                  cd_quantize_result *r, cdmpp_err *err) {
    double s[MOST_NETS][CD_QUANTIZE_MOST_TURNS];
    const double until = now_s(false) + (o->budget_s > 0 ? o->budget_s : BUDGET_S);
    uint32_t n = 0;
    cd_affinity all;
    cd_affinity_get(&all);
    (void)cd_affinity_last(1);
    r->left = cd_host_load_left(1);
    for (; n < CD_QUANTIZE_MOST_TURNS && (n < LEAST_TURNS || now_s(false) < until) &&
           !(o->stop && *o->stop);
         n++)
        for (uint32_t k = 0; k <= r->n_form; k++) s[k][n] = turn(net[k].live, o->cpu_time);
    cd_affinity_set(&all, 0);
    if (o->stop && *o->stop) return CD_FAIL(err, EINTERRUPTED, "while networks were timed");
    r->turns = n;
    for (uint32_t k = 0; k < r->n_form; k++) cd_quantize_settle(&r->form[k], s[0], s[k + 1], n);
    cd_sort_doubles(s[0], n);
    r->float_s = cd_sort_median(s[0], n);
    return CDMPP_OK;
}

#define LONGEST_BUILD_S 300 /* of many programs at a time, on a machine that others use */
enum { FIRST = 1000000 };   /* draws of the inputs that are compared: calibration's are below */

typedef struct {
    const cd_quantize_options *o;
    cd_quantize_result *r;
    cd_measure *measure;
    cd_quantize_net net[3]; /* float, then the forms */
    float *low, *high;
    uint32_t *mean;   /* (observed) constants of the graph */
    double **sum;     /* (observed) of each channel */
    float *all[3];    /* (inputs, elements of the first result) of each network */
    int64_t n, width; /* elements of a first result, of its last dimension */
} comparison;

void cd_quantize_result_free(cd_quantize_result *r) {
    if (!r) return;
    cd_graph_free(r->graph);
    cd_arena_free(&r->arena);
    cd_mem_free(r);
}

/* ---- networks ---- */

static cdmpp_status open_net(comparison *c, cd_quantize_net *n, cdmpp_err *err) {
    const cd_quantize_options *o = c->o;
    n->o = (cd_network_values_options){
        .graph = c->r->graph,
        .target = o->target ? o->target : "llvm",
        .hardware = cd_target_hardware(false, 1, 64),
        .measure = c->measure,
        .stop = o->stop,
        .trials = o->run ? (o->trials ? o->trials : CD_QUANTIZE_TRIALS) : 1,
        .seed = o->seed,
        .quantize = &n->how,
        .ctx = &n->o,
        .schedule = cd_quantize_schedules,
        .input = cd_quantize_input};
    if (o->layout) (void)cd_workload_layout_parse(o->layout, &n->o.layout);
    CD_TRY(cd_network_live_open(&n->o, &n->live, err));
    const cd_workload_buffer *b = cd_network_live_result(n->live, 0);
    if (b->dtype != CD_F32 || !b->shape.rank)
        return CD_FAIL(err, EUNSUPPORTED,
                       "the first result is no float32 tensor: there is nothing to compare");
    return CDMPP_OK;
}

static void close_net(cd_quantize_net *n) {
    cd_network_live_close(n->live);
    *n = (cd_quantize_net){0};
}

/* ---- calibration ---- */

/* The dimension that channels lie along: of images the second, else the last. */
static uint32_t axis_of(const cd_graph_shape *s) {
    return s->rank > 3 ? 1 : s->rank ? s->rank - 1 : 0;
}

static cdmpp_status widen(comparison *c, const cd_network_live *v, uint32_t k, float *to,
                          cdmpp_err *err) {
    const uint32_t at = c->r->graph->n_output + k;
    const cd_graph_shape *s = &cd_network_live_result(v, at)->shape;
    const int64_t n = cd_graph_shape_elements(s), channels = s->rank ? s->dim[axis_of(s)] : 1;
    int64_t below = 1;
    for (uint32_t d = axis_of(s) + 1; d < s->rank; d++) below *= s->dim[d];
    CD_TRY(cd_network_live_read(v, at, to, err));
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(to[i]))
            return CD_FAIL(
                err, ENUMERIC,
                "a tensor of the network holds a value that is no number: it has no range");
        c->low[k] = fminf(c->low[k], to[i]);
        c->high[k] = fmaxf(c->high[k], to[i]);
        c->sum[k][i / below % channels] += (double)to[i];
    }
    return CDMPP_OK;
}

/* The means become constants of the graph, which the pass into 8 bits reads. */
static cdmpp_status keep_means(comparison *c, const cd_network_live *v, cdmpp_err *err) {
    for (uint32_t k = 0; k < c->r->observed; k++) {
        const cd_graph_shape *s = &cd_network_live_result(v, c->r->graph->n_output + k)->shape;
        const cd_graph_shape one = {1, {s->rank ? s->dim[axis_of(s)] : 1}};
        const double each =
            (double)(cd_graph_shape_elements(s) / (one.dim[0] ? one.dim[0] : 1)) * c->r->calibrate;
        for (int64_t i = 0; i < one.dim[0]; i++) c->sum[k][i] /= each;
        CD_TRY(cd_graph_constant(c->r->graph, "mean", CD_F32, &one, NULL, c->sum[k], &c->mean[k],
                                 err));
    }
    return CDMPP_OK;
}

static cdmpp_status make_ranges(comparison *c, const cd_network_live *v, cdmpp_err *err) {
    const uint32_t n = c->r->observed = cd_network_live_workload(v)->n_observed;
    c->low = CD_NEWN(&c->r->arena, float, n + 1);
    c->high = CD_NEWN(&c->r->arena, float, n + 1);
    c->mean = CD_NEWN(&c->r->arena, uint32_t, n + 1);
    c->sum = CD_NEWN(&c->r->arena, double *, n + 1);
    if (!c->low || !c->high || !c->mean || !c->sum) return CD_FAIL(err, ENOMEM, "ranges");
    for (uint32_t k = 0; k < n; k++) {
        const cd_graph_shape *s = &cd_network_live_result(v, c->r->graph->n_output + k)->shape;
        if (!(c->sum[k] =
                  CD_NEWN(&c->r->arena, double, (size_t)(s->rank ? s->dim[axis_of(s)] : 1) + 1)))
            return CD_FAIL(err, ENOMEM, "ranges");
    }
    return CDMPP_OK;
}

static cdmpp_status observe_all(comparison *c, cd_network_live *v, cdmpp_err *err) {
    int64_t most = 0;
    double s;
    for (uint32_t k = 0; k < c->r->observed; k++) {
        const int64_t n =
            cd_graph_shape_elements(&cd_network_live_result(v, c->r->graph->n_output + k)->shape);
        if (n > most) most = n;
    }
    float *to = cd_mem_alloc((size_t)(most + 1) * sizeof *to);
    cdmpp_status st = to ? CDMPP_OK : CD_FAIL(err, ENOMEM, "a tensor");
    for (uint32_t d = 1; d <= c->r->calibrate && !st; d++) {
        st = cd_network_live_input(v, d, err);
        if (!st) cd_network_live_pass(v, &s);
        for (uint32_t k = 0; k < c->r->observed && !st; k++) st = widen(c, v, k, to, err);
        if (!st && c->o->stop && *c->o->stop)
            st = CD_FAIL(err, EINTERRUPTED, "while ranges were observed");
    }
    cd_mem_free(to);
    return st;
}

static cdmpp_status calibrate(comparison *c, cdmpp_err *err) {
    cd_quantize_net n = {.how = {.mode = CD_QUANTIZE_OBSERVE}};
    cdmpp_status st = open_net(c, &n, err);
    if (!st) st = make_ranges(c, n.live, err);
    if (!st) st = observe_all(c, n.live, err);
    if (!st) st = keep_means(c, n.live, err);
    close_net(&n);
    return st;
}

/* ---- forms ---- */

static cdmpp_status keep_layers(comparison *c, cd_quantize_form *f, const cd_workload *w,
                                cdmpp_err *err) {
    cd_quantize_layer *l = CD_NEWN(&c->r->arena, cd_quantize_layer, w->n_layer + 1);
    if (!l) return CD_FAIL(err, ENOMEM, "%u layers", w->n_layer);
    for (uint32_t k = 0; k < w->n_layer; k++) {
        l[k] = w->layer[k];
        f->flop += l[k].flop;
        f->n_int8 += !l[k].why;
        if (!l[k].why) f->flop_int8 += l[k].flop;
    }
    f->layer = l;
    f->n_layer = w->n_layer;
    if (f->n_int8) return CDMPP_OK;
    if (!f->n_layer)
        return CD_FAIL(
            err, EUNSUPPORTED,
            "the network has no convolution and no matrix product that could be in 8 bits");
    const cd_graph_node *n = l[0].node == CD_GRAPH_NONE ? NULL : &c->r->graph->node[l[0].node];
    return CD_FAIL(err, EUNSUPPORTED,
                   "none of %u convolutions and products can be in 8 bits: %s %.60s: %s",
                   f->n_layer, n ? n->op : "", n ? n->name : "", l[0].why);
}

static cdmpp_status add_form(comparison *c, const char *name, cd_quantize how, cdmpp_err *err) {
    cd_quantize_form *f = &c->r->form[c->r->n_form];
    cd_quantize_net *n = &c->net[c->r->n_form + 1];
    *f = (cd_quantize_form){.name = name,
                            .pass_s = (double)NAN,
                            .ratio = (double)NAN,
                            .low = (double)NAN,
                            .high = (double)NAN};
    n->how = how;
    CD_TRY(open_net(c, n, err));
    CD_TRY(keep_layers(c, f, cd_network_live_workload(n->live), err));
    c->r->n_form++;
    return CDMPP_OK;
}

static bool is_quantised(const cd_graph *g) {
    for (uint32_t i = 0; i < g->n_node; i++)
        if (!strcmp(g->node[i].op, "DequantizeLinear") || !strncmp(g->node[i].op, "QLinear", 7))
            return true;
    return false;
}

/* ---- values ---- */

static int64_t place_of_most(const float *v, const double *mean, int64_t n) {
    int64_t at = 0;
    for (int64_t i = 1; i < n; i++)
        if ((double)v[i] - mean[i] > (double)v[at] - mean[at]) at = i;
    return at;
}

/* Rows of all inputs less `mean`: how many agree with float, of each form; returns at how many
 * different places float's maximum is. */
static uint32_t count_agreeing(const comparison *c, const double *mean, bool *seen,
                               uint32_t *agree) {
    const int64_t n = c->n, width = c->width;
    uint32_t classes = 0;
    memset(seen, 0, (size_t)width * sizeof *seen);
    for (uint32_t d = 0; d < c->r->inputs; d++)
        for (int64_t i = 0; i < n; i += width) {
            const int64_t at = place_of_most(c->all[0] + d * n + i, mean + i, width);
            seen[at] = true;
            for (uint32_t k = 0; k < c->r->n_form; k++)
                agree[k] += place_of_most(c->all[k + 1] + d * n + i, mean + i, width) == at;
        }
    for (int64_t i = 0; i < width; i++) classes += seen[i];
    return classes;
}

static cdmpp_status compare_places(comparison *c, cdmpp_err *err) {
    double *mean = CD_NEWN(&c->r->arena, double, (size_t)c->n);
    bool *seen = CD_NEWN(&c->r->arena, bool, (size_t)c->width);
    uint32_t plain[2] = {0, 0}, centred[2] = {0, 0};
    if (!mean || !seen) return CD_FAIL(err, ENOMEM, "classes");
    c->r->rows = (uint32_t)(c->r->inputs * (c->n / c->width));
    c->r->classes = count_agreeing(c, mean, seen, plain);
    for (uint32_t d = 0; d < c->r->inputs; d++)
        for (int64_t i = 0; i < c->n; i++)
            mean[i] += (double)c->all[0][d * c->n + i] / c->r->inputs;
    c->r->classes_centred = count_agreeing(c, mean, seen, centred);
    for (uint32_t k = 0; k < c->r->n_form; k++)
        c->r->form[k].agree = plain[k], c->r->form[k].agree_centred = centred[k];
    return CDMPP_OK;
}

static cdmpp_status compare_values(comparison *c, uint32_t k, cdmpp_err *err) {
    const float *want = c->all[0], *got = c->all[k + 1];
    double difference = 0, square = 0, most = 0, apart = 0;
    for (int64_t i = 0; i < c->n * c->r->inputs; i++) {
        if (!isfinite(want[i]) || !isfinite(got[i]))
            return CD_FAIL(err, ENUMERIC, "a result holds a value that is no number");
        const double d = (double)got[i] - (double)want[i];
        difference += d * d;
        square += (double)want[i] * (double)want[i];
        apart = fmax(apart, fabs(d));
        most = fmax(most, fabs((double)want[i]));
    }
    c->r->form[k].error_rms = square > 0       ? sqrt(difference / square)
                              : difference > 0 ? (double)INFINITY
                                               : 0;
    c->r->form[k].error_most = most > 0 ? apart / most : apart > 0 ? (double)INFINITY : 0;
    return CDMPP_OK;
}

static cdmpp_status run_input(comparison *c, uint32_t d, cdmpp_err *err) {
    double s;
    for (uint32_t k = 0; k <= c->r->n_form; k++) {
        CD_TRY(cd_network_live_input(c->net[k].live, FIRST + d, err));
        cd_network_live_pass(c->net[k].live, &s);
        CD_TRY(cd_network_live_read(c->net[k].live, 0, c->all[k] + d * c->n, err));
    }
    return c->o->stop && *c->o->stop ? CD_FAIL(err, EINTERRUPTED, "while values were compared")
                                     : CDMPP_OK;
}

static cdmpp_status values(comparison *c, cdmpp_err *err) {
    const cd_graph_shape *s = &cd_network_live_result(c->net[0].live, 0)->shape;
    c->n = cd_graph_shape_elements(s);
    c->width = s->dim[s->rank - 1];
    if (c->n < 1) return CD_FAIL(err, EUNSUPPORTED, "the first result has no elements");
    for (uint32_t k = 0; k <= c->r->n_form; k++)
        if (!(c->all[k] = CD_NEWN(&c->r->arena, float, (size_t)c->n * c->r->inputs)))
            return CD_FAIL(err, ENOMEM, "results of %u inputs", c->r->inputs);
    for (uint32_t d = 0; d < c->r->inputs; d++) CD_TRY(run_input(c, d, err));
    for (uint32_t k = 0; k < c->r->n_form; k++) CD_TRY(compare_values(c, k, err));
    return compare_places(c, err);
}

/* ---- all ---- */

static cdmpp_status read_network(comparison *c, cdmpp_err *err) {
    const cd_onnx_miss *miss;
    uint32_t n;
    cd_network_source s = c->o->network;
    s.contents = true;
    CD_TRY(cd_network_source_read(&s, &c->r->graph, &miss, &n, err));
    cd_network_source_say(c->r->graph, c->o->log);
    if (n)
        return CD_FAIL(err, EUNSUPPORTED, "%s %.60s: %s", miss[0].op, miss[0].node, miss[0].reason);
    for (uint32_t i = 0; i < c->r->graph->n_node; i++) {
        const cd_graph_node *v = &c->r->graph->node[i];
        if (!strcmp(v->op, "MatMulInteger") || !strcmp(v->op, "ConvInteger"))
            return CD_FAIL(err, EUNSUPPORTED,
                           "%s %.60s works on whole numbers in every form of the network: there is "
                           "no float one to compare with",
                           v->op, v->name);
    }
    return CDMPP_OK;
}

static cdmpp_status compare(comparison *c, cdmpp_err *err) {
    const cd_measure_options m = {
        .jobs = c->o->jobs, .pin = true, .build_limit_s = LONGEST_BUILD_S, .stop = c->o->stop};
    CD_TRY(read_network(c, err));
    CD_TRY(cd_measure_open(&m, &c->measure, err));
    CD_TRY(calibrate(c, err));
    c->net[0].how.mode = CD_QUANTIZE_FLOAT;
    CD_TRY(open_net(c, &c->net[0], err));
    CD_TRY(add_form(c, "calibrated",
                    (cd_quantize){CD_QUANTIZE_RANGES, c->r->observed, c->low, c->high, c->mean},
                    err));
    if (is_quantised(c->r->graph))
        CD_TRY(add_form(c, "file", (cd_quantize){.mode = CD_QUANTIZE_FILE}, err));
    CD_TRY(values(c, err));
    return c->o->run ? quantize_time(c->o, c->net, c->r, err) : CDMPP_OK;
}

cdmpp_status cd_quantize_compare(const cd_quantize_options *o, cd_quantize_result **out,
                                 cdmpp_err *err) {
    comparison c = {.o = o, .r = cd_mem_zalloc(1, sizeof *c.r)};
    *out = NULL;
    if (!c.r) return CD_FAIL(err, ENOMEM, "a comparison");
    c.r->inputs = o->inputs ? o->inputs : CD_QUANTIZE_INPUTS;
    c.r->calibrate = o->calibrate ? o->calibrate : CD_QUANTIZE_CALIBRATE;
    c.r->float_s = c.r->left = (double)NAN;
    const cdmpp_status st = compare(&c, err);
    for (int k = 0; k < 3; k++) close_net(&c.net[k]);
    cd_measure_close(c.measure);
    if (st) cd_quantize_result_free(c.r);
    else *out = c.r;
    return st;
}
