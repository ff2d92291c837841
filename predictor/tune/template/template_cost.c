/* The analytic cost of a block: its runs of multiply-adds, bytes that come from the next cache, and
 * the copy of a guarded operand. Its unit is the time of one vector multiply-add; only the order
 * that it gives matters.
 *
 *   a run     all turns of R1 over one S3 tile; where S2 is 1, of R0 too, for the sums stay in
 *             their registers
 *     the longest of: its multiply-adds, its loads, its chain of sums less what runs beside it; and
 *     its loops' own instructions */
#include <math.h>
#include <string.h>

#include "predictor/tune/template/template_internal.h"

/* Recognises sums of products in a task's definition: its one sum, the two elements that are
 * multiplied, and the factor of each axis in their indices. */

bool cd_template_touches(const cd_template_operand *o, uint32_t axis) {
    for (uint32_t d = 0; d < o->rank; d++)
        if (o->factor[d][axis]) return true;
    return false;
}

/* ---- the sum ---- */
static bool is_zero(const cd_expr *e) {
    return e->op == CD_FLOAT ? e->u.f == 0 : e->op == CD_INT && e->u.i == 0;
}

static bool is_sum(const cd_te_reducer *r) {
    const cd_expr *e = r->result[0];
    if (r->n != 1 || e->op != CD_ADD || !is_zero(r->identity[0])) return false;
    return (e->a[0] == r->lhs[0] && e->a[1] == r->rhs[0]) ||
           (e->a[0] == r->rhs[0] && e->a[1] == r->lhs[0]);
}

/* The task's only reduction. */
static cdmpp_status find_sum(const cd_te_dag *dag, uint32_t *at, cdmpp_err *err) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < dag->n_op; k++)
        if (!dag->op[k].is_placeholder && dag->op[k].red) {
            n++;
            *at = k;
        }
    if (n != 1) return CD_FAIL(err, EUNSUPPORTED, "it has %u reductions, a template has one", n);
    const cd_te_op *op = &dag->op[*at];
    if (!is_sum(op->red) || op->cond || op->init)
        return CD_FAIL(err, EUNSUPPORTED, "its reduction is no plain sum");
    const cd_expr *e = op->body[0];
    if (((e->op != CD_MUL || e->type != CD_F32) && !cd_expr_is_dot4(e)) || e->a[0]->op != CD_LOAD ||
        e->a[1]->op != CD_LOAD)
        return CD_FAIL(err, EUNSUPPORTED, "what it sums is no product of two float32 elements");
    return CDMPP_OK;
}

/* ---- axes and indices ---- */
static cdmpp_status read_axes(const cd_te_op *op, cd_template_nest *n, cdmpp_err *err) {
    n->n_space = op->n_axis;
    n->n_axis = op->n_axis + op->n_raxis;
    if (n->n_axis > CD_TEMPLATE_AXES || !op->n_axis || !op->n_raxis)
        return CD_FAIL(err, EUNSUPPORTED, "its nest has %u loops, templates are for 2 to %d",
                       n->n_axis, CD_TEMPLATE_AXES);
    for (uint32_t k = 0; k < n->n_axis; k++) {
        const cd_te_iter *it = k < op->n_axis ? &op->axis[k] : &op->raxis[k - op->n_axis];
        if (it->extent->op != CD_INT || it->extent->u.i < 1 || it->extent->u.i > INT32_MAX)
            return CD_FAIL(err, EUNSUPPORTED,
                           "the length of its loop %s is no fixed number of 32 bits", it->name);
        n->extent[k] = it->extent->u.i;
    }
    return CDMPP_OK;
}

static const cd_expr *axis_of(const cd_te_op *op, uint32_t k) {
    return k < op->n_axis ? op->axis[k].var : op->raxis[k - op->n_axis].var;
}

static bool add_linear(const cd_te_op *op, const cd_expr *e, int64_t times, int64_t *factor);

