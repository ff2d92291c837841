/* Devices of cdmpp-replay: which, by whose model, with what target and queue. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "features/program/program.h"
#include "features/sketch/sketch.h"
#include "predictor/cmd/replay/main_replay.h"

enum { VECTOR_BYTES = 64, AMD_WARP = 64 };
/* Of the host for a launch: 2 to 5 us are usual for CUDA and HIP. */
static const double GPU_ISSUE_S = 3e-6;

/* ---- targets ---- */
/* As TenSet's records of that device have it: features do not depend on more than kind and hardware. */
static const char *usual_target(cd_arena *a, const char *name, const cd_device *d, bool gpu) {
    cd_buf b = {0};
    if (gpu && d && d->warp == AMD_WARP) cd_buf_putf(&b, "rocm -keys=rocm,gpu -max_num_threads=256 -thread_warp_size=64 -model=%s", name);
    else if (gpu) cd_buf_putf(&b, "cuda -keys=cuda,gpu -max_num_threads=1024 -thread_warp_size=32 -model=%s", name);
    else {
        cd_buf_puts(&b, "llvm -keys=cpu");
        if (d && d->simd_bits >= 512) cd_buf_puts(&b, " -mcpu=skylake-avx512");
        else if (d && d->simd_bits >= 256) cd_buf_puts(&b, " -mcpu=core-avx2");
        cd_buf_putf(&b, " -model=%s", name);
    }
    const char *s = b.oom ? NULL : cd_str_dup(a, (cd_str){b.p, b.n});
    cd_buf_free(&b);
    return s;
}

/* "zen5=llvm -mcpu=..." for that device, "llvm ..." for all. */
static const char *said_target(const cd_main_replay *o, const char *name) {
    const char *all = NULL;
    for (size_t k = 0; k < o->target.n; k++) {
        const char *t = o->target.v[k], *eq = strchr(t, '='), *blank = strchr(t, ' ');
        const bool own = eq && (!blank || eq < blank) && t[0] != '-';
        if (own && strlen(name) == (size_t)(eq - t) && !strncmp(t, name, (size_t)(eq - t))) return eq + 1;
        if (!own) all = t;
    }
    return all;
}

static cd_hardware hardware_of(const cd_main_replay_device *d) {
    const double cores = !d->about ? 1 : d->about->cores_used > 0 ? d->about->cores_used : d->about->cores;
    cd_hardware h = cd_target_hardware(d->gpu, d->gpu ? 0 : cores >= 1 ? (int64_t)cores : 1, VECTOR_BYTES);
    if (!d->gpu || !d->about || d->about->warp != AMD_WARP) return h;
    h.max_shared_memory_per_block = 65536;
    h.max_vthread_extent = 16;
    h.warp_size = AMD_WARP;
    return h;
}

/* -1: no model and no description tells. */
static int gpu_of(const cd_main_replay_device *d) {
    const int i = d->model ? cd_model_find_device(d->model, d->name, strlen(d->name)) : -1;
    if (i >= 0) return cd_model_device_is_gpu(d->model, (size_t)i);
    return d->about ? d->about->kind == CD_DEVICE_GPU : -1;
}

static cdmpp_status fill(cd_main_replay_plan *p, cd_main_replay_device *d, cdmpp_err *err) {
    d->price = NAN;
    d->currency = "";
    d->about = cd_model_set_device(&p->models, d->name);
    CD_TRY(cd_model_set_tasks(&p->models, d->name, p->o->nearest, &d->model, err));
    if (!d->model && d->about && strcmp(d->about->name, d->name) != 0) { /* "zen5" is zen5-avx512 */
        CD_TRY(cd_model_set_tasks(&p->models, d->about->name, p->o->nearest, &d->model, err));
        if (d->model) d->name = d->about->name;
    }
    CD_TRY(cd_model_set_ops(&p->models, d->name, &d->opmodel, err));
    d->target = said_target(p->o, d->name);
    const int gpu = d->target ? cd_target_is_gpu((cd_str){d->target, strlen(d->target)}) : gpu_of(d);
    d->gpu = gpu > 0;
    if (!d->target && !(d->target = usual_target(&p->arena, d->name, d->about, d->gpu))) return CD_FAIL(err, ENOMEM, "targets");
    d->hardware = hardware_of(d);
    if (d->model || d->opmodel || p->o->replay_given || p->o->from_records) return CDMPP_OK;
    cd_buf known = {0};
    cd_model_set_list(&p->models, &known);
    const cdmpp_status st = known.n ? CD_FAIL(err, EMODEL, "no model knows device '%.60s'; known are %.400s", d->name, known.p)
                                    : CD_FAIL(err, EMODEL, "no model for device '%.60s': give one with --cost-model", d->name);
    cd_buf_free(&known);
    return st;
}

