/* Back end: OpenCL C, and the C that calls it. */
#include <string.h>

#include "base/text/text.h"
#include "predictor/partition/emit/embed/opencl_head.c.in.h"
/* role there: 0 input, 1 constant, 2 result, 3 inner; as cd_emit_role. */
#include "predictor/partition/emit/embed/opencl_run.c.in.h"
#include "predictor/partition/emit/offload_emit_internal.h"

static bool is_first(const cd_emit_region *r, uint32_t step) {
    for (uint32_t k = 0; k < step; k++)
        if (r->step[k].code == r->step[step].code) return false;
    return true;
}

static uint32_t scratch_of(const cd_emit_region *r, const cd_codegen_code *code) {
    uint32_t n = r->n_value;
    for (uint32_t s = 0; s < r->n_step && r->step[s].code != code; s++)
        if (is_first(r, s)) n += r->step[s].code->n_buffer - r->step[s].code->n_arg;
    return n;
}

static uint32_t put_values(const cd_emit_region *r, cd_buf *b) {
    uint32_t n = r->n_value;
    cd_buf_puts(b, "static const struct { long long bytes; int role; } value[] = {");
    for (uint32_t k = 0; k < r->n_value; k++)
        cd_buf_putf(b, "{%lld, %d}, ", (long long)r->value[k].bytes, (int)r->value[k].role);
    for (uint32_t s = 0; s < r->n_step; s++)
        for (uint32_t k = r->step[s].code->n_arg; k < r->step[s].code->n_buffer && is_first(r, s);
             k++, n++)
            cd_buf_putf(b, "{%lld, 3}, ", (long long)r->step[s].code->buffer[k].bytes);
    cd_buf_puts(b, "};\n");
    return n;
}

/* A launch numbers the buffers of its program: parameters, then scratch. Here they become positions
 * in value[]: parameters by the step's arguments, scratch behind all values of the region. */
static uint32_t put_launches(const cd_emit_region *r, cd_buf *b) {
    uint32_t most = 1, n = 0;
    for (uint32_t s = 0; s < r->n_step; s++)
        for (uint32_t k = 0; k < r->step[s].code->n_launch; k++)
            most = r->step[s].code->launch[k].n_buffer > most ? r->step[s].code->launch[k].n_buffer
                                                              : most;
    cd_buf_putf(b,
                "static const struct { const char *entry; size_t grid[3], block[3]; unsigned n; "
                "int buffer[%u]; } launch[] = {\n",
                most);
    for (uint32_t s = 0; s < r->n_step; s++) {
        const cd_codegen_code *c = r->step[s].code;
        const uint32_t scratch = scratch_of(r, c);
        for (uint32_t k = 0; k < c->n_launch; k++, n++) {
            const cd_codegen_launch *l = &c->launch[k];
            cd_buf_putf(b, "    {\"%s\", {%lld, %lld, %lld}, {%lld, %lld, %lld}, %u, {", l->entry,
                        (long long)l->grid[0], (long long)l->grid[1], (long long)l->grid[2],
                        (long long)l->block[0], (long long)l->block[1], (long long)l->block[2],
                        l->n_buffer);
            for (uint32_t j = 0; j < l->n_buffer; j++)
                cd_buf_putf(b, "%s%u", j ? ", " : "",
                            l->buffer[j] < c->n_arg ? r->step[s].arg[l->buffer[j]]
                                                    : scratch + l->buffer[j] - c->n_arg);
            cd_buf_puts(b, "}},\n");
        }
    }
    cd_buf_puts(b, "};\n");
    return n;
}

static cdmpp_status emit(const cd_emit_region *r, cd_emit_files *out, cdmpp_err *err) {
    cd_buf *b = cd_emit_add(out, r->name, ".cl");
    if (!b) return CD_FAIL(err, ENOMEM, "source");
    cd_buf_puts(b, cd_codegen_prelude(CD_DIALECT_OPENCL));
    for (uint32_t s = 0; s < r->n_step; s++)
        if (is_first(r, s)) cd_buf_put(b, r->step[s].code->text.p, r->step[s].code->text.n);
    if (!(b = cd_emit_add(out, r->name, ".c"))) return CD_FAIL(err, ENOMEM, "source");
    cd_buf_putf(b, "/* %s of ", r->name);
    cd_escape_c_comment(b, cd_str_of(r->device));
    cd_buf_putf(b, ": %u programs in %s.cl. Arguments: network.json. */\n", r->n_step, r->name);
    cd_buf_puts(b, opencl_head_c_in);
    cd_buf_putf(b, "#define SOURCE \"%s.cl\"\n#define RUN %s_run\n", r->name, r->name);
    const uint32_t values = put_values(r, b), launches = put_launches(r, b);
    cd_buf_putf(b, "enum { VALUES = %u, LAUNCHES = %u };\n", values, launches);
    cd_buf_puts(b, opencl_run_c_in);
    return CDMPP_OK;
}

const cd_emit_backend cd_emit_opencl = {.name = "opencl",
                                        .brief = "OpenCL C and what calls it",
                                        .dialect = CD_DIALECT_OPENCL,
                                        .runs = true,
                                        .library = "-lOpenCL",
                                        .emit = emit};
