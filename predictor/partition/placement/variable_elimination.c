/* Nonserial dynamic programming: choices are taken out one by one, each by a table over its
 * neighbours, then filled in backwards. The order is greedy, by the smallest table. */
#include "predictor/partition/placement/variable_elimination.h"

#include <math.h>
#include <string.h>

enum { AT_A_TIME = 64 };
static const size_t ALL_STATES = (size_t)1 << 24; /* of all tables of a problem: 128 MiB */

typedef struct node {
    uint32_t table;
    struct node *next;
} node;

typedef struct {
    cd_arena *a;
    const uint32_t *size;
    uint32_t n_var, n_table, n_step;
    cd_variable_elimination_table *table; /* (n_table + n_var) */
    bool *dead;                           /* of tables: summed up in another */
    bool *gone;                           /* of variables */
    node **list;                          /* (n_var) */
    size_t *joint;                        /* (n_var) states of the table that taking it out makes */
    uint32_t *mark, stamp, *order;
    uint32_t **used, *n_used; /* (n_var) tables that were summed up for it */
    size_t most, states;
    uint64_t looked;
} work;

static double variable_elimination_cost(const cd_variable_elimination *p, const uint32_t *choice) {
    double sum = 0;
    for (uint32_t t = 0; t < p->n_table; t++) {
        size_t at = 0;
        for (uint32_t i = 0; i < p->table[t].n_var; i++)
            at = at * p->size[p->table[t].var[i]] + choice[p->table[t].var[i]];
        sum += p->table[t].cost[at];
    }
    return sum;
}

/* The variables beside v, at most CD_VARIABLE_ELIMINATION_SCOPE; returns how many, or more than
 * that. */
static uint32_t scope_of(work *w, uint32_t v, uint32_t *scope, size_t *joint) {
    uint32_t n = 0;
    size_t m = w->size[v];
    w->stamp++;
    w->mark[v] = w->stamp;
    for (node **at = &w->list[v]; *at;) {
        if (w->dead[(*at)->table]) {
            *at = (*at)->next;
            continue;
        }
        const cd_variable_elimination_table *t = &w->table[(*at)->table];
        for (uint32_t i = 0; i < t->n_var; i++) {
            const uint32_t u = t->var[i];
            if (w->mark[u] == w->stamp) continue;
            w->mark[u] = w->stamp;
            if (n == CD_VARIABLE_ELIMINATION_SCOPE || m > w->most / w->size[u])
                return *joint = SIZE_MAX, CD_VARIABLE_ELIMINATION_SCOPE + 1;
            scope[n++] = u;
            m *= w->size[u];
        }
        at = &(*at)->next;
    }
    *joint = m;
    return n;
}

static cdmpp_status hang(work *w, uint32_t t, cdmpp_err *err) {
    for (uint32_t i = 0; i < w->table[t].n_var; i++) {
        node *k = CD_NEW(w->a, node);
        if (!k) return CD_FAIL(err, ENOMEM, "table of %u choices", w->table[t].n_var);
        *k = (node){t, w->list[w->table[t].var[i]]};
        w->list[w->table[t].var[i]] = k;
    }
    return CDMPP_OK;
}

/* `joint` of all variables is computed once here; afterwards take_out renews only the neighbours of
 * the variable that it removes. */
static cdmpp_status start(work *w, const cd_variable_elimination *p, cdmpp_err *err) {
    const size_t n = (size_t)p->n_var + 1;
    w->size = p->size, w->n_var = p->n_var, w->n_table = p->n_table;
    w->table = CD_NEWN(w->a, cd_variable_elimination_table, n + p->n_table),
    w->dead = CD_NEWN(w->a, bool, n + p->n_table);
    w->gone = CD_NEWN(w->a, bool, n), w->list = CD_NEWN(w->a, node *, n),
    w->joint = CD_NEWN(w->a, size_t, n);
    w->mark = CD_NEWN(w->a, uint32_t, n), w->order = CD_NEWN(w->a, uint32_t, n);
    w->used = CD_NEWN(w->a, uint32_t *, n), w->n_used = CD_NEWN(w->a, uint32_t, n);
    if (!w->table || !w->dead || !w->gone || !w->list || !w->joint || !w->mark || !w->order ||
        !w->used || !w->n_used)
        return CD_FAIL(err, ENOMEM, "%u choices", p->n_var);
    for (uint32_t t = 0; t < p->n_table; t++) {
        w->table[t] = p->table[t];
        CD_TRY(hang(w, t, err));
    }
    uint32_t scope[CD_VARIABLE_ELIMINATION_SCOPE];
    for (uint32_t v = 0; v < p->n_var; v++) scope_of(w, v, scope, &w->joint[v]);
    return CDMPP_OK;
}

/* ---- a table over the scope, v taken out ---- */

