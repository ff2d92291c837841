/* main.c and Makefile: values once, constants once, regions in their order. */
#include <string.h>

#include "predictor/partition/emit/offload_emit_internal.h"

#define LINE(text) text "\n"

/* The same numbers as cd_tensor_fill and cd_tensor_fill_weight: value number k, element i. */
static const char fill[] =
    LINE("static uint64_t mix(uint64_t x) {")
    LINE("    x += 0x9e3779b97f4a7c15u;")
    LINE("    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;")
    LINE("    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;")
    LINE("    return x ^ (x >> 31);")
    LINE("}")
    LINE("static uint64_t draw(uint64_t k, uint64_t i) { return mix(mix(0xf111u + k) ^ mix(~i)); }")
    LINE("/* Floats in 0.25 to 1, integers 0 and 1; weights of two dimensions and more around 0, as small as they are many. */")
    LINE("static void fill(int k) {")
    LINE("    const float scale = 4.6f / sqrtf(fmaxf(1, (float)value[k].n / (float)value[k].widest));")
    LINE("    for (long long i = 0; i < value[k].n; i++) {")
    LINE("        const uint64_t r = draw((uint64_t)value[k].number, (uint64_t)i);")
    LINE("        float x = 0.25f + 0.75f * (float)(r >> 40) * 0x1p-24f;")
    LINE("        if (value[k].role == 's') x = (float)value[k].scalar;")
    LINE("        else if (value[k].role == 'w' && value[k].rank > 1) x = (x - 0.625f) * scale;")
    LINE("        if (value[k].kind == 'f' && value[k].bits == 32) ((float *)value[k].p)[i] = x;")
    LINE("        else if (value[k].kind == 'f' && value[k].bits == 64) ((double *)value[k].p)[i] = x;")
    LINE("        else if (value[k].kind == 'f') ((unsigned short *)value[k].p)[i] = 0x3800; /* half of IEEE: 0.5 */")
    LINE("        else if (value[k].kind == 'b') ((unsigned short *)value[k].p)[i] = 0x3f00;")
    LINE("        else {")
    LINE("            const long long whole = value[k].role == 's' ? (long long)value[k].scalar : (long long)(r >> 63);")
    LINE("            if (value[k].bits == 64) ((long long *)value[k].p)[i] = whole;")
    LINE("            else if (value[k].bits == 32) ((int *)value[k].p)[i] = (int)whole;")
    LINE("            else if (value[k].bits == 16) ((short *)value[k].p)[i] = (short)whole;")
    LINE("            else ((signed char *)value[k].p)[i] = (signed char)whole;")
    LINE("        }")
    LINE("    }")
    LINE("}");

