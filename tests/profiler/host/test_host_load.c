/* What others leave of processors: a made-up count, and a processor that this test keeps busy
 * itself. */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "profiler/host/host.h"

static const char stat[] = "cpu  9999 9999 9999 9999 9999 9999 9999 9999 0 0\n"
                           "cpu0 100 20 30 5000 700 4 5 6 90 0\n"
                           "cpu1 10 0 0 5000 700 0 0 0 0 0\n"
                           "cpu12 1 2 3 4 5 6 7 8 0 0\nintr 1 2 3\n";

/* Neither waiting (idle, iowait) nor the sum of all, and guests once; a processor that is named
 * twice counts once. */
static void busy_is_all_but_waiting(void **state) {
    (void)state;
    const int one[] = {0}, two[] = {0, 1}, twice[] = {1, 1}, far[] = {12}, none[] = {2};
    assert_close(cd_host_load_busy(stat, one, 1, 100), 1.65, 1e-12, 0);
    assert_close(cd_host_load_busy(stat, two, 2, 100), 0.875, 1e-12, 0);
    assert_close(cd_host_load_busy(stat, twice, 2, 100), 0.1, 1e-12, 0);
    assert_close(cd_host_load_busy(stat, far, 1, 1), 27, 1e-12, 0);
    assert_close(cd_host_load_busy(stat, NULL, 0, 100), (1.65 + 0.1 + 0.27) / 3, 1e-12, 0);
    assert_true(isnan(cd_host_load_busy(stat, none, 1, 100)) &&
                isnan(cd_host_load_busy("", NULL, 0, 100)));
    assert_true(isnan(cd_host_load_busy("cpu0 1 2\n", one, 1, 100)));
}

static atomic_bool over;
static void *keep_busy(void *core) {
    (void)cd_affinity_at(*(int *)core);
    while (!atomic_load(&over)) {
    }
    return NULL;
}

static void a_busy_thread_leaves_a_share(void **state) {
    (void)state;
    int core[2] = {sched_getcpu(), 1 << 20};
    double share[2];
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, keep_busy, &core[0]), 0);
    /* nobody has a processor of that number */
    assert_int_equal(cd_host_load_probe(core, 2, 0.3, share), 1);
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    assert_true(share[0] > 0 && share[0] < 0.8 && share[1] == 1);
}

/* A process that is not waited for is not ours as the system counts. */
static void others_are_counted(void **state) {
    (void)state;
    const int core[] = {sched_getcpu()};
    cd_host_load_mark m;
    const pid_t child = fork();
    if (!child) {
        (void)cd_affinity_at(core[0]);
        for (;;) {
        }
    }
    assert_true(child > 0);
    cd_host_load_begin(&m, core, 1);
    usleep(300000);
    const double others = cd_host_load_since(&m);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    if (isnan(others)) skip(); /* a system that hides its processors */
    assert_true(others > CD_HOST_LOAD_LIMIT && others <= 1);
}

TESTS(NULL, NULL, busy_is_all_but_waiting, a_busy_thread_leaves_a_share, others_are_counted)
