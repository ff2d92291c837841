/* serving_match -- which modules of a checkpoint a list of quantization_config names. Inside
 * predictor/serving.
 *
 *   lm_head, gate              a word, or words one behind the other, of a module's name
 *   model.layers.3.self_attn   the same of one layer; what stands before "layers." differs between
 *                              programs
 *   model.layers.3.self_attn*  a pattern, of the whole name
 *   re:.*self_attn.*           an expression as Python matches it, from the beginning on
 *
 * An expression that POSIX does not have (classes of Python but \d, counts, looking ahead) fits
 * nothing, and `bad` says so. One owner. */
#ifndef CD_SERVING_MATCH_H
#define CD_SERVING_MATCH_H
#include "base/io/io.h"

typedef struct cd_serving_match {
    struct cd_serving_pattern *v;
    size_t n;
    bool bad;
} cd_serving_match;

/* list: of texts, or one text; NULL, and what is no text: nothing. It outlives *out. Errors:
 * ENOMEM. */
cdmpp_status cd_serving_match_new(const cd_json *list, cd_serving_match *out, cdmpp_err *err);
void cd_serving_match_free(cd_serving_match *m);
/* module: behind "model.layers.N.". */
bool cd_serving_match_any(const cd_serving_match *m, size_t layer, const char *module);
#endif
