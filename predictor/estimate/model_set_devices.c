/* The devices that a set of models can be asked about: those of the models, then those that are
 * only described. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/estimate/estimate.h"
#include "predictor/score/score.h"

/* Which device of a model set this machine is: the one that stands for its processor, and the one
 * that its GPU is or that stands for it. What is said of default models, which nobody named. */

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

/* The model of operators of language models of a set: who answers tasks in types of 16 and 8
 * bits. */

static cdmpp_status load_language(cd_model_set_entry *v, cdmpp_err *err) {
    char *data = NULL;
    size_t n = 0;
    CD_TRY(cd_file_read(v->path, 0, &data, &n, err));
    const cdmpp_status st = cd_llm_op_model_from_bytes(data, n, &v->llm, err);
    cd_mem_free(data);
    return st;
}

cdmpp_status cd_model_set_narrow(cd_model_set *m, const cd_llm_op_asker **out, cdmpp_err *err) {
    size_t k = 0;
    while (k < m->n && !m->v[k].language) k++;
    *out = m->narrow;
    if (k == m->n || m->narrow) return CDMPP_OK;
    if (!m->v[k].llm) CD_TRY(cd_err_at(err, load_language(&m->v[k], err), m->v[k].path, 0));
    if (!m->no_names.n) CD_TRY(cd_llm_op_names_close(&m->no_names, err));
    CD_TRY(cd_llm_op_asker_new(m->v[k].llm, NULL, &m->no_names, &m->narrow, err));
    *out = m->narrow;
    return CDMPP_OK;
}

typedef struct {
    const char **v;
    size_t n;
} names;

static bool has(const names *l, const char *name) {
    for (size_t k = 0; k < l->n; k++)
        if (!strcmp(l->v[k], name)) return true;
    return false;
}

/* Those of models first; *known: how many. False: out of memory. */
static bool collect(const cd_model_set *m, names *out, size_t *known) {
    const size_t described = m->devices ? cd_device_table_count(m->devices) : 0;
    size_t all = described + 1;
    for (size_t k = 0; k < m->n; k++) all += m->v[k].n_device;
    *out = (names){cd_mem_zalloc(all, sizeof *out->v), 0};
    for (size_t k = 0; out->v && k < m->n; k++)
        for (size_t d = 0; d < m->v[k].n_device && cd_model_set_uses(m, k); d++)
            if (!has(out, m->v[k].device[d])) out->v[out->n++] = m->v[k].device[d];
    *known = out->n;
    for (size_t i = 0; out->v && i < described; i++)
        if (!has(out, cd_device_table_at(m->devices, i)->name))
            out->v[out->n++] = cd_device_table_at(m->devices, i)->name;
    return out->v != NULL;
}

/* Models are asked apart, because a described name that is nearer would hide theirs. */
void cd_model_set_near(const cd_model_set *m, const char *name, cd_buf *out) {
    enum { MOST = 6 };
    const char *near[MOST];
    size_t known, n = 0;
    names l;
    out->oom |= !collect(m, &l, &known);
    if (l.v && !cd_model_set_device(m, name)) {
        n = cd_did_you_mean_several(name, l.v, known, near, MOST);
        n += cd_did_you_mean_several(name, l.v + known, l.n - known, near + n, MOST - n);
    }
    for (size_t k = 0; k < n; k++)
        cd_buf_putf(out, "%s%s", !k ? "; did you mean " : k + 1 < n ? ", " : " or ", near[k]);
    if (n) cd_buf_puts(out, "?");
    cd_mem_free(l.v);
}

/* The model that answers for the device by its own knowledge; NULL: another device stands for
 * it. */
static const char *known_by(const cd_model_set *m, const char *name) {
    for (size_t k = 0; k < m->n; k++)
        for (size_t d = 0; d < m->v[k].n_device; d++)
            if (!strcmp(m->v[k].device[d], name) && cd_model_set_uses(m, k)) return m->v[k].path;
    return NULL;
}

bool cd_model_set_has(const cd_model_set *m, const char *name) {
    return known_by(m, name) || cd_model_set_device(m, name);
}

bool cd_model_set_is_here(const cd_model_set *m, const char *name) {
    return !strcmp(name, CD_MODEL_SET_HERE) && !cd_model_set_has(m, name);
}

void cd_model_set_put_devices(const cd_model_set *m, bool json, cd_buf *out) {
    cd_json_writer w = {.out = out};
    size_t known;
    names l;
    out->oom |= !collect(m, &l, &known);
    if (json) cd_json_write_open(&w, '[');
    else cd_buf_putf(out, "%-24s %-4s model\n", "device", "kind");
    for (size_t k = 0; k < l.n; k++) {
        const cd_device *d = cd_model_set_device(m, l.v[k]);
        const char *by = known_by(m, l.v[k]), *kind = d ? cd_device_kind_name(d->kind) : NULL;
        if (!json) {
            cd_buf_putf(out, "%-24s %-4s %s\n", l.v[k], kind ? kind : "-", by ? by : "-");
            continue;
        }
        cd_json_write_open(&w, '{');
        cd_json_write_member_str(&w, "name", l.v[k]);
        cd_json_write_member_str(&w, "kind", kind);
        cd_json_write_member_str(&w, "model", by);
        cd_json_write_close(&w, '}');
    }
    if (json) cd_json_write_close(&w, ']');
    cd_mem_free(l.v);
}

