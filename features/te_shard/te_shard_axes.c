/* Which axes an operator can be split along, and what people call them: N, H, W, O, I of
 * convolutions, M, N, K of products. Names come from how the main operator, the one with most
 * additions, reads its two factors. */
#include <stdio.h>
#include <string.h>

#include "features/te_shard/te_shard_internal.h"

/* If half of an axis still needs more than this share of the additions, splitting it is useless: a
 * softmax along its own axis. */
#define MOST_REPEATED 0.75

static cdmpp_status no_memory(cdmpp_err *err) {
    return CD_FAIL(err, ENOMEM, "parts of an operator");
}

/* ---- sums ---- */

typedef struct {
    const cd_te_dag *dag;
    const cd_te_op *reader;
    const bool *behind;    /* (n_op) the sum, and what reads it */
    bool reads_sum, other; /* of it: at the reader's own place; at another one */
} element_check;

static void check_element(void *ctx, const cd_expr *load) {
    element_check *c = ctx;
    const uint32_t src = c->dag->tensor_op[load->u.i];
    if (!c->behind[src]) return;
    c->reads_sum = true;
    if (load->n != c->reader->n_axis) c->other = true;
    for (uint32_t d = 0; d < load->n && !c->other; d++)
        c->other = load->a[d] != c->reader->axis[d].var;
}

/* Is all behind operator `sum` element by element of it? */
static bool elements_of(const cd_te_dag *dag, uint32_t sum, uint32_t result) {
    bool behind[256] = {false};
    if (dag->n_op > 256) return false;
    behind[sum] = true;
    for (uint32_t i = sum + 1; i <= result; i++) {
        const cd_te_op *op = &dag->op[i];
        element_check c = {dag, op, behind, false, false};
        for (uint32_t k = 0; !op->is_placeholder && k < op->n_out; k++)
            cd_te_shard_visit_loads(op->body[k], check_element, &c);
        for (uint32_t k = 0; op->init && k < op->n_out; k++)
            cd_te_shard_visit_loads(op->init[k], check_element, &c);
        if (op->cond) cd_te_shard_visit_loads(op->cond, check_element, &c);
        if (!c.reads_sum) continue;
        if (c.other || op->red || op->n_out != 1 || op->rank != dag->op[sum].rank ||
            memcmp(op->shape, dag->op[sum].shape, op->rank * sizeof *op->shape) != 0)
            return false;
        behind[i] = true;
    }
    return behind[result];
}

static bool adds(const cd_te_reducer *r) {
    if (!r || r->n != 1 || r->result[0]->op != CD_ADD) return false;
    const cd_expr *const *a = r->result[0]->a, *zero = r->identity[0];
    const bool both =
        (a[0] == r->lhs[0] && a[1] == r->rhs[0]) || (a[1] == r->lhs[0] && a[0] == r->rhs[0]);
    return both &&
           ((zero->op == CD_INT && zero->u.i == 0) || (zero->op == CD_FLOAT && zero->u.f == 0));
}

typedef struct {
    const cd_te_op *op;
    const cd_expr *var; /* a reduction axis */
    bool window;        /* it moves along an axis of the result */
} window_check;

static void check_window(void *ctx, const cd_expr *load) {
    window_check *c = ctx;
    for (uint32_t d = 0; d < load->n; d++) {
        bool axis = false;
        for (uint32_t i = 0; i < c->op->n_axis; i++)
            axis = axis || cd_expr_uses(load->a[d], c->op->axis[i].var);
        if (axis && cd_expr_uses(load->a[d], c->var)) c->window = true;
    }
}

bool cd_te_shard_is_sum(const cd_te_dag *dag, uint32_t result, uint32_t sum, uint32_t r) {
    if (sum >= dag->n_op || sum > result || dag->op[sum].is_placeholder) return false;
    const cd_te_op *op = &dag->op[sum];
    if (r >= op->n_raxis || !adds(op->red) || op->init || op->n_out != 1 || op->rank > CD_BOX_RANK)
        return false;
    if (!cd_expr_is_int_value(op->raxis[r].min, 0) || !cd_expr_is_int(op->raxis[r].extent))
        return false;
    return elements_of(dag, sum, result);
}

/* ---- names ---- */

enum { IN_A = 1, IN_B = 2, WINDOW = 4, PLAIN = 8 }; /* of an axis of the main operator */

typedef struct {
    const cd_te_dag *dag;
    uint32_t op; /* the main operator; UINT32_MAX: none reduces */
    bool product, conv;
    uint8_t role[CD_TE_MAX_AXIS], rrole[CD_TE_MAX_AXIS];
    uint32_t n_window;
    const char *name[CD_TE_MAX_AXIS], *rname[CD_TE_MAX_AXIS]; /* NULL: the axis' own */
    int8_t from[CD_BOX_RANK]; /* (rank of the result) axis of the main operator, or -1 */
} naming;