/* Factors beyond 32 bits are those of no tensor. */
static bool add_product(const cd_te_op *op, const cd_expr *e, int64_t times, int64_t by,
                        int64_t *factor) {
    int64_t k;
    return !__builtin_mul_overflow(times, by, &k) && llabs(k) <= INT32_MAX &&
           add_linear(op, e, k, factor);
}

/* factor[a] += times * that of axis a in e. False: e is not linear. */
static bool add_linear(const cd_te_op *op, const cd_expr *e, int64_t times, int64_t *factor) {
    const uint32_t n = op->n_axis + op->n_raxis;
    switch ((cd_expr_op)e->op) {
    case CD_INT: return true;
    case CD_CAST: return add_linear(op, e->a[0], times, factor);
    case CD_VAR:
        for (uint32_t k = 0; k < n; k++)
            if (axis_of(op, k) == e) factor[k] += times;
        return true;
    case CD_ADD:
        return add_linear(op, e->a[0], times, factor) && add_linear(op, e->a[1], times, factor);
    case CD_SUB:
        return add_linear(op, e->a[0], times, factor) && add_linear(op, e->a[1], -times, factor);
    case CD_MUL:
        if (e->a[1]->op == CD_INT) return add_product(op, e->a[0], times, e->a[1]->u.i, factor);
        return e->a[0]->op == CD_INT && add_product(op, e->a[1], times, e->a[0]->u.i, factor);
    default: return false;
    }
}

static bool is_condition(void *ctx, const cd_expr *e) {
    bool *found = ctx;
    if (e->op == CD_SELECT || (e->op == CD_CALL && !strcmp(e->u.name, "if_then_else")))
        *found = true;
    return !*found;
}

static cdmpp_status read_operand(const cd_te_dag *dag, const cd_te_op *op, const cd_expr *load,
                                 cd_template_operand *o, cdmpp_err *err) {
    o->op = dag->tensor_op[load->u.i];
    const cd_te_op *from = &dag->op[o->op];
    o->rank = load->n;
    o->packed = from->is_placeholder && from->layout_free;
    if (!from->is_placeholder) cd_expr_visit(from->body[0], is_condition, &o->guarded);
    if (load->n > CD_TEMPLATE_RANK || load->type != op->body[0]->type)
        return CD_FAIL(err, EUNSUPPORTED,
                       "it multiplies no float32 tensor of at most %d dimensions",
                       CD_TEMPLATE_RANK);
    for (uint32_t d = 0; d < load->n; d++) {
        o->extent[d] = from->shape[d];
        if (!add_linear(op, load->a[d], 1, o->factor[d]))
            return CD_FAIL(err, EUNSUPPORTED, "an index of %s is not linear in the loops",
                           from->name);
    }
    return CDMPP_OK;
}

static void read_result(const cd_te_op *op, cd_template_operand *o) {
    o->rank = op->n_axis;
    for (uint32_t d = 0; d < op->n_axis; d++) {
        o->extent[d] = op->shape[d];
        o->factor[d][d] = 1;
    }
}

/* ---- what makes tiles worth it ---- */
/* An element is used again by every axis that its operand does not have. */
static cdmpp_status check_reuse(const cd_template_nest *n, cdmpp_err *err) {
    bool own[2] = {false, false};
    for (uint32_t k = 0; k < n->n_axis; k++) {
        const bool x = cd_template_touches(&n->in[0], k), y = cd_template_touches(&n->in[1], k);
        if (k >= n->n_space && !(x && y))
            return CD_FAIL(err, EUNSUPPORTED, "a loop of the sum is in one operand only");
        if (k < n->n_space && !x && !y)
            return CD_FAIL(err, EUNSUPPORTED, "a loop of the result is in no operand");
        own[0] |= x && !y;
        own[1] |= y && !x;
    }
    if (own[0] && own[1]) return CDMPP_OK;
    return CD_FAIL(err, EUNSUPPORTED,
                   "each loop of an operand is in the other one too (as of a depthwise "
                   "convolution): no element is used twice for tiles to keep");
}

