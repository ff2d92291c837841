/* Seconds of an operator: which rows of the tables speak for it, interpolation over several sizes,
 * and a memory of what was asked. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/serving/serving_internal.h"
#include "predictor/serving/serving_memo.h"

#define LEVEL  0.9
#define NORMAL 1.6449 /* half of an interval of that level, in standard deviations */
/* of the bandwidth that a small kernel reaches: docs/reference/serving.md */
#define SMALL_SHARE 0.8
#define HAND_OVER_S 1e-5

enum { KEY = 2 + CD_LLM_OP_MAX_SIZE, VALUE = 4 }; /* numbers of a question; of its answer */

struct cd_serving_cost {
    const cd_llm_op_model *m;
    cd_llm_op_asker *a;
    bool borrowed; /* another's */
    cd_serving_tables *t;
    const cd_device *d;
    long device; /* in the tables; CD_LLM_OP_NONE: not there */
    bool rows;   /* the tables have some of it, or of a GPU of the same chip */
    /* numbers of the name that questions carry, and of a stack of another library that the model
     * knows; the same: it knows none */
    uint32_t stack, other;
    cd_serving_kernels kernels;
    cd_serving_kernel named[CD_LLM_OP_N_KIND];
    double between_s;
    /* CD_LLM_OP_NEW_* that answers tell: a stack without a version is none that is new */
    unsigned told;
    /* of the intervals that are asked for; 0: none, they take half of the time */
    double level;
    cd_serving_memo known; /* key_of to value_of */
    size_t asked;
};

/* ---- which library ---- */
static bool same_maker(const char *a, const char *b) {
    const size_t n = strcspn(a, "-");
    return n && n == strcspn(b, "-") && !strncmp(a, b, n);
}

/* The asked stack where it was measured, else the one of its library with the most rows; 0: none
 * has any. */
static uint32_t pick_stack(const cd_serving_cost *c, uint32_t asked, long device) {
    const cd_dict *names = &c->t->t.names;
    uint32_t best = 0;
    size_t most = 0;
    for (uint32_t s = 1; device >= 0 && s < names->n; s++) {
        size_t rows = 0;
        for (size_t i = 0; i < c->t->n_group; i++)
            rows += c->t->group[i].stack == s && c->t->group[i].device == (uint32_t)device
                        ? c->t->group[i].rows
                        : 0;
        if (rows && s == asked) return s;
        if (rows > most && same_maker(names->text[s], names->text[asked])) most = rows, best = s;
    }
    return best;
}

/* In the tables, the GPU of the same chip that answers a family where this one has no rows. Each
 * family has its own: a training may have products of one GPU and attention of another. */
static long like_of(const cd_serving_cost *c, cd_llm_op_family f) {
    const cd_device *twin = cd_llm_op_twin_of(c->m, c->d, f);
    return twin ? cd_llm_op_table_device(&c->t->t, twin) : CD_LLM_OP_NONE;
}

/* Products first: most of a step is theirs. */
static uint32_t measured_stack(const cd_serving_cost *c, uint32_t asked) {
    uint32_t s = pick_stack(c, asked, c->device);
    for (int f = 0; !s && f < CD_LLM_OP_N_FAMILY; f++)
        s = pick_stack(c, asked, like_of(c, (cd_llm_op_family)f));
    return s ? s : asked;
}

static bool has_rows(const cd_serving_cost *c) {
    bool any = c->device >= 0;
    for (int f = 0; !any && f < CD_LLM_OP_N_FAMILY; f++) any = like_of(c, (cd_llm_op_family)f) >= 0;
    return any;
}

/* The last one that the model was trained on: the newest. */
static cdmpp_status pick_other(cd_serving_cost *c, cdmpp_err *err) {
    c->other = c->stack;
    for (size_t i = c->m->stacks.n; i-- > 0;)
        if (!same_maker(c->m->stacks.text[i], c->t->t.names.text[c->stack]))
            return cd_dict_add(&c->t->t.names,
                               (cd_str){c->m->stacks.text[i], strlen(c->m->stacks.text[i])},
                               &c->other, err);
    return CDMPP_OK;
}

