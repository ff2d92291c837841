/* The analytic cost of a block, in cycles of one core: its multiply-adds and loads, accumulators that leave their registers, bytes that come from the next
 * cache, the copy of a guarded operand, and the loops themselves.
 *
 * Only the order that it gives matters, so its unit is one vector multiply-add. */
#include <math.h>

#include "predictor/tune/template/template_internal.h"

/* Of one vector multiply-add: a vector load; the load of one element to all lanes; one element to its lane; how many must be under way. Of a run of the R1 loops:
 * its beginning and end. Of a turn of a loop. Of a row of a copy, of a vector of it. Cut on training tasks (docs/results/single.md). */
static const double load = 1, spread = 0.5, gather = 1.5, latency = 5, run = 12, turn = 1, row = 6, move = 2;
/* Bytes that come in that time from L2 and from what is behind it. */
static const double from_l2 = 48, from_far = 12;
/* Loops whose text is longer than so many multiply-adds no longer fit the decoded instructions. */
static const double text = 700, long_text = 1.25;

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
static int64_t needed(const cd_template_nest *n, const cd_template_operand *o, const int32_t *s3, bool with_vector) {
    int64_t k = 1;
    for (uint32_t a = 0; a < n->n_space; a++)
        if (cd_template_touches(o, a) && (with_vector || a != vector_axis(n))) k *= s3[a];
    return k;
}

int64_t cd_template_accumulators(const cd_template_nest *n, const cd_template_machine *m, const int32_t *s3) {
    const uint32_t v = vector_axis(n);
    return needed(n, &n->out, s3, false) * cd_template_vectors(m, s3[v]);
}

/* One operand's vectors stay in registers while the other's elements pass. */
int64_t cd_template_registers(const cd_template_nest *n, const cd_template_machine *m, const int32_t *s3) {
    const uint32_t v = vector_axis(n);
    int64_t rows = 0;
    for (int k = 0; k < 2; k++)
        if (cd_template_touches(&n->in[k], v)) rows += cd_template_vectors(m, s3[v]);
    return cd_template_accumulators(n, m, s3) + rows;
}

static double loads_of(const cd_template_nest *n, const cd_template_machine *m, const cd_template_operand *o, const int32_t *s3) {
    const uint32_t v = vector_axis(n);
    if (!cd_template_touches(o, v)) return spread * (double)needed(n, o, s3, false);
    if (!in_a_row(n, o)) return gather * (double)needed(n, o, s3, true);
    return load * (double)(needed(n, o, s3, false) * cd_template_vectors(m, s3[v]));
}

double cd_template_kernel_cost(const cd_template_nest *n, const cd_template_machine *m, const int32_t *s3) {
    const double sums = (double)cd_template_accumulators(n, m, s3);
    const double loads = loads_of(n, m, &n->in[0], s3) + loads_of(n, m, &n->in[1], s3);
    return fmax(fmax(sums, loads), latency);
}

/* ---- bytes ---- */
/* Elements of a row end in whole cache lines, except where the operand was packed or copied. */
int64_t cd_template_bytes(const cd_template_nest *n, const cd_template_operand *o, const int64_t *tile) {
    int64_t elements = 1, last = 1;
    for (uint32_t d = 0; d < o->rank; d++) {
        int64_t reach = 1, most = 1;
        for (uint32_t a = 0; a < n->n_axis; a++) {
            if (!o->factor[d][a]) continue;
            reach += llabs(o->factor[d][a]) * (tile[a] - 1);
            most = cd_template_mul(most, tile[a]);
        }
        last = reach < most ? reach : most;
        if (last > o->extent[d]) last = o->extent[d];
        if (d + 1 < o->rank) elements = cd_template_mul(elements, last);
    }
    const int64_t bytes = last * CD_TEMPLATE_ELEMENT;
    return cd_template_mul(elements, o->packed || o->guarded ? bytes : (bytes + CD_TEMPLATE_LINE - 1) / CD_TEMPLATE_LINE * CD_TEMPLATE_LINE);
}

/* ---- the loops around the kernel ---- */
typedef struct {
    uint32_t n;
    uint32_t axis[5 * CD_TEMPLATE_AXES];
    int64_t trips[5 * CD_TEMPLATE_AXES];
    int64_t tile[5 * CD_TEMPLATE_AXES + 1][CD_TEMPLATE_AXES]; /* [k]: what lies inside of loops 0 .. k-1 */
} loops;

static void add_loop(loops *l, uint32_t axis, int64_t trips, uint32_t n_axis) {
    if (trips < 2) return;
    l->axis[l->n] = axis;
    l->trips[l->n] = trips;
    for (uint32_t a = 0; a < n_axis; a++) l->tile[l->n + 1][a] = a == axis ? l->tile[l->n][a] / trips : l->tile[l->n][a];
    l->n++;
}

