/* Any text as data.sample and split.mode: no crash; what is refused has a reason, what is
 * taken names units that the data set has. */
#include <stdlib.h>

#include "dataset/split/split.h"
#include "tests/support/dataset/made_split.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static made_split f;
    static uint8_t asked[MADE_N];
    static int made;
    char text[512];
    cdmpp_err err = {0};
    cd_arena arena = {0};
    cd_split *s = NULL;
    cd_split_spec spec = {.kind = CD_SPLIT_NETWORK, .seed = 1, .valid = 0.2, .test = 0.2};
    if (!made++) made_split_build(&f, 0);
    if (size >= sizeof text) size = sizeof text - 1;
    for (size_t i = 0; i < size; i++) text[i] = data[i] ? (char)data[i] : '-';
    text[size] = '\0';
    if (!cd_sample_mark(&f.d, text, 1, asked, &err)) {
        for (size_t i = 0; i < MADE_N; i++)
            if (asked[i] > 1) abort();
    } else if (!err.msg[0]) {
        abort();
    }
    err = (cdmpp_err){0};
    if (!cd_sample_split(&f.d, text, &arena, &spec, &err)) {
        const cdmpp_status st = cd_split_make(&f.d, f.keep, &spec, &s, &err);
        if (st && !(st == CDMPP_ESCHEMA && strstr(err.msg, "already")) && st != CDMPP_ERANGE)
            abort();
    } else if (!err.msg[0]) {
        abort();
    }
    cd_split_free(s);
    cd_arena_free(&arena);
    return 0;
}
