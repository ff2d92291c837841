/* Blocks are zeroed and grow; a size that overflows is refused. */
#include "check.h"
#include "fault.h"

#include <stdint.h>
#include <string.h>

#include "base/core/core.h"
#include "base/text/text.h"
#include "base/core/mem.h"

TEST(sizes) {
    unsigned char *p = cd_mem_alloc(0);
    assert_non_null(p);
    cd_mem_free(p);
    cd_mem_free(NULL);
    assert_null(cd_mem_zalloc(SIZE_MAX / 2, 3));
    p = cd_mem_zalloc(10, 10);
    for (int i = 0; i < 100; i++) assert_int_equal(p[i], 0);
    memset(p, 7, 100);
    p = cd_mem_realloc(p, 100, 1000);
    for (int i = 0; i < 100; i++) assert_int_equal(p[i], 7);
    p = cd_mem_realloc(p, 100, 10);
    assert_int_equal(p[9], 7);
    cd_mem_free(p);
    cd_mem_free(cd_mem_realloc(NULL, 0, 10));
}

/* Let every single allocation fail in turn: an error each time, nothing lost. */
static void failing_at_every_allocation(void **st) {
    (void)st;
    static const char text[] = "{\"a\": [1, 2.5, \"x\\ny\"], \"b\": {\"c\": null}}";
    FAULT_SWEEP(f, 3) {
        cd_arena a = {0};
        cd_buf b = {0};
        const cd_json *v = NULL;
        f.st = cd_json_parse(&a, text, sizeof text - 1, &v, &f.err);
        for (int i = 0; i < 100; i++) cd_buf_puts(&b, "0123456789");
        if (b.oom) f.st = CDMPP_ENOMEM;
        else assert_int_equal(b.n, 1000);
        cd_buf_free(&b);
        cd_arena_free(&a);
    }
}

TESTS(NULL, NULL, sizes, failing_at_every_allocation)
