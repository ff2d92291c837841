/* bench_network_run [OPTION...] OUT.ndjson NETWORK[:BATCH]... -- estimates of networks beside what
 * they take on this machine.
 *
 *   --target T        default "llvm -num-cores=1"
 *   --model FILE      estimates too; --device NAME of it
 *   --devices FILE    devices.yaml
 *   --book FILE       schedules, fixed beforehand
 *   --pick N          schedules that the book lacks: the best predicted of N, written back to the
 *                     book before anything runs
 *   --trials N        schedules that are still missing: the best measured of N drawn (4)
 *   --seed N  --workers N  --seconds S (of passes, 2)  --check  --cache FOLDER  --no-pin
 *   --summary (only that)
 *
 *   --refill GBS      added to predictions: netcost.h's refill_bytes_per_s; of networks that are
 *                     not compared (last column)
 *   --cpu-time        of passes and steps, for a machine that others use too: only a hint
 *
 * One line of JSON a network and batch, appended when it is done: what stands in OUT is not run
 * again, so a run that was killed goes on with the same command. Then a table: of the measured
 * time, the prediction's error and that of replays with each node's measured time in place, alone
 * (as records are measured), alone in the network's memory warm and cool, and half way between
 * these two. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_lines.h"
#include "bench_network.h"
#include "base/io/io.h"
#include "base/text/text.h"
#include "run_replay.h"

typedef struct {
    const char *target, *model, *device, *devices, *book, *cache, *out;
    uint32_t trials, pick, workers;
    uint64_t seed;
    double seconds, refill;
    bool check, no_pin, summary, cpu_time;
} options;

static options o = {.target = "llvm -num-cores=1", .trials = 4, .workers = 1, .seconds = 2};
static cd_measure *measure;

/* ---- one network ---- */

static void put_number(cd_buf *b, const char *key, double v) {
    if (isfinite(v)) cd_buf_putf(b, ",\"%s\":%.9g", key, v);
    else cd_buf_putf(b, ",\"%s\":null", key);
}

static void put_nodes(cd_buf *b, const cd_network_loaded *l, const cd_network_run *r,
                      const cd_node_cost *c) {
    cd_buf_puts(b, ",\"nodes\":[");
    for (uint32_t k = 0, n = 0; k < r->n; k++) {
        const cd_network_run_node *x = &r->node[k];
        const cd_network_node *g = &l->graph->node[k];
        if (x->from == CD_NETWORK_RUN_NOTHING) continue;
        cd_buf_putf(b, "%s{\"node\":%u,\"op\":\"%s\",\"from\":\"%s\"", n++ ? "," : "", k, g->op,
                    x->from == CD_NETWORK_RUN_DB ? "book" : "drawn");
        put_number(b, "predicted_s", c ? c->node[k].seconds : (double)NAN);
        put_number(b, "place_s", x->place_s);
        put_number(b, "alone_s", x->alone_s);
        put_number(b, "warm_s", x->warm_s);
        put_number(b, "cool_s", x->cool_s);
        cd_buf_putf(b, ",\"flop\":%.17g,\"read\":%lld,\"write\":%lld,\"weights\":%lld}", g->flop,
                    (long long)g->read_bytes, (long long)g->write_bytes,
                    (long long)g->weight_bytes);
    }
    cd_buf_puts(b, "]");
}

static void put_line(const cd_buf *b) {
    FILE *f = fopen(o.out, "a+");
    /* behind half a line of a run that was killed */
    if (f && !fseek(f, -1, SEEK_END) && fgetc(f) != '\n') fputc('\n', f);
    if (!f || fseek(f, 0, SEEK_END) || fwrite(b->p, 1, b->n, f) != b->n || fflush(f) ||
        fsync(fileno(f)) || fclose(f))
        DIE("bench_network_run: cannot write %s\n", o.out);
}

/* ---- what is predicted ---- */

/* Schedules that the book lacks: the model's own candidates, written down before anything runs. */
static void pick(const cd_network_loaded *l) {
    const cd_workload *w = l->work;
    const char **key = calloc(w->n_task + 1, sizeof *key);
    size_t n = 0;
    for (uint32_t k = 0; key && k < w->n_task; k++) {
        const char *one = cd_task_registry_at(w->tasks, w->task[k].task)->workload_key;
        if (!cd_schedule_db_find(book, one)) key[n++] = one;
    }
    if (n && o.pick && model) {
        const cd_schedule_db_pick p = {.trials = o.pick,
                                       .seed = o.seed,
                                       .target = o.target,
                                       .device = o.device,
                                       .plain = l->plain,
                                       .n_plain = l->n_plain};
        must(cd_schedule_db_predict(book, model, w->tasks, key, n, &p, NULL, &err), "schedules");
        if (o.book) must(cd_schedule_db_write(book, o.book, &err), o.book);
    }
    free(key);
}

