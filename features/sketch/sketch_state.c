/* Steps on states: what each does to loops and attach points, and the step itself for the record
 * (docs/internals/ansor.md, Steps). */
#include <stdio.h>
#include <string.h>

#include "features/sketch/sketch_internal.h"

static void *get(cd_sketch_state *s, size_t n, size_t size) {
    void *p = cd_arena_zalloc(s->a, n ? n : 1, size);
    if (!p) s->oom = true;
    return p;
}

static cd_sketch_iter *copy_its(cd_sketch_state *s, const cd_sketch_iter *it, uint32_t n,
                                uint32_t room) {
    cd_sketch_iter *p = get(s, n + room, sizeof *p);
    if (p && n) memcpy(p, it, n * sizeof *p);
    return p;
}

static void fresh_stage(cd_sketch_state *s, uint32_t k) {
    const cd_sketch_op *op = &s->prog->op[k];
    const uint32_t n = op->placeholder ? 0 : op->n_axis + op->n_raxis;
    s->stage[k] = (cd_sketch_stage){
        .it = copy_its(s, op->init, n, 0), .n = n, .at = CD_SKETCH_ROOT, .child = -1, .next = -1};
}

/* Room for n stages; what other states of the arena have there is not needed any more between
 * walks. */
static void make_marks(cd_sketch_state *s, uint32_t n) {
    cd_sketch_marks *m = s->marks ? s->marks : get(s, 1, sizeof *m);
    s->marks = m;
    if (!m || n <= m->cap) return;
    const uint32_t cap = n + n / 2 + 16;
    uint32_t *met = get(s, cap, sizeof *met), *value = get(s, cap, sizeof *value),
             *list = get(s, cap, sizeof *list);
    if (!s->oom) *m = (cd_sketch_marks){met, value, list, cap, 0};
}

cd_sketch_state *cd_sketch_start(cd_arena *a, const cd_sketch_program *prog) {
    cd_sketch_state *s = CD_NEW(a, cd_sketch_state);
    if (!s) return NULL;
    *s = (cd_sketch_state){.a = a, .prog = prog, .n_stage = prog->n};
    s->stage = get(s, prog->n, sizeof *s->stage);
    make_marks(s, prog->n);
    for (uint32_t k = 0; k < prog->n && !s->oom; k++) fresh_stage(s, k);
    return s->oom ? NULL : s;
}

/* A deep copy but for the operators, which never change. */
cd_sketch_state *cd_sketch_copy(cd_arena *a, const cd_sketch_state *from) {
    cd_sketch_state *s = CD_NEW(a, cd_sketch_state);
    if (!s) return NULL;
    *s = *from;
    s->a = a;
    s->cap_step = from->n_step + 16;
    s->step = get(s, s->cap_step, sizeof *s->step);
    s->stage = get(s, s->n_stage, sizeof *s->stage);
    if (a != from->a) s->marks = NULL; /* another thread's, perhaps */
    make_marks(s, s->n_stage);
    if (s->oom) return NULL;
    if (from->n_step) memcpy(s->step, from->step, from->n_step * sizeof *s->step);
    for (uint32_t k = 0; k < s->n_stage && !s->oom; k++) {
        s->stage[k] = from->stage[k];
        s->stage[k].it = copy_its(s, from->stage[k].it, from->stage[k].n, 0);
    }
    return s->oom ? NULL : s;
}

static cd_record_step *push(cd_sketch_state *s, cd_record_step_kind kind, uint32_t stage) {
    static cd_record_step nowhere; /* the state is lost */
    if (CD_GROW_IN(s->a, s->step, s->n_step, s->cap_step)) return s->oom = true, &nowhere;
    cd_record_step *t = &s->step[s->n_step++];
    *t = (cd_record_step){.kind = kind, .stage = (int32_t)stage};
    return t;
}

static int32_t *list_of(cd_sketch_state *s, cd_record_step *t, uint32_t n) {
    int32_t *p = get(s, n, sizeof *p);
    t->list = p;
    t->n_list = p ? n : 0;
    return p;
}

/* ---- attached stages ---- */

void cd_sketch_detach(cd_sketch_state *s, uint32_t stage) {
    cd_sketch_stage *st = &s->stage[stage];
    if (st->at != CD_SKETCH_AT) return;
    int32_t *at = &s->stage[st->at_stage].child;
    while (*at != (int32_t)stage) at = &s->stage[*at].next;
    *at = st->next;
    st->next = -1;
    st->at = CD_SKETCH_ROOT;
}

