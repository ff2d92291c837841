/* A network opened at its points, and its calls. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "predictor/dynamic/dynamic_internal.h"
#include "profiler/host/host.h"

/* A network at one size, and its inputs and results as functions of the size. */

enum { VECTOR_BYTES = 64 };

static void dynamic_net_close(cd_dynamic_net *n) {
    cd_network_live_close(n->live);
    cd_graph_free(n->graph);
    cd_arena_free(&n->arena);
    *n = (cd_dynamic_net){0};
}

/* Close it after an error too. */
static cdmpp_status dynamic_net_open(cd_dynamic *d, int64_t size, cd_dynamic_net *n,
                                     cdmpp_err *err) {
    const cd_dynamic_options *o = d->o;
    const char *target = o->target ? o->target : "llvm";
    const int threads =
        cd_target_option(target, "-num-cores").n ? cd_backend_cpu_threads(target) : 1;
    cd_network_source s = o->network;
    const cd_onnx_miss *miss;
    uint32_t n_miss;
    n->size = size;
    s.contents = true;
    CD_TRY(cd_network_sizes_at(o->sizes, &n->arena, size, &s, err));
    CD_TRY(cd_network_source_read(&s, &n->graph, &miss, &n_miss, err));
    if (n_miss)
        return CD_FAIL(err, EUNSUPPORTED, "%s %.60s: %s", miss[0].op, miss[0].node, miss[0].reason);
    n->hardware = cd_target_hardware(false, threads, VECTOR_BYTES);
    n->o = (cd_network_values_options){.graph = n->graph,
                                       .target = target,
                                       .hardware = n->hardware,
                                       .threads = threads,
                                       .log = o->log,
                                       .n_log = o->n_log,
                                       .trials = o->trials ? o->trials : CD_DYNAMIC_TRIALS,
                                       .seed = o->seed,
                                       .measure = d->measure,
                                       .stop = o->stop};
    if (o->layout) (void)cd_workload_layout_parse(o->layout, &n->o.layout);
    return cd_network_live_open(&n->o, &n->live, err);
}

/* ---- values over the size ---- */

static int64_t dynamic_shape_bytes(const cd_graph_shape *s, cd_dtype t) {
    return cd_graph_shape_elements(s) * (int64_t)cd_expr_dtype_bytes(t);
}

static const cd_graph_tensor *value_of(const cd_dynamic_net *n, bool result, uint32_t k) {
    return result ? &n->graph->tensor[n->graph->output[k]]
                  : cd_network_live_input_tensor(n->live, k);
}

/* No elements where the shape is not known. */
static void dynamic_shape(const cd_dynamic_value *v, int64_t size, cd_graph_shape *out) {
    *out = (cd_graph_shape){.rank = v->rank};
    for (uint32_t i = 0; !v->points && i < v->rank; i++)
        out->dim[i] = v->base[i] + v->per[i] * size;
    for (size_t p = 0; v->points && p < v->points->n; p++)
        if (v->points->net[p].size == size)
            *out = value_of(&v->points->net[p], v->result, v->k)->shape;
}

static bool is_at(const cd_dynamic_value *v, int64_t size, const cd_graph_shape *s) {
    cd_graph_shape want;
    dynamic_shape(v, size, &want);
    return want.rank == s->rank && !memcmp(want.dim, s->dim, s->rank * sizeof *s->dim);
}

/* By the first and the last point; the others must agree. */
static cdmpp_status take_value(cd_dynamic *d, bool result, uint32_t k, cd_dynamic_value *v,
                               cdmpp_err *err) {
    const cd_dynamic_net *a = &d->net[0], *b = &d->net[d->n - 1];
    const cd_graph_tensor *x = value_of(a, result, k), *y = value_of(b, result, k);
    bool linear = true;
    *v = (cd_dynamic_value){
        .name = x->name, .dtype = x->dtype, .rank = x->shape.rank, .k = k, .result = result};
    if (x->dtype != y->dtype || x->shape.rank != y->shape.rank)
        return CD_FAIL(err, EUNSUPPORTED, "%.80s is another kind of tensor at another size",
                       x->name);
    for (uint32_t i = 0; i < v->rank; i++) {
        v->per[i] = (y->shape.dim[i] - x->shape.dim[i]) / (b->size - a->size);
        v->base[i] = x->shape.dim[i] - v->per[i] * a->size;
    }
    for (size_t p = 0; p < d->n; p++)
        linear &= is_at(v, d->net[p].size, &value_of(&d->net[p], result, k)->shape);
    if (linear) return CDMPP_OK;
    v->points = d;
    if (d->only_points) return CDMPP_OK;
    char text[160];
    (void)snprintf(text, sizeof text,
                   "a dimension of %.80s is no multiple of the size plus a number", x->name);
    d->only_points = cd_arena_text(&d->arena, text);
    return d->only_points ? CDMPP_OK : CD_FAIL(err, ENOMEM, "a value");
}

