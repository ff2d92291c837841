/* A configuration as one table of keys: parse, check, print, document.
 *
 *   static const cd_conf_key keys[] = {
 *       {"train.rounds", CD_CONF_INT, offsetof(config, train_rounds), "400", "1..", "trees"}, ...
 *
 *   text of YAML -> tree (base/yaml) -> every leaf found in the table by its
 *   dotted key -> checked -> written into the struct at its offset.
 *
 * Unknown keys, wrong types and values out of range are all reported, with
 * line and column, before the first is returned. YAML's surprises stay out:
 * only true and false are booleans, quoted text is never a number.
 * No state, any thread. */
#ifndef CD_CONF_H
#define CD_CONF_H
#include <stddef.h>

#include "base/text/yaml.h"

typedef enum {
    CD_CONF_INT,  /* int64_t                                       */
    CD_CONF_REAL, /* double                                        */
    CD_CONF_BOOL, /* bool                                          */
    CD_CONF_ENUM, /* int: position in `range`, "record|task"       */
    CD_CONF_TEXT, /* const char *                                  */
    CD_CONF_LIST  /* cd_texts; one text counts as a list of one    */
} cd_conf_type;

typedef struct cd_texts {
    size_t n;
    const char **v; /* (n) */
} cd_texts;

typedef struct cd_conf_key {
    const char *name;   /* dotted */
    cd_conf_type type;
    size_t offset;      /* into the struct */
    const char *def;    /* default, as YAML text */
    const char *range;  /* INT, REAL: "lo..hi", either side may be empty, "(" opens the low side;
                           ENUM: the words; TEXT, LIST: "" or "nonempty" */
    const char *help;
} cd_conf_key;

typedef struct cd_conf {
    const cd_conf_key *key;
    size_t n_key;
    void *to;           /* the struct */
    cd_arena *arena;    /* texts live here */
    cd_diag *diag;
} cd_conf;

/* Fill *c->to with the defaults. Errors: ENOMEM (a bad default is our bug). */
cdmpp_status cd_conf_defaults(const cd_conf *c, cdmpp_err *err);
/* Read YAML text over what is there. Errors: EPARSE, ESCHEMA, ERANGE, ENOMEM. */
cdmpp_status cd_conf_read(const cd_conf *c, const char *path, const char *text, size_t len, cdmpp_err *err);
/* One override "train.rounds=5"; the right side is YAML. The same errors. */
cdmpp_status cd_conf_set(const cd_conf *c, const char *assignment, cdmpp_err *err);
/* The key of that name; NULL when there is none. */
const cd_conf_key *cd_conf_find(const cd_conf *c, const char *name);
/* One parsed value for `name`, and a parsed mapping as cd_conf_read reads the one of a
 * file; mistakes are reported at their place in `where`. Errors: ESCHEMA, ERANGE, ENOMEM. */
cdmpp_status cd_conf_value(const cd_conf *c, const char *where, const char *name, const cd_yaml *v, cdmpp_err *err);
cdmpp_status cd_conf_map(const cd_conf *c, const char *where, const cd_yaml *map, cdmpp_err *err);
/* The value of one key as YAML on one line; all but a word (ENUM) is also JSON. */
void cd_conf_print_value(cd_buf *out, const cd_conf *c, const cd_conf_key *k);
/* The values as YAML that cd_conf_read reads back to the same struct. */
void cd_conf_print(cd_buf *out, const cd_conf *c);
/* The same as a JSON object of dotted keys. */
void cd_conf_json(cd_buf *out, const cd_conf *c);
/* The table as Markdown: key, type, default, range, meaning. And as a JSON list. */
void cd_conf_doc(cd_buf *out, const cd_conf_key *key, size_t n_key);
void cd_conf_doc_json(cd_buf *out, const cd_conf_key *key, size_t n_key);
#endif
