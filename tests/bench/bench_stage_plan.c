/* bench_stage_plan [OPTION...] NETWORK... -- stages of blocks planned by prediction, and by running
 * every stage; both then run here.
 *
 *   --target T  --model FILE  --device NAME  --devices FILE  --book FILE  --cache FOLDER
 *   --trials N  --seed N   as bench_network_run has them
 *   --contention CSV  of `cdmpp-profile corun --out`: what operators cost beside others;
 *                     none: nothing
 *   --r N  --s N      operators of a group, groups of a stage (3, 8)
 *   --passes N        of a measured stage (5)
 *   --barrier US      of a stage, predicted (1)
 *   --seconds S       of comparing a block's plans (1)
 *   --most N          operators of a block (24)
 *   --cores A,B       (0,1)
 *
 * Without a model the times alone are those measured when the programs were picked, and the column
 * says so. One line of JSON a block that has two operators that could run together; then a table:
 * milliseconds of one after the other, of the predicted plan and of the measured one, in turns, and
 * what each search took. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_network.h"
#include "base/core/core.h"
#include "features/sketch/sketch.h"
#include "predictor/network/network.h"
#include "made_stages.h"
#include "predictor/estimate/node_cost.h"

typedef struct {
    const char *target, *model, *device, *devices, *book, *cache, *contention;
    uint32_t trials, r, s, most;
    uint64_t seed;
    unsigned passes;
    double barrier_s, seconds;
    int core[2];
} options;

static options o = {.target = "llvm -num-cores=1",
                    .trials = 2,
                    .r = 3,
                    .s = 8,
                    .most = 24,
                    .passes = 5,
                    .barrier_s = 1e-6,
                    .seconds = 1,
                    .core = {0, 1}};
static cd_measure *measure;
static cd_contention contention;
static double sum[3], search[2], within;
static unsigned n_block, n_within;

static cd_program_select *pick(const cd_workload *w) {
    const char **line = calloc(w->n_task + 1, sizeof *line);
    cd_program_select *p = NULL;
    cd_program_select_options q = {.line = line,
                                   .trials = o.trials,
                                   .seed = o.seed,
                                   .target = o.target,
                                   .hardware = cd_target_hardware(false, 1, 64),
                                   .threads = 1,
                                   .measure = measure};
    for (uint32_t k = 0; line && k < w->n_task; k++) {
        const cd_schedule_db_entry *s =
            cd_schedule_db_find(book, cd_task_registry_at(w->tasks, w->task[k].task)->workload_key);
        if (s) line[q.n_line++] = s->line;
    }
    must(cd_program_select_run(w, &q, &p, &err), "programs");
    printf("# %u tasks, %zu of the book\n", w->n_task, q.n_line);
    free(line);
    return p;
}

/* ---- a block ---- */

typedef struct {
    const cd_workload *w;
    const cd_program_select *p;
    const cd_node_cost *cost; /* NULL: as measured */
} network;

static int64_t bytes_of(const cd_workload *w, uint32_t group) {
    const cd_workload_group *g = &w->group[group];
    int64_t n = 0;
    for (uint32_t k = 0; k <= g->n_read; k++) {
        const cd_workload_buffer *b = &w->buffer[k < g->n_read ? g->read[k] : g->write];
        n += cd_graph_shape_elements(&b->shape) * (int64_t)cd_expr_dtype_bytes(b->dtype);
    }
    return n;
}

/* Two operators without a way from one to the other. */
static bool is_wide(const cd_stage_graph *g) {
    for (uint32_t k = 1; k < g->n_op; k++) {
        bool follows = false;
        for (uint32_t e = 0; e < g->op[k].n_after; e++)
            follows = follows || g->after[g->op[k].first + e] == k - 1;
        if (!follows) return true;
    }
    return false;
}

static cd_stage_plan plan_by(const cd_stage_graph *g, cd_stage_time *time, void *ctx,
                             double *seconds) {
    const double begin = cd_clock_wall();
    cd_stage_plan plan = {0};
    must(cd_stage_search(g, &(cd_stage_options){.r = o.r, .s = o.s, .time = time, .ctx = ctx},
                         &plan, &err),
         "search");
    *seconds = cd_clock_wall() - begin;
    return plan;
}

