/* Seconds of a step from its operators. Sums are kept by what they depend on: of a thousand mixes
 * of prompts and sequences most have a number of tokens that another had. */
#include <math.h>
#include <string.h>

#include "predictor/serving/serving_internal.h"
#include "predictor/serving/serving_memo.h"

/* What was asked before: a table of hashes, and arrays for small whole numbers. */

enum { PAGE = 512, FIRST = 256, COLUMN = 64 };

/* ---- memo ---- */
/* Whole numbers have their digits in the upper bits of a double: each product brings them down. */
static uint64_t hash_of(const double *key, size_t n) {
    uint64_t h = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &key[i], sizeof bits);
        h = (h ^ bits) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    return cd_rng_mix(h);
}

static double *entry(const cd_serving_memo *m, size_t i) {
    return m->page[i / PAGE] + i % PAGE * (m->n_key + m->n_value);
}

/* Slots alone move; the half of the hash that they have is enough to place them. */
static bool widen(cd_serving_memo *m) {
    const size_t n = m->n_slot ? 2 * m->n_slot : FIRST;
    uint64_t *wide = cd_mem_zalloc(n, sizeof *wide);
    if (!wide) return false;
    for (size_t i = 0; i < m->n_slot; i++) {
        size_t k = (size_t)(m->slot[i] >> 32) & (n - 1);
        if (!m->slot[i]) continue;
        while (wide[k]) k = (k + 1) & (n - 1);
        wide[k] = m->slot[i];
    }
    cd_mem_free(m->slot);
    m->slot = wide, m->n_slot = n;
    return true;
}

static double *add(cd_serving_memo *m, const double *key, uint64_t tag, size_t at) {
    if (m->n / PAGE == m->n_page) {
        if (CD_GROW(m->page, m->n_page, m->cap_page)) return NULL;
        if (!(m->page[m->n_page] = cd_mem_zalloc(PAGE * (m->n_key + m->n_value), sizeof(double))))
            return NULL;
        m->n_page++;
    }
    double *e = entry(m, m->n);
    memcpy(e, key, m->n_key * sizeof *key);
    m->slot[at] = tag << 32 | ++m->n;
    return e + m->n_key;
}

double *cd_serving_memo_at(cd_serving_memo *m, const double *key) {
    if (2 * (m->n + 1) > m->n_slot && !widen(m)) return NULL;
    const uint64_t tag = hash_of(key, m->n_key) >> 32;
    size_t i = (size_t)tag & (m->n_slot - 1);
    for (; m->slot[i]; i = (i + 1) & (m->n_slot - 1)) {
        if (m->slot[i] >> 32 != tag) continue;
        double *e = entry(m, (size_t)(m->slot[i] & UINT32_MAX) - 1);
        if (!memcmp(e, key, m->n_key * sizeof *key)) return e + m->n_key;
    }
    return add(m, key, tag, i);
}

void cd_serving_memo_free(cd_serving_memo *m) {
    for (size_t i = 0; i < m->n_page; i++) cd_mem_free(m->page[i]);
    cd_mem_free(m->page);
    cd_mem_free(m->slot);
    *m = (cd_serving_memo){.n_key = m->n_key, .n_value = m->n_value};
}

/* ---- sums ---- */
cdmpp_status cd_serving_sums_new(cd_serving_sums *s, size_t n_value, size_t near_a, size_t near_b,
                                 cdmpp_err *err) {
    *s = (cd_serving_sums){.near_a = near_a,
                           .near_b = near_b,
                           .far = {.n_key = 2, .n_value = n_value},
                           .column = cd_mem_zalloc(near_b + 1, sizeof *s->column)};
    return s->column ? CDMPP_OK : CD_FAIL(err, ENOMEM, "sums");
}

void cd_serving_sums_free(cd_serving_sums *s) {
    for (size_t k = 0; s->column && k < s->near_b; k++) cd_mem_free(s->column[k].v);
    cd_mem_free(s->column);
    cd_serving_memo_free(&s->far);
    *s = (cd_serving_sums){0};
}

