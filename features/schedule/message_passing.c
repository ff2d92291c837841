/* Ranges down the relations (from axes to loops), indices and sets up (from loops to axes). The
 * names are TVM's: PassDownDomain, PassUpIndex, PassUpDomain (docs/internals/ansor.md, Bounds). */
#include "features/schedule/schedule.h"

#define BIN(op, a, b) cd_expr_bin(&s->pool, CD_##op, (a), (b))

static const cd_expr *zero(cd_schedule *s) { return cd_expr_int(&s->pool, 0); }
static bool is_zero(const cd_expr *e) { return cd_expr_is_int_value(e, 0); }

/* ---- down: ranges ---- */

typedef struct {
    cd_schedule *s;
    cd_schedule_stage *st;
    cd_analyzer *a;
    bool allow_missing;
    cdmpp_err *err;
} downer;

static void know(cd_schedule_iv *iv, const cd_expr *min, const cd_expr *ext) {
    iv->r_min = min;
    iv->r_ext = ext;
}

/* Give an iterator its range, or check that it agrees with the one it has. */
static cdmpp_status update(const downer *d, int32_t k, const cd_expr *min, const cd_expr *ext) {
    cd_schedule *s = d->s;
    cd_schedule_iv *iv = &s->iv[k];
    if (!iv->r_ext) {
        know(iv, min, ext);
        return CDMPP_OK;
    }
    const cd_expr *diff = BIN(SUB, ext, iv->r_ext);
    if (is_zero(iv->r_min) &&
        cd_simplify_prove(d->a, BIN(EQ, diff, cd_expr_new_int(&s->pool, diff->type, 0))))
        return CDMPP_OK;
    return CD_FAIL(d->err, EINVALID, "iterator %s gets two different extents",
                   cd_schedule_name(s, CD_VAR, (uint32_t)iv->var->u.i));
}

/* Does the iterator end in a loop that is bound to a thread? -> iv.threaded */
static void mark_threads(cd_schedule *s, const cd_schedule_stage *st) {
    for (uint32_t i = 0; i < st->leaf.n; i++)
        s->iv[st->leaf.p[i]].threaded = s->iv[st->leaf.p[i]].thread >= 0;
    for (uint32_t i = st->n_rel; i-- > 0;) {
        const cd_schedule_rel *r = &st->rel[i];
        if (r->kind == CD_SCHEDULE_REL_SPLIT)
            s->iv[r->parent].threaded = s->iv[r->outer].threaded || s->iv[r->inner].threaded;
        if (r->kind == CD_SCHEDULE_REL_FUSE)
            s->iv[r->outer].threaded = s->iv[r->inner].threaded = s->iv[r->made].threaded;
        if (r->kind == CD_SCHEDULE_REL_REBASE) s->iv[r->parent].threaded = s->iv[r->made].threaded;
    }
}

static const cd_expr *ceil_div(const downer *d, const cd_expr *a, const cd_expr *b) {
    cd_schedule *s = d->s;
    if (cd_expr_is_int(a) && cd_expr_is_int(b) && a->type == CD_I32 && b->type == CD_I32 &&
        b->u.i > 0)
        return cd_expr_int(&s->pool, cd_expr_floordiv(a->u.i + b->u.i - 1, b->u.i));
    const cd_expr *rest = BIN(FMOD, a, b);
    if (cd_simplify_prove(d->a, BIN(EQ, rest, cd_expr_new_int(&s->pool, rest->type, 0))))
        return cd_simplify_expr(d->a, BIN(FDIV, a, b));
    return cd_simplify_expr(
        d->a, BIN(FDIV, BIN(ADD, a, BIN(SUB, b, cd_expr_new_int(&s->pool, b->type, 1))), b));
}

/* A split part never exceeds its parent, unless threads need its exact length. */
static const cd_expr *tighten(const downer *d, bool threaded, const cd_expr *parent,
                              const cd_expr *x) {
    cd_schedule *s = d->s;
    if (threaded || d->allow_missing || is_zero(parent)) return x;
    if (cd_expr_is_int(parent) && cd_expr_is_int(x)) return parent->u.i < x->u.i ? parent : x;
    return cd_simplify_expr(d->a, cd_simplify_prove(d->a, BIN(LT, parent, x)) ? parent : x);
}

static cdmpp_status down_split(const downer *d, const cd_schedule_rel *r) {
    cd_schedule *s = d->s;
    const cd_expr *parent = s->iv[r->parent].r_ext,
                  *by = cd_expr_new_int(&s->pool, parent->type, r->factor);
    const int32_t exact = r->by_nparts ? r->outer : r->inner,
                  other = r->by_nparts ? r->inner : r->outer;
    CD_TRY(update(d, exact, zero(s), tighten(d, s->iv[exact].threaded, parent, by)));
    return update(d, other, zero(s), ceil_div(d, parent, by));
}

