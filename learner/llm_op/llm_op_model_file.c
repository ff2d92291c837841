/* The model file of operators of language models: the container of other models, with
 * "kind":"llm-operators" in the header and the boosters as weights. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "learner/llm_op/llm_op_model_file.h"

/* In the header of a model of operators of language models: which library and kernel each family
 * has rows of, and how far off what is new was. */

/* ---- writing ---- */
static void put_marked(cd_buf *b, const char *name, const bool *has, size_t n) {
    cd_buf_putf(b, "\"%s\":[", name);
    for (size_t i = 0, c = 0; i < n; i++)
        if (has[i]) cd_buf_putf(b, "%s%zu", c++ ? "," : "", i);
    cd_buf_puts(b, "]");
}

static void put_seen(cd_buf *b, const cd_llm_op_model *m) {
    cd_buf_puts(b, "\"seen\":{");
    for (int f = 0, n = 0; f < CD_LLM_OP_N_FAMILY; f++) {
        if (!m->has_stack[f] || !m->has_kernel[f]) continue;
        cd_buf_putf(b, "%s\"%s\":{", n++ ? "," : "", cd_llm_op_family_name((cd_llm_op_family)f));
        put_marked(b, "stacks", m->has_stack[f], m->stacks.n);
        cd_buf_puts(b, ",");
        put_marked(b, "kernels", m->has_kernel[f], m->kernels.n);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "},");
}

/* "seen" and "novelties", a comma behind each. */
static void llm_op_novel_put(cd_buf *b, const cd_llm_op_model *m) {
    put_seen(b, m);
    cd_buf_puts(b, "\"novelties\":[");
    for (int f = 0, n = 0; f < CD_LLM_OP_N_FAMILY; f++)
        for (int k = 0; k < CD_LLM_OP_N_NOVEL; k++) {
            const cd_novelty *v = &m->novel[f][k];
            const cd_str what = cd_enum_names_at(CD_LLM_OP_NOVELS, k);
            if (!v->n_value) continue;
            cd_buf_putf(b,
                        "%s{\"family\":\"%s\",\"what\":\"%.*s\",\"values\":%" PRIu64
                        ",\"rows\":%" PRIu64 ",\"between\":%.17g,",
                        n++ ? "," : "", cd_llm_op_family_name((cd_llm_op_family)f), (int)what.n,
                        what.p, v->n_value, v->n_row, v->between);
            cd_json_put_reals(b, "rest", v->rest, CD_NOVELTY_LEVELS, 17);
            cd_buf_puts(b, "}");
        }
    cd_buf_puts(b, "],");
}

/* "kv" of a range, behind its list of types. */
static void llm_op_kv_put(cd_buf *b, const cd_llm_op_range *g) {
    cd_buf_puts(b, "],\"kv\":{");
    for (int t = 0, n = 0; t < CD_LLM_OP_N_TYPE; t++) {
        if (!g->type[t]) continue;
        cd_buf_putf(b, "%s\"%s\":[", n++ ? "," : "", cd_llm_op_type_name((cd_llm_op_type)t));
        for (int k = 0, c = 0; k < CD_LLM_OP_N_TYPE; k++)
            if (g->kv[t] >> k & 1u)
                cd_buf_putf(b, "%s\"%s\"", c++ ? "," : "", cd_llm_op_type_name((cd_llm_op_type)k));
        cd_buf_puts(b, "]");
    }
    cd_buf_puts(b, "}");
}

/* ---- reading ---- */
static cdmpp_status read_marked(const cd_json *o, const char *key, size_t n, bool *has,
                                cdmpp_err *err) {
    const cd_json *list, *v;
    int64_t k;
    CD_TRY(cd_json_need(o, key, &list, err));
    CD_TRY(cd_err_key(err, cd_json_arr(list, 0, &v, err), key));
    for (; v; v = v->next) {
        CD_TRY(cd_err_key(err, cd_json_int(v, 0, (int64_t)n - 1, &k, err), key));
        has[k] = true;
    }
    return CDMPP_OK;
}

