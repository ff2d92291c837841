/* Operators of a program and how they read each other: what the rules decide by (docs/internals/ansor.md, Tasks,
 * Access analysis). Cache and rfactor steps change the operators, so a table is made for each combination of such
 * steps and kept. */
#include <string.h>

#include "features/sketch/sketch_internal.h"

typedef struct {
    const cd_schedule *s;
    const cd_schedule_op *op;           /* reader */
    uint32_t read;              /* first tensor, number of the operator that is looked at */
    uint32_t n_read;
    bool any, simple, common_ok[CD_TE_MAX_AXIS];
    uint64_t mentioned;         /* axes that occur in an index of any read, reduce axes behind */
    bool missing;               /* some read leaves an axis out */
    bool twice, disorder;
} walk;

/* The axis (0..n_axis-1) that e is, up to a constant; -1. */
static int32_t shifted_axis(const walk *w, const cd_expr *e) {
    const cd_expr *v = e;
    if (e->op == CD_ADD) v = e->a[0]->op == CD_INT ? e->a[1] : e->a[1]->op == CD_INT ? e->a[0] : NULL;
    else if (e->op == CD_SUB) v = e->a[1]->op == CD_INT ? e->a[0] : NULL;
    if (!v || v->op != CD_VAR) return -1;
    for (uint32_t d = 0; d < w->op->n_axis; d++)
        if (w->s->iv[w->op->axis[d]].var == v) return (int32_t)d;
    return -1;
}

static bool mention(void *ctx, const cd_expr *e) {
    walk *w = ctx;
    const uint32_t n = w->op->n_axis;
    for (uint32_t d = 0; e->op == CD_VAR && d < n + w->op->n_raxis && d < 64; d++)
        if (w->s->iv[d < n ? w->op->axis[d] : w->op->raxis[d - n]].var == e) w->mentioned |= 1ULL << d;
    return true;
}

/* One read: is it simple, does it use each axis once and in order? */
static void look(walk *w, const cd_expr *load) {
    uint32_t count[CD_TE_MAX_AXIS] = {0};
    int32_t last = -1;
    w->any = true;
    for (uint32_t d = 0; d < load->n; d++) {
        const cd_expr *e = load->a[d];
        cd_expr_visit(e, mention, w);
        const int32_t axis = shifted_axis(w, e);
        if (d < CD_TE_MAX_AXIS && axis != (int32_t)d) w->common_ok[d] = false;
        if (e->op == CD_INT) continue;
        if (axis < 0) {
            w->simple = false;
            continue;
        }
        if (axis < last) w->disorder = true;
        last = axis;
        if (++count[axis] > 1) w->twice = true;
    }
    for (uint32_t d = 0; d < w->op->n_axis; d++)
        if (!count[d]) w->missing = true;
}

static bool on_expr(void *ctx, const cd_expr *e) {
    walk *w = ctx;
    if (e->op == CD_LOAD && (uint32_t)e->u.i - w->read < w->n_read) look(w, e);
    return true;
}

static walk reads_of(const cd_schedule *s, const cd_schedule_op *reader, const cd_schedule_op *read) {
    walk w = {.s = s, .op = reader, .read = read->first_tensor, .n_read = read->n_out, .simple = true};
    memset(w.common_ok, 1, sizeof w.common_ok);
    for (uint32_t k = 0; k < reader->n_out && !reader->is_placeholder; k++) cd_expr_visit(reader->body[k], on_expr, &w);
    return w;
}

static int64_t literal(const cd_expr *e) { return e && e->op == CD_INT ? e->u.i : -1; }

static bool expensive(void *ctx, const cd_expr *e) {
    bool *found = ctx;
    if (e->op == CD_SELECT) *found = true;
    if (e->op == CD_CALL && (!strcmp(e->u.name, "exp") || !strcmp(e->u.name, "if_then_else"))) *found = true;
    return !*found;
}

static bool has_expensive(const cd_schedule_op *op) {
    bool found = false;
    for (uint32_t k = 0; k < op->n_out; k++) cd_expr_visit(op->body[k], expensive, &found);
    return found;
}

static bool ends_with(const char *s, const char *tail) {
    const size_t n = strlen(s), m = strlen(tail);
    return n >= m && !strcmp(s + n - m, tail);
}

/* The operator's own properties; relate() adds those that depend on others. */
static void fill_op(cd_sketch_space *sp, const cd_schedule_op *op, const cd_schedule_stage *st, cd_sketch_op *out) {
    *out = (cd_sketch_op){.placeholder = op->is_placeholder, .output = st->is_output, .rank = op->rank, .n_axis = op->n_axis,
                      .n_raxis = op->n_raxis, .shape = NULL, .shared = ends_with(op->suffix, ".shared") || ends_with(op->name, ".shared"),
                      .strict = !op->is_placeholder && !has_expensive(op)};
    int64_t *shape = CD_NEWN(&sp->arena, int64_t, op->rank + 1);
    out->init = CD_NEWN(&sp->arena, cd_sketch_iter, op->n_axis + op->n_raxis + 1);
    if (!shape || !out->init) return;
    if (op->rank) memcpy(shape, op->shape, op->rank * sizeof *shape);
    out->shape = shape;
    for (uint32_t k = 0; k < op->n_axis + op->n_raxis; k++) {
        const cd_schedule_iv *iv = &sp->sched.iv[k < op->n_axis ? op->axis[k] : op->raxis[k - op->n_axis]];
        out->init[k] = (cd_sketch_iter){.ext = literal(iv->extent), .origin = 1ULL << (k & 63), .level = -1,
                                  .kind = k < op->n_axis ? CD_SKETCH_SPATIAL : CD_SKETCH_REDUCE};
    }
}

