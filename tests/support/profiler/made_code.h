/* made_code.h -- C programs as codegen.h describes them, written by hand. */
#ifndef MADE_CODE_H
#define MADE_CODE_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/codegen/code/code.h"

typedef struct made_code {
    cd_codegen_code code;
    cd_codegen_buffer buffer[4];
    cd_codegen_launch launch;
    uint32_t order[4];
    char entry[64];
} made_code;

/* void NAME(void *const *arg) { const float *a, *b (inputs); float *c (result); int n; BODY } of n
 * elements each. */
static inline void made_code_set(made_code *m, const char *name, int64_t n, const char *body) {
    memset(m, 0, sizeof *m);
    snprintf(m->entry, sizeof m->entry, "%s", name);
    static const char *const names[] = {"a", "b", "c"};
    for (uint32_t k = 0; k < 3; k++) {
        m->buffer[k] = (cd_codegen_buffer){.name = names[k],
                                           .dtype = CD_F32,
                                           .elements = n,
                                           .bytes = 4 * n,
                                           .is_arg = true,
                                           .written = k == 2};
        m->order[k] = k;
    }
    m->launch = (cd_codegen_launch){.entry = m->entry,
                                    .grid = {1, 1, 1},
                                    .block = {1, 1, 1},
                                    .n_buffer = 3,
                                    .buffer = m->order};
    m->code.dialect = CD_DIALECT_C;
    m->code.n_buffer = m->code.n_arg = 3;
    m->code.n_launch = 1;
    m->code.buffer = m->buffer;
    m->code.launch = &m->launch;
    cd_buf_putf(&m->code.text,
                "void %s(void *const *arg) {\n const float *a = arg[0], *b = arg[1]; float *c = "
                "arg[2]; int n = %lld;\n",
                name, (long long)n);
    cd_buf_puts(&m->code.text, " (void)a, (void)b, (void)c, (void)n;\n ");
    cd_buf_puts(&m->code.text, body);
    cd_buf_puts(&m->code.text, "\n}\n");
    if (m->code.text.oom) abort();
}

#define MADE_ADD "for (int i = 0; i < n; i++) c[i] = a[i] + b[i];"

static inline void made_code_free(made_code *m) { cd_buf_free(&m->code.text); }
#endif