/* Of a family that is not named no row was trained on. */
static cdmpp_status read_seen(cd_llm_op_model *m, const cd_json *seen, cdmpp_err *err) {
    for (int f = 0; f < CD_LLM_OP_N_FAMILY; f++) {
        const char *name = cd_llm_op_family_name((cd_llm_op_family)f);
        const cd_json *o = cd_json_get(seen, name);
        m->has_stack[f] = CD_NEWN(&m->arena, bool, m->stacks.n + 1);
        m->has_kernel[f] = CD_NEWN(&m->arena, bool, m->kernels.n + 1);
        if (!m->has_stack[f] || !m->has_kernel[f]) return CD_FAIL(err, ENOMEM, "names of %s", name);
        if (!o) continue;
        CD_TRY(cd_err_key(err, read_marked(o, "stacks", m->stacks.n, m->has_stack[f], err), name));
        CD_TRY(
            cd_err_key(err, read_marked(o, "kernels", m->kernels.n, m->has_kernel[f], err), name));
    }
    return CDMPP_OK;
}

static cdmpp_status read_novelty(cd_llm_op_model *m, const cd_json *v, cdmpp_err *err) {
    cd_novelty x;
    cd_str family;
    size_t n;
    int f = 0, k;
    CD_TRY(cd_json_need_str(v, "family", &family, err));
    while (f < CD_LLM_OP_N_FAMILY && !cd_str_is(family, cd_llm_op_family_name((cd_llm_op_family)f)))
        f++;
    if (f == CD_LLM_OP_N_FAMILY)
        return cd_err_key(
            err, CD_FAIL(err, ESCHEMA, "unknown name '%.*s'", cd_str_shown(family, 40), family.p),
            "family");
    CD_TRY(cd_json_need_word(v, "what", CD_LLM_OP_NOVELS, &k, err));
    CD_TRY(cd_json_need_count(v, "values", &x.n_value, err));
    CD_TRY(cd_json_need_count(v, "rows", &x.n_row, err));
    CD_TRY(cd_json_need_real(v, "between", 0, 100, &x.between, err));
    CD_TRY(cd_json_need_reals(v, "rest", 1, CD_NOVELTY_LEVELS, 0, 100, CD_JSON_NOT_FALLING, x.rest,
                              &n, err));
    if (n != CD_NOVELTY_LEVELS)
        return cd_err_key(
            err, CD_FAIL(err, ESCHEMA, "expected %d numbers, found %zu", CD_NOVELTY_LEVELS, n),
            "rest");
    if (m->novel[f][k].n_value)
        return CD_FAIL(err, ESCHEMA, "a second entry of this family and what is new");
    m->novel[f][k] = x;
    return CDMPP_OK;
}

/* What a file without them lacks is not known. Names are read before. Errors: ESCHEMA, ERANGE,
 * ENOMEM. */
static cdmpp_status llm_op_novel_read(cd_llm_op_model *m, const cd_json *model, cdmpp_err *err) {
    const cd_json *seen = cd_json_get(model, "seen"), *list = cd_json_get(model, "novelties"), *v;
    if (seen) CD_TRY(cd_err_key(err, read_seen(m, seen, err), "seen"));
    if (!list) return CDMPP_OK;
    CD_TRY(cd_err_key(err, cd_json_arr(list, 0, &v, err), "novelties"));
    for (size_t i = 0; v; v = v->next, i++) {
        const cdmpp_status st = read_novelty(m, v, err);
        if (st) return cd_err_key(err, cd_err_index(err, st, i), "novelties");
    }
    return CDMPP_OK;
}

enum { MAX_DEVICE = 4096 };

