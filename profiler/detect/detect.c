/* The detection: which tests there are, their repeats, and what these decide. Pairs come first:
 * chains and branches depend on them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/network/onnx/onnx.h"
#include "profiler/detect/detect.h"

/* A part of a test network: operators in a row, or `branch`: the only one, and an Add of its result
 * and of what it read. */
typedef struct cd_detect_part {
    uint32_t n;
    uint32_t op[CD_DETECT_CHAIN]; /* positions in the table of operators */
    bool branch;
} cd_detect_part;

/* Test networks. An operator is one row of a table: what it is in ONNX, what it can read, and its
 * operands beside the first one. Sizes are such that convolutions do little work for each element
 * that they write: else the noise of their time hides what fusion saves. */

enum { IMAGE = 1, MATRIX = 2, ANY = 3 };
typedef enum operands { NONE, SAME, CONV, CONVT, DEPTHWISE, NORM, LIMITS, PRODUCT } operands;

static const struct {
    const char *name, *op;
    int reads;
    operands more;
    bool window; /* 3 x 3, the size is kept */
} row[] = {
    {"Conv", "Conv", IMAGE, CONV, false},
    {"DepthwiseConv", "Conv", IMAGE, DEPTHWISE, true},
    {"ConvTranspose", "ConvTranspose", IMAGE, CONVT, false},
    {"BatchNormalization", "BatchNormalization", IMAGE, NORM, false},
    {"Relu", "Relu", ANY, NONE, false},
    {"Clip", "Clip", ANY, LIMITS, false},
    {"Sigmoid", "Sigmoid", ANY, NONE, false},
    {"Tanh", "Tanh", ANY, NONE, false},
    {"HardSwish", "HardSwish", ANY, NONE, false},
    {"LeakyRelu", "LeakyRelu", ANY, NONE, false},
    {"Elu", "Elu", ANY, NONE, false},
    {"Exp", "Exp", ANY, NONE, false},
    {"Add", "Add", ANY, SAME, false},
    {"Sub", "Sub", ANY, SAME, false},
    {"Mul", "Mul", ANY, SAME, false},
    {"Concat", "Concat", ANY, SAME, false},
    {"MaxPool", "MaxPool", IMAGE, NONE, true},
    {"AveragePool", "AveragePool", IMAGE, NONE, true},
    {"GlobalAveragePool", "GlobalAveragePool", IMAGE, NONE, false},
    {"Softmax", "Softmax", ANY, NONE, false},
    {"Gemm", "Gemm", MATRIX, PRODUCT, false},
    {"MatMul", "MatMul", MATRIX, PRODUCT, false},
};
enum { N_ROW = sizeof row / sizeof *row, ROW_WIDTH = 16 };

const char *cd_detect_operator_names(void) {
    static char all[512];
    if (!*all)
        for (size_t k = 0, n = 0; k < N_ROW; k++)
            n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", k ? " " : "", row[k].name);
    return all;
}

static const char *detect_operator_name(uint32_t op) { return row[op].name; }

/* Position of an operator by name; CD_GRAPH_NONE: there is none. */
static uint32_t detect_operator_find(cd_str name) {
    for (uint32_t k = 0; k < N_ROW; k++)
        if (cd_str_is(name, row[k].name)) return k;
    return CD_GRAPH_NONE;
}

/* The shape that all of the n operators can begin with; false: there is none. */
static bool detect_shape(const cd_detect_options *o, const uint32_t *op, uint32_t n,
                         cd_graph_shape *out) {
    const int64_t channels = o->channels ? o->channels : 4, size = o->size ? o->size : 256,
                  all = channels * size * size;
    int reads = ANY;
    for (uint32_t k = 0; k < n; k++) reads &= row[op[k]].reads;
    if (reads & IMAGE) *out = (cd_graph_shape){4, {1, channels, size, size}};
    else *out = (cd_graph_shape){2, {all < ROW_WIDTH ? 1 : all / ROW_WIDTH, ROW_WIDTH}};
    return reads != 0;
}

/* ---- one operator ---- */

typedef struct maker {
    cd_graph *g;
    cdmpp_err *err;
    cdmpp_status st;
    uint32_t n; /* names so far */
} maker;

