/* Applies the steps of a record, one function a kind of step. Arguments come from outside: stages,
 * iterators and source steps are checked against the program as it is at that moment
 * (docs/internals/ansor.md, Steps). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "features/schedule/schedule.h"

typedef struct {
    cd_schedule *s;
    const cd_record *r;
    const cd_record_step *t;
    cd_schedule_stage *st; /* the step's stage */
    cdmpp_err *err;
} stepper;

#define BAD(x, ...) CD_FAIL((x)->err, EINVALID, __VA_ARGS__)

/* The iterator that the step names by its position. */
static cdmpp_status axis_at(const stepper *x, int32_t i, int32_t *iv) {
    if (i < 0 || (uint32_t)i >= x->st->axes.n)
        return BAD(x, "iterator %d of stage %d, which has %u", i, x->t->stage, x->st->axes.n);
    *iv = x->st->axes.p[i];
    return CDMPP_OK;
}

/* Replace one leaf by two or more. */
static void put_leaves(cd_schedule *s, cd_schedule_ivec *v, int32_t at, const int32_t *iv,
                       uint32_t n) {
    v->p[at] = iv[0];
    for (uint32_t i = 1; i < n; i++) cd_schedule_ivec_insert(s, v, (uint32_t)at + i, iv[i]);
}

/* Two new iterators in place of one loop, and the relation between the three. */
static cdmpp_status split_once(const stepper *x, int32_t parent, int64_t factor, bool nparts,
                               int32_t *outer, int32_t *inner) {
    cd_schedule *s = x->s;
    const int32_t at = cd_schedule_ivec_find(&x->st->leaf, parent);
    if (factor < 1) return BAD(x, "split length %lld", (long long)factor);
    if (at < 0) return BAD(x, "split of an iterator that is no loop of its stage");
    const uint8_t type = s->iv[parent].type;
    *outer = cd_schedule_iv_new(s, type, CD_SCHEDULE_NAME_OUTER, parent, -1);
    *inner = cd_schedule_iv_new(s, type, CD_SCHEDULE_NAME_INNER, parent, -1);
    cd_schedule_rel *r = cd_schedule_rel_push(s, x->st);
    r->kind = CD_SCHEDULE_REL_SPLIT;
    r->parent = parent;
    r->outer = *outer;
    r->inner = *inner;
    r->factor = factor;
    r->by_nparts = nparts;
    cd_schedule_ivec_push(s, &x->st->all, *outer);
    cd_schedule_ivec_push(s, &x->st->all, *inner);
    put_leaves(s, &x->st->leaf, at, (const int32_t[]){*outer, *inner}, 2);
    return s->oom ? CD_FAIL(x->err, ENOMEM, "split") : CDMPP_OK;
}

/* n lengths make n+1 iterators; from the inside when i2o, else from the outside. */
static cdmpp_status split(const stepper *x, int32_t it, const int64_t *len, uint32_t n, bool i2o) {
    int32_t rest, made[CD_RECORD_STEP_MAX_LIST + 1];
    CD_TRY(axis_at(x, it, &rest));
    if (x->st->axes.n + n > CD_RECORD_STEP_MAX_LIST)
        return CD_FAIL(x->err, EUNSUPPORTED, "more than %d iterators", CD_RECORD_STEP_MAX_LIST);
    for (uint32_t k = 0; k < n; k++) {
        if (i2o) CD_TRY(split_once(x, rest, len[n - 1 - k], false, &rest, &made[n - k]));
        else CD_TRY(split_once(x, rest, len[k], true, &made[k], &rest));
    }
    made[i2o ? 0 : n] = rest;
    put_leaves(x->s, &x->st->axes, it, made, n + 1);
    return CDMPP_OK;
}

/* Is the extent that the step notes not that of the axis? Only a declared axis has one; 0 notes
 * none. */
static bool notes_another(const stepper *x) {
    const int32_t it = x->t->i[0];
    if (it < 0 || (uint32_t)it >= x->st->axes.n) return false;
    const cd_expr *e = x->s->iv[x->st->axes.p[it]].extent;
    return x->t->i[1] && e && cd_expr_is_int(e) && e->u.i != x->t->i[1];
}

static cdmpp_status step_sp(const stepper *x) {
    x->s->n_foreign += notes_another(x);
    int64_t len[CD_RECORD_STEP_MAX_LIST];
    for (uint32_t k = 0; k < x->t->n_list; k++) len[k] = x->t->list[k];
    return split(x, x->t->i[0], len, x->t->n_list, x->t->i[2] != 0);
}

/* An earlier SP step, named by its position in the record. */
static cdmpp_status source_split(const stepper *x, int32_t at, const cd_record_step **out) {
    if (at < 0 || x->r->step + at >= x->t || x->r->step[at].kind != CD_RECORD_STEP_SP)
        return BAD(x, "step %d is no earlier SP step", at);
    *out = &x->r->step[at];
    return CDMPP_OK;
}