/* Is there an axis longer than 1 that no index of the producer mentions? Two such producers, or one and a reduction, need tiling. */
static bool lacks_axis(const cd_sketch_op *op, uint64_t mentioned) {
    for (uint32_t d = 0; d < op->n_axis; d++)
        if (op->init[d].ext > 1 && !(mentioned >> d & 1)) return true;
    return false;
}

static uint32_t common(const cd_sketch_op *a, const cd_sketch_op *b, const walk *w) {
    uint32_t n = 0;
    while (n < a->rank && n < b->rank && n < CD_TE_MAX_AXIS && a->shape[n] == b->shape[n] && w->common_ok[n]) n++;
    return n;
}

static void relate(cd_sketch_space *sp, cd_sketch_program *p) {
    cd_schedule *s = &sp->sched;
    for (uint32_t c = 0; c < p->n; c++) {
        const cd_schedule_op *reader = cd_schedule_stage_op(s, cd_schedule_stage_at(s, c));
        uint32_t lacking = 0, n_read = 0;
        if (reader->is_placeholder) continue;
        for (uint32_t q = 0; q < p->n; q++) {
            const cd_schedule_op *read = cd_schedule_stage_op(s, cd_schedule_stage_at(s, q));
            const walk w = reads_of(s, reader, read);
            if (!w.any || q == c) continue;
            n_read++;
            if (read->const_matrix) p->op[c].unrolled |= w.mentioned;
            p->reads[c * p->n + q] = true;
            p->same[c * p->n + q] = w.simple && !w.missing && !w.twice && !w.disorder;
            p->common[c * p->n + q] = p->common[q * p->n + c] = common(&p->op[c], &p->op[q], &w);
            if (!w.simple || w.twice || w.disorder) p->op[c].strict = false;
            lacking += lacks_axis(&p->op[c], w.mentioned);
        }
        if (!n_read) p->op[c].strict = true; /* constants */
        p->op[c].tiling = !p->op[c].simplify_const && (lacking >= 2 || (lacking && p->op[c].n_raxis));
    }
}

static bool same_steps(const cd_sketch_program *p, const cd_record_step *step, uint32_t n) {
    if (p->n_step != n) return false;
    for (uint32_t k = 0; k < n; k++) {
        const cd_record_step *a = &p->step[k], *b = &step[k];
        if (a->kind != b->kind || a->stage != b->stage || memcmp(a->i, b->i, sizeof a->i) != 0 || a->n_list != b->n_list ||
            (a->n_list && memcmp(a->list, b->list, a->n_list * sizeof *a->list) != 0))
            return false;
    }
    return true;
}

static bool allocate(cd_sketch_space *sp, cd_sketch_program *p, const cd_record_step *step, uint32_t n_step) {
    const uint32_t n = sp->sched.order.n;
    cd_record_step *copy = CD_NEWN(&sp->arena, cd_record_step, n_step + 1);
    p->n = n;
    p->op = CD_NEWN(&sp->arena, cd_sketch_op, n + 1);
    p->reads = CD_NEWN(&sp->arena, bool, (size_t)n * n + 1);
    p->same = CD_NEWN(&sp->arena, bool, (size_t)n * n + 1);
    p->common = CD_NEWN(&sp->arena, uint32_t, (size_t)n * n + 1);
    if (!copy || !p->op || !p->reads || !p->same || !p->common) return false;
    if (n_step) memcpy(copy, step, n_step * sizeof *copy);
    p->step = copy;
    p->n_step = n_step;
    return true;
}

const cd_sketch_program *cd_sketch_program_get(cd_sketch_space *sp, const cd_record_step *step, uint32_t n_step) {
    for (const cd_sketch_program *p = sp->prog; p; p = p->next)
        if (same_steps(p, step, n_step)) return p;
    const cd_record r = {.n_step = n_step, .step = step};
    cd_schedule_start(&sp->sched, sp->dag);
    if (sp->sched.oom || cd_schedule_apply(&sp->sched, &r, NULL)) return NULL;
    cd_sketch_program *p = CD_NEW(&sp->arena, cd_sketch_program);
    if (!p || !allocate(sp, p, step, n_step)) return NULL;
    for (uint32_t k = 0; k < p->n; k++) {
        const cd_schedule_stage *st = cd_schedule_stage_at(&sp->sched, k);
        fill_op(sp, cd_schedule_stage_op(&sp->sched, st), st, &p->op[k]);
        if (!p->op[k].shape || !p->op[k].init) return NULL;
        for (uint32_t d = 0; d < sp->dag->n_op; d++) /* attributes stay with the operator's tensor */
            if (sp->dag->op[d].first_tensor == cd_schedule_stage_op(&sp->sched, st)->first_tensor)
                p->op[k].simplify_const = sp->dag->op[d].simplify_const;
    }
    relate(sp, p);
    p->next = sp->prog;
    sp->prog = p;
    return p;
}
