/* How many bytes a node moves, and how long that keeps the memory busy. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/estimate/estimate_internal.h"

static int64_t bytes_of(const cd_te_op *op) {
    int64_t n = cd_expr_dtype_bytes(op->dtype[0]);
    for (uint32_t k = 0; k < op->rank; k++)
        if (__builtin_mul_overflow(n, op->shape[k], &n)) return -1;
    return n;
}

/* Inputs are read once, results written once; what lies between is the schedule's own business. */
static int64_t of_dag(const cd_te_dag *d, int64_t *result) {
    int64_t all = 0;
    *result = 0;
    for (uint32_t i = 0; i < d->n_op; i++) {
        const cd_te_op *op = &d->op[i];
        if (!op->is_placeholder && !op->is_output) continue;
        const int64_t n = bytes_of(op);
        if (n < 0 || __builtin_add_overflow(all, n, &all)) return *result = -1;
        if (op->is_output && !op->is_placeholder) *result += n;
    }
    return all;
}

int64_t cd_node_cost_moved(const cd_network_graph *g, const cd_task_registry *t, uint32_t node,
                           int64_t *result) {
    const cd_network_node *n = &g->node[node];
    int64_t all;
    *result = n->write_bytes;
    if (n->read_bytes >= 0 && n->write_bytes >= 0)
        return __builtin_add_overflow(n->read_bytes, n->write_bytes, &all) ? -1 : all;
    const cd_task *task =
        t && n->key ? cd_task_registry_find(t, (cd_str){n->key, strlen(n->key)}) : NULL;
    if (!task || !task->dag) return -1;
    all = of_dag(task->dag, result);
    return all;
}

void cd_node_cost_at_least(cd_node_cost_entry *n) {
    const double s = n->least_s;
    if (!(s > 0) || (n->source != CD_COST_MODEL && n->source != CD_COST_LIBRARY)) return;
    n->low_s = n->low_s < s ? s : n->low_s; /* NaN stays */
    if (n->seconds < s) {
        n->high_s *= s / n->seconds;
        n->seconds = s;
        n->flags |= CD_MODEL_OUT_OF_RANGE;
        n->reason |= CD_UNLIKE_PEAK;
        if (!n->unlike) n->unlike = cd_trained_on_reason(CD_UNLIKE_BIT_PEAK);
    }
}

double cd_node_cost_share(int64_t bytes, double seconds, const cd_device *d) {
    if (bytes <= 0 || !d || !(d->bandwidth_gb_s > 0) || !(seconds > 0)) return 0;
    return fmin(1, (double)bytes / (d->bandwidth_gb_s * 1e9 * seconds));
}

/* Library operators in a queue of a GPU: without what a table's single call waits for. */

static const double LEVEL = 0.9;
/* from one kernel of a queue to the next: about 2 us on NVIDIA's and AMD's GPUs since 2016 */
#define START_S 2e-6

/* Tables time one call on an idle device: host, driver and start of the kernel stand before it, 25
 * to 60 us. In a network they overlap with the operator before. What they take on a device is the
 * model's answer for an operator on one element. */
static cdmpp_status wait_of(const cd_library_op_model *m, cd_library_op_kind kind,
                            const cd_device *d, cd_node_cost_wait *w, cdmpp_err *err) {
    const cd_library_op_record nothing = {
        .kind = kind, .dtype = CD_LIBRARY_OP_DTYPE_F32, .b = 1, .m = 1, .n = 1, .k = 1};
    if (w->known[kind]) return CDMPP_OK;
    if (cd_library_op_kind_class(kind) != CD_LIBRARY_OP_CLASS_BMM &&
        cd_library_op_kind_class(kind) != CD_LIBRARY_OP_CLASS_LINEAR &&
        cd_library_op_kind_class(kind) != CD_LIBRARY_OP_CLASS_CONV)
        CD_TRY(cd_library_op_model_predict(m, &nothing, &d, 1, &w->seconds[kind], err));
    w->known[kind] = true;
    return CDMPP_OK;
}

/* The words of programs for why an operator is out of range. */
static uint32_t reason_of(unsigned unlike) {
    return (unlike & CD_LIBRARY_OP_UNLIKE_DEVICE ? CD_UNLIKE_DEVICE : 0u) |
           (unlike & CD_LIBRARY_OP_UNLIKE_DTYPE ? CD_UNLIKE_DTYPE : 0u) |
           (unlike & CD_LIBRARY_OP_UNLIKE_OPERATOR ? CD_UNLIKE_OPERATOR : 0u) |
           (unlike & CD_LIBRARY_OP_UNLIKE_BEYOND ? CD_UNLIKE_RANGE : 0u);
}

