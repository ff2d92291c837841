/* Any bytes as a table of operators: no crash, every line is told or a record
 * with sizes that mean something. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "features/operators/operators.h"

static bool whole(double x) { return x >= 1 && x <= 1e30 && x == floor(x); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[] = "/tmp/cdmpp-fuzz-XXXXXX";
    const int fd = mkstemp(path);
    cd_op_reader *r;
    cd_library_op_record o;
    const char *device;
    bool more = true;
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    close(fd);
    if (!cd_library_op_reader_open(path, &r, NULL)) {
        for (cdmpp_status st = CDMPP_OK; more;) {
            cdmpp_err err = {0};
            st = cd_library_op_reader_next(r, &o, &device, &more, &err);
            if (st && !err.msg[0]) abort();
            if (!st && more &&
                (!whole(o.b) || !whole(o.m) || !whole(o.n) || !whole(o.k) || !(o.latency_s >= 0) ||
                 !device))
                abort();
        }
        cd_op_reader_close(r);
    }
    unlink(path);
    return 0;
}
