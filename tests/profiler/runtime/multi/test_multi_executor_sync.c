/* Who waits leaves the processor to those who need it: it sleeps where another thread had the
 * processor meanwhile, and polls briefly where devices share one. */
#include <pthread.h>
#include <sched.h>

#include "check.h"
#include "made_devnet_up.h"
#include "profiler/host/host.h"
#include "profiler/runtime/multi/multi_executor_internal.h"

enum { HOUR_S = 3600, MOST_S = 20 };

static cd_counter word;

static void *wait_long(void *core) {
    (void)cd_affinity_at(*(int *)core);
    (void)cd_counter_wait(&word, 1, -HOUR_S);
    return NULL;
}

/* This thread is busy on the processor of the one that waits, until that one sleeps. */
static void who_waits_sleeps_where_another_works(void **state) {
    (void)state;
    cd_affinity all;
    pthread_t thread;
    int core = sched_getcpu();
    cd_affinity_get(&all);
    assert_true(cd_affinity_at(core));
    assert_int_equal(pthread_create(&thread, NULL, wait_long, &core), 0);
    const double begin = cd_clock_thread();
    while (!atomic_load(&word.sleepers) && cd_clock_thread() - begin < MOST_S) {
    }
    const bool slept = atomic_load(&word.sleepers) > 0;
    (void)cd_counter_increment(&word);
    assert_int_equal(pthread_join(thread, NULL), 0);
    cd_affinity_set(&all, 0);
    assert_true(slept);
}

static void spins_are(const cd_multi_device *d, double want) {
    static md_net net;
    static md_actions act;
    cd_multi_executor *r;
    cdmpp_err err = {0};
    md_net_make(&net, 1, 6, &programs);
    md_actions_make(&act, &net, &programs, d, 2, 1, false);
    assert_ok(cd_multi_executor_open(&act.dn, &r, &err));
    for (int k = 0; k < 2; k++) assert_true(r->worker[k].spin_s == want);
    cd_multi_executor_close(r);
}

static void devices_of_one_processor_do_not_poll(void **state) {
    (void)state;
    const int core = sched_getcpu();
    const cd_multi_device one[] = {{.name = "a", .core = core}, {.name = "b", .core = core}};
    const cd_multi_device any[] = {{.name = "a", .core = -1}, {.name = "b", .core = -1}};
    spins_are(one, CD_MULTI_SHARED_SPIN_S);
    spins_are(any, cd_affinity_count() < 2 ? CD_MULTI_SHARED_SPIN_S : CD_MULTI_SPIN_S);
}

TESTS(md_up, md_down, who_waits_sleeps_where_another_works, devices_of_one_processor_do_not_poll)
