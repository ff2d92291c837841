/* bench_shard_plan [OPTION...] OUT.ndjson NETWORK[:BATCH]... -- the split that predictions choose,
 * against the best of all measured.
 *
 *   --target T        default "llvm -num-cores=1"
 *   --model FILE --device NAME --devices FILE
 *   --book FILE       schedules of whole operators
 *   --machine FILE    else cpu0 and ocl0 of this machine, found and measured
 *   --per N           operators of a kind (4)
 *   --granules N      shares (8)
 *   --margin X --least S  of a plan (its own defaults)
 *   --seconds S       of a fine measurement (0.4)
 *   --cache FOLDER  --list (only which operators)  --summary (only the table)
 *   --drop            leave programs out that do not compile
 *
 * Of every kind (conv 1x1, 3x3, larger, depthwise, dense, batch_matmul, pool, softmax, element) N
 * operators of the networks, from the one with the least work to the one with the most. Each stands
 * alone: all of it on either device, and each legal way at k/granules, run on both devices and
 * measured; then the five fastest and the chosen one again, in turns, and of these second times the
 * shortest is the best: the first ones only choose who comes again, so a lucky first time is not
 * the yardstick. A line of JSON each; what stands in OUT is not run again. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_lines.h"
#include "bench_network.h"
#include "base/io/io.h"
#include "base/text/text.h"
#include "profiler/machine/machine_measure.h"
#include "predictor/partition/run/plan_run.h"

enum { MOST_NET = 32, MOST_ITEM = 4096, MOST_CANDIDATE = 400, AGAIN = 5 };

static struct {
    const char *target, *model, *device, *devices, *book, *machine, *cache, *out;
    uint32_t per, granules;
    double margin, least, seconds;
    bool list, summary, drop;
} o = {.target = "llvm -num-cores=1",
       .per = 4,
       .granules = 8,
       .margin = (double)NAN,
       .least = (double)NAN,
       .seconds = 0.4};
static cd_measure *measure;
static cd_machine machine;

/* ---- which operators ---- */

typedef struct {
    cd_network_loaded live;
    cd_arena arena;
    cd_shard_net net;
    char name[200];
} network;

typedef struct {
    const network *n;
    uint32_t op;
    const char *kind;
    double work;
    bool chosen;
} item;

static network net[MOST_NET];
static item list[MOST_ITEM];
static uint32_t n_net, n_item;
static const char *const kinds[] = {"conv 1x1",     "conv 3x3", "conv large", "depthwise", "dense",
                                    "batch_matmul", "pool",     "softmax",    "element"};

/* By the kernel's rows. */
static const char *conv_kind(const cd_te_op *p) {
    const cd_expr *rows = p->raxis[strstr(p->tag, "nchw") ? 1 : 0].extent;
    return cd_expr_is_int_value(rows, 1)   ? "conv 1x1"
           : cd_expr_is_int_value(rows, 3) ? "conv 3x3"
                                           : "conv large";
}

static const char *kind_of(const cd_te_dag *d) {
    bool sums = false;
    for (uint32_t i = 0; i < d->n_op; i++) {
        const cd_te_op *p = &d->op[i];
        if (p->is_placeholder) continue;
        if (strstr(p->tag, "depthwise")) return "depthwise";
        if (strstr(p->tag, "conv2d_n") && p->n_raxis == 3) return conv_kind(p);
        if (strstr(p->tag, "batch_matmul")) return "batch_matmul";
        if (!strcmp(p->tag, "dense") || !strcmp(p->tag, "matmul")) return "dense";
        if (strstr(p->tag, "pool")) return "pool";
        if (strstr(p->tag, "softmax")) return "softmax";
        sums = sums || p->red;
    }
    return sums ? NULL : "element";
}

static void add_item(const network *n, uint32_t k) {
    const cd_shard_net_op *op = &n->net.op[k];
    cd_arena a = {0};
    cd_te_shard_axis *w;
    uint32_t ways;
    if (!op->dag || n_item == MOST_ITEM) return;
    for (uint32_t i = 0; i < n_item; i++)
        if (!strcmp(list[i].n->net.op[list[i].op].key, op->key)) return;
    must(cd_te_shard_axes(op->dag, &a, &w, &ways, &err), op->name);
    cd_arena_free(&a);
    const cd_te_op *last = &op->dag->op[op->dag->n_op - 1];
    double moved = 1; /* what only moves counts its elements */
    for (uint32_t d = 0; d < last->rank; d++) moved *= (double)last->shape[d];
    const char *kind = kind_of(op->dag);
    if (ways && kind) list[n_item++] = (item){n, k, kind, fmax(op->dag->flop, moved), false};
}