/* The product must fit the loop variable, an int32. */
static bool fits(const cd_expr *a, const cd_expr *b) {
    return !cd_expr_is_int(a) || !cd_expr_is_int(b) || !b->u.i || a->u.i <= INT32_MAX / b->u.i;
}

/* A missing range is an error, but for rfactor, which passes down a part of the axes only. */
static cdmpp_status down_one(const downer *d, const cd_schedule_rel *r) {
    cd_schedule *s = d->s;
    switch (r->kind) {
    case CD_SCHEDULE_REL_SPLIT:
        if (s->iv[r->parent].r_ext) return down_split(d, r);
        break;
    case CD_SCHEDULE_REL_FUSE:
        if (s->iv[r->outer].r_ext && s->iv[r->inner].r_ext) {
            if (!fits(s->iv[r->outer].r_ext, s->iv[r->inner].r_ext))
                return CD_FAIL(d->err, EUNSUPPORTED, "a fused loop of more than %d iterations",
                               INT32_MAX);
            know(&s->iv[r->made], zero(s), BIN(MUL, s->iv[r->outer].r_ext, s->iv[r->inner].r_ext));
            return CDMPP_OK;
        }
        break;
    case CD_SCHEDULE_REL_REBASE:
        if (s->iv[r->parent].r_ext) return update(d, r->made, zero(s), s->iv[r->parent].r_ext);
        break;
    case CD_SCHEDULE_REL_SINGLETON: return update(d, r->made, zero(s), cd_expr_int(&s->pool, 1));
    }
    return d->allow_missing ? CDMPP_OK : CD_FAIL(d->err, EINVALID, "iterator without a range");
}

cdmpp_status cd_schedule_pass_down_domain(cd_schedule *s, cd_schedule_stage *st, cd_analyzer *a,
                                          bool allow_missing, cdmpp_err *err) {
    const downer d = {s, st, a, allow_missing, err};
    mark_threads(s, st);
    for (uint32_t i = 0; i < st->n_rel; i++) CD_TRY(down_one(&d, &st->rel[i]));
    for (uint32_t i = 0; i < st->leaf.n; i++) {
        const cd_schedule_iv *iv = &s->iv[st->leaf.p[i]];
        if (iv->thread < 0 || (allow_missing && !iv->r_ext)) continue;
        if (!iv->r_ext) return CD_FAIL(err, EINVALID, "thread-bound iterator without a range");
        CD_TRY(update(&d, iv->thread, iv->r_min, iv->r_ext));
    }
    return CDMPP_OK;
}

/* ---- up: indices ---- */

static const cd_expr *plus_min(cd_schedule *s, const cd_expr *v, const cd_expr *min) {
    return is_zero(min) ? v : BIN(ADD, v, min);
}

static void up_fuse(cd_schedule *s, const cd_schedule_rel *r) {
    cd_schedule_iv *o = &s->iv[r->outer], *i = &s->iv[r->inner];
    const cd_expr *v = s->iv[r->made].val;
    o->val = cd_expr_cast(&s->pool, o->var->type, plus_min(s, BIN(FDIV, v, i->r_ext), o->r_min));
    i->val = cd_expr_cast(&s->pool, i->var->type, plus_min(s, BIN(FMOD, v, i->r_ext), i->r_min));
}

/* A missing value is simply not passed on. */
void cd_schedule_pass_up_index(cd_schedule *s, cd_schedule_stage *st) {
    for (uint32_t k = st->n_rel; k-- > 0;) {
        const cd_schedule_rel *r = &st->rel[k];
        if (r->kind == CD_SCHEDULE_REL_SPLIT) {
            const cd_schedule_iv *o = &s->iv[r->outer], *i = &s->iv[r->inner];
            if (o->val && i->val)
                s->iv[r->parent].val = plus_min(s, BIN(ADD, i->val, BIN(MUL, o->val, i->r_ext)),
                                                s->iv[r->parent].r_min);
        } else if (r->kind == CD_SCHEDULE_REL_FUSE) {
            if (s->iv[r->made].val) up_fuse(s, r);
        } else if (r->kind == CD_SCHEDULE_REL_REBASE) {
            if (s->iv[r->made].val)
                s->iv[r->parent].val = plus_min(s, s->iv[r->made].val, s->iv[r->parent].r_min);
        }
    }
}

/* ---- up: sets ---- */

static cd_intset set_of(const cd_schedule_iv *iv) { return (cd_intset){iv->set_lo, iv->set_hi}; }
static void put_set(cd_schedule_iv *iv, cd_intset x) { iv->set_lo = x.lo, iv->set_hi = x.hi; }

static bool is_full(cd_schedule *s, const cd_schedule_iv *iv) {
    return cd_intset_matches(&s->pool, cd_simplify_fresh_analyzer(s->simp), set_of(iv), iv->r_min,
                             iv->r_ext);
}

