/* Which device of a model set this machine is: the one that stands for its processor, and the one
 * that its GPU is or that stands for it. What is said of default models, which nobody named. */
#include <stdio.h>
#include <string.h>

#include "predictor/estimate/estimate.h"
#include "predictor/score/score.h"

static void keep_host(cd_model_set *m, const cd_describe_match *here) {
    m->guessed = !here->exact;
    memcpy(m->here, here->here, sizeof m->here);
    (void)snprintf(m->host, sizeof m->host, "%s%s%s",
                   here->cpu[0] ? here->cpu : "unknown processor", here->microarch[0] ? ", " : "",
                   here->microarch);
}

cdmpp_status cd_model_set_is_host(cd_model_set *m, const char *device, cdmpp_err *err) {
    cd_describe_match here;
    const cdmpp_status st = cd_describe_match_host("", m->devices, &device, 1, &here, err);
    if (st == CDMPP_ENOMEM) return st;
    if (st) here.exact = false; /* nobody describes one of them: then it may be any other */
    if (st == CDMPP_EBACKEND)   /* unknown */
        for (int k = CD_N_DEVICE_KIND + CD_N_DEVICE_RATIO; k < CD_N_DEVICE_COL; k++)
            here.here[k] = 1;
    keep_host(m, &here);
    return CDMPP_OK;
}

/* The only model beside that of this machine's GPU and those of operators of language models, where
 * it is of programs; NULL: there are others, or none. */
static const cd_model_set_entry *only_programs(const cd_model_set *m) {
    const cd_model_set_entry *one = NULL;
    for (size_t k = 0; k < m->n; k++) {
        if (m->v[k].language || m->v[k].path == m->gpu_default ||
            (m->default_path && m->v[k].path == m->gpu_path))
            continue;
        if (one || m->v[k].operators) return NULL;
        one = &m->v[k];
    }
    return one;
}

/* Choosing the default model is no reason for a warning; that a calibrated one is there and is not
 * used, is. */
static void say_host(const cd_model_set *m, const char *path, const char *device, bool exact,
                     cd_log *log) {
    char what[CD_DEFAULT_MODEL_SAID];
    cd_default_model_what(path, what);
    cd_log_put(log, strstr(what, "not used") ? CD_LOG_WARNING : CD_LOG_INFO,
               "cost model: %s, %s; device: %s%s (%s)", path, what, device,
               exact ? ", this machine" : ", in the place of this machine", m->host);
}

cdmpp_status cd_model_set_host(cd_model_set *m, cd_log *log, const char **out, cdmpp_err *err) {
    cd_describe_match here;
    *out = NULL;
    const cd_model_set_entry *v = only_programs(m);
    if (!v || (!m->default_path && !cd_default_model_is_here(v->path))) return CDMPP_OK;
    CD_TRY(cd_default_model_device(v->path, m->devices, v->device, v->n_device, NULL, out, &here,
                                   err));
    m->default_said = log != NULL;
    keep_host(m, &here);
    say_host(m, v->path, *out, here.exact, log);
    return CDMPP_OK;
}

void cd_model_set_say_stand_in(const cd_model_set *m, const cd_model_set_doubtful *d, cd_log *log) {
    char times[CD_MODEL_SET_TIMES_OFF], who[200], off[120];
    const char *calibrate = !d->here ? ""
                            : d->gpu ? ". For yours: cdmpp-tune calibrate --target cuda (5 minutes)"
                                     : ". For yours: cdmpp-tune calibrate (5 minutes)";
    if (d->here) (void)snprintf(who, sizeof who, "this %s (%s)", d->gpu ? "GPU" : "CPU", m->host);
    else (void)snprintf(who, sizeof who, "%s", d->name);
    if (d->spread > 0.005)
        (void)snprintf(off, sizeof off,
                       "for that alone times may be off by %s %sx, and intervals allow for it",
                       d->described ? "up to" : "at least",
                       cd_model_set_times_off(d->spread, times));
    else (void)snprintf(off, sizeof off, "times may be off, how far is not known");
    cd_log_put(log, CD_LOG_WARNING, "%s is not in the model: %s stands in%s; %s%s", who, d->stands,
               d->described ? "" : " (a description is missing)", off, calibrate);
}

bool cd_model_set_uses(const cd_model_set *m, size_t k) {
    cd_model_set_entry *v = &m->v[k];
    if (!m->gpu_path || v->path != m->gpu_path) return true;
    if (!v->asked) {
        v->absent = !cd_default_model_is_here(v->path);
        v->asked = true;
    }
    return !v->absent;
}