cdmpp_status cd_serving_cost_new(const cd_llm_op_model *m, cd_serving_tables *t, const cd_device *d,
                                 const char *stack, const char *kernels, double between_s,
                                 cd_serving_cost **out, cdmpp_err *err) {
    cd_serving_cost *c = cd_mem_zalloc(1, sizeof *c);
    if (!c) return CD_FAIL(err, ENOMEM, "costs");
    *c = (cd_serving_cost){.m = m,
                           .t = t,
                           .d = d,
                           .device = cd_llm_op_table_device(&t->t, d),
                           .between_s = between_s,
                           .known = {.n_key = KEY, .n_value = VALUE},
                           .told = ~(strchr(stack, '-') ? 0u : (unsigned)CD_LLM_OP_NEW_STACK)};
    c->rows = has_rows(c);
    cdmpp_status st = cd_dict_add(&t->t.names, (cd_str){stack, strlen(stack)}, &c->stack, err);
    if (!st) c->stack = measured_stack(c, c->stack);
    if (!st) st = pick_other(c, err);
    if (!st) st = cd_serving_kernels_read(kernels, &c->kernels, err);
    for (int k = 0; !st && k < CD_LLM_OP_N_KIND; k++)
        st = cd_serving_kernels_find(&c->kernels, t, m, (uint8_t)k, &c->named[k], err);
    if (!st) st = cd_llm_op_asker_new(m, &t->t, &t->t.names, &c->a, err);
    if (st) cd_serving_cost_free(c);
    else *out = c;
    return st;
}

cdmpp_status cd_serving_cost_twin(const cd_serving_cost *c, cd_serving_cost **out, cdmpp_err *err) {
    cd_serving_cost *t = cd_mem_zalloc(1, sizeof *t);
    if (!t) return CD_FAIL(err, ENOMEM, "costs");
    *t = *c;
    t->known = (cd_serving_memo){.n_key = KEY, .n_value = VALUE}, t->borrowed = true, t->asked = 0;
    return *out = t, CDMPP_OK;
}

void cd_serving_cost_free(cd_serving_cost *c) {
    if (!c) return;
    if (!c->borrowed) cd_llm_op_asker_free(c->a);
    cd_serving_memo_free(&c->known);
    cd_mem_free(c);
}

void cd_serving_cost_counts(const cd_serving_cost *c, size_t *asked, size_t *fresh) {
    *asked = c->asked, *fresh = c->known.n;
}
const char *cd_serving_cost_stack(const cd_serving_cost *c) {
    return !c->rows ? "" : c->t->t.names.text[c->stack];
}

const cd_serving_kernel *cd_serving_cost_named(const cd_serving_cost *c) { return c->named; }
double cd_serving_cost_power(const cd_serving_cost *c) { return cd_llm_op_machine_power(c->d); }

/* ---- one question ---- */
static const char *kernel_name(const cd_serving_cost *c, uint32_t kernel) {
    return kernel ? c->t->t.names.text[kernel] : NULL;
}

/* How near: of a twin's answer, how near the twin was measured. */
static cdmpp_status point(const cd_serving_cost *c, const cd_llm_op_record *r, cd_serving_time *out,
                          cdmpp_err *err) {
    cd_llm_op_answer a;
    CD_TRY(cd_llm_op_ask_as_is(c->a, r, c->d, c->level, &a, err));
    const bool range = a.low_s > 0;
    *out = (cd_serving_time){a.latency_s,
                             range ? log(a.high_s / a.low_s) / (2 * NORMAL) : 0,
                             a.twin ? a.twin_how : a.how,
                             range || a.how == CD_LLM_OP_MEASURED,
                             a.news & c->told,
                             a.alike,
                             a.twin,
                             kernel_name(c, r->kernel)};
    return CDMPP_OK;
}