static bool lengthen(cd_serving_column *c, size_t least, size_t most, size_t n_value) {
    size_t n = c->n ? c->n : COLUMN;
    while (n <= least) n *= 2;
    if (n > most) n = most;
    double *v = cd_mem_zalloc(n * n_value, sizeof *v);
    if (!v) return false;
    if (c->n) memcpy(v, c->v, c->n * n_value * sizeof *v);
    cd_mem_free(c->v);
    *c = (cd_serving_column){v, n};
    return true;
}

double *cd_serving_sums_at(cd_serving_sums *s, double a, double b) {
    const double key[] = {a, b};
    if (!(a >= 0 && b >= 0 && a < (double)s->near_a && b < (double)s->near_b))
        return cd_serving_memo_at(&s->far, key);
    const size_t i = (size_t)a, k = (size_t)b;
    if ((double)i < a || (double)k < b) return cd_serving_memo_at(&s->far, key);
    if (i >= s->column[k].n && !lengthen(&s->column[k], i, s->near_a, s->far.n_value)) return NULL;
    return &s->column[k].v[i * s->far.n_value];
}

/* lengths of caches are asked at so many points in each doubling, and lie on lines between */
#define LENGTHS_EACH 8.0

/* LENGTHS: DECODES at points between which lengths of caches lie, by the number of the point. EACH:
 * operators of COPIES or SHARED at most. A collective over nodes is two: dispatch, experts and
 * combine are five, the shared expert's three and an all-reduce, too. */
enum {
    TOKENS,
    ROWS,
    PROMPTS,
    DECODES,
    LENGTHS,
    STAGES,
    COPIES,
    SHARED,
    KINDS,
    EACH = 5,
    POINTS = 256
};

/* What was asked before, of one kind each. Of COPIES and SHARED the time of each operator; else the
 * sums of all but collectives, and of collectives. */
typedef struct {
    cd_serving_sums v;
    size_t engines; /* that have it */
} kept;

/* The operators of COPIES and SHARED as they follow each other, of a step with prompts and of one
 * that decodes. Their times are of one size each; kept by both sizes they would be hundreds of
 * times as many. */
typedef struct {
    struct {
        bool shared, link;
        int beside;
    } v[2 * EACH];
    size_t n;
} sequence;

struct cd_serving_engine {
    const cd_serving_model *m;
    cd_serving_layout l;
    const cd_serving_stack *stack;
    cd_serving_cost *c;
    double lift; /* stack->lift on this GPU */
    sequence sparse[2];
    size_t n_each[2];  /* operators of COPIES, of SHARED; of none nothing is asked */
    kept *kept[KINDS]; /* engines that differ in what a kind does not depend on have the same */
    double length[POINTS];
};

/* Links keep their rate when clocks fall: no lift lengthens them. */
static bool is_link(const cd_serving_op *v) {
    return v->link || cd_llm_op_family_of((cd_llm_op_kind)v->r.kind) == CD_LLM_OP_COLLECTIVE;
}

static bool equal(double a, double b) { return !(a < b) && !(a > b); }

bool cd_serving_engine_alike(const cd_serving_layout *a, const cd_serving_layout *b) {
    return equal(a->tp, b->tp) && equal(a->node, b->node) &&
           equal(a->node_bytes_s, b->node_bytes_s) && a->linear == b->linear &&
           a->project == b->project && a->shared == b->shared && a->recurrent == b->recurrent &&
           a->expert == b->expert && a->attention == b->attention && a->kv == b->kv &&
           a->base == b->base;
}

/* ---- sums ---- */
/* Of a step with more tokens, or of a prompt of more, each number is rare. */
enum { NEAR_TOKENS = 65536, NEAR_COPIES = 4096, NEAR_BATCH = 8 };

static void kept_free(kept *k) {
    if (!k || --k->engines) return;
    cd_serving_sums_free(&k->v);
    cd_mem_free(k);
}

static cdmpp_status kept_new(size_t n_value, size_t near_a, size_t near_b, kept **out,
                             cdmpp_err *err) {
    kept *k = cd_mem_zalloc(1, sizeof *k);
    if (!k) return CD_FAIL(err, ENOMEM, "engine");
    k->engines = 1;
    const cdmpp_status st = cd_serving_sums_new(&k->v, n_value, near_a, near_b, err);
    if (st) kept_free(k);
    else *out = k;
    return st;
}

