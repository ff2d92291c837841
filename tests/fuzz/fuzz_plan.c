/* Any bytes as a plan: no crash, no leak; an error says what is wrong; what is accepted keeps the
 * rules of splitplan.h and reads back as it was written. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "predictor/partition/shard/shard_plan.h"

static void check_op(const cd_shard_plan *p, const cd_shard_plan_op *o) {
    int64_t at = 0;
    if (!o->n_part || o->n_part > p->n_device || !(o->seconds >= 0) || !isfinite(o->seconds))
        abort();
    if ((o->dim[0] != 0) != (o->n_part > 1) || (o->join != UINT32_MAX) != o->reduce) abort();
    for (uint32_t i = 0; i < o->n_part; i++) {
        if (o->part[i].device >= p->n_device || o->part[i].lo != at || o->part[i].hi < at) abort();
        at = o->part[i].hi;
    }
    for (uint32_t d = 0; d < p->n_device; d++)
        if (!(o->alone_s[d] >= 0)) abort();
}

static void check_plan(const cd_shard_plan *p) {
    for (uint32_t k = 0; k < p->n_op; k++) check_op(p, &p->op[k]);
    for (uint32_t i = 0; i < p->n_copy; i++)
        if (p->copy[i].from >= p->n_device || p->copy[i].to >= p->n_device ||
            p->copy[i].before > p->n_op || p->copy[i].bytes < 0)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cdmpp_err err = {0};
    cd_buf once = {0}, twice = {0};
    cd_shard_plan *p, *q;
    const cdmpp_status st =
        cd_shard_plan_read_text("plan.json", (const char *)data, size, &p, &err);
    if (st) {
        if (!err.msg[0] || err.code != st || p) abort();
        return 0;
    }
    check_plan(p);
    cd_shard_plan_write(p, &once);
    if (cd_shard_plan_read_text("again", once.p, once.n, &q, &err)) abort();
    cd_shard_plan_write(q, &twice);
    if (once.n != twice.n || memcmp(once.p, twice.p, once.n) != 0) abort();
    cd_shard_plan_free(p);
    cd_shard_plan_free(q);
    cd_buf_free(&once);
    cd_buf_free(&twice);
    return 0;
}
