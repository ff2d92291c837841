/* The facts of a program: read the nest, cut it into digits, ask each part of the room. Also the
 * table of columns. */
#include "features/analytic/analytic_internal.h"

#include <math.h>
#include <string.h>

static const cd_fact_col cpu_cols[CD_N_FACTS] = {
#define X(ID, name, unit, meaning) {name, unit, meaning},
#include "features/analytic/facts_cols.def"
};

static const cd_fact_col gpu_cols[CD_N_GPU_FACTS] = {
#define X(ID, name, of, unit, meaning) {name, unit, meaning},
#include "features/analytic/facts_gpu_cols.def"
};

static const struct {
    const char *name;
    const cd_fact_col *col;
    size_t n;
    int version;
} sets[CD_N_FACTS_SET] = {
    [CD_FACTS_OF_CPU] = {"cpu", cpu_cols, CD_N_FACTS, CD_FACTS_VERSION},
    [CD_FACTS_OF_GPU] = {"gpu", gpu_cols, CD_N_GPU_FACTS, CD_GPU_FACTS_VERSION}};

size_t cd_facts_count(cd_facts_set set) { return sets[set].n; }
const cd_fact_col *cd_facts_cols(cd_facts_set set) { return sets[set].col; }
const char *cd_facts_set_name(cd_facts_set set) { return sets[set].name; }

void cd_facts_cols_digest(cd_facts_set set, char out[65]) {
    cd_sha256 h;
    const char version[] = {(char)('0' + sets[set].version), '\n'};
    cd_sha256_init(&h);
    if (set != CD_FACTS_OF_CPU) cd_sha256_add(&h, sets[set].name, strlen(sets[set].name));
    cd_sha256_add(&h, version, sizeof version);
    for (size_t i = 0; i < sets[set].n; i++) {
        cd_sha256_add(&h, sets[set].col[i].name, strlen(sets[set].col[i].name));
        cd_sha256_add(&h, "\n", 1);
    }
    cd_sha256_hex(&h, out);
}

void cd_facts_cols_print(cd_facts_set set, cd_buf *out) {
    cd_buf_puts(out, "| # | name | unit | meaning |\n| --: | --- | --- | --- |\n");
    for (size_t i = 0; i < sets[set].n; i++)
        cd_buf_putf(out, "| %zu | `%s` | %s | %s |\n", i, sets[set].col[i].name,
                    sets[set].col[i].unit, sets[set].col[i].meaning);
}

cdmpp_status cd_facts_new(cd_facts **out, cdmpp_err *err) {
    *out = cd_mem_zalloc(1, sizeof **out);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "facts");
}

void cd_facts_free(cd_facts *f) {
    if (!f) return;
    cd_arena_free(&f->an.arena);
    cd_mem_free(f);
}

/* Counts of hostile shapes may leave float's range. */
static void limit(float *out) {
    for (size_t i = 0; i < CD_N_FACTS; i++)
        out[i] = !(out[i] >= 0) ? 0 : out[i] > 1e30F ? 1e30F : out[i];
}

static cd_an *start(cd_facts *f, const cd_nest *nest, float *out) {
    cd_an *w = &f->an;
    const cd_arena arena = w->arena;
    *w = (cd_an){.arena = arena, .nest = nest, .ast = nest->ast, .out = out};
    cd_arena_reset(&w->arena);
    memset(out, 0, CD_N_FACTS * sizeof *out);
    return w;
}

cdmpp_status cd_facts_gpu(cd_facts *f, const cd_nest *nest, float *out, cdmpp_err *err) {
    cd_an *w = start(f, nest, out);
    w->gpu = true;
    CD_TRY(cd_facts_read_nest(w, err));
    CD_TRY(cd_facts_gpu_count(w, err));
    limit(out);
    return CDMPP_OK;
}

cd_facts_set cd_facts_set_of_nest(const cd_nest *nest) {
    for (int32_t k = 0; k < nest->ast->n; k++)
        if (nest->ast->node[k].kind == CD_AST_THREAD) return CD_FACTS_OF_GPU;
    return CD_FACTS_OF_CPU;
}

cdmpp_status cd_facts_of(cd_facts *f, cd_facts_set set, const cd_nest *nest, float *out,
                         cdmpp_err *err) {
    return set == CD_FACTS_OF_GPU ? cd_facts_gpu(f, nest, out, err)
                                  : cd_facts_cpu(f, nest, out, err);
}

cdmpp_status cd_facts_cpu(cd_facts *f, const cd_nest *nest, float *out, cdmpp_err *err) {
    cd_an *w = start(f, nest, out);
    CD_TRY(cd_facts_read_nest(w, err));
    CD_TRY(cd_facts_tree_make(w, err));
    cd_facts_unroll_loops(w);
    cd_facts_reuse_count(w);
    cd_facts_core_count(w);
    if (w->oom) return CD_FAIL(err, ENOMEM, "facts");
    out[CD_FACT_INEXACT] = (float)w->inexact;
    limit(out);
    return CDMPP_OK;
}