typedef struct {
    naming *n;
    const cd_te_op *op;
    uint8_t side;
} role_walk;

static void note_roles(void *ctx, const cd_expr *load) {
    role_walk *w = ctx;
    for (uint32_t d = 0; d < load->n; d++) {
        const cd_expr *e = load->a[d];
        for (uint32_t i = 0; i < w->op->n_axis; i++) {
            if (!cd_expr_uses(e, w->op->axis[i].var)) continue;
            w->n->role[i] |= w->side;
            for (uint32_t r = 0; r < w->op->n_raxis; r++)
                if (cd_expr_uses(e, w->op->raxis[r].var)) w->n->role[i] |= WINDOW;
        }
    }
}

static const cd_expr *without_cast(const cd_expr *e) {
    while (e->op == CD_CAST) e = e->a[0];
    return e;
}

/* An axis that shares an index with a reduction axis and does not occur in the second factor: rows
 * and columns of images. */
static bool is_window(const naming *n, uint32_t i) {
    return (n->role[i] & WINDOW) && (n->role[i] & (IN_A | IN_B)) == IN_A;
}

static void find_roles(naming *n) {
    const cd_te_op *op = &n->dag->op[n->op];
    const cd_expr *body = without_cast(op->body[0]);
    n->product = body->op == CD_MUL && (body->a[0]->flags & CD_EXPR_HAS_LOAD) &&
                 (body->a[1]->flags & CD_EXPR_HAS_LOAD);
    role_walk a = {n, op, IN_A}, b = {n, op, IN_B};
    cd_te_shard_visit_loads(n->product ? body->a[0] : body, note_roles, &a);
    if (n->product) cd_te_shard_visit_loads(body->a[1], note_roles, &b);
    for (uint32_t i = 0; i < op->n_axis; i++) n->n_window += is_window(n, i);
    n->conv = n->product && n->n_window;
    for (uint32_t i = 0; i < n->dag->n_op; i++)
        n->conv = n->conv || (n->product && strstr(n->dag->op[i].tag, "conv2d"));
}

static void name_windows(naming *n) {
    static const char *const names[3][3] = {{"W"}, {"H", "W"}, {"D", "H", "W"}};
    uint32_t k = 0;
    for (uint32_t i = 0; n->n_window && n->n_window <= 3 && i < n->dag->op[n->op].n_axis; i++)
        if (is_window(n, i)) n->name[i] = names[n->n_window - 1][k++];
}

/* The first axis without a name that has the role; from the last one on when `last`. */
static void name_role(naming *n, uint8_t role, const char *name, bool last) {
    const uint32_t count = n->dag->op[n->op].n_axis;
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t i = last ? count - 1 - k : k;
        const cd_expr *extent = n->dag->op[n->op].axis[i].extent;
        if (n->name[i] || (n->role[i] & (IN_A | IN_B)) != role || cd_expr_is_int_value(extent, 1))
            continue;
        n->name[i] = name;
        return;
    }
}

static bool slides(const cd_te_op *op, uint32_t r, const naming *n) {
    window_check c = {op, op->raxis[r].var, false};
    cd_te_shard_visit_loads(op->body[0], check_window, &c);
    if (!c.window || !n->product || op != &n->dag->op[n->op]) return c.window;
    /* the channel of a group, beside the filter's, is none */
    for (uint32_t i = 0; i < op->n_axis; i++) {
        window_check one = {op, op->raxis[r].var, false};
        cd_te_op only = *op;
        only.axis = &op->axis[i];
        only.n_axis = 1;
        one.op = &only;
        cd_te_shard_visit_loads(op->body[0], check_window, &one);
        if (one.window && is_window(n, i)) return true;
    }
    return false;
}

static void name_sums(naming *n) {
    const cd_te_op *op = &n->dag->op[n->op];
    for (uint32_t r = 0; n->product && r < op->n_raxis; r++) {
        if (slides(op, r, n) || cd_expr_is_int_value(op->raxis[r].extent, 1)) continue;
        n->rname[r] = n->conv ? "I" : "K";
        return;
    }
}

static bool channel_sum(const naming *n) {
    for (uint32_t r = 0; r < n->dag->op[n->op].n_raxis; r++)
        if (n->rname[r]) return true;
    return false;
}

