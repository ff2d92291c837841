/* Devices of the cases: which they are, whose model answers for them, their target, hardware and
 * queue.
 *
 * A device needs no description: a model knows whether it is a GPU, and a target can be made from
 * that. The description adds cores, width of vectors and memory. Where the options name no device,
 * the first of these decides: -model= of the target, graphs, the only device that models know, the
 * folders of logs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "features/sketch/sketch.h"
#include "predictor/network_estimate/network_estimate_internal.h"
#include "profiler/describe/describe.h"
#include "profiler/host/host.h"

enum { VECTOR_BYTES = 64, AMD_WARP = 64 };
/* Of the host for a launch: 2 to 5 us are usual for CUDA and HIP. */
static const double GPU_ISSUE_S = 3e-6;
/* Of a replay of given times that names no device. */
static const char NOBODY[] = "device";

/* ---- targets ---- */
/* Of options.target: that of this device, else the last one of all. */
static const char *given_target(const cd_network_estimate_options *o, const char *name) {
    const char *all = NULL;
    for (size_t k = 0; k < o->target.n; k++) {
        cd_str device;
        const char *target = cd_target_of_device(o->target.v[k], &device);
        if (device.n && cd_str_is(device, name)) return target;
        if (!device.n) all = target;
    }
    return all;
}

/* The device that programs are made for. */
static const cd_device *programs_of(const cd_network_estimate *e,
                                    const cd_network_estimate_device *d) {
    return d->scaled ? cd_model_set_device(&e->models, d->stands) : d->about;
}

static cd_hardware hardware_of(const cd_network_estimate_device *d, const cd_device *about) {
    const double cores = !about ? 1 : about->cores_used > 0 ? about->cores_used : about->cores;
    cd_hardware h = cd_target_hardware(d->gpu,
                                       d->gpu       ? 0
                                       : cores >= 1 ? (int64_t)cores
                                                    : 1,
                                       VECTOR_BYTES);
    if (!d->gpu || !about || about->warp != AMD_WARP) return h;
    h.max_shared_memory_per_block = 65536;
    h.max_vthread_extent = 16;
    h.warp_size = AMD_WARP;
    return h;
}

/* -1: neither a model nor a description says. */
static int gpu_of(const cd_network_estimate_device *d) {
    const char *name = d->stands ? d->stands : d->name;
    const int i = d->model ? cd_model_find_device(d->model, name, strlen(name)) : -1;
    if (i >= 0) return cd_model_device_is_gpu(d->model, (size_t)i);
    return d->about ? d->about->kind == CD_DEVICE_GPU : -1;
}

/* A model of one core answers for one core, whatever the target says. */
static void say_cores(const cd_network_estimate *e, const cd_network_estimate_device *d) {
    char cores[CD_MODEL_SET_CORES];
    const char *of =
        d->model && !d->gpu && !d->scaled ? cd_model_set_cores(programs_of(e, d), cores) : NULL;
    const cd_str asked = cd_target_option(d->target, "-num-cores");
    if (!of) return;
    if (asked.n && strtod(asked.p, NULL) != programs_of(e, d)->cores_used)
        cd_log_put(e->o->log, CD_LOG_WARNING,
                   "--target: -num-cores=%.*s changes nothing: times of %s are of %s, as the model "
                   "was trained",
                   (int)asked.n, asked.p, d->name, of);
}

/* Programs of one kind of device are no programs of the other. Nobody knows of a device that
 * neither a model nor a description tells. */
static cdmpp_status check_kind(const cd_network_estimate_device *d, const char *target,
                               cdmpp_err *err) {
    const int is = gpu_of(d);
    const bool wants = cd_target_is_gpu((cd_str){target, strlen(target)});
    if (is < 0 || (is > 0) == wants || !d->model) return CDMPP_OK;
    return CD_FAIL(err, EUSAGE,
                   "--target: programs of %.*s are %s's, and %.60s is a %s: leave --target out, or "
                   "name a device of that kind (--list-devices)",
                   (int)strcspn(target, " "), target, wants ? "a GPU" : "a processor",
                   d->guessed ? "this machine" : d->name, is ? "GPU" : "processor");
}

/* Of what is asked about, and of what runs here. A machine that nobody named has the instructions
 * that are here, whoever stands in for it; another device has those of its description, and what of
 * it runs here, with --run, those that are here. */
