/* Finds the model's device for a record: by the caller's word, by -model= of the target, or by the
 * folder of the file. An unknown one is an error or, where asked for, the nearest known device. */
#include "predictor/score/device_match.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cli/cli.h"
#include "features/program/program.h"
#include "features/task/task.h"
#include "predictor/score/kinds_internal.h"
#include "predictor/score/scorer.h"

/* Reasons of the tasks that were asked about last, in a table of one entry a place. */

/* A search asks about some hundred tasks in turn; with fewer places they push each other out. */
enum { PLACES = 1024 };

typedef struct {
    /* NULL: empty; of one registry, so that the address names the definition */
    const cd_task *task;
    uint32_t device;
    cd_hash target; /* and threads */
    cd_unlike unlike;
} place;

struct cd_kinds {
    const cd_model *m;
    bool stranger;  /* all are strangers */
    cd_arena arena; /* one signature */
    place place[PLACES];
};

cdmpp_status cd_kinds_new(const cd_model *m, bool stranger, cd_kinds **out, cdmpp_err *err) {
    cd_kinds *k = cd_mem_zalloc(1, sizeof *k);
    if (!k) return CD_FAIL(err, ENOMEM, "kinds");
    k->m = m;
    k->stranger = stranger;
    *out = k;
    return CDMPP_OK;
}

void cd_kinds_free(cd_kinds *k) {
    if (!k) return;
    cd_arena_free(&k->arena);
    cd_mem_free(k);
}

static cdmpp_status fill(cd_kinds *k, place *p, bool stranger, cd_str target,
                         const cd_hardware *hardware, cdmpp_err *err) {
    cd_signature s;
    cd_arena_reset(&k->arena);
    CD_TRY(cd_signature_of(&k->arena, p->task->dag, target, hardware, &s, err));
    cd_trained_on_check(cd_model_trained_on(k->m), p->device, stranger, &s, &p->unlike);
    return CDMPP_OK;
}

/* A stranger's features are not those of the device that answers for it: that the device is unlike
 * says it. Threads are compared: that another device answers says nothing of them. */
cdmpp_status cd_kinds_check(cd_kinds *k, const cd_task *t, cd_str target,
                            const cd_hardware *hardware, const cd_device_pick *which,
                            cd_unlike *out, cdmpp_err *err) {
    *out = (cd_unlike){0};
    if (t && t->dag && cd_model_trained_on(k->m)) {
        cd_hash h = cd_hash_start();
        cd_hash_add(&h, target.p, target.n);
        cd_hash_add(&h, &which->unknown, sizeof which->unknown);
        if (hardware) cd_hash_add(&h, &hardware->num_cores, sizeof hardware->num_cores);
        place *p = &k->place[((uintptr_t)t / sizeof *t) % PLACES];
        if (p->task != t || p->device != which->device || memcmp(&p->target, &h, sizeof h) != 0) {
            *p = (place){.task = t, .device = which->device, .target = h};
            const cdmpp_status st =
                fill(k, p, k->stranger || which->unknown, target, hardware, err);
            if (st) p->task = NULL;
            CD_TRY(st);
        }
        *out = p->unlike;
    }
    if (which->unknown)
        cd_trained_on_add(out, CD_UNLIKE_BIT_DEVICE, which->name, strlen(which->name));
    return CDMPP_OK;
}

/* ---- models of earlier versions ---- */
static void warn(bool known, const char *path, cd_log *log) {
    const char *slash = strrchr(path, '/');
    if (!known)
        cd_log_put(log, CD_LOG_WARNING,
                   "%s does not say what it was trained on: types, operators and intrinsics that "
                   "it has not seen cannot be told (train it again)",
                   slash ? slash + 1 : path);
}

void cd_score_warn(const cd_model *m, const char *path, cd_log *log) {
    warn(cd_model_trained_on(m) != NULL, path, log);
}
void cd_score_warn_header(const char *header, const char *path, cd_log *log) {
    warn(strstr(header, "\"trained_on\":") != NULL, path, log);
}

/* A name that the model does not say itself, and who answers for it. A board's processor and its
 * GPU may have one name. */
typedef struct {
    char *name;
    int gpu; /* kind of the programs, -1: not known */
    uint32_t device;
    bool alias;           /* another name of that device */
    const cd_device *own; /* NULL: not described */
    cd_device_doubt doubt;
} stranger;

