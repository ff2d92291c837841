/* Questions that rules ask about a state. Inlined stages are transparent: their readers take their
 * place. */
#include <stdlib.h>
#include <string.h>

#include "features/sketch/sketch_internal.h"

/* Is stage k met for the first time in this walk? */
static bool meet(cd_sketch_marks *m, uint32_t k) {
    if (m->met[k] == m->walk) return false;
    m->met[k] = m->walk;
    return true;
}

static void begin_walk(cd_sketch_marks *m) {
    if (++m->walk) return;
    memset(m->met, 0, m->cap * sizeof *m->met);
    m->walk = 1;
}

static void collect(const cd_sketch_state *s, uint32_t stage, uint32_t *n) {
    const cd_sketch_program *p = s->prog;
    for (uint32_t k = p->first_out[stage]; k < p->first_out[stage + 1]; k++) {
        const uint32_t c = p->out[k].reader;
        if (!meet(s->marks, c)) continue;
        if (s->stage[c].at == CD_SKETCH_INLINED) collect(s, c, n);
        else s->marks->list[(*n)++] = c;
    }
}

uint32_t cd_sketch_consumers(const cd_sketch_state *s, uint32_t stage, const uint32_t **list) {
    uint32_t n = 0;
    begin_walk(s->marks);
    collect(s, stage, &n);
    if (n > 1) qsort(s->marks->list, n, sizeof *s->marks->list, cd_sort_by_u32);
    *list = s->marks->list;
    return n;
}

static bool has_producers(const cd_sketch_state *s, uint32_t stage) {
    const cd_sketch_program *p = s->prog;
    for (uint32_t k = p->first_in[stage]; k < p->first_in[stage + 1]; k++) {
        const uint32_t q = p->in[k].read;
        if (s->stage[q].at != CD_SKETCH_INLINED || (meet(s->marks, q) && has_producers(s, q)))
            return true;
    }
    return false;
}

bool cd_sketch_has_producers(const cd_sketch_state *s, uint32_t stage) {
    begin_walk(s->marks);
    return has_producers(s, stage);
}

bool cd_sketch_has_reduce(const cd_sketch_stage *st) {
    for (uint32_t k = 0; k < st->n; k++)
        if (st->it[k].kind != CD_SKETCH_SPATIAL && st->it[k].kind != CD_SKETCH_SPECIAL) return true;
    return false;
}

bool cd_sketch_has_attached(const cd_sketch_state *s, uint32_t stage, uint32_t it) {
    for (int32_t k = s->stage[stage].child; k >= 0; k = s->stage[k].next)
        if (s->stage[k].at_it == (int32_t)it) return true;
    return false;
}

bool cd_sketch_has_step(const cd_sketch_state *s, uint32_t stage, cd_record_step_kind kind) {
    int32_t id = (int32_t)stage;
    for (uint32_t k = s->n_step; k-- > 0;) {
        const cd_record_step *t = &s->step[k];
        if (t->kind == kind && t->stage == id) return true;
        if (cd_sketch_adds_stage(t->kind) && id > t->stage) id--;
    }
    return false;
}

uint32_t cd_sketch_stage_splits(const cd_sketch_state *s, uint32_t stage, uint32_t *step,
                                uint32_t cap) {
    int32_t id = (int32_t)stage;
    uint32_t n = 0;
    for (uint32_t k = s->n_step; k-- > 0;) {
        const cd_record_step *t = &s->step[k];
        if (t->kind == CD_RECORD_STEP_SP && t->stage == id && n < cap) step[n++] = k;
        if (cd_sketch_adds_stage(t->kind) && id > t->stage) id--;
    }
    return n;
}

bool cd_sketch_is_tiled(const cd_sketch_state *s, uint32_t stage) {
    const cd_sketch_op *op = &s->prog->op[stage];
    return !op->placeholder && s->stage[stage].n != op->n_axis + op->n_raxis;
}