/* The interval keeps its factors: what is taken off is in the prediction and in the measured time
 * alike. */
cdmpp_status cd_node_cost_library(const cd_library_op_model *m, const cd_library_op_record *r,
                                  const cd_device *d, cd_node_cost_wait *w, cd_node_cost_entry *n,
                                  cdmpp_err *err) {
    double alone;
    CD_TRY(cd_library_op_model_predict(m, r, &d, 1, &alone, err));
    CD_TRY(wait_of(m, r->kind, d, w, err));
    const cd_library_op_range v = cd_library_op_model_range(m, r, d, alone, LEVEL);
    cd_node_cost_known(n, fmax(alone - w->seconds[r->kind], 0) + START_S, CD_COST_LIBRARY);
    n->low_s = n->seconds * (v.low_s / alone);
    n->high_s = n->seconds * (v.high_s / alone);
    n->spread = v.spread;
    n->shared = v.shared;
    n->flags = v.unlike ? CD_MODEL_OUT_OF_RANGE : 0;
    n->reason = reason_of(v.unlike);
    n->least_s = cd_library_op_least_s(r, d);
    cd_node_cost_at_least(n);
    return CDMPP_OK;
}

/* Tasks in types of 16 and 8 bits that a model of operators of language models answers: matrix
 * products, and in 16 bits what is done element by element. Anything else stays with the model of
 * programs, which says that it answers as for float32.
 *
 *   sum over k of A[b, i, k] * B[b, k, j], with or without steps behind it  ─> gemm, m = i, n = j,
 *     k, batches = b
 *   sum over k of dot4(A[i, k], B[j, k]): words of four numbers of 8 bits   ─> gemm in int8, m = i,
 *     n = j, k of four times as many
 *   element by element, every tensor of the result's size, in its order     ─> elementwise, m rows
 *     of the last axis
 *
 * What stands behind a product in its program (bias, activation) is taken to run in the product's
 * kernel. The library is not named: a device's is not known. */

#define NORMAL 1.6448536269514722 /* half of an interval of that level, in standard deviations */

/* ---- which operator ---- */
static bool half(cd_dtype t, uint8_t *type) {
    *type = t == CD_DTYPE(CD_T_FLOAT, 16) ? CD_LLM_OP_T_F16 : CD_LLM_OP_T_BF16;
    return t == CD_DTYPE(CD_T_FLOAT, 16) || t == CD_DTYPE(CD_T_BFLOAT, 16);
}

static const cd_expr *uncast(const cd_expr *e) {
    while (e->op == CD_CAST) e = e->a[0];
    return e;
}

static const cd_te_op *source_of(const cd_te_dag *d, const cd_expr *load) {
    return &d->op[d->tensor_op[load->u.i]];
}

/* Is the axis an index of the tensor by itself? *plain: all its indices are axes, each once. */
static bool reads(const cd_expr *load, const cd_expr *axis) {
    for (uint32_t k = 0; k < load->n; k++)
        if (load->a[k]->op == CD_VAR && load->a[k]->u.i == axis->u.i) return true;
    return false;
}

/* The only index of a dimension of 1, which stands for all rows. */
static bool is_zero(const cd_expr *e) { return e->op == CD_INT && e->u.i == 0; }

static bool by_axes(const cd_expr *load) {
    for (uint32_t k = 0; k < load->n; k++) {
        if (load->a[k]->op != CD_VAR && !is_zero(load->a[k])) return false;
        for (uint32_t j = 0; j < k; j++)
            if (load->a[j]->op == CD_VAR && load->a[k]->op == CD_VAR &&
                load->a[j]->u.i == load->a[k]->u.i)
                return false;
    }
    return true;
}

static bool is_sum(const cd_te_op *o) {
    const cd_expr *r = o->red && o->red->n == 1 ? o->red->result[0] : NULL;
    return r && r->op == CD_ADD && r->a[0]->op == CD_VAR && r->a[1]->op == CD_VAR && !o->cond &&
           o->n_out == 1 && !o->init;
}

/* What is multiplied, its type, and how many numbers an element holds. */
typedef struct operands {
    const cd_expr *a, *b;
    uint8_t type;
    double per;
} operands;

