/* Back end: OpenCL C, and the C that calls it. */
#include <string.h>

#include "predictor/partition/emit/offload_emit_internal.h"

#define LINE(text) text "\n"

static const char head[] =
    LINE("#define CL_TARGET_OPENCL_VERSION 120")
    LINE("#include <CL/cl.h>")
    LINE("#include <stdio.h>")
    LINE("#include <stdlib.h>")
    LINE("#include <string.h>");
/* role: 0 input, 1 constant, 2 result, 3 inner; as cd_emit_role. */
static const char run[] =
    LINE("static cl_mem mem[VALUES];")
    LINE("static cl_kernel kernel[LAUNCHES];")
    LINE("static cl_command_queue queue;")
    LINE("static int begun;")
    LINE("static int bad(cl_int rc, const char *what) {")
    LINE("    if (rc != CL_SUCCESS) fprintf(stderr, \"%s: %s: OpenCL error %d\\n\", SOURCE, what, rc);")
    LINE("    return rc != CL_SUCCESS;")
    LINE("}")
    LINE("static char *read_all(const char *path) {")
    LINE("    FILE *f = fopen(path, \"rb\");")
    LINE("    char *s = NULL;")
    LINE("    if (f && !fseek(f, 0, SEEK_END)) {")
    LINE("        const long n = ftell(f);")
    LINE("        rewind(f);")
    LINE("        s = calloc(1, (size_t)n + 1);")
    LINE("        if (s && fread(s, 1, (size_t)n, f) != (size_t)n) s[0] = 0;")
    LINE("    }")
    LINE("    if (f) fclose(f);")
    LINE("    return s;")
    LINE("}")
    LINE("/* Device, kernels, memory and constants, at the first call. */")
    LINE("static int begin(void *const *argument) {")
    LINE("    cl_platform_id platform[8];")
    LINE("    cl_device_id device = NULL;")
    LINE("    cl_uint n = 0;")
    LINE("    cl_int rc = clGetPlatformIDs(8, platform, &n);")
    LINE("    if (bad(rc, \"platform\")) return 1;")
    LINE("    for (cl_uint k = 0; k < n && !device; k++)")
    LINE("        if (clGetDeviceIDs(platform[k], CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) device = NULL;")
    LINE("    if (!device) return bad(CL_DEVICE_NOT_FOUND, \"device\");")
    LINE("    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &rc);")
    LINE("    if (bad(rc, \"context\")) return 1;")
    LINE("    queue = clCreateCommandQueue(context, device, 0, &rc);")
    LINE("    if (bad(rc, \"queue\")) return 1;")
    LINE("    char *text = read_all(SOURCE);")
    LINE("    if (!text) return fprintf(stderr, \"cannot read %s\\n\", SOURCE), 1;")
    LINE("    cl_program program = clCreateProgramWithSource(context, 1, (const char **)&text, NULL, &rc);")
    LINE("    if (bad(rc, \"program\") || bad(clBuildProgram(program, 1, &device, \"\", NULL, NULL), \"compiling\")) return 1;")
    LINE("    free(text);")
    LINE("    for (int k = 0; k < VALUES; k++) {")
    LINE("        mem[k] = clCreateBuffer(context, CL_MEM_READ_WRITE, (size_t)value[k].bytes, NULL, &rc);")
    LINE("        if (bad(rc, \"memory\")) return 1;")
    LINE("        if (value[k].role == 1 && bad(clEnqueueWriteBuffer(queue, mem[k], CL_TRUE, 0, (size_t)value[k].bytes, argument[k], 0, NULL, NULL), \"constant\")) return 1;")
    LINE("    }")
    LINE("    for (int l = 0; l < LAUNCHES; l++) {")
    LINE("        kernel[l] = clCreateKernel(program, launch[l].entry, &rc);")
    LINE("        if (bad(rc, launch[l].entry)) return 1;")
    LINE("        for (unsigned j = 0; j < launch[l].n; j++)")
    LINE("            if (bad(clSetKernelArg(kernel[l], j, sizeof(cl_mem), &mem[launch[l].buffer[j]]), \"argument\")) return 1;")
    LINE("    }")
    LINE("    begun = 1;")
    LINE("    return 0;")
    LINE("}")
    LINE("int RUN(void *const *argument);")
    LINE("int RUN(void *const *argument) {")
    LINE("    if (!begun && begin(argument)) return 1;")
    LINE("    for (int k = 0; k < VALUES; k++)")
    LINE("        if (value[k].role == 0 && bad(clEnqueueWriteBuffer(queue, mem[k], CL_TRUE, 0, (size_t)value[k].bytes, argument[k], 0, NULL, NULL), \"input\")) return 1;")
    LINE("    for (int l = 0; l < LAUNCHES; l++) {")
    LINE("        size_t global[3];")
    LINE("        for (int d = 0; d < 3; d++) global[d] = launch[l].grid[d] * launch[l].block[d];")
    LINE("        if (bad(clEnqueueNDRangeKernel(queue, kernel[l], 3, NULL, global, launch[l].block, 0, NULL, NULL), launch[l].entry)) return 1;")
    LINE("    }")
    LINE("    for (int k = 0; k < VALUES; k++)")
    LINE("        if (value[k].role == 2 && bad(clEnqueueReadBuffer(queue, mem[k], CL_TRUE, 0, (size_t)value[k].bytes, argument[k], 0, NULL, NULL), \"result\")) return 1;")
    LINE("    return bad(clFinish(queue), \"running\");")
    LINE("}");

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
    for (uint32_t k = 0; k < r->n_value; k++) cd_buf_putf(b, "{%lld, %d}, ", (long long)r->value[k].bytes, (int)r->value[k].role);
    for (uint32_t s = 0; s < r->n_step; s++)
        for (uint32_t k = r->step[s].code->n_arg; k < r->step[s].code->n_buffer && is_first(r, s); k++, n++) cd_buf_putf(b, "{%lld, 3}, ", (long long)r->step[s].code->buffer[k].bytes);
    cd_buf_puts(b, "};\n");
    return n;
}

