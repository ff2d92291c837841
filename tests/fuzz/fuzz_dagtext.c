/* Any bytes as a printed definition: a first line with the shapes of the key, ", [4], [4]", then
 * the text, whose hash is put into the key. No crash, no leak; what is read has the hash of its
 * text. A first byte '!' allows all assumptions. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "features/dagtext/dagtext.h"

static void check(cd_str key, cd_str text, unsigned allowed, const char *hash) {
    cdmpp_err err = {0};
    cd_te_dag *dag;
    unsigned rests;
    char own[33];
    const cdmpp_status st = cd_dagtext_read(key, text, allowed, &dag, &rests, &err);
    if (st && (!err.msg[0] || err.code != st || dag)) abort();
    if (!st && (cd_te_dag_hash(dag, own, &err) || strcmp(own, hash) != 0 || (rests & ~allowed)))
        abort();
    cd_te_dag_free(dag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cdmpp_err err = {0};
    char hash[33];
    cd_buf key = {0};
    const bool all = size && data[0] == '!';
    const char *p = (const char *)data + all, *end = (const char *)data + size,
               *line = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    if (!line) return 0;
    const cd_str text = {line + 1, (size_t)(end - line - 1)};
    if (cd_dagtext_hash(text, hash, &err)) return 0;
    cd_buf_putf(&key, "[\"%s\"%.*s]", hash, (int)(line - p), p);
    if (!key.oom) check((cd_str){key.p, key.n}, text, all ? 3 : 0, hash);
    cd_buf_free(&key);
    return 0;
}
