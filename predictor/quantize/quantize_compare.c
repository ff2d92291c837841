/* Ranges of a network's tensors, the network by these ranges and as its file says, and the values
 * of both against float. */
#include <math.h>
#include <string.h>

#include "predictor/quantize/quantize_internal.h"
#include "profiler/host/host.h"

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
    return c->o->run ? cd_quantize_time(c->o, c->net, c->r, err) : CDMPP_OK;
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
