/* Any bytes as a record: no crash; what is read is written, and reading that
 * gives the same record and the same bytes again. */
#include <stdint.h>
#include <stdlib.h>

#include "base/core/core.h"
#include "features/task/task.h"
#include "tests/support/features/record_same.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cd_arena a = {0};
    cd_buf first = {0}, second = {0};
    cdmpp_err err = {0};
    cd_record r, again;
    const cdmpp_status st = cd_record_read(&a, (const char *)data, size, &r, &err);
    if (st) {
        if (err.code != st || !err.msg[0]) abort(); /* an error without a reason */
    } else {
        if (cd_record_write(&first, &r, &err)) abort();
        if (cd_record_read(&a, first.p, first.n, &again, &err)) abort();
        if (record_differs(&r, &again, 1e-5)) abort();
        if (cd_record_write(&second, &again, &err)) abort();
        if (first.n != second.n || memcmp(first.p, second.p, first.n) != 0) abort();
    }
    cd_buf_free(&first);
    cd_buf_free(&second);
    cd_arena_free(&a);
    return 0;
}
