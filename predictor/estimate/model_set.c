/* Models of a command by device. Headers are read at once, because they say which devices a model
 * knows; a model is loaded when a device first needs it. */
#include "predictor/estimate/estimate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "learner/inputs/inputs.h"

enum { FIXED = 32, HEADER_MAX = 64 << 20 };
static const char MAGIC[] = "CDMPPMDL";

bool cd_model_set_is_model(const char *path) {
    char p[8];
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    const bool ok = fread(p, 1, sizeof p, f) == sizeof p && !memcmp(p, MAGIC, sizeof p);
    (void)fclose(f);
    return ok;
}

/* ---- headers: learner/model/model.h (1) to (6); the sum is checked when the model is loaded
 * ---- */
static cdmpp_status read_header(FILE *f, cd_arena *a, cd_str *out, cdmpp_err *err) {
    unsigned char p[FIXED];
    uint64_t n = 0;
    if (fread(p, 1, FIXED, f) != FIXED || memcmp(p, MAGIC, 8) != 0)
        return CD_FAIL(err, EPARSE, "not a cdmpp model file");
    for (int k = 7; k >= 0; k--) n = n << 8 | p[16 + k];
    if (n > HEADER_MAX)
        return CD_FAIL(err, EPARSE, "a header of %llu bytes", (unsigned long long)n);
    char *text = cd_arena_zalloc(a, n + 1, 1);
    if (!text) return CD_FAIL(err, ENOMEM, "header of %llu bytes", (unsigned long long)n);
    if (fread(text, 1, n, f) != n) return CD_FAIL(err, EPARSE, "cut short");
    *out = (cd_str){text, n};
    return CDMPP_OK;
}

/* What networks cost on the machine, where it was measured. An entry of the user's own file comes
 * first. */
static cdmpp_status costs_of(cd_model_set *m, const cd_json *here, cdmpp_err *err) {
    cd_network_cost *l;
    cd_diag diag = {0};
    cd_str text;
    if (!cd_json_get(here, "network_cost")) return CDMPP_OK;
    CD_TRY(cd_json_need_str(here, "network_cost", &text, err));
    cdmpp_status st = cd_network_cost_read("network_cost", text.p, text.n, &diag, &l, err);
    cd_diag_free(&diag);
    if (st) return st;
    for (size_t k = 0; !st && k < l->n; k++) st = cd_network_cost_add(&m->measured, &l->v[k], err);
    cd_network_cost_free(l);
    return st;
}

/* The machine that the model is corrected for is one more device, where it is none of the others
 * (learner/model/here.h). */
static cdmpp_status machine_of(cd_model_set *m, const cd_json *here, cd_model_set_entry *v,
                               cdmpp_err *err) {
    cd_str name, stands, backend;
    CD_TRY(cd_json_need_str(here, "name", &name, err));
    CD_TRY(cd_json_need_str(here, "device", &stands, err));
    CD_TRY(costs_of(m, here, err));
    if (!(v->here = cd_str_dup(&m->arena, name))) return CD_FAIL(err, ENOMEM, "names");
    if (cd_json_get(here, "backend")) {
        CD_TRY(cd_json_need_str(here, "backend", &backend, err));
        if (!(v->backend = cd_str_dup(&m->arena, backend))) return CD_FAIL(err, ENOMEM, "names");
    }
    for (size_t k = 0; k < v->n_device; k++)
        if (cd_str_is(name, v->device[k])) return CDMPP_OK;
    v->machine = v->device[v->n_device++] = cd_str_dup(&m->arena, name);
    v->stands = cd_str_dup(&m->arena, stands);
    return v->machine && v->stands ? CDMPP_OK : CD_FAIL(err, ENOMEM, "names");
}

/* Devices and kind of a model from its header. Devices are names in models of tasks, objects with a
 * name in models of operators. */
