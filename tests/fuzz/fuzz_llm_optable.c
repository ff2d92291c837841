/* Any bytes as a table of operators of language models: no crash, every line is told or a record
 * with sizes that mean something. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "features/operators/operators.h"

static void check(const cd_llm_op_record *r, const cd_dict *names, const char *device) {
    if (r->kind >= CD_LLM_OP_N_KIND || r->type >= CD_LLM_OP_N_TYPE || r->kv >= CD_LLM_OP_N_TYPE ||
        r->stack >= names->n || r->kernel >= names->n || !device)
        abort();
    for (size_t i = 0; i < cd_llm_op_n_size((cd_llm_op_kind)r->kind); i++)
        if (!(r->size[i] >= 0 && r->size[i] <= 3e12)) abort();
    if (!(r->latency_s >= 0) || !(r->skew >= 0 && r->skew <= 10) || !cd_llm_op_same(r, r)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[] = "/tmp/cdmpp-fuzz-XXXXXX";
    const int fd = mkstemp(path);
    cd_dict names = {0};
    cd_op_reader *r;
    cd_llm_op_record o;
    const char *device;
    bool more = true, no_time;
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    close(fd);
    if (!cd_llm_op_reader_open(path, &names, &r, NULL)) {
        for (cdmpp_status st = CDMPP_OK; more;) {
            cdmpp_err err = {0};
            st = cd_llm_op_reader_next(r, &o, &device, &more, &no_time, &err);
            if (st && !err.msg[0]) abort();
            if (!st && more) check(&o, &names, device);
        }
        cd_op_reader_close(r);
    }
    cd_dict_free(&names);
    unlink(path);
    return 0;
}
