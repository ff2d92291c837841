/* A counter that threads wait for: they poll it, then sleep (futex). */
#include "base/core/counter.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/core/core.h"

enum { SPINS = 64 }; /* of a wait between two readings of the clock */
/* between them is a time slice of somebody else: polls and a yield to nobody take microseconds */
#define TAKEN_S 1e-4

static void pause_a_little(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static bool reached(cd_counter *w, uint32_t want) {
    return (int32_t)(atomic_load(&w->value) - want) >= 0;
}

/* Either the sleeper sees the new value, or wake() sees the sleeper: both are sequentially
 * consistent, so all threads see one order of them. */
static void sleep_until(cd_counter *w, uint32_t want) {
    atomic_fetch_add(&w->sleepers, 1);
    for (uint32_t now = atomic_load(&w->value); (int32_t)(now - want) < 0;
         now = atomic_load(&w->value))
        (void)syscall(SYS_futex, &w->value, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
    atomic_fetch_sub(&w->sleepers, 1);
}

static void wake(cd_counter *w) {
    if (atomic_load(&w->sleepers))
        (void)syscall(SYS_futex, &w->value, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

bool cd_counter_wait(cd_counter *w, uint32_t want, double spin_s) {
    if (reached(w, want)) return true;
    double before, now = cd_clock_wall();
    const double until = now + (spin_s < 0 ? -spin_s : spin_s);
    do {
        for (int i = 0; i < SPINS; i++) {
            if (reached(w, want)) return true;
            pause_a_little();
        }
        (void)sched_yield();
        before = now;
        now = cd_clock_wall();
    } while (now < until && now - before < TAKEN_S);
    if (spin_s >= 0) return reached(w, want);
    sleep_until(w, want);
    return true;
}

void cd_counter_set(cd_counter *w, uint32_t value) {
    atomic_store(&w->value, value);
    wake(w);
}

uint32_t cd_counter_increment(cd_counter *w) {
    const uint32_t n = atomic_fetch_add(&w->value, 1) + 1;
    wake(w);
    return n;
}