static bool operands_of(const cd_te_dag *d, const cd_te_op *o, operands *x) {
    const cd_expr *body = is_sum(o) ? uncast(o->body[0]) : NULL;
    const bool words = body && cd_expr_is_dot4(body);
    if (!body || (body->op != CD_MUL && !words)) return false;
    *x = (operands){uncast(body->a[0]), uncast(body->a[1]), CD_LLM_OP_T_INT8, words ? 4 : 1};
    if (x->a->op != CD_LOAD || x->b->op != CD_LOAD || !by_axes(x->a) || !by_axes(x->b))
        return false;
    const cd_dtype ta = source_of(d, x->a)->dtype[0], tb = source_of(d, x->b)->dtype[0];
    return words || (ta == tb && half(ta, &x->type));
}

/* Axes of the result are of one side, of the other, or of both; those of the sum of both. */
static bool product_of(const cd_te_dag *d, const cd_te_op *o, cd_llm_op_record *r) {
    operands x;
    if (!operands_of(d, o, &x)) return false;
    const cd_expr *a = x.a, *b = x.b;
    double m = 1, n = 1, k = x.per, batches = 1;
    for (uint32_t i = 0; i < o->n_axis; i++) {
        const bool left = reads(a, o->axis[i].var), right = reads(b, o->axis[i].var);
        const double size = (double)o->shape[i];
        if (!left && !right && size > 1) return false;
        *(left && right ? &batches : left ? &m : &n) *= size;
    }
    for (uint32_t i = 0; i < o->n_raxis; i++) {
        if (!reads(a, o->raxis[i].var) || !reads(b, o->raxis[i].var) ||
            o->raxis[i].extent->op != CD_INT)
            return false;
        k *= (double)o->raxis[i].extent->u.i;
    }
    *r = (cd_llm_op_record){
        .kind = CD_LLM_OP_GEMM, .type = x.type, .kv = x.type, .size = {m, n, k, batches}};
    return true;
}

/* Every index of the expression's reads is the axis of its place; what has fewer dimensions stands
 * for rows. */
static bool in_place(const cd_te_op *o, const cd_expr *e) {
    for (uint32_t k = 0; k < e->n; k++) {
        if (e->op == CD_LOAD &&
            !(e->n <= o->n_axis &&
              (is_zero(e->a[k]) ||
               (e->a[k]->op == CD_VAR && e->a[k]->u.i == o->axis[o->n_axis - e->n + k].var->u.i))))
            return false;
        if (e->op != CD_LOAD && !in_place(o, e->a[k])) return false;
    }
    return true;
}

/* A rank of 1 has one row. */
static bool element_of(const cd_te_op *o, cd_llm_op_record *r) {
    uint8_t type;
    double rows = 1;
    if (o->n_out != 1 || !o->rank || !half(o->dtype[0], &type)) return false;
    for (uint32_t i = 0; i + 1 < o->rank; i++) rows *= (double)o->shape[i];
    *r = (cd_llm_op_record){.kind = CD_LLM_OP_ELEMENTWISE,
                            .type = type,
                            .kv = type,
                            .size = {rows, (double)o->shape[o->rank - 1]}};
    return true;
}

bool cd_node_cost_narrow_of(const cd_te_dag *d, cd_llm_op_record *out) {
    const cd_te_op *product = NULL, *last = NULL;
    for (uint32_t i = 0; i < d->n_op; i++) {
        const cd_te_op *o = &d->op[i];
        if (o->is_placeholder) continue;
        if (o->red && product) return false;
        if (o->red) product = o;
        if (o->is_output && last) return false;
        if (o->is_output) last = o;
    }
    if (!last) return false;
    for (uint32_t i = 0; i < d->n_op; i++) {
        const cd_te_op *o = &d->op[i];
        if (!o->is_placeholder && !o->red && (o->n_out != 1 || !in_place(o, o->body[0])))
            return false;
    }
    return product ? product_of(d, product, out) : element_of(last, out);
}

/* ---- its time ---- */
/* A type that is answered as one alike is none that nobody has seen. */
static uint32_t reason_of_narrow(unsigned news, bool alike) {
    return (news & CD_LLM_OP_NEW_DEVICE ? CD_UNLIKE_DEVICE : 0u) |
           (news & CD_LLM_OP_NEW_TYPE && !alike ? CD_UNLIKE_DTYPE : 0u) |
           (news & CD_LLM_OP_NEW_SIZE ? CD_UNLIKE_RANGE : 0u);
}

