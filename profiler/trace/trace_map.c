/* trace_map -- which operators kernels are, from a file.
 *
 *   CSV  kernel,operator  JSON  {"nodes": [{"name": "resnet/conv1", "op": "spatial_convolution",
 *        sgemm*,MatMul                      "attrs": {"input_0": "x:0  |  [8,3,224,224]  |  int8  |
 *     zp = -14  |  ", ..}}]}
 *
 * The JSON is Habana's graph after its compiler (NAME.recipe-PostGraph-symbol.json), or the layers
 * of a TensorRT engine (trtexec --exportLayerInfo):
 *   {"Layers": [{"Name": "conv1 + relu1", "LayerType": "CaskConvolution", "Inputs": [{"Dimensions":
 *   [1,3,224,224], ..}], ..}]}
 * Names are whole, inputs are kept. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "profiler/trace/trace_combine.h"

/* ---- Habana's graph ---- */

/* The list of sizes in "x:0  |  [8,3,224,224]  |  int8  |  .."; false: there is none. */
static bool put_dims(cd_buf *b, cd_str attr) {
    const char *from = attr.n ? memchr(attr.p, '[', attr.n) : NULL,
               *to = from ? memchr(from, ']', (size_t)(attr.p + attr.n - from)) : NULL;
    if (!to) return false;
    for (const char *p = from + 1; p < to; p++)
        if (!isdigit((unsigned char)*p) &&
            (*p != ',' || !isdigit((unsigned char)p[-1]) || p + 1 == to))
            return false;
    cd_buf_put(b, from, (size_t)(to - from) + 1);
    return true;
}

/* Sizes of input_0, input_1 ..; "" where one is not known. */
static cdmpp_status inputs_of(cd_trace_map *m, const cd_json *attrs, const char **out,
                              cdmpp_err *err) {
    cd_buf b = {0};
    bool good = true;
    cd_buf_puts(&b, "[");
    for (int i = 0;; i++) {
        char name[24];
        snprintf(name, sizeof name, "input_%d", i);
        const cd_json *v = cd_json_get(attrs, name);
        if (!v) break;
        if (i) cd_buf_puts(&b, ",");
        good = good && v->kind == CD_JSON_STR && put_dims(&b, v->u.s);
    }
    cd_buf_puts(&b, "]");
    *out = b.oom ? NULL : cd_arena_text(&m->arena, good && b.n > 2 ? b.p : "");
    cd_buf_free(&b);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "map of operators");
}

/* ---- the layers of an engine ---- */

/* Sizes of all inputs of a layer; "" where one is not known. */
static cdmpp_status layer_inputs(cd_trace_map *m, const cd_json *inputs, const char **out,
                                 cdmpp_err *err) {
    cd_buf b = {0};
    bool good = inputs && inputs->kind == CD_JSON_ARR && inputs->n;
    cd_buf_puts(&b, "[");
    for (const cd_json *in = good ? inputs->u.child : NULL; in; in = in->next) {
        const cd_json *dims = cd_json_get(in, "Dimensions");
        good = good && dims && dims->kind == CD_JSON_ARR;
        cd_buf_puts(&b, in == inputs->u.child ? "[" : ",[");
        for (const cd_json *d = good ? dims->u.child : NULL; d; d = d->next) {
            good = good && d->kind == CD_JSON_INT;
            cd_buf_putf(&b, "%s%lld", d == dims->u.child ? "" : ",",
                        d->kind == CD_JSON_INT ? (long long)d->u.i : 0);
        }
        cd_buf_puts(&b, "]");
    }
    cd_buf_puts(&b, "]");
    *out = b.oom ? NULL : cd_arena_text(&m->arena, good ? b.p : "");
    cd_buf_free(&b);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "map of operators");
}

