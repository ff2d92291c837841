/* The steps that devices wait for, what becomes of them after a failure, and the protection against
 * drivers that run something late. */
#include <sched.h>

#include "profiler/runtime/multi/multi_executor_internal.h"

double cd_multi_pass_now(const cd_multi_executor *r) { return cd_clock_wall() - r->begin_s; }

/* ---- steps ---- */

uint32_t cd_multi_pass_value(const cd_multi_executor *r, bool lost) {
    return 2 * atomic_load(&r->pass.value) + lost;
}

bool cd_multi_step_await(cd_multi_worker *w, const cd_multi_step *s, double spin_s, bool *lost) {
    cd_multi_executor *r = w->net;
    for (uint32_t k = 0; k < s->n_wait; k++) {
        cd_counter *word = &r->step[s->wait[k]].word;
        if (!cd_counter_wait(word, cd_multi_pass_value(r, false), spin_s)) return false;
        *lost = *lost || atomic_load(&word->value) == cd_multi_pass_value(r, true);
    }
    return true;
}

void cd_multi_step_finish(cd_multi_step *s) {
    cd_multi_executor *r = s->worker->net;
    s->end_s = cd_multi_pass_now(r);
    cd_counter_set(&s->word, cd_multi_pass_value(r, false));
}

void cd_multi_worker_lose(cd_multi_worker *w, uint32_t from) {
    for (uint32_t i = from; i < w->n; i++)
        cd_counter_set(&w->net->step[w->action[i]].word, cd_multi_pass_value(w->net, true));
}

void cd_multi_worker_fail(cd_multi_worker *w, uint32_t from, cdmpp_status st) {
    uint32_t nobody = UINT32_MAX;
    w->status = st;
    (void)atomic_compare_exchange_strong(&w->net->failed, &nobody, w->number);
    atomic_store(&w->net->stop, true);
    cd_multi_worker_lose(w, from);
}

/* Either the kernel sees that its device is dead, or cd_multi_worker_die sees it inside: all
 * threads see one order of both. */
bool cd_multi_worker_enter(cd_multi_worker *w) {
    atomic_fetch_add(&w->inside, 1);
    return !atomic_load(&w->dead);
}

void cd_multi_worker_leave(cd_multi_worker *w) {
    atomic_fetch_sub(&w->inside, 1);
    atomic_fetch_sub(&w->owed, 1); /* from here on the net may be gone */
}

/* Those that are counted are about to end, and nobody wakes a sleeper then: so this yields. */
static void until_none(const _Atomic uint32_t *n) {
    while (atomic_load(n)) (void)sched_yield();
}

void cd_multi_worker_drain(cd_multi_worker *w) { until_none(&w->owed); }

bool cd_multi_worker_drain_within(cd_multi_worker *w, double within_s) {
    const double until = cd_clock_wall() + within_s;
    while (atomic_load(&w->owed) && cd_clock_wall() < until) (void)sched_yield();
    return !atomic_load(&w->owed);
}

void cd_multi_worker_die(cd_multi_worker *w) {
    atomic_store(&w->dead, true);
    until_none(&w->inside);
}

bool cd_multi_worker_may_go(cd_multi_worker *w, uint32_t at) {
    if (atomic_load(&w->dead)) {
        cd_multi_worker_fail(
            w, at, CD_FAIL(&w->err, EBACKEND, "device %.60s failed in a pass before", w->is->name));
        return false;
    }
    if (at == w->breaks) {
        cd_multi_worker_fail(w, at,
                             CD_FAIL(&w->err, EBACKEND,
                                     "device %.60s failed before its action %u (%.60s)",
                                     w->is->name, at, w->net->dn->action[w->action[at]].name));
        return false;
    }
    if (!atomic_load(&w->net->stop)) return true;
    cd_multi_worker_lose(w, at);
    return false;
}
