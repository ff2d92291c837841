/* ubj_internal -- UBJ, the binary JSON in which XGBoost writes boosters.
 *
 *   {key value key value}   a key is a length and bytes; a length is a marker and a number
 *   S length bytes          [#count items   [$type#count numbers   [items]   T F Z
 *   numbers are big-endian behind their marker: i U I l L d D
 *
 * (1) Any bytes are safe: nothing is read behind the end, nesting is at most 32 deep, nothing is
 *     allocated.
 * (2) An object is read by a table of its keys: one that the table does not have, one that is there
 *     twice and one that is missing are errors, so that no two readers can understand one file in
 *     different ways.
 * (3) cd_ubj_whole goes first, over all bytes; the functions behind it expect values of the kind
 *     that a table of keys found.
 * Errors are EMODEL and say what was expected and found; callers add the keys. No state, any
 * thread. */
#ifndef CD_UBJ_INTERNAL_H
#define CD_UBJ_INTERNAL_H
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"

/* What is not read yet; borrowed. */
typedef struct cd_ubj {
    const unsigned char *p;
    size_t n;
} cd_ubj;

typedef struct cd_ubj_member {
    const char *key;
    char kind; /* '{', '[', 'S' (text) or 'n' (number) */
    bool optional;
    cd_ubj at; /* out: at the value; p NULL: it is not there */
} cd_ubj_member;

/* Reads the object at `at` into the table m (n). */
cdmpp_status cd_ubj_object(cd_ubj at, cd_ubj_member *m, size_t n, cdmpp_err *err);
/* The value at *at, and nothing behind it. */
cdmpp_status cd_ubj_whole(cd_ubj at, cdmpp_err *err);
/* The text at `at`, with a NUL, into buf (cap). */
cdmpp_status cd_ubj_text(cd_ubj at, char *buf, size_t cap, cdmpp_err *err);
/* The text at `at` is `want`. */
cdmpp_status cd_ubj_says(cd_ubj at, const char *want, cdmpp_err *err);
/* The whole number at *at, min to max; *at moves behind it. */
cdmpp_status cd_ubj_integer(cd_ubj *at, int64_t min, int64_t max, int64_t *out, cdmpp_err *err);
/* The counted list at *at: how many items; *at moves to the first. No more than there are bytes
 * left. */
cdmpp_status cd_ubj_list(cd_ubj *at, size_t *n, cdmpp_err *err);
/* Moves *at behind one value. */
void cd_ubj_pass(cd_ubj *at);
/* The n numbers of the array at `at`, all of this type: *data is at the first, borrowed. */
cdmpp_status cd_ubj_numbers(cd_ubj at, char type, size_t n, const unsigned char **data,
                            cdmpp_err *err);
/* How many numbers the typed array at `at` has. */
cdmpp_status cd_ubj_count(cd_ubj at, char type, size_t *n, cdmpp_err *err);
/* Number i of an array of type l, and of type d. */
uint32_t cd_ubj_l(const unsigned char *data, size_t i);
float cd_ubj_d(const unsigned char *data, size_t i);
#endif
