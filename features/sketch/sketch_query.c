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

/* Ansor's sketch rules in TVM's order, and the work list that applies them from the last stage to
 * the first (docs/internals/ansor.md, Sketches). */

/* A state and the stage to look at next; below 0: complete. */
typedef struct {
    cd_sketch_state *s;
    int32_t at;
} item;

typedef struct {
    cd_sketch_space *sp;
    item *list; /* (n) the next generation */
    uint32_t n, cap;
    bool oom, has_const; /* some operator names axes to be unrolled */
} work;

/* A rule's verdict on (state, stage). Nobody asks for the state after YES_AND_STOP: such a rule
 * changes it itself, others a copy. So the stages that have one choice, which are most of a large
 * task, cost no copies. */
typedef enum { NO, YES, YES_AND_STOP } verdict;

/* A state in which a step did not fit is dropped without an error: the rule did not apply. */
static void emit(work *w, cd_sketch_state *s, int32_t at) {
    if (!s || s->oom) w->oom = true;
    if (w->oom || s->failed) return;
    if (CD_GROW_IN(&w->sp->arena, w->list, w->n, w->cap)) w->oom = true;
    else w->list[w->n++] = (item){s, at};
}

static cd_sketch_state *copy(work *w, const cd_sketch_state *s) {
    cd_sketch_state *c = cd_sketch_copy(&w->sp->arena, s);
    if (!c) w->oom = true;
    return c;
}

/* ---- multi-level tiling ---- */

typedef struct {
    uint32_t split[CD_TE_MAX_AXIS]; /* steps of the spatial axes */
    uint32_t n;
} tiled;

#define MAX_LEVEL 4
enum { MAX_IT = 2 * CD_TE_MAX_AXIS * (MAX_LEVEL + 1) };

/* Split every axis into as many parts as its letter occurs in `format`, then order by the
 * format. */
static bool tile(cd_sketch_state *s, uint32_t stage, const char *format, tiled *out) {
    uint32_t parts[2] = {0, 0};
    static const int64_t open[MAX_LEVEL] = {0};
    for (const char *f = format; *f; f++) parts[*f == 'R']++;
    out->n = 0;
    const uint32_t n = s->stage[stage].n;
    if (n > CD_TE_MAX_AXIS) return false;
    for (uint32_t k = 0, at = 0; k < n; k++) {
        const bool reduce = cd_sketch_is_reduce(&s->stage[stage].it[at]);
        cd_sketch_split(s, stage, at, open, parts[reduce] - 1);
        if (s->oom) return false;
        if (!reduce) out->split[out->n++] = s->n_step - 1;
        at += parts[reduce];
    }
    uint32_t order[MAX_IT], m = 0, level[2] = {0, 0};
    for (const char *f = format; *f; f++) {
        const bool reduce = *f == 'R';
        for (uint32_t k = 0; k < s->stage[stage].n; k++) {
            const cd_sketch_iter *it = &s->stage[stage].it[k];
            if (cd_sketch_is_reduce(it) == reduce && it->level == (int8_t)level[reduce])
                order[m++] = k;
        }
        level[reduce]++;
    }
    if (m != s->stage[stage].n) return false;
    cd_sketch_reorder(s, stage, order);
    return !s->oom;
}

/* The consumer's axes split as the tiles of `t`, n times; ordered level by level. */
static bool follow(cd_sketch_state *s, uint32_t stage, const tiled *t, uint32_t n) {
    const uint32_t axes = s->stage[stage].n;
    if (axes != t->n) return false;
    for (uint32_t k = 0; k < axes; k++)
        cd_sketch_follow_split(s, stage, k * (n + 1), t->split[k], n);
    if (s->oom) return false;
    uint32_t order[MAX_IT], m = 0;
    for (uint32_t level = 0; level <= n; level++)
        for (uint32_t k = 0; k < axes; k++) order[m++] = k * (n + 1) + level;
    cd_sketch_reorder(s, stage, order);
    return !s->oom;
}

static const char *format_of(const cd_sketch_space *sp) { return sp->gpu ? "SSSRRSRS" : "SSRSRS"; }

static verdict tiling_rule(work *w, cd_sketch_state *s, uint32_t stage) {
    tiled t;
    if (!s->prog->op[stage].tiling) return NO;
    if (tile(s, stage, format_of(w->sp), &t)) emit(w, s, (int32_t)stage - 1);
    if (s->oom) w->oom = true;
    return YES_AND_STOP;
}