static cdmpp_status devices_of(cd_model_set *m, cd_str header, cd_model_set_entry *v,
                               cdmpp_err *err) {
    const cd_json *root, *model, *list, *kind;
    CD_TRY(cd_json_parse(&m->arena, header.p, header.n, &root, err));
    CD_TRY(cd_json_need(root, "model", &model, err));
    kind = cd_json_get(model, "kind");
    v->language = kind && kind->kind == CD_JSON_STR && cd_str_is(kind->u.s, "llm-operators");
    v->operators =
        v->language || (kind && kind->kind == CD_JSON_STR && cd_str_is(kind->u.s, "operators"));
    if (v->language) return CDMPP_OK;
    CD_TRY(cd_json_need(model, "devices", &list, err));
    const cd_json *d, *here = cd_json_get(root, "here");
    CD_TRY(cd_json_arr(list, 0, &d, err));
    if (!(v->device = CD_NEWN(&m->arena, const char *, list->n + 2u)))
        return CD_FAIL(err, ENOMEM, "%u devices", list->n);
    for (; d; d = d->next) {
        cd_str name;
        if (d->kind == CD_JSON_STR) name = d->u.s;
        else CD_TRY(cd_json_need_str(d, "name", &name, err));
        if (!(v->device[v->n_device++] = cd_str_dup(&m->arena, name)))
            return CD_FAIL(err, ENOMEM, "names");
    }
    return here ? machine_of(m, here, v, err) : CDMPP_OK;
}

/* The whole model is loaded when it is first asked for: a command may name many models and use
 * one. */
static cdmpp_status add(cd_model_set *m, const char *path, bool language, cdmpp_err *err) {
    cd_model_set_entry v = {.path = path};
    cd_str header;
    FILE *f = fopen(path, "rb");
    if (!f)
        return cd_err_at(err, CD_FAIL(err, EIO, "cannot open the model: %s", strerror(errno)), path,
                         0);
    cdmpp_status st = read_header(f, &m->arena, &header, err);
    (void)fclose(f);
    if (!st) st = devices_of(m, header, &v, err);
    if (!st && v.language && !language)
        st =
            CD_FAIL(err, EMODEL,
                    "a model of operators of language models: it serves cdmpp-predict --operators, "
                    "cdmpp-replay --llm and, beside a model of programs, cdmpp-replay --network");
    if (st) return cd_err_at(err, st, path, 0);
    if (CD_GROW(m->v, m->n, m->cap)) return CD_FAIL(err, ENOMEM, "%zu models", m->n);
    m->v[m->n++] = v;
    return CDMPP_OK;
}

static bool named_model(const char *path, void *ctx) {
    const size_t n = strlen(path);
    (void)ctx;
    return n > 6 && !strcmp(path + n - 6, ".cdmpp") && cd_model_set_is_model(path);
}

static cdmpp_status folder(cd_model_set *m, const char *path, cdmpp_err *err) {
    const char *const *file;
    size_t n;
    CD_TRY(cd_file_list(&m->arena, path, named_model, NULL, &file, &n, err));
    for (size_t k = 0; k < n; k++) CD_TRY(add(m, file[k], true, err));
    return CDMPP_OK;
}

static cdmpp_status folders(cd_model_set *m, cdmpp_err *err) {
    const char *s = getenv("CDMPP_MODELS");
    while (s && *s) {
        const size_t n = strcspn(s, ":");
        char *path = cd_str_dup(&m->arena, (cd_str){s, n});
        if (!path) return CD_FAIL(err, ENOMEM, "names");
        if (n) CD_TRY(cd_err_key(err, folder(m, path, err), "CDMPP_MODELS"));
        s += n + (s[n] == ':');
    }
    return CDMPP_OK;
}

