/* The way from a record to rows that commands use. Tests have their own, so
 * this file stands alone. */
#include "dataset/extract/extract.h"

static const cd_task *find(void *tasks, cd_str key) { return cd_task_registry_find(tasks, key); }

/* What one worker keeps. */
typedef struct worker {
    cd_program *program;
    cd_facts *facts;
} worker;

static void close_program(void *p) {
    worker *w = p;
    cd_facts_free(w->facts);
    cd_program_free(w->program);
    cd_mem_free(w);
}

static cdmpp_status open_program(void *tasks, void **out, cdmpp_err *err) {
    worker *w = cd_mem_zalloc(1, sizeof *w);
    (void)tasks;
    if (!w) return CD_FAIL(err, ENOMEM, "program");
    cdmpp_status st = cd_program_new(&w->program, err);
    if (!st) st = cd_facts_new(&w->facts, err);
    if (st) close_program(w);
    else *out = w;
    return st;
}

static cdmpp_status build(void *p, const cd_task *t, const cd_record *r, cd_rows *out,
                          cdmpp_err *err) {
    return cd_program_build(((worker *)p)->program, t, r, out, err);
}

static cdmpp_status choose(void *p, const cd_record *r, const cd_task **task, cdmpp_err *err) {
    return cd_program_choose(((worker *)p)->program, r, task, err);
}

static cdmpp_status facts(void *p, cd_facts_set set, float *out, cdmpp_err *err) {
    const worker *w = p;
    cd_nest nest;
    CD_TRY(cd_program_nest(w->program, &nest, err));
    return cd_facts_of(w->facts, set, &nest, out, err);
}

cd_feature_engine cd_feature_engine_default(const cd_task_registry *tasks) {
    union {
        const cd_task_registry *c;
        void *p;
    } ctx = {.c = tasks}; /* only read from */
    return (cd_feature_engine){ctx.p, find, open_program, build, close_program, facts, choose};
}

static cdmpp_status net_entries(const cd_task_registry *t, cd_net_entry **out, size_t *n,
                                cdmpp_err *err) {
    size_t total = 0, m = 0;
    for (size_t i = 0; i < cd_task_registry_network_count(t); i++)
        total += cd_task_registry_network(t, i)->n;
    cd_net_entry *e = cd_mem_zalloc(total ? total : 1, sizeof *e);
    if (!e) return CD_FAIL(err, ENOMEM, "%zu network entries", total);
    for (size_t i = 0; i < cd_task_registry_network_count(t); i++) {
        const cd_network *w = cd_task_registry_network(t, i);
        for (uint32_t k = 0; k < w->n; k++)
            e[m++] = (cd_net_entry){w->name, cd_task_registry_at(t, w->task[k])->workload_key,
                                    w->weight[k]};
    }
    *out = e;
    *n = total;
    return CDMPP_OK;
}

static cdmpp_status with_tasks(const cd_extract *x, const cd_task_registry *tasks,
                               cd_extract_stats *stats, cdmpp_err *err) {
    cd_extract y = *x;
    cd_net_entry *net = NULL;
    CD_TRY(net_entries(tasks, &net, &y.n_net, err));
    y.net = net;
    y.engine = cd_feature_engine_default(tasks);
    const cdmpp_status st = cd_extract_run(&y, stats, err);
    cd_mem_free(net);
    return st;
}

cdmpp_status cd_extract_logs(const cd_extract *x, cd_extract_stats *stats, cdmpp_err *err) {
    cd_task_registry *tasks = NULL;
    CD_TRY(cd_task_registry_new(&tasks, err));
    cd_task_registry_assume(tasks, x->assume);
    cdmpp_status st = cd_task_registry_load_all(tasks, x->task_file, x->n_task_file, x->log, err);
    if (st == CDMPP_OK) st = with_tasks(x, tasks, stats, err);
    cd_task_registry_free(tasks);
    return st;
}