static void name_axes(naming *n) {
    name_windows(n);
    name_sums(n);
    if (n->conv) {
        name_role(n, IN_A, "N", false);
        name_role(n, IN_B, "O", false);
        name_role(n, IN_A | IN_B, channel_sum(n) ? "O" : "C", false); /* of groups; depthwise */
    } else if (n->product) {
        name_role(n, IN_A, "M", true);
        name_role(n, IN_B, "N", true);
        name_role(n, IN_A | IN_B, "B", false);
        name_role(n, IN_A, "B", true);
    } else if (n->n_window) {
        /* of pooling: batches come first in any layout */
        for (uint32_t i = 0, k = 0; i < n->dag->op[n->op].n_axis; i++)
            if (!n->name[i] && n->role[i] && k < 2) n->name[i] = k++ || i ? "C" : "N";
    }
}

static double work_of(const cd_te_shard_footprint *need, uint32_t i, cdmpp_status *st) {
    const cd_te_op *op = &need->dag->op[i];
    cd_te_shard_env env;
    if (op->is_placeholder || !op->red || !need->live[i]) return 0;
    double w = op->body[0]->size + 1.0;
    *st = cd_te_shard_env_of(need, i, &env);
    if (*st) return 0;
    for (uint32_t d = 0; d < op->rank; d++) w *= (double)need->box[i].n[d];
    for (uint32_t r = 0; r < op->n_raxis; r++)
        w *= (double)cd_te_shard_range(&env, op->raxis[r].extent).hi;
    return w;
}

static cdmpp_status find_main(naming *n, const cd_te_shard_footprint *whole) {
    double most = 0;
    cdmpp_status st = CDMPP_OK;
    n->op = UINT32_MAX;
    for (uint32_t i = 0; i <= whole->result && !st; i++) {
        const double w = work_of(whole, i, &st);
        if (w <= most) continue;
        most = w;
        n->op = i;
    }
    return st;
}

/* Axes of the result that are axes of the main operator all the way. */
typedef struct {
    const cd_te_dag *dag;
    const cd_te_op *reader;
    int8_t *axis; /* (n_op, CD_BOX_RANK) result's axis, -1 none, -2 not seen */
    uint32_t op;
} trail;

static void follow(void *ctx, const cd_expr *load) {
    trail *t = ctx;
    int8_t *to = t->axis + (size_t)t->dag->tensor_op[load->u.i] * CD_BOX_RANK;
    const int8_t *from = t->axis + (size_t)t->op * CD_BOX_RANK;
    for (uint32_t d = 0; d < load->n && d < CD_BOX_RANK; d++) {
        int8_t found = -1;
        for (uint32_t i = 0; i < t->reader->n_axis && i < CD_BOX_RANK; i++)
            if (load->a[d] == t->reader->axis[i].var) found = from[i] < 0 ? -1 : from[i];
        to[d] = to[d] == -2 || to[d] == found ? found : -1;
    }
}

/* Backward from the result: an axis counts as the result's only if every read on the way uses it
 * unchanged. */
static cdmpp_status trace(naming *n, const cd_te_shard_footprint *whole) {
    const uint32_t result = whole->result;
    const size_t all = (size_t)n->dag->n_op * CD_BOX_RANK;
    trail t = {.dag = n->dag, .axis = CD_NEWN(whole->a, int8_t, all)};
    if (!t.axis) return no_memory(whole->err);
    memset(t.axis, -2, all);
    memset(n->from, -1, sizeof n->from);
    for (int8_t d = 0; d < CD_BOX_RANK; d++) t.axis[(size_t)result * CD_BOX_RANK + (size_t)d] = d;
    for (uint32_t i = result + 1; n->op != UINT32_MAX && i-- > n->op + 1;) {
        t.op = i;
        t.reader = &n->dag->op[i];
        for (uint32_t k = 0; whole->live[i] && !t.reader->is_placeholder && k < t.reader->n_out;
             k++)
            cd_te_shard_visit_loads(t.reader->body[k], follow, &t);
    }
    for (uint32_t d = 0; n->op != UINT32_MAX && d < n->dag->op[n->op].rank; d++) {
        const int8_t at = t.axis[(size_t)n->op * CD_BOX_RANK + d];
        if (at >= 0) n->from[at] = (int8_t)d;
    }
    return CDMPP_OK;
}

/* ---- the list ---- */

typedef struct {
    const cd_te_dag *dag;
    cd_arena *a;
    cd_te_shard_axis *way;
    uint32_t n;
    cdmpp_err *err;
} list;

static bool taken(const list *l, const char *name) {
    for (uint32_t i = 0; i < l->n; i++)
        if (!strcmp(l->way[i].name, name)) return true;
    return false;
}

