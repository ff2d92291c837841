/* Decides which operators run as one: TVM's partition by post-dominators (FuseOps, v0.9). 1. For
 * each operator, find the operator in which all paths of its readers meet (its parent in the tree),
 * and the worst pattern on the way. 2. Phase 0: an anchor (conv, dense, pool) joins a parent that
 * reads it element by element, and a broadcast operator joins a parent that is at most a reduction.
 * Phase 1: operators that move elements join each other. Phase 2: operators that end in a
 * concatenation join it. 3. All operators between join too, if their patterns allow it. Rules of a
 * back end (fusion_rules.h) are asked last, for each edge that would come to lie inside a group. */
#include "profiler/network/fusion/fusion.h"

#include <string.h>

typedef struct edge {
    uint32_t to, next; /* next + 1; 0: the last */
    cd_fuse_pattern pattern;
} edge;

typedef struct place {      /* of a node */
    bool op;                /* an operator of the network */
    uint32_t first;         /* edge + 1 */
    uint32_t parent, depth; /* in the tree; the sink's parent is itself */
    cd_fuse_pattern path;   /* worst pattern up to the parent */
    uint32_t root, size;    /* union-find */
    uint32_t more;          /* of a root: what the group reads, less one, at most */
    cd_fuse_pattern kind;   /* of the group that the node was the last of */
    uint32_t seen, counted;
} place;

typedef struct cutter {
    cd_fuse_graph *f;
    const cd_fusion_rules *rules; /* NULL: TVM's alone */
    cdmpp_err *err;
    cdmpp_status st;
    uint32_t sink, n_edge; /* sink: number of nodes; reads the network's results */
    edge *edge;
    place *node; /* (n + 1) */
    uint32_t stamp, *list, n_list;
    uint32_t most;
} cutter;

static cd_fuse_pattern worse(cd_fuse_pattern a, cd_fuse_pattern b) { return a > b ? a : b; }

static bool same_shape(const cd_graph_shape *a, const cd_graph_shape *b) {
    return a->rank == b->rank && !memcmp(a->dim, b->dim, a->rank * sizeof a->dim[0]);
}

/* ---- the graph, forwards ---- */

static void connect(cutter *c, uint32_t from, uint32_t to, cd_fuse_pattern p) {
    c->edge[c->n_edge] = (edge){to, c->node[from].first, p};
    c->node[from].first = ++c->n_edge;
}

static bool is_operator(const cd_fuse_node *n) {
    return n->op != CD_FUSE_OP_LEAF && n->op != CD_FUSE_OP_CONST && !n->is_const;
}

/* Backwards from the results: only operators that a result needs are partitioned, and those that
 * unsupported operators read. */
static void mark_live(cutter *c) {
    const cd_fuse_graph *f = c->f;
    for (uint32_t k = 0; k < f->n_out; k++) c->node[f->out[k]].op = true;
    for (uint32_t i = f->n; i-- > 1;) {
        c->node[i].op = c->node[i].op || f->node[i].op == CD_FUSE_OP_EXTERN;
        for (uint32_t k = 0; c->node[i].op && k < f->node[i].n_in; k++)
            c->node[f->node[i].in[k]].op = true;
    }
    for (uint32_t i = 0; i < f->n; i++) c->node[i].op = c->node[i].op && is_operator(&f->node[i]);
}

/* Edges from an operator to its readers, with the pattern of the reading. A broadcast operator
 * reads element by element an operand of its own shape. Results, and operators without readers, are
 * read by the sink. */
static void build(cutter *c) {
    const cd_fuse_graph *f = c->f;
    mark_live(c);
    for (uint32_t i = 1; i < f->n; i++) {
        const cd_fuse_node *n = &f->node[i];
        for (uint32_t k = 0; c->node[i].op && k < n->n_in; k++) {
            if (!c->node[n->in[k]].op) continue;
            cd_fuse_pattern p =
                n->op == CD_FUSE_OP_TUPLE ? CD_FUSE_PATTERN_INJECTIVE : cd_fuse_op_pattern(n->op);
            if (p == CD_FUSE_PATTERN_BROADCAST && same_shape(&n->shape, &f->node[n->in[k]].shape))
                p = CD_FUSE_PATTERN_ELEM;
            connect(c, n->in[k], i, p);
        }
    }
    for (uint32_t k = 0; k < f->n_out; k++)
        if (c->node[f->out[k]].op) connect(c, f->out[k], c->sink, CD_FUSE_PATTERN_INJECTIVE);
    for (uint32_t i = 1; i < f->n; i++)
        if (c->node[i].op && !c->node[i].first) connect(c, i, c->sink, CD_FUSE_PATTERN_INJECTIVE);
}