cdmpp_status cd_template_nest_read(const cd_task *t, bool gpu, cd_template_nest *out,
                                   cdmpp_err *err) {
    *out = (cd_template_nest){0};
    if (!t->dag) return CD_FAIL(err, ENOTASK, "the task's definition could not be read");
    if (gpu) return CD_FAIL(err, EUNSUPPORTED, "templates are for CPUs");
    CD_TRY(find_sum(t->dag, &out->op, err));
    const cd_te_op *op = &t->dag->op[out->op];
    CD_TRY(read_axes(op, out, err));
    for (int k = 0; k < 2; k++)
        CD_TRY(read_operand(t->dag, op, op->body[0]->a[k], &out->in[k], err));
    read_result(op, &out->out);
    return check_reuse(out, err);
}

/* These numbers were chosen by the order of measured templates of ten tasks on a Zen 4; the tasks
 * that docs/results compares on are none of them. A vector load; the load of one element to all
 * lanes; that of one element to its lane; how long a sum waits for the one before. */
static const double load = 1, spread = 0.5, gather = 1.5, latency = 4;
/* The begin and end of a run whose loops stay loops, and of one that is written out; a turn of a
 * loop. A row of a copy, a vector of it. */
static const double run_loops = 12, run_text = 0.5, turn = 1, row = 6, move = 2;
/* So many multiply-adds are under way at once. Beyond `text` of them a loop body no longer fits the
 * decoded instructions, and costs so much more. */
static const double window = 200, text = 450, long_text = 1.3;
/* The generators keep sums in variables for as long as a loop lasts. Without one they are elements
 * of a buffer, which the compiler only follows through so many multiply-adds of one row; else they
 * are stored and loaded again. Elements of a window that slides over the tile are kept for later by
 * the compiler, who then has too few registers for the sums. */
static const double followed = 32, stored = 1.5, slid = 1.4, spread_rows = 1.12,
                    spread_vectors = 1.5;
/* Bytes that come in that time from L2, and from what is behind it; what is left of that beside the
 * runs. */
static const double from_l2 = 32, from_far = 10, beside_runs = 0.25;
/* A body of so few multiply-adds is written out whatever the pragma says (codegen_unroll.c). */
enum { ALWAYS = 50 };

int64_t cd_template_vectors(const cd_template_machine *m, int64_t n) {
    int64_t lanes = m->vector_bytes / CD_TEMPLATE_ELEMENT, k = n / lanes;
    for (n %= lanes; n; n -= lanes, k++)
        while (lanes > n) lanes /= 2;
    return k;
}

/* ---- the inner kernel ---- */
/* The axis of vectors: Ansor's schedules vectorise the last one. */
static uint32_t vector_axis(const cd_template_nest *n) { return n->n_space - 1; }

static bool in_a_row(const cd_template_nest *n, const cd_template_operand *o) {
    const uint32_t v = vector_axis(n);
    for (uint32_t d = 0; d + 1 < o->rank; d++)
        if (o->factor[d][v] && !o->packed) return false;
    return o->packed || o->factor[o->rank - 1][v] == 1;
}

/* Elements, or vectors along v, of an operand that the accumulators need at once. */
static int64_t needed(const cd_template_nest *n, const cd_template_operand *o, const int32_t *s3,
                      bool with_vector) {
    int64_t k = 1;
    for (uint32_t a = 0; a < n->n_space; a++)
        if (cd_template_touches(o, a) && (with_vector || a != vector_axis(n))) k *= s3[a];
    return k;
}

/* Vectors of sums that s3 keeps in registers. */
static int64_t template_accumulators(const cd_template_nest *n, const cd_template_machine *m,
                                     const int32_t *s3) {
    const uint32_t v = vector_axis(n);
    return needed(n, &n->out, s3, false) * cd_template_vectors(m, s3[v]);
}

/* One operand's vectors stay in registers while the other's elements pass. */
int64_t cd_template_registers(const cd_template_nest *n, const cd_template_machine *m,
                              const int32_t *s3) {
    const uint32_t v = vector_axis(n);
    int64_t rows = 0;
    for (int k = 0; k < 2; k++)
        if (cd_template_touches(&n->in[k], v)) rows += cd_template_vectors(m, s3[v]);
    return template_accumulators(n, m, s3) + rows;
}