static cdmpp_status add(list *l, cd_te_shard_axis w, const char *name, const char *own) {
    char text[80];
    if (!name || taken(l, name)) name = own;
    for (uint32_t k = 2; taken(l, name); k++) {
        snprintf(text, sizeof text, "%.60s.%u", own, k);
        name = text;
    }
    w.name = cd_str_dup(l->a, (cd_str){name, strlen(name)});
    if (!w.name) return no_memory(l->err);
    l->way[l->n++] = w;
    return CDMPP_OK;
}

/* Does half of the axis need clearly fewer additions? */
static cdmpp_status divides(const cd_te_shard_footprint *whole, uint32_t axis, bool *yes) {
    const cd_te_op *op = &whole->dag->op[whole->result];
    cd_te_shard_footprint half = {.dag = whole->dag,
                                  .a = whole->a,
                                  .whole = whole,
                                  .given = UINT32_MAX,
                                  .cut_op = UINT32_MAX,
                                  .cut_raxis = UINT32_MAX,
                                  .err = whole->err};
    cd_box box = cd_box_whole(op->rank, op->shape);
    cdmpp_status st = CDMPP_OK;
    double all = 0, some = 0;
    box.n[axis] = (box.n[axis] + 1) / 2;
    CD_TRY(cd_te_shard_footprint_grow(&half, whole->result, &box));
    for (uint32_t i = 0; i <= whole->result && !st; i++) {
        all += work_of(whole, i, &st);
        if (!st) some += work_of(&half, i, &st);
    }
    *yes = some <= MOST_REPEATED * all;
    return st;
}

static cdmpp_status add_axes(list *l, const naming *n, const cd_te_shard_footprint *whole) {
    const cd_te_op *op = &l->dag->op[whole->result];
    for (uint32_t d = 0; d < op->rank; d++) {
        bool yes = false;
        if (op->shape[d] < 2) continue;
        CD_TRY(divides(whole, d, &yes));
        if (!yes) continue;
        const char *name = n->from[d] >= 0 ? n->name[n->from[d]] : NULL;
        CD_TRY(add(l, (cd_te_shard_axis){.op = whole->result, .axis = d, .extent = op->shape[d]},
                   name, op->axis[d].name));
    }
    return CDMPP_OK;
}

static cdmpp_status add_sums(list *l, const naming *n, const cd_te_shard_footprint *whole) {
    for (uint32_t i = 0; i <= whole->result; i++) {
        const cd_te_op *op = &l->dag->op[i];
        for (uint32_t r = 0; !op->is_placeholder && r < op->n_raxis; r++) {
            if (!whole->live[i] || !cd_te_shard_is_sum(l->dag, whole->result, i, r) ||
                op->raxis[r].extent->u.i < 2 || slides(op, r, n))
                continue;
            CD_TRY(add(l,
                       (cd_te_shard_axis){
                           .reduce = true, .op = i, .axis = r, .extent = op->raxis[r].extent->u.i},
                       i == n->op ? n->rname[r] : NULL, op->raxis[r].name));
        }
    }
    return CDMPP_OK;
}

/* A definition whose ranges cannot be derived has no split axes; that is no error. */
static cdmpp_status find_ways(list *l, uint32_t result, cd_arena *scratch) {
    cd_te_shard_footprint whole;
    naming n = {.dag = l->dag};
    uint32_t most = CD_BOX_RANK;
    cdmpp_err ignored = {0};
    const cdmpp_status st =
        cd_te_shard_footprint_whole(l->dag, scratch, result, UINT32_MAX, &whole, &ignored);
    if (st == CDMPP_EUNSUPPORTED) return CDMPP_OK;
    if (st) return no_memory(l->err);
    whole.err = l->err;
    for (uint32_t i = 0; i < l->dag->n_op; i++) most += l->dag->op[i].n_raxis;
    l->way = CD_NEWN(l->a, cd_te_shard_axis, most);
    if (!l->way) return no_memory(l->err);
    CD_TRY(find_main(&n, &whole));
    CD_TRY(trace(&n, &whole));
    if (n.op != UINT32_MAX) find_roles(&n), name_axes(&n);
    CD_TRY(add_axes(l, &n, &whole));
    return add_sums(l, &n, &whole);
}

cdmpp_status cd_te_shard_axes(const cd_te_dag *dag, cd_arena *a, cd_te_shard_axis **out,
                              uint32_t *n, cdmpp_err *err) {
    cd_arena scratch = {0};
    list l = {.dag = dag, .a = a, .err = err};
    const uint32_t result = cd_te_shard_result(dag);
    cdmpp_status st = CDMPP_OK;
    if (result != UINT32_MAX) st = find_ways(&l, result, &scratch);
    cd_arena_free(&scratch);
    *out = l.way;
    *n = st ? 0 : l.n;
    return st;
}
