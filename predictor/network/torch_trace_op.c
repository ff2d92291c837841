/* Which library operators a row of a torch.fx trace runs in each phase. Names of PyTorch's
 * functions and modules fall into families that cost alike; an operator that only moves data is
 * compared with an addition that moves as many bytes. */
#include "predictor/network/network_internal.h"

#include <math.h>
#include <string.h>

typedef enum {
    FREE,
    LINEAR,
    PRODUCT,
    PLAIN,
    SOFTMAX,
    NORM,
    PASS,
    MAXIMUM,
    DROPOUT,
    TABLE,
    FILL,
    REDUCE,
    UNKNOWN
} family;

static const struct verb {
    const char *name;
    family is;
    cd_library_op_kind kind; /* PLAIN */
} verbs[] = {
    {"addmm", LINEAR, 0},
    {"linear", LINEAR, 0},
    {"Linear", LINEAR, 0},
    {"NonDynamicallyQuantizableLinear", LINEAR, 0},
    {"matmul", PRODUCT, 0},
    {"bmm", PRODUCT, 0},
    {"mm", PRODUCT, 0},
    {"baddbmm", PRODUCT, 0},
    {"add", PLAIN, CD_LIBRARY_OP_ADD},
    {"sub", PLAIN, CD_LIBRARY_OP_ADD},
    {"rsub", PLAIN, CD_LIBRARY_OP_ADD},
    {"add_", PLAIN, CD_LIBRARY_OP_ADD},
    {"iadd", PLAIN, CD_LIBRARY_OP_ADD},
    {"mul", PLAIN, CD_LIBRARY_OP_MUL},
    {"mul_", PLAIN, CD_LIBRARY_OP_MUL},
    {"neg", PLAIN, CD_LIBRARY_OP_MULU},
    {"truediv", PLAIN, CD_LIBRARY_OP_DIV},
    {"div", PLAIN, CD_LIBRARY_OP_DIV},
    {"pow", PLAIN, CD_LIBRARY_OP_POW},
    {"rsqrt", PLAIN, CD_LIBRARY_OP_POWU},
    {"sqrt", PLAIN, CD_LIBRARY_OP_POWU},
    {"relu", PLAIN, CD_LIBRARY_OP_RELU},
    {"ReLU", PLAIN, CD_LIBRARY_OP_RELU},
    {"gelu", PLAIN, CD_LIBRARY_OP_GELU},
    {"GELU", PLAIN, CD_LIBRARY_OP_GELU},
    {"GELUActivation", PLAIN, CD_LIBRARY_OP_GELU},
    {"tanh", PLAIN, CD_LIBRARY_OP_TANH},
    {"Tanh", PLAIN, CD_LIBRARY_OP_TANH},
    {"sigmoid", PLAIN, CD_LIBRARY_OP_TANH},
    {"Sigmoid", PLAIN, CD_LIBRARY_OP_TANH},
    {"silu", PLAIN, CD_LIBRARY_OP_GELU},
    {"SiLU", PLAIN, CD_LIBRARY_OP_GELU},
    {"exp", PLAIN, CD_LIBRARY_OP_TANH},
    {"log", PLAIN, CD_LIBRARY_OP_TANH},
    {"softmax", SOFTMAX, 0},
    {"Softmax", SOFTMAX, 0},
    {"log_softmax", SOFTMAX, 0},
    {"layer_norm", NORM, 0},
    {"LayerNorm", NORM, 0},
    {"dropout", DROPOUT, 0},
    {"Dropout", DROPOUT, 0},
    {"embedding", TABLE, 0},
    {"Embedding", TABLE, 0},
    {"max", MAXIMUM, 0},
    {"min", MAXIMUM, 0},
    {"maximum", MAXIMUM, 0},
    {"minimum", MAXIMUM, 0},
    {"clamp", PASS, 0},
    {"where", PASS, 0},
    {"masked_fill", PASS, 0},
    {"masked_fill_", PASS, 0},
    {"contiguous", PASS, 0},
    {"reshape", PASS, 0},
    {"clone", PASS, 0},
    {"to", PASS, 0},
    {"type", PASS, 0},
    {"type_as", PASS, 0},
    {"float", PASS, 0},
    {"half", PASS, 0},
    {"long", PASS, 0},
    {"int", PASS, 0},
    {"bool", PASS, 0},
    {"cat", PASS, 0},
    {"stack", PASS, 0},
    {"cumsum", PASS, 0},
    {"one_hot", PASS, 0},
    {"tril", PASS, 0},
    {"triu", PASS, 0},
    {"eq", PASS, 0},
    {"ne", PASS, 0},
    {"lt", PASS, 0},
    {"gt", PASS, 0},
    {"le", PASS, 0},
    {"ge", PASS, 0},
    {"abs", PASS, 0},
    {"and_", PASS, 0},
    {"or_", PASS, 0},
    {"invert", PASS, 0},
    {"gather", PASS, 0},
    {"index_select", PASS, 0},
    {"getitem", PASS, 0},
    {"floordiv", PASS, 0},
    {"mean", REDUCE, 0},
    {"sum", REDUCE, 0},
    {"count_nonzero", REDUCE, 0},
    {"argmax", REDUCE, 0},
    {"argmin", REDUCE, 0},
    {"var", REDUCE, 0},
    {"any", REDUCE, 0},
    {"all", REDUCE, 0},
    {"ones", FILL, 0},
    {"zeros", FILL, 0},
    {"full", FILL, 0},
    {"arange", FILL, 0},
    {"ones_like", FILL, 0},
    {"zeros_like", FILL, 0},
    {"full_like", FILL, 0},
    {"fill_", FILL, 0},
    {"empty", FREE, 0},
    {"view", FREE, 0},
    {"permute", FREE, 0},
    {"transpose", FREE, 0},
    {"t", FREE, 0},
    {"unsqueeze", FREE, 0},
    {"squeeze", FREE, 0},
    {"expand", FREE, 0},
    {"expand_as", FREE, 0},
    {"flatten", FREE, 0},
    {"split", FREE, 0},
    {"chunk", FREE, 0},
    {"size", FREE, 0},
    {"dim", FREE, 0},
    {"detach", FREE, 0},
    {"getattr", FREE, 0},
    {"finfo", FREE, 0},
    {"tensor", FREE, 0},
    {"Identity", FREE, 0},
    {"numel", FREE, 0},
    {"item", FREE, 0},
};