struct cd_device_match {
    const cd_model *m;
    cd_device_match_options o;
    bool has_fixed;
    cd_device_pick fixed;
    stranger *seen; /* (n_seen) */
    size_t n_seen, cap;
};

void cd_device_match_free(cd_device_match *w) {
    if (!w) return;
    for (size_t i = 0; i < w->n_seen; i++) cd_mem_free(w->seen[i].name);
    cd_mem_free(w->seen);
    cd_mem_free(w);
}

/* "v100, k80": the devices of a model, for messages. */
static char *device_list(const cd_model *m, char *buf, size_t n) {
    size_t at = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < cd_model_n_device(m) && at < n; i++) {
        const int k = snprintf(buf + at, n - at, "%s%s", i ? ", " : "", cd_model_device(m, i));
        if (k > 0) at += (size_t)k;
    }
    return buf;
}

/* ---- the most similar device ---- */
static bool described(const float *v) {
    bool any = false;
    for (int c = 0; c < CD_N_DEVICE_COL; c++) any |= v[c] != 0;
    return any;
}

/* gpu: kind of the target, -1 when there is none. */
static cdmpp_status most_similar(const cd_device_match *w, const char *name, int gpu, uint32_t *out,
                                 cd_device_doubt *doubt, cdmpp_err *err) {
    float want[CD_N_DEVICE_COL];
    double least = (double)INFINITY;
    const cd_device *described_as;
    size_t width;
    if (!w->o.devices)
        return CD_FAIL(err, EMODEL,
                       "device: '%.60s' is not in the model, and there are no descriptions to find "
                       "the nearest by",
                       name);
    CD_TRY(cd_device_table_vector(w->o.devices, name, want, err));
    const bool own_times = !cd_device_table_find(w->o.devices, name, &described_as, NULL) &&
                           cd_model_own_times(w->m, described_as);
    const bool is_gpu = gpu < 0 ? want[0] > 0 : gpu > 0;
    for (size_t i = 0; i < cd_model_n_device(w->m); i++) {
        const float *v = cd_model_device_vector(w->m, i, &width);
        float own[CD_N_DEVICE_COL];
        if ((cd_model_device_is_gpu(w->m, i) != 0) != is_gpu) continue;
        if (width != CD_N_DEVICE_COL || !described(v)) { /* the file may know it by now */
            if (cd_device_table_vector(w->o.devices, cd_model_device(w->m, i), own, NULL)) continue;
            v = own;
        }
        const double d = cd_device_unlike(want, v);
        if (d < least) {
            least = d;
            *out = (uint32_t)i;
            *doubt = cd_model_device_doubt(w->m, i, want, v, own_times);
        }
    }
    return isfinite(least)
               ? CDMPP_OK
               : CD_FAIL(err, EMODEL, "device: the model has no described %s to stand for '%.60s'",
                         is_gpu ? "GPU" : "CPU", name);
}

static cdmpp_status nearest(const cd_device_match *w, const char *name, int gpu, uint32_t *out,
                            cd_device_doubt *doubt, cdmpp_err *err) {
    const cdmpp_status st = most_similar(w, name, gpu, out, doubt, err);
    if (!st || st == CDMPP_ENOMEM || cd_model_n_device(w->m) > 1)
        return st ? cd_err_key(err, st, "device") : st;
    *out = 0; /* the only one there is */
    *doubt = cd_model_device_doubt(w->m, 0, NULL, NULL, false);
    return CDMPP_OK;
}

/* ---- names ---- */
int cd_device_match_find(const cd_model *m, const cd_device_table *devices, const char *name) {
    const cd_device *asked, *is;
    const int k = cd_model_find_device(m, name, strlen(name));
    if (k >= 0 || !devices || cd_device_table_find(devices, name, &asked, NULL)) return k;
    for (size_t i = 0; i < cd_model_n_device(m); i++)
        if (!cd_device_table_find(devices, cd_model_device(m, i), &is, NULL) && is == asked)
            return (int)i;
    return -1;
}

static cd_device_pick known(const cd_device_match *w, uint32_t device) {
    return (cd_device_pick){device, cd_model_device(w->m, device), false, NULL, {0, 0}, false};
}