static cdmpp_status describe(const cd_model_set_options *a, cd_model_set *m, cdmpp_err *err) {
    const char *path, *option = a->file_option ? a->file_option : "--devices";
    cd_diag diag = {0};
    const cdmpp_status at =
        cd_device_table_path(&m->arena, a->devices, NULL, &path, a->devices ? err : NULL);
    /* not: there are none */
    if (at == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "path of the descriptions");
    if (at)
        return a->devices
                   ? CD_FAIL(err, EIO,
                             "%s: cannot find '%s', a file that describes devices; a device is "
                             "named by %s",
                             option, a->devices, a->name_option ? a->name_option : "--device")
                   : CDMPP_OK;
    const cdmpp_status st =
        cd_device_table_open(&m->arena, a->devices, NULL, &diag, NULL, &m->devices, err);
    if (st && diag.n && a->lines) a->lines(a->ctx, diag.text.p);
    m->named = a->devices != NULL;
    cd_diag_free(&diag);
    return st;
}

/* That of a machine that a model is corrected for, in the place of an entry of the installed file:
 * this was measured here, with this back end. What the user's own file says of the machine comes
 * first; what it only lends does not. */
static cdmpp_status take_costs(cd_model_set *m, const char *machine, cdmpp_err *err) {
    for (size_t k = 0; machine && m->measured && k < m->measured->n; k++) {
        const char *of = m->measured->v[k].devices.v[0];
        const bool said = cd_network_cost_named() &&
                          cd_network_cost_names(cd_network_cost_find(m->costs, of, NULL), of);
        cd_network_cost_fit f = m->measured->v[k];
        f.here = true;
        if (!strcmp(of, machine) && !said) CD_TRY(cd_network_cost_add_first(&m->costs, &f, err));
    }
    return CDMPP_OK;
}

static cdmpp_status read_costs(const cd_model_set_options *a, cd_model_set *m, cdmpp_err *err) {
    cd_diag diag = {0};
    const cdmpp_status st = cd_network_cost_usual(&diag, &m->costs, err);
    if (st && diag.n && a->lines) a->lines(a->ctx, diag.text.p);
    cd_diag_free(&diag);
    for (size_t k = 0; !st && k < m->n; k++)
        /* of which nobody has asked so far whether it is used */
        if (m->v[k].path != m->gpu_path) CD_TRY(take_costs(m, m->v[k].here, err));
    return st;
}

/* That of processors comes first: it is asked where nobody says what the device is. */
static cdmpp_status defaults(cd_model_set *m, cdmpp_err *err) {
    m->default_path = cd_default_model_path(&m->arena);
    if (m->default_path) CD_TRY(add(m, m->default_path, false, err));
    m->gpu_path = cd_default_model_gpu_file(&m->arena);
    /* it would be the first, also where nobody asks for a GPU */
    if (m->gpu_path && !m->default_path && !cd_default_model_is_here(m->gpu_path))
        m->gpu_path = NULL;
    if (m->gpu_path) CD_TRY(add(m, m->gpu_path, false, err));
    m->gpu_default = cd_default_model_gpu_plain(&m->arena);
    return m->gpu_default ? add(m, m->gpu_default, false, err) : CDMPP_OK;
}

/* Such a model names no programs: the default one is still wanted. */
static bool only_language(const cd_model_set *m) {
    for (size_t k = 0; k < m->n; k++)
        if (!m->v[k].language) return false;
    return true;
}

cdmpp_status cd_model_set_open(const cd_model_set_options *a, cd_model_set *m, cdmpp_err *err) {
    for (size_t k = 0; k < a->model->n; k++) CD_TRY(add(m, a->model->v[k], a->language, err));
    for (size_t k = 0; a->mixed && k < a->mixed->n; k++)
        if (cd_model_set_is_model(a->mixed->v[k])) CD_TRY(add(m, a->mixed->v[k], a->language, err));
    CD_TRY(folders(m, err));
    if (only_language(m) && a->use_default) CD_TRY(defaults(m, err));
    CD_TRY(describe(a, m, err));
    return read_costs(a, m, err);
}

