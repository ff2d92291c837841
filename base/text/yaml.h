/* One YAML document as a tree whose nodes know their line and column.
 *
 *   train:            MAP -> child MAP(key "train", 1:1)
 *     epochs: ten            -> child SCALAR(key "epochs", value at 2:11)
 *
 * Over libyaml's events. Configurations are small and hand-written, so what is
 * legal YAML but a trap in a configuration is an error: a key given twice, a
 * key that is no plain text, anchors, aliases and tags (an alias bomb has
 * nothing to expand), a second document, nesting deeper than CD_YAML_MAX_DEPTH,
 * more than CD_YAML_MAX_BYTES or CD_YAML_MAX_KEYS. No scalar is interpreted here: "yes" is text.
 *
 *   (1) every error found is a line "path:line:col: error: ..." in the list;
 *   (2) only a syntax error ends the search for more;
 *   (3) strings live in the arena, end in NUL and contain no other NUL.
 * No state, any thread. */
#ifndef CD_YAML_H
#define CD_YAML_H
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"
#include "base/text/diag.h"
#include "base/text/json.h"

#define CD_YAML_MAX_DEPTH 32
#define CD_YAML_MAX_BYTES (1u << 20)
#define CD_YAML_MAX_KEYS 1000 /* of one mapping */

typedef enum { CD_YAML_SCALAR, CD_YAML_SEQ, CD_YAML_MAP } cd_yaml_kind;

typedef struct cd_yaml {
    cd_yaml_kind kind;
    bool quoted;                /* SCALAR written in quotes or as a block: text, never a number */
    uint32_t line, col;         /* 1-based, of the value */
    uint32_t key_line, key_col; /* of the key, inside a MAP */
    const char *text;           /* SCALAR */
    const char *key;            /* inside a MAP, else NULL */
    uint32_t n;                 /* children of SEQ or MAP */
    struct cd_yaml *child, *next;
} cd_yaml;

/* Parse `text`. *out is NULL for an empty document. Errors: EPARSE, ESCHEMA
 * (all of them in `diag`, the first in err), ENOMEM. */
cdmpp_status cd_yaml_parse(cd_arena *a, const char *path, const char *text, size_t len,
                           CD_KEEP const cd_yaml **out, cd_diag *diag, cdmpp_err *err);

/* "a mapping", "a list", "'text'": for messages. Returns buf. */
char *cd_yaml_found(const cd_yaml *v, char *buf, size_t n);
#endif