/* A result whose buffer is not as large as its tensor would be read past its end. */
static cdmpp_status check_net(const cd_dynamic *d, const cd_dynamic_net *n, cdmpp_err *err) {
    if (cd_network_live_inputs(n->live) != d->n_input || n->graph->n_output != d->n_result)
        return CD_FAIL(err, EUNSUPPORTED, "the network has other inputs or results at size %lld",
                       (long long)n->size);
    for (uint32_t k = 0; k < d->n_result; k++) {
        const cd_workload_buffer *b = cd_network_live_result(n->live, k);
        const cd_graph_tensor *t = value_of(n, true, k);
        if (b->dtype != t->dtype ||
            cd_graph_shape_elements(&b->shape) != cd_graph_shape_elements(&t->shape))
            return CD_FAIL(err, EUNSUPPORTED, "result %.80s is not computed as it is", t->name);
    }
    return CDMPP_OK;
}

/* Values of the points as functions of the size; *why: that one is none. Errors: EUNSUPPORTED
 * (points of different inputs or results), ENOMEM. */
static cdmpp_status dynamic_values(cd_dynamic *d, cdmpp_err *err) {
    d->n_input = cd_network_live_inputs(d->net[0].live);
    d->n_result = d->net[0].graph->n_output;
    if (!d->n_input || !d->n_result)
        return CD_FAIL(err, EUNSUPPORTED, "the network has no %s",
                       d->n_input ? "results" : "inputs that are data");
    for (size_t p = 0; p < d->n; p++) CD_TRY(check_net(d, &d->net[p], err));
    d->input = CD_NEWN(&d->arena, cd_dynamic_value, d->n_input);
    d->result = CD_NEWN(&d->arena, cd_dynamic_value, d->n_result);
    if (!d->input || !d->result) return CD_FAIL(err, ENOMEM, "values");
    for (uint32_t k = 0; k < d->n_input; k++) CD_TRY(take_value(d, false, k, &d->input[k], err));
    for (uint32_t k = 0; k < d->n_result; k++) CD_TRY(take_value(d, true, k, &d->result[k], err));
    return CDMPP_OK;
}

/* A box at the origin of two row-major arrays, and contents for a trial. */

/* Dimensions behind the last one that differs are one run; the others are counted through. */
void cd_dynamic_copy_box(const cd_graph_shape *box, size_t element, const cd_graph_shape *from,
                         const void *src, const cd_graph_shape *to, void *dst) {
    int64_t at[CD_GRAPH_MAX_RANK] = {0};
    uint32_t rank = box->rank;
    size_t run = element;
    while (rank && box->dim[rank - 1] == from->dim[rank - 1] &&
           box->dim[rank - 1] == to->dim[rank - 1])
        run *= (size_t)box->dim[--rank];
    if (rank) run *= (size_t)box->dim[--rank];
    for (uint32_t i = 0; i < rank; i++)
        if (box->dim[i] < 1) return;
    for (;;) {
        int64_t a = 0, b = 0;
        for (uint32_t i = 0; i < box->rank; i++) {
            a = a * from->dim[i] + (i < rank ? at[i] : 0);
            b = b * to->dim[i] + (i < rank ? at[i] : 0);
        }
        memcpy((char *)dst + b * (int64_t)element, (const char *)src + a * (int64_t)element, run);
        uint32_t i = rank;
        while (i && ++at[i - 1] == box->dim[i - 1]) at[--i] = 0;
        if (!i) return;
    }
}

/* ---- contents ---- */