static cdmpp_status base_of(const cd_serving_cost *c, const cd_llm_op_record *r, double *out,
                            cdmpp_err *err) {
    cd_llm_op_estimate e;
    CD_TRY(cd_llm_op_estimate_of(r, c->d, &e, err));
    *out = log(e.base_s);
    return CDMPP_OK;
}

/* Sizes besides the axis that tables have grids of: between two of their values the ratio to the
 * estimate is interpolated. */
static unsigned grid_of(uint8_t kind) {
    switch (kind) {
    case CD_LLM_OP_GEMM: return 1u << 1 | 1u << 2; /* n, k */
    case CD_LLM_OP_PREFILL:
    case CD_LLM_OP_LATENT_PREFILL: return 1u << 2; /* batch */
    case CD_LLM_OP_DECODE:
    case CD_LLM_OP_LATENT_DECODE: return 1u << 1;
    default: return 0;
    }
}

/* The values of a size on both sides; false: it is one of them, or beyond. */
static bool bracket(const cd_serving_group *g, size_t k, double v, double *lo, double *hi) {
    size_t a = 0, b = g->n_size[k];
    while (a < b) {
        const size_t mid = a + (b - a) / 2;
        if (g->size[k][mid] < v) a = mid + 1;
        else b = mid;
    }
    if (!a || a == g->n_size[k] || g->size[k][a] <= v) return false;
    *lo = g->size[k][a - 1], *hi = g->size[k][a];
    return true;
}

static cdmpp_status corners(const cd_serving_cost *c, const cd_serving_group *g,
                            const cd_llm_op_record *r, unsigned sides, cd_serving_time *out,
                            cdmpp_err *err) {
    double lo, hi, at, below, above;
    cd_serving_time a, b;
    cd_llm_op_record q = *r;
    size_t k = 0;
    while (k < CD_LLM_OP_MAX_SIZE && !(sides >> k & 1u && bracket(g, k, r->size[k], &lo, &hi))) k++;
    if (k == CD_LLM_OP_MAX_SIZE) return point(c, r, out, err);
    const double w = log(r->size[k] / lo) / log(hi / lo);
    CD_TRY(base_of(c, r, &at, err));
    q.size[k] = lo;
    CD_TRY(base_of(c, &q, &below, err));
    CD_TRY(corners(c, g, &q, sides & ~(1u << k), &a, err));
    q.size[k] = hi;
    CD_TRY(base_of(c, &q, &above, err));
    CD_TRY(corners(c, g, &q, sides & ~(1u << k), &b, err));
    out->s = exp(at + (1 - w) * (log(a.s) - below) + w * (log(b.s) - above));
    out->sigma = (1 - w) * a.sigma + w * b.sigma;
    out->how = a.how > b.how ? a.how : b.how;
    if (out->how == CD_LLM_OP_MEASURED) out->how = CD_LLM_OP_INTERPOLATED;
    out->known = a.known && b.known;
    out->news = a.news | b.news;
    out->alike = a.alike ? a.alike : b.alike;
    out->twin = a.twin ? a.twin : b.twin;
    out->kernel = kernel_name(c, r->kernel);
    return CDMPP_OK;
}

static bool collective(uint8_t kind) {
    return kind == CD_LLM_OP_ALL_REDUCE || kind == CD_LLM_OP_ALL_GATHER ||
           kind == CD_LLM_OP_REDUCE_SCATTER || kind == CD_LLM_OP_ALL_TO_ALL;
}

static cdmpp_status of_group(const cd_serving_cost *c, const cd_serving_group *g,
                             cd_llm_op_record r, cd_serving_time *out, cdmpp_err *err) {
    cd_serving_time grid;
    const uint8_t alike = r.type != g->type ? (uint8_t)(g->type + 1)
                          : r.kv != g->kv   ? (uint8_t)(g->kv + 1)
                                            : 0;
    r.type = g->type, r.kv = g->kv, r.stack = g->stack, r.kernel = g->kernel;
    CD_TRY(point(c, &r, out, err));
    if (alike && !collective(r.kind)) out->alike = alike;
    const unsigned sides = grid_of(r.kind);
    if (out->how != CD_LLM_OP_PREDICTED || !sides) return CDMPP_OK;
    CD_TRY(corners(c, g, &r, sides, &grid, err));
    grid.alike = out->alike;
    if (grid.how != CD_LLM_OP_PREDICTED) *out = grid;
    return CDMPP_OK;
}