static cdmpp_status times(const stepper *x, int64_t *p, int64_t v) {
    if (v < 1 || *p > INT32_MAX / v) return BAD(x, "split length out of range");
    *p *= v;
    return CDMPP_OK;
}

static cdmpp_status step_fsp(const stepper *x) {
    const cd_record_step *src;
    CD_TRY(source_split(x, x->t->i[1], &src));
    const int32_t n = x->t->i[2];
    if (n < 1 || n > CD_RECORD_STEP_MAX_LIST || (uint32_t)n - 1 > src->n_list)
        return BAD(x, "n_split %d from a step of %u lengths", n, src->n_list);
    int64_t len[CD_RECORD_STEP_MAX_LIST];
    for (int32_t k = 0; k + 1 < n; k++) len[k] = src->list[k];
    len[n - 1] = 1;
    for (uint32_t k = (uint32_t)n - 1; k < src->n_list; k++)
        CD_TRY(times(x, &len[n - 1], src->list[k]));
    return split(x, x->t->i[0], len, (uint32_t)n, true);
}

static cdmpp_status step_ffsp(const stepper *x) {
    const int32_t level = x->t->i[1];
    int64_t len = 1;
    for (uint32_t k = 0; k < x->t->n_list; k++) {
        const cd_record_step *src;
        CD_TRY(source_split(x, x->t->list[k], &src));
        if (level < 0 || (uint32_t)level >= src->n_list)
            return BAD(x, "level %d of a step of %u lengths", level, src->n_list);
        CD_TRY(times(x, &len, src->list[level]));
    }
    return split(x, x->t->i[0], &len, 1, x->t->i[2] != 0);
}

/* Neighbours only, as in TVM. The type is the larger of both: a reduction stays one. */
static cdmpp_status fuse_two(const stepper *x, int32_t a, int32_t b, int32_t *fused) {
    cd_schedule *s = x->s;
    const int32_t at = cd_schedule_ivec_find(&x->st->leaf, a);
    if (at < 0 || (uint32_t)at + 1 >= x->st->leaf.n || x->st->leaf.p[at + 1] != b)
        return BAD(x, "fused iterators are not neighbours");
    const uint8_t ta = s->iv[a].type, tb = s->iv[b].type;
    *fused = cd_schedule_iv_new(s, ta > tb ? ta : tb, CD_SCHEDULE_NAME_FUSED, a, b);
    cd_schedule_rel *r = cd_schedule_rel_push(s, x->st);
    r->kind = CD_SCHEDULE_REL_FUSE;
    r->outer = a;
    r->inner = b;
    r->made = *fused;
    cd_schedule_ivec_push(s, &x->st->all, *fused);
    cd_schedule_ivec_remove(&x->st->leaf, (uint32_t)at, 1);
    x->st->leaf.p[at] = *fused;
    return CDMPP_OK;
}

/* Fusing nothing: a stage without axes gets one loop of extent 1. */
static void fuse_none(const stepper *x) {
    cd_schedule *s = x->s;
    const int32_t iv =
        cd_schedule_iv_root(s, CD_SCHEDULE_IV_SPATIAL, cd_expr_fresh_var(&s->pool, CD_I32),
                            cd_expr_int(&s->pool, 0), cd_expr_int(&s->pool, 1), "singleton");
    cd_schedule_rel *r = cd_schedule_rel_push(s, x->st);
    r->kind = CD_SCHEDULE_REL_SINGLETON;
    r->made = iv;
    cd_schedule_ivec_push(s, &x->st->all, iv);
    cd_schedule_ivec_insert(s, &x->st->leaf, 0, iv);
    x->st->axes.n = 0;
    cd_schedule_ivec_push(s, &x->st->axes, iv);
}

/* From the left in pairs, so that names and relations are TVM's. */
static cdmpp_status step_fu(const stepper *x) {
    const cd_record_step *t = x->t;
    if (t->n_list == 0) {
        fuse_none(x);
        return CDMPP_OK;
    }
    int32_t iv, next;
    CD_TRY(axis_at(x, t->list[0], &iv));
    for (uint32_t k = 1; k < t->n_list; k++) {
        if (t->list[k] != t->list[0] + (int32_t)k)
            return BAD(x, "fused iterators are not consecutive");
        CD_TRY(axis_at(x, t->list[k], &next));
        CD_TRY(fuse_two(x, iv, next, &iv));
    }
    cd_schedule_ivec_remove(&x->st->axes, (uint32_t)t->list[0], t->n_list - 1);
    x->st->axes.p[t->list[0]] = iv;
    return CDMPP_OK;
}