static cdmpp_status make(const cd_dynamic_value *v, int64_t size, bool filled, cd_arena *a,
                         void **out, cdmpp_err *err) {
    cd_graph_shape s;
    cd_hash h = cd_hash_start();
    dynamic_shape(v, size, &s);
    cd_hash_add(&h, v->name, strlen(v->name));
    if (!(*out = cd_arena_zalloc(a, (size_t)dynamic_shape_bytes(&s, v->dtype) + 1, 1)))
        return CD_FAIL(err, ENOMEM, "a tensor");
    if (!filled ||
        cd_tensor_fill(v->dtype, (uint32_t)h.a, 0, (size_t)cd_graph_shape_elements(&s), *out))
        return CDMPP_OK;
    return CD_FAIL(err, EUNSUPPORTED, "%.80s: numbers of its type are not made", v->name);
}

static cdmpp_status dynamic_data_make(const cd_dynamic *d, int64_t size, cd_dynamic_data *x,
                                      cdmpp_err *err) {
    x->input = CD_NEWN(&x->arena, void *, d->n_input);
    x->result = CD_NEWN(&x->arena, void *, d->n_result);
    x->expect = CD_NEWN(&x->arena, void *, d->n_result);
    if (!x->input || !x->result || !x->expect) return CD_FAIL(err, ENOMEM, "tensors");
    for (uint32_t k = 0; k < d->n_input; k++)
        CD_TRY(make(&d->input[k], size, true, &x->arena, &x->input[k], err));
    for (uint32_t k = 0; k < d->n_result; k++) {
        CD_TRY(make(&d->result[k], size, false, &x->arena, &x->result[k], err));
        CD_TRY(make(&d->result[k], size, false, &x->arena, &x->expect[k], err));
    }
    return CDMPP_OK;
}

static double difference(const float *got, const float *want, int64_t n) {
    double apart = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(got[i]) || !isfinite(want[i])) return (double)INFINITY;
        apart = fmax(apart, fabs((double)got[i] - (double)want[i]));
        most = fmax(most, fabs((double)want[i]));
    }
    return apart > 0 ? apart / most : 0;
}

/* Largest difference of result and expect over the largest value; of whole numbers 0 or 1. */
static double dynamic_data_difference(const cd_dynamic *d, int64_t size, const cd_dynamic_data *x) {
    double most = 0;
    for (uint32_t k = 0; k < d->n_result; k++) {
        const cd_dynamic_value *v = &d->result[k];
        cd_graph_shape s;
        dynamic_shape(v, size, &s);
        if (v->dtype == CD_F32)
            most = fmax(most, difference(x->result[k], x->expect[k], cd_graph_shape_elements(&s)));
        else
            most = fmax(
                most, memcmp(x->result[k], x->expect[k], (size_t)dynamic_shape_bytes(&s, v->dtype))
                          ? 1
                          : 0);
    }
    return most;
}

#define LONGEST_BUILD_S 300 /* of many programs at a time, on a machine that others use */

/* ---- calls ---- */

size_t cd_dynamic_points(const cd_dynamic *d) { return d->n; }
uint32_t cd_dynamic_inputs(const cd_dynamic *d) { return d->n_input; }
uint32_t cd_dynamic_results(const cd_dynamic *d) { return d->n_result; }
const char *cd_dynamic_only_points(const cd_dynamic *d) { return d->only_points; }

int64_t cd_dynamic_bytes(const cd_dynamic *d) {
    int64_t sum = 0;
    for (size_t k = 0; k < d->n; k++) sum += cd_network_live_bytes(d->net[k].live).all;
    return sum;
}

void cd_dynamic_input_shape(const cd_dynamic *d, uint32_t k, int64_t size, cd_graph_shape *shape,
                            cd_dtype *dtype) {
    dynamic_shape(&d->input[k], size, shape);
    *dtype = d->input[k].dtype;
}

void cd_dynamic_result_shape(const cd_dynamic *d, uint32_t k, int64_t size, cd_graph_shape *shape,
                             cd_dtype *dtype) {
    dynamic_shape(&d->result[k], size, shape);
    *dtype = d->result[k].dtype;
}