enum { TWIN = 3, OTHER = 2 * TWIN };

static bool sixteen(uint8_t type) { return type == CD_LLM_OP_T_BF16 || type == CD_LLM_OP_T_F16; }

/* 0: the same type; TWIN: the other one of 16 bits, which moves as many bytes and runs on the same
 * units; OTHER. */
static int type_rank(uint8_t a, uint8_t b) {
    return a == b ? 0 : sixteen(a) && sixteen(b) ? TWIN : OTHER;
}

/* Rows of NCCL name no kernel, or name it. A serving library's own all-reduce writes to its peers'
 * memory, so a group over several nodes cannot use it. */
static bool reaches(const cd_serving_cost *c, uint32_t kernel, bool nodes) {
    return !nodes || !kernel || strcasestr(c->t->t.names.text[kernel], "nccl");
}

/* The kernel that was named for operators like this one; 0: none was, or it does not reach as
 * far. */
static uint32_t named_for(const cd_serving_cost *c, const cd_llm_op_record *r, bool nodes) {
    const uint32_t kernel = c->named[r->kind].of[r->type];
    return reaches(c, kernel, nodes) ? kernel : 0;
}

/* 0: the stack itself, 1: its library, 2: another, TWIN to TWIN + 2: of these with a twin of the
 * type; OTHER: rows of something else. Collectives move bytes, whatever their type is. */
static int rank_of(const cd_serving_cost *c, const cd_serving_group *g, const cd_llm_op_record *r,
                   bool nodes, long device) {
    const char *const *name = (const char *const *)c->t->t.names.text;
    const int a = type_rank(g->type, r->type), b = type_rank(g->kv, r->kv), twin = a > b ? a : b;
    if (g->kind != r->kind || device < 0 || g->device != (uint32_t)device ||
        !reaches(c, g->kernel, nodes))
        return OTHER;
    if (named_for(c, r, nodes) && !cd_serving_kernels_has(&c->kernels, g->kind, name[g->kernel]))
        return OTHER;
    if (!collective(r->kind) && twin == OTHER) return OTHER;
    if (collective(r->kind) && cd_llm_op_type_weight_bytes((cd_llm_op_type)g->type) < 2)
        return OTHER;
    return (collective(r->kind) ? 0 : twin) + (g->stack == c->stack                         ? 0
                                               : same_maker(name[g->stack], name[c->stack]) ? 1
                                                                                            : 2);
}

static int best_of(const cd_serving_cost *c, const cd_llm_op_record *r, bool nodes, long device) {
    int best = OTHER;
    for (size_t i = 0; i < c->t->n_group; i++)
        if (rank_of(c, &c->t->group[i], r, nodes, device) < best)
            best = rank_of(c, &c->t->group[i], r, nodes, device);
    return best;
}

/* Of several kernels the one that was measured nearest: a library has chosen it. Of those alike the
 * fastest. */
