/* Networks by --model-source and --model-name; mode --list-ops of cdmpp-profile. */
#include <string.h>

#include "profiler/network/gradient/gradient.h"
#include "profiler/network/graph/graph.h"
#include "profiler/cmd/main_profile.h"
#include "profiler/network/onnx/onnx.h"
#include "profiler/network/zoo/zoo.h"

enum { FROM_ZOO, FROM_ONNX };

cdmpp_status cd_main_profile_model_check(const cd_main_profile *o, cdmpp_err *err) {
    if (!o->model_name) return CD_FAIL(err, EUSAGE, "--model-name is missing");
    if (o->operand.n) return CD_FAIL(err, EUSAGE, "unexpected '%s'", o->operand.v[0]);
    if (o->model_source == FROM_ZOO && (o->dim.n || o->input.n)) return CD_FAIL(err, EUSAGE, "--dim and --input are for --model-source onnx");
    if (o->model_source == FROM_ONNX && o->input_size) return CD_FAIL(err, EUSAGE, "--input-size is for --model-source zoo; use --dim");
    return CDMPP_OK;
}

static cdmpp_status keep(cd_arena *a, const char **s, cdmpp_err *err) {
    *s = cd_str_dup(a, (cd_str){*s, strlen(*s)});
    return *s ? CDMPP_OK : CD_FAIL(err, ENOMEM, "out of memory for a list");
}

/* An iteration in place of the network; what was missing, and what has no gradient. */
static cdmpp_status iteration(cd_graph **g, const cd_onnx_miss **miss, uint32_t *n, cdmpp_err *err) {
    cd_gradient t;
    CD_TRY(cd_autodiff(*g, NULL, &t, err));
    cd_arena *a = &t.graph->arena;
    cd_onnx_miss *all = CD_NEWN(a, cd_onnx_miss, (size_t)*n + t.n_missing + 1);
    cdmpp_status st = all ? CDMPP_OK : CD_FAIL(err, ENOMEM, "out of memory for a list");
    for (uint32_t k = 0; !st && k < *n; k++) {
        const char **part[] = {&all[k].node, &all[k].op, &all[k].domain, &all[k].reason};
        all[k] = (*miss)[k];
        for (int i = 0; !st && i < 4; i++) st = keep(a, part[i], err);
    }
    for (uint32_t k = 0; !st && k < t.n_missing; k++)
        all[*n + k] = (cd_onnx_miss){.node = t.missing[k].name, .op = t.missing[k].op, .domain = CD_GRADIENT_DOMAIN, .reason = t.missing[k].reason};
    if (st) {
        cd_gradient_free(&t);
        return st;
    }
    cd_graph_free(*g);
    *g = t.graph;
    *miss = all;
    *n += t.n_missing;
    return CDMPP_OK;
}

static cdmpp_status read_model(const cd_main_profile *o, cd_graph **g, const cd_onnx_miss **miss, uint32_t *n_miss, cdmpp_err *err) {
    const cd_onnx_options onnx = {.batch = o->batch, .dim = o->dim.v, .n_dim = (uint32_t)o->dim.n, .input = o->input.v,
                                  .n_input = (uint32_t)o->input.n};
    const cd_zoo_options zoo = {.batch = o->batch, .size = o->input_size};
    *miss = NULL;
    *n_miss = 0;
    if (o->model_source == FROM_ONNX) return cd_onnx_read(o->model_name, &onnx, g, miss, n_miss, err);
    return cd_zoo_build(o->model_name, &zoo, g, err);
}

cdmpp_status cd_main_profile_model(const cd_main_profile *o, cd_graph **g, const cd_onnx_miss **miss, uint32_t *n_miss, cdmpp_err *err) {
    CD_TRY(read_model(o, g, miss, n_miss, err));
    const cdmpp_status st = o->training ? iteration(g, miss, n_miss, err) : CDMPP_OK;
    if (st) cd_graph_free(*g);
    return st;
}

static void member(cd_buf *b, const char *key, const char *value) {
    cd_buf_putf(b, "\"%s\":", key);
    cd_buf_put_json_str(b, value, strlen(value));
}

void cd_main_profile_misses(cd_buf *b, const cd_onnx_miss *miss, uint32_t n) {
    cd_buf_puts(b, "\"unsupported\":[");
    for (uint32_t i = 0; i < n; i++) {
        cd_buf_puts(b, i ? ",{" : "{");
        member(b, "name", miss[i].node);
        cd_buf_puts(b, ",");
        member(b, "op", miss[i].op);
        cd_buf_puts(b, ",");
        member(b, "domain", miss[i].domain);
        cd_buf_puts(b, ",");
        member(b, "reason", miss[i].reason);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]");
}

/* Unsupported nodes are told on standard error, too, and make exit status 3. */
static void complain(cd_main_profile *o, const cd_onnx_miss *miss, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        cdmpp_err why = {0};
        (void)CD_FAIL(&why, EUNSUPPORTED, "%s", miss[i].reason);
        cd_err_add_key(&why, miss[i].node);
        cd_err_add_place(&why, o->model_name, 0);
        cd_log_err(o->log, CD_LOG_WARNING, &why);
    }
    o->bad += n;
}

cdmpp_status cd_main_profile_ops(cd_main_profile *o, cdmpp_err *err) {
    cd_buf b = {0}, all = {0};
    const cd_onnx_miss *miss;
    uint32_t n;
    cd_graph *g;
    CD_TRY(cd_main_profile_model(o, &g, &miss, &n, err));
    complain(o, miss, n);
    if (o->json) {
        cd_buf_puts(&b, "{");
        cd_graph_print_json(&b, g);
        cd_buf_puts(&b, ",");
        cd_main_profile_misses(&b, miss, n);
        cd_buf_puts(&b, "}");
        cd_command_json(&all, "cdmpp.profile_ops", "cdmpp-profile", &b);
    } else cd_graph_print(&all, g);
    cd_graph_free(g);
    return cd_command_print(&all, err);
}