cdmpp_status cd_dynamic_choose(const cd_dynamic *d, int64_t size, size_t *point, cdmpp_err *err) {
    size_t low = 0, high = d->n;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (d->net[mid].size < size) low = mid + 1;
        else high = mid;
    }
    *point = low;
    if (size < d->net[0].size || low == d->n)
        return CD_FAIL(err, ERANGE, "%s=%lld: programs are there for %lld to %lld",
                       d->o->sizes->over, (long long)size, (long long)d->net[0].size,
                       (long long)d->net[d->n - 1].size);
    if (d->net[low].size != size && d->only_points)
        return CD_FAIL(err, EUNSUPPORTED, "%s=%lld has no program of its own, and %.160s",
                       d->o->sizes->over, (long long)size, d->only_points);
    return CDMPP_OK;
}

/* Through the scratch where the program's is larger. */
static cdmpp_status put_input(cd_dynamic *d, cd_dynamic_net *n, int64_t size, uint32_t k,
                              const void *from, cdmpp_err *err) {
    cd_graph_shape box, whole;
    if (size == n->size) return cd_network_live_write(n->live, k, from, err);
    dynamic_shape(&d->input[k], size, &box);
    dynamic_shape(&d->input[k], n->size, &whole);
    memset(d->scratch, 0, (size_t)dynamic_shape_bytes(&whole, d->input[k].dtype));
    cd_dynamic_copy_box(&box, cd_expr_dtype_bytes(d->input[k].dtype), &box, from, &whole,
                        d->scratch);
    return cd_network_live_write(n->live, k, d->scratch, err);
}

static cdmpp_status get_result(cd_dynamic *d, cd_dynamic_net *n, int64_t size, uint32_t k, void *to,
                               cdmpp_err *err) {
    cd_graph_shape box, whole;
    if (size == n->size) return cd_network_live_read(n->live, k, to, err);
    dynamic_shape(&d->result[k], size, &box);
    dynamic_shape(&d->result[k], n->size, &whole);
    CD_TRY(cd_network_live_read(n->live, k, d->scratch, err));
    cd_dynamic_copy_box(&box, cd_expr_dtype_bytes(d->result[k].dtype), &whole, d->scratch, &box,
                        to);
    return CDMPP_OK;
}

/* A call of a given net, at most as large as it. */
static cdmpp_status dynamic_run(cd_dynamic *d, cd_dynamic_net *n, int64_t size,
                                const void *const *input, void *const *result, cd_dynamic_times *t,
                                cdmpp_err *err) {
    double pass;
    const double from = cd_clock_wall();
    for (uint32_t k = 0; k < d->n_input; k++) CD_TRY(put_input(d, n, size, k, input[k], err));
    cd_network_live_pass(n->live, &pass);
    for (uint32_t k = 0; k < d->n_result; k++) CD_TRY(get_result(d, n, size, k, result[k], err));
    if (t) *t = (cd_dynamic_times){.copy_s = cd_clock_wall() - from - pass, .pass_s = pass};
    return CDMPP_OK;
}

cdmpp_status cd_dynamic_call(cd_dynamic *d, int64_t size, const void *const *input,
                             void *const *result, cd_dynamic_times *t, cdmpp_err *err) {
    size_t k;
    const double from = cd_clock_wall();
    CD_TRY(cd_dynamic_choose(d, size, &k, err));
    const double chosen = cd_clock_wall() - from;
    CD_TRY(dynamic_run(d, &d->net[k], size, input, result, t, err));
    if (t) t->choose_s = chosen;
    return CDMPP_OK;
}

/* ---- open ---- */

static cdmpp_status make_scratch(cd_dynamic *d, cdmpp_err *err) {
    int64_t most = 0;
    for (size_t p = 0; p < d->n; p++)
        for (uint32_t k = 0; k < d->n_input + d->n_result; k++) {
            const cd_dynamic_value *v = k < d->n_input ? &d->input[k] : &d->result[k - d->n_input];
            cd_graph_shape s;
            dynamic_shape(v, d->net[p].size, &s);
            const int64_t bytes = dynamic_shape_bytes(&s, v->dtype);
            if (bytes > most) most = bytes;
        }
    d->scratch = cd_arena_alloc(&d->arena, (size_t)most + 1, 1);
    return d->scratch ? CDMPP_OK : CD_FAIL(err, ENOMEM, "a call");
}