/* ---- post-dominators ---- */

/* The nearest common ancestor of a and b, and the worst pattern on both ways up. */
static uint32_t meet(const cutter *c, uint32_t a, uint32_t b, cd_fuse_pattern *worst) {
    while (a != b) {
        const bool up_a = c->node[a].depth >= c->node[b].depth,
                   up_b = c->node[b].depth >= c->node[a].depth;
        if (up_a) *worst = worse(*worst, c->node[a].path), a = c->node[a].parent;
        if (up_b) *worst = worse(*worst, c->node[b].path), b = c->node[b].parent;
    }
    return a;
}

/* Readers have larger numbers, so one pass from the last operator to the first finds every
 * parent. */
static void dominate(cutter *c) {
    c->node[c->sink].parent = c->sink;
    c->node[c->sink].depth = 1;
    c->node[c->sink].path = CD_FUSE_PATTERN_OPAQUE;
    for (uint32_t i = c->sink; i-- > 1;) {
        if (!c->node[i].op) continue;
        const edge *e = &c->edge[c->node[i].first - 1];
        uint32_t p = e->to;
        cd_fuse_pattern worst = e->pattern;
        for (uint32_t k = e->next; k; k = c->edge[k - 1].next) {
            p = meet(c, p, c->edge[k - 1].to, &worst);
            worst = worse(worst, c->edge[k - 1].pattern);
        }
        c->node[i].parent = p;
        c->node[i].depth = c->node[p].depth + 1;
        c->node[i].path = worst;
    }
}

/* ---- groups ---- */

static uint32_t root_of(cutter *c, uint32_t i) {
    while (c->node[i].root != i) i = c->node[i].root = c->node[c->node[i].root].root;
    return i;
}

/* Does a program that takes up i's group, too, read no more than a program may? TVM's SplitArgs and
 * its FuseOps since v0.13 have such a bound (max_function_args) for the same reason: a
 * concatenation of a thousand parts in pieces must not become one program again. */
static bool count_reads(cutter *c, uint32_t i, uint32_t *more) {
    place *p = &c->node[root_of(c, i)];
    if (p->counted == c->stamp) return true;
    p->counted = c->stamp;
    *more += p->more;
    return *more < CD_FUSE_MAX_READS;
}

/* What lies between src and sink, both left out, in list; false: more than may be fused. */
static bool between(cutter *c, uint32_t src, uint32_t sink) {
    uint32_t count = c->node[root_of(c, src)].size + c->node[root_of(c, sink)].size, more = 0;
    c->n_list = 0;
    c->stamp++;
    if (!count_reads(c, src, &more) || !count_reads(c, sink, &more)) return false;
    for (uint32_t at = 0, from = src;; from = c->list[at++]) {
        for (uint32_t k = c->node[from].first; k; k = c->edge[k - 1].next) {
            const uint32_t to = c->edge[k - 1].to;
            if (to == sink || to == c->sink || c->node[to].seen == c->stamp) continue;
            c->node[to].seen = c->stamp;
            c->list[c->n_list++] = to;
            count += c->node[root_of(c, to)].size;
            if (count > c->most || !count_reads(c, to, &more)) return false;
        }
        if (at == c->n_list) return count <= c->most;
    }
}

/* Are all patterns between at most `most`? */
static bool all_at_most(cutter *c, cd_fuse_pattern most) {
    for (uint32_t i = 0; i < c->n_list; i++)
        if (c->node[root_of(c, c->list[i])].kind > most) return false;
    return true;
}

static void join(cutter *c, uint32_t child, uint32_t parent) {
    child = root_of(c, child);
    parent = root_of(c, parent);
    if (child == parent) return;
    c->node[parent].size += c->node[child].size;
    c->node[parent].more += c->node[child].more;
    c->node[child].root = parent;
    /* its anchor goes along */
    if (c->node[child].kind == CD_FUSE_PATTERN_OUT) c->node[parent].kind = CD_FUSE_PATTERN_OUT;
}

/* ---- rules of a back end ---- */

/* Views, and changes of layout, are no operators of the network: they go with either side. */
static bool is_neutral(const cutter *c, uint32_t i) {
    return c->f->node[i].origin == CD_GRAPH_NONE || c->f->node[i].op == CD_FUSE_OP_RESHAPE;
}