static cd_device_pick pick_of(const cd_device_match *w, const stranger *s) {
    return s->alias ? known(w, s->device)
                    : (cd_device_pick){s->device, s->name, true, s->own, s->doubt, false};
}

static cdmpp_status look_up(const cd_device_match *w, bool near, stranger *s, cdmpp_err *err) {
    const int k = cd_device_match_find(w->m, w->o.devices, s->name);
    s->alias = k >= 0;
    s->device = (uint32_t)k;
    if (s->alias) return CDMPP_OK;
    if (!near) return CDMPP_EMODEL;
    CD_TRY(nearest(w, s->name, s->gpu, &s->device, &s->doubt, err));
    if (w->o.devices && cd_device_table_find(w->o.devices, s->name, &s->own, NULL)) s->own = NULL;
    return CDMPP_OK;
}

/* Who answers for a name that is none of the model's, of programs of this kind; remembered. *found
 * false: nobody, as no nearest one is wanted. */
static cdmpp_status answer_for(cd_device_match *w, cd_str name, int gpu, bool near,
                               cd_device_pick *out, bool *found, cdmpp_err *err) {
    *found = true;
    for (size_t i = 0; i < w->n_seen; i++)
        if (w->seen[i].gpu == gpu && (near || w->seen[i].alias) &&
            cd_str_is(name, w->seen[i].name)) {
            *out = pick_of(w, &w->seen[i]);
            return CDMPP_OK;
        }
    if (CD_GROW(w->seen, w->n_seen, w->cap)) return CD_FAIL(err, ENOMEM, "devices");
    stranger s = {.name = cd_mem_zalloc(name.n + 1, 1), .gpu = gpu};
    if (!s.name) return CD_FAIL(err, ENOMEM, "name of a device");
    memcpy(s.name, name.p, name.n);
    const cdmpp_status st = look_up(w, near, &s, err);
    *found = !st || near;
    if (st) {
        cd_mem_free(s.name);
        return *found ? st : CDMPP_OK;
    }
    w->seen[w->n_seen++] = s;
    *out = pick_of(w, &s);
    return CDMPP_OK;
}

/* ---- picking ---- */
cdmpp_status cd_device_match_new(const cd_model *m, const cd_device_match_options *o,
                                 cd_device_match **out, cdmpp_err *err) {
    char names[120];
    bool found = true;
    cdmpp_status st = CDMPP_OK;
    cd_device_match *w = cd_mem_zalloc(1, sizeof *w);
    if (!w) return CD_FAIL(err, ENOMEM, "device of the candidates");
    *w = (cd_device_match){.m = m, .o = *o, .has_fixed = o->device != NULL};
    const int k = o->device ? cd_model_find_device(m, o->device, strlen(o->device)) : 0;
    if (o->device && k >= 0) w->fixed = known(w, (uint32_t)k);
    else if (o->device)
        st = answer_for(w, (cd_str){o->device, strlen(o->device)}, -1, o->nearest, &w->fixed,
                        &found, err);
    if (!found)
        st = CD_FAIL(err, EMODEL, "device: expected one of %s, found '%.60s'",
                     device_list(m, names, sizeof names), o->device);
    if (st) cd_device_match_free(w);
    else *out = w;
    return st;
}

const cd_device_pick *cd_device_match_fixed(const cd_device_match *w) {
    return w->has_fixed ? &w->fixed : NULL;
}

/* A model of GPU programs says nothing about a CPU program, whatever it is called. */
static cdmpp_status check_kind(const cd_device_match *w, cd_str target, uint32_t device,
                               cdmpp_err *err) {
    const bool gpu = cd_target_is_gpu(target);
    if (!target.n || gpu == (cd_model_device_is_gpu(w->m, device) != 0)) return CDMPP_OK;
    const cdmpp_status st =
        CD_FAIL(err, EMODEL, "the record is for a %s, the model's device %.60s is a %s",
                gpu ? "GPU" : "CPU", cd_model_device(w->m, device), gpu ? "CPU" : "GPU");
    return cd_err_key(err, st, "i[0][1]");
}

static cdmpp_status not_known(const cd_device_match *w, cd_str name, const char *advice,
                              cdmpp_err *err) {
    char names[120];
    return CD_FAIL(err, EMODEL, "device: expected one of %s, found '%.*s'%s",
                   device_list(w->m, names, sizeof names), cd_str_shown(name, 60), name.p, advice);
}