void cd_model_set_free(cd_model_set *m) {
    for (size_t k = 0; k < m->n; k++) {
        cd_model_free(m->v[k].tasks);
        cd_library_op_model_free(m->v[k].ops);
        cd_llm_op_model_free(m->v[k].llm);
    }
    cd_llm_op_asker_free(m->narrow);
    cd_dict_free(&m->no_names);
    cd_mem_free(m->v);
    cd_device_table_free(m->devices);
    cd_network_cost_free(m->costs);
    cd_network_cost_free(m->measured);
    cd_arena_free(&m->arena);
}

/* ---- asking ---- */
cdmpp_status cd_model_set_need_programs(const cd_model_set *m, cdmpp_err *err) {
    bool any = !m->n;
    for (size_t k = 0; k < m->n; k++) any |= !m->v[k].operators;
    if (any) return CDMPP_OK;
    if (only_language(m))
        return cd_err_at(err,
                         CD_FAIL(err, EMODEL,
                                 "a model of operators of language models answers products in 16 "
                                 "and 8 bits alone; name a model of programs, too"),
                         m->v[0].path, 0);
    return cd_err_at(err,
                     CD_FAIL(err, EMODEL,
                             "a model of library operators: it serves cdmpp-predict --operators "
                             "and cdmpp-replay --graph; a network of tensor "
                             "programs needs a model that cdmpp-train makes from measure records"),
                     m->v[0].path, 0);
}

static bool knows(const cd_model_set_entry *v, const char *device) {
    for (size_t k = 0; k < v->n_device; k++)
        if (!strcmp(v->device[k], device)) return true;
    return false;
}

/* The first one that knows the device; `any`: else the first of its kind. */
static cd_model_set_entry *first(cd_model_set *m, bool operators, const char *device, bool any) {
    for (size_t k = 0; k < m->n; k++)
        if (!m->v[k].language && m->v[k].operators == operators && knows(&m->v[k], device) &&
            cd_model_set_uses(m, k))
            return &m->v[k];
    for (size_t k = 0; any && k < m->n; k++)
        if (!m->v[k].language && m->v[k].operators == operators && cd_model_set_uses(m, k))
            return &m->v[k];
    return NULL;
}

cdmpp_status cd_model_set_tasks(cd_model_set *m, const char *device, bool nearest,
                                const cd_model **out, cdmpp_err *err) {
    cd_model_set_entry *v = first(m, false, device, nearest);
    *out = NULL;
    if (!v) return CDMPP_OK;
    if (v->path == m->gpu_path) CD_TRY(take_costs(m, v->here, err));
    if (!v->tasks) CD_TRY(cd_err_at(err, cd_model_load(v->path, &v->tasks, err), v->path, 0));
    *out = v->tasks;
    return CDMPP_OK;
}

const char *cd_model_set_path(const cd_model_set *m, const cd_model *model) {
    for (size_t k = 0; model && k < m->n; k++)
        if (m->v[k].tasks == model) return m->v[k].path;
    return NULL;
}

bool cd_model_set_vector(const cd_model_set *m, const cd_model *model, size_t i,
                         float out[CD_N_DEVICE_COL]) {
    size_t width;
    const float *v = cd_model_device_vector(model, i, &width);
    bool any = false;
    for (size_t c = 0; width == CD_N_DEVICE_COL && c < width; c++) any |= v[c] != 0;
    if (any) memcpy(out, v, width * sizeof *v);
    const char *name = cd_model_device(model, i);
    return any || (m->devices && !cd_device_table_vector(m->devices, name, out, NULL));
}

static bool both_know(const float *a, const float *b, int column) {
    const int flag = CD_N_DEVICE_KIND + column + CD_N_DEVICE_RATIO;
    return !(a[flag] > 0) && !(b[flag] > 0);
}

/* A device of a model that is like the one asked for. */
typedef struct {
    const cd_model *model; /* NULL: none so far */
    const char *name;
    double far;
    bool any; /* there are described ones of this kind, comparable or not */
} nearest;

/* The nearest of a loaded model, by kind: of the same one, of another one. A model says no more of
 * a kind than whether it is a GPU. */
