/* Tensors of a program for code generators: names, shapes, memory scopes, which are parameters. */

#include <string.h>

#include "features/program/program_internal.h"

static const char *scope_of(const cd_schedule *s, int32_t op) {
    for (int32_t k = 0; k < s->n_stage; k++)
        if (s->stage[k].op == op && s->stage[k].scope) return s->stage[k].scope;
    return "";
}

/* The name is in a ring of few: keep a copy. */
static const char *name_of(cd_schedule *s, uint32_t t) {
    return cd_arena_text(&s->arena, cd_schedule_name(s, CD_LOAD, t));
}

static bool fill(cd_schedule *s, uint32_t t, cd_nest_tensor *out) {
    const cd_schedule_op *op = &s->op[s->tensor_op.p[t]];
    *out = (cd_nest_tensor){.name = name_of(s, t),
                            .scope = scope_of(s, s->tensor_op.p[t]),
                            .rank = op->rank,
                            .shape = op->shape,
                            .dtype = op->dtype[t - op->first_tensor],
                            .arg = -1,
                            .written = !op->is_placeholder,
                            .reducer = op->red,
                            .output = t - op->first_tensor};
    out->layout_free = t < s->dag->n_tensor && s->dag->op[s->dag->tensor_op[t]].layout_free;
    return out->name != NULL;
}

cdmpp_status cd_program_nest(cd_program *p, cd_nest *out, cdmpp_err *err) {
    cd_schedule *s = &p->sched;
    const uint32_t n = s->tensor_op.n;
    cd_nest_tensor *t = cd_arena_alloc(&s->arena, n + 1, sizeof *t);
    if (!t) return CD_FAIL(err, ENOMEM, "nest of %u tensors", n);
    for (uint32_t k = 0; k < n; k++)
        if (!fill(s, k, &t[k])) return CD_FAIL(err, ENOMEM, "nest of %u tensors", n);
    for (uint32_t k = 0; k < s->dag->n_arg; k++) t[s->dag->arg[k]].arg = (int32_t)k;
    *out = (cd_nest){.ast = &p->ast,
                     .n_tensor = n,
                     .n_arg = s->dag->n_arg,
                     .n_var = s->pool.n_var,
                     .tensor = t,
                     .arg = s->dag->arg,
                     .names = {cd_schedule_name, s},
                     .pack = p->pack,
                     .vector_bytes = p->vector_bytes ? p->vector_bytes : 32};
    return CDMPP_OK;
}