bool cd_torch_trace_is_learned(const char *verb) {
    return !strcmp(verb, "Linear") || !strcmp(verb, "LayerNorm") || !strcmp(verb, "Embedding");
}

double cd_torch_trace_count(const cd_torch_trace_shape *s) {
    double n = 1;
    for (uint32_t i = 0; i < s->n; i++) n *= (double)s->d[i];
    return n;
}

static double last(const cd_torch_trace_shape *s) { return s->n ? (double)s->d[s->n - 1] : 1; }
static double size_of(const cd_torch_trace_shape *s) { return s->bytes * cd_torch_trace_count(s); }

/* ---- tasks put down ---- */
typedef struct list {
    const cd_torch_trace_op *row;
    cd_torch_trace_task *task;
    uint32_t n;
    cd_node_phase phase;
} list;

static cd_torch_trace_task *put(list *l, cd_node_kind kind, const char *op) {
    cd_torch_trace_task *t = &l->task[l->n++];
    *t = (cd_torch_trace_task){.phase = l->phase, .kind = kind, .op = op, .flop = (double)NAN};
    return t;
}

static void ask(list *l, const char *op, cd_library_op_kind kind, double b, double m, double n,
                double k) {
    cd_torch_trace_task *t = put(l, CD_NODE_LIBRARY, op);
    t->question = (cd_library_op_record){
        .kind = kind, .dtype = l->row->dtype, .b = b, .m = m, .n = n, .k = k};
    t->share =
        kind == CD_LIBRARY_OP_BMM || kind == CD_LIBRARY_OP_LINEAR ? 2 * b * m * n * k : m * n;
    t->flop = t->share;
}

/* An elementwise operator on rows of the result's last dimension. */
static void plain(list *l, cd_library_op_kind kind) {
    const double n = last(&l->row->out);
    ask(l, cd_library_op_kind_name(kind), kind, 1, cd_torch_trace_count(&l->row->out) / n, n, 1);
}

