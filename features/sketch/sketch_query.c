/* Questions that rules ask about a state. Inlined stages are transparent: their readers take their place. */
#include <string.h>

#include "features/sketch/sketch_internal.h"

static void mark_consumers(const cd_sketch_state *s, uint32_t stage, bool *mark) {
    const uint32_t n = s->prog->n;
    for (uint32_t c = stage + 1; c < n; c++) {
        if (!s->prog->reads[c * n + stage]) continue;
        const bool known = mark[c];
        mark[c] = true;
        if (!known && s->stage[c].at == CD_SKETCH_INLINED) mark_consumers(s, c, mark);
    }
}

uint32_t cd_sketch_consumers(const cd_sketch_state *s, uint32_t stage, uint32_t *list) {
    bool mark[CD_MAX_STAGE] = {false};
    uint32_t n = 0;
    mark_consumers(s, stage, mark);
    for (uint32_t k = 0; k < s->n_stage; k++)
        if (mark[k] && s->stage[k].at != CD_SKETCH_INLINED) list[n++] = k;
    return n;
}

bool cd_sketch_has_producers(const cd_sketch_state *s, uint32_t stage) {
    const uint32_t n = s->prog->n;
    for (uint32_t p = 0; p < stage; p++) {
        if (!s->prog->reads[stage * n + p]) continue;
        if (s->stage[p].at != CD_SKETCH_INLINED || cd_sketch_has_producers(s, p)) return true;
    }
    return false;
}

bool cd_sketch_has_reduce(const cd_sketch_stage *st) {
    for (uint32_t k = 0; k < st->n; k++)
        if (st->it[k].kind != CD_SKETCH_SPATIAL && st->it[k].kind != CD_SKETCH_SPECIAL) return true;
    return false;
}

bool cd_sketch_has_attached(const cd_sketch_state *s, uint32_t stage, uint32_t it) {
    for (uint32_t k = 0; k < s->n_stage; k++)
        if (s->stage[k].at == CD_SKETCH_AT && s->stage[k].at_stage == (int32_t)stage && s->stage[k].at_it == (int32_t)it) return true;
    return false;
}

static bool adds_stage(cd_record_step_kind k) { return k == CD_RECORD_STEP_CHR || k == CD_RECORD_STEP_CHW || k == CD_RECORD_STEP_RF; }

bool cd_sketch_has_step(const cd_sketch_state *s, uint32_t stage, cd_record_step_kind kind) {
    int32_t id = (int32_t)stage;
    for (uint32_t k = s->n_step; k-- > 0;) {
        const cd_record_step *t = &s->step[k];
        if (t->kind == kind && t->stage == id) return true;
        if (adds_stage(t->kind) && id > t->stage) id--;
    }
    return false;
}

uint32_t cd_sketch_stage_splits(const cd_sketch_state *s, uint32_t stage, uint32_t *step, uint32_t cap) {
    int32_t id = (int32_t)stage;
    uint32_t n = 0;
    for (uint32_t k = s->n_step; k-- > 0;) {
        const cd_record_step *t = &s->step[k];
        if (t->kind == CD_RECORD_STEP_SP && t->stage == id && n < cap) step[n++] = k;
        if (adds_stage(t->kind) && id > t->stage) id--;
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
        uint32_t readers = 0, next = 0;
        for (uint32_t c = 0; c < p->n; c++) {
            if (!p->reads[c * p->n + stage]) continue;
            readers++;
            next = c;
        }
        const cd_sketch_op *a = &p->op[stage], *b = &p->op[next];
        if (readers != 1 || a->placeholder || b->placeholder || a->rank != b->rank ||
            (a->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) != 0) || !p->same[next * p->n + stage])
            return false;
        stage = next;
    }
    return true;
}

int32_t cd_sketch_matched_consumer(const cd_sketch_state *s, uint32_t stage) {
    uint32_t list[CD_MAX_STAGE];
    if (cd_sketch_consumers(s, stage, list) != 1 || !elementwise(s, stage, list[0])) return -1;
    if (cd_sketch_has_reduce(&s->stage[stage]) && cd_sketch_has_reduce(&s->stage[list[0]])) return -1;
    return s->prog->op[list[0]].shared ? -1 : (int32_t)list[0];
}

int32_t cd_sketch_single_consumer(const cd_sketch_state *s, uint32_t stage) {
    uint32_t list[CD_MAX_STAGE];
    const uint32_t n = cd_sketch_consumers(s, stage, list);
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

/* The least along all paths; UINT32_MAX where there is none. */
static uint32_t common_path(const cd_sketch_state *s, uint32_t stage, uint32_t target, uint32_t n) {
    const cd_sketch_program *p = s->prog;
    if (stage == target) return n;
    uint32_t least = UINT32_MAX;
    for (uint32_t c = stage + 1; c < p->n; c++) {
        if (!p->reads[c * p->n + stage]) continue;
        const uint32_t here = p->common[c * p->n + stage];
        const uint32_t m = common_path(s, c, target, n < here ? n : here);
        if (m < least) least = m;
    }
    return least;
}

uint32_t cd_sketch_common_outer(const cd_sketch_state *s, uint32_t stage, uint32_t target) {
    const uint32_t n = common_path(s, stage, target, s->prog->op[stage].rank);
    return n == UINT32_MAX ? 0 : n;
}

static bool thread_reduce(const cd_sketch_stage *st) {
    for (uint32_t k = 0; k < st->n; k++)
        if (st->it[k].ann == CD_SKETCH_THREAD_X && cd_sketch_is_reduce(&st->it[k])) return true;
    return false;
}

bool cd_sketch_has_cross_thread(const cd_sketch_state *s, uint32_t stage) {
    if (thread_reduce(&s->stage[stage])) return true;
    for (uint32_t k = 0; k < s->n_stage; k++)
        if (s->stage[k].at == CD_SKETCH_AT && s->stage[k].at_stage == (int32_t)stage && thread_reduce(&s->stage[k])) return true;
    return false;
}

void cd_sketch_volume(const cd_sketch_stage *st, int64_t *space, int64_t *reduce) {
    *space = *reduce = 1;
    for (uint32_t k = 0; k < st->n; k++) {
        if (st->it[k].kind == CD_SKETCH_SPATIAL) *space = cd_sketch_saturating_mul(*space, st->it[k].ext);
        if (st->it[k].kind == CD_SKETCH_REDUCE) *reduce = cd_sketch_saturating_mul(*reduce, st->it[k].ext);
    }
}

bool cd_sketch_can_inline(const cd_sketch_space *sp, const cd_sketch_state *s, uint32_t stage) {
    const cd_sketch_op *op = &s->prog->op[stage];
    if (op->placeholder || op->output || cd_sketch_has_reduce(&s->stage[stage])) return false;
    return sp->gpu || op->strict;
}
