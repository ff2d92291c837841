/* Groups equal operators into kinds. A network repeats its blocks, and questions to the cost model
 * take most of the time, so each kind is asked for once. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/core.h"
#include "predictor/partition/shard/shard_plan_internal.h"
#include "predictor/partition/shard/shard_ratio.h"

/* Candidate shares of an axis for more than two devices. All combinations would be too many, so
 * four are tried: equal, fixed, the network's ratio and the best by shard_ratio.h. */

/* The best shares of one operator over devices. They are searched over whole granules and not
 * computed by a formula, because measured times are not affine. */

static double time_of(const cd_shard_ratio_device *d, uint32_t granules) {
    return granules ? d->time(d->ctx, granules) : 0;
}

/* ---- dynamic programming ---- */

/* least[j][g]: the least time of j parts with g granules together on the devices so far. took: what
 * the last device got in that solution, to walk back. */
typedef struct {
    const cd_shard_ratio_device *device;
    uint32_t n;
    size_t wide;   /* granules + 1 */
    double *least; /* (n + 1, wide) */
    double *next;  /* the same */
    int32_t *took; /* (n, n + 1, wide) */
} table_ratio;

static size_t cells(const table_ratio *t) { return (size_t)(t->n + 1) * t->wide; }

/* Device i takes g granules. */
static void give(table_ratio *t, uint32_t i, size_t g) {
    const double mine = time_of(&t->device[i], (uint32_t)g);
    for (uint32_t j = 0; j <= i; j++)
        for (size_t before = 0; before + g < t->wide; before++) {
            const size_t at = (j + (g > 0)) * t->wide + before + g;
            const double seconds = fmax(t->least[j * t->wide + before], mine);
            if (!(seconds < t->next[at])) continue;
            t->next[at] = seconds;
            t->took[(size_t)i * cells(t) + at] = (int32_t)g;
        }
}

/* Device by device. A pass writes a new table from the old one: a device may take its granules only
 * once. */
static void fill_ratio(table_ratio *t) {
    for (size_t k = 0; k < cells(t); k++) t->least[k] = HUGE_VAL;
    t->least[0] = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        for (size_t k = 0; k < cells(t); k++) t->next[k] = HUGE_VAL;
        for (size_t g = 0; g < t->wide; g++) give(t, i, g);
        double *swap = t->least;
        t->least = t->next;
        t->next = swap;
    }
}

/* Of plans that are equally fast the one with the fewest parts. fill swaps least and next, so
 * `block` keeps the address to free. */
static cdmpp_status search(const cd_shard_ratio_device *device, uint32_t n, uint32_t granules,
                           uint32_t *share, cdmpp_err *err) {
    table_ratio t = {.device = device, .n = n, .wide = (size_t)granules + 1};
    double *const block = t.least = cd_mem_zalloc(2 * cells(&t), sizeof *t.least);
    uint32_t parts = 1;
    size_t g = granules;
    t.took = cd_mem_zalloc(n * cells(&t), sizeof *t.took);
    if (block && t.took) {
        t.next = t.least + cells(&t);
        fill_ratio(&t);
        for (uint32_t j = 2; j <= n; j++)
            if (t.least[j * t.wide + g] < t.least[parts * t.wide + g]) parts = j;
        for (uint32_t i = n; i-- > 0; g -= share[i]) {
            share[i] = (uint32_t)t.took[i * cells(&t) + parts * t.wide + g];
            parts -= share[i] > 0;
        }
    }
    const cdmpp_status st =
        block && t.took ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu shares", cells(&t));
    cd_mem_free(block);
    cd_mem_free(t.took);
    return st;
}

/* ---- two devices: each share is tried ---- */

static void search_two(const cd_shard_ratio_device *device, uint32_t granules, uint32_t *share) {
    double best = HUGE_VAL;
    for (uint32_t k = 0; k <= granules; k++) {
        const double s = fmax(time_of(&device[0], k), time_of(&device[1], granules - k));
        if (!(s < best)) continue;
        best = s;
        share[0] = k;
        share[1] = granules - k;
    }
}

cdmpp_status cd_shard_ratio_best(const cd_shard_ratio_device *device, uint32_t n, uint32_t granules,
                                 uint32_t *share, cdmpp_err *err) {
    double together = 0, alone = HUGE_VAL;
    uint32_t best = 0;
    if (n < 1 || n > CD_SHARD_RATIO_DEVICES)
        return CD_FAIL(err, EINVALID, "expected 1 .. %d devices, found %u", CD_SHARD_RATIO_DEVICES,
                       n);
    if (n == 2) search_two(device, granules, share);
    else CD_TRY(search(device, n, granules, share, err));
    for (uint32_t i = 0; i < n; i++) {
        const double all = time_of(&device[i], granules);
        together = fmax(together, time_of(&device[i], share[i]));
        if (!(all < alone)) continue;
        alone = all;
        best = i;
    }
    if (together < alone) return CDMPP_OK;
    memset(share, 0, n * sizeof *share);
    share[best] = granules;
    return CDMPP_OK;
}

