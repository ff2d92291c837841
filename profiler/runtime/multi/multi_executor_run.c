/* The devices' threads, the passes, and the walk over actions of devices that work on the host's
 * memory. */
#include <sched.h>
#include <string.h>

#include "profiler/host/host.h"
#include "profiler/runtime/multi/multi_executor_internal.h"

/* seconds since the pass began.
 *
 * The steps that devices wait for, what becomes of them after a failure, and the protection against
 * drivers that run something late. */
static double multi_pass_now(const cd_multi_executor *r) { return cd_clock_wall() - r->begin_s; }

/* ---- steps ---- */

uint32_t cd_multi_pass_value(const cd_multi_executor *r, bool lost) {
    return 2 * atomic_load(&r->pass.value) + lost;
}

/* Waits for the steps of other devices that s needs; *lost: one of them will not be done. False:
 * not all within spin_s (as above). */
static bool multi_step_await(cd_multi_worker *w, const cd_multi_step *s, double spin_s,
                             bool *lost) {
    cd_multi_executor *r = w->net;
    for (uint32_t k = 0; k < s->n_wait; k++) {
        cd_counter *word = &r->step[s->wait[k]].word;
        if (!cd_counter_wait(word, cd_multi_pass_value(r, false), spin_s)) return false;
        *lost = *lost || atomic_load(&word->value) == cd_multi_pass_value(r, true);
    }
    return true;
}

/* the step is done: notes the time and sets its word */
static void multi_step_finish(cd_multi_step *s) {
    cd_multi_executor *r = s->worker->net;
    s->end_s = multi_pass_now(r);
    cd_counter_set(&s->word, cd_multi_pass_value(r, false));
}

/* The worker's actions from number `from` on will not be done in this pass. */
static void multi_worker_lose(cd_multi_worker *w, uint32_t from) {
    for (uint32_t i = from; i < w->n; i++)
        cd_counter_set(&w->net->step[w->action[i]].word, cd_multi_pass_value(w->net, true));
}

/* The same after a failure of this device; w->err must be filled. Stops the pass. */
static void multi_worker_fail(cd_multi_worker *w, uint32_t from, cdmpp_status st) {
    uint32_t nobody = UINT32_MAX;
    w->status = st;
    (void)atomic_compare_exchange_strong(&w->net->failed, &nobody, w->number);
    atomic_store(&w->net->stop, true);
    multi_worker_lose(w, from);
}

/* first thing in a native kernel; false: only call multi_worker_leave.
 *
 * Either the kernel sees that its device is dead, or multi_worker_die sees it inside: all
 * threads see one order of both. */
static bool multi_worker_enter(cd_multi_worker *w) {
    atomic_fetch_add(&w->inside, 1);
    return !atomic_load(&w->dead);
}

static void multi_worker_leave(cd_multi_worker *w) {
    atomic_fetch_sub(&w->inside, 1);
    atomic_fetch_sub(&w->owed, 1); /* from here on the net may be gone */
}

/* Those that are counted are about to end, and nobody wakes a sleeper then: so this yields. */
static void until_none(const _Atomic uint32_t *n) {
    while (atomic_load(n)) (void)sched_yield();
}

/* waits until the driver has ended all it owes; leaving is the last thing that a kernel or callback
 * does */
static void multi_worker_drain(cd_multi_worker *w) { until_none(&w->owed); }

/* the same, at most within_s; true: nothing is owed */
static bool multi_worker_drain_within(cd_multi_worker *w, double within_s) {
    const double until = cd_clock_wall() + within_s;
    while (atomic_load(&w->owed) && cd_clock_wall() < until) (void)sched_yield();
    return !atomic_load(&w->owed);
}

/* no more passes; waits for kernels that are inside */
static void multi_worker_die(cd_multi_worker *w) {
    atomic_store(&w->dead, true);
    until_none(&w->inside);
}

/* May the worker run its action number `at`? False (and the rest is lost): the pass was stopped,
 * the device failed before, or it breaks here on purpose. */
