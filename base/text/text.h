/* The door of base/text: other rooms include this header and no other of the room.
 *
 * Text formats. JSON: a tree (json), typed reads with errors (json_typed.c), a writer (json_write).
 * YAML as a tree with places (yaml), the list of mistakes found in a file (diag), and
 * configurations that are one table of keys (conf). Names of enums as
 * "a|b|c" (enum_names), texts numbered in order of appearance (dict), fields of a CSV line
 *   (csv_fields). */
#ifndef CD_BASE_TEXT_DOOR_H
#define CD_BASE_TEXT_DOOR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/core.h"

/* The list of mistakes found in one file that a person has written.
 *
 *   quickstart.yaml:7:3: error: train.epochs: expected integer >= 1, found 'ten'
 *   quickstart.yaml:9:1: error: unknown key 'seeed', did you mean 'seed'?
 *
 * Reading goes on after a mistake, so that all of them are reported at once. The first one also
 * becomes the error that the reading function returns. No state, any thread. */

#define CD_DIAG_MAX 50 /* mistakes that are kept as text; later ones are only counted */

struct cd_yaml;

typedef struct cd_diag { /* zeroed before use */
    cd_buf text;         /* one line per mistake; `oom` as in any buffer */
    size_t n;            /* mistakes, also those that are not kept */
} cd_diag;

/* Adds the line "where:line:col: error: key: message". The place is that of node `at`, of its key
 * if `at_key`; NULL: no place. key "": no key. The first mistake of a list also fills `err`, with
 * status `code`. */
void cd_diag_add(cd_diag *d, cdmpp_err *err, cdmpp_status code, const char *where,
                 const struct cd_yaml *at, bool at_key, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 8, 9)));
/* Frees the text; the list is empty afterwards. */
void cd_diag_free(cd_diag *d);

/* Parse one JSON text into a tree that lives in an arena.
 *
 *   {"a": [1, 2.5]}   OBJ -> child ARR(key "a") -> child INT 1 -> next REAL 2.5
 *
 * The hot path of the project reads tens of thousands of records of 1.2 kB per second. So the tree
 * is built in place, strings without escapes stay slices of the text, and nothing touches the heap.
 * Accepted is RFC 8259; \u escapes become UTF-8, and a byte order mark in front is skipped. Numbers
 * without '.', 'e' that fit int64_t are INT, all others REAL ("1e999" is infinite; the typed reads
 * refuse it). Input text must outlive the tree. No state, any thread.
 *
 *                                          cd_json_parse: our own forms  cd_json_parse_foreign:
 *     whatever other programs write
 *   a key twice in an object               EPARSE with line and key      the last one counts, as in
 *     Python, and that is said
 *   NaN, Infinity, -Infinity               EPARSE                        REAL, as Python writes
 *     them; refused where the number is read
 *   \u0000, half a surrogate pair          EPARSE                        U+FFFD
 *   comments, commas before a bracket, quotes of other kinds, UTF-16     EPARSE, as in Python
 */

#define CD_JSON_MAX_DEPTH 128 /* deeper input is EPARSE, never a stack overflow */
/* of one text; more is ERANGE: "0," takes two bytes and 48 as a node */
#define CD_JSON_MAX_VALUES (1U << 22)

typedef enum {
    CD_JSON_NULL,
    CD_JSON_BOOL,
    CD_JSON_INT,
    CD_JSON_REAL,
    CD_JSON_STR,
    CD_JSON_ARR,
    CD_JSON_OBJ
} cd_json_kind;

typedef struct cd_json {
    cd_json_kind kind;
    uint32_t n; /* children of ARR or OBJ              */
    union {
        int64_t i;             /* INT; BOOL as 0 or 1                 */
        double f;              /* REAL                                */
        cd_str s;              /* STR                                 */
        struct cd_json *child; /* first child of ARR, OBJ             */
    } u;
    cd_str key; /* member name when inside an object   */
    struct cd_json *next;
} cd_json;

/* Errors: EPARSE (with the byte, and with the line where the text has several), ERANGE (more than
 * CD_JSON_MAX_VALUES), ENOMEM. */
cdmpp_status cd_json_parse(cd_arena *a, const char *text, size_t len, CD_KEEP const cd_json **out,
                           cdmpp_err *err);