typedef struct table { /* seconds at some granules, between them by straight lines */
    uint32_t n, at[6];
    double seconds[6];
} table;

#define CANNOT 1e6

static double between(const void *ctx, double units) {
    const table *t = ctx;
    uint32_t i = 1;
    while (i + 1 < t->n && units > t->at[i]) i++;
    const double a = t->at[i - 1], b = t->at[i], f = (units - a) / (b - a);
    return fmax(1e-12, t->seconds[i - 1] + f * (t->seconds[i] - t->seconds[i - 1]));
}

static void fill(table *t, uint32_t granules, uint32_t device, cd_shard_planner_curve *curve,
                 void *ctx) {
    const uint32_t want[] = {1, granules / 4, granules / 2, 3 * granules / 4, granules};
    t->n = 0;
    for (int i = 0; i < 5; i++) {
        if (!want[i] || (t->n && t->at[t->n - 1] >= want[i])) continue;
        const double v = curve(ctx, device, want[i]);
        t->at[t->n] = want[i];
        t->seconds[t->n++] = v < CANNOT ? v : CANNOT;
    }
}

/* Whole granules nearest to shares, by the largest remainders. */
static void rounded(const double *share, uint32_t n, uint32_t granules, uint32_t *units) {
    double left[CD_MACHINE_DEVICES];
    uint32_t sum = 0;
    for (uint32_t d = 0; d < n; d++) {
        units[d] = (uint32_t)floor(share[d] * granules + 1e-9);
        left[d] = share[d] * granules - units[d];
        sum += units[d];
    }
    for (; sum < granules; sum++) {
        uint32_t most = 0;
        for (uint32_t d = 1; d < n; d++)
            if (left[d] > left[most]) most = d;
        units[most]++, left[most] -= 1;
    }
}

/* Only devices that may run the kind keep a share, normalized to 1; false: none of them has any. */
static bool among(const cd_shard_planner_kind *k, uint32_t n, double *share) {
    double sum = 0;
    for (uint32_t d = 0; d < n; d++) sum += share[d] = cd_shard_planner_allows(k, d) ? share[d] : 0;
    for (uint32_t d = 0; d < n && sum > 0; d++) share[d] /= sum;
    return sum > 0;
}

static void put(uint32_t (*units)[CD_MACHINE_DEVICES], uint32_t *n, const uint32_t *one) {
    for (uint32_t i = 0; i < *n; i++)
        if (!memcmp(units[i], one, sizeof units[i])) return;
    memcpy(units[(*n)++], one, sizeof units[0]);
}

/* The search over whole granules needs a time for each share; it takes them from a table of a few
 * shares, because each question to the cost model is expensive. The margin is 0 here: the planner
 * applies its own later. */
static cdmpp_status best(const cd_shard_planner *s, const cd_shard_planner_kind *k,
                         uint32_t granules, cd_shard_planner_curve *curve, void *ctx,
                         uint32_t *units, cdmpp_err *err) {
    table t[CD_MACHINE_DEVICES];
    cd_shard_ratio_device device[CD_MACHINE_DEVICES] = {{0}};
    uint32_t who[CD_MACHINE_DEVICES], share[CD_MACHINE_DEVICES], n = 0;
    for (uint32_t d = 0; d < s->n_device; d++) {
        if (!cd_shard_planner_allows(k, d)) continue;
        fill(&t[n], granules, d, curve, ctx);
        device[n] = (cd_shard_ratio_device){between, &t[n]};
        who[n++] = d;
    }
    CD_TRY(cd_shard_ratio_best(device, n, granules, share, err));
    for (uint32_t i = 0; i < n; i++) units[who[i]] = share[i];
    return CDMPP_OK;
}

/* Shares of the baselines (equal, fixed) are always among them; the network's ratio and the best
 * ones only for kinds that are optimized (look). */
static cdmpp_status shard_planner_shares(const cd_shard_planner *s, const cd_shard_planner_kind *k,
                                         uint32_t granules, cd_shard_planner_curve *curve,
                                         void *ctx, uint32_t (*units)[CD_MACHINE_DEVICES],
                                         uint32_t *n, cdmpp_err *err) {
    uint32_t one[CD_MACHINE_DEVICES] = {0};
    double share[CD_MACHINE_DEVICES];
    *n = 0;
    for (uint32_t d = 0; d < s->n_device; d++) share[d] = 1;
    if (among(k, s->n_device, share))
        rounded(share, s->n_device, granules, one), put(units, n, one);
    for (uint32_t d = 0; d < s->n_device; d++)
        share[d] = d ? (1 - s->fixed) / (s->n_device - 1) : s->fixed;
    memset(one, 0, sizeof one);
    if (among(k, s->n_device, share))
        rounded(share, s->n_device, granules, one), put(units, n, one);
    if (!k->look) return CDMPP_OK;
    memcpy(share, s->ratio, sizeof share);
    memset(one, 0, sizeof one);
    if (among(k, s->n_device, share))
        rounded(share, s->n_device, granules, one), put(units, n, one);
    memset(one, 0, sizeof one);
    CD_TRY(best(s, k, granules, curve, ctx, one, err));
    put(units, n, one);
    return CDMPP_OK;
}