static int by_work(const void *x, const void *y) {
    const double a = ((const item *)x)->work, b = ((const item *)y)->work;
    return a < b ? -1 : a > b;
}

/* Of each kind the first, the last, and those evenly between. */
static void choose(void) {
    qsort(list, n_item, sizeof *list, by_work);
    for (size_t q = 0; q < sizeof kinds / sizeof *kinds; q++) {
        uint32_t all = 0, at = 0;
        for (uint32_t i = 0; i < n_item; i++) all += !strcmp(list[i].kind, kinds[q]);
        for (uint32_t i = 0; i < n_item; i++) {
            if (strcmp(list[i].kind, kinds[q])) continue;
            for (uint32_t k = 0; k < o.per; k++)
                if (at ==
                    (o.per > 1 ? (uint32_t)((double)k * (all - 1) / (o.per - 1) + 0.5) : all / 2))
                    list[i].chosen = true;
            at++;
        }
    }
}

static void load(const char *word) {
    network *n = &net[n_net++];
    const char *colon = strrchr(word, ':');
    snprintf(n->name, sizeof n->name, "%.*s", (int)(colon ? colon - word : (long)strlen(word)),
             word);
    must(cd_network_load(&(cd_network_load_options){.network = n->name,
                                                    .batch = colon ? atol(colon + 1) : 1,
                                                    .target = o.target},
                         &n->live, &err),
         word);
    must(cd_plan_run_shard_net(&n->live, &n->arena, &n->net, &err), word);
    for (uint32_t k = 0; k < n->net.n_op; k++) add_item(n, k);
}

/* ---- one operator as a network ---- */

static cd_shard_net alone(const item *x, cd_arena *a) {
    cd_shard_net s = x->n->net;
    const cd_shard_net_op *op = &s.op[x->op];
    cd_shard_net_tensor *t = CD_NEWN(a, cd_shard_net_tensor, s.n_tensor);
    if (!t) DIE("bench_shard_plan: out of memory\n");
    for (uint32_t i = 0; i < s.n_tensor; i++) {
        t[i] = s.tensor[i];
        t[i].from = i == op->arg[op->n_arg - 1] ? 0 : CD_SHARD_NET_OUTSIDE;
        t[i].result = i == op->arg[op->n_arg - 1];
    }
    s.tensor = t;
    s.op = op;
    s.n_op = 1;
    return s;
}

typedef struct {
    cd_shard_plan plan;
    cd_shard_plan_op op;
    cd_shard_plan_part part[2];
    char what[80];
    double predicted; /* slowest part, start, wait and join; without copies */
    double seconds;   /* first measurement; NaN: failed */
    double again;     /* second; NaN: not in it */
} candidate;

static candidate cand[MOST_CANDIDATE];
static uint32_t n_cand;
static const char *device_name[CD_MACHINE_DEVICES];

static candidate *add_candidate(const cd_shard_net *s) {
    if (n_cand == MOST_CANDIDATE) DIE("bench_shard_plan: too many ways\n");
    candidate *c = &cand[n_cand++];
    *c = (candidate){.seconds = (double)NAN, .again = (double)NAN};
    c->op = (cd_shard_plan_op){.name = s->op[0].name,
                               .type = s->op[0].type,
                               .key = s->op[0].key,
                               .dim = "",
                               .n_part = 1,
                               .part = c->part,
                               .join = UINT32_MAX};
    c->plan = (cd_shard_plan){.network = s->name,
                              .batch = s->batch,
                              .n_device = machine.n,
                              .n_op = 1,
                              .device = device_name,
                              .op = &c->op,
                              .measured_s = (double)NAN};
    return c;
}