static verdict tiling_with_fusion_rule(work *w, cd_sketch_state *s, uint32_t stage) {
    const int32_t target = s->prog->op[stage].tiling ? cd_sketch_matched_consumer(s, stage) : -1;
    if (target < 0) return NO;
    const bool stop = w->sp->gpu || cd_sketch_has_step(s, stage, CD_RECORD_STEP_CHW);
    for (uint32_t level = w->sp->gpu ? 3 : 1; level <= (w->sp->gpu ? 3U : 2U); level++) {
        tiled t;
        cd_sketch_state *c = copy(w, s);
        if (!c) return YES_AND_STOP;
        if (!tile(c, stage, format_of(w->sp), &t) || !follow(c, (uint32_t)target, &t, level))
            continue;
        cd_sketch_compute_at(c, stage, (uint32_t)target, level * t.n - 1);
        emit(w, c, (int32_t)stage - 1);
    }
    return stop ? YES_AND_STOP : YES;
}

/* ---- the others ---- */

static verdict inline_rule(work *w, cd_sketch_state *s, uint32_t stage) {
    if (!cd_sketch_can_inline(w->sp, s, stage)) return NO;
    cd_sketch_compute_inline(s, stage);
    emit(w, s, (int32_t)stage - 1);
    return YES_AND_STOP;
}

static verdict cache_write_rule(work *w, cd_sketch_state *s, uint32_t stage) {
    if (!s->prog->op[stage].tiling || cd_sketch_matched_consumer(s, stage) >= 0) return NO;
    cd_sketch_state *c = w->sp->gpu ? s : copy(w, s);
    if (!c) return YES_AND_STOP;
    cd_sketch_cache_write(w->sp, c, stage);
    emit(w, c, (int32_t)stage);
    return w->sp->gpu ? YES_AND_STOP : YES;
}

/* All reduction loops become one, behind the spatial ones. Returns its position. */
static uint32_t fuse_reductions(cd_sketch_state *s, uint32_t stage) {
    const cd_sketch_stage *st = &s->stage[stage];
    uint32_t first = 0, n = 0;
    for (uint32_t k = 0; k < st->n; k++) {
        if (!cd_sketch_is_reduce(&st->it[k])) continue;
        if (!n++) first = k;
    }
    if (n > 1) cd_sketch_fuse(s, stage, first, n);
    return first;
}

static verdict rfactor_rule(work *w, cd_sketch_state *s, uint32_t stage) {
    int64_t space, reduce;
    const cd_sketch_op *op = &s->prog->op[stage];
    if (op->placeholder) return NO;
    cd_sketch_volume(&s->stage[stage], &space, &reduce);
    const bool few = op->tiling ? space <= reduce && space <= w->sp->hw.num_cores * 16
                                : reduce > 1 && reduce > w->sp->hw.num_cores;
    if (!few || !op->n_raxis || cd_sketch_has_step(s, stage, CD_RECORD_STEP_CHW)) return NO;
    for (uint32_t inner = 0; inner < 2; inner++) {
        cd_sketch_state *c = copy(w, s);
        if (!c) return YES;
        const uint32_t at = fuse_reductions(c, stage);
        cd_sketch_split(c, stage, at, (const int64_t[]){1}, 1);
        cd_sketch_rfactor(w->sp, c, stage, at + inner, op->n_axis);
        if (c->failed || c->oom) continue;
        if (inner) { /* the factored axis innermost */
            const uint32_t n = c->stage[stage].n;
            uint32_t order[MAX_IT], m = 0;
            for (uint32_t k = 0; k < n && k < MAX_IT; k++)
                if (k != op->n_axis) order[m++] = k;
            order[m] = op->n_axis;
            cd_sketch_reorder(c, stage, order);
        }
        emit(w, c, (int32_t)stage - 1);
    }
    return YES;
}

/* Winograd's transforms: the axes of the constant matrices are unrolled, the others split in two.
 * TVM's operators name them in an attribute; they are those that index a constant matrix. */
