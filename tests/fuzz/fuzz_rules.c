/* Any bytes as rules of fusion and as samples of kernels: no crash, no leak; an error says what is
 * wrong; what is accepted keeps its rules. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "learner/kernels/kernels.h"

static void rules(const char *path) {
    cdmpp_err err = {0};
    cd_fusion_rules r;
    const cdmpp_status st = cd_fusion_rules_read(path, &r, &err);
    if (st && (!err.msg[0] || err.code != st)) abort();
    for (uint32_t k = 0; !st && k < r.n; k++) {
        const cd_fusion_rule *x = &r.rule[k];
        if (!*x->first || !*x->second || (x->before && !*x->before) || x->answer > CD_FUSION_FUSED)
            abort();
        (void)cd_fusion_rules_find(&r, x->before, x->first, x->second);
    }
    cd_fusion_rules_free(&r);
}

static void on_bad(void *ctx, const cdmpp_err *why) {
    (void)ctx;
    if (!why->msg[0] || why->line < 1) abort();
}

static void samples(const char *path) {
    cdmpp_err err = {0};
    cd_kernel_samples s;
    const cdmpp_status st = cd_kernel_samples_open(path, false, on_bad, NULL, &s, &err);
    if (st && (!err.msg[0] || err.code != st)) abort();
    for (size_t k = 0; !st && k < s.n; k++)
        if (!(s.v[k].seconds > 0) || !isfinite(s.v[k].seconds) || !isfinite(s.v[k].kernel.x[0]))
            abort();
    cd_kernel_samples_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    const int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    rules(path);
    samples(path);
    close(fd);
    return 0;
}