static uint32_t weight(maker *m, cd_graph_shape s) {
    uint32_t t = CD_GRAPH_NONE;
    char name[16];
    snprintf(name, sizeof name, "w%u", m->n++);
    if (!m->st) m->st = cd_graph_weight(m->g, name, CD_F32, &s, &t, m->err);
    return t;
}

static uint32_t input(maker *m, cd_graph_shape s) {
    uint32_t t = CD_GRAPH_NONE;
    char name[16];
    snprintf(name, sizeof name, "x%u", m->n++);
    if (!m->st) m->st = cd_graph_input(m->g, name, CD_F32, &s, &t, m->err);
    return t;
}

static uint32_t scalar(maker *m, double v) {
    uint32_t t = CD_GRAPH_NONE;
    char name[16];
    const cd_graph_shape s = {0, {0}};
    snprintf(name, sizeof name, "c%u", m->n++);
    if (!m->st) m->st = cd_graph_constant(m->g, name, CD_F32, &s, NULL, &v, &t, m->err);
    return t;
}

/* Operands behind the first one, to in[1 ..]; returns how many operands there are. */
static uint32_t put_operands(maker *m, operands more, cd_graph_shape x, uint32_t *in) {
    const int64_t c = x.dim[1];
    switch (more) {
    case NONE: return 1;
    case SAME: in[1] = input(m, x); return 2;
    case CONV:
    case CONVT: in[1] = weight(m, (cd_graph_shape){4, {c, c, 1, 1}}); return 2;
    case DEPTHWISE: in[1] = weight(m, (cd_graph_shape){4, {c, 1, 3, 3}}); return 2;
    case PRODUCT: in[1] = weight(m, (cd_graph_shape){2, {c, c}}); return 2;
    case LIMITS: in[1] = scalar(m, 0), in[2] = scalar(m, 6); return 3;
    case NORM:
        for (int k = 1; k < 5; k++) in[k] = weight(m, (cd_graph_shape){1, {c}});
        return 5;
    }
    return 1;
}

static uint32_t put_operator(maker *m, uint32_t op, uint32_t x) {
    static const int64_t three[] = {3, 3}, one[] = {1, 1, 1, 1};
    uint32_t in[5] = {x}, n_attr = 0, out = CD_GRAPH_NONE;
    cd_graph_attr attr[4];
    char name[32];
    if (m->st) return CD_GRAPH_NONE;
    const cd_graph_shape s = m->g->tensor[x].shape;
    const uint32_t n = put_operands(m, row[op].more, s, in);
    if (row[op].window) {
        attr[n_attr++] = (cd_graph_attr){
            .name = "kernel_shape", .kind = CD_GRAPH_ATTR_INTS, .n = 2, .ints = three};
        attr[n_attr++] =
            (cd_graph_attr){.name = "pads", .kind = CD_GRAPH_ATTR_INTS, .n = 4, .ints = one};
    }
    if (row[op].more == DEPTHWISE)
        attr[n_attr++] = (cd_graph_attr){.name = "group", .kind = CD_GRAPH_ATTR_INT, .i = s.dim[1]};
    if (!strcmp(row[op].op, "Concat") || !strcmp(row[op].op, "Softmax"))
        attr[n_attr++] = (cd_graph_attr){.name = "axis", .kind = CD_GRAPH_ATTR_INT, .i = 1};
    snprintf(name, sizeof name, "%s%u", row[op].name, m->n++);
    if (!m->st) m->st = cd_graph_add(m->g, name, row[op].op, in, n, attr, n_attr, &out, 1, m->err);
    return out;
}

static uint32_t put_part(maker *m, const cd_detect_part *p, uint32_t x) {
    const uint32_t from = x;
    uint32_t out = CD_GRAPH_NONE;
    for (uint32_t k = 0; k < p->n; k++) x = put_operator(m, p->op[k], x);
    if (!p->branch || m->st) return x;
    const uint32_t in[2] = {from, x};
    m->st = cd_graph_add(m->g, "join", "Add", in, 2, NULL, 0, &out, 1, m->err);
    return out;
}

/* ---- a network ---- */

