/* Names of an enum kept as one text, "a|b|c". The lists have a handful of words, so a search from
 *   the front is
 * enough. */
#include "base/text/text.h"

#include <string.h>

cd_str cd_enum_names_at(const char *words, int k) {
    size_t n = strcspn(words, "|");
    for (; k > 0 && *words; k--) {
        words += n + (words[n] == '|');
        n = strcspn(words, "|");
    }
    return (cd_str){words, n};
}

int cd_enum_names_find(const char *words, cd_str s) {
    for (int k = 0; s.n && *words; k++) {
        const cd_str w = cd_enum_names_at(words, 0);
        if (cd_str_eq(w, s)) return k;
        words += w.n + (words[w.n] == '|');
    }
    return -1;
}