/* ---- which, where nobody says ---- */
typedef struct {
    const cd_model_set *models;
    cd_arena *arena;
    size_t n[64];               /* of the k-th device that models know */
} census;

static const char *known_at(const cd_model_set *m, size_t at) {
    for (size_t k = 0; k < m->n; k++) {
        if (at < m->v[k].n_device) return m->v[k].device[at];
        at -= m->v[k].n_device;
    }
    return NULL;
}

/* Logs of a device lie in a folder of its name. */
static bool count_log(const char *path, void *ctx) {
    census *c = ctx;
    const char *end = strrchr(path, '/'), *name = end;
    while (name && name > path && name[-1] != '/') name--;
    for (size_t k = 0; end && k < 64 && known_at(c->models, k); k++) {
        const char *d = known_at(c->models, k);
        if (strlen(d) == (size_t)(end - name) && !strncmp(d, name, (size_t)(end - name))) c->n[k]++;
    }
    return false;
}

/* The device that most of the logs are of: told, because it is a guess. */
static const char *device_of_logs(cd_main_replay_plan *p) {
    census c = {.models = &p->models, .arena = &p->arena};
    const char *const *path;
    size_t n, best = 0, all = 0;
    for (size_t k = 0; k < p->o->records.n; k++) (void)cd_file_list(&p->arena, p->o->records.v[k], count_log, &c, &path, &n, NULL);
    for (size_t k = 0; k < 64; k++) {
        all += c.n[k];
        if (c.n[k] > c.n[best]) best = k;
    }
    if (!c.n[best]) return NULL;
    const char *d = known_at(&p->models, best);
    cd_log_put(p->o->log, all > c.n[best] ? CD_LOG_WARNING : CD_LOG_DEBUG, "device %s: %zu of %zu logs are of it; --device says another", d, c.n[best], all);
    return d;
}

static const char *only_device(const cd_main_replay_plan *p) {
    const char *one = known_at(&p->models, 0);
    for (size_t k = 1; one && known_at(&p->models, k); k++)
        if (strcmp(known_at(&p->models, k), one) != 0) return NULL;
    return one;
}

/* A device that a model knows and the graph's first node with a device names. */
static const char *device_of_nodes(const cd_main_replay_plan *p, const cd_network_graph *g) {
    uint32_t i = 0;
    while (i < g->n_node && !g->node[i].device) i++;
    for (size_t k = 0; i < g->n_node && known_at(&p->models, k); k++)
        if (!strcmp(known_at(&p->models, k), g->node[i].device)) return g->node[i].device;
    return NULL;
}

/* What the graphs of files that say one agree on; NULL: nothing. */
static const char *device_of_graphs(const cd_main_replay_plan *p) {
    const char *d = NULL;
    for (size_t k = 0; k < p->n_source; k++) {
        const cd_network_graph *of = p->source[k]->graph;
        const char *g = !of ? NULL : of->device ? of->device : device_of_nodes(p, of);
        if (g && d && strcmp(d, g) != 0) return NULL;
        if (g) d = g;
    }
    return d;
}