static void put_part_name(cd_buf *b, const cd_detect_part *p, const char *sep) {
    for (uint32_t k = 0; p && k < p->n; k++)
        cd_buf_putf(b, "%s%s", k ? "+" : sep, row[p->op[k]].name);
    if (p && p->branch) cd_buf_puts(b, "|Add");
}

static cdmpp_status build(const char *name, const cd_detect_part *first,
                          const cd_detect_part *second, const cd_graph_shape *in, cd_graph **out,
                          cdmpp_err *err) {
    maker m = {.err = err};
    CD_TRY(cd_graph_new(name, &m.g, err));
    m.g->opset = CD_ONNX_OPSET;
    uint32_t x = input(&m, *in);
    if (!m.st) x = put_part(&m, first, x);
    if (!m.st && second) x = put_part(&m, second, x);
    if (!m.st) m.st = cd_graph_result(m.g, x, err);
    if (m.st) cd_graph_free(m.g);
    else *out = m.g;
    return m.st;
}

static cdmpp_status get(cd_detect *d, cd_buf *b, const cd_detect_part *first,
                        const cd_detect_part *second, const cd_graph_shape *in, uint32_t *out,
                        cdmpp_err *err) {
    put_part_name(b, first, "");
    put_part_name(b, second, first->n ? "+" : "");
    for (uint32_t k = 0; k < in->rank; k++)
        cd_buf_putf(b, "%c%lld", k ? 'x' : ' ', (long long)in->dim[k]);
    cd_buf_put(b, "", 1);
    if (b->oom) return CD_FAIL(err, ENOMEM, "test networks");
    for (uint32_t k = 0; k < d->n_network; k++)
        if (!strcmp(d->network[k].name, b->p)) {
            *out = k;
            return CDMPP_OK;
        }
    if (CD_GROW_IN(&d->arena, d->network, d->n_network, d->cap_network))
        return CD_FAIL(err, ENOMEM, "test networks");
    cd_detect_network *n = &d->network[d->n_network];
    *n = (cd_detect_network){.id = d->n_network,
                             .name = cd_str_dup(&d->arena, (cd_str){b->p, b->n - 1})};
    if (!n->name) return CD_FAIL(err, ENOMEM, "test networks");
    CD_TRY(build(n->name, first, second, in, &n->graph, err));
    *out = d->n_network++;
    return CDMPP_OK;
}

/* A network of one or two parts (second NULL) on an input of that shape, the one that was made
 * before or a new one; *out: its number. Errors: ENOMEM and those of cd_graph_add. */
static cdmpp_status detect_network_get(cd_detect *d, const cd_detect_part *first,
                                       const cd_detect_part *second, const cd_graph_shape *in,
                                       uint32_t *out, cdmpp_err *err) {
    cd_buf b = {0};
    const cdmpp_status st = get(d, &b, first, second, in, out, err);
    cd_buf_free(&b);
    return st;
}

/* Shape of a network's result. */
static const cd_graph_shape *detect_network_result(const cd_detect *d, uint32_t network) {
    const cd_graph *g = d->network[network].graph;
    return &g->tensor[g->output[0]].shape;
}

enum { REPEATS = 7, MOST = 4, MAX_REPEATS = 4096 };

typedef struct detector {
    cd_detect *d;
    const cd_detect_backend *b;
    const cd_detect_options *o;
    unsigned repeats;
    uint32_t n_op, op[CD_DETECT_OPERATORS];
    double *saving, *left, *right, *both; /* (MOST repeats) */
    cdmpp_err *err;
} detector;

void cd_detect_free(cd_detect *d) {
    if (!d) return;
    for (uint32_t k = 0; k < d->n_network; k++) cd_graph_free(d->network[k].graph);
    cd_arena_free(&d->arena);
    cd_mem_free(d);
}

/* ---- one test ---- */

/* By logarithms of factorials: exact enough for any n. */
double cd_detect_confidence(unsigned k, unsigned n) {
    double tail = 0;
    if (k < n - k) k = n - k;
    for (unsigned i = k; i <= n; i++)
        tail += exp(lgamma(n + 1.0) - lgamma(i + 1.0) - lgamma(n - i + 1.0) - n * log(2));
    return fmax(0.5, 1 - tail);
}

