/* A split that is refused: status, key and words of the message. */
#ifndef SPLIT_REFUSED_H
#define SPLIT_REFUSED_H
#include <string.h>

#include "check.h"
#include "dataset/split/split.h"

static inline void split_refused(const cd_dataset *d, const uint8_t *keep, cd_split_spec p,
                                 cdmpp_status want, const char *key, const char *words) {
    cdmpp_err err = {0};
    cd_split *s = NULL;
    assert_status(cd_split_make(d, keep, &p, &s, &err), want);
    assert_string_equal(err.key, key);
    if (!strstr(err.msg, words)) print_error("%s\n", err.msg);
    assert_non_null(strstr(err.msg, words));
    assert_null(s);
}
#endif