static void all_candidates(const cd_shard_net *s, const cd_te_shard_axis *way, uint32_t n_way) {
    n_cand = 0;
    for (uint32_t d = 0; d < 2; d++) {
        candidate *c = add_candidate(s);
        c->part[0].device = d;
        snprintf(c->what, sizeof c->what, "%s", machine.device[d].name);
    }
    for (uint32_t w = 0; w < n_way; w++)
        for (uint32_t k = 1, last = 0; k < o.granules; k++) {
            const int64_t cut = (int64_t)((double)way[w].extent * k / o.granules + 0.5);
            if (cut <= (int64_t)last || cut >= way[w].extent) continue;
            last = (uint32_t)cut;
            candidate *c = add_candidate(s);
            c->part[0] = (cd_shard_plan_part){.device = 0, .lo = 0, .hi = cut};
            c->part[1] = (cd_shard_plan_part){.device = 1, .lo = cut, .hi = way[w].extent};
            c->op.n_part = 2;
            c->op.dim = way[w].name;
            c->op.reduce = way[w].reduce;
            c->op.way_op = way[w].op;
            c->op.axis = way[w].axis;
            c->op.join = way[w].reduce ? 0 : UINT32_MAX;
            snprintf(c->what, sizeof c->what, "%s %lld:%lld", way[w].name, (long long)cut,
                     (long long)(way[w].extent - cut));
        }
}

static double part_seconds(cd_shard_cost *cost, uint32_t device, const cd_te_shard *part) {
    cd_shard_plan_estimate a = {.seconds = INFINITY};
    must(cd_shard_cost_time(cost, 0, device, part, &a, &err), "prediction");
    return a.seconds + machine.device[device].launch_s;
}

static void predict(const cd_shard_net *s, cd_shard_cost *cost, const cd_te_shard_axis *way,
                    uint32_t n_way, candidate *c) {
    cd_te_shard *p = NULL;
    c->predicted = 0;
    if (c->op.n_part == 1) c->predicted = part_seconds(cost, c->part[0].device, NULL);
    for (uint32_t w = 0; w < n_way && c->op.n_part > 1; w++) {
        if (way[w].reduce != c->op.reduce || way[w].op != c->op.way_op || way[w].axis != c->op.axis)
            continue;
        for (uint32_t i = 0; i < 2; i++) {
            must(cd_te_shard_make(s->op[0].dag, &way[w], c->part[i].lo, c->part[i].hi, &p, &err),
                 c->what);
            c->predicted = fmax(c->predicted, part_seconds(cost, c->part[i].device, p) +
                                                  machine.device[c->part[i].device].sync_s);
            cd_te_shard_free(p);
        }
        if (!way[w].reduce) break;
        must(cd_te_shard_join(s->op[0].dag, &way[w], 2, &p, &err), c->what);
        c->predicted += part_seconds(cost, c->op.join, p);
        cd_te_shard_free(p);
        break;
    }
}

/* The plan's own choice among them: it may cut otherwise (join elsewhere, the devices the other way
 * around). */
static uint32_t same_as(const cd_shard_plan_op *p) {
    for (uint32_t i = 0; i < n_cand; i++) {
        const cd_shard_plan_op *c = &cand[i].op;
        if (c->n_part != p->n_part || c->part[0].device != p->part[0].device || c->join != p->join)
            continue;
        if (p->n_part == 1 || (c->reduce == p->reduce && c->way_op == p->way_op &&
                               c->axis == p->axis && c->part[0].hi == p->part[0].hi))
            return i;
    }
    return UINT32_MAX;
}

static uint32_t chosen_one(const cd_shard_net *s, const cd_shard_plan_op *p) {
    const uint32_t k = same_as(p);
    if (k != UINT32_MAX) return k;
    candidate *c = add_candidate(s);
    c->op = *p;
    c->op.part = c->part;
    memcpy(c->part, p->part, (p->n_part < 2 ? p->n_part : 2) * sizeof *c->part);
    snprintf(c->what, sizeof c->what, "%s %lld:%lld%s", p->dim,
             (long long)(p->part[0].hi - p->part[0].lo),
             (long long)(p->n_part > 1 ? p->part[1].hi - p->part[1].lo : 0),
             p->part[0].device ? " turned" : "");
    return n_cand - 1;
}