static bool multi_worker_may_go(cd_multi_worker *w, uint32_t at) {
    if (atomic_load(&w->dead)) {
        multi_worker_fail(
            w, at, CD_FAIL(&w->err, EBACKEND, "device %.60s failed in a pass before", w->is->name));
        return false;
    }
    if (at == w->breaks) {
        multi_worker_fail(w, at,
                          CD_FAIL(&w->err, EBACKEND,
                                  "device %.60s failed before its action %u (%.60s)", w->is->name,
                                  at, w->net->dn->action[w->action[at]].name));
        return false;
    }
    if (!atomic_load(&w->net->stop)) return true;
    multi_worker_lose(w, at);
    return false;
}

/* Passes of OpenCL devices: native kernels that walk over the actions, and queues that are given
 * one action after the other. */

#define OVER_S 0.2 /* for a driver's last words about events, at close */

static cd_multi_step *step_of(const cd_multi_worker *w, uint32_t i) {
    return &w->net->step[w->action[i]];
}
static const char *name_of(const cd_multi_worker *w, uint32_t action) {
    return w->net->dn->action[action].name;
}

/* A native kernel into the queue. It is owed from before the call on, because it may end before the
 * call returns. */
static int32_t hand_kernel(cd_multi_worker *w, void (*run)(void *), void *arg, size_t n,
                           uint32_t n_mem, const cd_cl *mem, const void **hole) {
    atomic_fetch_add(&w->owed, 1); /* it may end before the call does */
    const int32_t st = cd_multi_api(w)->clEnqueueNativeKernel(w->cl->queue, run, arg, n, n_mem, mem,
                                                              hole, 0, NULL, NULL);
    if (st) atomic_fetch_sub(&w->owed, 1);
    return st;
}

/* ---- native kernels on the host's memory ---- */

/* Hands out the walk again and again: the kernel comes back where it would have to wait long for
 * another device. */
static void multi_native_pass(cd_multi_worker *w, void (*walk)(void *)) {
    while (w->at < w->n) {
        bool lost = false;
        if (!multi_worker_may_go(w, w->at)) return;
        (void)multi_step_await(w, step_of(w, w->at), -w->spin_s, &lost);
        if (lost) {
            multi_worker_lose(w, w->at);
            return;
        }
        const uint32_t back = w->back, at = w->at;
        int32_t st = hand_kernel(w, walk, &w, sizeof w, 0, NULL, NULL);
        const int32_t end = cd_multi_api(w)->clFinish(w->cl->queue);
        /* it may yet be run, at any time */
        if (end || (!st && w->back == back)) multi_worker_die(w);
        if (!st) st = end;
        if (st || w->back == back) {
            multi_worker_fail(w, w->back == back ? at : w->at,
                              cd_multi_queue_error(w, st, "native kernel", &w->err));
            return;
        }
        multi_worker_drain(w);
    }
}

/* ---- commands of an action ---- */

/* The first and the last event of an action stay. */
static void keep(const cd_multi_worker *w, cd_multi_step *s, cd_cl event) {
    if (!event) return;
    if (!s->first) {
        s->first = event;
        return;
    }
    if (s->last) cd_multi_api(w)->clReleaseEvent(s->last);
    s->last = event;
}

static void multi_run_program(const cd_multi_worker *w, const cd_multi_step *s, void *const *arg);

static void multi_run_copy(const cd_multi_executor *r, uint32_t action);

static void run_entered(cd_multi_native *n) {
    cd_multi_worker *w = n->worker;
    cd_multi_executor *r = w->net;
    cd_multi_step *s = &r->step[n->step];
    s->start_s = multi_pass_now(r);
    if (s->handle && r->dn->action[n->step].build->code->parallel)
        cd_object_loader_threads(s->handle, 1);
    for (uint32_t b = 0; b < s->n_place; b++)
        n->arg[b] =
            (unsigned char *)n->arg[s->n_place + s->which[b]] + r->place[s->place[b]].offset;
    if (s->entry) multi_run_program(w, s, n->arg);
    else multi_run_copy(r, n->step);
    multi_step_finish(s);
}