static cdmpp_status time_of(const detector *x, uint32_t network, unsigned repeat, double *out,
                            cdmpp_err *err) {
    if (x->o->stop && *x->o->stop) return CD_FAIL(err, EINTERRUPTED, "while fusion was detected");
    CD_TRY(x->b->time(x->b->ctx, &x->d->network[network], repeat, out, err));
    return isfinite(*out) && *out > 0 ? CDMPP_OK : CD_FAIL(err, ENUMERIC, "a time of %g s", *out);
}

static cdmpp_status repeat_once(detector *x, const uint32_t net[3], unsigned r, cdmpp_err *err) {
    CD_TRY(time_of(x, net[0], r, &x->left[r], err));
    CD_TRY(time_of(x, net[1], r, &x->right[r], err));
    CD_TRY(time_of(x, net[2], r, &x->both[r], err));
    x->saving[r] = (x->left[r] + x->right[r] - x->both[r]) / fmin(x->left[r], x->right[r]);
    return CDMPP_OK;
}

/* Medians sort in place: the pairs of a repeat are lost, and not needed any more. */
static void summarize(detector *x, cd_detect_test *t) {
    const unsigned n = t->repeats;
    t->saving = cd_sort_to_median(x->saving, n);
    t->saving_low = x->saving[0];
    t->saving_high = x->saving[n - 1];
    t->left_s = cd_sort_to_median(x->left, n);
    t->right_s = cd_sort_to_median(x->right, n);
    t->both_s = cd_sort_to_median(x->both, n);
}

/* The decision is asked for after 1, 2 and 4 times the repeats, not after each one: asking more
 * often finds what is not there more often. */
static cdmpp_status measure(detector *x, const uint32_t net[3], cd_detect_test *t, cdmpp_err *err) {
    unsigned above = 0;
    for (unsigned r = 0; r < MOST * x->repeats; r++) {
        CD_TRY(repeat_once(x, net, r, err));
        above += x->saving[r] > x->d->alpha;
        t->repeats = r + 1;
        if ((r + 1) % x->repeats || r + 1 == 3 * x->repeats) continue;
        t->confidence = cd_detect_confidence(above, r + 1);
        if (t->confidence < x->d->level) continue;
        t->answer = 2 * above > r + 1 ? CD_FUSION_FUSED : CD_FUSION_APART;
        break;
    }
    summarize(x, t);
    return CDMPP_OK;
}

/* Fewer programs than both sides have on their own: it was fused. */
static cdmpp_status ask_back_end(detector *x, const uint32_t net[3], cd_detect_test *t,
                                 cdmpp_err *err) {
    uint32_t n[3] = {0};
    if (!x->b->programs) return CDMPP_OK;
    for (int k = 0; k < 3; k++)
        CD_TRY(x->b->programs(x->b->ctx, &x->d->network[net[k]], &n[k], err));
    t->known = n[2] < n[0] + n[1] ? CD_FUSION_FUSED : CD_FUSION_APART;
    return CDMPP_OK;
}

/* The test of a cut between two parts, appended. What the back end cannot do is the test's own
 * error. */
static cdmpp_status add_test(detector *x, cd_detect_test t, const cd_detect_part *left,
                             const cd_detect_part *right, const cd_graph_shape *in) {
    cd_detect *d = x->d;
    uint32_t net[3];
    if (CD_GROW_IN(&d->arena, d->test, d->n, d->cap))
        return CD_FAIL(x->err, ENOMEM, "tests of fusion");
    CD_TRY(detect_network_get(d, left, NULL, in, &net[0], x->err));
    CD_TRY(detect_network_get(d, right, NULL, detect_network_result(d, net[0]), &net[1], x->err));
    CD_TRY(detect_network_get(d, left, right, in, &net[2], x->err));
    cdmpp_status st = measure(x, net, &t, &t.why);
    if (!st) st = ask_back_end(x, net, &t, &t.why);
    if (st == CDMPP_EINTERRUPTED || st == CDMPP_ENOMEM) {
        if (x->err) *x->err = t.why;
        return st;
    }
    t.why.code = st;
    d->test[d->n++] = t;
    if (x->o->told) x->o->told(x->o->ctx, &t);
    return CDMPP_OK;
}