static double point_length(double k) { return floor(exp2(k / LENGTHS_EACH)); }

static void sequence_of(const cd_serving_engine *e, bool decode, sequence *out) {
    cd_serving_ops o;
    cd_serving_ops_experts(e->m, &e->l, 1, 1, decode, &o);
    for (size_t i = 0; i < o.n; i++) {
        if (o.v[i].of != CD_SERVING_OF_COPIES && o.v[i].of != CD_SERVING_OF_SHARED) continue;
        out->v[out->n].shared = o.v[i].of == CD_SERVING_OF_SHARED;
        out->v[out->n].link = is_link(&o.v[i]);
        out->v[out->n++].beside = o.v[i].beside;
    }
}

/* Operators were measured in short bursts, at a full clock. Under a load that lasts a board at its
 * power's limit runs slower; one whose power is enough for everything does not. */
static double lift_of(const cd_serving_stack *s, double power) {
    if (!(s->lift_power > 0 && s->lift_power < 1) || !(power > 0)) return s->lift;
    return 1 + (s->lift - 1) * fmax(0, fmin(1, (1 - power) / (1 - s->lift_power)));
}

bool cd_serving_engine_same_experts(const cd_serving_layout *a, const cd_serving_layout *b) {
    return equal(a->dp, b->dp) && equal(a->moe_tp, b->moe_tp) && equal(a->moe_ep, b->moe_ep);
}

/* Whether what was asked of a kind is the same for a layout that is alike. */
static bool has_same(int what, const cd_serving_layout *a, const cd_serving_layout *b) {
    if (what < STAGES) return true;
    return what == STAGES ? equal(a->pp, b->pp) && equal(a->dp, b->dp)
                          : cd_serving_engine_same_experts(a, b);
}

static cdmpp_status keep_of(cd_serving_engine *e, const cd_serving_engine *like, cdmpp_err *err) {
    const size_t *n = e->n_each;
    const size_t near_a[KINDS] = {[COPIES] = NEAR_COPIES};
    const size_t near_b[KINDS] = {
        [PROMPTS] = NEAR_BATCH, [DECODES] = NEAR_BATCH, [LENGTHS] = POINTS};
    const size_t width[KINDS] = {[COPIES] = n[0], [SHARED] = n[1]};
    for (int k = 0; k < KINDS; k++) {
        if (like && has_same(k, &e->l, &like->l)) e->kept[k] = like->kept[k], e->kept[k]->engines++;
        else
            CD_TRY(kept_new(width[k] > 2 ? width[k] : 2, near_a[k] ? near_a[k] : NEAR_TOKENS,
                            near_b[k] ? near_b[k] : 1, &e->kept[k], err));
    }
    return CDMPP_OK;
}

cdmpp_status cd_serving_engine_new(const cd_serving_model *m, const cd_serving_layout *l,
                                   const cd_serving_stack *s, cd_serving_cost *c,
                                   const cd_serving_engine *like, cd_serving_engine **out,
                                   cdmpp_err *err) {
    cd_serving_engine *e = cd_mem_zalloc(1, sizeof *e);
    if (!e) return CD_FAIL(err, ENOMEM, "engine");
    *e = (cd_serving_engine){
        .m = m, .l = *l, .stack = s, .c = c, .lift = lift_of(s, cd_serving_cost_power(c))};
    for (int decode = 0; decode < 2; decode++) sequence_of(e, decode, &e->sparse[decode]);
    for (size_t i = 0; i < e->sparse[0].n; i++) e->n_each[e->sparse[0].v[i].shared]++;
    for (size_t k = 0; k < POINTS; k++) e->length[k] = point_length((double)k);
    const cdmpp_status st = keep_of(e, like, err);
    if (st) cd_serving_engine_free(e);
    else *out = e;
    return st;
}

void cd_serving_engine_free(cd_serving_engine *e) {
    if (!e) return;
    for (int k = 0; k < KINDS; k++) kept_free(e->kept[k]);
    cd_mem_free(e);
}