static double loads_of(const cd_template_nest *n, const cd_template_machine *m,
                       const cd_template_operand *o, const int32_t *s3) {
    const uint32_t v = vector_axis(n);
    if (!cd_template_touches(o, v)) return spread * (double)needed(n, o, s3, false);
    if (!in_a_row(n, o)) return gather * (double)needed(n, o, s3, true);
    return load * (double)(needed(n, o, s3, false) * cd_template_vectors(m, s3[v]));
}

/* The best that the tile can do: the sums are far enough apart, nothing but its own operands is
 * loaded. */
double cd_template_kernel_cost(const cd_template_nest *n, const cd_template_machine *m,
                               const int32_t *s3) {
    return fmax((double)template_accumulators(n, m, s3),
                loads_of(n, m, &n->in[0], s3) + loads_of(n, m, &n->in[1], s3));
}

/* ---- a run ---- */
typedef struct {
    /* whose sums are in registers: S3, or S2 x S3 where the body is written out */
    int32_t tile[CD_TEMPLATE_AXES];
    double rows, sums;  /* of the tile: sums, vectors of sums */
    double turns, text; /* of the loops of the sum in a run; of those in one text */
    bool kept;          /* the sums stay from R0 turn to R0 turn */
    /* S2 is part of the tile: the compiler makes more of it than of an S3 of that size */
    double slower;
} run;

static double product(const int32_t *len, uint32_t from, uint32_t to) {
    double p = 1;
    for (uint32_t k = from; k < to; k++) p *= len[k];
    return p;
}

/* The code generators write a loop out if its statements, a vector counts as one, are within the
 * pragma's limit. */
static bool written_out(const run *r, double times, uint32_t limit) {
    return r->rows * times <= limit || r->sums * times <= ALWAYS;
}

static double text_of(const cd_template_nest *n, const cd_template_block *b, const run *r) {
    double k = 1;
    for (uint32_t a = n->n_axis; a-- > n->n_space && written_out(r, k * b->r1[a], b->unroll);)
        k *= b->r1[a];
    return k;
}

static void set_sums(const cd_template_nest *n, const cd_template_machine *m, run *r) {
    r->rows = product(r->tile, 0, n->n_space - 1);
    r->sums = (double)template_accumulators(n, m, r->tile);
}

static run run_of(const cd_template_nest *n, const cd_template_machine *m,
                  const cd_template_block *b) {
    run r = {.slower = 1};
    double all = 1;
    const double s2 = product(b->s2, 0, n->n_space), r1 = product(b->r1, n->n_space, n->n_axis);
    for (uint32_t a = n->n_space; a < n->n_axis; a++) all *= (double)n->extent[a];
    for (uint32_t a = 0; a < n->n_space; a++) r.tile[a] = b->s3[a];
    set_sums(n, m, &r);
    r.text = text_of(n, b, &r);
    r.kept = s2 == 1;
    if (!r.kept && r.text == r1 && r.sums * s2 <= (double)m->registers &&
        written_out(&r, r1 * s2, b->unroll)) {
        for (uint32_t a = 0; a < n->n_space; a++) r.tile[a] = b->s2[a] * b->s3[a];
        r.rows *= s2;
        r.sums *= s2;
        r.kept = true;
        r.slower = b->s2[vector_axis(n)] > 1 ? spread_vectors : spread_rows;
    }
    r.turns = r.kept ? all : r1;
    return r;
}

/* In a run that is written out, an operand that the nearest loop of S2 does not move stays in
 * registers, if they are enough for it. */
static bool stays(const cd_template_nest *n, const cd_template_machine *m,
                  const cd_template_block *b, const cd_template_operand *o, const run *r) {
    uint32_t axis = n->n_space;
    while (axis-- > 0 && b->s2[axis] == 1) {
    }
    const uint32_t v = vector_axis(n);
    if (r->kept || r->text < r->turns || axis >= n->n_space || cd_template_touches(o, axis) ||
        !cd_template_touches(o, v))
        return false;
    const double each = (double)(needed(n, o, b->s3, false) * cd_template_vectors(m, b->s3[v]));
    return each * r->turns + r->sums <= (double)m->registers;
}