/* The same of a text of another program. What is to be told goes to `said` (NULL: nobody listens;
 * look at its oom), a line each: "line 3: rope_scaling.factor: the key is given twice, the last one
 * counts". */
cdmpp_status cd_json_parse_foreign(cd_arena *a, cd_str text, cd_buf *said,
                                   CD_KEEP const cd_json **out, cdmpp_err *err);

/* ---- without a tree, for lines whose members are read one by one ---- */
/* The next member of an object: before the first call *rest is the whole text, which begins with
 * '{', afterwards what is left. *key: without its quotes, escapes as they are; *value: its text,
 * found by brackets and quotes alone, so the caller still has to parse it. *more false: there was
 * none, and the object ended properly. Errors: EPARSE. */
cdmpp_status cd_json_member(cd_str *rest, CD_KEEP cd_str *key, CD_KEEP cd_str *value, bool *more,
                            cdmpp_err *err);
/* Is every key of the object, as it is written, there once? The one whose readers take members one
 * by one asks this first. *twice: the later of two equal keys, of length 0: there is none, or the
 * text is no object, which whoever reads it finds. Errors: ENOMEM. */
cdmpp_status cd_json_members_once(cd_str object, CD_KEEP cd_str *twice, cdmpp_err *err);
/* The next item of an array, in the same way; the text begins with '['. Errors: EPARSE. */
cdmpp_status cd_json_item(cd_str *rest, CD_KEEP cd_str *value, bool *more, cdmpp_err *err);
/* A number with blanks around it; the place behind them, NULL: there is none. "1e999" is
 * infinity. */
CD_KEEP const char *cd_json_number(const char *p, const char *end, double *out);

/* ---- reading a tree: json_typed.c ---- */
/* Member of an object; NULL when absent or when `obj` is no object. */
CD_KEEP const cd_json *cd_json_get(const cd_json *obj, const char *key);
const char *cd_json_kind_name(cd_json_kind k);

/* Typed reads of one value; the message names what was expected. INT is
 * accepted where REAL is wanted; a REAL is finite. Errors: ESCHEMA, ERANGE. */
cdmpp_status cd_json_int(const cd_json *v, int64_t lo, int64_t hi, int64_t *out, cdmpp_err *err);
cdmpp_status cd_json_real(const cd_json *v, double *out, cdmpp_err *err);
cdmpp_status cd_json_str(const cd_json *v, cd_str *out, cdmpp_err *err);
/* A number, or null for NaN. */
cdmpp_status cd_json_real_or_nan(const cd_json *v, double *out, cdmpp_err *err);
/* Member of an object that must be there, and the same as a number within lo .. hi, a
 * number of things, a text; the key is in the error. */
cdmpp_status cd_json_need(const cd_json *obj, const char *key, CD_KEEP const cd_json **out,
                          cdmpp_err *err);
cdmpp_status cd_json_need_real(const cd_json *obj, const char *key, double lo, double hi,
                               double *out, cdmpp_err *err);
cdmpp_status cd_json_need_count(const cd_json *obj, const char *key, uint64_t *out, cdmpp_err *err);
cdmpp_status cd_json_need_str(const cd_json *obj, const char *key, cd_str *out, cdmpp_err *err);
/* One of the names "a|b|c": its position. */
cdmpp_status cd_json_need_word(const cd_json *obj, const char *key, const char *words, int *out,
                               cdmpp_err *err);
/* An array of min .. max numbers within lo .. hi, in that order, to out; *n: how many. */
typedef enum { CD_JSON_ANY, CD_JSON_NOT_FALLING, CD_JSON_RISING } cd_json_order;
cdmpp_status cd_json_need_reals(const cd_json *obj, const char *key, size_t min, size_t max,
                                double lo, double hi, cd_json_order order, double *out, size_t *n,
                                cdmpp_err *err);
/* Array with at least `min` items. */
cdmpp_status cd_json_arr(const cd_json *v, size_t min, const cd_json **first, cdmpp_err *err);

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

#define CD_YAML_MAX_DEPTH 32
#define CD_YAML_MAX_BYTES (1u << 20)
#define CD_YAML_MAX_KEYS  1000 /* of one mapping */

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
    const char *name; /* dotted */
    cd_conf_type type;
    size_t offset;     /* into the struct */
    const char *def;   /* default, as YAML text */
    const char *range; /* INT, REAL: "lo..hi", either side may be empty, "(" opens the low side;
                           ENUM: the words; TEXT, LIST: "" or "nonempty" */
    const char *help;
} cd_conf_key;