/* (2) of dynamic.h, for the step from point k - 1 to point k. */
static cdmpp_status try_padding(cd_dynamic *d, size_t k, cdmpp_err *err) {
    const int64_t size = d->net[k - 1].size;
    cd_dynamic_data x = {0};
    cdmpp_status st = dynamic_data_make(d, size, &x, err);
    if (!st)
        st =
            dynamic_run(d, &d->net[k - 1], size, (const void *const *)x.input, x.expect, NULL, err);
    if (!st)
        st = dynamic_run(d, &d->net[k], size, (const void *const *)x.input, x.result, NULL, err);
    const double apart = st ? 0 : dynamic_data_difference(d, size, &x);
    cd_arena_free(&x.arena);
    if (st || apart <= CD_DYNAMIC_SAME) return st;
    char text[200];
    (void)snprintf(text, sizeof text,
                   "padding changes results: data of %s=%lld in programs of %lld, by %.2g of the "
                   "largest value",
                   d->o->sizes->over, (long long)size, (long long)d->net[k].size, apart);
    d->only_points = cd_arena_text(&d->arena, text);
    return d->only_points ? CDMPP_OK : CD_FAIL(err, ENOMEM, "a text");
}

static cdmpp_status open_all(cd_dynamic *d, cdmpp_err *err) {
    const cd_dynamic_options *o = d->o;
    const cd_measure_options m = {
        .jobs = o->jobs, .pin = true, .build_limit_s = LONGEST_BUILD_S, .stop = o->stop};
    CD_TRY(cd_measure_open(&m, &d->measure, err));
    if (!(d->net = CD_NEWN(&d->arena, cd_dynamic_net, o->sizes->n)))
        return CD_FAIL(err, ENOMEM, "points");
    for (size_t k = 0; k < o->sizes->n; k++) {
        d->n++; /* closed after an error too */
        CD_TRY(dynamic_net_open(d, o->sizes->size[k], &d->net[k], err));
        if (o->stop && *o->stop) return CD_FAIL(err, EINTERRUPTED, "while programs were made");
    }
    CD_TRY(dynamic_values(d, err));
    CD_TRY(make_scratch(d, err));
    for (size_t k = 1; k < d->n && !d->only_points; k++) CD_TRY(try_padding(d, k, err));
    return CDMPP_OK;
}

cdmpp_status cd_dynamic_open(const cd_dynamic_options *o, cd_dynamic **out, cdmpp_err *err) {
    cd_dynamic *d = cd_mem_zalloc(1, sizeof *d);
    *out = NULL;
    if (!d) return CD_FAIL(err, ENOMEM, "a network");
    d->o = o;
    const cdmpp_status st = open_all(d, err);
    if (st) cd_dynamic_close(d);
    else *out = d;
    return st;
}

void cd_dynamic_close(cd_dynamic *d) {
    if (!d) return;
    for (size_t k = 0; k < d->n; k++) dynamic_net_close(&d->net[k]);
    cd_measure_close(d->measure);
    cd_arena_free(&d->arena);
    cd_mem_free(d);
}

/* Asked sizes: a call beside one of programs that are made for just that size. Both run in turns: a
 * change of the machine's speed meets both. */

enum { LEAST_TURNS = 7, MOST_TURNS = 300, CALLS = 3, CHOICES = 1000 };
static const double BUDGET_S = 1;

typedef struct {
    double copy[MOST_TURNS], pass[MOST_TURNS], call[MOST_TURNS], exact[MOST_TURNS],
        ratio[MOST_TURNS];
    uint32_t n;
} turns;

/* The fastest of some calls in a row; the first one finds the caches of the other programs. */
static cdmpp_status turn(cd_dynamic *d, cd_dynamic_net *n, int64_t size, const cd_dynamic_data *x,
                         void **result, cd_dynamic_times *best, cdmpp_err *err) {
    cd_dynamic_times t;
    for (int k = 0; k < CALLS; k++) {
        CD_TRY(dynamic_run(d, n, size, (const void *const *)x->input, result, &t, err));
        if (!k || t.copy_s + t.pass_s < best->copy_s + best->pass_s) *best = t;
    }
    return CDMPP_OK;
}

/* One choice is shorter than the clock can tell. */
static double time_choice(const cd_dynamic *d, int64_t size) {
    size_t k = 0, sum = 0;
    const double from = cd_clock_wall();
    for (int i = 0; i < CHOICES; i++) {
        (void)cd_dynamic_choose(d, size, &k, NULL);
        sum += k;
    }
    const double s = (cd_clock_wall() - from) / CHOICES;
    return sum < SIZE_MAX ? s : 0;
}