static void run_native(void *arg) {
    cd_multi_native *n = arg;
    cd_multi_worker *w = n->worker;
    if (multi_worker_enter(w)) run_entered(n);
    multi_worker_leave(w);
}

static int32_t hand_native(cd_multi_worker *w, cd_multi_step *s) {
    return hand_kernel(w, run_native, s->native, s->n_native, s->n_mem, s->n_mem ? s->mem : NULL,
                       s->n_mem ? s->hole : NULL);
}

/* Windows that cannot be buffers: their content is copied in before the program runs, and out
 * behind it. */
static int32_t beside(cd_multi_worker *w, cd_multi_step *s, bool out) {
    int32_t st = 0;
    for (uint32_t b = 0; b < s->n_place && !st; b++) {
        const cd_multi_place *p = &w->net->place[s->place[b]];
        cd_cl event = NULL;
        if (!s->beside[b] || !p->bytes) continue;
        st = out ? cd_multi_api(w)->clEnqueueCopyBuffer(w->cl->queue, s->mem[b], w->mem[p->root], 0,
                                                        (size_t)p->offset, (size_t)p->bytes, 0,
                                                        NULL, &event)
                 : cd_multi_api(w)->clEnqueueCopyBuffer(w->cl->queue, w->mem[p->root], s->mem[b],
                                                        (size_t)p->offset, 0, (size_t)p->bytes, 0,
                                                        NULL, &event);
        keep(w, s, event);
    }
    return st;
}

static cdmpp_status hand_program(cd_multi_worker *w, cd_multi_step *s) {
    int32_t st = beside(w, s, false);
    cdmpp_status code = CDMPP_OK;
    for (unsigned t = 0; t < w->times && !st && !code; t++) {
        cd_cl first = NULL, last = NULL;
        code = cd_backend_opencl_enqueue(s->program, &first, &last, &w->err);
        keep(w, s, first);
        keep(w, s, last);
    }
    if (!st && !code) st = beside(w, s, true);
    return st ? cd_multi_queue_error(w, st, "window", &w->err) : code;
}

/* ---- copies ---- */

typedef struct {
    cd_multi_worker *w;
    cd_multi_step *s;
    cd_cl from, to; /* NULL: the host's memory */
    unsigned char *from_host, *to_host;
} transfer;

static int32_t send_run(const transfer *t, int64_t from, int64_t to, int64_t n) {
    const cd_opencl_api *a = cd_multi_api(t->w);
    cd_cl q = t->w->cl->queue, event = NULL;
    int32_t st;
    if (!t->from)
        st = a->clEnqueueWriteBuffer(q, t->to, 0, (size_t)to, (size_t)n, t->from_host + from, 0,
                                     NULL, &event);
    else if (!t->to)
        st = a->clEnqueueReadBuffer(q, t->from, 0, (size_t)from, (size_t)n, t->to_host + to, 0,
                                    NULL, &event);
    else
        st = a->clEnqueueCopyBuffer(q, t->from, t->to, (size_t)from, (size_t)to, (size_t)n, 0, NULL,
                                    &event);
    keep(t->w, t->s, event);
    return st;
}

/* The innermost two or three dimensions in one command; n: bytes, rows, slices. */
static int32_t send_rect(const transfer *t, int64_t from, int64_t to, const size_t *n,
                         const size_t *from_pitch, const size_t *to_pitch) {
    const cd_opencl_api *a = cd_multi_api(t->w);
    const size_t zero[3] = {0, 0, 0}, f[3] = {(size_t)from, 0, 0}, g[3] = {(size_t)to, 0, 0};
    cd_cl q = t->w->cl->queue, event = NULL;
    int32_t st;
    if (!t->from)
        st = a->clEnqueueWriteBufferRect(q, t->to, 0, g, zero, n, to_pitch[0], to_pitch[1],
                                         from_pitch[0], from_pitch[1], t->from_host + from, 0, NULL,
                                         &event);
    else if (!t->to)
        st = a->clEnqueueReadBufferRect(q, t->from, 0, f, zero, n, from_pitch[0], from_pitch[1],
                                        to_pitch[0], to_pitch[1], t->to_host + to, 0, NULL, &event);
    else
        st = a->clEnqueueCopyBufferRect(q, t->from, t->to, f, g, n, from_pitch[0], from_pitch[1],
                                        to_pitch[0], to_pitch[1], 0, NULL, &event);
    keep(t->w, t->s, event);
    return st;
}

