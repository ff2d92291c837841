/* Back end, an example: the operators of a region as JSON, for an accelerator whose compiler reads
 * that. Programs are its own business. */
#include <string.h>

#include "predictor/partition/emit/emit.h"

static void put_shape(cd_buf *b, const cd_graph_shape *s) {
    cd_buf_puts(b, "[");
    for (uint32_t d = 0; d < s->rank; d++)
        cd_buf_putf(b, "%s%lld", d ? ", " : "", (long long)s->dim[d]);
    cd_buf_puts(b, "]");
}

static void put_value(cd_buf *b, const cd_emit_value *v) {
    static const char *const role[] = {"input", "constant", "result", "inner"};
    char dtype[40];
    cd_buf_putf(b, "    {\"value\": %u, \"role\": \"%s\", \"dtype\": \"%s\", \"shape\": ", v->value,
                role[v->role], cd_expr_dtype_format(v->dtype, dtype, sizeof dtype));
    put_shape(b, v->shape);
    cd_buf_puts(b, "}");
}

static void put_op(cd_buf *b, const cd_offload_op *o, bool first) {
    cd_buf_puts(b, first ? "{\"name\": " : ",\n       {\"name\": ");
    cd_buf_put_json_str(b, o->name, strlen(o->name));
    cd_buf_putf(b, ", \"operator\": ");
    cd_buf_put_json_str(b, o->type, strlen(o->type));
    cd_buf_puts(b, ", \"attributes\": {");
    for (uint32_t i = 0; i < o->n_attr; i++) {
        cd_buf_puts(b, i ? ", " : "");
        cd_buf_put_json_str(b, o->attr[i].key, strlen(o->attr[i].key));
        cd_buf_puts(b, ": ");
        cd_buf_put_json_str(b, o->attr[i].value, strlen(o->attr[i].value));
    }
    cd_buf_puts(b, "}}");
}

static void put_step(cd_buf *b, const cd_emit_region *r, const cd_emit_step *s) {
    const cd_offload_ops *o = r->ops;
    cd_buf_puts(b, "    {\"reads\": [");
    for (uint32_t k = 0; k + 1 < s->n_arg; k++)
        cd_buf_putf(b, "%s%u", k ? ", " : "", r->value[s->arg[k]].value);
    cd_buf_putf(b, "], \"writes\": %u,\n     \"operators\": [",
                r->value[s->arg[s->n_arg - 1]].value);
    for (uint32_t i = 0; i < o->in_n[s->group]; i++)
        put_op(b, &o->graph.op[o->in[o->in_first[s->group] + i]], i == 0);
    cd_buf_puts(b, "]}");
}

/* All that a back end must do: add a file and write values and steps. Values have their numbers in
 * the workload, which are equal in all regions. */
static cdmpp_status emit(const cd_emit_region *r, cd_emit_files *out, cdmpp_err *err) {
    cd_buf *b = cd_emit_add(out, r->name, ".json");
    if (!b) return CD_FAIL(err, ENOMEM, "source");
    cd_buf_putf(b, "{\"region\": \"%s\", \"device\": ", r->name);
    cd_buf_put_json_str(b, r->device, strlen(r->device));
    cd_buf_puts(b, ",\n \"values\": [\n");
    for (uint32_t k = 0; k < r->n_value; k++) {
        cd_buf_puts(b, k ? ",\n" : "");
        put_value(b, &r->value[k]);
    }
    cd_buf_puts(b, "],\n \"nodes\": [\n");
    for (uint32_t k = 0; k < r->n_step; k++) {
        cd_buf_puts(b, k ? ",\n" : "");
        put_step(b, r, &r->step[k]);
    }
    cd_buf_puts(b, "]}\n");
    return CDMPP_OK;
}

const cd_emit_backend cd_emit_json = {.name = "json",
                                      .brief =
                                          "operators as JSON, for an accelerator's own compiler",
                                      .dialect = -1,
                                      .emit = emit};