/* Memory read and written, nothing computed. */
static void pass(list *l, const char *op, double bytes) {
    const double n = fmax(1, last(&l->row->out)),
                 elements = ceil(bytes / (2 * cd_library_op_dtype_bytes(l->row->dtype)));
    if (elements <= n) ask(l, op, CD_LIBRARY_OP_MULU, 1, 1, fmax(1, elements), 1);
    else ask(l, op, CD_LIBRARY_OP_MULU, 1, ceil(elements / n), n, 1);
}

static void pass_result(list *l, const char *op) { pass(l, op, 2 * size_of(&l->row->out)); }

/* How a time of a phase is dealt out: by operations. */
static void finish(list *l) {
    for (uint32_t from = 0, to; from < l->n; from = to) {
        double sum = 0;
        for (to = from; to < l->n && l->task[to].phase == l->task[from].phase; to++)
            sum += l->task[to].share;
        for (uint32_t i = from; i < to; i++)
            l->task[i].share = sum > 0 ? l->task[i].share / sum : i == from;
    }
}

/* ---- forward ---- */
static void linear_of(const cd_torch_trace_op *r, double *m, double *n, double *k) {
    const cd_torch_trace_shape *x = &r->in[!strcmp(r->verb, "addmm") && r->n_in > 1 ? 1 : 0];
    *n = last(&r->out);
    *m = cd_torch_trace_count(&r->out) / *n;
    *k = last(x);
}

static bool is_linear(const cd_torch_trace_op *r) {
    return r->n_in < 2 || r->in[0].n < 3 || r->in[1].n < 3;
}

static void product_of(const cd_torch_trace_op *r, double *b, double *m, double *n, double *k) {
    *n = last(&r->out);
    *m = r->out.n > 1 ? (double)r->out.d[r->out.n - 2] : 1;
    *b = cd_torch_trace_count(&r->out) / (*m * *n);
    *k = last(&r->in[0]);
}

/* matmul of more than three dimensions makes three of them, which copies a side that is not one run
 * of memory. */
static void product(list *l) {
    const cd_torch_trace_op *r = l->row;
    double b, m, n, k;
    product_of(r, &b, &m, &n, &k);
    ask(l, "bmm", CD_LIBRARY_OP_BMM, b, m, n, k);
    for (uint32_t i = 0; i < 2 && r->in[i].n > 3; i++)
        if (r->in[i].strided) pass(l, "copy", 2 * size_of(&r->in[i]));
}

/* Two tensors? A side of one number costs nothing; a row or a mask that is spread over the result
 * is loaded for each element. */
static bool two_sided(const cd_torch_trace_op *r) {
    return r->n_in > 1 && r->in[0].bytes && r->in[1].bytes && cd_torch_trace_count(&r->in[0]) > 1 &&
           cd_torch_trace_count(&r->in[1]) > 1;
}

static cd_library_op_kind one_sided(cd_library_op_kind k) {
    switch (k) {
    case CD_LIBRARY_OP_ADD: return CD_LIBRARY_OP_ADDU;
    case CD_LIBRARY_OP_MUL: return CD_LIBRARY_OP_MULU;
    case CD_LIBRARY_OP_DIV: return CD_LIBRARY_OP_DIVU;
    case CD_LIBRARY_OP_POW: return CD_LIBRARY_OP_POWU;
    default: return k;
    }
}

static cd_library_op_kind plain_kind(const cd_torch_trace_op *r, cd_library_op_kind k) {
    return two_sided(r) ? k : one_sided(k);
}

static bool same_type(const cd_torch_trace_op *r) {
    static const char *const casts[] = {"to",   "type", "type_as", "float",
                                        "half", "long", "int",     "bool"};
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++)
        if (!strcmp(r->verb, casts[i])) return r->n_in && r->in[0].bytes == r->out.bytes;
    return false;
}

/* Is what looks like a pass only another view? */
static bool is_view(const cd_torch_trace_op *r) {
    if (!strcmp(r->verb, "contiguous") || !strcmp(r->verb, "reshape"))
        return !(r->n_in && r->in[0].strided) || r->out.strided;
    if (!strcmp(r->verb, "getitem")) return r->n_in < 2 || r->in[1].bytes == 0;
    return same_type(r);
}