static cdmpp_status by_stack(const cd_serving_cost *c, const cd_llm_op_record *r, bool nodes,
                             cd_serving_time *out, cdmpp_err *err) {
    cd_llm_op_record plain = *r;
    int best = best_of(c, r, nodes, c->device);
    const cd_device *twin = best < OTHER ? NULL : cd_llm_op_twin_for(c->m, r, c->d);
    const long device = twin ? cd_llm_op_table_device(&c->t->t, twin) : c->device;
    bool any = false;
    if (best == OTHER) best = best_of(c, r, nodes, device);
    for (size_t i = 0; best < OTHER && i < c->t->n_group; i++) {
        cd_serving_time v;
        if (rank_of(c, &c->t->group[i], r, nodes, device) != best) continue;
        CD_TRY(of_group(c, &c->t->group[i], *r, &v, err));
        if (!any || v.how < out->how || (v.how == out->how && v.s < out->s)) *out = v;
        any = true;
    }
    if (any && best >= TWIN && out->how == CD_LLM_OP_MEASURED) out->how = CD_LLM_OP_INTERPOLATED;
    plain.stack = (uint16_t)c->stack, plain.kernel = (uint16_t)named_for(c, r, nodes);
    return any ? CDMPP_OK : point(c, &plain, out, err);
}

/* ---- calls that the host bounds ---- */
#define NEAR_FLOOR 2.0

/* The least time of a call of the library, where its tables were measured without graphs; 0: times
 * are of the GPU. */
static double floor_of(const cd_serving_cost *c, const cd_llm_op_record *r) {
    const cd_llm_op_codes codes = cd_llm_op_model_codes(c->m, c->t->t.names.text[c->stack], "");
    double least = 0;
    for (size_t i = 0; i < c->m->n_call; i++) {
        const cd_llm_op_call *k = &c->m->call[i];
        if (k->kind != r->kind || k->type != r->type || !(k->host_s > 0) || isnan(codes.maker) ||
            (int)codes.maker != (int)k->maker)
            continue;
        if (!(least > 0) || k->host_s < least) least = k->host_s;
    }
    return least;
}

/* An engine hands steps out as graphs, or its part of a layer counts (layer_s): the host does not
 * bound each call. What the GPU takes for such a call tables tell of another operator that moves as
 * many bytes on the same units: of products with blocks of scales those with one scale, of latent
 * attention that of another library. */
static cdmpp_status fresh(cd_serving_cost *c, const cd_llm_op_record *r, bool nodes,
                          cd_serving_time *out, cdmpp_err *err) {
    const bool blocks = r->kind == CD_LLM_OP_GEMM && r->type == CD_LLM_OP_T_FP8_BLOCK,
               latent = r->kind == CD_LLM_OP_LATENT_PREFILL || r->kind == CD_LLM_OP_LATENT_DECODE;
    const double floor = blocks || latent ? floor_of(c, r) : 0;
    const uint32_t own = c->stack;
    cd_llm_op_record twin = *r;
    cd_serving_time v;
    CD_TRY(by_stack(c, r, nodes, out, err));
    if (!(floor > 0) || out->s > NEAR_FLOOR * floor || (latent && c->other == own)) return CDMPP_OK;
    if (blocks) twin.type = twin.kv = CD_LLM_OP_T_FP8;
    else c->stack = c->other;
    const cdmpp_status st = by_stack(c, &twin, nodes, &v, err);
    c->stack = own;
    if (st || v.s >= out->s) return st;
    if (v.how == CD_LLM_OP_MEASURED) v.how = CD_LLM_OP_INTERPOLATED;
    if (blocks) v.alike = CD_LLM_OP_T_FP8 + 1;
    *out = v;
    return CDMPP_OK;
}

/* ---- memory ---- */
static void key_of(const cd_serving_op *o, double key[KEY]) {
    key[0] = o->r.kind + 0x100 * o->r.type + 0x10000 * o->r.kv + 0x1000000 * o->nodes;
    key[1] = o->r.skew;
    memcpy(key + 2, o->r.size, sizeof o->r.size);
}

/* 16 times the values of cd_llm_op_answer's news; these times those of alike */
enum { NEWS = 16 << CD_LLM_OP_N_NEWS, TYPES = 16 * NEWS };
_Static_assert(CD_LLM_OP_N_TYPE < TYPES / NEWS, "alike has room");

/* 1 + its number in the model; 0: no twin has answered. */
static size_t twin_number(const cd_llm_op_model *m, const char *twin) {
    for (size_t i = 0; twin && i < m->n_device; i++)
        if (m->device[i].about.name == twin) return i + 1;
    return 0;
}

