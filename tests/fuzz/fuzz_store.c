/* The store's importers on any bytes: no crash, and what was taken can be asked for and is JSON.
 * The first byte says which form. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiler/store/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static cdmpp_status look(void *ctx, const cd_store_hit *h, cdmpp_err *err) {
    cd_buf b = {0}, text = {0};
    cd_arena *a = ctx;
    const cd_json *v;
    cd_store_put_json(&b, h);
    cd_arena_reset(a);
    if (!b.oom && cd_json_parse(a, b.p, b.n, &v, err)) abort();
    const cdmpp_status st = cd_store_put_record(&text, a, h, err);
    if (st && st != CDMPP_ENODATA) abort(); /* what was a record is one again */
    cd_store_put_csv(&text, h);
    cd_buf_free(&b);
    cd_buf_free(&text);
    return CDMPP_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const cd_store_form form[] = {CD_STORE_ANSOR,  CD_STORE_TABLE, CD_STORE_CURVES,
                                         CD_STORE_KINETO, CD_STORE_NSYS,  CD_STORE_OPBENCH,
                                         CD_STORE_AUTOTVM};
    cd_store *s = NULL;
    cd_arena a = {0};
    cdmpp_err err = {0};
    cd_store_tally t = {0};
    char path[64];
    if (!n) return 0;
    const cd_store_import how = {.form = form[data[0] % (sizeof form / sizeof *form)]};
    const cd_store_filter all = {.errors = true};
    const int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, data + 1, n - 1) != (ssize_t)(n - 1)) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (cd_store_open(":memory:", true, &s, &err)) abort();
    (void)cd_store_import_path(s, path, &how, &t, &err);
    if (cd_store_query(s, &all, look, &a, &err)) abort();
    cd_store_close(s);
    cd_arena_free(&a);
    close(fd);
    return 0;
}