/* Is an element of o read for several sums of the tile in different turns of one text? */
static bool slides(const cd_template_nest *n, const cd_template_block *b,
                   const cd_template_operand *o, const run *r) {
    double k = 1;
    for (uint32_t a = n->n_axis; a-- > n->n_space && k * b->r1[a] <= r->text; k *= b->r1[a])
        for (uint32_t d = 0; d < o->rank && b->r1[a] > 1; d++)
            for (uint32_t s = 0; s < n->n_space && o->factor[d][a]; s++)
                if (o->factor[d][s] && r->tile[s] > 1) return true;
    return false;
}

static double runs_cost(const cd_template_nest *n, const cd_template_machine *m,
                        const cd_template_block *b) {
    const run r = run_of(n, m, b);
    double points = 1, loads = r.sums;
    for (uint32_t a = 0; a < n->n_axis; a++) points *= (double)n->extent[a];
    for (int k = 0; k < 2; k++)
        if (!stays(n, m, b, &n->in[k], &r)) loads += r.turns * loads_of(n, m, &n->in[k], r.tile);
    const double beside = r.kept ? 1 : fmax(1, window / (r.sums * r.turns));
    double cycles = fmax(fmax(r.sums * r.turns, loads), latency * r.turns / beside);
    cycles *= r.slower;
    if (r.sums * r.text > text) cycles *= long_text;
    if (r.text == r.turns && (r.rows > 1 || r.sums * r.text > followed)) cycles *= stored;
    if (r.sums + r.rows * r.text > (double)m->registers &&
        (slides(n, b, &n->in[0], &r) || slides(n, b, &n->in[1], &r)))
        cycles *= slid;
    cycles += r.text < r.turns ? run_loops + turn * r.turns / r.text : run_text;
    return cycles * points / (r.turns * product(r.tile, 0, n->n_space));
}

/* ---- bytes ---- */
static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* What a row takes of a cache, a line at least. In L1 rows that are a power of two apart meet in
 * the same sets: if these have not enough ways, it is as if each row reached to the next such
 * place. */
static int64_t row_bytes(const cd_template_machine *m, const cd_template_operand *o, int64_t bytes,
                         int64_t rows, cd_template_place place) {
    if (place == CD_TEMPLATE_PACKED) return bytes;
    const int64_t lines = (bytes + CD_TEMPLATE_LINE - 1) / CD_TEMPLATE_LINE * CD_TEMPLATE_LINE;
    if (place == CD_TEMPLATE_FAR || rows < 2) return lines;
    const int64_t apart =
        gcd(cd_template_mul(o->extent[o->rank - 1], CD_TEMPLATE_ELEMENT), CD_TEMPLATE_WAY);
    return apart > lines && cd_template_mul(rows, apart) > m->l1_bytes ? apart : lines;
}

int64_t cd_template_bytes(const cd_template_nest *n, const cd_template_machine *m,
                          const cd_template_operand *o, const int64_t *tile,
                          cd_template_place place) {
    int64_t elements = 1, last = 1;
    for (uint32_t d = 0; d < o->rank; d++) {
        int64_t reach = 1, most = 1;
        for (uint32_t a = 0; a < n->n_axis; a++) {
            if (!o->factor[d][a]) continue;
            const int64_t step = cd_template_mul(llabs(o->factor[d][a]), tile[a] - 1);
            reach = step > INT64_MAX - reach ? INT64_MAX : reach + step;
            most = cd_template_mul(most, tile[a]);
        }
        last = reach < most ? reach : most;
        if (last > o->extent[d]) last = o->extent[d];
        if (d + 1 < o->rank) elements = cd_template_mul(elements, last);
    }
    return cd_template_mul(elements, row_bytes(m, o, last * CD_TEMPLATE_ELEMENT, elements, place));
}