static void tell(const char *name, uint32_t block, const cd_stage_graph *g,
                 const cd_stage_plan *plan, const double *ms, const double *took, uint32_t measured,
                 const char *source) {
    printf("{\"network\":\"%s\",\"block\":%u,\"operators\":%u,\"times\":\"%s\",\"sequential_s\":%."
           "9g,\"predicted_plan_s\":%.9g,\"measured_plan_s\":%.9g,"
           "\"ratio\":%.4f,\"predicted_s\":%.9g,\"predicted_alone_s\":%.9g,\"stages\":[%u,%u],"
           "\"search_s\":[%.6f,%.3f],\"stages_run\":%u}\n",
           name, block, g->n_op, source, ms[0], ms[1], ms[2], ms[1] / ms[2], plan[0].total_s,
           plan[0].alone_s, plan[0].n_stage, plan[1].n_stage, took[0], took[1], measured);
    fflush(stdout);
    for (int k = 0; k < 3; k++) sum[k] += ms[k];
    for (int k = 0; k < 2; k++) search[k] += took[k];
    within = fmax(within, ms[1] / ms[2]);
    n_within += ms[1] <= 1.05 * ms[2];
    n_block++;
}

static void run_block(const char *name, uint32_t number, const network *n, const cd_stage_graph *g,
                      const uint32_t *group) {
    double solo[CD_STAGE_OPS], bytes[CD_STAGE_OPS], ms[3], took[2];
    for (uint32_t k = 0; k < g->n_op; k++) {
        const double alone = n->p->task[n->w->group[group[k]].task].item.out.time.median_s,
                     c = n->cost ? n->cost->node[group[k]].seconds : alone;
        solo[k] = c > 0 ? c : alone;
        bytes[k] = (double)bytes_of(n->w, group[k]);
    }
    cd_stage_solo predicted = {.solo_s = solo,
                               .bytes = bytes,
                               .units = 2,
                               .barrier_s = o.barrier_s,
                               .contention = contention};
    cd_stage_run *r;
    must(cd_stage_run_open(&(cd_stage_run_options){.work = n->w,
                                                   .pick = n->p,
                                                   .n_op = g->n_op,
                                                   .group = group,
                                                   .solo_s = solo,
                                                   .n_core = 2,
                                                   .core = o.core},
                           &r, &err),
         "block");
    cd_stage_plan plan[2] = {plan_by(g, cd_stage_solo_time, &predicted, &took[0])};
    static ms_measured m;
    m = (ms_measured){.run = r, .passes = o.passes};
    plan[1] = plan_by(g, ms_time, &m, &took[1]);
    cd_stage_exec *s[3];
    must(cd_stage_exec_open(r, NULL, 0, &s[0], &err), "sequential");
    for (int k = 0; k < 2; k++)
        must(cd_stage_exec_open(r, plan[k].stage, plan[k].n_stage, &s[k + 1], &err), "plan");
    must(cd_stage_exec_compare(s, 3, o.seconds, ms, &err), "passes");
    tell(name, number, g, plan, ms, took, m.n, n->cost ? "model" : "measured alone");
    for (int k = 0; k < 3; k++) cd_stage_exec_close(s[k]);
    for (int k = 0; k < 2; k++) cd_stage_plan_free(&plan[k]);
    cd_stage_run_close(r);
}

static void run_network(const char *name) {
    cd_network_loaded l;
    cd_arena a = {0};
    cd_stage_graph g;
    uint32_t *group, n_blocks;
    must(cd_network_load(&(cd_network_load_options){.network = name, .target = o.target}, &l, &err),
         name);
    cd_program_select *p = pick(l.work);
    cd_node_cost *cost = NULL;
    if (model)
        must(cd_node_cost_of(l.graph,
                             &(cd_node_cost_options){.model = model,
                                                     .tasks = l.work->tasks,
                                                     .schedules = book,
                                                     .device = o.device,
                                                     .devices = devices,
                                                     .costs = costs},
                             &cost, &err),
             "costs");
    must(ms_graph(l.work, p, &a, &g, &group, &err), "graph");
    uint32_t *block = calloc(g.n_op + 1, sizeof *block);
    must(cd_stage_blocks(&g, o.most, block, &n_blocks, &err), "blocks");
    for (uint32_t b = 0; block && b < n_blocks; b++) {
        cd_stage_graph part;
        uint32_t *of;
        must(ms_block(&g, group, block, b, &a, &part, &of, &err), "block");
        if (is_wide(&part)) run_block(name, b, &(network){l.work, p, cost}, &part, of);
    }
    free(block);
    cd_node_cost_free(cost);
    cd_program_select_free(p);
    cd_arena_free(&a);
    cd_network_load_free(&l);
}