static bool is_described(const cd_device_match *w, cd_str name) {
    const cd_device *d;
    char text[64];
    if (!w->o.devices || name.n >= sizeof text) return false;
    memcpy(text, name.p, name.n);
    text[name.n] = '\0';
    return !cd_device_table_find(w->o.devices, text, &d, NULL);
}

/* Of a record that names no device: what to say so that it has one. An instruction set fits several
 * GPUs; the nearest of nothing is none. */
static cdmpp_status nobody(const cd_device_match *w, cd_str target, cdmpp_err *err) {
    enum { SHOWN = 4 };
    char names[80];
    const char *kin[SHOWN];
    const cd_str arch = cd_device_arch_of(target);
    const size_t n =
        w->o.devices && arch.n ? cd_device_table_of_arch(w->o.devices, arch, kin, SHOWN) : 0;
    cd_buf b = {0};
    for (size_t i = 0; i < n && i < SHOWN; i++) cd_buf_putf(&b, "%s%s", i ? ", " : "", kin[i]);
    if (n > SHOWN) cd_buf_puts(&b, " ...");
    const char *list = device_list(w->m, names, sizeof names);
    const cdmpp_status st =
        b.oom ? CD_FAIL(err, ENOMEM, "names of devices")
        : n   ? CD_FAIL(err, EMODEL,
                        "device: expected -model= of one of %s, found none; %.*s is %s: --device "
                          "%s --nearest takes what is most similar to it",
                        list, (int)arch.n, arch.p, b.p, kin[0])
              : CD_FAIL(err, EMODEL,
                        "device: expected -model= of one of %s, found none; --device NAME says "
                          "which, with --nearest any device that is described",
                        list);
    cd_buf_free(&b);
    return st;
}

static cdmpp_status own_device(cd_device_match *w, cd_str target, const char *source,
                               cd_device_pick *out, cdmpp_err *err) {
    const cd_str name = cd_device_name_of(target, source);
    int k = cd_model_find_device(w->m, name.p, name.n);
    /* -model= names a device. A folder's name does where somebody describes one of that name. */
    const bool unnamed = cd_str_is(cd_device_name_of(target, ""), "unknown");
    const bool assumed = k < 0 && cd_model_n_device(w->m) == 1 && unnamed;
    if (assumed) k = 0;
    if (k >= 0) {
        *out = known(w, (uint32_t)k);
        out->assumed = assumed;
        return CDMPP_OK;
    }
    bool found = false;
    if (unnamed && !is_described(w, name))
        return cd_err_key(err, nobody(w, target, err), "i[0][1]");
    CD_TRY(answer_for(w, name, target.n ? cd_target_is_gpu(target) : -1, w->o.nearest, out, &found,
                      err));
    if (found) return CDMPP_OK;
    return cd_err_key(
        err,
        not_known(w, name,
                  "; --device NAME says which to take, --nearest takes the most similar one", err),
        "i[0][1]");
}

cdmpp_status cd_device_match_pick(cd_device_match *w, cd_str target, const char *source,
                                  cd_device_pick *out, cdmpp_err *err) {
    if (w->has_fixed) *out = w->fixed;
    else CD_TRY(own_device(w, target, source, out, err));
    return check_kind(w, target, out->device, err);
}

cdmpp_status cd_device_match_named(cd_device_match *w, cd_str name, cd_str target,
                                   cd_device_pick *out, cdmpp_err *err) {
    char names[120];
    bool found = true;
    if (!name.n && !target.n && !w->has_fixed && cd_model_n_device(w->m) > 1)
        return cd_err_key(err,
                          CD_FAIL(err, EMODEL, "expected one of %s, found none",
                                  device_list(w->m, names, sizeof names)),
                          "device");
    if (!name.n) return cd_device_match_pick(w, target, "", out, err);
    const int k = cd_model_find_device(w->m, name.p, name.n);
    if (k >= 0) *out = known(w, (uint32_t)k);
    else
        CD_TRY(answer_for(w, name, target.n ? cd_target_is_gpu(target) : -1, w->o.nearest, out,
                          &found, err));
    if (!found) return cd_err_key(err, not_known(w, name, "", err), "device");
    return check_kind(w, target, out->device, err);
}