static cdmpp_status set_targets(cd_network_estimate *e, cd_network_estimate_device *d,
                                cdmpp_err *err) {
    const char *given = given_target(e->o, d->name);
    if (given) CD_TRY(check_kind(d, given, err));
    d->gpu = given ? cd_target_is_gpu((cd_str){given, strlen(given)}) : gpu_of(d) > 0;
    const bool here = d->guessed && !d->gpu;
    if (given)
        d->target = here ? cd_isa_target_of(&e->arena, NULL, given)
                         : cd_usual_target_vectors(&e->arena, given, programs_of(e, d));
    else
        d->target = here ? cd_usual_target_here(&e->arena, d->name, 0)
                         : cd_usual_target_make(&e->arena, d->name, programs_of(e, d), d->gpu, 0);
    d->runs = given                    ? given
              : d->target && e->o->run ? cd_isa_target_runs(&e->arena, d->target)
                                       : d->target;
    if (!d->target || !d->runs) return CD_FAIL(err, ENOMEM, "targets");
    if (!given && d->runs != d->target)
        cd_log_put(e->o->log, CD_LOG_WARNING,
                   "this processor lacks instructions of %s: programs run here with those that it "
                   "has (%s)",
                   d->name, d->runs);
    return CDMPP_OK;
}

/* Times come with the network, so that any name will do. */
static bool any_name(const cd_network_estimate *e) {
    return e->o->replay_given || e->o->from_records;
}

static cdmpp_status no_model(const cd_network_estimate *e, const char *name, const cd_device *about,
                             cdmpp_err *err) {
    cd_buf known = {0}, near = {0};
    cd_model_set_list(&e->models, &known);
    cd_model_set_near(&e->models, name, &near);
    const char *why = about ? ", and no known one can stand for it: that takes peaks (fp32_gflops, "
                              "bandwidth_gb_s) in the descriptions of both"
                            : ", and nobody describes it (--devices)";
    const cdmpp_status st =
        known.n
            ? CD_FAIL(
                  err, EMODEL,
                  "no model knows device '%.60s'%s%s; --list-devices tells all, known are %.300s",
                  name, why, near.p ? near.p : "", known.p)
            : CD_FAIL(err, EMODEL, "no model for device '%.60s': give one with --cost-model", name);
    cd_buf_free(&near);
    cd_buf_free(&known);
    return st;
}

/* Everything of a device but its name, which may become the described one: models may know "zen5"
 * only as "zen5-avx512". The target decides whether it is a GPU, else the model. Without a model
 * only times of the graph or of records are possible. */
static cdmpp_status fill(cd_network_estimate *e, cd_network_estimate_device *d, cdmpp_err *err) {
    d->about = cd_model_set_device(&e->models, d->name);
    CD_TRY(cd_model_set_tasks(&e->models, d->name, false, &d->model, err));
    if (!d->model && d->about && strcmp(d->about->name, d->name) != 0) {
        CD_TRY(cd_model_set_tasks(&e->models, d->about->name, false, &d->model, err));
        if (d->model) d->name = d->about->name;
    }
    CD_TRY(cd_model_set_check_kind(&e->models, d->model, d->name, err));
    if (!d->model && !e->o->replay_given && !e->o->from_records)
        CD_TRY(cd_network_estimate_stand_in(e, d, err));
    if (d->guessed) d->stands = d->name;
    else if (d->stands && !d->scaled) d->numbers = cd_model_set_numbers(d->model, d->about);
    if (cd_model_set_also(&e->models, d->name))
        cd_log_put(e->o->log, CD_LOG_WARNING, "%s knows %s too: a model before it answers",
                   cd_model_set_also(&e->models, d->name), d->name);
    if (!e->o->replay_given && !e->o->from_records)
        cd_model_set_warn(&e->models, d->model, d->name, d->stands, e->o->log);
    CD_TRY(cd_model_set_ops(&e->models, d->name, &d->opmodel, err));
    CD_TRY(cd_model_set_narrow(&e->models, &d->narrow, err));
    if (!d->label) d->label = d->name;
    CD_TRY(set_targets(e, d, err));
    d->hardware = hardware_of(d, programs_of(e, d));
    say_cores(e, d);
    return d->model || d->opmodel || any_name(e) ? CDMPP_OK : no_model(e, d->name, d->about, err);
}

/* ---- which, where the options name none ---- */
typedef struct {
    const cd_model_set *models;
    size_t *n; /* (n_known) of the k-th device that models know */
    size_t n_known;
} census;

