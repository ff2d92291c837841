/* Ranges of a network's tensors, the network by these ranges and as its file says, and the values of both against float. */
#include <math.h>
#include <string.h>

#include "predictor/quantize/quantize_internal.h"
#include "profiler/host/host.h"

enum { FIRST = 1000000 }; /* draws of the inputs that are compared: calibration's are below */

typedef struct {
    const cd_quantize_options *o;
    cd_quantize_result *r;
    cd_measure *measure;
    cd_quantize_net net[3];     /* float, then the forms */
    float *low, *high;
    bool *seen;                 /* (last dimension) places of a maximum */
    double square[2], difference[2], most, apart[2];
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
    n->o = (cd_network_values_options){.graph = c->r->graph, .target = o->target ? o->target : "llvm", .hardware = cd_target_hardware(false, 1, 64), .measure = c->measure,
                                       .stop = o->stop, .trials = o->run ? (o->trials ? o->trials : CD_QUANTIZE_TRIALS) : 1, .seed = o->seed, .quantize = &n->how, .ctx = &n->o,
                                       .schedule = cd_quantize_schedules, .input = cd_quantize_input};
    if (o->layout) (void)cd_workload_layout_parse(o->layout, &n->o.layout);
    CD_TRY(cd_network_live_open(&n->o, &n->live, err));
    const cd_workload_buffer *b = cd_network_live_result(n->live, 0);
    if (b->dtype != CD_F32 || !b->shape.rank) return CD_FAIL(err, EUNSUPPORTED, "the first result is no float32 tensor: there is nothing to compare");
    n->row = cd_mem_zalloc((size_t)cd_graph_shape_elements(&b->shape) + 1, sizeof *n->row);
    return n->row ? CDMPP_OK : CD_FAIL(err, ENOMEM, "a result");
}

static void close_net(cd_quantize_net *n) {
    cd_network_live_close(n->live);
    cd_mem_free(n->row);
    *n = (cd_quantize_net){0};
}

/* ---- calibration ---- */

static cdmpp_status widen(comparison *c, const cd_network_live *v, uint32_t k, float *to, cdmpp_err *err) {
    const uint32_t at = c->r->graph->n_output + k;
    const int64_t n = cd_graph_shape_elements(&cd_network_live_result(v, at)->shape);
    CD_TRY(cd_network_live_read(v, at, to, err));
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(to[i])) return CD_FAIL(err, ENUMERIC, "a tensor of the network holds a value that is no number: it has no range");
        c->low[k] = fminf(c->low[k], to[i]);
        c->high[k] = fmaxf(c->high[k], to[i]);
    }
    return CDMPP_OK;
}

static cdmpp_status observe_all(comparison *c, cd_network_live *v, cdmpp_err *err) {
    int64_t most = 0;
    double s;
    for (uint32_t k = 0; k < c->r->observed; k++) {
        const int64_t n = cd_graph_shape_elements(&cd_network_live_result(v, c->r->graph->n_output + k)->shape);
        if (n > most) most = n;
    }
    float *to = cd_mem_alloc((size_t)(most + 1) * sizeof *to);
    cdmpp_status st = to ? CDMPP_OK : CD_FAIL(err, ENOMEM, "a tensor");
    for (uint32_t d = 1; d <= c->r->calibrate && !st; d++) {
        st = cd_network_live_input(v, d, err);
        if (!st) cd_network_live_pass(v, &s);
        for (uint32_t k = 0; k < c->r->observed && !st; k++) st = widen(c, v, k, to, err);
        if (!st && c->o->stop && *c->o->stop) st = CD_FAIL(err, EINTERRUPTED, "while ranges were observed");
    }
    cd_mem_free(to);
    return st;
}

static cdmpp_status calibrate(comparison *c, cdmpp_err *err) {
    cd_quantize_net n = {.how = {.mode = CD_QUANTIZE_OBSERVE}};
    cdmpp_status st = open_net(c, &n, err);
    c->r->observed = st ? 0 : cd_network_live_workload(n.live)->n_observed;
    c->low = CD_NEWN(&c->r->arena, float, c->r->observed + 1);
    c->high = CD_NEWN(&c->r->arena, float, c->r->observed + 1);
    if (!st && (!c->low || !c->high)) st = CD_FAIL(err, ENOMEM, "ranges");
    if (!st) st = observe_all(c, n.live, err);
    close_net(&n);
    return st;
}

/* ---- forms ---- */

static cdmpp_status keep_layers(comparison *c, cd_quantize_form *f, const cd_workload *w, cdmpp_err *err) {
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
    if (!f->n_layer) return CD_FAIL(err, EUNSUPPORTED, "the network has no convolution and no matrix product that could be in 8 bits");
    const cd_graph_node *n = l[0].node == CD_GRAPH_NONE ? NULL : &c->r->graph->node[l[0].node];
    return CD_FAIL(err, EUNSUPPORTED, "none of %u convolutions and products can be in 8 bits: %s %.60s: %s", f->n_layer, n ? n->op : "", n ? n->name : "", l[0].why);
}