/* The operator whose value node i is, behind views; 0: none. */
static uint32_t maker(const cutter *c, uint32_t i) {
    while (i && c->node[i].op && is_neutral(c, i)) i = c->f->node[i].n_in ? c->f->node[i].in[0] : 0;
    return c->node[i].op ? i : 0;
}

static const char *name(const cutter *c, uint32_t i) {
    return cd_fusion_rules_name(c->f->g, &c->f->g->node[c->f->node[i].origin]);
}

/* The operator in the group of i that i's operator reads; 0: none. */
static uint32_t before(cutter *c, uint32_t i) {
    const uint32_t own = c->f->node[i].origin;
    for (uint32_t at = i;;) {
        uint32_t next = 0;
        for (uint32_t k = 0; k < c->f->node[at].n_in && !next; k++) {
            const uint32_t m = maker(c, c->f->node[at].in[k]);
            if (m && root_of(c, m) == root_of(c, i)) next = m;
        }
        if (!next || c->f->node[next].origin != own) return next;
        at = next;
    }
}

/* Do several operators read i, also through views? The network's result is a reader, too. *first:
 * one that was found; 0: none yet. */
static bool is_read_by_many(const cutter *c, uint32_t i, uint32_t *first) {
    for (uint32_t k = c->node[i].first; k; k = c->edge[k - 1].next) {
        const uint32_t to = c->edge[k - 1].to;
        if (to != c->sink && is_neutral(c, to)) {
            if (is_read_by_many(c, to, first)) return true;
            continue;
        }
        if (*first && (to == c->sink || *first == c->sink ||
                       c->f->node[to].origin != c->f->node[*first].origin))
            return true;
        *first = to;
    }
    return false;
}

/* What is not known is listed once, and not joined. */
static bool ask(cutter *c, const char *before, const char *first, const char *second) {
    const cd_fusion_answer a = cd_fusion_rules_find(c->rules, before, first, second);
    if (a != CD_FUSION_UNKNOWN) return a == CD_FUSION_FUSED;
    for (uint32_t k = 0; k < c->f->open.n; k++)
        if (!strcmp(c->f->open.rule[k].first, first) && !strcmp(c->f->open.rule[k].second, second))
            return false;
    if (!c->st) c->st = cd_fusion_rules_add(&c->f->open, NULL, first, second, a, c->err);
    return false;
}

static bool may_join(cutter *c, uint32_t from, uint32_t to) {
    const uint32_t m = maker(c, from);
    uint32_t reader = 0;
    if (!m || is_neutral(c, to) || c->f->node[m].origin == c->f->node[to].origin) return true;
    const uint32_t b = before(c, m);
    return ask(c, b ? name(c, b) : NULL, name(c, m), name(c, to)) &&
           (!is_read_by_many(c, m, &reader) || ask(c, NULL, name(c, m), CD_FUSION_RULES_MANY));
}

static bool may_join_all(cutter *c, uint32_t from, uint32_t sink) {
    for (uint32_t k = c->node[from].first; k; k = c->edge[k - 1].next)
        if ((c->edge[k - 1].to == sink || c->node[c->edge[k - 1].to].seen == c->stamp) &&
            !may_join(c, from, c->edge[k - 1].to))
            return false;
    return true;
}

/* Joins src, what lies between, and sink. What lies between is marked by `between`. */
static void fuse(cutter *c, uint32_t src, uint32_t sink) {
    if (c->rules && !may_join_all(c, src, sink)) return;
    for (uint32_t i = 0; c->rules && i < c->n_list; i++)
        if (!may_join_all(c, c->list[i], sink)) return;
    join(c, src, sink);
    for (uint32_t i = 0; i < c->n_list; i++) join(c, c->list[i], sink);
}

/* An anchor's parent must read it element by element, with nothing but broadcasts between. */
static void try_anchor(cutter *c, uint32_t i, uint32_t p) {
    if (c->node[i].path == CD_FUSE_PATTERN_ELEM && all_at_most(c, CD_FUSE_PATTERN_BROADCAST) &&
        c->node[root_of(c, p)].kind <= CD_FUSE_PATTERN_BROADCAST)
        fuse(c, i, p);
}

