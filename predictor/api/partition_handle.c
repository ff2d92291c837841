/* cdmpp_partition: a plan of a network over devices, made by the rooms of cdmpp-partition and kept
 * whole, so that every accessor reads what the command prints. Texts of the caller's options are
 * copied, because parts of the result refer to them. */
#include <math.h>
#include <string.h>

#include "predictor/api/network_handle_internal.h"
#include "predictor/partition/report/report.h"

struct cdmpp_partition {
    cd_arena arena; /* texts of options */
    cd_partition_options options;
    cd_partition impl; /* borrows options */
};

/* ---- options ---- */

static cdmpp_status check(const cdmpp_partition_options *o, cdmpp_err *err) {
    if (o->batch < 0 || o->batch > 1048576 || o->input_size < 0 || o->trials < 0 || o->seed < 0 ||
        o->nthreads < 0)
        return CD_FAIL(err, EUSAGE,
                       "cdmpp_partition_options: a number below 0, or a batch above 1048576");
    if (o->granules && (o->granules < 2 || o->granules > 64))
        return CD_FAIL(err, EUSAGE, "cdmpp_partition_options.granules: expected 2..64, found %d",
                       o->granules);
    if ((o->n_model && !o->model) || (o->n_as && !o->as) || (o->n_schedules && !o->schedules) ||
        (o->n_records && !o->records))
        return CD_FAIL(err, EUSAGE, "cdmpp_partition_options: a list is NULL");
    return CDMPP_OK;
}

static cdmpp_status copy_options(cdmpp_partition *p, const char *from,
                                 const cdmpp_partition_options *o, cdmpp_err *err) {
    cd_partition_options *to = &p->options;
    cd_arena *a = &p->arena;
    *to = cd_partition_defaults();
    to->batch = (int)o->batch;
    to->input_size = o->input_size;
    to->trials = o->trials;
    to->seed = o->seed;
    to->jobs = o->nthreads ? o->nthreads : 1;
    to->no_split = o->whole != 0;
    to->granules = o->granules;
    const bool ok = cd_network_handle_text(a, from, &to->network) &&
                    cd_network_handle_text(a, o->devices, &to->devices) &&
                    cd_network_handle_text(a, o->machine, &to->machine) &&
                    cd_network_handle_text(a, o->devices_file, &to->descriptions) &&
                    cd_network_handle_text(a, o->layout, &to->layout) &&
                    cd_network_handle_text(a, o->dims, &to->dims) &&
                    cd_network_handle_text(a, o->rules, &to->rules) &&
                    cd_network_handle_texts(a, o->model, o->n_model, &to->cost_model) &&
                    cd_network_handle_texts(a, o->as, o->n_as, &to->as) &&
                    cd_network_handle_texts(a, o->schedules, o->n_schedules, &to->schedules) &&
                    cd_network_handle_texts(a, o->records, o->n_records, &to->records);
    return ok ? CDMPP_OK : CD_FAIL(err, ENOMEM, "partition handle");
}

/* ---- making ---- */

/* The caller may pass no err; the rooms below always get one. */
cdmpp_status cdmpp_partition_network(const char *from, const cdmpp_partition_options *options,
                                     cdmpp_partition **out, cdmpp_err *err) {
    cdmpp_partition_options o = {0};
    cdmpp_err none;
    err = err ? err : &none;
    if (options)
        CD_TRY(cd_api_copy_struct(&o, sizeof o, options, sizeof o, "cdmpp_partition_options", err));
    CD_TRY(check(&o, err));
    cdmpp_partition *p = cd_mem_zalloc(1, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "partition handle");
    cdmpp_status st = copy_options(p, from, &o, err);
    if (!st) st = cd_partition_check(&p->options, err);
    if (!st) st = cd_partition_open(&p->options, &p->impl, err);
    if (!st) st = cd_partition_compute(&p->impl, err);
    if (st) cdmpp_partition_free(p);
    else *out = p;
    return st;
}

void cdmpp_partition_free(cdmpp_partition *p) {
    if (!p) return;
    cd_partition_free(&p->impl);
    cd_arena_free(&p->arena);
    cd_mem_free(p);
}

