/* Random choices that complete a sketch for a CPU (spec 8.2), and what GPUs share. */
#include <string.h>

#include "base/rng.h"
#include "features/sketchint.h"

enum { MAX_INNERMOST = 64, MAX_VECTOR = 16 };

uint64_t cd_sk_draw(cd_sampler *w, uint64_t n) { return cd_rng_at(w->key, w->drawn++) % n; }

/* ---- tile lengths: every ordered factorisation alike, the innermost at most 64 ---- */

static uint64_t ways(int64_t ext, uint32_t n) {
    uint64_t sum = 0;
    for (int64_t f = 1; f * f <= ext; f++) {
        if (ext % f) continue;
        const int64_t g = ext / f;
        if (n == 1) sum += (uint64_t)(f <= MAX_INNERMOST) + (g != f && g <= MAX_INNERMOST);
        else sum += ways(g, n - 1) + (g != f ? ways(f, n - 1) : 0);
    }
    return sum;
}

/* The next divisor after f, ascending; 0: none. Those above the root are quotients of those below. */
static int64_t next_divisor(int64_t ext, int64_t f) {
    int64_t i = f + 1;
    for (; i <= ext / i; i++)
        if (ext % i == 0) return i;
    for (i = i > ext / (f + 1) ? ext / (f + 1) : i; i >= 1; i--)
        if (ext % i == 0 && ext / i > f) return ext / i;
    return 0;
}

static void choose_lengths(cd_sampler *w, int64_t ext, int32_t *len, uint32_t n) {
    uint64_t pick = cd_sk_draw(w, ways(ext, n));
    for (uint32_t k = 0; k < n; k++) {
        for (int64_t f = 1; f; f = next_divisor(ext, f)) {
            const uint64_t m = k + 1 < n ? ways(ext / f, n - k - 1) : f <= MAX_INNERMOST;
            if (pick < m) {
                len[k] = (int32_t)f;
                ext /= f;
                break;
            }
            pick -= m;
        }
    }
}

static bool is_open(const cd_step *t) {
    for (uint32_t k = 0; k < t->n_list; k++)
        if (!t->list[k]) return true;
    return false;
}

static bool fill_tiles(cd_sampler *w, cd_sk_state *s) {
    for (uint32_t k = 0; k < s->n_step; k++) {
        cd_step *t = &s->step[k];
        if (t->kind != CD_STEP_SP || !is_open(t)) continue;
        int32_t *len = cd_arena_zalloc(s->a, t->n_list, sizeof *len);
        if (!len) {
            s->oom = true;
            return false;
        }
        for (uint32_t j = 0; j < t->n_list; j++) len[j] = 1;
        if (t->i[1] > 0) choose_lengths(w, t->i[1], len, t->n_list);
        t->list = len;
    }
    return true;
}