static double replayed(const cd_network_graph *g, const cd_node_cost *c) {
    const cd_replay_device d = {.name = "here",
                                .workers = o.workers,
                                .policy = o.workers > 1 ? CD_REPLAY_CRITICAL : CD_REPLAY_ORDER};
    const cd_node_cost_placement place = {.n_device = 1, .device = &d};
    cd_node_cost_net *net = NULL;
    cd_replay r = {0};
    must(cd_node_cost_net_make(g, &c, &place, true, &net, &err), "replay");
    must(cd_replay_run(&net->net, &r, &err), "replay");
    const double s = r.makespan_s;
    cd_replay_free(&r);
    cd_node_cost_net_free(net);
    return s;
}

/* *cost: the caller's; NULL without a model. */
static double predict(const cd_network_loaded *l, cd_node_cost **cost) {
    const cd_node_cost_options a = {.model = model,
                                    .tasks = l->work->tasks,
                                    .schedules = book,
                                    .device = o.device,
                                    .devices = devices,
                                    .costs = costs,
                                    .refill_bytes_per_s = o.refill};
    *cost = NULL;
    if (!model) return (double)NAN;
    must(cd_node_cost_of(l->graph, &a, cost, &err), "costs");
    return replayed(l->graph, *cost);
}

static void run_one(const char *name, int64_t batch) {
    static const char *const times[] = {"place", "alone", "warm", "cool"};
    cd_network_loaded l;
    cd_network_run *r = NULL;
    cd_buf b = {0};
    must(cd_network_load(
             &(cd_network_load_options){.network = name, .batch = batch, .target = o.target}, &l,
             &err),
         name);
    pick(&l);
    const cd_network_run_options a = {.measure = measure,
                                      .schedules = book,
                                      .sampled = book,
                                      .target = o.target,
                                      .trials = o.trials,
                                      .seed = o.seed,
                                      .workers = o.workers,
                                      .threads = 1,
                                      .budget_s = o.seconds,
                                      .limit_s = 600,
                                      .pin = !o.no_pin,
                                      .alone = true,
                                      .check = o.check,
                                      .cpu_time = o.cpu_time};
    const cdmpp_status st = cd_network_run_measure(&l, &a, &r, &err);
    if (st) {
        fprintf(stderr, "bench_network_run: %s:%lld: %s %s\n", name, (long long)batch, err.key,
                err.msg);
        cd_network_load_free(&l);
        return;
    }
    cd_buf_putf(&b,
                "{\"network\":\"%s\",\"batch\":%lld,\"workers\":%u,\"nodes_run\":%u,\"drawn\":%u,"
                "\"left_out\":%u",
                name, (long long)batch, r->workers, r->n_ran, r->n_sampled, r->n_left);
    put_number(&b, "measured_s", r->pass_s);
    put_number(&b, "measured_ci", r->pass.ci);
    put_number(&b, "measured_cv", r->pass.cv);
    put_number(&b, "cold_s", r->cold_s);
    put_number(&b, "max_error", r->max_error);
    for (int t = 0; t < 4; t++) {
        double s = (double)NAN;
        (void)rr_replay(&l, r, (rr_time)t, o.workers, &s, NULL);
        char key[16];
        snprintf(key, sizeof key, "%s_s", times[t]);
        put_number(&b, key, s);
    }
    cd_node_cost *cost;
    double rate = (double)NAN;
    (void)rr_refill(&l, r, &rate, NULL);
    put_number(&b, "refill_gbs", rate * 1e-9);
    put_number(&b, "predicted_s", predict(&l, &cost));
    if (cost) put_number(&b, "missing_share", cost->missing_share);
    put_nodes(&b, &l, r, cost);
    cd_node_cost_free(cost);
    cd_buf_puts(&b, "}\n");
    put_line(&b);
    cd_buf_free(&b);
    cd_network_run_free(r);
    cd_network_load_free(&l);
}

/* ---- what is done already, and the table ---- */

typedef struct {
    const char *name;
    double batch;
    bool there;
} question;

static void is_it(const cd_json *j, void *ctx) {
    question *q = ctx;
    const cd_json *name = cd_json_get(j, "network");
    if (name && name->kind == CD_JSON_STR && cd_str_is(name->u.s, q->name) &&
        number(j, "batch") == q->batch && number(j, "workers") == o.workers)
        q->there = true;
}