/* ---- reading ---- */

/* Ours into the caller's struct, as much as fits: an older caller has a shorter one. `first`: size
 * in the version that brought it. */
static cdmpp_status give(void *out, const void *ours, size_t size, size_t first, const char *name,
                         cdmpp_err *err) {
    size_t theirs;
    memcpy(&theirs, out, sizeof theirs);
    if (theirs < first || theirs > 4096)
        return CD_FAIL(err, EUSAGE, "%s.size: expected %zu, found %zu", name, size, theirs);
    memset(out, 0, theirs);
    memcpy(out, ours, theirs < size ? theirs : size);
    memcpy(out, &theirs, sizeof theirs);
    return CDMPP_OK;
}

static double known(double v) { return isfinite(v) ? v : (double)NAN; }
static const char *text(const char *s) { return s ? s : ""; }

cdmpp_status cdmpp_partition_summary(const cdmpp_partition *p, cdmpp_partition_total *out,
                                     cdmpp_err *err) {
    const cd_shard_plan *n = p->impl.plan;
    const cdmpp_partition_total t = {.network = text(n->network),
                                     .verdict = text(n->verdict),
                                     .seconds = known(n->predicted_s),
                                     .alone = cd_partition_alone_s(&p->impl, false),
                                     .gain = known(n->predicted_gain),
                                     .ceiling = known(n->ceiling),
                                     .bound = known(n->bound_s),
                                     .split = n->split,
                                     .n_device = n->n_device,
                                     .n_op = n->n_op};
    return give(out, &t, sizeof t, sizeof t, "cdmpp_partition_total", err);
}

const char *cdmpp_partition_device(const cdmpp_partition *p, size_t d) {
    return d < p->impl.plan->n_device ? p->impl.plan->device[d] : NULL;
}

double cdmpp_partition_alone(const cdmpp_partition *p, size_t d) {
    const cd_shard_plan *n = p->impl.plan;
    const char *name = cdmpp_partition_device(p, d);
    for (uint32_t k = 0; name && k < n->n_base; k++)
        if (!strcmp(n->base[k].name, name)) return known(n->base[k].predicted_s);
    return (double)NAN;
}

cdmpp_status cdmpp_partition_operator(const cdmpp_partition *p, size_t i, cdmpp_partition_op *out,
                                      cdmpp_err *err) {
    const cd_shard_plan *n = p->impl.plan;
    uint32_t d;
    if (i >= n->n_op) return CD_FAIL(err, ERANGE, "operator %zu of %u", i, n->n_op);
    const cd_shard_plan_op *o = &n->op[i];
    const cdmpp_partition_op t = {.name = text(o->name),
                                  .type = text(o->type),
                                  .dim = text(o->dim),
                                  .why = text(o->why),
                                  .n_shard = o->n_part,
                                  .seconds = known(o->seconds),
                                  .exchange = known(o->exchange_s),
                                  .alone = known(cd_partition_best_s(n, o, &d))};
    return give(out, &t, sizeof t, sizeof t, "cdmpp_partition_op", err);
}

cdmpp_status cdmpp_partition_shard(const cdmpp_partition *p, size_t i, size_t k,
                                   cdmpp_partition_piece *out, cdmpp_err *err) {
    const cd_shard_plan *n = p->impl.plan;
    if (i >= n->n_op || k >= n->op[i].n_part)
        return CD_FAIL(err, ERANGE, "shard %zu of operator %zu", k, i);
    const cd_shard_plan_part *s = &n->op[i].part[k];
    const cdmpp_partition_piece t = {
        .device = s->device, .lo = s->lo, .hi = s->hi, .seconds = known(s->seconds)};
    return give(out, &t, sizeof t, sizeof t, "cdmpp_partition_piece", err);
}

cdmpp_status cdmpp_partition_json(const cdmpp_partition *p, char *to, size_t cap, size_t *len,
                                  cdmpp_err *err) {
    cd_buf b = {0};
    cd_partition_report_json(&p->impl, &b);
    return cd_api_give_text(&b, "partition as text", to, cap, len, err);
}