/* Element-wise and broadcast operators join anything up to an anchor. */
static void try_broadcast(cutter *c, uint32_t i, uint32_t p) {
    const cd_fuse_pattern end = c->node[root_of(c, p)].kind;
    /* at most injective, or a reduction */
    const bool path = c->node[i].path <= CD_FUSE_PATTERN_REDUCE;
    if (path && all_at_most(c, CD_FUSE_PATTERN_INJECTIVE) && end <= CD_FUSE_PATTERN_OUT)
        fuse(c, i, p);
}

/* What operator i does in this phase. */
static void one(cutter *c, uint32_t i, int phase) {
    const uint32_t p = c->node[i].parent;
    const cd_fuse_pattern own = c->node[i].kind; /* what i's group was when i last ended it */
    if (own == CD_FUSE_PATTERN_OPAQUE || p == c->sink || !between(c, i, p)) return;
    const bool to_tuple = cd_fuse_op_pattern(c->f->node[p].op) == CD_FUSE_PATTERN_TUPLE;
    if (phase == 2) {
        const cd_fuse_pattern end = c->node[root_of(c, p)].kind;
        if (own <= CD_FUSE_PATTERN_INJECTIVE && to_tuple && end <= CD_FUSE_PATTERN_INJECTIVE &&
            all_at_most(c, CD_FUSE_PATTERN_INJECTIVE))
            fuse(c, i, p);
        return;
    }
    if (to_tuple || root_of(c, i) == root_of(c, p)) return;
    if (own == CD_FUSE_PATTERN_OUT) {
        if (phase == 0) try_anchor(c, i, p);
    } else if (own <= CD_FUSE_PATTERN_BROADCAST) {
        try_broadcast(c, i, p);
    } else if (own == CD_FUSE_PATTERN_INJECTIVE || own == CD_FUSE_PATTERN_TUPLE) {
        if (phase == 1 && all_at_most(c, CD_FUSE_PATTERN_INJECTIVE) &&
            c->node[root_of(c, p)].kind <= CD_FUSE_PATTERN_INJECTIVE)
            fuse(c, i, p);
    }
}

/* Each node that joins a group is read by it or reads it, so that a group reads at most one more
 * than the sum of these. */
static uint32_t reads_less_one(const cd_fuse_graph *f, const cd_fuse_node *n) {
    uint32_t reads = 0;
    for (uint32_t k = 0; k < n->n_in; k++) reads += f->node[n->in[k]].op != CD_FUSE_OP_CONST;
    return reads ? reads - 1 : 0;
}

/* Scratch arrays for one more node than the graph has: the sink. */
static cdmpp_status set_up(cutter *c, cd_fuse_graph *f, cd_arena *a, cdmpp_err *err) {
    const uint32_t n = f->n + 1;
    size_t edges = f->n_out + n;
    for (uint32_t i = 0; i < f->n; i++) edges += f->node[i].n_in;
    c->edge = CD_NEWN(a, edge, edges);
    c->node = CD_NEWN(a, place, n);
    c->list = CD_NEWN(a, uint32_t, n);
    f->group = CD_NEWN(&f->arena, uint32_t, n);
    if (!c->edge || !c->node || !c->list || !f->group)
        return CD_FAIL(err, ENOMEM, "out of memory for groups");
    for (uint32_t i = 0; i < n; i++) {
        c->node[i].root = i;
        c->node[i].size = 1;
        c->node[i].more = i < f->n ? reads_less_one(f, &f->node[i]) : 0;
        c->node[i].kind = i < f->n ? cd_fuse_op_pattern(f->node[i].op) : CD_FUSE_PATTERN_TUPLE;
    }
    return CDMPP_OK;
}

/* Phases in TVM's order, operators in topological order: the outcome depends on both. */
cdmpp_status cd_fuse_groups(cd_fuse_graph *f, uint32_t max_depth, const cd_fusion_rules *rules,
                            cdmpp_err *err) {
    cd_arena a = {0};
    cutter c = {.f = f, .rules = rules, .err = err, .sink = f->n, .most = max_depth};
    cdmpp_status st = set_up(&c, f, &a, err);
    if (!st) {
        build(&c);
        dominate(&c);
        for (int phase = 0; phase < 3; phase++)
            for (uint32_t i = 1; i < f->n; i++)
                if (c.node[i].op) one(&c, i, phase);
        for (uint32_t i = 0; i < f->n; i++)
            f->group[i] = c.node[i].op ? root_of(&c, i) : CD_GRAPH_NONE;
        st = c.st;
    }
    cd_arena_free(&a);
    return st;
}