/* Rows and slices as OpenCL wants them: they do not overlap, a slice is a number of rows. */
static bool fits(const cd_multi_copy_box *b, uint32_t d, const int64_t *stride) {
    const int64_t width = b->n[b->rank - 1], row = stride[b->rank - 2];
    if (row < width) return false;
    return d + 2 == b->rank || (stride[d] >= row * b->n[d + 1] && stride[d] % row == 0);
}

/* A box, dimension by dimension, down to what one command can copy: a run, or two or three
 * dimensions as a rectangle. */
static int32_t send(const transfer *t, const cd_multi_copy_box *b, uint32_t d, int64_t from,
                    int64_t to) {
    const uint32_t left = b->rank - d;
    if (left == 1) return send_run(t, from, to, b->n[d]);
    if (left <= 3 && fits(b, d, b->from) && fits(b, d, b->to)) {
        const size_t n[3] = {(size_t)b->n[b->rank - 1], (size_t)b->n[b->rank - 2],
                             left == 3 ? (size_t)b->n[d] : 1};
        const size_t f[2] = {(size_t)b->from[b->rank - 2], left == 3 ? (size_t)b->from[d] : 0};
        const size_t g[2] = {(size_t)b->to[b->rank - 2], left == 3 ? (size_t)b->to[d] : 0};
        return send_rect(t, from, to, n, f, g);
    }
    int32_t st = 0;
    for (int64_t i = 0; i < b->n[d] && !st; i++)
        st = send(t, b, d + 1, from + i * b->from[d], to + i * b->to[d]);
    return st;
}

/* A copy between memories goes into the queue; one within memory 0 is the host's work, after the
 * queue is empty. */
static cdmpp_status hand_copy(cd_multi_worker *w, uint32_t action) {
    cd_multi_executor *r = w->net;
    cd_multi_step *s = &r->step[action];
    const cd_multi_copy *c = &r->dn->action[action].copy;
    const cd_multi_place *from = &r->place[c->from], *to = &r->place[c->to];
    const transfer t = {.w = w,
                        .s = s,
                        .from = from->memory ? w->mem[from->root] : NULL,
                        .to = to->memory ? w->mem[to->root] : NULL,
                        .from_host = from->memory ? NULL : cd_multi_place_at(r, c->from),
                        .to_host = to->memory ? NULL : cd_multi_place_at(r, c->to)};
    int32_t st = 0;
    if (!from->memory && !to->memory) { /* the device has no part in it but its turn */
        st = cd_multi_api(w)->clFinish(w->cl->queue);
        s->start_s = multi_pass_now(r);
        if (!st) multi_run_copy(r, action);
        if (!st) multi_step_finish(s);
    } else if (s->box.bytes) {
        st = send(&t, &s->box, 0, s->box.from_first + (from->memory ? from->offset : 0),
                  s->box.to_first + (to->memory ? to->offset : 0));
    }
    return st ? cd_multi_queue_error(w, st, "copy", &w->err) : CDMPP_OK;
}

/* ---- a pass ---- */

/* Called by the driver from a thread of its own when an event is over. */
static void note(cd_cl event, int32_t st, void *ctx) {
    cd_multi_step *s = ctx;
    cd_multi_worker *w = s->worker;
    (void)event;
    if (!multi_worker_enter(w)) { /* nobody waits for it any more */
    } else if (st >= 0) {
        multi_step_finish(s);
    } else {
        atomic_store(&w->trouble, st);
        atomic_store(&w->net->stop, true);
        cd_counter_set(&s->word, cd_multi_pass_value(w->net, true));
    }
    multi_worker_leave(w);
}

