/* Any bytes as our text form: no crash, no leak; what is accepted and can be
 * written reads back equal. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "features/task/task.h"

static void check_round_trip(const cd_task_registry *t) {
    cd_buf out = {0};
    cdmpp_err err = {0};
    cd_task_registry *u;
    const cdmpp_status st = cd_task_registry_write(&out, t, &err);
    if (st && (!err.msg[0] || err.code != st)) abort();
    if (!st && !cd_task_registry_new(&u, &err)) {
        if (cd_task_registry_load_text(u, "again", out.p, out.n, &err)) abort();
        for (size_t i = 0; i < cd_task_registry_count(t); i++) {
            const cd_task *a = cd_task_registry_at(t, i);
            const cd_task *b =
                cd_task_registry_find(u, (cd_str){a->workload_key, strlen(a->workload_key)});
            if (a->dag && (!b || !b->dag || !cd_te_dag_equal(a->dag, b->dag))) abort();
        }
        cd_task_registry_free(u);
    }
    cd_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cdmpp_err err = {0};
    cd_task_registry *t;
    if (cd_task_registry_new(&t, &err)) return 0;
    const cdmpp_status st =
        cd_task_registry_load_text(t, "tasks.json", (const char *)data, size, &err);
    if (st && (!err.msg[0] || err.code != st)) abort();
    if (!st) check_round_trip(t);
    cd_task_registry_free(t);
    return 0;
}
