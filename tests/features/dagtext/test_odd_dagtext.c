/* Odd printed definitions. The seeds begin with the shapes of the key
 * (tests/fuzz/fuzz_dagtext.c). */
#include "features/dagtext/dagtext.h"
#include "odd.h"

static cdmpp_status definition(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    const char *line = memchr(text, '\n', n);
    cd_te_dag *dag = NULL;
    char hash[33];
    unsigned rests;
    cd_buf key = {0};
    (void)ctx;
    if (!line) return CDMPP_OK;
    const bool all = text[0] == '!';
    const cd_str body = {line + 1, n - (size_t)(line + 1 - text)};
    cdmpp_status st = cd_dagtext_hash(body, hash, err);
    cd_buf_putf(&key, "[\"%s\"%.*s]", hash, (int)(line - text - all), text + all);
    if (!st && key.oom) st = CD_FAIL(err, ENOMEM, "key");
    if (!st) st = cd_dagtext_read((cd_str){key.p, key.n}, body, all ? 3 : 0, &dag, &rests, err);
    cd_te_dag_free(dag);
    cd_buf_free(&key);
    return st;
}

TEST(files) { odd_all_of_seeds("tests/fuzz/seeds/dagtext", 1000, definition, NULL); }

TESTS(NULL, NULL, files)