static cdmpp_status nobody_says(cd_main_replay_plan *p, const char ***name, size_t *n, cdmpp_err *err) {
    const char *d = device_of_graphs(p);
    if (!d) d = only_device(p);
    if (!d) d = device_of_logs(p);
    if (!d && p->o->replay_given) d = "device";
    if (!d) {
        cd_buf known = {0};
        cd_model_set_list(&p->models, &known);
        const cdmpp_status st = known.n ? CD_FAIL(err, EUSAGE, "--device is missing; the models know %.400s", known.p)
                                        : CD_FAIL(err, EMODEL, "there is no cost model: --cost-model, --model or $CDMPP_MODELS names one");
        cd_buf_free(&known);
        return st;
    }
    if (!(*name = CD_NEWN(&p->arena, const char *, 1))) return CD_FAIL(err, ENOMEM, "devices");
    **name = d;
    *n = 1;
    return CDMPP_OK;
}

static bool is_there(const cd_main_replay_plan *p, const char *name) {
    for (size_t k = 0; k < p->n_device; k++)
        if (!strcmp(p->device[k].name, name)) return true;
    return false;
}

cdmpp_status cd_main_replay_devices(cd_main_replay_plan *p, cdmpp_err *err) {
    const char **name;
    size_t n;
    if (p->o->device) CD_TRY(cd_main_replay_split_list(&p->arena, p->o->device, &name, &n, err));
    else CD_TRY(nobody_says(p, &name, &n, err));
    if (!n) return CD_FAIL(err, EUSAGE, "--device: expected names, found '%.60s'", p->o->device);
    if (!(p->device = CD_NEWN(&p->arena, cd_main_replay_device, n))) return CD_FAIL(err, ENOMEM, "%zu devices", n);
    for (size_t k = 0; k < n; k++) {
        p->device[p->n_device].name = name[k];
        CD_TRY(fill(p, &p->device[p->n_device], err));
        if (is_there(p, p->device[p->n_device].name)) cd_log_put(p->o->log, CD_LOG_WARNING, "--device: %s is %s, which is there already", name[k], p->device[p->n_device].name);
        else p->n_device++;
    }
    return CDMPP_OK;
}

cdmpp_status cd_main_replay_device_get(cd_main_replay_plan *p, const char *name, cd_main_replay_device **out, cdmpp_err *err) {
    for (size_t k = 0; k < p->n_device; k++)
        if (!strcmp(p->device[k].name, name)) {
            *out = &p->device[k];
            return CDMPP_OK;
        }
    for (cd_main_replay_device *d = p->more; d; d = d->next)
        if (!strcmp(d->name, name)) {
            *out = d;
            return CDMPP_OK;
        }
    cd_main_replay_device *d = CD_NEW(&p->arena, cd_main_replay_device);
    if (!d) return CD_FAIL(err, ENOMEM, "a device");
    d->name = name;
    CD_TRY(fill(p, d, err));
    d->next = p->more;
    p->more = *out = d;
    return CDMPP_OK;
}

/* ---- queues ---- */
cd_replay_device cd_main_replay_queue(const cd_main_replay *o, const cd_model_set *m, const char *name) {
    const cd_device *d = cd_model_set_device(m, name);
    bool gpu = d && d->kind == CD_DEVICE_GPU;
    for (size_t k = 0; k < m->n && !d; k++) {
        const int i = m->v[k].tasks ? cd_model_find_device(m->v[k].tasks, name, strlen(name)) : -1;
        if (i >= 0) gpu = cd_model_device_is_gpu(m->v[k].tasks, (size_t)i);
    }
    cd_replay_device r = {.name = name, .workers = o->workers ? (uint32_t)o->workers : 1, .policy = gpu ? CD_REPLAY_STREAM : CD_REPLAY_ORDER,
                          .gap_s = isnan(o->gap_s) ? 0 : o->gap_s, .issue_s = isnan(o->issue_s) ? gpu ? GPU_ISSUE_S : 0 : o->issue_s};
    if (o->policy >= 0) r.policy = (cd_replay_policy)o->policy;
    else if (r.workers > 1) r.policy = CD_REPLAY_CRITICAL;
    if (d && d->mem_gb > 0) r.memory = (int64_t)(d->mem_gb * 1073741824.0);
    return r;
}
