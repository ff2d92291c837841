/* Writes a program as source with a host program. The texts are C, OpenCL and CUDA with holes for names and sizes. */
#include "predictor/tune/session/tune_emit.h"

#include <stdio.h>

#define LINE(text) text "\n"

void cd_tune_emit_names(const cd_tune_emit *e, char kernel[128], char host[128]) {
    static const char *const end[] = {"c", "cl", "cu"};
    snprintf(kernel, 128, "%.100s.%s", e->name, end[e->code->dialect]);
    host[0] = 0;
    if (e->code->dialect == CD_DIALECT_OPENCL) snprintf(host, 128, "%.100s_host.c", e->name);
}

void cd_tune_emit_command(const cd_tune_emit *e, cd_buf *out) {
    static const char *const command[] = {"cc -O2 -march=native -ffp-contract=fast -fno-math-errno -fopenmp %s.c -o %s -lm", "cc -O2 %s_host.c -o %s -lOpenCL",
                                          "nvcc -O2 %s.cu -o %s"};
    const char *c = command[e->code->dialect];
    for (; *c; c++) {
        if (c[0] == '%' && c[1] == 's') cd_buf_puts(out, e->name), c++;
        else cd_buf_put(out, c, 1);
    }
}

/* ---- what all hosts share ---- */
static const char fill_text[] =
    LINE("/* 0.25 to 1, integers 0 and 1 */")
    LINE("static void fill(void *to, long n, char kind, int bits, unsigned seed) {")
    LINE("    for (long i = 0; i < n; i++) {")
    LINE("        seed = seed * 1664525u + 1013904223u;")
    LINE("        const double x = 0.25 + 0.75 * (seed >> 8) / 16777216.0;")
    LINE("        if (kind == 'f' && bits == 32) ((float *)to)[i] = (float)x;")
    LINE("        else if (kind == 'f' && bits == 64) ((double *)to)[i] = x;")
    LINE("        else if (kind == 'f') ((unsigned short *)to)[i] = 0x3800; /* half of IEEE: 0.5 */")
    LINE("        else if (kind == 'b') ((unsigned short *)to)[i] = 0x3f00; /* bfloat16: 0.5 */")
    LINE("        else if (bits == 64) ((long long *)to)[i] = seed >> 31;")
    LINE("        else if (bits == 32) ((int *)to)[i] = (int)(seed >> 31);")
    LINE("        else if (bits == 16) ((short *)to)[i] = (short)(seed >> 31);")
    LINE("        else ((char *)to)[i] = (char)(seed >> 31);")
    LINE("    }")
    LINE("}")
    LINE("static double sum(const void *of, long n, char kind, int bits) {")
    LINE("    double s = 0;")
    LINE("    for (long i = 0; i < n; i++) {")
    LINE("        if (kind == 'f' && bits == 32) s += ((const float *)of)[i];")
    LINE("        else if (kind == 'f' && bits == 64) s += ((const double *)of)[i];")
    LINE("        else if (kind != 'f' && kind != 'b' && bits == 64) s += (double)((const long long *)of)[i];")
    LINE("        else if (kind != 'f' && kind != 'b' && bits == 32) s += ((const int *)of)[i];")
    LINE("    }")
    LINE("    return s;")
    LINE("}");
static const char table_text[] =
    LINE("static const struct { const char *name; long elements, bytes; char kind; int bits, is_arg, written, per_thread; } buffer[] = {");

static void about(const cd_tune_emit *e, cd_buf *b) {
    cd_buf_puts(b, "/* ");
    cd_buf_puts(b, e->about ? e->about : e->name);
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
        cd_buf_putf(b, "    {\"%s\", %lld, %lld, '%c', %u, %d, %d, %d},%s\n", v->name, (long long)v->elements, (long long)v->bytes, of < sizeof kind - 1 ? kind[of] : 'i',
                    cd_expr_dtype_bits(v->dtype), v->is_arg, v->written, v->per_thread, v->n_digit ? " /* packed */" : "");
    }
    cd_buf_putf(b, "};\nenum { BUFFERS = %u };\n", e->code->n_buffer);
}

/* ---- C ---- */
static const char c_main[] =
    LINE("#include <stdio.h>")
    LINE("#include <stdlib.h>")
    LINE("#include <time.h>");