static const char *known_at(const cd_model_set *m, size_t at) {
    for (size_t k = 0; k < m->n; k++) {
        if (at < m->v[k].n_device) return m->v[k].device[at];
        at -= m->v[k].n_device;
    }
    return NULL;
}

/* Called for each file: logs of a device lie in a folder of its name. False: the file itself is not
 * wanted. */
static bool count_log(const char *path, void *ctx) {
    census *c = ctx;
    const char *end = strrchr(path, '/'), *name = end;
    while (name && name > path && name[-1] != '/') name--;
    for (size_t k = 0; end && k < c->n_known; k++) {
        const char *d = known_at(c->models, k);
        if (strlen(d) == (size_t)(end - name) && !strncmp(d, name, (size_t)(end - name))) c->n[k]++;
    }
    return false;
}

/* The device that most of the logs are of. A guess, hence a message; a warning where other devices
 * have logs too. */
static const char *device_of_logs(cd_network_estimate *e) {
    census c = {.models = &e->models};
    while (known_at(c.models, c.n_known)) c.n_known++;
    c.n = CD_NEWN(&e->arena, size_t, c.n_known + 1);
    if (!c.n) return NULL; /* as if there were no logs: the options have to name a device */
    const char *const *path;
    size_t n, best = 0, all = 0;
    for (size_t k = 0; k < e->o->records.n; k++)
        (void)cd_file_list(&e->arena, e->o->records.v[k], count_log, &c, &path, &n, NULL);
    for (size_t k = 0; k < c.n_known; k++) {
        all += c.n[k];
        if (c.n[k] > c.n[best]) best = k;
    }
    if (!c.n[best]) return NULL;
    const char *d = known_at(&e->models, best);
    cd_log_put(e->o->log, all > c.n[best] ? CD_LOG_WARNING : CD_LOG_DEBUG,
               "device %s: %zu of %zu logs are of it; --device says another", d, c.n[best], all);
    return d;
}

static const char *only_device(const cd_network_estimate *e) {
    const char *one = known_at(&e->models, 0);
    for (size_t k = 1; one && known_at(&e->models, k); k++)
        if (strcmp(known_at(&e->models, k), one) != 0) return NULL;
    return one;
}

/* A device that a model knows and the graph's first node with a device names. */
static const char *device_of_nodes(const cd_network_estimate *e, const cd_network_graph *g) {
    uint32_t i = 0;
    while (i < g->n_node && !g->node[i].device) i++;
    for (size_t k = 0; i < g->n_node && known_at(&e->models, k); k++)
        if (!strcmp(known_at(&e->models, k), g->node[i].device)) return g->node[i].device;
    return NULL;
}

/* What the graphs of files that say one agree on; NULL: nothing. */
static const char *device_of_graphs(const cd_network_estimate *e) {
    const char *d = NULL;
    for (size_t k = 0; k < e->n_source; k++) {
        const cd_network_graph *of = e->source[k]->graph;
        const char *g = !of ? NULL : of->device ? of->device : device_of_nodes(e, of);
        if (g && d && strcmp(d, g) != 0) return NULL;
        if (g) d = g;
    }
    return d;
}

/* What records that are measured here call this machine; NULL: nobody can say. */
static const char *own_name(cd_network_estimate *e) {
    cd_describe_namer namer = {0};
    const char *name = cd_describe_namer_ask(&namer, (cd_str){"llvm", 4});
    return name ? cd_str_dup(&e->arena, (cd_str){name, strlen(name)}) : NULL;
}

/* -model= of a target; n == 0: it names no device. */
static cd_str model_of(const char *target) {
    const cd_str is = cd_target_option(target, "-model");
    /* TVM writes that when it was not told */
    return cd_str_is(is, "unknown") ? (cd_str){"", 0} : is;
}

/* Of a target for all devices, where nobody names one otherwise; NULL: it names none. */
static const char *named_by_target(cd_network_estimate *e) {
    const char *target = given_target(e->o, "");
    const cd_str is = target ? model_of(target) : (cd_str){"", 0};
    return is.n ? cd_str_dup(&e->arena, is) : NULL;
}

/* A target that names another device than the one that it is for would have programs of the one
 * answered for as of the other. */
