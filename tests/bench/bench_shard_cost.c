/* bench_shard_cost [OPTION...] NETWORK... -- what asking the times of parts costs, and those times
 * to be compared with measured ones.
 *
 *   --model FILE --device NAME --devices FILE --book FILE --target T --trials N --granules N (8)
 *   -j N (1)
 *   --only PREFIX       operators whose type begins so        --dims O,H        only these
 *   --most N            different operators of each network
 *   --plan              how long a plan of those operators for two such devices takes, each alone
 *                       on its tensors
 *   --dump PREFIX       PREFIX.tasks.json, PREFIX.records.json for `cdmpp-profile records`,
 *                       PREFIX.tsv: network, op, type, way, first and last granule, elements of
 *                       all, extent, seconds predicted alone, key
 *
 * Of each different operator the whole, and of each way the parts 0..g and g..G. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_network.h"
#include "base/core/core.h"
#include "base/io/io.h"
#include "predictor/network/network.h"
#include "predictor/partition/shard/shard_cost.h"

enum { MOST = 4096, WANT = 65536 };

typedef struct {
    const char *model, *device, *devices, *book, *target, *only, *dims, *dump;
    uint32_t trials, granules, most;
    int jobs;
    bool plan;
} options;
static options o = {.target = "llvm -num-cores=1", .granules = 8, .most = MOST, .jobs = 1};
static cd_machine machine;
static cd_threads *pool;
static cd_buf tsv, records;
static cd_task_registry *all;

typedef struct {
    uint32_t op;
    cd_te_shard_axis way;
    uint32_t lo, hi; /* granules */
    cd_te_shard *part;
} asked;
static asked *list;
static uint32_t n_list;

/* Different tasks as operators; tensors of their own each. */
static void make_net(const cd_network_loaded *l, cd_arena *a, cd_shard_net *net) {
    const cd_workload *w = l->work;
    cd_shard_net_op *op = CD_NEWN(a, cd_shard_net_op, w->n_task + 1);
    cd_shard_net_tensor *tensor = CD_NEWN(a, cd_shard_net_tensor, 64 * ((size_t)w->n_group + 1));
    for (uint32_t g = 0, n = 0; g < w->n_group; g++) {
        const cd_workload_group *x = &w->group[g];
        if (x->task == CD_GRAPH_NONE || x->weights || net->n_op >= o.most) continue;
        const cd_task *t = cd_task_registry_at(w->tasks, w->task[x->task].task);
        const char *type = w->task[x->task].n_op ? w->task[x->task].op[0] : "";
        bool had = !t->dag || (o.only && strncmp(type, o.only, strlen(o.only)) != 0);
        for (uint32_t k = 0; k < net->n_op; k++) had |= !strcmp(op[k].key, t->workload_key);
        if (had) continue;
        uint32_t *arg = CD_NEWN(a, uint32_t, t->dag->n_arg + 1);
        op[net->n_op] = (cd_shard_net_op){.name = t->workload_key,
                                          .type = type,
                                          .key = t->workload_key,
                                          .dag = t->dag,
                                          .n_arg = t->dag->n_arg,
                                          .arg = arg,
                                          .pin = UINT32_MAX};
        for (uint32_t k = 0; k < t->dag->n_arg; k++, n++) {
            const cd_te_op *p = &t->dag->op[t->dag->tensor_op[t->dag->arg[k]]];
            if (n >= 64 * w->n_group) DIE("too many tensors\n");
            tensor[n] =
                (cd_shard_net_tensor){.name = p->name,
                                      .rank = p->rank,
                                      .shape = p->shape,
                                      .element_bytes = cd_expr_dtype_bytes(p->dtype[0]),
                                      .from = CD_SHARD_NET_OUTSIDE,
                                      .constant = k < x->n_read && w->buffer[x->read[k]].is_const};
            if (k + 1 == t->dag->n_arg) tensor[n].from = net->n_op;
            arg[k] = n;
            net->n_tensor = n + 1;
        }
        net->n_op++;
    }
    net->op = op;
    net->tensor = tensor;
}

static bool wanted(const char *dim) {
    const size_t n = strlen(dim);
    for (const char *s = o.dims; s && *s; s += strcspn(s, ","), s += *s == ',')
        if (strcspn(s, ",") == n && !memcmp(s, dim, n)) return true;
    return !o.dims;
}