static cdmpp_status add_form(comparison *c, const char *name, cd_quantize how, cdmpp_err *err) {
    cd_quantize_form *f = &c->r->form[c->r->n_form];
    cd_quantize_net *n = &c->net[c->r->n_form + 1];
    *f = (cd_quantize_form){.name = name, .pass_s = (double)NAN, .ratio = (double)NAN, .low = (double)NAN, .high = (double)NAN};
    n->how = how;
    CD_TRY(open_net(c, n, err));
    CD_TRY(keep_layers(c, f, cd_network_live_workload(n->live), err));
    c->r->n_form++;
    return CDMPP_OK;
}

static bool is_quantised(const cd_graph *g) {
    for (uint32_t i = 0; i < g->n_node; i++)
        if (!strcmp(g->node[i].op, "DequantizeLinear") || !strncmp(g->node[i].op, "QLinear", 7)) return true;
    return false;
}

/* ---- values ---- */

static int64_t place_of_most(const float *v, int64_t n) {
    int64_t at = 0;
    for (int64_t i = 1; i < n; i++)
        if (v[i] > v[at]) at = i;
    return at;
}

/* The result of a form beside float's, both in net[].row. */
static cdmpp_status compare_rows(comparison *c, uint32_t k, int64_t n, int64_t width, cdmpp_err *err) {
    const float *want = c->net[0].row, *got = c->net[k + 1].row;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(want[i]) || !isfinite(got[i])) return CD_FAIL(err, ENUMERIC, "a result holds a value that is no number");
        const double d = (double)got[i] - (double)want[i];
        c->difference[k] += d * d;
        c->square[k] += (double)want[i] * (double)want[i];
        c->apart[k] = fmax(c->apart[k], fabs(d));
        c->most = fmax(c->most, fabs((double)want[i]));
    }
    for (int64_t i = 0; i < n; i += width) c->r->form[k].agree += place_of_most(want + i, width) == place_of_most(got + i, width);
    return CDMPP_OK;
}

static cdmpp_status one_input(comparison *c, uint32_t draw, int64_t n, int64_t width, cdmpp_err *err) {
    double s;
    for (uint32_t k = 0; k <= c->r->n_form; k++) {
        CD_TRY(cd_network_live_input(c->net[k].live, draw, err));
        cd_network_live_pass(c->net[k].live, &s);
        CD_TRY(cd_network_live_read(c->net[k].live, 0, c->net[k].row, err));
    }
    for (uint32_t k = 0; k < c->r->n_form; k++) CD_TRY(compare_rows(c, k, n, width, err));
    for (int64_t i = 0; i < n; i += width) c->seen[place_of_most(c->net[0].row + i, width)] = true;
    c->r->rows += (uint32_t)(n / width);
    return CDMPP_OK;
}

static cdmpp_status values(comparison *c, cdmpp_err *err) {
    const cd_graph_shape *s = &cd_network_live_result(c->net[0].live, 0)->shape;
    const int64_t n = cd_graph_shape_elements(s), width = s->dim[s->rank - 1];
    if (n < 1) return CD_FAIL(err, EUNSUPPORTED, "the first result has no elements");
    if (!(c->seen = CD_NEWN(&c->r->arena, bool, (size_t)width))) return CD_FAIL(err, ENOMEM, "classes");
    for (uint32_t d = 0; d < c->r->inputs; d++) {
        CD_TRY(one_input(c, FIRST + d, n, width, err));
        if (c->o->stop && *c->o->stop) return CD_FAIL(err, EINTERRUPTED, "while values were compared");
    }
    for (int64_t i = 0; i < width; i++) c->r->classes += c->seen[i];
    for (uint32_t k = 0; k < c->r->n_form; k++) {
        c->r->form[k].error_rms = c->square[k] > 0 ? sqrt(c->difference[k] / c->square[k]) : c->difference[k] > 0 ? (double)INFINITY : 0;
        c->r->form[k].error_most = c->most > 0 ? c->apart[k] / c->most : 0;
    }
    return CDMPP_OK;
}

/* ---- all ---- */

static cdmpp_status read_network(comparison *c, cdmpp_err *err) {
    const cd_onnx_miss *miss;
    uint32_t n;
    cd_network_source s = c->o->network;
    s.contents = true;
    CD_TRY(cd_network_source_read(&s, &c->r->graph, &miss, &n, err));
    if (n) return CD_FAIL(err, EUNSUPPORTED, "%s %.60s: %.160s", miss[0].op, miss[0].node, miss[0].reason);
    return CDMPP_OK;
}

static cdmpp_status compare(comparison *c, cdmpp_err *err) {
    const cd_measure_options m = {.jobs = c->o->jobs, .pin = true, .stop = c->o->stop};
    CD_TRY(read_network(c, err));
    CD_TRY(cd_measure_open(&m, &c->measure, err));
    CD_TRY(calibrate(c, err));
    c->net[0].how.mode = CD_QUANTIZE_FLOAT;
    CD_TRY(open_net(c, &c->net[0], err));
    CD_TRY(add_form(c, "calibrated", (cd_quantize){CD_QUANTIZE_RANGES, c->r->observed, c->low, c->high}, err));
    if (is_quantised(c->r->graph)) CD_TRY(add_form(c, "file", (cd_quantize){.mode = CD_QUANTIZE_FILE}, err));
    CD_TRY(values(c, err));
    return c->o->run ? cd_quantize_time(c->o, c->net, c->r, err) : CDMPP_OK;
}

cdmpp_status cd_quantize_compare(const cd_quantize_options *o, cd_quantize_result **out, cdmpp_err *err) {
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
