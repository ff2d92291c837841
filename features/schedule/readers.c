/* Readers and attached stages as lists: one walk over all bodies, one over all stages. */
#include "features/schedule/readers.h"

#include <string.h>

typedef struct {
    cd_schedule *s;
    /* by expression id: reader + 1 that met it, and where its load stands in raw */
    uint32_t *seen, *at;
    cd_schedule_use *raw; /* (n) in the order of the walk */
    uint32_t n, cap, reader;
    bool oom;
} finder;

static int32_t op_of(const cd_schedule *s, const cd_expr *load) {
    return (uint64_t)load->u.i < s->tensor_op.n ? s->tensor_op.p[load->u.i] : -1;
}

static void add(finder *f, const cd_expr *e) {
    if (op_of(f->s, e) < 0) return;
    if (CD_GROW_IN(&f->s->arena, f->raw, f->n, f->cap)) {
        f->oom = true;
        return;
    }
    f->at[e->id] = f->n;
    f->raw[f->n++] = (cd_schedule_use){e, f->reader, false};
}

/* Shared parts of a body are walked once: a body may unfold to far more than it has nodes. */
static void walk(finder *f, const cd_expr *e) {
    if (!(e->flags & CD_EXPR_HAS_LOAD) || f->oom) return;
    if (f->seen[e->id] == f->reader + 1) {
        if (e->op == CD_LOAD && op_of(f->s, e) >= 0) f->raw[f->at[e->id]].again = true;
        return;
    }
    f->seen[e->id] = f->reader + 1;
    if (e->op == CD_LOAD) add(f, e);
    for (uint32_t i = 0; i < e->n; i++) walk(f, e->a[i]);
}

static void walk_stages(finder *f) {
    cd_schedule *s = f->s;
    for (f->reader = 0; f->reader < s->order.n && !f->oom; f->reader++) {
        const cd_schedule_stage *st = cd_schedule_stage_at(s, f->reader);
        const cd_schedule_op *op = cd_schedule_stage_op(s, st);
        if (st->attach == CD_SCHEDULE_AT_INLINED || op->is_placeholder) continue;
        for (uint32_t k = 0; k < op->n_out; k++) walk(f, op->body[k]);
        if (op->cond) walk(f, op->cond);
    }
}

/* By operator read, otherwise in the order of the walk. */
static bool sort(const finder *f, cd_schedule_readers *out) {
    cd_schedule *s = f->s;
    const uint32_t n = (uint32_t)s->n_op;
    uint32_t *at = CD_NEWN(&s->arena, uint32_t, n + 1);
    out->first = CD_NEWN(&s->arena, uint32_t, n + 1);
    out->use = cd_arena_alloc(&s->arena, (size_t)f->n + 1, sizeof *out->use);
    if (!at || !out->first || !out->use) return false;
    for (uint32_t k = 0; k < f->n; k++) out->first[op_of(s, f->raw[k].load) + 1]++;
    for (uint32_t k = 0; k < n; k++) at[k + 1] = out->first[k + 1] += out->first[k];
    for (uint32_t k = 0; k < f->n; k++) out->use[at[op_of(s, f->raw[k].load)]++] = f->raw[k];
    return true;
}

cdmpp_status cd_schedule_readers_find(cd_schedule *s, cd_schedule_readers *out, cdmpp_err *err) {
    finder f = {.s = s, .seen = CD_NEWN(&s->arena, uint32_t, (size_t)s->pool.n + 1)};
    f.at = cd_arena_alloc(&s->arena, (size_t)s->pool.n + 1, sizeof *f.at);
    if (f.seen && f.at) walk_stages(&f);
    return f.seen && f.at && !f.oom && sort(&f, out) ? CDMPP_OK : CD_FAIL(err, ENOMEM, "readers");
}

cdmpp_status cd_schedule_attached_find(cd_schedule *s, cd_schedule_attached *out, cdmpp_err *err) {
    const size_t n = (size_t)s->n_stage + 1;
    out->first = cd_arena_alloc(&s->arena, n, sizeof *out->first);
    out->next = cd_arena_alloc(&s->arena, n, sizeof *out->next);
    if (!out->first || !out->next) return CD_FAIL(err, ENOMEM, "attached stages");
    memset(out->first, 0xff, n * sizeof *out->first);
    for (uint32_t id = s->order.n; id-- > 0;) {
        const int32_t k = s->order.p[id];
        if (s->stage[k].attach != CD_SCHEDULE_AT_SCOPE) continue;
        out->next[k] = out->first[s->stage[k].at_stage];
        out->first[s->stage[k].at_stage] = k;
    }
    return CDMPP_OK;
}