typedef struct cd_conf {
    const cd_conf_key *key;
    size_t n_key;
    void *to;        /* the struct */
    cd_arena *arena; /* texts live here */
    cd_diag *diag;
} cd_conf;

/* Fill *c->to with the defaults. Errors: ENOMEM (a bad default is our bug). */
cdmpp_status cd_conf_defaults(const cd_conf *c, cdmpp_err *err);
/* Read YAML text over what is there. Errors: EPARSE, ESCHEMA, ERANGE, ENOMEM. */
cdmpp_status cd_conf_read(const cd_conf *c, const char *path, const char *text, size_t len,
                          cdmpp_err *err);
/* named[i] becomes true where the text has key i. Mistakes are those of cd_conf_read. */
void cd_conf_named(const cd_conf *c, const char *path, const char *text, size_t len, bool *named);
/* One override "train.rounds=5"; the right side is YAML. The same errors. */
cdmpp_status cd_conf_set(const cd_conf *c, const char *assignment, cdmpp_err *err);
/* The key of that name; NULL when there is none. */
const cd_conf_key *cd_conf_find(const cd_conf *c, const char *name);
/* One parsed value for `name`, and a parsed mapping as cd_conf_read reads the one of a
 * file; mistakes are reported at their place in `where`. Errors: ESCHEMA, ERANGE, ENOMEM. */
cdmpp_status cd_conf_value(const cd_conf *c, const char *where, const char *name, const cd_yaml *v,
                           cdmpp_err *err);
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

/* One line of CSV (RFC 4180) into its fields.
 *
 *   a,"b ""c"", d",   ->   [a] [b "c", d] []
 *
 * A quoted field is rewritten in place without its quotes; others stay as they are. A field does
 * not go over several lines. No heap. */

/* *n fields, at most `most` of them into field. Errors: EPARSE (quotes), ERANGE (more than
 * `most`). */
cdmpp_status cd_csv_fields_split(char *line, size_t len, cd_str *field, size_t most, size_t *n,
                                 cdmpp_err *err);
/* A field with quotes around it, for texts that may hold commas and quotes. */
void cd_csv_fields_put(cd_buf *b, const char *text, size_t n);
/* The same, without quotes where it needs none. */
void cd_csv_fields_put_bare(cd_buf *b, const char *text, size_t n);

/* escape -- texts of files on their way into other languages: names of devices, networks,
 * operators, tasks, files.
 *
 *   into                                    one function each
 *   HTML, SVG: text and attributes          cd_escape_xml
 *   JSON inside <script>, with its quotes   cd_escape_script
 *   JSON, with its quotes                   cd_buf_put_json_str, or the writer below
 *   CSV                                     cd_csv_fields_put, cd_csv_fields_put_bare
 *   C, OpenCL C, CUDA C: a comment          cd_escape_c_comment
 *   the same: a string, with its quotes     cd_escape_c_string
 *   DOT: inside double quotes               cd_escape_dot
 *   YAML, with its quotes                   cd_escape_yaml
 *   a word of a shell's line                cd_escape_shell
 *   a terminal                              cd_escape_terminal
 *   a file's name                           cd_escape_file_name
 *
 * (1) What comes out stays within the string, comment, element or line that it is put in, whatever
 *     the text is: quotes, ends of comments, line breaks, escape sequences, bytes that are no
 *     UTF-8. (2) A reader of the language gets the text back; of comments, names of files and
 *     terminals, and of what is no character there, something like it. No state, any thread.
 *     Identifiers are made by cd_codegen_clean_name (profiler/codegen/code); a shell that is run
 *     gets texts as arguments, never within its own text. */
void cd_escape_xml(cd_buf *out, cd_str s);
void cd_escape_script(cd_buf *out, cd_str s);
void cd_escape_c_comment(cd_buf *out, cd_str s);
void cd_escape_c_string(cd_buf *out, cd_str s);
void cd_escape_dot(cd_buf *out, cd_str s);
void cd_escape_yaml(cd_buf *out, cd_str s);
bool cd_escape_yaml_must(uint32_t c); /* is this code point written as an escape? */
void cd_escape_shell(cd_buf *out, cd_str s);
void cd_escape_terminal(cd_buf *out, cd_str s);
#define CD_ESCAPE_FILE_NAME_MAX 120
void cd_escape_file_name(cd_buf *out, cd_str s);

