/* Files of network graphs: which form, and what to do with a network that is wrong. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/network/network_internal.h"

#define MAX_FILE ((size_t)4 << 30)

void cd_network_graph_free_all(cd_network_graph **g, size_t n) {
    for (size_t i = 0; g && i < n; i++) cd_network_graph_free(g[i]);
    cd_mem_free(g);
}

/* ---- what the readers share; err is never NULL here ---- */
cdmpp_status cd_network_file_error_at(cd_network_file *f, cdmpp_status st, const char *p,
                                      cdmpp_err *err) {
    if (!st || err->line || p < f->text || p > f->text + f->len) return st;
    if (p < f->at) f->at = f->text, f->line = 1;
    for (; f->at < p; f->at++) f->line += *f->at == '\n';
    return cd_err_at(err, st, f->path, f->line);
}

/* The same of an error of a JSON reader, which counts lines from the place where its text
 * begins. */
static cdmpp_status within(cd_network_file *f, cdmpp_status st, const char *from, cdmpp_err *err) {
    const long inside = st && err->line ? err->line - 1 : 0;
    if (st) err->line = 0;
    (void)cd_network_file_error_at(f, st, from, err);
    if (st && err->line) err->line += inside;
    return st;
}

cdmpp_status cd_network_file_parse(cd_network_file *f, cd_str value, const cd_json **out,
                                   cdmpp_err *err) {
    cd_arena_reset(&f->scratch);
    return within(f, cd_json_parse(&f->scratch, value.p, value.n, out, err), value.p, err);
}

cdmpp_status cd_network_file_key(cd_network_file *f, cd_str key, const char **out, cdmpp_err *err) {
    const cd_json *v;
    CD_TRY(cd_network_file_parse(f, (cd_str){key.p - 1, key.n + 2}, &v, err));
    return cd_network_file_text(f, v, out, err);
}

cdmpp_status cd_network_file_text(cd_network_file *f, const cd_json *v, const char **out,
                                  cdmpp_err *err) {
    cd_str s;
    CD_TRY(cd_json_str(v, &s, err));
    *out = cd_str_dup(&f->scratch, s);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "text");
}

cdmpp_status cd_network_file_member(cd_network_file *f, cd_str *rest, cd_str *key, cd_str *value,
                                    bool *more, cdmpp_err *err) {
    const char *from = rest->p;
    return within(f, cd_json_member(rest, key, value, more, err), from, err);
}

cdmpp_status cd_network_file_once(cd_network_file *f, cd_str object, cdmpp_err *err) {
    char name[41];
    cd_str twice;
    CD_TRY(cd_json_members_once(object, &twice, err));
    if (!twice.n) return CDMPP_OK;
    snprintf(name, sizeof name, "%.*s", CD_NETWORK_FILE_SHORT(twice));
    return cd_network_file_error_at(
        f, cd_err_key(err, CD_FAIL(err, EPARSE, "expected this key once, found it twice"), name),
        twice.p, err);
}

cdmpp_status cd_network_file_next(cd_network_file *f, cd_str *rest, cd_str *value, bool *more,
                                  cdmpp_err *err) {
    const char *from = rest->p;
    return within(f, cd_json_item(rest, value, more, err), from, err);
}

cdmpp_status cd_network_file_each(cd_network_file *f, cd_str array, cd_network_file_item *item,
                                  void *ctx, cdmpp_err *err) {
    cd_str rest = array, text;
    bool more = true;
    for (size_t k = 0;; k++) {
        CD_TRY(cd_network_file_next(f, &rest, &text, &more, err));
        if (!more) return CDMPP_OK;
        const cdmpp_status st = item(ctx, text, k, err);
        if (st) return cd_err_index(err, cd_network_file_error_at(f, st, text.p, err), k);
    }
}

cdmpp_status cd_network_file_seconds(const cd_json *v, double *out, cdmpp_err *err) {
    CD_TRY(cd_json_real_or_nan(v, out, err));
    *out += 0.0; /* -0 is 0, and written as that */
    if (isnan(*out) || (*out >= 0 && isfinite(*out))) return CDMPP_OK;
    return CD_FAIL(err, ERANGE, "expected seconds, 0 or more, found %g", *out);
}

const char *cd_network_file_short_func(const char *func) {
    static const char front[] = "tvmgen_default_";
    return strncmp(func, front, sizeof front - 1) ? func : func + sizeof front - 1;
}

static cdmpp_status push(cd_network_file *f, cd_network_graph *g, cdmpp_err *err) {
    if (CD_GROW(f->g, f->n, f->cap)) return CD_FAIL(err, ENOMEM, "graphs");
    f->g[f->n++] = g;
    return CDMPP_OK;
}

static cdmpp_status name_once(cd_network_file *f, const char *name, cdmpp_err *err) {
    const size_t before = f->names.n;
    uint32_t id;
    CD_TRY(cd_dict_add(&f->names, (cd_str){name, strlen(name)}, &id, err));
    return f->names.n > before
               ? CDMPP_OK
               : CD_FAIL(err, EINVALID, "a network of this name is in the file already");
}

