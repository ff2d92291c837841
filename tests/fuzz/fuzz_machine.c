/* Any bytes as a machine: no crash, no leak; an error says what is wrong; what is accepted keeps
 * the rules of machine.h and link.h and reads back as it was written. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/machine/machine.h"

static void check(const cd_machine *m) {
    if (!m->n || m->n > CD_MACHINE_DEVICES) abort();
    for (uint32_t i = 0; i < m->n; i++) {
        const cd_machine_device *d = &m->device[i];
        if (cd_machine_find(m, d->name) != i || !(d->scale > 0) || !isfinite(d->scale) ||
            !d->times || d->core < -1)
            abort();
        if (!(d->launch_s >= 0) || !isfinite(d->launch_s) || !(d->sync_s >= 0) ||
            !isfinite(d->sync_s))
            abort();
    }
    for (size_t k = 0; k < m->links.n; k++) {
        double last = 0;
        if (cd_machine_find(m, m->links.link[k].from) == UINT32_MAX ||
            cd_machine_find(m, m->links.link[k].to) == UINT32_MAX)
            abort();
        for (int64_t b = 0; b < (int64_t)1 << 40; b = 3 * b + 1) {
            const double s = cd_link_cost(&m->links.link[k], b);
            if (!isfinite(s) || s < last * (1 - 1e-5)) abort();
            last = s;
        }
    }
}

/* All devices chosen, in their order: the same machine. */
static void choose_all(const cd_machine *m, const cd_buf *text) {
    cd_machine all;
    cd_buf names = {0}, again = {0};
    for (uint32_t i = 0; i < m->n; i++)
        cd_buf_putf(&names, "%s%s", i ? "," : "", m->device[i].name);
    if (cd_machine_choose(m, names.p, &all, NULL)) abort();
    cd_machine_print(&all, &again);
    if (again.n != text->n || memcmp(again.p, text->p, text->n) != 0) abort();
    cd_machine_free(&all);
    cd_buf_free(&names);
    cd_buf_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cdmpp_err err = {0};
    cd_machine m, again;
    cd_buf once = {0}, twice = {0};
    cd_machine_init(&m);
    cd_machine_init(&again);
    const cdmpp_status st = cd_machine_parse(&m, (const char *)data, size, &err);
    if (st && (!err.msg[0] || err.code != st)) abort();
    if (!st) {
        check(&m);
        cd_machine_print(&m, &once);
        if (cd_machine_parse(&again, once.p, once.n, &err)) abort();
        cd_machine_print(&again, &twice);
        if (once.n != twice.n || memcmp(once.p, twice.p, once.n) != 0) abort();
        choose_all(&m, &once);
    }
    cd_machine_free(&m);
    cd_machine_free(&again);
    cd_buf_free(&once);
    cd_buf_free(&twice);
    return 0;
}
