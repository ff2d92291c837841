/* Decisions that complete a sketch for a CPU, and those that GPUs share (docs/internals/ansor.md,
 * Sketches). Every one goes through cd_sketch_choose: its first options are those that Ansor's
 * fresh schedules are drawn from, the others what its mutations lead to. */
#include <string.h>

#include "features/sketch/sketch_internal.h"

/* Splits of unknown extent get lengths of 1, as TVM's. */
static bool fill_tiles(cd_sketch_sampler *w, cd_sketch_state *s,
                       const cd_sketch_open_splits *open) {
    for (uint32_t k = 0; k < open->n; k++) {
        const cd_sketch_open_split *o = &open->p[k];
        cd_record_step *t = &s->step[o->step];
        int32_t *len = cd_arena_alloc(s->a, t->n_list, sizeof *len);
        if (!len) {
            s->oom = true;
            return false;
        }
        for (uint32_t j = 0; j < t->n_list; j++) len[j] = 1;
        if (o->fixed) {
            len[0] = cd_sketch_choose_length(w, o->stage, t->i[1], o->fixed);
        } else if (o->tile) {
            const uint32_t n = cd_sketch_tile_count(o->tile, t->n_list);
            cd_sketch_tile_lengths(
                o->tile, t->n_list,
                cd_sketch_choose(
                    w, &(cd_sketch_options){CD_SKETCH_CHOICE_TILE, o->step, NULL, n, n, 0, 0}),
                len);
        }
        t->list = len;
    }
    return true;
}

static cdmpp_status infer(cd_schedule *d, const cd_record *r) {
    CD_TRY(cd_schedule_apply(d, r, NULL));
    CD_TRY(cd_schedule_normalize(d, NULL));
    return cd_schedule_infer_bound(d, NULL);
}

/* The steps are applied to a real schedule: only bound inference knows what an attached stage
 * computes. Out of memory is no broken rule, so the state says which it was. */
bool cd_sketch_infer_bound(cd_sketch_sampler *w, cd_sketch_state *s) {
    cd_schedule *d = &w->sched;
    const cd_record r = {.n_step = s->n_step, .step = s->step};
    cd_schedule_start(d, w->space->dag);
    const cdmpp_status done = d->oom ? CDMPP_ENOMEM : infer(d, &r);
    if (d->oom || d->pool.oom || done == CDMPP_ENOMEM) s->oom = true;
    /* big: an expression was refused, and the rest is its consequence */
    if (s->oom || done || d->pool.big) return false;
    for (uint32_t k = 0; k < s->n_stage; k++) {
        const cd_schedule_stage *st = cd_schedule_stage_at(d, k);
        if (s->stage[k].at == CD_SKETCH_INLINED || s->prog->op[k].placeholder) continue;
        if (st->axes.n != s->stage[k].n) return false;
        for (uint32_t j = 0; j < st->axes.n; j++) {
            const cd_expr *e = d->iv[st->axes.p[j]].r_ext;
            s->stage[k].it[j].ext = e && e->op == CD_INT ? e->u.i : -1;
        }
    }
    return true;
}

/* ---- where stages are computed ---- */

typedef struct {
    uint32_t value[CD_RECORD_STEP_MAX_LIST + 2], n;
} places;

static void add_place(places *p, uint32_t stage, uint32_t it) {
    if (p->n < sizeof p->value / sizeof *p->value) p->value[p->n++] = cd_sketch_place(stage, it);
}

/* Loops of the consumer, then of what it is attached to. ones: those of extent 1 instead of all
 * others, where TVM's mutation may put a stage as well: it counts the loops of the finished
 * program, but means those before fusion. */
static void find_places(const cd_sketch_state *s, uint32_t target, bool ones, places *p) {
    const cd_sketch_stage *t = &s->stage[target];
    const bool attached = t->at == CD_SKETCH_AT, tiled = cd_sketch_is_tiled(s, target);
    bool in_reduce = false;
    for (uint32_t k = 0; k < t->n; k++) {
        const cd_sketch_iter *it = &t->it[k];
        if (it->kind == CD_SKETCH_REDUCE) in_reduce = true;
        if (it->kind == CD_SKETCH_REDUCE && !tiled) break;
        if (it->kind == CD_SKETCH_SPATIAL && in_reduce) break;
        if (it->ann == CD_SKETCH_UNROLL) break;
        if (it->ext == 1 && !ones) continue;
        if (attached && it->kind == CD_SKETCH_SPATIAL && it->level == 0) continue;
        if ((it->ext == 1) == ones) add_place(p, target, k);
        if (cd_sketch_has_attached(s, target, k)) break;
    }
    if (!attached) return;
    const uint32_t above = (uint32_t)t->at_stage;
    for (uint32_t k = 0; k < s->stage[above].n; k++) {
        const cd_sketch_iter *it = &s->stage[above].it[k];
        if (it->kind == CD_SKETCH_REDUCE || cd_sketch_has_attached(s, above, k) ||
            it->ann == CD_SKETCH_UNROLL)
            break;
        if ((it->ext == 1) == ones) add_place(p, above, k);
    }
}