typedef struct {
    const double *cost;
    size_t at, of_v, stride[CD_VARIABLE_ELIMINATION_SCOPE];
} reader;

static void strides(const work *w, const cd_variable_elimination_table *t, uint32_t v,
                    const uint32_t *scope, uint32_t n, reader *r) {
    *r = (reader){.cost = t->cost};
    size_t s = 1;
    for (uint32_t i = t->n_var; i-- > 0; s *= w->size[t->var[i]]) {
        if (t->var[i] == v) r->of_v = s;
        for (uint32_t k = 0; k < n; k++)
            if (scope[k] == t->var[i]) r->stride[k] = s;
    }
}

static void step(const work *w, const uint32_t *scope, uint32_t n, uint32_t *digit, reader *r,
                 uint32_t m) {
    for (uint32_t k = n; k-- > 0;) {
        const bool wraps = ++digit[k] == w->size[scope[k]];
        for (uint32_t i = 0; i < m; i++)
            r[i].at = wraps ? r[i].at - r[i].stride[k] * (w->size[scope[k]] - 1)
                            : r[i].at + r[i].stride[k];
        if (!wraps) return;
        digit[k] = 0;
    }
}

static void minimise(const work *w, uint32_t v, const uint32_t *scope, uint32_t n, reader *r,
                     uint32_t m, double *out, size_t states) {
    uint32_t digit[CD_VARIABLE_ELIMINATION_SCOPE] = {0};
    for (size_t i = 0; i < states; i++) {
        double least = INFINITY;
        for (uint32_t x = 0; x < w->size[v]; x++) {
            double sum = 0;
            for (uint32_t k = 0; k < m; k++) sum += r[k].cost[r[k].at + x * r[k].of_v];
            if (sum < least) least = sum;
        }
        out[i] = least;
        step(w, scope, n, digit, r, m);
    }
}

/* The tables of v, marked dead, into used. */
static cdmpp_status gather(work *w, uint32_t v, cdmpp_err *err) {
    uint32_t m = 0;
    for (node *k = w->list[v]; k; k = k->next) m += !w->dead[k->table];
    w->used[v] = CD_NEWN(w->a, uint32_t, (size_t)m + 1);
    if (!w->used[v]) return CD_FAIL(err, ENOMEM, "%u tables", m);
    for (node *k = w->list[v]; k; k = k->next)
        if (!w->dead[k->table]) w->used[v][w->n_used[v]++] = k->table, w->dead[k->table] = true;
    return CDMPP_OK;
}

/* All tables with v become one table over its neighbours, with the best v for each of their states.
 * The old tables stay in used[v] for walk_back. */
static cdmpp_status take_out(work *w, uint32_t v, bool *wide, cdmpp_err *err) {
    uint32_t scope[CD_VARIABLE_ELIMINATION_SCOPE];
    size_t joint;
    const uint32_t n = scope_of(w, v, scope, &joint);
    *wide = n > CD_VARIABLE_ELIMINATION_SCOPE || w->states + joint > ALL_STATES;
    if (*wide) return CDMPP_OK;
    CD_TRY(gather(w, v, err));
    const size_t states = joint / w->size[v];
    const uint32_t m = w->n_used[v], t = w->n_table++;
    reader *r = CD_NEWN(w->a, reader, (size_t)m + 1);
    double *cost = cd_arena_alloc(w->a, states, sizeof *cost);
    uint32_t *var = cd_arena_alloc(w->a, (size_t)n + 1, sizeof *var);
    if (!r || !cost || !var) return CD_FAIL(err, ENOMEM, "table of %zu states", states);
    for (uint32_t i = 0; i < m; i++) strides(w, &w->table[w->used[v][i]], v, scope, n, &r[i]);
    minimise(w, v, scope, n, r, m, cost, states);
    memcpy(var, scope, n * sizeof *var);
    w->table[t] = (cd_variable_elimination_table){n, var, cost};
    w->looked += joint, w->states += states;
    w->gone[v] = true, w->order[w->n_step++] = v;
    CD_TRY(hang(w, t, err));
    uint32_t other[CD_VARIABLE_ELIMINATION_SCOPE];
    for (uint32_t i = 0; i < n; i++) scope_of(w, var[i], other, &w->joint[var[i]]);
    return CDMPP_OK;
}

/* From the last one taken out to the first: all others in its tables are known by then. */
static void walk_back(const work *w, uint32_t *choice) {
    for (uint32_t s = w->n_step; s-- > 0;) {
        const uint32_t v = w->order[s];
        double least = INFINITY;
        choice[v] = 0;
        for (uint32_t x = 0; x < w->size[v]; x++) {
            double sum = 0;
            for (uint32_t k = 0; k < w->n_used[v]; k++) {
                const cd_variable_elimination_table *t = &w->table[w->used[v][k]];
                size_t at = 0;
                for (uint32_t i = 0; i < t->n_var; i++)
                    at = at * w->size[t->var[i]] + (t->var[i] == v ? x : choice[t->var[i]]);
                sum += t->cost[at];
            }
            if (sum < least) least = sum, choice[v] = x;
        }
    }
}