static void digest(char out[65]) {
    cd_sha256 h;
    const char version[] = {'0' + CD_LLM_OP_FEATURE_VERSION, '\n'};
    cd_sha256_init(&h);
    cd_sha256_add(&h, version, sizeof version);
    for (size_t i = 0; i < CD_LLM_OP_N_FEATURE; i++)
        cd_sha256_add(&h, cd_llm_op_feature_name(i), strlen(cd_llm_op_feature_name(i)) + 1);
    for (int k = 0; k < CD_LLM_OP_N_KIND; k++)
        cd_sha256_add(&h, cd_llm_op_kind_name((cd_llm_op_kind)k),
                      strlen(cd_llm_op_kind_name((cd_llm_op_kind)k)) + 1);
    for (int t = 0; t < CD_LLM_OP_N_TYPE; t++)
        cd_sha256_add(&h, cd_llm_op_type_name((cd_llm_op_type)t),
                      strlen(cd_llm_op_type_name((cd_llm_op_type)t)) + 1);
    cd_sha256_hex(&h, out);
}

/* ---- writing ---- */
static void put_names(cd_buf *b, const char *name, const cd_dict *d) {
    cd_buf_putf(b, "\"%s\":[", name);
    for (size_t i = 0; i < d->n; i++) {
        if (i) cd_buf_puts(b, ",");
        cd_buf_put_json_str(b, d->text[i], strlen(d->text[i]));
    }
    cd_buf_puts(b, "],");
}

