/* Any bytes as a pickle, then as a file of tasks: no crash, no leak, and an
 * error always says what is wrong. */
#include <stdint.h>
#include <stdlib.h>

#include "features/task/task.h"
#include "features/tvm/tvm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cd_arena a = {0};
    cdmpp_err err = {0};
    const cd_unpickle_value *top;
    cd_task_registry *t;
    cdmpp_status st = cd_unpickle(&a, (const char *)data, size, &top, &err);
    if (st && (!err.msg[0] || err.code != st)) abort();
    cd_arena_free(&a);
    if (st) return 0;
    if (cd_task_registry_new(&t, &err)) return 0;
    st = cd_task_registry_load_text(t, "((net,[(1,2)]),llvm).task.pkl", (const char *)data, size,
                                    &err);
    if (st && (!err.msg[0] || err.code != st)) abort();
    cd_task_registry_free(t);
    return 0;
}
