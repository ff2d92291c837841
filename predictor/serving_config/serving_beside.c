/* Files that stand beside config.json in a checkpoint's folder: what is quantised, and how many
 * bytes all weights are. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "predictor/serving_config/serving_read.h"

enum { MAX_BYTES = 64 << 20, PATH = 4096 }; /* an index names each of some 100,000 weights */

/* ModelOpt puts its fields into a member; the others are the object itself. */
static const struct {
    const char *name, *member;
} typed[] = {{"hf_quant_config.json", "quantization"},
             {"quantize_config.json", NULL},
             {"quant_config.json", NULL}};
static const char index_name[] = "model.safetensors.index.json";

static bool beside_path(const char *path, const char *name, char out[PATH]) {
    const char *slash = strrchr(path, '/');
    const int n = slash ? (int)(slash - path) + 1 : 0;
    return snprintf(out, PATH, "%.*s%s", n, path, name) < PATH && !access(out, F_OK);
}

/* The tree of a file; what it is made of lives in the arena. */
static cdmpp_status load(cd_arena *a, const char *path, cd_serving_model *m, const cd_json **out,
                         cdmpp_err *err) {
    char *text = NULL, *copy;
    size_t n;
    CD_TRY(cd_file_read(path, MAX_BYTES, &text, &n, err));
    copy = cd_arena_alloc(a, n + 1, 1);
    cdmpp_status st = copy ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu bytes", n);
    if (!st)
        memcpy(copy, text, n),
            st = cd_serving_parse(a, (cd_str){copy, n},
                                  strrchr(path, '/') ? strrchr(path, '/') + 1 : path, m, out, err);
    cd_mem_free(text);
    if (!st && (*out)->kind != CD_JSON_OBJ)
        st = CD_FAIL(err, ESCHEMA, "expected an object, found %s", cd_json_kind_name((*out)->kind));
    return cd_err_at(err, st, path, 0);
}

static cdmpp_status read_typed(cd_arena *a, const char *path, size_t k, cd_serving_model *m,
                               cd_serving_beside *out, cdmpp_err *err) {
    const cd_json *root;
    CD_TRY(load(a, path, m, &root, err));
    const cd_json *types = typed[k].member ? cd_json_get(root, typed[k].member) : root;
    if (!types || types->kind != CD_JSON_OBJ)
        return cd_err_at(
            err,
            cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected an object that says what is quantised"),
                       typed[k].member),
            path, 0);
    const cd_json *algo = cd_json_get(types, "quant_algo");
    /* nothing is */
    if (typed[k].member && (!algo || algo->kind == CD_JSON_NULL) &&
        cd_serving_is_plain(cd_json_get(types, "kv_cache_quant_algo")))
        return CDMPP_OK;
    out->name = typed[k].name, out->types = types;
    return (out->path = cd_arena_text(a, path)) ? CDMPP_OK : CD_FAIL(err, ENOMEM, "path");
}

/* It only checks the answer: one that cannot be read is told, and no error. */
static cdmpp_status read_index(cd_arena *a, const char *path, cd_serving_model *m,
                               cd_serving_beside *out, cdmpp_err *err) {
    const cd_json *root = NULL, *v;
    cdmpp_err why = {0};
    const cdmpp_status st = load(a, path, m, &root, &why);
    if (st == CDMPP_ENOMEM) {
        cd_err_from(err, &why);
        return st;
    }
    v = st ? NULL : cd_json_get(root, "metadata");
    v = v ? cd_json_get(v, "total_size") : NULL;
    if (!v || cd_json_real(v, &out->bytes, NULL) || !(out->bytes > 0)) {
        out->bytes = 0;
        cd_serving_doubt(m,
                         "%s beside it has no metadata.total_size that can be read: the number of "
                         "weights is not checked",
                         index_name);
    }
    return CDMPP_OK;
}

cdmpp_status cd_serving_beside_read(cd_arena *a, const char *path, cd_serving_model *m,
                                    cd_serving_beside *out, cdmpp_err *err) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char at[PATH];
    *out = (cd_serving_beside){0};
    for (size_t k = 0; k < sizeof typed / sizeof *typed && !out->types; k++) {
        if (!beside_path(path, typed[k].name, at)) continue;
        if (!strcmp(name, "config.json")) CD_TRY(read_typed(a, at, k, m, out, err));
        else
            cd_serving_doubt(m, "%s beside it is not read, as it is of a config.json",
                             typed[k].name);
    }
    return !strcmp(name, "config.json") && beside_path(path, index_name, at)
               ? read_index(a, at, m, out, err)
               : CDMPP_OK;
}

#define NEAR 0.05 /* norms and biases are less; a layer that is left out is more */

void cd_serving_beside_compare(const cd_serving_beside *b, cd_serving_model *m) {
    const double ours = cd_serving_model_bytes(m);
    if (!(b->bytes > 0) || m->untyped.code || fabs(ours / b->bytes - 1) <= NEAR) return;
    cd_serving_doubt(m,
                     "%s says %.4g GB of weights, the sizes of config.json make %.4g GB (%+.0f "
                     "%%): parts are left out here, or types are others than it says",
                     index_name, b->bytes * 1e-9, ours * 1e-9, 100 * (ours / b->bytes - 1));
}