/* Options: inline, root, loops of the consumer; behind them the loops of extent 1 that only
 * mutations reach. */
static void change_place(cd_sketch_sampler *w, cd_sketch_state *s, uint32_t stage) {
    places p = {.value = {CD_SKETCH_PLACE_INLINE, CD_SKETCH_PLACE_ROOT}, .n = 2};
    const int32_t target = cd_sketch_single_consumer(s, stage);
    if (target >= 0) find_places(s, (uint32_t)target, false, &p);
    const uint32_t n_draw = p.n;
    if (target >= 0) find_places(s, (uint32_t)target, true, &p);
    const uint32_t v = p.value[cd_sketch_choose(
        w, &(cd_sketch_options){CD_SKETCH_CHOICE_PLACE, stage, p.value, p.n, n_draw, 0, 0})];
    if (v == CD_SKETCH_PLACE_INLINE) {
        if (!cd_sketch_has_reduce(&s->stage[stage]) && s->stage[stage].at == CD_SKETCH_AT)
            cd_sketch_compute_inline(s, stage);
    } else if (v == CD_SKETCH_PLACE_ROOT) {
        cd_sketch_compute_root(s, stage);
    } else {
        cd_sketch_compute_at(s, stage, cd_sketch_place_stage(v), cd_sketch_place_loop(v));
    }
}

static bool change_places(cd_sketch_sampler *w, cd_sketch_state *s) {
    for (uint32_t k = s->n_stage; k-- > 0;) {
        const cd_sketch_op *op = &s->prog->op[k];
        if (op->placeholder || op->tiling || s->stage[k].at == CD_SKETCH_INLINED ||
            cd_sketch_is_tiled(s, k))
            continue;
        change_place(w, s, k);
    }
    return cd_sketch_infer_bound(w, s);
}

/* ---- parallel, unroll, vectorize ---- */

typedef struct {
    uint32_t value[CD_RECORD_STEP_MAX_LIST], n; /* numbers of loops */
} loops;

static void add_loops(loops *l, uint32_t n) {
    if (l->n < CD_RECORD_STEP_MAX_LIST) l->value[l->n++] = n;
}

/* Fresh schedules fuse `full` loops, mutated ones any number up to the first that others are
 * attached to; below an outer loop of extent 1 perhaps none: what is parallel twice is refused. */
static uint32_t choose_parallel(cd_sketch_sampler *w, const cd_sketch_state *s, uint32_t stage,
                                uint32_t first, uint32_t full, bool nested) {
    const cd_sketch_stage *st = &s->stage[stage];
    loops l = {.n = 0};
    add_loops(&l, full);
    if (nested) add_loops(&l, 0);
    for (uint32_t n = 1; first + n <= st->n; n++) {
        const cd_sketch_iter *it = &st->it[first + n - 1];
        if (cd_sketch_is_reduce(it) || it->ann) break;
        if (n != full) add_loops(&l, n);
        if (cd_sketch_has_attached(s, stage, first + n - 1)) break;
    }
    return l.value[cd_sketch_choose(
        w, &(cd_sketch_options){CD_SKETCH_CHOICE_PARALLEL, stage, l.value, l.n, 0, nested, 0})];
}

static void parallel_from(cd_sketch_sampler *w, cd_sketch_state *s, uint32_t stage, uint32_t first,
                          bool nested) {
    const cd_sketch_stage *st = &s->stage[stage];
    int64_t degree = 1;
    uint32_t full = 0, k = first;
    for (; k < st->n; k++) {
        if (cd_sketch_is_reduce(&st->it[k]) || st->it[k].ann) break;
        full++;
        degree = cd_sketch_saturating_mul(degree, st->it[k].ext);
        if (degree > w->space->hw.num_cores * 16 || cd_sketch_has_attached(s, stage, k)) break;
    }
    const uint32_t n = full ? choose_parallel(w, s, stage, first, full, nested) : 0;
    if (degree == 1 && k < st->n && cd_sketch_has_attached(s, stage, k)) {
        for (int32_t a = st->child; a >= 0; a = s->stage[a].next)
            if (s->stage[a].at_it == (int32_t)k) parallel_from(w, s, (uint32_t)a, 0, true);
        parallel_from(w, s, stage, k + 1, true);
    }
    if (!n) return;
    /* also of one loop, as TVM's mutation leaves it */
    if (full > 1) cd_sketch_fuse(s, stage, first, n);
    cd_sketch_annotate(s, stage, first, CD_SKETCH_PARALLEL);
}

