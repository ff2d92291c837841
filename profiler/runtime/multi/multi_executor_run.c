/* The devices' threads, the passes, and the walk over actions of devices that work on the host's
 * memory. */
#include <string.h>

#include "profiler/host/host.h"
#include "profiler/runtime/multi/multi_executor_internal.h"

#define CALLER_SPIN_S 1e-6 /* the caller leaves its core to the devices */

void cd_multi_run_program(const cd_multi_worker *w, const cd_multi_step *s, void *const *arg) {
    for (unsigned t = 0; t < w->times; t++) {
        if (s->part) s->part(arg, 0, 0, s->begin, s->end);
        else s->entry(arg);
    }
}

void cd_multi_run_copy(const cd_multi_executor *r, uint32_t action) {
    const cd_multi_copy *c = &r->dn->action[action].copy;
    const cd_multi_copy_box *b = &r->step[action].box;
    if (b->bytes)
        cd_box_copy(cd_multi_place_at(r, c->to) + b->to_first, b->to,
                    cd_multi_place_at(r, c->from) + b->from_first, b->from, b->rank, b->n, 1);
}

/* ---- the walk: memory 0 ---- */

static void run_here(cd_multi_worker *w, uint32_t k) {
    cd_multi_step *s = &w->net->step[k];
    s->start_s = cd_multi_pass_now(w->net);
    if (s->entry) cd_multi_run_program(w, s, s->arg);
    else cd_multi_run_copy(w->net, k);
    cd_multi_step_finish(s);
}

/* From w->at on, to the end or until a wait is longer than spin_s. */
static void walk(cd_multi_worker *w, double spin_s) {
    for (; w->at < w->n; w->at++) {
        bool lost = false;
        if (!cd_multi_worker_may_go(w, w->at)) break;
        if (!cd_multi_step_await(w, &w->net->step[w->action[w->at]], spin_s, &lost)) return;
        if (lost) {
            cd_multi_worker_lose(w, w->at);
            break;
        }
        run_here(w, w->action[w->at]);
    }
    w->at = w->n;
}

/* Programs with OpenMP loops run on this thread alone. */
static void one_thread(cd_multi_worker *w) {
    for (uint32_t i = 0; i < w->n; i++)
        if (w->net->step[w->action[i]].handle &&
            w->net->dn->action[w->action[i]].build->code->parallel)
            cd_object_loader_threads(w->net->step[w->action[i]].handle, 1);
}

static void walk_native(void *arg) {
    cd_multi_worker *w = *(cd_multi_worker **)arg;
    if (cd_multi_worker_enter(w)) {
        if (!w->at) one_thread(w);
        walk(w, w->spin_s); /* no longer: the driver's thread may be needed by somebody else */
        w->back++;
    }
    cd_multi_worker_leave(w);
}

/* ---- threads ---- */

static void one_pass(cd_multi_worker *w) {
    w->at = 0;
    w->times = w->slow ? w->slow : w->is->times ? w->is->times : 1;
    if (w->is->kind == CD_MULTI_CPU) walk(w, -w->spin_s);
    else if (w->walks) cd_multi_native_pass(w, walk_native);
    else cd_multi_queue_pass(w);
}

/* A device's thread: one pass whenever the executor's pass counter grows, until the end. */
static void *worker_main(void *arg) {
    cd_multi_worker *w = arg;
    cd_multi_executor *r = w->net;
    cd_denormals_are_zero();
    if (w->is->core >= 0 && !cd_affinity_at(w->is->core))
        w->status =
            CD_FAIL(&w->err, EIO, "device %.60s: no processor %d", w->is->name, w->is->core);
    if (w->is->kind == CD_MULTI_CPU) one_thread(w);
    (void)cd_counter_increment(&r->out);
    for (uint32_t pass = 1;; pass++) {
        (void)cd_counter_wait(&r->pass, pass, -w->spin_s);
        if (atomic_load(&r->end)) return NULL;
        one_pass(w);
        (void)cd_counter_increment(&r->out);
    }
}

static void wait_out(cd_multi_executor *r, uint32_t n) {
    (void)cd_counter_wait(&r->out, n, -CALLER_SPIN_S);
}

cdmpp_status cd_multi_threads_start(cd_multi_executor *r, cdmpp_err *err) {
    uint32_t n = 0;
    cdmpp_status st = CDMPP_OK;
    for (; n < r->dn->n_device && !st; n += !st) {
        const int e = pthread_create(&r->worker[n].thread, NULL, worker_main, &r->worker[n]);
        if (e)
            st = CD_FAIL(err, EIO, "no thread for device %.60s: %s", r->dn->device[n].name,
                         strerror(e));
        else r->worker[n].begun = true;
    }
    wait_out(r, n);
    for (uint32_t d = 0; d < n && !st; d++)
        if ((st = r->worker[d].status) && err) *err = r->worker[d].err;
    return st;
}

void cd_multi_threads_stop(cd_multi_executor *r) {
    atomic_store(&r->end, true);
    (void)cd_counter_increment(&r->pass);
    for (uint32_t d = 0; r->worker && d < r->dn->n_device; d++)
        if (r->worker[d].begun) pthread_join(r->worker[d].thread, NULL);
}

/* ---- a pass ---- */

/* Which device failed first, with its error. */
static cdmpp_status outcome(cd_multi_executor *r, uint32_t *failed, cdmpp_err *err) {
    const uint32_t d = atomic_load(&r->failed);
    if (failed) *failed = d;
    if (d == UINT32_MAX) return CDMPP_OK;
    if (err) *err = r->worker[d].err;
    return r->worker[d].status;
}

/* Growing the pass counter starts all threads; they count themselves out. The words of steps are
 * not reset: each pass has values of its own. */
cdmpp_status cd_multi_executor_pass(cd_multi_executor *r, cd_multi_action_time *ran,
                                    double *total_s, uint32_t *failed, cdmpp_err *err) {
    const uint32_t n = r->dn->n_action;
    for (uint32_t d = 0; d < r->dn->n_device; d++) r->worker[d].status = CDMPP_OK;
    atomic_store(&r->failed, UINT32_MAX);
    atomic_store(&r->stop, false);
    atomic_store(&r->out.value, 0);
    r->timed = ran != NULL;
    r->begin_s = cd_clock_wall();
    (void)cd_counter_increment(&r->pass);
    wait_out(r, r->dn->n_device);
    *total_s = 0;
    for (uint32_t k = 0; k < n; k++) {
        const cd_multi_step *s = &r->step[k];
        const bool done = atomic_load(&s->word.value) == cd_multi_pass_value(r, false);
        if (done && s->end_s > *total_s) *total_s = s->end_s;
        if (ran)
            ran[k] = done ? (cd_multi_action_time){s->start_s, s->end_s, true}
                          : (cd_multi_action_time){0};
    }
    return outcome(r, failed, err);
}