static double bytes_in(const cd_torch_trace_op *r) {
    double sum = 0;
    for (uint32_t i = 0; i < r->n_in && i < CD_TORCH_TRACE_INPUTS; i++) sum += size_of(&r->in[i]);
    return sum;
}

/* Bytes of the families that only move data: what is read, at most three times the result, because
 * broadcasts read less, plus what is written. */
static void forward(list *l, const struct verb *v) {
    const cd_torch_trace_op *r = l->row;
    double m, n, k;
    switch (v->is) {
    case LINEAR:
    case PRODUCT:
        if (v->is == PRODUCT && !is_linear(r)) {
            product(l);
            return;
        }
        linear_of(r, &m, &n, &k);
        ask(l, "linear", CD_LIBRARY_OP_LINEAR, 1, m, n, k);
        return;
    case PLAIN: plain(l, plain_kind(r, v->kind)); return;
    case SOFTMAX: plain(l, CD_LIBRARY_OP_SOFTMAX); return;
    case NORM: plain(l, CD_LIBRARY_OP_LN); return;
    case MAXIMUM: pass(l, r->verb, bytes_in(r) + size_of(&r->out)); return;
    case PASS:
        if (is_view(r)) break;
        pass(l, r->verb, fmin(bytes_in(r), 3 * size_of(&r->out)) + size_of(&r->out));
        return;
    case REDUCE: pass(l, r->verb, bytes_in(r) + size_of(&r->out)); return;
    case FILL: pass(l, r->verb, size_of(&r->out)); return;
    case TABLE: pass_result(l, r->verb); return;
    case DROPOUT:
        if (r->training) {
            pass(l, "dropout", 2 * size_of(&r->out) + cd_torch_trace_count(&r->out));
            return;
        }
        break;
    case FREE:
    case UNKNOWN: break;
    }
    put(l, CD_NODE_FREE, r->verb);
}

/* ---- backward ---- */
static void back_linear(list *l) {
    const cd_torch_trace_op *r = l->row;
    const uint32_t x = !strcmp(r->verb, "addmm") && r->n_in > 1 ? 1 : 0;
    double m, n, k;
    linear_of(r, &m, &n, &k);
    if (r->in_gradient >> x & 1) ask(l, "linear", CD_LIBRARY_OP_LINEAR, 1, m, k, n);
    ask(l, "linear", CD_LIBRARY_OP_LINEAR, 1, n, k, m);
    pass(l, "bias", size_of(&r->out));
}

static void back_product(list *l) {
    double b, m, n, k;
    product_of(l->row, &b, &m, &n, &k);
    if (l->row->in_gradient & 1) ask(l, "bmm", CD_LIBRARY_OP_BMM, b, m, k, n);
    if (l->row->in_gradient & 2) ask(l, "bmm", CD_LIBRARY_OP_BMM, b, k, n, m);
}

static void back_plain(list *l, cd_library_op_kind kind) {
    const cd_library_op_kind k = plain_kind(l->row, kind);
    switch (k) {
    case CD_LIBRARY_OP_ADD:
    case CD_LIBRARY_OP_ADDU: put(l, CD_NODE_FREE, "add"); return;
    case CD_LIBRARY_OP_MUL:
    case CD_LIBRARY_OP_DIV:
        plain(l, CD_LIBRARY_OP_MUL);
        plain(l, CD_LIBRARY_OP_MUL);
        return;
    case CD_LIBRARY_OP_MULU:
    case CD_LIBRARY_OP_DIVU: plain(l, CD_LIBRARY_OP_MULU); return;
    case CD_LIBRARY_OP_POW:
    case CD_LIBRARY_OP_POWU:
        plain(l, CD_LIBRARY_OP_POWU);
        plain(l, CD_LIBRARY_OP_MULU);
        plain(l, CD_LIBRARY_OP_MUL);
        return;
    default: plain(l, CD_LIBRARY_OP_MUL); /* a gradient and one other tensor in, one out */
    }
}