/* Greedy order: the variable whose removal makes the smallest table is next; of equal ones the
 * lowest number. */
cdmpp_status cd_variable_elimination_solve(const cd_variable_elimination *p, size_t most,
                                           uint32_t *choice, bool *wide, uint64_t *looked,
                                           cdmpp_err *err) {
    cd_arena own = {0};
    work w = {.a = &own, .most = most};
    cdmpp_status st = start(&w, p, err);
    *wide = false;
    while (!st && !*wide && w.n_step < w.n_var) {
        uint32_t v = UINT32_MAX;
        for (uint32_t k = 0; k < w.n_var; k++)
            if (!w.gone[k] && (v == UINT32_MAX || w.joint[k] < w.joint[v])) v = k;
        st = take_out(&w, v, wide, err);
    }
    if (!st && !*wide) walk_back(&w, choice);
    *looked += w.looked;
    cd_arena_free(&own);
    return st;
}

/* ---- windows ---- */

typedef struct {
    cd_arena fixed, sub;
    const cd_variable_elimination *p;
    uint32_t *first, *of; /* tables of a variable: of[first[v] .. first[v+1]) */
    /* (n_var) position in the window, UINT32_MAX; the window; (n_table) stamp */
    uint32_t *in, *list, *seen;
    uint32_t n_in, stamp;
} windows;

/* A counting sort of tables by variable. The counts are shifted by two places, so that first[] is
 * right after the filling. */
static cdmpp_status index_tables(windows *w, cdmpp_err *err) {
    const cd_variable_elimination *p = w->p;
    size_t all = 0;
    for (uint32_t t = 0; t < p->n_table; t++) all += p->table[t].n_var;
    w->first = CD_NEWN(&w->fixed, uint32_t, (size_t)p->n_var + 2),
    w->of = CD_NEWN(&w->fixed, uint32_t, all + 1);
    w->in = CD_NEWN(&w->fixed, uint32_t, (size_t)p->n_var + 1),
    w->list = CD_NEWN(&w->fixed, uint32_t, (size_t)p->n_var + 1);
    w->seen = CD_NEWN(&w->fixed, uint32_t, (size_t)p->n_table + 1);
    if (!w->first || !w->of || !w->in || !w->list || !w->seen)
        return CD_FAIL(err, ENOMEM, "%u choices", p->n_var);
    for (uint32_t t = 0; t < p->n_table; t++)
        for (uint32_t i = 0; i < p->table[t].n_var; i++) w->first[p->table[t].var[i] + 2]++;
    for (uint32_t v = 0; v <= p->n_var; v++) w->first[v + 1] += w->first[v];
    for (uint32_t t = 0; t < p->n_table; t++)
        for (uint32_t i = 0; i < p->table[t].n_var; i++)
            w->of[w->first[p->table[t].var[i] + 1]++] = t;
    memset(w->in, 0xff, p->n_var * sizeof *w->in);
    return CDMPP_OK;
}

static void enter(windows *w, uint32_t v) {
    w->in[v] = w->n_in;
    w->list[w->n_in++] = v;
}

/* Around `seed`, nearest first, `n` chosen variables and all that follow them. */
static void grow(windows *w, uint32_t seed, uint32_t n) {
    const cd_variable_elimination *p = w->p;
    for (uint32_t i = 0; i < w->n_in; i++) w->in[w->list[i]] = UINT32_MAX;
    w->n_in = 0;
    enter(w, seed);
    uint32_t left = n - 1;
    for (uint32_t at = 0; at < w->n_in; at++)
        for (uint32_t j = w->first[w->list[at]]; j < w->first[w->list[at] + 1]; j++) {
            const cd_variable_elimination_table *t = &p->table[w->of[j]];
            for (uint32_t i = 0; i < t->n_var; i++) {
                const uint32_t u = t->var[i];
                if (w->in[u] != UINT32_MAX || (u < p->n_main && !left)) continue;
                left -= u < p->n_main;
                enter(w, u);
            }
        }
}