static bool inside_parallel(const cd_sketch_state *s, uint32_t stage) {
    for (const cd_sketch_stage *st = &s->stage[stage]; st->at == CD_SKETCH_AT;
         st = &s->stage[st->at_stage])
        for (int32_t k = 0; k <= st->at_it; k++)
            if (s->stage[st->at_stage].it[k].ann == CD_SKETCH_PARALLEL) return true;
    return false;
}

/* False: a parallel loop inside of another. */
static bool parallelize(cd_sketch_sampler *w, cd_sketch_state *s) {
    for (uint32_t k = 0; k < s->n_stage; k++)
        if (s->stage[k].at == CD_SKETCH_ROOT && !s->prog->op[k].placeholder)
            parallel_from(w, s, k, 0, false);
    for (uint32_t k = 0; k < s->n_stage; k++) {
        uint32_t n = 0;
        for (uint32_t j = 0; j < s->stage[k].n; j++)
            n += s->stage[k].it[j].ann == CD_SKETCH_PARALLEL;
        if (n > 1 || (n && inside_parallel(s, k))) return false;
    }
    return true;
}

static void unroll(cd_sketch_sampler *w, cd_sketch_state *s) {
    static const uint32_t most[] = {0, 16, 64, 512, 1024};
    const uint32_t n = w->space->gpu ? 5 : 4;
    for (uint32_t k = 0; k < s->n_stage; k++) {
        if (s->stage[k].at == CD_SKETCH_INLINED || s->prog->op[k].placeholder ||
            !cd_sketch_has_reduce(&s->stage[k]))
            continue;
        cd_sketch_pragma(s, k, 0,
                         (int)most[cd_sketch_choose(w, &(cd_sketch_options){CD_SKETCH_CHOICE_UNROLL,
                                                                            k, most, n, n, 0, 0})]);
    }
}

/* Innermost loops that may become a vector; *fit: of those at most 16 points together. */
static uint32_t vector_loops(const cd_sketch_state *s, uint32_t stage, uint32_t *fit) {
    const cd_sketch_stage *st = &s->stage[stage];
    const bool tiled = cd_sketch_is_tiled(s, stage);
    int64_t product = 1;
    uint32_t n = 0;
    bool short_ = true;
    for (*fit = 0; n < st->n; n++) {
        const uint32_t k = st->n - 1 - n;
        if (cd_sketch_has_attached(s, stage, k) || cd_sketch_is_reduce(&st->it[k]) ||
            st->it[k].ann || (tiled && n))
            break;
        product = cd_sketch_saturating_mul(product, st->it[k].ext);
        if (product > CD_SKETCH_MAX_WIDE) break;
        short_ = short_ && product <= CD_SKETCH_MAX_VECTOR;
        if (short_) *fit = n + 1;
    }
    return n;
}

/* Fresh schedules: all that fit but one, as TVM draws. */
static void vectorize(cd_sketch_sampler *w, cd_sketch_state *s, uint32_t stage) {
    loops l = {.n = 0};
    uint32_t fit;
    const uint32_t n = vector_loops(s, stage, &fit), low = fit > 0, high = fit > 1 ? fit - 1 : fit;
    for (uint32_t k = low; k <= high; k++) add_loops(&l, k);
    const uint32_t n_draw = fit > 1 ? l.n : 0;
    for (uint32_t k = 0; k <= n; k++)
        if (k < low || k > high) add_loops(&l, k);
    const uint32_t take = l.value[cd_sketch_choose(
        w, &(cd_sketch_options){CD_SKETCH_CHOICE_VECTOR, stage, l.value, l.n, n_draw, 0, 0})];
    if (!take) return;
    const uint32_t first = s->stage[stage].n - take;
    if (take > 1) cd_sketch_fuse(s, stage, first, take);
    cd_sketch_annotate(s, stage, first, CD_SKETCH_VECTORIZE);
}

bool cd_sketch_complete(cd_sketch_sampler *w, cd_sketch_state *s, uint32_t sketch) {
    if (!fill_tiles(w, s, &w->space->open[sketch])) return false;
    if (w->space->gpu) {
        if (!cd_sketch_bind_threads(w, s, &w->space->open[sketch])) return false;
        unroll(w, s);
        return !s->failed;
    }
    if (!change_places(w, s) || !parallelize(w, s)) return false;
    unroll(w, s);
    for (uint32_t k = 0; k < s->n_stage; k++)
        if (s->stage[k].at != CD_SKETCH_INLINED && !s->prog->op[k].placeholder) vectorize(w, s, k);
    return !s->failed;
}