/* ---- which tests ---- */

static cdmpp_status pair(detector *x, uint32_t a, uint32_t b) {
    const cd_detect_part left = {1, {a}, false}, right = {1, {b}, false};
    const uint32_t op[] = {a, b};
    cd_graph_shape in;
    if (!detect_shape(x->o, op, 2, &in)) {
        x->d->apart++;
        return CDMPP_OK;
    }
    return add_test(
        x, (cd_detect_test){.first = detect_operator_name(a), .second = detect_operator_name(b)},
        &left, &right, &in);
}

static cd_fusion_answer answer_of(const detector *x, uint32_t a, uint32_t b) {
    for (uint32_t k = 0; k < x->d->n; k++) {
        const cd_detect_test *t = &x->d->test[k];
        if (!t->before && !strcmp(t->first, detect_operator_name(a)) &&
            !strcmp(t->second, detect_operator_name(b)))
            return t->answer;
    }
    return CD_FUSION_UNKNOWN;
}

/* One cut for each operator behind the second one. */
static cdmpp_status chain(detector *x, const uint32_t *op, uint32_t n) {
    cd_graph_shape in;
    if (!detect_shape(x->o, op, n, &in)) return CDMPP_OK;
    for (uint32_t k = 2; k < n && answer_of(x, op[k - 2], op[k - 1]) == CD_FUSION_FUSED; k++) {
        cd_detect_part left = {k, {0}, false};
        const cd_detect_part right = {1, {op[k]}, false};
        memcpy(left.op, op, k * sizeof *op);
        CD_TRY(add_test(x,
                        (cd_detect_test){.before = detect_operator_name(op[k - 2]),
                                         .first = detect_operator_name(op[k - 1]),
                                         .second = detect_operator_name(op[k])},
                        &left, &right, &in));
    }
    return CDMPP_OK;
}

static bool keeps_shape(detector *x, uint32_t op, const cd_graph_shape *in, cdmpp_status *st) {
    const cd_detect_part p = {1, {op}, false};
    uint32_t n;
    *st = detect_network_get(x->d, &p, NULL, in, &n, x->err);
    return !*st && !memcmp(detect_network_result(x->d, n), in, sizeof *in);
}

/* An operator that a second one and an Add behind that read; the first second one for which all
 * three pairs are fused. */
static cdmpp_status branch(detector *x, uint32_t a) {
    const uint32_t add = detect_operator_find((cd_str){"Add", 3});
    const cd_detect_part left = {1, {a}, false};
    cd_graph_shape in;
    uint32_t net;
    if (answer_of(x, a, add) != CD_FUSION_FUSED || !detect_shape(x->o, &a, 1, &in)) return CDMPP_OK;
    CD_TRY(detect_network_get(x->d, &left, NULL, &in, &net, x->err));
    const cd_graph_shape mid = *detect_network_result(x->d, net);
    for (uint32_t k = 0; k < x->n_op; k++) {
        const cd_detect_part right = {1, {x->op[k]}, true};
        cdmpp_status st;
        if (answer_of(x, a, x->op[k]) != CD_FUSION_FUSED ||
            answer_of(x, x->op[k], add) != CD_FUSION_FUSED)
            continue;
        const bool fits = keeps_shape(x, x->op[k], &mid, &st);
        if (fits)
            return add_test(
                x,
                (cd_detect_test){.first = detect_operator_name(a), .second = CD_FUSION_RULES_MANY},
                &left, &right, &in);
        CD_TRY(st);
    }
    return CDMPP_OK;
}

/* ---- the lists of options ---- */

static cdmpp_status find(cd_str name, uint32_t *op, cdmpp_err *err) {
    *op = detect_operator_find(name);
    return *op != CD_GRAPH_NONE
               ? CDMPP_OK
               : CD_FAIL(err, EUSAGE, "'%.*s': expected %s", name.n < 40 ? (int)name.n : 40, name.p,
                         cd_detect_operator_names());
}

