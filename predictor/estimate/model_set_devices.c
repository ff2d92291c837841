/* The devices that a set of models can be asked about: those of the models, then those that are
 * only described. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "predictor/estimate/estimate.h"

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
