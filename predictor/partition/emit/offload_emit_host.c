/* main.c and Makefile: values once, constants once, regions in their order. */
#include <string.h>

/* The first makes the same numbers as cd_tensor_fill and cd_tensor_fill_weight: value number k,
 * element i. */
#include "base/text/text.h"
#include "predictor/partition/emit/embed/host_fill.c.in.h"
#include "predictor/partition/emit/embed/host_work.c.in.h"
#include "predictor/partition/emit/offload_emit_internal.h"

/* ---- tables ---- */

static char role_of(const cd_emit_plan *p, uint32_t v) {
    const cd_workload_buffer *b = &p->l->work->buffer[v];
    if (b->value == b->value) return 's';
    return b->is_const ? 'w' : b->group == CD_GRAPH_NONE ? 'i' : 'v';
}

/* Values by number; at: position of each in main's table. */
static uint32_t put_values(const cd_emit_plan *p, uint32_t *at, cd_buf *b) {
    uint32_t n = 0;
    cd_buf_puts(
        b, "static struct {\n    long long n;\n    int number, rank;\n    long long widest;\n    "
           "int bits;\n    char kind, role; /* i input, w weight, s known scalar, v made */\n"
           "    double scalar;\n    void *p, *as_int8;\n} value[] = {\n");
    for (uint32_t v = 0; v < p->l->work->n_buffer; v++) {
        const cd_workload_buffer *x = &p->l->work->buffer[v];
        int64_t widest = 1;
        at[v] = UINT32_MAX;
        if (!p->used[v]) continue;
        for (uint32_t d = 0; d < x->shape.rank; d++)
            widest = x->shape.dim[d] > widest ? x->shape.dim[d] : widest;
        const char role = role_of(p, v);
        cd_buf_putf(b, "    {%lld, %u, %u, %lld, %u, '%c', '%c', ",
                    (long long)cd_graph_shape_elements(&x->shape), v, x->shape.rank,
                    (long long)widest, cd_expr_dtype_bits(x->dtype), cd_emit_kind(x->dtype), role);
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
        for (uint32_t k = 0; k < p->region[r].n_arg; k++)
            p->used[p->region[r].value[k].value] = true;
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
        cd_buf_putf(b, "int %s_run(void *const *argument); /* ", x->name);
        cd_escape_c_comment(b, cd_str_of(x->device));
        cd_buf_puts(b, " */\n");
        cd_buf_putf(b, "static const int %s_value[] = {", x->name);
        for (uint32_t k = 0; k < x->n_arg; k++)
            cd_buf_putf(b, "%s%u", k ? ", " : "", at[x->value[k].value]);
        cd_buf_putf(b, "};\nstatic const char %s_int8[] = {", x->name);
        for (uint32_t k = 0; k < x->n_arg; k++)
            cd_buf_putf(b, "%s%d", k ? ", " : "", crosses_as_int8(p, r, &x->value[k]));
        cd_buf_puts(b, "};\n");
    }
    cd_buf_puts(b, "static const struct { const char *name; int (*run)(void *const *); int n; "
                   "const int *value; const char *int8; } region[] = {\n");
    for (uint32_t r = 0; r < p->n_region; r++) {
        const char *name = p->region[r].name;
        cd_buf_putf(b, "    {\"%s\", %s_run, %u, %s_value, %s_int8},\n", name, name,
                    p->region[r].n_arg, name, name);
    }
    cd_buf_putf(b, "};\nstatic const int result[] = {");
    for (uint32_t k = 0; k < p->l->source->n_output; k++)
        cd_buf_putf(b, "%s%u", k ? ", " : "", at[p->l->work->output[k]]);
    cd_buf_puts(b, "};\nstatic const char result_int8[] = {");
    for (uint32_t k = 0; k < p->l->source->n_output; k++) {
        const uint32_t from = p->l->work->buffer[p->l->work->output[k]].group;
        cd_buf_putf(b, "%s%d", k ? ", " : "",
                    from != CD_GRAPH_NONE && cd_emit_is_int8(p, p->a->plan->where[from], 0));
    }
    cd_buf_putf(b, "};\nenum { REGIONS = %u, MOST = %u, RESULTS = %u };\n", p->n_region, most,
                p->l->source->n_output);
}

static void put_makefile(const cd_emit_plan *p, cd_buf *b) {
    const char *lib[CD_PLACE_MAX_DEVICE];
    uint32_t n = 0;
    cd_buf_puts(b, "# make, then ./network\nCFLAGS ?= -O2 -march=native -ffp-contract=fast "
                   "-fno-math-errno\nOPENMP ?= -fopenmp\nOBJECTS = main.o");
    for (uint32_t r = 0; r < p->n_region; r++) cd_buf_putf(b, " %s.o", p->region[r].name);
    cd_buf_puts(b, "\nLIBRARIES ?=");
    for (uint32_t r = 0; r < p->n_region; r++) {
        const char *want = cd_emit_of(p, r)->library;
        bool had = !want;
        for (uint32_t k = 0; k < n && !had; k++) had = !strcmp(lib[k], want);
        if (!had) lib[n++] = want, cd_buf_putf(b, " %s", want);
    }
    cd_buf_puts(b, "\n\nnetwork: $(OBJECTS)\n\t$(CC) $(OPENMP) -o $@ $(OBJECTS) $(LIBRARIES) "
                   "-lm\n%.o: %.c\n\t$(CC) $(CFLAGS) -Wno-psabi $(OPENMP) -c $< -o "
                   "$@\nclean:\n\trm -f network $(OBJECTS)\n");
}

cdmpp_status cd_emit_host(const cd_emit_plan *p, cd_emit_files *out, cdmpp_err *err) {
    uint32_t *at = cd_mem_zalloc((size_t)p->l->work->n_buffer + 1, sizeof *at);
    cd_buf *b = at ? cd_emit_add(out, "main", ".c") : NULL;
    if (!b) {
        cd_mem_free(at);
        return CD_FAIL(err, ENOMEM, "source");
    }
    drop_inner(p);
    cd_buf_puts(b, "/* Regions of a network, one behind the other. Values by number: network.json. "
                   "*/\n#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n#include "
                   "<stdlib.h>\n#include <string.h>\n#include <time.h>\n");
    cd_buf_putf(b, "enum { VALUES = %u };\n", put_values(p, at, b));
    put_regions(p, at, b);
    cd_buf_puts(b, host_fill_c_in);
    cd_buf_puts(b, host_work_c_in);
    cd_mem_free(at);
    if (!(b = cd_emit_add(out, "Makefile", ""))) return CD_FAIL(err, ENOMEM, "makefile");
    put_makefile(p, b);
    return CDMPP_OK;
}