static void nearest_of(const cd_model_set *m, const cd_model *model, const cd_device *d,
                       nearest of[2]) {
    float want[CD_N_DEVICE_COL], has[CD_N_DEVICE_COL];
    cd_device_vector(d, want);
    for (size_t i = 0; i < cd_model_n_device(model); i++) {
        if (!cd_model_set_vector(m, model, i, has)) continue;
        const bool gpu = cd_model_device_is_gpu(model, i) != 0,
                   same = d->kind == (gpu ? CD_DEVICE_GPU : CD_DEVICE_CPU);
        /* one side of a roofline is none */
        if (!same && !(both_know(want, has, CD_DEVICE_COL_flops) &&
                       both_know(want, has, CD_DEVICE_COL_bandwidth)))
            continue;
        const double far = cd_device_unlike(want, has);
        of[!same].any = true;
        if (far < of[!same].far ||
            (far == of[!same].far && cd_describe_is_own(cd_model_device(model, i))))
            of[!same] = (nearest){model, cd_model_device(model, i), far, true};
    }
}

/* Only a device of another kind could stand for it, by the ratio of both rooflines. */
static cdmpp_status needs_peaks(const cd_device *d, bool kind, cdmpp_err *err) {
    if (kind)
        return CD_FAIL(err, EMODEL,
                       "device %s: nothing is known of it that is known of a %s of a model: its "
                       "description needs some numbers (cores, clock_mhz, simd_bits, ...)",
                       d->name, cd_device_kind_name(d->kind));
    if (!(d->fp32_gflops > 0))
        return cd_err_key(err,
                          CD_FAIL(err, EMODEL,
                                  "device %s: no model knows one of its kind, and its description "
                                  "lacks the peak by which times of another kind would be scaled "
                                  "(fp32_gflops; or cores, lanes and clock_mhz)",
                                  d->name),
                          "fp32_gflops");
    if (!(d->bandwidth_gb_s > 0))
        return cd_err_key(err,
                          CD_FAIL(err, EMODEL,
                                  "device %s: no model knows one of its kind, and its description "
                                  "lacks the bandwidth by which times of another kind would be "
                                  "scaled",
                                  d->name),
                          "bandwidth_gb_s");
    return CDMPP_OK;
}

/* Of the default models one is of processors, the others are of GPUs. */
static bool is_other_default(const cd_model_set *m, const cd_model_set_entry *v,
                             const cd_device *d) {
    if (v->path == m->default_path) return d->kind == CD_DEVICE_GPU;
    return d->kind == CD_DEVICE_CPU && (v->path == m->gpu_path || v->path == m->gpu_default);
}

/* All models are loaded, because their own descriptions decide; default ones of another kind where
 * nothing else is left. */
cdmpp_status cd_model_set_stand_in(cd_model_set *m, const char *device, const cd_model **out,
                                   const char **stands, bool *other_kind, cdmpp_err *err) {
    const cd_device *d = cd_model_set_device(m, device);
    nearest of[2] = {{.far = (double)INFINITY}, {.far = (double)INFINITY}};
    bool any = false;
    for (size_t i = 0; d && i < 2 * m->n; i++) {
        cd_model_set_entry *v = &m->v[i % m->n];
        if (v->operators || is_other_default(m, v, d) != (i >= m->n) ||
            (i >= m->n && of[0].model) || !cd_model_set_uses(m, i % m->n))
            continue;
        any = true;
        if (!v->tasks) CD_TRY(cd_err_at(err, cd_model_load(v->path, &v->tasks, err), v->path, 0));
        nearest_of(m, v->tasks, d, of);
    }
    *other_kind = !of[0].model;
    if (any && !of[0].model && !of[1].model) CD_TRY(needs_peaks(d, of[0].any, err));
    *out = of[*other_kind].model;
    *stands = of[*other_kind].name;
    return CDMPP_OK;
}