/* A launch numbers the buffers of its program: parameters, then scratch. Here they become positions in value[]: parameters by the step's
 * arguments, scratch behind all values of the region. */
static uint32_t put_launches(const cd_emit_region *r, cd_buf *b) {
    uint32_t most = 1, n = 0;
    for (uint32_t s = 0; s < r->n_step; s++)
        for (uint32_t k = 0; k < r->step[s].code->n_launch; k++) most = r->step[s].code->launch[k].n_buffer > most ? r->step[s].code->launch[k].n_buffer : most;
    cd_buf_putf(b, "static const struct { const char *entry; size_t grid[3], block[3]; unsigned n; int buffer[%u]; } launch[] = {\n", most);
    for (uint32_t s = 0; s < r->n_step; s++) {
        const cd_codegen_code *c = r->step[s].code;
        const uint32_t scratch = scratch_of(r, c);
        for (uint32_t k = 0; k < c->n_launch; k++, n++) {
            const cd_codegen_launch *l = &c->launch[k];
            cd_buf_putf(b, "    {\"%s\", {%lld, %lld, %lld}, {%lld, %lld, %lld}, %u, {", l->entry, (long long)l->grid[0], (long long)l->grid[1], (long long)l->grid[2],
                        (long long)l->block[0], (long long)l->block[1], (long long)l->block[2], l->n_buffer);
            for (uint32_t j = 0; j < l->n_buffer; j++)
                cd_buf_putf(b, "%s%u", j ? ", " : "", l->buffer[j] < c->n_arg ? r->step[s].arg[l->buffer[j]] : scratch + l->buffer[j] - c->n_arg);
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
    cd_buf_putf(b, "/* %s of %s: %u programs in %s.cl. Arguments: network.json. */\n", r->name, r->device, r->n_step, r->name);
    cd_buf_puts(b, head);
    cd_buf_putf(b, "#define SOURCE \"%s.cl\"\n#define RUN %s_run\n", r->name, r->name);
    const uint32_t values = put_values(r, b), launches = put_launches(r, b);
    cd_buf_putf(b, "enum { VALUES = %u, LAUNCHES = %u };\n", values, launches);
    cd_buf_puts(b, run);
    return CDMPP_OK;
}

const cd_emit_backend cd_emit_opencl = {.name = "opencl", .brief = "OpenCL C and what calls it", .dialect = CD_DIALECT_OPENCL, .runs = true, .library = "-lOpenCL", .emit = emit};