/* ---- the loops around the kernel ---- */
typedef struct {
    uint32_t n;
    uint32_t axis[5 * CD_TEMPLATE_AXES];
    int64_t trips[5 * CD_TEMPLATE_AXES];
    /* [k]: what lies inside of loops 0 .. k-1 */
    int64_t tile[5 * CD_TEMPLATE_AXES + 1][CD_TEMPLATE_AXES];
} loops;

static void add_loop(loops *l, uint32_t axis, int64_t trips, uint32_t n_axis) {
    if (trips < 2) return;
    l->axis[l->n] = axis;
    l->trips[l->n] = trips;
    for (uint32_t a = 0; a < n_axis; a++)
        l->tile[l->n + 1][a] = a == axis ? l->tile[l->n][a] / trips : l->tile[l->n][a];
    l->n++;
}

static void loops_of(const cd_template_nest *n, const cd_template_block *b, loops *l) {
    l->n = 0;
    for (uint32_t a = 0; a < n->n_axis; a++) l->tile[0][a] = n->extent[a];
    for (uint32_t a = 0; a < n->n_space; a++)
        add_loop(l, a, n->extent[a] / ((int64_t)b->s1[a] * b->s2[a] * b->s3[a]), n->n_axis);
    for (uint32_t a = 0; a < n->n_space; a++) add_loop(l, a, b->s1[a], n->n_axis);
    for (uint32_t a = n->n_space; a < n->n_axis; a++)
        add_loop(l, a, n->extent[a] / b->r1[a], n->n_axis);
    for (uint32_t a = 0; a < n->n_space; a++) add_loop(l, a, b->s2[a], n->n_axis);
    for (uint32_t a = n->n_space; a < n->n_axis; a++) add_loop(l, a, b->r1[a], n->n_axis);
}

/* The outermost place from which on everything fits: what lies there comes once for each turn of
 * the loops outside, but for turns of the nearest ones that do not move this operand. */
static double traffic(const cd_template_nest *n, const cd_template_machine *m,
                      const cd_template_block *b, const loops *l, cd_template_place place,
                      double cache) {
    const cd_template_operand *o[3] = {&n->in[0], &n->in[1], &n->out};
    cd_template_place lies[3];
    uint32_t at = 0;
    double bytes[3], all = 0;
    for (int k = 0; k < 3; k++)
        lies[k] = o[k]->packed || (o[k]->guarded && b->copy == CD_TEMPLATE_COPY_INNER)
                      ? CD_TEMPLATE_PACKED
                      : place;
    for (;; at++) {
        double sum = 0;
        for (int k = 0; k < 3; k++)
            sum += bytes[k] = (double)cd_template_bytes(n, m, o[k], l->tile[at], lies[k]);
        if (sum <= cache || at == l->n) break;
    }
    for (int k = 0; k < 3; k++) {
        uint32_t from = at;
        while (from && !cd_template_touches(o[k], l->axis[from - 1])) from--;
        for (uint32_t j = 0; j < from; j++) bytes[k] *= (double)l->trips[j];
        all += bytes[k];
    }
    return all;
}

/* ---- the copy ---- */
static double copy_cost(const cd_template_nest *n, const cd_template_machine *m,
                        const cd_template_operand *o, const int64_t *tile, double times) {
    const double bytes = (double)cd_template_bytes(n, m, o, tile, CD_TEMPLATE_PACKED);
    int64_t last = 1;
    for (uint32_t a = 0; a < n->n_axis; a++)
        if (o->factor[o->rank - 1][a]) last *= tile[a];
    if (last > o->extent[o->rank - 1]) last = o->extent[o->rank - 1];
    const double rows = bytes / (double)(last * CD_TEMPLATE_ELEMENT);
    return times * rows * (row + move * (double)cd_template_vectors(m, last));
}

/* A copy for each S0 or R0 block is made again where blocks overlap; one before everything goes
 * through the caches once more. */