/* v[2]: 0: nobody has asked; below 0: for the seconds alone. v[3]: the number of the kernel. */
static void put_value(const cd_serving_cost *c, const cd_serving_time *t, bool whole,
                      double v[VALUE]) {
    uint32_t kernel = 0;
    if (whole && t->kernel)
        (void)cd_dict_find(&c->t->t.names, (cd_str){t->kernel, strlen(t->kernel)}, &kernel);
    v[3] = kernel;
    v[0] = t->s, v[1] = t->sigma;
    v[2] = whole ? 1 + 2 * t->known + 4 * (int)t->how + 16.0 * t->news + NEWS * t->alike +
                       TYPES * (double)twin_number(c->m, t->twin)
                 : -1;
}

static cd_serving_time value_of(const cd_serving_cost *c, const double v[VALUE]) {
    const unsigned u = (unsigned)v[2], twin = u / TYPES;
    return (cd_serving_time){v[0],
                             v[1],
                             (cd_llm_op_how)(u / 4 % 4),
                             u / 2 % 2,
                             u / 16 % (NEWS / 16),
                             (uint8_t)(u / NEWS % (TYPES / NEWS)),
                             twin ? c->m->device[twin - 1].about.name : NULL,
                             kernel_name(c, (uint32_t)v[3])};
}

/* What no table measures. */
static cdmpp_status moved(const cd_serving_cost *c, const cd_serving_op *op, cd_serving_time *out,
                          cdmpp_err *err) {
    const double rate = op->rate > 0 ? op->rate * 1e-9
                        : op->link   ? c->d->link_gb_s
                                     : SMALL_SHARE * c->d->bandwidth_gb_s;
    if (!(rate > 0))
        return cd_llm_op_machine_lacks(c->d, op->link ? "link_gb_s" : "bandwidth_gb_s",
                                       op->link ? c->d->link_gb_s : c->d->bandwidth_gb_s, "link",
                                       NULL, err);
    *out = (cd_serving_time){op->bytes / (rate * 1e9) + (op->latency_s > 0 ? op->latency_s
                                                         : op->link        ? HAND_OVER_S
                                                                           : c->between_s),
                             0,
                             CD_LLM_OP_PREDICTED,
                             true,
                             0,
                             0,
                             NULL,
                             NULL};
    return CDMPP_OK;
}

static cdmpp_status known_of(cd_serving_cost *c, const cd_serving_op *op, bool whole,
                             const double **out, cdmpp_err *err) {
    double key[KEY];
    key_of(op, key);
    double *v = cd_serving_memo_at(&c->known, key);
    if (!v) return CD_FAIL(err, ENOMEM, "%zu costs", c->known.n);
    if (!(v[2] > 0) && (whole || !(v[2] < 0))) {
        cd_serving_time t;
        c->level = whole ? LEVEL : 0;
        CD_TRY(fresh(c, &op->r, op->nodes, &t, err));
        if (t.twin) t.how = CD_LLM_OP_PREDICTED;
        put_value(c, &t, whole, v);
    }
    *out = v;
    return CDMPP_OK;
}

cdmpp_status cd_serving_cost_of(cd_serving_cost *c, const cd_serving_op *op, cd_serving_time *out,
                                cdmpp_err *err) {
    const double *v;
    c->asked++;
    if (op->bytes > 0) return moved(c, op, out, err);
    CD_TRY(known_of(c, op, true, &v, err));
    *out = value_of(c, v);
    return CDMPP_OK;
}

cdmpp_status cd_serving_cost_s(cd_serving_cost *c, const cd_serving_op *op, double *out,
                               cdmpp_err *err) {
    cd_serving_time t = {0};
    const double *v;
    c->asked++;
    if (op->bytes > 0) {
        CD_TRY(moved(c, op, &t, err));
        v = &t.s;
    } else {
        CD_TRY(known_of(c, op, false, &v, err));
    }
    *out = *v;
    return CDMPP_OK;
}