static void settle(turns *t, cd_dynamic_row *row) {
    double *const v[] = {t->copy, t->pass, t->call, t->exact, t->ratio};
    for (size_t k = 0; k < sizeof v / sizeof *v; k++) cd_sort_doubles(v[k], t->n);
    row->time.copy_s = cd_sort_median(t->copy, t->n);
    row->time.pass_s = cd_sort_median(t->pass, t->n);
    row->call_s = cd_sort_median(t->call, t->n);
    row->exact_s = cd_sort_median(t->exact, t->n);
    row->loss = cd_sort_median(t->ratio, t->n) - 1;
    row->low = cd_sort_quantile(t->ratio, t->n, 0.25) - 1,
    row->high = cd_sort_quantile(t->ratio, t->n, 0.75) - 1;
}

/* `point` NULL: nothing serves the size, and only the exact programs are timed. */
static cdmpp_status time_both(cd_dynamic *d, cd_dynamic_net *point, cd_dynamic_net *exact,
                              cd_dynamic_row *row, const cd_dynamic_data *x, cdmpp_err *err) {
    const double until = cd_clock_wall() + (d->o->budget_s > 0 ? d->o->budget_s : BUDGET_S);
    cd_dynamic_times a = {0}, b;
    turns t;
    for (t.n = 0; t.n < MOST_TURNS && (t.n < LEAST_TURNS || cd_clock_wall() < until); t.n++) {
        if (d->o->stop && *d->o->stop) return CD_FAIL(err, EINTERRUPTED, "while sizes were timed");
        if (point) CD_TRY(turn(d, point, row->size, x, x->result, &a, err));
        if (exact) CD_TRY(turn(d, exact, row->size, x, x->expect, &b, err));
        else b = a;
        t.copy[t.n] = a.copy_s, t.pass[t.n] = a.pass_s;
        t.call[t.n] = row->time.choose_s + a.copy_s + a.pass_s;
        t.exact[t.n] = b.copy_s + b.pass_s;
        t.ratio[t.n] = exact ? t.call[t.n] / t.exact[t.n] : 1;
    }
    settle(&t, row);
    row->difference = point && exact ? dynamic_data_difference(d, row->size, x) : 0;
    return CDMPP_OK;
}

static cdmpp_status run_row(cd_dynamic *d, cd_dynamic_row *row, cdmpp_err *err) {
    cd_dynamic_net exact = {0};
    cd_dynamic_data x = {0};
    size_t k = 0;
    cdmpp_status st = CDMPP_OK;
    row->st = cd_dynamic_choose(d, row->size, &k, &row->err);
    if (row->st == CDMPP_ERANGE) return CDMPP_OK;
    if (row->st && d->only_points) return CDMPP_OK; /* its shapes at this size are not known */
    cd_dynamic_net *point = &d->net[k];
    row->point = point->size;
    row->time.choose_s = time_choice(d, row->size);
    if (point->size != row->size) st = dynamic_net_open(d, row->size, &exact, err);
    if (!st) st = dynamic_data_make(d, row->size, &x, err);
    if (!st) st = time_both(d, point, exact.live ? &exact : NULL, row, &x, err);
    cd_arena_free(&x.arena);
    dynamic_net_close(&exact);
    if (!st && row->difference > CD_DYNAMIC_SAME)
        row->st = CD_FAIL(&row->err, ENUMERIC,
                          "%s=%lld: results differ from those of programs of this size by %.2g of "
                          "the largest value",
                          d->o->sizes->over, (long long)row->size, row->difference);
    return st;
}

cdmpp_status cd_dynamic_measure(cd_dynamic *d, const int64_t *size, size_t n, cd_dynamic_result *r,
                                cdmpp_err *err) {
    cd_affinity all;
    cdmpp_status st = CDMPP_OK;
    if (n > CD_DYNAMIC_MOST_ASKED)
        return CD_FAIL(err, EUSAGE, "%zu sizes: at most %d", n, CD_DYNAMIC_MOST_ASKED);
    r->left = cd_host_load_left(1);
    for (r->n = 0; r->n < n && !st; r->n++) {
        r->row[r->n] = (cd_dynamic_row){.size = size[r->n]};
        cd_affinity_get(&all);
        (void)cd_affinity_last(1);
        st = run_row(d, &r->row[r->n], err);
        cd_affinity_set(&all, 0);
    }
    return st;
}