static cdmpp_status check_named(cd_network_estimate *e, const char *name, cdmpp_err *err) {
    const char *target = given_target(e->o, name);
    const cd_str is = target ? model_of(target) : (cd_str){"", 0};
    const char *said = is.n ? cd_str_dup(&e->arena, is) : name;
    if (!said) return CD_FAIL(err, ENOMEM, "names");
    if (!strcmp(said, name) || cd_device_table_same(e->models.devices, said, name)) return CDMPP_OK;
    return CD_FAIL(err, EUSAGE,
                   "--target says -model=%.60s, and the device is %.60s: leave -model= out, or "
                   "name one device",
                   said, name);
}

/* A GPU's target that no device has: programs of this machine's GPU. *out NULL: there is no such
 * target. */
static cdmpp_status device_of_target(cd_network_estimate *e, const char **out, cdmpp_err *err) {
    const char *target = given_target(e->o, "");
    const cd_backend_kind *k =
        target ? cd_backend_for_target((cd_str){target, strlen(target)}) : NULL;
    *out = NULL;
    if (!k || k->dialect == CD_DIALECT_C || e->o->from_records) return CDMPP_OK;
    /* a graph may have all times itself */
    if (!e->models.n && !e->o->graph.n) return cd_default_model_gpu_missing(k->name, err);
    return cd_model_set_gpu_host(&e->models, k->name, e->o->log, out, err);
}

/* One device, from the target, graphs, models or logs. With times from the graph any name will
 * do. */
static cdmpp_status default_device(cd_network_estimate *e, const char **name, const char **also,
                                   cdmpp_err *err) {
    const char *d = named_by_target(e);
    if (!d) d = device_of_graphs(e);
    /* here-gpu.cdmpp was not named: it is of one back end */
    if (!d && !e->models.gpu_path) d = only_device(e);
    if (!d) d = device_of_logs(e);
    if (!d && e->o->replay_given) d = NOBODY;
    if (!d) CD_TRY(device_of_target(e, &d, err));
    if (!d) {
        CD_TRY(cd_model_set_host(&e->models, e->o->log, &d, err));
        if (d) *also = own_name(e);
    }
    if (!d && e->o->from_records && (d = own_name(e)))
        cd_log_put(e->o->log, CD_LOG_WARNING,
                   "device: %s, this machine; --device says another one of the records", d);
    if (!d && !e->models.n) return cd_default_model_missing(err);
    if (!d) {
        cd_buf known = {0};
        cd_model_set_list(&e->models, &known);
        const cdmpp_status st =
            e->o->device
                ? CD_FAIL(err, EUSAGE,
                          "--device: which device is this machine ('here')? The models know %.400s",
                          known.p ? known.p : "none")
                : CD_FAIL(err, EUSAGE, "--device is missing; the models know %.400s",
                          known.p ? known.p : "none");
        cd_buf_free(&known);
        return st;
    }
    *name = d;
    return CDMPP_OK;
}

/* This machine is no other device, even where that one stands for it. */
static bool is_there(const cd_network_estimate *e, const cd_network_estimate_device *d) {
    for (size_t k = 0; k < e->n_device; k++)
        if (!strcmp(e->device[k].name, d->name) && e->device[k].guessed == d->guessed) return true;
    return false;
}

/* A name that is typed wrong is an error before any model is loaded. */
static cdmpp_status check_names(const cd_network_estimate *e, const char *const *name, size_t n,
                                cdmpp_err *err) {
    if (any_name(e) || e->o->nearest) return CDMPP_OK;
    for (size_t k = 0; k < n; k++)
        if (!cd_model_set_is_here(&e->models, name[k]) && !cd_model_set_has(&e->models, name[k]))
            return no_model(e, name[k], NULL, err);
    return CDMPP_OK;
}

/* Its name, and what it is for. name NULL: none is given, which is this machine where nothing else
 * says which. */
static cdmpp_status named(cd_network_estimate *e, const char *name, cd_network_estimate_device *d,
                          cdmpp_err *err) {
    if (name && !cd_model_set_is_here(&e->models, name)) {
        d->name = name;
        return check_named(e, name, err);
    }
    CD_TRY(default_device(e, &d->name, &d->also, err));
    d->unnamed = d->name == NOBODY;
    d->guessed = e->models.guessed;
    if (name && d->guessed) d->label = CD_MODEL_SET_HERE;
    return CDMPP_OK;
}