static void add(uint32_t op, const cd_te_shard_axis *w, const cd_te_dag *dag, uint32_t lo,
                uint32_t hi) {
    const int64_t a = w->extent * lo / o.granules, b = w->extent * hi / o.granules;
    asked x = {.op = op, .way = *w, .lo = lo, .hi = hi};
    if (a >= b || n_list >= WANT) return;
    if (cd_te_shard_make(dag, w, a, b, &x.part, &err)) {
        fprintf(stderr, "%s %s %lld..%lld: %s\n", "part", w->name, (long long)a, (long long)b,
                err.msg);
        return;
    }
    list[n_list++] = x;
}

static void make_parts(const cd_shard_net *net, cd_arena *a) {
    for (uint32_t i = 0; i < net->n_op; i++) {
        cd_te_shard_axis *way;
        uint32_t n;
        list[n_list++] = (asked){.op = i, .way = {.name = "-"}, .hi = o.granules};
        must(cd_te_shard_axes(net->op[i].dag, a, &way, &n, &err), "ways");
        for (uint32_t k = 0; k < n; k++)
            for (uint32_t g = 1; wanted(way[k].name) && g < o.granules; g++) {
                add(i, &way[k], net->op[i].dag, 0, g);
                add(i, &way[k], net->op[i].dag, g, o.granules);
            }
    }
}

static void dump(cd_shard_cost *p, const char *network, const cd_shard_net *net) {
    for (uint32_t i = 0; i < n_list; i++) {
        const asked *x = &list[i];
        cd_shard_plan_estimate t;
        const char *line, *key = x->part ? x->part->workload_key : net->op[x->op].key;
        must(cd_shard_cost_time(p, x->op, 0, x->part, &t, &err), "time");
        must(cd_shard_cost_schedule(p, x->op, 0, x->part, &line, &err), "schedule");
        cd_buf_putf(&tsv, "%s\t%u\t%s\t%s\t%u\t%u\t%u\t%lld\t%.9g\t%.9g\t%s\n", network, x->op,
                    net->op[x->op].type, x->way.name, x->lo, x->hi, o.granules,
                    (long long)x->way.extent, t.seconds,
                    x->part ? x->part->dag->flop : net->op[x->op].dag->flop, key);
        if (!line) continue;
        cd_buf_puts(&records, line);
        cd_buf_puts(&records, "\n");
        const cd_task *ignored;
        must(cd_task_registry_add(all, (cd_str){key, strlen(key)},
                                  x->part ? x->part->dag : net->op[x->op].dag, &ignored, &err),
             "task");
    }
}

/* A plan on two such devices, all parts asked by it. */
static void plan(const cd_shard_cost_options *c, const cd_shard_net *net) {
    cd_machine two = machine;
    cd_shard_cost_options ask = *c;
    cd_shard_cost *p;
    cd_shard_plan *out;
    two.n = 2;
    two.device[1] = two.device[0];
    two.device[0].sync_s = two.device[1].sync_s = 1e-6;
    two.device[1].name = "cpu1";
    ask.machine = &two;
    must(cd_shard_cost_new(&ask, &p, &err), "new");
    const cd_shard_plan_options s = {.net = net,
                                     .machine = &two,
                                     .time = cd_shard_cost_time,
                                     .prepare = cd_shard_cost_prepare,
                                     .ctx = p,
                                     .granules = o.granules,
                                     .margin = (double)NAN,
                                     .least_s = (double)NAN,
                                     .cover = (double)NAN,
                                     .fixed_share = (double)NAN,
                                     .split = true};
    const double t0 = cd_clock_process();
    must(cd_shard_plan_make(&s, &out, NULL, &err), "plan");
    printf("  plan on two: %s, %.3g s, gain %.2f; %zu parts asked, %.3f s\n", out->verdict,
           out->predicted_s, out->predicted_gain, cd_shard_cost_asked(p, NULL),
           cd_clock_process() - t0);
    cd_shard_plan_free(out);
    cd_shard_cost_free(p);
}

