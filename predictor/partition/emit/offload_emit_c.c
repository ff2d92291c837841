/* Back end: C of this machine's processors. */
#include <string.h>

#include "base/text/text.h"
#include "predictor/partition/emit/embed/c_begin.c.in.h"
#include "predictor/partition/emit/emit.h"
#include "predictor/partition/emit/offload_emit_internal.h"

/* Back end, an example: the operators of a region as JSON, for an accelerator whose compiler reads
 * that. Programs are its own business. */

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
static cdmpp_status emit_json(const cd_emit_region *r, cd_emit_files *out, cdmpp_err *err) {
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
                                      .emit = emit_json};

static bool is_first(const cd_emit_region *r, uint32_t step) {
    for (uint32_t k = 0; k < step; k++)
        if (r->step[k].code == r->step[step].code) return false;
    return true;
}

/* Bytes of what is allocated inside: inner values, then the scratch of each program. */
static uint32_t put_own(const cd_emit_region *r, cd_buf *b, bool each) {
    uint32_t n = 0;
    for (uint32_t k = r->n_arg; k < r->n_value; k++, n++)
        cd_buf_putf(b, "%s%lld", n ? ", " : "", each ? 0LL : (long long)r->value[k].bytes);
    for (uint32_t s = 0; s < r->n_step; s++) {
        const cd_codegen_code *c = r->step[s].code;
        for (uint32_t k = c->n_arg; k < c->n_buffer && is_first(r, s); k++, n++)
            cd_buf_putf(b, "%s%lld", n ? ", " : "",
                        each ? (long long)c->buffer[k].per_thread : (long long)c->buffer[k].bytes);
    }
    return n;
}

/* Where the scratch of a program begins in own[]. */
static uint32_t scratch_of(const cd_emit_region *r, const cd_codegen_code *code) {
    uint32_t n = r->n_value - r->n_arg;
    for (uint32_t s = 0; s < r->n_step && r->step[s].code != code; s++)
        if (is_first(r, s)) n += r->step[s].code->n_buffer - r->step[s].code->n_arg;
    return n;
}

static void put_call(const cd_emit_region *r, const cd_emit_step *s, cd_buf *b) {
    cd_buf_putf(b, "    %s((void *const[]){", s->code->launch[0].entry);
    for (uint32_t k = 0; k < s->n_arg; k++) {
        const uint32_t v = s->arg[k];
        if (v < r->n_arg) cd_buf_putf(b, "%sargument[%u]", k ? ", " : "", v);
        else cd_buf_putf(b, "%sown[%u]", k ? ", " : "", v - r->n_arg);
    }
    for (uint32_t k = s->code->n_arg; k < s->code->n_buffer; k++)
        cd_buf_putf(b, ", own[%u]", scratch_of(r, s->code) + k - s->code->n_arg);
    cd_buf_puts(b, "}); /* ");
    cd_escape_c_comment(b, cd_str_of(s->name));
    cd_buf_puts(b, " */\n");
}

static cdmpp_status emit(const cd_emit_region *r, cd_emit_files *out, cdmpp_err *err) {
    cd_buf *b = cd_emit_add(out, r->name, ".c");
    if (!b) return CD_FAIL(err, ENOMEM, "source");
    cd_buf_putf(b, "/* %s of ", r->name);
    cd_escape_c_comment(b, cd_str_of(r->device));
    cd_buf_putf(
        b, ": %u programs. Arguments: network.json. */\n#define _GNU_SOURCE\n#include <stdlib.h>\n",
        r->n_step);
    cd_buf_puts(b, cd_codegen_prelude(CD_DIALECT_C));
    for (uint32_t s = 0; s < r->n_step; s++)
        if (is_first(r, s)) cd_buf_put(b, r->step[s].code->text.p, r->step[s].code->text.n);
    cd_buf_puts(b, "\n#ifdef _OPENMP\n#define THREADS omp_get_max_threads()\n#else\n#define "
                   "THREADS 1\n#endif\nstatic const long long own_bytes[] = {");
    const uint32_t n = put_own(r, b, false);
    cd_buf_puts(b, n ? "};\nstatic const char own_each[] = {"
                     : "0};\nstatic const char own_each[] = {");
    (void)put_own(r, b, true);
    cd_buf_putf(b, "%s};\nenum { OWN = %u };\n", n ? "" : "0", n);
    cd_buf_puts(b, c_begin_c_in);
    cd_buf_putf(b,
                "int %s_run(void *const *argument);\nint %s_run(void *const *argument) {\n    if "
                "(!begun && begin()) return 1;\n",
                r->name, r->name);
    for (uint32_t s = 0; s < r->n_step; s++) put_call(r, &r->step[s], b);
    cd_buf_puts(b, "    return 0;\n}\n");
    return CDMPP_OK;
}

const cd_emit_backend cd_emit_c = {
    .name = "c", .brief = "C for processors", .dialect = CD_DIALECT_C, .runs = true, .emit = emit};