static const char c_run[] =
    LINE("static double now(void) {")
    LINE("    struct timespec t;")
    LINE("    clock_gettime(CLOCK_MONOTONIC, &t);")
    LINE("    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;")
    LINE("}")
    LINE("int main(int argc, char **argv) {")
    LINE("    const int times = argc > 1 && atoi(argv[1]) > 0 ? atoi(argv[1]) : 20;")
    LINE("    void *arg[BUFFERS];")
    LINE("    long threads = 1;")
    LINE("#ifdef _OPENMP")
    LINE("    if (!getenv(\"OMP_NUM_THREADS\")) omp_set_num_threads(THREADS);")
    LINE("    threads = omp_get_max_threads();")
    LINE("#endif")
    LINE("    for (int k = 0; k < BUFFERS; k++) {")
    LINE("        const long bytes = (buffer[k].bytes * (buffer[k].per_thread ? threads : 1) + 127) / 64 * 64;")
    LINE("        if (!(arg[k] = aligned_alloc(64, (size_t)bytes))) return fprintf(stderr, \"no memory\\n\"), 1;")
    LINE("        memset(arg[k], 0, (size_t)bytes);")
    LINE("        if (buffer[k].is_arg) fill(arg[k], buffer[k].elements, buffer[k].kind, buffer[k].bits, (unsigned)k + 1);")
    LINE("    }")
    LINE("    PROGRAM(arg);")
    LINE("    const double begin = now();")
    LINE("    for (int i = 0; i < times; i++) PROGRAM(arg);")
    LINE("    printf(\"%.9g s\\n\", (now() - begin) / times);")
    LINE("    for (int k = 0; k < BUFFERS; k++)")
    LINE("        if (buffer[k].is_arg && buffer[k].written) printf(\"%s: sum %.9g\\n\", buffer[k].name, sum(arg[k], buffer[k].elements, buffer[k].kind, buffer[k].bits));")
    LINE("    for (int k = 0; k < BUFFERS; k++) free(arg[k]);")
    LINE("    return 0;")
    LINE("}");

static void put_c(const cd_tune_emit *e, cd_buf *b) {
    about(e, b);
    cd_buf_puts(b, "#define _GNU_SOURCE\n");
    cd_buf_puts(b, c_main);
    cd_buf_puts(b, cd_codegen_prelude(CD_DIALECT_C));
    cd_buf_put(b, e->code->text.p, e->code->text.n);
    cd_buf_putf(b, "\n#define PROGRAM %s\n#define THREADS %d\n", e->code->launch[0].entry, e->threads > 0 ? e->threads : 1);
    buffers(e, b);
    cd_buf_puts(b, fill_text);
    cd_buf_puts(b, c_run);
}

/* ---- GPUs: a table of launches ---- */
static void launches(const cd_tune_emit *e, cd_buf *b, bool cuda) {
    uint32_t most = 1;
    for (uint32_t k = 0; k < e->code->n_launch; k++)
        if (e->code->launch[k].n_buffer > most) most = e->code->launch[k].n_buffer;
    cd_buf_putf(b, "enum { LAUNCHES = %u, MOST = %u };\n", e->code->n_launch, most);
    cd_buf_puts(b, cuda ? "static const struct { const void *entry; unsigned grid[3], block[3], n; int buffer[MOST]; } launch[] = {\n"
                        : "static const struct { const char *entry; size_t grid[3], block[3]; unsigned n; int buffer[MOST]; } launch[] = {\n");
    for (uint32_t k = 0; k < e->code->n_launch; k++) {
        const cd_codegen_launch *l = &e->code->launch[k];
        cd_buf_putf(b, cuda ? "    {(const void *)%s, " : "    {\"%s\", ", l->entry);
        cd_buf_putf(b, "{%lld, %lld, %lld}, {%lld, %lld, %lld}, %u, {", (long long)l->grid[0], (long long)l->grid[1], (long long)l->grid[2],
                    (long long)l->block[0], (long long)l->block[1], (long long)l->block[2], l->n_buffer);
        for (uint32_t j = 0; j < l->n_buffer; j++) cd_buf_putf(b, "%s%u", j ? ", " : "", l->buffer[j]);
        cd_buf_puts(b, "}},\n");
    }
    cd_buf_puts(b, "};\n");
}

static const char cl_head[] =
    LINE("#define CL_TARGET_OPENCL_VERSION 120")
    LINE("#include <CL/cl.h>")
    LINE("#include <stdio.h>")
    LINE("#include <stdlib.h>")
    LINE("#include <string.h>")
    LINE("#include <time.h>");