/* Is every operator from `stage` to `target` read by the next alone, element by element? */
static bool elementwise(const cd_sketch_state *s, uint32_t stage, uint32_t target) {
    const cd_sketch_program *p = s->prog;
    while (stage != target) {
        if (p->first_out[stage + 1] - p->first_out[stage] != 1) return false;
        const cd_sketch_edge *e = &p->out[p->first_out[stage]];
        const cd_sketch_op *a = &p->op[stage], *b = &p->op[e->reader];
        if (a->placeholder || b->placeholder || a->rank != b->rank ||
            (a->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) != 0) || !e->same)
            return false;
        stage = e->reader;
    }
    return true;
}

int32_t cd_sketch_matched_consumer(const cd_sketch_state *s, uint32_t stage) {
    const uint32_t *list;
    if (cd_sketch_consumers(s, stage, &list) != 1 || !elementwise(s, stage, list[0])) return -1;
    if (cd_sketch_has_reduce(&s->stage[stage]) && cd_sketch_has_reduce(&s->stage[list[0]]))
        return -1;
    return s->prog->op[list[0]].shared ? -1 : (int32_t)list[0];
}

int32_t cd_sketch_single_consumer(const cd_sketch_state *s, uint32_t stage) {
    const uint32_t *list, n = cd_sketch_consumers(s, stage, &list);
    if (!n) return -1;
    if (n == 1) return (int32_t)list[0];
    int32_t root = -1;
    for (uint32_t k = 0; k < n; k++) {
        const cd_sketch_stage *st = &s->stage[list[k]];
        const int32_t r = st->at == CD_SKETCH_AT ? st->at_stage : (int32_t)list[k];
        if (root >= 0 && r != root) return -1;
        root = r;
    }
    return root;
}

#define NO_PATH UINT32_MAX
#define ANY     (UINT32_MAX - 1)

/* The least along all paths; each stage is looked at once, however many paths go through it. */
static uint32_t common_path(const cd_sketch_state *s, uint32_t stage, uint32_t target) {
    const cd_sketch_program *p = s->prog;
    if (stage == target) return ANY;
    if (stage > target) return NO_PATH;
    if (!meet(s->marks, stage)) return s->marks->value[stage];
    uint32_t least = NO_PATH;
    for (uint32_t k = p->first_out[stage]; k < p->first_out[stage + 1]; k++) {
        const uint32_t on = common_path(s, p->out[k].reader, target),
                       m = on < p->out[k].common || on == NO_PATH ? on : p->out[k].common;
        if (m < least) least = m;
    }
    return s->marks->value[stage] = least;
}

uint32_t cd_sketch_common_outer(const cd_sketch_state *s, uint32_t stage, uint32_t target) {
    begin_walk(s->marks);
    const uint32_t n = common_path(s, stage, target), rank = s->prog->op[stage].rank;
    return n == NO_PATH ? 0 : n < rank ? n : rank;
}

static bool thread_reduce(const cd_sketch_stage *st) {
    for (uint32_t k = 0; k < st->n; k++)
        if (st->it[k].ann == CD_SKETCH_THREAD_X && cd_sketch_is_reduce(&st->it[k])) return true;
    return false;
}

bool cd_sketch_has_cross_thread(const cd_sketch_state *s, uint32_t stage) {
    if (thread_reduce(&s->stage[stage])) return true;
    for (int32_t k = s->stage[stage].child; k >= 0; k = s->stage[k].next)
        if (thread_reduce(&s->stage[k])) return true;
    return false;
}

void cd_sketch_volume(const cd_sketch_stage *st, int64_t *space, int64_t *reduce) {
    *space = *reduce = 1;
    for (uint32_t k = 0; k < st->n; k++) {
        if (st->it[k].kind == CD_SKETCH_SPATIAL)
            *space = cd_sketch_saturating_mul(*space, st->it[k].ext);
        if (st->it[k].kind == CD_SKETCH_REDUCE)
            *reduce = cd_sketch_saturating_mul(*reduce, st->it[k].ext);
    }
}

bool cd_sketch_can_inline(const cd_sketch_space *sp, const cd_sketch_state *s, uint32_t stage) {
    const cd_sketch_op *op = &s->prog->op[stage];
    if (op->placeholder || op->output || cd_sketch_has_reduce(&s->stage[stage])) return false;
    return sp->gpu || op->strict;
}