typedef struct {
    unsigned n[6];
    double sum[6], most[6];
} totals;
static const char *const column[] = {"predicted_s", "place_s", "alone_s",
                                     "warm_s",      "cool_s",  "half_s"};

static void put_row(const cd_json *j, void *ctx) {
    totals *t = ctx;
    const cd_json *name = cd_json_get(j, "network");
    const double m = number(j, "measured_s");
    if (!name || name->kind != CD_JSON_STR || !(m > 0)) return;
    printf("%-20.*s %5.0f %10.4f %6.2f", (int)name->u.s.n, name->u.s.p, number(j, "batch"), m * 1e3,
           number(j, "measured_ci") * 100);
    for (int k = 0; k < 6; k++) {
        const double x = k < 5 ? number(j, column[k])
                               : 0.5 * (number(j, "warm_s") + number(j, "cool_s")),
                     e = (x / m - 1) * 100;
        printf(" %+10.2f", e);
        if (!isfinite(e)) continue;
        t->n[k]++;
        t->sum[k] += fabs(e);
        t->most[k] = fmax(t->most[k], fabs(e));
    }
    printf(" %5.0f %5.0f %6.1f\n", number(j, "drawn"), number(j, "left_out"),
           number(j, "refill_gbs"));
}

static void table(void) {
    totals t = {0};
    printf("%-20s %5s %10s %6s %10s %10s %10s %10s %10s %10s %5s %5s %6s\n", "network", "batch",
           "ms", "ci %", "predicted%", "place %", "alone %", "warm %", "cool %", "half %", "drawn",
           "left", "GB/s");
    must(each_line(o.out, put_row, &t, &err), o.out);
    printf("%-43s", "mean of |error|, %");
    for (int k = 0; k < 6; k++) printf(" %10.2f", t.n[k] ? t.sum[k] / t.n[k] : (double)NAN);
    printf("\n%-43s", "largest, %");
    for (int k = 0; k < 6; k++) printf(" %10.2f", t.n[k] ? t.most[k] : (double)NAN);
    printf("\n");
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
        else if (!strcmp(w, "cache")) o.cache = value(argc, argv, &k);
        else if (!strcmp(w, "trials")) o.trials = (uint32_t)atol(value(argc, argv, &k));
        else if (!strcmp(w, "pick")) o.pick = (uint32_t)atol(value(argc, argv, &k));
        else if (!strcmp(w, "workers")) o.workers = (uint32_t)atol(value(argc, argv, &k));
        else if (!strcmp(w, "seed")) o.seed = (uint64_t)atoll(value(argc, argv, &k));
        else if (!strcmp(w, "seconds")) o.seconds = atof(value(argc, argv, &k));
        else if (!strcmp(w, "refill")) o.refill = atof(value(argc, argv, &k)) * 1e9;
        else if (!strcmp(w, "check")) o.check = true;
        else if (!strcmp(w, "cpu-time")) o.cpu_time = true;
        else if (!strcmp(w, "no-pin")) o.no_pin = true;
        else if (!strcmp(w, "summary")) o.summary = true;
        else DIE("bench_network_run: no option %s\n", argv[k]);
    }
    if (k >= argc) DIE("usage: bench_network_run [OPTION...] OUT.ndjson NETWORK[:BATCH]...\n");
    o.out = argv[k++];
    return k;
}

int main(int argc, char **argv) {
    int k = read_options(argc, argv);
    const cd_measure_options mo = {.cache = o.cache,
                                   .threads = 1,
                                   .jobs = 1,
                                   .pin = !o.no_pin,
                                   .run_limit_s = 60,
                                   .build_limit_s = 120};
    /* first of all: it forks */
    if (!o.summary) must(cd_measure_open(&mo, &measure, &err), "measure");
    const bool has_book = o.book && !access(o.book, R_OK); /* a first run writes it */
    if (!o.summary) read_model_and_book(o.model, o.devices, has_book ? o.book : NULL);
    for (; k < argc && !o.summary; k++) {
        char name[256];
        const char *colon = strrchr(argv[k], ':');
        question q = {.name = name, .batch = colon ? atof(colon + 1) : 1};
        snprintf(name, sizeof name, "%.*s", (int)(colon ? colon - argv[k] : (long)strlen(argv[k])),
                 argv[k]);
        must(each_line(o.out, is_it, &q, &err), o.out);
        if (!q.there) run_one(name, (int64_t)q.batch);
    }
    table();
    cd_schedule_db_free(book);
    cd_device_table_free(devices);
    cd_network_cost_free(costs);
    cd_model_free(model);
    cd_measure_close(measure);
    return 0;
}