/* An action without a command of its own: done when all before it is. */
static cdmpp_status hand_nothing(cd_multi_worker *w, cd_multi_step *s) {
    const int32_t st = cd_multi_api(w)->clFinish(w->cl->queue);
    if (st) return cd_multi_queue_error(w, st, "nothing to run", &w->err);
    s->start_s = multi_pass_now(w->net);
    multi_step_finish(s);
    return CDMPP_OK;
}

/* An action is handed to the queue. When somebody asks about its end, its last event gets a
 * callback; an action without any command is done when all before it are. */
static cdmpp_status hand(cd_multi_worker *w, uint32_t action) {
    cd_multi_step *s = &w->net->step[action];
    s->handed_s = s->start_s = s->end_s = multi_pass_now(w->net);
    if (s->native) {
        const int32_t st = hand_native(w, s);
        return st ? cd_multi_queue_error(w, st, "native kernel", &w->err) : CDMPP_OK;
    }
    CD_TRY(s->program ? hand_program(w, s) : hand_copy(w, action));
    if (!s->asked || atomic_load(&s->word.value) == cd_multi_pass_value(w->net, false))
        return CDMPP_OK;
    if (!s->first) return hand_nothing(w, s);
    atomic_fetch_add(&w->owed, 1);
    const int32_t st =
        cd_multi_api(w)->clSetEventCallback(s->last ? s->last : s->first, CD_CL_COMPLETE, note, s);
    if (st) atomic_fetch_sub(&w->owed, 1);
    return st ? cd_multi_queue_error(w, st, "event", &w->err) : CDMPP_OK;
}

/* The device's clock on the host's: both know when the first command was handed out. */
static int32_t read_times(cd_multi_worker *w, uint32_t n) {
    const cd_opencl_api *a = cd_multi_api(w);
    double ahead = 0;
    bool known = false;
    int32_t st = 0;
    for (uint32_t i = 0; i < n && !st; i++) {
        cd_multi_step *s = step_of(w, i);
        uint64_t queued = 0, from = 0, to = 0;
        if (!s->first) continue;
        st = a->clGetEventProfilingInfo(s->first, CD_CL_PROFILING_QUEUED, sizeof queued, &queued,
                                        NULL);
        if (!st)
            st = a->clGetEventProfilingInfo(s->first, CD_CL_PROFILING_START, sizeof from, &from,
                                            NULL);
        if (!st)
            st = a->clGetEventProfilingInfo(s->last ? s->last : s->first, CD_CL_PROFILING_END,
                                            sizeof to, &to, NULL);
        if (!known) ahead = (double)queued * 1e-9 - s->handed_s;
        known = true;
        const double start = (double)from * 1e-9 - ahead, end = (double)to * 1e-9 - ahead;
        s->start_s = start > s->handed_s ? start : s->handed_s;
        if (!s->asked) s->end_s = end;
        if (s->end_s < s->start_s) s->end_s = s->start_s;
    }
    return st;
}

/* Releases the events of the pass. */
static void let_go(cd_multi_worker *w) {
    for (uint32_t i = 0; i < w->n; i++) {
        cd_multi_step *s = step_of(w, i);
        if (s->first) cd_multi_api(w)->clReleaseEvent(s->first);
        if (s->last) cd_multi_api(w)->clReleaseEvent(s->last);
        s->first = s->last = NULL;
    }
}

/* Waits for the first n actions, which were handed out, reads their times, and finds out whether
 * one has failed. */
static void settle(cd_multi_worker *w, uint32_t n, cdmpp_status code) {
    cd_multi_executor *r = w->net;
    int32_t st = cd_multi_api(w)->clFinish(w->cl->queue);
    for (uint32_t i = 0; i < n && !st; i++) {
        cd_multi_step *s = step_of(w, i);
        /* handed out and never run */
        if (s->native && atomic_load(&s->word.value) != cd_multi_pass_value(r, false)) st = -14;
        else if (s->asked || s->native)
            (void)cd_counter_wait(&s->word, cd_multi_pass_value(r, false), -w->spin_s);
        else cd_counter_set(&s->word, cd_multi_pass_value(r, false));
    }
    if (!st && r->timed && !code) st = read_times(w, n);
    let_go(w);
    const int32_t trouble = atomic_exchange(&w->trouble, 0);
    if (!st) st = trouble;
    if (st) multi_worker_die(w); /* its late words would be taken for those of the next pass */
    else if (!atomic_load(&w->dead)) multi_worker_drain(w);
    if (!code && st) code = cd_multi_queue_error(w, st, "run", &w->err);
    if (code) multi_worker_fail(w, st ? 0 : n, code);
}