static double guarded_cost(const cd_template_nest *n, const cd_template_machine *m,
                           const cd_template_block *b, const cd_template_operand *o) {
    int64_t tile[CD_TEMPLATE_AXES];
    double times = 1;
    for (uint32_t a = 0; a < n->n_axis; a++) {
        const bool space = a < n->n_space;
        const int64_t l2 = space ? (int64_t)b->s2[a] * b->s3[a] : b->r1[a],
                      s0 = space ? l2 * b->s1[a] : n->extent[a];
        tile[a] = b->copy == CD_TEMPLATE_COPY_ROOT    ? n->extent[a]
                  : b->copy == CD_TEMPLATE_COPY_OUTER ? s0
                                                      : l2;
        times *= (double)n->extent[a] / (double)tile[a];
    }
    const double one = (double)cd_template_bytes(n, m, o, tile, CD_TEMPLATE_PACKED),
                 bytes = times * one, cache = b->copy == CD_TEMPLATE_COPY_ROOT ? bytes : one;
    const double near = cache > CD_TEMPLATE_L1_SHARE * (double)m->l1_bytes ? bytes / from_l2 : 0;
    return copy_cost(n, m, o, tile, times) +
           (cache > CD_TEMPLATE_L2_SHARE * (double)m->l2_bytes ? bytes / from_far : near);
}

static double copies_cost(const cd_template_nest *n, const cd_template_machine *m,
                          const cd_template_block *b) {
    double cycles = 0;
    for (int i = 0; i < 2; i++)
        if (n->in[i].guarded) cycles += guarded_cost(n, m, b, &n->in[i]);
    return cycles;
}

/* Bytes move while sums are made: what takes longer counts, and a part of the rest. */
static double with_moves(const cd_template_nest *n, const cd_template_machine *m,
                         const cd_template_block *b, double runs) {
    loops l;
    loops_of(n, b, &l);
    const double l2 =
        traffic(n, m, b, &l, CD_TEMPLATE_NEAR, CD_TEMPLATE_L1_SHARE * (double)m->l1_bytes) /
        from_l2;
    const double far =
        traffic(n, m, b, &l, CD_TEMPLATE_FAR, CD_TEMPLATE_L2_SHARE * (double)m->l2_bytes) /
        from_far;
    return fmax(runs, fmax(l2, far)) + beside_runs * (l2 + far);
}

/* The threads end when the last one does: S0 tiles that do not part evenly leave some of them
 * waiting. */
static double waiting(const cd_template_nest *n, const cd_template_machine *m,
                      const cd_template_block *b) {
    double tiles = 1;
    for (uint32_t a = 0; a < n->n_space; a++)
        tiles *= (double)n->extent[a] / ((double)b->s1[a] * b->s2[a] * b->s3[a]);
    return ceil(tiles / (double)m->threads) * (double)m->threads / tiles;
}

double cd_template_cost(const cd_template_nest *n, const cd_template_machine *m,
                        const cd_template_block *b) {
    return (with_moves(n, m, b, runs_cost(n, m, b)) + copies_cost(n, m, b)) * waiting(n, m, b);
}

/* The limit matters for the runs alone, the place of the copy for the rest. */
void cd_template_choose(const cd_template_nest *n, const cd_template_machine *m,
                        const uint32_t *limit, uint32_t n_limit, cd_template_block *b) {
    const bool guarded = n->in[0].guarded || n->in[1].guarded;
    cd_template_block c = *b;
    double runs = (double)INFINITY, all = (double)INFINITY;
    for (uint32_t k = 0; k < n_limit; k++) {
        c.unroll = limit[k];
        const double cost = runs_cost(n, m, &c);
        if (cost >= runs) continue;
        runs = cost;
        b->unroll = limit[k];
    }
    for (c.copy = 0; c.copy < (guarded ? CD_TEMPLATE_COPIES : 1); c.copy++) {
        const double cost = with_moves(n, m, &c, runs) + copies_cost(n, m, &c);
        if (cost >= all) continue;
        all = cost;
        b->copy = c.copy;
    }
    b->cost = all * waiting(n, m, b);
}