static const char work[] =
    LINE("static size_t bytes_of(int k) { return (size_t)value[k].n * (size_t)((value[k].bits + 7) / 8); }")
    LINE("static void need(int ok, const char *what) {")
    LINE("    if (ok) return;")
    LINE("    fprintf(stderr, \"%s\\n\", what);")
    LINE("    exit(1);")
    LINE("}")
    LINE("/* What int8 leaves of a value: scale = largest / 127, nearest. */")
    LINE("static void as_int8(const float *from, long long n, float *to) {")
    LINE("    float most = 0;")
    LINE("    for (long long i = 0; i < n; i++) most = fabsf(from[i]) > most ? fabsf(from[i]) : most;")
    LINE("    const float scale = most > 0 ? most / 127 : 1;")
    LINE("    for (long long i = 0; i < n; i++) {")
    LINE("        const float q = nearbyintf(from[i] / scale);")
    LINE("        to[i] = (float)(signed char)(q > 127 ? 127 : q < -127 ? -127 : q) * scale;")
    LINE("    }")
    LINE("}")
    LINE("static void read_file(const char *path, char role) {")
    LINE("    FILE *f = fopen(path, \"rb\");")
    LINE("    need(f != NULL, path);")
    LINE("    for (int k = 0; k < VALUES; k++)")
    LINE("        if (value[k].role == role) need(fread(value[k].p, 1, bytes_of(k), f) == bytes_of(k), \"file is too short\");")
    LINE("    fclose(f);")
    LINE("}")
    LINE("static double now(void) {")
    LINE("    struct timespec t;")
    LINE("    timespec_get(&t, TIME_UTC);")
    LINE("    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;")
    LINE("}")
    LINE("/* One pass. A value that crosses as int8 is read from a copy of its own. */")
    LINE("static void pass(int int8) {")
    LINE("    for (int r = 0; r < REGIONS; r++) {")
    LINE("        void *argument[MOST];")
    LINE("        for (int k = 0; k < region[r].n; k++) {")
    LINE("            const int v = region[r].value[k];")
    LINE("            argument[k] = value[v].p;")
    LINE("            if (!int8 || !region[r].int8[k] || value[v].kind != 'f' || value[v].bits != 32) continue;")
    LINE("            if (!value[v].as_int8) value[v].as_int8 = malloc(bytes_of(v) + 8);")
    LINE("            need(value[v].as_int8 != NULL, \"memory\");")
    LINE("            as_int8(value[v].p, value[v].n, value[v].as_int8);")
    LINE("            argument[k] = value[v].as_int8;")
    LINE("        }")
    LINE("        need(region[r].run(argument) == 0, region[r].name);")
    LINE("    }")
    LINE("}")
    LINE("int main(int argc, char **argv) {")
    LINE("    int times = 20, int8 = 0;")
    LINE("    const char *dump = NULL, *constants = NULL, *inputs = NULL;")
    LINE("    for (int k = 1; k < argc; k++) {")
    LINE("        if (!strcmp(argv[k], \"--int8\")) int8 = 1;")
    LINE("        else if (!strcmp(argv[k], \"--dump\") && k + 1 < argc) dump = argv[++k];")
    LINE("        else if (!strcmp(argv[k], \"--constants\") && k + 1 < argc) constants = argv[++k];")
    LINE("        else if (!strcmp(argv[k], \"--inputs\") && k + 1 < argc) inputs = argv[++k];")
    LINE("        else if (atoi(argv[k]) > 0) times = atoi(argv[k]);")
    LINE("        else need(0, \"usage: network [TIMES] [--dump FILE] [--constants FILE] [--inputs FILE] [--int8]\");")
    LINE("    }")
    LINE("    for (int k = 0; k < VALUES; k++) {")
    LINE("        value[k].p = aligned_alloc(64, (bytes_of(k) + 127) / 64 * 64);")
    LINE("        need(value[k].p != NULL, \"memory\");")
    LINE("        if (value[k].role != 'v' && value[k].role != 'r') fill(k);")
    LINE("    }")
    LINE("    if (constants) read_file(constants, 'w');")
    LINE("    if (inputs) read_file(inputs, 'i');")
    LINE("    pass(int8);")
    LINE("    const double begin = now();")
    LINE("    for (int k = 0; k < times; k++) pass(int8);")
    LINE("    printf(\"%.9g s\\n\", (now() - begin) / times);")
    LINE("    FILE *f = dump ? fopen(dump, \"wb\") : NULL;")
    LINE("    need(!dump || f, \"cannot write\");")
    LINE("    for (int k = 0; k < RESULTS; k++) {")
    LINE("        const int v = result[k];")
    LINE("        double sum = 0;")
    LINE("        if (int8 && result_int8[k] && value[v].kind == 'f' && value[v].bits == 32) as_int8(value[v].p, value[v].n, value[v].p);")
    LINE("        for (long long i = 0; i < value[v].n && value[v].kind == 'f' && value[v].bits == 32; i++) sum += ((float *)value[v].p)[i];")
    LINE("        printf(\"result %d: sum %.6g\\n\", k, sum);")
    LINE("        if (f) need(fwrite(value[v].p, 1, bytes_of(v), f) == bytes_of(v), \"cannot write\");")
    LINE("    }")
    LINE("    need(!f || !fclose(f), \"cannot write\");")
    LINE("    return 0;")
    LINE("}");

/* ---- tables ---- */

static char role_of(const cd_emit_plan *p, uint32_t v) {
    const cd_workload_buffer *b = &p->l->work->buffer[v];
    if (b->value == b->value) return 's';
    return b->is_const ? 'w' : b->group == CD_GRAPH_NONE ? 'i' : 'v';
}

/* Values by number; at: position of each in main's table. */
static uint32_t put_values(const cd_emit_plan *p, uint32_t *at, cd_buf *b) {
    uint32_t n = 0;
    cd_buf_puts(b, "static struct {\n    long long n;\n    int number, rank;\n    long long widest;\n    int bits;\n    char kind, role; /* i input, w weight, s known scalar, v made */\n"
                   "    double scalar;\n    void *p, *as_int8;\n} value[] = {\n");
    for (uint32_t v = 0; v < p->l->work->n_buffer; v++) {
        const cd_workload_buffer *x = &p->l->work->buffer[v];
        int64_t widest = 1;
        at[v] = UINT32_MAX;
        if (!p->used[v]) continue;
        for (uint32_t d = 0; d < x->shape.rank; d++) widest = x->shape.dim[d] > widest ? x->shape.dim[d] : widest;
        const char role = role_of(p, v);
        cd_buf_putf(b, "    {%lld, %u, %u, %lld, %u, '%c', '%c', ", (long long)cd_graph_shape_elements(&x->shape), v, x->shape.rank, (long long)widest, cd_expr_dtype_bits(x->dtype),
                    cd_emit_kind(x->dtype), role);
        cd_buf_put_json_real(b, role == 's' ? x->value : 0);
        cd_buf_puts(b, ", 0, 0},\n");
        at[v] = n++;
    }
    cd_buf_puts(b, "};\n");
    return n;
}

/* Inner values of regions are theirs: main has none of them. */
static void drop_inner(const cd_emit_plan *p) {
    memset(p->used, 0, p->l->work->n_buffer * sizeof *p->used);
    for (uint32_t r = 0; r < p->n_region; r++)
        for (uint32_t k = 0; k < p->region[r].n_arg; k++) p->used[p->region[r].value[k].value] = true;
    for (uint32_t k = 0; k < p->l->source->n_output; k++) p->used[p->l->work->output[k]] = true;
}