bool cd_shard_planner_allows(const cd_shard_planner_kind *k, uint32_t device) {
    return k->allowed >> device & 1;
}

/* Asks the callback for one time and checks the answer. what: the part in words for messages, "H
 * 0..20". Errors: the callback's, ERANGE. */
static cdmpp_status shard_planner_query(const cd_shard_planner *s, uint32_t op, uint32_t device,
                                        const cd_te_shard *part, const char *what,
                                        cd_shard_plan_estimate *out, cdmpp_err *err) {
    const char *name = s->net->op[op].name;
    *out = (cd_shard_plan_estimate){(double)NAN, 0};
    CD_TRY(cd_err_key(err, s->ask->time(s->ask->ctx, op, device, part, out, err), name));
    if (!(out->seconds >= 0))
        return CD_FAIL(err, ERANGE, "operator %s, %s on %s: %g seconds", name, what,
                       s->m->device[device].name, out->seconds);
    if (!(out->memory_share >= 0 && out->memory_share <= 1))
        return CD_FAIL(err, ERANGE, "operator %s, %s on %s: memory share %g, expected 0 to 1", name,
                       what, s->m->device[device].name, out->memory_share);
    return CDMPP_OK;
}

/* seconds (n): the times of n devices that work at the same time, launch and contention
 * included.
 *
 * Only devices of the same memory slow each other: by the bandwidth that they use together, and by
 * taking turns where they share a core. The launch is not slowed. */
static void shard_planner_concurrent(const cd_shard_planner *s, uint32_t n, const uint32_t *device,
                                     const cd_shard_plan_estimate *a, double *seconds) {
    for (uint32_t i = 0; i < n; i++) {
        const cd_machine_device *d = &s->m->device[device[i]];
        double sum = 0;
        uint32_t others = 0;
        bool shared = false;
        for (uint32_t j = 0; j < n; j++) {
            const cd_machine_device *e = &s->m->device[device[j]];
            if (e->memory != d->memory) continue;
            sum += a[j].memory_share;
            others += j != i;
            shared = shared || (j != i && d->core >= 0 && d->core == e->core);
        }
        seconds[i] =
            d->launch_s + a[i].seconds * cd_contention_slow(&s->contention, a[i].memory_share, sum,
                                                            others, shared);
    }
}

/* ---- which operators are alike ---- */
static uint32_t allowed_of(const cd_shard_planner *s, uint32_t op) {
    const cd_shard_net_op *o = &s->net->op[op];
    const uint32_t all = (1U << s->n_device) - 1;
    if (o->pin != UINT32_MAX) return (o->allowed ? o->allowed : all) & 1U << o->pin;
    return (o->allowed ? o->allowed : all) & all;
}

static bool alike(const cd_shard_planner *s, const cd_shard_planner_kind *k, uint32_t op,
                  uint32_t allowed) {
    const cd_shard_net_op *a = &s->net->op[k->op], *b = &s->net->op[op];
    if (k->allowed != allowed || !a->dag || !b->dag ||
        (a->pin == UINT32_MAX) != (b->pin == UINT32_MAX))
        return false;
    return a->key && b->key ? !strcmp(a->key, b->key) : a->dag == b->dag;
}

static uint64_t hash_of(const cd_shard_net_op *o) {
    cd_hash h = cd_hash_start();
    if (o->key) cd_hash_add(&h, o->key, strlen(o->key));
    else cd_hash_add(&h, &o->dag, sizeof(void *));
    return h.a;
}

static cdmpp_status sort_kinds(cd_shard_planner *s, cdmpp_err *err) {
    uint32_t size = 16;
    while (size < 2 * s->net->n_op) size *= 2;
    uint32_t *slot = CD_NEWN(&s->arena, uint32_t, size); /* kind + 1 */
    if (!slot) return CD_FAIL(err, ENOMEM, "%u operators", s->net->n_op);
    for (uint32_t op = 0; op < s->net->n_op; op++) {
        const uint32_t allowed = allowed_of(s, op);
        uint32_t at = (uint32_t)hash_of(&s->net->op[op]) & (size - 1);
        while (slot[at] && !alike(s, &s->kind[slot[at] - 1], op, allowed))
            at = (at + 1) & (size - 1);
        if (!slot[at]) {
            s->kind[s->n_kind] = (cd_shard_planner_kind){.op = op,
                                                         .allowed = allowed,
                                                         .free = s->net->op[op].dag &&
                                                                 s->net->op[op].pin == UINT32_MAX};
            slot[at] = ++s->n_kind;
        }
        s->node[op].kind = slot[at] - 1;
    }
    return CDMPP_OK;
}

