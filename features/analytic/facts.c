/* The facts of a program: read the nest, cut it into digits, ask each part of the room. Also the table of columns. */
#include "features/analytic/analytic_internal.h"

#include <math.h>
#include <string.h>

static const cd_fact_col cols[CD_N_FACTS] = {
#define X(ID, name, unit, meaning) {name, unit, meaning},
#include "features/analytic/facts_cols.def"
};

const cd_fact_col *cd_facts_cols(void) { return cols; }

void cd_facts_cols_digest(char out[65]) {
    cd_sha256 h;
    const char version[] = {'0' + CD_FACTS_VERSION, '\n'};
    cd_sha256_init(&h);
    cd_sha256_add(&h, version, sizeof version);
    for (size_t i = 0; i < CD_N_FACTS; i++) {
        cd_sha256_add(&h, cols[i].name, strlen(cols[i].name));
        cd_sha256_add(&h, "\n", 1);
    }
    cd_sha256_hex(&h, out);
}

void cd_facts_cols_print(cd_buf *out) {
    cd_buf_puts(out, "| # | name | unit | meaning |\n| --: | --- | --- | --- |\n");
    for (size_t i = 0; i < CD_N_FACTS; i++)
        cd_buf_putf(out, "| %zu | `%s` | %s | %s |\n", i, cols[i].name, cols[i].unit, cols[i].meaning);
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
    for (size_t i = 0; i < CD_N_FACTS; i++) out[i] = out[i] >= 0 ? fminf(out[i], 1e30F) : 0;
}

cdmpp_status cd_facts_cpu(cd_facts *f, const cd_nest *nest, float *out, cdmpp_err *err) {
    cd_an *w = &f->an;
    const cd_arena arena = w->arena;
    *w = (cd_an){.arena = arena, .nest = nest, .ast = nest->ast, .out = out};
    cd_arena_reset(&w->arena);
    memset(out, 0, CD_N_FACTS * sizeof *out);
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