/* Texts numbered in order of first appearance: 0, 1, 2, ...
 * Owned copies; open addressing. One thread. */

typedef struct cd_dict {
    cd_arena arena; /* the texts                                       */
    char **text;    /* (n) NUL-terminated                              */
    size_t n, cap;
    uint32_t *slot; /* (n_slot) number + 1, 0 empty; n_slot a power of 2 */
    size_t n_slot;
} cd_dict;

/* Number of a text, added when new. Errors: ENOMEM. */
cdmpp_status cd_dict_add(cd_dict *d, cd_str text, uint32_t *out, cdmpp_err *err);
/* Number of a text; false: it is not in the dictionary. */
bool cd_dict_find(const cd_dict *d, cd_str text, uint32_t *out);
void cd_dict_free(cd_dict *d);

/* The names of an enum's values, "rows|program|sums": one text for
 * reading, writing, messages and manuals.
 *
 * (1) The k-th word stands for value k. No word is empty. No state, any thread. */

/* The k-th word; empty when there are fewer. */
cd_str cd_enum_names_at(const char *words, int k);
/* Position of `s`; -1 when it is none of them. */
int cd_enum_names_find(const char *words, cd_str s);

/* JSON text, piece by piece: the writer sets commas and quotes.
 *
 *   cd_json_writer w = {.out = &b};
 *   cd_json_write_open(&w, '{');
 *   cd_json_write_key(&w, "latency_s"), cd_json_write_real(&w, 0.5);
 *   cd_json_write_key(&w, "shape"), cd_json_write_open(&w, '['), cd_json_write_int(&w, 3),
 *   cd_json_write_close(&w, ']');
 *   cd_json_write_close(&w, '}');                     -> {"latency_s":0.5,"shape":[3]}
 *
 * Out of memory is sticky in the buffer: look at out->oom once, at the end. Not checked: that
 * brackets and keys match. */

typedef struct cd_json_writer {
    cd_buf *out;
    bool comma;        /* the next value is not the first of its array or object */
    const char *colon; /* after a key: ":" (NULL) or ": " */
    const char *sep;   /* between values: "," (NULL) or ", " */
} cd_json_writer;

void cd_json_write_open(cd_json_writer *w, char bracket);  /* '{' or '[' */
void cd_json_write_close(cd_json_writer *w, char bracket); /* '}' or ']' */
void cd_json_write_key(cd_json_writer *w, const char *key);
void cd_json_write_str(cd_json_writer *w, const char *s); /* NULL: null */
void cd_json_write_strn(cd_json_writer *w, const char *s, size_t n);
void cd_json_write_int(cd_json_writer *w, int64_t v);
/* reads back as the same double; null where it is not finite */
void cd_json_write_real(cd_json_writer *w, double v);
void cd_json_write_bool(cd_json_writer *w, bool v);
void cd_json_write_null(cd_json_writer *w);
/* a value that is JSON already */
void cd_json_write_raw(cd_json_writer *w, const char *json, size_t n);
/* A key and its value. */
void cd_json_write_member_str(cd_json_writer *w, const char *key, const char *s);
void cd_json_write_member_int(cd_json_writer *w, const char *key, int64_t v);
void cd_json_write_member_real(cd_json_writer *w, const char *key, double v);
void cd_json_write_member_bool(cd_json_writer *w, const char *key, bool v);
void cd_json_write_member_strn(cd_json_writer *w, const char *key, const char *s, size_t n);
/* An array of n numbers. */
void cd_json_write_reals(cd_json_writer *w, const double *v, size_t n);

/* "key":[1,2.5] in a text that is put together by hand: n numbers of that many significant
 * digits. */
void cd_json_put_reals(cd_buf *out, const char *key, const double *v, size_t n, int digits);

/* units -- numbers with a unit for people: three digits and the prefix that suits them. */

/* "1.23 us", "456 ms", "0.00 us" for 0; "-" where it is not finite. The second form is
 * right-aligned in nine characters, for tables. */
void cd_units_put_seconds(cd_buf *b, double s);
void cd_units_put_seconds_wide(cd_buf *b, double s);
/* "64 B", "1 MiB": powers of 1024, at most four digits. */
void cd_units_put_bytes(cd_buf *b, double bytes);
#endif
