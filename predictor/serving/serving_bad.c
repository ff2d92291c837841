/* Rows of a table that cannot be used, in the order of the file. */
#include "predictor/serving/serving_bad.h"

#include <string.h>

void cd_serving_bad_add(void *ctx, const cdmpp_err *why) {
    cd_serving_bad *b = ctx;
    const size_t kept = b->n < CD_SERVING_BAD ? b->n : CD_SERVING_BAD;
    size_t at = kept;
    b->n++;
    while (at && b->first[at - 1].line > why->line) at--;
    if (at == CD_SERVING_BAD) return;
    memmove(&b->first[at + 1], &b->first[at],
            ((kept < CD_SERVING_BAD ? kept : CD_SERVING_BAD - 1) - at) * sizeof *b->first);
    b->first[at] = *why;
}

void cd_serving_bad_tell(const cd_serving_bad *b, const char *path, cd_op_bad_line *say,
                         void *ctx) {
    cdmpp_err why = {0};
    for (size_t i = 0; i < b->n && i < CD_SERVING_BAD; i++) say(ctx, &b->first[i]);
    if (b->n <= CD_SERVING_BAD) return;
    const size_t more = b->n - CD_SERVING_BAD;
    (void)cd_err_at(
        &why,
        CD_FAIL(&why, ESCHEMA, "%zu further row%s left out", more, more > 1 ? "s are" : " is"),
        path, 0);
    say(ctx, &why);
}
