#include "profiler/codegen.h"

void cd_code_free(cd_code *c) {
    if (!c) return;
    cd_buf_free(&c->text);
    cd_arena_free(&c->arena);
    *c = (cd_code){.dialect = c->dialect};
}