const char *cd_model_set_also(const cd_model_set *m, const char *device) {
    size_t found = 0, k = 0;
    for (; k < m->n && found < 2; k++)
        found += !m->v[k].operators && m->v[k].path != m->gpu_default && knows(&m->v[k], device) &&
                 cd_model_set_uses(m, k);
    return found < 2 ? NULL : m->v[k - 1].path;
}

cd_device_doubt cd_model_set_doubt(const cd_model *model, size_t at, const float *want,
                                   const float *has, bool own_times, bool other_kind) {
    if (other_kind)
        return (cd_device_doubt){log(CD_MODEL_SET_BETWEEN_KINDS) / cd_normal_quantile(0.95), 0};
    return cd_model_device_doubt(model, at, want, has, own_times);
}

const char *cd_model_set_times_off(double spread, char out[CD_MODEL_SET_TIMES_OFF]) {
    const double times = exp(spread * cd_normal_quantile(0.95));
    (void)snprintf(out, CD_MODEL_SET_TIMES_OFF,
                   times < 1.095  ? "%.2f"
                   : times < 9.95 ? "%.1f"
                                  : "%.0f",
                   times);
    return out;
}

/* Up to the columns' references, `balance`: bytes by operations of these. */
static double roofline(const float *v, double flop, double bytes) {
    /* references of the columns flops and bandwidth: device_cols.def */
    static const double balance = 8141.0 / 320;
    return fmax(flop / pow(10, (double)v[CD_N_DEVICE_KIND + CD_DEVICE_COL_flops]),
                balance * bytes / pow(10, (double)v[CD_N_DEVICE_KIND + CD_DEVICE_COL_bandwidth]));
}

/* A peak that one of them does not know is of no use: arithmetic here would be compared with memory
 * there. */
double cd_model_set_rooflines(const float *here, const float *there, double flop, double bytes) {
    const double f = both_know(here, there, CD_DEVICE_COL_flops) ? fmax(flop, 0) : 0,
                 b = both_know(here, there, CD_DEVICE_COL_bandwidth) ? fmax(bytes, 0) : 0;
    return f > 0 || b > 0 ? roofline(here, f, b) / roofline(there, f, b) : 0;
}

/* A model of operators answers for devices that it never saw, from their description. */
cdmpp_status cd_model_set_ops(cd_model_set *m, const char *device, const cd_library_op_model **out,
                              cdmpp_err *err) {
    cd_model_set_entry *v = first(m, true, device, cd_model_set_device(m, device) != NULL);
    *out = NULL;
    if (!v) return CDMPP_OK;
    if (!v->ops)
        CD_TRY(cd_err_at(err, cd_library_op_model_load(v->path, &v->ops, err), v->path, 0));
    *out = v->ops;
    return CDMPP_OK;
}

void cd_model_set_list(const cd_model_set *m, cd_buf *out) {
    for (size_t k = 0; k < m->n; k++)
        for (size_t d = 0; cd_model_set_uses(m, k) && d < m->v[k].n_device; d++) {
            bool listed = false;
            for (size_t j = 0; j < k && !listed; j++) listed = knows(&m->v[j], m->v[k].device[d]);
            if (!listed) cd_buf_putf(out, "%s%s", out->n ? ", " : "", m->v[k].device[d]);
        }
}

const cd_device_numbers *cd_model_set_numbers(const cd_model *m, const cd_device *about) {
    return cd_model_own_times(m, about) ? about : NULL;
}

const char *cd_model_set_stands(const cd_model_set *m, const char *name) {
    for (size_t k = 0; k < m->n; k++)
        if (m->v[k].machine && !strcmp(m->v[k].machine, name) && cd_model_set_uses(m, k))
            return m->v[k].stands;
    return NULL;
}

const cd_device *cd_model_set_device(const cd_model_set *m, const char *name) {
    const cd_device *d = NULL;
    if (!m->devices || !name) return NULL;
    if (!cd_device_table_find(m->devices, name, &d, NULL)) return d;
    const char *stands = cd_model_set_stands(m, name);
    return stands && !cd_device_table_find(m->devices, stands, &d, NULL) ? d : NULL;
}