static double length_at(const cd_serving_engine *e, double k) {
    return k < POINTS ? e->length[(size_t)k] : point_length(k);
}

/* of: CD_SERVING_OF_*, the operators that count; -1: all. */
static cdmpp_status total(cd_serving_engine *e, const cd_serving_ops *o, int of, double out[EACH],
                          cdmpp_err *err) {
    double s[3][2] = {{0}};
    for (size_t i = 0; i < o->n; i++) {
        double t;
        if (of >= 0 && o->v[i].of != of) continue;
        CD_TRY(cd_err_key(err, cd_serving_cost_s(e->c, &o->v[i], &t, err), o->v[i].name));
        s[o->v[i].beside][is_link(&o->v[i])] += o->v[i].count * t;
    }
    const double *longer = s[s[1][0] + s[1][1] < s[2][0] + s[2][1] ? 2 : 1];
    for (int link = 0; link < 2; link++) out[link] = s[0][link] + longer[link];
    return CDMPP_OK;
}

static cdmpp_status each(cd_serving_engine *e, const cd_serving_ops *o, int of, double out[EACH],
                         cdmpp_err *err) {
    for (size_t i = 0, n = 0; i < o->n; i++) {
        double t;
        if (o->v[i].of != of) continue;
        CD_TRY(cd_err_key(err, cd_serving_cost_s(e->c, &o->v[i], &t, err), o->v[i].name));
        out[n++] = o->v[i].count * t;
    }
    return CDMPP_OK;
}

static cdmpp_status fresh(cd_serving_engine *e, int what, double a, double b, double out[EACH],
                          cdmpp_err *err) {
    static const int of[] = {[TOKENS] = CD_SERVING_OF_TOKENS,
                             [ROWS] = CD_SERVING_OF_ROWS,
                             [PROMPTS] = -1,
                             [DECODES] = -1,
                             [LENGTHS] = -1,
                             [COPIES] = CD_SERVING_OF_COPIES,
                             [SHARED] = CD_SERVING_OF_SHARED,
                             [STAGES] = CD_SERVING_OF_STAGES};
    cd_serving_ops o;
    if (what == PROMPTS) cd_serving_ops_prompt(e->m, &e->l, b, a, &o);
    else if (what == DECODES) cd_serving_ops_decode(e->m, &e->l, b, a, &o);
    else if (what == LENGTHS) cd_serving_ops_decode(e->m, &e->l, a, length_at(e, b), &o);
    else if (what == COPIES || what == SHARED) cd_serving_ops_experts(e->m, &e->l, a, a, false, &o);
    else cd_serving_ops_rest(e->m, &e->l, a, a, a, false, &o);
    return what == COPIES || what == SHARED ? each(e, &o, of[what], out, err)
                                            : total(e, &o, of[what], out, err);
}

/* Where its values are; of all but 0 nothing was asked yet, or nothing takes time. b: sequences of
 * PROMPTS and DECODES, the point of LENGTHS, else 0. */
static cdmpp_status known_of(cd_serving_engine *e, int what, double a, double b, const double **out,
                             cdmpp_err *err) {
    cd_serving_sums *t = &e->kept[what]->v;
    double *v = cd_serving_sums_at(t, a, b), s[EACH] = {0};
    if (!v) return CD_FAIL(err, ENOMEM, "sums");
    if (!(v[0] > 0 || v[1] > 0)) {
        CD_TRY(fresh(e, what, a, b, s, err));
        memcpy(v, s, t->far.n_value * sizeof *v);
    }
    *out = v;
    return CDMPP_OK;
}

static cdmpp_status asked_new(cd_serving_engine *e, int what, double a, double b, double lift,
                              double *out, cdmpp_err *err) {
    const double *v;
    CD_TRY(known_of(e, what, a, b, &v, err));
    *out = lift * v[0] + v[1];
    return CDMPP_OK;
}

/* The time of all with the lift; not of COPIES and SHARED. Most of a sweep is this line. */
static inline __attribute__((always_inline)) cdmpp_status asked(cd_serving_engine *e, int what,
                                                                double a, double b, double lift,
                                                                double *out, cdmpp_err *err) {
    const double *v = cd_serving_sums_near(&e->kept[what]->v, a, b);
    if (!v || !(v[0] > 0 || v[1] > 0)) return asked_new(e, what, a, b, lift, out, err);
    *out = lift * v[0] + v[1];
    return CDMPP_OK;
}

