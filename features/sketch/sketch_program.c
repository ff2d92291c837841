/* Operators of a program and how they read each other: what the rules decide by
 * (docs/internals/ansor.md, Tasks, Access analysis). Cache and rfactor steps change the operators,
 * so a table is made for each combination of such steps and kept. */
#include <string.h>

#include "features/sketch/sketch_internal.h"

/* How one operator reads another, over all its reads of that one. */
typedef struct {
    uint32_t read; /* stage */
    bool simple, common_ok[CD_TE_MAX_AXIS];
    uint64_t mentioned; /* axes that occur in an index of any read, reduce axes behind */
    bool missing;       /* some read leaves an axis out */
    bool twice, disorder;
} reading;

/* All that one operator reads. */
typedef struct {
    const cd_schedule *s;
    const cd_schedule_op *op; /* reader */
    const uint32_t *stage_of; /* operator -> stage */
    /* by expression id, by stage: the reader + 1 that met it; by stage: which of r */
    uint32_t *seen, *slot;
    uint32_t *met;
    uint32_t reader;
    cd_arena *a;
    reading *r, *now; /* (n); the one whose load is looked at */
    uint32_t n, cap;
    cd_sketch_edge *edge; /* (n_edge) of all readers so far */
    uint32_t n_edge, cap_edge;
    bool oom;
} walk;

/* The axis (0..n_axis-1) that e is, up to a constant; -1. */
static int32_t shifted_axis(const walk *w, const cd_expr *e) {
    const cd_expr *v = e;
    if (e->op == CD_ADD)
        v = e->a[0]->op == CD_INT ? e->a[1] : e->a[1]->op == CD_INT ? e->a[0] : NULL;
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
        if (w->s->iv[d < n ? w->op->axis[d] : w->op->raxis[d - n]].var == e)
            w->now->mentioned |= 1ULL << d;
    return true;
}

/* One read: is it simple, does it use each axis once and in order? An rfactor's axis may be one
 * more than a definition may have. */
static void look(walk *w, const cd_expr *load) {
    reading *r = w->now;
    uint32_t count[CD_TE_MAX_AXIS + 1] = {0};
    int32_t last = -1;
    for (uint32_t d = 0; d < load->n; d++) {
        const cd_expr *e = load->a[d];
        cd_expr_visit(e, mention, w);
        const int32_t axis = shifted_axis(w, e);
        if (d < CD_TE_MAX_AXIS && axis != (int32_t)d) r->common_ok[d] = false;
        if (e->op == CD_INT) continue;
        if (axis < 0) {
            r->simple = false;
            continue;
        }
        if (axis < last) r->disorder = true;
        last = axis;
        if (++count[axis] > 1) r->twice = true;
    }
    for (uint32_t d = 0; d < w->op->n_axis; d++)
        if (!count[d]) r->missing = true;
}

/* The reading that a load belongs to; NULL: out of memory, or a tensor of no stage. */
static reading *reading_of(walk *w, const cd_expr *load) {
    const int32_t op = (uint64_t)load->u.i < w->s->tensor_op.n ? w->s->tensor_op.p[load->u.i] : -1;
    if (op < 0) return NULL;
    const uint32_t q = w->stage_of[op];
    if (w->met[q] == w->reader + 1) return &w->r[w->slot[q]];
    if (CD_GROW_IN(w->a, w->r, w->n, w->cap)) {
        w->oom = true;
        return NULL;
    }
    w->met[q] = w->reader + 1;
    w->slot[q] = w->n;
    w->r[w->n] = (reading){.read = q, .simple = true};
    memset(w->r[w->n].common_ok, 1, sizeof w->r[w->n].common_ok);
    return &w->r[w->n++];
}

/* Shared parts of a body are walked once. */
static void walk_loads(walk *w, const cd_expr *e) {
    if (!(e->flags & CD_EXPR_HAS_LOAD) || w->seen[e->id] == w->reader + 1) return;
    w->seen[e->id] = w->reader + 1;
    if (e->op == CD_LOAD && (w->now = reading_of(w, e))) look(w, e);
    for (uint32_t i = 0; i < e->n; i++) walk_loads(w, e->a[i]);
}

static int64_t literal(const cd_expr *e) { return e && e->op == CD_INT ? e->u.i : -1; }