/* A table with all but the window's variables held. */
static cdmpp_status slice(windows *w, const cd_variable_elimination_table *t,
                          const uint32_t *choice, cd_variable_elimination_table *out,
                          cdmpp_err *err) {
    uint32_t *var = CD_NEWN(&w->sub, uint32_t, (size_t)t->n_var + 1),
             pos[CD_VARIABLE_ELIMINATION_SCOPE], n = 0;
    size_t stride[CD_VARIABLE_ELIMINATION_SCOPE], s = 1, at = 0, states = 1;
    if (!var) return CD_FAIL(err, ENOMEM, "table of %u choices", t->n_var);
    for (uint32_t i = t->n_var; i-- > 0; s *= w->p->size[t->var[i]]) stride[i] = s;
    for (uint32_t i = 0; i < t->n_var; i++) {
        if (w->in[t->var[i]] == UINT32_MAX) at += stride[i] * choice[t->var[i]];
        else pos[n] = i, var[n++] = w->in[t->var[i]], states *= w->p->size[t->var[i]];
    }
    double *cost = cd_arena_alloc(&w->sub, states, sizeof *cost);
    if (!cost) return CD_FAIL(err, ENOMEM, "table of %zu states", states);
    for (size_t k = 0; k < states; k++) {
        size_t rest = k, from = at;
        for (uint32_t i = n; i-- > 0;) {
            const uint32_t m = w->p->size[t->var[pos[i]]];
            from += stride[pos[i]] * (rest % m);
            rest /= m;
        }
        cost[k] = t->cost[from];
    }
    *out = (cd_variable_elimination_table){n, var, cost};
    return CDMPP_OK;
}

/* The window as a problem of its own: each table that touches it once (the stamp), with the
 * variables outside held. */
static cdmpp_status cut_out(windows *w, const uint32_t *choice, cd_variable_elimination *out,
                            cdmpp_err *err) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < w->n_in; i++) most += w->first[w->list[i] + 1] - w->first[w->list[i]];
    uint32_t *size = CD_NEWN(&w->sub, uint32_t, (size_t)w->n_in + 1);
    cd_variable_elimination_table *table =
        CD_NEWN(&w->sub, cd_variable_elimination_table, (size_t)most + 1);
    if (!size || !table) return CD_FAIL(err, ENOMEM, "window of %u choices", w->n_in);
    *out = (cd_variable_elimination){
        .n_var = w->n_in, .n_main = w->n_in, .size = size, .table = table};
    w->stamp++;
    for (uint32_t i = 0; i < w->n_in; i++) {
        const uint32_t v = w->list[i];
        size[i] = w->p->size[v];
        for (uint32_t j = w->first[v]; j < w->first[v + 1]; j++) {
            if (w->seen[w->of[j]] == w->stamp) continue;
            w->seen[w->of[j]] = w->stamp;
            CD_TRY(slice(w, &w->p->table[w->of[j]], choice, &table[out->n_table++], err));
        }
    }
    return CDMPP_OK;
}

/* Solve the window around `seed`, a smaller one where it is too wide. */
static cdmpp_status window(windows *w, uint32_t seed, size_t most, uint32_t *choice,
                           uint64_t *looked, bool *better, cdmpp_err *err) {
    for (uint32_t n = AT_A_TIME; n > 0; n /= 2) {
        cd_variable_elimination sub;
        bool wide;
        grow(w, seed, n);
        cd_arena_reset(&w->sub);
        uint32_t *now = CD_NEWN(&w->sub, uint32_t, (size_t)w->n_in + 1),
                 *next = CD_NEWN(&w->sub, uint32_t, (size_t)w->n_in + 1);
        if (!now || !next) return CD_FAIL(err, ENOMEM, "window of %u choices", w->n_in);
        CD_TRY(cut_out(w, choice, &sub, err));
        CD_TRY(cd_variable_elimination_solve(&sub, most, next, &wide, looked, err));
        *looked += w->n_in;
        if (wide) continue;
        for (uint32_t i = 0; i < w->n_in; i++) now[i] = choice[w->list[i]];
        const double was = variable_elimination_cost(&sub, now),
                     is = variable_elimination_cost(&sub, next);
        if (!(is < was) || (isfinite(was) && is >= was * (1 - 1e-13))) return CDMPP_OK;
        for (uint32_t i = 0; i < w->n_in; i++) choice[w->list[i]] = next[i];
        *better = true;
        return CDMPP_OK;
    }
    return CDMPP_OK;
}

cdmpp_status cd_variable_elimination_improve(const cd_variable_elimination *p, size_t most,
                                             uint64_t looks, uint32_t *choice, uint64_t *looked,
                                             cdmpp_err *err) {
    windows w = {.p = p};
    cdmpp_status st = index_tables(&w, err);
    bool better = true;
    for (uint32_t round = 0; !st && better; round++) {
        better = false;
        for (uint32_t k = round % (AT_A_TIME / 4); k < p->n_main && !st && *looked < looks;
             k += AT_A_TIME / 4)
            st = window(&w, k, most, choice, looked, &better, err);
    }
    cd_arena_free(&w.fixed);
    cd_arena_free(&w.sub);
    return st;
}