cdmpp_status cd_network_file_add_graph(cd_network_file *f, cd_network_graph *g, const char *name,
                                       cdmpp_status st, cdmpp_err *err) {
    if (!st) st = name_once(f, name, err);
    if (!st) st = push(f, g, err);
    if (!st) return CDMPP_OK;
    cd_network_graph_free(g);
    cd_err_key(err, st, name);
    cd_err_at(err, st, f->path, 0);
    if (!f->bad || st == CDMPP_ENOMEM) return st;
    if (!f->n_bad++) f->first = *err;
    f->bad(f->ctx, name, err);
    *err = (cdmpp_err){0};
    return CDMPP_OK;
}

/* ---- which form ---- */
typedef cdmpp_status reader(cd_network_file *f, cdmpp_err *err);

static cdmpp_status no_form(const cd_network_file *f, cdmpp_err *err) {
    if (cd_onnx_is_model(f->path))
        return CD_FAIL(err, ESCHEMA,
                       "expected a graph of networks, found an ONNX file: --network %s reads it",
                       f->path);
    return CD_FAIL(err, ESCHEMA,
                   "expected a graph of networks: \"schema\": \"cdmpp.netgraph\", a graph "
                   "executor's JSON, or networks with nodes");
}

/* By the members of the outermost object; one pass over the text. */
static cdmpp_status form_of(cd_network_file *f, reader **out, cdmpp_err *err) {
    cd_str rest = {f->text, f->len}, key, value;
    bool more = true, nodes = false, executor = false, objects = true;
    size_t n = 0;
    CD_TRY(cd_network_file_once(f, rest, err));
    for (; more; n++) {
        CD_TRY(cd_network_file_member(f, &rest, &key, &value, &more, err));
        if (!more) break;
        if (cd_str_is(key, "schema")) return *out = cd_network_graph_read_own, CDMPP_OK;
        nodes |= cd_str_is(key, "nodes");
        executor |= cd_str_is(key, "node_row_ptr") || cd_str_is(key, "arg_nodes");
        objects &= value.n && *value.p == '{';
    }
    *out = nodes && executor ? cd_network_graph_read_tvm
           : n && objects    ? cd_network_graph_read_measured
                             : NULL;
    return *out ? CDMPP_OK : no_form(f, err);
}

static cdmpp_status read_all(cd_network_file *f, cdmpp_err *err) {
    reader *read = NULL;
    size_t blank = 0;
    while (blank < f->len && (unsigned char)f->text[blank] <= ' ') blank++;
    if (blank == f->len)
        return CD_FAIL(err, ESCHEMA, "expected a graph of networks, found an empty file");
    if (f->text[blank] != '{') return no_form(f, err);
    CD_TRY(form_of(f, &read, err));
    CD_TRY(read(f, err));
    if (f->n) return CDMPP_OK;
    if (!f->n_bad) return CD_FAIL(err, ESCHEMA, "expected a network, found none");
    *err = f->first;
    return f->first.code;
}

cdmpp_status cd_network_graph_read_text(const char *path, const char *text, size_t len,
                                        cd_network_graph_bad *bad, void *ctx,
                                        cd_network_graph ***out, size_t *n, cdmpp_err *err) {
    cdmpp_err own;
    if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) text += 3, len -= 3; /* a byte order mark */
    cd_network_file f = {
        .path = path, .text = text, .len = len, .at = text, .line = 1, .bad = bad, .ctx = ctx};
    if (!err) err = &own;
    const cdmpp_status st = cd_err_at(err, read_all(&f, err), path, 0);
    cd_arena_free(&f.scratch);
    cd_dict_free(&f.names);
    if (st) return cd_network_graph_free_all(f.g, f.n), st;
    *out = f.g;
    *n = f.n;
    return CDMPP_OK;
}

/* A table whose first line names the column of the rows that a row reads. */
static bool is_trace(const char *text, size_t len) {
    static const char column[] = "_input_nodes";
    const char *end = memchr(text, '\n', len);
    const size_t n = end ? (size_t)(end - text) : len;
    for (size_t i = 0; n && *text != '{' && i + sizeof column - 1 <= n; i++)
        if (!memcmp(text + i, column, sizeof column - 1)) return true;
    return false;
}

cdmpp_status cd_network_graph_read_good(const char *path, cd_network_graph_bad *bad, void *ctx,
                                        cd_network_graph ***out, size_t *n, cdmpp_err *err) {
    char *text;
    size_t len;
    CD_TRY(cd_file_read(path, MAX_FILE, &text, &len, err));
    if (is_trace(text, len))
        return cd_mem_free(text), cd_network_graph_trace_read(path, out, n, err);
    const cdmpp_status st = cd_network_graph_read_text(path, text, len, bad, ctx, out, n, err);
    cd_mem_free(text);
    return st;
}

cdmpp_status cd_network_graph_read(const char *path, cd_network_graph ***out, size_t *n,
                                   cdmpp_err *err) {
    return cd_network_graph_read_good(path, NULL, NULL, out, n, err);
}
