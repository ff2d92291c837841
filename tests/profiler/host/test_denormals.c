/* Numbers below the least normal one count as 0 for the thread that asks for it, and for no
 * other. */
#include <pthread.h>

#include "check.h"
#include "profiler/host/host.h"

static volatile float tiny = 0x1p-126f, half = 0.5f;

static void *flushing(void *arg) {
    cd_denormals_are_zero();
    return tiny * half > 0 ? NULL : arg;
}

TEST(of_one_thread) {
    pthread_t t;
    void *zero = NULL;
    int err = 0; /* any address */
    assert_int_equal(pthread_create(&t, NULL, flushing, &err), 0);
    assert_int_equal(pthread_join(t, &zero), 0);
#if defined(__SSE2__) || defined(__aarch64__)
    assert_non_null(zero);
#endif
    assert_true(tiny * half > 0);
}

TESTS(NULL, NULL, of_one_thread)