static bool measured(const item *x, const cd_shard_net *s, cd_shard_cost *cost, candidate *c) {
    const cd_plan_run_options a = {.loaded = &x->n->live,
                                   .net = s,
                                   .machine = &machine,
                                   .plan = &c->plan,
                                   .cost = cost,
                                   .measure = measure};
    cd_plan_run *r;
    cd_plan_run_result out;
    cdmpp_status st = cd_plan_run_open(&a, &r, &err);
    if (!st) {
        st = cd_plan_run_passes(r, o.seconds / 4, &out, &err);
        if (!st) c->seconds = out.median_s;
        if (!st) cd_plan_run_result_free(&out);
        cd_plan_run_close(r);
    }
    if (st)
        fprintf(stderr, "bench_shard_plan: %s %s: %s %s\n", s->op[0].name, c->what, err.key,
                err.msg);
    if (st && !o.drop) exit(1);
    return !st;
}

static uint32_t fastest(bool again) {
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < n_cand; i++) {
        const double s = again                  ? cand[i].again
                         : isnan(cand[i].again) ? cand[i].seconds
                                                : (double)NAN;
        if (isfinite(s) &&
            (best == UINT32_MAX || s < (again ? cand[best].again : cand[best].seconds)))
            best = i;
    }
    return best;
}

/* The fastest and the chosen one, pass by pass in turns. */
static void measure_again(const item *x, const cd_shard_net *s, cd_shard_cost *cost,
                          uint32_t chosen) {
    uint32_t who[AGAIN + 1], n = 0;
    cd_plan_run *r[AGAIN + 1];
    double t[AGAIN + 1];
    cand[chosen].again = 0;
    who[n++] = chosen;
    while (n <= AGAIN && (who[n] = fastest(false)) != UINT32_MAX) cand[who[n++]].again = 0;
    for (uint32_t i = 0; i < n; i++) {
        const cd_plan_run_options a = {.loaded = &x->n->live,
                                       .net = s,
                                       .machine = &machine,
                                       .plan = &cand[who[i]].plan,
                                       .cost = cost,
                                       .measure = measure};
        must(cd_plan_run_open(&a, &r[i], &err), s->op[0].name);
    }
    must(cd_plan_run_compare(r, n, o.seconds * n, t, &err), s->op[0].name);
    for (uint32_t i = 0; i < n; i++) {
        cand[who[i]].again = t[i];
        cd_plan_run_close(r[i]);
    }
}

/* ---- lines ---- */

static void put_number(cd_buf *b, const char *key, double v) {
    if (isfinite(v)) cd_buf_putf(b, ",\"%s\":%.6g", key, v);
    else cd_buf_putf(b, ",\"%s\":null", key);
}

static void put_line(const item *x, const cd_shard_plan *p, uint32_t chosen, uint32_t best) {
    const cd_shard_net_op *op = &x->n->net.op[x->op];
    cd_buf b = {0};
    FILE *f = fopen(o.out, "a");
    cd_buf_putf(&b, "{\"kind\":\"%s\",\"network\":\"%s\",\"batch\":%lld,\"op\":\"%s\",\"key\":",
                x->kind, x->n->name, (long long)x->n->net.batch, op->type);
    cd_buf_put_json_str(&b, op->key, strlen(op->key));
    put_number(&b, "work", x->work);
    put_number(&b, "predicted_s", p->predicted_s);
    put_number(&b, "ceiling", p->ceiling);
    cd_buf_putf(&b, ",\"chosen\":\"%s\",\"best\":\"%s\"", cand[chosen].what, cand[best].what);
    put_number(&b, "chosen_s", cand[chosen].again);
    put_number(&b, "best_s", cand[best].again);
    cd_buf_puts(&b, ",\"all\":[");
    for (uint32_t i = 0; i < n_cand; i++) {
        cd_buf_putf(&b, "%s{\"what\":\"%s\"", i ? "," : "", cand[i].what);
        put_number(&b, "predicted_s", cand[i].predicted);
        put_number(&b, "s", cand[i].seconds);
        if (isfinite(cand[i].again)) put_number(&b, "again_s", cand[i].again);
        cd_buf_puts(&b, "}");
    }
    cd_buf_puts(&b, "]}\n");
    if (!f || b.oom || fwrite(b.p, 1, b.n, f) != b.n || fclose(f))
        DIE("bench_shard_plan: cannot write %s\n", o.out);
    cd_buf_free(&b);
}