bool cd_node_cost_narrow(const cd_llm_op_asker *a, const cd_task *t, const cd_device *d,
                         cd_node_cost_entry *n) {
    cd_llm_op_record r;
    cd_llm_op_answer v;
    if (!t || !t->dag || d->kind != CD_DEVICE_GPU || !cd_node_cost_narrow_of(t->dag, &r) ||
        cd_llm_op_ask(a, &r, d, LEVEL, &v, NULL))
        return false;
    cd_node_cost_known(n, v.latency_s, CD_COST_LIBRARY);
    n->schedule = NULL; /* it runs a library's kernel */
    n->low_s = v.low_s, n->high_s = v.high_s;
    n->spread = v.low_s > 0 ? log(v.high_s / v.low_s) / (2 * NORMAL) : 0;
    n->alike = v.alike ? cd_llm_op_type_name((cd_llm_op_type)(v.alike - 1)) : NULL;
    n->reason = reason_of_narrow(v.news, v.alike > 0);
    n->flags = n->reason ? CD_MODEL_OUT_OF_RANGE : 0;
    n->least_s = v.roof_s;
    return true;
}

static bool is_narrow(const cd_node_cost *c, const cd_network_graph *g, uint32_t i) {
    return g->node[i].kind == CD_NODE_TASK && c->node[i].source == CD_COST_LIBRARY;
}

void cd_node_cost_narrow_alike(cd_node_cost *c, const cd_network_graph *g, uint32_t like) {
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t first = 0;
        if (!is_narrow(c, g, i)) continue;
        while (first < i &&
               !(is_narrow(c, g, first) && !strcmp(g->node[first].key, g->node[i].key)))
            first++;
        c->node[i].like = first < i ? c->node[first].like : like++;
    }
}

/* The nodes that take time, with their dependencies, as a net that replay.h simulates.
 *
 *   a ──> reshape ──> b        a ──> b        nodes that are taken out hand on what they came after
 *
 * (1) Nodes are in order, so one pass has the predecessors of a node ready: of one that stays,
 *     itself; of one that is taken out, the list of those behind it that stay, each once.
 * (2) Nodes taken out one behind the other with many predecessors each may multiply: more than MOST
 *     edges are refused. */

enum { MOST = 1 << 28 };

typedef struct {
    const cd_network_graph *g;
    const cd_node_cost *const *cost;
    const cd_node_cost_placement *p;
    bool allow_missing;
    cd_node_cost_net *r;
    cd_replay_op *op;
    uint32_t *number;    /* (n_node) of what stays; UINT32_MAX: taken out */
    uint32_t *from, *to; /* (n_node) of what was taken out: its list in `after` */
    uint32_t *seen;      /* (n_node + 1) by number: the last node that listed it */
    uint32_t *after;     /* (cap) */
    size_t n_after, cap;
} making;

static const cd_node_cost_entry *cost_of(const making *k, uint32_t i) {
    return &k->cost[k->p->where ? k->p->where[i] : 0]->node[i];
}

static cdmpp_status put(making *k, uint32_t node, uint32_t number, cdmpp_err *err) {
    if (k->seen[number] == node + 1) return CDMPP_OK;
    k->seen[number] = node + 1;
    if (k->n_after == MOST)
        return CD_FAIL(err, ERANGE, "more than %d edges between the nodes that take time", MOST);
    if (CD_GROW(k->after, k->n_after, k->cap)) return CD_FAIL(err, ENOMEM, "%zu edges", k->n_after);
    k->after[k->n_after++] = number;
    return CDMPP_OK;
}

/* What node i comes after, of those that stay. */
static cdmpp_status list(making *k, uint32_t i, cdmpp_err *err) {
    const cd_network_node *n = &k->g->node[i];
    for (uint32_t j = 0; j < n->n_after; j++) {
        const uint32_t a = k->g->after[n->first + j];
        if (k->number[a] != UINT32_MAX) CD_TRY(put(k, i, k->number[a], err));
        else
            for (uint32_t e = k->from[a]; e < k->to[a]; e++) CD_TRY(put(k, i, k->after[e], err));
    }
    return CDMPP_OK;
}