static verdict const_rule(work *w, cd_sketch_state *s, uint32_t stage) {
    const cd_sketch_op *op = &s->prog->op[stage];
    if (!op->simplify_const) return NO;
    for (uint32_t k = 0; k < s->stage[stage].n && !s->oom; k++) {
        const cd_sketch_iter *it = &s->stage[stage].it[k];
        if (it->origin & op->unrolled) cd_sketch_annotate(s, stage, k, CD_SKETCH_UNROLL);
        else cd_sketch_split(s, stage, k++, (const int64_t[]){0}, 1);
    }
    uint32_t order[MAX_IT], m = 0;
    for (int8_t level = 0; level < 3; level++) /* outer parts, inner parts, whole */
        for (uint32_t k = 0; k < s->stage[stage].n && m < MAX_IT; k++)
            if (s->stage[stage].it[k].level == (level < 2 ? level : -1)) order[m++] = k;
    cd_sketch_reorder(s, stage, order);
    emit(w, s, (int32_t)stage - 1);
    return YES_AND_STOP;
}

/* On GPUs what such a transform reads is computed where its unrolled part begins. */
static verdict before_const_rule(work *w, cd_sketch_state *s, uint32_t stage) {
    const uint32_t *list;
    if (!w->has_const || !cd_sketch_can_inline(w->sp, s, stage) ||
        !cd_sketch_has_producers(s, stage))
        return NO;
    if (cd_sketch_consumers(s, stage, &list) != 1 || !s->prog->op[list[0]].simplify_const)
        return NO;
    for (uint32_t k = 1; k < s->stage[list[0]].n; k++) {
        if (s->stage[list[0]].it[k].ann != CD_SKETCH_UNROLL) continue;
        cd_sketch_compute_at(s, stage, list[0], k - 1);
        break;
    }
    emit(w, s, (int32_t)stage - 1);
    return YES_AND_STOP;
}

static verdict skip_rule(work *w, cd_sketch_state *s, uint32_t stage) {
    emit(w, s, (int32_t)stage - 1);
    return YES_AND_STOP;
}

/* The loop by which every reduce axis has been seen: the last of the outermost reduction tile. */
static uint32_t last_outer_reduce(const cd_sketch_state *s, uint32_t stage) {
    const cd_sketch_stage *st = &s->stage[stage];
    uint64_t seen = 0, all = 0;
    for (uint32_t k = 0; k < st->n; k++)
        if (cd_sketch_is_reduce(&st->it[k])) all |= st->it[k].origin;
    for (uint32_t k = 0; k < st->n; k++) {
        if (!cd_sketch_is_reduce(&st->it[k])) continue;
        seen |= st->it[k].origin;
        if (seen == all) return k;
    }
    return 0;
}

static bool is_read_by(const cd_sketch_program *p, uint32_t stage, uint32_t reader) {
    for (uint32_t k = p->first_out[stage]; k < p->first_out[stage + 1]; k++)
        if (p->out[k].reader == reader) return true;
    return false;
}

/* Does a stage that needs tiling read it directly? Only then its consumers have to be found. */
static bool is_read_by_tiled(const cd_sketch_program *p, uint32_t stage) {
    for (uint32_t k = p->first_out[stage]; k < p->first_out[stage + 1]; k++)
        if (p->op[p->out[k].reader].tiling) return true;
    return false;
}

/* A stage that a tiled consumer reads gets a shared copy per consumer, attached at the outermost
 * reduction tile. */
static verdict cache_read_rule(work *w, cd_sketch_state *s, uint32_t stage) {
    const uint32_t *list;
    if (!is_read_by_tiled(s->prog, stage)) return NO;
    const uint32_t n = cd_sketch_consumers(s, stage, &list);
    if (!n || !s->prog->op[list[0]].tiling || cd_sketch_has_cross_thread(s, list[0]) ||
        !is_read_by(s->prog, stage, list[0]))
        return NO;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t reader = list[k] + k;
        cd_sketch_cache_read(w->sp, s, stage, reader);
        if (s->failed || s->oom) break;
        cd_sketch_compute_at(s, stage + 1, reader + 1, last_outer_reduce(s, reader + 1));
    }
    emit(w, s, (int32_t)stage);
    return YES_AND_STOP;
}

