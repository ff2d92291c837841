/* spell -- the word that was probably meant: for "did you mean" in errors.
 * No state, any thread. */
#ifndef CD_SPELL_H
#define CD_SPELL_H
#include <stddef.h>

/* Letters to insert, delete or replace to get from a to b; CD_SPELL_FAR when
 * either has CD_SPELL_FAR letters or more. */
#define CD_SPELL_FAR 64
size_t cd_did_you_mean_distance(const char *a, const char *b);
/* The first of (n) names that is nearest to `asked`, when at most a third of the letters
 * of `asked` and one more differ; else NULL. */
const char *cd_did_you_mean_nearest(const char *asked, const char *const *name, size_t n);
#endif