static void add(cd_network_estimate *e, const char *given) {
    const cd_network_estimate_device *d = &e->device[e->n_device];
    if (!is_there(e, d)) e->n_device++;
    else
        cd_log_put(e->o->log, CD_LOG_WARNING,
                   strcmp(given, d->name) != 0 ? "--device: %s is %s, which is there already"
                                               : "--device: %s is there already",
                   given, d->name);
}

static cdmpp_status check_targets(const cd_network_estimate *e, cdmpp_err *err) {
    cd_str of;
    for (size_t k = 0; k < e->o->target.n; k++) {
        const char *target = cd_target_of_device(e->o->target.v[k], &of);
        CD_TRY(cd_target_check(target, e->o->log, err));
        CD_TRY(cd_backend_check_target(target, err));
    }
    return CDMPP_OK;
}

/* Two names of one device make one: filling may have replaced an alias by the described name. */
cdmpp_status cd_network_estimate_devices(cd_network_estimate *e, cdmpp_err *err) {
    const char **name = NULL;
    size_t n = 1;
    CD_TRY(check_targets(e, err));
    if (e->o->device) {
        CD_TRY(cd_err_key(err,
                          cd_network_estimate_split_list(&e->arena, e->o->device, &name, &n, err),
                          "--device"));
        if (!n)
            return CD_FAIL(err, EUSAGE, "--device: expected names, found '%.60s'", e->o->device);
        CD_TRY(check_names(e, name, n, err));
    }
    if (!(e->device = CD_NEWN(&e->arena, cd_network_estimate_device, n)))
        return CD_FAIL(err, ENOMEM, "%zu devices", n);
    for (size_t k = 0; k < n; k++) {
        CD_TRY(named(e, name ? name[k] : NULL, &e->device[e->n_device], err));
        CD_TRY(fill(e, &e->device[e->n_device], err));
        add(e, name ? name[k] : e->device[e->n_device].name);
    }
    return CDMPP_OK;
}

/* Devices that only graphs name are in a list: pointers to them must stay valid while it grows. */
cdmpp_status cd_network_estimate_device_get(cd_network_estimate *e, const char *name,
                                            cd_network_estimate_device **out, cdmpp_err *err) {
    for (size_t k = 0; k < e->n_device; k++)
        if (!strcmp(e->device[k].name, name)) {
            *out = &e->device[k];
            return CDMPP_OK;
        }
    for (cd_network_estimate_device *d = e->more; d; d = d->next)
        if (!strcmp(d->name, name)) {
            *out = d;
            return CDMPP_OK;
        }
    cd_network_estimate_device *d = CD_NEW(&e->arena, cd_network_estimate_device);
    if (!d) return CD_FAIL(err, ENOMEM, "a device");
    d->name = name;
    CD_TRY(fill(e, d, err));
    d->next = e->more;
    e->more = *out = d;
    return CDMPP_OK;
}

double cd_network_estimate_cores(const cd_network_estimate *e,
                                 const cd_network_estimate_device *d) {
    const cd_device *about = programs_of(e, d);
    const double cores =
        about && !d->gpu ? about->cores_used > 0 ? about->cores_used : about->cores : 0;
    return cores > 0 ? cores : 0;
}

/* ---- queues ---- */
cd_replay_device cd_network_estimate_queue(const cd_network_estimate_options *o,
                                           const cd_model_set *m, const char *name) {
    const cd_device *d = cd_model_set_device(m, name);
    bool gpu = d && d->kind == CD_DEVICE_GPU;
    for (size_t k = 0; k < m->n && !d; k++) {
        const int i = m->v[k].tasks ? cd_model_find_device(m->v[k].tasks, name, strlen(name)) : -1;
        if (i >= 0) gpu = cd_model_device_is_gpu(m->v[k].tasks, (size_t)i);
    }
    cd_replay_device r = {.name = name,
                          .workers = o->workers ? (uint32_t)o->workers : 1,
                          .policy = gpu ? CD_REPLAY_STREAM : CD_REPLAY_ORDER,
                          .gap_s = isnan(o->gap_s) ? 0 : o->gap_s,
                          .issue_s = isnan(o->issue_s) ? gpu ? GPU_ISSUE_S : 0 : o->issue_s};
    if (o->policy >= 0) r.policy = (cd_replay_policy)o->policy;
    else if (r.workers > 1) r.policy = CD_REPLAY_CRITICAL;
    if (d && d->mem_gb > 0) r.memory = (int64_t)(d->mem_gb * 1073741824.0);
    return r;
}