static cd_intset eval2(cd_schedule *s, const cd_expr *e, const cd_schedule_iv *x,
                       const cd_schedule_iv *y) {
    const cd_intset_var dom[] = {{x->var, set_of(x)},
                                 {y ? y->var : NULL, y ? set_of(y) : set_of(x)}};
    cd_analyzer *fresh = cd_simplify_fresh_analyzer(s->simp);
    cd_intset_env env = {
        .dom = dom, .n = y ? 2 : 1, .ana = fresh, .fresh = fresh, .pool = &s->pool};
    return cd_intset_eval(&env, e);
}

static void updom_split(cd_schedule *s, const cd_schedule_rel *r) {
    cd_schedule_iv *p = &s->iv[r->parent];
    const cd_schedule_iv *o = &s->iv[r->outer], *i = &s->iv[r->inner];
    if (is_full(s, o) && is_full(s, i)) {
        put_set(p, cd_intset_range(&s->pool, p->r_min, p->r_ext));
        return;
    }
    put_set(p, eval2(s, BIN(ADD, BIN(ADD, BIN(MUL, o->var, i->r_ext), i->var), p->r_min), o, i));
}

/* An interval of a fused iterator: the outer is an interval too, the inner only
 * when its length divides both the interval's start and the inner extent. */
static void updom_fuse_range(cd_schedule *s, cd_schedule_iv *o, cd_schedule_iv *i, cd_intset f) {
    cd_analyzer *fresh = cd_simplify_fresh_analyzer(s->simp);
    if (!cd_intset_finite(f)) {
        put_set(o, cd_intset_all());
        put_set(i, cd_intset_range(&s->pool, i->r_min, i->r_ext));
        return;
    }
    const cd_expr *e = i->r_ext,
                  *len = BIN(ADD, BIN(SUB, f.hi, f.lo), cd_expr_new_int(&s->pool, f.hi->type, 1));
    put_set(o, (cd_intset){BIN(ADD, o->r_min, BIN(FDIV, f.lo, e)),
                           BIN(ADD, o->r_min, BIN(FDIV, f.hi, e))});
    if (is_zero(cd_simplify_expr(fresh, BIN(FMOD, e, len))) &&
        is_zero(cd_simplify_expr(fresh, BIN(FMOD, f.lo, len))))
        put_set(i, (cd_intset){BIN(ADD, i->r_min, BIN(FMOD, f.lo, e)),
                               BIN(ADD, i->r_min, BIN(FMOD, f.hi, e))});
    else put_set(i, cd_intset_range(&s->pool, i->r_min, i->r_ext));
}

static void updom_fuse(cd_schedule *s, const cd_schedule_rel *r) {
    cd_schedule_iv *o = &s->iv[r->outer], *i = &s->iv[r->inner];
    const cd_schedule_iv *f = &s->iv[r->made];
    if (is_full(s, f)) {
        put_set(o, cd_intset_range(&s->pool, o->r_min, o->r_ext));
        put_set(i, cd_intset_range(&s->pool, i->r_min, i->r_ext));
    } else if (cd_intset_is_point(&s->pool, cd_simplify_fresh_analyzer(s->simp), set_of(f))) {
        put_set(o, cd_intset_point(plus_min(s, BIN(FDIV, f->set_lo, i->r_ext), o->r_min)));
        put_set(i, cd_intset_point(plus_min(s, BIN(FMOD, f->set_lo, i->r_ext), i->r_min)));
    } else {
        updom_fuse_range(s, o, i, set_of(f));
    }
}

void cd_schedule_pass_up_domain(cd_schedule *s, cd_schedule_stage *st) {
    for (uint32_t k = st->n_rel; k-- > 0;) {
        const cd_schedule_rel *r = &st->rel[k];
        const int32_t made = r->kind == CD_SCHEDULE_REL_SPLIT ? r->outer : r->made;
        /* Parts that are no loops any more have no set; nor has then what they came from. */
        if (!s->iv[made].set_lo || (r->kind == CD_SCHEDULE_REL_SPLIT && !s->iv[r->inner].set_lo))
            continue;
        if (r->kind == CD_SCHEDULE_REL_SPLIT) updom_split(s, r);
        if (r->kind == CD_SCHEDULE_REL_FUSE) updom_fuse(s, r);
        if (r->kind != CD_SCHEDULE_REL_REBASE) continue;
        cd_schedule_iv *p = &s->iv[r->parent];
        const cd_schedule_iv *m = &s->iv[r->made];
        if (is_full(s, m)) put_set(p, cd_intset_range(&s->pool, p->r_min, p->r_ext));
        else put_set(p, eval2(s, BIN(ADD, m->var, p->r_min), m, NULL));
    }
}