/* ---- options ---- */

static int read_options(int argc, char **argv) {
    int k = 1;
    for (; k < argc && !strncmp(argv[k], "--", 2); k++) {
        const char *w = argv[k] + 2, *v = value(argc, argv, &k);
        if (!strcmp(w, "target")) o.target = v;
        else if (!strcmp(w, "model")) o.model = v;
        else if (!strcmp(w, "device")) o.device = v;
        else if (!strcmp(w, "devices")) o.devices = v;
        else if (!strcmp(w, "book")) o.book = v;
        else if (!strcmp(w, "cache")) o.cache = v;
        else if (!strcmp(w, "contention")) o.contention = v;
        else if (!strcmp(w, "trials")) o.trials = (uint32_t)atol(v);
        else if (!strcmp(w, "seed")) o.seed = (uint64_t)atoll(v);
        else if (!strcmp(w, "r")) o.r = (uint32_t)atol(v);
        else if (!strcmp(w, "s")) o.s = (uint32_t)atol(v);
        else if (!strcmp(w, "most")) o.most = (uint32_t)atol(v);
        else if (!strcmp(w, "passes")) o.passes = (unsigned)atol(v);
        else if (!strcmp(w, "barrier")) o.barrier_s = atof(v) * 1e-6;
        else if (!strcmp(w, "seconds")) o.seconds = atof(v);
        else if (!strcmp(w, "cores")) sscanf(v, "%d,%d", &o.core[0], &o.core[1]);
        else DIE("bench_stage_plan: no option --%s\n", w);
    }
    if (k >= argc) DIE("usage: bench_stage_plan [OPTION...] NETWORK...\n");
    return k;
}

static void read_all(void) {
    cd_arena a = {0};
    cd_corun_row *row;
    size_t n;
    read_model_and_book(o.model, o.devices, o.book);
    if (o.contention) {
        must(cd_contention_read(o.contention, &a, &row, &n, &err), o.contention);
        must(cd_contention_fit(row, n, &contention, &err), o.contention);
        printf("# contention of %u pairs: %.3g GB/s, beside %.3f, turn %.3f; mean error %.1f %%\n",
               contention.n_pair, contention.peak_bytes_per_s * 1e-9, contention.beside,
               contention.turn, contention.error * 100);
    } else contention = (cd_contention){.beside = 1, .turn = 1};
    cd_arena_free(&a);
}

int main(int argc, char **argv) {
    int k = read_options(argc, argv);
    const cd_measure_options mo = {.cache = o.cache,
                                   .threads = 1,
                                   .jobs = 1,
                                   .pin = true,
                                   .run_limit_s = 60,
                                   .build_limit_s = 120};
    must(cd_measure_open(&mo, &measure, &err), "measure"); /* first of all: it forks */
    read_all();
    for (; k < argc; k++) run_network(argv[k]);
    printf("# %u blocks: sequential %.3f ms, predicted plans %.3f ms (%.2fx), measured plans %.3f "
           "ms (%.2fx); predicted within 5 %% of measured on %u, at worst %.3f\n",
           n_block, sum[0] * 1e3, sum[1] * 1e3, sum[0] / sum[1], sum[2] * 1e3, sum[0] / sum[2],
           n_within, within);
    printf("# searches: by prediction %.4f s, by running stages %.1f s\n", search[0], search[1]);
    cd_schedule_db_free(book);
    cd_device_table_free(devices);
    cd_network_cost_free(costs);
    cd_model_free(model);
    cd_measure_close(measure);
    return 0;
}