/* ---- split axes ---- */
static bool in_list(const char *list, const char *name) {
    const size_t n = strlen(name);
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (!strncmp(p, name, n) && (p[n] == ',' || !p[n])) return true;
    return false;
}

static cdmpp_status find_ways(cd_shard_planner *s, cd_shard_planner_kind *k, cdmpp_err *err) {
    cd_te_shard_axis *way;
    uint32_t n;
    if (!s->ask->split || !k->free || !(k->allowed & (k->allowed - 1))) return CDMPP_OK;
    CD_TRY(cd_err_key(err, cd_te_shard_axes(s->net->op[k->op].dag, &s->arena, &way, &n, err),
                      s->net->op[k->op].name));
    k->way = way;
    for (uint32_t i = 0; i < n; i++)
        if (way[i].extent > 1 &&
            (!s->ask->dims || !s->ask->dims[0] || in_list(s->ask->dims, way[i].name)))
            way[k->n_way++] = way[i];
    return CDMPP_OK;
}

/* together: the time if all devices worked at their full rate without any exchange, 1 / (sum of 1 /
 * time). No split is faster unless shards are predicted below their proportion of the whole;
 * cd_shard_planner_kind.least counts those too. A device that cannot run it (infinity) adds no
 * rate. */
static cdmpp_status alone(cd_shard_planner *s, cd_shard_planner_kind *k, cdmpp_err *err) {
    double *t = CD_NEWN(&s->arena, double, s->n_device), rate = 0;
    if (!t) return CD_FAIL(err, ENOMEM, "%u devices", s->n_device);
    k->alone = t, k->best = k->together = (double)INFINITY, k->fastest = CD_SHARD_PLANNER_NONE;
    for (uint32_t d = 0; d < s->n_device; d++) {
        cd_shard_plan_estimate a;
        t[d] = (double)INFINITY;
        if (!cd_shard_planner_allows(k, d)) continue;
        CD_TRY(shard_planner_query(s, k->op, d, NULL, "all of it", &a, err));
        shard_planner_concurrent(s, 1, &d, &a, &t[d]);
        if (t[d] < k->best) k->best = t[d], k->fastest = d;
        rate += 1 / t[d];
    }
    k->together = k->n_way ? 1 / rate : k->best;
    return CDMPP_OK;
}

static cdmpp_status prepare_wholes(const cd_shard_planner *s, cdmpp_err *err) {
    size_t n = 0;
    if (!s->ask->prepare || !s->n_kind) return CDMPP_OK;
    cd_shard_plan_query *w = cd_mem_zalloc((size_t)s->n_kind * s->n_device, sizeof *w);
    if (!w) return CD_FAIL(err, ENOMEM, "%u kinds of operators", s->n_kind);
    for (uint32_t i = 0; i < s->n_kind; i++)
        for (uint32_t d = 0; d < s->n_device; d++)
            if (cd_shard_planner_allows(&s->kind[i], d))
                w[n++] = (cd_shard_plan_query){s->kind[i].op, d, NULL};
    const cdmpp_status st = s->ask->prepare(s->ask->ctx, w, n, err);
    cd_mem_free(w);
    return st;
}

cdmpp_status cd_shard_planner_kinds(cd_shard_planner *s, cdmpp_err *err) {
    CD_TRY(sort_kinds(s, err));
    CD_TRY(prepare_wholes(s, err));
    for (uint32_t i = 0; i < s->n_kind; i++) {
        CD_TRY(find_ways(s, &s->kind[i], err));
        CD_TRY(alone(s, &s->kind[i], err));
    }
    double rate[CD_MACHINE_DEVICES] = {0}, sum = 0;
    for (uint32_t k = 0; k < s->net->n_op; k++)
        for (uint32_t d = 0; d < s->n_device; d++) rate[d] += s->kind[s->node[k].kind].alone[d];
    for (uint32_t d = 0; d < s->n_device; d++)
        sum += rate[d] = rate[d] > 0 && isfinite(rate[d]) ? 1 / rate[d] : 0;
    for (uint32_t d = 0; d < s->n_device; d++)
        s->ratio[d] = sum > 0 ? rate[d] / sum : 1.0 / s->n_device;
    return CDMPP_OK;
}

/* Options of an operator: whole on each device, and each legal axis with the shares that are best
 * for it. Shards are lowered once each, however many options contain them. */

