/* The list of mistakes found in one file that a person has written.
 *
 *   quickstart.yaml:7:3: error: train.epochs: expected integer >= 1, found 'ten'
 *   quickstart.yaml:9:1: error: unknown key 'seeed', did you mean 'seed'?
 *
 * Reading goes on after a mistake, so that all of them are reported at once. The first one also becomes the error that the
 * reading function returns. No state, any thread. */
#ifndef CD_DIAG_H
#define CD_DIAG_H
#include <stdbool.h>
#include <stddef.h>

#include "base/core/core.h"

#define CD_DIAG_MAX 50 /* mistakes that are kept as text; later ones are only counted */

struct cd_yaml;

typedef struct cd_diag { /* zeroed before use */
    cd_buf text; /* one line per mistake; `oom` as in any buffer */
    size_t n;    /* mistakes, also those that are not kept */
} cd_diag;

/* Adds the line "where:line:col: error: key: message". The place is that of node `at`, of its key if `at_key`; NULL: no place.
 * key "": no key. The first mistake of a list also fills `err`, with status `code`. */
void cd_diag_add(cd_diag *d, cdmpp_err *err, cdmpp_status code, const char *where, const struct cd_yaml *at, bool at_key, const char *key,
                 const char *fmt, ...) __attribute__((format(printf, 8, 9)));
/* Frees the text; the list is empty afterwards. */
void cd_diag_free(cd_diag *d);
#endif