static bool crosses_as_int8(const cd_emit_plan *p, uint32_t region, const cd_emit_value *v) {
    const cd_workload_buffer *b = &p->l->work->buffer[v->value];
    const uint32_t from = b->group == CD_GRAPH_NONE ? 0 : p->a->plan->where[b->group];
    return v->role == CD_EMIT_INPUT && cd_emit_is_int8(p, from, p->a->plan->region[region].device);
}

static void put_regions(const cd_emit_plan *p, const uint32_t *at, cd_buf *b) {
    uint32_t most = 1;
    for (uint32_t r = 0; r < p->n_region; r++) {
        const cd_emit_region *x = &p->region[r];
        most = x->n_arg > most ? x->n_arg : most;
        cd_buf_putf(b, "int %s_run(void *const *argument); /* %s */\n", x->name, x->device);
        cd_buf_putf(b, "static const int %s_value[] = {", x->name);
        for (uint32_t k = 0; k < x->n_arg; k++) cd_buf_putf(b, "%s%u", k ? ", " : "", at[x->value[k].value]);
        cd_buf_putf(b, "};\nstatic const char %s_int8[] = {", x->name);
        for (uint32_t k = 0; k < x->n_arg; k++) cd_buf_putf(b, "%s%d", k ? ", " : "", crosses_as_int8(p, r, &x->value[k]));
        cd_buf_puts(b, "};\n");
    }
    cd_buf_puts(b, "static const struct { const char *name; int (*run)(void *const *); int n; const int *value; const char *int8; } region[] = {\n");
    for (uint32_t r = 0; r < p->n_region; r++) {
        const char *name = p->region[r].name;
        cd_buf_putf(b, "    {\"%s\", %s_run, %u, %s_value, %s_int8},\n", name, name, p->region[r].n_arg, name, name);
    }
    cd_buf_putf(b, "};\nstatic const int result[] = {");
    for (uint32_t k = 0; k < p->l->source->n_output; k++) cd_buf_putf(b, "%s%u", k ? ", " : "", at[p->l->work->output[k]]);
    cd_buf_puts(b, "};\nstatic const char result_int8[] = {");
    for (uint32_t k = 0; k < p->l->source->n_output; k++) {
        const uint32_t from = p->l->work->buffer[p->l->work->output[k]].group;
        cd_buf_putf(b, "%s%d", k ? ", " : "", from != CD_GRAPH_NONE && cd_emit_is_int8(p, p->a->plan->where[from], 0));
    }
    cd_buf_putf(b, "};\nenum { REGIONS = %u, MOST = %u, RESULTS = %u };\n", p->n_region, most, p->l->source->n_output);
}

static void put_makefile(const cd_emit_plan *p, cd_buf *b) {
    const char *lib[CD_PLACE_MAX_DEVICE];
    uint32_t n = 0;
    cd_buf_puts(b, "# make, then ./network\nCFLAGS ?= -O2 -march=native -ffp-contract=fast -fno-math-errno\nOPENMP ?= -fopenmp\nOBJECTS = main.o");
    for (uint32_t r = 0; r < p->n_region; r++) cd_buf_putf(b, " %s.o", p->region[r].name);
    cd_buf_puts(b, "\nLIBRARIES ?=");
    for (uint32_t r = 0; r < p->n_region; r++) {
        const char *want = cd_emit_of(p, r)->library;
        bool had = !want;
        for (uint32_t k = 0; k < n && !had; k++) had = !strcmp(lib[k], want);
        if (!had) lib[n++] = want, cd_buf_putf(b, " %s", want);
    }
    cd_buf_puts(b, "\n\nnetwork: $(OBJECTS)\n\t$(CC) $(OPENMP) -o $@ $(OBJECTS) $(LIBRARIES) -lm\n%.o: %.c\n\t$(CC) $(CFLAGS) -Wno-psabi $(OPENMP) -c $< -o $@\nclean:\n\trm -f network $(OBJECTS)\n");
}

cdmpp_status cd_emit_host(const cd_emit_plan *p, cd_emit_files *out, cdmpp_err *err) {
    uint32_t *at = cd_mem_zalloc((size_t)p->l->work->n_buffer + 1, sizeof *at);
    cd_buf *b = at ? cd_emit_add(out, "main", ".c") : NULL;
    if (!b) {
        cd_mem_free(at);
        return CD_FAIL(err, ENOMEM, "source");
    }
    drop_inner(p);
    cd_buf_puts(b, "/* Regions of a network, one behind the other. Values by number: network.json. */\n#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <time.h>\n");
    cd_buf_putf(b, "enum { VALUES = %u };\n", put_values(p, at, b));
    put_regions(p, at, b);
    cd_buf_puts(b, fill);
    cd_buf_puts(b, work);
    cd_mem_free(at);
    if (!(b = cd_emit_add(out, "Makefile", ""))) return CD_FAIL(err, ENOMEM, "makefile");
    put_makefile(p, b);
    return CDMPP_OK;
}