typedef struct piece {
    uint32_t way;
    int64_t lo, hi;    /* of a join: -1, parts */
    cd_te_shard *part; /* NULL: it cannot be made */
    uint32_t asked;    /* bit d: answer[d] is there */
    cd_shard_plan_estimate answer[CD_MACHINE_DEVICES];
} piece;

typedef struct work {
    cd_shard_planner *s;
    cd_shard_planner_kind *k;
    piece *piece;
    size_t n, cap;
    bool only_list; /* questions are kept in `want` and nothing is made of them */
    cd_shard_plan_query *want;
    size_t n_want, cap_want;
    uint32_t way; /* the split axis that `curve` is asked for */
    uint32_t granules;
    cdmpp_status st;
    cdmpp_err *err;
} work;

static cdmpp_status find(work *w, uint32_t way, int64_t lo, int64_t hi, size_t *at,
                         cdmpp_err *err) {
    const cd_te_dag *dag = w->s->net->op[w->k->op].dag;
    for (*at = 0; *at < w->n; ++*at)
        if (w->piece[*at].way == way && w->piece[*at].lo == lo && w->piece[*at].hi == hi)
            return CDMPP_OK;
    if (CD_GROW(w->piece, w->n, w->cap)) return CD_FAIL(err, ENOMEM, "parts");
    piece *p = &w->piece[w->n];
    *p = (piece){.way = way, .lo = lo, .hi = hi};
    const cdmpp_status st =
        lo < 0 ? cd_te_shard_join(dag, &w->k->way[way], (uint32_t)hi, &p->part, err)
               : cd_te_shard_make(dag, &w->k->way[way], lo, hi, &p->part, err);
    if (st && st != CDMPP_EUNSUPPORTED) return cd_err_key(err, st, w->s->net->op[w->k->op].name);
    if (st) p->part = NULL;
    w->n++;
    return CDMPP_OK;
}

/* Each piece and device is asked once. While questions are only listed (only_list), every answer is
 * 1 s, so that the same code visits all options; none of them is kept. */
static cdmpp_status ask(work *w, size_t at, uint32_t device, cd_shard_plan_estimate *out,
                        cdmpp_err *err) {
    piece *p = &w->piece[at];
    char what[64];
    if (!p->part) {
        *out = (cd_shard_plan_estimate){(double)INFINITY, 0};
        return CDMPP_OK;
    }
    if (w->only_list) {
        *out = (cd_shard_plan_estimate){1, 0};
        if (CD_GROW(w->want, w->n_want, w->cap_want)) return CD_FAIL(err, ENOMEM, "parts");
        w->want[w->n_want++] = (cd_shard_plan_query){w->k->op, device, p->part};
        return CDMPP_OK;
    }
    if (!(p->asked >> device & 1)) {
        if (p->lo < 0) snprintf(what, sizeof what, "join of %s", w->k->way[p->way].name);
        else
            snprintf(what, sizeof what, "%.20s %lld..%lld", w->k->way[p->way].name,
                     (long long)p->lo, (long long)p->hi);
        CD_TRY(shard_planner_query(w->s, w->k->op, device, p->part, what, &p->answer[device], err));
        p->asked |= 1U << device;
    }
    *out = p->answer[device];
    return CDMPP_OK;
}

static cdmpp_status use_of(work *w, size_t at, uint32_t device, cd_shard_planner_use *out,
                           cdmpp_err *err) {
    const cd_te_shard *p = w->piece[at].part;
    uint32_t *of = CD_NEWN(&w->s->arena, uint32_t, (size_t)p->n_arg + 1);
    cd_box *box = CD_NEWN(&w->s->arena, cd_box, (size_t)p->n_arg + 1);
    if (!of || !box) return CD_FAIL(err, ENOMEM, "a part's arguments");
    memcpy(of, p->of, p->n_arg * sizeof *of);
    memcpy(box, p->box, p->n_arg * sizeof *box);
    *out = (cd_shard_planner_use){device, p->n_arg, of, box};
    return CDMPP_OK;
}

/* ---- options ---- */
/* Adds an option; its name, parts, uses and shares must be in s->arena. */
static cdmpp_status shard_planner_add_option(cd_shard_planner *s, cd_shard_planner_kind *k,
                                             const cd_shard_planner_option *o, cdmpp_err *err) {
    if (CD_GROW_IN(&s->arena, k->option, k->n_option, k->cap))
        return CD_FAIL(err, ENOMEM, "options");
    k->option[k->n_option++] = *o;
    return CDMPP_OK;
}