static void loops_of(const cd_template_nest *n, const cd_template_block *b, loops *l) {
    l->n = 0;
    for (uint32_t a = 0; a < n->n_axis; a++) l->tile[0][a] = n->extent[a];
    for (uint32_t a = 0; a < n->n_space; a++) add_loop(l, a, n->extent[a] / ((int64_t)b->s1[a] * b->s2[a] * b->s3[a]), n->n_axis);
    for (uint32_t a = 0; a < n->n_space; a++) add_loop(l, a, b->s1[a], n->n_axis);
    for (uint32_t a = n->n_space; a < n->n_axis; a++) add_loop(l, a, n->extent[a] / b->r1[a], n->n_axis);
    for (uint32_t a = 0; a < n->n_space; a++) add_loop(l, a, b->s2[a], n->n_axis);
    for (uint32_t a = n->n_space; a < n->n_axis; a++) add_loop(l, a, b->r1[a], n->n_axis);
}

/* The outermost place from which on everything fits: what lies there comes once for each turn of the loops outside, but for turns of the nearest ones that do
 * not move this operand. */
static double traffic(const cd_template_nest *n, const loops *l, double cache) {
    const cd_template_operand *o[3] = {&n->in[0], &n->in[1], &n->out};
    uint32_t at = 0;
    double bytes[3], all = 0;
    for (;; at++) {
        double sum = 0;
        for (int k = 0; k < 3; k++) sum += bytes[k] = (double)cd_template_bytes(n, o[k], l->tile[at]);
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

/* ---- the parts ---- */
static double product(const int32_t *len, uint32_t from, uint32_t to) {
    double p = 1;
    for (uint32_t k = from; k < to; k++) p *= len[k];
    return p;
}

/* Turns of the R1 loops that stand in one text: from the inside out as long as the limit of the unroll pragma allows. */
static double unrolled(const cd_template_nest *n, const cd_template_block *b) {
    double rows = 1, k = 1;
    for (uint32_t a = 0; a + 1 < n->n_space; a++) rows *= b->s3[a];
    for (uint32_t a = n->n_axis; a-- > n->n_space;) {
        if (rows * k * b->r1[a] > b->unroll) break;
        k *= b->r1[a];
    }
    return k;
}

static double copy_cost(const cd_template_nest *n, const cd_template_machine *m, const cd_template_operand *o, const int64_t *tile, double times) {
    const double bytes = (double)cd_template_bytes(n, o, tile);
    int64_t last = 1;
    for (uint32_t a = 0; a < n->n_axis; a++)
        if (o->factor[o->rank - 1][a]) last *= tile[a];
    if (last > o->extent[o->rank - 1]) last = o->extent[o->rank - 1];
    const double rows = bytes / (double)(last * CD_TEMPLATE_ELEMENT);
    return times * rows * (row + move * (double)cd_template_vectors(m, last));
}

/* A copy for each S0 or R0 block is made again where blocks overlap; one before everything goes through the caches once more. */
static double guarded_cost(const cd_template_nest *n, const cd_template_machine *m, const cd_template_block *b, const cd_template_operand *o) {
    int64_t tile[CD_TEMPLATE_AXES];
    double times = 1;
    for (uint32_t a = 0; a < n->n_axis; a++) {
        const bool space = a < n->n_space;
        const int64_t l2 = space ? (int64_t)b->s2[a] * b->s3[a] : b->r1[a], s0 = space ? l2 * b->s1[a] : n->extent[a];
        tile[a] = b->copy == CD_TEMPLATE_COPY_ROOT ? n->extent[a] : b->copy == CD_TEMPLATE_COPY_OUTER ? s0 : l2;
        times *= (double)n->extent[a] / (double)tile[a];
    }
    const double bytes = times * (double)cd_template_bytes(n, o, tile), cache = b->copy == CD_TEMPLATE_COPY_ROOT ? bytes : (double)cd_template_bytes(n, o, tile);
    const double away = cache > CD_TEMPLATE_L2_SHARE * (double)m->l2_bytes ? bytes / from_far : cache > CD_TEMPLATE_L1_SHARE * (double)m->l1_bytes ? bytes / from_l2 : 0;
    return copy_cost(n, m, o, tile, times) + away;
}

double cd_template_cost(const cd_template_nest *n, const cd_template_machine *m, const cd_template_block *b) {
    loops l;
    double points = 1, runs = 1;
    loops_of(n, b, &l);
    for (uint32_t a = 0; a < n->n_axis; a++) points *= (double)n->extent[a];
    const double sums = (double)cd_template_accumulators(n, m, b->s3), turns = points / product(b->s3, 0, n->n_space), k = unrolled(n, b);
    runs = turns / product(b->r1, n->n_space, n->n_axis);
    double kernel = cd_template_kernel_cost(n, m, b->s3);
    if (sums * k > text) kernel *= long_text;
    double cycles = turns * (kernel + turn / k) + runs * (run + 2 * sums);
    cycles += traffic(n, &l, CD_TEMPLATE_L1_SHARE * (double)m->l1_bytes) / from_l2 + traffic(n, &l, CD_TEMPLATE_L2_SHARE * (double)m->l2_bytes) / from_far;
    for (int i = 0; i < 2; i++)
        if (n->in[i].guarded) cycles += guarded_cost(n, m, b, &n->in[i]);
    return cycles;
}