static cdmpp_status keep(making *k, uint32_t i, uint32_t first, cdmpp_err *err) {
    const cd_network_node *n = &k->g->node[i];
    const cd_node_cost_entry *c = cost_of(k, i);
    const uint32_t device = k->p->where ? k->p->where[i] : 0, at = k->r->net.n_op++;
    /* each device counts its own */
    const uint32_t like = c->like == UINT32_MAX ? UINT32_MAX : c->like * k->p->n_device + device;
    const double runs = (double)n->repeat;
    k->number[i] = at;
    k->r->of[at] = i;
    /* each run but the last, whose gap the replay adds, waits for its own */
    k->op[at] =
        (cd_replay_op){.name = n->name,
                       .device = device,
                       .like = like,
                       .spread = c->spread,
                       .shared = c->shared,
                       .memory_share = c->memory_share,
                       .seconds = c->seconds * runs + (runs - 1) * k->p->device[device].gap_s,
                       .runs = runs,
                       .bytes = c->bytes > 0 ? c->bytes : 0,
                       .first = first,
                       .n_after = (uint32_t)(k->n_after - first)};
    if (!isfinite(k->op[at].seconds))
        return CD_FAIL(err, ERANGE, "node %s takes %g s, %lld times", n->name, c->seconds,
                       (long long)n->repeat);
    return CDMPP_OK;
}

static cdmpp_status place(making *k, uint32_t i, cdmpp_err *err) {
    const cd_network_node *n = &k->g->node[i];
    if (k->p->where && k->p->where[i] >= k->p->n_device)
        return CD_FAIL(err, ERANGE, "node %s is on device %u of %u", n->name, k->p->where[i],
                       k->p->n_device);
    const cd_node_cost_entry *c = cost_of(k, i);
    const bool missing = c->source == CD_COST_MISSING && n->repeat > 0;
    if (missing && !k->allow_missing)
        return CD_FAIL(err, ESCHEMA, "node %s (%s) has no time: %s", n->name, n->op,
                       c->why ? c->why : "nobody knows it");
    const uint32_t first = (uint32_t)k->n_after;
    CD_TRY(list(k, i, err));
    k->from[i] = first;
    k->to[i] = (uint32_t)k->n_after;
    if (missing || n->repeat <= 0 || c->source == CD_COST_FREE) return CDMPP_OK;
    return keep(k, i, first, err);
}

static cdmpp_status room(making *k, cdmpp_err *err) {
    const size_t n = (size_t)k->g->n_node + 1;
    k->number = cd_mem_alloc(n * sizeof *k->number);
    k->from = cd_mem_zalloc(n, sizeof *k->from);
    k->to = cd_mem_zalloc(n, sizeof *k->to);
    k->seen = cd_mem_zalloc(n, sizeof *k->seen);
    k->op = cd_arena_zalloc(&k->r->arena, n, sizeof *k->op);
    k->r->of = cd_arena_zalloc(&k->r->arena, n, sizeof *k->r->of);
    if (!k->number || !k->from || !k->to || !k->seen || !k->op || !k->r->of)
        return CD_FAIL(err, ENOMEM, "%u nodes", k->g->n_node);
    memset(k->number, 0xff, n * sizeof *k->number);
    return CDMPP_OK;
}

/* Devices and links are the caller's, who may let go of them. */
static cdmpp_status finish(making *k, cdmpp_err *err) {
    cd_replay_net *net = &k->r->net;
    uint32_t *after = cd_arena_alloc(&k->r->arena, k->n_after + 1, sizeof *after);
    cd_replay_device *device =
        cd_arena_alloc(&k->r->arena, (size_t)k->p->n_device + 1, sizeof *device);
    cd_replay_link *link = cd_arena_alloc(&k->r->arena, (size_t)k->p->n_link + 1, sizeof *link);
    if (!after || !device || !link) return CD_FAIL(err, ENOMEM, "%zu edges", k->n_after);
    if (k->n_after) memcpy(after, k->after, k->n_after * sizeof *after);
    if (k->p->n_device) memcpy(device, k->p->device, k->p->n_device * sizeof *device);
    if (k->p->n_link) memcpy(link, k->p->link, k->p->n_link * sizeof *link);
    net->op = k->op;
    net->after = after;
    net->n_after = (uint32_t)k->n_after;
    net->device = device;
    net->n_device = k->p->n_device;
    net->link = link;
    net->n_link = k->p->n_link;
    return CDMPP_OK;
}

