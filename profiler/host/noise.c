/* How noisy a measurement was, and whether that is too much to be written down. */
#include "profiler/host/noise.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/core.h"

void cd_noise_begin(cd_noise *n) {
    *n = (cd_noise){.others = (double)NAN};
    cd_host_load_begin(&n->mark, NULL, 0);
}

void cd_noise_spread(cd_noise *n, const char *figure, double spread) {
    if (!(spread > n->spread)) return;
    n->spread = spread;
    snprintf(n->worst, sizeof n->worst, "%s", figure);
}

void cd_noise_repeats(cd_noise *n, const char *figure, double *seconds, size_t n_s) {
    if (!n || n_s < 2) return;
    cd_sort_doubles(seconds, n_s);
    const double low = seconds[n_s / 4];
    if (low > 0) cd_noise_spread(n, figure, seconds[n_s / 2] / low - 1);
}

/* "SPREAD,OTHERS" */
static bool made(cd_noise *n) {
    const char *text = getenv("CDMPP_TEST_NOISE");
    char *end = NULL;
    if (!text || !text[0]) return false;
    n->spread = strtod(text, &end);
    n->others = *end == ',' ? strtod(end + 1, NULL) : (double)NAN;
    if (!n->worst[0]) snprintf(n->worst, sizeof n->worst, "made");
    return true;
}

void cd_noise_end(cd_noise *n) {
    if (!made(n)) n->others = cd_host_load_since(&n->mark);
}

void cd_noise_join(cd_noise *n, const cd_noise *other) {
    cd_noise_spread(n, other->worst, other->spread);
    if (!(n->others >= other->others)) n->others = isnan(other->others) ? n->others : other->others;
}

bool cd_noise_is_much(const cd_noise *n) {
    return n->spread > CD_NOISE_SPREAD || n->others > CD_NOISE_OTHERS;
}

void cd_noise_put(cd_buf *b, const cd_noise *n) {
    if (n->worst[0])
        cd_buf_putf(b, "repeats lie %.0f %% apart at most (%s), ", 100 * n->spread, n->worst);
    if (isnan(n->others)) cd_buf_puts(b, "what others used of the processors is not known");
    else cd_buf_putf(b, "others used %.0f %% of the processors' time", 100 * n->others);
}

cdmpp_status cd_noise_check(const cd_noise *n, bool keep, const char *what, const char *how,
                            cdmpp_err *err) {
    cd_buf b = {0};
    if (keep || !cd_noise_is_much(n)) return CDMPP_OK;
    cd_noise_put(&b, n);
    const cdmpp_status st = CD_FAIL(
        err, ERANGE,
        "%s: the machine is too noisy: %.160s (at most %.0f and %.0f %%): stop other work, or %s",
        what, b.p ? b.p : "", 100 * CD_NOISE_SPREAD, 100 * CD_NOISE_OTHERS, how);
    cd_buf_free(&b);
    return st;
}