/* The next piece of a list up to `by`; false: the list is over. */
static bool next_piece(const char **at, char by, cd_str *out) {
    if (!**at) return false;
    const char *end = strchr(*at, by);
    *out = (cd_str){*at, end ? (size_t)(end - *at) : strlen(*at)};
    *at += out->n + (end != NULL);
    return true;
}

static cdmpp_status read_operators(detector *x) {
    const char *at = x->o->operators ? x->o->operators : CD_DETECT_USUAL;
    for (cd_str s; next_piece(&at, ',', &s);) {
        uint32_t op;
        CD_TRY(find(s, &op, x->err));
        for (uint32_t k = 0; k < x->n_op; k++)
            if (x->op[k] == op)
                return CD_FAIL(x->err, EUSAGE, "operator %s stands twice",
                               detect_operator_name(op));
        x->op[x->n_op++] = op; /* there are fewer than CD_DETECT_OPERATORS */
    }
    return x->n_op ? CDMPP_OK : CD_FAIL(x->err, EUSAGE, "no operator to test");
}

static cdmpp_status one_chain(detector *x, cd_str s) {
    char text[256];
    const char *at = text;
    uint32_t op[CD_DETECT_CHAIN], n = 0, tested = 0;
    if (s.n >= sizeof text)
        return CD_FAIL(x->err, EUSAGE, "a chain of more than %d operators", CD_DETECT_CHAIN);
    memcpy(text, s.p, s.n);
    text[s.n] = 0;
    for (cd_str name; next_piece(&at, '+', &name);) {
        if (n == CD_DETECT_CHAIN)
            return CD_FAIL(x->err, EUSAGE, "a chain of more than %d operators: %s", CD_DETECT_CHAIN,
                           text);
        CD_TRY(find(name, &op[n++], x->err));
    }
    if (n < 3)
        return CD_FAIL(x->err, EUSAGE, "expected a chain of at least three operators, found '%s'",
                       text);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < x->n_op; i++) tested += x->op[i] == op[k];
    if (tested < n)
        return x->o->chains ? CD_FAIL(x->err, EUSAGE,
                                      "chain %s: each of its operators must be tested, too", text)
                            : CDMPP_OK;
    return chain(x, op, n);
}

static cdmpp_status all_chains(detector *x) {
    const char *at = x->o->chains ? x->o->chains : CD_DETECT_USUAL_CHAINS;
    for (cd_str s; next_piece(&at, ',', &s);) CD_TRY(one_chain(x, s));
    return CDMPP_OK;
}

static cdmpp_status run(detector *x) {
    const unsigned most = MOST * x->repeats;
    x->saving = CD_NEWN(&x->d->arena, double, most);
    x->left = CD_NEWN(&x->d->arena, double, most);
    x->right = CD_NEWN(&x->d->arena, double, most);
    x->both = CD_NEWN(&x->d->arena, double, most);
    if (!x->saving || !x->left || !x->right || !x->both)
        return CD_FAIL(x->err, ENOMEM, "tests of fusion");
    CD_TRY(read_operators(x));
    for (uint32_t a = 0; a < x->n_op; a++)
        for (uint32_t b = 0; b < x->n_op; b++) CD_TRY(pair(x, x->op[a], x->op[b]));
    CD_TRY(all_chains(x));
    for (uint32_t a = 0; a < x->n_op; a++) CD_TRY(branch(x, x->op[a]));
    return CDMPP_OK;
}

cdmpp_status cd_detect_run(const cd_detect_backend *b, const cd_detect_options *o, cd_detect **out,
                           cdmpp_err *err) {
    detector x = {.d = cd_mem_zalloc(1, sizeof *x.d), .b = b, .o = o, .err = err};
    if (!x.d) return CD_FAIL(err, ENOMEM, "tests of fusion");
    x.repeats = !o->repeats ? REPEATS : o->repeats < MAX_REPEATS ? o->repeats : MAX_REPEATS;
    x.d->alpha = o->alpha > 0 ? o->alpha : 0.5;
    x.d->level = o->level > 0 ? o->level : 0.99;
    const cdmpp_status st = run(&x);
    if (st) cd_detect_free(x.d);
    else *out = x.d;
    return st;
}