void cd_sketch_attach(cd_sketch_state *s, uint32_t stage, uint32_t target, uint32_t it) {
    cd_sketch_stage *st = &s->stage[stage];
    cd_sketch_detach(s, stage);
    int32_t *at = &s->stage[target].child;
    while (*at >= 0 && *at < (int32_t)stage) at = &s->stage[*at].next;
    st->next = *at;
    *at = (int32_t)stage;
    st->at = CD_SKETCH_AT;
    st->at_stage = (int32_t)target;
    st->at_it = (int32_t)it;
}

/* All lists again, after stages got other numbers. */
static void relink(cd_sketch_state *s) {
    for (uint32_t k = 0; k < s->n_stage; k++) s->stage[k].child = s->stage[k].next = -1;
    for (uint32_t k = s->n_stage; k-- > 0;) {
        cd_sketch_stage *st = &s->stage[k];
        if (st->at != CD_SKETCH_AT) continue;
        st->next = s->stage[st->at_stage].child;
        s->stage[st->at_stage].child = (int32_t)k;
    }
}

/* Iterators `from`.. of a stage get new numbers: those attached there move along. */
static void renumber(cd_sketch_state *s, uint32_t stage, int32_t first, int32_t last, int32_t to,
                     int32_t shift) {
    for (int32_t k = s->stage[stage].child; k >= 0; k = s->stage[k].next) {
        cd_sketch_stage *st = &s->stage[k];
        if (st->at_it >= first) st->at_it = st->at_it <= last ? to : st->at_it + shift;
    }
}

/* ---- split ---- */

/* Put the parts, outermost first, in the place of iterator `it`. */
static void put_parts(cd_sketch_state *s, uint32_t stage, uint32_t it, const int64_t *len,
                      uint32_t n) {
    cd_sketch_stage *st = &s->stage[stage];
    const cd_sketch_iter whole = st->it[it];
    cd_sketch_iter *p = copy_its(s, st->it, it, st->n - it + n);
    if (!p) return;
    int64_t rest = whole.ext; /* unknown outside of an open length */
    for (uint32_t k = n; k-- > 0;) {
        if (!len[k]) rest = -1;
        p[it + k + 1] = (cd_sketch_iter){.ext = rest < 0 ? -1 : len[k],
                                         .origin = whole.origin,
                                         .kind = whole.kind,
                                         .level = (int8_t)(k + 1)};
        if (rest >= 0) rest = rest / len[k] + (rest % len[k] != 0);
    }
    p[it] = (cd_sketch_iter){.ext = rest, .origin = whole.origin, .kind = whole.kind, .level = 0};
    memcpy(p + it + n + 1, st->it + it + 1, (st->n - it - 1) * sizeof *p);
    st->it = p;
    st->n += n;
    renumber(s, stage, (int32_t)it, (int32_t)it - 1, 0, (int32_t)n);
}

void cd_sketch_split(cd_sketch_state *s, uint32_t stage, uint32_t it, const int64_t *len,
                     uint32_t n) {
    if (s->oom) return;
    const int64_t ext = s->stage[stage].it[it].ext;
    cd_record_step *t = push(s, CD_RECORD_STEP_SP, stage);
    t->i[0] = (int32_t)it;
    t->i[1] = ext > 0 && ext <= INT32_MAX ? (int32_t)ext : 0;
    t->i[2] = 1;
    int32_t *list = list_of(s, t, n);
    for (uint32_t k = 0; k < n && list; k++) list[k] = (int32_t)len[k];
    put_parts(s, stage, it, len, n);
}

void cd_sketch_follow_split(cd_sketch_state *s, uint32_t stage, uint32_t it, uint32_t source,
                            uint32_t n_split) {
    if (s->oom) return;
    const cd_record_step *src = &s->step[source];
    int64_t len[CD_RECORD_STEP_MAX_LIST] = {0};
    int64_t rest = 1;
    /* 0 when open */
    for (uint32_t k = n_split - 1; k < src->n_list; k++)
        rest = cd_sketch_saturating_mul(rest, src->list[k]);
    for (uint32_t k = 0; k + 1 < n_split && k < src->n_list; k++) len[k] = src->list[k];
    len[n_split - 1] = rest;
    cd_record_step *t = push(s, CD_RECORD_STEP_FSP, stage);
    t->i[0] = (int32_t)it;
    t->i[1] = (int32_t)source;
    t->i[2] = (int32_t)n_split;
    put_parts(s, stage, it, len, n_split);
}