static void backward(list *l, const struct verb *v) {
    const cd_torch_trace_op *r = l->row;
    const double size = size_of(&r->out), bits = cd_torch_trace_count(&r->out);
    switch (v->is) {
    case LINEAR: back_linear(l); return;
    case PRODUCT: is_linear(r) ? back_linear(l) : back_product(l); return;
    case PLAIN: back_plain(l, v->kind); return;
    case SOFTMAX:
        plain(l, CD_LIBRARY_OP_MUL);
        plain(l, CD_LIBRARY_OP_SOFTMAX);
        return;
    case NORM: plain(l, CD_LIBRARY_OP_MUL); return;
    case MAXIMUM: /* halves where equal, nothing where smaller: five kernels with masks of a byte */
        pass(l, r->verb, 2 * size);
        pass(l, r->verb, size + bits);
        pass(l, r->verb, 3 * size + bits);
        pass(l, r->verb, size + bits);
        pass(l, r->verb, 2 * size + bits);
        return;
    case DROPOUT:
        if (!r->training) break;
        pass(l, "dropout", size + bits);
        pass(l, "dropout", 2 * size);
        plain(l, CD_LIBRARY_OP_MUL);
        return;
    case TABLE:
        pass(l, r->verb,
             r->vocabulary > 0 ? (double)r->vocabulary * last(&r->out) * r->out.bytes : size);
        pass_result(l, r->verb);
        return;
    case PASS:
        if (is_view(r)) break;
        pass_result(l, r->verb);
        return;
    case REDUCE: pass(l, r->verb, bytes_in(r) + size); return;
    case FREE:
    case FILL:
    case UNKNOWN: break;
    }
    put(l, CD_NODE_FREE, r->verb);
}

/* ---- gradients added to those of the weights ---- */
static void update(list *l, const struct verb *v) {
    const cd_torch_trace_op *r = l->row;
    double m, n, k;
    if (v->is == LINEAR || (v->is == PRODUCT && is_linear(r))) {
        linear_of(r, &m, &n, &k);
        ask(l, "weights", CD_LIBRARY_OP_ADD, 1, n, k, 1);
        ask(l, "weights", CD_LIBRARY_OP_ADD, 1, 1, n, 1);
    } else if (v->is == NORM) {
        ask(l, "weights", CD_LIBRARY_OP_ADD, 1, 1, last(&r->out), 1);
        ask(l, "weights", CD_LIBRARY_OP_ADD, 1, 1, last(&r->out), 1);
    } else if (v->is == TABLE) {
        const double n_row = r->vocabulary > 0 ? (double)r->vocabulary
                                               : cd_torch_trace_count(&r->out) / last(&r->out);
        ask(l, "weights", CD_LIBRARY_OP_ADD, 1, n_row, last(&r->out), 1);
    }
}

/* Rows that run nothing on the device: they have no tensor, or one that is there already. */
static bool is_host(const cd_torch_trace_op *r) {
    return !strcmp(r->kind, "placeholder") || !strcmp(r->kind, "get_attr") ||
           !strcmp(r->kind, "output") || !r->out.bytes;
}

static const struct verb *find(const cd_torch_trace_op *r) {
    static const struct verb host = {"", FREE, 0}, none = {"", UNKNOWN, 0};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (!strcmp(r->verb, verbs[i].name)) return is_host(r) ? &host : &verbs[i];
    if (!strcmp(r->verb, "setitem")) return &none;
    return is_host(r) ? &host : &none;
}

/* An empty result runs nothing. Backward and update follow only where the row has a gradient. */
uint32_t cd_torch_trace_tasks(const cd_torch_trace_op *r,
                              cd_torch_trace_task out[CD_TORCH_TRACE_TASKS]) {
    list l = {r, out, 0, CD_PHASE_FORWARD};
    const struct verb *v = find(r);
    if (v->is == UNKNOWN) {
        put(&l, CD_NODE_UNKNOWN, r->verb)->why =
            "no library operator is known that this compares with";
    } else if (cd_torch_trace_count(&r->out) == 0) {
        put(&l, CD_NODE_FREE, r->verb);
    } else {
        forward(&l, v);
        l.phase = CD_PHASE_BACKWARD;
        if (r->training && r->gradient) backward(&l, v);
        l.phase = CD_PHASE_UPDATE;
        if (r->training && r->gradient) update(&l, v);
    }
    finish(&l);
    return l.n;
}