static cdmpp_status add_whole(cd_shard_planner *s, cd_shard_planner_kind *k, uint32_t d,
                              cdmpp_err *err) {
    double *share = CD_NEWN(&s->arena, double, s->n_device);
    cd_shard_plan_part *part = CD_NEW(&s->arena, cd_shard_plan_part);
    cd_shard_planner_use *use = CD_NEW(&s->arena, cd_shard_planner_use);
    if (!share || !part || !use) return CD_FAIL(err, ENOMEM, "an option");
    share[d] = 1, part->device = use->device = d, part->seconds = k->alone[d];
    return shard_planner_add_option(
        s, k,
        &(cd_shard_planner_option){s->m->device[d].name, CD_SHARD_PLANNER_NONE, 1, 1,
                                   CD_SHARD_PLANNER_NONE, part, use, share, k->alone[d], 0},
        err);
}

/* Time to bring the partial sums to one device. Each is contiguous: one transfer over a link, and
 * one wait for all within the same memory. */
static double gather(const cd_shard_planner *s, const cd_shard_planner_option *o,
                     const int64_t *bytes, uint32_t to) {
    double t = 0;
    bool wait = false;
    for (uint32_t i = 0; i < o->n_part; i++) {
        const uint32_t from = o->part[i].device;
        if (from == to) continue;
        if (s->m->device[from].memory == s->m->device[to].memory) wait = true;
        else t += s->link[from][to] ? cd_link_cost(s->link[from][to], bytes[i]) : (double)INFINITY;
    }
    return t + (wait ? s->m->device[to].sync_s : 0);
}

static int64_t bytes_made(const cd_te_shard *p) {
    const uint32_t last = p->n_arg - 1, tensor = p->dag->arg[last], op = p->dag->tensor_op[tensor];
    return cd_box_elements(&p->box[last]) *
           cd_expr_dtype_bytes(p->dag->op[op].dtype[tensor - p->dag->op[op].first_tensor]);
}

/* A split sum: with two devices either may do the join (two options), with more the one whose join
 * takes least. */
static cdmpp_status add_joined(work *w, cd_shard_planner_option *o, cd_shard_planner_use *use,
                               const int64_t *bytes, cdmpp_err *err) {
    size_t at;
    uint32_t best = CD_SHARD_PLANNER_NONE;
    double join_s[CD_MACHINE_DEVICES];
    const double parts_s = o->seconds;
    CD_TRY(find(w, o->way, -1, o->n_part, &at, err));
    if (!w->piece[at].part) return CDMPP_OK;
    for (uint32_t i = 0; i < o->n_part; i++) {
        const uint32_t d = o->part[i].device;
        cd_shard_plan_estimate a;
        CD_TRY(ask(w, at, d, &a, err));
        shard_planner_concurrent(w->s, 1, &d, &a, &join_s[i]);
        join_s[i] += gather(w->s, o, bytes, d);
        if (best == CD_SHARD_PLANNER_NONE || join_s[i] < join_s[best]) best = i;
    }
    for (uint32_t i = 0; i < o->n_part; i++) {
        if (w->only_list || !isfinite(join_s[i]) || (o->n_part > 2 && i != best)) continue;
        cd_shard_planner_use *all =
            CD_NEWN(&w->s->arena, cd_shard_planner_use, (size_t)o->n_part + 1);
        if (!all) return CD_FAIL(err, ENOMEM, "an option");
        memcpy(all, use, o->n_part * sizeof *all);
        o->join = o->part[i].device, o->join_s = join_s[i], o->seconds = parts_s + join_s[i],
        o->use = all, o->n_use = o->n_part + 1;
        CD_TRY(use_of(w, at, o->join, &all[o->n_part], err));
        CD_TRY(shard_planner_add_option(w->s, w->k, o, err));
    }
    return CDMPP_OK;
}

static const char *name_of(cd_shard_planner *s, const char *way, const cd_shard_plan_part *part,
                           uint32_t n) {
    char text[160];
    int at = snprintf(text, sizeof text, "%.24s ", way);
    for (uint32_t i = 0; i < n && at < (int)sizeof text - 24; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%lld", i ? "|" : "",
                       (long long)(part[i].hi - part[i].lo));
    return cd_shard_planner_format(&s->arena, "%s", text);
}

/* A part along a dimension that is not stored innermost takes about its share of the whole; see
 * cd_shard_plan_options.steady. */
static double steadied(const work *w, const cd_te_shard_axis *v, uint32_t device, int64_t units,
                       double seconds) {
    const cd_te_dag *dag = w->s->net->op[w->k->op].dag;
    const double f = w->s->ask->steady,
                 law = (double)units / (double)v->extent *
                       (w->k->alone[device] - w->s->m->device[device].launch_s);
    const bool innermost = !v->reduce && v->axis + 1 == dag->op[v->op].n_axis;
    return f > 0 && !innermost && isfinite(law) && law > 0 && seconds > 0
               ? exp((1 - f) * log(seconds) + f * log(law))
               : seconds;
}