/* A source without that level fails the state: its fusion was not made by these rules. */
void cd_sketch_follow_fused_split(cd_sketch_state *s, uint32_t stage, uint32_t it,
                                  const uint32_t *source, uint32_t n, uint32_t level) {
    if (s->oom) return;
    int64_t len = 1;
    cd_record_step *t = push(s, CD_RECORD_STEP_FFSP, stage);
    t->i[0] = (int32_t)it;
    t->i[1] = (int32_t)level;
    t->i[2] = 1;
    int32_t *list = list_of(s, t, n);
    for (uint32_t k = 0; k < n && list; k++) {
        list[k] = (int32_t)source[k];
        if (s->step[source[k]].n_list <= level) s->failed = true;
        else len = cd_sketch_saturating_mul(len, s->step[source[k]].list[level]);
    }
    put_parts(s, stage, it, &len, 1);
}

/* ---- the others ---- */

uint32_t cd_sketch_fuse(cd_sketch_state *s, uint32_t stage, uint32_t first, uint32_t n) {
    if (s->oom) return first;
    cd_sketch_stage *st = &s->stage[stage];
    cd_record_step *t = push(s, CD_RECORD_STEP_FU, stage);
    int32_t *list = list_of(s, t, n);
    for (uint32_t k = 0; k < n && list; k++) list[k] = (int32_t)(first + k);
    if (!n) { /* of a stage without axes: one loop of extent 1 */
        st->it = copy_its(s, NULL, 0, 1);
        if (!st->it) return 0;
        st->it[0] = (cd_sketch_iter){.ext = 1, .kind = CD_SKETCH_SPECIAL, .level = -2};
        st->n = 1;
        return 0;
    }
    cd_sketch_iter f = {.ext = 1, .kind = st->it[first].kind, .level = -2};
    for (uint32_t k = first; k < first + n; k++) {
        f.ext =
            f.ext < 0 || st->it[k].ext < 0 ? -1 : cd_sketch_saturating_mul(f.ext, st->it[k].ext);
        f.origin |= st->it[k].origin;
        if (st->it[k].kind != f.kind) f.kind = CD_SKETCH_MIXED;
    }
    st->it[first] = f;
    memmove(st->it + first + 1, st->it + first + n, (st->n - first - n) * sizeof *st->it);
    st->n -= n - 1;
    renumber(s, stage, (int32_t)first, (int32_t)(first + n - 1), (int32_t)first, 1 - (int32_t)n);
    return first;
}

void cd_sketch_reorder(cd_sketch_state *s, uint32_t stage, const uint32_t *order) {
    if (s->oom) return;
    cd_sketch_stage *st = &s->stage[stage];
    cd_record_step *t = push(s, CD_RECORD_STEP_RE, stage);
    int32_t *list = list_of(s, t, st->n);
    cd_sketch_iter *p = copy_its(s, NULL, 0, st->n);
    if (!list || !p) return;
    for (uint32_t k = 0; k < st->n; k++) {
        list[k] = (int32_t)order[k];
        p[k] = st->it[order[k]];
    }
    st->it = p;
}

void cd_sketch_annotate(cd_sketch_state *s, uint32_t stage, uint32_t it, uint8_t ann) {
    if (s->oom) return;
    cd_record_step *t = push(s, CD_RECORD_STEP_AN, stage);
    t->i[0] = (int32_t)it;
    t->i[1] = ann;
    s->stage[stage].it[it].ann = ann;
}

static void sketch_pragma(cd_sketch_state *s, uint32_t stage, uint32_t it, int max_step) {
    if (s->oom) return;
    cd_record_step *t = push(s, CD_RECORD_STEP_PR, stage);
    char *text = get(s, 48, 1);
    if (!text) return;
    const int n = snprintf(text, 48, "auto_unroll_max_step$%d", max_step);
    t->i[0] = (int32_t)it;
    t->s = (cd_str){text, (size_t)n};
}

static void forget_extents(cd_sketch_stage *st) {
    for (uint32_t k = 0; k < st->n; k++) st->it[k].ext = -1;
}

void cd_sketch_compute_at(cd_sketch_state *s, uint32_t stage, uint32_t target, uint32_t it) {
    if (s->oom) return;
    cd_record_step *t = push(s, CD_RECORD_STEP_CA, stage);
    t->i[0] = (int32_t)target;
    t->i[1] = (int32_t)it;
    forget_extents(&s->stage[stage]);
    cd_sketch_attach(s, stage, target, it);
}

