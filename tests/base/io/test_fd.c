/* All bytes through a pipe, while signals interrupt the one who writes. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/core/core.h"
#include "base/io/io.h"
#include "check.h"

enum { ALL = 1 << 20, PIECE = 1000 };
static int end[2];
static char sent[ALL], came[ALL];
static pthread_t writer;
static bool got;

static void nothing(int number) { (void)number; }

/* The pipe is full most of the time, so that the writer waits when a signal comes. */
static void *reader(void *arg) {
    (void)arg;
    got = true;
    for (size_t at = 0; at < ALL && got; at += PIECE) {
        (void)pthread_kill(writer, SIGUSR1);
        got = cd_fd_get(end[0], came + at, ALL - at < PIECE ? ALL - at : PIECE);
    }
    return NULL;
}

TEST(signals_lose_nothing) {
    const struct sigaction a = {.sa_handler = nothing}; /* no SA_RESTART */
    pthread_t t;
    for (size_t k = 0; k < ALL; k++) sent[k] = (char)(k * 2654435761u >> 13);
    assert_int_equal(pipe(end), 0);
    assert_int_equal(sigaction(SIGUSR1, &a, NULL), 0);
    writer = pthread_self();
    assert_int_equal(pthread_create(&t, NULL, reader, NULL), 0);
    assert_true(cd_fd_put(end[1], sent, ALL));
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_true(got);
    assert_memory_equal(sent, came, ALL);
    assert_int_equal(close(end[1]), 0);
    assert_false(cd_fd_get(end[0], came, 1)); /* the end */
    assert_int_equal(close(end[0]), 0);
    assert_false(cd_fd_put(end[0], sent, 1));
}

TESTS(NULL, NULL, signals_lose_nothing)
