/* counter -- a number that only grows, for which threads wait.
 *
 *   producer: increment ──> who polls sees it at once; who sleeps is woken
 *
 * Whoever sees the new value also sees all that was written before it. Comparisons are modulo 2^32.
 * Any thread. Seconds. */
#ifndef CD_COUNTER_H
#define CD_COUNTER_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct cd_counter {
    _Atomic uint32_t value, sleepers; /* sleepers: how many sleep on it */
} cd_counter;

/* Waits until the counter is `want` or beyond. spin_s >= 0: gives up after that long and returns
 * false; < 0: polls for -spin_s, then sleeps. Both end the polling as soon as somebody else had
 * this processor meanwhile: who polls there takes it from whom it waits for, and a sleeper is woken
 * at once where a thread that used up its share waits for its turn. */
bool cd_counter_wait(cd_counter *w, uint32_t want, double spin_s);
/* Both wake those that sleep on the counter; the increment returns the new value. */
void cd_counter_set(cd_counter *w, uint32_t value);
uint32_t cd_counter_increment(cd_counter *w);
#endif