/* An option that splits an axis: device[i] has bound[i] .. bound[i + 1]. No option if one of the
 * parts cannot run. */
static cdmpp_status add_split(work *w, uint32_t way, uint32_t n, const uint32_t *device,
                              const int64_t *bound, cdmpp_err *err) {
    const cd_te_shard_axis *v = &w->k->way[way];
    double *share = CD_NEWN(&w->s->arena, double, w->s->n_device), seconds[CD_MACHINE_DEVICES];
    cd_shard_plan_part *part = CD_NEWN(&w->s->arena, cd_shard_plan_part, n);
    cd_shard_planner_use *use = CD_NEWN(&w->s->arena, cd_shard_planner_use, n);
    cd_shard_plan_estimate a[CD_MACHINE_DEVICES] = {{0}};
    int64_t bytes[CD_MACHINE_DEVICES];
    cd_shard_planner_option o = {.way = way,
                                 .n_part = n,
                                 .n_use = n,
                                 .join = CD_SHARD_PLANNER_NONE,
                                 .part = part,
                                 .use = use,
                                 .share = share};
    if (!share || !part || !use) return CD_FAIL(err, ENOMEM, "an option");
    for (uint32_t i = 0; i < n; i++) {
        size_t at;
        CD_TRY(find(w, way, bound[i], bound[i + 1], &at, err));
        CD_TRY(ask(w, at, device[i], &a[i], err));
        if (!isfinite(a[i].seconds)) return CDMPP_OK;
        a[i].seconds = steadied(w, v, device[i], bound[i + 1] - bound[i], a[i].seconds);
        CD_TRY(use_of(w, at, device[i], &use[i], err));
        bytes[i] = bytes_made(w->piece[at].part);
        share[device[i]] = (double)(bound[i + 1] - bound[i]) / (double)v->extent;
    }
    shard_planner_concurrent(w->s, n, device, a, seconds);
    for (uint32_t i = 0; i < n; i++) {
        part[i] = (cd_shard_plan_part){device[i], bound[i], bound[i + 1], seconds[i]};
        o.seconds = fmax(o.seconds, seconds[i]);
    }
    if (w->only_list && !v->reduce) return CDMPP_OK;
    if (!(o.name = name_of(w->s, v->name, part, n)))
        return CD_FAIL(err, ENOMEM, "an option's name");
    return v->reduce ? add_joined(w, &o, use, bytes, err)
                     : shard_planner_add_option(w->s, w->k, &o, err);
}

/* ---- shares ---- */
static int64_t cut(int64_t extent, uint32_t granules, uint32_t at) {
    return (int64_t)llround((double)extent * at / granules);
}

static double curve(void *ctx, uint32_t device, uint32_t granules) {
    work *w = ctx;
    size_t at;
    cd_shard_plan_estimate a = {(double)INFINITY, 0};
    double seconds;
    if (granules == w->granules) return w->k->alone[device];
    if (!w->st)
        w->st =
            find(w, w->way, 0, cut(w->k->way[w->way].extent, w->granules, granules), &at, w->err);
    if (!w->st) w->st = ask(w, at, device, &a, w->err);
    if (w->st) return (double)INFINITY;
    shard_planner_concurrent(w->s, 1, &device, &a, &seconds);
    return seconds;
}

/* The network's own shares, to the element; devices that would get less than half a granule get
 * nothing. */
static cdmpp_status fine(work *w, uint32_t way, cdmpp_err *err) {
    const cd_shard_planner *s = w->s;
    const int64_t extent = w->k->way[way].extent;
    uint32_t device[CD_MACHINE_DEVICES], n = 0;
    int64_t bound[CD_MACHINE_DEVICES + 1] = {0};
    double all = 0, sum = 0, at = 0;
    for (uint32_t d = 0; d < s->n_device; d++)
        all += cd_shard_planner_allows(w->k, d) ? s->ratio[d] : 0;
    for (uint32_t d = 0; d < s->n_device; d++)
        if (cd_shard_planner_allows(w->k, d) && s->ratio[d] * 2 * s->granules >= all)
            sum += s->ratio[d];
    for (uint32_t d = 0; d < s->n_device && sum > 0; d++) {
        if (!cd_shard_planner_allows(w->k, d) || s->ratio[d] * 2 * s->granules < all) continue;
        const int64_t to = llround((double)extent * fmin(1, (at += s->ratio[d]) / sum));
        if (to == bound[n]) continue;
        device[n++] = d;
        bound[n] = to;
    }
    return n > 1 ? add_split(w, way, n, device, bound, err) : CDMPP_OK;
}

/* Three devices and more. The callback `curve` cannot return a status, so its error is kept in
 * w->st and takes precedence. */
