/* Writes a program as source with a host program. What does not depend on the program stands in
 * embed/ as the text that it is: fill.c.in is shared by all hosts. Tables and names stand before
 * it. */
#include "predictor/tune/session/session.h"

#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "predictor/tune/session/embed/c_run.c.in.h"
#include "predictor/tune/session/embed/cl_head.c.in.h"
#include "predictor/tune/session/embed/cl_run.c.in.h"
#include "predictor/tune/session/embed/cu_run.cu.in.h"
#include "predictor/tune/session/embed/fill.c.in.h"

#define LINE(text) text "\n"

void cd_tune_emit_names(const cd_tune_emit *e, char kernel[128], char host[128]) {
    static const char *const end[] = {"c", "cl", "cu"};
    snprintf(kernel, 128, "%.100s.%s", e->name, end[e->code->dialect]);
    host[0] = 0;
    if (e->code->dialect == CD_DIALECT_OPENCL) snprintf(host, 128, "%.100s_host.c", e->name);
}

void cd_tune_emit_command(const cd_tune_emit *e, cd_buf *out) {
    static const char *const command[] = {
        "cc -O2 -march=native -ffp-contract=fast -fno-math-errno -fopenmp %s.c -o %s -lm",
        "cc -O2 %s_host.c -o %s -lOpenCL", "nvcc -O2 %s.cu -o %s"};
    const char *c = command[e->code->dialect];
    for (; *c; c++) {
        if (c[0] == '%' && c[1] == 's') cd_buf_puts(out, e->name), c++;
        else cd_buf_put(out, c, 1);
    }
}

/* ---- what all hosts share ---- */
static const char table_text[] =
    LINE("static const struct { const char *name; long elements, bytes; char kind; int bits, "
         "is_arg, written, per_thread; } buffer[] = {");

static void about(const cd_tune_emit *e, cd_buf *b) {
    cd_buf_puts(b, "/* ");
    for (const char *at = e->about ? e->about : e->name; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (at != e->about && e->about) cd_buf_puts(b, "\n   ");
        cd_escape_c_comment(b, (cd_str){at, strcspn(at, "\n")});
    }
    cd_buf_puts(b, "\n   ");
    cd_tune_emit_command(e, b);
    cd_buf_puts(b, " */\n");
}

static void buffers(const cd_tune_emit *e, cd_buf *b) {
    static const char kind[] = "iufhb";
    cd_buf_puts(b, table_text);
    for (uint32_t k = 0; k < e->code->n_buffer; k++) {
        const cd_codegen_buffer *v = &e->code->buffer[k];
        const unsigned of = cd_expr_dtype_kind(v->dtype);
        cd_buf_puts(b, "    {");
        cd_escape_c_string(b, cd_str_of(v->name));
        cd_buf_putf(b, ", %lld, %lld, '%c', %u, %d, %d, %d},%s\n", (long long)v->elements,
                    (long long)v->bytes, of < sizeof kind - 1 ? kind[of] : 'i',
                    cd_expr_dtype_bits(v->dtype), v->is_arg, v->written, v->per_thread,
                    v->n_digit ? " /* packed */" : "");
    }
    cd_buf_putf(b, "};\nenum { BUFFERS = %u };\n", e->code->n_buffer);
}

/* ---- C ---- */
static const char c_main[] =
    LINE("#include <stdio.h>") LINE("#include <stdlib.h>") LINE("#include <time.h>");

static void put_c(const cd_tune_emit *e, cd_buf *b) {
    about(e, b);
    cd_buf_puts(b, "#define _GNU_SOURCE\n");
    cd_buf_puts(b, c_main);
    cd_buf_puts(b, cd_codegen_prelude(CD_DIALECT_C));
    cd_buf_put(b, e->code->text.p, e->code->text.n);
    cd_buf_putf(b, "\n#define PROGRAM %s\n#define THREADS %d\n", e->code->launch[0].entry,
                e->threads > 0 ? e->threads : 1);
    buffers(e, b);
    cd_buf_puts(b, fill_c_in);
    cd_buf_puts(b, c_run_c_in);
}

/* ---- GPUs: a table of launches ---- */
static void launches(const cd_tune_emit *e, cd_buf *b, bool cuda) {
    uint32_t most = 1;
    for (uint32_t k = 0; k < e->code->n_launch; k++)
        if (e->code->launch[k].n_buffer > most) most = e->code->launch[k].n_buffer;
    cd_buf_putf(b, "enum { LAUNCHES = %u, MOST = %u };\n", e->code->n_launch, most);
    cd_buf_puts(b, cuda ? "static const struct { const void *entry; unsigned grid[3], block[3], n; "
                          "int buffer[MOST]; } launch[] = {\n"
                        : "static const struct { const char *entry; size_t grid[3], block[3]; "
                          "unsigned n; int buffer[MOST]; } launch[] = {\n");
    for (uint32_t k = 0; k < e->code->n_launch; k++) {
        const cd_codegen_launch *l = &e->code->launch[k];
        cd_buf_putf(b, cuda ? "    {(const void *)%s, " : "    {\"%s\", ", l->entry);
        cd_buf_putf(b, "{%lld, %lld, %lld}, {%lld, %lld, %lld}, %u, {", (long long)l->grid[0],
                    (long long)l->grid[1], (long long)l->grid[2], (long long)l->block[0],
                    (long long)l->block[1], (long long)l->block[2], l->n_buffer);
        for (uint32_t j = 0; j < l->n_buffer; j++)
            cd_buf_putf(b, "%s%u", j ? ", " : "", l->buffer[j]);
        cd_buf_puts(b, "}},\n");
    }
    cd_buf_puts(b, "};\n");
}

static void put_opencl(const cd_tune_emit *e, cd_buf *kernel, cd_buf *host) {
    cd_buf_puts(kernel, cd_codegen_prelude(CD_DIALECT_OPENCL));
    cd_buf_put(kernel, e->code->text.p, e->code->text.n);
    about(e, host);
    cd_buf_puts(host, cl_head_c_in);
    cd_buf_putf(host, "#define SOURCE \"%s.cl\"\n", e->name);
    buffers(e, host);
    launches(e, host, false);
    cd_buf_puts(host, fill_c_in);
    cd_buf_puts(host, cl_run_c_in);
}

static void put_cuda(const cd_tune_emit *e, cd_buf *b) {
    about(e, b);
    cd_buf_puts(b, "#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n");
    cd_buf_puts(b, cd_codegen_prelude(CD_DIALECT_CUDA));
    cd_buf_put(b, e->code->text.p, e->code->text.n);
    cd_buf_puts(b, "\n");
    buffers(e, b);
    launches(e, b, true);
    cd_buf_puts(b, fill_c_in);
    cd_buf_puts(b, cu_run_cu_in);
}

cdmpp_status cd_tune_emit_put(const cd_tune_emit *e, cd_buf *kernel, cd_buf *host, cdmpp_err *err) {
    switch (e->code->dialect) {
    case CD_DIALECT_C: put_c(e, kernel); break;
    case CD_DIALECT_OPENCL: put_opencl(e, kernel, host); break;
    case CD_DIALECT_CUDA: put_cuda(e, kernel); break;
    }
    return kernel->oom || host->oom ? CD_FAIL(err, ENOMEM, "source") : CDMPP_OK;
}