/* Scratch lists live for this call; the net has copies of all that it needs in its own arena. */
cdmpp_status cd_node_cost_net_make(const cd_network_graph *g, const cd_node_cost *const *cost,
                                   const cd_node_cost_placement *p, bool allow_missing,
                                   cd_node_cost_net **out, cdmpp_err *err) {
    making k = {.g = g, .cost = cost, .p = p, .allow_missing = allow_missing};
    if (!(k.r = cd_mem_zalloc(1, sizeof *k.r))) return CD_FAIL(err, ENOMEM, "replay");
    cdmpp_status st = room(&k, err);
    for (uint32_t i = 0; !st && i < g->n_node; i++) st = place(&k, i, err);
    if (!st) st = finish(&k, err);
    cd_mem_free(k.number);
    cd_mem_free(k.from);
    cd_mem_free(k.to);
    cd_mem_free(k.seen);
    cd_mem_free(k.after);
    if (st) cd_node_cost_net_free(k.r);
    else *out = k.r;
    return st;
}

void cd_node_cost_net_free(cd_node_cost_net *r) {
    if (!r) return;
    cd_arena_free(&r->arena);
    cd_mem_free(r);
}

/* "op=conv3,scale=0.5": some nodes' times, changed by hand. */

/* Longest text: a name of a node and a number. */
enum { TEXT = 4096, NAMES = 512 };

typedef struct {
    char op[TEXT];
    double scale, seconds; /* one of them; the other NaN */
} change;

/* The last ",scale=" or ",seconds=" ends the name, which may have commas itself. */
static cdmpp_status parse(const char *text, change *out, cdmpp_err *err) {
    static const char form[] = "expected op=NAME,scale=NUMBER or op=NAME,seconds=NUMBER";
    const char *comma = strrchr(text, ',');
    char *end = NULL;
    if (strncmp(text, "op=", 3) || !comma || comma == text + 3 || (size_t)(comma - text) >= TEXT)
        return CD_FAIL(err, EUSAGE, "%s, found \"%.80s\"", form, text);
    const bool scale = !strncmp(comma, ",scale=", 7);
    if (!scale && strncmp(comma, ",seconds=", 9))
        return CD_FAIL(err, EUSAGE, "%s, found \"%.80s\"", form, text);
    const char *number = comma + (scale ? 7 : 9);
    const double v = strtod(number, &end);
    if (end == number || *end || !isfinite(v) || v < 0)
        return CD_FAIL(err, EUSAGE, "%s, found \"%.40s\" for the number", form, number);
    memcpy(out->op, text + 3, (size_t)(comma - text) - 3);
    out->op[comma - text - 3] = 0;
    out->scale = scale ? v : (double)NAN;
    out->seconds = scale ? (double)NAN : v;
    return CDMPP_OK;
}

static void apply(cd_node_cost_entry *n, const change *c) {
    if (!isnan(c->seconds)) {
        cd_node_cost_known(n, c->seconds, CD_COST_SCALED);
        n->like = UINT32_MAX;
        return;
    }
    if (n->source == CD_COST_MISSING) return; /* nothing to scale */
    n->seconds *= c->scale;
    n->low_s *= c->scale;
    n->high_s *= c->scale;
    if (n->source != CD_COST_FREE) n->source = CD_COST_SCALED;
}

static cdmpp_status nothing_fits(const cd_network_graph *g, const char *op, cdmpp_err *err) {
    const char *name[2 * NAMES];
    size_t n = 0;
    for (uint32_t i = 0; i < g->n_node && n + 2 <= 2 * NAMES; i++) {
        name[n++] = g->node[i].name;
        name[n++] = g->node[i].op;
    }
    const char *near = cd_did_you_mean_nearest(op, name, n);
    if (near)
        return CD_FAIL(err, ESCHEMA,
                       "no node or operator \"%.80s\" in network %.80s; did you mean \"%.80s\"?",
                       op, g->name, near);
    return CD_FAIL(err, ESCHEMA, "no node or operator \"%.80s\" in network %.80s", op, g->name);
}

cdmpp_status cd_node_cost_what_if(cd_node_cost *c, const cd_network_graph *g, const char *text,
                                  cdmpp_err *err) {
    change x;
    bool any = false;
    CD_TRY(parse(text, &x, err));
    for (uint32_t i = 0; i < c->n; i++) {
        if (!cd_str_fits(x.op, g->node[i].name) && !cd_str_fits(x.op, g->node[i].op)) continue;
        any = true;
        apply(&c->node[i], &x);
    }
    if (!any) return nothing_fits(g, x.op, err);
    cd_node_cost_tally(c, g);
    return CDMPP_OK;
}
