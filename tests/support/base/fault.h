/* Allocation-fault sweeps: a piece of code runs again and again, and each time one allocation later
 * is the first that is refused.
 *
 *   FAULT_SWEEP(f, 3) {
 *       thing *t = NULL;
 *       f.st = thing_new(&t, &f.err);
 *       thing_free(t);
 *   }
 *
 * Run k of the body (f.k = 0, 1, ...) refuses allocation k and all later ones (cd_mem_fail_at). The
 * sweep ends after the first run with f.st == CDMPP_OK. It checks after each run that f.st is OK or
 * ENOMEM and that no block of cd_mem is left, and at the end that at least `least` runs were
 * refused. A body may set f.step, to try fewer of many allocations. Of a body with thousands of
 * them the first 64 are refused one after the other, and then ever fewer, k/16 apart;
 * CDMPP_FAULT_ALL=1 refuses each.
 *
 * Only builds with MODE=san and MODE=cov can refuse. In other builds the body runs once and nothing
 * is refused, so that each sweep is compiled and its normal path is tested in all builds. cd_mem
 * counts for one thread: the body should not start others. */
#ifndef FAULT_H
#define FAULT_H
#include <stdbool.h>
#include <stdlib.h>

#include "base/core/mem.h"
#include "check.h"

#ifdef CD_FAULT
static inline bool fault_possible(void) { return true; }
#if CD_FAULT > 1 /* coverage: pieces of arenas too */
static inline void fault_at(long k) { k < 0 ? cd_mem_fail_at(k) : cd_mem_fail_at_piece(k); }
#else
static inline void fault_at(long k) { cd_mem_fail_at(k); }
#endif
static inline void fault_heap(long k) { cd_mem_fail_at(k); }
static inline long fault_live(void) { return cd_mem_live(); }
#else
static inline bool fault_possible(void) { return false; }
static inline void fault_at(long k) { (void)k; }
static inline void fault_heap(long k) { (void)k; }
static inline long fault_live(void) { return 0; }
#endif
/* Around code that must not fail (set-up, a second try), and around code that must not allocate. */
static inline void fault_off(void) { fault_at(-1); }
static inline void fault_all(void) { fault_heap(0); }

#define FAULT_ONE_BY_ONE 64

typedef struct fault_sweep {
    long k, step, live, runs; /* runs so far; live: blocks before this run */
    cdmpp_status st;
    cdmpp_err err; /* cleared before each run */
} fault_sweep;

/* Checks the run that has ended; true: another one begins. */
static inline bool fault_next(fault_sweep *f, long least, const char *file, int line) {
    fault_off();
    if (f->runs) {
        char text[512];
        if (f->st && f->st != CDMPP_ENOMEM) {
            print_error("allocation %ld: status %d: %s\n", f->k, (int)f->st,
                        cdmpp_err_format(&f->err, text, sizeof text));
            _fail(file, line);
        }
        _assert_int_equal((LargestIntegralType)fault_live(), (LargestIntegralType)f->live, file,
                          line);
        _assert_true((LargestIntegralType)(f->k < 5000000), "the sweep ends", file, line);
        if (!f->st) {
            _assert_true((LargestIntegralType)(!fault_possible() || f->runs > least),
                         "allocations were refused", file, line);
            return false;
        }
        const long apart = getenv("CDMPP_FAULT_ALL") ? 1 : f->k < FAULT_ONE_BY_ONE ? 1 : f->k / 16;
        f->k += f->step > apart ? f->step : apart;
    }
    *f = (fault_sweep){
        .k = f->k, .step = 1, .live = fault_live(), .runs = f->runs + 1, .st = CDMPP_ENOMEM};
    fault_at(f->k);
    return true;
}
#define FAULT_SWEEP(f, least)                                                                      \
    for (fault_sweep f = {0}; fault_next(&f, (least), __FILE__, __LINE__);)
/* In a body whose set-up allocates: fault_off(), set-up, fault_on(&f). */
static inline void fault_on(const fault_sweep *f) { fault_at(f->k); }
#endif
