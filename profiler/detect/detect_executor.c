/* Our executor as a back end: a test network becomes tasks by TVM's rules and the planted ones,
 * each task gets the best of some random schedules, and passes of the whole network are timed.
 * Channels stay where they are: changes of layout at the borders of a network are programs, too,
 * and two networks have more borders than both in one. What was built for a network and a repeat is
 * kept: networks stand in many tests. */
#include "profiler/detect/detect.h"

typedef struct made {
    uint32_t network;
    unsigned repeat;
    cd_workload *workload;
    cd_program_select *select;
} made;

struct cd_detect_executor {
    const cd_detect_executor_options *o;
    made *made; /* (n) */
    size_t n, cap;
};

void cd_detect_executor_close(cd_detect_executor *x) {
    if (!x) return;
    for (size_t k = 0; k < x->n; k++) {
        cd_program_select_free(x->made[k].select);
        cd_workload_free(x->made[k].workload);
    }
    cd_mem_free(x->made);
    cd_mem_free(x);
}

static cdmpp_status build(const cd_detect_executor *x, const cd_detect_network *n,
                          cd_workload **out, cdmpp_err *err) {
    const cd_workload_options wo = {.target = x->o->target,
                                    .layout = CD_WORKLOAD_LAYOUT_NCHW,
                                    .hardware = &x->o->hardware,
                                    .rules = x->o->planted};
    CD_TRY(cd_workload_build(n->graph, &wo, out, err));
    if (!(*out)->n_unsupported) return CDMPP_OK;
    const cdmpp_status st = CD_FAIL(err, EUNSUPPORTED, "%s: %s", (*out)->unsupported[0].op,
                                    (*out)->unsupported[0].reason);
    cd_workload_free(*out);
    return st;
}

/* A task without a program is an error here: the time of the rest would not be the network's. */
static cdmpp_status make(cd_detect_executor *x, const cd_detect_network *n, unsigned repeat,
                         made **out, cdmpp_err *err) {
    const cd_program_select_options po = {.trials = x->o->trials ? x->o->trials : 8,
                                          .pool = x->o->pool,
                                          .device = x->o->described,
                                          .seed = x->o->seed + repeat,
                                          .target = x->o->target,
                                          .hardware = x->o->hardware,
                                          .threads = x->o->threads,
                                          .measure = x->o->measure,
                                          .stop = x->o->stop};
    for (size_t k = 0; k < x->n; k++)
        if (x->made[k].network == n->id && x->made[k].repeat == repeat) {
            *out = &x->made[k];
            return CDMPP_OK;
        }
    if (CD_GROW(x->made, x->n, x->cap)) return CD_FAIL(err, ENOMEM, "programs");
    made *m = &x->made[x->n];
    *m = (made){.network = n->id, .repeat = repeat};
    CD_TRY(build(x, n, &m->workload, err));
    cdmpp_status st = cd_program_select_run(m->workload, &po, &m->select, err);
    for (uint32_t k = 0; !st && k < m->select->n; k++)
        if (m->select->task[k].status)
            st = CD_FAIL(err, EBACKEND, "a task has no program: %s", m->select->task[k].err.msg);
    if (st) {
        cd_program_select_free(m->select);
        cd_workload_free(m->workload);
        return st;
    }
    x->n++;
    *out = m;
    return CDMPP_OK;
}

/* With one thread the thread's own time is read: other load on the machine is not in it. */
static cdmpp_status time_of(void *ctx, const cd_detect_network *n, unsigned repeat, double *seconds,
                            cdmpp_err *err) {
    cd_detect_executor *x = ctx;
    const cd_op_profile_options po = {.threads = x->o->threads,
                                      .budget_s = x->o->budget_s > 0 ? x->o->budget_s : 0.1,
                                      .device = x->o->device,
                                      .cpu_time = x->o->threads == 1};
    cd_op_profile *p;
    made *m;
    CD_TRY(make(x, n, repeat, &m, err));
    CD_TRY(cd_op_profile_run(m->workload, m->select, &po, &p, err));
    *seconds = p->pass.median_s;
    cd_op_profile_free(p);
    return CDMPP_OK;
}

static cdmpp_status programs(void *ctx, const cd_detect_network *n, uint32_t *out, cdmpp_err *err) {
    cd_workload *w;
    CD_TRY(build(ctx, n, &w, err));
    *out = w->n_group;
    cd_workload_free(w);
    return CDMPP_OK;
}

cdmpp_status cd_detect_executor_open(const cd_detect_executor_options *o, cd_detect_executor **x,
                                     cd_detect_backend *out, cdmpp_err *err) {
    *x = cd_mem_zalloc(1, sizeof **x);
    if (!*x) return CD_FAIL(err, ENOMEM, "a back end");
    (*x)->o = o;
    *out = (cd_detect_backend){.ctx = *x, .time = time_of, .programs = programs};
    return CDMPP_OK;
}