/* Asked sizes as text and as JSON. */

static void put_points(cd_buf *b, const cd_dynamic *d) {
    cd_buf_putf(b, "%s over %s: programs at", d->net[0].graph->name, d->o->sizes->over);
    for (size_t k = 0; k < d->n; k++) cd_buf_putf(b, " %lld", (long long)d->net[k].size);
    cd_buf_putf(b, ", %.1f MiB in memory\n", (double)cd_dynamic_bytes(d) / (1 << 20));
    if (d->only_points) cd_buf_putf(b, "only these sizes are served: %s\n", d->only_points);
}

void cd_dynamic_text(cd_buf *b, const cd_dynamic *d, const cd_dynamic_result *r) {
    put_points(b, d);
    cd_buf_putf(b, "%8s %8s %-6s  %9s  %9s  %9s  %9s  %9s %8s  %-18s %s\n", "size", "program",
                "how", "choosing", "copying", "pass", "call", "exact", "loss", "quartiles",
                "difference");
    for (size_t k = 0; k < r->n; k++) {
        const cd_dynamic_row *x = &r->row[k];
        if (!x->point) {
            cd_buf_putf(b, "%8lld %8s %s\n", (long long)x->size, "none", x->err.msg);
            continue;
        }
        const double of[] = {x->time.choose_s, x->time.copy_s, x->time.pass_s, x->call_s,
                             x->exact_s};
        cd_buf_putf(b, "%8lld %8lld %-6s", (long long)x->size, (long long)x->point,
                    x->point == x->size ? "exact" : "padded");
        for (size_t i = 0; i < sizeof of / sizeof *of; i++)
            cd_buf_puts(b, "  "), cd_units_put_seconds_wide(b, of[i]);
        cd_buf_putf(b, " %6.1f %%", 100 * x->loss);
        if (x->point == x->size) cd_buf_puts(b, "\n");
        else
            cd_buf_putf(b, "  %5.1f .. %5.1f %%   %.1e\n", 100 * x->low, 100 * x->high,
                        x->difference);
    }
    cd_buf_putf(b, "others leave %.0f %% of the processor\n", 100 * r->left);
}

static void put_row(cd_json_writer *w, const cd_dynamic_row *x) {
    cd_json_write_open(w, '{');
    cd_json_write_member_int(w, "size", x->size);
    if (x->point) {
        cd_json_write_member_int(w, "program", x->point);
        cd_json_write_member_str(w, "how", x->point == x->size ? "exact" : "padded");
        cd_json_write_member_real(w, "choose_s", x->time.choose_s);
        cd_json_write_member_real(w, "copy_s", x->time.copy_s);
        cd_json_write_member_real(w, "pass_s", x->time.pass_s);
        cd_json_write_member_real(w, "call_s", x->call_s);
        cd_json_write_member_real(w, "exact_call_s", x->exact_s);
        cd_json_write_member_real(w, "loss", x->loss);
        cd_json_write_member_real(w, "loss_low", x->low);
        cd_json_write_member_real(w, "loss_high", x->high);
        cd_json_write_member_real(w, "difference", x->difference);
    }
    if (x->st) cd_json_write_member_str(w, "error", x->err.msg);
    cd_json_write_close(w, '}');
}

void cd_dynamic_json(cd_buf *b, const cd_dynamic *d, const cd_dynamic_result *r) {
    cd_json_writer w = {.out = b, .colon = ":", .sep = ","};
    cd_json_write_open(&w, '{');
    cd_json_write_member_str(&w, "network", d->net[0].graph->name);
    cd_json_write_member_str(&w, "over", d->o->sizes->over);
    cd_json_write_key(&w, "programs"), cd_json_write_open(&w, '[');
    for (size_t k = 0; k < d->n; k++) cd_json_write_int(&w, d->net[k].size);
    cd_json_write_close(&w, ']');
    cd_json_write_member_int(&w, "bytes", cd_dynamic_bytes(d));
    if (d->only_points) cd_json_write_member_str(&w, "only_programs", d->only_points);
    cd_json_write_member_real(&w, "left", r->left);
    cd_json_write_key(&w, "sizes"), cd_json_write_open(&w, '[');
    for (size_t k = 0; k < r->n; k++) put_row(&w, &r->row[k]);
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
}