/* Operators of tokens of all copies, and those of the shared expert between them, in the order in
 * which they were summed ever. */
static cdmpp_status copies_s(cd_serving_engine *e, bool decode, double tokens, double all,
                             double lift, double *out, cdmpp_err *err) {
    const sequence *q = &e->sparse[decode];
    const double *of[2] = {NULL};
    double s[3] = {0};
    size_t n[2] = {0};
    if (e->n_each[0]) CD_TRY(known_of(e, COPIES, all, 0, &of[0], err));
    if (e->n_each[1]) CD_TRY(known_of(e, SHARED, tokens, 0, &of[1], err));
    for (size_t i = 0; i < q->n; i++)
        s[q->v[i].beside] += (q->v[i].link ? 1 : lift) * of[q->v[i].shared][n[q->v[i].shared]++];
    *out = s[0] + fmax(s[1], s[2]);
    return CDMPP_OK;
}

/* Everything but attention. */
static cdmpp_status rest_s(cd_serving_engine *e, bool decode, double tokens, double rows,
                           double all, double lift, double *out, cdmpp_err *err) {
    double row, copies = 0, stages = 0;
    CD_TRY(asked(e, TOKENS, tokens, 0, lift, out, err));
    CD_TRY(asked(e, ROWS, rows, 0, lift, &row, err));
    if (e->m->sparse_layers > 0) CD_TRY(copies_s(e, decode, tokens, all, lift, &copies, err));
    if (e->l.pp > 1) CD_TRY(asked(e, STAGES, tokens, 0, lift, &stages, err));
    *out += row + copies + stages;
    return CDMPP_OK;
}

/* New tokens behind `past` computed ones take the longest of three: as without these; the triangle
 * of all less that of the past, and what a call takes at least, which both have; one token's
 * reading of the cache. */
typedef enum { ALONE, BEHIND, CACHE } attention;

static cdmpp_status attention_s(cd_serving_engine *e, double batch, double n, double past,
                                double lift, double *out, attention *a, cdmpp_err *err) {
    double all, less, least, cache;
    *out = 0, *a = ALONE;
    if (!(batch > 0) || !(n > 0)) return CDMPP_OK;
    CD_TRY(asked(e, PROMPTS, n, batch, lift, out, err));
    if (!(past > 0)) return CDMPP_OK;
    CD_TRY(asked(e, PROMPTS, n + past, batch, lift, &all, err));
    CD_TRY(asked(e, PROMPTS, past, batch, lift, &less, err));
    CD_TRY(asked(e, PROMPTS, 1, batch, lift, &least, err));
    CD_TRY(asked(e, DECODES, past, batch, lift, &cache, err));
    if (all - less + least > *out) *out = all - less + least, *a = BEHIND;
    if (cache > *out) *out = cache, *a = CACHE;
    return CDMPP_OK;
}

static cdmpp_status prompts_s(cd_serving_engine *e, double batch, double n, double past,
                              double lift, double *out, cdmpp_err *err) {
    attention a;
    return attention_s(e, batch, n, past, lift, out, &a, err);
}

static cdmpp_status decode_s(cd_serving_engine *e, double batch, double context, double lift,
                             double *out, cdmpp_err *err) {
    const double k = floor(LENGTHS_EACH * log2(fmax(context, 1))), lo = length_at(e, k);
    double a, b, hi = length_at(e, k + 1), step = k + 1;
    while (hi <= lo) hi = length_at(e, ++step);
    CD_TRY(asked(e, LENGTHS, batch, k, lift, &a, err));
    CD_TRY(asked(e, LENGTHS, batch, step, lift, &b, err));
    *out = a + (b - a) * fmax(0, fmin(1, (context - lo) / (hi - lo)));
    return CDMPP_OK;
}

static double tokens_of(const cd_serving_step *s) {
    return s->prompts * s->isl + s->part + s->decodes;
}