static void run(const char *network) {
    const cd_network_load_options ask = {.network = network, .target = o.target};
    cd_network_loaded l = {0};
    cd_arena a = {0};
    cd_shard_net net = {.name = network, .batch = 1};
    cd_shard_cost *p;
    must(cd_network_load(&ask, &l, &err), network);
    make_net(&l, &a, &net);
    n_list = 0;
    const double t0 = cd_clock_process();
    make_parts(&net, &a);
    const double t1 = cd_clock_process();
    /* plan() has two such devices */
    const cd_shard_cost_model by[] = {{.model = model, .device = machine.device[0].as},
                                      {.model = model, .device = machine.device[0].as}};
    const cd_shard_cost_options c = {.model = by,
                                     .schedules = book,
                                     .machine = &machine,
                                     .net = &net,
                                     .devices = devices,
                                     .costs = costs,
                                     .trials = o.trials,
                                     .plain = l.plain,
                                     .n_plain = l.n_plain,
                                     .pool = pool};
    must(cd_shard_cost_new(&c, &p, &err), "new");
    cd_shard_cost_want *w = cd_mem_zalloc(n_list + 1, sizeof *w);
    for (uint32_t i = 0; i < n_list; i++) w[i] = (cd_shard_cost_want){list[i].op, 0, list[i].part};
    const double t2 = cd_clock_process();
    must(cd_shard_cost_prepare(p, w, n_list, &err), "prepare");
    const double t3 = cd_clock_process();
    for (uint32_t i = 0; i < n_list; i++) {
        cd_shard_plan_estimate out;
        must(cd_shard_cost_time(p, list[i].op, 0, list[i].part, &out, &err), "time");
    }
    const double t4 = cd_clock_process();
    size_t failed;
    const size_t n = cd_shard_cost_asked(p, &failed);
    uint32_t drawn = 0;
    for (uint32_t i = 0; i < n_list; i++) {
        const char *line = NULL, *why = cd_shard_cost_why(p, list[i].op, 0, list[i].part);
        must(cd_shard_cost_schedule(p, list[i].op, 0, list[i].part, &line, &err), "schedule");
        drawn += line && strstr(line, "\"best of ") && list[i].part;
        if (why && o.dump)
            fprintf(stderr, "%s %s %u..%u: %s\n", net.op[list[i].op].type, list[i].way.name,
                    list[i].lo, list[i].hi, why);
    }
    printf("%s: %u operators, %u questions, %zu different, %zu without an answer, %u drawn; parts "
           "made in %.3f s of CPU time, asked in %.3f s, again in %.4f s\n",
           network, net.n_op, n_list, n, failed, drawn, t1 - t0, t3 - t2, t4 - t3);
    if (o.plan) plan(&c, &net);
    if (o.dump) dump(p, network, &net);
    for (uint32_t i = 0; i < n_list; i++) cd_te_shard_free(list[i].part);
    cd_mem_free(w);
    cd_shard_cost_free(p);
    cd_network_load_free(&l);
    cd_arena_free(&a);
}

static void write_to(const char *tail, const cd_buf *b) {
    char path[512];
    snprintf(path, sizeof path, "%s%s", o.dump, tail);
    must(cd_file_write(path, b->n ? b->p : "", b->n, &err), path);
}

static void set_up(void) {
    list = cd_mem_zalloc(WANT, sizeof *list);
    must(cd_task_registry_new(&all, &err), "tasks");
    read_model_and_book(o.model, o.devices, o.book);
    if (o.jobs > 1) must(cd_threads_new(o.jobs, &pool, &err), "threads");
    machine.n = 1;
    machine.device[0] = (cd_machine_device){
        .name = "cpu0", .kind = "cpu", .target = o.target, .as = o.device, .times = 1, .scale = 1};
}

int main(int argc, char **argv) {
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        const char *a = argv[i];
        if (!strcmp(a, "--model")) o.model = value(argc, argv, &i);
        else if (!strcmp(a, "--device")) o.device = value(argc, argv, &i);
        else if (!strcmp(a, "--devices")) o.devices = value(argc, argv, &i);
        else if (!strcmp(a, "--book")) o.book = value(argc, argv, &i);
        else if (!strcmp(a, "--target")) o.target = value(argc, argv, &i);
        else if (!strcmp(a, "--only")) o.only = value(argc, argv, &i);
        else if (!strcmp(a, "--dims")) o.dims = value(argc, argv, &i);
        else if (!strcmp(a, "--dump")) o.dump = value(argc, argv, &i);
        else if (!strcmp(a, "--trials")) o.trials = (uint32_t)atoi(value(argc, argv, &i));
        else if (!strcmp(a, "--granules")) o.granules = (uint32_t)atoi(value(argc, argv, &i));
        else if (!strcmp(a, "--most")) o.most = (uint32_t)atoi(value(argc, argv, &i));
        else if (!strcmp(a, "--plan")) o.plan = true;
        else if (!strcmp(a, "-j")) o.jobs = atoi(value(argc, argv, &i));
        else DIE("bench_shard_cost: %s?\n", a);
    }
    set_up();
    for (; i < argc; i++) run(argv[i]);
    if (o.dump) {
        cd_buf text = {0};
        must(cd_task_registry_write(&text, all, &err), "tasks");
        write_to(".tasks.json", &text);
        write_to(".records.json", &records);
        write_to(".tsv", &tsv);
    }
    return 0;
}
