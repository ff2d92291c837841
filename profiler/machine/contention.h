/* contention -- how much programs slow each other down when they run at the same time, fitted from
 * measured pairs of operators.
 *
 * An operator alone moves its bytes at bytes/solo_s; its share of the peak is s = min(1, bytes /
 * (solo_s peak)). Where the shares of those that run at the same time sum up to S > 1, each takes 1
 * - s + s S times as long; `beside` times that if another one runs on other processors, `turn`
 * times if another one runs on the same processors. */
#ifndef CD_CONTENTION_H
#define CD_CONTENTION_H
#include "base/core/core.h"

typedef struct cd_contention {
    double peak_bytes_per_s; /* of the shared memory; 0: no contention */
    double beside;           /* >= 1 */
    double turn;             /* for each other on the same processors: 1 + (turn - 1) others */
    uint32_t n_pair;         /* it is fitted from */
    double error;            /* mean |predicted / measured - 1| of its slowdowns */
} cd_contention;

typedef struct cd_corun_row {
    double solo_s[2], slowdown[2], bytes[2];
    bool shared;
} cd_corun_row;

/* Read what `cdmpp-profile corun --out` wrote, into the arena; rows with an error number are left
 * out. Errors, with path and line: EIO, ESCHEMA (a column is missing), EPARSE (a number is none),
 * ENODATA (no row), ENOMEM. */
cdmpp_status cd_contention_read(const char *path, cd_arena *a, cd_corun_row **row, size_t *n,
                                cdmpp_err *err);
/* By least squares of ln(slowdown), peak on a grid of 5 %. Errors: ENODATA (n 0), ERANGE (a number
 * that is none). */
cdmpp_status cd_contention_fit(const cd_corun_row *row, size_t n, cd_contention *out,
                               cdmpp_err *err);
/* Share of the peak that an operator alone takes: 0 to 1; 0 where the peak, the bytes or the time
 * are not known. */
double cd_contention_share(double bytes, double solo_s, double peak_bytes_per_s);
/* Factor for an operator of share s among others that sum up to S with it. */
double cd_contention_slow(const cd_contention *c, double s, double sum, uint32_t others,
                          bool shared);
#endif