static const char cl_run[] =
    LINE("static void need(cl_int rc, const char *what) {")
    LINE("    if (rc == CL_SUCCESS) return;")
    LINE("    fprintf(stderr, \"%s: OpenCL error %d\\n\", what, rc);")
    LINE("    exit(1);")
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
    LINE("static double now(void) {")
    LINE("    struct timespec t;")
    LINE("    timespec_get(&t, TIME_UTC);")
    LINE("    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;")
    LINE("}")
    LINE("int main(int argc, char **argv) {")
    LINE("    const int times = argc > 1 && atoi(argv[1]) > 0 ? atoi(argv[1]) : 20;")
    LINE("    cl_platform_id platform;")
    LINE("    cl_device_id device;")
    LINE("    cl_int rc;")
    LINE("    cl_mem mem[BUFFERS];")
    LINE("    cl_kernel kernel[LAUNCHES];")
    LINE("    need(clGetPlatformIDs(1, &platform, NULL), \"platform\");")
    LINE("    need(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), \"device\");")
    LINE("    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &rc);")
    LINE("    need(rc, \"context\");")
    LINE("    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &rc);")
    LINE("    need(rc, \"queue\");")
    LINE("    char *text = read_all(SOURCE);")
    LINE("    if (!text) return fprintf(stderr, \"cannot read %s\\n\", SOURCE), 1;")
    LINE("    cl_program program = clCreateProgramWithSource(context, 1, (const char **)&text, NULL, &rc);")
    LINE("    need(rc, \"program\");")
    LINE("    need(clBuildProgram(program, 1, &device, \"\", NULL, NULL), \"compiling\");")
    LINE("    for (int k = 0; k < BUFFERS; k++) {")
    LINE("        void *host = calloc(1, (size_t)buffer[k].bytes + 8);")
    LINE("        if (buffer[k].is_arg) fill(host, buffer[k].elements, buffer[k].kind, buffer[k].bits, (unsigned)k + 1);")
    LINE("        mem[k] = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, (size_t)buffer[k].bytes, host, &rc);")
    LINE("        need(rc, \"buffer\");")
    LINE("        free(host);")
    LINE("    }")
    LINE("    for (int l = 0; l < LAUNCHES; l++) {")
    LINE("        kernel[l] = clCreateKernel(program, launch[l].entry, &rc);")
    LINE("        need(rc, launch[l].entry);")
    LINE("        for (unsigned j = 0; j < launch[l].n; j++) need(clSetKernelArg(kernel[l], j, sizeof(cl_mem), &mem[launch[l].buffer[j]]), \"argument\");")
    LINE("    }")
    LINE("    double begin = 0;")
    LINE("    for (int i = -1; i < times; i++) {")
    LINE("        if (i == 0) begin = now();")
    LINE("        for (int l = 0; l < LAUNCHES; l++) {")
    LINE("            size_t global[3];")
    LINE("            for (int d = 0; d < 3; d++) global[d] = launch[l].grid[d] * launch[l].block[d];")
    LINE("            need(clEnqueueNDRangeKernel(queue, kernel[l], 3, NULL, global, launch[l].block, 0, NULL, NULL), launch[l].entry);")
    LINE("        }")
    LINE("        if (i < 0) need(clFinish(queue), \"running\");")
    LINE("    }")
    LINE("    need(clFinish(queue), \"running\");")
    LINE("    printf(\"%.9g s\\n\", (now() - begin) / times);")
    LINE("    for (int k = 0; k < BUFFERS; k++) {")
    LINE("        if (!buffer[k].is_arg || !buffer[k].written) continue;")
    LINE("        void *host = calloc(1, (size_t)buffer[k].bytes + 8);")
    LINE("        need(clEnqueueReadBuffer(queue, mem[k], CL_TRUE, 0, (size_t)buffer[k].bytes, host, 0, NULL, NULL), \"reading\");")
    LINE("        printf(\"%s: sum %.9g\\n\", buffer[k].name, sum(host, buffer[k].elements, buffer[k].kind, buffer[k].bits));")
    LINE("        free(host);")
    LINE("    }")
    LINE("    free(text);")
    LINE("    return 0;")
    LINE("}");

static void put_opencl(const cd_tune_emit *e, cd_buf *kernel, cd_buf *host) {
    cd_buf_puts(kernel, cd_codegen_prelude(CD_DIALECT_OPENCL));
    cd_buf_put(kernel, e->code->text.p, e->code->text.n);
    about(e, host);
    cd_buf_puts(host, cl_head);
    cd_buf_putf(host, "#define SOURCE \"%s.cl\"\n", e->name);
    buffers(e, host);
    launches(e, host, false);
    cd_buf_puts(host, fill_text);
    cd_buf_puts(host, cl_run);
}

