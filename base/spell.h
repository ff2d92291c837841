/* spell -- the word that was probably meant: for "did you mean" in errors.
 * No state, any thread. */
#ifndef CD_SPELL_H
#define CD_SPELL_H
#include <stddef.h>

/* Letters to insert, delete or replace to get from a to b; CD_SPELL_FAR when
 * either has CD_SPELL_FAR letters or more. */
#define CD_SPELL_FAR 64
size_t cd_spell_distance(const char *a, const char *b);
#endif
