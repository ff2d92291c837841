/* Any bytes as a table of curves: no crash; every line is told, or a curve with ascending sizes and
 * times above 0 that can be fitted, and whose law is a number. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "profiler/curves/curves.h"

static void judge(const cd_curve *c) {
    cd_perf_curve p;
    for (size_t i = 0; i < c->n; i++)
        if (!(c->x[i] > (i ? c->x[i - 1] : 0)) || !(c->t[i] > 0) || !isfinite(c->t[i])) abort();
    if (c->n < 3 || c->n > 200) return;
    if (cd_perf_curve_fit(c->x, c->t, c->n, NULL, &p, NULL)) abort();
    const double a = cd_perf_curve_eval(&p, c->x[0]), b = cd_perf_curve_eval(&p, c->x[c->n - 1]);
    if (!isfinite(a) || !isfinite(b) || a < 0 || b < a * (1 - 1e-9)) abort();
    cd_perf_curve_free(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[] = "/tmp/cdmpp-fuzz-XXXXXX";
    const int fd = mkstemp(path);
    cd_curves *r;
    cd_curve c;
    bool more = true;
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    close(fd);
    if (!cd_curves_open(path, &r, NULL)) {
        while (more) {
            cdmpp_err err = {0};
            const cdmpp_status st = cd_curves_next(r, &c, &more, &err);
            if (st && !err.msg[0]) abort();
            if (!st && more) judge(&c);
        }
        cd_curves_close(r);
    }
    unlink(path);
    return 0;
}