static const char cu_run[] =
    LINE("static void need(cudaError_t rc, const char *what) {")
    LINE("    if (rc == cudaSuccess) return;")
    LINE("    fprintf(stderr, \"%s: %s\\n\", what, cudaGetErrorString(rc));")
    LINE("    exit(1);")
    LINE("}")
    LINE("int main(int argc, char **argv) {")
    LINE("    const int times = argc > 1 && atoi(argv[1]) > 0 ? atoi(argv[1]) : 20;")
    LINE("    void *mem[BUFFERS];")
    LINE("    cudaEvent_t begin, end;")
    LINE("    float ms = 0;")
    LINE("    for (int k = 0; k < BUFFERS; k++) {")
    LINE("        void *host = calloc(1, (size_t)buffer[k].bytes + 8);")
    LINE("        if (buffer[k].is_arg) fill(host, buffer[k].elements, buffer[k].kind, buffer[k].bits, (unsigned)k + 1);")
    LINE("        need(cudaMalloc(&mem[k], (size_t)buffer[k].bytes), \"memory\");")
    LINE("        need(cudaMemcpy(mem[k], host, (size_t)buffer[k].bytes, cudaMemcpyHostToDevice), \"filling\");")
    LINE("        free(host);")
    LINE("    }")
    LINE("    need(cudaEventCreate(&begin), \"event\");")
    LINE("    need(cudaEventCreate(&end), \"event\");")
    LINE("    for (int i = -1; i < times; i++) {")
    LINE("        if (i == 0) need(cudaEventRecord(begin, 0), \"event\");")
    LINE("        for (int l = 0; l < LAUNCHES; l++) {")
    LINE("            void *arg[MOST];")
    LINE("            for (unsigned j = 0; j < launch[l].n; j++) arg[j] = &mem[launch[l].buffer[j]];")
    LINE("            const dim3 grid(launch[l].grid[0], launch[l].grid[1], launch[l].grid[2]), block(launch[l].block[0], launch[l].block[1], launch[l].block[2]);")
    LINE("            need(cudaLaunchKernel(launch[l].entry, grid, block, arg, 0, 0), \"launch\");")
    LINE("        }")
    LINE("    }")
    LINE("    need(cudaEventRecord(end, 0), \"event\");")
    LINE("    need(cudaEventSynchronize(end), \"running\");")
    LINE("    need(cudaEventElapsedTime(&ms, begin, end), \"time\");")
    LINE("    printf(\"%.9g s\\n\", ms * 1e-3 / times);")
    LINE("    for (int k = 0; k < BUFFERS; k++) {")
    LINE("        if (!buffer[k].is_arg || !buffer[k].written) continue;")
    LINE("        void *host = calloc(1, (size_t)buffer[k].bytes + 8);")
    LINE("        need(cudaMemcpy(host, mem[k], (size_t)buffer[k].bytes, cudaMemcpyDeviceToHost), \"reading\");")
    LINE("        printf(\"%s: sum %.9g\\n\", buffer[k].name, sum(host, buffer[k].elements, buffer[k].kind, buffer[k].bits));")
    LINE("        free(host);")
    LINE("    }")
    LINE("    return 0;")
    LINE("}");

static void put_cuda(const cd_tune_emit *e, cd_buf *b) {
    about(e, b);
    cd_buf_puts(b, "#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n");
    cd_buf_puts(b, cd_codegen_prelude(CD_DIALECT_CUDA));
    cd_buf_put(b, e->code->text.p, e->code->text.n);
    cd_buf_puts(b, "\n");
    buffers(e, b);
    launches(e, b, true);
    cd_buf_puts(b, fill_text);
    cd_buf_puts(b, cu_run);
}

cdmpp_status cd_tune_emit_put(const cd_tune_emit *e, cd_buf *kernel, cd_buf *host, cdmpp_err *err) {
    switch (e->code->dialect) {
    case CD_DIALECT_C: put_c(e, kernel); break;
    case CD_DIALECT_OPENCL: put_opencl(e, kernel, host); break;
    case CD_DIALECT_CUDA: put_cuda(e, kernel); break;
    }
    return kernel->oom || host->oom ? CD_FAIL(err, ENOMEM, "source") : CDMPP_OK;
}