/* Our own descriptions are not asked: OpenCL's programs for a processor are a GPU's, and have its
 * name. */
cdmpp_status cd_model_set_check_kind(const cd_model_set *m, const cd_model *model, const char *name,
                                     cdmpp_err *err) {
    const cd_device *d;
    const int at = model ? cd_model_find_device(model, name, strlen(name)) : -1;
    if (at < 0 || !m->named || cd_device_table_find(m->devices, name, &d, NULL) ||
        !cd_device_table_own(m->devices, d))
        return CDMPP_OK;
    const bool gpu = cd_model_device_is_gpu(model, (size_t)at) != 0;
    if (gpu == (d->kind == CD_DEVICE_GPU)) return CDMPP_OK;
    return cd_err_key(err,
                      CD_FAIL(err, ESCHEMA,
                              "the description says that %.60s is of kind %s, and the model knows "
                              "programs of a %s of this name",
                              name, cd_device_kind_name(d->kind), gpu ? "GPU" : "CPU"),
                      "kind");
}

/* ---- what is said of a device ---- */
const char *cd_model_set_type(cd_te_least_type t) {
    static const char *const name[CD_TE_N_LEAST] = {"float16", "bfloat16", "float32", "float64"};
    return name[t];
}

static void say(double peak, double base, const char *type, const char *by, const char *network,
                const char *device, double share, cd_log *log) {
    char than[160];
    if (!(peak > 0) || !(base > 0))
        (void)snprintf(than, sizeof than, "How fast %s computes %s, its description does not say",
                       device, type);
    else if (peak > base * 1.01)
        (void)snprintf(
            than, sizeof than,
            "This device computes %s up to %.2g times as fast, so the time may be too long", type,
            peak / base);
    else if (peak < base / 1.01)
        (void)snprintf(
            than, sizeof than,
            "This device computes %s at best 1/%.3g as fast, so the time may be too short", type,
            base / peak);
    else (void)snprintf(than, sizeof than, "This device has no faster units for %s", type);
    cd_log_put(log, CD_LOG_WARNING,
               "%s on %s: %.0f %% of the time is of %s, which the model was not trained on: it "
               "answers as for float32. %s; only a model that was trained on %s "
               "knows better%s",
               network, device, 100 * share, type, than, type, by);
}

/* Who else answers products in a narrow type. */
static const char *or_else(const cd_device *d) {
    return d && d->kind == CD_DEVICE_GPU
               ? ", and of matrix products a model of operators of language models"
               : "";
}

/* Matrix products have their answer: what is left moves bytes. */
static void say_rest(const char *type, const char *network, const char *device, double share,
                     cd_log *log) {
    cd_log_put(
        log, CD_LOG_WARNING,
        "%s on %s: %.0f %% of the time is of %s outside of matrix products: the model was not "
        "trained on it, and answers as for float32. Numbers of fewer bytes take less time, "
        "so the time may be too long; only a model that was trained on %s knows better",
        network, device, 100 * share, type, type);
}

void cd_model_set_say_type(const cd_device *d, bool products, cd_te_least_type t,
                           const char *network, const char *device, double share, cd_log *log) {
    const bool half = t == CD_TE_LEAST_F16 || t == CD_TE_LEAST_BF16;
    if (products && half) {
        say_rest(cd_model_set_type(t), network, device, share, log);
        return;
    }
    say(d ? cd_device_peak(d, t) : -1, d ? cd_device_peak(d, CD_TE_LEAST_F32) : -1,
        cd_model_set_type(t), half ? or_else(d) : "", network, device, share, log);
}

void cd_model_set_say_int8(const cd_device *d, bool products, const char *network,
                           const char *device, double share, cd_log *log) {
    if (products) {
        say_rest("int8", network, device, share, log);
        return;
    }
    const double base = d ? cd_device_peak(d, CD_TE_LEAST_F32) : -1;
    say(d && d->int8_tops >= 0 && base > 0 ? fmax(d->int8_tops * 1e12, base) : -1, base, "int8",
        or_else(d), network, device, share, log);
}

const char *cd_model_set_cores(const cd_device *d, char out[CD_MODEL_SET_CORES]) {
    if (!d || d->kind != CD_DEVICE_CPU || !(d->cores_used > 0) || d->cores_used >= d->cores)
        return NULL;
    if (d->cores_used > 1) (void)snprintf(out, CD_MODEL_SET_CORES, "%.0f cores", d->cores_used);
    else (void)snprintf(out, CD_MODEL_SET_CORES, "one core");
    return out;
}
