/* Texts numbered in order of first appearance: 0, 1, 2, ...
 * Owned copies; open addressing. One thread. */
#ifndef CD_DICT_H
#define CD_DICT_H
#include "base/core/core.h"
#include "base/text/json.h"

typedef struct cd_dict {
    cd_arena arena;      /* the texts                                       */
    char **text;         /* (n) NUL-terminated                              */
    size_t n, cap;
    uint32_t *slot;      /* (n_slot) number + 1, 0 empty; n_slot a power of 2 */
    size_t n_slot;
} cd_dict;

/* Number of a text, added when new. Errors: ENOMEM. */
cdmpp_status cd_dict_add(cd_dict *d, cd_str text, uint32_t *out, cdmpp_err *err);
/* Number of a text; false: it is not in the dictionary. */
bool cd_dict_find(const cd_dict *d, cd_str text, uint32_t *out);
void cd_dict_free(cd_dict *d);
#endif