void cd_sketch_compute_inline(cd_sketch_state *s, uint32_t stage) {
    if (s->oom) return;
    push(s, CD_RECORD_STEP_CI, stage);
    cd_sketch_detach(s, stage);
    s->stage[stage].at = CD_SKETCH_INLINED;
}

static void sketch_compute_root(cd_sketch_state *s, uint32_t stage) {
    if (s->oom) return;
    push(s, CD_RECORD_STEP_CR, stage);
    forget_extents(&s->stage[stage]);
    cd_sketch_detach(s, stage);
    s->stage[stage].at = CD_SKETCH_ROOT;
}

/* ---- steps that add a stage ---- */

/* The steps that shape operators: CHR, CHW, and RF with the split and fusion before it. */
static uint32_t shaping(const cd_sketch_state *s, cd_record_step *out) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->n_step; k++) {
        const cd_record_step *t = &s->step[k];
        if (t->kind == CD_RECORD_STEP_RF) {
            if (k >= 2 && s->step[k - 2].kind == CD_RECORD_STEP_FU &&
                s->step[k - 2].stage == t->stage)
                out[n++] = s->step[k - 2];
            out[n++] = s->step[k - 1];
        }
        if (t->kind == CD_RECORD_STEP_RF || t->kind == CD_RECORD_STEP_CHR ||
            t->kind == CD_RECORD_STEP_CHW)
            out[n++] = *t;
    }
    return n;
}

/* Stage `at` is new; those behind it moved. The first `fresh` from it on start anew. */
static void grow(cd_sketch_space *sp, cd_sketch_state *s, uint32_t at, uint32_t first_fresh,
                 uint32_t fresh) {
    cd_record_step *shape = get(s, s->n_step * 3, sizeof *shape);
    if (!shape) return;
    const cd_sketch_program *p = cd_sketch_program_get(sp, shape, shaping(s, shape));
    cd_sketch_stage *stage = get(s, s->n_stage + 1, sizeof *stage);
    if (!p || p->n != s->n_stage + 1 || !stage) {
        s->failed = true;
        return;
    }
    for (uint32_t k = 0; k < s->n_stage; k++) {
        cd_sketch_stage *to = &stage[k < at ? k : k + 1];
        *to = s->stage[k];
        if (to->at == CD_SKETCH_AT && to->at_stage >= (int32_t)at) to->at_stage++;
    }
    s->stage = stage;
    s->n_stage++;
    s->prog = p;
    for (uint32_t k = first_fresh; k < first_fresh + fresh && !s->oom; k++) fresh_stage(s, k);
    relink(s);
    make_marks(s, s->n_stage);
}

static cd_str text_of(const char *t) { return (cd_str){t, strlen(t)}; }

void cd_sketch_cache_read(cd_sketch_space *sp, cd_sketch_state *s, uint32_t stage,
                          uint32_t reader) {
    if (s->oom) return;
    cd_record_step *t = push(s, CD_RECORD_STEP_CHR, stage);
    t->s = text_of("shared");
    int32_t *list = list_of(s, t, 1);
    if (list) list[0] = (int32_t)reader;
    grow(sp, s, stage + 1, stage + 1, 1);
}

void cd_sketch_cache_write(cd_sketch_space *sp, cd_sketch_state *s, uint32_t stage) {
    if (s->oom) return;
    push(s, CD_RECORD_STEP_CHW, stage)->s = text_of("local");
    grow(sp, s, stage, stage, 2);
}

void cd_sketch_rfactor(cd_sketch_space *sp, cd_sketch_state *s, uint32_t stage, uint32_t it,
                       uint32_t axis) {
    if (s->oom) return;
    cd_record_step *t = push(s, CD_RECORD_STEP_RF, stage);
    t->i[0] = (int32_t)it;
    t->i[1] = (int32_t)axis;
    const cd_sketch_stage was = s->stage[stage];
    grow(sp, s, stage, stage, 2);
    if (s->oom || s->failed) return;
    s->stage[stage + 1].at = was.at;
    s->stage[stage + 1].at_stage = was.at_stage;
    s->stage[stage + 1].at_it = was.at_it;
    relink(s);
}

/* Decisions that complete a sketch for a CPU, and those that GPUs share (docs/internals/ansor.md,
 * Sketches). Every one goes through cd_sketch_choose: its first options are those that Ansor's
 * fresh schedules are drawn from, the others what its mutations lead to. */

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
        sketch_compute_root(s, stage);
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
        sketch_pragma(s, k, 0,
                      (int)most[cd_sketch_choose(
                          w, &(cd_sketch_options){CD_SKETCH_CHOICE_UNROLL, k, most, n, n, 0, 0})]);
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