static void run_item(const item *x) {
    cd_arena a = {0};
    const cd_shard_net s = alone(x, &a);
    cd_te_shard_axis *way;
    uint32_t n_way;
    cd_shard_cost *cost;
    cd_shard_plan *p;
    cd_shard_cost_model by[CD_MACHINE_DEVICES];
    for (uint32_t d = 0; d < machine.n; d++)
        by[d] = (cd_shard_cost_model){.model = model, .device = machine.device[d].as};
    const cd_shard_cost_options ca = {.model = by,
                                      .schedules = book,
                                      .machine = &machine,
                                      .net = &s,
                                      .devices = devices,
                                      .costs = costs,
                                      .plain = x->n->live.plain,
                                      .n_plain = x->n->live.n_plain};
    must(cd_te_shard_axes(s.op[0].dag, &a, &way, &n_way, &err), s.op[0].name);
    must(cd_shard_cost_new(&ca, &cost, &err), "partcost");
    const cd_shard_plan_options sa = {.net = &s,
                                      .machine = &machine,
                                      .time = cd_shard_cost_time,
                                      .steady = CD_SHARD_COST_STEADY,
                                      .ctx = cost,
                                      .granules = o.granules,
                                      .margin = o.margin,
                                      .least_s = o.least,
                                      .cover = (double)NAN,
                                      .fixed_share = (double)NAN,
                                      .split = true};
    must(cd_shard_plan_make(&sa, &p, NULL, &err), s.op[0].name);
    all_candidates(&s, way, n_way);
    const uint32_t chosen = chosen_one(&s, &p->op[0]);
    for (uint32_t i = 0; i < n_cand; i++) {
        predict(&s, cost, way, n_way, &cand[i]);
        (void)measured(x, &s, cost, &cand[i]);
    }
    measure_again(x, &s, cost, chosen);
    const uint32_t best = fastest(true);
    put_line(x, p, chosen, best);
    printf("%-13s %-12s %-24s %9.1f %-16s %9.1f %-16s %6.3f\n", x->kind, x->n->name, s.op[0].type,
           cand[chosen].again * 1e6, cand[chosen].what, cand[best].again * 1e6, cand[best].what,
           cand[chosen].again / cand[best].again);
    fflush(stdout);
    cd_shard_plan_free(p);
    cd_shard_cost_free(cost);
    cd_arena_free(&a);
}

/* ---- what is done already, and the table ---- */

typedef struct {
    const char *key;
    bool there;
} question;

static void is_it(const cd_json *j, void *ctx) {
    question *q = ctx;
    const cd_json *key = cd_json_get(j, "key");
    if (key && key->kind == CD_JSON_STR && cd_str_is(key->u.s, q->key)) q->there = true;
}

typedef struct {
    const char *kind; /* NULL: all */
    unsigned n, close;
    double log_sum, worst, alone_sum;
} totals;

static void count(const cd_json *j, void *ctx) {
    totals *t = ctx;
    const cd_json *kind = cd_json_get(j, "kind"), *all = cd_json_get(j, "all");
    const double r = number(j, "chosen_s") / number(j, "best_s");
    double alone_s = INFINITY;
    if (!kind || (t->kind && !cd_str_is(kind->u.s, t->kind)) || !(r > 0)) return;
    const cd_json *c = all && all->kind == CD_JSON_ARR ? all->u.child : NULL;
    for (int d = 0; c && d < 2; d++, c = c->next) alone_s = fmin(alone_s, number(c, "s"));
    t->n++;
    t->close += r <= 1.05;
    t->log_sum += log(r);
    t->alone_sum += log(alone_s / number(j, "best_s"));
    t->worst = fmax(t->worst, r);
}

static void put_totals(const char *kind) {
    totals t = {.kind = kind};
    must(each_line(o.out, count, &t, &err), o.out);
    if (t.n)
        printf("%-13s %3u of %3u within 5 %% (%5.1f %%)   chosen / best %.3f mean, %.3f worst   "
               "better device alone / best %.2f\n",
               kind ? kind : "all", t.close, t.n, 100.0 * t.close / t.n, exp(t.log_sum / t.n),
               t.worst, exp(t.alone_sum / t.n));
}