static cdmpp_status many(work *w, uint32_t way, uint32_t granules, cdmpp_err *err) {
    uint32_t units[4][CD_MACHINE_DEVICES], n;
    w->way = way, w->granules = granules, w->st = CDMPP_OK, w->err = err;
    const cdmpp_status st = shard_planner_shares(w->s, w->k, granules, curve, w, units, &n, err);
    CD_TRY(w->st);
    CD_TRY(st);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t device[CD_MACHINE_DEVICES], parts = 0, at = 0;
        int64_t bound[CD_MACHINE_DEVICES + 1] = {0};
        for (uint32_t d = 0; d < w->s->n_device; d++) {
            if (!units[i][d]) continue;
            device[parts++] = d;
            bound[parts] = cut(w->k->way[way].extent, granules, at += units[i][d]);
        }
        if (parts > 1) CD_TRY(add_split(w, way, parts, device, bound, err));
    }
    return w->k->look ? fine(w, way, err) : CDMPP_OK;
}

static uint32_t clamp(double v, uint32_t most) { return v < 1 ? 1 : v > most ? most : (uint32_t)v; }

static cdmpp_status add_two(work *w, uint32_t way, const uint32_t *device, int64_t at,
                            cdmpp_err *err) {
    const int64_t bound[3] = {0, at, w->k->way[way].extent};
    return add_split(w, way, 2, device, bound, err);
}

/* Even if each part takes only its proportion of the whole's time, this share takes more than 1.5
 * times the least possible, or saves too little. */
static bool hopeless(const work *w, const uint32_t *device, double share) {
    const cd_shard_planner_kind *k = w->k;
    const double a = k->alone[device[0]], b = k->alone[device[1]];
    if (!isfinite(a) || !isfinite(b)) return false;
    return fmax(share * a, (1 - share) * b) >
           fmin(1.5 * k->together, k->best - fmax(w->s->margin * k->best, w->s->least_s));
}

/* Two devices: all numbers of granules, and the share with which both would end the whole network
 * at the same time. */
static cdmpp_status two(work *w, uint32_t way, uint32_t granules, cdmpp_err *err) {
    uint32_t device[2], n = 0;
    const int64_t extent = w->k->way[way].extent;
    const uint32_t equal = granules / 2, fixed = clamp(round(w->s->fixed * granules), granules - 1);
    for (uint32_t d = 0; d < w->s->n_device; d++)
        if (cd_shard_planner_allows(w->k, d)) device[n++] = d;
    for (uint32_t g = 1; g < granules; g++)
        if ((w->k->look && !hopeless(w, device, (double)g / granules)) || g == equal || g == fixed)
            CD_TRY(add_two(w, way, device, cut(extent, granules, g), err));
    if (!w->k->look) return CDMPP_OK;
    const double both = w->s->ratio[device[0]] + w->s->ratio[device[1]];
    const int64_t at = both > 0 ? llround((double)extent * w->s->ratio[device[0]] / both) : 0;
    for (uint32_t g = 0; g <= granules; g++)
        if (cut(extent, granules, g) == at) return CDMPP_OK;
    return add_two(w, way, device, at, err);
}

static cdmpp_status split_options(work *w, cdmpp_err *err) {
    const cd_shard_planner_kind *k = w->k;
    for (uint32_t i = 0; i < k->n_way; i++) {
        const uint32_t granules =
            k->way[i].extent < w->s->granules ? (uint32_t)k->way[i].extent : w->s->granules;
        CD_TRY(__builtin_popcount(k->allowed) == 2 ? two(w, i, granules, err)
                                                   : many(w, i, granules, err));
    }
    return CDMPP_OK;
}

/* Lists the questions that split_options will ask, as far as they do not depend on answers, so that
 * they can be answered together. */
static cdmpp_status prepare(work *w, cdmpp_err *err) {
    const cd_shard_plan_options *a = w->s->ask;
    if (!a->prepare) return CDMPP_OK;
    w->only_list = true;
    CD_TRY(split_options(w, err));
    w->only_list = false;
    return a->prepare(a->ctx, w->want, w->n_want, err);
}

cdmpp_status cd_shard_planner_make_options(cd_shard_planner *s, cd_shard_planner_kind *k,
                                           cdmpp_err *err) {
    work w = {.s = s, .k = k};
    cdmpp_status st = CDMPP_OK;
    for (uint32_t d = 0; d < s->n_device && !st; d++)
        if (isfinite(k->alone[d])) st = add_whole(s, k, d, err);
    if (!st && k->key) st = prepare(&w, err);
    if (!st && k->key) st = split_options(&w, err);
    k->least = k->together;
    for (uint32_t i = 0; i < k->n_option; i++) k->least = fmin(k->least, k->option[i].seconds);
    for (size_t i = 0; i < w.n; i++) cd_te_shard_free(w.piece[i].part);
    cd_mem_free(w.piece);
    cd_mem_free(w.want);
    return st;
}