static cdmpp_status step_re(const stepper *x) {
    const cd_record_step *t = x->t;
    cd_schedule_stage *st = x->st;
    if (t->n_list != st->axes.n)
        return BAD(x, "new order of %u iterators, the stage has %u", t->n_list, st->axes.n);
    int32_t *order = cd_arena_alloc(&x->s->arena, st->axes.n, sizeof *order);
    if (!order) return CD_FAIL(x->err, ENOMEM, "reorder");
    for (uint32_t k = 0; k < t->n_list; k++) {
        CD_TRY(axis_at(x, t->list[k], &order[k]));
        for (uint32_t j = 0; j < k; j++)
            if (order[j] == order[k]) return BAD(x, "iterator %d is named twice", t->list[k]);
    }
    /* The leaves that take part keep their places as a set. */
    uint32_t k = 0;
    for (uint32_t i = 0; i < st->leaf.n && k < st->axes.n; i++)
        if (cd_schedule_ivec_find(&st->axes, st->leaf.p[i]) >= 0) st->leaf.p[i] = order[k++];
    if (st->axes.n) memcpy(st->axes.p, order, st->axes.n * sizeof *order);
    return CDMPP_OK;
}

/* Annotations 4 to 10 bind the loop to a thread axis of its own, also where the axis has the same
 * name as another. */
static cdmpp_status step_an(const stepper *x) {
    static const uint8_t loop[] = {CD_LOOP_SERIAL, CD_LOOP_UNROLLED, CD_LOOP_VECTORIZED,
                                   CD_LOOP_PARALLEL};
    cd_schedule *s = x->s;
    const int32_t a = x->t->i[1];
    int32_t iv;
    CD_TRY(axis_at(x, x->t->i[0], &iv));
    if (a < 0 || a > 10) return BAD(x, "annotation %d", a);
    if (s->iv[iv].loop != CD_LOOP_SERIAL || s->iv[iv].thread >= 0)
        return BAD(x, "iterator is annotated already");
    if (a < 4) {
        s->iv[iv].loop = loop[a];
        return CDMPP_OK;
    }
    const int32_t thread =
        cd_schedule_iv_new(s, CD_SCHEDULE_IV_THREAD, CD_SCHEDULE_NAME_TEXT, -1, -1);
    s->iv[thread].tag = (uint8_t)(a - 4);
    s->iv[thread].text = cd_ast_tag_name((cd_ast_tag)(a - 4));
    s->iv[iv].thread = thread;
    return CDMPP_OK;
}

static cdmpp_status step_pr(const stepper *x) {
    static const char unroll[] = "auto_unroll_max_step$";
    const size_t n = sizeof unroll - 1;
    const cd_str v = x->t->s;
    if (cd_str_is(v, "debug_skip_region")) return CDMPP_OK;
    if (v.n <= n || memcmp(v.p, unroll, n) != 0)
        return CD_FAIL(x->err, EUNSUPPORTED, "pragma \"%.*s\"", cd_str_shown(v, 64), v.p);
    long steps = 0;
    for (size_t k = n; k < v.n; k++) {
        if (v.p[k] < '0' || v.p[k] > '9' || steps > INT32_MAX / 10 - 9)
            return BAD(x, "number of unroll steps");
        steps = steps * 10 + (v.p[k] - '0');
    }
    /* as TVM: silently nothing */
    if (x->t->i[0] < 0 || (uint32_t)x->t->i[0] >= x->st->axes.n) return CDMPP_OK;
    cd_schedule_pragma *p = CD_NEW(&x->s->arena, cd_schedule_pragma);
    cd_schedule_iv *iv = &x->s->iv[x->st->axes.p[x->t->i[0]]];
    if (!p) return CD_FAIL(x->err, ENOMEM, "pragma");
    p->value = (int32_t)steps;
    if (iv->pragma) iv->last_pragma->next = p;
    else iv->pragma = p;
    iv->last_pragma = p;
    return CDMPP_OK;
}

static cdmpp_status step_ca(const stepper *x) {
    cd_schedule *s = x->s;
    const int32_t to = x->t->i[0], it = x->t->i[1];
    if (to < 0 || (uint32_t)to >= s->order.n || to == x->t->stage)
        return BAD(x, "target stage %d", to);
    const cd_schedule_stage *target = cd_schedule_stage_at(s, (uint32_t)to);
    if (it < 0 || (uint32_t)it >= target->axes.n)
        return BAD(x, "iterator %d of stage %d, which has %u", it, to, target->axes.n);
    if (cd_schedule_ivec_find(&target->leaf, target->axes.p[it]) < 0)
        return BAD(x, "target iterator is no loop of its stage");
    x->st->attach = CD_SCHEDULE_AT_SCOPE;
    x->st->at_stage = s->order.p[to];
    x->st->at_iv = target->axes.p[it];
    return CDMPP_OK;
}