/* ---- options ---- */

static int read_options(int argc, char **argv) {
    int k = 1;
    for (; k < argc && !strncmp(argv[k], "--", 2); k++) {
        const char *w = argv[k] + 2;
        if (!strcmp(w, "target")) o.target = value(argc, argv, &k);
        else if (!strcmp(w, "model")) o.model = value(argc, argv, &k);
        else if (!strcmp(w, "device")) o.device = value(argc, argv, &k);
        else if (!strcmp(w, "devices")) o.devices = value(argc, argv, &k);
        else if (!strcmp(w, "book")) o.book = value(argc, argv, &k);
        else if (!strcmp(w, "machine")) o.machine = value(argc, argv, &k);
        else if (!strcmp(w, "cache")) o.cache = value(argc, argv, &k);
        else if (!strcmp(w, "per")) o.per = (uint32_t)atol(value(argc, argv, &k));
        else if (!strcmp(w, "granules")) o.granules = (uint32_t)atol(value(argc, argv, &k));
        else if (!strcmp(w, "margin")) o.margin = atof(value(argc, argv, &k));
        else if (!strcmp(w, "least")) o.least = atof(value(argc, argv, &k));
        else if (!strcmp(w, "seconds")) o.seconds = atof(value(argc, argv, &k));
        else if (!strcmp(w, "list")) o.list = true;
        else if (!strcmp(w, "summary")) o.summary = true;
        else if (!strcmp(w, "drop")) o.drop = true;
        else DIE("bench_shard_plan: no option %s\n", argv[k]);
    }
    if (k >= argc) DIE("usage: bench_shard_plan [OPTION...] OUT.ndjson NETWORK[:BATCH]...\n");
    o.out = argv[k++];
    return k;
}

/* As described, or found; without OpenCL there is nothing to measure. */
static void find_machine(void) {
    const cd_machine_measure_options a = {.list = "cpu0,ocl0", .as = o.device};
    cd_machine_init(&machine);
    if (o.machine) must(cd_machine_read(&machine, o.machine, &err), o.machine);
    else must(cd_machine_measure_find(&machine, &a, &err), "devices");
    if (!o.machine) must(cd_machine_measure_time(&machine, &err), "devices");
    if (!o.machine) must(cd_machine_measure_links(&machine, &a, &err), "links");
    if (machine.n != 2) DIE("bench_shard_plan: two devices are expected, found %u\n", machine.n);
    for (uint32_t d = 0; d < machine.n; d++) device_name[d] = machine.device[d].name;
}

static void run_all(void) {
    for (uint32_t i = 0; i < n_item; i++) {
        question q = {.key = list[i].n->net.op[list[i].op].key};
        if (!list[i].chosen) continue;
        must(each_line(o.out, is_it, &q, &err), o.out);
        if (o.list)
            printf("%-13s %-16s %-24s %.3g %s\n", list[i].kind, list[i].n->name,
                   list[i].n->net.op[list[i].op].type, list[i].work, q.key);
        else if (!q.there) run_item(&list[i]);
    }
}

int main(int argc, char **argv) {
    int k = read_options(argc, argv);
    const cd_measure_options mo = {
        .cache = o.cache, .threads = 1, .jobs = 2, .run_limit_s = 60, .build_limit_s = 120};
    cd_machine_measure_pin();
    if (!o.summary && !o.list) {
        must(cd_measure_open(&mo, &measure, &err), "measure"); /* first of all: it forks */
        read_model_and_book(o.model, o.devices, o.book);
        find_machine();
    }
    for (; k < argc && !o.summary && n_net < MOST_NET; k++) load(argv[k]);
    choose();
    run_all();
    for (size_t q = 0; q < sizeof kinds / sizeof *kinds && !o.list; q++) put_totals(kinds[q]);
    if (!o.list) put_totals(NULL);
    for (uint32_t i = 0; i < n_net; i++) {
        cd_network_load_free(&net[i].live);
        cd_arena_free(&net[i].arena);
    }
    cd_machine_free(&machine);
    cd_schedule_db_free(book);
    cd_device_table_free(devices);
    cd_network_cost_free(costs);
    cd_model_free(model);
    cd_measure_close(measure);
    return 0;
}