static void put_numbers(cd_buf *b, const cd_device *d) {
    int n = 0;
    cd_buf_puts(b, "\"numbers\":{");
#define X(key, low, high, unit, meaning)                                                           \
    if (d->key >= 0) cd_buf_putf(b, "%s\"" #key "\":%.17g", n++ ? "," : "", d->key);
#include "features/device/device_keys.def"
    cd_buf_puts(b, "}");
}

static void put_types(cd_buf *b, const cd_llm_op_model_device *d) {
    cd_buf_puts(b, "\"types\":{");
    for (int f = 0, n = 0; f < CD_LLM_OP_N_FAMILY; f++) {
        if (!d->family[f]) continue;
        cd_buf_putf(b, "%s\"%s\":[", n++ ? "," : "", cd_llm_op_family_name((cd_llm_op_family)f));
        for (int t = 0, c = 0; t < CD_LLM_OP_N_TYPE; t++)
            if (d->types[f] >> t & 1u)
                cd_buf_putf(b, "%s\"%s\"", c++ ? "," : "", cd_llm_op_type_name((cd_llm_op_type)t));
        cd_buf_puts(b, "]");
    }
    cd_buf_puts(b, "},");
}

static void put_devices(cd_buf *b, const cd_llm_op_model *m) {
    cd_buf_puts(b, "\"devices\":[");
    for (size_t i = 0; i < m->n_device; i++) {
        cd_buf_puts(b, i ? ",{\"name\":" : "{\"name\":");
        cd_buf_put_json_str(b, m->device[i].name, strlen(m->device[i].name));
        cd_buf_putf(b, ",\"warp\":%.17g,\"families\":[", m->device[i].warp);
        for (int f = 0, n = 0; f < CD_LLM_OP_N_FAMILY; f++)
            if (m->device[i].family[f])
                cd_buf_putf(b, "%s\"%s\"", n++ ? "," : "",
                            cd_llm_op_family_name((cd_llm_op_family)f));
        cd_buf_puts(b, "],");
        put_types(b, &m->device[i]);
        put_numbers(b, &m->device[i].about);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "],\"ranges\":[");
}

static void put_ranges(cd_buf *b, const cd_llm_op_model *m) {
    for (int k = 0, n = 0; k < CD_LLM_OP_N_KIND; k++) {
        const cd_llm_op_range *g = &m->range[k];
        const size_t size = cd_llm_op_n_size((cd_llm_op_kind)k);
        if (!g->any) continue;
        cd_buf_putf(b, "%s{\"kind\":\"%s\",\"types\":[", n++ ? "," : "",
                    cd_llm_op_kind_name((cd_llm_op_kind)k));
        for (int t = 0, c = 0; t < CD_LLM_OP_N_TYPE; t++)
            if (g->type[t])
                cd_buf_putf(b, "%s\"%s\"", c++ ? "," : "", cd_llm_op_type_name((cd_llm_op_type)t));
        llm_op_kv_put(b, g);
        for (size_t i = 0; i < size; i++)
            cd_buf_putf(b, "%s%.17g", i ? "," : ",\"low\":[", g->low[i]);
        for (size_t i = 0; i < size; i++)
            cd_buf_putf(b, "%s%.17g", i ? "," : "],\"high\":[", g->high[i]);
        cd_buf_puts(b, "]}");
    }
    cd_buf_puts(b, "],");
}

static void put_calls(cd_buf *b, const cd_llm_op_model *m) {
    cd_buf_puts(b, "\"calls\":[");
    for (size_t i = 0; i < m->n_call; i++) {
        const cd_llm_op_call *h = &m->call[i];
        cd_buf_putf(b,
                    "%s{\"kind\":\"%s\",\"type\":\"%s\",\"maker\":%d,\"kernel\":%d,\"host_s\":%."
                    "17g,\"alone\":%d}",
                    i ? "," : "", cd_llm_op_kind_name((cd_llm_op_kind)h->kind),
                    cd_llm_op_type_name((cd_llm_op_type)h->type), (int)h->maker, (int)h->kernel,
                    h->host_s, h->alone);
    }
    cd_buf_puts(b, "],\"parts\":[");
}

typedef struct {
    size_t gbt, spread;
} bytes;

static void put_part(cd_buf *b, const cd_llm_op_part *p, int f, int s, const bytes *n, bool first) {
    const cd_str set = cd_enum_names_at(CD_LLM_OP_SET_NAMES, s);
    cd_buf_putf(b,
                "%s{\"family\":\"%s\",\"set\":\"%.*s\",\"bias\":%.17g,\"rows\":%llu,\"bytes\":%zu,"
                "\"spread_bytes\":%zu,\"spread_bias\":%.17g,\"times\":[",
                first ? "" : ",", cd_llm_op_family_name((cd_llm_op_family)f), (int)set.n, set.p,
                p->bias, (unsigned long long)p->n_row, n->gbt, n->spread, p->spread_bias);
    for (size_t i = 0; i < CD_LLM_OP_LEVELS; i++)
        cd_buf_putf(b, "%s%.17g", i ? "," : "", p->times[i]);
    cd_buf_puts(b, "]}");
}

static cdmpp_status put_trees(const cd_llm_op_model *m, cd_buf *trees,
                              bytes n[CD_LLM_OP_N_FAMILY][CD_LLM_OP_N_SET], cdmpp_err *err) {
    for (size_t f = 0; f < CD_LLM_OP_N_FAMILY; f++)
        for (size_t s = 0; s < CD_LLM_OP_N_SET; s++) {
            const cd_llm_op_part *p = &m->part[f][s];
            const size_t start = trees->n;
            if (p->gbt) CD_TRY(cd_xgb_save_bare(p->gbt, trees, err));
            const size_t middle = trees->n;
            if (p->spread) CD_TRY(cd_xgb_save_bare(p->spread, trees, err));
            n[f][s] = (bytes){middle - start, trees->n - middle};
        }
    return CDMPP_OK;
}

cdmpp_status cd_llm_op_model_encode(const cd_llm_op_model *m, const char *provenance, cd_buf *out,
                                    cdmpp_err *err) {
    cd_buf trees = {0}, h = {0};
    bytes n[CD_LLM_OP_N_FAMILY][CD_LLM_OP_N_SET] = {{{0, 0}}};
    char sum[65];
    bool first = true;
    cdmpp_status st = put_trees(m, &trees, n, err);
    digest(sum);
    cd_buf_putf(&h,
                "{\"schema\":\"cdmpp.model\",\"schema_version\":%d,\"model\":{\"kind\":\"llm-"
                "operators\",\"feature_version\":%d,\"feature_digest\":\"%s\",",
                CD_CONTAINER_MODEL_VERSION, CD_LLM_OP_FEATURE_VERSION, sum);
    put_names(&h, "stacks", &m->stacks);
    put_names(&h, "kernels", &m->kernels);
    put_devices(&h, m);
    put_ranges(&h, m);
    llm_op_novel_put(&h, m);
    put_calls(&h, m);
    for (int f = 0; f < CD_LLM_OP_N_FAMILY; f++)
        for (int s = 0; s < CD_LLM_OP_N_SET; s++) {
            if (!m->part[f][s].gbt) continue;
            put_part(&h, &m->part[f][s], f, s, &n[f][s], first);
            first = false;
        }
    cd_buf_putf(&h, "]}%s}", provenance);
    if (!st) st = cd_container_put(CD_CONTAINER_MODEL, out, &h, &trees, err);
    cd_buf_free(&trees);
    cd_buf_free(&h);
    return st;
}

/* ---- reading ---- */
static int position(cd_str s, const char *(*name)(int), int n) {
    for (int k = 0; k < n; k++)
        if (cd_str_is(s, name(k))) return k;
    return -1;
}
static const char *family_name(int k) { return cd_llm_op_family_name((cd_llm_op_family)k); }
static const char *kind_name(int k) { return cd_llm_op_kind_name((cd_llm_op_kind)k); }
static const char *type_name(int k) { return cd_llm_op_type_name((cd_llm_op_type)k); }

static cdmpp_status word(const cd_json *v, const char *(*name)(int), int n, int *out,
                         cdmpp_err *err) {
    cd_str s;
    CD_TRY(cd_json_str(v, &s, err));
    *out = position(s, name, n);
    return *out < 0 ? CD_FAIL(err, ESCHEMA, "unknown name '%.*s'", cd_str_shown(s, 40), s.p)
                    : CDMPP_OK;
}

static cdmpp_status need_word(const cd_json *o, const char *key, const char *(*name)(int), int n,
                              int *out, cdmpp_err *err) {
    const cd_json *v;
    CD_TRY(cd_json_need(o, key, &v, err));
    return cd_err_key(err, word(v, name, n, out, err), key);
}

static cdmpp_status read_names(const cd_json *model, const char *key, cd_dict *d, cdmpp_err *err) {
    const cd_json *list, *v;
    CD_TRY(cd_json_need(model, key, &list, err));
    CD_TRY(cd_err_key(err, cd_json_arr(list, 0, &v, err), key));
    for (; v; v = v->next) {
        cd_str s;
        uint32_t k;
        CD_TRY(cd_err_key(err, cd_json_str(v, &s, err), key));
        CD_TRY(cd_dict_add(d, s, &k, err));
    }
    return CDMPP_OK;
}

/* A list of names as flags. */
static cdmpp_status flags(const cd_json *o, const char *key, const char *(*name)(int), int n,
                          bool *out, cdmpp_err *err) {
    const cd_json *list, *v;
    CD_TRY(cd_json_need(o, key, &list, err));
    CD_TRY(cd_err_key(err, cd_json_arr(list, 0, &v, err), key));
    for (; v; v = v->next) {
        int k;
        CD_TRY(cd_err_key(err, word(v, name, n, &k, err), key));
        out[k] = true;
    }
    return CDMPP_OK;
}

/* Older files have none, and a description need not tell all. */
static cdmpp_status read_numbers(const cd_json *o, const char *name, cd_device *d, cdmpp_err *err) {
    const cd_json *v = cd_json_get(o, "numbers"), *x;
    *d = (cd_device){.name = name, .kind = CD_DEVICE_GPU};
#define X(key, low, high, unit, meaning) d->key = CD_DEVICE_UNKNOWN;
#include "features/device/device_keys.def"
    if (!v) return CDMPP_OK;
#define X(key, low, high, unit, meaning)                                                           \
    if ((x = cd_json_get(v, #key)) != NULL)                                                        \
        CD_TRY(cd_err_key(err, cd_json_real(x, &d->key, err), #key));
#include "features/device/device_keys.def"
    return CDMPP_OK;
}

/* Older files do not say which GPU has rows of which type. */
static cdmpp_status read_types(const cd_json *o, cd_llm_op_model_device *d, cdmpp_err *err) {
    const cd_json *v = cd_json_get(o, "types");
    for (int f = 0; f < CD_LLM_OP_N_FAMILY; f++) {
        bool type[CD_LLM_OP_N_TYPE] = {false};
        d->types[f] = v ? 0 : UINT32_MAX;
        if (!v || !d->family[f]) continue;
        CD_TRY(flags(v, cd_llm_op_family_name((cd_llm_op_family)f), type_name, CD_LLM_OP_N_TYPE,
                     type, err));
        for (int t = 0; t < CD_LLM_OP_N_TYPE; t++) d->types[f] |= (uint32_t)type[t] << t;
    }
    return CDMPP_OK;
}

static cdmpp_status read_devices(cd_llm_op_model *m, const cd_json *model, cdmpp_err *err) {
    const cd_json *list, *v;
    CD_TRY(cd_json_need(model, "devices", &list, err));
    CD_TRY(cd_json_arr(list, 0, &v, err));
    if (list->n > MAX_DEVICE)
        return CD_FAIL(err, ERANGE, "expected at most %d devices, found %u", MAX_DEVICE, list->n);
    m->device = CD_NEWN(&m->arena, cd_llm_op_model_device, list->n + 1);
    if (!m->device) return CD_FAIL(err, ENOMEM, "%u devices", list->n);
    for (; v; v = v->next, m->n_device++) {
        cd_str name;
        CD_TRY(cd_json_need_str(v, "name", &name, err));
        m->device[m->n_device].name = cd_str_dup(&m->arena, name);
        if (!m->device[m->n_device].name) return CD_FAIL(err, ENOMEM, "device name");
        CD_TRY(cd_json_need_real(v, "warp", -1, 1e6, &m->device[m->n_device].warp, err));
        CD_TRY(flags(v, "families", family_name, CD_LLM_OP_N_FAMILY, m->device[m->n_device].family,
                     err));
        CD_TRY(cd_err_key(err, read_types(v, &m->device[m->n_device], err), "types"));
        CD_TRY(cd_err_key(
            err, read_numbers(v, m->device[m->n_device].name, &m->device[m->n_device].about, err),
            "numbers"));
    }
    return CDMPP_OK;
}

static cdmpp_status numbers(const cd_json *o, const char *key, size_t n, double *out,
                            cdmpp_err *err) {
    const cd_json *list, *v;
    CD_TRY(cd_json_need(o, key, &list, err));
    CD_TRY(cd_err_key(err, cd_json_arr(list, (unsigned)n, &v, err), key));
    if (list->n != n)
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected %zu numbers, found %u", n, list->n),
                          key);
    for (size_t i = 0; i < n; i++, v = v->next)
        CD_TRY(cd_err_key(err, cd_json_real(v, &out[i], err), key));
    return CDMPP_OK;
}

/* Older files do not say which caches go with which type. */
static cdmpp_status read_kv(const cd_json *o, cd_llm_op_range *g, cdmpp_err *err) {
    const cd_json *v = cd_json_get(o, "kv");
    for (int t = 0; t < CD_LLM_OP_N_TYPE; t++) {
        bool kv[CD_LLM_OP_N_TYPE] = {false};
        g->kv[t] = v ? 0 : UINT32_MAX;
        if (!v || !g->type[t]) continue;
        CD_TRY(flags(v, type_name(t), type_name, CD_LLM_OP_N_TYPE, kv, err));
        for (int k = 0; k < CD_LLM_OP_N_TYPE; k++) g->kv[t] |= (uint32_t)kv[k] << k;
    }
    return CDMPP_OK;
}

static cdmpp_status read_range(cd_llm_op_model *m, const cd_json *v, cdmpp_err *err) {
    int k;
    CD_TRY(need_word(v, "kind", kind_name, CD_LLM_OP_N_KIND, &k, err));
    cd_llm_op_range *g = &m->range[k];
    g->any = true;
    CD_TRY(flags(v, "types", type_name, CD_LLM_OP_N_TYPE, g->type, err));
    CD_TRY(cd_err_key(err, read_kv(v, g, err), "kv"));
    CD_TRY(numbers(v, "low", cd_llm_op_n_size((cd_llm_op_kind)k), g->low, err));
    return numbers(v, "high", cd_llm_op_n_size((cd_llm_op_kind)k), g->high, err);
}

static cdmpp_status read_call(cd_llm_op_model *m, const cd_json *v, cdmpp_err *err) {
    cd_llm_op_call *h = &m->call[m->n_call];
    const cd_json *code;
    int kind, type;
    int64_t maker, kernel, alone;
    CD_TRY(need_word(v, "kind", kind_name, CD_LLM_OP_N_KIND, &kind, err));
    CD_TRY(need_word(v, "type", type_name, CD_LLM_OP_N_TYPE, &type, err));
    CD_TRY(cd_json_need(v, "maker", &code, err));
    CD_TRY(cd_err_key(err, cd_json_int(code, 0, (int64_t)m->stacks.n - 1, &maker, err), "maker"));
    CD_TRY(cd_json_need(v, "kernel", &code, err));
    CD_TRY(
        cd_err_key(err, cd_json_int(code, -1, (int64_t)m->kernels.n - 1, &kernel, err), "kernel"));
    CD_TRY(cd_json_need_real(v, "host_s", 0, 1, &h->host_s, err));
    CD_TRY(cd_json_need(v, "alone", &code, err));
    CD_TRY(cd_err_key(err, cd_json_int(code, 0, 1, &alone, err), "alone"));
    h->kind = (uint8_t)kind, h->type = (uint8_t)type, h->maker = (float)maker,
    h->kernel = (float)kernel, h->alone = alone == 1;
    m->n_call++;
    return CDMPP_OK;
}

/* A model without them knows nothing of its kernels. */
static cdmpp_status read_calls(cd_llm_op_model *m, const cd_json *model, cdmpp_err *err) {
    const cd_json *list = cd_json_get(model, "calls"), *v;
    if (!list) return CDMPP_OK;
    CD_TRY(cd_json_arr(list, 0, &v, err));
    m->call = CD_NEWN(&m->arena, cd_llm_op_call, list->n + 1);
    if (!m->call) return CD_FAIL(err, ENOMEM, "%u calls", list->n);
    for (; v; v = v->next) CD_TRY(read_call(m, v, err));
    return CDMPP_OK;
}

static cdmpp_status trees(const cd_json *v, const char *key, size_t width, cd_str *weights,
                          cd_xgb **out, cdmpp_err *err) {
    const cd_json *size;
    int64_t n;
    CD_TRY(cd_json_need(v, key, &size, err));
    CD_TRY(cd_err_key(err, cd_json_int(size, 0, (int64_t)weights->n, &n, err), key));
    if (n) CD_TRY(cd_xgb_load(weights->p, (size_t)n, width, out, err));
    weights->p += n;
    weights->n -= (size_t)n;
    return CDMPP_OK;
}

static cdmpp_status read_part(cd_llm_op_model *m, const cd_json *v, cd_str *weights,
                              cdmpp_err *err) {
    const cd_json *rows;
    int64_t n;
    int f, s;
    CD_TRY(need_word(v, "family", family_name, CD_LLM_OP_N_FAMILY, &f, err));
    CD_TRY(cd_json_need_word(v, "set", CD_LLM_OP_SET_NAMES, &s, err));
    cd_llm_op_part *p = &m->part[f][s];
    if (p->gbt) return CD_FAIL(err, ESCHEMA, "a second part of this family and set");
    CD_TRY(cd_json_need_real(v, "bias", -100, 100, &p->bias, err));
    CD_TRY(cd_json_need_real(v, "spread_bias", -100, 100, &p->spread_bias, err));
    CD_TRY(cd_json_need(v, "rows", &rows, err));
    CD_TRY(cd_err_key(err, cd_json_int(rows, 0, INT64_MAX, &n, err), "rows"));
    p->n_row = (uint64_t)n;
    CD_TRY(numbers(v, "times", CD_LLM_OP_LEVELS, p->times, err));
    const size_t width = cd_llm_op_feature_width((cd_llm_op_set)s);
    CD_TRY(trees(v, "bytes", width, weights, &p->gbt, err));
    if (!p->gbt) return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected trees"), "bytes");
    return trees(v, "spread_bytes", width, weights, &p->spread, err);
}

static cdmpp_status check(const cd_json *model, cdmpp_err *err) {
    const cd_json *kind = cd_json_get(model, "kind");
    cd_str have;
    char want[65];
    if (!kind || kind->kind != CD_JSON_STR || !cd_str_is(kind->u.s, "llm-operators"))
        return CD_FAIL(err, EMODEL, "no model of operators of language models");
    CD_TRY(cd_json_need_str(model, "feature_digest", &have, err));
    digest(want);
    if (cd_str_is(have, want)) return CDMPP_OK;
    return CD_FAIL(err, EMODEL,
                   "operator features: this program makes %.12s..., the model was trained on "
                   "%.*s...: train it again",
                   want, cd_str_shown(have, 12), have.p);
}

static cdmpp_status read_body(cd_llm_op_model *m, const cd_json *model, cd_str weights,
                              cdmpp_err *err) {
    const cd_json *list, *v;
    CD_TRY(check(model, err));
    CD_TRY(read_names(model, "stacks", &m->stacks, err));
    CD_TRY(read_names(model, "kernels", &m->kernels, err));
    CD_TRY(cd_err_key(err, read_devices(m, model, err), "devices"));
    CD_TRY(cd_json_need(model, "ranges", &list, err));
    CD_TRY(cd_err_key(err, cd_json_arr(list, 0, &v, err), "ranges"));
    for (size_t i = 0; v; v = v->next, i++)
        CD_TRY(cd_err_key(err, read_range(m, v, err), "ranges"));
    CD_TRY(cd_err_key(err, read_calls(m, model, err), "calls"));
    CD_TRY(llm_op_novel_read(m, model, err));
    CD_TRY(cd_json_need(model, "parts", &list, err));
    CD_TRY(cd_err_key(err, cd_json_arr(list, 0, &v, err), "parts"));
    for (; v; v = v->next) CD_TRY(cd_err_key(err, read_part(m, v, &weights, err), "parts"));
    return weights.n ? CD_FAIL(err, ESCHEMA, "%zu bytes behind the last part", weights.n)
                     : CDMPP_OK;
}

static cdmpp_status read_model(cd_llm_op_model *m, const cd_container *f, cdmpp_err *err) {
    const cd_json *root, *model;
    CD_TRY(cd_container_header(f, &m->arena, &m->header, &root, err));
    CD_TRY(cd_json_need(root, "model", &model, err));
    return cd_err_key(err, read_body(m, model, f->weights, err), "model");
}

cdmpp_status cd_llm_op_model_from_bytes(const void *p, size_t n, cd_llm_op_model **out,
                                        cdmpp_err *err) {
    cd_container f;
    CD_TRY(cd_container_get(CD_CONTAINER_MODEL, p, n, &f, err));
    cd_llm_op_model *m = cd_mem_zalloc(1, sizeof *m);
    if (!m) return CD_FAIL(err, ENOMEM, "model");
    const cdmpp_status st = read_model(m, &f, err);
    if (st) cd_llm_op_model_free(m);
    else *out = m;
    return st;
}

/* The members of a header stand in one order, so its start tells the kind; what is damaged is told
 * by who reads it. */
bool cd_llm_op_model_is(const void *p, size_t n) {
    static const char start[] = "\"model\":{\"kind\":\"llm-operators\"";
    cd_container f;
    if (cd_container_get(CD_CONTAINER_MODEL, p, n, &f, NULL)) return false;
    return memmem(f.header.p, f.header.n < 256 ? f.header.n : 256, start, sizeof start - 1) != NULL;
}