/* gpu_s: with the lift. *waits: the GPU waits for the host. A step that decodes is one graph. One
 * with prompts is handed out kernel by kernel while the GPU computes, unless it is so small that a
 * library has graphs of it. */
static double with_host(const cd_serving_engine *e, const cd_serving_step *s, bool decode,
                        double gpu_s, bool *waits) {
    const cd_serving_stack *k = e->stack;
    /* a layer has two */
    const double parts =
        e->m->attention_layers + e->m->state.layers + e->m->dense_layers + e->m->sparse_layers;
    const double handed_out = tokens_of(s) > e->l.graph ? k->layer_s * parts / 2 : 0;
    const double host = k->step_s + k->sequence_s * (s->decodes + s->prompts + (s->part > 0)),
                 gpu = decode ? gpu_s : fmax(gpu_s, handed_out);
    *waits = gpu > gpu_s || (k->overlap && host > gpu);
    return k->overlap ? fmax(host, gpu) : host + gpu;
}

cdmpp_status cd_serving_step_s(cd_serving_engine *e, const cd_serving_step *s, double *out,
                               cdmpp_err *err) {
    const double tokens = tokens_of(s), rows = fmax(1, s->decodes + s->prompts);
    const bool decode = !(tokens > s->decodes);
    const double lift = decode ? 1 : e->lift;
    double rest, prompts, part, last = 0;
    bool waits;
    if (!(tokens > 0)) return *out = 0, CDMPP_OK;
    CD_TRY(rest_s(e, decode, tokens, rows, tokens + s->others, lift, &rest, err));
    CD_TRY(prompts_s(e, s->prompts, s->isl, s->past, lift, &prompts, err));
    CD_TRY(prompts_s(e, 1, s->part, s->part_past, lift, &part, err));
    if (s->decodes > 0) CD_TRY(decode_s(e, s->decodes, s->context, lift, &last, err));
    *out = with_host(e, s, decode, rest + prompts + part + last, &waits);
    return CDMPP_OK;
}

/* ---- a table ---- */
void cd_serving_rows_free(cd_serving_rows *r) {
    cd_mem_free(r->v);
    *r = (cd_serving_rows){0};
}

/* sign: 1, or -1 of a list that is taken off. */
static cdmpp_status add_rows(cd_serving_engine *e, const cd_serving_ops *o, double sign,
                             cd_serving_rows *out, cdmpp_err *err) {
    double s[3] = {0};
    const size_t first = out->n;
    for (size_t i = 0; i < o->n; i++) {
        const cd_serving_op *v = &o->v[i];
        cd_serving_time t;
        CD_TRY(cd_err_key(err, cd_serving_cost_of(e->c, v, &t, err), v->name));
        if (CD_GROW(out->v, out->n, out->cap)) return CD_FAIL(err, ENOMEM, "%zu operators", out->n);
        out->v[out->n++] =
            (cd_serving_row){v->name,    v->r,     sign * v->count, sign * v->count * t.s,
                             t.sigma,    t.how,    t.news,          t.alike,
                             t.twin,     t.kernel, t.known,         false,
                             is_link(v), 0};
        s[v->beside] += v->count * t.s;
    }
    /* of two that take as long the first counts, as in total */
    const int longer = s[1] < s[2] ? 2 : 1;
    for (size_t i = 0; i < o->n; i++)
        out->v[first + i].hidden = o->v[i].beside && o->v[i].beside != longer;
    return CDMPP_OK;
}

/* As attention_s. */
static cdmpp_status add_prompts(cd_serving_engine *e, const cd_serving_prompt *p,
                                cd_serving_rows *out, cdmpp_err *err) {
    cd_serving_ops o;
    attention a;
    double s;
    if (!(p->count > 0) || !(p->n > 0)) return CDMPP_OK;
    CD_TRY(attention_s(e, p->count, p->n, p->past, 1, &s, &a, err));
    const size_t first = out->n;
    if (a == CACHE) cd_serving_ops_decode(e->m, &e->l, p->count, p->past, &o);
    else cd_serving_ops_prompt(e->m, &e->l, p->count, a == BEHIND ? p->n + p->past : p->n, &o);
    CD_TRY(add_rows(e, &o, 1, out, err));
    if (a != BEHIND) return CDMPP_OK;
    cd_serving_ops_prompt(e->m, &e->l, p->count, p->past, &o);
    CD_TRY(add_rows(e, &o, -1, out, err));
    cd_serving_ops_prompt(e->m, &e->l, p->count, 1, &o);
    CD_TRY(add_rows(e, &o, 1, out, err));
    for (size_t i = first; i < out->n; i++) out->v[i].group = first + 1;
    return CDMPP_OK;
}