/* Follow the consumer's split by threads, made here when there is none. */
static bool share_threads(work *w, cd_sketch_state *s, uint32_t stage, uint32_t target,
                          uint32_t fused, uint32_t common) {
    uint32_t split[CD_TE_MAX_AXIS];
    uint32_t n = cd_sketch_stage_splits(s, target, split, CD_TE_MAX_AXIS);
    if (!n) {
        const uint32_t last = s->stage[target].n - 1;
        cd_sketch_split(s, target, last, (const int64_t[]){w->sp->hw.warp_size}, 1);
        cd_sketch_annotate(s, target, last + 1, CD_SKETCH_THREAD_X);
        if (s->oom) return false;
        split[0] = s->n_step - 2;
        n = 1;
    }
    if (n != 1) return false;
    cd_sketch_follow_split(s, stage, fused, split[0], 1);
    cd_sketch_annotate(s, stage, fused + 1, CD_SKETCH_THREAD_X);
    cd_sketch_compute_at(s, stage, target, common - 1);
    return !s->oom;
}

/* Much to reduce, little to compute: the reduction is spread over the threads of a warp. */
static verdict cross_thread_rule(work *w, cd_sketch_state *s, uint32_t stage) {
    int64_t space, reduce;
    const cd_sketch_op *op = &s->prog->op[stage];
    if (op->placeholder || !op->n_raxis) return NO;
    cd_sketch_volume(&s->stage[stage], &space, &reduce);
    if (op->tiling ? space > w->sp->hw.max_threads_per_block || space >= reduce
                   : reduce <= 1 || reduce <= w->sp->hw.warp_size)
        return NO;
    if (cd_sketch_has_step(s, stage, CD_RECORD_STEP_CHW)) return NO;
    cd_sketch_state *c = copy(w, s);
    if (!c) return YES;
    const uint32_t fused = fuse_reductions(c, stage);
    const int32_t target = cd_sketch_single_consumer(c, stage);
    const uint32_t common = target < 0 ? 0 : cd_sketch_common_outer(c, stage, (uint32_t)target);
    if (common && !c->prog->op[target].tiling) {
        if (!share_threads(w, c, stage, (uint32_t)target, fused, common)) return YES;
    } else {
        cd_sketch_split(c, stage, fused, (const int64_t[]){w->sp->hw.warp_size}, 1);
        cd_sketch_annotate(c, stage, fused + 1, CD_SKETCH_THREAD_X);
    }
    emit(w, c, (int32_t)stage - 1);
    return YES;
}

/* ---- the work list ---- */

typedef verdict (*rule)(work *w, cd_sketch_state *s, uint32_t stage);
static const rule cpu_rules[] = {
    inline_rule, const_rule, rfactor_rule, cache_write_rule, tiling_with_fusion_rule,
    tiling_rule, skip_rule};
static const rule gpu_rules[] = {
    cache_read_rule,  before_const_rule,       inline_rule, const_rule, cross_thread_rule,
    cache_write_rule, tiling_with_fusion_rule, tiling_rule, skip_rule};

static void apply_rules(work *w, const item *it) {
    const rule *rules = w->sp->gpu ? gpu_rules : cpu_rules;
    const size_t n =
        w->sp->gpu ? sizeof gpu_rules / sizeof *gpu_rules : sizeof cpu_rules / sizeof *cpu_rules;
    for (size_t k = 0; k < n && !w->oom; k++)
        if (rules[k](w, it->s, (uint32_t)it->at) == YES_AND_STOP) break;
}

/* The split before an rfactor is chosen like any other tile. */
static bool reopen_rfactor(cd_sketch_state *s) {
    for (uint32_t k = 1; k < s->n_step; k++) {
        if (s->step[k].kind != CD_RECORD_STEP_RF || s->step[k - 1].kind != CD_RECORD_STEP_SP)
            continue;
        int32_t *open = cd_arena_zalloc(s->a, s->step[k - 1].n_list, sizeof *open);
        if (!open) return false;
        s->step[k - 1].list = open;
    }
    return true;
}

static bool is_open(const cd_record_step *t) {
    for (uint32_t k = 0; k < t->n_list && t->kind == CD_RECORD_STEP_SP; k++)
        if (!t->list[k]) return true;
    return false;
}

/* What the stage of step k is called after the later steps; add: those (n) that add a stage,
 * ascending. */
static uint32_t final_stage(const cd_sketch_state *s, uint32_t k, const uint32_t *add, uint32_t n) {
    int32_t id = s->step[k].stage;
    for (uint32_t j = 0; j < n; j++) {
        const cd_record_step *t = &s->step[add[j]];
        if (add[j] > k) id += t->kind == CD_RECORD_STEP_CHR ? id > t->stage : id >= t->stage;
    }
    return (uint32_t)id;
}