static cdmpp_status add_node(cd_trace_map *m, const cd_json *v, bool layer, cdmpp_err *err) {
    cd_str name, op;
    uint32_t k;
    const size_t known = m->name.n;
    if (layer && v->kind == CD_JSON_STR)
        return CD_FAIL(err, ESCHEMA,
                       "expected an object, found a name: trtexec tells more of an engine that was "
                       "built with --profilingVerbosity=detailed");
    CD_TRY(cd_json_need_str(v, layer ? "Name" : "name", &name, err));
    CD_TRY(cd_json_need_str(v, layer ? "LayerType" : "op", &op, err));
    CD_TRY(cd_dict_add(&m->name, name, &k, err));
    if (k < known) return CD_FAIL(err, ESCHEMA, "two nodes are named '%.60s'", m->name.text[k]);
    if (CD_GROW_IN(&m->arena, m->node, k, m->cap) || !(m->node[k].op = cd_str_dup(&m->arena, op)))
        return CD_FAIL(err, ENOMEM, "map of operators");
    return layer ? layer_inputs(m, cd_json_get(v, "Inputs"), &m->node[k].inputs, err)
                 : inputs_of(m, cd_json_get(v, "attrs"), &m->node[k].inputs, err);
}

static cdmpp_status read_graph(cd_trace_map *m, const char *text, size_t n, cdmpp_err *err) {
    const cd_json *v = NULL, *nodes, *first;
    size_t i = 0;
    CD_TRY(cd_json_parse(&m->arena, text, n, &v, err));
    const bool layers = cd_json_get(v, "Layers") != NULL;
    const char *list = layers ? "Layers" : "nodes";
    CD_TRY(cd_json_need(v, list, &nodes, err));
    CD_TRY(cd_err_key(err, cd_json_arr(nodes, 1, &first, err), list));
    for (; first; first = first->next, i++)
        CD_TRY(cd_err_key(err, cd_err_index(err, add_node(m, first, layers, err), i), list));
    return CDMPP_OK;
}

/* ---- both ---- */
static cdmpp_status read_table(cd_trace_map *m, const char *path, cdmpp_err *err) {
    CD_TRY(cd_csv_table_read(&m->table, path, err));
    CD_TRY(cd_csv_table_need(&m->table, "kernel", &m->kernel, err));
    CD_TRY(cd_csv_table_need(&m->table, "operator", &m->op, err));
    for (size_t i = 0; i < m->table.n_row; i++) {
        const char *op = m->table.cell[i][m->op];
        if (!cd_str_is_utf8((cd_str){op, strlen(op)}))
            return cd_err_at(err, CD_FAIL(err, ESCHEMA, "expected names in UTF-8"), path,
                             m->table.line[i]);
    }
    return CDMPP_OK;
}

cdmpp_status cd_trace_map_read(cd_trace_map *m, const char *path, cdmpp_err *err) {
    char *text = NULL;
    size_t n = 0;
    *m = (cd_trace_map){0};
    CD_TRY(cd_file_read(path, CD_TRACE_MAP_MAX, &text, &n, err));
    const bool json = text[strspn(text, " \t\r\n")] == '{';
    const cdmpp_status st = json ? cd_err_at(err, read_graph(m, text, n, err), path, 0) : CDMPP_OK;
    cd_mem_free(text);
    return json ? st : read_table(m, path, err);
}

void cd_trace_map_free(cd_trace_map *m) {
    cd_csv_table_free(&m->table);
    cd_dict_free(&m->name);
    cd_arena_free(&m->arena);
}

bool cd_trace_map_find(const cd_trace_map *m, const char *kernel, const char **op,
                       const char **inputs) {
    uint32_t k;
    *inputs = "";
    for (size_t i = 0; i < m->table.n_row; i++)
        if (cd_str_fits(m->table.cell[i][m->kernel], kernel))
            return *op = m->table.cell[i][m->op], true;
    if (!cd_dict_find(&m->name, (cd_str){kernel, strlen(kernel)}, &k)) return false;
    *op = m->node[k].op;
    *inputs = m->node[k].inputs;
    return true;
}