/* The variance of all rows, of which `shared` is common. What is taken off is wrong as what it is
 * taken from is, by one kernel's factor: of a group the difference counts. */
static double variance_of(const cd_serving_rows *r, double shared) {
    double all = 0, square = 0;
    for (size_t i = 0, end; i < r->n; i = end) {
        double s = 0, sigma = 0;
        for (end = i; end == i || (end < r->n && r->v[i].group && r->v[end].group == r->v[i].group);
             end++)
            if (!r->v[end].hidden) s += r->v[end].total_s, sigma = fmax(sigma, r->v[end].sigma);
        all += s * sigma;
        square += s * sigma * s * sigma;
    }
    return shared * all * all + (1 - shared) * square;
}

static void sum_up(cd_serving_engine *e, const cd_serving_step *s, bool decode, double shared,
                   cd_serving_rows *out) {
    double lifted = 0;
    for (size_t i = 0; i < out->n; i++) {
        const cd_serving_row *r = &out->v[i];
        if (r->hidden) continue;
        out->total_s += r->total_s;
        lifted += (decode || r->link ? 1 : e->lift) * r->total_s;
        out->how_s[r->how] += r->total_s;
        for (int k = 0; k < CD_LLM_OP_N_NEWS; k++)
            out->new_s[k] += r->news >> k & 1u ? r->total_s : 0;
        out->unknown_s += r->known ? 0 : r->total_s;
    }
    const double gpu_s = out->total_s;
    out->total_s = with_host(e, s, decode, lifted, &out->waits);
    out->host_s = out->total_s - gpu_s;
    out->sigma = sqrt(variance_of(out, shared)) / out->total_s;
}

cdmpp_status cd_serving_batch_rows(cd_serving_engine *e, const cd_serving_batch *b, double shared,
                                   cd_serving_rows *out, cdmpp_err *err) {
    /* what the host's part depends on: tokens and sequences. A mean of lengths times their number
     * may be more than their sum */
    cd_serving_step like = {.decodes = b->decodes};
    cd_serving_ops o;
    double tokens = b->decodes;
    *out = (cd_serving_rows){.v = out->v, .cap = out->cap};
    for (size_t i = 0; i < b->n; i++)
        tokens += b->prompt[i].count * b->prompt[i].n, like.prompts += b->prompt[i].count;
    if (!(tokens > 0)) return CDMPP_OK;
    const bool decode = !(tokens > b->decodes);
    if (like.prompts > 0) like.prompts--, like.part = tokens - b->decodes;
    cd_serving_ops_rest(e->m, &e->l, tokens, fmax(1, b->rows), tokens + b->others, decode, &o);
    CD_TRY(add_rows(e, &o, 1, out, err));
    for (size_t i = 0; i < b->n; i++) CD_TRY(add_prompts(e, &b->prompt[i], out, err));
    if (b->decodes > 0) {
        cd_serving_ops_decode(e->m, &e->l, b->decodes, floor(b->context), &o);
        CD_TRY(add_rows(e, &o, 1, out, err));
    }
    sum_up(e, &like, decode, shared, out);
    return CDMPP_OK;
}

cdmpp_status cd_serving_step_rows(cd_serving_engine *e, const cd_serving_step *s, double shared,
                                  cd_serving_rows *out, cdmpp_err *err) {
    const cd_serving_prompt p[] = {{s->prompts, s->isl, s->past},
                                   {s->part > 0, s->part, s->part_past}};
    const cd_serving_batch b = {p,         sizeof p / sizeof *p,   s->decodes, s->context,
                                s->others, s->decodes + s->prompts};
    return cd_serving_batch_rows(e, &b, shared, out, err);
}
