/* bench_link host | opencl NAME | map NAME | cuda N [MAX_BYTES] - measure a link both ways: pairs,
 *   what the pieces say of them, the book.
 *
 * Half of the readings fit, the other half judges: every second size is left out of the fit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/machine/link_measure.h"

static double judge(const cd_link_measure_samples *p, const double *s, const char *way) {
    cd_link_table l;
    double b[96], t[96], worst = 0, sum = 0;
    size_t n = 0, m = 0;
    cd_link_table_init(&l);
    for (size_t i = 0; i < p->n; i += 2) b[n] = p->bytes[i], t[n++] = s[i];
    if (cd_link_table_fit(&l, "a", "b", way, b, t, n, NULL)) exit(1);
    for (size_t i = 1; i < p->n; i += 2, m++) {
        const double c = cd_link_cost(cd_link_table_find(&l, "a", "b"), (int64_t)p->bytes[i]),
                     e = c > s[i] ? c / s[i] - 1 : s[i] / c - 1;
        printf("%12.0f bytes  %10.3f us  said %10.3f us  %6.1f %%  %8.2f GB/s\n", p->bytes[i],
               1e6 * s[i], 1e6 * c, 100 * (c / s[i] - 1), 1e-9 * p->bytes[i] / s[i]);
        worst = e > worst ? e : worst;
        sum += e;
    }
    printf("%s: %zu sizes left out, mean error %.1f %%, worst %.1f %%\n", way, m,
           100 * sum / (double)m, 100 * worst);
    cd_link_table_free(&l);
    return worst;
}

int main(int argc, char **argv) {
    cd_link_table l;
    cd_link_measure_samples p;
    cdmpp_err err = {0};
    char text[512];
    const char *what = argc > 1 ? argv[1] : "host", *name = argc > 2 ? argv[2] : "";
    const cd_link_measure_options a = {.device = what,
                                       .max_bytes = argc > 3 ? (size_t)atol(argv[3]) : 0};
    cd_link_table_init(&l);
    const cdmpp_status st =
        !strcmp(what, "cuda") ? cd_link_measure_cuda(&l, &a, atoi(name), &p, &err)
        : !strcmp(what, "host")
            ? cd_link_measure_host(&l, &a, &p, &err)
            : cd_link_measure_opencl(&l, &a, name, !strcmp(what, "map"), &p, &err);
    if (st) {
        fprintf(stderr, "%s\n", cdmpp_err_format(&err, text, sizeof text));
        return 1;
    }
    (void)judge(&p, p.to_s, "to it");
    (void)judge(&p, p.from_s, "from it");
    cd_buf b = {0};
    cd_link_table_print(&l, &b);
    printf("%s", b.p);
    cd_buf_free(&b);
    cd_link_table_free(&l);
    return 0;
}