bool cd_sk_infer(cd_sampler *w, cd_sk_state *s) {
    cd_sched *d = &w->sched;
    const cd_record r = {.n_step = s->n_step, .step = s->step};
    cd_sched_start(d, w->space->dag);
    if (d->oom || cd_sched_apply(d, &r, NULL) || cd_sched_normalize(d, NULL) || cd_sched_infer_bound(d, NULL)) return false;
    for (uint32_t k = 0; k < s->n_stage; k++) {
        const cd_stage *st = cd_stage_at(d, k);
        if (s->stage[k].at == CD_SK_INLINED || s->prog->op[k].placeholder) continue;
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
    uint32_t stage, it;
} place;

static uint32_t places(const cd_sk_state *s, uint32_t stage, place *out, uint32_t cap) {
    const int32_t target = cd_sk_single(s, stage);
    if (target < 0) return 0;
    const cd_sk_stage *t = &s->stage[target];
    const bool attached = t->at == CD_SK_AT, tiled = cd_sk_is_tiled(s, (uint32_t)target);
    bool in_reduce = false;
    uint32_t n = 0;
    for (uint32_t k = 0; k < t->n && n < cap; k++) {
        const cd_sk_it *it = &t->it[k];
        if (it->kind == CD_SK_REDUCE) in_reduce = true;
        if (it->kind == CD_SK_REDUCE && !tiled) break;
        if (it->kind == CD_SK_SPATIAL && in_reduce) break;
        if (it->ann == CD_SK_UNROLL) break;
        if (it->ext == 1 || (attached && it->kind == CD_SK_SPATIAL && it->level == 0)) continue;
        out[n++] = (place){(uint32_t)target, k};
        if (cd_sk_has_attached(s, (uint32_t)target, k)) break;
    }
    if (!attached) return n;
    const uint32_t above = (uint32_t)t->at_stage;
    for (uint32_t k = 0; k < s->stage[above].n && n < cap; k++) {
        const cd_sk_it *it = &s->stage[above].it[k];
        if (it->kind == CD_SK_REDUCE || cd_sk_has_attached(s, above, k) || it->ann == CD_SK_UNROLL) break;
        if (it->ext != 1) out[n++] = (place){above, k};
    }
    return n;
}

static void change_place(cd_sampler *w, cd_sk_state *s, uint32_t stage) {
    place p[CD_STEP_MAX_LIST];
    const uint32_t n = places(s, stage, p, CD_STEP_MAX_LIST);
    const uint64_t pick = cd_sk_draw(w, n + 2);
    if (pick == 0) {
        if (!cd_sk_has_reduce(&s->stage[stage]) && s->stage[stage].at == CD_SK_AT) cd_sk_inline(s, stage);
    } else if (pick == 1) {
        cd_sk_root(s, stage);
    } else {
        cd_sk_at(s, stage, p[pick - 2].stage, p[pick - 2].it);
    }
}

static bool change_places(cd_sampler *w, cd_sk_state *s) {
    for (uint32_t k = s->n_stage; k-- > 0;) {
        const cd_sk_op *op = &s->prog->op[k];
        if (op->placeholder || op->tiling || s->stage[k].at == CD_SK_INLINED || cd_sk_is_tiled(s, k)) continue;
        change_place(w, s, k);
    }
    return cd_sk_infer(w, s);
}

/* ---- parallel, unroll, vectorize ---- */

static void parallel_from(cd_sampler *w, cd_sk_state *s, uint32_t stage, uint32_t first) {
    const cd_sk_stage *st = &s->stage[stage];
    int64_t degree = 1;
    uint32_t n = 0, k = first;
    for (; k < st->n; k++) {
        if (cd_sk_is_reduce(&st->it[k]) || st->it[k].ann) break;
        n++;
        degree = cd_sk_times(degree, st->it[k].ext);
        if (degree > w->space->hw.num_cores * 16 || cd_sk_has_attached(s, stage, k)) break;
    }
    if (degree == 1 && k < st->n && cd_sk_has_attached(s, stage, k)) {
        for (uint32_t a = 0; a < s->n_stage; a++)
            if (s->stage[a].at == CD_SK_AT && s->stage[a].at_stage == (int32_t)stage && s->stage[a].at_it == (int32_t)k)
                parallel_from(w, s, a, 0);
        parallel_from(w, s, stage, k + 1);
    }
    if (n > 1) cd_sk_fuse(s, stage, first, n);
    if (n) cd_sk_annotate(s, stage, first, CD_SK_PARALLEL);
}

static bool inside_parallel(const cd_sk_state *s, uint32_t stage) {
    for (const cd_sk_stage *st = &s->stage[stage]; st->at == CD_SK_AT; st = &s->stage[st->at_stage])
        for (int32_t k = 0; k <= st->at_it; k++)
            if (s->stage[st->at_stage].it[k].ann == CD_SK_PARALLEL) return true;
    return false;
}

/* False: a parallel loop inside of another. */
static bool parallelize(cd_sampler *w, cd_sk_state *s) {
    for (uint32_t k = 0; k < s->n_stage; k++)
        if (s->stage[k].at == CD_SK_ROOT && !s->prog->op[k].placeholder) parallel_from(w, s, k, 0);
    for (uint32_t k = 0; k < s->n_stage; k++) {
        uint32_t n = 0;
        for (uint32_t j = 0; j < s->stage[k].n; j++) n += s->stage[k].it[j].ann == CD_SK_PARALLEL;
        if (n > 1 || (n && inside_parallel(s, k))) return false;
    }
    return true;
}

static void unroll(cd_sampler *w, cd_sk_state *s) {
    static const int most[] = {0, 16, 64, 512, 1024};
    const uint64_t n = w->space->gpu ? 5 : 4;
    for (uint32_t k = 0; k < s->n_stage; k++) {
        if (s->stage[k].at == CD_SK_INLINED || s->prog->op[k].placeholder || !cd_sk_has_reduce(&s->stage[k])) continue;
        cd_sk_pragma(s, k, 0, most[cd_sk_draw(w, n)]);
    }
}

static void vectorize(cd_sampler *w, cd_sk_state *s, uint32_t stage) {
    const cd_sk_stage *st = &s->stage[stage];
    const bool tiled = cd_sk_is_tiled(s, stage);
    int64_t product = 1;
    uint32_t n = 0;
    for (; n < st->n; n++) {
        const uint32_t k = st->n - 1 - n;
        if (cd_sk_has_attached(s, stage, k) || cd_sk_is_reduce(&st->it[k]) || st->it[k].ann || (tiled && n)) break;
        product = cd_sk_times(product, st->it[k].ext);
        if (product > MAX_VECTOR) break;
    }
    if (n > 1) n = 1 + (uint32_t)cd_sk_draw(w, n - 1);
    if (!n) return;
    const uint32_t first = st->n - n;
    if (n > 1) cd_sk_fuse(s, stage, first, n);
    cd_sk_annotate(s, stage, first, CD_SK_VECTORIZE);
}

static bool complete(cd_sampler *w, cd_sk_state *s) {
    if (!fill_tiles(w, s)) return false;
    if (w->space->gpu) {
        if (!cd_sk_thread_bind(w, s)) return false;
        unroll(w, s);
        return !s->failed;
    }
    if (!change_places(w, s) || !parallelize(w, s)) return false;
    unroll(w, s);
    for (uint32_t k = 0; k < s->n_stage; k++)
        if (s->stage[k].at != CD_SK_INLINED && !s->prog->op[k].placeholder) vectorize(w, s, k);
    return !s->failed;
}

cdmpp_status cd_sampler_draw(cd_sampler *w, uint64_t i, cd_record *r, cdmpp_err *err) {
    const cd_sketches *sp = w->space;
    cd_arena_reset(&w->arena);
    w->key = cd_rng_at(w->seed, i);
    w->drawn = 0;
    const uint64_t k = cd_sk_draw(w, sp->n_sketch);
    cd_sk_state *s = cd_sk_copy(&w->arena, sp->sketch[k]);
    if (!s) return CD_FAIL(err, ENOMEM, "schedule");
    const bool good = complete(w, s);
    if (s->oom) return CD_FAIL(err, ENOMEM, "schedule");
    if (!good) return CD_FAIL(err, EREJECTED, "draw %llu of sketch %llu breaks a rule", (unsigned long long)i, (unsigned long long)k);
    r->step = s->step;
    r->n_step = s->n_step;
    return CDMPP_OK;
}