bool cd_multi_queue_finished(cd_multi_worker *w) {
    if (!atomic_load(&w->dead)) return true;
    return !cd_multi_api(w)->clFinish(w->cl->queue) && multi_worker_drain_within(w, OVER_S);
}

/* One pass of a device of the kind queue (above); of one that walks as a native kernel, which calls
 * walk(&w). */
static void multi_queue_pass(cd_multi_worker *w) {
    uint32_t i = 0;
    cdmpp_status code = CDMPP_OK;
    for (; i < w->n && !code; i += !code) {
        cd_multi_step *s = step_of(w, i);
        bool lost = false;
        if (!multi_worker_may_go(w, i)) break;
        /* its queue goes on meanwhile; who has nothing there may look, others sleep */
        if (s->n_wait) {
            const bool busy = i && atomic_load(&step_of(w, i - 1)->word.value) <
                                       cd_multi_pass_value(w->net, false);
            (void)cd_multi_api(w)->clFlush(w->cl->queue);
            (void)multi_step_await(w, s, busy ? -1e-6 : -w->spin_s, &lost);
        }
        if (lost) {
            multi_worker_lose(w, i);
            break;
        }
        code = cd_err_key(&w->err, hand(w, w->action[i]), name_of(w, w->action[i]));
        if (s->asked) (void)cd_multi_api(w)->clFlush(w->cl->queue);
    }
    settle(w, i, code);
}

#define CALLER_SPIN_S 1e-6 /* the caller leaves its core to the devices */

/* The step's program, as many times as this pass asks for, on the given arguments. */
static void multi_run_program(const cd_multi_worker *w, const cd_multi_step *s, void *const *arg) {
    for (unsigned t = 0; t < w->times; t++) {
        if (s->part) s->part(arg, 0, 0, s->begin, s->end);
        else s->entry(arg);
    }
}

/* within memory 0 */
static void multi_run_copy(const cd_multi_executor *r, uint32_t action) {
    const cd_multi_copy *c = &r->dn->action[action].copy;
    const cd_multi_copy_box *b = &r->step[action].box;
    if (b->bytes)
        cd_box_copy(cd_multi_place_at(r, c->to) + b->to_first, b->to,
                    cd_multi_place_at(r, c->from) + b->from_first, b->from, b->rank, b->n, 1);
}

/* ---- the walk: memory 0 ---- */

static void run_here(cd_multi_worker *w, uint32_t k) {
    cd_multi_step *s = &w->net->step[k];
    s->start_s = multi_pass_now(w->net);
    if (s->entry) multi_run_program(w, s, s->arg);
    else multi_run_copy(w->net, k);
    multi_step_finish(s);
}

/* From w->at on, to the end or until a wait is longer than spin_s. */
static void walk(cd_multi_worker *w, double spin_s) {
    for (; w->at < w->n; w->at++) {
        bool lost = false;
        if (!multi_worker_may_go(w, w->at)) break;
        if (!multi_step_await(w, &w->net->step[w->action[w->at]], spin_s, &lost)) return;
        if (lost) {
            multi_worker_lose(w, w->at);
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
    if (multi_worker_enter(w)) {
        if (!w->at) one_thread(w);
        walk(w, w->spin_s); /* no longer: the driver's thread may be needed by somebody else */
        w->back++;
    }
    multi_worker_leave(w);
}

/* ---- threads ---- */

static void one_pass(cd_multi_worker *w) {
    w->at = 0;
    w->times = w->slow ? w->slow : w->is->times ? w->is->times : 1;
    if (w->is->kind == CD_MULTI_CPU) walk(w, -w->spin_s);
    else if (w->walks) multi_native_pass(w, walk_native);
    else multi_queue_pass(w);
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