/* Of models that somebody named it is looked at whether they are of this machine. */
const char *cd_model_set_gpu(const cd_model_set *m, const char *backend) {
    for (size_t k = 0; k < m->n; k++) {
        const cd_model_set_entry *v = &m->v[k];
        if (v->backend && (!backend || !strcmp(v->backend, backend)) &&
            (v->path == m->gpu_path ? cd_model_set_uses(m, k) : cd_default_model_is_here(v->path)))
            return v->here;
    }
    return NULL;
}

static cdmpp_status no_gpu(const cd_model_set_entry *v, const char *backend, const cdmpp_err *why,
                           cdmpp_err *err) {
    char unused[CD_DEFAULT_MODEL_SAID];
    cd_default_model_gpu_why(backend, NULL, unused);
    return CD_FAIL(err, EUSAGE,
                   "no GPU of this machine runs programs of %s (%.60s%s%.120s): --device names a "
                   "GPU, %s for example, which the default model knows",
                   backend, why->msg, unused[0] ? "; " : "", unused,
                   v->n_device ? v->device[v->n_device - 1] : "a described one");
}

cdmpp_status cd_model_set_gpu_host(cd_model_set *m, const char *backend, cd_log *log,
                                   const char **out, cdmpp_err *err) {
    cd_describe_match here;
    cdmpp_err why = {0};
    *out = cd_model_set_gpu(m, backend);
    for (size_t k = 0; !*out && k < m->n; k++) {
        const cd_model_set_entry *v = &m->v[k];
        if (v->path != m->gpu_default) continue;
        const cdmpp_status st = cd_default_model_gpu_device(
            v->path, backend, "", m->devices, v->device, v->n_device, log, out, &here, &why);
        if (st) *out = NULL;
        if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "the GPU of this machine");
        if (st) return no_gpu(v, backend, &why, err);
        m->gpu_said = log != NULL;
        keep_host(m, &here);
    }
    /* models that somebody named may be of a GPU */
    return *out || !(m->default_path || m->gpu_path) ? CDMPP_OK
                                                     : cd_default_model_gpu_missing(backend, err);
}

/* ---- what is said of the default models ---- */
static bool is_unsaid(const cd_model_set *m, const char *path) {
    if (path == m->gpu_default) return !m->gpu_said;
    if (path == m->gpu_path) return m->default_path || !m->default_said;
    return path == m->default_path && !m->default_said;
}

/* Devices of GPUs are named by the user: which of them the default model knows is said with it. */
static void say_default(const cd_model_set *m, const cd_model_set_entry *v, cd_log *log) {
    char what[CD_DEFAULT_MODEL_SAID];
    cd_buf known = {0};
    for (size_t k = 0; v->path == m->gpu_default && k < v->n_device; k++)
        cd_buf_putf(&known, "%s%s", k ? ", " : "; it knows ", v->device[k]);
    cd_default_model_what(v->path, what);
    cd_log_put(log, strstr(what, "not used") ? CD_LOG_WARNING : CD_LOG_INFO, "cost model: %s, %s%s",
               v->path, what, known.p && !known.oom ? known.p : "");
    cd_buf_free(&known);
}

/* What corrects one machine says nothing of another one, unless it stands for it. */
static void say_other(const cd_model_set *m, const cd_model_set_entry *v, const char *device,
                      const char *stands, cd_log *log) {
    const bool gpu = v->path == m->gpu_path,
               ours = gpu || (v->path == m->default_path && cd_default_model_is_user(v->path));
    if (!ours || !v->here || !strcmp(v->here, device)) return;
    if (stands && !strcmp(v->here, stands))
        cd_log_put(
            log, CD_LOG_WARNING,
            "%s was measured on %s, this machine's %s: %s is another one, which was not measured",
            v->path, v->here, gpu ? "GPU" : "processor", device);
    else
        cd_log_put(log, CD_LOG_WARNING,
                   "%s corrects times of %s alone, this machine's %s: %s is another one, and its "
                   "times are not corrected",
                   v->path, v->here, gpu ? "GPU" : "processor", device);
}

void cd_model_set_warn(cd_model_set *m, const cd_model *model, const char *device,
                       const char *stands, cd_log *log) {
    for (size_t k = 0; k < m->n; k++) {
        if (!model || m->v[k].tasks != model) continue;
        if (!m->v[k].warned && is_unsaid(m, m->v[k].path)) say_default(m, &m->v[k], log);
        if (!m->v[k].warned) cd_score_warn(model, m->v[k].path, log);
        m->v[k].warned = true;
        if (device) say_other(m, &m->v[k], device, stands, log);
    }
}