static bool find_open(cd_sketch_space *sp, const cd_sketch_state *s, cd_sketch_open_splits *out) {
    cd_sketch_open_split *p = CD_NEWN(&sp->arena, cd_sketch_open_split, s->n_step + 1);
    cd_sketch_follower *f = CD_NEWN(&sp->arena, cd_sketch_follower, s->n_step + 1);
    uint32_t *add = CD_NEWN(&sp->arena, uint32_t, s->n_step + 1), n_add = 0;
    if (!p || !f || !add) return false;
    for (uint32_t k = 0; k < s->n_step; k++)
        if (cd_sketch_adds_stage(s->step[k].kind)) add[n_add++] = k;
    *out = (cd_sketch_open_splits){.p = p, .follower = f};
    for (uint32_t k = 0; k < s->n_step; k++) {
        const cd_record_step *t = &s->step[k];
        if (sp->gpu && t->kind == CD_RECORD_STEP_FSP && t->i[2] >= 3)
            f[out->n_follower++] =
                (cd_sketch_follower){final_stage(s, k, add, n_add), (uint32_t)t->i[1]};
        /* by a warp */
        const bool fixed = sp->gpu && t->kind == CD_RECORD_STEP_SP && t->n_list == 1 && t->list[0];
        if (!is_open(t) && !fixed) continue;
        const cd_sketch_tile *tile =
            t->i[1] > 0 && !fixed ? cd_sketch_tile_get(sp, t->i[1], t->n_list) : NULL;
        if (t->i[1] > 0 && !fixed && !tile) return false;
        p[out->n++] =
            (cd_sketch_open_split){k, tile, fixed ? t->list[0] : 0, final_stage(s, k, add, n_add)};
    }
    return true;
}

/* A sketch is kept with its open splits, which are what a sampler will decide. */
bool cd_sketch_space_add(cd_sketch_space *sp, cd_sketch_state *s) {
    if (sp->n_sketch == sp->cap_sketch) {
        const uint32_t cap = sp->cap_sketch ? sp->cap_sketch * 2 : 16;
        cd_sketch_state **p = CD_NEWN(&sp->arena, cd_sketch_state *, cap);
        cd_sketch_open_splits *o = CD_NEWN(&sp->arena, cd_sketch_open_splits, cap);
        if (!p || !o) return false;
        if (sp->n_sketch) memcpy(p, sp->sketch, sp->n_sketch * sizeof(cd_sketch_state *));
        if (sp->n_sketch) memcpy(o, sp->open, sp->n_sketch * sizeof *o);
        sp->sketch = p;
        sp->open = o;
        sp->cap_sketch = cap;
    }
    if (!reopen_rfactor(s) || !find_open(sp, s, &sp->open[sp->n_sketch])) return false;
    sp->sketch[sp->n_sketch++] = s;
    return true;
}

#define MAX_SKETCH 2000 /* a generation that grows beyond belongs to no operator anyone tunes */

/* One generation after the other, as in TVM, so that sketches have TVM's order. */
cdmpp_status cd_sketch_generate(cd_sketch_space *sp, cdmpp_err *err) {
    work w = {.sp = sp};
    for (uint32_t d = 0; d < sp->dag->n_op; d++)
        w.has_const = w.has_const || sp->dag->op[d].simplify_const;
    const cd_sketch_program *start = cd_sketch_program_get(sp, NULL, 0);
    if (start) emit(&w, cd_sketch_start(&sp->arena, start), (int32_t)start->n - 1);
    if (!start) w.oom = true;
    while (w.n && !w.oom) {
        const item *now = w.list;
        const uint32_t n = w.n;
        if (n > MAX_SKETCH) return CD_FAIL(err, EUNSUPPORTED, "more than %d sketches", MAX_SKETCH);
        w.list = NULL;
        w.n = w.cap = 0;
        for (uint32_t k = 0; k < n && !w.oom; k++) {
            if (now[k].at >= 0) apply_rules(&w, &now[k]);
            else if (!cd_sketch_space_add(sp, now[k].s)) w.oom = true;
        }
    }
    return w.oom ? CD_FAIL(err, ENOMEM, "sketches") : CDMPP_OK;
}