static bool expensive(void *ctx, const cd_expr *e) {
    bool *found = ctx;
    if (e->op == CD_SELECT) *found = true;
    if (e->op == CD_CALL && (!strcmp(e->u.name, "exp") || !strcmp(e->u.name, "if_then_else")))
        *found = true;
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
static void fill_op(cd_sketch_space *sp, const cd_schedule_op *op, const cd_schedule_stage *st,
                    cd_sketch_op *out) {
    *out =
        (cd_sketch_op){.placeholder = op->is_placeholder,
                       .output = st->is_output,
                       .rank = op->rank,
                       .n_axis = op->n_axis,
                       .n_raxis = op->n_raxis,
                       .shape = NULL,
                       .shared = ends_with(op->suffix, ".shared") || ends_with(op->name, ".shared"),
                       .strict = !op->is_placeholder && !has_expensive(op)};
    int64_t *shape = CD_NEWN(&sp->arena, int64_t, op->rank + 1);
    out->init = CD_NEWN(&sp->arena, cd_sketch_iter, op->n_axis + op->n_raxis + 1);
    if (!shape || !out->init) return;
    if (op->rank) memcpy(shape, op->shape, op->rank * sizeof *shape);
    out->shape = shape;
    for (uint32_t k = 0; k < op->n_axis + op->n_raxis; k++) {
        const cd_schedule_iv *iv =
            &sp->sched.iv[k < op->n_axis ? op->axis[k] : op->raxis[k - op->n_axis]];
        out->init[k] =
            (cd_sketch_iter){.ext = literal(iv->extent),
                             .origin = 1ULL << (k & 63),
                             .level = -1,
                             .kind = k < op->n_axis ? CD_SKETCH_SPATIAL : CD_SKETCH_REDUCE};
    }
}

/* Is there an axis longer than 1 that no index of the producer mentions? Two such producers, or one
 * and a reduction, need tiling. */
static bool lacks_axis(const cd_sketch_op *op, uint64_t mentioned) {
    for (uint32_t d = 0; d < op->n_axis; d++)
        if (op->init[d].ext > 1 && !(mentioned >> d & 1)) return true;
    return false;
}

static uint32_t common(const cd_sketch_op *a, const cd_sketch_op *b, const reading *r) {
    uint32_t n = 0;
    while (n < a->rank && n < b->rank && n < CD_TE_MAX_AXIS && a->shape[n] == b->shape[n] &&
           r->common_ok[n])
        n++;
    return n;
}

static bool start_walk(cd_sketch_space *sp, walk *w) {
    cd_schedule *s = &sp->sched;
    uint32_t *stage_of = CD_NEWN(&s->arena, uint32_t, (size_t)s->n_op + 1);
    *w = (walk){.s = s, .a = &s->arena, .stage_of = stage_of};
    w->seen = CD_NEWN(w->a, uint32_t, (size_t)s->pool.n + 1);
    w->slot = CD_NEWN(w->a, uint32_t, s->order.n + 1);
    w->met = CD_NEWN(w->a, uint32_t, s->order.n + 1);
    if (!stage_of || !w->seen || !w->slot || !w->met) return false;
    for (uint32_t k = 0; k < s->order.n; k++) stage_of[cd_schedule_stage_at(s, k)->op] = k;
    return true;
}

static void add_edge(walk *w, cd_sketch_edge e) {
    if (CD_GROW_IN(w->a, w->edge, w->n_edge, w->cap_edge)) w->oom = true;
    else w->edge[w->n_edge++] = e;
}

/* What stage c reads: edges, and what its own properties owe to them. */
static void relate_one(cd_sketch_program *p, walk *w) {
    const uint32_t c = w->reader;
    cd_sketch_op *op = &p->op[c];
    uint32_t lacking = 0;
    w->n = 0;
    for (uint32_t k = 0; k < w->op->n_out; k++) walk_loads(w, w->op->body[k]);
    for (uint32_t k = 0; k < w->n; k++) {
        const reading *r = &w->r[k];
        const cd_schedule_op *read = &w->s->op[w->s->stage[w->s->order.p[r->read]].op];
        if (read->const_matrix) op->unrolled |= r->mentioned;
        if (!r->simple || r->twice || r->disorder) op->strict = false;
        lacking += lacks_axis(op, r->mentioned);
        add_edge(w, (cd_sketch_edge){r->read, c, common(op, &p->op[r->read], r),
                                     r->simple && !r->missing && !r->twice && !r->disorder});
    }
    if (!w->n) op->strict = true; /* constants */
    op->tiling = !op->simplify_const && (lacking >= 2 || (lacking && op->n_raxis));
}

/* The edges by reader, as they were found, and by what is read. */
static bool keep_edges(cd_sketch_space *sp, cd_sketch_program *p, const walk *w) {
    cd_sketch_edge *in = CD_NEWN(&sp->arena, cd_sketch_edge, w->n_edge + 1),
                   *out = CD_NEWN(&sp->arena, cd_sketch_edge, w->n_edge + 1);
    uint32_t *first_in = CD_NEWN(&sp->arena, uint32_t, p->n + 1),
             *first_out = CD_NEWN(&sp->arena, uint32_t, p->n + 1);
    uint32_t *at = CD_NEWN(w->a, uint32_t, p->n + 1);
    if (!in || !out || !first_in || !first_out || !at) return false;
    if (w->n_edge) memcpy(in, w->edge, w->n_edge * sizeof *in);
    for (uint32_t k = 0; k < w->n_edge; k++)
        first_in[in[k].reader + 1]++, first_out[in[k].read + 1]++;
    for (uint32_t k = 0; k < p->n; k++)
        first_in[k + 1] += first_in[k], at[k + 1] = first_out[k + 1] += first_out[k];
    for (uint32_t k = 0; k < w->n_edge; k++) out[at[in[k].read]++] = in[k];
    p->in = in;
    p->out = out;
    p->first_in = first_in;
    p->first_out = first_out;
    return true;
}

static bool relate(cd_sketch_space *sp, cd_sketch_program *p) {
    walk w;
    if (!start_walk(sp, &w)) return false;
    for (w.reader = 0; w.reader < p->n && !w.oom; w.reader++) {
        w.op = cd_schedule_stage_op(&sp->sched, cd_schedule_stage_at(&sp->sched, w.reader));
        if (!w.op->is_placeholder) relate_one(p, &w);
    }
    return !w.oom && keep_edges(sp, p, &w);
}

static bool same_steps(const cd_sketch_program *p, const cd_record_step *step, uint32_t n) {
    if (p->n_step != n) return false;
    for (uint32_t k = 0; k < n; k++) {
        const cd_record_step *a = &p->step[k], *b = &step[k];
        if (a->kind != b->kind || a->stage != b->stage || memcmp(a->i, b->i, sizeof a->i) != 0 ||
            a->n_list != b->n_list ||
            (a->n_list && memcmp(a->list, b->list, a->n_list * sizeof *a->list) != 0))
            return false;
    }
    return true;
}

static bool allocate(cd_sketch_space *sp, cd_sketch_program *p, const cd_record_step *step,
                     uint32_t n_step) {
    const uint32_t n = sp->sched.order.n;
    cd_record_step *copy = CD_NEWN(&sp->arena, cd_record_step, n_step + 1);
    p->n = n;
    p->op = CD_NEWN(&sp->arena, cd_sketch_op, n + 1);
    if (!copy || !p->op) return false;
    if (n_step) memcpy(copy, step, n_step * sizeof *copy);
    p->step = copy;
    p->n_step = n_step;
    return true;
}

const cd_sketch_program *cd_sketch_program_get(cd_sketch_space *sp, const cd_record_step *step,
                                               uint32_t n_step) {
    for (const cd_sketch_program *p = sp->prog; p; p = p->next)
        if (same_steps(p, step, n_step)) return p;
    const cd_record r = {.n_step = n_step, .step = step};
    cd_schedule_start(&sp->sched, sp->dag);
    if (sp->sched.oom || cd_schedule_apply(&sp->sched, &r, NULL)) return NULL;
    cd_sketch_program *p = CD_NEW(&sp->arena, cd_sketch_program);
    if (!p || !allocate(sp, p, step, n_step)) return NULL;
    for (uint32_t k = 0; k < p->n; k++) {
        const cd_schedule_stage *st = cd_schedule_stage_at(&sp->sched, k);
        const cd_schedule_op *op = cd_schedule_stage_op(&sp->sched, st);
        fill_op(sp, op, st, &p->op[k]);
        if (!p->op[k].shape || !p->op[k].init) return NULL;
        if (op->first_tensor < sp->dag->n_tensor) /* attributes stay with the operator's tensor */
            p->op[k].simplify_const =
                sp->dag->op[sp->dag->tensor_op[op->first_tensor]].simplify_const;
    }
    if (!relate(sp, p)) return NULL;
    p->next = sp->prog;
    sp->prog = p;
    return p;
}