static cdmpp_status step_ci(const stepper *x) {
    const cd_schedule_op *op = cd_schedule_stage_op(x->s, x->st);
    if (op->is_placeholder || op->red || op->n_out != 1 || x->st->is_output)
        return BAD(x, "stage %d cannot be inlined", x->t->stage);
    x->st->attach = CD_SCHEDULE_AT_INLINE;
    return CDMPP_OK;
}

static cdmpp_status step_cr(const stepper *x) {
    x->st->attach = CD_SCHEDULE_AT_ROOT;
    return CDMPP_OK;
}

static cdmpp_status step_sa(const stepper *x) { /* alignment has no effect on features */
    int32_t iv;
    return axis_at(x, x->t->i[0], &iv);
}

static cdmpp_status scope_of(const stepper *x, const char **out) {
    *out = cd_str_dup(&x->s->arena, x->t->s);
    if (!*out) return CD_FAIL(x->err, ENOMEM, "scope");
    if (cd_schedule_scope_rank(*out) < 0) return BAD(x, "memory scope \"%.32s\"", *out);
    return CDMPP_OK;
}

static cdmpp_status step_chr(const stepper *x) {
    const char *scope;
    CD_TRY(scope_of(x, &scope));
    return cd_cache_stage_read(x->s, (uint32_t)x->t->stage, scope, x->t, x->err);
}

static cdmpp_status step_chw(const stepper *x) {
    const char *scope;
    CD_TRY(scope_of(x, &scope));
    return cd_cache_stage_write(x->s, (uint32_t)x->t->stage, scope, x->err);
}

static cdmpp_status step_rf(const stepper *x) {
    return cd_schedule_rfactor(x->s, (uint32_t)x->t->stage, x->t->i[0], x->t->i[1], x->err);
}

static cdmpp_status (*const apply[CD_RECORD_STEP_COUNT])(const stepper *) = {
    [CD_RECORD_STEP_AN] = step_an,     [CD_RECORD_STEP_FU] = step_fu,
    [CD_RECORD_STEP_PR] = step_pr,     [CD_RECORD_STEP_RE] = step_re,
    [CD_RECORD_STEP_SP] = step_sp,     [CD_RECORD_STEP_FSP] = step_fsp,
    [CD_RECORD_STEP_FFSP] = step_ffsp, [CD_RECORD_STEP_SA] = step_sa,
    [CD_RECORD_STEP_CA] = step_ca,     [CD_RECORD_STEP_CI] = step_ci,
    [CD_RECORD_STEP_CR] = step_cr,     [CD_RECORD_STEP_CHR] = step_chr,
    [CD_RECORD_STEP_CHW] = step_chw,   [CD_RECORD_STEP_RF] = step_rf};

static cdmpp_status apply_one(stepper *x) {
    cd_schedule *s = x->s;
    if (x->t->stage < 0 || (uint32_t)x->t->stage >= s->order.n)
        return BAD(x, "stage %d, the program has %u", x->t->stage, s->order.n);
    if (x->t->n_list > CD_RECORD_STEP_MAX_LIST)
        return CD_FAIL(x->err, EUNSUPPORTED, "list of %u items", x->t->n_list);
    x->st = cd_schedule_stage_at(s, (uint32_t)x->t->stage);
    CD_TRY(apply[x->t->kind](x));
    if (s->oom || s->pool.oom) return CD_FAIL(x->err, ENOMEM, "schedule");
    return cd_schedule_check_size(s, x->err);
}

cdmpp_status cd_schedule_check_size(const cd_schedule *s, cdmpp_err *err) {
    if (s->order.n > CD_MAX_STAGE)
        return CD_FAIL(err, EUNSUPPORTED, "%u stages, at most %d", s->order.n, CD_MAX_STAGE);
    if (s->n_iv > CD_MAX_ITER)
        return CD_FAIL(err, EUNSUPPORTED, "%d iterators, at most %d", s->n_iv, CD_MAX_ITER);
    return CDMPP_OK;
}

cdmpp_status cd_schedule_apply(cd_schedule *s, const cd_record *r, cdmpp_err *err) {
    CD_TRY(cd_schedule_check_size(s, err));
    if (r->n_step > CD_MAX_STEP)
        return CD_FAIL(err, EUNSUPPORTED, "%u steps, at most %d", r->n_step, CD_MAX_STEP);
    for (uint32_t k = 0; k < r->n_step; k++) {
        stepper x = {.s = s, .r = r, .t = &r->step[k], .err = err};
        const cdmpp_status st = apply_one(&x);
        if (!st) continue;
        char key[48];
        snprintf(key, sizeof key, "i[1][1][%u] (%s)", k, cd_record_step_code(r->step[k].kind));
        return cd_err_key(err, st, key);
    }
    return CDMPP_OK;
}
